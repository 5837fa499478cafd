//! `tickwire fix acceptor` over TCP, by every rule of a FIX session in every version: scenarios of our own,
//! `vectors/fix_session`, and QuickFIX's public acceptance suite, definitions as they are, where the recorded
//! data has it.
//!
//! A definition is a conversation: `I` is sent, `E` expected, `iCONNECT`, `iDISCONNECT` and `eDISCONNECT`
//! open, close and wait; `<TIME>` is now. Versions that have no definitions in the folder run those of their
//! neighbour, with the version's own BeginString, CompID and ApplVerID put in.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tickwire_fix::{Precision, Stamp};
use tickwire_market::Nanos;
use tickwire_testdata::{files, fix, workspace};

mod common;
use common::Acceptor;

const PATIENCE: Duration = Duration::from_secs(60);
/// Acceptors that share the definitions: one that waits for heartbeats does not hold up the others of its
/// version.
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
        let offset = match offset.parse::<i64>() {
            // What is too far ahead must be so still when it is read, however late that is, and the clock is
            // cut to the second: 121 seconds ahead were 120 and some milliseconds, and two minutes are right.
            Ok(ahead) if ahead > 0 => ahead + PATIENCE.as_secs() as i64,
            Ok(offset) => offset,
            Err(_) => {
                assert_eq!(offset, "", "<TIME has a number of seconds behind it, or nothing");
                0
            }
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

/// Whether what was received is what was expected, both as bytes without their line.
type Compare = fn(&str, &str) -> Result<(), String>;

/// Runs one definition to its end.
fn play(port: u16, definition: &str, compare: Compare) -> Result<(), String> {
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
            results.push((name, scenario, play(port, &text, compare)));
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

/// A version as our scenarios have it: number, BeginString, our peer's CompID, DefaultApplVerID and its
/// number.
struct Spoken {
    number: u32,
    begin: &'static str,
    peer: &'static str,
    application: Option<(&'static str, u32)>,
}

const fn plain(number: u32, begin: &'static str, peer: &'static str) -> Spoken {
    Spoken {
        number,
        begin,
        peer,
        application: None,
    }
}

const fn fixt(number: u32, peer: &'static str, name: &'static str, code: u32) -> Spoken {
    Spoken {
        number,
        begin: "FIXT.1.1",
        peer,
        application: Some((name, code)),
    }
}

const SPOKEN: [Spoken; 8] = [
    plain(40, "FIX.4.0", "OWN40"),
    plain(41, "FIX.4.1", "OWN41"),
    plain(42, "FIX.4.2", "OWN42"),
    plain(43, "FIX.4.3", "OWN43"),
    plain(44, "FIX.4.4", "OWN44"),
    fixt(50, "OWN50", "FIX.5.0", 7),
    fixt(51, "OWN50SP1", "FIX.5.0SP1", 8),
    fixt(52, "OWN50SP2", "FIX.5.0SP2", 9),
];

/// The rules of the standard's session test cases; every one has a scenario.
const RULES: &str = "1a 1b 1c 1d 1e 2a 2b 2c 2d 2e 2f 2g 2i 2k 2m 2o 2q 2r 2t 3b 4a 4b 6 7 8 10 11 11a 11b 11c 13a 14a 14b 14c 14d 14e 14f 14g \
                     14h 14i 15 19 20";

/// A scenario of our own: what it shows, the versions it holds for, its steps.
struct Scenario {
    title: String,
    from: u32,
    steps: Vec<String>,
}

/// `4.2` as 42.
fn version_number(text: &str) -> u32 {
    text.replace('.', "").parse().expect("a version as 4.2")
}

/// The scenarios of a file: a title behind `#`, then steps, a blank line between two.
fn scenarios(text: &str) -> Vec<Scenario> {
    let blocks = text.split("\n\n").filter(|block| block.contains("\nconnect"));
    blocks
        .map(|block| {
            let mut lines = block.lines().filter(|line| !line.is_empty()).peekable();
            let title = lines.next().and_then(|line| line.strip_prefix("# "));
            let from = lines.next_if(|line| line.starts_with("from "));
            Scenario {
                title: title.expect("a scenario begins with its title").to_owned(),
                from: from.map_or(40, |line| version_number(&line[5..])),
                steps: lines.map(str::to_owned).collect(),
            }
        })
        .collect()
}

impl Spoken {
    /// A scenario as a definition that [`play`] plays.
    fn definition(&self, scenario: &Scenario) -> String {
        let lines = scenario.steps.iter().map(|step| self.line(step));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn line(&self, step: &str) -> String {
        let (connection, step) = match step.strip_prefix('@') {
            Some(rest) => rest.split_once(' ').expect("a step behind the connection"),
            None => ("1", step),
        };
        match step.split_once(' ').unwrap_or((step, "")) {
            ("connect", _) => format!("i{connection},CONNECT"),
            ("closed", _) => format!("e{connection},DISCONNECT"),
            (">", message) => format!("I{connection},{}", self.sent(message)),
            ("<", message) => format!("E{connection},{}", self.expected(message)),
            ("garbled", bytes) => {
                let bytes = bytes.replace("BEGIN", self.begin).replace("ME", self.peer);
                format!(
                    "I{connection},{}",
                    bytes.replace("NOW", &time(0)).replace('|', "\x01")
                )
            }
            _ => panic!("{step:?} is no step"),
        }
    }

    /// An order that every version takes, with what is changed of it behind blanks: `ORDER 1 54=Z`.
    fn order(&self, text: &str) -> Vec<(String, String)> {
        let mut words = text.split(' ').skip(1);
        let id = words.next().expect("a number");
        let mut fields = format!("11=ID{id}|21=1|38=100|40=1|54=1|55=WIRE");
        if self.number >= 42 {
            fields += "|60=NOW";
        }
        let mut fields = pairs(&fields);
        for (tag, value) in words.flat_map(pairs) {
            let field = fields.iter_mut().find(|field| field.0 == tag);
            field.expect("it changes a field of the order").1 = value;
        }
        fields
    }

    /// An execution report with what each version needs.
    fn report(&self) -> &'static str {
        match self.number {
            40 => "6=0|11=x|14=0|17=1|20=0|31=1|32=1|37=1|38=1|39=0|54=1|55=WIRE",
            41 => "6=0|11=x|14=0|17=1|20=0|31=1|32=1|37=1|38=1|39=0|54=1|55=WIRE|150=0|151=0",
            42 => "6=0|14=0|17=1|20=0|37=1|39=0|54=1|55=WIRE|150=0|151=1",
            _ => "6=0|14=0|17=1|37=1|39=0|54=1|55=WIRE|150=0|151=1",
        }
    }

    /// Type and number of a message, and its fields with the versions that each is from.
    fn parts(&self, message: &str) -> (String, String, Vec<(String, String)>) {
        let mut cells = message.split('|');
        let (kind, number) = (cells.next().unwrap(), cells.next().expect("a sequence number"));
        let kind = match kind {
            "BUSINESS" if self.number < 42 => "3",
            "BUSINESS" => "j",
            other => other,
        };
        let mut fields = Vec::new();
        for cell in cells {
            let (cell, from) = match cell.rsplit_once("@4.") {
                Some((cell, minor)) => (cell, version_number(&format!("4.{minor}"))),
                None => (cell, 40),
            };
            match cell {
                _ if self.number < from => {}
                "REPORT" => fields.extend(pairs(self.report())),
                "16=ALL" => fields.extend(pairs(if self.number < 42 { "16=999999" } else { "16=0" })),
                order if order.starts_with("ORDER ") => fields.extend(self.order(order)),
                field => fields.extend(pairs(field)),
            }
        }
        // A business reject carries it too, as QuickFIX's does.
        if let ("A" | "j", Some((_, code))) = (kind, self.application) {
            fields.push(("1137".to_owned(), code.to_string()));
        }
        (kind.to_owned(), number.to_owned(), fields)
    }

    /// The whole message, with a header and what the fields say otherwise of it. Behind the number `-` the
    /// fields are all there is.
    fn sent(&self, message: &str) -> String {
        let (kind, number, mut fields) = self.parts(message);
        let mut take = |tag: &str| {
            let at = fields.iter().position(|field| field.0 == tag)?;
            Some(fields.remove(at).1)
        };
        let mut text = format!("8={}", take("8").unwrap_or_else(|| self.begin.to_owned()));
        if let Some(length) = take("9") {
            text += &format!("|9={length}");
        }
        let sum = take("10");
        text += &format!("|35={kind}");
        if number != "-" {
            text += &format!("|34={number}");
            for (tag, usual) in [("49", self.peer), ("52", "NOW"), ("56", "ISLD")] {
                text += &format!("|{tag}={}", take(tag).unwrap_or_else(|| usual.to_owned()));
            }
            for tag in ["43", "97", "122"] {
                if let Some(value) = take(tag) {
                    text += &format!("|{tag}={value}");
                }
            }
        }
        for (tag, value) in fields {
            let value = if value == "ME" {
                self.peer.to_owned()
            } else {
                value
            };
            text += &format!("|{tag}={value}");
        }
        text += "|";
        if let Some(sum) = sum {
            text += &format!("10={sum}|");
        }
        let mut out = String::new();
        for field in text.split_inclusive('|') {
            // A time is now, or so many seconds from now.
            match field.split_once("=NOW") {
                Some((tag, offset)) => {
                    let offset = offset.trim_end_matches('|');
                    out += &format!("{tag}=<TIME{offset}>|");
                }
                None => out += field,
            }
        }
        out.replace('|', "\x01")
    }

    /// What is compared with what comes: see [`fits`].
    fn expected(&self, message: &str) -> String {
        let (kind, number, fields) = self.parts(message);
        let fields: Vec<String> = fields
            .iter()
            .map(|(tag, value)| format!("{tag}={value}"))
            .collect();
        format!(
            "35={kind}\x0134={number}\x0149=ISLD\x0156={}\x01{}",
            self.peer,
            fields.join("\x01")
        )
    }
}

/// Fields of `1=a|2=b`.
fn pairs(text: &str) -> Vec<(String, String)> {
    let split = |field: &str| {
        let (tag, value) = field.split_once('=').expect("tag=value");
        (tag.to_owned(), value.to_owned())
    };
    text.split('|').map(split).collect()
}

/// Whether a message has the expected fields, in any order, and no others. `*` and a time are any value, `…`
/// any end of one.
fn fits(expected: &str, received: &str) -> Result<(), String> {
    // What every message has, and what [`read_message`] has relied on.
    let volatile = |tag: &str| ["8", "9", "10", "52"].contains(&tag);
    let fields = |text: &str| -> BTreeMap<String, String> {
        let all = text
            .trim_end_matches('\x01')
            .split('\x01')
            .filter(|f| !f.is_empty());
        all.flat_map(pairs).filter(|(tag, _)| !volatile(tag)).collect()
    };
    let (want, have) = (fields(expected), fields(received));
    let is_same = want.len() == have.len()
        && want.iter().all(|(tag, want)| {
            have.get(tag).is_some_and(|have| match want.strip_suffix('…') {
                Some(start) => have.starts_with(start),
                None => want == "*" || want == "NOW" || want == have,
            })
        });
    match is_same {
        true => Ok(()),
        false => Err(format!(
            "expected {}\n  received {}",
            shown_text(expected),
            shown_text(received)
        )),
    }
}

fn shown_text(text: &str) -> String {
    text.replace('\x01', "|")
}

/// An acceptor of every version without a dictionary's file: messages are checked against the built-in ones.
fn own_configuration(dir: &Path) -> PathBuf {
    let mut text = String::from(
        "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptPort=0\nSenderCompID=ISLD\nResetOnLogon=Y\nStartTime=00:00:00\nEndTime=00:00:00\n",
    );
    for spoken in &SPOKEN {
        write!(
            text,
            "[SESSION]\nBeginString={}\nTargetCompID={}\n",
            spoken.begin, spoken.peer
        )
        .unwrap();
        if let Some((name, _)) = spoken.application {
            writeln!(text, "DefaultApplVerID={name}").unwrap();
        }
    }
    let path = dir.join("own.cfg");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn every_rule_of_a_session_holds_in_every_version() {
    let dir = std::env::temp_dir().join(format!("tickwire-session-rules-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let acceptor = Acceptor::start(&own_configuration(&dir));
    let texts = files(&workspace().join("vectors/fix_session"), "txt");
    let all: Vec<Scenario> = texts
        .iter()
        .flat_map(|path| scenarios(&std::fs::read_to_string(path).unwrap()))
        .collect();
    let mut shown: Vec<&str> = all
        .iter()
        .flat_map(|s| s.title.split(':').next().unwrap_or("").split(", "))
        .collect();
    shown.sort_unstable();
    shown.dedup();
    let mut rules: Vec<&str> = RULES.split_whitespace().collect();
    rules.sort_unstable();
    assert_eq!(shown, rules, "rules with a scenario, and rules there are");
    let (all, port) = (&all, acceptor.port);
    let run = |spoken: &'static Spoken| {
        let own = all.iter().filter(|scenario| spoken.number >= scenario.from);
        let played = own.map(|scenario| {
            let result = play(port, &spoken.definition(scenario), fits);
            result.map_err(|why| format!("{} {}: {why}", spoken.peer, scenario.title))
        });
        played.collect::<Vec<_>>()
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let run = &run;
        let runs: Vec<_> = SPOKEN
            .iter()
            .map(|spoken| scope.spawn(move || run(spoken)))
            .collect();
        runs.into_iter().flat_map(|run| run.join().unwrap()).collect()
    });
    std::fs::remove_dir_all(&dir).unwrap();
    println!("{} scenarios in {} runs", all.len(), results.len());
    let failures: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
