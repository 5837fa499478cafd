//! The whole simulated venue, for one thread with real sockets, or none: bytes and time in, bytes out.
//!
//! ```text
//!  loop {
//!      exchange.on_time(now);
//!      per channel: while let Some(datagram) = exchange.poll_datagram(channel, now) { impair and send on the lines }
//!      requests:    exchange.handle_request(channel, now, bytes, &mut reply)  → one datagram back
//!      recovery:    exchange.recovery_bytes(channel, port, id, now, bytes), then drain the publisher's poll_transmit
//!      orders:      exchange.handle_bytes(id, now, bytes), then drain poll_transmit(id, ..)
//!  }
//! ```
//! A day: [`Exchange::open`], directory, first orders, continuous flow for the configured time or until
//! [`Exchange::stop`], closing messages, end-of-session packets, [`Exchange::is_over`].

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Level, Nanos, Port, Side, TradingStatus, Venue};
use tickwire_persist::persist;

use crate::breaks::BreaksConfig;
use crate::broadcast::{Broadcast, PublishedChannel};
use crate::engine::{Engine, EngineConfig};
use crate::flow::FlowConfig;
use crate::history::History;
use crate::order::{BreakReason, Firm, Reject, StateHash};
use crate::order_entry::{
    ClientNotice, ClientOrder, ClientQuote, ClientState, OrderEntryConfig, OrderGateway, RequestContext,
    Route,
};
use crate::pace::PaceConfig;
use crate::rules::{Protection, TradingAction};
use crate::session::{AuctionTimes, Session};
use crate::tape::{Datagram, Publisher, Tape};
use crate::tape::{Listing, VenueTime};

/// How long clients that are logged out have for their answer.
const GOODBYE_NS: u64 = 5 * Nanos::SECOND;

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
    /// Order entry.
    pub order_entry: OrderEntryConfig,
    /// When auctions take place; none by default.
    pub auctions: AuctionTimes,
    /// Which trades it breaks; none by default.
    pub breaks: BreaksConfig,
    /// Limits of market makers' quotes, by firm and group of instruments.
    pub protections: Vec<(Firm, u32, Protection)>,
    /// Midnight in New York before the session, since the epoch: ITCH times count from it. `None`, or one
    /// that is not within the two days before the opening: the last midnight UTC.
    pub midnight: Option<Nanos>,
    /// How long the continuous flow lasts, in nanoseconds; 0 is until [`Exchange::stop`].
    pub duration_ns: u64,
    /// How long end-of-session packets are sent at least.
    pub linger_ns: u64,
    /// How long they are sent at most, in nanoseconds: a client of order entry that is still connected has
    /// not heard of the end yet, or waits for what became of its orders. It logs out when it has heard; those
    /// who have not done so by then are logged out. Less than `linger_ns` counts as that.
    pub linger_max_ns: u64,
    /// The close waits until clients have entered so many orders and quotes of instruments, for
    /// [`ExchangeConfig::overtime_max_ns`] at most. 0: it does not.
    pub orders_min: usize,
    /// For how long beyond [`ExchangeConfig::duration_ns`] the close may wait for orders, in nanoseconds.
    pub overtime_max_ns: u64,
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
            order_entry: OrderEntryConfig::default(),
            auctions: AuctionTimes::default(),
            breaks: BreaksConfig::default(),
            protections: Vec::new(),
            midnight: None,
            duration_ns: 0,
            linger_ns: Nanos::SECOND,
            linger_max_ns: 0,
            orders_min: 0,
            overtime_max_ns: 0,
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
    /// Continuous trading, and the call phases of its opening and closing.
    Open,
    /// Client orders are rejected, closing messages go out.
    Closing,
    /// End-of-session packets go out, until clients of order entry have heard of the end.
    Ending,
    /// Nothing more is sent; requests are still answered.
    Over,
}

/// See the module's description.
pub struct Exchange {
    config: ExchangeConfig,
    engine: Engine,
    tape: Broadcast,
    session: Session,
    order_entry: OrderGateway,
    phase: DayPhase,
    /// Known once the day has begun.
    midnight: Option<Nanos>,
    opened: Nanos,
    /// Since when end-of-session packets go out.
    ending: Nanos,
    /// Clients that did not log out themselves were logged out.
    logged_out: bool,
}

