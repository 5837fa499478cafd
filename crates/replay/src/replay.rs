//! `tickwire replay`: recordings through the same channels and books as live packets.
//!
//! Time is the recording's: gaps wait, packets age and books go stale as they did then, at whatever speed it
//! is played.
//!
//! ```text
//! first reading:  every file ─► [`survey`]: which channels on which addresses, how much each carries
//! second reading: packet ─► whose? ─► channel ─► books, made to the measure of what was counted
//! ```
//! With a configuration, groups and ports tell feed, channel and line, and recovery groups in the recording
//! recover. Without one the first reading finds them out; both give the same books. There is no server in a
//! file: what is missing is lost, and said so.

mod alone;
mod archived;
mod ending;
mod lines;
mod lobster;
mod records;
mod room;
mod shown;
mod spool;
pub mod survey;
mod together;

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_feed::{Channel, FeedState, Line};
use tickwire_market::{BookState, Counter, Counters, InstrumentId, Nanos, Port, Symbol};
use tickwire_runtime::capture::{CaptureReader, FrameCounts};
use tickwire_runtime::clock::Clock;
use tickwire_runtime::itchfile::Recording;
use tickwire_runtime::signal::StopFlag;
use tickwire_wire::fast::Plan;
use tickwire_wire::itch50;

use crate::played::{Cost, Keep, Play, Played};
use crate::progress::Progress;
use crate::tape::{End, Frame, Speed, Tape};
use ending::Ending;
use records::Alone;
pub use records::{RecordsFile, play_records};
use room::Room;
pub(crate) use spool::NAME as SPOOLED;
pub use survey::Survey;
use survey::{Addressee, At, Found, Heard, Load, Stopped};
use tickwire_console::failure::Failure;
use tickwire_venues::channels::{FeedConfig, FeedFile};
use tickwire_venues::protocol::{self, Protocol};
use tickwire_venues::wiring;
use tickwire_venues::wiring::Reception;

/// The arguments of `tickwire replay`.
#[derive(clap::Args, Debug)]
pub struct ReplayArgs {
    /// Captures (pcap, pcapng), raw ITCH 5.0 files, DBN files (mbo, mbp-1, mbp-10, definition), LOBSTER
    /// message files, or archives of events; gzip and zstd are recognised
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Feeds by group and port (TOML, see examples/): both lines, recovery groups, several feeds in one
    /// capture
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What the payloads are; without it, told by --config, else recognised from the first packets to each
    /// group
    #[arg(long, value_enum, value_name = "P", conflicts_with = "config")]
    pub protocol: Option<Protocol>,
    /// FAST template file of MOEX (repeatable: the first that reads a packet whole is taken)
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub templates: Vec<PathBuf>,
    /// Speed: `max`, or a multiple of the capture's own
    #[arg(long, default_value = "max", value_name = "X", value_parser = crate::tape::parse_speed, conflicts_with = "step")]
    pub speed: crate::tape::Speed,
    /// One packet at a time: shows its events, waits for Enter
    #[arg(long)]
    pub step: bool,
    /// Print the books of these symbols at the end (repeatable; `all` for every one)
    #[arg(long, value_name = "SYMBOL")]
    pub book: Vec<String>,
    /// Price levels per side to print
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub levels: usize,
    /// Only these symbols reach the books; the rest is filtered on its first bytes (repeatable)
    #[arg(long, value_name = "SYMBOL")]
    pub symbol: Vec<String>,
    /// Compare the books of a DBN or LOBSTER file with the vendor's own after every event: a DBN file of
    /// mbp-10, or the LOBSTER order book that belongs to the messages
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub check: Option<PathBuf>,
    /// Results as JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Instruments of one channel to make room for; for ITCH, the highest stock locate accepted. By default
    /// what the recording can need, at most 65,535
    #[arg(long, value_name = "N")]
    pub max_instruments: Option<u32>,
    /// Live orders of one channel to make room for. By default what the recording can need, at most 4,194,304
    #[arg(long, value_name = "N")]
    pub max_orders: Option<u32>,
    /// Price levels of one channel to make room for, as many by default
    #[arg(long, value_name = "N")]
    pub max_levels: Option<u32>,
}

