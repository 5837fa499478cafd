//! By which prices a loss is counted.

use serde::{Deserialize, Serialize};
use tickwire_trading::portfolio::LossBy;

/// By which prices the loss limit goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LossMark {
    /// Theoretical values or the market's mids, whichever shows the larger loss
    #[default]
    Worse,
    /// Theoretical values
    Theo,
    /// The market's mid prices
    Market,
}

impl From<LossMark> for LossBy {
    fn from(by: LossMark) -> LossBy {
        match by {
            LossMark::Worse => LossBy::Worse,
            LossMark::Theo => LossBy::Theo,
            LossMark::Market => LossBy::Market,
        }
    }
}
