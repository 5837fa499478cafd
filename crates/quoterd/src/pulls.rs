//! What the terminal is told of pulls.

use std::collections::BTreeMap;

use tickwire_market::Nanos;
use tickwire_node::hot::OrderOut;
use tickwire_node::link::Link;
use tickwire_trading::{PullReason, QuotingState};

use crate::path::{QuotePath, Trades};

/// How often quoting stopped, by reason, of those that it did stop for.
pub(crate) fn pulls_by_name(pulls: &[u64]) -> BTreeMap<String, u64> {
    let all = PullReason::ALL.iter().zip(pulls);
    all.filter(|(_, count)| **count > 0)
        .map(|(reason, count)| (format!("{reason:?}"), *count))
        .collect()
}

/// What the terminal was told of pulls.
#[derive(Default)]
pub(crate) struct PullNews {
    pulls: [u64; PullReason::ALL.len()],
    /// How long the loop stood still last, in nanoseconds.
    pub(crate) stood: u64,
    is_pulled: bool,
}

impl PullNews {
    /// Says why quoting stopped since it was last called, and that it goes on.
    #[cold]
    fn say<O: OrderOut, T: Trades>(&mut self, path: &QuotePath<O, T>, link: &Link) {
        let pulls = path.maker().quoter.pulls();
        for ((reason, told), count) in PullReason::ALL.iter().zip(&mut self.pulls).zip(pulls) {
            let more = count - core::mem::replace(told, *count);
            if more == 0 || *reason == PullReason::NoSession {
                // Of a lost session [`Link::lost`] tells.
                continue;
            }
            let why = match reason {
                PullReason::Stall => format!(
                    ": the quoting thread did not run for {:.3} s",
                    self.stood as f64 / 1e9
                ),
                PullReason::Silence => path
                    .maker()
                    .quoter
                    .silence_max_ns()
                    .map_or(String::new(), |limit| {
                        format!(
                            ": no packet of the underlying's channel for {} ms",
                            limit / Nanos::MILLI
                        )
                    }),
                PullReason::Control => path.stopped_by().map_or(String::new(), |control| {
                    format!(
                        ": {} stopped it ([controls])",
                        tickwire_node::controls::named(control)
                    )
                }),
                _ => String::new(),
            };
            let times = if more > 1 {
                format!(", {more} times")
            } else {
                String::new()
            };
            let goes_on = match reason.is_passing() {
                true => "quoting goes on when the underlying is good again",
                false => "until `tickwire quote --tell resume`",
            };
            link.say(format!(
                "every quote was pulled, {reason:?}{times}{why}; {goes_on}"
            ));
            self.is_pulled = true;
        }
        if self.is_pulled && path.maker().quoter.state() == QuotingState::Quoting {
            self.is_pulled = false;
            link.say("quoting again".to_string());
        }
    }

    pub(crate) fn tell<O: OrderOut, T: Trades>(&mut self, path: &QuotePath<O, T>, link: &Link) {
        if self.is_pulled || self.pulls[..] != *path.maker().quoter.pulls() {
            self.say(path, link);
        }
    }
}
