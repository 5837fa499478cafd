//! A market of the Moscow Exchange: order log or trade log, each datagram one FAST message with a number of
//! its own, and what recovers it: the snapshot loop of all orders, the loop of instrument definitions, TCP
//! replay.
//!
//! Layouts come from a template file, the exchange's or our own (`examples/moex-templates.xml`). The exchange
//! has no end of session: when trading is over every instrument says that it is not available any more, and
//! heartbeats go on.

mod replay;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use tickwire_market::{
    InstrumentId, Level, Nanos, OrderId, Port, Price, Qty, SeqNo, Side, TradingStatus, Venue, Volume,
};
use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader, persist};
use tickwire_wire::fast::{Limits, Plan};
use tickwire_wire::moex::{
    Action, Board, Definition, Encoder, MOSCOW_OFFSET_NS, MessageKind, MissingField, OrderEntry, OrderKind,
    SnapshotHeader, Status, Template, TradeEntry, preamble,
};

use crate::engine::Engine;
use crate::mold::MessageStore;
use crate::order::{Cross, CrossFill, Execution, Indication, Listener, Order};
use crate::tape::{Datagram, LineSet, Listing, Milestone, Publisher, Tape, VenueTime};

pub use replay::MoexReplayRules;
use replay::{ReplaySession, Service};

/// Which of a market's feeds is published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoexLog {
    /// `OLR`: every change of every displayed order.
    Orders,
    /// `TLR`: every trade. There are no snapshots of it here.
    Trades,
}

/// Everything about a [`MoexPublisher`] but its templates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MoexPublisherConfig {
    /// Which feed.
    pub log: MoexLog,
    /// How the names of the market's templates end, where a file has several: `FOND` equities, `CURR`
    /// currency.
    pub market: &'static str,
    /// The board of all instruments.
    pub board: &'static str,
    /// The largest UDP payload, 256 to 8,972 bytes; beyond 1,472 it takes jumbo frames, or fragments.
    pub datagram_max: usize,
    /// The most entries of one datagram, 1 to 128.
    pub entries_max: usize,
    /// Bytes of datagrams kept for replay; the oldest are forgotten first.
    pub store_bytes: usize,
    /// Datagrams kept for replay.
    pub store_messages: usize,
    /// Silence of the log before a heartbeat.
    pub heartbeat_ns: u64,
    /// Time from one instrument's snapshot to the next one's.
    pub snapshot_interval_ns: u64,
    /// Time from one definition to the next.
    pub definition_interval_ns: u64,
    /// The replay service.
    pub replay: MoexReplayRules,
    /// Replay connections are numbered 0 to this, exclusive.
    pub connections: usize,
    /// Sizes of the FAST encoder.
    pub limits: Limits,
}

impl Default for MoexPublisherConfig {
    fn default() -> MoexPublisherConfig {
        MoexPublisherConfig {
            log: MoexLog::Orders,
            market: "FOND",
            board: "TQBR",
            datagram_max: 1400,
            entries_max: 16,
            store_bytes: 256 << 20,
            store_messages: 4 << 20,
            heartbeat_ns: Nanos::SECOND,
            snapshot_interval_ns: Nanos::MILLI,
            definition_interval_ns: Nanos::MILLI,
            replay: MoexReplayRules::default(),
            connections: 4,
            limits: Limits::default(),
        }
    }
}

/// Why templates cannot be used to publish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoexTemplates {
    /// A template lacks a field.
    MissingField(MissingField),
    /// There is no template for this kind of message.
    Missing(MessageKind),
}

impl fmt::Display for MoexTemplates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MoexTemplates::MissingField(missing) => missing.fmt(f),
            MoexTemplates::Missing(kind) => write!(f, "no template for {kind:?}"),
        }
    }
}

impl core::error::Error for MoexTemplates {}

/// The templates used.
#[derive(Clone, Copy)]
struct Templates {
    log: Template,
    snapshot: Template,
    definition: Template,
    status: Template,
    heartbeat: Template,
    logon: Template,
    logout: Template,
}

/// What happened to an order, or a trade, until its datagram is written.
#[derive(Clone, Copy)]
struct Entry {
    /// Which of the listings.
    place: usize,
    rpt_seq: u32,
    action: Action,
    /// Of the order; of a trade, the aggressor's.
    side: Side,
    /// The order, or the trade's number.
    id: u64,
    /// The order that a trade was with, if it is displayed.
    resting: Option<OrderId>,
    price: Price,
    /// What is left of the order; none when it is gone.
    qty: Option<Volume>,
    /// Since midnight in Moscow.
    at: Nanos,
}

