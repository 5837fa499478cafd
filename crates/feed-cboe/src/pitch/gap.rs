//! The client of the Gap Request Proxy. PITCH 2.41.29, "Gap Request Proxy".
//!
//! One connection serves every unit. What is asked for comes on the unit's gap response group, from where the
//! owner hands it to the feed as [`crate::Line::Retransmit`]; the answer here only says whether it comes. The
//! feed asks again by its own timer, so an answer needs no action.

use super::session::{PitchLogin, Said, UnitSession};
use crate::SoupFailure;
use crate::framing::Framing;
use crate::{MissingRange, PitchUnit};
use tickwire_market::Nanos;
use tickwire_wire_cboe::pitch::{self, GapResponse, Message, gap_limits};

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

/// A session with the proxy.
pub struct GapProxy {
    session: UnitSession,
    waiting: [Option<MissingRange>; WAITING],
}

impl GapProxy {
    /// A session that is not connected. All memory it will ever use is taken here.
    pub fn new(login: PitchLogin) -> GapProxy {
        GapProxy {
            session: UnitSession::new(login),
            waiting: [None; WAITING],
        }
    }

    /// Asks for a range that a unit's feed misses ([`crate::FeedHandler::poll_missing`]), at most its first
    /// 100 messages. `false`, and nothing changed, if it cannot be asked for now: not logged in, or 16
    /// requests wait to be sent. How often the proxy may be asked is the feed's to know
    /// ([`crate::RecoveryLimits::PITCH`]).
    #[must_use]
    pub fn ask(&mut self, range: MissingRange) -> bool {
        if !self.session.is_in() {
            return false;
        }
        let Some(place) = self.waiting.iter_mut().find(|place| place.is_none()) else {
            return false;
        };
        *place = Some(MissingRange {
            count: range.count.min(gap_limits::MESSAGES),
            ..range
        });
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
