//! What to quote and within which limits.

use super::{MarketGuard, SilenceConfig};
use tickwire_market::{InstrumentId, Nanos, Price, Qty};

/// Our own copy of a venue's market-maker protection, to be set tighter than it. 0 is no limit. CME: Mass
/// Quote Protections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Protection {
    /// How long fills count together, from the first of them, in nanoseconds.
    pub window_ns: u64,
    /// Fills (CME's Y).
    pub fills: u32,
    /// Contracts (CME's Z).
    pub contracts: u64,
    /// Contracts weighted by their delta, either way (CME's D), in thousandths of a contract.
    pub delta_milli: u64,
}

/// What to quote and within which limits. Prices of options are in ticks of `option_tick`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuoterConfig {
    /// What the options are on.
    pub underlying: InstrumentId,
    /// Tick of the underlying.
    pub underlying_tick: Price,
    /// The finest tick of the options, which all their prices here are in.
    pub option_tick: Price,
    /// How many options, in the order of their delta, at most 65 535.
    pub quotes: u16,
    /// Contracts on each side of a quote.
    pub size: Qty,
    /// Entries of one mass quote, 1 to [`ENTRIES_MAX`](super::ENTRIES_MAX). Default 15.
    pub entries_max: u8,
    /// Mass quotes that may wait for an answer. Default 256.
    pub in_flight_max: u16,
    /// An improvement of fewer ticks than this is not worth a message. Default 1.
    pub trigger_ticks: u16,
    /// A quote is not improved before it has lived so long, in nanoseconds. Default 0.
    pub life_min_ns: u64,
    /// Messages within `window_ns`: mass quotes, and orders beside them. Default 500. When a quote that must
    /// move has no room in it, everything is pulled.
    pub messages_max: u32,
    /// Of these, mass quotes that only improve. Default 400.
    pub improvements_max: u32,
    /// The window of both rates. Default one second.
    pub window_ns: u64,
    /// How far quotes may be from the markets of their options; `None`: nothing compares them. Default
    /// `None`, for those who have no such markets; `tickwire quote` has it on.
    pub market: Option<MarketGuard>,
    /// A filled side stays so many ticks away from its fill. Default 0.
    pub fade_ticks: u16,
    /// For so long, in nanoseconds. Default 0.
    pub fade_ns: u64,
    /// A quote that the venue rejected is tried again after so long, in nanoseconds; 0: not until
    /// [`Quoter::set_quoted`](super::Quoter::set_quoted). Default 0.
    pub retry_ns: u64,
    /// Half ticks of the underlying from one look to the next that are a jump. Default 40.
    pub jump_half_ticks: u32,
    /// Ticks between bid and ask of the underlying that are too many. Default 10.
    pub spread_max_ticks: u32,
    /// How long the underlying must have been good before quoting goes on after it was not. Default 100 ms.
    pub calm_ns: u64,
    /// An answer that takes longer ends trust in the session. Default one second.
    pub answer_max_ns: u64,
    /// The operator's client must be heard this often; 0 is no such need. Default 0.
    pub heartbeat_ns: u64,
    /// The longest time between two turns of the loop ([`Quoter::on_turn`](super::Quoter::on_turn)) that is
    /// no stall; 0 is any. Default 250 ms.
    pub stall_ns: u64,
    /// When the market data of the underlying is silent ([`Quoter::on_packet`](super::Quoter::on_packet)).
    pub silence: SilenceConfig,
    /// How long the underlying's own book may be without a change
    /// ([`Quoter::on_change`](super::Quoter::on_change)), in nanoseconds; 0 is for any time. Default 0.
    pub underlying_silence_ns: u64,
    /// Most contracts held, bought less sold, if every bid traded.
    pub long_max: u64,
    /// Most contracts short if every offer traded.
    pub short_max: u64,
    /// Most contracts on both sides of all quotes together.
    pub quoted_max: u64,
    /// Most premium, in ticks times contracts: paid less received if every bid traded, received less paid if
    /// every offer did. Indexed by [`Side`](tickwire_market::Side). Default: no limit.
    pub premium_max: [u64; 2],
    /// Our own protection.
    pub protection: Protection,
}

impl Default for QuoterConfig {
    fn default() -> QuoterConfig {
        QuoterConfig {
            underlying: InstrumentId::WHOLE_FEED,
            underlying_tick: Price::from_raw(Price::ONE_RAW / 4),
            option_tick: Price::from_raw(Price::ONE_RAW / 20),
            quotes: 0,
            size: Qty(10),
            entries_max: 15,
            in_flight_max: 256,
            trigger_ticks: 1,
            life_min_ns: 0,
            messages_max: 500,
            improvements_max: 400,
            window_ns: Nanos::SECOND,
            market: None,
            fade_ticks: 0,
            fade_ns: 0,
            retry_ns: 0,
            jump_half_ticks: 40,
            spread_max_ticks: 10,
            calm_ns: 100 * Nanos::MILLI,
            answer_max_ns: Nanos::SECOND,
            heartbeat_ns: 0,
            stall_ns: 250 * Nanos::MILLI,
            silence: SilenceConfig::default(),
            underlying_silence_ns: 0,
            long_max: 1_000_000,
            short_max: 1_000_000,
            quoted_max: 1_000_000,
            premium_max: [u64::MAX; 2],
            protection: Protection::default(),
        }
    }
}
