//! What the views show, as plain values: one reading of the region. Renderings take these and nothing else,
//! so that each is tested without a daemon.

use std::collections::BTreeMap;

use tickwire_control::latency_file::{HOOK, KERNEL, WIRE};
use tickwire_market::{Counters, Level, Price, Side, TradingStatus};

/// How the daemon does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// It fills its books and opens its feeds.
    Starting,
    Ready,
    /// It ended as it should.
    Ended,
    /// Its process is gone, without a word.
    Dead,
    /// Its process lives, but has not said so for a second: ten heartbeats.
    Silent,
}

impl Condition {
    pub(crate) const ALL: [Condition; 5] = [
        Condition::Starting,
        Condition::Ready,
        Condition::Ended,
        Condition::Dead,
        Condition::Silent,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Condition::Starting => "starting",
            Condition::Ready => "ready",
            Condition::Ended => "ended",
            Condition::Dead => "dead",
            Condition::Silent => "silent",
        }
    }
}

/// How much of something there is room for, and how much of it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Room {
    pub used: u64,
    pub of: u64,
}

/// The process that writes the region.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Daemon {
    pub folder: String,
    pub pid: u64,
    /// When it started, in nanoseconds since the epoch; a restarted one has another.
    pub generation: u64,
    pub condition: Condition,
    /// Age of the last heartbeat in nanoseconds.
    pub heartbeat_age_ns: u64,
    /// Size of the region in bytes.
    pub memory_bytes: u64,
    pub books: Room,
    pub super_books: Room,
    /// Per feed thread: records ever written to its ring, and how many stay readable.
    pub rings: Vec<Room>,
}

/// How a source, or a book of it, does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum State {
    Live,
    Building,
    Stale,
    /// The venue's session is over.
    Ended,
}

impl State {
    pub(crate) const ALL: [State; 4] = [State::Building, State::Live, State::Stale, State::Ended];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            State::Live => "live",
            State::Building => "building",
            State::Stale => "stale",
            State::Ended => "ended",
        }
    }
}

/// One channel of a feed.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Source {
    /// `bzx 3`: feed and channel.
    pub name: String,
    pub feed: String,
    pub venue: &'static str,
    pub protocol: String,
    pub state: State,
    pub next_seq: u64,
    /// When its last packet was received, nanoseconds since the epoch; 0 before the first.
    pub last_packet_ns: u64,
    /// Updates of its books.
    pub updates: u64,
    /// Books that are not shown because there was no room for them.
    pub refused: u64,
    pub counters: Counters,
    /// Packet in memory to book visible.
    pub latency: Distribution,
    /// Packet in memory to consolidated book visible.
    pub super_latency: Distribution,
    /// How packets came to memory, by [`ARRIVALS`]; empty what was not measured.
    pub arrivals: [Distribution; 3],
    pub kinds: Vec<Kind>,
}

/// The parts of a packet's way to memory: from the wire to the hook of the driver, from there to memory, and
/// from the kernel's receive time to memory.
pub(crate) const ARRIVALS: [&str; 3] = [WIRE, HOOK, KERNEL];

/// One message type of a source.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Kind {
    /// As the venue writes it.
    pub name: String,
    pub seen: u64,
    /// Of the seen: dropped before decoding, nobody had subscribed.
    pub filtered: u64,
    pub latency: Distribution,
}

/// One reading of the region.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Reading {
    /// When it was taken, nanoseconds since the epoch.
    pub now_ns: u64,
    pub daemon: Daemon,
    pub sources: Vec<Source>,
}

/// Packets that are further from the present than this, an hour, were recorded.
const RECORDED_NS: u64 = 3_600_000_000_000;

impl Reading {
    /// Whether the packets are recorded ones: their stamps are of the recording, not of now.
    pub(crate) fn is_recorded(&self) -> bool {
        let newest = self.newest_packet_ns();
        newest > 0 && newest.abs_diff(self.now_ns) > RECORDED_NS
    }

    /// The present in the time of receive stamps: for recorded packets the time of the newest one.
    pub(crate) fn stamp_now_ns(&self) -> u64 {
        if self.is_recorded() {
            self.newest_packet_ns()
        } else {
            self.now_ns
        }
    }

    fn newest_packet_ns(&self) -> u64 {
        self.sources
            .iter()
            .map(|source| source.last_packet_ns)
            .max()
            .unwrap_or(0)
    }

    /// The feeds, in the order of their first sources.
    pub(crate) fn feeds(&self) -> Vec<&str> {
        let mut feeds: Vec<&str> = Vec::new();
        for source in &self.sources {
            if !feeds.contains(&source.feed.as_str()) {
                feeds.push(&source.feed);
            }
        }
        feeds
    }

