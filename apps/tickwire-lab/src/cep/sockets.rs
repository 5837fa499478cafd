//! Packet to order over sockets: this process is the exchange's side of both, `tickwire trade` in a process
//! of its own the system under test. In turns with it, on the same core, the bare floor: a thread that
//! answers each datagram with the bytes of an order and does nothing else.
//!
//! ```text
//!            ┌─ multicast ─► tickwire trade: decode, book, rule, checks, FIX ─ TCP ─┐
//!  driver ───┤                 (stopped while the floor has its turn)                ├─► driver
//!            └─ multicast ─► floor: recv, send ───────────────────────────── TCP ────┘
//! ```

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tickwire_market::{Price, Side, Symbol};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::host::{ProcessDelays, run_delay_ns};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::tcp::TcpStream;
use tickwire_runtime::udp::{
    DATAGRAM_BYTES_MAX, MulticastConfig, MulticastReceiver, MulticastSender, Stamping,
};

use super::{Checker, Log, Problems};
use tickwire::config::Config;
use tickwire::demo::{self, Side as Process};
use tickwire_console::failure::{Code, Failure};
use tickwire_player::FRAME_HEADERS;
use tickwire_player::single::{Arrival, OrderPort, OrdersAre, Sample, exchange};
use tickwire_venues::channels::{BUILT_IN, FeedConfig};
use tickwire_venues::protocol::Protocol;
use tickwire_venues::values::{Lot, SymbolName, Symbols};
use tickwire_venues::wait::Wait;

/// How long the trader may take to start and log on.
const START_NS: u64 = 60_000_000_000;
/// Packets sent before the first order must have come.
const SILENT_MAX: usize = 20_000;

/// How to measure.
#[derive(Clone, Debug)]
pub(crate) struct Options<'a> {
    pub(crate) templates: &'a Path,
    /// Packets before those that are measured; checked as well.
    pub(crate) warm_up: usize,
    /// Packets before the floor has its turn.
    pub(crate) block: usize,
    /// How long an order that must come is waited for.
    pub(crate) timeout_ns: u64,
    /// How long nothing may come where none is due, and the pause before the next packet.
    pub(crate) quiet_ns: u64,
    pub(crate) driver_core: Option<usize>,
    pub(crate) trader_core: Option<usize>,
    /// Where the trader's configuration is put.
    pub(crate) folder: &'a Path,
}

/// What was measured.
pub(crate) struct Measured {
    /// Of every packet after the warm-up that had to lead to an order.
    pub(crate) samples: Vec<Sample>,
    /// The same packets answered by the bare floor.
    pub(crate) floor: Vec<Sample>,
    pub(crate) orders: u64,
    pub(crate) expected: u64,
    /// Bytes of an order.
    pub(crate) order_len: u32,
    /// The trader had a core of its own and spun; else it slept in `poll`.
    pub(crate) is_spinning: bool,
    pub(crate) problems: Problems,
    /// How long each side had no core while packets were measured, nanoseconds, by role: of the trader's
    /// case, and of the floor's.
    pub(crate) run_delays_ns: [Vec<(String, u64)>; 2],
}

