//! Black's model of options on futures (F. Black, "The pricing of commodity contracts", J. Financial
//! Economics 3, 1976): the forward is lognormal. The reference that everything faster is compared with.
//!
//! With `s = σ√T`, `t = s/2` and `x = |ln(F/K)|/s`, the option that is out of the money is worth, calls and
//! puts alike, `df·√(FK)·φ(x)·exp(−t²/2)·[M(x − t) − M(x + t)]` (M: Mills' ratio); the one in the money is
//! that plus `df·|F − K|` by put-call parity. No step subtracts numbers that are nearly equal, so a far
//! option has as many good digits as a near one.
//!
//! Domain: all finite F > 0, K > 0, T >= 0, σ >= 0. Relative error of the price below 1e-14 · max(1, κ), κ
//! being how many times larger a relative change of an input comes out in the price (x/s for a far option: no
//! formula in doubles does better). A value below 1e-307 is 0.

use crate::normal::{INV_SQRT_2PI, cdf, exp_half_square, mills, mills_difference, uses_series};
use crate::terms::times;
use crate::{Greeks, Invalid, Kind, Terms};

/// The value in points.
///
/// ```
/// use tickwire_options::{Kind, Terms, black76};
/// let terms = Terms { forward: 5000.0, strike: 5100.0, years: 0.25, vol: 0.15, rate: 0.045, kind: Kind::Call };
/// assert!((black76::price(&terms)? - 105.107_475_216_491).abs() < 1e-9);
/// # Ok::<(), tickwire_options::Invalid>(())
/// ```
pub fn price(terms: &Terms) -> Result<f64, Invalid> {
    terms.check(true)?;
    let s = terms.log_deviation();
    if s == 0.0 {
        return Terms::finite(terms.certain());
    }
    let ln = ln_ratio(terms.forward, terms.strike);
    let scale = libm::sqrt(terms.forward) * libm::sqrt(terms.strike);
    Terms::finite(terms.certain() + terms.discount() * scale * time_value(ln.abs() / s, 0.5 * s))
}

/// The value and every Greek.
///
/// # Errors
/// What of the terms is no term; [`Invalid::Overflow`] where one of the results would be infinite.
pub fn greeks(terms: &Terms) -> Result<Greeks, Invalid> {
    let price = price(terms)?;
    let s = terms.log_deviation();
    if s == 0.0 {
        return terms.certain_greeks().finite();
    }
    let Terms {
        forward,
        strike,
        years,
        vol,
        rate,
        kind,
    } = *terms;
    let df = terms.discount();
    let (h, t) = (ln_ratio(forward, strike) / s, 0.5 * s);
    let (d1, d2) = (h + t, h - t);
    // F·φ(d1) = K·φ(d2) = √(FK)·φ(h)·exp(−t²/2)
    let weight = df
        * libm::sqrt(forward)
        * libm::sqrt(strike)
        * INV_SQRT_2PI
        * exp_half_square(h)
        * exp_half_square(t);
    let density = weight / forward; // df·φ(d1)
    let delta = kind.sign() * df * cdf(kind.sign() * d1);
    let vega = weight * libm::sqrt(years);
    Greeks {
        price,
        delta,
        gamma: times(density / forward, 1.0 / s),
        vega,
        theta: rate * price - times(vega, vol / (2.0 * years)),
        rho: -years * price,
        vanna: -times(density, d2 / vol),
        volga: times(times(vega, d1), d2 / vol),
        charm: rate * delta + times(density, d2 / (2.0 * years)),
        veta: times(vega, rate - (1.0 + d1 * d2) / (2.0 * years)),
    }
    .finite()
}

/// The largest value an option can have, whatever its volatility: df·F of a call, df·K of a put.
pub fn maximum(terms: &Terms) -> f64 {
    let most = match terms.kind {
        Kind::Call => terms.forward,
        Kind::Put => terms.strike,
    };
    terms.discount() * most
}

/// ln(F/K), exact also where the two are close: their difference is then exact.
pub(crate) fn ln_ratio(forward: f64, strike: f64) -> f64 {
    let ratio = forward / strike;
    if (0.5..2.0).contains(&ratio) {
        libm::log1p((forward - strike) / strike)
    } else if ratio.is_normal() {
        libm::log(ratio)
    } else {
        libm::log(forward) - libm::log(strike)
    }
}

