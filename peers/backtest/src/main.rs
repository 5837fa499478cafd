//! Backtests beside hftbacktest and nautilus_trader: processor time for an event, on the same recordings, in
//! one run.
//!
//! ```text
//! cargo xtask backtest-peers [--file orders.mbo.dbn.zst] [--events N] [--rounds N] [--alone]
//! ```
//! installs nautilus_trader from PyPI and runs this. Recordings: one synthetic future, 500 synthetic shares
//! (`crates/backtest/benches/flow`), and a DBN file of one future, market by order, where one is named.
//! nautilus_trader gets DBN files of the synthetic ones. Variants: idle, and a bid and an offer replaced
//! every 100 ms.
//!
//! Everybody gets the same events, converted before the time is taken: an execution is a fill and a
//! cancellation or modification for hftbacktest, as Databento has it. Every contestant's book is compared
//! with the recording's at the end, price by price, and none may have refused a request. Contestants take
//! turns; the least time of all rounds counts. `from the file` is ours with reading, decompressing and
//! decoding: of the thread that runs the backtest, of the process, in which decompressing has a thread of its
//! own, and by the clock, which is what somebody waits where two cores are free. `--alone`: only ours.
//!
//! A recorded file is played a second time without its longest pause: what came before it is told a second
//! before what came after it. In the file of 25 December 2023 the book of the morning stands alone for 23
//! hours, in which a quoter wakes up 830,000 times; nautilus_trader has not done that after a quarter of an
//! hour. Whoever is not done after `--patience` seconds is stopped, and that is said.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tickwire_backtest::{Backtest, FillModel};
use tickwire_book::{Books, BooksConfig, OrderView};
use tickwire_console::failure::Failure;
use tickwire_market::{Counter, Instrument, InstrumentId, MarketEvent, Nanos, OrderId, PointValue, Side};
use tickwire_replay::played::{Follow, Play};
use tickwire_replay::replay::{self, MakePlay, RecordsFile, ReplayArgs};
use tickwire_replay::tape::Speed;
use tickwire_runtime::clock::{process_cpu_ns, thread_cpu_ns};
use tickwire_runtime::signal::StopFlag;
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::wiring::Reception;

#[path = "../../../crates/backtest/benches/flow/mod.rs"]
mod flow;
mod hft;
#[path = "../../../crates/backtest/benches/flow/told.rs"]
mod told;

use flow::{Flow, Quoter, sizes};
use told::WithOrder;

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

/// A recording.
pub(crate) struct Case {
    name: String,
    /// In 1e-9.
    pub(crate) tick: i64,
    pub(crate) instruments: u32,
    is_grouped: bool,
    events: Vec<MarketEvent>,
    /// The same by instrument, with which order it was about as it was before.
    pub(crate) with_orders: Vec<Vec<WithOrder>>,
    /// What it comes to.
    pub(crate) books: Books,
    file: Option<PathBuf>,
}

impl Case {
    fn new(name: &str, instruments: u32, tick: i64, is_grouped: bool, events: Vec<MarketEvent>) -> Case {
        let mut case = Case {
            name: name.into(),
            tick,
            instruments,
            is_grouped,
            with_orders: (0..instruments).map(|_| Vec::new()).collect(),
            books: Books::new(sizes()),
            events,
            file: None,
        };
        for event in &case.events {
            let had = case.books.order(event.order_id);
            if let Some(own) = case.with_orders.get_mut(event.instrument.index().wrapping_sub(1)) {
                own.push((*event, had));
            }
            case.books.apply(event);
        }
        assert_eq!(
            case.books.counters().get(Counter::BookRejects),
            0,
            "{name}: events that do not fit"
        );
        case
    }

    fn synthetic(
        name: &str,
        instruments: u32,
        orders: usize,
        tick: i64,
        is_grouped: bool,
        events: usize,
    ) -> Case {
        let mut flow = Flow::new(instruments, orders.min(events / 4), tick, is_grouped);
        let events = (0..events).map(|_| flow.event()).collect();
        Case::new(name, instruments, tick, is_grouped, events)
    }