/// Plays the whole log; when `stop` is set, what was measured until then.
pub(crate) fn run(
    log: &Log,
    options: &Options<'_>,
    clock: &Clock,
    stop: &StopFlag,
) -> Result<Measured, Failure> {
    if let Some(core) = options.driver_core {
        Cores::count()
            .pin(core)
            .map_err(|e| Failure::system(e.to_string()))?;
    }
    let interface = Interface::loopback().map_err(|e| Failure::system(e.to_string()))?;
    let group = |last: u8| -> Result<SocketAddrV4, Failure> {
        Ok(SocketAddrV4::new(
            Ipv4Addr::new(239, 192, 78, last),
            demo::free_udp_port()?,
        ))
    };
    let (live, floor_group) = (group(1)?, group(2)?);
    let open =
        |group| MulticastSender::open(group, &interface, 1).map_err(|e| Failure::system(e.to_string()));
    let (sender, floor_sender) = (open(live)?, open(floor_group)?);
    let mut config = config(log.symbol(), options, live)?;
    let is_spinning = config.trader.wait == Wait::Spin;
    let ids = [
        config.order_entry.exchange_comp_id.0,
        config.order_entry.trader_comp_id.0,
    ];
    let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let mut port = OrderPort::listen(any, OrdersAre::Fix, ids)?;
    config.order_entry.address.set_port(port.address()?.port());
    let trader = Process::start_of(&crate::lab::product("trader")?, "trade", &config, options.folder)?;
    let mut driver = Driver {
        log,
        options,
        clock,
        sender,
        trader,
        patience: clock.span_ticks(options.timeout_ns),
        quiet: clock.span_ticks(options.quiet_ns),
        checker: Checker::default(),
        came: Vec::with_capacity(256),
        expected: Vec::with_capacity(256),
        measured: Measured {
            samples: Vec::with_capacity(log.len()),
            floor: Vec::with_capacity(log.len()),
            orders: 0,
            expected: 0,
            order_len: 0,
            is_spinning,
            problems: Problems::default(),
            run_delays_ns: Default::default(),
        },
    };
    match play(
        &mut driver,
        &mut port,
        (floor_group, floor_sender, interface),
        stop,
    ) {
        Ok(()) => Ok(driver.measured),
        // The packets before the end were measured all the same.
        Err(failure) if failure.code == Code::Interrupted => Ok(driver.measured),
        // What the trader says about it is worth more.
        Err(failure) => Err(match driver.reason() {
            Some(reason) => Failure {
                message: format!("{}: the trader: {reason}", failure.message),
                ..failure
            },
            None => failure,
        }),
    }
}

/// The whole log, with the floor's turns.
fn play(
    driver: &mut Driver<'_>,
    port: &mut OrderPort,
    (floor_group, floor_sender, interface): (SocketAddrV4, MulticastSender, Interface),
    stop: &StopFlag,
) -> Result<(), Failure> {
    let (log, options, clock) = (driver.log, driver.options, driver.clock);
    let began = tsc();
    while !driver.ready(port)? {
        if clock.span_ns(tsc() - began) > START_NS {
            return Err(Failure::peer_lost("the trader did not log on within a minute"));
        }
        interrupted(stop)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut at = driver.begin(port, stop)?;
    let mut floor = BareHost::start(
        floor_group,
        interface,
        driver.measured.order_len as usize,
        options.trader_core,
    )?;
    let (trader, own) = (ProcessDelays::begin(driver.trader.child.id()), run_delay_ns());
    let mut measured_from = at + options.warm_up;
    while at < log.len() {
        interrupted(stop)?;
        let block = at..(at + options.block.max(1)).min(log.len());
        for packet in block.clone() {
            driver.packet(port, packet, packet >= measured_from && !log.is_interlude(packet))?;
        }
        driver.floor(&mut floor, &floor_sender, block.clone(), measured_from)?;
        at = block.end;
        measured_from = measured_from.min(log.len());
    }
    let own = own.zip(run_delay_ns());
    let own = own.map(|(before, now)| ("driver".to_owned(), now.saturating_sub(before)));
    driver.measured.run_delays_ns = [
        own.clone().into_iter().chain(trader.since("trader")).collect(),
        own.into_iter().chain(floor.end()).collect(),
    ];
    if driver.measured.samples.is_empty() {
        driver.measured.problems.add(
            log.len() as u64,
            "no order after the warm-up: nothing was measured",
        );
    }
    Ok(())
}

fn interrupted(stop: &StopFlag) -> Result<(), Failure> {
    match stop.reason() {
        Some(reason) => Err(Failure::interrupted(format!(
            "{reason}; packets were still being played"
        ))),
        None => Ok(()),
    }
}

/// The trader's configuration: one line of one channel, no recovery, limits that nothing here reaches.
fn config(symbol: Symbol, options: &Options<'_>, live: SocketAddrV4) -> Result<Config, Failure> {
    let mut c = Config::of_protocol(Protocol::Moex);
    c.controls.for_a_demo();
    c.controls.instrument_messages_per_s = 0;
    c.controls.drift_bp = 0;
    c.controls.order_value_max = 0;
    let mut feed = FeedConfig::on_loopback(Protocol::Moex);
    feed.templates = match options.templates.as_os_str() == BUILT_IN {
        true => vec![options.templates.to_owned()],
        false => vec![
            options
                .templates
                .canonicalize()
                .map_err(|e| Failure::system(format!("cannot read {}: {e}", options.templates.display())))?,
        ],
    };
    let channel = &mut feed.channels[0];
    channel.live.a = live;
    channel.live.b = None;
    (channel.snapshot, channel.definitions, channel.replay) = (None, None, None);
    c.feed = vec![feed];
    c.exchange.symbols = Symbols(1);
    c.receiver.max_instruments = 64;
    c.receiver.max_orders = 1 << 16;
    c.receiver.max_levels = 1 << 14;
    c.order_entry.heartbeat_s = 30;
    let core = options.trader_core.map_or(-1, |core| core as i32);
    c.trader.core = core;
    let has_own = match (options.driver_core, options.trader_core) {
        (Some(driver), Some(trader)) => driver != trader,
        _ => Cores::count().parallelism() > 1,
    };
    c.trader.wait = if has_own { Wait::Spin } else { Wait::Poll };
    c.trader.symbol = SymbolName(symbol);
    c.trader.lot = Lot(1);
    c.trader.risk.price_band_bp = 10_000;
    c.trader.risk.max_orders_per_s = 1 << 16;
    c.trader.risk.max_open_orders = 1 << 16;
    c.trader.risk.max_position = u64::MAX >> 1;
    c.check().map_err(Failure::config)?;
    Ok(c)
}

struct Driver<'a> {
    log: &'a Log,
    options: &'a Options<'a>,
    clock: &'a Clock,
    sender: MulticastSender,
    trader: Process,
    patience: u64,
    quiet: u64,
    checker: Checker,
    /// Orders that came for the packet under way.
    came: Vec<Arrival>,
    expected: Vec<Price>,
    measured: Measured,
}

