//! The request server of a NYSE channel: its side of the connections.
//!
//! A client's packets are requests; each is answered with whether it is accepted. The server sends a
//! heartbeat after a silence and hangs up on a client that does not answer it, or whose bytes are no packets.

use alloc::vec;
use alloc::vec::Vec;

use tickwire_market::Nanos;
use tickwire_wire::Malformed;

use super::RequestLimits;
use crate::outbox::Outbox;

/// What a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Units again, both included.
    Again(u32, u32),
    /// A snapshot of this instrument, or with 0 of all.
    Refresh(u32),
    /// A snapshot of the instrument of this name (OpenBook Ultra), padded with NULs.
    RefreshByName([u8; 16]),
    /// The mapping of this instrument, or with 0 of all.
    Mapping(u32),
    /// Nothing: it is still here.
    Alive,
    /// Something that nobody can ask for.
    Unknown,
}

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The number of its packet.
    pub number: u32,
    /// The client's name, padded with NULs.
    pub source: [u8; 20],
    pub product: u8,
    /// `None` where requests do not name it.
    pub channel: Option<u8>,
    pub ask: Ask,
}

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    BadRange,
    RangeTooBig,
    RequestsExhausted,
    RefreshesExhausted,
    TooOld,
    BadChannel,
    BadProduct,
    BadRequest,
}

/// The bytes of the conversation, from the server's side.
pub trait RequestFormat {
    /// The longest packet that a client sends, in bytes.
    const REQUEST_MAX: usize;

    /// Cuts the first packet off what a client sent, with the bytes it takes. An error ends the conversation.
    fn split(bytes: &[u8]) -> Result<Option<(Request, usize)>, Malformed>;

    /// Appends the answer, whose packet has this number.
    fn respond(
        &self,
        number: u32,
        request: &Request,
        verdict: Result<(), Refusal>,
        now: Nanos,
        out: &mut Vec<u8>,
    );

    /// Appends a heartbeat whose packet has this number.
    fn ask_alive(&self, number: u32, now: Nanos, out: &mut Vec<u8>);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Disconnected,
    Serving,
    /// What is left goes out, then the transport is closed.
    Closing,
}

struct Session {
    state: State,
    received: Vec<u8>,
    out: Outbox,
    sent_at: Nanos,
    /// A heartbeat that has not been answered, since then.
    asked_at: Option<Nanos>,
    number: u32,
}

/// See the module's description.
pub(crate) struct RequestServer<F> {
    limits: RequestLimits,
    sessions: Vec<Session>,
    format: core::marker::PhantomData<F>,
    /// Requests of the day, accepted or not.
    retransmissions: u32,
    refreshes: u32,
}

/// A client that does not read is hung up on when this much waits for it.
const WAITING_MAX: usize = 1 << 16;

impl<F: RequestFormat> RequestServer<F> {
    pub(crate) fn new(limits: RequestLimits, connections: usize) -> RequestServer<F> {
        let session = || Session {
            state: State::Disconnected,
            received: Vec::with_capacity(F::REQUEST_MAX * 2),
            out: Outbox::with_capacity(256),
            sent_at: Nanos::ZERO,
            asked_at: None,
            number: 1,
        };
        RequestServer {
            limits,
            sessions: (0..connections).map(|_| session()).collect(),
            format: core::marker::PhantomData,
            retransmissions: 0,
            refreshes: 0,
        }
    }

    pub(crate) fn connect(&mut self, id: usize, now: Nanos) -> bool {
        let Some(session) = self.sessions.get_mut(id) else {
            return false;
        };
        session.received.clear();
        session.out.clear();
        (session.sent_at, session.asked_at) = (now, None);
        (session.state, session.number) = (State::Serving, 1);
        true
    }

