//! What QuickFIX's configuration files say about sessions.
//!
//! [`crate::quickfix`] has every setting there is; `cfg` reads the form. All mistakes of a file are told at
//! once, each with file, line and what would do; what is done otherwise than a file may mean is a warning,
//! what was chosen for it a note.

mod reader;

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
pub use crate::hours::Calendar;
use crate::observer::{Level, Observer};
pub use crate::secure::Tls;
pub use crate::users::Users;
use reader::Reader;

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
    /// A session made without a file: in memory only, on plain TCP, always open, unchecked by any dictionary,
    /// on thread 0, which sleeps while nothing comes. What else is wanted is set in its fields.
    #[must_use]
    pub fn new(config: SessionConfig, transport: TransportSetup) -> Setup {
        Setup {
            line: 0,
            config,
            rules: None,
            transport,
            thread: ThreadSetup {
                number: 0,
                core: None,
                wait: WaitStrategy::default(),
            },
            store: None,
            log: None,
            tls: None,
            calendar: None,
            drop_copy: None,
            drop_copy_session: None,
            users: None,
            allowed: Vec::new(),
            logon_fields: Vec::new(),
            template: None,
        }
    }

    /// The same of a session that listens at an address; port 0 lets the system choose.
    #[must_use]
    pub fn listening(config: SessionConfig, address: SocketAddr) -> Setup {
        Setup::new(config, TransportSetup::Listen(address))
    }

    /// The same of a session that connects, gives a host ten seconds to answer, and tries again after pauses
    /// of 1 s to 60 s ([`HostsConfig`]).
    #[must_use]
    pub fn connecting(config: SessionConfig, host: &str, port: u16) -> Setup {
        let host = Host {
            name: host.into(),
            port,
        };
        let transport = TransportSetup::Connect {
            hosts: vec![host],
            terms: HostsConfig::new(1),
            timeout: Duration::from_secs(10),
        };
        Setup::new(config, transport)
    }

    /// Keeps messages and numbers in a file of this folder, named by the session: 64 MiB of addresses, filled
    /// as needed, not brought to the disk before messages are sent.
    #[must_use]
    pub fn kept_in(mut self, folder: &Path) -> Setup {
        self.store = Some(StoreSetup {
            path: folder.join(store_file(&self.config)),
            bytes: 64 << 20,
            is_reserved: false,
            syncs_before_sending: false,
            sync_every_ms: None,
        });
        self
    }

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

/// The sessions of each thread, by their numbers.
#[must_use]
pub fn by_thread(setups: Vec<Setup>) -> Vec<Vec<Setup>> {
    let mut groups: Vec<Vec<Setup>> = Vec::new();
    for setup in setups {
        match groups
            .iter_mut()
            .find(|group| group[0].thread.number == setup.thread.number)
        {
            Some(group) => group.push(setup),
            None => groups.push(vec![setup]),
        }
    }
    groups
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

#[cfg(test)]
mod tests;
