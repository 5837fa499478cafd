//! The whole simulated venue, for one thread with real sockets, or none: bytes and time in, bytes out.
//!
//! ```text
//!  loop {
//!      exchange.on_time(now);
//!      while let Some(datagram) = exchange.poll_datagram(now) { impair and send on the lines }
//!      requests:   exchange.handle_request(bytes, &mut reply)  → one datagram back
//!      orders:     exchange.handle_bytes(id, now, bytes), then drain poll_transmit(id, ..)
//!      snapshots:  exchange.glimpse_bytes(id, now, bytes), then drain glimpse_transmit(id, ..)
//!  }
//! ```
//! A day: [`Exchange::open`], directory, first orders, continuous flow for the configured time or until
//! [`Exchange::stop`], closing messages, end-of-session packets, [`Exchange::is_over`].

use alloc::vec::Vec;

use tickwire_fix::DisconnectReason;
use tickwire_market::{InstrumentId, Level, Nanos, SeqNo, Side, TradingStatus};
use tickwire_wire::itch50::MESSAGE_SIZE_MAX;

use crate::desk::{ClientOrder, Desk, DeskConfig, Floor};
use crate::engine::{Engine, EngineConfig};
use crate::flow::FlowConfig;
use crate::glimpse::{GlimpseConfig, GlimpseLogin, GlimpseSession};
use crate::mold::{ChannelConfig, Datagram, MoldChannel};
use crate::order::{Order, StateHash};
use crate::pace::PaceConfig;
use crate::publish::{ItchPublisher, Listing, VenueTime, write_add, write_directory, write_status};
use crate::session::Session;

/// Everything about a simulated venue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExchangeConfig {
    /// Its instruments, see [`crate::listings`].
    pub listings: Vec<Listing>,
    /// Resting orders of all instruments together, at least a quarter more than the flow's.
    pub max_orders: u32,
    /// Price levels of one side of one instrument.
    pub max_levels: u32,
    /// The order flow.
    pub flow: FlowConfig,
    /// Its rate.
    pub pace: PaceConfig,
    /// The market data channel.
    pub channel: ChannelConfig,
    /// Order entry.
    pub desk: DeskConfig,
    /// The snapshot service.
    pub glimpse: GlimpseConfig,
    /// Snapshot connections are numbered 0 to this, exclusive.
    pub glimpse_connections: usize,
    /// Midnight in New York before the session, since the epoch: ITCH times count from it. `None`, or one that is not
    /// within the two days before the opening: the last midnight UTC.
    pub midnight: Option<Nanos>,
    /// How long the continuous flow lasts, in nanoseconds; 0 is until [`Exchange::stop`].
    pub duration_ns: u64,
    /// How long end-of-session packets are sent.
    pub linger_ns: u64,
    /// The most messages one [`Exchange::on_time`] publishes before it returns to let sockets be served.
    pub batch_messages: u64,
}

impl Default for ExchangeConfig {
    fn default() -> ExchangeConfig {
        ExchangeConfig {
            listings: crate::listings(100),
            max_orders: 1 << 20,
            max_levels: 1024,
            flow: FlowConfig::default(),
            pace: PaceConfig::default(),
            channel: ChannelConfig::default(),
            desk: DeskConfig::default(),
            glimpse: GlimpseConfig::default(),
            glimpse_connections: 4,
            midnight: None,
            duration_ns: 0,
            linger_ns: Nanos::SECOND,
            batch_messages: 64,
        }
    }
}

/// Where a day stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DayPhase {
    /// Before [`Exchange::open`]: only heartbeats.
    Waiting,
    /// Directory and first orders; client orders are rejected.
    Opening,
    /// Continuous trading.
    Open,
    /// Client orders are rejected, closing messages go out.
    Closing,
    /// End-of-session packets go out.
    Ending,
    /// Nothing more is sent; requests are still answered.
    Over,
}

/// See the module's description.
pub struct Exchange {
    config: ExchangeConfig,
    engine: Engine,
    publisher: ItchPublisher<MoldChannel>,
    session: Session,
    desk: Desk,
    glimpse: Vec<GlimpseSession>,
    phase: DayPhase,
    /// Known once the day has begun.
    midnight: Option<Nanos>,
    opened: Nanos,
}

impl Exchange {
    /// A venue with empty books. Everything is allocated here, except snapshots for clients.
    pub fn new(config: ExchangeConfig) -> Exchange {
        let engine = Engine::new(EngineConfig {
            instruments: config.listings.len() as u32,
            max_orders: config.max_orders,
            max_levels: config.max_levels,
        });
        Exchange {
            engine,
            publisher: ItchPublisher::new(&config.listings, MoldChannel::new(config.channel)),
            session: Session::new(config.flow, config.pace, &config.listings, 0),
            desk: Desk::new(config.desk, &config.listings),
            glimpse: (0..config.glimpse_connections)
                .map(|_| GlimpseSession::new(config.glimpse))
                .collect(),
            phase: DayPhase::Waiting,
            midnight: None,
            opened: Nanos::ZERO,
            config,
        }
    }

