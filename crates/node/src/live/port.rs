//! Where requests of a strategy go: into the session and out, inside the callback.

use tickwire_fix::{
    Again, Encoder, MassQuoteHead, MassQuoteTemplate, NewOrder, OrderRequest, PreparedQuote, QuoteLine,
    Stamp, Version, put_cancel_all_quotes, put_cancel_quotes, put_mass_quote, put_quote_status_request,
};
use tickwire_lab::{Probes, Stage};
use tickwire_market::{Cause, InstrumentId, Nanos, OrderIntent, Symbol, Venue};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_trading::strategy::{
    ArmEnd, ArmRefusal, Conductor, OrderPort, QUOTES_MAX, QuoteEntries, QuoteEntry, QuoteIntent, Rejected,
    Strategy, place_of,
};

use super::arming::end_of;
use super::{Hosted, QuoteForm, Traded, Wiring};
use crate::hot::{OrderOut, OrderSession, stamp};

/// Where the strategy's requests go: into the session and out, inside the callback.
pub(super) struct Port<'a, O, S, const STAMPED: bool> {
    pub(super) sessions: &'a mut Vec<OrderSession<O>>,
    pub(super) wiring: &'a mut Wiring,
    pub(super) bits: u32,
    pub(super) probes: &'a mut Probes,
    pub(super) clock: &'a Clock,
    /// What is sent has the time of its event.
    pub(super) by_event_time: bool,
    /// The other strategies, if there are any.
    pub(super) others: Option<[&'a [Hosted<S>]; 2]>,
    /// By channel.
    pub(super) venues: &'a Vec<Venue>,
    /// Whose packet is in hand, and the number of its message; 0 outside of one.
    pub(super) source: usize,
    pub(super) seq: u64,
    /// What is sent is written, and nothing else.
    pub(super) is_rehearsal: bool,
}

impl<O: OrderOut, S: Strategy, const STAMPED: bool> Port<'_, O, S, STAMPED> {
    #[inline]
    fn session_of(&self, instrument: InstrumentId) -> usize {
        let source = instrument.index() >> self.bits;
        self.wiring.routes.get(source).copied().unwrap_or_default()
    }

    /// Sends a message that is kept for no resend: see [`crate::hot`].
    fn message(
        &mut self,
        session: usize,
        now: Nanos,
        msg_type: &[u8],
        fields: impl FnOnce(&mut Encoder<'_>, &mut Stamp),
    ) -> Result<(), Rejected> {
        let session = self.sessions.get_mut(session).ok_or(Rejected::NoSession)?;
        let sent = session.fix.send(now, msg_type, Again::GapFill, fields);
        sent.map_err(|_| Rejected::NoSession)?;
        session.transmit();
        Ok(())
    }

    /// Whether the message that caused an order is one of the venue that it goes to: another venue has never
    /// published it.
    #[inline]
    fn is_cause_known(&self, session: usize, cause: Cause) -> bool {
        if self.sessions.len() < 2 {
            return true;
        }
        if self.seq > 0 {
            return self
                .wiring
                .routes
                .get(self.source)
                .is_none_or(|route| *route == session);
        }
        let of_venue = self
            .venues
            .iter()
            .zip(&self.wiring.routes)
            .filter(|(venue, _)| **venue == cause.venue);
        let mut routes = of_venue.map(|(_, route)| *route == session).peekable();
        routes.peek().is_some() && routes.all(|is_known| is_known)
    }

    /// Whether a request is one that another strategy has something against; of one alone nothing is looked
    /// at.
    #[inline]
    fn is_met(&self, is_by: impl Fn(&Conductor<S>) -> bool) -> bool {
        let mut others = self.others.into_iter().flatten().flatten();
        others.any(|hosted| is_by(&hosted.conductor))
    }
}

