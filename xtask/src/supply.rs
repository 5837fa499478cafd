//! What the program is made of and who has looked at it: the table of packages in `docs/supply-chain.md`,
//! which the step `licences` compares with the sources that cargo has fetched, and `cargo xtask supply`,
//! which adds what needs tools of its own: advisories, a bill of materials.

use crate::run::{cargo, root, target_dir};
use crate::source::read;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Pinned: another version may find other things, and is taken on purpose.
const TOOLS: &[(&str, &str)] = &[("cargo-deny", "0.20.2"), ("cargo-cyclonedx", "0.5.9")];
const PAGE: &str = "docs/supply-chain.md";
const BEGIN: &str = "<!-- packages: written by `cargo xtask supply --write` -->\n";
const END: &str = "<!-- end of packages -->";

const HELP: &str = "\
Checks what the program is made of: advisories, licences, bans and sources with cargo-deny, the table of packages in
docs/supply-chain.md, and writes a bill of materials (CycloneDX 1.5, JSON) into target/supply. The tools come from crates.io at
pinned versions and are installed into target/tools when they are missing.

  cargo xtask supply [--advisories DIR] [--write] [--offline]

  --advisories DIR  a clone of https://github.com/rustsec/advisory-db instead of a fetched one (its commit and date are printed)
  --write           writes the table of packages anew: read the difference before you commit it
  --offline         no tools: only the table of packages, as the step `licences` of `cargo xtask check` does

Exit code 1: something was found. 2: a tool could not be had or run.
";

/// What a package does that one would want to know before it is in a program that trades.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Facts {
    lines: usize,
    unsafe_words: usize,
    has_build_script: bool,
    has_net: bool,
    has_files: bool,
    has_processes: bool,
    has_environment: bool,
    has_foreign: bool,
}

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let mut advisories = None;
    let (mut is_writing, mut is_offline) = (false, false);
    let mut rest = words;
    loop {
        match rest {
            [] => break,
            ["--help" | "-h", ..] => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            ["--write", more @ ..] => (is_writing, rest) = (true, more),
            ["--offline", more @ ..] => (is_offline, rest) = (true, more),
            ["--advisories", dir, more @ ..] => (advisories, rest) = (Some(PathBuf::from(dir)), more),
            [other, ..] => {
                eprintln!("xtask supply: '{other}' is no option, or its value is missing; --help lists them");
                return ExitCode::from(2);
            }
        }
    }
    match supply(advisories.as_deref(), is_writing, is_offline) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(found) => {
            println!("{found} found");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("xtask supply: {why}");
            ExitCode::from(2)
        }
    }
}

fn supply(advisories: Option<&Path>, is_writing: bool, is_offline: bool) -> Result<usize, String> {
    if is_writing {
        write()?;
    }
    let findings = findings()?;
    for finding in &findings {
        println!("{finding}");
    }
    let mut found = findings.len();
    if is_offline {
        return Ok(found);
    }
    let tools = target_dir().join("tools");
    for (tool, version) in TOOLS {
        install(&tools, tool, version)?;
    }
    let deny = tools.join("bin/cargo-deny");
    if let Some(dir) = advisories {
        println!("advisory database: {}", dated(dir)?);
        let config = deny_with(dir)?;
        found += usize::from(!deny_check(&deny, Some(&config))?);
    } else {
        found += usize::from(!deny_check(&deny, None)?);
        let databases = cargo_home().join("advisory-dbs");
        for entry in std::fs::read_dir(&databases).into_iter().flatten().flatten() {
            if entry.path().join(".git").exists() {
                println!("advisory database: {}", dated(&entry.path())?);
            }
        }
    }
    let made = bill_of_materials(&tools)?;
    println!("bill of materials: {}", made.display());
    Ok(found)
}

