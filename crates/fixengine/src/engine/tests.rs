//! A thread that stands still, by a clock that is set by hand: what its peers have said meanwhile is read
//! before they count as silent.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use tickwire_fix::{MemoryStore, Session, SessionConfig};

use super::*;
use crate::observer::Silent;

const PATIENCE: Duration = Duration::from_secs(20);
/// Longer than any session waits for its peer.
const LONG: u64 = 60 * Nanos::SECOND;

struct Nothing;

impl Handler for Nothing {
    fn on_event(&mut self, _: Nanos, _: SessionId, _: &Event, _: &mut Table) {}
}

fn config(role: Role, [sender, target]: [&str; 2]) -> SessionConfig {
    let id = |name: &str| CompId::new(name.as_bytes()).expect("short");
    SessionConfig {
        heartbeat_s: 1,
        ..SessionConfig::new(role, id(sender), id(target))
    }
}

fn at_loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Whom the engine talks to.
struct Peer {
    stream: TcpStream,
    session: Session<MemoryStore>,
}

impl Peer {
    fn new(stream: TcpStream, role: Role, ids: [&str; 2], now: Nanos, wall_offset_ns: i64) -> Peer {
        stream.set_nonblocking(true).expect("a socket");
        let mut session = Session::new(config(role, ids));
        session.set_wall_offset(wall_offset_ns);
        session.handle_connected(now);
        Peer { stream, session }
    }

    /// Reads what there is, and says what it has to by now.
    fn go_on(&mut self, now: Nanos) {
        let mut bytes = [0; 4096];
        if let Ok(count) = self.stream.read(&mut bytes) {
            assert_eq!(self.session.handle_bytes(now, &bytes[..count]), count);
        }
        self.session.handle_timeout(now);
        while self.session.poll_event().is_some() {}
        while let Some(bytes) = self.session.poll_transmit(&mut bytes) {
            self.stream.write_all(bytes).expect("the engine is there");
        }
    }
}

struct Played {
    engine: Engine,
    now: Nanos,
    stop: StopFlag,
}

impl Played {
    fn new(setups: Vec<Setup>) -> Played {
        let engine = Engine::new(setups, Arc::new(Silent)).expect("it begins");
        let now = engine.clock.now();
        let stop = StopFlag::new();
        Played { engine, now, stop }
    }

    fn wall_offset_ns(&self) -> i64 {
        self.engine.clock.wall_offset_ns()
    }

    /// The thread asks the kernel which sockets have input.
    fn wait(&mut self) {
        self.engine.wait(Some(Nanos::ZERO));
    }

    fn turn(&mut self) {
        let flow = self.engine.turn(self.now, &mut Nothing, &self.stop);
        assert_eq!(flow.expect("nothing fails"), Flow::Go);
    }

    /// Turns until `is_so`, with a peer in between.
    fn until(&mut self, peer: &mut Peer, is_so: impl Fn(&Engine) -> bool) {
        let began = Instant::now();
        while !is_so(&self.engine) {
            self.wait();
            self.turn();
            peer.go_on(self.now);
            assert!(began.elapsed() < PATIENCE);
        }
    }

    fn status(&self) -> Status {
        self.engine.table.session(SessionId(0)).status()
    }

    /// The thread goes on after a long time.
    fn stand_still(&mut self) {
        // Loopback has delivered everything when the call that writes returns; a busy machine may need a
        // moment.
        std::thread::sleep(Duration::from_millis(20));
        self.now = self.now.after(LONG);
    }
}

fn is_active(engine: &Engine) -> bool {
    engine.table.session(SessionId(0)).status() == Status::Active
}

/// An engine that listens and one that connects, each with its peer, which has not answered a Logon yet.
fn both_roles() -> [(Played, Peer); 2] {
    let (us, them) = (["US", "THEM"], ["THEM", "US"]);
    let setup = Setup::listening(config(Role::Acceptor, us), at_loopback());
    let accepts = Played::new(vec![setup]);
    let stream = TcpStream::connect(accepts.engine.addresses()[0]).expect("it listens");
    let initiator = Peer::new(
        stream,
        Role::Initiator,
        them,
        accepts.now,
        accepts.wall_offset_ns(),
    );

    let listener = TcpListener::bind(at_loopback()).expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let setup = Setup::connecting(config(Role::Initiator, us), "127.0.0.1", port);
    let mut connects = Played::new(vec![setup]);
    connects.turn();
    let (stream, _) = listener.accept().expect("it connects");
    let acceptor = Peer::new(
        stream,
        Role::Acceptor,
        them,
        connects.now,
        connects.wall_offset_ns(),
    );
    [(accepts, initiator), (connects, acceptor)]
}

#[test]
fn a_peer_whose_heartbeat_lies_in_the_socket_is_not_silent() {
    for (mut played, mut peer) in both_roles() {
        played.until(&mut peer, is_active);

        played.wait();
        peer.go_on(played.now.after(Nanos::SECOND));
        played.stand_still();
        played.turn();
        assert_eq!(played.status(), Status::Active);

        // One that has said nothing is.
        played.wait();
        played.stand_still();
        played.turn();
        assert_ne!(played.status(), Status::Active);
    }
}

#[test]
fn a_logon_that_lies_in_the_socket_is_answered_in_time() {
    let [_, (mut played, mut peer)] = both_roles();
    let began = Instant::now();
    while played.status() != Status::LogonSent {
        played.wait();
        played.turn();
        assert!(began.elapsed() < PATIENCE);
    }
    played.wait();
    let began = Instant::now();
    while peer.session.status() != Status::Active {
        peer.go_on(played.now);
        assert!(began.elapsed() < PATIENCE);
    }
    played.stand_still();
    played.turn();
    assert_eq!(played.status(), Status::Active);
}

#[test]
fn who_has_said_its_name_does_not_give_way_to_connections_that_say_nothing() {
    let setup = Setup::listening(config(Role::Acceptor, ["US", "THEM"]), at_loopback());
    let mut played = Played::new(vec![setup]);
    let address = played.engine.addresses()[0];
    let stream = TcpStream::connect(address).expect("it listens");
    let ids = ["THEM", "US"];
    let mut peer = Peer::new(stream, Role::Initiator, ids, played.now, played.wall_offset_ns());
    let began = Instant::now();
    while played.engine.links().next().is_none() {
        played.wait();
        played.turn();
        assert!(began.elapsed() < PATIENCE);
    }

    // While the thread stands still, it logs on, and others take every place there is and more.
    peer.go_on(played.now);
    let connect = |_| TcpStream::connect(address).expect("it listens");
    let silent: Vec<TcpStream> = (0..3 * SPARE_CONNECTIONS).map(connect).collect();
    std::thread::sleep(Duration::from_millis(20));
    played.now = played.now.after(Nanos::SECOND);
    played.wait();
    played.turn();
    assert_eq!(played.status(), Status::Active);

    // Of those who say nothing the first ones gave way.
    assert_eq!(played.engine.links().count(), 1 + SPARE_CONNECTIONS);
    drop(silent);
}
