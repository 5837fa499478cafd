//! Kind `quadra`: an exchange that broadcasts at a set interval and a trader that answers each message with
//! an order, at once. Latency is half the round trip. Which way of waiting is best at which interval, and how
//! far from the floor of the machine it is.

mod alone;
mod exchange;
pub(super) mod link;
pub(super) mod message;
mod trader;
mod via;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use serde::{Deserialize, Serialize};
use tickwire_lab::scenario::{Micros, Shape, Wrong};
use tickwire_lab::{Case, MISSING, Measure, Recorder, Scenario, Summary, Table, format_count, format_ns};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::inbox::Backend;
use tickwire_runtime::signal::StopFlag;

use super::inlet;
use super::kind::Kind;
use super::net::{Net, network};
use super::run::{CaseId, Places, Run};
pub(crate) use alone::{exchange_alone, trader_alone};
use exchange::{ExchangeLeg, Plan};
use link::{COMING, Listening, connect};
use message::{Speech, Transport, lengths};
use tickwire_console::failure::Failure;
use trader::{Manner, TraderLeg};
use via::Via;

pub(super) struct Quadra;

/// `[settings]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    /// How the feed travels; each is measured. Orders always go over TCP.
    transports: Vec<Transport>,
    /// How the trader waits; each is measured. `socket` is `spin`. Of a multicast feed also `xdp`,
    /// `xdp+delegated`, which want an interface for each side (`run.network`).
    backends: Vec<Via>,
    /// How the exchange waits for orders: it spins, so that only the trader's way differs, or waits the
    /// `same` way, as the published one did (`poll` where the trader blocks: an exchange has to keep time).
    exchange: ExchangeWaits,
    /// Measure the floor beside each case: bytes for bytes, without market data and orders.
    bare: bool,
    /// Back ends measured once more with the kernel's timestamps on, at the first interval: where the time
    /// goes.
    legs: Vec<Via>,
    /// The group of a multicast feed.
    group: Group,
    /// Ports of orders and feed, for an exchange or a trader alone (`--venue quadra`).
    ports: (u16, u16),
    /// What the trader does wrong on purpose: to see that the run fails.
    fault: Fault,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            transports: vec![Transport::Tcp, Transport::Multicast],
            backends: Backend::ALL.map(Via::By).to_vec(),
            exchange: ExchangeWaits::Spin,
            bare: true,
            legs: vec![Via::By(Backend::Spin), Via::By(Backend::Poll)],
            group: Group(Ipv4Addr::new(239, 77, 0, 6)),
            ports: (7_600, 7_601),
            fault: Fault::None,
        }
    }
}

/// A multicast group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Ipv4Addr", into = "Ipv4Addr")]
struct Group(Ipv4Addr);

impl TryFrom<Ipv4Addr> for Group {
    type Error = String;

    fn try_from(group: Ipv4Addr) -> Result<Group, String> {
        match group.is_multicast() {
            true => Ok(Group(group)),
            false => Err(format!(
                "{group} is not a multicast group: use one of 239.0.0.0/8"
            )),
        }
    }
}

impl From<Group> for Ipv4Addr {
    fn from(group: Group) -> Ipv4Addr {
        group.0
    }
}

/// How the exchange waits for orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ExchangeWaits {
    /// It spins.
    #[default]
    Spin,
    /// As the trader does.
    Same,
}

/// What the trader does wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Every hundredth message gets no order.
    LoseOrder,
    /// Every hundredth order names another message.
    WrongOrder,
    /// The trader of the bare floor hangs up instead of answering: its cases fail, and no other does.
    FloorHangsUp,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum What {
    Product,
    Bare,
    Legs,
}

/// Of one case: everything that tells it from the others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    what: What,
    tcp: bool,
    interval_us: u64,
    backend: Via,
    /// Whether it is stamped when orders enter the exchange's stack.
    wire: bool,
}

impl Key {
    fn transport(self) -> Transport {
        if self.tcp {
            Transport::Tcp
        } else {
            Transport::Multicast
        }
    }

