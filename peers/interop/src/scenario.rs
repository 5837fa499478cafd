//! What every pair of engines goes through.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tickwire_fix::{Precision, Stamp};
use tickwire_market::Nanos;

use crate::engine::{Engine, Result, Tongue, field};
use crate::proxy::{Proxy, Way};

/// Orders sent in order at a time.
const ORDERS: u64 = 50;
/// Orders lost with a connection.
const LOST: u64 = 10;
/// No order of ours is shorter.
const ORDER_BYTES: u64 = 100;

/// A version of FIX that both sides speak.
#[derive(Clone, Copy)]
pub struct Dialect {
    pub begin: &'static str,
    /// DefaultApplVerID over FIXT.
    pub application: Option<&'static str>,
    /// Files under the folder of dictionaries: of the session, of the application.
    pub dictionaries: [&'static str; 2],
}

pub const DIALECTS: [Dialect; 3] = [
    Dialect {
        begin: "FIX.4.2",
        application: None,
        dictionaries: ["FIX42.xml", "FIX42.xml"],
    },
    Dialect {
        begin: "FIX.4.4",
        application: None,
        dictionaries: ["FIX44.xml", "FIX44.xml"],
    },
    Dialect {
        begin: "FIXT.1.1",
        application: Some("FIX.5.0SP2"),
        dictionaries: ["FIXT11.xml", "FIX50SP2.xml"],
    },
];

/// Which side of a session an engine is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Acceptor,
    Initiator,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Acceptor => "acceptor",
            Role::Initiator => "initiator",
        }
    }

    /// SenderCompID and TargetCompID.
    pub fn identity(self) -> [&'static str; 2] {
        match self {
            Role::Acceptor => ["VENUE", "TRADER"],
            Role::Initiator => ["TRADER", "VENUE"],
        }
    }
}

/// An engine that can be started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Tickwire,
    QuickFix,
    QuickFixJ,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Tickwire => "Tickwire",
            Kind::QuickFix => "QuickFIX C++",
            Kind::QuickFixJ => "QuickFIX/J",
        }
    }

    /// What it answers an order with.
    fn answer(self) -> &'static str {
        match self {
            // Its built-in application sends orders back.
            Kind::Tickwire => "D",
            Kind::QuickFix | Kind::QuickFixJ => "8",
        }
    }
}

/// Where things are.
pub struct Places {
    pub tickwire: PathBuf,
    pub quickfix: PathBuf,
    /// Class path of QuickFIX/J and its peer program.
    pub quickfixj: String,
    pub dictionaries: PathBuf,
    /// Certificates of this run.
    pub certificates: PathBuf,
    /// Configuration and stores of this run.
    pub folder: PathBuf,
}

/// One session between two engines.
pub struct Pair<'a> {
    pub places: &'a Places,
    pub acceptor: Kind,
    pub initiator: Kind,
    pub dialect: Dialect,
    pub tls: bool,
}

/// A pair that runs.
struct Session {
    acceptor: Engine,
    initiator: Engine,
    proxy: Proxy,
    answer: &'static str,
    next: u64,
}

impl Session {
    fn order(&mut self) -> Result<String> {
        let order = format!("A{}", self.next);
        self.next += 1;
        let now = utc_now();
        self.initiator.tell(&format!(
            "send 35=D|11={order}|21=1|38=100|40=2|44=10.5|54=1|55=IBM|60={now}"
        ))?;
        Ok(order)
    }

    /// Sends orders and sees each arrive, once, and its answer.
    fn trade(&mut self, count: u64) -> Result<()> {
        for _ in 0..count {
            let order = self.order()?;
            let mut twice = self.initiator.message(self.answer, &order)?;
            if self.acceptor.shows_messages() {
                twice |= self.acceptor.message("D", &order)?;
            }
            if twice {
                return Err(format!(
                    "{order} was marked as a possible duplicate, and nothing was lost"
                ));
            }
        }
        Ok(())
    }

    fn logged_on(&mut self) -> Result<()> {
        for side in [&mut self.acceptor, &mut self.initiator] {
            side.wait("logon", |line| line == "logon")?;
        }
        Ok(())
    }

    fn logged_out(&mut self) -> Result<()> {
        for side in [&mut self.acceptor, &mut self.initiator] {
            side.wait("logout", |line| line == "logout")?;
        }
        Ok(())
    }

