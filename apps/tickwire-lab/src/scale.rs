//! `tickwire bench --scale`: how the figures grow with the sizes, one table a curve.
//!
//! A point of a curve checks its own answer: books are the venue's, orders that rest are as many as were
//! added, a datagram is received or counted as dropped. Where a machine ends before a curve does, the point
//! is left out, and the table says so.

mod books;
mod feeds;
mod hook;
mod network;
mod passes;
mod program;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tickwire_console::failure::Failure;
use tickwire_control::summary::resident_kib;
use tickwire_kernel::filter::Framing;
use tickwire_lab::{Table, format_count};
use tickwire_receive::filtering::framing_of;
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::Clock;
use tickwire_simulator::session::{SHORT_ROOM, is_short};
use tickwire_venues::protocol::Protocol;

use crate::bench::tell_host;
use crate::cli::BenchArgs;
use crate::feedbench::chosen;

/// What is made larger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Curve {
    /// Instruments, 10 to 100,000: a message of XDP into books
    Instruments,
    /// Orders that rest, 10,000 to 100,000,000: a change of the books, bytes an order
    Orders,
    /// Feeds, 1 to 16, on one thread and on two
    Feeds,
    /// Readers of shared memory, 0 to 16: what the writer takes
    Readers,
    /// Share of the instruments that are wanted, 1 to 100 %
    Subscriptions,
    /// Packets a second, by sockets and by AF_XDP, up to the first that is dropped
    Packets,
    /// What the filter at the hook takes of a packet, of every feed (root)
    Filter,
    /// Receivers of 1 % of the instruments by sockets, by AF_XDP and behind the filter: processor time a
    /// packet, packets a second up to the first that is dropped (root)
    Hook,
    /// Packets in one pass, up to 50,000,000: time a packet, memory
    Pass,
    /// Orders at a restart, 10,000 to 10,000,000: the engine's state written and read
    Restart,
}

impl Curve {
    /// Measures it, point by point; `up_to` is the largest point.
    fn table(self, args: &BenchArgs, clock: &Clock) -> Result<Table, Failure> {
        let up_to = args.up_to.unwrap_or(match self {
            Curve::Instruments => 100_000,
            Curve::Orders | Curve::Restart => 10_000_000,
            Curve::Feeds | Curve::Readers => 16,
            Curve::Subscriptions => 100,
            Curve::Packets | Curve::Hook => 1_000_000,
            Curve::Filter => 400_000,
            Curve::Pass => 50_000_000,
        });
        match self {
            Curve::Instruments => feeds::instruments(args, up_to),
            Curve::Orders => books::orders(args, up_to),
            Curve::Feeds => feeds::feeds(args, up_to),
            Curve::Readers => feeds::readers(args, up_to, clock),
            Curve::Subscriptions => feeds::subscriptions(args, up_to),
            Curve::Packets => network::packets(up_to),
            Curve::Filter => program::program(args, up_to),
            Curve::Hook => hook::hook(args, up_to),
            Curve::Pass => passes::pass(args, up_to),
            Curve::Restart => passes::restart(args, up_to),
        }
    }
}

pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    let clock = Clock::calibrate();
    for &curve in &args.scale {
        if !args.feed.is_empty() && !matches!(curve, Curve::Filter | Curve::Hook) {
            return Err(Failure::config(format!(
                "--feed with --scale is for filter and hook: {curve:?} has its own feeds"
            )));
        }
        eprintln!("{curve:?} ...");
        let table = curve.table(args, &clock)?;
        println!("{}", table.to_text(tickwire_console::terminal::width()));
    }
    // Some curves begin with few instruments, whatever is asked for.
    if is_short(args.messages, 1) {
        println!(
            "{} messages are too few to measure: books of a session of few instruments have room for {} orders, not for what they ship with",
            format_count(args.messages),
            format_count(SHORT_ROOM.into())
        );
    }
    // Curves show what this process has in memory: nothing else is to be in it.
    tell_host(&clock, None);
    Ok(())
}

/// The feeds that are asked for and that the filter at the hook looks into; all of those unless any is asked
/// for.
fn looked_into(args: &BenchArgs) -> Result<Vec<Protocol>, Failure> {
    let asked = match args.feed.is_empty() {
        true => Protocol::ALL.to_vec(),
        false => chosen(&args.feed)?,
    };
    let looked_into = asked
        .into_iter()
        .filter(|protocol| framing_of(*protocol) != Framing::Any);
    Ok(looked_into.collect())
}

/// So many in a hundred, spread evenly.
fn evenly<T>(all: &[T], percent: u64) -> impl Iterator<Item = &T> {
    let is_one = move |at: u64| (at + 1) * percent / 100 > at * percent / 100;
    (0..)
        .zip(all)
        .filter(move |(at, _)| is_one(*at))
        .map(|(_, one)| one)
}

