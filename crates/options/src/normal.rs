//! The normal distribution's tails without cancellation: Mills' ratio, its decay, the distribution function
//! and its inverse.
//!
//! Mills' ratio is `M(x) = N(−x) / φ(x)`, the scaled complementary error function `√(π/2)·erfcx(x/√2)`.
//! Everything else is made of it: a far tail is a density times a ratio of ordinary size, and never one minus
//! something.
//!
//! `M(x)·(1+x)` and `(1 − x·M(x))·(1+x)²` are series of Chebyshev in `z = (x − 5.25)/(x + 5.25)`, one each
//! for all x >= 0 (the change of variable is that of Shepherd and Laframboise, Math. Comp. 36, 1981, for
//! erfcx). The coefficients were computed with 60 digits; the first one left out is below 1e-19. The tests
//! compare with tables of 50 digits.

/// √(2π).
pub(crate) const SQRT_2PI: f64 = 2.506_628_274_631_000_5;
/// 1/√(2π).
pub(crate) const INV_SQRT_2PI: f64 = 0.398_942_280_401_432_7;

/// The middle of the change of variable.
const MIDDLE: f64 = 5.25;

/// Clenshaw's sum of a series of Chebyshev.
fn clenshaw(coefficients: &[f64], z: f64) -> f64 {
    let (mut a, mut b) = (0.0, 0.0);
    for c in coefficients[1..].iter().rev() {
        (a, b) = (2.0 * z * a - b + c, a);
    }
    z * a - b + coefficients[0]
}

/// Mills' ratio `N(−x)/φ(x)` for x >= 0, relative error below 6e-16; 0 at infinity. NaN below 0.
pub(crate) fn mills(x: f64) -> f64 {
    if x > 1e16 {
        return 1.0 / x;
    }
    if x >= 0.0 {
        clenshaw(&MILLS, (x - MIDDLE) / (x + MIDDLE)) / (1.0 + x)
    } else {
        f64::NAN
    }
}

/// `1 − x·M(x)` for x >= 0, relative error below 1e-15: minus the derivative of [`mills`], and the time value
/// of an option in Bachelier's model in units of its deviation and density.
pub(crate) fn decay(x: f64) -> f64 {
    if x > 1e8 {
        return 1.0 / (x * x);
    }
    let one_x = 1.0 + x;
    if x >= 0.0 {
        clenshaw(&DECAY, (x - MIDDLE) / (x + MIDDLE)) / (one_x * one_x)
    } else {
        f64::NAN
    }
}

/// `exp(−x²/2)` with a relative error of a few units in the last place however large `x`: the square is exact
/// in two parts.
pub(crate) fn exp_half_square(x: f64) -> f64 {
    if x.abs() > 39.0 {
        return 0.0;
    }
    let coarse = libm::trunc(x * 16.0) / 16.0; // 9 bits: its square is exact
    let rest = (x - coarse) * (x + coarse);
    libm::exp(-0.5 * coarse * coarse) * libm::exp(-0.5 * rest)
}

/// The normal density.
pub(crate) fn density(x: f64) -> f64 {
    INV_SQRT_2PI * exp_half_square(x)
}

/// The normal distribution function, relative error below 2e-15 down to its smallest normal value (x =
/// −37.5).
pub(crate) fn cdf(x: f64) -> f64 {
    if x <= 0.0 {
        density(x) * mills(-x)
    } else {
        1.0 - density(x) * mills(x)
    }
}

