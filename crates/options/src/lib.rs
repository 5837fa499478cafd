//! How an option is valued: models, Greeks, implied volatility, surfaces, scenario risk. `docs/options.md`
//! has the models, their domains and errors.
//!
//! ```text
//! Terms ─► black76 · bachelier            price and Greeks of one option, the reference
//!       ─► implied                        the volatility of a price
//!       ─► american                       early exercise of options on futures
//! Strip ─► batch::Engine                  an expiry at once, by vector instructions
//! time · surface · grid                   business time, smiles and their controls, spot × volatility
//! edge                                    the one place where a value becomes a market::Price
//! ```
//!
//! Inside the crate a price is an `f64` in points (one point is one currency unit of
//! [`tickwire_market::Price`]); time is in years, volatility per square root of a year (0.15 is 15 %), rates
//! are continuously compounded per year.
//!
//! **Invariant.** No I/O, no clock, no global; nothing is allocated but by constructors; no panic on any
//! number.
//!
//! ```
//! use tickwire_options::{Kind, Terms, black76, implied};
//!
//! let terms = Terms { forward: 6_900.0, strike: 7_000.0, years: 0.08, vol: 0.165, rate: 0.04, kind: Kind::Call };
//! let greeks = black76::greeks(&terms)?;
//! assert!((0.0..0.5).contains(&greeks.delta), "a call above the forward");
//! let vol = implied::black76(&terms, greeks.price)?;
//! assert!((vol - 0.165).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

pub mod american;
pub mod bachelier;
pub mod batch;
pub mod black76;
pub mod edge;
pub mod grid;
pub mod implied;
mod kernel;
mod normal;
mod simd;
pub mod surface;
mod terms;
pub mod time;

pub use terms::{Greeks, Invalid, Kind, Terms};
