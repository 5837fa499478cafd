//! What a session remembers, in the parts that belong together; a restart reads them again.

use alloc::vec;

use tickwire_market::Nanos;
use tickwire_persist::{Damaged, Persist, StateReader, load_each, persist, save_each};

use crate::buffer::Ring;
use crate::config::SessionConfig;
use crate::store::NotKept;

use super::event::Event;
use super::pace::{PaceIn, PaceOut};
use super::{Checker, Gap, Resend};

/// The time, and the clock of this machine.
#[derive(Debug)]
pub(super) struct SessionClock {
    pub(super) now: Nanos,
    /// UTC less `now`.
    pub(super) wall_offset_ns: i64,
    /// The same before the clock was set, and until when a peer may not have noticed.
    pub(super) wall_before: (i64, Nanos),
}

/// Since when there is something to wait for.
#[derive(Debug)]
pub(super) struct Silence {
    pub(super) status_since: Nanos,
    pub(super) last_sent: Nanos,
    pub(super) last_received: Nanos,
    pub(super) test_outstanding: bool,
}

/// What the peer has sent and we have not.
#[derive(Debug)]
pub(super) struct Gaps {
    pub(super) gap: Option<Gap>,
    /// Highest sequence number received on this connection.
    pub(super) seen_max: u64,
}

/// What the peer has asked for again, and what is to be told of numbers.
#[derive(Debug)]
pub(super) struct Resending {
    pub(super) resend: Option<Resend>,
    /// Whether the message of this number may be sent again.
    pub(super) resend_verdict: Option<(u64, bool)>,
    /// A session message of this number was taken and is to be told of.
    pub(super) told: Option<u64>,
    /// Numbers that were filled and not told of yet.
    pub(super) not_kept: Option<NotKept>,
}

/// What the owner has not heard of yet.
#[derive(Debug)]
pub(super) struct Telling {
    pub(super) events: Ring<Event>,
    /// The disconnect, after all other events; it always has room.
    pub(super) ending: Option<Event>,
}

/// What has happened on this connection, and what is cancelled because it ended.
#[derive(Debug)]
pub(super) struct ConnectionState {
    /// The connection was logged on.
    pub(super) was_on: bool,
    /// Numbers were reset since the last [`Event::LoggedOn`].
    pub(super) was_reset: bool,
    /// Logouts were exchanged on it.
    pub(super) logged_out: bool,
    /// When the owner is to cancel.
    pub(super) cancel_at: Option<Nanos>,
    /// [`Event::CancelOrders`] is due, after all other events.
    pub(super) cancels: bool,
}

/// The rate of messages, where it is bounded.
#[derive(Debug)]
pub(super) struct Pace {
    pub(super) pace_out: Option<PaceOut>,
    pub(super) pace_in: Option<PaceIn>,
}

/// What the session is run by.
#[derive(Debug)]
pub(super) struct SessionTerms {
    pub(super) config: SessionConfig,
    pub(super) checker: Option<Checker>,
}

persist!(struct SessionClock { now, wall_offset_ns, wall_before });

persist!(struct Silence { status_since, last_sent, last_received, test_outstanding });

persist!(struct Gaps { gap, seen_max });

persist!(struct Resending { resend, resend_verdict, told, not_kept });

persist!(struct Telling { events, ending });

persist!(struct ConnectionState { was_on, was_reset, logged_out, cancel_at, cancels });

impl Persist for Pace {
    fn save(&self, out: &mut vec::Vec<u8>) {
        save_each(self.pace_out.iter(), out);
        save_each(self.pace_in.iter(), out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        load_each(self.pace_out.iter_mut(), from)?;
        load_each(self.pace_in.iter_mut(), from)
    }
}
