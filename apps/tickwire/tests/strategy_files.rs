//! `tickwire strategy` as a user has it: files that are right, files that are wrong, a backtest on a
//! recording of the simulated exchange.

use std::path::PathBuf;
use std::process::{Command, Output};

fn tickwire(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_tickwire"))
        .args(arguments)
        .output();
    output.expect("the program runs")
}

fn told(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn example(name: &str) -> String {
    let path = tickwire_testdata::workspace()
        .join("examples/strategies")
        .join(name);
    path.to_string_lossy().into_owned()
}

/// A folder of the test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tickwire-test-files-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("written");
        path.to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn files_are_checked_formatted_tested_and_explained() {
    let taker = example("best_offer_taker.tw");
    for (words, expected) in [
        (["strategy", "check", &taker], "on book usd  at most"),
        (["strategy", "test", &taker], "3 passed, 0 failed"),
        (
            ["strategy", "explain", &taker],
            "may buy usd at a limit, what can be had at once",
        ),
        (["strategy", "fmt", &taker], ""),
    ] {
        let output = tickwire(&words);
        assert!(
            output.status.success() && told(&output).contains(expected),
            "{}",
            told(&output)
        );
    }
    let folder = Folder::new("wrong");
    let wrong = folder.write(
        "wrong.tw",
        "strategy s\ninstrument a = \"A\"\non book a { buy a 1 @ a.ask[0].price }\n",
    );
    let output = tickwire(&["strategy", "check", &wrong]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains("wrong.tw:3:23"), "{}", told(&output));
    let failing = folder.write(
        "failing.tw",
        "strategy s\ninstrument a = \"A\"\ntest \"t\" {\n  expect buy a 1 @ 1.00\n}\n",
    );
    let output = tickwire(&["strategy", "test", &failing]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains("\"t\" FAILED"), "{}", told(&output));
    let ugly = folder.write("ugly.tw", "strategy   s\ninstrument a=\"A\"\n");
    assert_eq!(
        tickwire(&["strategy", "fmt", "--check", &ugly]).status.code(),
        Some(1)
    );
    assert!(tickwire(&["strategy", "fmt", &ugly]).status.success());
    let text = std::fs::read_to_string(&ugly).expect("the file");
    assert_eq!(text, "strategy s\ninstrument a = \"A\"\n");
    assert_eq!(
        tickwire(&["strategy", "check", "nowhere.tw"]).status.code(),
        Some(3)
    );
}

#[test]
fn a_file_is_backtested_the_same_each_time_and_obeys_its_parameters() {
    let folder = Folder::new("backtest");
    let config = folder.write(
        "exchange.toml",
        "[exchange]\nsymbols = 20\nrate = 20000\nduration_s = 1\n",
    );
    let capture = folder.0.join("sample.pcap").to_string_lossy().into_owned();
    let written = tickwire(&["exchange", "--config", &config, "--write-capture", &capture]);
    assert!(written.status.success(), "{}", told(&written));
    let (file, settings) = (example("imbalance_taker.tw"), example("backtest.toml"));
    let run = |more: &[&str]| {
        let mut words = vec!["strategy", "backtest", &file, "-c", &settings, "--json", &capture];
        words.extend(more);
        let output = tickwire(&words);
        assert!(output.status.success(), "{}", told(&output));
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        value
    };
    let first = run(&["--set", "tilt=55", "--set", "wide=100"]);
    assert_eq!(
        first["hash"],
        run(&["--set", "tilt=55", "--set", "wide=100"])["hash"]
    );
    assert!(first["orders"].as_u64() > Some(0), "{first:#}");
    assert_eq!(first["fault"], serde_json::Value::Null);
    let other = run(&["--set", "tilt=55", "--set", "wide=100", "--set", "lot=7"]);
    assert_ne!(first["hash"], other["hash"]);
    let wrong = tickwire(&[
        "strategy", "backtest", &file, "-c", &settings, &capture, "--set", "lots=7",
    ]);
    assert_eq!(wrong.status.code(), Some(2), "{}", told(&wrong));
    assert!(told(&wrong).contains("did you mean lot?"), "{}", told(&wrong));
}
