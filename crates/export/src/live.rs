//! Rows of a feed handler that runs, out of its shared memory: `tickwire export --live`.
//!
//! ```text
//! ring of each feed thread ─► events ─► books of each source, kept here ─► rows, as of a recording
//!                └ records written over ─► a gap in every source of that ring
//! ```
//! The books begin with the oldest record that the rings still have. Where that is not the daemon's first, or
//! where this reader was overtaken, books lack what was before: their rows are marked until the venue clears
//! the books of the feed (a snapshot, a new session). Nothing that is written over is taken for silence.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_console::failure::Failure;
use tickwire_market::{
    BookState, EventFlags, EventKind, Instrument, InstrumentId, MarketEvent, Price, Qty, Symbol,
};
use tickwire_replay::played::Keep;
use tickwire_replay::progress::Progress;
use tickwire_runtime::places;
use tickwire_runtime::shared::{Attachment, WriterHealth};
use tickwire_runtime::signal::{StopFlag, StopReason};
use tickwire_shm::{Next, Record, RingCursor};
use tickwire_venues::protocol::Protocol;

use crate::out::{Done, Out};
use crate::schema::Schema;
use crate::{ExportArgs, Make, Writing};

/// Records of a ring that are taken before the others, the clock and the signals are looked at.
const RECORDS_PER_LOOK: usize = 4096;
/// Pause where the rings have nothing new.
const PAUSE: Duration = Duration::from_millis(1);
/// How often the daemon's health is asked for.
const HEALTH_EVERY: Duration = Duration::from_millis(100);
/// An instrument is named when its packet is over: how long its name is waited for, once.
const NAME_PATIENCE: Duration = Duration::from_millis(50);
/// How many were waited for in vain before nobody is any more.
const IN_VAIN_MAX: u32 = 8;
/// How soon an instrument without a name is looked up again.
const NAME_AGAIN: Duration = Duration::from_secs(1);
/// Books of a source; instruments beyond them have none, and their rows are marked.
const INSTRUMENTS: u32 = 1 << 17;
/// Live orders of a source unless `--max-orders` says it, and levels.
const ROOM: u32 = 1 << 18;

/// Which daemon, and for how long.
#[derive(clap::Args, Clone, Default, Debug)]
pub struct LiveArgs {
    /// Of the feed handler that runs instead of files: from the oldest event that its shared memory still has
    /// until a signal, or the handler's end; one that is not there yet is waited for
    #[arg(
        long,
        conflicts_with_all = ["files", "partition", "from", "to", "date", "config", "protocol", "templates"]
    )]
    pub live: bool,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS", requires = "live", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// Folder of the daemon; else $TICKWIRE_FOLDER, else $XDG_RUNTIME_DIR/tickwire or /run/tickwire,
    /// whichever has a region
    #[arg(long, value_name = "DIR", requires = "live")]
    pub folder: Option<PathBuf>,
}

/// Why it ended.
enum Over {
    /// The daemon did, in an orderly way.
    Ended,
    /// Its time is over.
    Time,
    Stopped(StopReason),
}

/// When to stop.
struct Until<'a> {
    stop: &'a StopFlag,
    deadline: Option<Instant>,
}

impl Until<'_> {
    fn over(&self) -> Option<Over> {
        if let Some(reason) = self.stop.reason() {
            return Some(Over::Stopped(reason));
        }
        let is_late = |deadline: Instant| Instant::now() >= deadline;
        self.deadline.is_some_and(is_late).then_some(Over::Time)
    }
}