/// Where the day is.
enum Stage {
    Open,
    /// Heartbeats come often until then: one that is lost must not cost a second.
    Ending {
        until: Nanos,
    },
    Over,
}

/// See the module's description.
pub struct MoexPublisher {
    config: MoexPublisherConfig,
    listings: Vec<Listing>,
    /// By listing.
    rpt_seqs: Vec<u32>,
    statuses: Vec<TradingStatus>,
    encoder: Encoder,
    templates: Templates,
    midnight: Nanos,
    time: VenueTime,
    total: u64,
    /// Entries that no datagram holds yet.
    pending: VecDeque<Entry>,
    /// Every datagram of the log.
    store: MessageStore,
    sent_at: Nanos,
    stage: Stage,
    /// Datagrams of the loops and of status changes, to be sent. As many as the largest snapshot has, and one
    /// more for each instrument.
    others: VecDeque<(Port, Vec<u8>)>,
    scratch: Vec<u8>,
    snapshots: Loop,
    definitions: Loop,
    status_seq: u32,
    sessions: Vec<ReplaySession>,
}

/// A loop over the listings.
struct Loop {
    /// The listing that is next.
    place: usize,
    /// The number of the next packet of this cycle.
    seq: u32,
    due: Nanos,
}

impl Loop {
    const START: Loop = Loop {
        place: 0,
        seq: 1,
        due: Nanos::ZERO,
    };

    /// Steps to the next listing; after the last the numbers begin anew.
    fn step(&mut self, now: Nanos, interval_ns: u64, listings: usize) {
        self.due = crate::pace::loop_due(self.due, now, interval_ns);
        self.place += 1;
        if self.place == listings {
            (self.place, self.seq) = (0, 1);
        }
    }
}

impl MoexPublisher {
    /// A channel of these instruments. An error: the templates lack something.
    pub fn new(
        config: MoexPublisherConfig,
        templates: Arc<Plan>,
        listings: &[Listing],
    ) -> Result<MoexPublisher, MoexTemplates> {
        let encoder = Encoder::new(templates, config.limits).map_err(MoexTemplates::MissingField)?;
        let find = |kind| {
            let found = encoder.find(kind, config.market);
            found.ok_or(MoexTemplates::Missing(kind))
        };
        let log = match config.log {
            MoexLog::Orders => MessageKind::OrderLog,
            MoexLog::Trades => MessageKind::Trades,
        };
        let templates = Templates {
            log: find(log)?,
            snapshot: find(MessageKind::OrderSnapshot)?,
            definition: find(MessageKind::SecurityDefinition)?,
            status: find(MessageKind::SecurityStatus)?,
            heartbeat: find(MessageKind::Heartbeat)?,
            logon: find(MessageKind::Logon)?,
            logout: find(MessageKind::Logout)?,
        };
        Ok(MoexPublisher {
            listings: listings.to_vec(),
            rpt_seqs: vec![0; listings.len()],
            statuses: vec![TradingStatus::Unknown; listings.len()],
            encoder,
            templates,
            midnight: Nanos::ZERO,
            time: 0,
            total: 0,
            pending: VecDeque::new(),
            store: MessageStore::new(config.store_bytes, config.store_messages),
            sent_at: Nanos::ZERO,
            stage: Stage::Open,
            others: VecDeque::new(),
            scratch: vec![0; config.datagram_max.clamp(256, 8_972)],
            snapshots: Loop::START,
            definitions: Loop::START,
            status_seq: 0,
            sessions: (0..config.connections).map(|_| ReplaySession::new()).collect(),
            config,
        })
    }

    /// From the next datagram on, at most so many entries each: 1 to 128.
    pub fn set_entries_max(&mut self, entries: usize) {
        self.config.entries_max = entries;
    }

