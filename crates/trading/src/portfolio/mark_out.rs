//! Where the market went after our fills: the middle price so many seconds later, less what was paid.
//!
//! A fill with a good edge that the market runs through was a bad one. [`MarkOuts`] is told mid prices as
//! they change, and looks back at each fill when its time has come: the mid that was in force at that instant
//! counts.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use tickwire_market::{Nanos, Price, Qty, Side};

/// How far behind fills it looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkOutsConfig {
    /// Instruments are numbered below this.
    pub instruments: u32,
    /// After how long, rising, in nanoseconds. Default 1, 10 and 60 seconds.
    pub horizons_ns: [u64; 3],
    /// Fills that are kept; the oldest is forgotten when there are more, counted or not.
    pub fills_max: usize,
}

impl Default for MarkOutsConfig {
    fn default() -> MarkOutsConfig {
        MarkOutsConfig {
            instruments: 0,
            horizons_ns: [1, 10, 60].map(|s| s * Nanos::SECOND),
            fills_max: 65_536,
        }
    }
}

/// A fill and what became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkOut {
    /// When.
    pub at: Nanos,
    /// In what.
    pub instrument: u32,
    /// Our side.
    pub side: Side,
    /// Contracts; 0 of one that was taken back, which [`MarkOuts::fills`] does not show.
    pub qty: Qty,
    /// At which price.
    pub price: Price,
    /// What a contract was worth more than was paid, in 1e-9 points; `None` without a theoretical value.
    pub edge: Option<i64>,
    /// The mid price at each horizon; `None` before its time, and of an instrument that had none.
    pub mids: [Option<Price>; 3],
}

impl MarkOut {
    /// What a contract had earned by a horizon, in 1e-9 points.
    pub fn earned(&self, horizon: usize) -> Option<i64> {
        let mid = (*self.mids.get(horizon)?)?;
        let up = mid.raw().saturating_sub(self.price.raw());
        Some(match self.side {
            Side::Bid => up,
            Side::Ask => up.saturating_neg(),
        })
    }
}

/// All fills at one horizon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Horizon {
    /// How long after the fill, in nanoseconds.
    pub after_ns: u64,
    /// Fills with a mid price then.
    pub fills: u64,
    /// Their contracts.
    pub contracts: u64,
    /// What the contracts had earned together, in 1e-9 points.
    pub earned: i128,
    /// Contracts that had lost.
    pub adverse: u64,
}

impl Horizon {
    /// Share of the contracts that had lost, in hundredths of a per cent.
    pub fn adverse_bp(&self) -> u32 {
        (self.adverse * 10_000).checked_div(self.contracts).unwrap_or(0) as u32
    }
}

/// Fills and the mid prices after them.
#[derive(Clone, Debug)]
pub struct MarkOuts {
    config: MarkOutsConfig,
    mids: Box<[Option<Price>]>,
    fills: VecDeque<MarkOut>,
    /// Number of the first fill that is kept.
    first: u64,
    /// By horizon, the number of the next fill to look back at.
    next: [u64; 3],
    horizons: [Horizon; 3],
    forgotten: u64,
}

impl MarkOuts {
    /// No fill, no mid.
    pub fn new(config: MarkOutsConfig) -> MarkOuts {
        MarkOuts {
            config,
            mids: vec![None; config.instruments as usize].into_boxed_slice(),
            fills: VecDeque::with_capacity(config.fills_max.max(1)),
            first: 0,
            next: [0; 3],
            horizons: config.horizons_ns.map(|after_ns| Horizon {
                after_ns,
                ..Horizon::default()
            }),
            forgotten: 0,
        }
    }

    /// An instrument's mid price changed; `None` if it has none any more.
    pub fn on_mid(&mut self, now: Nanos, instrument: u32, mid: Option<Price>) {
        // What was due before has the mid that was there before.
        self.look_back(now, false);
        if let Some(known) = self.mids.get_mut(instrument as usize) {
            *known = mid;
        }
    }

