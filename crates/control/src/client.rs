//! The client of a daemon's control socket: one JSON object a line there, one back. Subscriptions of a feed
//! handler go this way, words to a quoter, and an operator's to an exchange.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};
use tickwire_runtime::places;
use tickwire_runtime::users::{Owners, Peer};

use tickwire_console::failure::Failure;

/// Whose regions and control sockets are trusted, beside our own and root's: as `--owner` said, once.
static OWNERS: OnceLock<Owners> = OnceLock::new();

/// Trusts one more user's regions and control sockets: the named one, else the one of `TICKWIRE_OWNER`.
///
/// # Errors
/// There is no such user.
pub fn trust(owner: Option<&str>) -> Result<(), Failure> {
    let owners = Owners::named(owner).map_err(|e| Failure::config(format!("--owner: {e}")))?;
    let _ = OWNERS.set(owners);
    Ok(())
}

/// Whose regions and control sockets are trusted.
pub fn owners() -> Owners {
    OWNERS.get().copied().unwrap_or_default()
}

/// How long a daemon may take to answer: it asks its feed threads first.
const PATIENCE: Duration = Duration::from_secs(10);
/// An answer larger than this is none of ours.
const ANSWER_MAX: u64 = 16 << 20;

/// What to ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// Wants symbols that match these patterns from now on.
    Subscribe(&'a [String]),
    /// No longer wants them.
    Unsubscribe(&'a [String]),
    /// What is subscribed to.
    Subscriptions,
    /// The same, with what was seen, dropped and passed by subscription and by symbol.
    Statistics,
}

impl Request<'_> {
    fn to_json(self, feed: Option<&str>) -> Value {
        match self {
            Request::Subscribe(patterns) => json!({ "do": "subscribe", "patterns": patterns, "feed": feed }),
            Request::Unsubscribe(patterns) => {
                json!({ "do": "unsubscribe", "patterns": patterns, "feed": feed })
            }
            Request::Subscriptions => json!({ "do": "subscriptions", "feed": feed }),
            Request::Statistics => json!({ "do": "subscriptions", "feed": feed, "statistics": true }),
        }
    }
}

/// Asks the daemon of a folder; `feed`: of this feed alone.
pub fn ask(folder: &Path, request: Request<'_>, feed: Option<&str>) -> Result<Value, Failure> {
    let remedy = "start one with `tickwire feed -c FILE`, or give its folder with --folder";
    exchange(&folder.join("control"), &request.to_json(feed), remedy, PATIENCE)
}

/// How whatever listens in a folder is, a trader, a quoter or another daemon: waits no longer than this.
///
/// # Errors
/// Nobody listens there, or it does not answer in time.
pub fn status(folder: &Path, patience: Duration) -> Result<Value, Failure> {
    let remedy = "start it, or leave its folder out";
    exchange(
        &folder.join("control"),
        &json!({ "do": "status" }),
        remedy,
        patience,
    )
}

/// Asks the quoter behind a control socket, or in a folder with one.
pub fn ask_quoter(socket: &Path, request: &Value) -> Result<Value, Failure> {
    let remedy = "start a quoter with `tickwire quote -c FILE`, or give its control socket with --socket";
    ask_at(socket, request, remedy)
}

/// Asks the trader behind one, likewise.
pub fn ask_trader(socket: &Path, request: &Value) -> Result<Value, Failure> {
    let remedy = "start a trader whose file says trader.control, with `tickwire trade -c FILE`, or give its control socket with --socket";
    ask_at(socket, request, remedy)
}

/// Asks the simulated exchange behind one, likewise.
pub fn ask_exchange(socket: &Path, request: &Value) -> Result<Value, Failure> {
    let remedy = "start an exchange whose file says exchange.control, with `tickwire exchange -c FILE`, or give its control socket with --socket";
    ask_at(socket, request, remedy)
}

fn ask_at(socket: &Path, request: &Value, remedy: &str) -> Result<Value, Failure> {
    let socket = places::expand(socket);
    if socket.is_dir() {
        exchange(&socket.join("control"), request, remedy, PATIENCE)
    } else {
        exchange(&socket, request, remedy, PATIENCE)
    }
}

/// Prints a sentence, or what there is instead.
pub fn print_answer(answer: &Value) {
    match answer["says"].as_str() {
        Some(says) => println!("{says}"),
        None => println!("{answer}"),
    }
}

