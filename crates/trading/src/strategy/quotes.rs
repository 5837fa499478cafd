//! Our quotes: pairs of a bid and an offer, entered for several instruments at a time.

use alloc::vec;
use alloc::vec::Vec;

use tickwire_market::{Cause, ClientOrderId, InstrumentId, Price, Qty, Side};

use super::NotSent;
use super::rehearsing::BeforeQuote;

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

/// Whether a number that a report names is the name of a quote rather than an order's, whichever strategy it
/// is of.
#[inline]
pub fn is_name_of_quote(number: u64) -> bool {
    (number % super::NUMBERS) >= NAMES
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

/// Quotes of one request, with their names: as they stand at who asked, without a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuoteEntries<'a> {
    pub(super) quotes: &'a [Quote],
    /// By quote: its place ([`place_of`]).
    pub(super) places: &'a [u16],
    pub(super) first_name: u64,
}

impl<'a> QuoteEntries<'a> {
    /// How many.
    #[inline]
    pub fn len(&self) -> usize {
        self.quotes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.quotes.is_empty()
    }

    /// What is quoted, without the names.
    #[inline]
    pub fn quotes(&self) -> &'a [Quote] {
        self.quotes
    }

    /// Their places, by which a prepared message has them.
    #[inline]
    pub fn places(&self) -> &'a [u16] {
        self.places
    }

    /// Each with its name.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = QuoteEntry> + Clone + use<'a> {
        let first = self.first_name;
        let quotes = self.quotes.iter().zip(self.places);
        quotes.map(move |(quote, place)| QuoteEntry {
            name: first + u64::from(*place),
            quote: *quote,
        })
    }
}

/// A request about quotes, which has passed every check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuoteIntent<'a> {
    /// Quotes of several instruments in one message. FIX MassQuote (35=i).
    Mass {
        /// QuoteID (117).
        id: ClientOrderId,
        /// Up to [`QUOTES_MAX`], of different instruments.
        entries: QuoteEntries<'a>,
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
        entries: QuoteEntries<'a>,
        /// What triggered it.
        cause: Cause,
    },
    /// Takes every quote of the session away, those that are on their way to the venue too. FIX QuoteCancel
    /// (35=Z) with QuoteCancelType (298) 4. Who shares its session with others refuses it as
    /// [`super::Rejected::Unsupported`].
    CancelAll {
        /// QuoteID (117).
        id: ClientOrderId,
        /// What triggered it.
        cause: Cause,
    },
    /// Asks what the venue has of a quote. FIX QuoteStatusRequest (35=a).
    Status {
        /// QuoteStatusReqID (649).
        id: ClientOrderId,
        /// Which.
        entry: QuoteEntry,
    },
}

/// How a mass quote is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QuoteTerms {
    /// The venue is to go on after its protection has taken quotes away.
    pub resets: bool,
    /// It is meant to be sent although a book cannot be trusted.
    pub on_stale_book: bool,
}

/// Why quotes are gone that nobody has asked to be cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Removal {
    /// The venue's protection of market makers. It refuses mass quotes until one that resets it
    /// ([`QuoteTerms::resets`]).
    Protection,
    /// The connection was lost, the day is over, the instrument is halted, or nothing was said.
    Other,
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
    /// What is live of the only quote of a mass quote, where the venue answers its sides one by one.
    Settled {
        /// Which mass quote.
        id: ClientOrderId,
        /// Which quote.
        name: u64,
        /// Price and what may still trade, by [`Side`].
        live: [(Price, Qty); 2],
        /// A part of it was refused.
        is_refused: bool,
    },
    /// Quotes are gone without having been asked for.
    Removed {
        /// Which.
        names: &'a [u64],
        /// Why.
        why: Removal,
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
    /// The answer to the question what the venue has of a quote.
    Status {
        /// Which question.
        id: ClientOrderId,
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
    /// It, or a part of it, is gone without having been asked for.
    Removed(Removal),
    /// It is cancelled, as was asked for.
    Cancelled,
    /// The request to cancel it was refused: it lives on.
    CancelRefused,
    /// The host has asked the venue what it has of it, and that is what is live here.
    Confirmed,
    /// The host has asked the venue what it has of it, and that is something else, by [`Side`].
    Differs([Qty; 2]),
    /// The host has asked the venue what it has of it, and there was no answer in time.
    Unanswered,
}

/// What has happened to a request about several quotes: [`super::Strategy::on_mass_quote`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MassQuoteEvent<'a> {
    /// A mass quote was answered: taken, but for the quotes that were refused; or none of it was.
    Answered {
        /// Which.
        id: ClientOrderId,
        /// None of it was taken.
        is_rejected: bool,
        /// Of which instruments it was refused, where some of it was taken.
        refused: &'a [InstrumentId],
    },
    /// The only quote of a mass quote was answered side by side: what is live of it is
    /// [`super::Context::own_quote`].
    Settled {
        /// Which mass quote.
        id: ClientOrderId,
        /// Of what.
        instrument: InstrumentId,
        /// A part of it was refused.
        is_refused: bool,
    },
    /// Every quote was cancelled, as [`super::Context::cancel_every_quote`] has asked, or the venue refused
    /// to.
    Cancelled {
        /// Which request.
        id: ClientOrderId,
        /// It was done: none is there.
        is_done: bool,
    },
    /// The venue's protection took the quotes away that [`super::Strategy::on_own_quote`] was told of.
    Protected,
}

