//! The `[daemon]` section: where the region is, how large, which thread takes which feed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::places;
use tickwire_runtime::udp::BATCH_MAX;
use tickwire_runtime::wait::WaitStrategy;
use toml::Spanned;

use tickwire_console::failure::Failure;
use tickwire_control::access::AccessSection;
use tickwire_venues::channels::{Fault, FeedConfig};
use tickwire_venues::receiver::ReceiverSection;
use tickwire_venues::wait::{Wait, Waiting};

/// Feeds are bits of a word in consolidated books.
const FEEDS_MAX: usize = 32;
/// Other programs on the page; the thread that asks them waits a second for each that hangs.
const PROGRAMS_MAX: usize = 16;

/// What `tickwire feed` does with the feeds of the file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DaemonSection {
    /// Holds the region and the control socket. `TICKWIRE_FOLDER` and `--folder` go before it; without any of
    /// them it is /run/tickwire for root, else `tickwire` in `XDG_RUNTIME_DIR`, by which the value may begin.
    pub folder: PathBuf,
    /// Where consolidated books are kept: with one feed thread on it, with several on a thread of their own,
    /// unless told otherwise.
    pub super_books: SuperBooksPlace,
    /// Core of the thread of consolidated books; -1 leaves it to the scheduler.
    pub super_core: i32,
    /// Patterns (`*`, `?`) of the symbols subscribed to at the start, for every feed.
    pub symbols: Vec<String>,
    /// Price levels shown of each side of a book, 1 to 64.
    pub book_levels: u32,
    /// Books in shared memory, over all channels: one per channel and instrument, taken when the instrument
    /// first has something to show. Further instruments are counted and named, and not shown.
    pub books: u32,
    /// Consolidated books in shared memory: one per symbol.
    pub super_slots: u32,
    /// Shares of feeds shown of each side of a consolidated book, 1 to 64.
    pub super_shares: u32,
    /// Records in each feed thread's ring, a power of two; 128 bytes each.
    pub ring_records: u32,
    /// What goes into the rings.
    pub ring: RingContent,
    /// Where metrics are served over HTTP; nowhere unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
    /// Folders of other programs of this machine that the page shows beside the feeds: traders, quoters and
    /// strategies (`trader.control`), FIX engines (`folder` of `tickwire fix`). Whoever reaches `metrics`
    /// sees them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<PathBuf>,
    /// Folder for `latency_<feed>.txt`; none are written unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_files: Option<PathBuf>,
    /// How often they are written, seconds. They are written at the end too.
    pub latency_every_s: u32,
    /// Whose latency is measured.
    pub latency_of: LatencyOf,
    /// Ask the kernel when it received each packet, and keep how long it took from there into the program's
    /// memory. Costs latency itself: another, dearer receive call.
    pub kernel_stamps: bool,
    /// How many datagrams one system call takes off a line's socket at most, 1 to 64. A busy line costs a
    /// seventh less with 16, with `kernel_stamps` a third; the first of several waits until the others are
    /// copied, a tenth of a microsecond each. 1: each comes by itself.
    pub receive_batch: u32,
    /// How often a feed thread that never sleeps (`wait = "spin"`) rehearses a packet while none comes,
    /// microseconds, 0 to 1,000,000; 0 for never. The next packet then finds the code that it needs in the
    /// caches. One that comes meanwhile waits until the two messages of a rehearsal are taken.
    pub rehearse_us: u32,
    /// A channel without any packet for so long is stale, milliseconds; a feed may say its own `silence_ms`.
    /// Venues send heartbeats at least once a second.
    pub silence_ms: u32,
    /// Feed threads; without any, one takes every feed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thread: Vec<ThreadSection>,
}

/// One feed thread.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThreadSection {
    /// Core to pin to; -1 leaves it to the scheduler.
    pub core: i32,
    /// How to wait for packets.
    pub wait: Wait,
    /// Names of its feeds.
    pub feeds: Vec<String>,
}

