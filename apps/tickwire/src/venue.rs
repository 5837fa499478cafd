//! `tickwire exchange`: the sockets around the simulated venue.
//!
//! One thread does everything: publishes on two multicast lines (through their impairments), answers retransmission
//! requests, serves snapshots, takes orders. It notes when each datagram first left and when each order came in, so that
//! packet-to-order latency is measured from outside the trader, with the exchange's clock alone.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddrV4;
use std::path::Path;

use tickwire_exchange::{
    ChannelConfig, ClientOrder, DayPhase, DeskConfig, Exchange, ExchangeConfig, FlowConfig, Impair,
    ImpairConfig, ItchPublisher, ItchPublisherConfig, Outcome, Outlet, PaceConfig, listings,
};
use tickwire_fix::{CompId, Role, Session, SessionConfig};
use tickwire_lab::{Histogram, Series};
use tickwire_market::{Nanos, Port, Side, Symbol};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::tcp::{Received, TcpListener, TcpStream};
use tickwire_runtime::udp::{MulticastSender, UdpEndpoint};
use tickwire_runtime::wait::{WaitStrategy, Waiter, Watch};
use tickwire_wire::moldudp64;

use crate::config::{Config, Impairment};
use crate::demo::Notice;
use crate::failure::Failure;
use crate::results::{ExchangeResults, LevelWriter, OrderOutcome, write_json};

/// Connections of each kind served at once; further ones are closed at once.
const CONNECTIONS: usize = 4;
/// After the last end-of-session packet, how long without a request until nobody needs us any more.
const QUIET_NS: u64 = 300 * Nanos::MILLI;
/// How many hops multicast may go; 0 stays on this machine.
const TTL: u8 = 1;

/// The acceptor's side of the order entry session, for a client in the same process.
pub(crate) fn acceptor_of(c: &Config) -> Session {
    let id = |s: Symbol| CompId::new(s.as_bytes()).expect("a symbol fits a CompID");
    let target = id(c.order_entry.trader_comp_id.0);
    let mut config = SessionConfig::new(Role::Acceptor, id(c.order_entry.exchange_comp_id.0), target);
    config.reset_on_logon = true;
    Session::new(config)
}

fn exchange_of(c: &Config) -> Exchange {
    let e = &c.exchange;
    let duration_ns = (e.duration_s.0 * 1e9) as u64;
    // Directory, opening orders and bursts come on top of rate times duration.
    let messages =
        (f64::from(e.rate.0) * e.duration_s.0 * 1.5) as usize + e.symbols.0 as usize * 200 + (1 << 20);
    let max_live = 400_000.min(c.feed.max_orders / 2).max(e.symbols.0 * 100);
    let listings = listings(e.symbols.0 as u16);
    let publisher = ItchPublisher::new(
        ItchPublisherConfig {
            venue: c.feed.venue.0,
            channel: ChannelConfig {
                session: c.feed.session.0.unwrap_or(*b"TICKWIRE01"),
                store_messages: messages,
                store_bytes: messages * 40,
                ..ChannelConfig::default()
            },
            connections: CONNECTIONS,
            ..ItchPublisherConfig::default()
        },
        &listings,
    );
    let outlet = Outlet {
        publisher: Box::new(publisher),
        instruments: 1..e.symbols.0 + 1,
    };
    let config = ExchangeConfig {
        listings,
        max_orders: max_live + max_live / 2,
        flow: FlowConfig {
            seed: e.seed,
            max_live,
            ..FlowConfig::default()
        },
        pace: PaceConfig {
            rate: e.rate.0,
            ..PaceConfig::default()
        },
        desk: DeskConfig {
            comp_id: CompId::new(c.order_entry.exchange_comp_id.0.as_bytes())
                .expect("a symbol fits a CompID"),
            connections: CONNECTIONS,
            ..DeskConfig::default()
        },
        duration_ns,
        linger_ns: Nanos::SECOND,
        ..ExchangeConfig::default()
    };
    Exchange::new(config, vec![outlet])
}

