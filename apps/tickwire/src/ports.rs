//! Where the ports of a channel are, and the sockets of either side: [`OutletSockets`] publish and serve one channel,
//! [`Intake`] receives one. They know addresses, not protocols.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::thread::JoinHandle;
use std::time::Duration;

use tickwire_exchange::{Exchange, Impair, ImpairConfig, LineSet};
use tickwire_feed::{Channel, Line};
use tickwire_market::{Counter, Counters, EventSink, Nanos, Port, SeqNo, Transport};
use tickwire_runtime::NetError;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::tcp::{Received, TcpListener, TcpStream};
use tickwire_runtime::trouble::{BackOff, Trouble};
use tickwire_runtime::udp::{
    Datagram, MulticastConfig, MulticastReceiver, MulticastSender, Stamping, UdpEndpoint,
};
use tickwire_runtime::wait::{Waiter, Watch};

use crate::channels::InterfaceName;
use tickwire_console::failure::Failure;
use tickwire_console::health::SocketHealth;
use tickwire_console::warn;

pub(crate) mod strangers;

use strangers::{Allowed, AnswerLimit, Seat, seat};

/// Connections of each kind served at once. A further one takes the place of one that says nothing, else it is closed at once.
pub(crate) const CONNECTIONS: usize = 4;
/// How many hops multicast may go; 0 stays on this machine.
const TTL: u8 = 1;
/// How long a recovery connection waits before it is tried again; twice as long after each failure, up to 16 times.
const RETRY_NS: u64 = 200 * Nanos::MILLI;
/// Patience with a server that does not answer a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Reads of one connection before the lines are looked at again.
const READS_PER_LOOK: usize = 4;
/// The most datagrams of a recovery group taken in one look.
const RECOVERY_PACKETS_PER_LOOK: usize = 16;

/// The addresses of one channel.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    /// The network interface for multicast.
    pub(crate) interface: InterfaceName,
    /// Multicast groups, by port and line.
    pub(crate) groups: [[Option<SocketAddrV4>; 2]; Port::COUNT],
    /// The only sender that is heard of each group, by port and line; `None`: anybody.
    pub(crate) sources: [[Option<Ipv4Addr>; 2]; Port::COUNT],
    /// Servers, by port.
    pub(crate) servers: [Option<SocketAddrV4>; Port::COUNT],
    /// Their stand-ins, by port.
    pub(crate) backups: [Option<SocketAddrV4>; Port::COUNT],
}

impl Ports {
    /// Every server of a port, the first to be asked first.
    fn servers_of(&self, port: Port) -> Vec<SocketAddr> {
        let both = [self.servers[port as usize], self.backups[port as usize]];
        both.into_iter().flatten().map(SocketAddr::from).collect()
    }
}

fn system(e: NetError) -> Failure {
    Failure::system(e.to_string())
}

/// The troubles of the two lines, alike on every multicast port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineTroubles {
    pub(crate) lines: [ImpairConfig; 2],
    /// What happens to requests by datagram.
    pub(crate) requests: ImpairConfig,
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
    clients: [Option<Client>; CONNECTIONS],
}

/// When datagrams first left: number of the first message, of the one after the last, ticks.
#[derive(Default)]
pub(crate) struct Departures(Vec<(u64, u64, u64)>);

