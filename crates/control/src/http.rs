//! A server of a few pages over HTTP/1.1 (RFC 9112) that costs its caller nothing while nobody asks: no
//! thread, no blocking.
//!
//! A connection brings one request (request line and header fields, at most `REQUEST_MAX` bytes), gets one
//! answer and is closed. At most `CONNECTIONS_MAX` at a time: when one more comes, the oldest that has not
//! asked yet gives way to it, else the oldest that does not take its answer; so nobody who is slow or silent
//! delays a scrape. Each ends within `PATIENCE`, or `ASKING` without a whole request, whatever its client
//! does. Written here and not with `httparse`, which would read the same single line.
//!
//! An answer may be a stream of events (WHATWG HTML, section 9.2, server-sent events): at most `STREAMS_MAX`
//! at a time, one more is answered with 503. A stream has no queue: what its client has not taken yet is sent
//! before anything new is asked for, so a slow client sees fewer events, and one that takes nothing for
//! `PATIENCE` is closed. After `STREAM_LIFE` every stream ends; a browser opens another one by itself.

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
/// Streams of events at a time; they take no place of a page.
const STREAMS_MAX: usize = 8;
/// From one look for events to the next.
const BEAT: Duration = Duration::from_millis(250);
/// From the begin of a stream to its end.
const STREAM_LIFE: Duration = Duration::from_secs(600);
/// A server that was not polled for so long stood still: what its clients did meanwhile lies in the sockets.
const STALL: Duration = Duration::from_millis(500);

/// Something that is served beside a program's own work.
pub trait Served {
    /// Does what can be done without waiting; call it ten times a second.
    fn poll(&mut self);
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked<'a> {
    /// The path, `/` at least, as it was written.
    pub path: &'a str,
    /// What stands behind the question mark; empty where there is none.
    pub query: &'a str,
    /// The header Accept; empty where there is none.
    pub accept: &'a str,
}

impl Asked<'_> {
    /// A value of the query, decoded (WHATWG URL, section 5.1: `+` is a space, `%41` a byte); `None` where it
    /// is not there, or no UTF-8.
    pub fn value(&self, name: &str) -> Option<String> {
        let pairs = self
            .query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let (_, value) = pairs.into_iter().find(|(key, _)| *key == name)?;
        let (mut bytes, mut rest) = (Vec::with_capacity(value.len()), value.as_bytes());
        while let [first, more @ ..] = rest {
            rest = more;
            bytes.push(match (first, more) {
                (b'+', _) => b' ',
                (b'%', [high, low, behind @ ..]) => {
                    let digit = |byte: &u8| char::from(*byte).to_digit(16);
                    rest = behind;
                    (digit(high)? * 16 + digit(low)?) as u8
                }
                (b'%', _) => return None,
                _ => *first,
            });
        }
        String::from_utf8(bytes).ok()
    }
}

/// An answer.
pub enum Page {
    /// One page.
    Whole {
        /// The header Content-Type.
        content_type: &'static str,
        /// What is shown.
        body: String,
    },
    /// A stream of events, which [`Pages::events`] tells.
    Events,
}

/// Who knows the pages of a [`Server`].
pub trait Pages {
    /// The page of a path, in a form that the request's `Accept` allows; `None` where there is none.
    fn page(&mut self, asked: &Asked<'_>) -> Option<Page>;

    /// What a stream says at its beat number `beat`: events as `text/event-stream` writes them, or nothing.
    /// Beats come four times a second, and begin with 0; a slow client misses some. `last` is the one before,
    /// `None` at first.
    fn events(&mut self, asked: &Asked<'_>, beat: u64, last: Option<u64>) -> String {
        let _ = (asked, beat, last);
        String::new()
    }
}

/// The server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    connections: Vec<Connection>,
    streams: Vec<Stream>,
    /// When it was polled last.
    polled: Option<Instant>,
}

