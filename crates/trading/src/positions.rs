//! What we hold and what we could come to hold, per instrument.

use alloc::vec;
use alloc::vec::Vec;
use tickwire_market::{InstrumentId, Price, Qty, Side, Volume};

/// The position in one instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// Held: bought minus sold, in the venue's units.
    pub qty: i64,
    /// Paid minus received, in 1e-9 currency units: exact, and negative after selling above the purchase.
    pub cost: i128,
    /// Open in the market, indexed by [`Side`]: what may still be bought and sold.
    pub working: [Volume; 2],
    /// Traded so far, indexed by [`Side`].
    pub traded: [Volume; 2],
}

impl Position {
    /// So many were bought or sold at a price.
    #[inline]
    pub fn trade(&mut self, side: Side, qty: Qty, price: Price) {
        self.traded[side as usize] += qty;
        self.hold(side, qty, price);
    }

    /// A trade does not count after all.
    pub fn untrade(&mut self, side: Side, qty: Qty, price: Price) {
        let traded = &mut self.traded[side as usize];
        traded.0 = traded.0.saturating_sub(u64::from(qty.0));
        self.hold(!side, qty, price);
    }

    /// So many more are held, or fewer after selling.
    #[inline]
    fn hold(&mut self, side: Side, qty: Qty, price: Price) {
        let (signed, notional) = (i64::from(qty.0), price.notional(u64::from(qty.0)));
        match side {
            Side::Bid => (self.qty, self.cost) = (self.qty + signed, self.cost + notional),
            Side::Ask => (self.qty, self.cost) = (self.qty - signed, self.cost - notional),
        }
    }

    /// The largest position either way if every open order of `side` and `more` of it traded.
    #[inline]
    pub fn worst(&self, side: Side, more: Qty) -> u64 {
        let all = self.working[side as usize].0.saturating_add(more.0.into());
        let held = self.qty.unsigned_abs();
        let is_further = match side {
            Side::Bid => self.qty >= 0,
            Side::Ask => self.qty <= 0,
        };
        match is_further {
            true => held.saturating_add(all),
            false => held.abs_diff(all),
        }
    }
}

/// Every position. Instruments beyond the configured number are ignored by the mutators and have the empty
/// position: the checks of [`crate::Risk`] stop orders for them first.
#[derive(Clone, Debug)]
pub struct Positions(Vec<Position>);

impl Positions {
    /// Positions for instruments `0..max_instruments`.
    pub fn new(max_instruments: u32) -> Positions {
        Positions(vec![Position::default(); max_instruments as usize])
    }

    /// The same without a copy; `None` beyond the configured number.
    #[inline(always)]
    pub fn at(&self, instrument: InstrumentId) -> Option<&Position> {
        self.0.get(instrument.index())
    }

    /// The position in an instrument.
    #[inline]
    pub fn get(&self, instrument: InstrumentId) -> Position {
        self.0.get(instrument.index()).copied().unwrap_or_default()
    }

    /// Whether there is a place for it.
    #[inline]
    pub fn covers(&self, instrument: InstrumentId) -> bool {
        instrument.index() < self.0.len()
    }

    /// An order was sent.
    #[inline]
    pub fn on_sent(&mut self, instrument: InstrumentId, side: Side, qty: Qty) {
        if let Some(position) = self.0.get_mut(instrument.index()) {
            position.working[side as usize] += qty;
        }
    }

    /// Makes a position what it was before.
    pub(crate) fn restore(&mut self, instrument: InstrumentId, before: Position) {
        if let Some(position) = self.0.get_mut(instrument.index()) {
            *position = before;
        }
    }

    /// A quote was sent, so much of each [`Side`].
    #[inline]
    pub fn on_quoted(&mut self, instrument: InstrumentId, qty: [Qty; 2]) {
        if let Some(position) = self.0.get_mut(instrument.index()) {
            for (working, qty) in position.working.iter_mut().zip(qty) {
                *working += qty;
            }
        }
    }

