//! What the trading thread asks of what it runs: the built-in rule, or a strategy of one's own.

use tickwire_book::BooksConfig;
use tickwire_feed::Channel;
use tickwire_market::{Cause, Counters, InstrumentId, Nanos, OrderIntent, Symbol};
use tickwire_trading::{Change, OrderReport, Orders, ReportError, Risk, TickToTrade};

use crate::hot::{HotPath, OrderOut};
use tickwire_venues::protocol::Protocol;

/// See the module. What concerns books or the session gets the whole path.
pub trait Rule: Sized {
    /// The orders that are open or were.
    fn orders(&self) -> &Orders;
    /// The limits, and what of them is used.
    fn risk(&self) -> &Risk;
    /// The same to change: a limit that was reached, a control that was resumed.
    fn risk_mut(&mut self) -> &mut Risk;
    /// What it counted.
    fn counters(&self) -> &Counters;
    /// Says whether the order entry session is logged on. While it is not, no order may go out, and what was open then is not known.
    fn set_session(&mut self, is_up: bool);
    /// Stops every further order. What is open stays open until it is cancelled.
    fn kill(&mut self);
    /// The next request to cancel an open order not asked for yet.
    fn cancel_next(&mut self, cause: Cause) -> Option<OrderIntent>;
    /// The symbol of an instrument; of the only one that is traded where it is not said.
    fn symbol_of(&self, instrument: InstrumentId) -> Option<Symbol>;
    /// What is held: of `instrument`, or of everything.
    fn position(&self, instrument: Option<InstrumentId>) -> i64;
    /// What runs, or ran last, for who asks after a panic.
    fn callback(&self) -> &'static str;
    /// When [`Rule::on_time`] is wanted next.
    fn next_timer(&self) -> Option<Nanos>;

    /// Before the first packet: of which feed it is, and how large its books are.
    fn prepare(&mut self, protocol: Protocol, books: &BooksConfig);
    /// The run begins.
    fn start<O: OrderOut>(hot: &mut HotPath<O, true, Self>, now: Nanos);
    /// Time has passed.
    fn on_time<O: OrderOut>(hot: &mut HotPath<O, true, Self>, now: Nanos);
    /// A datagram was taken.
    fn after_packet<O: OrderOut, C: Channel>(hot: &mut HotPath<O, true, Self>, channel: &C);
    /// Ten times a second while the session is on: instruments that the directory names may be watched.
    fn watch<O: OrderOut, C: Channel>(hot: &mut HotPath<O, true, Self>, channel: &C, symbol: Symbol);
    /// The venue has said something of an order.
    fn on_report<O: OrderOut>(
        hot: &mut HotPath<O, true, Self>,
        now: Nanos,
        report: &OrderReport,
    ) -> Result<Change, ReportError>;
    /// The run is over.
    fn finish<O: OrderOut>(hot: &mut HotPath<O, true, Self>, now: Nanos);
}

impl Rule for TickToTrade {
    fn orders(&self) -> &Orders {
        TickToTrade::orders(self)
    }

    fn risk(&self) -> &Risk {
        TickToTrade::risk(self)
    }

    fn risk_mut(&mut self) -> &mut Risk {
        TickToTrade::risk_mut(self)
    }

    fn counters(&self) -> &Counters {
        TickToTrade::counters(self)
    }

    fn set_session(&mut self, is_up: bool) {
        TickToTrade::set_session(self, is_up);
    }

    fn kill(&mut self) {
        TickToTrade::kill(self);
    }

    fn cancel_next(&mut self, cause: Cause) -> Option<OrderIntent> {
        TickToTrade::cancel_next(self, cause)
    }

    fn symbol_of(&self, _: InstrumentId) -> Option<Symbol> {
        None
    }

    fn position(&self, instrument: Option<InstrumentId>) -> i64 {
        instrument.map_or(0, |id| TickToTrade::positions(self).get(id).qty)
    }

    fn callback(&self) -> &'static str {
        "the rule"
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        None
    }

    fn prepare(&mut self, _: Protocol, _: &BooksConfig) {}

    fn start<O: OrderOut>(_: &mut HotPath<O, true, Self>, _: Nanos) {}

    #[inline]
    fn on_time<O: OrderOut>(_: &mut HotPath<O, true, Self>, _: Nanos) {}

    #[inline]
    fn after_packet<O: OrderOut, C: Channel>(_: &mut HotPath<O, true, Self>, _: &C) {}

    fn watch<O: OrderOut, C: Channel>(hot: &mut HotPath<O, true, Self>, channel: &C, symbol: Symbol) {
        if hot.template.is_some() {
            return;
        }
        if let Some(id) = channel.find(&symbol) {
            if let Some(value) = channel.point_value(id) {
                let controls = hot.rule.risk_mut().controls_mut();
                controls.set_point(id.index(), value.raw());
            }
            hot.template = hot.session.order_template(symbol);
            hot.rule.watch(id);
        }
    }

    fn on_report<O: OrderOut>(
        hot: &mut HotPath<O, true, Self>,
        _: Nanos,
        report: &OrderReport,
    ) -> Result<Change, ReportError> {
        hot.rule.on_report(report)
    }

    fn finish<O: OrderOut>(_: &mut HotPath<O, true, Self>, _: Nanos) {}
}
