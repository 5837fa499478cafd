//! TCP replay: the server's side of one connection. The client speaks FIX in text: logon, one request, logout; it gets FAST
//! messages behind their lengths: a logon, the messages asked for as they were sent, a logout with the reason if there is
//! one.

use alloc::vec::Vec;

use tickwire_fix::{Frame, Index, Message, frame};
use tickwire_market::{Nanos, SeqNo};
use tickwire_wire::moex::{Encoder, Template, replay};

use crate::mold::MessageStore;

/// Rules of the service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MoexReplayRules {
    /// The user that may log on.
    pub username: &'static str,
    /// Its password.
    pub password: &'static str,
    /// The most messages of one request.
    pub messages_max: u32,
    /// Silence of the client before we hang up.
    pub silence_max_ns: u64,
}

impl Default for MoexReplayRules {
    fn default() -> MoexReplayRules {
        MoexReplayRules {
            username: "user0",
            password: "pass0",
            messages_max: replay::MESSAGES_MAX,
            silence_max_ns: 5 * Nanos::SECOND,
        }
    }
}

/// What a connection needs of its publisher.
pub(super) struct Service<'a> {
    pub(super) rules: MoexReplayRules,
    /// `OLR` or `TLR`.
    pub(super) feed: &'a [u8],
    pub(super) store: &'a MessageStore,
    pub(super) encoder: &'a mut Encoder,
    pub(super) logon: Template,
    pub(super) logout: Template,
}

/// Client messages are short; more than this waiting is not FIX.
const RECEIVE_MAX: usize = 1024;
/// Bytes put together at once.
const CHUNK: usize = 16 << 10;
const FIELDS_MAX: usize = 64;

mod tag {
    pub(super) const SENDER: u32 = 49;
    pub(super) const USERNAME: u32 = 553;
    pub(super) const PASSWORD: u32 = 554;
    pub(super) const FEED: u32 = 1180;
    pub(super) const FIRST: u32 = 1182;
    pub(super) const LAST: u32 = 1183;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Disconnected,
    LogonAwaited,
    RequestAwaited,
    Sending {
        next: u64,
        last: u64,
    },
    /// We logged out; the client does next.
    LogoutAwaited,
    /// What is left goes out, then the transport is closed.
    Closing,
}

/// See the module's description. Reusable: [`ReplaySession::connect`] starts anew.
pub(super) struct ReplaySession {
    state: State,
    index: Index,
    received: Vec<u8>,
    client: Vec<u8>,
    /// Number of our next message.
    seq: u32,
    /// Waiting to be sent from `sent` on.
    out: Vec<u8>,
    sent: usize,
    heard_at: Nanos,
}

impl ReplaySession {
    pub(super) fn new() -> ReplaySession {
        ReplaySession {
            state: State::Disconnected,
            index: Index::new(FIELDS_MAX),
            received: Vec::with_capacity(RECEIVE_MAX),
            client: Vec::new(),
            seq: 1,
            out: Vec::with_capacity(CHUNK * 2),
            sent: 0,
            heard_at: Nanos::ZERO,
        }
    }

    pub(super) fn connect(&mut self, now: Nanos) {
        self.received.clear();
        self.out.clear();
        (self.sent, self.seq) = (0, 1);
        self.heard_at = now;
        self.state = State::LogonAwaited;
    }

    pub(super) fn disconnect(&mut self) {
        self.state = State::Disconnected;
    }

    pub(super) fn wants_close(&self) -> bool {
        self.state == State::Closing && self.sent == self.out.len()
    }

    /// Bytes from the client, cut anywhere. One that does not speak the protocol is hung up on.
    pub(super) fn handle_bytes(&mut self, now: Nanos, bytes: &[u8], service: &mut Service<'_>) {
        self.heard_at = now;
        for part in bytes.chunks(RECEIVE_MAX / 2) {
            if matches!(self.state, State::Disconnected | State::Closing) {
                return;
            }
            self.received.extend_from_slice(part);
            let received = core::mem::take(&mut self.received);
            let mut index = core::mem::replace(&mut self.index, Index::new(0));
            let mut read = 0;
            loop {
                match frame(&received[read..], RECEIVE_MAX / 2) {
                    Frame::Whole(length) => {
                        match index.decode(&received[read..read + length]) {
                            Ok(message) => self.on_message(now, &message, service),
                            Err(_) => self.state = State::Closing,
                        }
                        read += length;
                    }
                    Frame::Partial => break,
                    Frame::Garbled { .. } => {
                        self.state = State::Closing;
                        read = received.len();
                        break;
                    }
                }
            }
            self.index = index;
            self.received = received;
            self.received.drain(..read);
        }
    }

