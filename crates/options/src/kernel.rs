//! The kernels: Black-76 over vectors of options of one expiry. One exponential, two rational functions, one
//! division for a price; the Greeks are made of the same pieces.
//!
//! With `h = ln(F/K)/s`, `t = s/2`, the option out of the money is worth `G·[M(|h| − t) − M(|h| + t)]` with
//! `G = df·√(FK)·φ(h)·exp(−t²/2)`. Mills' ratio is `P/Q` of degrees 8 and 9, relative error 8.4e-15 on [−1,
//! 13], 1.1e-14 as evaluated (Remez' exchange with 50 digits; beyond 13 a value is below 1e-37 of the forward
//! and right in size only; the error changes slowly, so that the difference of two keeps 1.2e-13), and both
//! share the division: `(P1·Q2 − P2·Q1)/(Q1·Q2)`. `2^f` on [−½, ½] is a polynomial of degree 10, relative
//! error 2.2e-16, 6.7e-16 as evaluated.

use crate::normal::INV_SQRT_2PI;
use crate::simd::{Kernel, LANES, Simd};

const P: [f64; 9] = [
    1.253_314_137_315_51,
    1.605_657_680_015_18,
    1.029_313_469_529_059,
    0.413_650_294_827_632_16,
    0.112_280_863_766_322_87,
    0.020_922_181_193_655_37,
    0.002_606_581_671_040_131,
    0.000_198_620_207_283_099_6,
    7.111_844_463_229_42e-06,
];
const Q: [f64; 10] = [
    1.0,
    2.079_014_033_621_545,
    1.980_086_524_683_107_9,
    1.136_380_154_369_644_8,
    0.434_181_818_743_275_9,
    0.114_872_750_142_817_92,
    0.021_120_826_847_316_23,
    0.002_613_692_548_113_583_5,
    0.000_198_620_230_250_276_06,
    7.111_844_208_553_016e-06,
];
const EXP2: [f64; 11] = [
    1.0,
    0.693_147_180_559_949_8,
    0.240_226_506_959_087_68,
    0.055_504_108_664_458_84,
    0.009_618_129_108_034_62,
    0.001_333_355_822_856_080_4,
    0.000_154_035_299_610_922_9,
    0.000_015_252_658_116_891_648,
    1.321_566_285_469_21e-6,
    1.020_853_785_087_644_6e-7,
    7.037_275_524_948_65e-9,
];

/// The normal density and distribution function by the kernel's ratio: absolute errors below 1e-15, for sums
/// on the slow path in which tails are nothing.
pub(crate) fn density_and_cdf(x: f64) -> (f64, f64) {
    let horner = |coefficients: &[f64], x: f64| coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c);
    let distance = x.abs();
    // NaN stays NaN.
    if distance > 13.0 {
        return (0.0, if x > 0.0 { 1.0 } else { 0.0 });
    }
    let density = INV_SQRT_2PI * libm::exp(-0.5 * x * x);
    let tail = density * horner(&P, distance) / horner(&Q, distance);
    (density, if x > 0.0 { 1.0 - tail } else { tail })
}

/// What a strip of options keeps for the kernels, a number an option, padded to whole vectors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    /// 1/s
    pub(crate) inv_s: alloc::vec::Vec<f64>,
    /// ln(reference/K)/s
    pub(crate) h_ref: alloc::vec::Vec<f64>,
    /// s/2
    pub(crate) t: alloc::vec::Vec<f64>,
    /// −t²/(2·ln 2)
    pub(crate) exponent: alloc::vec::Vec<f64>,
    /// df·√K/√(2π)
    pub(crate) weight: alloc::vec::Vec<f64>,
    pub(crate) strike: alloc::vec::Vec<f64>,
    /// df of a call, −df of a put
    pub(crate) signed_df: alloc::vec::Vec<f64>,
    /// σ/(2T)
    pub(crate) decay: alloc::vec::Vec<f64>,
}

/// The columns in whole vectors, all of one length, so that nothing is asked in a loop.
struct Cut<'a> {
    inv_s: &'a [[f64; LANES]],
    h_ref: &'a [[f64; LANES]],
    t: &'a [[f64; LANES]],
    exponent: &'a [[f64; LANES]],
    weight: &'a [[f64; LANES]],
    strike: &'a [[f64; LANES]],
    signed_df: &'a [[f64; LANES]],
    decay: &'a [[f64; LANES]],
}

impl Columns {
    #[inline(always)]
    fn cut(&self, vectors: usize) -> Cut<'_> {
        Cut {
            inv_s: &whole(&self.inv_s)[..vectors],
            h_ref: &whole(&self.h_ref)[..vectors],
            t: &whole(&self.t)[..vectors],
            exponent: &whole(&self.exponent)[..vectors],
            weight: &whole(&self.weight)[..vectors],
            strike: &whole(&self.strike)[..vectors],
            signed_df: &whole(&self.signed_df)[..vectors],
            decay: &whole(&self.decay)[..vectors],
        }
    }
}

/// A padded column in vectors.
#[inline(always)]
fn whole(column: &[f64]) -> &[[f64; LANES]] {
    column.as_chunks().0
}

