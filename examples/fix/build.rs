//! Writes the typed messages of `venue.xml`: `OUT_DIR/venue.rs`, which `main.rs` includes.

use tickwire_fixgen::{Error, Generator};

fn main() -> Result<(), String> {
    generate().map_err(|e| e.to_string())
}

fn generate() -> Result<(), Error> {
    Generator::from_file("venue.xml")?
        .messages([
            "NewOrderSingle",
            "ExecutionReport",
            "MassQuote",
            "MassQuoteAcknowledgement",
        ])
        .build()?;
    Ok(())
}
