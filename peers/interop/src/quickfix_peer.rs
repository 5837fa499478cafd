//! QuickFIX C++, driven by lines on standard input: `send 35=D|11=...`, `reset`, `logout`, `logon`, `quit`. What happens goes to
//! standard output, a line each: `ready`, `logon`, `logout`, `app MESSAGE`, `admin MESSAGE`. An acceptor answers every order with an
//! execution report.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;

use quickfix::{
    Acceptor, Application, ApplicationCallback, ConnectionHandler, FieldMap, FileMessageStoreFactory,
    FixSocketServerKind, Initiator, LogFactory, Message, MsgFromAdminError, MsgFromAppError, NullLogger,
    SessionContainer, SessionId, SessionSettings, send_to_target,
};

/// MsgSeqNum, MsgType, NewSeqNo, GapFillFlag.
const SEQ: i32 = 34;
const TYPE: i32 = 35;
const NEW_SEQ: i32 = 36;
const GAP_FILL: i32 = 123;

struct Peer {
    answers: bool,
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
        say(&format!("admin {}", text(message)));
        Ok(())
    }

    fn on_msg_from_app(&self, message: &Message, id: &SessionId) -> Result<(), MsgFromAppError> {
        say(&format!("app {}", text(message)));
        let kind = message.with_header(|h| h.get_field(TYPE));
        if self.answers && kind.as_deref() == Some("D") {
            let sent = report(message, id).map(|report| send_to_target(report, id));
            if !matches!(sent, Some(Ok(()))) {
                say(&format!("error no report: {sent:?}"));
            }
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
    let stores = FileMessageStoreFactory::try_new(&settings)?;
    let log = LogFactory::try_new(&NullLogger)?;
    let peer = Peer {
        answers: role == "acceptor",
    };
    let app = Application::try_new(&peer)?;
    let kind = match tls.as_str() {
        "tls" => FixSocketServerKind::SslSingleThreaded,
        _ => FixSocketServerKind::SingleThreaded,
    };
    let id = || SessionId::try_new(begin, sender, target, "").expect("a session id of four texts");
    match role.as_str() {
        "acceptor" => drive(&mut Acceptor::try_new(&settings, &app, &stores, &log, kind)?, id),
        _ => drive(&mut Initiator::try_new(&settings, &app, &stores, &log, kind)?, id),
    }
}
