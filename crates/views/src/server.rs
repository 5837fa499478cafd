//! The metrics endpoint: run by the daemon's control thread, answers from the region like any other reader.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use super::metrics::{self, Format};
use super::region::{Detail, Watch};
use tickwire_console::failure::Failure;
use tickwire_control::http::{Page, Served, Server};

/// Serves `/metrics`, and `/` that points to it.
#[derive(Debug)]
pub struct MetricsServer {
    server: Server,
    watch: Watch,
}

impl MetricsServer {
    /// Listens. Anybody who reaches the address can read: keep it on loopback, or behind something that asks who they are.
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
            watch: Watch::new(folder),
        })
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
        let watch = &mut self.watch;
        self.server
            .poll(Instant::now(), |path, accept| page(path, accept, watch));
    }
}

fn page(path: &str, accept: &str, watch: &mut Watch) -> Option<Page> {
    match path {
        "/metrics" => {
            let reading = watch.look().ok().map(|region| region.reading(Detail::Kinds));
            let format = Format::accepted(accept);
            Some(Page {
                content_type: format.content_type(),
                body: metrics::page(reading.as_ref(), format),
            })
        }
        "/" => Some(Page {
            content_type: "text/html; charset=utf-8",
            body: "<!doctype html><title>tickwire</title><a href=\"/metrics\">/metrics</a>\n".into(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::metrics::tests::parse;
    use super::super::region::fixture::{Fixture, NOW};
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

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

    #[test]
    fn an_address_in_use_is_named() {
        let first = MetricsServer::bind("127.0.0.1:0".parse().unwrap(), Path::new("nowhere")).unwrap();
        let address = first.address().unwrap();
        let failure = MetricsServer::bind(address, Path::new("nowhere")).unwrap_err();
        assert!(failure.message.contains(&address.to_string()), "{failure}");
    }
}
