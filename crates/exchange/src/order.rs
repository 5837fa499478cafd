//! What the matching engines speak: requests in, what happened out.
//!
//! Both engines ([`crate::Engine`], [`crate::NaiveEngine`]) obey the same rules:
//!
//! - price, then displayed before hidden, then time of arrival;
//! - a trade happens at the maker's price, or at a better one for the taker if the maker offered an
//!   improvement;
//! - a replacement that only lowers the quantity keeps its priority, every other one gets a new [`OrderId`]
//!   and goes to the tail of its queue (or trades first, if its new price is marketable);
//! - an iceberg shows a slice; when that is gone the next one joins the tail of its queue under a new
//!   [`OrderId`];
//! - a request that is rejected changes nothing.
//!
//! The rest stands in `docs/exchange.md`: auctions, stops, bands, self-trade prevention, quotes.

use tickwire_market::{InstrumentId, OrderId, OrderType, Price, Qty, Side, TimeInForce, TradingStatus};
use tickwire_persist::persist;

use crate::rules::AuctionKind;

/// Who entered an order: 0 is the simulator's own flow, other values are the caller's (an index of a ledger).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Owner(pub u32);

impl Owner {
    /// The simulator's own order flow.
    pub const HOUSE: Owner = Owner(0);
}

/// Whose risk an order is: the unit of self-trade prevention, mass cancels, quotes and market maker
/// protection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Firm(pub u32);

impl Firm {
    /// Nobody's: trades with itself, may not quote.
    pub const NONE: Firm = Firm(0);
}

/// What an incoming order does when it meets one of its own [`Firm`]. FIX SelfMatchPreventionInstruction
/// (2964).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum SelfTrade {
    /// They trade.
    #[default]
    Allow = 0,
    /// The incoming order's rest is cancelled.
    CancelNewest = 1,
    /// The resting order is cancelled, reserve included.
    CancelOldest = 2,
    /// Both.
    CancelBoth = 3,
    /// Both lose the smaller quantity without a trade; an iceberg loses its reserve first.
    Decrement = 4,
}

/// Market participant identifier, space padded; all spaces means none (the order is published without
/// attribution).
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
    /// Day orders rest and leave with [`Engine::expire_day`](crate::Engine::expire_day), orders good till
    /// cancelled stay; market orders never rest. Orders at the opening or close wait, unshown, for that
    /// auction.
    pub time_in_force: TimeInForce,
    /// The price at which a stop order is triggered: a trade at or above it for buys, at or below it for
    /// sells. Waits, unshown, until then; becomes a market or limit order by `order_type`.
    pub stop: Option<Price>,
    /// How much of an iceberg is shown at once: above 0 and below `qty`. 0: no iceberg.
    pub display: Qty,
    /// Never takes: see [`PostOnly`](crate::PostOnly).
    pub post_only: bool,
    /// Whose risk it is.
    pub firm: Firm,
    /// What it does when it meets an order of its firm.
    pub self_trade: SelfTrade,
    /// Not shown in market data; trades after displayed orders of the same price.
    pub hidden: bool,
    /// How much better than `price` a taker gets it, 0 or a multiple of the tick: such executions are
    /// published with their price (ITCH message C).
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
            stop: None,
            display: Qty::ZERO,
            post_only: false,
            firm: Firm::NONE,
            self_trade: SelfTrade::Allow,
            hidden: false,
            improvement: Price::ZERO,
            mpid: NO_MPID,
            owner: Owner::HOUSE,
        }
    }

    /// Whether what does not trade at once stays in the book.
    pub(crate) fn rests(&self) -> bool {
        self.order_type == OrderType::Limit && stays(self.time_in_force)
    }

    #[inline(always)]
    pub(crate) fn entered_as(&self, id: OrderId) -> Order {
        Order {
            id,
            price: match self.order_type {
                OrderType::Limit => self.price,
                OrderType::Market => Price::ZERO,
            },
            improvement: self.improvement,
            qty: self.qty,
            instrument: self.instrument,
            owner: self.owner,
            mpid: self.mpid,
            firm: self.firm,
            display: self.display,
            reserve: Qty::ZERO,
            side: self.side,
            hidden: self.hidden,
            time_in_force: self.time_in_force,
            terms: Terms::of(self),
        }
    }
}

