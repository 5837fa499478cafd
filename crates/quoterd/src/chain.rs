//! Which options are quoted, as the venue's definitions have them.

use std::collections::BTreeMap;

use tickwire_feed::Channel;
use tickwire_market::{Contract, Date, InstrumentId, PointValue, Price, PriceSteps, PutCall, Symbol};
use tickwire_options::Kind;
use tickwire_options::edge::points;
use tickwire_trading::PriceGrid;

use tickwire_console::failure::Failure;

/// An option of the chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Listed {
    pub id: InstrumentId,
    pub symbol: Symbol,
    pub expiry: Date,
    pub strike: Price,
    pub kind: Kind,
    /// Units of the underlying of one contract.
    pub multiplier: u32,
}

impl Listed {
    /// In points.
    pub fn strike_points(&self) -> f64 {
        points(self.strike)
    }
}

/// The options on one underlying.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The future.
    pub underlying: InstrumentId,
    /// Its smallest price step.
    pub underlying_tick: Price,
    /// What a point of the underlying's price is worth for one contract,
    pub underlying_value: PointValue,
    /// and of the options, of all alike and in the same currency.
    pub option_value: PointValue,
    /// Of all options alike.
    pub steps: PriceSteps,
    /// The options on it, in the order of the venue's definitions.
    pub options: Vec<Listed>,
}

impl Chain {
    /// What a channel has defined of the options on an underlying. `None` until the underlying and one option
    /// at least are known.
    ///
    /// # Errors
    /// Options that cannot be quoted together, because their price steps differ.
    pub fn of(channel: &impl Channel, underlying: &Symbol) -> Result<Option<Chain>, Failure> {
        let Some(front) = channel.find(underlying) else {
            return Ok(None);
        };
        let Some(front_steps) = channel.price_steps(front) else {
            return Ok(None);
        };
        let mut options = Vec::new();
        let mut steps: Vec<(Symbol, PriceSteps)> = Vec::new();
        let mut values: Vec<(Symbol, Option<PointValue>)> = Vec::new();
        channel.instruments(&mut |instrument| {
            let Some(Contract::Option {
                expiry,
                multiplier,
                strike,
                right,
                underlying,
            }) = channel.contract(instrument.id)
            else {
                return;
            };
            if underlying != front || instrument.is_test {
                return;
            }
            options.push(Listed {
                id: instrument.id,
                symbol: instrument.symbol,
                expiry,
                strike,
                kind: match right {
                    PutCall::Call => Kind::Call,
                    PutCall::Put => Kind::Put,
                },
                multiplier,
            });
            if let Some(own) = channel.price_steps(instrument.id)
                && steps.iter().all(|(_, known)| *known != own)
            {
                steps.push((instrument.symbol, own));
            }
            let value = channel.point_value(instrument.id);
            if values.iter().all(|(_, known)| *known != value) {
                values.push((instrument.symbol, value));
            }
        });
        let unsaid = |symbol: &Symbol| {
            Failure::config(format!(
                "the definition of {symbol} says neither what its price step is worth nor its size: what is traded could not be counted in money"
            ))
        };
        match &steps[..] {
            [] => Ok(None),
            [(_, steps)] => {
                let underlying_value = channel.point_value(front).ok_or_else(|| unsaid(underlying))?;
                let option_value = match &values[..] {
                    [(_, Some(value))] => *value,
                    [(one, Some(_)), (other, Some(_)), ..] => {
                        return Err(Failure::config(format!(
                            "a point of {one} and one of {other} are worth different money; quote them by two programs, each with the options \
                             of one (quoter.option in the configuration)"
                        )));
                    }
                    all => {
                        let first = all.iter().find(|(_, value)| value.is_none());
                        return Err(unsaid(first.map_or(underlying, |(symbol, _)| symbol)));
                    }
                };
                if option_value.currency() != underlying_value.currency() {
                    return Err(Failure::config(format!(
                        "{underlying} is settled in {}, its options in {}: they cannot be in one account",
                        underlying_value.currency(),
                        option_value.currency()
                    )));
                }
                Ok(Some(Chain {
                    underlying: front,
                    underlying_tick: front_steps.tick,
                    underlying_value,
                    option_value,
                    steps: *steps,
                    options,
                }))
            }
            [(one, _), (other, _), ..] => Err(Failure::config(format!(
                "{one} and {other} have different price steps; quote them by two programs, each with the options of one \
                 (quoter.option in the configuration)"
            ))),
        }
    }

    /// The prices at which they are quoted.
    ///
    /// # Errors
    /// Steps that no grid has.
    pub fn grid(&self) -> Result<PriceGrid, Failure> {
        let tick = self.steps.tick;
        let whole = |price: Price| {
            let ticks = price.raw() / tick.raw().max(1);
            u16::try_from(ticks)
                .ok()
                .filter(|_| price.raw() % tick.raw().max(1) == 0)
        };
        let coarse = match self.steps.beyond {
            None => Some((1, 0)),
            Some((bound, step)) => whole(step).zip(whole(bound)),
        };
        let grid = coarse.and_then(|(ticks, from)| PriceGrid::new(points(tick), ticks, from).ok());
        grid.ok_or_else(|| {
            Failure::config(format!(
                "options with the price steps {:?} cannot be quoted: the coarse step must be a whole number of the fine one, and \
                 begin below 65,536 of them",
                self.steps
            ))
        })
    }

    /// How many contracts of an option one of the underlying is as large as.
    pub fn underlying_size(&self) -> f64 {
        self.underlying_value.raw() as f64 / self.option_value.raw() as f64
    }

    /// How many options each expiry has.
    pub fn expiries(&self) -> BTreeMap<Date, usize> {
        let mut counts = BTreeMap::new();
        for option in &self.options {
            *counts.entry(option.expiry).or_insert(0) += 1;
        }
        counts
    }
}
