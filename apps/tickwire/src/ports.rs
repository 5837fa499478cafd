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
use tickwire_runtime::udp::{MulticastConfig, MulticastReceiver, MulticastSender, Stamping, UdpEndpoint};
use tickwire_runtime::wait::{Waiter, Watch};

use crate::channels::InterfaceName;
use crate::console::warn;
use crate::failure::Failure;

/// Connections of each kind served at once; further ones are closed at once.
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
    impair: Impair,
    datagrams: u64,
}

/// A connected client.
struct Client {
    stream: TcpStream,
    watch: Watch,
}

/// A stream port and who is connected.
struct Server {
    port: Port,
    listener: TcpListener,
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
    requests: Option<UdpEndpoint>,
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
                    sockets.requests = Some(endpoint);
                }
                (Transport::Stream, Some(address)) => {
                    let listener = TcpListener::bind(address.into()).map_err(system)?;
                    waiter.watch(&listener);
                    sockets.servers.push(Server {
                        port,
                        listener,
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
        let requests = self.requests.iter().map(|r| (Port::Requests, of(r.local_addr())));
        let servers = self.servers.iter().map(|s| (s.port, of(s.listener.local_addr())));
        requests.chain(servers).collect()
    }

    /// Sends one datagram, if one is due, so that orders are looked at between any two. Whether there was one.
    pub(crate) fn publish(
        &mut self,
        now: Nanos,
        exchange: &mut Exchange,
        departures: &mut Departures,
    ) -> Result<bool, Failure> {
        let Some(datagram) = exchange.poll_datagram(self.index, now) else {
            return Ok(false);
        };
        let (port, lines) = (datagram.port, datagram.lines);
        self.datagram.clear();
        self.datagram.extend_from_slice(datagram.bytes);
        let publisher = &exchange.outlets()[self.index].publisher;
        let mut failed = None;
        for line in self.lines.iter_mut().filter(|line| line.port == port) {
            if !lines.has(LineSet(1 << line.line)) {
                continue;
            }
            let (sender, count) = (&line.sender, &mut line.datagrams);
            line.impair.send(&self.datagram, &mut |bytes: &[u8]| {
                // The clock is read before the call: the receiver may run before it returns.
                let ticks = tsc();
                if port == Port::Live {
                    departures.note(publisher.span(bytes), ticks);
                }
                *count += 1;
                if let Err(e) = sender.send(bytes) {
                    failed.get_or_insert((e, sender.group()));
                }
            });
        }
        match failed {
            // A full socket buffer is a lost packet, as on any network.
            Some((e, _)) if e.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Some((e, group)) => Err(Failure::system(format!(
                "publishing on {group} failed: {e}; is there a multicast route (`ip route get {}`)?",
                group.ip()
            ))),
            None => Ok(true),
        }
    }

    /// Answers requests and moves the bytes of recovery connections.
    pub(crate) fn serve(
        &mut self,
        clock: &Clock,
        exchange: &mut Exchange,
        waiter: &mut Waiter,
        buffer: &mut [u8],
    ) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::system(format!("the retransmission socket failed: {e}"));
        if let Some(requests) = &mut self.requests {
            while let Some((datagram, from)) = requests.recv_from(buffer).map_err(failed)? {
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
                    requests.send_to(&reply[..length], from).map_err(failed)?;
                }
            }
        }
        let now = clock.now();
        for server in &mut self.servers {
            server.serve(self.index, now, exchange, waiter, buffer);
        }
        Ok(())
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

impl Server {
    fn serve(
        &mut self,
        outlet: usize,
        now: Nanos,
        exchange: &mut Exchange,
        waiter: &mut Waiter,
        buffer: &mut [u8],
    ) {
        let port = self.port;
        while let Ok(Some(stream)) = self.listener.accept() {
            let Some(publisher) = exchange.publisher_mut(outlet) else {
                return;
            };
            if let Some(id) = self.clients.iter().position(Option::is_none)
                && publisher.connect(port, id, now)
            {
                let watch = waiter.watch(&stream);
                self.clients[id] = Some(Client { stream, watch });
            }
        }
        for (id, slot) in self.clients.iter_mut().enumerate() {
            let Some(client) = slot else { continue };
            let mut is_over = match client.stream.recv(buffer) {
                Ok(Received::Bytes(bytes)) => {
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

/// A recovery connection of the receiver.
struct Link {
    port: Port,
    address: SocketAddr,
    state: LinkState,
    retry: Nanos,
    /// How often in a row it could not be opened; only the first time is said.
    failures: u32,
}

enum LinkState {
    Closed,
    /// On a thread of its own: the one that trades must not wait for a server.
    Opening(JoinHandle<Result<TcpStream, NetError>>),
    Open(TcpStream),
}

/// The sockets of one received channel. See the module's description.
pub(crate) struct Intake {
    /// Lines A and B of the live port.
    pub(crate) live: Vec<MulticastReceiver>,
    /// What tells that they have input.
    pub(crate) live_watches: Vec<Watch>,
    recovery: Vec<(Port, Line, MulticastReceiver)>,
    recovery_watches: Vec<Watch>,
    requests: Option<(UdpEndpoint, SocketAddr)>,
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
                match port {
                    Port::Live => {
                        intake.live.push(receiver);
                        intake.live_watches.push(watch);
                    }
                    _ => {
                        let line = if line == 0 { Line::A } else { Line::B };
                        intake.recovery.push((port, line, receiver));
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
                    intake.requests = Some((endpoint, address.into()));
                }
                (Transport::Stream, Some(address)) => intake.links.push(Link {
                    port,
                    address: address.into(),
                    state: LinkState::Closed,
                    retry: Nanos::ZERO,
                    failures: 0,
                }),
                _ => {}
            }
        }
        Ok(intake)
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

    /// What recovery groups and the request server sent.
    pub(crate) fn recover<C: Channel, S: EventSink>(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        channel: &mut C,
        sink: &mut S,
    ) -> Result<(), Failure> {
        for (port, line, receiver) in &mut self.recovery {
            for _ in 0..RECOVERY_PACKETS_PER_LOOK {
                let Some(datagram) = receiver.recv(buffer).map_err(receive_failed)? else {
                    break;
                };
                channel.on_datagram(now, *port, *line, datagram.bytes, sink);
            }
        }
        if let Some((requests, server)) = &mut self.requests {
            // Strangers, who can send to the port as well, take no answer's turn but for a flood of them.
            for _ in 0..RECOVERY_PACKETS_PER_LOOK {
                let Some((datagram, from)) = requests.recv_from(buffer).map_err(receive_failed)? else {
                    break;
                };
                if from == *server {
                    channel.on_datagram(now, Port::Requests, Line::A, datagram.bytes, sink);
                    break;
                }
                self.unasked += 1;
            }
        }
        self.request(channel)
    }

    /// Sends the requests that are due.
    #[inline]
    pub(crate) fn request<C: Channel>(&mut self, channel: &mut C) -> Result<(), Failure> {
        let Some((requests, server)) = &mut self.requests else {
            return Ok(());
        };
        let mut request = [0; 128];
        while let Some(bytes) = channel.poll_request(&mut request) {
            requests
                .send_to(bytes, *server)
                .map_err(|e| Failure::system(format!("sending a retransmission request failed: {e}")))?;
        }
        Ok(())
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

    /// Adds what the sockets count: datagrams of the live lines that the kernel dropped, answers of who was not asked.
    pub(crate) fn count_into(&self, counters: &mut Counters) {
        let drops = self.live.iter().map(|line| u64::from(line.kernel_drops())).sum();
        counters.add(Counter::KernelDrops, drops);
        counters.add(Counter::AnswersUnasked, self.unasked);
    }

    /// The live groups, for messages.
    pub(crate) fn groups(&self) -> String {
        let groups: Vec<String> = self.live.iter().map(|line| line.group().to_string()).collect();
        groups.join(" and ")
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
                let address = self.address;
                self.retry = now.after(RETRY_NS << self.failures.min(4));
                let connect = move || TcpStream::connect(address, CONNECT_TIMEOUT);
                match std::thread::Builder::new().name("connect".into()).spawn(connect) {
                    Ok(opening) => self.state = LinkState::Opening(opening),
                    Err(e) => warn(format_args!("no thread to connect to {address}: {e}")),
                }
            }
            LinkState::Closed => {}
            LinkState::Opening(opening) if opening.is_finished() => match opening.join() {
                Ok(Ok(stream)) => {
                    self.failures = 0;
                    channel.connected(now, self.port);
                    self.state = LinkState::Open(stream);
                }
                failed => {
                    self.failures = self.failures.saturating_add(1);
                    if let (Ok(Err(e)), 1) = (failed, self.failures) {
                        warn(format_args!("no {} connection yet: {e}", self.port.name()));
                    }
                    channel.disconnected(now, self.port, sink);
                }
            },
            LinkState::Opening(opening) => self.state = LinkState::Opening(opening),
            LinkState::Open(mut stream) => {
                let is_up = move_bytes(&mut stream, self.port, now, buffer, channel, sink);
                if is_up && channel.wants_connection(self.port) {
                    self.state = LinkState::Open(stream);
                } else {
                    stream.finish();
                    channel.disconnected(now, self.port, sink);
                }
            }
        }
    }
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

fn receive_failed(e: io::Error) -> Failure {
    Failure::system(format!("receiving market data failed: {e}"))
}

#[cfg(test)]
mod tests;
