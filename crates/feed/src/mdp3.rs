//! CME MDP 3.0 (SBE schema 1, version 13) to [`MarketEvent`]s, with the exchange's recovery: snapshot and definition loops
//! ([`Mdp3Recovery`]), TCP replay ([`Mdp3Replay`]).
//!
//! A packet has one number however many messages it holds, so a packet is what the [`Arbiter`](crate::Arbiter) counts and
//! what the [`Mdp3Decoder`] gets as one message. What comes out:
//!
//! | template | event |
//! |---|---|
//! | 46, 64 | by price: a `Level` for every price whose total changed; by order: `Add` `Modify` `Delete` |
//! | 47 | by order: `Add` `Modify` `Delete` |
//! | 48, 65 | `Trade`, `TradeBreak` |
//! | 30, 60 | `Status`, of every instrument concerned |
//! | 4, entry `J` | `Clear` of all books |
//! | 52, 69; 53 | in a snapshot: `Clear` of the instrument, then its levels; its orders |
//! | 54 to 58, 63 | `Definition`, and the instrument directory |
//! | 12, 15, 16, 37, 39, 49, 50, 51, 59, 61, 62, 66 to 68 | none: they change neither a book nor whether it trades; `RptSeq` is followed |
//!
//! Security numbers are 32 bits wide and sparse; instruments are numbered from 1 in order of appearance.

mod recovery;
mod replay;
mod rows;
mod table;

pub use recovery::{LoopState, Mdp3Recovery};
pub use replay::{Mdp3Replay, ReplayConfig, ReplayState};

use crate::decoder::{Context, Decoder, Subscriptions};
use crate::framing::{Content, Frame, Framing};
use crate::{FeedHandler, MissingRange, SessionId};
use alloc::{boxed::Box, vec, vec::Vec};
use rows::{Row, Rows};
use table::{Priorities, Securities};
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, Nanos,
    OrderId, Price, Qty, SeqNo, Side, Symbol, TradingStatus, Venue, Volume,
};
use tickwire_wire::Malformed;
use tickwire_wire::mdp3::{
    self, Body, Book, EntryType, EventRoot, Message, OrderAction, OrderBook, OrderEntry, TradeSummary,
    TradingStatusCode, UpdateAction, indicator,
};

/// A channel of CME Globex.
pub type Mdp3Feed = FeedHandler<Mdp3, Mdp3Decoder>;

/// The framing: a packet is one message of the feed, numbered by itself.
#[derive(Clone, Copy, Debug)]
pub enum Mdp3 {}

impl Framing for Mdp3 {
    type Messages<'a> = core::iter::Once<&'a [u8]>;

    #[inline]
    fn parse(datagram: &[u8]) -> Result<Frame<Self::Messages<'_>>, Malformed> {
        let packet = mdp3::parse_packet(datagram)?;
        Ok(Frame {
            session: SessionId::NONE,
            first: SeqNo(packet.seq.into()),
            content: Content::Messages {
                count: 1,
                messages: core::iter::once(datagram),
            },
            trailing: 0,
        })
    }

    /// Packets are replayed over a connection: [`FeedHandler::poll_missing`] and [`Mdp3Replay`].
    fn request(_: MissingRange, _: &mut [u8]) -> Option<usize> {
        None
    }

    /// A message is a packet already.
    fn wrap(_: SessionId, _: SeqNo, message: &[u8], buffer: &mut [u8]) -> Option<usize> {
        buffer.get_mut(..message.len())?.copy_from_slice(message);
        Some(message.len())
    }
}

/// Which books are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mdp3Depth {
    /// Price levels, ten deep at most, from the `MDEntries`.
    #[default]
    ByPrice,
    /// Orders, from the `OrderIDEntries` and template 47.
    ByOrder,
}

/// What an [`Mdp3Decoder`] has to know.
#[derive(Clone, Debug)]
pub struct Mdp3Config {
    /// Which books. Default: by price.
    pub depth: Mdp3Depth,
    /// Whether implied levels are added to the real ones at their price (by price only). Default: yes.
    pub implied: bool,
    /// How many instruments a channel can have, default 16 384; 700 bytes each by price. An instrument too many is
    /// counted as [`Counter::BookFull`] and passed over.
    pub instruments_max: u32,
    /// How many orders can rest at once (by order only), default 2^20; 64 bytes each. When there are more, a change of
    /// one left out counts as losing its place in the queue.
    pub orders_max: u32,
    /// What to let through; `None` (the default) is everything. Instruments are known by name once their definition
    /// has come.
    pub symbols: Option<Vec<Symbol>>,
}

impl Default for Mdp3Config {
    fn default() -> Mdp3Config {
        Mdp3Config {
            depth: Mdp3Depth::ByPrice,
            implied: true,
            instruments_max: 1 << 14,
            orders_max: 1 << 20,
            symbols: None,
        }
    }
}

/// What is followed of an instrument.
#[derive(Clone, Copy, Default)]
struct Followed {
    security_group: [u8; 6],
    asset: [u8; 6],
    /// The last entry's number; 0: not known.
    rpt_seq: u32,
    /// The packet up to which its last snapshot holds its orders.
    covered: u64,
    /// The turn of the snapshot loop it was last taken in.
    taken: u32,
    /// Of a snapshot in chunks: the one wanted next, and the packet all must be of.
    chunk: u32,
    chunk_of: u32,
}

