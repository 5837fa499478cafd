//! `tickwire play`: captures back onto a network, at their own speed or another, or one packet at a time
//! against a system whose orders are waited for.
//!
//! ```text
//! captures ─► Source (merged by time) ─► Schedule (when) ─► wait_until (spinning) ─► Routes (where) ─► socket
//! ```
//! Frames are not sent as they were captured: their UDP payloads are, from a socket of this machine, so that
//! a receiver's own kernel takes them as it takes everything. Fragments, TCP and what is not IP are counted
//! and passed over.
//!
//! Safe by default: nothing leaves the machine unless an interface is named.
//!
//! ```
//! use clap::Parser;
//! use std::net::UdpSocket;
//! use tickwire_market::Nanos;
//! use tickwire_player::{PlayArgs, run};
//! use tickwire_runtime::capture::{LinkType, PcapWriter};
//! use tickwire_runtime::signal::StopFlag;
//!
//! #[derive(Parser)]
//! struct Cli {
//!     #[command(flatten)]
//!     play: PlayArgs,
//! }
//!
//! let path = std::env::temp_dir().join(format!("tickwire-example-{}.pcap", std::process::id()));
//! let mut capture = PcapWriter::create(&path, LinkType::ETHERNET)?;
//! let (from, group) = ("10.0.0.1:5000".parse()?, "239.192.1.1:30001".parse()?);
//! capture.write_udp(Nanos(Nanos::SECOND), from, group, b"a packet")?;
//! capture.finish()?;
//!
//! // What went to the group goes to a socket of this program instead, as fast as it takes it.
//! let receiver = UdpSocket::bind("127.0.0.1:0")?;
//! let map = format!("239.192.1.1:30001={}", receiver.local_addr()?);
//! let file = path.display().to_string();
//! let cli = Cli::parse_from(["example", &file, "--map", &map, "--topspeed"]);
//! run(&cli.play, &StopFlag::install()?)?;
//!
//! let mut buffer = [0; 64];
//! let length = receiver.recv(&mut buffer)?;
//! assert_eq!(&buffer[..length], b"a packet");
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

mod entries;
mod route;
mod schedule;
pub mod single;
mod source;

pub use source::FRAME_HEADERS;

use std::fmt::Write as _;
use std::io::BufWriter;
use std::net::SocketAddrV4;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tickwire_lab::{Histogram, Summary, Table, format_count, format_ns};
use tickwire_market::Symbol;
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::pace::{Waited, wait_until};
use tickwire_runtime::signal::StopFlag;

use entries::Entries;
use route::{Mapping, Routes};
use schedule::{Rate, Schedule};
use single::{OrderPort, OrdersAre, Sample};
use source::{Passed, Source};
use tickwire_console::failure::Failure;
use tickwire_venues::protocol::Protocol;

/// How long the system under test may take to connect and log on.
const CONNECT_NS: u64 = 60_000_000_000;

