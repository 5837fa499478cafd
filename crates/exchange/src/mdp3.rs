//! A channel of CME Globex: MDP 3.0 (SBE schema 1, version 13), the loops of definitions and books, TCP
//! replay.
//!
//! ```text
//!  request ─► MatchEvent ─► 48 37 46 47 ─► packets ──────────► Live, kept for Replay
//!  levels shown ───────────► 52 ─┐
//!  engine's orders ────────► 53 ─┼─► loops ─► Snapshot, SnapshotByOrder
//!  listings ─────────► 54 55 63 ─┴──────────► Definitions
//! ```
//! What one request did is one match event: its messages follow each other, the last one says that it ends.
//! Levels are shown ten deep; orders all. Orders are numbered by the engine, and as those numbers ascend in
//! every queue they are the priorities too. A replaced order leaves and another one enters. There are no
//! spreads, hence no implied levels. What an order traded at one price is one trade; of a broken execution it
//! is changed to what is left of it, or deleted.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Level, Nanos, Port, Price, Qty, SeqNo, Side, TradingStatus, Venue};
use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader, persist};
use tickwire_wire::mdp3::{
    self, Book, ChannelReset, ChannelResetEntry, DailyStatistics, DailyStatisticsEntry, EntryType, EventRoot,
    OrderAction, OrderBook, PacketHeader, Price9, SecurityStatus, SecurityStatusRoot, Snapshot,
    SnapshotEntry, SnapshotOrderEntry, SnapshotOrders, SnapshotOrdersRoot, SnapshotRoot, Text, TradeEntry,
    TradeSummary, TradingStatusCode, UpdateAction, Volume, VolumeEntry, indicator,
};

use crate::displayed::DisplayedLevels;
use crate::engine::{Engine, TRADES_KEPT};
use crate::mold::MessageStore;
use crate::order::{Broken, Cross, CrossFill, Execution, Listener, Order};
use crate::rules::AuctionKind;
use crate::tape::{Datagram, Listing, Milestone, Publisher, Tape, VenueTime};

mod definition;
mod event;
mod loops;
mod packets;
mod replay;

use definition::{Common, Definition};
use event::{DEPTH, MatchEvent, Part, Shown, entry_type_of, quantity, trade_entry_id};
use loops::Loop;
use packets::Packets;
pub use replay::Mdp3ReplayConfig;
use replay::ReplaySession;

/// The largest price that is published: 10^9. The field holds nine times as much, sums of prices are to fit
/// too.
pub const MDP3_PRICE_MAX: Price = Price::from_raw(1_000_000_000 * Price::ONE_RAW);

/// What the receivers of a channel keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mdp3View {
    /// Ten levels a side.
    #[default]
    ByPrice,
    /// Every order.
    ByOrder,
}

/// Everything about an [`Mdp3Publisher`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mdp3PublisherConfig {
    /// The channel's number (`ApplID`).
    pub channel: u16,
    /// What [`Publisher::levels`] shows; both are published either way.
    pub view: Mdp3View,
    /// The security number of instrument 0; that of instrument n is n more.
    pub security_base: i32,
    /// The security group and product that all instruments belong to.
    pub group: [u8; 6],
    /// Year and month in which shares mature, which are told as futures.
    pub maturity: (u16, u8),
    /// The largest UDP payload, 576 to 1,472 bytes.
    pub packet_max: usize,
    /// Bytes of packets kept for replay; the oldest are forgotten first.
    pub store_bytes: usize,
    /// Packets kept for replay.
    pub store_packets: usize,
    /// Silence before a heartbeat. The exchange waits 30 seconds.
    pub heartbeat_ns: u64,
    /// Time between two packets of each loop.
    pub loop_interval_ns: u64,
    /// TCP replay.
    pub replay: Mdp3ReplayConfig,
}

impl Default for Mdp3PublisherConfig {
    fn default() -> Mdp3PublisherConfig {
        Mdp3PublisherConfig {
            channel: 310,
            view: Mdp3View::ByPrice,
            security_base: 500_000,
            group: *b"TW\0\0\0\0",
            maturity: (2026, 12),
            packet_max: 1400,
            store_bytes: 256 << 20,
            store_packets: 2 << 20,
            heartbeat_ns: Nanos::SECOND,
            loop_interval_ns: Nanos::MILLI,
            replay: Mdp3ReplayConfig::default(),
        }
    }
}

