//! `kind = "cep"`: packet to order, one at a time, as it was measured in 2017. What is sent and what must
//! come back is `crate::cep`'s; here it is made into cases, tables and checks.

mod shown;

use std::path::{Path as FilePath, PathBuf};

use serde::{Deserialize, Serialize};
use tickwire_lab::scenario::{Network, Shape, Wrong};
use tickwire_lab::{Case, MISSING, Measure, Scenario, format_count};
use tickwire_market::Symbol;
use tickwire_runtime::clock::tsc;
use tickwire_runtime::netns::VethPair;

use self::shown::{Series, core_table, shares, tables};
use super::kind::Kind;
use super::net::{Net, given, no_namespaces};
use super::paths::{self, Path};
use super::run::{CaseId, Places, Run};
use crate::cep::sockets::{self, Market};
use crate::cep::{ENTRIES_MAX, Log, LogConfig, Measured, RecordedConfig, SYMBOL, core, memory, ticks};
use tickwire_console::failure::Failure;
use tickwire_player::single::Sample;
use tickwire_venues::channels::BUILT_IN;
use tickwire_venues::values::SymbolName;

pub(super) struct Cep;

/// `[settings]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    /// What is played: `moex`, the order log of a currency market in FAST; `itch`, ticks in ITCH 5.0 and a
    /// rule that an order can be prepared for.
    market: Market,
    /// The ways through the machine, side by side: `socket`, `xdp`, `xdp+delegated`, and of `itch` also
    /// `pre-armed`. All but the first want an interface for each side (`run.network`).
    backends: Vec<Path>,
    /// FAST template file of the market; `builtin` is the project's own small set.
    templates: PathBuf,
    /// Recorded packets to play instead of generated ones: a capture, or datagrams in hexadecimal digits, one
    /// a line. The order log in it is numbered anew and played as often as it takes to make `run.samples`
    /// packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<PathBuf>,
    /// The instrument traded of a capture: symbol, and behind an `@` the board (`TQBR` has none).
    symbol: SymbolName,
    /// Packets to a trader before the next one, and then the bare floor, has its turn.
    block: usize,
    /// How long nothing may come where no order is due, and the pause before the next packet, microseconds.
    quiet_us: u64,
    /// Also by the ways above; without, only in memory.
    sockets: bool,
    /// Also through a core in hardware, simulated clock by clock, which takes Verilator and a minute.
    core: bool,
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
            market: Market::Moex,
            backends: vec![Path::Socket],
            templates: PathBuf::from(BUILT_IN),
            capture: None,
            symbol: SymbolName(generated()),
            block: 500,
            quiet_us: 30,
            sockets: true,
            core: false,
            fault: Fault::None,
        }
    }
}

/// An order is waited for less long than this: see [`sockets::SILENCE_MS`].
const TIMEOUT_MS_END: u64 = sockets::SILENCE_MS as u64;

const N1: &str = "From before the call that sends the packet to after the call that received the order's first bytes (published: \
last byte sent to first byte received): the whole round trip, the driver's own TCP in it.";
const WIRE: &str = "From before the call that sends the packet to the frame of the order in the driver's stack, as the kernel stamped it: \
without the driver's own TCP.";
const ONE_ONE: &str = "Computed from N-1 by the published formula, N-1 + 6.4 * int((N + 7) / 8) ns: first byte to first byte on \
Ethernet of 10 Gbit/s.";
const CALL: &str = "The call that sends the packet; a part of N-1.";

