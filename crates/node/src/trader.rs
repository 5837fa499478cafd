//! `tickwire trade`: the sockets, timers and sessions around the hot loop of one trading thread.

mod arming;
mod results;
mod rule;
mod sessions;
mod state;
mod stop;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use tickwire_book::{Books, BooksConfig};
use tickwire_feed::Channel;
use tickwire_fix::{CompId, Precision, Role, SessionConfig, Version};
use tickwire_lab::{Arrival, Probes};
use tickwire_market::{Counter, Counters, EventSink, InstrumentId, Nanos, Port, Price, Qty, Symbol, Venue};
use tickwire_receive::receiver::{Consumer, Receiver, channels_of};
use tickwire_runtime::alloc;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::spsc;
use tickwire_runtime::stamp::RxStamp;
use tickwire_trading::strategy::{Consolidated, Strategy};
use tickwire_trading::{BestOffer, Silence, TwoLooks};

use crate::controls::beat::Beat;
use crate::controls::{Guards, named};
use crate::host::{self, Desk, Host, Path};
use crate::hot::{EntrySession, HotPath, OrderSession, session_in_memory};
use crate::link::Entry;
use crate::live::{Hosting, Live};
use crate::panics::KeptPanics;
use crate::record::Recorder;
use crate::session::Said;
use crate::settings::{NodeConfig, SendWay};
use tickwire_console::failure::Failure;
use tickwire_console::warn;
use tickwire_control::thread::ControlThread;
use tickwire_venues::order_entry::OrderEntrySection;
use tickwire_venues::receiver::books_config;

pub use results::report_kind;
pub use rule::{Routes, Rule, Wants};
use sessions::Stop;
use stop::{OperatorControl, OperatorRequest, Shared, WORDS_WAITING, Words};
pub use stop::{TraderWord, say, tell};

/// How long the end of every order is waited for after the end of the feed.
const ANSWERS_PATIENCE_NS: u64 = 30 * Nanos::SECOND;
/// A feed without any packet for this long is reported as lost.
pub const SILENCE_NS: u64 = 5 * Nanos::SECOND;

/// A turn of the loop that comes so much after the one before: the thread did not run meanwhile, and what
/// rests by what it knew is cancelled.
const STALL_NS: u64 = Nanos::SECOND;
/// How long the answers to the last cancels are waited for at the end of a run.
const LEAVING_NS: u64 = 2 * Nanos::SECOND;

/// The built-in rule and its limits: a strategy as any other, on the first channel of the first feed.
fn rule_of(c: &NodeConfig) -> Hosting<BestOffer> {
    let t = &c.trader;
    let rule = BestOffer::new(t.symbol.0, Qty(t.lot.0), t.time_in_force.into());
    Hosting {
        name: "the rule".to_string(),
        strategy: rule,
        feeds: None,
        sessions: None,
        on_every_event: true,
        ends_with_session: false,
        max_orders: t.risk.max_orders,
        risk: c.risk_of(&t.risk),
    }
}

/// The initiator's side of the order entry session, with numbers of its own.
pub fn session_of(section: &OrderEntrySection) -> EntrySession {
    session_in_memory(session_config(section))
}

fn session_config(section: &OrderEntrySection) -> SessionConfig {
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
    // Answers about quotes are no typed messages.
    if version >= Version::Fix44 {
        session.precision = Precision::Nanos;
    }
    session
}

/// Sockets and timers of the trading thread, around the hot path.
struct Trader<'a, R: Rule + 'static>
where
    HotPath<Entry, true, R>: EventSink,
{
    config: &'a NodeConfig,
    host: Host<HotPath<Entry, true, R>, true>,
    is_child: bool,
    stop: &'a StopFlag,
    started: Nanos,
    /// By line: how far cancelling is.
    stops: Vec<Stop>,
    routes: Routes,
    /// By channel.
    hearing: Vec<Hearing>,
    end: End,
    shared: Arc<Shared>,
    /// An operator's words to the strategies.
    words: spsc::Consumer<Words>,
    /// The last turn of the loop.
    turned: Nanos,
    /// Times that a venue had something else of our orders than we believed.
    differences: u64,
    /// By rule: whether the operator was told that a control has stopped it.
    told_stopped: Vec<bool>,
    /// Writes what is traded, where that is kept.
    recorder: Option<Recorder>,
}

/// Market data of one channel: how long a pause is believed, and the last packet that was noted.
struct Hearing {
    silence: Silence,
    heard: Nanos,
    looks: TwoLooks,
    /// Since when nothing has come for too long: what was open is cancelled.
    silent_since: Option<Nanos>,
}

