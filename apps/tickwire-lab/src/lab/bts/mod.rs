//! Kind `bts`: market data of a future in, quotes of the options on it out, by number of options. Measured as
//! it was published: every quote carries the sequence number of the packet that caused it, so that what the
//! venue saw and what the quoter noted are matched message by message.
//!
//! One thread is market and venue: it sends the future's packets at their times, takes the mass quotes and
//! accepts them. The quoter is in memory, one thread, or three.

mod quoter;
mod tape;
mod venue;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tickwire_lab::scenario::{Shape, Wrong};
use tickwire_lab::{Case, MISSING, Measure, Scenario, Schedule, Summary, Table, format_count};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::{Clock, tsc, wall};
use tickwire_runtime::inbox::{Backend, Inbox, Input, await_receive_stamps};
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::tcp::TcpStream;

use self::quoter::{Done, Layout, Sockets};
use self::tape::Tape;
use self::venue::{Came, Venue};
use super::inlet;
use super::kind::Kind;
use super::net::{Net, network};
use super::paths::{self, Path};
use super::quadra::link::{COMING, FeedOut, Listening};
use super::quadra::message::Transport;
use super::run::{CaseId, Places, Run};
use tickwire_console::failure::Failure;

pub(super) struct Bts;

/// When nothing has come for so long, the last quotes have.
const QUIET: Duration = Duration::from_millis(200);
/// How long the kernel may take to begin to stamp what it receives.
const STAMPS_PATIENCE: Duration = Duration::from_secs(10);
/// How long that is waited for.
const DRAINED: Duration = Duration::from_secs(20);

/// `[settings]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    /// Numbers of options; each is measured.
    quotes: Vec<u32>,
    /// How the quoter is laid out; each is measured.
    layouts: Vec<Layout>,
    /// The ways through the machine, each with each layout: `socket`, `xdp`, `xdp+delegated`. All but the
    /// first want an interface for each side (`run.network`).
    backends: Vec<Path>,
    /// Also in memory, without sockets.
    memory: bool,
    /// Also from an edit of the volatilities to the quotes that follow it, in memory.
    edits: bool,
    /// Between packets, one thread goes through what the next might cause this often, microseconds; 0 is
    /// never.
    rehearse_us: u32,
    /// What is wrong on purpose: to see that the run fails.
    fault: Fault,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            quotes: vec![16, 32, 64, 128, 256, 512, 1_024],
            layouts: vec![Layout::One, Layout::Three],
            backends: vec![Path::Socket],
            memory: true,
            edits: true,
            rehearse_us: 10,
            fault: Fault::None,
        }
    }
}

/// What is wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Fault {
    /// Nothing.
    #[default]
    None,
    /// The venue has not seen one of the messages.
    LoseQuote,
}

/// The published table: quotes; quoter only, with the operating system: median, p99, standard deviation,
/// microseconds.
const PUBLISHED: [(u32, [u64; 3], [u64; 3]); 7] = [
    (16, [8, 23, 5], [14, 32, 6]),
    (32, [12, 25, 5], [20, 33, 6]),
    (64, [11, 28, 6], [20, 35, 7]),
    (128, [13, 31, 5], [20, 40, 6]),
    (256, [18, 52, 9], [26, 63, 10]),
    (512, [28, 46, 7], [38, 56, 8]),
    (1_024, [36, 83, 12], [45, 91, 12]),
];

const OUTSIDE: &str = "From the time a packet was intended to be sent to the return of the venue's receive call with the last mass quote that \
it caused.";
const WIRE: &str = "From before the call that sent the packet to the frame of the last mass quote in the venue's stack, as the kernel stamped it \
(of a call that took several frames, the last): without the venue's own TCP.";
const FROM_SEND: &str = "The same from before the call that sent the packet.";
const INSIDE: &str = "From the return of the quoter's receive call with the packet to before the call that sends the last mass quote.";
const MEMORY: &str =
    "From before the packet's bytes are looked at until the last mass quote's bytes are in memory.";