impl Kind for Cep {
    const NAME: &'static str = "cep";
    const ROLES: &'static [&'static str] = &["driver", "trader"];
    const SHAPES: &'static [Shape] = &[Shape::OneAtATime];
    type Settings = Settings;

    fn check(scenario: &Scenario<Settings>) -> Result<(), Wrong> {
        let settings = &scenario.settings;
        let without: &[(Path, &str)] = match settings.market {
            Market::Moex => &[(
                Path::PreArmed,
                "FAST has no fields at fixed places that a program could wait for; give settings.market = \"itch\"",
            )],
            Market::Itch => &[],
        };
        paths::check(&settings.backends, without, &scenario.run)?;
        if settings.market == Market::Itch && settings.capture.is_some() {
            return Err(Wrong::new(
                "settings.capture",
                "is for settings.market = \"moex\"",
            ));
        }
        if settings.market == Market::Itch && !settings.sockets {
            return Err(Wrong::new(
                "settings.sockets",
                "leaves nothing to measure: settings.market = \"itch\" is not measured in memory",
            ));
        }
        if settings.core && (settings.market != Market::Moex || settings.capture.is_some()) {
            return Err(Wrong::new(
                "settings.core",
                "is for generated packets of settings.market = \"moex\"",
            ));
        }
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
        let mut log = match (&settings.capture, settings.market) {
            (Some(capture), _) => recorded(settings, capture, packets, run)?,
            (None, Market::Itch) => ticks::generate(scenario.run.seed, packets),
            (None, Market::Moex) => {
                run.progress(&format!("generating {} packets", format_count(packets)));
                Log::generate(&LogConfig {
                    seed: scenario.run.seed,
                    packets,
                    templates: &settings.templates,
                    entries_max: ENTRIES_MAX,
                })?
            }
        };
        if settings.fault == Fault::WrongBook {
            let at = log.last_with_order();
            at.into_iter().for_each(|at| log.forget_offers(at));
        }
        run.fact("packets", format_count(log.len() as u64));
        run.fact("packets with 1, 2, 3 to 4 ... 65 to 128 entries", shares(&log));
        let net = network(scenario, run)?;
        let cases = Cases::declare(run, settings);
        let places = Places::new(&scenario.cores, &scenario.run);
        let mut all = Series::of(&settings.backends);
        let mut outcome = Ok(());
        for repetition in 1..=scenario.run.repetitions.get() {
            let at = (&places, net);
            outcome = repeat(scenario, run, &log, &cases, at, repetition, &mut all);
            if outcome.is_err() {
                break;
            }
        }
        if outcome.is_ok() && settings.core {
            outcome = through_core(run, scenario);
        }
        // Of a run that was interrupted, too.
        tables(run, &all, settings, net != Wanted::Loopback);
        outcome
    }
}

