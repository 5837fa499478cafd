//! Where the messages of quoter and eye go within a callback.

use alloc::boxed::Box;
use alloc::vec;
use tickwire_market::{
    Cause, ClientOrderId, InstrumentId, MassQuoteEntry, OrderIntent, Price, Qty, TimeInForce,
};

use super::known::Known;
use crate::quoter::{ENTRIES_MAX, NO_ASK, NO_BID};
use crate::strategy::{Context, NotSent, Quote, QuoteTerms, Ticket};
use crate::{MassQuote, OrderSink, QuoteSink, RiskReject};

/// Numbers that the host has given, beside those of quoter and eye: the newest take the place of the oldest.
#[derive(Debug)]
pub(super) struct Numbers {
    pairs: Box<[(ClientOrderId, u64)]>,
    next: usize,
}

impl Numbers {
    /// Room for so many under way.
    pub(super) fn new(room: usize) -> Numbers {
        Numbers {
            pairs: vec![(ClientOrderId(0), 0); room.max(1).next_power_of_two()].into_boxed_slice(),
            next: 0,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, host: ClientOrderId, own: u64) {
        let place = self.next & (self.pairs.len() - 1);
        self.pairs[place] = (host, own);
        self.next = self.next.wrapping_add(1);
    }

    /// Our number of what the host has given this one: what is answered is most often among the newest.
    #[inline]
    pub(super) fn own(&self, host: ClientOrderId) -> Option<u64> {
        let mask = self.pairs.len() - 1;
        (1..=self.pairs.len())
            .map(|back| self.pairs[self.next.wrapping_sub(back) & mask])
            .find(|(known, _)| *known == host)
            .map(|(_, own)| own)
    }
}

/// What quoter and eye have under way, by the host's numbers.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub(super) messages: Numbers,
    pub(super) orders: Numbers,
    /// The cancellation of everything, and the quoter's number of it.
    pub(super) cancelling: Option<(ClientOrderId, u64)>,
    /// There was nothing to cancel.
    pub(super) cancelled: Option<u64>,
    /// What stopped the last message or order, until it was seen to.
    pub(super) stopped_by: Option<NotSent>,
    /// A mass quote was stopped, and the quoter was not told yet.
    pub(super) is_stopped: bool,
}

impl UnderWay {
    /// Room for so many messages and orders.
    pub(super) fn new(messages: usize, orders: usize) -> UnderWay {
        UnderWay {
            messages: Numbers::new(messages),
            orders: Numbers::new(orders),
            cancelling: None,
            cancelled: None,
            stopped_by: None,
            is_stopped: false,
        }
    }
}

/// See the module.
pub(super) struct Port<'s, 'c, 'm> {
    pub(super) ctx: &'s mut Context<'c>,
    pub(super) under_way: &'m mut UnderWay,
    /// By quote, and the underlying.
    ids: &'m [Option<InstrumentId>],
    underlying: Option<InstrumentId>,
    tick: Price,
}

impl<'s, 'c, 'm> Port<'s, 'c, 'm> {
    #[inline]
    pub(super) fn new(
        ctx: &'s mut Context<'c>,
        under_way: &'m mut UnderWay,
        known: &'m Known,
        tick: Price,
    ) -> Port<'s, 'c, 'm> {
        Port {
            ctx,
            under_way,
            ids: known.ids(),
            underlying: known.underlying(),
            tick,
        }
    }
}

