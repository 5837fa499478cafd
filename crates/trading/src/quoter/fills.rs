//! What was traded: by quotes, and by orders beside them.

use super::ladder::BLOCK;
use super::pull::State;
use super::{Fill, NO_ASK, NO_BID, PullReason, QuoteSink, Quoter};
use crate::exposure::Exposure;
use tickwire_market::{Counter, Nanos, Side};

/// What counts towards our own protection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Filled {
    pub(super) since: Option<Nanos>,
    pub(super) fills: u32,
    pub(super) contracts: u64,
    pub(super) delta_milli: i64,
}

/// What keeps a side away from where it was filled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fade {
    /// Indexed by [`Side`].
    pub(super) until: [Nanos; 2],
    pub(super) ticks: [u16; 2],
}

impl Quoter {
    /// An execution against a quote. One that fits nothing quoted means that we do not know what is live:
    /// everything is pulled.
    pub fn on_fill(&mut self, now: Nanos, fill: &Fill, sink: &mut impl QuoteSink) {
        self.fill(now, fill, false, sink);
    }

    /// An execution of an order that is a side of a quote. One side's order may rest, and trade, before the
    /// other side's is answered: then it is of what is under way.
    pub fn on_order_fill(&mut self, now: Nanos, fill: &Fill, sink: &mut impl QuoteSink) {
        let is_under_way = fill.quote < self.config.quotes && self.is_in_flight(fill.quote);
        self.fill(now, fill, is_under_way, sink);
    }

    #[inline]
    pub(super) fn fill(&mut self, now: Nanos, fill: &Fill, is_under_way: bool, sink: &mut impl QuoteSink) {
        let (at, side) = (usize::from(fill.quote), fill.side as usize);
        if at >= self.exposed.open.len() {
            return self.unmatched(now, sink);
        }
        let signed = fill.signed();
        self.add_net(signed, fill.paid());
        self.exposed.positions[at] += signed;
        self.counters.bump(Counter::Fills);
        let traded = self.exposed.open[at][side].min(fill.qty.0);
        let mut gone = [0; 2];
        gone[side] = traded;
        self.release_live(at, gone);
        self.exposed.open[at][side] -= traded;
        if self.exposed.open[at][side] == 0 {
            if side == 0 {
                self.table.live_bids[at] = NO_BID;
            } else {
                self.table.live_asks[at] = NO_ASK;
            }
        }
        self.fade(now, fill);
        if traded < fill.qty.0 && !is_under_way {
            return self.unmatched(now, sink);
        }
        if self.count(now, fill, signed) {
            return self.pull_for(now, PullReason::Protection, self.last_cause(), sink);
        }
        self.decide(now, at / BLOCK..at / BLOCK + 1, sink);
    }

    /// An execution of a session that was lost, heard of in the next one: it counts, and is of no quote that
    /// we have.
    pub fn on_late_fill(&mut self, fill: &Fill) {
        let signed = fill.signed();
        self.add_net(signed, fill.paid());
        self.counters.bump(Counter::Fills);
        match self.exposed.positions.get_mut(usize::from(fill.quote)) {
            Some(position) => *position += signed,
            None => self.counters.bump(Counter::QuoteAnswersUnmatched),
        }
    }

    /// An execution that does not count after all: the venue took it back, maybe long after its quote was
    /// gone. It is held no more, and everything is pulled until [`Quoter::resume`].
    pub fn on_broken(&mut self, now: Nanos, fill: &Fill, sink: &mut impl QuoteSink) {
        let signed = fill.signed();
        self.add_net(-signed, -fill.paid());
        self.counters.bump(Counter::TradesBroken);
        match self.exposed.positions.get_mut(usize::from(fill.quote)) {
            Some(position) => *position -= signed,
            None => self.counters.bump(Counter::QuoteAnswersUnmatched),
        }
        self.pull_on_break(now, sink);
    }

    /// Contracts of options that were bought (or sold, below 0), and the premium paid for them (or received),
    /// in ticks times contracts: by an electronic eye for instance. They count towards the limits on what is
    /// held.
    pub fn add_net(&mut self, contracts: i64, paid: i64) {
        self.exposed.net = self.exposed.net.saturating_add(contracts);
        self.exposed.paid = self.exposed.paid.saturating_add(paid);
    }

