//! What QuickFIX's configuration files say about sessions.
//!
//! A key that is known to have no meaning here is passed over; one that nobody knows, or a value that cannot be, is an
//! error that names file, line and what would do.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tickwire_fix::dict::{Dictionary, Validation};
use tickwire_fix::{
    CancelOn, CompId, Credentials, Excess, HostOrder, HostsConfig, Precision, Role, Rules, Secret,
    SessionConfig, SubIds, Text, Throttle, Version,
};
use tickwire_market::Nanos;
use tickwire_runtime::tls::{ClientCertificates, Identity, TlsClient, TlsError, TlsServer};
use tickwire_runtime::wait::WaitStrategy;

use super::cfg::{Mistake, Section, sections};
use super::hours::Calendar;
use super::users::Users;
use crate::failure::Failure;

/// Keys of QuickFIX that say nothing to us, each with the reason in a few words.
const WITHOUT_MEANING: [(&str, &str); 11] = [
    ("ApplicationDictionary", "QuickFIX/N's own"),
    ("FileLogBackupPath", "logs are appended to"),
    ("PersistMessages", "resends need the messages"),
    ("RefreshOnLogon", "nobody else writes our store"),
    (
        "ScreenLogShowIncoming",
        "nothing is logged on the way of a message",
    ),
    ("ScreenLogShowOutgoing", "as ScreenLogShowIncoming"),
    ("ScreenLogShowEvents", "as ScreenLogShowIncoming"),
    ("SocketNodelay", "always on"),
    ("SocketReuseAddress", "always on"),
    ("SocketSynchronousWrites", "never waits"),
    ("SocketSynchronousWriteTimeout", "never waits"),
];

/// One session of a file.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// Where its section begins in the file.
    pub(super) line: usize,
    pub(super) config: SessionConfig,
    pub(super) rules: Option<Rules>,
    pub(super) transport: TransportSetup,
    pub(super) thread: ThreadSetup,
    /// The file that the session's messages and numbers last in; in memory only without one.
    pub(super) store: Option<StoreSetup>,
    /// The folder of its message log.
    pub(super) log: Option<PathBuf>,
    pub(super) tls: Option<Tls>,
    pub(super) calendar: Option<Calendar>,
    /// The file that its application messages are copied to, both ways.
    pub(super) drop_copy: Option<PathBuf>,
    /// TargetCompID of the session that gets copies of the application messages.
    pub(super) drop_copy_session: Option<String>,
    /// Who may log on; anybody with the right ids without.
    pub(super) users: Option<Users>,
    /// It is no session but what others are made from, so many at a time.
    pub(super) template: Option<usize>,
}

/// What a session's connection is protected by.
#[derive(Clone, Debug)]
pub(super) enum Tls {
    Server(TlsServer),
    Client {
        client: TlsClient,
        /// The name that the server's certificate is for, if it is not the host's.
        name: Option<String>,
    },
}

impl Setup {
    /// What its files are called: version and both identities, without what no file name should have.
    pub(super) fn name(&self) -> String {
        name(&self.config)
    }

    /// How many sessions it comes to.
    pub(super) fn sessions_max(&self) -> usize {
        self.template.unwrap_or(1)
    }

    /// A template's session for one counterparty, with a store of its own.
    pub(super) fn of_newcomer(&self, config: SessionConfig) -> Setup {
        let store = self.store.as_ref().map(|store| StoreSetup {
            path: store.path.with_file_name(store_file(&config)),
            ..store.clone()
        });
        Setup {
            config,
            store,
            template: None,
            ..self.clone()
        }
    }
}

fn store_file(config: &SessionConfig) -> String {
    format!("{}.store", name(config))
}

fn name(config: &SessionConfig) -> String {
    let plain = |text: &str| -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
        text.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
    };
    let version = config.version.name();
    let (sender, target) = (plain(config.sender.as_str()), plain(config.target.as_str()));
    let qualifier = match config.qualifier.is_empty() {
        true => String::new(),
        false => format!("-{}", plain(config.qualifier.as_str())),
    };
    format!("{version}-{sender}-{target}{qualifier}")
}