const EDIT: &str = "From before an edit of every expiry's volatilities, with its checks, Greeks, terms and nine rows of the ladder, until the last \
mass quote's bytes are in memory.";
const MEMORY_FIRST: &str = "Until the first's are.";
const FIRST: &str = "Likewise, to before the first.";
const DIFFERS: &str = "Blue Trading Systems, 2017: ten minutes of production data of the ES future, a capture device on the wire, two servers \
with 10 GbE network cards, a 3.6 GHz Xeon E3. Here: one host, its loopback or two network namespaces, kernel sockets, a simulated future that moves as \
often as it is told to, every side that should change is changed. Their \"quoter only\" has hand-overs between three threads in it: our layout of three \
threads has, one thread has none.";

impl Kind for Bts {
    const NAME: &'static str = "bts";
    const ROLES: &'static [&'static str] = &["market", "quoter", "quoting", "fix"];
    const SHAPES: &'static [Shape] = &[Shape::Open];
    type Settings = Settings;

    fn check(scenario: &Scenario<Settings>) -> Result<(), Wrong> {
        let settings = &scenario.settings;
        let prepared = "a burst of quotes cannot be prepared for a program";
        paths::check(&settings.backends, &[(Path::PreArmed, prepared)], &scenario.run)?;
        if scenario.load.intervals_us.len() != 1 {
            return Err(Wrong::new("load.intervals_us", "give one interval, as [1000]"));
        }
        let is_good = |n: &u32| (2..=2_048).contains(n) && n.is_multiple_of(2);
        if settings.quotes.is_empty() || !settings.quotes.iter().all(is_good) {
            return Err(Wrong::new(
                "settings.quotes",
                "give even numbers of options from 2 to 2048",
            ));
        }
        if settings.layouts.is_empty() && !settings.memory && !settings.edits {
            return Err(Wrong::new("settings.layouts", "nothing is measured"));
        }
        Ok(())
    }

    fn run(scenario: &Scenario<Settings>, run: &mut Run<'_>) -> Result<(), Failure> {
        let net = network(&scenario.run, run)?;
        let places = Places::new(&scenario.cores, &scenario.run);
        if scenario.settings.layouts.contains(&Layout::Three) && Cores::count().parallelism() < 4 {
            run.note(format!(
                "Three threads of the quoter and the market have {} cores: they wait for each other's turn, and that layout shows it.",
                Cores::count().parallelism()
            ));
        }
        let mut cases = Vec::new();
        for quotes in &scenario.settings.quotes {
            cases.extend(declare(&scenario.settings, (*quotes, is_stamped(&net)), run));
        }
        let mut outcome = Ok(());
        'all: for quotes in &scenario.settings.quotes {
            run.progress(&format!("generating the market of {quotes} options"));
            let moves = scenario.run.samples.get() as usize + scenario.run.warm_up as usize;
            let Some(tape) = Tape::generate(*quotes, moves, scenario.run.seed, run.stop())? else {
                outcome = run.go_on();
                break;
            };
            let stage = Stage {
                scenario,
                tape: &tape,
                net: &net,
                places: &places,
                clock: run.clock().clone(),
                stop: run.stop(),
            };
            for repetition in 1..=scenario.run.repetitions.get() {
                for (key, id) in cases.iter().filter(|(key, _)| key.quotes == *quotes) {
                    outcome = run.go_on();
                    if outcome.is_err() {
                        break 'all;
                    }
                    let name = run.of(*id).name.clone();
                    run.progress(&format!("repetition {repetition}: {name}"));
                    let measured = stage.measure(run, *key, *id, repetition);
                    outcome = run.attempt(&[*id], repetition, measured).map(drop);
                    if outcome.is_err() {
                        break 'all;
                    }
                }
            }
        }
        tables(scenario, run, &cases);
        outcome
    }
}