/// Whether an order may rest in the book.
pub(crate) fn stays(time_in_force: TimeInForce) -> bool {
    matches!(time_in_force, TimeInForce::Day | TimeInForce::GoodTillCancel)
}

/// What else was agreed about an order, in one byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Terms(u8);

impl Terms {
    const MARKET: u8 = 1;
    const POST_ONLY: u8 = 2;
    const QUOTE: u8 = 4;
    const SELF_TRADE: u8 = 3;
    const PLACE: u8 = 6;

    fn of(new: &NewOrder) -> Terms {
        let market = u8::from(new.order_type == OrderType::Market) * Terms::MARKET;
        let post_only = u8::from(new.post_only) * Terms::POST_ONLY;
        Terms(market | post_only | (new.self_trade as u8) << Terms::SELF_TRADE)
    }

    pub(crate) fn of_quote() -> Terms {
        Terms(Terms::QUOTE | (SelfTrade::CancelOldest as u8) << Terms::SELF_TRADE)
    }

    pub(crate) fn at(self, place: OrderPlace) -> Terms {
        Terms(self.0 & !(3 << Terms::PLACE) | (place as u8) << Terms::PLACE)
    }

    pub(crate) fn place(self) -> OrderPlace {
        match self.0 >> Terms::PLACE {
            1 => OrderPlace::Stop,
            2 => OrderPlace::Opening,
            3 => OrderPlace::Closing,
            _ => OrderPlace::Book,
        }
    }
}

/// Where an order stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OrderPlace {
    /// In the book.
    Book = 0,
    /// It waits to be triggered.
    Stop = 1,
    /// It waits for the opening, or for the auction after a halt.
    Opening = 2,
    /// It waits for the closing.
    Closing = 3,
}

/// An order the engine accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Order {
    /// The engine's number: counts up from 1, never used twice.
    pub id: OrderId,
    /// Its limit; 0 of market orders.
    pub price: Price,
    /// See [`NewOrder::improvement`].
    pub improvement: Price,
    /// What remains; of a resting iceberg, what remains of the slice.
    pub qty: Qty,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Who entered it.
    pub owner: Owner,
    /// Attribution.
    pub mpid: Mpid,
    /// Whose risk it is.
    pub firm: Firm,
    /// See [`NewOrder::display`].
    pub display: Qty,
    /// What a resting iceberg has beside the slice.
    pub reserve: Qty,
    /// Its side.
    pub side: Side,
    /// Not shown.
    pub hidden: bool,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// What else was agreed.
    pub terms: Terms,
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

    /// All that remains of it, reserve included.
    pub fn leaves(&self) -> u64 {
        u64::from(self.qty.0) + u64::from(self.reserve.0)
    }

    /// Whether it has no limit.
    pub fn is_market(&self) -> bool {
        self.terms.0 & Terms::MARKET != 0
    }

    /// Whether it waits outside the book, see [`Listener::parked`].
    pub fn is_waiting(&self) -> bool {
        self.terms.place() != OrderPlace::Book
    }

    /// Whether it never takes.
    pub fn is_post_only(&self) -> bool {
        self.terms.0 & Terms::POST_ONLY != 0
    }

    /// Whether it is a side of a [`QuoteEntry`](crate::QuoteEntry).
    pub fn is_quote(&self) -> bool {
        self.terms.0 & Terms::QUOTE != 0
    }

    /// What it does when it meets an order of its firm. Quotes cancel the oldest.
    pub fn self_trade(&self) -> SelfTrade {
        match self.terms.0 >> Terms::SELF_TRADE & 7 {
            1 => SelfTrade::CancelNewest,
            2 => SelfTrade::CancelOldest,
            3 => SelfTrade::CancelBoth,
            4 => SelfTrade::Decrement,
            _ => SelfTrade::Allow,
        }
    }

    /// Whether a taker would meet an order of its own firm in it, and minds.
    pub(crate) fn minds(&self, maker: &Order) -> bool {
        self.firm != Firm::NONE && self.firm == maker.firm && self.self_trade() != SelfTrade::Allow
    }

    /// Of an iceberg that is about to rest: a slice and its reserve.
    #[inline]
    pub(crate) fn sliced(mut self) -> Order {
        let all = self.leaves();
        if self.display > Qty::ZERO && all > u64::from(self.display.0) {
            self.qty = self.display;
            self.reserve = Qty((all - u64::from(self.display.0)) as u32);
        } else {
            self.qty = Qty(all as u32);
            self.reserve = Qty::ZERO;
        }
        self
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

/// An order in a trade.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Party {
    /// Whose it is.
    pub owner: Owner,
    /// The number it traded under.
    pub id: OrderId,
    /// Its side.
    pub side: Side,
}

