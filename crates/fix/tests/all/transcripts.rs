//! One session against a scripted peer: every file of `vectors/fix44` is a transcript that reads aloud.
//! `UPDATE=1` writes down what the session does now; read the diff.
//!
//! A case is some lines of input, `----`, and what came of each. Fields are shown with `|` for the separator
//! and without BeginString, BodyLength and CheckSum. Input:
//!
//! - `acceptor` or `initiator` with `key=value` options begins a session,
//! - `connect`, `disconnect`: the transport,
//! - `in TYPE SEQ tag=value…`: a message of the peer, sent now; a 49, 52, 56 or 8 given replaces the usual
//!   one,
//! - `raw TEXT`: bytes as they are,
//! - `wait MS`: time passes, every time-out on the way is handled; `back MS`: the clock is set back,
//! - `send N` sends N orders (an acceptor: execution reports), `logout TEXT`,
//! - `accept`, `refuse TEXT`: the owner's word on a Logon,
//! - `hours START END [START END]`: the session period, and the next one, in seconds from now.

use std::fmt::Write;
use tickwire_fix::{
    Again, CancelOn, CompId, Credentials, Event, Excess, ExecType, ExecutionReport, Hours, Id,
    NewOrderSingle, OrdStatus, Period, Precision, Reason, Role, Secret, SendError, Session, SessionConfig,
    Stamp, Store, SubIds, Text, Throttle, Version, naive,
};
use tickwire_market::{Counter, Nanos, OrderType, Price, Qty, SeqNo, Side, Symbol, TimeInForce};
use tickwire_testdata::{files, workspace};

use crate::subset;

use subset::Typed;

const START: Nanos = Nanos(1_795_226_141_000_000_000);

struct Run {
    session: Session,
    now: Nanos,
    orders: u64,
}

impl Run {
    fn new(line: &str) -> Run {
        let mut words = line.split(' ');
        let role = if words.next() == Some("acceptor") {
            Role::Acceptor
        } else {
            Role::Initiator
        };
        let comp = |text: &str| CompId::new(text.as_bytes()).unwrap();
        let (us, them) = if role == Role::Acceptor {
            ("VENUE", "BUYER")
        } else {
            ("BUYER", "VENUE")
        };
        let mut config = SessionConfig::new(role, comp(us), comp(them));
        for option in words {
            let (key, value) = option
                .split_once('=')
                .unwrap_or_else(|| panic!("not an option: {option}"));
            let number = || {
                value
                    .parse::<usize>()
                    .unwrap_or_else(|_| panic!("not a number: {option}"))
            };
            match key {
                "heartbeat" => config.heartbeat_s = number() as u32,
                "reset" => config.reset_on_logon = value == "yes",
                "anybody" => config.target = CompId::EMPTY,
                "store" => config.store_messages = number(),
                "early" => config.early_bytes = number(),
                "transmit" => (config.transmit_bytes, config.receive_bytes) = (number(), 1024),
                "fields" => config.fields_max = number(),
                "version" => config = config.of_version(Version::from_name(value).expect("a version")),
                "subs" => config.subs = subs(value),
                "user" => config.credentials = credentials(value),
                "ask" => config.asks_about_logons = value == "yes",
                "admin" => config.tells_session_messages = value == "yes",
                "resends" => config.asks_about_resends = value == "yes",
                "test" => config.is_test = Some(value == "yes"),
                "heartbeat_min" => config.heartbeat_s_min = number() as u32,
                "heartbeat_max" => config.heartbeat_s_max = number() as u32,
                "next_expected" => config.next_expected = value == "yes",
                "processed" => config.last_processed = value == "yes",
                "says_size" => config.says_message_max = value == "yes",
                "reset_on_logout" => config.reset_on_logout = value == "yes",
                "reset_on_disconnect" => config.reset_on_disconnect = value == "yes",
                "chunk" => config.resend_chunk = number() as u64,
                "repeats" => config.resend_repeats_max = number() as u32,
                "out" => config.throttle_out = Some(throttle(value)),
                "in" => config.throttle_in = Some(throttle(value)),
                "cancel" => config.cancel_on = CancelOn::ConnectionLost,
                "cancel_any" => config.cancel_on = CancelOn::AnyEnd,
                "cancel_after" => config.cancel_after_ns = number() as u64 * Nanos::MILLI,
                "keeps" => config.keeps_messages = value == "yes",
                "comp_ids" => config.checks_comp_ids = value == "yes",
                "orig_time" => config.wants_orig_sending_time = value == "yes",
                "test_after" => config.test_after_permille = number() as u32,
                "silence_max" => config.silence_max_permille = number() as u32,
                "nanos" => config.precision = Precision::Nanos,
                _ => panic!("unknown option {option}"),
            }
        }
        Run {
            session: Session::new(config),
            now: START,
            orders: 0,
        }
    }

