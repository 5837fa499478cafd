//! The wing model that traders know: a parabola of volatility over log-strike to each side of the money,
//! smoothed into flat ends.
//!
//! As described by Orc Software for its wing model: `x = ln(K/F)`; for `x < 0` down to the down cut-off
//! `vol + slope·x + put·x²`, for `x > 0` up to the up cut-off `vol + slope·x + call·x²`; beyond a cut-off `c`
//! a second parabola takes the slope to 0 at `c·(1 + smoothing)`, and from there volatility is flat.
//! Volatility and slope swim with the underlying (`vcr`, `scr`).

/// The parameters of one expiry.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wing {
    /// Volatility at the reference price, above 0.
    pub vol: f64,
    /// Change of volatility by log-strike there.
    pub slope: f64,
    /// Curvature below, by log-strike squared.
    pub put: f64,
    /// Curvature above.
    pub call: f64,
    /// Log-strike at which the lower parabola ends, below 0.
    pub down: f64,
    /// Log-strike at which the upper parabola ends, above 0.
    pub up: f64,
    /// Width of the lower smoothing as a share of its cut-off, above 0.
    pub down_smoothing: f64,
    /// Width of the upper smoothing as a share of its cut-off, above 0.
    pub up_smoothing: f64,
    /// How much volatility falls when the underlying rises by its own size (volatility change rate).
    pub vcr: f64,
    /// The same for the slope (slope change rate).
    pub scr: f64,
}

impl Wing {
    /// The same volatility for every strike.
    pub const fn flat(vol: f64) -> Wing {
        Wing {
            vol,
            slope: 0.0,
            put: 0.0,
            call: 0.0,
            down: -0.2,
            up: 0.2,
            down_smoothing: 0.5,
            up_smoothing: 0.5,
            vcr: 0.0,
            scr: 0.0,
        }
    }

    /// Whether every parameter is finite and in its range. Volatility may still reach its floor far out.
    pub fn is_valid(&self) -> bool {
        let numbers = [
            self.slope,
            self.put,
            self.call,
            self.down_smoothing,
            self.up_smoothing,
            self.vcr,
            self.scr,
        ];
        numbers.iter().all(|x| x.is_finite())
            && self.vol.is_finite()
            && self.vol > 0.0
            && self.down.is_finite()
            && self.down < 0.0
            && self.up.is_finite()
            && self.up > 0.0
            && self.down_smoothing > 0.0
            && self.up_smoothing > 0.0
    }

    /// Volatility at a log-strike; `moved` is how far the underlying has moved from the reference, as a share
    /// of it, times the float.
    pub fn vol(&self, x: f64, moved: f64) -> f64 {
        let (vol, slope) = (self.vol - self.vcr * moved, self.slope - self.scr * moved);
        let (curvature, cut, smoothing) = if x < 0.0 {
            (self.put, self.down, self.down_smoothing)
        } else {
            (self.call, self.up, self.up_smoothing)
        };
        if x.abs() <= cut.abs() {
            return vol + x * (slope + curvature * x);
        }
        let (at_cut, slope_at_cut) = (
            vol + cut * (slope + curvature * cut),
            slope + 2.0 * curvature * cut,
        );
        let width = cut * smoothing;
        // How far into the smoothing, 0 to 1.
        let part = ((x - cut) / width).min(1.0);
        at_cut + slope_at_cut * width * (part - 0.5 * part * part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WING: Wing = Wing {
        vol: 0.16,
        slope: -0.35,
        put: 0.9,
        call: 0.4,
        down: -0.15,
        up: 0.12,
        down_smoothing: 0.5,
        up_smoothing: 0.4,
        vcr: 0.1,
        scr: 0.05,
    };

    #[test]
    fn it_is_smooth_where_pieces_meet_and_flat_at_the_ends() {
        assert!(WING.is_valid());
        for (at, is_flat) in [
            (-0.225, true),
            (-0.15, false),
            (0.0, false),
            (0.12, false),
            (0.168, true),
        ] {
            let e = 1e-6;
            let (below, there, above) = (WING.vol(at - e, 0.0), WING.vol(at, 0.0), WING.vol(at + e, 0.0));
            assert!(
                (above - there).abs() < 1e-6 && (there - below).abs() < 1e-6,
                "{at}"
            );
            let (left, right) = ((there - below) / e, (above - there) / e);
            assert!((left - right).abs() < 1e-4, "{at}: {left} {right}");
            assert!(!is_flat || left.abs() < 1e-4, "{at}: {left}");
        }
        assert_eq!(WING.vol(-0.3, 0.0), WING.vol(-3.0, 0.0));
        assert_eq!(WING.vol(0.3, 0.0), WING.vol(3.0, 0.0));
        assert_eq!(WING.vol(0.0, 0.0), 0.16);
        assert!((WING.vol(0.0, 0.1) - 0.15).abs() < 1e-15);
        assert_eq!(Wing::flat(0.2).vol(0.7, 0.3), 0.2);
    }

    #[test]
    fn what_is_no_wing_is_refused() {
        for bad in [
            Wing { vol: 0.0, ..WING },
            Wing {
                slope: f64::NAN,
                ..WING
            },
            Wing { down: 0.1, ..WING },
            Wing { up: -0.1, ..WING },
            Wing {
                down_smoothing: 0.0,
                ..WING
            },
            Wing {
                up_smoothing: f64::INFINITY,
                ..WING
            },
        ] {
            assert!(!bad.is_valid(), "{bad:?}");
        }
    }
}
