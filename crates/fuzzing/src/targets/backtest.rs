//! The simulated venue of a backtest.

use crate::Choices;
use tickwire_backtest::{FillModel, naive};

/// The first byte chooses the fill model; the rest is a recording with orders of ours in it.
pub fn backtest(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let Some(model) = choices.byte() else { return };
    let fill = [FillModel::Queue, FillModel::Matching][usize::from(model & 1)];
    naive::agree(&mut |bound| choices.below(bound), fill);
}
