//! The rules of `docs/exchange.md`, sections "Matching rules" and "Auctions", written down from its sentences
//! and tables alone: nothing here is the engine's. Where the engine computes, this looks things up, and where
//! the engine keeps a sum, this keeps what is summed.

use alloc::vec::Vec;

use tickwire_market::{OrderType, Price, Side, TimeInForce, TradingStatus};

use crate::order::{Firm, NewOrder, SelfTrade};
use crate::rules::{AuctionKind, HaltedOrders, PriceBands, Protection, TickTable};

use super::sheet::Pile;

/// "Capacities": quotes, protections, levels of a ladder of waiting orders; "Broken trades": how many trades
/// are kept.
pub(super) const QUOTES: usize = 65_536;
pub(super) const PROTECTIONS: usize = 1_024;
pub(super) const WAITING_LEVELS: usize = 64;
pub(super) const TRADES: usize = 65_536;

/// What a request may ask for besides price and quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asks {
    Display,
    Hidden,
    PostOnly,
    Stop,
    Improvement,
    /// At the opening or at the close.
    Auction,
    /// Immediate or cancel, fill or kill, or a market order: nothing of it stays.
    NoRest,
}

/// "What does not go together is rejected as `Instructions`", pair by pair.
const APART: [(Asks, Asks); 12] = [
    (Asks::Display, Asks::NoRest),
    (Asks::Display, Asks::Auction),
    (Asks::Display, Asks::Stop),
    (Asks::Display, Asks::Hidden),
    (Asks::PostOnly, Asks::NoRest),
    (Asks::PostOnly, Asks::Auction),
    (Asks::PostOnly, Asks::Stop),
    (Asks::Stop, Asks::Auction),
    (Asks::Stop, Asks::Hidden),
    (Asks::Stop, Asks::Improvement),
    (Asks::Auction, Asks::Hidden),
    (Asks::Auction, Asks::Improvement),
];

/// Whether the instructions of an order go together.
pub(super) fn go_together(new: &NewOrder) -> bool {
    let is_auction = [TimeInForce::AtTheOpening, TimeInForce::AtTheClose].contains(&new.time_in_force);
    let is_passing = [TimeInForce::ImmediateOrCancel, TimeInForce::FillOrKill].contains(&new.time_in_force);
    let asked = [
        (Asks::Display, new.display.0 > 0),
        (Asks::Hidden, new.hidden),
        (Asks::PostOnly, new.post_only),
        (Asks::Stop, new.stop.is_some()),
        (Asks::Improvement, new.improvement.raw() != 0),
        (Asks::Auction, is_auction),
        (Asks::NoRest, is_passing || new.order_type == OrderType::Market),
    ];
    let has = |what: Asks| asked.iter().any(|&(asks, is_asked)| asks == what && is_asked);
    !APART.iter().any(|&(a, b)| has(a) && has(b))
}

/// Whether what is left of an order that has come stays in the book.
pub(super) fn is_left_standing(order_type: OrderType, time_in_force: TimeInForce) -> bool {
    order_type == OrderType::Limit
        && (time_in_force == TimeInForce::Day || time_in_force == TimeInForce::GoodTillCancel)
}

/// Where an order goes that is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goes {
    /// It is matched, then stands or expires.
    Matched,
    /// It stands without being matched.
    Collected,
    /// It waits, unshown.
    Waits(Pile),
}

/// The table of statuses: where an order goes, `None` where none of its kind is taken.
pub(super) fn goes(
    status: TradingStatus,
    auction: AuctionKind,
    halted: HaltedOrders,
    (time_in_force, is_market, is_stop): (TimeInForce, bool, bool),
) -> Option<Goes> {
    let is_passing = [TimeInForce::ImmediateOrCancel, TimeInForce::FillOrKill].contains(&time_in_force);
    match status {
        TradingStatus::Trading => match time_in_force {
            TimeInForce::AtTheOpening => None,
            TimeInForce::AtTheClose => Some(Goes::Waits(Pile::Closing)),
            _ if is_stop => Some(Goes::Waits(Pile::Stops)),
            _ => Some(Goes::Matched),
        },
        // "limit orders are collected and shown; market orders wait; no immediate-or-cancel, no fill-or-kill"
        TradingStatus::Auction => match time_in_force {
            TimeInForce::AtTheOpening => {
                (auction == AuctionKind::Opening).then_some(Goes::Waits(Pile::Opening))
            }
            TimeInForce::AtTheClose => Some(Goes::Waits(Pile::Closing)),
            _ if is_stop => Some(Goes::Waits(Pile::Stops)),
            _ if is_passing => None,
            _ if is_market => Some(Goes::Waits(waits_for(auction))),
            _ => Some(Goes::Collected),
        },
        // "`Reject`: none. `Collect`: limit orders as in a call phase, stops and orders at the close wait"
        TradingStatus::Halted | TradingStatus::Paused if halted == HaltedOrders::Collect => {
            match time_in_force {
                TimeInForce::AtTheOpening => None,
                TimeInForce::AtTheClose => Some(Goes::Waits(Pile::Closing)),
                _ if is_stop => Some(Goes::Waits(Pile::Stops)),
                _ if is_passing || is_market => None,
                _ => Some(Goes::Collected),
            }
        }
        // "at the opening and at the close only"
        TradingStatus::PreOpen => match time_in_force {
            TimeInForce::AtTheOpening => Some(Goes::Waits(Pile::Opening)),
            TimeInForce::AtTheClose => Some(Goes::Waits(Pile::Closing)),
            _ => None,
        },
        _ => None,
    }
}