/// Of one case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    quotes: u32,
    way: Way,
}

/// From where to where quotes go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Way {
    /// From a packet's bytes to those of the mass quotes.
    Memory,
    /// The same from an edit of the volatilities.
    Edits,
    /// Between sockets, or past them.
    Sockets(Layout, Path),
}

impl Way {
    fn name(self) -> String {
        match self {
            Way::Memory => "in memory".to_owned(),
            Way::Edits => "edits in memory".to_owned(),
            Way::Sockets(layout, Path::Socket) => layout.name().to_owned(),
            Way::Sockets(layout, path) => format!("{}, {}", layout.name(), path.name()),
        }
    }
}

/// Whether the kernel says when quotes entered the venue's stack: not on loopback, where a way past the
/// kernel would have nothing to be compared with.
fn is_stamped(net: &Net) -> bool {
    !matches!(net, Net::Loopback)
}

fn declare(settings: &Settings, (quotes, is_stamped): (u32, bool), run: &mut Run<'_>) -> Vec<(Key, CaseId)> {
    let memory = settings.memory.then_some(Way::Memory);
    let edits = settings.edits.then_some(Way::Edits);
    let sockets = settings.layouts.iter().flat_map(|layout| {
        let ways = settings.backends.iter();
        ways.map(|path| Way::Sockets(*layout, *path))
    });
    let keys = memory
        .into_iter()
        .chain(edits)
        .chain(sockets)
        .map(|way| Key { quotes, way });
    keys.map(|key| {
        let group = format!("{quotes} options");
        let name = format!("{quotes} options, {}", key.way.name());
        let case = match key.way {
            Way::Memory => {
                Case::new(&name, Measure::new("all", MEMORY)).measure(Measure::new("first", MEMORY_FIRST))
            }
            Way::Edits => {
                Case::new(&name, Measure::new("all", EDIT)).measure(Measure::new("first", MEMORY_FIRST))
            }
            Way::Sockets(..) => {
                let case = Case::new(&name, Measure::new("outside", OUTSIDE))
                    .measure(Measure::new("outside from send", FROM_SEND))
                    .measure(Measure::new("inside", INSIDE))
                    .measure(Measure::new("inside, first", FIRST));
                match is_stamped {
                    true => case.measure(Measure::new("WIRE", WIRE)),
                    false => case,
                }
            }
        };
        let case = case.in_group(&group, &key.way.name());
        let case = case
            .tag("mass quotes")
            .tag("entries")
            .parameter("options", quotes.to_string());
        (key, run.case(case))
    })
    .collect()
}

/// What was sent and seen of one repetition.
struct Market {
    /// By packet: when it was intended and sent, readings of the counter, and the latter by the real-time
    /// clock.
    sent: Vec<[u64; 3]>,
    venue: Venue,
}

/// What the measurements of one number of options share.
struct Stage<'a> {
    scenario: &'a Scenario<Settings>,
    tape: &'a Tape,
    net: &'a Net,
    places: &'a Places,
    clock: Clock,
    stop: &'a StopFlag,
}

/// What the two sides of a run tell each other beside their sockets.
#[derive(Default)]
struct Signals {
    /// The quoter quotes, or has failed.
    ready: AtomicBool,
    /// The market is over, or has failed.
    ends: AtomicBool,
}