impl ReplayArgs {
    /// Of files, with every other argument as it is by default.
    pub fn of(files: Vec<PathBuf>) -> ReplayArgs {
        ReplayArgs {
            files,
            config: None,
            protocol: None,
            templates: Vec::new(),
            speed: Speed::Max,
            step: false,
            book: Vec::new(),
            levels: 10,
            symbol: Vec::new(),
            check: None,
            json: false,
            max_instruments: None,
            max_orders: None,
            max_levels: None,
        }
    }
}

/// Orders, and levels, that a channel gets room for at most unless the user says more. The busiest venue has
/// 1.7 million orders at a time.
const ROOM_MAX: u64 = 4 << 20;
/// Instruments that a channel gets room for unless the user says otherwise.
const INSTRUMENTS_MAX: u32 = 65_535;
/// Feeds that a sentence names.
const NAMED_MAX: usize = 4;
/// Destinations of other feeds that are named.
const LEFT_OUT_MAX: usize = 8;
/// Frames between two looks at the clock.
const LOOK: u64 = 1024;

/// Who a destination belongs to.
enum Routes {
    Configured(FeedFile, Heard),
    Recognised(Survey),
}

/// What a replay found.
struct Replay<'a> {
    args: &'a ReplayArgs,
    stop: &'a StopFlag,
    clock: Clock,
    symbols: Option<Vec<Symbol>>,
    routes: Routes,
    /// By feed and channel of the configuration.
    slots: HashMap<(usize, usize), usize>,
    /// The channels of files without packets: of ITCH messages, of DBN records, of LOBSTER's lines.
    of_files: Option<usize>,
    of_records: Option<usize>,
    of_lines: Option<usize>,
    played: Vec<Box<dyn Play>>,
    /// Of every channel played: what was found out of it.
    about: Vec<About>,
    tape: Tape,
    make: &'a mut dyn MakePlay,
    /// The order book of a LOBSTER file.
    rows: Option<PathBuf>,
    other_feeds: u64,
    damage: Option<String>,
    /// Ticks of the processor spent on the blocks of archives.
    block_ticks: u64,
    /// Of every file in which there is nothing: what it is.
    empty: Vec<String>,
}

/// What is known of a channel beside its books.
struct About {
    protocol: &'static str,
    /// Where it is received, as far as that was found out.
    on: Vec<(SocketAddr, Port, Line)>,
    room: Room,
    /// When nothing comes any more.
    end: Ending,
}

/// Runs `tickwire replay`: plays the files through channels and books and prints what they hold at the end.
/// `-` is standard input, once.
///
/// # Errors
/// A file that cannot be read, a recording with no packet of a known feed, a signal; and, after everything is
/// printed, a gap or damage in the recording, or books that differ from the vendor's own.
pub fn run(args: &ReplayArgs, stop: &StopFlag) -> Result<(), Failure> {
    if args.step && args.files.iter().any(|path| spool::is_input(path)) {
        return Err(Failure::config(
            "--step waits for Enter on standard input, which is the recording here: give a file",
        ));
    }
    spool::with_files(&args.files, stop, |files, _| play(args, files, stop))
}

/// Reads the files twice, and shows what was found.
fn play(args: &ReplayArgs, files: &[PathBuf], stop: &StopFlag) -> Result<(), Failure> {
    let mut plain = Plain {
        is_stepping: args.step,
        clock: Clock::calibrate(),
    };
    let mut replay = read(args, files, stop, &mut plain)?;
    replay.print()?;
    if let Some(reason) = stop.reason() {
        return Err(Failure::interrupted(format!(
            "{reason}; what was read until then is shown above"
        )));
    }
    match replay.damage.take().or_else(|| replay.fault(false)) {
        Some(message) => Err(Failure::check(message)),
        None => Ok(()),
    }
}

/// How files were played into what follows them.
pub struct Fed {
    /// Why the books cannot be relied on, if they cannot.
    pub fault: Option<String>,
    /// The fault is damage of a file, behind which it was not read.
    pub is_damaged: bool,
    /// Books of which the recording does not have the beginning.
    pub partial: usize,
    /// What the first reading found out; `None` where a configuration says who is who.
    pub survey: Option<Survey>,
    /// Every channel that was played, in the order in which they were made.
    pub channels: Vec<FedChannel>,
    /// What became of the frames of captures.
    pub frames: FrameCounts,
    /// Datagrams to nobody's address.
    pub other_feeds: u64,
}