    /// Begins the day.
    pub fn open(&mut self, now: Nanos) {
        if self.phase == DayPhase::Waiting {
            let configured = self
                .config
                .midnight
                .filter(|m| *m <= now && now.since(*m) < 2 * Nanos::DAY);
            self.midnight = Some(configured.unwrap_or(Nanos(now.0 - now.0 % Nanos::DAY)));
            let start = self.venue_time(now);
            self.session = Session::new(self.config.flow, self.config.pace, &self.config.listings, start);
            self.phase = DayPhase::Opening;
        }
    }

    /// Does what is due: order flow, heartbeats of order entry and snapshot sessions, the end of the day. Call it often;
    /// true when more is due already.
    pub fn on_time(&mut self, now: Nanos) -> bool {
        let time = self.venue_time(now);
        if !matches!(self.phase, DayPhase::Waiting | DayPhase::Ending | DayPhase::Over) {
            let mut reports = self.desk.reports(now);
            let batch = self.config.batch_messages;
            self.session
                .advance(time, batch, &mut self.engine, &mut self.publisher, &mut reports);
        }
        self.turn_page(now);
        let (desk, mut floor) = self.floor(time);
        desk.handle_timeout(now, &mut floor);
        self.glimpse
            .iter_mut()
            .for_each(|session| session.handle_timeout(now));
        self.poll_timeout().is_some_and(|due| due <= now)
    }

    /// Ends the day: open client orders are cancelled, new ones rejected, the close is published, then the end of the
    /// session.
    pub fn stop(&mut self, now: Nanos) {
        self.open(now);
        if matches!(self.phase, DayPhase::Opening | DayPhase::Open) {
            self.phase = DayPhase::Closing;
            let time = self.venue_time(now);
            let (desk, mut floor) = self.floor(time);
            desk.cancel_all(now, &mut floor);
            self.session.close();
        }
    }

    /// Where the day stands.
    pub fn phase(&self) -> DayPhase {
        self.phase
    }

    /// Whether everything was sent, the configured time of end-of-session packets included.
    pub fn is_over(&self) -> bool {
        self.phase == DayPhase::Over
    }

