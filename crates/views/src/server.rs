//! The metrics endpoint and the page: run by the daemon's control thread, answer from the region like any
//! other reader.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tickwire_market::Symbol;

use super::ladder::{self, Choice};
use super::metrics::{self, Format};
use super::programs::Programs;
use super::region::{Absence, Detail, Places, Watch};
use super::{Readings, top, unknown};
use tickwire_console::failure::Failure;
use tickwire_control::http::{Asked, Page, Pages, Served, Server};

/// The page: it loads nothing from anywhere else.
const PAGE: &str = include_str!("page.html");
/// How old a reading may be that is shown to another client: everybody who looks costs the daemon one reading
/// a second.
const READING: Duration = Duration::from_millis(900);
/// Beats of a stream from one status to the next; a book comes at every beat.
const STATUS_BEATS: u64 = 4;
/// Symbols whose places are remembered; the one that was asked for least recently makes room.
const SYMBOLS_MAX: usize = 16;
/// Symbols that `/api/symbols` names at most.
const NAMED_MAX: usize = 5_000;

/// Serves `/metrics` to Prometheus, and a page at `/` with what it reads: `/api/status`, `/api/symbols`,
/// `/api/book?symbol=…`, `/api/programs` (JSON), and `/events?symbol=…` (server-sent events).
#[derive(Debug)]
pub struct MetricsServer {
    server: Server,
    shown: Shown,
}

/// What is shown.
#[derive(Debug)]
struct Shown {
    watch: Watch,
    readings: Readings,
    /// The last status, and when it was read.
    status: Option<(Instant, String)>,
    symbols: Vec<Looked>,
    /// Other programs of this machine; `None`: nobody named any.
    programs: Option<Programs>,
}

/// A symbol that somebody looks at.
#[derive(Debug)]
struct Looked {
    symbol: Symbol,
    places: Places,
    /// Why there is no book of it, and when that was found out: similar symbols are not searched for at every
    /// beat.
    missing: Option<(Instant, String)>,
}

impl MetricsServer {
    /// Listens. Anybody who reaches the address can read: keep it on loopback, or behind something that asks
    /// who they are.
    ///
    /// # Errors
    /// The address is taken, or not one of this machine's.
    pub fn bind(address: SocketAddr, folder: &Path) -> Result<MetricsServer, Failure> {
        let server = Server::bind(address).map_err(|e| {
            Failure::system(format!(
                "cannot serve metrics at {address}: {e}; choose another address with `metrics` in [daemon]"
            ))
        })?;
        Ok(MetricsServer {
            server,
            shown: Shown {
                watch: Watch::new(folder),
                readings: Readings::default(),
                status: None,
                symbols: Vec::with_capacity(SYMBOLS_MAX),
                programs: None,
            },
        })
    }

    /// Shows how the programs of these folders are, too: traders, quoters and strategies with a control
    /// socket there (`trader.control`), FIX engines with a region. A thread asks them, while somebody looks
    /// at the page.
    ///
    /// # Errors
    /// The system has no room for the thread.
    pub fn with_programs(mut self, folders: &[PathBuf]) -> Result<MetricsServer, Failure> {
        self.shown.programs = Programs::of(folders)?;
        Ok(self)
    }

    /// Where it listens; the port that the kernel chose if 0 was asked for.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.server.address()
    }
}

impl Served for MetricsServer {
    fn poll(&mut self) {
        self.server.poll(Instant::now(), &mut self.shown);
    }
}

impl Pages for Shown {
    fn page(&mut self, asked: &Asked<'_>) -> Option<Page> {
        let json = |body: String| Page::Whole {
            content_type: "application/json",
            body: body + "\n",
        };
        Some(match asked.path {
            "/metrics" => {
                let region = self.watch.look();
                let reading = region.ok().map(|region| region.reading(Detail::Kinds));
                let format = Format::accepted(asked.accept);
                Page::Whole {
                    content_type: format.content_type(),
                    body: metrics::page(reading.as_ref(), format),
                }
            }
            "/" => Page::Whole {
                content_type: "text/html; charset=utf-8",
                body: PAGE.into(),
            },
            "/api/status" => json(self.status()),
            "/api/symbols" => json(self.symbols().to_string()),
            "/api/book" => json(self.book(&asked.value("symbol")?).to_string()),
            "/api/programs" => json(self.programs()),
            "/events" => Page::Events,
            _ => return None,
        })
    }

    fn events(&mut self, asked: &Asked<'_>, beat: u64, last: Option<u64>) -> String {
        let mut events = String::new();
        if last.is_none_or(|last| beat / STATUS_BEATS > last / STATUS_BEATS) {
            events += &format!("event: status\ndata: {}\n\n", self.status());
            if self.programs.is_some() {
                events += &format!("event: programs\ndata: {}\n\n", self.programs());
            }
        }
        if let Some(symbol) = asked.value("symbol") {
            events += &format!("event: book\ndata: {}\n\n", self.book(&symbol));
        }
        events
    }
}

