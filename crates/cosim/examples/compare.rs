//! Compares a strategy in software with its simulated core on captures:
//! `cargo run --release -p tickwire-cosim --example compare FILE FOLDER SEED CAPTURE...`, where the core is
//! made in FOLDER. Captures that end in `.itch` are files of messages.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tickwire_cosim::{Cosim, CosimError, Day, Random, Troubles};
use tickwire_language::Interpreter;
use tickwire_rtl::Target;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, folder, seed, captures @ ..] = &arguments[..] else {
        eprintln!("compare FILE FOLDER SEED CAPTURE...");
        return ExitCode::from(2);
    };
    match run(file, folder, seed.parse().unwrap_or(1), captures) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: &str, folder: &str, seed: u64, captures: &[String]) -> Result<u64, CosimError> {
    let source = std::fs::read_to_string(file).map_err(|e| CosimError::File(file.into(), e.to_string()))?;
    let mut random = Random(seed);
    let files: Vec<PathBuf> = captures.iter().map(PathBuf::from).collect();
    let day = match &files[..] {
        [messages] if messages.extension().is_some_and(|e| e == "itch") => {
            Day::of_messages(messages, || {
                if random.chance(700_000) {
                    1
                } else {
                    random.below(12) as usize
                }
            })?
        }
        files => Day::read(files)?,
    };
    let cosim = Cosim::new(
        &source,
        &|_| Err(String::new()),
        &Target::default(),
        Path::new(folder),
    )?;
    let troubles = Troubles {
        seed,
        loss: 10_000,
        damage: 2_000,
        busy_percent: 20,
        ..Troubles::default()
    };
    let settings = cosim.settings(&day)?;
    println!("{} packets, {settings:?}", day.packets.len());
    let found = cosim.compare(&day, &troubles, Interpreter::new)?;
    println!(
        "{} orders, {} tops, {} levels, {} counters compared in {} clocks; {} orders stopped; {} differences",
        found.orders, found.tops, found.levels, found.counters, found.clocks, found.stopped, found.differing
    );
    for difference in found.differences.iter().take(10) {
        println!("{difference}");
    }
    println!(
        "clocks from a packet's last word to its order's first: {:?}",
        found.latency
    );
    Ok(found.differing)
}
