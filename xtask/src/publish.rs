//! `cargo xtask publish`: what would be published, packed as a registry would get it. Nothing is sent.

use std::process::{Command, ExitCode};

use crate::packages::is_published;
use crate::run::{cargo, root, target_dir};
use crate::source;

const HELP: &str = "\
Packs every crate that is to be published, in the order in which a registry has to get them, into target/package: a dry run, nothing is sent.
Packages are made of what is committed.

  cargo xtask publish [--verify] [--list] [--allow-dirty]

  --verify        builds each package from its own files alone, which takes as long as a cold build of everything
  --list          the files of each package instead
  --allow-dirty   also of files that are not committed

Not part of check. Exit code 1: a package cannot be made. 2: a wrong word.
";

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let mut command = cargo();
    command
        .current_dir(root())
        .args(["package", "--workspace", "--locked"]);
    let mut is_verified = false;
    let mut is_list = false;
    for &word in words {
        match word {
            "--help" | "-h" => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            "--verify" => is_verified = true,
            "--list" => is_list = true,
            "--allow-dirty" => {
                command.arg(word);
            }
            other => {
                eprintln!("xtask publish: unknown word '{other}'\n\n{HELP}");
                return ExitCode::from(2);
            }
        }
    }
    if is_list {
        command.arg("--list");
    } else if !is_verified {
        command.arg("--no-verify");
    }
    let (published, tools) = members();
    for tool in &tools {
        command.args(["--exclude", tool]);
    }
    match command.status() {
        Ok(status) if status.success() => {
            if !is_list {
                report(&published, &tools);
            }
            ExitCode::SUCCESS
        }
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("xtask publish: cannot run {}: {e}", program(&command));
            ExitCode::from(2)
        }
    }
}

fn program(command: &Command) -> String {
    command.get_program().display().to_string()
}

/// Names of the members: those to be published, and the others.
fn members() -> (Vec<String>, Vec<String>) {
    let name = |manifest: &toml::Table| {
        let package = manifest.get("package")?.get("name")?;
        package.as_str().map(str::to_owned)
    };
    let all = source::manifests();
    let (published, tools): (Vec<_>, Vec<_>) = all.iter().partition(|(_, manifest)| is_published(manifest));
    let names = |of: Vec<&(_, toml::Table)>| of.iter().filter_map(|(_, manifest)| name(manifest)).collect();
    (names(published), names(tools))
}

fn report(published: &[String], tools: &[String]) {
    println!();
    for name in published {
        let file = target_dir()
            .join("package")
            .join(format!("{name}-{}.crate", env!("CARGO_PKG_VERSION")));
        match file.metadata() {
            Ok(data) => println!("{name:<26} {:>7.1} KiB", data.len() as f64 / 1024.0),
            Err(e) => println!("{name:<26} {e}"),
        }
    }
    println!(
        "{} packages; not published: {}",
        published.len(),
        tools.join(", ")
    );
}
