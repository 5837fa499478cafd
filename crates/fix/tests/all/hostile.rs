//! Peers that mean no good, against an acceptor with a session that trades meanwhile: memory stays bounded,
//! what they do is counted, the other session notices nothing.

use std::sync::Arc;
use tickwire_fix::dict::Dictionary;
use tickwire_fix::{
    Acceptor, CompId, ConnectionId, Event, MemoryStore, Role, Rules, SessionConfig, SessionId, Status, Store,
    naive,
};
use tickwire_market::{Counter, Nanos};

const START: Nanos = Nanos(1_795_226_141 * Nanos::SECOND);
const CONNECTIONS: usize = 8;

fn comp(text: &str) -> CompId {
    CompId::new(text.as_bytes()).expect("a short name")
}

fn config(peer: &str) -> SessionConfig {
    SessionConfig {
        receive_bytes: 8_192,
        ..SessionConfig::new(Role::Acceptor, comp("VENUE"), comp(peer))
    }
}

/// An acceptor, and a peer of good will that is logged on and sends a message at every turn.
struct Venue {
    acceptor: Acceptor<MemoryStore>,
    now: Nanos,
    good: ConnectionId,
    good_seq: u64,
    /// Messages of the good peer that came out.
    heard: u64,
    /// What was transmitted, by connection.
    sent: Vec<Vec<u8>>,
}

const GOOD: SessionId = SessionId(0);
const BAD: SessionId = SessionId(1);

impl Venue {
    fn new(rules: Option<Rules>) -> Venue {
        let mut acceptor = Acceptor::new(CONNECTIONS);
        for peer in ["GOOD", "BAD"] {
            acceptor.add(config(peer), MemoryStore::new(64, 8_192), rules.clone());
        }
        let good = acceptor.connect(START).expect("room");
        let mut venue = Venue {
            acceptor,
            now: START,
            good,
            good_seq: 1,
            heard: 0,
            sent: vec![Vec::new(); CONNECTIONS],
        };
        venue.say(good, &message("A", 1, "GOOD", START, &[(98, "0"), (108, "30")]));
        venue.good_seq = 2;
        assert_eq!(venue.acceptor.session(GOOD).status(), Status::Active);
        venue
    }

    fn connect(&mut self) -> Option<ConnectionId> {
        let id = self.acceptor.connect(self.now)?;
        self.sent[id.0].clear();
        Some(id)
    }

    /// A connection logged on as BAD.
    fn connect_bad(&mut self, seq: u64) -> ConnectionId {
        let id = self.connect().expect("room");
        self.say(id, &message("A", seq, "BAD", self.now, &[(98, "0"), (108, "30")]));
        assert_eq!(self.acceptor.session(BAD).status(), Status::Active);
        id
    }

    fn say(&mut self, id: ConnectionId, bytes: &[u8]) {
        let mut rest = bytes;
        for _ in 0..bytes.len() + 10 {
            let taken = self.acceptor.handle_bytes(self.now, id, rest);
            rest = &rest[taken..];
            self.drain();
            if rest.is_empty() {
                return;
            }
        }
        // A connection that is to be closed takes nothing more.
        assert!(
            self.acceptor.session_of(id).is_none(),
            "bytes that are never taken"
        );
    }

    fn drain(&mut self) {
        self.acceptor.settle(self.now);
        let mut buf = [0; 4_096];
        for at in 0..self.acceptor.sessions() {
            while let Some(event) = self.acceptor.poll_event(SessionId(at)) {
                self.heard += u64::from(at == GOOD.0 && matches!(event, Event::Message { .. }));
            }
        }
        for at in 0..CONNECTIONS {
            let id = ConnectionId(at);
            while let Some(bytes) = self.acceptor.poll_transmit(id, &mut buf) {
                self.sent[at].extend_from_slice(bytes);
            }
            if self.acceptor.wants_close(id) {
                self.acceptor.disconnect(self.now, id);
            }
        }
    }

    /// Time passes, and the good peer is served.
    fn turn(&mut self, ns: u64) {
        self.now = self.now.after(ns);
        self.acceptor.handle_timeout(self.now);
        let before = self.heard;
        let order = message("D", self.good_seq, "GOOD", self.now, &[(11, "1")]);
        self.good_seq += 1;
        let good = self.good;
        self.say(good, &order);
        assert_eq!(self.heard, before + 1, "the good peer is not served");
    }

