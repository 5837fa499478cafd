//! Who trades waits for no reader: a terminal that is stopped, or a pipe that nobody reads, blocks whoever
//! writes to it, and orders stay at the venue meanwhile.

use std::path::PathBuf;

use crate::source::{is_of_tests, lines_with, production_only, read, shown};

/// What writes, and waits for whoever reads.
const WAITING: [&str; 4] = [
    concat!("print", "ln!("),
    concat!("eprint", "ln!("),
    concat!("print", "!("),
    concat!("eprint", "!("),
];
/// What runs on a trading thread while orders or quotes may be open.
const TRADING: &[&str] = &[
    "crates/trading/src/",
    "crates/node/src/trader.rs",
    "crates/node/src/live",
    "crates/node/src/host.rs",
    "crates/node/src/hot.rs",
    "crates/node/src/link.rs",
    "crates/node/src/session.rs",
    "crates/node/src/answers.rs",
    "crates/node/src/gather.rs",
    "crates/quoterd/src/quoting.rs",
    "crates/quoterd/src/news.rs",
    "crates/quoterd/src/path/",
];

/// Lines of trading threads that wait for a reader.
pub(crate) fn others(files: &[PathBuf]) -> Vec<String> {
    let mut findings = Vec::new();
    for path in files {
        let place = shown(path);
        if is_of_tests(&place) || !TRADING.iter().any(|own| place.starts_with(own)) {
            continue;
        }
        findings.extend(waiting_in(&read(path)).into_iter().map(|line| {
            format!("{place}:{line}: say it by tickwire_console::say, note or warn, which wait for nobody")
        }));
    }
    findings
}

fn waiting_in(text: &str) -> Vec<usize> {
    let code = production_only(text);
    let found = WAITING
        .iter()
        .flat_map(|word| lines_with(&code, word).collect::<Vec<_>>());
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_waits_for_a_reader_is_found_and_a_queued_one_is_not() {
        let [line, warning, ..] = WAITING;
        let text = format!(
            "fn a() {{\n    {warning}\"1\");\n    warn(format_args!(\"2\"));\n    {line}\"3\");\n}}\n"
        );
        let mut found = waiting_in(&text);
        found.sort_unstable();
        assert_eq!(found, [2, 4]);
    }

    #[test]
    fn what_trades_is_there() {
        for place in TRADING {
            let root = crate::run::root();
            assert!(
                root.join(place).exists() || root.join(format!("{place}.rs")).exists(),
                "{place}"
            );
        }
    }
}
