//! Our quotes: pairs of a bid and an offer, entered for several instruments at a time.

use alloc::vec;
use alloc::vec::Vec;

use tickwire_market::{BookState, Cause, ClientOrderId, Counter, InstrumentId, Nanos, Price, Qty, Side};

use super::context::{State, not_sent};
use super::{Conductor, Context, Markets, NotSent, OrderPort, Rejected, Strategy};
use crate::RiskReject;

/// The most instruments of one mass quote.
pub const QUOTES_MAX: usize = crate::ENTRIES_MAX;

/// Names of quotes begin so far behind the numbers of their strategy's orders: a report says by its number
/// which it is about.
pub(super) const NAMES: u64 = 900_000_000_000;

/// The place of a quote among those of its strategy, below 65 535, by its name ([`QuoteEntry::name`]).
#[inline]
pub fn place_of(name: u64) -> u16 {
    (name % super::NUMBERS).saturating_sub(NAMES) as u16
}

/// What is wanted of one instrument: it takes the place of the quote that is there as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quote {
    /// Of what.
    pub instrument: InstrumentId,
    /// Price and quantity by [`Side`]; a side without quantity is taken away.
    pub sides: [(Price, Qty); 2],
}

impl Quote {
    /// A bid and an offer of the same quantity.
    pub fn new(instrument: InstrumentId, qty: u32, bid: Price, ask: Price) -> Quote {
        Quote {
            instrument,
            sides: [(bid, Qty(qty)), (ask, Qty(qty))],
        }
    }

    /// The quote is taken away.
    pub fn none(instrument: InstrumentId) -> Quote {
        Quote {
            instrument,
            sides: [(Price::ZERO, Qty::ZERO); 2],
        }
    }

    /// Whether there is something of it.
    pub(super) fn is_any(&self) -> bool {
        self.sides.iter().any(|(_, qty)| !qty.is_zero())
    }
}

/// A quote on its way to the venue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuoteEntry {
    /// Its name at the venue, the same for every quote of the instrument: QuoteEntryID (299), and ClOrdID
    /// (11) of its fills.
    pub name: u64,
    /// What is quoted.
    pub quote: Quote,
}

impl QuoteEntry {
    /// None.
    pub(super) const EMPTY: QuoteEntry = QuoteEntry {
        name: 0,
        quote: Quote {
            instrument: InstrumentId::WHOLE_FEED,
            sides: [(Price::ZERO, Qty::ZERO); 2],
        },
    };
}

/// A request about quotes, which has passed every check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuoteIntent<'a> {
    /// Quotes of several instruments in one message. FIX MassQuote (35=i).
    Mass {
        /// QuoteID (117).
        id: ClientOrderId,
        /// Up to [`QUOTES_MAX`], of different instruments.
        entries: &'a [QuoteEntry],
        /// Quoting goes on after the venue's protection. MMProtectionReset (9773).
        resets: bool,
        /// What triggered it.
        cause: Cause,
    },
    /// Takes the quotes of these instruments away. FIX QuoteCancel (35=Z).
    Cancel {
        /// QuoteID (117).
        id: ClientOrderId,
        /// The quotes that are live.
        entries: &'a [QuoteEntry],
        /// What triggered it.
        cause: Cause,
    },
}

/// A side of a quote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QuoteSide {
    /// At which price.
    pub price: Price,
    /// How much was entered.
    pub qty: Qty,
    /// What may still trade.
    pub left: Qty,
}

impl QuoteSide {
    fn of((price, qty): (Price, Qty)) -> QuoteSide {
        QuoteSide {
            price,
            qty,
            left: qty,
        }
    }

    /// Takes away what has traded, or as much as is there.
    fn take(&mut self, qty: Qty) -> Qty {
        let taken = Qty(qty.0.min(self.left.0));
        self.left = Qty(self.left.0 - taken.0);
        taken
    }
}

