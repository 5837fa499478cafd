//! From a look at the underlying to mass quotes: what differs, what must move first, and what there is room
//! for.

use super::ladder::BLOCK;
use super::pull::State;
use super::rehearsing::Rehearsed;
use super::underlying::Look;
use super::{ENTRIES_MAX, Ladder, MassQuote, NO_ASK, NO_BID, PullReason, QuoteSink, Quoter, Row, places};
use crate::RiskReject;
use alloc::boxed::Box;
use tickwire_market::{Cause, Counter, MassQuoteEntry, Nanos, Qty};

/// The message being filled, and what else a decision keeps.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) entries: [MassQuoteEntry; ENTRIES_MAX],
    pub(super) count: usize,
    /// Of these, those that must move: the first.
    pub(super) musts: usize,
    /// Quotes to improve, by block, found while looking for those that must move.
    pub(super) improve: Box<[u64]>,
    /// How often was rehearsed, and how far a decision goes now.
    pub(super) rehearsals: usize,
    pub(super) rehearsed: Rehearsed,
    /// A control stopped a quote of the decision under way.
    pub(super) is_stopped: bool,
}

impl Quoter {
    /// A newer ladder: quotes follow it at once. The one before is given back, to be filled again.
    pub fn replace_ladder(
        &mut self,
        now: Nanos,
        ladder: Box<Ladder>,
        sink: &mut impl QuoteSink,
    ) -> Option<Box<Ladder>> {
        if ladder.quotes() != usize::from(self.config.quotes) {
            // It is not of these quotes.
            return Some(ladder);
        }
        let before = self.ladder.replace(ladder);
        self.decide(now, 0..self.table.blocks(), sink);
        before
    }

    /// Tells the venue what differs within some blocks, by the last look at the underlying.
    pub(super) fn decide(&mut self, now: Nanos, blocks: core::ops::Range<usize>, sink: &mut impl QuoteSink) {
        if let Some(look) = self.trust.look {
            self.decide_at(now, &look, blocks, sink);
        }
    }

    /// The same by this look: a tick, which has just written it, need not wait until it can be read again.
    // One copy of the code, as of all below that is not inlined, so that a rehearsal brings into the caches
    // what a tick needs.
    #[inline(never)]
    pub(super) fn decide_at(
        &mut self,
        now: Nanos,
        look: &Look,
        blocks: core::ops::Range<usize>,
        sink: &mut impl QuoteSink,
    ) {
        if self.pulls.state != State::Quoting {
            return;
        }
        self.measure_room();
        // Taken out for as long as a row is borrowed from it.
        let ladder = self.ladder.take();
        let decided = match ladder.as_ref().and_then(|ladder| ladder.row(look.half_tick)) {
            Some(row) => self.decide_by(now, &row, blocks, &look.cause, sink),
            None => Err(PullReason::NoRow),
        };
        self.ladder = ladder;
        let decided = match core::mem::take(&mut self.batch.is_stopped) {
            true => Err(PullReason::Control),
            false => decided,
        };
        if let Err(reason) = decided {
            (self.batch.count, self.batch.musts) = (0, 0);
            if reason == PullReason::NoRow {
                self.trust.calm_at = now.after(self.config.calm_ns);
            }
            self.pull_for(now, reason, look.cause, sink);
        }
    }

    #[inline(never)]
    pub(super) fn decide_by(
        &mut self,
        now: Nanos,
        row: &Row<'_>,
        blocks: core::ops::Range<usize>,
        cause: &Cause,
        sink: &mut impl QuoteSink,
    ) -> Result<(), PullReason> {
        let mut improves = false;
        for block in blocks.clone() {
            self.heed_markets(now, row, block);
            let found = self.table.compare(row, block);
            let improve = found.changed & !found.exposed;
            self.batch.improve[block] = improve;
            improves |= improve != 0;
            let mut left = found.exposed;
            while left != 0 {
                left = self.batch(row, block, left);
                self.batch.musts = self.batch.count;
                if self.batch.count == self.entries_max() && !self.send(now, cause, sink) {
                    return Err(PullReason::Rate);
                }
            }
        }
        // The last message of those that must move takes improvements along.
        if improves {
            for block in blocks {
                let mut left = self.worth(now, row, block);
                while left != 0 {
                    left = self.batch(row, block, left);
                    let must = self.batch.musts > 0;
                    if self.batch.count == self.entries_max() && !self.send(now, cause, sink) {
                        return if must { Err(PullReason::Rate) } else { Ok(()) };
                    }
                }
            }
        }
        let must = self.batch.musts > 0;
        if !self.send(now, cause, sink) && must {
            return Err(PullReason::Rate);
        }
        Ok(())
    }

    pub(super) fn entries_max(&self) -> usize {
        usize::from(self.config.entries_max).clamp(1, ENTRIES_MAX)
    }