impl Exchange {
    /// A venue with empty books that publishes on these channels.
    pub fn new(config: ExchangeConfig, published_channels: Vec<PublishedChannel>) -> Exchange {
        let mut engine = Engine::new(EngineConfig {
            instruments: config.listings.len() as u32,
            max_orders: config.max_orders,
            max_levels: config.max_levels,
        });
        for &(firm, group, limits) in &config.protections {
            let known = engine.set_protection(firm, group, limits);
            debug_assert!(
                known.is_ok(),
                "a protection is of a firm, and there are at most 1,024"
            );
        }
        Exchange {
            engine,
            tape: Broadcast::new(published_channels),
            session: session_of(&config, 0),
            order_entry: OrderGateway::new(&config.order_entry, &config.listings),
            phase: DayPhase::Waiting,
            midnight: None,
            opened: Nanos::ZERO,
            ending: Nanos::ZERO,
            logged_out: false,
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
            let midnight = configured.unwrap_or(Nanos(now.0 - now.0 % Nanos::DAY));
            self.midnight = Some(midnight);
            for published_channel in self.tape.published_channels_mut() {
                published_channel.publisher.open(midnight);
            }
            let start = self.venue_time(now);
            self.session = session_of(&self.config, start);
            self.phase = DayPhase::Opening;
            self.order_entry.begin(start);
        }
    }

    /// Does what is due: order flow, heartbeats of order entry and snapshot sessions, the end of the day.
    /// Call it often; true when more is due already.
    pub fn on_time(&mut self, now: Nanos) -> bool {
        let time = self.venue_time(now);
        if !matches!(self.phase, DayPhase::Waiting | DayPhase::Ending | DayPhase::Over) {
            let mut reports = self.order_entry.reports(now, time);
            let batch = self.config.batch_messages;
            self.session
                .advance(time, batch, &mut self.engine, &mut self.tape, reports.listener());
            reports.deliver();
        }
        self.turn_page(now);
        let (gateway, mut context) = self.gateway_and_context(time);
        gateway.cancel_waiting(now, &mut context);
        gateway.handle_timeout(now, &mut context);
        for published_channel in self.tape.published_channels_mut() {
            published_channel.publisher.handle_timeout(now, &self.engine);
        }
        self.poll_timeout().is_some_and(|due| due <= now)
    }

    /// Ends the day: open client orders are cancelled save those that wait for the close, new ones rejected,
    /// the close takes place and is published, then the end of the session.
    pub fn stop(&mut self, now: Nanos) {
        self.open(now);
        if matches!(self.phase, DayPhase::Opening | DayPhase::Open) {
            self.phase = DayPhase::Closing;
            let time = self.venue_time(now);
            let (gateway, mut context) = self.gateway_and_context(time);
            gateway.cancel_all(now, &mut context);
            self.session.close();
        }
    }

    /// Goes on after a restart, see [`crate::Input::Resume`].
    pub fn resume(&mut self, now: Nanos) {
        let time = self.venue_time(now);
        self.session.resume(time);
        let (gateway, mut context) = self.gateway_and_context(time);
        gateway.resume(now, &mut context);
    }

    /// Breaks a trade by its match number, which feeds and order entry know it by: feeds that have a word for
    /// it say so, and the clients in it are told. See [`Engine::break_trade`]. [`Reject::NotTrading`] once
    /// the day is closed.
    pub fn break_trade(&mut self, now: Nanos, match_number: u64, reason: BreakReason) -> Result<(), Reject> {
        if matches!(self.phase, DayPhase::Ending | DayPhase::Over) {
            return Err(Reject::NotTrading);
        }
        let time = self.venue_time(now);
        let (gateway, mut context) = self.gateway_and_context(time);
        gateway.break_trade(now, match_number, reason, &mut context)
    }

