//! `tickwire trade`: the sockets, timers and sessions around the hot loop of one trading thread.

use std::collections::BTreeMap;
use std::net::{SocketAddr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_feed::{
    ArbiterConfig, Glimpse, ItchConfig, ItchDecoder, ItchFeed, Line, STREAM_CHUNK_MAX, SessionId,
    SnapshotState, SoupConfig, Start,
};
use tickwire_fix::{
    AppMessage, CompId, DisconnectReason, Event, ExecType, ExecutionReport, Precision, Role, Session,
    SessionConfig, Status,
};
use tickwire_lab::{Probes, Stage};
use tickwire_market::{
    BookState, ClientOrderId, Counter, Counters, InstrumentId, Nanos, OrderId, Qty, Side, Symbol, Venue,
};
use tickwire_runtime::alloc;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::interface::Interface;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::tcp::{Received, TcpStream};
use tickwire_runtime::udp::{DATAGRAM_BYTES_MAX, MulticastConfig, MulticastReceiver, Stamping, UdpEndpoint};
use tickwire_runtime::wait::{WaitStrategy, Waiter};
use tickwire_trading::{OrderReport, OrderState, ReportKind, RiskConfig, TickToTrade, TradingConfig};

use crate::config::{Config, FeedSection, Wait};
use crate::demo::Notice;
use crate::failure::Failure;
use crate::hot::{HotPath, OrderOut};
use crate::results::{LevelWriter, OrderOutcome, TraderResults, counters_by_id, write_json};

impl OrderOut for TcpStream {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        TcpStream::send(self, bytes)
    }
}

/// Rounds over both lines before order entry and timers are looked at.
const PACKETS_PER_LOOK: u32 = 16;
/// How long unanswered orders are waited for after the end of the feed.
const ANSWERS_PATIENCE_NS: u64 = 2 * Nanos::SECOND;
/// How long a snapshot connection waits before it is tried again.
const SNAPSHOT_RETRY_NS: u64 = 200 * Nanos::MILLI;
/// A feed without any packet for this long is reported as lost.
const SILENCE_NS: u64 = 5 * Nanos::SECOND;

/// The feed handler of the configuration.
pub(crate) fn feed_of(c: &FeedSection) -> ItchFeed {
    let arbiter = ArbiterConfig {
        start: Start::Beginning,
        session: c.session.0.map(SessionId),
        snapshot: true,
        buffer_packets: c.buffer_packets.min(u16::MAX.into()) as u16,
        line_wait_ns: u64::from(c.line_wait_us) * Nanos::MICRO,
        request_timeout_ns: u64::from(c.request_timeout_ms) * Nanos::MILLI,
        request_attempts: c.request_attempts.min(u8::MAX.into()) as u8,
        ..ArbiterConfig::default()
    };
    let decoder = ItchDecoder::new(ItchConfig {
        venue: c.venue.0,
        midnight: Nanos::ZERO,
        instruments_max: c.max_instruments,
        symbols: None,
    });
    ItchFeed::new(arbiter, decoder)
}

/// The books of the configuration.
pub(crate) fn books_of(c: &FeedSection) -> Books {
    Books::new(BooksConfig {
        venue: c.venue.0,
        depth: Depth::Aggregated,
        instruments: c.max_instruments,
        dense_orders: c.max_orders,
        dense_order_ids: u64::from(c.max_orders) * 64,
        sparse_orders: c.max_orders / 4,
        levels: c.max_levels,
        initial: BookState::Building,
    })
}

/// The rule and its limits.
pub(crate) fn rule_of(c: &Config) -> TickToTrade {
    let t = &c.trader;
    TickToTrade::new(&TradingConfig {
        instrument: InstrumentId::WHOLE_FEED,
        lot: Qty(t.lot.0),
        time_in_force: t.time_in_force.into(),
        max_instruments: c.feed.max_instruments,
        max_orders: t.risk.max_orders,
        risk: RiskConfig {
            max_order_qty: Qty(t.risk.max_order_qty),
            price_band_bp: t.risk.price_band_bp,
            max_orders_per_window: t.risk.max_orders_per_s,
            window_ns: Nanos::SECOND,
            max_open_orders: t.risk.max_open_orders,
            max_position: t.risk.max_position,
        },
    })
}

