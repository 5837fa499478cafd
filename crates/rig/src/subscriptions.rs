//! Subscriptions that change in mid-session, at random, and what must hold whatever they are.

use std::collections::BTreeMap;

use tickwire_book::Books;
use tickwire_exchange::{Exchange, Listing};
use tickwire_feed::{Channel, FeedState, Pattern};
use tickwire_market::{BookState, EventSink, Level, Nanos, Side, Symbol};
use tickwire_testdata::Rng;

/// How subscriptions change during a day.
#[derive(Clone, Copy, Debug)]
pub struct Changes {
    /// The time from one change to the next, milliseconds; each change is of one symbol or of a pattern.
    pub every_ms: u64,
    /// The first so many instruments are wanted all the time.
    pub pinned: usize,
    /// A wanted book must be live this long after it was subscribed to, or after the feed was live again,
    /// milliseconds. `None`: the venue does not say when.
    pub right_within_ms: Option<u64>,
    /// Only patterns change, none of single symbols.
    pub patterns_only: bool,
    /// The channel counts by instrument what passes, also of those nobody wants, so that it is checked that
    /// none does.
    pub counts_passed: bool,
}

impl Default for Changes {
    fn default() -> Changes {
        Changes {
            every_ms: 4,
            pinned: 5,
            patterns_only: false,
            right_within_ms: Some(60),
            counts_passed: false,
        }
    }
}

/// What came of the changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Subscriptions.
    pub subscribed: u64,
    /// Unsubscriptions.
    pub unsubscribed: u64,
    /// How many of both were of patterns.
    pub patterns: u64,
    /// Wanted books that were compared in mid-session after they had been subscribed to, and were live and
    /// right.
    pub right: u64,
    /// Wanted books that were marked then.
    pub marked: u64,
}

/// Who is wanted now, and since when.
pub(crate) struct Script {
    changes: Changes,
    rng: Rng,
    due: Nanos,
    /// By symbol: when it was subscribed to last; `None`: it is not wanted. Those never touched are missing.
    touched: BTreeMap<Symbol, Option<Nanos>>,
    /// Of those not wanted: how many of their messages had passed when they were left.
    passed: BTreeMap<Symbol, u64>,
    /// When the feed was last anything but live.
    unsettled: Nanos,
    pub(crate) changed: Changed,
}

/// A sink that can be told who is wanted.
pub(crate) trait Guarded: EventSink {
    /// From now on nothing may be told of this instrument, or (`false`) it may.
    fn guard(&mut self, id: u32, is_refused: bool);
}

impl Script {
    pub(crate) fn new(changes: Changes, seed: u64, begins: Nanos) -> Script {
        Script {
            changes,
            rng: Rng::new(seed ^ 0x5EED),
            due: begins,
            touched: BTreeMap::new(),
            passed: BTreeMap::new(),
            unsettled: begins,
            changed: Changed::default(),
        }
    }

    /// Time has passed: changes what is due.
    pub(crate) fn step<C: Channel, S: Guarded>(
        &mut self,
        now: Nanos,
        listings: &[Listing],
        channel: &mut C,
        sink: &mut S,
    ) {
        if channel.state() != FeedState::Live {
            self.unsettled = now;
        }
        if now < self.due {
            return;
        }
        self.due = now.after(self.changes.every_ms * Nanos::MILLI);
        let free = &listings[self.changes.pinned.min(listings.len())..];
        let Some(listing) = free.get(self.rng.below(free.len().max(1) as u64) as usize) else {
            return;
        };
        match self.rng.below(if self.changes.patterns_only { 1 } else { 10 }) {
            // All whose names begin with the same letter, but for the pinned ones.
            0 => {
                let text = [listing.symbol.as_bytes()[0], b'*'];
                let wanted = self.rng.chance(1, 2);
                self.changed.patterns += 1;
                self.apply(now, &text, wanted, listings, channel, sink);
            }
            // Back and forth within a moment.
            1 => {
                for wanted in [false, true, false, true] {
                    self.apply(now, listing.symbol.as_bytes(), wanted, listings, channel, sink);
                }
            }
            _ => {
                let wanted = self.touched.get(&listing.symbol).is_some_and(Option::is_none);
                self.apply(now, listing.symbol.as_bytes(), wanted, listings, channel, sink);
            }
        }
    }