/// What is followed of an instrument.
struct Listed {
    listing: Listing,
    security_id: i32,
    is_defined: bool,
    /// The number of its last entry, 0 before the first.
    rpt_seq: u32,
    /// Contracts traded so far.
    volume: u64,
    last_trade: Option<(Price, u64)>,
    status: TradingStatusCode,
    /// When its last event was.
    updated: Nanos,
    shown: [Shown; 2],
}

/// A trade as it was published: executions that follow each other.
struct Print {
    first: u64,
    trades: u64,
    index: usize,
    price: Price,
    /// What is not broken.
    qty: u64,
    aggressor_side: u8,
}

/// See the module's description.
pub struct Mdp3Publisher {
    config: Mdp3PublisherConfig,
    first: u32,
    listed: Vec<Listed>,
    displayed: DisplayedLevels,
    event: MatchEvent,
    /// The last ones, ascending.
    prints: VecDeque<Print>,
    packets: Packets,
    definitions: Loop,
    snapshots: Loop,
    order_snapshots: Loop,
    replays: Vec<ReplaySession>,
    /// Entries of the book that is being written into a loop.
    entries: Vec<SnapshotEntry>,
    orders: Vec<SnapshotOrderEntry>,
    /// How many instruments are defined, and of how many anything was published.
    defined: u32,
    active: u32,
    midnight: Nanos,
    now: Nanos,
}

impl Mdp3Publisher {
    /// A channel of these instruments. Memory for events, loops and replay grows to what the largest of them
    /// takes.
    pub fn new(config: Mdp3PublisherConfig, listings: &[Listing]) -> Mdp3Publisher {
        let packet_max = config.packet_max.clamp(576, 1472);
        let first = listings.first().map_or(0, |listing| listing.id.0);
        let of_port = |port| Loop::new(port, config.loop_interval_ns, packet_max);
        Mdp3Publisher {
            first,
            listed: listings
                .iter()
                .map(|&listing| Listed {
                    listing,
                    security_id: config.security_base + listing.id.0 as i32,
                    is_defined: false,
                    rpt_seq: 0,
                    volume: 0,
                    last_trade: None,
                    status: TradingStatusCode::PreOpen,
                    updated: Nanos::ZERO,
                    shown: [Shown::default(); 2],
                })
                .collect(),
            displayed: DisplayedLevels::new(InstrumentId(first), listings.len()),
            event: MatchEvent::new(packet_max - PacketHeader::SIZE),
            prints: VecDeque::with_capacity(TRADES_KEPT),
            packets: Packets::new(
                packet_max,
                config.store_bytes,
                config.store_packets,
                config.heartbeat_ns,
            ),
            definitions: of_port(Port::Definitions),
            snapshots: of_port(Port::Snapshot),
            order_snapshots: of_port(Port::SnapshotByOrder),
            replays: (0..config.replay.connections)
                .map(|_| ReplaySession::new())
                .collect(),
            entries: Vec::new(),
            orders: Vec::new(),
            defined: 0,
            active: 0,
            midnight: Nanos::ZERO,
            now: Nanos::ZERO,
            config,
        }
    }

    /// The books of the channel are void and are told anew, with numbers of entries from 1 on: what the
    /// exchange does after a failure of its own. The packets' numbers go on.
    pub fn reset(&mut self, engine: &Engine) {
        let (at, channel) = (self.now, self.config.channel);
        let root = event_root(at, indicator::END_OF_EVENT);
        let entry = ChannelResetEntry {
            appl_id: (channel as i16).into(),
        };
        self.packets
            .push(at, |buffer| ChannelReset::encode(buffer, &root, [entry]));
        self.active = 0;
        for index in 0..self.listed.len() {
            let listed = &mut self.listed[index];
            (listed.rpt_seq, listed.shown) = (0, [Shown::default(); 2]);
            let id = listed.listing.id;
            visit_orders(engine, id, |order| self.event.changed(order, OrderAction::New));
            self.publish(id, indicator::RECOVERY);
        }
    }

    fn index(&self, instrument: InstrumentId) -> Option<usize> {
        let at = instrument.0.checked_sub(self.first)? as usize;
        (at < self.listed.len()).then_some(at)
    }

