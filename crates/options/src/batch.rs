//! An expiry at once: strips of options priced by vector instructions, 8 at a time.
//!
//! [`Strip::new`] and [`Strip::set_vols`] do what does not depend on the underlying; a tick is
//! [`Engine::price`] or [`Engine::greeks`], which allocate nothing. Options that the kernels are not made for
//! (see [`Strip::is_regular`]) are valued by [`crate::black76`] in the same call, so that the domain is the
//! same.

use crate::black76::{self, ln_ratio};
use crate::kernel::{Columns, Common, Prices, PricesAndGreeks, Worth};
use crate::normal::INV_SQRT_2PI;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512};
use crate::simd::{Kernel, Portable, Simd};
use crate::{Greeks, Invalid, Kind, Terms};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// Strips are padded to a multiple of this many options.
pub const LANES_MAX: usize = crate::simd::LANES;

/// s = σ√T that the kernels are made for: below, the difference of Mills' ratios loses digits; above, they
/// leave their range.
const S_MIN: f64 = 2e-3;
const S_MAX: f64 = 2.0;

/// One option of a strip.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Listed {
    /// Strike in points.
    pub strike: f64,
    /// Call or put.
    pub kind: Kind,
    /// Volatility per √year.
    pub vol: f64,
}

/// Which option of a strip has no value, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidAt {
    /// Place in the slice that was handed over.
    pub index: usize,
    /// Which of its terms.
    pub invalid: Invalid,
}

impl fmt::Display for InvalidAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "option {}: {}", self.index, self.invalid)
    }
}

impl core::error::Error for InvalidAt {}

/// The options of one expiry, in the caller's order, ready to be priced at any price of their underlying.
#[derive(Clone, Debug)]
pub struct Strip {
    /// Strike, kind, and the volatility it came with; the ones of now are in `vols`.
    listed: Vec<Listed>,
    vols: Vec<f64>,
    columns: Columns,
    /// ln(reference/K), which a change of volatility needs again.
    ln_ratio: Vec<f64>,
    /// Places of the options that the reference values.
    irregular: Vec<u32>,
    reference: f64,
    years: f64,
    rate: f64,
    sqrt_years: f64,
    growth: f64,
}

impl Strip {
    /// `reference` is a price of the underlying that prices will be near to, for precision: any will do. All
    /// are valued with the same time and rate.
    pub fn new(reference: f64, years: f64, rate: f64, listed: &[Listed]) -> Result<Strip, InvalidAt> {
        for (index, option) in listed.iter().enumerate() {
            let terms = terms(reference, years, rate, option);
            terms
                .check(true)
                .map_err(|invalid| InvalidAt { index, invalid })?;
        }
        let padded = listed.len().next_multiple_of(LANES_MAX);
        let mut strip = Strip {
            listed: listed.to_vec(),
            vols: listed.iter().map(|option| option.vol).collect(),
            columns: Columns {
                inv_s: vec![1.0; padded],
                h_ref: vec![0.0; padded],
                t: vec![0.0; padded],
                exponent: vec![0.0; padded],
                weight: vec![0.0; padded],
                strike: vec![0.0; padded],
                signed_df: vec![0.0; padded],
                decay: vec![0.0; padded],
            },
            ln_ratio: vec![0.0; padded],
            irregular: Vec::with_capacity(listed.len()),
            reference,
            years,
            rate,
            sqrt_years: libm::sqrt(years),
            growth: libm::exp(rate * years),
        };
        let df = libm::exp(-rate * years);
        for (i, option) in listed.iter().enumerate() {
            strip.ln_ratio[i] = ln_ratio(reference, option.strike);
            strip.columns.weight[i] = df * libm::sqrt(option.strike) * INV_SQRT_2PI;
            strip.columns.strike[i] = option.strike;
            strip.columns.signed_df[i] = option.kind.sign() * df;
        }
        strip.derive();
        Ok(strip)
    }

