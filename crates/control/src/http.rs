//! A server of a few pages over HTTP/1.1 (RFC 9112) that costs its caller nothing while nobody asks: no thread, no blocking.
//!
//! A connection brings one request (request line and header fields, at most `REQUEST_MAX` bytes), gets one answer and is
//! closed. At most `CONNECTIONS_MAX` at a time: when one more comes, the oldest that has not asked yet gives way to it, else the
//! oldest that does not take its answer; so nobody who is slow or silent delays a scrape. Each ends within `PATIENCE`, or
//! `ASKING` without a whole request, whatever its client does. Written here and not with `httparse`, which would read the same single line.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of a request, more are refused with 431.
const REQUEST_MAX: usize = 8 * 1024;
/// Connections at a time.
const CONNECTIONS_MAX: usize = 16;
/// Connections that are accepted in one call; the rest wait in the kernel's queue for the next.
const ACCEPTED_MAX: usize = 256;
/// From accepting a connection to its end.
const PATIENCE: Duration = Duration::from_secs(5);
/// From accepting a connection to the end of its request.
const ASKING: Duration = Duration::from_secs(1);

/// Something that is served beside a program's own work.
pub trait Served {
    /// Does what can be done without waiting; call it ten times a second.
    fn poll(&mut self);
}

/// One page: what it is, and its text.
pub struct Page {
    /// The header Content-Type.
    pub content_type: &'static str,
    /// What is shown.
    pub body: String,
}

