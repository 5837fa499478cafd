//! The eight equity feeds of one market through the feed handler, end to end: simulator → capture with two
//! bad lines → daemon → shared memory → this reader, compared with the engines' own books.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Folder, Guard, run, text, tickwire};
use tickwire_market::{BookState, EventKind, Level, Price, Side, Volume};
use tickwire_runtime::shared::Attachment;
use tickwire_shm::{
    BookCopy, Histogram, National, Next, ReadWord, Reader, Record, Share, SourceState, SuperCopy, Touch,
};

const CONFIG: &str = include_str!("../../../examples/equities.toml");
/// Feeds with books of their own, and the letter that each plan has for them.
const VENUES: [(&str, [char; 2]); 6] = [
    ("nasdaq", ['T', 'Q']),
    ("bzx", ['Z', 'Z']),
    ("edga", ['J', 'J']),
    ("edgx", ['K', 'K']),
    ("nyse", ['N', 'N']),
    ("arca", ['P', 'P']),
];
/// The consolidated feeds.
const SIPS: [&str; 2] = ["cqs", "uqdf"];
const PATIENCE: Duration = Duration::from_secs(240);

type Sides = [Vec<Level>; 2];
type Books = BTreeMap<String, Sides>;

/// A capture of the market, and what its engines held in the end.
struct Session {
    folder: Folder,
    config: String,
    capture: String,
    packets: u64,
    messages: u64,
}

impl Session {
    /// `packets` over both lines, 1 % of each line lost, some doubled and late.
    fn write(name: &str, packets: u64, daemon: &[(&str, &str)]) -> Session {
        let folder = Folder::new(name);
        let mut config = CONFIG
            .replace("symbols = 300.0", "symbols = 45.0")
            .replace("rate = 50000.0", "rate = 40000.0");
        for (from, to) in daemon {
            assert!(config.contains(from), "the example has changed: {from}");
            config = config.replace(from, to);
        }
        let config = folder.file("equities.toml", config).to_str().unwrap().to_string();
        let capture = folder.0.join("day.pcap").to_str().unwrap().to_string();
        let results = folder.0.join("engines");
        let count = packets.to_string();
        let written = run(&[
            "exchange",
            "-c",
            &config,
            "--write-capture",
            &capture,
            "--packets",
            &count,
            "--results",
            results.to_str().unwrap(),
        ]);
        let said = text(&written.stderr);
        assert!(written.status.success(), "{said}");
        let number = |behind: &str| -> u64 {
            let before = said.split(behind).next().and_then(|s| s.rsplit(' ').next());
            before
                .and_then(|n| n.parse().ok())
                .unwrap_or_else(|| panic!("{said}"))
        };
        let (messages, written) = (number(" messages in "), number(" packets over "));
        let is_whole = said.contains(" 0 of them on all lines");
        assert!(packets < 50_000 || !is_whole, "no gap to fill: {said}");
        Session {
            folder,
            config,
            capture,
            packets: written,
            messages,
        }
    }

    /// The engines' books as a feed shows them.
    fn books(&self, feed: &str) -> Books {
        let mut books = Books::new();
        let path = self.folder.0.join("engines").join(format!("books-{feed}.txt"));
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let [symbol, side, _, price, qty, orders] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let side = usize::from(side == "ask");
            books.entry(symbol.into()).or_default()[side].push(Level {
                price: price_of(price),
                qty: Volume(qty.parse().unwrap()),
                orders: orders.parse().unwrap(),
            });
        }
        books
    }
}

/// A decimal price, without this program's own parser.
fn price_of(text: &str) -> Price {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part: String = part.chars().chain("000000000".chars()).take(9).collect();
    Price::from_raw(whole.parse::<i64>().unwrap() * 1_000_000_000 + part.parse::<i64>().unwrap())
}

/// A daemon playing the capture.
struct Daemon {
    process: Guard,
    folder: std::path::PathBuf,
}

