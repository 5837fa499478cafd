//! Snapshots and replays over SoupBinTCP 3.00: the server's side of one connection.
//!
//! - A login without a session gets a snapshot as GLIMPSE 5.0 words it: directory, trading status, every
//!   displayed order, then `G` with the number of the first live message to apply.
//! - A login that names the market data session gets its messages from the number asked for, then live.
//!
//! Bytes enter by [`GlimpseSession::handle_bytes`]. When [`GlimpseSession::take_login`] says what the client
//! wants, the owner loads it; [`GlimpseSession::poll_transmit`] gives the bytes to send.

use tickwire_market::{Nanos, SeqNo};
use tickwire_wire::itch50::EndOfSnapshot;
use tickwire_wire::layout::trim;
use tickwire_wire::soupbintcp::RejectReason;
use tickwire_wire::zerocopy::IntoBytes;

use crate::mold::MessageStore;
use crate::soup::{SoupRequest, SoupServer, SoupServerConfig, same_session};

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

/// Bytes of a replay put together at once.
const REPLAY_CHUNK: usize = 64 << 10;

/// See the module's description. Reusable: [`GlimpseSession::connect`] starts anew.
pub struct GlimpseSession {
    /// Its output grows to the size of a snapshot once; bounded by the number of orders.
    soup: SoupServer,
    login: Option<GlimpseLogin>,
    /// The next message of a replay.
    replaying: Option<u64>,
}

impl GlimpseSession {
    /// Not connected.
    pub fn new(config: SoupServerConfig) -> GlimpseSession {
        GlimpseSession {
            soup: SoupServer::new(config, REPLAY_CHUNK * 2),
            login: None,
            replaying: None,
        }
    }

    /// The transport is connected; the client logs in next.
    pub fn connect(&mut self, now: Nanos) {
        (self.login, self.replaying) = (None, None);
        self.soup.connect(now);
    }

    /// The transport is gone.
    pub fn disconnect(&mut self) {
        (self.login, self.replaying) = (None, None);
        self.soup.disconnect();
    }

    /// Whether the transport is to be closed now: all is sent and the session is over.
    pub fn wants_close(&self) -> bool {
        self.soup.wants_close()
    }

    /// Bytes from the client, cut anywhere. A client that does not speak the protocol is hung up on.
    pub fn handle_bytes(&mut self, now: Nanos, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = self.soup.handle_bytes(now, rest);
            rest = &rest[taken..];
            while let Some(request) = self.soup.poll_event() {
                // Messages mean nothing here.
                if let SoupRequest::Login(login) = request {
                    self.login = Some(match trim(&login.session) {
                        [] => GlimpseLogin::Snapshot,
                        _ => GlimpseLogin::Replay {
                            session: login.session,
                            from: login.from,
                        },
                    });
                }
            }
            if taken == 0 {
                // It goes on talking before its login was answered.
                return self.soup.close();
            }
        }
    }

    /// Time has passed: heartbeat, or the client has been silent for too long.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.soup.handle_timeout(now);
    }

    /// When [`GlimpseSession::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.soup.poll_timeout()
    }

    /// A login that has not been answered yet.
    pub fn take_login(&mut self) -> Option<GlimpseLogin> {
        self.login.take()
    }

    /// Answers the login with a snapshot: `write` gives its messages, `next` is the first live message after
    /// it.
    pub fn load_snapshot(&mut self, next: SeqNo, write: impl FnOnce(&mut dyn FnMut(&[u8]))) {
        self.soup.accept(b"GLIMPSE", SeqNo(1));
        write(&mut |message| self.soup.send(message));
        self.soup.send(EndOfSnapshot::at(next.0).as_bytes());
    }

    /// Answers the login with a replay, or refuses it: another session, or messages that are not kept any
    /// more.
    pub fn start_replay(&mut self, login: GlimpseLogin, current: [u8; 10], store: &MessageStore) {
        let GlimpseLogin::Replay { session, from } = login else {
            return;
        };
        let next = if from.0 == 0 {
            store.next()
        } else {
            from.min(store.next())
        };
        if !same_session(&session, &current) || next < store.first() {
            return self.soup.reject(RejectReason::SessionNotAvailable);
        }
        self.soup.accept(trim(&current), next);
        self.replaying = Some(next.0);
    }

    /// Puts messages of the store below `end` into the stream, as long as little waits; with `is_over` the
    /// session ends after the last one.
    pub fn pull(&mut self, store: &MessageStore, end: SeqNo, is_over: bool) {
        let Some(mut next) = self.replaying.filter(|_| self.soup.is_serving()) else {
            return;
        };
        while next < end.0 && self.soup.waiting() < REPLAY_CHUNK {
            let Some(message) = store.get(SeqNo(next)) else {
                // Forgotten while the client did not read.
                return self.soup.close();
            };
            self.soup.send(&message);
            next += 1;
        }
        self.replaying = Some(next);
        if is_over && next >= end.0 {
            self.soup.end();
        }
    }

    /// Bytes to send, as many as fit.
    pub fn poll_transmit<'b>(&mut self, now: Nanos, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        self.soup.poll_transmit(now, buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use tickwire_wire::soupbintcp::{LoginRequest, Packet, split};

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
        let mut session = GlimpseSession::new(SoupServerConfig::default());
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
        let mut session = GlimpseSession::new(SoupServerConfig::default());
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
        let mut session = GlimpseSession::new(SoupServerConfig::default());
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
