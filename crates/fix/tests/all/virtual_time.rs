//! Initiators of every version against one acceptor in virtual time: connections lost at any byte, what was
//! under way on an old one delivered after the new one began, either process killed and begun again from its
//! lasting stores, clocks that step. Whatever happens, every message reaches the other application, in order,
//! and again only with PossDupFlag.
//!
//! `SEED=n` repeats a run, `SEEDS=n` makes so many; without either there are a few.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use tickwire_fix::{
    Acceptor, Again, CompId, ConnectionId, Event, Excess, LastingStore, Role, Session, SessionConfig,
    SessionId, Status, Throttle, Version, tag,
};
use tickwire_market::Nanos;
use tickwire_testdata::Rng;

const START: Nanos = Nanos(1_795_226_141 * Nanos::SECOND);
/// Runs of the ordinary tests.
const SEEDS: u64 = 40;
const STEPS: u64 = 4_000;
/// Words of a store: room for everything that is sent in a run, as what is no longer kept is filled.
const WORDS: usize = 1 << 15;

type Words = Box<[AtomicU64]>;
type Lasting = LastingStore<Words>;

fn store(words: Words, name: &str) -> Lasting {
    LastingStore::open(words, name.as_bytes()).expect("a store that was whole")
}

/// What is in a file when its process is killed.
fn file_of(store: &Lasting) -> Words {
    let words = store.memory().iter();
    words
        .map(|word| AtomicU64::new(word.load(Ordering::Relaxed)))
        .collect()
}

/// A store that is new.
fn new_store(name: &str) -> Lasting {
    let words: Words = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    LastingStore::begin(words, name.as_bytes()).expect("room for a store")
}

/// What the application of one side sent and got; it survives its process.
#[derive(Default)]
struct Traffic {
    sent: u64,
    got: u64,
    duplicates: u64,
}

impl Traffic {
    fn on_message(&mut self, number: u64, poss_dup: bool, whose: &str) {
        if number <= self.got {
            assert!(
                poss_dup,
                "{whose}: {number} again without PossDupFlag after {}",
                self.got
            );
            self.duplicates += 1;
            return;
        }
        assert_eq!(number, self.got + 1, "{whose}: a message is lost");
        self.got = number;
    }
}

/// A connection: bytes both ways, in order, and who has closed it.
struct Link {
    conn: Option<ConnectionId>,
    /// The initiator it is of.
    of: usize,
    is_initiators: bool,
    to_acceptor: VecDeque<u8>,
    to_initiator: VecDeque<u8>,
    closed_by_initiator: bool,
    closed_by_acceptor: bool,
}

struct Initiator {
    session: Session<Lasting>,
    link: Option<usize>,
    traffic: Traffic,
    clock_off: i64,
}

struct World {
    rng: Rng,
    now: Nanos,
    initiators: Vec<Initiator>,
    acceptor: Acceptor<Lasting>,
    /// Of the acceptor's sessions.
    traffic: Vec<Traffic>,
    clock_off: i64,
    links: Vec<Link>,
    connects: u64,
    /// The process dies with the next message in its application's hands.
    is_dying: bool,
}

/// What both ends of a session are set up with, by chance.
#[derive(Clone, Copy)]
struct Terms {
    chunk: u64,
    next_expected: bool,
    processed: bool,
    throttle: Option<Throttle>,
}

impl Terms {
    fn new(rng: &mut Rng) -> Terms {
        Terms {
            chunk: [0, 0, 3, 50][rng.below(4) as usize],
            next_expected: rng.chance(1, 2),
            processed: rng.chance(1, 2),
            throttle: rng.chance(1, 3).then_some(Throttle {
                per_second: 20,
                burst: 5,
                excess: Excess::Delay,
            }),
        }
    }
}

