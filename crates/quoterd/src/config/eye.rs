//! What `[quoter.eye]` says.

use serde::{Deserialize, Serialize};
use tickwire_market::{Date, InstrumentId, Nanos, PointValue, Price, Qty};
use tickwire_options::Kind;
use tickwire_trading::{EyeConfig, HedgeConfig};

use super::{MarketSection, OptionTerms, TermsSection, TriggerSection, in_ticks};

/// What the electronic eye takes, and within which limits.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct EyeSection {
    /// Contracts of the largest order.
    pub size: u32,
    /// Ticks by which a market may cross the price we would pay and is still believed.
    pub believed_ticks: u16,
    /// Contracts ordered within a second; what did not trade does not count.
    pub contracts_per_s: u32,
    /// Orders in options within a second.
    pub orders_per_s: u32,
    /// How long an option is left alone after its order was answered, milliseconds.
    pub cool_down_ms: u32,
    /// Most contracts held if every order of the eye and every quote traded: those of the quotes count too.
    /// Whatever is said here, the eye stays within `quoter.limits` as well.
    pub long_max: u64,
    /// Most contracts short.
    pub short_max: u64,
    /// Most premium bought by the eye since the start, in units of the options' currency; 0 is no limit.
    pub premium_bought_max: u64,
    /// Most premium sold.
    pub premium_sold_max: u64,
    /// Ladders older than this are not traded by, milliseconds; above `reprice_ms`. 0 is any age.
    pub ladder_age_max_ms: u32,
    /// An answer that takes longer turns it off, milliseconds.
    pub answer_max_ms: u32,
    /// It turns itself off when the operator was not heard for so long (`--tell heartbeat`, `--tell eye-on`),
    /// milliseconds.
    pub armed_ms: u32,
    /// Trades the delta of fills away in the underlying. Without the section, nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hedge: Option<HedgeSection>,
    /// How far from their theoretical values options are taken: as `quoter.terms`, where `bid` is to buy and
    /// `ask` to sell. Without any, half a point and a hundredth of the value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<TermsSection>,
}

/// Orders in the underlying against the delta of the eye's fills.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct HedgeSection {
    /// Ticks of the underlying beyond the other side's best price.
    pub through_ticks: u16,
    /// Contracts of the largest order.
    pub size: u32,
    /// Orders within a second.
    pub orders_per_s: u32,
}

impl Default for EyeSection {
    fn default() -> EyeSection {
        EyeSection {
            size: 10,
            believed_ticks: 40,
            contracts_per_s: 50,
            orders_per_s: 20,
            cool_down_ms: 10,
            long_max: 10_000,
            short_max: 10_000,
            premium_bought_max: 0,
            premium_sold_max: 0,
            ladder_age_max_ms: 5_000,
            answer_max_ms: 1_000,
            armed_ms: 5_000,
            hedge: None,
            terms: Vec::new(),
        }
    }
}

impl Default for HedgeSection {
    fn default() -> HedgeSection {
        HedgeSection {
            through_ticks: 1,
            size: 50,
            orders_per_s: 20,
        }
    }
}

impl EyeSection {
    pub(super) fn check(&self, reprice_ms: u32) -> Result<(), String> {
        let sizes = [Some(self.size), self.hedge.map(|hedge| hedge.size)];
        if sizes
            .into_iter()
            .flatten()
            .any(|size| size == 0 || size > 999_999)
        {
            return Err("size must be 1 to 999999 contracts".into());
        }
        if self.contracts_per_s == 0
            || self.orders_per_s == 0
            || self.armed_ms == 0
            || self.answer_max_ms == 0
        {
            return Err("contracts_per_s, orders_per_s, armed_ms and answer_max_ms must be above 0".into());
        }
        if self.ladder_age_max_ms > 0 && self.ladder_age_max_ms <= reprice_ms {
            return Err(format!(
                "ladder_age_max_ms must be above reprice_ms, which is {reprice_ms}: no ladder would be young enough"
            ));
        }
        for (nth, terms) in self.terms.iter().enumerate() {
            terms
                .check()
                .map_err(|e| format!("terms, number {}: {e}", nth + 1))?;
        }
        Ok(())
    }

    /// What the eye is made with.
    pub fn eye(
        &self,
        underlying: InstrumentId,
        (ticks, value): ([Price; 2], PointValue),
        trigger: &TriggerSection,
        market: &MarketSection,
    ) -> EyeConfig {
        let millis = |ms: u32| u64::from(ms) * Nanos::MILLI;
        EyeConfig {
            underlying,
            underlying_tick: ticks[0],
            option_tick: ticks[1],
            size_max: Qty(self.size),
            believed_ticks: self.believed_ticks,
            market: market.guard(),
            contracts_max: self.contracts_per_s,
            contracts_window_ns: Nanos::SECOND,
            orders_max: self.orders_per_s,
            orders_window_ns: Nanos::SECOND,
            open_max: 256,
            cool_down_ns: millis(self.cool_down_ms),
            long_max: self.long_max,
            short_max: self.short_max,
            premium_max: [self.premium_bought_max, self.premium_sold_max]
                .map(|most| in_ticks(most, ticks[1], value)),
            spread_max_ticks: trigger.spread_max_ticks,
            jump_half_ticks: trigger.jump_half_ticks,
            calm_ns: millis(trigger.calm_ms),
            ladder_age_max_ns: millis(self.ladder_age_max_ms),
            answer_max_ns: millis(self.answer_max_ms),
            armed_ns: millis(self.armed_ms),
            hedge: self.hedge.map(|hedge| HedgeConfig {
                through_ticks: hedge.through_ticks,
                size_max: Qty(hedge.size),
                orders_max: hedge.orders_per_s,
            }),
        }
    }

    /// The terms of an option of this delta, without sign.
    pub fn terms_of(&self, expiry: Date, strike: Price, kind: Kind, delta: f64) -> OptionTerms {
        let terms = OptionTerms {
            edge: 0.5,
            edge_relative: 0.01,
            size: self.size,
            ..OptionTerms::default()
        };
        terms.with(&self.terms, (expiry, strike, kind, delta))
    }
}