    fn step(&mut self, line: &str, out: &mut String) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "acceptor" | "initiator" => *self = Run::new(line),
            "connect" => self.session.handle_connected(self.now),
            "disconnect" => self.session.handle_disconnected(self.now),
            "in" => {
                let bytes = self.message(rest);
                self.receive(&bytes);
            }
            "raw" => self.receive(rest.replace('|', "\x01").as_bytes()),
            "wait" => self.wait(rest.parse().expect("milliseconds"), out),
            "back" => {
                self.now.0 -= rest.parse::<u64>().expect("milliseconds") * Nanos::MILLI;
                self.session.handle_timeout(self.now);
            }
            "send" => {
                for _ in 0..rest.parse::<u64>().expect("a count") {
                    self.orders += 1;
                    match self.send() {
                        Ok(seq) => writeln!(out, "sent {seq}").unwrap(),
                        Err(error) => writeln!(out, "refused {error:?}").unwrap(),
                    }
                }
            }
            "logout" => self.session.logout(self.now, rest),
            "accept" => {
                let request = self.session.logon_request().expect("a Logon waits");
                writeln!(out, "{request:?}").unwrap();
                self.session.accept_logon(self.now);
            }
            "resend" => {
                let (seq, _) = self.session.resend_asked().expect("a resend waits");
                writeln!(out, "asked {seq}").unwrap();
                self.session.decide_resend(seq, rest == "yes");
            }
            "refuse" => self.session.refuse_logon(self.now, rest),
            "hours" => self.session.set_hours(self.now, hours(self.now, rest)),
            "unread" => {
                // The transport takes nothing: answers pile up.
                for seq in 2..200 {
                    let bytes = self.message(&format!("1 {seq} 112=PILE"));
                    assert_eq!(self.session.handle_bytes(self.now, &bytes), bytes.len());
                }
            }
            _ => panic!("unknown verb {verb}"),
        }
        self.drain(out);
    }

    fn receive(&mut self, bytes: &[u8]) {
        assert_eq!(
            self.session.handle_bytes(self.now, bytes),
            bytes.len(),
            "transcripts drain every step"
        );
    }

    fn message(&self, line: &str) -> Vec<u8> {
        let mut words = line.split(' ');
        let (msg_type, seq) = (words.next().expect("a type"), words.next().expect("a number"));
        let mut stamp = Stamp::new(Precision::Millis);
        let config = self.session.config();
        let us = config.sender.as_str();
        let them = if us == "VENUE" { "BUYER" } else { "VENUE" };
        let time = String::from_utf8(stamp.format(self.now).to_vec()).unwrap();
        let mut header = vec![(35, msg_type.to_string()), (34, seq.to_string())];
        header.extend([(49, them.to_string()), (52, time), (56, us.to_string())]);
        for (tag, ours) in [
            (57, config.subs.sender_sub),
            (50, config.subs.target_sub),
            (143, config.subs.sender_location),
            (142, config.subs.target_location),
        ] {
            if !ours.is_empty() {
                header.push((tag, ours.to_string()));
            }
        }
        let fixed = header.len();
        let mut begin = self.begin();
        for word in words {
            let (tag, value) = word
                .split_once('=')
                .unwrap_or_else(|| panic!("not a field: {word}"));
            let (tag, value) = (tag.parse::<u32>().unwrap(), value.replace('_', " "));
            match (tag, header.iter().position(|(have, _)| *have == tag)) {
                (8, _) => begin = word.strip_prefix("8=").unwrap(),
                (_, Some(at)) if value.is_empty() => drop(header.remove(at)),
                (_, Some(at)) if at < fixed => header[at].1 = value,
                (43 | 97 | 122, _) => header.insert(5.min(header.len()), (tag, value)),
                _ => header.push((tag, value)),
            }
        }
        let fields: Vec<(u32, Vec<u8>)> = header
            .into_iter()
            .map(|(tag, value)| (tag, value.into_bytes()))
            .collect();
        naive::encode_as(begin, &fields)
    }

    fn begin(&self) -> &'static str {
        std::str::from_utf8(self.session.config().version.begin_string()).unwrap()
    }

    fn send(&mut self) -> Result<SeqNo, SendError> {
        let (id, price) = (Id::from_number(self.orders), Some(Price::from_4dp(873_900)));
        let symbol = Symbol::new(b"WIRE").unwrap();
        match self.session.config().role {
            Role::Initiator => {
                let order = NewOrderSingle {
                    cl_ord_id: id,
                    symbol,
                    side: Side::Bid,
                    transact_time: self.now,
                    qty: Qty(100),
                    order_type: OrderType::Limit,
                    price,
                    stop: None,
                    time_in_force: TimeInForce::ImmediateOrCancel,
                    cause: None,
                };
                self.session
                    .send(self.now, NewOrderSingle::MSG_TYPE, Again::Resend, |e, stamp| {
                        order.encode(e, stamp)
                    })
            }
            Role::Acceptor => {
                let report = ExecutionReport {
                    order_id: id,
                    cl_ord_id: id,
                    orig_cl_ord_id: Id::EMPTY,
                    exec_id: id,
                    exec_type: ExecType::New,
                    ord_status: OrdStatus::New,
                    ord_rej_reason: None,
                    symbol,
                    side: Side::Bid,
                    qty: Qty(100),
                    order_type: OrderType::Limit,
                    price,
                    stop: None,
                    is_working: false,
                    time_in_force: TimeInForce::Day,
                    last_qty: Qty(0),
                    last_px: None,
                    leaves_qty: Qty(100),
                    cum_qty: Qty(0),
                    avg_px: Price::from_raw(0),
                    transact_time: self.now,
                    cause: None,
                    text: Reason::EMPTY,
                };
                self.session
                    .send(self.now, ExecutionReport::MSG_TYPE, Again::Resend, |e, stamp| {
                        report.encode(e, stamp)
                    })
            }
        }
    }

    fn wait(&mut self, ms: u64, out: &mut String) {
        let end = self.now.after(ms * Nanos::MILLI);
        while let Some(due) = self.session.poll_timeout().filter(|due| *due <= end) {
            self.now = due;
            self.session.handle_timeout(due);
            writeln!(out, "at {} ms", due.since(START) / Nanos::MILLI).unwrap();
            self.drain(out);
        }
        self.now = end;
    }

    /// Shows what was sent, then what was told of, until there is nothing of either.
    fn drain(&mut self, out: &mut String) {
        let (mut wire, mut told) = (Vec::new(), String::new());
        let mut buf = [0; 64];
        loop {
            let before = (wire.len(), told.len(), self.session.backlog());
            while let Some(bytes) = self.session.poll_transmit(&mut buf) {
                wire.extend_from_slice(bytes);
            }
            self.hear(&mut told);
            if before == (wire.len(), told.len(), self.session.backlog()) {
                break;
            }
        }
        let text = String::from_utf8(wire).unwrap();
        let begin = format!("8={}\x01", self.begin());
        let messages: Vec<&str> = text.split(&begin).skip(1).collect();
        for (at, message) in messages.iter().enumerate() {
            if at == 10 {
                writeln!(out, "out ... {} more", messages.len() - at).unwrap();
                break;
            }
            let whole = format!("{begin}{message}");
            let fields =
                naive::decode(whole.as_bytes()).unwrap_or_else(|| panic!("not a message: {whole:?}"));
            let shown: Vec<String> = fields[2..]
                .iter()
                .map(|(tag, value)| format!("{tag}={}", String::from_utf8_lossy(value)))
                .collect();
            writeln!(out, "out {}", shown.join("|")).unwrap();
        }
        out.push_str(&told);
    }

    fn hear(&mut self, told: &mut String) {
        while let Some(event) = self.session.poll_event() {
            let Event::Message {
                seq,
                poss_dup,
                poss_resend,
                ..
            } = event
            else {
                writeln!(told, "{}", show(&event)).unwrap();
                continue;
            };
            let Some(message) = subset::take(&mut self.session, self.now) else {
                continue;
            };
            let what = match message {
                Typed::Order(m) => format!("order {}", m.cl_ord_id),
                Typed::Report(m) => format!("execution {}", m.exec_id),
                Typed::Cancel(m) => format!("cancel {}", m.orig_cl_ord_id),
                Typed::Replace(m) => format!("replace {}", m.orig_cl_ord_id),
                Typed::CancelReject(m) => format!("cancel reject {}", m.cl_ord_id),
                Typed::BusinessReject(m) => format!("business reject {}", m.text),
            };
            let dup = if poss_dup { ", perhaps a duplicate" } else { "" };
            let again = if poss_resend { ", perhaps sent before" } else { "" };
            writeln!(told, "RECEIVED {seq} {what}{dup}{again}").unwrap();
        }
    }

    fn state(&self) -> String {
        let counters = self.session.counters();
        let mut counted = String::new();
        for counter in [
            Counter::FixMalformed,
            Counter::FixRejects,
            Counter::FixResends,
            Counter::FixResendRepeats,
            Counter::FixThrottled,
        ] {
            if counters.get(counter) > 0 {
                write!(counted, ", {} {}", counter.spec().label, counters.get(counter)).unwrap();
            }
        }
        let store = self.session.store();
        format!(
            "{:?}, next in {}, out {}{counted}",
            self.session.status(),
            store.next_in(),
            store.next_out()
        )
    }
}