    fn is_open(&self, id: ConnectionId) -> bool {
        self.acceptor.session_of(id).is_some()
    }

    fn refused(&self) -> u64 {
        self.acceptor.counters().get(Counter::FixLogonsRefused)
    }
}

fn message(kind: &str, seq: u64, from: &str, now: Nanos, body: &[(u32, &str)]) -> Vec<u8> {
    let time = String::from_utf8(tickwire_fix::Stamp::new(Default::default()).format(now).to_vec());
    let mut fields = vec![
        (35, kind.as_bytes().to_vec()),
        (34, seq.to_string().into_bytes()),
        (49, from.as_bytes().to_vec()),
        (52, time.expect("digits").into_bytes()),
        (56, b"VENUE".to_vec()),
    ];
    fields.extend(body.iter().map(|(tag, value)| (*tag, value.as_bytes().to_vec())));
    naive::encode(&fields)
}

#[test]
fn who_sends_a_byte_a_second_is_closed_after_ten_and_after_the_logon_by_the_heartbeat() {
    let mut venue = Venue::new(None);
    let slow = venue.connect().expect("room");
    let logon = message("A", 1, "BAD", START, &[(98, "0"), (108, "30")]);
    for byte in logon.iter().take(9) {
        venue.say(slow, &[*byte]);
        venue.turn(Nanos::SECOND);
        assert_eq!(venue.refused(), 0);
    }
    venue.turn(Nanos::SECOND);
    venue.turn(Nanos::SECOND);
    assert_eq!(venue.refused(), 1);
    assert_eq!(venue.sent[slow.0], b"", "it is closed without a word");
    // A Logon at once, then a byte a second of a message that never ends.
    let slow = venue.connect_bad(1);
    let long = message("D", 2, "BAD", venue.now, &[(58, &"x".repeat(4_000))]);
    let mut seconds = 0;
    for byte in long {
        if !venue.is_open(slow) {
            break;
        }
        venue.say(slow, &[byte]);
        venue.turn(Nanos::SECOND);
        seconds += 1;
    }
    assert!((70..=73).contains(&seconds), "closed after {seconds} s");
}

#[test]
fn a_body_of_a_gigabyte_is_neither_waited_for_nor_kept() {
    let mut venue = Venue::new(None);
    let huge = b"8=FIX.4.4\x019=1000000000\x0135=D\x0149=BAD\x0156=VENUE\x01";
    let id = venue.connect().expect("room");
    venue.say(id, huge);
    assert_eq!(venue.refused(), 1, "before the logon it is the end");
    let id = venue.connect_bad(1);
    for seq in 2..200 {
        venue.say(id, huge);
        venue.say(id, &message("0", seq, "BAD", venue.now, &[]));
        venue.turn(Nanos::MILLI);
    }
    let session = venue.acceptor.session(BAD);
    assert_eq!(session.status(), Status::Active, "garbled bytes are skipped");
    assert!(session.counters().get(Counter::FixMalformed) >= 198);
    // More digits than a number has.
    venue.say(id, b"8=FIX.4.4\x019=99999999999999999999\x0135=0\x01");
    // So much of it that it would have to be kept somewhere.
    for _ in 0..2_000 {
        venue.say(id, &[b'x'; 4_096]);
    }
    venue.turn(Nanos::MILLI);
}

