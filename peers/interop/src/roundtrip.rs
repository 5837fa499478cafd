//! NewOrderSingle → ExecutionReport between two processes of QuickFIX C++ on loopback, beside the bare
//! exchange of as many bytes over TCP and beside Tickwire's own measurement, one after the other in one run.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Instant;

use crate::engine::{Engine, Result};
use crate::scenario::{DIALECTS, Kind, Pair, Places};

/// Bytes of an order and of a report, as the engines send them here.
const ORDER: usize = 223;
const REPORT: usize = 222;

fn row(name: &str, mut nanos: Vec<u64>) {
    nanos.sort_unstable();
    let at = |share: f64| nanos[((nanos.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    println!(
        "{name:<42} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>9.1} {:>8}",
        at(0.0),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0),
        nanos.len()
    );
}

/// The floor: the same bytes, blocking, without an engine.
fn bare(count: u64) -> std::io::Result<Vec<u64>> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let to = listener.local_addr()?;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut order = [0; ORDER];
        while stream.read_exact(&mut order).is_ok() {
            stream.write_all(&[b'8'; REPORT])?;
        }
        Ok(())
    });
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    let mut nanos = Vec::new();
    for _ in 0..count {
        let begin = Instant::now();
        stream.write_all(&[b'D'; ORDER])?;
        stream.read_exact(&mut [0; REPORT])?;
        nanos.push(begin.elapsed().as_nanos() as u64);
    }
    drop(stream);
    let _ = echo.join();
    Ok(nanos)
}

fn trips(initiator: &mut Engine, count: u64) -> Result<Vec<u64>> {
    initiator.tell(&format!("roundtrip {count}"))?;
    let line = initiator.wait("the end of the round trips", |line| {
        line.starts_with("roundtrip ")
    })?;
    let nanos = line["roundtrip ".len()..]
        .split(' ')
        .map(|ns| ns.parse().map_err(|e| format!("{ns:?}: {e}")));
    nanos.collect()
}

/// Measures and prints; `count` round trips of each.
pub fn run(places: &Places, count: u64) -> Result<()> {
    println!(
        "microseconds, {count} round trips each after a tenth of that to warm up; every order is sent when the one before was answered"
    );
    println!(
        "{:<42} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8}",
        "", "min", "p50", "p90", "p99", "p99.9", "max", "count"
    );
    let system = |e: std::io::Error| e.to_string();
    bare(count / 10).map_err(system)?;
    row("bare TCP, blocking", bare(count).map_err(system)?);
    for (name, lasts) in [("memory", false), ("file", true)] {
        let pair = Pair {
            places,
            acceptor: Kind::QuickFix,
            initiator: Kind::QuickFix,
            dialect: DIALECTS[1],
            tls: false,
        };
        let [mut acceptor, mut initiator] = pair.start_alone(lasts)?;
        for engine in [&mut acceptor, &mut initiator] {
            engine.tell("quiet")?;
        }
        trips(&mut initiator, count / 10)?;
        row(
            &format!("QuickFIX C++, {name} store, dictionary"),
            trips(&mut initiator, count)?,
        );
        initiator.quit()?;
        acceptor.quit()?;
    }
    println!();
    let mut command = Command::new(&places.tickwire);
    command.args(["fix", "bench", "--orders", &count.to_string()]);
    let status = command
        .status()
        .map_err(|e| format!("tickwire does not start: {e}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed")),
    }
}