/// No quote.
const NONE: u16 = u16::MAX;
/// The last mass quotes whose quotes are known by their number; of older ones every quote is looked at.
const MESSAGES: usize = 256;

/// Which quotes a mass quote was of.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentQuotes {
    id: ClientOrderId,
    count: u8,
    places: [u16; QUOTES_MAX],
}

impl SentQuotes {
    const NONE: SentQuotes = SentQuotes {
        id: ClientOrderId(0),
        count: 0,
        places: [NONE; QUOTES_MAX],
    };

    /// Their places.
    pub(super) fn places(&self) -> &[u16] {
        &self.places[..usize::from(self.count).min(QUOTES_MAX)]
    }
}

/// Everything is being cancelled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cancelling {
    /// What the strategy was told.
    pub(super) id: ClientOrderId,
    /// By requests that name each: it is over once none of them is waited for.
    pub(super) is_listed: bool,
}

/// A quote, and the mass quote that named it last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    own: OwnQuote,
    round: u32,
}

/// What a mass quote changes beside the quotes that it names.
#[derive(Clone, Copy, Debug)]
pub(super) struct BeforeMass {
    round: u32,
    /// The place of its number, and what stands there.
    message: (usize, SentQuotes),
}

/// Every quote of a strategy.
#[derive(Clone, Debug)]
pub(super) struct Quotes {
    of_instrument: Vec<u16>,
    quotes: Vec<Kept>,
    room: u16,
    round: u32,
    first_name: u64,
    /// By number.
    messages: Vec<SentQuotes>,
    pub(super) cancelling: Option<Cancelling>,
    /// What a mass quote that is rehearsed changes; empty between rehearsals.
    pub(super) before: Vec<BeforeQuote>,
}

impl Quotes {
    /// Room for so many, below 65 535.
    pub(super) fn new(instruments: u32, max_quotes: u32, first_name: u64) -> Quotes {
        let room = max_quotes.min(u32::from(NONE)) as usize;
        let sized = |len: usize| if room == 0 { 0 } else { len };
        Quotes {
            of_instrument: vec![NONE; sized(instruments as usize)],
            quotes: Vec::with_capacity(room),
            room: room as u16,
            round: 0,
            first_name,
            messages: vec![SentQuotes::NONE; sized(MESSAGES)],
            cancelling: None,
            before: Vec::with_capacity(sized(QUOTES_MAX)),
        }
    }

    /// The place of an instrument's quote, if there ever was one.
    #[inline(always)]
    fn place(&self, instrument: InstrumentId) -> Option<usize> {
        Some(usize::from(*self.of_instrument.get(instrument.index())?))
    }

    /// The same as a number.
    pub(super) fn place_of(&self, instrument: InstrumentId) -> Option<u16> {
        let place = self.place(instrument)?;
        (place < self.quotes.len()).then_some(place as u16)
    }

    /// The quote of an instrument, if there ever was one.
    #[inline]
    pub(super) fn of(&self, instrument: InstrumentId) -> Option<&OwnQuote> {
        Some(&self.quotes.get(self.place(instrument)?)?.own)
    }

    #[inline]
    pub(super) fn at(&self, place: u16) -> Option<&OwnQuote> {
        Some(&self.quotes.get(usize::from(place))?.own)
    }

    #[inline]
    pub(super) fn at_mut(&mut self, place: u16) -> Option<&mut OwnQuote> {
        Some(&mut self.quotes.get_mut(usize::from(place))?.own)
    }

    /// How many there ever were.
    pub(super) fn count(&self) -> u16 {
        self.quotes.len() as u16
    }

    /// The place that a name means.
    #[inline]
    pub(super) fn named(&self, name: u64) -> Option<u16> {
        let place = u16::try_from(name.checked_sub(self.first_name)?).ok()?;
        (usize::from(place) < self.quotes.len()).then_some(place)
    }

    /// Whether a number is that of a cancellation that was not answered yet.
    pub(super) fn is_cancelling(&self, id: ClientOrderId) -> bool {
        self.iter().any(|quote| quote.cancel == Some(id))
    }