    /// The match event is over: its messages.
    fn publish(&mut self, instrument: InstrumentId, flags: u8) {
        let Some(index) = self.index(instrument) else {
            return;
        };
        let (at, listed) = (self.now, &mut self.listed[index]);
        let sides = Side::BOTH.map(|side| {
            let after = Shown::of(self.displayed.levels(instrument, side));
            (listed.shown[side as usize], after)
        });
        let was_active = listed.rpt_seq > 0;
        let volume_rpt = self.event.lay_out(listed.security_id, sides, || {
            listed.rpt_seq += 1;
            listed.rpt_seq
        });
        if self.event.parts.is_empty() {
            return self.event.clear();
        }
        self.active += u32::from(!was_active && listed.rpt_seq > 0);
        listed.shown = sides.map(|(_, after)| after);
        listed.updated = at;
        let was_traded = listed.volume > 0;
        listed.volume += self.event.traded();
        listed.last_trade = self.event.last_trade().or(listed.last_trade);
        for step in self.event.steps().iter().filter(|step| step.trades() > 0) {
            if self.prints.len() >= TRADES_KEPT {
                self.prints.pop_front();
            }
            self.prints.push_back(Print {
                first: step.first,
                trades: step.trades(),
                index,
                price: step.price,
                qty: step.qty,
                aggressor_side: step.aggressor_side,
            });
        }
        let volume = VolumeEntry {
            size: quantity(listed.volume).into(),
            security_id: listed.security_id.into(),
            rpt_seq: volume_rpt.into(),
            action: if was_traded {
                UpdateAction::Change
            } else {
                UpdateAction::New
            } as u8,
        };
        let event = &self.event;
        for (nth, part) in event.parts.iter().enumerate() {
            let next = event.parts.get(nth + 1);
            let root = event_root(at, flags | indicator_of(part, next));
            self.packets.push(at, |buffer| match part.clone() {
                Part::Trades { entries, orders } => TradeSummary::encode(
                    buffer,
                    &root,
                    event.trades[entries].iter().copied(),
                    event.participants[orders].iter().copied(),
                ),
                Part::Volume => Volume::encode(buffer, &root, [volume]),
                Part::Book { entries, orders } => Book::encode(
                    buffer,
                    &root,
                    event.levels[entries].iter().copied(),
                    event.riding[orders].iter().copied(),
                ),
                Part::Orders(orders) => OrderBook::encode(buffer, &root, event.alone[orders].iter().copied()),
            });
        }
        self.event.clear();
    }

    /// An execution is broken: its trade is changed or deleted (template 48), the session's volume is less
    /// (37).
    fn take_off(&mut self, broken: &Broken) {
        let after = self
            .prints
            .partition_point(|print| print.first <= broken.match_number);
        let found = after.checked_sub(1).and_then(|at| self.prints.get_mut(at));
        let Some(print) = found.filter(|print| broken.match_number - print.first < print.trades) else {
            return;
        };
        let before = print.qty;
        print.qty = before.saturating_sub(broken.qty.0.into());
        let (action, size) = match print.qty {
            0 => (UpdateAction::Delete, before),
            left => (UpdateAction::Change, left),
        };
        let listed = &mut self.listed[print.index];
        // Nothing may have been told since a reset.
        self.active += u32::from(listed.rpt_seq == 0);
        let mut rpt_seq = || {
            listed.rpt_seq += 1;
            listed.rpt_seq
        };
        let trade = TradeEntry {
            price: Price9::of(print.price),
            size: quantity(size).into(),
            security_id: listed.security_id.into(),
            rpt_seq: rpt_seq().into(),
            orders: 0.into(),
            aggressor_side: Some(print.aggressor_side).into(),
            action: action as u8,
            trade_entry_id: Some(trade_entry_id(print.first).into()).into(),
        };
        let volume_rpt = rpt_seq();
        listed.volume = listed.volume.saturating_sub(broken.qty.0.into());
        listed.updated = self.now;
        let volume = VolumeEntry {
            size: quantity(listed.volume).into(),
            security_id: listed.security_id.into(),
            rpt_seq: volume_rpt.into(),
            action: UpdateAction::Change as u8,
        };
        let at = self.now;
        let root = event_root(at, indicator::LAST_TRADE);
        self.packets
            .push(at, |buffer| TradeSummary::encode(buffer, &root, [trade], []));
        let root = event_root(at, indicator::LAST_VOLUME | indicator::END_OF_EVENT);
        self.packets
            .push(at, |buffer| Volume::encode(buffer, &root, [volume]));
    }

