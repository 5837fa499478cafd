//! The measuring, measured: a system with a known delay and known stalls, once as an open loop and once as a
//! closed one, beside what arithmetic says must be found.
//!
//! The system is a thread that takes requests from a ring, one after the other, spins for as long as each
//! takes, and answers. The machine can only add to that: what is checked are bounds from below, and counts.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tickwire_lab::scenario::{Shape, Wrong};
use tickwire_lab::{
    Case, Ledger, Measure, Offer, Recorder, Scenario, Schedule, Stalling, Table, format_count, format_ns,
};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::spsc;

use super::kind::Kind;
use super::run::{Places, Run};
use tickwire_console::failure::Failure;

pub(super) struct SelfTest;

/// `[settings]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    /// What every answer takes, microseconds.
    delay_us: u64,
    /// Every so-manieth answer stalls; 0 for none.
    stall_every: u64,
    /// For how long, microseconds.
    stall_us: u64,
    /// What the system does wrong on purpose: to see that the run fails.
    fault: Fault,
}

/// What the system does wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Every hundredth answer is lost.
    LoseAnswer,
    /// Every hundredth answer is to another request.
    WrongAnswer,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            delay_us: 20,
            stall_every: 200,
            stall_us: 1_000,
            fault: Fault::None,
        }
    }
}

/// Measured with each of these, as one case each.
const WAYS: [(Shape, &str); 2] = [(Shape::Open, "open loop"), (Shape::Closed, "closed loop")];

impl Kind for SelfTest {
    const NAME: &'static str = "selftest";
    const ROLES: &'static [&'static str] = &["driver", "system"];
    const SHAPES: &'static [Shape] = &[Shape::Open];
    type Settings = Settings;

    fn check(scenario: &Scenario<Settings>) -> Result<(), Wrong> {
        if scenario.load.intervals_us.len() != 1 {
            return Err(Wrong::new("load.intervals_us", "give one interval"));
        }
        let (settings, interval) = (&scenario.settings, scenario.load.intervals_us[0].get());
        let every = settings.stall_every.max(1);
        let stalls = if settings.stall_every > 0 {
            settings.stall_us
        } else {
            0
        };
        if settings.delay_us * every + stalls >= interval * every {
            let reason = format!(
                "answers take longer than their interval of {interval} µs on average: latency would grow for ever; make delay or stalls shorter"
            );
            return Err(Wrong::new("settings.delay_us", reason));
        }
        Ok(())
    }

    fn run(scenario: &Scenario<Settings>, run: &mut Run<'_>) -> Result<(), Failure> {
        let settings = &scenario.settings;
        let interval_ns = scenario.load.intervals_us[0].get() * 1_000;
        let system = Stalling {
            service: settings.delay_us * 1_000,
            stall_every: settings.stall_every,
            stall: settings.stall_us * 1_000,
        };
        let samples = u64::from(scenario.run.samples.get());
        let what = "From the time intended (closed loop: sent) to the answer's arrival.";
        let us = |us: u64| format!("{us} µs");
        let stalls = match settings.stall_every {
            0 => "none".to_owned(),
            every => format!("{} every {every}", us(settings.stall_us)),
        };
        let ids = WAYS.map(|(_, name)| {
            run.case(
                Case::new(name, Measure::new("latency", what))
                    .in_group("delay and stalls", name)
                    .parameter("interval", us(scenario.load.intervals_us[0].get()))
                    .parameter("delay", us(settings.delay_us))
                    .parameter("stalls", &stalls),
            )
        });
        let places = Places::new(&scenario.cores, &scenario.run);
        let pair = places.core("driver").zip(places.core("system"));
        for repetition in 0..scenario.run.repetitions.get() {
            for (id, (shape, name)) in ids.into_iter().zip(WAYS) {
                run.go_on()?;
                run.progress(&format!("{name}, repetition {}", repetition + 1));
                let before = run.shared_memory_ns(pair);
                let mut recorder = run.recorder(id);
                let began = tsc();
                let load = Load {
                    shape,
                    samples,
                    interval_ns,
                    timeout_ns: scenario.load.timeout_ms.get() * 1_000_000,
                };
                let counts = drive(
                    run.clock(),
                    &places,
                    &load,
                    &system,
                    settings.fault,
                    &mut recorder,
                );
                let Some(counts) = run.attempt(&[id], repetition + 1, counts)? else {
                    continue;
                };
                let mut done = recorder.finish([
                    ("sent", samples),
                    ("lost", counts.lost),
                    ("unexpected", counts.unexpected),
                ]);
                counts.note.into_iter().for_each(|note| run.note(note));
                done.shared_memory_ns = before.zip(run.shared_memory_ns(pair));
                run.repetition(id, began, done);
                run.check(
                    format!(
                        "{name}, repetition {}: every request answered once",
                        repetition + 1
                    ),
                    counts.lost == 0 && counts.unexpected == 0,
                    format!(
                        "{} of {} lost, {} answers to no open request",
                        format_count(counts.lost),
                        format_count(samples),
                        format_count(counts.unexpected)
                    ),
                );
            }
        }
        judge(
            run,
            &ids,
            &system,
            samples,
            interval_ns,
            scenario.run.repetitions.get(),
        );
        Ok(())
    }
}

