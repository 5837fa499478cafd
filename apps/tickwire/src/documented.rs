//! What the documentation shows is what the program takes: every `tickwire` command of README.md,
//! CONTRIBUTING.md, ARCHITECTURE.md, docs/ and `--help` parses by the program's own definition, every example
//! file that one names is there, every TOML snippet loads.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::CommandFactory;
use tickwire_testdata::pages::{Block, blocks, command_lines, commands, of_the_program, pages};

use crate::cli::{self, Cli};
use tickwire::config::Config;

/// Snippets of TOML that are no configuration of this program: what they begin with, and what they are.
const NO_CONFIGURATION: &[(&str, &str)] = &[(
    "[dependencies]",
    "a Cargo.toml of a program that uses our FIX engine",
)];

fn root() -> PathBuf {
    tickwire_testdata::workspace()
}

/// Whether there is such a file, or one that the pattern `*.ending` fits.
fn is_there(path: &str) -> bool {
    let Some((folder, ending)) = path.split_once('*') else {
        return root().join(path).exists();
    };
    let mut files = root().join(folder).read_dir().into_iter().flatten().flatten();
    files.any(|file| file.file_name().to_string_lossy().ends_with(ending))
}

/// What is wrong with a command line; how many commands of the program are in it.
fn check(line: &str, place: &str, wrong: &mut Vec<String>) -> usize {
    let mut count = 0;
    for words in commands(line) {
        let Some(own) = of_the_program(&words) else {
            continue;
        };
        let own: Vec<OsString> = std::iter::once("tickwire".into())
            .chain(own.into_iter().map(OsString::from))
            .collect();
        count += 1;
        // A page on strategies shows the commands of a strategy's own program.
        let is_passed_on = match own.get(1).and_then(|word| word.to_str()) {
            Some("lab" | "bench") => true,
            Some("fix") => own.get(2).is_some_and(|word| word == "bench" || word == "trader"),
            _ => false,
        };
        let is_taken = match is_passed_on {
            true => tickwire_lab_app::command()
                .try_get_matches_from(own.clone())
                .map(|_| ()),
            false => cli::parse(own.clone()).map(|_| ()),
        };
        let is_taken = is_taken.or_else(|error| match error.kind() {
            clap::error::ErrorKind::InvalidSubcommand => tickwire::strategy::takes(own).map_err(|_| error),
            _ => Err(error),
        });
        if let Err(error) = is_taken
            && !matches!(
                error.kind(),
                clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion
            )
        {
            let said = error.to_string();
            wrong.push(format!(
                "{place}: {line}\n    {}",
                said.lines().next().unwrap_or_default()
            ));
        }
        for word in words {
            let path = word.rsplit('=').next().unwrap_or(&word);
            // Journals, stores and logs are written by a command that runs before.
            let is_written = path.ends_with(".journal") || path.contains("/store/") || path.contains("/log/");
            if path.starts_with("examples/") && !is_written && !is_there(path) {
                wrong.push(format!("{place}: {line}\n    there is no {path}"));
            }
        }
    }
    count
}

