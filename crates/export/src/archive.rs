//! Recordings as archives of events: `tickwire archive`. See [`tickwire_archive`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::rc::Rc;

use crate::batch::Names;
use crate::{RecordingArgs, renumbered};
use tickwire_archive::{ArchiveWriter, ChannelFacts, Known};
use tickwire_book::{Books, BooksConfig};
use tickwire_console::failure::Failure;
use tickwire_feed::{Channel, FeedState, Line};
use tickwire_market::{
    Counters, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, OrderId, Port, SeqNo, Symbol, Upcoming,
};
use tickwire_replay::played::{Cost, Play};
use tickwire_replay::replay::{self, Fed, MakePlay, RecordsFile};
use tickwire_runtime::files::Pending;
use tickwire_runtime::signal::StopFlag;
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::wiring::{self, Reception};

/// The arguments of `tickwire archive`.
#[derive(clap::Args, Debug)]
pub struct ArchiveArgs {
    /// Captures (pcap, pcapng) or raw ITCH 5.0 files; gzip and zstd are recognised; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The archive to write
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// Only these symbols (repeatable)
    #[arg(long, value_name = "SYMBOL")]
    pub symbol: Vec<String>,
    /// How the files are read.
    #[command(flatten)]
    pub recording: RecordingArgs,
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Archived {
    /// Events.
    pub events: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Channels.
    pub channels: usize,
}

/// Runs `tickwire archive`: writes the archive and says what is in it.
///
/// # Errors
/// A file that cannot be read or written, files that are no packets, a signal: nothing has the name then.
/// After everything is written, damage or gaps in the recording, which the archive tells of as well.
pub fn run(args: &ArchiveArgs, stop: &StopFlag) -> Result<(), Failure> {
    let (archived, fault) = archive(args, stop)?;
    println!(
        "{} events of {} channels in {} bytes",
        archived.events, archived.channels, archived.bytes
    );
    fault.map_or(Ok(()), |fault| Err(Failure::check(fault)))
}

/// Writes the archive: what is in it, and why books made of it are not to be relied on, if so.
///
/// # Errors
/// As [`run`], but for damage and gaps.
pub fn archive(args: &ArchiveArgs, stop: &StopFlag) -> Result<(Archived, Option<String>), Failure> {
    let cannot = |e: io::Error| Failure::system(format!("cannot write {}: {e}", args.out.display()));
    let pending = Pending::create(&args.out).map_err(cannot)?;
    let out = BufWriter::with_capacity(1 << 20, pending.file().map_err(cannot)?);
    let shared = Rc::new(RefCell::new(Shared {
        out: args.out.clone(),
        writer: Some(ArchiveWriter::new(out).map_err(cannot)?),
        failed: None,
        channels: 0,
    }));
    let replayed = args.recording.replay(&args.files, &args.symbol);
    let Fed { fault, .. } = replay::feed(&replayed, stop, &mut Make(shared.clone()))?;
    let mut shared = shared.borrow_mut();
    if let Some(failed) = shared.failed.take() {
        return Err(failed);
    }
    let mut archived = Archived {
        channels: shared.channels,
        ..Archived::default()
    };
    if let Some(writer) = shared.writer.take() {
        archived.events = writer.events();
        let (bytes, out) = writer.finish().map_err(cannot)?;
        archived.bytes = bytes;
        drop(out);
    }
    pending.finish().map_err(cannot)?;
    Ok((archived, fault))
}

struct Shared {
    out: PathBuf,
    writer: Option<ArchiveWriter<BufWriter<File>>>,
    /// Why nothing is written any more.
    failed: Option<Failure>,
    channels: usize,
}

impl Shared {
    fn write(&mut self, write: impl FnOnce(&mut ArchiveWriter<BufWriter<File>>) -> io::Result<()>) {
        if self.failed.is_none()
            && let Some(writer) = &mut self.writer
            && let Err(e) = write(writer)
        {
            let out = self.out.display();
            self.failed = Some(Failure::system(format!("cannot write {out}: {e}")));
        }
    }
}

struct Make(Rc<RefCell<Shared>>);

impl MakePlay for Make {
    fn channel(
        &mut self,
        feed: &FeedConfig,
        number: usize,
        reception: &Reception,
        name: String,
        books: BooksConfig,
    ) -> Result<Box<dyn Play>, Failure> {
        let (channel, depth) = wiring::channel(feed, number, reception)?;
        let books = BooksConfig {
            depth,
            venue: channel.venue(),
            levels: whole_levels(books.levels),
            ..books
        };
        let number = {
            let mut shared = self.0.borrow_mut();
            shared.channels += 1;
            shared
                .writer
                .as_mut()
                .map_or(0, |writer| writer.add_channel(channel.venue()))
        };
        Ok(Box::new(Archiving {
            channel,
            sink: Sink {
                books: Books::new(books),
                events: Vec::new(),
                use_of: Use::default(),
            },
            shared: self.0.clone(),
            number,
            protocol: feed.protocol(),
            named: Names::default(),
            cost: Cost::new(name),
        }))
    }