impl Departures {
    /// Room for that many datagrams; later ones are not noted.
    pub(crate) fn with_capacity(datagrams: usize) -> Departures {
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
    pub(crate) fn of(&self, seq: u64) -> Option<u64> {
        let at = self
            .0
            .partition_point(|&(first, _, _)| first <= seq)
            .checked_sub(1)?;
        let (_, next, ticks) = self.0[at];
        (seq < next).then_some(ticks)
    }

    /// In order of number, only the first departure of each: held-back and duplicate datagrams come later again.
    pub(crate) fn settle(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by_key(|d| d.0);
    }
}

/// The sockets of one published channel. See the module's description.
pub(crate) struct OutletSockets {
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

impl OutletSockets {
    pub(crate) fn open(
        index: usize,
        ports: &Ports,
        troubles: LineTroubles,
        seed: u64,
        answer_bytes_per_s: u64,
        waiter: &mut Waiter,
    ) -> Result<OutletSockets, Failure> {
        let interface = ports.interface.find()?;
        let mut sockets = OutletSockets {
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
                        clients: [const { None }; CONNECTIONS],
                    });
                }
                (_, None) => {}
            }
        }
        Ok(sockets)
    }

    /// The ports on which it listens.
    pub(crate) fn listening(&self) -> Vec<(Port, u16)> {
        let of = |address: io::Result<SocketAddr>| address.map(|a| a.port()).unwrap_or_default();
        let requests = self
            .requests
            .iter()
            .map(|r| (Port::Requests, of(r.endpoint.local_addr())));
        let servers = self.servers.iter().map(|s| (s.port, of(s.listener.local_addr())));
        requests.chain(servers).collect()
    }

    /// Sends one datagram, if one is due, so that orders are looked at between any two. Whether there was one.
    pub(crate) fn publish(
        &mut self,
        now: Nanos,
        exchange: &mut Exchange,
        departures: &mut Departures,
    ) -> bool {
        let Some(datagram) = exchange.poll_datagram(self.index, now) else {
            return false;
        };
        let (port, lines) = (datagram.port, datagram.lines);
        self.datagram.clear();
        self.datagram.extend_from_slice(datagram.bytes);
        let publisher = &exchange.outlets()[self.index].publisher;
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
    pub(crate) fn serve(
        &mut self,
        clock: &Clock,
        exchange: &mut Exchange,
        waiter: &mut Waiter,
        buffer: &mut [u8],
    ) {
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
    pub(crate) fn settle(&mut self) {
        self.healths_mut().for_each(SocketHealth::settle);
    }

    /// Errors of its sockets.
    pub(crate) fn count(&self, counters: &mut Counters) {
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
    pub(crate) fn lose(&mut self, line: Option<usize>, packets: u32) -> usize {
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
    pub(crate) fn answered(&self) -> u64 {
        self.answered
    }

    /// Whether somebody is connected for recovery, or asked within `quiet_ns`.
    pub(crate) fn is_busy(&self, now: Nanos, quiet_ns: u64) -> bool {
        let is_serving = |server: &Server| server.clients.iter().any(Option::is_some);
        self.servers.iter().any(is_serving) || now.since(self.last_request) < quiet_ns
    }

    /// Live datagrams sent and lost, by line.
    pub(crate) fn live_counts(&self) -> [(u64, u64); 2] {
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

    /// Sends an answer. One that cannot be sent says something about its address perhaps, and nothing about others: those are answered all the same.
    fn answer(&mut self, now: Nanos, reply: &[u8], to: SocketAddr) {
        if to.port() == 0 {
            // Whoever sends from there (RFC 768 allows it) can be told nothing, and the kernel calls an attempt invalid.
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
        outlet: usize,
        now: Nanos,
        exchange: &mut Exchange,
        waiter: &mut Waiter,
        buffer: &mut [u8],
    ) {
        let port = self.port;
        while let Some(stream) = self.accept() {
            let Some(publisher) = exchange.publisher_mut(outlet) else {
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
        for (id, slot) in self.clients.iter_mut().enumerate() {
            let Some(client) = slot else { continue };
            let mut is_over = match client.stream.recv(buffer) {
                Ok(Received::Bytes(bytes)) => {
                    client.is_heard = true;
                    exchange.recovery_bytes(outlet, port, id, now, bytes);
                    false
                }
                Ok(Received::Nothing) => false,
                Ok(Received::Closed) | Err(_) => true,
            };
            let Some(publisher) = exchange.publisher_mut(outlet) else {
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
    }
}

/// The next connection, if there is one and none of the last attempts failed too recently.
pub(crate) fn accept(listener: &mut TcpListener, health: &mut SocketHealth) -> Option<TcpStream> {
    if !health.may_try() {
        return None;
    }
    match listener.accept() {
        Ok(accepted) => {
            health.worked();
            accepted
        }
        Err(e) => {
            health.failed(&e);
            None
        }
    }
}

/// A recovery connection of the receiver.
struct Link {
    port: Port,
    /// The server, and its stand-in where there is one.
    addresses: Vec<SocketAddr>,
    /// Which of them the connection is to.
    at: usize,
    state: LinkState,
    retry: Nanos,
    /// How often in a row it could not be opened.
    failures: u32,
    health: SocketHealth,
}

enum LinkState {
    Closed,
    /// On a thread of its own: the one that trades must not wait for a server.
    Opening(JoinHandle<Result<TcpStream, NetError>>),
    Open(TcpStream),
}

/// A group of retransmissions, snapshots or definitions.
struct RecoveryGroup {
    port: Port,
    line: Line,
    receiver: MulticastReceiver,
    health: SocketHealth,
}

/// Where requests leave by datagram, and answers come in.
struct Requester {
    endpoint: UdpEndpoint,
    /// The server, and its stand-in where there is one.
    servers: Vec<SocketAddr>,
    asking: SocketHealth,
    hearing: SocketHealth,
}

/// The sockets of one received channel. See the module's description.
pub(crate) struct Intake {
    /// Lines A and B of the live port.
    pub(crate) live: Vec<MulticastReceiver>,
    live_health: Vec<SocketHealth>,
    /// What tells that they have input.
    pub(crate) live_watches: Vec<Watch>,
    recovery: Vec<RecoveryGroup>,
    recovery_watches: Vec<Watch>,
    requests: Option<Requester>,
    /// Datagrams that came to the socket of requests from elsewhere than the server that is asked.
    unasked: u64,
    links: Vec<Link>,
}

impl Intake {
    /// Joins every group. Connections are opened when the channel wants them.
    pub(crate) fn join(
        ports: &Ports,
        receive_buffer_bytes: u32,
        waiter: &mut Waiter,
    ) -> Result<Intake, Failure> {
        Intake::join_stamped(ports, receive_buffer_bytes, Stamping::OnDemand, waiter)
    }

    /// The same; `stamping` is how the kernel's receive time is asked for.
    pub(crate) fn join_stamped(
        ports: &Ports,
        receive_buffer_bytes: u32,
        stamping: Stamping,
        waiter: &mut Waiter,
    ) -> Result<Intake, Failure> {
        let interface = ports.interface.find()?;
        let mut intake = Intake {
            live: Vec::new(),
            live_health: Vec::new(),
            live_watches: Vec::new(),
            recovery: Vec::new(),
            recovery_watches: Vec::new(),
            requests: None,
            unasked: 0,
            links: Vec::new(),
        };
        for port in Port::ALL {
            for (line, group) in ports.groups[port as usize].iter().enumerate() {
                let Some(group) = *group else { continue };
                let mut config = MulticastConfig::new(group, interface.clone())
                    .line(line as u8)
                    .stamping(stamping);
                config.receive_buffer_bytes = receive_buffer_bytes;
                config.source = ports.sources[port as usize][line];
                let receiver = MulticastReceiver::join(config).map_err(system)?;
                let watch = waiter.watch(&receiver);
                let health = SocketHealth::new(BackOff::RECEIVE, format!("receiving {group}"));
                match port {
                    Port::Live => {
                        intake.live.push(receiver);
                        intake.live_health.push(health);
                        intake.live_watches.push(watch);
                    }
                    _ => {
                        let line = if line == 0 { Line::A } else { Line::B };
                        intake.recovery.push(RecoveryGroup {
                            port,
                            line,
                            receiver,
                            health,
                        });
                        intake.recovery_watches.push(watch);
                    }
                }
            }
            match (port.transport(), ports.servers[port as usize]) {
                (Transport::Datagram, Some(address)) => {
                    // Without an address of its own, by the one that the route to the server has.
                    let own = interface.address().unwrap_or(Ipv4Addr::UNSPECIFIED);
                    let endpoint = UdpEndpoint::bind(SocketAddrV4::new(own, 0)).map_err(system)?;
                    intake.recovery_watches.push(waiter.watch(&endpoint));
                    intake.requests = Some(Requester {
                        endpoint,
                        servers: ports.servers_of(port),
                        asking: SocketHealth::new(
                            BackOff::SEND,
                            format!("sending a retransmission request to {address}"),
                        ),
                        hearing: SocketHealth::new(
                            BackOff::RECEIVE,
                            format!("receiving answers of {address}"),
                        ),
                    });
                }
                (Transport::Stream, Some(address)) => intake.links.push(Link {
                    port,
                    addresses: ports.servers_of(port),
                    at: 0,
                    state: LinkState::Closed,
                    retry: Nanos::ZERO,
                    failures: 0,
                    health: SocketHealth::new(
                        BackOff::CONNECT,
                        format!("connecting to {address} ({})", port.name()),
                    ),
                }),
                _ => {}
            }
        }
        Ok(intake)
    }

    /// Tells a channel how many servers it has of each kind.
    pub(crate) fn introduce<C: Channel>(&self, channel: &mut C) {
        let requests = self.requests.iter().map(|r| (Port::Requests, r.servers.len()));
        let links = self.links.iter().map(|link| (link.port, link.addresses.len()));
        for (port, servers) in requests.chain(links) {
            channel.set_servers(port, servers.min(u8::MAX.into()) as u8);
        }
    }

    /// Whether a recovery group or the request server may have sent something.
    pub(crate) fn may_recover(&self, waiter: &Waiter) -> bool {
        self.recovery_watches.iter().any(|watch| waiter.is_ready(*watch))
    }

    /// Whether a recovery connection is open or being opened.
    pub(crate) fn is_linked(&self) -> bool {
        self.links
            .iter()
            .any(|link| !matches!(link.state, LinkState::Closed))
    }

    /// The next datagram of a live line, `None` if there is none at the moment. An error is counted and said; the line goes on.
    #[inline]
    pub(crate) fn receive<'b>(&mut self, index: usize, buffer: &'b mut [u8]) -> Option<Datagram<'b>> {
        receive(&mut self.live[index], &mut self.live_health[index], buffer)
    }

    /// What recovery groups and the request server sent.
    pub(crate) fn recover<C: Channel, S: EventSink>(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        channel: &mut C,
        sink: &mut S,
    ) {
        for group in &mut self.recovery {
            for _ in 0..RECOVERY_PACKETS_PER_LOOK {
                let Some(datagram) = receive(&mut group.receiver, &mut group.health, buffer) else {
                    break;
                };
                channel.on_datagram(now, group.port, group.line, datagram.bytes, sink);
            }
        }
        if let Some(requests) = &mut self.requests {
            for _ in 0..RECOVERY_PACKETS_PER_LOOK {
                let Some((datagram, from)) = requests.hear(buffer) else {
                    break;
                };
                match from == server_of(channel, Port::Requests, &requests.servers) {
                    true => channel.on_datagram(now, Port::Requests, Line::A, datagram.bytes, sink),
                    false => self.unasked += 1,
                }
            }
        }
        self.request(channel);
    }

    /// Sends the requests that are due. One that cannot be sent is lost, as on any network, and comes again after its timeout.
    #[inline]
    pub(crate) fn request<C: Channel>(&mut self, channel: &mut C) {
        let Some(requests) = &mut self.requests else {
            return;
        };
        let mut request = [0; 128];
        while let Some(bytes) = channel.poll_request(&mut request) {
            let server = server_of(channel, Port::Requests, &requests.servers);
            requests.ask(bytes, server);
        }
    }

    /// Says which sockets work again. For the slow part of a loop.
    pub(crate) fn settle(&mut self) {
        let groups = self.recovery.iter_mut().map(|group| &mut group.health);
        let requests = self.requests.iter_mut();
        let requests = requests.flat_map(|r| [&mut r.asking, &mut r.hearing]);
        let links = self.links.iter_mut().map(|link| &mut link.health);
        let all = self.live_health.iter_mut().chain(groups).chain(requests);
        all.chain(links).for_each(SocketHealth::settle);
    }

    /// Adds what the sockets count: errors, datagrams of the live lines that the kernel dropped, answers of who was not asked.
    pub(crate) fn count_into(&self, counters: &mut Counters) {
        counters.add(Counter::KernelDrops, self.kernel_drops());
        counters.add(Counter::AnswersUnasked, self.unasked);
        let groups = self.recovery.iter().map(|group| &group.health);
        let requests = self.requests.iter().flat_map(|r| [&r.asking, &r.hearing]);
        let links = self.links.iter().map(|link| &link.health);
        let all = self.live_health.iter().chain(groups).chain(requests);
        all.chain(links).for_each(|health| health.count(counters));
    }

    /// Opens, feeds and closes the recovery connections.
    pub(crate) fn links<C: Channel, S: EventSink>(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        channel: &mut C,
        sink: &mut S,
    ) {
        for link in &mut self.links {
            link.step(now, buffer, channel, sink);
        }
    }

    /// Datagrams of the live lines that the kernel dropped.
    fn kernel_drops(&self) -> u64 {
        self.live.iter().map(|line| u64::from(line.kernel_drops())).sum()
    }

    /// The live groups, for messages.
    pub(crate) fn groups(&self) -> String {
        let groups: Vec<String> = self.live.iter().map(|line| line.group().to_string()).collect();
        groups.join(" and ")
    }
}

/// The next datagram of a group.
#[inline]
fn receive<'b>(
    receiver: &mut MulticastReceiver,
    health: &mut SocketHealth,
    buffer: &'b mut [u8],
) -> Option<Datagram<'b>> {
    if !health.may_try() {
        return None;
    }
    match receiver.recv(buffer) {
        Ok(received) => {
            health.worked();
            received
        }
        Err(e) => {
            health.failed(&e);
            None
        }
    }
}

impl Requester {
    fn ask(&mut self, request: &[u8], server: SocketAddr) {
        if !self.asking.may_try() {
            return;
        }
        match self.endpoint.send_to(request, server) {
            Ok(_) => self.asking.worked(),
            Err(e) => self.asking.failed(&e),
        }
    }

    fn hear<'b>(&mut self, buffer: &'b mut [u8]) -> Option<(Datagram<'b>, SocketAddr)> {
        if !self.hearing.may_try() {
            return None;
        }
        match self.endpoint.recv_from(buffer) {
            Ok(received) => {
                self.hearing.worked();
                received
            }
            Err(e) => {
                self.hearing.failed(&e);
                None
            }
        }
    }
}

impl Link {
    fn step<C: Channel, S: EventSink>(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        channel: &mut C,
        sink: &mut S,
    ) {
        let wanted = channel.wants_connection(self.port);
        match std::mem::replace(&mut self.state, LinkState::Closed) {
            LinkState::Closed if wanted && now >= self.retry => {
                self.at = channel.server(self.port).min(self.addresses.len() - 1);
                let address = self.addresses[self.at];
                self.retry = now.after(RETRY_NS << self.failures.min(4));
                let connect = move || TcpStream::connect(address, CONNECT_TIMEOUT);
                match std::thread::Builder::new().name("connect".into()).spawn(connect) {
                    Ok(opening) => self.state = LinkState::Opening(opening),
                    Err(e) => {
                        self.failures = self.failures.saturating_add(1);
                        self.health.failed(&e);
                    }
                }
            }
            LinkState::Closed => {}
            LinkState::Opening(opening) if opening.is_finished() => match opening.join() {
                Ok(Ok(stream)) => {
                    self.failures = 0;
                    self.health.worked();
                    channel.connected(now, self.port);
                    self.state = LinkState::Open(stream);
                }
                failed => {
                    self.failures = self.failures.saturating_add(1);
                    if let Ok(Err(e)) = failed {
                        self.health.troubled(e.trouble(), &e);
                    }
                    channel.disconnected(now, self.port, sink);
                }
            },
            LinkState::Opening(opening) => self.state = LinkState::Opening(opening),
            LinkState::Open(mut stream) => {
                let is_up = move_bytes(&mut stream, self.port, now, buffer, channel, sink);
                let is_right = channel.server(self.port).min(self.addresses.len() - 1) == self.at;
                if is_up && is_right && channel.wants_connection(self.port) {
                    self.state = LinkState::Open(stream);
                } else {
                    stream.finish();
                    channel.disconnected(now, self.port, sink);
                }
            }
        }
    }
}

/// The server that a channel asks; there is one at least.
fn server_of<C: Channel>(channel: &C, port: Port, servers: &[SocketAddr]) -> SocketAddr {
    servers[channel.server(port).min(servers.len() - 1)]
}

/// Moves bytes both ways; `false` when the connection is over.
fn move_bytes<C: Channel, S: EventSink>(
    stream: &mut TcpStream,
    port: Port,
    now: Nanos,
    buffer: &mut [u8],
    channel: &mut C,
    sink: &mut S,
) -> bool {
    let mut is_up = true;
    for _ in 0..READS_PER_LOOK {
        match stream.recv(buffer) {
            Ok(Received::Bytes(bytes)) => channel.on_bytes(now, port, bytes, sink),
            Ok(Received::Nothing) => break,
            Ok(Received::Closed) | Err(_) => {
                is_up = false;
                break;
            }
        }
    }
    let mut out = [0; 1024];
    while is_up && let Some(bytes) = channel.poll_transmit(port, &mut out) {
        is_up = stream.send(bytes).is_ok();
    }
    is_up
}

#[cfg(test)]
mod errors;
#[cfg(test)]
mod tests;
