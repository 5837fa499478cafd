//! `kind = "gati"`: the eight equity feeds of one market, mixed in one capture, played at a multiple of its
//! speed at the feed handler; latency per feed from packet to book in shared memory; the books compared with
//! the engines' at the end.
//!
//! ```text
//! tickwire exchange --write-capture ─► capture ─► tickwire play -x 3 ─► loopback ─► tickwire feed ─► books, latency_<feed>.txt
//!                        └─► the engines' books ──────────────── compared ──────────────────┘
//! ```
//! Each is the product's own command in a process of its own. A last repetition has the kernel's receive
//! times on, and tells the kernel's part from the handler's. Between interfaces, the ways through the machine
//! are measured beside each other instead ([`ways`]). The host is measured as it is found; with `tune`, the
//! published steps are applied one after the other by `tickwire host tune` and taken back at the end. What
//! this machine does not show is said, not faked.

mod tune;
mod ways;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tickwire_lab::scenario::{Network, Shape, Wrong};
use tickwire_lab::{Case, Histogram, MISSING, Measure, Scenario, Table, format_count, format_ns};
use tickwire_market::{BookState, Counter, Side, Symbol};
use tickwire_runtime::child::ChildGuard;
use tickwire_runtime::clock::tsc;
use tickwire_runtime::host::run_delays_of_process;
use tickwire_runtime::shared::Attachment;
use tickwire_shm::{BookCopy, SourceState, SuperCopy};

use self::tune::Journal;
use super::kind::Kind;
use super::net::{EXCHANGE, Net, TRADER};
use super::paths;
use super::run::{CaseId, Places, Run};
use tickwire::config::Config;
use tickwire::demo::free_udp_port;
use tickwire_console::failure::Failure;
use tickwire_control::latency_file::{ALL, HOOK, KERNEL, Latencies, LatencyFile, SUPER};
use tickwire_feedd::LatencyOf;
use tickwire_simulator::settings::Impairment;
use tickwire_venues::values::{Rate, Symbols};
use tickwire_venues::wait::Wait;

pub(super) struct Gati;

/// `[settings]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    /// How many times faster than it was recorded.
    multiplier: f64,
    /// Instruments of the market.
    symbols: u32,
    /// The ways of receiving, side by side: `socket`, `xdp`. Where the sides stand at interfaces
    /// (`run.network`) these are measured, with the time since the packet was at the machine's door, and no
    /// set-ups of the host.
    backends: Vec<paths::Path>,
    /// Messages a second of the whole market, on average, before it is played faster.
    rate: u32,
    /// One repetition more of the first set-up, with the kernel's receive times: what the kernel takes, apart
    /// from the handler.
    legs: bool,
    /// Apply the published steps to this machine one after the other (takes root), and take them back at the
    /// end.
    tune: bool,
    /// Where that machine's `/proc` and `/sys` are: another folder than `/` to try the steps on a copy.
    host_root: PathBuf,
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
    /// The last tenth of the capture is not played: books are not the engines'.
    LosePackets,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            multiplier: 3.0,
            symbols: 300,
            backends: vec![paths::Path::Socket],
            rate: 20_000,
            legs: true,
            tune: false,
            host_root: PathBuf::from("/"),
            fault: Fault::None,
        }
    }
}

/// The published set-ups: name, and the settings of `tickwire host` that make it, in addition to those
/// before.
const SETUPS: [(&str, &[&str]); 5] = [
    ("1 default", &[]),
    ("2 BIOS tuned, HT off", &["smt", "idle-states", "energy-bias"]),
    ("3 turbo off", &["turbo"]),
    ("4 governor performance", &["governor"]),
    (
        "5 IRQ balance off, pinned, NUMA-local",
        &["irqbalance", "irq-affinity", "irq-default", "numa-balancing"],
    ),
];

