//! The server's side of a SoupBinTCP 3.00 connection (2017-02-22): login, numbered messages, heartbeats, end
//! of session. The client's side is `tickwire_feed::SoupClient`.
//!
//! A server serves one connection at a time; what it serves (a snapshot, a day's messages, order entry) is
//! its owner's. Bytes enter through [`SoupServer::handle_bytes`], then [`SoupServer::poll_event`] says what
//! the client wants; the owner answers a login with [`SoupServer::accept`] or [`SoupServer::reject`] and puts
//! messages in with [`SoupServer::send`].
//!
//! ```text
//!  connect ─► LoginAwaited ─► Login (event) ─► accept ─► Serving ─► end ─► Closing
//!                                          └─► reject ─► Closing
//! ```
//! Numbers are the owner's to keep: a client that comes again asks for the next one it wants, and the owner
//! sends from there.

use alloc::vec::Vec;

use tickwire_market::{Nanos, SeqNo};
use tickwire_persist::persist;
use tickwire_wire::layout::{Alpha, trim};
use tickwire_wire::soupbintcp::{HEADER_SIZE, LoginAccepted, LoginRejected, Packet, RejectReason, split};

use crate::outbox::Outbox;

/// Times of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SoupServerConfig {
    /// Silence of ours before a heartbeat. SoupBinTCP says 1 s.
    pub heartbeat_ns: u64,
    /// Silence of the client before we hang up. SoupBinTCP suggests 15 s.
    pub silence_max_ns: u64,
}

impl Default for SoupServerConfig {
    fn default() -> SoupServerConfig {
        SoupServerConfig {
            heartbeat_ns: Nanos::SECOND,
            silence_max_ns: 15 * Nanos::SECOND,
        }
    }
}

/// What a client says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SoupLogin {
    /// The user, padded with spaces.
    pub username: Alpha<6>,
    /// The password, padded with spaces.
    pub password: Alpha<10>,
    /// The session, padded with spaces on either side; spaces: the current one.
    pub session: [u8; 10],
    /// The first message wanted; 0: from now on.
    pub from: SeqNo,
}

impl SoupLogin {
    /// Whether the session asked for is this one, or the current one.
    pub fn is_for(&self, current: &[u8; 10]) -> bool {
        let asked = self.session.trim_ascii();
        asked.is_empty() || asked == current.trim_ascii()
    }
}

/// What came from the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SoupRequest {
    /// It wants in: answer with [`SoupServer::accept`] or [`SoupServer::reject`]. Nothing else comes before
    /// that.
    Login(SoupLogin),
    /// An unnumbered message of so many bytes: [`SoupServer::message`] has it until the next call of
    /// [`SoupServer::poll_event`].
    Message(usize),
}

/// Client packets are short; a longer one is not for us.
const RECEIVE_MAX: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Disconnected,
    LoginAwaited,
    /// The owner has to answer.
    LoginAsked,
    Serving,
    /// What is left goes out, then the transport is closed.
    Closing,
}

/// See the module's description. Reusable: [`SoupServer::connect`] starts anew.
#[derive(Debug)]
pub struct SoupServer {
    config: SoupServerConfig,
    state: State,
    received: Vec<u8>,
    /// `received[..start]` has been read.
    start: usize,
    /// The message of the last event.
    message: (usize, usize),
    out: Outbox,
    sent_at: Nanos,
    heard_at: Nanos,
}

impl SoupServer {
    /// Not connected. `out_bytes` is how much waiting output there is memory for at first.
    pub fn new(config: SoupServerConfig, out_bytes: usize) -> SoupServer {
        SoupServer {
            config,
            state: State::Disconnected,
            received: Vec::with_capacity(RECEIVE_MAX),
            start: 0,
            message: (0, 0),
            out: Outbox::with_capacity(out_bytes),
            sent_at: Nanos::ZERO,
            heard_at: Nanos::ZERO,
        }
    }

    /// The transport is connected; the client logs in next.
    pub fn connect(&mut self, now: Nanos) {
        self.received.clear();
        (self.start, self.message) = (0, (0, 0));
        self.out.clear();
        (self.sent_at, self.heard_at) = (now, now);
        self.state = State::LoginAwaited;
    }

    /// The transport is gone.
    pub fn disconnect(&mut self) {
        self.state = State::Disconnected;
        self.received.clear();
        (self.start, self.message) = (0, (0, 0));
        self.out.clear();
    }

    /// Whether there is a connection.
    pub fn is_connected(&self) -> bool {
        self.state != State::Disconnected
    }

    /// Whether the client is logged in.
    pub fn is_serving(&self) -> bool {
        self.state == State::Serving
    }

    /// Whether the transport is to be closed now: all is sent and the session is over.
    pub fn wants_close(&self) -> bool {
        self.state == State::Closing && self.out.is_empty()
    }