/// What all options of the strip share at one price of the underlying.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    pub(crate) forward: f64,
    /// ln(F/reference)
    pub(crate) shift: f64,
    pub(crate) sqrt_forward: f64,
    /// 1/df
    pub(crate) growth: f64,
    pub(crate) rate: f64,
    pub(crate) sqrt_years: f64,
}

impl Common {
    /// Where the underlying has moved by a factor, whose logarithm and root are known.
    pub(crate) fn moved(&self, factor: f64, ln: f64, root: f64) -> Common {
        Common {
            forward: self.forward * factor,
            shift: self.shift + ln,
            sqrt_forward: self.sqrt_forward * root,
            ..*self
        }
    }
}

/// Prices only.
pub(crate) struct Prices<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) common: Common,
    pub(crate) price: &'a mut [f64],
}

/// Prices and four Greeks.
pub(crate) struct PricesAndGreeks<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) common: Common,
    pub(crate) price: &'a mut [f64],
    pub(crate) delta: &'a mut [f64],
    pub(crate) gamma: &'a mut [f64],
    pub(crate) vega: &'a mut [f64],
    pub(crate) theta: &'a mut [f64],
}

/// The sum of prices times quantities.
pub(crate) struct Worth<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) common: Common,
    pub(crate) quantity: &'a [f64],
    pub(crate) sum: &'a mut f64,
}

/// The constants in vectors: the coefficients of the exponential times √F.
struct Splats<S: Simd> {
    p: [S::V; 9],
    q: [S::V; 10],
    exp2: [S::V; 11],
    shift: S::V,
    forward: S::V,
    zero: S::V,
    least: S::V,
    log: S::V,
}

/// What a price is made of.
struct Parts<S: Simd> {
    /// F − K
    distance: S::V,
    /// G
    g: S::V,
    /// G/(Q1·Q2)
    w: S::V,
    /// P1·Q2
    near: S::V,
    /// P2·Q1
    far: S::V,
    /// Discounted value of exercise, not below 0.
    certain: S::V,
    signed_df: S::V,
}

impl<S: Simd> Splats<S> {
    #[inline(always)]
    fn new(s: S, common: &Common) -> Splats<S> {
        let splat = |c: f64| s.splat(c);
        let scaled = |c: f64| s.splat(c * common.sqrt_forward);
        Splats {
            p: P.map(splat),
            q: Q.map(splat),
            exp2: EXP2.map(scaled),
            shift: s.splat(common.shift),
            forward: s.splat(common.forward),
            zero: s.splat(0.0),
            least: s.splat(-1000.0),
            log: s.splat(-0.5 * core::f64::consts::LOG2_E),
        }
    }

    /// 2^f by √F, the even and the odd powers abreast: one chain would be the longest of all.
    #[inline(always)]
    fn exp2(&self, s: S, f: S::V) -> S::V {
        let c = &self.exp2;
        let square = s.mul(f, f);
        let [mut even, mut odd] = [s.mul_add(c[10], square, c[8]), s.mul_add(c[9], square, c[7])];
        for i in [5, 3, 1] {
            even = s.step(s.mul_add(even, square, c[i + 1]));
            odd = s.step(s.mul_add(odd, square, c[i]));
        }
        s.mul_add(odd, f, s.mul_add(even, square, c[0]))
    }

    /// Numerator and denominator of Mills' ratio at two places: four chains abreast.
    #[inline(always)]
    fn mills(&self, s: S, x1: S::V, x2: S::V) -> [S::V; 4] {
        let (p, q) = (&self.p, &self.q);
        let [mut p1, mut p2] = [p[8]; 2];
        let [mut q1, mut q2] = [x1, x2].map(|x| s.mul_add(q[9], x, q[8]));
        for i in (0..8).rev() {
            p1 = s.step(s.mul_add(p1, x1, p[i]));
            q1 = s.step(s.mul_add(q1, x1, q[i]));
            p2 = s.step(s.mul_add(p2, x2, p[i]));
            q2 = s.step(s.mul_add(q2, x2, q[i]));
        }
        [p1, q1, p2, q2]
    }

    /// The vector of options at this place.
    #[inline(always)]
    fn parts(&self, s: S, columns: &Cut<'_>, at: usize) -> Parts<S> {
        let h = s.mul_add(self.shift, s.load(&columns.inv_s[at]), s.load(&columns.h_ref[at]));
        // 2^y = exp(−(h² + t²)/2), begun first: it takes the longest.
        let y = s.mul_add(s.mul(h, h), self.log, s.load(&columns.exponent[at]));
        let y = s.max(y, self.least);
        let n = s.round(y);
        let e = s.scale(self.exp2(s, s.sub(y, n)), n);
        let (x, t) = (s.abs(h), s.load(&columns.t[at]));
        let [p1, q1, p2, q2] = self.mills(s, s.sub(x, t), s.add(x, t));
        let g = s.mul(e, s.load(&columns.weight[at]));
        let signed_df = s.load(&columns.signed_df[at]);
        let distance = s.sub(self.forward, s.load(&columns.strike[at]));
        Parts {
            distance,
            g,
            w: s.div(g, s.mul(q1, q2)),
            near: s.mul(p1, q2),
            far: s.mul(p2, q1),
            certain: s.max(s.mul(distance, signed_df), self.zero),
            signed_df,
        }
    }
}

