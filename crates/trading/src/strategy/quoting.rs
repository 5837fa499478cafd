//! How quotes are entered and cancelled, and what the venue's answers make of them.

use tickwire_market::{BookState, Cause, ClientOrderId, Counter, InstrumentId, Nanos, Price, Qty, Side};

use super::context::{State, not_sent};
use super::quotes::{Cancelling, QuoteTerms};
use super::{
    Conductor, Context, Markets, MassQuoteEvent, NotSent, OrderPort, OwnQuote, QUOTES_MAX, Quote, QuoteEvent,
    QuoteEventKind, QuoteIntent, QuoteReport, Rejected, Removal, Strategy,
};
use crate::RiskReject;
use crate::controls::QuickPass;

impl Context<'_> {
    /// Enters quotes of several instruments by one message, each in the place of the one that is there. What
    /// it gives is the number that the venue's answer names (QuoteID); an error names what stopped it, and
    /// nothing of it has left then. Each stands or falls for itself at the venue, and
    /// [`crate::strategy::Strategy::on_own_quote`] is told of each. One that was not answered yet must be
    /// before it is entered again.
    #[inline]
    pub fn mass_quote(&mut self, quotes: &[Quote]) -> Result<ClientOrderId, NotSent> {
        self.mass_quote_as(quotes, QuoteTerms::default())
    }

    /// The same, and asks the venue to go on after its protection has taken quotes away.
    pub fn mass_quote_again(&mut self, quotes: &[Quote]) -> Result<ClientOrderId, NotSent> {
        let resets = QuoteTerms {
            resets: true,
            ..QuoteTerms::default()
        };
        self.mass_quote_as(quotes, resets)
    }

    /// The same as it is said.
    #[inline]
    pub fn mass_quote_as(&mut self, quotes: &[Quote], terms: QuoteTerms) -> Result<ClientOrderId, NotSent> {
        let done = self.quoted(quotes, terms);
        self.counted(done)
    }

    /// Gives the quote of an instrument its name at the venue now, rather than when it is entered first:
    /// names are numbers in the order in which they are given. `None` if every place for quotes is taken
    /// (`max_quotes`), or the instrument was not subscribed to.
    pub fn name_quote(&mut self, instrument: InstrumentId) -> Option<u64> {
        let is_known = self.state.watched.get(instrument.index()) == Some(&true);
        is_known.then(|| self.state.quotes.name(instrument))?
    }

    /// Our quote of an instrument, if it has a name.
    #[inline]
    pub fn own_quote(&self, instrument: InstrumentId) -> Option<&OwnQuote> {
        self.state.quotes.of(instrument)
    }

    /// Our quotes of which something may trade.
    pub fn own_quotes(&self) -> impl Iterator<Item = &OwnQuote> + '_ {
        self.state.quotes.iter().filter(|quote| quote.is_open())
    }

    /// Asks for the cancellation of every quote of which something may trade and which is not being cancelled
    /// yet; how many. Until the venue has confirmed, they may trade.
    pub fn cancel_quotes(&mut self) -> u32 {
        self.cancel_quotes_of(|_| true)
    }

    /// Takes every quote away, by one message where the session has it for itself: those too that the venue
    /// has and we believe gone. [`crate::strategy::Strategy::on_mass_quote`] is told when all of it is done,
    /// under the number that this gives; asked for once more before that, the first number counts no more.
    ///
    /// # Errors
    /// [`NotSent::NotOpen`] where each had to be named and there is none.
    pub fn cancel_every_quote(&mut self) -> Result<ClientOrderId, NotSent> {
        let id = self.state.orders.issue_id();
        let request = QuoteIntent::CancelAll {
            id,
            cause: self.cause,
        };
        let done = self.port.quote(self.now, &request);
        let is_listed = match done {
            Ok(()) => false,
            Err(Rejected::Unsupported | Rejected::SeveralSessions) => true,
            Err(error) => return Err(not_sent(error)),
        };
        match is_listed {
            false => {
                for quote in self.state.quotes.iter_mut().filter(|quote| quote.is_open()) {
                    quote.cancel = Some(id);
                }
            }
            true => {
                self.cancel_quotes();
                if !self.state.quotes.iter().any(|quote| quote.cancel.is_some()) {
                    return Err(NotSent::NotOpen);
                }
            }
        }
        self.state.quotes.cancelling = Some(Cancelling { id, is_listed });
        Ok(id)
    }

    pub(super) fn cancel_quotes_of(&mut self, is_meant: impl Fn(InstrumentId) -> bool) -> u32 {
        let (mut all, mut most) = (0, QUOTES_MAX);
        loop {
            let id = self.state.orders.issue_id();
            let mut quotes = [Quote::none(InstrumentId::WHOLE_FEED); QUOTES_MAX];
            let (mut places, mut count) = ([0; QUOTES_MAX], 0);
            for (place, quote) in (0..).zip(self.state.quotes.iter_mut()) {
                if count < most && quote.is_open() && quote.cancel.is_none() && is_meant(quote.instrument) {
                    quote.cancel = Some(id);
                    (quotes[count], places[count]) = (Quote::none(quote.instrument), place);
                    count += 1;
                }
            }
            if count == 0 {
                return all;
            }
            let request = QuoteIntent::Cancel {
                id,
                entries: self.state.quotes.entries(&quotes[..count], &places[..count]),
                cause: self.cause,
            };
            if let Err(error) = self.port.quote(self.now, &request) {
                let sent = self.state.quotes.iter_mut();
                sent.filter(|quote| quote.cancel == Some(id))
                    .for_each(|quote| quote.cancel = None);
                if error == Rejected::SeveralSessions && most > 1 {
                    most = 1;
                    continue;
                }
                return all;
            }
            all += count as u32;
        }
    }

    // One copy of the code, so that a rehearsal brings into the caches what a mass quote needs.
    #[inline(never)]
    pub(super) fn quoted(&mut self, quotes: &[Quote], terms: QuoteTerms) -> Result<ClientOrderId, NotSent> {
        let state = &mut *self.state;
        if state.is_stopping {
            return Err(NotSent::Stopping);
        }
        if quotes.is_empty() || quotes.len() > QUOTES_MAX {
            return Err(NotSent::QuoteCount);
        }
        state.quotes.begin();
        let mut places = [0_u16; QUOTES_MAX];
        let pass = state.risk.quick_pass(self.now);
        for (quote, place) in quotes.iter().zip(&mut places) {
            *place = state.check_quote(self.now, pass, quote, terms.on_stale_book, self.markets)?;
        }
        let places = &places[..quotes.len()];
        state.risk.take_message(self.now).map_err(NotSent::Check)?;
        let id = state.orders.issue_id();
        for (quote, place) in quotes.iter().zip(places) {
            state.quotes.ask(id, *place, quote);
        }
        let request = QuoteIntent::Mass {
            id,
            entries: state.quotes.entries(quotes, places),
            resets: terms.resets,
            cause: self.cause,
        };
        let sent = self.port.quote(self.now, &request);
        // What left is counted behind it: nothing of it is looked at before this returns.
        state.quotes.note(id, places);
        for quote in quotes {
            let [(_, bid), (_, ask)] = quote.sides;
            state.positions.on_quoted(quote.instrument, [bid, ask]);
            state.risk.quoted(self.now, quote.instrument);
        }
        match sent {
            Ok(()) => {
                state.counters.bump(Counter::MassQuotesSent);
                Ok(id)
            }
            Err(error) => {
                for place in places {
                    state.unask(*place);
                }
                Err(not_sent(error))
            }
        }
    }
}

