//! Requests at the venue: what takes, what rests, what is changed or cancelled.

use tickwire_book::{Books, Depth};
use tickwire_market::{
    BookState, ClientOrderId, InstrumentId, Nanos, OrderId, OrderIntent, OrderType, Price, Side, TimeInForce,
};
use tickwire_trading::ReportKind;

use super::own::{Own, Waiting};
use super::{FillModel, Listener, SimVenue, is_auction, report, tell_fill, within};
use crate::world::World;

impl SimVenue {
    /// A request reaches the matching engine. `books` and number are those of its instrument.
    pub(crate) fn arrive(
        &mut self,
        at: Nanos,
        request: &OrderIntent,
        books: (&Books, InstrumentId),
        can_trade: bool,
        tell: &mut impl Listener,
    ) {
        match *request {
            OrderIntent::New {
                id,
                instrument,
                side,
                order_type,
                price,
                stop,
                qty,
                time_in_force,
                ..
            } => {
                self.requests[0] += 1;
                let is_known = self.own.get(instrument.index()).is_some();
                let is_auction = matches!(time_in_force, TimeInForce::AtTheOpening | TimeInForce::AtTheClose);
                if !can_trade || is_auction || !is_known || qty.is_zero() {
                    self.rejects += 1;
                    return tell.report(at, report(id, None, ReportKind::Rejected));
                }
                let book = books.0.book(books.1);
                if book.is_none_or(|book| book.state() != BookState::Live) {
                    self.doubts.on_stale_book += 1;
                }
                self.next_order += 1;
                let number = Some(OrderId(self.next_order));
                tell.report(at, report(id, number, ReportKind::Accepted));
                let own = Own::new(id, side, price, qty.0, time_in_force);
                let limit = (order_type == OrderType::Limit).then_some(price);
                match stop {
                    None => self.enter(at, own, limit, instrument, books, tell),
                    Some(trigger) => {
                        let waiting = Waiting {
                            own,
                            trigger,
                            limit,
                            is_triggered: false,
                        };
                        self.wait(at, instrument, waiting);
                    }
                }
                self.settle(instrument);
            }
            OrderIntent::Replace {
                id,
                target,
                instrument,
                qty,
                ..
            } => {
                self.requests[1] += 1;
                if !can_trade || qty.is_zero() || !self.stands(instrument, target) {
                    self.rejects += 1;
                    return tell.report(at, report(target, None, ReportKind::ReplaceRejected { by: id }));
                }
                self.replace(at, request, instrument, books, tell);
            }
            OrderIntent::Cancel {
                target, instrument, ..
            } => {
                self.requests[2] += 1;
                match self.stands(instrument, target) {
                    true => self.cancel(at, target, instrument, tell),
                    false => tell.report(at, report(target, None, ReportKind::CancelRejected)),
                }
            }
        }
    }

    /// Whether an order of ours stands in an instrument's book, or waits there.
    fn stands(&self, instrument: InstrumentId, id: ClientOrderId) -> bool {
        let of = self.own.get(instrument.index()).and_then(Option::as_ref);
        of.is_some_and(|of| of.place_of(id).is_some() || of.stops.iter().any(|stop| stop.own.id == id))
    }

