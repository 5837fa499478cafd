//! Packet to order between sockets, or past them: this process is the exchange's side, a trader in a process
//! of its own the system under test, one for each way through the machine, on a network of its own. They take
//! turns, and in turns with them, on the same core, the bare floor: a thread that answers each datagram with
//! the bytes of an order and does nothing else.
//!
//! ```text
//!            ┌─ multicast ─► trader by sockets: decode, book, rule, checks, FIX ─ TCP ─┐
//!  driver ───┼─ multicast ─► trader by AF_XDP ... (stopped while others have turns)    ├─► driver
//!            └─ multicast ─► floor: recv, send ─────────────────────────────── TCP ────┘
//! ```

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path as FilePath;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tickwire_market::Symbol;
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::host::run_delay_ns;
use tickwire_runtime::inbox::await_receive_stamps;
use tickwire_runtime::signal::StopFlag;

use super::floor::BareHost;
use super::lane::{Lane, Measured};
use super::{Log, Problems};
use crate::lab::net::{EXCHANGE, Net, TRADER};
use crate::lab::paths::Path;
use tickwire::config::Config;
use tickwire_console::failure::{Code, Failure};
use tickwire_node::silence::SilenceMs;
use tickwire_player::single::{Sample, exchange};
use tickwire_venues::channels::{BUILT_IN, FeedConfig};
use tickwire_venues::protocol::Protocol;
use tickwire_venues::values::{Lot, SymbolName, Symbols};
use tickwire_venues::wait::Wait;

/// How long the traders may take to start and log on.
const START_NS: u64 = 60_000_000_000;
/// One that somebody starts on another machine has longer.
const AWAY_NS: u64 = 600_000_000_000;
/// After how long without a packet a trader sends nothing more.
pub(crate) const SILENCE_MS: u32 = 60_000;
/// How long the kernel may take to begin to stamp what it receives.
const STAMPS_PATIENCE: Duration = Duration::from_secs(10);
/// The group of a trader's feed, and of the floor's.
pub(super) const GROUP: Ipv4Addr = Ipv4Addr::new(239, 192, 78, 1);
const FLOOR_GROUP: Ipv4Addr = Ipv4Addr::new(239, 192, 78, 2);

/// What is played.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Market {
    /// The order log of a currency market, in FAST, and a rule that follows the best offer.
    #[default]
    Moex,
    /// Ticks in ITCH 5.0, and a rule that an order can be prepared for.
    Itch,
}

/// How to measure.
#[derive(Clone, Debug)]
pub(crate) struct Options<'a> {
    pub(crate) market: Market,
    pub(crate) templates: &'a FilePath,
    /// Packets before those that are measured; checked as well.
    pub(crate) warm_up: usize,
    /// Packets of a turn.
    pub(crate) block: usize,
    /// How long an order that must come is waited for.
    pub(crate) timeout_ns: u64,
    /// How long nothing may come where none is due, and the pause before the next packet.
    pub(crate) quiet_ns: u64,
    pub(crate) driver_core: Option<usize>,
    pub(crate) trader_core: Option<usize>,
    /// Where the traders' configurations are put.
    pub(crate) folder: &'a FilePath,
}

/// What was measured.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Of each way, in the order in which they were given.
    pub(crate) traders: Vec<(Path, Measured)>,
    pub(crate) floor: Floor,
    /// The traders had a core of their own and spun; else they slept in `poll`.
    pub(crate) is_spinning: bool,
}

/// What was measured of the floor.
#[derive(Default)]
pub(crate) struct Floor {
    /// The packets of the first way that led to orders, answered by the bare floor.
    pub(crate) samples: Vec<Sample>,
    pub(crate) problems: Problems,
    pub(crate) run_delays_ns: Vec<(String, u64)>,
}

/// What all traders of a run have in common.
pub(super) struct Driving<'a> {
    pub(super) log: &'a Log,
    pub(super) options: &'a Options<'a>,
    pub(super) clock: &'a Clock,
    stop: &'a StopFlag,
    pub(super) patience: u64,
    pub(super) quiet: u64,
    /// Whether the kernel says when orders entered its stack.
    pub(super) is_stamped: bool,
}