    /// Entries that no datagram holds yet.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    fn place_of(&self, instrument: InstrumentId) -> Option<usize> {
        let first = self.listings.first()?.id.0;
        let place = instrument.0.checked_sub(first)? as usize;
        (place < self.listings.len()).then_some(place)
    }

    /// The moment of what happens now, since midnight in Moscow.
    fn moscow(&self) -> Nanos {
        Nanos((self.midnight.after(self.time).0 + MOSCOW_OFFSET_NS) % Nanos::DAY)
    }

    /// An entry of the log.
    fn log(&mut self, instrument: InstrumentId, entry: impl FnOnce(Entry) -> Entry) {
        let Some(place) = self.place_of(instrument) else {
            return;
        };
        self.rpt_seqs[place] += 1;
        self.total += 1;
        let blank = Entry {
            place,
            rpt_seq: self.rpt_seqs[place],
            action: Action::New,
            side: Side::Bid,
            id: 0,
            resting: None,
            price: Price::ZERO,
            qty: None,
            at: self.moscow(),
        };
        self.pending.push_back(entry(blank));
    }

    /// An entry of the order log about a displayed order.
    fn log_order(&mut self, order: &Order, action: Action) {
        if self.config.log == MoexLog::Orders && !order.hidden {
            self.log(order.instrument, |entry| Entry {
                action,
                side: order.side,
                id: order.id.0,
                price: order.price,
                qty: (action != Action::Delete).then_some(Volume(order.qty.0.into())),
                ..entry
            });
        }
    }

    /// Writes what waits, as much as one datagram holds.
    fn pack(&mut self, now: Nanos) -> usize {
        let seq = self.next_number();
        let mut count = self.pending.len().min(self.config.entries_max.clamp(1, 128));
        loop {
            let (template, out) = (self.templates.log, &mut self.scratch[..]);
            let pending = self.pending.iter().take(count);
            let written = match self.config.log {
                MoexLog::Orders => {
                    let entries: Vec<_> = pending
                        .map(|e| order_entry(e, &self.listings, self.config.board))
                        .collect();
                    self.encoder.order_log(template, seq, now, &entries, out)
                }
                MoexLog::Trades => {
                    let entries: Vec<_> = pending
                        .map(|e| trade_entry(e, &self.listings, self.config.board))
                        .collect();
                    self.encoder.trades(template, seq, now, &entries, out)
                }
            };
            match written {
                Ok(length) => {
                    self.pending.drain(..count);
                    return length;
                }
                Err(error) => {
                    assert!(count > 1, "an entry does not fit a datagram: {error}");
                    count /= 2;
                }
            }
        }
    }

    fn next_number(&self) -> u32 {
        u32::try_from(self.store.next().0).expect("a day has fewer packets than 32 bits can count")
    }

    /// When a heartbeat is due.
    fn beat_due(&self) -> Nanos {
        let interval = match self.stage {
            Stage::Ending { .. } => self.config.heartbeat_ns.min(20 * Nanos::MILLI),
            _ => self.config.heartbeat_ns,
        };
        self.sent_at.after(interval)
    }

    /// Queues the snapshot of the loop's next instrument: orders of both sides, best price first, in
    /// fragments.
    fn snapshot(&mut self, now: Nanos, engine: &Engine) {
        let place = self.snapshots.place;
        let Some(&listing) = self.listings.get(place) else {
            return;
        };
        let mut orders = Vec::new();
        for side in Side::BOTH {
            for nth in 0..engine.depth(listing.id, side) {
                orders.extend(engine.queue(listing.id, side, nth).copied());
            }
        }
        let at = self.moscow();
        let mut entries: Vec<OrderEntry<'_>> = orders.iter().map(|order| snapshot_entry(order, at)).collect();
        if entries.is_empty() {
            entries.push(empty_book());
        }
        let mut from = 0;
        while from < entries.len() {
            let mut count = (entries.len() - from).min(self.config.entries_max.clamp(1, 128));
            let length = loop {
                let header = SnapshotHeader {
                    symbol: listing.symbol.as_bytes(),
                    board: self.config.board.as_bytes(),
                    rpt_seq: self.rpt_seqs[place],
                    last_seq_processed: Some(self.next_number() - 1),
                    first_fragment: from == 0,
                    last_fragment: from + count == entries.len(),
                    session_status: Some(100),
                    trading_status: Some(status_code(self.statuses[place])),
                    auction: None,
                };
                let written = self.encoder.order_snapshot(
                    self.templates.snapshot,
                    self.snapshots.seq,
                    now,
                    &header,
                    &entries[from..from + count],
                    &mut self.scratch,
                );
                match written {
                    Ok(length) => break length,
                    Err(error) => {
                        assert!(count > 1, "an order does not fit a datagram: {error}");
                        count /= 2;
                    }
                }
            };
            from += count;
            self.snapshots.seq += 1;
            self.others
                .push_back((Port::Snapshot, self.scratch[..length].into()));
        }
        self.snapshots
            .step(now, self.config.snapshot_interval_ns, self.listings.len());
    }

    /// Queues the next definition of the loop.
    fn definition(&mut self, now: Nanos) {
        let place = self.definitions.place;
        let Some(listing) = self.listings.get(place) else {
            return;
        };
        let definition = Definition {
            symbol: listing.symbol.as_bytes(),
            description: listing.symbol.as_bytes(),
            currency: b"RUB",
            total_reports: u32::try_from(self.listings.len()).ok(),
            min_price_increment: Some(listing.tick()),
            face_value: None,
        };
        let board = Board {
            board: self.config.board.as_bytes(),
            session: b"N",
            trading_status: Some(status_code(self.statuses[place])),
            round_lot: Some(listing.rules.lot.0.max(1)),
        };
        let written = self.encoder.definition(
            self.templates.definition,
            self.definitions.seq,
            now,
            &definition,
            &[board],
            &mut self.scratch,
        );
        let length = written.expect("a definition fits the smallest datagram");
        self.others
            .push_back((Port::Definitions, self.scratch[..length].into()));
        self.definitions.seq += 1;
        self.definitions
            .step(now, self.config.definition_interval_ns, self.listings.len());
    }

    /// An instrument's status from now on, told at once.
    fn set_status(&mut self, place: usize, status: TradingStatus, now: Nanos) {
        self.statuses[place] = status;
        self.status_seq += 1;
        let said = Status {
            symbol: self.listings[place].symbol.as_bytes(),
            board: self.config.board.as_bytes(),
            session: b"N",
            trading_status: Some(status_code(status)),
            ..Status::default()
        };
        let written = self.encoder.status(
            self.templates.status,
            self.status_seq,
            now,
            &said,
            &mut self.scratch,
        );
        let length = written.expect("a status fits the smallest datagram");
        self.others
            .push_back((Port::Definitions, self.scratch[..length].into()));
    }

    /// A connection and what it needs.
    fn session(&mut self, id: usize) -> Option<(&mut ReplaySession, Service<'_>)> {
        let session = self.sessions.get_mut(id)?;
        let service = Service {
            rules: self.config.replay,
            feed: match self.config.log {
                MoexLog::Orders => b"OLR",
                MoexLog::Trades => b"TLR",
            },
            store: &self.store,
            encoder: &mut self.encoder,
            logon: self.templates.logon,
            logout: self.templates.logout,
        };
        Some((session, service))
    }
}