/// Compares what was found with what arithmetic says.
fn judge(
    run: &mut Run<'_>,
    ids: &[super::run::CaseId; 2],
    system: &Stalling,
    samples: u64,
    interval_ns: u64,
    repetitions: u32,
) {
    let mut computed = Table::new(
        "Computed for this system",
        &["", "p50", "p99", "p99.5", "max", "longer than half a stall"],
    );
    let mut found = Table::new(
        "Found",
        &["", "p50", "p99", "p99.5", "max", "longer than half a stall"],
    );
    let half = system.stall / 2;
    for (&id, (shape, name)) in ids.iter().zip(WAYS) {
        let expected = system.measured(shape, samples, interval_ns);
        let histogram = run.of(id).histogram(0);
        let error = run.probe_error_ns(histogram.max());
        let slow = |h: &tickwire_lab::Histogram| -> u64 {
            h.values().filter(|v| v.0 > half).map(|v| v.1).sum::<u64>()
        };
        let line = |h: &tickwire_lab::Histogram| {
            let times = [0.5, 0.99, 0.995].map(|q| format_ns(h.at_quantile(q)));
            let max = [format_ns(h.max()), format_count(slow(h))];
            [name.to_owned()]
                .into_iter()
                .chain(times)
                .chain(max)
                .collect::<Vec<_>>()
        };
        (computed, found) = (computed.row(line(&expected)), found.row(line(&histogram)));
        if histogram.is_empty() {
            continue;
        }
        // Percentiles are to three digits on both sides; besides, a span may be too short by the probe's
        // error.
        let least = |value: u64| value - value / 500 - error.min(value - value / 500);
        for quantile in [0.0, 0.5, 0.9, 0.99] {
            let (is, must) = (
                histogram.at_quantile(quantile),
                least(expected.at_quantile(quantile)),
            );
            run.check(
                format!("{name}: quantile {quantile} is not below the computed one"),
                is >= must,
                format!(
                    "{} found, {} computed less the probe's error",
                    format_ns(is),
                    format_ns(must)
                ),
            );
        }
        if system.stall_every > 0 {
            let must = slow(&expected) * u64::from(repetitions);
            run.check(
                format!("{name}: no stall is missed"),
                slow(&histogram) >= must,
                format!(
                    "{} latencies above half a stall, {} computed",
                    format_count(slow(&histogram)),
                    format_count(must)
                ),
            );
        }
    }
    run.table(found);
    run.published(
        computed,
        "Computed in virtual time from delay, stalls and interval. The machine adds to it what it takes for itself; it can take nothing away.",
    );
}

/// What is offered.
struct Load {
    shape: Shape,
    samples: u64,
    interval_ns: u64,
    timeout_ns: u64,
}

/// What did not come back as it should.
struct Counts {
    lost: u64,
    unexpected: u64,
    /// What the system did not permit.
    note: Option<String>,
}

