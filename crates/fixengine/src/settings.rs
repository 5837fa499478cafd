//! What QuickFIX's configuration files say about sessions.
//!
//! [`crate::quickfix`] has every setting there is; [`crate::cfg`] reads the form. All mistakes of a file are told at once, each with file,
//! line and what would do; what is done otherwise than a file may mean is a warning, what was chosen for it a note.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tickwire_fix::dict::{Dictionary, Validation};
use tickwire_fix::{
    CancelOn, CompId, Credentials, Excess, HostOrder, HostsConfig, Precision, Role, Rules, Secret,
    SessionConfig, SubIds, Text, Throttle, Version,
};
use tickwire_market::Nanos;
use tickwire_runtime::files;
use tickwire_runtime::wait::WaitStrategy;

use crate::cfg::{Remark, Remarks, Section, sections};
use crate::error::Error;
use crate::hours::Calendar;
use crate::observer::{Level, Observer};
pub use crate::secure::Tls;
use crate::users::Users;

/// One session of a file.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where its section begins in the file.
    pub line: usize,
    /// Identities, version, intervals and limits.
    pub config: SessionConfig,
    /// What messages are checked against; nothing is checked without.
    pub rules: Option<Rules>,
    /// How it gets its connection.
    pub transport: TransportSetup,
    /// The thread that it runs on.
    pub thread: ThreadSetup,
    /// The file that the session's messages and numbers last in; in memory only without one.
    pub store: Option<StoreSetup>,
    /// The folder of its message log.
    pub log: Option<PathBuf>,
    /// What its connection is protected by; plain TCP without.
    pub tls: Option<Tls>,
    /// Its hours; always open without.
    pub calendar: Option<Calendar>,
    /// The file that its application messages are copied to, both ways.
    pub drop_copy: Option<PathBuf>,
    /// TargetCompID of the session that gets copies of the application messages.
    pub drop_copy_session: Option<String>,
    /// Who may log on; anybody with the right ids without.
    pub users: Option<Users>,
    /// The addresses that may connect; any without.
    pub allowed: Vec<IpAddr>,
    /// Further fields of our Logon.
    pub logon_fields: Vec<(u32, Vec<u8>)>,
    /// It is no session but what others are made from, so many at a time.
    pub template: Option<usize>,
}

impl Setup {
    /// What its files are called: version and both identities, without what no file name should have.
    pub fn name(&self) -> String {
        name(&self.config)
    }

    /// How many sessions it comes to.
    pub fn sessions_max(&self) -> usize {
        self.template.unwrap_or(1)
    }

    /// A template's session for one counterparty, with a store of its own.
    pub fn of_newcomer(&self, config: SessionConfig) -> Setup {
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
pub struct Host {
    /// A name that is looked up for every attempt, or an address.
    pub name: String,
    /// The TCP port.
    pub port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// How a session gets its connection.
#[derive(Clone, Debug)]
pub enum TransportSetup {
    /// It listens here.
    Listen(SocketAddr),
    /// It connects to the first of these that lets it log on.
    Connect {
        /// At least one.
        hosts: Vec<Host>,
        /// In which order and when they are tried.
        terms: HostsConfig,
        /// Patience with a host that does not answer.
        timeout: Duration,
    },
}

/// The thread that a session runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadSetup {
    /// Sessions of the same number share one.
    pub number: u32,
    /// The core it is pinned to.
    pub core: Option<usize>,
    /// Whether it sleeps or spins while nothing comes.
    pub wait: WaitStrategy,
}

/// Which sessions of a file are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Those of one kind; a section that does not say which it is, is.
    Only(Role),
    /// All of them; acceptors unless they say otherwise.
    All,
}

/// The largest store, 64 GiB: all of it has addresses from the start.
const MEGABYTES_MAX: u64 = 1 << 16;

/// How a session's store lasts.
#[derive(Clone, Debug)]
pub struct StoreSetup {
    /// The file.
    pub path: PathBuf,
    /// Bytes of messages that it has room for, when it is new.
    pub bytes: usize,
    /// All of them are set aside in the file system at the start; it grows as it is needed otherwise.
    pub is_reserved: bool,
    /// Nothing is sent before it is on the disk.
    pub syncs_before_sending: bool,
    /// How often it is brought to the disk, if at all: without, it survives the process and not the machine.
    pub sync_every_ms: Option<u64>,
}

/// The sessions of a file. The observer is told notes and warnings, with file and line.
///
/// # Errors
/// The file cannot be read, has mistakes (all of them are told at once) or no session that is wanted.
pub fn load(path: &Path, wanted: Wanted, observer: &dyn Observer) -> Result<Vec<Setup>, Error> {
    load_with(path, wanted, false, observer)
}

/// The same; settings that nobody knows are warnings if they are admitted.
///
/// # Errors
/// As of [`load`].
pub fn load_with(
    path: &Path,
    wanted: Wanted,
    admits_unknown: bool,
    observer: &dyn Observer,
) -> Result<Vec<Setup>, Error> {
    let (setups, remarks) = read(path, wanted, admits_unknown, observer)?;
    told(path, remarks, observer)?;
    warn_of_passwords(path, &setups, observer);
    let kind = match wanted {
        _ if !setups.is_empty() => return Ok(setups),
        Wanted::Only(Role::Acceptor) => " with ConnectionType=acceptor",
        Wanted::Only(Role::Initiator) => " with ConnectionType=initiator",
        Wanted::All => "",
    };
    Err(Error::config(format!(
        "{} has no [SESSION]{kind}",
        path.display()
    )))
}

/// Says whose secrets others may read, and who is let in without any.
fn warn_of_passwords(path: &Path, setups: &[Setup], observer: &dyn Observer) {
    let text = std::fs::read(path).unwrap_or_default();
    if String::from_utf8_lossy(&text).lines().any(holds_password)
        && let Some(mode) = files::is_readable_by_others(path)
    {
        observer.warn(format_args!(
            "{} holds a password and others may read it (mode {mode:04o}): chmod go-rwx {}",
            path.display(),
            path.display()
        ));
    }
    let is_open = |setup: &&Setup| {
        setup.config.role == Role::Acceptor && setup.users.is_none() && setup.allowed.is_empty()
    };
    let names: Vec<String> = setups
        .iter()
        .filter(is_open)
        .map(|setup| format!("{} -> {}", setup.config.sender, setup.config.target))
        .collect();
    if let Some(first) = names.first() {
        let others = match names.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        observer.warn(format_args!(
            "{}: no password is asked for and any address may connect: {first}{others}; give PasswordFile, Username and Password, or \
             AllowedRemoteAddresses",
            path.display()
        ));
    }
}

/// Whether a line of a file has a password itself, and not the name of a variable that has it.
fn holds_password(line: &str) -> bool {
    let Some((key, value)) = line.split_once('=') else {
        return false;
    };
    let (key, value) = (key.trim(), value.trim());
    let secret = match key {
        "Password" | "NewPassword" => value,
        _ if key.starts_with("LogonTag") => ["554=", "925="]
            .iter()
            .find_map(|tag| value.strip_prefix(tag))
            .unwrap_or_default(),
        _ => "",
    };
    !secret.is_empty() && !secret.starts_with("${")
}

/// The sessions of a file that are right, and what there is to say about all of it.
fn read(
    path: &Path,
    wanted: Wanted,
    admits_unknown: bool,
    observer: &dyn Observer,
) -> Result<(Vec<Setup>, Remarks), Error> {
    let bytes = std::fs::read(path).map_err(|e| {
        Error::config(format!(
            "cannot read {}: {e}; give the path of a QuickFIX configuration file",
            path.display()
        ))
    })?;
    // Comments in another encoding do no harm.
    let text = String::from_utf8_lossy(&bytes);
    let mut reader = Reader {
        folder: path.parent().unwrap_or(Path::new("")).to_path_buf(),
        observer,
        dictionaries: BTreeMap::new(),
        admits_unknown,
    };
    let parsed = sections(&text, |name| std::env::var(name).ok());
    let setups = parsed.sessions.iter().filter_map(|s| reader.session(s, wanted));
    let setups: Vec<Setup> = setups.collect();
    let mut remarks = std::mem::take(&mut *parsed.remarks.borrow_mut());
    threads(&setups, &mut remarks);
    Ok((setups, remarks))
}

/// Says what there is to say about a file; the mistakes are the failure.
fn told(path: &Path, remarks: Remarks, observer: &dyn Observer) -> Result<(), Error> {
    let lines = |mut remarks: Vec<Remark>| {
        remarks.sort();
        remarks.dedup();
        let at = |remark: &Remark| format!("{}:{remark}", path.display());
        remarks.iter().map(at).collect::<Vec<String>>()
    };
    let mistakes = lines(remarks.mistakes);
    for line in lines(remarks.notes) {
        observer.line(Level::Note, format_args!("{line}"));
    }
    for line in lines(remarks.warnings) {
        observer.warn(format_args!("{line}"));
    }
    match &mistakes[..] {
        [] => Ok(()),
        [one] => Err(Error::config(one.clone())),
        all => Err(Error::config(format!(
            "{} mistakes in {}:\n{}",
            all.len(),
            path.display(),
            all.join("\n")
        ))),
    }
}

/// Sessions of one port are on one thread, and a thread is pinned and waits in one way.
fn threads(setups: &[Setup], remarks: &mut Remarks) {
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
            remarks.mistakes.push(Remark {
                line: setup.line,
                what: format!("{} and {} {what}", name(other), name(setup)),
            });
        }
    }
}

