//! QuickFIX's public acceptance suite against `tickwire fix acceptor`, over TCP, definitions as they are.
//!
//! A definition is a conversation: `I` is sent, `E` expected, `iCONNECT`, `iDISCONNECT` and `eDISCONNECT` open, close and
//! wait; `<TIME>` is now. Versions that have no definitions in the folder run those of their neighbour, with the version's
//! own BeginString, CompID and ApplVerID put in.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tickwire_fix::{Precision, Stamp};
use tickwire_market::Nanos;
use tickwire_testdata::{files, fix};

mod common;
use common::Acceptor;

const PATIENCE: Duration = Duration::from_secs(10);
/// Acceptors that share the definitions: one that waits for heartbeats does not hold up the others of its version.
const ACCEPTORS: usize = 4;
/// Folder of definitions; name of the run; what is put in the place of what.
type Suite = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const SUITES: [Suite; 10] = [
    (
        "fix41",
        "FIX.4.0",
        &[
            // The version that is not expected must be another than the one that is.
            ("FIX.4.0", "FIX.4.2"),
            ("FIX.4.1", "FIX.4.0"),
            ("TW41", "TW40"),
            // Fields that came with 4.1.
            ("\x01150=1\x01151=0", ""),
            ("\x01144=CHI", ""),
            ("\x01145=CHI", ""),
            ("9=130", "9=122"),
        ],
    ),
    ("fix41", "FIX.4.1", &[]),
    ("fix42", "FIX.4.2", &[]),
    ("fix44", "FIX.4.3", &[("FIX.4.4", "FIX.4.3"), ("TW44", "TW43")]),
    ("fix44", "FIX.4.4", &[]),
    ("fix50", "FIX.5.0", &[]),
    (
        "fix50sp2",
        "FIX.5.0SP1",
        &[("TW50SP2", "TW50SP1"), ("1137=9", "1137=8")],
    ),
    ("fix50sp2", "FIX.5.0SP2", &[]),
    ("future", "future", &[]),
    ("validate", "validate", &[]),
];

/// The acceptor that the suite expects.
fn configuration(dir: &Path) -> PathBuf {
    let dictionary = |name: &str| fix(&format!("dictionaries/{name}.xml")).display().to_string();
    let mut text = String::from(
        "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptPort=0\nSenderCompID=ISLD\nResetOnLogon=Y\nStartTime=00:00:00\nEndTime=00:00:00\n",
    );
    let mut session = |begin_string: &str, target: &str, rest: String| {
        writeln!(
            text,
            "[SESSION]\nBeginString={begin_string}\nTargetCompID={target}\n{rest}"
        )
        .unwrap();
    };
    for v in ["40", "41", "42", "43", "44"] {
        let (major, minor) = v.split_at(1);
        let rest = format!("DataDictionary={}", dictionary(&format!("FIX{v}")));
        session(&format!("FIX.{major}.{minor}"), &format!("TW{v}"), rest);
    }
    for (target, name, version) in [
        ("TW50", "FIX50", "FIX.5.0"),
        ("TW50SP1", "FIX50SP1", "FIX.5.0SP1"),
        ("TW50SP2", "FIX50SP2", "FIX.5.0SP2"),
    ] {
        let rest = format!(
            "DefaultApplVerID={version}\nTransportDataDictionary={}\nAppDataDictionary={}",
            dictionary("FIXT11"),
            dictionary(name)
        );
        session("FIXT.1.1", target, rest);
    }
    let (fix42, fix44) = (dictionary("FIX42"), dictionary("FIX44"));
    session("FIX.4.2", "TW", format!("DataDictionary={fix42}"));
    session("FIX.4.4", "TW", format!("DataDictionary={fix44}"));
    let lenient = format!("DataDictionary={fix44}\nValidateFieldsHaveValues=N");
    session("FIX.4.4", "NO_CHECK_FIELDS_HAVE_VALUES", lenient);
    let path = dir.join("acceptance.cfg");
    std::fs::write(&path, text).unwrap();
    path
}

fn time(offset_s: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let at = Nanos((now + offset_s) as u64 * Nanos::SECOND);
    String::from_utf8(Stamp::new(Precision::Seconds).format(at).to_vec()).unwrap()
}

