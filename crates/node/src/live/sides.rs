//! Quotes as orders over FIX: NewOrderSingle (D), OrderCancelReplaceRequest (G), OrderCancelRequest (F), and
//! OrderMassCancelRequest (q) to take everything away. None is kept for resends: an order of the past must
//! not come to life.
//!
//! A mass quote of one entry becomes a request a side at most ([`QuoteOrders`]); the strategy is told of the
//! quote when both are answered, as of one that a venue of mass quotes has answered.

use tickwire_fix::{
    Again, Encoder, ExecType, ExecutionReport, Id, NewOrderSingle, OrderCancelReplaceRequest,
    OrderCancelRequest, Stamp, put_cancel_all_orders,
};
use tickwire_market::{
    Cause, ClientOrderId, InstrumentId, MassQuoteEntry, Nanos, OrderType, Price, Qty, Symbol, TimeInForce,
};
use tickwire_trading::strategy::{QuoteEntry, QuoteReport, Rejected, Strategy, place_of};
use tickwire_trading::{
    MassQuote, NO_ASK, NO_BID, QuoteLive, QuoteOrders, SideOutcome, SideReport, SideReportKind, SideRequest,
    SideRequestKind, SideSink,
};

use super::Live;
use super::rule::{executed, quote_report};
use crate::hot::{HotPath, OrderOut, OrderSession};

/// How many numbers of requests there are before those of the first come again.
const NUMBERS: u64 = 90_000_000_000;

/// How quotes leave as orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotesAsOrders {
    /// What every price is a multiple of, below 65 535 times.
    pub tick: Price,
    /// Numbers of requests (ClOrdID) begin here: of a session that outlives the process, above those of every
    /// process before this one. What is behind the highest begins at the lowest again.
    pub first: u64,
    /// How long the venue may take to confirm that no order of an earlier connection rests, nanoseconds; a
    /// session that it does not confirm it in ends.
    pub answer_max_ns: u64,
}

/// The numbers of quotes' orders as ClOrdIDs (11): behind the names of quotes.
#[derive(Clone, Copy, Debug)]
struct Names {
    base: u64,
    first: u64,
}

impl Names {
    fn name(self, id: u64) -> u64 {
        self.base + (self.first + id) % NUMBERS
    }

    fn id(self, name: u64) -> Option<u64> {
        let number = name.checked_sub(self.base).filter(|number| *number < NUMBERS)?;
        Some((number + NUMBERS - self.first % NUMBERS) % NUMBERS)
    }
}

/// A mass cancel under way.
#[derive(Clone, Copy, Debug)]
struct Cancel {
    name: u64,
    /// What the strategy calls it; none of the one that begins a session.
    id: Option<ClientOrderId>,
    since: Nanos,
}

/// What has to be known of the orders of a session's quotes.
pub(crate) struct Sides {
    orders: QuoteOrders,
    names: Names,
    tick: Price,
    answer_max_ns: u64,
    /// By symbol, sorted: the place of its quote, and its instrument.
    known: Vec<(Symbol, u16, InstrumentId)>,
    cancel: Option<Cancel>,
    /// Since the logon, the venue has confirmed that nothing of us rests.
    is_clean: bool,
}

/// What a report, or an answer, comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SideNews {
    /// The quote's change is answered: its place and what is live of it, at these prices.
    Settled(ClientOrderId, u16, [(Price, Qty); 2], bool),
    /// So much is left of a quote, by side.
    Left(InstrumentId, [Qty; 2]),
}

impl Sides {
    /// Of up to so many quotes, whose orders' numbers are from `base` on.
    pub(crate) fn new(room: u16, base: u64, config: QuotesAsOrders) -> Sides {
        Sides {
            orders: QuoteOrders::new(room),
            names: Names {
                base,
                first: config.first % NUMBERS,
            },
            tick: config.tick,
            answer_max_ns: config.answer_max_ns,
            known: Vec::with_capacity(usize::from(room)),
            cancel: None,
            is_clean: false,
        }
    }

