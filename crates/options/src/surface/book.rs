//! A surface with its history: every change is an edit with a version, an author and a time; any number of
//! the last can be undone.

use super::arbitrage::{self, Arbitrage};
use super::{Controls, Curve, Smile, VOL_MIN};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use tickwire_market::Nanos;

/// How an expiry's forward follows the front future.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Roll {
    /// The front plus this many points.
    Points(f64),
    /// The front grown by this rate (carry less yield) for this many years between the two.
    Carry {
        /// Per year, continuously compounded.
        rate: f64,
        /// From the front's expiry to this one's.
        years: f64,
    },
}

impl Roll {
    /// The forward at a price of the front.
    pub fn forward(&self, front: f64) -> f64 {
        match *self {
            Roll::Points(points) => front + points,
            Roll::Carry { rate, years } => front * libm::exp(rate * years),
        }
    }

    fn is_valid(&self) -> bool {
        match *self {
            Roll::Points(points) => points.is_finite(),
            Roll::Carry { rate, years } => {
                rate.is_finite() && years.is_finite() && (rate * years).abs() < 10.0
            }
        }
    }
}

/// One change. `expiry` is the place of the expiry in the surface; amounts are added to what is there unless
/// said otherwise.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs)] // the fields are what the sentence of each variant names
pub enum Edit {
    /// All volatilities of an expiry, in volatility.
    Atm { expiry: usize, by: f64 },
    /// The straddle at the money, in points; expiries of the same link move by the same variance per unit of
    /// business time.
    Straddle { expiry: usize, points: f64 },
    /// Volatility per deviation.
    Slope { expiry: usize, by: f64 },
    /// Volatility per squared deviation, below the pivot.
    PutWing { expiry: usize, by: f64 },
    /// Volatility per squared deviation, above it.
    CallWing { expiry: usize, by: f64 },
    /// Log-strike of the pivot.
    Pivot { expiry: usize, by: f64 },
    /// Sets how far the smile goes along with the underlying, 0 to 2.
    Float { expiry: usize, to: f64 },
    /// One strike, in volatility.
    Nudge { expiry: usize, strike: f64, by: f64 },
    /// No strike of the expiry has a nudge any more.
    ClearNudges { expiry: usize },
    /// Another curve, made at this price of the forward; controls and nudges begin anew, the float stays.
    Curve {
        expiry: usize,
        curve: Curve,
        reference: f64,
    },
    /// Time has passed: this many (business) years are left.
    Years { expiry: usize, to: f64 },
    /// How the expiry's forward follows the front.
    Roll { expiry: usize, roll: Roll },
    /// The edit of this version was taken back; made by [`Surface::undo`].
    Undo { expiry: usize, version: u64 },
}

impl Edit {
    /// The expiry that is edited.
    pub fn expiry(&self) -> usize {
        match *self {
            Edit::Atm { expiry, .. }
            | Edit::Straddle { expiry, .. }
            | Edit::Slope { expiry, .. }
            | Edit::PutWing { expiry, .. }
            | Edit::CallWing { expiry, .. }
            | Edit::Pivot { expiry, .. }
            | Edit::Float { expiry, .. }
            | Edit::Nudge { expiry, .. }
            | Edit::ClearNudges { expiry }
            | Edit::Curve { expiry, .. }
            | Edit::Years { expiry, .. }
            | Edit::Roll { expiry, .. }
            | Edit::Undo { expiry, .. } => expiry,
        }
    }
}

/// Why an edit was refused; the surface is as it was.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum EditError {
    /// There is no expiry of that number.
    Expiry(usize),
    /// What it would make is out of range, or is no number.
    Range,
    /// No volatility gives the straddle that, or a linked expiry would have none left: its place.
    Straddle(usize),
    /// More strikes with nudges than [`SurfaceConfig::nudges_max`].
    NudgesFull,
    /// It would give something away; only where [`SurfaceConfig::refuses_arbitrage`].
    Arbitrage(Arbitrage),
    /// Nothing is left to undo.
    NothingToUndo,
    /// [`Edit::Undo`] is made by [`Surface::undo`] only.
    NotAnEdit,
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expiry(expiry) => write!(f, "the surface has no expiry {expiry}"),
            Self::Range => f.write_str("the edit leads out of the control's range"),
            Self::Straddle(expiry) => write!(f, "no volatility of expiry {expiry} gives that straddle"),
            Self::NudgesFull => f.write_str("too many nudged strikes: clear some first"),
            Self::Arbitrage(arbitrage) => write!(f, "refused: {arbitrage}"),
            Self::NothingToUndo => f.write_str("nothing to undo"),
            Self::NotAnEdit => f.write_str("undo is a call, not an edit"),
        }
    }
}

