//! `kind = "cep"`: packet to order, one at a time, as it was measured in 2017. What is sent and what must
//! come back is `crate::cep`'s; here it is made into cases, tables and checks.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tickwire_lab::scenario::{Shape, Wrong};
use tickwire_lab::{Case, MISSING, Measure, Scenario, Table, format_count};
use tickwire_market::Symbol;
use tickwire_runtime::clock::tsc;

use super::kind::Kind;
use super::run::{CaseId, Places, Run};
use crate::cep::{
    COLUMNS, DIFFERS, Log, LogConfig, PUBLISHED, RecordedConfig, Row, SIZES, SYMBOL, memory, sockets,
};
use tickwire_console::failure::Failure;
use tickwire_node::trader::SILENCE_NS;
use tickwire_player::single::Sample;
use tickwire_venues::channels::BUILT_IN;
use tickwire_venues::values::SymbolName;

pub(super) struct Cep;

/// `[settings]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    /// FAST template file of the market; `builtin` is the project's own small set.
    templates: PathBuf,
    /// Recorded packets to play instead of generated ones: a capture, or datagrams in hexadecimal digits, one
    /// a line. The order log in it is numbered anew and played as often as it takes to make `run.samples`
    /// packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<PathBuf>,
    /// The instrument traded of a capture: symbol, and behind an `@` the board (`TQBR` has none).
    symbol: SymbolName,
    /// Packets to the trader before the bare floor has its turn.
    block: usize,
    /// How long nothing may come where no order is due, and the pause before the next packet, microseconds.
    quiet_us: u64,
    /// Also over sockets; without, only in memory.
    sockets: bool,
    /// What is wrong on purpose: to see that the run fails.
    fault: Fault,
}

/// What is wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fault {
    /// Nothing.
    #[default]
    None,
    /// The naive book has not heard of one packet: an order is one too many, or has another price.
    WrongBook,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            templates: PathBuf::from(BUILT_IN),
            capture: None,
            symbol: SymbolName(generated()),
            block: 500,
            quiet_us: 30,
            sockets: true,
            fault: Fault::None,
        }
    }
}

/// An order is waited for less long than this: see [`SILENCE_NS`].
const TIMEOUT_MS_END: u64 = SILENCE_NS / 1_000_000;

const N1: &str = "From before the call that sends the packet to after the call that received the order's first bytes (published: \
last byte sent to first byte received).";
const ONE_ONE: &str = "Computed from N-1 by the published formula, N-1 + 6.4 * int((N + 7) / 8) ns: first byte to first byte on \
Ethernet of 10 Gbit/s.";
const CALL: &str = "The call that sends the packet; a part of N-1.";

impl Kind for Cep {
    const NAME: &'static str = "cep";
    const ROLES: &'static [&'static str] = &["driver", "trader"];
    const SHAPES: &'static [Shape] = &[Shape::OneAtATime];
    type Settings = Settings;

    fn check(scenario: &Scenario<Settings>) -> Result<(), Wrong> {
        if scenario.settings.capture.is_none() && scenario.settings.symbol.0 != generated() {
            return Err(Wrong::new(
                "settings.symbol",
                format!("is for a capture (settings.capture); of generated packets it is {SYMBOL}"),
            ));
        }
        if scenario.settings.block == 0 {
            return Err(Wrong::new("settings.block", "give 1 or more packets"));
        }
        if scenario.load.timeout_ms.get() >= TIMEOUT_MS_END {
            return Err(Wrong::new(
                "load.timeout_ms",
                format!(
                    "give less than {TIMEOUT_MS_END} ms: the trader takes a feed for lost that is silent for longer, and it is while an order is \
                     waited for"
                ),
            ));
        }
        if scenario.run.samples.get() <= scenario.run.warm_up {
            return Err(Wrong::new(
                "run.samples",
                "give more packets than the warm-up takes away",
            ));
        }
        Ok(())
    }

    fn run(scenario: &Scenario<Settings>, run: &mut Run<'_>) -> Result<(), Failure> {
        let settings = &scenario.settings;
        let packets = u64::from(scenario.run.samples.get());
        let mut log = match &settings.capture {
            Some(capture) => recorded(settings, capture, packets, run)?,
            None => {
                run.progress(&format!("generating {} packets", format_count(packets)));
                Log::generate(&LogConfig {
                    seed: scenario.run.seed,
                    packets,
                    templates: &settings.templates,
                })?
            }
        };
        if settings.fault == Fault::WrongBook {
            let at = log.last_with_order();
            at.into_iter().for_each(|at| log.forget_offers(at));
        }
        run.fact("packets", format_count(log.len() as u64));
        run.fact("packets with 1, 2, 3 to 4 ... 65 to 128 entries", shares(&log));
        let cases = Cases::declare(run);
        let places = Places::new(&scenario.cores, &scenario.run);
        let mut all = Series::default();
        let mut outcome = Ok(());
        for repetition in 1..=scenario.run.repetitions.get() {
            outcome = repeat(scenario, run, &log, &cases, &places, repetition, &mut all);
            if outcome.is_err() {
                break;
            }
        }
        // Of a run that was interrupted, too.
        tables(run, &all, settings);
        outcome
    }
}