    /// Template 30, of one instrument or of the whole group.
    fn say_status(&mut self, index: Option<usize>, status: TradingStatusCode) {
        let (at, security) = (self.now, index.map(|index| self.listed[index].security_id));
        let root = SecurityStatusRoot {
            transact_time: at.0.into(),
            security_group: Text(self.config.group),
            security_id: security.map(|id| id.into()).into(),
            trade_date: self.trade_date(),
            indicator: indicator::END_OF_EVENT,
            trading_status: Some(status as u8).into(),
            halt_reason: 0, // by the group's schedule
            trading_event: 0,
            ..SecurityStatusRoot::BLANK
        };
        self.packets
            .push(at, |buffer| SecurityStatus::encode(buffer, &root));
        match index {
            Some(index) => self.listed[index].status = status,
            None => self.listed.iter_mut().for_each(|listed| listed.status = status),
        }
    }

    /// The settlement price of the day, template 49.
    fn settle(&mut self, index: usize, price: Price) {
        let (at, trade_date) = (self.now, self.trade_date());
        let listed = &mut self.listed[index];
        self.active += u32::from(listed.rpt_seq == 0);
        listed.rpt_seq += 1;
        let entry = DailyStatisticsEntry {
            price: Some(Price9::of(price)).into(),
            security_id: listed.security_id.into(),
            rpt_seq: listed.rpt_seq.into(),
            trading_reference_date: trade_date,
            settl_price_type: 0b11, // final, actual
            action: UpdateAction::New as u8,
            entry_type: EntryType::SettlementPrice.into(),
            ..DailyStatisticsEntry::BLANK
        };
        let root = event_root(at, indicator::LAST_STATISTICS | indicator::END_OF_EVENT);
        self.packets
            .push(at, |buffer| DailyStatistics::encode(buffer, &root, [entry]));
    }

    /// Days since the epoch.
    fn trade_date(&self) -> mdp3::Optional<tickwire_wire::layout::le::U16> {
        Some(((self.midnight.0 / Nanos::DAY) as u16).into()).into()
    }

    /// `total`: how many there are, on the instrument replay feed.
    fn definition(&self, listed: &Listed, total: Option<u32>) -> Definition {
        let common = Common {
            config: &self.config,
            listed: &self.listed,
            midnight: self.midnight,
            total: total.map(|n| n.into()).into(),
        };
        common.of(listed)
    }

    fn fill_definitions(&mut self, now: Nanos) {
        while let Some(index) = self.definitions.next(now, self.listed.len()) {
            let Some(listed) = self.listed.get(index).filter(|listed| listed.is_defined) else {
                continue;
            };
            let definition = self.definition(listed, Some(self.defined));
            self.definitions.push(now, |buffer| definition.encode(buffer));
        }
    }

    /// An instrument of which something was published: no others are in the loops of books.
    fn active(&self, index: usize) -> Option<&Listed> {
        self.listed.get(index).filter(|listed| listed.rpt_seq > 0)
    }

    fn fill_snapshots(&mut self, now: Nanos) {
        let last = self.packets.close();
        let mut entries = core::mem::take(&mut self.entries);
        while let Some(index) = self.snapshots.next(now, self.listed.len()) {
            let Some(listed) = self.active(index) else {
                continue;
            };
            let root = self.snapshot_root(listed, last);
            let levels = Side::BOTH.into_iter().flat_map(|side| {
                let levels = listed.shown[side as usize].levels().iter().zip(1..);
                levels.map(move |(level, nth)| SnapshotEntry {
                    price: Some(Price9::of(level.price)).into(),
                    size: Some(quantity(level.qty.0).into()).into(),
                    orders: Some((level.orders as i32).into()).into(),
                    level: Some(nth).into(),
                    entry_type: entry_type_of(side).into(),
                    ..SnapshotEntry::BLANK
                })
            });
            entries.clear();
            entries.extend(levels.chain(statistics_of(listed)));
            self.snapshots.push(now, |buffer| {
                Snapshot::encode(buffer, &root, entries.iter().copied())
            });
        }
        self.entries = entries;
    }

