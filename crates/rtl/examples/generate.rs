//! Writes the core of a strategy file into a folder:
//! `cargo run -p tickwire-rtl --example generate examples/hardware/core_taker.tw DIR`.

use std::path::Path;
use std::process::ExitCode;

use tickwire_rtl::{Target, generate};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, file, folder] = &arguments[..] else {
        eprintln!("generate FILE DIR");
        return ExitCode::from(2);
    };
    match run(file, Path::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: &str, folder: &Path) -> Result<(), String> {
    let source = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let no_files = |name: &str| Err(format!("{name}: this example loads no tables"));
    let program =
        tickwire_language::compile(&source, &no_files).map_err(|wrong| format!("{file}: {wrong:?}"))?;
    let design = generate(&program, &source, &Target::default()).map_err(|refusals| {
        refusals
            .iter()
            .map(|refusal| format!("{file}: {refusal}\n"))
            .collect::<String>()
    })?;
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    for file in &design.files {
        std::fs::write(folder.join(&file.name), &file.text).map_err(|e| format!("{}: {e}", file.name))?;
    }
    println!("{}", design.sources().collect::<Vec<_>>().join(" "));
    Ok(())
}
