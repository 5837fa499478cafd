//! Delivery: the sequences of operations that the feed crate defines beside its state machines.

use tickwire_feed::fuzzing;

/// Line arbitration and gap recovery alone.
pub fn feed_arbiter(bytes: &[u8]) {
    fuzzing::arbiter_operations(bytes);
}

/// A whole ITCH feed with its snapshot.
pub fn feed_handler(bytes: &[u8]) {
    fuzzing::feed_operations(bytes);
}

/// A SoupBinTCP stream, whole and byte by byte.
pub fn soup_stream(bytes: &[u8]) {
    fuzzing::soup_stream(bytes);
}
