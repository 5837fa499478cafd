//! Mass quotes over FIX: MassQuote (i), QuoteCancel (Z) and QuoteStatusRequest (a), since 4.2. FIX 4.4,
//! volume 3, "Quotation / Negotiation"; 5.0 SP2, volume 3.
//!
//! A quote is a firm's two-sided price of one instrument, told to the session that entered it last;
//! QuoteSetID and QuoteEntryID are its names, echoed. A new one takes the place of the old one as a whole; a
//! side without price or quantity is withdrawn. Each entry of a MassQuote stands or falls for itself, one
//! that is refused leaves the earlier quote as it was. Fills come as ExecutionReport with the entry's id as
//! ClOrdID, as CME words them, and with what caused the quote (20001 to 20003) as the MassQuote had it.
//!
//! What the venue removes by itself is told without being asked by a MassQuoteAcknowledgement of QuoteStatus
//! 6 (up to 4.2: 4) with the entries and CME's UnsolicitedCancelType (9775): A the connection was lost, C the
//! day is over, F market maker protection. After F, entries are refused until a MassQuote with
//! MMProtectionReset (9773) = Y: of the groups of its entries, of all groups if it has none. A side that
//! meets an order of its own firm is gone with a QuoteStatusReport.

mod messages;

use alloc::vec::Vec;

use tickwire_fix::{Id, Version};
use tickwire_market::{
    Cause, Contract, InstrumentId, Nanos, OrderId, OrderType, Price, Qty, Side, Symbol, TimeInForce,
};
use tickwire_persist::persist;

use super::{Asked, Books, ClientOrder, Hearing, OrderNotice, Origin, Outcome, RequestScope, Route, Said};
use crate::index::OrderIndex;
use crate::order::{CancelReason, Firm, Order, Owner, Party, Reject, StateHash};
use crate::rules::QuoteEntry;
use crate::tape::Listing;
pub(super) use messages::{QuoteOut, read_cancel, read_mass_quote, read_status};

/// Owners from here on are quotes, below rows of the ledger.
const QUOTE_OWNERS: u32 = 1 << 31;

/// The most quotes of all firms in a day; entries beyond them are refused. As many as the engine has room
/// for.
const QUOTES_MAX: usize = 1 << 16;

/// Entries of one message; more are refused whole.
pub(super) const ENTRIES_MAX: usize = 512;

/// Whether an owner is a quote.
pub(super) fn is_quote(owner: Owner) -> bool {
    owner.0 >= QUOTE_OWNERS
}

mod own {
    pub(super) const SECURITY_TYPE: u32 = 167;
    pub(super) const DEF_BID_SIZE: u32 = 293;
    pub(super) const DEF_OFFER_SIZE: u32 = 294;
    pub(super) const QUOTE_REJECT_REASON: u32 = 300;
    pub(super) const UNDERLYING_SYMBOL: u32 = 311;
    pub(super) const QUOTE_STATUS_REQ_ID: u32 = 649;
}

/// What is known of an instrument.
#[derive(Clone, Copy)]
struct Fact {
    group: u32,
    contract: Contract,
}

/// All quotes of a day.
pub(super) struct Quotes {
    rows: Vec<Quote>,
    max: usize,
    /// Firm and instrument → row.
    places: OrderIndex,
    /// By instrument, from 1 on.
    facts: Vec<Fact>,
}

/// A two-sided price of a firm.
pub(super) struct Quote {
    pub(super) session: usize,
    pub(super) firm: Firm,
    instrument: InstrumentId,
    symbol: Symbol,
    group: u32,
    names: Names,
    /// The market data message that caused it, as its MassQuote says.
    cause: Option<Cause>,
    sides: [QuoteSide; 2],
    /// Contracts bought and sold in the day, and for how much.
    traded: [u64; 2],
    cost: [i128; 2],
}

/// A firm's quote of an instrument, as the venue has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientQuote {
    /// Whose.
    pub firm: Firm,
    /// Of which.
    pub instrument: InstrumentId,
    /// Its name.
    pub symbol: Symbol,
    /// Prices of bid and offer, where `open` is not 0.
    pub price: [Price; 2],
    /// What may still trade.
    pub open: [Qty; 2],
    /// Bought and sold in the day.
    pub traded: [u64; 2],
    /// Prices times contracts of what was bought and sold, as [`Price::notional`] has them.
    pub cost: [i128; 2],
}