impl<S: Strategy> Conductor<S> {
    /// Applies what the venue said about quotes, and tells the strategy: of each quote, then of the request
    /// as a whole. What traded of a quote that is not known, and a trade that is taken back, put the kill
    /// switch on, as of orders.
    pub fn on_quote_report(
        &mut self,
        now: Nanos,
        report: &QuoteReport<'_>,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) {
        let every = 0..self.state.quotes.count();
        let message = match *report {
            QuoteReport::Answered { id, .. } => self.state.quotes.message(id),
            _ => None,
        };
        let cancelling = self.state.quotes.cancelling;
        let answers_mass = match *report {
            QuoteReport::Answered { id, .. } => message.is_some() || !self.state.quotes.is_cancelling(id),
            _ => false,
        };
        let told = match (*report, message) {
            (
                QuoteReport::Answered {
                    id,
                    is_rejected,
                    refused,
                },
                Some(message),
            ) => {
                let mut told = false;
                for place in message.places() {
                    let answered = self.state.answer_quote(*place, id, |name| {
                        !is_rejected && (refused.is_empty() || !refused.contains(&name))
                    });
                    if let Some(event) = answered {
                        told = true;
                        self.tell_own(now, &event, markets, port);
                    }
                }
                told
            }
            (QuoteReport::Removed { names, .. }, _) => names.iter().fold(false, |told, name| {
                let place = self.state.quotes.named(*name);
                told | place.is_some_and(|place| self.tell_quote(now, place, report, markets, port))
            }),
            (
                QuoteReport::Filled { name, .. }
                | QuoteReport::Broken { name, .. }
                | QuoteReport::Settled { name, .. },
                _,
            ) => {
                let place = self.state.quotes.named(name);
                place.is_some_and(|place| self.tell_quote(now, place, report, markets, port))
            }
            (QuoteReport::Status { id, left }, _) => return self.reconciled(now, id, left, markets, port),
            _ => every.fold(false, |told, place| {
                told | self.tell_quote(now, place, report, markets, port)
            }),
        };
        let is_cancel = cancelling.is_some_and(|all| match *report {
            QuoteReport::Cancelled { id, .. } | QuoteReport::Answered { id, .. } => id == all.id,
            _ => false,
        });
        // Several answers may come to one cancellation, of which the first counts.
        let may_repeat = matches!(
            report,
            QuoteReport::Unknown | QuoteReport::Cancelled { is_done: true, .. }
        );
        if !told && !may_repeat && !is_cancel {
            self.state.counters.bump(Counter::QuoteAnswersUnmatched);
        }
        let is_trade = matches!(report, QuoteReport::Filled { .. });
        if (is_trade && !told) || matches!(report, QuoteReport::Broken { .. }) {
            self.state.risk.kill();
        }
        self.tell_whole(
            now,
            report,
            (told && answers_mass, told, is_cancel),
            markets,
            port,
        );
    }

