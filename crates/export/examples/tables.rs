//! A recording as a table, by the library alone: the arguments are those of `tickwire export`.
//!
//! `cargo run --release -p tickwire-export --features tables --example tables -- day.pcap --out day.parquet`

use clap::Parser;
use tickwire_export::{ExportArgs, run};
use tickwire_runtime::signal::StopFlag;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    export: ExportArgs,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&Cli::parse().export, &StopFlag::install()?)?;
    Ok(())
}