impl Driving<'_> {
    /// An error when the run is to end.
    pub(super) fn go_on(&self) -> Result<(), Failure> {
        match self.stop.reason() {
            Some(reason) => Err(Failure::interrupted(format!(
                "{reason}; packets were still being played"
            ))),
            None => Ok(()),
        }
    }
}

/// Plays the whole log to a trader on each of these networks; when `stop` is set, what was measured until
/// then.
pub(crate) fn run(
    log: &Log,
    options: &Options<'_>,
    clock: &Clock,
    stop: &StopFlag,
    nets: &[(Path, Net)],
) -> Result<Outcome, Failure> {
    let is_stamped = nets.iter().any(|(_, net)| !matches!(net, Net::Loopback));
    let driving = Driving {
        log,
        options,
        clock,
        stop,
        patience: clock.span_ticks(options.timeout_ns),
        quiet: clock.span_ticks(options.quiet_ns),
        is_stamped,
    };
    // A thread of its own: it goes to the exchange's end of each network.
    std::thread::scope(|scope| {
        let driver = std::thread::Builder::new().name("driver".into());
        let driver = driver.spawn_scoped(scope, || drive(&driving, nets));
        let driver = driver.map_err(|e| Failure::system(format!("no thread for the driver: {e}")))?;
        driver.join().expect("it does not panic")
    })
}

fn drive(driving: &Driving<'_>, nets: &[(Path, Net)]) -> Result<Outcome, Failure> {
    let options = driving.options;
    if let Some(core) = options.driver_core {
        Cores::count()
            .pin(core)
            .map_err(|e| Failure::system(e.to_string()))?;
    }
    let mut lanes = Vec::with_capacity(nets.len());
    let mut floor = Floor::default();
    let done = start(driving, nets, &mut lanes).and_then(|()| play(driving, &mut lanes, &mut floor));
    match done {
        Ok(()) => {}
        // The packets before the end were measured all the same.
        Err(failure) if failure.code == Code::Interrupted => {}
        // What a trader says about it is worth more.
        Err(failure) => {
            let said = lanes.iter_mut().find_map(|lane| {
                let reason = lane.reason()?;
                Some(format!("the trader ({}): {reason}", lane.path.name()))
            });
            return Err(match said {
                Some(said) => Failure {
                    message: format!("{}: {said}", failure.message),
                    ..failure
                },
                None => failure,
            });
        }
    }
    Ok(Outcome {
        traders: lanes.into_iter().map(|lane| (lane.path, lane.measured)).collect(),
        floor,
        is_spinning: spins(options),
    })
}

/// Starts one trader after the other, up to its first order: they have one core, where the next would not
/// come to its logon beside one that spins.
fn start<'a>(
    driving: &Driving<'_>,
    nets: &'a [(Path, Net)],
    lanes: &mut Vec<Lane<'a>>,
) -> Result<(), Failure> {
    if driving.is_stamped && !await_receive_stamps(STAMPS_PATIENCE).unwrap_or(false) {
        return Err(Failure::system(
            "the kernel does not stamp what TCP receives: WIRE cannot be measured here",
        ));
    }
    for (path, net) in nets {
        lanes.push(Lane::start(*path, net, driving)?);
        let Some(lane) = lanes.last_mut() else { continue };
        wait_for(lane, driving)?;
        lane.begin(driving)?;
        if nets.len() > 1 {
            lane.pause()?;
        }
    }
    Ok(())
}