impl<O: OrderOut, S: Strategy, const STAMPED: bool> Port<'_, O, S, STAMPED> {
    /// The session that all of these are traded over, if it is one.
    #[inline]
    fn session_of_quotes(&self, entries: QuoteEntries<'_>) -> Result<usize, Rejected> {
        let first = entries.quotes().first().ok_or(Rejected::Unsupported)?;
        let session = self.session_of(first.instrument);
        if self.sessions.len() > 1 {
            let mut quotes = entries.quotes().iter();
            if !quotes.all(|quote| self.session_of(quote.instrument) == session) {
                return Err(Rejected::SeveralSessions);
            }
        }
        Ok(session)
    }

    /// Sends quotes as a prepared message; `None` where it cannot say them, and nothing has left then.
    #[inline]
    fn send_quotes(
        &mut self,
        place: usize,
        now: Nanos,
        head: &MassQuoteHead,
        entries: QuoteEntries<'_>,
    ) -> Option<()> {
        let QuoteForm::Prepared(template) = self.wiring.quotes.get_mut(place)? else {
            return None;
        };
        let session = self.sessions.get_mut(place)?;
        if self.is_rehearsal {
            if let Some(bytes) = template.rehearse_prepared(&mut session.fix, now, head, prepared(entries)) {
                session.rehearse_gathering(bytes);
            }
            return Some(());
        }
        if let Ok(bytes) = template.send_prepared(&mut session.fix, now, head, prepared(entries)) {
            session.gather(bytes);
            return Some(());
        }
        // Some of them have not been quoted before.
        prepare(template, &self.wiring.traded, entries);
        let sent = template.send_prepared(&mut session.fix, now, head, prepared(entries));
        session.gather(sent.ok()?);
        Some(())
    }

    /// Sends one quote as orders.
    #[cold]
    fn send_sides(
        &mut self,
        place: usize,
        now: Nanos,
        request: &QuoteIntent<'_>,
    ) -> Option<Result<(), Rejected>> {
        if !matches!(self.wiring.quotes.get(place)?, QuoteForm::Orders(_)) {
            return None;
        }
        let one = match *request {
            QuoteIntent::Mass { entries, .. } if entries.len() == 1 => entries.iter().next(),
            _ => None,
        };
        let symbol = one.map_or(Symbol::EMPTY, |entry| self.symbol_of(entry.quote.instrument));
        let (QuoteForm::Orders(sides), Some(session)) =
            (self.wiring.quotes.get_mut(place)?, self.sessions.get_mut(place))
        else {
            return Some(Err(Rejected::NoSession));
        };
        Some(match (*request, one) {
            (QuoteIntent::Mass { id, cause, .. }, Some(entry)) => {
                sides.quote(session, now, id, &entry, symbol, cause)
            }
            (QuoteIntent::CancelAll { id, .. }, _) => sides.cancel_all(session, now, Some(id)),
            // Quotes that are orders are entered one at a time, and known one by one from their reports.
            _ => Err(Rejected::Unsupported),
        })
    }

    /// The only session that this strategy trades over, where no other strategy does.
    fn own_session(&self) -> Result<usize, Rejected> {
        let session = self.wiring.only.ok_or(Rejected::SeveralSessions)?;
        let mut others = self.others.into_iter().flatten().flatten();
        match others.any(|hosted| hosted.uses(session)) {
            true => Err(Rejected::Unsupported),
            false => Ok(session),
        }
    }

    /// Sends a request about quotes from no prepared message.
    #[cold]
    fn send_quote_request(
        &mut self,
        place: usize,
        now: Nanos,
        request: &QuoteIntent<'_>,
    ) -> Result<(), Rejected> {
        let (entries, cause) = match *request {
            QuoteIntent::Mass { entries, cause, .. } | QuoteIntent::Cancel { entries, cause, .. } => {
                (Some(entries), cause)
            }
            QuoteIntent::CancelAll { cause, .. } => (None, cause),
            QuoteIntent::Status { .. } => (None, Cause::default()),
        };
        let cause = self.is_cause_known(place, cause).then_some(cause);
        let mut lines = [QuoteLine::default(); QUOTES_MAX];
        let mut count = 0;
        for entry in entries.iter().flat_map(QuoteEntries::iter).take(QUOTES_MAX) {
            lines[count] = line(&entry, self.symbol_of(entry.quote.instrument));
            count += 1;
        }
        let lines = &lines[..count];
        let asked = match *request {
            QuoteIntent::Status { entry, .. } => self.symbol_of(entry.quote.instrument),
            _ => Symbol::EMPTY,
        };
        let session = self.sessions.get_mut(place).ok_or(Rejected::NoSession)?;
        let least = match request {
            // Its number is in the standard since then.
            QuoteIntent::Status { .. } => Version::Fix44,
            _ => Version::Fix42,
        };
        if session.fix.config().version < least {
            return Err(Rejected::Unsupported);
        }
        let sent = match *request {
            QuoteIntent::Mass { id, resets, .. } => session.fix.send(now, b"i", Again::GapFill, |e, _| {
                put_mass_quote(e, id.0, cause, resets, lines)
            }),
            QuoteIntent::Cancel { id, .. } => session.fix.send(now, b"Z", Again::GapFill, |e, _| {
                put_cancel_quotes(e, id.0, lines)
            }),
            QuoteIntent::CancelAll { id, .. } => session
                .fix
                .send(now, b"Z", Again::GapFill, |e, _| put_cancel_all_quotes(e, id.0)),
            QuoteIntent::Status { id, .. } => session.fix.send(now, b"a", Again::GapFill, |e, _| {
                put_quote_status_request(e, id.0, &asked)
            }),
        };
        sent.map_err(|_| Rejected::NoSession)?;
        session.transmit();
        Ok(())
    }

    fn symbol_of(&self, instrument: InstrumentId) -> Symbol {
        let traded = self
            .wiring
            .traded
            .get(instrument.index())
            .and_then(Option::as_deref);
        traded.map_or(Symbol::EMPTY, |traded| traded.symbol)
    }
}