    fn replace(
        &mut self,
        at: Nanos,
        request: &OrderIntent,
        instrument: InstrumentId,
        books: (&Books, InstrumentId),
        tell: &mut impl Listener,
    ) {
        let OrderIntent::Replace {
            id,
            target,
            price,
            stop,
            qty,
            time_in_force,
            ..
        } = *request
        else {
            return;
        };
        let replaced = ReportKind::Replaced {
            by: id,
            venue_id: None,
        };
        let Some(of) = self.of(instrument) else { return };
        let Some(place) = of.place_of(target) else {
            if let Some(mut waiting) = self.take_waiting(instrument, target) {
                tell.report(at, report(target, None, replaced));
                (waiting.own.id, waiting.own.price, waiting.own.qty) = (id, price, qty.0);
                waiting.trigger = stop.unwrap_or(waiting.trigger);
                waiting.limit = waiting.limit.map(|_| price);
                self.wait(at, instrument, waiting);
            }
            return;
        };
        tell.report(at, report(target, None, replaced));
        let own = &mut of.orders[place];
        let keeps_place = price == own.price && qty.0 <= own.qty && time_in_force.rests();
        if keeps_place && qty.0 > own.filled {
            (own.id, own.qty, own.time_in_force) = (id, qty.0, time_in_force);
            let left = own.leaves().into();
            if let Some(world) = &mut of.world {
                world.rename(target, id, left);
            }
            return;
        }
        let mut own = of.remove(place);
        if let Some(world) = &mut of.world {
            world.leave(target);
        }
        self.open -= 1;
        (own.id, own.price, own.time_in_force) = (id, price, time_in_force);
        own.qty = qty.0.max(own.filled);
        match own.leaves() {
            0 => tell.report(at, report(id, None, ReportKind::Cancelled)),
            _ => self.enter(at, own, Some(price), instrument, books, tell),
        }
        self.settle(instrument);
    }

    fn cancel(
        &mut self,
        at: Nanos,
        target: ClientOrderId,
        instrument: InstrumentId,
        tell: &mut impl Listener,
    ) {
        if self.take_waiting(instrument, target).is_none()
            && let Some(own) = self.take_out(instrument, target)
        {
            self.ended(&own);
        }
        tell.report(at, report(target, None, ReportKind::Cancelled));
        self.settle(instrument);
    }

    /// Matches an order against the other side, and lets what is left rest where it may.
    pub(super) fn enter(
        &mut self,
        at: Nanos,
        mut own: Own,
        limit: Option<Price>,
        instrument: InstrumentId,
        (books, local): (&Books, InstrumentId),
        tell: &mut impl Listener,
    ) {
        let wanted = own.leaves();
        if own.time_in_force == TimeInForce::FillOrKill
            && self.can_take(&own, limit, instrument, (books, local)) < wanted.into()
        {
            return tell.report(at, report(own.id, None, ReportKind::Cancelled));
        }
        let is_auction = is_auction(books, local);
        if self.matches(books) {
            self.hit_world(at, &mut own, limit, instrument, (books, local), tell);
        } else if let Some(book) = books.book(local).filter(|_| !is_auction) {
            for level in book.levels(!own.side) {
                if own.leaves() == 0 || !within(own.side, level.price, limit) {
                    break;
                }
                let wanted = (own.side, own.leaves());
                let taken = self.take_level(wanted, instrument, books, local, (level.price, level.qty.0));
                if taken == 0 {
                    continue;
                }
                own.filled += taken;
                match self.model {
                    FillModel::Touch => self.doubts.touched += 1,
                    _ => self.doubts.took_recorded += 1,
                }
                tell_fill(at, &own, instrument, (taken, level.price), false, tell);
            }
        }
        if own.leaves() == 0 {
            return;
        }
        if !own.time_in_force.rests() || limit.is_none() {
            return tell.report(at, report(own.id, None, ReportKind::Cancelled));
        }
        let of = self.of_mut(instrument);
        own.ahead = match &mut of.world {
            Some(world) => world.rest(own.id, own.side, own.price, own.leaves().into()),
            None => books.book(local).map_or(0, |book| {
                let at_price = book.levels(own.side).find(|level| level.price == own.price);
                at_price.map_or(0, |level| level.qty.0)
            }),
        };
        own.ahead_at_entry = own.ahead;
        self.arrivals += 1;
        own.arrival = self.arrivals;
        self.of_mut(instrument).insert(own);
        self.open += 1;
    }