/// Why a trade is broken. OUCH 5.0, "Broken Trade Message".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BreakReason {
    /// It was clearly erroneous.
    Erroneous,
    /// Both sides agreed.
    Consent,
    /// A supervisor decided so.
    Supervisory,
}

/// A trade that does not count after all. The orders stay what they are: what was executed does not return to
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Of which instrument.
    pub instrument: InstrumentId,
    /// That of the [`Execution`].
    pub match_number: u64,
    /// How much it was.
    pub qty: Qty,
    /// At what price.
    pub price: Price,
    /// The order that rested.
    pub maker: Party,
    /// The order that came in.
    pub taker: Party,
    /// Why.
    pub reason: BreakReason,
}

/// The result of an auction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cross {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Which auction.
    pub kind: AuctionKind,
    /// How much, 0 if nothing could trade.
    pub qty: u64,
    /// At what price; if nothing traded, the reference price.
    pub price: Price,
    /// Counts up together with those of [`Execution`].
    pub match_number: u64,
}

/// An order's part in an auction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrossFill {
    /// The order after it. It has left when nothing remains; an iceberg whose slice is gone shows the next
    /// one with [`Listener::refreshed`].
    pub order: Order,
    /// How much it traded.
    pub qty: Qty,
    /// How much of that stood in the book: nothing of an order that waited for the auction, at most the slice
    /// of an iceberg.
    pub from_book: Qty,
    /// At what price.
    pub price: Price,
    /// That of the [`Cross`], which follows.
    pub match_number: u64,
}

/// What an auction would do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Indication {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Which auction: the one whose call phase it is, else the closing.
    pub kind: AuctionKind,
    /// Shares that would cross.
    pub paired: u64,
    /// Shares left over.
    pub imbalance: u64,
    /// The side of what is left over, meaningless when it is 0.
    pub side: Side,
    /// The price at which they would cross, 0 if nothing would.
    pub clearing: Price,
    /// The reference price.
    pub price: Price,
}

/// Why a request was refused. Nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reject {
    /// No such instrument.
    UnknownInstrument,
    /// The instrument does not trade now, or cannot before an auction because its book is crossed.
    NotTrading,
    /// The price (or the improvement) is not a multiple of the tick.
    Tick,
    /// The price is not above 0, or above the largest price the feeds can carry.
    PriceRange,
    /// The quantity is 0.
    Quantity,
    /// The quantity (or what is displayed of it) is not a multiple of the lot.
    Lot,
    /// The displayed quantity is not below the quantity.
    Display,
    /// The price of a stop order's trigger is not a price.
    StopPrice,
    /// Instructions that do not go together: see "Matching rules" in `docs/exchange.md`.
    Instructions,
    /// It may not take, and would.
    PostOnly,
    /// Beyond a price band.
    PriceBand,
    /// A quote's bid is not below its ask, or the request would replace a quote.
    Quote,
    /// The firm's protection was triggered and not reset yet.
    Protected,
    /// The request needs a firm.
    NoFirm,
    /// No such order in the book.
    UnknownOrder,
    /// No such trade, or none that is still kept: see [`TRADES_KEPT`](crate::TRADES_KEPT).
    UnknownTrade,
    /// The trade is broken already.
    BrokenTrade,
    /// The trade is an auction's, which is not broken.
    AuctionTrade,
    /// A configured capacity is exhausted: orders, or price levels of this side.
    Full,
}