/// The instrument traded of generated packets.
fn generated() -> Symbol {
    Symbol::new(SYMBOL.as_bytes()).expect("a valid symbol")
}

/// The packets of a capture.
fn recorded(settings: &Settings, capture: &Path, packets: u64, run: &mut Run<'_>) -> Result<Log, Failure> {
    run.progress(&format!("reading {}", capture.display()));
    let (log, taken) = Log::recorded(&RecordedConfig {
        capture,
        templates: &settings.templates,
        symbol: settings.symbol.0,
        packets,
    })?;
    let name = capture
        .file_name()
        .unwrap_or(capture.as_os_str())
        .to_string_lossy();
    run.fact(
        "recorded",
        format!(
            "{name}: {} of {} packets are of the order log, numbered anew and played {} times; an order for {}",
            taken.played, taken.recorded, taken.times, settings.symbol.0
        ),
    );
    Ok(log)
}

/// What was declared.
struct Cases {
    trader: CaseId,
    floor: CaseId,
    memory: CaseId,
}

impl Cases {
    fn declare(run: &mut Run<'_>) -> Cases {
        let sockets = |label: &str| {
            Case::new(&format!("sockets, {label}"), Measure::new("N-1", N1))
                .measure(Measure::new("1-1 computed", ONE_ONE))
                .measure(Measure::new("send call", CALL))
                .tag("frame bytes")
                .tag("entries")
                .in_group("packet to order over sockets", label)
        };
        let memory = Case::new(
            "memory",
            Measure::new(
                "order",
                "From before the packet's bytes are looked at until the first order's bytes are in memory.",
            ),
        )
        .measure(Measure::new("packet", "Until the packet is done with."))
        .tag("frame bytes")
        .tag("entries")
        .in_group("packet to order in memory", "tickwire");
        Cases {
            trader: run.case(sockets("tickwire")),
            floor: run.case(sockets("bare floor")),
            memory: run.case(memory),
        }
    }
}

/// Every sample of all repetitions: entries, frame, nanoseconds.
#[derive(Default)]
struct Series {
    trader: Vec<(u32, u32, u64)>,
    floor: Vec<(u32, u32, u64)>,
    memory: Vec<(u32, u32, u64)>,
    /// Of a recording every packet in memory, until it is done with.
    done: Vec<(u32, u32, u64)>,
}

fn repeat(
    scenario: &Scenario<Settings>,
    run: &mut Run<'_>,
    log: &Log,
    cases: &Cases,
    places: &Places,
    repetition: u32,
    all: &mut Series,
) -> Result<(), Failure> {
    run.go_on()?;
    run.progress(&format!("in memory, repetition {repetition}"));
    let measured = in_memory(scenario, run, log, cases.memory, repetition, all);
    run.attempt(&[cases.memory], repetition, measured)?;
    if !scenario.settings.sockets {
        return Ok(());
    }
    run.go_on()?;
    run.progress(&format!("over sockets, repetition {repetition}"));
    let measured = over_sockets(scenario, run, log, cases, places, repetition, all);
    run.attempt(&[cases.trader, cases.floor], repetition, measured)
        .map(drop)
}

