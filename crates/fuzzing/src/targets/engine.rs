//! The matching engine.

use tickwire_exchange::{EngineConfig, Twin};

use crate::Choices;

/// Requests of every kind, drawn from the bytes: the engine answers, tells and stands as the naive one does.
pub fn engine(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let Some(size) = choices.below(3) else { return };
    let mut twin = Twin::new(EngineConfig {
        instruments: 4,
        max_orders: [6, 30, 200][size as usize],
        max_levels: [3, 10, 40][size as usize],
    });
    while twin.step(&mut |bound| choices.below(bound)).is_some() {
        twin.check_states();
    }
}
