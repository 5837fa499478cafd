//! `tickwire fix acceptor`: the sockets and timers around [`tickwire_fix::Acceptor`].

use std::net::SocketAddr;

use tickwire_fix::{Acceptor, ConnectionId, Event, SessionId, Store};
use tickwire_market::Nanos;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::tcp::{Received, TcpListener, TcpStream};
use tickwire_runtime::wait::{WaitStrategy, Waiter, Watch};

use super::echo::Echo;
use super::settings;
use crate::cli::FixAcceptorArgs;
use crate::failure::Failure;

/// Connections beside one for each session: peers that have not said who they are, or come a second time.
const SPARE_CONNECTIONS: usize = 16;

/// A transport connection.
struct Link {
    stream: TcpStream,
    watch: Watch,
    /// The other side will send nothing more.
    is_closed: bool,
}

struct Server {
    listeners: Vec<TcpListener>,
    acceptor: Acceptor<Box<dyn Store>>,
    links: Vec<Option<Link>>,
    waiter: Waiter,
    echo: Echo,
    buffer: Vec<u8>,
}

pub(super) fn run(args: &FixAcceptorArgs, stop: &StopFlag) -> Result<(), Failure> {
    let setups = settings::acceptors(&args.config)?;
    let system = |e: tickwire_runtime::NetError| Failure::system(e.to_string());
    let connections = setups.len() + SPARE_CONNECTIONS;
    let mut server = Server {
        listeners: Vec::new(),
        acceptor: Acceptor::new(connections),
        links: (0..connections).map(|_| None).collect(),
        waiter: Waiter::new(WaitStrategy::Poll),
        echo: Echo::new(setups.len()),
        buffer: vec![0; 64 << 10],
    };
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for setup in setups {
        if !addresses.contains(&setup.listen) {
            let listener = TcpListener::bind(setup.listen).map_err(system)?;
            server.waiter.watch(&listener);
            let at = listener
                .local_addr()
                .map_err(|e| Failure::system(format!("the listening socket failed: {e}")))?;
            println!("listening on {at}");
            server.listeners.push(listener);
            addresses.push(setup.listen);
        }
        let store = super::store::open(&setup)?;
        let c = setup.config;
        println!("session {} {} -> {}", c.version.name(), c.sender, c.target);
        server.acceptor.add(setup.config, store, setup.rules);
    }
    let clock = Clock::calibrate();
    while !stop.is_set() {
        let now = clock.now();
        server.turn(now)?;
        let due = server.acceptor.poll_timeout();
        let longest = 100 * Nanos::MILLI;
        let wait = due.map_or(longest, |t| t.since(clock.now()).min(longest));
        server
            .waiter
            .wait(wait)
            .map_err(|e| Failure::system(format!("waiting for input failed: {e}")))?;
    }
    server.log_out(&clock);
    match stop.reason() {
        Some(reason) => Err(Failure::interrupted(format!(
            "{reason}; every session was logged out"
        ))),
        None => Ok(()),
    }
}

impl Server {
    /// Everything that is to be done now.
    fn turn(&mut self, now: Nanos) -> Result<(), Failure> {
        self.read(now, false);
        for listener in &mut self.listeners {
            while let Some(stream) = listener
                .accept()
                .map_err(|e| Failure::system(format!("accepting a connection failed: {e}")))?
            {
                // Without room, the connection is dropped and so closed.
                if let Some(id) = self.acceptor.connect(now) {
                    let watch = self.waiter.watch(&stream);
                    self.links[id.0] = Some(Link {
                        stream,
                        watch,
                        is_closed: false,
                    });
                }
            }
        }
        self.read(now, true);
        // Who closed before a new connection of the same session came is gone before that one is looked at.
        self.read(now, false);
        self.acceptor.handle_timeout(now);
        self.acceptor.settle(now);
        self.drain(now);
        Ok(())
    }

    /// Takes what connections sent: of those whose session is known, or of the others.
    fn read(&mut self, now: Nanos, openings: bool) {
        for at in 0..self.links.len() {
            let id = ConnectionId(at);
            if self.links[at].is_none() || self.acceptor.session_of(id).is_none() != openings {
                continue;
            }
            self.read_one(now, id);
        }
    }

    fn read_one(&mut self, now: Nanos, id: ConnectionId) {
        while let Some(link) = &mut self.links[id.0]
            && !link.is_closed
        {
            let bytes = match link.stream.recv(&mut self.buffer) {
                Ok(Received::Bytes(bytes)) => bytes,
                Ok(Received::Nothing) => return,
                Ok(Received::Closed) | Err(_) => {
                    link.is_closed = true;
                    break;
                }
            };
            let (mut from, len) = (0, bytes.len());
            while from < len {
                let taken = self.acceptor.handle_bytes(now, id, &self.buffer[from..len]);
                from += taken;
                if from < len {
                    self.events(now);
                    self.transmit(id);
                    if taken == 0 && self.acceptor.session_of(id).is_none() {
                        break;
                    }
                }
            }
        }
        if self.links[id.0].as_ref().is_some_and(|link| link.is_closed) {
            self.events(now);
            self.transmit(id);
            self.close(now, id);
        }
    }

    fn events(&mut self, now: Nanos) {
        for session in 0..self.acceptor.sessions() {
            let id = SessionId(session);
            while let Some(event) = self.acceptor.poll_event(id) {
                if let Event::LoggedOn { peer, .. } = &event {
                    println!("{peer} logged on");
                }
                if let Event::Disconnect { reason, text } = &event {
                    println!("{} {reason:?} {text}", self.acceptor.session(id).peer());
                }
                self.echo.on_event(now, id, &event, &mut self.acceptor);
            }
        }
    }

    /// Sends what sessions have to say and closes what is over.
    fn drain(&mut self, now: Nanos) {
        self.events(now);
        for at in 0..self.links.len() {
            let id = ConnectionId(at);
            if self.links[at].is_none() {
                continue;
            }
            self.transmit(id);
            // Events may wait for room to answer them.
            self.events(now);
            self.transmit(id);
            if self.acceptor.wants_close(id) {
                self.close(now, id);
            }
        }
    }

    fn transmit(&mut self, id: ConnectionId) {
        let Some(link) = &mut self.links[id.0] else { return };
        while link.stream.flush().unwrap_or(false) {
            let Some(bytes) = self.acceptor.poll_transmit(id, &mut self.buffer) else {
                return;
            };
            if link.stream.send(bytes).is_err() {
                link.is_closed = true;
                return;
            }
        }
    }

    fn close(&mut self, now: Nanos, id: ConnectionId) {
        if let Some(mut link) = self.links[id.0].take() {
            self.waiter.forget(link.watch);
            link.stream.finish();
        }
        self.acceptor.disconnect(now, id);
    }

    /// Ends every session in good order, for as long as a logout may take.
    fn log_out(&mut self, clock: &Clock) {
        let begin = clock.now();
        for session in 0..self.acceptor.sessions() {
            self.acceptor
                .session_mut(SessionId(session))
                .logout(begin, "shutting down");
        }
        while self.links.iter().any(Option::is_some) && clock.now().since(begin) < 3 * Nanos::SECOND {
            let now = clock.now();
            self.read(now, false);
            self.acceptor.handle_timeout(now);
            self.drain(now);
            let _ = self.waiter.wait(10 * Nanos::MILLI);
        }
    }
}
