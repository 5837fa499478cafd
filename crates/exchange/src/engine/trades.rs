//! Trades that can still be broken: the last ones, in the order of their numbers.
//!
//! Those of clients are kept apart from those among the market's own orders, of which there are many more.

use alloc::collections::VecDeque;

use tickwire_market::{InstrumentId, OrderId, Price, Qty, Side};
use tickwire_persist::persist;

use crate::order::{BreakReason, Broken, Cross, Execution, Order, Owner, Party, Reject};

/// Trades that an engine keeps to be broken, the latest ones: so many with a client's order in them, and so
/// many others, auctions among these.
pub const TRADES_KEPT: usize = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Stands,
    Broken,
    /// It is an auction's.
    Auction,
}

/// A cache line.
#[derive(Clone, Copy)]
struct Trade {
    match_number: u64,
    price: Price,
    maker: Party,
    taker: Party,
    instrument: InstrumentId,
    qty: Qty,
    state: State,
}

/// See the module's description. Both ascend by number.
pub(super) struct Trades {
    of_clients: VecDeque<Trade>,
    of_others: VecDeque<Trade>,
    broken: u64,
}

impl Trades {
    pub(super) fn new() -> Trades {
        Trades {
            of_clients: VecDeque::with_capacity(TRADES_KEPT),
            of_others: VecDeque::with_capacity(TRADES_KEPT),
            broken: 0,
        }
    }

    /// How many were broken.
    pub(super) fn broken(&self) -> u64 {
        self.broken
    }

    pub(super) fn keep(&mut self, execution: &Execution) {
        let (maker, taker) = (party_of(&execution.maker), party_of(&execution.taker));
        let is_clients = [maker, taker].iter().any(|party| party.owner != Owner::HOUSE);
        let kept = match is_clients {
            true => &mut self.of_clients,
            false => &mut self.of_others,
        };
        push(
            kept,
            Trade {
                match_number: execution.match_number,
                price: execution.price,
                maker,
                taker,
                instrument: execution.maker.instrument,
                qty: execution.qty,
                state: State::Stands,
            },
        );
    }

    pub(super) fn keep_cross(&mut self, cross: &Cross) {
        let nobody = Party {
            owner: Owner::HOUSE,
            id: OrderId(0),
            side: Side::Bid,
        };
        push(
            &mut self.of_others,
            Trade {
                match_number: cross.match_number,
                price: cross.price,
                maker: nobody,
                taker: nobody,
                instrument: cross.instrument,
                qty: Qty::ZERO,
                state: State::Auction,
            },
        );
    }

    pub(super) fn break_one(&mut self, match_number: u64, reason: BreakReason) -> Result<Broken, Reject> {
        let find = |kept: &VecDeque<Trade>| {
            kept.binary_search_by_key(&match_number, |trade| trade.match_number)
                .ok()
        };
        let trade = match (find(&self.of_clients), find(&self.of_others)) {
            (Some(at), _) => &mut self.of_clients[at],
            (None, Some(at)) => &mut self.of_others[at],
            (None, None) => return Err(Reject::UnknownTrade),
        };
        match trade.state {
            State::Stands => {}
            State::Broken => return Err(Reject::BrokenTrade),
            State::Auction => return Err(Reject::AuctionTrade),
        }
        trade.state = State::Broken;
        self.broken += 1;
        let Trade {
            match_number,
            price,
            maker,
            taker,
            instrument,
            qty,
            ..
        } = *trade;
        Ok(Broken {
            instrument,
            match_number,
            qty,
            price,
            maker,
            taker,
            reason,
        })
    }
}

/// The oldest gives way.
fn push(kept: &mut VecDeque<Trade>, trade: Trade) {
    if kept.len() >= TRADES_KEPT {
        kept.pop_front();
    }
    kept.push_back(trade);
}

fn party_of(order: &Order) -> Party {
    Party {
        owner: order.owner,
        id: order.id,
        side: order.side,
    }
}

persist!(value enum State { 0 => Stands, 1 => Broken, 2 => Auction });
persist!(value struct Trade { match_number, price, maker, taker, instrument, qty, state });
persist!(struct Trades { of_clients, of_others, broken });

#[cfg(test)]
mod tests {
    use super::*;

    fn trade(match_number: u64, owner: u32) -> Execution {
        let maker = Order {
            owner: Owner(owner),
            ..Order::default()
        };
        Execution {
            maker,
            taker: Order::default(),
            qty: Qty(1),
            price: Price::ZERO,
            match_number,
        }
    }

    /// A client's trade is not forgotten because the market trades a lot.
    #[test]
    fn the_latest_are_kept_of_clients_and_of_others() {
        let mut trades = Trades::new();
        let last = TRADES_KEPT as u64 * 2 + 2;
        (1..=last).for_each(|n| trades.keep(&trade(n, u32::from(n <= 2))));
        let mut ask = |n| {
            trades
                .break_one(n, BreakReason::Consent)
                .map(|broken| broken.match_number)
        };
        assert_eq!([ask(1), ask(1)], [Ok(1), Err(Reject::BrokenTrade)]);
        let first = last - TRADES_KEPT as u64 + 1;
        assert_eq!(
            [ask(first - 1), ask(first)],
            [Err(Reject::UnknownTrade), Ok(first)]
        );
        assert_eq!(
            [ask(0), ask(last + 1), ask(last)],
            [Err(Reject::UnknownTrade), Err(Reject::UnknownTrade), Ok(last)]
        );
        (last + 1..=last + TRADES_KEPT as u64 - 1).for_each(|n| trades.keep(&trade(n, 1)));
        assert_eq!(
            trades.break_one(1, BreakReason::Consent).unwrap_err(),
            Reject::UnknownTrade
        );
        assert!(trades.break_one(2, BreakReason::Consent).is_ok());
        assert_eq!(trades.broken(), 4);
        assert!(trades.of_clients.len() == TRADES_KEPT && trades.of_others.len() == TRADES_KEPT);
    }
}
