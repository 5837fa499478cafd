//! The built-in rule in a conductor, with tops of books told to it directly and its requests kept.

#![allow(dead_code)]

use tickwire_book::{Books, BooksConfig};
use tickwire_market::{
    BookState, BookUpdate, Cause, ClientOrderId, EventKind, Instrument, InstrumentId, MarketEvent, Nanos,
    OrderIntent, Qty, Symbol, TimeInForce, TradingStatus,
};
use tickwire_trading::strategy::{Conductor, ConductorConfig, Markets, OrderPort, Outcome, Rejected};
use tickwire_trading::{BestOffer, Change, OrderReport, ReportError, RiskConfig};

/// The instrument that is traded.
pub(crate) const ID: InstrumentId = InstrumentId(1);
const BITS: u32 = 2;

/// What has been sent last.
struct Last(Option<OrderIntent>);

impl OrderPort for Last {
    fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        assert!(self.0.replace(*request).is_none(), "one request for a change");
        Ok(())
    }
}

/// The rule on [`ID`].
pub(crate) struct RuleRig {
    pub(crate) conductor: Conductor<BestOffer>,
    books: [Books; 1],
    port: Last,
    now: Nanos,
}

impl RuleRig {
    pub(crate) fn new(lot: Qty, time_in_force: TimeInForce, max_orders: u32, risk: RiskConfig) -> RuleRig {
        let symbol = Symbol::new(b"AAPL").expect("a symbol");
        let config = ConductorConfig {
            instrument_bits: BITS,
            max_orders,
            risk,
            ..ConductorConfig::default()
        };
        let mut rig = RuleRig {
            conductor: Conductor::new(BestOffer::new(symbol, lot, time_in_force), &config),
            books: [Books::new(BooksConfig {
                instruments: 1 << BITS,
                orders: 8,
                levels: 8,
                initial: BookState::Live,
                ..BooksConfig::default()
            })],
            port: Last(None),
            now: Nanos::ZERO,
        };
        let instrument = Instrument {
            id: ID,
            symbol,
            ..Instrument::default()
        };
        let markets = Markets::new(&rig.books, BITS);
        let (conductor, port) = (&mut rig.conductor, &mut rig.port);
        assert!(conductor.define(Nanos::ZERO, 0, &instrument, None, markets, port));
        rig
    }

    /// What a top of the book makes the rule send.
    pub(crate) fn on_update(&mut self, now: Nanos, update: &BookUpdate) -> Option<OrderIntent> {
        self.now = now;
        let event = MarketEvent {
            kind: EventKind::Level,
            instrument: ID,
            seq: update.seq,
            recv_ts: now,
            ..MarketEvent::default()
        };
        self.event(&event, &Outcome::Update(*update, None))
    }

    pub(crate) fn on_status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        let event = MarketEvent {
            kind: EventKind::Status,
            instrument,
            status,
            ..MarketEvent::default()
        };
        assert_eq!(self.event(&event, &Outcome::Other), None);
    }

    /// A snapshot begins.
    pub(crate) fn forget_statuses(&mut self) {
        let event = MarketEvent {
            kind: EventKind::Clear,
            instrument: InstrumentId::WHOLE_FEED,
            ..MarketEvent::default()
        };
        assert_eq!(self.event(&event, &Outcome::Other), None);
    }

    fn event(&mut self, event: &MarketEvent, applied: &Outcome) -> Option<OrderIntent> {
        let markets = Markets::new(&self.books, BITS);
        self.conductor
            .on_event(0, event, applied, false, markets, &mut self.port);
        self.port.0.take()
    }

    pub(crate) fn on_report(&mut self, report: &OrderReport) -> Result<Change, ReportError> {
        let markets = Markets::new(&self.books, BITS);
        self.conductor
            .on_report(self.now, report, markets, &mut self.port)
    }

    pub(crate) fn withdraw(&mut self, id: ClientOrderId) -> bool {
        self.conductor.withdraw(id)
    }

    pub(crate) fn cancel_next(&mut self) -> Option<OrderIntent> {
        self.conductor.cancel_next(Cause::default())
    }
}