impl Driver<'_> {
    /// Whether the trader has logged on.
    fn ready(&mut self, port: &mut OrderPort) -> Result<bool, Failure> {
        if self.trader.child.try_wait().is_ok_and(|end| end.is_some()) {
            return Err(Failure::peer_lost("the trader ended before it had logged on"));
        }
        Ok(port.is_ready(self.clock)?)
    }

    /// Why the trader has ended, if it has.
    fn reason(&mut self) -> Option<String> {
        let ended = self.trader.child.wait_for(Duration::from_millis(200)).ok()?;
        ended.and_then(|_| self.trader.drain().1)
    }

    /// Sends packets until the first order comes: from then on it is known what every packet must lead to.
    /// The next packet.
    fn begin(&mut self, port: &mut OrderPort, stop: &StopFlag) -> Result<usize, Failure> {
        for at in 0..self.log.len().min(SILENT_MAX) {
            interrupted(stop)?;
            let patience = match self.log.offers(at).is_empty() {
                true => self.quiet,
                // The trader looks for its symbol ten times a second.
                false => self.clock.span_ticks(2_000_000),
            };
            let (sender, payload) = (&self.sender, self.log.payload(at));
            let done = exchange(port, self.clock, patience, || sender.send(payload))?;
            let Some(first) = done.arrival else { continue };
            self.measured.order_len = first.bytes;
            self.collect(port, self.clock.span_ticks(50_000_000))?;
            self.checker.begin(self.log.offer_after(at));
            return Ok(at + 1);
        }
        Err(Failure::check(format!(
            "no order came for the first {} packets",
            self.log.len().min(SILENT_MAX)
        )))
    }

    /// Takes what still comes within so many ticks and answers it.
    fn collect(&mut self, port: &mut OrderPort, ticks: u64) -> Result<(), Failure> {
        let began = tsc();
        while tsc() - began < ticks {
            if let Some(arrival) = port.poll(self.clock)? {
                self.came.push(arrival);
            }
        }
        self.measured.orders += self.came.len() as u64;
        self.came.clear();
        Ok(port.settle(self.clock)?)
    }

    /// Sends a packet, takes every order that it must lead to, sees that no other comes.
    fn packet(&mut self, port: &mut OrderPort, at: usize, is_measured: bool) -> Result<(), Failure> {
        let number = at as u64 + 1;
        self.checker.expect(self.log.offers(at), &mut self.expected);
        let due = self.expected.len();
        let patience = if due == 0 { self.quiet } else { self.patience };
        let (sender, payload) = (&self.sender, self.log.payload(at));
        let done = exchange(port, self.clock, patience, || sender.send(payload))?;
        self.came.clear();
        self.came.extend(done.arrival);
        let waiting = tsc();
        while self.came.len() < due && tsc() - waiting < self.patience {
            self.came.extend(port.poll(self.clock)?);
        }
        if due > 0 {
            // The answers go out; the system settles; what comes now is one too many.
            port.settle(self.clock)?;
            let settled = tsc();
            while tsc() - settled < self.quiet {
                self.came.extend(port.poll(self.clock)?);
            }
        }
        port.settle(self.clock)?;
        self.compare(number);
        self.measured.orders += self.came.len() as u64;
        self.measured.expected += due as u64;
        if let (true, Some(first)) = (is_measured && due > 0, done.arrival) {
            let span = |to: u64| self.clock.span_ns(to.saturating_sub(done.before));
            self.measured.samples.push(Sample {
                packet: number,
                payload_len: payload.len() as u32,
                frame_len: payload.len() as u32 + FRAME_HEADERS,
                entries: Some(self.log.entries(at)),
                n1_ns: Some(span(first.ticks)),
                call_ns: span(done.sent),
                orders: self.came.len() as u32,
            });
        }
        Ok(())
    }

    /// Every order by price, side, symbol and cause.
    fn compare(&mut self, number: u64) {
        let problems = &mut self.measured.problems;
        for nth in 0..self.came.len().max(self.expected.len()) {
            match (
                self.came.get(nth).and_then(|arrival| arrival.order),
                self.expected.get(nth),
            ) {
                (Some(order), Some(&price)) => {
                    let cause = order.cause.map(|cause| cause.seq.0);
                    let is_right = order.price == Some(price)
                        && order.side == Side::Bid
                        && order.symbol == self.log.symbol()
                        && cause == Some(number);
                    if !is_right {
                        problems.add(
                            number,
                            format!(
                                "{:?} {} at {:?}, caused by packet {cause:?}, instead of a buy at {price}",
                                order.side, order.symbol, order.price
                            ),
                        );
                    }
                }
                (Some(order), None) => {
                    problems.add(
                        number,
                        format!("an order at {:?} that nothing asked for", order.price),
                    );
                }
                (None, Some(price)) => problems.add(number, format!("no order at {price} came")),
                (None, None) => {}
            }
        }
    }

    /// The floor's turn: the packets of the block that led to orders.
    fn floor(
        &mut self,
        floor: &mut BareHost,
        sender: &MulticastSender,
        block: std::ops::Range<usize>,
        measured_from: usize,
    ) -> Result<(), Failure> {
        let first = self
            .measured
            .samples
            .partition_point(|s| s.packet <= block.start as u64);
        let packets: Vec<u64> = self.measured.samples[first..].iter().map(|s| s.packet).collect();
        if packets.is_empty() || block.end <= measured_from {
            return Ok(());
        }
        let system = |e: io::Error| Failure::system(format!("cannot stop or resume the trader: {e}"));
        self.trader.child.pause().map_err(system)?;
        floor.wake(true);
        // The first two only warm it up.
        for (nth, &number) in packets.iter().take(2).chain(&packets).enumerate() {
            let at = number as usize - 1;
            let payload = self.log.payload(at);
            let done = exchange(&mut floor.port, self.clock, self.patience, || {
                sender.send(payload)
            })?;
            let settled = tsc();
            while tsc() - settled < 2 * self.quiet {
                if floor.port.poll(self.clock)?.is_some() {
                    self.measured.problems.add(number, "the floor answered twice");
                }
            }
            let Some(arrival) = done.arrival else {
                self.measured.problems.add(number, "the floor did not answer");
                continue;
            };
            if nth < 2 {
                continue;
            }
            let span = |to: u64| self.clock.span_ns(to.saturating_sub(done.before));
            self.measured.floor.push(Sample {
                packet: number,
                payload_len: payload.len() as u32,
                frame_len: payload.len() as u32 + FRAME_HEADERS,
                entries: Some(self.log.entries(at)),
                n1_ns: Some(span(arrival.ticks)),
                call_ns: span(done.sent),
                orders: 1,
            });
        }
        floor.wake(false);
        self.trader.child.resume().map_err(system)?;
        // Back on its core before the next packet.
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    }
}

