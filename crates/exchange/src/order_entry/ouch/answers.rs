//! Answers to OUCH clients: what happened to their orders, in messages.

use tickwire_market::{Qty, TimeInForce};
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::ouch50;
use tickwire_wire::ouch50::CancelReason as OuchReason;
use tickwire_wire::ouch50::Liquidity as Flag;
use tickwire_wire::ouch50::{
    AiqCanceled, Appendage, BrokenReason, BrokenTrade, CancelPending, Display, OptionTag, OrderAccepted,
    OrderCanceled, OrderExecuted, OrderReplaced, OrderRestated, OrderState, RestatedReason, price_field,
    reject,
};
use tickwire_wire::zerocopy::IntoBytes;

use crate::order::{BreakReason, CancelReason, Reject};
use crate::order_entry::{ClientOrder, Liquidity, OrderNotice, Refusal, Saying, Why};

use super::requests::{aiq_of, price_of};
use super::{OuchGateway, Terms};

impl OuchGateway {
    /// Tells a user about an order of its own.
    pub(in crate::order_entry) fn say(&mut self, port: usize, saying: &Saying) {
        let Some(&terms) = self.terms.get(saying.order.own as usize) else {
            return;
        };
        let order = &saying.order;
        let (timestamp, user_ref_num) = (self.time.into(), terms.user_ref.into());
        let price = price_of(order);
        match saying.told {
            OrderNotice::Accepted => {
                let message = OrderAccepted {
                    timestamp,
                    user_ref_num,
                    side: Char(terms.side),
                    quantity: order.qty.0.into(),
                    symbol: Alpha::from_symbol(&order.symbol).unwrap_or(Alpha([b' '; 8])),
                    price,
                    time_in_force: Char(terms.time_in_force),
                    display: Char(terms.display),
                    order_ref_num: order.venue_id.0.into(),
                    capacity: Char(terms.capacity),
                    iso_eligible: Char(terms.iso),
                    cross_type: Char(terms.cross),
                    order_state: OrderState::Live.into(),
                    cl_ord_id: terms.cl_ord_id,
                    ..OrderAccepted::NEW
                };
                let options = self.echoed(port, order, &terms);
                self.send(port, message.as_bytes(), Some(&options));
            }
            OrderNotice::Refused(why) => {
                self.refuse(port, terms.user_ref, terms.cl_ord_id, refusal(why));
            }
            OrderNotice::Filled {
                qty,
                price,
                match_number,
                liquidity,
            } => {
                let flag = match liquidity {
                    Liquidity::Added if terms.display == Display::Hidden as u8 => Flag::HiddenAdded,
                    Liquidity::Added => Flag::Added,
                    Liquidity::Removed => Flag::Removed,
                    Liquidity::Auction if order.time_in_force == TimeInForce::AtTheClose => {
                        Flag::ClosingCross
                    }
                    Liquidity::Auction => Flag::OpeningCross,
                };
                let message = OrderExecuted {
                    timestamp,
                    user_ref_num,
                    quantity: qty.0.into(),
                    price: price_field(price).unwrap_or(ouch50::MARKET_PRICE),
                    liquidity_flag: flag.into(),
                    match_number: match_number.into(),
                    ..OrderExecuted::NEW
                };
                self.send(port, message.as_bytes(), Some(&Appendage::EMPTY));
            }
            OrderNotice::Broken {
                match_number, reason, ..
            } => {
                let reason = match reason {
                    BreakReason::Erroneous => BrokenReason::Erroneous,
                    BreakReason::Consent => BrokenReason::Consent,
                    BreakReason::Supervisory => BrokenReason::Supervisory,
                };
                let message = BrokenTrade {
                    timestamp,
                    user_ref_num,
                    match_number: match_number.into(),
                    reason: reason.into(),
                    cl_ord_id: terms.cl_ord_id,
                    ..BrokenTrade::NEW
                };
                self.send(port, message.as_bytes(), Some(&Appendage::EMPTY));
            }
            OrderNotice::Cancelled { qty, why } => self.tell_less(port, order, &terms, qty, why),
            OrderNotice::Reduced { by, why } => self.tell_less(port, order, &terms, by, why),
            OrderNotice::Replaced => {
                let message = OrderReplaced {
                    timestamp,
                    orig_user_ref_num: terms.orig_user_ref.into(),
                    user_ref_num,
                    side: Char(terms.side),
                    quantity: order.leaves().0.into(),
                    symbol: Alpha::from_symbol(&order.symbol).unwrap_or(Alpha([b' '; 8])),
                    price,
                    time_in_force: Char(terms.time_in_force),
                    display: Char(terms.display),
                    order_ref_num: order.order_id.0.into(),
                    capacity: Char(terms.capacity),
                    iso_eligible: Char(terms.iso),
                    cross_type: Char(terms.cross),
                    order_state: OrderState::Live.into(),
                    cl_ord_id: terms.cl_ord_id,
                    ..OrderReplaced::NEW
                };
                let options = self.echoed(port, order, &terms);
                self.send(port, message.as_bytes(), Some(&options));
            }
            OrderNotice::Refreshed { shown } => {
                let message = OrderRestated {
                    timestamp,
                    user_ref_num,
                    reason: RestatedReason::ReserveRefresh.into(),
                    ..OrderRestated::NEW
                };
                let options = Appendage::EMPTY
                    .with_u32(OptionTag::DisplayQuantity, shown.0)
                    .with(OptionTag::SecondaryOrdRefNum, &order.order_id.0.to_be_bytes());
                self.send(port, message.as_bytes(), Some(&options));
            }
            OrderNotice::CancelPending => {
                let message = CancelPending {
                    timestamp,
                    user_ref_num,
                    ..CancelPending::NEW
                };
                self.send(port, message.as_bytes(), None);
            }
            OrderNotice::Triggered | OrderNotice::CancelTooLate | OrderNotice::Status { .. } => {}
        }
    }