/// The arguments of `tickwire play`.
#[derive(Args, Debug)]
pub struct PlayArgs {
    /// Captures (pcap, pcapng; gzip and zstd are recognised), merged by time
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Speed as a multiple of the capture's own
    #[arg(short = 'x', long, default_value_t = 1.0, value_name = "X", value_parser = positive, conflicts_with_all = ["pps", "mbps", "topspeed"])]
    pub multiplier: f64,
    /// Packets a second instead
    #[arg(short, long, value_name = "N", value_parser = positive, conflicts_with_all = ["mbps", "topspeed"])]
    pub pps: Option<f64>,
    /// Megabits a second instead, whole frames counted
    #[arg(short = 'M', long, value_name = "N", value_parser = positive, conflicts_with = "topspeed")]
    pub mbps: Option<f64>,
    /// As fast as the sockets take them
    #[arg(short, long)]
    pub topspeed: bool,
    /// Stop after so many packets, all passes together
    #[arg(short = 'L', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Play the captures so often; 0: until interrupted
    #[arg(short = 'l', long = "loop", default_value_t = 1, value_name = "N")]
    pub passes: u64,
    /// Say every so many seconds how it goes
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub stat: Option<f64>,
    /// Send what was recorded to FROM to TO instead (repeatable); :* is every port, on both sides
    #[arg(long, value_name = "FROM=TO")]
    pub map: Vec<Mapping>,
    /// The interface to send by. By its name, any may be used; unnamed (or by its address), loopback and veth
    /// pairs only. Multicast goes by loopback unless told otherwise
    #[arg(short, long, value_name = "NAME")]
    pub interface: Option<String>,
    /// How many networks multicast may cross
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub ttl: u8,
    /// Read the captures into memory first: no reading or decompressing between two packets
    #[arg(long)]
    pub preload: bool,
    /// Core to pin to
    #[arg(long, value_name = "N")]
    pub core: Option<usize>,
    /// One at a time: wait for a connection here, send a packet, wait for the order that comes on it, then
    /// the next
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["pps", "mbps", "topspeed"])]
    pub one_at_a_time: Option<SocketAddrV4>,
    /// What an order is
    #[arg(long, value_enum, default_value_t = OrdersAre::Fix, requires = "one_at_a_time")]
    pub orders: OrdersAre,
    /// How long to wait for one, microseconds
    #[arg(long, default_value_t = 10_000, value_name = "US", requires = "one_at_a_time")]
    pub timeout: u64,
    /// Quiet between an order and the next packet, microseconds: further orders of the packet come then, and
    /// are counted
    #[arg(long, default_value_t = 50, value_name = "US", requires = "one_at_a_time")]
    pub quiet: u64,
    /// FIX: our CompID and the one that logs on
    #[arg(long, default_value = "EXCHANGE,TRADER", value_name = "OURS,THEIRS", value_parser = comp_ids, requires = "one_at_a_time")]
    pub comp_ids: CompIds,
    /// Write every sample as CSV: packet, sizes, entries, N-1, 1-1 (computed), time of the call that sent,
    /// orders
    #[arg(long, value_name = "FILE", requires = "one_at_a_time")]
    pub samples: Option<PathBuf>,
    /// Count the entries of each sample's packet as this protocol's messages
    #[arg(long, value_enum, value_name = "P", requires = "one_at_a_time")]
    pub protocol: Option<Protocol>,
    /// FAST template file of MOEX (repeatable: the first that reads a packet whole is taken)
    #[arg(long, value_name = "FILE", requires = "protocol")]
    pub templates: Vec<PathBuf>,
    /// The results as JSON
    #[arg(long)]
    pub json: bool,
}

/// Our CompID and the client's.
#[derive(Clone, Copy, Debug)]
pub struct CompIds(pub [Symbol; 2]);

fn comp_ids(text: &str) -> Result<CompIds, String> {
    let wrong = || format!("'{text}' is not two CompIDs of up to 23 characters with a comma between");
    let (ours, theirs) = text.split_once(',').ok_or_else(wrong)?;
    let id = |text: &str| {
        Symbol::new(text.trim().as_bytes())
            .filter(|s| !s.is_empty())
            .ok_or_else(wrong)
    };
    Ok(CompIds([id(ours)?, id(theirs)?]))
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("give a number above 0".into()),
    }
}

impl PlayArgs {
    fn rate(&self) -> Rate {
        match (self.pps, self.mbps, self.topspeed) {
            (Some(pps), _, _) => Rate::Packets(pps),
            (_, Some(mbps), _) => Rate::Bits(mbps * 1e6),
            (_, _, true) => Rate::Top,
            _ => Rate::Times(self.multiplier),
        }
    }
}

/// What was sent and how punctually.
struct Played {
    /// From the first packet on, in ticks.
    started: Option<u64>,
    packets: u64,
    payload_bytes: u64,
    frame_bytes: u64,
    /// From the moment due to that of the call, nanoseconds. Empty at top speed.
    lateness: Histogram,
    /// What each call took, nanoseconds.
    calls: Histogram,
}