/// A connection that is told events.
#[derive(Debug)]
struct Stream {
    connection: Connection,
    target: String,
    /// The last beat at which something was said.
    last: Option<u64>,
    /// When it took something last.
    taken: Instant,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    since: Instant,
    request: Vec<u8>,
    answer: Vec<u8>,
    /// How much of the answer has been sent.
    sent: usize,
    /// What events are wanted of, from the moment when they are.
    target: Option<String>,
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
            streams: Vec::with_capacity(STREAMS_MAX),
            polled: None,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Does what can be done without waiting.
    pub fn poll(&mut self, now: Instant, pages: &mut impl Pages) {
        let has_stood = self
            .polled
            .replace(now)
            .is_some_and(|polled| now.duration_since(polled) > STALL);
        let mut at = 0;
        while let Some(connection) = self.connections.get_mut(at) {
            // What has come is read before anybody is called slow, and before anybody has to give way.
            let before = connection.progress();
            let goes_on = connection.work(pages, self.streams.len());
            if has_stood && connection.progress() != before {
                // The client did its part while this server stood still, and its time begins anew.
                connection.since = now;
            }
            let patience = match connection.answer.is_empty() {
                true => ASKING,
                false => PATIENCE,
            };
            if goes_on && now.duration_since(connection.since) < patience {
                at += 1;
                continue;
            }
            let over = self.connections.remove(at);
            self.streams.extend(Stream::of(over, now));
        }
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
                target: None,
            };
            // Who has asked already is answered before anybody else comes.
            if !connection.work(pages, self.streams.len()) {
                self.streams.extend(Stream::of(connection, now));
                continue;
            }
            if self.connections.len() >= CONNECTIONS_MAX {
                let silent = self.connections.iter().position(|c| c.answer.is_empty());
                self.connections.remove(silent.unwrap_or(0));
            }
            self.connections.push(connection);
        }
        self.streams.retain_mut(|stream| stream.work(now, pages));
    }
}

impl Stream {
    /// A connection whose answer has been begun becomes one, if events were asked for and its client is
    /// there.
    fn of(mut connection: Connection, now: Instant) -> Option<Stream> {
        let target = connection.target.take()?;
        Some(Stream {
            connection,
            target,
            last: None,
            taken: now,
        })
    }

    /// Goes on with it; `false` when it is over.
    fn work(&mut self, now: Instant, pages: &mut impl Pages) -> bool {
        let age = now.duration_since(self.connection.since);
        if age >= STREAM_LIFE || self.connection.has_gone() {
            return false;
        }
        let connection = &mut self.connection;
        if connection.sent == connection.answer.len() {
            self.taken = now;
            let beat = (age.as_millis() / BEAT.as_millis()) as u64;
            if self.last.is_some_and(|last| beat <= last) {
                return true;
            }
            let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
            let asked = Asked {
                path,
                query,
                accept: "",
            };
            connection.answer = pages.events(&asked, beat, self.last).into_bytes();
            connection.sent = 0;
            self.last = Some(beat);
        }
        let before = connection.sent;
        let is_there = connection.send().is_ok();
        if connection.sent > before {
            self.taken = now;
        }
        // What the client has taken since the last turn is seen by sending, and is known by now.
        is_there && now.duration_since(self.taken) < PATIENCE
    }
}

