//! The scenario grid: what a portfolio would gain or lose if the underlying and volatility moved, every cell
//! by full revaluation.

use crate::Invalid;
use crate::batch::{Engine, LANES_MAX, Strip};
use crate::kernel::Common;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// A position in one option.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Position {
    /// Which strip.
    pub strip: usize,
    /// Which of its options.
    pub option: usize,
    /// Contracts times the money of a point: +2 of 50 a point are 100.
    pub quantity: f64,
}

/// Why there is no grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GridError {
    /// No scenario of either kind, a move of the underlying that is not above −100 %, or one that is no
    /// number.
    Scenarios,
    /// This position names no option, or its quantity is no number.
    Position(usize),
    /// Not as many forwards as strips.
    Forwards,
    /// A forward is not a number above 0.
    Invalid(Invalid),
}

impl fmt::Display for GridError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenarios => f.write_str(
                "scenarios must be numbers, moves of the underlying above -1, at least one of each kind",
            ),
            Self::Position(index) => write!(
                f,
                "position {index} names no option of the strips, or its quantity is no number"
            ),
            Self::Forwards => f.write_str("there must be a forward for each strip"),
            Self::Invalid(invalid) => invalid.fmt(f),
        }
    }
}

impl core::error::Error for GridError {}

/// One cell.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// Move of every forward, as a share of it.
    pub spot: f64,
    /// Added to every volatility.
    pub vol: f64,
    /// Gain, or loss below 0, in money.
    pub gain: f64,
}

/// A portfolio and the scenarios it is put through.
#[derive(Clone, Debug)]
pub struct Grid {
    strips: Vec<Strip>,
    /// By strip and option, padded.
    quantities: Vec<Vec<f64>>,
    spots: Vec<f64>,
    vols: Vec<f64>,
    gains: Vec<f64>,
    /// What the options of each strip share before a move.
    commons: Vec<Common>,
}

impl Grid {
    /// `strips` are copied with their volatilities of now; positions in the same option add up. `spots` are
    /// moves of the underlying as shares of it (−0.1 is 10 % down), `vols` are added to volatilities, which
    /// do not fall below 0.
    pub fn new(
        strips: &[Strip],
        positions: &[Position],
        spots: &[f64],
        vols: &[f64],
    ) -> Result<Grid, GridError> {
        let is_move = |x: &f64| x.is_finite() && *x > -1.0;
        if spots.is_empty()
            || vols.is_empty()
            || !spots.iter().all(is_move)
            || !vols.iter().all(|x| x.is_finite())
        {
            return Err(GridError::Scenarios);
        }
        let room = |strip: &Strip| vec![0.0; strip.len().next_multiple_of(LANES_MAX)];
        let mut quantities: Vec<Vec<f64>> = strips.iter().map(room).collect();
        for (index, position) in positions.iter().enumerate() {
            let is_listed = strips
                .get(position.strip)
                .is_some_and(|strip| position.option < strip.len());
            if !is_listed || !position.quantity.is_finite() {
                return Err(GridError::Position(index));
            }
            quantities[position.strip][position.option] += position.quantity;
        }
        let mut strips = strips.to_vec();
        strips.iter_mut().for_each(Strip::settle);
        Ok(Grid {
            commons: Vec::with_capacity(strips.len()),
            strips,
            quantities,
            spots: spots.to_vec(),
            vols: vols.to_vec(),
            gains: vec![0.0; spots.len() * vols.len()],
        })
    }

    /// Values every cell at these forwards, one a strip, with `futures` money a point in the underlying
    /// itself; the worst cell. Allocates nothing.
    pub fn run(&mut self, engine: &Engine, forwards: &[f64], futures: f64) -> Result<Cell, GridError> {
        if forwards.len() != self.strips.len() || !futures.is_finite() {
            return Err(GridError::Forwards);
        }
        self.commons.clear();
        for (strip, &forward) in self.strips.iter().zip(forwards) {
            if !(forward.is_finite() && forward > 0.0) {
                return Err(GridError::Invalid(Invalid::Forward));
            }
            self.commons.push(strip.common(forward));
        }
        self.shift(0.0);
        let before = self.worth(engine, 0.0)?;
        let front = forwards.first().copied().unwrap_or(0.0);
        for v in 0..self.vols.len() {
            self.shift(self.vols[v]);
            for s in 0..self.spots.len() {
                let spot = self.spots[s];
                let worth = self.worth(engine, spot)?;
                self.gains[s * self.vols.len() + v] = worth - before + futures * front * spot;
            }
        }
        Ok(self.worst())
    }

    fn shift(&mut self, vol: f64) {
        for strip in &mut self.strips {
            strip.shift_vols(vol);
        }
    }

    /// The value of the portfolio after a move, with the volatilities as they are.
    fn worth(&self, engine: &Engine, spot: f64) -> Result<f64, GridError> {
        let (factor, ln, root) = (1.0 + spot, libm::log1p(spot), libm::sqrt(1.0 + spot));
        let mut sum = 0.0;
        for ((strip, quantity), common) in self.strips.iter().zip(&self.quantities).zip(&self.commons) {
            let worth = engine.worth(strip, common.moved(factor, ln, root), quantity);
            sum += worth.map_err(GridError::Invalid)?;
        }
        Ok(sum)
    }