/// A clone's commit and its date, so that a report says what it knew.
fn dated(dir: &Path) -> Result<String, String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(["log", "-1", "--format=%H of %cs"])
        .output()
        .map_err(|e| format!("cannot run git: {e}"))?;
    if !output.status.success() {
        return Err(format!("{}: not a clone of the advisory database", dir.display()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The folder where cargo-deny looks for its default database: the name is the address's, with a hash of it.
const DATABASE: &str = "advisory-db-3157b0e258782691";

/// `deny.toml` with a folder of advisory databases in which the clone stands as if cargo-deny had fetched it.
fn deny_with(dir: &Path) -> Result<PathBuf, String> {
    let folder = target_dir().join("supply");
    let databases = folder.join("advisory-dbs");
    let _ = std::fs::remove_dir_all(&databases);
    std::fs::create_dir_all(&databases).map_err(|e| format!("{}: {e}", databases.display()))?;
    let clone = Command::new("git")
        .args(["clone", "--quiet"])
        .arg(dir)
        .arg(databases.join(DATABASE))
        .status();
    if !clone.is_ok_and(|status| status.success()) {
        return Err(format!("cannot clone {}", dir.display()));
    }
    let text = read(&root().join("deny.toml")).replace(
        "[advisories]\n",
        &format!("[advisories]\ndb-path = {:?}\n", databases.display().to_string()),
    );
    let path = folder.join("deny.toml");
    std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

fn deny_check(deny: &Path, config: Option<&Path>) -> Result<bool, String> {
    let mut command = Command::new(deny);
    command.current_dir(root()).args(["--all-features", "--locked"]);
    if let Some(config) = config {
        command.arg("--offline").arg("--config").arg(config);
    }
    command.args(["check", "advisories", "bans", "licenses", "sources"]);
    let status = command.status();
    Ok(status
        .map_err(|e| format!("cannot run {}: {e}", deny.display()))?
        .success())
}

/// The bill of materials of the program, whose path is returned; the tool is installed when it is missing.
pub(crate) fn bill() -> Result<PathBuf, String> {
    let tools = target_dir().join("tools");
    let (tool, version) = TOOLS[1];
    install(&tools, tool, version)?;
    bill_of_materials(&tools)
}

fn bill_of_materials(tools: &Path) -> Result<PathBuf, String> {
    let mut command = Command::new(tools.join("bin/cargo-cyclonedx"));
    command.current_dir(root()).args([
        "cyclonedx",
        "--manifest-path",
        "apps/tickwire/Cargo.toml",
        "--format",
        "json",
        "--spec-version",
        "1.5",
        "--override-filename",
        "tickwire.cdx",
        "--target",
        "x86_64-unknown-linux-gnu",
    ]);
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("cargo-cyclonedx: {status}")),
        Err(e) => return Err(format!("cannot run cargo-cyclonedx: {e}")),
    }
    // It writes one beside every manifest of the workspace; the program's is the one that is wanted.
    let to = target_dir().join("supply/tickwire.cdx.json");
    let folder = target_dir().join("supply");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    std::fs::copy(root().join("apps/tickwire/tickwire.cdx.json"), &to)
        .map_err(|e| format!("{}: {e}", to.display()))?;
    for member in members()? {
        let _ = std::fs::remove_file(member.join("tickwire.cdx.json"));
    }
    Ok(to)
}

fn install(tools: &Path, tool: &str, version: &str) -> Result<(), String> {
    // Both are subcommands of cargo, and answer under their second name as well.
    let name = tool.trim_start_matches("cargo-");
    let known = Command::new(tools.join("bin").join(tool))
        .args([name, "--version"])
        .output();
    if known.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).contains(version)) {
        return Ok(());
    }
    println!("installing {tool} {version} into {}", tools.display());
    let mut command = cargo();
    command
        .args([
            "install",
            "--locked",
            "--quiet",
            tool,
            "--version",
            version,
            "--root",
        ])
        .arg(tools);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo install {tool}: {status}")),
        Err(e) => Err(format!("cannot run cargo: {e}")),
    }
}

fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

/// What the page says that the sources do not, and the other way round: one line for each package.
pub(crate) fn findings() -> Result<Vec<String>, String> {
    let page = read(&root().join(PAGE));
    let (_, rest) = page
        .split_once(BEGIN)
        .ok_or_else(|| format!("{PAGE}: the line {} is missing", BEGIN.trim()))?;
    let (said, _) = rest
        .split_once(END)
        .ok_or_else(|| format!("{PAGE}: the line {END} is missing"))?;
    let rows = |text: &str| -> BTreeMap<String, String> {
        let rows = text.lines().filter_map(|line| {
            let name = line.strip_prefix("| `")?.split('`').next()?;
            Some((name.to_owned(), line.to_owned()))
        });
        rows.collect()
    };
    let (said, found) = (rows(said), rows(&table()?));
    let mut findings = Vec::new();
    for (name, row) in &found {
        match said.get(name) {
            None => findings.push(format!("{PAGE}: {name} is in the program and not in the table")),
            Some(old) if old != row => findings.push(format!(
                "{PAGE}: {name} has changed: the table says {old}, its sources {row}"
            )),
            Some(_) => {}
        }
    }
    for name in said.keys().filter(|name| !found.contains_key(*name)) {
        findings.push(format!("{PAGE}: {name} is in the table and not in the program"));
    }
    if !findings.is_empty() {
        findings.push(format!(
            "{PAGE}: read what is new in these packages, then `cargo xtask supply --write`"
        ));
    }
    Ok(findings)
}

fn write() -> Result<(), String> {
    let path = root().join(PAGE);
    let page = read(&path);
    let (before, rest) = page
        .split_once(BEGIN)
        .ok_or_else(|| format!("{PAGE}: the line {} is missing", BEGIN.trim()))?;
    let (_, after) = rest
        .split_once(END)
        .ok_or_else(|| format!("{PAGE}: the line {END} is missing"))?;
    let text = format!("{before}{BEGIN}{}{END}{after}", table()?);
    std::fs::write(&path, text).map_err(|e| format!("{PAGE}: {e}"))
}

