//! One call of every crate, with its answer checked.

use tickwire_market::Price;

/// Whether every crate answered as it should.
pub(crate) fn every_crate() -> bool {
    market()
}

fn market() -> bool {
    Price::parse(b"87.39") == Ok(Price::from_4dp(873_900))
}