/// The initiator's side of the order entry session.
pub(crate) fn session_of(c: &Config) -> Session {
    let id = |s: Symbol| CompId::new(s.as_bytes()).expect("a symbol fits a CompID");
    let mut session = SessionConfig::new(
        Role::Initiator,
        id(c.order_entry.trader_comp_id.0),
        id(c.order_entry.exchange_comp_id.0),
    );
    session.heartbeat_s = c.order_entry.heartbeat_s;
    session.reset_on_logon = true;
    session.precision = Precision::Nanos;
    Session::new(session)
}

/// Sockets and timers of the trading thread, around the hot path.
struct Trader<'a> {
    config: &'a Config,
    feed: ItchFeed,
    hot: HotPath<TcpStream>,
    lines: [MulticastReceiver; 2],
    retransmission: UdpEndpoint,
    snapshot: Option<Snapshot>,
    snapshot_retry: Nanos,
    waiter: Waiter,
    end: End,
    /// The exchange has ended the order entry session in good order.
    logged_out: bool,
}

/// A snapshot being loaded.
struct Snapshot {
    stream: TcpStream,
    glimpse: Glimpse,
}

/// How far the end of the session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// Trading.
    Open,
    /// The feed is complete; orders are still unanswered.
    AwaitingAnswers { since: Nanos },
    /// Our logout is out.
    LoggingOut,
    /// The session is over in good order.
    Done,
}

pub(crate) fn run(
    config: &Config,
    results: Option<&Path>,
    is_child: bool,
    stop: &StopFlag,
) -> Result<(), Failure> {
    let clock = Clock::calibrate();
    if let Some(warning) = clock.warning() {
        eprintln!("warning: {warning}");
    }
    crate::pin(config.trader.core)?;
    alloc::populate_large_blocks();
    let mut trader = Trader::start(config, clock)?;
    let outcome = trader.trade(is_child, stop);
    if outcome.is_ok() {
        if let Some(dir) = results {
            trader.write(dir)?;
        }
        if !is_child {
            print!("{}", crate::report::trader_summary(&trader.results()));
        }
    }
    outcome
}