/// Our quote of an instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnQuote {
    /// Its name at the venue.
    pub name: u64,
    /// Of what.
    pub instrument: InstrumentId,
    /// What the venue has of it, by [`Side`].
    pub live: [QuoteSide; 2],
    /// What was asked for and not answered: until then both count.
    pub asked: Option<(ClientOrderId, [QuoteSide; 2])>,
    /// The request to cancel it that was not answered.
    pub cancel: Option<ClientOrderId>,
}

impl OwnQuote {
    /// What may trade of a side, whether the venue takes what was asked for or not.
    pub fn open(&self, side: Side) -> Qty {
        let asked = self.asked.map_or(0, |(_, asked)| asked[side as usize].left.0);
        Qty(self.live[side as usize].left.0.saturating_add(asked))
    }

    /// Whether anything of it may trade.
    pub fn is_open(&self) -> bool {
        Side::BOTH.into_iter().any(|side| !self.open(side).is_zero())
    }

    /// Prices at which something of a side may trade.
    pub(super) fn prices(&self, side: Side) -> impl Iterator<Item = Price> {
        let asked = self
            .asked
            .map_or(QuoteSide::default(), |(_, asked)| asked[side as usize]);
        let all = [self.live[side as usize], asked].into_iter();
        all.filter(|side| !side.left.is_zero()).map(|side| side.price)
    }

    pub(super) fn entry(&self) -> QuoteEntry {
        QuoteEntry {
            name: self.name,
            quote: Quote::none(self.instrument),
        }
    }
}

/// What the venue said about quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuoteReport<'a> {
    /// A mass quote was taken, but for the quotes named; or none of it.
    Answered {
        /// Which.
        id: ClientOrderId,
        /// None of it was.
        is_rejected: bool,
        /// Quotes that were refused: what was there before stays.
        refused: &'a [u64],
    },
    /// Quotes are gone without having been asked for.
    Removed {
        /// Which.
        names: &'a [u64],
    },
    /// A request to cancel was done, or refused.
    Cancelled {
        /// Which.
        id: ClientOrderId,
        /// It was done.
        is_done: bool,
    },
    /// What is left of a quote.
    Left {
        /// Of what.
        instrument: InstrumentId,
        /// By [`Side`].
        left: [Qty; 2],
    },
    /// Some of a quote traded.
    Filled {
        /// Which.
        name: u64,
        /// Whether it was the bid.
        side: Side,
        /// How much, this time.
        qty: Qty,
        /// At what price.
        price: Price,
        /// Price and quantity of the side as it was entered: that of an earlier quote, or of one that was not
        /// answered yet.
        of: (Price, Qty),
    },
    /// The venue takes a trade of a quote back.
    Broken {
        /// Which.
        name: u64,
        /// Whether it was the bid.
        side: Side,
        /// How much had traded.
        qty: Qty,
        /// At what price.
        price: Price,
    },
    /// The venue does not know such requests: whatever was not answered was not done.
    Unknown,
}

/// What has happened to a quote of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuoteEvent {
    /// The quote as it is now.
    pub quote: OwnQuote,
    /// What happened.
    pub kind: QuoteEventKind,
}

/// What has happened to a quote of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuoteEventKind {
    /// The venue has taken it.
    Accepted,
    /// The venue has refused it: the one before stands.
    Refused,
    /// Some of it traded.
    Filled {
        /// Whether it was the bid.
        side: Side,
        /// How much.
        qty: Qty,
        /// At what price.
        price: Price,
    },
    /// A trade of it was taken back.
    Broken {
        /// Whether it was the bid.
        side: Side,
        /// How much.
        qty: Qty,
        /// At what price.
        price: Price,
    },
    /// It, or a part of it, is gone without having been asked for: by the venue's protection, a lost
    /// connection, the end of the day.
    Removed,
    /// It is cancelled, as was asked for.
    Cancelled,
    /// The request to cancel it was refused: it lives on.
    CancelRefused,
}

/// No quote.
const NONE: u16 = u16::MAX;