fn in_memory(
    scenario: &Scenario<Settings>,
    run: &mut Run<'_>,
    log: &Log,
    id: CaseId,
    repetition: u32,
    all: &mut Series,
) -> Result<(), Failure> {
    let mut recorder = run.recorder(id);
    let began = tsc();
    let warm_up = scenario.run.warm_up as usize;
    let pass = memory::pass(log, &scenario.settings.templates, warm_up, run.clock())?;
    let about = |at: usize| {
        let frame = log.payload(at).len() as u32 + tickwire_player::FRAME_HEADERS;
        (log.entries(at), frame)
    };
    if scenario.settings.capture.is_some() {
        // Few of a recording's packets lead to an order: all are shown.
        for &(at, done_ns) in &pass.silent {
            let (entries, frame) = about(at);
            recorder.record(at as u64, &[MISSING, done_ns], &[frame.into(), entries.into()]);
            all.done.push((entries, frame, done_ns));
        }
        all.done.extend(pass.timed.iter().map(|timed| {
            let (entries, frame) = about(timed.at);
            (entries, frame, timed.done_ns)
        }));
    }
    for timed in &pass.timed {
        let (entries, frame) = about(timed.at);
        recorder.record(
            timed.at as u64,
            &[timed.order_ns, timed.done_ns],
            &[frame.into(), entries.into()],
        );
        all.memory.push((entries, frame, timed.order_ns));
    }
    let done = recorder.finish([
        ("packets", log.len() as u64),
        ("orders", pass.orders),
        ("packets without order", pass.silent.len() as u64),
    ]);
    run.repetition(id, began, done);
    run.check(
        format!("in memory, repetition {repetition}: the naive rule's orders, none else"),
        pass.problems.count == 0,
        pass.problems.found(pass.orders),
    );
    Ok(())
}

fn over_sockets(
    scenario: &Scenario<Settings>,
    run: &mut Run<'_>,
    log: &Log,
    cases: &Cases,
    places: &Places,
    repetition: u32,
    all: &mut Series,
) -> Result<(), Failure> {
    let settings = &scenario.settings;
    let pair = places.core("driver").zip(places.core("trader"));
    let before = run.shared_memory_ns(pair);
    let folder = run.folder().join("trader");
    tickwire_runtime::files::create_folders(&folder)
        .map_err(|e| Failure::system(format!("cannot create {}: {e}", folder.display())))?;
    let options = sockets::Options {
        templates: &settings.templates,
        warm_up: scenario.run.warm_up as usize,
        block: settings.block,
        timeout_ns: scenario.load.timeout_ms.get() * 1_000_000,
        quiet_ns: settings.quiet_us * 1_000,
        driver_core: places.core("driver"),
        trader_core: places.core("trader"),
        folder: &folder,
    };
    let recorders = [cases.trader, cases.floor].map(|id| run.recorder(id));
    let began = tsc();
    let measured = sockets::run(log, &options, run.clock(), run.stop())?;
    let after = run.shared_memory_ns(pair);
    let sides = [
        (cases.trader, &measured.samples, &mut all.trader),
        (cases.floor, &measured.floor, &mut all.floor),
    ];
    for (((id, samples, kept), mut recorder), delays) in
        sides.into_iter().zip(recorders).zip(&measured.run_delays_ns)
    {
        for sample in samples {
            record(&mut recorder, sample);
            if let (Some(entries), Some(n1)) = (sample.entries, sample.n1_ns) {
                kept.push((entries, sample.frame_len, n1));
            }
        }
        let mut done = recorder.finish([
            ("packets", log.len() as u64),
            ("measured", samples.len() as u64),
            ("orders", samples.iter().map(|s| u64::from(s.orders)).sum()),
        ]);
        done.shared_memory_ns = before.zip(after);
        done.run_delays_ns.clone_from(delays);
        run.repetition(id, began, done);
    }
    run.fact("bytes of an order", measured.order_len.to_string());
    let waits = if measured.is_spinning {
        "spinning"
    } else {
        "in poll"
    };
    run.fact("the trader waits", waits);
    run.check(
        format!("over sockets, repetition {repetition}: the naive rule's orders, none else"),
        measured.problems.count == 0,
        measured.problems.found(measured.orders),
    );
    // What came before the end is kept.
    run.go_on()
}

fn record(recorder: &mut tickwire_lab::Recorder, sample: &Sample) {
    recorder.record(
        sample.packet,
        &[
            sample.n1_ns.unwrap_or(MISSING),
            sample
                .one_one_tenths()
                .map_or(MISSING, |tenths| (tenths + 5) / 10),
            sample.call_ns,
        ],
        &[sample.frame_len.into(), sample.entries.map_or(MISSING, u64::from)],
    );
}

/// How many packets fall into each class of [`SIZES`].
fn shares(log: &Log) -> String {
    let counts = SIZES.map(|(_, from, to)| {
        (0..log.len())
            .filter(|&at| (from..=to).contains(&(log.entries(at) as usize)))
            .count()
    });
    counts.map(|n| n.to_string()).join(", ")
}

