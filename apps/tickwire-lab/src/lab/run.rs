//! A run in progress: what a scenario hands its cases, samples and checks to.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tickwire_lab::scenario::RunSection;
use tickwire_lab::{Case, Check, Published, Recorder, Repetition, RunRecord, Table, folder};
use tickwire_runtime::affinity::{self, AwakeCores, Cores};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::host::{Host, ProcessorTime, run_delay_ns};
use tickwire_runtime::signal::StopFlag;

use super::{pingpong, probe};
use tickwire_console::failure::{Code, Failure};

/// A thread that waited longer than this, and longer than a thousandth of its repetition, was not alone on
/// its core.
const DELAY_MAX_NS: u64 = 1_000_000;

/// What threads of the repetition under way have waited for their cores, by role: they say it when they end.
/// One run at a time.
static WAITED: Mutex<Vec<(String, u64)>> = Mutex::new(Vec::new());

thread_local! {
    /// Of a measured thread.
    static WATCH: std::cell::RefCell<Option<DelayWatch>> = const { std::cell::RefCell::new(None) };
}

/// Counts from its making to its end how long its thread had no core.
struct DelayWatch {
    role: String,
    from: u64,
}

impl DelayWatch {
    fn begin(role: &str) {
        if let Some(from) = run_delay_ns() {
            let role = role.to_owned();
            WATCH.with(|watch| *watch.borrow_mut() = Some(DelayWatch { role, from }));
        }
    }
}

impl Drop for DelayWatch {
    fn drop(&mut self) {
        if let Some(now) = run_delay_ns() {
            let row = (std::mem::take(&mut self.role), now.saturating_sub(self.from));
            WAITED.lock().unwrap_or_else(PoisonError::into_inner).push(row);
        }
    }
}

