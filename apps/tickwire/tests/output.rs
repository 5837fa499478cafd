//! What becomes of a command whose output nobody takes: a reader that has gone (`| head -c 1`) and a full
//! disk (`> /dev/full`).

mod common;

use common::{Folder, Guard, run, text, tickwire};
use std::fs::OpenOptions;
use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

/// Commands that print something and end by themselves, and the exit code with which they do when somebody
/// reads. `{…}` are made by [`Files`].
const COMMANDS: &[(&str, i32)] = &[
    ("config", 0),
    ("config --feed mdp3", 0),
    ("counters", 0),
    ("demo --seconds 0.2 --symbols 3 --dir {dir}/demo", 0),
    ("decode {dir}/day.pcap", 0),
    ("export {dir}/day.pcap --out {dir}/day.csv", 0),
    ("inspect {dir}/day.pcap", 0),
    ("inspect {dir}/day.pcap --json", 0),
    ("replay {dir}/day.pcap", 0),
    ("replay {dir}/day.pcap --json --book all", 0),
    (
        "feed -c examples/nasdaq.toml --folder {dir}/played --replay {dir}/day.pcap --speed max --exit",
        0,
    ),
    ("journal {dir}/exchange.journal", 0),
    ("journal {dir}/exchange.journal --config", 0),
    ("bench --messages 20000 --symbols 20", 0),
    ("host check --jitter 0", 1),
    ("host check --jitter 0 --json", 1),
    ("host explain", 0),
    ("host tune --dry-run", 0),
    ("lab list", 0),
    ("lab run quadra --print", 0),
    (
        "lab run selftest --quiet --out {dir}/again --set run.samples=100 --set run.repetitions=1",
        0,
    ),
    ("lab report {lab} --format html", 0),
    ("lab report {lab} --format text", 0),
    ("lab compare {lab} {lab}", 0),
    ("fix settings", 0),
    ("fix dictionary FIX.4.4", 0),
    ("fix store -c {dir}/fix.cfg", 0),
    ("fix log {dir}/fix.log", 0),
    ("fix bench --orders 300 --rounds 1", 0),
    ("vol show -f {dir}/vol.toml", 0),
    ("vol show -f {dir}/vol.toml --format html", 0),
    ("vol log -f {dir}/vol.toml", 0),
    (
        "risk -c examples/risk/portfolio.toml --fills examples/risk/fills.csv",
        0,
    ),
    ("completions bash", 0),
    ("strategy check examples/strategies/twap_slice.tw", 0),
    ("strategy test examples/strategies/twap_slice.tw", 0),
    ("strategy explain examples/strategies/twap_slice.tw", 0),
    (
        "strategy backtest examples/strategies/imbalance_taker.tw -c examples/strategies/backtest.toml {dir}/day.pcap",
        0,
    ),
    ("check nagios --folder {dir}/region", 2),
    ("check cacti --folder {dir}/region", 0),
    ("book AAPL --once --folder {dir}/region", 0),
    ("top --once --folder {dir}/region", 0),
    ("stats --interval 0.1 --folder {dir}/region", 0),
    ("latency --folder {dir}/region", 0),
];

/// Commands that go on until Ctrl-C, which comes once they have had time to print: only that they do not
/// panic is looked at.
const GO_ON: &[&str] = &[
    "exchange -c {dir}/exchange.toml",
    "feed -c {dir}/exchange.toml --folder {dir}/live",
    "fix acceptor -c {dir}/acceptor.cfg --stats",
    "trade -c {dir}/exchange.toml",
    "top --folder {dir}/region",
    "book AAPL --folder {dir}/region",
];

/// Commands that are not above, with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("reconcile", "its rows are printed as those of journal are"),
    ("new", "writes files, and says one line"),
    ("watchdog", "says its lines as trade does"),
    (
        "quote",
        "says its lines as trade does; demo quoter prints its report",
    ),
    ("play", "prints its result as replay does"),
    (
        "mirror publish",
        "says lines; a program built without Aeron says so: apps/tickwire/tests/mirror.rs",
    ),
    ("mirror receive", "as mirror publish"),
    ("archive", "writes a file, and says one line"),
    ("record", "prints one table when it ends, as replay does"),
    ("jobs plan", "prints JSON lines, for programs"),
    ("jobs run", "as jobs plan"),
    (
        "subscribe",
        "prints the table of subscriptions, which a running daemon answers",
    ),
    ("unsubscribe", "as subscribe"),
    ("subscriptions", "as subscribe"),
    (
        "strategy fmt",
        "writes its files; --check prints as strategy check does",
    ),
    ("strategy run", "says its lines as trade does"),
    ("strategy server", "speaks a protocol: crates/language-server"),
    ("man", "writes a folder of pages"),
    ("strategy rtl", "writes files, and says which in its last line"),
    (
        "strategy cosim",
        "builds a core by Verilator: crates/cosim/tests/days.rs",
    ),
    ("fix initiator", "prints as acceptor does"),
    ("fix trader", "prints nothing"),
    ("host undo", "changes the machine"),
    ("lab join", "prints the report that report prints"),
    ("vol edit", "changes its file, and says one line"),
    ("vol undo", "as vol edit"),
    ("vol fit", "as vol edit"),
];

