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
            self.real[side as usize].len = 0;
            self.implied[side as usize].len = 0;
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
        if is_implied {
            let real = &*real;
            implied.apply(action, level, row, |price, before, after| {
                let own = real.sum(price);
                tell(price, total(own, before), total(own, after), &mut changed);
            })
        } else {
            let implied = &*implied;
            real.apply(action, level, row, |price, before, after| {
                let other = implied.sum(price);
                tell(price, total(before, other), total(after, other), &mut changed);
            })
        }
    }

    /// Reads all of it, a row in each cache line.
    pub(super) fn fetch(&self) {
        for side in Side::BOTH {
            for rows in [
                &self.real[side as usize].rows[..],
                &self.implied[side as usize].rows[..],
            ] {
                rows.iter().step_by(2).for_each(|row| {
                    black_box(row.qty);
                });
            }
        }
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

#[inline(always)]
fn tell(price: Price, before: Total, after: Total, changed: &mut impl FnMut(Price, Total)) {
    if before != after {
        changed(price, after);
    }
}

/// What one stack holds at a price.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct AtPrice {
    qty: u64,
    orders: u32,
}

impl From<Row> for AtPrice {
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
        }
    }

    fn set_depth(&mut self, depth: u8) {
        self.depth = depth.min(N as u8).max(self.len);
    }

    fn rows(&self) -> &[Row] {
        &self.rows[..usize::from(self.len)]
    }

    /// What stands at a price; a venue that sends one price twice is believed in sum.
    #[inline(always)]
    fn sum(&self, price: Price) -> AtPrice {
        let mut sum = AtPrice::default();
        for row in self.rows().iter().filter(|row| row.price == price) {
            sum.qty = sum.qty.saturating_add(row.qty);
            sum.orders = sum.orders.saturating_add(row.orders);
        }
        sum
    }

    /// The update, `None` if there is no such level. Tells of each price touched what this stack held and
    /// holds.
    #[inline(always)]
    fn apply(
        &mut self,
        action: UpdateAction,
        level: u8,
        row: Row,
        mut touched: impl FnMut(Price, AtPrice, AtPrice),
    ) -> Option<()> {
        let (at, len) = (usize::from(level).wrapping_sub(1), usize::from(self.len));
        let reach = match action {
            UpdateAction::New => usize::from(self.depth).min(len + 1),
            UpdateAction::DeleteThru => usize::from(u8::MAX),
            _ => len,
        };
        if at >= reach {
            return None;
        }
        // The row that has left without being named, then the one named.
        let (left, (price, before, after)) = match action {
            UpdateAction::New => {
                let kept = len.min(usize::from(self.depth) - 1);
                let pushed_out = (kept < len).then(|| self.rows[kept]);
                self.rows.copy_within(at..kept, at + 1);
                self.rows[at] = row;
                self.len = kept as u8 + 1;
                (pushed_out, (row.price, AtPrice::default(), row.into()))
            }
            UpdateAction::Change | UpdateAction::Overlay => {
                let old = core::mem::replace(&mut self.rows[at], row);
                if old.price == row.price {
                    (None, (row.price, old.into(), row.into()))
                } else {
                    (Some(old), (row.price, AtPrice::default(), row.into()))
                }
            }
            UpdateAction::Delete => {
                let gone = self.rows[at];
                self.rows.copy_within(at + 1..len, at);
                self.len -= 1;
                (None, (gone.price, gone.into(), self.sum(gone.price)))
            }
            UpdateAction::DeleteThru => {
                self.remove(0, len, &mut touched);
                return Some(());
            }
            UpdateAction::DeleteFrom => {
                self.remove(0, at + 1, &mut touched);
                return Some(());
            }
        };
        if let Some(out) = left {
            touched(out.price, out.into(), self.sum(out.price));
        }
        touched(price, before, after);
        Some(())
    }

    /// Rows `from..to` leave, those behind move up.
    #[inline(never)]
    fn remove(&mut self, from: usize, to: usize, touched: &mut impl FnMut(Price, AtPrice, AtPrice)) {
        let gone = self.rows;
        self.rows.copy_within(to..usize::from(self.len), from);
        self.len -= (to - from) as u8;
        for row in &gone[from..to] {
            touched(row.price, (*row).into(), self.sum(row.price));
        }
    }
}
