//! From the shared memory of a running daemon to what the views show. The only place that reads the region.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tickwire_market::{MessageType, Side, Symbol, TypeForm};
use tickwire_runtime::clock::wall;
use tickwire_runtime::shared::{Attachment, Followed, SharedError, WriterHealth, monotonic};
use tickwire_shm::{AttachError, BookCopy, Histogram, SourceState, SuperCopy, Touch};

use super::model::*;
use tickwire_console::failure::Failure;
use tickwire_venues::protocol::Protocol;

/// How much of the statistics to read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Detail {
    /// States and counters.
    Counters,
    /// Latencies of sources too.
    Latencies,
    /// Message types with theirs too.
    Kinds,
}

/// Keeps attached to the daemon of a folder, whichever process that is just now.
#[derive(Debug)]
pub(crate) struct Watch {
    folder: PathBuf,
    held: Option<Attachment>,
}

/// Why there is nothing to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Absence {
    /// No daemon was started here.
    NoDaemon(String),
    /// One is about to be ready.
    Starting(String),
    /// Something is there and cannot be read.
    Unreadable(String),
}

impl Absence {
    pub(crate) fn sentence(&self) -> &str {
        match self {
            Absence::NoDaemon(says) | Absence::Starting(says) | Absence::Unreadable(says) => says,
        }
    }

    pub(crate) fn failure(&self) -> Failure {
        match self {
            Absence::NoDaemon(says) | Absence::Starting(says) => Failure::peer_lost(says.as_str()),
            Absence::Unreadable(says) => Failure::system(says.as_str()),
        }
    }
}

impl From<SharedError> for Absence {
    fn from(error: SharedError) -> Absence {
        let says = error.to_string();
        match error {
            SharedError::NoWriter { .. } => Absence::NoDaemon(says),
            SharedError::Attach {
                source: AttachError::NotReady,
                ..
            } => Absence::Starting(says),
            _ => Absence::Unreadable(says),
        }
    }
}

impl Watch {
    pub(crate) fn new(folder: &Path) -> Watch {
        Watch {
            folder: folder.to_owned(),
            held: None,
        }
    }

    /// The region as it is now: attaches where that has not been possible before, and follows a daemon that
    /// was restarted.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn look(&mut self) -> Result<Region<'_>, Absence> {
        if self.held.is_none() {
            self.held = Some(Attachment::attach_of(
                &self.folder,
                tickwire_control::client::owners(),
            )?);
        }
        let held = self.held.as_mut().expect("attached above");
        let health = match held.follow() {
            Ok(Followed::Same(health)) => health,
            Ok(Followed::Replaced) => held.health(),
            // A new one that is not ready yet: until it is, the old one's last word.
            Err(_) => held.health(),
        };
        // No view is without counters, and those of another table would have the wrong names.
        if let Err(other) = held.reader().counters(0) {
            return Err(Absence::Unreadable(other.to_string()));
        }
        Ok(Region {
            folder: &self.folder,
            held,
            health,
        })
    }
}

/// Where a symbol's books lie: searching all slots of a large region for every picture would cost more than
/// the picture.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Of which region, and when.
    searched: Option<(u64, Instant)>,
    /// Slots with their sources.
    books: Vec<(u32, u16)>,
    merged: Option<u32>,
}

/// How soon a book that a venue begins is found.
const SEARCH_EVERY: Duration = Duration::from_secs(2);

/// A region that can be read.
#[derive(Debug)]
pub(crate) struct Region<'a> {
    folder: &'a Path,
    held: &'a Attachment,
    health: WriterHealth,
}

