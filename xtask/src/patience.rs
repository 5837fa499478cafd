//! A test that waits for something waits as long as a busy machine needs: what takes milliseconds alone takes
//! seconds beside other tests, and a bound of seconds makes a good program look broken.

use std::path::PathBuf;

use crate::source::{code_only, has_word, is_of_tests, production_only, read, shown};

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

/// How a loop begins that looks a number of times.
const LOOKS: &str = concat!("for _", " in 0..");

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
            let statement = before.rsplit(['{', '}', ';']).next().unwrap_or_default();
            if statement.trim_start().starts_with("while") {
                continue;
            }
            found.extend(seconds(time).map(|seconds| (at, seconds)));
        }
    }
    found.extend(code.match_indices(LOOKS).filter_map(|(at, _)| {
        let seconds = seconds_of_looks(&code[at + LOOKS.len()..])?;
        Some((at, seconds))
    }));
    found.retain(|(_, seconds)| *seconds < LEAST_S as f64);
    let lines = found.into_iter().map(|(at, seconds)| {
        let line = 1 + code[..at].matches('\n').count();
        (line, seconds)
    });
    lines.collect()
}

/// The seconds after which a loop `300 { … sleep(…) … }` gives up; of one that does not leave earlier, which
/// waits for nothing, none.
fn seconds_of_looks(rest: &str) -> Option<f64> {
    let (looks, rest) = rest.split_once(" {")?;
    let looks: f64 = looks.replace('_', "").parse().ok()?;
    let mut depth = 1;
    let end = rest.find(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    });
    let body = &rest[..end?];
    let (_, pause) = body.split_once("sleep(")?;
    let (_, pause) = pause.split_once("Duration::from_")?;
    let leaves = ["return", "break"].iter().any(|word| has_word(body, word));
    seconds(pause).filter(|_| leaves).map(|pause| looks * pause)
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
        let looks = |count, last| {
            format!("{LOOKS}{count} {{\n    {last}\n    sleep(Duration::from_millis(10));\n}}\n")
        };
        let test = format!(
            "assert!(begun.{elapsed}secs(5), \"slow\");\nlet end = {until}secs(60);\nchild{wait}millis(1_500));\n\
             while begun.{elapsed}secs(2) {{\n    push();\n}}\n"
        );
        assert_eq!(short_in(&test), [(1, 5.0), (3, 1.5)]);
        assert_eq!(short_in(&looks("300", "if is_there() { break; }")), [(1, 3.0)]);
        assert_eq!(short_in(&looks("6_000", "if is_there() { break; }")), []);
        assert_eq!(short_in(&looks("300", "send();")), []);
        let source = format!(
            "fn a() {{ {until}secs(1); }}\n#[cfg(test)]\nmod tests {{\n    fn a() {{ {until}secs(2); }}\n}}\n"
        );
        assert_eq!(short_in(&tests_only(&source)), [(4, 2.0)]);
    }
}