    /// The same events without the longest pause, if there is one of more than a minute.
    fn without_pause(&self) -> Option<Case> {
        let times = self
            .events
            .windows(2)
            .map(|two| two[1].recv_ts.since(two[0].recv_ts));
        let (at, pause) = times.enumerate().max_by_key(|(_, pause)| *pause)?;
        if pause < 60 * Nanos::SECOND {
            return None;
        }
        let mut events = self.events.clone();
        for event in &mut events[..=at] {
            for time in [&mut event.recv_ts, &mut event.venue_ts] {
                *time = time.after(pause - Nanos::SECOND);
            }
        }
        let name = format!("{} without its pause", self.name);
        Some(Case::new(
            &name,
            self.instruments,
            self.tick,
            self.is_grouped,
            events,
        ))
    }

    fn recorded(path: &Path) -> Result<Case, Failure> {
        let gathered = Rc::new(RefCell::new(Vec::new()));
        let mut make = Make(Some(Gather {
            events: gathered.clone(),
            books: Books::new(sizes()),
        }));
        play(path, &mut make)?;
        let events = std::mem::take(&mut *gathered.borrow_mut());
        let mut case = Case::new("ESH4, recorded", 1, 250_000_000, true, events);
        case.file = Some(path.to_path_buf());
        Ok(case)
    }

    /// The levels of a side of an instrument, the best first: price in 1e-9, and quantity.
    pub(crate) fn levels(&self, instrument: u32, side: Side) -> Vec<(i64, u64)> {
        let book = self.books.book(InstrumentId(instrument)).expect("its book");
        book.levels(side)
            .map(|level| (level.price.raw(), level.qty.0))
            .collect()
    }

    fn ours(&self, quotes: bool) -> u64 {
        let mut test = flow::test(self.instruments, quotes, FillModel::Queue, self.is_grouped);
        let begun = thread_cpu_ns();
        self.events.iter().for_each(|event| test.on_event(0, event));
        let took = thread_cpu_ns() - begun;
        self.check(&mut test);
        took
    }

    /// Processor time of the thread, and of the process, and time by the clock.
    fn ours_of_file(&self, path: &Path, quotes: bool) -> [u64; 3] {
        let test = flow::test(self.instruments, quotes, FillModel::Queue, self.is_grouped);
        let test = Rc::new(RefCell::new(test));
        let (begun, started) = ([thread_cpu_ns(), process_cpu_ns()], Instant::now());
        let played = play(path, &mut Make(Some(Straight(test.clone()))));
        let clock = started.elapsed().as_nanos() as u64;
        let took = [thread_cpu_ns() - begun[0], process_cpu_ns() - begun[1], clock];
        played.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        self.check(&mut test.borrow_mut());
        took
    }

    fn check(&self, test: &mut Backtest<Quoter>) {
        assert_eq!(
            test.books(0).state_hash(),
            self.books.state_hash(),
            "{}: our final books",
            self.name
        );
        assert_eq!(test.books(0).counters().get(Counter::BookRejects), 0);
        let summary = test.finish();
        assert_eq!((summary.events, summary.rejects), (self.events.len() as u64, 0));
    }
}

/// Collects the events of a file.
struct Gather {
    events: Rc<RefCell<Vec<MarketEvent>>>,
    books: Books,
}

impl Follow for Gather {
    const HEARS_EXECUTIONS: bool = true;

    fn event(&mut self, event: &MarketEvent) {
        self.books.apply(event);
        self.events.borrow_mut().push(*event);
    }

    fn defined(&mut self, _: &Instrument, _: Option<PointValue>) {}

    fn order(&self, order: OrderId) -> Option<OrderView> {
        self.books.order(order)
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        at(&self.books);
    }
}

/// Straight into a backtest.
struct Straight(Rc<RefCell<Backtest<Quoter>>>);

impl Follow for Straight {
    const HEARS_EXECUTIONS: bool = true;

    fn event(&mut self, event: &MarketEvent) {
        self.0.borrow_mut().on_event(0, event);
    }

    fn defined(&mut self, _: &Instrument, _: Option<PointValue>) {}

    fn order(&self, order: OrderId) -> Option<OrderView> {
        self.0.borrow().books(0).order(order)
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        at(self.0.borrow().books(0));
    }
}

struct Make<F>(Option<F>);