impl Region<'_> {
    fn condition(&self) -> Condition {
        match self.health {
            WriterHealth::Alive => Condition::Ready,
            WriterHealth::Silent { .. } => Condition::Silent,
            WriterHealth::Ended => Condition::Ended,
            WriterHealth::Dead => Condition::Dead,
        }
    }

    /// What a state comes to when nobody writes any more.
    fn believe(&self, state: State) -> State {
        match self.health {
            WriterHealth::Alive => state,
            WriterHealth::Silent { .. } | WriterHealth::Dead => State::Stale,
            WriterHealth::Ended => State::Ended,
        }
    }

    /// A reading of daemon and sources.
    pub(crate) fn reading(&self, detail: Detail) -> Reading {
        let reader = self.held.reader();
        let layout = reader.layout();
        let daemon = Daemon {
            folder: self.folder.display().to_string(),
            pid: reader.pid().into(),
            generation: reader.generation().0,
            condition: self.condition(),
            heartbeat_age_ns: monotonic().since(reader.heartbeat()),
            memory_bytes: layout.bytes() as u64,
            books: Room {
                used: reader.books_used().into(),
                of: layout.books.count.into(),
            },
            super_books: Room {
                used: reader.supers_used().into(),
                of: layout.supers.count.into(),
            },
            rings: (0..layout.rings.count)
                .map(|ring| Room {
                    used: reader.ring_written(ring),
                    of: layout.config.ring_records.into(),
                })
                .collect(),
        };
        Reading {
            // Ages are of the clock that stamps are of, whatever the system's clock was set to since.
            now_ns: match reader.stamp_epoch() {
                Some(epoch) => monotonic().0.saturating_add(epoch),
                None => now_ns(),
            },
            daemon,
            sources: reader
                .sources()
                .map(|source| self.source(&source, detail))
                .collect(),
        }
    }

    fn source(&self, source: &tickwire_shm::Source, detail: Detail) -> Source {
        let reader = self.held.reader();
        let histogram = |index: Option<u32>| -> Distribution {
            let found = index
                .filter(|_| detail >= Detail::Latencies)
                .and_then(|index| reader.histogram(index));
            found.as_ref().map_or_else(Distribution::default, distribution)
        };
        let kinds = match detail {
            Detail::Kinds => reader
                .kinds(source.number)
                .map(|kind| Kind {
                    name: kind_name(&source.protocol, kind.kind),
                    seen: kind.seen,
                    filtered: kind.filtered,
                    latency: histogram(kind.latency),
                })
                .collect(),
            _ => Vec::new(),
        };
        Source {
            name: source.name.clone(),
            feed: source.feed_name.clone(),
            venue: source.venue.map_or("unknown", |venue| venue.name()),
            protocol: source.protocol.clone(),
            state: self.believe(match source.state {
                SourceState::Building => State::Building,
                SourceState::Live => State::Live,
                SourceState::Stale => State::Stale,
                SourceState::Ended => State::Ended,
            }),
            next_seq: source.next_seq.0,
            last_packet_ns: source.last_packet.0,
            updates: source.totals.updates,
            refused: source.totals.refused,
            // `Watch::look` lets no other table through.
            counters: reader.counters(source.number).unwrap_or_default(),
            latency: histogram(source.latency),
            super_latency: histogram(source.super_latency),
            arrivals: [source.wire_latency, source.hook_latency, source.kernel_latency].map(histogram),
            kinds,
        }
    }

    /// Everything there is of a symbol; `None` when nobody has a book of it. `places` is of this symbol.
    pub(crate) fn symbol(&self, symbol: Symbol, places: &mut Places) -> Option<SymbolView> {
        self.find(symbol, places);
        let reader = self.held.reader();
        let sources: BTreeMap<u16, tickwire_shm::Source> = reader.sources().map(|s| (s.number, s)).collect();
        let mut copy = BookCopy::default();
        let mut books = Vec::new();
        for &(slot, source) in &places.books {
            let Some(source) = sources.get(&source) else {
                continue;
            };
            // A book that its writer died in the middle of cannot be read whole, ever again; the page says
            // who is dead.
            if reader.read_book(slot, &mut copy).is_ok() {
                books.push(self.book(&copy, source, symbol));
            }
        }
        let feeds: BTreeMap<u8, String> = sources.into_values().map(|s| (s.feed, s.feed_name)).collect();
        let mut merged = SuperCopy::default();
        let merged = places
            .merged
            .filter(|&slot| reader.read_super(slot, &mut merged).is_ok())
            .map(|_| self.super_book(&merged, &feeds, symbol));
        (merged.is_some() || !books.is_empty()).then_some(SymbolView { merged, books })
    }

    /// Looks for a symbol's slots, if that was long ago or in another region.
    fn find(&self, symbol: Symbol, places: &mut Places) {
        let reader = self.held.reader();
        let generation = reader.generation().0;
        let is_known = |(of, at): (u64, Instant)| of == generation && at.elapsed() < SEARCH_EVERY;
        if !places.searched.is_some_and(is_known) {
            *places = Places {
                searched: Some((generation, Instant::now())),
                books: reader
                    .find(symbol)
                    .map(|(slot, book)| (slot, book.source))
                    .collect(),
                merged: reader.find_super(symbol),
            };
        }
    }

    fn book(&self, copy: &BookCopy, source: &tickwire_shm::Source, symbol: Symbol) -> Book {
        let state = match (source.state, copy.state) {
            (SourceState::Ended, _) => State::Ended,
            (_, tickwire_market::BookState::Building) => State::Building,
            (_, tickwire_market::BookState::Live) => State::Live,
            (_, tickwire_market::BookState::Stale) => State::Stale,
        };
        let auction = copy.auction;
        Book {
            symbol: symbol.to_string(),
            source: source.name.clone(),
            feed: source.feed_name.clone(),
            venue: source.venue.map_or("unknown", |venue| venue.name()),
            state: self.believe(state),
            status: copy.status,
            seq: copy.seq.0,
            venue_ts: copy.venue_ts.0,
            recv_ts: copy.recv_ts.0,
            levels: Side::BOTH.map(|side| copy.side(side).to_vec()),
            totals: [0, 1].map(|side| Total {
                levels: copy.levels[side].into(),
                qty: copy.qty[side].0,
                orders: copy.orders[side].into(),
            }),
            last: trade(&copy.last),
            volume: copy.volume.0,
            trades: copy.trades,
            auction: (auction != Default::default()).then_some(Auction {
                kind: auction.kind,
                reference: auction.reference,
                near: auction.near,
                far: auction.far,
                paired: auction.paired.0,
                imbalance: auction.imbalance.0,
                side: auction.side,
            }),
        }
    }

    fn super_book(&self, copy: &SuperCopy, feeds: &BTreeMap<u8, String>, symbol: Symbol) -> SuperBook {
        let name = |feed: u8| {
            feeds
                .get(&feed)
                .cloned()
                .unwrap_or_else(|| format!("feed {feed}"))
        };
        let names = |mask: u32| {
            (0..32)
                .filter(|feed| mask >> feed & 1 == 1)
                .map(name)
                .collect::<Vec<_>>()
        };
        // Behind a writer that is gone nothing is live.
        let (in_it, left_out) = match self.health {
            WriterHealth::Silent { .. } | WriterHealth::Dead => (0, copy.feeds | copy.stale),
            WriterHealth::Alive | WriterHealth::Ended => (copy.feeds, copy.stale),
        };
        let national = copy.national.map(|best| {
            (!best.qty.is_zero()).then_some(NationalBest {
                price: best.price,
                qty: best.qty.0,
                participant: best.participant,
            })
        });
        let both = |side: usize| national[side].is_some() && !copy.ladders[side].qty.is_zero();
        let difference = [0, 1].map(|side| {
            let raw = copy.difference[side].price;
            both(side).then(|| tickwire_market::Price::from_raw(raw))
        });
        SuperBook {
            symbol: symbol.to_string(),
            contributing: names(in_it),
            stale: names(left_out),
            crossing: match copy.touch {
                Touch::Apart => Crossing::Apart,
                Touch::Locked => Crossing::Locked,
                Touch::Crossed => Crossing::Crossed,
            },
            best: copy.ladders.each_ref().map(|ladder| {
                (!ladder.qty.is_zero()).then(|| Best {
                    price: ladder.price,
                    qty: ladder.qty.0,
                    feeds: names(ladder.feeds),
                })
            }),
            national: national.iter().any(Option::is_some).then(|| National {
                best: national,
                venue_ts: copy.national_venue_ts.0,
                recv_ts: copy.national_recv_ts.0,
                difference,
                differs_since: copy.difference.map(|difference| difference.since.0),
            }),
            last: trade(&copy.last),
            volume: copy.volume.0,
            trades: copy.trades,
            shares: Side::BOTH.map(|side| {
                let shares = copy.side(side).iter();
                shares
                    .map(|share| Share {
                        price: share.price,
                        qty: share.qty.0,
                        orders: share.orders,
                        feed: name(share.feed),
                    })
                    .collect()
            }),
        }
    }

    /// Every symbol that there is a book of, in order.
    pub(crate) fn symbols(&self) -> Vec<String> {
        let mut symbols: Vec<String> = self
            .held
            .reader()
            .books()
            .map(|(_, book)| book.symbol.to_string())
            .collect();
        symbols.sort_unstable();
        symbols.dedup();
        symbols
    }
}

