//! The simulated exchange by library: `options-venue FILE RESULTS`. It says on standard output where it
//! listens, in JSON, and leaves what it has seen in a folder.

#[macro_use]
extern crate tickwire_console;

use std::path::Path;
use std::process::ExitCode;

use tickwire::config::Config;
use tickwire_console::failure::Failure;
use tickwire_runtime::signal::StopFlag;

fn open(file: &Path, results: &Path) -> Result<(), Failure> {
    let config = Config::load(file)?.market();
    let stop = StopFlag::install().map_err(|e| Failure::system(format!("cannot catch signals: {e}")))?;
    tickwire_simulator::venue::run(&config, Some(results), true, &stop)
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(file), Some(results)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: options-venue FILE RESULTS; docs/exchange.md says what is in FILE");
        return ExitCode::from(2);
    };
    match tickwire_console::run(|| open(Path::new(&file), Path::new(&results))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("options-venue: {failure}");
            ExitCode::from(failure.code as u8)
        }
    }
}
