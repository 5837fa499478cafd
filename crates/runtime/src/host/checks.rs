//! What harms latency on a machine: a table of settings, each with what it costs, how it is seen, and how it
//! is changed.
//!
//! Sources: Linux
//! `Documentation/admin-guide/{cpu-isolation.rst,kernel-parameters.txt,sysctl/,mm/transhuge.rst,pm/cpuidle.rst,pm/cpufreq.rst}`,
//! `Documentation/core-api/irq/irq-affinity.rst`, `Documentation/networking/napi.rst`,
//! `Documentation/timers/no_hz.rst`, `Documentation/scheduler/sched-rt-group.rst`.

use std::path::Path;

use super::files::{Files, mask, parse_list, parse_mask};
use super::kernel_path::{compiler, rights};
use super::{ProcessorTime, list};

const CPU: &str = "sys/devices/system/cpu";

/// How a setting stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It costs latency.
    Harmful,
    /// Worth knowing; changing it has a price of its own, so that it is changed only when it is named.
    Choice,
    /// This machine does not show it.
    Unseen,
}

impl Verdict {
    /// A word for it, as reports show it.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Good => "good",
            Verdict::Harmful => "harmful",
            Verdict::Choice => "choice",
            Verdict::Unseen => "unseen",
        }
    }
}

/// How a setting is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fix {
    /// By writing files, which [`super::apply`] does.
    Files(&'static str),
    /// By a parameter of the kernel, at the next boot.
    Boot(&'static str),
    /// By a command of somebody who may.
    Command(&'static str),
    /// Not on this machine.
    Elsewhere(&'static str),
}

impl Fix {
    /// What to do, for people.
    pub const fn text(self) -> &'static str {
        match self {
            Fix::Files(text) | Fix::Boot(text) | Fix::Command(text) | Fix::Elsewhere(text) => text,
        }
    }

    /// Who does it: `tune`, `boot`, `command` or `elsewhere`.
    pub const fn kind(self) -> &'static str {
        match self {
            Fix::Files(_) => "tune",
            Fix::Boot(_) => "boot",
            Fix::Command(_) => "command",
            Fix::Elsewhere(_) => "elsewhere",
        }
    }
}

/// A file to be written so that a setting becomes good.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// From the root folder, without the leading `/`.
    pub path: String,
    /// What is in it now.
    pub before: String,
    /// What is to be in it.
    pub after: String,
}

/// What was found of one setting.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Which.
    pub check: &'static Check,
    /// How it stands.
    pub verdict: Verdict,
    /// What was seen, or why it was not.
    pub value: String,
    /// What would change it, if files do.
    pub writes: Vec<Write>,
}

/// The cores of threads that wait for packets, and all others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hot {
    /// Ascending.
    pub cores: Vec<usize>,
    /// The other cores that are online, ascending; every core if none is left.
    pub others: Vec<usize>,
}

impl Hot {
    /// `wanted`, else the isolated cores, else all but the first, of the machine under `root`.
    pub fn choose(root: &Path, wanted: Option<&[usize]>) -> Hot {
        let files = Files::new(root);
        let online = files.cores(&format!("{CPU}/online")).unwrap_or_default();
        let isolated = files.cores(&format!("{CPU}/isolated")).unwrap_or_default();
        let mut cores = match wanted {
            Some(cores) => cores.to_vec(),
            None if !isolated.is_empty() => isolated,
            None => online.iter().skip(1).copied().collect(),
        };
        cores.sort_unstable();
        cores.dedup();
        let mut others: Vec<usize> = online
            .iter()
            .copied()
            .filter(|core| !cores.contains(core))
            .collect();
        if others.is_empty() {
            others = online;
        }
        Hot { cores, others }
    }
}

/// A setting.
pub struct Check {
    /// How it is named on the command line.
    pub id: &'static str,
    /// A few words.
    pub title: &'static str,
    /// What it costs when it stands wrong.
    pub cost: &'static str,
    /// How it is changed.
    pub fix: Fix,
    /// What it is, for somebody who has not met it.
    pub about: &'static str,
    look: fn(&Files, &Hot) -> Seen,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

/// What a look at the machine gives.
pub(super) struct Seen {
    pub(super) verdict: Verdict,
    pub(super) value: String,
    writes: Vec<Write>,
}

impl Seen {
    pub(super) fn new(verdict: Verdict, value: impl Into<String>) -> Seen {
        Seen {
            verdict,
            value: value.into(),
            writes: Vec::new(),
        }
    }

