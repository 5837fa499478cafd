//! The loop of FIX sessions: sockets and timers around [`tickwire_fix::Acceptor`], for sessions that listen
//! and for those that connect, any number of them on one thread.
//!
//! ```text
//!  accept ─┐
//!  connect ┴► link ─ recv ─► session ─ event ─► Application ─ send ─► session ─ transmit ─► link
//! ```
//! What an application sends in answer to an event is on the wire before the next bytes are read.

mod bytes;
mod connections;
mod lines;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tickwire_fix::{
    Acceptor, CompId, ConnectionId, DisconnectReason, Event, Hosts, Identity, Newcomer, Refusal, Refused,
    Role, SessionId, Status, Store,
};
use tickwire_market::{Counter, Counters, Nanos, SeqNo};
use tickwire_runtime::clock::Clock;
use tickwire_runtime::signal::{ReportFlag, StopFlag, StopReason};
use tickwire_runtime::tcp::{Received, TcpListener, TcpStream};
use tickwire_runtime::tls::Stream;
use tickwire_runtime::trouble::{BackOff, NamedHealth, Trouble, count_waits, say_clock_step};
use tickwire_runtime::wait::{WaitStrategy, Waiter, Watch};
use tickwire_runtime::wake::{self, WakeUp, Waker};

use crate::dropcopy::DropCopies;
use crate::error::Error;
use crate::hours::Timetable;
use crate::limiter::{Kind, Limiter};
use crate::msglog::MessageLog;
use crate::observer::{Observer, Row, Standing};
use crate::report::Report;
use crate::settings::{Host, Setup, Tls, TransportSetup};
use crate::steps::Probes;
use crate::store::OpenedStore;
use crate::users::Users;

/// Sessions and their connections.
pub type Table = Acceptor<Box<dyn Store + Send>>;

/// Connections beside one for each session: peers that have not said who they are, or come a second time.
const SPARE_CONNECTIONS: usize = 16;
/// Reads of one connection before the others are looked at.
const READS_PER_TURN: usize = 16;
/// How often a spinning loop looks at its listeners, its timers and the process's signals.
const SLOW_NS: u64 = 200 * Nanos::MICRO;
/// How often sessions are shown in the region.
const SHOW_NS: u64 = 100 * Nanos::MILLI;
/// How often lines that were held back are looked at.
const SETTLE_NS: u64 = Nanos::SECOND;
/// Longest sleep.
const SLEEP_NS: u64 = 100 * Nanos::MILLI;
/// How long the last bytes of a connection may wait for the peer to read.
const CLOSE_NS: u64 = Nanos::SECOND;

/// Which way bytes went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the peer.
    In,
    /// To the peer.
    Out,
}

/// What an application wants after its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Come again when something has happened.
    Go,
    /// Come again at once: there is more to do.
    Again,
    /// Come again at this time, if nothing happens before.
    At(Nanos),
    /// Log out and end.
    End,
}

/// Why a loop ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Its handler wanted it.
    ByHandler,
    /// It was asked to.
    Stopped(StopReason),
}

/// What to do with sessions, in the place where a program decides: events as the state machine has them.
pub trait Handler {
    /// Something happened in a session; a message is in [`tickwire_fix::Session::message`].
    fn on_event(&mut self, now: Nanos, id: SessionId, event: &Event, table: &mut Table);

    /// Bytes of a session, before the session sees them or after it wrote them.
    fn on_wire(&mut self, _now: Nanos, _id: SessionId, _way: Way, _bytes: &[u8]) {}

    /// Bytes of a session have gone out: as [`Handler::on_wire`], by who may send meanwhile.
    fn on_sent(&mut self, _now: Nanos, _id: SessionId, _bytes: &[u8], _table: &mut Table) {}

    /// A session is about to write its Logon: an acceptor's where [`tickwire_fix::Session::logon_request`]
    /// has the peer's, which name, password and address allow. Returns fields to be put behind the configured
    /// ones.
    ///
    /// # Errors
    /// The peer is refused with this text.
    fn before_logon(
        &mut self,
        _now: Nanos,
        _id: SessionId,
        _table: &mut Table,
    ) -> Result<Vec<(u32, Vec<u8>)>, &'static str> {
        Ok(Vec::new())
    }

    /// Whether a kept message is sent again, where [`tickwire_fix::SessionConfig::asks_about_resends`].
    fn may_resend(&mut self, _id: SessionId, _message: &[u8]) -> bool {
        true
    }

    /// A session that a template admitted has this number from now on; another may have had it that never
    /// logged on.
    fn on_admitted(&mut self, _now: Nanos, _id: SessionId, _table: &mut Table) {}

    /// A session has lost its connection.
    fn on_closed(&mut self, _now: Nanos, _id: SessionId, _table: &mut Table) {}

    /// After every look at the connections.
    ///
    /// # Errors
    /// The engine ends with it: [`Error::application`] makes one of any error.
    fn turn(&mut self, _now: Nanos, _engine: &mut Engine) -> Result<Flow, Error> {
        Ok(Flow::Go)
    }
}

