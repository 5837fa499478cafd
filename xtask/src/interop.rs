//! `cargo xtask interop`: our FIX programs against QuickFIX C++ and QuickFIX/J, on loopback
//! (`peers/interop`).

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::run::{cargo, root, target_dir};

const HELP: &str = "\
Runs Tickwire's FIX programs against QuickFIX C++ and QuickFIX/J, each as initiator and as acceptor: logon, orders, messages lost
with their connection and sent again, sequence reset, logout, restart from the stores, TLS with certificates on both sides.

  cargo xtask interop [--control] [WORD]...
  cargo xtask interop --roundtrip [N]
  cargo xtask interop --quotes [N]

  --control         QuickFIX C++ with QuickFIX/J instead: what fails there too is not our fault
  --roundtrip [N]   NewOrderSingle to ExecutionReport, N times (20000): bare TCP, QuickFIX C++, then Tickwire (tickwire fix bench),
                    built with the profile dist, which takes a quarter of an hour
  --quotes [N]      N mass quotes and quote cancels (2000) of FIX 4.4 and of 5.0 SP2, read and checked against its dictionaries by
                    QuickFIX C++; every number is compared
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

const PEERS_HELP: &str = "\
Builds the traders of other FIX engines that `tickwire lab run fix` measures beside ours, into target/peers.

  cargo xtask lab-peers [quickfix-cpp|quickfix-j]...     both without

Needs what `cargo xtask interop` needs; with apt-get and as root, what is missing is installed.
Exit code 2: a trader was not built.
";

/// The traders of the lab.
pub(crate) fn lab_peers(words: &[&str]) -> ExitCode {
    let known = |word: &&str| matches!(*word, "quickfix-cpp" | "quickfix-j");
    if let Some(other) = words.iter().find(|word| !known(word)) {
        print!("{PEERS_HELP}");
        return match *other {
            "--help" | "-h" => ExitCode::SUCCESS,
            _ => ExitCode::from(2),
        };
    }
    let wants = |name| words.is_empty() || words.contains(&name);
    let built = install().and_then(|()| {
        let peers = target_dir().join("peers");
        std::fs::create_dir_all(&peers).map_err(|e| format!("{}: {e}", peers.display()))?;
        if wants("quickfix-cpp") {
            quickfix_trader(&peers)?;
        }
        if wants("quickfix-j") {
            quickfixj_trader(&peers)?;
        }
        Ok(())
    });
    match built {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask lab-peers: {why}");
            ExitCode::from(2)
        }
    }
}

/// QuickFIX C++ as its package builds it, and the trader linked with it.
fn quickfix_trader(peers: &Path) -> Result<(), String> {
    let folder = root().join("peers/interop");
    let own = built_quickfix(&folder)?;
    let program = peers.join("quickfix-trader");
    let source = folder.join("trader/quickfix_trader.cpp");
    with_quickfix("the trader with QuickFIX C++", &own, &source, &program)?;
    println!("{}", program.display());
    Ok(())
}

/// Compiles a program with QuickFIX C++ linked in, which is in `own`.
fn with_quickfix(what: &str, own: &Path, source: &Path, program: &Path) -> Result<(), String> {
    built(
        what,
        Command::new("c++")
            .args(["-O3", "-std=c++17", "-I"])
            .arg(own.join("include"))
            .arg(source)
            .arg("-o")
            .arg(program)
            .arg(own.join("lib/libquickfix.a"))
            .args(["-lssl", "-lcrypto", "-lpthread"]),
    )
}

/// Builds QuickFIX C++; where its headers and library are.
fn built_quickfix(folder: &Path) -> Result<PathBuf, String> {
    built(
        "QuickFIX C++ (some minutes)",
        cargo()
            .args([
                "build",
                "--release",
                "--locked",
                "--package",
                "quickfix-ffi",
                "--manifest-path",
            ])
            .arg(folder.join("Cargo.toml")),
    )?;
    // The package does not say where: the newest is the one that was just built or found to be fresh.
    let builds = folder.join("target/release/build");
    let entries = std::fs::read_dir(&builds).map_err(|e| format!("{}: {e}", builds.display()))?;
    let outs = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let is_it = path.file_name()?.to_str()?.starts_with("quickfix-ffi-");
        let library = path.join("out/lib/libquickfix.a");
        let built = library.metadata().ok()?.modified().ok()?;
        is_it.then(|| (built, path.join("out")))
    });
    let newest = outs.max_by_key(|(built, _)| *built).map(|(_, out)| out);
    newest.ok_or_else(|| format!("{} has no library of QuickFIX", builds.display()))
}