    pub(super) fn good(value: impl Into<String>) -> Seen {
        Seen::new(Verdict::Good, value)
    }

    pub(super) fn unseen(why: impl Into<String>) -> Seen {
        Seen::new(Verdict::Unseen, why)
    }

    /// Harmful if it holds, else good.
    fn harmful_if(is_harmful: bool, value: impl Into<String>) -> Seen {
        match is_harmful {
            true => Seen::new(Verdict::Harmful, value),
            false => Seen::good(value),
        }
    }

    pub(super) fn with(mut self, writes: Vec<Write>) -> Seen {
        self.writes = writes;
        self
    }
}

/// One file that ought to hold `wanted`, or a number for which `is_good`.
fn number(files: &Files, path: &str, wanted: i64, is_good: impl Fn(i64) -> bool, unit: &str) -> Seen {
    let Some(now) = files.number(path) else {
        return Seen::unseen(format!("no /{path}"));
    };
    let write = Write {
        path: path.into(),
        before: now.to_string(),
        after: wanted.to_string(),
    };
    let value = format!("{now}{unit}");
    match is_good(now) {
        true => Seen::good(value),
        false => Seen::new(Verdict::Harmful, value).with(vec![write]),
    }
}

/// Files of the same name below numbered folders, and what is in them.
fn by_core(files: &Files, inner: &str) -> Vec<(String, String)> {
    let cores = files.names(CPU).into_iter().filter(|name| {
        name.strip_prefix("cpu")
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    });
    let paths = cores.map(|core| format!("{CPU}/{core}/{inner}"));
    paths
        .filter_map(|path| Some((path.clone(), files.text(&path)?)))
        .collect()
}

fn is_virtual(files: &Files) -> bool {
    let info = files.text("proc/cpuinfo").unwrap_or_default();
    let flags = info
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == "hypervisor")
}

fn host_decides(files: &Files, what: &str) -> Seen {
    Seen::unseen(match is_virtual(files) {
        true => format!("{what}: the host of this virtual machine decides"),
        false => what.into(),
    })
}

fn smt(files: &Files, _: &Hot) -> Seen {
    let path = format!("{CPU}/smt/control");
    match files.text(&path).as_deref() {
        Some("on") => Seen::new(Verdict::Harmful, "on: two threads share a core").with(vec![Write {
            path,
            before: "on".into(),
            after: "off".into(),
        }]),
        Some("off" | "forceoff") => Seen::good("off"),
        Some(_) if is_virtual(files) => host_decides(files, "whether two of these cores are threads of one"),
        Some(_) => Seen::good("this processor has one thread a core"),
        None => Seen::unseen(format!("no /{path}")),
    }
}

fn governor(files: &Files, _: &Hot) -> Seen {
    let all = by_core(files, "cpufreq/scaling_governor");
    let Some((_, first)) = all.first() else {
        return host_decides(files, "no frequency scaling");
    };
    let wrong: Vec<Write> = all
        .iter()
        .filter(|(_, now)| now != "performance")
        .map(|(path, now)| Write {
            path: path.clone(),
            before: now.clone(),
            after: "performance".into(),
        })
        .collect();
    match wrong.first() {
        Some(write) => Seen::new(
            Verdict::Harmful,
            format!("{} on {} of {} cores", write.before, wrong.len(), all.len()),
        )
        .with(wrong),
        None => Seen::good(first.clone()),
    }
}

fn energy_bias(files: &Files, _: &Hot) -> Seen {
    let all = by_core(files, "power/energy_perf_bias");
    if all.is_empty() {
        return host_decides(files, "no energy bias");
    }
    let wrong: Vec<Write> = all
        .iter()
        .filter(|(_, now)| now != "0")
        .map(|(path, now)| Write {
            path: path.clone(),
            before: now.clone(),
            after: "0".into(),
        })
        .collect();
    match wrong.first() {
        Some(write) => {
            Seen::new(Verdict::Harmful, format!("{} (0 is performance)", write.before)).with(wrong)
        }
        None => Seen::good("0, performance"),
    }
}

/// Deeper states than this take longer to leave than a packet takes to handle, microseconds.
const IDLE_EXIT_MAX_US: i64 = 2;