impl Daemon {
    fn start(session: &Session, name: &str, speed: &str, passes: &str) -> Daemon {
        let folder = session.folder.0.join(name);
        let mut command = tickwire();
        command
            .args([
                "feed",
                "-c",
                &session.config,
                "--replay",
                &session.capture,
                "--speed",
                speed,
                "--loop",
                passes,
            ])
            .arg("--folder")
            .arg(&folder)
            .stdout(Stdio::null())
            .current_dir(&session.folder.0);
        Daemon {
            process: Guard(command.spawn().expect("the program starts")),
            folder,
        }
    }

    fn attach(&mut self) -> Attachment {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Attachment::attach(&self.folder) {
                Ok(attachment) => return attachment,
                Err(e) => assert!(Instant::now() < deadline, "{e}"),
            }
            assert!(
                self.process.0.try_wait().unwrap().is_none(),
                "the daemon ended early"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until it has taken so many packets; the most memory that it had meanwhile.
    fn wait(&mut self, attachment: &Attachment, packets: u64) -> u64 {
        let deadline = Instant::now() + PATIENCE;
        let mut peak = 0;
        while packets_of(&attachment.reader()) < packets {
            assert!(
                Instant::now() < deadline,
                "{} of {packets} packets",
                packets_of(&attachment.reader())
            );
            assert!(
                self.process.0.try_wait().unwrap().is_none(),
                "the daemon ended early"
            );
            peak = peak.max(self.memory());
            std::thread::sleep(Duration::from_millis(2));
        }
        peak
    }

    /// Resident memory without the shared region, in bytes.
    fn memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.process.0.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    /// Asks over the control socket.
    fn ask(&self, request: &str) -> serde_json::Value {
        let mut stream =
            UnixStream::connect(self.folder.join("control")).expect("the control socket is there");
        writeln!(stream, "{request}").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(answer["ok"], true, "{request}: {answer}");
        answer
    }
}

fn packets_of(reader: &Reader<'_, ReadWord>) -> u64 {
    reader.sources().map(|source| source.totals.packets).sum()
}

/// The books of a feed in shared memory; none of them may be marked.
fn shown(reader: &Reader<'_, ReadWord>, feed: &str) -> BTreeMap<String, BookCopy> {
    let sources: Vec<u16> = reader
        .sources()
        .filter(|s| s.feed_name == feed)
        .map(|s| s.number)
        .collect();
    assert!(!sources.is_empty(), "{feed} is there");
    for &source in &sources {
        assert_eq!(reader.source_state(source), SourceState::Live, "{feed}");
    }
    let mut books = BTreeMap::new();
    for (slot, identity) in reader.books().filter(|(_, b)| sources.contains(&b.source)) {
        let mut copy = BookCopy::default();
        reader.read_book(slot, &mut copy).expect("the writer is at rest");
        books.insert(identity.symbol.to_string(), copy);
    }
    books
}

/// Every level of every book as the engines have it, as far as a slot shows them, and the totals of the whole
/// book.
fn compare_books(session: &Session, reader: &Reader<'_, ReadWord>) {
    for (feed, _) in VENUES {
        let (expected, found) = (session.books(feed), shown(reader, feed));
        assert_eq!(
            expected.keys().collect::<Vec<_>>(),
            found.keys().collect::<Vec<_>>(),
            "{feed}"
        );
        for (symbol, sides) in &expected {
            let book = &found[symbol];
            assert_eq!(book.state, BookState::Live, "{feed} {symbol}");
            for side in Side::BOTH {
                let all = &sides[side as usize];
                let top = &all[..all.len().min(book.side(side).len())];
                assert_eq!(book.side(side), top, "{feed} {symbol} {side:?}");
                assert!(top.len() == all.len().min(10), "{feed} {symbol}: {}", top.len());
                assert_eq!(book.levels[side as usize] as usize, all.len(), "{feed} {symbol}");
                let qty: u64 = all.iter().map(|l| l.qty.0).sum();
                assert_eq!(book.qty[side as usize].0, qty, "{feed} {symbol}");
            }
        }
    }
}

/// What a venue quotes: the best price at which its orders make up a round lot, in round lots.
fn quote(levels: &[Level]) -> Option<(Price, u64)> {
    let mut sum = 0;
    levels.iter().find_map(|level| {
        sum += level.qty.0;
        (sum >= 100).then_some((level.price, sum / 100 * 100))
    })
}

/// Consolidated books against all venues' levels sorted, and the national best against all venues' quotes.
fn compare_supers(session: &Session, reader: &Reader<'_, ReadWord>) {
    let venues: Vec<Books> = VENUES.iter().map(|(feed, _)| session.books(feed)).collect();
    let utp = session.books(SIPS[1]);
    let symbols: BTreeSet<&String> = venues.iter().flat_map(|books| books.keys()).collect();
    let (mut touches, mut differences) = ([0; 3], 0);
    for symbol in &symbols {
        let slot = reader.find_super(tickwire_market::Symbol::new(symbol.as_bytes()).unwrap());
        let mut copy = SuperCopy::default();
        reader
            .read_super(slot.expect("every symbol has a consolidated book"), &mut copy)
            .unwrap();
        assert_eq!((copy.feeds & 0x3F, copy.stale), (0x3F, 0), "{symbol}");
        touches[copy.touch as usize] += 1;
        for side in Side::BOTH {
            let at = side as usize;
            let mut naive: Vec<Share> = Vec::new();
            for (feed, books) in venues.iter().enumerate() {
                naive.extend(books[*symbol][at].iter().map(|level| Share {
                    price: level.price,
                    qty: level.qty,
                    feed: feed as u8,
                    orders: level.orders,
                }));
            }
            naive.sort_by_key(|share| {
                let price = share.price.raw();
                (if side == Side::Bid { -price } else { price }, share.feed)
            });
            let shares = copy.side(side);
            assert_eq!(shares, &naive[..shares.len()], "{symbol} {side:?}");
            assert_eq!(shares.len(), naive.len().min(32), "{symbol} {side:?}");
            let ladder = &copy.ladders[at];
            assert_eq!(ladder.shares as usize, naive.len(), "{symbol} {side:?}");
            let best: u64 = naive
                .iter()
                .take_while(|s| s.price == naive[0].price)
                .map(|s| s.qty.0)
                .sum();
            assert_eq!(
                (ladder.price, ladder.qty.0),
                (naive[0].price, best),
                "{symbol} {side:?}"
            );

            let quotes = VENUES.iter().zip(&venues).filter_map(|((_, letters), books)| {
                let (price, qty) = quote(&books[*symbol][at])?;
                Some((price, qty, letters[usize::from(utp.contains_key(*symbol))]))
            });
            let rank = |price: Price| {
                if side == Side::Bid {
                    price.raw()
                } else {
                    -price.raw()
                }
            };
            let best = quotes
                .clone()
                .map(|(price, qty, _)| (rank(price), qty))
                .max()
                .unwrap();
            let national: National = copy.national[at];
            assert_eq!(
                (rank(national.price), national.qty.0),
                best,
                "{symbol} {side:?}: {national:?}"
            );
            let letter = char::from(national.participant);
            assert!(
                quotes.clone().any(|q| (rank(q.0), q.1) == best && q.2 == letter),
                "{symbol} {side:?}: {letter}"
            );
            let ours_less_theirs = ladder.price.raw() - national.price.raw();
            assert_eq!(copy.difference[at].price, ours_less_theirs, "{symbol} {side:?}");
            differences += usize::from(ours_less_theirs != 0);
        }
        let (bid, ask) = (copy.ladders[0].price, copy.ladders[1].price);
        let expected = match bid.cmp(&ask) {
            std::cmp::Ordering::Less => Touch::Apart,
            std::cmp::Ordering::Equal => Touch::Locked,
            std::cmp::Ordering::Greater => Touch::Crossed,
        };
        assert_eq!(copy.touch, expected, "{symbol}");
    }
    // Prices follow one path: venues agree about most of them, and odd lots alone are better than the
    // national best.
    assert!(touches[Touch::Apart as usize] * 2 > symbols.len(), "{touches:?}");
    assert!(
        differences < symbols.len(),
        "{differences} of {} sides",
        2 * symbols.len()
    );
}

/// The reference system's table, a row per feed, as `tickwire latency` has it: what the histograms in shared
/// memory hold. And `tickwire stats` counts every message of every engine once.
fn table(session: &Session, daemon: &Daemon, reader: &Reader<'_, ReadWord>) -> String {
    let folder = daemon.folder.to_str().unwrap();
    let asked = |args: &[&str]| -> serde_json::Value {
        let output = run(&[args, &["--json", "--folder", folder]].concat());
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        serde_json::from_str(&text(&output.stdout)).expect("JSON")
    };
    let stats = asked(&["stats", "--interval", "0"]);
    let sum = |id: &str| -> u64 {
        let sources = stats["sources"].as_array().unwrap().iter();
        sources
            .map(|source| source["counters"][id].as_u64().unwrap_or(0))
            .sum()
    };
    assert_eq!(sum("messages"), session.messages);
    assert!(sum("gaps") > 0 && sum("messages_missed") == sum("messages_recovered"));
    assert_eq!(
        (sum("messages_lost"), sum("malformed"), sum("book_rejects")),
        (0, 0, 0)
    );
    let latency = asked(&["latency"]);
    let mut table = String::from("feed     packets updates    min   mean    p50    p99  p99.9        max\n");
    for feed in VENUES.iter().map(|(feed, _)| *feed).chain(SIPS) {
        let (mut sum, mut packets) = (Histogram::default(), 0);
        for source in reader.sources().filter(|s| s.feed_name == feed) {
            packets += source.totals.packets;
            sum.add(&reader.histogram(source.latency.unwrap()).unwrap());
        }
        let feeds = latency["feeds"].as_array().unwrap();
        let said = &feeds.iter().find(|f| f["feed"] == feed).expect(feed)["types"]["all"];
        let figure = |id: &str| said[id].as_u64().unwrap_or_else(|| panic!("{feed}: {said}"));
        let [count, min, mean, p50] = ["count", "min", "mean", "p50"].map(figure);
        let [p99, p999, max] = ["p99", "p99_9", "max"].map(figure);
        assert_eq!(
            (count, min, mean, max),
            (sum.count, sum.min, sum.mean(), sum.max),
            "{feed}"
        );
        assert!(packets > 0 && count > 0, "{feed}");
        assert!(
            min <= p50 && p50 <= p99 && p99 <= p999 && p999 <= max,
            "{feed}: {said}"
        );
        table +=
            &format!("{feed:7} {packets:8} {count:7} {min:6} {mean:6} {p50:6} {p99:6} {p999:6} {max:10}\n");
    }
    table
}

/// At full speed and at three times the day's own, over both bad lines.
#[test]
fn the_replay_of_a_market_gives_every_book_the_super_books_and_the_national_best() {
    // On a thread of their own; the other tests here have them where the example has them, on the feed
    // thread.
    let apart = [("super_books = \"auto\"", "super_books = \"thread\"")];
    let session = Session::write("equities", 120_000, &apart);
    for speed in ["max", "3"] {
        let mut daemon = Daemon::start(&session, &format!("at-{speed}"), speed, "1");
        let attachment = daemon.attach();
        daemon.wait(&attachment, session.packets);
        // The thread of consolidated books may be a moment behind.
        std::thread::sleep(Duration::from_millis(200));
        let reader = attachment.reader();
        compare_books(&session, &reader);
        compare_supers(&session, &reader);
        println!("speed {speed}\n{}", table(&session, &daemon, &reader));
        let threads = std::fs::read_dir(format!("/proc/{}/task", daemon.process.0.id())).unwrap();
        let names: Vec<String> = threads
            .map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap())
            .collect();
        for name in ["feed 1", "consolidated"] {
            assert!(names.iter().any(|n| n.trim() == name), "two cores: {names:?}");
        }
    }
}

/// Every pass is a new day with new books in the old places: the later ones need no more memory than the
/// first.
#[test]
fn memory_stays_flat_from_pass_to_pass() {
    /// What samples of a growing and shrinking process may differ by.
    const SLACK: u64 = 32 << 20;
    let session = Session::write("equities-memory", 60_000, &[]);
    let mut daemon = Daemon::start(&session, "passes", "max", "6");
    let attachment = daemon.attach();
    let first = daemon.wait(&attachment, session.packets * 3);
    let second = daemon.wait(&attachment, session.packets * 6);
    assert!(
        second <= first + SLACK,
        "{} MiB at most, then {} MiB",
        first >> 20,
        second >> 20
    );
    std::thread::sleep(Duration::from_millis(200));
    compare_books(&session, &attachment.reader());
}

/// What a run's rings say of messages: by channel and symbol their numbers, in order.
type Heard = BTreeMap<(String, String), Vec<u64>>;

fn heard(reader: &Reader<'_, ReadWord>) -> Heard {
    let names: BTreeMap<u16, String> = reader.sources().map(|s| (s.number, s.name)).collect();
    let symbols: BTreeMap<(u16, u32), String> = reader
        .books()
        .map(|(_, book)| ((book.source, book.instrument.0), book.symbol.to_string()))
        .collect();
    let mut heard = Heard::new();
    let mut cursor = reader.ring_from_oldest(0).expect("there is a ring");
    loop {
        match cursor.next(reader) {
            Next::Record(Record::Event(source, event)) => {
                let is_message = !matches!(
                    event.kind,
                    EventKind::Gap | EventKind::Recovered | EventKind::Clear | EventKind::Definition
                );
                if is_message && let Some(symbol) = symbols.get(&(source, event.instrument.0)) {
                    let key = (names[&source].clone(), symbol.clone());
                    heard.entry(key).or_default().push(event.seq.0);
                }
            }
            Next::Record(_) => {}
            Next::Empty => return heard,
            other => panic!("the ring is large enough for all: {other:?}"),
        }
    }
}

/// Messages of a channel: seen, and dropped before they were decoded.
fn seen(reader: &Reader<'_, ReadWord>) -> BTreeMap<String, [u64; 2]> {
    let count = |number: u16| {
        reader.kinds(number).fold([0, 0], |[seen, filtered], kind| {
            [seen + kind.seen, filtered + kind.filtered]
        })
    };
    reader.sources().map(|s| (s.name, count(s.number))).collect()
}

/// A client subscribes and unsubscribes while the daemon plays at three times the day's speed. Symbols that
/// stay subscribed lose nothing; what is heard of the others is part of the day, and what is missing of it
/// was dropped before it was decoded.
#[test]
fn subscriptions_change_under_load_without_loss_and_without_decoding_what_is_not_wanted() {
    let ring = [(
        "book_levels = 10\n",
        "book_levels = 10\nring = \"events\"\nring_records = 524288\n",
    )];
    let session = Session::write("equities-subscriptions", 150_000, &ring);
    let mut quiet = Daemon::start(&session, "quiet", "max", "1");
    let attachment = quiet.attach();
    quiet.wait(&attachment, session.packets);
    std::thread::sleep(Duration::from_millis(200));
    let (whole, whole_seen) = (heard(&attachment.reader()), seen(&attachment.reader()));
    drop((attachment, quiet));

    let mut daemon = Daemon::start(&session, "busy", "3", "1");
    let attachment = daemon.attach();
    // Three of the most active symbols of either plan come and go; the last request leaves some of them out.
    let (all, some) = (r#"["MSFT","NVDA","BAC"]"#, r#"["MSFT","BAC"]"#);
    let mut changes = 0;
    while packets_of(&attachment.reader()) < session.packets * 9 / 10 {
        daemon.ask(&format!(r#"{{"do":"unsubscribe","patterns":{all}}}"#));
        std::thread::sleep(Duration::from_millis(15));
        daemon.ask(&format!(r#"{{"do":"subscribe","patterns":{some}}}"#));
        std::thread::sleep(Duration::from_millis(15));
        changes += 1;
        assert!(
            daemon.process.0.try_wait().unwrap().is_none(),
            "the daemon ended early"
        );
    }
    assert!(changes >= 5, "{changes} changes while it played");
    daemon.wait(&attachment, session.packets);
    std::thread::sleep(Duration::from_millis(200));
    let reader = attachment.reader();
    let (now, now_seen) = (heard(&reader), seen(&reader));

    let is_changing = |symbol: &str| all.contains(&format!("\"{symbol}\""));
    let mut missing: BTreeMap<&str, u64> = BTreeMap::new();
    for ((channel, symbol), events) in &whole {
        let found = now
            .get(&(channel.clone(), symbol.clone()))
            .map_or(&[][..], Vec::as_slice);
        if !is_changing(symbol) {
            assert_eq!(
                events, found,
                "{channel} {symbol}: a subscribed symbol loses nothing"
            );
            continue;
        }
        if SIPS.iter().any(|sip| channel.starts_with(sip)) {
            // CQS makes it right by its snapshot stream, whose messages are not among the day's.
            continue;
        }
        let all: BTreeSet<u64> = events.iter().copied().collect();
        let part: BTreeSet<u64> = found.iter().copied().collect();
        assert!(
            part.is_subset(&all) && part.len() < all.len(),
            "{channel} {symbol}"
        );
        *missing.entry(channel).or_default() += (all.len() - part.len()) as u64;
    }
    for (channel, [all_seen, all_filtered]) in &whole_seen {
        let [seen, filtered] = now_seen[channel];
        assert_eq!(seen, *all_seen, "{channel}: every message is counted");
        assert_eq!(*all_filtered, 0, "{channel}");
        // One event a message: what is not heard of was dropped, or not told of while a book waits to be
        // right. Messages that say nothing of a book are dropped too.
        let missing = missing.get(channel.as_str()).copied().unwrap_or(0);
        let told: usize = whole
            .iter()
            .filter(|((of, _), _)| of == channel)
            .map(|(_, events)| events.len())
            .sum();
        let silent = all_seen.saturating_sub(told as u64);
        if VENUES.iter().any(|(feed, _)| channel.starts_with(feed)) && missing > 0 {
            assert!(
                filtered > 0 && filtered <= missing + silent,
                "{channel}: {filtered} filtered, {missing} missing, {silent} silent"
            );
        }
    }
    for (feed, _) in VENUES {
        let (expected, found) = (session.books(feed), shown(&reader, feed));
        for (symbol, sides) in &expected {
            let Some(book) = found.get(symbol) else {
                assert!(is_changing(symbol), "{feed} {symbol}");
                continue;
            };
            assert!(
                is_changing(symbol) || book.state == BookState::Live,
                "{feed} {symbol}"
            );
            // Right, or marked: a recording has no server that would give a snapshot.
            if book.state == BookState::Live {
                for side in Side::BOTH {
                    let shown = book.side(side);
                    assert_eq!(shown, &sides[side as usize][..shown.len()], "{feed} {symbol}");
                }
            }
        }
    }
}

/// The capture is one stream of bytes as well: written into a pipe it is the same as written into a file.
#[test]
fn a_capture_can_be_written_into_a_pipe() {
    let session = Session::write("equities-pipe", 5_000, &[]);
    let piped = run(&[
        "exchange",
        "-c",
        &session.config,
        "--write-capture",
        "-",
        "--packets",
        "5000",
    ]);
    assert!(piped.status.success(), "{}", text(&piped.stderr));
    let file = std::fs::read(Path::new(&session.capture)).unwrap();
    assert!(
        piped.stdout == file,
        "{} and {} bytes",
        piped.stdout.len(),
        file.len()
    );
}
