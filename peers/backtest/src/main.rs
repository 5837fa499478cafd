//! Backtests beside hftbacktest and nautilus_trader: processor time for an event, on the same recordings, in
//! one run.
//!
//! ```text
//! cargo xtask backtest-peers [--file orders.mbo.dbn.zst] [--events N] [--rounds N]
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
//! decoding.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use tickwire_backtest::{Backtest, FillModel};
use tickwire_book::{Books, BooksConfig, OrderView};
use tickwire_console::failure::Failure;
use tickwire_market::{Counter, Instrument, InstrumentId, MarketEvent, OrderId, PointValue, Side};
use tickwire_replay::played::{Follow, Play};
use tickwire_replay::replay::{self, MakePlay, RecordsFile, ReplayArgs};
use tickwire_replay::tape::Speed;
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
        let begun = cpu_ns();
        self.events.iter().for_each(|event| test.on_event(0, event));
        let took = cpu_ns() - begun;
        self.check(&mut test);
        took
    }

    fn ours_of_file(&self, path: &Path, quotes: bool) -> u64 {
        let test = flow::test(self.instruments, quotes, FillModel::Queue, self.is_grouped);
        let test = Rc::new(RefCell::new(test));
        let begun = cpu_ns();
        let played = play(path, &mut Make(Some(Straight(test.clone()))));
        let took = cpu_ns() - begun;
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

/// Processor time of this thread.
pub(crate) fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells a thread's time");
    text.split(' ')
        .next()
        .and_then(|ns| ns.parse().ok())
        .expect("a number")
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

/// nautilus_trader on DBN files: processor time in nanoseconds, and how much it asked for.
fn nautilus(python: &Path, files: &Files, quotes: bool, case: &Case) -> (u64, u64) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("nautilus.py");
    let mut command = Command::new(python);
    command
        .arg(script)
        .args(["--tick", &format!("{:.2}", case.tick as f64 / 1e9)]);
    if quotes {
        command.arg("--quoting");
    }
    let output = command.args(&files.paths).output().expect("Python runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
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
    (number("cpu_ns"), number("requests"))
}

fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

fn main() -> Result<(), Failure> {
    let number = |name, otherwise| option(name).map_or(otherwise, |text| text.parse().expect("a number"));
    let events: usize = number("--events", 2_000_000);
    let rounds: usize = number("--rounds", 3);
    let python = option("--python").map(PathBuf::from);
    let mut cases = vec![
        Case::synthetic("one future", 1, 3_000, 250_000_000, true, events),
        Case::synthetic("500 shares", 500, 200_000, 10_000_000, false, events),
    ];
    if let Some(file) = option("--file") {
        cases.push(Case::recorded(Path::new(&file))?);
    }
    println!(
        "processor time for an event in ns, the least of {rounds}; million events a second; theirs in times of ours"
    );
    for case in &cases {
        let theirs = hft::Data::of(case);
        let files = python
            .as_ref()
            .map(|_| Files::of(case))
            .transpose()
            .map_err(|e| Failure::system(format!("files for nautilus_trader: {e}")))?;
        for quotes in [false, true] {
            let what = if quotes { "quoting" } else { "idle" };
            let [mut ours, mut hft, mut of_file] = [u64::MAX; 3];
            for _ in 0..rounds {
                ours = ours.min(case.ours(quotes));
                hft = hft.min(theirs.run(case, quotes));
                if let Some(file) = &case.file {
                    of_file = of_file.min(case.ours_of_file(file, quotes));
                }
            }
            let ns = |took: u64| took as f64 / case.events.len() as f64;
            let line = |who: &str, ns: f64, of_ours: f64| {
                println!(
                    "{:<16} {what:<8} {who:<16} {ns:8.1} {:8.3} {of_ours:7.1}x",
                    case.name,
                    1e3 / ns
                );
            };
            line("tickwire", ns(ours), 1.0);
            if case.file.is_some() {
                line("from the file", ns(of_file), ns(of_file) / ns(ours));
            }
            line("hftbacktest", ns(hft), ns(hft) / ns(ours));
            // Its snapshot is days old: 850,000 times to quote, for which nautilus_trader had not done after
            // a quarter of an hour.
            let is_too_long = quotes && case.file.is_some();
            if is_too_long && python.is_some() {
                println!(
                    "{:<16} {what:<8} nautilus_trader is not run: it takes too long",
                    case.name
                );
            }
            if let Some(python) = python.as_ref().filter(|_| !is_too_long) {
                let (took, requests) = nautilus(python, files.as_ref().expect("its files"), quotes, case);
                line("nautilus_trader", ns(took), ns(took) / ns(ours));
                if quotes {
                    println!(
                        "{:<16} {what:<8} nautilus_trader was asked for {requests} quotes",
                        case.name
                    );
                }
            }
        }
    }
    Ok(())
}