impl Connection {
    /// Whether its client has closed it. What it says beside its request is not read on.
    fn has_gone(&mut self) -> bool {
        match self.stream.read(&mut [0; 64]) {
            Ok(n) => n == 0,
            Err(e) => !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Bytes of its request and of its answer that went over the connection.
    fn progress(&self) -> usize {
        self.request.len() + self.sent
    }

    /// Goes on with it; `false` when it is over, or has become a stream.
    fn work(&mut self, pages: &mut impl Pages, streams: usize) -> bool {
        if self.answer.is_empty() {
            match self.receive() {
                Ok(true) => {
                    let has_room = streams < STREAMS_MAX;
                    (self.answer, self.target) = answer(&self.request, pages, has_room);
                }
                Ok(false) => return true,
                Err(_) => return false,
            }
        }
        if self.target.is_some() {
            return false;
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
    query: &'a str,
    /// All fields `Accept`, joined by commas; nothing where there is none.
    accept: String,
    /// GET wants the page, HEAD only what is said about it.
    wants_body: bool,
}

/// A status line.
type Refusal = &'static str;

/// No page loads or sends anything but to where it came from, whatever gets into it.
const GUARD: &str = "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                     img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
                     X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n";

/// The answer, or its head and what events are wanted of.
fn answer(request: &[u8], pages: &mut impl Pages, has_room: bool) -> (Vec<u8>, Option<String>) {
    let asked = match head(request) {
        None => Err("431 Request Header Fields Too Large"),
        Some(head) => read(head),
    };
    let (status, found, wants_body) = match &asked {
        Err(refusal) => (*refusal, None, true),
        Ok(request) => {
            let asked = Asked {
                path: request.path,
                query: request.query,
                accept: &request.accept,
            };
            match pages.page(&asked) {
                Some(Page::Whole { content_type, body }) => {
                    ("200 OK", Some((content_type, body)), request.wants_body)
                }
                Some(Page::Events) if has_room && request.wants_body => {
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
                         X-Accel-Buffering: no\r\n{GUARD}Connection: close\r\n\r\nretry: 1000\n\n"
                    );
                    return (
                        head.into_bytes(),
                        Some(format!("{}?{}", request.path, request.query)),
                    );
                }
                Some(Page::Events) => ("503 Service Unavailable", None, request.wants_body),
                None => ("404 Not Found", None, request.wants_body),
            }
        }
    };
    let (content_type, body) = found.unwrap_or_else(|| {
        let says = match status.as_bytes() {
            [b'5', ..] => "Too many pages are open: close one.",
            _ => "There are / and /metrics.",
        };
        ("text/plain; charset=utf-8", format!("{status}\n{says}\n"))
    });
    let more = match status.as_bytes() {
        [b'4', b'0', b'5', ..] => "Allow: GET, HEAD\r\n",
        [b'5', b'0', b'3', ..] => "Retry-After: 5\r\n",
        _ => "",
    };
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{more}{GUARD}Cache-Control: no-store\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if wants_body {
        answer += &body;
    }
    (answer.into_bytes(), None)
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
    let (path, query) = target_of(target).ok_or(BAD)?;
    Ok(Request {
        path,
        query,
        accept,
        wants_body,
    })
}

/// Path and query of a target in origin form or absolute form (RFC 9112 §3.2).
fn target_of(target: &str) -> Option<(&str, &str)> {
    let from_path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    let split = from_path.split_once('?').unwrap_or((from_path, ""));
    from_path.starts_with('/').then_some(split)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Examples;

    impl Pages for Examples {
        fn page(&mut self, asked: &Asked<'_>) -> Option<Page> {
            match asked.path {
                "/metrics" => Some(Page::Whole {
                    content_type: "text/plain",
                    body: "up 1\n".repeat(100_000),
                }),
                "/events" => Some(Page::Events),
                _ => None,
            }
        }

        fn events(&mut self, asked: &Asked<'_>, beat: u64, _: Option<u64>) -> String {
            let of = asked.value("of").unwrap_or_default();
            format!("data: {beat} {of}\n\n")
        }
    }

    /// Sends some bytes and reads the answer to its end, while the server is polled.
    fn ask(server: &mut Server, request: &[u8]) -> String {
        let mut client = TcpStream::connect(server.address().unwrap()).unwrap();
        client.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        client.write_all(request).unwrap();
        let (mut all, mut some) = (Vec::new(), [0; 65_536]);
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            server.poll(Instant::now(), &mut Examples);
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
        let deadline = start + Duration::from_secs(60);
        while server.connections.len() < CONNECTIONS_MAX && Instant::now() < deadline {
            server.poll(start, &mut Examples);
        }
        assert_eq!(server.connections.len(), CONNECTIONS_MAX);
        // Their time is up.
        server.poll(start + ASKING, &mut Examples);
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
            server.poll(now, &mut Examples);
            assert!(server.connections.len() <= CONNECTIONS_MAX);
        }
        let mut scraper = TcpStream::connect(address).unwrap();
        scraper.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        scraper
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
            .unwrap();
        let (mut all, mut some) = (0, [0; 65_536]);
        for _ in 0..5_000 {
            server.poll(now, &mut Examples);
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

    /// A stream that has begun, and what has come until now.
    fn follow(server: &mut Server, now: Instant, target: &str) -> (TcpStream, String) {
        let mut client = TcpStream::connect(server.address().unwrap()).unwrap();
        client.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        write!(client, "GET {target} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut said = String::new();
        for _ in 0..60_000 {
            server.poll(now, &mut Examples);
            take(&mut client, &mut said);
            if said.contains("data: ") || said.contains("503") {
                break;
            }
        }
        (client, said)
    }

    /// Adds what has come; whether the stream is over.
    fn take(client: &mut TcpStream, said: &mut String) -> bool {
        let mut some = [0; 4_096];
        match client.read(&mut some) {
            Ok(0) => true,
            Ok(n) => {
                said.push_str(std::str::from_utf8(&some[..n]).unwrap());
                false
            }
            Err(_) => false,
        }
    }

    #[test]
    fn a_stream_tells_an_event_at_every_beat_and_ends_with_its_client() {
        let mut server = server();
        let now = Instant::now();
        let (mut client, mut said) = follow(&mut server, now, "/events?of=BRK%2EA+x&more");
        assert!(said.contains("Content-Type: text/event-stream"), "{said}");
        assert!(said.ends_with("retry: 1000\n\ndata: 0 BRK.A x\n\n"), "{said}");
        // Nothing more before its time; beats that were missed are left out.
        server.poll(now + BEAT / 2, &mut Examples);
        for (after, beat) in [(BEAT, 1), (BEAT * 5, 5)] {
            let expected = format!("data: {beat} BRK.A x\n\n");
            for _ in 0..60_000 {
                server.poll(now + after, &mut Examples);
                take(&mut client, &mut said);
                if said.ends_with(&expected) {
                    break;
                }
            }
            assert!(said.ends_with(&expected), "{said}");
        }
        assert_eq!(said.matches("data: ").count(), 3, "{said}");
        drop(client);
        for _ in 0..60_000 {
            server.poll(now + BEAT * 5, &mut Examples);
            if server.streams.is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("the stream goes on without its client");
    }

    #[test]
    fn streams_are_bounded_in_number_and_time_and_take_no_place_of_a_page() {
        let mut server = server();
        let now = Instant::now();
        let open: Vec<_> = (0..STREAMS_MAX)
            .map(|_| follow(&mut server, now, "/events"))
            .collect();
        assert_eq!((server.streams.len(), server.connections.len()), (STREAMS_MAX, 0));
        let (_, refused) = follow(&mut server, now, "/events");
        assert!(
            refused.starts_with("HTTP/1.1 503") && refused.contains("Retry-After"),
            "{refused}"
        );
        let page = ask(&mut server, b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        assert!(page.len() > 500_000);
        server.poll(now + STREAM_LIFE, &mut Examples);
        assert!(server.streams.is_empty());
        drop(open);
    }

    #[test]
    fn a_client_that_takes_nothing_is_closed() {
        struct Much;
        impl Pages for Much {
            fn page(&mut self, _: &Asked<'_>) -> Option<Page> {
                Some(Page::Events)
            }
            fn events(&mut self, _: &Asked<'_>, _: u64, _: Option<u64>) -> String {
                "data: x\n\n".repeat(1_000_000)
            }
        }
        let mut server = server();
        let now = Instant::now();
        let mut client = TcpStream::connect(server.address().unwrap()).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        for _ in 0..60_000 {
            server.poll(now, &mut Much);
            if !server.streams.is_empty() && server.streams[0].connection.sent > 0 {
                break;
            }
        }
        assert_eq!(server.streams.len(), 1);
        for _ in 0..100 {
            server.poll(now, &mut Much);
        }
        server.poll(now + PATIENCE, &mut Much);
        assert!(server.streams.is_empty());
    }

    /// Clients that are accepted and have not asked.
    fn connected(server: &mut Server, now: Instant, clients: usize) -> Vec<TcpStream> {
        let address = server.address().unwrap();
        let connected = (0..clients).map(|_| TcpStream::connect(address).unwrap());
        let connected = connected.collect();
        for _ in 0..60_000 {
            server.poll(now, &mut Examples);
            if server.connections.len() == clients {
                break;
            }
        }
        assert_eq!(server.connections.len(), clients);
        connected
    }

    /// Polls a server at one moment until a client has all of its answer.
    fn answer_at(server: &mut Server, now: Instant, client: &mut TcpStream) -> String {
        client.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let mut said = String::new();
        for _ in 0..60_000 {
            server.poll(now, &mut Examples);
            if take(client, &mut said) {
                break;
            }
        }
        said
    }

    #[test]
    fn a_request_that_came_while_the_server_stood_still_is_answered() {
        let mut server = server();
        let now = Instant::now();
        let mut client = connected(&mut server, now, 1).remove(0);
        client
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
            .unwrap();
        let said = answer_at(&mut server, now + PATIENCE * 10, &mut client);
        assert_eq!(status(&said), "HTTP/1.1 200 OK");
        assert!(said.len() > 500_000, "{}", said.len());
    }

    #[test]
    fn who_has_asked_does_not_give_way_because_nobody_has_read_it_yet() {
        let mut server = server();
        let now = Instant::now();
        let mut clients = connected(&mut server, now, CONNECTIONS_MAX);
        for client in &mut clients {
            client.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        }
        let one_more = TcpStream::connect(server.address().unwrap()).unwrap();
        for client in &mut clients {
            let said = answer_at(&mut server, now, client);
            assert!(said.starts_with("HTTP/1.1 "), "{said}");
        }
        drop(one_more);
    }

    #[test]
    fn a_stream_outlives_a_time_in_which_the_server_stood_still() {
        let mut server = server();
        let now = Instant::now();
        let (mut client, mut said) = follow(&mut server, now, "/events?of=x");
        assert!(said.ends_with("data: 0 x\n\n"), "{said}");
        let later = now + PATIENCE * 10;
        let expected = format!("data: {} x\n\n", (PATIENCE * 10).as_millis() / BEAT.as_millis());
        for _ in 0..60_000 {
            server.poll(later, &mut Examples);
            if take(&mut client, &mut said) || said.ends_with(&expected) {
                break;
            }
        }
        assert!(said.ends_with(&expected), "{said}");
        assert_eq!(server.streams.len(), 1);
    }

    /// Whoever sends a byte with each turn has no more time than others.
    #[test]
    fn a_request_that_comes_byte_by_byte_ends_when_its_time_is_up() {
        let mut server = server();
        let now = Instant::now();
        let mut client = connected(&mut server, now, 1).remove(0);
        let mut ended = None;
        for turn in 0..100 {
            let _ = client.write_all(b"G");
            let passed = Duration::from_millis(100) * turn;
            server.poll(now + passed, &mut Examples);
            if server.connections.is_empty() {
                ended = Some(passed);
                break;
            }
        }
        assert_eq!(ended, Some(ASKING));
    }

    #[test]
    fn values_of_a_query_are_decoded_or_refused() {
        let value = |query: &str| {
            let (path, accept) = ("/", "");
            Asked { path, query, accept }.value("s")
        };
        assert_eq!(value("a=1&s=BRK%2eA"), Some("BRK.A".to_string()));
        assert_eq!(
            (value("s"), value("s=+")),
            (Some(String::new()), Some(" ".into()))
        );
        for wrong in ["", "t=1", "s=%", "s=%4", "s=%zz", "s=%ff"] {
            assert_eq!(value(wrong), None, "{wrong}");
        }
    }
}