/// The packages of the shipped program with what their sources do.
fn table() -> Result<String, String> {
    let mut out = String::from(
        "| package | licence | in | lines | `unsafe` | build script | net | files | processes | environment | foreign code |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let metadata = metadata()?;
    let program = tree("normal,no-proc-macro")?;
    let (compiler, build) = (tree("normal")?, tree("normal,build")?);
    let empty = Vec::new();
    let packages = metadata["packages"].as_array().unwrap_or(&empty);
    for (name, version) in &build {
        let package = packages
            .iter()
            .find(|p| p["name"] == name.as_str() && p["version"] == version.as_str())
            .ok_or_else(|| format!("cargo metadata does not know {name} {version}"))?;
        let Some(_) = package["source"].as_str() else {
            continue; // ours
        };
        let facts = facts(package)?;
        let place = match (name.clone(), version.clone()) {
            key if program.contains(&key) => "program",
            key if compiler.contains(&key) => "compiler",
            _ => "build",
        };
        let yes = |is: bool| if is { "yes" } else { "" };
        let _ = writeln!(
            out,
            "| `{name} {version}` | {} | {place} | {} | {} | {} | {} | {} | {} | {} | {} |",
            package["license"].as_str().unwrap_or("?"),
            facts.lines,
            facts.unsafe_words,
            yes(facts.has_build_script),
            yes(facts.has_net),
            yes(facts.has_files),
            yes(facts.has_processes),
            yes(facts.has_environment),
            yes(facts.has_foreign),
        );
    }
    Ok(out)
}

/// What Cargo says of every package of the workspace.
pub(crate) fn metadata() -> Result<Value, String> {
    let output = cargo()
        .current_dir(root())
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()
        .map_err(|e| format!("cannot run cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))
}

fn members() -> Result<Vec<PathBuf>, String> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let ours = packages.iter().filter(|p| p["source"].is_null());
    let folders = ours.filter_map(|p| {
        Path::new(p["manifest_path"].as_str()?)
            .parent()
            .map(Path::to_owned)
    });
    Ok(folders.collect())
}

/// Name and version of what the program is linked with (`normal`) or built with. One target, so that the
/// table does not depend on where it was written; a procedural macro's own packages are edges of `normal`,
/// too.
fn tree(edges: &str) -> Result<Vec<(String, String)>, String> {
    let output = cargo()
        .current_dir(root())
        .args(["tree", "--locked", "--package", "tickwire-app", "--edges", edges])
        .args([
            "--target",
            "x86_64-unknown-linux-gnu",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .output()
        .map_err(|e| format!("cannot run cargo tree: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut found: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(" v")?;
            Some((name.to_owned(), rest.split(' ').next()?.to_owned()))
        })
        .collect();
    found.sort();
    found.dedup();
    Ok(found)
}

fn facts(package: &Value) -> Result<Facts, String> {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let folder = manifest.parent().ok_or("cargo metadata gives no manifest_path")?;
    let mut facts = Facts::default();
    for target in package["targets"].as_array().into_iter().flatten() {
        let kinds = target["kind"].as_array().into_iter().flatten();
        for kind in kinds.filter_map(Value::as_str) {
            facts.has_build_script |= kind == "custom-build";
        }
    }
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    for file in files {
        let bytes = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        facts.add(&String::from_utf8_lossy(&bytes));
    }
    Ok(facts)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", folder.display()))?.path();
        let is_shipped = !matches!(
            path.file_name().and_then(|name| name.to_str()),
            Some("tests" | "benches" | "examples" | "target")
        );
        if path.is_dir() {
            if is_shipped {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

impl Facts {
    /// Words in the code of one file: rough on purpose (code of other targets and of tests counts), but it
    /// cannot miss a word.
    fn add(&mut self, text: &str) {
        for line in text.lines() {
            let code = line.split("//").next().unwrap_or_default();
            if code.trim().is_empty() {
                continue;
            }
            self.lines += 1;
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            self.unsafe_words += code.split(|c| !is_word(c)).filter(|w| *w == "unsafe").count();
            let has = |words: &[&str]| words.iter().any(|w| code.contains(w));
            self.has_net |= has(&["std::net", "TcpStream", "UdpSocket", "UnixStream"]);
            self.has_files |= has(&["std::fs", "fs::File", "File::open", "File::create", "OpenOptions"]);
            self.has_processes |= has(&["std::process::Command", "process::Command", "Command::new"]);
            self.has_environment |= has(&["env::var", "env::vars", "getenv"]);
            self.has_foreign |= has(&["extern \"C\"", "extern \"system\"", "asm!("]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_source_does_is_read_from_its_code_and_not_from_its_comments() {
        let mut facts = Facts::default();
        facts.add("// unsafe std::net\nfn f() { unsafe { g() } } // unsafe\n\nuse std::fs;\nlet unsafe_words = 1;\n");
        let expected = Facts {
            lines: 3,
            unsafe_words: 1,
            has_files: true,
            ..Facts::default()
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn the_tools_are_pinned() {
        for (tool, version) in TOOLS {
            assert_eq!(version.split('.').count(), 3, "{tool}");
        }
    }
}
