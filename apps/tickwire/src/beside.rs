//! The program beside this one: `tickwire-lab` measures, and is not part of what trades.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use tickwire_console::failure::Failure;
use tickwire_control::process::beside;

/// Its name.
const LAB: &str = "tickwire-lab";

/// Becomes `tickwire-lab`, with the arguments of this process; comes back only where it cannot.
pub(crate) fn lab() -> Failure {
    match become_lab(std::env::args_os().skip(1).collect()) {
        Ok(never) => match never {},
        Err(failure) => failure,
    }
}

fn become_lab(arguments: Vec<OsString>) -> Result<Infallible, Failure> {
    // Beside this program, else wherever programs are looked for.
    let program = beside(LAB).unwrap_or_else(|| LAB.into());
    let error = Command::new(&program).args(arguments).exec();
    Err(match error.kind() {
        std::io::ErrorKind::NotFound => Failure::config(format!(
            "{LAB} is not beside this program, and not in PATH: build it with `cargo build --release -p tickwire-lab-app`, or install it \
             with `cargo install --locked --path apps/tickwire-lab`"
        )),
        _ => Failure::system(format!("cannot start {}: {error}", program.display())),
    })
}