impl core::error::Error for EditError {}

/// Sizes and rules of a surface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SurfaceConfig {
    /// Edits that can be undone; the oldest is forgotten when there are more.
    pub undo_max: usize,
    /// Entries of the audit log that are kept here; the oldest is dropped, and counted, when there are more:
    /// the app writes them to a file before.
    pub audit_max: usize,
    /// Strikes with nudges, per expiry.
    pub nudges_max: usize,
    /// Whether an edit that makes a butterfly or calendar of negative price is refused.
    pub refuses_arbitrage: bool,
}

impl Default for SurfaceConfig {
    fn default() -> Self {
        SurfaceConfig {
            undo_max: 100,
            audit_max: 10_000,
            nudges_max: 256,
            refuses_arbitrage: true,
        }
    }
}

/// What an edit did to one expiry, for the log.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// Its place.
    pub expiry: usize,
    /// Volatility at the money before and after.
    pub atm: (f64, f64),
}

/// A line of the audit log.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Entry {
    /// The version the edit made.
    pub version: u64,
    /// When.
    pub at: Nanos,
    /// Who: the app's number of a user or session.
    pub who: u32,
    /// What.
    pub edit: Edit,
    /// What became of the edited expiry.
    pub change: Change,
}

#[derive(Clone, Debug)]
struct Expiry {
    smile: Smile,
    roll: Roll,
    /// Expiries of the same link, other than 0, move together in straddle shifts.
    link: u16,
}

/// The smiles of all expiries, earliest first, their forwards, and how they came about.
#[derive(Clone, Debug)]
pub struct Surface {
    config: SurfaceConfig,
    expiries: Vec<Expiry>,
    front: f64,
    version: u64,
    /// Version of the edit, and what was before it.
    past: VecDeque<(u64, Vec<(usize, Expiry)>)>,
    audit: VecDeque<Entry>,
    audit_dropped: u64,
}

impl Surface {
    /// A surface of smiles in order of expiry, each with its roll and its link (0: none), at a price of the
    /// front future.
    pub fn new(
        config: SurfaceConfig,
        front: f64,
        smiles: Vec<(Smile, Roll, u16)>,
    ) -> Result<Surface, EditError> {
        if !(front.is_finite() && front > 0.0) || smiles.iter().any(|(_, roll, _)| !roll.is_valid()) {
            return Err(EditError::Range);
        }
        let expiries = smiles
            .into_iter()
            .map(|(smile, roll, link)| Expiry { smile, roll, link });
        let surface = Surface {
            config,
            expiries: expiries.collect(),
            front,
            version: 0,
            past: VecDeque::new(),
            audit: VecDeque::new(),
            audit_dropped: 0,
        };
        for expiry in 0..surface.expiries.len() {
            surface.check(&surface.expiries, expiry)?;
        }
        Ok(surface)
    }

    /// Number of expiries.
    pub fn len(&self) -> usize {
        self.expiries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.expiries.is_empty()
    }

    /// An expiry's smile.
    pub fn smile(&self, expiry: usize) -> Option<&Smile> {
        self.expiries.get(expiry).map(|e| &e.smile)
    }

    /// An expiry's forward at the front's price.
    pub fn forward(&self, expiry: usize) -> Option<f64> {
        self.expiries.get(expiry).map(|e| e.roll.forward(self.front))
    }

    /// The price of the front future.
    pub fn front(&self) -> f64 {
        self.front
    }

    /// How an expiry's forward follows the front.
    pub fn roll(&self, expiry: usize) -> Option<Roll> {
        self.expiries.get(expiry).map(|e| e.roll)
    }

