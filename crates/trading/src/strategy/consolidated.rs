//! Consolidated books of the symbols that strategies subscribed to: one over all feeds that have them.
//!
//! The host owns them beside the books, applies every event to both by [`Consolidated::apply`], and hands
//! them to strategies with [`Markets`]. What an event changed waits until the venue's group is over, and
//! until every strategy was told.
//!
//! [`Markets`]: super::Markets

#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;

use tickwire_book::super_books::{Presence, Source, SuperError, SuperFlags};
use tickwire_book::{
    Applied, Books, Relay, SourceId, SuperBooks, SuperConfig, SuperId, SuperRef, SuperSink, SuperUpdate,
};
use tickwire_market::{
    BookState, BookUpdate, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, Price, Side,
    Symbol, Venue,
};

use super::Outcome;

/// Shares of one side of a symbol at one feed for which there is room, on average: 24 bytes each.
const SHARES: u32 = 4_096;
/// Shares that there is room for at most: 800 MiB.
const SHARES_MAX: u32 = 1 << 25;
/// As many of a symbol at a feed as rehearsals need, and some more.
const SHARES_REHEARSED: u32 = 64;
/// No place.
const NONE: u32 = u32::MAX;

/// What has changed in a consolidated book.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SuperChange {
    /// Which one. Walk it by [`super::Context::super_book`].
    pub id: SuperId,
    /// Of what.
    pub symbol: Symbol,
    /// The feed whose message it was, by its place.
    pub feed: usize,
    /// Everything that changed since it was told last.
    pub changed: SuperFlags,
}

/// See the module.
pub struct Consolidated {
    supers: SuperBooks,
    venues: Vec<Venue>,
    bits: u32,
    relays: Vec<Relay>,
    /// By number: whether the instrument is in a consolidated book.
    is_member: Vec<bool>,
    pending: Pending,
}

impl core::fmt::Debug for Consolidated {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let feeds = self.relays.len();
        write!(
            f,
            "consolidated books of {} symbols over {feeds} feeds",
            self.supers.iter().count()
        )
    }
}

/// What strategies were not told of yet.
struct Pending {
    feeds: usize,
    changes: Vec<SuperChange>,
    /// By consolidated book and feed: its place there.
    places: Vec<u32>,
}

impl SuperSink for Pending {
    #[inline]
    fn on_super(&mut self, book: &SuperRef<'_>, update: &SuperUpdate) {
        let feed = usize::from(update.source.0);
        let Some(place) = self.places.get_mut(update.id.0 as usize * self.feeds + feed) else {
            return;
        };
        if let Some(known) = self.changes.get_mut(*place as usize) {
            known.changed = known.changed.with(update.changed);
            return;
        }
        *place = self.changes.len() as u32;
        self.changes.push(SuperChange {
            id: update.id,
            symbol: *book.symbol(),
            feed,
            changed: update.changed,
        });
    }
}

/// A feed's levels on their way into the consolidated books.
struct Into<'a> {
    supers: &'a mut SuperBooks,
    pending: &'a mut Pending,
    source: SourceId,
}

impl EventSink for Into<'_> {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        // What cannot be applied is counted by the books, and makes the feed's part stale.
        let _ = self.supers.apply(self.source, event, self.pending);
    }
}

impl Consolidated {
    /// Consolidated books of so many symbols over feeds of these venues, by place; instruments of a feed have
    /// numbers below two to the power of `bits`. Two feeds of one venue show one market: the first that names
    /// a symbol is the one that counts. All memory is taken here.
    ///
    /// # Panics
    /// With more than 32 venues, or more than 256 feeds.
    pub fn new(venues: &[Venue], bits: u32, symbols: u32) -> Consolidated {
        Consolidated::with_room(venues, bits, symbols, 2 * SHARES)
    }

    /// The same with room for so many shares of an instrument.
    fn with_room(venues: &[Venue], bits: u32, symbols: u32, shares: u32) -> Consolidated {
        let bits = bits.min(24);
        let feeds = venues.len().max(1);
        let mut names: Vec<Venue> = Vec::new();
        let sources = venues.iter().map(|venue| {
            let feed = names.iter().position(|name| name == venue);
            let feed = feed.unwrap_or_else(|| {
                names.push(*venue);
                names.len() - 1
            });
            Source {
                feed: feed as u8,
                is_national: is_national(*venue),
            }
        });
        let members = symbols.saturating_mul(feeds as u32);
        let config = SuperConfig {
            sources: sources.collect(),
            symbols,
            members,
            shares: members.saturating_mul(shares).min(SHARES_MAX),
        };
        let relay = |venue: &Venue| match is_national(*venue) {
            true => Relay::National,
            false => Relay::Levels,
        };
        Consolidated {
            supers: SuperBooks::new(config),
            venues: venues.to_vec(),
            bits,
            relays: venues.iter().map(relay).collect(),
            is_member: vec![false; feeds << bits],
            pending: Pending {
                feeds,
                changes: Vec::with_capacity(members as usize),
                places: vec![NONE; members as usize],
            },
        }
    }

