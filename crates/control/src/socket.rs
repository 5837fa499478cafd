//! The control socket: one JSON object a line in, one a line out, for our own user and root, and for whom
//! `[access]` names.
//!
//! ```text
//! {"do":"subscribe","patterns":["AAPL","Z*"],"feed":"bzx"}     ─►  {"ok":true,...}
//! {"do":"subscriptions"}                                        ─►  {"ok":false,"error":"..."}
//! ```
//! Nobody can harm the daemon from here: at most `CLIENTS_MAX` clients, a line of at most `LINE_MAX` bytes,
//! no further request read from a client before it has taken its last answer, and none is waited for. Who
//! asks is what the kernel says of the connection; whatever changes something, and whatever is refused, is
//! said on standard error with who asked for it.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tickwire_runtime::files::Folder;
use tickwire_runtime::users::Peer;
use tickwire_runtime::wait::{Waiter, Watch};

use crate::access::{AccessSection, Gate};
use tickwire_console::failure::Failure;
use tickwire_console::note;

/// The socket's name in the daemon's folder.
pub const SOCKET_NAME: &str = "control";
/// And until it may be found.
const NEW_NAME: &str = "control.new";
/// Clients served at once; a further one is told so and sent away.
const CLIENTS_MAX: usize = 16;
/// The longest request, bytes.
const LINE_MAX: usize = 64 << 10;
/// Requests of one client answered before the others have their turn.
const REQUESTS_PER_LOOK: usize = 4;
/// A client that does not take its answer, or says nothing, for so long is sent away.
const PATIENCE: Duration = Duration::from_secs(30);
/// Commands that change nothing, or come every second: who asks for them is not said.
const QUESTIONS: &[&str] = &["status", "subscriptions", "risk", "heartbeat"];
/// Of a request, this much is said with who asked for it, characters.
const SAID_MAX: usize = 300;

/// What a client may ask a feed handler for.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// Wants symbols from now on, of one feed or of all.
    Subscribe {
        /// Symbols, or patterns with `*` and `?`.
        patterns: Vec<String>,
        /// Its name; all feeds without it.
        #[serde(default)]
        feed: Option<String>,
    },
    /// No longer wants them.
    Unsubscribe {
        /// Symbols, or patterns with `*` and `?`.
        patterns: Vec<String>,
        /// Its name; all feeds without it.
        #[serde(default)]
        feed: Option<String>,
    },
    /// What is subscribed to.
    Subscriptions {
        /// Its name; all feeds without it.
        #[serde(default)]
        feed: Option<String>,
        /// With what was seen, dropped and passed by subscription and by symbol.
        #[serde(default)]
        statistics: bool,
    },
    /// How the daemon is.
    Status {},
    /// Ends it, as SIGTERM does.
    Stop {},
}

/// Answers requests of its own kind.
pub trait Answer {
    /// What it may be asked for.
    type Request: DeserializeOwned;
    /// Who it is, for those who ask for something else.
    const WHO: &'static str;

    /// An object for the client, or why not; `by` is who asks, who may.
    fn answer(&mut self, request: Self::Request, by: &Peer) -> Result<Value, String>;
}

/// See the module's description.
pub struct ControlSocket {
    listener: UnixListener,
    clients: Vec<Client>,
    folder: Folder,
    gate: Gate,
}

struct Client {
    stream: UnixStream,
    by: Peer,
    watch: Watch,
    input: Vec<u8>,
    /// An answer that it has not taken yet.
    output: Vec<u8>,
    is_ending: bool,
    last_heard: Instant,
}

impl ControlSocket {
    /// Listens in a folder that is made if it is not there and must be ours alone to write.
    pub fn open(
        folder: &Path,
        access: &AccessSection,
        waiter: &mut Waiter,
    ) -> Result<ControlSocket, Failure> {
        let folder = Folder::own(folder, access.sharing()?).map_err(|e| Failure::system(e.to_string()))?;
        ControlSocket::bind(folder, access.gate()?, waiter)
    }

    /// Listens in a folder that this process has for itself: a socket left there by a dead one is replaced.
    pub fn bind(folder: Folder, gate: Gate, waiter: &mut Waiter) -> Result<ControlSocket, Failure> {
        let path = folder.path_of(SOCKET_NAME);
        let failed =
            |e: io::Error| Failure::system(format!("cannot open the control socket {}: {e}", path.display()));
        // Made beside its place, so that nobody finds it before its mode is right.
        folder.remove(NEW_NAME).map_err(failed)?;
        let listener = UnixListener::bind(folder.reach(NEW_NAME)).map_err(failed)?;
        folder.share_socket(NEW_NAME).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        folder.rename(NEW_NAME, SOCKET_NAME).map_err(failed)?;
        waiter.watch(&listener);
        Ok(ControlSocket {
            listener,
            clients: Vec::new(),
            folder,
            gate,
        })
    }