impl Shown {
    /// Daemon and sources, on one line.
    fn status(&mut self) -> String {
        if let Some((_, status)) = self.status.as_ref().filter(|(at, _)| at.elapsed() < READING) {
            return status.clone();
        }
        let status = match self.watch.look() {
            Ok(region) => {
                let (reading, interval) = self.readings.next(&region, Detail::Latencies);
                let unasked = Err("this page does not ask the control socket".to_string());
                top::json(reading, interval.as_ref(), &unasked).to_string()
            }
            Err(absence) => said(&absence).to_string(),
        };
        self.status.insert((Instant::now(), status)).1.clone()
    }

    /// Other programs, on one line.
    fn programs(&self) -> String {
        self.programs.as_ref().map_or_else(|| "[]".into(), Programs::json)
    }

    fn symbols(&mut self) -> Value {
        let symbols = self.watch.look().map(|region| region.symbols());
        let mut symbols = symbols.unwrap_or_default();
        symbols.truncate(NAMED_MAX);
        symbols.into()
    }

    /// Consolidated book and the feeds' own, with `missing` where there is none.
    fn book(&mut self, symbol: &str) -> Value {
        let known = Symbol::new(symbol.as_bytes()).filter(|symbol| !symbol.is_empty());
        let Some(symbol) = known else {
            return json!({ "missing": "a symbol is 1 to 23 printable characters", "super": null, "books": [] });
        };
        let region = match self.watch.look() {
            Ok(region) => region,
            Err(absence) => return said(&absence),
        };
        let looked = match self.symbols.iter().position(|looked| looked.symbol == symbol) {
            Some(at) => self.symbols.remove(at),
            None => {
                self.symbols.truncate(SYMBOLS_MAX - 1);
                Looked {
                    symbol,
                    places: Places::default(),
                    missing: None,
                }
            }
        };
        self.symbols.insert(0, looked);
        let looked = &mut self.symbols[0];
        if let Some(view) = region.symbol(symbol, &mut looked.places) {
            looked.missing = None;
            return ladder::json(&view, &Choice::All);
        }
        let is_old = |(at, _): &(Instant, String)| at.elapsed() > Duration::from_secs(2);
        if looked.missing.as_ref().is_none_or(is_old) {
            looked.missing = Some((Instant::now(), unknown(&region, symbol)));
        }
        let why = looked.missing.as_ref().map(|(_, why)| why);
        json!({ "missing": why, "super": null, "books": [] })
    }
}

/// That there is nothing to read.
fn said(absence: &Absence) -> Value {
    json!({ "error": absence.sentence(), "missing": absence.sentence(), "super": null, "books": [] })
}

#[cfg(test)]
mod tests {
    use super::super::metrics::tests::parse;
    use super::super::programs::tests::Trader;
    use super::super::region::fixture::{Fixture, NOW};
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use tickwire_control::access::AccessSection;
    use tickwire_control::thread::ControlThread;

    /// Asks for a page as Prometheus does, while the server is polled.
    fn get(server: &mut MetricsServer, path: &str) -> String {
        let address = server.address().unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: application/openmetrics-text\r\n\r\n");
        let client = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        while !client.is_finished() {
            server.poll();
            std::thread::yield_now();
        }
        client.join().unwrap()
    }

    /// The first sample of a name with such a label value.
    fn value(answer: &str, name: &str, label: &str) -> Option<f64> {
        let (_, page) = answer.split_once("\r\n\r\n").unwrap();
        let has = |labels: &[(String, String)]| label.is_empty() || labels.iter().any(|l| l.1 == label);
        let parsed = parse(page);
        let found = parsed
            .samples
            .iter()
            .find(|(n, labels, _)| n == name && has(labels));
        found.map(|sample| sample.2)
    }

    #[test]
    fn metrics_come_over_http_and_follow_the_daemon() {
        let mut fixture = Fixture::new("http");
        let mut server = MetricsServer::bind("127.0.0.1:0".parse().unwrap(), &fixture.folder).unwrap();
        let absent = get(&mut server, "/metrics");
        assert!(absent.starts_with("HTTP/1.1 200 OK"), "{absent}");
        assert!(
            absent.contains("application/openmetrics-text; version=1.0.0"),
            "{absent}"
        );
        assert_eq!(value(&absent, "tickwire_region_readable", ""), Some(0.0));
        fixture.write(NOW);
        fixture.beat();
        let answer = get(&mut server, "/metrics");
        assert_eq!(value(&answer, "tickwire_daemon_state", "ready"), Some(1.0));
        assert_eq!(value(&answer, "tickwire_messages_total", "nasdaq 1"), Some(42.0));
        assert_eq!(value(&answer, "tickwire_type_messages_total", "0x21"), Some(30.0));
        assert_eq!(
            value(&answer, "tickwire_latency_seconds_count", "bzx 1"),
            Some(2.0)
        );
        fixture.die();
        let answer = get(&mut server, "/metrics");
        assert_eq!(value(&answer, "tickwire_daemon_state", "dead"), Some(1.0));
        assert!(get(&mut server, "/").contains("href=\"/metrics\""));
        assert!(get(&mut server, "/nothing").starts_with("HTTP/1.1 404"));
    }

