//! Price levels by position, as MDP 3.0 sends them: one instrument's real and implied rows of both sides.
//!
//! A new level pushes the last one out without a message, a deleted one lets those behind it move up; so the
//! rows are kept here, and what comes out is which prices have a new total. Real and implied rows at one
//! price are added up.

use core::hint::black_box;
use tickwire_market::{Price, Side};
use tickwire_wire_cme::mdp3::UpdateAction;

/// The most rows a side has.
pub(super) const DEPTH_MAX: usize = 10;
/// The most implied rows a side has.
pub(super) const IMPLIED_DEPTH_MAX: usize = 2;

/// What stands at a level.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Row {
    pub(super) price: Price,
    pub(super) qty: u64,
    pub(super) orders: u32,
}

/// What a price holds, real and implied together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Total {
    pub(super) qty: u64,
    pub(super) orders: u32,
    pub(super) implied: bool,
}

#[derive(Clone, Copy)]
struct Stack<const N: usize> {
    rows: [Row; N],
    len: u8,
    depth: u8,
    /// Whether a row may be no worse than the one before it: only then can a price be there twice.
    is_mixed: bool,
}

/// The rows of an instrument.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    real: [Stack<DEPTH_MAX>; 2],
    implied: [Stack<IMPLIED_DEPTH_MAX>; 2],
}

impl Default for Rows {
    fn default() -> Rows {
        Rows {
            real: [Stack::new(DEPTH_MAX as u8); 2],
            implied: [Stack::new(IMPLIED_DEPTH_MAX as u8); 2],
        }
    }
}

impl Rows {
    /// How many rows the venue keeps; more than there is room for are cut, rows that are there stay.
    pub(super) fn set_depth(&mut self, is_implied: bool, depth: u8) {
        for side in Side::BOTH {
            match is_implied {
                true => self.implied[side as usize].set_depth(depth),
                false => self.real[side as usize].set_depth(depth),
            }
        }
    }

    /// How many rows the venue keeps of each side, real and implied.
    pub(super) fn depths(&self) -> (usize, usize) {
        (self.real[0].depth.into(), self.implied[0].depth.into())
    }

    pub(super) fn clear(&mut self) {
        for side in Side::BOTH {
            self.real[side as usize].clear();
            self.implied[side as usize].clear();
        }
    }

    /// Applies an update at `level` (1 is the best) and tells every price whose total is another one now.
    #[inline(always)]
    pub(super) fn apply(
        &mut self,
        side: Side,
        is_implied: bool,
        action: UpdateAction,
        level: u8,
        row: Row,
        mut changed: impl FnMut(Price, Total),
    ) -> Option<()> {
        let (real, implied) = (&mut self.real[side as usize], &mut self.implied[side as usize]);
        let (left, (price, before, after)) =
            if matches!(action, UpdateAction::DeleteThru | UpdateAction::DeleteFrom) {
                return self.remove(side, is_implied, action, level, changed);
            } else if is_implied {
                implied.apply(side, action, level, row)?
            } else {
                real.apply(side, action, level, row)?
            };
        if let Some(left) = left {
            self.tell(side, is_implied, left, &mut changed);
        }
        self.tell(side, is_implied, (price, before, after), &mut changed);
        Some(())
    }

    /// Rows leave from the best on: all, or those up to `level`.
    #[inline(never)]
    fn remove(
        &mut self,
        side: Side,
        is_implied: bool,
        action: UpdateAction,
        level: u8,
        mut changed: impl FnMut(Price, Total),
    ) -> Option<()> {
        let upto = match action {
            UpdateAction::DeleteThru => None,
            _ => Some(usize::from(level)),
        };
        if level == 0 {
            return None;
        }
        let mut gone = [Row::default(); DEPTH_MAX];
        let count = match is_implied {
            true => self.implied[side as usize].remove(upto, &mut gone)?,
            false => self.real[side as usize].remove(upto, &mut gone)?,
        };
        for row in &gone[..count] {
            let left = match is_implied {
                true => self.implied[side as usize].sum(row.price),
                false => self.real[side as usize].sum(row.price),
            };
            self.tell(side, is_implied, (row.price, left.and(*row), left), &mut changed);
        }
        Some(())
    }

