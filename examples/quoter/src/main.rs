//! Quotes the options on a future: `quoter FILE`, where `[quoter]` of the file says which, at what
//! volatilities and within which limits.

#[macro_use]
extern crate tickwire_console;

use std::path::Path;
use std::process::ExitCode;

use tickwire::config::Config;
use tickwire_console::failure::Failure;
use tickwire_runtime::signal::StopFlag;

fn quote(file: &Path) -> Result<(), Failure> {
    let config = Config::load(file)?.quote();
    // Ctrl-C and SIGTERM cancel every quote, then log out.
    let stop = StopFlag::install().map_err(|e| Failure::system(format!("cannot catch signals: {e}")))?;
    tickwire_quoterd::run(&config, None, (false, false), &stop)
}

fn main() -> ExitCode {
    let Some(file) = std::env::args_os().nth(1) else {
        eprintln!("usage: quoter FILE; docs/quoter.md says what is in it");
        return ExitCode::from(2);
    };
    match tickwire_console::run(|| quote(Path::new(&file))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("quoter: {failure}");
            ExitCode::from(failure.code as u8)
        }
    }
}
