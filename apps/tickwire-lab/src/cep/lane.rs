//! One trader under measurement, and this process's side of it: a packet out, its orders back, each compared
//! with what the naive rule says.

use std::net::{SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tickwire::config::Config;
use tickwire::demo::Side as Process;
use tickwire_console::failure::Failure;
use tickwire_market::{Price, Side};
use tickwire_player::single::{Arrival, OrderPort, OrdersAre, Sample, exchange};
use tickwire_runtime::clock::tsc;
use tickwire_runtime::host::ProcessDelays;
use tickwire_runtime::interface::Interface;
use tickwire_runtime::udp::MulticastSender;

use super::sockets::{Driving, Market, config};
use super::{Checker, Problems};
use crate::lab::net::{EXCHANGE, Net, TRADER};
use crate::lab::paths::Path;

/// The most bytes of a datagram that fit one Ethernet frame.
const WHOLE_BYTES_MAX: usize = 1_472;
/// How long a datagram in fragments may take to the trader, nanoseconds.
const FRAGMENTS_NS: u64 = 20_000_000;
/// Packets sent before the first order must have come.
const SILENT_MAX: usize = 20_000;

/// What was measured of a trader.
#[derive(Default)]
pub(crate) struct Measured {
    /// Of every packet after the warm-up that had to lead to an order.
    pub(crate) samples: Vec<Sample>,
    pub(crate) orders: u64,
    pub(crate) expected: u64,
    /// Whether the order of each sample was prepared before its packet was sent: the program at the hook sent
    /// it.
    pub(crate) prepared: Vec<bool>,
    /// Bytes of an order.
    pub(crate) order_len: u32,
    pub(crate) problems: Problems,
    /// How long each side had no core while packets were measured, nanoseconds, by role.
    pub(crate) run_delays_ns: Vec<(String, u64)>,
}

/// A trader, by one way through the machine.
pub(super) struct Lane<'a> {
    pub(super) path: Path,
    pub(super) net: &'a Net,
    sender: MulticastSender,
    port: OrderPort,
    /// The trader's process; `None` on another machine.
    trader: Option<Process>,
    delays: Option<ProcessDelays>,
    checker: Checker,
    /// Orders that came for the packet under way.
    came: Vec<Arrival>,
    expected: Vec<Price>,
    /// The next packet of the log.
    pub(super) next: usize,
    pub(super) measured: Measured,
    /// The configuration of a trader that somebody starts on another machine.
    pub(super) away: Option<PathBuf>,
}