    fn case(self) -> Case {
        let (transport, interval, label) = (self.transport().name(), self.interval_us, self.backend.name());
        let place = format!("{transport}, {interval} µs");
        let half = "Half of the time from the moment a feed message was intended to be sent to the return of the exchange's receive \
                    call with the order that answers it.";
        let sent = "The same from the moment the send call began: without the exchange's own lateness.";
        let case = match self.what {
            What::Product => Case::new(&format!("{place}, {label}"), Measure::new("RTT/2", half))
                .measure(Measure::new("RTT/2 from send", sent))
                .in_group(&place, label),
            What::Bare => Case::new(&format!("bare {place}, {label}"), Measure::new("RTT/2", half))
                .measure(Measure::new("RTT/2 from send", sent))
                .in_group(&format!("bare ping-pong, {place}"), label)
                .over_time(false),
            What::Legs => LEGS.iter().fold(
                Case::new(&format!("legs of {place}, {label}"), Measure::new("RTT/2", half))
                    .in_group(&format!("with the kernel's stamps, {place}"), label)
                    .over_time(false),
                |case, (name, what)| case.measure(Measure::new(name, what)),
            ),
        };
        let case = match self.wire {
            true => case.measure(Measure::new("WIRE", WIRE)),
            false => case,
        };
        case.parameter("transport", transport)
            .parameter("interval", format!("{interval} µs"))
            .parameter("back end", label)
    }
}

const WIRE: &str = "From before the send call to the order's frame in the exchange's stack, as the kernel stamped it: the whole way, not half of \
it, without the exchange's own TCP.";

/// Where a round trip goes, by the kernel's stamps and ours.
const LEGS: [(&str, &str); 6] = [
    (
        "out: send to kernel",
        "From the exchange's send call to the trader's kernel receiving the message: on loopback and veth the sender's own call does that.",
    ),
    (
        "in: kernel to trader",
        "From the kernel's receive time to the return of the trader's receive call: waking up is here.",
    ),
    (
        "inside the trader",
        "From the return of the receive call to the beginning of the send call: decoding, deciding, encoding.",
    ),
    (
        "out: trader to driver",
        "From the beginning of the trader's send call to the time the driver had the order.",
    ),
    (
        "back: driver to kernel",
        "From the driver to the exchange's kernel receiving the order.",
    ),
    (
        "in: kernel to exchange",
        "From the kernel's receive time to the return of the exchange's receive call.",
    ),
];

impl Kind for Quadra {
    const NAME: &'static str = "quadra";
    const ROLES: &'static [&'static str] = &["exchange", "trader"];
    const SHAPES: &'static [Shape] = &[Shape::Open, Shape::Closed];
    type Settings = Settings;

    fn check(scenario: &Scenario<Settings>) -> Result<(), Wrong> {
        if scenario.load.intervals_us.is_empty() {
            return Err(Wrong::new(
                "load.intervals_us",
                "give at least one interval, as [500, 1000]",
            ));
        }
        let settings = &scenario.settings;
        for (key, empty, twice) in [
            (
                "settings.transports",
                settings.transports.is_empty(),
                has_twice(&settings.transports),
            ),
            (
                "settings.backends",
                settings.backends.is_empty(),
                has_twice(&settings.backends),
            ),
            ("load.intervals_us", false, has_twice(&scenario.load.intervals_us)),
            ("settings.legs", false, has_twice(&settings.legs)),
        ] {
            if empty || twice {
                let reason = if empty {
                    "give at least one"
                } else {
                    "one of them is named twice"
                };
                return Err(Wrong::new(key, reason));
            }
        }
        via::check(&settings.backends, &settings.transports, &scenario.run)?;
        if settings.legs.iter().any(|via| matches!(via, Via::Past(_))) {
            let reason = "the kernel's stamps are those of sockets: name ways of waiting on them";
            return Err(Wrong::new("settings.legs", reason));
        }
        let stampless = |b: &Via| matches!(b, Via::By(Backend::IoUring | Backend::IoUringSpin));
        if settings.legs.iter().any(stampless) {
            let reason = "io_uring's receives here have no room for timestamps: name other back ends";
            return Err(Wrong::new("settings.legs", reason));
        }
        Ok(())
    }

    fn run(scenario: &Scenario<Settings>, run: &mut Run<'_>) -> Result<(), Failure> {
        let net = network(&scenario.run, run)?;
        let backends = usable(scenario, run);
        let keys = keys(scenario, &backends);
        let ids: Vec<(Key, CaseId)> = keys.into_iter().map(|key| (key, run.case(key.case()))).collect();
        let places = Places::new(&scenario.cores, &scenario.run);
        let pair = places.core("exchange").zip(places.core("trader"));
        describe(scenario, run);
        let mut outcome = Ok(());
        'all: for repetition in 0..scenario.run.repetitions.get() {
            for &(key, id) in &ids {
                outcome = run.go_on();
                if outcome.is_err() {
                    break 'all;
                }
                let name = run.of(id).name.clone();
                run.progress(&format!("repetition {}: {name}", repetition + 1));
                let before = run.shared_memory_ns(pair);
                let mut recorder = run.recorder(id);
                let began = tsc();
                let found = measure(
                    scenario,
                    key,
                    &net,
                    &places,
                    run.clock(),
                    run.stop(),
                    &mut recorder,
                );
                let found = match run.attempt(&[id], repetition + 1, found) {
                    Ok(Some(found)) => found,
                    Ok(None) => continue,
                    Err(interrupted) => {
                        outcome = Err(interrupted);
                        break 'all;
                    }
                };
                found.notes.into_iter().for_each(|note| run.note(note));
                let mut done = recorder.finish([
                    ("sent", found.sent),
                    ("lost", found.lost),
                    ("unexpected", found.unexpected),
                    ("malformed", found.malformed),
                ]);
                done.shared_memory_ns = before.zip(run.shared_memory_ns(pair));
                run.repetition(id, began, done);
                run.check(
                    format!("{name}, repetition {}: every message answered by its order, once", repetition + 1),
                    found.lost == 0 && found.unexpected == 0 && found.malformed == 0,
                    format!(
                        "{} of {} lost, {} orders that answer no open message or are wrong, {} malformed messages",
                        format_count(found.lost),
                        format_count(found.sent),
                        format_count(found.unexpected),
                        format_count(found.malformed)
                    ),
                );
            }
        }
        // Of a run that was interrupted, too.
        tables(scenario, run, &ids, &backends);
        outcome
    }
}

