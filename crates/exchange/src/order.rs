//! What the matching engines speak: requests in, what happened out.
//!
//! Both engines ([`crate::Engine`], [`crate::NaiveEngine`]) obey the same rules:
//!
//! - price, then displayed before hidden, then time of arrival;
//! - a trade happens at the maker's price, or at a better one for the taker if the maker offered an improvement;
//! - a replacement that only lowers the quantity keeps its priority, every other one gets a new [`OrderId`] and goes to
//!   the tail of its queue (or trades first, if its new price is marketable);
//! - a request that is rejected changes nothing.

use tickwire_market::{InstrumentId, OrderId, OrderType, Price, Qty, Side, TimeInForce, TradingStatus};

/// Who entered an order: 0 is the simulator's own flow, other values are the caller's (an index of a ledger).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Owner(pub u32);

impl Owner {
    /// The simulator's own order flow.
    pub const HOUSE: Owner = Owner(0);
}

/// Market participant identifier, space padded; all spaces means none (the order is published without attribution).
pub type Mpid = [u8; 4];

/// No attribution.
pub const NO_MPID: Mpid = *b"    ";

/// A request for a new order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewOrder {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Buy is [`Side::Bid`].
    pub side: Side,
    /// Limit or market.
    pub order_type: OrderType,
    /// The limit; ignored for market orders.
    pub price: Price,
    /// How much, not 0.
    pub qty: Qty,
    /// Day orders rest; market orders never do.
    pub time_in_force: TimeInForce,
    /// Not shown in market data; trades after displayed orders of the same price.
    pub hidden: bool,
    /// How much better than `price` a taker gets it, 0 or a multiple of the tick: such executions are published with
    /// their price (ITCH message C).
    pub improvement: Price,
    /// Attribution.
    pub mpid: Mpid,
    /// Who enters it.
    pub owner: Owner,
}

impl NewOrder {
    /// A displayed day order of the simulator's own flow without attribution.
    pub const fn limit(instrument: InstrumentId, side: Side, price: Price, qty: Qty) -> NewOrder {
        NewOrder {
            instrument,
            side,
            order_type: OrderType::Limit,
            price,
            qty,
            time_in_force: TimeInForce::Day,
            hidden: false,
            improvement: Price::ZERO,
            mpid: NO_MPID,
            owner: Owner::HOUSE,
        }
    }

    /// Whether what does not trade at once stays in the book.
    pub(crate) fn rests(&self) -> bool {
        self.order_type == OrderType::Limit && self.time_in_force == TimeInForce::Day
    }

    pub(crate) fn entered_as(&self, id: OrderId) -> Order {
        Order {
            id,
            price: self.price,
            improvement: self.improvement,
            qty: self.qty,
            instrument: self.instrument,
            owner: self.owner,
            mpid: self.mpid,
            side: self.side,
            hidden: self.hidden,
        }
    }
}

/// An order the engine accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Order {
    /// The engine's number: counts up from 1, never used twice.
    pub id: OrderId,
    /// Its limit.
    pub price: Price,
    /// See [`NewOrder::improvement`].
    pub improvement: Price,
    /// What remains.
    pub qty: Qty,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Who entered it.
    pub owner: Owner,
    /// Attribution.
    pub mpid: Mpid,
    /// Its side.
    pub side: Side,
    /// Not shown.
    pub hidden: bool,
}

impl Order {
    /// The price at which a taker trades with it.
    pub fn execution_price(&self) -> Price {
        let better = match self.side {
            Side::Bid => self.price.raw() + self.improvement.raw(),
            Side::Ask => self.price.raw() - self.improvement.raw(),
        };
        Price::from_raw(better)
    }
}

/// A trade.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Execution {
    /// The resting order after the trade; it has left the book when its quantity is 0.
    pub maker: Order,
    /// The incoming order after the trade.
    pub taker: Order,
    /// How much.
    pub qty: Qty,
    /// At what price.
    pub price: Price,
    /// Counts up from 1.
    pub match_number: u64,
}

/// Shares crossed at one price outside the continuous book.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cross {
    /// The instrument.
    pub instrument: InstrumentId,
    /// How much.
    pub qty: u64,
    /// At what price.
    pub price: Price,
    /// Counts up together with those of [`Execution`].
    pub match_number: u64,
}

/// What a closing cross would do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Indication {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Shares that would cross.
    pub paired: u64,
    /// Shares left over.
    pub imbalance: u64,
    /// The side of what is left over, meaningless when it is 0.
    pub side: Side,
    /// The reference price.
    pub price: Price,
}