impl<S: Simd> Parts<S> {
    #[inline(always)]
    fn price(&self, s: S) -> S::V {
        s.mul_add(self.w, s.sub(self.near, self.far), self.certain)
    }
}

impl Kernel for Prices<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let splats = Splats::new(s, &self.common);
        let (price, _) = self.price.as_chunks_mut();
        let columns = self.columns.cut(price.len());
        for (at, price) in price.iter_mut().enumerate() {
            let parts = splats.parts(s, &columns, at);
            s.store(parts.price(s), price);
        }
    }
}

impl Kernel for Worth<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let splats = Splats::new(s, &self.common);
        let quantity = whole(self.quantity);
        let columns = self.columns.cut(quantity.len());
        let mut sum = s.splat(0.0);
        for (at, quantity) in quantity.iter().enumerate() {
            let parts = splats.parts(s, &columns, at);
            sum = s.mul_add(parts.price(s), s.load(quantity), sum);
        }
        let mut lanes = [0.0; LANES];
        s.store(sum, &mut lanes);
        *self.sum = lanes.iter().sum();
    }
}

impl Kernel for PricesAndGreeks<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let common = &self.common;
        let splats = Splats::new(s, common);
        let growth_per_forward = s.splat(common.growth / common.forward);
        // Not so small that the product is subnormal: processors stumble over those.
        let tiny = s.splat(1e-290);
        let per_square = s.splat(1.0 / (common.forward * common.forward));
        let (rate, sqrt_years) = (s.splat(common.rate), s.splat(common.sqrt_years));
        let (price, _) = self.price.as_chunks_mut::<LANES>();
        let count = price.len();
        let columns = self.columns.cut(count);
        let [delta, gamma, vega, theta] = [self.delta, self.gamma, self.vega, self.theta]
            .map(|column| &mut column.as_chunks_mut::<LANES>().0[..count]);
        for at in 0..count {
            let parts = splats.parts(s, &columns, at);
            let worth = parts.price(s);
            // N(−|d1|) of the option out of the money: F·φ(d1) = G/df, and |d1| is |h| − t of a call, |h| + t
            // of a put. Of F = K both are out of the money.
            let is_near = s.less(parts.distance, s.mul(parts.signed_df, tiny));
            let ratio = s.select(is_near, parts.near, parts.far);
            let tail = s.mul(s.mul(parts.w, ratio), s.mul(parts.signed_df, growth_per_forward));
            // Out of the money: ±df·N(..); in the money ±df·(1 − N(..)), the option of the other kind having
            // the tail.
            let is_in = s.less(splats.zero, parts.certain);
            let slope = s.select(is_in, s.sub(parts.signed_df, tail), tail);
            let density = s.mul(parts.g, per_square);
            let per_vol = s.mul(parts.g, sqrt_years);
            let decayed = s.mul(per_vol, s.load(&columns.decay[at]));
            s.store(worth, &mut price[at]);
            s.store(slope, &mut delta[at]);
            s.store(s.mul(density, s.load(&columns.inv_s[at])), &mut gamma[at]);
            s.store(per_vol, &mut vega[at]);
            s.store(s.sub(s.mul(rate, worth), decayed), &mut theta[at]);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::normal::{SQRT_2PI, exp_half_square, mills};
    use std::println;

    fn horner(coefficients: &[f64], x: f64) -> f64 {
        coefficients
            .iter()
            .rev()
            .fold(0.0, |sum, c| f64::mul_add(sum, x, *c))
    }

    #[test]
    fn the_pieces_have_the_errors_that_are_stated() {
        let (mut ratio, mut exponential) = (0.0f64, 0.0f64);
        for i in 0..=14_000 {
            let x = f64::from(i) / 1000.0 - 1.0;
            // M(−x) = √(2π)·exp(x²/2) − M(x)
            let want = if x < 0.0 {
                SQRT_2PI / exp_half_square(x) - mills(-x)
            } else {
                mills(x)
            };
            ratio = ratio.max((horner(&P, x) / horner(&Q, x) / want - 1.0).abs());
            let f = f64::from(i) / 14_000.0 - 0.5;
            let powers =
                |from: usize| -> std::vec::Vec<f64> { EXP2[from..].iter().step_by(2).copied().collect() };
            let by_halves = f64::mul_add(horner(&powers(1), f * f), f, horner(&powers(0), f * f));
            exponential = exponential.max((by_halves / libm::exp2(f) - 1.0).abs());
        }
        println!("largest relative errors: Mills' ratio {ratio:.1e}, exponential {exponential:.1e}");
        // The approximations' own 8.4e-15 and 2.2e-16, and what rounding adds (most below 0, where terms
        // alternate).
        assert!(
            ratio < 1.1e-14 && exponential < 8e-16,
            "{ratio:e} {exponential:e}"
        );
    }
}
