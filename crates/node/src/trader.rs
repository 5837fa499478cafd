//! `tickwire trade`: the sockets, timers and sessions around the hot loop of one trading thread.

mod rule;
mod stop;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tickwire_book::Depth;
use tickwire_feed::{Channel, Line};
use tickwire_fix::{
    AppMessage, CancelKind, CompId, DisconnectReason, Event, ExecType, ExecutionReport, Precision, Role,
    Session, SessionConfig, Status, Version,
};
use tickwire_lab::{Probes, Stage};
use tickwire_market::{
    ClientOrderId, Counter, Counters, EventSink, InstrumentId, Nanos, OrderId, Port, Qty, Side, Symbol,
};
use tickwire_runtime::alloc;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::tcp::{Received, TcpStream};
use tickwire_runtime::udp::DATAGRAM_BYTES_MAX;
use tickwire_runtime::wait::Waiter;

use tickwire_trading::{
    OrderReport, OrderState, ReportKind, RiskConfig, Silence, TickToTrade, TradingConfig,
};

use crate::controls::beat::Beat;
use crate::controls::{Guards, check_venue_cancels, named};
use crate::hot::{HotPath, OrderOut};
use crate::link::{Entry, Link};
use crate::settings::NodeConfig;
use tickwire_console::failure::Failure;
use tickwire_console::health::{count_waits, follow_clock, follow_if_set};
use tickwire_console::warn;
use tickwire_control::notice::Notice;
use tickwire_control::results::{LevelWriter, OrderOutcome, TraderResults, counters_by_id, write_json};
use tickwire_control::thread::ControlThread;
use tickwire_receive::intake::Intake;
use tickwire_venues::order_entry::OrderEntrySection;
use tickwire_venues::wait::Waiting;
use tickwire_venues::wiring;
use tickwire_venues::wiring::{Reception, WithChannel};

pub use rule::Rule;
use stop::{Desk, Shared, Stopping, Told};
pub use stop::{TraderWord, tell};

/// Rounds over both lines before order entry and timers are looked at.
const PACKETS_PER_LOOK: u32 = 16;
/// How long the end of every order is waited for after the end of the feed.
const ANSWERS_PATIENCE_NS: u64 = 30 * Nanos::SECOND;
/// A feed without any packet for this long is reported as lost.
pub const SILENCE_NS: u64 = 5 * Nanos::SECOND;

/// A turn of the loop that comes so much after the one before: the thread did not run meanwhile, and what rests by what it knew is cancelled.
const STALL_NS: u64 = Nanos::SECOND;
/// How long the answers to the last cancels are waited for at the end of a run.
const LEAVING_NS: u64 = 2 * Nanos::SECOND;

/// The rule and its limits.
pub fn rule_of(c: &NodeConfig) -> TickToTrade {
    let t = &c.trader;
    TickToTrade::new(&TradingConfig {
        instrument: InstrumentId::WHOLE_FEED,
        lot: Qty(t.lot.0),
        time_in_force: t.time_in_force.into(),
        max_instruments: c.receiver.max_instruments,
        max_orders: t.risk.max_orders,
        risk: RiskConfig {
            max_order_qty: Qty(t.risk.max_order_qty),
            price_band_bp: t.risk.price_band_bp,
            max_orders_per_window: t.risk.max_orders_per_s,
            window_ns: Nanos::SECOND,
            max_open_orders: t.risk.max_open_orders,
            max_position: t.risk.max_position,
            controls: c.controls.of_trader(),
        },
    })
}

/// The initiator's side of the order entry session.
pub fn session_of(section: &OrderEntrySection) -> Session {
    let id = |s: Symbol| CompId::new(s.as_bytes()).expect("a symbol fits a CompID");
    let version = section.version_of(section.trader_comp_id);
    let mut session = SessionConfig::new(
        Role::Initiator,
        id(section.trader_comp_id.0),
        id(section.exchange_comp_id.0),
    )
    .of_version(version);
    session.heartbeat_s = section.heartbeat_s_of(section.trader_comp_id);
    session.reset_on_logon = true;
    session.cancels_tag = section.cancel_on_disconnect_tag;
    if version >= Version::Fix44 {
        session.precision = Precision::Nanos;
    }
    Session::new(session)
}