/// What the commands read, made by the program itself.
struct Files {
    folder: Folder,
    lab: String,
}

impl Files {
    fn new(name: &str) -> Files {
        let folder = Folder::new(name);
        let dir = folder.0.display().to_string();
        let made = |command: &str, codes: &[i32]| {
            let (code, said) = read_by_somebody(&split(command, &dir, ""));
            assert!(
                code.is_some_and(|code| codes.contains(&code)),
                "{command}: {code:?} {said}"
            );
        };
        made(
            "exchange -c examples/nasdaq.toml --write-capture {dir}/day.pcap --packets 400",
            &[0],
        );
        let [a, b, c, d] = common::free_ports();
        let live = format!(
            "[[feed]]\nvenue = \"nasdaq\"\n[[feed.channel]]\nname = \"1\"\nlive = {{ a = \"239.192.83.1:{a}\", b = \"239.192.83.2:{b}\" }}\n\
             requests = \"127.0.0.1:{c}\"\nsnapshot_server = \"127.0.0.1:{d}\"\n[order_entry]\naddress = \"127.0.0.1:0\"\n"
        );
        let exchange = "[exchange]\nsymbols = 3\nrate = 1000\nduration_s = 0.2\nlinger_s = 0\n";
        folder.file(
            "exchange.toml",
            format!("{live}{}", exchange.replace("0.2", "3600.0")),
        );
        let journal = format!("{live}{exchange}[exchange.journal]\nfile = \"exchange.journal\"\n");
        folder.file("journal.toml", journal);
        made("exchange -c {dir}/journal.toml", &[0]);
        let session = "BeginString=FIX.4.4\nSenderCompID=US\nTargetCompID=THEM\nUseDataDictionary=N\n";
        let fix = format!("[SESSION]\nConnectionType=acceptor\nSocketAcceptPort=0\n{session}");
        folder.file("acceptor.cfg", &fix);
        folder.file("fix.cfg", format!("{fix}FileStorePath=store\n"));
        made("fix store -c {dir}/fix.cfg --next-out 5 --next-in 7", &[0]);
        folder.file("fix.log", LOGGED);
        let volatilities = tickwire_testdata::workspace().join("examples/quoter/two-expiries.toml");
        std::fs::copy(volatilities, folder.0.join("vol.toml")).expect("a file of ours");
        made("vol edit -f {dir}/vol.toml atm 2026-03-20 +0.005", &[0]);
        made(
            "lab run selftest --quiet --out {dir}/lab --set run.samples=100 --set run.repetitions=1",
            &[0],
        );
        // It stays behind when its daemon has ended, and says so.
        made(
            "feed -c examples/nasdaq.toml --folder {dir}/region --replay {dir}/day.pcap --speed max --exit",
            &[0],
        );
        let lab = std::fs::read_dir(folder.0.join("lab"))
            .expect("a folder")
            .flatten();
        let lab = lab
            .map(|entry| entry.path())
            .find(|path| path.is_dir())
            .expect("a folder of results");
        Files {
            lab: lab.display().to_string(),
            folder,
        }
    }

    fn args_of(&self, command: &str) -> Vec<String> {
        split(command, &self.folder.0.display().to_string(), &self.lab)
    }
}

/// A message as `fix log` reads it.
const LOGGED: &str = "20261125-08:59:40.590000000 : 8=FIX.4.4\x019=63\x0135=2\x0134=5\x0149=VENUE\x0152=20261125-08:59:40.590\x0156=TRADER\x017=4\x0116=0\x0110=169\x01\n";

fn split(command: &str, dir: &str, lab: &str) -> Vec<String> {
    let place = |word: &str| word.replace("{dir}", dir).replace("{lab}", lab);
    command.split(' ').map(place).collect()
}