fn impair_of(i: Impairment, seed: u64) -> Impair {
    let ppm = |share: f64| (share * 1e6) as u32;
    Impair::new(ImpairConfig {
        seed,
        loss_ppm: ppm(i.loss.0),
        duplicate_ppm: ppm(i.duplicate.0),
        reorder_ppm: ppm(i.reorder.0),
        reorder_depth: 3,
    })
}

/// A multicast line with its trouble.
struct Line {
    sender: MulticastSender,
    impair: Impair,
    datagrams: u64,
}

/// A connected client.
struct Client {
    stream: TcpStream,
    watch: Watch,
}

/// When datagrams first left: number of the first message, of the one after the last, ticks.
#[derive(Default)]
struct Departures(Vec<(u64, u64, u64)>);

impl Departures {
    /// The first departure of a message.
    fn of(&self, seq: u64) -> Option<u64> {
        let at = self
            .0
            .partition_point(|&(first, _, _)| first <= seq)
            .checked_sub(1)?;
        let (_, next, ticks) = self.0[at];
        (seq < next).then_some(ticks)
    }

    /// In order of number, only the first departure of each: held-back and duplicate datagrams come later again.
    fn settle(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by_key(|d| d.0);
    }
}

struct Venue<'a> {
    config: &'a Config,
    clock: Clock,
    exchange: Exchange,
    lines: [Line; 2],
    requests: UdpEndpoint,
    orders: TcpListener,
    snapshots: TcpListener,
    clients: [Option<Client>; CONNECTIONS],
    readers: [Option<Client>; CONNECTIONS],
    waiter: Waiter,
    departures: Departures,
    drop_requests: Impair,
    retransmissions: u64,
    last_request: Nanos,
    opened: Option<Nanos>,
}

pub(crate) fn run(
    config: &Config,
    results: Option<&Path>,
    is_child: bool,
    stop: &StopFlag,
) -> Result<(), Failure> {
    let clock = Clock::calibrate();
    crate::pin(config.exchange.core)?;
    let mut venue = Venue::start(config, clock)?;
    let port = |a: io::Result<std::net::SocketAddr>| a.map(|a| a.port()).unwrap_or_default();
    if is_child {
        Notice::Listening {
            order_entry: port(venue.orders.local_addr()),
            retransmission: port(venue.requests.local_addr()),
            snapshot: port(venue.snapshots.local_addr()),
        }
        .send();
    } else {
        eprintln!(
            "listening: order entry on port {}, retransmission on port {}, snapshots on port {}{}",
            port(venue.orders.local_addr()),
            port(venue.requests.local_addr()),
            port(venue.snapshots.local_addr()),
            if config.exchange.start_on_logon {
                "; the session starts with the first logon"
            } else {
                ""
            }
        );
    }
    venue.serve(is_child, stop)?;
    let outcome = venue.results();
    if let Some(dir) = results {
        venue.write(dir, &outcome)?;
    }
    if !is_child {
        print!("{}", crate::report::exchange_summary(&outcome));
    }
    Ok(())
}