    /// The connection is gone, and the orders with it, or not: that is asked when there is another.
    pub(crate) fn forget(&mut self) {
        self.orders.clear();
        (self.cancel, self.is_clean) = (None, false);
    }

    /// Whether a number is that of one of these orders, or of a request about them.
    pub(crate) fn is_own(&self, name: u64) -> bool {
        self.names.id(name).is_some()
    }

    fn place(&self, symbol: &Symbol) -> Option<(u16, InstrumentId)> {
        let at = self
            .known
            .binary_search_by(|(known, ..)| known.cmp(symbol))
            .ok()?;
        Some((self.known[at].1, self.known[at].2))
    }

    #[cold]
    fn know(&mut self, symbol: Symbol, place: u16, instrument: InstrumentId) -> bool {
        let before = self.known.partition_point(|(known, ..)| *known < symbol);
        let has_room = self.known.len() < self.known.capacity();
        if has_room {
            self.known.insert(before, (symbol, place, instrument));
        }
        has_room
    }

    /// Sends a quote as orders.
    pub(crate) fn quote<O: OrderOut>(
        &mut self,
        session: &mut OrderSession<O>,
        now: Nanos,
        id: ClientOrderId,
        entry: &QuoteEntry,
        symbol: Symbol,
        cause: Cause,
    ) -> Result<(), Rejected> {
        let place = place_of(entry.name);
        if self.place(&symbol).is_none() && !self.know(symbol, place, entry.quote.instrument) {
            return Err(Rejected::Unsupported);
        }
        let tick = self.tick.raw().max(1);
        let ticks = |(price, qty): (Price, Qty), none: u16| match qty.is_zero() {
            true => Some(none),
            false => u16::try_from(price.raw() / tick)
                .ok()
                .filter(|ticks| i64::from(*ticks) * tick == price.raw()),
        };
        let [bid, ask] = entry.quote.sides;
        let (Some(bid_ticks), Some(ask_ticks)) = (ticks(bid, NO_BID), ticks(ask, NO_ASK)) else {
            return Err(Rejected::Unsupported);
        };
        let entries = [MassQuoteEntry {
            quote: place,
            bid_ticks,
            ask_ticks,
            bid_qty: bid.1,
            ask_qty: ask.1,
        }];
        let quote = MassQuote {
            id: id.0,
            cause,
            reset: false,
            entries: &entries,
        };
        let mut wire = SideWire {
            session,
            names: self.names,
            symbol,
            tick: self.tick,
            now,
        };
        match self.orders.quote(&quote, &mut wire) {
            true => Ok(()),
            false => Err(Rejected::NoSession),
        }
    }

    /// Asks for the end of every order of the session; `None` begins it.
    pub(crate) fn cancel_all<O: OrderOut>(
        &mut self,
        session: &mut OrderSession<O>,
        now: Nanos,
        id: Option<ClientOrderId>,
    ) -> Result<(), Rejected> {
        let name = self.names.name(self.orders.number());
        let sent = session.fix.send(now, b"q", Again::GapFill, |e, _| {
            put_cancel_all_orders(e, name, now)
        });
        sent.map_err(|_| Rejected::NoSession)?;
        session.transmit();
        self.cancel = Some(Cancel { name, id, since: now });
        Ok(())
    }

    /// Whether orders may go out.
    pub(crate) fn is_clean(&self) -> bool {
        self.is_clean
    }

    /// Until when the venue owes the answer without which a session does not begin.
    pub(crate) fn cleaning_until(&self) -> Option<Nanos> {
        let cancel = self.cancel.filter(|cancel| cancel.id.is_none())?;
        (!self.is_clean).then_some(cancel.since.after(self.answer_max_ns))
    }

    /// That answer is not waited for any more.
    pub(crate) fn drop_cancel(&mut self) {
        self.cancel = None;
    }

    /// A mass cancel was answered: what the strategy calls it; `None` if it is none of ours.
    pub(crate) fn end_cancel(&mut self, name: u64, is_done: bool) -> Option<Option<ClientOrderId>> {
        let Cancel { id, .. } = self.cancel.take_if(|asked| asked.name == name)?;
        if is_done {
            self.orders.clear();
            self.is_clean = true;
        }
        Some(id)
    }

