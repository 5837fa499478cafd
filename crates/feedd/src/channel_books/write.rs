//! What the books and states of a channel say, in the words of a book's slot.

use std::sync::atomic::AtomicU64;

use tickwire_book::{Books, InstrumentStates};
use tickwire_market::{InstrumentId, Side, TradingStatus};
use tickwire_shm::{Auction, BookEdit, LastTrade};

#[inline]
pub(super) fn write_totals(edit: &mut BookEdit<'_, AtomicU64>, books: &Books, instrument: InstrumentId) {
    let totals = books.totals(instrument);
    for side in Side::BOTH {
        let total = &totals[side as usize];
        edit.totals(
            side,
            total.levels,
            total.qty,
            total.orders.min(u32::MAX.into()) as u32,
        );
    }
}

pub(super) fn write_trade(
    edit: &mut BookEdit<'_, AtomicU64>,
    states: &InstrumentStates,
    instrument: InstrumentId,
) {
    if let Some(state) = states.get(instrument) {
        let last = LastTrade {
            price: state.last.price,
            qty: state.last.qty,
            venue_ts: state.last.venue_ts,
        };
        edit.trade(&last, state.volume, state.trades);
    }
}

pub(super) fn write_status(
    edit: &mut BookEdit<'_, AtomicU64>,
    states: &InstrumentStates,
    instrument: InstrumentId,
) {
    if let Some(state) = states.get(instrument) {
        // The venue as a whole stands above the instrument where it ends trading.
        edit.status(match states.venue_status() {
            venue @ (TradingStatus::Paused | TradingStatus::Halted | TradingStatus::Closed) => venue,
            _ => state.status,
        });
        let auction = &state.auction;
        edit.auction(&Auction {
            kind: auction.kind,
            reference: auction.reference,
            near: auction.near,
            far: auction.far,
            paired: auction.paired,
            imbalance: auction.imbalance,
            side: auction.side,
        });
    }
}
