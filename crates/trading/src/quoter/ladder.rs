//! What is wanted at each price of the underlying, worked out beforehand.
//!
//! A [`Ladder`] has a row for every half tick of the underlying within a window, and a row has the wanted bid
//! and ask of every quote. The thread that prices fills it ([`Ladder::push_row`]) and hands it over whole;
//! the thread that quotes only looks a row up ([`Ladder::row`]). Whoever holds a ladder owns it, so no row
//! can be read while it is written.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use tickwire_options::batch::{Engine, Loops};

/// The bid of a side that is not quoted.
pub const NO_BID: u16 = 0;
/// The ask of a side that is not quoted.
pub const NO_ASK: u16 = u16::MAX;
/// Quotes are looked at in blocks of so many; rows are padded to whole blocks with sides that are not quoted.
pub(crate) const BLOCK: usize = 64;

/// The prices at which options may be quoted, in points: multiples of a tick, and of a coarser one from some
/// price on.
///
/// CME calls the second the tick rule's variable tick: 0.05 below a premium and 0.25 from there on, say. Both
/// are in the instrument's definition.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PriceGrid {
    tick: f64,
    per_point: f64,
    coarse: f64,
    per_coarse: f64,
    coarse_from: f64,
    /// No side is quoted above it, in ticks.
    most: f64,
}

/// Why a grid, or the terms of a quote, cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuotingError {
    /// A tick that is not above 0, or coarse ticks that are no whole number of them.
    Grid,
    /// A number that is not finite, or negative where that has no meaning.
    NotANumber,
    /// A narrowest width of 0 or less, or above the widest.
    Width,
    /// No such quote.
    Quote,
}

impl fmt::Display for QuotingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QuotingError::Grid => "ticks must be above 0, and the coarse tick a whole number of fine ones",
            QuotingError::NotANumber => "edges and widths must be finite and not negative",
            QuotingError::Width => "the narrowest width must be above 0 and not above the widest",
            QuotingError::Quote => "there is no such quote",
        })
    }
}

impl core::error::Error for QuotingError {}

impl PriceGrid {
    /// Multiples of `tick` points, and of `coarse_ticks` ticks from `coarse_from` ticks on (1 and 0: one tick
    /// everywhere).
    ///
    /// # Errors
    /// [`QuotingError::Grid`].
    pub fn new(tick: f64, coarse_ticks: u16, coarse_from: u16) -> Result<PriceGrid, QuotingError> {
        let is_grid =
            tick.is_finite() && tick > 0.0 && coarse_ticks > 0 && coarse_from.is_multiple_of(coarse_ticks);
        if !is_grid {
            return Err(QuotingError::Grid);
        }
        Ok(PriceGrid {
            tick,
            per_point: 1.0 / tick,
            coarse: f64::from(coarse_ticks),
            per_coarse: 1.0 / f64::from(coarse_ticks),
            coarse_from: f64::from(coarse_from),
            most: f64::from(NO_ASK - 1),
        })
    }

    /// The same prices up to `points`: a side that would be above has none.
    pub fn up_to(self, points: f64) -> PriceGrid {
        // A millionth of a tick is more than the error of the reciprocal, so that a multiple stays one.
        let most = floor((points * self.per_point + 1e-6).clamp(0.0, f64::from(NO_ASK - 1)));
        PriceGrid {
            most: if most < self.most { most } else { self.most },
            ..self
        }
    }

    /// The size of the fine tick, in points.
    pub fn tick(&self) -> f64 {
        self.tick
    }

    /// The highest price not above `points`, in ticks; [`NO_BID`] below the first tick.
    #[inline(always)]
    fn bid(&self, points: f64) -> u16 {
        let fine = floor((points * self.per_point).clamp(0.0, f64::from(NO_ASK - 1)));
        // Half a tick is far more than the error of the reciprocal, so that a multiple stays one.
        let coarse = floor((fine + 0.5) * self.per_coarse) * self.coarse;
        let bid = if fine >= self.coarse_from { coarse } else { fine };
        whole(if bid > self.most { f64::from(NO_BID) } else { bid })
    }

