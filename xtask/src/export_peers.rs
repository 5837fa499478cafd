//! `cargo xtask export-peers`: tables of ours beside those of itch-book, Databento's tools and tshark, from
//! the same files in one run.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::command::{dist_program, processor_time};
use crate::run::{cargo, must, python_with, root, target_dir};

const HELP: &str = "\
Makes a day of the simulated Nasdaq, as a capture and as the file that Nasdaq publishes, and has tables made of it by turns, each by a process of
its own: Parquet by itch-book (PyPI) beside ours, CSV of a DBN file by Databento's `dbn` (crates.io), and text of a capture by tshark, which
knows MoldUDP64 and not what is in it. Prints processor time (user and system, least of the turns), and what a message more costs: the whole day
less half of it. Adds, cancellations, fills, trades, their quantities and changes of the best prices have to be as many in both.

  cargo xtask export-peers [--program FILE]

  --program FILE  a tickwire that was built with `--features tables`; without it one is built with the profile dist, which takes ten minutes
                  and more on two cores

Needs Python 3 with venv, tshark (apt-get install tshark; without it that row is left out, and said) and the network once. Not part of check.
Exit code 1: the tables do not agree. 2: it could not begin.
";

/// What is installed.
const ITCH_BOOK: &str = "itch-book[cli]==0.2.1";
const DBN: [&str; 4] = ["dbn-cli", "--version", "0.73.0", "--locked"];
/// The day: 3.1 million messages of 2,000 symbols.
const DAY: &str = "\n[exchange]\nduration_s = 150.0\nrate = 20000\nsymbols = 2000\n[receiver]\nmax_instruments = 4096\nmax_orders = 1048576\nmax_levels = 1048576\n";
/// The session's day in the name of the file, which is how itch-book knows it.
const WHOLE: &str = "12302019.NASDAQ_ITCH50";
const HALF: &str = "12312019.NASDAQ_ITCH50";
/// Turns of which the least time counts.
const ROUNDS: usize = 3;

