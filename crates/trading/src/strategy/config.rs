//! How large the tables of a strategy's host are, and what it may do.

use crate::RiskConfig;

/// Sizes and limits of a strategy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConductorConfig {
    /// Feeds. Default 1.
    pub feeds: u32,
    /// Instruments of a feed are numbered below two to the power of this, at most 24. Default 16.
    pub instrument_bits: u32,
    /// Places in the order table, rounded up to a power of two: ended orders stay readable until theirs is
    /// needed again. Default 65 536.
    pub max_orders: u32,
    /// Orders and requests have numbers above this: of several strategies over one session each has its own,
    /// and within them those of a session that outlives the process go on ([`super::numbers_from`]). Default 0.
    pub last_id: u64,
    /// Instruments that may be quoted by mass quotes, below 65 535. Default 1024.
    pub max_quotes: u32,
    /// The limits.
    pub risk: RiskConfig,
}

impl Default for ConductorConfig {
    fn default() -> ConductorConfig {
        ConductorConfig {
            feeds: 1,
            instrument_bits: 16,
            max_orders: 1 << 16,
            last_id: 0,
            max_quotes: 1024,
            risk: RiskConfig::default(),
        }
    }
}
