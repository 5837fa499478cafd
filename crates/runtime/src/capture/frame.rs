//! From a captured frame to the UDP payload in it: Ethernet (with VLAN tags), Linux cooked, raw IP; IPv4 and IPv6.
//!
//! Every length is checked against the one around it, and the payload is bounded by UDP's own length: frames carry padding
//! and capture devices append trailers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::LinkType;

/// A UDP datagram found in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpPacket<'a> {
    /// The sender.
    pub source: SocketAddr,
    /// The receiver or group.
    pub destination: SocketAddr,
    /// The payload.
    pub payload: &'a [u8],
    /// The innermost VLAN, 0 to 4095, if the frame is tagged.
    pub vlan: Option<u16>,
}

/// Why a frame gives no UDP payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotUdp {
    /// Not an IP packet: the EtherType, or the length of an IEEE 802.3 frame.
    NotIp(u16),
    /// An IP packet with another protocol number (6 is TCP).
    Protocol(u8),
    /// A fragment; fragments are not put together.
    Fragment,
    /// Cut off when captured (snap length), or shorter than it says.
    Truncated,
    /// A header contradicts itself.
    Inconsistent,
    /// A kind of link that is not supported.
    Link(LinkType),
}

/// How many frames were passed over, and why.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SkipCounts {
    /// Not IP: ARP, LLDP, spanning tree.
    pub not_ip: u64,
    /// IP, but neither UDP nor a fragment.
    pub other_protocol: u64,
    /// IP fragments.
    pub fragments: u64,
    /// Cut off when captured.
    pub truncated: u64,
    /// With a contradiction in a header.
    pub inconsistent: u64,
    /// Of a link type that is not supported.
    pub unsupported_link: u64,
}

impl SkipCounts {
    /// Counts one.
    pub fn note(&mut self, reason: NotUdp) {
        let counter = match reason {
            NotUdp::NotIp(_) => &mut self.not_ip,
            NotUdp::Protocol(_) => &mut self.other_protocol,
            NotUdp::Fragment => &mut self.fragments,
            NotUdp::Truncated => &mut self.truncated,
            NotUdp::Inconsistent => &mut self.inconsistent,
            NotUdp::Link(_) => &mut self.unsupported_link,
        };
        *counter += 1;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.not_ip
            + self.other_protocol
            + self.fragments
            + self.truncated
            + self.inconsistent
            + self.unsupported_link
    }
}

const ETHER_IPV4: u16 = 0x0800;
const ETHER_IPV6: u16 = 0x86dd;
const PROTOCOL_UDP: u8 = 17;

/// The UDP datagram in a frame.
///
/// # Errors
/// [`NotUdp`] says why there is none.
#[inline]
pub fn udp(link: LinkType, frame: &[u8]) -> Result<UdpPacket<'_>, NotUdp> {
    match link {
        LinkType::ETHERNET => ethernet(frame),
        LinkType::LINUX_SLL => tagged(be16(frame, 14)?, rest(frame, 16)?, None),
        LinkType::LINUX_SLL2 => tagged(be16(frame, 0)?, rest(frame, 20)?, None),
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => ip_by_version(frame, None),
        LinkType::NULL | LinkType::LOOP => ip_by_version(rest(frame, 4)?, None),
        other => Err(NotUdp::Link(other)),
    }
}

#[inline]
fn be16(bytes: &[u8], at: usize) -> Result<u16, NotUdp> {
    match bytes.get(at..at + 2) {
        Some(word) => Ok(u16::from_be_bytes([word[0], word[1]])),
        None => Err(NotUdp::Truncated),
    }
}

#[inline]
fn rest(bytes: &[u8], from: usize) -> Result<&[u8], NotUdp> {
    bytes.get(from..).ok_or(NotUdp::Truncated)
}

/// IEEE 802.3: destination, source, EtherType.
#[inline]
fn ethernet(frame: &[u8]) -> Result<UdpPacket<'_>, NotUdp> {
    tagged(be16(frame, 12)?, rest(frame, 14)?, None)
}

