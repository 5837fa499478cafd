//! What is due between two events of the recording: requests at the venue, reports, timers, looks at the
//! market, in the order of their times.

use std::cmp::Reverse;

use tickwire_market::{ClientOrderId, InstrumentId, Nanos, Price, Side};
use tickwire_trading::strategy::{Markets, QuoteReport, Removal, Strategy, tick_of};

use super::Backtest;
use super::wire::{Asked, Told};

/// What may be due.
#[derive(Clone, Copy, Debug)]
enum Due {
    Triggered,
    Request,
    Report,
    Look,
    Timer,
    Second,
}

impl<S: Strategy> Backtest<S> {
    /// Everything that is due before the next event, which the venue tells at `now` and the strategy hears at
    /// `heard`: requests at the venue, reports, timers, looks at the market, in the order of their times.
    /// What is asked for at the very time of an event comes after it, and within a match event nothing comes
    /// to the venue.
    pub(super) fn advance(&mut self, now: Nanos, heard: Nanos) {
        let is_in_match = self.groups > 0 && now == self.now;
        while let Some((at, due)) = self.soonest(now, heard, is_in_match) {
            match due {
                Due::Triggered => self.deliver_triggered(),
                Due::Request => self.deliver_request(),
                Due::Report => self.deliver_report(),
                Due::Look => self.look(),
                Due::Timer => {
                    self.deliver_time(at.max(self.wire.heard));
                    if self.next_timer() == Some(at) {
                        break;
                    }
                }
                Due::Second => {
                    self.ledger.next_second = at.after(Nanos::SECOND);
                    self.value();
                }
            }
        }
        if now > self.ledger.next_second {
            // The recording pauses: no second of it needs a look.
            self.ledger.next_second = now.after(Nanos::SECOND);
        }
        let triggered = self.venue.next_triggered().map(|(at, _)| (at, 0));
        let of_wire = [triggered, self.wire.requests.due(), self.wire.reports.due()];
        let of_wire = of_wire.into_iter().flatten().map(|(at, _)| at);
        let look = self.ledger.looks.peek().map(|Reverse((at, ..))| *at);
        let second = (!self.ledger.accounts.is_empty()).then_some(self.ledger.next_second);
        self.wire.wake = of_wire.chain(look).chain(second).min().unwrap_or(Nanos(u64::MAX));
        self.wire.has_news = false;
    }

    /// What is due next. Of requests and reports of one time that was sent first comes first, behind a stop
    /// order that was triggered; what has no number comes behind both.
    #[inline]
    fn soonest(&self, now: Nanos, heard: Nanos, is_in_match: bool) -> Option<(Nanos, Due)> {
        let mut first = (Nanos(u64::MAX), u64::MAX);
        let mut is = None;
        let mut offer = |at: Nanos, number: u64, due: Due| {
            if (at, number) < first {
                (first, is) = ((at, number), Some(due));
            }
        };
        if !is_in_match {
            if let Some((at, _)) = self.venue.next_triggered().filter(|(at, _)| *at < now) {
                offer(at, 0, Due::Triggered);
            }
            if let Some((at, number)) = self.wire.requests.due().filter(|(at, _)| *at < now) {
                offer(at, number, Due::Request);
            }
        }
        if let Some((at, number)) = self.wire.reports.due().filter(|(at, _)| *at <= heard) {
            offer(at, number, Due::Report);
        }
        if let Some(Reverse((at, ..))) = self.ledger.looks.peek().filter(|Reverse((at, ..))| *at <= now) {
            offer(*at, u64::MAX, Due::Look);
        }
        if let Some(at) = self.next_timer().filter(|at| *at <= heard) {
            offer(at, u64::MAX, Due::Timer);
        }
        if self.ledger.next_second <= now && !self.ledger.accounts.is_empty() {
            offer(self.ledger.next_second, u64::MAX, Due::Second);
        }
        is.map(|due| (first.0, due))
    }

    /// Timers that are due by now.
    fn deliver_time(&mut self, at: Nanos) {
        self.wire.heard = at;
        for one in 0..self.entered.len() {
            let due = self.entered[one].conductor.next_timer();
            if due.is_some_and(|due| due <= at) {
                self.parts(one, |conductor, markets, port| {
                    conductor.on_turn(at, markets, port);
                    conductor.on_time(at, markets, port)
                });
            }
        }
    }

    fn deliver_request(&mut self) {
        let Some((at, asked)) = self.wire.requests.take() else {
            return;
        };
        let request = match asked {
            Asked::Order(request) => request,
            Asked::Quote { .. } => return self.deliver_quote(at, asked),
        };
        let instrument = request.instrument();
        let (feed, local) = Markets::new(&self.books.0, self.bits).local(instrument);
        let is_on_tick = request
            .order()
            .is_none_or(|order| self.are_on_tick(instrument, [order.limit(), order.stop]));
        let can_trade = self.trades(instrument) && is_on_tick;
        let Some(books) = self.books.0.get(feed) else {
            return;
        };
        if let Some(orders) = &mut self.orders {
            orders.arrive(at, &request);
        }
        self.venue
            .arrive(at, &request, (books, local), can_trade, &mut self.wire);
        self.account();
    }

