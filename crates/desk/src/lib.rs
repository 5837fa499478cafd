//! What an options desk edits and reads.
//!
//! - [`vol`]: `tickwire vol`: files of volatilities, edits that are checked for arbitrage, undone, logged.
//! - [`risk`]: `tickwire risk`: positions, Greeks, P&L explained, scenarios, mark-outs, as tables, CSV and a
//!   page.
//!
//! ```
//! use tickwire_desk::vol::{Begun, By, VolFile, begin, keep};
//! use tickwire_market::Nanos;
//!
//! let text = r#"
//! front = 6900.0
//! rate = 0.04
//! [[expiry]]
//! name = "2026-03-20"
//! years = 0.08
//! reference = 6900.0
//! wing = { vol = 0.165, slope = -0.35, put = 1.2, call = 0.8, down = -0.2, up = 0.12 }
//! "#;
//! let now = Nanos(1_771_511_400 * Nanos::SECOND);
//! let (mut file, mut surface) = VolFile::parse(text.to_owned(), now)?;
//! assert!((surface.vol(0, 6900.0).expect("it is listed") - 0.165).abs() < 1e-12);
//!
//! // As `tickwire vol edit` and a running quoter do it: the surface first, then file and log.
//! let by = By::from("somebody");
//! let Begun::Edited(edited) = begin(&mut file, &mut surface, "atm 2026-03-20 +0.005", &by, now)? else {
//!     panic!("it is an edit");
//! };
//! println!("{}", keep(&mut file, &mut surface, *edited)?);
//! assert!((surface.vol(0, 6900.0).expect("it is listed") - 0.17).abs() < 1e-9);
//! assert!(begin(&mut file, &mut surface, "atm 2026-03-20 +0.2", &by, now).is_err(), "too far for one edit");
//! # Ok::<(), String>(())
//! ```
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

pub mod risk;
pub mod vol;
