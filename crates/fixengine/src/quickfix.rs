//! Every setting that QuickFIX C++, QuickFIX/J and QuickFIX/n document, and our own, with what each does
//! here. The reader of configurations goes by this table, and docs/coming-from-quickfix.md is written from
//! it.
//!
//! Sources, looked at on 2026-11-23: the three projects' pages "Configuration" and the names in their
//! `SessionSettings` (C++ 1.16, /J 3.0, /n 1.14), `Session`, `SSLSupport`, `NetworkingOptions` and
//! `JdbcSetting` (/J).

use Does::{Alias, Ignored, Read, Refused};

/// One setting.
#[derive(Debug)]
pub struct Known {
    /// As it is written; case does not matter.
    pub name: &'static str,
    /// Whose it is: `C` QuickFIX C++, `J` QuickFIX/J, `N` QuickFIX/n, `T` Tickwire.
    pub engines: &'static str,
    /// What becomes of it.
    pub does: Does,
}

/// What a setting does here.
#[derive(Debug)]
pub enum Does {
    /// It is obeyed, as this says.
    Read(&'static str),
    /// Another name of this one.
    Alias(&'static str),
    /// It has no meaning here, for this reason; these values ask for nothing else than what is done anyway.
    Ignored(&'static str, &'static [&'static str]),
    /// What it asks for cannot be done here, and leaving it out would do something else than was meant.
    Refused(&'static str),
}

/// A setting that may have a number from 1 on behind its name.
const NUMBERED: [&str; 4] = [
    "SocketConnectHost",
    "SocketConnectPort",
    "SocketConnectProtocol",
    "LogonTag",
];

/// The setting of a name as it stands in a file, and what it is called here: the name of the table, with what
/// was behind it.
#[must_use]
pub fn find(written: &str) -> Option<(&'static Known, String)> {
    let of = |name: &str| KNOWN.iter().find(|known| known.name.eq_ignore_ascii_case(name));
    if let Some(known) = of(written) {
        return Some((known, known.name.to_string()));
    }
    // `AppDataDictionary.FIX.4.4`: for messages of that application version.
    let dictionary = of("AppDataDictionary")?;
    if let Some((name, version)) = written.split_once('.')
        && name.eq_ignore_ascii_case(dictionary.name)
    {
        return Some((dictionary, format!("{}.{version}", dictionary.name)));
    }
    let name = written.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &written[name.len()..];
    let known = of(name).filter(|known| NUMBERED.contains(&known.name))?;
    let is_number = !number.is_empty() && !number.starts_with('0');
    is_number.then(|| (known, format!("{}{number}", known.name)))
}

/// Whose a setting is, spelled out.
#[must_use]
pub fn whose(engines: &str) -> String {
    let names = engines.chars().map(|engine| match engine {
        'C' => "C++",
        'J' => "/J",
        'N' => "/n",
        _ => "Tickwire",
    });
    names.collect::<Vec<_>>().join(", ")
}

impl Does {
    /// In one word and a sentence.
    #[must_use]
    pub fn said(&self) -> (&'static str, String) {
        match self {
            Read(how) => ("obeyed", (*how).to_string()),
            Alias(of) => ("alias", format!("{of} by another name")),
            Ignored(reason, harmless) => {
                let mut text = (*reason).to_string();
                if !harmless.is_empty() {
                    text += &format!(" ({} asks for nothing else)", harmless.join(", "));
                }
                ("passed over", text)
            }
            Refused(reason) => ("refused", (*reason).to_string()),
        }
    }
}

const fn known(name: &'static str, engines: &'static str, does: Does) -> Known {
    Known { name, engines, does }
}

const SCREEN: &str = "sessions write nothing to the terminal; see FileLogPath and `tickwire fix log -f`";
const DATABASE_STORE: &str = "messages are kept in files, not in a database: give FileStorePath";
const DATABASE_LOG: &str = "logs are files, not tables: give FileLogPath";
const LOG_FRAMEWORK: &str = "there is no logging framework: give FileLogPath";
const PROXY: &str = "there is no way through a proxy: connect directly, or through a tunnel of the system's, and remove the Proxy settings";
const BUFFERS: &str = "the kernel sizes its buffers by itself; what a session keeps is bounded";
const EXAMPLE: &str = "it is the example application's own, not the engine's";

/// In the order of the page: by what they are about.
#[rustfmt::skip]
pub const KNOWN: &[Known] = &[
    // Which session.
    known("ConnectionType", "CJN", Read("`acceptor` or `initiator`; without it a session is what the command is for")),
    known("BeginString", "CJN", Read("FIX.4.0 to FIX.4.4, FIXT.1.1")),
    known("SenderCompID", "CJN", Read("our identity, 1 to 31 characters; `*` in a template")),
    known("SenderSubID", "JN", Read("sent, and checked as TargetSubID of what comes")),
    known("SenderLocationID", "JN", Read("sent, and checked as TargetLocationID of what comes")),
    known("TargetCompID", "CJN", Read("the counterparty's identity; `*` in a template")),
    known("TargetSubID", "JN", Read("sent, and checked as SenderSubID of what comes")),
    known("TargetLocationID", "JN", Read("sent, and checked as SenderLocationID of what comes")),
    known("SessionQualifier", "CJN", Read("tells sessions of the same identities apart, acceptors' too")),
    known("DefaultApplVerID", "CJN", Read("over FIXT.1.1: FIX.5.0, FIX.5.0SP1, FIX.5.0SP2 or 7, 8, 9; older applications over FIXT are refused")),
    known("Description", "J", Ignored("it is for display in management consoles", &[])),
    known("Username", "T", Read("of an initiator's Logon (553); of an acceptor, who may log on")),
    known("Password", "T", Read("of an initiator's Logon (554); of an acceptor, with which password")),
    known("NewPassword", "T", Read("of an initiator's Logon (925)")),
    known("PasswordFile", "T", Read("lines of `name:password`: who may log on")),
    known("TestMessageIndicator", "T", Read("464 of our Logon; a peer whose Logon says otherwise is refused")),
    known("LogonTag", "J", Read("a field of our Logon, `tag=value`; further ones as LogonTag1, LogonTag2, …")),
    known("AcceptorTemplate", "J", Read("no session, but what sessions of unknown counterparties are made from")),
    known("DynamicSessionsMax", "T", Read("how many of them at a time (64)")),
    known("DynamicSession", "J", Ignored("sessions cannot be begun from code: every session of the file connects", &["N"])),
    // Hours.
    known("StartTime", "CJN", Read("HH:MM:SS, with a time zone behind it if wanted")),
    known("EndTime", "CJN", Read("HH:MM:SS, with a time zone behind it if wanted")),
    known("StartDay", "CJN", Read("a day of the week by its name or at least its first two letters")),
    known("EndDay", "CJN", Read("as StartDay")),
    known("Weekdays", "JN", Read("days on which a session begins")),
    known("LogonTime", "C", Read("from when on one may be logged on")),
    known("LogoutTime", "C", Read("until when one may be logged on")),
    known("LogonDay", "C", Read("of a session from StartDay to EndDay")),
    known("LogoutDay", "C", Read("of a session from StartDay to EndDay")),
    known("TimeZone", "JN", Read("an IANA zone: America/New_York; UTC without")),
    known("UseLocalTime", "CN", Read("the machine's time zone")),
    known("NonStopSession", "CJN", Read("always open; the hours are passed over")),
    // The session.
    known("HeartBtInt", "CJN", Read("an initiator's, 0 to 3600 s; an acceptor takes what it is asked for")),
    known("LogonTimeout", "CJN", Read("seconds (10)")),
    known("LogoutTimeout", "CJN", Read("seconds (2)")),
    known("ResetOnLogon", "CJN", Read("an initiator asks for it (141=Y), an acceptor does it")),
    known("ResetOnLogout", "CJN", Read("both numbers become 1 after a logout")),
    known("ResetOnDisconnect", "CJN", Read("both numbers become 1 when the connection is lost")),
    known("ResetOnError", "J", Ignored("no error of an application reaches the session", &["N"])),
    known("DisconnectOnError", "J", Ignored("no error of an application reaches the session", &["N"])),
    known("RefreshOnLogon", "CJN", Ignored("nobody else writes a session's store while it runs", &["N"])),
    known("SendResetSeqNumFlag", "C", Ignored("ResetOnLogon says it", &["N"])),
    known("SendNextExpectedMsgSeqNum", "C", Alias("EnableNextExpectedMsgSeqNum")),
    known("EnableNextExpectedMsgSeqNum", "J", Read("789 in Logons; what the peer misses is sent unasked")),
    known("EnableLastMsgSeqNumProcessed", "JN", Read("369 in every message")),
    known("ResendRequestChunkSize", "J", Read("messages asked for at a time (0: all)")),
    known("MaxMessagesInResendRequest", "N", Alias("ResendRequestChunkSize")),
    known("ClosedResendInterval", "J", Read("a ResendRequest names the last message of the gap instead of \"all\"")),
    known("SendRedundantResendRequests", "CJN", Ignored("a gap is asked for once, and again when no answer comes", &["N"])),
    known("ResendSessionLevelRejects", "N", Ignored("Rejects are gap-filled", &["N"])),
    known("IgnorePossDupResendRequests", "N", Ignored("a repeated request is answered, too many of them end the session", &["N"])),
    known("CmeEnhancedResend", "N", Ignored("MaxMessagesInResendRequest does what CME's gateways ask for", &["N"])),
    known("TimestampPrecision", "CJN", Read("0, 3, 6 or 9 digits (others are rounded up), or SECONDS, MILLIS, MICROS, NANOS")),
    known("MillisecondsInTimeStamp", "CN", Read("`N`: whole seconds, where TimestampPrecision says nothing")),
    known("TestRequestDelayMultiplier", "J", Read("a TestRequest after 1 + this heartbeat intervals of silence (0.2; /J: 0.5)")),
    known("HeartBeatTimeoutMultiplier", "J", Read("the end after 1 + this heartbeat intervals of silence (1.4)")),
    known("DisableHeartBeatCheck", "J", Read("silence of the peer never ends the session")),
    known("SendLogoutBeforeDisconnectFromTimeout", "N", Ignored("who is silent is not told that it is: the connection is closed", &["N"])),
    known("AllowPosDup", "J", Ignored("what an application sends goes out as it is", &["N"])),
    known("ForceResendWhenCorruptedStore", "J", Ignored("a message that cannot be read from the store is gap-filled, always", &[])),
    known("MaxMessageSize", "T", Read("the longest message that is read, bytes (16384)")),
    known("CancelOnDisconnect", "T", Read("`Y`: when a connection is lost, `ALL`: after a logout too, the application is told to cancel")),
    known("CancelOnDisconnectAfter", "T", Read("seconds to wait for the peer first (0)")),
    known("ThrottleOutPerSecond", "T", Read("bound on the messages sent")),
    known("ThrottleOutBurst", "T", Read("how many at once")),
    known("ThrottleOutExcess", "T", Read("`delay`, `reject` or `disconnect`")),
    known("ThrottleInPerSecond", "T", Read("bound on the messages received")),
    known("ThrottleInBurst", "T", Read("how many at once")),
    known("ThrottleInExcess", "T", Read("`delay`, `reject` or `disconnect`")),
    known("DropCopyFile", "T", Read("application messages are copied to this file")),
    known("DropCopySession", "T", Read("application messages are sent on in this session")),
    known("ContinueInitializationOnError", "J", Ignored("all mistakes of a file are told at once, and nothing begins with one", &["N"])),
    known("RejectMessageOnUnhandledException", "J", Ignored("there are no exceptions", &["N"])),
    known("LogMessageWhenSessionNotFound", "J", Ignored("who knocks in vain is told of in one line, with its identities", &[])),
    // Validation.
    known("UseDataDictionary", "CJN", Read("`N`: only form and session fields are checked")),
    known("DataDictionary", "CJN", Read("a file; without one, or when the file of a standard version is not there, the built-in dictionary")),
    known("TransportDataDictionary", "CJN", Read("FIXT: of the session; built in as DataDictionary")),
    known("AppDataDictionary", "CJN", Read("FIXT: of the application; built in as DataDictionary. With `.FIX.5.0SP2` behind it for that version")),
    known("ApplicationDictionary", "N", Alias("AppDataDictionary")),
    known("ValidateIncomingMessage", "J", Read("`N` is as UseDataDictionary=N")),
    known("RejectInvalidMessage", "J", Read("`N` is as UseDataDictionary=N: such messages are handed over unchecked")),
    known("ValidateFieldsOutOfOrder", "CJN", Read("header, body and trailer in their places")),
    known("ValidateFieldsHaveValues", "CJN", Read("no empty values")),
    known("ValidateUserDefinedFields", "CJN", Read("tags from 5000 on must be in the dictionary")),
    known("ValidateUnorderedGroupFields", "J", Read("fields of a group in the dictionary's order")),
    known("FirstFieldInGroupIsDelimiter", "J", Ignored("an entry begins with the dictionary's first field", &["N"])),
    known("AllowUnknownMsgFields", "CJN", Read("fields that are not of the message are let through")),
    known("AllowUnknownEnumValues", "JN", Read("values that are not listed are let through")),
    known("PreserveMessageFieldsOrder", "C", Ignored("fields leave in the order they were written", &[])),
    known("ValidateLengthAndChecksum", "CN", Ignored("a message whose length or checksum is wrong is no message: it is skipped and told of", &["Y"])),
    known("ValidateChecksum", "J", Ignored("a message whose checksum is wrong is no message: it is skipped and told of", &["Y"])),
    known("ValidateSequenceNumbers", "J", Ignored("sequence numbers are what a session is: they are always checked", &["Y"])),
    known("RejectGarbledMessage", "J", Ignored("a garbled message is skipped, as the standard says, and told of", &["N"])),
    known("CheckCompID", "CJ", Read("`N`: other CompIDs of a peer that is logged on are let through")),
    known("CheckLatency", "CJN", Read("`N`: SendingTime may be anything")),
    known("MaxLatency", "CJN", Read("seconds (120)")),
    known("RequiresOrigSendingTime", "JN", Read("`N`: a possible duplicate needs no OrigSendingTime")),
    // Where it listens.
    known("SocketAcceptPort", "CJN", Read("0 to 65535")),
    known("SocketAcceptAddress", "J", Read("an address or host name; **loopback unless told otherwise**, where the three listen on every interface: 0.0.0.0 for that")),
    known("SocketAcceptHost", "N", Alias("SocketAcceptAddress")),
    known("SocketAcceptProtocol", "J", Read("`TCP`; `VM_PIPE`, a pipe within one Java machine, is refused")),
    known("AllowedRemoteAddresses", "CJ", Read("addresses with commas between: who else connects is closed at once, and told of")),
    // Where it connects to.
    known("SocketConnectHost", "CJN", Read("further ones as SocketConnectHost1, SocketConnectHost2, …")),
    known("SocketConnectPort", "CJN", Read("one for each host")),
    known("SocketConnectProtocol", "J", Read("`TCP`; `VM_PIPE` is refused")),
    known("SocketConnectTimeout", "J", Read("seconds (5)")),
    known("ReconnectInterval", "CJN", Read("seconds (30) to wait when every host was tried in vain, doubled each round")),
    known("ReconnectIntervalMax", "T", Read("seconds (8 times that)")),
    known("HostOrder", "T", Read("`priority` or `round-robin`")),
    known("HostSelectionPolicy", "C", Alias("HostOrder")),
    known("HostSelectionPolicyPriorityStartOverInterval", "C", Ignored("after a session that lasted the first host is tried again at once", &[])),
    known("SocketLocalHost", "J", Ignored("the system's routes choose the local address", &[])),
    known("SocketLocalPort", "J", Ignored("the system chooses the local port", &["0"])),
    known("SocketConnectSourceHost", "C", Ignored("the system's routes choose the local address", &[])),
    known("SocketConnectSourcePort", "C", Ignored("the system chooses the local port", &["0"])),
    known("SocketIgnoreProxy", "N", Ignored("no proxy is used", &["Y"])),
    known("ProxyType", "J", Refused(PROXY)),
    known("ProxyVersion", "J", Refused(PROXY)),
    known("ProxyHost", "J", Refused(PROXY)),
    known("ProxyPort", "J", Refused(PROXY)),
    known("ProxyUser", "J", Refused(PROXY)),
    known("ProxyPassword", "J", Refused(PROXY)),
    known("ProxyDomain", "J", Refused(PROXY)),
    known("ProxyWorkstation", "J", Refused(PROXY)),
    // Sockets and threads.
    known("SocketNodelay", "CN", Ignored("Nagle's algorithm is never on", &["Y"])),
    known("SocketTcpNoDelay", "J", Ignored("Nagle's algorithm is never on", &["Y"])),
    known("SocketReuseAddress", "CJ", Ignored("a port can always be bound again", &["Y"])),
    known("SocketSendBufferSize", "CJN", Ignored(BUFFERS, &["0"])),
    known("SocketReceiveBufferSize", "CJN", Ignored(BUFFERS, &["0"])),
    known("SocketSendTimeout", "N", Ignored("nothing waits for a socket", &["0"])),
    known("SocketReceiveTimeout", "N", Ignored("nothing waits for a socket", &["0"])),
    known("SocketKeepAlive", "J", Ignored("heartbeats find out who is gone", &["N"])),
    known("SocketOobInline", "J", Ignored("FIX has no urgent data", &["N"])),
    known("SocketLinger", "J", Ignored("the last bytes have a second to leave", &[])),
    known("SocketTrafficClass", "J", Ignored("packets are marked by the system's rules", &["0"])),
    known("SocketSynchronousWrites", "J", Ignored("nothing waits for a socket", &["N"])),
    known("SocketSynchronousWriteTimeout", "J", Ignored("nothing waits for a socket", &[])),
    known("MaxScheduledWriteRequests", "J", Ignored("a peer that does not read is closed when a megabyte waits for it", &["0"])),
    known("Encoding", "N", Ignored("bytes are passed on as they are", &[])),
    known("Thread", "T", Read("sessions of the same number share a thread (0)")),
    known("ThreadCore", "T", Read("the core it is pinned to")),
    known("WaitStrategy", "T", Read("`block` or `spin`")),
    // TLS.
    known("SSLEnable", "N", Read("TLS 1.2 and 1.3")),
    known("SocketUseSSL", "J", Alias("SSLEnable")),
    known("ServerCertificateFile", "C", Read("an acceptor's certificate, PEM; its key may be in the same file")),
    known("ServerCertificateKeyFile", "C", Read("its key, PEM")),
    known("ClientCertificateFile", "C", Read("an initiator's certificate, PEM; its key may be in the same file")),
    known("ClientCertificateKeyFile", "C", Read("its key, PEM")),
    known("SSLCertificate", "N", Read("certificate and key of either side in one PEM file; PKCS #12 and the certificate store of Windows are refused with the command that converts them")),
    known("SSLCertificatePassword", "N", Ignored("keys are read without a password: PEM, readable by nobody else", &[])),
    known("SocketKeyStore", "J", Read("as SSLCertificate; a Java key store is refused with the command that converts it")),
    known("SocketKeyStorePassword", "J", Ignored("keys are read without a password: PEM, readable by nobody else", &[])),
    known("KeyStoreType", "J", Ignored("PEM is read", &[])),
    known("KeyManagerFactoryAlgorithm", "J", Ignored("it names a class of Java", &[])),
    known("CertificationAuthoritiesFile", "C", Read("whom to trust, PEM or DER; an initiator without it trusts the system's roots")),
    known("CertificationAuthoritiesDirectory", "C", Read("all PEM and DER files of this folder")),
    known("SSLCACertificate", "N", Alias("CertificationAuthoritiesFile")),
    known("SocketTrustStore", "J", Read("as CertificationAuthoritiesFile; a Java key store is refused with the command that converts it")),
    known("SocketTrustStorePassword", "J", Ignored("certificates are no secret", &[])),
    known("TrustStoreType", "J", Ignored("PEM is read", &[])),
    known("TrustManagerFactoryAlgorithm", "J", Ignored("it names a class of Java", &[])),
    known("CertificateVerifyLevel", "C", Read("of an acceptor: 0 asks for no certificates, 1 if they show one, 2 they must")),
    known("NeedClientAuth", "J", Read("`Y` is as CertificateVerifyLevel=2")),
    known("SSLRequireClientCertificate", "N", Read("`Y` is as CertificateVerifyLevel=2; `Y` without it where SSLCertificate and SSLCACertificate are given, as in /n")),
    known("SSLValidateCertificates", "N", Read("`N`: the other side's certificate is not verified, with a warning at every start")),
    known("CertificateRevocationListFile", "C", Read("PEM: certificates in it are refused")),
    known("CertificateRevocationListDirectory", "C", Read("all files of this folder")),
    known("SSLCheckCertificateRevocation", "N", Ignored("nothing is asked over the network: give CertificateRevocationListFile", &["N"])),
    known("SSLServerName", "N", Read("the name that the server's certificate is for, and that is sent (SNI), if not the host's")),
    known("SNIHostName", "J", Alias("SSLServerName")),
    known("UseSNI", "J", Read("`N`: the name is not sent; it is without this setting")),
    known("EndpointIdentificationAlgorithm", "J", Ignored("the server's certificate must be for its name, always", &["HTTPS", "LDAPS"])),
    known("SSLProtocol", "C", Read("TLSv1.2 and TLSv1.3 can be chosen; older ones are never spoken")),
    known("SSLProtocols", "N", Alias("SSLProtocol")),
    known("EnabledProtocols", "J", Alias("SSLProtocol")),
    known("SSLCipherSuite", "C", Ignored("only suites that are safe today are there", &[])),
    known("TLSCipherSuites", "C", Ignored("only suites that are safe today are there", &[])),
    known("CipherSuites", "J", Ignored("only suites that are safe today are there", &[])),
    // Stores.
    known("PersistMessages", "CJN", Read("`N`: messages are not kept, and gap-filled when asked for again; numbers are, where there is a FileStorePath")),
    known("FileStorePath", "CJN", Read("a folder; without it messages and numbers are in memory only")),
    known("FileStoreReserve", "T", Read("`Y`: all of the store's room is set aside at the start")),
    known("FileStoreMegabytes", "T", Read("room for messages to send again, each session (64)")),
    known("FileStoreSyncMilliseconds", "T", Read("how often the store is brought to the disk")),
    known("FileStoreSync", "J", Read("`Y`: nothing is sent before it is on the disk")),
    known("FileStoreMaxCachedMsgs", "J", Ignored("the store is in memory as a whole", &[])),
    known("MySQLStoreDatabase", "C", Ignored(DATABASE_STORE, &[])),
    known("MySQLStoreUser", "C", Ignored(DATABASE_STORE, &[])),
    known("MySQLStorePassword", "C", Ignored(DATABASE_STORE, &[])),
    known("MySQLStoreHost", "C", Ignored(DATABASE_STORE, &[])),
    known("MySQLStorePort", "C", Ignored(DATABASE_STORE, &[])),
    known("MySQLStoreUseConnectionPool", "C", Ignored(DATABASE_STORE, &[])),
    known("PostgreSQLStoreDatabase", "C", Ignored(DATABASE_STORE, &[])),
    known("PostgreSQLStoreUser", "C", Ignored(DATABASE_STORE, &[])),
    known("PostgreSQLStorePassword", "C", Ignored(DATABASE_STORE, &[])),
    known("PostgreSQLStoreHost", "C", Ignored(DATABASE_STORE, &[])),
    known("PostgreSQLStorePort", "C", Ignored(DATABASE_STORE, &[])),
    known("PostgreSQLStoreUseConnectionPool", "C", Ignored(DATABASE_STORE, &[])),
    known("OdbcStoreUser", "C", Ignored(DATABASE_STORE, &[])),
    known("OdbcStorePassword", "C", Ignored(DATABASE_STORE, &[])),
    known("OdbcStoreConnectionString", "C", Ignored(DATABASE_STORE, &[])),
    known("JdbcDataSourceName", "J", Ignored(DATABASE_STORE, &[])),
    known("JndiContextFactory", "J", Ignored(DATABASE_STORE, &[])),
    known("JndiProviderURL", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcDriver", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcURL", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcUser", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcPassword", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcStoreMessagesTableName", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcStoreSessionsTableName", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcSessionIdDefaultPropertyValue", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcMaxActiveConnection", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcMinIdleConnection", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcMaxConnectionLifeTime", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcConnectionTimeout", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcConnectionIdleTimeout", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcConnectionKeepaliveTime", "J", Ignored(DATABASE_STORE, &[])),
    known("JdbcConnectionTestQuery", "J", Ignored(DATABASE_STORE, &[])),
    known("SleepycatDatabaseDir", "J", Ignored(DATABASE_STORE, &[])),
    known("SleepycatSequenceDbName", "J", Ignored(DATABASE_STORE, &[])),
    known("SleepycatMessageDbName", "J", Ignored(DATABASE_STORE, &[])),
    // Logs.
    known("FileLogPath", "CJN", Read("a folder: messages and events, in files named as QuickFIX names them")),
    known("DebugFileLogPath", "N", Ignored("FileLogPath has the events, too", &[])),
    known("FileLogBackupPath", "C", Ignored("logs are appended to, never moved", &[])),
    known("FileLogHeartbeats", "J", Ignored("heartbeats are logged like everything", &["Y"])),
    known("FileIncludeMilliseconds", "J", Ignored("lines have their time to the nanosecond", &["Y"])),
    known("FileIncludeTimeStampForMessages", "J", Ignored("lines have their time to the nanosecond", &["Y"])),
    known("RedactFieldsInLogs", "N", Ignored("Password, NewPassword and RawData are written as stars, no other field", &["554", "925", "96", "554,925"])),
    known("RedactionLogText", "N", Ignored("stars are written", &[])),
    known("ScreenLogShowIncoming", "CJN", Ignored(SCREEN, &["N"])),
    known("ScreenLogShowOutgoing", "CJN", Ignored(SCREEN, &["N"])),
    known("ScreenLogShowEvents", "CJN", Ignored(SCREEN, &["N"])),
    known("ScreenLogShowHeartBeats", "J", Ignored(SCREEN, &["N"])),
    known("ScreenIncludeMilliseconds", "J", Ignored(SCREEN, &["N"])),
    known("SLF4JLogEventCategory", "J", Ignored(LOG_FRAMEWORK, &[])),
    known("SLF4JLogErrorEventCategory", "J", Ignored(LOG_FRAMEWORK, &[])),
    known("SLF4JLogIncomingMessageCategory", "J", Ignored(LOG_FRAMEWORK, &[])),
    known("SLF4JLogOutgoingMessageCategory", "J", Ignored(LOG_FRAMEWORK, &[])),
    known("SLF4JLogPrependSessionID", "J", Ignored(LOG_FRAMEWORK, &[])),
    known("SLF4JLogHeartbeats", "J", Ignored(LOG_FRAMEWORK, &[])),
    known("MySQLLogDatabase", "C", Ignored(DATABASE_LOG, &[])),
    known("MySQLLogUser", "C", Ignored(DATABASE_LOG, &[])),
    known("MySQLLogPassword", "C", Ignored(DATABASE_LOG, &[])),
    known("MySQLLogHost", "C", Ignored(DATABASE_LOG, &[])),
    known("MySQLLogPort", "C", Ignored(DATABASE_LOG, &[])),
    known("MySQLLogUseConnectionPool", "C", Ignored(DATABASE_LOG, &[])),
    known("MySQLLogIncomingTable", "C", Ignored(DATABASE_LOG, &[])),
    known("MySQLLogOutgoingTable", "C", Ignored(DATABASE_LOG, &[])),
    known("MySQLLogEventTable", "C", Ignored(DATABASE_LOG, &[])),
    known("PostgreSQLLogDatabase", "C", Ignored(DATABASE_LOG, &[])),
    known("PostgreSQLLogUser", "C", Ignored(DATABASE_LOG, &[])),
    known("PostgreSQLLogPassword", "C", Ignored(DATABASE_LOG, &[])),
    known("PostgreSQLLogHost", "C", Ignored(DATABASE_LOG, &[])),
    known("PostgreSQLLogPort", "C", Ignored(DATABASE_LOG, &[])),
    known("PostgreSQLLogUseConnectionPool", "C", Ignored(DATABASE_LOG, &[])),
    known("PostgreSQLLogIncomingTable", "C", Ignored(DATABASE_LOG, &[])),
    known("PostgreSQLLogOutgoingTable", "C", Ignored(DATABASE_LOG, &[])),
    known("PostgreSQLLogEventTable", "C", Ignored(DATABASE_LOG, &[])),
    known("PostgresSQLLogIncomingTable", "C", Ignored(DATABASE_LOG, &[])),
    known("PostgresSQLLogOutgoingTable", "C", Ignored(DATABASE_LOG, &[])),
    known("PostgresSQLLogEventTable", "C", Ignored(DATABASE_LOG, &[])),
    known("OdbcLogUser", "C", Ignored(DATABASE_LOG, &[])),
    known("OdbcLogPassword", "C", Ignored(DATABASE_LOG, &[])),
    known("OdbcLogConnectionString", "C", Ignored(DATABASE_LOG, &[])),
    known("OdbcLogIncomingTable", "C", Ignored(DATABASE_LOG, &[])),
    known("OdbcLogOutgoingTable", "C", Ignored(DATABASE_LOG, &[])),
    known("OdbcLogEventTable", "C", Ignored(DATABASE_LOG, &[])),
    known("JdbcLogHeartBeats", "J", Ignored(DATABASE_LOG, &[])),
    known("JdbcLogIncomingTable", "J", Ignored(DATABASE_LOG, &[])),
    known("JdbcLogOutgoingTable", "J", Ignored(DATABASE_LOG, &[])),
    known("JdbcLogEventTable", "J", Ignored(DATABASE_LOG, &[])),
    known("HttpAcceptPort", "C", Ignored("there is no control panel: `--folder`, `tickwire top` and `--metrics` show the sessions", &["0"])),
    // What the example applications read from the same files.
    known("ValidOrderTypes", "J", Ignored(EXAMPLE, &[])),
    known("DefaultMarketPrice", "J", Ignored(EXAMPLE, &[])),
    known("AlwaysFillLimitOrders", "J", Ignored(EXAMPLE, &[])),
    known("Verbose", "N", Ignored(EXAMPLE, &[])),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// The tables of the page, one an engine's settings and what they do.
    fn tables() -> String {
        let mut out = String::from("| setting | of | here | |\n|---|---|---|---|\n");
        for known in KNOWN {
            let (does, text) = known.does.said();
            let number = if NUMBERED.contains(&known.name) {
                ", with numbers"
            } else {
                ""
            };
            out += &format!(
                "| `{}`{number} | {} | {does} | {text} |\n",
                known.name,
                whose(known.engines)
            );
        }
        out
    }

    /// `UPDATE=1 cargo test -p tickwire-fixengine --lib quickfix` writes the page's table anew.
    #[test]
    fn the_page_has_every_setting_as_the_table_has_it() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coming-from-quickfix.md");
        let text = std::fs::read_to_string(&page).unwrap();
        let begin = "<!-- settings: written from crates/fixengine/src/quickfix.rs by its test -->\n";
        let (head, rest) = text.split_once(begin).unwrap();
        let (_, tail) = rest.split_once("<!-- end -->").unwrap();
        let wanted = format!("{head}{begin}{}<!-- end -->{tail}", tables());
        if std::env::var_os("UPDATE").is_some() {
            return std::fs::write(&page, wanted).unwrap();
        }
        assert!(
            text == wanted,
            "docs/coming-from-quickfix.md is not as the table: UPDATE=1 writes it"
        );
    }

    #[test]
    fn names_stand_once_in_any_case_and_aliases_lead_to_settings_that_are_obeyed() {
        let mut seen = BTreeSet::new();
        for known in KNOWN {
            assert!(
                seen.insert(known.name.to_ascii_lowercase()),
                "{} stands twice",
                known.name
            );
            assert!(!known.engines.is_empty());
            if let Alias(of) = known.does {
                let target = KNOWN.iter().find(|k| k.name == of).unwrap();
                assert!(matches!(target.does, Read(_)), "{} leads to {of}", known.name);
            }
        }
        let name = |written| find(written).map(|(_, name)| name);
        assert_eq!(name("heartbtint").as_deref(), Some("HeartBtInt"));
        assert_eq!(
            name("SOCKETCONNECTHOST12").as_deref(),
            Some("SocketConnectHost12")
        );
        assert_eq!(
            name("AppDataDictionary.FIX.5.0SP2").as_deref(),
            Some("AppDataDictionary.FIX.5.0SP2")
        );
        for unknown in [
            "HeartBtInt1",
            "SocketConnectHost0",
            "SocketConnectHost01",
            "Nonsense",
            "",
        ] {
            assert_eq!(name(unknown), None, "{unknown}");
        }
    }
}