    fn records(&mut self, file: RecordsFile) -> Result<Box<dyn Play>, Failure> {
        Err(Failure::config(format!(
            "{}: archives are made of packets and ITCH files; files of records are read as quickly as an archive",
            file.name()
        )))
    }

    fn is_for_channels(&self) -> bool {
        true
    }
}

/// The events of a packet, and books: a channel asks them what does not fit.
struct Sink {
    books: Books,
    events: Vec<MarketEvent>,
    use_of: Use,
}

/// As many levels and some more, so that what is used of them can be told: see [`Books::levels_needed`].
fn whole_levels(levels: u32) -> u32 {
    match levels {
        0..=0x8000 => levels.next_power_of_two(),
        _ => levels.next_multiple_of(0x8000),
    }
}

/// How much of the books' room is used.
#[derive(Default)]
struct Use {
    /// Orders that rest. Those of a single book that is cleared stay counted.
    orders: u32,
    /// Most of them at once.
    orders_most: u32,
    /// One more than the highest number of an instrument with an event.
    instruments: u32,
}

impl Sink {
    /// Room for books that these events are played into: what they needed here, and as much again.
    fn room(&self) -> [u32; 3] {
        let config = self.books.config();
        let orders = self.use_of.orders_most.saturating_mul(2).saturating_add(64);
        let levels = (self.books.levels_needed() as u32).saturating_mul(2).max(64);
        [
            self.use_of.instruments.min(config.instruments),
            orders.min(config.orders),
            levels.min(config.levels),
        ]
    }

    /// How many of an event's orders rest: itself, and the one that takes its place.
    fn resting(&self, event: &MarketEvent) -> u32 {
        let rests = |id| u32::from(self.books.order(OrderId(id)).is_some());
        match event.kind {
            EventKind::Replace if event.ref_id != event.order_id.0 => {
                rests(event.order_id.0) + rests(event.ref_id)
            }
            _ => rests(event.order_id.0),
        }
    }
}

impl EventSink for Sink {
    fn on_event(&mut self, event: &MarketEvent) {
        let before = self.resting(event);
        self.books.apply(event);
        let is_all = event.kind == EventKind::Clear && event.instrument == InstrumentId::WHOLE_FEED;
        let orders = if is_all { 0 } else { self.use_of.orders };
        self.use_of.orders = (orders + self.resting(event)).saturating_sub(before);
        self.use_of.orders_most = self.use_of.orders_most.max(self.use_of.orders);
        if event.instrument != InstrumentId::WHOLE_FEED {
            self.use_of.instruments = self.use_of.instruments.max(event.instrument.0.saturating_add(1));
        }
        self.events.push(*event);
    }

    fn upcoming(&mut self, next: Upcoming) {
        self.books.upcoming(next);
    }