    /// Which quotes a mass quote was of, if that is known still.
    pub(super) fn message(&self, id: ClientOrderId) -> Option<SentQuotes> {
        let message = self.messages.get(id.0 as usize % MESSAGES)?;
        (message.id == id).then_some(*message)
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
        self.quotes.iter().map(|kept| &kept.own)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut OwnQuote> + '_ {
        self.quotes.iter_mut().map(|kept| &mut kept.own)
    }

    pub(super) fn first_name(&self) -> u64 {
        self.first_name
    }

    /// Places there are.
    pub(super) fn room(&self) -> u16 {
        self.room
    }

    /// Another mass quote begins.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// The place of an instrument's quote, which it has from now on.
    ///
    /// # Errors
    /// Every place is taken, the mass quote under way has named the instrument before, or something that was
    /// asked for about its quote was not answered yet.
    #[inline(always)]
    pub(super) fn take_place(&mut self, instrument: InstrumentId) -> Result<u16, NotSent> {
        let place = self.of_instrument.get(instrument.index());
        let place = *place.ok_or(NotSent::QuotesFull)?;
        let Some(kept) = self.quotes.get_mut(usize::from(place)) else {
            return self.new_place(instrument);
        };
        if core::mem::replace(&mut kept.round, self.round) == self.round {
            return Err(NotSent::QuoteCount);
        }
        match kept.own.asked.is_some() | kept.own.cancel.is_some() {
            true => Err(NotSent::Pending),
            false => Ok(place),
        }
    }

    /// The name of an instrument's quote, which it has from now on.
    pub(super) fn name(&mut self, instrument: InstrumentId) -> Option<u64> {
        let known = usize::from(*self.of_instrument.get(instrument.index())?);
        let place = match known < self.quotes.len() {
            true => known as u16,
            false => self.new_place(instrument).ok()?,
        };
        Some(self.first_name + u64::from(place))
    }

    #[cold]
    fn new_place(&mut self, instrument: InstrumentId) -> Result<u16, NotSent> {
        if self.quotes.len() == self.quotes.capacity() {
            return Err(NotSent::QuotesFull);
        }
        let place = self.quotes.len() as u16;
        self.of_instrument[instrument.index()] = place;
        self.quotes.push(Kept {
            own: OwnQuote {
                name: self.first_name + u64::from(place),
                instrument,
                live: [QuoteSide::default(); 2],
                asked: None,
                cancel: None,
            },
            round: self.round,
        });
        Ok(place)
    }

    /// A mass quote of this number is of the quotes at these places.
    #[inline]
    pub(super) fn note(&mut self, id: ClientOrderId, places: &[u16]) {
        if let Some(message) = self.messages.get_mut(id.0 as usize % MESSAGES) {
            message.id = id;
            message.count = places.len() as u8;
            message.places[..places.len()].copy_from_slice(places);
        }
    }

    /// What a mass quote of this number would change beside its quotes; `None` where there are no quotes.
    pub(super) fn before_mass(&self, id: ClientOrderId) -> Option<BeforeMass> {
        let at = id.0 as usize % MESSAGES;
        Some(BeforeMass {
            round: self.round,
            message: (at, *self.messages.get(at)?),
        })
    }

    /// Makes it what it was before.
    pub(super) fn restore_mass(&mut self, before: BeforeMass) {
        let (at, message) = before.message;
        (self.round, self.messages[at]) = (before.round, message);
    }

    /// An instrument's quote as it is kept, with its place, if nothing is asked for about it.
    pub(super) fn settled(&self, instrument: InstrumentId) -> Option<(usize, Kept)> {
        let place = self.place(instrument)?;
        let kept = self.quotes.get(place)?;
        let is_settled = kept.own.asked.is_none() && kept.own.cancel.is_none();
        is_settled.then_some((place, *kept))
    }

    /// Makes it what it was before.
    pub(super) fn restore(&mut self, (place, kept): (usize, Kept)) {
        if let Some(now) = self.quotes.get_mut(place) {
            *now = kept;
        }
    }

    /// Quotes with the names of their places.
    #[inline(always)]
    pub(super) fn entries<'a>(&self, quotes: &'a [Quote], places: &'a [u16]) -> QuoteEntries<'a> {
        QuoteEntries {
            quotes,
            places,
            first_name: self.first_name,
        }
    }

    /// Notes what is asked for of the instrument at a place.
    #[inline(always)]
    pub(super) fn ask(&mut self, id: ClientOrderId, place: u16, quote: &Quote) {
        if let Some(kept) = self.quotes.get_mut(usize::from(place)) {
            let [bid, ask] = quote.sides;
            kept.own.asked = Some((id, [QuoteSide::of(bid), QuoteSide::of(ask)]));
        }
    }
}

impl OwnQuote {
    /// What was asked for is live, or never was; what does not count any more, by side.
    #[inline]
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

    /// What was asked for is answered, and this is live now.
    pub(super) fn settle(&mut self, live: [(Price, Qty); 2]) {
        self.asked = None;
        self.live = live.map(QuoteSide::of);
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
