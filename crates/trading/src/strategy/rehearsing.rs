//! Orders and quotes that are rehearsed: an order leaves once in thousands of packets, and by then what it
//! needs, code and data, has left the caches. A thread with time to spare goes through it, and takes it back.

use tickwire_book::prefetch;
use tickwire_market::{
    BookState, Cause, ClientOrderId, Counter, InstrumentId, Nanos, Qty, SeqNo, Side, TimeInForce,
};

use super::context::State;
use super::quotes::{BeforeMass, Kept, QuoteTerms};
use super::{Conductor, Context, Markets, OrderPort, QUOTES_MAX, Quote, QuoteIntent, Strategy};
use crate::Position;
use crate::risk::BeforeCheck;

/// Bytes of the code that tells of a change, on x86-64: those of [`Conductor::on_applied`] and of a strategy
/// of a few lines.
const TELLING_CODE: usize = 2_048;
/// The same of a strategy that is compiled by itself.
const STRATEGY_CODE: usize = 512;
/// And of [`Conductor::on_apart`].
const APART_CODE: usize = 256;

impl<S: Strategy> Conductor<S> {
    /// The instrument whose order is rehearsed at present; `None` before the strategy has one.
    #[inline]
    pub fn rehearsed(&self) -> Option<InstrumentId> {
        let watch = self.rehearsals / 2 % self.watches.len().max(1);
        self.watches.get(watch).map(|watch| watch.instrument)
    }

    /// Fetches what neither a rehearsed event nor a rehearsed order goes through: the code that tells the
    /// strategy of a change, with the strategy's own, and what is noted of a book once the strategy has been
    /// told.
    pub fn fetch(&self) {
        prefetch::fetch_code(Self::on_applied as *const (), TELLING_CODE);
        prefetch::fetch_code(S::on_book as *const (), STRATEGY_CODE);
        prefetch::fetch_code(Self::on_apart as *const (), APART_CODE);
        prefetch::fetch_value(&self.last);
        if let Some(instrument) = self.rehearsed() {
            self.state.risk.fetch(instrument);
        }
    }

    /// From now on events of a book that changes ([`EventKind`](tickwire_market::EventKind): an order or a
    /// level that comes or goes) are rehearsed: what they do up to the strategy's callback is done, and the
    /// strategy is not called. Whether they can be: not within a group of messages whose changes wait to be
    /// told.
    pub fn begin_rehearsal(&mut self) -> bool {
        self.is_rehearsing = self.dirty.is_empty();
        self.is_rehearsing
    }

    /// The events that come are the venue's again.
    pub fn end_rehearsal(&mut self) {
        self.is_rehearsing = false;
    }

    /// Does with an order that the strategy could enter what entering it would, up to the message's bytes,
    /// and takes it back: no byte leaves, no number is used, nothing is counted against a limit, and the
    /// strategy is not asked. Each time it is one of another subscribed instrument, or of its other side: one
    /// unit at the price at which it would trade at once, immediate or cancel. Whether there was one to
    /// rehearse: there is none while an order is armed, of a book that is not live or has no such side, and
    /// where the port cannot rehearse.
    ///
    /// For a loop that has nothing else to do.
    pub fn rehearse(&mut self, now: Nanos, markets: Markets<'_>, port: &mut dyn OrderPort) -> bool {
        if self.watches.is_empty() || self.state.armed.is_some() {
            return false;
        }
        self.rehearsals = self.rehearsals.wrapping_add(1);
        let watch = &self.watches[self.rehearsals / 2 % self.watches.len()];
        let (instrument, top) = (watch.instrument, *watch.shown());
        let side = match self.rehearsals.is_multiple_of(2) {
            true => Side::Bid,
            false => Side::Ask,
        };
        let state = &mut self.state;
        let may_enter = state.may_enter.get(instrument.index()).copied();
        // Whatever else there is than the way of most orders is not rehearsed, and would not be taken back.
        if may_enter != Some(true) || state.orders.waiting() > 0 || top.state != BookState::Live {
            return false;
        }
        let (Some((price, _)), Some(order), Some(position)) = (
            top.best(!side),
            state.orders.before_next(),
            state.positions.at(instrument).copied(),
        ) else {
            return false;
        };
        if !port.begin_rehearsal() {
            return false;
        }
        let checks = state.risk.before_order(instrument);
        let mut context = Context {
            now,
            // As of a message, so that it is compared with the last order as such a one is.
            cause: Cause {
                seq: SeqNo(1),
                ..Cause::default()
            },
            markets,
            live: instrument,
            state,
            port,
        };
        let entered = context.limit(instrument, (side, Qty(1), price), TimeInForce::ImmediateOrCancel);
        context.port.end_rehearsal();
        let has_left = matches!(entered, Some(Ok(_)));
        let state = &mut self.state;
        if has_left {
            state.counters.take_back(Counter::OrdersSent);
        }
        state.orders.forget(order);
        state.positions.restore(instrument, position);
        state.risk.restore(instrument, checks);
        has_left
    }
}

