//! `tickwire new`: a package for a strategy of one's own.

use std::path::Path;

use tickwire_runtime::files;
use tickwire_runtime::signal::StopFlag;

use super::NewArgs;
use super::SampleArgs;
use tickwire_console::failure::Failure;
use tickwire_venues::protocol::Protocol;

/// The source that a new package begins with: the taker of the examples, by a link, so that the published
/// crate has it too.
const SOURCE: &str = include_str!("../../template/main.rs");
const PARAMETERS: &str = include_str!("../../template/strategy.toml");

/// Writes the package and its sample capture.
///
/// # Errors
/// The name is none, the folder is there already, or a file cannot be written.
pub fn new(args: &NewArgs, stop: &StopFlag) -> Result<(), Failure> {
    let folder = &args.folder;
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !is_name {
        return Err(Failure::config(format!(
            "{name:?} is no name of a package: letters, digits, - and _, a letter first"
        )));
    }
    let library = args.tickwire.join("crates/tickwire");
    let library = library
        .canonicalize()
        .ok()
        .filter(|library| library.join("Cargo.toml").is_file())
        .ok_or_else(|| {
            Failure::config(format!(
                "{} is no checkout of Tickwire: there is no {}",
                args.tickwire.display(),
                library.join("Cargo.toml").display()
            ))
        })?;
    if folder.exists() {
        return Err(Failure::config(format!(
            "{} is there already: give a folder that is not",
            folder.display()
        )));
    }
    let cannot =
        |path: &Path, e: std::io::Error| Failure::system(format!("cannot write {}: {e}", path.display()));
    files::create_folders(&folder.join("src")).map_err(|e| cannot(folder, e))?;
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        files::write(&path, text).map_err(|e| cannot(&path, e))
    };
    write("Cargo.toml", manifest(name, &library))?;
    write("src/main.rs", SOURCE.to_string())?;
    write("strategy.toml", PARAMETERS.to_string())?;
    write(".gitignore", "target\n*.pcap\n".to_string())?;
    eprintln!(
        "writing {}: a session of the simulated exchange",
        folder.join("sample.pcap").display()
    );
    let sample = SampleArgs {
        file: folder.join("sample.pcap"),
        feed: vec![Protocol::Itch50],
        seconds: 5.0,
        rate: 20_000,
        symbols: 20,
        seed: 1,
    };
    super::sample(&sample, stop)?;
    println!(
        "{} is ready:\n  cd {}\n  cargo run --release -- backtest -c strategy.toml sample.pcap",
        folder.display(),
        folder.display()
    );
    Ok(())
}

fn manifest(name: &str, library: &Path) -> String {
    let path = toml::Value::String(library.to_string_lossy().into_owned());
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\ntickwire = {{ path = {path} }}\n\
         serde = {{ version = \"1\", features = [\"derive\"] }}\n\n[profile.release]\nlto = \"thin\"\ncodegen-units = 1\n\n\
         # A package of its own, wherever it lies.\n[workspace]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_the_library_whatever_its_path() {
        let manifest: toml::Table = manifest("mine", Path::new("/a \"b\"/tick\\wire"))
            .parse()
            .expect("it is TOML");
        assert_eq!(manifest["package"]["name"].as_str(), Some("mine"));
        assert_eq!(
            manifest["dependencies"]["tickwire"]["path"].as_str(),
            Some("/a \"b\"/tick\\wire")
        );
    }
}
