//! Typed FIX messages: orders, cancels and execution reports, quotes and mass quotes, mass cancels, market
//! data, security definitions, business rejects, for FIX 4.4 ([`fix44`]) and FIX 5.0 SP2 ([`fix50sp2`]).
//!
//! Written by `tickwire-fixgen` at build time from the dictionaries in this crate, which are ours: the
//! messages traders need, and of them the fields that exchanges use. Of orders, cancels and reports the hot
//! path has its own: `tickwire_fix::NewOrderSingle` and its like. Other messages, and what a venue adds, are
//! for a dictionary of the user's own: `docs/fix-dictionaries.md`.
//!
//! ```
//! use tickwire_fix::typed::{Price, Qty};
//! use tickwire_fix::{Encoder, Index, Precision, Stamp, Version};
//! use tickwire_fixmsg::fix44::{MassQuote, values::QuoteType};
//!
//! let (mut buffer, mut stamp) = ([0; 1024], Stamp::new(Precision::Millis));
//! let mut encoder = Encoder::new(&mut buffer, Version::Fix44);
//! encoder.text(35, MassQuote::MSG_TYPE); // with a session: `Session::send`, which writes the header
//! MassQuote::write(&mut encoder, &mut stamp, |quote| {
//!     quote.quote_id(b"Q1").quote_type(QuoteType::Tradeable);
//!     quote.quote_sets([b"1"], |set, id| {
//!         set.quote_set_id(id).tot_no_quote_entries(1);
//!         set.quote_entries([(b"1", b"WIRE")], |entry, (id, symbol)| {
//!             entry.quote_entry_id(id).instrument().symbol(symbol);
//!             entry.bid_px(Price::from_4dp(100_000)).offer_px(Price::from_4dp(100_500));
//!             entry.bid_size(Qty(500)).offer_size(Qty(400));
//!         });
//!     });
//! })?;
//! let bytes = encoder.finish().expect("whole");
//!
//! let mut index = Index::new(64);
//! let message = index.decode(bytes).expect("verified");
//! let quote = MassQuote::read(&message).expect("a mass quote");
//! assert_eq!(quote.quote_id()?, b"Q1");
//! for set in quote.quote_sets()? {
//!     for entry in set.quote_entries()? {
//!         assert_eq!(entry.instrument().symbol()?, Some(&b"WIRE"[..]));
//!         assert_eq!(entry.bid_px()?, Some(Price::from_4dp(100_000)));
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/fix44.rs"));
include!(concat!(env!("OUT_DIR"), "/fix50sp2.rs"));
