//! `tickwire fix store`: what the stores of a configuration hold, and their numbers set anew.

use tickwire_console::failure::Failure;
use tickwire_fix::Store;
use tickwire_fixengine::settings::{self, Setup, Wanted};
use tickwire_fixengine::store;
use tickwire_lab::Table;

use super::failure;
use crate::cli::FixStoreArgs;
use tickwire_node::voice::{AtStart, console};

/// `tickwire fix store`: what the stores of a configuration hold, and their numbers set anew.
pub(super) fn run(args: &FixStoreArgs) -> Result<(), Failure> {
    let setups =
        settings::load_with(&args.config, Wanted::All, args.allow_unknown, &AtStart).map_err(failure)?;
    let is_wanted = |setup: &&Setup| {
        args.session
            .as_ref()
            .is_none_or(|s| setup.config.target.as_str() == s)
    };
    let chosen: Vec<&Setup> = setups.iter().filter(is_wanted).collect();
    let sets = args.next_out.is_some() || args.next_in.is_some();
    if chosen.is_empty() {
        return Err(Failure::config("no session of the file has this TargetCompID"));
    }
    if sets && chosen.len() > 1 {
        return Err(Failure::config(
            "numbers are set for one session: name it with --session TARGETCOMPID",
        ));
    }
    if sets {
        let lines =
            store::set_numbers(chosen[0], args.next_out, args.next_in, &console()).map_err(failure)?;
        for line in lines {
            println!("{}: {line}", store::identity(chosen[0]));
        }
    }
    let columns = [
        "session", "file", "next out", "next in", "kept", "oldest", "used", "damaged",
    ];
    let mut table = Table::new("stores", &columns);
    let mut lines = Vec::new();
    for setup in chosen {
        let file = setup.store.as_ref();
        let Some(file) = file.filter(|file| file.path.exists()) else {
            let where_to = file.map_or("in memory only".into(), |f| {
                format!("{} is not there yet", f.path.display())
            });
            let row = [store::identity(setup), where_to].into_iter();
            table = table.row(row.chain(std::iter::repeat_n("-".to_string(), columns.len() - 2)));
            continue;
        };
        let found = store::look_at(&file.path).map_err(failure)?;
        let recovery = found.recovery();
        lines.extend(
            store::damage(&found)
                .into_iter()
                .map(|line| format!("{}: {line}", store::identity(setup))),
        );
        table = table.row([
            store::identity(setup),
            file.path.display().to_string(),
            found.next_out().to_string(),
            found.next_in().to_string(),
            recovery.messages.to_string(),
            match recovery.messages {
                0 => "-".to_string(),
                _ => recovery.oldest.to_string(),
            },
            format!(
                "{} of {} KiB",
                found.bytes_used().div_ceil(1024),
                found.bytes_max() / 1024
            ),
            match recovery.damaged_bytes() {
                0 => "-".to_string(),
                bytes => format!("{bytes} bytes"),
            },
        ]);
    }
    print!("{}", table.to_text(tickwire_console::terminal::width()));
    lines.iter().for_each(|line| println!("{line}"));
    match lines.len() {
        0 => Ok(()),
        _ => Err(Failure::check(
            "a store is damaged; nothing was changed, its session opens what is whole",
        )),
    }
}