    /// Takes what an order wants of the book with ours in it, which is made if there is none yet.
    fn hit_world(
        &mut self,
        at: Nanos,
        own: &mut Own,
        limit: Option<Price>,
        instrument: InstrumentId,
        (books, local): (&Books, InstrumentId),
        tell: &mut impl Listener,
    ) {
        let world = self.of_mut(instrument).world.get_or_insert_with(|| {
            let book = books.book(local);
            Box::new(book.map_or_else(World::default, World::of))
        });
        // It rests, and trades when the recording says that others do.
        if is_auction(books, local) {
            return;
        }
        let mut parts: Vec<(Price, u32)> = Vec::new();
        world.hit(!own.side, limit, own.leaves().into(), |price, qty| {
            match parts.last_mut().filter(|(last, _)| *last == price) {
                Some((_, of_level)) => *of_level += qty as u32,
                None => parts.push((price, qty as u32)),
            }
        });
        for (price, qty) in parts {
            own.filled += qty;
            tell_fill(at, own, instrument, (qty, price), false, tell);
        }
    }

    /// How much of the other side an order could have.
    fn can_take(
        &self,
        own: &Own,
        limit: Option<Price>,
        instrument: InstrumentId,
        (books, local): (&Books, InstrumentId),
    ) -> u64 {
        let of = self.own.get(instrument.index()).and_then(Option::as_ref);
        if self.matches(books)
            && let Some(world) = of.and_then(|of| of.world.as_ref())
        {
            return world.available(!own.side, limit);
        }
        let Some(book) = books.book(local) else { return 0 };
        let levels = book
            .levels(!own.side)
            .take_while(|level| within(own.side, level.price, limit));
        levels
            .map(|level| match self.model {
                FillModel::Touch => u64::from(own.leaves()),
                _ => self.left_of(instrument, books, local, !own.side, (level.price, level.qty.0)),
            })
            .sum()
    }

    /// What we have left of a recorded level.
    fn left_of(
        &self,
        instrument: InstrumentId,
        books: &Books,
        local: InstrumentId,
        side: Side,
        (price, qty): (Price, u64),
    ) -> u64 {
        let Some(Some(of)) = self.own.get(instrument.index()) else {
            return qty;
        };
        if books.config().depth != Depth::ByOrder || of.taken.is_empty() {
            let taken = of.taken_of_levels.get(&(side, price)).copied();
            return qty.saturating_sub(taken.unwrap_or(0));
        }
        let Some(book) = books.book(local) else { return 0 };
        let orders = book.orders(side, price);
        orders
            .map(|order| {
                let taken = of.taken.get(&order.id).copied();
                u64::from(order.qty.0).saturating_sub(taken.unwrap_or(0))
            })
            .sum()
    }

    /// Takes as much as an order of ours of this side wants and a level of the other side has left.
    pub(super) fn take_level(
        &mut self,
        (side, wanted): (Side, u32),
        instrument: InstrumentId,
        books: &Books,
        local: InstrumentId,
        (price, qty): (Price, u64),
    ) -> u32 {
        if self.model == FillModel::Touch {
            return wanted;
        }
        if books.config().depth != Depth::ByOrder {
            let left = self.left_of(instrument, books, local, !side, (price, qty));
            let taken = left.min(wanted.into()) as u32;
            if taken > 0 {
                let of_levels = &mut self.of_mut(instrument).taken_of_levels;
                *of_levels.entry((!side, price)).or_default() += u64::from(taken);
            }
            return taken;
        }
        let Some(book) = books.book(local) else { return 0 };
        let of_orders = &mut self.of_mut(instrument).taken;
        let mut taken = 0;
        for order in book.orders(!side, price) {
            if taken == wanted {
                break;
            }
            let used = of_orders.get(&order.id).copied().unwrap_or(0);
            let part = u64::from(order.qty.0)
                .saturating_sub(used)
                .min((wanted - taken).into());
            if part > 0 {
                of_orders.insert(order.id, used + part);
                taken += part as u32;
            }
        }
        taken
    }
}
