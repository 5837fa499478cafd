//! The simulated venue: our orders as markers in the recorded book.

mod events;
mod own;
mod quotes;
mod requests;
mod stops;

use std::collections::VecDeque;

use tickwire_book::{Books, Depth};
use tickwire_market::{ClientOrderId, InstrumentId, Nanos, OrderId, Price, Qty, Side};
use tickwire_trading::{OrderReport, ReportKind};

use crate::Doubts;
use own::{Own, OwnBook};

pub(crate) use events::{Said, is_elsewhere};
pub(crate) use quotes::of_quote;

/// By which rule orders of ours are filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FillModel {
    /// An order of ours stands in the recorded queue. On a feed that tells every order its place is exact:
    /// what is ahead falls only by what is executed or cancelled ahead, and it is filled by what was executed
    /// behind it, or at a worse price. On a feed of levels its place is estimated: trades take from the
    /// front, cancellations from behind. Recorded liquidity is used once.
    #[default]
    Queue,
    /// Recorded orders and ours in one matching engine, on feeds that tell every order; elsewhere it is
    /// [`FillModel::Queue`]. A recorded execution is entered as what it was, an order that takes so much down
    /// to that price: who is ahead trades first. What ours take away is missing for those who come later, and
    /// recorded orders that ours traded in the place of stand on, until their owners cancel them.
    Matching,
    /// An order is filled whole as soon as its price is touched. For first looks: too good to be true.
    Touch,
}

/// A fill as the venue knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matched {
    pub(crate) id: ClientOrderId,
    pub(crate) instrument: InstrumentId,
    pub(crate) side: Side,
    pub(crate) qty: Qty,
    pub(crate) price: Price,
    pub(crate) is_maker: bool,
    pub(crate) queue_at_entry: u64,
}

/// Whom the venue tells what.
pub(crate) trait Listener {
    fn report(&mut self, at: Nanos, report: OrderReport);
    fn matched(&mut self, at: Nanos, matched: Matched);
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct SimVenue {
    model: FillModel,
    /// By instrument: none where nothing of ours stands, nor anything that ours changed.
    own: Vec<Option<Box<OwnBook>>>,
    /// Those that are over, to be used again.
    #[expect(clippy::vec_box, reason = "they go back where they came from, as they are")]
    spare: Vec<Box<OwnBook>>,
    /// Counts orders, ours and recorded ones, as they come to levels of ours.
    arrivals: u64,
    /// By instrument: the price of the last recorded trade.
    last_sales: Vec<Option<Price>>,
    /// Stop orders that a trade has triggered, and when.
    triggered: VecDeque<(Nanos, InstrumentId, ClientOrderId)>,
    /// Orders that stand in books, or wait.
    open: usize,
    pub(crate) doubts: Doubts,
    pub(crate) requests: [u64; 3],
    pub(crate) rejects: u64,
    next_order: u64,
    /// For tests: no event is passed over.
    #[cfg(test)]
    pub(crate) looks_at_all: bool,
}

impl SimVenue {
    pub(crate) fn new(model: FillModel, instruments: usize) -> SimVenue {
        SimVenue {
            model,
            own: vec![None; instruments],
            spare: Vec::new(),
            arrivals: 0,
            last_sales: vec![None; instruments],
            triggered: VecDeque::new(),
            open: 0,
            doubts: Doubts::default(),
            requests: [0; 3],
            rejects: 0,
            next_order: 1 << 62,
            #[cfg(test)]
            looks_at_all: false,
        }
    }

    /// Whether nothing of ours stands in a book, nor anything that ours changed.
    #[inline]
    pub(crate) fn is_idle(&self, instrument: InstrumentId) -> bool {
        self.own.get(instrument.index()).is_none_or(Option::is_none)
    }

    /// Ours in a book, where there are any.
    #[inline]
    fn of(&mut self, instrument: InstrumentId) -> Option<&mut OwnBook> {
        self.own.get_mut(instrument.index())?.as_deref_mut()
    }

    /// The same, made where there are none.
    fn of_mut(&mut self, instrument: InstrumentId) -> &mut OwnBook {
        let spare = &mut self.spare;
        self.own[instrument.index()].get_or_insert_with(|| spare.pop().unwrap_or_default())
    }

    fn orders(&self, instrument: InstrumentId) -> &[Own] {
        let of = self.own.get(instrument.index()).and_then(Option::as_ref);
        of.map_or(&[], |of| &of.orders)
    }

    fn orders_mut(&mut self, instrument: InstrumentId) -> &mut [Own] {
        self.of(instrument).map_or(&mut [], |of| &mut of.orders)
    }

