//! A section of a file as a session.

use super::*;

/// Reads sessions; a dictionary is read once however many sessions share it.
pub(super) struct Reader<'o> {
    pub(super) folder: PathBuf,
    pub(super) observer: &'o dyn Observer,
    pub(super) dictionaries: BTreeMap<PathBuf, Option<Arc<Dictionary>>>,
    pub(super) admits_unknown: bool,
}

impl Reader<'_> {
    /// The session of a section, unless it is of another kind than wanted, or wrong.
    pub(super) fn session(&mut self, section: &Section, wanted: Wanted) -> Option<Setup> {
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

    /// Username and Password of a session that listens are what it wants to be told, or PasswordFile has many
    /// of them.
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

    /// The dictionary of a file, or the one that is built in when no file is named, or one is that comes with
    /// every engine and is not there.
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

/// Whether a path ends with the name that a standard dictionary has in the engines: `FIX44.xml`,
/// `FIXT1.1.xml`. On Windows, too.
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

/// LogonTag, LogonTag1, ...: fields of an initiator's Logon; user and passwords among them go where the log
/// does not show them.
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

/// When which host is tried: the wait after a round in vain is ReconnectInterval and doubles up to
/// ReconnectIntervalMax.
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