/// Where consolidated books are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SuperBooksPlace {
    /// `inline` with one feed thread; else `thread`, with a warning where that has no core to spin on.
    Auto,
    /// On the feed thread, of which there must be one.
    Inline,
    /// On a thread of their own, behind a ring per feed thread.
    Thread,
    /// Nowhere.
    Off,
}

/// What goes into the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RingContent {
    /// What the feeds said.
    Events,
    /// What it did to the tops of books.
    Updates,
    /// Both, the events of a message before what they did.
    Both,
    /// There are no rings.
    Off,
}

impl RingContent {
    /// Whether the rings carry what the feeds said.
    pub fn has_events(self) -> bool {
        matches!(self, RingContent::Events | RingContent::Both)
    }

    /// Whether the rings carry what events did to the tops of books.
    pub fn has_updates(self) -> bool {
        matches!(self, RingContent::Updates | RingContent::Both)
    }
}

/// When the clock is read to tell how long after its packet was in memory a book was visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LatencyOf {
    /// Once a packet, at its last book: all books of the packet count with that time, which is theirs or
    /// longer. To read the clock at every book takes up to a fifth more for a message of a full packet.
    Packets,
    /// At every book.
    Messages,
}

/// Everything that the daemon runs by. Other sections of a file are other programs' and are passed over.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct DaemonConfig {
    /// What it listens to.
    pub feed: Vec<FeedConfig>,
    /// Sizes and patience of the receiving side.
    pub receiver: ReceiverSection,
    /// Threads, shared memory, metrics.
    pub daemon: DaemonSection,
    /// Who may read the shared memory and ask what.
    pub access: AccessSection,
}

impl DaemonConfig {
    /// Checks it; `text` is what the file at `path` says, for the line of what is wrong.
    ///
    /// # Errors
    /// What is wrong and where.
    pub fn check(&self, path: &Path, text: &str) -> Result<(), Failure> {
        check_text(self, text).map_err(|message| Failure::config(format!("{}: {message}", path.display())))
    }
}

impl Default for DaemonSection {
    fn default() -> DaemonSection {
        DaemonSection {
            folder: places::default_folder(),
            super_books: SuperBooksPlace::Auto,
            super_core: -1,
            symbols: vec!["*".into()],
            book_levels: 10,
            books: 65_536,
            super_slots: 16_384,
            super_shares: 32,
            ring_records: 65_536,
            ring: RingContent::Both,
            metrics: None,
            programs: Vec::new(),
            latency_files: None,
            latency_every_s: 60,
            latency_of: LatencyOf::Packets,
            kernel_stamps: false,
            receive_batch: 16,
            rehearse_us: 10,
            silence_ms: 5_000,
            thread: Vec::new(),
        }
    }
}

impl Default for ThreadSection {
    fn default() -> ThreadSection {
        ThreadSection {
            core: -1,
            wait: Wait::Auto,
            feeds: Vec::new(),
        }
    }
}

/// Where an error is: a key of the section, or of one of its threads.
#[derive(Debug, PartialEq)]
struct Wrong {
    thread: Option<usize>,
    key: &'static str,
    message: String,
}

impl DaemonSection {
    /// The feed threads: as said, or one with every feed.
    pub fn threads(&self, feeds: &[FeedConfig]) -> Vec<ThreadSection> {
        if !self.thread.is_empty() {
            return self.thread.clone();
        }
        vec![ThreadSection {
            feeds: feeds.iter().map(|feed| feed.name().to_string()).collect(),
            ..ThreadSection::default()
        }]
    }

    /// Where consolidated books are with so many feed threads.
    pub fn super_books_place(&self, threads: usize) -> SuperBooksPlace {
        match self.super_books {
            SuperBooksPlace::Auto if threads <= 1 => SuperBooksPlace::Inline,
            SuperBooksPlace::Auto => SuperBooksPlace::Thread,
            said => said,
        }
    }

