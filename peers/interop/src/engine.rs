//! A FIX engine in a process of its own: lines in, lines out. `ready`, `logon`, `logout`, `app MESSAGE`,
//! `admin MESSAGE`, with `|` for the separator. The peers speak so; what Tickwire's programs print for people
//! is put into it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long anything may take, on a machine busy with other things too (a JVM starts); a heartbeat interval
/// is far longer.
const PATIENCE: Duration = Duration::from_secs(90);

pub type Result<T> = std::result::Result<T, String>;

/// How an engine is spoken to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tongue {
    /// As above.
    Peer,
    /// `tickwire fix initiator`: its prompt.
    Prompt,
    /// `tickwire fix acceptor`: it sends orders back, shows who comes and goes, and is ended by a signal.
    Echo,
}

impl Tongue {
    /// What is said, if it means anything here.
    fn heard(self, line: String) -> Option<String> {
        if self == Tongue::Peer {
            return Some(line);
        }
        if line.starts_with("listening on") && self == Tongue::Echo || line.starts_with("type a message") {
            return Some("ready".into());
        }
        if line.ends_with(" logged on") {
            return Some("logon".into());
        }
        if let Some(message) = line.strip_prefix("<- ") {
            let is_admin = matches!(field(message, 35), Some("0" | "1" | "2" | "3" | "4" | "5" | "A"));
            return Some(format!("{} {message}", if is_admin { "admin" } else { "app" }));
        }
        if line.contains("PeerLogout") || line.contains("LogoutComplete") {
            return Some("logout".into());
        }
        line.strip_prefix("? ").map(|why| format!("error {why}"))
    }

    /// A command as it takes it, `None` if it has none for that.
    fn said(self, line: &str) -> Option<&str> {
        match (self, line) {
            (Tongue::Peer, line) => Some(line),
            (Tongue::Prompt, "logon") => Some("connect"),
            // It never sends a SequenceReset of its own accord; numbers left out are asked for and filled by
            // one.
            (Tongue::Prompt, "reset") => Some("gap 3"),
            (Tongue::Prompt, line) => Some(line),
            (Tongue::Echo, _) => None,
        }
    }
}

/// A running engine.
pub struct Engine {
    pub name: String,
    tongue: Tongue,
    child: Child,
    lines: Receiver<String>,
    /// What it said before it was ready: an initiator may have logged on by then.
    early: VecDeque<String>,
    /// Everything it said, for whoever must find out what went wrong.
    pub said: Vec<String>,
}

/// The value of a field.
pub fn field(message: &str, tag: u32) -> Option<&str> {
    message.split('|').find_map(|f| {
        f.split_once('=')
            .filter(|(t, _)| t.parse() == Ok(tag))
            .map(|(_, v)| v)
    })
}

impl Engine {
    pub fn start(name: &str, tongue: Tongue, log: &Path, command: &mut Command) -> Result<Engine> {
        let file = File::options().create(true).append(true).open(log);
        let log = file.map_err(|e| format!("cannot write {}: {e}", log.display()))?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|e| format!("{name} does not start: {e} ({command:?})"))?;
        let out = child.stdout.take().ok_or("no standard output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(std::result::Result::ok);
            for line in lines.filter_map(|line| tongue.heard(line)) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Engine {
            name: name.into(),
            tongue,
            child,
            lines,
            early: VecDeque::new(),
            said: Vec::new(),
        })
    }

    /// Whether it shows application messages that it gets.
    pub fn shows_messages(&self) -> bool {
        self.tongue != Tongue::Echo
    }

    /// Gives it a line.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        let Some(line) = self.tongue.said(line) else {
            return match line {
                "logout" | "quit" => self.interrupt(),
                _ => Ok(()),
            };
        };
        let stdin = self.child.stdin.as_mut().ok_or("no standard input")?;
        writeln!(stdin, "{line}")
            .and_then(|()| stdin.flush())
            .map_err(|e| format!("{} takes no more commands: {e}", self.name))
    }

    /// Ctrl-C: sessions are logged out.
    fn interrupt(&mut self) -> Result<()> {
        let sent = Command::new("kill")
            .args(["-INT", &self.child.id().to_string()])
            .status();
        sent.map(drop)
            .map_err(|e| format!("no signal for {}: {e}", self.name))
    }

    /// Waits until it has begun; what it said before stays to be waited for.
    pub fn ready(&mut self) -> Result<()> {
        let mut early = VecDeque::new();
        let ready = self.wait("ready", |line| {
            let is_ready = line == "ready";
            if !is_ready {
                early.push_back(line.to_owned());
            }
            is_ready
        });
        self.early = early;
        ready.map(drop)
    }

    /// Waits for a line that `is_it`; the others go by.
    pub fn wait(&mut self, what: &str, mut is_it: impl FnMut(&str) -> bool) -> Result<String> {
        while let Some(line) = self.early.pop_front() {
            if is_it(&line) {
                return Ok(line);
            }
        }
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if line.starts_with("error") {
                        return Err(format!("{} says: {line}", self.name));
                    }
                    if is_it(&line) {
                        return Ok(line);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("{}: {what} did not come in {PATIENCE:?}", self.name));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("{} ended, {what} did not come", self.name));
                }
            }
        }
    }

    /// Waits for the application message with this ClOrdID; whether it may be a duplicate.
    pub fn message(&mut self, kind: &str, order: &str) -> Result<bool> {
        let what = format!("35={kind} of {order}");
        let line = self.wait(&what, |line| {
            line.starts_with("app ") && field(&line[4..], 35) == Some(kind) && field(line, 11) == Some(order)
        })?;
        Ok(field(&line, 43) == Some("Y"))
    }

    /// Ends it in order.
    pub fn quit(mut self) -> Result<()> {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.tell("quit")?;
        }
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if self.child.try_wait().map_err(|e| e.to_string())?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(format!("{} does not end", self.name))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
