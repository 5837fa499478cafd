//! QuickFIX C++, driven by lines on standard input: `send 35=D|11=...`, `reset`, `logout`, `logon`, `quit`.
//! What happens goes to standard output, a line each: `ready`, `logon`, `logout`, `app MESSAGE`,
//! `admin MESSAGE`. An acceptor answers every order with an execution report. After `quiet` messages are not
//! shown. `roundtrip N` sends N orders, each when the one before was answered, and shows `roundtrip` with the
//! nanoseconds of each.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use quickfix::{
    Acceptor, Application, ApplicationCallback, ConnectionHandler, FfiMessageStoreFactory, FieldMap,
    FileMessageStoreFactory, FixSocketServerKind, Initiator, LogFactory, MemoryMessageStoreFactory, Message,
    MsgFromAdminError, MsgFromAppError, NullLogger, SessionContainer, SessionId, SessionSettings,
    send_to_target,
};

/// MsgSeqNum, MsgType, NewSeqNo, GapFillFlag.
const SEQ: i32 = 34;
const TYPE: i32 = 35;
const NEW_SEQ: i32 = 36;
const GAP_FILL: i32 = 123;

/// A limit order but for its ClOrdID (FIX 4.4).
const ORDER: [(i32, &str); 10] = [
    (1, "ACCOUNT-01"),
    (21, "1"),
    (55, "MSFT"),
    (54, "1"),
    (60, "20261122-12:30:00.123"),
    (38, "100"),
    (40, "2"),
    (44, "187.25"),
    (59, "0"),
    (58, "a text of some length, as clients of brokers send it"),
];

struct Peer {
    answers: bool,
    is_quiet: AtomicBool,
    trip: Mutex<Trip>,
}

/// Orders on their way to an answer.
#[derive(Default)]
struct Trip {
    left: u64,
    sent_at: Option<Instant>,
    nanos: Vec<u64>,
}

impl Peer {
    fn show(&self, what: &str, message: &Message) {
        if !self.is_quiet.load(Ordering::Relaxed) {
            say(&format!("{what} {}", text(message)));
        }
    }

    /// Sends the next order of a round trip; its end is shown.
    fn next_order(&self, id: &SessionId) -> Result<(), Box<dyn Error>> {
        let mut trip = self.trip.lock().map_err(|_| "a callback has panicked")?;
        if let Some(sent_at) = trip.sent_at.take() {
            trip.nanos.push(sent_at.elapsed().as_nanos() as u64);
        }
        if trip.left == 0 {
            if !trip.nanos.is_empty() {
                let all: Vec<String> = trip.nanos.drain(..).map(|ns| ns.to_string()).collect();
                say(&format!("roundtrip {}", all.join(" ")));
            }
            return Ok(());
        }
        trip.left -= 1;
        trip.sent_at = Some(Instant::now());
        let number = trip.left;
        drop(trip);
        let mut order = Message::new();
        order.with_header_mut(|h| h.set_field(TYPE, "D"))?;
        order.set_field(11, format!("ORD{number:09}"))?;
        for (tag, value) in ORDER {
            order.set_field(tag, value)?;
        }
        Ok(send_to_target(order, id)?)
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody reads any more: the end comes by standard input.
    let _ = writeln!(out, "{}", line.replace('\u{1}', "|"));
    let _ = out.flush();
}

fn text(message: &Message) -> String {
    message.to_fix_string().unwrap_or_default()
}

fn report(order: &Message, id: &SessionId) -> Option<Message> {
    let mut report = Message::new();
    report.with_header_mut(|h| h.set_field(TYPE, "8")).ok()?;
    let name = order.get_field(11)?;
    let qty = order.get_field(38)?;
    let mut fields = vec![
        (37, format!("O{name}")),
        (11, name.clone()),
        (17, format!("E{name}")),
        (150, "0".into()),
        (39, "0".into()),
        (55, order.get_field(55)?),
        (54, order.get_field(54)?),
        (38, qty.clone()),
        (151, qty),
        (14, "0".into()),
        (6, "0".into()),
    ];
    if id.get_begin_string().as_deref() == Some("FIX.4.2") {
        fields.push((20, "0".into()));
    }
    for (tag, value) in fields {
        report.set_field(tag, value).ok()?;
    }
    Some(report)
}

impl ApplicationCallback for Peer {
    fn on_logon(&self, _: &SessionId) {
        say("logon");
    }

    fn on_logout(&self, _: &SessionId) {
        say("logout");
    }