#[test]
fn every_command_of_the_pages_is_one_that_the_program_takes() {
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages() {
        for block in blocks(&page) {
            if matches!(block.language.as_str(), "" | "text" | "sh" | "bash" | "console") {
                for line in command_lines(&block) {
                    count += check(&line, &block.place, &mut wrong);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        count > 100,
        "only {count} commands were found: the pages are written otherwise"
    );
}

/// Lines of the examples in help are commands where they begin with the program's name.
#[test]
fn every_command_that_help_shows_is_one_that_the_program_takes() {
    fn walk(command: &clap::Command, path: &str, count: &mut usize, wrong: &mut Vec<String>) {
        let path = format!("{path} {}", command.get_name());
        let texts = [command.get_after_help(), command.get_after_long_help()];
        for text in texts.into_iter().flatten() {
            let block = Block {
                place: format!("{} --help", path.trim()),
                language: String::new(),
                lines: text.to_string().lines().map(str::to_owned).collect(),
            };
            for line in command_lines(&block)
                .iter()
                .filter(|line| line.starts_with("tickwire "))
            {
                *count += check(line, &block.place, wrong);
            }
        }
        command
            .get_subcommands()
            .for_each(|command| walk(command, &path, count, wrong));
    }
    let (mut count, mut wrong) = (0, Vec::new());
    walk(&Cli::command(), "", &mut count, &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 50, "only {count} commands were found in the help");
}

/// What is wrong with a command in the midst of a sentence, whose values are names such as FILE: its commands
/// and options are there.
fn wrong_in_prose(span: &str) -> Option<String> {
    let (mut command, mut beside) = (Cli::command(), Some(tickwire_lab_app::command()));
    command.build();
    let mut words = span.split_whitespace().skip(1).peekable();
    // Below a command that stands with others (`acceptor|initiator`) nothing is looked at but that they are
    // there.
    while command.has_subcommands() {
        let word = words.next_if(|word| !word.starts_with("-") && *word != "COMMAND")?;
        let names: Vec<&str> = word.split(['|', '\\']).filter(|name| !name.is_empty()).collect();
        if let Some(unknown) = names.iter().find(|name| command.find_subcommand(name).is_none()) {
            return Some(format!("there is no command '{unknown}'"));
        }
        let [name] = names.as_slice() else { return None };
        command = command.find_subcommand(name).expect("it was found").clone();
        beside = beside.and_then(|all| all.find_subcommand(name).cloned());
        // What is passed on to the program beside this one is what that one reads.
        if command.get_arguments().any(|arg| arg.is_trailing_var_arg_set()) {
            command = beside.take()?;
            command.build();
        }
    }
    let has = |option: &str| {
        command.get_arguments().any(|arg| {
            arg.get_long() == Some(option) || arg.get_all_aliases().is_some_and(|all| all.contains(&option))
        })
    };
    words
        .filter_map(|word| word.trim_start_matches('[').strip_prefix("--"))
        .map(|option| option.split(['=', ']', ',']).next().unwrap_or_default())
        .find(|option| !option.is_empty() && !has(option))
        .map(|option| format!("{} has no --{option}", command.get_name()))
}

#[test]
fn every_command_in_the_prose_of_the_pages_is_one_there_is() {
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page of text");
        let mut is_code = false;
        for (at, line) in text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            let spans = line.split('`').skip(1).step_by(2);
            for span in spans.filter(|span| !is_code && span.starts_with("tickwire ")) {
                count += 1;
                if let Some(why) = wrong_in_prose(span) {
                    wrong.push(format!("{}:{}: {span}: {why}", page.display(), at + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 50, "only {count} commands were found");
    for (span, is_wrong) in [
        ("tickwire fix acceptor\\|initiator -c FILE", false),
        ("tickwire decode --xdp 2.1 --limt 3", true),
        ("tickwire lab rnu", true),
        ("tickwire fix store --next-out N --next-in M", false),
    ] {
        assert_eq!(wrong_in_prose(span).is_some(), is_wrong, "{span}");
    }
}

#[test]
fn every_snippet_of_configuration_loads() {
    let (mut count, mut wrong) = (0, Vec::new());
    for block in pages().iter().flat_map(|page| blocks(page)) {
        let text = block.lines.join("\n");
        let is_other = |(start, _): &(&str, &str)| text.trim_start().starts_with(start);
        if block.language != "toml" || NO_CONFIGURATION.iter().any(is_other) {
            continue;
        }
        count += 1;
        if let Err(error) = Config::parse(&text) {
            wrong.push(format!("{}: {error}", block.place));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 0, "no snippet was found");
}

#[test]
fn a_command_line_is_taken_apart_as_a_shell_does() {
    let words =
        |line: &str| -> Vec<Vec<String>> { commands(line).into_iter().filter(|c| !c.is_empty()).collect() };
    assert_eq!(words("tickwire top    rates, gaps"), [["tickwire", "top"]]);
    assert_eq!(
        words("tickwire feed     -c a.toml   # it"),
        [["tickwire", "feed", "-c", "a.toml"]]
    );
    assert_eq!(
        words("tickwire config | sed 's/a  b/c/' > x; tickwire top & wait"),
        [
            vec!["tickwire", "config"],
            vec!["sed", "s/a  b/c/"],
            vec!["x"],
            vec!["tickwire", "top"],
            vec!["wait"]
        ]
    );
    let own = |line: &str| of_the_program(&commands(line)[0]).map(|words| words.len());
    assert_eq!(own("cargo run --release -- demo --loss 0.01"), Some(3));
    assert_eq!(
        own("cargo run --release --manifest-path peers/fix/Cargo.toml 2000"),
        None
    );
    assert_eq!(own("sudo tickwire lab run gati"), Some(3));
    assert_eq!(own("/usr/bin/time -f '%U %S' tickwire replay day.pcap"), Some(2));
    assert_eq!(own("echo tickwire"), None);
    let mut wrong = Vec::new();
    assert_eq!(check("tickwire demo --losss 0.1", "here", &mut wrong), 1);
    assert_eq!(
        check("tickwire trade -c examples/none.toml", "here", &mut wrong),
        1
    );
    assert!(
        wrong.len() == 2 && wrong[0].contains("--losss") && wrong[1].contains("there is no"),
        "{wrong:?}"
    );
}