/// Sets a flag however its scope is left, so that nobody waits for one that failed.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Stage<'_> {
    fn measure(&self, run: &mut Run<'_>, key: Key, id: CaseId, repetition: u32) -> Result<(), Failure> {
        let Stage {
            scenario,
            tape,
            places,
            clock,
            ..
        } = self;
        let pair = places.core("market").zip(places.core("quoter"));
        let before = run.shared_memory_ns(pair);
        let mut recorder = run.recorder(id);
        let began = tsc();
        let (done, market) = match key.way {
            Way::Sockets(layout, path) => self.over_sockets(layout, path)?,
            way => {
                let mut venue = self.venue();
                let done = quoter::in_memory(tape, &mut venue, clock, way == Way::Edits)?;
                let sent = vec![[0; 3]; tape.packets.len()];
                (done, Market { sent, venue })
            }
        };
        let warm_up = scenario.run.warm_up as usize;
        let (mut unseen, mut entries) = (0_u64, 0_u64);
        for (nth, took) in done.took.iter().enumerate() {
            let seen = market.venue.seen(took.seq);
            // What waited for an answer before it could follow the packet comes behind these.
            let last = seen.and_then(|seen| seen.came.get(took.messages as usize - 1).copied());
            let of_packet = seen.map_or(0, |seen| seen.entries);
            // Quotes of an edit name the packet before it, as others do.
            unseen += u64::from(last.is_none() && key.way != Way::Edits);
            entries += u64::from(of_packet);
            if nth < warm_up {
                continue;
            }
            let span = |from: u64, to: u64| clock.span_ns(to.saturating_sub(from));
            let inside = [span(took.from, took.last), span(took.from, took.first)];
            let tags = [took.messages.into(), took.entries.unwrap_or(of_packet).into()];
            let place = took.seq.checked_sub(tape.first).map(|at| at as usize);
            let Some([intended, sent, wall_ns]) = place.and_then(|at| market.sent.get(at).copied()) else {
                continue;
            };
            match key.way {
                Way::Memory | Way::Edits => recorder.record(nth as u64, &inside, &tags),
                Way::Sockets(..) => {
                    let outside = |from: u64| last.map_or(MISSING, |last| span(from, last.ticks));
                    let stamp = last.and_then(|last| last.kernel_ns);
                    let wire = stamp.and_then(|stamp| stamp.get().checked_sub(wall_ns));
                    let at = span(market.sent[0][0], intended);
                    let values = [
                        outside(intended),
                        outside(sent),
                        inside[0],
                        inside[1],
                        wire.unwrap_or(MISSING),
                    ];
                    let count = 4 + usize::from(is_stamped(self.net));
                    recorder.record(at, &values[..count], &tags);
                }
            }
        }
        let mut repeated = recorder.finish([
            ("packets", tape.packets.len() as u64),
            ("packets with quotes", done.took.len() as u64),
            ("mass quotes", done.messages),
            ("entries", entries),
        ]);
        repeated.shared_memory_ns = before.zip(run.shared_memory_ns(pair));
        run.repetition(id, began, repeated);
        checks(run, (key.way, id), repetition, &done, &market, unseen);
        Ok(())
    }

    fn venue(&self) -> Venue {
        Venue::new(self.scenario.settings.fault == Fault::LoseQuote)
    }

    fn over_sockets(&self, layout: Layout, path: Path) -> Result<(Done, Market), Failure> {
        let signals = &Signals::default();
        std::thread::scope(|scope| {
            let (route_to, route_of) = std::sync::mpsc::channel();
            let quoting = scope.spawn(move || -> Result<Done, Failure> {
                let _ready = SetAtEnd(&signals.ready);
                self.net.enter(1)?;
                let route = route_of
                    .recv()
                    .map_err(|_| Failure::system("the market did not open"))?;
                let (feed, orders) = inlet::open(path, self.net, route)?;
                let sockets = Sockets { feed, orders };
                quoter::between_sockets(
                    self.tape,
                    (layout, self.scenario.settings.rehearse_us),
                    sockets,
                    self.clock.clone(),
                    self.places,
                    signals,
                )
            });
            let market = scope.spawn(move || -> Result<Market, Failure> {
                let _ends = SetAtEnd(&signals.ends);
                self.net.enter(0)?;
                let group = Ipv4Addr::new(239, 77, 0, 7);
                let listening = Listening::open(self.net, Transport::Multicast, (0, 0), group)?;
                let _ = route_to.send(listening.route());
                let (feed, orders) = listening.accept(COMING, self.stop)?;
                self.places.enter("market")?;
                self.market(signals, feed, orders)
            });
            let market = market
                .join()
                .map_err(|_| Failure::system("the market's thread failed"))?;
            let done = quoting
                .join()
                .map_err(|_| Failure::system("the quoter's thread failed"))?;
            // Whoever fails, the other loses its peer: why it failed says more.
            match (done, market) {
                (Ok(done), Ok(market)) => Ok((done, market)),
                (Err(why), _) | (Ok(_), Err(why)) => Err(why),
            }
        })
    }

    fn market(&self, signals: &Signals, mut feed: FeedOut, orders: TcpStream) -> Result<Market, Failure> {
        let (tape, clock) = (self.tape, &self.clock);
        let inbox = Inbox::open(&orders, Backend::Spin, is_stamped(self.net)).map_err(lost)?;
        if is_stamped(self.net) && !await_receive_stamps(STAMPS_PATIENCE).unwrap_or(false) {
            return Err(Failure::system(
                "the kernel does not stamp what TCP receives: WIRE cannot be measured here",
            ));
        }
        let mut desk = VenueSide {
            venue: self.venue(),
            orders,
            inbox: inbox.room(1 << 17),
            clock,
        };
        desk.venue.connected(clock.now());
        let begun = Instant::now();
        while !(signals.ready.load(Ordering::Acquire) && desk.venue.is_active()) {
            desk.hear()?;
            if COMING.is_some_and(|patience| begun.elapsed() > patience) || self.stop.is_set() {
                return Err(Failure::peer_lost("the quoter does not log on"));
            }
        }
        // The first quotes, and their answers.
        desk.drain(self.stop)?;
        let interval = self.scenario.load.intervals_us[0].get() * 1_000;
        let begin = tsc() + clock.span_ticks(5_000_000);
        let mut schedule = Schedule::new(Shape::Open, begin, clock.span_ticks(interval));
        let mut sent: Vec<[u64; 3]> = Vec::with_capacity(tape.packets.len());
        while sent.len() < tape.packets.len() && !self.stop.is_set() {
            let now = tsc();
            if now >= schedule.due() {
                let intended = schedule.take(now);
                let (wall, at) = (wall(), tsc());
                feed.send(&tape.packets[sent.len()]).map_err(lost)?;
                sent.push([intended, at, wall.0]);
            }
            if !desk.hear()? {
                std::hint::spin_loop();
            }
        }
        desk.drain(self.stop)?;
        Ok(Market {
            sent,
            venue: desk.venue,
        })
    }
}

