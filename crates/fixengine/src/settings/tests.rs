//! Settings: files of all three engines, mistakes with their lines, the table held against the reader.

use super::reader::Reader;
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
            let found = found.unwrap_or_else(|| panic!("{file}: nothing is said of {name}: {warnings:?}"));
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