impl<'a> Venue<'a> {
    fn start(config: &'a Config, clock: Clock) -> Result<Venue<'a>, Failure> {
        let f = &config.feed;
        let system = |e: tickwire_runtime::NetError| Failure::system(e.to_string());
        let interface = Interface::find(&f.interface.to_string()).map_err(system)?;
        let line = |g: crate::config::Group, i: Impairment, seed: u64| -> Result<Line, Failure> {
            let group = SocketAddrV4::new(g.group.0, g.port);
            let sender = MulticastSender::open(group, &interface, TTL).map_err(system)?;
            Ok(Line {
                sender,
                impair: impair_of(i, seed),
                datagrams: 0,
            })
        };
        let seed = config.exchange.seed;
        let lines = [
            line(
                f.line_a,
                config.exchange.line_a,
                seed.wrapping_mul(2).wrapping_add(1),
            )?,
            line(
                f.line_b,
                config.exchange.line_b,
                seed.wrapping_mul(2).wrapping_add(2),
            )?,
        ];
        let requests = UdpEndpoint::bind(f.retransmission).map_err(system)?;
        let orders = TcpListener::bind(config.order_entry.address.into()).map_err(system)?;
        let snapshots = TcpListener::bind(f.snapshot.into()).map_err(system)?;
        let mut waiter = Waiter::new(WaitStrategy::for_threads(2));
        waiter.watch(&requests);
        waiter.watch(&orders);
        waiter.watch(&snapshots);
        let now = clock.now();
        let dropped = Impairment {
            loss: crate::config::Probability(1.0 - config.exchange.answer_requests.0),
            ..Impairment::default()
        };
        let packets = f64::from(config.exchange.rate.0) * config.exchange.duration_s.0 * 2.0;
        Ok(Venue {
            exchange: exchange_of(config),
            config,
            clock,
            lines,
            requests,
            orders,
            snapshots,
            clients: [const { None }; CONNECTIONS],
            readers: [const { None }; CONNECTIONS],
            waiter,
            departures: Departures(Vec::with_capacity((packets as usize).min(1 << 24))),
            drop_requests: impair_of(dropped, seed.wrapping_add(77)),
            retransmissions: 0,
            last_request: now,
            opened: None,
        })
    }

    fn serve(&mut self, is_child: bool, stop: &StopFlag) -> Result<(), Failure> {
        let mut buffer = vec![0_u8; 1 << 16];
        let mut next_look = Nanos::ZERO;
        if !self.config.exchange.start_on_logon {
            self.open(self.clock.now());
        }
        loop {
            let now = self.clock.now();
            let more = self.exchange.on_time(now);
            let sent = self.publish(now)?;
            self.serve_orders(&mut buffer)?;
            self.serve_requests(&mut buffer)?;
            self.serve_snapshots(&mut buffer)?;
            if now >= next_look {
                next_look = now.after(100 * Nanos::MILLI);
                if let Some(reason) = stop.reason() {
                    return Err(Failure::interrupted(format!(
                        "{reason}; the session was not finished"
                    )));
                }
                self.accept(now)?;
                self.progress(is_child, now);
                if self.is_done(now) {
                    return Ok(());
                }
            }
            if !more && !sent {
                let due = self
                    .exchange
                    .poll_timeout()
                    .map_or(Nanos::MILLI, |t| t.since(now))
                    .min(Nanos::MILLI);
                self.waiter
                    .wait(due)
                    .map_err(|e| Failure::system(format!("waiting for clients failed: {e}")))?;
            }
        }
    }

    fn open(&mut self, now: Nanos) {
        self.exchange.open(now);
        self.opened = Some(now);
    }

    /// Sends one datagram, if one is due, so that orders are looked at between any two.
    fn publish(&mut self, now: Nanos) -> Result<bool, Failure> {
        let Some(datagram) = self.exchange.poll_datagram(0, now) else {
            return Ok(false);
        };
        let mut failed = None;
        for line in &mut self.lines {
            let (sender, count, departures) = (&line.sender, &mut line.datagrams, &mut self.departures);
            line.impair.send(datagram.bytes, &mut |bytes: &[u8]| {
                // The clock is read before the call: the receiver may run before it returns.
                depart(departures, bytes, tsc());
                *count += 1;
                if let Err(e) = sender.send(bytes) {
                    failed.get_or_insert(e);
                }
            });
        }
        match failed {
            // A full socket buffer is a lost packet, as on any network.
            Some(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Some(e) => Err(Failure::system(format!(
                "publishing on {} failed: {e}; is there a multicast route (`ip route get 239.192.77.1`)?",
                self.config.feed.line_a.group.0
            ))),
            None => Ok(true),
        }
    }

    fn accept(&mut self, now: Nanos) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::system(format!("accepting a connection failed: {e}"));
        while let Some(stream) = self.orders.accept().map_err(failed)? {
            if let Some(id) = self.clients.iter().position(Option::is_none)
                && self.exchange.connect(id, now)
            {
                let watch = self.waiter.watch(&stream);
                self.clients[id] = Some(Client { stream, watch });
            }
        }
        Ok(())
    }

    fn serve_orders(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        for id in 0..CONNECTIONS {
            let Some(client) = &mut self.clients[id] else {
                continue;
            };
            let received = client.stream.recv(buffer);
            let now = self.clock.nanos_at(tsc());
            let is_over = match received {
                Ok(Received::Bytes(bytes)) => self.take_orders(id, now, bytes),
                Ok(Received::Nothing) => self.transmit(id).is_err(),
                Ok(Received::Closed) | Err(_) => true,
            };
            if is_over || self.exchange.wants_close(id).is_some() {
                self.close_client(id, now)?;
            }
        }
        Ok(())
    }

    /// Hands over what a client sent; `true` when the connection is over.
    fn take_orders(&mut self, id: usize, now: Nanos, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let taken = self.exchange.handle_bytes(id, now, bytes);
            bytes = &bytes[taken..];
            match self.transmit(id) {
                // Neither taken nor sent: the client does not read what it is sent.
                Ok(false) if taken == 0 => return true,
                Ok(_) => {}
                Err(_) => return true,
            }
        }
        false
    }

