//! The `[receiver]` section: sizes and patience of the receiving side, alike for every feed.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_market::{BookState, Venue};

/// How live lines are received.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// By the kernel's UDP sockets.
    #[default]
    Socket,
    /// By AF_XDP from the hook of the network driver; without the rights for it the program does not start.
    Xdp,
    /// By AF_XDP where that is possible; else by sockets, and the program says why.
    Auto,
}

/// How frames come from the hook of the network driver.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum XdpWay {
    /// The first that works: without a copy, with one, behind the driver.
    #[default]
    Auto,
    /// In the driver, without a copy.
    ZeroCopy,
    /// In the driver, with a copy.
    Copy,
    /// Behind the driver, on any interface.
    Generic,
}

/// Sizes and patience of the receiving side, alike for every feed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReceiverSection {
    /// How live lines are received; recovery is by sockets always.
    pub backend: Backend,
    /// How frames come from the hook of the network driver; for AF_XDP.
    pub xdp_mode: XdpWay,
    /// How many receive queues of an interface are read, from the first on; 0: all. For AF_XDP.
    pub xdp_queues: u32,
    /// Frames of each queue for receiving, 2 KiB each, and as many for sending: a power of two. For AF_XDP.
    pub xdp_frames: u32,
    /// Whether packets in which nobody wants anything, and copies of the other line, are dropped at the hook,
    /// where the program can look into the protocol. For AF_XDP.
    pub filter: bool,
    /// Whether the filter counts what it drops of each instrument: 1 MiB a channel, and another look at what
    /// is dropped.
    pub filter_statistics: bool,
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
    /// Orders resting at once over all books of a feed; a whole Nasdaq day has had 1.65 million. Each channel
    /// of a feed has an equal share, see [`ReceiverSection::shared_by`].
    pub max_orders: u32,
    /// Price levels over all books of a feed and both sides, shared like the orders.
    pub max_levels: u32,
}

/// Orders, and price levels, that a channel has room for however many share the feed's: a unit of PITCH may
/// be much busier than the others.
const SHARE_LEAST: u32 = 1 << 17;

impl ReceiverSection {
    /// The sizes of one of so many channels of a feed: orders and price levels in equal shares, in powers of
    /// two, but room for 131,072 each where the whole feed has so much. All room is taken, and touched, at
    /// the start; 35 units with a million orders each would have 4.5 GB of it.
    #[must_use]
    pub fn shared_by(&self, channels: usize) -> ReceiverSection {
        let channels = u32::try_from(channels.max(1)).unwrap_or(u32::MAX);
        let share = |all: u32| match channels {
            1 => all,
            _ => all
                .div_ceil(channels)
                .next_power_of_two()
                .max(SHARE_LEAST)
                .min(all),
        };
        ReceiverSection {
            max_orders: share(self.max_orders),
            max_levels: share(self.max_levels),
            ..self.clone()
        }
    }
}

impl Default for ReceiverSection {
    fn default() -> Self {
        // The books' own sizes are what ships, so that what the library's benchmarks measure is what runs.
        let books = BooksConfig::default();
        ReceiverSection {
            backend: Backend::Socket,
            xdp_mode: XdpWay::Auto,
            xdp_queues: 0,
            xdp_frames: 1 << 14,
            filter: false,
            filter_statistics: false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_share_the_room_of_their_feed() {
        let all = ReceiverSection {
            max_orders: 1 << 20,
            max_levels: 100_000,
            ..ReceiverSection::default()
        };
        let orders = |channels| all.shared_by(channels).max_orders;
        assert_eq!(
            [0, 1, 2, 3, 6, 35].map(orders),
            [1 << 20, 1 << 20, 1 << 19, 1 << 19, 1 << 18, 1 << 17]
        );
        assert_eq!(all.shared_by(1).max_levels, 100_000);
        assert_eq!(
            all.shared_by(35).max_levels,
            100_000,
            "never more than the feed has"
        );
        assert_eq!(all.shared_by(35).max_instruments, all.max_instruments);
    }
}