/// Why an order leaves, or loses quantity, other than by a request about it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CancelReason {
    /// A mass cancel.
    MassCancel,
    /// It met an order of its own firm.
    SelfTrade,
    /// Market maker protection.
    Protection,
    /// The auction it was for is over.
    AuctionOver,
    /// The day is over.
    DayOver,
    /// A triggered stop order found no room in the book.
    NoRoom,
    /// A new quote took its place.
    Requoted,
}

/// Hears what an engine does, in order.
pub trait Listener {
    /// An order was accepted, before it trades. Its quantity is what was entered.
    fn accepted(&mut self, order: &Order) {
        let _ = order;
    }
    /// It, or what is left of it, joined the tail of its queue.
    fn rested(&mut self, order: &Order);
    /// It waits outside the book, unshown: a stop order until it is triggered, one at the opening or close
    /// for its auction. When it leaves without having been in the book, [`Listener::expired`] tells.
    fn parked(&mut self, order: &Order) {
        let _ = order;
    }
    /// A waiting order was replaced: `new` waits. Both have the same number if it kept its priority.
    fn reparked(&mut self, old: &Order, new: &Order) {
        let _ = (old, new);
    }
    /// A stop order is triggered: it goes on under a new number, as if it had just been accepted.
    fn triggered(&mut self, old: &Order, new: &Order) {
        let _ = (old, new);
    }
    /// An iceberg's slice is gone (told before), the next one is `new`, with another number;
    /// [`Listener::rested`] follows.
    fn refreshed(&mut self, old: &Order, new: &Order) {
        let _ = (old, new);
    }
    /// A trade.
    fn executed(&mut self, execution: &Execution);
    /// An order's part in an auction; [`Listener::crossed`] follows.
    fn cross_filled(&mut self, fill: &CrossFill);
    /// A trade was broken. The book is what it was.
    fn broken(&mut self, broken: &Broken) {
        let _ = broken;
    }
    /// Why the order of the next [`Listener::deleted`], [`Listener::expired`], [`Listener::reduced`] or
    /// [`Listener::decremented`] leaves or loses quantity, when not by a request about it.
    fn cancelled(&mut self, order: &Order, reason: CancelReason) {
        let _ = (order, reason);
    }
    /// An incoming order lost `by` to prevent a trade with itself; `order` is what remains. At 0,
    /// [`Listener::expired`] follows.
    fn decremented(&mut self, order: &Order, by: Qty) {
        let _ = (order, by);
    }
    /// An iceberg lost `by` of its reserve by request; what is shown stays as it is.
    fn reserve_reduced(&mut self, order: &Order, by: Qty) {
        let _ = (order, by);
    }
    /// Market maker protection was triggered: the firm's quotes of the group are cancelled next.
    fn protected(&mut self, firm: Firm, group: u32) {
        let _ = (firm, group);
    }
    /// A resting order lost `by` and kept its place; `order` is what remains, never 0. Of an iceberg the
    /// slice lost it, its reserve is gone.
    fn reduced(&mut self, order: &Order, by: Qty);
    /// A resting order left the book by request.
    fn deleted(&mut self, order: &Order);
    /// What an order could not trade at once was cancelled, or it left while it waited; it never rested.
    fn expired(&mut self, order: &Order);
    /// A resting order was replaced. `rests`: the new one stands at the tail of its queue; otherwise it
    /// trades next, and what is left rests with [`Listener::rested`].
    fn replaced(&mut self, old: &Order, new: &Order, rests: bool);
    /// The trading status changed.
    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        let _ = (instrument, status);
    }
    /// An auction took place.
    fn crossed(&mut self, cross: &Cross) {
        let _ = cross;
    }
    /// What an auction would do was asked for publication.
    fn indicated(&mut self, indication: &Indication) {
        let _ = indication;
    }
    /// The request is done: everything that it did to the instrument has been told. Called once for every
    /// instrument of every request that was not rejected, and once for every stop order that is triggered;
    /// venues publish what was done as one event.
    fn completed(&mut self, instrument: InstrumentId) {
        let _ = instrument;
    }
}

