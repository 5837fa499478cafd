//! The machine, for reports: a latency figure means nothing without it; what harms latency on it (`checks`),
//! and changing that (`tune`). Everything is read from files under a root folder, so that tests can bring
//! machines of their own; what cannot be read is left out.

mod checks;
mod files;
mod kernel_path;
mod tune;

use std::path::Path;

pub use checks::{CHECKS, Check, Finding, Fix, Hot, Verdict, Write, check_all};
pub use tune::{Change, Journal, JournalError, Outcome, apply, undo};

use crate::affinity::Cores;
use crate::clock::{Clock, ClockSource};
use files::Files;

/// Processor time since the machine started, all cores together, in the kernel's ticks (`proc(5)`,
/// /proc/stat).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessorTime {
    /// What the host of a virtual machine took while a core had work.
    stolen: u64,
    all: u64,
}

impl ProcessorTime {
    /// Until now; `None` where the kernel does not say.
    pub fn now() -> Option<ProcessorTime> {
        ProcessorTime::read(&Files::new(Path::new("/")))
    }

    fn read(files: &Files) -> Option<ProcessorTime> {
        let stat = files.text("proc/stat")?;
        let numbers = stat.lines().next()?.split_whitespace().skip(1);
        let ticks: Vec<u64> = numbers.map_while(|n| n.parse().ok()).take(8).collect();
        Some(ProcessorTime {
            stolen: *ticks.get(7)?,
            all: ticks.iter().sum(),
        })
    }

    /// The share that the host took since then, in a million.
    pub fn stolen_ppm_since(self, earlier: ProcessorTime) -> u32 {
        let stolen = u128::from(self.stolen.saturating_sub(earlier.stolen));
        let all = u128::from(self.all.saturating_sub(earlier.all)).max(1);
        (stolen * 1_000_000 / all).min(1_000_000) as u32
    }
}

/// How long the calling thread was ready to run and had no core, nanoseconds since it began: the second
/// number of schedstat(5). `None` where the kernel does not count it.
pub fn run_delay_ns() -> Option<u64> {
    run_delay_of(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// The same of every thread of a process, by name. Empty where the kernel does not count it, or the process
/// is gone.
pub fn run_delays_of_process(pid: u32) -> Vec<(String, u64)> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let delay = |task: std::path::PathBuf| -> Option<(String, u64)> {
        let name = std::fs::read_to_string(task.join("comm")).ok()?;
        let delay = run_delay_of(&std::fs::read_to_string(task.join("schedstat")).ok()?)?;
        Some((name.trim().to_owned(), delay))
    };
    tasks.flatten().filter_map(|task| delay(task.path())).collect()
}

/// How long threads of another process had no core, from a moment on: those that are pinned to one core, and
/// the first one, which is what other work of the machine takes from them.
#[derive(Clone, Debug)]
pub struct ProcessDelays {
    pid: u32,
    /// Thread id and what it had waited.
    begun: Vec<(u32, u64)>,
}

impl ProcessDelays {
    /// From now on. Reads a few files of each thread: not for where time counts.
    pub fn begin(pid: u32) -> ProcessDelays {
        ProcessDelays {
            pid,
            begun: watched(pid).into_iter().map(|(id, _, ns)| (id, ns)).collect(),
        }
    }

    /// Since then, nanoseconds, as rows of a repetition: the first thread by `role`, others with their names
    /// behind it. A thread that began later has waited all of its time. Empty where the kernel does not count
    /// it, or the process is gone.
    pub fn since(&self, role: &str) -> Vec<(String, u64)> {
        let before = |id: u32| self.begun.iter().find(|row| row.0 == id).map_or(0, |row| row.1);
        let rows = watched(self.pid).into_iter().map(|(id, name, now)| {
            let role = match id == self.pid {
                true => role.to_owned(),
                false => format!("{role} ({name})"),
            };
            (role, now.saturating_sub(before(id)))
        });
        rows.collect()
    }
}

/// Id, name and run delay of the first thread of a process, and of those pinned to one core.
fn watched(pid: u32) -> Vec<(u32, String, u64)> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let row = |entry: std::fs::DirEntry| -> Option<(u32, String, u64)> {
        let read = |file: &str| std::fs::read_to_string(entry.path().join(file)).ok();
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        if id != pid && !is_on_one_core(&read("status")?) {
            return None;
        }
        Some((
            id,
            read("comm")?.trim().to_owned(),
            run_delay_of(&read("schedstat")?)?,
        ))
    };
    let mut rows: Vec<_> = tasks.flatten().filter_map(row).collect();
    rows.sort_unstable();
    rows
}