    /// Options in the strip.
    pub fn len(&self) -> usize {
        self.listed.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// The volatilities, in order.
    pub fn vols(&self) -> &[f64] {
        &self.vols
    }

    /// The terms of one option at a price of the underlying.
    pub fn terms(&self, index: usize, forward: f64) -> Option<Terms> {
        let option = self.listed.get(index)?;
        let vol = *self.vols.get(index)?;
        Some(terms(forward, self.years, self.rate, &Listed { vol, ..*option }))
    }

    /// Whether the kernels value an option; the reference does where not: `σ√T` below 0.002 (the last
    /// minutes) or above 2, no time left.
    pub fn is_regular(&self, index: usize) -> bool {
        !self.irregular.iter().any(|&at| at as usize == index)
    }

    /// New volatilities, one an option, in order; nothing is allocated. Refused as a whole if there are not
    /// as many as options ([`Invalid::Vol`] at the first that is missing or too many) or one of them is none.
    pub fn set_vols(&mut self, vols: &[f64]) -> Result<(), InvalidAt> {
        let refuse = |index| {
            Err(InvalidAt {
                index,
                invalid: Invalid::Vol,
            })
        };
        if vols.len() != self.listed.len() {
            return refuse(vols.len().min(self.listed.len()));
        }
        if let Some(index) = vols.iter().position(|vol| !vol.is_finite() || *vol < 0.0) {
            return refuse(index);
        }
        self.vols.copy_from_slice(vols);
        self.derive();
        Ok(())
    }

    /// The volatilities of now become those that [`Strip::shift_vols`] adds to.
    pub(crate) fn settle(&mut self) {
        for (option, vol) in self.listed.iter_mut().zip(&self.vols) {
            option.vol = *vol;
        }
    }

    /// The settled volatilities plus `by`, none below 0: a column of a scenario grid. Nothing is allocated.
    pub(crate) fn shift_vols(&mut self, by: f64) {
        for (vol, option) in self.vols.iter_mut().zip(&self.listed) {
            *vol = (option.vol + by).max(0.0);
        }
        self.derive();
    }

    /// What follows from the volatilities. Branches only where an option is irregular: the compiler makes
    /// vectors of the rest.
    fn derive(&mut self) {
        let half_per_year = if self.years > 0.0 { 0.5 / self.years } else { 0.0 };
        let c = &mut self.columns;
        for (((((vol, ln), inv_s), h_ref), t), (exponent, decay)) in self
            .vols
            .iter()
            .zip(&self.ln_ratio)
            .zip(&mut c.inv_s)
            .zip(&mut c.h_ref)
            .zip(&mut c.t)
            .zip(c.exponent.iter_mut().zip(&mut c.decay))
        {
            let s = vol * self.sqrt_years;
            // Of an irregular one the kernels make a number that is then replaced.
            let s = if (S_MIN..=S_MAX).contains(&s) { s } else { 1.0 };
            (*inv_s, *t) = (1.0 / s, 0.5 * s);
            *h_ref = ln * *inv_s;
            *exponent = -0.5 * core::f64::consts::LOG2_E * *t * *t;
            *decay = vol * half_per_year;
        }
        self.irregular.clear();
        for (i, vol) in self.vols.iter().enumerate() {
            let s = vol * self.sqrt_years;
            if !(S_MIN..=S_MAX).contains(&s) {
                self.irregular.push(i as u32);
            }
        }
    }

    pub(crate) fn common(&self, forward: f64) -> Common {
        Common {
            forward,
            shift: ln_ratio(forward, self.reference),
            sqrt_forward: libm::sqrt(forward),
            growth: self.growth,
            rate: self.rate,
            sqrt_years: self.sqrt_years,
        }
    }
}

fn terms(forward: f64, years: f64, rate: f64, option: &Listed) -> Terms {
    Terms {
        forward,
        strike: option.strike,
        years,
        vol: option.vol,
        rate,
        kind: option.kind,
    }
}

/// Prices and Greeks of a strip, an array each, padded; see [`Greeks`] for their units.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// Values in points.
    pub price: Vec<f64>,
    /// ∂V/∂F
    pub delta: Vec<f64>,
    /// ∂²V/∂F²
    pub gamma: Vec<f64>,
    /// ∂V/∂σ
    pub vega: Vec<f64>,
    /// Per year that passes.
    pub theta: Vec<f64>,
}