/// The server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    since: Instant,
    request: Vec<u8>,
    answer: Vec<u8>,
    /// How much of the answer has been sent.
    sent: usize,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn bind(address: SocketAddr) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Server {
            listener,
            connections: Vec::with_capacity(CONNECTIONS_MAX),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Does what can be done without waiting. `page` is asked for the page of a path, in a form that the second text, the
    /// request's `Accept`, allows; `None` where there is none.
    pub fn poll(&mut self, now: Instant, mut page: impl FnMut(&str, &str) -> Option<Page>) {
        for _ in 0..ACCEPTED_MAX {
            // Any error but "nobody there" is of a connection that has gone again.
            let Ok((stream, _)) = self.listener.accept() else {
                break;
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let mut connection = Connection {
                stream,
                since: now,
                request: Vec::new(),
                answer: Vec::new(),
                sent: 0,
            };
            // Who has asked already is answered before anybody else comes.
            if !connection.work(&mut page) {
                continue;
            }
            if self.connections.len() >= CONNECTIONS_MAX {
                let silent = self.connections.iter().position(|c| c.answer.is_empty());
                self.connections.remove(silent.unwrap_or(0));
            }
            self.connections.push(connection);
        }
        self.connections.retain_mut(|connection| {
            let patience = match connection.answer.is_empty() {
                true => ASKING,
                false => PATIENCE,
            };
            now.duration_since(connection.since) < patience && connection.work(&mut page)
        });
    }
}

impl Connection {
    /// Goes on with it; `false` when it is over.
    fn work(&mut self, page: &mut impl FnMut(&str, &str) -> Option<Page>) -> bool {
        if self.answer.is_empty() {
            match self.receive() {
                Ok(true) => self.answer = answer(&self.request, page),
                Ok(false) => return true,
                Err(_) => return false,
            }
        }
        match self.send() {
            Ok(all) => !all,
            Err(_) => false,
        }
    }

    /// Whether the request is whole, or too large.
    fn receive(&mut self) -> io::Result<bool> {
        let mut some = [0; 2048];
        loop {
            match self.stream.read(&mut some) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.request.extend_from_slice(&some[..n]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            if self.request.len() > REQUEST_MAX || head(&self.request).is_some() {
                return Ok(true);
            }
        }
    }

    /// Whether all of the answer has been sent.
    fn send(&mut self) -> io::Result<bool> {
        while self.sent < self.answer.len() {
            match self.stream.write(&self.answer[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => self.sent += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }
}

/// The request up to the empty line, if that has come.
fn head(request: &[u8]) -> Option<&[u8]> {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(&request[..end])
}

/// What a request asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Request<'a> {
    path: &'a str,
    /// All fields `Accept`, joined by commas; nothing where there is none.
    accept: String,
    /// GET wants the page, HEAD only what is said about it.
    wants_body: bool,
}

/// A status line.
type Refusal = &'static str;

fn answer(request: &[u8], page: &mut impl FnMut(&str, &str) -> Option<Page>) -> Vec<u8> {
    let asked = match head(request) {
        None => Err("431 Request Header Fields Too Large"),
        Some(head) => read(head),
    };
    let (status, found, wants_body) = match asked {
        Err(refusal) => (refusal, None, true),
        Ok(request) => match page(request.path, &request.accept) {
            Some(page) => ("200 OK", Some(page), request.wants_body),
            None => ("404 Not Found", None, request.wants_body),
        },
    };
    let page = found.unwrap_or_else(|| Page {
        content_type: "text/plain; charset=utf-8",
        body: format!("{status}\nThere is /metrics.\n"),
    });
    let allow = if status.starts_with("405") {
        "Allow: GET, HEAD\r\n"
    } else {
        ""
    };
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}Cache-Control: no-store\r\nConnection: close\r\n\r\n",
        page.content_type,
        page.body.len()
    );
    if wants_body {
        answer += &page.body;
    }
    answer.into_bytes()
}

/// Reads request line and header fields.
fn read(head: &[u8]) -> Result<Request<'_>, Refusal> {
    const BAD: Refusal = "400 Bad Request";
    let text = std::str::from_utf8(head).map_err(|_| BAD)?;
    if text.replace("\r\n", "").contains(['\r', '\n', '\0']) {
        return Err(BAD);
    }
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or("").split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(BAD);
    };
    let is_token = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    if !is_token(method) {
        return Err(BAD);
    }
    let digits = version.strip_prefix("HTTP/").ok_or(BAD)?;
    if !matches!(digits, "1.0" | "1.1") {
        return Err("505 HTTP Version Not Supported");
    }
    let (mut hosts, mut accept) = (0, String::new());
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(BAD)?;
        if !is_token(name) {
            return Err(BAD);
        }
        hosts += usize::from(name.eq_ignore_ascii_case("host"));
        if name.eq_ignore_ascii_case("accept") {
            accept.push_str(value);
            accept.push(',');
        }
    }
    if hosts > 1 || (digits == "1.1" && hosts == 0) {
        return Err(BAD);
    }
    let wants_body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => return Err("405 Method Not Allowed"),
    };
    Ok(Request {
        path: path(target).ok_or(BAD)?,
        accept,
        wants_body,
    })
}