/// QuickFIX/J and its trader, which a script starts.
fn quickfixj_trader(peers: &Path) -> Result<(), String> {
    let folder = root().join("peers/interop");
    built(
        "QuickFIX/J",
        Command::new("mvn")
            .args(["-q", "-B", "package"])
            .current_dir(folder.join("quickfixj")),
    )?;
    let target = folder.join("target/quickfixj");
    let program = peers.join("quickfixj-trader");
    let script = format!(
        "#!/bin/sh\nexec java -XX:+UseSerialGC -Xms512m -Xmx512m -cp '{}:{}/*' tickwire.interop.Trader \"$@\"\n",
        target.join("classes").display(),
        target.join("dependency").display()
    );
    std::fs::write(&program, script).map_err(|e| format!("cannot write {}: {e}", program.display()))?;
    set_executable(&program)?;
    println!("{}", program.display());
    Ok(())
}

fn set_executable(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .map_err(|e| format!("{} cannot be made executable: {e}", path.display()))
}

/// The whole command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    if let ["--help" | "-h", ..] = words {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    if let ["--quotes", rest @ ..] = words {
        let count = rest.first().map_or(Ok(2_000), |n| n.parse::<u32>());
        return match count.map_err(|e| e.to_string()).and_then(quotes) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(why) => {
                eprintln!("xtask interop: {why}");
                ExitCode::from(2)
            }
        };
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

/// Gives mass quotes to QuickFIX C++; whether it takes all of them and reads what was written.
fn quotes(count: u32) -> Result<bool, String> {
    install()?;
    let dictionaries = dictionaries()?;
    let work = target_dir().join("xtask/interop");
    std::fs::create_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))?;
    let ours = ["--package", "tickwire-fix", "--example", "mass_quotes"];
    built(
        "Tickwire's mass quotes",
        cargo().args(["build", "--quiet", "--locked"]).args(ours),
    )?;
    let folder = root().join("peers/interop");
    let own = built_quickfix(&folder)?;
    let reader = work.join("quickfix-quotes");
    let source = folder.join("quotes/quickfix_quotes.cpp");
    with_quickfix("their reader, with QuickFIX C++", &own, &source, &reader)?;
    let mut is_same = true;
    for (version, session, application) in [
        ("FIX.4.4", "FIX44.xml", "FIX44.xml"),
        ("FIX.5.0SP2", "FIXT11.xml", "FIX50SP2.xml"),
    ] {
        let (messages, text) = (work.join("quotes.fix"), work.join("quotes.txt"));
        let mut write = Command::new(target_dir().join("debug/examples/mass_quotes"));
        if !succeeds(write.args([version, &count.to_string()]).args([&messages, &text]))? {
            return Err("the mass quotes were not written, see above".into());
        }
        let read = Command::new(&reader)
            .arg(&messages)
            .args([session, application].map(|name| dictionaries.join(name)))
            .output()
            .map_err(|e| format!("cannot run {}: {e}", reader.display()))?;
        let says = std::fs::read_to_string(&text).map_err(|e| format!("{}: {e}", text.display()))?;
        let heard = String::from_utf8_lossy(&read.stdout);
        let entries = says.matches('|').count();
        let first = says
            .lines()
            .zip(heard.lines())
            .find(|(ours, theirs)| ours != theirs);
        let is_all = read.status.success() && says.lines().count() == count as usize && says == heard;
        println!(
            "{version}: {} of {count} messages read by QuickFIX, {entries} entries, {}",
            heard.lines().count(),
            if is_all {
                "every number the same"
            } else {
                "NOT THE SAME"
            }
        );
        if let Some((ours, theirs)) = first {
            println!("  sent {ours}\n  read {theirs}");
        }
        print!("{}", String::from_utf8_lossy(&read.stderr));
        is_same &= is_all;
    }
    Ok(is_same)
}

/// The dictionaries of FIX.
fn dictionaries() -> Result<PathBuf, String> {
    let folder = env::var_os("TICKWIRE_SHARED")
        .map_or_else(|| root().join("../shared"), PathBuf::from)
        .join("fix/dictionaries");
    match folder.is_dir() {
        true => Ok(folder.canonicalize().unwrap_or(folder)),
        false => Err(format!(
            "{} is not there: set TICKWIRE_SHARED to the folder that has fix/dictionaries",
            folder.display()
        )),
    }
}

/// Builds all engines, ours optimised if it is to be measured; the command that runs them against each other.
fn prepare(is_measured: bool) -> Result<Command, String> {
    install()?;
    let dictionaries = dictionaries()?;
    let folder = root().join("peers/interop");
    // The program under test, and the one that measures it: optimised where it measures.
    let mut build = cargo();
    let packages = ["--package", "tickwire-app", "--package", "tickwire-lab-app"];
    build.args(["build", "--locked"]).args(packages);
    let ours = match is_measured {
        true => {
            build.args(["--profile", "dist"]);
            target_dir().join("dist/tickwire")
        }
        false => target_dir().join("debug/tickwire"),
    };
    built("Tickwire", &mut build)?;
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
        .arg(ours)
        .arg(folder.join("target/release/quickfix-peer"))
        .arg(class_path)
        .arg(dictionaries)
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