impl Values {
    /// Room for a strip of this many options.
    pub fn new(options: usize) -> Values {
        let zeros = || vec![0.0; options.next_multiple_of(LANES_MAX)];
        Values {
            price: zeros(),
            delta: zeros(),
            gamma: zeros(),
            vega: zeros(),
            theta: zeros(),
        }
    }

    fn put(&mut self, index: usize, g: &Greeks) {
        self.price[index] = g.price;
        self.delta[index] = g.delta;
        self.gamma[index] = g.gamma;
        self.vega[index] = g.vega;
        self.theta[index] = g.theta;
    }
}

/// Which instructions price.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// 8 options at a time, with AVX-512F.
    Avx512,
    /// 8 at a time in pairs of vectors of 4, with AVX2 and FMA; the same bits.
    Avx2,
    /// 8 at a time without naming an instruction and without fused multiplication: differs in the last
    /// digits.
    Portable,
}

impl Path {
    /// All of them, the fastest first.
    pub const ALL: [Path; 3] = [Path::Avx512, Path::Avx2, Path::Portable];
}

/// Loops over numbers without a vector instruction being named, for [`Engine::run_loops`].
pub trait Loops {
    /// Does the work. `#[inline(always)]` in implementations, or it is not compiled for the path.
    fn run(self);
}

struct Plainly<L>(L);

impl<L: Loops> Kernel for Plainly<L> {
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        self.0.run();
    }
}

/// Prices strips by one [`Path`].
#[derive(Clone, Copy)]
pub struct Engine(Tokens);

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({:?})", self.path())
    }
}

#[derive(Clone, Copy)]
enum Tokens {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    Portable,
}

impl Engine {
    /// The fastest that this processor has.
    pub fn detect() -> Engine {
        let all = Path::ALL.iter().find_map(|&path| Engine::with(path));
        all.unwrap_or(Engine(Tokens::Portable))
    }

    /// This path, if the processor has it.
    pub fn with(path: Path) -> Option<Engine> {
        match path {
            #[cfg(target_arch = "x86_64")]
            Path::Avx512 => Avx512::detect().map(Tokens::Avx512),
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => Avx2::detect().map(Tokens::Avx2),
            #[cfg(not(target_arch = "x86_64"))]
            Path::Avx512 | Path::Avx2 => None,
            Path::Portable => Some(Tokens::Portable),
        }
        .map(Engine)
    }

