//! The sockets of one published channel: [`ChannelSockets`] publish and serve it. They know addresses, not
//! protocols.

use std::io;
use std::net::SocketAddr;

use tickwire_exchange::{Exchange, Impair, ImpairConfig, LineSet};
use tickwire_market::{Counter, Counters, Nanos, Port, SeqNo, Transport};
use tickwire_runtime::NetError;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::tcp::{Received, TcpListener, TcpStream};
use tickwire_runtime::trouble::{BackOff, Trouble};
use tickwire_runtime::udp::{Datagram, MulticastSender, UdpEndpoint};
use tickwire_runtime::wait::{Waiter, Watch};

use tickwire_console::failure::Failure;
use tickwire_console::health::{SocketHealth, accept};
use tickwire_console::warn;
use tickwire_venues::ports::Ports;

use crate::strangers::{Allowed, AnswerLimit, Seat, seat};

/// Connections of each kind served at once. A further one takes the place of one that says nothing, else it
/// is closed at once.
pub const CONNECTIONS: usize = 4;
/// How many hops multicast may go; 0 stays on this machine.
const TTL: u8 = 1;

fn system(e: NetError) -> Failure {
    Failure::system(e.to_string())
}

/// The troubles of the two lines, alike on every multicast port.
#[derive(Clone, Copy, Debug)]
pub struct LineTroubles {
    /// What happens to packets of line A and of line B.
    pub lines: [ImpairConfig; 2],
    /// What happens to requests by datagram.
    pub requests: ImpairConfig,
}

/// A multicast line with its trouble.
struct PublishedLine {
    port: Port,
    line: usize,
    sender: MulticastSender,
    health: SocketHealth,
    impair: Impair,
    datagrams: u64,
}

/// Where requests by datagram come in and are answered.
struct RequestServer {
    endpoint: UdpEndpoint,
    receiving: SocketHealth,
    answering: SocketHealth,
    limit: AnswerLimit,
}

/// A connected client.
struct Client {
    stream: TcpStream,
    watch: Watch,
    came: Nanos,
    /// It has said something.
    is_heard: bool,
}

/// A stream port and who is connected.
struct Server {
    port: Port,
    listener: TcpListener,
    accepting: SocketHealth,
    /// New clients are looked for from then on.
    next_look: Nanos,
    clients: [Option<Client>; CONNECTIONS],
}

/// How often new clients are looked for: the kernel makes a socket before it sees that nobody waits, which in
/// every turn was a sixth of this program's time at 20,000 messages a second.
const LOOK_NS: u64 = Nanos::MILLI;

/// When datagrams first left: number of the first message, of the one after the last, ticks.
#[derive(Default)]
pub struct Departures(Vec<(u64, u64, u64)>);

impl Departures {
    /// Room for that many datagrams; later ones are not noted.
    pub fn with_capacity(datagrams: usize) -> Departures {
        Departures(Vec::with_capacity(datagrams.min(1 << 24)))
    }

    fn note(&mut self, span: Option<(SeqNo, SeqNo)>, ticks: u64) {
        if let Some((first, next)) = span
            && self.0.len() < self.0.capacity()
        {
            self.0.push((first.0, next.0, ticks));
        }
    }

    /// The first departure of a message.
    pub fn of(&self, seq: u64) -> Option<u64> {
        let at = self
            .0
            .partition_point(|&(first, _, _)| first <= seq)
            .checked_sub(1)?;
        let (_, next, ticks) = self.0[at];
        (seq < next).then_some(ticks)
    }

    /// In order of number, only the first departure of each: held-back and duplicate datagrams come later
    /// again.
    pub fn settle(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by_key(|d| d.0);
    }
}

/// The sockets of one published channel. See the module's description.
pub struct ChannelSockets {
    /// Which channel of the exchange.
    index: usize,
    lines: Vec<PublishedLine>,
    requests: Option<RequestServer>,
    requests_lost: Impair,
    servers: Vec<Server>,
    datagram: Vec<u8>,
    answered: u64,
    last_request: Nanos,
}

