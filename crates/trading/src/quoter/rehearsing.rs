//! Ticks that are rehearsed: the tick that changes quotes comes once in thousands of packets, and by then
//! what it needs, code and data, has left the caches. A thread with time to spare goes through one, and
//! nothing is left of it.
//!
//! Two things are done each time. A block of the quotes goes through what half a tick of the underlying would
//! cause, up to the encoded bytes of its message; what leaving would write is fetched only. And a quoter of a
//! few quotes beside this one, its *twin*, goes the whole way, from the underlying to the venue's answer: the
//! same code, data of its own.

use super::pull::State;
use super::underlying::Look;
use super::{Exposure, MarketGuard, MarketNeed, QuoteSink, Quoter, QuoterConfig};
use alloc::boxed::Box;
use tickwire_book::prefetch;
use tickwire_market::{Nanos, Price};

/// How far a decision goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rehearsed {
    /// It is none that is rehearsed.
    Nothing,
    /// Up to the message, of which nothing is kept.
    UpToMessage,
    /// All that is done behind it as well, but that it does not leave. Only a twin's.
    Whole,
}

/// Quotes of a twin: two that must move, two that could be better. More would run the same code again.
const TWIN_QUOTES: u16 = 4;

impl QuoterConfig {
    /// What the twin quotes: one message, without limits.
    fn twin(&self) -> QuoterConfig {
        let unlimited = u64::MAX / 4;
        QuoterConfig {
            quotes: self.quotes.min(self.entries_max.into()).min(TWIN_QUOTES),
            in_flight_max: 2,
            messages_max: 2,
            improvements_max: 2,
            window_ns: 0,
            market: self.market.map(|guard| MarketGuard {
                needs: MarketNeed::Nothing,
                ..guard
            }),
            long_max: unlimited,
            short_max: unlimited,
            quoted_max: unlimited,
            premium_max: [unlimited; 2],
            ..*self
        }
    }
}

impl Quoter {
    /// The twin of a quoter that is configured so.
    pub(super) fn twin_of(config: &QuoterConfig) -> Box<Quoter> {
        let mut twin = Quoter::alone(config.twin());
        twin.batch.rehearsed = Rehearsed::Whole;
        for at in 0..usize::from(twin.config.quotes) {
            // An empty market, in which everything may be quoted.
            twin.markets
                .learn(at, true, [None::<Price>; 2], config.option_tick);
        }
        Box::new(twin)
    }

    /// Goes through what half a tick of the underlying would cause and forgets it: nothing is sent, charged
    /// or changed. For a loop that has nothing else to do: what has not run for a millisecond is in no near
    /// cache and no branch predictor, which makes the next tick some microseconds longer. One block of 64
    /// quotes a call, up and down in turns; see the module for what is done with it.
    pub fn rehearse(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        let (State::Quoting, Some(look)) = (self.pulls.state, self.trust.look) else {
            return;
        };
        self.batch.rehearsals = self.batch.rehearsals.wrapping_add(1);
        let by = match self.batch.rehearsals.is_multiple_of(2) {
            true => 1,
            false => -1,
        };
        let next = Look {
            half_tick: look.half_tick + by,
            ..look
        };
        let block = self.batch.rehearsals / 2 % self.table.blocks();
        self.measure_room();
        let ladder = self.ladder.take();
        if let Some(row) = ladder.as_ref().and_then(|ladder| ladder.row(next.half_tick)) {
            self.batch.rehearsed = Rehearsed::UpToMessage;
            let _ = self.decide_by(now, &row, block..block + 1, &look.cause, sink);
            self.batch.rehearsed = Rehearsed::Nothing;
            (self.batch.count, self.batch.musts) = (0, 0);
        }
        self.ladder = ladder;
        self.fetch(block);
        self.rehearse_twin(now, next, sink);
    }

    /// Fetches what a decision about a block looks at or writes and a rehearsal does not.
    fn fetch(&self, block: usize) {
        prefetch::fetch_value(self);
        self.flights.fetch_next();
        self.messages.fetch_next();
        self.improvements.fetch_next();
        self.markets.fetch(block);
    }