/// Exit code and everything that is said, where somebody reads all of it.
fn read_by_somebody(args: &[String]) -> (Option<i32>, String) {
    let mut command = tickwire();
    command.args(args).current_dir(tickwire_testdata::workspace());
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    (output.status.code(), said)
}

/// Who reads our standard output.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reader {
    /// A pipe whose other end is closed before anything is written.
    Gone,
    /// A pipe whose other end takes one byte.
    OneByte,
    /// A device without room.
    Full,
}

/// The program with such a reader.
fn start(args: &[String], reader: Reader) -> Guard {
    let stdout = match reader {
        Reader::Full => Stdio::from(
            OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .expect("Linux has /dev/full"),
        ),
        _ => Stdio::piped(),
    };
    let child = tickwire()
        .args(args)
        .current_dir(tickwire_testdata::workspace())
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn();
    Guard(child.expect("the program starts"))
}

/// Exit code and standard error.
fn run_with(args: &[String], reader: Reader) -> (Option<i32>, String) {
    let mut child = start(args, reader);
    let taken = child.0.stdout.take();
    let mut stderr = child.0.stderr.take().expect("piped");
    let listener = std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = stderr.read_to_end(&mut said);
        said
    });
    if let (Reader::OneByte, Some(mut out)) = (reader, taken) {
        let _ = out.read(&mut [0]);
    }
    let status = child.wait(Duration::from_secs(120)).expect("the command ends");
    (status.code(), text(&listener.join().expect("reads")))
}

/// Every command that has no command below it, as `--help` lists them: `lab run`, `decode`, and so on.
fn leaves(prefix: &[&str]) -> Vec<Vec<String>> {
    let mut args = prefix.to_vec();
    args.push("--help");
    let help = text(&run(&args).stdout);
    let below: Vec<String> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        // A name stands two characters in; what is further in continues the line above.
        .filter(|line| line.as_bytes().get(2).is_some_and(|b| *b != b' '))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|name| name != "help")
        .collect();
    if below.is_empty() {
        return vec![prefix.iter().map(|&word| word.to_owned()).collect()];
    }
    below
        .iter()
        .flat_map(|name| {
            let mut path = prefix.to_vec();
            path.push(name);
            leaves(&path)
        })
        .collect()
}

#[test]
fn every_command_survives_a_reader_that_goes() {
    let files = Files::new("output");
    let mut cases = Vec::new();
    for (command, code) in COMMANDS {
        let args = files.args_of(command);
        // The long ones once are enough, and what they print when somebody reads is looked at elsewhere.
        let is_long = ["demo", "fix bench", "bench", "lab run selftest"]
            .iter()
            .any(|name| command.starts_with(name));
        if is_long {
            cases.push((args, Reader::OneByte));
            continue;
        }
        // Where there is nothing to print, nothing is shown by surviving.
        let (ended, said) = read_by_somebody(&args);
        let is_shown = ended == Some(*code) || (ended == Some(0) && command.starts_with("host check"));
        assert!(is_shown && !said.is_empty(), "{command}: {ended:?} {said}");
        cases.extend([Reader::OneByte, Reader::Full].map(|reader| (args.clone(), reader)));
    }
    survive(cases);
}

#[test]
fn commands_that_go_on_survive_a_reader_that_goes() {
    let files = Files::new("output-live");
    for command in GO_ON {
        for reader in [Reader::Gone, Reader::Full] {
            let mut child = start(&files.args_of(command), reader);
            let mut stderr = child.0.stderr.take().expect("piped");
            drop(child.0.stdout.take());
            std::thread::sleep(Duration::from_millis(700));
            if child.0.try_wait().expect("a child can be waited for").is_none() {
                common::signal("INT", child.0.id());
            }
            let status = child.wait(Duration::from_secs(120)).expect("the command ends");
            let mut said = Vec::new();
            let _ = stderr.read_to_end(&mut said);
            let said = text(&said);
            assert!(
                status.code().is_some_and(|code| code != 101) && !said.contains("panicked"),
                "{command}, {reader:?}: {status} {said}"
            );
        }
    }
}

#[test]
fn no_command_is_forgotten() {
    let named = COMMANDS
        .iter()
        .map(|(command, _)| *command)
        .chain(GO_ON.iter().copied());
    let named: Vec<&str> = named
        .chain(LEFT_OUT.iter().map(|(command, _)| *command))
        .collect();
    for leaf in leaves(&[]) {
        let leaf = leaf.join(" ");
        let is_named = named.iter().any(|command| {
            command
                .strip_prefix(&leaf[..])
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        });
        assert!(is_named, "`tickwire {leaf}` is in none of the lists of this test");
    }
}