impl<R: Rule + 'static> Path<true> for HotPath<Entry, true, R>
where
    HotPath<Entry, true, R>: EventSink,
{
    type Rule = R;

    #[inline(always)]
    fn hot(&self) -> &HotPath<Entry, true, R> {
        self
    }

    #[inline(always)]
    fn hot_mut(&mut self) -> &mut HotPath<Entry, true, R> {
        self
    }
}

impl<R: Rule> Consumer for HotPath<Entry, true, R>
where
    HotPath<Entry, true, R>: EventSink,
{
    type Successor = Self;

    #[inline]
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    #[inline]
    fn turn_to(&mut self, source: usize) {
        self.source = source;
    }

    #[inline]
    fn begins(&mut self, stamp: &RxStamp) -> Nanos {
        self.samples = self.probes.samples().len();
        self.probes.begin(stamp.tsc);
        self.received = self.clock.nanos_at(stamp.tsc);
        self.received
    }

    #[inline]
    fn ends<C: Channel>(&mut self, channel: &C, _: Port, stamp: impl FnOnce() -> Option<RxStamp>) {
        let now = self.received;
        R::after_packet(self, channel, now);
        R::settle(self, now);
        if self.probes.samples().len() > self.samples
            // Asked for only now that the order is out.
            && let Some(stamp) = stamp()
            && let Some(arrival) = arrival(&self.clock, &stamp)
        {
            self.probes.amend(self.samples, &arrival);
        }
    }

    fn looks<C: Channel>(&mut self, channel: &C, _: impl FnOnce(&mut Counters)) {
        R::watch(self, channel);
    }

    fn rehearsed(&self) -> Option<(InstrumentId, Price)> {
        R::rehearsed(self)
    }
}

/// How a packet came to user space, in ticks, if that is known.
fn arrival(clock: &Clock, stamp: &RxStamp) -> Option<Arrival> {
    let times = stamp.times(clock);
    match (times.hook, times.kernel) {
        (Some(hook), _) => Some(Arrival::Hook {
            wire: times.wire.map(|wire| clock.tsc_at(wire)),
            hook: clock.tsc_at(hook),
        }),
        (None, Some(at)) => Some(Arrival::Kernel { at: clock.tsc_at(at) }),
        (None, None) => None,
    }
}

/// How far the end of the session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// Trading.
    Open,
    /// The feed is complete; what became of some orders is not known yet.
    AwaitingEnds { since: Nanos },
    /// Our logouts are out.
    LoggingOut,
    /// Every session is over in good order.
    Done,
}

/// Runs `tickwire trade` with the built-in rule, to the end of the session or until `stop`. `results`: the
/// folder that the run's results are written to; `is_child`: the demo started it, and what it finds goes into
/// those files instead of onto the terminal.
///
/// # Errors
/// What the configuration lacks, a socket or a session that cannot be had or is lost, a signal.
pub fn run(
    config: &NodeConfig,
    results: Option<&FilePath>,
    is_child: bool,
    stop: &StopFlag,
) -> Result<(), Failure> {
    let rule = Live::hosting(vec![rule_of(config).boxed()]).on_first_channel();
    run_rule(config, results, is_child, stop, rule)
}

/// The same with strategies of several kinds, each of which is looked up at its callbacks: of these every
/// channel of every feed is received, over as many order sessions as serve them. Its code is that of
/// [`run`]; that of one kind alone ([`run_rule`]) is compiled for it.
///
/// # Errors
/// As [`run`].
pub fn run_boxed(
    config: &NodeConfig,
    results: Option<&FilePath>,
    is_child: bool,
    stop: &StopFlag,
    strategies: Vec<Hosting<Box<dyn Strategy>>>,
) -> Result<(), Failure> {
    run_rule(config, results, is_child, stop, Live::hosting(strategies))
}