/// What became of one channel of recordings.
pub struct FedChannel {
    /// Its name in reports.
    pub name: String,
    /// What it speaks: a protocol's name, `dbn` or `lobster`.
    pub protocol: &'static str,
    /// Where it is received, as far as that was found out.
    pub on: Vec<(SocketAddr, Port, Line)>,
    /// How far it can be trusted at the end.
    pub state: FeedState,
    /// Its counters, and those of its books.
    pub counters: Counters,
    /// Packets, or messages of files without packets.
    pub packets: u64,
    /// Their bytes together.
    pub bytes: u64,
    /// Number by symbol, for every instrument that it knows.
    pub directory: BTreeMap<Symbol, InstrumentId>,
    /// Books of which the recording does not have the beginning.
    pub partial: usize,
}

/// Plays files into what `make` makes of their channels. `-` is standard input, once.
///
/// # Errors
/// A file that cannot be read, or a recording with no packet of a known feed; a signal; what `make` says.
pub fn feed(args: &ReplayArgs, stop: &StopFlag, make: &mut dyn MakePlay) -> Result<Fed, Failure> {
    spool::with_files(&args.files, stop, |files, named| {
        let mut fed = feed_files(args, files, stop, make)?;
        fed.fault = fed.fault.map(named);
        Ok(fed)
    })
}

fn feed_files(
    args: &ReplayArgs,
    files: &[PathBuf],
    stop: &StopFlag,
    make: &mut dyn MakePlay,
) -> Result<Fed, Failure> {
    let mut replay = read(args, files, stop, make)?;
    if let Some(reason) = stop.reason() {
        return Err(Failure::interrupted(reason.to_string()));
    }
    let channels = replay.played.iter().zip(&replay.about);
    let channels = channels.map(|(played, about)| FedChannel {
        name: played.cost().name.clone(),
        protocol: about.protocol,
        on: about.on.clone(),
        state: played.state(),
        counters: played.counters(),
        packets: played.cost().packets,
        bytes: played.cost().bytes,
        directory: played.directory(),
        partial: about.end.partial.as_ref().map_or(0, |p| p.books - p.whole),
    });
    let channels = channels.collect();
    Ok(Fed {
        is_damaged: replay.damage.is_some(),
        fault: replay.damage.take().or_else(|| replay.fault(true)),
        partial: replay.partial().0,
        channels,
        frames: replay.tape.skipped(),
        other_feeds: replay.other_feeds,
        survey: match replay.routes {
            Routes::Recognised(survey) => Some(survey),
            Routes::Configured(..) => None,
        },
    })
}

/// What channels are played into.
pub trait MakePlay {
    /// One more channel. `books` are the sizes that it needs.
    fn channel(
        &mut self,
        feed: &FeedConfig,
        number: usize,
        reception: &Reception,
        name: String,
        books: BooksConfig,
    ) -> Result<Box<dyn Play>, Failure>;

    /// A file of records: [`RecordsFile::into_play`] plays it into whoever follows.
    fn records(&mut self, file: RecordsFile) -> Result<Box<dyn Play>, Failure>;

    /// Whether every channel is made before the first packet is played.
    fn is_for_channels(&self) -> bool;
}

/// Books alone.
struct Plain {
    is_stepping: bool,
    clock: Clock,
}

impl MakePlay for Plain {
    fn channel(
        &mut self,
        feed: &FeedConfig,
        number: usize,
        reception: &Reception,
        name: String,
        books: BooksConfig,
    ) -> Result<Box<dyn Play>, Failure> {
        let (channel, depth) = wiring::channel(feed, number, reception)?;
        let cost = match reception.is_archived() {
            false => Cost::timed(name, self.clock.clone()),
            // The packets of an archive are no packets of a feed.
            true => Cost::new(name),
        };
        let books = books_of(&*channel, depth, books);
        Ok(Box::new(Played::new(cost, channel, books, self.is_stepping)))
    }

    fn records(&mut self, file: RecordsFile) -> Result<Box<dyn Play>, Failure> {
        let alone = Alone {
            books: Books::new(file.books()),
            shown: self.is_stepping.then(Vec::new),
        };
        Ok(file.into_play(alone))
    }