    /// Takes new clients, answers requests, sends away who is done. Never waits.
    pub fn serve(&mut self, waiter: &mut Waiter, answers: &mut impl Answer) {
        while let Ok((stream, _)) = self.listener.accept() {
            self.admit(stream, waiter);
        }
        self.clients.retain_mut(|client| {
            let is_over = client.serve(answers, &self.gate).is_err() || client.is_over();
            if is_over {
                waiter.forget(client.watch);
            } else {
                waiter.want_output(client.watch, !client.output.is_empty());
            }
            !is_over
        });
    }

    fn admit(&mut self, mut stream: UnixStream, waiter: &mut Waiter) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let by = match Peer::of(&stream) {
            Ok(by) => by,
            Err(e) => {
                return note(format_args!(
                    "control: a client is sent away, nothing says who it is: {e}"
                ));
            }
        };
        if self.clients.len() >= CLIENTS_MAX {
            let says = format!("{CLIENTS_MAX} clients are connected already; try again later");
            let _ = stream.write(&line_of(&Err(says)));
            return;
        }
        self.clients.push(Client {
            watch: waiter.watch(&stream),
            stream,
            by,
            input: Vec::new(),
            output: Vec::new(),
            is_ending: false,
            last_heard: Instant::now(),
        });
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = self.folder.remove(SOCKET_NAME);
    }
}

impl Client {
    /// Reads, answers, writes, as far as that goes without waiting.
    fn serve<A: Answer>(&mut self, answers: &mut A, gate: &Gate) -> io::Result<()> {
        self.write()?;
        for _ in 0..REQUESTS_PER_LOOK {
            if !self.output.is_empty() || self.is_ending {
                break;
            }
            let Some(line) = self.read_line()? else { break };
            self.output = line_of(&self.answer(&line, answers, gate));
            self.write()?;
        }
        Ok(())
    }

    /// What is said to a line.
    fn answer<A: Answer>(&self, line: &[u8], answers: &mut A, gate: &Gate) -> Result<Value, String> {
        let no_request = |e: serde_json::Error| {
            format!(
                "not a request to {}: {e}; say one JSON object a line, such as {{\"do\":\"status\"}}",
                A::WHO
            )
        };
        let asked: Value = serde_json::from_slice(line).map_err(no_request)?;
        let command = asked["do"].as_str().unwrap_or_default().to_owned();
        let by = &self.by;
        let request: A::Request = serde_json::from_value(asked.clone()).map_err(no_request)?;
        if !gate.lets(by, &command) {
            note(format_args!("control: refused to {by}: {}", said(&asked)));
            return Err(format!(
                "{command:?} is not for {by}: the user who runs {} and root may ask for everything, others for what access.allow names",
                A::WHO
            ));
        }
        let answer = answers.answer(request, by);
        if !QUESTIONS.contains(&&command[..]) {
            let end = match &answer {
                Ok(_) => String::new(),
                Err(why) => format!(": not done, {why}"),
            };
            note(format_args!("control: {by} asked {}{end}", said(&asked)));
        }
        answer
    }