/// The same with strategies of one kind, compiled for it.
///
/// # Errors
/// As [`run`].
pub fn run_rule<R: Rule + 'static>(
    config: &NodeConfig,
    results: Option<&FilePath>,
    is_child: bool,
    stop: &StopFlag,
    rule: R,
) -> Result<(), Failure>
where
    HotPath<Entry, true, R>: EventSink,
{
    let clock = Clock::calibrate();
    if let Some(warning) = clock.warning() {
        warn(format_args!("{warning}"));
    }
    tickwire_control::process::pin(config.trader.core)?;
    alloc::populate_large_blocks();
    // Let go of behind the connections: a panic is said when its orders are cancelled.
    let _panics = KeptPanics::begin();
    let mut trader = Trader::start(config, clock, (is_child, stop), rule)?;
    let shared = trader.shared.clone();
    let (words, heard) = spsc::ring(WORDS_WAITING);
    trader.words = heard;
    let on_kill = shared.clone();
    let _guards = Guards::start(&config.controls, is_child, move || on_kill.kill())?;
    let controls = config.controls.clone();
    let desk = || OperatorControl {
        shared,
        words,
        controls,
    };
    let folder = config.trader.control.as_deref();
    let control = folder
        .map(|folder| ControlThread::open(folder, &config.access, desk()))
        .transpose()?;
    let traded = catch_unwind(AssertUnwindSafe(|| trader.trade()));
    let outcome = match traded {
        Ok(outcome) => outcome,
        Err(panic) => {
            warn(format_args!(
                "ALERT: {} panicked: everything is cancelled",
                trader.host.path.rule.callback()
            ));
            trader.leave();
            resume_unwind(panic)
        }
    };
    if outcome.is_err() {
        trader.leave();
    }
    let now = trader.host.path.clock.now();
    R::finish(&mut trader.host.path, now);
    let is_clean = trader.host.path.end_sessions(now);
    trader.recorder = None;
    if let Some(control) = control {
        control.end();
    }
    if let (Some(beat), true) = (&trader.host.beat, is_clean) {
        beat.end();
    }
    if outcome.is_ok() {
        if let Some(dir) = results {
            trader.write(dir)?;
        }
        if !is_child {
            trader.print();
        }
    }
    outcome
}