    /// Tells a price of which one stack held this and holds that, if its total is another one.
    #[inline(always)]
    fn tell(
        &self,
        side: Side,
        is_implied: bool,
        (price, before, after): Change,
        changed: &mut impl FnMut(Price, Total),
    ) {
        let (before, after) = if is_implied {
            let own = self.real[side as usize].sum(price);
            (total(own, before), total(own, after))
        } else {
            let other = self.implied[side as usize].sum(price);
            (total(before, other), total(after, other))
        };
        if before != after {
            changed(price, after);
        }
    }

    /// Reads all of it.
    pub(super) fn fetch(&self) {
        black_box(*self);
    }

    /// Every price with quantity, once.
    pub(super) fn levels(&self, side: Side) -> impl Iterator<Item = (Price, Total)> {
        let (real, implied) = (
            self.real[side as usize].rows(),
            self.implied[side as usize].rows(),
        );
        let only_implied = implied
            .iter()
            .filter(|row| real.iter().all(|r| r.price != row.price));
        real.iter()
            .chain(only_implied)
            .map(move |row| (row.price, self.total(side, row.price)))
    }

    fn total(&self, side: Side, price: Price) -> Total {
        total(
            self.real[side as usize].sum(price),
            self.implied[side as usize].sum(price),
        )
    }
}

/// Real and implied quantity; only real orders count.
#[inline(always)]
fn total(real: AtPrice, implied: AtPrice) -> Total {
    Total {
        qty: real.qty.saturating_add(implied.qty),
        orders: real.orders,
        implied: implied.qty > 0,
    }
}

/// What one stack holds at a price.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct AtPrice {
    qty: u64,
    orders: u32,
}

impl AtPrice {
    #[inline(always)]
    fn and(self, row: Row) -> AtPrice {
        AtPrice {
            qty: self.qty.saturating_add(row.qty),
            orders: self.orders.saturating_add(row.orders),
        }
    }
}

/// A price, and what a stack held and holds at it.
type Change = (Price, AtPrice, AtPrice);

impl From<Row> for AtPrice {
    #[inline(always)]
    fn from(row: Row) -> AtPrice {
        AtPrice {
            qty: row.qty,
            orders: row.orders,
        }
    }
}

impl<const N: usize> Stack<N> {
    const fn new(depth: u8) -> Stack<N> {
        Stack {
            rows: [Row {
                price: Price::ZERO,
                qty: 0,
                orders: 0,
            }; N],
            len: 0,
            depth,
            is_mixed: false,
        }
    }

    fn set_depth(&mut self, depth: u8) {
        self.depth = depth.min(N as u8).max(self.len);
    }

    fn clear(&mut self) {
        (self.len, self.is_mixed) = (0, false);
    }

    fn rows(&self) -> &[Row] {
        &self.rows[..usize::from(self.len)]
    }

    /// What stands at a price; a venue that sends one price twice is believed in sum.
    #[inline(always)]
    fn sum(&self, price: Price) -> AtPrice {
        let mut sum = AtPrice::default();
        for row in self.rows().iter().filter(|row| row.price == price) {
            sum = sum.and(*row);
        }
        sum
    }

    /// A row that comes, changes or leaves: `None` if there is no such level. What is different at the price
    /// that left without being named, if one did, and at the one named.
    #[inline(always)]
    fn apply(
        &mut self,
        side: Side,
        action: UpdateAction,
        level: u8,
        row: Row,
    ) -> Option<(Option<Change>, Change)> {
        let (at, len) = (usize::from(level).wrapping_sub(1), usize::from(self.len));
        let reach = match action {
            UpdateAction::New => usize::from(self.depth).min(len + 1),
            _ => len,
        };
        if at >= reach {
            return None;
        }
        if self.is_mixed | !self.fits(side, action, at, row.price) {
            return Some(self.apply_mixed(side, action, at, row));
        }
        let old = self.put(action, at, row);
        let nothing = AtPrice::default();
        Some(match (action, old) {
            (UpdateAction::Delete, Some(gone)) => (None, (gone.price, gone.into(), nothing)),
            (_, Some(old)) if old.price == row.price => (None, (row.price, old.into(), row.into())),
            (_, old) => {
                let left = old.map(|old| (old.price, old.into(), nothing));
                (left, (row.price, nothing, row.into()))
            }
        })
    }