    /// An execution of an order beside the quotes, of an electronic eye for instance: it counts towards what
    /// is held, and towards our own protection as one of a quote does.
    pub fn on_fill_beside(&mut self, now: Nanos, fill: &Fill, sink: &mut impl QuoteSink) {
        let signed = fill.signed();
        self.add_net(signed, fill.paid());
        if self.count(now, fill, signed) {
            self.pull_for(now, PullReason::Protection, self.last_cause(), sink);
        }
    }

    /// So many orders left by the session beside the quotes: they count towards the rate of messages.
    #[inline]
    pub fn on_sent_beside(&mut self, now: Nanos, orders: u32) {
        for _ in 0..orders {
            self.messages.charge(now);
        }
    }

    /// Whether an order beside the quotes may leave, the one of this number since [`Quoter::on_sent_beside`]:
    /// quotes go out, and the rate of messages has room for it.
    #[inline]
    pub(crate) fn admits_beside(&self, now: Nanos, nth: u32) -> bool {
        self.pulls.state == State::Quoting && self.messages.has_room(now, nth)
    }

    /// How much more may trade on a side by this quoter's limits if all quotes did; orders beside them are
    /// not in it.
    #[inline]
    pub(crate) fn room_beside(&self, side: Side) -> Exposure {
        self.room_of(side as usize)
    }

    /// Orders in options that are under way beside the quotes, by side: they count as if they had traded.
    #[inline]
    pub fn set_beside(&mut self, open: [Exposure; 2]) {
        self.exposed.beside = open;
    }

    /// What quotes of an option have traded before, bought less sold, and what was paid for it, in ticks
    /// times contracts: of a process before this one. Nothing happens for an option that there is none of.
    pub fn hold(&mut self, quote: u16, contracts: i64, paid: i64) {
        if let Some(position) = self.exposed.positions.get_mut(usize::from(quote)) {
            *position = position.saturating_add(contracts);
            self.add_net(contracts, paid);
        }
    }

    pub(super) fn fade(&mut self, now: Nanos, fill: &Fill) {
        if self.config.fade_ns == 0 {
            return;
        }
        let (at, side) = (usize::from(fill.quote), fill.side as usize);
        let until = now.after(self.config.fade_ns);
        let fade = &mut self.options.fades[at];
        fade.until[side] = until;
        fade.ticks[side] = match fill.side {
            Side::Bid => fill.ticks.saturating_sub(self.config.fade_ticks),
            Side::Ask => fill.ticks.saturating_add(self.config.fade_ticks),
        };
        self.options.next_fade = Some(self.options.next_fade.map_or(until, |due| due.min(until)));
        self.limit(at);
    }

    pub(super) fn end_fades(&mut self, now: Nanos) {
        let mut next: Option<Nanos> = None;
        for at in 0..self.options.fades.len() {
            let fade = &mut self.options.fades[at];
            let mut is_over = false;
            for (side, none) in [NO_ASK - 1, 1].into_iter().enumerate() {
                let until = fade.until[side];
                if until == Nanos::ZERO {
                    continue;
                }
                if until <= now {
                    (fade.until[side], fade.ticks[side]) = (Nanos::ZERO, none);
                    is_over = true;
                } else {
                    next = Some(next.map_or(until, |due| due.min(until)));
                }
            }
            if is_over {
                self.limit(at);
            }
        }
        self.options.next_fade = next;
    }

    /// Counts a fill; whether our own protection is reached.
    pub(super) fn count(&mut self, now: Nanos, fill: &Fill, signed: i64) -> bool {
        let limits = self.config.protection;
        let filled = &mut self.filled;
        if filled
            .since
            .is_none_or(|since| now.since(since) > limits.window_ns)
        {
            *filled = Filled {
                since: Some(now),
                ..Filled::default()
            };
        }
        filled.fills = filled.fills.saturating_add(1);
        filled.contracts += u64::from(fill.qty.0);
        filled.delta_milli = filled
            .delta_milli
            .saturating_add(signed.saturating_mul(fill.delta_milli.into()));
        let reaches = |count: u64, limit: u64| limit > 0 && count >= limit;
        reaches(filled.fills.into(), limits.fills.into())
            || reaches(filled.contracts, limits.contracts)
            || reaches(filled.delta_milli.unsigned_abs(), limits.delta_milli)
    }
}