#[test]
fn ten_thousand_fields_and_groups_whose_counts_lie_are_rejected_and_their_numbers_used() {
    let dictionary = Arc::new(Dictionary::standard("FIX.4.4").expect("it is built in"));
    for rules in [None, Some(Rules::of(dictionary))] {
        let is_checked = rules.is_some();
        let mut venue = Venue::new(None);
        // The bad session alone has rules: the good peer's messages are not orders of any dictionary.
        venue.acceptor = {
            let mut acceptor = Acceptor::new(CONNECTIONS);
            acceptor.add(config("GOOD"), MemoryStore::new(64, 8_192), None);
            let bad = SessionConfig {
                receive_bytes: 128 << 10,
                ..config("BAD")
            };
            acceptor.add(bad, MemoryStore::new(64, 8_192), rules);
            acceptor
        };
        venue.good = venue.acceptor.connect(venue.now).expect("room");
        let good = venue.good;
        venue.say(good, &message("A", 1, "GOOD", START, &[(98, "0"), (108, "30")]));
        let id = venue.connect_bad(1);
        let many: Vec<(u32, &str)> = (0..10_000).map(|n| (5_000 + n, "1")).collect();
        let bytes = message("D", 2, "BAD", venue.now, &many);
        assert!(bytes.len() > 65_536);
        venue.say(id, &bytes);
        let lies: [&[(u32, &str)]; 5] = [
            &[(11, "1"), (453, "1000000000"), (448, "X")],
            &[(11, "1"), (453, "18446744073709551615")],
            &[(11, "1"), (453, "-1"), (448, "X")],
            &[
                (11, "1"),
                (453, "2"),
                (448, "X"),
                (447, "D"),
                (452, "1"),
                (802, "4294967296"),
                (523, "Y"),
            ],
            &[
                (11, "1"),
                (78, "3"),
                (79, "A"),
                (539, "99999999"),
                (524, "B"),
                (804, "77777777"),
                (545, "C"),
            ],
        ];
        let mut seq = 3;
        for body in lies {
            venue.say(id, &message("D", seq, "BAD", venue.now, body));
            seq += 1;
            venue.turn(Nanos::MILLI);
        }
        let session = venue.acceptor.session(BAD);
        assert_eq!(session.status(), Status::Active);
        let rejects = session.counters().get(Counter::FixRejects);
        assert_eq!(rejects, if is_checked { 6 } else { 1 }, "rules: {is_checked}");
        let next = session.store().next_in();
        assert_eq!(next, seq, "a number that is not used is asked for for ever");
        let told = String::from_utf8_lossy(&venue.sent[id.0])
            .matches("\x0135=3\x01")
            .count() as u64;
        assert_eq!(told, rejects);
    }
}

#[test]
fn a_flood_of_connections_and_logons_leaves_the_others_alone() {
    let mut venue = Venue::new(None);
    // Nobody says a word: all places are taken for ten seconds, and no longer.
    let held = (0..1_000).filter(|_| venue.connect().is_some()).count();
    assert_eq!(held, CONNECTIONS - 1);
    assert_eq!(venue.refused(), 1_000 - held as u64);
    for _ in 0..11 {
        venue.turn(Nanos::SECOND);
    }
    // Logons of the unknown, of a session that is there already, of noise.
    for n in 0..3_000_u64 {
        let Some(id) = venue.connect() else {
            panic!("a place that was not given back")
        };
        let who = match n % 3 {
            0 => format!("NOBODY{n}"),
            1 => "GOOD".to_string(),
            _ => "x".repeat(60),
        };
        let logon = message("A", 1, &who, venue.now, &[(98, "0"), (108, "30"), (554, "guess")]);
        venue.say(id, &logon);
        if n % 100 == 0 {
            venue.turn(Nanos::MILLI);
        }
        assert_eq!(venue.sent[id.0], b"", "nobody is told anything");
    }
    assert_eq!(venue.acceptor.sessions(), 2);
    assert_eq!(venue.acceptor.session(GOOD).status(), Status::Active);
    assert!(venue.refused() >= 4_000 - held as u64);
    // Bytes without end before a logon, never a message.
    let id = venue.connect().expect("room");
    venue.say(id, b"8=FIX.4.4\x019=4000\x0135=A\x01");
    venue.say(id, &[b'y'; 100_000]);
    venue.turn(Nanos::MILLI);
    venue.turn(Nanos::SECOND);
}

/// Admits every newcomer.
fn admit_all(venue: &mut Venue) -> Vec<SessionId> {
    let mut admitted = Vec::new();
    while let Some(newcomer) = venue.acceptor.poll_newcomer() {
        let store = MemoryStore::new(64, 8_192);
        admitted.extend(venue.acceptor.admit(venue.now, &newcomer, store, None));
    }
    venue.drain();
    admitted
}

