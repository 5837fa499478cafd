//! `tickwire replay`: recordings through the same channels and books as live packets.
//!
//! Time is the recording's: gaps wait, packets age and books go stale as they did then, at whatever speed it is played.
//! With a configuration, groups and ports tell feed, channel and line, and recovery groups in the recording recover.
//! Without one, the protocol of each destination is recognised from its first packets; a second destination with the same
//! stream (MoldUDP64 session, PITCH unit) is line B. There is no server in a file: what is missing is lost, and said so.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_feed::{Channel, FeedState, Line};
use tickwire_lab::Table;
use tickwire_market::{BookState, Counter, Counters, InstrumentId, Nanos, Port, Side, Symbol};
use tickwire_runtime::capture::{self, CaptureReader};
use tickwire_runtime::clock::Clock;
use tickwire_runtime::itchfile::{ItchFile, Recording};
use tickwire_runtime::signal::StopFlag;
use tickwire_wire::fast::Plan;
use tickwire_wire::{itch50, moldudp64, pitch};

use crate::channels::{FeedConfig, FeedFile};
use crate::cli::ReplayArgs;
use crate::failure::Failure;
use crate::played::{Play, Played};
use crate::protocol::{self, Detector, Protocol, Verdict};
use crate::report;
use crate::tape::{End, Frame, Tape};
use crate::wiring::{self, Reception, WithChannel};

/// Frames looked at to tell protocols.
const LOOK_AHEAD: u64 = 20_000;

/// Where a packet goes.
#[derive(Clone, Copy)]
struct Place {
    /// Index into the channels played; they come to be with their first packet.
    channel: usize,
    port: Port,
    line: Line,
}

/// Who a destination belongs to.
enum Routes {
    Configured(FeedFile),
    /// Recognised: each channel's feed, and places by destination.
    Recognised(Vec<FeedConfig>, HashMap<SocketAddr, Place>),
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
    played: Vec<Box<dyn Play>>,
    tape: Tape,
    other_feeds: u64,
    damage: Option<String>,
}

