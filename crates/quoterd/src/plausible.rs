//! Whether volatilities can be quoted by at all: compared with what the market of the options implies, before
//! the first quote leaves, and when a file is read again. A file with 4.82 for 14.82 would sell everything at
//! once.

use tickwire_market::{Date, Nanos, Price};
use tickwire_options::edge::points;
use tickwire_options::surface::Surface;
use tickwire_options::{Kind, Terms, implied, time};

use super::chain::Listed;
use super::config::MarketSection;
use super::pricer::Clock;

/// Options of an expiry, nearest to its forward, whose markets are looked at.
const NEAREST: usize = 7;

/// Where volatilities are compared: with which rate, and when.
pub(crate) struct Sight<'s> {
    pub clock: &'s dyn Clock,
    pub rate: f64,
    pub now: Nanos,
    /// Options, and the best bid and offer of each; none of those whose market is not known.
    pub options: &'s [Listed],
    pub markets: &'s [[Option<Price>; 2]],
}

/// What an expiry's volatility at the money is by our surface, and by how much it is off what its market
/// implies: above 0 ours is higher. `None`: no market implies any.
struct Compared {
    date: Date,
    atm: f64,
    off: Option<f64>,
}

/// Why volatilities are not plausible, and what they were compared with; `smiles` are the dates of the
/// surface's expiries, in order.
///
/// # Errors
/// Every expiry that is too far off.
pub(crate) fn check(
    section: &MarketSection,
    surface: &Surface,
    smiles: &[Date],
    sight: &Sight<'_>,
) -> Result<(), String> {
    if !section.check {
        return Ok(());
    }
    let mut wrong = Vec::new();
    for (place, date) in smiles.iter().enumerate() {
        let Some(Compared { date, atm, off }) = compare(surface, (place, *date), sight) else {
            continue;
        };
        let percent = |vol: f64| format!("{:.2} %", 100.0 * vol);
        match off {
            Some(off) if off.abs() > section.vol_distance_max => wrong.push(format!(
                "{date} has {} at the money where its options trade at about {}: {:.2} points off, {:.2} may be (quoter.market.vol_distance_max)",
                percent(atm),
                percent((atm - off).max(0.0)),
                100.0 * off.abs(),
                100.0 * section.vol_distance_max
            )),
            None if !(section.vol_min..=section.vol_max).contains(&atm) => wrong.push(format!(
                "{date} has {} at the money, there is no market to compare it with, and plausible are {} to {} (quoter.market.vol_min, vol_max)",
                percent(atm),
                percent(section.vol_min),
                percent(section.vol_max)
            )),
            _ => {}
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "the volatilities are not plausible: {}",
            wrong.join("; ")
        )),
    }
}