    /// Whether the rows are in the order of their prices still when this one has come or changed.
    #[inline(always)]
    fn fits(&self, side: Side, action: UpdateAction, at: usize, price: Price) -> bool {
        let behind = match action {
            UpdateAction::New => at,
            UpdateAction::Delete => return true,
            _ if self.rows[at].price == price => return true,
            _ => at + 1,
        };
        let is_worse = |row: &Row| side.better(price, row.price);
        (at == 0 || side.better(self.rows[at - 1].price, price))
            && self.rows().get(behind).is_none_or(is_worse)
    }

    /// Changes the rows; the one that was there, or that was pushed out.
    #[inline(always)]
    fn put(&mut self, action: UpdateAction, at: usize, row: Row) -> Option<Row> {
        let len = usize::from(self.len);
        match action {
            UpdateAction::New => {
                let kept = len.min(usize::from(self.depth) - 1);
                let pushed_out = (kept < len).then(|| self.rows[kept]);
                self.rows.copy_within(at..kept, at + 1);
                self.set(at, row);
                self.len = kept as u8 + 1;
                pushed_out
            }
            UpdateAction::Delete => {
                let gone = self.rows[at];
                self.rows.copy_within(at + 1..len, at);
                self.len -= 1;
                Some(gone)
            }
            _ => {
                let old = self.rows[at];
                self.set(at, row);
                Some(old)
            }
        }
    }

    /// Field by field, as the row was made: moved as a whole, it would be waited for.
    #[inline(always)]
    fn set(&mut self, at: usize, Row { price, qty, orders }: Row) {
        let place = &mut self.rows[at];
        (place.price, place.qty, place.orders) = (price, qty, orders);
    }

    /// The same where a price may be there twice.
    #[cold]
    fn apply_mixed(
        &mut self,
        side: Side,
        action: UpdateAction,
        at: usize,
        row: Row,
    ) -> (Option<Change>, Change) {
        let before = *self;
        let old = self.put(action, at, row);
        let is_sorted = |pair: &[Row]| side.better(pair[0].price, pair[1].price);
        self.is_mixed = !self.rows().windows(2).all(is_sorted);
        let change = |price| (price, before.sum(price), self.sum(price));
        match (action, old) {
            (UpdateAction::Delete, Some(gone)) => (None, change(gone.price)),
            (_, old) => {
                let left = old.filter(|old| old.price != row.price);
                (left.map(|old| change(old.price)), change(row.price))
            }
        }
    }