impl<'a, R: Rule + 'static> Trader<'a, R>
where
    HotPath<Entry, true, R>: EventSink,
{
    /// Takes all memory, then opens everything in the order that loses nothing: multicast first, then order
    /// entry. Memory may take seconds on a busy machine, which a connection that is to log on would not be
    /// given.
    fn start(
        config: &'a NodeConfig,
        clock: Clock,
        (is_child, stop): (bool, &'a StopFlag),
        mut rule: R,
    ) -> Result<Trader<'a, R>, Failure> {
        let mut channels = channels_of(&config.feed);
        if !rule.wants_all_feeds() {
            channels.truncate(1);
        }
        if channels.is_empty() {
            return Err(Failure::config("the configuration has no [[feed]] to trade on"));
        }
        let waiting = config.trader.wait.choose(2);
        let mut receiver = Receiver::new(&config.feed, &channels, &config.receiver, waiting.strategy)?;
        let names: Vec<&str> = receiver.facts().iter().map(|f| f.feed_name.as_str()).collect();
        let (sections, routes) = config.sessions(&names)?;
        let wants = rule.prepare(
            receiver.facts(),
            &routes,
            config.receiver.max_instruments,
            clock.now(),
        )?;
        for session in 0..sections.len() {
            rule.set_session(session, false);
        }
        // Before anything is connected: a state that cannot be had, or that does not fit, is no start.
        let (prepared, files) = state::prepare(&sections, &routes, &config.trader, &mut rule, is_child)?;
        let books = receiver.facts().iter().map(|facts| {
            Books::new(BooksConfig {
                tracked: wants.consolidated.is_some(),
                ..books_config(&config.receiver, facts.venue, facts.depth)
            })
        });
        let books = books.collect();
        let venues: Vec<Venue> = receiver.facts().iter().map(|facts| facts.venue).collect();
        let hearing = receiver.facts().iter().map(|facts| Hearing {
            silence: Silence::new(config.trader.silence_ms.limits(facts.protocol)),
            heard: Nanos::ZERO,
            looks: TwoLooks::default(),
            silent_since: None,
        });
        let hearing = hearing.collect();
        let mut probes = Probes::new(config.trader.risk.max_orders as usize);
        if config.trader.send_stamps {
            probes.await_departures();
        }
        let consolidated = wants
            .consolidated
            .map(|(symbols, bits)| Consolidated::new(&venues, bits, symbols));
        if routes.send.contains(&SendWay::Delegated) {
            receiver.guard_orders();
        }
        let pre_arms = rule.pre_arms() && routes.send.first() == Some(&SendWay::Delegated);
        if pre_arms {
            receiver.arm_orders();
        }
        receiver.join(&config.feed, &config.receiver)?;
        let mut lines = Vec::with_capacity(sections.len());
        let mut sessions = Vec::with_capacity(sections.len());
        let each = sections.iter().zip(&routes.sessions).zip(&routes.send);
        for (((section, name), send), prepared) in each.zip(prepared) {
            let (trader, waiter) = (&config.trader, &mut receiver.waiter);
            let (line, entry) = sessions::open(name, section, *send, trader, waiter, clock.now())?;
            sessions.push(prepared.connected(clock.now(), entry));
            lines.push(line);
        }
        if rule.pre_arms() {
            let arms = arming::begin(&rule, &routes, &receiver, &mut sessions);
            if let Err(why) = arms {
                warn(format_args!("orders cannot be armed: {why}"));
            }
            rule.set_arming(arms);
        }
        let shared: Arc<Shared> = Arc::default();
        let recorder = state::record(files, &rule, &mut sessions, &shared)?;
        if let Some(kill_switch) = sessions.first().and_then(|session| session.out.kill_switch()) {
            shared.guard_armed(kill_switch);
        }
        let hot = HotPath {
            books,
            consolidated,
            source: 0,
            rule,
            sessions,
            probes,
            samples: 0,
            received: Nanos::ZERO,
            by_event_time: false,
            clock,
            at_close: BTreeMap::new(),
        };
        let mut trader = Trader {
            config,
            is_child,
            stop,
            started: hot.clock.now(),
            told_stopped: vec![false; hot.rule.count()],
            stops: lines.iter().map(|_| Stop::default()).collect(),
            host: Host::new(hot, receiver, waiting, lines),
            routes,
            hearing,
            end: End::Open,
            shared,
            // Nobody speaks before there is a control socket.
            words: spsc::ring(WORDS_WAITING).1,
            turned: Nanos::ZERO,
            differences: 0,
            recorder,
        };
        trader.host.beat = Beat::open(&config.controls)?;
        trader.host.offer_time(config.trader.idle_us);
        Ok(trader)
    }

    fn trade(&mut self) -> Result<(), Failure> {
        self.started = self.host.path.clock.now();
        self.host
            .path
            .sessions
            .iter_mut()
            .for_each(OrderSession::transmit);
        let asks_ns = u64::from(self.config.controls.reconcile_s) * Nanos::SECOND;
        self.host.path.rule.reconcile_quotes(self.started, asks_ns);
        R::start(&mut self.host.path, self.started);
        host::run(self)
    }

    /// A turn of the loop begins, before anything is read: somebody may have killed, or this thread may have
    /// stood still.
    #[inline]
    fn turn(&mut self, now: Nanos) {
        let before = std::mem::replace(&mut self.turned, now);
        let has_stood = before != Nanos::ZERO && now.since(before) > STALL_NS;
        if has_stood {
            self.hearing
                .iter_mut()
                .for_each(|hearing| hearing.silence.restart(now));
        }
        if has_stood && self.host.path.rule.open(None) > 0 {
            warn(format_args!(
                "the trading thread did not run for {:.3} s: what is open is cancelled",
                now.since(before) as f64 / 1e9
            ));
            self.cancel_all(now);
        }
        match self.shared.poll() {
            None => {}
            Some(OperatorRequest::Kill) => {
                self.host.path.rule.kill();
                self.cancel_all(now)
            }
            Some(OperatorRequest::Resume) => {
                self.host.path.rule.revive();
                self.shared.lift();
                let records = self.host.path.sessions.iter_mut();
                records
                    .filter_map(|session| session.record.as_mut())
                    .for_each(|record| record.doubt(false));
                self.stops.iter_mut().for_each(|stop| stop.stopping = None);
                self.hold();
                self.told_stopped.fill(false);
                warn(format_args!("resumed: the rule trades again"));
            }
        }
        if let Some(words) = self.words.pop() {
            R::on_command(&mut self.host.path, words.as_str(), now);
            R::settle(&mut self.host.path, now);
        }
        R::on_turn(&mut self.host.path, now);
    }

    /// Ten times a second: what a stop has come to, what the venues have of our orders, what a control has
    /// stopped.
    fn survey(&mut self, now: Nanos) {
        for line in 0..self.host.lines.len() {
            self.follow_stop(line, now);
        }
        for which in 0..self.told_stopped.len() {
            if let Some(reason) = self.host.path.rule.stopped(which)
                && !std::mem::replace(&mut self.told_stopped[which], true)
            {
                warn(format_args!(
                    "{} has stopped {} ([controls]): nothing is sent until `tickwire trade --tell resume`",
                    named(reason),
                    self.host.path.rule.name(which)
                ));
                self.cancel_all(now);
            }
        }
        let position = self.position();
        let sent = self.host.path.rule.counters().get(Counter::OrdersSent);
        let mut sessions = self.host.path.sessions.iter();
        let has_sessions = sessions.all(|session| session.is_whole() && session.is_active());
        self.note_sending();
        self.shared.note(
            &self.host.path.rule,
            sent,
            position,
            self.differences,
            has_sessions,
        );
    }

    /// The run ends for a reason that is no good end: what is open is cancelled, and the answers waited for,
    /// as far as there are sessions.
    #[cold]
    fn leave(&mut self) {
        let began = self.host.path.clock.now();
        self.host.path.rule.kill();
        if !self.is_any_up() || self.host.path.rule.open(None) == 0 {
            return self.say_what_is_open();
        }
        self.cancel_all(began);
        let mut ask_at = began.after(stop::ASK_NS);
        while self.host.path.rule.open(None) > 0 && self.is_any_up() {
            let now = self.host.path.clock.now();
            let is_due = now >= ask_at;
            if is_due {
                ask_at = now.after(stop::ASK_NS);
            }
            for line in 0..self.host.lines.len() {
                if is_due {
                    self.ask_for_open(line, now);
                }
                let is_over = host::hear(self, line, now).is_err();
                if is_over || self.host.path.sessions[line].failure.is_some() {
                    self.host.lines[line].is_ended = true;
                }
            }
            // Behind what the venues have said: this thread may have stood still, and their answers lie in
            // the sockets.
            if now.since(began) > LEAVING_NS {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        for line in 0..self.host.lines.len() {
            if self.is_up(line) {
                let session = &mut self.host.path.sessions[line];
                session.fix.logout(self.host.path.clock.now(), "end of trading");
                session.transmit();
            }
        }
        self.say_what_is_open();
    }

    fn is_up(&self, line: usize) -> bool {
        self.host.path.sessions[line].is_active() && !self.host.lines[line].is_ended
    }

    fn is_any_up(&self) -> bool {
        (0..self.host.lines.len()).any(|line| self.is_up(line))
    }

    fn say_what_is_open(&self) {
        let open = self.host.path.rule.open(None);
        if open > 0 {
            warn(format_args!(
                "ALERT: {open} orders were not confirmed to be over; the venue cancels them with the connection if it was asked to (cancel on disconnect)"
            ));
        }
    }

    /// After the feeds' end: waits until every order has its own, then logs out.
    fn conclude(&mut self, now: Nanos) -> Result<(), Failure> {
        match self.end {
            End::Open if self.host.receiver.is_done() => {
                // There is nothing to wait for any more.
                (0..self.host.lines.len()).for_each(|line| self.end_all_armed(line, now));
                self.end = End::AwaitingEnds { since: now };
            }
            End::AwaitingEnds { .. } if self.host.lines.iter().all(|line| line.is_ended) => {
                self.end = End::Done
            }
            End::AwaitingEnds { since } => {
                // The exchange answers every order and ends those that are open at its close; what it does
                // after our logout would not be heard.
                let open = self.host.path.rule.open(None);
                if open == 0 || now.since(since) > ANSWERS_PATIENCE_NS {
                    let lost = (0..self.host.lines.len()).find(|line| {
                        !self.host.lines[*line].link.is_up() && self.host.path.rule.open(Some(*line)) > 0
                    });
                    if let Some(line) = lost {
                        return Err(Failure::peer_lost(format!(
                            "the feed has ended, the order entry session{} was lost and could not be taken up again for {} s: {open} orders have no end",
                            self.over(line),
                            ANSWERS_PATIENCE_NS / Nanos::SECOND
                        )));
                    }
                    if open > 0 {
                        warn(format_args!(
                            "{open} orders have no end {} s after the feed's; the exchange may still hold them",
                            ANSWERS_PATIENCE_NS / Nanos::SECOND
                        ));
                    }
                    self.end = End::LoggingOut;
                    let lines = self.host.lines.iter().zip(&mut self.host.path.sessions);
                    for ((line, session), stop) in lines.zip(&mut self.stops) {
                        // Where there is no session, nobody is there to be told.
                        stop.is_over = line.is_ended || !line.link.is_up();
                        if !line.is_ended {
                            session.release_armed(now);
                            session.fix.logout(now, "end of session");
                            session.transmit();
                        }
                    }
                    self.end_if_over();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Every session is over in good order.
    fn end_if_over(&mut self) {
        if self.end == End::LoggingOut && self.stops.iter().all(|stop| stop.is_over) {
            self.end = End::Done;
        }
    }

    /// Cancels what is open when market data of a channel is silent, and says when it comes again. Nothing is
    /// sent meanwhile, nor before the venue has confirmed the cancels, whatever other channels and timers
    /// say.
    fn check_silence(&mut self, now: Nanos) {
        for number in 0..self.hearing.len() {
            let source = self.host.receiver.source(number);
            let (last, is_done) = (source.last_packet(), source.is_done());
            let hearing = &mut self.hearing[number];
            if last != hearing.heard {
                hearing.silence.on_packet(last);
                hearing.heard = last;
            }
            let is_silent = self.end == End::Open && !is_done && hearing.silence.is_silent(now);
            let is_believed = hearing.looks.confirm(is_silent.then_some(last));
            match hearing.silent_since {
                None if is_believed => {
                    hearing.silent_since = Some(last);
                    self.hold();
                    warn(format_args!(
                        "no packet on {} for {:.3} s: what is open is cancelled, and nothing is sent until packets come again",
                        self.host.receiver.source(number).groups(),
                        now.since(last) as f64 / 1e9
                    ));
                    self.cancel_all(now);
                    let stops = self.stops.iter_mut().filter_map(|stop| stop.stopping.as_mut());
                    stops.for_each(|stopping| stopping.holds = true);
                }
                Some(since) if !is_silent => {
                    hearing.silent_since = None;
                    let silent = self
                        .hearing
                        .iter()
                        .filter(|other| other.silent_since.is_some())
                        .count();
                    warn(format_args!(
                        "packets come again after {:.3} s{}",
                        last.since(since) as f64 / 1e9,
                        match silent {
                            0 if self.is_held() =>
                                "; nothing is sent until what was cancelled is confirmed to be gone",
                            0 => "",
                            _ => "; others do not yet, and nothing is sent until they do",
                        }
                    ));
                    self.hold();
                }
                _ => {}
            }
        }
    }

    /// What is held: of the instrument traded, or of all of them together.
    fn position(&self) -> i64 {
        let id = self.host.receiver.source(0).find(&self.config.trader.symbol.0);
        self.host.path.rule.position(id)
    }
}

impl<'a, R: Rule + 'static> Desk<true> for Trader<'a, R>
where
    HotPath<Entry, true, R>: EventSink,
{
    type Path = HotPath<Entry, true, R>;

    #[inline(always)]
    fn host(&self) -> &Host<Self::Path, true> {
        &self.host
    }

    #[inline(always)]
    fn host_mut(&mut self) -> &mut Host<Self::Path, true> {
        &mut self.host
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.end == End::Done
    }

    #[inline]
    fn begins(&mut self, now: Nanos) {
        self.turn(now);
    }

    /// An answer may have to be answered, and may be about what is armed.
    #[inline]
    fn answered(&mut self, line: usize, now: Nanos) {
        self.end_armed(line, now);
    }

    fn said(&mut self, line: usize, now: Nanos, said: Said) -> Result<(), Failure> {
        self.session_said(line, now, said)
    }

    fn closed(&mut self, line: usize, now: Nanos) -> Result<(), Failure> {
        self.connection_closed(line, now)
    }

    fn failed(&mut self, line: usize, now: Nanos, error: &std::io::Error) {
        self.lose(line, now, format!("the order entry connection failed: {error}"));
    }

    #[inline]
    fn turned(&mut self, now: Nanos) {
        for line in 0..self.host.lines.len() {
            self.take_up(line, now);
        }
        // Behind what the venues have said: this thread may have stood still since the turn began, and an
        // answer that lies in a socket is not late.
        R::on_time(&mut self.host.path, now);
        R::settle(&mut self.host.path, now);
        self.arm_orders(now);
    }

    fn look(&mut self, now: Nanos) -> Result<(), Failure> {
        if let Some(reason) = self.stop.reason() {
            return Err(Failure::interrupted(reason.to_string()));
        }
        self.survey(now);
        for line in 0..self.host.lines.len() {
            self.mend(line, now)?;
        }
        for session in &self.host.path.sessions {
            session.note_heard(false);
        }
        self.host.receiver.look(&mut self.host.path);
        self.conclude(now)?;
        self.check_silence(now);
        if self.is_child {
            let orders = self.host.path.rule.counters().get(Counter::OrdersSent);
            self.host.tell_progress(self.started, now, orders);
        }
        Ok(())
    }
}
