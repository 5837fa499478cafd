//! `cargo xtask interop`: our FIX programs against QuickFIX C++ and QuickFIX/J, on loopback (`peers/interop`).

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::run::{cargo, root, target_dir};

const HELP: &str = "\
Runs Tickwire's FIX programs against QuickFIX C++ and QuickFIX/J, each as initiator and as acceptor: logon, orders, messages lost
with their connection and sent again, sequence reset, logout, restart from the stores, TLS with certificates on both sides.

  cargo xtask interop [--control] [WORD]...
  cargo xtask interop --roundtrip [N]

  --control         QuickFIX C++ with QuickFIX/J instead: what fails there too is not our fault
  --roundtrip [N]   NewOrderSingle to ExecutionReport, N times (20000): bare TCP, QuickFIX C++, then Tickwire (tickwire fix bench)
  WORD              only sessions with this word in their name, for example TLS, FIX.4.4, \"Tickwire ->\"

Needs cmake, a C++ compiler, OpenSSL's headers, a JDK from 17 and Maven; with apt-get and as root, what is missing is installed.
The engines themselves come from crates.io and Maven Central; dictionaries from fix/dictionaries under $TICKWIRE_SHARED or ../shared.
Exit code 1: a session failed. 2: it could not begin.
";

/// A program that is needed, and the package of Debian it is in.
const NEEDED: [(&str, &str); 7] = [
    ("cmake", "cmake"),
    ("c++", "g++"),
    ("make", "make"),
    ("openssl", "openssl"),
    ("javac", "default-jdk-headless"),
    ("keytool", "default-jdk-headless"),
    ("mvn", "maven"),
];
/// What the C++ engine's TLS is compiled with, and its package.
const HEADER: (&str, &str) = ("/usr/include/openssl/ssl.h", "libssl-dev");

/// The whole command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    if let ["--help" | "-h", ..] = words {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match prepare(words.first() == Some(&"--roundtrip")).and_then(|mut command| succeeds(command.args(words)))
    {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask interop: {why}");
            ExitCode::from(2)
        }
    }
}

/// Builds all engines, ours optimised if it is to be measured; the command that runs them against each other.
fn prepare(is_measured: bool) -> Result<Command, String> {
    install()?;
    let dictionaries = env::var_os("TICKWIRE_SHARED")
        .map_or_else(|| root().join("../shared"), PathBuf::from)
        .join("fix/dictionaries");
    if !dictionaries.is_dir() {
        return Err(format!(
            "{} is not there: set TICKWIRE_SHARED to the folder that has fix/dictionaries",
            dictionaries.display()
        ));
    }
    let folder = root().join("peers/interop");
    built(
        "Tickwire",
        cargo().args(["build", "--locked", "--package", "tickwire"]),
    )?;
    let manifest = folder.join("Cargo.toml");
    built(
        "QuickFIX C++ (some minutes)",
        cargo()
            .args(["build", "--release", "--locked", "--manifest-path"])
            .arg(&manifest),
    )?;
    built(
        "QuickFIX/J",
        Command::new("mvn")
            .args(["-q", "-B", "package"])
            .current_dir(folder.join("quickfixj")),
    )?;
    let quickfixj = folder.join("target/quickfixj");
    let class_path = [quickfixj.join("classes"), quickfixj.join("dependency/*")];
    let class_path = env::join_paths(&class_path).map_err(|e| e.to_string())?;
    let mut command = Command::new(folder.join("target/release/interop"));
    command
        .arg(target_dir().join(if is_measured {
            "release/tickwire"
        } else {
            "debug/tickwire"
        }))
        .arg(folder.join("target/release/quickfix-peer"))
        .arg(class_path)
        .arg(dictionaries.canonicalize().unwrap_or(dictionaries))
        .arg(target_dir().join("xtask/interop"));
    Ok(command)
}

fn succeeds(command: &mut Command) -> Result<bool, String> {
    let status = command
        .status()
        .map_err(|e| format!("cannot run {}: {e}", command.get_program().display()))?;
    Ok(status.success())
}

fn built(what: &str, command: &mut Command) -> Result<(), String> {
    println!("building {what} ...");
    match succeeds(command)? {
        true => Ok(()),
        false => Err(format!("{what} was not built, see above")),
    }
}

/// Sees that everything needed is there, and installs what is not where that can be done.
fn install() -> Result<(), String> {
    let has = |program: &str| {
        env::var_os("PATH")
            .is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
    };
    let mut packages: Vec<&str> = NEEDED
        .iter()
        .filter(|(program, _)| !has(program))
        .map(|(_, package)| *package)
        .collect();
    if !Path::new(HEADER.0).exists() {
        packages.push(HEADER.1);
    }
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    println!("installing {} ...", packages.join(" "));
    let installed = has("apt-get")
        && succeeds(Command::new("apt-get").arg("update"))?
        && succeeds(
            Command::new("apt-get")
                .args(["install", "-y", "--no-install-recommends"])
                .args(&packages),
        )?;
    match installed {
        true => Ok(()),
        false => Err(format!(
            "these packages of Debian (or what they hold) are missing and could not be installed: {}",
            packages.join(" ")
        )),
    }
}