/// Writes the rows of a daemon: what was written, and why some of it is not to be relied on, if so.
///
/// # Errors
/// A region that cannot be read, a file that cannot be written, a schema that shared memory does not have; a
/// signal, once everything read until then is written.
pub(crate) fn export(
    args: &ExportArgs,
    out: Out,
    stop: &StopFlag,
) -> Result<(Done, Option<String>, Vec<String>), Failure> {
    if args.schema == Schema::Definition {
        return Err(Failure::config(
            "shared memory has no definitions of instruments: take --schema definition of a capture",
        ));
    }
    let folder = places::reader_folder(args.live.folder.clone());
    let until = Until {
        stop,
        deadline: args
            .live
            .seconds
            .map(|seconds| Instant::now() + Duration::from_secs(seconds)),
    };
    let out = Rc::new(RefCell::new(out));
    let make = Make {
        out: out.clone(),
        consolidated: Rc::default(),
        schema: args.schema,
        date: None,
        refused: Vec::new(),
    };
    let wanted = symbols(&args.symbol)?;
    let Some(held) = attach(&folder, &until)? else {
        return Err(Failure::peer_lost(format!(
            "no feed handler came to run in {} meanwhile: nothing was written",
            folder.display()
        )));
    };
    let mut live = Live {
        run: Run::new(held),
        folder,
        make,
        wanted,
        max_orders: args.recording.max_orders.unwrap_or(ROOM),
        missed: 0,
        late: 0,
        events: 0,
        updates: 0,
        in_vain: 0,
    };
    live.begin();
    let over = live.follow(&until)?;
    let Live {
        run,
        make,
        missed,
        late,
        events,
        updates,
        ..
    } = live;
    // What waits for the end of its second or bar is told when its source goes.
    drop(run);
    if events == 0 && updates > 0 {
        return Err(Failure::config(
            "the feed handler's rings have no events: leave daemon.ring at both, or set it to events",
        ));
    }
    let refused = make.refused;
    let is_all = !refused.is_empty() && refused.len() == out.borrow().venues.len();
    if is_all {
        return Err(crate::none_of(args.schema));
    }
    let done = out.borrow_mut().finish(stop)?;
    let mut faults = Vec::new();
    if late > 0 {
        faults.push(format!(
            "{late} sources had spoken before what their ring still held: begin with the daemon, or give it a larger daemon.ring_records"
        ));
    }
    if missed > 0 {
        faults.push(format!(
            "{missed} records were written over before they were read: give a larger daemon.ring_records"
        ));
    }
    if let Over::Stopped(reason) = over {
        return Err(Failure::interrupted(format!(
            "{reason}; the {} rows until then are written{}",
            done.rows,
            faults.first().map_or(String::new(), |fault| format!("; {fault}"))
        )));
    }
    Ok((done, (!faults.is_empty()).then(|| faults.join("; ")), refused))
}

fn symbols(names: &[String]) -> Result<Option<Vec<Symbol>>, Failure> {
    let parse = |name: &String| {
        Symbol::new(name.as_bytes())
            .ok_or_else(|| Failure::config(format!("--symbol {name:?} is not a symbol of printable ASCII")))
    };
    let all: Vec<Symbol> = names.iter().map(parse).collect::<Result<_, _>>()?;
    Ok((!all.is_empty()).then_some(all))
}

/// Attaches to the daemon of a folder, once there is one; `None`: it is over before that.
fn attach(folder: &Path, until: &Until<'_>) -> Result<Option<Attachment>, Failure> {
    let mut is_said = false;
    loop {
        match Attachment::attach_of(folder, tickwire_control::client::owners()) {
            Ok(held) => {
                eprintln!("reading the feed handler in {}", folder.display());
                return Ok(Some(held));
            }
            Err(error) if error.may_come() => {}
            Err(other) => return Err(Failure::system(other.to_string())),
        }
        match until.over() {
            Some(Over::Stopped(reason)) => return Err(Failure::interrupted(reason.to_string())),
            Some(_) => return Ok(None),
            None => {}
        }
        if !std::mem::replace(&mut is_said, true) {
            eprintln!("waiting for a feed handler in {}", folder.display());
        }
        std::thread::sleep(HEALTH_EVERY);
    }
}

/// What is known of an instrument.
#[derive(Clone, Copy)]
enum Naming {
    /// It has no slot yet; when it was looked up last.
    Without(Instant),
    /// Its rows are wanted.
    Wanted,
    /// They are not.
    Other,
}

/// A channel of the daemon.
struct Source {
    ring: Option<u32>,
    keep: Option<Box<Writing>>,
    books: Books,
    instruments: HashMap<InstrumentId, Naming>,
}

impl Source {
    /// An event of it, to its books and its rows.
    fn tell(&mut self, event: &MarketEvent) {
        if let Some(keep) = &mut self.keep {
            Keep::event(&mut **keep, event, &mut self.books);
            keep.hand_over();
        }
    }

