//! What clients of a venue's streams have in common: how much they take at once, why they fail, how far a
//! snapshot is.

use tickwire_market::SeqNo;
use tickwire_wire_core::Malformed;

/// The largest piece of the stream that a client takes at once.
pub const STREAM_CHUNK_MAX: usize = 64 * 1024;

/// Why a session cannot go on. The connection is of no further use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SoupFailure {
    /// The login was refused, with this reason: `A` not authorised, `S` session not available.
    Rejected(u8),
    /// The stream cannot be followed.
    Malformed(Malformed),
    /// A message came before the login was accepted.
    NotLoggedIn,
    /// The server was silent for too long.
    Silent,
    /// The connection was closed, or the session ended, before it was complete.
    Closed,
    /// More than [`STREAM_CHUNK_MAX`] bytes at once, or events that nobody took.
    Overflow,
}

/// How far a snapshot is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnapshotState {
    /// Not connected.
    Idle,
    /// Logging in.
    Connecting,
    /// Its messages come.
    Loading,
    /// Complete; the feed goes on from this number.
    Done(SeqNo),
    /// It will not be completed over this connection.
    Failed(SoupFailure),
}