/// `<TIME>`, `<TIME+n>` and `<TIME-n>` as what they stand for.
fn with_times(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once("<TIME") {
        let (offset, after) = after.split_once('>').expect("<TIME ends with >");
        let offset = if offset.is_empty() {
            0
        } else {
            offset.parse().unwrap()
        };
        out += before;
        out += &time(offset);
        rest = after;
    }
    out + rest
}

/// What is sent or expected, with length and sum where the line has none of its own.
fn message(line: &str) -> Vec<u8> {
    let mut text = with_times(line);
    if !text.starts_with("8=") {
        return text.into_bytes();
    }
    let (begin, body) = text.split_once('\x01').unwrap();
    if !body.starts_with("9=") {
        let end = body.rfind("\x0110=").map_or(body.len(), |at| at + 1);
        text = format!("{begin}\x019={}\x01{body}", end);
    }
    let has_sum = text
        .trim_end_matches('\x01')
        .rsplit('\x01')
        .next()
        .unwrap()
        .starts_with("10=");
    let mut bytes = text.into_bytes();
    if !has_sum {
        let sum = bytes.iter().fold(0_u8, |sum, b| sum.wrapping_add(*b));
        bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    }
    bytes
}

/// Reads one message the way the suite's own runner does.
fn read_message(stream: &mut TcpStream) -> Result<String, String> {
    let mut text = Vec::new();
    let mut byte = [0];
    let mut next = |text: &mut Vec<u8>| match stream.read(&mut byte) {
        Ok(1) => {
            text.push(byte[0]);
            Ok(())
        }
        Ok(_) => Err(format!("the connection was closed after {:?}", shown(text))),
        Err(e) => Err(format!("nothing came: {e}; so far {:?}", shown(text))),
    };
    let length = loop {
        next(&mut text)?;
        if text.last() == Some(&1)
            && let Some(at) = text.windows(3).position(|w| w == b"\x019=")
            && at + 3 < text.len()
        {
            let digits = &text[at + 3..text.len() - 1];
            break String::from_utf8_lossy(digits)
                .parse::<usize>()
                .map_err(|e| e.to_string())?;
        }
    };
    for _ in 0..length {
        next(&mut text)?;
    }
    loop {
        next(&mut text)?;
        if text.last() == Some(&1) {
            return Ok(String::from_utf8_lossy(&text).into_owned());
        }
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\x01', "|")
}

/// Whether a value is as `fields.fmt` wants it; `None` for a field that it does not name.
fn fits_format(tag: &str, value: &str) -> Option<bool> {
    let is = |pattern: &str| {
        pattern.len() == value.len()
            && pattern
                .chars()
                .zip(value.chars())
                .all(|(p, v)| if p == 'd' { v.is_ascii_digit() } else { p == v })
    };
    Some(match tag {
        "10" => is("ddd"),
        "42" | "60" => is("dddddddd-dd:dd:dd"),
        "52" | "122" => is("dddddddd-dd:dd:dd") || is("dddddddd-dd:dd:dd.ddd"),
        _ => return None,
    })
}

fn compare(expected: &str, received: &str) -> Result<(), String> {
    let fields = |text: &str| -> Vec<(String, String)> {
        let split = |f: &str| {
            let (tag, value) = f.split_once('=').unwrap_or((f, ""));
            (tag.to_string(), value.to_string())
        };
        text.split_terminator('\x01').map(split).collect()
    };
    let (want, have) = (fields(expected), fields(received));
    let is_same = want.len() == have.len()
        && want
            .iter()
            .zip(&have)
            .all(|(w, h)| w.0 == h.0 && fits_format(&h.0, &h.1).unwrap_or(w.1 == h.1));
    match is_same {
        true => Ok(()),
        false => Err(format!(
            "expected {}\n  received {}",
            shown(expected.as_bytes()),
            shown(received.as_bytes())
        )),
    }
}

/// Runs one definition to its end.
fn play(port: u16, definition: &str) -> Result<(), String> {
    let mut connections: BTreeMap<u32, TcpStream> = BTreeMap::new();
    for (number, line) in definition.lines().enumerate() {
        let line = line.trim_end_matches('\r');
        let (action, rest) = line.split_at(line.len().min(1));
        if !matches!(action, "I" | "E" | "i" | "e") {
            continue;
        }
        let (connection, rest) = match rest.split_once(',') {
            Some((n, rest)) if n.len() == 1 && n.as_bytes()[0].is_ascii_digit() => (n.parse().unwrap(), rest),
            _ => (1, rest),
        };
        let failed = |why: String| format!("line {}: {why}", number + 1);
        let open = |connections: &mut BTreeMap<u32, TcpStream>| {
            connections
                .remove(&connection)
                .ok_or_else(|| failed("there is no connection".into()))
        };
        match (action, rest) {
            ("i", "CONNECT") => {
                let stream = TcpStream::connect(("127.0.0.1", port)).map_err(|e| failed(e.to_string()))?;
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                stream.set_nodelay(true).unwrap();
                connections.insert(connection, stream);
            }
            ("i", "DISCONNECT") => {
                let stream = open(&mut connections)?;
                let _ = stream.shutdown(Shutdown::Both);
            }
            ("e", "DISCONNECT") => {
                let mut stream = open(&mut connections)?;
                let mut more = Vec::new();
                match stream.read_to_end(&mut more) {
                    Ok(0) => {}
                    Ok(_) => return Err(failed(format!("before its end came {}", shown(&more)))),
                    Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {}
                    Err(e) => return Err(failed(format!("was not disconnected: {e}"))),
                }
            }
            ("I", text) => {
                let mut stream = open(&mut connections)?;
                // Who was disconnected may still have something to say.
                let _ = stream.write_all(&message(text));
                connections.insert(connection, stream);
            }
            ("E", text) => {
                let mut stream = open(&mut connections)?;
                let received = read_message(&mut stream).map_err(failed)?;
                let expected = String::from_utf8_lossy(&message(text)).into_owned();
                compare(&expected, &received).map_err(failed)?;
                connections.insert(connection, stream);
            }
            _ => return Err(failed(format!("{line:?} is no step"))),
        }
    }
    Ok(())
}

#[tickwire_testdata::recorded_data("fix")]
#[test]
fn every_definition_of_every_version_passes() {
    let dir = std::env::temp_dir().join(format!("tickwire-acceptance-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let configuration = configuration(&dir);
    let acceptors = [(); ACCEPTORS].map(|()| Acceptor::start(&configuration));
    let queues = SUITES.map(|suite| {
        let definitions = files(&fix(&format!("acceptance/server/{}", suite.0)), "def");
        (suite, Mutex::new(definitions.into_iter()))
    });
    let run = |port: u16, (_, name, replacements): Suite, queue: &Mutex<std::vec::IntoIter<PathBuf>>| {
        let mut results = Vec::new();
        let next = || queue.lock().unwrap().next();
        while let Some(path) = next() {
            let mut text = std::fs::read_to_string(&path).unwrap();
            for (from, to) in replacements {
                text = text.replace(from, to);
            }
            let scenario = path.file_stem().unwrap().to_string_lossy().into_owned();
            results.push((name, scenario, play(port, &text)));
        }
        results
    };
    let run = &run;
    let results: Vec<_> = std::thread::scope(|scope| {
        let turns = queues
            .iter()
            .flat_map(|queue| acceptors.iter().map(move |acceptor| (queue, acceptor.port)));
        let runs: Vec<_> = turns
            .map(|((suite, queue), port)| scope.spawn(move || run(port, *suite, queue)))
            .collect();
        runs.into_iter().flat_map(|r| r.join().unwrap()).collect()
    });
    std::fs::remove_dir_all(&dir).unwrap();
    let mut failures = String::new();
    for (name, scenario, result) in &results {
        match result {
            Ok(()) => println!("{name} {scenario}: passed"),
            Err(why) => {
                println!("{name} {scenario}: FAILED: {why}");
                writeln!(failures, "{name} {scenario}: {why}").unwrap();
            }
        }
    }
    println!("{} definitions run", results.len());
    assert!(failures.is_empty(), "\n{failures}");
    // Fewer would mean that the folder is not whole.
    assert!(results.len() > 460, "{}", results.len());
}