    /// The path taken.
    pub fn path(&self) -> Path {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Tokens::Avx512(_) => Path::Avx512,
            #[cfg(target_arch = "x86_64")]
            Tokens::Avx2(_) => Path::Avx2,
            Tokens::Portable => Path::Portable,
        }
    }

    /// Runs loops compiled for the path's instructions, of which the compiler makes wider vectors. The bits
    /// are the same on every path: it neither fuses nor reorders by itself.
    pub fn run_loops<L: Loops>(self, loops: L) {
        self.run(Plainly(loops));
    }

    fn run<K: Kernel>(self, kernel: K) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Tokens::Avx512(token) => token.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Tokens::Avx2(token) => token.run(kernel),
            Tokens::Portable => Portable.run(kernel),
        }
    }

    /// The values of the strip's options at this price of the underlying, to `price`, which has room for
    /// whole vectors (see [`Values::new`]). Refused if the forward is not a finite number above 0.
    ///
    /// Relative error below 1e-12 within 7 deviations and for `σ√T` >= 0.01; at worst 2e-16·|h|/(σ√T) more
    /// for less.
    pub fn price(&self, strip: &Strip, forward: f64, price: &mut [f64]) -> Result<(), Invalid> {
        check_forward(forward)?;
        let padded = strip.columns.t.len();
        assert!(
            price.len() >= padded,
            "{} places for {padded} values",
            price.len()
        );
        let kernel = Prices {
            columns: &strip.columns,
            common: strip.common(forward),
            price: &mut price[..padded],
        };
        self.run(kernel);
        for &index in &strip.irregular {
            let Some(terms) = strip.terms(index as usize, forward) else {
                continue;
            };
            price[index as usize] = black76::price(&terms)?;
        }
        Ok(())
    }

    /// The values and Greeks of the strip's options at this price of the underlying. Refused if the forward
    /// is not a finite number above 0; panics if `values` was made for fewer options.
    ///
    /// Relative error of delta, gamma and vega below 5e-14 within 7 deviations and for `σ√T` >= 0.01.
    pub fn greeks(&self, strip: &Strip, forward: f64, values: &mut Values) -> Result<(), Invalid> {
        check_forward(forward)?;
        let padded = strip.columns.t.len();
        let room = values.price.len();
        assert!(room >= padded, "{room} places for {padded} values");
        let kernel = PricesAndGreeks {
            columns: &strip.columns,
            common: strip.common(forward),
            price: &mut values.price[..padded],
            delta: &mut values.delta[..padded],
            gamma: &mut values.gamma[..padded],
            vega: &mut values.vega[..padded],
            theta: &mut values.theta[..padded],
        };
        self.run(kernel);
        for &index in &strip.irregular {
            let Some(terms) = strip.terms(index as usize, forward) else {
                continue;
            };
            values.put(index as usize, &black76::greeks(&terms)?);
        }
        Ok(())
    }
}

impl Engine {
    /// The values of the strip's options times quantities, summed; `quantity` is padded like
    /// [`Values::price`].
    pub(crate) fn worth(&self, strip: &Strip, common: Common, quantity: &[f64]) -> Result<f64, Invalid> {
        check_forward(common.forward)?;
        let mut sum = 0.0;
        if strip.irregular.is_empty() {
            let kernel = Worth {
                columns: &strip.columns,
                common,
                quantity: &quantity[..strip.columns.t.len()],
                sum: &mut sum,
            };
            self.run(kernel);
            return Ok(sum);
        }
        // A strip with options that the kernels are not made for is near its expiry or wild: the reference is
        // quick enough for it.
        for (index, quantity) in quantity
            .iter()
            .enumerate()
            .filter(|(_, quantity)| **quantity != 0.0)
        {
            if let Some(terms) = strip.terms(index, common.forward) {
                sum += quantity * black76::price(&terms)?;
            }
        }
        Ok(sum)
    }
}

