//! How we decide: from a changed book to an order, and from an execution report to a position.
//!
//! [`strategy::Strategy`] is a trading rule, [`BestOffer`] the built-in one, and [`strategy::Conductor`] what
//! drives any of them: it tells the rule of a changed book, has what the rule wants pass the pre-trade checks
//! ([`Risk`]), gives the order its place in the table ([`Orders`]), moves it along with every execution
//! report and keeps the [`Positions`]. The parts stand alone too.
//!
//! [`Quoter`] quotes options: it looks up what is wanted in a [`Ladder`] made beforehand, and tells the venue
//! what differs. [`Eye`] takes what others quote too well, by a ladder of its own. [`MarketMaker`] is both
//! over the same options, within one set of limits. [`OptionQuoter`] is the quoter, or both, as a
//! [`strategy::Strategy`], [`OptionEye`] the eye alone.
//!
//! [`Controls`] is the gate that orders and quotes of all of them pass last.
//!
//! [`portfolio`] is what is held and what it has earned: for reports and limits, not on the hot path.
//!
//! **Invariant.** Integers only on the hot path, no clock (`now` is an argument), no allocation after `new`:
//! everything is sized by [`strategy::ConductorConfig`].
//!
//! ```
//! use tickwire_market::{Side, Symbol};
//! use tickwire_trading::strategy::{BookChange, Context, Strategy, Subscription};
//!
//! /// Buys 100 whenever the best offer has another price. A host drives it: a backtest, the simulator, or the trader's loop.
//! struct Taker(Symbol);
//!
//! impl Strategy for Taker {
//!     fn subscriptions(&self) -> Vec<Subscription> {
//!         vec![Subscription::Symbol(self.0)]
//!     }
//!
//!     fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
//!         if let Some(offer) = change.new_best_price(Side::Ask) {
//!             // What became of it: the order's number, or the check that stopped it.
//!             let _ = ctx.buy_now(change.instrument, 100, offer);
//!         }
//!     }
//! }
//!
//! let taker = Taker(Symbol::new(b"AAPL").expect("a symbol"));
//! assert_eq!(taker.subscriptions().len(), 1);
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod best_offer;
mod controls;
mod exposure;
mod eye;
mod maker;
mod option_quoter;
mod orders;
pub mod portfolio;
mod positions;
mod quoter;
mod risk;
pub mod strategy;

pub use best_offer::BestOffer;
pub use controls::{Controls, ControlsConfig, StrategyId, Wanted};
pub use exposure::Exposure;
pub use eye::{Eye, EyeConfig, EyeOff, EyeState, HedgeConfig, NoQuotes, OrderSink, OwnQuotes};
pub use maker::{EyeFill, MarketMaker};
pub use option_quoter::{
    Difference, Ladders, OptionEye, OptionQuoter, Pricing, QuotedOption, QuoterTrade, TradeOf,
};
pub use orders::{
    Change, NewOrder, Order, OrderReport, OrderState, Orders, OrdersFull, ReportError, ReportKind, Terms,
};
pub use positions::{Position, Positions};
pub use quoter::{
    ENTRIES_MAX, Fill, Ladder, LadderFull, MarketGuard, MarketNeed, MassQuote, NO_ASK, NO_BID, OffMarket,
    PriceGrid, Protection, PullReason, Pulled, QuoteLive, QuoteOrders, QuoteSink, QuoteTerms, Quoter,
    QuoterConfig, Quoting, QuotingError, QuotingState, Row, SideOutcome, SideReport, SideReportKind,
    SideRequest, SideRequestKind, SideSink, Silence, SilenceConfig, TwoLooks,
};
pub use risk::{Accounts, Risk, RiskConfig, RiskReject};
