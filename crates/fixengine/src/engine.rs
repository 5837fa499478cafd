//! The loop of FIX sessions: sockets and timers around [`tickwire_fix::Acceptor`], for sessions that listen and for those that
//! connect, any number of them on one thread.
//!
//! ```text
//!  accept ─┐
//!  connect ┴► link ─ recv ─► session ─ event ─► Application ─ send ─► session ─ transmit ─► link
//! ```
//! What an application sends in answer to an event is on the wire before the next bytes are read.

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
use tickwire_runtime::trouble::Trouble;
use tickwire_runtime::wait::{WaitStrategy, Waiter, Watch};
use tickwire_runtime::wake::{self, WakeUp, Waker};

use crate::dropcopy::DropCopies;
use crate::error::Error;
use crate::health::{Accepting, count_waits, tell_clock_step};
use crate::hours::Timetable;
use crate::limiter::{Kind, Limiter};
use crate::msglog::MessageLog;
use crate::observer::{Observer, Row, Standing};
use crate::report::Report;
use crate::settings::{Host, Setup, Tls, TransportSetup};
use crate::steps::Probes;
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

    /// A session that a template admitted has this number from now on; another may have had it that never logged on.
    fn on_admitted(&mut self, _id: SessionId) {}

    /// A session has lost its connection.
    fn on_closed(&mut self, _now: Nanos, _id: SessionId) {}

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
    health: Accepting,
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

/// See the module's description.
pub struct Engine {
    /// Sessions and their connections.
    pub table: Table,
    /// The clock of the loop.
    pub clock: Clock,
    listeners: Vec<Listener>,
    links: Vec<Option<Link>>,
    /// Behind it there are no links.
    links_end: usize,
    outgoing: Vec<Outgoing>,
    /// By session.
    own: Vec<Own>,
    /// In the order of the table's.
    templates: Vec<Setup>,
    waiter: Waiter,
    wake_up: (WakeUp, Watch),
    waker: Waker,
    opened: (mpsc::Sender<Opened>, mpsc::Receiver<Opened>),
    input: Box<[u8]>,
    output: Box<[u8]>,
    next_slow: Nanos,
    next_show: Nanos,
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
    next_settle: Nanos,
    next_clock: Nanos,
    /// How often the system's clock was set.
    clock_steps: u64,
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

/// Lines that were held back before this one.
fn more(held: u64) -> String {
    match held {
        0 => String::new(),
        n => format!(" ({n} more like it before were not written)"),
    }
}

/// Who a first message is from.
fn said(identity: &Identity) -> String {
    let (begin, sender, target) = (identity.begin_string, identity.sender, identity.target);
    format!("8={} 49={sender} 56={target}: ", begin.as_str())
}

/// What to do about an end of a session.
fn advice(reason: DisconnectReason) -> &'static str {
    match reason {
        DisconnectReason::SequenceTooLow => {
            "; agree with the peer on the numbers: tickwire fix store sets ours, ResetOnLogon begins anew with each logon"
        }
        DisconnectReason::LogonTimeout => {
            "; look whether the peer takes us for another session, or is another program"
        }
        DisconnectReason::HeartbeatTimeout => "; look at the peer and the network",
        DisconnectReason::PeerTooSlow => "; look why the peer does not read",
        DisconnectReason::ProtocolViolation => {
            "; look at the message in the log and at the peer's configuration"
        }
        _ => "",
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
            listeners: Vec::new(),
            links: (0..connections).map(|_| None).collect(),
            links_end: 0,
            outgoing: Vec::new(),
            own: Vec::new(),
            templates: Vec::new(),
            waiter,
            wake_up: (wake_up, watch),
            waker,
            opened: mpsc::channel(),
            input: vec![0; 64 << 10].into_boxed_slice(),
            output: vec![0; 64 << 10].into_boxed_slice(),
            next_slow: Nanos::ZERO,
            next_show: Nanos::ZERO,
            observer: observer.clone(),
            core: thread.and_then(|t| t.core),
            log: MessageLog::open(&sessions, &templates, &observer)?,
            copies: DropCopies::new(&sessions)?,
            timetables: Vec::new(),
            probes: Probes::new(),
            report: None,
            told: Limiter::default(),
            has_held: false,
            next_settle: Nanos::ZERO,
            next_clock: Nanos::ZERO,
            clock_steps: 0,
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
        sessions.into_iter().try_for_each(|setup| engine.add(setup))?;
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
        let watch = self.waiter.watch(&listener);
        let at = listener
            .local_addr()
            .map_err(|e| Error::system(format!("the listening socket failed: {e}")))?;
        self.addresses.push(at);
        self.observer.say(format_args!("listening on {at}"));
        self.listeners.push(Listener {
            socket: listener,
            health: Accepting::new(format!("accepting connections at {at}")),
            watch,
            tls,
            allowed,
        });
        Ok(())
    }

