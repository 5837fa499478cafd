//! `tickwire man` and `tickwire completions`: what `--help` says, for man(1) and for shells.

use std::path::Path;

use clap::CommandFactory;
use tickwire_console::failure::Failure;

use crate::cli::Cli;

/// Writes the completions for a shell to standard output.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tickwire", &mut text);
    print!("{}", String::from_utf8_lossy(&text));
    Ok(())
}

/// Writes a page for the program and for each of its commands: tickwire.1, tickwire-replay.1.
pub(crate) fn pages(folder: &Path) -> Result<(), Failure> {
    tickwire_runtime::files::create_folders(folder)
        .map_err(|e| Failure::system(format!("cannot create {}: {e}", folder.display())))?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    page(&command, folder, "tickwire")
}

fn page(command: &clap::Command, folder: &Path, name: &str) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.1"));
    let wrong = |e: std::io::Error| Failure::system(format!("cannot write {}: {e}", path.display()));
    // clap wants names for as long as the program runs, which is a moment.
    let named = command.clone().name(&*name.to_owned().leak());
    let mut text = Vec::new();
    clap_mangen::Man::new(named)
        .manual("Tickwire")
        .render(&mut text)
        .map_err(wrong)?;
    tickwire_runtime::files::write(&path, text).map_err(wrong)?;
    let own = command.get_subcommands().filter(|own| !own.is_hide_set());
    for own in own {
        page(own, folder, &format!("{name}-{}", own.get_name()))?;
    }
    Ok(())
}