    pub(crate) fn disconnect(&mut self, id: usize) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.state = State::Disconnected;
        }
    }

    pub(crate) fn wants_close(&self, id: usize) -> bool {
        self.sessions
            .get(id)
            .is_some_and(|s| s.state == State::Closing && s.out.is_empty())
    }

    /// Bytes of a client, cut anywhere; then take the requests with [`RequestServer::take_request`], after
    /// every call.
    pub(crate) fn handle_bytes(&mut self, id: usize, bytes: &[u8]) {
        if let Some(session) = self.sessions.get_mut(id)
            && session.state == State::Serving
        {
            session.received.extend_from_slice(bytes);
        }
    }

    /// The next whole request of a client; those that ask for nothing are not told.
    pub(crate) fn take_request(&mut self, id: usize) -> Option<Request> {
        let session = self.sessions.get_mut(id)?;
        while session.state == State::Serving {
            match F::split(&session.received) {
                Ok(Some((request, used))) => {
                    session.received.drain(..used);
                    session.asked_at = None;
                    if request.ask != Ask::Alive {
                        return Some(request);
                    }
                }
                Ok(None) if session.received.len() < F::REQUEST_MAX => return None,
                Ok(None) | Err(_) => session.state = State::Closing,
            }
        }
        None
    }

    /// Whether a request may be served by what it asks and how much was asked today. Units `oldest` to
    /// `next`, exclusive, are there.
    pub(crate) fn judge(&mut self, ask: Ask, oldest: u64, next: u64) -> Result<(), Refusal> {
        match ask {
            Ask::Again(first, last) => {
                self.retransmissions += 1;
                if self.retransmissions > self.limits.retransmissions_max {
                    Err(Refusal::RequestsExhausted)
                } else if first == 0 || last < first || u64::from(last) >= next {
                    Err(Refusal::BadRange)
                } else if last - first >= self.limits.range_max {
                    Err(Refusal::RangeTooBig)
                } else if u64::from(last) < oldest {
                    Err(Refusal::TooOld)
                } else {
                    Ok(())
                }
            }
            Ask::Refresh(_) | Ask::RefreshByName(_) => {
                self.refreshes += 1;
                if self.refreshes > self.limits.refreshes_max {
                    Err(Refusal::RefreshesExhausted)
                } else {
                    Ok(())
                }
            }
            Ask::Mapping(_) | Ask::Alive => Ok(()),
            Ask::Unknown => Err(Refusal::BadRequest),
        }
    }

    pub(crate) fn respond(
        &mut self,
        id: usize,
        format: &F,
        now: Nanos,
        request: &Request,
        verdict: Result<(), Refusal>,
    ) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.say(now, |number, out| {
                format.respond(number, request, verdict, now, out)
            });
        }
    }

    /// Heartbeats; and clients that did not answer one are hung up on.
    pub(crate) fn handle_timeout(&mut self, format: &F, now: Nanos) {
        let limits = self.limits;
        for session in &mut self.sessions {
            if session.due(&limits).is_none_or(|due| due > now) {
                continue;
            }
            if session.asked_at.is_some() {
                session.state = State::Closing;
                continue;
            }
            session.say(now, |number, out| format.ask_alive(number, now, out));
            session.asked_at = Some(now);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Nanos> {
        self.sessions.iter().filter_map(|s| s.due(&self.limits)).min()
    }

    pub(crate) fn poll_transmit<'b>(&mut self, id: usize, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let session = self.sessions.get_mut(id)?;
        match session.state {
            State::Disconnected => None,
            State::Serving | State::Closing => session.out.transmit(buf),
        }
    }
}

impl Session {
    fn say(&mut self, now: Nanos, write: impl FnOnce(u32, &mut Vec<u8>)) {
        if self.state != State::Serving {
            return;
        }
        write(self.number, self.out.tail());
        self.number = self.number.wrapping_add(1);
        self.sent_at = now;
        if self.out.held() > WAITING_MAX {
            self.state = State::Closing;
        }
    }

    /// When it wants a heartbeat, or has not answered one in time.
    fn due(&self, limits: &RequestLimits) -> Option<Nanos> {
        match (self.state, self.asked_at) {
            (State::Serving, Some(asked)) => Some(asked.after(limits.answer_ns)),
            (State::Serving, None) => Some(self.sent_at.after(limits.heartbeat_ns)),
            _ => None,
        }
    }
}

/// Lets `write` fill a buffer of `size` bytes at the end of `out` and keeps as many as it says.
pub(crate) fn append(out: &mut Vec<u8>, size: usize, write: impl FnOnce(&mut [u8]) -> usize) {
    let start = out.len();
    out.extend(vec![0; size]);
    let length = write(&mut out[start..]);
    out.truncate(start + length);
}