/// Runs every case, several at the same time: most of the time of a command is its start.
fn survive(cases: Vec<(Vec<String>, Reader)>) {
    const AT_ONCE: usize = 6;
    let cases = std::sync::Mutex::new(cases.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some((args, reader)) = cases.lock().expect("nobody panics with it").next() else {
                        return;
                    };
                    let (code, said) = run_with(&args, reader);
                    assert!(
                        code.is_some_and(|code| code != 101) && !said.contains("panicked"),
                        "{args:?}, {reader:?}: {code:?} {said}"
                    );
                }
            });
        }
    });
}

#[test]
fn the_help_of_every_command_survives_a_reader_that_goes() {
    let all = leaves(&[]);
    assert!(all.len() > 25, "{all:?}");
    // One way of printing serves them all (clap's): a reader of one kind each is enough.
    let readers = [Reader::Gone, Reader::Full].into_iter().cycle();
    let cases = all.into_iter().zip(readers).map(|(mut args, reader)| {
        args.push("--help".to_owned());
        (args, reader)
    });
    survive(cases.collect());
}

/// What is wrong with a page of help for a terminal of 80 columns.
fn ragged(page: &str) -> Vec<String> {
    let length = |line: &str| line.chars().count();
    let mut wrong: Vec<String> = page
        .lines()
        .filter(|line| length(line) > 80)
        .map(|line| format!("wider than 80: {line}"))
        .collect();
    let lines: Vec<&str> = page.lines().collect();
    for pair in lines.windows(2) {
        let (line, next) = (pair[0], pair[1]);
        let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
        let word = next.split(' ').next().unwrap_or_default();
        // Where the next word had room, somebody else has broken the line: that may only be after a sentence.
        let is_broken = length(line) + 1 + length(word) <= 80;
        if is_text(line) && is_text(next) && is_broken && !line.ends_with(['.', ':']) {
            wrong.push(format!("broken twice: {line} / {next}"));
        }
    }
    wrong
}

#[test]
fn help_fits_eighty_columns_and_is_wrapped_once() {
    let mut pages = Vec::new();
    let mut wanted = leaves(&[]);
    // What stands above them: `tickwire`, `tickwire lab`, and so on.
    let above: std::collections::BTreeSet<Vec<String>> = wanted
        .iter()
        .flat_map(|path| (0..path.len()).map(|n| path[..n].to_vec()))
        .collect();
    wanted.extend(above);
    for args in &wanted {
        let output = tickwire()
            .args(args)
            .arg("--help")
            .env("COLUMNS", "80")
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        let page = text(&output.stdout);
        assert!(
            output.status.success() && page.contains("Usage:"),
            "{args:?}: {page}"
        );
        pages.extend(
            ragged(&page)
                .into_iter()
                .map(|wrong| format!("{}: {wrong}", args.join(" "))),
        );
    }
    assert!(pages.is_empty(), "{}", pages.join("\n"));
}

/// Tables in as many columns as the environment says, colours and live views only where a terminal takes
/// them.
#[test]
fn tables_fit_the_columns_that_there_are() {
    for (command, columns) in [
        ("host check --jitter 0", 80),
        ("host check --jitter 0", 132),
        ("counters", 80),
        ("lab list", 80),
        ("vol show -f examples/quoter/two-expiries.toml", 80),
        (
            "risk -c examples/risk/portfolio.toml --fills examples/risk/fills.csv --format text",
            80,
        ),
    ] {
        let output = tickwire()
            .args(command.split(' '))
            .current_dir(tickwire_testdata::workspace())
            .env("COLUMNS", columns.to_string())
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        let shown = text(&output.stdout);
        assert!(shown.lines().count() > 5, "{command}: {}", text(&output.stderr));
        for line in shown.lines() {
            let length = line.chars().count();
            assert!(length <= columns, "{command} at {columns} has {length}: {line}");
        }
    }
}

#[test]
fn a_full_device_is_an_error_and_a_reader_that_goes_is_none() {
    for command in ["counters", "config", "lab list", "host explain"] {
        let args = split(command, "/nowhere", "/nowhere");
        let (code, said) = run_with(&args, Reader::Full);
        assert!(
            code == Some(3) && said.contains("cannot write to standard output: No space left"),
            "{command}: {code:?} {said}"
        );
        let (code, said) = run_with(&args, Reader::Gone);
        assert!(code == Some(0) && said.is_empty(), "{command}: {code:?} {said}");
    }
}
