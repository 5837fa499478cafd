//! The tables of `cep`, and the samples that they are made of.

use tickwire_cosim::Comparison;
use tickwire_lab::{Summary, Table};
use tickwire_player::single::Sample;

use super::Settings;
use crate::cep::core::ROUTED_MHZ;
use crate::cep::{COLUMNS, DIFFERS, Log, PUBLISHED, Row, SIZES};
use crate::lab::paths::Path;
use crate::lab::run::Run;

/// Entries, frame bytes, nanoseconds.
type Point = (u32, u32, u64);

/// What one way has given.
#[derive(Default)]
struct Given {
    n1: Vec<Point>,
    wire: Vec<Point>,
}

impl Given {
    fn keep(&mut self, sample: &Sample) {
        let (Some(entries), Some(n1)) = (sample.entries, sample.n1_ns) else {
            return;
        };
        self.n1.push((entries, sample.frame_len, n1));
        self.wire
            .extend(sample.wire_ns.map(|wire| (entries, sample.frame_len, wire)));
    }
}

/// Every sample of all repetitions.
#[derive(Default)]
pub(super) struct Series {
    traders: Vec<(Path, Given)>,
    /// Of them, what the program at the hook sent.
    by_program: Given,
    floor: Given,
    pub(super) memory: Vec<Point>,
    /// Of a recording every packet in memory, until it is done with.
    pub(super) done: Vec<Point>,
}

impl Series {
    /// Without samples.
    pub(super) fn of(ways: &[Path]) -> Series {
        Series {
            traders: ways.iter().map(|way| (*way, Given::default())).collect(),
            ..Series::default()
        }
    }

    /// Keeps a sample of a way, or of the floor.
    pub(super) fn keep(&mut self, way: Option<Path>, is_by_program: bool, sample: &Sample) {
        if is_by_program {
            self.by_program.keep(sample);
        }
        let given = match way {
            Some(way) => self
                .traders
                .iter_mut()
                .find(|(of, _)| *of == way)
                .map(|(_, given)| given),
            None => Some(&mut self.floor),
        };
        if let Some(given) = given {
            given.keep(sample);
        }
    }

    /// The way that is shown by the packet's size, and stands in comparisons: the first.
    fn first(&self) -> &[Point] {
        self.traders.first().map_or(&[], |(_, given)| given.n1.as_slice())
    }
}

fn row(series: &[Point]) -> Row {
    Row::of(series.iter().map(|s| s.2))
}

fn ratio(one: u64, other: u64) -> String {
    match (one, other) {
        (0, _) | (_, 0) => String::new(),
        _ => format!("{:.2}", one as f64 / other as f64),
    }
}

/// How many packets fall into each class of [`SIZES`].
pub(super) fn shares(log: &Log) -> String {
    let counts = SIZES.map(|(_, from, to)| {
        (0..log.len())
            .filter(|&at| (from..=to).contains(&(log.entries(at) as usize)))
            .count()
    });
    counts.map(|n| n.to_string()).join(", ")
}

/// What 10 Gbit/s asks of a core that takes eight bytes a clock.
const TEN_GIGABIT_MHZ: f64 = 156.25;

/// A core's clocks, and what they are in nanoseconds.
pub(super) fn core_table(found: &Comparison) -> Table {
    let mut table = Table::new(
        "Core, simulated: packet's last word to the order's first, in the core alone. A wire-to-wire figure adds a MAC and a transceiver \
         each way (docs/hardware.md). It was routed at 58.4 MHz, not at the 156.25 that 10 Gbit/s asks for",
        &[
            "core, simulated",
            "min",
            "avg",
            "p50",
            "p90",
            "p99",
            "p99.9",
            "max",
            "orders",
        ],
    );
    let count: u64 = found.latency.values().sum();
    for (name, mhz) in [
        ("clocks".to_owned(), 1_000.0),
        (format!("ns at {ROUTED_MHZ} MHz, as routed"), ROUTED_MHZ),
        (
            format!("ns at {TEN_GIGABIT_MHZ} MHz, if it were"),
            TEN_GIGABIT_MHZ,
        ),
    ] {
        let scaled = |clocks: f64| format!("{:.1}", clocks * 1_000.0 / mhz);
        let at = |quantile| {
            let clocks = found.quantile(quantile);
            clocks.map_or_else(String::new, |clocks| scaled(clocks as f64))
        };
        let average = found.average().map_or_else(String::new, scaled);
        table = table.row([
            name,
            at(0.0),
            average,
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            at(1.0),
            count.to_string(),
        ]);
    }
    table
}

