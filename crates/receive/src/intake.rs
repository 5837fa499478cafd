//! See the crate.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::thread::JoinHandle;
use std::time::Duration;

use tickwire_feed::{Channel, Line};
use tickwire_market::{Counter, Counters, EventSink, Nanos, Port, Transport};
use tickwire_runtime::NetError;
use tickwire_runtime::tcp::{Received, TcpStream};
use tickwire_runtime::trouble::BackOff;
use tickwire_runtime::udp::{Datagram, MulticastConfig, MulticastReceiver, Stamping, UdpEndpoint};
use tickwire_runtime::wait::{Waiter, Watch};

use tickwire_console::failure::Failure;
use tickwire_console::health::SocketHealth;
use tickwire_venues::ports::Ports;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::ReceiverSection;

use crate::hook::LiveLines;

/// How long a recovery connection waits before it is tried again; twice as long after each failure, up to 16
/// times.
const RETRY_NS: u64 = 200 * Nanos::MILLI;
/// Patience with a server that does not answer a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Reads of one connection before the lines are looked at again.
const READS_PER_LOOK: usize = 4;
/// The most datagrams of a recovery group taken in one look.
const RECOVERY_PACKETS_PER_LOOK: usize = 16;

fn system(e: NetError) -> Failure {
    Failure::system(e.to_string())
}

/// How the sockets of a channel are opened.
#[derive(Clone, Copy, Debug)]
pub struct SocketOptions {
    /// Receive buffer of each, bytes.
    pub receive_buffer: u32,
    /// How the kernel's receive time is asked for.
    pub stamping: Stamping,
    /// How many datagrams one call takes off a live line at most, see [`MulticastConfig::batch`].
    pub batch: u32,
}