    /// Halts an instrument or resumes it, as an operator does: feeds tell its status and the auction, and
    /// clients what becomes of their orders. Auctions of the whole venue are its schedule's: one that is
    /// halted has none.
    ///
    /// # Errors
    /// [`Reject::UnknownInstrument`]; [`Reject::NotTrading`] where the action does not follow from the
    /// instrument's status, in an auction of the whole venue anything but a halt, and outside the day's
    /// trading.
    pub fn take_action(
        &mut self,
        now: Nanos,
        instrument: InstrumentId,
        action: TradingAction,
    ) -> Result<(), Reject> {
        use TradingStatus::{Auction, Halted, Paused, Trading};
        let status = self.engine.trading_status(instrument);
        let status = status.ok_or(Reject::UnknownInstrument)?;
        let follows = match action {
            TradingAction::Halt => matches!(status, Trading | Auction | Paused),
            TradingAction::Call => matches!(status, Halted | Paused),
            TradingAction::Resume => matches!(status, Halted | Paused | Auction),
        };
        let is_in_time = action == TradingAction::Halt || self.session.is_continuous();
        if self.phase != DayPhase::Open || !follows || !is_in_time {
            return Err(Reject::NotTrading);
        }
        let time = self.venue_time(now);
        let (gateway, mut context) = self.gateway_and_context(time);
        gateway.take_action(now, instrument, action, &mut context)
    }

    /// Does something to the engine while every channel listens: a test's or a benchmark's own orders.
    pub fn trade<T>(&mut self, now: Nanos, request: impl FnOnce(&mut Engine, &mut Broadcast) -> T) -> T {
        let time = self.venue_time(now);
        self.tape.set_time(time);
        self.engine.set_time(time);
        request(&mut self.engine, &mut self.tape)
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
        let channels = self.tape.published_channels().iter();
        let channels = channels
            .filter_map(|published_channel| published_channel.publisher.poll_timeout())
            .min();
        [flow, channels, self.order_entry.poll_timeout(), self.end_due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The next datagram of a channel, before any trouble on the lines.
    pub fn poll_datagram(&mut self, published_channel: usize, now: Nanos) -> Option<Datagram<'_>> {
        let published_channel = self.tape.published_channels_mut().get_mut(published_channel)?;
        published_channel.publisher.poll_datagram(now)
    }

    /// Answers a datagram to a channel's [`tickwire_market::Port::Requests`]: the length of the one written
    /// into `reply`.
    pub fn handle_request(
        &mut self,
        published_channel: usize,
        now: Nanos,
        bytes: &[u8],
        reply: &mut [u8],
    ) -> Option<usize> {
        let published_channel = self.tape.published_channels_mut().get_mut(published_channel)?;
        published_channel.publisher.handle_request(now, bytes, reply)
    }

    /// The channels that it publishes.
    pub fn published_channels(&self) -> &[PublishedChannel] {
        self.tape.published_channels()
    }

    /// Bytes of a recovery connection of a channel; everything else about one is [`Publisher`]'s own, see
    /// [`Exchange::publisher_mut`].
    pub fn recovery_bytes(
        &mut self,
        published_channel: usize,
        port: Port,
        id: usize,
        now: Nanos,
        bytes: &[u8],
    ) {
        if let Some(published_channel) = self.tape.published_channels_mut().get_mut(published_channel) {
            published_channel
                .publisher
                .handle_bytes(port, id, now, bytes, &self.engine);
        }
    }

    /// A channel.
    pub fn publisher_mut(&mut self, published_channel: usize) -> Option<&mut dyn Publisher> {
        let published_channel = self.tape.published_channels_mut().get_mut(published_channel)?;
        Some(&mut *published_channel.publisher)
    }

    /// The histories of its channels.
    pub fn histories_mut(&mut self) -> impl Iterator<Item = &mut (dyn History + 'static)> {
        let published_channels = self.tape.published_channels_mut().iter_mut();
        published_channels
            .filter_map(|published_channel| published_channel.publisher.store_mut().history_mut())
    }

    /// How far UTC is from the time that this is told, nanoseconds: FIX order entry is stamped, and checks
    /// stamps, by UTC.
    pub fn set_wall_offset(&mut self, offset_ns: i64) {
        self.order_entry.set_wall_offset(offset_ns);
    }

    /// An order entry connection is there; `false` if the number is out of range or taken.
    pub fn connect(&mut self, id: usize, now: Nanos) -> bool {
        self.order_entry.connect(id, now)
    }

    /// Bytes of an order entry connection. How many were taken: fewer than all only when the client does not
    /// read what it is sent; drain [`Exchange::poll_transmit`] and hand over the rest.
    pub fn handle_bytes(&mut self, id: usize, now: Nanos, bytes: &[u8]) -> usize {
        let time = self.venue_time(now);
        let (gateway, mut context) = self.gateway_and_context(time);
        gateway.handle_bytes(id, now, bytes, &mut context)
    }

    /// Bytes to send on an order entry connection, as many as fit. Any connection may have some after any
    /// call.
    pub fn poll_transmit<'b>(&mut self, id: usize, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        self.order_entry.poll_transmit(id, buf)
    }