/// How many requests may wait.
const RING: usize = 1 << 16;

/// One repetition: the load against the system, on two threads.
fn drive(
    clock: &Clock,
    places: &Places,
    load: &Load,
    system: &Stalling,
    fault: Fault,
    recorder: &mut Recorder,
) -> Result<Counts, Failure> {
    let (mut requests, mut work) = spsc::ring::<u64>(RING);
    let (mut done, mut answers) = spsc::ring::<u64>(RING);
    let over = AtomicBool::new(false);
    // Asked before any thread is pinned to one core.
    let rest = Rest {
        spin: Cores::count().parallelism() > 1,
    };
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| -> Result<Option<String>, Failure> {
            let note = places.enter("system")?;
            while !over.load(Ordering::Relaxed) {
                let Some(number) = work.pop() else {
                    rest.pause();
                    continue;
                };
                let until = tsc() + clock.span_ticks(system.takes(number)) + 1;
                while tsc() < until {
                    std::hint::spin_loop();
                }
                match fault {
                    Fault::LoseAnswer if number % 100 == 99 => {}
                    Fault::WrongAnswer if number % 100 == 99 => drop(done.push(number + 1_000_000_000)),
                    _ => drop(done.push(number)),
                }
            }
            Ok(note)
        });
        let driver = scope.spawn(|| -> Result<Counts, Failure> {
            places.enter("driver")?;
            Ok(offer(clock, rest, load, &mut requests, &mut answers, recorder))
        });
        let counts = driver.join().expect("it does not panic");
        over.store(true, Ordering::Relaxed);
        let note = worker.join().expect("it does not panic")?;
        counts.map(|counts| Counts { note, ..counts })
    })
}

fn offer(
    clock: &Clock,
    rest: Rest,
    load: &Load,
    requests: &mut spsc::Producer<u64>,
    answers: &mut spsc::Consumer<u64>,
    recorder: &mut Recorder,
) -> Counts {
    let mut ledger = Ledger::new(load.samples as usize);
    let mut unexpected = 0;
    let timeout = clock.span_ticks(load.timeout_ns);
    let start = tsc() + clock.span_ticks(1_000_000);
    let mut schedule = Schedule::new(load.shape, start, clock.span_ticks(load.interval_ns));
    loop {
        let now = tsc();
        let more = ledger.offered() < load.samples;
        if more && now >= schedule.due() && (schedule.overlaps() || ledger.open() == 0) && requests.room() > 0
        {
            let from = schedule.take(now);
            let number = ledger.offer(Offer { from, sent: now });
            let _ = requests.push(number);
        }
        match answers.pop() {
            Some(number) => {
                let now = tsc();
                match ledger.answer(number) {
                    Ok(offer) => {
                        let latency = clock.span_ns(now.saturating_sub(offer.from));
                        recorder.record(clock.span_ns(offer.from.saturating_sub(start)), &[latency], &[]);
                        schedule.answered(now);
                    }
                    Err(_) => unexpected += 1,
                }
            }
            None if !more && ledger.open() == 0 => break,
            None => {
                if ledger.open() > 0 && ledger.give_up_before(now.saturating_sub(timeout)) > 0 {
                    schedule.answered(now);
                }
                rest.pause();
            }
        }
    }
    Counts {
        lost: ledger.given_up(),
        unexpected,
        note: None,
    }
}

/// Spins where threads have cores of their own, else lets the others run.
#[derive(Clone, Copy)]
struct Rest {
    spin: bool,
}

impl Rest {
    fn pause(self) {
        match self.spin {
            true => std::hint::spin_loop(),
            false => std::thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_system_that_cannot_keep_up_is_refused_with_the_line() {
        let text = include_str!("../../../../examples/lab/selftest.toml");
        let set = [("settings.delay_us".to_owned(), "100".to_owned())];
        let error = super::super::kind::read("x.toml", text, false, &set)
            .err()
            .expect("refused");
        assert!(
            error.message.contains("settings.delay_us") && error.message.contains("line"),
            "{error}"
        );
    }
}