impl Played {
    fn new() -> Played {
        Played {
            started: None,
            packets: 0,
            payload_bytes: 0,
            frame_bytes: 0,
            lateness: Histogram::new(),
            calls: Histogram::new(),
        }
    }

    fn count(&mut self, payload: usize, frame_len: u32) {
        self.packets += 1;
        self.payload_bytes += payload as u64;
        self.frame_bytes += u64::from(frame_len);
    }
}

/// Why playing ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Complete,
    Interrupted,
}

/// Runs `tickwire play`: sends the datagrams of the captures, at their own speed or another, and prints how
/// well it kept it.
///
/// # Errors
/// A capture that cannot be read or was cut off, an interface or a socket that cannot be had, a signal; and
/// captures in which there is nothing to send or not everything was sent, after what was sent is shown.
pub fn run(args: &PlayArgs, stop: &StopFlag) -> Result<(), Failure> {
    if let Some(core) = args.core {
        Cores::count()
            .pin(core)
            .map_err(|e| Failure::system(e.to_string()))?;
    }
    let clock = Clock::calibrate();
    if let Some(warning) = clock.warning() {
        eprintln!("warning: {warning}");
    }
    let mut player = Player {
        args,
        stop,
        clock,
        source: Source::open(&args.files, args.preload)?,
        routes: Routes::new(&args.map, args.interface.as_deref(), args.ttl)?,
        played: Played::new(),
        samples: Vec::new(),
    };
    let ended = match args.one_at_a_time {
        Some(address) => player.one_at_a_time(address),
        None => player.paced(),
    };
    // What was sent before a failure is shown too.
    if player.played.packets > 0 {
        player.print()?;
    }
    if let Some(path) = &args.samples {
        let written = tickwire_runtime::files::create(path)
            .and_then(|file| single::write_csv(&mut BufWriter::new(file), &player.samples));
        written.map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?;
    }
    let passed = player.source.passed();
    match (ended?, &passed.damage) {
        (Ended::Interrupted, _) => Err(Failure::interrupted(format!(
            "{}; {} packets were sent",
            stop.reason()
                .map_or("ended".to_owned(), |reason| reason.to_string()),
            player.played.packets
        ))),
        (_, Some(damage)) => Err(Failure::check(damage.clone())),
        _ if player.played.packets == 0 => Err(Failure::check(format!(
            "nothing to play: of {} frames none holds a whole UDP datagram over IPv4",
            passed.frames.counts().frames
        ))),
        _ => match passed.frames.counts().loss() {
            Some(loss) => Err(Failure::check(format!("not everything was played: {loss}"))),
            None => Ok(()),
        },
    }
}

struct Player<'a> {
    args: &'a PlayArgs,
    stop: &'a StopFlag,
    clock: Clock,
    source: Source,
    routes: Routes,
    played: Played,
    samples: Vec<Sample>,
}

