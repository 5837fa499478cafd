//! The [`Quoter`] as a [`Strategy`]: hosted as anybody's, live, against the simulator and in a backtest.
//!
//! ```text
//! on_book ─► Quoter ─► Context::mass_quote ─► checks of the host ─► order session
//! on_own_quote ─► answers of a message, gathered ─► Quoter
//! on_timer ─► ladders, timeouts, the session
//! ```
//! Ladders come from outside ([`Ladders`]): pricing takes time and floating point, which have no place in a
//! callback.
//!
//! What `tickwire quote` has beyond it needs more than a strategy is told: which protection took quotes away,
//! executions of a session before this one, orders of the eye beside the quotes. It runs the same [`Quoter`]
//! on a path of its own.

use crate::quoter::{ENTRIES_MAX, NO_ASK, NO_BID};
use crate::strategy::{
    BookChange, Context, NotSent, Quote, QuoteEvent, QuoteEventKind, Strategy, Subscription, TimerId,
};
use crate::{
    Fill, Ladder, MassQuote, PullReason, QuoteSink, Quoter, QuoterConfig, QuotingState, RiskReject,
    SilenceConfig,
};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use tickwire_market::{
    BookState, Cause, Counter, Instrument, InstrumentId, MassQuoteEntry, Nanos, Price, Qty, Side, Symbol,
    TradingStatus,
};

/// Between two looks at ladders, timeouts and the session.
const LOOK_NS: u64 = Nanos::MILLI;
/// The timer of these.
const LOOK: TimerId = TimerId(0);
/// No message, or no quote.
const NONE: u16 = u16::MAX;

/// Where ladders come from: what is wanted at each price of the underlying, made elsewhere.
pub trait Ladders {
    /// A newer one, if there is one.
    fn next(&mut self) -> Option<Box<Ladder>>;
    /// The one before, to be filled again.
    fn give_back(&mut self, ladder: Box<Ladder>);
}

/// An option to be quoted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotedOption {
    /// The venue's symbol.
    pub symbol: Symbol,
    /// Its delta, in thousandths.
    pub delta_milli: i32,
}

/// Quotes the options on one underlying by mass quotes of a [`Context`].
///
/// An operator's words ([`Strategy::on_command`]): `pull`, `resume`, `heartbeat`.
pub struct OptionQuoter<L> {
    quoter: Quoter,
    config: QuoterConfig,
    ladders: L,
    underlying: Symbol,
    options: Vec<QuotedOption>,
    known: Known,
    answers: Answers,
    has_session: bool,
    last_stop: Option<NotSent>,
}

/// Which instruments these are, as far as the feed has said.
struct Known {
    underlying: Option<InstrumentId>,
    /// By quote.
    ids: Vec<Option<InstrumentId>>,
    /// By instrument, sorted.
    quotes: Vec<(InstrumentId, u16)>,
    /// By quote: whether its book is live, and whether it trades.
    is_live: Vec<bool>,
    trades: Vec<bool>,
}

impl Known {
    fn quote_of(&self, id: InstrumentId) -> Option<u16> {
        let at = self.quotes.binary_search_by_key(&id, |(known, _)| *known).ok()?;
        Some(self.quotes[at].1)
    }
}

/// A mass quote whose quotes are answered one by one.
#[derive(Clone, Copy)]
struct SentQuotes {
    /// The quoter's number of it.
    id: u64,
    waits: u8,
    count: u8,
    quotes: [u16; ENTRIES_MAX],
    refused: [u16; ENTRIES_MAX],
    refusals: u8,
}

impl SentQuotes {
    const FREE: SentQuotes = SentQuotes {
        id: 0,
        waits: 0,
        count: 0,
        quotes: [0; ENTRIES_MAX],
        refused: [0; ENTRIES_MAX],
        refusals: 0,
    };
}

/// What is under way, and what the last request came to.
struct Answers {
    /// Free where none waits.
    messages: Vec<SentQuotes>,
    /// By quote: the message that it is in.
    message_of: Vec<u16>,
    /// The quoter's number of the cancellation under way, and how many quotes it still waits for.
    cancelling: Option<(u64, u32)>,
    /// What stopped the last message.
    stopped_by: Option<NotSent>,
}

