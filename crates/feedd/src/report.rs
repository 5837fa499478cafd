//! What the daemon says to people: on its terminal, to the service manager, and in latency files.

use std::io::Write as _;
use std::sync::atomic::AtomicU64;

use tickwire_console::failure::Failure;
use tickwire_console::warn;
use tickwire_lab::Table;
use tickwire_market::Counter;
use tickwire_runtime::capture::FrameCounts;
use tickwire_shm::Reader;

use crate::config::SuperBooksPlace;
use crate::daemon::Daemon;
use crate::{Notice, latency};

/// Refusals that are said by name; all are counted.
const NAMED_MAX: u32 = 10;
/// What is said of a channel's recovery when a counter has grown.
pub(crate) const RECOVERY_SAID: [(Counter, &str); 3] = [
    (
        Counter::RequestsHeld,
        "requests wait because a quota of the venue is used up; see the feed's recovery keys in docs/feed-daemon.md",
    ),
    (
        Counter::ServerChanges,
        "a recovery server was silent, refused or answered what cannot be right; the other one is asked now",
    ),
    (
        Counter::RecoveriesFailed,
        "not recovered by recovery.deadline_ms: its books stay marked stale, and it is tried again after recovery.retry_ms",
    ),
];

impl<'d, 'r: 'd> Daemon<'d, 'r> {
    pub(crate) fn say(&self, notice: &Notice, named: &mut u32) {
        let name = |source: u16| self.plan.identities[usize::from(source)].name.as_str();
        let text = match notice {
            Notice::Ready | Notice::Played(_) => return,
            Notice::Receiving(text) => return eprintln!("{text}"),
            Notice::Warning(text) => text.clone(),
            Notice::NoBookSlot(source, symbol) => format!(
                "no room to show the book of {symbol} on {}: daemon.books = {} is too few",
                name(*source),
                self.config.daemon.books
            ),
            Notice::NoSuperSlot(symbol) => format!(
                "no room to show the consolidated book of {symbol}: daemon.super_slots = {} is too few",
                self.config.daemon.super_slots
            ),
        };
        if matches!(notice, Notice::NoBookSlot(..) | Notice::NoSuperSlot(_)) {
            *named += 1;
            match *named {
                NAMED_MAX => warn(format_args!("further books without room are counted, not named")),
                n if n > NAMED_MAX => return,
                _ => {}
            }
        }
        warn(format_args!("{text}"));
    }

    /// Says what recovery could not do since the last time.
    pub(crate) fn say_recovery(&self, said: &mut [[u64; RECOVERY_SAID.len()]]) {
        let Some(reader) = self.reader() else { return };
        for (source, said) in (0..).zip(said) {
            let Ok(counters) = reader.counters(source) else {
                continue;
            };
            let name = &self.plan.identities[usize::from(source)].name;
            for ((counter, text), said) in RECOVERY_SAID.iter().zip(said) {
                let count = counters.get(*counter);
                if count > *said {
                    warn(format_args!("{name}: {text} ({count} times so far)"));
                }
                *said = count;
            }
        }
    }

    /// What is said once everything is ready.
    pub(crate) fn opening(&self) -> String {
        let sections = self.config.daemon.threads(&self.config.feed);
        let mut table = Table::new(
            "feeds",
            &["", "protocol", "channels", "thread", "core", "consolidated books"],
        );
        for (at, section) in sections.iter().enumerate() {
            for feed in self
                .config
                .feed
                .iter()
                .filter(|f| section.feeds.iter().any(|n| n == f.name()))
            {
                let part = match (
                    self.plan.place,
                    feed.protocol().has_depth(),
                    feed.is_consolidated(),
                ) {
                    (SuperBooksPlace::Off, _, _) | (_, true, false) => "-",
                    (_, false, _) => "national best",
                    (_, true, true) => "share",
                };
                table = table.row([
                    feed.name().to_string(),
                    feed.protocol().to_string(),
                    feed.channels.len().to_string(),
                    (at + 1).to_string(),
                    core_name(section.core),
                    part.to_string(),
                ]);
            }
        }
        let mut text = table.to_text(tickwire_console::terminal::width());
        text += &match self.plan.place {
            SuperBooksPlace::Thread => format!(
                "consolidated books: on a thread of their own, core {} ({})\n",
                core_name(self.config.daemon.super_core),
                self.config.daemon.super_books_reason(sections.len())
            ),
            SuperBooksPlace::Off => "consolidated books: none\n".to_string(),
            SuperBooksPlace::Auto | SuperBooksPlace::Inline => {
                format!(
                    "consolidated books: on the feed thread ({})\n",
                    self.config.daemon.super_books_reason(sections.len())
                )
            }
        };
        text += &format!(
            "folder: {} ({} MiB)\nmetrics: {}\n",
            self.folder.display(),
            self.region.layout().bytes() >> 20,
            self.config
                .daemon
                .metrics
                .map_or("none".to_string(), |address| format!("http://{address}/metrics"))
        );
        text
    }

    pub(crate) fn reader(&self) -> Option<Reader<'r, AtomicU64>> {
        Reader::attach(self.words).ok()
    }

    /// Channels by state, as a manager shows it.
    pub(crate) fn status_line(&self) -> String {
        let counts = self.state_counts();
        format!(
            "{} live, {} stale, {} building, {} ended",
            counts[1], counts[2], counts[0], counts[3]
        )
    }

    /// Channels building, live, stale, ended.
    pub(crate) fn state_counts(&self) -> [u32; 4] {
        let mut counts = [0; 4];
        if let Some(reader) = self.reader() {
            for source in 0..self.plan.identities.len() as u16 {
                counts[reader.source_state(source) as usize] += 1;
            }
        }
        counts
    }

    /// What `--exit` leaves: every channel as it was when the last recording had been played.
    pub(crate) fn print_summary(&self, frames: Option<&FrameCounts>) {
        let Some(reader) = self.reader() else { return };
        let columns = [
            "",
            "state",
            "next",
            "packets",
            "messages",
            "gaps",
            "messages lost",
            "books",
        ];
        let (mut table, mut packets, mut books) = (Table::new("played", &columns), 0, 0);
        for source in reader.sources() {
            let counters = reader.counters(source.number).ok();
            let count = |counter: Counter| {
                counters
                    .as_ref()
                    .map_or("".into(), |c| c.get(counter).to_string())
            };
            packets += source.totals.packets;
            books += source.totals.books;
            table = table.row([
                source.name.clone(),
                format!("{:?}", source.state),
                source.next_seq.to_string(),
                source.totals.packets.to_string(),
                count(Counter::Messages),
                count(Counter::Gaps),
                count(Counter::MessagesLost),
                source.totals.books.to_string(),
            ]);
        }
        let frames = frames.filter(|counts| counts.total() > 0 || !counts.mended().is_empty());
        let text = format!(
            "{}{packets} packets into {books} books; channels: {}\n{}",
            table.to_text(tickwire_console::terminal::width()),
            self.status_line(),
            frames.map(|counts| format!("{counts}\n")).unwrap_or_default()
        );
        // Whoever does not read it has seen enough.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }

    pub(crate) fn write_latencies(&self) -> Result<(), Failure> {
        let (Some(folder), Some(reader)) = (&self.config.daemon.latency_files, self.reader()) else {
            return Ok(());
        };
        let failed = |e: std::io::Error| {
            Failure::system(format!(
                "cannot write latency files into {}: {e}; see daemon.latency_files",
                folder.display()
            ))
        };
        tickwire_runtime::files::create_folders(folder).map_err(failed)?;
        let latency_of = self.config.daemon.latency_of;
        for file in latency::files(&reader, latency_of, self.clock.now()) {
            file.write(folder).map_err(failed)?;
        }
        Ok(())
    }
}

fn core_name(core: i32) -> String {
    match core {
        ..0 => "any".into(),
        core => core.to_string(),
    }
}