/// What its client calls a quote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Names {
    quote_id: Id,
    set_id: Id,
    entry_id: Id,
}

#[derive(Clone, Copy, Default)]
struct QuoteSide {
    order_id: OrderId,
    price: Price,
    qty: Qty,
    filled: Qty,
    broken: Qty,
    cost: i128,
    is_open: bool,
}

impl QuoteSide {
    fn left(&self) -> Qty {
        match self.is_open {
            true => Qty(self.qty.0.saturating_sub(self.executed())),
            false => Qty::ZERO,
        }
    }

    /// As [`ClientOrder::executed`].
    fn executed(&self) -> u32 {
        self.filled.0.saturating_add(self.broken.0)
    }
}

impl Quote {
    fn is_open(&self) -> bool {
        self.sides.iter().any(|side| side.is_open)
    }
}

impl Quotes {
    pub(super) fn new(max_orders: usize, listings: &[Listing]) -> Quotes {
        let max = max_orders.min(QUOTES_MAX);
        let none = Fact {
            group: 0,
            contract: Contract::Equity,
        };
        let last = listings.iter().map(|listing| listing.id.index()).max();
        let mut facts = alloc::vec![none; last.map_or(0, |last| last + 1)];
        for listing in listings {
            facts[listing.id.index()] = Fact {
                group: listing.rules.group,
                contract: listing.contract,
            };
        }
        Quotes {
            rows: Vec::new(),
            max,
            places: OrderIndex::new(max),
            facts,
        }
    }

    fn fact(&self, instrument: InstrumentId) -> Option<&Fact> {
        self.facts.get(instrument.index())
    }

    fn find(&self, firm: Firm, instrument: InstrumentId) -> Option<usize> {
        self.places.get(key(firm, instrument)).map(|row| row as usize)
    }

    /// Every quote of the day, those that are gone too.
    pub(super) fn iter(&self) -> impl Iterator<Item = ClientQuote> + '_ {
        self.rows.iter().map(|quote| ClientQuote {
            firm: quote.firm,
            instrument: quote.instrument,
            symbol: quote.symbol,
            price: [quote.sides[0].price, quote.sides[1].price],
            open: [quote.sides[0].left(), quote.sides[1].left()],
            traded: quote.traded,
            cost: quote.cost,
        })
    }

    /// What a session quotes: instruments, their sides in the book, and contracts traded in the day.
    pub(super) fn open_of(&self, route: Route) -> (u32, u32, u64) {
        let mut sum = (0, 0, 0);
        for quote in self
            .rows
            .iter()
            .filter(|quote| Route::Fix(quote.session) == route)
        {
            sum.0 += u32::from(quote.is_open());
            sum.1 += quote.sides.iter().filter(|side| side.is_open).count() as u32;
            sum.2 += quote.traded.iter().sum::<u64>();
        }
        sum
    }

    /// Numbers and quantities of every quote.
    pub(super) fn hash(&self, hash: &mut StateHash) {
        for quote in &self.rows {
            hash.word(key(quote.firm, quote.instrument));
            hash.word(quote.session as u64);
            for side in &quote.sides {
                hash.word(side.order_id.0 << 1 | u64::from(side.is_open));
                hash.word(u64::from(side.qty.0) << 32 | u64::from(side.filled.0));
            }
        }
    }
}

/// Never 0: instruments count from 1.
fn key(firm: Firm, instrument: InstrumentId) -> u64 {
    u64::from(firm.0) << 32 | u64::from(instrument.0)
}

/// An entry as asked for.
pub(super) struct Asking {
    names: Names,
    symbol: Symbol,
    bid: (Price, Qty),
    ask: (Price, Qty),
}

/// MassQuote.
pub(super) struct MassQuoting {
    quote_id: Id,
    /// What caused all of its entries (20001 to 20003).
    cause: Option<Cause>,
    /// QuoteResponseLevel (301): 0 no answer, 1 about what is refused, 2 about each entry, 3 in sum.
    level: u64,
    resets: bool,
    entries: Vec<Asking>,
}

/// Whose quotes a QuoteCancel is about.
enum Cancels {
    All,
    /// Of these instruments.
    Instruments(Vec<Symbol>),
    /// Of what has these as underlying.
    Underlyings(Vec<Symbol>),
    /// Of a SecurityType (167).
    Type(Id),
    /// Entered last by the MassQuote of this QuoteID; since 5.0 SP1.
    Single,
    Unknown,
}

