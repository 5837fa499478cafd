//! The control socket: one JSON object a line in, one a line out, for whoever may open the file (mode 0600).
//!
//! ```text
//! {"do":"subscribe","patterns":["AAPL","Z*"],"feed":"bzx"}     ─►  {"ok":true,...}
//! {"do":"subscriptions"}                                        ─►  {"ok":false,"error":"..."}
//! ```
//! Nobody can harm the daemon from here: at most [`CLIENTS_MAX`] clients, a line of at most [`LINE_MAX`] bytes, no further
//! request read from a client before it has taken its last answer, and none is waited for.

use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tickwire_runtime::wait::{Waiter, Watch};

use crate::failure::Failure;

/// The socket's name in the daemon's folder.
pub(crate) const SOCKET_NAME: &str = "control";
/// Clients served at once; a further one is told so and sent away.
const CLIENTS_MAX: usize = 16;
/// The longest request, bytes.
const LINE_MAX: usize = 64 << 10;
/// Requests of one client answered before the others have their turn.
const REQUESTS_PER_LOOK: usize = 4;
/// A client that does not take its answer, or says nothing, for so long is sent away.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a client may ask a feed handler for.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Request {
    /// Wants symbols from now on, of one feed or of all.
    Subscribe {
        patterns: Vec<String>,
        #[serde(default)]
        feed: Option<String>,
    },
    /// No longer wants them.
    Unsubscribe {
        patterns: Vec<String>,
        #[serde(default)]
        feed: Option<String>,
    },
    /// What is subscribed to.
    Subscriptions {
        #[serde(default)]
        feed: Option<String>,
    },
    /// How the daemon is.
    Status {},
    /// Ends it, as SIGTERM does.
    Stop {},
}

/// Answers requests of its own kind.
pub(crate) trait Answer {
    /// What it may be asked for.
    type Request: DeserializeOwned;
    /// Who it is, for those who ask for something else.
    const WHO: &'static str;

    /// An object for the client, or why not.
    fn answer(&mut self, request: Self::Request) -> Result<Value, String>;
}

/// See the module's description.
pub(crate) struct ControlSocket {
    listener: UnixListener,
    clients: Vec<Client>,
    path: PathBuf,
}

struct Client {
    stream: UnixStream,
    watch: Watch,
    input: Vec<u8>,
    /// An answer that it has not taken yet.
    output: Vec<u8>,
    is_ending: bool,
    last_heard: Instant,
}

impl ControlSocket {
    /// Listens in a folder that this process has for itself, made if it is not there: a socket left there by a dead one is replaced.
    pub(crate) fn bind(folder: &Path, waiter: &mut Waiter) -> Result<ControlSocket, Failure> {
        let path = folder.join(SOCKET_NAME);
        let failed =
            |e: io::Error| Failure::system(format!("cannot open the control socket {}: {e}", path.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
        // Made beside its place, so that nobody finds it before its mode is right.
        let new = path.with_extension("new");
        let _ = std::fs::remove_file(&new);
        let listener = UnixListener::bind(&new).map_err(failed)?;
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        std::fs::rename(&new, &path).map_err(failed)?;
        waiter.watch(&listener);
        Ok(ControlSocket {
            listener,
            clients: Vec::new(),
            path,
        })
    }

    /// Takes new clients, answers requests, sends away who is done. Never waits.
    pub(crate) fn serve(&mut self, waiter: &mut Waiter, answers: &mut impl Answer) {
        while let Ok((stream, _)) = self.listener.accept() {
            self.admit(stream, waiter);
        }
        self.clients.retain_mut(|client| {
            let is_over = client.serve(answers).is_err() || client.is_over();
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
        if self.clients.len() >= CLIENTS_MAX {
            let says = format!("{CLIENTS_MAX} clients are connected already; try again later");
            let _ = stream.write(&line_of(&Err(says)));
            return;
        }
        self.clients.push(Client {
            watch: waiter.watch(&stream),
            stream,
            input: Vec::new(),
            output: Vec::new(),
            is_ending: false,
            last_heard: Instant::now(),
        });
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Client {
    /// Reads, answers, writes, as far as that goes without waiting.
    fn serve<A: Answer>(&mut self, answers: &mut A) -> io::Result<()> {
        self.write()?;
        for _ in 0..REQUESTS_PER_LOOK {
            if !self.output.is_empty() || self.is_ending {
                break;
            }
            let Some(line) = self.read_line()? else { break };
            let answer = match serde_json::from_slice::<A::Request>(&line) {
                Ok(request) => answers.answer(request),
                Err(e) => Err(format!(
                    "not a request to {}: {e}; say one JSON object a line, such as {{\"do\":\"status\"}}",
                    A::WHO
                )),
            };
            self.output = line_of(&answer);
            self.write()?;
        }
        Ok(())
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
    use tickwire_runtime::wait::WaitStrategy;

    /// Says what it was asked.
    struct Echo;

    impl Answer for Echo {
        type Request = Request;
        const WHO: &'static str = "an echo";

        fn answer(&mut self, request: Request) -> Result<Value, String> {
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
            std::fs::create_dir_all(&folder).unwrap();
            let mut waiter = Waiter::new(WaitStrategy::Poll);
            let socket = ControlSocket::bind(&folder, &mut waiter).unwrap();
            Served {
                folder,
                socket,
                waiter,
            }
        }

        fn client(&mut self) -> BufReader<UnixStream> {
            let stream = UnixStream::connect(self.folder.join(SOCKET_NAME)).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
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