    /// Tells of one quote, if the report concerns it.
    fn tell_quote(
        &mut self,
        now: Nanos,
        place: u16,
        report: &QuoteReport<'_>,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) -> bool {
        let Some(event) = self.state.apply_quote(now, place, report) else {
            return false;
        };
        self.tell_own(now, &event, markets, port);
        true
    }

    #[inline(always)]
    fn tell_own(&mut self, now: Nanos, event: &QuoteEvent, markets: Markets<'_>, port: &mut dyn OrderPort) {
        self.call("on_own_quote", now, Cause::default(), markets, port, |s, ctx| {
            s.on_own_quote(ctx, event)
        });
    }

    /// Tells of the request that was answered, after its quotes.
    fn tell_whole(
        &mut self,
        now: Nanos,
        report: &QuoteReport<'_>,
        (answers_mass, told, is_cancel): (bool, bool, bool),
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) {
        match *report {
            QuoteReport::Cancelled { .. } | QuoteReport::Answered { .. } if is_cancel => {
                let is_done = report.cancels().unwrap_or_default();
                self.end_cancel(now, is_done, markets, port);
            }
            QuoteReport::Answered {
                id,
                is_rejected,
                refused,
            } if answers_mass => {
                let mut instruments = [InstrumentId::WHOLE_FEED; QUOTES_MAX];
                let mut count = 0;
                for name in refused {
                    let own = self.state.quotes.named(*name);
                    if let Some(own) = own.and_then(|place| self.state.quotes.at(place))
                        && count < QUOTES_MAX
                    {
                        instruments[count] = own.instrument;
                        count += 1;
                    }
                }
                let event = MassQuoteEvent::Answered {
                    id,
                    is_rejected,
                    refused: &instruments[..count],
                };
                self.tell_mass(now, &event, markets, port);
            }
            QuoteReport::Settled {
                id, name, is_refused, ..
            } if told => {
                let own = self.state.quotes.named(name);
                if let Some(instrument) = own
                    .and_then(|place| self.state.quotes.at(place))
                    .map(|own| own.instrument)
                {
                    let event = MassQuoteEvent::Settled {
                        id,
                        instrument,
                        is_refused,
                    };
                    self.tell_mass(now, &event, markets, port);
                }
            }
            QuoteReport::Removed {
                why: Removal::Protection,
                ..
            } => self.tell_mass(now, &MassQuoteEvent::Protected, markets, port),
            _ => {}
        }
        if let Some(all) = self.state.quotes.cancelling
            && all.is_listed
            && !self.state.quotes.iter().any(|quote| quote.cancel.is_some())
        {
            let is_done = !self.state.quotes.iter().any(OwnQuote::is_open);
            self.end_cancel(now, is_done, markets, port);
        }
    }

