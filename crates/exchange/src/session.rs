//! A trading day in small steps: directory, status, first orders, continuous flow, close. Paced: each step tells how
//! many messages it published, and the next one is due accordingly.

use alloc::vec::Vec;

use crate::engine::Engine;
use crate::flow::{Flow, FlowConfig};
use crate::order::Listener;
use crate::pace::{Pace, PaceConfig};
use crate::tape::{Listing, VenueTime};
use crate::tape::{Milestone, Tape};
use tickwire_market::TradingStatus;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Directory { next: usize },
    Seeding { next: usize },
    Continuous,
    Closing { next: usize },
    Closed,
}

/// Drives engine and publisher through a day. Deterministic: the same configuration gives the same messages with the same
/// times, however often [`Session::advance`] is called, as long as nobody else trades.
pub(crate) struct Session {
    phase: Phase,
    pace: Pace,
    flow: Flow,
    listings: Vec<Listing>,
}

impl Session {
    pub(crate) fn new(flow: FlowConfig, pace: PaceConfig, listings: &[Listing], start: VenueTime) -> Session {
        Session {
            phase: Phase::Directory { next: 0 },
            pace: Pace::new(pace, flow.seed, start),
            flow: Flow::new(flow, listings),
            listings: listings.to_vec(),
        }
    }

    pub(crate) fn flow_mut(&mut self) -> &mut Flow {
        &mut self.flow
    }

    /// Nothing is due before `now`: what was not done meanwhile is not made up for.
    pub(crate) fn resume(&mut self, now: VenueTime) {
        self.pace.resume(now);
    }

    /// Whether client orders are taken: everything is seeded and nothing closed.
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Continuous
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// No more flow; the closing messages follow.
    pub(crate) fn close(&mut self) {
        if !matches!(self.phase, Phase::Closing { .. } | Phase::Closed) {
            self.phase = Phase::Closing { next: 0 };
        }
    }

    /// When the next step is due; `None` when closed.
    pub(crate) fn due(&self) -> Option<VenueTime> {
        match (self.phase, self.flow.next_reaction()) {
            (Phase::Closed, _) => None,
            (Phase::Continuous, Some(reaction)) => Some(self.pace.due().min(reaction)),
            _ => Some(self.pace.due()),
        }
    }

    /// Takes the steps due until `now`, at most `messages_max` messages or a few more. Whether any was taken.
    pub(crate) fn advance(
        &mut self,
        now: VenueTime,
        messages_max: u64,
        engine: &mut Engine,
        publisher: &mut impl Tape,
        other: &mut impl Listener,
    ) -> bool {
        let mut published = 0;
        let mut stepped = false;
        while published < messages_max {
            match self.due() {
                Some(due) if due <= now => published += self.step(due, engine, publisher, other),
                _ => break,
            }
            stepped = true;
        }
        stepped
    }

    /// Takes the next step, whatever the time; how many messages it published. `other` hears what orders do.
    pub(crate) fn step(
        &mut self,
        due: VenueTime,
        engine: &mut Engine,
        publisher: &mut impl Tape,
        other: &mut impl Listener,
    ) -> u64 {
        let before = publisher.total();
        publisher.set_time(due);
        engine.set_time(due);
        match self.phase {
            Phase::Directory { next } => self.introduce(next, engine, publisher),
            Phase::Seeding { next } => self.seed(next, due, engine, publisher),
            Phase::Continuous => self.flow.step(due, engine, &mut (&mut *publisher, other)),
            Phase::Closing { next } => self.wind_down(next, engine, publisher),
            Phase::Closed => {}
        }
        let messages = publisher.total() - before;
        if self.pace.spend(messages.max(1)) {
            self.flow.set_burst(self.pace.is_bursting());
        }
        messages
    }

    fn introduce(&mut self, next: usize, engine: &mut Engine, publisher: &mut impl Tape) {
        if next == 0 {
            publisher.milestone(Milestone::StartOfMessages);
        }
        let Some(&listing) = self.listings.get(next) else {
            publisher.milestone(Milestone::StartOfSystemHours);
            self.phase = Phase::Seeding { next: 0 };
            return;
        };
        engine.set_rules(listing.id, listing.rules);
        publisher.define(&listing);
        let known = engine.set_status(listing.id, TradingStatus::Trading, publisher);
        debug_assert!(known.is_ok(), "the engine is made for the listings");
        self.phase = Phase::Directory { next: next + 1 };
    }

    fn seed(&mut self, next: usize, due: VenueTime, engine: &mut Engine, publisher: &mut impl Tape) {
        match self.listings.get(next).map(|listing| listing.id) {
            Some(id) => {
                self.flow.seed_book(id, due, engine, publisher);
                self.phase = Phase::Seeding { next: next + 1 };
            }
            None => {
                publisher.milestone(Milestone::StartOfMarketHours);
                self.phase = Phase::Continuous;
            }
        }
    }

    fn wind_down(&mut self, next: usize, engine: &mut Engine, publisher: &mut impl Tape) {
        if next == 0 {
            publisher.milestone(Milestone::EndOfMarketHours);
        }
        match self.listings.get(next).map(|listing| listing.id) {
            Some(id) => {
                let known = engine.close(id, publisher);
                debug_assert!(known.is_ok(), "the engine is made for the listings");
                self.phase = Phase::Closing { next: next + 1 };
            }
            None => {
                publisher.milestone(Milestone::EndOfSystemHours);
                publisher.milestone(Milestone::EndOfMessages);
                self.phase = Phase::Closed;
            }
        }
    }
}