/// A name or address, and a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// How a session gets its connection.
#[derive(Clone, Debug)]
pub(super) enum TransportSetup {
    /// It listens here.
    Listen(SocketAddr),
    /// It connects to the first of these that lets it log on.
    Connect {
        hosts: Vec<Host>,
        /// In which order and when they are tried.
        terms: HostsConfig,
    },
}

/// The thread that a session runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ThreadSetup {
    /// Sessions of the same number share one.
    pub(super) number: u32,
    /// The core it is pinned to.
    pub(super) core: Option<usize>,
    pub(super) wait: WaitStrategy,
}

/// Which sessions of a file are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// Those of one kind; a section that does not say which it is, is.
    Only(Role),
    /// All of them; acceptors unless they say otherwise.
    All,
}

/// How a session's store lasts.
#[derive(Clone, Debug)]
pub(super) struct StoreSetup {
    pub(super) path: PathBuf,
    /// Its size when it is new.
    pub(super) bytes: usize,
    /// How often it is brought to the disk, if at all: without, it survives the process and not the machine.
    pub(super) sync_every_ms: Option<u64>,
}

/// The sessions of a file.
pub(super) fn load(path: &Path, wanted: Wanted) -> Result<Vec<Setup>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        Failure::config(format!(
            "cannot read {}: {e}; give the path of a QuickFIX configuration file",
            path.display()
        ))
    })?;
    let mut reader = Reader {
        folder: path.parent().unwrap_or(Path::new("")).to_path_buf(),
        dictionaries: BTreeMap::new(),
    };
    let setups = sections(&text).and_then(|sections| {
        let read = sections.iter().map(|s| reader.session(s, wanted));
        let read: Result<Vec<Option<Setup>>, Mistake> = read.collect();
        let setups: Vec<Setup> = read?.into_iter().flatten().collect();
        threads(&setups).map(|()| setups)
    });
    let setups = setups.map_err(|mistake| Failure::config(format!("{}, {mistake}", path.display())))?;
    let kind = match wanted {
        _ if !setups.is_empty() => return Ok(setups),
        Wanted::Only(Role::Acceptor) => " with ConnectionType=acceptor",
        Wanted::Only(Role::Initiator) => " with ConnectionType=initiator",
        Wanted::All => "",
    };
    Err(Failure::config(format!(
        "{} has no [SESSION]{kind}",
        path.display()
    )))
}

/// Sessions of one port are on one thread, and a thread is pinned and waits in one way.
fn threads(setups: &[Setup]) -> Result<(), Mistake> {
    for (at, setup) in setups.iter().enumerate() {
        for other in &setups[..at] {
            let name = |s: &Setup| format!("{} -> {}", s.config.sender, s.config.target);
            let (own, others) = (setup.thread, other.thread);
            let shares_port = matches!((&setup.transport, &other.transport),
                (TransportSetup::Listen(a), TransportSetup::Listen(b)) if a == b && a.port() != 0);
            let what = if shares_port && own.number != others.number {
                "listen at the same port but have different Thread numbers"
            } else if own.number == others.number && own != others {
                "share a thread but not its ThreadCore and WaitStrategy"
            } else {
                continue;
            };
            return Err(Mistake {
                line: setup.line,
                what: format!("{} and {} {what}", name(other), name(setup)),
            });
        }
    }
    Ok(())
}

/// Reads sessions; a dictionary is read once however many sessions share it.
struct Reader {
    folder: PathBuf,
    dictionaries: BTreeMap<PathBuf, Arc<Dictionary>>,
}

