//! A strategy of one's own with a fault: nothing of it stays at the venue, and the callback is named.

use std::io::{PipeWriter, Read, Write};
use std::path::PathBuf;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A folder with the configuration of a strategy that panics after so many books.
fn folder_of(name: &str, after: u32) -> (PathBuf, PathBuf) {
    let folder = std::env::temp_dir().join(format!("tickwire-test-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let config = folder.join("strategy.toml");
    std::fs::write(&config, format!("[strategy]\nafter = {after}\n")).expect("written");
    (folder, config)
}

#[test]
fn a_panic_cancels_what_is_open_names_the_callback_and_fails() {
    let (folder, config) = folder_of("panics", 200);
    let output = Command::new(env!("CARGO_BIN_EXE_faulty"))
        .args(["sim", "--seconds", "5", "-c"])
        .arg(&config)
        .arg("--dir")
        .arg(&folder)
        .output()
        .expect("it runs");
    let told = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(told.contains("3 orders are open"), "{told}");
    assert!(
        told.contains("ALERT: on_book panicked: everything is cancelled"),
        "{told}"
    );
    assert!(told.contains("3 cancels were sent"), "{told}");
    assert!(
        !told.contains("not confirmed"),
        "the venue has confirmed every one: {told}"
    );
    assert_eq!(output.status.code(), Some(4), "{told}");
    // The same in a backtest, where no other process ends before.
    let capture = folder.join("sample.pcap");
    let run = |command: &mut Command| command.output().expect("it runs");
    let sample = run(Command::new(env!("CARGO_BIN_EXE_faulty"))
        .arg("sample")
        .arg(&capture));
    assert!(sample.status.success());
    let tested = run(Command::new(env!("CARGO_BIN_EXE_faulty"))
        .args(["backtest", "-c"])
        .arg(&config)
        .arg(&capture));
    let told = String::from_utf8_lossy(&tested.stderr);
    assert_eq!(tested.status.code(), Some(101), "{told}");
    assert!(told.contains("the strategy panicked in on_book"), "{told}");
    let _ = std::fs::remove_dir_all(&folder);
}

fn has_room(pipe: &PipeWriter) -> bool {
    let mut asked = [PollFd::new(pipe, PollFlags::OUT)];
    poll(&mut asked, Some(&Timespec::default())).expect("a pipe") > 0
}

/// The pipe is full before anything is said: neither the strategy's notes nor what the panic says may be
/// waited with.
#[test]
fn a_panic_cancels_though_nobody_reads_what_it_says() {
    let (folder, config) = folder_of("panics-unread", 200);
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut filled = 0;
    while has_room(&writer) {
        filled += (&writer).write(&[b'\n'; 4_096]).expect("room for a page");
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_faulty"))
        .args(["sim", "--seconds", "20", "-c"])
        .arg(&config)
        .arg("--dir")
        .arg(&folder)
        .stderr(writer)
        .spawn()
        .expect("it runs");
    let exchange = folder.join("exchange.json");
    let written = (0..2_400).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let text = std::fs::read_to_string(&exchange).ok()?;
        serde_json::from_str::<serde_json::Value>(&text).ok()
    });
    let mut told = Vec::new();
    reader.read_to_end(&mut told).expect("its end");
    let told = String::from_utf8_lossy(&told[filled..]).into_owned();
    let ended = child.wait().expect("it ends");
    let written = written.unwrap_or_else(|| panic!("the exchange has not ended: {told}"));
    let orders = written["orders"].as_object().expect("orders by number");
    assert_eq!(orders.len(), 3, "{written}");
    for (number, order) in orders {
        assert_eq!(order["status"], "4", "order {number} of {written}");
    }
    // It was asked to, and the day ended with the logout: a client that says nothing has them cancelled at
    // the day's end, or by the heartbeats that he missed.
    let published = written["messages"].as_u64().expect("a count");
    assert!(published < 20 * 20_000, "{published} messages: {told}");
    assert_eq!(ended.code(), Some(4), "{told}");
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn over_two_sessions_each_cancels_its_own() {
    let (folder, config) = folder_of("panics-two", 400);
    let output = Command::new(env!("CARGO_BIN_EXE_faulty"))
        .args([
            "sim",
            "--seconds",
            "5",
            "--feed",
            "itch50",
            "--feed",
            "pitch",
            "-c",
        ])
        .arg(&config)
        .arg("--dir")
        .arg(&folder)
        .output()
        .expect("it runs");
    let told = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(told.contains("6 orders are open"), "{told}");
    for session in ["order_entry", "bzx-2"] {
        let words = format!("session {session}: 3 cancels were sent");
        assert!(told.contains(&words), "{words:?} in {told}");
    }
    assert!(
        !told.contains("not confirmed"),
        "both venues have confirmed: {told}"
    );
    assert_eq!(output.status.code(), Some(4), "{told}");
    let _ = std::fs::remove_dir_all(&folder);
}
