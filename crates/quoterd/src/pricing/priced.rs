//! What the pricing thread leaves behind, and what it says of it meanwhile.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tickwire_desk::risk::LossMark;
use tickwire_trading::portfolio::LossBy;

/// What the pricing thread leaves behind.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Priced {
    /// Ladders made, and those there was no room for: the quoting thread had not taken the one before.
    pub ladders: u64,
    pub ladders_late: u64,
    /// Contracts held, bought less sold, by quote, as counted from fills alone: those of quotes and of the
    /// eye's orders.
    pub positions: Vec<i64>,
    /// Contracts of the underlying held, from hedges.
    #[serde(default)]
    pub underlying: i64,
    /// Fills; here and below without those that the venue took back.
    pub fills: u64,
    /// Contracts of options bought and sold,
    pub contracts: [u64; 2],
    /// of these by the eye,
    #[serde(default)]
    pub eye_contracts: [u64; 2],
    /// and of the underlying.
    #[serde(default)]
    pub hedged: [u64; 2],
    /// Cash received less paid, in points times contracts of options.
    pub cash: f64,
    /// How many contracts of an option one of the underlying is as large as.
    #[serde(default)]
    pub underlying_size: f64,
    /// What is held, at theoretical values, in the same unit.
    pub value: f64,
    /// The same at the market's mids; without one, at the worse of the last mid and the theoretical value.
    #[serde(default)]
    pub market_value: f64,
    /// Options held that have no mid, and their contracts.
    #[serde(default)]
    pub without_mid: (u32, u64),
    /// What a point of an option is worth, for one contract, and in which currency.
    #[serde(default)]
    pub point: f64,
    #[serde(default)]
    pub currency: String,
    /// The loss limit, in money, 0 for none, and by which prices.
    #[serde(default)]
    pub loss_max: u64,
    #[serde(default)]
    pub loss_by: LossMark,
    /// Gains that differ by more are a warning.
    #[serde(default)]
    pub difference_max: u64,
    /// In the order of `positions`, in points: theoretical values, and the market's mids.
    #[serde(default)]
    pub theos: Vec<f64>,
    #[serde(default)]
    pub mids: Vec<Option<f64>>,
    /// Theoretical edge of all fills when they were made.
    pub edge: f64,
    pub delta: f64,
    pub gamma: f64,
    pub vega: f64,
    /// Version of the volatilities.
    pub version: u64,
    /// Memory of the process after each minute, KiB; of the first [`MINUTES_MAX`].
    #[serde(default)]
    pub memory_kib: Vec<u64>,
    /// Why pricing ended early.
    pub failure: Option<String>,
}

impl Priced {
    /// What was gained, in money, by theoretical value and by the market.
    pub fn gains(&self) -> [f64; 2] {
        [self.value, self.market_value].map(|value| (self.cash + value) * self.point)
    }

    /// The gain that the loss limit goes by.
    pub fn judged(&self) -> f64 {
        let [theo, market] = self.gains();
        LossBy::from(self.loss_by).of(theo, market)
    }

    /// Whether the two gains differ by more than they may without a warning.
    pub fn differs(&self) -> bool {
        let [theo, market] = self.gains();
        self.difference_max > 0 && (theo - market).abs() > self.difference_max as f64
    }

    /// For the operator.
    pub(super) fn status(&self) -> Value {
        let [theo, market] = self.gains();
        json!({
            "currency": (self.currency),
            "gain_by_theo": theo,
            "gain_by_market": market,
            "differs": (self.differs()),
            "options_without_mid": (self.without_mid.0),
            "contracts_without_mid": (self.without_mid.1),
            "loss_by": (self.loss_by),
            "loss_max": (self.loss_max),
        })
    }
}