impl Publisher for MoexPublisher {
    fn venue(&self) -> Venue {
        Venue::Moex
    }

    fn open(&mut self, midnight: Nanos) {
        self.midnight = midnight;
    }

    fn handle_timeout(&mut self, now: Nanos, engine: &Engine) {
        if let Stage::Ending { until } = self.stage
            && until <= now
            && self.pending.is_empty()
        {
            self.stage = Stage::Over;
        }
        // One at a time: the next one waits until this one is sent.
        let waits = |port| self.others.iter().any(|(of, _)| *of == port);
        let (snapshot, definition) = (
            self.config.log == MoexLog::Orders && self.snapshots.due <= now && !waits(Port::Snapshot),
            self.definitions.due <= now && !waits(Port::Definitions),
        );
        if snapshot {
            self.snapshot(now, engine);
        }
        if definition {
            self.definition(now);
        }
        for session in &mut self.sessions {
            session.handle_timeout(now, &self.config.replay);
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        if !self.pending.is_empty() || !self.others.is_empty() {
            return Some(self.sent_at);
        }
        let rules = &self.config.replay;
        let sessions = self.sessions.iter().filter_map(|s| s.poll_timeout(rules)).min();
        let snapshots = (self.config.log == MoexLog::Orders).then_some(self.snapshots.due);
        [
            sessions,
            snapshots,
            Some(self.definitions.due),
            Some(self.beat_due()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        let first = self.store.next();
        let length = if !self.pending.is_empty() {
            self.pack(now)
        } else if let Some((port, bytes)) = self.others.pop_front() {
            self.scratch[..bytes.len()].copy_from_slice(&bytes);
            return Some(Datagram {
                port,
                lines: LineSet::BOTH,
                first: SeqNo(0),
                next: SeqNo(0),
                bytes: &self.scratch[..bytes.len()],
            });
        } else if self.beat_due() <= now {
            let seq = self.next_number();
            let written = self
                .encoder
                .heartbeat(self.templates.heartbeat, seq, now, &mut self.scratch);
            written.expect("a heartbeat fits the smallest datagram")
        } else {
            return None;
        };
        self.sent_at = now;
        self.store.push(&self.scratch[..length]);
        Some(Datagram {
            port: Port::Live,
            lines: LineSet::BOTH,
            first,
            next: first.next(),
            bytes: &self.scratch[..length],
        })
    }

    fn span(&self, datagram: &[u8]) -> Option<(SeqNo, SeqNo)> {
        let seq = SeqNo(preamble(datagram)?.into());
        Some((seq, seq.next()))
    }

    fn connect(&mut self, port: Port, id: usize, now: Nanos) -> bool {
        let session = self.sessions.get_mut(id).filter(|_| port == Port::Replay);
        session.map(|session| session.connect(now)).is_some()
    }

    fn handle_bytes(&mut self, _: Port, id: usize, now: Nanos, bytes: &[u8], _: &Engine) {
        if let Some((session, mut service)) = self.session(id) {
            session.handle_bytes(now, bytes, &mut service);
        }
    }

    fn poll_transmit<'b>(&mut self, _: Port, id: usize, now: Nanos, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let (session, mut service) = self.session(id)?;
        session.poll_transmit(now, &mut service, buf)
    }

    fn wants_close(&self, _: Port, id: usize) -> bool {
        self.sessions.get(id).is_some_and(ReplaySession::wants_close)
    }

    fn disconnect(&mut self, _: Port, id: usize) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.disconnect();
        }
    }

