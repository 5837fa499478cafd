//! Values of configurations that are checked while they are read, so that an error names line and column.

use serde::{Deserialize, Serialize};
use tickwire_market::Symbol;

/// Declares a value type that is checked while it is read.
macro_rules! checked {
    ($($(#[$doc:meta])* $name:ident($inner:ty) from $raw:ty, $check:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(pub $inner);
        impl TryFrom<String> for $name {
            type Error = String;
            fn try_from(raw: String) -> Result<Self, String> {
                let check: fn(&str) -> Result<$inner, String> = $check;
                check(&raw).map($name)
            }
        }
    )*};
}

checked! {
    /// A FIX CompID.
    CompId(Symbol) from String, |s| match Symbol::new(s.as_bytes()) {
        Some(id) if !id.is_empty() && !s.contains(['=', ' ']) => Ok(id),
        _ => Err(format!("CompID {s:?} must be 1 to 23 printable ASCII characters without '=' or space")),
    };
    /// An instrument's symbol.
    SymbolName(Symbol) from String, |s| match Symbol::new(s.as_bytes()) {
        Some(id) if !id.is_empty() => Ok(id),
        _ => Err(format!("symbol {s:?} must be 1 to 23 printable ASCII characters")),
    };
}

impl From<CompId> for String {
    fn from(v: CompId) -> String {
        v.0.to_string()
    }
}
impl From<SymbolName> for String {
    fn from(v: SymbolName) -> String {
        v.0.to_string()
    }
}

/// Declares a number with a range that is checked while it is read.
macro_rules! ranged {
    ($($(#[$doc:meta])* $name:ident($inner:ty) $range:expr, $unit:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Default, Deserialize, Serialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(pub $inner);
        impl TryFrom<f64> for $name {
            type Error = String;
            fn try_from(raw: f64) -> Result<Self, String> {
                let range = $range;
                if raw >= *range.start() as f64 && raw <= *range.end() as f64 {
                    Ok($name(raw as $inner))
                } else {
                    Err(format!("{raw} is outside {}..={} {}", range.start(), range.end(), $unit))
                }
            }
        }
        impl From<$name> for f64 {
            fn from(v: $name) -> f64 {
                v.0 as f64
            }
        }
    )*};
}

ranged! {
    /// A share of events.
    Probability(f64) 0.0..=1.0, "(a share, not a percentage)";
    /// A share that leaves something.
    Part(f64) 0.0..=0.9, "(a share, not a percentage)";
    /// Market data messages per second.
    Rate(u32) 1u32..=5_000_000, "messages per second";
    /// Length of a session.
    DurationS(f64) 0.1..=86_400.0, "seconds";
    /// HeartBtInt of a session.
    HeartbeatS(u32) 1u32..=3_600, "seconds";
    /// Number of instruments.
    Symbols(u32) 1u32..=60_000, "instruments";
    /// Quantity of an order.
    Lot(u32) 1u32..=1_000_000, "shares";
}