/// Nasdaq's file from the capture's line A and B, each message once; then half of it. Written apart from our
/// own decoder, so that it does not count what that would lose.
const SPLIT: &str = r#"
import struct, sys
capture, whole, half = sys.argv[1:]
messages, following = [], None
with open(capture, "rb") as file:
    head = file.read(24)
    order = "<" if head[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    while len(record := file.read(16)) == 16:
        frame = file.read(struct.unpack(order + "IIII", record)[2])
        mold = frame[14 + (frame[14] & 15) * 4 + 8:]
        number, count = struct.unpack(">QH", mold[10:20])
        if count in (0, 0xFFFF):
            continue
        following, at = following or number, 20
        for n in range(number, number + count):
            end = at + 2 + struct.unpack(">H", mold[at:at + 2])[0]
            if n == following:
                messages.append(mold[at:end])
                following += 1
            at = end
for path, part in ((whole, messages), (half, messages[:len(messages) // 2])):
    with open(path, "wb") as file:
        file.write(b"".join(part))
print(len(messages))
"#;

/// What both say of the day has to be the same.
const AGREE: &str = r#"
import sys
import pyarrow.compute as pc, pyarrow.parquet as pq
ours, theirs = sys.argv[1:]
def counts(table, column):
    return {row["values"]: row["counts"] for row in pc.value_counts(table[column]).to_pylist()}
mbo = counts(pq.read_table(f"{ours}/mbo.parquet", columns=["action"]), "action")
told = counts(pq.read_table(f"{theirs}/messages/messages.parquet", columns=["action"]), "action")
best = counts(pq.read_table(f"{ours}/mbp-1.parquet", columns=["action"]), "action")
trades = pq.read_table(f"{ours}/trades.parquet", columns=["size"])
others = pq.read_table(f"{theirs}/trades/trades.parquet", columns=["size"])
pairs = {
    "adds (a replacement is one)": (mbo["A"], told["A"] + told["M"]),
    "cancellations (a replacement and a fill are one)": (mbo["C"], told["C"] + told["M"] + told["F"]),
    "fills": (mbo["F"], told["F"]),
    "trades": (trades.num_rows, others.num_rows),
    "shares traded": (pc.sum(trades["size"]).as_py(), pc.sum(others["size"]).as_py()),
    "changes of the best prices": (sum(best.values()) - best["T"], pq.ParquetFile(f"{theirs}/bbo/bbo.parquet").metadata.num_rows),
}
for what, (own, other) in pairs.items():
    print(f"{what}: {own} and {other}")
sys.exit(any(own != other for own, other in pairs.values()))
"#;

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    crate::command::run_of_program("export-peers", HELP, words, compare)
}

/// A command, with the whole file or half of it in the place of `FILE`.
struct Contestant {
    words: Vec<String>,
    least: [f64; 2],
}

impl Contestant {
    fn new(words: &[&str]) -> Contestant {
        Contestant {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            least: [f64::MAX; 2],
        }
    }

    fn take_turn(&mut self, files: [&Path; 2], cost: &Path) -> Result<(), String> {
        for (least, file) in self.least.iter_mut().zip(files) {
            let words = self.words.iter().map(|word| match word.as_str() {
                "FILE" => file.display().to_string(),
                word => word.to_owned(),
            });
            *least = least.min(processor_time(&words.collect::<Vec<_>>(), cost)?.0);
        }
        Ok(())
    }

    /// Seconds for the whole file, and nanoseconds that one of so many messages more costs.
    fn figures(&self, messages: f64) -> (f64, f64) {
        let [half, whole] = self.least;
        (whole, (whole - half) / (messages / 2.0) * 1e9)
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn compare(program: Option<PathBuf>) -> Result<bool, String> {
    let folder = target_dir().join("export-peers");
    let (ours, theirs) = (folder.join("ours"), folder.join("theirs"));
    for folder in [&ours, &theirs] {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let python = python_with(ITCH_BOOK, &folder.join("venv"))?;
    must(
        cargo()
            .arg("install")
            .args(DBN)
            .arg("--root")
            .arg(folder.join("dbn")),
    )?;
    let program = dist_program(program.as_deref(), &["--features", "tables"])?;

    // The day: a capture, Nasdaq's file, half of it, and a DBN file of each.
    let (config, capture) = (folder.join("day.toml"), folder.join("day.pcap"));
    let example = root().join("examples/nasdaq.toml");
    let session = std::fs::read_to_string(&example).map_err(|e| format!("{}: {e}", example.display()))?;
    std::fs::write(&config, session + DAY).map_err(|e| format!("{}: {e}", config.display()))?;
    let mut make = Command::new(&program);
    make.args(["exchange", "-c"])
        .arg(&config)
        .arg("--write-capture")
        .arg(&capture);
    must(make.args(["--packets", "100000000"]))?;
    let (whole, half) = (folder.join(WHOLE), folder.join(HALF));
    let mut split = Command::new(&python);
    let split = split.args(["-c", SPLIT]).args([&capture, &whole, &half]).output();
    let said = String::from_utf8_lossy(&split.map_err(|e| e.to_string())?.stdout).into_owned();
    let messages: f64 = said
        .trim()
        .parse()
        .map_err(|_| format!("the capture could not be split: {said:?}"))?;
    let dbn = [&half, &whole].map(|file| file.with_extension("mbo.dbn"));
    for (file, dbn) in [&half, &whole].into_iter().zip(&dbn) {
        must(
            Command::new(&program)
                .arg("export")
                .arg(file)
                .arg("--out")
                .arg(dbn),
        )?;
    }

    let cost = folder.join("cost");
    let convert = python.with_file_name("itch2parquet");
    let of_dbn = folder.join("dbn/bin/dbn");
    let csv = [ours.join("dbn.csv"), theirs.join("dbn.csv")];
    let mut rows: Vec<(&str, [&Path; 2], [Contestant; 2])> = Vec::new();
    for (what, schema, table) in [
        ("every order event, Parquet: itch-book", "mbo", "messages"),
        ("changes of the best prices, Parquet: itch-book", "mbp-1", "bbo"),
        ("trades, Parquet: itch-book", "trades", "trades"),
    ] {
        let out = ours.join(format!("{schema}.parquet"));
        let own = Contestant::new(&[
            &text(&program),
            "export",
            "FILE",
            "--schema",
            schema,
            "--out",
            &text(&out),
        ]);
        let into = text(&theirs.join(table));
        let other = Contestant::new(&[
            &text(&convert),
            "convert",
            "FILE",
            &into,
            "--tables",
            table,
            "--no-md5",
        ]);
        rows.push((what, [&half, &whole], [own, other]));
    }
    let own = Contestant::new(&[&text(&program), "export", "FILE", "--out", &text(&csv[0])]);
    let to = text(&csv[1]);
    let other = Contestant::new(&[
        &text(&of_dbn),
        "FILE",
        "--csv",
        "--pretty",
        "--force",
        "--output",
        &to,
    ]);
    rows.push((
        "a DBN file to CSV: Databento's dbn 0.73.0",
        [&dbn[0], &dbn[1]],
        [own, other],
    ));

    for _ in 0..ROUNDS {
        for (_, files, contestants) in &mut rows {
            for contestant in contestants {
                contestant.take_turn(*files, &cost)?;
            }
        }
    }
    println!("{messages} messages\n");
    println!(
        "| what, beside whom | ours, s | theirs, s | times | ours, ns a message more | theirs | times |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (what, _, contestants) in &rows {
        let [own, other] = [0, 1].map(|at| contestants[at].figures(messages));
        let times = [other.0 / own.0, other.1 / own.1];
        println!(
            "| {what} | {:.2} | {:.2} | {:.1} | {:.0} | {:.0} | {:.1} |",
            own.0, other.0, times[0], own.1, other.1, times[1]
        );
    }
    of_capture(&program, &capture, &folder, &cost)?;
    println!();
    let lines = csv.map(|path| std::fs::read(&path).map(|text| text.iter().filter(|b| **b == b'\n').count()));
    let [own, other] = lines.map(|count| count.map_err(|e| format!("a table of a DBN file: {e}")));
    let (own, other) = (own?, other?);
    println!("lines of CSV: {own} and {other}");
    let mut agree = Command::new(&python);
    let agree = agree.args(["-c", AGREE]).args([&ours, &theirs]).status();
    Ok(agree.map_err(|e| e.to_string())?.success() && own == other)
}

/// Both lines of the capture as text, beside tshark's fields of the same packets.
fn of_capture(program: &Path, capture: &Path, folder: &Path, cost: &Path) -> Result<(), String> {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("\ntshark is not installed (apt-get install tshark): no row of it");
        return Ok(());
    }
    let csv = folder.join("ours/capture.csv");
    let own = [&text(program), "export", &text(capture), "--out", &text(&csv)].map(String::from);
    let tshark = "tshark -n -r FILE -d udp.port==26400,moldudp64 -T fields -e frame.time_epoch -e moldudp64.sequence -e moldudp64.count";
    let word = |word: &str| word.replace("FILE", &text(capture));
    let other: Vec<String> = tshark.split(' ').map(word).collect();
    let (own, (other, told)) = (processor_time(&own, cost)?.0, processor_time(&other, cost)?);
    println!(
        "| a capture of both lines to text: rows of `mbo` beside tshark's number and count of each of {} packets, one turn | {own:.2} | {other:.2} | {:.1} | | | |",
        told.lines().count(),
        other / own
    );
    Ok(())
}