impl ChannelSockets {
    /// Opens the sockets of a channel: a sender per multicast group and line, and a server per port that has
    /// an address. `index`: which channel of the exchange it is. `seed` makes its troubles the same every
    /// run, and different from every other line's. `answer_bytes_per_s` bounds answers by datagram to one
    /// address; 0: no limit. The servers are watched by `waiter`.
    ///
    /// # Errors
    /// An interface that is not there, or an address that is taken.
    pub fn open(
        index: usize,
        ports: &Ports,
        troubles: LineTroubles,
        seed: u64,
        answer_bytes_per_s: u64,
        waiter: &mut Waiter,
    ) -> Result<ChannelSockets, Failure> {
        let interface = ports.interface.find()?;
        let mut sockets = ChannelSockets {
            index,
            lines: Vec::new(),
            requests: None,
            requests_lost: Impair::new(ImpairConfig {
                seed: seed.wrapping_add(77),
                ..troubles.requests
            }),
            servers: Vec::new(),
            datagram: Vec::with_capacity(1 << 16),
            answered: 0,
            last_request: Nanos::ZERO,
        };
        for port in Port::ALL {
            match (port.transport(), ports.servers[port as usize]) {
                (Transport::Multicast, _) => {
                    for (line, group) in ports.groups[port as usize].iter().enumerate() {
                        let Some(group) = *group else { continue };
                        let number = (index * Port::COUNT + port as usize) * 2 + line + 1;
                        sockets.lines.push(PublishedLine {
                            port,
                            line,
                            sender: MulticastSender::open(group, &interface, TTL).map_err(system)?,
                            health: SocketHealth::new(BackOff::SEND, format!("publishing on {group}")),
                            impair: Impair::new(ImpairConfig {
                                seed: seed.wrapping_mul(1024).wrapping_add(number as u64),
                                ..troubles.lines[line]
                            }),
                            datagrams: 0,
                        });
                    }
                }
                (Transport::Datagram, Some(address)) => {
                    let endpoint = UdpEndpoint::bind(address).map_err(system)?;
                    waiter.watch(&endpoint);
                    sockets.requests = Some(RequestServer {
                        endpoint,
                        receiving: SocketHealth::new(
                            BackOff::RECEIVE,
                            format!("receiving requests at {address}"),
                        ),
                        answering: SocketHealth::new(
                            BackOff::SEND,
                            format!("answering requests from {address}"),
                        ),
                        limit: AnswerLimit::new(answer_bytes_per_s),
                    });
                }
                (Transport::Stream, Some(address)) => {
                    let listener = TcpListener::bind(address.into()).map_err(system)?;
                    waiter.watch(&listener);
                    sockets.servers.push(Server {
                        port,
                        listener,
                        accepting: SocketHealth::new(
                            BackOff::SEND,
                            format!("accepting connections at {address}"),
                        ),
                        next_look: Nanos::ZERO,
                        clients: [const { None }; CONNECTIONS],
                    });
                }
                (_, None) => {}
            }
        }
        Ok(sockets)
    }

    /// The ports on which it listens.
    pub fn listening(&self) -> Vec<(Port, u16)> {
        let of = |address: io::Result<SocketAddr>| address.map(|a| a.port()).unwrap_or_default();
        let requests = self
            .requests
            .iter()
            .map(|r| (Port::Requests, of(r.endpoint.local_addr())));
        let servers = self.servers.iter().map(|s| (s.port, of(s.listener.local_addr())));
        requests.chain(servers).collect()
    }

    /// Sends one datagram, if one is due, so that orders are looked at between any two. Whether there was
    /// one.
    pub fn publish(&mut self, now: Nanos, exchange: &mut Exchange, departures: &mut Departures) -> bool {
        let Some(datagram) = exchange.poll_datagram(self.index, now) else {
            return false;
        };
        let (port, lines) = (datagram.port, datagram.lines);
        self.datagram.clear();
        self.datagram.extend_from_slice(datagram.bytes);
        let publisher = &exchange.published_channels()[self.index].publisher;
        for line in self.lines.iter_mut().filter(|line| line.port == port) {
            if !lines.has(LineSet(1 << line.line)) {
                continue;
            }
            let (sender, count, health) = (&line.sender, &mut line.datagrams, &mut line.health);
            line.impair.send(&self.datagram, &mut |bytes: &[u8]| {
                // The clock is read before the call: the receiver may run before it returns.
                let ticks = tsc();
                if port == Port::Live {
                    departures.note(publisher.span(bytes), ticks);
                }
                *count += 1;
                // What cannot be sent is a lost packet, as on any network.
                if health.may_try() {
                    match sender.send(bytes) {
                        Ok(()) => health.worked(),
                        Err(e) if Trouble::of(&e) == Trouble::WouldBlock => {}
                        Err(e) => health.failed(&e),
                    }
                }
            });
        }
        true
    }

