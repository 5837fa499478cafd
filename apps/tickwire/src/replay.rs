//! `tickwire replay`: recordings through the same feed handler and books as live packets.
//!
//! Time is the recording's: gaps wait, packets age and books go stale as they did then, at whatever speed it is played.
//! The first destination seen is line A, the next with the same MoldUDP64 session line B. There is no retransmission
//! server in a file, so what is missing on both lines is lost, and said so.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use tickwire_book::{Applied, Books, BooksConfig, Depth};
use tickwire_feed::{ArbiterConfig, FeedState, ItchConfig, ItchDecoder, ItchFeed, Line, Start};
use tickwire_lab::Histogram;
use tickwire_market::{
    BookState, Counters, EventSink, InstrumentId, MarketEvent, Nanos, OrderId, Side, Symbol, Venue,
};
use tickwire_runtime::capture::{self, CaptureError, CaptureReader, SkipCounts};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::itchfile::{ItchFile, Recording};
use tickwire_runtime::signal::StopFlag;
use tickwire_wire::{itch50, moldudp64};

use crate::cli::{ReplayArgs, Speed};
use crate::failure::Failure;
use crate::report;

/// Orders are found by reference directly below this; a Nasdaq day counts up to about 500 million.
const DENSE_ORDER_IDS: u64 = 1 << 30;

/// The books, and the events of one packet for `--step`.
struct Player {
    books: Books,
    shown: Option<Vec<String>>,
}

impl EventSink for Player {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        let applied = self.books.apply(event);
        if let Some(shown) = &mut self.shown {
            shown.push(describe(event, &applied));
        }
    }

    #[inline]
    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        self.books.upcoming(instrument, order_id);
    }
}

/// One event as a line of `--step`.
fn describe(e: &MarketEvent, applied: &Applied<'_>) -> String {
    let mut text = format!("  {:>9} {:?} instrument {}", e.seq.0, e.kind, e.instrument.0);
    if e.order_id != OrderId(0) {
        text += &format!(" order {} {:?} {} @ {}", e.order_id.0, e.side, e.qty, e.price);
    }
    match applied {
        Applied::Update(u) => {
            let side = |s: Side| u.best(s).map_or("-".into(), |(p, q)| format!("{q} @ {p}"));
            text += &format!("   => {} | {}  {:?}", side(Side::Bid), side(Side::Ask), u.state);
        }
        Applied::Feed(state) => text += &format!("   => all books {state:?}"),
        Applied::Rejected(reason) => text += &format!("   => rejected: {reason}"),
        Applied::None => {}
    }
    text
}

/// What a replay found.
struct Replay<'a> {
    args: &'a ReplayArgs,
    stop: &'a StopFlag,
    clock: Clock,
    feed: ItchFeed,
    player: Player,
    /// Destinations in order of appearance with the session of their first packet.
    lines: Vec<(SocketAddr, [u8; 10])>,
    frames: u64,
    skipped: SkipCounts,
    other_feeds: u64,
    bytes: u64,
    per_packet: Histogram,
    busy_ticks: u64,
    pace: Pace,
    first_time: Option<Nanos>,
    last_time: Nanos,
    damage: Option<String>,
}

