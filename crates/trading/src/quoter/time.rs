//! What time and an operator do to quotes.

use super::ladder::BLOCK;
use super::pull::State;
use super::underlying::Look;
use super::{Fade, NO_ASK, NO_BID, PullReason, QuoteSink, Quoter, places};
use alloc::boxed::Box;
use tickwire_market::{Cause, Nanos, Qty};

/// What is particular to each option.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) sizes: Box<[u32]>,
    /// When it was told last, where quotes have a least life.
    pub(super) since: Box<[Nanos]>,
    /// It may be quoted: not halted, and not rejected.
    pub(super) is_quoted: Box<[bool]>,
    pub(super) fades: Box<[Fade]>,
    /// When the first fade may end, while there are any.
    pub(super) next_fade: Option<Nanos>,
    /// Quotes that the venue rejected and that are tried again, by block, and when.
    pub(super) refused: Box<[u64]>,
    pub(super) next_retry: Option<Nanos>,
}

impl Quoter {
    /// When [`Quoter::handle_timeout`] has something to do.
    pub fn poll_timeout(&mut self) -> Option<Nanos> {
        let answer = self
            .flights
            .oldest_sent()
            .map(|sent| sent.after(self.config.answer_max_ns));
        let pull = match self.pulls.state {
            State::Pulling(_, None, since) => Some(since),
            State::Pulling(_, Some(_), since) if !self.session.wants_disconnect => {
                Some(since.after(self.config.answer_max_ns))
            }
            _ => None,
        };
        let heartbeat = (self.config.heartbeat_ns > 0 && self.pulls.state == State::Quoting)
            .then(|| self.session.heard.after(self.config.heartbeat_ns));
        let answer = answer.filter(|_| self.pulls.state == State::Quoting);
        let market = self.markets.due().filter(|_| self.pulls.state == State::Quoting);
        [
            answer,
            pull,
            heartbeat,
            self.options.next_fade,
            self.options.next_retry,
            market,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Looks for answers that did not come, an operator who was not heard, fills to forget.
    pub fn handle_timeout(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        let cause = self.last_cause();
        let late = |since: Nanos, most: u64| now.since(since) > most;
        match self.pulls.state {
            State::Pulling(reason, None, since) => self.try_cancel(now, reason, since, cause, sink),
            State::Pulling(_, Some(_), since) if late(since, self.config.answer_max_ns) => {
                self.session.wants_disconnect = true;
            }
            State::Quoting => {
                let sent = self.flights.oldest_sent();
                if sent.is_some_and(|sent| late(sent, self.config.answer_max_ns)) {
                    self.pull_for(now, PullReason::LateAnswer, cause, sink);
                } else if self.config.heartbeat_ns > 0 && late(self.session.heard, self.config.heartbeat_ns) {
                    self.pull_for(now, PullReason::Heartbeat, cause, sink);
                }
            }
            _ => {}
        }
        let fades = self.options.next_fade.is_some_and(|due| due <= now);
        if fades {
            self.end_fades(now);
        }
        let retries = self.options.next_retry.is_some_and(|due| due <= now);
        if retries {
            self.options.next_retry = None;
            self.retry();
        }
        let releases = self.pulls.state == State::Quoting && self.markets.due().is_some_and(|due| due <= now);
        if releases {
            self.release_options(now);
        }
        if fades || retries || releases {
            self.decide(now, 0..self.table.blocks(), sink);
        }
    }

    /// Options whose quotes have gone with their markets for long enough are quoted again.
    #[cold]
    pub(super) fn release_options(&mut self, now: Nanos) {
        let ladder = self.ladder.take();
        let row = |look: Look| ladder.as_ref().and_then(|ladder| ladder.row(look.half_tick));
        if let Some(row) = self.trust.look.and_then(row) {
            for block in 0..self.table.blocks() {
                // As they are now: nothing may have changed since the last look.
                let _ = self.markets.look(&row, block);
                for at in places(block, self.markets.release(block)) {
                    self.limit(at);
                }
            }
        }
        self.ladder = ladder;
        self.markets.looked(now);
    }

    /// What the venue rejected is quoted again.
    pub(super) fn retry(&mut self) {
        for block in 0..self.options.refused.len() {
            for quote in places(block, core::mem::take(&mut self.options.refused[block])) {
                self.options.is_quoted[quote] = true;
                self.limit(quote);
            }
        }
    }

    /// The operator's client is there.
    pub fn on_heartbeat(&mut self, now: Nanos) {
        self.session.heard = now;
    }

    /// Whether an option is quoted; all are at first. One that the venue rejected is not any more.
    pub fn set_quoted(&mut self, now: Nanos, quote: u16, is_quoted: bool, sink: &mut impl QuoteSink) {
        let at = usize::from(quote);
        if let Some(known) = self.options.is_quoted.get_mut(at) {
            *known = is_quoted;
            self.options.refused[at / BLOCK] &= !(1 << (at % BLOCK));
            self.limit(at);
            self.decide(now, at / BLOCK..at / BLOCK + 1, sink);
        }
    }

    /// Contracts on each side of an option's quote, from its next change on.
    pub fn set_size(&mut self, quote: u16, size: Qty) {
        if let Some(old) = self.options.sizes.get_mut(usize::from(quote)) {
            *old = size.0;
        }
    }

    /// The session must be ended, so that the venue cancels what it did not when asked to.
    pub fn wants_disconnect(&self) -> bool {
        self.session.wants_disconnect
    }

    pub(super) fn last_cause(&self) -> Cause {
        self.trust.look.map_or_else(Cause::default, |look| look.cause)
    }

    /// Works out what a quote's sides may be at best.
    pub(super) fn limit(&mut self, at: usize) {
        let fade = &self.options.fades[at];
        let (bid, ask) = if self.options.is_quoted[at] && !self.markets.is_off(at) {
            (fade.ticks[0], fade.ticks[1])
        } else {
            (NO_BID, NO_ASK)
        };
        (self.table.bid_caps[at], self.table.ask_floors[at]) = (bid, ask);
    }
}