    /// The link of an expiry, 0 for none.
    pub fn link(&self, expiry: usize) -> Option<u16> {
        self.expiries.get(expiry).map(|e| e.link)
    }

    /// A new price of the front future; it makes no version. Ignored if it is not a number above 0.
    pub fn set_front(&mut self, front: f64) {
        if front.is_finite() && front > 0.0 {
            self.front = front;
        }
    }

    /// Time has passed: this many (business) years are left to an expiry, whose volatilities stay. Like
    /// [`Surface::set_front`] it makes no version, and no undo brings the time back. Ignored if it is not a
    /// number above 0.
    pub fn set_years(&mut self, expiry: usize, to: f64) {
        if !(to.is_finite() && to > 0.0) {
            return;
        }
        if let Some(e) = self.expiries.get_mut(expiry) {
            e.smile.age(to);
        }
        let past = self.past.iter_mut().flat_map(|(_, before)| before);
        past.filter(|(at, _)| *at == expiry)
            .for_each(|(_, was)| was.smile.age(to));
    }

    /// The volatility of a strike.
    pub fn vol(&self, expiry: usize, strike: f64) -> Option<f64> {
        let e = self.expiries.get(expiry)?;
        Some(e.smile.vol(strike, e.roll.forward(self.front)))
    }

    /// Rises with every edit and undo: what was priced with another version has to be priced again.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The audit log, oldest first.
    pub fn audit(&self) -> impl Iterator<Item = &Entry> {
        self.audit.iter()
    }

    /// Entries that were dropped because there were more than are kept.
    pub fn audit_dropped(&self) -> u64 {
        self.audit_dropped
    }

    /// Takes the oldest entry of the log, for the file.
    pub fn take_entry(&mut self) -> Option<Entry> {
        self.audit.pop_front()
    }

    /// Makes an edit: the new version, or the surface as it was and why.
    pub fn apply(&mut self, now: Nanos, who: u32, edit: Edit) -> Result<u64, EditError> {
        let index = edit.expiry();
        let before = self.expiries.get(index).ok_or(EditError::Expiry(index))?;
        let mut touched = vec![(index, before.clone())];
        match edit {
            Edit::Straddle { points, .. } => self.shift_straddles(&mut touched, points)?,
            Edit::Undo { .. } => return Err(EditError::NotAnEdit),
            _ => self.turn(&mut touched[0].1, &edit)?,
        }
        let mut after = self.expiries.clone();
        for (at, expiry) in &touched {
            if !(expiry.smile.controls.is_valid() && expiry.roll.forward(self.front) > 0.0) {
                return Err(EditError::Range);
            }
            after[*at] = expiry.clone();
        }
        for (at, _) in &touched {
            self.check(&after, *at)?;
        }
        let before = touched
            .iter()
            .map(|(at, _)| (*at, self.expiries[*at].clone()))
            .collect();
        self.publish(now, who, edit, after, Some(before));
        Ok(self.version)
    }

    /// Takes back the last edit that was not: the new version. Undoing makes a version of its own; what was
    /// priced before comes back as it was.
    pub fn undo(&mut self, now: Nanos, who: u32) -> Result<u64, EditError> {
        let (version, before) = self.past.pop_back().ok_or(EditError::NothingToUndo)?;
        let mut after = self.expiries.clone();
        let mut expiry = 0;
        for (at, was) in before {
            expiry = expiry.max(at);
            after[at] = was;
        }
        self.publish(now, who, Edit::Undo { expiry, version }, after, None);
        Ok(self.version)
    }