/// What a mass quote changes of an instrument.
#[derive(Clone, Copy, Debug)]
pub(super) struct BeforeQuote {
    instrument: InstrumentId,
    kept: (usize, Kept),
    position: Position,
    checks: BeforeCheck,
}

impl Context<'_> {
    /// Does with quotes that were entered before what entering them again would, up to the message's bytes,
    /// and takes it back: nothing leaves and nothing is counted. Where one of them waits for an answer, or is
    /// to be looked at closer by a check, they are written only. For a loop that has nothing else to do, so
    /// that what a mass quote needs is in the caches when one has to leave.
    pub fn rehearse_quotes(&mut self, quotes: &[Quote], terms: QuoteTerms) {
        if quotes.len() > QUOTES_MAX {
            return;
        }
        let last_id = self.state.orders.last_id();
        let next_id = ClientOrderId(last_id.0 + 1);
        let is_noted = self.state.note_before(self.now, quotes);
        match self.state.quotes.before_mass(next_id) {
            Some(mass) if is_noted => {
                if self.port.begin_rehearsal() {
                    // Whether it would leave is no matter: what it needs has been gone through.
                    let has_left = self.quoted(quotes, terms).is_ok();
                    self.port.end_rehearsal();
                    self.state.take_back_quotes(mass, last_id, has_left);
                }
            }
            _ => self.write_quotes(quotes, terms),
        }
        self.state.quotes.before.clear();
    }

    /// Has quotes written that were entered before, as if every check had passed.
    fn write_quotes(&mut self, quotes: &[Quote], terms: QuoteTerms) {
        let mut places = [0; QUOTES_MAX];
        for (quote, place) in quotes.iter().zip(&mut places) {
            let Some(known) = self.state.quotes.place_of(quote.instrument) else {
                return;
            };
            *place = known;
        }
        let request = QuoteIntent::Mass {
            id: self.state.orders.last_id(),
            entries: self.state.quotes.entries(quotes, &places[..quotes.len()]),
            resets: terms.resets,
            cause: self.cause,
        };
        if self.port.begin_rehearsal() {
            let _ = self.port.quote(self.now, &request);
            self.port.end_rehearsal();
        }
    }
}

impl State {
    /// Notes what entering these quotes, up to as many as a message has, would change now; `false` where it
    /// would do more than what most quotes do.
    fn note_before(&mut self, now: Nanos, quotes: &[Quote]) -> bool {
        let Some(pass) = self.risk.quick_pass(now) else {
            return false;
        };
        quotes.iter().all(|quote| {
            let instrument = quote.instrument;
            let (Some(kept), Some(position)) =
                (self.quotes.settled(instrument), self.positions.at(instrument))
            else {
                return false;
            };
            self.quotes.before.push(BeforeQuote {
                instrument,
                kept,
                position: *position,
                checks: self.risk.before_order(instrument),
            });
            self.may_enter.get(instrument.index()) == Some(&true)
                && self.risk.passes(pass, instrument, &quote.sides, position)
        })
    }

    /// Makes everything what it was before quotes were entered, the last first.
    fn take_back_quotes(&mut self, mass: BeforeMass, last_id: ClientOrderId, has_left: bool) {
        while let Some(quote) = self.quotes.before.pop() {
            self.quotes.restore(quote.kept);
            self.positions.restore(quote.instrument, quote.position);
            self.risk.restore(quote.instrument, quote.checks);
        }
        self.quotes.restore_mass(mass);
        self.orders.take_back_id(last_id);
        if has_left {
            self.counters.take_back(Counter::MassQuotesSent);
        }
    }
}
