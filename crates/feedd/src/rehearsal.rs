//! Rehearsals: while a feed thread that never sleeps waits for packets, one of a twin of a channel goes the
//! way to shared memory that the channel's next one will go, so that the code of the way, and what the
//! processor has learned of its branches, lies in the caches.
//!
//! What is rehearsed goes into books, slots and a ring of its own, in memory that nobody else has: for as
//! long as it takes these stand in the place of the channel's own.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc::sync_channel;

use tickwire_book::super_books::Source;
use tickwire_book::{Books, BooksConfig, Depth, Relay, SuperConfig};
use tickwire_market::{InstrumentId, Nanos, Price, Symbol, Venue};
use tickwire_shm::{Identity, Region, RegionConfig, SourceIdentity};

use super::channel_books::{ChannelBooks, ThreadShared};
use super::supers::{SuperPublisher, Supers};

/// The instrument that is rehearsed, and what its orders offer: every channel can have it.
const INSTRUMENT: InstrumentId = InstrumentId(1);
const OFFER: Price = Price::from_4dp(100_0000);
/// Room for the few orders of a rehearsed book.
const ORDERS: u32 = 64;
/// Histograms of a source: its books', its consolidated books', and those of its kinds of messages.
const HISTOGRAMS: u32 = 8;

/// What a channel's rehearsed books have to be like.
#[derive(Clone, Copy)]
pub struct Rehearsed {
    /// The channel's venue.
    pub venue: Venue,
    /// The kind of its books.
    pub depth: Depth,
    /// What the channel is to consolidated books.
    pub relay: Option<Relay>,
}

/// Memory of one's own, formatted as the daemon's region is: for rehearsals, benchmarks and tests.
pub struct Room {
    words: Vec<AtomicU64>,
    config: RegionConfig,
}

impl Room {
    /// For so many channels, with slots as large as those of a region of this configuration.
    pub fn new(channels: usize, like: &RegionConfig) -> Room {
        let channels = channels as u32;
        Room::of(RegionConfig {
            feeds: 1,
            sources: channels,
            histograms: HISTOGRAMS * channels,
            books: channels,
            supers: channels,
            rings: 1,
            ring_records: 64,
            ..*like
        })
    }

    /// For all that a configuration says.
    ///
    /// # Panics
    /// Where it says sizes that a region cannot have.
    pub fn of(config: RegionConfig) -> Room {
        let layout = config.layout().expect("sizes that a region can have");
        Room {
            words: (0..layout.words).map(|_| AtomicU64::new(0)).collect(),
            config,
        }
    }

    /// Its words, for readers.
    pub fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    /// Everything as nobody has written it yet.
    pub fn region(&self) -> Region<'_, AtomicU64> {
        let identity = Identity {
            generation: Nanos(1),
            pid: std::process::id(),
        };
        Region::format(&self.words, &self.config, identity).expect("it has the size of its layout")
    }
}

/// What channels of a thread have while they rehearse.
pub struct Rehearsal<'r> {
    pub(crate) shared: ThreadShared<'r>,
    /// By channel.
    pub(crate) channels: Vec<ChannelBooks<'r>>,
}

impl<'r> Rehearsal<'r> {
    /// Beside what the thread has, in a [`Room::region`] for as many channels.
    pub fn new(
        thread: &ThreadShared<'_>,
        region: Region<'r, AtomicU64>,
        channels: &[Rehearsed],
    ) -> Rehearsal<'r> {
        let rows: Vec<_> = (0..)
            .zip(channels)
            .map(|(number, channel)| {
                let identity = SourceIdentity {
                    name: "rehearsed".into(),
                    feed_name: "rehearsed".into(),
                    protocol: "rehearsed".into(),
                    feed: 0,
                    venue: Some(channel.venue),
                    ring: Some(0),
                };
                region.source(number, &identity)
            })
            .collect();
        // Nobody hears of a rehearsed book.
        let (notices, _) = sync_channel(1);
        let supers = match &thread.supers {
            Supers::Off | Supers::Behind(_) => Supers::Off,
            Supers::Inline(_) => {
                // A feed is national or it is not.
                let source = |channel: &Rehearsed| {
                    let is_national = channel.relay == Some(Relay::National);
                    Source {
                        feed: is_national.into(),
                        is_national,
                    }
                };
                let latencies: Vec<_> = rows.iter().map(|row| row.super_latency()).collect();
                let config = SuperConfig {
                    sources: channels.iter().map(source).collect(),
                    symbols: channels.len() as u32,
                    members: channels.len() as u32,
                    shares: ORDERS * 2 * channels.len() as u32,
                };
                let publisher =
                    SuperPublisher::new(config, region, &latencies, thread.clock.clone(), notices.clone());
                Supers::Inline(Box::new(publisher))
            }
        };
        let mut shared = ThreadShared {
            ring: thread.ring.as_ref().map(|_| region.ring(0)),
            content: thread.content,
            latency_of: thread.latency_of,
            supers,
            clock: thread.clock.clone(),
            notices,
        };
        let mut books_of = |(number, (channel, row)): (usize, (&Rehearsed, _))| {
            let books = Books::new(BooksConfig {
                venue: channel.venue,
                depth: channel.depth,
                instruments: INSTRUMENT.0 + 1,
                orders: ORDERS,
                levels: ORDERS,
                tracked: true,
                ..BooksConfig::default()
            });
            let mut books = ChannelBooks::keeping(ORDERS, region, row, books, channel.relay);
            let symbol = Symbol::new(format!("R{number}").as_bytes()).unwrap_or_default();
            books.show_alone(INSTRUMENT, symbol, &mut shared);
            books
        };
        let channels = channels.iter().zip(rows).enumerate().map(&mut books_of).collect();
        Rehearsal { shared, channels }
    }

    /// Of which instrument packets are rehearsed, an offer at which price.
    pub(crate) fn wanted() -> (InstrumentId, Price) {
        (INSTRUMENT, OFFER)
    }
}

#[cfg(test)]
mod tests;