/// Where orders wait for an auction: those for a resumption stand with those for the opening.
pub(super) fn waits_for(auction: AuctionKind) -> Pile {
    if auction == AuctionKind::Closing {
        Pile::Closing
    } else {
        Pile::Opening
    }
}

/// "Price bands, static (around the last auction's price or `set_reference`) and dynamic (around the last
/// trade), the narrower edge holds": the highest price at which a buyer may trade, the lowest at which a
/// seller may. Without a trade yet the dynamic band is around the reference. `None`: there is no band, or
/// nothing for it to be around.
pub(super) fn edge(bands: &PriceBands, reference: Price, last: Price, side: Side) -> Option<Price> {
    let around_last = if last.raw() > 0 { last } else { reference };
    let mut edges = Vec::new();
    for (around, ppm) in [(reference, bands.static_ppm), (around_last, bands.dynamic_ppm)] {
        if around.raw() > 0 && ppm > 0 {
            // Millionths of the price, down to a whole unit of the price.
            let reach = i128::from(around.raw()) * i128::from(ppm) / 1_000_000;
            let reach = if side == Side::Bid { reach } else { -reach };
            let edge = (i128::from(around.raw()) + reach).clamp(i64::MIN.into(), i64::MAX.into());
            edges.push(edge as i64);
        }
    }
    let narrower = if side == Side::Bid {
        edges.into_iter().min()
    } else {
        edges.into_iter().max()
    };
    narrower.map(Price::from_raw)
}

/// The tick at a price: of the step that begins last at or below it.
pub(super) fn tick_at(ticks: &TickTable, price: Price) -> i64 {
    let steps: Vec<(Price, Price)> = ticks.steps().collect();
    let begun = steps.iter().rev().find(|(from, _)| *from <= price);
    begun.unwrap_or(&steps[0]).1.raw()
}

/// The next price above one of the table.
pub(super) fn price_above(ticks: &TickTable, price: Price) -> Price {
    Price::from_raw(price.raw() + tick_at(ticks, price))
}

/// The next price below one of the table: of each step the last one below it, and of those the highest.
pub(super) fn price_below(ticks: &TickTable, price: Price) -> Option<Price> {
    let last_of = |(from, tick): (Price, Price)| {
        let steps = (price.raw() - 1 - from.raw()).div_euclid(tick.raw());
        (steps >= 0).then(|| Price::from_raw(from.raw() + steps * tick.raw()))
    };
    ticks.steps().filter_map(last_of).max()
}

/// "cancel the newest, the oldest, both, or take the smaller quantity from both": what the order in the book
/// and the one that comes lose, of what they have.
pub(super) fn prevented(mode: SelfTrade, book: u64, comes: u64) -> (u64, u64) {
    match mode {
        SelfTrade::Allow => (0, 0),
        SelfTrade::CancelNewest => (0, comes),
        SelfTrade::CancelOldest => (book, 0),
        SelfTrade::CancelBoth => (book, comes),
        SelfTrade::Decrement if book < comes => (book, book),
        SelfTrade::Decrement => (comes, comes),
    }
}

/// What a firm's quotes of a group have traded since its window began, trade by trade.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) firm: Firm,
    pub(super) group: u32,
    pub(super) limits: Protection,
    pub(super) is_reached: bool,
    /// When the window began: with the first trade after the last one ended.
    began: Option<u64>,
    /// Whether it was bought, contracts, percent of what the quote had.
    trades: Vec<(bool, u64, u64)>,
}

impl Watch {
    pub(super) fn new(firm: Firm, group: u32, limits: Protection) -> Watch {
        Watch {
            firm,
            group,
            limits,
            is_reached: false,
            began: None,
            trades: Vec::new(),
        }
    }

    /// A trade of `qty` of a quote that `had` so much before; whether with it a limit is reached that was
    /// not.
    pub(super) fn sees(&mut self, now: u64, side: Side, had: u32, qty: u32) -> bool {
        let is_within = self
            .began
            .is_some_and(|began| now - began <= self.limits.window_ns);
        if !is_within && !self.is_reached {
            self.began = Some(now);
            self.trades.clear();
        }
        let percent = u64::from(qty) * 100 / u64::from(had);
        self.trades.push((side == Side::Bid, qty.into(), percent));
        let contracts = |bought: bool| -> u64 {
            let of_side = self.trades.iter().filter(|trade| trade.0 == bought);
            of_side.map(|trade| trade.1).sum()
        };
        let (bought, sold) = (contracts(true), contracts(false));
        let counts = [
            (bought + sold, self.limits.contracts),
            (self.trades.len() as u64, self.limits.trades.into()),
            (self.trades.iter().map(|trade| trade.2).sum(), self.limits.percent),
            (if bought < sold { bought } else { sold }, self.limits.both_sides),
        ];
        // A limit of 0 is none.
        let is_reached = counts.iter().any(|&(count, limit)| limit != 0 && count >= limit);
        let is_news = is_reached && !self.is_reached;
        self.is_reached |= is_reached;
        is_news
    }
}
