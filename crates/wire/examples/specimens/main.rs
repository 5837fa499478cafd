//! Writes captures with every message type in them, each byte different from its neighbours: what an independent decoder
//! must read like we do (`cargo xtask oracle`, docs/oracle.md).
//!
//! `cargo run -p tickwire-wire --example specimens -- DIR` writes `DIR/<name>.pcap`.

mod mdp3;
mod pattern;
mod sip;
mod venues;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use tickwire_market::Nanos;
use tickwire_runtime::capture::{LinkType, PcapWriter};

/// Datagrams of one capture.
type Packets = Vec<Vec<u8>>;

/// File name, port of the group, datagrams.
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

fn main() {
    let folder = std::env::args().nth(1).expect("usage: specimens DIR");
    for (name, port, packets) in CAPTURES {
        let path = Path::new(&folder).join(format!("{name}.pcap"));
        let mut file = PcapWriter::create(&path, LinkType::ETHERNET).unwrap();
        let source = SocketAddrV4::new(Ipv4Addr::new(10, 1, 1, 1), 40_000);
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 1, 1, 1), *port);
        for (number, payload) in packets().iter().enumerate() {
            let time = Nanos(1_700_000_000_000_000_000 + number as u64);
            file.write_udp(time, source, group, payload).unwrap();
        }
        file.finish().unwrap();
    }
}
