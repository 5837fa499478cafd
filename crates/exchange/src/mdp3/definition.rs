//! What a channel says about its instruments: templates 54 (futures, and shares told as such), 55 (options)
//! and 63 (currency pairs).
//!
//! An instrument whose tick depends on its price has a TickRule where CME has one that fits, and no
//! MinPriceIncrement; where none fits, MinPriceIncrement is the smallest tick.

use tickwire_market::{Contract, Date, InstrumentId, Nanos, Price, PutCall};
use tickwire_wire::layout::{Char, le};
use tickwire_wire::mdp3::{
    AttributeEntry, EventEntry, FeedTypeEntry, Future, FutureRoot, Fx, FxRoot, MaturityMonthYear,
    OptionDefinition, OptionRoot, Optional, Price9, Text, TickRule, Underlying, attribute, event_type,
};

use super::event::DEPTH;
use super::{Listed, Mdp3PublisherConfig};
use crate::rules::TickTable;
use crate::tape::Listing;

/// A definition, ready to be encoded.
pub(super) enum Definition {
    Future(FutureRoot, Option<EventEntry>),
    Option(OptionRoot, EventEntry, Underlying),
    Fx(FxRoot),
}

/// What all of them say alike.
pub(super) struct Common<'a> {
    pub(super) config: &'a Mdp3PublisherConfig,
    pub(super) listed: &'a [Listed],
    /// When the day began.
    pub(super) midnight: Nanos,
    /// How many there are, on the instrument replay feed.
    pub(super) total: Optional<le::U32>,
}

impl Common<'_> {
    pub(super) fn of(&self, listed: &Listed) -> Definition {
        let listing = &listed.listing;
        match listing.contract {
            Contract::Equity => Definition::Future(self.future(listed), None),
            Contract::Future { expiry, multiplier } => {
                let root = FutureRoot {
                    maturity_month_year: maturity(expiry),
                    unit_of_measure: UNIT,
                    unit_of_measure_qty: Some(whole(multiplier)).into(),
                    min_price_increment_amount: Some(amount(listing, multiplier)).into(),
                    ..self.future(listed)
                };
                Definition::Future(root, Some(last_day(expiry)))
            }
            Contract::Option {
                expiry,
                multiplier,
                strike,
                right,
                underlying,
            } => Definition::Option(
                self.option(listed, (expiry, multiplier, strike, right)),
                last_day(expiry),
                self.underlying(underlying),
            ),
            Contract::Currency { base, quote } => Definition::Fx(self.fx(listed, base, quote)),
        }
    }

    fn future(&self, listed: &Listed) -> FutureRoot {
        let (year, month) = self.config.maturity;
        FutureRoot {
            indicator: tickwire_wire::mdp3::indicator::END_OF_EVENT,
            total_reports: self.total,
            security_update_action: Char(b'A'),
            last_update_time: self.midnight.0.into(),
            trading_status: Some(listed.status as u8).into(),
            appl_id: (self.config.channel as i16).into(),
            security_exchange: Text(*b"XCME"),
            security_group: Text(self.config.group),
            asset: Text(self.config.group),
            symbol: symbol(&listed.listing),
            security_id: listed.security_id.into(),
            security_type: Text(*b"FUT\0\0\0"),
            cfi_code: Text(*b"FXXXXX"),
            maturity_month_year: MaturityMonthYear {
                year: Some(year.into()).into(),
                month: Some(month).into(),
                ..MaturityMonthYear::BLANK
            },
            currency: Text(*b"USD"),
            settl_currency: Text(*b"USD"),
            match_algorithm: Char(b'F'), // first in, first out
            min_trade_vol: listed.listing.rules.lot.0.into(),
            max_trade_vol: u32::MAX.into(),
            min_price_increment: Price9::of(smallest_tick(&listed.listing)),
            display_factor: Price9::of(listed.listing.display_factor),
            user_defined_instrument: Char(b'N'),
            ..FutureRoot::BLANK
        }
    }

    fn option(
        &self,
        listed: &Listed,
        (expiry, multiplier, strike, right): (Date, u32, Price, PutCall),
    ) -> OptionRoot {
        let listing = &listed.listing;
        let rule = rule_of(&listing.rules.ticks);
        // Of a rule, the smallest.
        let tick = smallest_tick(listing);
        OptionRoot {
            indicator: tickwire_wire::mdp3::indicator::END_OF_EVENT,
            total_reports: self.total,
            security_update_action: Char(b'A'),
            last_update_time: self.midnight.0.into(),
            trading_status: Some(listed.status as u8).into(),
            appl_id: (self.config.channel as i16).into(),
            security_exchange: Text(*b"XCME"),
            security_group: Text(self.config.group),
            asset: Text(self.config.group),
            symbol: symbol(listing),
            security_id: listed.security_id.into(),
            // On a future.
            security_type: Text(*b"OOF\0\0\0"),
            cfi_code: match right {
                PutCall::Call => Text(*b"OCXFXX"),
                PutCall::Put => Text(*b"OPXFXX"),
            },
            put_or_call: right as u8,
            maturity_month_year: maturity(expiry),
            currency: Text(*b"USD"),
            strike_price: Some(Price9::of(strike)).into(),
            strike_currency: Text(*b"USD"),
            settl_currency: Text(*b"USD"),
            match_algorithm: Char(b'F'),
            min_trade_vol: listing.rules.lot.0.into(),
            max_trade_vol: u32::MAX.into(),
            min_price_increment: rule.is_none().then_some(Price9::of(tick)).into(),
            min_price_increment_amount: Some(amount(listing, multiplier)).into(),
            display_factor: Price9::of(listing.display_factor),
            tick_rule: rule.map(|rule| rule.code).into(),
            unit_of_measure: UNIT,
            unit_of_measure_qty: Some(whole(multiplier)).into(),
            user_defined_instrument: Char(b'N'),
            ..OptionRoot::BLANK
        }
    }

    fn underlying(&self, id: InstrumentId) -> Underlying {
        // Of another channel, its name is not known here.
        let known = self.listed.iter().find(|listed| listed.listing.id == id);
        Underlying {
            underlying_security_id: (self.config.security_base + id.0 as i32).into(),
            underlying_symbol: known.map_or(Text([0; 20]), |listed| symbol(&listed.listing)),
        }
    }

    fn fx(&self, listed: &Listed, base: [u8; 3], quote: [u8; 3]) -> FxRoot {
        let tick = smallest_tick(&listed.listing);
        let (mut decimals, mut unit) = (0, Price::ONE_RAW);
        while unit > 1 && tick.raw() % unit != 0 {
            (decimals, unit) = (decimals + 1, unit / 10);
        }
        FxRoot {
            indicator: tickwire_wire::mdp3::indicator::END_OF_EVENT,
            total_reports: self.total,
            security_update_action: Char(b'A'),
            last_update_time: self.midnight.0.into(),
            trading_status: Some(listed.status as u8).into(),
            appl_id: (self.config.channel as i16).into(),
            security_exchange: Text(*b"XCME"),
            security_group: Text(self.config.group),
            asset: Text(self.config.group),
            symbol: symbol(&listed.listing),
            security_id: listed.security_id.into(),
            security_type: Text(*b"FXSPOT"),
            cfi_code: Text(*b"IFXXXP"),
            currency: Text(base),
            settl_currency: Text(quote),
            price_quote_currency: Text(quote),
            match_algorithm: Char(b'F'),
            min_trade_vol: listed.listing.rules.lot.0.into(),
            max_trade_vol: u32::MAX.into(),
            min_price_increment: Price9::of(tick),
            display_factor: Price9::of(listed.listing.display_factor),
            price_precision: decimals,
            user_defined_instrument: Char(b'N'),
            fx_currency_symbol: Text([base[0], base[1], base[2], b'/', quote[0], quote[1], quote[2]]),
            settl_type: Text(*b"0\0\0"),
            ..FxRoot::BLANK
        }
    }
}