    /// Messages of it are missing, of one instrument or of all of them: nothing but a clear makes it right.
    fn miss(&mut self, instrument: InstrumentId) {
        let gap = MarketEvent {
            kind: EventKind::Gap,
            venue: self.books.config().venue,
            instrument,
            flags: EventFlags::UNUSABLE,
            ..MarketEvent::default()
        };
        self.tell(&gap);
    }
}

/// One run of the daemon.
struct Run {
    held: Attachment,
    cursors: Vec<RingCursor>,
    /// By number.
    sources: Vec<Option<Source>>,
}

impl Run {
    fn new(held: Attachment) -> Run {
        let reader = held.reader();
        let rings = 0..reader.layout().rings.count;
        let cursors = rings.filter_map(|ring| reader.ring_from_oldest(ring)).collect();
        Run {
            cursors,
            sources: Vec::new(),
            held,
        }
    }
}

struct Live {
    run: Run,
    folder: PathBuf,
    make: Make,
    /// Symbols whose rows are wanted; `None`: all of them.
    wanted: Option<Vec<Symbol>>,
    max_orders: u32,
    /// Records that were written over before they were read.
    missed: u64,
    /// Sources whose first events were gone when reading began.
    late: u64,
    events: u64,
    updates: u64,
    /// Instruments in a row whose name was waited for in vain.
    in_vain: u32,
}

impl Live {
    /// Sources whose ring lost its beginning begin with a gap.
    fn begin(&mut self) {
        let reader = self.run.held.reader();
        let cut: Vec<u32> = (self.run.cursors.iter())
            .filter(|cursor| cursor.position() > 0)
            .map(RingCursor::ring)
            .collect();
        let numbers: Vec<u16> = reader.sources().map(|source| source.number).collect();
        for number in numbers {
            let is_late = self
                .source(number)
                .is_some_and(|source| source.ring.is_some_and(|ring| cut.contains(&ring)));
            if is_late {
                self.late += 1;
                if let Some(source) = self.source(number) {
                    source.miss(InstrumentId::WHOLE_FEED);
                }
            }
        }
    }

    /// A source by its number, made when it is heard of first.
    fn source(&mut self, number: u16) -> Option<&mut Source> {
        let at = usize::from(number);
        if self.run.sources.len() <= at {
            self.run.sources.resize_with(at + 1, || None);
        }
        if self.run.sources[at].is_none() {
            let told = self.run.held.reader().source(number)?;
            let protocol = Protocol::ALL.into_iter().find(|p| p.name() == told.protocol)?;
            let venue = told.venue?;
            let depth = protocol.depth();
            let keep = self.make.writing(venue, protocol, &told.name);
            let orders = if depth == Depth::ByPrice {
                1
            } else {
                self.max_orders
            };
            self.run.sources[at] = Some(Source {
                ring: told.ring,
                keep: keep.map(Box::new),
                books: Books::new(BooksConfig {
                    venue,
                    depth,
                    instruments: INSTRUMENTS,
                    orders,
                    levels: ROOM,
                    initial: BookState::Building,
                    ..BooksConfig::default()
                }),
                instruments: HashMap::new(),
            });
        }
        self.run.sources[at].as_mut()
    }