    /// Statistics and status, then the orders in chunks of one moment.
    fn fill_order_snapshots(&mut self, now: Nanos, engine: &Engine) {
        let last = self.packets.close();
        let room = self.config.packet_max.clamp(576, 1472) - PacketHeader::SIZE;
        let (mut statistics, mut orders) = (
            core::mem::take(&mut self.entries),
            core::mem::take(&mut self.orders),
        );
        while let Some(index) = self.order_snapshots.next(now, self.listed.len()) {
            let Some(listed) = self.active(index) else {
                continue;
            };
            let root = self.snapshot_root(listed, last);
            orders.clear();
            visit_orders(engine, listed.listing.id, |order| {
                orders.push(SnapshotOrderEntry {
                    order_id: order.id.0.into(),
                    priority: Some(order.id.0.into()).into(),
                    price: Price9::of(order.price),
                    display_qty: quantity(order.qty.0.into()).into(),
                    entry_type: entry_type_of(order.side).into(),
                });
            });
            let chunk_root = SnapshotOrdersRoot {
                last_seq_processed: last.into(),
                total_reports: self.active.into(),
                security_id: listed.security_id.into(),
                transact_time: listed.updated.0.into(),
                ..SnapshotOrdersRoot::BLANK
            };
            statistics.clear();
            statistics.extend(statistics_of(listed));
            self.order_snapshots.push(now, |buffer| {
                Snapshot::encode(buffer, &root, statistics.iter().copied())
            });
            let each = (room - SNAPSHOT_ORDERS_HEAD) / size_of::<SnapshotOrderEntry>();
            let chunks = orders.len().div_ceil(each).max(1);
            for chunk in 0..chunks {
                let root = SnapshotOrdersRoot {
                    chunks: (chunks as u32).into(),
                    current_chunk: (chunk as u32 + 1).into(),
                    ..chunk_root
                };
                let entries = &orders[chunk * each..orders.len().min((chunk + 1) * each)];
                self.order_snapshots.push(now, |buffer| {
                    SnapshotOrders::encode(buffer, &root, entries.iter().copied())
                });
            }
        }
        (self.entries, self.orders) = (statistics, orders);
    }

    fn snapshot_root(&self, listed: &Listed, last: u32) -> SnapshotRoot {
        SnapshotRoot {
            last_seq_processed: last.into(),
            total_reports: self.active.into(),
            security_id: listed.security_id.into(),
            rpt_seq: listed.rpt_seq.into(),
            transact_time: listed.updated.0.into(),
            last_update_time: self.midnight.0.into(),
            trade_date: self.trade_date(),
            trading_status: Some(listed.status as u8).into(),
            ..SnapshotRoot::BLANK
        }
    }
}

/// Size, message header, root and head of the group of template 53.
const SNAPSHOT_ORDERS_HEAD: usize = 2 + 8 + 28 + 3;

impl Publisher for Mdp3Publisher {
    fn venue(&self) -> Venue {
        Venue::Cme
    }

    fn open(&mut self, midnight: Nanos) {
        self.midnight = midnight;
    }

    fn handle_timeout(&mut self, now: Nanos, engine: &Engine) {
        for session in &mut self.replays {
            session.handle_timeout(now, &self.config.replay);
        }
        if self.definitions.is_due(now) {
            self.fill_definitions(now);
        }
        if self.snapshots.is_due(now) {
            self.fill_snapshots(now);
        }
        if self.order_snapshots.is_due(now) {
            self.fill_order_snapshots(now, engine);
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let replays = self.replays.iter();
        let replays = replays.filter_map(|session| session.poll_timeout(&self.config.replay));
        let loops = [&self.definitions, &self.snapshots, &self.order_snapshots].map(Loop::poll_timeout);
        replays.chain(loops).chain(self.packets.poll_timeout()).min()
    }

    fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        // Asked twice because a borrow that is returned from a branch lasts for the whole function.
        if self.packets.is_due(now) {
            return self.packets.poll_datagram(now);
        }
        [
            &mut self.definitions,
            &mut self.snapshots,
            &mut self.order_snapshots,
        ]
        .into_iter()
        .find_map(|each| each.poll_datagram(now))
    }

    fn span(&self, datagram: &[u8]) -> Option<(SeqNo, SeqNo)> {
        let seq = SeqNo(mdp3::parse_packet(datagram).ok()?.seq.into());
        Some((seq, seq.next()))
    }