pub(crate) fn run(args: &ReplayArgs, stop: &StopFlag) -> Result<(), Failure> {
    tickwire_runtime::alloc::populate_large_blocks();
    let routes = match &args.config {
        Some(path) => {
            let mut file = FeedFile::load(path)?;
            let folder = path.parent().unwrap_or(Path::new(""));
            file.feeds
                .iter_mut()
                .for_each(|feed| feed.resolve_templates(folder));
            Routes::Configured(file)
        }
        None => recognise(args)?,
    };
    let mut replay = Replay {
        args,
        stop,
        clock: Clock::calibrate(),
        symbols: symbols_of(&args.symbol)?,
        routes,
        slots: HashMap::new(),
        played: Vec::new(),
        tape: Tape::new(args.speed),
        other_feeds: 0,
        damage: None,
    };
    if let Routes::Recognised(feeds, _) = &replay.routes {
        for feed in feeds.clone() {
            replay.add(&feed, 0, feed.name().to_string())?;
        }
    }
    for file in &args.files {
        match replay.file(file) {
            Ok(()) => {}
            Err(End::Interrupted) => break,
            Err(End::Damaged(message)) => replay.damage = Some(message),
            Err(End::Failed(failure)) => return Err(failure),
        }
    }
    // What still waits for the other line will not come any more.
    let end = replay.tape.last().after(Nanos::DAY);
    replay.played.iter_mut().for_each(|played| played.finish(end));
    replay.print()?;
    if let Some(reason) = stop.reason() {
        return Err(Failure::interrupted(format!(
            "{reason}; what was read until then is shown above"
        )));
    }
    let is_empty = |played: &dyn Play| played.cost().packets == 0;
    match replay.damage.take() {
        Some(message) => Err(Failure::check(message)),
        None if replay.played.iter().all(|p| is_empty(&**p)) => Err(Failure::check(match &replay.routes {
            Routes::Configured(_) => "the recording holds no packet of a configured feed".to_string(),
            Routes::Recognised(..) => {
                "the recording holds no packet of a protocol that is known here; name the feeds with --config, or the protocol with --protocol".to_string()
            }
        })),
        None => Ok(()),
    }
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

/// Looks at the beginning of every file: which protocol goes to which destination, and which destinations are two lines.
fn recognise(args: &ReplayArgs) -> Result<Routes, Failure> {
    let templates: Vec<Arc<Plan>> = args
        .templates
        .iter()
        .map(|path| protocol::templates(path))
        .collect::<Result<_, _>>()
        .map_err(Failure::config)?;
    let mut detector = Detector::new(&templates).map_err(Failure::config)?;
    let mut found: Vec<(SocketAddr, Protocol, Option<[u8; 10]>)> = Vec::new();
    for file in &args.files {
        // What is wrong with a file is said when it is played.
        let Ok(recording) = Recording::open(file, itch50::message_size) else {
            continue;
        };
        let Recording::Packets(mut reader) = recording else {
            // A file of messages is a feed of its own, if nothing else is.
            continue;
        };
        let mut frames = 0;
        while frames < LOOK_AHEAD
            && let Ok(Some(packet)) = reader.next_packet()
        {
            frames += 1;
            let Ok(udp) = capture::udp(packet.link, packet.bytes) else {
                continue;
            };
            if found.iter().any(|f| f.0 == udp.destination) {
                continue;
            }
            let verdict = match args.protocol {
                Some(protocol) => Verdict::Is(protocol),
                None => detector
                    .observe(udp.destination, udp.payload)
                    .map_err(|ambiguous| Failure::config(ambiguous.to_string()))?,
            };
            if let Verdict::Is(protocol) = verdict {
                found.push((udp.destination, protocol, stream_of(protocol, udp.payload)));
            }
        }
    }
    let (mut feeds, mut streams, mut places) = (Vec::new(), Vec::new(), HashMap::new());
    for (destination, protocol, stream) in found {
        let known = streams
            .iter()
            .position(|s| stream.is_some() && *s == (protocol, stream));
        let place = match known {
            // A third copy of a stream is a retransmission.
            Some(channel) => {
                let lines = places.values().filter(|p: &&Place| p.channel == channel).count();
                Place {
                    channel,
                    port: if lines == 1 {
                        Port::Live
                    } else {
                        Port::Retransmission
                    },
                    line: if lines == 1 { Line::B } else { Line::Retransmit },
                }
            }
            None => {
                let mut feed = FeedConfig::on_loopback(protocol);
                feed.name = Some(format!("{protocol} {destination}"));
                feed.templates.clone_from(&args.templates);
                if let (Protocol::Pitch, Some([unit, ..])) = (protocol, stream) {
                    feed.channels[0].name = unit.to_string();
                }
                feeds.push(feed);
                streams.push((protocol, stream));
                Place {
                    channel: feeds.len() - 1,
                    port: Port::Live,
                    line: Line::A,
                }
            }
        };
        places.insert(destination, place);
    }
    if feeds.is_empty() {
        feeds.push(FeedConfig::on_loopback(args.protocol.unwrap_or(Protocol::Itch50)));
    }
    Ok(Routes::Recognised(feeds, places))
}

/// What two lines of one channel have in common, where packets say it.
fn stream_of(protocol: Protocol, payload: &[u8]) -> Option<[u8; 10]> {
    match protocol {
        Protocol::Itch50 | Protocol::Uqdf => moldudp64::parse(payload).ok().map(|packet| packet.session),
        Protocol::Pitch => pitch::packet(payload).ok().map(|packet| [packet.unit; 10]),
        _ => None,
    }
}

/// Puts a channel and its books behind one call per packet.
struct Boxed {
    name: String,
    books: BooksConfig,
    is_stepping: bool,
    clock: Clock,
}

impl WithChannel for Boxed {
    type Output = Box<dyn Play>;

    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) -> Box<dyn Play> {
        let books = Books::new(BooksConfig {
            depth,
            venue: channel.venue(),
            ..self.books
        });
        Box::new(Played::new(
            self.name,
            channel,
            books,
            self.is_stepping,
            self.clock,
        ))
    }
}

