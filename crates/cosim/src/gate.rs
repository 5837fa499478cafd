//! What the core's gate does, in software: which order leaves. Checks that depend on clocks (tokens,
//! watchdog) have tests of their own in `hardware/tests`.

use tickwire_market::{Nanos, OrderIntent, Side};
use tickwire_rtl::frame::{Filled, wire_price};

use crate::stimulus::Settings;

/// The gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gate {
    settings: Settings,
    pub(crate) is_armed: bool,
    pub(crate) held: i64,
    pub(crate) left: u32,
    pub(crate) sequence: u32,
    pub(crate) user_ref: u32,
    pub(crate) message: u32,
    /// What the core's clock says.
    pub(crate) time: Nanos,
    /// What an order has room for: quantity and price.
    most: (u32, u32),
}

impl Gate {
    pub(crate) fn new(settings: &Settings, most: (u32, u32)) -> Gate {
        Gate {
            settings: *settings,
            is_armed: true,
            held: 0,
            left: settings.orders,
            sequence: settings.sequence,
            user_ref: settings.user_ref,
            message: settings.message,
            time: settings.time,
            most,
        }
    }

    /// The order as it leaves, or that it does not.
    pub(crate) fn pass(&mut self, request: &OrderIntent, segment: u32) -> Option<Filled> {
        let OrderIntent::New { side, price, qty, .. } = request else {
            return None;
        };
        // A price that the wire does not have lies outside every collar.
        let price = wire_price(*price)?;
        let (low, high) = self.settings.collar;
        let change = match side {
            Side::Bid => i64::from(qty.0),
            Side::Ask => -i64::from(qty.0),
        };
        let most = i64::from(self.settings.position);
        let fits = match side {
            Side::Bid => self.held + change <= most,
            Side::Ask => self.held + change >= -most,
        };
        let passes = self.is_armed
            && qty.0 > 0
            && qty.0 <= self.settings.size.min(self.most.0)
            && price <= self.most.1
            && (low..=high).contains(&price)
            && fits
            && self.left > 0;
        if !passes {
            return None;
        }
        let filled = Filled {
            sequence: self.sequence,
            user_ref: self.user_ref,
            message: self.message,
            time: self.time,
            side: *side,
            qty: *qty,
            price,
        };
        self.sequence = self.sequence.wrapping_add(segment);
        self.user_ref = self.user_ref.wrapping_add(1);
        self.message += 1;
        self.held += change;
        self.left -= 1;
        // With the last order that is left the gate closes itself.
        self.is_armed = self.left > 0;
        Some(filled)
    }
}