    /// The cancellation of every quote is answered.
    fn end_cancel(&mut self, now: Nanos, is_done: bool, markets: Markets<'_>, port: &mut dyn OrderPort) {
        if let Some(all) = self.state.quotes.cancelling.take() {
            let event = MassQuoteEvent::Cancelled { id: all.id, is_done };
            self.tell_mass(now, &event, markets, port);
        }
    }

    fn tell_mass(
        &mut self,
        now: Nanos,
        event: &MassQuoteEvent<'_>,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) {
        self.call("on_mass_quote", now, Cause::default(), markets, port, |s, ctx| {
            s.on_mass_quote(ctx, event)
        });
    }

    /// Every quote that there ever was.
    pub fn quotes(&self) -> impl Iterator<Item = &OwnQuote> + '_ {
        self.state.quotes.iter()
    }

    /// How many instruments may be quoted.
    pub fn quotes_max(&self) -> u16 {
        self.state.quotes.room()
    }

    /// The name of the first quote: others follow it, by their places.
    pub fn first_name(&self) -> u64 {
        self.state.quotes.first_name()
    }

    /// Whether a number that a report names is a quote's rather than an order's.
    pub fn is_quote(&self, number: u64) -> bool {
        self.state.quotes.is_name(number)
    }

    /// Cancels every quote of the instruments that `is_meant` says; how many. `again`: those too that a
    /// cancellation was asked for and not answered.
    pub fn cancel_quotes_of(
        &mut self,
        now: Nanos,
        again: bool,
        is_meant: impl Fn(InstrumentId) -> bool,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) -> u32 {
        if again {
            let meant = self.state.quotes.iter_mut();
            meant
                .filter(|quote| is_meant(quote.instrument))
                .for_each(|quote| quote.cancel = None);
        }
        self.context(now, Cause::default(), markets, port)
            .cancel_quotes_of(is_meant)
    }
}

impl QuoteReport<'_> {
    /// Of what may answer a cancellation: whether it was done. Up to FIX 4.2 one message answers both.
    fn cancels(&self) -> Option<bool> {
        match *self {
            QuoteReport::Cancelled { is_done, .. } => Some(is_done),
            QuoteReport::Answered { is_rejected, .. } => Some(!is_rejected),
            _ => None,
        }
    }
}