fn has_twice<T: PartialEq>(values: &[T]) -> bool {
    values
        .iter()
        .enumerate()
        .any(|(i, value)| values[..i].contains(value))
}

/// The back ends that can be measured here.
fn usable(scenario: &Scenario<Settings>, run: &mut Run<'_>) -> Vec<Via> {
    let wanted = scenario.settings.backends.iter().copied();
    if Cores::count().parallelism() > 1 {
        return wanted.collect();
    }
    run.note(
        "Back ends that spin are left out, and the exchange sleeps in poll: with one core, threads that spin would only wait for each \
         other's time slices.",
    );
    wanted.filter(|b| !b.spins()).collect()
}

fn keys(scenario: &Scenario<Settings>, backends: &[Via]) -> Vec<Key> {
    let mut keys = Vec::new();
    // Where somebody goes past the sockets, all that is compared with it is stamped alike.
    let is_stamped = backends.iter().any(|via| matches!(via, Via::Past(_)));
    for &transport in &scenario.settings.transports {
        for (i, interval) in scenario.load.intervals_us.iter().enumerate() {
            let key = |what, backend| Key {
                what,
                tcp: transport == Transport::Tcp,
                interval_us: interval.get(),
                backend,
                wire: is_stamped && what != What::Legs && transport == Transport::Multicast,
            };
            for &backend in backends {
                let is_past = matches!(backend, Via::Past(_));
                if is_past && transport == Transport::Tcp {
                    continue;
                }
                keys.push(key(What::Product, backend));
                // Next to each other in time, for what is compared.
                let has_floor = scenario.settings.bare && !is_past;
                keys.extend(has_floor.then(|| key(What::Bare, backend)));
            }
            let legs = scenario
                .settings
                .legs
                .iter()
                .filter(|b| i == 0 && backends.contains(b));
            keys.extend(legs.map(|b| key(What::Legs, *b)));
        }
    }
    keys
}