    /// Has the twin go the whole way, from where the underlying was to `next`, with each of its quotes a tick
    /// away from what is wanted then: every other one has to move, and the others could be better.
    fn rehearse_twin(&mut self, now: Nanos, next: Look, sink: &mut impl QuoteSink) {
        let Some(mut twin) = self.twin.take() else {
            return;
        };
        twin.ladder = self.ladder.take();
        if twin.forget(next, &self.options.sizes) {
            twin.follow(now, next.half_tick, next.cause, sink);
            let sent = twin.flights.next_id() - 1;
            twin.on_answer(now, sent, Some(&[]), sink);
        }
        self.ladder = twin.ladder.take();
        self.twin = Some(twin);
    }

    /// Puts a twin where it begins; `false` where there is no row for it.
    fn forget(&mut self, next: Look, sizes: &[u32]) -> bool {
        let Some(row) = self.ladder.as_ref().and_then(|ladder| ladder.row(next.half_tick)) else {
            return false;
        };
        for (own, size) in self.options.sizes.iter_mut().zip(sizes) {
            *own = *size;
        }
        for quote in 0..self.options.sizes.len() {
            let (bid, ask) = self.table.wanted(&row, quote);
            self.table.live_bids[quote] = match quote % 2 {
                0 => bid.saturating_add(1),
                _ => bid.saturating_sub(1),
            };
            self.table.live_asks[quote] = ask;
            self.exposed.open[quote] = [0; 2];
        }
        self.table.in_flight.fill(0);
        self.flights.clear();
        self.exposed.all = [Exposure::default(); 2];
        self.pulls.state = State::Quoting;
        // It was there already, so that nothing is a jump.
        self.trust.look = Some(next);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quoter::tests::{Venue, config, ladder, look, quoting};
    use tickwire_market::Counter;

    /// Each time a message of the quoter's own quotes and one of its twin's, whichever way the underlying is
    /// taken, with a market that every quote has to go with and without.
    #[test]
    fn a_twin_goes_the_whole_way_each_time() {
        for market in [None, Some(MarketGuard::default())] {
            let quoting = quoting();
            let mut venue = Venue::new();
            let now = Nanos(Nanos::SECOND);
            let mut quoter = Quoter::new(QuoterConfig { market, ..config() });
            quoter.rehearse(now, &mut venue);
            quoter.replace_ladder(now, ladder(0, 8_000, 60, &quoting), &mut venue);
            quoter.on_logon(now);
            quoter.on_underlying(now, &look(1, 8_000, 2), &mut venue);
            let (heard, counters) = (venue.heard, quoter.counters().clone());
            let of_twin = |quoter: &Quoter| {
                let twin = quoter.twin.as_ref().expect("it has one");
                let of = |counter| twin.counters.get(counter);
                (
                    of(Counter::MassQuotesSent),
                    of(Counter::QuotePulls),
                    of(Counter::QuoteAnswersUnmatched),
                    twin.flights.len(),
                )
            };
            assert_eq!(of_twin(&quoter), (0, 0, 0, 0), "nobody is quoting yet");
            for turn in 1..=20 {
                quoter.rehearse(now.after(turn), &mut venue);
                assert_eq!(of_twin(&quoter), (turn, 0, 0, 0));
            }
            assert_eq!((venue.heard, quoter.counters().clone()), (heard, counters));
            assert!(venue.rehearsed >= 20, "{}", venue.rehearsed);
        }
    }

    /// Beyond the ends of a ladder there is no row: the twin is left out, and asks for nothing to be
    /// cancelled.
    #[test]
    fn without_a_row_nothing_is_rehearsed_and_nothing_taken_away() {
        let quoting = quoting();
        let mut venue = Venue::new();
        let now = Nanos(Nanos::SECOND);
        let mut quoter = Quoter::new(config());
        quoter.on_logon(now);
        quoter.replace_ladder(now, ladder(0, 8_000, 1, &quoting), &mut venue);
        quoter.on_underlying(now, &look(1, 8_000, 2), &mut venue);
        for turn in 1..=10 {
            quoter.rehearse(now.after(turn), &mut venue);
        }
        let state = quoter.state();
        for half_tick in [7_999, 8_001] {
            quoter.on_underlying(now, &look(2, half_tick, 1), &mut venue);
            for turn in 1..=10 {
                quoter.rehearse(now.after(turn), &mut venue);
            }
        }
        assert_eq!(quoter.state(), state);
    }
}
