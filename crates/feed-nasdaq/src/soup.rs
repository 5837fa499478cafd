//! The client's side of a SoupBinTCP 3.00 session (2017-02-22): login, numbered messages, heartbeats.
//!
//! Bytes of the connection enter through [`SoupClient::handle_bytes`] as they come; then drain
//! [`SoupClient::poll_transmit`], [`SoupClient::poll_event`], [`SoupClient::poll_timeout`], in that order.

use crate::{STREAM_CHUNK_MAX, SoupFailure};
use alloc::{vec, vec::Vec};
use tickwire_market::{Nanos, SeqNo};
use tickwire_wire_core::Malformed;
use tickwire_wire_core::layout::Alpha;
use tickwire_wire_core::layout::Pod;
use tickwire_wire_nasdaq::soupbintcp::{HEADER_SIZE, LoginRequest, PAYLOAD_SIZE_MAX, Packet, split};

/// What a login says, and how patient the client is.
#[derive(Clone, Debug)]
pub struct SoupConfig {
    /// The user.
    pub username: Alpha<6>,
    /// The password, in clear text on the wire.
    pub password: Alpha<10>,
    /// The session wanted; spaces: the current one.
    pub session: Alpha<10>,
    /// The first message wanted; 1: all, 0: only new ones.
    pub sequence: u64,
    /// How long to be silent before a heartbeat. SoupBinTCP says 1 s.
    pub heartbeat_ns: u64,
    /// How long the server may be silent, also after the login request. SoupBinTCP suggests 15 s.
    pub silence_ns: u64,
}

impl Default for SoupConfig {
    fn default() -> SoupConfig {
        SoupConfig {
            username: Alpha([b' '; 6]),
            password: Alpha([b' '; 10]),
            session: Alpha([b' '; 10]),
            sequence: 1,
            heartbeat_ns: Nanos::SECOND,
            silence_ns: 15 * Nanos::SECOND,
        }
    }
}

/// What the server said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SoupEvent<'a> {
    /// The login was accepted.
    LoggedIn {
        /// The session, padded with spaces on the left.
        session: [u8; 10],
        /// The number of the next message.
        next: SeqNo,
    },
    /// A numbered message.
    Message {
        /// Its number.
        seq: SeqNo,
        /// The message.
        bytes: &'a [u8],
    },
    /// An unnumbered message (some venues).
    Unsequenced(&'a [u8]),
    /// No more messages will come in this session.
    EndOfSession,
    /// The session cannot go on.
    Failed(SoupFailure),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    LoggingIn,
    In,
    Over,
}

/// A session as the client sees it.
pub struct SoupClient {
    config: SoupConfig,
    phase: Phase,
    next: u64,
    stream: Vec<u8>,
    /// `stream[start..end]` has come and has not been read.
    start: usize,
    end: usize,
    failure: Option<SoupFailure>,
    heard: Nanos,
    said: Nanos,
    says_login: bool,
    says_heartbeat: bool,
    says_goodbye: bool,
    /// Unnumbered messages that wait to be sent, as packets; the first `sent` bytes have been.
    out: Vec<u8>,
    sent: usize,
}

impl SoupClient {
    /// A session that is not connected. All memory it will ever use is taken here.
    pub fn new(config: SoupConfig) -> SoupClient {
        SoupClient {
            config,
            phase: Phase::Idle,
            next: 0,
            stream: vec![0; HEADER_SIZE + PAYLOAD_SIZE_MAX + STREAM_CHUNK_MAX],
            start: 0,
            end: 0,
            failure: None,
            heard: Nanos::ZERO,
            said: Nanos::ZERO,
            says_login: false,
            says_heartbeat: false,
            says_goodbye: false,
            out: Vec::new(),
            sent: 0,
        }
    }

    /// A connection is there: logs in over it. Forgets what the connection before it left behind.
    pub fn handle_connected(&mut self, now: Nanos) {
        self.phase = Phase::LoggingIn;
        (self.start, self.end, self.failure) = (0, 0, None);
        (self.heard, self.said) = (now, now);
        (self.says_login, self.says_heartbeat, self.says_goodbye) = (true, false, false);
        self.out.clear();
        self.sent = 0;
    }

    /// Sends an unnumbered message. `false`, and nothing is sent, unless logged in, or if more than
    /// [`STREAM_CHUNK_MAX`] bytes would wait: the server does not read. It is lost if the connection is.
    pub fn send(&mut self, now: Nanos, message: &[u8]) -> bool {
        let start = self.out.len();
        let need = HEADER_SIZE + message.len();
        if self.phase != Phase::In || start - self.sent + need > STREAM_CHUNK_MAX {
            return false;
        }
        self.out.resize(start + need, 0);
        let written = Packet::Unsequenced(message).encode(&mut self.out[start..]);
        self.out.truncate(start + written.unwrap_or(0));
        self.said = now;
        written.is_some()
    }

    /// What to ask for at the next login: a session and the next number wanted in it.
    pub fn ask_for(&mut self, session: Alpha<10>, sequence: u64) {
        (self.config.session, self.config.sequence) = (session, sequence);
    }