/// Published averages, nanoseconds: feed, packets, one column per set-up.
const PUBLISHED: [(&str, &str, [u32; 5]); 7] = [
    ("Arca", "594,957", [6737, 5505, 5584, 3755, 3755]),
    ("BATS", "1,563,686", [3575, 3408, 3468, 3022, 3022]),
    ("EDGA", "777,859", [2538, 2427, 2427, 2184, 2184]),
    ("EDGX", "496,947", [2727, 2616, 2665, 2386, 2386]),
    ("ITCH", "3,781,083", [4763, 4506, 4638, 3984, 3984]),
    ("NYSE", "2,425,767", [1907, 1871, 1870, 1620, 1620]),
    ("all feeds", "", [3708, 3389, 3450, 2825, 2825]),
];

const DIFFERS: &str = "Published: a day of live feeds of 2014 replayed by a second machine over a network, a feed handler in the kernel \
behind the Ethernet driver, average from port to book, three runs, five set-ups of firmware and system. Ours: the simulator's market in \
today's formats, played by a process of the same machine over loopback, both lines of every feed; the handler is a process, and its \
latency begins when the packet is in its memory (the time stamp counter after the call that received) and ends when the book is visible in \
shared memory, so that what the kernel takes before is not in it. A set-up stands in a column only where this host let it be applied.";

/// Feeds with books of their own, by the names in the configuration.
const BOOKS: [&str; 6] = ["nasdaq", "bzx", "edga", "edgx", "nyse", "arca"];
/// Consolidated feeds: what they show is the national best of a consolidated book.
const CONSOLIDATED: [&str; 2] = ["cqs", "uqdf"];
/// What has a part in consolidated books: the national best of consolidated feeds is shown beside them.
const SHARERS: [&str; 8] = FEEDS;
const FEEDS: [&str; 8] = ["arca", "bzx", "edga", "edgx", "nasdaq", "nyse", "cqs", "uqdf"];
const CONFIG: &str = include_str!("../../../../examples/equities.toml");
/// Levels of a side that are shown and compared.
const LEVELS: usize = 10;
/// A player that is so late with half of its packets does not play at the speed it was asked for.
const LATE_NS: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

impl Kind for Gati {
    const NAME: &'static str = "gati";
    const ROLES: &'static [&'static str] = &["player", "feed"];
    const SHAPES: &'static [Shape] = &[Shape::Open];
    type Settings = Settings;

    fn check(scenario: &Scenario<Settings>) -> Result<(), Wrong> {
        let settings = &scenario.settings;
        if !(settings.multiplier > 0.0 && settings.multiplier.is_finite()) {
            return Err(Wrong::new("settings.multiplier", "give a number above 0"));
        }
        let no_orders = "nothing is ordered here, and how orders leave makes no difference";
        let without = [paths::Path::Delegated, paths::Path::PreArmed].map(|path| (path, no_orders));
        paths::check(&settings.backends, &without, &scenario.run)?;
        if settings.tune && matches!(scenario.run.network, Network::Veth | Network::Given) {
            return Err(Wrong::new(
                "settings.tune",
                "is for loopback: between interfaces the ways of receiving are measured, on the host as it is",
            ));
        }
        if !(9..=2_000).contains(&settings.symbols) {
            return Err(Wrong::new("settings.symbols", "give 9 to 2000 instruments"));
        }
        Ok(())
    }

    fn run(scenario: &Scenario<Settings>, run: &mut Run<'_>) -> Result<(), Failure> {
        if matches!(scenario.run.network, Network::Veth | Network::Given) {
            return ways::run(scenario, run);
        }
        let rig = Rig::write(scenario, run, &Net::Loopback)?;
        let mut averages: Vec<(String, Sums)> = Vec::new();
        let mut journal = Journal {
            files: Vec::new(),
            is_wanted: scenario.settings.tune,
            root: scenario.settings.host_root.clone(),
        };
        let mut outcome = Ok(());
        'all: for (number, (setup, settings)) in SETUPS.into_iter().enumerate() {
            if number > 0 && !journal.apply(run, setup, settings, &rig.folder)? {
                continue;
            }
            let cases: BTreeMap<&str, CaseId> = FEEDS
                .into_iter()
                .chain(["all feeds"])
                .map(|feed| (feed, run.case(case(feed, setup))))
                .collect();
            let supers: BTreeMap<&str, CaseId> = SHARERS
                .into_iter()
                .chain(["all feeds"])
                .map(|feed| (feed, run.case(super_case(feed, setup))))
                .collect();
            let ids: Vec<CaseId> = cases.values().chain(supers.values()).copied().collect();
            let mut sums = BTreeMap::new();
            for repetition in 1..=scenario.run.repetitions.get() {
                let name = format!("{setup}, repetition {repetition}");
                let measured = run.go_on().and_then(|()| {
                    run.progress(&name);
                    rig.measure(
                        scenario,
                        run,
                        (&rig.config, &cases, &supers),
                        (&Net::Loopback, &name),
                        &mut sums,
                    )
                });
                outcome = run.attempt(&ids, repetition, measured).map(drop);
                if outcome.is_err() {
                    averages.push((setup.to_owned(), sums));
                    break 'all;
                }
            }
            averages.push((setup.to_owned(), sums));
            if number == 0 && scenario.settings.legs {
                let measured = rig.legs(scenario, run);
                outcome = run.attempt(&[], 1, measured).map(drop);
                if outcome.is_err() {
                    break 'all;
                }
            }
        }
        // Of a run that was interrupted, too.
        journal.undo(run)?;
        tables(run, &averages);
        outcome
    }
}

