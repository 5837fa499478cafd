//! `kind = "fix"`: a trade by FIX from end to end, as it was measured in 2012: market data, algorithm, order,
//! report, by our engine and by others. The trade is `crate::fix::rig`'s; here it is made into cases, tables
//! and checks.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickwire_lab::scenario::{Shape, Wrong};
use tickwire_lab::{Case, Histogram, MISSING, Measure, Scenario, Table, format_count, format_ns};
use tickwire_runtime::clock::{Clock, tsc};

use super::kind::Kind;
use super::run::{CaseId, Places, Run};
use crate::fix::rig::{self, Engines, Fault, Kept, Measured, Plan, Running, Stamps, Step};
use tickwire_console::failure::Failure;

pub(super) struct Fix;

/// `[settings]`. Rates are market data messages a second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    /// Whose engines trade, by turns.
    traders: Vec<Engines>,
    /// What they go through.
    cycles: Vec<Cycle>,
    round_trip_rate: u64,
    round_trip_s: f64,
    burst_rate: u64,
    burst_s: f64,
    sustained_rates: Vec<u64>,
    sustained_step_s: f64,
    extended_rates: Vec<u64>,
    extended_step_s: f64,
    /// How long the last rate is held beyond its step.
    extended_held_s: f64,
    /// A trader further behind than this is sent no more in the cycle, seconds.
    behind_max_s: f64,
    /// One message in so many moves the best offer.
    order_every: u64,
    /// Entries of a message.
    entries: usize,
    /// The trader keeps what it sent in files.
    stores: bool,
    /// Messages are checked against the dictionary.
    validates: bool,
    /// Folder of other engines' traders.
    peers: PathBuf,
    /// What is wrong on purpose.
    fault: Fault,
}

/// A load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Cycle {
    /// Slow, an order for each message: what a round trip takes by itself.
    RoundTrip,
    /// One high rate.
    Burst,
    /// Ever higher rates.
    Sustained,
    /// The same more slowly, and the last one held.
    Extended,
}

impl Cycle {
    fn name(self) -> &'static str {
        match self {
            Cycle::RoundTrip => "round trip",
            Cycle::Burst => "burst",
            Cycle::Sustained => "sustained",
            Cycle::Extended => "extended",
        }
    }

    fn steps(self, s: &Settings) -> Vec<Step> {
        let step = |rate, seconds: f64| Step {
            rate,
            span_ns: (seconds * 1e9) as u64,
        };
        let each = |rates: &[u64], seconds| rates.iter().map(|rate| step(*rate, seconds)).collect();
        match self {
            Cycle::RoundTrip => vec![step(s.round_trip_rate, s.round_trip_s)],
            Cycle::Burst => vec![step(s.burst_rate, s.burst_s)],
            Cycle::Sustained => each(&s.sustained_rates, s.sustained_step_s),
            Cycle::Extended => {
                let mut steps: Vec<Step> = each(&s.extended_rates, s.extended_step_s);
                if let Some(last) = steps.last().copied().filter(|_| s.extended_held_s > 0.0) {
                    steps.push(step(last.rate, s.extended_held_s));
                }
                steps
            }
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            traders: vec![
                Engines::Tickwire,
                Engines::TickwireBlocking,
                Engines::QuickfixCpp,
                Engines::QuickfixJ,
            ],
            cycles: vec![Cycle::RoundTrip, Cycle::Burst, Cycle::Sustained, Cycle::Extended],
            round_trip_rate: 1_000,
            round_trip_s: 5.0,
            burst_rate: 50_000,
            burst_s: 5.0,
            sustained_rates: (1..=10).map(|n| n * 10_000).collect(),
            sustained_step_s: 1.0,
            extended_rates: (1..=5).map(|n| n * 10_000).collect(),
            extended_step_s: 1.0,
            extended_held_s: 3.0,
            behind_max_s: 180.0,
            order_every: 10,
            entries: 4,
            stores: true,
            validates: true,
            peers: PathBuf::new(),
            fault: Fault::None,
        }
    }
}

