//! The domain vocabulary of Tickwire: what every other crate speaks and none redefines.
//!
//! One price type ([`Price`]), one quantity type for orders ([`Qty`]) and a wider one for sums ([`Volume`]),
//! one event ([`MarketEvent`]) for every feed, one book change ([`BookUpdate`]), one order request
//! ([`OrderIntent`]), one table of counters ([`Counter`]). Everything is `Copy`, fixed-size and free of
//! pointers, so that it can travel through shared memory and files as it is.
//!
//! **Invariant.** No floating point, no I/O, no clock, no allocation: this crate compiles without an
//! operating system.
//!
//! ```
//! use tickwire_market::{MarketEvent, Price, Symbol};
//!
//! let offer: Price = "187.25".parse()?;
//! assert_eq!(offer.raw(), 187_250_000_000); // 1e-9 of the currency
//! assert_eq!(Price::from_4dp(1_872_500), offer); // as ITCH writes it
//! assert_eq!(offer.to_string(), "187.25");
//! assert!(Symbol::new(b"AAPL").is_some_and(|symbol| symbol.as_str() == "AAPL"));
//! assert_eq!(MarketEvent::default().qty.0, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

pub mod ascii;
mod counter;
mod event;
mod id;
mod instrument;
mod intent;
mod message_type;
mod money;
mod port;
mod price;
mod qty;
mod sink;
mod time;
mod update;

pub use counter::{Counter, CounterSpec, Counters, Unit};
pub use event::{EventFlags, EventKind, MarketEvent, TradingStatus};
pub use id::{InstrumentId, OrderId, SeqNo, Side, Symbol, Venue};
pub use instrument::{Contract, Date, Instrument, PriceSteps, PutCall};
pub use intent::{Cause, ClientOrderId, MassQuoteEntry, OrderIntent, OrderType, TimeInForce, WantedOrder};
pub use message_type::{MessageType, TypeForm};
pub use money::{Currency, PointValue};
pub use port::{Port, Transport};
pub use price::{ParsePriceError, Price};
pub use qty::{Qty, Volume};
pub use sink::{DynSink, EventSink, Upcoming};
pub use time::Nanos;
pub use update::{BookState, BookUpdate, Level, UpdateFlags};