impl<'a> Lane<'a> {
    /// Opens the driver's side at its end of the network, where the calling thread stays, and starts the
    /// trader at the other.
    pub(super) fn start(path: Path, net: &'a Net, driving: &Driving<'_>) -> Result<Lane<'a>, Failure> {
        let options = driving.options;
        let system = |e: tickwire_runtime::NetError| Failure::system(e.to_string());
        net.enter(EXCHANGE)?;
        let live = SocketAddrV4::new(super::sockets::GROUP, tickwire::demo::free_udp_port()?);
        let interface = Interface::find(net.interface(EXCHANGE)).map_err(system)?;
        let sender = MulticastSender::open(live, &interface, 1).map_err(system)?;
        let mut config = config(driving.log.symbol(), options, (path, net), live)?;
        let ids = [
            config.order_entry.exchange_comp_id.0,
            config.order_entry.trader_comp_id.0,
        ];
        let own = SocketAddrV4::new(net.address(EXCHANGE), 0);
        let mut port = OrderPort::listen(own, OrdersAre::Fix, ids)?;
        if driving.is_stamped {
            port = port.stamp();
        }
        let SocketAddr::V4(at) = port.address()? else {
            return Err(Failure::system("an IPv4 socket has an IPv6 address"));
        };
        config.order_entry.address = at;
        let folder = options.folder.join(path.name());
        tickwire_runtime::files::create_folders(&folder)
            .map_err(|e| Failure::system(format!("cannot create {}: {e}", folder.display())))?;
        let (trader, away) = match net.is_here(TRADER) {
            true => {
                net.enter(TRADER)?;
                let started = process(path, options.market, &config, &folder);
                net.enter(EXCHANGE)?;
                (Some(started?), None)
            }
            false => (None, Some(written(&config, &folder)?)),
        };
        Ok(Lane {
            path,
            net,
            sender,
            port,
            trader,
            delays: None,
            checker: Checker::default(),
            came: Vec::with_capacity(256),
            expected: Vec::with_capacity(256),
            next: 0,
            measured: Measured {
                samples: Vec::with_capacity(driving.log.len()),
                prepared: Vec::with_capacity(driving.log.len()),
                ..Measured::default()
            },
            away,
        })
    }

    /// Whether the trader has logged on.
    pub(super) fn is_ready(&mut self, driving: &Driving<'_>) -> Result<bool, Failure> {
        let has_ended = |trader: &mut Process| trader.child.try_wait().is_ok_and(|end| end.is_some());
        if self.trader.as_mut().is_some_and(has_ended) {
            return Err(Failure::peer_lost("the trader ended before it had logged on"));
        }
        Ok(self.port.is_ready(driving.clock)?)
    }

    /// Why the trader has ended, if it has.
    pub(super) fn reason(&mut self) -> Option<String> {
        let trader = self.trader.as_mut()?;
        let ended = trader.child.wait_for(Duration::from_millis(200)).ok()?;
        ended.and_then(|_| trader.drain().1)
    }

    /// Takes the trader off its core, for others to have their turn.
    pub(super) fn pause(&mut self) -> Result<(), Failure> {
        match &mut self.trader {
            Some(trader) => trader.child.pause().map_err(stopping),
            None => Ok(()),
        }
    }

    /// Lets it go on; it is back on its core before the next packet.
    pub(super) fn resume(&mut self) -> Result<(), Failure> {
        if let Some(trader) = &mut self.trader {
            trader.child.resume().map_err(stopping)?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// From here on it is counted how long the trader has no core.
    pub(super) fn watch(&mut self) {
        self.delays = self.trader.as_ref().map(|t| ProcessDelays::begin(t.child.id()));
    }

    /// How long it had none since then.
    pub(super) fn waited(&self) -> Vec<(String, u64)> {
        self.delays.as_ref().map_or_else(Vec::new, |d| d.since("trader"))
    }

    /// Sends packets until the first order comes: from then on it is known what every packet must lead to.
    pub(super) fn begin(&mut self, driving: &Driving<'_>) -> Result<(), Failure> {
        let log = driving.log;
        for at in 0..log.len().min(SILENT_MAX) {
            driving.go_on()?;
            let patience = match log.offers(at).is_empty() {
                true => self.pause_behind(driving, at),
                // The trader looks for its symbol ten times a second.
                false => driving.clock.span_ticks(2_000_000),
            };
            let (sender, payload) = (&self.sender, log.payload(at));
            let done = exchange(&mut self.port, driving.clock, patience, || sender.send(payload))?;
            let Some(first) = done.arrival else { continue };
            self.measured.order_len = first.bytes;
            self.collect(driving, driving.clock.span_ticks(50_000_000))?;
            self.checker.begin(log.offer_after(at));
            self.next = at + 1;
            return Ok(());
        }
        Err(Failure::check(format!(
            "no order came for the first {} packets",
            log.len().min(SILENT_MAX)
        )))
    }

    /// Takes what still comes within so many ticks and answers it.
    fn collect(&mut self, driving: &Driving<'_>, ticks: u64) -> Result<(), Failure> {
        let began = tsc();
        while tsc() - began < ticks {
            if let Some(arrival) = self.port.poll(driving.clock)? {
                self.came.push(arrival);
            }
        }
        self.measured.orders += self.came.len() as u64;
        self.came.clear();
        Ok(self.port.settle(driving.clock)?)
    }

    /// Sends a packet, takes every order that it must lead to, sees that no other comes.
    pub(super) fn packet(
        &mut self,
        driving: &Driving<'_>,
        at: usize,
        is_measured: bool,
    ) -> Result<(), Failure> {
        let (log, clock, quiet) = (driving.log, driving.clock, driving.quiet);
        let number = at as u64 + 1;
        self.checker.expect(log.offers(at), &mut self.expected);
        let due = self.expected.len();
        let patience = match due {
            0 => self.pause_behind(driving, at),
            _ => driving.patience,
        };
        let (sender, payload) = (&self.sender, log.payload(at));
        let done = exchange(&mut self.port, clock, patience, || sender.send(payload))?;
        self.came.clear();
        self.came.extend(done.arrival);
        let waiting = tsc();
        while self.came.len() < due && tsc() - waiting < driving.patience {
            self.came.extend(self.port.poll(clock)?);
        }
        if due > 0 {
            // The answers go out; the system settles; what comes now is one too many.
            self.port.settle(clock)?;
            let settled = tsc();
            while tsc() - settled < quiet {
                self.came.extend(self.port.poll(clock)?);
            }
        }
        self.port.settle(clock)?;
        self.compare(driving, number);
        self.measured.orders += self.came.len() as u64;
        self.measured.expected += due as u64;
        if let (true, Some(first)) = (is_measured && due > 0, done.arrival) {
            self.measured.prepared.push(is_prepared(&first));
            let (packet, orders) = ((number, payload.len()), self.came.len() as u32);
            let sample = done.sample(clock, packet, Some(log.entries(at)), orders);
            self.measured.samples.push(sample);
        }
        Ok(())
    }

    /// How long nothing is sent behind a packet that leads to no order. Past the sockets one that comes in
    /// fragments takes another way, by sockets that are looked at every millisecond: the next one, by the
    /// hook, would be there before it.
    fn pause_behind(&self, driving: &Driving<'_>, at: usize) -> u64 {
        let comes_in_fragments = driving.log.payload(at).len() > WHOLE_BYTES_MAX;
        match self.path != Path::Socket && comes_in_fragments {
            true => driving.quiet.max(driving.clock.span_ticks(FRAGMENTS_NS)),
            false => driving.quiet,
        }
    }

    /// Every order by price, side, symbol and cause; one that was prepared names no cause.
    fn compare(&mut self, driving: &Driving<'_>, number: u64) {
        let problems = &mut self.measured.problems;
        for nth in 0..self.came.len().max(self.expected.len()) {
            let arrival = self.came.get(nth);
            match (arrival.and_then(|arrival| arrival.order), self.expected.get(nth)) {
                (Some(order), Some(&price)) => {
                    let cause = order.cause.map(|cause| cause.seq.0);
                    let is_by_program = self.path == Path::PreArmed && arrival.is_some_and(is_prepared);
                    let is_right = order.price == Some(price)
                        && order.side == Side::Bid
                        && order.symbol == driving.log.symbol()
                        && (is_by_program || cause == Some(number));
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
}

/// Whether an order was prepared before its packet came: it could not name it.
fn is_prepared(arrival: &Arrival) -> bool {
    arrival.order.is_some_and(|order| order.cause.is_none())
}

fn stopping(e: std::io::Error) -> Failure {
    Failure::system(format!("cannot stop or resume the trader: {e}"))
}

/// The trader's process, in the namespace of the calling thread.
fn process(
    path: Path,
    market: Market,
    config: &Config,
    folder: &std::path::Path,
) -> Result<Process, Failure> {
    let command = match market {
        Market::Moex => {
            let mut command = Command::new(crate::lab::product("trader")?);
            command.arg("trade");
            command
        }
        Market::Itch => {
            let own = std::env::current_exe()
                .map_err(|e| Failure::system(format!("cannot find this program's own file: {e}")))?;
            let mut command = Command::new(own);
            command.arg("ticks");
            command.args((path == Path::PreArmed).then_some("--armed"));
            command
        }
    };
    Process::start_command(command, "trade", config, folder)
}

/// The configuration of a trader that is started elsewhere.
fn written(config: &Config, folder: &std::path::Path) -> Result<PathBuf, Failure> {
    let path = folder.join("trade.toml");
    tickwire_runtime::files::write(&path, config.to_toml())
        .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?;
    Ok(path)
}