fn lost(e: std::io::Error) -> Failure {
    Failure::peer_lost(format!("the market's sockets: {e}"))
}

/// The venue and its connection.
struct VenueSide<'a> {
    venue: Venue,
    orders: TcpStream,
    /// The same, for receiving.
    inbox: Inbox,
    clock: &'a Clock,
}

impl VenueSide<'_> {
    /// Takes and answers what has come; whether there was any.
    fn hear(&mut self) -> Result<bool, Failure> {
        match self.inbox.recv(0).map_err(lost)? {
            Input::Bytes {
                bytes,
                tsc,
                kernel_ns,
            } => {
                let came = Came {
                    ticks: tsc,
                    kernel_ns,
                };
                let answers = self.venue.take(self.clock.nanos_at(tsc), came, bytes);
                self.orders.send(answers).map_err(lost)?;
                Ok(true)
            }
            Input::Nothing => {
                if self.orders.has_unsent() {
                    self.orders.flush().map_err(lost)?;
                }
                Ok(false)
            }
            Input::Closed => Err(Failure::peer_lost("the quoter closed the connection")),
        }
    }

    /// Until nothing has come for [`QUIET`].
    fn drain(&mut self, stop: &StopFlag) -> Result<(), Failure> {
        let begun = Instant::now();
        let mut quiet = begun;
        while quiet.elapsed() < QUIET && !stop.is_set() {
            if self.hear()? {
                quiet = Instant::now();
            }
            if begun.elapsed() > DRAINED {
                return Err(Failure::system(format!(
                    "the quoter still quotes {} s after the last packet",
                    DRAINED.as_secs()
                )));
            }
        }
        Ok(())
    }
}

