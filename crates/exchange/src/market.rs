//! A market of several venues: one [`Exchange`] each, with books and order flow of its own, and consolidated
//! feeds that hear of all of them.
//!
//! Venues list the same instruments under the same numbers and follow one price path
//! ([`Reference`](crate::Reference)), so that their books agree about prices and differ in what is offered
//! there. A SIP's channels are published by the first venue, made with
//! [`SipModel::is_told`](crate::SipModel::is_told): day and definitions come from there, and whenever a book
//! of any venue has changed, it looks at that venue's book and publishes the participant's new quote, and the
//! national best over all engines. A venue that is no participant of the plan is not seen by it.

use alloc::vec::Vec;

use tickwire_market::{Nanos, Venue};
use tickwire_persist::{Bytes, Damaged, Persist, StateReader};

use crate::history::History;
use crate::order::StateHash;
use crate::venue::{DayPhase, Exchange};

/// See the module's description.
pub struct Market {
    venues: Vec<(Venue, Exchange)>,
}

impl Market {
    /// A market of these venues; at least one. A single one is just that, and tells nobody of its books.
    pub fn new(mut venues: Vec<(Venue, Exchange)>) -> Market {
        assert!(!venues.is_empty(), "a market has a venue");
        if venues.len() > 1 {
            venues
                .iter_mut()
                .for_each(|(_, exchange)| exchange.follow_changes());
        }
        Market { venues }
    }

    /// The venues in order.
    pub fn venues(&self) -> impl Iterator<Item = (Venue, &Exchange)> {
        self.venues.iter().map(|(venue, exchange)| (*venue, exchange))
    }

    /// A venue by its place in the order.
    pub fn exchange(&self, venue: usize) -> &Exchange {
        &self.venues[venue].1
    }

    /// A venue by its place in the order.
    pub fn exchange_mut(&mut self, venue: usize) -> &mut Exchange {
        &mut self.venues[venue].1
    }

    /// Likewise; `None` if there are not so many.
    pub fn get_mut(&mut self, venue: usize) -> Option<&mut Exchange> {
        self.venues.get_mut(venue).map(|(_, exchange)| exchange)
    }

    /// The first venue alone.
    pub fn into_first(mut self) -> Exchange {
        self.venues.swap_remove(0).1
    }

    /// Begins the day everywhere.
    pub fn open(&mut self, now: Nanos) {
        self.venues
            .iter_mut()
            .for_each(|(_, exchange)| exchange.open(now));
    }

    /// Ends the day everywhere.
    pub fn stop(&mut self, now: Nanos) {
        self.venues
            .iter_mut()
            .for_each(|(_, exchange)| exchange.stop(now));
    }

    /// Goes on after a restart: order entry connections are gone, and the order flow does not catch up.
    pub fn resume(&mut self, now: Nanos) {
        self.venues
            .iter_mut()
            .for_each(|(_, exchange)| exchange.resume(now));
    }

    /// A hash over the venues' books, ledgers and sequence numbers: equal after equal inputs.
    pub fn state_hash(&self) -> u64 {
        let mut hash = StateHash::default();
        self.venues
            .iter()
            .for_each(|(_, exchange)| hash.word(exchange.state_hash()));
        hash.value()
    }

    /// Does what is due at every venue and tells the SIPs of it; true when more is due already. The first
    /// venue's close is everybody's.
    pub fn on_time(&mut self, now: Nanos) -> bool {
        let mut more = false;
        for at in 0..self.venues.len() {
            more |= self.venues[at].1.on_time(now);
            self.relay(at, now);
        }
        if self.phase() == DayPhase::Closing {
            self.stop(now);
        }
        more
    }

    /// Where the first venue's day stands.
    pub fn phase(&self) -> DayPhase {
        self.venues[0].1.phase()
    }

    /// Whether everything was sent everywhere.
    pub fn is_over(&self) -> bool {
        self.venues.iter().all(|(_, exchange)| exchange.is_over())
    }

    /// When [`Market::on_time`] or a channel has something to do next.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.venues
            .iter()
            .filter_map(|(_, exchange)| exchange.poll_timeout())
            .min()
    }

    /// How many messages were published, over all channels of all venues.
    pub fn total(&self) -> u64 {
        self.venues.iter().map(|(_, exchange)| exchange.total()).sum()
    }

    /// The histories of all channels.
    pub fn histories_mut(&mut self) -> impl Iterator<Item = &mut (dyn History + 'static)> {
        let exchanges = self.venues.iter_mut();
        exchanges.flat_map(|(_, exchange)| exchange.histories_mut())
    }

    /// Tells the SIPs, which are the first venue's, what changed at one.
    fn relay(&mut self, at: usize, now: Nanos) {
        let Some(((own, first), others)) = self.venues.split_first_mut() else {
            return;
        };
        match at.checked_sub(1).and_then(|at| others.get_mut(at)) {
            None => {
                while let Some(instrument) = first.poll_changed() {
                    first.hear(now, *own, instrument, None);
                }
            }
            Some((venue, exchange)) => {
                while let Some(instrument) = exchange.poll_changed() {
                    first.hear(now, *venue, instrument, Some(exchange.engine()));
                }
            }
        }
    }
}

impl Persist for Market {
    fn save(&self, out: &mut Bytes) {
        self.venues.iter().for_each(|(_, exchange)| exchange.save(out));
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        self.venues
            .iter_mut()
            .try_for_each(|(_, exchange)| exchange.load(from))
    }
}