    /// The edits of one expiry that add to a control or set something.
    fn turn(&self, expiry: &mut Expiry, edit: &Edit) -> Result<(), EditError> {
        let c = &mut expiry.smile.controls;
        match *edit {
            Edit::Atm { by, .. } => c.atm += by,
            Edit::Slope { by, .. } => c.slope += by,
            Edit::PutWing { by, .. } => c.put_wing += by,
            Edit::CallWing { by, .. } => c.call_wing += by,
            Edit::Pivot { by, .. } => c.pivot += by,
            Edit::Float { to, .. } => c.float = to,
            Edit::Nudge { strike, by, .. } => return self.nudge(&mut expiry.smile, strike, by),
            Edit::ClearNudges { .. } => expiry.smile.nudges.clear(),
            Edit::Curve { curve, reference, .. } => {
                let float = c.float;
                let mut smile = Smile::new(curve, reference, expiry.smile.years).ok_or(EditError::Range)?;
                smile.controls = Controls {
                    float,
                    ..Controls::default()
                };
                expiry.smile = smile;
            }
            Edit::Years { to, .. } if to.is_finite() && to > 0.0 => expiry.smile.age(to),
            Edit::Roll { roll, .. } if roll.is_valid() => expiry.roll = roll,
            _ => return Err(EditError::Range),
        }
        Ok(())
    }

    fn nudge(&self, smile: &mut Smile, strike: f64, by: f64) -> Result<(), EditError> {
        if !(strike.is_finite() && strike > 0.0 && by.abs() <= 2.0) {
            return Err(EditError::Range);
        }
        match smile.nudges.binary_search_by(|(at, _)| at.total_cmp(&strike)) {
            Ok(at) => {
                smile.nudges[at].1 += by;
                // Turned back to nothing: the strike is on the curve again.
                if smile.nudges[at].1.abs() < 1e-12 {
                    smile.nudges.remove(at);
                }
            }
            Err(_) if smile.nudges.len() >= self.config.nudges_max => return Err(EditError::NudgesFull),
            Err(at) => smile.nudges.insert(at, (strike, by)),
        }
        Ok(())
    }

    /// Moves the first one's straddle by points, and those linked to it by the variance that is: up to the
    /// earlier of the two expiries, the same per unit of business time.
    fn shift_straddles(&self, touched: &mut Vec<(usize, Expiry)>, points: f64) -> Result<(), EditError> {
        let (master_at, master) = &mut touched[0];
        let (master_at, forward) = (*master_at, master.roll.forward(self.front));
        let target = master.smile.straddle(forward) + points;
        let before = master.smile.atm(forward);
        let after = master
            .smile
            .atm_of_straddle(forward, target)
            .ok_or(EditError::Straddle(master_at))?;
        master.smile.controls.atm += after - before;
        let (more, years, link) = (after * after - before * before, master.smile.years, master.link);
        let linked = |(at, e): &(usize, &Expiry)| link != 0 && e.link == link && *at != master_at;
        for (at, other) in self.expiries.iter().enumerate().filter(linked) {
            let mut other = other.clone();
            let vol = other.smile.atm(other.roll.forward(self.front));
            let share = (years / other.smile.years).min(1.0);
            let square = vol * vol + more * share;
            if square < VOL_MIN * VOL_MIN {
                return Err(EditError::Straddle(at));
            }
            other.smile.controls.atm += libm::sqrt(square) - vol;
            touched.push((at, other));
        }
        Ok(())
    }

    /// Looks at one expiry and its neighbours.
    fn check(&self, expiries: &[Expiry], at: usize) -> Result<(), EditError> {
        if !self.config.refuses_arbitrage {
            return Ok(());
        }
        let pair = |e: &Expiry| e.roll.forward(self.front);
        let here = &expiries[at];
        arbitrage::butterfly(&here.smile, pair(here), 4.0).map_err(EditError::Arbitrage)?;
        for (earlier, later) in [(at.checked_sub(1), Some(at)), (Some(at), Some(at + 1))] {
            let get = |at: Option<usize>| at.and_then(|at| expiries.get(at));
            if let (Some(a), Some(b)) = (get(earlier), get(later)) {
                arbitrage::calendar((&a.smile, pair(a)), (&b.smile, pair(b)), 3.0)
                    .map_err(EditError::Arbitrage)?;
            }
        }
        Ok(())
    }