/// Sockets and timers of the trading thread, around the hot path.
struct Trader<'a, C, R> {
    config: &'a NodeConfig,
    channel: C,
    hot: HotPath<Entry, true, R>,
    intake: Intake,
    waiting: Waiting,
    waiter: Waiter,
    link: Link,
    /// The session was lost, and the rule does not trade again yet.
    returning: Option<Returning>,
    end: End,
    /// The exchange has ended the order entry session in good order.
    logged_out: bool,
    /// How often the system's clock was set.
    clock_steps: u64,
    /// Market data: how long a pause is believed, and the last packet that was noted.
    silence: Silence,
    heard: Nanos,
    /// Nothing had come for too long when this thread looked last.
    is_suspect: bool,
    /// Since when nothing has come for too long: what was open is cancelled.
    silent_since: Option<Nanos>,
    shared: Arc<Shared>,
    beat: Option<Beat>,
    /// Everything open is being cancelled.
    stopping: Option<Stopping>,
    /// The last turn of the loop.
    turned: Nanos,
    /// When the venue is asked next what it has of our open orders.
    reconcile_at: Nanos,
    /// Times that it was something else than we believed.
    differences: u64,
    /// Whether the operator was told that a control has stopped the rule.
    told_stopped: bool,
}

/// How far a session that was lost is taken up again. The rule trades when all of it is done: nothing rests then by what was known before, and what
/// traded meanwhile is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Returning {
    /// Not logged on, or not everything is here that the venue sent.
    CatchingUp,
    /// What is open is being cancelled, and asked for until the venue has said of every order that it is over.
    Confirming,
}

/// How far the end of the session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// Trading.
    Open,
    /// The feed is complete; what became of some orders is not known yet.
    AwaitingEnds { since: Nanos },
    /// Our logout is out.
    LoggingOut,
    /// The session is over in good order.
    Done,
}

/// Runs `tickwire trade` with the built-in rule, to the end of the session or until `stop`. `results`: the folder that the run's results are
/// written to; `is_child`: the demo started it, and what it finds goes into those files instead of onto the terminal.
///
/// # Errors
/// What the configuration lacks, a socket or a session that cannot be had or is lost, a signal.
pub fn run(
    config: &NodeConfig,
    results: Option<&Path>,
    is_child: bool,
    stop: &StopFlag,
) -> Result<(), Failure> {
    run_rule(config, results, is_child, stop, rule_of(config))
}

/// The same with another rule.
pub fn run_rule<R: Rule>(
    config: &NodeConfig,
    results: Option<&Path>,
    is_child: bool,
    stop: &StopFlag,
    rule: R,
) -> Result<(), Failure>
where
    HotPath<Entry, true, R>: EventSink,
{
    let clock = Clock::calibrate();
    if let Some(warning) = clock.warning() {
        eprintln!("warning: {warning}");
    }
    tickwire_control::process::pin(config.trader.core)?;
    alloc::populate_large_blocks();
    let feed = config
        .feed
        .first()
        .ok_or_else(|| Failure::config("the configuration has no [[feed]] to trade on"))?;
    let session = Run {
        config,
        clock,
        results,
        is_child,
        stop,
        rule,
    };
    let reception = Reception::new(&config.receiver);
    wiring::with_channel(feed, 0, &reception, session)?
}

/// A run, whatever the feed.
struct Run<'a, R> {
    config: &'a NodeConfig,
    clock: Clock,
    results: Option<&'a Path>,
    is_child: bool,
    stop: &'a StopFlag,
    rule: R,
}

impl<R: Rule> WithChannel for Run<'_, R>
where
    HotPath<Entry, true, R>: EventSink,
{
    type Output = Result<(), Failure>;

    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) -> Result<(), Failure> {
        let mut trader = Trader::start(self.config, self.clock, channel, depth, self.rule)?;
        let shared = trader.shared.clone();
        let on_kill = shared.clone();
        let _guards = Guards::start(&self.config.controls, self.is_child, move || on_kill.kill())?;
        let controls = self.config.controls.clone();
        let desk = || Desk { shared, controls };
        let folder = self.config.trader.control.as_deref();
        let control = folder
            .map(|folder| ControlThread::open(folder, &self.config.access, desk()))
            .transpose()?;
        let traded = catch_unwind(AssertUnwindSafe(|| trader.trade(self.is_child, self.stop)));
        let outcome = match traded {
            Ok(outcome) => outcome,
            Err(panic) => {
                warn(format_args!(
                    "ALERT: {} panicked: everything is cancelled",
                    trader.hot.rule.callback()
                ));
                trader.leave();
                resume_unwind(panic)
            }
        };
        if outcome.is_err() {
            trader.leave();
        }
        let now = trader.hot.clock.now();
        R::finish(&mut trader.hot, now);
        if let Some(control) = control {
            control.end();
        }
        if let (Some(beat), 0) = (&trader.beat, trader.hot.rule.orders().open()) {
            beat.end();
        }
        if outcome.is_ok() {
            if let Some(dir) = self.results {
                trader.write(dir)?;
            }
            if !self.is_child {
                print!("{}", tickwire_control::summary::trader_summary(&trader.results()));
            }
        }
        outcome
    }
}