impl Answers {
    fn begin(&mut self, id: u64, entries: &[MassQuoteEntry]) -> bool {
        let Some(free) = self.messages.iter().position(|message| message.waits == 0) else {
            return false;
        };
        let mut message = SentQuotes {
            id,
            waits: entries.len() as u8,
            count: entries.len() as u8,
            ..SentQuotes::FREE
        };
        for (entry, quote) in entries.iter().zip(&mut message.quotes) {
            *quote = entry.quote;
            if let Some(of) = self.message_of.get_mut(usize::from(entry.quote)) {
                *of = free as u16;
            }
        }
        self.messages[free] = message;
        true
    }

    fn has_room(&self) -> bool {
        self.messages.iter().any(|message| message.waits == 0)
    }

    /// A quote was answered; its message once all of it was.
    fn end(&mut self, quote: u16, is_refused: bool) -> Option<SentQuotes> {
        let of = core::mem::replace(self.message_of.get_mut(usize::from(quote))?, NONE);
        let message = self.messages.get_mut(usize::from(of))?;
        if is_refused {
            message.refused[usize::from(message.refusals)] = quote;
            message.refusals += 1;
        }
        message.waits -= 1;
        (message.waits == 0).then_some(*message)
    }

    fn forget(&mut self) {
        self.messages.iter_mut().for_each(|message| message.waits = 0);
        self.message_of.fill(NONE);
        self.cancelling = None;
    }
}

/// Where the quoter's messages go within a callback.
struct Port<'s, 'c, 'm> {
    ctx: &'s mut Context<'c>,
    answers: &'m mut Answers,
    ids: &'m [Option<InstrumentId>],
    tick: Price,
}

impl QuoteSink for Port<'_, '_, '_> {
    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool {
        let mut quotes = [Quote::none(InstrumentId::WHOLE_FEED); ENTRIES_MAX];
        if !self.answers.has_room() {
            return false;
        }
        for (entry, place) in quote.entries.iter().zip(&mut quotes) {
            let Some(instrument) = self.ids.get(usize::from(entry.quote)).copied().flatten() else {
                return false;
            };
            let price = |ticks: u16| Price::from_raw(self.tick.raw() * i64::from(ticks));
            let side = |ticks: u16, none: u16, qty: Qty| match ticks == none {
                true => (Price::ZERO, Qty::ZERO),
                false => (price(ticks), qty),
            };
            *place = Quote {
                instrument,
                sides: [
                    side(entry.bid_ticks, NO_BID, entry.bid_qty),
                    side(entry.ask_ticks, NO_ASK, entry.ask_qty),
                ],
            };
        }
        let quotes = &quotes[..quote.entries.len()];
        let sent = match quote.reset {
            true => self.ctx.mass_quote_again(quotes),
            false => self.ctx.mass_quote(quotes),
        };
        match sent {
            Ok(_) => self.answers.begin(quote.id, quote.entries),
            Err(why) => {
                self.answers.stopped_by = Some(why);
                false
            }
        }
    }

    #[cold]
    fn cancel_all(&mut self, id: u64, _: &Cause) -> bool {
        let count = self.ctx.cancel_quotes();
        self.answers.cancelling = Some((id, count));
        true
    }
}

impl<L: Ladders> OptionQuoter<L> {
    /// Quotes `options`, at most `config.quotes` of them, in the order of their delta; nothing until the feed
    /// has named them and a ladder has come. `config.underlying` and `config.silence` mean nothing: it is
    /// found by its symbol, and a strategy is told of books, not of packets, whose silence is the host's to
    /// watch.
    pub fn new(
        config: QuoterConfig,
        underlying: Symbol,
        options: Vec<QuotedOption>,
        ladders: L,
    ) -> OptionQuoter<L> {
        let config = QuoterConfig {
            quotes: config.quotes.min(options.len().min(usize::from(NONE - 1)) as u16),
            silence: SilenceConfig {
                least_ns: 0,
                most_ns: 0,
            },
            ..config
        };
        let count = usize::from(config.quotes);
        OptionQuoter {
            quoter: Quoter::new(config),
            config,
            ladders,
            underlying,
            options,
            known: Known {
                underlying: None,
                ids: vec![None; count],
                quotes: Vec::with_capacity(count),
                is_live: vec![false; count],
                trades: vec![true; count],
            },
            answers: Answers {
                messages: vec![SentQuotes::FREE; usize::from(config.in_flight_max).max(1)],
                message_of: vec![NONE; count],
                cancelling: None,
                stopped_by: None,
            },
            has_session: false,
            last_stop: None,
        }
    }