fn case(feed: &str, setup: &str) -> Case {
    let what = "From the packet in the handler's memory (stamp after the call that received it) to its book visible in shared memory.";
    Case::new(&format!("{feed}, {setup}"), Measure::new("packet to book", what))
        .in_group(setup, feed)
        .over_time(false)
}

fn super_case(feed: &str, setup: &str) -> Case {
    let what = "From the packet in the handler's memory (stamp after the call that received it) to the consolidated book, merged over venues, visible in shared memory.";
    let group = format!("consolidated books, {setup}");
    Case::new(
        &format!("{feed}, {group}"),
        Measure::new("packet to consolidated book", what),
    )
    .in_group(&group, feed)
    .over_time(false)
}

/// The repetition with the kernel's receive times.
const LEGS: &str = "legs, 1 default";

fn leg_case(feed: &str) -> Case {
    let kernel = "From the kernel's receive time to the packet in the handler's memory, every packet: waiting in the socket is here.";
    let inside = "From the packet in the handler's memory to its book visible in shared memory, every book.";
    Case::new(&format!("{LEGS}: {feed}"), Measure::new(KERNEL_LEG, kernel))
        .measure(Measure::new("in: packet to book", inside))
        .in_group(LEGS, feed)
        .over_time(false)
}

const KERNEL_LEG: &str = "in: kernel to packet";

fn tickwire() -> Result<Command, Failure> {
    let mut command = Command::new(super::product("feed handler")?);
    command.stdin(Stdio::null());
    Ok(command)
}

fn cannot_start(what: &str, error: &std::io::Error) -> Failure {
    Failure::system(format!("cannot start `{what}`: {error}"))
}

/// Feed, symbol and side to the best levels: price and quantity.
type Books = BTreeMap<(String, String, Side), Vec<(String, String)>>;

/// Sum in nanoseconds and count of latencies, by feed.
type Sums = BTreeMap<String, (u64, u64)>;

/// Capture, configuration and the books that must come out.
struct Rig {
    folder: PathBuf,
    config: PathBuf,
    /// The same with the kernel's receive times.
    stamped: PathBuf,
    /// The same by each way of receiving.
    by_ways: Vec<(paths::Path, PathBuf)>,
    capture: PathBuf,
    books: Books,
}