fn checks(
    run: &mut Run<'_>,
    (way, id): (Way, CaseId),
    repetition: u32,
    done: &Done,
    market: &Market,
    unseen: u64,
) {
    let name = run.of(id).name.clone();
    let arrived = market.venue.messages();
    run.check(
        format!(
            "{name}, repetition {repetition}: every mass quote was seen by the venue{}",
            if way == Way::Edits {
                ""
            } else {
                ", with the packet that caused it"
            }
        ),
        unseen == 0 && done.messages > 0 && arrived == done.messages,
        format!(
            "{} mass quotes sent, {} seen, {} packets whose quotes were not",
            format_count(done.messages),
            format_count(arrived),
            format_count(unseen)
        ),
    );
    let mut wrong = 0;
    let mut example = String::new();
    for (quote, wanted) in (0_u16..).zip(&done.wanted) {
        let live = market.venue.live(quote);
        for side in 0..2 {
            let stands = live[side].and_then(|text| text.parse().ok());
            if stands != wanted[side] {
                wrong += 1;
                example = format!(
                    "; the {} of quote {quote} is {stands:?}, not {:?}",
                    quoter::side_name(side),
                    wanted[side]
                );
            }
        }
    }
    run.check(
        format!("{name}, repetition {repetition}: what stands at the end is what direct pricing wants"),
        wrong == 0 && !done.wanted.is_empty(),
        format!("{wrong} of {} sides differ{example}", 2 * done.wanted.len()),
    );
    let problems: Vec<&String> = done.problems.iter().chain(market.venue.problems()).collect();
    run.check(
        format!("{name}, repetition {repetition}: nobody complains"),
        problems.is_empty(),
        problems.first().map_or("nothing".to_string(), |p| {
            format!("{} times: {p}", problems.len())
        }),
    );
}

/// Microseconds with two digits.
fn us(ns: f64) -> String {
    format!("{:.2}", ns / 1_000.0)
}

/// The ways through the machine beside each other, where they were stamped.
fn side_by_side(run: &Run<'_>, cases: &[(Key, CaseId)]) -> Option<Table> {
    let mut table = Table::new(
        "Way by way, µs: WIRE, to the last mass quote's frame in the venue's stack; RTT, to its bytes in the venue; first, inside to the first",
        &Summary::columns(&["options", "way", "measure"], &["packets", "p50 / socket"]),
    );
    let mut is_empty = true;
    for (key, id) in cases {
        let Way::Sockets(layout, _) = key.way else {
            continue;
        };
        let base = Key {
            way: Way::Sockets(layout, Path::Socket),
            ..*key
        };
        let base = cases.iter().find(|(of, _)| *of == base).map(|(_, id)| *id);
        if run.of(*id).measures.len() < 5 {
            return None;
        }
        for (measure, name) in [(4, "WIRE"), (1, "RTT"), (3, "first")] {
            let s = run.of(*id).histogram(measure).summary();
            if s.count == 0 {
                continue;
            }
            is_empty = false;
            let base = base.map_or(0, |base| run.of(base).histogram(measure).summary().p50);
            let ratio = match base {
                0 => String::new(),
                base => format!("{:.2}", s.p50 as f64 / base as f64),
            };
            let figures = s.times().map(|ns| us(ns as f64));
            let names = [key.quotes.to_string(), key.way.name(), name.to_owned()];
            let cells = names
                .into_iter()
                .chain(figures)
                .chain([s.count.to_string(), ratio]);
            table = table.row(cells);
        }
    }
    (!is_empty).then_some(table)
}

