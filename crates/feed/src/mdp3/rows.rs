//! Price levels by position, as MDP 3.0 sends them: one instrument's real and implied rows of both sides.
//!
//! A new level pushes the last one out without a message, a deleted one lets those behind it move up; so the rows are kept
//! here, and what comes out is which prices have a new total. Real and implied rows at one price are added up.

use tickwire_market::{Price, Side};
use tickwire_wire::Malformed;
use tickwire_wire::mdp3::UpdateAction;

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

/// Prices that an update may change, each once.
#[derive(Clone, Copy)]
pub(super) struct Touched {
    prices: [Price; DEPTH_MAX + 1],
    before: [Total; DEPTH_MAX + 1],
    len: usize,
}

impl Touched {
    const NONE: Touched = Touched {
        prices: [Price::ZERO; DEPTH_MAX + 1],
        before: [NOTHING; DEPTH_MAX + 1],
        len: 0,
    };

    fn add(&mut self, price: Price) {
        if !self.prices[..self.len].contains(&price) && self.len < self.prices.len() {
            self.prices[self.len] = price;
            self.len += 1;
        }
    }
}

const NOTHING: Total = Total {
    qty: 0,
    orders: 0,
    implied: false,
};

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

    pub(super) fn clear(&mut self) {
        for side in Side::BOTH {
            self.real[side as usize].len = 0;
            self.implied[side as usize].len = 0;
        }
    }

    /// Applies an update at `level` (1 is the best). What it may have changed is then walked by [`Rows::changes`].
    #[inline]
    pub(super) fn apply(
        &mut self,
        side: Side,
        is_implied: bool,
        action: UpdateAction,
        level: u8,
        row: Row,
    ) -> Result<Touched, Malformed> {
        let mut touched = Touched::NONE;
        match is_implied {
            true => self.implied[side as usize].touch(action, level, row, &mut touched)?,
            false => self.real[side as usize].touch(action, level, row, &mut touched)?,
        }
        for i in 0..touched.len {
            touched.before[i] = self.total(side, touched.prices[i]);
        }
        match is_implied {
            true => self.implied[side as usize].apply(action, level, row),
            false => self.real[side as usize].apply(action, level, row),
        }
        Ok(touched)
    }

    /// The prices whose total is another one now.
    #[inline]
    pub(super) fn changes(&self, side: Side, touched: Touched) -> impl Iterator<Item = (Price, Total)> {
        (0..touched.len).filter_map(move |i| {
            let total = self.total(side, touched.prices[i]);
            (total != touched.before[i]).then_some((touched.prices[i], total))
        })
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
        let mut total = NOTHING;
        for row in self.real[side as usize]
            .rows()
            .iter()
            .filter(|row| row.price == price)
        {
            total.qty = total.qty.saturating_add(row.qty);
            total.orders = total.orders.saturating_add(row.orders);
        }
        for row in self.implied[side as usize]
            .rows()
            .iter()
            .filter(|row| row.price == price)
        {
            total.qty = total.qty.saturating_add(row.qty);
            total.implied |= row.qty > 0;
        }
        total
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

    /// Which prices the update may change; an error if there is no such level.
    fn touch(
        &self,
        action: UpdateAction,
        level: u8,
        row: Row,
        touched: &mut Touched,
    ) -> Result<(), Malformed> {
        let at = usize::from(level).wrapping_sub(1);
        let reach = match action {
            UpdateAction::New => self.depth.min(self.len.saturating_add(1)),
            UpdateAction::DeleteThru => u8::MAX,
            _ => self.len,
        };
        if at >= usize::from(reach) {
            return Err(Malformed::BadValue {
                offset: 24,
                value: level,
            });
        }
        let rows = self.rows();
        match action {
            UpdateAction::New if self.len == self.depth => touched.add(rows[rows.len() - 1].price),
            UpdateAction::New => {}
            UpdateAction::Change | UpdateAction::Overlay | UpdateAction::Delete => {
                touched.add(rows[at].price)
            }
            UpdateAction::DeleteThru => rows.iter().for_each(|row| touched.add(row.price)),
            UpdateAction::DeleteFrom => rows[..=at].iter().for_each(|row| touched.add(row.price)),
        }
        if matches!(
            action,
            UpdateAction::New | UpdateAction::Change | UpdateAction::Overlay
        ) {
            touched.add(row.price);
        }
        Ok(())
    }

    /// The update itself; [`Stack::touch`] has checked the level.
    fn apply(&mut self, action: UpdateAction, level: u8, row: Row) {
        let (at, len) = (usize::from(level) - 1, usize::from(self.len));
        match action {
            UpdateAction::New => {
                let kept = len.min(usize::from(self.depth) - 1);
                self.rows.copy_within(at..kept, at + 1);
                self.rows[at] = row;
                self.len = kept as u8 + 1;
            }
            UpdateAction::Change | UpdateAction::Overlay => self.rows[at] = row,
            UpdateAction::Delete => {
                self.rows.copy_within(at + 1..len, at);
                self.len -= 1;
            }
            UpdateAction::DeleteThru => self.len = 0,
            UpdateAction::DeleteFrom => {
                self.rows.copy_within(at + 1..len, 0);
                self.len -= level;
            }
        }
    }
}
