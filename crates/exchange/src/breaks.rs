//! Trades that the venue breaks by itself: a seeded share of all, each a while after it was made.

use alloc::collections::VecDeque;

use tickwire_persist::persist;

use crate::engine::{Engine, TRADES_KEPT};
use crate::order::{BreakReason, Listener};
use crate::random::Random;
use crate::tape::VenueTime;

/// Which trades are broken. Auctions are not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BreaksConfig {
    /// The share of trades, of clients and among the market's own orders, in a million; 0: none.
    pub share_ppm: u32,
    /// How long after the trade, in nanoseconds. Those that the close comes before stand.
    pub after_ns: u64,
}

/// Draws them and keeps them until they are due: at most [`TRADES_KEPT`], those drawn beyond stand.
pub(crate) struct Breaks {
    config: BreaksConfig,
    random: Random,
    due: VecDeque<(VenueTime, u64)>,
    /// The last trade that was drawn for.
    seen: u64,
}

impl Breaks {
    pub(crate) fn new(config: BreaksConfig, seed: u64) -> Breaks {
        Breaks {
            config,
            // Not the flow's numbers.
            random: Random::new(seed ^ 0x6272_6561_6B73),
            due: VecDeque::with_capacity(if config.share_ppm > 0 { TRADES_KEPT } else { 0 }),
            seen: 0,
        }
    }

    /// Draws among the trades made since it was last called.
    pub(crate) fn draw(&mut self, now: VenueTime, engine: &Engine) {
        if self.config.share_ppm == 0 {
            return;
        }
        while self.seen < engine.last_match_number() {
            self.seen += 1;
            if self.random.ppm(self.config.share_ppm) && self.due.len() < TRADES_KEPT {
                let due = now.saturating_add(self.config.after_ns);
                self.due.push_back((due, self.seen));
            }
        }
    }

    /// When the next one is broken.
    pub(crate) fn next(&self) -> Option<VenueTime> {
        self.due.front().map(|(due, _)| *due)
    }

    /// Breaks the next one if it is due; whether it was. One that cannot be broken any more stands.
    pub(crate) fn step(&mut self, now: VenueTime, engine: &mut Engine, out: &mut impl Listener) -> bool {
        let Some((_, match_number)) = self.due.pop_front_if(|(due, _)| *due <= now) else {
            return false;
        };
        let _ = engine.break_trade(match_number, BreakReason::Erroneous, out);
        true
    }
}

persist!(struct Breaks { random, due, seen } not { config });
