//! What the host tells the strategy.

use alloc::vec::Vec;
use tickwire_market::{ClientOrderId, Counter, Counters, Instrument, InstrumentId, Qty, TradingStatus};

use super::{LOOK, LOOK_NS, OptionQuoter, Pricing, Trade, TradeOf};
use crate::strategy::{
    BookChange, Context, LateExecution, MassQuoteEvent, OrderEvent, QuoteEvent, QuoteEventKind, Removal,
    Strategy, Subscription, TimerId, is_name_of_quote,
};
use crate::{OrderReport, PullReason, ReportKind};

impl<P: Pricing> Strategy for OptionQuoter<P> {
    fn subscriptions(&self) -> Vec<Subscription> {
        let options = self.options.iter().take(usize::from(self.config.quotes));
        let symbols = options.map(|option| option.symbol).chain([self.known.symbol()]);
        symbols.map(Subscription::Symbol).collect()
    }

    fn on_start(&mut self, ctx: &mut Context<'_>) {
        for quote in 0..self.config.quotes {
            self.follow_option(ctx, quote);
        }
        self.follow_host(ctx);
        ctx.set_timer(LOOK, ctx.now());
    }

    fn on_instrument(&mut self, ctx: &mut Context<'_>, instrument: &Instrument) {
        if self.known.name(instrument, &self.options) {
            // In the order of the options, as far as the host names them in it: those of a message lie
            // together.
            ctx.name_quote(instrument.id);
        }
    }