/// A transport connection.
struct Link {
    stream: Stream,
    since: Nanos,
    /// When it was read last while its session was not known.
    read: Option<Nanos>,
    /// None while it is not read.
    watch: Option<Watch>,
    /// The other side will send nothing more.
    is_closed: bool,
    /// Why, if it was no orderly end.
    broken: Option<String>,
    /// It waits for room in the kernel's buffer.
    wants_output: bool,
    /// What came before the session was known.
    opening: Vec<u8>,
    /// What the session does not take yet: the socket is not read meanwhile.
    held: Vec<u8>,
    closing: Option<Nanos>,
}

impl Link {
    /// It has more to do than to wait for the peer: bytes that found no room, an end.
    #[inline]
    fn is_unfinished(&self) -> bool {
        self.wants_output || self.is_closed || self.closing.is_some()
    }
}

/// A port that connections come to.
struct Listener {
    socket: TcpListener,
    health: NamedHealth,
    watch: Watch,
    tls: Option<Tls>,
    /// The addresses that may connect; any without.
    allowed: Vec<IpAddr>,
}

/// A session that connects.
struct Outgoing {
    session: SessionId,
    tls: Option<Tls>,
    hosts: Vec<Host>,
    /// Patience with a host that does not answer.
    timeout: Duration,
    attempts: Hosts,
    /// Not before this time.
    due: Nanos,
    is_opening: bool,
    /// It is to have a connection.
    is_wanted: bool,
}

/// A session beside its state machine.
#[derive(Default)]
struct Own {
    /// Who may log on; anybody with the right ids without.
    users: Option<Users>,
    /// The addresses it may come from; any without.
    allowed: Vec<IpAddr>,
    /// Further fields of our Logon, as configured.
    logon_fields: Vec<(u32, Vec<u8>)>,
    /// The store's file of a session that a template admitted and that has never logged on: it goes with it.
    fleeting: Option<PathBuf>,
    /// It was admitted by a template.
    is_admitted: bool,
    /// Bounds the lines about it.
    told: Limiter,
}

/// A connection attempt is over.
struct Opened {
    outgoing: usize,
    result: Result<Stream, String>,
}

/// Where connections come from, and those that there are.
struct Connections {
    listeners: Vec<Listener>,
    links: Vec<Option<Link>>,
    /// Behind it there are no links.
    links_end: usize,
    outgoing: Vec<Outgoing>,
    opened: (mpsc::Sender<Opened>, mpsc::Receiver<Opened>),
}

/// How the loop waits, and how others end its wait.
struct Waking {
    waiter: Waiter,
    wake_up: (WakeUp, Watch),
    waker: Waker,
}

/// When what is done now and then is done next.
struct Due {
    next_slow: Nanos,
    next_show: Nanos,
    next_settle: Nanos,
    next_clock: Nanos,
    /// When the next timer of the table was due before the last wait.
    timer: Option<Nanos>,
    /// How often the system's clock was set.
    clock_steps: u64,
}

/// See the module's description.
pub struct Engine {
    /// Sessions and their connections.
    pub table: Table,
    /// The clock of the loop.
    pub clock: Clock,
    connections: Connections,
    /// By session.
    own: Vec<Own>,
    /// In the order of the table's.
    templates: Vec<Setup>,
    waking: Waking,
    input: Box<[u8]>,
    output: Box<[u8]>,
    due: Due,
    observer: Arc<dyn Observer>,
    core: Option<usize>,
    log: Option<MessageLog>,
    copies: DropCopies,
    timetables: Vec<Timetable>,
    probes: Probes,
    report: Option<ReportFlag>,
    /// Bounds the lines about connections that belong to no session.
    told: Limiter,
    /// Lines were held back.
    has_held: bool,
    /// What becomes of such connections, in the region.
    door: Option<Box<dyn Row>>,
    addresses: Vec<SocketAddr>,
}

/// The addresses that may connect to a port: those of all its sessions, any if one of them admits any.
fn allowed_at(setups: &[Setup], address: SocketAddr) -> Vec<IpAddr> {
    let listens = |setup: &&Setup| matches!(setup.transport, TransportSetup::Listen(at) if at == address);
    let lists = || setups.iter().filter(listens).map(|setup| &setup.allowed);
    match lists().any(Vec::is_empty) {
        true => Vec::new(),
        false => lists().flatten().copied().collect(),
    }
}

