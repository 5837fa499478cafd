//! Tests that need root: whether one can run is known only when it runs, so those that are skipped are
//! counted at run time. With `TICKWIRE_ROOT_TESTS=1` skipping is a failure.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use tickwire_runtime::netns::VethPair;
use tickwire_runtime::xdp::caps;

/// Why a test cannot run here.
pub(crate) struct Skip(pub(crate) String);

/// A test.
pub(crate) type Test = fn() -> Result<(), Skip>;

/// Runs those whose name has the first argument in it, and says of each what became of it.
pub(crate) fn run(tests: &[(&str, Test)]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|a| a == "--list") {
        tests.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let filter = arguments
        .iter()
        .find(|a| !a.starts_with('-'))
        .cloned()
        .unwrap_or_default();
    let must_run = std::env::var_os("TICKWIRE_ROOT_TESTS").is_some_and(|v| v == "1");
    let (mut passed, mut failed, mut ignored) = (0, 0, 0);
    println!("\nrunning {} tests", tests.len());
    for (name, test) in tests.iter().filter(|(name, _)| name.contains(&filter)) {
        match catch_unwind(AssertUnwindSafe(test)) {
            Ok(Ok(())) => {
                println!("test {name} ... ok");
                passed += 1;
            }
            Ok(Err(Skip(why))) if must_run => {
                println!("{why}\ntest {name} ... FAILED");
                failed += 1;
            }
            Ok(Err(Skip(why))) => {
                println!("test {name} ... ignored, {}", why.replace('\n', " "));
                ignored += 1;
            }
            Err(_) => {
                println!("test {name} ... FAILED");
                failed += 1;
            }
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out\n"
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(101)
    }
}

/// Skips where the capabilities are missing.
pub(crate) fn needs_capabilities() -> Result<(), Skip> {
    let missing = caps::missing();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Skip(caps::explained(&missing))),
    }
}

/// Two hosts.
pub(crate) fn namespaces() -> Result<VethPair, Skip> {
    needs_capabilities()?;
    VethPair::create("twkp").map_err(|why| Skip(format!("no network namespaces here: {why}")))
}