/// Name and meaning of each measure; the first is the one that is compared.
const MEASURES: [(&str, &str); 10] = [
    (
        "message to order",
        "From the time the market data message was due to after the venue's call that received the order it caused.",
    ),
    (
        "outside",
        "From before the simulator's call that sent the message to after the venue's call that received the order: the trader, and the \
         kernel and connection on both sides of it.",
    ),
    (
        "inside",
        "From after the trader's call that received the message to after its call that sent the order.",
    ),
    (
        "1 transport in",
        "From before the simulator's call that sent the message until the trader's engine has its bytes.",
    ),
    (
        "2 market data",
        "The engine: from having the bytes until the algorithm has the message; messages before it in the same read included.",
    ),
    (
        "3 algorithm",
        "From having the message until it has decided to send an order.",
    ),
    (
        "4 order out",
        "From the decision until the venue has the order: the engine, its call that sends, the connection.",
    ),
    (
        "5 venue",
        "From the venue's having the order until before its call that sends the report.",
    ),
    (
        "6 report back",
        "From before the venue's call that sends the report until the algorithm has it: connection and engine.",
    ),
    (
        "order to report",
        "From the decision until the algorithm has the report: 4, 5 and 6.",
    ),
];
/// Of [`MEASURES`], for tables.
const TO_ORDER: usize = 0;
const OUTSIDE: usize = 1;
const INSIDE: usize = 2;
const TO_REPORT: usize = 9;

/// Published averages: engine, mean, p99, minimum in microseconds.
const PUBLISHED: [[&str; 4]; 4] = [
    ["FIX Antenna C++ (later the same year)", "5.7", "6.1", "4.8"],
    ["FIX Antenna C++, Cheetah Java", "11 to 12", "", ""],
    ["QuickFIX C++ (later the same year)", "56", "275", ""],
    ["QuickFIX C++ and Java", "45 to 180, long fat tail", "", ""],
];
const DIFFERS: &str = "Published: two machines, 10 Gbit/s Ethernet with kernel bypass in part, times by a capture card on the wire. Ours: one \
machine, the kernel's own loopback, market and venue on one thread beside the trader's process, times by the counter that both read: \
\"outside\" is the published way of counting with the kernel's part in it, \"inside\" the engine's share alone. How many messages led to an \
order, their lengths and the engines' settings were not published; here they are in the parameters of each case. QuickFIX's bytes-in is \
its log's call for an incoming message, behind its socket read and framing, so its legs 1 and 2 are cut later than ours, in its favour. \
It waits in select or poll, so it stands beside the blocking Tickwire; the spinning one is what a core of its own buys. A JVM compiles \
while it runs: in short cycles QuickFIX/J's figures are those of code not compiled yet.";

impl Kind for Fix {
    const NAME: &'static str = "fix";
    const ROLES: &'static [&'static str] = &["simulator", "trader"];
    const SHAPES: &'static [Shape] = &[Shape::Open];
    type Settings = Settings;

    fn check(scenario: &Scenario<Settings>) -> Result<(), Wrong> {
        let s = &scenario.settings;
        if s.traders.is_empty() {
            return Err(Wrong::new("settings.traders", "name at least one"));
        }
        if s.cycles.is_empty() {
            return Err(Wrong::new("settings.cycles", "name at least one"));
        }
        let twice = |at: usize, all: &[Engines]| all[..at].contains(&all[at]);
        if (0..s.traders.len()).any(|at| twice(at, &s.traders)) {
            return Err(Wrong::new("settings.traders", "a trader is named twice"));
        }
        if (0..s.cycles.len()).any(|at| s.cycles[..at].contains(&s.cycles[at])) {
            return Err(Wrong::new("settings.cycles", "a cycle is named twice"));
        }
        let rates: [(&'static str, &[u64]); 4] = [
            ("settings.round_trip_rate", &[s.round_trip_rate]),
            ("settings.burst_rate", &[s.burst_rate]),
            ("settings.sustained_rates", &s.sustained_rates),
            ("settings.extended_rates", &s.extended_rates),
        ];
        for (key, rates) in rates {
            if rates.is_empty() || rates.iter().any(|rate| !(1..=10_000_000).contains(rate)) {
                return Err(Wrong::new(key, "give rates of 1 to 10000000 messages a second"));
            }
        }
        let spans = [
            ("settings.round_trip_s", s.round_trip_s, 0.01),
            ("settings.burst_s", s.burst_s, 0.01),
            ("settings.sustained_step_s", s.sustained_step_s, 0.01),
            ("settings.extended_step_s", s.extended_step_s, 0.01),
            ("settings.extended_held_s", s.extended_held_s, 0.0),
            ("settings.behind_max_s", s.behind_max_s, 0.01),
        ];
        for (key, seconds, least) in spans {
            if !(least..=86_400.0).contains(&seconds) {
                return Err(Wrong::new(key, format!("give {least} to 86400 seconds")));
            }
        }
        if s.order_every == 0 {
            return Err(Wrong::new("settings.order_every", "give 1 or more messages"));
        }
        if !(1..=16).contains(&s.entries) {
            return Err(Wrong::new("settings.entries", "give 1 to 16"));
        }
        Ok(())
    }

    fn run(scenario: &Scenario<Settings>, run: &mut Run<'_>) -> Result<(), Failure> {
        let settings = &scenario.settings;
        let mut traders = Vec::new();
        for &engine in &settings.traders {
            match engine.program(&settings.peers) {
                Ok(program) => traders.push((engine, program)),
                Err(why) => run.note(why),
            }
        }
        if traders.is_empty() {
            return Err(Failure::config(
                "none of settings.traders is there: `cargo xtask lab-peers` builds those of other engines",
            ));
        }
        let mut series: Vec<Series> = Vec::new();
        for &cycle in &settings.cycles {
            for (engine, _) in &traders {
                series.push(Series {
                    cycle,
                    engine: *engine,
                    id: declare(run, scenario, cycle, *engine),
                    floor: (cycle == Cycle::RoundTrip).then(Histogram::new),
                    steps: Vec::new(),
                });
            }
        }
        let places = Places::new(&scenario.cores, &scenario.run);
        let mut outcome = Ok(());
        'all: for repetition in 1..=scenario.run.repetitions.get() {
            for one in &mut series {
                let program = traders.iter().find(|t| t.0 == one.engine).map(|t| t.1.clone());
                let program = program.expect("declared for those that are there");
                let id = one.id;
                let repeated = repeat(scenario, run, one, &program, &places, repetition);
                outcome = run.attempt(&[id], repetition, repeated).map(drop);
                if outcome.is_err() {
                    break 'all;
                }
            }
        }
        tables(run, &series);
        outcome
    }
}