    fn publish(
        &mut self,
        now: Nanos,
        who: u32,
        edit: Edit,
        after: Vec<Expiry>,
        before: Option<Vec<(usize, Expiry)>>,
    ) {
        let expiry = edit.expiry();
        let atm = |e: &Expiry| e.smile.atm(e.roll.forward(self.front));
        let change = Change {
            expiry,
            atm: (atm(&self.expiries[expiry]), atm(&after[expiry])),
        };
        self.expiries = after;
        self.version += 1;
        if let Some(before) = before {
            self.past.push_back((self.version, before));
            if self.past.len() > self.config.undo_max {
                self.past.pop_front();
            }
        }
        self.audit.push_back(Entry {
            version: self.version,
            at: now,
            who,
            edit,
            change,
        });
        if self.audit.len() > self.config.audit_max {
            self.audit.pop_front();
            self.audit_dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::surface::{Svi, Wing};
    use proptest::prelude::*;

    const NOW: Nanos = Nanos(1_795_185_000 * Nanos::SECOND);

    #[test]
    fn time_passes_without_a_version_and_no_undo_brings_it_back() {
        let svi = Curve::Svi(Svi {
            a: 0.001,
            b: 0.01,
            rho: -0.3,
            m: 0.0,
            sigma: 0.1,
        });
        for curve in [wing(0.2), svi] {
            let smile = Smile::new(curve, 100.0, 0.25).unwrap();
            let mut surface = Surface::new(
                SurfaceConfig::default(),
                100.0,
                std::vec![(smile, Roll::Points(0.0), 0)],
            )
            .unwrap();
            let vol = |surface: &Surface| surface.vol(0, 95.0).unwrap();
            let before = vol(&surface);
            surface.apply(NOW, 1, Edit::Atm { expiry: 0, by: 0.01 }).unwrap();
            surface.set_years(0, 0.125);
            assert!((vol(&surface) - before - 0.01).abs() < 1e-9, "{curve:?}");
            assert_eq!(surface.version(), 1);
            surface.undo(NOW, 1).unwrap();
            assert!((vol(&surface) - before).abs() < 1e-9, "{curve:?}");
            assert_eq!(surface.smile(0).unwrap().years(), 0.125);
            for none in [0.0, -1.0, f64::NAN] {
                surface.set_years(0, none);
            }
            assert_eq!(surface.smile(0).unwrap().years(), 0.125);
        }
    }

    fn wing(vol: f64) -> Curve {
        Curve::Wing(Wing {
            slope: -0.15,
            put: 0.3,
            call: 0.2,
            ..Wing::flat(vol)
        })
    }

    /// Four expiries; the second and third are the morning and the afternoon of one day.
    fn surface(config: SurfaceConfig) -> Surface {
        let smiles = [(0.02, 0.0, 0), (0.08, 10.0, 7), (0.082, 10.0, 7), (0.25, 30.0, 0)].map(
            |(years, points, link)| {
                (
                    Smile::new(wing(0.16), 5000.0 + points, years).unwrap(),
                    Roll::Points(points),
                    link,
                )
            },
        );
        Surface::new(config, 5000.0, smiles.into()).unwrap()
    }

    fn straddle(surface: &Surface, expiry: usize) -> f64 {
        surface
            .smile(expiry)
            .unwrap()
            .straddle(surface.forward(expiry).unwrap())
    }

    #[test]
    fn every_control_does_what_it_says_and_undo_takes_it_back() {
        let mut s = surface(SurfaceConfig {
            refuses_arbitrage: false,
            ..SurfaceConfig::default()
        });
        let at = |s: &Surface, strike: f64| s.vol(1, strike).unwrap();
        let deviation = 0.16 * 0.08f64.sqrt();
        let strike = |u: f64| 5010.0 * (u * deviation).exp();
        let strikes = [-2.0, -1.0, 0.0, 1.0, 2.0].map(strike);
        for (edit, moves) in [
            (Edit::Atm { expiry: 1, by: 0.01 }, [0.01; 5]),
            (
                Edit::Slope {
                    expiry: 1,
                    by: -0.002,
                },
                [0.004, 0.002, 0.0, -0.002, -0.004],
            ),
            (
                Edit::PutWing { expiry: 1, by: 0.001 },
                [0.004, 0.001, 0.0, 0.0, 0.0],
            ),
            (
                Edit::CallWing { expiry: 1, by: 0.001 },
                [0.0, 0.0, 0.0, 0.001, 0.004],
            ),
            (
                Edit::Nudge {
                    expiry: 1,
                    strike: strikes[3],
                    by: 0.003,
                },
                [0.0, 0.0, 0.0, 0.003, 0.0],
            ),
        ] {
            let (before, version) = (strikes.map(|k| at(&s, k)), s.version());
            assert_eq!(s.apply(NOW, 1, edit), Ok(version + 1));
            for ((strike, before), by) in strikes.iter().zip(before).zip(moves) {
                assert!(
                    (at(&s, *strike) - before - by).abs() < 1e-12,
                    "{edit:?} at {strike}"
                );
            }
            assert_eq!(s.undo(NOW, 2), Ok(version + 2));
            assert_eq!(strikes.map(|k| at(&s, k)), before);
        }
        assert_eq!(s.undo(NOW, 2), Err(EditError::NothingToUndo));
        assert_eq!(s.audit().count(), 10);
        let last = s.audit().last().unwrap();
        assert_eq!(
            (last.version, last.who, last.edit),
            (
                10,
                2,
                Edit::Undo {
                    expiry: 1,
                    version: 9
                }
            )
        );
    }

    #[test]
    fn the_pivot_moves_where_slope_begins() {
        let mut s = surface(SurfaceConfig::default());
        s.apply(NOW, 1, Edit::Pivot { expiry: 3, by: -0.05 }).unwrap();
        let (pivot, money) = (5030.0 * (-0.05f64).exp(), 5030.0);
        let before = (s.vol(3, pivot).unwrap(), s.vol(3, money).unwrap());
        s.apply(
            NOW,
            1,
            Edit::Slope {
                expiry: 3,
                by: -0.003,
            },
        )
        .unwrap();
        assert!((s.vol(3, pivot).unwrap() - before.0).abs() < 1e-12);
        let u = 0.05 / (0.16 * 0.25f64.sqrt());
        assert!((s.vol(3, money).unwrap() - before.1 + 0.003 * u).abs() < 1e-12);
    }

    #[test]
    fn float_is_sticky_strike_at_0_and_sticky_delta_at_1() {
        let mut s = surface(SurfaceConfig::default());
        let (strike, vol) = (4900.0, s.vol(3, 4900.0).unwrap());
        let multiple = strike / s.forward(3).unwrap();
        s.set_front(5100.0);
        assert!((s.vol(3, strike).unwrap() - vol).abs() < 1e-14);
        s.apply(NOW, 1, Edit::Float { expiry: 3, to: 1.0 }).unwrap();
        let moved = multiple * s.forward(3).unwrap();
        assert!((s.vol(3, moved).unwrap() - vol).abs() < 1e-12);
        assert_eq!(
            s.apply(NOW, 1, Edit::Float { expiry: 3, to: 2.1 }),
            Err(EditError::Range)
        );
    }

    #[test]
    fn a_straddle_moves_by_its_points_and_takes_its_links_along() {
        let mut s = surface(SurfaceConfig::default());
        let before: std::vec::Vec<f64> = (0..4).map(|e| straddle(&s, e)).collect();
        let square = |s: &Surface, e: usize| {
            let smile = s.smile(e).unwrap();
            smile.atm(s.forward(e).unwrap()).powi(2) * smile.years()
        };
        let variance = [square(&s, 1), square(&s, 2)];
        s.apply(
            NOW,
            1,
            Edit::Straddle {
                expiry: 1,
                points: 2.5,
            },
        )
        .unwrap();
        assert!((straddle(&s, 1) - before[1] - 2.5).abs() < 1e-9);
        // All that is new happens before the morning: the afternoon has just as much more.
        assert!((square(&s, 2) - variance[1] - (square(&s, 1) - variance[0])).abs() < 1e-12);
        assert_eq!((straddle(&s, 0), straddle(&s, 3)), (before[0], before[3]));
        s.undo(NOW, 1).unwrap();
        assert_eq!(straddle(&s, 2), before[2]);
        let refused = s.apply(
            NOW,
            1,
            Edit::Straddle {
                expiry: 1,
                points: -1e4,
            },
        );
        assert_eq!(refused, Err(EditError::Straddle(1)));
    }

    #[test]
    fn an_edit_that_gives_something_away_is_refused_and_changes_nothing() {
        let mut s = surface(SurfaceConfig::default());
        let vol = s.vol(1, 4900.0);
        let calendar = s.apply(NOW, 1, Edit::Atm { expiry: 1, by: 0.08 });
        assert!(
            matches!(calendar, Err(EditError::Arbitrage(Arbitrage::Calendar { .. }))),
            "{calendar:?}"
        );
        let pointed = Curve::Svi(Svi {
            a: 0.0005,
            b: 0.12,
            rho: 0.0,
            m: 0.0,
            sigma: 0.009,
        });
        let butterfly = s.apply(
            NOW,
            1,
            Edit::Curve {
                expiry: 1,
                curve: pointed,
                reference: 5010.0,
            },
        );
        assert!(
            matches!(butterfly, Err(EditError::Arbitrage(Arbitrage::Butterfly { .. }))),
            "{butterfly:?}"
        );
        assert_eq!((s.vol(1, 4900.0), s.version()), (vol, 0));
        let mut free = surface(SurfaceConfig {
            refuses_arbitrage: false,
            ..SurfaceConfig::default()
        });
        assert_eq!(free.apply(NOW, 1, Edit::Atm { expiry: 1, by: 0.08 }), Ok(1));
    }

    #[test]
    fn a_nudge_that_makes_a_listed_butterfly_negative_is_seen() {
        let mut s = surface(SurfaceConfig::default());
        let strikes: std::vec::Vec<f64> = (80..120).map(|i| f64::from(i) * 50.0).collect();
        let look = |s: &Surface| {
            arbitrage::listed_butterflies(s.smile(3).unwrap(), s.forward(3).unwrap(), 0.04, &strikes)
        };
        assert_eq!(look(&s), Ok(()));
        s.apply(
            NOW,
            1,
            Edit::Nudge {
                expiry: 3,
                strike: 5000.0,
                by: 0.01,
            },
        )
        .unwrap();
        assert_eq!(look(&s), Err(Arbitrage::Butterfly { strike: 5000.0 }));
    }

    #[test]
    fn forwards_follow_the_front_by_their_rolls() {
        let mut s = surface(SurfaceConfig::default());
        assert_eq!(s.forward(3), Some(5030.0));
        let carry = Roll::Carry {
            rate: 0.03,
            years: 0.25,
        };
        s.apply(
            NOW,
            1,
            Edit::Roll {
                expiry: 3,
                roll: carry,
            },
        )
        .unwrap();
        s.set_front(5010.0);
        s.set_front(f64::NAN);
        assert_eq!(s.forward(3), Some(5010.0 * libm::exp(0.0075)));
        assert_eq!(s.forward(0), Some(5010.0));
        assert_eq!(s.forward(4), None);
    }

    #[test]
    fn a_smile_comes_back_with_its_controls_and_nudges() {
        let mut s = surface(SurfaceConfig {
            refuses_arbitrage: false,
            ..SurfaceConfig::default()
        });
        s.apply(NOW, 1, Edit::Slope { expiry: 2, by: -0.01 }).unwrap();
        for strike in [5100.0, 4900.0] {
            let by = 0.0005;
            s.apply(
                NOW,
                1,
                Edit::Nudge {
                    expiry: 2,
                    strike,
                    by,
                },
            )
            .unwrap();
        }
        let old = s.smile(2).unwrap();
        let bare = || Smile::new(*old.curve(), old.reference(), old.years()).unwrap();
        let again = bare().with(*old.controls(), old.nudges().to_vec());
        assert_eq!(again.as_ref(), Some(old));
        let bad = [(4900.0, 0.1), (4900.0, 0.1)];
        assert!(bare().with(Controls::default(), bad.to_vec()).is_none());
        assert!(
            bare()
                .with(Controls::default(), [(4900.0, f64::NAN)].to_vec())
                .is_none()
        );
        let turned = Controls {
            float: 3.0,
            ..Controls::default()
        };
        assert!(bare().with(turned, Vec::new()).is_none());
        assert_eq!((s.link(1), s.link(9)), (s.link(2), None));
        assert_eq!((s.front(), s.roll(9)), (5000.0, None));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let config = SurfaceConfig {
            undo_max: 2,
            audit_max: 3,
            nudges_max: 1,
            ..SurfaceConfig::default()
        };
        let mut s = surface(config);
        for _ in 0..5 {
            s.apply(NOW, 1, Edit::Atm { expiry: 3, by: 0.001 }).unwrap();
        }
        assert_eq!((s.audit().count(), s.audit_dropped()), (3, 2));
        assert_eq!(s.take_entry().map(|e| e.version), Some(3));
        assert!(s.undo(NOW, 1).is_ok() && s.undo(NOW, 1).is_ok());
        assert_eq!(s.undo(NOW, 1), Err(EditError::NothingToUndo));
        s.apply(
            NOW,
            1,
            Edit::Nudge {
                expiry: 0,
                strike: 5000.0,
                by: 0.01,
            },
        )
        .unwrap();
        let full = s.apply(
            NOW,
            1,
            Edit::Nudge {
                expiry: 0,
                strike: 5005.0,
                by: 0.01,
            },
        );
        assert_eq!(full, Err(EditError::NudgesFull));
        s.apply(
            NOW,
            1,
            Edit::Nudge {
                expiry: 0,
                strike: 5000.0,
                by: -0.01,
            },
        )
        .unwrap();
        assert!(s.smile(0).unwrap().nudges().is_empty());
    }

    #[test]
    fn a_new_curve_begins_without_controls() {
        let mut s = surface(SurfaceConfig::default());
        s.apply(NOW, 1, Edit::Atm { expiry: 0, by: 0.01 }).unwrap();
        s.apply(
            NOW,
            1,
            Edit::Curve {
                expiry: 0,
                curve: wing(0.15),
                reference: 5000.0,
            },
        )
        .unwrap();
        assert_eq!(s.vol(0, 5000.0), Some(0.15));
        let bad = Edit::Curve {
            expiry: 0,
            curve: wing(-0.15),
            reference: 5000.0,
        };
        assert_eq!(s.apply(NOW, 1, bad), Err(EditError::Range));
        s.apply(NOW, 1, Edit::Years { expiry: 0, to: 0.019 }).unwrap();
        assert_eq!(s.smile(0).unwrap().years(), 0.019);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_edits_undone_leave_the_surface_as_it_was(
            edits in prop::collection::vec((0usize..5, 0u8..9, prop_oneof![-0.02f64..0.02, Just(f64::NAN), any::<f64>()]), 0..30),
        ) {
            let mut s = surface(SurfaceConfig::default());
            let all = |s: &Surface| -> std::vec::Vec<u64> {
                (0..4).flat_map(|e| (90..110).map(move |k| (e, f64::from(k) * 50.0)))
                    .map(|(e, k)| s.vol(e, k).unwrap().to_bits()).collect()
            };
            let first = all(&s);
            let mut done = 0;
            for (expiry, kind, by) in edits {
                let edit = match kind {
                    0 => Edit::Atm { expiry, by },
                    1 => Edit::Slope { expiry, by },
                    2 => Edit::PutWing { expiry, by },
                    3 => Edit::CallWing { expiry, by },
                    4 => Edit::Pivot { expiry, by },
                    5 => Edit::Float { expiry, to: by },
                    6 => Edit::Straddle { expiry, points: by * 100.0 },
                    7 => Edit::Years { expiry, to: by },
                    _ => Edit::Nudge { expiry, strike: 5000.0, by },
                };
                done += u32::from(s.apply(NOW, 1, edit).is_ok());
                prop_assert!((0..4).all(|e| s.vol(e, 5000.0).is_some_and(f64::is_finite)));
            }
            for _ in 0..done {
                prop_assert!(s.undo(NOW, 1).is_ok());
            }
            prop_assert_eq!(s.undo(NOW, 1), Err(EditError::NothingToUndo));
            prop_assert_eq!(all(&s), first);
        }
    }
}