/// A turn of the snapshot loop being taken.
#[derive(Clone, Copy, Default)]
struct Turn {
    number: u32,
    /// Snapshots that end before this packet are too old: the packets after them are not held.
    floor: u64,
    taken: u32,
    total: Option<u32>,
    /// The oldest snapshot taken.
    oldest: u64,
}

/// The decoder. All memory is taken at construction.
pub struct Mdp3Decoder {
    depth: Mdp3Depth,
    implied: bool,
    subscriptions: Subscriptions,
    takes_all: bool,
    securities: Securities,
    directory: Box<[Instrument]>,
    followed: Box<[Followed]>,
    rows: Box<[Rows]>,
    priorities: Priorities,
    turn: Turn,
    definitions: u32,
    definitions_total: Option<u32>,
    seen: Box<[u64; 256]>,
}

/// Where events of a packet go. The last one is held back until it is known whether the match event ends behind it.
pub(crate) struct Out<'a, S> {
    pub(crate) sink: &'a mut S,
    pub(crate) held: Option<MarketEvent>,
}

impl<S: EventSink> Out<'_, S> {
    #[inline(always)]
    pub(crate) fn push(&mut self, event: MarketEvent) {
        if let Some(before) = self.held.replace(event) {
            self.sink.on_event(&before);
        }
    }

    #[inline(always)]
    pub(crate) fn finish(self, ended: bool) {
        if let Some(mut last) = self.held {
            if ended {
                last.flags = last.flags.with(EventFlags::LAST);
            }
            self.sink.on_event(&last);
        }
    }
}

/// What all events of a message share.
#[derive(Clone, Copy)]
struct Moment {
    context: Context,
    /// The venue's time.
    time: Nanos,
}

/// An entry of a book by price, of either width.
#[derive(Clone, Copy)]
struct LevelEntry {
    security_id: i32,
    rpt_seq: u32,
    entry_type: u8,
    action: u8,
    level: u8,
    row: Row,
}

/// An order's entry, of a book message, an order message or a snapshot.
#[derive(Clone, Copy)]
struct OrderUpdate {
    index: usize,
    action: OrderAction,
    order: u64,
    priority: u64,
    side: Side,
    price: Price,
    qty: u64,
}

/// What the decoder needs of a definition, whatever its kind.
struct Definition {
    security_id: i32,
    symbol: Option<Symbol>,
    security_group: [u8; 6],
    asset: [u8; 6],
    tick: Option<Price>,
    deleted: bool,
    total: Option<u32>,
    time: u64,
    /// Depth of the real and of the implied book, if said.
    depth: [Option<u8>; 2],
}

/// The six kinds of definition share the names of these fields.
macro_rules! definition {
    ($message:expr) => {{
        let (message, root) = ($message, $message.root.get());
        let mut depth = [None; 2];
        for feed in message.feed_types {
            match feed.feed_type.trimmed() {
                b"GBX" => depth[0] = u8::try_from(feed.market_depth).ok(),
                b"GBI" => depth[1] = u8::try_from(feed.market_depth).ok(),
                _ => {}
            }
        }
        Definition {
            security_id: root.security_id.get(),
            symbol: Symbol::new(root.symbol.trimmed()),
            security_group: root.security_group.0,
            asset: root.asset.0,
            tick: Option::from(root.min_price_increment.price()),
            deleted: root.security_update_action.0 == b'D',
            total: root.total_reports.get().map(|n| n.get()),
            time: root.last_update_time.get(),
            depth,
        }
    }};
}

impl Mdp3Decoder {
    /// A decoder that knows no instrument.
    pub fn new(config: Mdp3Config) -> Mdp3Decoder {
        let instruments = config.instruments_max.clamp(1, 1 << 20) as usize + 1;
        let (ladders, orders) = match config.depth {
            Mdp3Depth::ByPrice => (instruments, 0),
            Mdp3Depth::ByOrder => (0, config.orders_max.min(1 << 28)),
        };
        Mdp3Decoder {
            depth: config.depth,
            implied: config.implied,
            takes_all: config.symbols.is_none(),
            subscriptions: Subscriptions::new(instruments, config.symbols.as_deref()),
            securities: Securities::new(instruments as u32 - 1),
            directory: vec![Instrument::default(); instruments].into(),
            followed: vec![Followed::default(); instruments].into(),
            rows: vec![Rows::default(); ladders].into(),
            priorities: Priorities::new(orders),
            turn: Turn::default(),
            definitions: 0,
            definitions_total: None,
            seen: Box::new([0; 256]),
        }
    }

    /// The instruments defined so far, by number.
    pub fn instruments(&self) -> impl Iterator<Item = &Instrument> {
        self.directory.iter().filter(|i| !i.symbol.is_empty())
    }

    /// The number of a symbol, if its definition has come. A search: not for the way of a packet.
    pub fn find(&self, symbol: &Symbol) -> Option<InstrumentId> {
        self.instruments().find(|i| i.symbol == *symbol).map(|i| i.id)
    }

