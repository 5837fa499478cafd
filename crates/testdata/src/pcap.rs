//! A deliberately plain pcap reader: classic pcap, Ethernet, VLAN tags, IPv4, UDP. The production reader is
//! another one.

use std::path::Path;

/// The UDP payloads of a capture in order, bounded by the UDP length (frames carry padding and trailers).
/// Other packets are skipped; fragments too.
pub fn pcap_payloads(path: &Path) -> Vec<Vec<u8>> {
    payloads(path, udp_payload)
}

/// The payloads of the TCP segments of a capture in order, bounded by the IP length; segments without payload
/// are skipped.
pub fn pcap_tcp_payloads(path: &Path) -> Vec<Vec<u8>> {
    payloads(path, tcp_payload)
}

fn payloads(path: &Path, payload: fn(&[u8]) -> Option<&[u8]>) -> Vec<Vec<u8>> {
    let bytes = crate::file_bytes(path);
    let name = path.display();
    assert!(bytes.len() >= 24, "{name}: too short for a pcap file");
    let magic: [u8; 4] = bytes[..4].try_into().unwrap();
    let u32_at = |at: usize| {
        let field: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
        match magic {
            // microsecond and nanosecond resolution
            [0xD4, 0xC3, 0xB2, 0xA1] | [0x4D, 0x3C, 0xB2, 0xA1] => u32::from_le_bytes(field),
            [0xA1, 0xB2, 0xC3, 0xD4] | [0xA1, 0xB2, 0x3C, 0x4D] => u32::from_be_bytes(field),
            _ => panic!("{name}: not a classic pcap file, magic {magic:02X?}"),
        }
    };
    assert_eq!(u32_at(20) & 0xFFFF, 1, "{name}: link type is not Ethernet");
    let mut payloads = Vec::new();
    let mut at = 24;
    while at + 16 <= bytes.len() {
        let captured = u32_at(at + 8) as usize;
        at += 16;
        assert!(at + captured <= bytes.len(), "{name}: last record is cut");
        payloads.extend(payload(&bytes[at..at + captured]).map(<[u8]>::to_vec));
        at += captured;
    }
    payloads
}

fn udp_payload(frame: &[u8]) -> Option<&[u8]> {
    let (udp, _) = ip_payload(frame, 17)?;
    udp.get(8..usize::from(u16_at(udp, 4)?))
}

fn tcp_payload(frame: &[u8]) -> Option<&[u8]> {
    let (tcp, length) = ip_payload(frame, 6)?;
    let tcp = tcp.get(..length)?;
    let header = usize::from(tcp.get(12)? >> 4) * 4;
    tcp.get(header..).filter(|payload| !payload.is_empty())
}

/// The frame from an IPv4 payload of this protocol on, and the payload's length.
fn ip_payload(frame: &[u8], protocol: u8) -> Option<(&[u8], usize)> {
    const VLAN: [u16; 2] = [0x8100, 0x88A8];
    let mut at = 12;
    while VLAN.contains(&u16_at(frame, at)?) {
        at += 4;
    }
    if u16_at(frame, at)? != 0x0800 {
        return None;
    }
    let ip = frame.get(at + 2..)?;
    let header = usize::from(ip.first()? & 0x0F) * 4;
    let is_fragment = u16_at(ip, 6)? & 0x3FFF != 0;
    if *ip.get(9)? != protocol || is_fragment {
        return None;
    }
    let length = usize::from(u16_at(ip, 2)?).checked_sub(header)?;
    Some((ip.get(header..)?, length))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
