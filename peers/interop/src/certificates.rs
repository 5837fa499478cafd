//! A certification authority and a certificate for each side, made anew for a run, as PEM and as PKCS #12
//! (which Java reads).

use std::path::Path;
use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::engine::Result;

fn text(e: impl std::fmt::Display) -> String {
    format!("certificates: {e}")
}

/// Password of the stores; what they hold is worth nothing.
const PASSWORD: &str = "pass:interop";

pub fn make(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(text)?;
    let mut params = CertificateParams::new(Vec::<String>::new()).map_err(text)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "Tickwire interoperability authority");
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca_key = KeyPair::generate().map_err(text)?;
    let ca = params.self_signed(&ca_key).map_err(text)?;
    let write = |name: &str, what: &str| std::fs::write(folder.join(name), what).map_err(text);
    write("ca.pem", &ca.pem())?;
    let issuer = Issuer::new(params, ca_key);
    for side in ["acceptor", "initiator"] {
        let mut params =
            CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()]).map_err(text)?;
        params.distinguished_name.push(DnType::CommonName, side);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().map_err(text)?;
        let certificate = params.signed_by(&key, &issuer).map_err(text)?;
        write(&format!("{side}.pem"), &certificate.pem())?;
        write(&format!("{side}.key"), &key.serialize_pem())?;
        run(
            folder,
            "openssl",
            &[
                "pkcs12",
                "-export",
                "-in",
                &format!("{side}.pem"),
                "-inkey",
                &format!("{side}.key"),
                "-certfile",
                "ca.pem",
                "-out",
                &format!("{side}.p12"),
                "-passout",
                PASSWORD,
            ],
        )?;
    }
    let _ = std::fs::remove_file(folder.join("ca.p12"));
    run(
        folder,
        "keytool",
        &[
            "-importcert",
            "-noprompt",
            "-alias",
            "ca",
            "-file",
            "ca.pem",
            "-keystore",
            "ca.p12",
            "-storetype",
            "PKCS12",
            "-storepass",
            "interop",
        ],
    )
}

fn run(folder: &Path, program: &str, args: &[&str]) -> Result<()> {
    let done = Command::new(program)
        .args(args)
        .current_dir(folder)
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&done.stderr))),
    }
}
