//! `cargo xtask oracle`: an independent decoder agrees with `tickwire decode`, field by field.
//!
//! tshark with the public Lua dissectors of the Open Markets Initiative reads every capture that
//! `oracle.toml` has a row for, and captures with every message type in them, written by
//! `crates/wire/examples/specimens`; `tickwire decode` reads the same. Names, order and values of all fields
//! must agree but for the known faults of the dissectors, which are rows of the table.

mod compare;
mod ours;
mod packets;
mod pdml;
mod table;

use compare::{Comparison, Tally};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};
use table::{Capture, Numbers, Protocol, Simulate, Table};

use crate::run::{cargo, root, target_dir};

const HELP: &str = "\
Compares `tickwire decode` with tshark and public dissectors, field by field.

  cargo xtask oracle --dissectors DIR [--only PROTOCOL] [--captures DIR] [--packets DIR]...
                     [--capture FILE=PROTOCOL[:SCRIPT]]... [--simulate] [--report FILE]

  --dissectors DIR           a clone of https://github.com/Open-Markets-Initiative/wireshark-lua
  --only PROTOCOL            only captures of this protocol
  --captures DIR             recorded captures (default: captures under $TICKWIRE_SHARED or ../shared)
  --packets DIR              a folder of further captures too, laid out as the public packet repository is (a clone of
                             https://github.com/Open-Markets-Initiative/omi-data-packets, at any commit); repeatable
  --capture FILE=PROTOCOL[:SCRIPT]
                             this capture too, for example one that the simulator wrote; repeatable. The script
                             without _Dissector.lua, by default the protocol's in xtask/src/oracle/oracle.toml
  --simulate                 captures that the simulator writes, a few hundredths of a second of each feed, too
  --report FILE              writes what is printed at the end as Markdown

docs/oracle.md says what is compared and what is not. Exit code 1: a difference, a capture without a row in the table or of
which the packets are taken for another protocol, or tshark or a script is missing.
";

/// What was asked for.
#[derive(Default, Debug, PartialEq)]
struct Args {
    dissectors: PathBuf,
    only: Option<String>,
    captures: Option<PathBuf>,
    /// Folders laid out as the public packet repository.
    packets: Vec<PathBuf>,
    /// File, protocol, script if it is not the protocol's.
    extra: Vec<(PathBuf, String, Option<String>)>,
    simulate: bool,
    report: Option<PathBuf>,
}

/// One capture to compare, and how.
struct Job<'a> {
    /// As it is shown.
    name: String,
    path: PathBuf,
    protocol_name: &'a str,
    protocol: &'a Protocol,
    script: &'a str,
    numbers: Numbers,
    decode: &'a str,
    /// Of `--xdp`; empty: not said.
    xdp: &'a str,
    options: &'a [String],
}

/// The whole command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let table = Table::read();
    let args = match parse(words, &table) {
        Ok(Some(args)) => args,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprintln!("xtask oracle: {why}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match compare_all(&args, &table) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask oracle: {why}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: &[&str], table: &Table) -> Result<Option<Args>, String> {
    let mut args = Args::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if matches!(*word, "--help" | "-h") {
            return Ok(None);
        }
        if *word == "--simulate" {
            args.simulate = true;
            continue;
        }
        let value = rest.next().ok_or(format!("{word} needs a value"))?;
        let known = |name: &str| match table.protocol.contains_key(name) {
            true => Ok(name.to_owned()),
            false => Err(format!("'{name}' is not one of {:?}", table.protocol.keys())),
        };
        match *word {
            "--dissectors" => args.dissectors = PathBuf::from(value),
            "--only" => args.only = Some(known(value)?),
            "--captures" => args.captures = Some(PathBuf::from(value)),
            "--packets" => args.packets.push(PathBuf::from(value)),
            "--report" => args.report = Some(PathBuf::from(value)),
            "--capture" => {
                let (file, protocol) = value
                    .rsplit_once('=')
                    .ok_or(format!("--capture {value}: write FILE=PROTOCOL"))?;
                let (protocol, script) = match protocol.split_once(':') {
                    Some((protocol, script)) => (protocol, Some(script.to_owned())),
                    None => (protocol, None),
                };
                args.extra.push((PathBuf::from(file), known(protocol)?, script));
            }
            other => return Err(format!("no option {other}")),
        }
    }
    if args.dissectors.as_os_str().is_empty() {
        return Err("--dissectors DIR is needed".to_owned());
    }
    Ok(Some(args))
}