    /// How the thread of consolidated books waits, beside so many feed threads: it spins where each of them
    /// has a core, and one is left to everybody else.
    pub fn super_books_wait(threads: usize) -> Waiting {
        Wait::Auto.choose(threads + 2)
    }

    /// Why consolidated books are where they are with so many feed threads, for the log.
    pub fn super_books_reason(&self, threads: usize) -> String {
        let waiting = DaemonSection::super_books_wait(threads);
        match (self.super_books, self.super_books_place(threads)) {
            (SuperBooksPlace::Auto, SuperBooksPlace::Inline) => {
                "auto: there is one feed thread, so that nothing has to be handed over".to_owned()
            }
            (SuperBooksPlace::Auto, _) => format!("auto: there are {threads} feed threads; it {waiting}"),
            (_, SuperBooksPlace::Thread) => format!("as configured; it {waiting}"),
            _ => "as configured".to_owned(),
        }
    }

    /// What to do about a thread of consolidated books that sleeps where it could be sooner; `None` where
    /// there is nothing to say.
    pub fn super_books_warning(&self, threads: usize) -> Option<String> {
        let sleeps = DaemonSection::super_books_wait(threads).strategy == WaitStrategy::Poll;
        let is_apart = self.super_books_place(threads) == SuperBooksPlace::Thread;
        (is_apart && sleeps).then(|| {
            let remedy = match threads {
                0 | 1 => "say super_books = \"auto\" or \"inline\"",
                _ => "take every feed on one thread with super_books = \"auto\"",
            };
            format!(
                "the thread of consolidated books has no core to spin on and sleeps 50 µs at a time: consolidated books are so much later than books; {remedy}, or use a machine with {} cores",
                threads + 2
            )
        })
    }

    /// The folder: of the command line, of the environment, of the file.
    pub fn folder(&self, option: Option<&Path>) -> PathBuf {
        places::writer_folder(option, Some(&self.folder))
    }

    fn check(&self, feeds: &[FeedConfig]) -> Result<(), Wrong> {
        let wrong = |key, message: String| Wrong {
            thread: None,
            key,
            message,
        };
        let ranges = [
            ("book_levels", self.book_levels, 1..=64),
            ("books", self.books, 1..=1 << 22),
            ("super_slots", self.super_slots, 1..=1 << 20),
            ("super_shares", self.super_shares, 1..=64),
            ("ring_records", self.ring_records, 1 << 4..=1 << 26),
            ("receive_batch", self.receive_batch, 1..=BATCH_MAX),
            ("rehearse_us", self.rehearse_us, 0..=1_000_000),
            ("latency_every_s", self.latency_every_s, 1..=86_400),
            ("silence_ms", self.silence_ms, 100..=86_400_000),
        ];
        for (key, value, range) in ranges {
            if !range.contains(&value) {
                let message = format!(
                    "daemon.{key} = {value} is outside {}..={}",
                    range.start(),
                    range.end()
                );
                return Err(wrong(key, message));
            }
        }
        if !self.ring_records.is_power_of_two() {
            let message = format!("daemon.ring_records = {} is no power of two", self.ring_records);
            return Err(wrong("ring_records", message));
        }
        if self.programs.len() > PROGRAMS_MAX {
            let message = format!(
                "daemon.programs names {} folders: the page shows {PROGRAMS_MAX} at most",
                self.programs.len()
            );
            return Err(wrong("programs", message));
        }
        if self.metrics.is_none() && !self.programs.is_empty() {
            let message = "daemon.programs is for the page, which is served where daemon.metrics says, and it says nothing";
            return Err(wrong("programs", message.into()));
        }
        for pattern in &self.symbols {
            if pattern.is_empty() || pattern.len() > 23 || !pattern.bytes().all(|b| b.is_ascii_graphic()) {
                let message = format!(
                    "daemon.symbols: {pattern:?} is no pattern of 1 to 23 printable characters (`*` and `?` stand for others)"
                );
                return Err(wrong("symbols", message));
            }
        }
        self.check_threads(feeds)?;
        check_core(self.super_core).map_err(|m| wrong("super_core", format!("daemon.super_core: {m}")))?;
        if self.super_books == SuperBooksPlace::Inline && self.thread.len() > 1 {
            let message = format!(
                "daemon.super_books = \"inline\" is for one feed thread, and there are {}: say \"thread\"",
                self.thread.len()
            );
            return Err(wrong("super_books", message));
        }
        Ok(())
    }