    /// What a report of an order changes, before a fill of it is told: `None` if it is of no order that there
    /// is.
    pub(crate) fn report(&mut self, report: &ExecutionReport) -> Option<SideOutcome> {
        let (quote, _) = self.place(&report.symbol)?;
        let kind = match report.exec_type {
            ExecType::New => SideReportKind::Accepted,
            ExecType::Replaced => SideReportKind::Replaced,
            ExecType::Rejected => SideReportKind::Rejected,
            ExecType::Canceled | ExecType::Expired | ExecType::DoneForDay => SideReportKind::Cancelled,
            ExecType::Restated => SideReportKind::Reduced,
            ExecType::Trade => SideReportKind::Filled,
            // A trade that is taken back changes nothing of what rests.
            _ => return Some(SideOutcome::Nothing),
        };
        let told = SideReport {
            quote,
            side: report.side,
            id: self.names.id(report.cl_ord_id.to_number()?)?,
            kind,
            leaves: report.leaves_qty.0,
            filled: report.cum_qty.0,
        };
        match self.orders.on_report(&told) {
            SideOutcome::Unknown => None,
            outcome => Some(outcome),
        }
    }

    /// The same of a replacement or a cancel that was refused.
    pub(crate) fn refused(&mut self, name: u64) -> Option<SideOutcome> {
        let id = self.names.id(name)?;
        let (quote, side) = self.orders.find(id)?;
        let told = SideReport {
            quote,
            side,
            id,
            kind: SideReportKind::Refused,
            leaves: 0,
            filled: 0,
        };
        Some(self.orders.on_report(&told))
    }

    /// A change that the venue need not be asked for.
    #[inline]
    pub(crate) fn poll_idle(&mut self) -> Option<SideNews> {
        let live = self.orders.poll_answer()?;
        Some(self.settled(&live))
    }

    /// What an outcome of a report about `symbol` and a side is to the strategy.
    pub(crate) fn news(&self, report: Option<&ExecutionReport>, outcome: SideOutcome) -> Option<SideNews> {
        match outcome {
            SideOutcome::Answered(live) => Some(self.settled(&live)),
            SideOutcome::Left(contracts) => {
                let report = report?;
                let mut left = [Qty(u32::MAX); 2];
                left[report.side as usize] = Qty(contracts);
                Some(SideNews::Left(self.place(&report.symbol)?.1, left))
            }
            SideOutcome::Nothing | SideOutcome::Unknown => None,
        }
    }

    fn settled(&self, live: &QuoteLive) -> SideNews {
        let price = |ticks: u16| Price::from_raw(self.tick.raw() * i64::from(ticks));
        let side = |ticks: u16, none: u16, qty: u32| match ticks == none || qty == 0 {
            true => (Price::ZERO, Qty::ZERO),
            false => (price(ticks), Qty(qty)),
        };
        let sides = [
            side(live.ticks.0, NO_BID, live.open[0]),
            side(live.ticks.1, NO_ASK, live.open[1]),
        ];
        SideNews::Settled(ClientOrderId(live.id), live.quote, sides, live.is_refused)
    }

    /// The place of the quote whose orders are of an instrument.
    pub(crate) fn place_of(&self, symbol: &Symbol) -> Option<u16> {
        self.place(symbol).map(|(place, _)| place)
    }
}

/// Where requests leave.
struct SideWire<'w, O> {
    session: &'w mut OrderSession<O>,
    names: Names,
    symbol: Symbol,
    tick: Price,
    now: Nanos,
}