/// Reads sessions; a dictionary is read once however many sessions share it.
struct Reader<'o> {
    folder: PathBuf,
    observer: &'o dyn Observer,
    dictionaries: BTreeMap<PathBuf, Option<Arc<Dictionary>>>,
    admits_unknown: bool,
}

impl Reader<'_> {
    /// The session of a section, unless it is of another kind than wanted, or wrong.
    fn session(&mut self, section: &Section, wanted: Wanted) -> Option<Setup> {
        let role = |text: &str| match text.to_ascii_lowercase().as_str() {
            "acceptor" => Some(Role::Acceptor),
            "initiator" => Some(Role::Initiator),
            _ => None,
        };
        let said = section.parsed("ConnectionType", "acceptor or initiator", role);
        let role = match (said, wanted) {
            (Some(said), Wanted::Only(role)) if said != role => return None,
            (None, Wanted::Only(role)) => role,
            (said, _) => said.unwrap_or(Role::Acceptor),
        };
        section.check_names(self.admits_unknown);
        let version = version(section);
        let template = template(section, role);
        let mut config = session_config(section, role, version.unwrap_or_default(), template.is_some());
        let (logon_fields, credentials) = logon_fields(section, role);
        if let (Some(config), Some(credentials)) = (&mut config, credentials) {
            config.credentials = credentials;
        }
        let rules = self.rules(section, version);
        let transport = transport(section, role);
        let allowed = allowed(section, role);
        if let Some(config) = &mut config {
            config.asks_about_logons |= role == Role::Acceptor && !allowed.is_empty();
        }
        let users = self.users(section, role);
        let thread = thread(section);
        let tls = crate::secure::read(section, role, &self.folder);
        let calendar = Calendar::read(section);
        let file = |key: &str| section.text(key).map(|(path, _)| self.folder.join(path));
        let (drop_copy, log) = (file("DropCopyFile"), file("FileLogPath"));
        let drop_copy_session = section.text("DropCopySession").map(|(name, _)| name.to_owned());
        let store = self.store(section, config.as_ref());
        Some(Setup {
            line: section.line,
            users,
            template,
            store,
            rules,
            thread,
            tls,
            calendar,
            drop_copy,
            drop_copy_session,
            log,
            allowed,
            logon_fields,
            transport: transport?,
            config: config?,
        })
    }

    fn store(&self, section: &Section, config: Option<&SessionConfig>) -> Option<StoreSetup> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|n| *n > 0);
        let room = |text: &str| number(text).filter(|mib| *mib <= MEGABYTES_MAX);
        let mib = section.parsed("FileStoreMegabytes", "a number from 1 to 65536", room);
        let sync_every_ms = section.parsed("FileStoreSyncMilliseconds", "a number from 1 on", number);
        let is_reserved = section.flag("FileStoreReserve", false);
        let syncs_before_sending = section.flag("FileStoreSync", false);
        let (folder, _) = section.text("FileStorePath")?;
        let config = config?;
        let mib = match config.keeps_messages {
            true => mib.unwrap_or(64),
            // Numbers only.
            false => 1,
        };
        Some(StoreSetup {
            path: self.folder.join(folder).join(store_file(config)),
            bytes: (mib as usize) << 20,
            is_reserved,
            syncs_before_sending,
            sync_every_ms,
        })
    }

    /// Username and Password of a session that listens are what it wants to be told, or PasswordFile has many of them.
    fn users(&self, section: &Section, role: Role) -> Option<Users> {
        let file = section.text("PasswordFile");
        if role == Role::Initiator {
            return None;
        }
        let Credentials {
            username, password, ..
        } = credentials(section);
        match file {
            Some((_, line)) if !username.is_empty() => {
                section.wrong(line, "give PasswordFile, or Username and Password");
                None
            }
            Some((path, line)) => match Users::read(&self.folder.join(path), self.observer) {
                Ok(users) => Some(users),
                Err(what) => {
                    section.wrong(line, what);
                    None
                }
            },
            None if username.is_empty() => None,
            None => Some(Users::one(username.as_bytes(), password)),
        }
    }

    fn rules(&mut self, section: &Section, version: Option<Version>) -> Option<Rules> {
        let all = Validation::default();
        let validation = Validation {
            fields_out_of_order: section.flag("ValidateFieldsOutOfOrder", all.fields_out_of_order),
            fields_have_values: section.flag("ValidateFieldsHaveValues", all.fields_have_values),
            group_order: section.flag("ValidateUnorderedGroupFields", all.group_order),
            user_defined_fields: section.flag("ValidateUserDefinedFields", all.user_defined_fields),
            unknown_fields: !section.flag("AllowUnknownMsgFields", !all.unknown_fields),
            listed_values: !section.flag("AllowUnknownEnumValues", !all.listed_values),
        };
        let checks = section.flag("UseDataDictionary", true)
            & section.flag("ValidateIncomingMessage", true)
            & section.flag("RejectInvalidMessage", true);
        // Those of other versions may stand there all the same.
        let [plain, transport, application] =
            ["DataDictionary", "TransportDataDictionary", "AppDataDictionary"].map(|key| section.text(key));
        let version = version.filter(|_| checks)?;
        if !version.is_fixt() {
            let dictionary = self.dictionary(section, "DataDictionary", plain, version.name())?;
            return Some(Rules {
                session: dictionary.clone(),
                application: dictionary,
                validation,
            });
        }
        let key = format!("AppDataDictionary.{}", version.name());
        let application = section.text(&key).or(application);
        for (key, _, line) in section.beginning_with("AppDataDictionary.") {
            if key.strip_prefix("AppDataDictionary.") != Some(version.name()) {
                section.warn(
                    line,
                    format!("{key} is passed over: the session speaks {} only", version.name()),
                );
            }
        }
        let session = self.dictionary(section, "TransportDataDictionary", transport, "FIXT.1.1");
        let application = self.dictionary(section, "AppDataDictionary", application, version.name());
        Some(Rules {
            session: session?,
            application: application?,
            validation,
        })
    }

    /// The dictionary of a file, or the one that is built in when no file is named, or one is that comes with every engine and is not there.
    fn dictionary(
        &mut self,
        section: &Section,
        key: &str,
        named: Option<(&str, usize)>,
        standard: &str,
    ) -> Option<Arc<Dictionary>> {
        let Some((path, line)) = named.filter(|(path, _)| !path.is_empty()) else {
            section.note(
                section.line,
                format!("no {key}: messages are checked against the built-in dictionary of {standard}"),
            );
            return self.built_in(standard);
        };
        let full = self.folder.join(path);
        if let Some(known) = self.dictionaries.get(&full) {
            return known.clone();
        }
        let wrong = |what: String| section.wrong(line, format!("the dictionary {}: {what}", full.display()));
        let dictionary = match std::fs::read_to_string(&full) {
            Ok(text) => match Dictionary::parse(&text) {
                Ok(dictionary) => Some(Arc::new(dictionary)),
                Err(e) => {
                    wrong(e.to_string());
                    None
                }
            },
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && is_standard(path, standard) => {
                section.note(
                    line,
                    format!("{key}={path} is not there: messages are checked against the built-in dictionary of {standard}"),
                );
                return self.built_in(standard);
            }
            Err(e) => {
                wrong(format!(
                    "{e}; correct the path, or remove {key} to use the built-in dictionary of {standard}"
                ));
                None
            }
        };
        self.dictionaries.insert(full, dictionary.clone());
        dictionary
    }

    fn built_in(&mut self, standard: &str) -> Option<Arc<Dictionary>> {
        // No file has such a name.
        let name = PathBuf::from(format!("\0{standard}"));
        let read = || Dictionary::standard(standard).map(Arc::new);
        self.dictionaries.entry(name).or_insert_with(read).clone()
    }
}