    /// The number given to an exchange's security number.
    pub fn instrument_of(&self, security_id: i32) -> Option<InstrumentId> {
        self.securities.find(security_id).map(InstrumentId)
    }

    /// Messages of a template; those above 255 are counted as unknown only.
    pub fn seen_of_template(&self, template: u8) -> u64 {
        self.seen[usize::from(template)]
    }

    /// How many definitions have come, and how many a loop of them has.
    pub fn definitions(&self) -> (u32, Option<u32>) {
        (self.definitions, self.definitions_total)
    }

    /// Begins to take snapshots: only those that hold all packets before `floor` count. All books are void.
    pub(crate) fn begin_turn(&mut self, floor: SeqNo) {
        self.forget_books();
        let number = self.turn.number + 1;
        self.turn = Turn {
            number,
            floor: floor.0,
            oldest: u64::MAX,
            ..Turn::default()
        };
    }

    /// Packets before `floor` are not held any more. Whether a snapshot already taken needs one of them: the turn must
    /// then begin anew.
    pub(crate) fn raise_floor(&mut self, floor: SeqNo) -> bool {
        self.turn.floor = self.turn.floor.max(floor.0);
        self.turn.taken > 0 && self.turn.oldest.saturating_add(1) < floor.0
    }

    /// How many instruments were taken of how many; with the packet to go on from when that is all of them.
    pub(crate) fn turn(&self) -> (u32, Option<u32>, Option<SeqNo>) {
        let Turn {
            taken, total, oldest, ..
        } = self.turn;
        let complete = total.is_some_and(|total| taken >= total);
        (taken, total, complete.then(|| SeqNo(oldest.saturating_add(1))))
    }

    #[inline(always)]
    fn book<S: EventSink>(
        &mut self,
        context: Context,
        m: &mdp3::Book<'_>,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) -> Result<u8, Malformed> {
        let root = m.root.get();
        let at = moment(context, &root);
        for e in m.entries {
            let row = row(
                e.price.price(),
                quantity(e.size.get().map(|n| n.get().into()))?,
                e.orders.get(),
            )?;
            let entry = LevelEntry {
                security_id: e.security_id.get(),
                rpt_seq: e.rpt_seq.get(),
                entry_type: e.entry_type.0,
                action: e.action,
                level: e.level,
                row,
            };
            self.level(at, entry, counters, out)?;
        }
        for order in m.orders {
            let place = reference(&order).and_then(|n| m.entries.get(n));
            let place = place.map(|e| (e.security_id.get(), e.entry_type.0, e.price.price()));
            self.referred_order(at, place, &order, counters, out)?;
        }
        Ok(root.indicator)
    }

    #[inline(always)]
    fn order_book<S: EventSink>(
        &mut self,
        context: Context,
        m: &mdp3::OrderBook<'_>,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) -> Result<u8, Malformed> {
        let root = m.root.get();
        let at = moment(context, &root);
        for e in m.entries {
            let Some(index) = self.wanted(e.security_id.get(), counters) else {
                continue;
            };
            let order = e.order_id.get().ok_or(Malformed::OutOfRange { offset: 0 })?.get();
            let action = OrderAction::from_wire(e.action);
            let update = OrderUpdate {
                index,
                action: action.ok_or(Malformed::BadValue {
                    offset: 32,
                    value: e.action,
                })?,
                order,
                priority: e.priority.get().map_or(0, |n| n.get()),
                side: book_side(e.entry_type.0, 33)?.0,
                price: e.price.price().unwrap_or_default(),
                qty: quantity(e.display_qty.get().map(|n| n.get().into()))?,
            };
            self.order(at, update, out);
        }
        Ok(root.indicator)
    }

    #[inline(always)]
    fn trades<S: EventSink>(
        &mut self,
        context: Context,
        m: &mdp3::TradeSummary<'_>,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) -> Result<u8, Malformed> {
        let root = m.root.get();
        let at = moment(context, &root);
        for e in m.entries {
            let trade = Trade {
                security_id: e.security_id.get(),
                rpt_seq: e.rpt_seq.get(),
                price: e.price.price(),
                qty: quantity(Some(e.size.get().into()))?,
                aggressor: e.aggressor_side.get(),
                action: e.action,
                id: e.trade_entry_id.get().map_or(0, |n| n.get()),
            };
            self.trade(at, trade, counters, out);
        }
        Ok(root.indicator)
    }