    /// What ours did to a book may be over: then it is the recorded one again.
    fn settle(&mut self, instrument: InstrumentId) {
        let Some(place) = self.own.get_mut(instrument.index()) else {
            return;
        };
        let Some(of) = place else { return };
        if let Some(world) = of.world.take_if(|world| world.is_as_recorded()) {
            self.doubts.found_less += world.found_less;
            self.doubts.spared += world.spared;
        }
        if of.is_over()
            && let Some(mut over) = place.take()
        {
            over.reset();
            self.spare.push(over);
        }
    }

    /// What ours changed is forgotten, where none of ours stands.
    pub(crate) fn forget(&mut self, instrument: InstrumentId) {
        if let Some(of) = self.of(instrument)
            && of.orders.is_empty()
        {
            of.world = None;
            self.settle(instrument);
        }
    }

    /// Whether recorded orders and ours are matched in one book.
    fn matches(&self, books: &Books) -> bool {
        self.model == FillModel::Matching && books.config().depth == Depth::ByOrder
    }

    /// Orders that stand in books, or wait.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// Fills one of our resting orders; whether it is over by that.
    fn fill_at(
        &mut self,
        at: Nanos,
        instrument: InstrumentId,
        place: usize,
        qty: u32,
        tell: &mut impl Listener,
    ) -> bool {
        let Some(of) = self.of(instrument) else {
            return false;
        };
        let own = &mut of.orders[place];
        own.filled += qty;
        tell_fill(at, own, instrument, (qty, own.price), true, tell);
        if own.leaves() > 0 {
            return false;
        }
        of.remove(place);
        self.open -= 1;
        true
    }

    /// Takes an order out of its book.
    fn take_out(&mut self, instrument: InstrumentId, id: ClientOrderId) -> Option<Own> {
        let of = self.of(instrument)?;
        let mut own = of.remove(of.place_of(id)?);
        if let Some(world) = &mut of.world {
            own.ahead = world.ahead(id);
            world.leave(id);
        }
        self.open -= 1;
        Some(own)
    }

    fn ended(&mut self, own: &Own) {
        if own.filled == 0 && own.ahead == 0 && own.ahead_at_entry > 0 {
            self.doubts.stopped_at_front += 1;
        }
    }

    /// The recording is over: everything that rests ends.
    pub(crate) fn close(&mut self, at: Nanos, tell: &mut impl Listener) {
        for of in self.own.iter_mut().flatten() {
            for waiting in std::mem::take(&mut of.stops) {
                tell.report(at, report(waiting.own.id, None, ReportKind::Cancelled));
            }
        }
        self.triggered.clear();
        for instrument in 0..self.own.len() {
            let Some(mut of) = self.own[instrument].take() else {
                continue;
            };
            for mut own in std::mem::take(&mut of.orders) {
                if let Some(world) = &of.world {
                    own.ahead = world.ahead(own.id);
                }
                self.ended(&own);
                tell.report(at, report(own.id, None, ReportKind::Cancelled));
            }
            if let Some(world) = of.world {
                self.doubts.found_less += world.found_less;
                self.doubts.spared += world.spared;
            }
        }
        self.open = 0;
    }
}

/// Whether recorded orders stand across each other: then nobody matches them, before an opening or in an
/// auction, and orders rest until a recorded execution. Where levels or quotes are told, those of several
/// venues may cross while all of them trade.
fn is_auction(books: &Books, local: InstrumentId) -> bool {
    let book = books
        .book(local)
        .filter(|_| books.config().depth == Depth::ByOrder);
    let best = book.and_then(|book| book.best(Side::Bid).zip(book.best(Side::Ask)));
    best.is_some_and(|(bid, ask)| bid.price >= ask.price)
}

/// Whether an order may trade at a price of the other side.
fn within(side: Side, price: Price, limit: Option<Price>) -> bool {
    match (side, limit) {
        (_, None) => true,
        (Side::Bid, Some(limit)) => price <= limit,
        (Side::Ask, Some(limit)) => price >= limit,
    }
}

fn report(id: ClientOrderId, venue_id: Option<OrderId>, kind: ReportKind) -> OrderReport {
    OrderReport { id, venue_id, kind }
}

fn tell_fill(
    at: Nanos,
    own: &Own,
    instrument: InstrumentId,
    (qty, price): (u32, Price),
    is_maker: bool,
    tell: &mut impl Listener,
) {
    tell.matched(
        at,
        Matched {
            id: own.id,
            instrument,
            side: own.side,
            qty: Qty(qty),
            price,
            is_maker,
            queue_at_entry: own.ahead_at_entry,
        },
    );
    let kind = ReportKind::Filled {
        qty: Qty(qty),
        price,
        cumulative: Qty(own.filled),
    };
    tell.report(at, report(own.id, None, kind));
}