impl<O: OrderOut, S: Strategy, const STAMPED: bool> Port<'_, O, S, STAMPED> {
    /// An order is armed over the first session alone.
    #[inline(always)]
    fn release_armed(&mut self, now: Nanos) {
        if let Some(session) = self.sessions.first_mut() {
            session.release_armed(now);
        }
    }

    #[inline(always)]
    fn is_alone(&self) -> bool {
        self.others.is_none()
    }

    /// Sends a new order from its instrument's prepared message; `None` if it has none, or cannot say the
    /// order.
    #[inline(always)]
    fn send_prepared(
        &mut self,
        place: usize,
        now: Nanos,
        instrument: InstrumentId,
        request: &OrderIntent,
    ) -> Option<Result<(), Rejected>> {
        let traded = self
            .wiring
            .traded
            .get_mut(instrument.index())
            .and_then(Option::as_deref_mut)?;
        let (template, order) = (traded.template.as_mut()?, NewOrder::of(request)?);
        let Some(session) = self.sessions.get_mut(place) else {
            return Some(Err(Rejected::NoSession));
        };
        if self.is_rehearsal {
            if let Some(bytes) = template.rehearse(&mut session.fix, now, &order) {
                session.out.rehearse(bytes);
            }
            return Some(Ok(()));
        }
        let Ok(bytes) = template.send(&mut session.fix, now, &order, Again::GapFill) else {
            return Some(Err(Rejected::NoSession));
        };
        stamp::<STAMPED>(self.probes, Stage::Encode);
        if !session.holds_nothing() {
            session.launch_held();
        }
        let sent = session.out.launch(bytes);
        stamp::<STAMPED>(self.probes, Stage::Send);
        let settled = session.settle();
        // An order that no message caused has no way from a packet to measure.
        if STAMPED
            && self.seq > 0
            && let Some(sample) = self.probes.commit(self.seq)
        {
            session.out.note(sample);
        }
        if let Err(error) = sent.and(settled) {
            session.failure.get_or_insert(error);
        }
        Some(Ok(()))
    }

    /// Sends any request: of several strategies, over several sessions, from no prepared message.
    #[inline(never)]
    fn send_any(&mut self, now: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        let (instrument, cause) = (request.instrument(), request.cause());
        let without_cause;
        let request = match self.is_cause_known(self.session_of(instrument), cause) {
            true => request,
            false => {
                without_cause = request.without_cause();
                &without_cause
            }
        };
        if self.is_met(|other| other.meets(request)) {
            return Err(Rejected::SelfTrade);
        }
        let place = self.session_of(instrument);
        if matches!(request, OrderIntent::New { .. })
            && let Some(done) = self.send_prepared(place, now, instrument, request)
        {
            return done;
        }
        let traded = self
            .wiring
            .traded
            .get(instrument.index())
            .and_then(Option::as_deref);
        let symbol = traded.ok_or(Rejected::NoSession)?.symbol;
        if self.is_rehearsal {
            // What is written otherwise than from a prepared message is not rehearsed.
            return Ok(());
        }
        let message = OrderRequest::of(request, symbol, now);
        self.message(place, now, message.msg_type(), |e, stamp| {
            message.encode(e, stamp)
        })
    }
}