    fn is_for_channels(&self) -> bool {
        false
    }
}

fn read<'a>(
    args: &'a ReplayArgs,
    files: &[PathBuf],
    stop: &'a StopFlag,
    make: &'a mut dyn MakePlay,
) -> Result<Replay<'a>, Failure> {
    tickwire_runtime::alloc::populate_large_blocks();
    let (files, rows) = pair(files)?;
    let files = &files[..];
    let is_archived = archived::are_archives(files)?;
    let routes = match is_archived {
        true => archived::routes(args),
        false => routes(args, files, stop),
    };
    let routes = match routes {
        Ok(routes) => routes,
        Err(Stopped::Failed(failure)) => return Err(failure),
        Err(Stopped::Interrupted) => {
            let reason = stop
                .reason()
                .map(|reason| format!("{reason}; "))
                .unwrap_or_default();
            return Err(Failure::interrupted(format!(
                "{reason}nothing has been replayed yet: the recording was being looked through"
            )));
        }
    };
    let mut replay = Replay {
        args,
        stop,
        // What packets cost is read where the books are all there is; a backtest need not wait for that.
        clock: Clock::calibrate_for(match make.is_for_channels() {
            true => Duration::ZERO,
            false => Duration::from_millis(20),
        }),
        symbols: symbols_of(&args.symbol)?,
        routes,
        slots: HashMap::new(),
        of_files: None,
        of_records: None,
        of_lines: None,
        played: Vec::new(),
        about: Vec::new(),
        tape: Tape::new(args.speed),
        make,
        rows,
        other_feeds: 0,
        damage: None,
        block_ticks: 0,
        empty: Vec::new(),
    };
    replay.add_recognised()?;
    if replay.make.is_for_channels() {
        replay.add_configured()?;
    }
    let played = match is_archived {
        true => replay.archives(files),
        false => replay.files(files),
    };
    match played {
        Ok(()) | Err(End::Interrupted) => {}
        Err(End::Damaged(message)) => replay.damage = Some(message),
        Err(End::Failed(failure)) => return Err(failure),
    }
    // What still waits for the other line will not come any more.
    let end = replay.tape.last().after(Nanos::DAY);
    for (played, about) in replay.played.iter_mut().zip(&mut replay.about) {
        played.finish(end);
        about.end = Ending::of(&**played);
    }
    Ok(replay)
}

/// Files to play, and the order book among them that belongs to LOBSTER's messages, which has no mark of its
/// own but its name.
fn pair(files: &[PathBuf]) -> Result<(Vec<PathBuf>, Option<PathBuf>), Failure> {
    let is_rows = |path: &&PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.contains("_orderbook_") && name.contains(".csv"))
    };
    let (rows, files): (Vec<PathBuf>, Vec<PathBuf>) = files.iter().cloned().partition(|path| is_rows(&path));
    match &rows[..] {
        [] => Ok((files, None)),
        [one] if files.len() == 1 => Ok((files, Some(one.clone()))),
        [one, ..] => Err(Failure::config(format!(
            "{}: a LOBSTER order book goes with one file of messages",
            one.display()
        ))),
    }
}

/// The first reading.
fn routes(args: &ReplayArgs, files: &[PathBuf], stop: &StopFlag) -> Result<Routes, Stopped> {
    if let Some(path) = &args.config {
        let mut file = FeedFile::load(path).map_err(Stopped::Failed)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        file.feeds
            .iter_mut()
            .for_each(|feed| feed.resolve_templates(folder));
        let heard = survey::of_configured(files, &file, stop)?;
        return Ok(Routes::Configured(file, heard));
    }
    let failed = |message: String| Stopped::Failed(Failure::config(message));
    let templates: Vec<Arc<Plan>> = args
        .templates
        .iter()
        .map(|path| protocol::templates(path))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    if let Some(protocol) = args.protocol {
        wiring::check_published(protocol).map_err(Stopped::Failed)?;
        if protocol == Protocol::Moex && templates.is_empty() {
            return Err(failed(
                "--protocol moex needs --templates FILE: the exchange's FAST template file".into(),
            ));
        }
    }
    survey::of_recognised(files, args.protocol, &templates, stop).map(Routes::Recognised)
}