    /// Every cell of the last run: all volatilities of the first move, then of the second, and so on.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        self.gains.iter().enumerate().map(|(at, &gain)| Cell {
            spot: self.spots[at / self.vols.len()],
            vol: self.vols[at % self.vols.len()],
            gain,
        })
    }

    /// The cell with the largest loss.
    pub fn worst(&self) -> Cell {
        let none = Cell {
            spot: 0.0,
            vol: 0.0,
            gain: f64::INFINITY,
        };
        self.cells().fold(
            none,
            |worst, cell| if cell.gain < worst.gain { cell } else { worst },
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::batch::{Listed, Path};
    use crate::{Kind, black76};

    fn strips() -> Vec<Strip> {
        let option = |i: u32| Listed {
            strike: 4000.0 + 25.0 * f64::from(i),
            kind: if i.is_multiple_of(2) {
                Kind::Call
            } else {
                Kind::Put
            },
            vol: 0.14 + 0.001 * f64::from(i % 17),
        };
        // The first has options near enough to their end that the reference has to value them when volatility
        // falls.
        [0.0005, 0.05, 0.5]
            .map(|years| Strip::new(5000.0, years, 0.03, &(0..75).map(option).collect::<Vec<_>>()).unwrap())
            .into()
    }

    #[test]
    fn every_cell_is_a_full_revaluation_and_the_worst_is_found() {
        let strips = strips();
        let positions: Vec<Position> = (0..200)
            .map(|i| Position {
                strip: i % 3,
                option: (i * 31) % 75,
                quantity: f64::from(i as u32 % 13) * 50.0 - 300.0,
            })
            .collect();
        let spots: Vec<f64> = (-10..=10).map(|i| f64::from(i) * 0.01).collect();
        let vols: Vec<f64> = (-5..=5).map(|i| f64::from(i) * 0.02).collect();
        let forwards = [5000.0, 5010.0, 5060.0];
        for engine in Path::ALL.iter().filter_map(|&path| Engine::with(path)) {
            let mut grid = Grid::new(&strips, &positions, &spots, &vols).unwrap();
            let worst = grid.run(&engine, &forwards, 700.0).unwrap();
            let value = |position: &Position, spot: f64, shift: f64| {
                let forward = forwards[position.strip] * (1.0 + spot);
                let mut terms = strips[position.strip].terms(position.option, forward).unwrap();
                terms.vol = (terms.vol + shift).max(0.0);
                position.quantity * black76::price(&terms).unwrap()
            };
            let mut least = f64::INFINITY;
            for (at, cell) in grid.cells().enumerate() {
                assert_eq!((cell.spot, cell.vol), (spots[at / 11], vols[at % 11]));
                let gain = |p: &Position| value(p, cell.spot, cell.vol) - value(p, 0.0, 0.0);
                let want = positions.iter().map(gain).sum::<f64>() + 700.0 * 5000.0 * cell.spot;
                assert!((cell.gain - want).abs() < 1e-6, "{cell:?} {want}");
                least = least.min(cell.gain);
            }
            assert_eq!(worst.gain, least);
            let middle = grid.cells().find(|c| c.spot == 0.0 && c.vol == 0.0).unwrap();
            assert!(middle.gain.abs() < 1e-6);
        }
    }

    #[test]
    fn what_makes_no_grid_is_refused() {
        let strips = strips();
        let position = Position {
            strip: 0,
            option: 0,
            quantity: 1.0,
        };
        let new =
            |position: Position, spot: f64, vol: f64| Grid::new(&strips, &[position], &[spot], &[vol]).err();
        assert_eq!(new(position, -1.0, 0.0), Some(GridError::Scenarios));
        assert_eq!(new(position, 0.0, f64::NAN), Some(GridError::Scenarios));
        assert_eq!(
            new(Position { strip: 3, ..position }, 0.0, 0.0),
            Some(GridError::Position(0))
        );
        assert_eq!(
            new(
                Position {
                    option: 75,
                    ..position
                },
                0.0,
                0.0
            ),
            Some(GridError::Position(0))
        );
        assert_eq!(
            new(
                Position {
                    quantity: f64::NAN,
                    ..position
                },
                0.0,
                0.0
            ),
            Some(GridError::Position(0))
        );
        assert_eq!(
            Grid::new(&strips, &[], &[], &[0.0]).err(),
            Some(GridError::Scenarios)
        );
        let mut grid = Grid::new(&strips, &[position], &[0.0], &[0.0]).unwrap();
        assert_eq!(
            grid.run(&Engine::detect(), &[5000.0], 0.0),
            Err(GridError::Forwards)
        );
        let bad = grid.run(&Engine::detect(), &[5000.0, -1.0, 5000.0], 0.0);
        assert_eq!(bad, Err(GridError::Invalid(Invalid::Forward)));
    }
}