    fn check_threads(&self, feeds: &[FeedConfig]) -> Result<(), Wrong> {
        let mut taken: HashMap<&str, usize> = HashMap::new();
        for (index, thread) in self.thread.iter().enumerate() {
            let wrong = |key, message: String| Wrong {
                thread: Some(index),
                key,
                message,
            };
            if thread.feeds.is_empty() {
                return Err(wrong("feeds", "a daemon.thread without feeds".into()));
            }
            check_core(thread.core).map_err(|m| wrong("core", m))?;
            for name in &thread.feeds {
                if !feeds.iter().any(|feed| feed.name() == name) {
                    let names: Vec<&str> = feeds.iter().map(FeedConfig::name).collect();
                    let message = format!("no feed has the name {name:?}; there are {}", names.join(", "));
                    return Err(wrong("feeds", message));
                }
                if let Some(other) = taken.insert(name, index) {
                    let message = format!("feed {name} is on thread {} already", other + 1);
                    return Err(wrong("feeds", message));
                }
            }
        }
        let left_out = feeds.iter().find(|feed| !taken.contains_key(feed.name()));
        match left_out {
            Some(feed) if !self.thread.is_empty() => Err(Wrong {
                thread: Some(self.thread.len() - 1),
                key: "feeds",
                message: format!("feed {} is on no thread", feed.name()),
            }),
            _ => Ok(()),
        }
    }
}

fn check_core(core: i32) -> Result<(), String> {
    let cores = Cores::count().usable();
    match usize::try_from(core) {
        Ok(core) if !cores.contains(&core) => Err(format!(
            "core {core} is not there; this process may run on {cores:?} (-1 leaves it to the scheduler)"
        )),
        _ => Ok(()),
    }
}

/// What concerns several feeds.
fn check_feeds(feeds: &[FeedConfig]) -> Result<(), Fault> {
    if feeds.len() > FEEDS_MAX {
        let message = format!("{} feeds; a daemon takes at most {FEEDS_MAX}", feeds.len());
        return Err(Fault::of_feed(FEEDS_MAX, "venue", message));
    }
    for (index, feed) in feeds.iter().enumerate() {
        if feed.consolidate == Some(true) && !feed.protocol().has_depth() {
            let message = format!(
                "feed {}: {} says the national best and no venue's own depth: consolidated books show it beside theirs, it is never a part of them",
                feed.name(),
                feed.protocol()
            );
            return Err(Fault::of_feed(index, "consolidate", message));
        }
        let twice = feeds[..index].iter().find(|other| {
            let same = |name: &str| other.channels.iter().any(|c| c.name == name);
            other.venue == feed.venue
                && other.is_consolidated()
                && feed.is_consolidated()
                && feed.channels.iter().any(|c| same(&c.name))
        });
        if let Some(other) = twice {
            let message = format!(
                "feeds {} and {} are both the book of {}: a consolidated book would count its orders twice; say consolidate = false for one of them",
                other.name(),
                feed.name(),
                feed.venue.name()
            );
            return Err(Fault::of_feed(index, "consolidate", message));
        }
    }
    Ok(())
}

/// Checks what concerns the daemon; the error begins with its line.
fn check_text(config: &DaemonConfig, text: &str) -> Result<(), String> {
    if config.feed.is_empty() {
        return Err("there is no [[feed]] in it".into());
    }
    check_feeds(&config.feed).map_err(|fault| fault.with_line(text))?;
    config
        .daemon
        .check(&config.feed)
        .map_err(|wrong| format!("line {}: {}", line_of(text, &wrong).unwrap_or(1), wrong.message))
}