/// Every quote of a strategy.
#[derive(Clone, Debug)]
pub(super) struct Quotes {
    of_instrument: Vec<u16>,
    quotes: Vec<OwnQuote>,
    /// By place: the mass quote that named it last.
    rounds: Vec<u32>,
    round: u32,
    first_name: u64,
}

impl Quotes {
    /// Room for so many, below 65 535.
    pub(super) fn new(instruments: u32, max_quotes: u32, first_name: u64) -> Quotes {
        let room = max_quotes.min(u32::from(NONE)) as usize;
        Quotes {
            of_instrument: if room == 0 {
                Vec::new()
            } else {
                vec![NONE; instruments as usize]
            },
            quotes: Vec::with_capacity(room),
            rounds: vec![0; room],
            round: 0,
            first_name,
        }
    }

    /// The quote of an instrument, if there ever was one.
    #[inline]
    pub(super) fn of(&self, instrument: InstrumentId) -> Option<&OwnQuote> {
        self.quotes
            .get(usize::from(*self.of_instrument.get(instrument.index())?))
    }

    pub(super) fn of_mut(&mut self, instrument: InstrumentId) -> Option<&mut OwnQuote> {
        let place = usize::from(*self.of_instrument.get(instrument.index())?);
        self.quotes.get_mut(place)
    }

    /// Whether an order at a price, or a stop order with a trigger whose worst price that is, could trade
    /// with one of them: see [`crate::Order::is_met`].
    pub(super) fn is_met(
        &self,
        instrument: InstrumentId,
        side: Side,
        price: Price,
        stop: Option<Price>,
    ) -> bool {
        let mut prices = self
            .of(instrument)
            .into_iter()
            .flat_map(|quote| quote.prices(!side));
        prices.any(|quoted| match (side, stop) {
            (Side::Bid, None) => price >= quoted,
            (Side::Ask, None) => price <= quoted,
            (Side::Bid, Some(trigger)) => trigger <= quoted && quoted <= price,
            (Side::Ask, Some(trigger)) => price <= quoted && quoted <= trigger,
        })
    }

    /// Whether a number is a name of a quote rather than an order's.
    pub(super) fn is_name(&self, number: u64) -> bool {
        number >= self.first_name && number - self.first_name < u64::from(NONE)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &OwnQuote> + '_ {
        self.quotes.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut OwnQuote> + '_ {
        self.quotes.iter_mut()
    }

    /// Places there are.
    fn room(&self) -> u16 {
        self.rounds.len() as u16
    }

    /// Another mass quote begins.
    fn begin(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// The quote of an instrument, which has a place from now on.
    ///
    /// # Errors
    /// Every place is taken, or the mass quote under way has named the instrument before.
    #[inline]
    fn take_place(&mut self, instrument: InstrumentId) -> Result<&OwnQuote, NotSent> {
        let place = self.of_instrument.get_mut(instrument.index());
        let place = place.ok_or(NotSent::QuotesFull)?;
        if *place == NONE {
            if self.quotes.len() == self.quotes.capacity() {
                return Err(NotSent::QuotesFull);
            }
            *place = self.quotes.len() as u16;
            self.quotes.push(OwnQuote {
                name: self.first_name + u64::from(*place),
                instrument,
                live: [QuoteSide::default(); 2],
                asked: None,
                cancel: None,
            });
        }
        let place = usize::from(*place);
        match core::mem::replace(&mut self.rounds[place], self.round) == self.round {
            true => Err(NotSent::QuoteCount),
            false => Ok(&self.quotes[place]),
        }
    }

    /// Notes what is asked for of an instrument that has a place.
    #[inline]
    fn ask(&mut self, id: ClientOrderId, quote: &Quote) -> Option<QuoteEntry> {
        let own = self.of_mut(quote.instrument)?;
        let [bid, ask] = quote.sides;
        own.asked = Some((id, [QuoteSide::of(bid), QuoteSide::of(ask)]));
        Some(QuoteEntry {
            name: own.name,
            quote: *quote,
        })
    }
}

impl OwnQuote {
    /// What was asked for is live, or never was; what does not count any more, by side.
    pub(super) fn answer(&mut self, is_taken: bool) -> [Qty; 2] {
        let Some((_, asked)) = self.asked.take() else {
            return [Qty::ZERO; 2];
        };
        let gone = match is_taken {
            true => core::mem::replace(&mut self.live, asked),
            false => asked,
        };
        gone.map(|side| side.left)
    }