impl Port<'_, '_, '_> {
    /// The entries as the host has quotes; `None` of an instrument that the feed has not named.
    #[inline]
    fn quotes(&self, entries: &[MassQuoteEntry], quotes: &mut [Quote; ENTRIES_MAX]) -> Option<()> {
        let tick = self.tick.raw();
        for (entry, quote) in entries.iter().zip(quotes) {
            let side = |ticks: u16, none: u16, qty: Qty| match ticks == none {
                true => (Price::ZERO, Qty::ZERO),
                false => (Price::from_raw(tick * i64::from(ticks)), qty),
            };
            *quote = Quote {
                instrument: self.ids.get(usize::from(entry.quote)).copied().flatten()?,
                sides: [
                    side(entry.bid_ticks, NO_BID, entry.bid_qty),
                    side(entry.ask_ticks, NO_ASK, entry.ask_qty),
                ],
            };
        }
        Some(())
    }

    /// What stopped something; whether it is more than that there was no room.
    #[cold]
    fn stopped(&mut self, why: NotSent) -> bool {
        // A session that is lost, and silent market data, are told of otherwise, and pass.
        let is_rate = matches!(
            why,
            NotSent::Check(
                RiskReject::InstrumentRate
                    | RiskReject::OrderRate
                    | RiskReject::NoSession
                    | RiskReject::Silence
            ) | NotSent::NoSession
        );
        if !is_rate {
            self.under_way.stopped_by = Some(why);
        }
        !is_rate
    }
}

/// Books of options may be stale: what is quoted in them is the quoter's guard to say.
fn terms(resets: bool) -> QuoteTerms {
    QuoteTerms {
        resets,
        on_stale_book: true,
    }
}

impl QuoteSink for Port<'_, '_, '_> {
    #[inline]
    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool {
        let mut quotes = [Quote::none(InstrumentId::WHOLE_FEED); ENTRIES_MAX];
        if self.quotes(quote.entries, &mut quotes).is_none() {
            return false;
        }
        self.ctx.follow(quote.cause);
        let quotes = &quotes[..quote.entries.len()];
        match self.ctx.mass_quote_as(quotes, terms(quote.reset)) {
            Ok(id) => {
                self.under_way.messages.push(id, quote.id);
                true
            }
            Err(why) => {
                self.under_way.is_stopped = self.stopped(why);
                false
            }
        }
    }

    fn is_stopped(&mut self) -> bool {
        core::mem::take(&mut self.under_way.is_stopped)
    }

    fn rehearse(&mut self, quote: &MassQuote<'_>) {
        let mut quotes = [Quote::none(InstrumentId::WHOLE_FEED); ENTRIES_MAX];
        if self.quotes(quote.entries, &mut quotes).is_some() {
            let quotes = &quotes[..quote.entries.len()];
            self.ctx.rehearse_quotes(quotes, terms(quote.reset));
        }
    }

    #[cold]
    fn cancel_all(&mut self, id: u64, cause: &Cause) -> bool {
        self.ctx.follow(*cause);
        match self.ctx.cancel_every_quote() {
            Ok(host) => self.under_way.cancelling = Some((host, id)),
            Err(NotSent::NotOpen) => self.under_way.cancelled = Some(id),
            Err(_) => return false,
        }
        true
    }
}

impl OrderSink for Port<'_, '_, '_> {
    #[inline]
    fn order(&mut self, option: Option<u16>, order: &OrderIntent) -> bool {
        let OrderIntent::New {
            id,
            side,
            price,
            qty,
            cause,
            ..
        } = *order
        else {
            return false;
        };
        let instrument = match option {
            Some(option) => self.ids.get(usize::from(option)).copied().flatten(),
            None => self.underlying,
        };
        let Some(instrument) = instrument else {
            return false;
        };
        self.ctx.follow(cause);
        let ticket = Ticket::limit(side, instrument, qty.0, price).lasting(TimeInForce::ImmediateOrCancel);
        let ticket = match option {
            Some(_) => ticket,
            // Several parts of one fill may be hedged by orders alike.
            None => ticket.repeatable(),
        };
        match self.ctx.submit(ticket) {
            Ok(host) => {
                self.under_way.orders.push(host, id.0);
                true
            }
            // An order of the eye that a check stops is not sent, and nothing else: quotes are as good as
            // they were. Where a control has stopped all of it, the host says so.
            Err(_) => false,
        }
    }
}