/// Whether a path ends with the name that a standard dictionary has in the engines: `FIX44.xml`, `FIXT1.1.xml`. On Windows, too.
fn is_standard(path: &str, standard: &str) -> bool {
    let name = path
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(path)
        .to_ascii_uppercase();
    let plain = |text: &str| text.replace(['.', '_', '-'], "");
    name.strip_suffix(".XML")
        .is_some_and(|name| plain(name) == plain(standard))
}

/// BeginString, and over FIXT the application version.
fn version(section: &Section) -> Option<Version> {
    let applications = section.text("DefaultApplVerID");
    let (begin_string, line) = section.needed("BeginString")?;
    if begin_string != "FIXT.1.1" {
        let version = Version::from_name(begin_string).filter(|v| !v.is_fixt());
        if version.is_none() {
            let plain = Version::ALL.iter().filter(|v| !v.is_fixt());
            let names: Vec<&str> = plain.map(|v| v.name()).collect();
            section.wrong(
                line,
                format!(
                    "BeginString={begin_string}: must be {} or FIXT.1.1",
                    names.join(", ")
                ),
            );
        }
        return version;
    }
    let (name, line) = applications.or_else(|| section.needed("DefaultApplVerID"))?;
    let by_number = |v: &Version| v.appl_ver_id().is_some_and(|id| name.as_bytes() == [id]);
    let is_named = |v: &Version| v.is_fixt() && (v.name() == name || by_number(v));
    let version = Version::ALL.into_iter().find(is_named);
    if version.is_none() {
        let older = matches!(name, "2" | "3" | "4" | "5" | "6") || name.starts_with("FIX.4.");
        let why = match older {
            true => "; older applications over FIXT are not spoken here",
            false => "",
        };
        section.wrong(
            line,
            format!("DefaultApplVerID={name}: must be FIX.5.0, FIX.5.0SP1, FIX.5.0SP2, or 7, 8, 9{why}"),
        );
    }
    version
}

fn identity_of(section: &Section, key: &str, value: &str, line: usize) -> Option<CompId> {
    let id = CompId::new(value.as_bytes()).filter(|id| !id.is_empty());
    if id.is_none() {
        section.wrong(
            line,
            format!("{key}={value}: must be 1 to 31 printable ASCII characters"),
        );
    }
    id
}

/// How many sessions at a time a template admits; `None` for a session.
fn template(section: &Section, role: Role) -> Option<usize> {
    let most = |text: &str| text.parse::<usize>().ok().filter(|n| (1..=1024).contains(n));
    let most = section.parsed("DynamicSessionsMax", "a number, 1 to 1024", most);
    if !section.flag("AcceptorTemplate", false) {
        return None;
    }
    let wrong = |what: &str| section.wrong(section.line, format!("AcceptorTemplate=Y: {what}"));
    if role == Role::Initiator {
        wrong("only sessions that listen can be made from a template");
    }
    if section.text("DropCopySession").is_some() {
        wrong("its sessions can have a DropCopyFile, not a DropCopySession");
    }
    Some(most.unwrap_or(64))
}

