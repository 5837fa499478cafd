//! Order books: one [`Books`] per feed turns [`MarketEvent`](tickwire_market::MarketEvent)s into price
//! levels, best prices and, where wanted, queues.
//!
//! ```text
//! MarketEvent ─► Books::apply ─► Applied::Update(&BookUpdate)
//!                  │  OrderIndex   order id → slot { price, remaining quantity, instrument, side }
//!                  │  Ladders      per book and side: levels sorted by price, the best at the end
//!                  └  tops         per book: the BookUpdate that says its best bid and offer
//! ```
//!
//! Nothing is allocated after [`Books::new`]; every capacity is in [`BooksConfig`] and what happens when one
//! is exhausted is written beside it. [`naive::NaiveBooks`] does the same with standard maps, in the obvious
//! way, and is what the fast books are compared with.
//!
//! **Invariant.** No venue knowledge, no clock, no I/O, no floating point, no panic on any event.
//!
//! ```
//! use tickwire_book::{Applied, Books, BooksConfig};
//! use tickwire_market::{BookState, EventFlags, EventKind, InstrumentId, MarketEvent, OrderId, Price, Side, Volume};
//!
//! let mut books = Books::new(BooksConfig {
//!     instruments: 2,
//!     orders: 64,
//!     levels: 64,
//!     initial: BookState::Live,
//!     ..BooksConfig::default()
//! });
//! let bid = MarketEvent {
//!     kind: EventKind::Add,
//!     instrument: InstrumentId(1),
//!     order_id: OrderId(1001),
//!     side: Side::Bid,
//!     price: Price::from_4dp(1_872_500),
//!     qty: Volume(100),
//!     flags: EventFlags::LAST,
//!     ..MarketEvent::default()
//! };
//! let Applied::Update(update) = books.apply(&bid) else { panic!("the best bid is new") };
//! assert_eq!(update.best(Side::Bid), Some((bid.price, Volume(100))));
//! let book = books.book(InstrumentId(1)).expect("it was sized for two");
//! assert_eq!(book.levels(Side::Bid).count(), 1);
//! ```
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod books;
mod buddies;
mod changes;
mod digest;
mod instrument_state;
mod ladder;
mod late_links;
pub mod naive;
mod order_index;
pub mod prefetch;
mod relay;
pub mod super_books;
mod tick;
mod view;

pub use books::{Applied, BookError, Books, BooksConfig, Depth};
pub use changes::{Change, ChangeKind, Totals};
pub use digest::Digest;
pub use instrument_state::{Auction, InstrumentState, InstrumentStates, Print};
pub use relay::{Outcome, Relay};
pub use super_books::{SourceId, SuperBooks, SuperConfig, SuperId, SuperRef, SuperSink, SuperUpdate};
pub use view::{BookRef, OrderView, QueuePosition};

use alloc::vec::Vec;
use tickwire_market::{Price, Side};

/// `len` copies of a value in memory that has been written to: the operating system gives a page when it is
/// first written, and that must happen at start, not on the hot path.
pub(crate) fn touched<T: Copy>(value: T, len: usize) -> Vec<T> {
    let mut items = alloc::vec![value; len];
    core::hint::black_box(&mut items).fill(value);
    items
}

/// A price as a sort key: the better the price for its side, the larger the key. Its own inverse up to
/// [`price_of`]; no price overflows.
#[inline]
pub(crate) const fn key_of(side: Side, price: Price) -> i64 {
    price.raw() ^ -(side as i64)
}

/// The price of a sort key.
#[inline]
pub(crate) const fn price_of(side: Side, key: i64) -> Price {
    Price::from_raw(key ^ -(side as i64))
}