/// What was waited since this was asked last: of threads that have ended, and of the calling one.
fn take_waited() -> Vec<(String, u64)> {
    WATCH.with(|watch| watch.borrow_mut().take());
    std::mem::take(&mut *WAITED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Says in a record which build it is of, and that it is not the one that ships where that is so.
pub(crate) fn built_with(mut record: RunRecord, profile: &str) -> RunRecord {
    record
        .facts
        .push(("build".to_owned(), format!("profile {profile}")));
    record.notes.extend(crate::not_what_ships(profile));
    record
}

/// Which case of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CaseId(usize);

/// A run in progress.
pub(crate) struct Run<'a> {
    record: RunRecord,
    clock: Clock,
    begun_tsc: u64,
    stop: &'a StopFlag,
    folder: PathBuf,
    quiet: bool,
    section: RunSection,
    /// Of each case, when its recorder was made.
    times: Vec<Cell<Option<ProcessorTime>>>,
    _awake: Option<AwakeCores>,
}

impl<'a> Run<'a> {
    /// Describes the machine, measures the probe, and does to the process what the scenario wants done to it.
    pub(super) fn begin(
        mut record: RunRecord,
        section: RunSection,
        folder: PathBuf,
        quiet: bool,
        stop: &'a StopFlag,
    ) -> Run<'a> {
        let clock = Clock::calibrate();
        let host = Host::describe(&clock);
        let facts = host.facts().iter();
        record.host = facts
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        record.host_warnings = host.warnings().to_vec();
        record.probe = probe::measure(&clock);
        record = built_with(record, crate::PROFILE);
        let now = clock.now();
        record.started_ns = now.0;
        record.started = super::utc(now, "%Y-%m-%dT%H:%M:%SZ");
        if section.lock_memory {
            match affinity::lock_memory() {
                Ok(()) => record.facts.push(("memory".to_owned(), "locked".to_owned())),
                Err(e) => record.notes.push(format!("Memory is not locked: {e}.")),
            }
        }
        let awake = section.awake.then(AwakeCores::hold).and_then(|held| match held {
            Ok(awake) => {
                record
                    .facts
                    .push(("idle cores".to_owned(), "kept awake".to_owned()));
                Some(awake)
            }
            Err(e) => {
                record.notes.push(format!("Idle cores sleep as they like: {e}."));
                None
            }
        });
        Run {
            record,
            clock,
            begun_tsc: tsc(),
            stop,
            folder,
            quiet,
            section,
            times: Vec::new(),
            _awake: awake,
        }
    }

    /// The clock of the run.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Set by Ctrl-C: loops look at it.
    #[allow(dead_code, reason = "for kinds with long repetitions")]
    pub(crate) fn stop(&self) -> &'a StopFlag {
        self.stop
    }

    /// The results folder, for what a scenario writes beside the run's own files.
    #[allow(dead_code, reason = "for kinds that keep files of their own")]
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// An error when Ctrl-C was pressed: call it between repetitions.
    pub(crate) fn go_on(&self) -> Result<(), Failure> {
        match self.stop.is_set() {
            true => Err(Failure::interrupted("ended before all was measured")),
            false => Ok(()),
        }
    }

    /// Says on standard error what is being done.
    pub(crate) fn progress(&self, text: &str) {
        if !self.quiet {
            let seconds = self.clock.span_ns(tsc().wrapping_sub(self.begun_tsc)) / 1_000_000_000;
            eprintln!("{:3}:{:02}  {text}", seconds / 60, seconds % 60);
        }
    }

    /// A name and value that was found out while running. Said once.
    #[allow(dead_code, reason = "for kinds that choose something while running")]
    pub(crate) fn fact(&mut self, name: &str, value: impl Into<String>) {
        let fact = (name.to_owned(), value.into());
        if !self.record.facts.contains(&fact) {
            self.record.facts.push(fact);
        }
    }

    /// A sentence that every report shows: what was not available, and what was done instead. Said once.
    pub(crate) fn note(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.record.notes.contains(&sentence) {
            self.progress(&format!("note: {sentence}"));
            self.record.notes.push(sentence);
        }
    }

    /// Something that had to hold: one that did not makes the run end with exit code 1, with its results
    /// kept.
    pub(crate) fn check(&mut self, name: impl Into<String>, passed: bool, found: impl Into<String>) {
        let (name, found) = (name.into(), found.into());
        if !passed {
            self.progress(&format!("CHECK FAILED: {name}: {found}"));
        }
        self.record.checks.push(Check { name, passed, found });
    }

    /// A table of the scenario's own.
    pub(crate) fn table(&mut self, table: Table) {
        self.record.tables.push(table);
    }

    /// A published table, to stand beside ours.
    pub(crate) fn published(&mut self, table: Table, differs: &str) {
        self.record.published.push(Published {
            table,
            differs: differs.to_owned(),
        });
    }

    /// Declares a case; its repetitions come later, in any order among the cases.
    ///
    /// # Panics
    /// If there is one of that name.
    pub(crate) fn case(&mut self, case: Case) -> CaseId {
        assert!(
            self.record.case(&case.name).is_none(),
            "two cases '{}'",
            case.name
        );
        self.record.cases.push(case);
        self.times.push(Cell::new(None));
        CaseId(self.record.cases.len() - 1)
    }

    /// Where a repetition of a case is recorded, which begins now.
    pub(crate) fn recorder(&self, id: CaseId) -> Recorder {
        self.times[id.0].set(ProcessorTime::now());
        take_waited();
        self.record.cases[id.0].recorder(self.section.samples_kept.get() as usize)
    }

    /// Adds a repetition; `began` is the counter's reading ([`tsc`]) at its start.
    pub(crate) fn repetition(&mut self, id: CaseId, began: u64, mut repetition: Repetition) {
        repetition.started_ns = self.clock.span_ns(began.saturating_sub(self.begun_tsc));
        let times = self.times[id.0].take().zip(ProcessorTime::now());
        repetition.stolen_ppm = times.map(|(before, now)| now.stolen_ppm_since(before));
        repetition.run_delays_ns.extend(take_waited());
        let lasted = match repetition.lasted_ns {
            0 => self.clock.span_ns(tsc().saturating_sub(began)),
            lasted => lasted,
        };
        let name = &self.record.cases[id.0].name;
        let number = self.record.cases[id.0].repetitions.len() + 1;
        let contended: Vec<String> = repetition
            .run_delays_ns
            .iter()
            .filter(|(_, ns)| *ns > DELAY_MAX_NS.max(lasted / 1_000))
            .map(|(role, ns)| {
                format!(
                    "WARNING: {name}, repetition {number}: thread '{role}' waited {} of {} for its core, which other processes of this machine had; its figures hold that.",
                    tickwire_lab::format_ns(*ns),
                    tickwire_lab::format_ns(lasted)
                )
            })
            .collect();
        self.record.cases[id.0].repetitions.push(repetition);
        contended.into_iter().for_each(|warning| self.note(warning));
    }

    /// What a repetition of these cases came to. One that failed is a check that failed and the reason why
    /// they were not measured, and the run goes on with the next; only Ctrl-C ends it.
    pub(crate) fn attempt<T>(
        &mut self,
        ids: &[CaseId],
        repetition: u32,
        outcome: Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let failure = match outcome {
            Ok(done) => return Ok(Some(done)),
            Err(failure) => failure,
        };
        // What Ctrl-C ended has failed for that reason.
        self.go_on()?;
        if failure.code == Code::Interrupted {
            return Err(failure);
        }
        let first = ids.first().map_or(String::new(), |id| self.of(*id).name.clone());
        let more = match ids.len() {
            0 | 1 => String::new(),
            n => format!(" and {} more cases", n - 1),
        };
        self.check(
            format!("{first}{more}, repetition {repetition}: measured"),
            false,
            failure.message.clone(),
        );
        for id in ids {
            self.record.cases[id.0]
                .unmeasured
                .get_or_insert_with(|| failure.message.clone());
        }
        Ok(None)
    }

    /// A case as it is now.
    pub(crate) fn of(&self, id: CaseId) -> &Case {
        &self.record.cases[id.0]
    }

    /// The state of the machine: half the round trip of a word in shared memory between two cores, median,
    /// nanoseconds. `None`, with a note, where there is only one core.
    pub(crate) fn shared_memory_ns(&mut self, cores: Option<(usize, usize)>) -> Option<u64> {
        match pingpong::shared_memory(&self.clock, cores) {
            Ok(found) => {
                if found.backwards > 0 {
                    self.record.probe.warning = Some(format!(
                        "stamps of two cores ran backwards {} times: spans between threads are not to be trusted",
                        found.backwards
                    ));
                }
                Some(found.half_ns)
            }
            Err(why) => {
                self.note(why);
                None
            }
        }
    }

    /// By how much a span of that length may be wrong, nanoseconds.
    pub(crate) fn probe_error_ns(&self, span_ns: u64) -> u64 {
        self.record.probe.error_ns(span_ns)
    }

    /// What is written down.
    pub(super) fn finish(mut self) -> RunRecord {
        probe::watch_drift(&mut self.record.probe, &self.clock);
        self.record.format = folder::FORMAT;
        self.record
    }
}