/// Identities, times and numbers of a session. In a template `*` stands for any identity.
fn session_config(
    section: &Section,
    role: Role,
    version: Version,
    is_template: bool,
) -> Option<SessionConfig> {
    let id = |key, value, line| match value {
        "*" if is_template => Some(CompId::EMPTY),
        _ => identity_of(section, key, value, line),
    };
    let comp_id = |key| section.needed(key).and_then(|(v, l)| id(key, v, l));
    let sub_id = |key| {
        let given = section.text(key);
        given.and_then(|(v, l)| id(key, v, l)).unwrap_or(CompId::EMPTY)
    };
    let (sender, target) = (comp_id("SenderCompID"), comp_id("TargetCompID"));
    let cancel = |text: &str| match text {
        "N" => Some(CancelOn::Never),
        "Y" => Some(CancelOn::ConnectionLost),
        "ALL" => Some(CancelOn::AnyEnd),
        _ => None,
    };
    let allowed = "N, Y (when a connection is lost) or ALL (after a logout too)";
    let cancel_on = section.parsed("CancelOnDisconnect", allowed, cancel);
    let credentials = credentials(section);
    let has_users = !credentials.username.is_empty() || section.text("PasswordFile").is_some();
    let defaults =
        SessionConfig::new(role, sender.unwrap_or_default(), target.unwrap_or_default()).of_version(version);
    let heartbeat = |text: &str| text.parse().ok().filter(|s| *s <= 3_600);
    let heartbeat_s = section.parsed("HeartBtInt", "seconds, 0 to 3600", heartbeat);
    if role == Role::Initiator {
        section.needed("HeartBtInt");
    }
    let latency_max_ns = section.seconds("MaxLatency", 120);
    let has_beats = !section.flag("DisableHeartBeatCheck", false);
    let silence = |key: &str, default: u32| {
        let factor = section.parsed(key, "a number from 0 to 100", |text| {
            text.parse::<f64>().ok().filter(|f| (0.0..=100.0).contains(f))
        });
        let permille = factor.map_or(default, |factor| (1_000.0 * (1.0 + factor)) as u32);
        if has_beats { permille } else { 0 }
    };
    let chunk = section.parsed("ResendRequestChunkSize", "a number", |t| t.parse().ok());
    let is_closed = section.flag("ClosedResendInterval", false);
    let config = SessionConfig {
        any_message: true,
        heartbeat_s: heartbeat_s.unwrap_or(defaults.heartbeat_s),
        subs: SubIds {
            sender_sub: sub_id("SenderSubID"),
            sender_location: sub_id("SenderLocationID"),
            target_sub: sub_id("TargetSubID"),
            target_location: sub_id("TargetLocationID"),
        },
        qualifier: sub_id("SessionQualifier"),
        credentials: match role {
            Role::Initiator => credentials,
            Role::Acceptor => Credentials::default(),
        },
        asks_about_logons: role == Role::Acceptor && has_users,
        cancel_on: cancel_on.unwrap_or_default(),
        cancel_after_ns: section.seconds("CancelOnDisconnectAfter", 0),
        is_test: section
            .text("TestMessageIndicator")
            .map(|_| section.flag("TestMessageIndicator", false)),
        next_expected: section.flag("EnableNextExpectedMsgSeqNum", false),
        last_processed: section.flag("EnableLastMsgSeqNumProcessed", false),
        resend_chunk: match chunk.unwrap_or(0) {
            0 if is_closed => u64::MAX,
            chunk => chunk,
        },
        reset_on_logon: section.flag("ResetOnLogon", false),
        reset_on_logout: section.flag("ResetOnLogout", false),
        reset_on_disconnect: section.flag("ResetOnDisconnect", false),
        throttle_out: throttle(section, "Out"),
        throttle_in: throttle(section, "In"),
        receive_bytes: section
            .parsed("MaxMessageSize", "bytes, 1024 to 1048576", |text| {
                text.parse().ok().filter(|n| (1 << 10..=1 << 20).contains(n))
            })
            .unwrap_or(defaults.receive_bytes),
        precision: precision(section).unwrap_or(defaults.precision),
        test_after_permille: silence("TestRequestDelayMultiplier", defaults.test_after_permille),
        silence_max_permille: silence("HeartBeatTimeoutMultiplier", defaults.silence_max_permille),
        checks_comp_ids: section.flag("CheckCompID", true),
        wants_orig_sending_time: section.flag("RequiresOrigSendingTime", true),
        keeps_messages: section.flag("PersistMessages", true),
        latency_max_ns: match section.flag("CheckLatency", true) {
            true => latency_max_ns,
            false => 0,
        },
        logon_timeout_ns: section.seconds("LogonTimeout", 10),
        logout_timeout_ns: section.seconds("LogoutTimeout", 2),
        ..defaults
    };
    sender.and(target).map(|_| config)
}

/// Digits of our times: TimestampPrecision, or whether they have milliseconds at all.
fn precision(section: &Section) -> Option<Precision> {
    let digits = |text: &str| match text.to_ascii_uppercase().as_str() {
        "0" | "SECONDS" => Some(Precision::Seconds),
        "1" | "2" | "3" | "MILLIS" => Some(Precision::Millis),
        "4" | "5" | "6" | "MICROS" => Some(Precision::Micros),
        "7" | "8" | "9" | "NANOS" => Some(Precision::Nanos),
        _ => None,
    };
    let allowed = "0 to 9, SECONDS, MILLIS, MICROS or NANOS";
    let precision = section.parsed("TimestampPrecision", allowed, digits);
    let has_millis = section.flag("MillisecondsInTimeStamp", true);
    precision.or((!has_millis).then_some(Precision::Seconds))
}