/// A cycle with a trader.
struct Series {
    cycle: Cycle,
    engine: Engines,
    id: CaseId,
    /// Bare TCP of as many bytes as an order and a report, waiting alike, by turns.
    floor: Option<Histogram>,
    /// Of every repetition.
    steps: Vec<(Vec<Step>, Measured)>,
}

fn case_name(cycle: Cycle, engine: Engines) -> String {
    format!("{}, {}", cycle.name(), engine.name())
}

fn declare(run: &mut Run<'_>, scenario: &Scenario<Settings>, cycle: Cycle, engine: Engines) -> CaseId {
    let s = &scenario.settings;
    let yes = |is: bool| if is { "yes" } else { "no" };
    let is_ours = matches!(engine, Engines::Tickwire | Engines::TickwireBlocking);
    let rates: Vec<String> = cycle.steps(s).iter().map(|step| step.rate.to_string()).collect();
    let (name, what) = MEASURES[0];
    let mut case = Case::new(&case_name(cycle, engine), Measure::new(name, what))
        .tag("messages waiting")
        .tag("messages a second")
        .in_group(cycle.name(), engine.name())
        .parameter("messages a second", rates.join(", "))
        .parameter("one order in", order_every(s, cycle).to_string())
        .parameter("entries of a message", s.entries.to_string())
        .parameter("store in files", yes(s.stores))
        .parameter("dictionary", yes(s.validates || !is_ours));
    for (name, what) in &MEASURES[1..] {
        case = case.measure(Measure::new(name, what));
    }
    run.case(case)
}

fn order_every(settings: &Settings, cycle: Cycle) -> u64 {
    match cycle {
        Cycle::RoundTrip => 1,
        _ => settings.order_every,
    }
}