    /// Bytes from the client, cut anywhere: how many were taken. Fewer than all only when events were not
    /// drained; a client that does not speak the protocol is hung up on, and its bytes are taken.
    pub fn handle_bytes(&mut self, now: Nanos, bytes: &[u8]) -> usize {
        if matches!(self.state, State::Disconnected | State::Closing) {
            return bytes.len();
        }
        self.heard_at = now;
        self.received.drain(..self.start);
        (self.start, self.message) = (0, (0, 0));
        let taken = bytes.len().min(RECEIVE_MAX - self.received.len());
        self.received.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// The next thing the client said.
    pub fn poll_event(&mut self) -> Option<SoupRequest> {
        loop {
            if !matches!(self.state, State::LoginAwaited | State::Serving) {
                return None;
            }
            let rest = &self.received[self.start..];
            let (packet, length) = match split(rest) {
                Ok(Some(found)) => found,
                // A packet that does not fit is longer than any a client has to send.
                Ok(None) if rest.len() >= RECEIVE_MAX || announced(rest) > RECEIVE_MAX => {
                    self.state = State::Closing;
                    return None;
                }
                Ok(None) => return None,
                Err(_) => {
                    self.state = State::Closing;
                    return None;
                }
            };
            let at = self.start;
            self.start += length;
            match (packet, self.state) {
                (Packet::LoginRequest(login), State::LoginAwaited) => {
                    self.state = State::LoginAsked;
                    return Some(SoupRequest::Login(SoupLogin {
                        username: login.username,
                        password: login.password,
                        session: login.session.0,
                        from: SeqNo(login.sequence.get().unwrap_or(0)),
                    }));
                }
                (Packet::Unsequenced(message), State::Serving) => {
                    let size = message.len();
                    self.message = (at + HEADER_SIZE, at + length);
                    return Some(SoupRequest::Message(size));
                }
                (Packet::LogoutRequest, _) => self.state = State::Closing,
                // Heartbeats count as being heard; anything else from a client means nothing here.
                _ => {}
            }
        }
    }

    /// The message of the last [`SoupRequest::Message`].
    pub fn message(&self) -> &[u8] {
        &self.received[self.message.0..self.message.1]
    }

    /// Lets the client in: the session it is in, and the number of the first message to follow.
    pub fn accept(&mut self, session: &[u8], next: SeqNo) {
        if self.state == State::LoginAsked {
            self.state = State::Serving;
            if let Some(accepted) = LoginAccepted::new(session, next.0) {
                self.put(&Packet::LoginAccepted(&accepted));
            }
        }
    }

    /// Refuses the client, and closes.
    pub fn reject(&mut self, reason: RejectReason) {
        if self.state == State::LoginAsked {
            self.put(&Packet::LoginRejected(&LoginRejected::new(reason)));
            self.state = State::Closing;
        }
    }

    /// The next numbered message.
    pub fn send(&mut self, message: &[u8]) {
        if self.state == State::Serving {
            self.put(&Packet::Sequenced(message));
        }
    }

    /// No more messages in this session; then closes.
    pub fn end(&mut self) {
        if self.state == State::Serving {
            self.put(&Packet::EndOfSession);
            self.state = State::Closing;
        }
    }

    /// Hangs up once what waits is sent.
    pub fn close(&mut self) {
        if self.state != State::Disconnected {
            self.state = State::Closing;
        }
    }

    /// Bytes that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.out.waiting()
    }

    /// Time has passed: heartbeat, or the client has been silent for too long.
    pub fn handle_timeout(&mut self, now: Nanos) {
        match self.state {
            State::Disconnected | State::Closing => {}
            _ if now.since(self.heard_at) >= self.config.silence_max_ns => self.state = State::Closing,
            State::LoginAwaited | State::LoginAsked => {}
            State::Serving => {
                if now.since(self.sent_at) >= self.config.heartbeat_ns && self.out.is_empty() {
                    self.put(&Packet::ServerHeartbeat);
                    self.sent_at = now;
                }
            }
        }
    }

    /// When [`SoupServer::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let hang_up = self.heard_at.after(self.config.silence_max_ns);
        match self.state {
            State::Disconnected | State::Closing => None,
            State::LoginAwaited | State::LoginAsked => Some(hang_up),
            State::Serving => Some(hang_up.min(self.sent_at.after(self.config.heartbeat_ns))),
        }
    }

    /// Bytes to send, as many as fit.
    pub fn poll_transmit<'b>(&mut self, now: Nanos, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let bytes = self.out.transmit(buf)?;
        self.sent_at = now;
        Some(bytes)
    }

    fn put(&mut self, packet: &Packet<'_>) {
        let out = self.out.tail();
        let start = out.len();
        let payload = match packet {
            Packet::Sequenced(message) => message.len(),
            _ => 64,
        };
        out.resize(start + payload + HEADER_SIZE, 0);
        let length = packet.encode(&mut out[start..]).unwrap_or(0);
        out.truncate(start + length);
    }
}

/// Bytes of the packet that begins here, as its length field says; 0 when that is not there yet.
fn announced(stream: &[u8]) -> usize {
    stream
        .first_chunk::<2>()
        .map_or(0, |length| 2 + usize::from(u16::from_be_bytes(*length)))
}

/// A session's name without padding on either side, as logins are compared.
pub(crate) fn same_session(a: &[u8; 10], b: &[u8; 10]) -> bool {
    trim(a).trim_ascii_start() == trim(b).trim_ascii_start()
}

persist!(value enum State { 0 => Disconnected, 1 => LoginAwaited, 2 => LoginAsked, 3 => Serving, 4 => Closing });
persist!(struct SoupServer { state, received, start, message, out, sent_at, heard_at } not { config });
