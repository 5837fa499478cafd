//! Two hosts of one machine, for tests that need root: without it they say so and are counted, and with
//! `TICKWIRE_ROOT_TESTS=1` they fail.

use std::process::Command;

use tickwire_runtime::netns::VethPair;

/// Two namespaces whose names begin so; `None`, and the reason said, where there can be none.
pub(crate) fn namespaces(prefix: &str) -> Option<VethPair> {
    let missing = tickwire_runtime::xdp::caps::missing();
    let why = match (missing.is_empty(), VethPair::create(prefix)) {
        (true, Ok(pair)) => return Some(pair),
        (true, Err(why)) => format!("no network namespaces here: {why}"),
        (false, _) => tickwire_runtime::xdp::caps::explained(&missing),
    };
    let must_run = std::env::var_os("TICKWIRE_ROOT_TESTS").is_some_and(|value| value == "1");
    assert!(!must_run, "{why}");
    tickwire_testdata::not_tested(why);
    None
}

/// A program in the namespace of an end, 0 or 1.
#[allow(dead_code, reason = "each test file uses its own part")]
pub(crate) fn within(pair: &VethPair, end: usize, program: &Command) -> Command {
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", pair.name(end)])
        .arg(program.get_program())
        .args(program.get_args());
    command
}