impl Reader {
    /// The session of a section, unless it is of another kind than wanted.
    fn session(&mut self, section: &Section, wanted: Wanted) -> Result<Option<Setup>, Mistake> {
        let role = |text: &str| match text {
            "acceptor" => Some(Role::Acceptor),
            "initiator" => Some(Role::Initiator),
            _ => None,
        };
        let said = section.parsed("ConnectionType", "acceptor or initiator", role)?;
        let role = match (said, wanted) {
            (Some(said), Wanted::Only(role)) if said != role => return Ok(None),
            (None, Wanted::Only(role)) => role,
            (said, _) => said.unwrap_or(Role::Acceptor),
        };
        let version = version(section)?;
        let template = template(section, role)?;
        let config = session_config(section, role, version, template.is_some())?;
        let setup = Setup {
            line: section.line,
            users: self.users(section, role)?,
            template,
            store: self.store(section, &config)?,
            rules: self.rules(section, version)?,
            transport: transport(section, role)?,
            thread: thread(section)?,
            tls: self.tls(section, role)?,
            calendar: Calendar::read(section)?,
            drop_copy: section
                .text("DropCopyFile")
                .map(|(path, _)| self.folder.join(path)),
            drop_copy_session: section.text("DropCopySession").map(|(name, _)| name.to_owned()),
            log: section
                .text("FileLogPath")
                .map(|(path, _)| self.folder.join(path)),
            config,
        };
        match section.unknown_key(|key| WITHOUT_MEANING.iter().any(|(k, _)| *k == key)) {
            Some((key, line)) => Err(Mistake {
                line,
                what: format!("{key} is not a setting that is known here"),
            }),
            None => Ok(Some(setup)),
        }
    }

    fn store(&self, section: &Section, config: &SessionConfig) -> Result<Option<StoreSetup>, Mistake> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|n| *n > 0);
        let mib = section.parsed("FileStoreMegabytes", "a number from 1 on", number)?;
        let sync_every_ms = section.parsed("FileStoreSyncMilliseconds", "a number from 1 on", number)?;
        let Some((folder, _)) = section.text("FileStorePath") else {
            return Ok(None);
        };
        Ok(Some(StoreSetup {
            path: self.folder.join(folder).join(store_file(config)),
            bytes: (mib.unwrap_or(64) as usize) << 20,
            sync_every_ms,
        }))
    }

    /// Username and Password of a session that listens are what it wants to be told, or PasswordFile has many of them.
    fn users(&self, section: &Section, role: Role) -> Result<Option<Users>, Mistake> {
        let file = section.text("PasswordFile");
        let Credentials {
            username, password, ..
        } = credentials(section)?;
        match (role, file) {
            (Role::Initiator, _) => Ok(None),
            (Role::Acceptor, Some((_, line))) if !username.is_empty() => Err(Mistake {
                line,
                what: "give PasswordFile, or Username and Password".into(),
            }),
            (Role::Acceptor, Some((path, line))) => match Users::read(&self.folder.join(path)) {
                Ok(users) => Ok(Some(users)),
                Err(what) => Err(Mistake { line, what }),
            },
            (Role::Acceptor, None) if username.is_empty() => Ok(None),
            (Role::Acceptor, None) => Ok(Some(Users::one(username.as_bytes(), password))),
        }
    }

    fn rules(&mut self, section: &Section, version: Version) -> Result<Option<Rules>, Mistake> {
        let all = Validation::default();
        let validation = Validation {
            fields_out_of_order: section.flag("ValidateFieldsOutOfOrder", all.fields_out_of_order)?,
            fields_have_values: section.flag("ValidateFieldsHaveValues", all.fields_have_values)?,
            group_order: section.flag("ValidateUnorderedGroupFields", all.group_order)?,
            user_defined_fields: section.flag("ValidateUserDefinedFields", all.user_defined_fields)?,
            unknown_fields: !section.flag("AllowUnknownMsgFields", !all.unknown_fields)?,
        };
        let keys = match version.is_fixt() {
            true => ["TransportDataDictionary", "AppDataDictionary"],
            false => ["DataDictionary"; 2],
        };
        if !section.flag("UseDataDictionary", true)? {
            // The keys may stand there all the same.
            for key in keys {
                section.text(key);
            }
            return Ok(None);
        }
        let [session, application] = keys.map(|key| section.needed(key));
        Ok(Some(Rules {
            session: self.dictionary(session?)?,
            application: self.dictionary(application?)?,
            validation,
        }))
    }

    /// QuickFIX's keys for TLS; files are looked for beside the configuration.
    fn tls(&self, section: &Section, role: Role) -> Result<Option<Tls>, Mistake> {
        let file = |key: &str| {
            section
                .text(key)
                .map(|(path, line)| (self.folder.join(path), line))
        };
        let own_keys = match role {
            Role::Acceptor => ["ServerCertificateFile", "ServerCertificateKeyFile"],
            Role::Initiator => ["ClientCertificateFile", "ClientCertificateKeyFile"],
        };
        let [certificate, key] = own_keys.map(file);
        let authorities = file("CertificationAuthoritiesFile");
        let name = section.text("SSLServerName").map(|(name, _)| name.to_string());
        let level = |text: &str| text.parse::<u8>().ok().filter(|n| *n <= 2);
        let allowed = "0 (no certificates of clients), 1 (if they show one) or 2 (they must)";
        let level = section.parsed("CertificateVerifyLevel", allowed, level)?;
        let is_on = section.flag("SSLEnable", false)? | section.flag("SocketUseSSL", false)?;
        // The other side's keys may stand in a shared [DEFAULT].
        for key in ["Server", "Client"].map(|side| format!("{side}CertificateFile")) {
            section.text(&key);
        }
        for key in ["Server", "Client"].map(|side| format!("{side}CertificateKeyFile")) {
            section.text(&key);
        }
        if !is_on {
            return Ok(None);
        }
        let line = section.line;
        let needs = |key: &str, why: &str| Mistake {
            line,
            what: format!("TLS is on, but there is no {key}: {why}"),
        };
        let wrong = |e: TlsError| Mistake {
            line,
            what: e.to_string(),
        };
        let own = match (certificate, key) {
            (Some((certificate, _)), Some((key, _))) => Some(Identity { certificate, key }),
            (None, None) => None,
            (Some(_), None) => return Err(needs(own_keys[1], "a certificate is of no use without its key")),
            (None, Some(_)) => return Err(needs(own_keys[0], "a key is of no use without its certificate")),
        };
        match role {
            Role::Acceptor => {
                let own = own.ok_or_else(|| needs(own_keys[0], "a server shows one to its clients"))?;
                let clients = match (level.unwrap_or(0), authorities) {
                    (0, _) => ClientCertificates::None,
                    (1, Some((path, _))) => ClientCertificates::Optional(path),
                    (_, Some((path, _))) => ClientCertificates::Required(path),
                    (_, None) => {
                        let why = "clients' certificates are to be verified against it";
                        return Err(needs("CertificationAuthoritiesFile", why));
                    }
                };
                TlsServer::new(&own, &clients)
                    .map(Tls::Server)
                    .map(Some)
                    .map_err(wrong)
            }
            Role::Initiator => {
                let why = "the server's certificate is verified against it, always";
                let (path, _) = authorities.ok_or_else(|| needs("CertificationAuthoritiesFile", why))?;
                let client = TlsClient::new(&path, own.as_ref()).map_err(wrong)?;
                Ok(Some(Tls::Client { client, name }))
            }
        }
    }

    fn dictionary(&mut self, (path, line): (&str, usize)) -> Result<Arc<Dictionary>, Mistake> {
        let full = self.folder.join(path);
        if let Some(known) = self.dictionaries.get(&full) {
            return Ok(known.clone());
        }
        let wrong = |what: String| Mistake {
            line,
            what: format!("the dictionary {}: {what}", full.display()),
        };
        let text = std::fs::read_to_string(&full).map_err(|e| wrong(e.to_string()))?;
        let dictionary = Arc::new(Dictionary::parse(&text).map_err(|e| wrong(e.to_string()))?);
        self.dictionaries.insert(full, dictionary.clone());
        Ok(dictionary)
    }
}