fn idle_states(files: &Files, hot: &Hot) -> Seen {
    let mut writes = Vec::new();
    let (mut deepest, mut deepest_name, mut seen) = (0, String::new(), false);
    for core in &hot.cores {
        let folder = format!("{CPU}/cpu{core}/cpuidle");
        for state in files.names(&folder) {
            let file = |name: &str| format!("{folder}/{state}/{name}");
            let Some(exit_us) = files.number(&file("latency")) else {
                continue;
            };
            seen = true;
            let off = files.text(&file("disable")).unwrap_or_default();
            if exit_us <= IDLE_EXIT_MAX_US || off != "0" {
                continue;
            }
            if exit_us > deepest {
                (deepest, deepest_name) = (
                    exit_us,
                    files.text(&file("name")).unwrap_or_else(|| state.clone()),
                );
            }
            writes.push(Write {
                path: file("disable"),
                before: off,
                after: "1".into(),
            });
        }
    }
    match (seen, writes.is_empty()) {
        (false, _) => host_decides(files, "no idle states"),
        (true, true) => Seen::good(format!("none that takes over {IDLE_EXIT_MAX_US} us to leave")),
        (true, false) => Seen::new(
            Verdict::Harmful,
            format!("down to {deepest_name}, {deepest} us to leave"),
        )
        .with(writes),
    }
}

fn turbo(files: &Files, _: &Hot) -> Seen {
    let intel = format!("{CPU}/intel_pstate/no_turbo");
    let boost = format!("{CPU}/cpufreq/boost");
    let (path, on, off) = match (files.text(&intel), files.text(&boost)) {
        (Some(now), _) => (intel, now == "0", "1"),
        (None, Some(now)) => (boost, now == "1", "0"),
        (None, None) => return host_decides(files, "no switch for it"),
    };
    match on {
        true => Seen::new(Verdict::Choice, "on").with(vec![Write {
            before: if off == "1" { "0".into() } else { "1".into() },
            path,
            after: off.into(),
        }]),
        false => Seen::good("off"),
    }
}

fn interrupts(files: &Files, hot: &Hot) -> Seen {
    let numbers: Vec<String> = files
        .names("proc/irq")
        .into_iter()
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        .collect();
    if numbers.is_empty() {
        return Seen::unseen("no /proc/irq");
    }
    let after = list(&hot.others).replace(' ', "");
    let (mut writes, mut on_hot) = (Vec::new(), 0);
    for number in &numbers {
        let path = format!("proc/irq/{number}/smp_affinity_list");
        let Some(before) = files.text(&path) else { continue };
        let effective = files
            .cores(&format!("proc/irq/{number}/effective_affinity_list"))
            .filter(|cores| !cores.is_empty());
        let may = effective.or_else(|| parse_list(&before)).unwrap_or_default();
        if may.iter().any(|core| hot.cores.contains(core)) && hot.others != hot.cores {
            on_hot += 1;
            writes.push(Write {
                path,
                before,
                after: after.clone(),
            });
        }
    }
    Seen::harmful_if(
        on_hot > 0,
        format!(
            "{on_hot} of {} interrupts come to cores {}",
            numbers.len(),
            list(&hot.cores)
        ),
    )
    .with(writes)
}

fn default_interrupts(files: &Files, hot: &Hot) -> Seen {
    mask_without(files, "proc/irq/default_smp_affinity", hot)
}

fn kernel_work(files: &Files, hot: &Hot) -> Seen {
    mask_without(files, "sys/devices/virtual/workqueue/cpumask", hot)
}

/// A mask of cores that is to have none of the hot ones.
fn mask_without(files: &Files, path: &str, hot: &Hot) -> Seen {
    let Some(before) = files.text(path) else {
        return Seen::unseen(format!("no /{path}"));
    };
    let now = parse_mask(&before).unwrap_or_default();
    let is_harmful = hot.others != hot.cores && now.iter().any(|core| hot.cores.contains(core));
    let write = Write {
        path: path.into(),
        before,
        after: mask(&hot.others),
    };
    Seen::harmful_if(is_harmful, format!("cores {}", list(&now))).with(if is_harmful {
        vec![write]
    } else {
        Vec::new()
    })
}

