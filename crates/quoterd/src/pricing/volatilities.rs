//! The volatilities that are quoted by, and how they age.

use tickwire_market::{Date, Nanos};
use tickwire_options::edge::points;
use tickwire_options::surface::{Curve, Roll, Smile, Surface, SurfaceConfig, Wing};
use tickwire_options::time::DayCount;

use crate::chain::Chain;
use crate::config::QuoterSection;
use crate::pricer;
use tickwire_console::failure::Failure;
use tickwire_desk::vol::{self, VolFile};

/// When options expire: at the end of their last day, by the calendar.
pub struct Expiries;

impl pricer::Clock for Expiries {
    fn years(&self, expiry: Date, now: Nanos) -> [f64; 2] {
        let end = Nanos((u64::from(expiry.days()) + 1) * Nanos::DAY);
        [DayCount::Actual365.years(now, end); 2]
    }
}

/// How the volatilities age: as their file says, else by the calendar.
pub(super) struct Times {
    pub(super) file: Option<VolFile>,
}

impl Times {
    fn place(&self, expiry: Date) -> Option<(&VolFile, usize)> {
        let file = self.file.as_ref()?;
        let place = file.expiries().iter().position(|e| e.date == expiry)?;
        Some((file, place))
    }
}

impl pricer::Clock for Times {
    fn years(&self, expiry: Date, now: Nanos) -> [f64; 2] {
        match (self.place(expiry), &self.file) {
            (Some((file, place)), _) => file.years(place, now).unwrap_or([0.0; 2]),
            (None, Some(_)) => [0.0; 2],
            (None, None) => pricer::Clock::years(&Expiries, expiry, now),
        }
    }

    fn rate(&self, expiry: Date) -> Option<f64> {
        let (file, place) = self.place(expiry)?;
        file.expiries().get(place).map(|e| e.rate)
    }
}

/// The volatilities of a configuration, and which expiries they are of.
pub(super) fn volatilities(
    section: &QuoterSection,
    chain: &Chain,
    now: Nanos,
    half_tick: i64,
) -> Result<(Surface, Vec<Date>, Times), Failure> {
    if let Some(path) = &section.surface {
        let (file, surface) = vol::load(path)?;
        let dates = file.expiries().iter().map(|expiry| expiry.date).collect();
        return Ok((surface, dates, Times { file: Some(file) }));
    }
    let front = half_tick as f64 * points(chain.underlying_tick) / 2.0;
    let smiles: Vec<Date> = chain
        .expiries()
        .keys()
        .copied()
        .filter(|expiry| pricer::Clock::years(&Expiries, *expiry, now)[0] > 0.0)
        .collect();
    let surface = flat_surface(section, &smiles, now, front)?;
    Ok((surface, smiles, Times { file: None }))
}

/// One volatility for every option of these expiries, linked.
pub fn flat_surface(
    section: &QuoterSection,
    smiles: &[Date],
    now: Nanos,
    front: f64,
) -> Result<Surface, Failure> {
    let of = |expiry: &Date| {
        let [years, _] = pricer::Clock::years(&Expiries, *expiry, now);
        Smile::new(Curve::Wing(Wing::flat(section.volatility)), front, years)
            .map(|smile| (smile, Roll::Points(0.0), 1))
            .ok_or_else(|| {
                Failure::config(format!("no volatility of {expiry} can be {}", section.volatility))
            })
    };
    let all = smiles.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    Surface::new(SurfaceConfig::default(), front, all)
        .map_err(|e| Failure::config(format!("the volatilities: {e}")))
}