    /// Whether an order entry connection is to be closed, once everything is transmitted.
    pub fn wants_close(&self, id: usize) -> bool {
        self.order_entry.wants_close(id)
    }

    /// A hash over the books, the ledger and the sequence numbers of order entry: equal after equal inputs.
    pub fn state_hash(&self) -> u64 {
        let mut hash = StateHash::default();
        hash.word(self.books_digest());
        hash.word(self.order_entry.state_hash());
        // Whether the last packets were sent is not of the inputs.
        hash.word((self.phase as u64).min(DayPhase::Ending as u64));
        hash.word(self.total());
        hash.value()
    }

    /// An order entry connection is gone: its open orders are cancelled.
    pub fn disconnect(&mut self, id: usize, now: Nanos) {
        let time = self.venue_time(now);
        let (gateway, mut context) = self.gateway_and_context(time);
        gateway.disconnect(id, now, &mut context);
    }

    /// What happened to a client's session: who came and went, why, and what was cancelled with it. Nobody
    /// has to ask; the oldest are lost then.
    pub fn poll_client_notice(&mut self) -> Option<ClientNotice> {
        self.order_entry.poll_notice()
    }

    /// How every client stands.
    pub fn clients(&self) -> Vec<ClientState> {
        self.order_entry.clients()
    }

    /// What a client is called: its CompID, or its user name.
    pub fn client_name(&self, route: Route) -> &str {
        self.order_entry.client_name(route)
    }

    /// Every order that clients sent, in the order of arrival.
    pub fn ledger(&self) -> &[ClientOrder] {
        self.order_entry.ledger()
    }

    /// Execution reports that could not be sent because the client was gone or did not read.
    pub fn reports_lost(&self) -> u64 {
        self.order_entry.reports_lost()
    }