/// Whether proc_pid_status(5) allows a thread one core only.
fn is_on_one_core(status: &str) -> bool {
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.is_some_and(|list| list.trim().parse::<u32>().is_ok())
}

/// Time on a core, time waiting for one (nanoseconds both), turns.
fn run_delay_of(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

/// What is known about the machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Host {
    facts: Vec<(&'static str, String)>,
    warnings: Vec<String>,
}

impl Host {
    /// This machine, with the clock in use.
    pub fn describe(clock: &Clock) -> Host {
        let mut host = Host::read(Path::new("/"));
        let cores = Cores::count().usable();
        host.facts.push(("cores for this process", list(cores)));
        let ticks = match clock.source() {
            ClockSource::Tsc => format!("tsc, {:.3} GHz", clock.frequency_hz() as f64 / 1e9),
            ClockSource::Kernel => "clock_gettime".to_owned(),
        };
        host.facts.push(("stamps from", ticks));
        host.warnings.extend(clock.warning().map(str::to_owned));
        if cores.len() == 1 {
            host.warnings.push(
                "only one core: processes take turns, latencies include waiting for each other".to_owned(),
            );
        }
        host
    }

    /// The machine whose `/proc` and `/sys` are under `root`.
    pub fn read(root: &Path) -> Host {
        let files = Files::new(root);
        let mut host = Host::default();
        let cpuinfo = files.text("proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = cpuinfo
                .lines()
                .find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
            line.and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
        };
        let cpu = "sys/devices/system/cpu";
        let flags = field("flags").unwrap_or_default();
        let virtual_machine = flags.split_whitespace().any(|flag| flag == "hypervisor");
        let governor = files.text(&format!("{cpu}/cpu0/cpufreq/scaling_governor"));
        let isolated = files.text(&format!("{cpu}/isolated"));
        let threads = match files.text(&format!("{cpu}/smt/active")).as_deref() {
            Some("1") => Some("two per core".to_owned()),
            Some(_) => Some("one per core".to_owned()),
            None => None,
        };
        for (name, value) in [
            ("processor", field("model name")),
            ("machine", virtual_machine.then(|| "virtual".to_owned())),
            ("cores online", files.text(&format!("{cpu}/online"))),
            (
                "isolated cores",
                isolated.clone().map(|cores| {
                    if cores.is_empty() {
                        "none".to_owned()
                    } else {
                        cores
                    }
                }),
            ),
            ("hardware threads", threads),
            ("frequency governor", governor.clone()),
            ("memory", files.memory()),
            (
                "huge pages",
                files.choice("sys/kernel/mm/transparent_hugepage/enabled"),
            ),
            ("kernel", files.text("proc/sys/kernel/osrelease")),
            ("boot parameters", latency_parameters(&files)),
            ("mitigations", mitigations(&files, cpu)),
            (
                "kernel clock source",
                files.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            ),
            (
                "receive buffer limit",
                files
                    .text("proc/sys/net/core/rmem_max")
                    .map(|bytes| format!("{bytes} bytes")),
            ),
            ("load", files.load()),
        ] {
            host.facts.extend(value.map(|value| (name, value)));
        }
        if virtual_machine {
            host.warnings
                .push("a virtual machine: its host takes processor time away without notice".to_owned());
        }
        if let Some(governor) = governor.filter(|governor| governor != "performance") {
            host.warnings.push(format!(
                "the frequency governor is '{governor}': set 'performance' for steady latencies"
            ));
        }
        if isolated.is_some_and(|cores| cores.is_empty()) {
            host.warnings
                .push("no core is isolated: other work may run on the measured one".to_owned());
        }
        host
    }

    /// Names and values.
    pub fn facts(&self) -> &[(&'static str, String)] {
        &self.facts
    }

    /// What makes figures from this machine worse or less certain, a sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// The boot parameters that decide about isolation, ticks, idle states and mitigations.
fn latency_parameters(files: &Files) -> Option<String> {
    const NAMES: [&str; 9] = [
        "isolcpus",
        "nohz_full",
        "rcu_nocbs",
        "mitigations",
        "idle",
        "intel_idle.max_cstate",
        "processor.max_cstate",
        "irqaffinity",
        "skew_tick",
    ];
    let line = files.text("proc/cmdline")?;
    let chosen = line
        .split_whitespace()
        .filter(|word| NAMES.contains(&word.split('=').next().unwrap_or("")));
    let chosen: Vec<&str> = chosen.collect();
    Some(if chosen.is_empty() {
        "none that concern latency".to_owned()
    } else {
        chosen.join(" ")
    })
}

/// The processor faults that the kernel works around, which makes system calls dearer.
fn mitigations(files: &Files, cpu: &str) -> Option<String> {
    let folder = format!("{cpu}/vulnerabilities");
    let names = files.names(&folder);
    if names.is_empty() {
        return None;
    }
    let active = names.into_iter().filter(|name| {
        files
            .text(&format!("{folder}/{name}"))
            .is_some_and(|text| text.starts_with("Mitigation"))
    });
    let mut active: Vec<String> = active.collect();
    active.sort();
    Some(if active.is_empty() {
        "none active".to_owned()
    } else {
        active.join(", ")
    })
}

/// `0-3, 8`: ascending numbers with runs drawn together.
pub(crate) fn list(cores: &[usize]) -> String {
    let runs = cores.chunk_by(|a, b| b - a == 1).map(|run| match run {
        [alone] => alone.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    runs.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_time_a_thread_waits_for_a_core_is_read_and_only_grows() {
        assert_eq!(run_delay_of("9000 1234 7\n"), Some(1_234));
        assert_eq!(run_delay_of(""), None);
        if let Some(before) = run_delay_ns() {
            std::thread::yield_now();
            assert!(run_delay_ns().is_some_and(|now| now >= before));
            assert!(!run_delays_of_process(std::process::id()).is_empty());
        }
        assert!(run_delays_of_process(u32::MAX).is_empty());
    }

    #[test]
    fn what_a_pinned_thread_and_the_first_one_of_a_process_wait_is_counted_from_a_moment_on() {
        assert!(is_on_one_core("Name:\tx\nCpus_allowed_list:\t3\n"));
        assert!(!is_on_one_core("Cpus_allowed_list:\t0-3\n"));
        assert!(!is_on_one_core("Name:\tx\n"));
        assert!(ProcessDelays::begin(u32::MAX).since("x").is_empty());
        if run_delay_ns().is_none() {
            return tickwire_testdata::not_tested("this kernel does not count run delays");
        }
        let core = Cores::count().usable()[0];
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let pinned = std::thread::Builder::new()
            .name("pinned-one".to_owned())
            .spawn(move || {
                Cores::count().pin(core).expect("available");
                tell.send(()).expect("somebody waits");
                let _ = ended.recv();
            });
        told.recv().expect("it is pinned");
        let delays = ProcessDelays::begin(std::process::id());
        let rows = delays.since("trader");
        let names: Vec<&str> = rows.iter().map(|row| row.0.as_str()).collect();
        assert!(
            names.contains(&"trader") && names.contains(&"trader (pinned-one)"),
            "{names:?}"
        );
        drop(end);
        pinned.expect("it began").join().expect("no panic");
    }

    /// A folder of files, removed when dropped.
    pub(crate) struct Tree(pub(crate) PathBuf);

    impl Tree {
        pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Tree {
            let root = std::env::temp_dir().join(format!("tickwire-host-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().expect("a folder")).expect("created");
                fs::write(path, text).expect("written");
            }
            Tree(root)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_the_host_takes_is_a_share_of_all_time() {
        let at = |name: &str, stat: &str| {
            let tree = Tree::new(name, &[("proc/stat", stat)]);
            ProcessorTime::read(&Files::new(&tree.0))
        };
        let before = at("stolen-before", "cpu  100 0 50 800 0 0 0 50 0 0\ncpu0 1 2 3\n").expect("it says");
        let after = at("stolen-after", "cpu  600 0 50 1200 0 0 0 150 0 0\n").expect("it says");
        assert_eq!(after.stolen_ppm_since(before), 100_000);
        assert_eq!(
            (after.stolen_ppm_since(after), before.stolen_ppm_since(after)),
            (0, 0)
        );
        assert_eq!(at("stolen-old", "cpu 1 2 3 4\n"), None);
    }

    #[test]
    fn a_tuned_machine_is_described_without_warnings() {
        let tree = Tree::new(
            "tuned",
            &[
                (
                    "proc/cpuinfo",
                    "processor\t: 0\nmodel name\t: Example 9000\nflags\t\t: fpu tsc\n",
                ),
                ("proc/meminfo", "MemTotal:       65801356 kB\nMemFree: 1 kB\n"),
                ("proc/loadavg", "0.10 0.20 0.30 2/345 6789\n"),
                ("proc/cmdline", "quiet isolcpus=4-7 root=/dev/sda nohz_full=4-7\n"),
                (
                    "sys/devices/system/cpu/vulnerabilities/retbleed",
                    "Mitigation: untrained return thunk\n",
                ),
                (
                    "sys/devices/system/cpu/vulnerabilities/meltdown",
                    "Not affected\n",
                ),
                ("sys/devices/system/cpu/online", "0-15\n"),
                ("sys/devices/system/cpu/isolated", "4-7\n"),
                ("sys/devices/system/cpu/smt/active", "0\n"),
                (
                    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                    "performance\n",
                ),
                (
                    "sys/kernel/mm/transparent_hugepage/enabled",
                    "always [madvise] never\n",
                ),
            ],
        );
        let host = Host::read(&tree.0);
        assert_eq!(host.warnings(), [""; 0]);
        let expected = [
            ("processor", "Example 9000"),
            ("cores online", "0-15"),
            ("isolated cores", "4-7"),
            ("hardware threads", "one per core"),
            ("frequency governor", "performance"),
            ("memory", "62.8 GiB"),
            ("huge pages", "madvise"),
            ("boot parameters", "isolcpus=4-7 nohz_full=4-7"),
            ("mitigations", "retbleed"),
            ("load", "0.10 (1 minute), 2/345 running now"),
        ];
        assert_eq!(
            host.facts(),
            expected.map(|(name, value)| (name, value.to_owned()))
        );
    }

    #[test]
    fn what_spoils_figures_is_named() {
        let tree = Tree::new(
            "poor",
            &[
                ("proc/cpuinfo", "flags : hypervisor\n"),
                ("sys/devices/system/cpu/isolated", "\n"),
                (
                    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                    "powersave\n",
                ),
            ],
        );
        let warnings = Host::read(&tree.0).warnings().join("\n");
        assert!(
            ["virtual machine", "'powersave'", "no core is isolated"]
                .iter()
                .all(|w| warnings.contains(w)),
            "{warnings}"
        );
    }

    #[test]
    fn a_machine_that_tells_nothing_is_no_error() {
        assert_eq!(Host::read(Path::new("/nonexistent")), Host::default());
    }

    #[test]
    fn this_machine_has_a_processor_and_cores() {
        let host = Host::describe(&Clock::calibrate());
        let has = |name| {
            host.facts()
                .iter()
                .any(|(n, value)| *n == name && !value.is_empty())
        };
        assert!(
            has("kernel") && has("cores for this process") && has("stamps from"),
            "{host:?}"
        );
    }

    #[test]
    fn runs_of_cores_are_drawn_together() {
        for (cores, text) in [(&[0][..], "0"), (&[0, 1, 2, 5, 7, 8], "0-2, 5, 7-8"), (&[], "")] {
            assert_eq!(list(cores), text);
        }
    }
}