    /// The sources of a feed.
    pub(crate) fn of_feed<'a>(&'a self, feed: &'a str) -> impl Iterator<Item = &'a Source> {
        self.sources.iter().filter(move |source| source.feed == feed)
    }
}

/// What happened between two readings.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    seconds: f64,
    sources: BTreeMap<String, (Counters, u64, Distribution)>,
}

/// What a source did in an interval.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Done {
    pub counters: Counters,
    pub updates: u64,
    pub latency: Distribution,
}

impl Interval {
    /// `None` when the readings are not of one daemon, or not one after the other.
    pub(crate) fn between(before: &Reading, after: &Reading) -> Option<Interval> {
        let ns = after.now_ns.checked_sub(before.now_ns).filter(|&ns| ns > 0)?;
        if before.daemon.generation != after.daemon.generation {
            return None;
        }
        let old: BTreeMap<&str, &Source> = before.sources.iter().map(|s| (s.name.as_str(), s)).collect();
        let sources = after
            .sources
            .iter()
            .filter_map(|new| {
                let old = old.get(new.name.as_str())?;
                let updates = new.updates.saturating_sub(old.updates);
                let latency = new.latency.since(&old.latency);
                Some((
                    new.name.clone(),
                    (since(&new.counters, &old.counters), updates, latency),
                ))
            })
            .collect();
        Some(Interval {
            seconds: ns as f64 / 1e9,
            sources,
        })
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// What a source did; `None` for one that was not there before.
    pub(crate) fn of(&self, source: &str) -> Option<Done> {
        let (counters, updates, latency) = self.sources.get(source)?;
        Some(Done {
            counters: counters.clone(),
            updates: *updates,
            latency: latency.clone(),
        })
    }

    /// What several sources did together.
    pub(crate) fn of_all<'a>(&self, sources: impl Iterator<Item = &'a Source>) -> Done {
        let mut all = Done {
            counters: Counters::default(),
            updates: 0,
            latency: Distribution::default(),
        };
        for (counters, updates, latency) in sources.filter_map(|s| self.sources.get(&s.name)) {
            all.counters.merge(counters);
            all.updates += updates;
            all.latency.add(latency);
        }
        all
    }

    pub(crate) fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }
}

/// What was counted since; a counter that went back (it cannot) counts as nothing.
fn since(new: &Counters, old: &Counters) -> Counters {
    let mut done = Counters::default();
    new.iter()
        .for_each(|(counter, value)| done.add(counter, value.saturating_sub(old.get(counter))));
    done
}

/// Latencies in nanoseconds, counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Distribution {
    /// Highest value of a bucket (inclusive) → how many lie in it.
    pub buckets: BTreeMap<u64, u64>,
    pub sum_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
}

impl Distribution {
    pub(crate) fn count(&self) -> u64 {
        self.buckets.values().sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Mean in nanoseconds, exact from the sum; 0 of none.
    pub(crate) fn mean_ns(&self) -> u64 {
        match self.count() {
            0 => 0,
            count => self.sum_ns / count,
        }
    }

    /// The least bucket that a share (0 to 1) of all does not exceed, never beyond what was seen; 0 of none.
    pub(crate) fn at_quantile(&self, share: f64) -> u64 {
        let rank = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut so_far = 0;
        for (&highest, &count) in &self.buckets {
            so_far += count;
            if so_far >= rank {
                return highest.clamp(self.min_ns, self.max_ns);
            }
        }
        0
    }

    /// How many are not above `ns`, which must be the highest value of some possible bucket for this to be
    /// exact.
    pub(crate) fn up_to(&self, ns: u64) -> u64 {
        self.buckets.range(..=ns).map(|(_, count)| count).sum()
    }

    pub(crate) fn add(&mut self, other: &Distribution) {
        if other.is_empty() {
            return;
        }
        self.min_ns = if self.is_empty() {
            other.min_ns
        } else {
            self.min_ns.min(other.min_ns)
        };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.wrapping_add(other.sum_ns);
        for (&highest, &count) in &other.buckets {
            *self.buckets.entry(highest).or_default() += count;
        }
    }

    /// What came after `old`, an earlier reading of the same. Least and most are those of the buckets.
    pub(crate) fn since(&self, old: &Distribution) -> Distribution {
        let mut buckets = self.buckets.clone();
        for (highest, count) in &old.buckets {
            if let Some(now) = buckets.get_mut(highest) {
                *now = now.saturating_sub(*count);
            }
        }
        buckets.retain(|_, count| *count > 0);
        let edge = |found: Option<(&u64, &u64)>| found.map_or(0, |(&highest, _)| highest);
        Distribution {
            sum_ns: self.sum_ns.wrapping_sub(old.sum_ns),
            min_ns: edge(buckets.first_key_value()).min(self.max_ns),
            max_ns: edge(buckets.last_key_value()).min(self.max_ns),
            buckets,
        }
    }

    /// One latency more, in a bucket of its own value.
    #[cfg(test)]
    pub(crate) fn record(&mut self, ns: u64) {
        self.add(&Distribution {
            buckets: BTreeMap::from([(ns, 1)]),
            sum_ns: ns,
            min_ns: ns,
            max_ns: ns,
        });
    }
}

/// A trade.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Trade {
    pub price: Price,
    pub qty: u64,
    pub venue_ts: u64,
}