fn describe(scenario: &Scenario<Settings>, run: &mut Run<'_>) {
    run.fact("load", scenario.load.shape.to_string());
    for &transport in &scenario.settings.transports {
        let (feed, order) = lengths(transport);
        let text = format!("{feed} bytes of feed, {order} bytes of order (FIX 4.4)");
        run.fact(&format!("messages, {}", transport.name()), text);
    }
    let waits = match scenario.settings.exchange {
        ExchangeWaits::Spin => "spins",
        ExchangeWaits::Same => "waits as the trader does (poll where that one blocks)",
    };
    run.fact("exchange", waits);
    for (role, core) in &scenario.cores {
        run.fact(&format!("core of the {role}"), core.to_string());
    }
}

/// What a repetition found beside its samples.
#[derive(Default)]
struct Found {
    sent: u64,
    lost: u64,
    unexpected: u64,
    malformed: u64,
    notes: Vec<String>,
}

/// One repetition of a case: an exchange and a trader, each on a thread of its own.
fn measure(
    scenario: &Scenario<Settings>,
    key: Key,
    net: &Net,
    places: &Places,
    clock: &Clock,
    stop: &StopFlag,
    recorder: &mut Recorder,
) -> Result<Found, Failure> {
    let settings = &scenario.settings;
    let transport = key.transport();
    let all = u64::from(scenario.run.samples.get() + scenario.run.warm_up);
    let plan = Plan {
        speech: if key.what == What::Bare {
            Speech::Bare
        } else {
            Speech::Product
        },
        transport,
        backend: exchange_backend(settings.exchange, key.backend),
        shape: scenario.load.shape,
        warm_up: scenario.run.warm_up.into(),
        samples: scenario.run.samples.get().into(),
        interval_ns: key.interval_us * 1_000,
        timeout_ns: scenario.load.timeout_ms.get() * 1_000_000,
        stamped: key.what == What::Legs,
        wire: key.wire,
        first: 0,
    };
    let over = AtomicBool::new(false);
    let (tell, told) = mpsc::channel();
    let (over, group) = (&over, settings.group.0);
    let (exchange, trader) = std::thread::scope(|scope| {
        let recorder = &mut *recorder;
        let exchange = scope.spawn(move || {
            let mut run = || {
                net.enter(0)?;
                let listening = Listening::open(net, transport, (0, 0), group)?;
                // The trader's thread is there until it has heard this.
                let _ = tell.send(listening.route());
                let (mut feed, orders) = listening.accept(COMING, stop)?;
                let note = places.enter("exchange")?;
                let outcome = exchange::run(&plan, clock, &mut feed, &orders, recorder, stop)?;
                Ok::<_, Failure>((outcome, note))
            };
            let outcome = run();
            over.store(true, Ordering::Relaxed);
            outcome
        });
        let trader = scope.spawn(move || {
            let Ok(route) = told.recv() else {
                return Ok(trader::Outcome::default()); // the exchange says why
            };
            net.enter(1)?;
            let backend = match key.backend {
                Via::By(backend) => backend,
                Via::Past(path) => {
                    let (inlet, entry) = inlet::open(path, net, route)?;
                    places.enter("trader")?;
                    return trader::past(inlet, entry, settings.fault, clock, over);
                }
            };
            let (feed, mut orders) = connect(net, &route)?;
            places.enter("trader")?;
            if key.what == What::Bare && settings.fault == Fault::FloorHangsUp {
                return Ok(trader::Outcome::default());
            }
            if key.what == What::Bare {
                let done = trader::bare(&feed, transport, &orders, backend, over);
                return done
                    .map(|()| trader::Outcome::default())
                    .map_err(|e| Failure::system(format!("the bare trader: {e}")));
            }
            let manner = Manner {
                transport,
                backend,
                stamped: plan.stamped.then_some(all),
                fault: settings.fault,
            };
            trader::run(&feed, &mut orders, &manner, clock, over)
        });
        (
            exchange.join().expect("it does not panic"),
            trader.join().expect("it does not panic"),
        )
    });
    // Where both fail, the trader's reason is the cause: the exchange only sees it gone.
    let trader = trader?;
    let (exchange, note) = exchange?;
    if plan.stamped {
        record_legs(clock, &exchange.legs, &trader.legs, recorder);
    }
    let remark = trader.remark.map(|remark| format!("{}: {remark}.", key.backend));
    Ok(Found {
        sent: exchange.sent,
        lost: exchange.lost,
        unexpected: exchange.unexpected,
        malformed: trader.malformed,
        notes: note.into_iter().chain(remark).collect(),
    })
}