impl Player<'_> {
    /// Whether another packet may be sent, by number.
    fn is_wanted(&self) -> bool {
        self.args.limit.is_none_or(|limit| self.played.packets < limit)
    }

    /// Every pass at the rate wanted.
    fn paced(&mut self) -> Result<Ended, Failure> {
        let mut schedule = Schedule::new(self.args.rate());
        let mut stat = self.args.stat.map(|seconds| Stat::new(&self.clock, seconds));
        for pass in 0.. {
            if pass > 0 {
                if self.args.passes != 0 && pass == self.args.passes || self.played.packets == 0 {
                    break;
                }
                self.source.rewind()?;
                schedule.rewind();
            }
            while self.is_wanted() {
                let Some(datagram) = self.source.next()? else {
                    break;
                };
                let place = self.routes.place(datagram.destination)?;
                let due = schedule.due(datagram.time, datagram.frame_len);
                let start = *self.played.started.get_or_insert_with(tsc);
                let due = due.map(|ns| start + self.clock.span_ticks(ns));
                let before = match due.map(|due| wait_until(&self.clock, due, || self.stop.is_set())) {
                    Some(Waited::Until(now)) => now,
                    Some(Waited::Stopped) => return Ok(Ended::Interrupted),
                    None => tsc(),
                };
                let sent = self.routes.send(place, datagram.payload);
                let after = tsc();
                sent.map_err(|e| failed(&self.routes, place, &e))?;
                self.played.count(datagram.payload.len(), datagram.frame_len);
                self.played.calls.record(self.clock.span_ns(after - before));
                if let Some(due) = due {
                    self.played
                        .lateness
                        .record(self.clock.span_ns(before.saturating_sub(due)));
                }
                if let Some(stat) = &mut stat {
                    stat.tell(&self.clock, after, &self.played);
                }
                if self.played.packets.is_multiple_of(64) && self.stop.is_set() {
                    return Ok(Ended::Interrupted);
                }
            }
            if !self.is_wanted() {
                break;
            }
        }
        Ok(Ended::Complete)
    }

    /// Every packet after the order to the one before.
    fn one_at_a_time(&mut self, address: SocketAddrV4) -> Result<Ended, Failure> {
        let mut counter = match self.args.protocol {
            Some(protocol) => Some(Entries::new(protocol, &self.args.templates)?),
            None => None,
        };
        let mut port = OrderPort::listen(address, self.args.orders, self.args.comp_ids.0)?;
        eprintln!("waiting for a connection to {}", port.address()?);
        let waiting = tsc();
        while !port.is_ready(&self.clock)? {
            if self.stop.is_set() {
                return Ok(Ended::Interrupted);
            }
            if self.clock.span_ns(tsc() - waiting) > CONNECT_NS {
                return Err(Failure::peer_lost(format!(
                    "nobody connected to {address} and logged on within {} s",
                    CONNECT_NS / 1_000_000_000
                )));
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let patience = self.clock.span_ticks(self.args.timeout.saturating_mul(1_000));
        let quiet = self.clock.span_ticks(self.args.quiet.saturating_mul(1_000));
        let mut stat = self.args.stat.map(|seconds| Stat::new(&self.clock, seconds));
        for pass in 0.. {
            if pass > 0 {
                if self.args.passes != 0 && pass == self.args.passes || self.played.packets == 0 {
                    break;
                }
                self.source.rewind()?;
            }
            while self.is_wanted() {
                if self.stop.is_set() {
                    return Ok(Ended::Interrupted);
                }
                let Some(datagram) = self.source.next()? else {
                    break;
                };
                let place = self.routes.place(datagram.destination)?;
                // Decoding would warm nothing that the system under test uses, but takes time: before the
                // sample begins.
                let entries = counter.as_mut().and_then(|c| c.count(datagram.payload));
                let routes = &mut self.routes;
                self.played.started.get_or_insert_with(tsc);
                let exchange = single::exchange(&mut port, &self.clock, patience, || {
                    routes.send(place, datagram.payload)
                })?;
                let mut orders = u32::from(exchange.arrival.is_some());
                port.settle(&self.clock)?;
                let settled = tsc();
                while tsc() - settled < quiet {
                    orders += u32::from(port.poll(&self.clock)?.is_some());
                }
                port.settle(&self.clock)?;
                self.played.count(datagram.payload.len(), datagram.frame_len);
                let place = (self.played.packets, datagram.payload.len());
                let sample = Sample {
                    // As it was recorded: a frame may be longer than its datagram with the headers.
                    frame_len: datagram.frame_len,
                    ..exchange.sample(&self.clock, place, entries, orders)
                };
                self.played.calls.record(sample.call_ns);
                self.samples.push(sample);
                if let Some(stat) = &mut stat {
                    stat.tell(&self.clock, settled, &self.played);
                }
            }
            if !self.is_wanted() {
                break;
            }
        }
        Ok(Ended::Complete)
    }

    fn seconds(&self) -> f64 {
        let started = self.played.started.unwrap_or_else(tsc);
        self.clock.span_ns(tsc() - started) as f64 / 1e9
    }

    fn print(&self) -> Result<(), Failure> {
        let report = self.report();
        if self.args.json {
            let json = serde_json::to_string_pretty(&report);
            println!(
                "{}",
                json.map_err(|e| Failure::system(format!("cannot write the results: {e}")))?
            );
        } else {
            print!("{}", self.to_text(&report));
        }
        Ok(())
    }

    fn report(&self) -> Report {
        let passed = self.source.passed();
        let seconds = self.seconds();
        let played = &self.played;
        let mut n1 = Histogram::new();
        self.samples
            .iter()
            .filter_map(|s| s.n1_ns)
            .for_each(|ns| n1.record(ns));
        let some = |histogram: &Histogram| (!histogram.is_empty()).then(|| histogram.summary());
        Report {
            packets: played.packets,
            payload_bytes: played.payload_bytes,
            frame_bytes: played.frame_bytes,
            seconds,
            frames_read: passed.frames.counts().frames,
            not_played: passed.frames.counts().total() + passed.ipv6,
            lateness_ns: some(&played.lateness),
            within_1us: (!played.lateness.is_empty()).then(|| within(&played.lateness, 1_000)),
            send_call_ns: some(&played.calls),
            n1_ns: some(&n1),
            orders: self.samples.iter().map(|s| u64::from(s.orders)).sum(),
            without_order: self.samples.iter().filter(|s| s.n1_ns.is_none()).count() as u64,
            destinations: self
                .routes
                .outs()
                .iter()
                .map(|out| Destination {
                    recorded: out.from,
                    sent: out.to,
                    packets: out.packets,
                    bytes: out.bytes,
                })
                .collect(),
        }
    }

    fn to_text(&self, report: &Report) -> String {
        let mut table = Table::new(
            "destinations",
            &["recorded as", "sent to", "packets", "payload bytes"],
        );
        for d in &report.destinations {
            table = table.row([
                d.recorded.to_string(),
                d.sent.to_string(),
                format_count(d.packets),
                format_count(d.bytes),
            ]);
        }
        let mut text = format!(
            "{}\n{} packets in {:.3} s: {:.0} packets/s, {:.3} Mbit/s of frames\n",
            table.to_text(tickwire_console::terminal::width()),
            format_count(report.packets),
            report.seconds,
            report.packets as f64 / report.seconds,
            report.frame_bytes as f64 * 8.0 / report.seconds / 1e6,
        );
        let mut lines: Vec<(&str, &Histogram)> = Vec::new();
        if !self.played.lateness.is_empty() {
            lines.push(("late by", &self.played.lateness));
        }
        lines.push(("the call that sends", &self.played.calls));
        let _ = write!(
            text,
            "\n{}",
            Table::latencies("how punctually", &lines).to_text(tickwire_console::terminal::width())
        );
        if let Some(share) = report.within_1us {
            let _ = writeln!(
                text,
                "{:.3} % of the packets were sent within a microsecond of their time",
                share * 100.0
            );
        }
        if self.args.one_at_a_time.is_some() {
            let mut n1 = Histogram::new();
            let mut one_one = Histogram::new();
            for sample in &self.samples {
                if let (Some(ns), Some(tenths)) = (sample.n1_ns, sample.one_one_tenths()) {
                    n1.record(ns);
                    one_one.record((tenths + 5) / 10);
                }
            }
            let lines = [("N-1, measured", &n1), ("1-1, computed", &one_one)];
            let _ = write!(
                text,
                "\n{}",
                Table::latencies("packet to order", &lines).to_text(tickwire_console::terminal::width())
            );
            let _ = writeln!(
                text,
                "{} packets led to no order within {}; {} orders in all\n\
                 N-1 begins before the call that sends; 1-1 is N-1 + 6.4 * int((N + 7) / 8) ns for a frame of N bytes",
                format_count(report.without_order),
                format_ns(self.args.timeout.saturating_mul(1_000)),
                format_count(report.orders),
            );
        }
        let passed = self.source.passed();
        if report.not_played > 0 {
            let _ = writeln!(text, "not played: {}", describe(passed));
        }
        text
    }
}

/// What was passed over, in words.
fn describe(passed: &Passed) -> String {
    let counts = passed.frames.counts();
    let mut said = counts.not_read();
    for (count, what) in [
        (counts.tcp, "of TCP, which is not played"),
        (passed.ipv6, "to IPv6 addresses"),
    ] {
        if count > 0 {
            said.push(format!("{} {what}", format_count(count)));
        }
    }
    said.join(", ")
}

fn failed(routes: &Routes, place: usize, error: &std::io::Error) -> Failure {
    let to = routes.out(place).to;
    let hint = match error.raw_os_error() {
        Some(90) => "; the datagram is larger than a socket takes", // EMSGSIZE
        _ => "",
    };
    Failure::system(format!("sending to {to} failed: {error}{hint}"))
}

/// The share of values that are not above `ns`.
fn within(histogram: &Histogram, ns: u64) -> f64 {
    let up_to: u64 = histogram
        .values()
        .filter(|(value, _)| *value <= ns)
        .map(|(_, count)| count)
        .sum();
    up_to as f64 / histogram.count() as f64
}

/// The results.
#[derive(Serialize)]
struct Report {
    packets: u64,
    payload_bytes: u64,
    frame_bytes: u64,
    seconds: f64,
    frames_read: u64,
    not_played: u64,
    /// Nanoseconds from the moment due to that of the call.
    lateness_ns: Option<Summary>,
    /// Share of packets not more than a microsecond late.
    within_1us: Option<f64>,
    send_call_ns: Option<Summary>,
    n1_ns: Option<Summary>,
    orders: u64,
    without_order: u64,
    destinations: Vec<Destination>,
}

#[derive(Serialize)]
struct Destination {
    recorded: SocketAddrV4,
    sent: SocketAddrV4,
    packets: u64,
    bytes: u64,
}

/// Says now and then how it goes.
struct Stat {
    every: u64,
    next: u64,
    since: u64,
    packets: u64,
    bytes: u64,
}

impl Stat {
    fn new(clock: &Clock, seconds: f64) -> Stat {
        let every = clock.span_ticks((seconds * 1e9) as u64);
        let now = tsc();
        Stat {
            every,
            next: now + every,
            since: now,
            packets: 0,
            bytes: 0,
        }
    }

    #[inline]
    fn tell(&mut self, clock: &Clock, now: u64, played: &Played) {
        if now >= self.next {
            self.say(clock, now, played);
        }
    }

    #[cold]
    fn say(&mut self, clock: &Clock, now: u64, played: &Played) {
        let seconds = clock.span_ns(now - self.since) as f64 / 1e9;
        let (packets, bytes) = (played.packets - self.packets, played.frame_bytes - self.bytes);
        let late = match played.lateness.is_empty() {
            true => String::new(),
            false => format!(
                ", late p50 {} p99 {} max {}",
                format_ns(played.lateness.at_quantile(0.5)),
                format_ns(played.lateness.at_quantile(0.99)),
                format_ns(played.lateness.max())
            ),
        };
        eprintln!(
            "{} packets, {:.0} packets/s, {:.3} Mbit/s{late}",
            format_count(played.packets),
            packets as f64 / seconds,
            bytes as f64 * 8.0 / seconds / 1e6,
        );
        (self.since, self.packets, self.bytes) = (now, played.packets, played.frame_bytes);
        self.next = now + self.every;
    }
}