    /// The lowest price not below `points`, in ticks, at least one; [`NO_ASK`] beyond the highest.
    #[inline(always)]
    fn ask(&self, points: f64) -> u16 {
        let fine = ceil((points * self.per_point).clamp(1.0, f64::from(NO_ASK)));
        let coarse = (floor((fine - 0.5) * self.per_coarse) + 1.0) * self.coarse;
        let ask = if fine > self.coarse_from { coarse } else { fine };
        whole(if ask > self.most { f64::from(NO_ASK) } else { ask })
    }
}

/// Adding it leaves no fraction in a number below it: rounds to the nearest, ties to even. Branch-free in
/// vectors, unlike `floor`, which needs an instruction that not every x86-64 has.
const ROUNDS: f64 = 4_503_599_627_370_496.0;

#[inline(always)]
fn floor(x: f64) -> f64 {
    let nearest = (x + ROUNDS) - ROUNDS;
    if nearest > x { nearest - 1.0 } else { nearest }
}

#[inline(always)]
fn ceil(x: f64) -> f64 {
    let nearest = (x + ROUNDS) - ROUNDS;
    if nearest < x { nearest + 1.0 } else { nearest }
}

/// A whole number as an integer: what is above `u16::MAX`, a coarse tick at most, is [`NO_ASK`].
#[inline(always)]
fn whole(x: f64) -> u16 {
    (x.min(f64::from(NO_ASK)) + ROUNDS).to_bits() as u16
}

/// How a quote lies around its theoretical value. All in points of premium.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QuoteTerms {
    /// Least distance of each side from the theoretical value.
    pub edge: f64,
    /// As a part of the theoretical value: 0.005 is half a percent. Added to `edge`.
    pub edge_relative: f64,
    /// Half the narrowest quote; above 0.
    pub half_width_min: f64,
    /// Half the widest quote.
    pub half_width_max: f64,
    /// Moves both sides, down to sell: the lean of the position, and of a fill that is not forgotten yet.
    pub lean: f64,
    /// Whether to bid, and whether to ask.
    pub sides: [bool; 2],
}

impl Default for QuoteTerms {
    /// A tenth of a point and half a percent on each side, up to ten points; both sides.
    fn default() -> QuoteTerms {
        QuoteTerms {
            edge: 0.1,
            edge_relative: 0.005,
            half_width_min: 0.01,
            half_width_max: 10.0,
            lean: 0.0,
            sides: [true; 2],
        }
    }
}

/// The terms of every quote, laid out for [`Ladder::push_row`].
#[derive(Clone, Debug)]
pub struct Quoting {
    grid: PriceGrid,
    edge: Vec<f64>,
    relative: Vec<f64>,
    min: Vec<f64>,
    max: Vec<f64>,
    /// Lean of the bid, or minus infinity: no bid.
    bid: Vec<f64>,
    /// Lean of the ask, or infinity: no ask.
    ask: Vec<f64>,
    /// Which instructions make rows: the same prices by any.
    engine: Engine,
}

impl Quoting {
    /// Terms for `quotes` quotes, none of them with a side until [`Quoting::set`].
    pub fn new(quotes: usize, grid: PriceGrid) -> Quoting {
        Quoting {
            grid,
            edge: vec![0.0; quotes],
            relative: vec![0.0; quotes],
            min: vec![1.0; quotes],
            max: vec![1.0; quotes],
            bid: vec![f64::NEG_INFINITY; quotes],
            ask: vec![f64::INFINITY; quotes],
            engine: Engine::detect(),
        }
    }

    /// How many quotes.
    pub fn len(&self) -> usize {
        self.edge.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.edge.is_empty()
    }