/// The whole log, everybody in turns.
fn play(driving: &Driving<'_>, lanes: &mut [Lane<'_>], measured: &mut Floor) -> Result<(), Failure> {
    let (log, options) = (driving.log, driving.options);
    let is_alone = lanes.len() == 1;
    let mut floor = match lanes.first() {
        Some(first) if first.net.is_here(TRADER) => {
            first.net.enter(EXCHANGE)?;
            let group = SocketAddrV4::new(FLOOR_GROUP, tickwire::demo::free_udp_port()?);
            let order = (first.measured.order_len as usize, driving.is_stamped);
            Some(BareHost::start(first.net, group, order, options.trader_core)?)
        }
        _ => None,
    };
    let own = run_delay_ns();
    lanes.iter_mut().for_each(Lane::watch);
    // All from the same packet on.
    let begun = lanes.iter().map(|lane| lane.next).max().unwrap_or_default();
    let measured_from = (begun + options.warm_up).min(log.len());
    let mut at = lanes.iter().map(|lane| lane.next).min().unwrap_or_default();
    let mut turn = 0;
    while at < log.len() {
        driving.go_on()?;
        let end = (at + options.block.max(1)).min(log.len());
        let count = lanes.len();
        for nth in 0..count {
            // Whoever is first in one turn is last in the next.
            let lane = &mut lanes[(nth + turn) % count];
            if !is_alone {
                lane.resume()?;
            }
            while lane.next < end {
                let packet = lane.next;
                lane.next += 1;
                let is_measured = packet >= measured_from && !log.is_interlude(packet);
                lane.packet(driving, packet, is_measured)?;
            }
            if !is_alone {
                lane.pause()?;
            }
        }
        if let (Some(floor), Some(first), true) = (&mut floor, lanes.first_mut(), end > measured_from) {
            if is_alone {
                first.pause()?;
            }
            let from = first.measured.samples.partition_point(|s| s.packet <= at as u64);
            let packets: Vec<u64> = first.measured.samples[from..].iter().map(|s| s.packet).collect();
            answer_by(driving, floor, &packets, measured)?;
            if is_alone {
                first.resume()?;
            }
        }
        (at, turn) = (end, turn + 1);
    }
    let own = own.zip(run_delay_ns());
    let own = own.map(|(before, now)| ("driver".to_owned(), now.saturating_sub(before)));
    for lane in &mut *lanes {
        // The driver's is of all turns.
        let waited = own.clone().into_iter().chain(lane.waited());
        lane.measured.run_delays_ns = waited.collect();
        if lane.measured.samples.is_empty() {
            lane.measured.problems.add(
                log.len() as u64,
                "no order after the warm-up: nothing was measured",
            );
        }
    }
    let ended = floor.as_mut().and_then(BareHost::end);
    measured.run_delays_ns = own.into_iter().chain(ended).collect();
    Ok(())
}

