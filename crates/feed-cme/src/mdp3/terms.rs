//! What a definition says about the contract: for those who value and quote it, not for the book.

use tickwire_market::{Contract, Currency, Date, InstrumentId, Nanos, PointValue, Price, PutCall, Symbol};
use tickwire_wire_cme::mdp3::{
    Body, Entries, EventEntry, MaturityMonthYear, OptionRoot, Price9, TickRule, event_type,
};

/// The terms of an instrument, as its definition has them. Prices are those of messages, before
/// `display_factor`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mdp3Terms {
    /// The venue's number (SecurityID).
    pub security_id: i32,
    /// What it is.
    pub kind: Mdp3Kind,
    /// When it matures: year, and month from 1 on (MaturityMonthYear).
    pub maturity: Option<(u16, u8)>,
    /// The last day on which it trades (EventType 7, else a maturity with a day).
    pub expiry: Option<Date>,
    /// Units of the underlying of one contract (UnitOfMeasureQty).
    pub multiplier: Option<Price>,
    /// The smallest price step (MinPriceIncrement); none where a rule takes its place.
    pub tick: Option<Price>,
    /// The rule of steps that depend on the price (TickRule).
    pub tick_rule: Option<TickRule>,
    /// What people multiply prices with to read them (DisplayFactor).
    pub display_factor: Price,
    /// What the smallest price step of one contract is worth (MinPriceIncrementAmount), where there is such a
    /// step.
    pub tick_amount: Option<Price>,
    /// What it is settled in (SettlCurrency, else Currency).
    pub currency: Option<Currency>,
    /// The first underlying: the venue's number and, where it is said, the name.
    pub underlying: Option<(i32, Symbol)>,
}

/// What a definition defines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mdp3Kind {
    /// Template 54.
    Future,
    /// Template 55.
    Option {
        /// At what price.
        strike: Price,
        /// Put or call.
        right: PutCall,
    },
    /// Template 63: ISO 4217 codes.
    Currency {
        /// What is bought and sold.
        base: [u8; 3],
        /// What its price is in.
        quote: [u8; 3],
    },
    /// Any other template.
    #[default]
    Other,
}

impl Default for Mdp3Terms {
    fn default() -> Mdp3Terms {
        Mdp3Terms {
            security_id: 0,
            kind: Mdp3Kind::Other,
            maturity: None,
            expiry: None,
            multiplier: None,
            tick: None,
            tick_rule: None,
            display_factor: Price::from_raw(Price::ONE_RAW),
            tick_amount: None,
            currency: None,
            underlying: None,
        }
    }
}

impl Mdp3Terms {
    /// The terms that a definition says; those of templates 56, 57 and 58 only as far as no part of them is
    /// theirs alone.
    pub(super) fn of(body: &Body<'_>) -> Mdp3Terms {
        match body {
            Body::Future(m) => {
                let root = m.root.get();
                Mdp3Terms {
                    security_id: root.security_id.get(),
                    kind: Mdp3Kind::Future,
                    multiplier: root.unit_of_measure_qty.price(),
                    tick: Some(root.min_price_increment.price()),
                    tick_amount: root.min_price_increment_amount.price(),
                    display_factor: root.display_factor.price(),
                    currency: currency_of([root.settl_currency.0, root.currency.0]),
                    ..dated(root.maturity_month_year, m.events)
                }
            }
            Body::OptionDefinition(m) => {
                let root = m.root.get();
                let mut underlyings = m.underlyings;
                let first = underlyings.next();
                Mdp3Terms {
                    security_id: root.security_id.get(),
                    kind: option_kind(&root),
                    multiplier: root.unit_of_measure_qty.price(),
                    tick: root.min_price_increment.price(),
                    tick_rule: root.tick_rule.get().and_then(TickRule::of),
                    tick_amount: root.min_price_increment_amount.price(),
                    display_factor: root.display_factor.price(),
                    currency: currency_of([root.settl_currency.0, root.currency.0]),
                    underlying: first.map(|u| {
                        let name = Symbol::new(u.underlying_symbol.trimmed());
                        (u.underlying_security_id.get(), name.unwrap_or(Symbol::EMPTY))
                    }),
                    ..dated(root.maturity_month_year, m.events)
                }
            }
            Body::Fx(m) => {
                let root = m.root.get();
                Mdp3Terms {
                    security_id: root.security_id.get(),
                    kind: Mdp3Kind::Currency {
                        base: root.currency.0,
                        quote: root.price_quote_currency.0,
                    },
                    tick: Some(root.min_price_increment.price()),
                    display_factor: root.display_factor.price(),
                    ..Mdp3Terms::default()
                }
            }
            Body::Spread(m) => other(m.root.get().security_id.get(), m.root.get().display_factor),
            Body::FixedIncome(m) => other(m.root.get().security_id.get(), m.root.get().display_factor),
            Body::Repo(m) => other(m.root.get().security_id.get(), m.root.get().display_factor),
            _ => Mdp3Terms::default(),
        }
    }

    /// The price step at a price; `None` where the definition says none.
    pub fn tick_at(&self, price: Price) -> Option<Price> {
        self.tick_rule.map(|rule| rule.tick(price)).or(self.tick)
    }

