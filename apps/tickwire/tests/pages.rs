//! The documentation runs: every `tickwire` command that README.md and docs/ show is run as it is written, in
//! the order of the page, in a folder with the files that it names and in a network of its own. Lengths alone
//! are shortened, and one feed is measured for all. What cannot be run here names the test that runs it; a
//! command for which the table below has no row is a failure.

mod common;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, Guard, run, text, tickwire};
use tickwire_testdata::pages::{blocks, command_lines, commands, of_the_program, pages};
use tickwire_testdata::{not_tested, workspace};

/// How long one command may take on a machine that others use too.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is done with a command of the pages.
enum How {
    /// It ends by itself, with one of these codes.
    Ends(&'static [i32]),
    /// It is asked again and again until it ends with 0: what it asks begins only now.
    Answers,
    /// It goes on until the page is over, and then ends by Ctrl-C. Those behind it wait until it has said
    /// this.
    Serves(&'static str),
    /// It is run by another test.
    By(&'static str),
}
use How::{Answers, By, Ends, Serves};

/// A row: how a command begins, words in it that are written otherwise here, words behind it.
struct Row(
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
    How,
);

const DONE: How = Ends(&[0]);

/// The first row that fits a command is its own. Longer beginnings stand before shorter ones.
const ROWS: &[Row] = &[
    Row("demo quoter --entry", &[], &["--seconds", "3"], DONE),
    // On a busy machine the eye may come too late for everything in this time: the demonstration goes on
    // then.
    Row("demo quoter", &[], &["--seconds", "3"], DONE),
    Row("demo", &[], &["--seconds", "0.5", "--symbols", "20"], DONE),
    Row("new", &[], &[], DONE),
    Row(
        "backtest",
        &[],
        &[],
        By("a_backtest_is_the_same_each_time_and_obeys_parameters_limits_and_latency"),
    ),
    Row(
        "sim",
        &[],
        &[],
        By("it_trades_with_the_simulated_exchange_and_both_sides_agree"),
    ),
    Row("exchange -c examples/daemon.toml", &[], &[], Serves("listening")),
    Row("exchange -c examples/options.toml", &[], &[], Serves("listening")),
    // Both write a journal into the folder of the examples.
    Row(
        "exchange -c examples/exchange.toml",
        &[],
        &[],
        By("no_acknowledged_order_is_lost_when_the_exchange_is_killed_under_load_again_and_again"),
    ),
    Row(
        "journal examples/exchange.journal",
        &[],
        &[],
        By("no_acknowledged_order_is_lost_when_the_exchange_is_killed_under_load_again_and_again"),
    ),
    Row(
        "exchange --socket",
        &[],
        &[],
        By("an_operator_halts_resumes_breaks_loses_cuts_off_and_closes_and_a_restart_knows_what_was_done"),
    ),
    Row("exchange -c $wait.toml", &[], &[], By("one_core_is_enough")),
    Row("trade -c $wait.toml", &[], &[], By("one_core_is_enough")),
    Row(
        "exchange -c examples/equities.toml --write-capture",
        &[("1000000", "3000"), ("10000000", "3000"), ("50000000", "3000")],
        &[],
        DONE,
    ),
    Row(
        "exchange -c examples/cme.toml --write-capture",
        &[],
        &["--packets", "2000"],
        DONE,
    ),
    Row(
        "exchange -c examples/nyse-american.toml --write-capture",
        &[("20000", "2000")],
        &[],
        DONE,
    ),
    Row(
        "exchange --venue quadra",
        &[],
        &[],
        By("an_exchange_and_a_trader_alone_find_each_other"),
    ),
    Row(
        "trade --venue quadra",
        &[],
        &[],
        By("an_exchange_and_a_trader_alone_find_each_other"),
    ),
    Row(
        "trade --socket",
        &[],
        &[],
        By("a_killed_trader_has_nothing_open_and_sends_nothing_until_it_is_resumed"),
    ),
    Row(
        "watchdog",
        &[],
        &[],
        By("the_watchdog_cancels_what_a_quoter_that_stands_still_or_is_gone_has_in_the_book"),
    ),
    Row(
        "reconcile",
        &[],
        &[],
        By("a_trader_that_is_cut_off_again_and_again_comes_back_and_agrees_with_the_venue"),
    ),
    Row("quote -c examples/options.toml", &[], &[], Serves("quoting")),
    Row(
        "quote --socket",
        &[("FOLDER", "@RUNTIME/tickwire-quoter")],
        &[],
        Answers,
    ),
    Row(
        "risk --socket FOLDER",
        &[("FOLDER", "@RUNTIME/tickwire-quoter")],
        &[],
        Answers,
    ),
    Row(
        "risk --socket",
        &[],
        &[],
        By("the_account_explains_what_was_earned_and_measures_what_was_promised"),
    ),
    Row(
        "risk -c …",
        &[],
        &[],
        By("the_page_of_a_portfolio_draws_every_picture_in_a_browser_too"),
    ),
    Row("risk", &[], &[], DONE),
    Row(
        "vol edit -s FOLDER",
        &[("FOLDER", "@RUNTIME/tickwire-quoter")],
        &[],
        By("a_running_quoter_is_told_the_same_lines"),
    ),
    Row(
        "vol edit -s",
        &[],
        &[],
        By("a_running_quoter_is_told_the_same_lines"),
    ),
    Row("vol", &[], &[], DONE),
    Row(
        "feed -c FILE",
        &[("FILE", "examples/equities.toml"), ("CAPTURE...", "day.pcap")],
        &["--folder", "@HERE/replayed"],
        DONE,
    ),
    Row("feed -c examples/daemon.toml", &[], &[], Serves("folder: ")),
    Row(
        "feed -c examples/equities.toml --replay",
        &[],
        &["--folder", "@HERE/replayed"],
        DONE,
    ),
    Row(
        "feed -c market.toml --replay",
        &[],
        &["--folder", "@HERE/replayed"],
        DONE,
    ),
    Row(
        "exchange -c market.toml --write-capture",
        &[("10000000", "3000")],
        &[],
        DONE,
    ),
    Row("book", &[], &[], Answers),
    Row("top", &[], &["--once"], Answers),
    Row("subscribe", &[], &[], Answers),
    Row("unsubscribe", &[], &[], Ends(&[0, 1])),
    Row("subscriptions", &[], &[], DONE),
    Row(
        "latency latency/latency_*.txt",
        &[("latency/latency_*.txt", "latency/latency_nasdaq.txt")],
        &[],
        DONE,
    ),
    Row("check nagios", &[], &[], Ends(&[0, 1, 2])),
    Row(
        "replay orders.mbo.dbn.zst",
        &[],
        &[],
        By("the_books_of_dbn_orders_equal_the_vendors_ten_levels_at_every_event"),
    ),
    Row(
        "replay AAPL_message_10.csv",
        &[],
        &[],
        By("the_books_of_lobster_messages_equal_its_order_book_after_every_message"),
    ),
    Row(
        "jobs",
        &[],
        &[],
        By("workers_that_are_killed_are_gone_on_with_and_nothing_is_done_twice"),
    ),
    Row(
        "export --live",
        &[],
        &[],
        By("rows_of_a_daemon_are_those_of_its_capture_and_go_on_after_its_death"),
    ),
    Row("export", &[], &[], DONE),
    Row(
        "archive",
        &[
            ("feeds.toml", "examples/whole-market.toml"),
            ("day/*.pcapng", "day.pcap"),
        ],
        &[],
        DONE,
    ),
    Row(
        "strategy backtest examples/strategies/imbalance_taker.tw",
        &[],
        &[],
        By("a_backtest_on_an_archive_is_the_one_on_its_capture"),
    ),
    Row(
        "record",
        &[],
        &[],
        By("a_market_that_is_played_is_recorded_and_gives_the_same_books"),
    ),
    // Needs a program with Aeron, and hosts: `cargo xtask aeron`.
    Row(
        "mirror",
        &[],
        &[],
        By("a_program_without_aeron_says_how_to_have_one_with_it"),
    ),
    Row("inspect day/*.pcapng", &[("day/*.pcapng", "day.pcap")], &[], DONE),
    Row(
        "inspect 01302020.NASDAQ_ITCH50.gz",
        &[],
        &[],
        By("lines_symbols_rates_and_gaps_of_a_capture_are_told_in_text_and_json"),
    ),
    Row("inspect", &[], &[], DONE),
    Row("replay", &[], &[], DONE),
    Row("decode", &[], &[], DONE),
    Row(
        "play moex.pcap",
        &[],
        &[],
        By("one_at_a_time_waits_for_each_order_and_keeps_every_sample"),
    ),
    Row("play", &[("veth0", "lo")], &[], DONE),
    Row(
        "bench --publish",
        &[("500000", "2000"), ("5", "1")],
        &["--messages", "2000", "--runs", "1", "--symbols", "20"],
        DONE,
    ),
    Row(
        "bench --feed",
        &[("500000", "2000"), ("5", "1"), ("all", "itch50")],
        &["--messages", "2000", "--runs", "1", "--symbols", "20"],
        DONE,
    ),
    Row(
        "bench",
        &[],
        &[],
        By("the_benchmark_checks_its_answer_on_a_small_session"),
    ),
    Row(
        "host check --cores 2-3 --jitter 10",
        &[("2-3", "0"), ("10", "0.1")],
        &[],
        Ends(&[0, 1]),
    ),
    Row(
        "host check",
        &[("eth0", "lo")],
        &["--jitter", "0.1"],
        Ends(&[0, 1]),
    ),
    Row("host explain", &[], &[], DONE),
    Row("lab list", &[], &[], DONE),
    Row(
        "lab run quadra",
        &[],
        &[],
        By("exchange_and_trader_answer_every_message_through_every_back_end"),
    ),
    Row(
        "lab run cep",
        &[],
        &[],
        By("the_cep_scenario_checks_every_order_and_fails_on_a_wrong_book"),
    ),
    Row(
        "lab run gati",
        &[],
        &[],
        By("the_gati_scenario_compares_the_books_of_every_feed"),
    ),
    Row(
        "lab run fix",
        &[],
        &[],
        By("a_trade_by_fix_is_checked_order_by_order_and_timed_leg_by_leg"),
    ),
    Row(
        "lab run bts",
        &[],
        &[],
        By("quotes_are_matched_by_what_caused_them_and_a_lost_one_fails_the_run"),
    ),
    Row(
        "lab",
        &[],
        &[],
        By("a_run_is_kept_whole_shown_again_and_compared_with_another"),
    ),
    Row("fix log", &[], &[], By("the_examples_work_out_of_the_box")),
    Row("fix acceptor", &[], &[], Serves("listening")),
    Row("fix initiator", &[], &[], DONE),
    Row(
        "fix bench",
        &[("0,1", "0"), ("20000", "200"), ("5", "1")],
        &[],
        By("the_benchmark_has_every_order_answered_and_takes_no_memory"),
    ),
    Row("config", &[], &[], DONE),
];

/// Pages whose commands ask programs that others start.
const DAEMON: &[&str] = &["feed -c examples/daemon.toml", "exchange -c examples/daemon.toml"];
const QUOTER: &[&str] = &[
    "exchange -c examples/options.toml",
    "quote -c examples/options.toml",
];
const BEFORE: &[(&str, &[&str])] = &[
    ("docs/controls.md", QUOTER),
    ("docs/monitoring.md", DAEMON),
    ("docs/views.md", DAEMON),
];

/// A checkout with what the pages name in it.
struct Place {
    folder: Folder,
    here: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = Folder::new("pages");
        let here = folder.0.join("checkout");
        std::fs::create_dir(&here).expect("a folder");
        for entry in std::fs::read_dir(workspace()).expect("the checkout") {
            let entry = entry.expect("an entry");
            let name = entry.file_name();
            if !["target", ".git", "examples"].iter().any(|other| name == *other) {
                symlink(entry.path(), here.join(name)).expect("a link");
            }
        }
        Place::examples(&here.join("examples"));
        for folder in ["latency", "runtime"] {
            std::fs::create_dir(here.join(folder)).expect("a folder");
        }
        let place = Place { folder, here };
        place.write("nasdaq", &["01302020.NASDAQ_ITCH50.gz"]);
        place.write("whole-market", &["day.pcap", "day.pcap.zst", "a.pcap", "b.pcap"]);
        place.write("cqs", &["capture.pcap"]);
        // What the page on the daemon's figures makes by `sed`.
        let market =
            std::fs::read_to_string(workspace().join("examples/equities.toml")).expect("a file of ours");
        let market = market.replace("\n# latency_files", "\nlatency_files");
        std::fs::write(place.here.join("market.toml"), market).expect("a file");
        let volatilities = workspace().join("examples/quoter/two-expiries.toml");
        std::fs::copy(volatilities, place.here.join("vol.toml")).expect("a file of ours");
        place
    }

    /// The examples, but that the market of the daemon is a tenth as busy: it goes on beside all commands of
    /// the pages that ask the daemon something.
    fn examples(there: &Path) {
        std::fs::create_dir(there).expect("a folder");
        for entry in std::fs::read_dir(workspace().join("examples")).expect("the examples") {
            let entry = entry.expect("an entry");
            symlink(entry.path(), there.join(entry.file_name())).expect("a link");
        }
        let daemon = there.join("daemon.toml");
        let config = std::fs::read_to_string(&daemon).expect("a file of ours");
        let calm = config.replace("rate = 20000\n", "rate = 2000\n");
        assert_ne!(calm, config, "its rate is another one");
        std::fs::remove_file(&daemon).expect("a link");
        std::fs::write(daemon, calm).expect("a file");
    }

    /// A capture of an example under these names. Files are read by what is in them, not by their names.
    fn write(&self, example: &str, names: &[&str]) {
        let config = workspace().join(format!("examples/{example}.toml"));
        let first = self.here.join(names[0]);
        let args = [
            "exchange",
            "-c",
            config.to_str().expect("text"),
            "--packets",
            "3000",
        ];
        let done = run(&[&args[..], &["--write-capture", first.to_str().expect("text")]].concat());
        assert!(done.status.success(), "{example}: {}", text(&done.stderr));
        for name in &names[1..] {
            std::fs::copy(&first, self.here.join(name)).expect("a copy");
        }
    }

    /// The program in this place, with nothing of the machine's own.
    fn command(&self, args: &[String]) -> Command {
        let mut command = tickwire();
        command
            .args(args)
            .current_dir(&self.here)
            .env("TICKWIRE_FOLDER", self.here.join("region"))
            .env("XDG_RUNTIME_DIR", self.here.join("runtime"))
            .env("COLUMNS", "120")
            .stdin(Stdio::null());
        command
    }
}

/// A command of a page that goes on, and what it says.
struct Served {
    process: Guard,
    shown: String,
    output: PathBuf,
}

impl Served {
    fn start(place: &Place, shown: &str, args: &[String], word: &str) -> Result<Served, String> {
        let nth = std::fs::read_dir(&place.folder.0).map_or(0, Iterator::count);
        let output = place.folder.0.join(format!("served-{nth}"));
        let file = std::fs::File::create(&output).expect("a file");
        let errors = file.try_clone().expect("the same file");
        let child = place.command(args).stdout(file).stderr(errors).spawn();
        let mut served = Served {
            process: Guard(child.expect("the program starts")),
            shown: shown.to_owned(),
            output,
        };
        let begin = Instant::now();
        while !served.said().contains(word) {
            let ended = served.process.0.try_wait().expect("a child can be waited for");
            if ended.is_some() || begin.elapsed() > PATIENCE {
                return Err(format!(
                    "{shown}: {ended:?}, never said {word:?}: {}",
                    served.said()
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(served)
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Ctrl-C, if it goes on still.
    fn end(mut self) -> Result<(), String> {
        if self
            .process
            .0
            .try_wait()
            .expect("a child can be waited for")
            .is_none()
        {
            common::signal("INT", self.process.0.id());
        }
        let code = self.process.wait(PATIENCE).and_then(|status| status.code());
        match code {
            Some(0 | 130) => Ok(()),
            _ => Err(format!("{}: ends with {code:?}: {}", self.shown, self.said())),
        }
    }
}

/// Runs one command; whatever is wrong with it.
fn follow(
    place: &Place,
    shown: &str,
    row: &Row,
    words: Vec<String>,
    served: &mut Vec<Served>,
) -> Result<(), String> {
    let Row(_, replaced, added, how) = row;
    let place_of = |word: &str| {
        let here = place.here.display().to_string();
        word.replace("@RUNTIME", &format!("{here}/runtime"))
            .replace("@HERE", &here)
    };
    let mut args: Vec<String> = words
        .into_iter()
        .map(|word| match replaced.iter().find(|(from, _)| *from == word) {
            Some((_, to)) => place_of(to),
            None => word,
        })
        .collect();
    // What a page says already is not said again.
    for pair in added.chunks(2) {
        if !args.iter().any(|arg| arg == pair[0]) {
            args.extend(pair.iter().map(|word| place_of(word)));
        } else if let (Some(at), [_, value]) = (args.iter().position(|arg| arg == pair[0]), pair) {
            args[at + 1] = place_of(value);
        }
    }
    let begin = Instant::now();
    let run = || {
        let mut command = place.command(&args);
        let done = command.output().expect("the program starts");
        let said = format!("{}{}", text(&done.stdout), text(&done.stderr));
        (done.status.code(), said)
    };
    match how {
        By(_) => Ok(()),
        Serves(word) => {
            served.push(Served::start(place, shown, &args, word)?);
            Ok(())
        }
        Ends(codes) => {
            let (code, said) = run();
            match code {
                Some(code) if codes.contains(&code) => Ok(()),
                _ => Err(format!("{shown}: {args:?} ends with {code:?}: {said}")),
            }
        }
        Answers => loop {
            let (code, said) = run();
            match code {
                Some(0) => return Ok(()),
                _ if begin.elapsed() > PATIENCE => {
                    return Err(format!("{shown}: {args:?} ends with {code:?}: {said}"));
                }
                _ => std::thread::sleep(Duration::from_millis(100)),
            }
        },
    }
}

/// Every function that is a test somewhere in the workspace.
fn tests() -> String {
    let mut all = String::new();
    let mut folders = ["apps", "crates", "examples"]
        .map(|name| workspace().join(name))
        .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                all += &std::fs::read_to_string(path).expect("a source");
            }
        }
    }
    all
}

fn row_of(words: &[String]) -> Option<&'static Row> {
    let whole = words.join(" ");
    ROWS.iter().find(|Row(begins, ..)| {
        whole
            .strip_prefix(begins)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

/// Whether this process is where it has a loopback of its own; otherwise the test runs again in such a place.
fn is_alone(test: &str) -> bool {
    const INSIDE: &str = "TICKWIRE_TEST_PAGES";
    if std::env::var_os(INSIDE).is_some() {
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        assert!(
            up.is_ok_and(|status| status.success()),
            "loopback is there in a network of its own"
        );
        return true;
    }
    let this = std::env::current_exe().expect("a test has a file");
    let may = Command::new("unshare")
        .args(["-Urn", "ip", "link", "set", "lo", "up"])
        .output();
    if !may.is_ok_and(|done| done.status.success()) {
        not_tested("the pages' commands need a network of their own (unshare -Urn, ip)");
        return false;
    }
    let inside = Command::new("unshare")
        .arg("-Urn")
        .arg(this)
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(INSIDE, "1")
        .output();
    let done = inside.expect("it has just run");
    // First what went wrong: a report may show the beginning only.
    assert!(
        done.status.success(),
        "{}{}",
        text(&done.stderr),
        text(&done.stdout)
    );
    false
}

#[test]
fn every_command_of_the_pages_runs_as_it_is_written() {
    if !is_alone("every_command_of_the_pages_runs_as_it_is_written") {
        return;
    }
    let place = Place::new();
    let (mut count, mut elsewhere, mut wrong) = (0, 0, Vec::new());
    for page in pages() {
        let name = page
            .strip_prefix(workspace())
            .unwrap_or(&page)
            .display()
            .to_string();
        let mut served = Vec::new();
        let before = BEFORE.iter().filter(|(page, _)| *page == name);
        for shown in before.flat_map(|(_, commands)| *commands) {
            let words: Vec<String> = shown.split(' ').map(str::to_owned).collect();
            let row = row_of(&words).expect("there is one");
            wrong.extend(follow(&place, shown, row, words, &mut served).err());
        }
        let mut ran = 0;
        for block in blocks(&page) {
            if !matches!(block.language.as_str(), "" | "text" | "sh" | "bash" | "console") {
                continue;
            }
            for line in command_lines(&block) {
                for words in commands(&line).iter().filter_map(|words| of_the_program(words)) {
                    let shown = format!("{}: tickwire {}", block.place, words.join(" "));
                    let Some(row) = row_of(&words) else {
                        wrong.push(format!("{shown}: no row of this test says how to run it"));
                        continue;
                    };
                    if matches!(row.3, By(_)) {
                        elsewhere += 1;
                    } else {
                        ran += 1;
                        let begin = Instant::now();
                        wrong.extend(follow(&place, &shown, row, words, &mut served).err());
                        println!("{shown}: {:.1} s", begin.elapsed().as_secs_f64());
                    }
                }
            }
        }
        // Who asks goes before who answers.
        while let Some(last) = served.pop() {
            wrong.extend(last.end().err());
        }
        // Who reads the next page has not done what this one says.
        let _ = std::fs::remove_dir_all(place.here.join("../my-strategy"));
        count += ran;
    }
    assert!(
        wrong.is_empty(),
        "{} commands:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    println!("{count} commands ran, {elsewhere} are run by other tests");
    assert!(count > 60, "{count} commands are run");
}

#[test]
fn a_command_that_is_run_elsewhere_names_the_test_that_does() {
    let tests = tests();
    for Row(begins, _, _, how) in ROWS {
        if let By(name) = how {
            let there = tests.matches(&format!("fn {name}()")).count();
            assert!(there > 0, "{begins}: there is no test {name}");
        }
    }
    // A row that stands behind one that takes all of its commands is none.
    for (at, Row(begins, ..)) in ROWS.iter().enumerate() {
        let words: Vec<String> = begins.split(' ').map(str::to_owned).collect();
        let first = row_of(&words).map(|row| row.0);
        assert_eq!(first, Some(*begins), "row {at} is never reached");
    }
    assert!(Path::new(&workspace()).is_dir());
}