/// Fields of a Logon as a session keeps them.
fn boxed(fields: Vec<(u32, Vec<u8>)>) -> Box<[(u32, Box<[u8]>)]> {
    let field = |(tag, value): (u32, Vec<u8>)| (tag, value.into_boxed_slice());
    fields.into_iter().map(field).collect()
}

/// What a session is called in views.
fn row_name(config: &tickwire_fix::SessionConfig) -> String {
    format!("{} -> {}", config.sender, config.target)
}

fn system(e: impl std::fmt::Display) -> Error {
    Error::system(e.to_string())
}

impl Outgoing {
    /// The connection is gone, or there was none.
    fn ended(&mut self, now: Nanos) {
        self.due = self.attempts.ended(now).at;
    }

    /// The one to be tried.
    fn host(&self) -> &Host {
        &self.hosts[self.attempts.attempt().host]
    }
}

impl Engine {
    /// Binds what listens and opens the stores, and says so. The sessions are of one thread.
    ///
    /// # Errors
    /// An address cannot be bound, a store or log not be opened, or a DropCopySession is not there.
    pub fn new(setups: Vec<Setup>, observer: Arc<dyn Observer>) -> Result<Engine, Error> {
        let connections = setups.iter().map(Setup::sessions_max).sum::<usize>() + SPARE_CONNECTIONS;
        let (templates, sessions): (Vec<Setup>, Vec<Setup>) =
            setups.iter().cloned().partition(|setup| setup.template.is_some());
        let thread = setups.first().map(|s| s.thread);
        let mut waiter = Waiter::new(thread.map_or(WaitStrategy::Poll, |t| t.wait));
        let (waker, wake_up) = wake::pair().map_err(system)?;
        let watch = waiter.watch(&wake_up);
        let mut engine = Engine {
            table: Acceptor::new(connections),
            clock: Clock::calibrate(),
            connections: Connections {
                listeners: Vec::new(),
                links: (0..connections).map(|_| None).collect(),
                links_end: 0,
                outgoing: Vec::new(),
                opened: mpsc::channel(),
            },
            own: Vec::new(),
            templates: Vec::new(),
            waking: Waking {
                waiter,
                wake_up: (wake_up, watch),
                waker,
            },
            input: vec![0; 64 << 10].into_boxed_slice(),
            output: vec![0; 64 << 10].into_boxed_slice(),
            due: Due {
                next_slow: Nanos::ZERO,
                next_show: Nanos::ZERO,
                next_settle: Nanos::ZERO,
                next_clock: Nanos::ZERO,
                timer: None,
                clock_steps: 0,
            },
            observer: observer.clone(),
            core: thread.and_then(|t| t.core),
            log: MessageLog::open(&sessions, &templates, &observer)?,
            copies: DropCopies::new(&sessions)?,
            timetables: Vec::new(),
            probes: Probes::new(),
            report: None,
            told: Limiter::default(),
            has_held: false,
            door: None,
            addresses: Vec::new(),
        };
        let mut bound: Vec<SocketAddr> = Vec::new();
        for setup in &setups {
            if let TransportSetup::Listen(address) = setup.transport
                && !bound.contains(&address)
            {
                engine.listen(address, setup.tls.clone(), allowed_at(&setups, address))?;
                bound.push(address);
            }
        }
        // Who reads that it listens may rely on its stores.
        let stores = sessions
            .iter()
            .map(|setup| crate::store::opened(setup, &observer))
            .collect::<Result<Vec<_>, _>>()?;
        for at in &engine.addresses {
            observer.say(format_args!("listening on {at}"));
        }
        for (setup, store) in sessions.into_iter().zip(stores) {
            engine.add(setup, store);
        }
        for setup in templates {
            let most = setup.template.unwrap_or_default();
            engine.say_of(&setup, format_args!("at most {most} sessions of"));
            engine.table.add_template(setup.config, most);
            engine.templates.push(setup);
        }
        engine.door = match engine.addresses.first() {
            Some(address) => observer.row(&format!("connections at {address}")),
            None => None,
        };
        Ok(engine)
    }