    /// Every quote that a market maker entered in the day, as it stands.
    pub fn quotes(&self) -> impl Iterator<Item = ClientQuote> + '_ {
        self.order_entry.quotes()
    }

    /// Client orders rejected because the ledger was full; they are not in it.
    pub fn orders_unrecorded(&self) -> u64 {
        self.order_entry.unrecorded()
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

    /// Keeps from now on which instruments' books change, for [`Exchange::poll_changed`].
    pub fn follow_changes(&mut self) {
        self.tape.follow_changes(self.config.listings.len());
    }

    /// An instrument whose book has changed since it was asked for.
    pub fn poll_changed(&mut self) -> Option<InstrumentId> {
        self.tape.poll_changed()
    }

    /// Tells the channels of an instrument that its book at some venue has changed: another's, whose engine
    /// is given, or this one's. Not before the day has begun, nor after its last message.
    pub fn hear(&mut self, now: Nanos, venue: Venue, instrument: InstrumentId, other: Option<&Engine>) {
        if matches!(self.phase, DayPhase::Waiting | DayPhase::Ending | DayPhase::Over) {
            return;
        }
        let time = self.venue_time(now);
        for published_channel in self.tape.published_channels_mut() {
            if published_channel.instruments.contains(&instrument.0) {
                published_channel.publisher.set_time(time);
                published_channel
                    .publisher
                    .quoted(venue, instrument, other.unwrap_or(&self.engine));
            }
        }
    }

    /// How many messages were published, over all channels.
    pub fn total(&self) -> u64 {
        self.tape.total()
    }

    fn turn_page(&mut self, now: Nanos) {
        match self.phase {
            DayPhase::Opening if self.session.is_open() => {
                self.phase = DayPhase::Open;
                self.opened = now;
            }
            DayPhase::Open if self.is_time_to_close(now) => self.stop(now),
            DayPhase::Open if self.session.is_crossed() => self.stop(now),
            DayPhase::Closing if self.session.is_closed() => {
                self.phase = DayPhase::Ending;
                self.ending = now;
                let longest = self.config.linger_ns.max(self.config.linger_max_ns);
                for published_channel in self.tape.published_channels_mut() {
                    published_channel.publisher.end(now, longest);
                }
            }
            DayPhase::Ending => self.linger(now),
            _ => {}
        }
    }

    fn is_time_to_close(&self, now: Nanos) -> bool {
        let ExchangeConfig {
            duration_ns,
            orders_min,
            overtime_max_ns,
            ..
        } = self.config;
        let open_ns = now.since(self.opened);
        if duration_ns == 0 || open_ns < duration_ns {
            return false;
        }
        let entered = || self.order_entry.ledger().len() + self.order_entry.quotes().count();
        open_ns >= duration_ns.saturating_add(overtime_max_ns) || entered() >= orders_min
    }

    /// The end of the session is said again and again until every client has heard of it and logged out. Who
    /// was asked to log out before all its orders were answered would not hear the answers.
    fn linger(&mut self, now: Nanos) {
        let lasted = now.since(self.ending);
        let longest = self.config.linger_ns.max(self.config.linger_max_ns);
        let has_clients = self.order_entry.has_clients();
        if lasted >= longest && !self.logged_out {
            self.logged_out = true;
            let time = self.venue_time(now);
            self.order_entry.logout(now, time);
        }
        if lasted >= self.config.linger_ns && !has_clients {
            for published_channel in self.tape.published_channels_mut() {
                published_channel.publisher.end(now, 0);
            }
        }
        // Whoever does not answer a logout has been hung up on by now.
        let is_alone = !has_clients || lasted >= longest.saturating_add(GOODBYE_NS);
        if is_alone
            && self
                .tape
                .published_channels()
                .iter()
                .all(|o| o.publisher.is_over())
        {
            self.phase = DayPhase::Over;
        }
    }

    /// When the day's end goes on by itself.
    fn end_due(&self) -> Option<Nanos> {
        let longest = self.config.linger_ns.max(self.config.linger_max_ns);
        let least = self.ending.after(self.config.linger_ns);
        match (self.phase, self.order_entry.has_clients()) {
            (DayPhase::Ending, true) if !self.logged_out => Some(self.ending.after(longest)),
            (DayPhase::Ending, true) => Some(self.ending.after(longest).after(GOODBYE_NS)),
            (DayPhase::Ending, false) => Some(least),
            _ => None,
        }
    }

    fn gateway_and_context(&mut self, time: VenueTime) -> (&mut OrderGateway, RequestContext<'_>) {
        let no_cancel = self.session.no_cancel(time);
        let (flow, breaks) = self.session.hands_mut();
        let context = RequestContext {
            engine: &mut self.engine,
            tape: &mut self.tape,
            flow,
            breaks,
            time,
            no_cancel,
            is_open: self.phase == DayPhase::Open,
        };
        (&mut self.order_entry, context)
    }

    /// 0 before the day has begun; nothing is published then.
    fn venue_time(&self, now: Nanos) -> VenueTime {
        self.midnight.map_or(0, |midnight| now.since(midnight))
    }
}

fn session_of(config: &ExchangeConfig, start: VenueTime) -> Session {
    let ExchangeConfig {
        flow,
        pace,
        auctions,
        breaks,
        ref listings,
        ..
    } = *config;
    Session::new(flow, pace, auctions, breaks, listings, start)
}

persist!(value enum DayPhase { 0 => Waiting, 1 => Opening, 2 => Open, 3 => Closing, 4 => Ending, 5 => Over });
persist!(struct Exchange {
    engine, tape, session, order_entry, phase, midnight, opened, ending, logged_out,
} not { config });