    /// What a unit of the price, before the display factor, is worth for one contract: what the step is worth
    /// by the step, which holds for prices in percent of par too; where a rule takes the step's place, the
    /// contract's size times the display factor. `None` where neither is said.
    pub fn point_value(&self) -> Option<PointValue> {
        let currency = self.currency.unwrap_or(Currency::NONE);
        if let Mdp3Kind::Currency { quote, .. } = self.kind {
            let quote = Currency::new(quote).unwrap_or(Currency::NONE);
            return PointValue::of_contract(Price::from_raw(Price::ONE_RAW), self.display_factor, quote);
        }
        let by_step = self
            .tick
            .zip(self.tick_amount)
            .filter(|_| self.tick_rule.is_none());
        let by_step = by_step.and_then(|(tick, amount)| PointValue::of_step(tick, amount, currency));
        by_step.or_else(|| PointValue::of_contract(self.multiplier?, self.display_factor, currency))
    }

    /// The contract, whose underlying has this number here. `None` of instruments that are none of those, or
    /// whose expiry or whole multiplier is not said.
    pub fn contract(&self, underlying: InstrumentId) -> Option<Contract> {
        let multiplier = || {
            let raw = self.multiplier.map_or(Price::ONE_RAW, Price::raw);
            let is_whole = raw % Price::ONE_RAW == 0;
            u32::try_from(raw / Price::ONE_RAW)
                .ok()
                .filter(|n| is_whole && *n > 0)
        };
        Some(match self.kind {
            Mdp3Kind::Future => Contract::Future {
                expiry: self.expiry?,
                multiplier: multiplier()?,
            },
            Mdp3Kind::Option { strike, right } => Contract::Option {
                expiry: self.expiry?,
                multiplier: multiplier()?,
                strike,
                right,
                underlying,
            },
            Mdp3Kind::Currency { base, quote } => Contract::Currency { base, quote },
            Mdp3Kind::Other => return None,
        })
    }
}

/// The first code that is one.
fn currency_of(codes: [[u8; 3]; 2]) -> Option<Currency> {
    codes.into_iter().find_map(Currency::new)
}

fn other(security_id: i32, display_factor: Price9) -> Mdp3Terms {
    Mdp3Terms {
        security_id,
        display_factor: display_factor.price(),
        ..Mdp3Terms::default()
    }
}

/// An option without a strike, or neither put nor call, is something else.
fn option_kind(root: &OptionRoot) -> Mdp3Kind {
    let right = match root.put_or_call {
        0 => Some(PutCall::Put),
        1 => Some(PutCall::Call),
        _ => None,
    };
    match (root.strike_price.price(), right) {
        (Some(strike), Some(right)) => Mdp3Kind::Option { strike, right },
        _ => Mdp3Kind::Other,
    }
}

fn dated(maturity: MaturityMonthYear, mut events: Entries<'_, EventEntry>) -> Mdp3Terms {
    let (year, month) = (maturity.year.get().map(|y| y.get()), maturity.month.get());
    let month = year.zip(month).filter(|(_, month)| (1..=12).contains(month));
    let day = maturity.day.get().filter(|day| (1..=31).contains(day));
    let last = events.find(|event| event.event_type == event_type::LAST_ELIGIBLE_TRADE_DATE);
    // Years beyond what a day's number holds are none.
    let days = last.map(|event| event.event_time.get() / Nanos::DAY);
    let days = days
        .and_then(|days| u32::try_from(days).ok())
        .filter(|days| *days > 0);
    Mdp3Terms {
        maturity: month,
        expiry: days
            .map(Date::of_days)
            .or(month
                .zip(day)
                .map(|((year, month), day)| Date { year, month, day })),
        ..Mdp3Terms::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_worth_what_the_definition_makes_of_it() {
        let price = |text: &str| text.parse::<Price>().expect("a price");
        let terms = Mdp3Terms {
            kind: Mdp3Kind::Future,
            multiplier: Some(price("50")),
            tick: Some(price("25")),
            tick_amount: Some(price("12.5")),
            display_factor: price("0.01"),
            currency: Some(Currency::USD),
            ..Mdp3Terms::default()
        };
        let raw = |terms: &Mdp3Terms| terms.point_value().map(|value| (value.raw(), value.currency()));
        assert_eq!(raw(&terms), Some((500_000_000, Currency::USD)));
        // An option whose steps depend on the price says no step: by its size and the display factor.
        let by_rule = Mdp3Terms {
            tick: None,
            tick_rule: TickRule::of(4),
            tick_amount: Some(price("2.5")),
            ..terms
        };
        assert_eq!(raw(&by_rule), Some((500_000_000, Currency::USD)));
        // Notes are priced in percent of 100,000 dollars: by the step, not by the size.
        let note = Mdp3Terms {
            multiplier: Some(price("100000")),
            tick: Some(price("0.015625")),
            tick_amount: Some(price("15.625")),
            display_factor: price("1"),
            ..terms
        };
        assert_eq!(raw(&note), Some((1_000_000_000_000, Currency::USD)));
        // A contract on yen that says neither is not worth one; a pair is worth what its price says.
        let unsaid = Mdp3Terms {
            multiplier: None,
            tick_amount: None,
            ..terms
        };
        assert_eq!(raw(&unsaid), None);
        let pair = Mdp3Terms {
            kind: Mdp3Kind::Currency {
                base: *b"EUR",
                quote: *b"JPY",
            },
            display_factor: price("1"),
            ..Mdp3Terms::default()
        };
        let yen = Currency::new(*b"JPY").expect("a code");
        assert_eq!(raw(&pair), Some((1_000_000_000, yen)));
        let nowhere = Mdp3Terms {
            currency: None,
            ..terms
        };
        assert_eq!(raw(&nowhere), Some((500_000_000, Currency::NONE)));
    }
}