fn tables(run: &mut Run<'_>, all: &Series, settings: &Settings) {
    let has_sockets = settings.sockets;
    let row = |series: &[(u32, u32, u64)]| Row::of(series.iter().map(|s| s.2));
    let (trader, floor, memory) = (row(&all.trader), row(&all.floor), row(&all.memory));
    let mut ours = Table::new("Packet to order (N-1), all repetitions", &COLUMNS);
    let mut add = |name: &str, row: &Row| {
        let cells = [name.to_owned()].into_iter().chain(row.cells());
        ours = ours.clone().row(cells);
    };
    if has_sockets {
        add("tickwire, sockets of the kernel", &trader);
        add("bare floor: UDP in, TCP out", &floor);
    }
    add("tickwire, in memory (packet to order bytes)", &memory);
    run.table(ours);
    if has_sockets && floor.count > 0 {
        let ratio = |ours: u64, bare: u64| format!("{:.2}", ours as f64 / bare.max(1) as f64);
        let table = Table::new(
            "Tickwire over the bare floor of this host, same packets, same run (goal: at most 1.30)",
            &["", "p50", "p99", "p99.9"],
        );
        run.table(table.row([
            "ratio".to_owned(),
            ratio(trader.p50, floor.p50),
            ratio(trader.p99, floor.p99),
            ratio(trader.p99_9, floor.p99_9),
        ]));
    }
    let titles = [
        "Latency against the entries of the packet, ns",
        "Latency against the packet's frame, ns",
    ];
    run.table(by_entries(titles[0], all, has_sockets));
    run.table(by_size(titles[1], all, has_sockets));
    if settings.capture.is_some() {
        let every = Series {
            memory: all.done.clone(),
            ..Series::default()
        };
        let of_every = |title: &str| format!("Every packet in memory until it is done with. {title}");
        run.table(by_entries(&of_every(titles[0]), &every, false));
        run.table(by_size(&of_every(titles[1]), &every, false));
    }
    let published = PUBLISHED.into_iter().fold(
        Table::new("Published (2017)", &COLUMNS),
        |table, (name, values)| table.row([name.to_owned()].into_iter().chain(values.map(|v| v.to_string()))),
    );
    run.published(published, DIFFERS);
}

/// Latency against the number of entries.
fn by_entries(title: &str, all: &Series, has_sockets: bool) -> Table {
    let classes = SIZES.map(|(_, from, to)| {
        let name = if from == to {
            from.to_string()
        } else {
            format!("{from} to {to}")
        };
        (name, from as u32, to as u32)
    });
    by_class(title, "entries", &classes, |s| s.0, all, has_sockets)
}

/// Latency against the frame on the wire.
fn by_size(title: &str, all: &Series, has_sockets: bool) -> Table {
    const EDGES: [u32; 8] = [0, 96, 128, 192, 256, 512, 1_514, 9_014];
    let classes: Vec<(String, u32, u32)> = EDGES
        .windows(2)
        .map(|edge| (format!("{} to {}", edge[0] + 1, edge[1]), edge[0] + 1, edge[1]))
        .collect();
    by_class(title, "frame bytes", &classes, |s| s.1, all, has_sockets)
}

fn by_class(
    title: &str,
    what: &str,
    classes: &[(String, u32, u32)],
    key: impl Fn(&(u32, u32, u64)) -> u32,
    all: &Series,
    has_sockets: bool,
) -> Table {
    let columns = [
        what,
        "packets",
        "memory avg",
        "memory p50",
        "memory p99",
        "sockets avg",
        "sockets p50",
        "sockets p99",
        "floor p50",
    ];
    let mut table = Table::new(title, &columns);
    for (name, from, to) in classes {
        let of = |series: &[(u32, u32, u64)]| {
            let within = series.iter().filter(|s| (*from..=*to).contains(&key(s)));
            Row::of(within.map(|s| s.2))
        };
        let (memory, trader, floor) = (of(&all.memory), of(&all.trader), of(&all.floor));
        if memory.count == 0 && trader.count == 0 {
            continue;
        }
        let mut cells = vec![name.clone(), memory.count.max(trader.count).to_string()];
        cells.extend([
            format!("{:.0}", memory.avg),
            memory.p50.to_string(),
            memory.p99.to_string(),
        ]);
        if has_sockets {
            cells.extend([
                format!("{:.0}", trader.avg),
                trader.p50.to_string(),
                trader.p99.to_string(),
                floor.p50.to_string(),
            ]);
        }
        table = table.row(cells);
    }
    table
}