/// QuoteCancel.
pub(super) struct QuoteCanceling {
    quote_id: Id,
    level: u64,
    which: Cancels,
}

/// QuoteStatusRequest.
pub(super) struct StatusAsking {
    request: Option<Id>,
    symbol: Symbol,
}

/// What became of an entry, as it is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EntryOutcome {
    names: Names,
    reject: Option<Reject>,
}

pub(super) fn mass_quote(
    session: usize,
    firm: Firm,
    asked: &MassQuoting,
    scope: &mut RequestScope<'_, '_>,
) -> Option<QuoteOut> {
    if asked.resets {
        reset(firm, &asked.entries, scope);
    }
    let (mut entries, mut counts) = (Vec::with_capacity(asked.entries.len()), [0_u32; 2]);
    let mut is_protected = false;
    for entry in &asked.entries {
        let reject = quote(session, firm, entry, asked.cause, scope).err();
        is_protected |= reject == Some(Reject::Protected);
        counts[usize::from(reject.is_some())] += 1;
        if asked.level == 2 || reject.is_some() {
            entries.push(EntryOutcome {
                names: entry.names,
                reject,
            });
        }
    }
    let is_refused = counts[0] == 0 && counts[1] > 0;
    // What is refused whole is always said, and that quotes are taken again.
    let answers = match asked.level {
        0 => is_refused || asked.resets,
        1 => counts[1] > 0 || asked.resets,
        _ => true,
    };
    answers.then_some(QuoteOut::Ack {
        quote_id: asked.quote_id,
        level: asked.level,
        counts,
        is_reset: asked.resets,
        entries,
        text: match is_protected {
            true => PROTECTED,
            false => "",
        },
    })
}

const PROTECTED: &str = "market maker protection: reset with 9773=Y";

/// Takes quotes again, of the groups of these instruments or all.
fn reset(firm: Firm, entries: &[Asking], scope: &mut RequestScope<'_, '_>) {
    let books = &*scope.books;
    let of = |entry: &Asking| {
        let fact = books
            .instrument(&entry.symbol)
            .and_then(|id| books.quotes.fact(id));
        fact.map(|fact| fact.group)
    };
    let mut groups: Vec<u32> = match entries {
        [] => books.quotes.facts.iter().map(|fact| fact.group).collect(),
        _ => entries.iter().filter_map(of).collect(),
    };
    groups.sort_unstable();
    groups.dedup();
    for group in groups {
        scope.context.engine.reset_protection(firm, group);
    }
}

/// Enters a quote.
fn quote(
    session: usize,
    firm: Firm,
    asked: &Asking,
    cause: Option<Cause>,
    scope: &mut RequestScope<'_, '_>,
) -> Result<(), Reject> {
    let instrument = scope.books.instrument(&asked.symbol);
    let instrument = instrument.ok_or(Reject::UnknownInstrument)?;
    if !scope.context.is_open {
        return Err(Reject::NotTrading);
    }
    let row = scope
        .books
        .row(session, firm, instrument, asked)
        .ok_or(Reject::Full)?;
    let before = &mut scope.books.quotes.rows[row];
    // Fills while it is entered are those of the new one.
    let kept = (before.session, before.names, before.cause);
    (before.session, before.names, before.cause) = (session, asked.names, cause);
    let entry = QuoteEntry {
        instrument,
        owner: Owner(QUOTE_OWNERS + row as u32),
        bid: asked.bid.0,
        bid_qty: asked.bid.1,
        ask: asked.ask.0,
        ask_qty: asked.ask.1,
    };
    let mut result = [Err(Reject::Full)];
    let whole = scope.act(Asked::Nothing, |engine, out| {
        engine.mass_quote(firm, &[entry], &mut result, out)
    });
    let result = whole.and(result[0]);
    if result.is_err() {
        let quote = &mut scope.books.quotes.rows[row];
        (quote.session, quote.names, quote.cause) = kept;
    }
    result
}