    /// Sets the terms of a quote.
    ///
    /// # Errors
    /// What is wrong with them; they are as before then.
    #[inline]
    pub fn set(&mut self, quote: usize, terms: &QuoteTerms) -> Result<(), QuotingError> {
        if quote >= self.len() {
            return Err(QuotingError::Quote);
        }
        let widths = [
            terms.edge,
            terms.edge_relative,
            terms.half_width_min,
            terms.half_width_max,
        ];
        // Two compares each, false of what is no number.
        let is_width = |w: &f64| (0.0..=f64::MAX).contains(w);
        if !widths.iter().all(is_width) || !(f64::MIN..=f64::MAX).contains(&terms.lean) {
            return Err(QuotingError::NotANumber);
        }
        // Sides apart by more than rounding can close: the smallest half width leaves a bid below its ask.
        if terms.half_width_min < 1e-9 || terms.half_width_min > terms.half_width_max {
            return Err(QuotingError::Width);
        }
        self.edge[quote] = terms.edge;
        self.relative[quote] = terms.edge_relative;
        self.min[quote] = terms.half_width_min;
        self.max[quote] = terms.half_width_max;
        self.bid[quote] = if terms.sides[0] {
            terms.lean
        } else {
            f64::NEG_INFINITY
        };
        self.ask[quote] = if terms.sides[1] { terms.lean } else { f64::INFINITY };
        Ok(())
    }

    /// The wanted bid and ask of a quote worth `theo` points, in ticks. A value that is not a number or
    /// negative is not quoted.
    #[inline]
    pub fn wanted(&self, quote: usize, theo: f64) -> (u16, u16) {
        let half = [
            self.edge[quote],
            self.relative[quote],
            self.min[quote],
            self.max[quote],
        ];
        wanted(&self.grid, theo, half, [self.bid[quote], self.ask[quote]])
    }
}

/// See [`Quoting::wanted`]: half the width from edge, relative edge, least and most; lean of bid and ask.
#[inline(always)]
fn wanted(grid: &PriceGrid, theo: f64, half: [f64; 4], lean: [f64; 2]) -> (u16, u16) {
    let [edge, relative, min, max] = half;
    let half = (edge + relative * theo).max(min).min(max);
    let bid = grid.bid(theo - half + lean[0]);
    let ask = grid.ask(theo + half + lean[1]);
    if theo >= 0.0 { (bid, ask) } else { (NO_BID, NO_ASK) }
}

/// A row being made.
struct RowLoop<'a> {
    theos: &'a [f64],
    quoting: &'a Quoting,
    bids: &'a mut [u16],
    asks: &'a mut [u16],
}

impl Loops for RowLoop<'_> {
    #[inline(always)]
    fn run(self) {
        let Quoting {
            grid,
            edge,
            relative,
            min,
            max,
            bid,
            ask,
            engine: _,
        } = self.quoting;
        // All of one length, so that nothing is asked in the loop.
        let count = self.theos.len();
        let [edge, relative, min, max, bid, ask] =
            [edge, relative, min, max, bid, ask].map(|column| &column[..count]);
        let (bids, asks) = (&mut self.bids[..count], &mut self.asks[..count]);
        for at in 0..count {
            let half = [edge[at], relative[at], min[at], max[at]];
            (bids[at], asks[at]) = wanted(grid, self.theos[at], half, [bid[at], ask[at]]);
        }
    }
}

/// A row: wanted bids and asks by quote, in ticks, whole blocks.
#[derive(Clone, Copy, Debug)]
pub struct Row<'l> {
    /// [`NO_BID`] where none is wanted.
    pub bids: &'l [u16],
    /// [`NO_ASK`] where none is wanted.
    pub asks: &'l [u16],
}

/// More rows than the ladder has room for, or values that are not one for each quote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LadderFull;

/// Wanted bids and asks of every quote, by half tick of the underlying: bid plus ask, in its ticks.
#[derive(Clone, Debug)]
pub struct Ladder {
    version: u64,
    first: i64,
    rows: usize,
    rows_max: usize,
    quotes: usize,
    stride: usize,
    bids: Box<[u16]>,
    asks: Box<[u16]>,
}