/// BeginString, and over FIXT the application version.
fn version(section: &Section) -> Result<Version, Mistake> {
    let (begin_string, line) = section.needed("BeginString")?;
    let wrong = |line, what| Err(Mistake { line, what });
    let names: Vec<&str> = Version::ALL
        .iter()
        .filter(|v| !v.is_fixt())
        .map(|v| v.name())
        .collect();
    if begin_string != "FIXT.1.1" {
        return match Version::from_name(begin_string).filter(|v| !v.is_fixt()) {
            Some(version) => Ok(version),
            None => wrong(
                line,
                format!(
                    "BeginString={begin_string}: must be {} or FIXT.1.1",
                    names.join(", ")
                ),
            ),
        };
    }
    let (name, line) = section.needed("DefaultApplVerID")?;
    let by_number = |v: &Version| v.appl_ver_id().is_some_and(|id| name.as_bytes() == [id]);
    match Version::ALL
        .into_iter()
        .find(|v| v.is_fixt() && (v.name() == name || by_number(v)))
    {
        Some(version) => Ok(version),
        None => wrong(
            line,
            format!("DefaultApplVerID={name}: must be FIX.5.0, FIX.5.0SP1, FIX.5.0SP2, or 7, 8, 9"),
        ),
    }
}

fn identity_of(key: &str, value: &str, line: usize) -> Result<CompId, Mistake> {
    let id = CompId::new(value.as_bytes()).filter(|id| !id.is_empty());
    id.ok_or_else(|| Mistake {
        line,
        what: format!("{key}={value}: must be 1 to 31 printable ASCII characters"),
    })
}

