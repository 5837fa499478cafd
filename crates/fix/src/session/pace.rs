//! Message rates of a session: ours wait in the transmit buffer behind gates, the peer's wait unread.

use super::{Again, Core, DisconnectReason, Outcome, SendError};
use crate::buffer::Ring;
use crate::decode::Message;
use crate::encode::Encoder;
use crate::header::Header;
use crate::message::business_reject_reason;
use crate::session::Status;
use crate::store::Store;
use crate::throttle::{Bucket, Excess, Throttle};
use crate::time::Stamp;
use crate::version::Version;
use tickwire_market::{Counter, Nanos, SeqNo};
use tickwire_persist::persist;

/// Delayed messages at once; more are refused as backlog.
const GATES: usize = 1024;
/// What the peer is told.
const EXCEEDED: &str = "Message rate exceeded";

/// A place among the bytes to transmit that opens at a time.
#[derive(Clone, Copy, Debug)]
struct Gate {
    /// In the endless stream of bytes of this connection.
    at: u64,
    opens: Nanos,
}

/// The rate of what we send.
#[derive(Debug)]
pub(super) struct PaceOut {
    bucket: Bucket,
    excess: Excess,
    gates: Ring<Gate>,
    /// Bytes transmitted on this connection.
    transmitted: u64,
}

impl PaceOut {
    pub(super) fn new(throttle: Throttle) -> PaceOut {
        PaceOut {
            bucket: Bucket::new(throttle),
            excess: throttle.excess,
            gates: Ring::new(GATES),
            transmitted: 0,
        }
    }

    /// The connection is gone with what waited.
    pub(super) fn forget(&mut self) {
        self.gates.clear();
        self.transmitted = 0;
    }

    /// Of the next `n` bytes, how many may be transmitted: they count as transmitted.
    pub(super) fn release(&mut self, now: Nanos, n: usize) -> usize {
        while self.gates.front().is_some_and(|gate| gate.opens <= now) {
            self.gates.pop();
        }
        let until = self.gates.front().map_or(u64::MAX, |gate| gate.at);
        let n = n.min(usize::try_from(until - self.transmitted).unwrap_or(usize::MAX));
        self.transmitted += n as u64;
        n
    }

    pub(super) fn admits(&self, now: Nanos) -> bool {
        self.bucket.admits(now)
    }

    pub(super) fn take(&mut self, now: Nanos) {
        self.bucket.take(now);
    }

    /// When something that waits may go on.
    pub(super) fn resumes(&self, now: Nanos, resends: bool) -> Option<Nanos> {
        let gate = self.gates.front().map(|gate| gate.opens);
        let token = resends.then(|| self.bucket.free_at(now));
        [gate, token].into_iter().flatten().filter(|at| *at > now).min()
    }
}

/// The rate of what we receive.
#[derive(Debug)]
pub(super) struct PaceIn {
    bucket: Bucket,
    excess: Excess,
}

impl PaceIn {
    pub(super) fn new(throttle: Throttle) -> PaceIn {
        PaceIn {
            bucket: Bucket::new(throttle),
            excess: throttle.excess,
        }
    }

    /// Nothing is read now.
    pub(super) fn holds(&self, now: Nanos) -> bool {
        self.excess == Excess::Delay && !self.bucket.admits(now)
    }

    /// When reading goes on.
    pub(super) fn resumes(&self, now: Nanos) -> Option<Nanos> {
        self.holds(now).then(|| self.bucket.free_at(now))
    }
}

impl<S: Store> Core<S> {
    /// Sends an application message within the configured rate, with what becomes of it when it is asked for
    /// again.
    #[inline]
    pub(super) fn send_paced(
        &mut self,
        msg_type: &[u8],
        again: Again,
        body: impl FnOnce(&mut Encoder<'_>, &mut Stamp),
    ) -> Result<SeqNo, SendError> {
        if self.status != Status::Active {
            return Err(SendError::NotLoggedOn);
        }
        if self.pace.pace_out.is_none() {
            return self.send_encoded(msg_type, again, body);
        }
        let is_late = self.ask_rate(true)?;
        let before = self.out.as_slice().len() as u64;
        let seq = self.send_encoded(msg_type, again, body)?;
        if let Some(pace) = &mut self.pace.pace_out {
            let opens = pace.bucket.take(self.clock.now);
            if is_late {
                let at = pace.transmitted + before;
                pace.gates.push(Gate { at, opens });
            }
        }
        Ok(seq)
    }

    /// A message that is transmitted by the caller: within the rate, or not at all.
    #[cold]
    pub(super) fn pace_at_once(&mut self) -> Result<(), SendError> {
        self.ask_rate(false)?;
        if let Some(pace) = &mut self.pace.pace_out {
            pace.bucket.take(self.clock.now);
        }
        Ok(())
    }

    /// Whether a message would be beyond the rate and has to wait; an error if it must not be sent.
    #[cold]
    fn ask_rate(&mut self, may_wait: bool) -> Result<bool, SendError> {
        let Some(pace) = &self.pace.pace_out else {
            return Ok(false);
        };
        if pace.admits(self.clock.now) {
            return Ok(false);
        }
        let until = pace.bucket.free_at(self.clock.now);
        let (excess, has_room) = (pace.excess, pace.gates.room() > 0);
        self.counters.bump(Counter::FixThrottled);
        match excess {
            Excess::Delay if may_wait && has_room => return Ok(true),
            Excess::Delay if may_wait => return Err(SendError::Backlog),
            Excess::Delay | Excess::Reject => {}
            Excess::Disconnect => self
                .seldom()
                .logout_and_disconnect(DisconnectReason::Throttled, EXCEEDED),
        }
        Err(SendError::Throttled { until })
    }

    /// Of the next `n` bytes to transmit, how many may leave. A session that ends lets go of what it held
    /// back.
    pub(super) fn released(&mut self, n: usize) -> usize {
        match &mut self.pace.pace_out {
            Some(pace) if self.status != Status::Closing => pace.release(self.clock.now, n),
            _ => n,
        }
    }
}

impl Core<dyn Store + '_> {
    /// Counts a message of the peer; what becomes of it if it is beyond the rate.
    #[cold]
    pub(super) fn beyond_rate(&mut self, m: &Message<'_>, h: &Header<'_>, seq: u64) -> Option<Outcome> {
        let pace = self.pace.pace_in.as_mut()?;
        let is_within = pace.bucket.admits(self.clock.now);
        if is_within || pace.excess == Excess::Delay {
            pace.bucket.take(self.clock.now);
            if pace.holds(self.clock.now) {
                self.counters.bump(Counter::FixThrottled);
            }
            return None;
        }
        if h.poss_dup {
            // We asked for it.
            return None;
        }
        let excess = pace.excess;
        self.counters.bump(Counter::FixThrottled);
        if excess == Excess::Disconnect {
            self.logout_and_disconnect(DisconnectReason::Throttled, EXCEEDED);
            return Some(Outcome::Done);
        }
        self.advance(seq + 1);
        let reason = match self.terms.config.version {
            Version::Fix50Sp2 => business_reject_reason::THROTTLE_LIMIT_EXCEEDED,
            _ => business_reject_reason::OTHER,
        };
        self.refuse(m, seq, reason, EXCEEDED);
        Some(Outcome::Done)
    }
}

persist!(value struct Gate { at, opens });
persist!(struct PaceOut { bucket, gates, transmitted } not { excess });
persist!(struct PaceIn { bucket } not { excess });