    fn listen(&mut self, address: SocketAddr, tls: Option<Tls>, allowed: Vec<IpAddr>) -> Result<(), Error> {
        let listener = TcpListener::bind(address).map_err(system)?;
        let watch = self.waking.waiter.watch(&listener);
        let at = listener
            .local_addr()
            .map_err(|e| Error::system(format!("the listening socket failed: {e}")))?;
        self.addresses.push(at);
        self.connections.listeners.push(Listener {
            socket: listener,
            health: NamedHealth::new(BackOff::SEND, format!("accepting connections at {at}")),
            watch,
            tls,
            allowed,
        });
        Ok(())
    }

    fn add(&mut self, setup: Setup, store: OpenedStore) {
        let store = store.told(&self.observer);
        self.say_of(&setup, format_args!("session"));
        let session = self.table.add(setup.config, store, setup.rules);
        self.table
            .session_mut(session)
            .set_logon_fields(boxed(setup.logon_fields.clone()));
        let row = self.observer.row(&row_name(&setup.config));
        self.probes.add(session, row);
        self.own.push(Own {
            users: setup.users,
            allowed: setup.allowed,
            logon_fields: setup.logon_fields,
            ..Own::default()
        });
        if let Some(calendar) = setup.calendar {
            self.timetables.push(Timetable::new(session, calendar));
        }
        if let TransportSetup::Connect {
            hosts,
            terms,
            timeout,
        } = setup.transport
        {
            self.connections.outgoing.push(Outgoing {
                session,
                tls: setup.tls,
                hosts,
                timeout,
                attempts: Hosts::new(terms),
                due: Nanos::ZERO,
                is_opening: false,
                is_wanted: true,
            });
        }
    }

    fn say_of(&self, setup: &Setup, what: std::fmt::Arguments<'_>) {
        let c = &setup.config;
        let any = |id: &CompId| match id.is_empty() {
            true => "*".to_string(),
            false => id.to_string(),
        };
        let tls = if setup.tls.is_some() { " with TLS" } else { "" };
        self.observer.say(format_args!(
            "{what} {} {} -> {}{tls}",
            c.version.name(),
            any(&c.sender),
            any(&c.target)
        ));
    }

    /// Tells its observer what its sessions have done whenever the flag is set.
    #[must_use]
    pub fn with_report(self, flag: ReportFlag) -> Engine {
        Engine {
            report: Some(flag),
            ..self
        }
    }