/// Sends at a rate a second, for so long or until so many were sent; how many, and in what time.
fn paced(
    rate: u64,
    count: u64,
    kept: Duration,
    mut send: impl FnMut() -> Result<(), Failure>,
) -> Result<(u64, Duration), Failure> {
    let begin = Instant::now();
    let mut sent = 0;
    loop {
        let so_far = begin.elapsed();
        if so_far >= kept || sent >= count {
            return Ok((sent, so_far));
        }
        let due = ((so_far.as_secs_f64() * rate as f64) as u64).min(count);
        // What is late is sent at once, up to a bound: a sender that cannot keep up is what is measured.
        for _ in 0..due.saturating_sub(sent).min(64) {
            send()?;
            sent += 1;
        }
        std::hint::spin_loop();
    }
}

/// Powers of ten and `up_to`, from `from` on.
fn decades(from: u64, up_to: u64) -> Vec<u64> {
    let powers = std::iter::successors(Some(from), |n| n.checked_mul(10));
    let mut points: Vec<u64> = powers.take_while(|n| *n < up_to).collect();
    points.push(up_to);
    points
}

/// 1, 2, 4 … and `up_to`.
fn doublings(up_to: u64) -> Vec<u64> {
    let powers = std::iter::successors(Some(1_u64), |n| n.checked_mul(2));
    let mut points: Vec<u64> = powers.take_while(|n| *n < up_to).collect();
    points.push(up_to);
    points
}

/// Pins the calling thread to the first core that this process may use, or to the last one: where there is
/// one core, both are the same.
pub(crate) fn pin_to(end: End) -> Result<(), Failure> {
    let cores = Cores::count();
    let usable = cores.usable();
    let core = match end {
        End::First => usable.first(),
        End::Last => usable.last(),
    };
    core.map_or(Ok(()), |core| {
        cores.pin(*core).map_err(|e| Failure::system(e.to_string()))
    })
}

/// See [`pin_to`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    First,
    Last,
}

/// What this process has in memory, bytes; 0 where nobody says.
fn resident() -> u64 {
    resident_kib().unwrap_or_default() << 10
}

/// Whether the system has so many bytes left; `true` where nobody says.
fn has_room(bytes: u64) -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.is_none_or(|kib| kib << 10 > bytes)
}

/// Bytes as people read them.
fn bytes(n: u64) -> String {
    let mut text = String::new();
    let _ = match n {
        0 => write!(text, "0"),
        n if n < 1 << 20 => write!(text, "{:.0} KiB", n as f64 / 1024.0),
        n if n < 1 << 30 => write!(text, "{:.1} MiB", n as f64 / f64::from(1 << 20)),
        n => write!(text, "{:.2} GiB", n as f64 / f64::from(1 << 30)),
    };
    text
}

/// A generator for what is drawn here: SplitMix64.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// One of so many.
    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::FeedChoice;

    /// Every curve, small: points are there, and what each checks of itself holds.
    #[test]
    fn every_curve_is_measured_and_right() {
        let clock = Clock::calibrate();
        let small = [
            (Curve::Instruments, 100),
            (Curve::Orders, 20_000),
            (Curve::Feeds, 3),
            (Curve::Readers, 2),
            (Curve::Subscriptions, 100),
            (Curve::Pass, 20_000),
            (Curve::Restart, 20_000),
        ];
        for (curve, up_to) in small {
            let args = BenchArgs {
                up_to: Some(up_to),
                messages: 5_000,
                ..BenchArgs::small()
            };
            let table = curve
                .table(&args, &clock)
                .unwrap_or_else(|f| panic!("{curve:?}: {}", f.message));
            let text = table.to_text(200);
            assert!(text.lines().count() > 4, "{curve:?}: {text}");
        }
    }

    /// What needs root says so where there is none.
    #[test]
    fn what_the_hook_takes_is_measured_and_right() {
        let clock = Clock::calibrate();
        let must_run = std::env::var_os("TICKWIRE_ROOT_TESTS").is_some_and(|value| value == "1");
        for (curve, up_to, rows) in [(Curve::Filter, 4_000, 7), (Curve::Hook, 50_000, 10)] {
            let args = BenchArgs {
                up_to: Some(up_to),
                messages: 8_000,
                feed: [Protocol::Pitch, Protocol::Xdp].map(FeedChoice::One).to_vec(),
                ..BenchArgs::small()
            };
            let table = curve
                .table(&args, &clock)
                .unwrap_or_else(|f| panic!("{curve:?}: {}", f.message));
            match table.rows() {
                [why] if !must_run => tickwire_testdata::not_tested(&why[0]),
                measured => assert_eq!(measured.len(), rows, "{}", table.to_text(200)),
            }
        }
    }

    #[test]
    fn points_end_where_they_are_told_to() {
        assert_eq!(decades(10, 100_000), [10, 100, 1_000, 10_000, 100_000]);
        assert_eq!(decades(10, 500), [10, 100, 500]);
        assert_eq!(doublings(16), [1, 2, 4, 8, 16]);
        assert_eq!(doublings(3), [1, 2, 3]);
    }
}
