//! The client of the Gap Request Proxy. PITCH 2.41.29, "Gap Request Proxy".
//!
//! One connection serves every unit. What is asked for comes on the unit's gap response group, from where the owner hands
//! it to the feed as [`crate::Line::Retransmit`]; the answer here only says whether it comes. The feed asks again by its own
//! timer, so an answer needs no action.

use super::session::{PitchLogin, Said, UnitSession};
use crate::framing::Framing;
use crate::soup::SoupFailure;
use crate::{MissingRange, PitchUnit};
use tickwire_market::Nanos;
use tickwire_wire::pitch::{self, GapResponse, Message, gap_limits};

/// How many requests can wait to be sent.
const WAITING: usize = 16;

/// What the proxy said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GapEvent {
    /// The login was accepted: requests can be sent.
    LoggedIn,
    /// A request was accepted or not, see [`GapResponse`]: `A` accepted.
    Answered(GapResponse),
    /// The connection is of no further use.
    Failed(SoupFailure),
}

/// How often something may happen in a span of time, counted from the first time in it.
#[derive(Clone, Copy)]
struct Quota {
    span_ns: u64,
    max: u32,
    since: Nanos,
    used: u32,
}

impl Quota {
    const fn new(span_ns: u64, max: u32) -> Quota {
        Quota {
            span_ns,
            max,
            since: Nanos::ZERO,
            used: 0,
        }
    }

    fn has_room(&self, now: Nanos) -> bool {
        self.used < self.max || now.since(self.since) >= self.span_ns
    }

    fn take(&mut self, now: Nanos) {
        if self.used == 0 || now.since(self.since) >= self.span_ns {
            (self.since, self.used) = (now, 0);
        }
        self.used += 1;
    }
}

/// A session with the proxy.
pub struct GapProxy {
    session: UnitSession,
    waiting: [Option<MissingRange>; WAITING],
    quotas: [Quota; 3],
}

impl GapProxy {
    /// A session that is not connected. All memory it will ever use is taken here.
    pub fn new(login: PitchLogin) -> GapProxy {
        GapProxy {
            session: UnitSession::new(login),
            waiting: [None; WAITING],
            quotas: [
                Quota::new(Nanos::SECOND, gap_limits::SECOND),
                Quota::new(60 * Nanos::SECOND, gap_limits::MINUTE),
                Quota::new(Nanos::DAY, gap_limits::DAY),
            ],
        }
    }

    /// Asks for a range that a unit's feed misses ([`crate::FeedHandler::poll_missing`]), at most its first 100 messages.
    /// `false`, and nothing changed, if it cannot be asked for now: not logged in, a quota is used up, or 16 requests
    /// wait to be sent. The feed then asks again after its timeout.
    #[must_use]
    pub fn ask(&mut self, now: Nanos, range: MissingRange) -> bool {
        if !self.session.is_in() || !self.quotas.iter().all(|quota| quota.has_room(now)) {
            return false;
        }
        let Some(place) = self.waiting.iter_mut().find(|place| place.is_none()) else {
            return false;
        };
        *place = Some(MissingRange {
            count: range.count.min(gap_limits::MESSAGES),
            ..range
        });
        self.quotas.iter_mut().for_each(|quota| quota.take(now));
        true
    }

    /// A connection is there: logs in over it.
    pub fn handle_connected(&mut self, now: Nanos) {
        self.session.handle_connected(now);
        self.waiting = [None; WAITING];
    }

    /// The next bytes of the connection, at most [`crate::STREAM_CHUNK_MAX`].
    pub fn handle_bytes(&mut self, now: Nanos, bytes: &[u8]) {
        self.session.handle_bytes(now, bytes);
    }

    /// The connection is gone.
    pub fn handle_closed(&mut self) {
        self.session.handle_closed();
    }

    /// Heartbeats, and patience running out.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.session.handle_timeout(now);
    }

    /// The next bytes to send, written into `buffer` of at least 30 bytes.
    pub fn poll_transmit<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let length = match self.session.transmit(buffer) {
            Some(length) => length,
            None if !self.session.is_in() => return None,
            None => {
                let range = self.waiting[0].take()?;
                self.waiting.rotate_left(1);
                PitchUnit::request(range, buffer)?
            }
        };
        buffer.get(..length)
    }

    /// The next thing the proxy said. Messages of other types are skipped.
    pub fn poll_event(&mut self) -> Option<GapEvent> {
        loop {
            match self.session.poll()? {
                Said::LoggedIn => return Some(GapEvent::LoggedIn),
                Said::Failed(failure) => return Some(GapEvent::Failed(failure)),
                Said::Message(message) => {
                    if let Ok(Message::GapResponse(response)) = pitch::parse(message) {
                        return Some(GapEvent::Answered(*response));
                    }
                }
            }
        }
    }

    /// When to call [`GapProxy::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.session.poll_timeout()
    }
}