/// How many sessions at a time a template admits; `None` for a session.
fn template(section: &Section, role: Role) -> Result<Option<usize>, Mistake> {
    let most = |text: &str| text.parse::<usize>().ok().filter(|n| (1..=1024).contains(n));
    let most = section.parsed("DynamicSessionsMax", "a number, 1 to 1024", most)?;
    if !section.flag("AcceptorTemplate", false)? {
        return Ok(None);
    }
    let wrong = |what: &str| Mistake {
        line: section.line,
        what: format!("AcceptorTemplate=Y: {what}"),
    };
    if role == Role::Initiator {
        return Err(wrong("only sessions that listen can be made from a template"));
    }
    if section.text("DropCopySession").is_some() {
        return Err(wrong(
            "its sessions can have a DropCopyFile, not a DropCopySession",
        ));
    }
    Ok(Some(most.unwrap_or(64)))
}

/// Identities, times and numbers of a session. In a template `*` stands for any identity.
fn session_config(
    section: &Section,
    role: Role,
    version: Version,
    is_template: bool,
) -> Result<SessionConfig, Mistake> {
    let id = |key, value, line| match value {
        "*" if is_template => Ok(CompId::EMPTY),
        _ => identity_of(key, value, line),
    };
    let comp_id = |key| -> Result<CompId, Mistake> { section.needed(key).and_then(|(v, l)| id(key, v, l)) };
    let sub_id = |key| -> Result<CompId, Mistake> {
        let given = section.text(key);
        given.map_or(Ok(CompId::EMPTY), |(value, line)| id(key, value, line))
    };
    let cancel = |text: &str| match text {
        "N" => Some(CancelOn::Never),
        "Y" => Some(CancelOn::ConnectionLost),
        "ALL" => Some(CancelOn::AnyEnd),
        _ => None,
    };
    let allowed = "N, Y (when a connection is lost) or ALL (after a logout too)";
    let cancel_on = section.parsed("CancelOnDisconnect", allowed, cancel)?;
    let credentials = credentials(section)?;
    let has_users = !credentials.username.is_empty() || section.text("PasswordFile").is_some();
    let defaults =
        SessionConfig::new(role, comp_id("SenderCompID")?, comp_id("TargetCompID")?).of_version(version);
    let digits = |text: &str| match text {
        "0" | "SECONDS" => Some(Precision::Seconds),
        "3" | "MILLIS" => Some(Precision::Millis),
        "6" | "MICROS" => Some(Precision::Micros),
        "9" | "NANOS" => Some(Precision::Nanos),
        _ => None,
    };
    let precision = section.parsed("TimestampPrecision", "0, 3, 6 or 9", digits)?;
    let latency_max_ns = section.seconds("MaxLatency", 120)?;
    let heartbeat = |text: &str| text.parse().ok().filter(|s| *s <= 3_600);
    let heartbeat_s = section.parsed("HeartBtInt", "seconds, 0 to 3600", heartbeat)?;
    if role == Role::Initiator {
        section.needed("HeartBtInt")?;
    }
    Ok(SessionConfig {
        any_message: true,
        heartbeat_s: heartbeat_s.unwrap_or(defaults.heartbeat_s),
        subs: SubIds {
            sender_sub: sub_id("SenderSubID")?,
            sender_location: sub_id("SenderLocationID")?,
            target_sub: sub_id("TargetSubID")?,
            target_location: sub_id("TargetLocationID")?,
        },
        qualifier: sub_id("SessionQualifier")?,
        credentials: match role {
            Role::Initiator => credentials,
            Role::Acceptor => Credentials::default(),
        },
        asks_about_logons: role == Role::Acceptor && has_users,
        cancel_on: cancel_on.unwrap_or_default(),
        cancel_after_ns: section.seconds("CancelOnDisconnectAfter", 0)?,
        is_test: match section.text("TestMessageIndicator") {
            None => None,
            Some(_) => Some(section.flag("TestMessageIndicator", false)?),
        },
        next_expected: section.flag("EnableNextExpectedMsgSeqNum", false)?
            | section.flag("SendNextExpectedMsgSeqNum", false)?,
        last_processed: section.flag("EnableLastMsgSeqNumProcessed", false)?,
        resend_chunk: section
            .parsed("ResendRequestChunkSize", "a number", |t| t.parse().ok())?
            .unwrap_or(0),
        reset_on_logon: section.flag("ResetOnLogon", false)?,
        reset_on_logout: section.flag("ResetOnLogout", false)?,
        reset_on_disconnect: section.flag("ResetOnDisconnect", false)?,
        throttle_out: throttle(section, "Out")?,
        throttle_in: throttle(section, "In")?,
        receive_bytes: section
            .parsed("MaxMessageSize", "bytes, 1024 to 1048576", |text| {
                text.parse().ok().filter(|n| (1 << 10..=1 << 20).contains(n))
            })?
            .unwrap_or(defaults.receive_bytes),
        precision: precision.unwrap_or(defaults.precision),
        latency_max_ns: match section.flag("CheckLatency", true)? {
            true => latency_max_ns,
            false => 0,
        },
        logon_timeout_ns: section.seconds("LogonTimeout", 10)?,
        logout_timeout_ns: section.seconds("LogoutTimeout", 2)?,
        ..defaults
    })
}