    #[inline]
    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        if ctx.has_session() != self.watch.has_session {
            self.follow_host(ctx);
        }
        if self.known.underlying() == Some(change.instrument) {
            self.maker.quoter.on_change(ctx.now());
            let top = self.known.show(change.after);
            self.tick(ctx, &top);
        } else if let Some(quote) = self.known.quote_of(change.instrument) {
            let is_live = change.is_live();
            if self.maker.eye().is_some() {
                self.with(ctx, |maker, now, port| {
                    maker.on_option(now, quote, change.after, port)
                });
            }
            if let Some(book) = ctx.book(change.instrument) {
                let now = ctx.now();
                let best = match is_live {
                    // Ours is no market: it would be judged by what we think ourselves.
                    true => self.maker.quoter.others(now, quote, &book),
                    false => [None; 2],
                };
                ctx.observe(change.instrument, best);
                self.with(ctx, |maker, now, port| {
                    maker.on_market(now, quote, is_live, best, port);
                });
            }
        }
    }

    fn on_status(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId, status: TradingStatus) {
        for quote in 0..self.config.quotes {
            if self.known.follow_status(ctx, quote, instrument, status) {
                self.follow_option(ctx, quote);
            }
        }
        if self.known.follow_underlying(ctx, instrument, status) {
            self.look(ctx);
        }
    }

    fn on_order(&mut self, ctx: &mut Context<'_>, event: &OrderEvent) {
        let order = &event.order;
        let Some(own) = self.under_way.orders.own(order.id) else {
            return;
        };
        let report = OrderReport {
            id: ClientOrderId(own),
            venue_id: order.venue_id,
            kind: event.kind,
        };
        let is_unknown = self.with(ctx, |maker, now, port| {
            !matches!(maker.on_eye_report(now, &report, port), Some(Ok(())))
        });
        let Some(trade) = Trade::of(order.side, &event.kind) else {
            return;
        };
        self.eye_traded(ctx, Some(order.instrument), (event.kind, true, is_unknown), trade);
        if trade.is_broken {
            self.with(ctx, |maker, now, port| {
                maker.pull_by(|quoter| quoter.pull_on_break(now, port));
            });
        }
    }

    fn on_own_quote(&mut self, ctx: &mut Context<'_>, event: &QuoteEvent) {
        let Some(quote) = self.known.quote_of(event.quote.instrument) else {
            return;
        };
        match event.kind {
            QuoteEventKind::Filled { side, qty, price } => {
                self.quote_traded(ctx, quote, Trade::new(side, qty, price));
            }
            QuoteEventKind::Broken { side, qty, price } => {
                self.quote_traded(ctx, quote, Trade::taken_back(side, qty, price));
            }
            // All of it at once: see on_mass_quote.
            QuoteEventKind::Removed(Removal::Protection) => {}
            QuoteEventKind::Removed(Removal::Other) => {
                let left = event.quote.live.map(|side| side.left.0);
                self.maker.quoter.on_left(quote, left);
            }
            QuoteEventKind::Differs(venue) => self.differs(ctx, quote, Some(venue.map(|qty| qty.0))),
            QuoteEventKind::Unanswered => self.differs(ctx, quote, None),
            QuoteEventKind::Confirmed => {
                // The host has it as the venue does: do we?
                let left = event.quote.live.map(|side| side.left.0);
                let is_still = !self.maker.quoter.is_in_flight(quote) && self.maker.is_quoting();
                if is_still && self.maker.quoter.open(quote) != left {
                    self.differs(ctx, quote, Some(left));
                }
            }
            QuoteEventKind::Cancelled if self.under_way.cancelling.is_none() => {
                // The host took it away.
                self.maker.quoter.on_removed(quote, [true; 2]);
            }
            QuoteEventKind::Accepted => {
                let mut live = event.quote.live.iter();
                if live.any(|side| side.left != side.qty) && self.early.len() < self.early.capacity() {
                    self.early.push(quote);
                }
            }
            QuoteEventKind::Refused | QuoteEventKind::Cancelled | QuoteEventKind::CancelRefused => {}
        }
    }

    fn on_mass_quote(&mut self, ctx: &mut Context<'_>, event: &MassQuoteEvent<'_>) {
        match *event {
            MassQuoteEvent::Answered {
                id,
                is_rejected,
                refused,
            } => self.answered(ctx, id, !is_rejected, refused),
            MassQuoteEvent::Settled {
                id,
                instrument,
                is_refused,
            } => self.settled(ctx, id, instrument, is_refused),
            MassQuoteEvent::Cancelled { id, is_done } => {
                if let Some((_, own)) = self.under_way.cancelling.take_if(|(host, _)| *host == id) {
                    if !is_done {
                        ctx.note("the venue did not cancel quotes", 0);
                    }
                    self.with(ctx, |maker, now, port| {
                        maker.quoter.on_cancelled(now, own, is_done, port);
                    });
                }
            }
            MassQuoteEvent::Protected => {
                self.maker.quoter.on_protected();
                self.maker.follow_pull(ctx.now());
            }
        }
    }

    fn on_late_execution(&mut self, ctx: &mut Context<'_>, late: &LateExecution) -> bool {
        let trade = Trade::of_late(late);
        let Some(instrument) = late.instrument else {
            return false;
        };
        let is_quote = late.number.is_none_or(is_name_of_quote);
        let quote = self.known.quote_of(instrument);
        match (is_quote, quote) {
            (true, Some(quote)) => {
                let Some(fill) = self.fill_of(quote, late.side, late.qty, late.price) else {
                    return false;
                };
                self.traded(ctx, (TradeOf::Quote, quote), trade);
                match late.is_broken {
                    true => self.with(ctx, |maker, now, port| maker.on_broken(now, &fill, port)),
                    false => self.maker.on_late_fill(&fill),
                }
                if !late.is_again {
                    self.distrust(ctx);
                }
            }
            (true, None) => return false,
            (false, _) => {
                let kind = match late.is_broken {
                    true => ReportKind::Broken {
                        qty: late.qty,
                        price: late.price,
                        cumulative: Qty::ZERO,
                    },
                    false => ReportKind::Filled {
                        qty: late.qty,
                        price: late.price,
                        cumulative: late.qty,
                    },
                };
                self.eye_traded(ctx, Some(instrument), (kind, !late.is_again, true), trade);
                if late.is_broken {
                    self.with(ctx, |maker, now, port| {
                        maker.pull_by(|quoter| quoter.pull_on_break(now, port));
                    });
                }
            }
        }
        true
    }

    #[inline]
    fn on_turn(&mut self, ctx: &mut Context<'_>) {
        let stood = self.with(ctx, |maker, now, port| maker.on_turn(now, port));
        if let Some(stood) = stood {
            (self.watch.stood, self.watch.has_stood) = (stood, true);
            self.watch.is_behind = true;
        } else if self.watch.is_behind && !self.watch.has_packet {
            self.watch.is_behind = false;
        }
        self.watch.has_packet = false;
        self.follow_host(ctx);
        self.take_ladders(ctx);
    }

    fn on_idle(&mut self, ctx: &mut Context<'_>) {
        self.with(ctx, |maker, now, port| maker.quoter.rehearse(now, port));
    }

    fn on_session(&mut self, ctx: &mut Context<'_>) {
        self.follow_host(ctx);
    }

    /// It may have been about our quotes: every quote is pulled.
    fn on_distrust(&mut self, ctx: &mut Context<'_>) -> bool {
        self.distrust(ctx);
        true
    }

    #[inline]
    fn on_packet(&mut self, ctx: &mut Context<'_>, _: usize) {
        self.watch.has_packet = true;
        if self.watch.is_behind {
            self.maker.on_backlog(ctx.now());
        }
        self.maker.quoter.on_packet(ctx.now());
    }

    /// What is due: timers come behind what the venue has said, and an answer that lies in the socket is not
    /// late.
    fn on_timer(&mut self, ctx: &mut Context<'_>, _: TimerId) {
        self.look_up(ctx);
        let now = ctx.now();
        if self.maker.poll_timeout().is_some_and(|due| due <= now) {
            self.pass(ctx);
        }
        ctx.set_timer(LOOK, now.after(LOOK_NS));
    }

    fn on_command(&mut self, ctx: &mut Context<'_>, words: &str) {
        match words.trim() {
            "pull" => self.pull(ctx),
            "resume" if !ctx.is_stopped() => _ = self.resume(ctx),
            "heartbeat" => self.maker.on_heartbeat(ctx.now()),
            "arm" => _ = self.arm_eye(ctx.now()),
            "disarm" => self.maker.disarm_eye(),
            _ => ctx.note("not a word of the quoter's", words.len() as i64),
        }
    }

    fn observes_markets(&self) -> bool {
        true
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, i64)) {
        let mut counters = Counters::default();
        self.maker.count_into(&mut counters);
        let count = |counter: Counter| i64::try_from(counters.get(counter)).unwrap_or(i64::MAX);
        tell("mass quotes", count(Counter::MassQuotesSent));
        tell("quotes in them", count(Counter::QuoteEntriesSent));
        tell("contracts held", self.maker.quoter.net());
        if let Some(eye) = self.maker.eye() {
            tell(
                "orders of the eye",
                i64::try_from(eye.counters().get(Counter::OrdersSent)).unwrap_or(i64::MAX),
            );
            tell(
                "contracts of the eye",
                i64::try_from(self.maker.eye_contracts()).unwrap_or(i64::MAX),
            );
        }
        for (reason, times) in PullReason::ALL.iter().zip(self.maker.quoter.pulls()) {
            if *times > 0 {
                tell(reason.name(), i64::try_from(*times).unwrap_or(i64::MAX));
            }
        }
    }
}
