//! What an eye takes, and within which limits.

use crate::MarketGuard;
use tickwire_market::{InstrumentId, Nanos, Price, Qty};

/// What to take and within which limits. Prices of options are in ticks of `option_tick`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EyeConfig {
    /// What the options are on.
    pub underlying: InstrumentId,
    /// Tick of the underlying.
    pub underlying_tick: Price,
    /// The finest tick of the options; a market price between two counts as the one that is worse for us.
    pub option_tick: Price,
    /// The largest order, in contracts. Default 10.
    pub size_max: Qty,
    /// Ticks by which a market may cross the trigger and is still believed. Default 40.
    pub believed_ticks: u16,
    /// How far our value, the middle of both triggers, may be from the middle of the option's market, and
    /// whether there has to be one; its other bounds are of quotes. `None`: nothing compares them. Default
    /// `None`; `tickwire quote` has it on.
    pub market: Option<MarketGuard>,
    /// Contracts within `contracts_window_ns`, by when they were ordered; what did not trade does not count.
    /// Default 50.
    pub contracts_max: u32,
    /// That window, in nanoseconds. Default one second.
    pub contracts_window_ns: u64,
    /// Orders in options within `orders_window_ns`. Default 20.
    pub orders_max: u32,
    /// That window, in nanoseconds. Default one second.
    pub orders_window_ns: u64,
    /// Orders under way, hedges included, rounded up to a power of two: with more, none goes out. Default 64.
    pub open_max: u32,
    /// For how long an option is left alone after its order was answered, in nanoseconds. Default 10 ms.
    pub cool_down_ns: u64,
    /// Most contracts held, bought less sold, if every order and every quote of ours traded. Default 1000.
    pub long_max: u64,
    /// Most contracts short. Default 1000.
    pub short_max: u64,
    /// Most premium, in ticks times contracts, of everything bought and sold since the start, indexed by
    /// [`tickwire_market::Side`]: by the orders' limits, so that what was decided is what counts, whatever the price of the
    /// fill. Default no limit.
    pub premium_max: [u64; 2],
    /// Ticks between bid and ask of the underlying that are too many. Default 10.
    pub spread_max_ticks: u32,
    /// Half ticks of the underlying from one look to the next that are a jump. Default 40.
    pub jump_half_ticks: u32,
    /// How long the underlying must have been good after it was not. Default 100 ms.
    pub calm_ns: u64,
    /// A ladder older than this is not traded by; 0 is any age. Default 5 s: whoever prices has to make a new
    /// one that often.
    pub ladder_age_max_ns: u64,
    /// An answer that takes longer turns it off. Default one second.
    pub answer_max_ns: u64,
    /// For how long the operator's client turns it on at a time. Default 5 s.
    pub armed_ns: u64,
    /// Whether fills are hedged. Default no.
    pub hedge: Option<HedgeConfig>,
}

/// How the delta of fills is traded away in the underlying.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HedgeConfig {
    /// Ticks beyond the other side's best price.
    pub through_ticks: u16,
    /// The largest order, in contracts; the rest is done when the underlying changes next.
    pub size_max: Qty,
    /// Orders within [`EyeConfig::orders_window_ns`]: apart from those in options, so that a fill can be
    /// hedged whatever was sent before.
    pub orders_max: u32,
}

impl Default for EyeConfig {
    fn default() -> EyeConfig {
        EyeConfig {
            underlying: InstrumentId::WHOLE_FEED,
            underlying_tick: Price::from_raw(Price::ONE_RAW / 4),
            option_tick: Price::from_raw(Price::ONE_RAW / 20),
            size_max: Qty(10),
            believed_ticks: 40,
            market: None,
            contracts_max: 50,
            contracts_window_ns: Nanos::SECOND,
            orders_max: 20,
            orders_window_ns: Nanos::SECOND,
            open_max: 64,
            cool_down_ns: 10 * Nanos::MILLI,
            long_max: 1_000,
            short_max: 1_000,
            premium_max: [u64::MAX; 2],
            spread_max_ticks: 10,
            jump_half_ticks: 40,
            calm_ns: 100 * Nanos::MILLI,
            ladder_age_max_ns: 5 * Nanos::SECOND,
            answer_max_ns: Nanos::SECOND,
            armed_ns: 5 * Nanos::SECOND,
            hedge: None,
        }
    }
}