    /// Loses messages that way with their connection; all come afterwards, in order, marked.
    fn gap(&mut self, way: Way) -> Result<()> {
        let before = self.proxy.lost(way);
        self.proxy.lose(way);
        let orders: Vec<String> = (0..LOST).map(|_| self.order()).collect::<Result<_>>()?;
        if way == Way::Down && self.acceptor.shows_messages() {
            for order in &orders {
                self.acceptor.message("D", order)?;
            }
        }
        // All of it, that is: until no more comes.
        let (mut seen, mut quiet) = (before, 0);
        for _ in 0..200 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let now = self.proxy.lost(way);
            quiet = if now == seen { quiet + 1 } else { 0 };
            seen = now;
            if seen >= before + LOST * ORDER_BYTES && quiet >= 10 {
                break;
            }
        }
        if seen < before + LOST * ORDER_BYTES {
            return Err("what was to be lost was not sent".into());
        }
        self.proxy.cut();
        self.logged_on()?;
        for order in &orders {
            let marked = match way {
                Way::Up if self.acceptor.shows_messages() => self.acceptor.message("D", order)?,
                Way::Up => true,
                Way::Down => self.initiator.message(self.answer, order)?,
            };
            if !marked {
                return Err(format!("{order} was sent again without PossDupFlag"));
            }
            if way == Way::Up {
                self.initiator.message(self.answer, order)?;
            }
        }
        Ok(())
    }

    fn quit(self) -> Result<()> {
        self.initiator.quit()?;
        self.acceptor.quit()
    }
}

fn utc_now() -> String {
    let ns = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64);
    let mut stamp = Stamp::new(Precision::Seconds);
    String::from_utf8_lossy(stamp.format(Nanos(ns))).into_owned()
}

