//! Writes the typed messages of both dictionaries.

use tickwire_fixgen::{Error, Generator};

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    for name in ["FIX44", "FIX50SP2"] {
        generate(name).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn generate(name: &str) -> Result<(), Error> {
    Generator::from_file(format!("dictionaries/{name}.xml"))?.build()?;
    Ok(())
}