    fn on_msg_to_admin(&self, message: &mut Message, _: &SessionId) {
        let (kind, seq) = message.with_header(|h| (h.get_field(TYPE), h.get_field(SEQ)));
        // A reset that changes nothing: the number after this message's own.
        if kind.as_deref() == Some("4") && message.get_field(GAP_FILL).is_none() {
            let next = seq
                .and_then(|seq| seq.parse::<u64>().ok())
                .map_or(0, |seq| seq + 1);
            let set = message
                .set_field(GAP_FILL, "N")
                .and_then(|()| message.set_field(NEW_SEQ, next.to_string()));
            if let Err(e) = set {
                say(&format!("error {e}"));
            }
        }
    }

    fn on_msg_from_admin(&self, message: &Message, _: &SessionId) -> Result<(), MsgFromAdminError> {
        self.show("admin", message);
        Ok(())
    }

    fn on_msg_from_app(&self, message: &Message, id: &SessionId) -> Result<(), MsgFromAppError> {
        self.show("app", message);
        let kind = message.with_header(|h| h.get_field(TYPE));
        if self.answers && kind.as_deref() == Some("D") {
            let sent = report(message, id).map(|report| send_to_target(report, id));
            if !matches!(sent, Some(Ok(()))) {
                say(&format!("error no report: {sent:?}"));
            }
        } else if let Err(e) = self.next_order(id) {
            say(&format!("error {e}"));
        }
        Ok(())
    }
}

fn parse(text: &str) -> Result<Message, Box<dyn Error>> {
    let mut message = Message::new();
    for field in text.split('|') {
        let (tag, value) = field.split_once('=').ok_or("a field without '='")?;
        let tag: i32 = tag.parse()?;
        match tag {
            TYPE => message.with_header_mut(|h| h.set_field(tag, value))?,
            _ => message.set_field(tag, value)?,
        }
    }
    Ok(message)
}

fn drive(
    peer: &Peer,
    connector: &mut (impl ConnectionHandler + SessionContainer),
    id: impl Fn() -> SessionId,
) -> Result<(), Box<dyn Error>> {
    connector.start()?;
    say("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("send", text) => send_to_target(parse(text)?, &id())?,
            ("reset", _) => {
                connector.session(id())?.send(parse("35=4|36=1")?)?;
            }
            ("logout", _) => connector.session(id())?.logout()?,
            ("logon", _) => connector.session(id())?.logon()?,
            ("quiet", _) => peer.is_quiet.store(true, Ordering::Relaxed),
            ("roundtrip", count) => {
                peer.trip.lock().map_err(|_| "a callback has panicked")?.left = count.parse()?;
                peer.next_order(&id())?;
            }
            ("quit", _) => break,
            _ => say(&format!("error unknown command: {line}")),
        }
    }
    connector.stop()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [role, config, tls, begin, sender, target] = &args[..] else {
        return Err(
            "usage: quickfix-peer acceptor|initiator CONFIG tls|plain BEGINSTRING SENDER TARGET".into(),
        );
    };
    let settings = SessionSettings::try_from_path(Path::new(config))?;
    let lasts = settings.with_dictionary(None, |d| d.contains("FileStorePath"));
    let session = Identity {
        begin,
        sender,
        target,
    };
    match lasts {
        Some(Ok(true)) => serve(
            role,
            tls,
            &settings,
            &FileMessageStoreFactory::try_new(&settings)?,
            &session,
        ),
        _ => serve(role, tls, &settings, &MemoryMessageStoreFactory::new(), &session),
    }
}

/// Which session.
struct Identity<'a> {
    begin: &'a str,
    sender: &'a str,
    target: &'a str,
}

fn serve(
    role: &str,
    tls: &str,
    settings: &SessionSettings,
    stores: &impl FfiMessageStoreFactory,
    session: &Identity<'_>,
) -> Result<(), Box<dyn Error>> {
    let log = LogFactory::try_new(&NullLogger)?;
    let peer = Peer {
        answers: role == "acceptor",
        is_quiet: AtomicBool::new(false),
        trip: Mutex::default(),
    };
    let app = Application::try_new(&peer)?;
    let kind = match tls {
        "tls" => FixSocketServerKind::SslSingleThreaded,
        _ => FixSocketServerKind::SingleThreaded,
    };
    let Identity {
        begin,
        sender,
        target,
    } = session;
    let id = || SessionId::try_new(begin, sender, target, "").expect("a session id of four texts");
    match role {
        "acceptor" => drive(
            &peer,
            &mut Acceptor::try_new(settings, &app, stores, &log, kind)?,
            id,
        ),
        _ => drive(
            &peer,
            &mut Initiator::try_new(settings, &app, stores, &log, kind)?,
            id,
        ),
    }
}