/// `M(x − t) − M(x + t)` for 0 <= t <= x, or `t` small; relative error a few units of 1e-15 times
/// `max(1, x)`.
///
/// The difference is `2·∫ sinh(ut)·exp(−xu − u²/2) du = 2·Σ Y_k·t^k/k!` over odd k, with `Y_k = (−1)^k` times
/// the k-th derivative of M; for small t the sum of positive terms is taken, for large t the difference
/// itself.
pub(crate) fn mills_difference(x: f64, t: f64) -> f64 {
    if !uses_series(x, t) {
        return mills(x - t) - mills(x + t);
    }
    // Y_{k+1} = k·Y_{k−1} − x·Y_k; what cancels in it is small beside the first term as long as x·t < 1.
    let (mut before, mut y) = (mills(x), decay(x));
    let (mut sum, mut power) = (y * t, t);
    let mut k = 1.0;
    while k < 18.0 {
        (before, y) = (y, k * before - x * y); // Y_{k+1}
        (before, y) = (y, (k + 1.0) * before - x * y); // Y_{k+2}
        power *= t * t / ((k + 1.0) * (k + 2.0));
        let term = y * power;
        if term <= sum * 1e-17 {
            break;
        }
        sum += term;
        k += 2.0;
    }
    2.0 * sum
}

/// Whether [`mills_difference`] sums its series.
pub(crate) fn uses_series(x: f64, t: f64) -> bool {
    t < 0.25 && x * t < 1.0
}

/// The inverse of the distribution function for 0 < p < 1, relative error below 1e-14: Wichura's AS 241
/// (Applied Statistics 37, 1988) would be a table more; this starts from a bound of the tail and takes
/// Halley's steps. Infinite at 0 and 1.
pub(crate) fn inverse_cdf(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    if p > 0.5 {
        return -inverse_cdf(1.0 - p);
    }
    // Abramowitz and Stegun 26.2.23, absolute error below 4.5e-4.
    let u = libm::sqrt(-2.0 * libm::log(p));
    let mut x = -(u
        - (2.515517 + u * (0.802853 + u * 0.010328))
            / (1.0 + u * (1.432788 + u * (0.189269 + u * 0.001308))));
    for _ in 0..3 {
        // Relative to the density: works in the far tail too. f = (N(x) − p)/φ(x), f'' / f' = −x.
        let f = if x <= 0.0 {
            mills(-x)
        } else {
            SQRT_2PI / exp_half_square(x) - mills(x)
        } - p / density(x);
        x -= f / (1.0 + 0.5 * f * x);
    }
    x
}

/// Chebyshev coefficients of `M(x)·(1+x)`.
const MILLS: [f64; 27] = [
    1.156_003_334_332_378_1,
    -0.163_640_737_218_432_75,
    -0.010_570_055_383_480_31,
    0.030_307_748_373_461_39,
    -0.016_975_201_863_734_118,
    0.006_311_145_378_504_925,
    -0.001_751_065_873_593_920_7,
    0.000_362_258_888_707_738_16,
    -5.061_205_170_845_185_4e-05,
    2.679_166_195_905_145e-06,
    6.645_494_690_975_518e-07,
    -1.670_699_640_503_616e-07,
    5.477_081_391_544_751e-09,
    3.891_942_962_234_417e-09,
    -5.501_291_283_077_452e-10,
    -6.908_223_256_023_277e-11,
    2.223_596_825_338_468_7e-11,
    9.193_670_240_900_73e-13,
    -7.964_205_974_128_245e-13,
    -3.056_024_645_417_126e-15,
    2.892_965_979_723_784e-14,
    -3.438_429_827_535_342e-16,
    -1.111_121_517_718_876e-15,
    1.030_057_942_235_156e-17,
    4.525_668_353_040_165_3e-17,
    4.830_813_729_474_869e-19,
    -1.916_978_067_797_581_5e-18,
];