#[test]
fn sessions_are_made_from_a_template_as_many_as_it_admits_and_keep_their_numbers() {
    let mut venue = Venue::new(None);
    let template = SessionConfig {
        target: CompId::EMPTY,
        asks_about_logons: true,
        ..config("")
    };
    venue.acceptor.add_template(template, 3);
    let logon = |venue: &mut Venue, name: &str, seq: u64| {
        let id = venue.connect().expect("room");
        let bytes = message("A", seq, name, venue.now, &[(98, "0"), (108, "30"), (553, name)]);
        venue.say(id, &bytes);
        (id, admit_all(venue))
    };
    // The owner's word decides; who is refused leaves no session behind.
    for n in 0..50 {
        let (id, admitted) = logon(&mut venue, &format!("STRANGER{n}"), 1);
        let session = admitted[0];
        assert_eq!(
            venue.acceptor.session(session).peer(),
            comp(&format!("STRANGER{n}"))
        );
        let now = venue.now;
        venue
            .acceptor
            .session_mut(session)
            .refuse_logon(now, "unknown user");
        venue.drain();
        assert!(!venue.is_open(id));
        assert!(String::from_utf8_lossy(&venue.sent[id.0]).contains("58=unknown user"));
    }
    assert_eq!(venue.acceptor.sessions(), 3, "one place served all of them");
    // Three are taken, a fourth is not.
    let mut ids = Vec::new();
    for name in ["ANNA", "BERT", "CARL"] {
        let (id, admitted) = logon(&mut venue, name, 1);
        let now = venue.now;
        let session = venue.acceptor.session_mut(admitted[0]);
        assert_eq!(
            session.logon_request().expect("asked").username(),
            name.as_bytes()
        );
        session.accept_logon(now);
        venue.drain();
        assert_eq!(venue.acceptor.session(admitted[0]).status(), Status::Active);
        ids.push((id, admitted[0]));
    }
    let before = venue.refused();
    assert_eq!(logon(&mut venue, "DORA", 1).1, []);
    assert_eq!(venue.refused(), before + 1);
    // Who comes again finds the session and its numbers.
    let now = venue.now;
    venue.acceptor.disconnect(now, ids[1].0);
    let (_, admitted) = logon(&mut venue, "BERT", 2);
    assert_eq!(admitted, []);
    venue.acceptor.session_mut(ids[1].1).accept_logon(now);
    venue.drain();
    assert_eq!(venue.acceptor.session(ids[1].1).status(), Status::Active);
    assert_eq!(venue.acceptor.session(ids[1].1).store().next_in(), 3);
    venue.turn(Nanos::SECOND);
}

#[test]
fn sessions_with_the_same_ids_are_told_apart_by_sub_ids_or_taken_in_turn() {
    let mut acceptor: Acceptor<MemoryStore> = Acceptor::new(CONNECTIONS);
    let with_sub = |sub: &str| {
        let mut config = config("PEER");
        config.subs.target_sub = comp(sub);
        config
    };
    let qualified = |name: &str| SessionConfig {
        qualifier: comp(name),
        ..config("TWIN")
    };
    for config in [
        with_sub("DESK1"),
        with_sub("DESK2"),
        qualified("A"),
        qualified("B"),
    ] {
        acceptor.add(config, MemoryStore::new(8, 1_024), None);
    }
    let mut logon = |from: &str, sub: &str| {
        let id = acceptor.connect(START).expect("room");
        let mut body = vec![(98, "0"), (108, "30")];
        if !sub.is_empty() {
            body.insert(0, (50, sub));
        }
        let bytes = message("A", 1, from, START, &body);
        let taken = acceptor.handle_bytes(START, id, &bytes);
        assert_eq!(taken, bytes.len());
        acceptor.settle(START);
        acceptor.session_of(id)
    };
    assert_eq!(logon("PEER", "DESK2"), Some(SessionId(1)));
    assert_eq!(logon("PEER", "DESK1"), Some(SessionId(0)));
    assert_eq!(logon("PEER", "DESK1"), None, "it has a connection");
    assert_eq!(logon("PEER", ""), None);
    assert_eq!(logon("TWIN", ""), Some(SessionId(2)));
    assert_eq!(logon("TWIN", ""), Some(SessionId(3)));
    assert_eq!(logon("TWIN", ""), None);
}