    /// Shares of an order are gone.
    fn tell_less(&mut self, port: usize, order: &ClientOrder, terms: &Terms, by: Qty, why: Why) {
        let (timestamp, user_ref_num) = (self.time.into(), terms.user_ref.into());
        if why == Why::Engine(CancelReason::SelfTrade) {
            let message = AiqCanceled {
                timestamp,
                user_ref_num,
                decrement_shares: by.0.into(),
                reason: OuchReason::SelfMatch.into(),
                quantity_prevented: by.0.into(),
                execution_price: price_field(order.price).unwrap_or(ouch50::MARKET_PRICE),
                liquidity_flag: Flag::Removed.into(),
                aiq_strategy: aiq_of(self.ports[port].port.self_trade).into(),
                ..AiqCanceled::NEW
            };
            return self.send(port, message.as_bytes(), None);
        }
        let reason = match why {
            Why::Request | Why::Swept => OuchReason::User,
            Why::TimeInForce => OuchReason::ImmediateOrCancel,
            Why::Engine(CancelReason::MassCancel | CancelReason::Requoted) => OuchReason::User,
            Why::Engine(CancelReason::AuctionOver | CancelReason::DayOver) => OuchReason::Closed,
            Why::Engine(CancelReason::Protection) => OuchReason::Supervisory,
            Why::Engine(CancelReason::NoRoom | CancelReason::SelfTrade) => OuchReason::System,
        };
        let message = OrderCanceled {
            timestamp,
            user_ref_num,
            quantity: by.0.into(),
            reason: reason.into(),
            ..OrderCanceled::NEW
        };
        self.send(port, message.as_bytes(), None);
    }

    /// The options of an order as accepted.
    fn echoed(&self, port: usize, order: &ClientOrder, terms: &Terms) -> Appendage {
        let mut options = Appendage::EMPTY.with(OptionTag::Firm, &self.ports[port].port.firm_name.0);
        if !order.display.is_zero() {
            options = options.with_u32(OptionTag::MaxFloor, order.display.0);
        }
        if terms.post_only {
            options = options.with_char(OptionTag::PostOnly, b'P');
        }
        options
    }
}

pub(super) fn reason_of(reject: Reject) -> u16 {
    match reject {
        Reject::UnknownInstrument => reject::SYMBOL,
        Reject::NotTrading => reject::HALTED,
        Reject::Tick | Reject::PriceRange | Reject::PriceBand | Reject::StopPrice => reject::PRICE,
        Reject::Quantity | Reject::Lot => reject::QUANTITY,
        Reject::Display => reject::MAX_FLOOR,
        Reject::PostOnly => reject::CROSSED,
        Reject::Protected => reject::RISK,
        Reject::NoFirm => reject::FIRM,
        Reject::Full => reject::PROCESSING_ERROR,
        Reject::Instructions
        | Reject::Quote
        | Reject::UnknownOrder
        | Reject::UnknownTrade
        | Reject::BrokenTrade
        | Reject::AuctionTrade => reject::OTHER,
    }
}

fn refusal(why: Refusal) -> u16 {
    match why {
        Refusal::Engine(reject) => reason_of(reject),
        Refusal::UnknownSymbol => reject::SYMBOL,
        Refusal::Closed => reject::CLOSED,
        Refusal::Duplicate | Refusal::NoRoom => reject::PROCESSING_ERROR,
        Refusal::Disabled => reject::RISK,
    }
}