    fn end(&mut self, now: Nanos, linger_ns: u64) {
        let is_first = matches!(self.stage, Stage::Open);
        if !matches!(self.stage, Stage::Over) {
            self.stage = Stage::Ending {
                until: now.after(linger_ns),
            };
        }
        if !is_first {
            return;
        }
        for place in 0..self.listings.len() {
            self.set_status(place, TradingStatus::Closed, now);
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    fn next_seq(&self) -> SeqNo {
        self.store.next()
    }

    fn store_mut(&mut self) -> &mut MessageStore {
        &mut self.store
    }

    fn levels(&self, engine: &Engine, instrument: InstrumentId, side: Side) -> Vec<Level> {
        match self.config.log {
            MoexLog::Orders => engine.levels(instrument, side).collect(),
            MoexLog::Trades => Vec::new(),
        }
    }
}

impl Tape for MoexPublisher {
    fn set_time(&mut self, at: VenueTime) {
        self.time = self.time.max(at);
    }

    /// Milestones have no message of their own: what they mean is in every instrument's status.
    fn milestone(&mut self, _: Milestone) {}

    /// Definitions come in their loop, from the beginning on.
    fn define(&mut self, _: &Listing) {}

    fn total(&self) -> u64 {
        self.total
    }
}

impl Listener for MoexPublisher {
    fn rested(&mut self, order: &Order) {
        self.log_order(order, Action::New);
    }

    fn executed(&mut self, execution: &Execution) {
        let maker = &execution.maker;
        if self.config.log == MoexLog::Trades {
            self.log(maker.instrument, |entry| Entry {
                side: !maker.side,
                id: execution.match_number,
                resting: (!maker.hidden).then_some(maker.id),
                price: execution.price,
                qty: Some(Volume(execution.qty.0.into())),
                ..entry
            });
        } else if maker.qty == Qty(0) {
            self.log_order(maker, Action::Delete);
        } else {
            self.log_order(maker, Action::Change);
        }
    }

    fn cross_filled(&mut self, fill: &CrossFill) {
        match (fill.from_book.is_zero(), fill.order.qty.is_zero()) {
            (true, _) => {}
            (false, true) => self.log_order(&fill.order, Action::Delete),
            (false, false) => self.log_order(&fill.order, Action::Change),
        }
    }

    fn reduced(&mut self, order: &Order, _: Qty) {
        self.log_order(order, Action::Change);
    }

    fn deleted(&mut self, order: &Order) {
        self.log_order(order, Action::Delete);
    }

    fn expired(&mut self, _: &Order) {}

    /// The exchange has no replacement: the old order leaves, the new one comes.
    fn replaced(&mut self, old: &Order, new: &Order, rests: bool) {
        self.log_order(old, Action::Delete);
        if rests {
            self.log_order(new, Action::New);
        }
    }

    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        if let Some(place) = self.place_of(instrument) {
            let now = self.midnight.after(self.time);
            self.set_status(place, status, now);
        }
    }

    /// A trade without a displayed order: of the trade log only.
    fn crossed(&mut self, cross: &Cross) {
        if self.config.log == MoexLog::Trades && cross.qty > 0 {
            self.log(cross.instrument, |entry| Entry {
                id: cross.match_number,
                price: cross.price,
                qty: Some(Volume(cross.qty)),
                ..entry
            });
        }
    }

    /// Has no message in either log.
    fn indicated(&mut self, _: &Indication) {}
}

fn order_entry<'a>(entry: &Entry, listings: &'a [Listing], board: &'a str) -> OrderEntry<'a> {
    OrderEntry {
        action: entry.action,
        kind: OrderKind::Order(entry.side),
        order_id: OrderId(entry.id),
        symbol: listings[entry.place].symbol.as_bytes(),
        board: board.as_bytes(),
        rpt_seq: entry.rpt_seq,
        price: Some(entry.price),
        qty: entry.qty,
        date: None,
        time: Some(entry.at),
        order_status: match entry.action {
            Action::Delete => b"",
            _ => b"O",
        },
        session: b"N",
    }
}

fn trade_entry<'a>(entry: &Entry, listings: &'a [Listing], board: &'a str) -> TradeEntry<'a> {
    TradeEntry {
        trade_id: entry.id,
        symbol: listings[entry.place].symbol.as_bytes(),
        board: board.as_bytes(),
        rpt_seq: entry.rpt_seq,
        aggressor: entry.resting.map(|_| entry.side),
        price: Some(entry.price),
        qty: entry.qty,
        value: None,
        resting_order: entry.resting,
        date: None,
        time: Some(entry.at),
        session: b"N",
    }
}

fn snapshot_entry(order: &Order, at: Nanos) -> OrderEntry<'static> {
    OrderEntry {
        action: Action::New,
        kind: OrderKind::Order(order.side),
        order_id: order.id,
        symbol: b"",
        board: b"",
        rpt_seq: 0,
        price: Some(order.price),
        qty: Some(Volume(order.qty.0.into())),
        date: None,
        time: Some(at),
        order_status: b"O",
        session: b"N",
    }
}