    /// Where it listens, ports that were 0 as the system chose them.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Wakes the loop from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waking.waker.clone()
    }

    /// Every session.
    pub fn sessions(&self) -> impl Iterator<Item = SessionId> + use<> {
        (0..self.table.sessions()).map(SessionId)
    }

    /// Runs until the handler ends it or `stop` is set; then every session is logged out.
    ///
    /// # Errors
    /// The thread cannot be pinned to its core, or what the handler's turn returned.
    pub fn run<A: Handler>(&mut self, app: &mut A, stop: &StopFlag) -> Result<Ended, Error> {
        if let Some(core) = self.core {
            tickwire_runtime::affinity::Cores::count()
                .pin(core)
                .map_err(system)?;
        }
        loop {
            let due = match self.turn(self.clock.now(), app, stop)? {
                Flow::End => break,
                Flow::Go => None,
                Flow::Again => Some(Nanos::ZERO),
                Flow::At(at) => Some(at),
            };
            self.wait(due);
        }
        self.log_out(app);
        self.show(self.clock.now());
        Ok(match stop.reason() {
            Some(reason) => Ended::Stopped(reason),
            None => Ended::ByHandler,
        })
    }

    /// One look at everything, and what its handler wants after it.
    #[inline]
    fn turn<A: Handler>(&mut self, now: Nanos, app: &mut A, stop: &StopFlag) -> Result<Flow, Error> {
        let is_slow = self.waking.waiter.strategy() == WaitStrategy::Poll || now >= self.due.next_slow;
        if is_slow && stop.is_set() {
            return Ok(Flow::End);
        }
        self.look_again(now);
        self.read(now, app);
        let flow = app.turn(now, self)?;
        if flow == Flow::End {
            return Ok(flow);
        }
        self.copies.send(now, &mut self.table, &*self.observer);
        // What came is answered before anything that can wait.
        if is_slow {
            self.due.next_slow = now.after(SLOW_NS);
            self.slow(now, app)?;
        }
        if is_slow || self.table.take_touched() || self.links().any(Link::is_unfinished) {
            self.drain(now, app);
        }
        Ok(flow)
    }

    /// Asks the kernel once more which sockets have input if a timer is due. This thread may have stood still
    /// since it was asked last, and what a timer waits for may have come meanwhile: it is read before the
    /// timer is judged.
    #[inline]
    fn look_again(&mut self, now: Nanos) {
        if self.due.timer.is_some_and(|due| due <= now) {
            self.waking.waiter.wait(0);
        }
    }

    fn log_dropped(&self) -> u64 {
        self.log.as_ref().map_or(0, MessageLog::dropped)
    }

    /// Shows sessions, and what became of other connections, in the region.
    fn show(&mut self, now: Nanos) {
        self.probes.show(now, &self.table, self.log_dropped());
        let counters = self.door_counters();
        if let Some(door) = &mut self.door {
            door.show(now, Standing::Live, SeqNo(0), &counters);
        }
    }

    /// What became of connections that belong to no session, and what its sockets count.
    fn door_counters(&self) -> Counters {
        let mut counters = self.table.counters().clone();
        self.connections
            .listeners
            .iter()
            .for_each(|listener| listener.health.count(&mut counters));
        count_waits(&mut counters, self.waking.waiter.errors());
        counters.add(Counter::ClockSteps, self.due.clock_steps);
        counters
    }

    /// What its sessions have done so far.
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            sessions: self.probes.report(&self.table, self.log_dropped()),
            others: self.door_counters(),
        }
    }

    /// Waits for input, for a timer of a session or a host, and for the application's own time.
    fn wait(&mut self, wanted: Option<Nanos>) {
        if self.waking.waiter.strategy() == WaitStrategy::Spin {
            std::hint::spin_loop();
            return;
        }
        let sessions = self.table.poll_timeout();
        self.due.timer = sessions;
        let connects = self
            .connections
            .outgoing
            .iter()
            .filter(|o| o.is_wanted && !o.is_opening && self.table.connection_of(o.session).is_none())
            .map(|o| o.due);
        let due = connects.chain(sessions).chain(wanted).min();
        let now = self.clock.now();
        let mut longest = due.map_or(SLEEP_NS, |t| t.since(now).min(SLEEP_NS));
        if self.links().any(|link| link.stream.has_input()) {
            longest = 0;
        }
        self.waking.waiter.wait(longest);
    }

    /// New connections, timers.
    fn slow<A: Handler>(&mut self, now: Nanos, app: &mut A) -> Result<(), Error> {
        if self.waking.waiter.is_ready(self.waking.wake_up.1) {
            self.waking.wake_up.0.clear();
        }
        self.accept(now, app);
        if self.openings().next().is_some() {
            self.read_openings(now, app);
        }
        if self.report.as_ref().is_some_and(ReportFlag::take) {
            self.observer.report(&self.report());
        }
        if self.probes.are_shown() && now >= self.due.next_show {
            self.due.next_show = now.after(SHOW_NS);
            self.show(now);
        }
        if self.has_held && now >= self.due.next_settle {
            self.due.next_settle = now.after(SETTLE_NS);
            self.settle_told(now);
        }
        if now >= self.due.next_clock {
            self.due.next_clock = now.after(Nanos::SECOND);
            self.follow_clock();
        }
        for timetable in &mut self.timetables {
            timetable.tell(now, self.clock.wall_at(now), &mut self.table);
        }
        self.connect(now);
        while let Ok(opened) = self.connections.opened.1.try_recv() {
            self.take_opened(now, opened, app);
        }
        self.table.handle_timeout(now);
        Ok(())
    }

    /// Follows the kernel's clocks. When the system's was set, every session stamps, judges stamps and keeps
    /// its hours by it as it is now.
    #[cold]
    fn follow_clock(&mut self) {
        let Some(step) = self.clock.resync() else {
            return;
        };
        self.due.clock_steps += 1;
        say_clock_step(step, |line| self.observer.warn(line));
        self.table.set_wall_offset(self.clock.wall_offset_ns());
        self.timetables.iter_mut().for_each(Timetable::clock_set);
    }

    /// Ends every session in good order, for as long as a logout may take.
    fn log_out<A: Handler>(&mut self, app: &mut A) {
        let begin = self.clock.now();
        self.connections
            .outgoing
            .iter_mut()
            .for_each(|o| o.is_wanted = false);
        for session in self.sessions() {
            self.table.session_mut(session).logout(begin, "shutting down");
        }
        let is_open = |engine: &Engine| {
            let sessions = engine.sessions();
            sessions
                .into_iter()
                .any(|id| engine.table.connection_of(id).is_some())
        };
        self.drain(begin, app);
        while is_open(self) && self.clock.now().since(begin) < 3 * Nanos::SECOND {
            self.due.timer = self.table.poll_timeout();
            self.waking.waiter.wait(10 * Nanos::MILLI);
            let now = self.clock.now();
            self.look_again(now);
            self.read(now, app);
            self.table.handle_timeout(now);
            self.drain(now, app);
        }
    }
}