impl Replay<'_> {
    /// Makes room for one more channel.
    fn add(&mut self, feed: &FeedConfig, number: usize, name: String) -> Result<usize, Failure> {
        let is_one_of_many = matches!(self.routes, Routes::Configured(_));
        let default_size = if is_one_of_many { 1 << 18 } else { 4 << 20 };
        let orders = self.args.max_orders.unwrap_or(default_size);
        let boxed = Boxed {
            name,
            books: BooksConfig {
                depth: Depth::Aggregated,
                instruments: self.args.max_instruments.saturating_add(1),
                orders,
                levels: self.args.max_levels.unwrap_or(default_size),
                initial: BookState::Building,
                ..BooksConfig::default()
            },
            is_stepping: self.args.step,
            clock: self.clock.clone(),
        };
        let reception = Reception::recorded(self.args.max_instruments, orders, self.symbols.clone());
        self.played
            .push(wiring::with_channel(feed, number, &reception, boxed)?);
        Ok(self.played.len() - 1)
    }

    fn file(&mut self, path: &Path) -> Result<(), End> {
        match Recording::open(path, itch50::message_size)? {
            Recording::Packets(reader) => self.packets(reader),
            Recording::Messages(file) => self.messages(file),
        }
    }

    fn packets(&mut self, mut reader: CaptureReader) -> Result<(), End> {
        while let Some(Frame { now, udp }) = self.tape.frame(&mut reader)? {
            if self.stop.is_set() {
                return Err(End::Interrupted);
            }
            let Ok(udp) = udp else { continue };
            let Some(place) = self.place_of(udp.destination).map_err(End::Failed)? else {
                self.other_feeds += 1;
                continue;
            };
            self.tape.advance(now, self.stop)?;
            self.played[place.channel].on_datagram(now, place.port, place.line, udp.payload);
            if self.args.step {
                let what = format!(
                    "packet {} {} {:?}",
                    self.tape.frames(),
                    udp.destination,
                    place.line
                );
                self.step(place.channel, &what)?;
            }
        }
        Ok(())
    }

    fn messages(&mut self, mut file: ItchFile) -> Result<(), End> {
        if self.played.is_empty() {
            return Err(End::Damaged(
                "a file of messages has no addresses: leave --config out".to_string(),
            ));
        }
        let mut number = 0_u64;
        while let Some(message) = file.next_message()? {
            number += 1;
            if number.is_multiple_of(4096) && self.stop.is_set() {
                return Err(End::Interrupted);
            }
            // Bytes 5 to 10 of every message but one are its time of day.
            let time = message.bytes.get(5..11).map_or(self.tape.last(), |t| {
                Nanos(t.iter().fold(0, |sum, b| sum << 8 | u64::from(*b)))
            });
            self.tape.advance(time.max(self.tape.last()), self.stop)?;
            self.played[0].on_message(time, message.bytes);
            if self.args.step {
                self.step(0, &format!("message {number} at byte {}", message.offset))?;
            }
        }
        Ok(())
    }

    /// Where packets to an address go; `None` for another feed in the same recording.
    fn place_of(&mut self, destination: SocketAddr) -> Result<Option<Place>, Failure> {
        let file = match &self.routes {
            Routes::Recognised(_, places) => return Ok(places.get(&destination).copied()),
            Routes::Configured(file) => file,
        };
        let Some(found) = file.find(destination) else {
            return Ok(None);
        };
        let key = (found.feed, found.channel);
        let channel = match self.slots.get(&key) {
            Some(channel) => *channel,
            None => {
                let feed = file.feeds[found.feed].clone();
                let name = feed.channel_name(found.channel);
                let channel = self.add(&feed, found.channel, name)?;
                self.slots.insert(key, channel);
                channel
            }
        };
        Ok(Some(Place {
            channel,
            port: found.port,
            line: found.line.unwrap_or(Line::Retransmit),
        }))
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

    fn print(&mut self) -> Result<(), Failure> {
        let text = if self.args.json {
            format!("{:#}\n", self.to_json())
        } else {
            self.to_text()
        };
        match std::io::stdout().write_all(text.as_bytes()) {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Failure::system(format!("cannot write the output: {e}")))
            }
            _ => Ok(()),
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let feeds: Vec<serde_json::Value> = self.played.iter().map(|p| self.channel_json(&**p)).collect();
        let mut all = serde_json::json!({
            "frames": self.tape.frames(),
            "frames_without_udp": self.tape.skipped().total(),
            "packets_of_other_feeds": self.other_feeds,
        });
        // One channel's members stand at the top as well: scripts need not look for the only one.
        if let ([only], Some(all)) = (&feeds[..], all.as_object_mut()) {
            all.extend(only.as_object().cloned().unwrap_or_default());
        }
        all["feeds"] = feeds.into();
        all
    }

    fn channel_json(&self, played: &dyn Play) -> serde_json::Value {
        let (counters, cost) = (played.counters(), played.cost());
        let messages = counters.get(Counter::Messages);
        let busy_ns = self.clock.span_ns(cost.busy_ticks);
        serde_json::json!({
            "name": cost.name,
            "state": format!("{:?}", played.state()),
            "packets": cost.packets,
            "bytes": cost.bytes,
            "next_sequence_number": played.next_seq().0,
            "counters": crate::results::counters_by_id(&counters),
            "state_hash": format!("{:016x}", played.books().state_hash()),
            "ns_per_message": if messages > 0 { busy_ns as f64 / messages as f64 } else { 0.0 },
            "ns_per_packet": report::summary_json(&cost.per_packet),
            "books": self.books_json(played),
        })
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        let mut all = Counters::default();
        let (mut busy_ns, mut incomplete) = (0, Vec::new());
        for played in &self.played {
            text += &self.books_text(&**played);
            all.merge(&played.counters());
            busy_ns += self.clock.span_ns(played.cost().busy_ticks);
            if matches!(played.state(), FeedState::Stale | FeedState::Building) {
                incomplete.push(played.cost().name.as_str());
            }
        }
        for missing in self.missing_books() {
            text += &format!("{missing}: no such symbol in the recording's directory\n");
        }
        let mut feeds = Table::new(
            "feeds",
            &[
                "",
                "state",
                "next",
                "packets",
                "messages",
                "gaps",
                "ns per message",
            ],
        );
        for played in &self.played {
            let (counters, cost) = (played.counters(), played.cost());
            let messages = counters.get(Counter::Messages);
            let ns = self.clock.span_ns(cost.busy_ticks) as f64 / messages.max(1) as f64;
            feeds = feeds.row([
                cost.name.clone(),
                format!("{:?}", played.state()),
                played.next_seq().to_string(),
                cost.packets.to_string(),
                messages.to_string(),
                counters.get(Counter::Gaps).to_string(),
                format!("{ns:.1}"),
            ]);
        }
        text += &format!("\n{}", feeds.to_text());
        text += &report::counter_table(&all);
        if self.tape.skipped().total() + self.other_feeds > 0 {
            text += &format!(
                "frames without UDP: {}, packets of other feeds: {}\n",
                self.tape.skipped().total(),
                self.other_feeds
            );
        }
        text += "\nhandler and books, per packet (per message for files), ns\n";
        let rows: Vec<_> = self
            .played
            .iter()
            .map(|p| (p.cost().name.as_str(), &p.cost().per_packet))
            .collect();
        text += &report::percentile_table(&rows);
        let messages = all.get(Counter::Messages);
        if messages > 0 && busy_ns > 0 {
            text += &format!(
                "{:.1} ns per message, {:.2} million messages per second on one core (reading the file not included)\n",
                busy_ns as f64 / messages as f64,
                messages as f64 * 1e3 / busy_ns as f64
            );
        }
        if !incomplete.is_empty() {
            text += &format!(
                "the books of {} are not complete: the recording starts in mid-session or lacks messages on both lines\n",
                incomplete.join(", ")
            );
        }
        text
    }

    /// Symbols asked for that no channel knows.
    fn missing_books(&self) -> impl Iterator<Item = &String> {
        self.args.book.iter().filter(|b| {
            let known = |p: &dyn Play| self.wanted_books(p).contains_key(*b);
            *b != "all" && !self.played.iter().any(|p| known(&**p))
        })
    }

    /// The instruments asked for with `--book`, in order of symbol.
    fn wanted_books(&self, played: &dyn Play) -> BTreeMap<String, InstrumentId> {
        let all = self.args.book.iter().any(|b| b == "all");
        let wanted = |s: &str| all || self.args.book.iter().any(|b| b == s);
        if self.args.book.is_empty() {
            return BTreeMap::new();
        }
        let directory = played.directory();
        let known = directory.iter().filter(|(symbol, _)| wanted(symbol.as_str()));
        let mut books: BTreeMap<_, _> = known.map(|(symbol, id)| (symbol.to_string(), *id)).collect();
        // A recording that starts in mid-session has no directory: books are then named by number.
        if books.is_empty() {
            let numbered = played.books().iter().filter(|b| !b.is_empty());
            books.extend(numbered.map(|b| b.instrument()).filter_map(|id| {
                let name = format!("#{}", id.0);
                wanted(&name).then_some((name, id))
            }));
        }
        books
    }

    fn books_text(&self, played: &dyn Play) -> String {
        let mut text = String::new();
        for (symbol, id) in self.wanted_books(played) {
            let Some(book) = played.books().book(id) else {
                continue;
            };
            text += &format!(
                "{symbol} {:?}\n{:>10} {:>14}   {:<14} {:<10}\n",
                book.state(),
                "qty",
                "bid",
                "ask",
                "qty"
            );
            let bids: Vec<_> = book.levels(Side::Bid).take(self.args.levels).collect();
            let asks: Vec<_> = book.levels(Side::Ask).take(self.args.levels).collect();
            for i in 0..bids.len().max(asks.len()) {
                let bid = bids.get(i).map_or((String::new(), String::new()), |l| {
                    (l.qty.to_string(), l.price.to_string())
                });
                let ask = asks.get(i).map_or((String::new(), String::new()), |l| {
                    (l.price.to_string(), l.qty.to_string())
                });
                text += &format!("{:>10} {:>14}   {:<14} {:<10}\n", bid.0, bid.1, ask.0, ask.1);
            }
        }
        text
    }

    fn books_json(&self, played: &dyn Play) -> serde_json::Value {
        let side = |id, side| -> Vec<serde_json::Value> {
            let Some(book) = played.books().book(id) else {
                return Vec::new();
            };
            book.levels(side)
                .take(self.args.levels)
                .map(|l| serde_json::json!({ "price": l.price.to_string(), "qty": l.qty.0, "orders": l.orders }))
                .collect()
        };
        self.wanted_books(played)
            .into_iter()
            .map(|(symbol, id)| {
                (
                    symbol,
                    serde_json::json!({ "bids": side(id, Side::Bid), "asks": side(id, Side::Ask) }),
                )
            })
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
}