impl Rig {
    /// Writes the capture once; every repetition plays it.
    fn write(scenario: &Scenario<Settings>, run: &mut Run<'_>, net: &Net) -> Result<Rig, Failure> {
        let settings = &scenario.settings;
        let folder = run.folder().join("market");
        tickwire_runtime::files::create_folders(&folder)
            .map_err(|e| Failure::system(format!("cannot create {}: {e}", folder.display())))?;
        let places = Places::new(&scenario.cores, &scenario.run);
        let mut config = Config::parse(CONFIG).map_err(Failure::config)?;
        let interface = net.interface(TRADER).to_owned();
        for feed in &mut config.feed {
            feed.interface = interface.clone().try_into().map_err(Failure::config)?;
        }
        for channel in config.feed.iter_mut().flat_map(|feed| &mut feed.channels) {
            channel.renumber_groups(free_udp_port)?;
            // Nothing is lost, so nobody is asked.
            (channel.requests, channel.replay, channel.snapshot_server) = (None, None, None);
        }
        let out_of_range = |e: String| Failure::config(format!("settings: {e}"));
        config.exchange.symbols = Symbols::try_from(f64::from(settings.symbols)).map_err(out_of_range)?;
        config.exchange.rate = Rate::try_from(f64::from(settings.rate)).map_err(out_of_range)?;
        config.exchange.seed = scenario.run.seed;
        (config.exchange.line_a, config.exchange.line_b) = (Impairment::default(), Impairment::default());
        config.daemon.folder = folder.join("region");
        config.daemon.latency_files = Some(folder.join("latency"));
        // The published averages are of messages.
        config.daemon.latency_of = LatencyOf::Messages;
        config.daemon.book_levels = LEVELS as u32;
        // Long pauses of a simulated market are no silence.
        config.daemon.silence_ms = 60_000;
        for thread in &mut config.daemon.thread {
            thread.core = places.core("feed").map_or(-1, |core| core as i32);
            thread.wait = Wait::Auto;
        }
        let path = folder.join("market.toml");
        tickwire_runtime::files::write(&path, config.to_toml())
            .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?;
        let stamped = folder.join("stamped.toml");
        config.daemon.kernel_stamps = true;
        tickwire_runtime::files::write(&stamped, config.to_toml())
            .map_err(|e| Failure::system(format!("cannot write {}: {e}", stamped.display())))?;
        let mut by_ways = Vec::new();
        for way in &settings.backends {
            let mut config = config.clone();
            way.receive_by(&mut config.receiver, matches!(net, Net::Veth(_)));
            let path = folder.join(format!("{}.toml", way.name()));
            tickwire_runtime::files::write(&path, config.to_toml())
                .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?;
            by_ways.push((*way, path));
        }
        let rig = Rig {
            config: path,
            stamped,
            by_ways,
            capture: folder.join("day.pcap"),
            books: BTreeMap::new(),
            folder,
        };
        let packets = scenario.run.samples.get();
        run.progress(&format!(
            "writing a capture of {} packets",
            format_count(packets.into())
        ));
        let output = tickwire()?
            .args(["exchange", "-c"])
            .arg(&rig.config)
            .arg("--write-capture")
            .arg(&rig.capture)
            .args(["--packets", &packets.to_string(), "--results"])
            .arg(&rig.folder)
            .output()
            .map_err(|e| cannot_start("tickwire exchange", &e))?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if !output.status.success() {
            return Err(Failure::system(format!("the capture was not written: {said}")));
        }
        run.fact("capture", said.rsplit('/').next().unwrap_or_default());
        let books = rig.expected()?;
        Ok(Rig { books, ..rig })
    }

    /// The engines' books as `tickwire exchange` wrote them, as far down as they are shown.
    fn expected(&self) -> Result<Books, Failure> {
        let mut books: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for feed in BOOKS.into_iter().chain(CONSOLIDATED) {
            let levels_max = if CONSOLIDATED.contains(&feed) { 1 } else { LEVELS };
            let path = self.folder.join(format!("books-{feed}.txt"));
            let text = std::fs::read_to_string(&path)
                .map_err(|e| Failure::system(format!("cannot read {}: {e}", path.display())))?;
            for line in text.lines() {
                let words: Vec<&str> = line.split(' ').collect();
                if let [symbol, side, _, price, qty, _] = words[..] {
                    let side = if side == "bid" { Side::Bid } else { Side::Ask };
                    let key = (feed.to_owned(), symbol.to_owned(), side);
                    let levels = books.entry(key).or_default();
                    if levels.len() < levels_max {
                        levels.push((price.to_owned(), qty.to_owned()));
                    }
                }
            }
        }
        Ok(books)
    }