fn irqbalance(files: &Files, _: &Hot) -> Seen {
    let is_running = files
        .names("proc")
        .iter()
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        .any(|pid| files.text(&format!("proc/{pid}/comm")).as_deref() == Some("irqbalance"));
    Seen::harmful_if(is_running, if is_running { "running" } else { "not running" })
}

fn isolated(files: &Files, hot: &Hot) -> Seen {
    cores_within(files, &format!("{CPU}/isolated"), hot)
}

fn tickless(files: &Files, hot: &Hot) -> Seen {
    cores_within(files, &format!("{CPU}/nohz_full"), hot)
}

/// A list of cores that is to have all of the hot ones.
fn cores_within(files: &Files, path: &str, hot: &Hot) -> Seen {
    // `(null)` is how some kernels write an empty list.
    let Some(text) = files.text(path) else {
        return Seen::unseen(format!("this kernel has no /{path}"));
    };
    let has = parse_list(&text).unwrap_or_default();
    let missing: Vec<usize> = hot
        .cores
        .iter()
        .copied()
        .filter(|core| !has.contains(core))
        .collect();
    let value = match (has.is_empty(), missing.is_empty()) {
        (true, _) => "none".into(),
        (false, true) => list(&has),
        (false, false) => format!("{}, not {}", list(&has), list(&missing)),
    };
    Seen::harmful_if(!missing.is_empty() || has.is_empty(), value)
}

fn callbacks(files: &Files, hot: &Hot) -> Seen {
    let Some(line) = files.text("proc/cmdline") else {
        return Seen::unseen("no /proc/cmdline");
    };
    let has = line.split_whitespace().find_map(|word| {
        word.strip_prefix("rcu_nocbs=")
            .or_else(|| word.strip_prefix("nohz_full="))
    });
    let cores = has.and_then(parse_list).unwrap_or_default();
    let is_off = hot.cores.iter().all(|core| cores.contains(core)) || has == Some("all");
    Seen::harmful_if(
        !is_off || hot.cores.is_empty(),
        if is_off {
            format!("moved off cores {}", list(&cores))
        } else {
            "run on every core".into()
        },
    )
}

fn numa(files: &Files, hot: &Hot) -> Seen {
    let nodes: Vec<String> = files
        .names("sys/devices/system/node")
        .into_iter()
        .filter(|name| {
            name.strip_prefix("node")
                .is_some_and(|n| n.parse::<u32>().is_ok())
        })
        .collect();
    if nodes.len() < 2 {
        return match nodes.is_empty() {
            true => Seen::unseen("no memory nodes"),
            false => Seen::good("one node"),
        };
    }
    let node_of = |core: &usize| {
        nodes.iter().find(|node| {
            let cores = files.cores(&format!("sys/devices/system/node/{node}/cpulist"));
            cores.is_some_and(|cores| cores.contains(core))
        })
    };
    let mut used: Vec<&String> = hot.cores.iter().filter_map(node_of).collect();
    used.dedup();
    let far: Vec<String> = cards(files)
        .into_iter()
        .filter(|card| {
            let node = files.number(&format!("sys/class/net/{card}/device/numa_node"));
            node.is_some_and(|node| node >= 0 && !used.iter().any(|used| **used == format!("node{node}")))
        })
        .collect();
    let value = match far.is_empty() {
        true => format!(
            "{} nodes, cores {} on {}",
            nodes.len(),
            list(&hot.cores),
            used.len()
        ),
        false => format!(
            "{} nodes, {} on another than cores {}",
            nodes.len(),
            far.join(", "),
            list(&hot.cores)
        ),
    };
    Seen::harmful_if(used.len() > 1 || !far.is_empty(), value)
}

fn numa_balancing(files: &Files, _: &Hot) -> Seen {
    number(files, "proc/sys/kernel/numa_balancing", 0, |n| n == 0, "")
}

fn huge_pages(files: &Files, _: &Hot) -> Seen {
    let folder = "sys/kernel/mm/transparent_hugepage";
    let mut writes = Vec::new();
    let Some(enabled) = files.choice(&format!("{folder}/enabled")) else {
        return Seen::unseen(format!("no /{folder}"));
    };
    let defrag = files.choice(&format!("{folder}/defrag")).unwrap_or_default();
    for (name, now) in [("enabled", &enabled), ("defrag", &defrag)] {
        if now == "always" {
            writes.push(Write {
                path: format!("{folder}/{name}"),
                before: now.clone(),
                after: "madvise".into(),
            });
        }
    }
    Seen::harmful_if(!writes.is_empty(), format!("{enabled}, defragmented {defrag}")).with(writes)
}