    fn connect(&mut self, port: Port, id: usize, now: Nanos) -> bool {
        let session = self.replays.get_mut(id).filter(|_| port == Port::Replay);
        session.map(|session| session.connect(now)).is_some()
    }

    fn handle_bytes(&mut self, _: Port, id: usize, now: Nanos, bytes: &[u8], _: &Engine) {
        if let Some(session) = self.replays.get_mut(id) {
            let (config, store) = (&self.config, self.packets.store());
            session.handle_bytes(now, bytes, config.channel, &config.replay, store);
        }
    }

    fn poll_transmit<'b>(&mut self, _: Port, id: usize, now: Nanos, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let session = self.replays.get_mut(id)?;
        session.poll_transmit(now, self.packets.store(), buf)
    }

    fn wants_close(&self, _: Port, id: usize) -> bool {
        self.replays.get(id).is_some_and(ReplaySession::wants_close)
    }

    fn disconnect(&mut self, _: Port, id: usize) {
        if let Some(session) = self.replays.get_mut(id) {
            session.disconnect();
        }
    }

    fn end(&mut self, now: Nanos, linger_ns: u64) {
        self.packets.end(now, linger_ns);
    }

    fn is_over(&self) -> bool {
        self.packets.is_over()
    }

    fn next_seq(&self) -> SeqNo {
        self.packets.next()
    }

    fn store_mut(&mut self) -> &mut MessageStore {
        self.packets.store_mut()
    }

    fn levels(&self, engine: &Engine, instrument: InstrumentId, side: Side) -> Vec<Level> {
        let depth = match self.config.view {
            Mdp3View::ByPrice => DEPTH,
            Mdp3View::ByOrder => usize::MAX,
        };
        engine.levels(instrument, side).take(depth).collect()
    }
}

impl Tape for Mdp3Publisher {
    fn set_time(&mut self, at: VenueTime) {
        self.now = self.now.max(self.midnight.after(at));
    }

    /// The close of the group ends the day: there is no message that ends the feed.
    fn milestone(&mut self, milestone: Milestone) {
        match milestone {
            Milestone::StartOfMessages | Milestone::StartOfSystemHours => {}
            Milestone::StartOfMarketHours => self.say_status(None, TradingStatusCode::ReadyToTrade),
            Milestone::EndOfMarketHours => self.say_status(None, TradingStatusCode::PostClose),
            Milestone::EndOfSystemHours => self.say_status(None, TradingStatusCode::Close),
            Milestone::EndOfMessages => self.say_status(None, TradingStatusCode::NotAvailable),
        }
    }

    /// As an instrument that was added during the week.
    fn define(&mut self, listing: &Listing) {
        let Some(index) = self.index(listing.id) else {
            return;
        };
        self.defined += u32::from(!self.listed[index].is_defined);
        self.listed[index].is_defined = true;
        let (at, definition) = (self.now, self.definition(&self.listed[index], None));
        self.packets.push(at, |buffer| definition.encode(buffer));
    }

    fn total(&self) -> u64 {
        self.packets.messages()
    }
}

impl Listener for Mdp3Publisher {
    fn rested(&mut self, order: &Order) {
        self.displayed.rested(order);
        self.event.changed(order, OrderAction::New);
    }

    fn executed(&mut self, execution: &Execution) {
        self.displayed.executed(execution);
        self.event.executed(execution);
    }

    fn cross_filled(&mut self, fill: &CrossFill) {
        if self.displayed.cross_filled(fill).is_some() {
            let action = match fill.order.qty.is_zero() {
                true => OrderAction::Delete,
                false => OrderAction::Update,
            };
            self.event.changed(&fill.order, action);
        }
    }

    fn broken(&mut self, broken: &Broken) {
        self.take_off(broken);
    }

    fn reduced(&mut self, order: &Order, by: Qty) {
        self.displayed.reduced(order, by);
        self.event.changed(order, OrderAction::Update);
    }

    fn deleted(&mut self, order: &Order) {
        self.displayed.deleted(order);
        self.event.changed(order, OrderAction::Delete);
    }

    fn expired(&mut self, _: &Order) {}

