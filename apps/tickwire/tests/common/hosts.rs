//! The program on two hosts that are namespaces of this machine: configurations, processes, what they say.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tickwire_runtime::netns::VethPair;

use crate::common::{Folder, Guard, tickwire};
use crate::namespaces::within;

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// An example of one machine, for two: the exchange is the first of the pair.
pub(crate) fn between(pair: &VethPair, example: &str, backend: &str, changes: &[(&str, &str)]) -> String {
    let mut text = example
        .replace("interface = \"127.0.0.1\"", "interface = \"veth0\"")
        .replace("127.0.0.1", &pair.address(0).to_string())
        .replace("[receiver]", &format!("[receiver]\nbackend = {backend:?}"));
    for (from, to) in changes {
        assert!(text.contains(from), "the example has changed: {from}");
        text = text.replace(from, to);
    }
    text
}

/// The example of a trader's day, shorter: so many seconds and instruments.
pub(crate) fn trading(
    pair: &VethPair,
    example: &str,
    backend: &str,
    (seconds, symbols): (u32, u32),
    more: &[(&str, &str)],
) -> String {
    let seconds = format!("duration_s = {seconds}.0\nstop_on_client_loss = true");
    let symbols = format!("symbols = {symbols}");
    let day = [
        ("rate = 20000", "rate = 6000"),
        ("duration_s = 15.0", &seconds),
        ("symbols = 200", &symbols),
    ];
    between(pair, example, backend, &[&day, more].concat())
}

/// The program in a namespace; what it says goes into a file of its name.
pub(crate) fn start(pair: &VethPair, end: usize, folder: &Folder, name: &str, args: &[&str]) -> Guard {
    let said = File::create(folder.0.join(name)).expect("a file");
    let errors = said.try_clone().expect("a file");
    let child = within(pair, end, &tickwire())
        .args(args)
        .stdin(Stdio::null())
        .stdout(said)
        .stderr(errors)
        .spawn();
    Guard(child.expect("the program starts"))
}

/// The exchange, at the first of the pair, once it listens; it says it into `exchange.said`.
pub(crate) fn exchange(pair: &VethPair, folder: &Folder, args: &[&str]) -> Guard {
    let args = [&["exchange"], args].concat();
    let exchange = start(pair, 0, folder, "exchange.said", &args);
    wait_for("the exchange", || {
        said(folder, "exchange.said").contains("listening").then_some(())
    });
    exchange
}

/// Waits for a program's end, which must be a good one: what it has said into a file of this name.
pub(crate) fn ended_well(program: &mut Guard, folder: &Folder, name: &str) -> String {
    let ended = program.wait(PATIENCE).expect("it ends");
    let words = said(folder, name);
    assert_eq!(ended.code(), Some(0), "{words}");
    words
}

/// What a program has left of its run in a folder.
pub(crate) fn results(folder: &Path, name: &str) -> Value {
    let text = std::fs::read_to_string(folder.join(name)).expect("results");
    serde_json::from_str(&text).expect("results are JSON")
}

pub(crate) fn said(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.0.join(name)).unwrap_or_default()
}

pub(crate) fn wait_for<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(done) = done() {
            return done;
        }
        assert!(
            Instant::now() < deadline,
            "{what} did not happen within {PATIENCE:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn path(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}