    /// What is quoted, and what is believed live.
    pub fn quoter(&self) -> &Quoter {
        &self.quoter
    }

    /// What stopped a message last: each but a rate pulls every quote until an operator resumes.
    pub fn last_stop(&self) -> Option<NotSent> {
        self.last_stop
    }

    /// Where ladders come from.
    pub fn ladders_mut(&mut self) -> &mut L {
        &mut self.ladders
    }

    /// Has the quoter do something with the context, then sees to what came of it.
    #[inline]
    fn with(&mut self, ctx: &mut Context<'_>, does: impl FnOnce(&mut Quoter, Nanos, &mut Port<'_, '_, '_>)) {
        let now = ctx.now();
        let mut port = Port {
            ctx,
            answers: &mut self.answers,
            ids: &self.known.ids,
            tick: self.config.option_tick,
        };
        does(&mut self.quoter, now, &mut port);
        if self.answers.stopped_by.is_some() || matches!(self.answers.cancelling, Some((_, 0))) {
            self.conclude(ctx);
        }
    }

    /// A message was stopped, or there was nothing to cancel.
    #[cold]
    fn conclude(&mut self, ctx: &mut Context<'_>) {
        let now = ctx.now();
        for _ in 0..4 {
            let mut port = Port {
                ctx: &mut *ctx,
                answers: &mut self.answers,
                ids: &self.known.ids,
                tick: self.config.option_tick,
            };
            let stopped_by = port.answers.stopped_by.take();
            self.last_stop = stopped_by.or(self.last_stop);
            match (stopped_by, port.answers.cancelling) {
                // These pass by themselves.
                (
                    Some(NotSent::Check(
                        RiskReject::InstrumentRate | RiskReject::OrderRate | RiskReject::Silence,
                    )),
                    _,
                ) => {}
                // What stops one quote stops all, until a person resumes: as the controls of a quoter do.
                (Some(_), _) => self.quoter.pull_on_control(now, &mut port),
                (None, Some((id, 0))) => {
                    self.answers.forget();
                    let mut port = Port {
                        ctx: &mut *ctx,
                        answers: &mut self.answers,
                        ids: &self.known.ids,
                        tick: self.config.option_tick,
                    };
                    self.quoter.on_cancelled(now, id, true, &mut port);
                }
                (None, _) => return,
            }
        }
    }

    /// Whether the session and the host's checks are there as they were.
    fn follow_host(&mut self, ctx: &mut Context<'_>) {
        let has_session = ctx.has_session();
        if has_session != self.has_session {
            self.has_session = has_session;
            match has_session {
                true => self.quoter.on_logon(ctx.now()),
                false => {
                    self.quoter.on_disconnect();
                    self.answers.forget();
                }
            }
        }
        if ctx.is_stopped() && self.quoter.state() == QuotingState::Quoting {
            self.with(ctx, |quoter, now, port| quoter.pull_on_control(now, port));
        }
    }

    /// Whether an option may be quoted now.
    fn follow_option(&mut self, ctx: &mut Context<'_>, quote: u16) {
        let at = usize::from(quote);
        let is_quoted = self.known.is_live[at] && self.known.trades[at];
        self.with(ctx, |quoter, now, port| {
            quoter.set_quoted(now, quote, is_quoted, port);
        });
    }

    fn set_live(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId, is_live: bool) {
        if let Some(quote) = self.known.quote_of(instrument) {
            self.known.is_live[usize::from(quote)] = is_live;
            self.follow_option(ctx, quote);
        }
    }

    /// A quote was answered: its message is, once all of it was.
    fn answered(&mut self, ctx: &mut Context<'_>, quote: u16, is_refused: bool) {
        let Some(message) = self.answers.end(quote, is_refused) else {
            return;
        };
        let refused = &message.refused[..usize::from(message.refusals)];
        let is_any = message.refusals < message.count;
        self.with(ctx, |quoter, now, port| {
            quoter.on_answer(now, message.id, is_any.then_some(refused), port);
        });
        // Some of it may have traded before it was answered.
        for quote in &message.quotes[..usize::from(message.count)] {
            let id = self.known.ids.get(usize::from(*quote)).copied().flatten();
            if let Some(own) = id.and_then(|id| ctx.own_quote(id)) {
                self.quoter.on_left(*quote, own.live.map(|side| side.left.0));
            }
        }
    }

    /// One of the quotes that are being cancelled is; the quoter is told when all of them are.
    fn cancelled(&mut self, ctx: &mut Context<'_>, quote: u16) {
        match &mut self.answers.cancelling {
            Some((id, left)) => {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    let id = *id;
                    self.answers.forget();
                    self.with(ctx, |quoter, now, port| quoter.on_cancelled(now, id, true, port));
                }
            }
            None => {
                // The host took it away.
                self.quoter.on_removed(quote, [true; 2]);
                self.answered(ctx, quote, true);
            }
        }
    }

    fn fill_of(&self, quote: u16, side: Side, qty: Qty, price: Price) -> Option<Fill> {
        Some(Fill {
            quote,
            side,
            qty,
            ticks: u16::try_from(price.raw() / self.config.option_tick.raw().max(1)).ok()?,
            delta_milli: self.options[usize::from(quote)].delta_milli,
        })
    }
}