    /// So much is left of what is live; what does not count any more.
    pub(super) fn leave(&mut self, left: [Qty; 2]) -> [Qty; 2] {
        let mut gone = [Qty::ZERO; 2];
        for (side, left) in Side::BOTH.into_iter().zip(left) {
            let live = &mut self.live[side as usize];
            gone[side as usize] = live.take(Qty(live.left.0.saturating_sub(left.0)));
        }
        gone
    }

    /// Some of a side has traded: of what is live, unless what was asked for alone is `of` that price and
    /// quantity. How much of it had counted.
    pub(super) fn fill(&mut self, side: Side, qty: Qty, of: (Price, Qty)) -> Qty {
        let live = &mut self.live[side as usize];
        let is_of = |side: &QuoteSide| (side.price, side.qty) == of && !side.left.is_zero();
        match &mut self.asked {
            Some((_, asked)) if !is_of(live) && is_of(&asked[side as usize]) => {
                asked[side as usize].take(qty)
            }
            _ => live.take(qty),
        }
    }
}

impl Context<'_> {
    /// Enters quotes of several instruments by one message, each in the place of the one that is there. What
    /// it gives is the number that the venue's answer names (QuoteID); an error names what stopped it, and
    /// nothing of it has left then. Each stands or falls for itself at the venue, and
    /// [`crate::strategy::Strategy::on_own_quote`] is told of each. One that was not answered yet must be
    /// before it is entered again.
    pub fn mass_quote(&mut self, quotes: &[Quote]) -> Result<ClientOrderId, NotSent> {
        let done = self.quoted(quotes, false);
        self.counted(done)
    }

    /// The same, and asks the venue to go on after its protection has taken quotes away.
    pub fn mass_quote_again(&mut self, quotes: &[Quote]) -> Result<ClientOrderId, NotSent> {
        let done = self.quoted(quotes, true);
        self.counted(done)
    }

    /// Our quote of an instrument, if there ever was one.
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

