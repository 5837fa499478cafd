//! A test that waits for something waits as long as a busy machine needs: what takes milliseconds alone takes
//! seconds beside other tests, and a bound of seconds makes a good program look broken.

use std::path::PathBuf;

use crate::source::{code_only, is_of_tests, production_only, read, shown};

/// Fewer seconds than this are no patience.
const LEAST_S: u64 = 20;

/// What is before the time that a test gives something, each in two parts so that this file passes its rule.
const WAITS: [&str; 5] = [
    concat!("elapsed() <", " Duration::from_"),
    concat!("elapsed() <=", " Duration::from_"),
    concat!("Instant::now() +", " Duration::from_"),
    concat!(".wait(", "Duration::from_"),
    concat!("PATIENCE: Duration =", " Duration::from_"),
];

/// Waits of tests that are over too soon.
pub(crate) fn short(files: &[PathBuf]) -> Vec<String> {
    let mut findings = Vec::new();
    for path in files {
        let (place, text) = (shown(path), read(path));
        let code = match is_of_tests(&place) {
            true if place.contains("/benches/") => continue,
            true => code_only(&text),
            false => tests_only(&text),
        };
        findings.extend(short_in(&code).into_iter().map(|(line, seconds)| {
            format!(
                "{place}:{line}: {seconds} s pass on a busy machine before what is waited for is there: give it {LEAST_S} s or more"
            )
        }));
    }
    findings
}

/// The code below `#[cfg(test)]`, everything else blanked.
fn tests_only(text: &str) -> String {
    let (code, production) = (code_only(text), production_only(text));
    let bytes = code.bytes().zip(production.bytes());
    let kept = bytes.map(|(all, kept)| match all {
        b'\n' => '\n',
        all if all == kept => ' ',
        all => char::from(all),
    });
    kept.collect()
}

/// Lines on which a wait that fails the test is given, and its seconds.
fn short_in(code: &str) -> Vec<(usize, f64)> {
    let mut found = Vec::new();
    for wait in WAITS {
        for (at, _) in code.match_indices(wait) {
            let (before, time) = (&code[..at], &code[at + wait.len()..]);
            // A loop that does something for a while is not a wait.
            let statement = before.rsplit(['{', '}', ';']).next().unwrap_or("");
            if statement.trim_start().starts_with("while") {
                continue;
            }
            if let Some(seconds) = seconds(time).filter(|seconds| *seconds < LEAST_S as f64) {
                found.push((before.lines().count().max(1), seconds));
            }
        }
    }
    found
}

/// The seconds of `secs(5)…` or `millis(200)…`; of what is no number, none.
fn seconds(time: &str) -> Option<f64> {
    let (unit, rest) = time.split_once('(')?;
    let (number, _) = rest.split_once(')')?;
    let number: f64 = number.replace('_', "").parse().ok()?;
    Some(match unit {
        "secs" => number,
        "millis" => number / 1e3,
        "micros" => number / 1e6,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_seconds_only_is_found_and_a_load_of_seconds_is_not() {
        let [elapsed, _, until, wait, _] = WAITS;
        let test = format!(
            "assert!(begun.{elapsed}secs(5), \"slow\");\nlet end = {until}secs(60);\nchild{wait}millis(1_500));\n\
             while begun.{elapsed}secs(2) {{\n    push();\n}}\n"
        );
        assert_eq!(short_in(&test), [(1, 5.0), (3, 1.5)]);
        let source = format!(
            "fn a() {{ {until}secs(1); }}\n#[cfg(test)]\nmod tests {{\n    fn a() {{ {until}secs(2); }}\n}}\n"
        );
        assert_eq!(short_in(&tests_only(&source)), [(4, 2.0)]);
    }
}