    /// Whether the venue, and an instrument, are said to trade there.
    fn trades(&self, instrument: InstrumentId) -> bool {
        let (feed, _) = Markets::new(&self.books.0, self.bits).local(instrument);
        let is_halted = self.rules.halted.get(&instrument).copied().unwrap_or_default();
        self.rules.feeds_trade.get(feed).copied().unwrap_or_default() && !is_halted
    }

    fn are_on_tick(&self, instrument: InstrumentId, prices: [Option<Price>; 2]) -> bool {
        let defined = self.rules.defined.get(&instrument);
        let tick = |price| defined.map_or(1, |defined| tick_of(defined, price).raw());
        let mut prices = prices.into_iter().flatten();
        prices.all(|price| price.raw() % tick(price).max(1) == 0)
    }

    /// A quote of a mass quote, or of a cancellation, comes to the venue.
    fn deliver_quote(&mut self, at: Nanos, asked: Asked) {
        let Asked::Quote {
            id,
            entry,
            is_cancel,
            is_last,
        } = asked
        else {
            return;
        };
        let instrument = entry.quote.instrument;
        let (feed, local) = Markets::new(&self.books.0, self.bits).local(instrument);
        let prices = entry
            .quote
            .sides
            .map(|(price, qty)| (!qty.is_zero()).then_some(price));
        let is_any = prices.iter().any(Option::is_some);
        let is_taken = !is_any || (self.trades(instrument) && self.are_on_tick(instrument, prices));
        match self.books.0.get(feed).filter(|_| is_taken) {
            Some(books) => {
                for (side, of) in Side::BOTH.into_iter().zip(entry.quote.sides) {
                    self.wire.quoted.insert((entry.name, side), of);
                }
                self.venue.quote(at, &entry, (books, local), &mut self.wire);
            }
            None => {
                self.venue.rejects += 1;
                self.wire.tell(at, Told::QuoteRefused(entry.name));
            }
        }
        match (is_last, is_cancel) {
            (false, _) => {}
            (true, false) => self.wire.tell(at, Told::Quoted(id)),
            (true, true) => self.wire.tell(at, Told::QuotesCancelled(id)),
        }
        self.account();
    }

    /// A stop order that a trade has triggered acts on the book as it is now.
    fn deliver_triggered(&mut self) {
        let Some((at, instrument)) = self.venue.next_triggered() else {
            return;
        };
        let (feed, local) = Markets::new(&self.books.0, self.bits).local(instrument);
        let can_trade = self.trades(instrument);
        if let Some(books) = self.books.0.get(feed) {
            self.venue.trigger(at, (books, local), can_trade, &mut self.wire);
        }
        self.account();
    }

    fn deliver_report(&mut self) {
        let Some((at, told)) = self.wire.reports.take() else {
            return;
        };
        self.wire.heard = self.wire.heard.max(at);
        let (of, report) = match told {
            Told::Order(report) => {
                if let Some(orders) = &mut self.orders {
                    orders.hear(at, &report);
                }
                let whose = self.who(report.id);
                // One that fits no order is counted there, and of a fill stops everything.
                let _ = self.parts(whose, |conductor, markets, port| {
                    conductor.on_report(at, &report, markets, port)
                });
                return;
            }
            Told::QuoteRefused(name) => return self.refused.push(name),
            Told::Quoted(id) => {
                let refused = std::mem::take(&mut self.refused);
                let report = QuoteReport::Answered {
                    id,
                    is_rejected: false,
                    refused: &refused,
                };
                let whose = self.who(id);
                return self.parts(whose, |conductor, markets, port| {
                    conductor.on_quote_report(at, &report, markets, port)
                });
            }
            Told::QuotesCancelled(id) => (id.0, QuoteReport::Cancelled { id, is_done: true }),
            Told::QuoteRemoved(ref name) => {
                let names = std::slice::from_ref(name);
                let why = Removal::Other;
                (*name, QuoteReport::Removed { names, why })
            }
            Told::QuoteFilled {
                name,
                side,
                traded: (qty, price),
                of,
            } => {
                let report = QuoteReport::Filled {
                    name,
                    side,
                    qty,
                    price,
                    of,
                };
                (name, report)
            }
        };
        let whose = self.who(ClientOrderId(of));
        self.parts(whose, |conductor, markets, port| {
            conductor.on_quote_report(at, &report, markets, port)
        });
    }

    /// What is under way arrives; the market does not move any more.
    pub(super) fn deliver_all(&mut self) {
        loop {
            if self.venue.next_triggered().is_some() {
                self.deliver_triggered();
                continue;
            }
            match (self.wire.requests.due(), self.wire.reports.due()) {
                (None, None) => return,
                (Some(request), report) if report.is_none_or(|report| request < report) => {
                    self.deliver_request()
                }
                _ => self.deliver_report(),
            }
        }
    }
}
