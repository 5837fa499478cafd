//! Captures of the simulator made fit for the scripts: packets of one port, of one line, of one message each.

use std::net::Ipv4Addr;
use std::ops::Range;

/// Bytes before the packets of a capture, before each of them, and of an Ethernet header.
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const ETHERNET: usize = 14;
const UDP: usize = 8;
/// Session, number of the first message, count of messages.
const MOLD: usize = 20;

/// Keeps the packets of a capture (pcap, lowest byte first, UDP over IPv4 over Ethernet) whose destination is
/// wanted, at most `most` of them evenly spread; with `alone`, each message of MoldUDP64 becomes a packet of
/// its own.
pub(crate) fn select(
    capture: &[u8],
    alone: bool,
    most: usize,
    is_wanted: impl Fn(&str) -> bool,
) -> Option<Vec<u8>> {
    let (mut kept, mut at) = (Vec::new(), FILE_HEADER);
    while at < capture.len() {
        let length = capture.get(at + 8..at + 12)?.try_into().ok()?;
        let end = at + RECORD_HEADER + u32::from_le_bytes(length) as usize;
        let record = capture.get(at..end)?;
        if is_wanted(&destination(record)?) {
            kept.push(record);
        }
        at = end;
    }
    let step = kept.len().div_ceil(most).max(1);
    let mut out = capture.get(..FILE_HEADER)?.to_vec();
    for record in kept.into_iter().step_by(step) {
        match alone {
            true => split(record, &mut out)?,
            false => out.extend_from_slice(record),
        }
    }
    Some(out)
}

/// Where the UDP header of a record begins.
fn udp_at(record: &[u8]) -> Option<usize> {
    let ip = RECORD_HEADER + ETHERNET;
    Some(ip + 4 * usize::from(record.get(ip)? & 0x0F))
}

/// `239.1.2.3:4567`.
fn destination(record: &[u8]) -> Option<String> {
    let (ip, udp) = (RECORD_HEADER + ETHERNET, udp_at(record)?);
    let address: [u8; 4] = record.get(ip + 16..ip + 20)?.try_into().ok()?;
    let port: [u8; 2] = record.get(udp + 2..udp + 4)?.try_into().ok()?;
    Some(format!(
        "{}:{}",
        Ipv4Addr::from(address),
        u16::from_be_bytes(port)
    ))
}

/// The messages of a packet, each behind headers of its own.
fn split(record: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mold = udp_at(record)? + UDP;
    let body = mold + MOLD;
    let number = u64::from_be_bytes(record.get(mold + 10..mold + 18)?.try_into().ok()?);
    let count = u16::from_be_bytes(record.get(mold + 18..body)?.try_into().ok()?);
    if matches!(count, 0 | u16::MAX) {
        out.extend_from_slice(record);
        return Some(());
    }
    let mut at = body;
    for index in 0..u64::from(count) {
        let length = u16::from_be_bytes(record.get(at..at + 2)?.try_into().ok()?);
        let end = at + 2 + usize::from(length);
        let mut packet = record[..body].to_vec();
        packet.extend_from_slice(record.get(at..end)?);
        packet[mold + 10..mold + 18].copy_from_slice(&(number + index).to_be_bytes());
        packet[mold + 18..body].copy_from_slice(&1_u16.to_be_bytes());
        set_lengths(&mut packet, mold - UDP);
        out.extend_from_slice(&packet);
        at = end;
    }
    Some(())
}

/// Lengths of the record and of its headers; the checksum of UDP is left out, that of IP made anew.
fn set_lengths(packet: &mut [u8], udp: usize) {
    let size = packet.len();
    let frame = (size - RECORD_HEADER) as u32;
    packet[8..12].copy_from_slice(&frame.to_le_bytes());
    packet[12..16].copy_from_slice(&frame.to_le_bytes());
    let ip = RECORD_HEADER + ETHERNET;
    let mut put = |range: Range<usize>, value: u16| packet[range].copy_from_slice(&value.to_be_bytes());
    put(ip + 2..ip + 4, (size - ip) as u16);
    put(ip + 10..ip + 12, 0);
    put(udp + 4..udp + 6, (size - udp) as u16);
    put(udp + 6..udp + 8, 0);
    let words = packet[ip..udp].chunks_exact(2);
    let sum: u32 = words.map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    let checksum = !((folded & 0xFFFF) + (folded >> 16)) as u16;
    packet[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of MoldUDP64 to 239.1.1.1 with these messages.
    fn packet(port: u16, number: u64, messages: &[&[u8]]) -> Vec<u8> {
        let mut packet = vec![0; RECORD_HEADER + ETHERNET];
        packet.extend_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 1, 17, 0, 0, 127, 0, 0, 1, 239, 1, 1, 1]);
        let udp = packet.len();
        packet.extend_from_slice(&[0, 9]);
        packet.extend_from_slice(&port.to_be_bytes());
        packet.extend_from_slice(&[0; 4]);
        packet.extend_from_slice(b"SESSION001");
        packet.extend_from_slice(&number.to_be_bytes());
        packet.extend_from_slice(&(messages.len() as u16).to_be_bytes());
        for message in messages {
            packet.extend_from_slice(&(message.len() as u16).to_be_bytes());
            packet.extend_from_slice(message);
        }
        set_lengths(&mut packet, udp);
        packet
    }

    fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
        [vec![7; FILE_HEADER], packets.concat()].concat()
    }

    #[test]
    fn each_message_becomes_the_packet_that_would_have_carried_it_alone() {
        let whole = capture(&[packet(1, 5, &[b"one", b"", b"three"]), packet(1, 8, &[])]);
        let alone = capture(&[
            packet(1, 5, &[b"one"]),
            packet(1, 6, &[b""]),
            packet(1, 7, &[b"three"]),
            packet(1, 8, &[]),
        ]);
        assert_eq!(select(&whole, true, 10, |_| true), Some(alone));
    }

    #[test]
    fn packets_are_kept_by_destination_and_no_more_than_asked_for() {
        let [a, b, c] = [1, 2, 1].map(|port| packet(port, 1, &[b"x"]));
        let whole = capture(&[a.clone(), b.clone(), c.clone()]);
        let to = |port: &'static str| move |destination: &str| destination.ends_with(port);
        assert_eq!(
            select(&whole, false, 9, to("1.1:1")),
            Some(capture(&[a.clone(), c]))
        );
        assert_eq!(select(&whole, false, 9, to("1.1:2")), Some(capture(&[b])));
        assert_eq!(select(&whole, false, 1, to("1.1:1")), Some(capture(&[a])));
        assert_eq!(select(&whole[..whole.len() - 1], false, 9, |_| true), None, "cut");
    }
}
