//! The variable tick tables that TickRule (6350) of a definition names.
//!
//! CME Globex client systems wiki, "Tick and Price Display", table "Variable Tick Table". Prices are Globex
//! prices: those of messages, before the DisplayFactor. An instrument with such a rule has no
//! MinPriceIncrement.

use tickwire_market::Price;

/// A rule: one tick around zero, another beyond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TickRule {
    /// The code: TickRule (6350).
    pub code: i8,
    /// The largest price, and with its sign changed the smallest, to which `inside` holds.
    pub bound: Price,
    /// The tick up to the bound.
    pub inside: Price,
    /// The tick beyond it.
    pub beyond: Price,
}

impl TickRule {
    /// Every rule that is published.
    #[rustfmt::skip]
    pub const ALL: [TickRule; 8] = [
        rule(1, 50_000, 500, 1_000), rule(2, 500, 50, 100), rule(3, 1_000, 100, 200), rule(4, 50_000, 500, 2_500),
        rule(10, 30_000, 500, 2_500), rule(11, 30_000, 500, 1_000), rule(12, 500, 25, 50), rule(13, 2_500, 100, 500),
    ];

    /// The rule of a code; `None` of 0, which is none, and of codes that are not published.
    pub fn of(code: i8) -> Option<TickRule> {
        TickRule::ALL.into_iter().find(|rule| rule.code == code)
    }

    /// The tick at a price.
    pub fn tick(&self, price: Price) -> Price {
        match price.raw().unsigned_abs() <= self.bound.raw().unsigned_abs() {
            true => self.inside,
            false => self.beyond,
        }
    }
}

/// In hundredths.
const fn rule(code: i8, bound: u32, inside: u32, beyond: u32) -> TickRule {
    TickRule {
        code,
        bound: Price::from_4dp(bound * 100),
        inside: Price::from_4dp(inside * 100),
        beyond: Price::from_4dp(beyond * 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_documentation() {
        // "6350=1 for a market price of 510: the tick size is 10".
        let rule = TickRule::of(1).unwrap();
        assert_eq!(rule.tick(Price::from_4dp(5_100_000)), Price::from_4dp(100_000));
        assert_eq!(rule.tick(Price::from_4dp(5_000_000)), Price::from_4dp(50_000));
        assert_eq!(
            rule.tick(Price::from_raw(-500 * Price::ONE_RAW)),
            Price::from_4dp(50_000)
        );
        assert_eq!(
            rule.tick(Price::from_raw(-501 * Price::ONE_RAW)),
            Price::from_4dp(100_000)
        );
        assert_eq!(TickRule::of(0), None);
        assert_eq!(TickRule::of(12).unwrap().inside, Price::from_4dp(2_500));
    }
}
