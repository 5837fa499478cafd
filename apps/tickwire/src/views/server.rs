//! The metrics endpoint: run by the daemon's control thread, answers from the region like any other reader.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use super::http::{Page, Server};
use super::metrics;
use super::region::{Detail, Watch};
use crate::failure::Failure;

/// Serves `/metrics`, and `/` that points to it.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    server: Server,
    watch: Watch,
}

impl MetricsServer {
    /// Listens. Anybody who reaches the address can read: keep it on loopback, or behind something that asks who they are.
    ///
    /// # Errors
    /// The address is taken, or not one of this machine's.
    pub(crate) fn bind(address: SocketAddr, folder: &Path) -> Result<MetricsServer, Failure> {
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
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.server.address()
    }

    /// Does what can be done without waiting; call it ten times a second.
    pub(crate) fn poll(&mut self) {
        let watch = &mut self.watch;
        self.server.poll(Instant::now(), |path| page(path, watch));
    }
}

fn page(path: &str, watch: &mut Watch) -> Option<Page> {
    match path {
        "/metrics" => {
            let reading = watch.look().ok().map(|region| region.reading(Detail::Kinds));
            Some(Page {
                content_type: metrics::CONTENT_TYPE,
                body: metrics::page(reading.as_ref()),
            })
        }
        "/" => Some(Page {
            content_type: "text/html; charset=utf-8",
            body: "<!doctype html><title>tickwire</title><a href=\"/metrics\">/metrics</a>\n".into(),
        }),
        _ => None,
    }
}