fn compare_all(args: &Args, table: &Table) -> Result<bool, String> {
    if !args.dissectors.join("Nasdaq").is_dir() {
        return Err(format!(
            "{} is not a clone of github.com/Open-Markets-Initiative/wireshark-lua",
            args.dissectors.display()
        ));
    }
    let version = tshark()?;
    println!("{version}");
    let program = build()?;
    let scratch = target_dir().join("xtask").join("oracle");
    fs::create_dir_all(&scratch).map_err(|e| format!("cannot make {}: {e}", scratch.display()))?;
    let specimens = specimens(&scratch)?;

    let folder = args.captures.clone().unwrap_or_else(captures);
    let mut files = Vec::new();
    find(&folder, &mut files);
    if files.is_empty() {
        return Err(format!(
            "no capture under {}; name the folder with --captures",
            folder.display()
        ));
    }
    let mut names: Vec<(String, PathBuf)> = files
        .into_iter()
        .map(|path| {
            (
                path.strip_prefix(&folder).unwrap_or(&path).display().to_string(),
                path,
            )
        })
        .collect();
    let mut own = Vec::new();
    find(&specimens, &mut own);
    names.extend(own.into_iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?.to_owned();
        Some((format!("specimens/{name}"), path))
    }));
    for folder in &args.packets {
        let mut more = Vec::new();
        find(folder, &mut more);
        if more.is_empty() {
            return Err(format!("no capture under {}", folder.display()));
        }
        names.extend(more.into_iter().map(|path| {
            let rel = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            (format!("packets/{rel}"), path)
        }));
    }
    names.sort();
    names.dedup_by(|a, b| a.0 == b.0);
    let mut jobs = Vec::new();
    let (mut without, mut unknown) = (Vec::new(), Vec::new());
    for (name, path) in names {
        match table.capture(&name) {
            Some(row) if !row.none.is_empty() => without.push((name, row.none.as_str())),
            Some(row) => jobs.push(recorded(table, row, name, path)),
            None => unknown.push(name),
        }
    }
    for (path, name, script) in &args.extra {
        let protocol = &table.protocol[name];
        jobs.push(Job {
            name: path.display().to_string(),
            path: path.clone(),
            protocol_name: name,
            protocol,
            script: script.as_deref().unwrap_or(&protocol.script),
            decode: &protocol.decode,
            numbers: protocol.numbers,
            xdp: "",
            options: &[],
        });
    }
    if args.simulate {
        for row in &table.simulate {
            if args.only.as_ref().is_none_or(|only| *only == row.protocol) {
                jobs.push(simulated(table, row, &program, &scratch)?);
            }
        }
    }
    jobs.retain(|job| args.only.as_ref().is_none_or(|only| only == job.protocol_name));

    let mut rows = Vec::new();
    for job in &jobs {
        let tally = compare(job, args, table, &program, &scratch);
        for difference in &tally.differences {
            println!("{difference}");
        }
        rows.push((job, tally));
    }
    let mut mistaken = Vec::new();
    for job in &jobs {
        if let Err(why) = recognised(&program, job) {
            println!("{}: without --protocol: {why}", job.name);
            mistaken.push(job.name.as_str());
        }
    }
    println!(
        "recognised by their packets alone: {} of {} captures",
        jobs.len() - mistaken.len(),
        jobs.len()
    );
    for name in &unknown {
        println!("{name}: no row in xtask/src/oracle/oracle.toml: tickwire unknown, tshark unknown");
    }
    let mut text = closing(&rows, table, args.only.is_none());
    if args.only.is_none() {
        text.push_str(&left_out(&without));
    }
    println!("\n{text}");
    if let Some(path) = &args.report {
        let head = format!(
            "# Decode against an independent decoder\n\nWritten by `cargo xtask oracle`, see [what is compared](../oracle.md). {version}\n{}\n",
            dissectors_version(&args.dissectors)
        );
        fs::write(path, head + "\n" + &text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    let differences: usize = rows.iter().map(|(_, tally)| tally.differences.len()).sum();
    Ok(differences + unknown.len() + mistaken.len() == 0)
}

fn recorded<'a>(table: &'a Table, row: &'a Capture, name: String, path: PathBuf) -> Job<'a> {
    let protocol = &table.protocol[&row.protocol];
    Job {
        name,
        path,
        protocol_name: &row.protocol,
        protocol,
        script: if row.script.is_empty() {
            &protocol.script
        } else {
            &row.script
        },
        decode: if row.decode.is_empty() {
            &protocol.decode
        } else {
            &row.decode
        },
        numbers: row.numbers.unwrap_or(protocol.numbers),
        xdp: &row.xdp,
        options: &row.options,
    }
}

/// Packets of a simulated capture that are compared at most: tshark writes a hundred times their size.
const SIMULATED_MAX: usize = 2_000;

/// Lets the program write a short capture of one feed, and keeps the packets of one port on line A.
fn simulated<'a>(
    table: &'a Table,
    row: &'a Simulate,
    program: &Path,
    scratch: &Path,
) -> Result<Job<'a>, String> {
    let name = format!("simulator/{}-{}.pcap", row.feed, row.port);
    let wrong = |what: &str| format!("{name}: {what}");
    let shown = Command::new(program)
        .args(["config", "--feed", &row.feed])
        .output();
    let shown = shown.map_err(|e| format!("cannot run {}: {e}", program.display()))?;
    let mut config: toml::Table = String::from_utf8_lossy(&shown.stdout)
        .parse()
        .map_err(|e| wrong(&format!("tickwire config: {e}")))?;
    let channel = config["feed"][0]["channel"][0].get(&row.port);
    let address = channel.and_then(|port| port.get("a")?.as_str());
    let address = address.ok_or_else(|| wrong("no such port"))?.to_owned();
    let exchange = config.get_mut("exchange").and_then(toml::Value::as_table_mut);
    let exchange = exchange.ok_or_else(|| wrong("tickwire config prints no [exchange]"))?;
    exchange.insert("duration_s".to_owned(), 0.3.into());
    exchange.insert("symbols".to_owned(), 10.into());
    let (file, whole) = (scratch.join("simulate.toml"), scratch.join("simulate.pcap"));
    let path = scratch.join(format!("simulated-{}-{}.pcap", row.feed, row.port));
    fs::write(&file, config.to_string()).map_err(|e| wrong(&e.to_string()))?;
    let mut command = Command::new(program);
    command.arg("exchange").arg("-c").arg(&file);
    execute(
        command
            .arg("--write-capture")
            .arg(&whole)
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )?;
    let whole = fs::read(&whole).map_err(|e| wrong(&e.to_string()))?;
    let part = packets::select(&whole, row.alone, SIMULATED_MAX, |destination| {
        destination == address
    });
    let part = part.ok_or_else(|| wrong("the simulator's capture is cut"))?;
    fs::write(&path, part).map_err(|e| wrong(&e.to_string()))?;
    let protocol = &table.protocol[&row.protocol];
    let script = if row.script.is_empty() {
        &protocol.script
    } else {
        &row.script
    };
    Ok(Job {
        name,
        path,
        protocol_name: &row.protocol,
        protocol,
        script,
        numbers: protocol.numbers,
        decode: &protocol.decode,
        xdp: "",
        options: &[],
    })
}