    /// Every template; those of a trading day's bulk have been taken before.
    #[inline(never)]
    fn message<S: EventSink>(
        &mut self,
        context: Context,
        message: &Message<'_>,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) -> Result<u8, Malformed> {
        let in_snapshot = context.flags.has(EventFlags::SNAPSHOT);
        let at = |root: &EventRoot| moment(context, root);
        let at_time = |time: u64| Moment {
            context,
            time: Nanos(time),
        };
        match &message.body {
            Body::Book(m) => self.book(context, m, counters, out),
            Body::BookLongQty(m) => {
                let root = m.root.get();
                for e in m.entries {
                    let row = row(
                        e.price.price(),
                        e.size.get().map_or(0, |n| n.get()),
                        e.orders.get(),
                    )?;
                    let entry = LevelEntry {
                        security_id: e.security_id.get(),
                        rpt_seq: e.rpt_seq.get(),
                        entry_type: e.entry_type.0,
                        action: e.action,
                        level: e.level,
                        row,
                    };
                    self.level(at(&root), entry, counters, out)?;
                }
                for order in m.orders {
                    let place = reference(&order).and_then(|n| m.entries.get(n));
                    let place = place.map(|e| (e.security_id.get(), e.entry_type.0, e.price.price()));
                    self.referred_order(at(&root), place, &order, counters, out)?;
                }
                Ok(root.indicator)
            }
            Body::OrderBook(m) => self.order_book(context, m, counters, out),
            Body::TradeSummary(m) => self.trades(context, m, counters, out),
            Body::TradeSummaryLongQty(m) => {
                let root = m.root.get();
                for e in m.entries {
                    let trade = Trade {
                        security_id: e.security_id.get(),
                        rpt_seq: e.rpt_seq.get(),
                        price: e.price.price(),
                        qty: e.size.get(),
                        aggressor: e.aggressor_side.get(),
                        action: e.action,
                        id: e.trade_entry_id.get(),
                    };
                    self.trade(at(&root), trade, counters, out);
                }
                Ok(root.indicator)
            }
            Body::SecurityStatus(m) => {
                let r = m.root.get();
                let at = at_time(r.transact_time.get());
                let code = [b'0'.saturating_add(r.halt_reason), 0, 0, 0, 0, 0, 0, 0];
                if let Some(status) = r.trading_status.get().and_then(trading_status) {
                    let security = r.security_id.get().map(|id| id.get());
                    self.status(at, security, r.security_group.0, r.asset.0, status, code, out);
                }
                Ok(r.indicator)
            }
            Body::Workup(m) => {
                let r = m.root.get();
                if let Some(status) = trading_status(r.trading_status) {
                    let code = [b'0'.saturating_add(r.halt_reason), 0, 0, 0, 0, 0, 0, 0];
                    let security = Some(r.security_id.get());
                    self.status(
                        at_time(r.transact_time.get()),
                        security,
                        [0; 6],
                        [0; 6],
                        status,
                        code,
                        out,
                    );
                }
                Ok(r.indicator)
            }
            Body::ChannelReset(m) => {
                let root = m.root.get();
                self.reset(at(&root), out);
                Ok(root.indicator)
            }
            Body::Volume(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Ok(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::VolumeLongQty(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Ok(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::DailyStatistics(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Ok(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::SessionStatistics(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Ok(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::SessionStatisticsLongQty(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Ok(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::LimitsBanding(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Ok(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::Snapshot(m) if in_snapshot && self.depth == Mdp3Depth::ByPrice => {
                let mut levels = [(EntryType::Bid, 0, Row::default()); 64];
                let mut count = 0;
                for e in m.entries {
                    let row = row(
                        e.price.price(),
                        quantity(e.size.get().map(|n| n.get().into()))?,
                        e.orders.get(),
                    )?;
                    let level = e.level.get().and_then(|n| u8::try_from(n).ok()).unwrap_or(0);
                    collect(&mut levels, &mut count, e.entry_type.0, level, row)?;
                }
                self.snapshot(context, &m.root.get(), &mut levels[..count], counters, out);
                Ok(indicator::END_OF_EVENT)
            }
            Body::SnapshotLongQty(m) if in_snapshot && self.depth == Mdp3Depth::ByPrice => {
                let mut levels = [(EntryType::Bid, 0, Row::default()); 64];
                let mut count = 0;
                for e in m.entries {
                    let row = row(
                        e.price.price(),
                        e.size.get().map_or(0, |n| n.get()),
                        e.orders.get(),
                    )?;
                    collect(
                        &mut levels,
                        &mut count,
                        e.entry_type.0,
                        e.level.get().unwrap_or(0),
                        row,
                    )?;
                }
                self.snapshot(context, &m.root.get(), &mut levels[..count], counters, out);
                Ok(indicator::END_OF_EVENT)
            }
            Body::SnapshotOrders(m) if in_snapshot && self.depth == Mdp3Depth::ByOrder => {
                self.snapshot_orders(context, m, counters, out)?;
                Ok(indicator::END_OF_EVENT)
            }
            Body::Future(m) => Ok(self.define(context, definition!(m), counters, out)),
            Body::OptionDefinition(m) => Ok(self.define(context, definition!(m), counters, out)),
            Body::Spread(m) => Ok(self.define(context, definition!(m), counters, out)),
            Body::FixedIncome(m) => Ok(self.define(context, definition!(m), counters, out)),
            Body::Repo(m) => Ok(self.define(context, definition!(m), counters, out)),
            Body::Fx(m) => Ok(self.define(context, definition!(m), counters, out)),
            Body::AdminHeartbeat(_)
            | Body::AdminLogin(_)
            | Body::AdminLogout(_)
            | Body::QuoteRequest(_)
            | Body::Snapshot(_)
            | Body::SnapshotLongQty(_)
            | Body::SnapshotOrders(_)
            | Body::TopOrders(_)
            | Body::TcpSnapshot(_)
            | Body::TcpSnapshotLongQty(_)
            | Body::CollateralMarketValue(_) => Ok(0),
            Body::Future27(_)
            | Body::Spread29(_)
            | Body::Book32(_)
            | Body::SessionStatistics35(_)
            | Body::TradeSummary42(_) => {
                counters.bump(Counter::MessagesUnknown);
                Ok(0)
            }
        }
    }

    /// The instrument of a security number, if anyone wants it.
    #[inline(always)]
    fn wanted(&mut self, security_id: i32, counters: &mut Counters) -> Option<usize> {
        let position = match self.securities.find(security_id) {
            None if self.takes_all => self.enter(security_id, counters)? as u32,
            known => known?,
        };
        self.subscriptions
            .has(InstrumentId(position))
            .then_some(position as usize)
    }

    #[cold]
    fn enter(&mut self, security_id: i32, counters: &mut Counters) -> Option<usize> {
        let position = self.securities.enter(security_id);
        if position.is_none() {
            counters.bump(Counter::BookFull);
        }
        position.map(|position| position as usize)
    }

    /// The instrument of an entry that is new to it: wanted, and not known from a snapshot. A hole in an instrument's
    /// numbers makes its book stale.
    #[inline(always)]
    fn accept<S: EventSink>(
        &mut self,
        at: Moment,
        security_id: i32,
        rpt_seq: u32,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) -> Option<usize> {
        let Some(index) = self.wanted(security_id, counters) else {
            counters.bump(Counter::MessagesFiltered);
            return None;
        };
        let last = &mut self.followed[index].rpt_seq;
        if *last != 0 && rpt_seq <= *last {
            counters.bump(Counter::MessagesDuplicate);
            return None;
        }
        let is_hole = *last != 0 && rpt_seq != *last + 1;
        let expected = *last;
        *last = rpt_seq;
        if is_hole {
            counters.add(Counter::MessagesLost, u64::from(rpt_seq - expected - 1));
            out.push(MarketEvent {
                ref_id: at.context.seq.0,
                ..about(at, EventKind::Gap, index)
            });
        }
        Some(index)
    }

    /// Entries that say nothing to a book: only their numbers count.
    fn follow<S: EventSink>(
        &mut self,
        context: Context,
        root: EventRoot,
        entries: impl Iterator<Item = (i32, u32)>,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) -> u8 {
        let at = Moment {
            context,
            time: Nanos(root.transact_time.get()),
        };
        for (security_id, rpt_seq) in entries {
            self.accept(at, security_id, rpt_seq, counters, out);
        }
        root.indicator
    }

    #[inline(always)]
    fn level<S: EventSink>(
        &mut self,
        at: Moment,
        entry: LevelEntry,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) -> Result<(), Malformed> {
        if entry.entry_type == EntryType::BookReset as u8 {
            self.reset(at, out);
            return Ok(());
        }
        let Some(index) = self.accept(at, entry.security_id, entry.rpt_seq, counters, out) else {
            return Ok(());
        };
        if self.depth == Mdp3Depth::ByOrder {
            return Ok(());
        }
        let (side, is_implied) = book_side(entry.entry_type, 26)?;
        if is_implied && !self.implied {
            return Ok(());
        }
        let action = UpdateAction::from_wire(entry.action);
        let action = action.ok_or(Malformed::BadValue {
            offset: 25,
            value: entry.action,
        })?;
        let changed = |price, total| out.push(level_event(at, index, side, price, total));
        if self.rows[index]
            .apply(side, is_implied, action, entry.level, entry.row, changed)
            .is_err()
        {
            // The venue's rows and ours differ: its book cannot be followed until its next snapshot.
            counters.bump(Counter::Malformed);
            out.push(MarketEvent {
                ref_id: at.context.seq.0,
                ..about(at, EventKind::Gap, index)
            });
        }
        Ok(())
    }

    /// An order whose instrument, side and price are those of a price level of the same message.
    fn referred_order<S: EventSink>(
        &mut self,
        at: Moment,
        place: Option<(i32, u8, Option<Price>)>,
        order: &OrderEntry,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) -> Result<(), Malformed> {
        let (security_id, entry_type, price) = place.ok_or(Malformed::OutOfRange { offset: 20 })?;
        let Some(index) = self.wanted(security_id, counters) else {
            return Ok(());
        };
        let action = OrderAction::from_wire(order.action);
        let update = OrderUpdate {
            index,
            action: action.ok_or(Malformed::BadValue {
                offset: 21,
                value: order.action,
            })?,
            order: order.order_id.get(),
            priority: order.priority.get().map_or(0, |n| n.get()),
            side: book_side(entry_type, 26)?.0,
            price: price.unwrap_or_default(),
            qty: quantity(order.display_qty.get().map(|n| n.get().into()))?,
        };
        self.order(at, update, out);
        Ok(())
    }

    fn order<S: EventSink>(&mut self, at: Moment, update: OrderUpdate, out: &mut Out<'_, S>) {
        let is_live = !at.context.flags.has(EventFlags::SNAPSHOT);
        let covered = is_live && at.context.seq.0 <= self.followed[update.index].covered;
        if self.depth == Mdp3Depth::ByPrice || covered {
            return;
        }
        let (kind, flags) = match update.action {
            OrderAction::New => {
                self.priorities.set(update.order, update.priority);
                (EventKind::Add, EventFlags::NONE)
            }
            OrderAction::Update => match self.priorities.set(update.order, update.priority) {
                Some(before) if before == update.priority => (EventKind::Modify, EventFlags::KEEPS_PRIORITY),
                _ => (EventKind::Modify, EventFlags::NONE),
            },
            OrderAction::Delete => {
                self.priorities.remove(update.order);
                let deleted = about(at, EventKind::Delete, update.index);
                return out.push(MarketEvent {
                    order_id: OrderId(update.order),
                    ..deleted
                });
            }
        };
        out.push(MarketEvent {
            order_id: OrderId(update.order),
            side: update.side,
            price: update.price,
            qty: Volume(update.qty),
            flags: at.context.flags.with(flags),
            ..about(at, kind, update.index)
        });
    }

    fn trade<S: EventSink>(
        &mut self,
        at: Moment,
        trade: Trade,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) {
        let Some(index) = self.accept(at, trade.security_id, trade.rpt_seq, counters, out) else {
            return;
        };
        let (side, no_side) = match trade.aggressor.unwrap_or(0) {
            1 => (Side::Bid, EventFlags::NONE),
            2 => (Side::Ask, EventFlags::NONE),
            _ => (Side::Bid, EventFlags::NO_SIDE),
        };
        let ref_id = u64::from(trade.id);
        if trade.action != UpdateAction::New as u8 {
            out.push(MarketEvent {
                ref_id,
                ..about(at, EventKind::TradeBreak, index)
            });
        }
        if trade.action != UpdateAction::Delete as u8 {
            out.push(MarketEvent {
                side,
                price: trade.price,
                qty: Volume(trade.qty),
                ref_id,
                flags: at.context.flags.with(no_side),
                ..about(at, EventKind::Trade, index)
            });
        }
    }

    /// The status of one instrument, or of all of a product or group, one event each.
    #[allow(clippy::too_many_arguments, reason = "the fields of one message")]
    fn status<S: EventSink>(
        &self,
        at: Moment,
        security_id: Option<i32>,
        security_group: [u8; 6],
        asset: [u8; 6],
        status: TradingStatus,
        code: [u8; 8],
        out: &mut Out<'_, S>,
    ) {
        let mut say = |index: usize| {
            if self.subscriptions.has(InstrumentId(index as u32)) {
                out.push(MarketEvent {
                    status,
                    code,
                    ..about(at, EventKind::Status, index)
                });
            }
        };
        if let Some(security_id) = security_id {
            return self
                .securities
                .find(security_id)
                .map_or((), |index| say(index as usize));
        }
        let fits = |wanted: [u8; 6], have: [u8; 6]| wanted == [0; 6] || wanted == have;
        for i in self.instruments() {
            let have = &self.followed[i.id.index()];
            if fits(security_group, have.security_group) && fits(asset, have.asset) {
                say(i.id.index());
            }
        }
    }

    /// All books of the channel are void.
    fn reset<S: EventSink>(&mut self, at: Moment, out: &mut Out<'_, S>) {
        self.forget_books();
        out.push(about(at, EventKind::Clear, 0));
    }

    fn forget_books(&mut self) {
        self.rows.iter_mut().for_each(Rows::clear);
        self.priorities.clear();
        for followed in &mut self.followed {
            (followed.rpt_seq, followed.covered) = (0, 0);
        }
    }

    /// The instrument of a snapshot that counts in this turn of the loop.
    fn takes(
        &mut self,
        security_id: i32,
        last_packet: u32,
        total: u32,
        counters: &mut Counters,
    ) -> Option<usize> {
        let index = self.enter(security_id, counters)?;
        self.turn.total = Some(total);
        let counts =
            u64::from(last_packet) + 1 >= self.turn.floor && self.followed[index].taken != self.turn.number;
        counts.then_some(index)
    }

    fn took(&mut self, index: usize, last_packet: u32, rpt_seq: u32) {
        let followed = &mut self.followed[index];
        (followed.taken, followed.covered) = (self.turn.number, last_packet.into());
        (followed.rpt_seq, followed.chunk) = (rpt_seq, 0);
        self.turn.taken += 1;
        self.turn.oldest = self.turn.oldest.min(last_packet.into());
    }

    fn snapshot<S: EventSink>(
        &mut self,
        context: Context,
        root: &mdp3::SnapshotRoot,
        levels: &mut [(EntryType, u8, Row)],
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) {
        let (security_id, last_packet) = (root.security_id.get(), root.last_seq_processed.get());
        let Some(index) = self.takes(security_id, last_packet, root.total_reports.get(), counters) else {
            return;
        };
        self.took(index, last_packet, root.rpt_seq.get());
        if !self.subscriptions.has(InstrumentId(index as u32)) {
            return;
        }
        let at = Moment {
            context,
            time: Nanos(root.transact_time.get()),
        };
        out.push(about(at, EventKind::Clear, index));
        self.rows[index].clear();
        levels.sort_unstable_by_key(|(_, level, _)| *level);
        for &(entry_type, level, row) in levels.iter() {
            let Some((side, is_implied)) = entry_type
                .book_side()
                .filter(|(_, implied)| self.implied || !implied)
            else {
                continue;
            };
            if self.rows[index]
                .apply(side, is_implied, UpdateAction::New, level, row, |_, _| ())
                .is_err()
            {
                counters.bump(Counter::Malformed);
            }
        }
        for side in Side::BOTH {
            for (price, total) in self.rows[index].levels(side).filter(|(_, total)| total.qty > 0) {
                out.push(level_event(at, index, side, price, total));
            }
        }
        if let Some(status) = root.trading_status.get().and_then(trading_status) {
            out.push(MarketEvent {
                status,
                ..about(at, EventKind::Status, index)
            });
        }
    }

    /// A chunk of an instrument's orders. A chunk missing leaves the instrument to the next turn of the loop.
    fn snapshot_orders<S: EventSink>(
        &mut self,
        context: Context,
        m: &mdp3::SnapshotOrders<'_>,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) -> Result<(), Malformed> {
        let root = m.root.get();
        let (last_packet, chunk) = (root.last_seq_processed.get(), root.current_chunk.get());
        let taken = self.takes(
            root.security_id.get(),
            last_packet,
            root.total_reports.get(),
            counters,
        );
        let Some(index) = taken else { return Ok(()) };
        let wanted = self.subscriptions.has(InstrumentId(index as u32));
        let at = Moment {
            context,
            time: Nanos(root.transact_time.get()),
        };
        let followed = &mut self.followed[index];
        if chunk == 1 {
            (followed.chunk, followed.chunk_of) = (1, last_packet);
            if wanted {
                out.push(about(at, EventKind::Clear, index));
            }
        } else if (chunk, last_packet) != (followed.chunk, followed.chunk_of) {
            return Ok(());
        }
        for e in m.entries.filter(|_| wanted) {
            let update = OrderUpdate {
                index,
                action: OrderAction::New,
                order: e.order_id.get(),
                priority: e.priority.get().map_or(0, |n| n.get()),
                side: book_side(e.entry_type.0, 28)?.0,
                price: e.price.price(),
                qty: quantity(Some(e.display_qty.get().into()))?,
            };
            self.order(at, update, out);
        }
        self.followed[index].chunk = chunk.saturating_add(1);
        if chunk >= root.chunks.get() {
            self.took(index, last_packet, 0);
        }
        Ok(())
    }

    /// Enters an instrument into the directory, and tells of it if it is wanted.
    fn define<S: EventSink>(
        &mut self,
        context: Context,
        d: Definition,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) -> u8 {
        let Some(index) = self.enter(d.security_id, counters) else {
            return 0;
        };
        let Some(symbol) = d.symbol else {
            counters.bump(Counter::Malformed);
            return 0;
        };
        let at = Moment {
            context,
            time: Nanos(d.time),
        };
        let id = InstrumentId(index as u32);
        if self.directory[index].symbol.is_empty() && !d.deleted {
            self.definitions += 1;
        }
        self.definitions_total = d.total.or(self.definitions_total);
        (self.followed[index].security_group, self.followed[index].asset) = (d.security_group, d.asset);
        self.directory[index] = Instrument {
            id,
            venue: Venue::Cme,
            symbol: if d.deleted { Symbol::EMPTY } else { symbol },
            tick: d.tick.unwrap_or_default(),
            lot: Qty(1),
            is_test: false,
        };
        if let Some(rows) = self.rows.get_mut(index) {
            for (is_implied, depth) in [false, true].into_iter().zip(d.depth) {
                if let Some(depth) = depth {
                    rows.set_depth(is_implied, depth);
                }
            }
        }
        self.subscriptions.learn(id, &symbol);
        if self.subscriptions.has(id) {
            let kind = if d.deleted {
                EventKind::Clear
            } else {
                EventKind::Definition
            };
            out.push(about(at, kind, index));
        }
        indicator::END_OF_EVENT
    }
}

impl Decoder for Mdp3Decoder {
    fn venue(&self) -> Venue {
        Venue::Cme
    }

    /// `message` is a packet.
    fn decode<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let Ok(packet) = mdp3::parse_packet(message) else {
            return counters.bump(Counter::Malformed);
        };
        // The packet is marked as last of its kind by the handler; what is atomic here is the match event.
        let flags = EventFlags(context.flags.0 & !EventFlags::LAST.0);
        let context = Context { flags, ..context };
        let mut out = Out { sink, held: None };
        let mut ended = false;
        for bytes in packet.messages {
            if let Some(count) = mdp3::template(bytes).and_then(|t| self.seen.get_mut(usize::from(t))) {
                *count += 1;
            }
            let indicator = match mdp3::template(bytes) {
                Some(Book::TEMPLATE) => {
                    Book::parse(bytes).and_then(|m| self.book(context, &m, counters, &mut out))
                }
                Some(OrderBook::TEMPLATE) => {
                    OrderBook::parse(bytes).and_then(|m| self.order_book(context, &m, counters, &mut out))
                }
                Some(TradeSummary::TEMPLATE) => {
                    TradeSummary::parse(bytes).and_then(|m| self.trades(context, &m, counters, &mut out))
                }
                _ => mdp3::parse(bytes).and_then(|m| self.message(context, &m, counters, &mut out)),
            };
            match indicator {
                Ok(indicator) => ended = indicator & indicator::END_OF_EVENT != 0,
                Err(Malformed::UnknownTemplate(_)) => counters.bump(Counter::MessagesUnknown),
                Err(_) => counters.bump(Counter::Malformed),
            }
        }
        out.finish(ended);
    }

    fn preview<S: EventSink>(&self, _: &[u8], _: &mut S) -> bool {
        true
    }

    /// Security numbers stay: definitions come on a feed of their own.
    fn restarted(&mut self) {
        self.forget_books();
    }

    fn instrument(&self, id: InstrumentId) -> Option<&Instrument> {
        self.directory.get(id.index()).filter(|i| !i.symbol.is_empty())
    }
}

#[inline(always)]
fn moment(context: Context, root: &EventRoot) -> Moment {
    Moment {
        context,
        time: Nanos(root.transact_time.get()),
    }
}

#[inline(always)]
fn about(at: Moment, kind: EventKind, instrument: usize) -> MarketEvent {
    MarketEvent {
        seq: at.context.seq,
        venue_ts: at.time,
        recv_ts: at.context.received,
        instrument: InstrumentId(instrument as u32),
        venue: Venue::Cme,
        kind,
        flags: at.context.flags,
        ..MarketEvent::default()
    }
}

#[inline(always)]
fn level_event(at: Moment, index: usize, side: Side, price: Price, total: rows::Total) -> MarketEvent {
    let implied = if total.implied {
        EventFlags::IMPLIED
    } else {
        EventFlags::NONE
    };
    MarketEvent {
        side,
        price,
        qty: Volume(total.qty),
        order_count: total.orders,
        flags: at.context.flags.with(implied),
        ..about(at, EventKind::Level, index)
    }
}

/// A trade of either width.
#[derive(Clone, Copy)]
struct Trade {
    security_id: i32,
    rpt_seq: u32,
    price: Price,
    qty: u64,
    aggressor: Option<u8>,
    action: u8,
    id: u32,
}

/// Which entry of its message an order refers to, counted from 0.
fn reference(order: &OrderEntry) -> Option<usize> {
    usize::from(order.reference_id.get()?).checked_sub(1)
}

/// What is absent is nothing; what is negative is wrong.
#[inline(always)]
fn quantity(field: Option<i64>) -> Result<u64, Malformed> {
    u64::try_from(field.unwrap_or(0)).map_err(|_| Malformed::OutOfRange { offset: 8 })
}

#[inline(always)]
fn row(
    price: Option<Price>,
    qty: u64,
    orders: Option<tickwire_wire::layout::le::I32>,
) -> Result<Row, Malformed> {
    let orders =
        u32::try_from(orders.map_or(0, |n| n.get())).map_err(|_| Malformed::OutOfRange { offset: 20 })?;
    Ok(Row {
        price: price.unwrap_or_default(),
        qty,
        orders,
    })
}

fn book_side(entry_type: u8, offset: u16) -> Result<(Side, bool), Malformed> {
    let side = EntryType::from_wire(entry_type).and_then(EntryType::book_side);
    side.ok_or(Malformed::BadValue {
        offset,
        value: entry_type,
    })
}

/// Keeps an entry of a snapshot if it is of the book.
fn collect(
    levels: &mut [(EntryType, u8, Row)],
    count: &mut usize,
    entry_type: u8,
    level: u8,
    row: Row,
) -> Result<(), Malformed> {
    let Some(entry_type) = EntryType::from_wire(entry_type).filter(|e| e.book_side().is_some()) else {
        return Ok(());
    };
    let free = levels
        .get_mut(*count)
        .ok_or(Malformed::OutOfRange { offset: 0 })?;
    *free = (entry_type, level, row);
    *count += 1;
    Ok(())
}

/// `None`: nothing that anyone could act on.
fn trading_status(code: u8) -> Option<TradingStatus> {
    Some(match TradingStatusCode::from_wire(code)? {
        TradingStatusCode::TradingHalt => TradingStatus::Halted,
        TradingStatusCode::Close | TradingStatusCode::NotAvailable | TradingStatusCode::PostClose => {
            TradingStatus::Closed
        }
        TradingStatusCode::NewPriceIndication | TradingStatusCode::PreCross | TradingStatusCode::Cross => {
            TradingStatus::Auction
        }
        TradingStatusCode::PreOpen => TradingStatus::PreOpen,
        TradingStatusCode::Unknown => TradingStatus::Unknown,
        TradingStatusCode::ReadyToTrade
        | TradingStatusCode::PrivateWorkup
        | TradingStatusCode::PublicWorkup => TradingStatus::Trading,
        TradingStatusCode::NoChange => return None,
    })
}