fn compare(surface: &Surface, (place, date): (usize, Date), sight: &Sight<'_>) -> Option<Compared> {
    let (smile, forward) = (surface.smile(place)?, surface.forward(place)?);
    let [years, calendar] = sight.clock.years(date, sight.now);
    if !(years > 0.0 && calendar > 0.0) {
        return None;
    }
    let rate = time::rate_per(sight.clock.rate(date).unwrap_or(sight.rate), calendar, years);
    // By options out of the money, whose prices are all time value.
    let is_out = |option: &Listed| (option.kind == Kind::Call) == (option.strike_points() >= forward);
    let with_market = sight.options.iter().zip(sight.markets);
    let mut near: Vec<_> = with_market
        .filter(|(option, market)| {
            option.expiry == date && is_out(option) && market.iter().all(Option::is_some)
        })
        .collect();
    near.sort_by(|(a, _), (b, _)| {
        let distance = |option: &Listed| (option.strike_points() - forward).abs();
        distance(a).total_cmp(&distance(b))
    });
    let off_of = |(option, market): &(&Listed, &[Option<Price>; 2])| {
        let vol = smile.vol(option.strike_points(), forward);
        let terms = Terms {
            forward,
            strike: option.strike_points(),
            years,
            vol,
            rate,
            kind: option.kind,
        };
        // A price below what it is worth without volatility implies none: 0 is as near as it gets.
        let implied = |price: Option<Price>| implied::black76(&terms, points(price?)).ok();
        let (low, high) = (implied(market[0]).unwrap_or(0.0), implied(market[1])?);
        // Between the two, it is what the market says.
        Some(match () {
            () if vol > high => vol - high,
            () if vol < low => vol - low,
            () => 0.0,
        })
    };
    let mut offs: Vec<f64> = near.iter().take(NEAREST).filter_map(off_of).collect();
    offs.sort_by(f64::total_cmp);
    Some(Compared {
        date,
        atm: smile.atm(forward),
        // The median: one wrong market does not decide.
        off: offs.get(offs.len() / 2).copied(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_market::{InstrumentId, Symbol};
    use tickwire_options::edge::{Rounding, price};
    use tickwire_options::surface::{Curve, Roll, Smile, SurfaceConfig, Wing};

    const FORWARD: f64 = 690_000.0;
    const YEARS: f64 = 0.08;
    const DATE: Date = Date {
        year: 2027,
        month: 3,
        day: 19,
    };

    struct Years;

    impl Clock for Years {
        fn years(&self, _: Date, _: Nanos) -> [f64; 2] {
            [YEARS; 2]
        }
    }

    fn surface(vol: f64) -> Surface {
        let smile = Smile::new(Curve::Wing(Wing::flat(vol)), FORWARD, YEARS).unwrap();
        Surface::new(
            SurfaceConfig::default(),
            FORWARD,
            vec![(smile, Roll::Points(0.0), 0)],
        )
        .unwrap()
    }

    fn options() -> Vec<Listed> {
        let option = |n: i64| Listed {
            id: InstrumentId(n as u32 + 1),
            symbol: Symbol::new(format!("O{n}").as_bytes()).unwrap(),
            expiry: DATE,
            strike: Price::from_raw((660_000 + n / 2 * 10_000) * Price::ONE_RAW),
            kind: if n % 2 == 0 { Kind::Call } else { Kind::Put },
            multiplier: 50,
        };
        (0..14).map(option).collect()
    }

    /// What the options are worth by a volatility, 50 points to either side.
    fn markets(vol: f64, options: &[Listed]) -> Vec<[Option<Price>; 2]> {
        let market = |option: &Listed| {
            let terms = Terms {
                forward: FORWARD,
                strike: option.strike_points(),
                years: YEARS,
                vol,
                rate: 0.04,
                kind: option.kind,
            };
            let value = tickwire_options::black76::price(&terms).unwrap();
            [-50.0, 50.0].map(|by| {
                price(
                    (value + by).max(5.0),
                    Price::from_raw(5 * Price::ONE_RAW),
                    Rounding::Nearest,
                )
            })
        };
        options.iter().map(market).collect()
    }

    #[test]
    fn volatilities_far_from_those_of_the_market_are_not_plausible_and_without_one_there_are_bounds() {
        let section = MarketSection::default();
        let options = options();
        let none = vec![[None; 2]; options.len()];
        let at = |vol: f64, markets: &[[Option<Price>; 2]]| {
            let sight = Sight {
                clock: &Years,
                rate: 0.04,
                now: Nanos::ZERO,
                options: &options,
                markets,
            };
            check(&section, &surface(vol), &[DATE], &sight)
        };
        let market = markets(0.1482, &options);
        for good in [0.1482, 0.13, 0.17] {
            assert_eq!(at(good, &market), Ok(()), "{good}");
        }
        // A digit is missing, and one is too many.
        let low = at(0.0482, &market).unwrap_err();
        assert!(
            low.contains("2027-03-19 has 4.82 % at the money where its options trade at about 14.")
                && low.contains("3.00 may be"),
            "{low}"
        );
        assert!(at(0.282, &market).unwrap_err().contains("28.20 %"));
        // One market of many that is wrong does not decide.
        let mut odd = market.clone();
        odd[6] = markets(0.9, &options)[6];
        assert_eq!(at(0.1482, &odd), Ok(()));
        // Without a market the bounds hold.
        assert_eq!((at(0.0482, &none), at(1.9, &none)), (Ok(()), Ok(())));
        assert!(
            at(4.82, &none)
                .unwrap_err()
                .contains("482.00 % at the money, there is no market")
        );
        assert!(
            at(0.01, &none)
                .unwrap_err()
                .contains("plausible are 3.00 % to 200.00 %")
        );
        // Turned off with everything else.
        let off = MarketSection {
            check: false,
            ..section
        };
        let sight = Sight {
            clock: &Years,
            rate: 0.04,
            now: Nanos::ZERO,
            options: &options,
            markets: &market,
        };
        assert_eq!(check(&off, &surface(4.82), &[DATE], &sight), Ok(()));
    }
}