    /// Answers requests and moves the bytes of recovery connections.
    pub fn serve(&mut self, clock: &Clock, exchange: &mut Exchange, waiter: &mut Waiter, buffer: &mut [u8]) {
        if let Some(requests) = &mut self.requests {
            while let Some((datagram, from)) = requests.next(buffer) {
                let now = clock.now();
                self.last_request = now;
                let mut reply = [0; 2048];
                let mut answer = None;
                let index = self.index;
                self.requests_lost.send(datagram.bytes, &mut |bytes: &[u8]| {
                    answer = exchange.handle_request(index, now, bytes, &mut reply)
                });
                if let Some(length) = answer {
                    self.answered += 1;
                    requests.answer(now, &reply[..length], from);
                }
            }
        }
        let now = clock.now();
        for server in &mut self.servers {
            server.serve(self.index, now, exchange, waiter, buffer);
        }
    }

    /// Says which sockets work again.
    pub fn settle(&mut self) {
        self.healths_mut().for_each(SocketHealth::settle);
    }

    /// Errors of its sockets.
    pub fn count(&self, counters: &mut Counters) {
        let requests = self.requests.iter().flat_map(|r| [&r.receiving, &r.answering]);
        let lines = self.lines.iter().map(|line| &line.health);
        let servers = self.servers.iter().map(|server| &server.accepting);
        let withheld = self.requests.iter().map(|r| r.limit.withheld()).sum();
        counters.add(Counter::AnswersWithheld, withheld);
        requests
            .chain(lines)
            .chain(servers)
            .for_each(|h| h.count(counters));
    }

    fn healths_mut(&mut self) -> impl Iterator<Item = &mut SocketHealth> {
        let requests = self.requests.iter_mut();
        let requests = requests.flat_map(|r| [&mut r.receiving, &mut r.answering]);
        let lines = self.lines.iter_mut().map(|line| &mut line.health);
        let servers = self.servers.iter_mut().map(|server| &mut server.accepting);
        requests.chain(lines).chain(servers)
    }

    /// Loses the next live packets of a line, or of both; of how many lines.
    pub fn lose(&mut self, line: Option<usize>, packets: u32) -> usize {
        let is_meant =
            |l: &&mut PublishedLine| l.port == Port::Live && line.is_none_or(|line| l.line == line);
        let mut lines = 0;
        for line in self.lines.iter_mut().filter(is_meant) {
            line.impair.lose(packets);
            lines += 1;
        }
        lines
    }

    /// Requests by datagram that were answered.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Whether somebody is connected for recovery, or asked within `quiet_ns`.
    pub fn is_busy(&self, now: Nanos, quiet_ns: u64) -> bool {
        let is_serving = |server: &Server| server.clients.iter().any(Option::is_some);
        self.servers.iter().any(is_serving) || now.since(self.last_request) < quiet_ns
    }

    /// Live datagrams sent and lost, by line.
    pub fn live_counts(&self) -> [(u64, u64); 2] {
        [0, 1].map(|line| {
            let live = |l: &&PublishedLine| l.port == Port::Live && l.line == line;
            let line = self.lines.iter().find(live);
            line.map_or((0, 0), |l| (l.datagrams, l.impair.counts().lost))
        })
    }
}

