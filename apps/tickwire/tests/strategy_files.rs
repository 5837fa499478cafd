//! `tickwire strategy` as a user has it: files that are right, files that are wrong, a backtest on a
//! recording of the simulated exchange.

mod common;

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

/// A strategy that buys so many with every new best offer, five times; or one whose order rests.
fn buyer(lot: u32, rests: bool) -> String {
    let (price, terms) = if rests {
        ("ask - away", "")
    } else {
        ("ask", " ioc")
    };
    format!(
        "strategy s\nparam away: price = 0.50\ninstrument a = \"AAPL\"\nstate sent: int = 0\nstate last: price? = none\n\
         on start {{ note \"lots of {lot} begin\" }}\n\
         on book a when live(a) {{\n  let ask = a.ask[0].price\n  if ask != none and ask != last and sent < 5 {{\n    last = ask\n    \
         sent += 1\n    buy a {lot} @ {price}{terms}\n    if sent == 5 {{ note \"lots of {lot} sent\" }}\n  }}\n}}\n"
    )
}

/// Against a running exchange, over its feed and by its order entry: the file is read again while nothing is
/// open, and not when it is wrong or an order rests; the one before goes on then.
#[test]
fn a_running_file_is_read_again_while_nothing_is_open() {
    use common::{Folder, Guard, free_ports, heard, lines_of, signal, tickwire};
    use std::process::Stdio;
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(60);

    let folder = Folder::new("reload");
    let [a, b, requests, snapshot, orders] = free_ports();
    let control = folder.0.join("control");
    let config = folder.file(
        "both.toml",
        format!(
            "[[feed]]\nvenue = \"nasdaq\"\nsession = \"RELOAD0001\"\n[[feed.channel]]\nname = \"1\"\n\
             live = {{ a = \"239.192.84.1:{a}\", b = \"239.192.84.2:{b}\" }}\nrequests = \"127.0.0.1:{requests}\"\n\
             snapshot_server = \"127.0.0.1:{snapshot}\"\n[order_entry]\naddress = \"127.0.0.1:{orders}\"\n\
             [trader]\ncontrol = \"{}\"\n[exchange]\nduration_s = 3600.0\nrate = 2000\nsymbols = 5\n",
            control.display()
        ),
    );
    let start = |words: &[&str]| {
        let child = tickwire()
            .args(words)
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        Guard(child.expect("the program starts"))
    };
    let mut exchange = start(&["exchange"]);
    let exchange_said = lines_of(&mut exchange.0);
    heard(&exchange_said, "listening:");
    let file = folder.file("s.tw", buyer(100, false));
    let mut run = start(&["strategy", "run", file.to_str().expect("a path of text")]);
    let said = lines_of(&mut run.0);
    let reload = || {
        let output = tickwire()
            .args(["trade", "--say", "reload", "--socket"])
            .arg(&control)
            .output();
        let output = output.expect("the program starts");
        assert!(output.status.success(), "{}", told(&output));
    };
    heard(&said, "lots of 100 begin");
    heard(&said, "lots of 100 sent");
    // What was sent at once is over at once; an answer may be on its way still.
    let renewed = |text: String, expected: &str| {
        folder.file("s.tw", text);
        for _ in 0..1_200 {
            reload();
            let line = heard(&said, "reloaded");
            if line.contains(expected) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{expected} was not said");
    };
    renewed(buyer(200, false), "is reloaded: its state begins anew");
    heard(&said, "lots of 200 begin");
    heard(&said, "lots of 200 sent");
    renewed("strategy s\nthis is none\n".into(), "is not reloaded");
    // What is wrong with it takes several lines.
    heard(&said, "the one before goes on");
    renewed(buyer(300, true), "is reloaded: its state begins anew");
    heard(&said, "lots of 300 sent");
    reload();
    let line = heard(&said, "reloaded");
    assert!(
        line.contains("is not reloaded") && line.contains("open"),
        "{line}"
    );
    for program in [&mut run, &mut exchange] {
        signal("INT", program.0.id());
        program.wait(PATIENCE).expect("it ends");
    }
}