pub(super) fn cancel(
    session: usize,
    version: Version,
    asked: &QuoteCanceling,
    scope: &mut RequestScope<'_, '_>,
) {
    let answer = |scope: &mut RequestScope<'_, '_>, status: u8, symbol: Symbol, text: &'static str| {
        if asked.level > 0 || status == REFUSED {
            scope.said.push(Said::Quote {
                session,
                at: scope.now,
                out: QuoteOut::Status {
                    request: None,
                    quote_id: asked.quote_id,
                    symbol,
                    status,
                    sides: [None; 2],
                    text,
                },
            });
        }
    };
    let mine = |quote: &Quote| quote.session == session;
    match &asked.which {
        Cancels::All => {
            scope.withdraw(mine);
            answer(scope, 4, NO_SYMBOL, "");
        }
        Cancels::Instruments(symbols) => {
            for one in symbols {
                match scope.books.instrument(one) {
                    Some(id) => {
                        scope.withdraw(|quote| mine(quote) && quote.instrument == id);
                        answer(scope, 1, *one, "");
                    }
                    None => answer(scope, REFUSED, *one, "unknown symbol"),
                }
            }
        }
        Cancels::Underlyings(symbols) => {
            for one in symbols {
                match scope.books.instrument(one) {
                    Some(id) => {
                        scope.withdraw_if(|quote, contract| {
                            let is_meant =
                                matches!(contract, Contract::Option { underlying, .. } if *underlying == id);
                            mine(quote) && is_meant
                        });
                        answer(scope, 3, *one, "");
                    }
                    None => answer(scope, REFUSED, *one, "unknown symbol"),
                }
            }
        }
        Cancels::Type(name) => {
            scope.withdraw_if(|quote, contract| mine(quote) && is_type(contract, name.as_bytes()));
            answer(scope, 2, NO_SYMBOL, "");
        }
        Cancels::Single if version >= Version::Fix50Sp1 => {
            scope.withdraw(|quote| mine(quote) && quote.names.quote_id == asked.quote_id);
            answer(scope, 17, NO_SYMBOL, "");
        }
        _ => answer(
            scope,
            REFUSED,
            NO_SYMBOL,
            "QuoteCancelType (298) is not supported",
        ),
    }
}

/// SecurityType (167).
fn is_type(contract: &Contract, name: &[u8]) -> bool {
    match contract {
        Contract::Equity => name == b"CS",
        Contract::Future { .. } => name == b"FUT",
        // OOF: options on futures.
        Contract::Option { .. } => matches!(name, b"OPT" | b"OOF"),
        Contract::Currency { .. } => matches!(name, b"FXSPOT" | b"FOR"),
    }
}

/// QuoteStatus (297) of what is not done.
const REFUSED: u8 = 5;

/// Symbol of what is about no instrument. FIX 4.4, volume 1, "Instrument".
const NO_SYMBOL: Symbol = match Symbol::new(b"[N/A]") {
    Some(symbol) => symbol,
    None => Symbol::EMPTY,
};

/// QuoteID of what is no quote.
const NO_ID: Id = match Id::new(b"NONE") {
    Some(id) => id,
    None => Id::EMPTY,
};

/// The state of the quote of an instrument: QuoteStatus 0 is active (16 since 5.0 SP1), 6 removed or traded,
/// 9 none.
pub(super) fn status(firm: Firm, asked: &StatusAsking, scope: &RequestScope<'_, '_>) -> QuoteOut {
    let quotes = &scope.books.quotes;
    let instrument = scope.books.instrument(&asked.symbol);
    let row = instrument.and_then(|instrument| quotes.find(firm, instrument));
    status_of(row.map(|row| &quotes.rows[row]), asked.request, asked.symbol, "")
}

fn status_of(quote: Option<&Quote>, request: Option<Id>, symbol: Symbol, text: &'static str) -> QuoteOut {
    let side = |side: &QuoteSide| Some((side.price, side.left())).filter(|(_, qty)| !qty.is_zero());
    QuoteOut::Status {
        request,
        quote_id: quote.map_or(NO_ID, |quote| quote.names.quote_id),
        symbol,
        status: match quote {
            Some(quote) if quote.is_open() => 0,
            Some(_) => 6,
            None => 9,
        },
        sides: quote.map_or([None; 2], |q| [side(&q.sides[0]), side(&q.sides[1])]),
        text,
    }
}