/// LogonTag, LogonTag1, ...: fields of an initiator's Logon; user and passwords among them go where the log does not show them.
fn logon_fields(section: &Section, role: Role) -> (Vec<(u32, Vec<u8>)>, Option<Credentials>) {
    // What every Logon has, or what the session writes by itself.
    const OURS: [&str; 12] = [
        "8", "9", "10", "34", "35", "49", "52", "56", "98", "108", "141", "1137",
    ];
    section.text("LogonTag");
    let mut fields = Vec::new();
    let mut named = credentials(section);
    let mut has_credentials = false;
    for (key, text, line) in section.beginning_with("LogonTag") {
        section.text(key);
        let pair = text.split_once('=').map(|(tag, value)| (tag.trim(), value));
        let number = pair.and_then(|(tag, _)| tag.parse::<u32>().ok());
        let (Some((tag, value)), Some(number)) = (pair, number.filter(|n| *n > 0)) else {
            section.wrong(line, format!("{key} must be tag=value, such as 553=user"));
            continue;
        };
        let is_plain = !value.is_empty() && value.bytes().all(|b| (0x20..0x7F).contains(&b));
        if OURS.contains(&tag) || !is_plain {
            section.wrong(
                line,
                format!("{key}: {tag} must be a field that the session does not write itself, its value printable ASCII"),
            );
            continue;
        }
        let secret = || Secret::new(value.as_bytes()).unwrap_or_default();
        match number {
            553 => named.username = Text::new(value.as_bytes()).unwrap_or_default(),
            554 => named.password = secret(),
            925 => named.new_password = secret(),
            _ => {
                fields.push((number, value.as_bytes().to_vec()));
                continue;
            }
        }
        has_credentials = true;
    }
    fields.sort_by_key(|(tag, _)| *tag);
    (
        fields,
        (has_credentials && role == Role::Initiator).then_some(named),
    )
}

/// The addresses that may connect.
fn allowed(section: &Section, role: Role) -> Vec<IpAddr> {
    let Some((list, line)) = section.text("AllowedRemoteAddresses") else {
        return Vec::new();
    };
    if role == Role::Initiator {
        return Vec::new();
    }
    let mut addresses = Vec::new();
    for name in list.split([',', ' ', ';']).filter(|name| !name.is_empty()) {
        match name.parse() {
            Ok(address) => addresses.push(address),
            Err(_) => match (name, 0).to_socket_addrs() {
                Ok(found) => addresses.extend(found.map(|at| at.ip())),
                Err(e) => section.wrong(line, format!("AllowedRemoteAddresses: {name}: {e}")),
            },
        }
    }
    if addresses.is_empty() {
        section.wrong(
            line,
            "AllowedRemoteAddresses has no address; remove it to admit any",
        );
    }
    addresses
}

/// Where a session listens or connects; what the other kind of session says is passed over.
fn transport(section: &Section, role: Role) -> Option<TransportSetup> {
    let hosts = hosts(section);
    let terms = terms(section, hosts.len());
    let listen = listen(section, role);
    let timeout = section.seconds("SocketConnectTimeout", 5).max(Nanos::MILLI);
    for key in ["SocketAcceptProtocol", "SocketConnectProtocol"] {
        section.text(key);
    }
    for begin in ["SocketAcceptProtocol", "SocketConnectProtocol"] {
        for (key, value, line) in section.beginning_with(begin) {
            if !value.eq_ignore_ascii_case("TCP") {
                section.wrong(line, format!("{key}={value}: must be TCP"));
            }
        }
    }
    match role {
        Role::Acceptor => {
            section.needed("SocketAcceptPort");
            listen.map(TransportSetup::Listen)
        }
        Role::Initiator => {
            section.needed("SocketConnectHost");
            section.needed("SocketConnectPort");
            let timeout = Duration::from_nanos(timeout);
            Some(TransportSetup::Connect {
                hosts,
                terms,
                timeout,
            })
        }
    }
}

/// SocketConnectHost and SocketConnectPort, then those with 1, 2, ... behind them.
fn hosts(section: &Section) -> Vec<Host> {
    let mut hosts = Vec::new();
    for number in 0.. {
        let numbered = |key: &str| match number {
            0 => key.to_string(),
            n => format!("{key}{n}"),
        };
        let parse = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
        let name = section.text(&numbered("SocketConnectHost"));
        let port_key = numbered("SocketConnectPort");
        let has_port = section.text(&port_key);
        let port = section.parsed(&port_key, "a port, 1 to 65535", parse);
        match (name, has_port) {
            (Some((name, _)), Some(_)) => hosts.extend(port.map(|port| Host {
                name: name.to_string(),
                port,
            })),
            (None, None) if number == 0 => {}
            (None, None) => break,
            (Some((name, line)), None) => section.wrong(line, format!("{name} has no {port_key}")),
            (None, Some((port, line))) => {
                section.wrong(
                    line,
                    format!("port {port} has no {}", numbered("SocketConnectHost")),
                );
            }
        }
    }
    hosts
}

/// When which host is tried: the wait after a round in vain is ReconnectInterval and doubles up to ReconnectIntervalMax.
fn terms(section: &Section, hosts: usize) -> HostsConfig {
    let seconds = |text: &str| text.parse::<u64>().ok().filter(|s| (1..=86_400).contains(s));
    let allowed = "seconds, 1 to 86400";
    let least = section
        .parsed("ReconnectInterval", allowed, seconds)
        .unwrap_or(30);
    let most = section.parsed("ReconnectIntervalMax", allowed, seconds);
    let order = |text: &str| match text.to_ascii_lowercase().as_str() {
        "priority" => Some(HostOrder::Priority),
        "round-robin" | "roundrobin" | "round_robin" => Some(HostOrder::RoundRobin),
        _ => None,
    };
    let order = section.parsed("HostOrder", "priority or round-robin", order);
    let defaults = HostsConfig::new(hosts.max(1));
    HostsConfig {
        order: order.unwrap_or(defaults.order),
        backoff_min_ns: least * Nanos::SECOND,
        backoff_max_ns: most.unwrap_or(8 * least).max(least) * Nanos::SECOND,
        seed: u64::from(std::process::id()),
        ..defaults
    }
}

/// Messages a second, and what becomes of those beyond.
fn throttle(section: &Section, way: &str) -> Option<Throttle> {
    let [rate, burst, excess] = ["PerSecond", "Burst", "Excess"].map(|key| format!("Throttle{way}{key}"));
    let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n > 0);
    let rate = section.parsed(&rate, "a number from 1 on", number);
    let burst = section.parsed(&burst, "a number from 1 on", number);
    let what = |text: &str| match text {
        "delay" => Some(Excess::Delay),
        "reject" => Some(Excess::Reject),
        "disconnect" => Some(Excess::Disconnect),
        _ => None,
    };
    let excess = section.parsed(&excess, "delay, reject or disconnect", what);
    rate.map(|per_second| Throttle {
        per_second,
        burst: burst.unwrap_or(per_second),
        excess: excess.unwrap_or(Excess::Delay),
    })
}