impl<L: Ladders> Strategy for OptionQuoter<L> {
    fn subscriptions(&self) -> Vec<Subscription> {
        let options = self.options.iter().take(usize::from(self.config.quotes));
        let symbols = options.map(|option| option.symbol).chain([self.underlying]);
        symbols.map(Subscription::Symbol).collect()
    }

    fn on_start(&mut self, ctx: &mut Context<'_>) {
        for quote in 0..self.config.quotes {
            self.follow_option(ctx, quote);
        }
        self.follow_host(ctx);
        ctx.set_timer(LOOK, ctx.now());
    }

    fn on_instrument(&mut self, _: &mut Context<'_>, instrument: &Instrument) {
        if instrument.symbol == self.underlying {
            self.known.underlying = Some(instrument.id);
        }
        let place = self
            .options
            .iter()
            .take(self.known.ids.len())
            .position(|option| option.symbol == instrument.symbol);
        if let Some(quote) = place
            && self.known.ids[quote].is_none()
        {
            self.known.ids[quote] = Some(instrument.id);
            let before = self.known.quotes.partition_point(|(id, _)| *id < instrument.id);
            // Room for every option was made at the start.
            self.known.quotes.insert(before, (instrument.id, quote as u16));
        }
    }

    #[inline]
    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        if ctx.has_session() != self.has_session {
            self.follow_host(ctx);
        }
        let now = ctx.now();
        if self.known.underlying == Some(change.instrument) {
            self.quoter.on_change(now);
            let mut top = *change.after;
            if !ctx.is_trading(change.instrument) {
                top.state = BookState::Stale;
            }
            self.with(ctx, |quoter, now, port| quoter.on_underlying(now, &top, port));
        } else if let Some(quote) = self.known.quote_of(change.instrument)
            && self.config.market.is_some()
            && let Some(book) = ctx.book(change.instrument)
        {
            let best = match change.is_live() {
                true => self.quoter.others(now, quote, &book),
                false => [None; 2],
            };
            let is_live = change.is_live();
            self.with(ctx, |quoter, now, port| {
                quoter.on_market(now, quote, is_live, best, port);
            });
        }
    }

    fn on_live(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        self.set_live(ctx, instrument, true);
    }

    fn on_stale(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        self.set_live(ctx, instrument, false);
    }

    fn on_status(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId, _: TradingStatus) {
        for quote in 0..self.config.quotes {
            let at = usize::from(quote);
            let Some(id) = self.known.ids[at] else { continue };
            let trades = ctx.is_trading(id);
            if (id == instrument || ctx.is_whole_feed_of(instrument, id)) && self.known.trades[at] != trades {
                self.known.trades[at] = trades;
                self.follow_option(ctx, quote);
            }
        }
        if let Some(id) = self.known.underlying
            && !ctx.is_trading(id)
            && let Some(book) = ctx.book(id)
        {
            let mut top = book.update();
            top.state = BookState::Stale;
            self.with(ctx, |quoter, now, port| quoter.on_underlying(now, &top, port));
        }
    }

    fn on_own_quote(&mut self, ctx: &mut Context<'_>, event: &QuoteEvent) {
        let Some(quote) = self.known.quote_of(event.quote.instrument) else {
            return;
        };
        match event.kind {
            QuoteEventKind::Accepted => self.answered(ctx, quote, false),
            QuoteEventKind::Refused => self.answered(ctx, quote, true),
            QuoteEventKind::Filled { side, qty, price } => {
                if let Some(fill) = self.fill_of(quote, side, qty, price) {
                    // One that was not answered yet may trade already.
                    self.with(ctx, |quoter, now, port| match quoter.is_in_flight(quote) {
                        true => quoter.on_order_fill(now, &fill, port),
                        false => quoter.on_fill(now, &fill, port),
                    });
                }
            }
            QuoteEventKind::Broken { side, qty, price } => {
                if let Some(fill) = self.fill_of(quote, side, qty, price) {
                    self.with(ctx, |quoter, now, port| quoter.on_broken(now, &fill, port));
                }
            }
            QuoteEventKind::Removed => {
                let left = event.quote.live.map(|side| side.left.0);
                self.quoter.on_left(quote, left);
            }
            QuoteEventKind::Cancelled => self.cancelled(ctx, quote),
            QuoteEventKind::CancelRefused => {
                if let Some((id, _)) = self.answers.cancelling.take() {
                    ctx.note("the venue did not cancel quotes", i64::from(quote));
                    self.with(ctx, |quoter, now, port| quoter.on_cancelled(now, id, false, port));
                }
            }
        }
    }

    fn on_timer(&mut self, ctx: &mut Context<'_>, _: TimerId) {
        self.follow_host(ctx);
        self.with(ctx, |quoter, now, port| {
            quoter.on_turn(now, port);
        });
        while let Some(ladder) = self.ladders.next() {
            let mut before = None;
            self.with(ctx, |quoter, now, port| {
                before = quoter.replace_ladder(now, ladder, port)
            });
            if let Some(before) = before {
                self.ladders.give_back(before);
            }
        }
        let now = ctx.now();
        if self.quoter.poll_timeout().is_some_and(|due| due <= now) {
            self.with(ctx, |quoter, now, port| quoter.handle_timeout(now, port));
        }
        if let QuotingState::Halted(reason) = self.quoter.state()
            && reason.is_passing()
            && let Some(book) = self.known.underlying.and_then(|id| ctx.book(id))
            && book.state() == BookState::Live
        {
            // It may not change.
            let top = book.update();
            self.with(ctx, |quoter, now, port| quoter.on_underlying(now, &top, port));
        }
        ctx.set_timer(LOOK, ctx.now().after(LOOK_NS));
    }

    fn on_command(&mut self, ctx: &mut Context<'_>, words: &str) {
        match words.trim() {
            "pull" => self.with(ctx, |quoter, now, port| quoter.pull(now, port)),
            "resume" if !ctx.is_stopped() => _ = self.quoter.resume(ctx.now()),
            "heartbeat" => self.quoter.on_heartbeat(ctx.now()),
            _ => ctx.note("not a word of the quoter's", words.len() as i64),
        }
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, i64)) {
        let counters = self.quoter.counters();
        let count = |counter: Counter| i64::try_from(counters.get(counter)).unwrap_or(i64::MAX);
        tell("mass quotes", count(Counter::MassQuotesSent));
        tell("quotes in them", count(Counter::QuoteEntriesSent));
        tell("contracts held", self.quoter.net());
        for (reason, times) in PullReason::ALL.iter().zip(self.quoter.pulls()) {
            if *times > 0 {
                tell(reason.name(), i64::try_from(*times).unwrap_or(i64::MAX));
            }
        }
    }
}

#[cfg(test)]
mod tests;
