//! Snapshots and replays over SoupBinTCP 3.00: the server's side of one connection.
//!
//! - A login without a session gets a snapshot as GLIMPSE 5.0 words it: directory, trading status, every displayed
//!   order, then `G` with the number of the first live message to apply.
//! - A login that names the market data session gets its messages from the number asked for, then live.
//!
//! Bytes enter by [`GlimpseSession::handle_bytes`]. When [`GlimpseSession::take_login`] says what the client wants, the owner
//! loads it; [`GlimpseSession::poll_transmit`] gives the bytes to send.

use alloc::vec::Vec;

use tickwire_market::{Nanos, SeqNo};
use tickwire_wire::itch50::EndOfSnapshot;
use tickwire_wire::layout::trim;
use tickwire_wire::soupbintcp::{LoginAccepted, LoginRejected, Packet, RejectReason, split};
use tickwire_wire::zerocopy::IntoBytes;

use crate::mold::MessageStore;
use crate::outbox::Outbox;

/// Times of the service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GlimpseConfig {
    /// Silence of ours before a heartbeat.
    pub heartbeat_ns: u64,
    /// Silence of the client before we hang up.
    pub silence_max_ns: u64,
}

impl Default for GlimpseConfig {
    fn default() -> GlimpseConfig {
        GlimpseConfig {
            heartbeat_ns: Nanos::SECOND,
            silence_max_ns: 15 * Nanos::SECOND,
        }
    }
}

/// What a client wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GlimpseLogin {
    /// The books as they stand.
    Snapshot,
    /// The session's messages from this number on; 0 is from now on.
    Replay {
        /// The session asked for, padded with spaces.
        session: [u8; 10],
        /// The first message wanted.
        from: SeqNo,
    },
}

/// Client packets are short; more than this waiting is not SoupBinTCP.
const RECEIVE_MAX: usize = 1024;
/// Bytes of a replay put together at once.
const REPLAY_CHUNK: usize = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Disconnected,
    LoginAwaited,
    Serving,
    Replaying {
        next: u64,
    },
    /// What is left goes out, then the transport is closed.
    Closing,
}

/// See the module's description. Reusable: [`GlimpseSession::connect`] starts anew.
pub struct GlimpseSession {
    config: GlimpseConfig,
    state: State,
    login: Option<GlimpseLogin>,
    received: Vec<u8>,
    /// Grows to the size of a snapshot once; bounded by the number of orders.
    out: Outbox,
    sent_at: Nanos,
    heard_at: Nanos,
}

impl GlimpseSession {
    /// Not connected.
    pub fn new(config: GlimpseConfig) -> GlimpseSession {
        GlimpseSession {
            config,
            state: State::Disconnected,
            login: None,
            received: Vec::with_capacity(RECEIVE_MAX),
            out: Outbox::with_capacity(REPLAY_CHUNK * 2),
            sent_at: Nanos::ZERO,
            heard_at: Nanos::ZERO,
        }
    }

    /// The transport is connected; the client logs in next.
    pub fn connect(&mut self, now: Nanos) {
        self.received.clear();
        self.out.clear();
        self.login = None;
        (self.sent_at, self.heard_at) = (now, now);
        self.state = State::LoginAwaited;
    }

    /// The transport is gone.
    pub fn disconnect(&mut self) {
        self.state = State::Disconnected;
    }

    /// Whether the transport is to be closed now: all is sent and the session is over.
    pub fn wants_close(&self) -> bool {
        self.state == State::Closing && self.out.is_empty()
    }

    /// Bytes from the client, cut anywhere. A client that does not speak the protocol is hung up on.
    pub fn handle_bytes(&mut self, now: Nanos, bytes: &[u8]) {
        self.heard_at = now;
        for part in bytes.chunks(RECEIVE_MAX / 2) {
            if matches!(self.state, State::Disconnected | State::Closing) {
                return;
            }
            self.received.extend_from_slice(part);
            let consumed = self.read_packets();
            self.received.drain(..consumed);
            if self.received.len() > RECEIVE_MAX / 2 {
                self.state = State::Closing;
            }
        }
    }

    /// Time has passed: heartbeat, or the client has been silent for too long.
    pub fn handle_timeout(&mut self, now: Nanos) {
        match self.state {
            State::Disconnected | State::Closing => {}
            _ if now.since(self.heard_at) >= self.config.silence_max_ns => self.state = State::Closing,
            State::LoginAwaited => {}
            State::Serving | State::Replaying { .. } => {
                if now.since(self.sent_at) >= self.config.heartbeat_ns && self.out.is_empty() {
                    self.put(&Packet::ServerHeartbeat);
                    self.sent_at = now;
                }
            }
        }
    }

