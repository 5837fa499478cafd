//! What a session writes by itself has, in every version, only what that version's dictionary has for it:
//! provoked in every way there is, and checked against the built-in dictionaries as a peer would.

use std::sync::Arc;
use tickwire_fix::dict::{Dictionary, Validation, Validator};
use tickwire_fix::{
    CompId, Event, Fault, Index, Precision, Role, Rules, Session, SessionConfig, SessionRejectReason, Stamp,
    Version, naive,
};
use tickwire_market::Nanos;

use crate::subset;

const START: Nanos = Nanos(1_795_226_141_000_000_000);

struct Run {
    version: Version,
    rules: Rules,
    session: Session,
    now: Nanos,
    seq: u64,
    /// Everything it wrote.
    sent: Vec<Vec<u8>>,
    /// Every application message.
    refuses: bool,
}

fn rules(version: Version) -> Rules {
    let read = |name: &str| Arc::new(Dictionary::standard(name).expect("it is built in"));
    let application = read(version.name());
    Rules {
        session: if version.is_fixt() {
            read("FIXT.1.1")
        } else {
            application.clone()
        },
        application,
        validation: Validation::default(),
    }
}

impl Run {
    fn new(version: Version, role: Role, change: impl FnOnce(&mut SessionConfig), checks: bool) -> Run {
        let id = |text: &[u8]| CompId::new(text).expect("an identity");
        let mut config = SessionConfig::new(role, id(b"US"), id(b"THEM")).of_version(version);
        config.heartbeat_s = 10;
        change(&mut config);
        let rules = rules(version);
        let store = tickwire_fix::MemoryStore::new(64, 1 << 16);
        let mut session = Session::with_rules(config, store, checks.then(|| rules.clone()));
        session.handle_connected(START);
        let mut run = Run {
            version,
            rules,
            session,
            now: START,
            seq: 1,
            sent: Vec::new(),
            refuses: checks,
        };
        run.drain();
        run
    }

    /// The peer says something; `head` are further fields of the header.
    fn hear_as(&mut self, seq: u64, kind: &str, head: &[(u32, &str)], body: &[(u32, &str)]) {
        let mut stamp = Stamp::new(Precision::Seconds);
        let field = |tag: u32, value: &str| (tag, value.as_bytes().to_vec());
        let mut fields = vec![
            field(35, kind),
            field(34, &seq.to_string()),
            field(49, "THEM"),
            (52, stamp.format(self.now).to_vec()),
            field(56, "US"),
        ];
        // Another identity stands for the usual one.
        let body = match body {
            [(49, other), rest @ ..] => {
                fields[2] = field(49, other);
                rest
            }
            _ => body,
        };
        fields.extend(head.iter().chain(body).map(|(tag, value)| field(*tag, value)));
        let begin = std::str::from_utf8(self.version.begin_string()).expect("ASCII");
        let message = naive::encode_as(begin, &fields);
        assert_eq!(self.session.handle_bytes(self.now, &message), message.len());
        self.drain();
    }

    fn hear(&mut self, kind: &str, head: &[(u32, &str)], body: &[(u32, &str)]) {
        let seq = self.seq;
        self.seq += 1;
        self.hear_as(seq, kind, head, body);
    }

    fn log_on(&mut self) {
        let mut body = vec![(98, "0"), (108, "10")];
        let appl = self.version.appl_ver_id().map(|id| (id as char).to_string());
        if let Some(id) = &appl {
            body.push((1137, id));
        }
        self.hear("A", &[], &body);
    }