    /// The next bytes of the stream, at most [`STREAM_CHUNK_MAX`].
    pub fn handle_bytes(&mut self, now: Nanos, bytes: &[u8]) {
        if !self.is_open() {
            return;
        }
        self.heard = now;
        self.stream.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        match self.stream.get_mut(self.end..self.end + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.end += bytes.len();
            }
            None => self.fail(SoupFailure::Overflow),
        }
    }

    /// The connection is gone.
    pub fn handle_closed(&mut self) {
        if self.is_open() {
            self.fail(SoupFailure::Closed);
        }
    }

    /// Heartbeats, and patience running out.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if !self.is_open() {
            return;
        }
        if now.since(self.heard) >= self.config.silence_ns {
            self.fail(SoupFailure::Silent);
        } else if self.phase == Phase::In && now.since(self.said) >= self.config.heartbeat_ns {
            self.said = now;
            self.says_heartbeat = true;
        }
    }

    /// Says goodbye; the server closes.
    pub fn log_out(&mut self) {
        if self.is_open() {
            self.phase = Phase::Over;
            self.says_goodbye = true;
        }
    }

    /// The next bytes to send, written into `buffer`, which must hold a login request (49 bytes).
    pub fn poll_transmit<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let len = if self.says_login {
            self.says_login = false;
            let SoupConfig {
                username,
                password,
                session,
                sequence,
                ..
            } = &self.config;
            let login = LoginRequest::new(&username.0, &password.0, &session.0, *sequence)?;
            buffer
                .get_mut(..LoginRequest::SIZE)?
                .copy_from_slice(login.as_bytes());
            LoginRequest::SIZE
        } else if self.sent < self.out.len() {
            let len = buffer.len().min(self.out.len() - self.sent);
            buffer[..len].copy_from_slice(&self.out[self.sent..self.sent + len]);
            self.sent += len;
            if self.sent == self.out.len() {
                self.out.clear();
                self.sent = 0;
            }
            // Whoever sends need not say that it lives.
            self.says_heartbeat = false;
            len
        } else if self.says_heartbeat {
            self.says_heartbeat = false;
            Packet::ClientHeartbeat.encode(buffer)?
        } else if self.says_goodbye {
            self.says_goodbye = false;
            Packet::LogoutRequest.encode(buffer)?
        } else {
            return None;
        };
        Some(&buffer[..len])
    }

    /// The next thing the server said.
    pub fn poll_event(&mut self) -> Option<SoupEvent<'_>> {
        loop {
            if let Some(failure) = self.failure.take() {
                return Some(SoupEvent::Failed(failure));
            }
            if !self.is_open() {
                return None;
            }
            // The range is found first: the event borrows the stream.
            let (len, step) = match split(&self.stream[self.start..self.end]) {
                Ok(None) => return None,
                Ok(Some((packet, len))) => (len, Step::of(&packet, self.phase)),
                Err(malformed) => (0, Step::Fail(SoupFailure::Malformed(malformed))),
            };
            let payload = self.start + HEADER_SIZE..self.start + len.max(HEADER_SIZE);
            self.start += len;
            match step {
                Step::Skip => {}
                Step::Fail(failure) => self.fail(failure),
                Step::LogIn { session, next } => {
                    (self.phase, self.next) = (Phase::In, next);
                    return Some(SoupEvent::LoggedIn {
                        session,
                        next: SeqNo(next),
                    });
                }
                Step::Message => {
                    let seq = SeqNo(self.next);
                    self.next = self.next.saturating_add(1);
                    return Some(SoupEvent::Message {
                        seq,
                        bytes: &self.stream[payload],
                    });
                }
                Step::Unsequenced => return Some(SoupEvent::Unsequenced(&self.stream[payload])),
                Step::End => {
                    self.phase = Phase::Over;
                    return Some(SoupEvent::EndOfSession);
                }
            }
        }
    }

    /// When to call [`SoupClient::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let silent = self.heard.after(self.config.silence_ns);
        match self.phase {
            Phase::Idle | Phase::Over => None,
            Phase::LoggingIn => Some(silent),
            Phase::In => Some(silent.min(self.said.after(self.config.heartbeat_ns))),
        }
    }

    /// Whether the connection is in use.
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::LoggingIn | Phase::In)
    }

    /// The number of the next message.
    pub fn next_seq(&self) -> SeqNo {
        SeqNo(self.next)
    }

    fn fail(&mut self, failure: SoupFailure) {
        self.phase = Phase::Over;
        self.failure = Some(failure);
    }
}

/// What a packet does to the session.
enum Step {
    Skip,
    LogIn { session: [u8; 10], next: u64 },
    Message,
    Unsequenced,
    End,
    Fail(SoupFailure),
}

impl Step {
    fn of(packet: &Packet<'_>, phase: Phase) -> Step {
        match (packet, phase) {
            (Packet::LoginAccepted(accepted), Phase::LoggingIn) => match accepted.sequence.get() {
                Some(next) => Step::LogIn {
                    session: accepted.session.0,
                    next,
                },
                None => Step::Fail(SoupFailure::Malformed(Malformed::OutOfRange { offset: 13 })),
            },
            (Packet::LoginRejected(rejected), _) => Step::Fail(SoupFailure::Rejected(rejected.reason.0)),
            (Packet::Sequenced(_), Phase::In) => Step::Message,
            (Packet::Unsequenced(_), Phase::In) => Step::Unsequenced,
            (Packet::EndOfSession, Phase::In) => Step::End,
            (Packet::Sequenced(_) | Packet::Unsequenced(_) | Packet::EndOfSession, _) => {
                Step::Fail(SoupFailure::NotLoggedIn)
            }
            _ => Step::Skip,
        }
    }
}
