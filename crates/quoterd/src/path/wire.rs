//! Where quotes and orders of the eye leave: past the controls, into messages of the session, and out.

use tickwire_fix::{
    Again, MassQuoteHead, MassQuoteTemplate, NewOrder, OrderTemplate, put_cancel_all_orders,
    put_cancel_all_quotes,
};
use tickwire_market::{Cause, Counter, Counters, Nanos, OrderIntent, Price};
use tickwire_node::hot::OrderOut;
use tickwire_trading::{Controls, MassQuote, OrderSink, QuoteSink, RiskReject, StrategyId, Wanted};

use crate::as_orders::{AsOrders, SideWire};
use crate::gather::Gathered;
use crate::path::QuoteSession;

/// Encodes what the quoter sends, and sends it.
pub struct QuoteWire<O> {
    /// The order entry session.
    pub session: QuoteSession,
    pub(super) entry: QuoteEntryForm,
    /// Of the eye's orders: the options in the order of the quotes, then the underlying. Empty without an
    /// eye.
    pub(super) orders: Box<[OrderTemplate]>,
    /// Even, and above every number that orders of this session have had. The eye's are even from there on,
    /// those that are sides of quotes odd.
    pub(super) first_order: u64,
    /// Where the bytes leave, those of one packet together.
    pub out: Gathered<O>,
    /// Time of what is sent: that of the event it follows.
    pub(super) now: Nanos,
    /// Messages and bytes of quotes sent.
    pub sent: [u64; 2],
    /// Orders of the eye sent.
    pub orders_sent: u64,
    /// What every quote and order passes last, a slot for each quote and one for the underlying behind them;
    /// `None` for tests and measurements of something else.
    pub controls: Option<Box<Controls>>,
    /// The last control that stopped something.
    pub stopped_by: Option<RiskReject>,
    pub(super) option_tick: Price,
    pub(super) counters: Counters,
}

impl<O: OrderOut> QuoteWire<O> {
    /// Sends what the session has to say. Before a mass quote, nothing else may wait.
    pub fn transmit(&mut self) {
        let mut chunk = [0_u8; 4096];
        while let Some(bytes) = self.session.poll_transmit(&mut chunk) {
            self.out.send(bytes);
        }
    }
}

impl<O> QuoteWire<O> {
    /// An order of the eye as the controls take it. Several parts of one fill may be hedged by orders alike.
    #[inline]
    fn wanted(&self, option: Option<u16>, order: &OrderIntent) -> Option<Wanted> {
        let OrderIntent::New {
            side,
            price,
            qty,
            cause,
            ..
        } = *order
        else {
            return None;
        };
        Some(Wanted {
            strategy: StrategyId::Eye,
            slot: option.map_or(self.orders.len().saturating_sub(1), usize::from),
            side,
            price,
            qty,
            cause: option.map(|_| cause.seq),
        })
    }

    /// Whether a control has stopped quotes or eye until a person resumes them.
    pub(super) fn is_stopped(&self) -> bool {
        self.controls.as_ref().is_some_and(|controls| {
            [StrategyId::Quotes, StrategyId::Eye]
                .iter()
                .any(|strategy| controls.stopped(*strategy).is_some())
        })
    }

    /// The market of an instrument: what its prices are held to.
    #[inline]
    pub(super) fn observe(&mut self, now: Nanos, slot: usize, best: [Option<Price>; 2]) {
        if let (Some(controls), [Some(bid), Some(ask)]) = (&mut self.controls, best)
            && bid < ask
        {
            // The middle of two 64-bit numbers is one.
            let mid = (i128::from(bid.raw()) + i128::from(ask.raw())) >> 1;
            controls.observe(now, slot, Price::from_raw(mid as i64));
        }
    }
}

/// How quotes are entered.
pub(super) enum QuoteEntryForm {
    MassQuotes(Box<MassQuoteTemplate>),
    Orders(Box<AsOrders>),
}

impl QuoteEntryForm {
    pub(super) fn as_orders(&mut self) -> Option<&mut AsOrders> {
        match self {
            QuoteEntryForm::MassQuotes(_) => None,
            QuoteEntryForm::Orders(orders) => Some(orders),
        }
    }
}

