//! What a configuration says about TLS: the settings of all three QuickFIX engines, whose names differ and
//! whose meaning does not.

use std::path::{Path, PathBuf};

use tickwire_fix::Role;
use tickwire_runtime::tls::{ClientCertificates, Identity, Terms, TlsClient, TlsServer, Trust};

use crate::cfg::Section;

/// What a session's connection is protected by.
#[derive(Clone, Debug)]
pub enum Tls {
    /// Of a session that listens.
    Server(TlsServer),
    /// Of a session that connects.
    Client {
        /// Whom it trusts and what it shows.
        client: TlsClient,
        /// The name that the server's certificate is for, if it is not the host's.
        name: Option<String>,
    },
}

/// The TLS of a section, files looked for beside the configuration. Mistakes are told to the section.
pub(crate) fn read(section: &Section, role: Role, folder: &Path) -> Option<Tls> {
    let is_on = section.flag("SSLEnable", false);
    let own = own(section, role, folder, is_on);
    let trusted = trusted(section, folder, is_on);
    let terms = Terms {
        revoked: listed(section, folder, "CertificateRevocationList"),
        sends_name: section.flag("UseSNI", true),
        ..protocols(section, is_on)
    };
    let name = section.text("SSLServerName").map(|(name, _)| name.to_string());
    let validates = section.flag("SSLValidateCertificates", true);
    let clients = match role {
        Role::Acceptor => clients(section, &trusted, is_on && validates),
        Role::Initiator => ClientCertificates::None,
    };
    if !is_on {
        return None;
    }
    let line = section.text("SSLEnable").map_or(section.line, |(_, line)| line);
    if !validates {
        let who = match role {
            Role::Acceptor => {
                "clients' certificates are not asked for: who connects is known by nothing but what its Logon says"
            }
            Role::Initiator => {
                "the server's certificate is not verified: anybody in between can read and change what is sent, passwords too"
            }
        };
        section.warn(line, format!("SSLValidateCertificates=N: {who}"));
    }
    match role {
        Role::Acceptor => {
            let Some(own) = own else {
                section.wrong(
                    section.line,
                    "TLS is on, but there is no ServerCertificateFile: a server shows one to its clients",
                );
                return None;
            };
            match TlsServer::with(&own, &clients, &terms) {
                Ok(server) => return Some(Tls::Server(server)),
                Err(e) => section.wrong(section.line, e.to_string()),
            }
        }
        Role::Initiator => {
            let trust = match (validates, trusted.is_empty()) {
                (false, _) => Trust::Anybody,
                (true, true) => {
                    section.note(
                        line,
                        "no CertificationAuthoritiesFile: servers are verified against the system's trusted authorities",
                    );
                    Trust::System
                }
                (true, false) => Trust::Files(trusted),
            };
            match TlsClient::with(&trust, own.as_ref(), &terms) {
                Ok(client) => return Some(Tls::Client { client, name }),
                Err(e) => section.wrong(section.line, e.to_string()),
            }
        }
    }
    None
}

/// Our certificate and its key: those of this role, or the one file of QuickFIX/n or /J for either.
fn own(section: &Section, role: Role, folder: &Path, is_on: bool) -> Option<Identity> {
    let mut found = None;
    for (side, of) in [("Server", Role::Acceptor), ("Client", Role::Initiator)] {
        let (certificate, key) = (
            format!("{side}CertificateFile"),
            format!("{side}CertificateKeyFile"),
        );
        let pair = (section.text(&certificate), section.text(&key));
        if of != role || !is_on {
            // The other side's may stand in a shared [DEFAULT].
            continue;
        }
        match pair {
            (Some((path, _)), key) => {
                found = Some(Identity {
                    certificate: folder.join(path),
                    // PEM files may hold both.
                    key: folder.join(key.map_or(path, |(key, _)| key)),
                });
            }
            (None, Some((_, line))) => {
                section.wrong(
                    line,
                    format!("{key} without {certificate}: a key is of no use without its certificate"),
                );
            }
            (None, None) => {}
        }
    }
    for key in ["SSLCertificate", "SocketKeyStore"] {
        let Some((value, line)) = section.text(key).filter(|_| is_on) else {
            continue;
        };
        let path = folder.join(value);
        match not_pem(value, &path) {
            Some(why) => section.wrong(line, format!("{key}={value}: {why}")),
            None => {
                found.get_or_insert(Identity {
                    certificate: path.clone(),
                    key: path,
                });
            }
        }
    }
    found
}

/// Whom we believe.
fn trusted(section: &Section, folder: &Path, is_on: bool) -> Vec<PathBuf> {
    let mut paths = listed(section, folder, "CertificationAuthorities");
    if let Some((value, line)) = section.text("SocketTrustStore").filter(|_| is_on) {
        let path = folder.join(value);
        match not_pem(value, &path) {
            Some(why) => section.wrong(line, format!("SocketTrustStore={value}: {why}")),
            None => paths.push(path),
        }
    }
    paths
}

