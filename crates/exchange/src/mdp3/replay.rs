//! The server's side of one TCP replay connection: a logon, one request, the packets asked for, a logout.
//!
//! "MDP 3.0 - TCP Recovery", CME Globex client systems wiki: requests are FIX text, answers are packets
//! behind a length; at most 2000 packets a request; whatever is refused is refused with a logout that says
//! why.

use alloc::vec::Vec;

use tickwire_market::{Nanos, SeqNo};
use tickwire_wire::mdp3::block::{NoFields, Text};
use tickwire_wire::mdp3::tcp::{self, Request};
use tickwire_wire::mdp3::{
    AdminHeartbeat, AdminLogin, AdminLoginRoot, AdminLogout, AdminLogoutRoot, PacketBuilder,
};

use crate::mold::MessageStore;
use crate::outbox::Outbox;

/// Who may ask, and how long everything may take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mdp3ReplayConfig {
    /// The user; empty: anyone.
    pub username: Vec<u8>,
    /// The user's password.
    pub password: Vec<u8>,
    /// Connections are numbered 0 to this, exclusive.
    pub connections: usize,
    /// Silence of ours before a heartbeat.
    pub heartbeat_ns: u64,
    /// Silence of the client before we hang up.
    pub silence_max_ns: u64,
}

impl Default for Mdp3ReplayConfig {
    fn default() -> Mdp3ReplayConfig {
        Mdp3ReplayConfig {
            username: Vec::new(),
            password: Vec::new(),
            connections: 4,
            heartbeat_ns: 30 * Nanos::SECOND,
            silence_max_ns: 60 * Nanos::SECOND,
        }
    }
}

/// More than this waiting is no request.
const RECEIVE_MAX: usize = 1024;
/// Bytes of a replay put together at once.
const REPLAY_CHUNK: usize = 64 << 10;
/// The longest packet of our own: a logout.
const OWN_PACKET_MAX: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Disconnected,
    LogonAwaited,
    RequestAwaited,
    Replaying {
        next: u32,
        last: u32,
    },
    /// What is left goes out, then the transport is closed.
    Closing,
}

/// See the module's description. Reusable: [`ReplaySession::connect`] starts anew.
pub(super) struct ReplaySession {
    state: State,
    received: Vec<u8>,
    out: Outbox,
    sent_at: Nanos,
    heard_at: Nanos,
    /// Packets of our own on this connection.
    own: u32,
}

impl ReplaySession {
    pub(super) fn new() -> ReplaySession {
        ReplaySession {
            state: State::Disconnected,
            received: Vec::with_capacity(RECEIVE_MAX),
            out: Outbox::with_capacity(REPLAY_CHUNK * 2),
            sent_at: Nanos::ZERO,
            heard_at: Nanos::ZERO,
            own: 0,
        }
    }

    pub(super) fn connect(&mut self, now: Nanos) {
        self.received.clear();
        self.out.clear();
        self.own = 0;
        (self.sent_at, self.heard_at) = (now, now);
        self.state = State::LogonAwaited;
    }

    pub(super) fn disconnect(&mut self) {
        self.state = State::Disconnected;
    }

    /// Whether the transport is to be closed now: all is sent and the session is over.
    pub(super) fn wants_close(&self) -> bool {
        self.state == State::Closing && self.out.is_empty()
    }

    /// Bytes from the client, cut anywhere.
    pub(super) fn handle_bytes(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        channel: u16,
        config: &Mdp3ReplayConfig,
        store: &MessageStore,
    ) {
        self.heard_at = now;
        for part in bytes.chunks(RECEIVE_MAX / 2) {
            if matches!(self.state, State::Disconnected | State::Closing) {
                return;
            }
            self.received.extend_from_slice(part);
            self.read(now, channel, config, store);
        }
    }

    /// Heartbeat, or the client has been silent for too long.
    pub(super) fn handle_timeout(&mut self, now: Nanos, config: &Mdp3ReplayConfig) {
        match self.state {
            State::Disconnected | State::Closing => {}
            _ if now.since(self.heard_at) >= config.silence_max_ns => self.refuse(now, b"No request"),
            _ if now.since(self.sent_at) >= config.heartbeat_ns && self.out.is_empty() => {
                self.put(now, |buffer| AdminHeartbeat::encode(buffer, &NoFields::BLANK));
                self.sent_at = now;
            }
            _ => {}
        }
    }

