//! What quoter and eye get from whoever prices, and what they tell him.

use alloc::boxed::Box;
use alloc::vec::Vec;
use tickwire_market::{Nanos, Price, Qty, Side, Symbol};

use crate::Ladder;
use crate::strategy::Execution;

/// What is wanted at each price of the underlying, made elsewhere.
#[derive(Debug)]
pub struct Ladders {
    /// Of the quotes.
    pub quotes: Box<Ladder>,
    /// Of the eye, from the same values, where there is one.
    pub eye: Option<Box<Ladder>>,
    /// What hedges one contract of each option, in thousandths of a contract of the underlying; empty without
    /// an eye.
    pub hedges: Vec<i32>,
}

/// What traded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TradeOf {
    /// A quote.
    Quote,
    /// An order of the eye in an option.
    Eye,
    /// A hedge in the underlying.
    Hedge,
}

/// A trade of ours, for whoever keeps positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuoterTrade {
    /// When it was heard of.
    pub at: Nanos,
    /// What traded.
    pub of: TradeOf,
    /// The option's place among the quotes; of a hedge without meaning.
    pub quote: u16,
    /// Our side as it is booked: of a trade that is taken back, the other one than it traded on.
    pub side: Side,
    /// The venue took a trade of the other side back.
    pub is_broken: bool,
    /// Contracts.
    pub qty: Qty,
    /// Of one contract.
    pub price: Price,
    /// Bid plus ask of the underlying then, in its ticks; 0 when it was not known.
    pub half_tick: i64,
    /// The report of it, where the host has one.
    pub execution: Option<Execution>,
}

/// Who makes ladders, and keeps positions: another thread, most often, behind rings. Nothing here waits.
pub trait Pricing {
    /// Newer ladders, if there are some.
    fn next(&mut self) -> Option<Ladders>;
    /// Those before, to be filled again.
    fn give_back(&mut self, before: Ladders);
    /// Something traded; `false`: there is no room for it, what is held would not be known, and every quote
    /// is pulled.
    fn traded(&mut self, trade: &QuoterTrade) -> bool {
        let _ = trade;
        true
    }
}

/// An option to be quoted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotedOption {
    /// The venue's symbol.
    pub symbol: Symbol,
    /// Its delta, in thousandths.
    pub delta_milli: i32,
}

/// What the venue has of a quote is otherwise than we believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Which quote.
    pub quote: u16,
    /// Contracts of it by side, as the venue has them; `None`: it did not say in time.
    pub venue: Option<[u32; 2]>,
    /// The same as we believe.
    pub ours: [u32; 2],
}
