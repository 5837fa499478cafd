//! A test that finds, while it runs, that this machine does not let it test anything.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Write;
use std::sync::Mutex;

/// Says that the test that calls it tests nothing here, or a part of it, and why: one line on standard
/// output, past the harness, which keeps what tests print with `print!` to itself when they pass.
/// `cargo xtask check` counts the test as skipped, not as passed. Said once a test and reason.
pub fn not_tested(why: impl Display) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let thread = std::thread::current();
    let line = line(thread.name().unwrap_or("a thread of a test"), &why.to_string());
    let is_new = SAID.lock().expect("nobody panics with it").insert(line.clone());
    if is_new {
        // Where nobody takes it, nobody counts either.
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
    }
}

/// `skipped: TEST: WHY`, in one line.
fn line(test: &str, why: &str) -> String {
    let why: Vec<&str> = why.split_whitespace().collect();
    format!("skipped: {test}: {}\n", why.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_several_lines_is_said_in_one() {
        assert_eq!(line("a::b", "no\n  root here\n"), "skipped: a::b: no root here\n");
    }
}