fn compare(job: &Job<'_>, args: &Args, table: &Table, program: &Path, scratch: &Path) -> Tally {
    let script = args.dissectors.join(format!("{}_Dissector.lua", job.script));
    let both = if script.exists() {
        pdml::run(&script, &job.path, job.options, &scratch.join("tshark.pdml"))
            .and_then(|text| Ok((text, decode(program, job)?)))
    } else {
        Err(format!("no script {}", script.display()))
    };
    match both {
        Ok((text, lines)) => {
            let packets = pdml::parse(&text, job.protocol);
            Comparison::new(
                &job.name,
                job.protocol_name,
                job.protocol,
                job.numbers,
                &table.exception,
            )
            .run(&packets, &lines)
        }
        Err(why) => Tally {
            differences: vec![format!("{}: {why}", job.name)],
            ..Tally::default()
        },
    }
}

/// What `tickwire decode` says of the capture.
fn decode(program: &Path, job: &Job<'_>) -> Result<Vec<ours::Line>, String> {
    let mut command = Command::new(program);
    command
        .args(["decode", "--headers", "--protocol", job.decode])
        .arg(&job.path);
    if !job.xdp.is_empty() {
        command.args(["--xdp", job.xdp]);
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run {}: {e}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if text.is_empty() {
        return Err(format!(
            "tickwire decode printed nothing: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    text.lines()
        .map(|line| ours::parse(line).ok_or(format!("tickwire decode printed no JSON object: {line}")))
        .collect()
}

/// Whether `tickwire decode` finds the protocol of the capture out by itself. Kinds of PITCH share layouts:
/// one may stand for another, which `decode` marks where it matters; heartbeats are shared, and bytes that
/// fit two protocols are refused.
fn recognised(program: &Path, job: &Job<'_>) -> Result<(), String> {
    let output = Command::new(program)
        .arg("decode")
        .arg(&job.path)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run {}: {e}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    // Says that it cannot tell, and what to do.
    if output.status.code() == Some(2) && said.contains(job.decode) {
        return Ok(());
    }
    let family = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(ours::parse);
    let (mut right, mut wrong) = (0, Vec::new());
    for line in lines.filter(|line| line.message != "Heartbeat") {
        match line.origin("Protocol") {
            Some(ours::Value::Text(name)) => {
                let name = String::from_utf8_lossy(name).into_owned();
                if family(&name) == family(job.decode) {
                    right += 1;
                } else {
                    wrong.push(name);
                }
            }
            _ => wrong.push("nothing".to_owned()),
        }
    }
    match (right, wrong.first()) {
        (_, Some(name)) => Err(format!("taken for {name}")),
        (0, None) if !text.contains("Heartbeat") => Err(said.lines().last().unwrap_or_default().to_owned()),
        _ => Ok(()),
    }
}

/// The version of tshark, installed when it is missing.
fn tshark() -> Result<String, String> {
    let version = || {
        let output = Command::new("tshark")
            .arg("--version")
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Some(text.lines().next()?.to_owned())
    };
    if let Some(version) = version() {
        return Ok(version);
    }
    println!("tshark is not installed: apt-get install -y tshark");
    let installed = Command::new("apt-get")
        .args(["install", "-y", "tshark"])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    match (installed, version()) {
        (Ok(status), Some(version)) if status.success() => Ok(version),
        _ => Err(
            "tshark cannot be installed; install Wireshark 4.0 or later, with Lua, and try again".to_owned(),
        ),
    }
}

/// Builds `tickwire`; where it is.
fn build() -> Result<PathBuf, String> {
    execute(cargo().args(["build", "-q", "--locked", "-p", "tickwire"]))?;
    Ok(target_dir().join("debug").join("tickwire"))
}

/// Writes a capture of every message type of every protocol; where they are.
fn specimens(scratch: &Path) -> Result<PathBuf, String> {
    let folder = scratch.join("specimens");
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let mut command = cargo();
    command.args([
        "run",
        "-q",
        "--locked",
        "-p",
        "tickwire-wire",
        "--example",
        "specimens",
        "--",
    ]);
    execute(command.arg(&folder))?;
    Ok(folder)
}

fn execute(command: &mut Command) -> Result<(), String> {
    let status = command.current_dir(root()).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{}: {status}", crate::run::words(command))),
        Err(e) => Err(format!("cannot run {}: {e}", crate::run::words(command))),
    }
}

/// The folder of recorded captures.
fn captures() -> PathBuf {
    let shared = env::var_os("TICKWIRE_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    shared.join("captures")
}

/// Kinds of file that hold packets or messages as venues send them.
const RECORDINGS: [&str; 6] = [".pcap", ".pcapng", ".itch", ".gz", ".hex", ".dat"];

/// Every recording under a folder.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.to_string_lossy();
        if path.is_dir() {
            find(&path, files);
        } else if RECORDINGS.iter().any(|end| name.ends_with(end)) {
            files.push(path);
        }
    }
}

/// Which dissectors these are.
fn dissectors_version(folder: &Path) -> String {
    let mut command = Command::new("git");
    command
        .args(["log", "-1", "--format=%H of %cs"])
        .current_dir(folder);
    let known = command.output().ok().filter(|output| output.status.success());
    match known {
        Some(output) => format!(
            "Open-Markets-Initiative/wireshark-lua, commit {}",
            String::from_utf8_lossy(&output.stdout).trim()
        ),
        None => "Open-Markets-Initiative/wireshark-lua, commit not known".to_owned(),
    }
}

/// The closing tables: captures, protocols, exceptions that were used.
fn closing(rows: &[(&Job<'_>, Tally)], table: &Table, is_whole: bool) -> String {
    let mut protocols: BTreeMap<&str, (usize, Tally)> = BTreeMap::new();
    for (job, tally) in rows {
        for name in [job.protocol_name, ALL] {
            let (captures, sum) = protocols.entry(name).or_default();
            *captures += 1;
            sum.packets += tally.packets;
            sum.messages += tally.messages;
            sum.fields += tally.fields;
            sum.exceptions.extend(&tally.exceptions);
            sum.differences.extend(tally.differences.iter().cloned());
        }
    }
    let mut text = head("capture | protocol");
    for (job, tally) in rows {
        text.push_str(&row(&format!("{} | {}", job.name, job.protocol_name), tally));
    }
    text.push_str(&head("protocol | captures"));
    for (name, (captures, tally)) in &protocols {
        text.push_str(&row(&format!("{name} | {captures}"), tally));
    }
    text.push_str("\nExceptions: known faults of the dissectors, and how many differences they are.\n");
    let used = protocols
        .remove(ALL)
        .map(|(_, sum)| sum.exceptions)
        .unwrap_or_default();
    for (at, known) in table.exception.iter().enumerate() {
        let count = used.iter().filter(|used| **used == at).count();
        if count > 0 || is_whole {
            let message = if known.message.is_empty() {
                "any message"
            } else {
                &known.message
            };
            let unused = if count == 0 {
                ", to be removed: nothing needs it"
            } else {
                ""
            };
            let _ = writeln!(
                text,
                "- {count}{unused}: {}, {message}, {}: {} ({})",
                known.protocol,
                known.field.iter().collect::<Vec<_>>().join(" "),
                known.reason,
                known.digest
            );
        }
    }
    text
}

/// The name of the sum.
const ALL: &str = "~ all";

fn head(first: &str) -> String {
    format!(
        "\n| {first} | packets | messages | fields | exceptions | differences |\n|---|---|---|---|---|---|---|\n"
    )
}

fn row(first: &str, tally: &Tally) -> String {
    format!(
        "| {first} | {} | {} | {} | {} | {} |\n",
        tally.packets,
        tally.messages,
        tally.fields,
        tally.exceptions.len(),
        tally.differences.len()
    )
}

/// Recordings that are not compared, by reason.
fn left_out(without: &[(String, &str)]) -> String {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, why) in without {
        reasons.entry(why).or_default().push(name);
    }
    let mut text = String::from("\nRecordings with nothing to compare, by reason.\n");
    for (why, names) in reasons {
        let _ = writeln!(text, "- {why}: {}", names.join(", "));
    }
    text
}
