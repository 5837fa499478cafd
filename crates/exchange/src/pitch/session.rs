//! The server's side of a connection to a Gap Request Proxy or a Spin server: login, heartbeats, blocks of
//! messages both ways. PITCH 2.41.29, "Gap Request Proxy" and "Spin Server".

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::outbox::Outbox;
use tickwire_market::Nanos;
use tickwire_wire::layout::Char;
use tickwire_wire::pitch::{
    self, GapRequest, Login, LoginResponse, LoginStatus, Message, PacketBuilder, SpinRequest, UnitHeader,
};
use tickwire_wire::zerocopy::IntoBytes;

/// Who may log in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PitchAccount {
    /// The session, padded with spaces.
    pub session_sub_id: [u8; 4],
    /// The user, padded with spaces.
    pub username: [u8; 4],
    /// The password, padded with spaces.
    pub password: [u8; 10],
}

/// Times of the TCP services, and who may use them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PitchServiceConfig {
    /// The one account, which one connection of a service at a time can use. None, the default: everybody may
    /// log in.
    pub account: Option<PitchAccount>,
    /// Silence of ours before a heartbeat. Default 1 s.
    pub heartbeat_ns: u64,
    /// Silence of the client before we hang up: two heartbeats missed. Default 10 s.
    pub silence_max_ns: u64,
}

impl Default for PitchServiceConfig {
    fn default() -> PitchServiceConfig {
        PitchServiceConfig {
            account: None,
            heartbeat_ns: Nanos::SECOND,
            silence_max_ns: 10 * Nanos::SECOND,
        }
    }
}

/// What a client said that its service has to answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// With the account's password, or any where there is none.
    Login,
    Gap(GapRequest),
    Spin(SpinRequest),
}

/// Client messages are short and few; more than this waiting is not the protocol.
const RECEIVE_MAX: usize = 1024;
/// Requests read and not answered yet.
const ASKED_MAX: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Disconnected,
    LoginAwaited,
    Serving,
    /// What is left goes out, then the transport is closed.
    Closing,
}

/// See the module's description. Reusable: [`ServerSession::connect`] starts anew.
pub(super) struct ServerSession {
    config: PitchServiceConfig,
    state: State,
    received: Vec<u8>,
    asked: VecDeque<Asked>,
    out: Outbox,
    sent_at: Nanos,
    heard_at: Nanos,
}

impl ServerSession {
    pub(super) fn new(config: PitchServiceConfig) -> ServerSession {
        ServerSession {
            config,
            state: State::Disconnected,
            received: Vec::with_capacity(RECEIVE_MAX),
            asked: VecDeque::with_capacity(ASKED_MAX),
            out: Outbox::default(),
            sent_at: Nanos::ZERO,
            heard_at: Nanos::ZERO,
        }
    }

    /// The transport is connected; the client logs in next.
    pub(super) fn connect(&mut self, now: Nanos) {
        self.received.clear();
        self.asked.clear();
        self.out.clear();
        (self.sent_at, self.heard_at) = (now, now);
        self.state = State::LoginAwaited;
    }

    /// The transport is gone.
    pub(super) fn disconnect(&mut self) {
        self.state = State::Disconnected;
    }

    /// Whether the transport is to be closed now: all is sent and the session is over.
    pub(super) fn wants_close(&self) -> bool {
        self.state == State::Closing && !self.has_output()
    }

    pub(super) fn is_serving(&self) -> bool {
        self.state == State::Serving
    }

    pub(super) fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Bytes from the client, cut anywhere. A client that does not speak the protocol is hung up on.
    pub(super) fn handle_bytes(&mut self, now: Nanos, bytes: &[u8]) {
        self.heard_at = now;
        for part in bytes.chunks(RECEIVE_MAX / 2) {
            if matches!(self.state, State::Disconnected | State::Closing) {
                return;
            }
            self.received.extend_from_slice(part);
            let consumed = self.read_blocks();
            self.received.drain(..consumed);
            if self.received.len() > RECEIVE_MAX / 2 {
                self.state = State::Closing;
            }
        }
    }