/// The bare floor of the host.
struct BareHost {
    port: OrderPort,
    is_awake: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    /// How long its thread had no core, from its begin to its end, nanoseconds; [`NOT_COUNTED`] before that,
    /// and where the kernel does not count it.
    waited_ns: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// There is no such figure.
const NOT_COUNTED: u64 = u64::MAX;

impl BareHost {
    fn start(
        group: SocketAddrV4,
        interface: Interface,
        order_len: usize,
        core: Option<usize>,
    ) -> Result<BareHost, Failure> {
        let system = |e: tickwire_runtime::NetError| Failure::system(e.to_string());
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut port = OrderPort::listen(any, OrdersAre::Bytes, [Symbol::EMPTY; 2])?;
        let address: SocketAddr = port.address()?;
        let stream = TcpStream::connect(address, Duration::from_secs(5)).map_err(system)?;
        let receiver =
            MulticastReceiver::join(MulticastConfig::new(group, interface).stamping(Stamping::Off))
                .map_err(system)?;
        let clock = Clock::calibrate();
        while !port.is_ready(&clock)? {
            std::hint::spin_loop();
        }
        let (is_awake, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let order = vec![b'F'; order_len.max(1)];
        let waited_ns = Arc::new(AtomicU64::new(NOT_COUNTED));
        let thread = {
            let (is_awake, is_over) = (Arc::clone(&is_awake), Arc::clone(&is_over));
            let waited_ns = Arc::clone(&waited_ns);
            std::thread::Builder::new()
                .name("floor".into())
                .spawn(move || {
                    if let Some(core) = core {
                        let _ = Cores::count().pin(core);
                    }
                    let before = run_delay_ns();
                    answer(receiver, stream, &order, &is_awake, &is_over);
                    if let Some((before, now)) = before.zip(run_delay_ns()) {
                        waited_ns.store(now.saturating_sub(before), Ordering::Release);
                    }
                })
                .map_err(|e| Failure::system(format!("no thread for the floor: {e}")))?
        };
        Ok(BareHost {
            port,
            is_awake,
            is_over,
            waited_ns,
            thread: Some(thread),
        })
    }

    fn wake(&self, awake: bool) {
        self.is_awake.store(awake, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl BareHost {
    /// Its thread ends; how long it had no core.
    fn end(&mut self) -> Option<(String, u64)> {
        self.is_over.store(true, Ordering::Release);
        self.wake(false);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let waited = self.waited_ns.load(Ordering::Acquire);
        (waited != NOT_COUNTED).then(|| ("floor".to_owned(), waited))
    }
}

impl Drop for BareHost {
    fn drop(&mut self) {
        self.end();
    }
}

/// A datagram in, an order's bytes out, nothing else.
fn answer(
    mut receiver: MulticastReceiver,
    mut stream: TcpStream,
    order: &[u8],
    is_awake: &AtomicBool,
    is_over: &AtomicBool,
) {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        match receiver.recv(&mut buffer) {
            Ok(Some(_)) => {
                if stream.send(order).is_err() {
                    return;
                }
            }
            Ok(None) if is_awake.load(Ordering::Acquire) => {}
            Ok(None) if is_over.load(Ordering::Acquire) => return,
            Ok(None) => std::thread::park(),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trader_with_a_core_of_its_own_spins_wherever_the_driver_has_pinned_itself() {
        let live = SocketAddrV4::new(Ipv4Addr::new(239, 192, 78, 1), 4_000);
        let wait = |driver_core, trader_core| {
            let options = Options {
                templates: Path::new(BUILT_IN),
                warm_up: 0,
                block: 1,
                timeout_ns: 1,
                quiet_ns: 1,
                driver_core,
                trader_core,
                folder: Path::new("."),
            };
            config(Symbol::new(b"X").expect("a valid symbol"), &options, live)
                .map(|c| c.trader.wait)
                .expect("a configuration")
        };
        // As in the second repetition of a run: this thread is where the first one put it.
        let core = Cores::count().usable().first().copied().expect("a core");
        Cores::count().pin(core).expect("one of its own");
        assert_eq!(wait(Some(core), Some(core + 1)), Wait::Spin);
        assert_eq!(wait(Some(core), Some(core)), Wait::Poll);
        let anywhere = match Cores::count().parallelism() {
            1 => Wait::Poll,
            _ => Wait::Spin,
        };
        assert_eq!(
            wait(Some(core), None),
            anywhere,
            "a process does not inherit the driver's core"
        );
    }
}