/// Hears nothing.
impl Listener for () {
    fn rested(&mut self, _: &Order) {}
    fn executed(&mut self, _: &Execution) {}
    fn cross_filled(&mut self, _: &CrossFill) {}
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
    fn parked(&mut self, order: &Order) {
        self.0.parked(order);
        self.1.parked(order);
    }
    fn reparked(&mut self, old: &Order, new: &Order) {
        self.0.reparked(old, new);
        self.1.reparked(old, new);
    }
    fn triggered(&mut self, old: &Order, new: &Order) {
        self.0.triggered(old, new);
        self.1.triggered(old, new);
    }
    fn refreshed(&mut self, old: &Order, new: &Order) {
        self.0.refreshed(old, new);
        self.1.refreshed(old, new);
    }
    fn executed(&mut self, execution: &Execution) {
        self.0.executed(execution);
        self.1.executed(execution);
    }
    fn cross_filled(&mut self, fill: &CrossFill) {
        self.0.cross_filled(fill);
        self.1.cross_filled(fill);
    }
    fn broken(&mut self, broken: &Broken) {
        self.0.broken(broken);
        self.1.broken(broken);
    }
    fn cancelled(&mut self, order: &Order, reason: CancelReason) {
        self.0.cancelled(order, reason);
        self.1.cancelled(order, reason);
    }
    fn decremented(&mut self, order: &Order, by: Qty) {
        self.0.decremented(order, by);
        self.1.decremented(order, by);
    }
    fn reserve_reduced(&mut self, order: &Order, by: Qty) {
        self.0.reserve_reduced(order, by);
        self.1.reserve_reduced(order, by);
    }
    fn protected(&mut self, firm: Firm, group: u32) {
        self.0.protected(firm, group);
        self.1.protected(firm, group);
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

/// A hash over orders in priority order (FNV-1a on 64-bit words, then mixed): equal for two engines with
/// equal books, whatever their inner structure.
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
        self.word(u64::from(order.reserve.0) << 32 | u64::from(order.display.0));
        let terms = u64::from(order.terms.0) << 8 | order.time_in_force as u64;
        self.word(u64::from(order.firm.0) << 32 | terms);
    }

    /// The hash.
    pub fn value(self) -> u64 {
        self.0
    }
}

persist!(value struct Owner(number));
persist!(value struct Firm(number));
persist!(value struct Terms(bits));
persist!(value struct Party { owner, id, side });
persist!(value struct Order {
    id, price, improvement, qty, instrument, owner, mpid, firm, display, reserve, side, hidden, time_in_force, terms,
});
persist!(value enum BreakReason { 0 => Erroneous, 1 => Consent, 2 => Supervisory });
persist!(value enum CancelReason {
    0 => MassCancel, 1 => SelfTrade, 2 => Protection, 3 => AuctionOver, 4 => DayOver, 5 => NoRoom, 6 => Requoted,
});
persist!(value enum Reject {
    0 => UnknownInstrument, 1 => NotTrading, 2 => Tick, 3 => PriceRange, 4 => Quantity, 5 => Lot, 6 => Display, 7 => StopPrice,
    8 => Instructions, 9 => PostOnly, 10 => PriceBand, 11 => Quote, 12 => Protected, 13 => NoFirm, 14 => UnknownOrder,
    15 => UnknownTrade, 16 => BrokenTrade, 17 => AuctionTrade, 18 => Full,
});
