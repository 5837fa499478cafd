//! TCP replay: the server's side of one connection. The client speaks FIX in text: logon, one request,
//! logout; it gets FAST messages behind their lengths: a logon, the messages asked for as they were sent, a
//! logout with the reason if there is one.

use alloc::vec::Vec;

use tickwire_fix::{Frame, Index, Message, frame};
use tickwire_market::{Nanos, SeqNo};
use tickwire_wire::moex::{Encoder, Template, replay};

use crate::mold::MessageStore;
use crate::outbox::Outbox;

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
    out: Outbox,
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
            out: Outbox::with_capacity(CHUNK * 2),
            heard_at: Nanos::ZERO,
        }
    }

    pub(super) fn connect(&mut self, now: Nanos) {
        self.received.clear();
        self.out.clear();
        self.seq = 1;
        self.heard_at = now;
        self.state = State::LogonAwaited;
    }

    pub(super) fn disconnect(&mut self) {
        self.state = State::Disconnected;
    }

    pub(super) fn wants_close(&self) -> bool {
        self.state == State::Closing && self.out.is_empty()
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
        let bytes = self.out.transmit(buf)?;
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
            && self.out.waiting() < CHUNK
        {
            let Some(datagram) = service.store.get(SeqNo(next)) else {
                return self.log_out(now, b"no longer kept", service);
            };
            let out = self.out.tail();
            let start = out.len();
            out.extend_from_slice(&datagram);
            replay::put_length(&mut out[start..]);
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
            Ok(length) => self.out.tail().extend_from_slice(&bytes[..length]),
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

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use alloc::string::String;
    use alloc::sync::Arc;
    use alloc::{format, vec};
    use tickwire_wire::fast::{Limits, Plan};
    use tickwire_wire::moex::{Decoder, MessageKind, split_replay};

    const NOW: Nanos = Nanos(1_767_596_400 * Nanos::SECOND);

    struct Server {
        session: ReplaySession,
        store: MessageStore,
        encoder: Encoder,
        decoder: Decoder,
        rules: MoexReplayRules,
    }

    impl Server {
        /// With heartbeats 1 to 9 to be asked for.
        fn new() -> Server {
            let path = tickwire_testdata::workspace().join("examples/moex-templates.xml");
            let plan = Arc::new(Plan::parse(&std::fs::read_to_string(path).unwrap()).unwrap());
            let mut encoder = Encoder::new(plan.clone(), Limits::default()).unwrap();
            let mut store = MessageStore::new(0, 16);
            let heartbeat = encoder.find(MessageKind::Heartbeat, "").unwrap();
            let mut out = [0; 64];
            for seq in 1..10 {
                let length = encoder.heartbeat(heartbeat, seq, NOW, &mut out).unwrap();
                store.push(&out[..length]);
            }
            let mut session = ReplaySession::new();
            session.connect(NOW);
            Server {
                session,
                store,
                encoder,
                decoder: Decoder::new(plan, Limits::default()).unwrap(),
                rules: MoexReplayRules::default(),
            }
        }

        /// Says something, in pieces; what is answered.
        fn says(&mut self, bytes: &[u8], cut: usize) -> Vec<String> {
            let logon = self.encoder.find(MessageKind::Logon, "").unwrap();
            let logout = self.encoder.find(MessageKind::Logout, "").unwrap();
            let mut service = Service {
                rules: self.rules,
                feed: b"OLR",
                store: &self.store,
                encoder: &mut self.encoder,
                logon,
                logout,
            };
            let (mut answer, mut buffer) = (Vec::new(), [0; 7]);
            for part in bytes.chunks(cut) {
                self.session.handle_bytes(NOW, part, &mut service);
                while let Some(bytes) = self.session.poll_transmit(NOW, &mut service, &mut buffer) {
                    answer.extend_from_slice(bytes);
                }
            }
            let (mut rest, mut said) = (&answer[..], Vec::new());
            while let Some((message, used)) = split_replay(rest).unwrap() {
                let message = self.decoder.message(message).unwrap();
                let text = String::from_utf8_lossy(message.text());
                said.push(format!("{:?} {} {text}", message.kind(), message.seq()));
                rest = &rest[used..];
            }
            assert!(rest.is_empty());
            said
        }
    }

    fn logon(password: &[u8]) -> Vec<u8> {
        let mut buffer = vec![0; replay::REQUEST_SIZE_MAX];
        let length = replay::logon(&mut buffer, NOW, b"ME", b"user0", password).unwrap();
        buffer.truncate(length);
        buffer
    }

    fn request(feed: &[u8], first: u32, last: u32) -> Vec<u8> {
        let mut buffer = vec![0; replay::REQUEST_SIZE_MAX];
        let length = replay::market_data_request(&mut buffer, NOW, b"ME", feed, first, last).unwrap();
        buffer.truncate(length);
        buffer
    }

    fn logout() -> Vec<u8> {
        let mut buffer = vec![0; replay::REQUEST_SIZE_MAX];
        let length = replay::logout(&mut buffer, NOW, b"ME").unwrap();
        buffer.truncate(length);
        buffer
    }

    #[test]
    fn messages_asked_for_come_between_logon_and_logout_however_the_request_is_cut() {
        for cut in [1, 2, 3, 50, 1000] {
            let mut server = Server::new();
            let said = [logon(b"pass0"), request(b"OLR", 3, 5)].concat();
            assert_eq!(
                server.says(&said, cut),
                [
                    "Logon 1 ",
                    "Heartbeat 3 ",
                    "Heartbeat 4 ",
                    "Heartbeat 5 ",
                    "Logout 2 "
                ],
                "{cut}"
            );
            assert!(!server.session.wants_close(), "the client logs out");
            assert!(server.says(&logout(), cut).is_empty());
            assert!(server.session.wants_close());
        }
    }

    #[test]
    fn what_cannot_be_had_is_refused_with_the_reason() {
        for (request, reason) in [
            (request(b"TLR", 1, 2), "no such feed"),
            (request(b"OLR", 0, 2), "no such messages"),
            (request(b"OLR", 5, 4), "no such messages"),
            (request(b"OLR", 5, 10), "no such messages"),
            (logon(b"pass0"), "not supported"),
        ] {
            let mut server = Server::new();
            assert_eq!(server.says(&logon(b"pass0"), 9), ["Logon 1 "]);
            assert_eq!(server.says(&request, 9), [format!("Logout 2 {reason}")]);
            assert!(server.says(&request, 9).is_empty(), "one request a connection");
        }
        let mut server = Server::new();
        server.rules.messages_max = 3;
        let said = [logon(b"pass0"), request(b"OLR", 1, 4)].concat();
        assert_eq!(
            server.says(&said, 1000),
            ["Logon 1 ", "Logout 2 too many messages"]
        );
    }

    #[test]
    fn messages_that_are_forgotten_are_refused() {
        let mut server = Server::new();
        for _ in 0..12 {
            server.store.push(&[0; 20]);
        }
        let said = [logon(b"pass0"), request(b"OLR", 1, 4)].concat();
        assert_eq!(server.says(&said, 1000), ["Logon 1 ", "Logout 2 no longer kept"]);
    }

    #[test]
    fn strangers_and_other_protocols_are_turned_away() {
        let mut server = Server::new();
        assert_eq!(
            server.says(&logon(b"pass1"), 9),
            ["Logout 1 wrong user or password"]
        );
        let mut server = Server::new();
        assert_eq!(server.says(&request(b"OLR", 1, 2), 9), ["Logout 1 logon first"]);
        for garbage in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"8=FIXT.1.1\x019=99999999\x01",
            &[0; 2000],
        ] {
            let mut server = Server::new();
            assert!(server.says(garbage, 100).is_empty());
            assert!(server.session.wants_close(), "{garbage:?}");
        }
        let mut server = Server::new();
        let mut forged = logon(b"pass0");
        let end = forged.len() - 2;
        forged[end] ^= 1;
        assert!(server.says(&forged, 9).is_empty());
        assert!(server.session.wants_close(), "the checksum is another one");
    }

    #[test]
    fn a_silent_client_is_hung_up_on() {
        let mut server = Server::new();
        let rules = server.rules;
        let due = server.session.poll_timeout(&rules).unwrap();
        server.session.handle_timeout(Nanos(due.0 - 1), &rules);
        assert!(!server.session.wants_close());
        server.session.handle_timeout(due, &rules);
        assert!(server.session.wants_close());
        assert_eq!(server.session.poll_timeout(&rules), None);
    }
}