    fn wait(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now = self.now.after(Nanos::SECOND);
            self.session.handle_timeout(self.now);
            self.drain();
        }
    }

    fn drain(&mut self) {
        let mut buffer = [0; 4096];
        loop {
            let mut wire = Vec::new();
            while let Some(bytes) = self.session.poll_transmit(&mut buffer) {
                wire.extend_from_slice(bytes);
            }
            let mut rest = &wire[..];
            while let tickwire_fix::Frame::Whole(len) = tickwire_fix::frame(rest, 1 << 16) {
                self.sent.push(rest[..len].to_vec());
                rest = &rest[len..];
            }
            assert!(rest.is_empty());
            match self.session.poll_event() {
                Some(Event::Message { .. }) if self.refuses => self.session.refuse(self.now),
                Some(Event::Message { .. }) => {
                    let _ = subset::take(&mut self.session, self.now);
                }
                Some(_) => {}
                None if wire.is_empty() => return,
                None => {}
            }
        }
    }

    /// Every message that was sent is one that a peer with the standard's dictionary takes.
    fn check(self, what: &str, kinds: &[&[u8]]) {
        let mut index = Index::new(256);
        let mut validator = Validator::new(&self.rules.session, &self.rules.application);
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for bytes in &self.sent {
            let shown = bytes.escape_ascii().to_string().replace("\\x01", "|");
            let message = index.decode(bytes).expect("a message");
            let checked = validator.check(
                &self.rules.session,
                &self.rules.application,
                &message,
                Validation::default(),
            );
            // The public suite wants DefaultApplVerID (1137) in a BusinessMessageReject over FIXT, where the
            // dictionaries have none.
            let known = message.msg_type() == b"j" && self.version.is_fixt();
            let wanted = match known {
                true => Err(Fault::new(SessionRejectReason::TagNotDefined, 1137)),
                false => Ok(()),
            };
            assert_eq!(checked, wanted, "{:?}, {what}: {shown}", self.version);
            seen.push(message.msg_type().to_vec());
        }
        for kind in kinds {
            let shown = kind.escape_ascii();
            assert!(
                seen.iter().any(|s| s == kind),
                "{:?}, {what}: no {shown} was sent",
                self.version
            );
        }
    }
}

/// The ways back of a message that others sent on.
const ROUTE: [(u32, &str); 6] = [
    (115, "A"),
    (116, "B"),
    (128, "C"),
    (129, "D"),
    (144, "E"),
    (145, "F"),
];

#[test]
fn whatever_a_session_writes_is_of_its_version() {
    for version in Version::ALL {
        for checks in [false, true] {
            let mut run = Run::new(version, Role::Acceptor, |_| {}, checks);
            run.log_on();
            run.hear("1", &[], &[(112, "T")]);
            run.wait(11);
            run.hear("1", &[], &[]);
            run.hear("0", &ROUTE, &[(112, "")]);
            run.hear("2", &[], &[(7, "1"), (16, "0")]);
            run.hear("2", &[], &[(7, "99"), (16, "0")]);
            run.hear("4", &[(43, "N")], &[(123, "Y"), (36, "1")]);
            // Values, formats, tags, places, groups, types: every reason of a Reject.
            run.hear("1", &ROUTE, &[(112, "T"), (112, "T")]);
            run.hear("1", &ROUTE[..4], &[(112, "T"), (44, "x")]);
            run.hear("1", &ROUTE, &[(112, "T"), (4999, "x")]);
            run.hear("1", &[], &[(112, "T"), (95, "2"), (96, "abcd")]);
            run.hear("1", &[], &[(112, "T"), (50, "late")]);
            run.hear("D", &ROUTE, &[(11, "1"), (40, "w")]);
            run.hear("R", &[], &[(131, "Q"), (146, "5"), (55, "X")]);
            run.hear("zz", &ROUTE, &[(58, "nobody knows it")]);
            run.hear("B", &[], &[(148, "news"), (33, "1"), (58, "text")]);
            run.hear_as(run.seq + 3, "0", &[], &[]);
            run.wait(13);
            run.session.logout(run.now, "that is all");
            run.drain();
            let kinds: [&[u8]; 7] = [b"A", b"0", b"1", b"2", b"3", b"4", b"5"];
            run.check("acceptor", &kinds);

            let mut run = Run::new(version, Role::Acceptor, |_| {}, checks);
            run.log_on();
            run.hear_as(2, "0", &[], &[(49, "x")]);
            run.check("CompIDs", &[b"3", b"5"]);

            let mut run = Run::new(version, Role::Acceptor, |_| {}, checks);
            run.log_on();
            run.hear_as(1, "0", &[], &[]);
            run.check("too low", &[b"5"]);

            let mut run = Run::new(
                version,
                Role::Initiator,
                |config| config.reset_on_logon = true,
                checks,
            );
            run.log_on();
            run.hear("B", &[], &[(148, "news"), (33, "1"), (58, "text")]);
            run.check("reset", &[b"A"]);
        }
    }
}

#[test]
fn application_messages_nobody_wants_are_answered_as_the_version_can() {
    for version in Version::ALL {
        let mut run = Run::new(version, Role::Acceptor, |_| {}, false);
        run.log_on();
        run.hear("zz", &[], &[(58, "nobody knows it")]);
        let older = matches!(version, Version::Fix40 | Version::Fix41);
        run.check("unknown type", &[if older { b"3" } else { b"j" }]);
    }
}
