//! What the terminal is like: how wide, and whether it takes colours and cursor movements. The one place that
//! asks.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use rustix::termios;

/// How wide tables are where nobody says: in a pipe or a file.
const WIDTH: usize = 120;
/// No table is made narrower than this, however small the terminal.
const LEAST: usize = 40;

/// Columns of the terminal: what `COLUMNS` says, or the size of the terminal that standard output is; `None`
/// where it is none.
pub fn columns() -> Option<usize> {
    let said = std::env::var("COLUMNS")
        .ok()
        .and_then(|said| said.trim().parse().ok());
    let size = || match termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 => Some(usize::from(size.ws_col)),
        _ => None,
    };
    said.filter(|&columns| columns > 0).or_else(size)
}

/// How wide a printed table may be.
pub fn width() -> usize {
    columns().map_or(WIDTH, |columns| columns.max(LEAST))
}

/// What the environment says of colours and cursor movements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Environment {
    /// Set and not empty: no colours (<https://no-color.org>).
    no_color: bool,
    /// `TERM` is `dumb`: no control sequence at all.
    is_dumb: bool,
}

fn environment() -> Environment {
    static ONCE: OnceLock<Environment> = OnceLock::new();
    *ONCE.get_or_init(|| Environment {
        no_color: std::env::var_os("NO_COLOR").is_some_and(|said| !said.is_empty()),
        is_dumb: std::env::var_os("TERM").is_some_and(|term| term == "dumb"),
    })
}

/// Whether text may have colours (and bold, and faint).
pub fn takes_colours() -> bool {
    let said = environment();
    !said.no_color && !said.is_dumb
}

/// Whether a stream is a terminal on which the cursor can be moved.
pub fn takes_movements(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && !environment().is_dumb
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// A control sequence that is written anywhere else would not obey `NO_COLOR` and `TERM=dumb`.
    #[test]
    fn control_sequences_are_written_where_the_terminal_is_asked() {
        // Tones and pages; the screen of live views; the lines that say how far reading and a sweep have
        // come.
        const MAY: [&str; 4] = [
            "crates/views/src/text.rs",
            "crates/views/src/screen.rs",
            "crates/replay/src/progress.rs",
            "crates/tickwire/src/strategy/backtest/sweep.rs",
        ];
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        // The commands of the project itself, and its tests, ask nobody.
        let (mut folders, mut found) = (vec![root.join("apps"), root.join("crates")], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    let is_source =
                        !path.ends_with("tests") && !path.ends_with("benches") && !path.ends_with("target");
                    folders.extend(is_source.then_some(path));
                    continue;
                }
                let Ok(text) = std::fs::read_to_string(&path) else {
                    continue;
                };
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let escapes = ["\\x1b", "\\u{1b}", "\\x1B", "\\u{1B}"];
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                if name != "crates/console/src/terminal.rs"
                    && escapes.iter().any(|escape| code.contains(escape))
                {
                    found.push(name);
                }
            }
        }
        found.sort_unstable();
        let mut may = MAY.map(str::to_string).to_vec();
        may.sort_unstable();
        assert_eq!(found, may);
        for name in MAY {
            let text = std::fs::read_to_string(root.join(name)).unwrap();
            assert!(text.contains("terminal::takes_"), "{name} does not ask");
        }
    }
}
