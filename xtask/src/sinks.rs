//! A sink that passes on which orders come in a packet of several messages passes on the one of a packet of
//! one, too: both have a default that does nothing, so that nobody misses the one that was forgotten.

use std::path::PathBuf;

use crate::source::{is_of_tests, lines_with, production_only, read, shown};

/// What a sink is told of packets of several messages, and of those of one.
const TOLD: [&str; 2] = ["fn upcoming(&mut self", "fn arriving(&mut self"];

/// Sinks that hear of one and not of the other, in the program's files.
pub(crate) fn deaf(files: &[PathBuf]) -> Vec<String> {
    let mut findings = Vec::new();
    for path in files.iter().filter(|path| !is_of_tests(&shown(path))) {
        if let Some(line) = deaf_at(&read(path)) {
            findings.push(format!(
                "{}:{line}: an EventSink with `upcoming` has `arriving` as well, or packets of one message fetch nothing",
                shown(path)
            ));
        }
    }
    findings
}

/// Where there is one more of the one than of the other.
fn deaf_at(text: &str) -> Option<usize> {
    let code = production_only(text);
    let [several, one] = TOLD.map(|told| lines_with(&code, told).collect::<Vec<_>>());
    (several.len() != one.len())
        .then(|| several.first().or(one.first()).copied())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_that_hears_of_one_kind_of_packet_alone_is_found() {
        let [several, one] = TOLD.map(|told| format!("    {told}, next: Upcoming) {{}}\n"));
        assert_eq!(
            deaf_at(&format!("impl EventSink for A {{\n{several}}}\n")),
            Some(2)
        );
        assert_eq!(deaf_at(&format!("{several}{one}{several}")), Some(1));
        assert_eq!(deaf_at(&one), Some(1));
        for text in [String::new(), format!("{one}{several}")] {
            assert_eq!(deaf_at(&text), None);
        }
    }
}