    /// So much of a quote will not trade any more, by [`Side`].
    #[inline]
    pub fn on_unquoted(&mut self, instrument: InstrumentId, gone: [Qty; 2]) {
        if let Some(position) = self.0.get_mut(instrument.index()) {
            for (working, gone) in position.working.iter_mut().zip(gone) {
                debug_assert!(working.0 >= u64::from(gone.0), "{gone} of {working} quoted");
                working.0 = working.0.saturating_sub(gone.0.into());
            }
        }
    }

    /// Some of an open order traded.
    pub fn on_fill(&mut self, instrument: InstrumentId, side: Side, qty: Qty, price: Price) {
        let Some(position) = self.0.get_mut(instrument.index()) else {
            return;
        };
        position.trade(side, qty, price);
        self.on_released(instrument, side, qty);
    }

    /// What no open order is known of has traded.
    pub fn on_late_fill(&mut self, instrument: InstrumentId, side: Side, qty: Qty, price: Price) {
        if let Some(position) = self.0.get_mut(instrument.index()) {
            position.trade(side, qty, price);
        }
    }

    /// A trade was taken back by the venue.
    pub fn on_broken(&mut self, instrument: InstrumentId, side: Side, qty: Qty, price: Price) {
        if let Some(position) = self.0.get_mut(instrument.index()) {
            position.untrade(side, qty, price);
        }
    }

    /// Some of an open order will not trade any more.
    pub fn on_released(&mut self, instrument: InstrumentId, side: Side, qty: Qty) {
        if let Some(position) = self.0.get_mut(instrument.index()) {
            let working = &mut position.working[side as usize];
            debug_assert!(working.0 >= u64::from(qty.0), "released {qty} of {working} sent");
            working.0 = working.0.saturating_sub(u64::from(qty.0));
        }
    }

    /// Every instrument with a position, an open order or a trade.
    pub fn iter(&self) -> impl Iterator<Item = (InstrumentId, &Position)> + '_ {
        let numbered = (0u32..).map(InstrumentId).zip(&self.0);
        numbered.filter(|(_, position)| **position != Position::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: InstrumentId = InstrumentId(1);

    #[test]
    fn buying_and_selling_leaves_the_gain_as_negative_cost() {
        let mut positions = Positions::new(2);
        for (side, cents) in [(Side::Bid, 1000), (Side::Ask, 1025)] {
            positions.on_sent(ID, side, Qty(10));
            positions.on_fill(ID, side, Qty(10), Price::from_4dp(cents * 100));
        }
        let position = positions.get(ID);
        assert_eq!((position.qty, position.cost), (0, -2_500_000_000));
        assert_eq!(
            (position.working, position.traded),
            ([Volume(0); 2], [Volume(10); 2])
        );
    }

    #[test]
    fn a_trade_taken_back_leaves_nothing() {
        let mut positions = Positions::new(2);
        for side in Side::BOTH {
            positions.on_sent(ID, side, Qty(10));
            positions.on_fill(ID, side, Qty(10), Price::from_4dp(10_0000));
            positions.on_broken(ID, side, Qty(10), Price::from_4dp(10_0000));
            assert_eq!(positions.get(ID), Position::default());
        }
    }

    #[test]
    fn the_worst_position_counts_everything_open() {
        let mut positions = Positions::new(2);
        positions.on_sent(ID, Side::Bid, Qty(100));
        positions.on_sent(ID, Side::Ask, Qty(30));
        positions.on_fill(ID, Side::Bid, Qty(40), Price::ZERO);
        let position = positions.get(ID);
        assert_eq!(position.worst(Side::Bid, Qty(5)), 105);
        assert_eq!(position.worst(Side::Ask, Qty(90)), 80, "40 held, 30 and 90 sold");
    }

    #[test]
    fn instruments_out_of_range_are_ignored() {
        let mut positions = Positions::new(2);
        positions.on_sent(InstrumentId(2), Side::Bid, Qty(1));
        positions.on_fill(InstrumentId(2), Side::Bid, Qty(1), Price::ZERO);
        assert_eq!(positions.get(InstrumentId(2)), Position::default());
        assert!(!positions.covers(InstrumentId(2)) && positions.covers(ID));
        assert_eq!(positions.iter().count(), 0);
    }
}