impl<O: OrderOut, S: Strategy, const STAMPED: bool> OrderPort for Port<'_, O, S, STAMPED> {
    #[inline]
    fn send(&mut self, now: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        if !self.is_rehearsal {
            self.release_armed(now);
        }
        let now = match self.by_event_time {
            true => now,
            false => {
                let decided = tsc();
                if STAMPED {
                    self.probes.mark(Stage::Decide, decided);
                }
                self.clock.nanos_at(decided)
            }
        };
        if self.sessions.len() < 2
            && self.is_alone()
            && let OrderIntent::New { instrument, .. } = request
            && let Some(done) = self.send_prepared(0, now, *instrument, request)
        {
            return done;
        }
        self.send_any(now, request)
    }

    /// Kept for no resend, as orders are not. A mass quote leaves with those of the same packet
    /// ([`OrderSession::let_go`]).
    fn quote(&mut self, now: Nanos, request: &QuoteIntent<'_>) -> Result<(), Rejected> {
        if !self.is_rehearsal {
            self.release_armed(now);
        }
        if self.others.is_some() && self.is_met(|other| other.meets_quotes(request)) {
            return Err(Rejected::SelfTrade);
        }
        let place = match *request {
            QuoteIntent::Mass {
                id,
                entries,
                resets,
                cause,
            } => {
                let place = self.session_of_quotes(entries)?;
                if self.is_cause_known(place, cause) {
                    let head = MassQuoteHead {
                        id: id.0,
                        cause,
                        reset: resets,
                    };
                    if self.send_quotes(place, now, &head, entries).is_some() {
                        return Ok(());
                    }
                }
                place
            }
            QuoteIntent::Cancel { entries, .. } => self.session_of_quotes(entries)?,
            QuoteIntent::CancelAll { .. } => self.own_session()?,
            QuoteIntent::Status { entry, .. } => self.session_of(entry.quote.instrument),
        };
        if self.is_rehearsal {
            // As of orders: only prepared messages are.
            return Ok(());
        }
        match self.send_sides(place, now, request) {
            Some(done) => done,
            None => self.send_quote_request(place, now, request),
        }
    }

    fn begin_rehearsal(&mut self) -> bool {
        self.is_rehearsal = true;
        true
    }

    fn end_rehearsal(&mut self) {
        self.is_rehearsal = false;
    }

    fn arms(&self) -> Result<(), ArmRefusal> {
        self.wiring.arms
    }

    #[cold]
    fn disarm(&mut self, now: Nanos) -> ArmEnd {
        self.release_armed(now);
        let told = self
            .sessions
            .first_mut()
            .and_then(|session| session.shooting(now));
        told.map_or(ArmEnd::TakenBack, end_of)
    }
}

/// Quotes as a prepared message has them.
#[inline]
fn prepared(entries: QuoteEntries<'_>) -> impl ExactSizeIterator<Item = PreparedQuote> {
    let quotes = entries.quotes().iter().zip(entries.places());
    quotes.map(|(quote, place)| PreparedQuote {
        place: *place,
        sides: quote.sides,
    })
}

/// Writes what does not change of these instruments' quotes into their places.
#[cold]
fn prepare(template: &mut MassQuoteTemplate, traded: &[Option<Box<Traded>>], entries: QuoteEntries<'_>) {
    for entry in entries.iter() {
        if let Some(Some(traded)) = traded.get(entry.quote.instrument.index()) {
            // What cannot be prepared is written by the encoder.
            template.prepare(place_of(entry.name), entry.name, traded.symbol, traded.tick);
        }
    }
}

/// The bid and the offer of a quote with its names.
fn line(entry: &QuoteEntry, symbol: Symbol) -> QuoteLine {
    QuoteLine {
        name: entry.name,
        symbol,
        sides: entry.quote.sides,
    }
}
