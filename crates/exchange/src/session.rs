//! A trading day in small steps: directory, status, first orders, opening auction, continuous flow, closing
//! auction, close. Auctions are at their times of day, and only if they are configured. Paced: each step
//! tells how many messages it published, and the next one is due accordingly.

use alloc::vec::Vec;

use crate::breaks::{Breaks, BreaksConfig};
use crate::engine::Engine;
use crate::flow::{Flow, FlowConfig};
use crate::order::Listener;
use crate::pace::{Pace, PaceConfig};
use crate::rules::AuctionKind;
use crate::tape::{Listing, VenueTime};
use crate::tape::{Milestone, Tape};
use tickwire_market::{Nanos, TradingStatus};
use tickwire_persist::persist;

/// When auctions take place; times that have passed when the day begins are passed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuctionTimes {
    /// The opening: orders are collected from the moment at which the books have their first orders until
    /// then.
    pub opening: Option<VenueTime>,
    /// The closing's call phase, and its end. The day ends with it.
    pub closing: Option<(VenueTime, VenueTime)>,
    /// Time between two indications of each instrument in a call phase, nanoseconds, at least 1 ms.
    pub indicate_ns: u64,
    /// How long before an auction, and until it is over, its orders (at the opening, at the close) cannot be
    /// cancelled or changed, and a cancel of another order in its call phase waits for its end; nanoseconds.
    /// 0: they always can.
    pub no_cancel_ns: u64,
}

impl Default for AuctionTimes {
    fn default() -> AuctionTimes {
        AuctionTimes {
            opening: None,
            closing: None,
            indicate_ns: 5 * Nanos::SECOND,
            no_cancel_ns: 0,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Directory {
        next: usize,
    },
    Seeding {
        next: usize,
    },
    /// Instrument by instrument: the call phase begins.
    Calling {
        kind: AuctionKind,
        until: VenueTime,
        next: usize,
    },
    /// Orders are collected; each round indicates every instrument.
    Call {
        kind: AuctionKind,
        until: VenueTime,
        round: VenueTime,
        next: usize,
    },
    Uncrossing {
        kind: AuctionKind,
        next: usize,
    },
    Continuous,
    /// The closing auction is over; the day is to be closed.
    Crossed,
    Closing {
        next: usize,
    },
    Closed,
}

/// Drives engine and publisher through a day. Deterministic: the same configuration gives the same messages
/// with the same times, however often [`Session::advance`] is called, as long as nobody else trades.
pub(crate) struct Session {
    phase: Phase,
    auctions: AuctionTimes,
    pace: Pace,
    flow: Flow,
    breaks: Breaks,
    listings: Vec<Listing>,
}

impl Session {
    pub(crate) fn new(
        flow: FlowConfig,
        pace: PaceConfig,
        auctions: AuctionTimes,
        breaks: BreaksConfig,
        listings: &[Listing],
        start: VenueTime,
    ) -> Session {
        Session {
            phase: Phase::Directory { next: 0 },
            auctions: AuctionTimes {
                opening: auctions.opening.filter(|at| *at > start),
                closing: auctions.closing.filter(|(_, until)| *until > start),
                indicate_ns: auctions.indicate_ns.max(Nanos::MILLI),
                no_cancel_ns: auctions.no_cancel_ns,
            },
            pace: Pace::new(pace, flow.seed, start),
            flow: Flow::new(flow, listings),
            breaks: Breaks::new(breaks, flow.seed),
            listings: listings.to_vec(),
        }
    }

    pub(crate) fn hands_mut(&mut self) -> (&mut Flow, &mut Breaks) {
        (&mut self.flow, &mut self.breaks)
    }

    /// Nothing is due before `now`: what was not done meanwhile is not made up for.
    pub(crate) fn resume(&mut self, now: VenueTime) {
        self.pace.resume(now);
    }

    /// Whether client orders are taken: everything is seeded, every instrument is in the opening's call phase
    /// if there is one, and nothing is closed. Call phases take them too.
    pub(crate) fn is_open(&self) -> bool {
        match self.phase {
            // An order for an instrument that is not called yet would trade before the opening.
            Phase::Calling { kind, .. } => kind != AuctionKind::Opening,
            Phase::Call { .. } | Phase::Uncrossing { .. } | Phase::Continuous => true,
            Phase::Directory { .. }
            | Phase::Seeding { .. }
            | Phase::Crossed
            | Phase::Closing { .. }
            | Phase::Closed => false,
        }
    }

    /// Whether instruments trade continuously, those apart that are halted: no auction of all of them is
    /// under way.
    pub(crate) fn is_continuous(&self) -> bool {
        self.phase == Phase::Continuous
    }

    /// The auction in whose no-cancel period this is, see [`AuctionTimes::no_cancel_ns`].
    pub(crate) fn no_cancel(&self, now: VenueTime) -> Option<AuctionKind> {
        let period = self.auctions.no_cancel_ns;
        let is_near = |until: VenueTime| now.saturating_add(period) >= until;
        match self.phase {
            _ if period == 0 => None,
            Phase::Calling { kind, until, .. } | Phase::Call { kind, until, .. } => {
                is_near(until).then_some(kind)
            }
            Phase::Uncrossing { kind, .. } => Some(kind),
            // It may be longer than the call phase.
            Phase::Continuous => {
                let closing = self.auctions.closing.filter(|(_, until)| is_near(*until));
                closing.map(|_| AuctionKind::Closing)
            }
            Phase::Directory { .. }
            | Phase::Seeding { .. }
            | Phase::Crossed
            | Phase::Closing { .. }
            | Phase::Closed => None,
        }
    }

    /// Whether the closing auction is over and the day is to be closed.
    pub(crate) fn is_crossed(&self) -> bool {
        self.phase == Phase::Crossed
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
            (Phase::Closed | Phase::Crossed, _) => None,
            (
                Phase::Call {
                    until,
                    round,
                    next: 0,
                    ..
                },
                _,
            ) => Some(until.min(round)),
            (Phase::Continuous, reaction) => {
                let call = self.auctions.closing.map(|(call, _)| call);
                let others = [reaction, call, self.breaks.next()];
                Some(others.into_iter().flatten().fold(self.pace.due(), u64::min))
            }
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
            Phase::Calling { kind, until, next } => {
                self.call(kind, until, next, due, engine, &mut (&mut *publisher, other))
            }
            Phase::Call {
                kind,
                until,
                round,
                next,
            } => self.collect(kind, until, (round, next), due, engine, publisher),
            Phase::Uncrossing { kind, next } => self.uncross(kind, next, engine, publisher, other),
            Phase::Continuous => match self.auctions.closing {
                Some((call, until)) if due >= call => self.begin_call(AuctionKind::Closing, until),
                _ => {
                    let out = &mut (&mut *publisher, other);
                    if !self.breaks.step(due, engine, out) {
                        self.flow.step(due, engine, out);
                    }
                }
            },
            Phase::Closing { next } => self.wind_down(next, engine, publisher, other),
            Phase::Crossed | Phase::Closed => {}
        }
        self.breaks.draw(due, engine);
        let messages = publisher.total() - before;
        if self.pace.spend(messages.max(1)) {
            self.flow.set_burst(self.pace.is_bursting());
        }
        self.flow.set_follow(self.pace.is_following());
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
            None => match self.auctions.opening.filter(|at| *at > due) {
                Some(until) => self.begin_call(AuctionKind::Opening, until),
                None => {
                    publisher.milestone(Milestone::StartOfMarketHours);
                    self.phase = Phase::Continuous;
                }
            },
        }
    }

