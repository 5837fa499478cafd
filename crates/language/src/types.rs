//! Types and units.

use core::fmt;

/// What a value is. All but the optional ones are one word of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Type {
    /// A whole number without a unit.
    Int,
    /// Currency of one unit, in 1e-9.
    Price,
    /// Steps of an instrument's price.
    Ticks,
    /// Shares or contracts; a position is one too, below 0 when short.
    Qty,
    /// Currency, in 1e-9.
    Money,
    /// Nanoseconds since 1970-01-01 UTC.
    Time,
    /// Nanoseconds.
    Duration,
    /// Yes or no.
    Bool,
    /// Bid or ask.
    Side,
    /// What a venue says of trading: [`tickwire_market::TradingStatus`].
    Status,
    /// What a venue says of an order.
    Report,
    /// A text that is compared, never taken apart.
    Symbol,
    /// One of our orders.
    Order,
    /// An enum of the file, by its place.
    Enum(u16),
    /// Nothing is known of it: something wrong in it has been said.
    Wrong,
}

pub(crate) const SIDES: [&str; 2] = ["bid", "ask"];
pub(crate) const STATUSES: [&str; 8] = [
    "unknown",
    "pre_open",
    "auction",
    "trading",
    "quote_only",
    "paused",
    "halted",
    "closed",
];
pub(crate) const REPORTS: [&str; 8] = [
    "accepted",
    "filled",
    "cancelled",
    "rejected",
    "replaced",
    "cancel_rejected",
    "replace_rejected",
    "broken",
];

pub(crate) const TYPE_NAMES: [(&str, Type); 13] = [
    ("int", Type::Int),
    ("price", Type::Price),
    ("ticks", Type::Ticks),
    ("qty", Type::Qty),
    ("money", Type::Money),
    ("time", Type::Time),
    ("duration", Type::Duration),
    ("bool", Type::Bool),
    ("side", Type::Side),
    ("status", Type::Status),
    ("report", Type::Report),
    ("symbol", Type::Symbol),
    ("order", Type::Order),
];

impl Type {
    /// Whether it can be added and ordered.
    pub(crate) fn is_number(self) -> bool {
        matches!(
            self,
            Type::Int | Type::Price | Type::Ticks | Type::Qty | Type::Money | Type::Duration
        )
    }

    /// Whether a smaller one can be told from a larger one.
    pub(crate) fn is_ordered(self) -> bool {
        self.is_number() || self == Type::Time
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TYPE_NAMES.iter().find(|(_, ty)| ty == self) {
            Some((name, _)) => f.write_str(name),
            None => f.write_str("enum"),
        }
    }
}