/// Where a session listens or connects; what the other kind of session says is passed over.
fn transport(section: &Section, role: Role) -> Result<TransportSetup, Mistake> {
    let hosts = hosts(section)?;
    let terms = terms(section, hosts.len())?;
    let listen = listen(section)?;
    let needs = |key: &str| section.needed(key).map(drop);
    match role {
        Role::Acceptor => match listen {
            Some(address) => Ok(TransportSetup::Listen(address)),
            None => Err(needs("SocketAcceptPort").err().unwrap_or_else(|| Mistake {
                line: section.line,
                what: "no SocketAcceptPort".into(),
            })),
        },
        Role::Initiator => {
            needs("SocketConnectHost")?;
            needs("SocketConnectPort")?;
            Ok(TransportSetup::Connect { hosts, terms })
        }
    }
}

/// SocketConnectHost and SocketConnectPort, then those with 1, 2, ... behind them.
fn hosts(section: &Section) -> Result<Vec<Host>, Mistake> {
    let mut hosts = Vec::new();
    for number in 0.. {
        let numbered = |key: &str| match number {
            0 => key.to_string(),
            n => format!("{key}{n}"),
        };
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
        let name = section.text(&numbered("SocketConnectHost"));
        let port = section.parsed(&numbered("SocketConnectPort"), "a port, 1 to 65535", port)?;
        match (name, port) {
            (Some((name, _)), Some(port)) => hosts.push(Host {
                name: name.to_string(),
                port,
            }),
            (None, None) => break,
            (Some((name, line)), None) => {
                return Err(Mistake {
                    line,
                    what: format!("{name} has no {}", numbered("SocketConnectPort")),
                });
            }
            (None, Some(port)) => {
                return Err(Mistake {
                    line: section.line,
                    what: format!("port {port} has no {}", numbered("SocketConnectHost")),
                });
            }
        }
    }
    Ok(hosts)
}