impl Ladder {
    /// Room for `rows_max` rows of `quotes` quotes; without rows, version 0.
    pub fn new(quotes: usize, rows_max: usize) -> Ladder {
        let stride = quotes.next_multiple_of(BLOCK);
        Ladder {
            version: 0,
            first: 0,
            rows: 0,
            rows_max,
            quotes,
            stride,
            bids: vec![NO_BID; stride * rows_max].into_boxed_slice(),
            asks: vec![NO_ASK; stride * rows_max].into_boxed_slice(),
        }
    }

    /// How many quotes a row has.
    pub fn quotes(&self) -> usize {
        self.quotes
    }

    /// How many rows it has room for.
    pub fn room(&self) -> usize {
        self.rows_max
    }

    /// Which state of volatilities, forwards, positions and terms it was made from.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The half ticks it has rows for.
    pub fn half_ticks(&self) -> core::ops::Range<i64> {
        self.first..self.first + self.rows as i64
    }

    /// Begins anew, with the row of half tick `first` next.
    pub fn begin(&mut self, version: u64, first: i64) {
        (self.version, self.first, self.rows) = (version, first, 0);
    }

    /// Appends the row of the next half tick: the options' theoretical values at that price of the
    /// underlying, in points, in the order of the quotes.
    ///
    /// # Errors
    /// [`LadderFull`].
    pub fn push_row(&mut self, theos: &[f64], quoting: &Quoting) -> Result<(), LadderFull> {
        let quotes = self.quotes;
        if self.rows == self.rows_max || theos.len() != quotes || quoting.len() != quotes {
            return Err(LadderFull);
        }
        let from = self.rows * self.stride;
        quoting.engine.run_loops(RowLoop {
            theos,
            quoting,
            bids: &mut self.bids[from..from + quotes],
            asks: &mut self.asks[from..from + quotes],
        });
        self.rows += 1;
        Ok(())
    }