pub(crate) fn run(args: &ReplayArgs, stop: &StopFlag) -> Result<(), Failure> {
    tickwire_runtime::alloc::populate_large_blocks();
    let symbols = symbols_of(&args.symbol)?;
    let books = BooksConfig {
        venue: Venue::Nasdaq,
        depth: Depth::Aggregated,
        instruments: args.max_instruments.saturating_add(1),
        dense_orders: args.max_orders,
        dense_order_ids: DENSE_ORDER_IDS,
        sparse_orders: (args.max_orders / 4).max(1024),
        levels: args.max_levels,
        initial: BookState::Building,
    };
    let arbiter = ArbiterConfig {
        start: Start::Here,
        snapshot: false,
        request_attempts: 0,
        ..ArbiterConfig::default()
    };
    let decoder = ItchDecoder::new(ItchConfig {
        instruments_max: args.max_instruments.saturating_add(1).min(1 << 16),
        symbols,
        ..ItchConfig::default()
    });
    let mut replay = Replay {
        args,
        stop,
        clock: Clock::calibrate(),
        feed: ItchFeed::new(arbiter, decoder),
        player: Player {
            books: Books::new(books),
            shown: args.step.then(Vec::new),
        },
        lines: Vec::new(),
        frames: 0,
        skipped: SkipCounts::default(),
        other_feeds: 0,
        bytes: 0,
        per_packet: Histogram::new(),
        busy_ticks: 0,
        pace: Pace::new(args.speed),
        first_time: None,
        last_time: Nanos::ZERO,
        damage: None,
    };
    for file in &args.files {
        match replay.file(file) {
            Ok(()) => {}
            Err(End::Interrupted) => break,
            Err(End::Damaged(message)) => replay.damage = Some(message),
            Err(End::Failed(failure)) => return Err(failure),
        }
    }
    // What still waits for the other line will not come any more.
    let end = replay.last_time.after(Nanos::DAY);
    replay.feed.handle_timeout(end, &mut replay.player);
    replay.print()?;
    if let Some(reason) = stop.reason() {
        return Err(Failure::interrupted(format!(
            "{reason}; what was read until then is shown above"
        )));
    }
    match replay.damage.take() {
        Some(message) => Err(Failure::check(message)),
        None if replay.frames == 0 && replay.feed.next_seq().0 <= 1 => Err(Failure::check(
            "the recording holds no ITCH 5.0 message".to_string(),
        )),
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

/// Why a file was not read to its end.
enum End {
    Interrupted,
    Damaged(String),
    Failed(Failure),
}

impl From<CaptureError> for End {
    fn from(e: CaptureError) -> End {
        match e {
            CaptureError::Open { .. } | CaptureError::Read { .. } => {
                End::Failed(Failure::system(e.to_string()))
            }
            _ => End::Damaged(e.to_string()),
        }
    }
}

impl Replay<'_> {
    fn file(&mut self, path: &Path) -> Result<(), End> {
        match Recording::open(path, itch50::message_size)? {
            Recording::Packets(reader) => self.packets(reader),
            Recording::Messages(file) => self.messages(file),
        }
    }

    fn packets(&mut self, mut reader: CaptureReader) -> Result<(), End> {
        while let Some(packet) = reader.next_packet()? {
            if self.stop.is_set() {
                return Err(End::Interrupted);
            }
            self.frames += 1;
            let udp = match capture::udp(packet.link, packet.bytes) {
                Ok(udp) => udp,
                Err(reason) => {
                    self.skipped.note(reason);
                    continue;
                }
            };
            let Some(line) = self.line_of(udp.destination, udp.payload) else {
                self.other_feeds += 1;
                continue;
            };
            let now = packet.time.unwrap_or(self.last_time);
            self.advance(now)?;
            self.bytes += udp.payload.len() as u64;
            let begin = tsc();
            if self.feed.poll_timeout().is_some_and(|t| t <= now) {
                self.feed.handle_timeout(now, &mut self.player);
            }
            self.feed.on_packet(now, line, udp.payload, &mut self.player);
            self.note(tsc() - begin);
            self.step(&format!("packet {} {} {line:?}", self.frames, udp.destination))?;
        }
        Ok(())
    }

    fn messages(&mut self, mut file: ItchFile) -> Result<(), End> {
        let mut number = 0_u64;
        while let Some(message) = file.next_message()? {
            number += 1;
            if number.is_multiple_of(4096) && self.stop.is_set() {
                return Err(End::Interrupted);
            }
            // Bytes 5 to 10 of every message but one are its time of day.
            let time = message.bytes.get(5..11).map_or(self.last_time, |t| {
                Nanos(t.iter().fold(0, |sum, b| sum << 8 | u64::from(*b)))
            });
            self.advance(time.max(self.last_time))?;
            self.bytes += message.bytes.len() as u64 + 2;
            let begin = tsc();
            self.feed.on_message(time, message.bytes, &mut self.player);
            self.note(tsc() - begin);
            self.step(&format!("message {number} at byte {}", message.offset))?;
        }
        Ok(())
    }

    /// Which line a packet belongs to; `None` for another feed in the same recording.
    fn line_of(&mut self, destination: SocketAddr, payload: &[u8]) -> Option<Line> {
        let index = match self.lines.iter().position(|(d, _)| *d == destination) {
            Some(index) => index,
            None => {
                let session = moldudp64::parse(payload).ok()?.session;
                self.lines.push((destination, session));
                self.lines.len() - 1
            }
        };
        let same: Vec<usize> = (0..self.lines.len())
            .filter(|&i| self.lines[i].1 == self.lines[0].1)
            .collect();
        match same.iter().position(|&i| i == index)? {
            0 => Some(Line::A),
            1 => Some(Line::B),
            _ => Some(Line::Retransmit),
        }
    }

    /// Time goes on: waits for it when playing at a speed.
    fn advance(&mut self, now: Nanos) -> Result<(), End> {
        let first = *self.first_time.get_or_insert(now);
        self.last_time = now;
        if !self.pace.wait_until(now.since(first), self.stop) {
            return Err(End::Interrupted);
        }
        Ok(())
    }

    #[inline]
    fn note(&mut self, ticks: u64) {
        self.busy_ticks += ticks;
        self.per_packet.record(self.clock.span_ns(ticks));
    }

    /// `--step`: shows what the packet did, waits for Enter.
    fn step(&mut self, what: &str) -> Result<(), End> {
        let Some(shown) = &mut self.player.shown else {
            return Ok(());
        };
        println!("{what}");
        shown.drain(..).for_each(|line| println!("{line}"));
        eprint!("[Enter] ");
        let _ = std::io::stderr().flush();
        let mut line = String::new();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => Err(End::Interrupted),
            Ok(_) if line.trim() == "q" => Err(End::Interrupted),
            Ok(_) => Ok(()),
        }
    }

    fn counters(&self) -> Counters {
        let mut all = self.feed.counters();
        all.merge(self.player.books.counters());
        all
    }

    fn print(&mut self) -> Result<(), Failure> {
        let counters = self.counters();
        let messages = counters.get(tickwire_market::Counter::Messages);
        let busy_ns = self.clock.span_ns(self.busy_ticks);
        let mut text = String::new();
        if self.args.json {
            let value = serde_json::json!({
                "state": format!("{:?}", self.feed.state()),
                "frames": self.frames,
                "frames_without_udp": self.skipped.total(),
                "packets_of_other_feeds": self.other_feeds,
                "bytes": self.bytes,
                "next_sequence_number": self.feed.next_seq().0,
                "counters": crate::results::counters_by_id(&counters),
                "state_hash": format!("{:016x}", self.player.books.state_hash()),
                "ns_per_message": if messages > 0 { busy_ns as f64 / messages as f64 } else { 0.0 },
                "ns_per_packet": report::summary_json(&self.per_packet),
                "books": self.books_json(),
            });
            text += &format!("{value:#}\n");
        } else {
            text += &self.books_text();
            text += &format!(
                "\nfeed {:?}, next sequence number {}\n",
                self.feed.state(),
                self.feed.next_seq()
            );
            text += &report::counter_table(&counters);
            if self.skipped.total() + self.other_feeds > 0 {
                text += &format!(
                    "frames without UDP: {}, packets of other feeds: {}\n",
                    self.skipped.total(),
                    self.other_feeds
                );
            }
            text += "\nhandler and books, per packet (per message for files), ns\n";
            text += &report::percentile_table(&[("packet", &self.per_packet)]);
            if messages > 0 && busy_ns > 0 {
                text += &format!(
                    "{:.1} ns per message, {:.2} million messages per second on one core (reading the file not included)\n",
                    busy_ns as f64 / messages as f64,
                    messages as f64 * 1e3 / busy_ns as f64
                );
            }
            if self.feed.state() == FeedState::Stale || self.feed.state() == FeedState::Building {
                text += "the books are not complete: the recording starts in mid-session or lacks messages on both lines\n";
            }
        }
        match std::io::stdout().write_all(text.as_bytes()) {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Failure::system(format!("cannot write the output: {e}")))
            }
            _ => Ok(()),
        }
    }

    /// The instruments asked for with `--book`, in order of symbol.
    fn wanted_books(&self) -> BTreeMap<String, InstrumentId> {
        let all = self.args.book.iter().any(|b| b == "all");
        let wanted = |s: &str| all || self.args.book.iter().any(|b| b == s);
        let known = self
            .feed
            .decoder()
            .instruments()
            .filter(|i| wanted(i.symbol.as_str()));
        let mut books: BTreeMap<_, _> = known.map(|i| (i.symbol.to_string(), i.id)).collect();
        // A recording that starts in mid-session has no directory: books are then named by number.
        if books.is_empty() && !self.args.book.is_empty() {
            let numbered = self.player.books.iter().filter(|b| !b.is_empty());
            books.extend(numbered.map(|b| b.instrument()).filter_map(|id| {
                let name = format!("#{}", id.0);
                wanted(&name).then_some((name, id))
            }));
        }
        books
    }

    fn books_text(&self) -> String {
        let mut text = String::new();
        for (symbol, id) in self.wanted_books() {
            let Some(book) = self.player.books.book(id) else {
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
        for missing in self
            .args
            .book
            .iter()
            .filter(|b| *b != "all" && !self.wanted_books().contains_key(*b))
        {
            text += &format!("{missing}: no such symbol in the recording's directory\n");
        }
        text
    }

    fn books_json(&self) -> serde_json::Value {
        let side = |id, side| -> Vec<serde_json::Value> {
            let Some(book) = self.player.books.book(id) else {
                return Vec::new();
            };
            book.levels(side)
                .take(self.args.levels)
                .map(|l| serde_json::json!({ "price": l.price.to_string(), "qty": l.qty.0, "orders": l.orders }))
                .collect()
        };
        self.wanted_books()
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

/// Keeps to a multiple of the recording's speed.
struct Pace {
    speed: Speed,
    started: Instant,
}

impl Pace {
    fn new(speed: Speed) -> Pace {
        Pace {
            speed,
            started: Instant::now(),
        }
    }

    /// Waits until `ns` of the recording may have passed; `false` when asked to stop meanwhile.
    fn wait_until(&self, ns: u64, stop: &StopFlag) -> bool {
        let Speed::Times(times) = self.speed else {
            return true;
        };
        let due = Duration::from_nanos((ns as f64 / times) as u64);
        loop {
            let left = due.saturating_sub(self.started.elapsed());
            if stop.is_set() {
                return false;
            }
            if left.is_zero() {
                return true;
            }
            // Sleep while far away, spin the last stretch: the scheduler wakes up to 100 µs late.
            if left > Duration::from_micros(200) {
                std::thread::sleep((left - Duration::from_micros(150)).min(Duration::from_millis(100)));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}
