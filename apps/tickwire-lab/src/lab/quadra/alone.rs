//! The exchange and the trader of this scenario as programs of their own:
//! `tickwire exchange --venue quadra -c SCENARIO` and `tickwire trade --venue quadra -c SCENARIO`, for a
//! trader of somebody else's, or for two hosts. At the ports of the scenario, over its first transport, at
//! each of its intervals in turn; on loopback, or with `run.network = "given"` where `run.exchange` and
//! `run.trader` say.

use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tickwire_lab::scenario::{Network, RunSection};
use tickwire_lab::{Case, Histogram, Measure, Scenario, Table, format_count};
use tickwire_runtime::clock::Clock;
use tickwire_runtime::signal::StopFlag;

use super::super::kind::{self, Kind};
use super::super::net::{EXCHANGE, Net, TRADER, given};
use super::super::run::Places;
use super::exchange::{self, Plan};
use super::link::{Listening, Route, connect};
use super::message::Speech;
use super::via::Via;
use super::{Quadra, Settings, exchange_backend, trader};
use tickwire_console::failure::Failure;

fn load(path: &Path) -> Result<Scenario<Settings>, Failure> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| {
        Failure::config(format!(
            "cannot read {file}: {e}; give a scenario of kind 'quadra'"
        ))
    })?;
    let heading =
        tickwire_lab::scenario::Heading::parse(&text).map_err(|e| Failure::config(format!("{file}: {e}")))?;
    if heading.kind != Quadra::NAME {
        return Err(Failure::config(format!(
            "{file} is a scenario of kind '{}'; --venue quadra wants one of kind 'quadra'",
            heading.kind
        )));
    }
    kind::scenario::<Quadra>(&file, &text, false, &[])
}

/// Where a side that is started alone stands: on loopback, unless the scenario gives a network.
fn network(wanted: &RunSection) -> Result<Net, Failure> {
    match wanted.network {
        Network::Given => given(wanted),
        Network::Auto | Network::Loopback | Network::Veth => Ok(Net::Loopback),
    }
}

/// The exchange: waits for a trader, offers each interval's messages, prints the table. Without a trader it
/// waits until Ctrl-C.
pub(crate) fn exchange_alone(path: &Path, stop: &StopFlag) -> Result<(), Failure> {
    let scenario = load(path)?;
    let settings = &scenario.settings;
    let transport = settings.transports[0];
    let clock = Clock::calibrate();
    let places = Places::new(&scenario.cores, &scenario.run);
    let net = network(&scenario.run)?;
    net.enter(EXCHANGE)?;
    let listening = Listening::open(&net, transport, settings.ports, settings.group.0)?;
    let route = listening.route();
    println!(
        "quadra: orders to {}, feed over {} at {}",
        route.orders,
        transport.name(),
        route.feed
    );
    let (mut feed, orders) = listening.accept(None, stop)?;
    places
        .enter("exchange")?
        .into_iter()
        .for_each(|note| eprintln!("{note}"));
    let mut histograms: Vec<(String, Histogram)> = Vec::new();
    let (mut lost, mut unexpected) = (0, 0);
    // Numbers go on from one interval to the next: the trader sees one feed.
    let mut first = 0;
    for interval in &scenario.load.intervals_us {
        let mut case =
            Case::new("alone", Measure::new("RTT/2", "")).measure(Measure::new("RTT/2 from send", ""));
        let mut recorder = case.recorder(scenario.run.samples_kept.get() as usize);
        let plan = Plan {
            speech: Speech::Product,
            transport,
            backend: exchange_backend(settings.exchange, settings.backends[0]),
            shape: scenario.load.shape,
            warm_up: scenario.run.warm_up.into(),
            samples: scenario.run.samples.get().into(),
            interval_ns: interval.get() * 1_000,
            timeout_ns: scenario.load.timeout_ms.get() * 1_000_000,
            stamped: false,
            wire: false,
            first,
        };
        let outcome = exchange::run(&plan, &clock, &mut feed, &orders, &mut recorder, stop)?;
        if stop.is_set() && outcome.sent < plan.warm_up + plan.samples {
            return Err(Failure::interrupted("ended before all was measured"));
        }
        first += plan.warm_up + plan.samples;
        lost += outcome.lost;
        unexpected += outcome.unexpected;
        case.repetitions.push(recorder.finish([]));
        histograms.push((format!("{} µs", interval.get()), case.histogram(0)));
    }
    let lines: Vec<(&str, &Histogram)> = histograms.iter().map(|(name, h)| (name.as_str(), h)).collect();
    print!(
        "{}",
        Table::latencies("RTT/2, by interval", &lines).to_text(tickwire_console::terminal::width())
    );
    match (lost, unexpected) {
        (0, 0) => Ok(()),
        _ => Err(Failure::check(format!(
            "{} of {} messages unanswered, {} orders that answer no open message",
            format_count(lost),
            format_count(first),
            format_count(unexpected)
        ))),
    }
}

/// The trader: connects to that exchange and answers until it closes.
pub(crate) fn trader_alone(path: &Path, stop: &StopFlag) -> Result<(), Failure> {
    let scenario = load(path)?;
    let settings = &scenario.settings;
    let transport = settings.transports[0];
    let net = network(&scenario.run)?;
    net.enter(TRADER)?;
    let at = |port| SocketAddrV4::new(net.address(EXCHANGE), port);
    let feed = match transport {
        super::Transport::Tcp => at(settings.ports.1),
        super::Transport::Multicast => SocketAddrV4::new(settings.group.0, settings.ports.1),
    };
    let route = Route {
        orders: at(settings.ports.0),
        feed,
        transport,
    };
    let Via::By(backend) = settings.backends[0] else {
        return Err(Failure::config(format!(
            "settings.backends begins with {}: a trader alone is one by sockets",
            settings.backends[0]
        )));
    };
    let (feed, mut orders) = connect(&net, &route)?;
    let places = Places::new(&scenario.cores, &scenario.run);
    let clock = Clock::calibrate();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        let (places, clock) = (&places, &clock);
        let manner = trader::Manner {
            transport,
            backend,
            stamped: None,
            fault: settings.fault,
        };
        let feed = &feed;
        let orders = &mut orders;
        let trading = scope.spawn(move || {
            places
                .enter("trader")?
                .into_iter()
                .for_each(|note| eprintln!("{note}"));
            trader::run(feed, orders, &manner, clock, over)
        });
        while !trading.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
            if stop.is_set() {
                over.store(true, Ordering::Relaxed);
            }
        }
        let outcome = trading.join().expect("it does not panic")?;
        outcome
            .remark
            .into_iter()
            .for_each(|remark| eprintln!("{remark}"));
        match outcome.malformed {
            0 => Ok(()),
            n => Err(Failure::check(format!(
                "{} malformed feed messages",
                format_count(n)
            ))),
        }
    })
}
