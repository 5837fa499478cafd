//! A TCP connection to a Gap Request Proxy or a Spin server: login, heartbeats, blocks of messages. PITCH
//! 2.41.29, "Gap Request Proxy" and "Spin Server".

use crate::{STREAM_CHUNK_MAX, SoupFailure};
use alloc::{vec, vec::Vec};
use tickwire_market::Nanos;
use tickwire_wire_cboe::pitch::{
    self, HEAD_SIZE, Login, LoginResponse, LoginStatus, PacketBuilder, UnitHeader,
};
use tickwire_wire_core::layout::Alpha;
use tickwire_wire_core::layout::Pod;

/// As whom to log in, and how patient the client is.
#[derive(Clone, Debug)]
pub struct PitchLogin {
    /// The session, for example `0001`.
    pub session_sub_id: Alpha<4>,
    /// The user.
    pub username: Alpha<4>,
    /// The password, in clear text on the wire.
    pub password: Alpha<10>,
    /// How long to be silent before a heartbeat. Default 2 s; the server disconnects after two intervals of 5
    /// s.
    pub heartbeat_ns: u64,
    /// How long the server may be silent, also after the login. Default 10 s; it sends a heartbeat every
    /// second.
    pub silence_ns: u64,
}

impl Default for PitchLogin {
    fn default() -> PitchLogin {
        PitchLogin {
            session_sub_id: Alpha([b' '; 4]),
            username: Alpha([b' '; 4]),
            password: Alpha([b' '; 10]),
            heartbeat_ns: 2 * Nanos::SECOND,
            silence_ns: 10 * Nanos::SECOND,
        }
    }
}

/// What the server said.
pub(super) enum Said<'a> {
    LoggedIn,
    Message(&'a [u8]),
    Failed(SoupFailure),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    LoggingIn,
    In,
    Over,
}

/// A connection as the client sees it.
pub(super) struct UnitSession {
    login: PitchLogin,
    phase: Phase,
    stream: Vec<u8>,
    /// `stream[start..end]` has come and has not been read.
    start: usize,
    end: usize,
    /// Messages of the current block that have not been read; the block was checked whole.
    block_left: usize,
    failure: Option<SoupFailure>,
    heard: Nanos,
    said: Nanos,
    says_login: bool,
    says_heartbeat: bool,
}

impl UnitSession {
    pub(super) fn new(login: PitchLogin) -> UnitSession {
        UnitSession {
            login,
            phase: Phase::Idle,
            stream: vec![0; usize::from(u16::MAX) + STREAM_CHUNK_MAX],
            start: 0,
            end: 0,
            block_left: 0,
            failure: None,
            heard: Nanos::ZERO,
            said: Nanos::ZERO,
            says_login: false,
            says_heartbeat: false,
        }
    }

    pub(super) fn handle_connected(&mut self, now: Nanos) {
        self.phase = Phase::LoggingIn;
        (self.start, self.end, self.block_left, self.failure) = (0, 0, 0, None);
        (self.heard, self.said) = (now, now);
        (self.says_login, self.says_heartbeat) = (true, false);
    }

    pub(super) fn handle_bytes(&mut self, now: Nanos, bytes: &[u8]) {
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

    pub(super) fn handle_closed(&mut self) {
        if self.is_open() {
            self.fail(SoupFailure::Closed);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        if !self.is_open() {
            return;
        }
        if now.since(self.heard) >= self.login.silence_ns {
            self.fail(SoupFailure::Silent);
        } else if self.phase == Phase::In && now.since(self.said) >= self.login.heartbeat_ns {
            self.said = now;
            self.says_heartbeat = true;
        }
    }

    /// The length of what is to be sent next, written into `buffer`.
    pub(super) fn transmit(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if core::mem::take(&mut self.says_login) {
            let login = Login {
                session_sub_id: self.login.session_sub_id,
                username: self.login.username,
                password: self.login.password,
                ..Login::BLANK_MESSAGE
            };
            return block(buffer, 0, 0, login.as_bytes());
        }
        if core::mem::take(&mut self.says_heartbeat) && buffer.len() >= UnitHeader::SIZE {
            return Some(pitch::heartbeat(buffer, 0, 0));
        }
        None
    }

    pub(super) fn poll(&mut self) -> Option<Said<'_>> {
        loop {
            if let Some(failure) = self.failure.take() {
                return Some(Said::Failed(failure));
            }
            if !self.is_open() {
                return None;
            }
            if self.block_left == 0 {
                match pitch::split(&self.stream[self.start..self.end]) {
                    Ok(None) => return None,
                    Ok(Some((packet, _))) => {
                        self.block_left = packet.messages.len();
                        self.start += UnitHeader::SIZE;
                    }
                    Err(malformed) => self.fail(SoupFailure::Malformed(malformed)),
                }
                continue;
            }
            let length = usize::from(self.stream[self.start]).max(HEAD_SIZE);
            let message = self.start..self.start + length;
            self.start += length;
            self.block_left -= 1;
            let is_login = self.stream[message.start + 1] == LoginResponse::KIND;
            match (is_login, self.phase) {
                (true, Phase::LoggingIn) => match self.stream[message].get(HEAD_SIZE) {
                    Some(&status) if status == LoginStatus::Accepted as u8 => {
                        self.phase = Phase::In;
                        return Some(Said::LoggedIn);
                    }
                    status => self.fail(SoupFailure::Rejected(status.copied().unwrap_or(0))),
                },
                (false, Phase::In) => return Some(Said::Message(&self.stream[message])),
                (true, _) => {}
                (false, _) => self.fail(SoupFailure::NotLoggedIn),
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Nanos> {
        let silent = self.heard.after(self.login.silence_ns);
        match self.phase {
            Phase::Idle | Phase::Over => None,
            Phase::LoggingIn => Some(silent),
            Phase::In => Some(silent.min(self.said.after(self.login.heartbeat_ns))),
        }
    }

    /// Has no further use for the connection.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Over;
    }

    pub(super) fn is_in(&self) -> bool {
        self.phase == Phase::In
    }

    fn is_open(&self) -> bool {
        matches!(self.phase, Phase::LoggingIn | Phase::In)
    }

    fn fail(&mut self, failure: SoupFailure) {
        self.phase = Phase::Over;
        self.failure = Some(failure);
    }
}

/// Writes a block of one message; its length, `None` if `buffer` is too small.
pub(super) fn block(buffer: &mut [u8], unit: u8, sequence: u32, message: &[u8]) -> Option<usize> {
    if buffer.len() < UnitHeader::SIZE {
        return None;
    }
    let mut builder = PacketBuilder::new(buffer, unit, sequence);
    builder.push(message).then(|| builder.finish())
}