    fn add(&mut self, setup: Setup) -> Result<(), Error> {
        let store = crate::store::open(&setup, &self.observer)?;
        self.say_of(&setup, format_args!("session"));
        let session = self.table.add(setup.config, store, setup.rules);
        self.table
            .session_mut(session)
            .set_logon_fields(boxed(setup.logon_fields));
        let row = self.observer.row(&row_name(&setup.config));
        self.probes.add(session, row);
        self.own.push(Own {
            users: setup.users,
            allowed: setup.allowed,
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
            self.outgoing.push(Outgoing {
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
        Ok(())
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
        self.waker.clone()
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
            let now = self.clock.now();
            let is_slow = self.waiter.strategy() == WaitStrategy::Poll || now >= self.next_slow;
            if is_slow && stop.is_set() {
                break;
            }
            self.read(now, app);
            let due = match app.turn(now, self)? {
                Flow::End => break,
                Flow::Go => None,
                Flow::Again => Some(Nanos::ZERO),
                Flow::At(at) => Some(at),
            };
            self.copies.send(now, &mut self.table, &*self.observer);
            // What came is answered before anything that can wait.
            if is_slow {
                self.next_slow = now.after(SLOW_NS);
                self.slow(now, app)?;
            }
            if is_slow || self.table.take_touched() || self.links().any(Link::is_unfinished) {
                self.drain(now, app);
            }
            self.wait(due);
        }
        self.log_out(app);
        self.show(self.clock.now());
        Ok(match stop.reason() {
            Some(reason) => Ended::Stopped(reason),
            None => Ended::ByHandler,
        })
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
        self.listeners
            .iter()
            .for_each(|listener| listener.health.count(&mut counters));
        count_waits(&mut counters, self.waiter.errors());
        counters.add(Counter::ClockSteps, self.clock_steps);
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
        if self.waiter.strategy() == WaitStrategy::Spin {
            std::hint::spin_loop();
            return;
        }
        let sessions = self.table.poll_timeout();
        let connects = self
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
        self.waiter.wait(longest);
    }

    /// New connections, timers.
    fn slow<A: Handler>(&mut self, now: Nanos, app: &mut A) -> Result<(), Error> {
        if self.waiter.is_ready(self.wake_up.1) {
            self.wake_up.0.clear();
        }
        self.accept(now);
        if self.openings().next().is_some() {
            self.read_openings(now, app);
        }
        if self.report.as_ref().is_some_and(ReportFlag::take) {
            self.observer.report(&self.report());
        }
        if self.probes.are_shown() && now >= self.next_show {
            self.next_show = now.after(SHOW_NS);
            self.show(now);
        }
        if self.has_held && now >= self.next_settle {
            self.next_settle = now.after(SETTLE_NS);
            self.settle_told(now);
        }
        if now >= self.next_clock {
            self.next_clock = now.after(Nanos::SECOND);
            self.follow_clock();
        }
        for timetable in &mut self.timetables {
            timetable.tell(now, self.clock.wall_at(now), &mut self.table);
        }
        self.connect(now);
        while let Ok(opened) = self.opened.1.try_recv() {
            self.take_opened(now, opened);
        }
        self.table.handle_timeout(now);
        Ok(())
    }

    /// Follows the kernel's clocks. When the system's was set, every session stamps, judges stamps and keeps its hours by it as it is now.
    #[cold]
    fn follow_clock(&mut self) {
        let Some(step) = self.clock.resync() else {
            return;
        };
        self.clock_steps += 1;
        tell_clock_step(step, &*self.observer);
        self.table.set_wall_offset(self.clock.wall_offset_ns());
        self.timetables.iter_mut().for_each(Timetable::clock_set);
    }

    fn accept(&mut self, now: Nanos) {
        for at in 0..self.listeners.len() {
            let listener = &mut self.listeners[at];
            listener.health.settle(&*self.observer);
            if self.waiter.is_ready(listener.watch) {
                self.accept_all(now, at);
            }
        }
    }

    fn accept_all(&mut self, now: Nanos, at: usize) {
        loop {
            let listener = &mut self.listeners[at];
            // Where it fails, the peer waits in the kernel's queue; those who are here go on.
            let Some(tcp) = listener.health.accept(&mut listener.socket, &*self.observer) else {
                return;
            };
            let address = tcp.peer();
            if !listener.allowed.is_empty() && !listener.allowed.contains(&address.ip().to_canonical()) {
                self.table.note_address_refused();
                self.tell_anybody(
                    now,
                    Kind::Address,
                    format_args!("connection from {address} closed: not one of AllowedRemoteAddresses; add it there if it is a counterparty's"),
                );
                continue;
            }
            let listener = &self.listeners[at];
            let stream = match &listener.tls {
                Some(Tls::Server(server)) => match server.accept(tcp) {
                    Ok(stream) => stream,
                    Err(e) => {
                        // The connection is closed; others may do better.
                        self.listeners[at]
                            .health
                            .failed(Trouble::PeerGone, &e, &*self.observer);
                        continue;
                    }
                },
                _ => Stream::Plain(tcp),
            };
            let id = self.table.connect(now).or_else(|| {
                // Who has said nothing for longest gives way: slow peers must not keep others out.
                self.drop_oldest_opening(now);
                self.table.connect(now)
            });
            match id {
                Some(id) => self.put(now, id, stream),
                // Without room all the same, the connection is dropped and so closed.
                None => self.tell_anybody(
                    now,
                    Kind::NoRoom,
                    format_args!("connection from {address} closed: every session has one, and every place beside them is taken"),
                ),
            }
        }
    }

    fn drop_oldest_opening(&mut self, now: Nanos) {
        let since = |id: &ConnectionId| self.links[id.0].as_ref().map(|link| link.since);
        let Some(oldest) = self.openings().min_by_key(since) else {
            return;
        };
        self.table.give_way(oldest);
        self.tell_refused(now);
        if let Some(mut link) = self.take_link(oldest) {
            if let Some(watch) = link.watch {
                self.waiter.forget(watch);
            }
            link.stream.finish();
        }
        self.table.disconnect(now, oldest);
    }

    fn put(&mut self, now: Nanos, id: ConnectionId, stream: Stream) {
        let watch = self.waiter.watch(&stream);
        self.links_end = self.links_end.max(id.0 + 1);
        self.links[id.0] = Some(Link {
            stream,
            since: now,
            watch: Some(watch),
            is_closed: false,
            broken: None,
            wants_output: false,
            opening: Vec::new(),
            held: Vec::new(),
            closing: None,
        });
    }

    fn links(&self) -> impl Iterator<Item = &Link> {
        self.links[..self.links_end].iter().flatten()
    }

    /// Takes a link out.
    fn take_link(&mut self, id: ConnectionId) -> Option<Link> {
        let link = self.links[id.0].take();
        while self.links_end > 0 && self.links[self.links_end - 1].is_none() {
            self.links_end -= 1;
        }
        link
    }

    /// Connections that have not said whose they are.
    fn openings(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let ids = (0..self.links_end).map(ConnectionId);
        ids.filter(|id| self.links[id.0].is_some() && self.table.session_of(*id).is_none())
    }

    fn read_openings<A: Handler>(&mut self, now: Nanos, app: &mut A) {
        let openings: Vec<ConnectionId> = self.openings().collect();
        openings.iter().for_each(|id| self.read_one(now, *id, true, app));
        // Who closed before a new connection of the same session came is gone before that one is looked at.
        for at in 0..self.links_end {
            if self.table.session_of(ConnectionId(at)).is_some() {
                self.read_one(now, ConnectionId(at), true, app);
            }
        }
        self.table.settle(now);
        self.tell_refused(now);
        while let Some(newcomer) = self.table.poll_newcomer() {
            self.admit(now, &newcomer, app);
        }
        for id in openings {
            if let Some(session) = self.table.session_of(id)
                && let Some(link) = &mut self.links[id.0]
            {
                let bytes = std::mem::take(&mut link.opening);
                app.on_wire(now, session, Way::In, &bytes);
                if let Some(log) = &mut self.log {
                    log.bytes(now, session, Way::In, &bytes);
                }
            }
            self.events(now, id, app);
            self.transmit(now, id, app);
            self.close_if_over(now, id, app);
        }
    }

    /// Gives a session to somebody whom a template admits.
    fn admit<A: Handler>(&mut self, now: Nanos, newcomer: &Newcomer, app: &mut A) {
        let template = &self.templates[newcomer.template];
        let setup = template.of_newcomer(newcomer.config);
        let file = setup.store.as_ref().map(|store| store.path.clone());
        let fleeting = file.filter(|path| !path.exists());
        let admitted = crate::store::open(&setup, &self.observer)
            .map(|store| self.table.admit(now, newcomer, store, setup.rules.clone()));
        let id = match admitted {
            Ok(Some(id)) => id,
            Ok(None) => return,
            Err(why) => {
                self.observer
                    .warn(format_args!("{} is turned away: {why}", newcomer.config.target));
                return self.table.turn_away(newcomer.connection);
            }
        };
        self.timetables.retain(|timetable| timetable.session() != id);
        if let Some(calendar) = setup.calendar.clone() {
            let mut timetable = Timetable::new(id, calendar);
            timetable.tell(now, self.clock.wall_at(now), &mut self.table);
            self.timetables.push(timetable);
        }
        self.probes.add(id, None);
        let own = Own {
            users: setup.users.clone(),
            allowed: setup.allowed.clone(),
            fleeting,
            is_admitted: true,
            told: Limiter::default(),
        };
        match self.own.get_mut(id.0) {
            Some(place) => *place = own,
            None => self.own.push(own),
        }
        if let Some(log) = &mut self.log
            && let Err(why) = log.add(id, &setup)
        {
            self.observer
                .warn(format_args!("{} is not logged: {why}", newcomer.config.target));
        }
        app.on_admitted(id);
    }

    /// The session of a template that has never logged on leaves nothing behind.
    fn forget_fleeting(&mut self, id: SessionId) {
        if let Some(path) = self.own[id.0].fleeting.take() {
            crate::store::remove(&path);
        }
    }

    // ---- connecting -------------------------------------------------------------------------------------------

    /// Begins the connections that are due, each on a thread of its own: the loop must not wait for a host.
    fn connect(&mut self, now: Nanos) {
        for (at, outgoing) in self.outgoing.iter_mut().enumerate() {
            let is_idle = !outgoing.is_opening && self.table.connection_of(outgoing.session).is_none();
            let may_log_on = self.table.session(outgoing.session).may_log_on(now);
            if !is_idle || !outgoing.is_wanted || now < outgoing.due || !may_log_on {
                continue;
            }
            let host = outgoing.host().clone();
            let (sender, waker) = (self.opened.0.clone(), self.waker.clone());
            let (tls, timeout) = (outgoing.tls.clone(), outgoing.timeout);
            let open = move || {
                let result = open(&host, tls.as_ref(), timeout);
                let opened = Opened { outgoing: at, result };
                // The loop may have ended meanwhile.
                let _ = sender.send(opened);
                waker.wake();
            };
            match std::thread::Builder::new().name("fix-connect".into()).spawn(open) {
                Ok(_) => outgoing.is_opening = true,
                Err(e) => {
                    self.observer.warn(format_args!("no thread to connect by: {e}"));
                    outgoing.ended(now);
                }
            }
        }
    }

    fn take_opened(&mut self, now: Nanos, opened: Opened) {
        let outgoing = &mut self.outgoing[opened.outgoing];
        outgoing.is_opening = false;
        let stream = match opened.result {
            Ok(stream) if outgoing.is_wanted => stream,
            Ok(_) => return,
            Err(why) => {
                outgoing.ended(now);
                let wait_s = outgoing.due.since(now) as f64 / 1e9;
                let host = outgoing.host();
                return self
                    .observer
                    .warn(format_args!("{why}; trying {host} in {wait_s:.1} s"));
            }
        };
        match self.table.connect_as(now, outgoing.session) {
            Some(id) => self.put(now, id, stream),
            None => outgoing.ended(now),
        }
    }

    fn outgoing_mut(&mut self, id: SessionId) -> Option<&mut Outgoing> {
        self.outgoing.iter_mut().find(|o| o.session == id)
    }

    /// Whether a session is to connect; at once, if it is.
    pub fn want(&mut self, now: Nanos, id: SessionId, wanted: bool) {
        if let Some(outgoing) = self.outgoing_mut(id) {
            outgoing.is_wanted = wanted;
            outgoing.due = now;
        }
    }

    /// Closes a session's connection without a word; one that connects does so again at once.
    pub fn drop_connection<A: Handler>(&mut self, now: Nanos, id: SessionId, app: &mut A) {
        if let Some(connection) = self.table.connection_of(id) {
            self.close(now, connection, app);
            if let Some(outgoing) = self.outgoing_mut(id) {
                outgoing.due = now;
            }
        }
    }

    // ---- moving bytes -----------------------------------------------------------------------------------------

    /// Takes what connections of sessions sent.
    fn read<A: Handler>(&mut self, now: Nanos, app: &mut A) {
        for at in 0..self.links_end {
            let Some(link) = &self.links[at] else { continue };
            let id = ConnectionId(at);
            let Some(session) = self.table.session_of(id) else {
                continue;
            };
            if link.watch.is_none() {
                if self.table.session(session).is_reading() {
                    self.take_held(now, id, app);
                }
            } else if link.watch.is_some_and(|w| self.waiter.is_ready(w)) || link.stream.has_input() {
                self.read_one(now, id, false, app);
            }
        }
    }

    /// Hands over what was held back; the socket is read again when all of it was taken.
    fn take_held<A: Handler>(&mut self, now: Nanos, id: ConnectionId, app: &mut A) {
        let Some(link) = &mut self.links[id.0] else { return };
        let mut held = std::mem::take(&mut link.held);
        let taken = self.feed(now, id, &held, app);
        held.drain(..taken);
        let Some(link) = &mut self.links[id.0] else { return };
        if held.is_empty() {
            let watch = self.waiter.watch(&link.stream);
            self.waiter.want_output(watch, link.wants_output);
            link.watch = Some(watch);
        }
        link.held = held;
    }

    /// Reads what there is. A short read means that there was no more, unless `to_end`: then an end behind it is seen, too.
    fn read_one<A: Handler>(&mut self, now: Nanos, id: ConnectionId, to_end: bool, app: &mut A) {
        for _ in 0..READS_PER_TURN {
            let Some(link) = &mut self.links[id.0] else { return };
            if link.is_closed {
                break;
            }
            if link.watch.is_none() {
                return;
            }
            let len = match link.stream.recv(&mut self.input) {
                Ok(Received::Bytes(bytes)) => bytes.len(),
                Ok(Received::Nothing) => return,
                Ok(Received::Closed) => {
                    link.is_closed = true;
                    break;
                }
                Err(e) => {
                    link.is_closed = true;
                    link.broken = Some(e.to_string());
                    break;
                }
            };
            // Its peer's clock may be ours, and it may have noticed before us.
            if self.clock.is_set() {
                self.follow_clock();
            }
            self.take_bytes(now, id, len, app);
            let Some(link) = &mut self.links[id.0] else { return };
            if len < self.input.len() && !to_end && !link.stream.has_input() {
                link.stream.acknowledge();
                return;
            }
        }
        if self.links[id.0].as_ref().is_some_and(|link| link.is_closed) {
            self.events(now, id, app);
            self.transmit(now, id, app);
            self.close(now, id, app);
        }
    }

    fn take_bytes<A: Handler>(&mut self, now: Nanos, id: ConnectionId, len: usize, app: &mut A) {
        match (self.table.session_of(id), &mut self.links[id.0]) {
            (Some(session), _) => {
                self.probes.bytes_in(session);
                app.on_wire(now, session, Way::In, &self.input[..len]);
                if let Some(log) = &mut self.log {
                    log.bytes(now, session, Way::In, &self.input[..len]);
                }
            }
            // Bounded by what the table takes.
            (None, Some(link)) if link.opening.len() < self.input.len() => {
                link.opening.extend_from_slice(&self.input[..len]);
            }
            _ => {}
        }
        let input = std::mem::take(&mut self.input);
        let taken = self.feed(now, id, &input[..len], app);
        if taken < len
            && let Some(link) = &mut self.links[id.0]
        {
            match self.table.session_of(id) {
                // It waits for a word of its owner, or the peer is beyond its rate.
                Some(_) => {
                    link.held.extend_from_slice(&input[taken..len]);
                    if let Some(watch) = link.watch.take() {
                        self.waiter.forget(watch);
                    }
                }
                // More than a Logon before its answer.
                None => link.is_closed = true,
            }
        }
        self.input = input;
    }

    /// Hands bytes to a session as far as it takes them; how many.
    fn feed<A: Handler>(&mut self, now: Nanos, id: ConnectionId, bytes: &[u8], app: &mut A) -> usize {
        let (mut from, mut stuck) = (0, 0);
        let garbled = self.garbled(id);
        // Events that found no room come with the second look.
        while from < bytes.len() && stuck < 2 {
            let taken = self.table.handle_bytes(now, id, &bytes[from..]);
            from += taken;
            self.probes.decoded();
            self.events(now, id, app);
            self.transmit(now, id, app);
            stuck = if taken == 0 { stuck + 1 } else { 0 };
        }
        self.probes.over(&self.clock);
        if self.garbled(id) != garbled {
            self.tell_garbled(now, id, garbled.unwrap_or_default());
        }
        from
    }

    /// How many garbled messages the session of a connection has had.
    #[inline]
    fn garbled(&self, id: ConnectionId) -> Option<u64> {
        let session = self.table.session_of(id)?;
        Some(self.table.session(session).counters().get(Counter::FixMalformed))
    }

    /// What happened in the session of a connection.
    fn events<A: Handler>(&mut self, now: Nanos, connection: ConnectionId, app: &mut A) {
        let Some(id) = self.table.session_of(connection) else {
            return;
        };
        self.events_of(now, id, app);
    }

    fn events_of<A: Handler>(&mut self, now: Nanos, id: SessionId, app: &mut A) {
        while let Some(event) = self.table.poll_event(id) {
            match &event {
                Event::LoggedOn { peer, .. } => {
                    let at = self.whereabouts(id);
                    self.tell_of(
                        now,
                        id,
                        Kind::LoggedOn,
                        format_args!("{peer} logged on from {at}"),
                    );
                    self.probes.logged_on(id);
                    if self.own[id.0].is_admitted {
                        self.settle_in(id);
                    }
                    if let Some(outgoing) = self.outgoing_mut(id) {
                        outgoing.attempts.logged_on(now);
                    }
                }
                Event::LogonRequested { peer } => self.decide(now, id, peer),
                Event::CancelOrders { peer } => {
                    self.tell(
                        now,
                        id,
                        format_args!("{peer} is gone: what it has open is to be cancelled"),
                    );
                }
                Event::NotKept { first, last, count } => {
                    let peer = self.table.session(id).peer();
                    self.tell(
                        now,
                        id,
                        format_args!(
                            "{peer} asked for messages that the store no longer has: {count} numbers, {first} to {last}, were sent as gap \
                             fills; a larger FileStoreMegabytes keeps more"
                        ),
                    );
                }
                Event::Disconnect { reason, text } => {
                    let (name, at) = (self.session_name(id), self.whereabouts(id));
                    let text = match text.as_str() {
                        "" => String::new(),
                        text => format!(": {text}"),
                    };
                    let advice = advice(*reason);
                    self.tell_of(
                        now,
                        id,
                        Kind::Ended,
                        format_args!("{name} with {at} ended ({reason:?}): {reason}{text}{advice}"),
                    );
                }
                _ => {}
            }
            let is_message = matches!(event, Event::Message { .. });
            if is_message {
                self.probes.handed_over();
                if let Some(message) = self.table.session(id).message() {
                    self.copies.received(id, &message, &*self.observer);
                }
            }
            app.on_event(now, id, &event, &mut self.table);
            if is_message {
                self.probes.answered();
                // An order caused by market data goes out on another session: not behind the rest of what was read.
                if let Some(used) = self.table.take_last_used().filter(|used| *used != id)
                    && let Some(connection) = self.table.connection_of(used)
                {
                    self.transmit(now, connection, app);
                }
            }
        }
    }

    /// A session that a template admitted has logged on: it stays.
    #[cold]
    fn settle_in(&mut self, id: SessionId) {
        self.own[id.0].fleeting = None;
        let config = self.table.session(id).config();
        self.probes.show_in(id, || self.observer.row(&row_name(config)));
    }

    /// Whether somebody may log on, by the name and password in the Logon.
    #[cold]
    fn decide(&mut self, now: Nanos, id: SessionId, peer: &CompId) {
        let session = self.table.session(id);
        let Some(request) = session.logon_request() else {
            return;
        };
        let own = &self.own[id.0];
        let link = self
            .table
            .connection_of(id)
            .and_then(|at| self.links[at.0].as_ref());
        let may_come = |link: &Link| own.allowed.contains(&link.stream.peer().ip().to_canonical());
        let verdict = match &own.users {
            _ if !own.allowed.is_empty() && !link.is_some_and(may_come) => Err("not from this address"),
            Some(users) => users.judge(&request),
            None => Ok(()),
        };
        let session = self.table.session_mut(id);
        match verdict {
            Ok(()) => session.accept_logon(now),
            Err(why) => {
                session.refuse_logon(now, why);
                let at = self.whereabouts(id);
                self.tell_of(
                    now,
                    id,
                    Kind::Refused,
                    format_args!("{peer} from {at} refused: {why}"),
                );
            }
        }
    }

    /// Says what happened to a session, and logs it.
    fn tell(&mut self, now: Nanos, id: SessionId, text: std::fmt::Arguments<'_>) {
        self.observer.say(text);
        if let Some(log) = &mut self.log {
            log.event(now, id, &text.to_string());
        }
    }

    /// The same, unless there were too many of the kind.
    fn tell_of(&mut self, now: Nanos, id: SessionId, kind: Kind, text: std::fmt::Arguments<'_>) {
        match self.own[id.0].told.admits(kind, now) {
            Some(held) => self.tell(now, id, format_args!("{text}{}", more(held))),
            None => self.has_held = true,
        }
    }

    /// Says what became of a connection that belongs to no session.
    fn tell_anybody(&mut self, now: Nanos, kind: Kind, text: std::fmt::Arguments<'_>) {
        match self.told.admits(kind, now) {
            Some(held) => self.observer.say(format_args!("{text}{}", more(held))),
            None => self.has_held = true,
        }
    }

    /// Tells of lines that were held back, as soon as there may be one more of their kind.
    #[cold]
    fn settle_told(&mut self, now: Nanos) {
        let observer = &*self.observer;
        self.has_held = self.told.settle(now, |line| observer.say(line));
        for at in 0..self.own.len() {
            let mut lines = Vec::new();
            self.has_held |= self.own[at].told.settle(now, |line| lines.push(line.to_string()));
            let name = self.session_name(SessionId(at));
            for line in lines {
                self.tell(now, SessionId(at), format_args!("{name}: {line}"));
            }
        }
    }

    /// A session as it is called in lines.
    fn session_name(&self, id: SessionId) -> String {
        let config = self.table.session(id).config();
        format!("{} {} -> {}", config.version.name(), config.sender, config.target)
    }

    /// Where a session's peer is.
    fn whereabouts(&self, id: SessionId) -> String {
        let link = self
            .table
            .connection_of(id)
            .and_then(|at| self.links[at.0].as_ref());
        link.map_or_else(|| "nowhere".into(), |link| link.stream.peer().to_string())
    }

    /// Tells of connections that were closed before they came to belong to a session.
    #[cold]
    fn tell_refused(&mut self, now: Nanos) {
        while let Some(refused) = self.table.poll_refused() {
            let link = self.links[refused.connection.0].as_ref();
            let Some(at) = link.map(|link| link.stream.peer()) else {
                continue;
            };
            let Some((kind, why)) = self.why(&refused) else {
                continue;
            };
            let who = refused
                .identity
                .map(|identity| said(&identity))
                .unwrap_or_default();
            let text = format!("connection from {at} closed: {who}{why}");
            match refused.why {
                Refusal::Busy(session) => self.tell_of(now, session, kind, format_args!("{text}")),
                _ => self.tell_anybody(now, kind, format_args!("{text}")),
            }
        }
    }

    /// Why a connection was refused, and what to do.
    fn why(&self, refused: &Refused) -> Option<(Kind, String)> {
        let ids = refused
            .identity
            .map(|identity| (identity.target, identity.sender));
        let told = match refused.why {
            Refusal::Silent(0) => (
                Kind::Silent,
                "nothing came in time; a FIX initiator sends its Logon at once: look whether a probe or another protocol comes here".into(),
            ),
            Refusal::Silent(bytes) => (
                Kind::Silent,
                format!("{bytes} bytes came in time, but no whole message; look at the peer's Logon and at the network"),
            ),
            Refusal::Garbage => (
                Kind::Garbage,
                "what it sent first is no FIX message; look whether one side has TLS and the other not, or another protocol comes here".into(),
            ),
            Refusal::Unknown => {
                let (ours, theirs) = ids.unwrap_or_default();
                (
                    Kind::Unknown,
                    format!("unknown CompIDs; add a [SESSION] with SenderCompID={ours} and TargetCompID={theirs}, or correct the peer's"),
                )
            }
            Refusal::OtherVersion(version) => (
                Kind::Version,
                format!(
                    "wrong BeginString: the session of these CompIDs speaks {}; correct BeginString (over FIXT DefaultApplVerID) on one side",
                    version.name()
                ),
            ),
            Refusal::Busy(session) => (
                Kind::Second,
                format!(
                    "a second connection: the session is connected to {}; look whether the peer runs twice, or has left the first one open",
                    self.whereabouts(session)
                ),
            ),
            Refusal::TemplateFull => (
                Kind::NoRoom,
                "the template has as many sessions as it may; raise DynamicSessionsMax if they are all wanted".into(),
            ),
            Refusal::NoRoom => (
                Kind::NoRoom,
                "it had said nothing for longest, and its place was needed; look who connects and says nothing".into(),
            ),
            // Who turned it away has said why.
            Refusal::ByOwner => return None,
        };
        Some(told)
    }

    #[cold]
    fn tell_garbled(&mut self, now: Nanos, id: ConnectionId, before: u64) {
        let Some(session) = self.table.session_of(id) else {
            return;
        };
        let state = self.table.session(session);
        // Before the logon the end of the session tells of it.
        if !matches!(state.status(), Status::Active | Status::LogoutSent) {
            return;
        }
        let count = state.counters().get(Counter::FixMalformed) - before;
        let why = state
            .last_garbled()
            .map(|why| why.to_string())
            .unwrap_or_default();
        let (name, at) = (self.session_name(session), self.whereabouts(session));
        self.tell_of(
            now,
            session,
            Kind::Garbled,
            format_args!("{name}: {count} garbled message(s) from {at} skipped: {why}; what was lost is asked for when the next message comes"),
        );
    }

    /// Tells of a connection that ended without a word of FIX.
    #[cold]
    fn tell_lost(&mut self, now: Nanos, session: Option<SessionId>, link: &Link) {
        let at = link.stream.peer();
        let how = match &link.broken {
            Some(why) => why.clone(),
            None if link.stream.was_reset() => "reset by the peer".into(),
            None if link.is_closed => "closed by the peer".into(),
            // By ourselves, which is told where it was decided.
            None => return,
        };
        let Some(id) = session else {
            let what = "before a Logon came; look whether a probe or another protocol comes here";
            return self.tell_anybody(
                now,
                Kind::Silent,
                format_args!("connection from {at} ended {what}: {how}"),
            );
        };
        let state = self.table.session(id);
        let role = state.config().role;
        let what = match (state.status(), role) {
            (Status::Active | Status::LogoutSent, _) => "lost without a Logout",
            (Status::LogonSent | Status::LogonAwaited, _) => "ended before the logon was over",
            // The session's own end has been told of.
            _ => return,
        };
        let next = match (what, role) {
            (_, Role::Initiator) => "the next host is tried, and what was missed asked for",
            ("lost without a Logout", _) => {
                "it may log on again, and what was missed is sent then; look at the peer and the network"
            }
            _ => "look at the peer's log for the reason",
        };
        let name = self.session_name(id);
        self.tell_of(
            now,
            id,
            Kind::Lost,
            format_args!("{name}: connection with {at} {what}: {how}; {next}"),
        );
    }

    /// Sends what sessions have to say by their timers and applications, and closes what is over.
    fn drain<A: Handler>(&mut self, now: Nanos, app: &mut A) {
        for at in 0..self.links_end {
            let id = ConnectionId(at);
            if self.links[at].is_none() {
                continue;
            }
            self.events(now, id, app);
            self.transmit(now, id, app);
            self.close_if_over(now, id, app);
        }
    }

    fn close_if_over<A: Handler>(&mut self, now: Nanos, id: ConnectionId, app: &mut A) {
        let Some(link) = &mut self.links[id.0] else { return };
        if !link.is_closed && !self.table.wants_close(id) {
            return;
        }
        let since = *link.closing.get_or_insert(now);
        if link.is_closed || !link.stream.has_unsent() || now.since(since) >= CLOSE_NS {
            self.close(now, id, app);
        }
    }

    fn transmit<A: Handler>(&mut self, now: Nanos, id: ConnectionId, app: &mut A) {
        let Some(link) = &mut self.links[id.0] else { return };
        let session = self.table.session_of(id);
        loop {
            if link.stream.has_unsent() {
                match link.stream.flush() {
                    Ok(true) => {}
                    Ok(false) => {
                        if let Some(watch) = link.watch.filter(|_| !link.wants_output) {
                            link.wants_output = true;
                            self.waiter.want_output(watch, true);
                        }
                        return;
                    }
                    Err(e) => {
                        link.is_closed = true;
                        link.broken = Some(e.to_string());
                        return;
                    }
                }
            }
            let Some(bytes) = self.table.poll_transmit(id, &mut self.output) else {
                break;
            };
            if let Err(e) = link.stream.send(bytes) {
                link.is_closed = true;
                link.broken = Some(e.to_string());
                return;
            }
            if let Some(session) = session {
                self.probes.bytes_out(session);
                app.on_wire(now, session, Way::Out, bytes);
                self.copies.sent(session, bytes, &*self.observer);
                if let Some(log) = &mut self.log {
                    log.bytes(now, session, Way::Out, bytes);
                }
            }
        }
        if link.wants_output {
            link.wants_output = false;
            if let Some(watch) = link.watch {
                self.waiter.want_output(watch, false);
            }
        }
    }

    fn close<A: Handler>(&mut self, now: Nanos, id: ConnectionId, app: &mut A) {
        let session = self.table.session_of(id);
        if let Some(mut link) = self.take_link(id) {
            if !self.table.wants_close(id) {
                self.tell_lost(now, session, &link);
            }
            if let Some(watch) = link.watch {
                self.waiter.forget(watch);
            }
            link.stream.finish();
        }
        self.table.disconnect(now, id);
        if let Some(session) = session {
            app.on_closed(now, session);
            self.copies.closed(session);
            self.events_of(now, session, app);
            self.forget_fleeting(session);
            if let Some(log) = &mut self.log {
                log.closed(now, session);
            }
            if let Some(outgoing) = self.outgoing_mut(session) {
                outgoing.ended(now);
            }
        }
    }

    /// Ends every session in good order, for as long as a logout may take.
    fn log_out<A: Handler>(&mut self, app: &mut A) {
        let begin = self.clock.now();
        self.outgoing.iter_mut().for_each(|o| o.is_wanted = false);
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
            self.waiter.wait(10 * Nanos::MILLI);
            let now = self.clock.now();
            self.read(now, app);
            self.table.handle_timeout(now);
            self.drain(now, app);
        }
    }
}

/// The process or the machine has no more of something.
fn open(host: &Host, tls: Option<&Tls>, timeout: Duration) -> Result<Stream, String> {
    let addresses = (host.name.as_str(), host.port)
        .to_socket_addrs()
        .map_err(|e| format!("{host} cannot be found: {e}"))?;
    let mut last = format!("{host} has no address");
    for address in addresses {
        let connected = TcpStream::connect(address, timeout).map_err(|e| e.to_string());
        let stream = connected.and_then(|tcp| match tls {
            Some(Tls::Client { client, name }) => {
                let name = name.as_ref().unwrap_or(&host.name);
                let mut stream = client.connect(tcp, name).map_err(|e| e.to_string())?;
                match stream.establish(timeout) {
                    Ok(()) => Ok(stream),
                    Err(e) => Err(format!("{host}: {e}")),
                }
            }
            _ => Ok(Stream::Plain(tcp)),
        });
        match stream {
            Ok(stream) => return Ok(stream),
            Err(why) => last = why,
        }
    }
    Err(last)
}
