//! How we decide: from a changed book to an order, and from an execution report to a position.
//!
//! [`TickToTrade`] is the whole of it: [`TickToTrade::on_update`] asks the strategy ([`BestOfferTaker`]), then the pre-trade
//! checks ([`Risk`]), and gives the order its place in the table ([`Orders`]); [`TickToTrade::on_report`] moves that order
//! along and keeps the [`Positions`]. The parts stand alone too.
//!
//! [`Quoter`] quotes options: it looks up what is wanted in a [`Ladder`] made beforehand, and tells the venue what differs. [`Eye`] takes
//! what others quote too well, by a ladder of its own.
//!
//! [`Controls`] is the gate that orders and quotes of all of them pass last.
//!
//! [`portfolio`] is what is held and what it has earned: for reports and limits, not on the way of a packet.
//!
//! **Invariant.** Integers only on the way of a packet, no clock (`now` is an argument), no allocation after `new`: everything is sized by
//! [`TradingConfig`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod controls;
mod exposure;
mod eye;
mod orders;
pub mod portfolio;
mod positions;
mod quoter;
mod risk;
pub mod strategy;
mod taker;
mod tick_to_trade;

pub use controls::{Controls, ControlsConfig, StrategyId, Wanted};
pub use exposure::Exposure;
pub use eye::{Eye, EyeConfig, EyeOff, EyeState, HedgeConfig, NoQuotes, OrderSink, OwnQuotes};
pub use orders::{
    Change, NewOrder, Order, OrderReport, OrderState, Orders, OrdersFull, ReportError, ReportKind, Terms,
};
pub use positions::{Position, Positions};
pub use quoter::{
    ENTRIES_MAX, Fill, Ladder, LadderFull, MarketGuard, MarketNeed, MassQuote, NO_ASK, NO_BID, OffMarket,
    PriceGrid, Protection, PullReason, Pulled, QuoteLive, QuoteOrders, QuoteSink, QuoteTerms, Quoter,
    QuoterConfig, Quoting, QuotingError, QuotingState, Row, SideOutcome, SideReport, SideReportKind,
    SideRequest, SideRequestKind, SideSink, Silence, SilenceConfig,
};
pub use risk::{Risk, RiskConfig, RiskReject};
pub use taker::BestOfferTaker;
pub use tick_to_trade::{TickToTrade, TradingConfig};
