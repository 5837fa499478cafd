//! The ways of receiving beside each other, between two interfaces: the player at one, the feed handler at
//! the other, by sockets and by AF_XDP in turns. What is measured begins at the machine's door: at the
//! driver's hook, or, of sockets, when the kernel stamped the packet.

use std::collections::BTreeMap;

use tickwire_console::failure::Failure;
use tickwire_lab::{Case, Histogram, Measure, Scenario, Summary, Table, format_count};

use super::{FEEDS, KERNEL_LEG, Rig, Settings};
use crate::lab::net::network;
use crate::lab::paths::Path;
use crate::lab::run::{CaseId, Run};

const PORT: &str = "From the packet at the machine's door (by AF_XDP the stamp of the driver's hook, by sockets the kernel's receive time) \
to the packet in the handler's memory, every packet.";
const INSIDE: &str =
    "From the packet in the handler's memory to its book visible in shared memory, every book.";

fn case(feed: &str, way: Path) -> Case {
    let group = format!("port to book, {}", way.name());
    Case::new(&format!("{feed}, {}", way.name()), Measure::new(KERNEL_LEG, PORT))
        .measure(Measure::new("in: packet to book", INSIDE))
        .in_group(&group, feed)
        .over_time(false)
}

/// Every way in each repetition, the first of one being the last of the next.
pub(super) fn run(scenario: &Scenario<Settings>, run: &mut Run<'_>) -> Result<(), Failure> {
    let net = network(&scenario.run, run)?;
    let rig = Rig::write(scenario, run, &net)?;
    let feeds: Vec<&str> = FEEDS.into_iter().chain(["all feeds"]).collect();
    let mut ways = Vec::new();
    for (way, config) in &rig.by_ways {
        let cases: BTreeMap<&str, CaseId> = feeds
            .iter()
            .map(|feed| (*feed, run.case(case(feed, *way))))
            .collect();
        ways.push((*way, config, cases));
    }
    let mut outcome = Ok(());
    'all: for repetition in 1..=scenario.run.repetitions.get() {
        let count = ways.len();
        for nth in 0..count {
            let (way, config, cases) = &ways[(nth + repetition as usize) % count];
            let name = format!("{}, repetition {repetition}", way.name());
            let ids: Vec<CaseId> = cases.values().copied().collect();
            let mut sums = BTreeMap::new();
            let measured = run.go_on().and_then(|()| {
                run.progress(&name);
                let supers = BTreeMap::new();
                rig.measure(scenario, run, (config, cases, &supers), (&net, &name), &mut sums)
            });
            outcome = run.attempt(&ids, repetition, measured).map(drop);
            if outcome.is_err() {
                break 'all;
            }
            let stamped = run.of(cases["all feeds"]).repetitions.last();
            let stamped = stamped.map_or(0, |last| last.histograms[0].count());
            run.check(
                format!("{name}: it was said when packets were at the door"),
                stamped > 0,
                format!("{} packets", format_count(stamped)),
            );
        }
    }
    // Of a run that was interrupted, too.
    tables(run, &feeds, &ways);
    outcome
}

type Ways<'a> = [(Path, &'a std::path::PathBuf, BTreeMap<&'a str, CaseId>)];

fn tables(run: &mut Run<'_>, feeds: &[&str], ways: &Ways<'_>) {
    let both = |run: &Run<'_>, id: CaseId| [0, 1].map(|leg| run.of(id).histogram(leg));
    let mean = |h: &Histogram| h.mean() as u64;
    let columns: Vec<&str> = ["feed, average ns"]
        .into_iter()
        .chain(ways.iter().map(|(way, ..)| way.name()))
        .chain(["last / first"])
        .collect();
    let mut table = Table::new(
        "Port to book: average from the machine's door to the packet in memory, and from there to its book, added, all repetitions",
        &columns,
    );
    for feed in feeds {
        let sums: Vec<Option<u64>> = ways
            .iter()
            .map(|(_, _, cases)| {
                let [port, inside] = both(run, cases[feed]);
                (!port.is_empty() && !inside.is_empty()).then(|| mean(&port) + mean(&inside))
            })
            .collect();
        let ratio = match (sums.first(), sums.last()) {
            (Some(Some(first)), Some(Some(last))) if *first > 0 => {
                format!("{:.2}", *last as f64 / *first as f64)
            }
            _ => String::new(),
        };
        let cells = sums
            .iter()
            .map(|sum| sum.map_or(String::new(), |sum| sum.to_string()));
        table = table.row([(*feed).to_owned()].into_iter().chain(cells).chain([ratio]));
    }
    run.table(table);
    let mut table = Table::new(
        "All feeds together, by part of the way",
        &Summary::columns(&["all feeds, ns", "mean"], &["count"]),
    );
    for (way, _, cases) in ways {
        let parts = ["door to memory", "memory to book"];
        for (part, h) in parts.into_iter().zip(both(run, cases["all feeds"])) {
            let s = h.summary();
            let figures = [mean(&h)].into_iter().chain(s.times()).chain([s.count]);
            let cells = figures.map(|figure| figure.to_string());
            table = table.row([format!("{}: {part}", way.name())].into_iter().chain(cells));
        }
    }
    run.table(table);
}