fn exchange_backend(waits: ExchangeWaits, trader: Via) -> Backend {
    match (waits, trader) {
        _ if Cores::count().parallelism() < 2 => Backend::Poll,
        (ExchangeWaits::Spin, _) => Backend::Spin,
        (ExchangeWaits::Same, Via::By(Backend::Block | Backend::BusyPoll)) => Backend::Poll,
        (ExchangeWaits::Same, Via::By(same)) => same,
        (ExchangeWaits::Same, Via::Past(_)) => Backend::Spin,
    }
}

/// Joins what both sides saw of each round trip.
fn record_legs(clock: &Clock, exchange: &[ExchangeLeg], trader: &[TraderLeg], recorder: &mut Recorder) {
    let by_number: HashMap<u64, &TraderLeg> = trader.iter().map(|leg| (leg.number, leg)).collect();
    let begin = exchange.first().map_or(0, |leg| leg.from);
    let ns = |ticks: u64| clock.nanos_at(ticks).0;
    // A stamp that there is not makes the legs on both its sides unknown. Two clocks may cross by their
    // error: that is 0.
    let span = |from: u64, to: u64| match (from, to) {
        (0, _) | (_, 0) => MISSING,
        (from, to) => to.saturating_sub(from),
    };
    for leg in exchange {
        let half = clock.span_ns(leg.received.saturating_sub(leg.from)) / 2;
        let t = by_number.get(&leg.number).copied().copied().unwrap_or_default();
        let at = |ticks: u64| if ticks == 0 { 0 } else { ns(ticks) };
        let legs = [
            half,
            span(ns(leg.sent), t.kernel_ns),
            span(t.kernel_ns, at(t.received)),
            span(at(t.received), at(t.send)),
            span(at(t.send), t.driver_ns),
            span(t.driver_ns, leg.kernel_ns),
            span(leg.kernel_ns, ns(leg.received)),
        ];
        recorder.record(clock.span_ns(leg.from.saturating_sub(begin)), &legs, &[]);
    }
}

/// Ours as the published one was shown, and what was published.
fn tables(scenario: &Scenario<Settings>, run: &mut Run<'_>, ids: &[(Key, CaseId)], backends: &[Via]) {
    let intervals: Vec<u64> = scenario
        .load
        .intervals_us
        .iter()
        .copied()
        .map(Micros::get)
        .collect();
    let summary = |run: &Run<'_>, what, tcp, interval_us, backend| {
        let (_, id) = ids.iter().find(|(key, _)| {
            (key.what, key.tcp, key.interval_us, key.backend) == (what, tcp, interval_us, backend)
        })?;
        let summary = run.of(*id).histogram(0).summary();
        (summary.count > 0).then_some(summary)
    };
    let columns: Vec<String> = intervals.iter().map(|us| format!("{us} µs")).collect();
    let columns: Vec<&str> = [""]
        .into_iter()
        .chain(columns.iter().map(String::as_str))
        .collect();
    for &transport in &scenario.settings.transports {
        let (name, tcp) = (transport.name(), transport == Transport::Tcp);
        let mut medians = Table::new(
            &format!("Feed over {name}: RTT/2, p50 (p99), by interval"),
            &columns,
        );
        let mut against = Table::new(
            &format!("Feed over {name}: p50 as a multiple of poll's"),
            &columns,
        );
        let mut floor = Table::new(
            &format!(
                "Feed over {name}: p50 as a multiple of the bare ping-pong's through the same back end (goal: 1.15)"
            ),
            &columns,
        );
        for &backend in backends {
            let of = |what, us| summary(run, what, tcp, us, backend);
            let ratio = |a: Option<tickwire_lab::Summary>, b: Option<tickwire_lab::Summary>| match (a, b) {
                (Some(a), Some(b)) => format!("{:.2}", a.p50 as f64 / b.p50.max(1) as f64),
                _ => String::new(),
            };
            let row = |cell: &dyn Fn(u64) -> String| -> Vec<String> {
                let cells = intervals.iter().map(|&us| cell(us));
                [backend.name().to_owned()].into_iter().chain(cells).collect()
            };
            medians = medians.row(row(&|us| {
                of(What::Product, us).map_or(String::new(), |s| {
                    format!("{} ({})", format_ns(s.p50), format_ns(s.p99))
                })
            }));
            against = against.row(row(&|us| {
                ratio(
                    of(What::Product, us),
                    summary(run, What::Product, tcp, us, Via::By(Backend::Poll)),
                )
            }));
            floor = floor.row(row(&|us| ratio(of(What::Product, us), of(What::Bare, us))));
        }
        run.table(medians);
        if backends.contains(&Via::By(Backend::Poll)) {
            run.table(against);
        }
        if scenario.settings.bare {
            run.table(floor);
        }
    }
    let stamped: Vec<&(Key, CaseId)> = ids.iter().filter(|(key, _)| key.wire).collect();
    if !stamped.is_empty() {
        let mut wires = Table::new(
            "Feed over multicast, way by way: WIRE, from the send call to the order's frame in the exchange's stack",
            &Summary::columns(&["ns"], &["orders"]),
        );
        for (_, id) in stamped {
            let s = run.of(*id).histogram(2).summary();
            let cells = s
                .times()
                .into_iter()
                .chain([s.count])
                .map(|figure| figure.to_string());
            wires = wires.row([run.of(*id).name.clone()].into_iter().chain(cells));
        }
        run.table(wires);
    }
    published(scenario, run, &summary, &intervals);
}