fn tables(scenario: &Scenario<Settings>, run: &mut Run<'_>, cases: &[(Key, CaseId)]) {
    let published: BTreeMap<u32, ([u64; 3], [u64; 3])> = PUBLISHED
        .iter()
        .map(|(n, alone, os)| (*n, (*alone, *os)))
        .collect();
    let columns = [
        "options",
        "layout",
        "first message p50 / p99",
        "quoter only: median / p99 / stddev",
        "published",
        "times faster, median / p99",
        "with the operating system: median / p99 / stddev",
        "published",
        "times faster, median / p99",
    ];
    let mut table = Table::new("Packet to quotes, µs", &columns);
    for (key, id) in cases {
        let case = run.of(*id);
        let (alone, first, outside) = match key.way {
            Way::Memory => (case.histogram(0), case.histogram(1), None),
            Way::Sockets(..) => (case.histogram(2), case.histogram(3), Some(case.histogram(1))),
            // Nothing of the kind was published.
            Way::Edits => continue,
        };
        if alone.is_empty() {
            continue;
        }
        let three = |h: &tickwire_lab::Histogram| {
            format!(
                "{} / {} / {}",
                us(h.at_quantile(0.5) as f64),
                us(h.at_quantile(0.99) as f64),
                us(h.stdev())
            )
        };
        let shown = |p: [u64; 3]| format!("{} / {} / {}", p[0], p[1], p[2]);
        let times = |p: [u64; 3], h: &tickwire_lab::Histogram| {
            let ratio =
                |p: u64, q: f64| format!("{:.1}", p as f64 * 1_000.0 / h.at_quantile(q).max(1) as f64);
            format!("{} / {}", ratio(p[0], 0.5), ratio(p[1], 0.99))
        };
        let theirs = published.get(&key.quotes).copied();
        let none = || "-".to_string();
        table = table.row([
            key.quotes.to_string(),
            key.way.name(),
            format!(
                "{} / {}",
                us(first.at_quantile(0.5) as f64),
                us(first.at_quantile(0.99) as f64)
            ),
            three(&alone),
            theirs.map_or_else(none, |(alone, _)| shown(alone)),
            theirs.map_or_else(none, |(p, _)| times(p, &alone)),
            outside.as_ref().map_or_else(none, three),
            theirs
                .filter(|_| outside.is_some())
                .map_or_else(none, |(_, os)| shown(os)),
            theirs
                .zip(outside.as_ref())
                .map_or_else(none, |((_, os), h)| times(os, h)),
        ]);
    }
    run.table(table);
    if let Some(table) = side_by_side(run, cases) {
        run.table(table);
    }
    let columns = ["options", "first message p50 / p99", "all: p50", "p99", "max"];
    let mut edits = Table::new("Volatility edit to quotes, in memory, µs", &columns);
    for (key, id) in cases.iter().filter(|(key, _)| key.way == Way::Edits) {
        let [all, first] = [0, 1].map(|measure| run.of(*id).histogram(measure));
        if all.is_empty() {
            continue;
        }
        let at = |h: &tickwire_lab::Histogram, q: f64| us(h.at_quantile(q) as f64);
        edits = edits.row([
            key.quotes.to_string(),
            format!("{} / {}", at(&first, 0.5), at(&first, 0.99)),
            at(&all, 0.5),
            at(&all, 0.99),
            us(all.max() as f64),
        ]);
    }
    if scenario.settings.edits {
        run.table(edits);
    }
    let columns = [
        "quotes",
        "quoter only: median / p99 / stddev",
        "with the operating system",
    ];
    let mut theirs = Table::new("Published (2017), µs", &columns);
    for (quotes, alone, os) in PUBLISHED {
        let shown = |p: [u64; 3]| format!("{} / {} / {}", p[0], p[1], p[2]);
        theirs = theirs.row([quotes.to_string(), shown(alone), shown(os)]);
    }
    run.published(theirs, DIFFERS);
}