    fn apply<C: Channel, S: Guarded>(
        &mut self,
        now: Nanos,
        text: &[u8],
        wanted: bool,
        listings: &[Listing],
        channel: &mut C,
        sink: &mut S,
    ) {
        let pattern = Pattern::new(text).expect("a symbol is a pattern");
        let (pinned, free) = listings.split_at(self.changes.pinned.min(listings.len()));
        if pinned.iter().any(|l| pattern.matches(&l.symbol)) {
            return;
        }
        let named = || free.iter().filter(|l| pattern.matches(&l.symbol));
        let ids: Vec<u32> = named()
            .filter_map(|l| channel.find(&l.symbol))
            .map(|id| id.0)
            .collect();
        if wanted {
            ids.iter().for_each(|&id| sink.guard(id, false));
            channel.subscribe(now, &pattern, sink).expect("there is room");
            self.changed.subscribed += 1;
        } else {
            channel.unsubscribe(now, &pattern, sink).expect("there is room");
            ids.iter().for_each(|&id| sink.guard(id, true));
            self.changed.unsubscribed += 1;
        }
        for listing in named() {
            let before = self.touched.get(&listing.symbol).copied();
            let since = match before {
                Some(Some(since)) if wanted => Some(since),
                None if wanted => continue,
                _ => wanted.then_some(now),
            };
            self.touched.insert(listing.symbol, since);
            if let Some(id) = channel
                .find(&listing.symbol)
                .filter(|_| !wanted && !matches!(before, Some(None)))
            {
                self.passed
                    .insert(listing.symbol, channel.seen_of_instrument(id).passed());
            }
        }
    }

    /// Whether a symbol is wanted.
    pub(crate) fn wants(&self, symbol: &Symbol) -> bool {
        self.touched.get(symbol).is_none_or(Option::is_some)
    }

    /// A moment at which everything published has been received: what is live is right, what must be live is,
    /// and what nobody wants is not.
    pub(crate) fn compare<C: Channel>(
        &mut self,
        seed: u64,
        now: Nanos,
        listings: &[Listing],
        exchange: &Exchange,
        channel: &C,
        books: &Books,
    ) {
        let publisher = &exchange.published_channels()[0].publisher;
        for listing in listings {
            let symbol = listing.symbol;
            let Some(book) = channel.find(&symbol).and_then(|id| books.book(id)) else {
                continue;
            };
            let at = || format!("seed {seed}, {symbol} at {} us", now.since(crate::START) / 1000);
            if !self.wants(&symbol) {
                // One that was no more wanted before the venue named it has never been heard of.
                if !self.passed.contains_key(&symbol) {
                    continue;
                }
                assert_ne!(book.state(), BookState::Live, "{}: nobody wants it", at());
                let id = channel.find(&symbol).expect("it has a book");
                if let (true, Some(&passed)) = (self.changes.counts_passed, self.passed.get(&symbol)) {
                    let now = channel.seen_of_instrument(id).passed();
                    assert_eq!(now, passed, "{}: nobody wants its messages", at());
                }
                assert!(
                    Side::BOTH.iter().all(|&side| book.levels(side).next().is_none()),
                    "{}",
                    at()
                );
                continue;
            }
            let since = self.touched.get(&symbol).copied().flatten();
            if book.state() != BookState::Live {
                self.changed.marked += 1;
                let since =
                    since.unwrap_or_else(|| panic!("{}: nothing has happened to it, but it is stale", at()));
                let waited = now.since(since.max(self.unsettled));
                let within = self.changes.right_within_ms.map(|ms| ms * Nanos::MILLI);
                assert!(
                    within.is_none_or(|within| waited <= within),
                    "{}: subscribed to {} us ago and not right",
                    at(),
                    waited / 1000
                );
                continue;
            }
            self.changed.right += u64::from(since.is_some());
            for side in Side::BOTH {
                let theirs = publisher.levels(exchange.engine(), listing.id, side);
                let ours: Vec<Level> = book.levels(side).collect();
                assert_eq!(ours, theirs, "{} {side:?}", at());
            }
        }
    }
}
