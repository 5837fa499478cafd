//! From a captured frame to the payload of UDP or TCP in it: Ethernet (with VLAN tags), Linux cooked, raw IP; IPv4 and IPv6.
//!
//! Every length is checked against the one around it, and the payload is bounded by the length of UDP or IP: frames carry
//! padding and capture devices append trailers.

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

/// A TCP segment found in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpSegment<'a> {
    /// The sender.
    pub source: SocketAddr,
    /// The receiver.
    pub destination: SocketAddr,
    /// Of the payload's first byte, modulo 2^32; of the connection's beginning where `begins`.
    pub seq: u32,
    /// SYN: the stream begins behind `seq`.
    pub begins: bool,
    /// The payload, empty where the segment only acknowledges.
    pub payload: &'a [u8],
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
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// An IP packet of the protocol that was asked for.
struct Ip<'a> {
    from: IpAddr,
    to: IpAddr,
    body: &'a [u8],
    vlan: Option<u16>,
}

/// The UDP datagram in a frame.
///
/// # Errors
/// [`NotUdp`] says why there is none.
#[inline]
pub fn udp(link: LinkType, frame: &[u8]) -> Result<UdpPacket<'_>, NotUdp> {
    udp_header(ip::<PROTOCOL_UDP>(link, frame)?)
}

/// The TCP segment in a frame, in the order of the capture: streams are put together by whoever asks.
///
/// # Errors
/// As [`udp`], of TCP.
pub fn tcp(link: LinkType, frame: &[u8]) -> Result<TcpSegment<'_>, NotUdp> {
    tcp_header(ip::<PROTOCOL_TCP>(link, frame)?)
}

#[inline]
fn ip<const WANTED: u8>(link: LinkType, frame: &[u8]) -> Result<Ip<'_>, NotUdp> {
    match link {
        LinkType::ETHERNET => ethernet::<WANTED>(frame),
        LinkType::LINUX_SLL => tagged::<WANTED>(be16(frame, 14)?, rest(frame, 16)?, None),
        LinkType::LINUX_SLL2 => tagged::<WANTED>(be16(frame, 0)?, rest(frame, 20)?, None),
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => {
            ip_by_version::<WANTED>(frame, None)
        }
        LinkType::NULL | LinkType::LOOP => ip_by_version::<WANTED>(rest(frame, 4)?, None),
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
fn ethernet<const WANTED: u8>(frame: &[u8]) -> Result<Ip<'_>, NotUdp> {
    tagged::<WANTED>(be16(frame, 12)?, rest(frame, 14)?, None)
}

/// IEEE 802.1Q and 802.1ad: up to four tags of two bytes and the next EtherType.
#[inline]
fn tagged<const WANTED: u8>(
    mut ether_type: u16,
    mut bytes: &[u8],
    mut vlan: Option<u16>,
) -> Result<Ip<'_>, NotUdp> {
    for _ in 0..4 {
        if !matches!(ether_type, 0x8100 | 0x88a8 | 0x9100 | 0x9200) {
            break;
        }
        vlan = Some(be16(bytes, 0)? & 0x0fff);
        (ether_type, bytes) = (be16(bytes, 2)?, rest(bytes, 4)?);
    }
    match ether_type {
        ETHER_IPV4 => ipv4::<WANTED>(bytes, vlan),
        ETHER_IPV6 => ipv6::<WANTED>(bytes, vlan),
        other => Err(NotUdp::NotIp(other)),
    }
}

fn ip_by_version<const WANTED: u8>(bytes: &[u8], vlan: Option<u16>) -> Result<Ip<'_>, NotUdp> {
    match bytes.first().map(|byte| byte >> 4) {
        Some(4) => ipv4::<WANTED>(bytes, vlan),
        Some(6) => ipv6::<WANTED>(bytes, vlan),
        Some(_) => Err(NotUdp::NotIp(0)),
        None => Err(NotUdp::Truncated),
    }
}

/// RFC 791, section 3.1.
#[inline]
fn ipv4<const WANTED: u8>(bytes: &[u8], vlan: Option<u16>) -> Result<Ip<'_>, NotUdp> {
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
    if header[9] != WANTED {
        return Err(NotUdp::Protocol(header[9]));
    }
    // 0 where the network card was to fill it in (segmentation offload): then UDP's length decides, or the frame's.
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
    Ok(Ip {
        from: address(12),
        to: address(16),
        body,
        vlan,
    })
}

/// RFC 8200, sections 3 and 4: the fixed header and up to eight extension headers.
fn ipv6<const WANTED: u8>(bytes: &[u8], vlan: Option<u16>) -> Result<Ip<'_>, NotUdp> {
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
    if next != WANTED {
        return Err(NotUdp::Protocol(next));
    }
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("sixteen bytes");
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    Ok(Ip {
        from: address(8),
        to: address(24),
        body,
        vlan,
    })
}

/// RFC 768.
#[inline]
fn udp_header(ip: Ip<'_>) -> Result<UdpPacket<'_>, NotUdp> {
    let Some(header) = ip.body.first_chunk::<8>() else {
        return Err(NotUdp::Truncated);
    };
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let len = usize::from(word(4));
    if len < 8 {
        return Err(NotUdp::Inconsistent);
    }
    let payload = ip.body.get(8..len).ok_or(NotUdp::Truncated)?;
    Ok(UdpPacket {
        source: SocketAddr::new(ip.from, word(0)),
        destination: SocketAddr::new(ip.to, word(2)),
        payload,
        vlan: ip.vlan,
    })
}

/// RFC 9293, section 3.1.
fn tcp_header(ip: Ip<'_>) -> Result<TcpSegment<'_>, NotUdp> {
    let Some(header) = ip.body.first_chunk::<20>() else {
        return Err(NotUdp::Truncated);
    };
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let len = usize::from(header[12] >> 4) * 4;
    if len < 20 {
        return Err(NotUdp::Inconsistent);
    }
    Ok(TcpSegment {
        source: SocketAddr::new(ip.from, word(0)),
        destination: SocketAddr::new(ip.to, word(2)),
        seq: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        begins: header[13] & 0x02 != 0,
        payload: ip.body.get(len..).ok_or(NotUdp::Truncated)?,
    })
}