impl<F: Follow + 'static> MakePlay for Make<F> {
    fn channel(
        &mut self,
        _: &FeedConfig,
        _: usize,
        _: &Reception,
        name: String,
        _: BooksConfig,
    ) -> Result<Box<dyn Play>, Failure> {
        Err(Failure::config(format!("{name}: give a DBN file of orders")))
    }

    fn records(&mut self, file: RecordsFile) -> Result<Box<dyn Play>, Failure> {
        let to = self.0.take().ok_or_else(|| Failure::config("give one file"))?;
        Ok(file.into_play(to))
    }

    fn is_for_channels(&self) -> bool {
        true
    }
}

fn play<F: Follow + 'static>(path: &Path, make: &mut Make<F>) -> Result<(), Failure> {
    let args = ReplayArgs {
        files: vec![path.to_path_buf()],
        config: None,
        protocol: None,
        templates: Vec::new(),
        speed: Speed::Max,
        step: false,
        book: Vec::new(),
        levels: 0,
        symbol: Vec::new(),
        check: None,
        json: false,
        max_instruments: None,
        max_orders: None,
        max_levels: None,
    };
    let fed = replay::feed(&args, &StopFlag::default(), make)?;
    fed.fault.map_or(Ok(()), |fault| Err(Failure::check(fault)))
}

/// Bytes as a Zstandard frame of raw blocks: nautilus_trader reads no DBN file that is not compressed. RFC
/// 8878, 3.1.1.
fn in_frame(bytes: &[u8]) -> Vec<u8> {
    // No size, no checksum, a window of 128 KiB.
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38];
    let blocks = bytes.chunks(1 << 17);
    let last = blocks.len().saturating_sub(1);
    for (at, block) in blocks.enumerate() {
        let header = (block.len() as u32) << 3 | u32::from(at == last);
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.extend_from_slice(block);
    }
    frame
}

/// What nautilus_trader is given: a DBN file for each instrument.
struct Files {
    paths: Vec<PathBuf>,
    /// A folder of this process's, which goes with it.
    folder: Option<PathBuf>,
}