    /// The rows up to a level leave, or all of them, those behind move up: how many they were. `None` if
    /// there is no such level.
    fn remove(&mut self, upto: Option<usize>, gone: &mut [Row; DEPTH_MAX]) -> Option<usize> {
        let len = usize::from(self.len);
        let count = upto.unwrap_or(len);
        if count > len {
            return None;
        }
        gone[..count].copy_from_slice(&self.rows[..count]);
        self.rows.copy_within(count..len, 0);
        self.len -= count as u8;
        self.is_mixed &= self.len > 0;
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeMap;
    use std::{vec, vec::Vec};
    use tickwire_testdata::Rng;

    /// Rows as the venue counts them, moved one by one.
    struct Naive {
        depth: usize,
        rows: Vec<Row>,
    }

    impl Naive {
        fn apply(&mut self, action: UpdateAction, level: u8, row: Row) -> Option<()> {
            let at = usize::from(level).checked_sub(1)?;
            match action {
                UpdateAction::New if at < self.depth && at <= self.rows.len() => {
                    self.rows.insert(at, row);
                    self.rows.truncate(self.depth);
                }
                UpdateAction::Change | UpdateAction::Overlay => *self.rows.get_mut(at)? = row,
                UpdateAction::Delete if at < self.rows.len() => drop(self.rows.remove(at)),
                UpdateAction::DeleteThru => self.rows.clear(),
                UpdateAction::DeleteFrom if at < self.rows.len() => drop(self.rows.drain(..=at)),
                _ => return None,
            }
            Some(())
        }

        fn sum(&self, price: Price) -> AtPrice {
            let mut sum = AtPrice::default();
            for row in self.rows.iter().filter(|row| row.price == price) {
                sum.qty += row.qty;
                sum.orders += row.orders;
            }
            sum
        }
    }

    /// The prices of both kinds of rows, with quantity and without.
    fn totals([real, implied]: &[Naive; 2]) -> BTreeMap<Price, Total> {
        let rows = real.rows.iter().chain(&implied.rows);
        rows.map(|row| (row.price, total(real.sum(row.price), implied.sum(row.price))))
            .collect()
    }

    /// Random entries: what is told, written into a map, makes the totals of rows that are moved one by one,
    /// and the rows are theirs. `sorted`: the rows stay in the order of their prices, as a venue sends them.
    fn play(seed: u64, sorted: bool) -> usize {
        let mut rng = Rng::new(seed);
        let depths = [1 + rng.below(10) as u8, rng.below(3) as u8];
        let mut rows = Rows::default();
        rows.set_depth(false, depths[0]);
        rows.set_depth(true, depths[1]);
        let mut naive = depths.map(|depth| Naive {
            depth: depth.into(),
            rows: vec![],
        });
        let side = Side::BOTH[rng.below(2) as usize];
        let (mut told, mut refused) = (BTreeMap::new(), 0);
        for _ in 0..2_000 {
            let is_implied = rng.chance(1, 5);
            let its = &naive[usize::from(is_implied)];
            let action = match rng.below(40) {
                0 => UpdateAction::DeleteThru,
                1 => UpdateAction::DeleteFrom,
                2..15 => UpdateAction::New,
                15..27 => UpdateAction::Delete,
                27..30 => UpdateAction::Overlay,
                _ => UpdateAction::Change,
            };
            let mut level = rng.below(12) as u8;
            let key = |raw: i64| match side {
                Side::Bid => -raw,
                Side::Ask => raw,
            };
            let mut raw = rng.below(14) as i64;
            if sorted && action == UpdateAction::New {
                let better = its.rows.iter().filter(|row| key(row.price.raw()) < key(raw));
                level = better.count() as u8 + 1;
                if its.rows.iter().any(|row| row.price.raw() == raw) {
                    continue;
                }
            } else if sorted && matches!(action, UpdateAction::Change | UpdateAction::Overlay) {
                let named = usize::from(level).checked_sub(1).and_then(|at| its.rows.get(at));
                raw = named.map_or(raw, |row| row.price.raw());
            }
            let row = Row {
                price: Price::from_raw(raw),
                qty: 1 + rng.below(3),
                orders: rng.below(3) as u32,
            };
            let done = rows.apply(side, is_implied, action, level, row, |price, total| {
                told.insert(price, total);
            });
            assert_eq!(done, naive[usize::from(is_implied)].apply(action, level, row));
            refused += usize::from(done.is_none());
            let have = told.iter().filter(|(_, total)| total.qty > 0);
            let have: BTreeMap<Price, Total> = have.map(|(price, total)| (*price, *total)).collect();
            assert_eq!(have, totals(&naive), "seed {seed}");
            let levels: BTreeMap<Price, Total> = rows.levels(side).collect();
            assert_eq!(levels, have, "seed {seed}");
            let (real, implied) = (&rows.real[side as usize], &rows.implied[side as usize]);
            assert!(real.rows() == naive[0].rows, "seed {seed}");
            assert!(implied.rows() == naive[1].rows, "seed {seed}");
            assert!(!sorted || !real.is_mixed && !implied.is_mixed, "seed {seed}");
        }
        refused
    }

    #[test]
    fn rows_are_those_that_are_moved_one_by_one() {
        let refused: usize = (0..100).map(|seed| play(seed, true)).sum();
        assert!(refused > 100, "levels that are not there are tried, too");
    }

    #[test]
    fn prices_that_are_there_twice_are_told_in_sum() {
        assert_ne!((0..100).map(|seed| play(seed, false)).sum::<usize>(), 0);
    }
}