fn check_forward(forward: f64) -> Result<(), Invalid> {
    if forward.is_finite() && forward > 0.0 {
        Ok(())
    } else {
        Err(Invalid::Forward)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::edge::{Rounding, ticks};
    use proptest::prelude::*;
    use std::println;

    fn engines() -> Vec<Engine> {
        Path::ALL.iter().filter_map(|&path| Engine::with(path)).collect()
    }

    /// 1024 options like those on an index future: 16 expiries of 64 strikes, calls above and puts below as
    /// well as in the money.
    fn universe() -> Vec<Strip> {
        let days = [
            1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 14.0, 21.0, 30.0, 45.0, 60.0, 91.0, 120.0, 182.0, 230.0, 270.0,
        ];
        days.iter()
            .map(|days| {
                let years = days / 365.0;
                let at = 0.14 + 0.03 * (days / 270.0f64).sqrt();
                let listed: Vec<Listed> = (0..64)
                    .map(|i| {
                        let x = (f64::from(i) - 38.0) / 10.0; // −3.8 to 2.5 deviations
                        let strike = (5000.0 * (x * at * years.sqrt()).exp() / 5.0).round() * 5.0;
                        let x = (strike / 5000.0f64).ln() / (at * years.sqrt());
                        Listed {
                            strike,
                            kind: if i % 3 == 0 { Kind::Put } else { Kind::Call },
                            vol: at * (1.0 - 0.12 * x + 0.03 * x * x).clamp(0.6, 2.5),
                        }
                    })
                    .collect();
                Strip::new(5000.0, years, 0.045, &listed).expect("the universe is valid")
            })
            .collect()
    }

    #[test]
    fn every_path_meets_the_reference_on_an_index_universe() {
        for engine in engines() {
            let mut worst = [0.0f64; 5];
            for strip in universe() {
                let mut values = Values::new(strip.len());
                let mut prices = values.price.clone();
                for tick in -8..=8 {
                    let forward = 5000.0 + 0.25 * f64::from(tick * 7);
                    engine.greeks(&strip, forward, &mut values).unwrap();
                    engine.price(&strip, forward, &mut prices).unwrap();
                    assert_eq!(prices, values.price);
                    for i in 0..strip.len() {
                        let want = black76::greeks(&strip.terms(i, forward).unwrap()).unwrap();
                        // Theta passes through zero; it is compared with the size of its parts.
                        let scale = 3.0 * want.vega * strip.columns.decay[i] + strip.rate * want.price;
                        let pairs = [
                            (values.price[i], want.price),
                            (values.delta[i], want.delta),
                            (values.gamma[i], want.gamma),
                            (values.vega[i], want.vega),
                            (values.theta[i] + scale, want.theta + scale),
                        ];
                        for (worst, (got, want)) in worst.iter_mut().zip(pairs) {
                            *worst = worst.max((got / want - 1.0).abs());
                        }
                    }
                }
            }
            println!(
                "{:?}: largest relative errors of price, delta, gamma, vega, theta: {worst:?}",
                engine.path()
            );
            assert!(worst[0] < 1e-12, "{:?} price {:e}", engine.path(), worst[0]);
            assert!(
                worst[1..].iter().all(|&w| w < 1e-13),
                "{:?} {worst:?}",
                engine.path()
            );
        }
    }

    /// Bids and offers as a quoter makes them of a value, on ticks of 0.05 and 0.25.
    fn quotes(value: f64) -> (Option<i32>, Option<i32>) {
        let tick = if value < 10.0 { 0.05 } else { 0.25 };
        let edge = 0.10 + 0.005 * value;
        (
            ticks(value - edge, tick, Rounding::Down),
            ticks(value + edge, tick, Rounding::Up),
        )
    }

    #[test]
    fn not_one_quote_rounds_differently_on_any_path() {
        let engines = engines();
        let mut quoted = 0;
        for strip in universe() {
            let mut values: Vec<Values> = engines.iter().map(|_| Values::new(strip.len())).collect();
            for tick in 0..64 {
                let forward = 4968.0 + f64::from(tick);
                for (engine, values) in engines.iter().zip(&mut values) {
                    engine.greeks(&strip, forward, values).unwrap();
                }
                for i in 0..strip.len() {
                    let want = black76::price(&strip.terms(i, forward).unwrap()).unwrap();
                    for (engine, values) in engines.iter().zip(&values) {
                        assert_eq!(
                            quotes(values.price[i]),
                            quotes(want),
                            "{:?} {forward} {i}",
                            engine.path()
                        );
                        quoted += 2;
                    }
                }
            }
        }
        println!("{quoted} quotes compared");
    }

    #[test]
    fn both_kinds_of_vector_give_the_same_bits() {
        let (Some(wide), Some(narrow)) = (Engine::with(Path::Avx512), Engine::with(Path::Avx2)) else {
            println!("this processor does not have both AVX-512 and AVX2: nothing to compare");
            return;
        };
        for strip in universe() {
            let (mut a, mut b) = (Values::new(strip.len()), Values::new(strip.len()));
            for forward in [4700.0, 4999.875, 5000.0, 5210.0] {
                wide.greeks(&strip, forward, &mut a).unwrap();
                narrow.greeks(&strip, forward, &mut b).unwrap();
                for (a, b) in [
                    (&a.price, &b.price),
                    (&a.delta, &b.delta),
                    (&a.gamma, &b.gamma),
                    (&a.vega, &b.vega),
                    (&a.theta, &b.theta),
                ] {
                    assert!(a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits()));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_strip_is_valued_over_the_whole_domain(
            terms in prop::collection::vec(black76::tests::anywhere(), 1..20),
            tick in -0.02f64..0.02,
        ) {
            let first = terms[0];
            let listed: Vec<Listed> = terms
                .iter()
                .map(|t| Listed { strike: t.strike * (first.forward / t.forward), kind: t.kind, vol: t.vol })
                .collect();
            let strip = Strip::new(first.forward, first.years, first.rate, &listed).unwrap();
            let forward = first.forward * (1.0 + tick);
            let mut values = Values::new(listed.len());
            for engine in engines() {
                engine.greeks(&strip, forward, &mut values).unwrap();
                for i in 0..strip.len() {
                    let terms = strip.terms(i, forward).unwrap();
                    let want = black76::greeks(&terms).unwrap();
                    let s = terms.deviation();
                    let h = (forward / terms.strike).ln().abs() / s;
                    // Beyond the ratio's range a value is below 1e-37 of the forward: only its size is right.
                    let floor = forward * 1e-36;
                    // ln(F/K) is good to 2e-16 of ln(reference/K) and of ln(F/reference): that times its
                    // weight in the value.
                    let noise = 1e-12 + 1e-15 * (h + 1.0) / s + 1e-15 * h * h;
                    let pairs = [(values.price[i], want.price), (values.delta[i], want.delta), (values.vega[i], want.vega)];
                    for (got, want) in pairs {
                        prop_assert!((got - want).abs() <= noise * want.abs() + floor, "{got} {want} {h} {s} {:?}", engine.path());
                    }
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_valued_is_refused_and_changes_nothing() {
        let option = Listed {
            strike: 5000.0,
            kind: Kind::Call,
            vol: 0.2,
        };
        let bad = Listed {
            strike: -1.0,
            ..option
        };
        let refused = Strip::new(5000.0, 0.1, 0.0, &[option, bad]).unwrap_err();
        assert_eq!(
            refused,
            InvalidAt {
                index: 1,
                invalid: Invalid::Strike
            }
        );
        let mut strip = Strip::new(5000.0, 0.1, 0.0, &[option; 3]).unwrap();
        assert_eq!(strip.set_vols(&[0.1; 2]).unwrap_err().index, 2);
        assert_eq!(strip.set_vols(&[0.1, 0.2, f64::NAN]).unwrap_err().index, 2);
        assert_eq!(strip.vols(), &[0.2; 3]);
        let mut values = Values::new(strip.len());
        for forward in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(
                Engine::detect().greeks(&strip, forward, &mut values),
                Err(Invalid::Forward)
            );
        }
        strip.set_vols(&[0.1, 0.2, 0.0]).unwrap();
        assert!(strip.is_regular(1) && !strip.is_regular(2));
        Engine::detect().greeks(&strip, 5010.0, &mut values).unwrap();
        assert_eq!((values.price[2], values.delta[2]), (10.0, 1.0));
        let none = Strip::new(5000.0, 0.1, 0.0, &[]).unwrap();
        assert!(none.is_empty() && Engine::detect().greeks(&none, 5000.0, &mut values).is_ok());
    }
}