#[inline]
fn head_of(quote: &MassQuote<'_>) -> MassQuoteHead {
    MassQuoteHead {
        id: quote.id,
        cause: quote.cause,
        reset: quote.reset,
    }
}

impl<O: OrderOut> QuoteSink for QuoteWire<O> {
    #[inline]
    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool {
        let template = match &mut self.entry {
            QuoteEntryForm::MassQuotes(template) => template,
            QuoteEntryForm::Orders(entry) => {
                let mut wire = SideWire {
                    session: &mut self.session,
                    out: &mut self.out,
                    sent: &mut self.sent,
                    names: entry.names,
                    symbols: &entry.symbols,
                    tick: entry.tick,
                    now: self.now,
                };
                return entry.orders.quote(quote, &mut wire);
            }
        };
        let encoded = template.send(&mut self.session, self.now, &head_of(quote), quote.entries);
        let Ok(bytes) = encoded else {
            return false;
        };
        self.sent[0] += 1;
        self.sent[1] += bytes.len() as u64;
        self.out.gather(bytes);
        true
    }

    #[inline]
    fn admit(&mut self, now: Nanos, quote: &MassQuote<'_>) -> Result<(), RiskReject> {
        let Some(controls) = &mut self.controls else {
            return Ok(());
        };
        let price = |ticks: u16| Price::from_raw(self.option_tick.raw() * i64::from(ticks));
        for entry in quote.entries {
            let sides = [
                (price(entry.bid_ticks), entry.bid_qty),
                (price(entry.ask_ticks), entry.ask_qty),
            ];
            controls
                .check_quote(now, entry.quote.into(), sides)
                .inspect_err(|reason| self.stopped_by = Some(*reason))?;
        }
        for entry in quote.entries {
            controls.charge(now, entry.quote.into());
        }
        Ok(())
    }

    fn rehearse(&mut self, quote: &MassQuote<'_>) {
        if let QuoteEntryForm::MassQuotes(template) = &mut self.entry {
            let head = head_of(quote);
            template.rehearse(&self.session, self.now, &head, quote.entries);
        }
    }

    #[cold]
    fn cancel_all(&mut self, id: u64, _: &Cause) -> bool {
        let now = self.now;
        // Nor is it kept: with a connection that is lost the venue cancels by itself, and when it is asked
        // for again it would cancel, and confirm, quotes of the next one.
        let sent = match &mut self.entry {
            QuoteEntryForm::MassQuotes(_) => self
                .session
                .send(now, b"Z", Again::GapFill, |e, _| put_cancel_all_quotes(e, id)),
            QuoteEntryForm::Orders(entry) => {
                let name = entry.begin_cancel(now, id);
                let sent = self.session.send(now, b"q", Again::GapFill, |e, _| {
                    put_cancel_all_orders(e, name, now)
                });
                if sent.is_err() {
                    entry.drop_cancel();
                }
                sent
            }
        };
        self.transmit();
        sent.is_ok()
    }
}

impl<O: OrderOut> OrderSink for QuoteWire<O> {
    #[inline]
    fn order(&mut self, option: Option<u16>, order: &OrderIntent) -> bool {
        let wanted = self.wanted(option, order);
        if let (Some(controls), Some(wanted)) = (&mut self.controls, &wanted)
            && let Err(reason) = controls.check(self.now, wanted)
        {
            self.stopped_by = Some(reason);
            self.counters.bump(Counter::RiskRejects);
            self.counters.bump(reason.counter());
            return false;
        }
        let Some(mut order) = NewOrder::of(order) else {
            return false;
        };
        order.id.0 = self.first_order + 2 * order.id.0;
        let underlying = self.orders.len().saturating_sub(1);
        let Some(template) = self.orders.get_mut(option.map_or(underlying, usize::from)) else {
            return false;
        };
        let Ok(bytes) = template.send(&mut self.session, self.now, &order, Again::GapFill) else {
            return false;
        };
        self.orders_sent += 1;
        // Whether it arrived is told in the next session.
        self.out.send(bytes);
        if let (Some(controls), Some(wanted)) = (&mut self.controls, &wanted) {
            controls.sent(self.now, wanted, false);
        }
        true
    }
}