fn same_page_merging(files: &Files, _: &Hot) -> Seen {
    number(files, "sys/kernel/mm/ksm/run", 0, |n| n != 1, "")
}

fn mitigations(files: &Files, _: &Hot) -> Seen {
    let folder = format!("{CPU}/vulnerabilities");
    let names = files.names(&folder);
    if names.is_empty() {
        return Seen::unseen(format!("no /{folder}"));
    }
    let on: Vec<&String> = names
        .iter()
        .filter(|name| {
            let text = files.text(&format!("{folder}/{name}")).unwrap_or_default();
            text.starts_with("Mitigation")
        })
        .collect();
    match on.is_empty() {
        true => Seen::good("none in force"),
        false => Seen::new(
            Verdict::Choice,
            format!(
                "{} in force: {}",
                on.len(),
                on.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(", ")
            ),
        ),
    }
}

fn timer_migration(files: &Files, _: &Hot) -> Seen {
    number(files, "proc/sys/kernel/timer_migration", 0, |n| n == 0, "")
}

fn swapping(files: &Files, _: &Hot) -> Seen {
    let swaps = files.text("proc/swaps").unwrap_or_default();
    if swaps.lines().count() < 2 {
        return Seen::good("no swap");
    }
    number(files, "proc/sys/vm/swappiness", 0, |n| n <= 1, " of 200")
}

fn statistics(files: &Files, _: &Hot) -> Seen {
    number(files, "proc/sys/vm/stat_interval", 60, |n| n >= 10, " s")
}

fn watchdog(files: &Files, _: &Hot) -> Seen {
    number(files, "proc/sys/kernel/watchdog", 0, |n| n == 0, "")
}

fn realtime_throttle(files: &Files, _: &Hot) -> Seen {
    number(
        files,
        "proc/sys/kernel/sched_rt_runtime_us",
        -1,
        |n| n == -1,
        " us of each second",
    )
}

fn realtime_limit(files: &Files, _: &Hot) -> Seen {
    let limits = files.text("proc/self/limits").unwrap_or_default();
    let soft = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next().map(str::to_owned)
    };
    let (Some(priority), Some(memory)) = (soft("Max realtime priority"), soft("Max locked memory")) else {
        return Seen::unseen("no /proc/self/limits");
    };
    // Root may raise both.
    let is_root = files.text("proc/self/status").is_some_and(|s| {
        s.lines()
            .any(|l| l.starts_with("Uid:") && l.split_whitespace().nth(2) == Some("0"))
    });
    Seen::harmful_if(
        !is_root && (priority == "0" || memory != "unlimited"),
        format!(
            "priority {priority}, locked memory {memory}{}",
            if is_root { ", root may raise both" } else { "" }
        ),
    )
}

fn clock_source(files: &Files, _: &Hot) -> Seen {
    let folder = "sys/devices/system/clocksource/clocksource0";
    let Some(now) = files.text(&format!("{folder}/current_clocksource")) else {
        return Seen::unseen(format!("no /{folder}"));
    };
    let available = files
        .text(&format!("{folder}/available_clocksource"))
        .unwrap_or_default();
    let can = available.split_whitespace().any(|name| name == "tsc");
    let write = Write {
        path: format!("{folder}/current_clocksource"),
        before: now.clone(),
        after: "tsc".into(),
    };
    let is_harmful = now != "tsc";
    Seen::harmful_if(is_harmful, now).with(if is_harmful && can {
        vec![write]
    } else {
        Vec::new()
    })
}

fn busy_poll(files: &Files, _: &Hot) -> Seen {
    let mut seen = number(files, "proc/sys/net/core/busy_read", 50, |n| n > 0, " us");
    let poll = number(files, "proc/sys/net/core/busy_poll", 50, |n| n > 0, " us");
    seen.writes.extend(poll.writes);
    if seen.verdict == Verdict::Harmful {
        // A core that spins has a price.
        seen.verdict = Verdict::Choice;
    }
    seen
}

/// A burst of a feed: a tenth of a second at 2 Gbit/s.
const BUFFER: i64 = 32 << 20;