impl SocketOptions {
    /// As `[receiver]` says, for who asks for the kernel's time of some packets only: of those that cause an
    /// order, which are the last ones taken then.
    pub fn of(section: &ReceiverSection) -> SocketOptions {
        SocketOptions {
            receive_buffer: section.receive_buffer,
            stamping: Stamping::OnDemand,
            batch: 1,
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
    /// The connection may hold more than was read.
    holds_more: bool,
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
    /// Their groups, and who alone is heard.
    lines: LiveLines,
    /// Datagrams of live lines that found no room in a ring of AF_XDP.
    pub(crate) lost: u64,
    /// What the filter in front of the lines has counted.
    pub(crate) hook: Counters,
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
        protocol: Protocol,
        options: SocketOptions,
        waiter: &mut Waiter,
    ) -> Result<Intake, Failure> {
        let interface = ports.interface.find()?;
        let mut intake = Intake {
            live: Vec::new(),
            lines: LiveLines {
                interface: interface.clone(),
                protocol,
                groups: Vec::new(),
            },
            lost: 0,
            hook: Counters::default(),
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
                    .stamping(options.stamping);
                config.receive_buffer_bytes = options.receive_buffer;
                if port == Port::Live {
                    config.batch = options.batch;
                }
                config.source = ports.sources[port as usize][line];
                let receiver = MulticastReceiver::join(config).map_err(system)?;
                let watch = waiter.watch(&receiver);
                let health = SocketHealth::new(BackOff::RECEIVE, format!("receiving {group}"));
                match port {
                    Port::Live => {
                        intake.live.push(receiver);
                        let source = ports.sources[port as usize][line];
                        intake.lines.groups.push((group, source));
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
                    holds_more: false,
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

    /// The groups of the live lines.
    pub(crate) fn lines(&self) -> &LiveLines {
        &self.lines
    }

    /// Tells a channel how many servers it has of each kind.
    pub(crate) fn introduce(&self, channel: &mut dyn Channel) {
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

    /// Whether there is anything that a recovery connection could be made to.
    pub(crate) fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// Whether a recovery connection is open or being opened.
    pub(crate) fn is_linked(&self) -> bool {
        self.links
            .iter()
            .any(|link| !matches!(link.state, LinkState::Closed))
    }

    /// The next datagram of a live line, `None` if there is none at the moment. An error is counted and said;
    /// the line goes on.
    #[inline]
    pub(crate) fn receive<'b>(&'b mut self, index: usize, buffer: &'b mut [u8]) -> Option<Datagram<'b>> {
        receive(&mut self.live[index], &mut self.live_health[index], buffer)
    }

    /// What recovery groups and the request server sent, up to a bound; whether it was everything.
    pub(crate) fn recover(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        channel: &mut dyn Channel,
        sink: &mut dyn EventSink,
    ) -> bool {
        // Sockets that have not been read to their end.
        let mut unfinished = self.recovery.len() + usize::from(self.requests.is_some());
        for group in &mut self.recovery {
            for _ in 0..RECOVERY_PACKETS_PER_LOOK {
                let Some(datagram) = receive(&mut group.receiver, &mut group.health, buffer) else {
                    unfinished -= 1;
                    break;
                };
                channel.on_datagram_dyn(now, group.port, group.line, datagram.bytes, sink);
            }
        }
        if let Some(requests) = &mut self.requests {
            for _ in 0..RECOVERY_PACKETS_PER_LOOK {
                let Some((datagram, from)) = requests.hear(buffer) else {
                    unfinished -= 1;
                    break;
                };
                match from == server_of(channel, Port::Requests, &requests.servers) {
                    true => channel.on_datagram_dyn(now, Port::Requests, Line::A, datagram.bytes, sink),
                    false => self.unasked += 1,
                }
            }
        }
        self.request(channel);
        unfinished == 0
    }

    /// Whether a line's socket has input, as far as is known without asking the kernel.
    #[inline]
    pub(crate) fn has_input(&self, index: usize, waiter: &Waiter) -> bool {
        self.live[index].holds_more() || waiter.is_ready(self.live_watches[index])
    }

    /// Sends the requests that are due. One that cannot be sent is lost, as on any network, and comes again
    /// after its timeout.
    #[inline]
    pub(crate) fn request<C: Channel + ?Sized>(&mut self, channel: &mut C) {
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

    /// Adds what the sockets count: errors, datagrams of the live lines that the kernel dropped, answers of
    /// who was not asked.
    pub(crate) fn count_into(&self, counters: &mut Counters) {
        counters.add(Counter::KernelDrops, self.kernel_drops() + self.lost);
        counters.merge(&self.hook);
        counters.add(Counter::AnswersUnasked, self.unasked);
        let groups = self.recovery.iter().map(|group| &group.health);
        let requests = self.requests.iter().flat_map(|r| [&r.asking, &r.hearing]);
        let links = self.links.iter().map(|link| &link.health);
        let all = self.live_health.iter().chain(groups).chain(requests);
        all.chain(links).for_each(|health| health.count(counters));
    }

    /// Opens, feeds and closes the recovery connections; whether they were read to their ends, each up to a
    /// bound.
    pub(crate) fn links(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        channel: &mut dyn Channel,
        sink: &mut dyn EventSink,
    ) -> bool {
        for link in &mut self.links {
            link.step(now, buffer, channel, sink);
        }
        !self.links.iter().any(|link| link.holds_more)
    }

    /// Datagrams of the live lines that the kernel dropped.
    fn kernel_drops(&self) -> u64 {
        self.live.iter().map(|line| u64::from(line.kernel_drops())).sum()
    }

    /// That a receive buffer is smaller than what was asked for, or that nobody counts what is dropped.
    pub(crate) fn warning(&self) -> Option<String> {
        let warnings = self.live.iter().map(|line| line.warnings());
        let warnings = warnings.max_by_key(Vec::len).unwrap_or_default();
        (!warnings.is_empty()).then(|| format!("{}: {}", self.groups(), warnings.join("; ")))
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
    receiver: &'b mut MulticastReceiver,
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
    fn step(&mut self, now: Nanos, buffer: &mut [u8], channel: &mut dyn Channel, sink: &mut dyn EventSink) {
        let wanted = channel.wants_connection(self.port);
        self.holds_more = false;
        match std::mem::replace(&mut self.state, LinkState::Closed) {
            LinkState::Closed if wanted && now >= self.retry => {
                self.at = channel.server(self.port).min(self.addresses.len() - 1);
                let address = self.addresses[self.at];
                self.retry = now.after(RETRY_NS << self.failures.min(4));
                let connect = move || TcpStream::connect(address, CONNECT_TIMEOUT);
                match tickwire_runtime::affinity::beside("connect", connect) {
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
                    // The login leaves at once: from now on an answer is waited for.
                    self.step_open(stream, now, buffer, channel, sink);
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
            LinkState::Open(stream) => self.step_open(stream, now, buffer, channel, sink),
        }
    }

    /// Moves what there is both ways, and closes the connection when it is over or no longer wanted.
    fn step_open(
        &mut self,
        mut stream: TcpStream,
        now: Nanos,
        buffer: &mut [u8],
        channel: &mut dyn Channel,
        sink: &mut dyn EventSink,
    ) {
        let moved = move_bytes(&mut stream, self.port, now, buffer, channel, sink);
        let (is_up, holds_more) = (moved != Moved::Over, moved == Moved::Part);
        let is_right = channel.server(self.port).min(self.addresses.len() - 1) == self.at;
        if is_up && is_right && channel.wants_connection(self.port) {
            (self.state, self.holds_more) = (LinkState::Open(stream), holds_more);
        } else {
            stream.finish();
            channel.disconnected(now, self.port, sink);
        }
    }
}

/// The server that a channel asks; there is one at least.
fn server_of<C: Channel + ?Sized>(channel: &C, port: Port, servers: &[SocketAddr]) -> SocketAddr {
    servers[channel.server(port).min(servers.len() - 1)]
}

/// What became of the bytes of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moved {
    All,
    /// There may be more to read than is read in one look.
    Part,
    /// The connection is over.
    Over,
}

/// Moves bytes both ways.
fn move_bytes(
    stream: &mut TcpStream,
    port: Port,
    now: Nanos,
    buffer: &mut [u8],
    channel: &mut dyn Channel,
    sink: &mut dyn EventSink,
) -> Moved {
    let mut moved = Moved::Part;
    for _ in 0..READS_PER_LOOK {
        match stream.recv(buffer) {
            Ok(Received::Bytes(bytes)) => {
                channel.on_bytes(now, port, bytes, sink);
                continue;
            }
            Ok(Received::Nothing) => moved = Moved::All,
            Ok(Received::Closed) | Err(_) => moved = Moved::Over,
        }
        break;
    }
    let mut out = [0; 1024];
    while moved != Moved::Over
        && let Some(bytes) = channel.poll_transmit(port, &mut out)
    {
        if stream.send(bytes).is_err() {
            moved = Moved::Over;
        }
    }
    moved
}

#[cfg(test)]
mod errors;
#[cfg(test)]
mod tests;