/// Core and priority of measured threads, to hand to them.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    cores: BTreeMap<String, usize>,
    priority: i32,
}

impl Places {
    /// Those of a scenario.
    pub(crate) fn new(cores: &BTreeMap<String, usize>, section: &RunSection) -> Places {
        Places {
            cores: cores.clone(),
            priority: section.realtime.get(),
        }
    }

    /// The core of a role, `None` if it is left to the scheduler.
    pub(crate) fn core(&self, role: &str) -> Option<usize> {
        self.cores.get(role).copied()
    }

    /// Puts the calling thread where its role belongs; a sentence about what was not permitted.
    pub(crate) fn enter(&self, role: &str) -> Result<Option<String>, Failure> {
        if let Some(core) = self.core(role) {
            Cores::count()
                .pin(core)
                .map_err(|e| Failure::system(e.to_string()))?;
        }
        DelayWatch::begin(role);
        if self.priority == 0 {
            return Ok(None);
        }
        Ok(affinity::set_realtime(self.priority)
            .err()
            .map(|e| format!("Threads have no real-time priority: {e}.")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_build_but_the_one_that_is_handed_on_is_named_in_the_report() {
        assert_eq!(crate::not_what_ships("dist+pgo"), None);
        for profile in ["dist", "release", "debug"] {
            let sentence = crate::not_what_ships(profile).expect("a sentence");
            assert!(
                sentence.contains(&format!("`{profile}`")) && sentence.contains("cargo xtask pgo"),
                "{sentence}"
            );
            let record = built_with(RunRecord::default(), profile);
            let page = tickwire_lab::report_of(&record).to_html();
            assert!(page.contains(&format!("profile `{profile}`")), "{page}");
        }
    }
}