impl Files {
    fn of(case: &Case) -> std::io::Result<Files> {
        if let Some(file) = &case.file {
            return Ok(Files {
                paths: vec![file.clone()],
                folder: None,
            });
        }
        let folder = std::env::temp_dir().join(format!("tickwire-peers-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut paths = Vec::new();
        for (place, events) in case.with_orders.iter().enumerate() {
            let path = folder.join(format!("{}.dbn.zst", place + 1));
            std::fs::write(&path, in_frame(&told::dbn_file(events)))?;
            paths.push(path);
        }
        Ok(Files {
            paths,
            folder: Some(folder),
        })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// nautilus_trader on DBN files: processor time in nanoseconds, and how much it asked for. `None`: it was not
/// done in time, and is stopped.
fn nautilus(
    python: &Path,
    files: &Files,
    quotes: bool,
    case: &Case,
    patience: Duration,
) -> Option<(u64, u64)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("nautilus.py");
    let mut command = Command::new(python);
    command
        .arg(script)
        .args(["--tick", &format!("{:.2}", case.tick as f64 / 1e9)]);
    if quotes {
        command.arg("--quoting");
    }
    // Answers may be longer than a pipe holds.
    let answer = std::env::temp_dir().join(format!("tickwire-peers-{}.json", std::process::id()));
    let file = std::fs::File::create(&answer).expect("a file");
    let child = command.args(&files.paths).stdout(Stdio::from(file)).spawn();
    let mut child = child.expect("Python runs");
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            break Some(status);
        }
        if begun.elapsed() > patience {
            // It may be over just now.
            let _ = child.kill();
            child.wait().expect("it is ours");
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let said = std::fs::read(&answer).expect("its answer");
    std::fs::remove_file(&answer).expect("ours");
    let status = status?;
    assert!(status.success(), "nautilus_trader: {status}");
    let found: serde_json::Value = serde_json::from_slice(&said).expect("JSON");
    assert_eq!(found["rejects"], 0, "nautilus_trader");
    let books = found["books"].as_array().expect("books");
    assert_eq!(books.len(), case.instruments as usize, "nautilus_trader's books");
    for (instrument, book) in (1..).zip(books) {
        for (side, name) in [(Side::Bid, "bids"), (Side::Ask, "asks")] {
            let levels = book[name].as_array().expect("levels").iter().map(|level| {
                let price = level[0].as_str().and_then(|text| text.parse::<f64>().ok());
                let price = price.expect("a price");
                (
                    (price * 100.0).round() as i64 * 10_000_000,
                    level[1].as_u64().expect("a quantity"),
                )
            });
            let levels: Vec<(i64, u64)> = levels.collect();
            assert_eq!(
                levels,
                case.levels(instrument, side),
                "nautilus_trader's final {name} of {instrument}"
            );
        }
    }
    let number = |name: &str| found[name].as_u64().expect("a number");
    Some((number("cpu_ns"), number("requests")))
}

fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

fn main() -> Result<(), Failure> {
    // As `backtest` does before it makes its books.
    tickwire_runtime::alloc::populate_large_blocks();
    let number = |name, otherwise| option(name).map_or(otherwise, |text| text.parse().expect("a number"));
    let events: usize = number("--events", 2_000_000);
    let rounds: usize = number("--rounds", 3);
    let python = option("--python").map(PathBuf::from);
    let is_alone = std::env::args().any(|argument| argument == "--alone");
    let mut cases = vec![
        Case::synthetic("one future", 1, 3_000, 250_000_000, true, events),
        Case::synthetic("500 shares", 500, 200_000, 10_000_000, false, events),
    ];
    if let Some(file) = option("--file") {
        let whole = Case::recorded(Path::new(&file))?;
        let part = whole.without_pause();
        cases.push(whole);
        cases.extend(part);
    }
    let patience = Duration::from_secs(number("--patience", 900) as u64);
    println!(
        "processor time for an event in ns, the least of {rounds}; million events a second; theirs in times of ours"
    );
    for case in &cases {
        let theirs = (!is_alone).then(|| hft::Data::of(case));
        let files = python
            .as_ref()
            .map(|_| Files::of(case))
            .transpose()
            .map_err(|e| Failure::system(format!("files for nautilus_trader: {e}")))?;
        for quotes in [false, true] {
            let what = if quotes { "quoting" } else { "idle" };
            let [mut ours, mut hft] = [u64::MAX; 2];
            let mut of_file = [u64::MAX; 3];
            for _ in 0..rounds {
                ours = ours.min(case.ours(quotes));
                if let Some(theirs) = &theirs {
                    hft = hft.min(theirs.run(case, quotes));
                }
                if let Some(file) = &case.file {
                    let took = case.ours_of_file(file, quotes);
                    of_file = [0, 1, 2].map(|at| of_file[at].min(took[at]));
                }
            }
            let ns = |took: u64| took as f64 / case.events.len() as f64;
            let line = |who: &str, ns: f64, of_ours: f64| {
                println!(
                    "{:<32} {what:<8} {who:<27} {ns:8.1} {:8.3} {of_ours:7.1}x",
                    case.name,
                    1e3 / ns
                );
            };
            line("tickwire", ns(ours), 1.0);
            if case.file.is_some() {
                let [thread, process, clock] = of_file.map(ns);
                line("from the file", thread, thread / ns(ours));
                line("from the file, process", process, process / ns(ours));
                line("from the file, by the clock", clock, clock / ns(ours));
            }
            if theirs.is_some() {
                line("hftbacktest", ns(hft), ns(hft) / ns(ours));
            }
            let Some(python) = python.as_ref() else {
                continue;
            };
            let files = files.as_ref().expect("its files");
            // The pause alone takes it longer than anybody waits; the next case is the same without it.
            if quotes && case.file.is_some() && case.without_pause().is_some() {
                println!(
                    "{:<32} {what:<8} nautilus_trader is asked without the pause alone",
                    case.name
                );
                continue;
            }
            let Some((took, requests)) = nautilus(python, files, quotes, case, patience) else {
                println!(
                    "{:<32} {what:<8} nautilus_trader was not done after {} s and is stopped",
                    case.name,
                    patience.as_secs()
                );
                continue;
            };
            line("nautilus_trader", ns(took), ns(took) / ns(ours));
            if quotes {
                println!(
                    "{:<32} {what:<8} nautilus_trader was asked for {requests} quotes",
                    case.name
                );
            }
        }
    }
    Ok(())
}