type Keys = HashMap<String, Spanned<IgnoredAny>>;

#[derive(Deserialize)]
struct SpannedSection {
    daemon: Option<Spanned<Keys>>,
}

#[derive(Deserialize)]
struct SpannedThreads {
    daemon: Threads,
}

#[derive(Deserialize)]
struct Threads {
    #[serde(default)]
    thread: Vec<Spanned<Keys>>,
}

/// The line of the value that is wrong, or of the table that should have it; from 1.
fn line_of(text: &str, wrong: &Wrong) -> Option<usize> {
    let table = match wrong.thread {
        None => {
            tickwire_console::settings::read::<SpannedSection>(text)
                .ok()?
                .daemon?
        }
        Some(index) => {
            let file: SpannedThreads = tickwire_console::settings::read(text).ok()?;
            file.daemon.thread.into_iter().nth(index)?
        }
    };
    let value = table.get_ref().get(wrong.key);
    let span = value.map_or(table.span(), Spanned::span);
    Some(1 + text.get(..span.start)?.matches('\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEEDS: &str = r#"[[feed]]
venue = "bzx"
[[feed.channel]]
name = "1"
live = { a = "239.1.0.1:30001" }
[[feed]]
venue = "nasdaq"
[[feed.channel]]
name = "1"
live = { a = "239.1.0.2:30002" }
"#;

    fn check(more: &str) -> Result<DaemonConfig, String> {
        let text = format!("{FEEDS}{more}");
        let config: DaemonConfig = tickwire_console::settings::read(&text)?;
        check_text(&config, &text)?;
        Ok(config)
    }

    #[test]
    fn without_a_section_one_thread_takes_every_feed() {
        let config = check("").unwrap();
        let threads = config.daemon.threads(&config.feed);
        assert_eq!(threads.len(), 1);
        assert_eq!(threads[0].feeds, ["bzx", "nasdaq"]);
        assert_eq!(config.daemon.super_books_place(1), SuperBooksPlace::Inline);
        assert_eq!(config.daemon.super_books_place(2), SuperBooksPlace::Thread);
        let said = config.daemon.super_books_reason(1);
        assert!(said.contains("one feed thread"), "{said}");
        assert_eq!(config.daemon.super_books_warning(1), None);
        // No machine has a core for each of these.
        let (said, warning) = (
            config.daemon.super_books_reason(9_999),
            config.daemon.super_books_warning(9_999).expect("a warning"),
        );
        assert!(
            said.contains("sleeps in poll (auto: there is no core for each of 10001"),
            "{said}"
        );
        assert!(
            warning.contains("one thread") && warning.contains("10001 cores"),
            "{warning}"
        );
        assert_eq!(config.daemon.folder, places::default_folder());
        assert_eq!(config.daemon.folder(Some(Path::new("here"))), Path::new("here"));
    }

    #[test]
    fn every_key_is_read() {
        let config = check(
            r#"[daemon]
folder = "tw"
super_books = "thread"
super_core = 0
symbols = ["AAPL", "Z*"]
book_levels = 5
books = 100
super_slots = 50
super_shares = 8
ring_records = 1024
ring = "updates"
metrics = "127.0.0.1:9464"
programs = ["~/tickwire/trader", "/run/tickwire/fix"]
latency_files = "latency"
latency_every_s = 5
latency_of = "messages"
silence_ms = 2000
[[daemon.thread]]
core = 0
wait = "poll"
feeds = ["bzx"]
[[daemon.thread]]
feeds = ["nasdaq"]
"#,
        )
        .unwrap();
        let daemon = &config.daemon;
        assert_eq!(daemon.folder, Path::new("tw"));
        assert_eq!(daemon.super_books, SuperBooksPlace::Thread);
        assert_eq!(
            (daemon.book_levels, daemon.books, daemon.super_slots),
            (5, 100, 50)
        );
        assert!(daemon.ring.has_updates() && !daemon.ring.has_events());
        assert_eq!(daemon.metrics, Some("127.0.0.1:9464".parse().unwrap()));
        let programs = ["~/tickwire/trader", "/run/tickwire/fix"];
        assert_eq!(daemon.programs, programs.map(PathBuf::from));
        assert_eq!(daemon.latency_files.as_deref(), Some(Path::new("latency")));
        assert_eq!((daemon.latency_every_s, daemon.silence_ms), (5, 2_000));
        assert_eq!(daemon.latency_of, LatencyOf::Messages);
        assert_eq!(daemon.threads(&config.feed)[0].wait, Wait::Poll);
        // Printed with every default filled in, it reads back as the same.
        let again: DaemonConfig =
            tickwire_console::settings::read(&tickwire_console::settings::write(&config).unwrap()).unwrap();
        assert_eq!(again.daemon, config.daemon);
    }

    #[test]
    fn errors_name_the_line_and_the_way_out() {
        let cases = [
            ("[daemon]\nbook_levels = 65\n", "line 12", "outside 1..=64"),
            ("[daemon]\nring_records = 1000\n", "line 12", "power of two"),
            ("[daemon]\nsymbols = [\"\"]\n", "line 12", "no pattern"),
            (
                "[daemon]\nsuper_core = 4000\n",
                "line 12",
                "core 4000 is not there",
            ),
            ("[daemon]\nrings = 1\n", "line 12", "unknown field"),
            ("[daemon]\nmetrics = \"here\"\n", "line 12", "socket address"),
            (
                "[daemon]\nprograms = [\"/run/trader\"]\n",
                "line 12",
                "daemon.metrics",
            ),
            (
                "[[daemon.thread]]\nfeeds = [\"bzx\", \"iex\"]\n",
                "line 12",
                "there are bzx, nasdaq",
            ),
            (
                "[[daemon.thread]]\nfeeds = [\"bzx\"]\n",
                "line 12",
                "nasdaq is on no thread",
            ),
            (
                "[[daemon.thread]]\nfeeds = [\"bzx\"]\n[[daemon.thread]]\nfeeds = [\"bzx\"]\n",
                "line 14",
                "on thread 1 already",
            ),
            (
                "[daemon]\nsuper_books = \"inline\"\n[[daemon.thread]]\nfeeds = [\"bzx\"]\n[[daemon.thread]]\nfeeds = [\"nasdaq\"]\n",
                "line 12",
                "say \"thread\"",
            ),
        ];
        for (more, line, what) in cases {
            let said = check(more).unwrap_err();
            assert!(said.contains(line) && said.contains(what), "{more}: {said}");
        }
    }

    #[test]
    fn two_feeds_of_one_book_are_refused_and_a_sip_is_never_a_part() {
        let nyse = |more: &str| {
            format!(
                "[[feed]]\nname = \"one\"\nvenue = \"nyse\"\nprotocol = \"xdp\"\n[[feed.channel]]\nname = \"1\"\nlive = {{ a = \"239.3.0.1:1\" }}\n\
                 [[feed]]\nname = \"two\"\nvenue = \"nyse\"\nprotocol = \"openbook\"\n{more}[[feed.channel]]\nname = \"1\"\nlive = {{ a = \"239.3.0.2:1\" }}\n"
            )
        };
        let said = check(&nyse("")).unwrap_err();
        assert!(
            said.contains("both the book of nyse") && said.contains("line 1"),
            "{said}"
        );
        assert!(check(&nyse("consolidate = false\n")).is_ok());
        let sip = "[[feed]]\nvenue = \"cqs\"\nconsolidate = true\n[[feed.channel]]\nname = \"1\"\nlive = { a = \"239.3.0.3:1\" }\n";
        let said = check(sip).unwrap_err();
        assert!(
            said.contains("line 13") && said.contains("never a part"),
            "{said}"
        );
    }
}
