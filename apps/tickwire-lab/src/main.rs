//! The program `tickwire-lab`: see the library of the same name.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    tickwire_lab_app::main()
}