/// Why a request was refused. Nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reject {
    /// No such instrument.
    UnknownInstrument,
    /// The instrument does not trade now.
    NotTrading,
    /// The price (or the improvement) is not a multiple of the tick.
    Tick,
    /// The price is not above 0, or above the largest price the feeds can carry.
    PriceRange,
    /// The quantity is 0.
    Quantity,
    /// No such order in the book.
    UnknownOrder,
    /// A configured capacity is exhausted: orders, or price levels of this side.
    Full,
}

/// Hears what an engine does, in order.
pub trait Listener {
    /// An order was accepted, before it trades. Its quantity is what was entered.
    fn accepted(&mut self, order: &Order) {
        let _ = order;
    }
    /// It, or what is left of it, joined the tail of its queue.
    fn rested(&mut self, order: &Order);
    /// A trade.
    fn executed(&mut self, execution: &Execution);
    /// A resting order lost `by` and kept its place; `order` is what remains, never 0.
    fn reduced(&mut self, order: &Order, by: Qty);
    /// A resting order left the book by request.
    fn deleted(&mut self, order: &Order);
    /// What an order could not trade at once was cancelled; it never rested.
    fn expired(&mut self, order: &Order);
    /// A resting order was replaced. `rests`: the new one stands at the tail of its queue; otherwise it trades next, and
    /// what is left rests with [`Listener::rested`].
    fn replaced(&mut self, old: &Order, new: &Order, rests: bool);
    /// The trading status changed.
    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        let _ = (instrument, status);
    }
    /// A closing cross happened.
    fn crossed(&mut self, cross: &Cross) {
        let _ = cross;
    }
    /// What a closing cross would do was asked for publication.
    fn indicated(&mut self, indication: &Indication) {
        let _ = indication;
    }
    /// The request is done: everything that it did to the instrument has been told. Called once for every request that
    /// was not rejected; venues publish what a request did as one event.
    fn completed(&mut self, instrument: InstrumentId) {
        let _ = instrument;
    }
}

/// Hears nothing.
impl Listener for () {
    fn rested(&mut self, _: &Order) {}
    fn executed(&mut self, _: &Execution) {}
    fn reduced(&mut self, _: &Order, _: Qty) {}
    fn deleted(&mut self, _: &Order) {}
    fn expired(&mut self, _: &Order) {}
    fn replaced(&mut self, _: &Order, _: &Order, _: bool) {}
}

/// Both hear everything, the first one first.
impl<A: Listener, B: Listener> Listener for (&mut A, &mut B) {
    fn accepted(&mut self, order: &Order) {
        self.0.accepted(order);
        self.1.accepted(order);
    }
    fn rested(&mut self, order: &Order) {
        self.0.rested(order);
        self.1.rested(order);
    }
    fn executed(&mut self, execution: &Execution) {
        self.0.executed(execution);
        self.1.executed(execution);
    }
    fn reduced(&mut self, order: &Order, by: Qty) {
        self.0.reduced(order, by);
        self.1.reduced(order, by);
    }
    fn deleted(&mut self, order: &Order) {
        self.0.deleted(order);
        self.1.deleted(order);
    }
    fn expired(&mut self, order: &Order) {
        self.0.expired(order);
        self.1.expired(order);
    }
    fn replaced(&mut self, old: &Order, new: &Order, rests: bool) {
        self.0.replaced(old, new, rests);
        self.1.replaced(old, new, rests);
    }
    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        self.0.status(instrument, status);
        self.1.status(instrument, status);
    }
    fn crossed(&mut self, cross: &Cross) {
        self.0.crossed(cross);
        self.1.crossed(cross);
    }
    fn indicated(&mut self, indication: &Indication) {
        self.0.indicated(indication);
        self.1.indicated(indication);
    }
    fn completed(&mut self, instrument: InstrumentId) {
        self.0.completed(instrument);
        self.1.completed(instrument);
    }
}

/// A hash over orders in priority order (FNV-1a on 64-bit words, then mixed): equal for two engines with equal books,
/// whatever their inner structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateHash(u64);

impl Default for StateHash {
    fn default() -> StateHash {
        StateHash(0xCBF2_9CE4_8422_2325)
    }
}

impl StateHash {
    /// Adds one number.
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word)
            .wrapping_mul(0x0000_0100_0000_01B3)
            .rotate_left(29);
    }

    /// Adds one order.
    pub fn order(&mut self, order: &Order) {
        self.word(order.id.0);
        self.word(order.price.raw() as u64);
        self.word(order.improvement.raw() as u64);
        self.word(u64::from(order.qty.0) << 32 | u64::from(order.owner.0));
        self.word(u64::from(order.instrument.0) << 2 | u64::from(order.hidden) << 1 | order.side as u64);
    }

    /// The hash.
    pub fn value(self) -> u64 {
        self.0
    }
}