    fn measure(
        &self,
        scenario: &Scenario<Settings>,
        run: &mut Run<'_>,
        (config, cases, supers): (&Path, &BTreeMap<&str, CaseId>, &BTreeMap<&str, CaseId>),
        (net, name): (&Net, &str),
        sums: &mut Sums,
    ) -> Result<(), Failure> {
        let settings = &scenario.settings;
        let region = self.folder.join("region");
        let began = tsc();
        // What the handler of the repetition before left would be taken for this one's.
        for folder in [&region, &self.folder.join("latency")] {
            match std::fs::remove_dir_all(folder) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::system(format!(
                        "cannot remove {}: {e}",
                        folder.display()
                    )));
                }
                _ => {}
            }
        }
        let mut command = tickwire()?;
        command.args(["feed", "-c"]).arg(config).stdout(Stdio::null());
        let spawned = net.at(TRADER, || ChildGuard::spawn(&mut command))?;
        let mut daemon = spawned.map_err(|e| cannot_start("tickwire feed", &e))?;
        let attachment = attach(&region, &mut daemon)?;
        let mut command = tickwire()?;
        command.arg("play").arg(&self.capture).args([
            "--json",
            "--multiplier",
            &settings.multiplier.to_string(),
        ]);
        if let Some(core) = scenario.cores.get("player") {
            command.args(["--core", &core.to_string()]);
        }
        if settings.fault == Fault::LosePackets {
            // The last tenth of the capture never comes.
            let limit = u64::from(scenario.run.samples.get()) * 9 / 10;
            command.args(["--limit", &limit.to_string()]);
        }
        if !matches!(net, Net::Loopback) {
            command.args(["--interface", net.interface(EXCHANGE)]);
        }
        let output = net.at(EXCHANGE, || command.output())?;
        let output = output.map_err(|e| cannot_start("tickwire play", &e))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Failure::system(format!("the capture was not played: {said}")));
        }
        let played: serde_json::Value = serde_json::from_slice(&output.stdout)
            .map_err(|e| Failure::system(format!("`tickwire play` does not answer in JSON: {e}")))?;
        settle(&attachment);
        let compared = self.compare(&attachment);
        drop(attachment);
        let delays = run_delays_of_process(daemon.id());
        daemon
            .stop(PATIENCE)
            .map_err(|e| Failure::system(format!("the feed handler did not end: {e}")))?;
        let [mut all, mut all_kernel, mut all_supers] = [(); 3].map(|()| Latencies::default());
        for feed in FEEDS {
            let path = LatencyFile::path(&self.folder.join("latency"), feed);
            let found = std::fs::read_to_string(&path)
                .map_err(|e| e.to_string())
                .and_then(|text| LatencyFile::parse(&text));
            let file = found.map_err(|e| Failure::system(format!("{}: {e}", path.display())))?;
            let [latencies, kernel, shared] =
                [ALL, KERNEL, SUPER].map(|name| file.types.get(name).cloned().unwrap_or_default());
            // Of what came by AF_XDP, the hook's time instead.
            let hook = file.types.get(HOOK).cloned();
            let kernel = hook.unwrap_or(kernel);
            all.merge(&latencies);
            all_kernel.merge(&kernel);
            all_supers.merge(&shared);
            keep(run, cases[feed], began, feed, (&latencies, &kernel), &[], sums);
            if let Some(id) = supers.get(feed) {
                keep(
                    run,
                    *id,
                    began,
                    &super_name(feed),
                    (&shared, &Latencies::default()),
                    &[],
                    sums,
                );
            }
        }
        // What the handler's threads have waited for a core stands with the sum of its feeds.
        let (id, sides) = (cases["all feeds"], (&all, &all_kernel));
        keep(run, id, began, "all feeds", sides, &delays, sums);
        if let Some(id) = supers.get("all feeds") {
            let sides = (&all_supers, &Latencies::default());
            keep(run, *id, began, &super_name("all feeds"), sides, &[], sums);
        }
        run.fact(
            &format!("player, {name}"),
            format!(
                "{} packets in {:.2} s, late p50 {} ns, p99 {} ns",
                played["packets"],
                played["seconds"].as_f64().unwrap_or_default(),
                played["lateness_ns"]["p50"],
                played["lateness_ns"]["p99"]
            ),
        );
        if played["lateness_ns"]["p50"]
            .as_u64()
            .is_some_and(|late| late > LATE_NS)
        {
            run.note(format!(
                "{name}: this machine could not send so fast: the player was late with half of the packets by {} or more.",
                format_ns(played["lateness_ns"]["p50"].as_u64().unwrap_or_default())
            ));
        }
        run.check(
            format!("{name}: every book that shared memory shows as right is the engine's"),
            compared.wrong.is_empty() && compared.sides > 0,
            compared.found(),
        );
        run.check(
            format!("{name}: every feed was measured"),
            FEEDS
                .iter()
                .all(|feed| sums.get(*feed).is_some_and(|sum| sum.1 > 0)),
            format!("{} latencies in all", format_count(all.count)),
        );
        Ok(())
    }

    /// The repetition with the kernel's receive times, and its table.
    fn legs(&self, scenario: &Scenario<Settings>, run: &mut Run<'_>) -> Result<(), Failure> {
        run.go_on()?;
        run.progress(LEGS);
        let feeds = FEEDS.into_iter().chain(["all feeds"]);
        let cases: BTreeMap<&str, CaseId> = feeds
            .clone()
            .map(|feed| (feed, run.case(leg_case(feed))))
            .collect();
        let mut sums = BTreeMap::new();
        self.measure(
            scenario,
            run,
            (&self.stamped, &cases, &BTreeMap::new()),
            (&Net::Loopback, LEGS),
            &mut sums,
        )?;
        let mut table = Table::new(
            "Where the time goes, by the kernel's receive times: average (p99). A packet that is sent is received within the call that sends \
             it; such stamps cost time, so that this is no measure of the whole",
            &["feed", "packets", KERNEL_LEG, "books", "in: packet to book"],
        );
        for feed in feeds {
            let Some(last) = run.of(cases[feed]).repetitions.last() else {
                continue;
            };
            let [kernel, inside] = [0, 1].map(|leg| last.histograms[leg].unpack());
            let shown = |h: &Histogram| match h.is_empty() {
                true => String::new(),
                false => format!(
                    "{} ({})",
                    format_ns(h.mean() as u64),
                    format_ns(h.at_quantile(0.99))
                ),
            };
            table = table.row([
                feed.to_owned(),
                format_count(kernel.count()),
                shown(&kernel),
                format_count(inside.count()),
                shown(&inside),
            ]);
        }
        run.table(table);
        let timed = run
            .of(cases["all feeds"])
            .repetitions
            .last()
            .map_or(0, |r| r.histograms[0].count());
        run.check(
            format!("{LEGS}: the kernel said when it received packets"),
            timed > 0,
            format!("{} packets", format_count(timed)),
        );
        Ok(())
    }

    /// The national best of every symbol that a consolidated feed quotes.
    fn nationals(&self, attachment: &Attachment, found: &mut Books, marked: &mut Marked) {
        let reader = attachment.reader();
        let mut copy = SuperCopy::default();
        let wanted = self
            .books
            .keys()
            .filter(|key| CONSOLIDATED.contains(&key.0.as_str()));
        let symbols: std::collections::BTreeSet<_> = wanted.map(|(feed, symbol, _)| (feed, symbol)).collect();
        for (feed, name) in symbols {
            let slot = Symbol::new(name.as_bytes()).and_then(|symbol| reader.find_super(symbol));
            if slot.is_none_or(|slot| reader.read_super(slot, &mut copy).is_err()) {
                continue;
            }
            // What it shows of a channel that is not whole.
            let is_live = reader
                .sources()
                .filter(|source| source.feed_name == *feed)
                .all(|source| source.state == SourceState::Live || source.state == SourceState::Ended);
            if !is_live {
                marked.insert((feed.clone(), name.clone()));
            }
            for side in Side::BOTH {
                let national = copy.national[side as usize];
                if national.qty.0 > 0 {
                    let best = vec![(national.price.to_string(), national.qty.to_string())];
                    found.insert((feed.clone(), name.clone(), side), best);
                }
            }
        }
    }

    /// The books that are shown beside the engines'.
    fn compare(&self, attachment: &Attachment) -> Compared {
        let reader = attachment.reader();
        let feeds: BTreeMap<u16, String> = reader
            .sources()
            .map(|source| (source.number, source.feed_name))
            .collect();
        let dropped = reader
            .sources()
            .filter_map(|source| reader.counters(source.number).ok())
            .map(|counters| counters.get(Counter::KernelDrops))
            .sum();
        let mut marked = Marked::new();
        let mut found: Books = BTreeMap::new();
        let mut copy = BookCopy::default();
        for (slot, identity) in reader.books() {
            let Some(feed) = feeds
                .get(&identity.source)
                .filter(|f| BOOKS.contains(&f.as_str()))
            else {
                continue;
            };
            if reader.read_book(slot, &mut copy).is_err() {
                continue;
            }
            if copy.state != BookState::Live {
                marked.insert((feed.clone(), identity.symbol.to_string()));
            }
            for side in Side::BOTH {
                let levels: Vec<_> = copy
                    .side(side)
                    .iter()
                    .take(LEVELS)
                    .map(|level| (level.price.to_string(), level.qty.to_string()))
                    .collect();
                if !levels.is_empty() {
                    found.insert((feed.clone(), identity.symbol.to_string(), side), levels);
                }
            }
        }
        self.nationals(attachment, &mut found, &mut marked);
        let keys: std::collections::BTreeSet<_> = self.books.keys().chain(found.keys()).collect();
        let different = keys
            .iter()
            .filter(|key| self.books.get(**key) != found.get(**key));
        let (mut stale, mut wrong) = (0, Vec::new());
        for (feed, symbol, side) in different {
            match marked.contains(&(feed.clone(), symbol.clone())) {
                true => stale += 1,
                false => wrong.push(format!("{feed} {symbol} {side:?}")),
            }
        }
        Compared {
            sides: keys.len() as u64,
            wrong,
            stale,
            dropped,
        }
    }
}