impl Books {
    /// The row of a firm's quote of an instrument, a new one for the first; `None` when there is no room.
    fn row(&mut self, session: usize, firm: Firm, instrument: InstrumentId, asked: &Asking) -> Option<usize> {
        let quotes = &mut self.quotes;
        if let Some(row) = quotes.find(firm, instrument) {
            return Some(row);
        }
        let row = quotes.rows.len();
        if row >= quotes.max {
            return None;
        }
        quotes.places.insert(key(firm, instrument), row as u32);
        quotes.rows.push(Quote {
            session,
            firm,
            instrument,
            symbol: asked.symbol,
            group: quotes.facts.get(instrument.index()).map_or(0, |fact| fact.group),
            names: asked.names,
            cause: None,
            sides: [QuoteSide::default(); 2],
            traded: [0; 2],
            cost: [0; 2],
        });
        Some(row)
    }
}

impl RequestScope<'_, '_> {
    /// Withdraws quotes; whose and which they were.
    pub(super) fn withdraw(&mut self, which: impl Fn(&Quote) -> bool) -> Vec<(usize, Names)> {
        self.withdraw_if(|quote, _| which(quote))
    }

    fn withdraw_if(&mut self, which: impl Fn(&Quote, &Contract) -> bool) -> Vec<(usize, Names)> {
        let mut gone = Vec::new();
        for row in 0..self.books.quotes.rows.len() {
            let quotes = &self.books.quotes;
            let quote = &quotes.rows[row];
            let fact = quotes.fact(quote.instrument);
            if !quote.is_open() || !fact.is_some_and(|fact| which(quote, &fact.contract)) {
                continue;
            }
            gone.push((quote.session, quote.names));
            let open = quote.sides.map(|side| side.is_open.then_some(side.order_id));
            for id in open.into_iter().flatten() {
                let done = self.act(Asked::Sweep, |engine, out| engine.cancel(id, out));
                debug_assert!(done.is_ok(), "an open side is in the book");
            }
        }
        gone
    }

    /// Tells whose quotes are gone without having been asked for.
    pub(super) fn tell_removed(&mut self, gone: Vec<(usize, Names)>, why: u8) {
        let at = self.now;
        push_removed(self.said, gone, why, at);
    }
}

/// A message for each session, in the order of their first quotes.
fn push_removed(said: &mut Vec<Said>, gone: Vec<(usize, Names)>, why: u8, at: Nanos) {
    let begin = said.len();
    for (session, names) in gone {
        let entry = EntryOutcome { names, reject: None };
        let of_session = |one: &&mut Said| match one {
            Said::Quote {
                session: told,
                out: QuoteOut::Removed { entries, .. },
                ..
            } => *told == session && entries.len() < ENTRIES_MAX,
            _ => false,
        };
        match said[begin..].iter_mut().find(of_session) {
            Some(Said::Quote {
                out: QuoteOut::Removed { entries, .. },
                ..
            }) => entries.push(entry),
            _ => said.push(Said::Quote {
                session,
                at,
                out: QuoteOut::Removed {
                    quote_id: names.quote_id,
                    why,
                    entries: alloc::vec![entry],
                },
            }),
        }
    }
}

