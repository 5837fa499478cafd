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

/// What an editor that starts the server writes and reads: `Content-Length`, an empty line, JSON.
#[test]
fn an_editor_is_answered_on_standard_input_and_output() {
    use std::io::{Read, Write};
    let framed = |json: &str| format!("Content-Length: {}\r\n\r\n{json}", json.len());
    let serve = |input: &str| {
        let mut server = Command::new(env!("CARGO_BIN_EXE_tickwire"))
            .args(["strategy", "server"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the program starts");
        // It may end before all of it is read.
        let _ = server.stdin.take().expect("piped").write_all(input.as_bytes());
        let mut said = String::new();
        let out = server.stdout.as_mut().expect("piped");
        out.read_to_string(&mut said).expect("text");
        (server.wait_with_output().expect("it ends"), said)
    };
    let session = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"untitled:s.tw","languageId":"tickwire","version":1,"text":"strategy s\nparam a: lots = 1\n"}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#,
        r#"{"jsonrpc":"2.0","method":"exit"}"#,
    ];
    let (output, said) = serve(&session.map(framed).concat());
    assert_eq!(output.status.code(), Some(0), "{said}{}", told(&output));
    for part in ["hoverProvider", "publishDiagnostics", "lots", r#""id":2"#] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Its editor is gone: there is nobody to serve.
    assert_eq!(serve("").0.status.code(), Some(0));
    // Before it was begun, and then never.
    let (output, said) = serve(&framed(r#"{"jsonrpc":"2.0","id":1,"method":"shutdown"}"#));
    assert_eq!(output.status.code(), Some(0), "{said}{}", told(&output));
    assert!(said.contains("-32002"), "not initialized: {said}");
    let (output, said) = serve("Content-Length: 4\r\n\r\nabcd");
    assert_eq!(output.status.code(), Some(1), "{said}{}", told(&output));
    assert!(
        said.is_empty() && told(&output).contains("expected value"),
        "{said}{}",
        told(&output)
    );
}