    /// Sends what is waiting for a client; whether there was anything.
    fn transmit(&mut self, id: usize) -> io::Result<bool> {
        let Some(client) = &mut self.clients[id] else {
            return Ok(false);
        };
        let mut chunk = [0; 8192];
        let mut any = false;
        while let Some(bytes) = self.exchange.poll_transmit(id, &mut chunk) {
            any = true;
            client.stream.send(bytes)?;
        }
        if client.stream.has_unsent() {
            client.stream.flush()?;
        }
        if any && self.opened.is_none() {
            let now = self.clock.now();
            self.open(now);
        }
        Ok(any)
    }

    fn close_client(&mut self, id: usize, now: Nanos) -> Result<(), Failure> {
        let reason = self.exchange.wants_close(id);
        let _ = self.transmit(id);
        let Some(mut client) = self.clients[id].take() else {
            return Ok(());
        };
        self.waiter.forget(client.watch);
        client.stream.finish();
        self.exchange.disconnect(id, now);
        let early = matches!(
            self.exchange.phase(),
            DayPhase::Waiting | DayPhase::Opening | DayPhase::Open
        );
        if early && self.config.exchange.stop_on_client_loss {
            return Err(Failure::peer_lost(match reason {
                Some(reason) => format!("the trader's session ended before the close: {reason:?}"),
                None => {
                    "the trader's connection was lost before the close; was it stopped or killed?".to_string()
                }
            }));
        }
        Ok(())
    }