impl Hearing<'_> {
    fn quote_row(&mut self, order: &Order) -> Option<&mut Quote> {
        let at = order.owner.0.checked_sub(QUOTE_OWNERS)? as usize;
        self.books.quotes.rows.get_mut(at)
    }

    fn quote_side(&mut self, order: &Order) -> Option<&mut QuoteSide> {
        let side = &mut self.quote_row(order)?.sides[order.side as usize];
        (side.order_id == order.id).then_some(side)
    }

    /// A side of a quote was entered.
    pub(super) fn quoted(&mut self, order: &Order) {
        if let Some(quote) = self.quote_row(order) {
            quote.sides[order.side as usize] = QuoteSide {
                order_id: order.id,
                price: order.price,
                qty: order.qty,
                is_open: true,
                ..QuoteSide::default()
            };
        }
    }

    /// A side of a quote lost so much, or all. Told when it was neither asked for nor told already.
    pub(super) fn quote_lost(&mut self, order: &Order, by: Option<Qty>) {
        let reason = self.reason.take();
        if let Some(side) = self.quote_side(order) {
            match by {
                Some(by) => side.qty = Qty(side.qty.0.saturating_sub(by.0)),
                None => side.is_open = false,
            }
        }
        let is_known = matches!(
            reason,
            None | Some(CancelReason::Requoted | CancelReason::Protection)
        );
        if is_known {
            return;
        }
        let (at, text) = (
            self.now,
            super::fix::why_text(super::Why::Engine(reason.unwrap_or(CancelReason::MassCancel))),
        );
        if let Some(quote) = self.quote_row(order) {
            let (session, out) = (quote.session, status_of(Some(quote), None, quote.symbol, text));
            self.said.push(Said::Quote { session, at, out });
        }
    }

    /// A quote traded: told like an order whose name is the entry's.
    pub(super) fn quote_filled(&mut self, order: &Order, told: OrderNotice, qty: Qty, price: Price) {
        let at = self.now;
        let Some(side) = self.quote_side(order) else {
            return;
        };
        side.filled = Qty(side.filled.0 + qty.0);
        side.cost += price.notional(u64::from(qty.0));
        if side.executed() >= side.qty.0 {
            side.is_open = false;
        }
        let side = *side;
        if let Some(quote) = self.quote_row(order) {
            quote.traded[order.side as usize] += u64::from(qty.0);
            quote.cost[order.side as usize] += price.notional(u64::from(qty.0));
            let order = as_order(quote, order.side, &side, at);
            let saying = self.books.saying(&order, told, at);
            self.said.push(Said::Order(saying));
        }
    }

    /// A trade of a quote was broken: told with the quote's present names. Of a side that another one has
    /// replaced since, only what was broken is known.
    pub(super) fn quote_broken(&mut self, party: &Party, told: OrderNotice, qty: Qty, price: Price) {
        let at = self.now;
        let row = party.owner.0.checked_sub(QUOTE_OWNERS).map(|row| row as usize);
        let Some(quote) = row.and_then(|row| self.books.quotes.rows.get_mut(row)) else {
            return;
        };
        let cost = price.notional(u64::from(qty.0));
        let traded = &mut quote.traded[party.side as usize];
        *traded = traded.saturating_sub(u64::from(qty.0));
        quote.cost[party.side as usize] -= cost;
        let present = &mut quote.sides[party.side as usize];
        let side = if present.order_id == party.id {
            present.filled = Qty(present.filled.0.saturating_sub(qty.0));
            present.broken = Qty(present.broken.0.saturating_add(qty.0));
            present.cost -= cost;
            *present
        } else {
            QuoteSide {
                order_id: party.id,
                price,
                qty,
                broken: qty,
                ..QuoteSide::default()
            }
        };
        let mut order = as_order(quote, party.side, &side, at);
        if order.outcome == Outcome::Filled {
            order.outcome = Outcome::Cancelled;
        }
        let saying = self.books.saying(&order, told, at);
        self.said.push(Said::Order(saying));
    }

    /// Protection tripped: the sessions that quote for the firm in the group are told.
    pub(super) fn tripped(&mut self, firm: Firm, group: u32) {
        let rows = self.books.quotes.rows.iter();
        let meant = rows.filter(|quote| quote.firm == firm && quote.group == group && quote.is_open());
        let mut gone: Vec<_> = meant.map(|quote| (quote.session, quote.names)).collect();
        if gone.is_empty() {
            // All of it traded: who quoted is told nevertheless.
            let mut rows = self.books.quotes.rows.iter();
            let any = rows.find(|quote| quote.firm == firm && quote.group == group);
            gone.extend(any.map(|quote| (quote.session, quote.names)));
        }
        push_removed(&mut self.said, gone, b'F', self.now);
    }
}

fn as_order(quote: &Quote, side: Side, of: &QuoteSide, now: Nanos) -> ClientOrder {
    ClientOrder {
        route: Route::Fix(quote.session),
        firm: quote.firm,
        cl_ord_id: quote.names.entry_id,
        venue_id: of.order_id,
        order_id: of.order_id,
        instrument: quote.instrument,
        symbol: quote.symbol,
        side,
        order_type: OrderType::Limit,
        price: of.price,
        stop: None,
        display: Qty::ZERO,
        qty: of.qty,
        time_in_force: TimeInForce::Day,
        filled: of.filled,
        broken: of.broken,
        cost: of.cost,
        outcome: match of.is_open {
            true => Outcome::Open,
            false => Outcome::Filled,
        },
        origin: Origin {
            cause: quote.cause,
            received: now,
        },
        own: u32::from(b'2'),
    }
}

persist!(value struct Names { quote_id, set_id, entry_id });
persist!(value struct QuoteSide { order_id, price, qty, filled, broken, cost, is_open });
persist!(value struct Quote {
    session, firm, instrument, symbol, group, names, cause, sides, traded, cost,
});
persist!(value struct EntryOutcome { names, reject });
persist!(struct Quotes { rows, places } not { max, facts });