    /// Something was bought or sold, worth `theo` then. Fills come in order of time.
    pub fn on_fill(
        &mut self,
        now: Nanos,
        instrument: u32,
        side: Side,
        qty: Qty,
        price: Price,
        theo: Option<Price>,
    ) {
        self.look_back(now, false);
        if self.fills.len() >= self.config.fills_max.max(1) {
            let counts = self.fills.pop_front().is_some_and(|fill| !fill.qty.is_zero());
            self.forgotten += u64::from(counts && self.next[2] <= self.first);
            self.first += 1;
            self.next = self.next.map(|next| next.max(self.first));
        }
        let edge = theo.map(|theo| {
            let less = theo.raw().saturating_sub(price.raw());
            if side == Side::Bid {
                less
            } else {
                less.saturating_neg()
            }
        });
        self.fills.push_back(MarkOut {
            at: now,
            instrument,
            side,
            qty,
            price,
            edge,
            mids: [None; 3],
        });
    }

    /// The venue takes a fill back: it is no fill any more, nor counted at the horizons it had reached. Of
    /// several that are the same, the last one goes. `false`: none like it is kept.
    pub fn take_back(&mut self, instrument: u32, side: Side, qty: Qty, price: Price) -> bool {
        let is_it = |fill: &&mut MarkOut| {
            (fill.instrument, fill.side, fill.qty, fill.price) == (instrument, side, qty, price)
        };
        let Some(fill) = self.fills.iter_mut().rev().find(is_it) else {
            return false;
        };
        for (horizon, all) in self.horizons.iter_mut().enumerate() {
            let Some(earned) = fill.earned(horizon) else {
                continue;
            };
            let qty = u64::from(qty.0);
            all.fills -= 1;
            all.contracts -= qty;
            all.earned -= i128::from(earned) * i128::from(qty);
            all.adverse -= if earned < 0 { qty } else { 0 };
        }
        // It keeps its place: fills are numbered by theirs.
        fill.qty = Qty::ZERO;
        true
    }

    /// Time has passed: looks back at fills whose time has come.
    pub fn advance(&mut self, now: Nanos) {
        self.look_back(now, true);
    }

    fn look_back(&mut self, now: Nanos, includes_now: bool) {
        for horizon in 0..self.horizons.len() {
            let after = self.config.horizons_ns[horizon];
            while let Some(fill) = self.fills.get_mut((self.next[horizon] - self.first) as usize) {
                let due = fill.at.after(after);
                if due > now || due == now && !includes_now {
                    break;
                }
                self.next[horizon] += 1;
                if fill.qty.is_zero() {
                    continue;
                }
                fill.mids[horizon] = self.mids.get(fill.instrument as usize).copied().flatten();
                let Some(earned) = fill.earned(horizon) else {
                    continue;
                };
                let (all, qty) = (&mut self.horizons[horizon], u64::from(fill.qty.0));
                all.fills += 1;
                all.contracts += qty;
                all.earned += i128::from(earned) * i128::from(qty);
                all.adverse += if earned < 0 { qty } else { 0 };
            }
        }
    }

    /// The fills that are kept, oldest first, but those taken back.
    pub fn fills(&self) -> impl Iterator<Item = &MarkOut> {
        self.fills.iter().filter(|fill| !fill.qty.is_zero())
    }

    /// All fills of the session but those taken back, by horizon.
    pub fn horizons(&self) -> &[Horizon; 3] {
        &self.horizons
    }

    /// Fills that were forgotten before their last horizon.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quoter::tests::Random;
    use alloc::vec::Vec;