impl<'a> Trader<'a> {
    /// Opens everything in the order that loses nothing: multicast first, then order entry.
    fn start(config: &'a Config, clock: Clock) -> Result<Trader<'a>, Failure> {
        let f = &config.feed;
        let system = |e: tickwire_runtime::NetError| Failure::system(e.to_string());
        let interface = Interface::find(&f.interface.to_string()).map_err(system)?;
        let join = |g: crate::config::Group, line: u8| {
            let mut receiver = MulticastConfig::new(SocketAddrV4::new(g.group.0, g.port), interface.clone())
                .line(line)
                .stamping(Stamping::OnDemand);
            receiver.receive_buffer_bytes = f.receive_buffer;
            MulticastReceiver::join(receiver).map_err(system)
        };
        let lines = [join(f.line_a, 0)?, join(f.line_b, 1)?];
        if let Some(warning) = lines[0].buffer_warning() {
            eprintln!("warning: {warning}");
        }
        let local = SocketAddrV4::new(f.interface, 0);
        let retransmission = UdpEndpoint::bind(local).map_err(system)?;
        let stream =
            TcpStream::connect(config.order_entry.address.into(), Duration::from_secs(5)).map_err(system)?;

        let strategy = match config.trader.wait {
            Wait::Spin => WaitStrategy::Spin,
            Wait::Poll => WaitStrategy::Poll,
            Wait::Auto => WaitStrategy::for_threads(2),
        };
        let mut waiter = Waiter::new(strategy);
        waiter.watch(&lines[0]);
        waiter.watch(&lines[1]);
        waiter.watch(&retransmission);
        waiter.watch(&stream);
        let now = clock.now();
        let mut session = session_of(config);
        session.handle_connected(now);
        let mut rule = rule_of(config);
        rule.set_session(false);
        let hot = HotPath {
            books: books_of(f),
            rule,
            session,
            template: None,
            out: stream,
            probes: Probes::new(config.trader.risk.max_orders as usize),
            clock,
            failure: None,
            withdrawn: 0,
        };
        Ok(Trader {
            config,
            feed: feed_of(f),
            hot,
            lines,
            retransmission,
            snapshot: None,
            snapshot_retry: Nanos::ZERO,
            waiter,
            end: End::Open,
            logged_out: false,
        })
    }

    fn trade(&mut self, is_child: bool, stop: &StopFlag) -> Result<(), Failure> {
        let mut buffer = vec![0_u8; DATAGRAM_BYTES_MAX];
        let mut next_look = Nanos::ZERO;
        let mut looks = 0_u32;
        let started = self.hot.clock.now();
        self.transmit_fix()?;
        while self.end != End::Done {
            self.receive(&mut buffer)?;
            let now = self.hot.clock.now();
            self.timers(now)?;
            self.order_entry(now, &mut buffer)?;
            if let Some(error) = self.hot.failure.take() {
                return Err(connection_failed(error));
            }
            self.load_snapshot(now, &mut buffer);
            if now >= next_look {
                // Everything slow, ten times a second; the clock follows the kernel's once a second.
                looks += 1;
                if looks.is_multiple_of(10) {
                    self.hot.clock.resync();
                }
                next_look = now.after(100 * Nanos::MILLI);
                if let Some(reason) = stop.reason() {
                    return Err(Failure::interrupted(format!(
                        "{reason}; open orders were left to the exchange"
                    )));
                }
                self.watch_symbol();
                self.conclude(now)?;
                self.check_silence(now, started)?;
                if is_child {
                    Notice::Progress {
                        seconds: now.since(started) as f64 / 1e9,
                        messages: self.feed.counters().get(Counter::Messages),
                        orders: self.hot.rule.counters().get(Counter::OrdersSent),
                    }
                    .send();
                }
            }
            let due = self
                .feed
                .poll_timeout()
                .map_or(Nanos::MILLI, |t| t.since(now))
                .min(Nanos::MILLI);
            self.waiter
                .wait(due)
                .map_err(|e| Failure::system(format!("waiting for packets failed: {e}")))?;
        }
        Ok(())
    }

    /// What the lines hold, up to a bound, then one retransmitted datagram. In a burst, the other sockets are looked at only
    /// every so many packets: each look is a system call.
    #[inline]
    fn receive(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        for _ in 0..PACKETS_PER_LOOK {
            let a = self.receive_line(0, Line::A, buffer)?;
            let b = self.receive_line(1, Line::B, buffer)?;
            if !(a || b) {
                break;
            }
        }
        if let Some((datagram, _)) = self.retransmission.recv_from(buffer).map_err(receive_failed)? {
            let received = self.hot.clock.nanos_at(datagram.tsc);
            self.hot.probes.begin(datagram.tsc);
            self.feed
                .on_packet(received, Line::Retransmit, datagram.bytes, &mut self.hot);
        }
        self.request()
    }

    /// One datagram of a line, so that neither is read far ahead of the other; whether there was any.
    #[inline]
    fn receive_line(&mut self, index: usize, line: Line, buffer: &mut [u8]) -> Result<bool, Failure> {
        let receiver = &mut self.lines[index];
        let Some(datagram) = receiver.recv(buffer).map_err(receive_failed)? else {
            return Ok(false);
        };
        let received = self.hot.clock.nanos_at(datagram.tsc);
        let samples = self.hot.probes.samples().len();
        self.hot.probes.begin(datagram.tsc);
        self.hot.probes.mark(Stage::Receive, datagram.tsc);
        self.feed.on_packet(received, line, datagram.bytes, &mut self.hot);
        if self.hot.probes.samples().len() > samples
            && let Some(arrived) = receiver.last_kernel_ns()
        {
            // Asked for only now that the order is out.
            self.hot
                .probes
                .amend_start(samples, self.hot.clock.tsc_at(Nanos(arrived.get())));
        }
        Ok(true)
    }

    /// Sends the retransmission requests that are due.
    #[inline]
    fn request(&mut self) -> Result<(), Failure> {
        let mut request = [0; 64];
        while let Some(bytes) = self.feed.poll_transmit(&mut request) {
            self.retransmission
                .send_to(bytes, self.config.feed.retransmission.into())
                .map_err(|e| Failure::system(format!("sending a retransmission request failed: {e}")))?;
        }
        Ok(())
    }

    fn timers(&mut self, now: Nanos) -> Result<(), Failure> {
        if self.feed.poll_timeout().is_some_and(|t| t <= now) {
            self.feed.handle_timeout(now, &mut self.hot);
            self.request()?;
        }
        if self.hot.session.poll_timeout().is_some_and(|t| t <= now) {
            self.hot.session.handle_timeout(now);
            self.transmit_fix()?;
        }
        Ok(())
    }

    /// Execution reports and session messages.
    #[inline]
    fn order_entry(&mut self, now: Nanos, buffer: &mut [u8]) -> Result<(), Failure> {
        if self.logged_out {
            return Ok(());
        }
        let received = match self.hot.out.recv(buffer) {
            Ok(Received::Nothing) => {
                if self.hot.out.has_unsent() {
                    self.hot.out.flush().map_err(connection_failed)?;
                }
                return self.session_events(now);
            }
            Ok(Received::Bytes(bytes)) => bytes.len(),
            Ok(Received::Closed) => {
                self.hot.session.handle_disconnected(now);
                self.session_events(now)?;
                if self.logged_out {
                    return Ok(());
                }
                if self.end == End::LoggingOut || self.end == End::Done {
                    self.end = End::Done;
                    return Ok(());
                }
                return Err(Failure::peer_lost(format!(
                    "the exchange at {} closed the order entry connection before the session's end; was it stopped or killed?",
                    self.hot.out.peer()
                )));
            }
            Err(e) => return Err(connection_failed(e)),
        };
        let mut bytes = &buffer[..received];
        while !bytes.is_empty() {
            let taken = self.hot.session.handle_bytes(now, bytes);
            bytes = &bytes[taken..];
            self.transmit_fix()?;
            self.session_events(now)?;
        }
        self.transmit_fix()
    }

    fn session_events(&mut self, now: Nanos) -> Result<(), Failure> {
        while let Some(event) = self.hot.session.poll_event() {
            match event {
                Event::LoggedOn { .. } => self.hot.rule.set_session(true),
                Event::App {
                    message: AppMessage::ExecutionReport(report),
                    ..
                } => self.execution_report(&report),
                // Reports of a kind the rule never asks for; the session has counted and sequenced them.
                Event::App { .. } | Event::Gap { .. } => {}
                Event::Rejected { ref_seq, text, .. } => {
                    return Err(Failure::peer_lost(format!(
                        "the exchange rejected our message {ref_seq} ({}); trading on would hide a fault",
                        text.as_str()
                    )));
                }
                Event::Disconnect { reason, text } => {
                    self.transmit_fix()?;
                    self.hot.session.handle_disconnected(now);
                    self.hot.rule.set_session(false);
                    if self.end == End::LoggingOut {
                        self.end = End::Done;
                        return Ok(());
                    }
                    if reason == DisconnectReason::PeerLogout {
                        // The exchange closes order entry at the end of its day; market data may still be under way.
                        self.logged_out = true;
                        return Ok(());
                    }
                    return Err(Failure::peer_lost(format!(
                        "the order entry session ended early: {reason:?} {}",
                        text.as_str()
                    )));
                }
            }
        }
        Ok(())
    }

    fn execution_report(&mut self, report: &ExecutionReport) {
        let Some(kind) = report_kind(report) else { return };
        // An answer to a cancel request names the order by OrigClOrdID.
        let id = if report.orig_cl_ord_id.is_empty() {
            report.cl_ord_id
        } else {
            report.orig_cl_ord_id
        };
        let report = OrderReport {
            id: ClientOrderId(id.to_number().unwrap_or(0)),
            venue_id: report.order_id.to_number().map(OrderId),
            kind,
        };
        // What does not fit is counted as unmatched and stops trading where a fill is concerned.
        let _ = self.hot.rule.on_report(&report);
    }

    fn transmit_fix(&mut self) -> Result<(), Failure> {
        let mut chunk = [0_u8; 4096];
        while let Some(bytes) = self.hot.session.poll_transmit(&mut chunk) {
            self.hot.out.send(bytes).map_err(connection_failed)?;
        }
        Ok(())
    }

    /// Once the directory names the symbol and the session is on, the rule watches it.
    fn watch_symbol(&mut self) {
        if self.hot.template.is_some() || self.hot.session.status() != Status::Active {
            return;
        }
        let symbol = self.config.trader.symbol.0;
        if let Some(id) = self.feed.decoder().find(&symbol) {
            self.hot.template = self.hot.session.order_template(symbol);
            self.hot.rule.watch(id);
        }
    }

    /// Connects to the snapshot server when the feed cannot be made whole otherwise.
    fn load_snapshot(&mut self, now: Nanos, buffer: &mut [u8]) {
        if self.snapshot.is_none() {
            if !self.feed.wants_snapshot() || now < self.snapshot_retry {
                return;
            }
            self.snapshot_retry = now.after(SNAPSHOT_RETRY_NS);
            let address = SocketAddr::from(self.config.feed.snapshot);
            match TcpStream::connect(address, Duration::from_secs(1)) {
                Ok(stream) => {
                    let mut glimpse = Glimpse::new(SoupConfig::default());
                    glimpse.handle_connected(now);
                    self.snapshot = Some(Snapshot { stream, glimpse });
                }
                Err(e) => eprintln!("warning: no snapshot yet: {e}"),
            }
        }
        let Some(snapshot) = &mut self.snapshot else {
            return;
        };
        let mut is_over = snapshot.step(now, buffer, &mut self.feed, &mut self.hot).is_err();
        match snapshot.glimpse.state() {
            SnapshotState::Done(_) => is_over = true,
            SnapshotState::Failed(reason) => {
                eprintln!("warning: the snapshot failed ({reason:?}); trying again");
                is_over = true;
            }
            _ => {}
        }
        if is_over {
            self.snapshot = None;
        }
    }

    /// After the feed's end: waits for answers, then logs out.
    fn conclude(&mut self, now: Nanos) -> Result<(), Failure> {
        match self.end {
            End::Open if self.feed.is_done() => self.end = End::AwaitingAnswers { since: now },
            End::AwaitingAnswers { .. } if self.logged_out => self.end = End::Done,
            End::AwaitingAnswers { since } => {
                let unanswered = self.hot.rule.orders().count(OrderState::PendingNew);
                if unanswered == 0 || now.since(since) > ANSWERS_PATIENCE_NS {
                    self.hot.session.logout(now, "end of session");
                    self.transmit_fix()?;
                    self.end = End::LoggingOut;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn check_silence(&mut self, now: Nanos, started: Nanos) -> Result<(), Failure> {
        let last = self.feed.arbiter().last_packet().0.max(started.0);
        if self.end == End::Open && now.since(Nanos(last)) > SILENCE_NS && last > started.0 {
            return Err(Failure::peer_lost(format!(
                "no packet on {}:{} and {}:{} for {} s, not even a heartbeat; the books can no longer be trusted",
                self.config.feed.line_a.group.0,
                self.config.feed.line_a.port,
                self.config.feed.line_b.group.0,
                self.config.feed.line_b.port,
                SILENCE_NS / Nanos::SECOND
            )));
        }
        Ok(())
    }

    /// Everything counted on this side.
    fn counters(&self) -> Counters {
        let mut all = self.feed.counters();
        all.merge(self.hot.books.counters());
        all.merge(self.hot.rule.counters());
        all.merge(self.hot.session.counters());
        all.add(
            Counter::KernelDrops,
            self.lines.iter().map(|line| u64::from(line.kernel_drops())).sum(),
        );
        all
    }

    fn results(&self) -> TraderResults {
        let counters = self.counters();
        let orders = self.hot.rule.orders();
        let by_id: BTreeMap<String, OrderOutcome> = (1..=counters.get(Counter::OrdersSent))
            .filter_map(|id| orders.get(ClientOrderId(id)))
            .map(|o| {
                (
                    o.id.0.to_string(),
                    OrderOutcome {
                        status: ord_status(o.state),
                        filled: o.filled.0.into(),
                    },
                )
            })
            .collect();
        let position = self
            .feed
            .decoder()
            .find(&self.config.trader.symbol.0)
            .map_or(0, |id| self.hot.rule.positions().get(id).qty);
        let span = |ticks| self.hot.clock.span_ns(ticks);
        let times = self.hot.probes.stage_times(span);
        TraderResults {
            counters: counters_by_id(&counters),
            orders: by_id,
            position,
            stages: times
                .named()
                .into_iter()
                .map(|(name, h)| (name.to_string(), h.clone()))
                .collect(),
            total_series: self.hot.probes.series(Stage::Total, span),
            samples_dropped: times.dropped(),
            host: crate::report::host(&self.hot.clock, Some(self.waiter.strategy())),
        }
    }

    fn write(&self, dir: &Path) -> Result<(), Failure> {
        let mut levels = LevelWriter::create(&dir.join("books-trader.txt"))?;
        for instrument in self.feed.decoder().instruments() {
            if let Some(book) = self.hot.books.book(instrument.id) {
                for side in Side::BOTH {
                    levels.book(instrument.symbol.as_str(), side, book.levels(side))?;
                }
            }
        }
        levels.finish()?;
        write_json(&dir.join("trader.json"), &self.results())
    }
}

impl Snapshot {
    /// Moves bytes both ways; an error means that the connection is over.
    fn step(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        feed: &mut ItchFeed,
        hot: &mut HotPath<TcpStream>,
    ) -> Result<(), ()> {
        let chunk = buffer.len().min(STREAM_CHUNK_MAX);
        match self.stream.recv(&mut buffer[..chunk]) {
            Ok(Received::Bytes(bytes)) => self.glimpse.handle_bytes(now, bytes, feed, hot),
            Ok(Received::Nothing) => {}
            Ok(Received::Closed) | Err(_) => {
                self.glimpse.handle_closed();
                return Err(());
            }
        }
        if self.glimpse.poll_timeout().is_some_and(|t| t <= now) {
            self.glimpse.handle_timeout(now);
        }
        let mut out = [0; 256];
        while let Some(bytes) = self.glimpse.poll_transmit(&mut out) {
            self.stream.send(bytes).map_err(drop)?;
        }
        Ok(())
    }
}

fn receive_failed(e: std::io::Error) -> Failure {
    Failure::system(format!("receiving market data failed: {e}"))
}

fn connection_failed(e: std::io::Error) -> Failure {
    Failure::peer_lost(format!("the order entry connection failed: {e}"))
}

/// What a report means for the order's state; `None` for kinds that change nothing.
fn report_kind(r: &ExecutionReport) -> Option<ReportKind> {
    match r.exec_type {
        ExecType::New => Some(ReportKind::Accepted),
        ExecType::Trade => Some(ReportKind::Filled {
            qty: r.last_qty,
            price: r.last_px.unwrap_or_default(),
            cumulative: r.cum_qty,
        }),
        ExecType::Canceled | ExecType::Expired | ExecType::DoneForDay => Some(ReportKind::Cancelled),
        ExecType::Rejected => Some(ReportKind::Rejected),
        _ => None,
    }
}

/// FIX OrdStatus of a state.
fn ord_status(state: OrderState) -> char {
    match state {
        OrderState::PendingNew => 'A',
        OrderState::New => '0',
        OrderState::PartiallyFilled => '1',
        OrderState::Filled => '2',
        OrderState::Cancelled => '4',
        OrderState::Rejected => '8',
    }
}

/// The venues whose feed is ITCH 5.0.
pub(crate) fn speaks_itch(venue: Venue) -> bool {
    matches!(venue, Venue::Nasdaq | Venue::NasdaqTexas | Venue::Psx)
}