    fn begin_call(&mut self, kind: AuctionKind, until: VenueTime) {
        self.phase = Phase::Calling { kind, until, next: 0 };
    }

    fn call(
        &mut self,
        kind: AuctionKind,
        until: VenueTime,
        next: usize,
        due: VenueTime,
        engine: &mut Engine,
        out: &mut impl Listener,
    ) {
        self.phase = match self.listings.get(next) {
            Some(listing) => {
                // One that is halted has no auction.
                if engine.trading_status(listing.id) != Some(TradingStatus::Halted) {
                    let known = engine.begin_auction(listing.id, kind, out);
                    debug_assert!(known.is_ok(), "the engine is made for the listings");
                }
                Phase::Calling {
                    kind,
                    until,
                    next: next + 1,
                }
            }
            None => Phase::Call {
                kind,
                until,
                round: due + self.auctions.indicate_ns,
                next: 0,
            },
        };
    }

    /// A step of a call phase: it ends, or one instrument is indicated.
    fn collect(
        &mut self,
        kind: AuctionKind,
        until: VenueTime,
        (round, next): (VenueTime, usize),
        due: VenueTime,
        engine: &mut Engine,
        publisher: &mut impl Tape,
    ) {
        if due >= until {
            self.phase = Phase::Uncrossing { kind, next: 0 };
            if kind == AuctionKind::Opening {
                publisher.milestone(Milestone::StartOfMarketHours);
            }
            return;
        }
        let (round, next) = match self.listings.get(next) {
            Some(listing) => {
                // One that was halted meanwhile has no auction.
                if engine.trading_status(listing.id) == Some(TradingStatus::Auction) {
                    let known = engine.indicate(listing.id, publisher);
                    debug_assert!(known.is_ok(), "the engine is made for the listings");
                }
                (round, next + 1)
            }
            // As far from this round as it took.
            None => (due + self.auctions.indicate_ns, 0),
        };
        self.phase = Phase::Call {
            kind,
            until,
            round,
            next,
        };
    }

    fn uncross(
        &mut self,
        kind: AuctionKind,
        next: usize,
        engine: &mut Engine,
        publisher: &mut impl Tape,
        other: &mut impl Listener,
    ) {
        let (status, then) = match kind {
            AuctionKind::Closing => (TradingStatus::Closed, Phase::Crossed),
            _ => (TradingStatus::Trading, Phase::Continuous),
        };
        self.phase = match self.listings.get(next) {
            Some(listing) => {
                // One that is halted has no auction.
                let _ = engine.uncross(listing.id, status, &mut (&mut *publisher, other));
                Phase::Uncrossing { kind, next: next + 1 }
            }
            None => then,
        };
    }

    fn wind_down(
        &mut self,
        next: usize,
        engine: &mut Engine,
        publisher: &mut impl Tape,
        other: &mut impl Listener,
    ) {
        if next == 0 {
            publisher.milestone(Milestone::EndOfMarketHours);
        }
        match self.listings.get(next).map(|listing| listing.id) {
            Some(id) => {
                // After a closing auction, those without one are left.
                if engine.trading_status(id) != Some(TradingStatus::Closed) {
                    let known = engine.close(id, &mut (&mut *publisher, other));
                    debug_assert!(known.is_ok(), "the engine is made for the listings");
                }
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

persist!(value struct AuctionTimes { opening, closing, indicate_ns, no_cancel_ns });
persist!(value enum Phase {
    0 => Directory { next },
    1 => Seeding { next },
    2 => Calling { kind, until, next },
    3 => Call { kind, until, round, next },
    4 => Uncrossing { kind, next },
    5 => Continuous,
    6 => Crossed,
    7 => Closing { next },
    8 => Closed,
});
persist!(struct Session { phase, auctions, pace, flow, breaks } not { listings });