    pub(super) fn cancel_quotes_of(&mut self, is_meant: impl Fn(InstrumentId) -> bool) -> u32 {
        let (mut all, mut most) = (0, QUOTES_MAX);
        loop {
            let id = self.state.orders.issue_id();
            let (mut entries, mut count) = ([QuoteEntry::EMPTY; QUOTES_MAX], 0);
            for quote in self.state.quotes.iter_mut() {
                if count < most && quote.is_open() && quote.cancel.is_none() && is_meant(quote.instrument) {
                    quote.cancel = Some(id);
                    entries[count] = quote.entry();
                    count += 1;
                }
            }
            if count == 0 {
                return all;
            }
            let request = QuoteIntent::Cancel {
                id,
                entries: &entries[..count],
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

    fn quoted(&mut self, quotes: &[Quote], resets: bool) -> Result<ClientOrderId, NotSent> {
        let state = &mut *self.state;
        if state.is_stopping {
            return Err(NotSent::Stopping);
        }
        if quotes.is_empty() || quotes.len() > QUOTES_MAX {
            return Err(NotSent::QuoteCount);
        }
        state.quotes.begin();
        for quote in quotes {
            state.check_quote(self.now, quote, self.markets)?;
        }
        state.risk.take_message(self.now).map_err(NotSent::Check)?;
        let id = state.orders.issue_id();
        let mut entries = [QuoteEntry::EMPTY; QUOTES_MAX];
        for (quote, entry) in quotes.iter().zip(&mut entries) {
            if let Some(asked) = state.quotes.ask(id, quote) {
                *entry = asked;
            }
            let [(_, bid), (_, ask)] = quote.sides;
            state.positions.on_quoted(quote.instrument, [bid, ask]);
            state.count_quoted(quote.instrument);
            state.risk.quoted(self.now, quote.instrument);
        }
        let request = QuoteIntent::Mass {
            id,
            entries: &entries[..quotes.len()],
            resets,
            cause: self.cause,
        };
        match self.port.quote(self.now, &request) {
            Ok(()) => {
                self.state.counters.bump(Counter::MassQuotesSent);
                Ok(id)
            }
            Err(error) => {
                for quote in quotes {
                    if let Some(own) = self.state.quotes.of_mut(quote.instrument) {
                        let gone = own.answer(false);
                        self.state.quote_gone(quote.instrument, gone);
                    }
                }
                Err(not_sent(error))
            }
        }
    }
}

impl<S: Strategy> Conductor<S> {
    /// Applies what the venue said about quotes, and tells the strategy of each. What traded of a quote that
    /// is not known, and a trade that is taken back, put the kill switch on, as of orders.
    pub fn on_quote_report(
        &mut self,
        now: Nanos,
        report: &QuoteReport<'_>,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) {
        let mut told = false;
        for place in 0..self.state.quotes.iter().count() {
            if let Some(event) = self.state.apply_quote(now, place, report) {
                told = true;
                self.call("on_own_quote", now, Cause::default(), markets, port, |s, ctx| {
                    s.on_own_quote(ctx, &event)
                });
            }
        }
        // Several answers may come to one cancellation, of which the first counts.
        let may_repeat = matches!(
            report,
            QuoteReport::Unknown | QuoteReport::Cancelled { is_done: true, .. }
        );
        if !told && !may_repeat {
            self.state.counters.bump(Counter::QuoteAnswersUnmatched);
        }
        let is_trade = matches!(report, QuoteReport::Filled { .. });
        if (is_trade && !told) || matches!(report, QuoteReport::Broken { .. }) {
            self.state.risk.kill();
        }
    }

    /// Every quote that there ever was.
    pub fn quotes(&self) -> impl Iterator<Item = &OwnQuote> + '_ {
        self.state.quotes.iter()
    }

    /// How many instruments may be quoted.
    pub fn quotes_max(&self) -> u16 {
        self.state.quotes.room()
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

impl State {
    /// Whether a quote may leave; it has a place then.
    #[inline]
    fn check_quote(&mut self, now: Nanos, quote: &Quote, markets: Markets<'_>) -> Result<(), NotSent> {
        let instrument = quote.instrument;
        if !self.watched.get(instrument.index()).copied().unwrap_or_default() {
            return Err(NotSent::UnknownInstrument);
        }
        let own = self.quotes.take_place(instrument)?;
        if own.asked.is_some() || own.cancel.is_some() {
            return Err(NotSent::Pending);
        }
        let book = markets.book(instrument).ok_or(NotSent::UnknownInstrument)?;
        if quote.is_any() {
            if !self.may_enter[instrument.index()] {
                return Err(NotSent::NotTrading);
            }
            if book.state() != BookState::Live {
                return Err(NotSent::StaleBook);
            }
        }
        let position = self.positions.at(instrument).ok_or(NotSent::UnknownInstrument)?;
        self.risk
            .check_quote(now, instrument, quote.sides, position)
            .map_err(NotSent::Check)?;
        match self.orders.open() > 0 && self.meets_orders(quote) {
            true => Err(NotSent::Check(RiskReject::SelfTrade)),
            false => Ok(()),
        }
    }

    /// Whether a quote could trade with an order of ours.
    fn meets_orders(&self, quote: &Quote) -> bool {
        let is_met = |side: Side, (price, qty): (Price, Qty)| {
            let mut orders = self.orders.iter_open();
            !qty.is_zero()
                && orders.any(|order| order.instrument == quote.instrument && order.is_met(side, price, None))
        };
        is_met(Side::Bid, quote.sides[0]) || is_met(Side::Ask, quote.sides[1])
    }

    /// A quote counts among what rests: see [`State::count_resting`].
    #[inline]
    fn count_quoted(&mut self, instrument: InstrumentId) {
        if self.orders.open() > 0 {
            Side::BOTH
                .into_iter()
                .for_each(|side| self.count_resting(instrument, side));
            return;
        }
        let Some(own) = self.quotes.of(instrument) else {
            return;
        };
        for side in Side::BOTH {
            let (mut count, mut best) = (0, Price::ZERO);
            let asked = own.asked.as_ref().map(|(_, asked)| &asked[side as usize]);
            for quoted in [Some(&own.live[side as usize]), asked].into_iter().flatten() {
                if !quoted.left.is_zero() {
                    if count == 0 || side.better(quoted.price, best) {
                        best = quoted.price;
                    }
                    count += 1;
                }
            }
            self.risk.resting(instrument, side, (count, best));
        }
    }

    /// So much of a quote does not count any more.
    pub(super) fn quote_gone(&mut self, instrument: InstrumentId, gone: [Qty; 2]) {
        for (side, gone) in Side::BOTH.into_iter().zip(gone) {
            self.positions.on_released(instrument, side, gone);
        }
        self.count_quoted(instrument);
    }

    /// What a report makes of one of the quotes, by its place; `None` if it does not concern it.
    fn apply_quote(&mut self, now: Nanos, place: usize, report: &QuoteReport<'_>) -> Option<QuoteEvent> {
        let quote = self.quotes.iter_mut().nth(place)?;
        let (instrument, name) = (quote.instrument, quote.name);
        let asked = quote.asked.map(|(id, _)| id);
        let (gone, kind) = match *report {
            QuoteReport::Answered {
                id,
                is_rejected,
                refused,
            } if asked == Some(id) => {
                let is_taken = !is_rejected && !refused.contains(&name);
                let kind = match is_taken {
                    true => QuoteEventKind::Accepted,
                    false => QuoteEventKind::Refused,
                };
                (quote.answer(is_taken), kind)
            }
            QuoteReport::Removed { names } if names.contains(&name) => {
                (quote.leave([Qty::ZERO; 2]), QuoteEventKind::Removed)
            }
            // Up to FIX 4.2 one message answers both.
            QuoteReport::Cancelled { id, .. } | QuoteReport::Answered { id, .. }
                if quote.cancel == Some(id) =>
            {
                quote.cancel = None;
                let is_refused = QuoteReport::Cancelled { id, is_done: false };
                let is_done = *report != is_refused
                    && !matches!(
                        report,
                        QuoteReport::Answered {
                            is_rejected: true,
                            ..
                        }
                    );
                match is_done {
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
                (quote.leave(left), QuoteEventKind::Removed)
            }
            QuoteReport::Filled {
                name: of,
                side,
                qty,
                price,
                of: entered,
            } if of == name => {
                let counted = quote.fill(side, qty, entered);
                // What had not counted is taken for open until now: the position must know of it.
                let unknown = Qty(qty.0 - counted.0);
                self.positions.on_sent(instrument, side, unknown);
                self.positions.on_fill(instrument, side, qty, price);
                self.risk.fill(now, instrument, (side, qty, price));
                self.counters.bump(Counter::Fills);
                ([Qty::ZERO; 2], QuoteEventKind::Filled { side, qty, price })
            }
            QuoteReport::Broken {
                name: of,
                side,
                qty,
                price,
            } if of == name => {
                self.positions.on_broken(instrument, side, qty, price);
                self.risk.unfill(instrument, (side, qty, price));
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
        self.quote_gone(instrument, gone);
        Some(QuoteEvent { quote, kind })
    }
}
