//! Packets a second from a sender on one core to a receiver on another, over loopback.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tickwire_console::failure::Failure;
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group};
use tickwire_kernelpath::{KernelReceiver, ReceiverConfig};
use tickwire_lab::{Table, format_count};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::udp::{BATCH_MAX, MulticastConfig, MulticastReceiver, MulticastSender, Stamping};

use super::{End, paced, pin_to};

/// The group: of the organisation's own scope, which nobody publishes to.
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 192, 91, 77), 26_977);
/// Bytes of a datagram: an ITCH packet of a message or two.
const PAYLOAD: usize = 64;
/// How long a rate is kept up.
const KEPT: Duration = Duration::from_secs(2);
/// So long after the last datagram nothing more comes.
const QUIET: Duration = Duration::from_millis(200);
/// Datagrams of a burst: more than any buffer here holds.
const BURST: u64 = 100_000;
/// Thousands of packets a second.
const RATES: [u64; 12] = [25, 50, 100, 150, 200, 250, 300, 350, 400, 500, 700, 1_000];

/// Who receives.
enum Way {
    Sockets(Box<MulticastReceiver>),
    Ring(Box<KernelReceiver>),
}

impl Way {
    /// Takes what there is; how many that were.
    fn take(&mut self, buffer: &mut [u8]) -> Result<u64, Failure> {
        let mut taken = 0;
        match self {
            Way::Sockets(receiver) => {
                let failed = |e| Failure::system(format!("receiving {GROUP}: {e}"));
                while let Some(datagram) = receiver.recv(buffer).map_err(failed)? {
                    taken += u64::from(datagram.bytes.len() == PAYLOAD);
                }
            }
            Way::Ring(receiver) => {
                while let Some(delivery) = receiver.recv() {
                    taken += u64::from(delivery.payload.len() == PAYLOAD);
                }
                receiver.settle();
            }
        }
        Ok(taken)
    }

    /// How many the kernel says it dropped, since the beginning.
    fn drops(&self) -> u64 {
        match self {
            Way::Sockets(receiver) => receiver.kernel_drops().into(),
            Way::Ring(receiver) => receiver.lost(),
        }
    }
}

/// Sends at a rate for [`KEPT`]; how many, and in what time.
fn send(sender: &MulticastSender, rate: u64) -> Result<(u64, Duration), Failure> {
    let payload = [0x54; PAYLOAD];
    paced(rate, u64::MAX, KEPT, || {
        sender
            .send(&payload)
            .map_err(|e| Failure::system(format!("sending to {GROUP}: {e}")))
    })
}

/// Sends so many as quickly as it can while nobody reads, and then reads: how many were kept, how many not,
/// and how many a second a receiver takes that never waits for one.
fn burst(way: &mut Way, interface: &Interface) -> Result<(u64, u64, f64), Failure> {
    let sender = MulticastSender::open(GROUP, interface, 1).map_err(|e| Failure::system(e.to_string()))?;
    let mut buffer = [0; 2_048];
    let before = way.drops();
    let payload = [0x54; PAYLOAD];
    let send = || {
        sender
            .send(&payload)
            .map_err(|e| Failure::system(format!("sending to {GROUP}: {e}")))
    };
    (0..BURST).try_for_each(|_| send())?;
    let (kept, took) = read_all(way, &mut buffer)?;
    // What was dropped is told with the next one.
    send()?;
    let (last, _) = read_all(way, &mut buffer)?;
    Ok((
        kept + last,
        way.drops() - before,
        kept as f64 / took.as_secs_f64(),
    ))
}

/// Reads until nothing comes any more: how many, and in what time.
fn read_all(way: &mut Way, buffer: &mut [u8]) -> Result<(u64, Duration), Failure> {
    let begin = Instant::now();
    let (mut taken, mut last) = (0, begin);
    while last.elapsed() < QUIET {
        match way.take(buffer)? {
            0 => std::hint::spin_loop(),
            n => (taken, last) = (taken + n, Instant::now()),
        }
    }
    Ok((taken, last - begin))
}

/// Sent, in seconds; received; dropped.
type Point = (u64, f64, u64, u64);

