//! The terminal while a live view runs: raw input, the alternate screen, and everything as it was afterwards,
//! however it ends.
//!
//! `rustix` gives the terminal's modes, size and `poll` without unsafe code and is in the tree already
//! (`clap` asks it for the width of help); a terminal library would add a second layout of the same lines
//! that `--once` prints.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{self, OptionalActions, Termios};
use tickwire_runtime::signal::StopFlag;

use super::text::Page;
use tickwire_console::failure::Failure;
use tickwire_console::terminal;

/// What a user pressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Key {
    Quit,
    Interrupt,
    Next,
    Previous,
}

/// Keys in what came from the terminal: `q`, Esc and Ctrl-D end, Ctrl-C interrupts, Tab and arrows turn
/// pages.
fn keys(input: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = input;
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'q' | b'Q' | 0x04 => keys.push(Key::Quit),
            0x03 => keys.push(Key::Interrupt),
            b'\t' => keys.push(Key::Next),
            // CSI: parameters, then one final byte (ECMA-48 5.4). SS3 has the final byte alone.
            0x1b if behind.first().is_some_and(|b| b"[O".contains(b)) => {
                let end = behind[1..].iter().position(|b| (0x40..=0x7e).contains(b));
                let Some(end) = end else { break };
                match behind[1 + end] {
                    b'C' | b'B' => keys.push(Key::Next),
                    b'D' | b'A' | b'Z' => keys.push(Key::Previous),
                    _ => {}
                }
                rest = &behind[end + 2..];
            }
            0x1b => keys.push(Key::Quit),
            _ => {}
        }
    }
    keys
}

/// Whether there is a terminal to draw on and to read keys from; without one a view is printed once.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal() && terminal::takes_movements(&io::stdout())
}

/// Alternate screen, cursor off, no wrapping at the right edge (DEC private modes 1049, 25, 7).
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// How the terminal was before; `None` while no view runs. A panic needs it too, before its message is
/// printed.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Puts the terminal back; does nothing the second time.
fn restore() {
    let before = BEFORE.lock().map_or_else(
        |poisoned| poisoned.into_inner().take(),
        |mut before| before.take(),
    );
    if let Some(before) = before {
        let mut out = io::stdout().lock();
        // The terminal may be gone: then there is nothing to put back.
        let _ = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &before);
    }
}

/// The terminal in a live view's hands.
struct Screen {
    /// What stands there: nothing is sent when nothing changed.
    shown: String,
}

impl Screen {
    fn enter() -> io::Result<Screen> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        *BEFORE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(before);
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            hook(panic);
        }));
        let screen = Screen { shown: String::new() };
        termios::tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let mut out = io::stdout().lock();
        out.write_all(ENTER.as_bytes())?;
        out.flush()?;
        Ok(screen)
    }

    /// Columns and rows; what every terminal has where it does not say.
    fn size() -> (usize, usize) {
        match termios::tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            _ => (80, 24),
        }
    }

    fn draw(&mut self, text: String) -> io::Result<()> {
        if text != self.shown {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()?;
            self.shown = text;
        }
        Ok(())
    }

    /// Waits for keys, at most so long. A terminal that is gone is a wish to quit.
    fn wait(&self, patience: Duration) -> io::Result<Vec<Key>> {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let patience = Timespec::try_from(patience).unwrap_or(Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        });
        match poll(&mut fds, Some(&patience)) {
            Ok(0) => return Ok(Vec::new()),
            Ok(_) => {}
            // A signal: the loop looks at its flag.
            Err(e) if e == rustix::io::Errno::INTR => return Ok(Vec::new()),
            Err(e) => return Err(e.into()),
        }
        let mut input = [0; 256];
        match rustix::io::read(&stdin, &mut input) {
            Ok(0) => Ok(vec![Key::Quit]),
            Ok(n) => Ok(keys(&input[..n])),
            Err(e) if e == rustix::io::Errno::INTR || e == rustix::io::Errno::AGAIN => Ok(Vec::new()),
            Err(_) => Ok(vec![Key::Quit]),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// How long the loop sleeps at most: a new size and a signal between two looks at its flag are noticed after
/// this.
const NAP: Duration = Duration::from_millis(250);

/// Shows a view until the user quits: `frame` makes the page for so many columns and rows, told which keys
/// were pressed.
///
/// # Errors
/// The terminal cannot be used; interrupted (Ctrl-C, SIGTERM); what `frame` says.
pub(crate) fn live(
    stop: &StopFlag,
    interval: Duration,
    mut frame: impl FnMut(usize, usize, &[Key]) -> Result<Page, Failure>,
) -> Result<(), Failure> {
    let failed =
        |e: io::Error| Failure::system(format!("cannot use the terminal: {e}; --once prints plain text"));
    let mut screen = Screen::enter().map_err(failed)?;
    let (mut size, mut due, mut pressed) = (Screen::size(), Instant::now(), Vec::new());
    loop {
        if let Some(reason) = stop.reason() {
            return Err(Failure::interrupted(reason.to_string()));
        }
        let resized = std::mem::replace(&mut size, Screen::size()) != size;
        if resized || !pressed.is_empty() || Instant::now() >= due {
            let page = frame(size.0, size.1, &pressed)?;
            screen.draw(page.to_screen(size.0, size.1)).map_err(failed)?;
            due = Instant::now() + interval;
        }
        pressed = screen
            .wait(due.saturating_duration_since(Instant::now()).min(NAP))
            .map_err(failed)?;
        if pressed.contains(&Key::Interrupt) {
            return Err(Failure::interrupted("interrupted (Ctrl-C)"));
        }
        if pressed.contains(&Key::Quit) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_from_sequences() {
        assert_eq!(keys(b"q"), [Key::Quit]);
        assert_eq!(keys(b"\x1b"), [Key::Quit]);
        assert_eq!(keys(b"\x03"), [Key::Interrupt]);
        assert_eq!(
            keys(b"\t\x1b[Z\x1b[C\x1bOD"),
            [Key::Next, Key::Previous, Key::Next, Key::Previous]
        );
        // A mouse report, a cut sequence and ordinary letters are nothing.
        assert_eq!(keys(b"\x1b[1;5Hxyz\x1b["), []);
    }

    const CHILD: &str = "TICKWIRE_TEST_VIEW_PANICS";

    /// What the next test runs in a terminal; nothing by itself.
    #[test]
    fn child_of_the_next_test() {
        if std::env::var_os(CHILD).is_some() {
            let stop = StopFlag::install().unwrap();
            let _ = live(&stop, Duration::from_secs(1), |_, _, _| {
                panic!("the view fell over")
            });
        }
    }

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was_and_its_message_readable() {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let name = "screen::tests::child_of_the_next_test";
        command.args([name, "--exact", "--nocapture"]).env(CHILD, "1");
        let mut terminal = pty::InTerminal::start(command);
        let (status, restored) = terminal.end();
        assert!(!status.success() && restored, "{:?}", terminal.output);
        let after = terminal.output.find(LEAVE).expect("it leaves its screen");
        assert!(
            terminal.output[after..].contains("the view fell over"),
            "{:?}",
            terminal.output
        );
    }
}

#[cfg(test)]
#[path = "../../../apps/tickwire/tests/common/pty.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod pty;