fn symbols_of(names: &[String]) -> Result<Option<Vec<Symbol>>, Failure> {
    if names.is_empty() {
        return Ok(None);
    }
    let parse = |n: &String| {
        Symbol::new(n.as_bytes())
            .ok_or_else(|| Failure::config(format!("--symbol {n:?} is not a symbol of printable ASCII")))
    };
    names.iter().map(parse).collect::<Result<Vec<_>, _>>().map(Some)
}

/// Books for a channel.
fn books_of(channel: &dyn Channel, depth: Depth, books: BooksConfig) -> Books {
    Books::new(BooksConfig {
        depth,
        venue: channel.venue(),
        ..books
    })
}

/// A channel whose books `keep` keeps: what [`MakePlay::channel`] answers where somebody looks at books
/// around every event.
///
/// # Errors
/// A protocol of which no books are known here, or templates that cannot be read.
pub fn kept(
    feed: &FeedConfig,
    number: usize,
    reception: &Reception,
    name: String,
    books: BooksConfig,
    keep: Box<dyn Keep>,
) -> Result<Box<dyn Play>, Failure> {
    let (channel, depth) = wiring::channel(feed, number, reception)?;
    let books = books_of(&*channel, depth, books);
    let mut played = Played::new(Cost::new(name), channel, books, false);
    played.keep(keep);
    Ok(Box::new(played))
}

/// A line's name, as in a configuration.
fn line_name(line: Line) -> Option<&'static str> {
    match line {
        Line::A => Some("a"),
        Line::B => Some("b"),
        Line::Retransmit => None,
    }
}

/// A feed as a configuration would have it.
fn recognised(found: &Found, templates: &[PathBuf]) -> FeedConfig {
    let protocol = found.protocol;
    let mut feed = FeedConfig::on_loopback(protocol);
    let first = found.on.first().map(|on| on.0.to_string()).unwrap_or_default();
    let mut name = format!("{protocol} {first}");
    feed.templates = match protocol {
        Protocol::Moex => templates.to_vec(),
        _ => Vec::new(),
    };
    let channel = &mut feed.channels[0];
    // Only what is in the recording is waited for.
    let has = |port: Port| found.on.iter().any(|on| on.1 == port);
    channel.snapshot = channel.snapshot.filter(|_| has(Port::Snapshot));
    channel.snapshot_by_order = channel.snapshot_by_order.filter(|_| has(Port::SnapshotByOrder));
    channel.definitions = channel.definitions.filter(|_| has(Port::Definitions));
    if let Some(unit) = found.unit {
        channel.name = unit.to_string();
        name += &format!(" unit {unit}");
    }
    if let Some(session) = found.session.and_then(|s| String::from_utf8(s.to_vec()).ok()) {
        name += &format!(" session {}", session.trim());
        feed.session = Some(session);
    }
    feed.name = Some(name);
    feed
}