/// `OURS:THEIRS`, or `OURS:THEIRS:OURPLACE:THEIRPLACE`.
fn subs(text: &str) -> SubIds {
    let mut parts = text.split(':').map(|part| CompId::new(part.as_bytes()).unwrap());
    let mut next = || parts.next().unwrap_or_default();
    SubIds {
        sender_sub: next(),
        target_sub: next(),
        sender_location: next(),
        target_location: next(),
    }
}

/// `NAME:PASSWORD[:NEW]`.
fn credentials(text: &str) -> Credentials {
    let mut parts = text.split(':').map(str::as_bytes);
    let mut next = || parts.next().unwrap_or_default();
    Credentials {
        username: Text::new(next()).unwrap(),
        password: Secret::new(next()).unwrap(),
        new_password: Secret::new(next()).unwrap(),
    }
}

/// `PER_SECOND/BURST/EXCESS`.
fn throttle(text: &str) -> Throttle {
    let parts: Vec<&str> = text.split('/').collect();
    Throttle {
        per_second: parts[0].parse().unwrap(),
        burst: parts[1].parse().unwrap(),
        excess: match parts[2] {
            "delay" => Excess::Delay,
            "reject" => Excess::Reject,
            "disconnect" => Excess::Disconnect,
            other => panic!("no such excess: {other}"),
        },
    }
}