fn trade(last: &tickwire_shm::LastTrade) -> Option<Trade> {
    (!last.qty.is_zero()).then_some(Trade {
        price: last.price,
        qty: last.qty.0,
        venue_ts: last.venue_ts.0,
    })
}

fn distribution(histogram: &Histogram) -> Distribution {
    Distribution {
        buckets: histogram
            .buckets()
            .map(|(_, highest, count)| (highest, count))
            .collect(),
        sum_ns: histogram.sum,
        min_ns: histogram.min,
        max_ns: histogram.max,
    }
}

/// A message type as its venue writes it; in decimal where the protocol is not known here.
fn kind_name(protocol: &str, kind: u16) -> String {
    if protocol == crate::fix_steps::PROTOCOL
        && let Some(step) = crate::fix_steps::step_name(kind)
    {
        return step.into();
    }
    let known = Protocol::ALL.into_iter().find(|known| known.name() == protocol);
    let form = known.map_or(TypeForm::Decimal, Protocol::type_form);
    MessageType(kind).written(form).to_string()
}

/// The present, nanoseconds since the epoch: the clock of receive stamps.
pub(crate) fn now_ns() -> u64 {
    wall().0
}

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::super::ladder::{self, Choice};
    use super::super::top;
    use super::fixture::{Fixture, NOW};
    use super::*;

    /// The texts of a region, with the clock of the example.
    fn texts(watch: &mut Watch) -> (String, String) {
        let region = watch.look().unwrap();
        let mut reading = region.reading(Detail::Kinds);
        reading.now_ns = NOW;
        reading.daemon.heartbeat_age_ns = 12_000_000;
        reading.daemon.folder = "FOLDER".into();
        let view = region
            .symbol(Symbol::new(b"AAPL").unwrap(), &mut Places::default())
            .unwrap();
        let book = ladder::page(&view, &reading, &Choice::All, 10, usize::MAX).to_plain();
        let own = Choice::Feeds(vec!["nasdaq".into()]);
        let own = ladder::page(&view, &reading, &own, 10, usize::MAX).to_plain();
        let stats = top::stats(&reading, None, &Ok(vec!["*".into()]), usize::MAX).to_plain();
        (book + "\n" + &own, stats)
    }

    #[test]
    fn a_region_reads_back_as_it_was_written() {
        let mut fixture = Fixture::new("whole");
        fixture.write(NOW);
        let mut watch = Watch::new(&fixture.folder);
        fixture.beat();
        let (book, stats) = texts(&mut watch);
        golden::compare("region_book.txt", &book);
        golden::compare("region_stats.txt", &stats);
        assert_eq!(watch.look().unwrap().symbols(), ["AAPL", "MSFT"]);
        let none = Symbol::new(b"NONE").unwrap();
        let found = watch.look().unwrap().symbol(none, &mut Places::default());
        assert!(found.is_none());
    }

    #[test]
    fn absent_starting_dead_and_replaced_daemons_are_told_apart() {
        let mut fixture = Fixture::new("life");
        let mut watch = Watch::new(&fixture.folder);
        assert!(matches!(watch.look(), Err(Absence::NoDaemon(says)) if says.contains("tickwire feed")));
        fixture.start(NOW);
        assert!(matches!(watch.look(), Err(Absence::Starting(_))));
        fixture.write(NOW);
        fixture.beat();
        let mut condition = || {
            let region = watch.look().unwrap();
            let reading = region.reading(Detail::Counters);
            (
                reading.daemon.condition,
                reading.sources[0].state,
                reading.daemon.generation,
            )
        };
        assert_eq!(condition(), (Condition::Ready, State::Live, NOW));
        fixture.beat_of_long_ago();
        assert_eq!(condition(), (Condition::Silent, State::Stale, NOW));
        fixture.die();
        assert_eq!(condition(), (Condition::Dead, State::Stale, NOW));
        // Another one starts: until it is ready the old one's last word stays, marked.
        fixture.start(NOW + 1);
        assert_eq!(condition(), (Condition::Dead, State::Stale, NOW));
        fixture.write(NOW + 1);
        fixture.beat();
        assert_eq!(condition(), (Condition::Ready, State::Live, NOW + 1));
        fixture.end();
        assert_eq!(condition(), (Condition::Ended, State::Ended, NOW + 1));
        std::fs::remove_file(fixture.folder.join("region")).unwrap();
        std::fs::write(fixture.folder.join("region"), vec![1_u8; 8_192]).unwrap();
        let mut watch = Watch::new(&fixture.folder);
        assert!(matches!(watch.look(), Err(Absence::Unreadable(_))));
    }

    #[test]
    fn message_types_are_written_as_their_venues_write_them() {
        assert_eq!(kind_name("itch50", u16::from(b'A')), "A");
        assert_eq!(kind_name("pitch", 0x21), "0x21");
        assert_eq!(kind_name("uqdf", u16::from_be_bytes(*b"QF")), "QF");
        assert_eq!(kind_name("mdp3", 46), "46");
        assert_eq!(kind_name("of tomorrow", 7), "7");
    }
}

#[cfg(test)]
#[path = "../../../apps/tickwire/tests/common/region.rs"]
pub(crate) mod fixture;