    /// When [`Exchange::on_time`] or [`Exchange::poll_datagram`] has something to do next.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let flow = match self.phase {
            DayPhase::Waiting | DayPhase::Ending | DayPhase::Over => None,
            _ => self
                .session
                .due()
                .map(|due| self.midnight.unwrap_or_default().after(due)),
        };
        let glimpse = self.glimpse.iter().filter_map(GlimpseSession::poll_timeout).min();
        [
            flow,
            glimpse,
            self.desk.poll_timeout(),
            self.publisher.sink().poll_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The next datagram of market data, before any trouble on the lines.
    pub fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        self.publisher.sink_mut().poll_datagram(now)
    }

    /// Answers a MoldUDP64 request: the length of the datagram written into `reply`, see
    /// [`MoldChannel::handle_request`].
    pub fn handle_request(&self, bytes: &[u8], reply: &mut [u8]) -> Option<usize> {
        self.publisher.sink().handle_request(bytes, reply)
    }

    /// An order entry connection is there; `false` if the number is out of range or taken.
    pub fn connect(&mut self, id: usize, now: Nanos) -> bool {
        self.desk.connect(id, now)
    }

    /// Bytes of an order entry connection. How many were taken: fewer than all only when the client does not read what
    /// it is sent; drain [`Exchange::poll_transmit`] and hand over the rest.
    pub fn handle_bytes(&mut self, id: usize, now: Nanos, bytes: &[u8]) -> usize {
        let time = self.venue_time(now);
        let (desk, mut floor) = self.floor(time);
        desk.handle_bytes(id, now, bytes, &mut floor)
    }

    /// Bytes to send on an order entry connection, as many as fit. Any connection may have some after any call.
    pub fn poll_transmit<'b>(&mut self, id: usize, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        self.desk.poll_transmit(id, buf)
    }

    /// Why an order entry connection is to be closed, once everything is transmitted.
    pub fn wants_close(&self, id: usize) -> Option<DisconnectReason> {
        self.desk.closing(id)
    }

    /// An order entry connection is gone: its open orders are cancelled.
    pub fn disconnect(&mut self, id: usize, now: Nanos) {
        let time = self.venue_time(now);
        let (desk, mut floor) = self.floor(time);
        desk.disconnect(id, now, &mut floor);
    }

    /// A snapshot connection is there; `false` if the number is out of range.
    pub fn glimpse_connect(&mut self, id: usize, now: Nanos) -> bool {
        let session = self.glimpse.get_mut(id);
        session.map(|session| session.connect(now)).is_some()
    }

    /// Bytes of a snapshot connection.
    pub fn glimpse_bytes(&mut self, id: usize, now: Nanos, bytes: &[u8]) {
        let Some(session) = self.glimpse.get_mut(id) else {
            return;
        };
        session.handle_bytes(now, bytes);
        let channel = self.publisher.sink();
        match session.take_login() {
            Some(GlimpseLogin::Snapshot) => {
                let (engine, publisher) = (&self.engine, &self.publisher);
                session.load_snapshot(channel.store().next(), |out| {
                    write_snapshot(engine, publisher, out)
                });
            }
            Some(login) => session.start_replay(login, channel.session(), channel.store()),
            None => {}
        }
    }

    /// Bytes to send on a snapshot connection, as many as fit.
    pub fn glimpse_transmit<'b>(&mut self, id: usize, now: Nanos, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let session = self.glimpse.get_mut(id)?;
        let store = self.publisher.sink().store();
        session.pull(
            store,
            store.next(),
            matches!(self.phase, DayPhase::Ending | DayPhase::Over),
        );
        session.poll_transmit(now, buf)
    }

    /// Whether a snapshot connection is to be closed.
    pub fn glimpse_wants_close(&self, id: usize) -> bool {
        self.glimpse.get(id).is_some_and(GlimpseSession::wants_close)
    }

    /// A snapshot connection is gone.
    pub fn glimpse_disconnect(&mut self, id: usize) {
        if let Some(session) = self.glimpse.get_mut(id) {
            session.disconnect();
        }
    }

    /// Every order that clients sent, in the order of arrival.
    pub fn ledger(&self) -> &[ClientOrder] {
        self.desk.ledger()
    }

    /// Execution reports that could not be sent because the client was gone or did not read.
    pub fn reports_lost(&self) -> u64 {
        self.desk.reports_lost()
    }

    /// Client orders rejected because the ledger was full; they are not in it.
    pub fn orders_unrecorded(&self) -> u64 {
        self.desk.unrecorded()
    }

    /// The displayed levels of a side, best first.
    pub fn levels(
        &self,
        instrument: InstrumentId,
        side: Side,
    ) -> impl DoubleEndedIterator<Item = Level> + '_ {
        self.engine.levels(instrument, side)
    }

    /// A hash over the displayed levels of all instruments.
    pub fn books_digest(&self) -> u64 {
        let mut hash = StateHash::default();
        for listing in &self.config.listings {
            for side in Side::BOTH {
                hash.word(u64::from(listing.id.0) << 1 | side as u64);
                for level in self.levels(listing.id, side) {
                    hash.word(level.price.raw() as u64);
                    hash.word(level.qty.0);
                    hash.word(level.orders.into());
                }
            }
        }
        hash.value()
    }

    /// The instruments.
    pub fn listings(&self) -> &[Listing] {
        &self.config.listings
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The number that the next message gets.
    pub fn next_seq(&self) -> SeqNo {
        self.publisher.sink().store().next()
    }

    /// How many messages of this ITCH type were published.
    pub fn published(&self, kind: u8) -> u64 {
        self.publisher.published(kind)
    }

    fn turn_page(&mut self, now: Nanos) {
        match self.phase {
            DayPhase::Opening if self.session.is_open() => {
                self.phase = DayPhase::Open;
                self.opened = now;
            }
            DayPhase::Open
                if self.config.duration_ns > 0 && now.since(self.opened) >= self.config.duration_ns =>
            {
                self.stop(now);
            }
            DayPhase::Closing if self.session.is_closed() => {
                self.phase = DayPhase::Ending;
                self.publisher.sink_mut().end(now, self.config.linger_ns);
                self.desk.logout(now);
            }
            DayPhase::Ending if self.publisher.sink().is_over() => self.phase = DayPhase::Over,
            _ => {}
        }
    }

    fn floor(&mut self, time: VenueTime) -> (&mut Desk, Floor<'_>) {
        let floor = Floor {
            engine: &mut self.engine,
            publisher: &mut self.publisher,
            flow: self.session.flow_mut(),
            time,
            is_open: self.phase == DayPhase::Open,
        };
        (&mut self.desk, floor)
    }

    /// 0 before the day has begun; nothing is published then. The field's 48 bits are 78 hours.
    fn venue_time(&self, now: Nanos) -> VenueTime {
        self.midnight
            .map_or(0, |midnight| now.since(midnight).min((1 << 48) - 1))
    }
}

/// The messages of a snapshot. GLIMPSE 5.0: directory first, then trading status, then orders.
fn write_snapshot(engine: &Engine, publisher: &ItchPublisher<MoldChannel>, out: &mut dyn FnMut(&[u8])) {
    let at = publisher.time();
    let mut out = |message: &[u8]| {
        debug_assert!(message.len() <= MESSAGE_SIZE_MAX);
        out(message)
    };
    for listing in publisher.listings() {
        write_directory(listing, at, &mut out);
    }
    for listing in publisher.listings() {
        let status = engine
            .trading_status(listing.id)
            .unwrap_or(TradingStatus::Unknown);
        write_status(listing, status, at, &mut out);
    }
    engine.visit(&mut |order: &Order| {
        if !order.hidden {
            write_add(order, publisher.stock(order.instrument), at, &mut out);
        }
    });
}