/// Packets of the same seed through a core, once: there is no noise in a simulation. A core takes frames of
/// Ethernet and puts no fragments together, so that the packets have no more entries than fit one.
fn through_core(run: &mut Run<'_>, scenario: &Scenario<Settings>) -> Result<(), Failure> {
    let settings = &scenario.settings;
    if !core::is_there() {
        run.fact(
            "core, simulated",
            "not measured: Verilator is not here (apt-get install verilator)",
        );
        return Ok(());
    }
    run.progress("the core, simulated");
    let log = Log::generate(&LogConfig {
        seed: scenario.run.seed,
        packets: scenario.run.samples.get().into(),
        templates: &settings.templates,
        entries_max: core::ENTRIES_MAX,
    })?;
    let folder = std::env::temp_dir().join(format!("tickwire-core-{}", std::process::id()));
    let found = core::simulate(&log, &settings.templates, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    let found = found?;
    let first = found.differences.first();
    run.check(
        "core, simulated: every order, top, level and counter as the software has it".to_owned(),
        found.differing == 0,
        format!(
            "packets of up to {} entries, as fit a frame: {} orders, {} tops and {} levels compared over {} clocks, {} orders stopped by both; \
             {} differences{}",
            core::ENTRIES_MAX,
            found.orders,
            found.tops,
            found.levels,
            found.clocks,
            found.stopped,
            found.differing,
            first.map_or_else(String::new, |first| format!(": {first}")),
        ),
    );
    run.table(core_table(&found));
    Ok(())
}

/// The instrument traded of generated packets.
fn generated() -> Symbol {
    Symbol::new(SYMBOL.as_bytes()).expect("a valid symbol")
}

/// The packets of a capture.
fn recorded(
    settings: &Settings,
    capture: &FilePath,
    packets: u64,
    run: &mut Run<'_>,
) -> Result<Log, Failure> {
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

/// What the ways are measured on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    Loopback,
    /// Two namespaces for each way.
    Namespaces,
    Given,
}

/// Where traffic goes; unless the scenario says otherwise, over loopback.
fn network(scenario: &Scenario<Settings>, run: &mut Run<'_>) -> Result<Wanted, Failure> {
    let wanted = match scenario.run.network {
        _ if !scenario.settings.sockets => return Ok(Wanted::Loopback),
        Network::Auto | Network::Loopback => Wanted::Loopback,
        Network::Veth => Wanted::Namespaces,
        Network::Given => Wanted::Given,
    };
    let name = match wanted {
        Wanted::Loopback => "loopback".to_owned(),
        Wanted::Namespaces => "for each way two network namespaces joined by veth".to_owned(),
        Wanted::Given => given(&scenario.run)?.name(),
    };
    run.fact("network", name);
    Ok(wanted)
}

/// The networks of a repetition: those of one element are measured in turns, one element after the other. A
/// hook has one program, so that ways share an interface one after the other only.
fn networks(scenario: &Scenario<Settings>, wanted: Wanted) -> Result<Vec<Vec<(Path, Net)>>, Failure> {
    let ways = scenario.settings.backends.iter().copied();
    Ok(match wanted {
        Wanted::Loopback => vec![ways.map(|way| (way, Net::Loopback)).collect()],
        Wanted::Namespaces => {
            let made = ways.map(|way| {
                let pair = VethPair::create("twlab").map_err(|e| no_namespaces(&e))?;
                Ok((way, Net::Veth(pair)))
            });
            vec![made.collect::<Result<_, Failure>>()?]
        }
        Wanted::Given => {
            let each = ways.map(|way| Ok(vec![(way, given(&scenario.run)?)]));
            each.collect::<Result<_, Failure>>()?
        }
    })
}

/// What was declared.
struct Cases {
    traders: Vec<(Path, CaseId)>,
    floor: CaseId,
    memory: Option<CaseId>,
}

impl Cases {
    fn declare(run: &mut Run<'_>, settings: &Settings) -> Cases {
        let sockets = |way: &str, label: &str, in_chart: &str| {
            Case::new(&format!("{way}, {label}"), Measure::new("N-1", N1))
                .measure(Measure::new("WIRE", WIRE))
                .measure(Measure::new("1-1 computed", ONE_ONE))
                .measure(Measure::new("send call", CALL))
                .tag("frame bytes")
                .tag("entries")
                .in_group("packet to order over sockets", in_chart)
        };
        let traders = settings.backends.iter().map(|&path| {
            let case = match path {
                Path::Socket => sockets("sockets", "tickwire", "tickwire"),
                other => sockets(other.name(), "tickwire", &format!("tickwire, {}", other.name())),
            };
            (path, run.case(case))
        });
        let traders = traders.collect();
        let floor = run.case(sockets("sockets", "bare floor", "bare floor"));
        let memory = (settings.market == Market::Moex).then(|| {
            run.case(
                Case::new(
                    "memory",
                    Measure::new(
                        "order",
                        "From before the packet's bytes are looked at until the first order's bytes are in memory.",
                    ),
                )
                .measure(Measure::new("packet", "Until the packet is done with."))
                .tag("frame bytes")
                .tag("entries")
                .in_group("packet to order in memory", "tickwire"),
            )
        });
        Cases {
            traders,
            floor,
            memory,
        }
    }
}

fn repeat(
    scenario: &Scenario<Settings>,
    run: &mut Run<'_>,
    log: &Log,
    cases: &Cases,
    (places, wanted): (&Places, Wanted),
    repetition: u32,
    all: &mut Series,
) -> Result<(), Failure> {
    if let Some(memory) = cases.memory {
        run.go_on()?;
        run.progress(&format!("in memory, repetition {repetition}"));
        let measured = in_memory(scenario, run, log, memory, repetition, all);
        run.attempt(&[memory], repetition, measured)?;
    }
    if !scenario.settings.sockets {
        return Ok(());
    }
    for nets in networks(scenario, wanted)? {
        run.go_on()?;
        let ways: Vec<&str> = nets.iter().map(|(way, _)| way.name()).collect();
        run.progress(&format!("{}, repetition {repetition}", ways.join(", ")));
        let ids = cases
            .traders
            .iter()
            .filter(|(way, _)| nets.iter().any(|(of, _)| of == way));
        let ids: Vec<CaseId> = ids.map(|(_, id)| *id).chain([cases.floor]).collect();
        let measured = over_sockets(scenario, run, log, cases, (places, &nets), repetition, all);
        run.attempt(&ids, repetition, measured)?;
    }
    Ok(())
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
    (places, nets): (&Places, &[(Path, Net)]),
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
        market: settings.market,
        templates: &settings.templates,
        warm_up: scenario.run.warm_up as usize,
        block: settings.block,
        timeout_ns: scenario.load.timeout_ms.get() * 1_000_000,
        quiet_ns: settings.quiet_us * 1_000,
        driver_core: places.core("driver"),
        trader_core: places.core("trader"),
        folder: &folder,
    };
    let id_of = |way: Path| cases.traders.iter().find(|(of, _)| *of == way).map(|(_, id)| *id);
    let ids: Vec<CaseId> = nets.iter().filter_map(|(way, _)| id_of(*way)).collect();
    let recorders: Vec<_> = ids.iter().map(|id| run.recorder(*id)).collect();
    let floor_recorder = run.recorder(cases.floor);
    let began = tsc();
    let outcome = sockets::run(log, &options, run.clock(), run.stop(), nets)?;
    let lasted_ns = run.clock().span_ns(tsc() - began);
    let state = before.zip(run.shared_memory_ns(pair));
    for ((id, mut recorder), (way, measured)) in ids.into_iter().zip(recorders).zip(&outcome.traders) {
        let by_program = measured.prepared.iter().filter(|prepared| **prepared).count() as u64;
        for (sample, prepared) in measured.samples.iter().zip(&measured.prepared) {
            record(&mut recorder, sample);
            all.keep(Some(*way), *prepared, sample);
        }
        let mut done = recorder.finish([
            ("packets", log.len() as u64),
            ("measured", measured.samples.len() as u64),
            ("orders", measured.orders),
            ("sent by the program", by_program),
        ]);
        (done.shared_memory_ns, done.lasted_ns) = (state, lasted_ns);
        done.run_delays_ns.clone_from(&measured.run_delays_ns);
        run.repetition(id, began, done);
        judge(run, *way, measured, (repetition, by_program));
    }
    let floor = &outcome.floor;
    let mut recorder = floor_recorder;
    for sample in &floor.samples {
        record(&mut recorder, sample);
        all.keep(None, false, sample);
    }
    let mut done = recorder.finish([("measured", floor.samples.len() as u64)]);
    (done.shared_memory_ns, done.lasted_ns) = (state, lasted_ns);
    done.run_delays_ns.clone_from(&floor.run_delays_ns);
    // Beside a trader on another machine there is none.
    if !floor.samples.is_empty() {
        run.repetition(cases.floor, began, done);
    }
    run.check(
        format!("bare floor, repetition {repetition}: one answer to each packet"),
        floor.problems.count == 0,
        floor.problems.found(floor.samples.len() as u64),
    );
    let waits = if outcome.is_spinning {
        "spinning"
    } else {
        "in poll"
    };
    run.fact("the trader waits", waits);
    // What came before the end is kept.
    run.go_on()
}

