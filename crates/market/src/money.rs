//! What prices are worth: currencies, and the money that a point of an instrument's price is.

use core::fmt;

use crate::Price;

/// A currency. ISO 4217 code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The United States dollar.
    pub const USD: Currency = Currency(*b"USD");
    /// The Russian rouble.
    pub const RUB: Currency = Currency(*b"RUB");
    /// No currency: transactions without one have this code. What a venue does not say is in it.
    pub const NONE: Currency = Currency(*b"XXX");

    /// A code of three capital letters; `None` of anything else.
    pub const fn new(code: [u8; 3]) -> Option<Currency> {
        match code {
            [b'A'..=b'Z', b'A'..=b'Z', b'A'..=b'Z'] => Some(Currency(code)),
            _ => None,
        }
    }

    /// The code.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or("XXX")
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What one whole unit of an instrument's price, as its feed has it, is worth for one contract, share or lot.
///
/// An E-mini S&P 500 future is 50 dollars a point, and CME sends its price in hundredths of a point
/// (DisplayFactor 0.01): half a dollar. A share is one dollar a dollar.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PointValue {
    /// In 1e-9 money, above 0.
    raw: i64,
    currency: Currency,
}

impl PointValue {
    /// One unit of money for each unit of the price: shares, whose quantity is counted in shares.
    pub const fn unit(currency: Currency) -> PointValue {
        PointValue {
            raw: Price::ONE_RAW,
            currency,
        }
    }

    /// So much money, in 1e-9; `None` if it is not above 0.
    pub const fn new(raw: i64, currency: Currency) -> Option<PointValue> {
        if raw > 0 {
            Some(PointValue { raw, currency })
        } else {
            None
        }
    }

    /// Of a contract on so many units of what its price is of, whose price is read after it was multiplied
    /// with `display_factor`; to the nearest 1e-9. `None` if that is not above 0, or too much.
    pub fn of_contract(units: Price, display_factor: Price, currency: Currency) -> Option<PointValue> {
        let product = i128::from(units.raw()) * i128::from(display_factor.raw());
        let raw = nearest(product, Price::ONE_RAW.into());
        PointValue::new(i64::try_from(raw).ok()?, currency)
    }

    /// Of a contract whose price step is worth so much money (FIX MinPriceIncrementAmount, 1146; the Moscow
    /// Exchange's step price); to the nearest 1e-9. `None` if that is not above 0, or too much.
    pub fn of_step(step: Price, amount: Price, currency: Currency) -> Option<PointValue> {
        if step.raw() <= 0 {
            return None;
        }
        let product = i128::from(amount.raw()) * i128::from(Price::ONE_RAW);
        let raw = nearest(product, step.raw().into());
        PointValue::new(i64::try_from(raw).ok()?, currency)
    }

    /// What money is in.
    pub const fn currency(&self) -> Currency {
        self.currency
    }

    /// Money of a unit of the price, in 1e-9.
    pub const fn raw(&self) -> i64 {
        self.raw
    }

    /// Money, in 1e-9, of so many 1e-9 units of the price times contracts: the nearest, halves away from 0.
    pub const fn money(&self, points: i128) -> i128 {
        nearest(points.saturating_mul(self.raw as i128), Price::ONE_RAW as i128)
    }
}

/// A fraction as a whole number: the nearest, halves away from 0. `by` is above 0.
const fn nearest(number: i128, by: i128) -> i128 {
    let half = if number < 0 { -(by / 2) } else { by / 2 };
    number.saturating_add(half) / by
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use super::*;
    use alloc::string::ToString;

    fn price(text: &str) -> Price {
        text.parse().expect("a price")
    }

    #[test]
    fn a_currency_is_three_capital_letters() {
        assert_eq!(
            Currency::new(*b"EUR").map(|eur| eur.to_string()),
            Some("EUR".to_string())
        );
        for wrong in [*b"eur", *b"E R", [0; 3], *b"EU1"] {
            assert_eq!(Currency::new(wrong), None);
        }
    }

    #[test]
    fn contracts_are_worth_what_they_are_by_hand() {
        let usd = Currency::USD;
        // E-mini S&P 500: 50 dollars a point, prices in hundredths: 6,900.25 is sent as 690025 and is worth
        // 345,012.50 dollars.
        let es = PointValue::of_contract(price("50"), price("0.01"), usd).expect("above 0");
        assert_eq!(es.money(price("690025").raw().into()), 345_012_500_000_000);
        // The same by its step of 25 (0.25 points), which is 12.50 dollars.
        assert_eq!(PointValue::of_step(price("25"), price("12.5"), usd), Some(es));
        // Ten-year notes: 1,000 dollars for each of a hundred points of par; a sixty-fourth is 15.625
        // dollars.
        let note = PointValue::of_step(price("0.015625"), price("15.625"), usd).expect("above 0");
        assert_eq!(note.money(price("110.515625").raw().into()), 110_515_625_000_000);
        // RTS index futures: a step of 10 points is 13.98476 roubles; three contracts, 15 steps.
        let rts = PointValue::of_step(price("10"), price("13.98476"), Currency::RUB).expect("above 0");
        assert_eq!(rts.money(3 * i128::from(price("150").raw())), 629_314_200_000);
        assert_eq!(rts.currency(), Currency::RUB);
        // A share at 101.37 dollars, 250 of them.
        assert_eq!(
            PointValue::unit(usd).money(250 * i128::from(price("101.37").raw())),
            25_342_500_000_000
        );
    }

    #[test]
    fn money_is_rounded_to_the_nearest_and_what_is_nothing_is_no_value() {
        let half = PointValue::new(Price::ONE_RAW / 2, Currency::USD).expect("above 0");
        assert_eq!(
            [3, -3, 2, -2, 0].map(|points| half.money(points)),
            [2, -2, 1, -1, 0]
        );
        assert_eq!(PointValue::new(0, Currency::USD), None);
        assert_eq!(PointValue::of_step(Price::ZERO, price("1"), Currency::USD), None);
        assert_eq!(
            PointValue::of_contract(price("50"), Price::ZERO, Currency::USD),
            None
        );
        let most = PointValue::new(i64::MAX, Currency::USD).expect("above 0");
        assert!(most.money(i128::MAX) > 0 && most.money(i128::MIN) < 0);
    }
}
