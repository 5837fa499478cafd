//! What an operator is told of a running quoter beside its answers: lines on standard error, written by a thread of their own, so that no
//! thread that prices or quotes ever waits for a terminal or a pipe; and the same for `--tell status`.

use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use serde_json::{Value, json};
use tickwire_market::{Nanos, Price};
use tickwire_trading::OffMarket;

use super::account::Off;

/// Lines that may wait to be written.
const WAITING_MAX: usize = 256;
/// Lines of options within a second; those beyond are counted.
const LINES_MAX: u32 = 8;

/// What the pricing thread says.
pub(crate) struct News {
    lines: Option<SyncSender<String>>,
    /// Not written because nobody read those before.
    lost: u64,
    window: Nanos,
    said: u32,
    unsaid: u32,
}

impl News {
    /// Lines go to standard error, each behind the program's name.
    pub(crate) fn to_stderr() -> News {
        let (lines, waiting) = sync_channel::<String>(WAITING_MAX);
        // It ends with the sender; without a thread nothing is said.
        let thread = std::thread::Builder::new().name("news".into());
        let spawned = thread.spawn(move || {
            for line in waiting {
                eprintln!("tickwire: {line}");
            }
        });
        News {
            lines: spawned.is_ok().then_some(lines),
            lost: 0,
            window: Nanos::ZERO,
            said: 0,
            unsaid: 0,
        }
    }

    /// Nobody is told.
    #[cfg(test)]
    pub(crate) fn silent() -> News {
        News {
            lines: None,
            lost: 0,
            window: Nanos::ZERO,
            said: 0,
            unsaid: 0,
        }
    }

    /// Says a line, unless nobody reads: then how many were lost is said with the next one that is read.
    pub(crate) fn say(&mut self, line: String) {
        let Some(lines) = &self.lines else { return };
        let line = match self.lost {
            0 => line,
            lost => format!("{line} ({lost} lines before it were not written: nobody read)"),
        };
        match lines.try_send(line) {
            Ok(()) => self.lost = 0,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.lost += 1,
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
                more => self.say(format!("{more} more options were pulled or quoted again because of their markets; `tickwire quote --tell status` counts them")),
            }
        }
        self.said += 1;
        if self.said > LINES_MAX {
            self.unsaid += 1;
            return;
        }
        self.say(line);
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