/// The path of a target in origin form or absolute form (RFC 9112 §3.2), without its query.
fn path(target: &str) -> Option<&str> {
    let from_path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    from_path
        .starts_with('/')
        .then(|| from_path.split('?').next().unwrap_or("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(path: &str, _accept: &str) -> Option<Page> {
        (path == "/metrics").then(|| Page {
            content_type: "text/plain",
            body: "up 1\n".repeat(100_000),
        })
    }

    /// Sends some bytes and reads the answer to its end, while the server is polled.
    fn ask(server: &mut Server, request: &[u8]) -> String {
        let mut client = TcpStream::connect(server.address().unwrap()).unwrap();
        client.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        client.write_all(request).unwrap();
        let (mut all, mut some) = (Vec::new(), [0; 65_536]);
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            server.poll(Instant::now(), pages);
            match client.read(&mut some) {
                Ok(0) => return String::from_utf8(all).unwrap(),
                Ok(n) => all.extend_from_slice(&some[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) => panic!("{e}"),
            }
        }
        panic!("no end after {} bytes", all.len());
    }

    fn server() -> Server {
        Server::bind("127.0.0.1:0".parse().unwrap()).unwrap()
    }

    fn status(answer: &str) -> &str {
        answer.lines().next().unwrap()
    }

    #[test]
    fn a_page_larger_than_the_sockets_buffer_arrives_whole() {
        let answer = ask(&mut server(), b"GET /metrics?x=1 HTTP/1.1\r\nHost: here\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 200 OK") && head.contains("Content-Length: 500000"),
            "{head}"
        );
        assert_eq!(body.len(), 500_000);
    }

    #[test]
    fn head_gets_no_body_and_the_absolute_form_is_understood() {
        let answer = ask(
            &mut server(),
            b"HEAD http://here/metrics HTTP/1.1\r\nHost: here\r\n\r\n",
        );
        assert!(
            answer.contains("Content-Length: 500000") && answer.ends_with("\r\n\r\n"),
            "{answer}"
        );
        assert_eq!(
            status(&ask(&mut server(), b"GET /metrics HTTP/1.0\r\n\r\n")),
            "HTTP/1.1 200 OK"
        );
    }

    #[test]
    fn what_is_not_right_is_answered_right() {
        let mut server = server();
        for (request, expected) in [
            ("GET /other HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "405"),
            ("GET /metrics HTTP/1.1\r\n\r\n", "400"),
            ("GET /metrics HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "400"),
            ("GET /metrics HTTP/1.1\r\nHost : x\r\n\r\n", "400"),
            ("GET  /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
            ("GET /metrics\r\n\r\n", "400"),
            ("GET metrics HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
            ("GET /metrics HTTP/2.0\r\nHost: x\r\n\r\n", "505"),
            ("GET /metrics HTTP/1.1\nHost: x\n\r\n\r\n", "400"),
            ("\r\n\r\n", "400"),
        ] {
            let answer = ask(&mut server, request.as_bytes());
            assert!(status(&answer).contains(expected), "{request:?}: {answer}");
            assert_eq!(answer.contains("Allow: GET, HEAD"), expected == "405");
        }
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(REQUEST_MAX));
        assert!(status(&ask(&mut server, long.as_bytes())).contains("431"));
    }

    #[test]
    fn idle_clients_are_bounded_in_number_and_time() {
        let mut server = server();
        let address = server.address().unwrap();
        let idle: Vec<TcpStream> = (0..CONNECTIONS_MAX + 4)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        let start = Instant::now();
        let deadline = start + Duration::from_secs(5);
        while server.connections.len() < CONNECTIONS_MAX && Instant::now() < deadline {
            server.poll(start, pages);
        }
        assert_eq!(server.connections.len(), CONNECTIONS_MAX);
        // Their time is up.
        server.poll(start + ASKING, pages);
        assert!(server.connections.is_empty());
        drop(idle);
    }

    /// 129 connections that have sent half a request delayed a scrape by 40 s. Here no time passes at all.
    #[test]
    fn slow_clients_do_not_delay_a_scrape() {
        let mut server = server();
        let address = server.address().unwrap();
        let now = Instant::now();
        let mut slow = Vec::new();
        for _ in 0..129 {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(b"GET /metrics HTTP/1.1\r\nHo").unwrap();
            slow.push(client);
            // The kernel's queue has not room for all of them.
            server.poll(now, pages);
            assert!(server.connections.len() <= CONNECTIONS_MAX);
        }
        let mut scraper = TcpStream::connect(address).unwrap();
        scraper.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        scraper
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
            .unwrap();
        let (mut all, mut some) = (0, [0; 65_536]);
        for _ in 0..5_000 {
            server.poll(now, pages);
            // More of them come all the while.
            slow.extend(TcpStream::connect(address));
            match scraper.read(&mut some) {
                Ok(0) => break,
                Ok(n) => all += n,
                Err(e) => assert!(
                    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
                    "{e}"
                ),
            }
            slow.truncate(200);
        }
        assert!(all > 500_000, "{all}");
    }
}