/// Until the trader has logged on.
fn wait_for(lane: &mut Lane<'_>, driving: &Driving<'_>) -> Result<(), Failure> {
    let (began, clock) = (tsc(), driving.clock);
    let patience = match &lane.away {
        None => START_NS,
        Some(config) => {
            let program = match driving.options.market {
                Market::Moex => "tickwire trade",
                Market::Itch if lane.path == Path::PreArmed => "tickwire-lab ticks --armed",
                Market::Itch => "tickwire-lab ticks",
            };
            eprintln!(
                "the trader is on another machine: start it there within ten minutes: `{program} -c trade.toml`, with the file {}",
                config.display()
            );
            AWAY_NS
        }
    };
    while !lane.is_ready(driving)? {
        if clock.span_ns(tsc() - began) > patience {
            return Err(Failure::peer_lost(format!(
                "the trader ({}) did not log on within {} s",
                lane.path.name(),
                patience / 1_000_000_000
            )));
        }
        driving.go_on()?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// The floor's turn: these packets of the log, all traders being stopped.
fn answer_by(
    driving: &Driving<'_>,
    floor: &mut BareHost,
    packets: &[u64],
    measured: &mut Floor,
) -> Result<(), Failure> {
    let (log, clock) = (driving.log, driving.clock);
    floor.wake(true);
    // The first two only warm it up.
    for (nth, &number) in packets.iter().take(2).chain(packets).enumerate() {
        let at = number as usize - 1;
        let payload = log.payload(at);
        let sender = &floor.sender;
        let done = exchange(&mut floor.port, clock, driving.patience, || sender.send(payload))?;
        let settled = tsc();
        while tsc() - settled < 2 * driving.quiet {
            if floor.port.poll(clock)?.is_some() {
                measured.problems.add(number, "the floor answered twice");
            }
        }
        if done.arrival.is_none() {
            measured.problems.add(number, "the floor did not answer");
        } else if nth >= 2 {
            let packet = (number, payload.len());
            measured
                .samples
                .push(done.sample(clock, packet, Some(log.entries(at)), 1));
        }
    }
    floor.wake(false);
    Ok(())
}

/// Whether a trader has a core of its own to spin on.
fn spins(options: &Options<'_>) -> bool {
    match (options.driver_core, options.trader_core) {
        (Some(driver), Some(trader)) => driver != trader,
        _ => Cores::count().parallelism() > 1,
    }
}

/// The trader's configuration: one line of one channel, no recovery, limits that nothing here reaches.
pub(super) fn config(
    symbol: Symbol,
    options: &Options<'_>,
    (path, net): (Path, &Net),
    live: SocketAddrV4,
) -> Result<Config, Failure> {
    let protocol = match options.market {
        Market::Moex => Protocol::Moex,
        Market::Itch => Protocol::Itch50,
    };
    let mut c = Config::of_protocol(protocol);
    c.controls.for_a_demo();
    c.controls.instrument_messages_per_s = 0;
    c.controls.drift_bp = 0;
    c.controls.order_value_max = 0;
    let mut feed = FeedConfig::on_loopback(protocol);
    feed.interface = net
        .interface(TRADER)
        .to_owned()
        .try_into()
        .map_err(Failure::config)?;
    if options.market == Market::Moex {
        feed.templates =
            match options.templates.as_os_str() == BUILT_IN {
                true => vec![options.templates.to_owned()],
                false => vec![options.templates.canonicalize().map_err(|e| {
                    Failure::system(format!("cannot read {}: {e}", options.templates.display()))
                })?],
            };
    }
    let channel = &mut feed.channels[0];
    channel.live.a = live;
    channel.live.b = None;
    (channel.snapshot, channel.definitions, channel.replay) = (None, None, None);
    (channel.requests, channel.snapshot_server) = (None, None);
    c.feed = vec![feed];
    c.exchange.symbols = Symbols(1);
    path.receive_by(&mut c.receiver, matches!(net, Net::Veth(_)));
    c.receiver.max_instruments = 64;
    c.receiver.max_orders = 1 << 16;
    c.receiver.max_levels = 1 << 14;
    c.order_entry.heartbeat_s = 30;
    let core = options.trader_core.map_or(-1, |core| core as i32);
    c.trader.core = core;
    c.trader.send = path.send();
    // While others have their turn it is stopped, which is no silence of the market.
    c.trader.silence_ms = SilenceMs::Fixed(SILENCE_MS);
    c.trader.wait = if spins(options) { Wait::Spin } else { Wait::Poll };
    c.trader.symbol = SymbolName(symbol);
    c.trader.lot = Lot(1);
    c.trader.risk.price_band_bp = 10_000;
    c.trader.risk.max_orders_per_s = 1 << 16;
    c.trader.risk.max_open_orders = 1 << 16;
    c.trader.risk.max_position = u64::MAX >> 1;
    c.check().map_err(Failure::config)?;
    Ok(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trader_with_a_core_of_its_own_spins_wherever_the_driver_has_pinned_itself() {
        let live = SocketAddrV4::new(Ipv4Addr::new(239, 192, 78, 1), 4_000);
        let wait = |driver_core, trader_core| {
            let options = Options {
                market: Market::Moex,
                templates: FilePath::new(BUILT_IN),
                warm_up: 0,
                block: 1,
                timeout_ns: 1,
                quiet_ns: 1,
                driver_core,
                trader_core,
                folder: FilePath::new("."),
            };
            let symbol = Symbol::new(b"X").expect("a valid symbol");
            config(symbol, &options, (Path::Socket, &Net::Loopback), live)
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