impl Definition {
    pub(super) fn encode(&self, buffer: &mut [u8]) -> Option<usize> {
        let feed_type = FeedTypeEntry {
            feed_type: Text(*b"GBX"),
            market_depth: DEPTH as i8,
        };
        let attributes = AttributeEntry {
            inst_attrib_value: attribute::MATCH_ELIGIBLE.into(),
        };
        match self {
            Definition::Future(root, last_day) => {
                Future::encode(buffer, root, *last_day, [feed_type], [attributes], [])
            }
            Definition::Option(root, last_day, underlying) => OptionDefinition::encode(
                buffer,
                root,
                [*last_day],
                [feed_type],
                [attributes],
                [],
                [*underlying],
                [],
            ),
            Definition::Fx(root) => Fx::encode(buffer, root, [], [feed_type], [attributes], [], []),
        }
    }
}

/// Index points.
const UNIT: Text<30> = {
    let mut text = [0; 30];
    (text[0], text[1], text[2], text[3]) = (b'I', b'P', b'N', b'T');
    Text(text)
};

fn symbol(listing: &Listing) -> Text<20> {
    Text::new(listing.symbol.as_bytes()).unwrap_or(Text([0; 20]))
}

fn smallest_tick(listing: &Listing) -> Price {
    let ticks = listing.rules.ticks.steps().map(|(_, tick)| tick);
    ticks.min().unwrap_or_default()
}

fn whole(number: u32) -> Price9 {
    Price9::of(Price::from_raw(i64::from(number) * Price::ONE_RAW))
}

/// What a tick is worth.
fn amount(listing: &Listing, multiplier: u32) -> Price9 {
    let tick = i128::from(smallest_tick(listing).raw()) * i128::from(listing.display_factor.raw());
    let amount = tick / i128::from(Price::ONE_RAW) * i128::from(multiplier);
    Price9::of(Price::from_raw(i64::try_from(amount).unwrap_or(i64::MAX - 1)))
}

fn maturity(expiry: Date) -> MaturityMonthYear {
    MaturityMonthYear {
        year: Some(expiry.year.into()).into(),
        month: Some(expiry.month).into(),
        ..MaturityMonthYear::BLANK
    }
}

/// The day is known by its event: the maturity is a month.
fn last_day(expiry: Date) -> EventEntry {
    EventEntry {
        event_type: event_type::LAST_ELIGIBLE_TRADE_DATE,
        event_time: (u64::from(expiry.days()) * Nanos::DAY).into(),
    }
}

/// The rule whose prices are those of the table.
fn rule_of(ticks: &TickTable) -> Option<TickRule> {
    let mut steps = ticks.steps();
    let (inside, (bound, beyond)) = (steps.next()?.1, steps.next()?);
    let is_it = |rule: &TickRule| (rule.bound, rule.inside, rule.beyond) == (bound, inside, beyond);
    match steps.next() {
        None => TickRule::ALL.into_iter().find(is_it),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_rule_with_the_same_prices_or_none() {
        let [five, quarter, bound] = [5, 25, 500].map(|n| Price::from_4dp(n * 10_000));
        let es = TickTable::stepped(five, &[(bound, quarter)]);
        assert_eq!(es.as_ref().and_then(rule_of).map(|rule| rule.code), Some(4));
        assert_eq!(rule_of(&TickTable::uniform(five)), None);
        let other = TickTable::stepped(five, &[(quarter, quarter)]);
        assert_eq!(other.as_ref().and_then(rule_of), None);
    }
}