impl<'a, C: Channel, R: Rule> Trader<'a, C, R>
where
    HotPath<Entry, true, R>: EventSink,
{
    /// Takes all memory, then opens everything in the order that loses nothing: multicast first, then order entry. Memory may take
    /// seconds on a busy machine, which a connection that is to log on would not be given.
    fn start(
        config: &'a NodeConfig,
        clock: Clock,
        mut channel: C,
        depth: Depth,
        mut rule: R,
    ) -> Result<Trader<'a, C, R>, Failure> {
        let feed = &config.feed[0];
        let books = tickwire_venues::receiver::books_of(&config.receiver, channel.venue(), depth);
        rule.set_session(false);
        rule.prepare(feed.protocol(), books.config());
        let probes = Probes::new(config.trader.risk.max_orders as usize);
        let mut session = session_of(&config.order_entry);
        let waiting = config.trader.wait.choose(2);
        let mut waiter = Waiter::new(waiting.strategy);
        let ports = feed.channels[0].ports(&feed.interface);
        let intake = Intake::join(&ports, config.receiver.receive_buffer, &mut waiter)?;
        intake.introduce(&mut channel);
        if let Some(warning) = intake.live[0].buffer_warning() {
            eprintln!("warning: {warning}");
        }
        let address = config.order_entry.address.into();
        let stream = TcpStream::connect(address, Duration::from_secs(5))
            .map_err(|e| Failure::system(e.to_string()))?;
        let watch = waiter.watch(&stream);
        let wait_ns = u64::from(config.trader.reconnect_ms) * Nanos::MILLI;
        let link = Link::new(
            address,
            "nothing is sent without it, and what is open is the venue's to cancel",
            config.trader.reconnects_max,
            wait_ns,
            watch,
            clock.now(),
        );
        session.handle_connected(clock.now());
        let hot = HotPath {
            books,
            rule,
            session,
            template: None,
            out: Entry(Some(stream)),
            probes,
            clock,
            failure: None,
            withdrawn: 0,
            at_close: BTreeMap::new(),
        };
        Ok(Trader {
            config,
            channel,
            hot,
            intake,
            waiting,
            waiter,
            link,
            returning: None,
            end: End::Open,
            logged_out: false,
            clock_steps: 0,
            silence: Silence::new(config.trader.silence_ms.limits(feed.protocol())),
            heard: Nanos::ZERO,
            is_suspect: false,
            silent_since: None,
            shared: Arc::default(),
            beat: Beat::open(&config.controls)?,
            stopping: None,
            turned: Nanos::ZERO,
            reconcile_at: Nanos::ZERO,
            differences: 0,
            told_stopped: false,
        })
    }

    fn trade(&mut self, is_child: bool, stop: &StopFlag) -> Result<(), Failure> {
        let mut buffer = vec![0_u8; DATAGRAM_BYTES_MAX];
        let mut next_look = Nanos::ZERO;
        let mut looks = 0_u32;
        let started = self.hot.clock.now();
        self.transmit_fix();
        R::start(&mut self.hot, started);
        while self.end != End::Done {
            self.turn();
            self.receive(&mut buffer);
            let now = self.hot.clock.now();
            self.channel_timers(now);
            R::on_time(&mut self.hot, now);
            // The peer is not silent as long as something of it is unread: this thread may have had no core for long.
            if self.order_entry(now, &mut buffer)? {
                self.session_timers(now);
            }
            if let Some(error) = self.hot.failure.take() {
                self.lose(now, connection_failed(&error));
            }
            self.intake
                .links(now, &mut buffer, &mut self.channel, &mut self.hot);
            if now >= next_look {
                // Everything slow, ten times a second; the clock follows the kernel's once a second.
                looks += 1;
                if looks.is_multiple_of(10) {
                    let clock = &mut self.hot.clock;
                    if follow_clock(clock, &mut self.clock_steps) {
                        self.hot.session.set_wall_offset(clock.wall_offset_ns());
                    }
                }
                next_look = now.after(100 * Nanos::MILLI);
                if let Some(reason) = stop.reason() {
                    return Err(Failure::interrupted(reason.to_string()));
                }
                self.look(now);
                self.mend(now)?;
                self.watch_symbol();
                self.intake.settle();
                self.conclude(now)?;
                self.check_silence(now);
                if is_child {
                    Notice::Progress {
                        seconds: now.since(started) as f64 / 1e9,
                        messages: self.channel.counters().get(Counter::Messages),
                        orders: self.hot.rule.counters().get(Counter::OrdersSent),
                    }
                    .send();
                }
            }
            let due = self
                .channel
                .poll_timeout()
                .map_or(Nanos::MILLI, |t| t.since(now))
                .min(self.hot.rule.next_timer().map_or(Nanos::MILLI, |t| t.since(now)))
                .min(Nanos::MILLI);
            self.waiter.wait(due);
        }
        Ok(())
    }

    /// A turn of the loop begins, before anything is read: somebody may have killed, or this thread may have stood still.
    #[inline]
    fn turn(&mut self) {
        let now = self.hot.clock.now();
        if let Some(beat) = &self.beat {
            beat.turn();
        }
        let before = std::mem::replace(&mut self.turned, now);
        let has_stood = before != Nanos::ZERO && now.since(before) > STALL_NS;
        if has_stood {
            self.silence.restart(now);
        }
        if has_stood && self.hot.rule.orders().open() > 0 {
            warn(format_args!(
                "the trading thread did not run for {:.3} s: what is open is cancelled",
                now.since(before) as f64 / 1e9
            ));
            self.cancel_open(now);
        }
        match self.shared.poll() {
            None => {}
            Some(Told::Kill) => {
                self.hot.rule.kill();
                self.cancel_open(now)
            }
            Some(Told::Resume) => {
                self.hot.rule.risk_mut().revive();
                self.stopping = None;
                self.told_stopped = false;
                warn(format_args!("resumed: the rule trades again"));
            }
        }
    }

    /// Cancels everything that is open. The requests leave together.
    #[cold]
    fn cancel_open(&mut self, now: Nanos) {
        let symbol = self.config.trader.symbol.0;
        let begun = self.hot.clock.now();
        let mut count = 0_u32;
        let is_up = self.hot.session.status() == Status::Active;
        while is_up && let Some(cancel) = stop::next_cancel(&mut self.hot.rule, symbol, now) {
            count += 1;
            // Kept for no resend: what is open is asked for instead.
            if self.hot.session.send_passing(now, &cancel).is_err() {
                break;
            }
            if count.is_multiple_of(16) {
                self.transmit_fix();
            }
        }
        self.transmit_fix();
        let took = self.hot.clock.now().since(begun);
        let open = self.hot.rule.orders().open();
        match is_up {
            true => warn(format_args!(
                "{count} cancels were sent within {:.3} ms; {open} orders are open until the venue says otherwise",
                took as f64 / 1e6,
            )),
            false => warn(format_args!(
                "there is no order entry session: {open} orders are cancelled when it is back, if the venue has not done so"
            )),
        }
        self.stopping = Some(Stopping {
            since: now,
            ask_at: now.after(stop::ASK_NS),
            is_late: false,
            orders: open,
        });
    }

    /// Ten times a second: what a stop has come to, what the venue has of our orders, what a control has stopped.
    fn look(&mut self, now: Nanos) {
        let open = self.hot.rule.orders().open();
        if let Some(stopping) = &mut self.stopping {
            if open == 0 {
                if stopping.orders > 0 {
                    warn(format_args!(
                        "the venue has confirmed: none of {} orders is open any more",
                        stopping.orders
                    ));
                }
                self.stopping = None;
            } else if now.since(stopping.since) > stop::PATIENCE_NS && !stopping.is_late {
                stopping.is_late = true;
                warn(format_args!(
                    "ALERT: {open} orders are not confirmed to be over {} s after their cancels; the venue is asked again and again",
                    stop::PATIENCE_NS / Nanos::SECOND
                ));
            }
            if let Some(stopping) = &mut self.stopping
                && now >= stopping.ask_at
            {
                stopping.ask_at = now.after(stop::ASK_NS);
                self.ask_for_open(now);
            }
        } else if now >= self.reconcile_at && self.config.controls.reconcile_s > 0 {
            self.reconcile_at = now.after(u64::from(self.config.controls.reconcile_s) * Nanos::SECOND);
            self.ask_for_open(now);
        }
        if let Some(reason) = self.hot.rule.risk().stopped()
            && !std::mem::replace(&mut self.told_stopped, true)
        {
            warn(format_args!(
                "{} has stopped the rule ([controls]): nothing is sent until `tickwire trade --tell resume`",
                named(reason)
            ));
            self.cancel_open(now);
        }
        let position = self.position();
        let sent = self.hot.rule.counters().get(Counter::OrdersSent);
        let has_session = self.returning.is_none() && self.hot.session.status() == Status::Active;
        self.shared
            .note(&self.hot.rule, sent, position, self.differences, has_session);
    }

    /// There is no session any more; [`Trader::mend`] takes it up again.
    #[cold]
    fn lose(&mut self, now: Nanos, why: String) {
        if !self.link.is_up() {
            return;
        }
        if self.end == End::LoggingOut {
            self.end = End::Done;
            return;
        }
        self.hot.session.handle_disconnected(now);
        // Of this connection nothing more is to be done; of the end of the session somebody has told.
        while self.hot.session.poll_event().is_some() {}
        self.hot.rule.set_session(false);
        // What the venue says meanwhile is to be heard of.
        self.hot.session.set_reset_on_logon(false);
        self.returning = Some(Returning::CatchingUp);
        self.link.lost(now, why, &mut self.waiter);
        self.hot.out = Entry(None);
        self.hot.failure = None;
    }

    /// Ten times a second: the way back of a session that was lost, step by step.
    fn mend(&mut self, now: Nanos) -> Result<(), Failure> {
        if self.logged_out || matches!(self.end, End::LoggingOut | End::Done) {
            return Ok(());
        }
        if let Some(stream) = self.link.mend(now, &mut self.waiter)? {
            self.hot.out = Entry(Some(stream));
            self.hot.session.handle_connected(now);
            self.transmit_fix();
        }
        let open = self.hot.rule.orders().open();
        match self.returning {
            Some(Returning::CatchingUp) if self.hot.session.is_caught_up() => {
                self.returning = Some(Returning::Confirming);
                if open > 0 {
                    self.cancel_open(now);
                }
            }
            Some(Returning::Confirming) if self.stopping.is_none() && open > 0 => self.cancel_open(now),
            Some(Returning::Confirming) if open == 0 => {
                self.returning = None;
                self.hot.rule.set_session(true);
                self.link.say(format!(
                    "the order entry session goes on: everything that was missed has come, nothing of ours is open, position {}",
                    self.position()
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// Asks the venue what it has of the orders that we believe to be open.
    fn ask_for_open(&mut self, now: Nanos) {
        if self.hot.session.status() != Status::Active || self.hot.rule.orders().open() == 0 {
            return;
        }
        let symbol = self.config.trader.symbol.0;
        let open = self.hot.rule.orders().iter_open();
        let asked: Vec<_> = open
            .take(stop::ASKED_MAX)
            .map(|order| {
                (
                    order.id,
                    order.side,
                    self.hot.rule.symbol_of(order.instrument).unwrap_or(symbol),
                )
            })
            .collect();
        for (id, side, symbol) in asked {
            let put = |e: &mut tickwire_fix::Encoder<'_>| stop::put_status_request(e, id, symbol, side);
            if self.hot.session.send_any_passing(now, b"H", put).is_err() {
                break;
            }
        }
        self.transmit_fix();
    }

    /// The run ends for a reason that is no good end: what is open is cancelled, and the answers waited for, as far as there is a session.
    #[cold]
    fn leave(&mut self) {
        let began = self.hot.clock.now();
        self.hot.rule.kill();
        let mut buffer = vec![0_u8; DATAGRAM_BYTES_MAX];
        let is_up = |trader: &Self| trader.hot.session.status() == Status::Active && !trader.logged_out;
        if !is_up(self) || self.hot.rule.orders().open() == 0 {
            return self.say_what_is_open();
        }
        self.cancel_open(began);
        let mut ask_at = began.after(stop::ASK_NS);
        while self.hot.rule.orders().open() > 0 && is_up(self) {
            let now = self.hot.clock.now();
            if now.since(began) > LEAVING_NS {
                break;
            }
            if now >= ask_at {
                ask_at = now.after(stop::ASK_NS);
                self.ask_for_open(now);
            }
            if self.order_entry(now, &mut buffer).is_err() || self.hot.failure.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if is_up(self) {
            self.hot.session.logout(self.hot.clock.now(), "end of trading");
            self.transmit_fix();
        }
        self.say_what_is_open();
    }

    fn say_what_is_open(&self) {
        let open = self.hot.rule.orders().open();
        if open > 0 {
            warn(format_args!(
                "ALERT: {open} orders were not confirmed to be over; the venue cancels them with the connection if it was asked to (cancel on disconnect)"
            ));
        }
    }

    /// What the lines hold, up to a bound, then one retransmitted datagram. In a burst, the other sockets are looked at only
    /// every so many packets: each look is a system call.
    #[inline]
    fn receive(&mut self, buffer: &mut [u8]) {
        for _ in 0..PACKETS_PER_LOOK {
            let a = self.receive_line(0, Line::A, buffer);
            let b = self.intake.live.len() > 1 && self.receive_line(1, Line::B, buffer);
            if !(a || b) {
                break;
            }
        }
        let now = self.hot.clock.now();
        self.intake.recover(now, buffer, &mut self.channel, &mut self.hot);
    }

    /// One datagram of a line, so that neither is read far ahead of the other; whether there was any.
    #[inline]
    fn receive_line(&mut self, index: usize, line: Line, buffer: &mut [u8]) -> bool {
        let Some(datagram) = self.intake.receive(index, buffer) else {
            return false;
        };
        let received = self.hot.clock.nanos_at(datagram.tsc);
        let samples = self.hot.probes.samples().len();
        self.hot.probes.begin(datagram.tsc);
        self.hot.probes.mark(Stage::Receive, datagram.tsc);
        self.channel
            .on_datagram(received, Port::Live, line, datagram.bytes, &mut self.hot);
        R::after_packet(&mut self.hot, &self.channel);
        if self.hot.probes.samples().len() > samples
            && let Some(arrived) = self.intake.live[index].last_kernel_ns()
        {
            // Asked for only now that the order is out.
            self.hot.probes.amend_start(
                samples,
                self.hot
                    .clock
                    .tsc_at(self.hot.clock.at_wall(Nanos(arrived.get()))),
            );
        }
        true
    }

    fn channel_timers(&mut self, now: Nanos) {
        if self.channel.poll_timeout().is_some_and(|t| t <= now) {
            self.channel.handle_timeout(now, &mut self.hot);
            self.intake.request(&mut self.channel);
        }
    }

    fn session_timers(&mut self, now: Nanos) {
        if self.hot.session.poll_timeout().is_some_and(|t| t <= now) {
            self.hot.session.handle_timeout(now);
            self.transmit_fix();
        }
    }

    /// Execution reports and session messages; whether there were none.
    #[inline]
    fn order_entry(&mut self, now: Nanos, buffer: &mut [u8]) -> Result<bool, Failure> {
        if self.logged_out {
            return Ok(true);
        }
        let received = match self.hot.out.recv(buffer) {
            Ok(Received::Nothing) => return self.session_events(now).map(|()| true),
            Ok(Received::Bytes(bytes)) => bytes.len(),
            Ok(Received::Closed) => {
                self.hot.session.handle_disconnected(now);
                self.session_events(now)?;
                if self.end == End::LoggingOut || self.end == End::Done {
                    self.end = End::Done;
                } else if !self.logged_out {
                    let why = format!(
                        "the exchange at {} closed the order entry connection before the session's end; was it stopped or killed?",
                        self.link.peer()
                    );
                    self.lose(now, why);
                }
                return Ok(false);
            }
            Err(e) => {
                self.lose(now, connection_failed(&e));
                return Ok(false);
            }
        };
        if follow_if_set(&mut self.hot.clock, &mut self.clock_steps) {
            self.hot.session.set_wall_offset(self.hot.clock.wall_offset_ns());
        }
        let mut bytes = &buffer[..received];
        while !bytes.is_empty() {
            let taken = self.hot.session.handle_bytes(now, bytes);
            bytes = &bytes[taken..];
            self.transmit_fix();
            self.session_events(now)?;
            if !self.link.is_up() {
                return Ok(false);
            }
        }
        self.transmit_fix();
        Ok(false)
    }

    fn session_events(&mut self, now: Nanos) -> Result<(), Failure> {
        while let Some(event) = self.hot.session.poll_event() {
            match event {
                // One that was lost is taken up in steps.
                Event::LoggedOn { .. } => {
                    // Before the first order, and before the next one after a lost connection.
                    let (policy, tag) = (
                        self.config.controls.venue_cancels,
                        self.config.order_entry.cancel_on_disconnect_tag,
                    );
                    check_venue_cancels(policy, tag, self.hot.session.peer_cancels())?;
                    match self.returning.is_some() {
                        // One that was lost is taken up in steps.
                        true => self.hot.session.set_reset_on_logon(false),
                        false => self.hot.rule.set_session(true),
                    }
                }
                Event::App {
                    message: AppMessage::ExecutionReport(report),
                    ..
                } => self.execution_report(now, &report),
                Event::App {
                    message: AppMessage::OrderCancelReject(reject),
                    ..
                } => {
                    // Too late, or unknown: the order's own reports say which, or its status does.
                    let kind = match reject.response_to {
                        CancelKind::Cancel => ReportKind::CancelRejected,
                        CancelKind::Replace => ReportKind::ReplaceRejected {
                            by: ClientOrderId(reject.cl_ord_id.to_number().unwrap_or(0)),
                        },
                    };
                    let refused = OrderReport {
                        id: ClientOrderId(reject.orig_cl_ord_id.to_number().unwrap_or(0)),
                        venue_id: None,
                        kind,
                    };
                    let _ = R::on_report(&mut self.hot, now, &refused);
                }
                // Reports of a kind the rule never asks for; the session has counted and sequenced them.
                Event::App { .. } | Event::Admin { .. } | Event::Message { .. } | Event::Gap { .. } => {}
                // An initiator is asked about no logon, and no cancel is configured.
                Event::LogonRequested { .. } | Event::CancelOrders { .. } => {}
                Event::Rejected { ref_seq, text, .. } => {
                    return Err(Failure::peer_lost(format!(
                        "the exchange rejected our message {ref_seq} ({}); trading on would hide a fault",
                        text.as_str()
                    )));
                }
                Event::NotKept { first, last, count } => tickwire_console::warn(format_args!(
                    "the exchange asked for messages that are no longer kept: {count} numbers, {first} to {last}, were sent as gap fills"
                )),
                Event::Disconnect { reason, text } => {
                    self.transmit_fix();
                    self.hot.session.handle_disconnected(now);
                    self.hot.rule.set_session(false);
                    if self.end == End::LoggingOut {
                        self.end = End::Done;
                        return Ok(());
                    }
                    if reason == DisconnectReason::PeerLogout && self.returning.is_none() {
                        // The exchange closes order entry at the end of its day; market data may still be under way.
                        self.logged_out = true;
                        return Ok(());
                    }
                    let why = format!("the order entry session ended early: {reason} {}", text.as_str());
                    // Of a connection that was lost, the venue may still hold the other end; or it begins its numbers anew with every logon.
                    let is_back = self.returning.is_some();
                    let begins_anew = is_back && reason == DisconnectReason::SequenceTooLow;
                    let is_held = is_back && reason == DisconnectReason::LogonRefused;
                    if !(is_passing(reason) || begins_anew || is_held) {
                        return Err(Failure::peer_lost(why));
                    }
                    self.lose(now, why);
                    if begins_anew {
                        self.hot.session.set_reset_on_logon(true);
                        self.link.say(
                            "the venue has begun its numbers anew, so do we: what it said meanwhile is not sent again, each open order is asked for"
                                .to_string(),
                        );
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn execution_report(&mut self, now: Nanos, report: &ExecutionReport) {
        if report.exec_type == ExecType::OrderStatus {
            let (found, reports) = stop::compare(&self.hot.rule, report);
            for report in reports.iter().flatten() {
                let _ = R::on_report(&mut self.hot, now, report);
            }
            if let Some(found) = found {
                self.differences += 1;
                warn(format_args!(
                    "ALERT: the venue has order {} otherwise: {} filled, {} here{}",
                    found.id.0,
                    found.filled[1],
                    found.filled[0],
                    if found.is_over { "; it is over there" } else { "" }
                ));
            }
            return;
        }
        let replaced = (report.exec_type == ExecType::Replaced).then(|| ReportKind::Replaced {
            by: ClientOrderId(report.cl_ord_id.to_number().unwrap_or(0)),
            venue_id: report.order_id.to_number().map(OrderId),
        });
        let Some(kind) = replaced.or_else(|| report_kind(report)) else {
            return;
        };
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
        let done = R::on_report(&mut self.hot, now, &report);
        if let (Ok(change), ReportKind::Broken { qty, price, .. }) = (done, report.kind) {
            tickwire_console::warn(format_args!(
                "the venue took a trade back: {qty} at {price} of order {}; no further order is sent",
                change.order.id.0
            ));
        }
    }

    /// A failure is for the loop to see, as one of the hot path is.
    fn transmit_fix(&mut self) {
        let mut chunk = [0_u8; 4096];
        while let Some(bytes) = self.hot.session.poll_transmit(&mut chunk) {
            if let Err(error) = self.hot.out.send(bytes) {
                self.hot.failure.get_or_insert(error);
                return;
            }
        }
    }

    /// Once the directory names the symbol and the session is on, the rule watches it.
    fn watch_symbol(&mut self) {
        if self.hot.session.status() == Status::Active {
            R::watch(&mut self.hot, &self.channel, self.config.trader.symbol.0);
        }
    }

    /// After the feed's end: waits until every order has its own, then logs out.
    fn conclude(&mut self, now: Nanos) -> Result<(), Failure> {
        match self.end {
            End::Open if self.channel.is_done() => self.end = End::AwaitingEnds { since: now },
            End::AwaitingEnds { .. } if self.logged_out => self.end = End::Done,
            End::AwaitingEnds { since } => {
                // The exchange answers every order and ends those that are open at its close; what it does after our logout
                // would not be heard.
                let open = self.hot.rule.orders().open();
                if open == 0 || now.since(since) > ANSWERS_PATIENCE_NS {
                    if open > 0 && !self.link.is_up() {
                        return Err(Failure::peer_lost(format!(
                            "the feed has ended, the order entry session was lost and could not be taken up again for {} s: {open} orders have no end",
                            ANSWERS_PATIENCE_NS / Nanos::SECOND
                        )));
                    }
                    if open > 0 {
                        eprintln!(
                            "warning: {open} orders have no end {} s after the feed's; the exchange may still hold them",
                            ANSWERS_PATIENCE_NS / Nanos::SECOND
                        );
                    }
                    self.end = match self.link.is_up() {
                        true => End::LoggingOut,
                        // Nobody is there to be told.
                        false => End::Done,
                    };
                    self.hot.session.logout(now, "end of session");
                    self.transmit_fix();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Cancels what is open when market data is silent, and says when it comes again: decisions need packets, so that nothing is sent meanwhile.
    /// This thread may have had no core itself: what came meanwhile lies in the sockets, and is taken before the second look.
    fn check_silence(&mut self, now: Nanos) {
        let last = self.channel.last_packet();
        if last != self.heard {
            self.silence.on_packet(last);
            self.heard = last;
        }
        let is_silent = self.end == End::Open && self.silence.is_silent(now);
        let was_suspect = std::mem::replace(&mut self.is_suspect, is_silent);
        match self.silent_since {
            None if is_silent && was_suspect => {
                self.silent_since = Some(last);
                warn(format_args!(
                    "no packet on {} for {:.3} s: what is open is cancelled, and nothing is sent until packets come again",
                    self.intake.groups(),
                    now.since(last) as f64 / 1e9
                ));
                self.cancel_open(now);
            }
            Some(since) if !is_silent => {
                self.silent_since = None;
                warn(format_args!(
                    "packets come again after {:.3} s",
                    last.since(since) as f64 / 1e9
                ));
            }
            _ => {}
        }
    }

    /// What is held: of the instrument traded, or of all of them together.
    fn position(&self) -> i64 {
        let id = self.channel.find(&self.config.trader.symbol.0);
        self.hot.rule.position(id)
    }

    /// Everything counted on this side.
    fn counters(&self) -> Counters {
        let mut all = self.channel.counters();
        all.merge(self.hot.books.counters());
        all.merge(self.hot.rule.counters());
        all.merge(self.hot.session.counters());
        self.intake.count_into(&mut all);
        count_waits(&mut all, self.waiter.errors());
        all.add(Counter::ClockSteps, self.clock_steps);
        all
    }

    fn results(&self) -> TraderResults {
        let counters = self.counters();
        let orders = self.hot.rule.orders();
        let by_id: BTreeMap<String, OrderOutcome> = (1..=orders.last_id().0)
            .filter_map(|id| orders.get(ClientOrderId(id)))
            // The venue has an order under the last number that it was given.
            .filter(|o| {
                o.state != OrderState::Replaced && !(o.state == OrderState::Rejected && o.replaces.is_some())
            })
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
        let position = self.position();
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
            host: tickwire_control::summary::host(&self.hot.clock, Some(self.waiting.to_string())),
        }
    }

    fn write(&self, dir: &Path) -> Result<(), Failure> {
        let mut levels = LevelWriter::create(&dir.join("books-trader.txt"))?;
        let mut known = Vec::new();
        self.channel.instruments(&mut |i| known.push((i.symbol, i.id)));
        known.sort_unstable();
        for (symbol, id) in known {
            let Some(book) = self.hot.books.book(id) else {
                continue;
            };
            let at_close = self.hot.at_close.get(&id).filter(|_| book.is_empty());
            for side in Side::BOTH {
                let shown: Vec<_> = match at_close {
                    Some(closed) => closed[side as usize].clone(),
                    None => book.levels(side).collect(),
                };
                levels.book(symbol.as_str(), side, shown.into_iter())?;
            }
        }
        levels.finish()?;
        write_json(&dir.join("trader.json"), &self.results())
    }
}

fn connection_failed(e: &std::io::Error) -> String {
    format!("the order entry connection failed: {e}")
}

/// Whether a session that ended for this reason may be taken up again: another attempt does not mend numbers that do not fit, a Logon that is
/// refused for what it says, or a store.
fn is_passing(reason: DisconnectReason) -> bool {
    !matches!(
        reason,
        DisconnectReason::SequenceTooLow
            | DisconnectReason::LogonRefused
            | DisconnectReason::ProtocolViolation
            | DisconnectReason::ResendLoop
            | DisconnectReason::StoreFailed
    )
}

/// What a report means for the order's state; `None` for kinds that change nothing.
pub fn report_kind(r: &ExecutionReport) -> Option<ReportKind> {
    match r.exec_type {
        ExecType::New => Some(ReportKind::Accepted),
        ExecType::Trade => Some(ReportKind::Filled {
            qty: r.last_qty,
            price: r.last_px.unwrap_or_default(),
            cumulative: r.cum_qty,
        }),
        ExecType::TradeCancel => Some(ReportKind::Broken {
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
        OrderState::Replaced => '5',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_fix::{Id, OrdStatus, Reason};
    use tickwire_market::{Nanos, OrderType, Price, TimeInForce};

    #[test]
    fn a_trade_taken_back_is_a_report_of_its_own() {
        let report = ExecutionReport {
            order_id: Id::from_number(7),
            cl_ord_id: Id::from_number(1),
            orig_cl_ord_id: Id::EMPTY,
            exec_id: Id::from_number(9),
            exec_type: ExecType::TradeCancel,
            ord_status: OrdStatus::PartiallyFilled,
            ord_rej_reason: None,
            symbol: Symbol::EMPTY,
            side: Side::Bid,
            qty: Qty(100),
            order_type: OrderType::Limit,
            price: Some(Price::from_4dp(10_0000)),
            time_in_force: TimeInForce::Day,
            last_qty: Qty(40),
            last_px: Some(Price::from_4dp(9_0000)),
            leaves_qty: Qty(40),
            cum_qty: Qty(20),
            avg_px: Price::from_4dp(10_0000),
            transact_time: Nanos::ZERO,
            cause: None,
            text: Reason::EMPTY,
        };
        let broken = ReportKind::Broken {
            qty: Qty(40),
            price: Price::from_4dp(9_0000),
            cumulative: Qty(20),
        };
        assert_eq!(report_kind(&report), Some(broken));
    }
}