/// The summary of a case: what, over TCP, interval in microseconds, back end.
type Summaries<'a> = dyn Fn(&Run<'_>, What, bool, u64, Via) -> Option<tickwire_lab::Summary> + 'a;

/// The findings that were published, with ours beside them. Figures were shown as graphs only.
fn published(scenario: &Scenario<Settings>, run: &mut Run<'_>, summary: &Summaries<'_>, intervals: &[u64]) {
    let mut found = Vec::new();
    for &transport in &scenario.settings.transports {
        let of = |us, backend| summary(run, What::Product, transport == Transport::Tcp, us, backend);
        let ratios = intervals.iter().filter_map(|&us| {
            let (poll, epoll) = (of(us, Via::By(Backend::Poll))?, of(us, Via::By(Backend::Epoll))?);
            Some(format!(
                "{:.2} at {us} µs",
                epoll.p50 as f64 / poll.p50.max(1) as f64
            ))
        });
        let ratios: Vec<String> = ratios.collect();
        if !ratios.is_empty() {
            found.push(format!("{}: epoll/poll {}", transport.name(), ratios.join(", ")));
        }
    }
    let cooling = |backend: Via| {
        let (first, last) = (*intervals.first()?, *intervals.last()?);
        let tcp = scenario.settings.transports.first() == Some(&Transport::Tcp);
        let (a, b) = (
            summary(run, What::Product, tcp, first, backend)?,
            summary(run, What::Product, tcp, last, backend)?,
        );
        (first < last).then(|| format!("{backend} {:.2}", b.p50 as f64 / a.p50.max(1) as f64))
    };
    let cooled: Vec<String> = Backend::ALL
        .into_iter()
        .map(Via::By)
        .filter_map(cooling)
        .collect();
    let or_not = |text: String| {
        if text.is_empty() {
            "not measured in this run".to_owned()
        } else {
            text
        }
    };
    let table = Table::new(
        "Quadra, about 2013: published as graphs, with these findings",
        &["", "published", "found here"],
    )
    .row([
        "poll against epoll".to_owned(),
        "poll is faster, the more so at long intervals".to_owned(),
        or_not(found.join("; ")),
    ])
    .row([
        "long intervals".to_owned(),
        "latency grows: caches and branch predictors cool down".to_owned(),
        or_not(match cooled.is_empty() {
            true => String::new(),
            false => format!(
                "p50 at the longest interval over that at the shortest: {}",
                cooled.join(", ")
            ),
        }),
    ])
    .row([
        "samples",
        "20 000 of each",
        &format_count(scenario.run.samples.get().into()),
    ]);
    run.published(
        table,
        "The published runs were between two hosts with kernel bypass (OpenOnload), threads bound to cores, poll and epoll only; no \
         figures are in the text. Here both sides are threads of one machine, the kernel's network stack is in the path and runs in \
         the sender's call (loopback, veth), so that figures compare back ends with each other and with the floor beside them, not \
         with a network card. Latency counts from the time a message was intended to be sent; the published one from sending.",
    );
}