fn point(way: &mut Way, interface: &Interface, rate: u64) -> Result<Point, Failure> {
    let sender = MulticastSender::open(GROUP, interface, 1).map_err(|e| Failure::system(e.to_string()))?;
    let is_over = AtomicBool::new(false);
    let before = way.drops();
    std::thread::scope(|scope| {
        let (sender, is_over) = (&sender, &is_over);
        let sending = scope.spawn(move || {
            // Where there is one core only, both share it.
            let sent = pin_to(End::Last).and_then(|()| send(sender, rate));
            is_over.store(true, Ordering::Release);
            sent
        });
        let mut buffer = [0; 2_048];
        let (mut received, mut last) = (0, Instant::now());
        loop {
            match way.take(&mut buffer)? {
                0 if is_over.load(Ordering::Acquire) && last.elapsed() > QUIET => break,
                0 => std::hint::spin_loop(),
                n => (received, last) = (received + n, Instant::now()),
            }
        }
        let (sent, time) = sending.join().expect("its panic ends this one")?;
        Ok((sent, time.as_secs_f64(), received, way.drops() - before))
    })
}

/// A way's name, and how it is opened.
type Opening = (&'static str, fn(&Interface) -> Result<Way, String>);

const WAYS: [Opening; 3] = [
    ("socket, a call each", |interface| socket(interface, 1)),
    ("socket, up to 64 a call", |interface| {
        socket(interface, BATCH_MAX)
    }),
    ("AF_XDP, behind loopback's driver", ring),
];

fn socket(interface: &Interface, batch: u32) -> Result<Way, String> {
    let mut config = MulticastConfig::new(GROUP, interface.clone()).stamping(match batch {
        1 => Stamping::OnDemand,
        _ => Stamping::Kernel,
    });
    config.batch = batch;
    let receiver = MulticastReceiver::join(config).map_err(|e| e.to_string())?;
    Ok(Way::Sockets(Box::new(receiver)))
}

fn ring(interface: &Interface) -> Result<Way, String> {
    let spec = FilterSpec {
        channels: vec![ChannelSpec {
            framing: Framing::Any,
            groups: vec![Group::new(GROUP.ip().octets(), GROUP.port())],
            set: 0,
        }],
        ..FilterSpec::default()
    };
    let receiver =
        KernelReceiver::open(spec, interface, &ReceiverConfig::default()).map_err(|e| e.to_string())?;
    Ok(Way::Ring(Box::new(receiver)))
}

/// Each datagram was received or counted as dropped.
fn account(name: &str, sent: u64, received: u64, dropped: u64) -> Result<(), Failure> {
    match sent.saturating_sub(received + dropped) {
        0 => Ok(()),
        neither => Err(Failure::check(format!(
            "{name}: {sent} sent, {received} received, {dropped} dropped: {neither} are neither"
        ))),
    }
}

pub(super) fn packets(up_to: u64) -> Result<Table, Failure> {
    let interface = Interface::loopback().map_err(|e| Failure::system(e.to_string()))?;
    pin_to(End::First)?;
    let mut table = Table::new(
        &format!(
            "datagrams of {PAYLOAD} bytes over loopback for {} s at each rate, sender on the last core, a receiver that does nothing with them on the first one; a buffer of 16 MiB, a ring of 16,384 frames. The first rate with a drop is the last one, or that beyond which the sender cannot go",
            KEPT.as_secs()
        ),
        &[
            "way",
            "asked for",
            "sent a second, or at all",
            "received",
            "dropped",
            "read a second",
        ],
    );
    // One after the other: what AF_XDP takes, no socket hears.
    for (name, open) in WAYS {
        let mut way = match open(&interface) {
            Ok(way) => way,
            Err(reason) => {
                table = table.row([name.to_string(), reason]);
                continue;
            }
        };
        let (kept, dropped, rate) = burst(&mut way, &interface)?;
        // With the one behind it that tells of drops.
        account(name, BURST + 1, kept, dropped)?;
        table = table.row([
            name.to_string(),
            "a burst, nobody reads".into(),
            format_count(BURST),
            format_count(kept),
            format_count(dropped),
            format_count(rate as u64),
        ]);
        for rate in RATES
            .map(|thousands| thousands * 1_000)
            .into_iter()
            .filter(|rate| *rate <= up_to)
        {
            let (sent, seconds, received, dropped) = point(&mut way, &interface, rate)?;
            account(name, sent, received, dropped)?;
            table = table.row([
                name.to_string(),
                format_count(rate),
                format_count((sent as f64 / seconds) as u64),
                format_count(received),
                format_count(dropped),
            ]);
            eprintln!("  {name}: {} a second", format_count(rate));
            // A sender that does not keep up sends no more at a higher rate.
            if dropped > 0 || sent as f64 / seconds < 0.95 * rate as f64 {
                break;
            }
        }
    }
    Ok(table)
}