impl<O: OrderOut> SideSink for SideWire<'_, O> {
    fn request(&mut self, request: &SideRequest) -> bool {
        let name = |id: u64| ClientOrderId(self.names.name(id)).into();
        let (cl_ord_id, symbol, side) = (name(request.id), self.symbol, request.side);
        let price = Price::from_raw(self.tick.raw() * i64::from(request.ticks));
        let (qty, cause) = (Qty(request.qty), Some(request.cause));
        let (transact_time, order_id) = (self.now, Id::EMPTY);
        let (order_type, price, stop) = (OrderType::Limit, Some(price), None);
        let time_in_force = TimeInForce::Day;
        let sent = match request.kind {
            SideRequestKind::New => {
                let order = NewOrderSingle {
                    cl_ord_id,
                    symbol,
                    side,
                    transact_time,
                    qty,
                    order_type,
                    price,
                    stop,
                    time_in_force,
                    cause,
                };
                self.send(NewOrderSingle::MSG_TYPE, |e, stamp| order.encode(e, stamp))
            }
            SideRequestKind::Replace(orig) => {
                let replacement = OrderCancelReplaceRequest {
                    cl_ord_id,
                    orig_cl_ord_id: name(orig),
                    order_id,
                    symbol,
                    side,
                    transact_time,
                    qty,
                    order_type,
                    price,
                    stop,
                    time_in_force,
                    cause,
                };
                let msg_type = OrderCancelReplaceRequest::MSG_TYPE;
                self.send(msg_type, |e, stamp| replacement.encode(e, stamp))
            }
            SideRequestKind::Cancel(orig) => {
                let cancel = OrderCancelRequest {
                    cl_ord_id,
                    orig_cl_ord_id: name(orig),
                    order_id,
                    symbol,
                    side,
                    transact_time,
                    qty,
                    cause,
                };
                self.send(OrderCancelRequest::MSG_TYPE, |e, stamp| cancel.encode(e, stamp))
            }
        };
        if !sent {
            return false;
        }
        let mut chunk = [0; 1024];
        while let Some(bytes) = self.session.fix.poll_transmit(&mut chunk) {
            self.session.gather(bytes);
        }
        true
    }
}

impl<O: OrderOut> SideWire<'_, O> {
    fn send(&mut self, msg_type: &[u8], fields: impl FnOnce(&mut Encoder<'_>, &mut Stamp)) -> bool {
        self.session
            .fix
            .send(self.now, msg_type, Again::GapFill, fields)
            .is_ok()
    }
}

/// What a venue says of the end of every order; whether it was asked by a session of quotes as orders.
pub(super) fn cancelled<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    session: usize,
    now: Nanos,
    name: u64,
    is_done: bool,
) -> bool {
    let at = hot.rule.who(ClientOrderId(name));
    let Some(sides) = of(&mut hot.rule, at, session) else {
        return false;
    };
    match sides.end_cancel(name, is_done) {
        None => {}
        // The session begins, or does not: its owner looks.
        Some(None) => {}
        Some(Some(id)) => {
            let report = QuoteReport::Cancelled { id, is_done };
            quote_report(hot, session, Some(name), now, &report);
        }
    }
    true
}

fn of<S>(live: &mut Live<S>, at: usize, session: usize) -> Option<&mut Sides> {
    live.hosted.get_mut(at)?.wiring.sides(session)
}

/// What a report says, if it is of an order that is a side of a quote: whether that order is known.
pub(super) fn report<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    session: usize,
    now: Nanos,
    report: &ExecutionReport,
) -> Option<bool> {
    let number = report.cl_ord_id.to_number()?;
    let at = hot.rule.who(ClientOrderId(number));
    let sides = of(&mut hot.rule, at, session).filter(|sides| sides.is_own(number))?;
    let place = sides.place_of(&report.symbol);
    let outcome = sides.report(report);
    let is_trade = matches!(report.exec_type, ExecType::Trade | ExecType::TradeCancel);
    let hosted = hot.rule.hosted.get(at)?;
    let name = place.map(|place| hosted.conductor.first_name() + u64::from(place));
    if let (true, Some(_), Some(name)) = (is_trade, outcome, name) {
        quote_report(hot, session, Some(name), now, &executed(report, name));
    }
    if let Some(outcome) = outcome {
        let news = of(&mut hot.rule, at, session).and_then(|sides| sides.news(Some(report), outcome));
        tell(hot, at, session, now, news);
    }
    // Another report than a trade that fits nothing changes nothing.
    Some(outcome.is_some() || !is_trade)
}

