//! The pages of the documentation as those who type after them read them: fenced blocks, the command lines in
//! them, their words.

use std::path::{Path, PathBuf};

use crate::workspace;

/// A fenced block of a page.
#[derive(Clone, Debug)]
pub struct Block {
    /// Page and line of its first line, for people.
    pub place: String,
    /// What stands behind the fence; empty for none.
    pub language: String,
    /// What is between the fences.
    pub lines: Vec<String>,
}

/// README.md and so on, and every page below docs/.
pub fn pages() -> Vec<PathBuf> {
    let mut pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
        .map(|name| workspace().join(name))
        .to_vec();
    let mut folders = vec![workspace().join("docs")];
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

/// The fenced blocks of a page. Panics where one has no end.
pub fn blocks(page: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(page).expect("a page of text");
    let name = page
        .strip_prefix(workspace())
        .unwrap_or(page)
        .display()
        .to_string();
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

/// The command lines of a block: lines that go on behind a `\` as one. Of a session (`text`) only what stands
/// behind a `$`: the rest is output.
pub fn command_lines(block: &Block) -> Vec<String> {
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

/// The words of each simple command in a line, as a shell takes them apart. What stands behind two spaces or
/// more is a remark for the reader, as is what stands behind a `#`, unless it is an option, which some pages
/// align.
pub fn commands(line: &str) -> Vec<Vec<String>> {
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

/// The program's own words, if it is the program that a command starts: by its name or path, by cargo, as
/// another user, timed.
pub fn of_the_program(words: &[String]) -> Option<Vec<String>> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let own = match words.as_slice() {
        ["cargo", "run", rest @ ..] => {
            // Another package's program has commands of its own.
            let package = rest
                .iter()
                .take_while(|word| **word != "--")
                .skip_while(|word| **word != "-p")
                .nth(1);
            if package.is_some_and(|package| *package != "tickwire-app") {
                return None;
            }
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
    Some(own.iter().map(|word| (*word).to_owned()).collect())
}

fn is_program(word: &str) -> bool {
    word == "tickwire" || word.ends_with("/tickwire")
}