fn repeat(
    scenario: &Scenario<Settings>,
    run: &mut Run<'_>,
    one: &mut Series,
    program: &std::path::Path,
    places: &Places,
    repetition: u32,
) -> Result<(), Failure> {
    run.go_on()?;
    let settings = &scenario.settings;
    let name = case_name(one.cycle, one.engine);
    run.progress(&format!("{name}, repetition {repetition}"));
    let cores = [places.core("trader"), places.core("simulator")];
    let pair = cores[1].zip(cores[0]);
    let before = run.shared_memory_ns(pair);
    let plan = Plan {
        steps: one.cycle.steps(settings),
        order_every: order_every(settings, one.cycle),
        entries: settings.entries,
        seed: scenario.run.seed,
        warm_up: scenario.run.warm_up.into(),
        timeout_ns: scenario.load.timeout_ms.get() * 1_000_000,
        behind_max_ns: (settings.behind_max_s * 1e9) as u64,
        fault: settings.fault,
    };
    let folder = run.folder().join("trader");
    let running = Running {
        engine: one.engine,
        program,
        stores: settings.stores,
        validates: settings.validates,
        simulator_core: cores[1],
        trader_core: cores[0],
        folder: &folder,
    };
    let recorder = run.recorder(one.id);
    let began = tsc();
    let measured = rig::measure(&plan, &running, run.clock(), run.stop())?;
    let done = record(recorder, &plan, &measured, run.clock());
    let mut done = done;
    if plan.kept_every() > 1 {
        run.note(format!(
            "{name}: of {} orders one in {} is recorded; all are checked, and all are in the tables by rate.",
            format_count(measured.orders),
            plan.kept_every()
        ));
    }
    if let Some(at) = measured.steps.iter().position(|seen| seen.is_given_up) {
        run.note(format!(
            "{name}: given up at {} messages a second, more than {} s behind; of {} messages {} were sent, and the orders of all those checked.",
            format_count(plan.steps[at].rate),
            settings.behind_max_s,
            format_count(plan.messages()),
            format_count(measured.messages)
        ));
    }
    done.run_delays_ns.clone_from(&measured.run_delays_ns);
    done.shared_memory_ns = before.zip(run.shared_memory_ns(pair));
    run.repetition(one.id, began, done);
    let found = measured.first_wrong.as_ref().map_or_else(
        || format!("{} orders", format_count(measured.orders)),
        |first| {
            format!(
                "{} of {} orders lost, {} wrong; first: {first}",
                format_count(measured.lost),
                format_count(measured.expected),
                format_count(measured.wrong)
            )
        },
    );
    run.check(
        format!("{name}, repetition {repetition}: the naive rule's orders, none else"),
        measured.lost == 0 && measured.wrong == 0 && (measured.orders > 0 || measured.interrupted),
        found,
    );
    let [message, order, report] = measured.lengths;
    run.fact(
        &format!("bytes of message, order and report, {}", one.engine.name()),
        format!("{message}, {order}, {report}"),
    );
    let interrupted = measured.interrupted;
    if let Some(floor) = one
        .floor
        .as_mut()
        .filter(|_| !interrupted && order > 0 && report > 0)
    {
        let count = measured.orders.clamp(1, 20_000);
        floor.add(&rig::floor(one.engine, (order, report), count, cores)?);
    }
    one.steps.push((plan.steps, measured));
    match interrupted {
        true => run.go_on(),
        false => Ok(()),
    }
}

/// Joins what both processes noted.
fn record(
    mut recorder: tickwire_lab::Recorder,
    plan: &Plan,
    measured: &Measured,
    clock: &Clock,
) -> tickwire_lab::Repetition {
    let mut without_legs = 0;
    let mut stamps = measured.stamps.iter().peekable();
    for kept in &measured.kept {
        while stamps.next_if(|stamps| stamps.seq < kept.seq).is_some() {}
        let own = stamps.next_if(|stamps| stamps.seq == kept.seq);
        without_legs += u64::from(own.is_none());
        let at = clock.span_ns(kept.intended.saturating_sub(measured.begun));
        let rate = plan.steps[kept.step].rate;
        recorder.record(at, &spans(kept, own, clock), &[kept.depth, rate]);
    }
    recorder.finish([
        ("messages", measured.messages),
        ("orders", measured.orders),
        ("lost", measured.lost),
        ("wrong", measured.wrong),
        ("recorded", measured.kept.len() as u64),
        ("recorded without legs", without_legs),
    ])
}

/// [`MEASURES`] of an order.
fn spans(kept: &Kept, own: Option<&Stamps>, clock: &Clock) -> [u64; 10] {
    // A stamp of the other side may be before one of ours where a call has not returned yet: then the leg
    // took no time of its own.
    let span = |from: u64, to: u64| match from == 0 || to == 0 {
        true => MISSING,
        false => clock.span_ns(to.saturating_sub(from)),
    };
    let none = Stamps::default();
    let own = own.unwrap_or(&none);
    [
        span(kept.intended, kept.arrived),
        span(kept.sent, kept.arrived),
        span(own.bytes_in, own.sent),
        span(kept.sent, own.bytes_in),
        span(own.bytes_in, own.handed),
        span(own.handed, own.decided),
        span(own.decided, kept.arrived),
        span(kept.arrived, kept.reported),
        span(kept.reported, own.report_handed),
        span(own.decided, own.report_handed),
    ]
}