    fn arriving(&mut self, next: Upcoming) {
        self.books.arriving(next);
    }

    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.books.next_distrusted()
    }
}

/// A channel whose events are written down.
struct Archiving {
    channel: Box<dyn Channel>,
    sink: Sink,
    shared: Rc<RefCell<Shared>>,
    number: usize,
    protocol: Protocol,
    /// Who an instrument's number was defined to be.
    named: Names,
    cost: Cost,
}

impl Archiving {
    /// Instruments that the packet defines get their names.
    fn note_definitions(&mut self) {
        let defined = self
            .sink
            .events
            .iter()
            .filter(|event| event.kind == EventKind::Definition);
        for id in defined.map(|event| event.instrument) {
            let Some(now) = self.channel.instrument(id) else {
                continue;
            };
            if let Some(before) = self.named.insert(0, id, now.symbol) {
                let mut shared = self.shared.borrow_mut();
                let failure = renumbered(&self.cost.name, before, now, "make an archive of");
                shared.failed.get_or_insert(failure);
            }
        }
    }

    fn hand_over(&mut self, now: Nanos, bytes: usize) {
        self.note_definitions();
        let (number, events) = (self.number, &self.sink.events);
        if !events.is_empty() {
            self.shared
                .borrow_mut()
                .write(|writer| writer.packet(number, now, events));
            self.sink.events.clear();
        }
        self.cost.note(0, bytes);
    }
}

impl Play for Archiving {
    fn on_datagram(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8]) {
        if self.channel.poll_timeout().is_some_and(|t| t <= now) {
            self.channel.handle_timeout(now, &mut self.sink);
        }
        self.channel
            .on_datagram_dyn(now, port, line, bytes, &mut self.sink);
        self.hand_over(now, bytes.len());
    }

    fn on_message(&mut self, now: Nanos, message: &[u8]) {
        self.channel.on_message_dyn(now, message, &mut self.sink);
        self.hand_over(now, message.len() + 2);
    }

    fn preview(&mut self, now: Nanos, message: &[u8]) {
        self.channel.preview_dyn(now, message, &mut self.sink);
    }

    fn finish(&mut self, now: Nanos) {
        self.channel.handle_timeout(now, &mut self.sink);
        let mut instruments: Vec<Known> = Vec::new();
        self.channel.instruments(&mut |instrument| {
            instruments.push(Known {
                instrument: *instrument,
                point: self.channel.point_value(instrument.id),
            });
        });
        let numbers = instruments
            .iter()
            .map(|known| known.instrument.id.0.saturating_add(1));
        let [used, orders, levels] = self.sink.room();
        let used = numbers.fold(used, u32::max);
        let books = self.sink.books.config();
        let facts = ChannelFacts {
            name: self.cost.name.clone(),
            venue: self.channel.venue(),
            protocol: self.protocol.name().to_owned(),
            depth: books.depth,
            room: [used.min(books.instruments), orders, levels],
            state: self.channel.state(),
            next: self.channel.next_seq(),
            counters: self.channel.counters(),
            instruments,
        };
        let (number, events) = (self.number, &self.sink.events);
        self.shared.borrow_mut().write(|writer| {
            writer.end_channel(number, facts);
            writer.last_words(number, now, events)
        });
        self.sink.events.clear();
    }

    fn take_shown(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn state(&self) -> FeedState {
        self.channel.state()
    }

    fn next_seq(&self) -> SeqNo {
        self.channel.next_seq()
    }

    fn counters(&self) -> Counters {
        let mut all = self.channel.counters();
        all.merge(self.sink.books.counters());
        all
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        at(&self.sink.books);
    }

    fn directory(&self) -> BTreeMap<Symbol, InstrumentId> {
        let mut known = BTreeMap::new();
        self.channel
            .instruments(&mut |i| _ = known.insert(i.symbol, i.id));
        known
    }

    fn cost(&self) -> &Cost {
        &self.cost
    }
}