    /// When [`GlimpseSession::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let hang_up = self.heard_at.after(self.config.silence_max_ns);
        match self.state {
            State::Disconnected | State::Closing => None,
            State::LoginAwaited => Some(hang_up),
            State::Serving | State::Replaying { .. } => {
                Some(hang_up.min(self.sent_at.after(self.config.heartbeat_ns)))
            }
        }
    }

    /// A login that has not been answered yet.
    pub fn take_login(&mut self) -> Option<GlimpseLogin> {
        self.login.take()
    }

    /// Answers the login with a snapshot: `write` gives its messages, `next` is the first live message after it.
    pub fn load_snapshot(&mut self, next: SeqNo, write: impl FnOnce(&mut dyn FnMut(&[u8]))) {
        self.accept(b"GLIMPSE", 1);
        self.state = State::Serving;
        write(&mut |message| self.put(&Packet::Sequenced(message)));
        self.put(&Packet::Sequenced(EndOfSnapshot::at(next.0).as_bytes()));
    }

    /// Answers the login with a replay, or refuses it: another session, or messages that are not kept any more.
    pub fn start_replay(&mut self, login: GlimpseLogin, current: [u8; 10], store: &MessageStore) {
        let GlimpseLogin::Replay { session, from } = login else {
            return;
        };
        let next = if from.0 == 0 {
            store.next()
        } else {
            from.min(store.next())
        };
        if trim(&session) != trim(&current) || next < store.first() {
            self.put(&Packet::LoginRejected(&LoginRejected::new(
                RejectReason::SessionNotAvailable,
            )));
            self.state = State::Closing;
            return;
        }
        self.accept(trim(&current), next.0);
        self.state = State::Replaying { next: next.0 };
    }

    /// Puts messages of the store below `end` into the stream, as long as little waits; with `is_over` the session
    /// ends after the last one.
    pub fn pull(&mut self, store: &MessageStore, end: SeqNo, is_over: bool) {
        let State::Replaying { mut next } = self.state else {
            return;
        };
        while next < end.0 && self.out.waiting() < REPLAY_CHUNK {
            let Some(message) = store.get(SeqNo(next)) else {
                // Forgotten while the client did not read.
                self.state = State::Closing;
                return;
            };
            self.put(&Packet::Sequenced(message));
            next += 1;
        }
        self.state = State::Replaying { next };
        if is_over && next >= end.0 {
            self.put(&Packet::EndOfSession);
            self.state = State::Closing;
        }
    }

    /// Bytes to send, as many as fit.
    pub fn poll_transmit<'b>(&mut self, now: Nanos, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let bytes = self.out.transmit(buf)?;
        self.sent_at = now;
        Some(bytes)
    }

    fn read_packets(&mut self) -> usize {
        let mut consumed = 0;
        loop {
            let rest = &self.received[consumed..];
            let Ok(split) = split(rest) else {
                self.state = State::Closing;
                return self.received.len();
            };
            let Some((packet, length)) = split else {
                return consumed;
            };
            match (packet, self.state) {
                (Packet::LoginRequest(login), State::LoginAwaited) if self.login.is_none() => {
                    let from = SeqNo(login.sequence.get().unwrap_or(0));
                    self.login = Some(match trim(&login.session.0) {
                        [] => GlimpseLogin::Snapshot,
                        _ => GlimpseLogin::Replay {
                            session: login.session.0,
                            from,
                        },
                    });
                }
                (Packet::LogoutRequest, _) => self.state = State::Closing,
                // Heartbeats count as being heard; anything else from a client means nothing here.
                _ => {}
            }
            consumed += length;
        }
    }

    fn accept(&mut self, session: &[u8], sequence: u64) {
        if let Some(accepted) = LoginAccepted::new(session, sequence) {
            self.put(&Packet::LoginAccepted(&accepted));
        }
    }

    fn put(&mut self, packet: &Packet<'_>) {
        let out = self.out.tail();
        let start = out.len();
        let payload = match packet {
            Packet::Sequenced(message) => message.len(),
            _ => 64,
        };
        out.resize(start + payload + 3, 0);
        let length = packet.encode(&mut out[start..]).unwrap_or(0);
        out.truncate(start + length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_wire::soupbintcp::LoginRequest;

    fn login(session: &[u8], sequence: u64) -> [u8; 49] {
        let request = LoginRequest::new(b"user", b"password", session, sequence).unwrap();
        request.as_bytes().try_into().unwrap()
    }

    fn drain(session: &mut GlimpseSession, now: Nanos) -> Vec<u8> {
        let mut all = Vec::new();
        let mut buf = [0; 7];
        while let Some(bytes) = session.poll_transmit(now, &mut buf) {
            all.extend_from_slice(bytes);
        }
        all
    }

    fn packets(bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let (mut at, mut all) = (0, Vec::new());
        while let Some((packet, length)) = split(&bytes[at..]).unwrap() {
            let payload = match packet {
                Packet::Sequenced(message) => message.to_vec(),
                Packet::LoginAccepted(a) => a.sequence.get().unwrap().to_be_bytes().to_vec(),
                _ => Vec::new(),
            };
            all.push((packet.kind(), payload));
            at += length;
        }
        assert_eq!(at, bytes.len());
        all
    }

    #[test]
    fn a_login_cut_anywhere_gets_the_snapshot_and_the_number_to_go_on_from() {
        let mut session = GlimpseSession::new(GlimpseConfig::default());
        for cut in 0..49 {
            session.connect(Nanos(1));
            let bytes = login(b"", 1);
            session.handle_bytes(Nanos(1), &bytes[..cut]);
            assert_eq!(session.take_login(), None);
            session.handle_bytes(Nanos(1), &bytes[cut..]);
            assert_eq!(session.take_login(), Some(GlimpseLogin::Snapshot));
            session.load_snapshot(SeqNo(42), |out| out(b"Rxx"));
            let got = packets(&drain(&mut session, Nanos(2)));
            assert_eq!(got[0], (b'A', 1_u64.to_be_bytes().to_vec()));
            assert_eq!(got[1], (b'S', b"Rxx".to_vec()));
            assert_eq!(got[2], (b'S', b"G                  42".to_vec()));
            assert!(!session.wants_close());
            session.handle_bytes(Nanos(3), b"\0\x01O");
            assert!(session.wants_close());
        }
    }

    #[test]
    fn a_login_to_the_session_replays_it_and_follows_to_its_end() {
        let mut store = MessageStore::new(0, 100);
        (1..=50_u64).for_each(|i| store.push(&i.to_be_bytes()));
        let mut session = GlimpseSession::new(GlimpseConfig::default());
        session.connect(Nanos(1));
        session.handle_bytes(Nanos(1), &login(b"DAY", 48));
        let wanted = session.take_login().unwrap();
        session.start_replay(wanted, *b"DAY       ", &store);
        session.pull(&store, store.next(), false);
        let kinds: Vec<u8> = packets(&drain(&mut session, Nanos(2)))
            .iter()
            .map(|p| p.0)
            .collect();
        assert_eq!(kinds, b"ASSS");
        store.push(b"last");
        session.pull(&store, store.next(), true);
        let rest = packets(&drain(&mut session, Nanos(2)));
        assert_eq!(rest, [(b'S', b"last".to_vec()), (b'Z', Vec::new())]);
        assert!(session.wants_close());
        session.connect(Nanos(3));
        session.handle_bytes(Nanos(3), &login(b"OTHER", 1));
        let wanted = session.take_login().unwrap();
        session.start_replay(wanted, *b"DAY       ", &store);
        assert_eq!(packets(&drain(&mut session, Nanos(3)))[0].0, b'J');
        assert!(session.wants_close());
    }

    #[test]
    fn an_idle_server_beats_and_a_silent_or_talkative_client_is_hung_up_on() {
        let mut session = GlimpseSession::new(GlimpseConfig::default());
        let second = |n| Nanos(n * Nanos::SECOND);
        session.connect(second(0));
        session.handle_bytes(second(0), &login(b"", 1));
        session.take_login().unwrap();
        session.load_snapshot(SeqNo(1), |_| {});
        drain(&mut session, second(0));
        assert_eq!(session.poll_timeout(), Some(second(1)));
        session.handle_timeout(second(1));
        assert_eq!(drain(&mut session, second(1)), b"\0\x01H");
        session.handle_timeout(second(15));
        assert!(session.wants_close());
        session.connect(second(20));
        session.handle_bytes(second(20), &[0xFF; 5000]);
        assert!(session.wants_close());
        session.connect(second(30));
        session.handle_bytes(second(30), &[0, 0]);
        assert!(session.wants_close());
    }
}