fn hours(now: Nanos, text: &str) -> Hours {
    let instants: Vec<Nanos> = text
        .split(' ')
        .map(|s| Nanos((now.0 as i64 + s.parse::<i64>().unwrap() * Nanos::SECOND as i64) as u64))
        .collect();
    let mut periods = instants.chunks(2).map(|p| Period::new(p[0], p[1]));
    let first = periods.next();
    match first.filter(|p| p.contains(now)) {
        Some(_) => Hours {
            current: first,
            next: periods.next(),
        },
        None => Hours {
            current: None,
            next: first,
        },
    }
}

fn show(event: &Event) -> String {
    match event {
        Event::LogonRequested { peer } => format!("LOGON REQUESTED by {peer}"),
        Event::CancelOrders { peer } => format!("CANCEL ORDERS of {peer}"),
        Event::LoggedOn {
            peer,
            heartbeat_s,
            reset,
        } => format!("LOGGED ON {peer}, heartbeat {heartbeat_s}, reset {reset}"),
        Event::Message { .. } => unreachable!("the run takes it"),
        Event::Gap { expected, received } => format!("GAP {expected} to {received}"),
        Event::Rejected {
            ref_seq,
            ref_tag,
            reason,
            text,
        } => format!("REJECTED {ref_seq} tag {ref_tag} {reason:?} {text}"),
        Event::Admin { seq } => format!("ADMIN {seq}"),
        Event::NotKept { first, last, count } => format!("NOT KEPT {first} to {last}, {count} of them"),
        Event::Disconnect { reason, text } => format!("DISCONNECT {reason:?} {text}").trim_end().to_string(),
    }
}

/// Comments and inputs as they are, results anew.
fn replay(text: &str) -> String {
    let mut out = String::new();
    let mut run = Run::new("acceptor");
    for case in text
        .split("\n\n")
        .map(str::trim_end)
        .filter(|case| !case.is_empty())
    {
        let input = case.split_once("\n----").map_or(case, |(input, _)| input);
        writeln!(out, "{input}\n----").unwrap();
        for line in input.lines().filter(|line| !line.starts_with('#')) {
            writeln!(out, "> {line}").unwrap();
            run.step(line, &mut out);
        }
        writeln!(out, "{}\n", run.state()).unwrap();
    }
    format!("{}\n", out.trim_end())
}

#[test]
fn every_transcript_reads_as_written() {
    let update = std::env::var_os("UPDATE").is_some();
    for path in files(&workspace().join("vectors/fix44"), "txt") {
        let written = std::fs::read_to_string(&path).unwrap();
        let replayed = replay(&written);
        if update {
            std::fs::write(&path, replayed).unwrap();
        } else {
            let differs = written.lines().zip(replayed.lines()).position(|(a, b)| a != b);
            let at = differs.unwrap_or(written.lines().count().min(replayed.lines().count()));
            assert!(
                written == replayed,
                "{} line {}:\n  written  {:?}\n  replayed {:?}",
                path.display(),
                at + 1,
                written.lines().nth(at),
                replayed.lines().nth(at)
            );
        }
    }
}
