//! A pseudo-terminal with a program at its other end.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{self, Termios, Winsize};

/// A program in a terminal. Killed when it goes.
pub(crate) struct InTerminal {
    controller: OwnedFd,
    /// Held open, so that the terminal's modes can be asked for after the program's end.
    terminal: OwnedFd,
    before: Termios,
    child: Child,
    /// Everything that the program wrote.
    pub(crate) output: String,
}

impl InTerminal {
    /// Starts it in a terminal of 80 columns and 30 rows.
    pub(crate) fn start(mut command: Command) -> InTerminal {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&controller).expect("its rights");
        unlockpt(&controller).expect("its other end");
        let name = ptsname(&controller, Vec::new()).expect("its name");
        let path = Path::new(name.to_str().expect("a plain name"));
        let terminal = open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other end");
        let stdio = || Stdio::from(terminal.try_clone().expect("a descriptor"));
        let before = termios::tcgetattr(&terminal).expect("a terminal's modes");
        let child = command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        let mut this = InTerminal {
            child: child.spawn().expect("the program starts"),
            controller,
            terminal,
            before,
            output: String::new(),
        };
        this.resize(80, 30);
        this
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        let size = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        termios::tcsetwinsize(&self.terminal, size).expect("a size");
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        rustix::io::write(&self.controller, keys).expect("keys");
    }

    /// Takes what has been written, waiting for it a moment.
    pub(crate) fn read(&mut self) {
        let mut fds = [PollFd::new(&self.controller, PollFlags::IN)];
        let moment = Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        let mut some = [0; 65_536];
        if poll(&mut fds, Some(&moment)).is_ok_and(|ready| ready > 0)
            && let Ok(n) = rustix::io::read(&self.controller, &mut some)
        {
            self.output += &String::from_utf8_lossy(&some[..n]);
        }
    }

    /// Reads until the output from here on holds a text; `meanwhile` is called again and again.
    pub(crate) fn wait_for(&mut self, text: &str, mut meanwhile: impl FnMut()) {
        let from = self.output.len();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.output[from..].contains(text) {
            assert!(
                Instant::now() < deadline,
                "no {text:?} in {:?}",
                &self.output[from..]
            );
            meanwhile();
            self.read();
        }
    }

    /// Waits for its end and says whether the terminal is as it was: modes, cursor, the screen before.
    pub(crate) fn end(&mut self) -> (ExitStatus, bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let status = loop {
            self.read();
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end: {:?}", self.output);
        };
        self.read();
        let modes = termios::tcgetattr(&self.terminal).expect("a terminal's modes");
        let same = |of: fn(&Termios) -> u32| of(&modes) == of(&self.before);
        let modes_restored = same(|t| t.local_modes.bits())
            && same(|t| t.input_modes.bits())
            && same(|t| t.output_modes.bits())
            && same(|t| t.control_modes.bits());
        let entered = self.output.matches("\x1b[?1049h").count();
        let left = self.output.matches("\x1b[?25h\x1b[?1049l").count();
        let _ = std::io::stdout().flush();
        (status, modes_restored && entered == 1 && left == 1)
    }
}

impl Drop for InTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