/// Time value of the option that is out of the money, in units of df·√(FK): `x = |ln(F/K)|/s`, `t = s/2`.
pub(crate) fn time_value(x: f64, t: f64) -> f64 {
    // N(−38.6) is not a normal number any more.
    if x - t > 38.6 {
        return 0.0;
    }
    let weight = INV_SQRT_2PI * exp_half_square(x) * exp_half_square(t);
    if x >= t || uses_series(x, t) {
        weight * mills_difference(x, t)
    } else {
        libm::exp(-x * t) * cdf(t - x) - weight * mills(x + t)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    extern crate std;
    use super::*;
    use crate::bachelier;
    use proptest::prelude::*;

    /// Terms anywhere a market could be, and further: strikes within six deviations.
    pub(crate) fn anywhere() -> impl Strategy<Value = Terms> {
        let years = (-9.0f64..3.0).prop_map(f64::exp);
        (
            -5.0f64..12.0,
            years,
            0.01f64..2.0,
            -0.05f64..0.2,
            -6.0f64..6.0,
            any::<bool>(),
        )
            .prop_map(|(ln_forward, years, vol, rate, x, is_call)| {
                let forward = ln_forward.exp();
                Terms {
                    forward,
                    strike: forward * (x * vol * years.sqrt()).exp(),
                    years,
                    vol,
                    rate,
                    kind: if is_call { Kind::Call } else { Kind::Put },
                }
            })
    }

    /// Terms where differences of the value say something: not far, not deep.
    fn near() -> impl Strategy<Value = Terms> {
        (
            0.05f64..2.0,
            0.05f64..0.8,
            -0.05f64..0.1,
            -2.0f64..2.0,
            any::<bool>(),
        )
            .prop_map(|(years, vol, rate, x, is_call)| Terms {
                forward: 100.0,
                strike: 100.0 * (x * vol * years.sqrt()).exp(),
                years,
                vol,
                rate,
                kind: if is_call { Kind::Call } else { Kind::Put },
            })
    }

    type Model = fn(&Terms) -> Result<Greeks, Invalid>;

    /// Greeks against central differences of values and of Greeks of one order less; `points` is a standard
    /// deviation.
    fn derivatives_are_those_of_the_value(terms: &Terms, points: f64, model: Model) {
        let at = |change: &dyn Fn(&mut Terms)| {
            let mut terms = *terms;
            change(&mut terms);
            model(&terms).expect("in the domain")
        };
        let g = at(&|_| ());
        let (df, dv, dt, dr) = (3e-3 * points, 1e-3 * terms.vol, 1e-3 * terms.years, 1e-4);
        // The step's error is its square times a third derivative: of the order of 1e-6 of what a step of the
        // whole size makes.
        let check = |name: &str, got: f64, up: f64, down: f64, step: f64, scale: f64| {
            let slope = (up - down) / (2.0 * step);
            assert!(
                (got - slope).abs() < 3e-4 * (slope.abs() + scale),
                "{name}: {got} is not {slope}; {terms:?}"
            );
        };
        let (up, down) = (at(&|t| t.forward += df), at(&|t| t.forward -= df));
        let s = g.gamma.abs() * points;
        check("delta", g.delta, up.price, down.price, df, s);
        check("gamma", g.gamma, up.delta, down.delta, df, g.gamma);
        check("vanna", g.vanna, up.vega, down.vega, df, g.vega / points);
        let (up, down) = (at(&|t| t.vol += dv), at(&|t| t.vol -= dv));
        check("vega", g.vega, up.price, down.price, dv, g.vega);
        check("volga", g.volga, up.vega, down.vega, dv, g.vega / terms.vol);
        let (up, down) = (at(&|t| t.years += dt), at(&|t| t.years -= dt));
        check(
            "theta",
            -g.theta,
            up.price,
            down.price,
            dt,
            g.vega * terms.vol / terms.years,
        );
        check(
            "charm",
            -g.charm,
            up.delta,
            down.delta,
            dt,
            (s + g.delta.abs()) / terms.years,
        );
        check("veta", -g.veta, up.vega, down.vega, dt, g.vega / terms.years);
        let (up, down) = (at(&|t| t.rate += dr), at(&|t| t.rate -= dr));
        check(
            "rho",
            g.rho,
            up.price,
            down.price,
            dr,
            1e-3 * g.price * terms.years,
        );
    }

    fn are_numbers_or_named(terms: &Terms) -> Result<(), TestCaseError> {
        for model in [greeks, bachelier::greeks] {
            if let Ok(g) = model(terms) {
                let all = [
                    g.price, g.delta, g.gamma, g.vega, g.theta, g.rho, g.vanna, g.volga, g.charm, g.veta,
                ];
                prop_assert!(all.iter().all(|x| x.is_finite()), "{g:?} {terms:?}");
            }
        }
        for price in [price(terms), bachelier::price(terms)].into_iter().flatten() {
            prop_assert!(price.is_finite() && price >= 0.0, "{price} {terms:?}");
        }
        Ok(())
    }

    /// Where vega is 0 to the last digit and a year's part of it without bound, their product was none.
    #[test]
    fn the_change_of_vega_is_a_number_where_there_is_no_time_left() {
        let terms = Terms {
            forward: 100.0,
            strike: 101.0,
            years: 1e-310,
            vol: 0.2,
            rate: 0.0,
            kind: Kind::Call,
        };
        for model in [greeks, bachelier::greeks] {
            assert_eq!(model(&terms).map(|g| g.veta), Ok(0.0));
        }
        let beyond = Terms {
            forward: 1e-3,
            strike: 1e-3,
            years: 1e-10,
            vol: 1e-303,
            ..terms
        };
        assert_eq!(greeks(&beyond), Err(Invalid::Overflow));
    }

    proptest! {
        #[test]
        fn calls_and_puts_are_at_parity_and_within_their_bounds(terms in anywhere()) {
            let other = Terms { kind: if terms.kind == Kind::Call { Kind::Put } else { Kind::Call }, ..terms };
            let (this, that) = (price(&terms).unwrap(), price(&other).unwrap());
            let parity = terms.kind.sign() * terms.discount() * (terms.forward - terms.strike);
            prop_assert!((this - that - parity).abs() <= 4e-15 * (this + that + parity.abs()));
            prop_assert!(this >= terms.certain() && this <= maximum(&terms));
        }

        #[test]
        fn more_volatility_and_a_nearer_strike_are_worth_more(terms in anywhere(), more in 1.0001f64..1.5) {
            let value = price(&terms).unwrap();
            let certain = |terms: &Terms| terms.certain() * 1e-15;
            let wilder = Terms { vol: terms.vol * more, ..terms };
            prop_assert!(price(&wilder).unwrap() >= value - certain(&terms));
            let further = Terms { strike: terms.strike * if terms.kind == Kind::Call { more } else { 1.0 / more }, ..terms };
            prop_assert!(price(&further).unwrap() <= value + certain(&terms));
        }

        #[test]
        fn the_greeks_are_the_derivatives(terms in near()) {
            let points = 100.0 * terms.deviation();
            derivatives_are_those_of_the_value(&terms, points, greeks);
            let x = (terms.strike / 100.0).ln() / terms.deviation();
            let normal = Terms { vol: terms.vol * 100.0, strike: 100.0 + x * points, ..terms };
            derivatives_are_those_of_the_value(&normal, points, bachelier::greeks);
        }

        #[test]
        fn bachelier_is_at_parity_and_never_below_exercise(terms in anywhere(), shift in -2.0f64..2.0) {
            let terms = Terms { forward: terms.forward * shift, vol: terms.vol * terms.forward, ..terms };
            let other = Terms { kind: if terms.kind == Kind::Call { Kind::Put } else { Kind::Call }, ..terms };
            let (this, that) = (bachelier::price(&terms).unwrap(), bachelier::price(&other).unwrap());
            let parity = terms.kind.sign() * terms.discount() * (terms.forward - terms.strike);
            prop_assert!((this - that - parity).abs() <= 4e-15 * (this + that + parity.abs()));
            prop_assert!(this >= terms.certain());
        }

        #[test]
        fn no_number_makes_it_panic(x in prop::array::uniform5(any::<f64>()), is_call in any::<bool>()) {
            let terms = Terms {
                forward: x[0], strike: x[1], years: x[2], vol: x[3], rate: x[4],
                kind: if is_call { Kind::Call } else { Kind::Put },
            };
            for terms in [terms, Terms { rate: 0.0, ..terms }] {
                if let Ok(value) = price(&terms) {
                    prop_assert!(value >= 0.0, "{value} {terms:?}");
                }
                are_numbers_or_named(&terms)?;
            }
        }

        #[test]
        fn every_greek_is_a_number_or_the_terms_have_none(
            e in prop::array::uniform4(-320.0f64..308.0), rate in -700.0f64..700.0, is_call in any::<bool>(), near in -3.0f64..3.0,
        ) {
            let [forward, strike, years, vol] = e.map(|e| 10.0f64.powf(e));
            let kind = if is_call { Kind::Call } else { Kind::Put };
            let wild = Terms { forward, strike, years, vol, rate: rate / years.max(1.0), kind };
            let at_the_money = Terms { strike: forward * (1.0 + near * f64::EPSILON), ..wild };
            for terms in [wild, at_the_money, Terms { strike: forward * near.exp(), ..wild }] {
                are_numbers_or_named(&terms)?;
            }
        }

        #[test]
        fn whatever_a_market_has_has_every_greek(
            forward in -6.0f64..9.0, x in -60.0f64..60.0, years in -10.0f64..2.0, vol in -5.0f64..2.0, rate in -0.5f64..1.0,
            is_call in any::<bool>(),
        ) {
            let [forward, years, vol] = [forward, years, vol].map(|e| 10.0f64.powf(e));
            let kind = if is_call { Kind::Call } else { Kind::Put };
            let strike = (forward * (x * vol * years.sqrt()).clamp(-40.0, 40.0).exp()).max(1e-12);
            let terms = Terms { forward, strike, years, vol, rate, kind };
            prop_assert!(greeks(&terms).is_ok(), "{terms:?}: {:?}", greeks(&terms));
            let normal = Terms { vol: vol * forward, ..terms };
            prop_assert!(bachelier::greeks(&normal).is_ok(), "{normal:?}: {:?}", bachelier::greeks(&normal));
        }
    }

    #[test]
    fn what_has_no_value_is_named() {
        let good = Terms {
            forward: 100.0,
            strike: 100.0,
            years: 1.0,
            vol: 0.2,
            rate: 0.0,
            kind: Kind::Call,
        };
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(price(&Terms { forward: bad, ..good }), Err(Invalid::Forward));
            assert_eq!(price(&Terms { strike: bad, ..good }), Err(Invalid::Strike));
            assert_eq!(price(&Terms { years: bad, ..good }), Err(Invalid::Years));
            assert_eq!(price(&Terms { vol: bad, ..good }), Err(Invalid::Vol));
        }
        assert_eq!(
            price(&Terms {
                rate: f64::NAN,
                ..good
            }),
            Err(Invalid::Rate)
        );
        assert_eq!(price(&Terms { rate: 1e9, ..good }), Err(Invalid::Rate));
        assert!(
            bachelier::price(&Terms {
                forward: -37.63,
                ..good
            })
            .is_ok()
        );
    }

    #[test]
    fn at_a_volatility_beyond_all_measure_an_option_is_worth_its_maximum() {
        for kind in [Kind::Call, Kind::Put] {
            let terms = Terms {
                forward: 1e161,
                strike: 1e-179,
                years: 1e140,
                vol: 1e296,
                rate: 0.0,
                kind,
            };
            let g = greeks(&terms).unwrap();
            assert!((g.price / maximum(&terms) - 1.0).abs() < 1e-12, "{g:?}");
            assert!(
                [g.delta, g.gamma, g.vega, g.vanna, g.volga, g.charm]
                    .iter()
                    .all(|x| x.is_finite()),
                "{g:?}"
            );
        }
    }

    #[test]
    fn at_expiry_an_option_is_worth_its_exercise() {
        for (forward, call, delta) in [(105.0, 5.0, 1.0), (100.0, 0.0, 0.5), (95.0, 0.0, 0.0)] {
            let terms = Terms {
                forward,
                strike: 100.0,
                years: 0.0,
                vol: 0.2,
                rate: 0.03,
                kind: Kind::Call,
            };
            let g = greeks(&terms).unwrap();
            assert_eq!((g.price, g.delta, g.gamma, g.vega), (call, delta, 0.0, 0.0));
            assert_eq!(bachelier::greeks(&terms).unwrap(), g);
        }
    }

    /// E. G. Haug, The Complete Guide to Option Pricing Formulas, 2nd ed., 2007: the examples of the Black-76
    /// and Bachelier chapters.
    #[test]
    fn the_book_examples_come_out() {
        let oil = Terms {
            forward: 19.0,
            strike: 19.0,
            years: 0.75,
            vol: 0.28,
            rate: 0.10,
            kind: Kind::Call,
        };
        for kind in [Kind::Call, Kind::Put] {
            // "Options on futures": nine months, call and put at the money are worth the same, 1.7011.
            assert!((price(&Terms { kind, ..oil }).unwrap() - 1.7011).abs() < 5e-5);
        }
    }
}
