//! What the venue says of quotes, asked and unasked.

use super::ladder::BLOCK;
use super::pull::State;
use super::{NO_ASK, NO_BID, PullReason, QuoteLive, QuoteSink, Quoter};
use crate::exposure::exposures;
use tickwire_market::{Counter, Nanos};

impl Quoter {
    /// A mass quote was answered: accepted, but for the quotes in `rejected`. `None` if all of it was
    /// rejected.
    #[inline(never)]
    pub fn on_answer(&mut self, now: Nanos, id: u64, rejected: Option<&[u16]>, sink: &mut impl QuoteSink) {
        let Some(flight) = self.flights.arrive(id) else {
            return self.unmatched(now, sink);
        };
        let (mut first, mut end) = (usize::MAX, 0);
        let (mut is_stuck, mut is_live) = (false, false);
        for told in &flight.entries[..usize::from(flight.len)] {
            let (quote, qty) = (usize::from(told.quote), [told.bid_qty.0, told.ask_qty.0]);
            self.table.set_in_flight(quote, false);
            (first, end) = (first.min(quote / BLOCK), end.max(quote / BLOCK + 1));
            if rejected.is_some_and(|rejected| !rejected.contains(&told.quote)) {
                self.release_live(quote, self.exposed.open[quote]);
                self.exposed.open[quote] = qty;
                (self.table.live_bids[quote], self.table.live_asks[quote]) = (told.bid_ticks, told.ask_ticks);
                is_live |= qty != [0; 2];
                continue;
            }
            // The quote before it stays: it is taken away, and if that is what was refused, all of them are.
            self.release(exposures(qty, (told.bid_ticks, told.ask_ticks)));
            is_stuck |= qty == [0; 2];
            self.refuse(now, quote);
        }
        if self.session.reset_in == Some(id) {
            self.session.reset_in = None;
            self.session.must_reset = rejected.is_none();
        }
        if let (State::Halted(reason), true) = (self.pulls.state, is_live) {
            // It ended the venue's protection and tripped it again while it was on its way.
            return self.try_cancel(now, reason, now, self.last_cause(), sink);
        }
        if is_stuck && self.pulls.state == State::Quoting {
            return self.pull_for(now, PullReason::Rejected, self.last_cause(), sink);
        }
        self.decide(now, first..end, sink);
    }

    /// A quote that is two orders ([`QuoteOrders`](super::QuoteOrders)) was answered: what is live of it.
    pub fn on_orders(&mut self, now: Nanos, live: &QuoteLive, sink: &mut impl QuoteSink) {
        let Some(flight) = self.flights.arrive(live.id) else {
            return self.unmatched(now, sink);
        };
        let (at, told) = (usize::from(live.quote), &flight.entries[0]);
        if at >= self.exposed.open.len() || told.quote != live.quote {
            return self.unmatched(now, sink);
        }
        self.table.set_in_flight(at, false);
        let qty = [told.bid_qty.0, told.ask_qty.0];
        self.release(exposures(qty, (told.bid_ticks, told.ask_ticks)));
        self.release_live(at, self.exposed.open[at]);
        self.exposed.open[at] = live.open;
        (self.table.live_bids[at], self.table.live_asks[at]) = live.ticks;
        for (all, more) in self.exposed.all.iter_mut().zip(exposures(live.open, live.ticks)) {
            all.add(more);
        }
        if live.is_refused {
            self.refuse(now, at);
            // A side that was to go and is still there.
            let is_stuck = (0..2).any(|side| qty[side] == 0 && live.open[side] > 0);
            if is_stuck && self.pulls.state == State::Quoting {
                return self.pull_for(now, PullReason::Rejected, self.last_cause(), sink);
            }
        }
        self.decide(now, at / BLOCK..at / BLOCK + 1, sink);
    }

    /// A quote was refused: it is taken away, and tried again later.
    pub(super) fn refuse(&mut self, now: Nanos, quote: usize) {
        self.counters.bump(Counter::QuoteEntriesRejected);
        self.options.is_quoted[quote] = false;
        self.options.refused[quote / BLOCK] |= 1 << (quote % BLOCK);
        self.limit(quote);
        if self.config.retry_ns > 0 && self.options.next_retry.is_none() {
            self.options.next_retry = Some(now.after(self.config.retry_ns));
        }
    }

    /// Every quote was cancelled, as asked for by [`QuoteSink::cancel_all`]; `false` if the venue refused to.
    pub fn on_cancelled(&mut self, now: Nanos, id: u64, is_done: bool, sink: &mut impl QuoteSink) {
        let State::Pulling(reason, Some(asked), _) = self.pulls.state else {
            return self.unmatched(now, sink);
        };
        if asked != id {
            return self.unmatched(now, sink);
        }
        if !is_done {
            self.session.wants_disconnect = true;
            return;
        }
        self.forget_all();
        self.pulls.state = State::Halted(reason);
    }

    /// The venue took sides of a quote away without being asked: the instrument is halted, its session is
    /// over, it would have traded with an order of ours.
    pub fn on_removed(&mut self, quote: u16, sides: [bool; 2]) {
        self.on_left(quote, sides.map(|is_gone| if is_gone { 0 } else { u32::MAX }));
    }

    /// The same in part: so many contracts are left of each side, if there were more.
    pub fn on_left(&mut self, quote: u16, left: [u32; 2]) {
        let at = usize::from(quote);
        let Some(&before) = self.exposed.open.get(at) else {
            return self.counters.bump(Counter::QuoteAnswersUnmatched);
        };
        let gone = [0, 1].map(|side| before[side].saturating_sub(left[side]));
        self.release_live(at, gone);
        self.exposed.open[at] = [0, 1].map(|side| before[side] - gone[side]);
        if left[0] == 0 {
            self.table.live_bids[at] = NO_BID;
        }
        if left[1] == 0 {
            self.table.live_asks[at] = NO_ASK;
        }
    }

    /// The venue's protection took every quote away; mass quotes are rejected until one that resets it, which
    /// [`Quoter::resume`] causes. What is under way is still answered.
    pub fn on_protected(&mut self) {
        self.counters.bump(Counter::QuotePulls);
        for quote in 0..self.config.quotes {
            self.on_removed(quote, [true; 2]);
        }
        self.session.must_reset = true;
        // A pull under way is answered all the same, and its reason is the stronger one.
        if self.pulls.state == State::Quoting {
            self.note_pull(PullReason::VenueProtection);
            self.pulls.state = State::Halted(PullReason::VenueProtection);
        }
    }
}