fn empty_book() -> OrderEntry<'static> {
    OrderEntry {
        action: Action::New,
        kind: OrderKind::EmptyBook,
        order_id: OrderId(0),
        symbol: b"",
        board: b"",
        rpt_seq: 0,
        price: None,
        qty: None,
        date: None,
        time: None,
        order_status: b"",
        session: b"",
    }
}

/// `SecurityTradingStatus` as FIX 5.0 SP2 has it.
fn status_code(status: TradingStatus) -> i32 {
    match status {
        TradingStatus::Trading => 17,
        TradingStatus::Halted | TradingStatus::Paused => 2,
        TradingStatus::Auction => 25,
        TradingStatus::PreOpen | TradingStatus::QuoteOnly => 21,
        TradingStatus::Closed => 18,
        TradingStatus::Unknown => 20,
    }
}

persist!(value enum Stage { 0 => Open, 1 => Ending { until }, 2 => Over });
persist!(struct Loop { place, seq, due });

impl Persist for Entry {
    fn save(&self, out: &mut Bytes) {
        (self.place, self.rpt_seq, self.action as u8).save(out);
        (self.side, self.id, self.resting).save(out);
        (self.price, self.qty, self.at).save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        *self = Self::read(from)?;
        Ok(())
    }
}

impl PersistValue for Entry {
    fn read(from: &mut StateReader<'_>) -> Result<Entry, Damaged> {
        let (place, rpt_seq, action) = <(usize, u32, u8)>::read(from)?;
        let (side, id, resting) = PersistValue::read(from)?;
        let (price, qty, at) = PersistValue::read(from)?;
        let actions = [Action::New, Action::Change, Action::Delete];
        let action = *actions.get(usize::from(action)).ok_or(Damaged)?;
        Ok(Entry {
            place,
            rpt_seq,
            action,
            side,
            id,
            resting,
            price,
            qty,
            at,
        })
    }
}

// Connections of the replay server are not played back.
persist!(struct MoexPublisher {
    rpt_seqs, statuses, midnight, time, total, pending, store, sent_at, stage, others, snapshots, definitions, status_seq,
} not { config, listings, encoder, templates, scratch, sessions });