impl Pair<'_> {
    /// A configuration file in QuickFIX's format, which all three read.
    fn config(&self, role: Role, kind: Kind, port: u16, reset: bool) -> Result<PathBuf> {
        let [sender, target] = role.identity();
        let mut text = String::new();
        let d = &self.dialect;
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(text, "{key}={value}");
        };
        line("[DEFAULT]\nConnectionType", role.name());
        line("StartTime", "00:00:00");
        line("EndTime", "00:00:00");
        line("HeartBtInt", "300");
        line("ReconnectInterval", "1");
        line("SocketNodelay", "Y");
        line("ResetOnLogon", if reset { "Y" } else { "N" });
        line(
            "FileStorePath",
            &format!("{}", self.folder().join(role.name()).display()),
        );
        line("UseDataDictionary", "Y");
        // QuickFIX/J takes its own from its class path: it refuses QuickFIX's, whose XMLnonFIX message has no
        // fields.
        let [session, application] = d.dictionaries.map(|name| match kind {
            Kind::QuickFixJ => name.to_string(),
            Kind::Tickwire | Kind::QuickFix => self.places.dictionaries.join(name).display().to_string(),
        });
        match d.application {
            Some(version) => {
                line("DefaultApplVerID", version);
                line("TransportDataDictionary", &session);
                line("AppDataDictionary", &application);
            }
            None => line("DataDictionary", &application),
        }
        match role {
            Role::Acceptor => line("SocketAcceptPort", &port.to_string()),
            Role::Initiator => {
                line("SocketConnectHost", "127.0.0.1");
                line("SocketConnectPort", &port.to_string());
            }
        }
        if self.tls {
            let file = |name: &str| self.places.certificates.join(name).display().to_string();
            match kind {
                Kind::QuickFixJ => {
                    line("SocketUseSSL", "Y");
                    line("SocketKeyStore", &file(&format!("{}.p12", role.name())));
                    line("SocketKeyStorePassword", "interop");
                    line("KeyStoreType", "PKCS12");
                    line("SocketTrustStore", &file("ca.p12"));
                    line("SocketTrustStorePassword", "interop");
                    line("TrustStoreType", "PKCS12");
                    line("NeedClientAuth", "Y");
                    line("EnabledProtocols", "TLSv1.2,TLSv1.3");
                }
                Kind::QuickFix | Kind::Tickwire => {
                    if kind == Kind::Tickwire {
                        line("SocketUseSSL", "Y");
                    }
                    line("CertificationAuthoritiesFile", &file("ca.pem"));
                    let [certificate, key] = match role {
                        Role::Acceptor => ["ServerCertificateFile", "ServerCertificateKeyFile"],
                        Role::Initiator => ["ClientCertificateFile", "ClientCertificateKeyFile"],
                    };
                    line(certificate, &file(&format!("{}.pem", role.name())));
                    line(key, &file(&format!("{}.key", role.name())));
                    // Demand a certificate of the client.
                    line("CertificateVerifyLevel", "2");
                }
            }
        }
        line("[SESSION]\nBeginString", d.begin);
        line("SenderCompID", sender);
        line("TargetCompID", target);
        let path = self.folder().join(format!("{}.cfg", role.name()));
        std::fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        Ok(path)
    }

    /// Who with whom, in which version, over what.
    pub fn name(&self) -> String {
        let transport = if self.tls { "TLS" } else { "TCP" };
        let [initiator, acceptor] = [self.initiator, self.acceptor].map(Kind::name);
        format!(
            "{initiator} -> {acceptor}, {} over {transport}",
            self.dialect.begin
        )
    }

    fn folder(&self) -> PathBuf {
        let tls = if self.tls { "tls" } else { "plain" };
        let name = format!(
            "{:?}-{:?}-{}-{tls}",
            self.acceptor, self.initiator, self.dialect.begin
        );
        self.places.folder.join(name)
    }

    fn engine(&self, role: Role, config: &Path) -> Result<Engine> {
        let kind = match role {
            Role::Acceptor => self.acceptor,
            Role::Initiator => self.initiator,
        };
        let mut command = match kind {
            Kind::Tickwire => {
                let mut command = Command::new(&self.places.tickwire);
                command.args(["fix", role.name(), "-c"]).arg(config);
                command
            }
            Kind::QuickFix => {
                let [sender, target] = role.identity();
                let mut command = Command::new(&self.places.quickfix);
                command.arg(role.name()).arg(config);
                command.args([
                    if self.tls { "tls" } else { "plain" },
                    self.dialect.begin,
                    sender,
                    target,
                ]);
                command
            }
            Kind::QuickFixJ => {
                let mut command = Command::new("java");
                command
                    .args([
                        "-cp",
                        &self.places.quickfixj,
                        "tickwire.interop.Peer",
                        role.name(),
                    ])
                    .arg(config);
                command
            }
        };
        let log = self.folder().join(format!("{}.log", role.name()));
        let tongue = match (kind, role) {
            (Kind::Tickwire, Role::Acceptor) => Tongue::Echo,
            (Kind::Tickwire, Role::Initiator) => Tongue::Prompt,
            (Kind::QuickFix | Kind::QuickFixJ, _) => Tongue::Peer,
        };
        let mut engine = Engine::start(
            &format!("{} as {}", kind.name(), role.name()),
            tongue,
            &log,
            &mut command,
        )?;
        engine.ready()?;
        Ok(engine)
    }

    fn start(&self, reset: bool, next: u64) -> Result<Session> {
        let port = free_port()?;
        let acceptor = self.config(Role::Acceptor, self.acceptor, port, false)?;
        let acceptor = self.engine(Role::Acceptor, &acceptor)?;
        let proxy = Proxy::start(port).map_err(|e| format!("no proxy: {e}"))?;
        let initiator = self.config(Role::Initiator, self.initiator, proxy.port, reset)?;
        let initiator = self.engine(Role::Initiator, &initiator)?;
        let mut session = Session {
            acceptor,
            initiator,
            proxy,
            answer: self.acceptor.answer(),
            next,
        };
        session.logged_on()?;
        Ok(session)
    }

    /// Acceptor and initiator, connected to each other and logged on. Without `lasts` their stores are in
    /// memory.
    pub fn start_alone(&self, lasts: bool) -> Result<[Engine; 2]> {
        self.clear()?;
        let port = free_port()?;
        let start = |role: Role, kind: Kind| {
            let path = self.config(role, kind, port, true)?;
            if !lasts {
                let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
                let kept: Vec<&str> = text
                    .lines()
                    .filter(|line| !line.starts_with("FileStorePath"))
                    .collect();
                std::fs::write(&path, kept.join("\n") + "\n").map_err(|e| e.to_string())?;
            }
            self.engine(role, &path)
        };
        let mut acceptor = start(Role::Acceptor, self.acceptor)?;
        let mut initiator = start(Role::Initiator, self.initiator)?;
        for side in [&mut acceptor, &mut initiator] {
            side.wait("logon", |line| line == "logon")?;
        }
        Ok([acceptor, initiator])
    }

    /// Nothing is left of an earlier run.
    fn clear(&self) -> Result<()> {
        let folder = self.folder();
        let _ = std::fs::remove_dir_all(&folder);
        for role in [Role::Acceptor, Role::Initiator] {
            std::fs::create_dir_all(folder.join(role.name()))
                .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        }
        Ok(())
    }

    /// The whole way; what was shown, step by step.
    pub fn run(&self, mut step: impl FnMut(&str)) -> Result<()> {
        self.clear()?;
        let mut session = self.start(false, 1)?;
        session.trade(ORDERS)?;
        step("logon, orders");
        session.gap(Way::Up)?;
        session.trade(1)?;
        step("orders lost, sent again");
        session.gap(Way::Down)?;
        session.trade(1)?;
        step("answers lost, sent again");
        session.initiator.tell("reset")?;
        session.trade(1)?;
        session.acceptor.tell("reset")?;
        session.trade(1)?;
        step("sequence reset");
        session.initiator.tell("logout")?;
        session.logged_out()?;
        step("logout");
        let next = session.next;
        session.quit()?;
        let mut session = self.start(false, next)?;
        session.trade(ORDERS)?;
        let next = session.next;
        session.acceptor.tell("logout")?;
        session.logged_out()?;
        session.quit()?;
        step("restart from the stores, logout by the acceptor");
        let mut session = self.start(true, next)?;
        let order = session.order()?;
        // Ours shows what it sends back, under the same number.
        let seen_by = match session.acceptor.shows_messages() {
            true => &mut session.acceptor,
            false => &mut session.initiator,
        };
        let line = seen_by.wait("an order", |line| {
            line.starts_with("app ") && field(line, 11) == Some(&order)
        })?;
        if field(&line, 34) != Some("2") {
            return Err(format!(
                "after ResetSeqNumFlag the first order is not number 2: {line}"
            ));
        }
        session.quit()?;
        step("reset at logon");
        Ok(())
    }
}

fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).map_err(|e| format!("no port: {e}"))?;
    listener.local_addr().map(|a| a.port()).map_err(|e| e.to_string())
}