/// Chebyshev coefficients of `(1 − x·M(x))·(1+x)²`.
const DECAY: [f64; 30] = [
    1.177_436_935_467_832_2,
    -0.104_824_383_013_626_84,
    -0.143_769_931_492_394_67,
    0.100_106_796_503_068_43,
    -0.035_043_720_293_646_73,
    0.005_834_881_102_309_141,
    0.000_994_573_354_206_244,
    -0.001_038_883_315_971_185_8,
    0.000_374_634_360_208_155_6,
    -7.925_128_934_856_967e-05,
    7.885_648_898_210_469e-06,
    8.111_499_535_282_139e-07,
    -3.858_622_508_227_805e-07,
    3.080_422_940_718_801e-08,
    8.951_200_632_152_14e-09,
    -2.021_516_051_019_850_7e-09,
    -1.340_531_414_097_085_2e-10,
    8.402_468_784_458_269e-11,
    -1.159_176_529_191_191_5e-13,
    -3.246_615_180_800_732_3e-12,
    1.225_881_756_865_899_4e-13,
    1.293_348_094_656_895_6e-13,
    -6.974_918_736_231_869e-15,
    -5.503_390_694_651_839e-15,
    2.757_347_338_810_270_7e-16,
    2.500_000_557_456_846e-16,
    -6.798_604_029_863_536e-18,
    -1.185_201_573_441_897_2e-17,
    -1.444_339_583_721_268_9e-19,
    5.660_727_323_507_043e-19,
];

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::println;

    /// x, M(x), 1 − x·M(x): mpmath with 50 digits.
    #[rustfmt::skip]
    #[allow(clippy::excessive_precision)]
    const TABLE: &[(f64, f64, f64)] = &[
        (0.0, 1.25331413731550025, 1.0),
        (0.001, 1.25231476363939217, 0.998747685236360608),
        (0.25, 1.03782457585372681, 0.740543856036568297),
        (0.7, 0.774893848779390647, 0.457574305854426581),
        (1.0, 0.655679542418798472, 0.344320457581201528),
        (2.5, 0.354265111329793667, 0.114337221675515833),
        (5.0, 0.192808104715315765, 0.0359594764234211756),
        (7.75, 0.126983237485436961, 0.0158799094878635554),
        (12.5, 0.0794975291611172123, 0.00628088548603484609),
        (25.0, 0.0399363047695355925, 0.00159238076161018678),
        (37.0, 0.0270073279651283361, 0.000728865290251565655),
        (100.0, 0.00999900029985010491, 0.0000999700149895094396),
        (1e6, 9.99999999999e-7, 9.99999999997e-13),
    ];

    #[test]
    fn mills_ratio_and_its_decay_are_those_of_the_table() {
        let mut worst = (0.0f64, 0.0f64);
        for &(x, m, y) in TABLE {
            worst = (
                worst.0.max((mills(x) / m - 1.0).abs()),
                worst.1.max((decay(x) / y - 1.0).abs()),
            );
        }
        println!(
            "largest relative errors: mills {:.1e}, decay {:.1e}",
            worst.0, worst.1
        );
        assert!(worst.0 < 6e-16 && worst.1 < 1e-15, "{worst:?}");
        assert!(mills(-1e-300).is_nan() && mills(f64::NAN).is_nan() && mills(f64::INFINITY) == 0.0);
        assert!(decay(-1e-300).is_nan() && decay(f64::NAN).is_nan() && decay(f64::INFINITY) == 0.0);
    }

    #[test]
    fn series_and_difference_agree_where_one_takes_over_from_the_other() {
        for i in 0..400 {
            let x = f64::from(i) / 20.0;
            let t = (1.0 / x).min(0.25) * (1.0 - 1e-12);
            assert!(uses_series(x, t));
            if x >= t {
                let (series, plain) = (mills_difference(x, t), mills(x - t) - mills(x + t));
                let noise = 1e-15 * mills(x) / series;
                assert!(
                    (series / plain - 1.0).abs() < 4e-15 + 2.0 * noise,
                    "{x}: {series:e} {plain:e}"
                );
            }
        }
    }

    #[test]
    fn the_inverse_is_the_inverse_in_the_far_tail_too() {
        for i in 1..1000 {
            let x = f64::from(i) * -0.037;
            let back = inverse_cdf(cdf(x));
            assert!((back / x - 1.0).abs() < 1e-14, "{x} {back}");
        }
        for p in [0.5, 0.5 + 1e-9, 0.75, 0.999] {
            assert!((cdf(inverse_cdf(p)) / p - 1.0).abs() < 1e-14, "{p}");
        }
        assert_eq!(inverse_cdf(0.0), f64::NEG_INFINITY);
        assert_eq!(inverse_cdf(1.0), f64::INFINITY);
    }
}