fn receive_buffer(files: &Files, _: &Hot) -> Seen {
    number(
        files,
        "proc/sys/net/core/rmem_max",
        BUFFER,
        |n| n >= BUFFER,
        " bytes",
    )
}

/// Network interfaces with a device behind them.
fn cards(files: &Files) -> Vec<String> {
    let mut names = files.names("sys/class/net");
    names.retain(|name| files.has(&format!("sys/class/net/{name}/device")));
    names
}

fn card_queues(files: &Files, _: &Hot) -> Seen {
    let cards = cards(files);
    if cards.is_empty() {
        return Seen::unseen("no network interface with a device");
    }
    let mut writes = Vec::new();
    for card in &cards {
        let path = format!("sys/class/net/{card}/gro_flush_timeout");
        if let Some(ns) = files.number(&path).filter(|ns| *ns != 0) {
            writes.push(Write {
                path,
                before: ns.to_string(),
                after: "0".into(),
            });
        }
    }
    Seen::harmful_if(
        !writes.is_empty(),
        match writes.first() {
            Some(write) => format!("{}: held for {} ns", write.path, write.before),
            None => format!("{}: not held back by the kernel", cards.join(", ")),
        },
    )
    .with(writes)
}

fn coalescing(files: &Files, _: &Hot) -> Seen {
    match cards(files) {
        cards if cards.is_empty() => Seen::unseen("no network interface with a device"),
        cards => Seen::unseen(format!(
            "only the driver knows: `ethtool -c {0}`, `ethtool -g {0}`",
            cards.join("` and `ethtool -c ")
        )),
    }
}

fn steal(files: &Files, _: &Hot) -> Seen {
    let Some(time) = ProcessorTime::read(files) else {
        return Seen::unseen("no /proc/stat");
    };
    let share = time.stolen as f64 / time.all.max(1) as f64;
    Seen::harmful_if(
        share > 1e-4,
        format!("{:.3} % of the time since boot", share * 100.0),
    )
}

fn quota(files: &Files, _: &Hot) -> Seen {
    // Of the process's own group, or what a container sees as the root.
    let group = files.text("proc/self/cgroup").unwrap_or_default();
    let own = group
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))
        .unwrap_or_default();
    let path = [
        format!("sys/fs/cgroup/{own}/cpu.max"),
        "sys/fs/cgroup/cpu.max".into(),
    ];
    let Some(text) = path.iter().find_map(|path| files.text(path)) else {
        return Seen::good("none");
    };
    Seen::harmful_if(!text.starts_with("max"), text)
}

fn load(files: &Files, hot: &Hot) -> Seen {
    let text = files.text("proc/loadavg").unwrap_or_default();
    let Some(minute) = text.split_whitespace().next().and_then(|n| n.parse::<f64>().ok()) else {
        return Seen::unseen("no /proc/loadavg");
    };
    Seen::harmful_if(
        minute > hot.others.len() as f64,
        format!("{minute} over one minute"),
    )
}

macro_rules! checks {
    ($($id:literal $look:ident $title:literal $fix:expr; $cost:literal; $about:literal;)*) => {
        /// Every check, in the order of reports.
        pub static CHECKS: &[Check] = &[$(Check { id: $id, title: $title, cost: $cost, fix: $fix, about: $about, look: $look }),*];
    };
}