fn tables(run: &mut Run<'_>, series: &[Series]) {
    let series: Vec<&Series> = series.iter().filter(|one| !one.steps.is_empty()).collect();
    if series.is_empty() {
        return;
    }
    for (measure, title) in [
        (
            OUTSIDE,
            "Message to order, outside: as published, with the kernel's part",
        ),
        (INSIDE, "Message to order, inside: the engine and the algorithm"),
        (TO_REPORT, "Order to report"),
        (TO_ORDER, "Message to order from the time it was due"),
    ] {
        let mut table = Table::new(
            title,
            &[
                "", "average", "stddev", "min", "p50", "p90", "p99", "p99.9", "max", "orders",
            ],
        );
        for one in &series {
            let h = run.of(one.id).histogram(measure);
            if h.is_empty() {
                continue;
            }
            let s = h.summary();
            let times = [
                h.mean() as u64,
                h.stdev() as u64,
                s.min,
                s.p50,
                s.p90,
                s.p99,
                s.p99_9,
                s.max,
            ];
            let cells = times.map(format_ns).into_iter().chain([format_count(s.count)]);
            table = table.row([case_name(one.cycle, one.engine)].into_iter().chain(cells));
        }
        run.table(table);
    }
    legs(run, &series);
    over_bare(run, &series);
    by_rate(run, &series);
    distribution(run, &series);
    let published = PUBLISHED.into_iter().fold(
        Table::new("Published (2012), microseconds", &["", "average", "p99", "min"]),
        |table, row| table.row(row),
    );
    run.published(published, DIFFERS);
}

/// Average and p99 of every leg.
fn legs(run: &mut Run<'_>, series: &[&Series]) {
    let names = MEASURES[3..9].iter().map(|(name, _)| *name);
    let columns: Vec<&str> = [""].into_iter().chain(names).collect();
    let mut table = Table::new("Legs: average (p99)", &columns);
    for one in series {
        let cells = (3..9).map(|measure| {
            let h = run.of(one.id).histogram(measure);
            match h.is_empty() {
                true => "-".to_owned(),
                false => format!(
                    "{} ({})",
                    format_ns(h.mean() as u64),
                    format_ns(h.at_quantile(0.99))
                ),
            }
        });
        let cells: Vec<String> = cells.collect();
        table = table.row([case_name(one.cycle, one.engine)].into_iter().chain(cells));
    }
    run.table(table);
}

/// The round trip beside bare TCP.
fn over_bare(run: &mut Run<'_>, series: &[&Series]) {
    let columns = [
        "",
        "p50",
        "bare p50",
        "p50 over bare",
        "p99",
        "bare p99",
        "p99.9",
        "bare p99.9",
    ];
    let mut table = Table::new(
        "Order to report, a round trip at a time, beside bare TCP of as many bytes waiting alike (goal: over bare at most 900 ns spinning, 3 µs \
         blocking)",
        &columns,
    );
    let mut has_rows = false;
    for one in series {
        let Some(floor) = one.floor.as_ref().filter(|floor| !floor.is_empty()) else {
            continue;
        };
        let h = run.of(one.id).histogram(TO_REPORT);
        if h.is_empty() {
            continue;
        }
        has_rows = true;
        let [own, bare] = [&h, floor].map(|h| [0.5, 0.99, 0.999].map(|q| h.at_quantile(q)));
        let over = match own[0] >= bare[0] {
            true => format_ns(own[0] - bare[0]),
            false => format!("-{}", format_ns(bare[0] - own[0])),
        };
        table = table.row([
            one.engine.name().to_owned(),
            format_ns(own[0]),
            format_ns(bare[0]),
            over,
            format_ns(own[1]),
            format_ns(bare[1]),
            format_ns(own[2]),
            format_ns(bare[2]),
        ]);
    }
    if has_rows {
        run.table(table);
    }
}