pub(super) fn tables(run: &mut Run<'_>, all: &Series, settings: &Settings, is_stamped: bool) {
    let has_sockets = settings.sockets;
    let floor = row(&all.floor.n1);
    let mut ours = Table::new("Packet to order (N-1), all repetitions", &COLUMNS);
    let mut add = |name: &str, row: &Row| {
        let cells = [name.to_owned()].into_iter().chain(row.cells());
        ours = ours.clone().row(cells);
    };
    if has_sockets {
        for (way, given) in &all.traders {
            add(&format!("tickwire, {}", way.about()), &row(&given.n1));
        }
        add("bare floor: UDP in, TCP out", &floor);
    }
    if !all.memory.is_empty() {
        add("tickwire, in memory (packet to order bytes)", &row(&all.memory));
    }
    run.table(ours);
    if has_sockets && floor.count > 0 {
        let mut table = Table::new(
            "Tickwire over the bare floor of this host, same packets, same run (goal: at most 1.30)",
            &["", "p50", "p99", "p99.9"],
        );
        for (way, given) in &all.traders {
            let trader = row(&given.n1);
            table = table.row([
                format!("ratio, {}", way.name()),
                ratio(trader.p50, floor.p50),
                ratio(trader.p99, floor.p99),
                ratio(trader.p99_9, floor.p99_9),
            ]);
        }
        run.table(table);
    }
    if has_sockets && is_stamped {
        run.table(side_by_side(all));
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

/// The ways beside each other: WIRE and N-1 of each, and by how much they differ from the first and from the
/// floor.
fn side_by_side(all: &Series) -> Table {
    let mut table = Table::new(
        "Way by way, in turns of the same packets: WIRE, to the order's frame in the driver's stack; N-1 (RTT), to its bytes in the driver",
        &Summary::columns(&["ns"], &["packets", "p50 / first", "p99 / first", "p50 / floor"]),
    );
    let floor = [&all.floor.wire, &all.floor.n1].map(|series| row(series));
    let first = all.traders.first();
    let first = first.map_or([Row::default(); 2], |(_, of)| {
        [&of.wire, &of.n1].map(|series| row(series))
    });
    for (nth, measure) in ["WIRE", "N-1 (RTT)"].into_iter().enumerate() {
        let ways = all.traders.iter().map(|(way, given)| (way.name(), given));
        let others = [
            ("pre-armed: by the program", &all.by_program),
            ("bare floor", &all.floor),
        ];
        for (name, given) in ways.chain(others) {
            let of = row([&given.wire, &given.n1][nth]);
            if of.count == 0 {
                continue;
            }
            let ratios = [
                ratio(of.p50, first[nth].p50),
                ratio(of.p99, first[nth].p99),
                ratio(of.p50, floor[nth].p50),
            ];
            let figures = of.summary().times().into_iter().chain([of.count]);
            let cells = figures.map(|figure| figure.to_string()).chain(ratios);
            table = table.row([format!("{measure}, {name}")].into_iter().chain(cells));
        }
    }
    table
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
    key: impl Fn(&Point) -> u32,
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
        let of = |series: &[Point]| {
            let within = series.iter().filter(|s| (*from..=*to).contains(&key(s)));
            Row::of(within.map(|s| s.2))
        };
        let (memory, trader, floor) = (of(&all.memory), of(all.first()), of(&all.floor.n1));
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