/// Feed and symbol of books that are shown as not to be trusted.
type Marked = std::collections::BTreeSet<(String, String)>;

/// What comparing the books with the engines' has found.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Compared {
    /// Sides of books.
    sides: u64,
    /// Those that differ and are shown as right.
    wrong: Vec<String>,
    /// How many differ and are marked as not to be trusted: that is what a mark is for.
    stale: u64,
    /// Packets that the kernel had no room for.
    dropped: u64,
}

impl Compared {
    fn found(&self) -> String {
        let dropped = match self.dropped {
            0 => "the kernel dropped no packet".to_owned(),
            n => format!("the kernel dropped {} packets", format_count(n)),
        };
        let of = format_count(self.sides);
        match (self.wrong.first(), self.stale) {
            (None, 0) => format!("{of} sides of books equal; {dropped}"),
            (None, stale) => format!(
                "{} of {of} sides of books differ, all of them in books marked as not to be trusted; {dropped}",
                format_count(stale)
            ),
            (Some(first), stale) => format!(
                "{} of {of} sides of books differ though they are shown as right, first {first}; {} more are in marked books; {dropped}",
                format_count(self.wrong.len() as u64),
                format_count(stale)
            ),
        }
    }
}

/// From a feed to the name that its sums are kept under.
type Naming = fn(&str) -> String;

