//! A path of one strategy, for hosts that know which one it is: the quoter's process.

use std::collections::BTreeMap;

use tickwire_book::Books;
use tickwire_fix::Status;
use tickwire_lab::Probes;
use tickwire_market::{Instrument, Nanos, PointValue};
use tickwire_runtime::clock::Clock;
use tickwire_trading::strategy::{Conductor, ConductorConfig, Context, Strategy};

use super::rule::packet;
use super::{Live, QuoteForm, QuotesAsOrders, Sides, define_one, parts};
use crate::hot::{EntrySession, HotPath, OrderOut, OrderSession};

impl<S: Strategy> Live<S> {
    /// The strategy with its orders, quotes, positions and limits.
    pub fn conductor(&self) -> &Conductor<S> {
        &self.hosted[0].conductor
    }

    /// The same to change.
    pub fn conductor_mut(&mut self) -> &mut Conductor<S> {
        &mut self.hosted[0].conductor
    }

    /// Quotes leave as orders over the first session from now on: a mass quote is of one instrument then.
    pub fn quote_by_orders(&mut self, config: QuotesAsOrders) {
        let hosted = &mut self.hosted[0];
        let room = hosted.conductor.quotes_max();
        // Behind the names of the quotes.
        let base = hosted.conductor.first_name() + (1 << 16);
        hosted.wiring.quotes[0] = QuoteForm::Orders(Box::new(Sides::new(room, base, config)));
    }
}

impl<O: OrderOut, S: Strategy, const STAMPED: bool> HotPath<O, STAMPED, Live<S>> {
    /// A path of one strategy on one feed and one session, with which what it has open ends. Everything that
    /// it needs is allocated here.
    /// `is_grouped`: changes of books are told at the end of the venue's atomic group. What is sent has the
    /// time of the event that it follows, not the clock's: a run is a function of its events.
    pub fn of_one(
        strategy: S,
        config: &ConductorConfig,
        is_grouped: bool,
        books: Books,
        (fix, out): (EntrySession, O),
        clock: Clock,
    ) -> HotPath<O, STAMPED, Live<S>> {
        let mut rule = Live::alone(strategy, config, !is_grouped);
        rule.is_grouped = vec![is_grouped];
        rule.hears_everything = vec![is_grouped];
        rule.hosted[0].ends_with_session = true;
        HotPath {
            books: vec![books],
            consolidated: None,
            source: 0,
            rule,
            sessions: vec![OrderSession::new(fix, out)],
            probes: Probes::new(1),
            samples: 0,
            received: Nanos::ZERO,
            by_event_time: true,
            clock,
            at_close: BTreeMap::new(),
        }
    }

    /// Tells the strategy of an instrument.
    pub fn define(&mut self, now: Nanos, instrument: &Instrument, point: Option<PointValue>) {
        define_one(self, now, instrument, point.map(|point| point.raw()));
    }

    /// The run begins.
    pub fn start(&mut self, now: Nanos) {
        super::start(self, now);
    }

    /// Has the strategy do something that no callback is for.
    #[inline]
    pub fn act<T>(&mut self, now: Nanos, does: impl FnOnce(&mut S, &mut Context<'_>) -> T) -> T {
        parts(self, 0, 0, |conductor, markets, port| {
            conductor.act(now, markets, port, does)
        })
    }

    /// What the packet in hand has changed is told, even where the venue forgot to say that its event is
    /// over.
    #[inline]
    pub fn end_group(&mut self, now: Nanos) {
        parts(self, 0, 0, |conductor, markets, port| {
            conductor.end_group(now, 0, markets, port)
        });
    }

    /// A packet is over.
    #[inline]
    pub fn packet(&mut self, now: Nanos) {
        packet(self, now);
    }

    /// Whether the session is logged on.
    pub fn is_active(&self) -> bool {
        self.sessions[0].fix.status() == Status::Active
    }
}
