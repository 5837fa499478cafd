//! Writes the module of a dictionary to a file, to be read:
//! `cargo run -p tickwire-fixgen --example fixgen -- DICTIONARY OUT [MESSAGE...]`.

use std::process::ExitCode;
use tickwire_fixgen::{Error, Generator};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dictionary, out, messages @ ..] = args.as_slice() else {
        eprintln!("usage: fixgen DICTIONARY OUT [MESSAGE...]");
        return ExitCode::from(2);
    };
    match generate(dictionary, out, messages) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn generate(dictionary: &str, out: &str, messages: &[String]) -> Result<(), Error> {
    let mut generator = Generator::from_file(dictionary)?;
    if !messages.is_empty() {
        generator = generator.messages(messages);
    }
    generator.write(out)
}