    /// What an answer says, as JSON.
    fn parsed(answer: &str) -> Value {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("application/json"), "{head}");
        serde_json::from_str(body).unwrap()
    }

    #[test]
    fn the_page_reads_status_symbols_and_books() {
        let mut fixture = Fixture::new("page");
        let mut server = MetricsServer::bind("127.0.0.1:0".parse().unwrap(), &fixture.folder).unwrap();
        let absent = parsed(&get(&mut server, "/api/status"));
        assert!(
            absent["error"].as_str().unwrap().contains("tickwire feed"),
            "{absent}"
        );
        assert_eq!(parsed(&get(&mut server, "/api/symbols")), json!([]));
        fixture.write(NOW);
        fixture.beat();
        server.shown.status = None;
        let status = parsed(&get(&mut server, "/api/status"));
        assert_eq!(status["daemon"]["state"], "ready");
        assert_eq!(status["sources"][0]["counters"]["messages"], 42);
        assert_eq!(parsed(&get(&mut server, "/api/symbols")), json!(["AAPL", "MSFT"]));
        let book = parsed(&get(&mut server, "/api/book?symbol=AAPL"));
        assert_eq!(book["super"]["symbol"], "AAPL");
        assert_eq!(book["books"].as_array().unwrap().len(), 2, "{book}");
        let missing = parsed(&get(&mut server, "/api/book?symbol=AAPX"));
        assert!(missing["missing"].as_str().unwrap().contains("AAPL"), "{missing}");
        let long = parsed(&get(&mut server, &format!("/api/book?symbol={}", "A".repeat(30))));
        assert!(long["missing"].as_str().unwrap().contains("23"), "{long}");
        assert!(get(&mut server, "/api/book").starts_with("HTTP/1.1 404"));
    }

    #[test]
    fn a_stream_tells_the_status_now_and_then_and_the_book_at_every_beat() {
        let mut fixture = Fixture::new("events");
        fixture.write(NOW);
        fixture.beat();
        let server = MetricsServer::bind("127.0.0.1:0".parse().unwrap(), &fixture.folder).unwrap();
        let mut shown = server.shown;
        let asked = Asked {
            path: "/events",
            query: "symbol=AAPL",
            accept: "",
        };
        let names = |events: String| -> Vec<String> {
            let names = events.lines().filter_map(|line| line.strip_prefix("event: "));
            names.map(String::from).collect()
        };
        assert_eq!(names(shown.events(&asked, 0, None)), ["status", "book"]);
        assert_eq!(names(shown.events(&asked, 1, Some(0))), ["book"]);
        // A slow client that has missed the beat of a status is told one at its next.
        assert_eq!(names(shown.events(&asked, 6, Some(3))), ["status", "book"]);
        for event in shown.events(&asked, 8, Some(7)).split_terminator("\n\n") {
            let data: Vec<&str> = event.lines().skip(1).collect();
            assert_eq!(data.len(), 1, "an event is one line: {event}");
            serde_json::from_str::<Value>(data[0].strip_prefix("data: ").unwrap()).unwrap();
        }
        let none = Asked { query: "", ..asked };
        assert_eq!(names(shown.events(&none, 1, Some(0))), [""; 0]);
    }

    #[test]
    fn whoever_asks_for_many_symbols_gets_no_more_memory() {
        let mut fixture = Fixture::new("symbols");
        fixture.write(NOW);
        fixture.beat();
        let server = MetricsServer::bind("127.0.0.1:0".parse().unwrap(), &fixture.folder).unwrap();
        let mut shown = server.shown;
        for number in 0..100 {
            shown.book(&format!("S{number}"));
            shown.book("AAPL");
        }
        assert_eq!(shown.symbols.len(), SYMBOLS_MAX);
        assert_eq!(shown.symbols[0].symbol.as_str(), "AAPL");
    }

    #[test]
    fn an_address_in_use_is_named() {
        let first = MetricsServer::bind("127.0.0.1:0".parse().unwrap(), Path::new("nowhere")).unwrap();
        let address = first.address().unwrap();
        let failure = MetricsServer::bind(address, Path::new("nowhere")).unwrap_err();
        assert!(failure.message.contains(&address.to_string()), "{failure}");
    }

    /// What the page tells of itself once it has heard something, by asking for one more page.
    const INSPECT: &str = "<script>setTimeout(() => fetch('/said?what=' + encodeURIComponent(JSON.stringify({ \
        wide: document.documentElement.scrollWidth - innerWidth, width: innerWidth, \
        loaded: performance.getEntriesByType('resource').map((r) => new URL(r.name).pathname), \
        text: document.body.innerText.slice(0, 4000) }))), 2500);</script></body>";

    struct Inspected<'s>(&'s mut Shown, &'s mut Option<Value>);

    impl Pages for Inspected<'_> {
        fn page(&mut self, asked: &Asked<'_>) -> Option<Page> {
            if asked.path == "/said" {
                *self.1 = serde_json::from_str(&asked.value("what")?).ok();
            }
            match self.0.page(asked) {
                Some(Page::Whole { content_type, body }) if asked.path == "/" => Some(Page::Whole {
                    content_type,
                    body: body.replace("</body>", INSPECT),
                }),
                page => page,
            }
        }

        fn events(&mut self, asked: &Asked<'_>, beat: u64, last: Option<u64>) -> String {
            self.0.events(asked, beat, last)
        }
    }

    /// The page of a fixture in a browser of this width: what it says of itself, and what its console said.
    fn browse(browser: &str, width: u32, fixture: &mut Fixture) -> (Value, String) {
        let trader = fixture.folder.join("desk-7");
        let trading = ControlThread::open(&trader, &AccessSection::default(), Trader).unwrap();
        let server = MetricsServer::bind("127.0.0.1:0".parse().unwrap(), &fixture.folder).unwrap();
        let programs = [trader, fixture.folder.clone(), fixture.folder.join("gone")];
        let mut server = server.with_programs(&programs).unwrap();
        let address = format!("http://{}/#AAPL", server.address().unwrap());
        let (profile, log) = (fixture.folder.join("profile"), fixture.folder.join("console"));
        let mut command =
            tickwire_testdata::browser::headless(browser, &profile, &format!("{width},1200"), "1", &address);
        let mut running = command
            .args(["--remote-debugging-port=0", "--enable-logging=stderr", "--v=0"])
            .stdout(std::process::Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .expect("the browser starts");
        let (mut said, begun) = (None, Instant::now());
        // A browser that does not come to it ends the test, on however busy a machine.
        while said.is_none() && begun.elapsed() < Duration::from_secs(120) {
            fixture.beat();
            server
                .server
                .poll(Instant::now(), &mut Inspected(&mut server.shown, &mut said));
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = running.kill();
        let _ = running.wait();
        trading.end();
        let errors = String::from_utf8_lossy(&std::fs::read(log).unwrap()).into_owned();
        let console: Vec<&str> = errors.lines().filter(|line| line.contains("CONSOLE")).collect();
        let console: Vec<&str> = console
            .into_iter()
            .filter(|line| !line.contains("/said"))
            .collect();
        (
            said.expect("the page says something within two minutes"),
            console.join("\n"),
        )
    }

    #[test]
    fn the_page_shows_feeds_and_ladders_in_a_browser_and_on_a_phone() {
        let what = "the daemon's page in a browser";
        let Some(browser) = tickwire_testdata::browser::browser(what) else {
            return;
        };
        // The narrowest window that a browser on a desk makes is 500 wide; a telephone's is narrower, and is
        // the frame of a page here.
        for width in [1100, 500] {
            let mut fixture = Fixture::new(&format!("browser-{width}"));
            fixture.write(NOW);
            let (said, console) = browse(browser, width, &mut fixture);
            assert_eq!(console, "", "{width}: the console is not empty");
            let text = said["text"].as_str().unwrap();
            let programs = [
                "desk-7",
                "trading",
                "open 3",
                "sending no room 1 234",
                "gone",
                "silent",
            ];
            let feeds = ["ready", "nasdaq 1", "bzx 1", "AAPL consolidated", "187.24"];
            for shown in feeds.iter().chain(&programs) {
                assert!(text.contains(shown), "{width}: {shown} is not shown: {text}");
            }
            // A narrow page has no room for them.
            assert_eq!(text.contains("shares of"), width > 512, "{width}: {text}");
            assert!(!text.contains("nothing here is current"), "{text}");
            assert_eq!(said["wide"], 0, "{width}: wider than the window");
            let loaded = said["loaded"].as_array().unwrap();
            let own = ["/events", "/api/symbols", "/favicon.ico"];
            assert!(
                loaded.iter().all(|path| own.contains(&path.as_str().unwrap())),
                "{loaded:?}"
            );
        }
    }
}