    /// For rehearsals: over the same feeds, with room for one symbol of few levels.
    #[must_use]
    pub fn for_rehearsals(&self) -> Consolidated {
        Consolidated::with_room(&self.venues, self.bits, 1, SHARES_REHEARSED)
    }

    /// Whether an instrument of a feed is in a consolidated book.
    pub fn has(&self, feed: usize, instrument: InstrumentId) -> bool {
        let index = (feed << self.bits) | instrument.index();
        self.is_member.get(index).copied().unwrap_or_default()
    }

    /// A feed has this instrument, and a strategy wants its consolidated book. The feed's own book is taken
    /// in as it stands.
    ///
    /// # Errors
    /// [`SuperError::Taken`] where another feed of the same venue has the symbol in already;
    /// [`SuperError::Full`] where there is no room.
    pub fn define(
        &mut self,
        now: Nanos,
        feed: usize,
        (instrument, symbol): (InstrumentId, &Symbol),
        books: &Books,
    ) -> Result<SuperId, SuperError> {
        let source = SourceId(feed as u16);
        let id = self
            .supers
            .define(source, instrument, symbol, &mut self.pending)?;
        let index = (feed << self.bits) | instrument.index();
        if let Some(is_member) = self.is_member.get_mut(index)
            && core::mem::replace(is_member, true)
        {
            return Ok(id);
        }
        let event = MarketEvent {
            recv_ts: now,
            ..MarketEvent::default()
        };
        let is_live = books.feed_state() == BookState::Live;
        let mut into = self.into(feed);
        if is_live && into.supers.source(source) != Some(Presence::Live) {
            into.on_event(&MarketEvent {
                kind: EventKind::Recovered,
                instrument: InstrumentId::WHOLE_FEED,
                ..event
            });
        }
        books.relay_book(&event, instrument, &mut into);
        Ok(id)
    }

    fn into(&mut self, feed: usize) -> Into<'_> {
        Into {
            supers: &mut self.supers,
            pending: &mut self.pending,
            source: SourceId(feed as u16),
        }
    }

    /// Applies an event to the books of its feed and, where its instrument is in one, to the consolidated
    /// book. The books should be
    /// [`tickwire_book::BooksConfig::tracked`]: without it every change is the whole book's.
    pub fn apply(&mut self, feed: usize, books: &mut Books, event: &MarketEvent) -> Outcome {
        let hit = Outcome::hit(books, event);
        let applied = books.apply(event);
        let (said, outcome) = (applied.outcome(), Outcome::told(applied, event, hit));
        let is_whole = event.instrument == InstrumentId::WHOLE_FEED;
        if is_whole || self.has(feed, event.instrument) {
            let relay = self.relays.get(feed).copied().unwrap_or_default();
            books.relay(event, said, relay, &mut self.into(feed));
        }
        outcome
    }

    /// Every strategy was told of what this event changed: it is forgotten, if its venue's group is over.
    #[inline]
    pub fn told(&mut self, feed: usize, event: &MarketEvent, is_grouped: bool) {
        if self.pending.changes.is_empty() {
            return;
        }
        let is_whole = event.instrument == InstrumentId::WHOLE_FEED
            && matches!(
                event.kind,
                EventKind::Clear | EventKind::Gap | EventKind::Recovered
            );
        if !is_grouped || is_whole || event.flags.has(EventFlags::LAST) {
            self.forget(feed);
        }
    }

    /// Forgets what a feed has changed.
    pub fn forget(&mut self, feed: usize) {
        let Pending {
            feeds,
            changes,
            places,
        } = &mut self.pending;
        let mut kept = 0;
        for at in 0..changes.len() {
            let change = changes[at];
            let place = &mut places[change.id.0 as usize * *feeds + change.feed];
            if change.feed == feed {
                *place = NONE;
            } else {
                *place = kept as u32;
                changes[kept] = change;
                kept += 1;
            }
        }
        changes.truncate(kept);
    }

    /// What a feed has changed since strategies were told.
    #[inline]
    pub(super) fn pending(&self) -> &[SuperChange] {
        &self.pending.changes
    }

    /// The books.
    pub fn books(&self) -> &SuperBooks {
        &self.supers
    }
}

/// Whether a venue's feed says what others show: the national best of a consolidated feed (SIP).
fn is_national(venue: Venue) -> bool {
    matches!(venue, Venue::Cqs | Venue::Uqdf)
}

impl Outcome {
    /// What an execution hits, before it is applied.
    #[inline(always)]
    pub(super) fn hit(books: &Books, event: &MarketEvent) -> Option<(Price, Side)> {
        match event.kind == EventKind::Execute {
            true => books.order(event.order_id).map(|order| (order.price, order.side)),
            false => None,
        }
    }

    /// What applying it came to.
    #[inline(always)]
    pub(super) fn told(applied: Applied<'_>, event: &MarketEvent, hit: Option<(Price, Side)>) -> Outcome {
        let Applied::Update(update) = applied else {
            return Outcome::Other;
        };
        let price = event.flags.has(EventFlags::AT_OTHER_PRICE).then_some(event.price);
        let update = BookUpdate {
            recv_ts: event.recv_ts,
            ..*update
        };
        Outcome::Update(update, hit.map(|(at, side)| (price.unwrap_or(at), side)))
    }
}