fn credentials(section: &Section) -> Credentials {
    // A wrong value is not repeated: it is secret.
    let wrong = |key: &str, line| {
        section.wrong(
            line,
            format!("{key} must be at most 63 printable ASCII characters"),
        );
    };
    let secret = |key: &str| {
        let (value, line) = section.text(key)?;
        let secret = Secret::new(value.as_bytes());
        if secret.is_none() {
            wrong(key, line);
        }
        secret
    };
    let username = section.text("Username").and_then(|(value, line)| {
        let username = Text::new(value.as_bytes());
        if username.is_none() {
            wrong("Username", line);
        }
        username
    });
    Credentials {
        username: username.unwrap_or(Text::EMPTY),
        password: secret("Password").unwrap_or_default(),
        new_password: secret("NewPassword").unwrap_or_default(),
    }
}

/// Loopback unless told otherwise.
fn listen(section: &Section, role: Role) -> Option<SocketAddr> {
    let said = section.text("SocketAcceptAddress");
    let (port, line) = section.text("SocketAcceptPort")?;
    if role == Role::Initiator {
        return None;
    }
    let port = match port.parse::<u16>() {
        Ok(port) => port,
        Err(_) => {
            section.wrong(
                line,
                format!("SocketAcceptPort={port}: must be a port, 0 to 65535"),
            );
            return None;
        }
    };
    let (host, line) = said.unwrap_or(("127.0.0.1", line));
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(SocketAddr::new(address, port));
    }
    let found = (host, port).to_socket_addrs().ok().and_then(|mut all| all.next());
    if found.is_none() {
        section.wrong(
            line,
            format!("SocketAcceptAddress={host}: is neither an IP address nor a host's name that is known"),
        );
    }
    found
}

