//! What the documentation shows is what the program takes: every `tickwire` command of README.md, CONTRIBUTING.md, ARCHITECTURE.md, docs/
//! and `--help` parses by the program's own definition, every example file that one names is there, every TOML snippet loads.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use crate::cli::{self, Cli};
use tickwire::config::Config;

/// Snippets of TOML that are no configuration of this program: what they begin with, and what they are.
const NO_CONFIGURATION: &[(&str, &str)] = &[(
    "[dependencies]",
    "a Cargo.toml of a program that uses our FIX engine",
)];

/// A fenced block of a page.
struct Block {
    /// Page and line of its first line, for people.
    place: String,
    language: String,
    lines: Vec<String>,
}

fn root() -> PathBuf {
    tickwire_testdata::workspace()
}

/// README.md and so on, and every page below docs/.
fn pages() -> Vec<PathBuf> {
    let mut pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
        .map(|name| root().join(name))
        .to_vec();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of pages") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

fn blocks(page: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(page).expect("a page of text");
    let name = page.strip_prefix(root()).unwrap_or(page).display().to_string();
    let mut found: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            is_open = !is_open;
            if is_open {
                found.push(Block {
                    place: format!("{name}:{}", at + 2),
                    language: language.trim().to_owned(),
                    lines: Vec::new(),
                });
            }
        } else if is_open && let Some(block) = found.last_mut() {
            block.lines.push(line.to_owned());
        }
    }
    assert!(!is_open, "{name}: a fenced block has no end");
    found
}

/// The command lines of a block: lines that go on behind a `\` as one. Of a session (`text`) only what stands behind a `$`: the rest is output.
fn command_lines(block: &Block) -> Vec<String> {
    let is_session = block.language == "text";
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in &block.lines {
        let line = line.trim();
        let typed = line.strip_prefix("$ ");
        let (text, more) = match typed.unwrap_or(line).strip_suffix('\\') {
            Some(begun) => (begun, true),
            None => (typed.unwrap_or(line), false),
        };
        let is_command = !is_session || typed.is_some() || line.starts_with("command_line");
        match (goes_on, lines.last_mut()) {
            (true, Some(last)) => last.push_str(text),
            _ if is_command => lines.push(text.to_owned()),
            _ => continue,
        }
        goes_on = more;
    }
    lines
}

/// The words of each simple command in a line, as a shell takes them apart. What stands behind two spaces or more is a remark for the reader, as
/// is what stands behind a `#`, unless it is an option, which some pages align.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = line.chars().peekable();
    let end_word = |word: &mut Option<String>, commands: &mut Vec<Vec<String>>| {
        if let (Some(word), Some(last)) = (word.take(), commands.last_mut()) {
            last.push(word);
        }
    };
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => {
                end_word(&mut word, &mut commands);
                let mut spaces = 1;
                while rest.next_if_eq(&' ').is_some() {
                    spaces += 1;
                }
                match rest.peek() {
                    Some('#') => break,
                    Some('-') => {}
                    _ if spaces > 1 => break,
                    _ => {}
                }
            }
            (None, '|' | ';' | '&' | '>') => {
                end_word(&mut word, &mut commands);
                commands.push(Vec::new());
            }
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    end_word(&mut word, &mut commands);
    commands
}

/// The program's own words, if it is the program that a command starts: by its name or path, by cargo, as another user, timed.
fn of_the_program(words: &[String]) -> Option<Vec<OsString>> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let own = match words.as_slice() {
        ["cargo", "run", rest @ ..] => {
            let at = rest.iter().position(|word| *word == "--")?;
            let is_other = rest[..at].iter().any(|word| word.starts_with("--manifest-path"));
            (!is_other).then(|| &rest[at + 1..])?
        }
        ["/usr/bin/time", "-f", _, program, rest @ ..] | ["sudo" | "command_line", program, rest @ ..] => {
            is_program(program).then_some(rest)?
        }
        [program, rest @ ..] => is_program(program).then_some(rest)?,
        [] => return None,
    };
    Some(["tickwire"].iter().chain(own).map(OsString::from).collect())
}

fn is_program(word: &str) -> bool {
    word == "tickwire" || word.ends_with("/tickwire")
}

/// What is wrong with a command line; how many commands of the program are in it.
fn check(line: &str, place: &str, wrong: &mut Vec<String>) -> usize {
    let mut count = 0;
    for words in commands(line) {
        let Some(own) = of_the_program(&words) else {
            continue;
        };
        count += 1;
        // A page on strategies shows the commands of a strategy's own program.
        let is_passed_on = match own.get(1).and_then(|word| word.to_str()) {
            Some("lab" | "bench") => true,
            Some("fix") => own.get(2).is_some_and(|word| word == "bench" || word == "trader"),
            _ => false,
        };
        let is_taken = match is_passed_on {
            true => tickwire_lab_app::takes(own.clone()),
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
            if path.starts_with("examples/") && !root().join(path).exists() {
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
    assert_eq!(own("cargo run --release -- demo --loss 0.01"), Some(4));
    assert_eq!(
        own("cargo run --release --manifest-path peers/fix/Cargo.toml 2000"),
        None
    );
    assert_eq!(own("sudo tickwire lab run gati"), Some(4));
    assert_eq!(own("/usr/bin/time -f '%U %S' tickwire replay day.pcap"), Some(3));
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
