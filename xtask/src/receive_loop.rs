//! There is one receive loop: who else takes packets off the sockets of lines has arbitration, recovery and
//! timers to do again, and does them otherwise.

use std::path::PathBuf;

use crate::source::{is_of_tests, lines_with, production_only, read, shown};

/// A line's socket.
const LINE_SOCKET: &str = concat!("Multicast", "Receiver");
/// Where it is right, and why.
const LINES_ARE_RECEIVED_IN: &[(&str, &str)] = &[
    ("crates/receive/", "is the loop"),
    ("crates/runtime/", "is the socket"),
    (
        "crates/kernelpath/",
        "passes on what a filter in the kernel has let through",
    ),
    (
        "crates/record/",
        "writes down what comes, without arbitration, recovery or timers of a venue",
    ),
    (
        "apps/tickwire-lab/",
        "measures how others lay out sockets and threads",
    ),
    ("xtask/", "is a tool of developers"),
];

/// Second receive loops in the program's files.
pub(crate) fn others(files: &[PathBuf]) -> Vec<String> {
    let mut findings = Vec::new();
    for path in files {
        let place = shown(path);
        let is_right = |(own, _): &(&str, &str)| place.starts_with(own);
        if is_of_tests(&place) || LINES_ARE_RECEIVED_IN.iter().any(is_right) {
            continue;
        }
        findings.extend(sockets_in(&read(path)).map(|line| {
            format!(
                "{place}:{line}: receive by tickwire_receive::receiver::Receiver, into a Consumer: there is one receive loop"
            )
        }));
    }
    findings
}

/// Lines of the program, not of its tests, that name a line's socket.
fn sockets_in(text: &str) -> impl Iterator<Item = usize> + use<> {
    let code = production_only(text);
    let found: Vec<usize> = lines_with(&code, LINE_SOCKET).collect();
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_receive_loop_is_found_and_a_test_of_the_socket_is_not() {
        let socket = LINE_SOCKET;
        let text = format!(
            "// {socket}\nlet line = {socket}::join(config)?;\n#[cfg(test)]\nmod tests {{ use runtime::{socket}; }}\n"
        );
        assert_eq!(sockets_in(&text).collect::<Vec<_>>(), [2]);
    }
}
