//! What an operator is told of a running quoter beside its answers: lines on standard error, written by the
//! console's thread, so that no thread that prices or quotes ever waits for a terminal or a pipe; and the
//! same for `--tell status`.

use std::sync::Mutex;

use serde_json::{Value, json};
use tickwire_market::{Nanos, Price};
use tickwire_trading::OffMarket;

use super::account::Off;

/// Lines of options within a second; those beyond are counted.
const LINES_MAX: u32 = 8;

/// What the pricing thread says.
#[derive(Default)]
pub(crate) struct News {
    is_silent: bool,
    window: Nanos,
    said: u32,
    unsaid: u32,
}

impl News {
    /// Nobody is told.
    #[cfg(test)]
    pub(crate) fn silent() -> News {
        News {
            is_silent: true,
            ..News::default()
        }
    }

    /// Says a line on standard error, behind the program's name.
    pub(crate) fn say(&self, line: &str) {
        if !self.is_silent {
            tickwire_console::note(format_args!("tickwire: {line}"));
        }
    }

    /// An option is not quoted any more, or again; the first few of a second by name.
    pub(crate) fn of_market(&mut self, now: Nanos, name: &str, (was, is): (Option<Off>, Option<Off>)) {
        let line = match (was.map(|off| off.why), is) {
            (None, None) => return,
            (Some(before), Some(off)) if before == off.why => return,
            (_, Some(off)) => format!("{name} is not quoted: {}", said(&off)),
            (Some(why), None) => format!(
                "{name} is quoted again: its quote goes with its market ({})",
                word(why)
            ),
        };
        if now.since(self.window) >= Nanos::SECOND {
            self.window = now;
            self.said = 0;
            match std::mem::take(&mut self.unsaid) {
                0 => {}
                more => self.say(&format!(
                    "{more} more options were pulled or quoted again because of their markets; `tickwire quote --tell status` counts them"
                )),
            }
        }
        self.said += 1;
        if self.said > LINES_MAX {
            self.unsaid += 1;
            return;
        }
        self.say(&line);
    }
}

/// A reason as one word, for keys.
pub(crate) fn word(why: OffMarket) -> &'static str {
    match why {
        OffMarket::Crosses => "crosses",
        OffMarket::TooGood => "too_good",
        OffMarket::OffMid => "off_mid",
        OffMarket::NoMarket => "no_market",
    }
}

/// A reason as a sentence.
fn said(off: &Off) -> String {
    let [bid, ask] = off.wanted;
    let prices = |[bid, ask]: [Option<Price>; 2]| {
        let of = |price: Option<Price>| price.map_or("none".to_string(), |price| price.to_string());
        format!("{} / {}", of(bid), of(ask))
    };
    let why = match off.why {
        OffMarket::Crosses => "it would cross or lock the market",
        OffMarket::TooGood => "it would be better than the market by more than quoter.market.better_max",
        OffMarket::OffMid => {
            "its middle is further from the market's than quoter.market.mid_ticks and mid_share"
        }
        OffMarket::NoMarket => "its market has no bid or no offer (quoter.market.without_market)",
    };
    format!(
        "{why}: ours {}, market {}",
        prices([bid, ask]),
        prices(off.market)
    )
}

/// What the pricing thread knows and the operator asks for: written by the one, read by the control thread.
#[derive(Default)]
pub(crate) struct Board(Mutex<Value>);

impl Board {
    /// Options named in it at most.
    const NAMED_MAX: usize = 10;

    /// Options that are off their market, and how all of them are marked.
    pub(crate) fn put<'a>(&self, off: impl Iterator<Item = (&'a str, Off)>, mut marks: Value) {
        let named: Vec<Value> = off
            .take(Board::NAMED_MAX)
            .map(|(name, off)| json!({ "option": name, "why": (word(off.why)), "says": (said(&off)) }))
            .collect();
        if let Some(all) = marks.as_object_mut() {
            all.insert("not_quoted".into(), named.into());
        }
        if let Ok(mut board) = self.0.lock() {
            *board = marks;
        }
    }

    /// What was put there last.
    pub(crate) fn get(&self) -> Value {
        self.0.lock().map(|board| board.clone()).unwrap_or_default()
    }
}