/// Under which name the sums of consolidated books are kept.
fn super_name(feed: &str) -> String {
    format!("consolidated books, {feed}")
}

/// Attaches to a daemon that is starting.
fn attach(region: &Path, daemon: &mut ChildGuard) -> Result<Attachment, Failure> {
    let began = Instant::now();
    loop {
        match Attachment::attach(region) {
            Ok(attachment) => return Ok(attachment),
            Err(e) if began.elapsed() > PATIENCE => return Err(Failure::system(e.to_string())),
            Err(_) => {}
        }
        if let Ok(Some(status)) = daemon.try_wait() {
            return Err(Failure::system(format!(
                "the feed handler ended at its start ({status}); see what it said above"
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until no source goes on.
fn settle(attachment: &Attachment) {
    let began = Instant::now();
    let mut last = Vec::new();
    while began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(300));
        let reader = attachment.reader();
        let now: Vec<_> = reader.sources().map(|source| source.next_seq).collect();
        if now == last {
            return;
        }
        last = now;
    }
}

fn keep(
    run: &mut Run<'_>,
    id: CaseId,
    began: u64,
    feed: &str,
    (latencies, kernel): (&Latencies, &Latencies),
    delays: &[(String, u64)],
    sums: &mut Sums,
) {
    let has_legs = run.of(id).measures.len() > 1;
    let mut recorder = run.recorder(id);
    // Ranges of the handler's histogram, each by its middle.
    let mut record = |latencies: &Latencies, values: &dyn Fn(u64) -> [u64; 2]| {
        let mut middle = Histogram::new();
        for (&(low, high), &count) in &latencies.ranges {
            middle.record_n(low + (high - low) / 2, count);
        }
        for (value, count) in middle.values() {
            for _ in 0..count {
                recorder.record(0, &values(value)[..1 + usize::from(has_legs)], &[]);
            }
        }
    };
    if has_legs {
        record(kernel, &|value| [value, MISSING]);
        record(latencies, &|value| [MISSING, value]);
    } else {
        record(latencies, &|value| [value, MISSING]);
    }
    let mut done = recorder.finish([("latencies", latencies.count)]);
    done.run_delays_ns = delays.to_vec();
    run.repetition(id, began, done);
    let sum = sums.entry(feed.to_owned()).or_default();
    *sum = (sum.0.saturating_add(latencies.sum), sum.1 + latencies.count);
}

fn tables(run: &mut Run<'_>, averages: &[(String, Sums)]) {
    let columns: Vec<&str> = ["feed", "latencies"]
        .into_iter()
        .chain(averages.iter().map(|(setup, _)| setup.as_str()))
        .collect();
    let kinds: [(&str, Naming); 2] = [
        ("Average from packet to book, ns, all repetitions", str::to_owned),
        (
            "Average from packet to consolidated book (merged over venues), ns, all repetitions",
            super_name,
        ),
    ];
    for (title, name) in kinds {
        let mut table = Table::new(title, &columns);
        for feed in FEEDS.into_iter().chain(["all feeds"]) {
            let of = |sums: &Sums| sums.get(&name(feed)).copied().unwrap_or_default();
            let count = averages.first().map_or(0, |(_, sums)| of(sums).1);
            let cells = averages.iter().map(|(_, sums)| {
                let (sum, count) = of(sums);
                sum.checked_div(count)
                    .map_or(String::new(), |avg| avg.to_string())
            });
            table = table.row([feed.to_owned(), format_count(count)].into_iter().chain(cells));
        }
        run.table(table);
    }
    let columns: Vec<&str> = ["feed", "packets"]
        .into_iter()
        .chain(SETUPS.iter().map(|setup| setup.0))
        .collect();
    let published = PUBLISHED.into_iter().fold(
        Table::new("Published (2014), average port to book, ns", &columns),
        |table, (feed, packets, values)| {
            let cells = values.map(|v| v.to_string());
            table.row([feed.to_owned(), packets.to_owned()].into_iter().chain(cells))
        },
    );
    run.published(published, DIFFERS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_book_is_no_error_and_an_unmarked_one_is_and_drops_are_said() {
        let compared = |wrong: &[&str], stale, dropped| Compared {
            sides: 600,
            wrong: wrong.iter().map(|name| (*name).to_owned()).collect(),
            stale,
            dropped,
        };
        let said = compared(&[], 0, 0).found();
        assert_eq!(said, "600 sides of books equal; the kernel dropped no packet");
        let said = compared(&[], 12, 34).found();
        assert!(
            said.contains("12 of 600") && said.contains("marked") && said.contains("dropped 34 packets"),
            "{said}"
        );
        let said = compared(&["nyse IBM Bid"], 2, 0).found();
        assert!(
            said.contains("1 of 600") && said.contains("first nyse IBM Bid") && said.contains("2 more"),
            "{said}"
        );
    }
}