/// Whether a trader's orders were those of the rule, and of one that arms, whether any left by itself.
fn judge(run: &mut Run<'_>, way: Path, measured: &Measured, (repetition, by_program): (u32, u64)) {
    let name = match way {
        Path::Socket => "over sockets".to_owned(),
        other => format!("by {}", other.name()),
    };
    run.fact("bytes of an order", measured.order_len.to_string());
    run.check(
        format!("{name}, repetition {repetition}: the naive rule's orders, none else"),
        measured.problems.count == 0,
        measured.problems.found(measured.orders),
    );
    if way == Path::PreArmed {
        run.check(
            format!("{name}, repetition {repetition}: the program at the hook sends"),
            by_program > 0,
            format!(
                "{} of {} measured orders were sent by the program, the others by the process",
                format_count(by_program),
                format_count(measured.samples.len() as u64)
            ),
        );
    }
}

fn record(recorder: &mut tickwire_lab::Recorder, sample: &Sample) {
    recorder.record(
        sample.packet,
        &[
            sample.n1_ns.unwrap_or(MISSING),
            sample.wire_ns.unwrap_or(MISSING),
            sample
                .one_one_tenths()
                .map_or(MISSING, |tenths| (tenths + 5) / 10),
            sample.call_ns,
        ],
        &[sample.frame_len.into(), sample.entries.map_or(MISSING, u64::from)],
    );
}