    /// Reads until it is over.
    fn follow(&mut self, until: &Until<'_>) -> Result<Over, Failure> {
        let mut progress = Progress::new("exporting");
        let mut asked = Instant::now();
        loop {
            let took = self.drain();
            if self.make.out.borrow().has_failed() {
                return Ok(Over::Time);
            }
            if let Some(over) = until.over() {
                return Ok(over);
            }
            let rows = self.make.out.borrow().rows();
            progress.tell(|| format!("{}: {rows} rows", self.folder.display()));
            if took {
                continue;
            }
            if asked.elapsed() >= HEALTH_EVERY {
                asked = Instant::now();
                match self.run.held.health() {
                    WriterHealth::Alive | WriterHealth::Silent { .. } => {}
                    WriterHealth::Ended => {
                        // What it wrote between the last look and its end.
                        while self.drain() {}
                        return Ok(Over::Ended);
                    }
                    WriterHealth::Dead => self.follow_on(),
                }
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The daemon died: what it left is read, and the next one is gone on with, once there is one.
    fn follow_on(&mut self) {
        while self.drain() {}
        let generation = self.run.held.reader().generation();
        let Ok(next) = Attachment::attach_of(&self.folder, tickwire_control::client::owners()) else {
            return;
        };
        if next.reader().generation() == generation {
            return;
        }
        eprintln!("the feed handler was started again: books begin anew");
        self.run = Run::new(next);
        self.begin();
    }

    /// Takes what the rings have, up to a bound; whether there was something.
    fn drain(&mut self) -> bool {
        let mut took = false;
        for at in 0..self.run.cursors.len() {
            for _ in 0..RECORDS_PER_LOOK {
                let next = self.run.cursors[at].next(&self.run.held.reader());
                took |= next != Next::Empty;
                match next {
                    Next::Record(Record::Event(source, event)) => self.event(source, &event),
                    Next::Record(Record::Update(..)) => self.updates += 1,
                    Next::Missed(count) => self.overtaken(self.run.cursors[at].ring(), count),
                    Next::Empty => break,
                }
            }
        }
        took
    }

    fn overtaken(&mut self, ring: u32, count: u64) {
        self.missed += count;
        let sources = self.run.sources.iter_mut().flatten();
        for source in sources.filter(|source| source.ring == Some(ring)) {
            source.miss(InstrumentId::WHOLE_FEED);
        }
    }

    fn event(&mut self, number: u16, event: &MarketEvent) {
        self.events += 1;
        if self.source(number).is_none() {
            return;
        }
        let id = event.instrument;
        let is_wanted = id == InstrumentId::WHOLE_FEED || self.is_wanted(number, id);
        if is_wanted && let Some(source) = self.source(number) {
            source.tell(event);
        }
    }

    /// Whether rows of an instrument are wanted; looks it up where it has no name yet.
    fn is_wanted(&mut self, number: u16, id: InstrumentId) -> bool {
        match self.naming(number, id) {
            Some(Naming::Wanted) => return true,
            Some(Naming::Other) => return false,
            Some(Naming::Without(at)) if at.elapsed() < NAME_AGAIN => return self.wanted.is_none(),
            Some(Naming::Without(_)) => self.look_up(),
            None => self.wait_for_name(number, id),
        }
        match self.naming(number, id) {
            Some(Naming::Wanted) => true,
            Some(Naming::Other) => false,
            _ => {
                if let Some(source) = self.source(number) {
                    source.instruments.insert(id, Naming::Without(Instant::now()));
                }
                self.wanted.is_none()
            }
        }
    }

    fn naming(&mut self, number: u16, id: InstrumentId) -> Option<Naming> {
        self.source(number)?.instruments.get(&id).copied()
    }

    /// An instrument is named when its packet is over, which its first event may be read before. Where
    /// several in a row were waited for in vain, they are ones without a book, and nobody waits any more.
    fn wait_for_name(&mut self, number: u16, id: InstrumentId) {
        let begun = Instant::now();
        loop {
            self.look_up();
            if self.naming(number, id).is_some() {
                self.in_vain = 0;
                return;
            }
            if self.in_vain >= IN_VAIN_MAX || begun.elapsed() >= NAME_PATIENCE {
                self.in_vain = self.in_vain.saturating_add(1);
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Names every instrument that has a slot and had no name.
    fn look_up(&mut self) {
        let reader = self.run.held.reader();
        for (_, book) in reader.books() {
            let Some(Some(source)) = self.run.sources.get_mut(usize::from(book.source)) else {
                continue;
            };
            let before = source.instruments.get(&book.instrument).copied();
            if matches!(before, Some(Naming::Wanted | Naming::Other)) {
                continue;
            }
            let is_wanted = self
                .wanted
                .as_ref()
                .is_none_or(|wanted| wanted.contains(&book.symbol));
            let naming = if is_wanted { Naming::Wanted } else { Naming::Other };
            source.instruments.insert(book.instrument, naming);
            if let Some(keep) = &mut source.keep {
                let instrument = Instrument {
                    id: book.instrument,
                    venue: source.books.config().venue,
                    symbol: book.symbol,
                    tick: Price::from_raw(0),
                    lot: Qty(0),
                    is_test: false,
                };
                Keep::defined(&mut **keep, &instrument);
            }
            // What it said before it had a name was passed over.
            if before.is_some() && is_wanted && self.wanted.is_some() {
                source.miss(book.instrument);
            }
        }
    }
}
