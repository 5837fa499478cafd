//! Writes the core of a strategy file into a folder, for Nasdaq or, with a template file and the order log's
//! template in it, for the Moscow Exchange:
//! `cargo run -p tickwire-rtl --example generate examples/hardware/core_taker.tw DIR`,
//! `… examples/hardware/core_moex.tw DIR examples/moex-templates.xml X-OLR-DEMO`.

use std::path::Path;
use std::process::ExitCode;

use tickwire_market::Price;
use tickwire_rtl::{Moex, Target, Venue, generate};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let ([_, file, folder], moex) = match &arguments[..] {
        [program, file, folder] => ([program, file, folder], None),
        [program, file, folder, templates, template] => {
            ([program, file, folder], Some((templates, template)))
        }
        _ => {
            eprintln!("generate FILE DIR [TEMPLATES TEMPLATE]");
            return ExitCode::from(2);
        }
    };
    let target = match moex {
        None => Ok(Target::default()),
        Some((templates, template)) => moex_target(templates, template),
    };
    match target.and_then(|target| run(file, Path::new(folder), &target)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn moex_target(templates: &str, template: &str) -> Result<Target, String> {
    let text = std::fs::read_to_string(templates).map_err(|e| format!("{templates}: {e}"))?;
    Ok(Target {
        venue: Venue::Moex(Moex::new(&text, template).map_err(|e| format!("{templates}: {e}"))?),
        tick: Price::from_4dp(25),
        ..Target::default()
    })
}

fn run(file: &str, folder: &Path, target: &Target) -> Result<(), String> {
    let source = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let no_files = |name: &str| Err(format!("{name}: this example loads no tables"));
    let program =
        tickwire_language::compile(&source, &no_files).map_err(|wrong| format!("{file}: {wrong:?}"))?;
    let design = generate(&program, &source, target).map_err(|refusals| {
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