    fn replaced(&mut self, old: &Order, new: &Order, rests: bool) {
        self.deleted(old);
        if rests {
            self.rested(new);
        }
    }

    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        if let Some(index) = self.index(instrument) {
            self.say_status(Some(index), status_code(status));
        }
    }

    /// What crosses is a trade without aggressor; the closing's price is the day's settlement.
    fn crossed(&mut self, cross: &Cross) {
        if cross.qty > 0 {
            self.event.crossed(cross);
            self.publish(cross.instrument, 0);
        }
        let settles = cross.kind == AuctionKind::Closing;
        if let Some(index) = self.index(cross.instrument).filter(|_| settles) {
            self.settle(index, cross.price);
        }
    }

    fn completed(&mut self, instrument: InstrumentId) {
        self.publish(instrument, 0);
    }
}

fn event_root(at: Nanos, indicator: u8) -> EventRoot {
    EventRoot {
        transact_time: at.0.into(),
        indicator,
    }
}

/// What a message of an event says about those after it.
fn indicator_of(part: &Part, next: Option<&Part>) -> u8 {
    let is_book = |part: &Part| matches!(part, Part::Book { .. } | Part::Orders(_));
    let last = match (part, next) {
        (Part::Trades { .. }, Some(Part::Trades { .. })) => 0,
        (Part::Trades { .. }, _) => indicator::LAST_TRADE,
        (Part::Volume, _) => indicator::LAST_VOLUME,
        (Part::Book { .. } | Part::Orders(_), next) if next.is_some_and(is_book) => 0,
        (Part::Book { .. } | Part::Orders(_), _) => indicator::LAST_QUOTE,
    };
    match next {
        Some(_) => last,
        None => last | indicator::END_OF_EVENT,
    }
}

/// Entries of a snapshot that are not of the book: the last trade and the session's volume.
fn statistics_of(listed: &Listed) -> impl Iterator<Item = SnapshotEntry> + use<> {
    let trade = listed.last_trade.map(|(price, qty)| SnapshotEntry {
        price: Some(Price9::of(price)).into(),
        size: Some(quantity(qty).into()).into(),
        entry_type: EntryType::Trade.into(),
        ..SnapshotEntry::BLANK
    });
    let volume = (listed.volume > 0).then(|| SnapshotEntry {
        size: Some(quantity(listed.volume).into()).into(),
        entry_type: EntryType::ElectronicVolume.into(),
        ..SnapshotEntry::BLANK
    });
    trade.into_iter().chain(volume)
}

/// Displayed orders, level by level from the best of both sides, each level in the order of its queue.
fn visit_orders(engine: &Engine, instrument: InstrumentId, mut each: impl FnMut(&Order)) {
    let depth = Side::BOTH.map(|side| engine.depth(instrument, side));
    for nth in 0..depth[0].max(depth[1]) {
        for side in Side::BOTH {
            engine.queue(instrument, side, nth).for_each(&mut each);
        }
    }
}

fn status_code(status: TradingStatus) -> TradingStatusCode {
    match status {
        TradingStatus::Unknown => TradingStatusCode::Unknown,
        TradingStatus::PreOpen => TradingStatusCode::PreOpen,
        TradingStatus::Auction => TradingStatusCode::Cross,
        TradingStatus::Trading | TradingStatus::QuoteOnly => TradingStatusCode::ReadyToTrade,
        TradingStatus::Paused | TradingStatus::Halted => TradingStatusCode::TradingHalt,
        TradingStatus::Closed => TradingStatusCode::Close,
    }
}

persist!(value struct Print { first, trades, index, price, qty, aggressor_side });

impl Persist for Listed {
    fn save(&self, out: &mut Bytes) {
        (self.is_defined, self.rpt_seq, self.volume).save(out);
        (self.last_trade, self.status as u8, self.updated).save(out);
        self.shown.save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        (self.is_defined, self.rpt_seq, self.volume) = PersistValue::read(from)?;
        let status: u8;
        (self.last_trade, status, self.updated) = PersistValue::read(from)?;
        self.status = TradingStatusCode::from_wire(status).ok_or(Damaged)?;
        self.shown.load(from)
    }
}

// Its loops begin a turn anew; an event is empty between two requests; connections of the replay server are
// not played back.
persist!(struct Mdp3Publisher {
    displayed, prints, packets, defined, active, midnight, now,
} each { listed } not { config, first, event, definitions, snapshots, order_snapshots, replays, entries, orders });
