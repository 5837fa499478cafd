//! Enter Order of OUCH, read into what the venue is asked to do.

use tickwire_market::{InstrumentId, OrderType, Price, Qty, TimeInForce};
use tickwire_wire::ouch50;
use tickwire_wire::ouch50::{
    AiqStrategy, CrossType, Display, EnterOrder, OptionTag, Options, OrderSide, QUANTITY_MAX, is_market,
    price_field, reject,
};

use crate::order::{NewOrder, Owner, SelfTrade};
use crate::order_entry::{ClientOrder, OuchPort};

pub(super) fn price_of(order: &ClientOrder) -> ouch50::Price4Wide {
    match order.order_type {
        OrderType::Market => ouch50::MARKET_PRICE,
        OrderType::Limit => price_field(order.price).unwrap_or(ouch50::MARKET_PRICE),
    }
}

/// Reads a new order; `Err` is the reason to reject it for.
pub(super) fn read_order(m: &EnterOrder, options: Options<'_>, port: &OuchPort) -> Result<NewOrder, u16> {
    let side = OrderSide::from_wire(m.side.0).ok_or(reject::SIDE)?.side();
    let qty = m.quantity.get();
    if !(1..=QUANTITY_MAX).contains(&qty) {
        return Err(reject::QUANTITY);
    }
    let (order_type, price) = match is_market(m.price) {
        true => (OrderType::Market, Price::ZERO),
        false => (OrderType::Limit, m.price.checked_price().ok_or(reject::PRICE)?),
    };
    let time_in_force = match (CrossType::from_wire(m.cross_type.0), m.time_in_force.0) {
        (Some(CrossType::Continuous), b'0' | b'5') => TimeInForce::Day,
        (Some(CrossType::Continuous), b'3') => TimeInForce::ImmediateOrCancel,
        (Some(CrossType::Opening), b'0' | b'3' | b'5') => TimeInForce::AtTheOpening,
        (Some(CrossType::Closing), b'0' | b'3' | b'5') => TimeInForce::AtTheClose,
        (Some(CrossType::Continuous), _) => return Err(reject::OTHER),
        _ => return Err(reject::CROSS_ORDER),
    };
    let hidden = match Display::from_wire(m.display.0) {
        Some(Display::Hidden) => true,
        Some(Display::Visible | Display::Attributable) => false,
        _ => return Err(reject::DISPLAY),
    };
    let firm = options.alpha4(OptionTag::Firm);
    if firm.is_some_and(|firm| firm.trimmed() != port.firm_name.trimmed()) {
        return Err(reject::FIRM);
    }
    if options
        .char(OptionTag::PriceType)
        .is_some_and(|kind| kind != b'L')
    {
        return Err(reject::PEG_TYPE);
    }
    if options.u32(OptionTag::MinQty).is_some_and(|qty| qty > 0) {
        return Err(reject::MIN_QTY);
    }
    let unsupported = [
        OptionTag::DiscretionPrice,
        OptionTag::ExpireTime,
        OptionTag::RandomReserves,
    ];
    if unsupported.into_iter().any(|tag| options.get(tag).is_some())
        || options
            .char(OptionTag::UserRefIdx)
            .is_some_and(|index| index != 0)
    {
        return Err(reject::OTHER);
    }
    let self_trade = match options.char(OptionTag::AiqStrategy).map(AiqStrategy::from_wire) {
        None => port.self_trade,
        Some(Some(strategy)) => self_trade_of(strategy),
        Some(None) => return Err(reject::OTHER),
    };
    let context = options.u32(OptionTag::MaxFloor).filter(|context| *context < qty);
    let mpid = match Display::from_wire(m.display.0) {
        Some(Display::Attributable) => port.firm_name.0,
        _ => crate::order::NO_MPID,
    };
    Ok(NewOrder {
        order_type,
        time_in_force,
        display: context.map_or(Qty::ZERO, Qty),
        post_only: options.char(OptionTag::PostOnly) == Some(b'P'),
        self_trade,
        hidden,
        mpid,
        owner: Owner::HOUSE,
        ..NewOrder::limit(InstrumentId::WHOLE_FEED, side, price, Qty(qty))
    })
}

pub(super) fn self_trade_of(strategy: AiqStrategy) -> SelfTrade {
    match strategy {
        AiqStrategy::None => SelfTrade::Allow,
        AiqStrategy::Decrement => SelfTrade::Decrement,
        AiqStrategy::CancelOldest => SelfTrade::CancelOldest,
        AiqStrategy::CancelNewest => SelfTrade::CancelNewest,
        AiqStrategy::CancelBoth => SelfTrade::CancelBoth,
    }
}

pub(super) fn aiq_of(self_trade: SelfTrade) -> AiqStrategy {
    match self_trade {
        SelfTrade::Allow => AiqStrategy::None,
        SelfTrade::Decrement => AiqStrategy::Decrement,
        SelfTrade::CancelOldest => AiqStrategy::CancelOldest,
        SelfTrade::CancelNewest => AiqStrategy::CancelNewest,
        SelfTrade::CancelBoth => AiqStrategy::CancelBoth,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_is_the_one_it_was() {
        for strategy in AiqStrategy::ALL {
            assert_eq!(aiq_of(self_trade_of(*strategy)), *strategy);
        }
    }
}