impl State {
    /// Whether a quote may leave; the place that it has then.
    #[inline(always)]
    fn check_quote(
        &mut self,
        now: Nanos,
        pass: Option<QuickPass>,
        quote: &Quote,
        on_stale_book: bool,
        markets: Markets<'_>,
    ) -> Result<u16, NotSent> {
        let instrument = quote.instrument;
        let may_enter = self.may_enter.get(instrument.index());
        if may_enter != Some(&true) {
            self.check_closed(quote)?;
        }
        let place = self.quotes.take_place(instrument)?;
        if !on_stale_book && quote.is_any() {
            let book = markets.book(instrument).ok_or(NotSent::UnknownInstrument)?;
            if book.state() != BookState::Live {
                return Err(NotSent::StaleBook);
            }
        }
        let position = self.positions.at(instrument).ok_or(NotSent::UnknownInstrument)?;
        if !pass.is_some_and(|pass| self.risk.passes(pass, instrument, &quote.sides, position)) {
            let checked = self.risk.check_quote(now, instrument, &quote.sides, position);
            checked.map_err(NotSent::Check)?;
        }
        match self.orders.open() > 0 && self.meets_orders(quote) {
            true => Err(NotSent::Check(RiskReject::SelfTrade)),
            false => Ok(place),
        }
    }

    /// Of an instrument in which nothing may be entered: a quote may still be taken away.
    #[cold]
    fn check_closed(&self, quote: &Quote) -> Result<(), NotSent> {
        match self.watched.get(quote.instrument.index()) {
            Some(true) if quote.is_any() => Err(NotSent::NotTrading),
            Some(true) => Ok(()),
            _ => Err(NotSent::UnknownInstrument),
        }
    }

    /// What was asked for could not be sent.
    #[cold]
    fn unask(&mut self, place: u16) {
        if let Some(own) = self.quotes.at_mut(place) {
            let gone = own.answer(false);
            self.quote_gone(place, gone);
        }
    }

    /// The venue has nothing of a quote any more.
    pub(super) fn lose_quote(&mut self, place: u16) {
        let Some(own) = self.quotes.at_mut(place) else {
            return;
        };
        own.cancel = None;
        let (live, asked) = (own.leave([Qty::ZERO; 2]), own.answer(false));
        self.quote_gone(place, [0, 1].map(|side| Qty(live[side].0 + asked[side].0)));
    }

    /// Whether a quote could trade with an order of ours that rests: what trades at once is over at the venue
    /// when a quote that left behind it comes there.
    fn meets_orders(&self, quote: &Quote) -> bool {
        let is_met = |side: Side, (price, qty): (Price, Qty)| {
            let mut orders = self.orders.iter_open();
            !qty.is_zero()
                && orders.any(|order| {
                    order.instrument == quote.instrument
                        && (order.time_in_force.rests() || order.is_waiting())
                        && order.is_met(side, price, None)
                })
        };
        is_met(Side::Bid, quote.sides[0]) || is_met(Side::Ask, quote.sides[1])
    }

    /// So much of a quote does not count any more.
    fn quote_gone(&mut self, place: u16, gone: [Qty; 2]) {
        if let Some(own) = self.quotes.at(place) {
            self.positions.on_unquoted(own.instrument, gone);
        }
    }

    /// The mass quote of this number is answered, which the quote at a place may wait for: whether it
    /// `is_taken`, by its name.
    #[inline(always)]
    fn answer_quote(
        &mut self,
        place: u16,
        id: ClientOrderId,
        is_taken: impl FnOnce(u64) -> bool,
    ) -> Option<QuoteEvent> {
        let own = self.quotes.at_mut(place)?;
        if own.asked.as_ref().is_none_or(|(asked, _)| *asked != id) {
            return None;
        }
        let is_taken = is_taken(own.name);
        let gone = own.answer(is_taken);
        self.positions.on_unquoted(own.instrument, gone);
        Some(QuoteEvent {
            quote: *own,
            kind: match is_taken {
                true => QuoteEventKind::Accepted,
                false => QuoteEventKind::Refused,
            },
        })
    }

