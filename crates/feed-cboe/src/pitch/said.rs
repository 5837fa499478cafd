//! What messages about no order say, written over an event that holds what every message has.

use tickwire_market::{EventFlags, EventKind, MarketEvent, Price, Side, TradingStatus, Volume};
use tickwire_wire_cboe::pitch::{self, LongPrice};
use tickwire_wire_core::Malformed;

#[inline(always)]
pub(super) fn price(offset: u16, price: LongPrice) -> Result<Price, Malformed> {
    price.checked_price().ok_or(Malformed::OutOfRange { offset })
}

pub(super) fn trade(event: &mut MarketEvent, qty: u32, price: Price, execution_id: u64) {
    event.kind = EventKind::Trade;
    event.qty = Volume(qty.into());
    event.price = price;
    event.ref_id = execution_id;
    event.code[0] = pitch::execution_class(execution_id).unwrap_or_default();
    event.flags = event.flags.with(EventFlags::NO_SIDE);
}

pub(super) fn status(event: &mut MarketEvent, m: &pitch::TradingStatus) -> Result<(), Malformed> {
    let status = pitch::Status::from_wire(m.status.0).ok_or(Malformed::BadValue {
        offset: 14,
        value: m.status.0,
    })?;
    event.kind = EventKind::Status;
    event.code = code(&[m.status.0, m.reg_sho.0]);
    event.status = match status {
        pitch::Status::Accepting => TradingStatus::PreOpen,
        pitch::Status::Halted | pitch::Status::Suspended => TradingStatus::Halted,
        pitch::Status::QuoteOnly => TradingStatus::QuoteOnly,
        pitch::Status::Trading => TradingStatus::Trading,
    };
    Ok(())
}

pub(super) fn auction_update(event: &mut MarketEvent, m: &pitch::AuctionUpdate) -> Result<(), Malformed> {
    let (buy, sell) = (m.buy_shares.get(), m.sell_shares.get());
    let (side, no_side) = match buy.cmp(&sell) {
        core::cmp::Ordering::Greater => (Side::Bid, EventFlags::NONE),
        core::cmp::Ordering::Less => (Side::Ask, EventFlags::NONE),
        core::cmp::Ordering::Equal => (Side::Bid, EventFlags::NO_SIDE),
    };
    event.kind = EventKind::Imbalance;
    event.side = side;
    event.flags = event.flags.with(no_side);
    event.qty = Volume(buy.min(sell).into());
    event.imbalance_qty = Volume(buy.abs_diff(sell).into());
    event.price = price(15, m.reference_price)?;
    event.near_price = price(31, m.indicative_price)?;
    event.far_price = price(39, m.auction_only_price)?;
    event.code = code(&[m.auction_type.0]);
    Ok(())
}

pub(super) fn auction_summary(event: &mut MarketEvent, m: &pitch::AuctionSummary) -> Result<(), Malformed> {
    event.kind = EventKind::Trade;
    event.qty = Volume(m.shares.get().into());
    event.price = price(15, m.price)?;
    event.code = code(&[m.auction_type.0]);
    event.flags = event
        .flags
        .with(EventFlags::NO_SIDE)
        .with(EventFlags::NOT_PRINTABLE);
    Ok(())
}

/// A venue code padded with NULs; at most eight bytes.
pub(super) fn code(text: &[u8]) -> [u8; 8] {
    let mut code = [0; 8];
    for (to, from) in code.iter_mut().zip(text) {
        *to = *from;
    }
    code
}
