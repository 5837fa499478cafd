//! What a configuration makes of the daemon: which channel is which source, on which thread, and how large
//! the region is.

use tickwire_book::super_books::{SOURCES_MAX, Source};
use tickwire_book::{Relay, SuperConfig};
use tickwire_console::failure::Failure;
use tickwire_feed::{DayUse, Pattern};
use tickwire_market::Nanos;
use tickwire_shm::{RegionConfig, SourceIdentity};

use crate::config::{DaemonConfig, RingContent, SuperBooksPlace};
use crate::quota::{self, QuotaFile};
use crate::thread::SourcePlan;
use tickwire_venues::receiver::Backend;

/// Histograms set aside for the kinds of message of a channel; a channel with more shares those of others.
const KINDS_PER_SOURCE: u32 = 40;
/// Shares set aside for a consolidated book on average.
const SHARES_PER_SUPER: u32 = 256;

/// Which channel is which source, on which thread, and how large the region is.
pub(crate) struct Plan {
    /// By feed thread.
    pub(crate) threads: Vec<Vec<SourcePlan>>,
    pub(crate) identities: Vec<SourceIdentity>,
    pub(crate) region: RegionConfig,
    pub(crate) supers: SuperConfig,
    pub(crate) place: SuperBooksPlace,
    pub(crate) symbols: Vec<Pattern>,
}

impl Plan {
    pub(crate) fn new(config: &DaemonConfig) -> Result<Plan, Failure> {
        let daemon = &config.daemon;
        let sections = daemon.threads(&config.feed);
        let has_rings = daemon.ring != RingContent::Off;
        let mut plan = Plan {
            threads: vec![Vec::new(); sections.len()],
            identities: Vec::new(),
            region: RegionConfig::default(),
            supers: SuperConfig::default(),
            place: daemon.super_books_place(sections.len()),
            symbols: daemon
                .symbols
                .iter()
                .map(|text| text.parse())
                .collect::<Result<_, _>>()
                .map_err(|e| Failure::config(format!("daemon.symbols: {e}")))?,
        };
        let mut sources = Vec::new();
        for (number, feed) in config.feed.iter().enumerate() {
            tickwire_venues::wiring::check_published(feed.protocol())?;
            let Some(thread) = sections
                .iter()
                .position(|t| t.feeds.iter().any(|f| f == feed.name()))
            else {
                continue;
            };
            let is_national = !feed.protocol().has_depth();
            for channel in 0..feed.channels.len() {
                let source = plan.identities.len() as u16;
                plan.identities.push(SourceIdentity {
                    name: feed.channel_name(channel),
                    feed_name: feed.name().into(),
                    protocol: feed.protocol().name().into(),
                    feed: number as u8,
                    venue: Some(feed.venue),
                    ring: has_rings.then_some(thread as u32),
                });
                sources.push(Source {
                    feed: number as u8,
                    is_national,
                });
                plan.threads[thread].push(SourcePlan {
                    source,
                    feed: feed.clone(),
                    feed_number: number as u8,
                    channel,
                    silence_ns: u64::from(feed.silence_ms.unwrap_or(daemon.silence_ms)) * Nanos::MILLI,
                    quota: quota::Cell::default(),
                    relay: match (plan.place, is_national, feed.is_consolidated()) {
                        (SuperBooksPlace::Off, _, _) | (_, false, false) => None,
                        (_, true, _) => Some(Relay::National),
                        (_, false, true) => Some(Relay::Levels),
                    },
                });
            }
        }
        if plan.identities.len() > SOURCES_MAX {
            return Err(Failure::config(format!(
                "{} channels; a daemon takes at most {SOURCES_MAX}",
                plan.identities.len()
            )));
        }
        let count = plan.identities.len() as u32;
        let supers = match plan.place {
            SuperBooksPlace::Off => 0,
            _ => daemon.super_slots,
        };
        plan.region = RegionConfig {
            feeds: config.feed.len() as u32,
            sources: count,
            histograms: count
                * (2 + u32::from(daemon.kernel_stamps) + hook_histograms(config) + KINDS_PER_SOURCE),
            books: daemon.books,
            book_levels: daemon.book_levels,
            supers,
            super_shares: daemon.super_shares,
            rings: if has_rings { sections.len() as u32 } else { 0 },
            ring_records: daemon.ring_records,
        };
        plan.supers = SuperConfig {
            sources,
            symbols: supers,
            members: daemon.books.max(1),
            shares: supers.saturating_mul(SHARES_PER_SUPER),
        };
        Ok(plan)
    }
}

/// Histograms of a channel whose lines may come from the hook of a network driver.
fn hook_histograms(config: &DaemonConfig) -> u32 {
    if times_hook(config) { 2 } else { 0 }
}

/// Whether lines may come from the hook of a network driver.
pub(crate) fn times_hook(config: &DaemonConfig) -> bool {
    config.receiver.backend != Backend::Socket
}

impl Plan {
    /// What every channel used of its day's quotas, by name.
    pub(crate) fn day_uses(&self) -> impl Iterator<Item = (&str, DayUse)> + Clone {
        let sources = self.threads.iter().flatten();
        sources.map(|s| {
            (
                self.identities[usize::from(s.source)].name.as_str(),
                s.quota.load(),
            )
        })
    }

    /// Gives every channel what an earlier run used.
    pub(crate) fn restore_quotas(&self, file: &QuotaFile) {
        for source in self.threads.iter().flatten() {
            let name = &self.identities[usize::from(source.source)].name;
            source.quota.store(file.used(name));
        }
    }
}
