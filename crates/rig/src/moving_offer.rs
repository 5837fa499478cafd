//! A venue in memory whose best offer of one instrument moves with every step: for whatever trades on that.

use tickwire_exchange::{DayPhase, Exchange, Listing, NewOrder};
use tickwire_market::{Nanos, OrderId, Port, Price, Qty, Side};

/// From one look at the venue to the next while it opens.
const OPENING_STEP: u64 = 200 * Nanos::MICRO;

/// The venue, open and without any trading but these offers in its first instrument.
pub struct MovingOffer {
    exchange: Exchange,
    listing: Listing,
    now: Nanos,
    /// The offer that is better than the others, while it is there.
    entered: Option<OrderId>,
}

impl MovingOffer {
    /// Opens the venue, and makes room of two ticks and more between the best bid and the best offer. `take`
    /// is given every datagram: when, of which port, its bytes.
    pub fn open(
        mut exchange: Exchange,
        begin: Nanos,
        mut take: impl FnMut(Nanos, Port, &[u8]),
    ) -> MovingOffer {
        let listing = exchange.listings()[0];
        let mut now = begin;
        exchange.open(now);
        while exchange.phase() != DayPhase::Open {
            now = now.after(OPENING_STEP);
            exchange.on_time(now);
            while let Some(datagram) = exchange.poll_datagram(0, now) {
                take(now, datagram.port, datagram.bytes);
            }
        }
        let mut moving = MovingOffer {
            exchange,
            listing,
            now,
            entered: None,
        };
        while let (Some(bid), Some(ask)) = (moving.best(Side::Bid), moving.best(Side::Ask))
            && ask.raw() - bid.raw() < 3 * listing.tick().raw()
        {
            let engine = moving.exchange.engine();
            let first = engine
                .queue(listing.id, Side::Ask, 0)
                .next()
                .map(|order| order.id);
            let Some(first) = first else { break };
            let _ = moving
                .exchange
                .trade(now, |engine, tape| engine.cancel(first, tape));
        }
        while let Some(datagram) = moving.exchange.poll_datagram(0, now) {
            take(now, datagram.port, datagram.bytes);
        }
        moving
    }

    /// What time it is at the venue.
    pub fn now(&self) -> Nanos {
        self.now
    }

    fn best(&self, side: Side) -> Option<Price> {
        let best = self.exchange.engine().best(self.listing.id, side);
        best.map(|level| level.price)
    }

    /// An offer enters that is better by a tick than the best; whether the venue took it.
    pub fn enter(&mut self) -> bool {
        let Some(ask) = self.best(Side::Ask) else {
            return false;
        };
        let better = Price::from_raw(ask.raw() - self.listing.tick().raw());
        let new = NewOrder::limit(self.listing.id, Side::Ask, better, Qty(100));
        self.now = self.now.after(Nanos::MICRO);
        let entered = self
            .exchange
            .trade(self.now, |engine, tape| engine.submit(&new, tape));
        self.entered = entered.ok();
        self.entered.is_some()
    }

    /// It leaves again.
    pub fn leave(&mut self) {
        if let Some(id) = self.entered.take() {
            let _ = self
                .exchange
                .trade(self.now, |engine, tape| engine.cancel(id, tape));
        }
    }

    /// The datagrams of what has happened since the last call, of the live lines: when, and their bytes.
    pub fn live(&mut self, mut take: impl FnMut(Nanos, &[u8])) {
        while let Some(datagram) = self.exchange.poll_datagram(0, self.now) {
            if datagram.port == Port::Live {
                take(self.now, datagram.bytes);
            }
        }
    }
}
