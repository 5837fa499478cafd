//! The `[receiver]` section: sizes and patience of the receiving side, alike for every feed.

use serde::{Deserialize, Serialize};
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_market::{BookState, Venue};

/// Sizes and patience of the receiving side, alike for every feed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReceiverSection {
    /// Socket receive buffer per line, bytes.
    pub receive_buffer: u32,
    /// How long a gap waits for the other line before it is requested, microseconds.
    pub line_wait_us: u32,
    /// How long a retransmission request waits for its answer, milliseconds.
    pub request_timeout_ms: u32,
    /// Requests for the same messages before a snapshot is taken instead.
    pub request_attempts: u32,
    /// Packets kept while a gap is open.
    pub buffer_packets: u32,
    /// Instruments of one channel, which sizes the directory and the books.
    pub max_instruments: u32,
    /// Orders resting at once over all books; a whole Nasdaq day has had 1.65 million.
    pub max_orders: u32,
    /// Price levels over all books and both sides.
    pub max_levels: u32,
}

impl Default for ReceiverSection {
    fn default() -> Self {
        // The books' own sizes are what ships, so that what the library's benchmarks measure is what runs.
        let books = BooksConfig::default();
        ReceiverSection {
            receive_buffer: 8 << 20,
            line_wait_us: 500,
            request_timeout_ms: 20,
            request_attempts: 5,
            buffer_packets: 4096,
            max_instruments: books.instruments,
            max_orders: books.orders,
            max_levels: books.levels,
        }
    }
}

/// The books of the configuration.
pub fn books_of(c: &ReceiverSection, venue: Venue, depth: Depth) -> Books {
    Books::new(books_config(c, venue, depth))
}

/// Their sizes.
pub fn books_config(c: &ReceiverSection, venue: Venue, depth: Depth) -> BooksConfig {
    BooksConfig {
        venue,
        depth,
        instruments: c.max_instruments,
        orders: c.max_orders,
        levels: c.max_levels,
        initial: BookState::Building,
        tracked: false,
    }
}