/// IEEE 802.1Q and 802.1ad: up to four tags of two bytes and the next EtherType.
#[inline]
fn tagged(mut ether_type: u16, mut bytes: &[u8], mut vlan: Option<u16>) -> Result<UdpPacket<'_>, NotUdp> {
    for _ in 0..4 {
        if !matches!(ether_type, 0x8100 | 0x88a8 | 0x9100 | 0x9200) {
            break;
        }
        vlan = Some(be16(bytes, 0)? & 0x0fff);
        (ether_type, bytes) = (be16(bytes, 2)?, rest(bytes, 4)?);
    }
    match ether_type {
        ETHER_IPV4 => ipv4(bytes, vlan),
        ETHER_IPV6 => ipv6(bytes, vlan),
        other => Err(NotUdp::NotIp(other)),
    }
}

fn ip_by_version(bytes: &[u8], vlan: Option<u16>) -> Result<UdpPacket<'_>, NotUdp> {
    match bytes.first().map(|byte| byte >> 4) {
        Some(4) => ipv4(bytes, vlan),
        Some(6) => ipv6(bytes, vlan),
        Some(_) => Err(NotUdp::NotIp(0)),
        None => Err(NotUdp::Truncated),
    }
}

/// RFC 791, section 3.1.
#[inline]
fn ipv4(bytes: &[u8], vlan: Option<u16>) -> Result<UdpPacket<'_>, NotUdp> {
    let Some(header) = bytes.first_chunk::<20>() else {
        return Err(NotUdp::Truncated);
    };
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_len < 20 {
        return Err(NotUdp::Inconsistent);
    }
    // More fragments to come, or a fragment's offset; "do not fragment" and the reserved bit do not matter.
    if u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0 {
        return Err(NotUdp::Fragment);
    }
    if header[9] != PROTOCOL_UDP {
        return Err(NotUdp::Protocol(header[9]));
    }
    // 0 where the network card was to fill it in (segmentation offload): then UDP's length decides.
    let total_len = match usize::from(u16::from_be_bytes([header[2], header[3]])) {
        0 => bytes.len(),
        len if len < header_len => return Err(NotUdp::Inconsistent),
        len => len.min(bytes.len()),
    };
    let address = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(
            header[at],
            header[at + 1],
            header[at + 2],
            header[at + 3],
        ))
    };
    let body = bytes.get(header_len..total_len).ok_or(NotUdp::Truncated)?;
    udp_header(body, address(12), address(16), vlan)
}

/// RFC 8200, sections 3 and 4: the fixed header and up to eight extension headers.
fn ipv6(bytes: &[u8], vlan: Option<u16>) -> Result<UdpPacket<'_>, NotUdp> {
    let Some(header) = bytes.first_chunk::<40>() else {
        return Err(NotUdp::Truncated);
    };
    if header[0] >> 4 != 6 {
        return Err(NotUdp::Inconsistent);
    }
    let body_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let mut body = rest(bytes, 40)?;
    if body_len > 0 {
        body = &body[..body_len.min(body.len())];
    }
    let mut next = header[6];
    for _ in 0..8 {
        match next {
            0 | 43 | 60 => {
                let len = 8 + 8 * usize::from(*body.get(1).ok_or(NotUdp::Truncated)?);
                (next, body) = (body[0], rest(body, len)?);
            }
            44 => return Err(NotUdp::Fragment),
            _ => break,
        }
    }
    if next != PROTOCOL_UDP {
        return Err(NotUdp::Protocol(next));
    }
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("sixteen bytes");
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    udp_header(body, address(8), address(24), vlan)
}

/// RFC 768.
#[inline]
fn udp_header(bytes: &[u8], from: IpAddr, to: IpAddr, vlan: Option<u16>) -> Result<UdpPacket<'_>, NotUdp> {
    let Some(header) = bytes.first_chunk::<8>() else {
        return Err(NotUdp::Truncated);
    };
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let len = usize::from(word(4));
    if len < 8 {
        return Err(NotUdp::Inconsistent);
    }
    let payload = bytes.get(8..len).ok_or(NotUdp::Truncated)?;
    let (source, destination) = (SocketAddr::new(from, word(0)), SocketAddr::new(to, word(2)));
    Ok(UdpPacket {
        source,
        destination,
        payload,
        vlan,
    })
}