checks! {
    "smt" smt "hardware threads" Fix::Files("switch SMT off, here or in the firmware");
        "the neighbour thread takes cache, ports and buffers of the core whenever it runs";
        "With simultaneous multithreading two logical cores share one physical core. A thread that waits for packets is slowed by whatever runs on its sibling, at times nobody can predict.";
    "governor" governor "frequency governor" Fix::Files("set the performance governor");
        "tens of microseconds until a core that was slowed down is fast again";
        "The governor picks the frequency of a core. All but `performance` lower it when little happens, which is just before the packet that matters.";
    "energy-bias" energy_bias "energy bias" Fix::Files("set the energy bias to 0");
        "the processor itself holds frequency back";
        "A hint (IA32_ENERGY_PERF_BIAS) that tells the processor how much performance may be given away for energy; 0 gives nothing away.";
    "idle-states" idle_states "idle states" Fix::Files("disable the deep idle states of these cores");
        "the exit latency, on the first packet after every pause";
        "A core without work goes to sleep, and the deeper it sleeps the longer it takes to wake. Threads that spin never sleep; those that block wake as fast as the deepest state that is allowed.";
    "turbo" turbo "turbo" Fix::Files("switch turbo off for steadiness: `tickwire host tune --only turbo`");
        "frequency, and with it latency, changes with the load of the other cores";
        "Turbo is faster on average and less steady: how high a core may go depends on what the others do and how warm they are.";
    "irq-affinity" interrupts "interrupts" Fix::Files("move interrupts to the other cores");
        "2 to 10 us each time, on the core that handles packets";
        "An interrupt stops what runs on its core. Those of disks, timers and other cards can be sent elsewhere; interrupts that the kernel manages itself refuse to move, which is reported.";
    "irq-default" default_interrupts "interrupts of new devices" Fix::Files("set the default affinity to the other cores");
        "as for interrupts, once a device is added";
        "Where interrupts go that nobody has placed.";
    "irqbalance" irqbalance "irqbalance" Fix::Command("systemctl disable --now irqbalance");
        "puts interrupts back on any core, every ten seconds";
        "A service that spreads interrupts over all cores by load; it undoes what was placed by hand unless it is told otherwise.";
    "isolated" isolated "isolated cores" Fix::Boot("isolcpus=managed_irq,domain,CORES, or a cpuset partition of type isolated");
        "milliseconds, whenever the scheduler puts another task on the core";
        "The scheduler places no task on an isolated core by itself, so that a pinned thread has it alone.";
    "tickless" tickless "full-tickless cores" Fix::Boot("nohz_full=CORES");
        "1 to 5 us, 100 to 1000 times a second";
        "With one task on the core the periodic timer tick has nothing to do; nohz_full stops it.";
    "callbacks" callbacks "RCU callbacks" Fix::Boot("rcu_nocbs=CORES (nohz_full implies it)");
        "microseconds of deferred kernel work, at any time";
        "The kernel frees memory after a grace period on the core that asked for it, unless these callbacks are offloaded to threads elsewhere.";
    "kernel-work" kernel_work "unbound kernel work" Fix::Files("keep work queues off these cores");
        "microseconds of kernel work, at any time";
        "Work queues without a core of their own run wherever their mask allows.";
    "numa" numa "memory nodes" Fix::Elsewhere("pin the threads to cores of the network card's node: daemon.threads, `core` in the configuration");
        "a cache miss takes half as long again across the link between nodes";
        "With several memory nodes, threads, their memory and their network card belong on the same one.";
    "numa-balancing" numa_balancing "automatic NUMA balancing" Fix::Files("switch it off");
        "page faults on purpose, tens of microseconds each";
        "The kernel takes pages away to see who touches them, and moves them; threads that are pinned gain nothing.";
    "huge-pages" huge_pages "transparent huge pages" Fix::Files("madvise: only for programs that ask, as this one does");
        "a page fault may compact memory first, for milliseconds";
        "Huge pages save TLB misses. With `always`, every program gets them, and faults wait for the kernel to make room.";
    "ksm" same_page_merging "same-page merging" Fix::Files("stop it");
        "a write to a merged page copies it first";
        "The kernel looks for equal pages of programs that allow it and keeps one copy.";
    "mitigations" mitigations "mitigations of processor faults" Fix::Boot("mitigations=off, only where no code of others ever runs");
        "0.1 to 1 us for each system call, interrupt and switch of address space";
        "What keeps programs from reading each other's memory by speculative execution costs at each entry to the kernel. A machine that runs nothing but its owner's code behind a firewall can go without; it is a decision about security.";
    "timer-migration" timer_migration "timer migration" Fix::Files("switch it off");
        "timers of other cores fire on a core that is awake: the spinning one";
        "The kernel moves timers of idle cores to busy ones to let the idle sleep.";
    "swappiness" swapping "swap" Fix::Files("set vm.swappiness to 0, or switch swap off");
        "milliseconds for a page that was written out";
        "Memory that was not used for a while may be written to disk. This program locks nothing by itself but keeps what it needs at hand from the start.";
    "statistics" statistics "kernel statistics" Fix::Files("gather them once a minute");
        "a worker on every core, once each interval";
        "How often counters of memory are folded together, by a worker that runs on each core.";
    "watchdog" watchdog "lock-up detector" Fix::Files("switch it off");
        "a timer and a high-priority thread on every core, every four seconds";
        "It tells when a core no longer schedules. On a core that spins on purpose it only disturbs.";
    "rt-throttle" realtime_throttle "real-time throttling" Fix::Files("let real-time threads run all the time");
        "50 ms in each second are taken from a real-time thread that spins";
        "The kernel keeps a share of each second for tasks that are not real-time, so that a spinning real-time thread cannot take a machine with it.";
    "rt-limit" realtime_limit "limits of this user" Fix::Command("rtprio 99 and memlock unlimited for the user in /etc/security/limits.d, LimitRTPRIO= and LimitMEMLOCK= in a systemd unit");
        "no real-time priority, no memory that stays put";
        "What an ordinary user may ask for: a real-time scheduling class, and memory that is never written out.";
    "clock-source" clock_source "kernel clock source" Fix::Files("tsc, where the kernel trusts it");
        "reading the time becomes a system call or a read of a slow device: 0.1 to 2 us instead of 20 ns";
        "Where the kernel takes the time from. Only the processor's own counter can be read without leaving the program.";
    "busy-poll" busy_poll "busy polling of sockets" Fix::Files("net.core.busy_read and busy_poll 50: `tickwire host tune --only busy-poll`");
        "an interrupt and a wake-up, 5 to 30 us, for each packet that finds the reader waiting";
        "A reader that finds no packet polls the card's queue itself for so long before it sleeps; it costs processor time. Drivers must support it.";
    "receive-buffer" receive_buffer "receive buffer limit" Fix::Files("32 MiB");
        "packets of a burst are lost, and recovered later";
        "How much a socket may hold for a program that is late.";
    "gro-flush" card_queues "packets held by the kernel" Fix::Files("deliver at once");
        "up to the time it says, for a packet that comes alone";
        "The kernel may hold packets back to join them to larger ones.";
    "coalescing" coalescing "interrupt coalescing, rings" Fix::Command("ethtool -C IF adaptive-rx off rx-usecs 0 rx-frames 1; ethtool -G IF rx MAXIMUM");
        "up to rx-usecs for each packet, often 50 us; packets lost in bursts where the ring is short";
        "The card waits for more packets before it interrupts. The ring is where packets wait until the kernel takes them.";
    "kernel-path" rights "the kernel path (AF_XDP)" Fix::Command("run as root, or sudo setcap cap_bpf,cap_net_admin,cap_net_raw,cap_perfmon+ep PROGRAM");
        "market data goes through the kernel's network stack: receiver.backend = \"socket\" is all there is";
        "With receiver.backend = \"xdp\" live lines come from the hook of the network driver, past the kernel's network stack. It needs AF_XDP in the kernel and four capabilities. What an interface can do is tried with --interface.";
    "bpf-compiler" compiler "programs in the kernel" Fix::Files("compile them: net.core.bpf_jit_enable 1");
        "a filter in the kernel takes several times as long for each packet";
        "Programs at the hook of a driver are compiled to native code unless that is switched off. Blinding constants for everybody (bpf_jit_harden 2) makes them longer.";
    "steal" steal "time taken by the host" Fix::Elsewhere("ask for dedicated cores, or for a machine without a hypervisor");
        "whole time slices, often milliseconds";
        "In a virtual machine the host runs others on the same cores. The jitter probe shows how long it takes them away.";
    "quota" quota "processor quota" Fix::Command("remove cpu.max of the group (CPUQuota= of the unit, --cpus of the container)");
        "tens of milliseconds, whenever the quota of a period is used up";
        "A control group may limit the processor time of its tasks; a spinning thread uses it up.";
    "load" load "other work" Fix::Elsewhere("run nothing else on this machine");
        "the scheduler's time slice, milliseconds, where cores are shared";
        "More tasks want to run than there are cores for them.";
}

/// Looks at every setting of the machine under `root`.
pub fn check_all(root: &Path, hot: &Hot) -> Vec<Finding> {
    let files = Files::new(root);
    let look = |check: &'static Check| {
        let seen = (check.look)(&files, hot);
        Finding {
            check,
            verdict: seen.verdict,
            value: seen.value,
            writes: seen.writes,
        }
    };
    CHECKS.iter().map(look).collect()
}