/// What each rate did, and whether a queue grew.
fn by_rate(run: &mut Run<'_>, series: &[&Series]) {
    let columns = [
        "",
        "messages/s",
        "sent/s",
        "sent late",
        "orders",
        "average",
        "p50",
        "p99",
        "p99.9",
        "waiting p50",
        "p99",
        "max",
        "2nd eighth",
        "last eighth",
        "queue",
    ];
    let mut table = Table::new(
        "By rate: message to order from when it was due; messages due and not dealt with when an order came (a queue grows when their mean in \
         the last eighth of the time is above that of the second by half of it and 10 ms' worth of messages; not kept up: more than one message in 20 \
         could only be sent after the step's time; given up: further behind than settings.behind_max_s, the rest was not sent)",
        &columns,
    );
    for one in series.iter().filter(|one| one.cycle != Cycle::RoundTrip) {
        for (steps, measured) in &one.steps {
            for (step, seen) in steps
                .iter()
                .zip(&measured.steps)
                .filter(|(_, seen)| seen.sent > 0)
            {
                let planned = step.span_ns as f64 / 1e9;
                let seconds = match seen.is_given_up {
                    true => planned.min(run.clock().span_ns(seen.lasted) as f64 / 1e9),
                    false => planned,
                };
                let [early, late] = [1, 7].map(|part| seen.depth_of(part));
                let verdict = match (early, late) {
                    _ if seen.is_given_up => "given up",
                    _ if seen.behind > seen.sent / 20 => "not kept up",
                    (Some(early), Some(late)) if grows(early, late, step.rate) => "grows",
                    (Some(_), Some(_)) => "steady",
                    _ => "no orders",
                };
                let shown = |depth: Option<u64>| depth.map_or("-".to_owned(), format_count);
                let latency = &seen.latency;
                let at = |q| format_ns(latency.at_quantile(q));
                table = table.row([
                    case_name(one.cycle, one.engine),
                    format_count(step.rate),
                    format_count(((seen.sent - seen.behind) as f64 / seconds) as u64),
                    format_count(seen.behind),
                    format_count(seen.orders),
                    format_ns(latency.mean() as u64),
                    at(0.5),
                    at(0.99),
                    at(0.999),
                    format_count(seen.depth.at_quantile(0.5)),
                    format_count(seen.depth.at_quantile(0.99)),
                    format_count(seen.depth.max()),
                    shown(early),
                    shown(late),
                    verdict.to_owned(),
                ]);
            }
        }
    }
    if !table.rows().is_empty() {
        run.table(table);
    }
}

/// Whether a queue grew between two parts of a step: by half, for the step before may have left one behind,
/// and by 10 ms' worth of messages, for a stall of the machine is no load.
fn grows(early: u64, late: u64, rate: u64) -> bool {
    late > early + early / 2 + rate / 100
}

/// Upper ends of the classes of the frequency distribution, microseconds.
const CLASSES_US: [u64; 12] = [5, 10, 15, 20, 30, 50, 75, 100, 200, 500, 1_000, 10_000];

/// Shares of orders by class, as the published report drew them.
fn distribution(run: &mut Run<'_>, series: &[&Series]) {
    let names: Vec<String> = CLASSES_US
        .iter()
        .map(|us| format!("≤ {us} µs"))
        .chain(["more".to_owned()])
        .collect();
    let columns: Vec<&str> = [""].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new(
        "Message to order, outside: frequency distribution, per cent of orders",
        &columns,
    );
    for one in series {
        let h = run.of(one.id).histogram(OUTSIDE);
        if h.is_empty() {
            continue;
        }
        let mut counts = [0u64; CLASSES_US.len() + 1];
        for (value, count) in h.values() {
            let class = CLASSES_US.iter().position(|us| value <= us * 1_000);
            counts[class.unwrap_or(CLASSES_US.len())] += count;
        }
        let shares = counts.map(|count| format!("{:.2}", count as f64 * 100.0 / h.count() as f64));
        table = table.row([case_name(one.cycle, one.engine)].into_iter().chain(shares));
    }
    run.table(table);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_grows_also_where_the_rate_before_left_one_behind() {
        assert!(grows(0, 1_001, 100_000) && !grows(0, 1_000, 100_000));
        // As seen of an engine that takes 75,000 a second, offered 80,000, 90,000 and 100,000.
        assert!(
            grows(3_717, 7_146, 80_000) && grows(14_928, 28_090, 90_000) && grows(44_622, 89_021, 100_000)
        );
        assert!(!grows(2_644, 88, 70_000), "it shrinks");
    }
}