/// When which host is tried: the wait after a round in vain is ReconnectInterval and doubles up to ReconnectIntervalMax.
fn terms(section: &Section, hosts: usize) -> Result<HostsConfig, Mistake> {
    let seconds = |text: &str| text.parse::<u64>().ok().filter(|s| (1..=86_400).contains(s));
    let allowed = "seconds, 1 to 86400";
    let least = section
        .parsed("ReconnectInterval", allowed, seconds)?
        .unwrap_or(30);
    let most = section.parsed("ReconnectIntervalMax", allowed, seconds)?;
    let order = |text: &str| match text {
        "priority" => Some(HostOrder::Priority),
        "round-robin" => Some(HostOrder::RoundRobin),
        _ => None,
    };
    let order = section.parsed("HostOrder", "priority or round-robin", order)?;
    let defaults = HostsConfig::new(hosts.max(1));
    Ok(HostsConfig {
        order: order.unwrap_or(defaults.order),
        backoff_min_ns: least * Nanos::SECOND,
        backoff_max_ns: most.unwrap_or(8 * least).max(least) * Nanos::SECOND,
        seed: u64::from(std::process::id()),
        ..defaults
    })
}

/// Messages a second, and what becomes of those beyond.
fn throttle(section: &Section, way: &str) -> Result<Option<Throttle>, Mistake> {
    let [rate, burst, excess] = ["PerSecond", "Burst", "Excess"].map(|key| format!("Throttle{way}{key}"));
    let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n > 0);
    let rate = section.parsed(&rate, "a number from 1 on", number)?;
    let burst = section.parsed(&burst, "a number from 1 on", number)?;
    let what = |text: &str| match text {
        "delay" => Some(Excess::Delay),
        "reject" => Some(Excess::Reject),
        "disconnect" => Some(Excess::Disconnect),
        _ => None,
    };
    let excess = section.parsed(&excess, "delay, reject or disconnect", what)?;
    Ok(rate.map(|per_second| Throttle {
        per_second,
        burst: burst.unwrap_or(per_second),
        excess: excess.unwrap_or(Excess::Delay),
    }))
}

fn credentials(section: &Section) -> Result<Credentials, Mistake> {
    // A wrong value is not repeated: it is secret.
    let wrong = |key: &str, line| Mistake {
        line,
        what: format!("{key} must be at most 63 printable ASCII characters"),
    };
    let secret = |key: &str| match section.text(key) {
        None => Ok(Secret::default()),
        Some((value, line)) => Secret::new(value.as_bytes()).ok_or_else(|| wrong(key, line)),
    };
    let username = match section.text("Username") {
        None => Text::EMPTY,
        Some((value, line)) => Text::new(value.as_bytes()).ok_or_else(|| wrong("Username", line))?,
    };
    Ok(Credentials {
        username,
        password: secret("Password")?,
        new_password: secret("NewPassword")?,
    })
}

/// Loopback unless told otherwise.
fn listen(section: &Section) -> Result<Option<SocketAddr>, Mistake> {
    let host = section
        .text("SocketAcceptAddress")
        .map_or("127.0.0.1", |(host, _)| host);
    let Some((port, line)) = section.text("SocketAcceptPort") else {
        return Ok(None);
    };
    format!("{host}:{port}").parse().map(Some).map_err(|_| Mistake {
        line,
        what: format!("{host}:{port} is not an address; SocketAcceptPort is 0 to 65535, SocketAcceptAddress an IP address"),
    })
}

