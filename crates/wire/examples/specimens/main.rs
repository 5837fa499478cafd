//! Writes captures with every message type in them, each byte different from its neighbours: what an
//! independent decoder must read like we do (`cargo xtask oracle`, docs/oracle.md).
//!
//! `cargo run -p tickwire-wire --example specimens -- DIR` writes `DIR/<name>.pcap`.

mod ilink3;
mod mdp3;
mod pattern;
mod sip;
mod venues;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use tickwire_market::Nanos;
use tickwire_runtime::capture::{LinkType, PcapWriter};

/// Datagrams of one capture, or segments of a stream.
type Packets = Vec<Vec<u8>>;

/// File name, port of the group or of the server, payloads.
type Capture = (&'static str, u16, fn() -> Packets);

const CAPTURES: &[Capture] = &[
    ("itch50", 26_477, venues::itch50),
    ("pitch", 30_001, venues::pitch),
    ("pitch-recovery", 30_004, venues::pitch_recovery),
    ("pitch-options", 30_002, venues::pitch_options),
    ("pitch-complex", 30_005, venues::pitch_complex),
    ("pitch-futures", 30_003, venues::pitch_futures),
    ("xdp", 11_064, venues::xdp),
    ("xdp-imbalance", 11_064, venues::xdp_imbalance),
    ("xdp-bbo", 11_064, venues::xdp_bbo),
    ("xdp-refresh", 11_064, venues::xdp_refresh),
    ("openbook", 51_201, venues::openbook),
    ("openbook-control", 51_201, venues::openbook_control),
    ("cqs", 40_001, sip::cqs),
    ("cqs-short", 40_001, sip::cqs_short),
    ("cqs-short-side", 40_001, sip::cqs_short_side),
    ("cqs-offer", 40_001, sip::cqs_offer),
    ("cqs-snapshot", 40_001, sip::cqs_snapshot),
    ("cts", 40_002, sip::cts),
    ("uqdf", 55_530, sip::uqdf),
    ("utdf", 55_531, sip::utdf),
    ("mdp3", 14_310, mdp3::newest),
    ("mdp3-fx", 14_311, mdp3::fx),
    ("mdp3-v8", 14_312, mdp3::v8),
];

const STREAMS: &[Capture] = &[
    ("ilink3", 24_001, ilink3::every),
    ("ilink3-quotes", 24_002, ilink3::quotes),
];

fn main() {
    let folder = std::env::args().nth(1).expect("usage: specimens DIR");
    let create = |name: &str| {
        let path = Path::new(&folder).join(format!("{name}.pcap"));
        PcapWriter::create(&path, LinkType::ETHERNET).unwrap()
    };
    let source = SocketAddrV4::new(Ipv4Addr::new(10, 1, 1, 1), 40_000);
    for (name, port, packets) in CAPTURES {
        let mut file = create(name);
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 1, 1, 1), *port);
        for (number, payload) in packets().iter().enumerate() {
            file.write_udp(time(number), source, group, payload).unwrap();
        }
        file.finish().unwrap();
    }
    for (name, port, segments) in STREAMS {
        let mut file = create(name);
        let server = SocketAddrV4::new(Ipv4Addr::new(10, 1, 1, 2), *port);
        let mut seq = 1;
        for (number, payload) in segments().iter().enumerate() {
            let frame = segment(source, server, seq, payload);
            file.write_frame(time(number), &frame).unwrap();
            seq += payload.len() as u32;
        }
        file.finish().unwrap();
    }
}

fn time(number: usize) -> Nanos {
    Nanos(1_700_000_000_000_000_000 + number as u64)
}

/// An Ethernet frame of one TCP segment, without checksums: whoever reads it does not check them.
fn segment(from: SocketAddrV4, to: SocketAddrV4, seq: u32, payload: &[u8]) -> Vec<u8> {
    let length = (40 + payload.len()) as u16;
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0]);
    frame.extend(length.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(from.ip().octets());
    frame.extend(to.ip().octets());
    frame.extend(from.port().to_be_bytes());
    frame.extend(to.port().to_be_bytes());
    frame.extend(seq.to_be_bytes());
    frame.extend([0, 0, 0, 1, 5 << 4, 0x18, 0x40, 0, 0, 0, 0, 0]);
    frame.extend(payload);
    frame
}