    /// What a report makes of one of the quotes, by its place; `None` if it does not concern it.
    fn apply_quote(&mut self, now: Nanos, place: u16, report: &QuoteReport<'_>) -> Option<QuoteEvent> {
        let quote = self.quotes.at_mut(place)?;
        let instrument = quote.instrument;
        let asked = quote.asked.map(|(id, _)| id);
        let (gone, kind) = match *report {
            QuoteReport::Answered {
                id,
                is_rejected,
                refused,
            } if asked == Some(id) => {
                return self.answer_quote(place, id, |name| !is_rejected && !refused.contains(&name));
            }
            QuoteReport::Settled {
                id, live, is_refused, ..
            } if asked == Some(id) => {
                let kind = match is_refused {
                    false => QuoteEventKind::Accepted,
                    true => QuoteEventKind::Refused,
                };
                let before = Side::BOTH.map(|side| quote.open(side));
                quote.settle(live);
                let mut gone = [Qty::ZERO; 2];
                for (side, before) in Side::BOTH.into_iter().zip(before) {
                    let after = quote.open(side);
                    gone[side as usize] = Qty(before.0.saturating_sub(after.0));
                    let more = Qty(after.0.saturating_sub(before.0));
                    self.positions.on_sent(instrument, side, more);
                }
                (gone, kind)
            }
            QuoteReport::Removed { why, .. } => (quote.leave([Qty::ZERO; 2]), QuoteEventKind::Removed(why)),
            QuoteReport::Cancelled { id, .. } | QuoteReport::Answered { id, .. }
                if quote.cancel == Some(id) =>
            {
                quote.cancel = None;
                match report.cancels() == Some(true) {
                    // What was asked for before it and has no answer never came there.
                    true => {
                        let (live, asked) = (quote.leave([Qty::ZERO; 2]), quote.answer(false));
                        let gone = [0, 1].map(|side| Qty(live[side].0 + asked[side].0));
                        (gone, QuoteEventKind::Cancelled)
                    }
                    false => ([Qty::ZERO; 2], QuoteEventKind::CancelRefused),
                }
            }
            QuoteReport::Left { instrument: of, left } if of == instrument => {
                (quote.leave(left), QuoteEventKind::Removed(Removal::Other))
            }
            QuoteReport::Filled {
                side,
                qty,
                price,
                of: entered,
                ..
            } => {
                let counted = quote.fill(side, qty, entered);
                // What had not counted is taken for open until now: the position must know of it.
                let unknown = Qty(qty.0 - counted.0);
                self.positions.on_sent(instrument, side, unknown);
                self.positions.on_fill(instrument, side, qty, price);
                self.risk.quote_filled(now, instrument, (side, qty, price));
                self.counters.bump(Counter::Fills);
                ([Qty::ZERO; 2], QuoteEventKind::Filled { side, qty, price })
            }
            QuoteReport::Broken { side, qty, price, .. } => {
                self.positions.on_broken(instrument, side, qty, price);
                self.risk.quote_broken(instrument, (side, qty, price));
                self.counters.bump(Counter::TradesBroken);
                ([Qty::ZERO; 2], QuoteEventKind::Broken { side, qty, price })
            }
            QuoteReport::Unknown if asked.is_some() => (quote.answer(false), QuoteEventKind::Refused),
            QuoteReport::Unknown if quote.cancel.take().is_some() => {
                ([Qty::ZERO; 2], QuoteEventKind::CancelRefused)
            }
            _ => return None,
        };
        let quote = *quote;
        self.quote_gone(place, gone);
        Some(QuoteEvent { quote, kind })
    }
}
