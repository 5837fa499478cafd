//! An order as somebody would write it down: what was asked for, and what is left of it.

use tickwire_market::{InstrumentId, OrderId, OrderType, Price, Qty, Side};

use crate::order::{Firm, NewOrder, Order, OrderPlace, SelfTrade, Terms};

/// Where an order lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Pile {
    /// In the book.
    Book,
    /// With the stops that wait.
    Stops,
    /// With what waits for the opening, or for the auction after a halt.
    Opening,
    /// With what waits for the closing.
    Closing,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sheet {
    /// Ascends with time: "whatever loses its priority gets a new order number".
    pub(super) number: u64,
    /// The request, as it came or was last replaced.
    pub(super) asked: NewOrder,
    pub(super) is_quote: bool,
    pub(super) pile: Pile,
    /// What is left: shown (of what is no iceberg, all), and behind that.
    pub(super) shown: u32,
    pub(super) behind: u32,
}

impl Sheet {
    /// A request that comes in, with all it asks for.
    pub(super) fn of(asked: NewOrder) -> Sheet {
        Sheet {
            number: 0,
            asked,
            is_quote: false,
            pile: Pile::Book,
            shown: asked.qty.0,
            behind: 0,
        }
    }

    pub(super) fn instrument(&self) -> InstrumentId {
        self.asked.instrument
    }

    pub(super) fn side(&self) -> Side {
        self.asked.side
    }

    pub(super) fn has_limit(&self) -> bool {
        self.asked.order_type == OrderType::Limit
    }

    /// Its limit; zero without one.
    pub(super) fn price(&self) -> Price {
        match self.has_limit() {
            true => self.asked.price,
            false => Price::ZERO,
        }
    }

    pub(super) fn trigger(&self) -> Price {
        self.asked.stop.unwrap_or(Price::ZERO)
    }

    /// All that is left.
    pub(super) fn whole(&self) -> u64 {
        u64::from(self.shown) + u64::from(self.behind)
    }

    /// How bad its price is for the other side: the best has the least.
    pub(super) fn dearness(&self) -> i64 {
        match self.side() {
            Side::Bid => -self.price().raw(),
            Side::Ask => self.price().raw(),
        }
    }

    /// "Price, displayed before hidden, time."
    pub(super) fn priority(&self) -> (i64, bool, u64) {
        (self.dearness(), self.asked.hidden, self.number)
    }

    /// "Quotes cancel the oldest when they meet their own firm."
    pub(super) fn self_trade(&self) -> SelfTrade {
        match self.is_quote {
            true => SelfTrade::CancelOldest,
            false => self.asked.self_trade,
        }
    }

    /// Self-trade prevention "is the incoming order's choice and is about orders of the same `Firm`".
    pub(super) fn avoids(&self, standing: &Sheet) -> bool {
        let is_own = self.asked.firm == standing.asked.firm && self.asked.firm != Firm::NONE;
        is_own && self.self_trade() != SelfTrade::Allow
    }

    /// "At the maker's price, or better for the taker where the maker offered an improvement."
    pub(super) fn trades_at(&self) -> Price {
        let for_taker = match self.side() {
            Side::Bid => 1,
            Side::Ask => -1,
        };
        Price::from_raw(self.price().raw() + for_taker * self.asked.improvement.raw())
    }

    /// "A slice is shown; when it is gone the next one joins": how it lies in the book.
    pub(super) fn laid_out(mut self) -> Sheet {
        let whole = self.whole();
        let slice = match self.asked.display.0 {
            0 => whole,
            slice => whole.min(slice.into()),
        };
        (self.shown, self.behind) = (slice as u32, (whole - slice) as u32);
        self
    }

    /// In the words of who listens.
    pub(super) fn told(&self) -> Order {
        let asked = &self.asked;
        let terms = match self.is_quote {
            true => Terms::of_quote(),
            false => asked.entered_as(OrderId(0)).terms,
        };
        let place = match self.pile {
            Pile::Book => OrderPlace::Book,
            Pile::Stops => OrderPlace::Stop,
            Pile::Opening => OrderPlace::Opening,
            Pile::Closing => OrderPlace::Closing,
        };
        Order {
            id: OrderId(self.number),
            price: self.price(),
            improvement: asked.improvement,
            qty: Qty(self.shown),
            instrument: asked.instrument,
            owner: asked.owner,
            mpid: asked.mpid,
            firm: asked.firm,
            display: asked.display,
            reserve: Qty(self.behind),
            side: asked.side,
            hidden: asked.hidden,
            time_in_force: asked.time_in_force,
            terms: terms.at(place),
        }
    }
}