/// The same of a request that was refused.
pub(super) fn rejected<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    session: usize,
    now: Nanos,
    name: u64,
) -> bool {
    let at = hot.rule.who(ClientOrderId(name));
    let Some(sides) = of(&mut hot.rule, at, session).filter(|sides| sides.is_own(name)) else {
        return false;
    };
    let news = match sides.refused(name) {
        Some(outcome) => sides.news(None, outcome),
        None => None,
    };
    tell(hot, at, session, now, news);
    true
}

/// Answers what the venue need not be asked for.
#[inline]
pub(super) fn settle<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
) {
    for at in 0..hot.rule.hosted.len() {
        for session in 0..hot.rule.hosted[at].wiring.quotes.len() {
            while let Some(news) = of(&mut hot.rule, at, session).and_then(Sides::poll_idle) {
                tell(hot, at, session, now, Some(news));
            }
        }
    }
}

/// Tells the strategy of a quote whose orders have news.
fn tell<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    at: usize,
    session: usize,
    now: Nanos,
    news: Option<SideNews>,
) {
    let Some(first) = hot
        .rule
        .hosted
        .get(at)
        .map(|hosted| hosted.conductor.first_name())
    else {
        return;
    };
    match news {
        Some(SideNews::Settled(id, place, live, is_refused)) => {
            let name = first + u64::from(place);
            let report = QuoteReport::Settled {
                id,
                name,
                live,
                is_refused,
            };
            quote_report(hot, session, Some(name), now, &report);
        }
        Some(SideNews::Left(instrument, left)) => {
            let report = QuoteReport::Left { instrument, left };
            quote_report(hot, session, Some(first), now, &report);
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 900_000_065_536;

    fn sides(first: u64) -> Sides {
        let config = QuotesAsOrders {
            tick: Price::from_raw(1),
            first,
            answer_max_ns: 100,
        };
        Sides::new(4, BASE, config)
    }

    #[test]
    fn numbers_lead_back_to_their_requests_and_stay_within_their_range() {
        for first in [0, 1_795_000_000_000_000, NUMBERS - 2] {
            let sides = sides(first);
            for id in [0, 1, 2, 77, 1 << 30] {
                let name = sides.names.name(id);
                assert!((BASE..BASE + NUMBERS).contains(&name), "{first} {id}: {name}");
                assert_eq!(sides.names.id(name), Some(id), "{first}");
                assert!(sides.is_own(name));
            }
            assert!(!sides.is_own(BASE - 1) && !sides.is_own(BASE + NUMBERS));
        }
    }

    #[test]
    fn a_mass_cancel_is_known_by_its_name_and_once() {
        let mut sides = sides(0);
        let begin = |sides: &mut Sides, since: u64, id: Option<u64>| {
            let name = sides.names.name(sides.orders.number());
            sides.cancel = Some(Cancel {
                name,
                id: id.map(ClientOrderId),
                since: Nanos(since),
            });
            name
        };
        let first = begin(&mut sides, 7, None);
        assert!(sides.cancel.is_some() && !sides.is_clean());
        assert_eq!(sides.cleaning_until(), Some(Nanos(107)));
        assert_eq!(sides.end_cancel(first + 1, true), None);
        assert_eq!(sides.end_cancel(first, false), Some(None));
        assert!(!sides.is_clean() && sides.cancel.is_none());
        let second = begin(&mut sides, 8, Some(9));
        assert_ne!(first, second);
        assert_eq!(sides.cleaning_until(), None, "the strategy waits for it itself");
        assert_eq!(sides.end_cancel(second, true), Some(Some(ClientOrderId(9))));
        assert_eq!(sides.end_cancel(second, true), None);
        assert!(sides.is_clean());
        sides.forget();
        assert!(!sides.is_clean());
        begin(&mut sides, 9, None);
        sides.drop_cancel();
        assert!(sides.cancel.is_none() && sides.cleaning_until().is_none());
    }
}