impl Replay<'_> {
    /// Makes the channels that were recognised.
    fn add_recognised(&mut self) -> Result<(), Failure> {
        let Routes::Recognised(survey) = &self.routes else {
            return Ok(());
        };
        for found in survey.channels.clone() {
            let feed = recognised(&found, &self.args.templates);
            self.add(&feed, 0, feed.name().to_string(), found.load, found.on)?;
        }
        Ok(())
    }

    /// Makes one more channel, with room for what it carries.
    fn add(
        &mut self,
        feed: &FeedConfig,
        number: usize,
        name: String,
        load: Load,
        on: Vec<(SocketAddr, Port, Line)>,
    ) -> Result<usize, Failure> {
        let room = Room::of(feed.protocol(), load, self.args);
        let books = BooksConfig {
            depth: Depth::Aggregated,
            instruments: room.instruments.saturating_add(1),
            orders: room.orders,
            levels: room.levels,
            initial: BookState::Building,
            ..BooksConfig::default()
        };
        let reception = Reception::recorded(room.instruments, room.orders, self.symbols.clone());
        self.played
            .push(self.make.channel(feed, number, &reception, name, books)?);
        self.about.push(About {
            protocol: feed.protocol().name(),
            on,
            room,
            end: Ending::default(),
        });
        Ok(self.played.len() - 1)
    }

    /// Makes every configured channel that was heard.
    fn add_configured(&mut self) -> Result<(), Failure> {
        let Routes::Configured(_, heard) = &self.routes else {
            return Ok(());
        };
        let mut keys: Vec<(usize, usize)> = heard.loads.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            self.slot_of(key)?;
        }
        Ok(())
    }

    /// The place of a configured channel, which is made when it is first heard.
    fn slot_of(&mut self, key: (usize, usize)) -> Result<usize, Failure> {
        if let Some(channel) = self.slots.get(&key) {
            return Ok(*channel);
        }
        let Routes::Configured(file, heard) = &self.routes else {
            return Err(Failure::config("no feed is configured"));
        };
        let mut feed = file.feeds[key.0].clone();
        let load = heard.loads.get(&key).copied().unwrap_or_default();
        // A snapshot that is not in the recording is not waited for.
        if !heard.ports.contains(&(key.0, key.1, Port::Snapshot)) {
            feed.channels[key.1].snapshot = None;
        }
        let name = feed.channel_name(key.1);
        let channel = self.add(&feed, key.1, name, load, Vec::new())?;
        self.slots.insert(key, channel);
        Ok(channel)
    }

    /// Plays captures together, and other files one after the other.
    fn files(&mut self, files: &[PathBuf]) -> Result<(), End> {
        if together::are_captures(files)? {
            return self.together(files);
        }
        for file in files {
            match self.file(file) {
                Err(End::Damaged(message)) => self.damage = Some(message),
                other => other?,
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(), End> {
        let recording = Recording::open(path, itch50::message_size)?;
        let kind = recording.kind();
        let (before, of_files) = (self.tape.frames(), self.notes());
        match recording {
            Recording::Packets(reader) => self.packets(path, reader),
            Recording::Messages(file) => self.messages(path, file),
            Recording::Records(file) => self.records(path, file),
            Recording::Lines(file) => self.lines(path, file),
        }?;
        if (before, of_files) == (self.tape.frames(), self.notes()) {
            self.empty.push(kind.nothing_in(&path.display()));
        }
        Ok(())
    }

    /// Messages, records and lines of files without packets that were played.
    fn notes(&self) -> u64 {
        let of_files = [self.of_files, self.of_records, self.of_lines];
        let channels = of_files.into_iter().flatten();
        channels.map(|channel| self.played[channel].cost().packets).sum()
    }

    fn packets(&mut self, path: &Path, mut reader: CaptureReader) -> Result<(), End> {
        let mut progress = Progress::new("playing");
        loop {
            if self.tape.frames().is_multiple_of(LOOK) {
                progress.show(path, self.tape.frames(), reader.offset());
            }
            let Some(Frame { now, udp }) = self.tape.frame(&mut reader)? else {
                return Ok(());
            };
            if self.stop.is_set() {
                return Err(End::Interrupted);
            }
            let Ok(udp) = udp else { continue };
            self.datagram(now, udp.destination, udp.payload)?;
        }
    }

    /// Plays one datagram.
    #[inline]
    fn datagram(&mut self, now: Nanos, destination: SocketAddr, payload: &[u8]) -> Result<(), End> {
        let Some(at) = self.place_of(destination, payload).map_err(End::Failed)? else {
            self.other_feeds += 1;
            return Ok(());
        };
        self.tape.advance(now, self.stop)?;
        self.played[at.channel].on_datagram(now, at.port, at.line, payload);
        if self.args.step {
            let what = format!("packet {} {destination} {:?}", self.tape.frames(), at.line);
            self.step(at.channel, &what)?;
        }
        Ok(())
    }

    /// Where a packet goes; `None` for another feed in the same recording.
    fn place_of(&mut self, destination: SocketAddr, payload: &[u8]) -> Result<Option<At>, Failure> {
        let file = match &self.routes {
            Routes::Recognised(survey) => {
                let addressee = survey.places.get(&destination);
                return Ok(addressee.and_then(|a: &Addressee| a.of(payload)));
            }
            Routes::Configured(file, _) => file,
        };
        let Some(found) = file.find(destination) else {
            return Ok(None);
        };
        let (port, line) = (found.port, found.line);
        let channel = self.slot_of((found.feed, found.channel))?;
        Ok(Some(At {
            channel,
            port,
            line: line.unwrap_or(Line::Retransmit),
        }))
    }

    /// What is wrong with the books at the end, if anything is.
    ///
    /// A backtest counts books of a recording that begins in mid-session among its doubts: LOBSTER's always
    /// do.
    fn fault(&self, is_backtest: bool) -> Option<String> {
        let loss = self.tape.skipped().loss();
        if self.played.iter().all(|p| p.cost().packets == 0) {
            let empty = (self.tape.frames() == 0)
                .then(|| self.empty.first().cloned())
                .flatten();
            let said = match &self.routes {
                Routes::Configured(..) => "the recording holds no packet of a configured feed",
                Routes::Recognised(_) => {
                    "the recording holds no packet of a protocol whose books are known here; name the feeds with --config, or the protocol with --protocol"
                }
            };
            let said = empty.unwrap_or_else(|| said.to_string());
            return Some(match loss {
                Some(loss) => format!("{said}; {loss}"),
                None => said,
            });
        }
        let differs = self
            .played
            .iter()
            .filter_map(|p| p.checked())
            .find(|c| c.equal < c.rows);
        if let Some(checked) = differs {
            return Some(format!(
                "{} of {} rows differ from the books; first {}",
                checked.rows - checked.equal,
                checked.rows,
                checked.first.as_deref().unwrap_or_default()
            ));
        }
        let mut reasons: Vec<String> = loss.into_iter().collect();
        let mut say = |what: String, names: Vec<&str>| {
            if !names.is_empty() {
                let more = names.len().saturating_sub(NAMED_MAX);
                let named = names[..names.len() - more].join(", ");
                let more = match more {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                reasons.push(format!("{what} ({named}{more})"));
            }
        };
        let with = |counter: Counter| -> (u64, Vec<&str>) {
            let counts = self
                .played
                .iter()
                .map(|p| (p.counters().get(counter), p.cost().name.as_str()));
            let counts: Vec<_> = counts.filter(|(count, _)| *count > 0).collect();
            (
                counts.iter().map(|(c, _)| c).sum(),
                counts.iter().map(|(_, n)| *n).collect(),
            )
        };
        let (rejects, names) = with(Counter::BookRejects);
        say(format!("{rejects} events did not fit their books"), names);
        let (malformed, names) = with(Counter::Malformed);
        say(format!("{malformed} packets or messages are malformed"), names);
        if !is_backtest {
            let (books, names) = self.partial();
            say(
                format!("the recording begins in mid-session, {books} books are partial"),
                names,
            );
        }
        let ends = self.about.iter().map(|about| &about.end);
        let ends = ends.zip(self.played.iter().map(|p| p.cost().name.as_str()));
        let stale = ends.filter(|(end, _)| end.is_stale);
        let names = stale.map(|(_, name)| name).collect();
        say(
            "books are stale at the end: messages are missing on every line".to_string(),
            names,
        );
        (!reasons.is_empty()).then(|| format!("the books are not to be relied on: {}", reasons.join("; ")))
    }

    /// Books of which the recording does not have the beginning, and the names of their feeds.
    fn partial(&self) -> (usize, Vec<&str>) {
        let ends = self.about.iter().map(|about| &about.end);
        let ends = ends.zip(self.played.iter().map(|p| p.cost().name.as_str()));
        let partial = ends
            .filter_map(|(end, name)| Some((end.partial.as_ref()?, name)))
            .map(|(partial, name)| (partial.books - partial.whole, name))
            .filter(|(books, _)| *books > 0);
        partial.fold((0, Vec::new()), |(all, mut names), (books, name)| {
            names.push(name);
            (all + books, names)
        })
    }

    /// `--step`: shows what the packet did, waits for Enter.
    fn step(&mut self, channel: usize, what: &str) -> Result<(), End> {
        println!("{what}");
        for line in self.played[channel].take_shown() {
            println!("{line}");
        }
        eprint!("[Enter] ");
        let _ = std::io::stderr().flush();
        let mut line = String::new();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => Err(End::Interrupted),
            Ok(_) if line.trim() == "q" => Err(End::Interrupted),
            Ok(_) => Ok(()),
        }
    }
}