/// The file and all files of the folder that two settings name.
fn listed(section: &Section, folder: &Path, what: &str) -> Vec<PathBuf> {
    let file = section.text(&format!("{what}File"));
    let mut paths: Vec<PathBuf> = file.iter().map(|(path, _)| folder.join(path)).collect();
    let key = format!("{what}Directory");
    if let Some((name, line)) = section.text(&key) {
        let directory = folder.join(name);
        match std::fs::read_dir(&directory) {
            Ok(entries) => {
                let entries = entries.filter_map(Result::ok).map(|entry| entry.path());
                let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
                files.sort();
                paths.append(&mut files);
            }
            Err(e) => section.wrong(line, format!("{key}: cannot list {}: {e}", directory.display())),
        }
    }
    paths
}

/// Why a value names no PEM file, with what makes one of it.
fn not_pem(value: &str, path: &Path) -> Option<String> {
    let ends = |end: &str| value.to_ascii_lowercase().ends_with(end);
    if value.to_ascii_uppercase().starts_with("CN=") || (value.contains('=') && !path.exists()) {
        return Some("the certificate store of Windows is not read; export the certificate with its key, and give the PEM file".into());
    }
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) => return Some(format!("cannot read {}: {e}", path.display())),
    };
    // A Java key store begins with this number; PKCS #12 is DER, as newer Java key stores are.
    if bytes.starts_with(&[0xFE, 0xED, 0xFE, 0xED]) {
        return Some(format!(
            "a Java key store is not read; keytool -importkeystore -srckeystore {value} -destkeystore store.p12 -deststoretype PKCS12, \
             then openssl pkcs12 -in store.p12 -nodes -out store.pem"
        ));
    }
    let is_pkcs12 = ends(".pfx") || ends(".p12") || ends(".jks");
    (is_pkcs12 && bytes.first() == Some(&0x30)).then(|| {
        format!(
            "PKCS #12 is not read; openssl pkcs12 -in {value} -nodes -out store.pem makes a PEM file of it"
        )
    })
}

/// Whether clients need certificates.
fn clients(section: &Section, trusted: &[PathBuf], validates: bool) -> ClientCertificates {
    let level = |text: &str| text.parse::<u8>().ok().filter(|n| *n <= 2);
    let allowed = "0 (no certificates of clients), 1 (if they show one) or 2 (they must)";
    let level = section.parsed("CertificateVerifyLevel", allowed, level);
    // QuickFIX/n asks for certificates unless it is told not to.
    let is_quickfix_n = section.text("SSLCertificate").is_some() && !trusted.is_empty();
    let must = section.flag("NeedClientAuth", false)
        | section.flag("SSLRequireClientCertificate", is_quickfix_n && level.is_none());
    let level = if must { 2 } else { level.unwrap_or(0) };
    match level {
        _ if !validates => ClientCertificates::None,
        0 => ClientCertificates::None,
        _ if trusted.is_empty() => {
            section.wrong(
                section.line,
                "TLS is on, but there is no CertificationAuthoritiesFile: clients' certificates are to be verified against it",
            );
            ClientCertificates::None
        }
        1 => ClientCertificates::Optional(trusted.to_vec()),
        _ => ClientCertificates::Required(trusted.to_vec()),
    }
}

/// Which versions are spoken. The three have lists of names; `-` before one takes it out, as in OpenSSL's.
fn protocols(section: &Section, is_on: bool) -> Terms {
    let Some((value, line)) = section.text("SSLProtocol") else {
        return Terms::default();
    };
    let names = || {
        value
            .split([',', ' ', ';', '|', '+'])
            .filter(|name| !name.is_empty())
    };
    let named = |wanted: &[&str]| names().any(|name| wanted.iter().any(|w| w.eq_ignore_ascii_case(name)));
    let without = |wanted: &[&str]| {
        names().any(|name| {
            name.strip_prefix('-')
                .is_some_and(|name| wanted.iter().any(|w| w.eq_ignore_ascii_case(name)))
        })
    };
    let all = ["all", "default", "none", "tls", "system_default"];
    let (v12, v13) = (["TLSv1.2", "TLSv1_2", "Tls12"], ["TLSv1.3", "TLSv1_3", "Tls13"]);
    let is_all = named(&all) || names().all(|name| name.starts_with('-'));
    let terms = Terms {
        has_1_2: (is_all || named(&v12)) && !without(&v12),
        has_1_3: (is_all || named(&v13)) && !without(&v13),
        ..Terms::default()
    };
    if terms.has_1_2 || terms.has_1_3 || !is_on {
        return terms;
    }
    section.warn(
        line,
        format!("{value}: only TLS 1.2 and 1.3 are spoken here, and are; none of the versions named is safe"),
    );
    Terms::default()
}