    /// The improvements of a block that are worth a message.
    #[inline]
    pub(super) fn worth(&self, now: Nanos, row: &Row<'_>, block: usize) -> u64 {
        let improve = self.batch.improve[block];
        if self.config.trigger_ticks <= 1 && self.config.life_min_ns == 0 {
            // Any is.
            return improve;
        }
        places(block, improve)
            .filter(|quote| self.is_worth_it(now, row, *quote))
            .fold(0, |worth, quote| worth | 1 << (quote % BLOCK))
    }

    /// Whether an improvement is large enough, and the quote old enough. A side that is not quoted yet is
    /// always worth it.
    #[inline]
    pub(super) fn is_worth_it(&self, now: Nanos, row: &Row<'_>, quote: usize) -> bool {
        let (bid, ask) = self.table.wanted(row, quote);
        let live = (self.table.live_bids[quote], self.table.live_asks[quote]);
        let gain = bid.saturating_sub(live.0).max(live.1.saturating_sub(ask));
        let is_new = (bid != NO_BID && live.0 == NO_BID) || (ask != NO_ASK && live.1 == NO_ASK);
        is_new
            || gain >= self.config.trigger_ticks
                && (self.config.life_min_ns == 0
                    || now.since(self.options.since[quote]) >= self.config.life_min_ns)
    }

    /// Appends quotes of a block to the message being filled until it is full; those that are left.
    #[inline]
    pub(super) fn batch(&mut self, row: &Row<'_>, block: usize, mut quotes: u64) -> u64 {
        let wanted = self.table.block(row, block);
        let sizes = &self.options.sizes[block * BLOCK..];
        let most = self.entries_max();
        let mut count = self.batch.count;
        for entry in self.batch.entries.get_mut(count..most).unwrap_or_default() {
            if quotes == 0 {
                break;
            }
            let place = quotes.trailing_zeros() as usize % BLOCK;
            quotes &= quotes - 1;
            let ((bid, ask), size) = (wanted.of(place), sizes[place]);
            *entry = MassQuoteEntry {
                quote: (block * BLOCK + place) as u16,
                bid_ticks: bid,
                ask_ticks: ask,
                bid_qty: Qty(if bid != NO_BID { size } else { 0 }),
                ask_qty: Qty(if ask != NO_ASK { size } else { 0 }),
            };
            count += 1;
        }
        self.batch.count = count;
        quotes
    }

    /// Sends the message being filled, which is empty then; `false` if it may not or could not leave. One
    /// without entries need not.
    #[inline(never)]
    pub(super) fn send(&mut self, now: Nanos, cause: &Cause, sink: &mut impl QuoteSink) -> bool {
        let open = self.fit();
        let must = core::mem::take(&mut self.batch.musts) > 0;
        let count = core::mem::take(&mut self.batch.count);
        if count == 0 {
            return true;
        }
        if self.batch.rehearsed == Rehearsed::UpToMessage {
            sink.rehearse(&MassQuote {
                id: self.flights.next_id(),
                cause: *cause,
                reset: self.session.must_reset,
                entries: &self.batch.entries[..count],
            });
            return true;
        }
        // A rate is only charged where a place is free, and the narrower one first.
        let may = self.flights.reserve().is_some()
            && (must || self.improvements.take(now))
            && self.messages.take(now);
        let id = self.flights.next_id();
        let message = MassQuote {
            id,
            cause: *cause,
            reset: self.session.must_reset,
            entries: &self.batch.entries[..count],
        };
        let leaves = self.batch.rehearsed == Rehearsed::Nothing;
        if may
            && leaves
            && let Err(reason) = sink.admit(now, &message)
        {
            self.batch.is_stopped = reason != RiskReject::InstrumentRate;
            self.counters.bump(Counter::RiskRejects);
            self.counters.bump(reason.counter());
            return false;
        }
        let has_left = may
            && match leaves {
                true => sink.mass_quote(&message),
                false => {
                    sink.rehearse(&message);
                    true
                }
            };
        if !has_left {
            match may && sink.is_stopped() {
                true => self.batch.is_stopped = true,
                false => self.counters.bump(Counter::QuotesThrottled),
            }
            return false;
        }
        if core::mem::take(&mut self.session.must_reset) {
            self.session.reset_in = Some(id);
        }
        if let Some(flight) = self.flights.reserve() {
            flight.entries[..count].copy_from_slice(&self.batch.entries[..count]);
        }
        self.flights.depart(now, count);
        self.table.set_all_in_flight(&self.batch.entries[..count]);
        if self.markets.is_on() {
            for told in &self.batch.entries[..count] {
                self.markets.tell(now, told);
            }
        }
        if self.config.life_min_ns > 0 {
            for told in &self.batch.entries[..count] {
                self.options.since[usize::from(told.quote)] = now;
            }
        }
        for (all, more) in self.exposed.all.iter_mut().zip(open) {
            all.add(more);
        }
        self.counters.bump(Counter::MassQuotesSent);
        self.counters.add(Counter::QuoteEntriesSent, count as u64);
        true
    }
}