    /// What is wanted when the underlying's bid and ask, in its ticks, add up to `half_tick`; `None` outside
    /// of the window.
    #[inline]
    pub fn row(&self, half_tick: i64) -> Option<Row<'_>> {
        let at = usize::try_from(half_tick.checked_sub(self.first)?).ok()?;
        if at >= self.rows {
            return None;
        }
        let from = at * self.stride;
        Some(Row {
            bids: &self.bids[from..from + self.stride],
            asks: &self.asks[from..from + self.stride],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grid() -> PriceGrid {
        PriceGrid::new(0.05, 5, 100).unwrap()
    }

    /// By division, one price at a time, in whole numbers of a millionth of a point.
    fn plain(micro: i64) -> (u16, u16) {
        let (tick, from) = (50_000, 5_000_000);
        let floor = |step: i64| micro.max(0).div_euclid(step) * step / tick;
        let ceil = |step: i64| (micro.max(1) + step - 1).div_euclid(step) * step / tick;
        let bid = if micro >= from {
            floor(5 * tick)
        } else {
            floor(tick)
        };
        let ask = if micro > from { ceil(5 * tick) } else { ceil(tick) };
        (bid as u16, ask as u16)
    }

    #[test]
    fn prices_round_away_from_the_value_onto_the_grid() {
        for (points, bid, ask) in [
            (-1.0, NO_BID, 1),
            (0.0, NO_BID, 1),
            (0.049, NO_BID, 1),
            (0.051, 1, 2),
            (4.96, 99, 100),
            (5.01, 100, 105),
            (5.26, 105, 110),
            (1_000.3, 20_005, 20_010),
            (3_276.8, 65_530, NO_ASK),
            (1e9, 65_530, NO_ASK),
            (f64::INFINITY, 65_530, NO_ASK),
            (f64::NEG_INFINITY, NO_BID, 1),
        ] {
            assert_eq!((grid().bid(points), grid().ask(points)), (bid, ask), "{points}");
        }
        assert_eq!(PriceGrid::new(0.0, 1, 0), Err(QuotingError::Grid));
        assert_eq!(PriceGrid::new(0.05, 5, 101), Err(QuotingError::Grid));
        assert_eq!(PriceGrid::new(f64::NAN, 1, 0), Err(QuotingError::Grid));
    }

    #[test]
    fn no_side_is_quoted_above_the_highest_price() {
        let capped = grid().up_to(5.25);
        for (points, bid, ask) in [
            (4.96, 99, 100),
            (5.01, 100, 105),
            (5.25, 105, 105),
            (5.26, 105, NO_ASK),
            (5.51, NO_BID, NO_ASK),
            (1e9, NO_BID, NO_ASK),
        ] {
            assert_eq!((capped.bid(points), capped.ask(points)), (bid, ask), "{points}");
        }
        // A cap between two prices is that of the lower one; a higher cap does not lift a lower one.
        let between = grid().up_to(5.49);
        assert_eq!((between.bid(5.6), between.ask(5.2)), (NO_BID, 105));
        assert_eq!(capped.up_to(100.0), capped);
        assert_eq!(grid().up_to(1e9), grid());
        let nothing = grid().up_to(0.0);
        assert_eq!((nothing.bid(3.0), nothing.ask(3.0)), (NO_BID, NO_ASK));
    }

    proptest! {
        #[test]
        fn rounding_is_that_of_division(micro in -1_000_000_i64..3_000_000_000) {
            // Away from the grid itself, where the float's last bit decides.
            prop_assume!(micro.rem_euclid(50_000) != 0);
            let points = micro as f64 / 1e6;
            prop_assert_eq!((grid().bid(points), grid().ask(points)), plain(micro));
        }

        #[test]
        fn a_quote_never_crosses_itself_nor_its_value(
            theo in 0.0..3_000.0_f64, edge in 0.0..2.0_f64, relative in 0.0..0.05_f64, lean in -3.0..3.0_f64,
        ) {
            let mut quoting = Quoting::new(1, grid());
            let terms = QuoteTerms { edge, edge_relative: relative, lean, ..QuoteTerms::default() };
            quoting.set(0, &terms).unwrap();
            let (bid, ask) = quoting.wanted(0, theo);
            prop_assert!(bid < ask);
            let middle = theo + lean;
            prop_assert!(f64::from(bid) * 0.05 <= middle.max(0.0) + 1e-9);
            prop_assert!(f64::from(ask) * 0.05 >= middle - 1e-9);
        }
    }

    #[test]
    fn terms_that_make_no_quote_are_refused_and_sides_that_are_off_are_not_wanted() {
        let mut quoting = Quoting::new(2, grid());
        assert_eq!(quoting.wanted(0, 10.0), (NO_BID, NO_ASK));
        let good = QuoteTerms::default();
        for (terms, error) in [
            (
                QuoteTerms {
                    edge: f64::NAN,
                    ..good
                },
                QuotingError::NotANumber,
            ),
            (QuoteTerms { edge: -0.1, ..good }, QuotingError::NotANumber),
            (
                QuoteTerms {
                    lean: f64::INFINITY,
                    ..good
                },
                QuotingError::NotANumber,
            ),
            (
                QuoteTerms {
                    half_width_min: 0.0,
                    ..good
                },
                QuotingError::Width,
            ),
            (
                QuoteTerms {
                    half_width_min: 11.0,
                    ..good
                },
                QuotingError::Width,
            ),
        ] {
            assert_eq!(quoting.set(0, &terms), Err(error), "{terms:?}");
        }
        assert_eq!(quoting.set(2, &good), Err(QuotingError::Quote));
        assert_eq!(quoting.wanted(0, 10.0), (NO_BID, NO_ASK), "nothing was set");
        quoting.set(0, &good).unwrap();
        // 10 points less 0.15 and more, on the coarse grid of 0.25.
        assert_eq!(quoting.wanted(0, 10.0), (195, 205));
        assert_eq!(quoting.wanted(0, f64::NAN), (NO_BID, NO_ASK));
        assert_eq!(quoting.wanted(0, -1.0), (NO_BID, NO_ASK));
        let bid_only = QuoteTerms {
            sides: [true, false],
            ..good
        };
        quoting.set(0, &bid_only).unwrap();
        assert_eq!(quoting.wanted(0, 10.0), (195, NO_ASK));
    }

    #[test]
    fn a_ladder_has_the_rows_it_was_given_and_no_others() {
        let mut quoting = Quoting::new(70, grid());
        (0..70).for_each(|quote| quoting.set(quote, &QuoteTerms::default()).unwrap());
        let mut ladder = Ladder::new(70, 3);
        assert!(ladder.row(0).is_none());
        ladder.begin(7, -1);
        for half_tick in -1..2 {
            let theos: Vec<f64> = (0..70)
                .map(|quote| f64::from(quote) + f64::from(half_tick))
                .collect();
            ladder.push_row(&theos, &quoting).unwrap();
        }
        assert_eq!(ladder.push_row(&[1.0; 70], &quoting), Err(LadderFull));
        assert_eq!((ladder.version(), ladder.half_ticks()), (7, -1..2));
        for half_tick in -1..2_i64 {
            let row = ladder.row(half_tick).unwrap();
            assert_eq!(row.bids.len(), 128);
            for quote in 0..70 {
                let theo = quote as f64 + half_tick as f64;
                assert_eq!((row.bids[quote], row.asks[quote]), quoting.wanted(quote, theo));
            }
            assert!(row.bids[70..].iter().all(|bid| *bid == NO_BID));
            assert!(row.asks[70..].iter().all(|ask| *ask == NO_ASK));
        }
        for outside in [-2, 2, i64::MIN, i64::MAX] {
            assert!(ladder.row(outside).is_none());
        }
        ladder.begin(8, 5);
        assert!(ladder.row(5).is_none(), "begun anew");
        assert_eq!(ladder.push_row(&[1.0; 69], &quoting), Err(LadderFull));
    }

    #[test]
    fn rows_are_the_same_by_any_instructions() {
        use tickwire_options::batch::Path;
        const QUOTES: usize = 1_003;
        let mut quoting = Quoting::new(QUOTES, grid());
        let mut theos = Vec::new();
        let mut state = 1_u64;
        // Values from a millionth of a point to ten thousand, now and then one that is none, and every kind
        // of terms.
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for quote in 0..QUOTES {
            let terms = QuoteTerms {
                edge: next() * 0.3,
                edge_relative: next() * 0.01,
                half_width_min: 1e-3 + next() * 0.1,
                half_width_max: 0.2 + next() * 20.0,
                lean: next() - 0.5,
                sides: [next() < 0.95, next() < 0.95],
            };
            quoting.set(quote, &terms).unwrap();
            theos.push(match quote % 50 {
                0 => f64::NAN,
                1 => -next(),
                2 => f64::INFINITY,
                3 => f64::from(quote as u32) * 0.05,
                _ => libm::pow(10.0, next() * 10.0 - 6.0),
            });
        }
        for engine in Path::ALL.into_iter().filter_map(Engine::with) {
            quoting.engine = engine;
            let mut ladder = Ladder::new(QUOTES, 1);
            ladder.begin(1, 0);
            ladder.push_row(&theos, &quoting).unwrap();
            let row = ladder.row(0).unwrap();
            for (quote, theo) in theos.iter().enumerate() {
                let wanted = quoting.wanted(quote, *theo);
                assert_eq!(
                    (row.bids[quote], row.asks[quote]),
                    wanted,
                    "{engine:?}: {quote}, {theo}"
                );
            }
        }
    }
}