/// What a venue says about an auction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Auction {
    /// The venue's letter for it; NUL for none.
    pub kind: u8,
    pub reference: Price,
    pub near: Price,
    pub far: Price,
    pub paired: u64,
    pub imbalance: u64,
    pub side: Option<Side>,
}

/// All of one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Total {
    pub levels: u64,
    pub qty: u64,
    pub orders: u64,
}

/// A source's book of a symbol.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Book {
    pub symbol: String,
    /// Which source.
    pub source: String,
    pub feed: String,
    pub venue: &'static str,
    pub state: State,
    pub status: TradingStatus,
    pub seq: u64,
    pub venue_ts: u64,
    pub recv_ts: u64,
    /// Best first, indexed by [`Side`].
    pub levels: [Vec<Level>; 2],
    pub totals: [Total; 2],
    pub last: Option<Trade>,
    pub volume: u64,
    pub trades: u64,
    pub auction: Option<Auction>,
}

/// A venue's part of a merged level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    pub price: Price,
    pub qty: u64,
    pub orders: u32,
    pub feed: String,
}

/// A best price and who is at it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Best {
    pub price: Price,
    pub qty: u64,
    pub feeds: Vec<String>,
}

/// How best bid and best ask lie to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Crossing {
    Apart,
    Locked,
    Crossed,
}

/// One side of the SIP's national best.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NationalBest {
    pub price: Price,
    pub qty: u64,
    /// The participant's letter.
    pub participant: u8,
}

/// The SIP's national best beside ours, indexed by [`Side`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct National {
    pub best: [Option<NationalBest>; 2],
    pub venue_ts: u64,
    pub recv_ts: u64,
    /// Ours less the SIP's, where both have one.
    pub difference: [Option<Price>; 2],
    /// Since when they have differed, nanoseconds since the epoch; 0 while they agree.
    pub differs_since: [u64; 2],
}

/// A symbol's book over all feeds.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct SuperBook {
    pub symbol: String,
    /// Feeds whose book is part of it.
    pub contributing: Vec<String>,
    /// Feeds that should be part of it and are stale.
    pub stale: Vec<String>,
    pub crossing: Crossing,
    pub best: [Option<Best>; 2],
    pub national: Option<National>,
    pub last: Option<Trade>,
    pub volume: u64,
    pub trades: u64,
    /// Best price first, indexed by [`Side`].
    pub shares: [Vec<Share>; 2],
}

/// Everything that is known of a symbol.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct SymbolView {
    pub merged: Option<SuperBook>,
    pub books: Vec<Book>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_sorting() {
        let mut all: Vec<u64> = (1..=1_000).map(|i| i * i % 7_919).collect();
        let mut distribution = Distribution::default();
        all.iter().for_each(|&ns| distribution.record(ns));
        all.sort_unstable();
        for (share, rank) in [(0.5, 499), (0.99, 989), (0.999, 998), (1.0, 999), (0.0, 0)] {
            assert_eq!(distribution.at_quantile(share), all[rank], "{share}");
        }
        assert_eq!(distribution.mean_ns(), all.iter().sum::<u64>() / 1_000);
        assert_eq!(distribution.up_to(all[499]), 500);
        assert_eq!(Distribution::default().at_quantile(0.5), 0);
        assert_eq!(Distribution::default().mean_ns(), 0);
    }

    #[test]
    fn what_came_after_a_reading_is_what_was_recorded_after_it() {
        let (mut before, mut after) = (Distribution::default(), Distribution::default());
        for ns in [5, 70, 70, 900] {
            before.record(ns);
            after.record(ns);
        }
        let mut expected = Distribution::default();
        for ns in [70, 800] {
            after.record(ns);
            expected.record(ns);
        }
        assert_eq!(after.since(&before), expected);
        assert!(after.since(&after).is_empty());
        before.add(&expected);
        assert_eq!(before, after);
    }
}
