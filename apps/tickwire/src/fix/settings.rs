//! QuickFIX's configuration files: `[DEFAULT]` and `[SESSION]` sections of `Key=Value` lines.
//!
//! A key that is known to have no meaning here is passed over; one that nobody knows, or a value that cannot be, is an
//! error that names file, line and what would do.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tickwire_fix::dict::{Dictionary, Validation};
use tickwire_fix::{CompId, Precision, Role, Rules, SessionConfig, Version};
use tickwire_market::Nanos;

use crate::failure::Failure;

/// Keys of QuickFIX that say nothing to us, each with the reason in a few words.
const WITHOUT_MEANING: [(&str, &str); 12] = [
    ("ApplicationDictionary", "QuickFIX/N's own"),
    ("FileLogPath", "what was sent is in the store"),
    ("FileLogBackupPath", "as FileLogPath"),
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
    pub(super) config: SessionConfig,
    pub(super) rules: Option<Rules>,
    /// Where an acceptor listens.
    pub(super) listen: SocketAddr,
    /// The file that the session's messages and numbers last in; in memory only without one.
    pub(super) store: Option<StoreSetup>,
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

/// A mistake in a file.
#[derive(Debug)]
struct Mistake {
    line: usize,
    what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// The lines of one section, over those of `[DEFAULT]`.
#[derive(Clone, Default)]
struct Section {
    line: usize,
    /// Value and line by key.
    values: BTreeMap<String, (String, usize)>,
    /// Keys that were asked for.
    known: std::cell::RefCell<Vec<&'static str>>,
}

impl Section {
    fn text(&self, key: &'static str) -> Option<(&str, usize)> {
        self.known.borrow_mut().push(key);
        self.values.get(key).map(|(value, line)| (value.as_str(), *line))
    }

    fn needed(&self, key: &'static str) -> Result<(&str, usize), Mistake> {
        self.text(key).ok_or_else(|| Mistake {
            line: self.line,
            what: format!("this [SESSION] has no {key}, and [DEFAULT] has none either"),
        })
    }

    fn parsed<T>(
        &self,
        key: &'static str,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Mistake> {
        let Some((value, line)) = self.text(key) else {
            return Ok(None);
        };
        let wrong = || Mistake {
            line,
            what: format!("{key}={value}: must be {allowed}"),
        };
        parse(value).map(Some).ok_or_else(wrong)
    }

    fn flag(&self, key: &'static str, default: bool) -> Result<bool, Mistake> {
        let parse = |text: &str| match text {
            "Y" | "y" => Some(true),
            "N" | "n" => Some(false),
            _ => None,
        };
        Ok(self.parsed(key, "Y or N", parse)?.unwrap_or(default))
    }

    fn seconds(&self, key: &'static str, default_s: u64) -> Result<u64, Mistake> {
        let parse = |text: &str| text.parse().ok().filter(|s| *s <= 86_400);
        let seconds = self.parsed(key, "seconds, 0 to 86400", parse)?;
        Ok(seconds.unwrap_or(default_s) * Nanos::SECOND)
    }
}

/// The sessions of a file that take connections.
pub(super) fn acceptors(path: &Path) -> Result<Vec<Setup>, Failure> {
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
    let setups = sections(&text).and_then(|sections| sections.iter().map(|s| reader.session(s)).collect());
    let setups: Vec<Setup> =
        setups.map_err(|mistake: Mistake| Failure::config(format!("{}, {mistake}", path.display())))?;
    match setups.is_empty() {
        true => Err(Failure::config(format!("{} has no [SESSION]", path.display()))),
        false => Ok(setups),
    }
}

/// Every `[SESSION]` with the lines of `[DEFAULT]` beneath its own.
fn sections(text: &str) -> Result<Vec<Section>, Mistake> {
    let (mut default, mut sessions) = (Section::default(), Vec::<Section>::new());
    let mut in_default = None;
    for (number, line) in text.lines().enumerate() {
        let (line, number) = (line.trim(), number + 1);
        let wrong = |what: String| Mistake { line: number, what };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.to_ascii_uppercase().as_str() {
            "[DEFAULT]" => {
                in_default = Some(true);
                continue;
            }
            "[SESSION]" => {
                in_default = Some(false);
                sessions.push(Section {
                    line: number,
                    ..Section::default()
                });
                continue;
            }
            _ => {}
        }
        let (key, value) = line
            .split_once('=')
            .ok_or_else(|| wrong(format!("{line:?} is neither Key=Value nor a section")))?;
        let section = match in_default {
            Some(true) => &mut default,
            Some(false) => sessions.last_mut().unwrap_or(&mut default),
            None => return Err(wrong("a value before the first [DEFAULT] or [SESSION]".into())),
        };
        let value = (value.trim().to_string(), number);
        if section.values.insert(key.trim().to_string(), value).is_some() {
            return Err(wrong(format!("{} a second time", key.trim())));
        }
    }
    for session in &mut sessions {
        for (key, value) in &default.values {
            session.values.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    Ok(sessions)
}

/// Reads sessions; a dictionary is read once however many sessions share it.
struct Reader {
    folder: PathBuf,
    dictionaries: BTreeMap<PathBuf, Arc<Dictionary>>,
}

impl Reader {
    fn session(&mut self, section: &Section) -> Result<Setup, Mistake> {
        section.parsed("ConnectionType", "acceptor", |t| (t == "acceptor").then_some(()))?;
        let version = version(section)?;
        let comp_id = |key| -> Result<CompId, Mistake> {
            let (value, line) = section.needed(key)?;
            CompId::new(value.as_bytes())
                .filter(|id| !id.is_empty())
                .ok_or_else(|| Mistake {
                    line,
                    what: format!("{key}={value}: must be 1 to 31 printable ASCII characters"),
                })
        };
        let defaults = SessionConfig::new(Role::Acceptor, comp_id("SenderCompID")?, comp_id("TargetCompID")?)
            .of_version(version);
        let digits = |text: &str| match text {
            "0" | "SECONDS" => Some(Precision::Seconds),
            "3" | "MILLIS" => Some(Precision::Millis),
            "6" | "MICROS" => Some(Precision::Micros),
            "9" | "NANOS" => Some(Precision::Nanos),
            _ => None,
        };
        let precision = section.parsed("TimestampPrecision", "0, 3, 6 or 9", digits)?;
        let latency_max_ns = section.seconds("MaxLatency", 120)?;
        let config = SessionConfig {
            any_message: true,
            reset_on_logon: section.flag("ResetOnLogon", false)?,
            precision: precision.unwrap_or(defaults.precision),
            latency_max_ns: match section.flag("CheckLatency", true)? {
                true => latency_max_ns,
                false => 0,
            },
            logon_timeout_ns: section.seconds("LogonTimeout", 10)?,
            logout_timeout_ns: section.seconds("LogoutTimeout", 2)?,
            ..defaults
        };
        self.always_open(section)?;
        let store = self.store(section, &config)?;
        let setup = Setup {
            store,
            config,
            rules: self.rules(section, version)?,
            listen: listen(section)?,
        };
        unknown_keys(section)?;
        Ok(setup)
    }

    fn store(&self, section: &Section, config: &SessionConfig) -> Result<Option<StoreSetup>, Mistake> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|n| *n > 0);
        let mib = section.parsed("FileStoreMegabytes", "a number from 1 on", number)?;
        let sync_every_ms = section.parsed("FileStoreSyncMilliseconds", "a number from 1 on", number)?;
        let Some((folder, _)) = section.text("FileStorePath") else {
            return Ok(None);
        };
        // Identities may hold what no file name should.
        let plain = |text: &str| -> String {
            let keep = |c: char| {
                if c.is_ascii_alphanumeric() || c == '.' {
                    c
                } else {
                    '_'
                }
            };
            text.chars().map(keep).collect()
        };
        let name = format!(
            "{}-{}-{}.store",
            config.version.name(),
            plain(config.sender.as_str()),
            plain(config.target.as_str())
        );
        Ok(Some(StoreSetup {
            path: self.folder.join(folder).join(name),
            bytes: (mib.unwrap_or(64) as usize) << 20,
            sync_every_ms,
        }))
    }

    /// Sessions do not begin or end by the clock yet: said, not passed over.
    fn always_open(&self, section: &Section) -> Result<(), Mistake> {
        if section.flag("NonStopSession", false)? {
            return Ok(());
        }
        let times = ["StartTime", "EndTime"].map(|key| section.text(key));
        match times {
            [Some((start, _)), Some((end, line))] if start != end => Err(Mistake {
                line,
                what: format!(
                    "a session from {start} to {end}: sessions that begin and end by the clock are not supported yet; make both the same, or NonStopSession=Y"
                ),
            }),
            _ => Ok(()),
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

/// Loopback unless told otherwise.
fn listen(section: &Section) -> Result<SocketAddr, Mistake> {
    let (port, line) = section.needed("SocketAcceptPort")?;
    let host = section
        .text("SocketAcceptAddress")
        .map_or("127.0.0.1", |(host, _)| host);
    format!("{host}:{port}").parse().map_err(|_| Mistake {
        line,
        what: format!("{host}:{port} is not an address; SocketAcceptPort is 0 to 65535, SocketAcceptAddress an IP address"),
    })
}

fn unknown_keys(section: &Section) -> Result<(), Mistake> {
    let known = section.known.borrow();
    let is_known = |key: &str| {
        known.contains(&key) || WITHOUT_MEANING.iter().any(|(k, _)| *k == key) || key == "ConnectionType"
    };
    match section.values.iter().find(|(key, _)| !is_known(key)) {
        Some((key, (_, line))) => Err(Mistake {
            line: *line,
            what: format!("{key} is not a setting that is known here"),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Vec<Setup>, String> {
        let dir = std::env::temp_dir().join(format!("tickwire-fix-settings-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join(format!("{:x}.cfg", text.len()));
        std::fs::write(&path, text).unwrap();
        acceptors(&path).map_err(|f| f.message)
    }

    const SESSION: &str = "[SESSION]\nBeginString=FIX.4.2\nSenderCompID=A\nTargetCompID=B\nSocketAcceptPort=0\nUseDataDictionary=N\n";

    #[test]
    fn defaults_lie_beneath_every_session() {
        let text = format!(
            "# a comment\n[DEFAULT]\nConnectionType=acceptor\nResetOnLogon=Y\nFileLogPath=log\n{SESSION}{SESSION}MaxLatency=7\nResetOnLogon=N\n"
        );
        let setups = load(&text).unwrap();
        assert_eq!(setups.len(), 2);
        assert!(setups[0].config.reset_on_logon && !setups[1].config.reset_on_logon);
        assert_eq!(setups[1].config.latency_max_ns, 7 * Nanos::SECOND);
        assert_eq!(setups[0].config.version, Version::Fix42);
        assert!(setups[0].listen.ip().is_loopback());
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
                &format!("{SESSION}StartTime=08:00:00\nEndTime=17:00:00\n"),
                "line 8",
                "not supported yet",
            ),
            (
                &SESSION.replace("UseDataDictionary=N", "DataDictionary=none.xml"),
                "line 6",
                "none.xml",
            ),
            ("[DEFAULT]\nResetOnLogon=Y\n", "no [SESSION]", ""),
        ];
        for (text, line, what) in cases {
            let message = load(text).unwrap_err();
            assert!(
                message.contains(line) && message.contains(what),
                "{text}: {message}"
            );
        }
    }
}