    /// The next whole line, without its end.
    fn read_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut chunk = [0; 4096];
        loop {
            if let Some(end) = self.input.iter().position(|&byte| byte == b'\n') {
                let mut line: Vec<u8> = self.input.drain(..=end).collect();
                line.pop();
                return Ok(Some(line));
            }
            if self.input.len() > LINE_MAX {
                let says = format!("a request has at most {LINE_MAX} bytes");
                self.output = line_of(&Err(says));
                self.is_ending = true;
                self.input = Vec::new();
                self.write()?;
                return Ok(None);
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => {
                    self.is_ending = true;
                    return Ok(None);
                }
                Ok(length) => {
                    self.last_heard = Instant::now();
                    self.input.extend_from_slice(&chunk[..length]);
                }
                Err(e) if is_later(&e) => return Ok(None),
                Err(e) => return Err(e),
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => {
                    self.last_heard = Instant::now();
                    self.output.drain(..length);
                }
                Err(e) if is_later(&e) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.is_ending && self.output.is_empty() || self.last_heard.elapsed() > PATIENCE
    }
}

fn is_later(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A request as it is said of who asked for it: what is no text of a line is escaped, and what is long is
/// cut.
fn said(asked: &Value) -> String {
    let mut text = asked.to_string();
    if let Some((end, _)) = text.char_indices().nth(SAID_MAX) {
        text.truncate(end);
        text += "...";
    }
    text
}

/// An answer as a line.
fn line_of(answer: &Result<Value, String>) -> Vec<u8> {
    let answer = match answer {
        Ok(value) => {
            let mut value = value.clone();
            value["ok"] = true.into();
            value
        }
        Err(says) => json!({ "ok": false, "error": says }),
    };
    let mut line = answer.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use tickwire_runtime::wait::WaitStrategy;

    /// Says what it was asked.
    struct Echo;

    impl Answer for Echo {
        type Request = Request;
        const WHO: &'static str = "an echo";

        fn answer(&mut self, request: Request, _: &Peer) -> Result<Value, String> {
            match request {
                Request::Stop {} => Err("no".into()),
                other => Ok(json!({ "was": format!("{other:?}") })),
            }
        }
    }

    struct Served {
        folder: PathBuf,
        socket: ControlSocket,
        waiter: Waiter,
    }

    impl Served {
        fn new(name: &str) -> Served {
            let folder = std::env::temp_dir().join(format!("tickwire-control-{name}-{}", std::process::id()));
            let mut waiter = Waiter::new(WaitStrategy::Poll);
            let socket = ControlSocket::open(&folder, &AccessSection::default(), &mut waiter).unwrap();
            Served {
                folder,
                socket,
                waiter,
            }
        }

        fn client(&mut self) -> BufReader<UnixStream> {
            let stream = UnixStream::connect(self.folder.join(SOCKET_NAME)).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            self.serve();
            BufReader::new(stream)
        }

        fn serve(&mut self) {
            for _ in 0..20 {
                self.socket.serve(&mut self.waiter, &mut Echo);
            }
        }

        fn say(&mut self, client: &mut BufReader<UnixStream>, bytes: &[u8]) -> String {
            client.get_mut().write_all(bytes).unwrap();
            self.serve();
            let mut line = String::new();
            client.read_line(&mut line).unwrap();
            line
        }
    }

    impl Drop for Served {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn requests_are_answered_line_by_line() {
        let mut served = Served::new("lines");
        let mut client = served.client();
        let said = served.say(
            &mut client,
            b"{\"do\":\"subscribe\",\"patterns\":[\"A*\"],\"feed\":null}\n",
        );
        assert!(said.contains("\"ok\":true") && said.contains("A*"), "{said}");
        let said = served.say(&mut client, b"{\"do\":\"status\"}\n{\"do\":\"stop\"}\n");
        assert!(said.contains("Status"), "{said}");
        let mut second = String::new();
        client.read_line(&mut second).unwrap();
        assert_eq!(second, "{\"error\":\"no\",\"ok\":false}\n");
    }

    #[test]
    fn the_file_is_for_its_owner_alone() {
        let served = Served::new("mode");
        let path = served.folder.join(SOCKET_NAME);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn garbage_is_answered_and_does_not_end_the_conversation() {
        let mut served = Served::new("garbage");
        let mut client = served.client();
        for garbage in [
            &b"\n"[..],
            b"hello\n",
            b"{\"do\":\"dance\"}\n",
            b"{\"do\":\"subscribe\"}\n",
            b"{\"do\":\"status\",\"more\":1}\n",
            b"\xff\xfe\n",
        ] {
            let said = served.say(&mut client, garbage);
            assert!(
                said.contains("\"ok\":false") && said.contains("not a request"),
                "{said}"
            );
        }
        assert!(
            served
                .say(&mut client, b"{\"do\":\"status\"}\n")
                .contains("\"ok\":true")
        );
    }

    #[test]
    fn a_request_without_end_is_refused() {
        let mut served = Served::new("long");
        let mut client = served.client();
        let stream = client.get_ref().try_clone().unwrap();
        stream.set_nonblocking(true).unwrap();
        for _ in 0..40 {
            let _ = (&stream).write(&[b'x'; 4096]);
            served.serve();
        }
        let mut line = String::new();
        stream.set_nonblocking(false).unwrap();
        client.read_line(&mut line).unwrap();
        assert!(line.contains("at most 65536 bytes"), "{line}");
        assert!(served.socket.clients.is_empty());
    }

    #[test]
    fn one_client_too_many_is_told_so() {
        let mut served = Served::new("many");
        let clients: Vec<_> = (0..CLIENTS_MAX).map(|_| served.client()).collect();
        let mut line = String::new();
        served.client().read_line(&mut line).unwrap();
        assert!(line.contains("connected already"), "{line}");
        drop(clients);
        served.serve();
        let mut client = served.client();
        assert!(
            served
                .say(&mut client, b"{\"do\":\"status\"}\n")
                .contains("\"ok\":true")
        );
    }

    #[test]
    fn a_client_that_does_not_read_holds_nobody_up() {
        let mut served = Served::new("slow");
        let mut slow = served.client();
        slow.get_mut().set_nonblocking(true).unwrap();
        let long = format!(
            "{{\"do\":\"subscribe\",\"patterns\":[\"{}\"]}}\n",
            "A".repeat(30_000)
        );
        for _ in 0..50 {
            let _ = slow.get_mut().write(long.as_bytes());
            served.serve();
        }
        let held: usize = served
            .socket
            .clients
            .iter()
            .map(|c| c.output.len() + c.input.len())
            .sum();
        assert!(held < 4 * LINE_MAX, "{held}");
        let mut other = served.client();
        assert!(
            served
                .say(&mut other, b"{\"do\":\"status\"}\n")
                .contains("\"ok\":true")
        );
    }
}