impl RequestServer {
    /// The next request, and who asks.
    fn next<'b>(&mut self, buffer: &'b mut [u8]) -> Option<(Datagram<'b>, SocketAddr)> {
        if !self.receiving.may_try() {
            return None;
        }
        match self.endpoint.recv_from(buffer) {
            Ok(received) => {
                self.receiving.worked();
                received
            }
            Err(e) => {
                self.receiving.failed(&e);
                None
            }
        }
    }

    /// Sends an answer. One that cannot be sent says something about its address perhaps, and nothing about
    /// others: those are answered all the same.
    fn answer(&mut self, now: Nanos, reply: &[u8], to: SocketAddr) {
        if to.port() == 0 {
            // Whoever sends from there (RFC 768 allows it) can be told nothing, and the kernel calls an
            // attempt invalid.
            let nobody = io::Error::other(format!(
                "the request from {} came from port 0, to which nothing can be sent",
                to.ip()
            ));
            return self.answering.troubled(Trouble::PeerGone, &nobody);
        }
        match self.limit.take(now, to.ip(), reply.len()) {
            Allowed::Yes => {}
            Allowed::No => return,
            Allowed::NoAndSay => {
                return warn(format_args!(
                    "{} asks for more than {} bytes of answers a second (exchange.answer_bytes_per_s): what is beyond is not answered; if it is \
                     ours and behind, raise the limit",
                    to.ip(),
                    self.limit.bytes_per_s()
                ));
            }
        }
        match self.endpoint.send_to(reply, to) {
            Ok(_) => self.answering.worked(),
            Err(e) => self.answering.troubled(not_ours(Trouble::of(&e)), &e),
        }
    }
}

/// An answer to an address that a stranger chose is never a fault of our configuration.
fn not_ours(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Configuration => Trouble::PeerGone,
        other => other,
    }
}

impl Server {
    /// The next client.
    fn accept(&mut self) -> Option<TcpStream> {
        accept(&mut self.listener, &mut self.accepting)
    }

    fn serve(
        &mut self,
        published_channel: usize,
        now: Nanos,
        exchange: &mut Exchange,
        waiter: &mut Waiter,
        buffer: &mut [u8],
    ) {
        let port = self.port;
        // Clients are read before one of them has to give way: what it said may lie in its socket.
        for (id, slot) in self.clients.iter_mut().enumerate() {
            let Some(client) = slot else { continue };
            let mut is_over = match client.stream.recv(buffer) {
                Ok(Received::Bytes(bytes)) => {
                    client.is_heard = true;
                    exchange.recovery_bytes(published_channel, port, id, now, bytes);
                    false
                }
                Ok(Received::Nothing) => false,
                Ok(Received::Closed) | Err(_) => true,
            };
            let Some(publisher) = exchange.publisher_mut(published_channel) else {
                return;
            };
            // What the kernel has no room for waits in the session, not in memory without bound.
            while !is_over && client.stream.flush().unwrap_or(false) {
                let Some(bytes) = publisher.poll_transmit(port, id, now, buffer) else {
                    break;
                };
                is_over = client.stream.send(bytes).is_err();
            }
            if is_over || (publisher.wants_close(port, id) && !client.stream.has_unsent()) {
                publisher.disconnect(port, id);
                if let Some(mut client) = slot.take() {
                    waiter.forget(client.watch);
                    client.stream.finish();
                }
            }
        }
        let looks = now >= self.next_look;
        if looks {
            self.next_look = now.after(LOOK_NS);
        }
        while looks && let Some(stream) = self.accept() {
            let Some(publisher) = exchange.publisher_mut(published_channel) else {
                return;
            };
            let places = self.clients.iter().enumerate();
            let seat = seat(
                places.map(|(id, client)| (id, client.as_ref().map(|c| (c.came, c.is_heard)))),
                now,
            );
            let id = match seat {
                Seat::None => continue,
                Seat::Free(id) => id,
                Seat::Silent(id) => {
                    publisher.disconnect(port, id);
                    if let Some(mut silent) = self.clients[id].take() {
                        waiter.forget(silent.watch);
                        silent.stream.finish();
                    }
                    id
                }
            };
            if publisher.connect(port, id, now) {
                let watch = waiter.watch(&stream);
                self.clients[id] = Some(Client {
                    stream,
                    watch,
                    came: now,
                    is_heard: false,
                });
            }
        }
    }
}

#[cfg(test)]
mod errors;
