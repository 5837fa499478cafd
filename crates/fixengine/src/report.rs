//! What the sessions of a thread have done so far.

use tickwire_fix::{SessionId, Status};
use tickwire_market::Counters;
use tickwire_shm::Histogram;

/// What the sessions of an engine have done so far.
#[derive(Clone, Debug)]
pub struct Report {
    /// Each session.
    pub sessions: Vec<SessionReport>,
    /// Connections that belonged to no session, and what the engine's sockets counted.
    pub others: Counters,
}

/// What one session has done so far.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// Its number in the engine.
    pub id: SessionId,
    /// `FIX.4.4 SENDER -> TARGET`.
    pub name: String,
    /// Where it stands.
    pub status: Status,
    /// The number of the next message that it sends.
    pub next_out: u64,
    /// The number that it expects next.
    pub next_in: u64,
    /// What it has counted.
    pub counters: Counters,
    /// Nanoseconds of each of [`crate::STEPS`], of the first message of every read.
    pub steps: Vec<Histogram>,
}