fn thread(section: &Section) -> Result<ThreadSetup, Mistake> {
    let number = |text: &str| text.parse().ok().filter(|n| *n < 1024);
    let core = |text: &str| text.parse().ok();
    let wait = |text: &str| match text {
        "block" => Some(WaitStrategy::Poll),
        "spin" => Some(WaitStrategy::Spin),
        _ => None,
    };
    Ok(ThreadSetup {
        number: section
            .parsed("Thread", "a number, 0 to 1023", number)?
            .unwrap_or(0),
        core: section.parsed("ThreadCore", "the number of a core", core)?,
        wait: section
            .parsed("WaitStrategy", "block or spin", wait)?
            .unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_text(text: &str) -> Result<Vec<Setup>, String> {
        load_as(text, Role::Acceptor)
    }

    fn load_as(text: &str, role: Role) -> Result<Vec<Setup>, String> {
        let dir = std::env::temp_dir().join(format!("tickwire-fix-settings-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join(format!("{:p}.cfg", text.as_ptr()));
        std::fs::write(&path, text).unwrap();
        load(&path, Wanted::Only(role)).map_err(|f| f.message)
    }

    const SESSION: &str = "[SESSION]\nBeginString=FIX.4.2\nSenderCompID=A\nTargetCompID=B\nSocketAcceptPort=0\nUseDataDictionary=N\n";

    #[test]
    fn defaults_lie_beneath_every_session() {
        let text = format!(
            "# a comment\n[DEFAULT]\nConnectionType=acceptor\nResetOnLogon=Y\nFileLogPath=log\n{SESSION}{SESSION}MaxLatency=7\nResetOnLogon=N\n"
        );
        let setups = load_text(&text).unwrap();
        assert_eq!(setups.len(), 2);
        assert!(setups[0].config.reset_on_logon && !setups[1].config.reset_on_logon);
        assert_eq!(setups[1].config.latency_max_ns, 7 * Nanos::SECOND);
        assert_eq!(setups[0].config.version, Version::Fix42);
        assert!(matches!(setups[0].transport, TransportSetup::Listen(at) if at.ip().is_loopback()));
    }

    #[test]
    fn an_initiator_has_hosts_in_order_and_waits_longer_each_round() {
        let text = "[DEFAULT]\nConnectionType=initiator\nHeartBtInt=20\nUseDataDictionary=N\n[SESSION]\nBeginString=FIX.4.4\nSenderCompID=A\n\
                    TargetCompID=B\nSocketConnectHost=one\nSocketConnectPort=1\nSocketConnectHost1=two\nSocketConnectPort1=2\nReconnectInterval=5\n\
                    Thread=3\nWaitStrategy=spin\n[SESSION]\nConnectionType=acceptor\nnonsense=1\n";
        let setups = load_as(text, Role::Initiator).unwrap();
        assert_eq!(setups.len(), 1, "what is for the other side is passed over");
        assert_eq!(setups[0].config.heartbeat_s, 20);
        let TransportSetup::Connect { hosts, terms } = &setups[0].transport else {
            panic!("it connects");
        };
        assert_eq!(hosts.iter().map(|h| h.port).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(
            (terms.backoff_min_ns, terms.backoff_max_ns),
            (5 * Nanos::SECOND, 40 * Nanos::SECOND)
        );
        assert_eq!(
            (setups[0].thread.number, setups[0].thread.wait),
            (3, WaitStrategy::Spin)
        );
    }

    #[test]
    fn mistakes_name_their_line_and_what_would_do() {
        let cases = [
            ("Key=1\n", "line 1", "before the first"),
            ("[DEFAULT]\nnonsense\n", "line 2", "neither Key=Value"),
            ("[SESSION]\nBeginString=FIX.3.9\n", "line 2", "FIX.4.0"),
            ("[SESSION]\nBeginString=FIX.4.4\n", "line 1", "no SenderCompID"),
            (&format!("{SESSION}ResetOnLogon=maybe\n"), "line 7", "Y or N"),
            (&format!("{SESSION}ResetOnLogn=Y\n"), "line 7", "not a setting"),
            (
                &format!("{SESSION}Password=\u{fc}mlaut\n"),
                "line 7",
                "Password must be",
            ),
            (
                &format!("{SESSION}ThrottleInExcess=ignore\n"),
                "line 7",
                "delay, reject",
            ),
            (
                &SESSION.replace("UseDataDictionary=N", "DataDictionary=none.xml"),
                "line 6",
                "none.xml",
            ),
            ("[DEFAULT]\nResetOnLogon=Y\n", "no [SESSION]", ""),
            (
                &SESSION.replace(
                    "TargetCompID=B",
                    "TargetCompID=*\nAcceptorTemplate=Y\nDynamicSessionsMax=0",
                ),
                "line 6",
                "1 to 1024",
            ),
            (&format!("{SESSION}CancelOnDisconnect=maybe\n"), "line 7", "ALL"),
            (&format!("{SESSION}PasswordFile=none\n"), "line 7", "none"),
            (
                &format!("{SESSION}AcceptorTemplate=Y\nDropCopySession=C\n"),
                "line 1",
                "DropCopyFile",
            ),
            (
                &format!("{SESSION}Thread=1\nThreadCore=1\n{SESSION}Thread=1\n"),
                "line 9",
                "share a thread",
            ),
        ];
        for (text, line, what) in cases {
            let message = load_text(text).unwrap_err();
            assert!(
                message.contains(line) && message.contains(what),
                "{text}: {message}"
            );
        }
    }
}