fn config(role: Role, version: Version, terms: Terms) -> SessionConfig {
    let ours = CompId::new(format!("BUYER-{}", version.name()).as_bytes()).expect("a short name");
    let venue = CompId::new(b"VENUE").expect("a short name");
    let (sender, target) = match role {
        Role::Initiator => (ours, venue),
        Role::Acceptor => (venue, ours),
    };
    SessionConfig {
        heartbeat_s: 5,
        latency_max_ns: 0,
        resend_chunk: terms.chunk,
        next_expected: terms.next_expected,
        last_processed: terms.processed,
        throttle_out: terms.throttle,
        receive_bytes: 4_096,
        transmit_bytes: 32_768,
        early_bytes: 2_048,
        events: 8,
        ..SessionConfig::new(role, sender, target).of_version(version)
    }
}

fn shifted(now: Nanos, by: i64) -> Nanos {
    Nanos(now.0.saturating_add_signed(by))
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let mut acceptor = Acceptor::new(24);
        let mut initiators = Vec::new();
        for version in Version::ALL {
            let terms = Terms::new(&mut rng);
            let theirs = config(Role::Acceptor, version, terms);
            acceptor.add(theirs, new_store("acceptor"), None);
            let ours = config(Role::Initiator, version, terms);
            initiators.push(Initiator {
                session: Session::with_store(ours, new_store("initiator")),
                link: None,
                traffic: Traffic::default(),
                clock_off: 0,
            });
        }
        World {
            rng,
            now: START,
            traffic: (0..initiators.len()).map(|_| Traffic::default()).collect(),
            initiators,
            acceptor,
            clock_off: 0,
            links: Vec::new(),
            connects: 0,
            is_dying: false,
        }
    }

    fn here(&self, of: usize) -> Nanos {
        shifted(self.now, self.initiators[of].clock_off)
    }

    fn there(&self) -> Nanos {
        shifted(self.now, self.clock_off)
    }

    // ---- the initiators' process --------------------------------------------------------------------------------

    fn connect(&mut self, of: usize) {
        if self.initiators[of].link.is_some() {
            return;
        }
        // The acceptor's host takes the connection when there is room.
        let Some(conn) = self.acceptor.connect(self.there()) else {
            return;
        };
        self.connects += 1;
        self.links.push(Link {
            conn: Some(conn),
            of,
            is_initiators: true,
            to_acceptor: VecDeque::new(),
            to_initiator: VecDeque::new(),
            closed_by_initiator: false,
            closed_by_acceptor: false,
        });
        let now = self.here(of);
        let initiator = &mut self.initiators[of];
        initiator.link = Some(self.links.len() - 1);
        initiator.session.handle_connected(now);
        self.drain_initiator(of);
    }

    fn drain_initiator(&mut self, of: usize) {
        let initiator = &mut self.initiators[of];
        let mut buf = [0; 700];
        let mut is_over = false;
        loop {
            let mut wrote = false;
            while let Some(bytes) = initiator.session.poll_transmit(&mut buf) {
                wrote = true;
                if let Some(link) = initiator.link {
                    self.links[link].to_acceptor.extend(bytes);
                }
            }
            match initiator.session.poll_event() {
                Some(Event::Message { poss_dup, .. }) => {
                    let message = initiator.session.message().expect("told of");
                    let number = message.find(11).map(|f| message.unsigned(f));
                    let number = number.expect("our own").expect("a number");
                    initiator.traffic.on_message(number, poss_dup, "initiator");
                    if self.is_dying {
                        return;
                    }
                }
                Some(Event::Disconnect { .. }) => is_over = true,
                Some(Event::Rejected { text, .. }) => panic!("rejected: {text}"),
                Some(_) => {}
                None if !wrote => break,
                None => {}
            }
        }
        if is_over {
            self.hang_up(of);
        }
    }

    /// The initiator's end is closed; what it sent is still under way.
    fn hang_up(&mut self, of: usize) {
        let now = self.here(of);
        let initiator = &mut self.initiators[of];
        if let Some(link) = initiator.link.take() {
            self.links[link].closed_by_initiator = true;
            self.links[link].is_initiators = false;
        }
        initiator.session.handle_disconnected(now);
    }

    fn kill_initiator(&mut self, of: usize) {
        let config = *self.initiators[of].session.config();
        let file = file_of(self.initiators[of].session.store());
        self.hang_up(of);
        self.initiators[of].session = Session::with_store(config, store(file, "initiator"));
    }

    fn deliver_to_initiator(&mut self, link: usize, max: usize) {
        let of = self.links[link].of;
        let n = max.min(self.links[link].to_initiator.len());
        let bytes: Vec<u8> = self.links[link].to_initiator.drain(..n).collect();
        let mut rest = &bytes[..];
        while !rest.is_empty() && self.initiators[of].link == Some(link) {
            let now = self.here(of);
            let taken = self.initiators[of].session.handle_bytes(now, rest);
            rest = &rest[taken..];
            self.drain_initiator(of);
        }
        let link_state = &self.links[link];
        let is_end = link_state.to_initiator.is_empty() && link_state.closed_by_acceptor;
        if is_end && self.initiators[of].link == Some(link) {
            self.hang_up(of);
        }
    }

    /// What arrives while the process dies: nothing after the message it dies with is handled.
    fn deliver_to_initiator_dying(&mut self, link: usize) {
        let of = self.links[link].of;
        let now = self.here(of);
        let bytes: Vec<u8> = self.links[link].to_initiator.drain(..).collect();
        let _ = self.initiators[of].session.handle_bytes(now, &bytes);
        self.drain_initiator(of);
    }

    // ---- the acceptor's process ---------------------------------------------------------------------------------

    fn deliver_to_acceptor(&mut self, link: usize, max: usize) {
        let now = self.there();
        let n = max.min(self.links[link].to_acceptor.len());
        let bytes: Vec<u8> = self.links[link].to_acceptor.drain(..n).collect();
        let mut rest = &bytes[..];
        while let Some(conn) = self.links[link].conn.filter(|_| !rest.is_empty()) {
            let taken = self.acceptor.handle_bytes(now, conn, rest);
            rest = &rest[taken..];
            self.drain_acceptor();
        }
        let state = &mut self.links[link];
        if state.to_acceptor.is_empty()
            && state.closed_by_initiator
            && let Some(conn) = state.conn.take()
        {
            self.acceptor.disconnect(now, conn);
            state.closed_by_acceptor = true;
        }
        self.drain_acceptor();
    }

    fn deliver_to_acceptor_dying(&mut self, link: usize) {
        let now = self.there();
        let bytes: Vec<u8> = self.links[link].to_acceptor.drain(..).collect();
        if let Some(conn) = self.links[link].conn {
            let _ = self.acceptor.handle_bytes(now, conn, &bytes);
        }
        self.drain_acceptor();
    }

    fn drain_acceptor(&mut self) {
        let now = self.there();
        self.acceptor.settle(now);
        let mut buf = [0; 700];
        loop {
            let mut any = false;
            for at in 0..self.traffic.len() {
                let id = SessionId(at);
                while let Some(event) = self.acceptor.poll_event(id) {
                    any = true;
                    match event {
                        Event::Message { poss_dup, .. } => {
                            let message = self.acceptor.session(id).message().expect("told of");
                            let number = message.find(11).map(|f| message.unsigned(f));
                            let number = number.expect("our own").expect("a number");
                            self.traffic[at].on_message(number, poss_dup, "acceptor");
                            if self.is_dying {
                                return;
                            }
                        }
                        Event::Rejected { text, .. } => panic!("rejected: {text}"),
                        _ => {}
                    }
                }
            }
            for link in &mut self.links {
                let Some(conn) = link.conn else { continue };
                while let Some(bytes) = self.acceptor.poll_transmit(conn, &mut buf) {
                    any = true;
                    link.to_initiator.extend(bytes);
                }
                if self.acceptor.wants_close(conn) {
                    self.acceptor.disconnect(now, conn);
                    link.conn = None;
                    link.closed_by_acceptor = true;
                    any = true;
                }
            }
            if !any {
                return;
            }
        }
    }

    fn kill_acceptor(&mut self) {
        let mut next = Acceptor::new(24);
        for at in 0..self.traffic.len() {
            let session = self.acceptor.session(SessionId(at));
            next.add(
                *session.config(),
                store(file_of(session.store()), "acceptor"),
                None,
            );
        }
        self.acceptor = next;
        for link in &mut self.links {
            if link.conn.take().is_some() {
                link.closed_by_acceptor = true;
            }
        }
    }

    // ---- what happens -------------------------------------------------------------------------------------------

    fn send(&mut self) {
        let of = self.rng.below(self.initiators.len() as u64) as usize;
        let text = [b'x'; 90];
        let text = &text[..self.rng.below(90) as usize];
        let (here, there) = (self.here(of), self.there());
        if self.rng.chance(1, 2) {
            let initiator = &mut self.initiators[of];
            let number = initiator.traffic.sent + 1;
            let sent = initiator.session.send(here, b"D", Again::Resend, |e, _| {
                e.unsigned(11, number);
                e.text_if(tag::TEXT, text);
            });
            initiator.traffic.sent += u64::from(sent.is_ok());
            if self.rng.chance(3, 4) {
                self.drain_initiator(of);
            }
        } else {
            let number = self.traffic[of].sent + 1;
            let sent = self
                .acceptor
                .session_mut(SessionId(of))
                .send(there, b"8", Again::Resend, |e, _| {
                    e.unsigned(11, number);
                    e.text_if(tag::TEXT, text);
                });
            self.traffic[of].sent += u64::from(sent.is_ok());
            if self.rng.chance(3, 4) {
                self.drain_acceptor();
            }
        }
    }

    fn deliver(&mut self, max: u64) {
        let open: Vec<usize> = (0..self.links.len())
            .filter(|&at| {
                let link = &self.links[at];
                link.conn.is_some() || link.is_initiators
            })
            .collect();
        if open.is_empty() {
            return;
        }
        let link = open[self.rng.below(open.len() as u64) as usize];
        let n = 1 + self.rng.below(max) as usize;
        if self.rng.chance(1, 2) {
            self.deliver_to_acceptor(link, n);
        } else {
            self.deliver_to_initiator(link, n);
        }
    }

    /// One end of a connection notices its loss now, at any byte, the other when it has read what still
    /// arrives.
    fn lose(&mut self) {
        if self.links.is_empty() {
            return;
        }
        let at = self.rng.below(self.links.len() as u64) as usize;
        let (keep_a, keep_i) = (self.rng.below(400) as usize, self.rng.below(400) as usize);
        let link = &mut self.links[at];
        link.to_acceptor.truncate(keep_a);
        link.to_initiator.truncate(keep_i);
        if self.rng.chance(1, 2) {
            if self.links[at].is_initiators {
                let of = self.links[at].of;
                self.hang_up(of);
            }
        } else if let Some(conn) = self.links[at].conn.take() {
            let now = self.there();
            self.links[at].closed_by_acceptor = true;
            self.acceptor.disconnect(now, conn);
        }
    }

    fn time(&mut self, at_most_ns: u64) {
        self.now = self.now.after(self.rng.below(at_most_ns));
        for of in 0..self.initiators.len() {
            let now = self.here(of);
            self.initiators[of].session.handle_timeout(now);
            self.drain_initiator(of);
        }
        self.acceptor.handle_timeout(self.there());
        self.drain_acceptor();
    }

    fn step(&mut self) {
        match self.rng.below(1_000) {
            0..=3 => self.lose(),
            4 => {
                let of = self.rng.below(self.initiators.len() as u64) as usize;
                if let Some(link) = self.initiators[of].link {
                    self.is_dying = true;
                    self.deliver_to_initiator_dying(link);
                    self.is_dying = false;
                }
                self.kill_initiator(of);
            }
            5 if self.rng.chance(1, 3) => {
                if let Some(link) = (0..self.links.len()).rfind(|&at| !self.links[at].to_acceptor.is_empty())
                {
                    self.is_dying = true;
                    self.deliver_to_acceptor_dying(link);
                    self.is_dying = false;
                }
                self.kill_acceptor();
            }
            6 => {
                // Half a minute either way.
                let step = self.rng.below(60 * Nanos::SECOND) as i64 - 30 * Nanos::SECOND as i64;
                match self.rng.below(self.initiators.len() as u64 + 1) as usize {
                    of if of < self.initiators.len() => self.initiators[of].clock_off += step,
                    _ => self.clock_off += step,
                }
            }
            7..=60 => {
                let of = self.rng.below(self.initiators.len() as u64) as usize;
                self.connect(of);
            }
            61..=300 => self.send(),
            301..=400 => self.time(100 * Nanos::MILLI),
            _ => self.deliver(600),
        }
    }

    fn is_settled(&self) -> bool {
        let ends = self.initiators.iter().zip(&self.traffic);
        ends.enumerate().all(|(at, (initiator, theirs))| {
            initiator.session.status() == Status::Active
                && self.acceptor.session(SessionId(at)).status() == Status::Active
                && initiator.traffic.got == theirs.sent
                && theirs.got == initiator.traffic.sent
        })
    }

    /// The network is good again: everything arrives in the end.
    fn settle(&mut self) {
        for _ in 0..4_000 {
            for of in 0..self.initiators.len() {
                self.connect(of);
            }
            for link in 0..self.links.len() {
                self.deliver_to_acceptor(link, usize::MAX);
                self.deliver_to_initiator(link, usize::MAX);
            }
            if self.is_settled() {
                return;
            }
            self.time(200 * Nanos::MILLI);
        }
        for (at, initiator) in self.initiators.iter().enumerate() {
            let (ours, theirs) = (&initiator.traffic, &self.traffic[at]);
            println!(
                "{}: {:?} sent {} got {}; acceptor {:?} sent {} got {}",
                initiator.session.config().version.name(),
                initiator.session.status(),
                ours.sent,
                ours.got,
                self.acceptor.session(SessionId(at)).status(),
                theirs.sent,
                theirs.got
            );
        }
        panic!("not everything arrived although the network is good");
    }
}

/// Says how to repeat a run that fails.
struct Rerun(u64);

impl Drop for Rerun {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!(
                "to repeat: SEED={} cargo test -p tickwire-fix --test all virtual_time -- --nocapture",
                self.0
            );
        }
    }
}

#[test]
fn nothing_is_lost_or_doubled_whatever_happens_to_connections_processes_and_clocks() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|n| n.parse::<u64>().expect("a number"))
    };
    let seeds = match number("SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("SEEDS").unwrap_or(SEEDS),
    };
    let (mut messages, mut duplicates, mut connects, mut runs) = (0, 0, 0, 0);
    for seed in seeds {
        let _rerun = Rerun(seed);
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.settle();
        let all = || world.initiators.iter().map(|i| &i.traffic).chain(&world.traffic);
        messages += all().map(|t| t.got).sum::<u64>();
        duplicates += all().map(|t| t.duplicates).sum::<u64>();
        connects += world.connects;
        runs += 1;
    }
    println!("{runs} runs: {messages} messages, {duplicates} of them again, {connects} connections");
    assert!(
        messages > 200 * runs && connects > 16 * runs && (runs == 1 || duplicates > 0),
        "hardly anything happened: {messages} messages, {connects} connections in {runs} runs"
    );
}