    /// The next thing to answer.
    pub(super) fn take(&mut self) -> Option<Asked> {
        self.asked.pop_front()
    }

    /// Answers a login.
    pub(super) fn admit(&mut self, status: LoginStatus) {
        let response = LoginResponse {
            status: Char(status as u8),
            ..LoginResponse::BLANK_MESSAGE
        };
        self.say(response.as_bytes());
        self.state = match status {
            LoginStatus::Accepted => State::Serving,
            _ => State::Closing,
        };
    }

    /// Sends a block of one message without number.
    pub(super) fn say(&mut self, message: &[u8]) {
        let mut block = [0; 64];
        let mut builder = PacketBuilder::new(&mut block, 0, 0);
        let fits = builder.push(message);
        debug_assert!(fits, "server messages are shorter than 56 bytes");
        let length = builder.finish();
        self.put(&block[..length]);
    }

    /// Sends blocks that are ready.
    pub(super) fn put(&mut self, blocks: &[u8]) {
        self.out.tail().extend_from_slice(blocks);
    }

    /// Time has passed: heartbeat, or the client has been silent for too long.
    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        match self.state {
            State::Disconnected | State::Closing => {}
            _ if now.since(self.heard_at) >= self.config.silence_max_ns => self.state = State::Closing,
            State::LoginAwaited => {}
            State::Serving => {
                if now.since(self.sent_at) >= self.config.heartbeat_ns && !self.has_output() {
                    let mut block = [0; UnitHeader::SIZE];
                    pitch::heartbeat(&mut block, 0, 0);
                    self.put(&block);
                    self.sent_at = now;
                }
            }
        }
    }

    /// When [`ServerSession::handle_timeout`] is due.
    pub(super) fn poll_timeout(&self) -> Option<Nanos> {
        let hang_up = self.heard_at.after(self.config.silence_max_ns);
        match self.state {
            State::Disconnected | State::Closing => None,
            State::LoginAwaited => Some(hang_up),
            State::Serving => Some(hang_up.min(self.sent_at.after(self.config.heartbeat_ns))),
        }
    }

    /// Bytes to send, as many as fit.
    pub(super) fn poll_transmit<'b>(&mut self, now: Nanos, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let bytes = self.out.transmit(buffer)?;
        self.sent_at = now;
        Some(bytes)
    }

    fn read_blocks(&mut self) -> usize {
        let mut consumed = 0;
        let received = core::mem::take(&mut self.received);
        while !matches!(self.state, State::Closing) {
            match pitch::split(&received[consumed..]) {
                Ok(Some((packet, length))) => {
                    packet.messages.for_each(|message| self.read(message));
                    consumed += length;
                }
                Ok(None) => break,
                Err(_) => self.state = State::Closing,
            }
        }
        self.received = received;
        consumed
    }

    fn read(&mut self, message: &[u8]) {
        let asked = match (pitch::parse(message), self.state) {
            (Ok(Message::Login(login)), State::LoginAwaited) => match refusal(self.config.account, login) {
                Some(status) => return self.admit(status),
                None => Asked::Login,
            },
            (Ok(Message::GapRequest(request)), State::Serving) => Asked::Gap(*request),
            (Ok(Message::SpinRequest(request)), State::Serving) => Asked::Spin(*request),
            // Before the login nothing else is welcome; after it messages of later versions are skipped.
            (_, State::LoginAwaited) => {
                self.state = State::Closing;
                return;
            }
            _ => return,
        };
        if self.asked.len() < ASKED_MAX {
            self.asked.push_back(asked);
        } else {
            self.state = State::Closing;
        }
    }
}

/// Why a login is not good, if it is not.
fn refusal(account: Option<PitchAccount>, login: &Login) -> Option<LoginStatus> {
    let account = account?;
    if login.session_sub_id.0 != account.session_sub_id {
        Some(LoginStatus::InvalidSession)
    } else if (login.username.0, login.password.0) != (account.username, account.password) {
        Some(LoginStatus::NotAuthorised)
    } else {
        None
    }
}