    #[test]
    fn each_fill_that_stands_meets_the_mid_that_was_there_at_its_time() {
        let config = MarkOutsConfig {
            instruments: 4,
            horizons_ns: [10, 100, 600],
            fills_max: 100_000,
        };
        let mut outs = MarkOuts::new(config);
        let mut random = Random(3);
        let mut mids: Vec<Vec<(u64, Option<Price>)>> = vec![Vec::new(); 4];
        let mut fills: Vec<(u64, u32, Side, Qty, Price)> = Vec::new();
        let (mut now, mut taken_back) = (0, 0);
        for _ in 0..30_000 {
            now += random.below(3);
            let instrument = random.below(4) as u32;
            let price = Price::from_raw(random.below(1_000) as i64);
            match random.below(8) {
                0 | 1 => {
                    let side = [Side::Bid, Side::Ask][random.below(2) as usize];
                    let qty = Qty(1 + random.below(9) as u32);
                    outs.on_fill(Nanos(now), instrument, side, qty, price, None);
                    fills.push((now, instrument, side, qty, price));
                }
                2 => outs.advance(Nanos(now.saturating_sub(1))),
                3 if random.one_in(4) && !fills.is_empty() => {
                    let one = fills[random.below(fills.len() as u64) as usize];
                    let (_, instrument, side, qty, price) = one;
                    let last = fills
                        .iter()
                        .rposition(|fill| (fill.1, fill.2, fill.3, fill.4) == (instrument, side, qty, price));
                    fills.remove(last.expect("it is one of them"));
                    assert!(outs.take_back(instrument, side, qty, price));
                    taken_back += 1;
                }
                _ => {
                    let mid = (!random.one_in(10)).then_some(price);
                    outs.on_mid(Nanos(now), instrument, mid);
                    mids[instrument as usize].push((now, mid));
                }
            }
        }
        outs.advance(Nanos(now));
        let mut expected = [Horizon::default(); 3];
        for (made, (at, instrument, side, qty, price)) in outs.fills().zip(&fills) {
            for (horizon, after) in config.horizons_ns.into_iter().enumerate() {
                expected[horizon].after_ns = after;
                let due = at + after;
                let history = &mids[*instrument as usize];
                let last = history.iter().rev().find(|(when, _)| *when <= due);
                let mid = last.and_then(|(_, mid)| *mid).filter(|_| due <= now);
                assert_eq!(made.mids[horizon], mid, "fill at {at}, after {after}");
                let Some(mid) = mid else { continue };
                let sign = if *side == Side::Bid { 1 } else { -1 };
                let earned = sign * (mid.raw() - price.raw());
                let all = &mut expected[horizon];
                all.fills += 1;
                all.contracts += u64::from(qty.0);
                all.earned += i128::from(earned) * i128::from(qty.0);
                all.adverse += if earned < 0 { u64::from(qty.0) } else { 0 };
            }
        }
        assert_eq!(outs.horizons(), &expected);
        assert_eq!(outs.fills().count(), fills.len());
        assert!(expected[2].fills > 4_000 && taken_back > 500);
        assert!(
            !outs.take_back(9, Side::Bid, Qty(1), Price::ZERO),
            "there is none"
        );
    }

    #[test]
    fn fills_beyond_the_room_are_forgotten_and_counted() {
        let config = MarkOutsConfig {
            instruments: 1,
            fills_max: 2,
            ..MarkOutsConfig::default()
        };
        let mut outs = MarkOuts::new(config);
        outs.on_mid(Nanos(0), 0, Some(Price::from_raw(7)));
        for n in 0..5 {
            outs.on_fill(
                Nanos(n),
                0,
                Side::Bid,
                Qty(2),
                Price::from_raw(5),
                Some(Price::from_raw(6)),
            );
        }
        outs.advance(Nanos(Nanos::DAY));
        assert_eq!((outs.forgotten(), outs.fills().count()), (3, 2));
        let last = outs.horizons()[2];
        assert_eq!((last.contracts, last.earned, last.adverse_bp()), (4, 8, 0));
        assert_eq!(outs.fills().next().and_then(|fill| fill.edge), Some(1));
    }
}