fn thread(section: &Section) -> ThreadSetup {
    let number = |text: &str| text.parse().ok().filter(|n| *n < 1024);
    let core = |text: &str| text.parse().ok();
    let wait = |text: &str| match text {
        "block" => Some(WaitStrategy::Poll),
        "spin" => Some(WaitStrategy::Spin),
        _ => None,
    };
    ThreadSetup {
        number: section
            .parsed("Thread", "a number, 0 to 1023", number)
            .unwrap_or(0),
        core: section.parsed("ThreadCore", "the number of a core", core),
        wait: section
            .parsed("WaitStrategy", "block or spin", wait)
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::Silent;

    fn load_text(text: &str) -> Result<Vec<Setup>, String> {
        load_as(text, Role::Acceptor)
    }

    fn load_as(text: &str, role: Role) -> Result<Vec<Setup>, String> {
        let dir = std::env::temp_dir().join(format!("tickwire-fix-settings-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join(format!("{:p}.cfg", text.as_ptr()));
        std::fs::write(&path, text).unwrap();
        load(&path, Wanted::Only(role), &Silent).map_err(|e| e.to_string())
    }

    const SESSION: &str = "[SESSION]\nBeginString=FIX.4.2\nSenderCompID=A\nTargetCompID=B\nSocketAcceptPort=0\nUseDataDictionary=N\n";

    #[test]
    fn a_password_in_the_file_is_told_from_the_name_of_a_variable_that_has_it() {
        for (line, holds) in [
            ("Password=open sesame", true),
            ("NewPassword = x", true),
            ("LogonTag1=554=x", true),
            ("Password=${FIX_PASSWORD}", false),
            ("Password=", false),
            ("LogonTag=1137=9", false),
            ("PasswordFile=users", false),
            ("# Password", false),
        ] {
            assert_eq!(holds_password(line), holds, "{line}");
        }
    }

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
        let TransportSetup::Connect { hosts, terms, .. } = &setups[0].transport else {
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
            ("Key=1\n", ":1:", "before the first"),
            ("[DEFAULT]\nnonsense\n", ":2:", "neither Key=Value"),
            ("[SESSION]\nBeginString=FIX.3.9\n", ":2:", "FIX.4.0"),
            ("[SESSION]\nBeginString=FIX.4.4\n", ":1:", "no SenderCompID"),
            (&format!("{SESSION}ResetOnLogon=maybe\n"), ":7:", "Y or N"),
            (
                &format!("{SESSION}ResetOnLogn=Y\n"),
                ":7:",
                "did you mean ResetOnLogon?",
            ),
            (
                &format!("{SESSION}Password=\u{fc}mlaut\n"),
                ":7:",
                "Password must be",
            ),
            (
                &format!("{SESSION}ThrottleInExcess=ignore\n"),
                ":7:",
                "delay, reject",
            ),
            (
                &SESSION.replace("UseDataDictionary=N", "DataDictionary=none.xml"),
                ":6:",
                "none.xml",
            ),
            ("[DEFAULT]\nResetOnLogon=Y\n", "no [SESSION]", ""),
            (
                &SESSION.replace(
                    "TargetCompID=B",
                    "TargetCompID=*\nAcceptorTemplate=Y\nDynamicSessionsMax=0",
                ),
                ":6:",
                "1 to 1024",
            ),
            (&format!("{SESSION}CancelOnDisconnect=maybe\n"), ":7:", "ALL"),
            (&format!("{SESSION}PasswordFile=none\n"), ":7:", "none"),
            (
                &format!("{SESSION}AcceptorTemplate=Y\nDropCopySession=C\n"),
                ":1:",
                "DropCopyFile",
            ),
            (
                &format!("{SESSION}Thread=1\nThreadCore=1\n{SESSION}Thread=1\n"),
                ":9:",
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

    /// A folder with files that look like those of public repositories, and what they name.
    fn real_files(name: &str) -> PathBuf {
        use rcgen::{CertificateParams, KeyPair};
        let dir = std::env::temp_dir().join(format!("tickwire-quickfix-{}-{name}", std::process::id()));
        std::fs::create_dir_all(dir.join("certs")).unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/quickfix");
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), dir.join(entry.file_name())).unwrap();
        }
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec!["client".into()])
            .unwrap()
            .self_signed(&key)
            .unwrap();
        std::fs::write(dir.join("client.pem"), own.pem() + &key.serialize_pem()).unwrap();
        std::fs::write(dir.join("certs/ca.pem"), own.pem()).unwrap();
        dir
    }

    /// A file, what it is for, its sessions, the names that are warned of, and what is noted.
    type Real = (&'static str, Role, usize, &'static [&'static str], &'static str);

    const REAL: [Real; 11] = [
        (
            "executor.cfg",
            Role::Acceptor,
            6,
            &["FileLogBackupPath", "PreserveMessageFieldsOrder"],
            "FIX.4.3",
        ),
        (
            "tradeclient.cfg",
            Role::Initiator,
            2,
            &["HttpAcceptPort", "HostSelectionPolicyPriorityStartOverInterval"],
            "FIX.4.2",
        ),
        ("gui.cfg", Role::Initiator, 3, &["Description"], "FIX.5.0SP2"),
        (
            "dynamic.cfg",
            Role::Acceptor,
            2,
            &[
                "ValidOrderTypes",
                "DefaultMarketPrice",
                "LogMessageWhenSessionNotFound",
                "ContinueInitializationOnError",
            ],
            "FIX.4.4",
        ),
        ("matcher.cfg", Role::Acceptor, 1, &[], "FIX.4.2"),
        (
            "tls_client.cfg",
            Role::Initiator,
            1,
            &[
                "DebugFileLogPath",
                "ScreenLogShowIncoming",
                "ScreenLogShowOutgoing",
                "ScreenLogShowEvents",
                "SSLCertificatePassword",
                "SSLValidateCertificates=N",
            ],
            "FIX.4.4",
        ),
        ("fix5_acceptor.cfg", Role::Acceptor, 1, &[], "FIXT.1.1"),
        (
            "bank.cfg",
            Role::Initiator,
            1,
            &[
                "CipherSuites",
                "SocketTrustStorePassword",
                "JdbcDriver",
                "JdbcURL",
                "JdbcUser",
                "JdbcPassword",
                "JdbcMaxActiveConnection",
                "SLF4JLogEventCategory",
                "SLF4JLogHeartbeats",
            ],
            "",
        ),
        (
            "market_data.cfg",
            Role::Initiator,
            1,
            &["FileLogHeartbeats", "SocketKeepAlive"],
            "FIX.4.4",
        ),
        (
            "futures.cfg",
            Role::Acceptor,
            1,
            &[
                "Verbose",
                "CmeEnhancedResend",
                "ResendSessionLevelRejects",
                "SendLogoutBeforeDisconnectFromTimeout",
                "Encoding",
            ],
            "FIX.4.4",
        ),
        (
            "broker_week.cfg",
            Role::Acceptor,
            2,
            &[
                "SocketSendBufferSize",
                "RefreshOnLogon",
                "MySQLStoreDatabase",
                "MySQLStoreUser",
                "MySQLStoreHost",
                "MySQLStorePort",
                "PostgreSQLLogDatabase",
                "PostgreSQLLogUser",
                "OdbcLogConnectionString",
                "HeartBtInt a second time",
                "the section [BACKOFFICE]",
            ],
            "FIX.4.3",
        ),
    ];

    #[test]
    fn files_as_they_are_found_load_unedited_and_what_is_passed_over_is_said() {
        let dir = real_files("load");
        for (file, role, sessions, warned, noted) in REAL {
            let (setups, remarks) = read(&dir.join(file), Wanted::Only(role), false, &Silent).unwrap();
            assert!(remarks.mistakes.is_empty(), "{file}: {:?}", remarks.mistakes);
            assert_eq!(setups.len(), sessions, "{file}");
            let mut warnings = remarks.warnings;
            warnings.sort();
            warnings.dedup();
            for name in warned {
                let found = warnings.iter().position(|w| w.what.starts_with(name));
                let found =
                    found.unwrap_or_else(|| panic!("{file}: nothing is said of {name}: {warnings:?}"));
                warnings.remove(found);
            }
            assert!(warnings.is_empty(), "{file}: {warnings:?}");
            let is_noted = remarks.notes.iter().any(|note| note.what.ends_with(noted));
            assert!(noted.is_empty() || is_noted, "{file}: {:?}", remarks.notes);
            assert_eq!(setups[0].rules.is_some(), file != "bank.cfg", "{file}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_real_files_say_is_obeyed() {
        let dir = real_files("obey");
        let one = |file: &str, role| {
            let (mut setups, _) = read(&dir.join(file), Wanted::Only(role), false, &Silent).unwrap();
            setups.remove(0)
        };
        let client = one("tradeclient.cfg", Role::Initiator);
        assert_eq!(client.config.precision, Precision::Seconds);
        assert!(
            matches!(&client.transport, TransportSetup::Connect { terms, hosts, .. }
            if terms.order == HostOrder::Priority && hosts.len() == 2)
        );
        let fix5 = one("fix5_acceptor.cfg", Role::Acceptor);
        assert!(
            matches!(fix5.transport, TransportSetup::Listen(at) if at.ip().is_unspecified() && at.port() == 5000)
        );
        assert_eq!(fix5.config.version, Version::Fix50);
        let bank = one("bank.cfg", Role::Initiator);
        assert!(matches!(bank.tls, Some(Tls::Client { name: Some(name), .. }) if name == "fix.bank.example"));
        assert!(matches!(&bank.transport, TransportSetup::Connect { timeout, .. } if timeout.as_secs() == 7));
        assert_eq!(bank.config.credentials.username.as_bytes(), b"fund");
        assert!(!bank.config.credentials.password.is_empty() && bank.config.next_expected);
        assert_eq!(bank.logon_fields, [(20115, b"desk7".to_vec())]);
        let prices = one("market_data.cfg", Role::Initiator);
        let c = prices.config;
        assert!(!c.keeps_messages && prices.calendar.is_none() && c.resend_chunk == 100);
        assert_eq!((c.test_after_permille, c.silence_max_permille), (1_500, 3_000));
        assert_eq!((c.precision, c.latency_max_ns), (Precision::Micros, 0));
        let validation = prices.rules.unwrap().validation;
        assert!(!validation.listed_values && !validation.unknown_fields && !validation.group_order);
        let futures = one("futures.cfg", Role::Acceptor);
        assert_eq!(futures.config.resend_chunk, 2_500);
        assert!(!futures.config.wants_orig_sending_time && futures.calendar.is_some());
        let broker = one("broker_week.cfg", Role::Acceptor);
        assert_eq!(broker.allowed.len(), 2);
        assert_eq!(broker.config.heartbeat_s, 60, "the later one counts");
        assert!(!broker.config.checks_comp_ids && broker.config.asks_about_logons);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// The table and the reader know the same settings: none is obeyed on paper only.
    #[test]
    fn every_setting_that_is_obeyed_is_read_and_every_one_that_is_read_is_in_the_table() {
        use crate::quickfix::{Does, KNOWN, find};
        let dir = real_files("asked");
        let mut asked = std::collections::BTreeSet::new();
        for (file, ..) in REAL {
            let text = std::fs::read_to_string(dir.join(file)).unwrap();
            let mut reader = Reader {
                folder: dir.clone(),
                observer: &Silent,
                dictionaries: BTreeMap::new(),
                admits_unknown: false,
            };
            let parsed = sections(&text, |_| Some("x".into()));
            for section in &parsed.sessions {
                reader.session(section, Wanted::All);
                asked.extend(section.asked());
            }
        }
        for known in KNOWN.iter().filter(|known| matches!(known.does, Does::Read(_))) {
            assert!(
                asked.contains(known.name),
                "{} is obeyed by the table and never read",
                known.name
            );
        }
        for key in &asked {
            let known = find(key).unwrap_or_else(|| panic!("{key} is read and not in the table"));
            assert!(
                matches!(known.0.does, Does::Read(_)),
                "{key} is read, but not so in the table"
            );
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn all_mistakes_of_a_file_come_at_once_with_file_and_line() {
        let text = "[DEFAULT]\nConnectionType=acceptor\nHeartBtInt=soon\nnonsense line\nProxyHost=p\n\
                    [SESSION]\nBeginString=FIX.9.9\nSenderCompID=A\nSocketAcceptPort=99999\nSoketAcceptAdress=h\n\
                    [SESION]\n[SESSION]\nTargetCompID=B\nResetOnLogon=perhaps\nPassword=${NO_SUCH_VARIABLE_HERE}\nzzqqxx=1\n";
        let message = load_text(text).unwrap_err();
        for part in [
            "mistakes in",
            ".cfg:3: HeartBtInt=soon: must be",
            ".cfg:4: \"nonsense line\" is neither",
            ".cfg:5: ProxyHost: there is no way",
            ".cfg:6: this [SESSION] has no TargetCompID",
            ".cfg:7: BeginString=FIX.9.9",
            ".cfg:9: SocketAcceptPort=99999",
            ".cfg:10: SoketAcceptAdress is not a setting that is known here; did you mean SocketAcceptAddress?",
            ".cfg:11: [SESION] is no section; did you mean [SESSION]?",
            ".cfg:12: this [SESSION] has no SenderCompID",
            ".cfg:14: ResetOnLogon=perhaps",
            ".cfg:15: Password: the environment has no variable NO_SUCH_VARIABLE_HERE",
            "zzqqxx is not a setting that is known here; if it is your application's own, start with --allow-unknown",
        ] {
            assert!(message.contains(part), "{part:?} is not in\n{message}");
        }
        assert_eq!(
            message.matches(":3:").count(),
            1,
            "a line of [DEFAULT] is told once"
        );
        let unknown = format!("{SESSION}zzqqxx=1\n");
        assert!(load_text(&unknown).is_err());
        let dir = std::env::temp_dir().join(format!("tickwire-fix-unknown-{}.cfg", std::process::id()));
        std::fs::write(&dir, unknown).unwrap();
        assert_eq!(load_with(&dir, Wanted::All, true, &Silent).unwrap().len(), 1);
        std::fs::remove_file(&dir).unwrap();
    }

    #[test]
    fn a_dictionary_of_ones_own_must_be_there_and_a_standard_one_need_not() {
        let with = |line: &str| load_text(&SESSION.replace("UseDataDictionary=N", line));
        for there in [
            "",
            "DataDictionary=",
            "DataDictionary=spec/FIX42.xml",
            "DataDictionary=C:\\fix\\fix4.2.XML",
        ] {
            let setups = with(there).unwrap();
            let rules = setups[0].rules.as_ref().unwrap();
            assert_eq!(rules.application.begin_string(), "FIX.4.2", "{there}");
        }
        for missing in ["DataDictionary=venue42.xml", "DataDictionary=spec/FIX44.xml"] {
            let message = with(missing).unwrap_err();
            assert!(message.contains("built-in dictionary of FIX.4.2"), "{message}");
        }
    }

    #[test]
    fn tls_of_all_three_is_read_and_what_is_no_pem_file_says_what_makes_one() {
        let dir = real_files("tls");
        std::fs::write(dir.join("own.pfx"), [0x30, 0x82, 1, 2]).unwrap();
        std::fs::write(dir.join("own.jks"), [0xFE, 0xED, 0xFE, 0xED, 0]).unwrap();
        let of = |more: &str| {
            let path = dir.join("case.cfg");
            let text = format!(
                "[SESSION]\nBeginString=FIX.4.4\nSenderCompID=A\nTargetCompID=B\nSocketAcceptPort=0\n{more}"
            );
            std::fs::write(&path, text).unwrap();
            let (mut setups, remarks) = read(&path, Wanted::All, false, &Silent).unwrap();
            match remarks.mistakes.is_empty() {
                true => Ok((setups.remove(0).tls.is_some(), remarks.warnings)),
                false => Err(remarks
                    .mistakes
                    .iter()
                    .map(|m| m.what.as_str())
                    .collect::<Vec<_>>()
                    .join("\n")),
            }
        };
        for good in [
            "SSLEnable=Y\nSSLCertificate=client.pem\n",
            "SSLEnable=Y\nSSLCertificate=client.pem\nSSLCACertificate=certs/ca.pem\nSSLRequireClientCertificate=Y\n",
            "SocketUseSSL=Y\nSocketKeyStore=client.pem\nSocketTrustStore=certs/ca.pem\nNeedClientAuth=Y\nEnabledProtocols=TLSv1.3\n",
            "SSLEnable=Y\nServerCertificateFile=client.pem\nCertificationAuthoritiesDirectory=certs\nCertificateVerifyLevel=1\n",
            "SSLEnable=Y\nServerCertificateFile=client.pem\nSSLProtocol=all -TLSv1.2\n",
        ] {
            assert_eq!(
                of(good).map(|(is_on, warnings)| (is_on, warnings.len())),
                Ok((true, 0)),
                "{good}"
            );
        }
        let old = of("SSLEnable=Y\nServerCertificateFile=client.pem\nSSLProtocol=TLSv1\n").unwrap();
        assert!(old.1[0].what.contains("only TLS 1.2 and 1.3"), "{:?}", old.1);
        for (bad, what) in [
            (
                "SSLEnable=Y\nSSLCertificate=own.pfx\n",
                "openssl pkcs12 -in own.pfx",
            ),
            (
                "SocketUseSSL=Y\nSocketKeyStore=own.jks\n",
                "keytool -importkeystore",
            ),
            ("SSLEnable=Y\nSSLCertificate=CN=fix\n", "store of Windows"),
            ("SSLEnable=Y\nSSLCertificate=none.pem\n", "cannot read"),
            ("SSLEnable=Y\n", "no ServerCertificateFile"),
            (
                "SSLEnable=Y\nServerCertificateFile=client.pem\nNeedClientAuth=Y\n",
                "no CertificationAuthoritiesFile",
            ),
            (
                "SSLEnable=Y\nServerCertificateFile=client.pem\nSSLCACertificate=certs/ca.pem\nCertificateVerifyLevel=2\n\
                 CertificateRevocationListFile=client.pem\n",
                "no list of revoked",
            ),
        ] {
            let message = of(bad).unwrap_err();
            assert!(message.contains(what), "{bad}: {message}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