    /// The client may have been silent for too long.
    pub(super) fn handle_timeout(&mut self, now: Nanos, rules: &MoexReplayRules) {
        if self.poll_timeout(rules).is_some_and(|due| due <= now) {
            self.state = State::Closing;
        }
    }

    pub(super) fn poll_timeout(&self, rules: &MoexReplayRules) -> Option<Nanos> {
        let is_open = !matches!(self.state, State::Disconnected | State::Closing);
        is_open.then(|| self.heard_at.after(rules.silence_max_ns))
    }

    /// Bytes to send, as many as fit.
    pub(super) fn poll_transmit<'b>(
        &mut self,
        now: Nanos,
        service: &mut Service<'_>,
        buf: &'b mut [u8],
    ) -> Option<&'b [u8]> {
        self.pull(now, service);
        let waiting = &self.out[self.sent..];
        let count = waiting.len().min(buf.len());
        if count == 0 {
            return None;
        }
        let bytes = &mut buf[..count];
        bytes.copy_from_slice(&waiting[..count]);
        self.sent += count;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
        // A client that reads is not silent.
        self.heard_at = self.heard_at.max(now);
        Some(bytes)
    }

    fn on_message(&mut self, now: Nanos, message: &Message<'_>, service: &mut Service<'_>) {
        let text = |tag| message.find(tag).map_or(&b""[..], |field| message.value(field));
        let number = |tag| message.find(tag).and_then(|field| message.unsigned(field).ok());
        match (message.msg_type(), self.state) {
            (b"A", State::LogonAwaited) => {
                self.client = text(tag::SENDER).into();
                let rules = &service.rules;
                if (text(tag::USERNAME), text(tag::PASSWORD))
                    != (rules.username.as_bytes(), rules.password.as_bytes())
                {
                    return self.log_out(now, b"wrong user or password", service);
                }
                self.say(now, service.logon, b"", service);
                self.state = State::RequestAwaited;
            }
            (b"V", State::RequestAwaited) => {
                let range = number(tag::FIRST).zip(number(tag::LAST));
                match refusal(text(tag::FEED), range, service) {
                    Ok((next, last)) => self.state = State::Sending { next, last },
                    Err(reason) => self.log_out(now, reason, service),
                }
            }
            (b"5", _) => self.state = State::Closing,
            // Heartbeats count as being heard.
            (b"0", _) => {}
            (_, State::LogonAwaited) => self.log_out(now, b"logon first", service),
            (_, State::RequestAwaited) => self.log_out(now, b"not supported", service),
            // One request a connection: whatever comes during the answer or after it means nothing.
            _ => {}
        }
    }

    /// Puts messages of the store into the stream, as long as little waits.
    fn pull(&mut self, now: Nanos, service: &mut Service<'_>) {
        while let State::Sending { next, last } = self.state
            && self.out.len() - self.sent < CHUNK
        {
            let Some(datagram) = service.store.get(SeqNo(next)) else {
                return self.log_out(now, b"no longer kept", service);
            };
            let start = self.out.len();
            self.out.extend_from_slice(datagram);
            replay::put_length(&mut self.out[start..]);
            self.state = State::Sending { next: next + 1, last };
            if next == last {
                self.log_out(now, b"", service);
            }
        }
    }

    fn log_out(&mut self, now: Nanos, reason: &[u8], service: &mut Service<'_>) {
        self.say(now, service.logout, reason, service);
        self.state = State::LogoutAwaited;
    }

    fn say(&mut self, now: Nanos, template: Template, reason: &[u8], service: &mut Service<'_>) {
        let mut bytes = [0; 256];
        // A client's name that FAST cannot say is left out.
        let client = if self.client.iter().all(|byte| byte.is_ascii_graphic()) && self.client.len() <= 32 {
            &self.client[..]
        } else {
            b"CLIENT"
        };
        let written = service
            .encoder
            .session(template, self.seq, now, client, reason, &mut bytes);
        self.seq += 1;
        match written {
            Ok(length) => self.out.extend_from_slice(&bytes[..length]),
            Err(_) => self.state = State::Closing,
        }
    }
}

/// Whether the messages asked for can be had, and if not, why.
fn refusal(
    feed: &[u8],
    range: Option<(u64, u64)>,
    service: &Service<'_>,
) -> Result<(u64, u64), &'static [u8]> {
    let (first, last) = range.ok_or(&b"no range"[..])?;
    if feed != service.feed {
        return Err(b"no such feed");
    }
    if first == 0 || last < first || last >= service.store.next().0 {
        return Err(b"no such messages");
    }
    if last - first >= service.rules.messages_max.into() {
        return Err(b"too many messages");
    }
    if first < service.store.first().0 {
        return Err(b"no longer kept");
    }
    Ok((first, last))
}