    fn serve_requests(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::system(format!("the retransmission socket failed: {e}"));
        while let Some((datagram, from)) = self.requests.recv_from(buffer).map_err(failed)? {
            self.last_request = self.clock.now();
            let mut reply = [0; 2048];
            let mut answer = None;
            let now = self.clock.now();
            let (exchange, answers) = (&mut self.exchange, &mut self.drop_requests);
            answers.send(datagram.bytes, &mut |bytes: &[u8]| {
                answer = exchange.handle_request(0, now, bytes, &mut reply)
            });
            if let Some(len) = answer {
                self.retransmissions += 1;
                self.requests.send_to(&reply[..len], from).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn serve_snapshots(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        let now = self.clock.now();
        while let Ok(Some(stream)) = self.snapshots.accept() {
            if let Some(id) = self.readers.iter().position(Option::is_none)
                && self
                    .exchange
                    .publisher_mut(0)
                    .is_some_and(|p| p.connect(Port::SnapshotServer, id, now))
            {
                let watch = self.waiter.watch(&stream);
                self.readers[id] = Some(Client { stream, watch });
            }
        }
        for id in 0..CONNECTIONS {
            let Some(reader) = &mut self.readers[id] else {
                continue;
            };
            let mut is_over = match reader.stream.recv(buffer) {
                Ok(Received::Bytes(bytes)) => {
                    self.exchange
                        .recovery_bytes(0, Port::SnapshotServer, id, now, bytes);
                    false
                }
                Ok(Received::Nothing) => false,
                Ok(Received::Closed) | Err(_) => true,
            };
            // What the kernel has no room for waits in the session, not in memory without bound.
            while !is_over && reader.stream.flush().unwrap_or(false) {
                let publisher = self.exchange.publisher_mut(0);
                let Some(bytes) =
                    publisher.and_then(|p| p.poll_transmit(Port::SnapshotServer, id, now, buffer))
                else {
                    break;
                };
                is_over = reader.stream.send(bytes).is_err();
            }
            if is_over
                || (self
                    .exchange
                    .publisher_mut(0)
                    .is_some_and(|p| p.wants_close(Port::SnapshotServer, id))
                    && !reader.stream.has_unsent())
            {
                if let Some(p) = self.exchange.publisher_mut(0) {
                    p.disconnect(Port::SnapshotServer, id);
                }
                if let Some(mut reader) = self.readers[id].take() {
                    self.waiter.forget(reader.watch);
                    reader.stream.finish();
                }
            }
        }
        Ok(())
    }

    fn progress(&self, is_child: bool, now: Nanos) {
        if is_child {
            Notice::Progress {
                seconds: self.opened.map_or(0.0, |t| now.since(t) as f64 / 1e9),
                messages: self.exchange.total(),
                orders: self.exchange.ledger().len() as u64,
            }
            .send();
        }
    }

    /// Everything was sent, and nobody asks for anything any more.
    fn is_done(&self, now: Nanos) -> bool {
        let busy = self.readers.iter().any(Option::is_some) || now.since(self.last_request) < QUIET_NS;
        self.exchange.is_over() && !busy
    }

    fn results(&mut self) -> ExchangeResults {
        self.departures.settle();
        let mut packet_to_order = Histogram::new();
        let mut series = Series::with_capacity(self.exchange.ledger().len());
        let mut unmatched = 0;
        let opened = self.opened.unwrap_or_default();
        for order in self.exchange.ledger() {
            let Some(cause) = order.cause else { continue };
            match self.departures.of(cause.seq.0) {
                Some(ticks) => {
                    let ns = order.received.since(self.clock.nanos_at(ticks));
                    packet_to_order.record(ns);
                    series.push(order.received.since(opened), ns);
                }
                None => unmatched += 1,
            }
        }
        let counts = [self.lines[0].impair.counts(), self.lines[1].impair.counts()];
        ExchangeResults {
            messages: self.exchange.total(),
            datagrams: [self.lines[0].datagrams, self.lines[1].datagrams],
            dropped: counts.map(|c| c.lost),
            retransmissions: self.retransmissions,
            orders: self
                .exchange
                .ledger()
                .iter()
                .map(outcome_of)
                .collect::<BTreeMap<_, _>>(),
            packet_to_order,
            packet_to_order_series: series,
            unmatched_causes: unmatched,
        }
    }

    fn write(&self, dir: &Path, results: &ExchangeResults) -> Result<(), Failure> {
        let mut levels = LevelWriter::create(&dir.join("books-exchange.txt"))?;
        for listing in self.exchange.listings() {
            for side in Side::BOTH {
                levels.book(
                    listing.symbol.as_str(),
                    side,
                    self.exchange.levels(listing.id, side),
                )?;
            }
        }
        levels.finish()?;
        write_json(&dir.join("exchange.json"), results)
    }
}

/// Notes a datagram's departure; heartbeats carry no message.
fn depart(departures: &mut Departures, bytes: &[u8], ticks: u64) {
    if let Ok(packet) = moldudp64::parse(bytes)
        && packet.count() > 0
        && packet.next_seq() > packet.seq
        && departures.0.len() < departures.0.capacity()
    {
        departures.0.push((packet.seq.0, packet.next_seq().0, ticks));
    }
}

fn outcome_of(order: &ClientOrder) -> (String, OrderOutcome) {
    let status = match order.outcome {
        Outcome::Rejected => '8',
        Outcome::Filled => '2',
        Outcome::Cancelled => '4',
        Outcome::Open if order.filled.is_zero() => '0',
        Outcome::Open => '1',
    };
    // The number without its padding: the trader's orders are numbered.
    let id = order
        .cl_ord_id
        .to_number()
        .map_or_else(|| order.cl_ord_id.to_string(), |n| n.to_string());
    (
        id,
        OrderOutcome {
            status,
            filled: order.filled.0.into(),
        },
    )
}