    pub(super) fn poll_timeout(&self, config: &Mdp3ReplayConfig) -> Option<Nanos> {
        match self.state {
            State::Disconnected | State::Closing => None,
            _ => Some(
                self.heard_at
                    .after(config.silence_max_ns)
                    .min(self.sent_at.after(config.heartbeat_ns)),
            ),
        }
    }

    /// Bytes to send, as many as fit.
    pub(super) fn poll_transmit<'b>(
        &mut self,
        now: Nanos,
        store: &MessageStore,
        buf: &'b mut [u8],
    ) -> Option<&'b [u8]> {
        self.pull(now, store);
        let bytes = self.out.transmit(buf)?;
        self.sent_at = now;
        Some(bytes)
    }

    fn read(&mut self, now: Nanos, channel: u16, config: &Mdp3ReplayConfig, store: &MessageStore) {
        let received = core::mem::take(&mut self.received);
        let mut consumed = 0;
        while self.state != State::Closing {
            match Request::split(&received[consumed..]) {
                Ok(Some((request, used))) => {
                    consumed += used;
                    self.take(now, request, channel, config, store);
                }
                Ok(None) => break,
                Err(_) => self.refuse(now, b"Malformed request"),
            }
        }
        self.received = received;
        self.received.drain(..consumed);
    }

    fn take(
        &mut self,
        now: Nanos,
        request: Request<'_>,
        channel: u16,
        config: &Mdp3ReplayConfig,
        store: &MessageStore,
    ) {
        match (request, self.state) {
            (Request::Heartbeat, _) => {}
            (Request::Logout, _) => self.refuse(now, b"Logout"),
            (Request::Logon { username, password }, State::LogonAwaited) => {
                let is_known = config.username.is_empty()
                    || (username, password) == (&config.username[..], &config.password[..]);
                if !is_known {
                    return self.refuse(now, b"Invalid username or password");
                }
                let root = AdminLoginRoot {
                    heart_bt_int: (config.heartbeat_ns / Nanos::SECOND).min(126) as i8,
                };
                self.put(now, |buffer| AdminLogin::encode(buffer, &root));
                self.state = State::RequestAwaited;
            }
            (
                Request::MarketData {
                    channel: of,
                    first,
                    last,
                    ..
                },
                State::RequestAwaited,
            ) => {
                let is_kept = store.first().0 <= first.into() && u64::from(last) < store.next().0;
                if of != channel {
                    self.refuse(now, b"Unknown channel");
                } else if first == 0 || last < first {
                    self.refuse(now, b"Invalid range");
                } else if last - first >= tcp::PACKETS_MAX {
                    self.refuse(now, b"More than 2000 packets requested");
                } else if !is_kept {
                    self.refuse(now, b"Packets not available");
                } else {
                    self.state = State::Replaying { next: first, last };
                }
            }
            _ => self.refuse(now, b"Request out of order"),
        }
    }

    /// Puts packets into the stream as long as little waits; a logout after the last one.
    fn pull(&mut self, now: Nanos, store: &MessageStore) {
        let State::Replaying { mut next, last } = self.state else {
            return;
        };
        while next <= last && self.out.waiting() < REPLAY_CHUNK {
            let Some(packet) = store.get(SeqNo(next.into())) else {
                // Forgotten while the client did not read.
                return self.refuse(now, b"Packets not available");
            };
            self.frame(&packet);
            next += 1;
        }
        self.state = State::Replaying { next, last };
        if next > last {
            self.refuse(now, b"Replay complete");
        }
    }

    /// Says why, and ends the session.
    fn refuse(&mut self, now: Nanos, why: &[u8]) {
        let root = AdminLogoutRoot {
            text: Text::new(why).unwrap_or(Text([0; 180])),
        };
        self.put(now, |buffer| AdminLogout::encode(buffer, &root));
        self.state = State::Closing;
    }

    /// A packet of our own.
    fn put(&mut self, now: Nanos, encode: impl FnOnce(&mut [u8]) -> Option<usize>) {
        self.own += 1;
        let mut packet = [0; OWN_PACKET_MAX];
        let mut builder = PacketBuilder::new(&mut packet, self.own, now.0);
        let fits = builder.push(encode);
        debug_assert!(fits, "a logout is the longest of them");
        let length = builder.finish();
        self.frame(&packet[..length]);
    }

    fn frame(&mut self, packet: &[u8]) {
        let out = self.out.tail();
        let start = out.len();
        out.resize(start + 2 + packet.len(), 0);
        let framed = tcp::frame(packet, &mut out[start..]);
        debug_assert!(framed.is_some(), "room was made, and packets are short");
    }
}