/// One line there, one back.
fn exchange(path: &Path, request: &Value, remedy: &str, patience: Duration) -> Result<Value, Failure> {
    let failed = |what: &str, e: std::io::Error| {
        let place = path.display();
        match e.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                Failure::peer_lost(format!("no daemon answers at {place}: {remedy}"))
            }
            ErrorKind::PermissionDenied => Failure::system(format!(
                "no permission for {place}: only the user who runs the daemon, root, and members of its access.group may ask it"
            )),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::peer_lost(format!(
                "the daemon at {place} did not answer within {} s",
                patience.as_secs()
            )),
            _ => Failure::system(format!("cannot {what} {place}: {e}")),
        }
    };
    let mut stream = connect(path, patience).map_err(|e| failed("connect to", e))?;
    check_server(&stream, path)?;
    let line = request.to_string() + "\n";
    stream
        .write_all(line.as_bytes())
        .map_err(|e| failed("write to", e))?;
    let mut answer = String::new();
    let mut reader = BufReader::new(stream).take(ANSWER_MAX);
    reader
        .read_line(&mut answer)
        .map_err(|e| failed("read from", e))?;
    if !answer.ends_with('\n') {
        let place = path.display();
        return Err(Failure::peer_lost(format!(
            "the daemon at {place} closed the connection without an answer"
        )));
    }
    read(&answer, path)
}

/// A connection of which nothing waits longer than this, connecting neither: whoever hangs takes no more
/// connections once his queue of them is full.
fn connect(path: &Path, patience: Duration) -> std::io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with, sockopt};
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    for what in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
        sockopt::set_socket_timeout(&socket, what, Some(patience))?;
    }
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

/// Whoever listens there is who is meant: nothing is said to another user's process, and its answer would
/// mean nothing.
fn check_server(stream: &UnixStream, path: &Path) -> Result<(), Failure> {
    let place = path.display();
    let server =
        Peer::of(stream).map_err(|e| Failure::system(format!("cannot tell who listens at {place}: {e}")))?;
    match owners().include(server.uid) {
        true => Ok(()),
        false => Err(Failure::system(format!(
            "who listens at {place} is {server}, not you or root: nothing was asked; give --owner or TICKWIRE_OWNER if that user's \
             process is the one you mean"
        ))),
    }
}

fn read(answer: &str, path: &Path) -> Result<Value, Failure> {
    let value: Value = serde_json::from_str(answer)
        .map_err(|e| Failure::system(format!("the answer of {} is no JSON: {e}", path.display())))?;
    match value["error"].as_str() {
        // The daemon's own sentence: a wrong pattern, an unknown feed.
        Some(error) => Err(Failure::config(error)),
        None => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// A daemon that answers one line, and what it was asked.
    fn daemon(name: &str, answer: &'static str) -> (std::path::PathBuf, std::thread::JoinHandle<String>) {
        let folder = std::env::temp_dir().join(format!("tickwire-control-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let _ = std::fs::remove_file(folder.join("control"));
        let listener = UnixListener::bind(folder.join("control")).unwrap();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            line
        });
        (folder, thread)
    }

    #[test]
    fn a_request_is_one_line_and_so_is_the_answer() {
        let (folder, thread) = daemon(
            "whole",
            "{\"ok\":true,\"says\":\"2 patterns more.\",\"subscriptions\":[{\"feed\":\"bzx\",\"patterns\":[\"AAPL\",\"Z*\"],\"except\":[\"ZZZ\"],\"instruments\":12,\"seen\":1200,\"filtered\":1000,\"passed\":200},\
             {\"feed\":\"nasdaq\",\"patterns\":[\"AAPL\"],\"instruments\":1}]}\n",
        );
        let patterns = ["AAPL".to_string(), "Z*".to_string()];
        let answer = ask(&folder, Request::Subscribe(&patterns), Some("bzx")).unwrap();
        let asked: Value = serde_json::from_str(&thread.join().unwrap()).unwrap();
        assert_eq!(
            asked,
            json!({ "do": "subscribe", "patterns": ["AAPL", "Z*"], "feed": "bzx" })
        );
        assert_eq!(answer["says"], "2 patterns more.");
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Whoever hangs takes no connections out of his queue: when it is full, connecting waits, too.
    #[test]
    fn a_daemon_whose_queue_of_connections_is_full_does_not_answer_in_time() {
        let folder = std::env::temp_dir().join(format!("tickwire-control-{}-full", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("control");
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let waiting: Vec<UnixStream> =
            std::iter::from_fn(|| connect(&path, Duration::from_millis(50)).ok()).collect();
        assert!(!waiting.is_empty());
        let failure = status(&folder, Duration::from_secs(1)).unwrap_err();
        assert!(failure.message.contains("did not answer within 1 s"), "{failure}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_goes_wrong_is_said_with_its_remedy() {
        let nowhere = std::env::temp_dir().join("tickwire-control-nowhere");
        let failure = ask(&nowhere, Request::Subscriptions, None).unwrap_err();
        assert!(failure.message.contains("tickwire feed -c FILE"), "{failure}");
        for (name, answer, says) in [
            (
                "refused",
                "{\"ok\":false,\"error\":\"there is no feed \\\"x\\\"\"}\n",
                "there is no feed",
            ),
            ("cut", "{\"ok\":", "without an answer"),
            ("noise", "hello\n", "no JSON"),
        ] {
            let (folder, thread) = daemon(name, answer);
            let failure = ask(&folder, Request::Subscriptions, None).unwrap_err();
            assert!(failure.message.contains(says), "{failure}");
            thread.join().unwrap();
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
}
