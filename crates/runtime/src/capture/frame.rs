//! From a captured frame to the payload of UDP or TCP in it: Ethernet, Linux cooked, raw IP; IPv4 and IPv6;
//! and what mirror ports, taps and overlays wrap around them: VLAN tags (802.1Q, 802.1ad, several of them),
//! 802.1ah, VN-tag, MPLS, PPPoE, GRE, ERSPAN of all three types, VXLAN, GENEVE, IP in IP.
//!
//! Every length is checked against the one around it, and the payload is bounded by the length of UDP or IP:
//! frames carry padding and capture devices append trailers. Nothing here keeps state; fragments are put
//! together by [`super::Frames`].

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

/// What a frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carried<'a> {
    /// A datagram.
    Udp(UdpPacket<'a>),
    /// A segment of a stream.
    Tcp(TcpSegment<'a>),
}

/// Why a frame gives no payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotUdp {
    /// Not an IP packet: the EtherType, or the length of an IEEE 802.3 frame.
    NotIp(u16),
    /// An IP packet with another protocol number (6 is TCP).
    Protocol(u8),
    /// A fragment: of [`super::Frames`] one whose datagram is not whole yet.
    Fragment,
    /// Cut off when captured (snap length), or shorter than it says.
    Truncated,
    /// A header contradicts itself.
    Inconsistent,
    /// A kind of link that is not supported.
    Link(LinkType),
    /// Wrapped in more layers than any network has, or in a form of one that is not read.
    Wrapped,
}

/// What was taken off around a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wrapping {
    /// One VLAN tag.
    Vlan,
    /// Two VLAN tags or more.
    QinQ,
    /// MPLS labels.
    Mpls,
    /// GRE, and ERSPAN in it where that is not counted by itself.
    Gre,
    /// ERSPAN, of types I to III.
    Erspan,
    /// VXLAN.
    Vxlan,
    /// GENEVE.
    Geneve,
    /// IP in IP, and Ethernet in IP.
    IpInIp,
    /// PPP over Ethernet.
    Pppoe,
    /// Backbone bridges (802.1ah) and VN-tags.
    Backbone,
}

impl Wrapping {
    /// Every kind.
    pub const ALL: [Wrapping; 10] = [
        Wrapping::Vlan,
        Wrapping::QinQ,
        Wrapping::Mpls,
        Wrapping::Gre,
        Wrapping::Erspan,
        Wrapping::Vxlan,
        Wrapping::Geneve,
        Wrapping::IpInIp,
        Wrapping::Pppoe,
        Wrapping::Backbone,
    ];

    /// As reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Wrapping::Vlan => "VLAN",
            Wrapping::QinQ => "QinQ",
            Wrapping::Mpls => "MPLS",
            Wrapping::Gre => "GRE",
            Wrapping::Erspan => "ERSPAN",
            Wrapping::Vxlan => "VXLAN",
            Wrapping::Geneve => "GENEVE",
            Wrapping::IpInIp => "IP in IP",
            Wrapping::Pppoe => "PPPoE",
            Wrapping::Backbone => "802.1ah or VN-tag",
        }
    }
}

/// A set of [`Wrapping`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Wrappings(u16);

impl Wrappings {
    fn add(&mut self, wrapping: Wrapping) {
        self.0 |= 1 << wrapping as u16;
    }

    pub(super) fn has(self, wrapping: Wrapping) -> bool {
        self.0 & 1 << wrapping as u16 != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A piece of an IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fragment<'a> {
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    pub(super) protocol: u8,
    pub(super) id: u32,
    /// Of its first byte within the packet's body.
    pub(super) offset: usize,
    /// Others follow.
    pub(super) more: bool,
    pub(super) body: &'a [u8],
}

/// What a frame holds behind everything around it.
pub(super) enum Core<'a> {
    Whole(Carried<'a>),
    Piece(Fragment<'a>),
}

/// A frame without what was around it.
pub(super) struct Peeled<'a> {
    pub(super) core: Core<'a>,
    pub(super) wrappings: Wrappings,
}

/// The body of an IP packet.
#[derive(Clone, Copy)]
pub(super) struct Body<'a> {
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    pub(super) protocol: u8,
    pub(super) bytes: &'a [u8],
    /// Some of it was not captured.
    pub(super) is_cut: bool,
}

/// What is to be taken off next.
#[derive(Clone, Copy)]
pub(super) enum Layer<'a> {
    Ethernet(&'a [u8]),
    Typed(u16, &'a [u8]),
    Ip(&'a [u8]),
    Body(Body<'a>),
}

const ETHER_IPV4: u16 = 0x0800;
const ETHER_IPV6: u16 = 0x86dd;
const ETHER_TEB: u16 = 0x6558; // Ethernet in GRE or GENEVE
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
/// Headers around headers: no network has as many.
const LAYERS_MAX: usize = 24;

/// The UDP datagram in a frame that holds a whole one.
///
/// # Errors
/// [`NotUdp`] says why there is none.
#[inline]
pub fn udp(link: LinkType, frame: &[u8]) -> Result<UdpPacket<'_>, NotUdp> {
    match peel(link, frame)?.core {
        Core::Whole(Carried::Udp(udp)) => Ok(udp),
        Core::Whole(Carried::Tcp(_)) => Err(NotUdp::Protocol(PROTOCOL_TCP)),
        Core::Piece(_) => Err(NotUdp::Fragment),
    }
}

/// The TCP segment in a frame, in the order of the capture: [`super::TcpStreams`] puts streams together.
///
/// # Errors
/// As [`udp`], of TCP.
pub fn tcp(link: LinkType, frame: &[u8]) -> Result<TcpSegment<'_>, NotUdp> {
    match peel(link, frame)?.core {
        Core::Whole(Carried::Tcp(segment)) => Ok(segment),
        Core::Whole(Carried::Udp(_)) => Err(NotUdp::Protocol(PROTOCOL_UDP)),
        Core::Piece(_) => Err(NotUdp::Fragment),
    }
}

/// Takes everything off that is around a datagram, a segment, or a piece of one.
#[inline]
pub(super) fn peel(link: LinkType, frame: &[u8]) -> Result<Peeled<'_>, NotUdp> {
    peel_from(match link {
        LinkType::ETHERNET => Layer::Ethernet(frame),
        LinkType::LINUX_SLL => Layer::Typed(be16(frame, 14)?, rest(frame, 16)?),
        LinkType::LINUX_SLL2 => Layer::Typed(be16(frame, 0)?, rest(frame, 20)?),
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => Layer::Ip(frame),
        LinkType::NULL | LinkType::LOOP => Layer::Ip(rest(frame, 4)?),
        other => return Err(NotUdp::Link(other)),
    })
}

#[inline]
pub(super) fn peel_from(mut layer: Layer<'_>) -> Result<Peeled<'_>, NotUdp> {
    let mut wrappings = Wrappings::default();
    let mut vlan = None;
    for _ in 0..LAYERS_MAX {
        layer = match layer {
            Layer::Ethernet(bytes) => Layer::Typed(be16(bytes, 12)?, rest(bytes, 14)?),
            Layer::Typed(kind @ (ETHER_IPV4 | ETHER_IPV6), bytes) => {
                let version = if kind == ETHER_IPV4 { 4 } else { 6 };
                match bytes.first().map(|byte| byte >> 4) {
                    Some(said) if said == version => Layer::Ip(bytes),
                    Some(_) if bytes.len() >= 20 => return Err(NotUdp::Inconsistent),
                    _ => return Err(NotUdp::Truncated),
                }
            }
            Layer::Typed(kind, bytes) => unwrap_typed(kind, bytes, &mut vlan, &mut wrappings)?,
            Layer::Ip(bytes) => match bytes.first().map(|byte| byte >> 4) {
                Some(4) => match ipv4(bytes)? {
                    Ok(body) => Layer::Body(body),
                    Err(piece) => {
                        return Ok(Peeled {
                            core: Core::Piece(piece),
                            wrappings,
                        });
                    }
                },
                Some(6) => match ipv6(bytes)? {
                    Ok(body) => Layer::Body(body),
                    Err(piece) => {
                        return Ok(Peeled {
                            core: Core::Piece(piece),
                            wrappings,
                        });
                    }
                },
                Some(_) => return Err(NotUdp::NotIp(0)),
                None => return Err(NotUdp::Truncated),
            },
            Layer::Body(body) => match body.protocol {
                PROTOCOL_UDP => {
                    let udp = udp_header(body, vlan)?;
                    match overlay(&udp, &mut wrappings) {
                        Some(inner) => inner,
                        None => {
                            return Ok(Peeled {
                                core: Core::Whole(Carried::Udp(udp)),
                                wrappings,
                            });
                        }
                    }
                }
                PROTOCOL_TCP => {
                    let core = Core::Whole(Carried::Tcp(tcp_header(body)?));
                    return Ok(Peeled { core, wrappings });
                }
                47 => gre(body.bytes, &mut wrappings)?,
                4 | 41 => {
                    wrappings.add(Wrapping::IpInIp);
                    Layer::Ip(body.bytes)
                }
                // RFC 3378: four bits of version, 3, and twelve of zeros.
                97 => {
                    wrappings.add(Wrapping::IpInIp);
                    Layer::Ethernet(rest(body.bytes, 2)?)
                }
                other => return Err(NotUdp::Protocol(other)),
            },
        };
    }
    Err(NotUdp::Wrapped)
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

/// What an EtherType other than those of IP announces.
fn unwrap_typed<'a>(
    kind: u16,
    bytes: &'a [u8],
    vlan: &mut Option<u16>,
    wrappings: &mut Wrappings,
) -> Result<Layer<'a>, NotUdp> {
    match kind {
        // IEEE 802.1Q and 802.1ad: two bytes of tag, the next EtherType.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
            wrappings.add(if vlan.is_some() {
                Wrapping::QinQ
            } else {
                Wrapping::Vlan
            });
            *vlan = Some(be16(bytes, 0)? & 0x0fff);
            Ok(Layer::Typed(be16(bytes, 2)?, rest(bytes, 4)?))
        }
        0x8847 | 0x8848 => mpls(bytes, wrappings),
        // RFC 2516: version and type, code 0, session, length, then PPP's protocol.
        0x8864 => {
            wrappings.add(Wrapping::Pppoe);
            match be16(bytes, 6)? {
                0x0021 | 0x0057 => Ok(Layer::Ip(rest(bytes, 8)?)),
                _ => Err(NotUdp::NotIp(kind)),
            }
        }
        // IEEE 802.1ah: four bytes of service tag, then the customer's frame.
        0x88e7 => {
            wrappings.add(Wrapping::Backbone);
            Ok(Layer::Ethernet(rest(bytes, 4)?))
        }
        // IEEE 802.1BR: six bytes, the next EtherType (0x893f); Cisco's VN-tag: four (0x8926).
        0x893f | 0x8926 => {
            let len = if kind == 0x893f { 6 } else { 4 };
            wrappings.add(Wrapping::Backbone);
            Ok(Layer::Typed(be16(bytes, len)?, rest(bytes, len + 2)?))
        }
        other => Err(NotUdp::NotIp(other)),
    }
}

/// RFC 3032: labels of four bytes, the last has bit 8 set. What follows says itself what it is: IP by its
/// version, a control word of a pseudo-wire by its first four bits of 0 (RFC 4385), then Ethernet.
fn mpls<'a>(mut bytes: &'a [u8], wrappings: &mut Wrappings) -> Result<Layer<'a>, NotUdp> {
    wrappings.add(Wrapping::Mpls);
    loop {
        let label = bytes.first_chunk::<4>().ok_or(NotUdp::Truncated)?;
        bytes = &bytes[4..];
        if label[2] & 1 != 0 {
            break;
        }
    }
    let is_ethernet = |bytes: &[u8]| be16(bytes, 12).is_ok_and(carries_ip);
    match bytes.first().ok_or(NotUdp::Truncated)? >> 4 {
        4 | 6 if !is_ethernet(bytes) || ipv4(bytes).is_ok() => Ok(Layer::Ip(bytes)),
        0 if !is_ethernet(bytes) => Ok(Layer::Ethernet(rest(bytes, 4)?)),
        _ => Ok(Layer::Ethernet(bytes)),
    }
}

/// Whether an EtherType leads to IP.
fn carries_ip(kind: u16) -> bool {
    matches!(
        kind,
        ETHER_IPV4 | ETHER_IPV6 | 0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x8847 | 0x8848
    )
}

/// RFC 2784 and 2890; what is in it by its EtherType. ERSPAN: draft-foschiano-erspan, types I (no header), II
/// (8 bytes behind a sequence number) and III (12 bytes, and 8 more where its last bit is set).
fn gre<'a>(bytes: &'a [u8], wrappings: &mut Wrappings) -> Result<Layer<'a>, NotUdp> {
    let flags = be16(bytes, 0)?;
    let kind = be16(bytes, 2)?;
    // Version 1 is PPTP; routing was never used.
    if flags & 0x0007 != 0 || flags & 0x4000 != 0 {
        return Err(NotUdp::Protocol(47));
    }
    let optional = |bit: u16| if flags & bit != 0 { 4 } else { 0 };
    let inner = rest(bytes, 4 + optional(0x8000) + optional(0x2000) + optional(0x1000))?;
    let is_numbered = flags & 0x1000 != 0;
    match kind {
        0x88be | 0x22eb => {
            wrappings.add(Wrapping::Erspan);
            let header = match kind {
                0x88be if !is_numbered => 0,
                0x88be => 8,
                _ => 12 + if be16(inner, 10)? & 1 != 0 { 8 } else { 0 },
            };
            Ok(Layer::Ethernet(rest(inner, header)?))
        }
        ETHER_TEB => {
            wrappings.add(Wrapping::Gre);
            Ok(Layer::Ethernet(inner))
        }
        other => {
            wrappings.add(Wrapping::Gre);
            Ok(Layer::Typed(other, inner))
        }
    }
}

/// VXLAN (RFC 7348) and GENEVE (RFC 8926), by their ports and only where every bit of their headers is as
/// they say and a frame with IP stands behind: any other datagram to these ports is what it is.
fn overlay<'a>(udp: &UdpPacket<'a>, wrappings: &mut Wrappings) -> Option<Layer<'a>> {
    let payload = udp.payload;
    let header = payload.first_chunk::<8>()?;
    match udp.destination.port() {
        4789 | 8472 => {
            let says_so = header[0] == 8 && header[1..4] == [0; 3] && header[7] == 0;
            let inner = &payload[8..];
            (says_so && be16(inner, 12).is_ok_and(carries_ip)).then(|| {
                wrappings.add(Wrapping::Vxlan);
                Layer::Ethernet(inner)
            })
        }
        6081 => {
            let options = usize::from(header[0] & 0x3f) * 4;
            let says_so = header[0] >> 6 == 0 && header[1] & 0x3f == 0 && header[7] == 0;
            let inner = payload.get(8 + options..)?;
            let kind = u16::from_be_bytes([header[2], header[3]]);
            let layer = match kind {
                ETHER_TEB if be16(inner, 12).is_ok_and(carries_ip) => Layer::Ethernet(inner),
                ETHER_IPV4 | ETHER_IPV6 => Layer::Ip(inner),
                _ => return None,
            };
            says_so.then(|| {
                wrappings.add(Wrapping::Geneve);
                layer
            })
        }
        _ => None,
    }
}

/// RFC 791, section 3.1: the body, or a piece of one.
#[inline]
fn ipv4(bytes: &[u8]) -> Result<Result<Body<'_>, Fragment<'_>>, NotUdp> {
    let Some(header) = bytes.first_chunk::<20>() else {
        return Err(NotUdp::Truncated);
    };
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_len < 20 {
        return Err(NotUdp::Inconsistent);
    }
    // 0 where the network card was to fill it in (segmentation offload): then UDP's length decides, or the
    // frame's.
    let total_len = match usize::from(u16::from_be_bytes([header[2], header[3]])) {
        0 => bytes.len(),
        len if len < header_len => return Err(NotUdp::Inconsistent),
        len => len,
    };
    let address = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(
            header[at],
            header[at + 1],
            header[at + 2],
            header[at + 3],
        ))
    };
    let (from, to, protocol) = (address(12), address(16), header[9]);
    let is_cut = total_len > bytes.len();
    let body = bytes
        .get(header_len..total_len.min(bytes.len()))
        .ok_or(NotUdp::Truncated)?;
    // More fragments to come, or a fragment's offset; "do not fragment" and the reserved bit do not matter.
    let place = u16::from_be_bytes([header[6], header[7]]);
    if place & 0x3fff != 0 {
        if is_cut {
            return Err(NotUdp::Truncated);
        }
        return Ok(Err(Fragment {
            from,
            to,
            protocol,
            id: u16::from_be_bytes([header[4], header[5]]).into(),
            offset: usize::from(place & 0x1fff) * 8,
            more: place & 0x2000 != 0,
            body,
        }));
    }
    Ok(Ok(Body {
        from,
        to,
        protocol,
        bytes: body,
        is_cut,
    }))
}

/// RFC 8200, sections 3 and 4: the fixed header and up to eight extension headers; the body, or a piece of
/// one.
fn ipv6(bytes: &[u8]) -> Result<Result<Body<'_>, Fragment<'_>>, NotUdp> {
    let Some(header) = bytes.first_chunk::<40>() else {
        return Err(NotUdp::Truncated);
    };
    if header[0] >> 4 != 6 {
        return Err(NotUdp::Inconsistent);
    }
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("sixteen bytes");
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    let (from, to) = (address(8), address(24));
    let body_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let mut body = rest(bytes, 40)?;
    let is_cut = body_len > body.len();
    if body_len > 0 {
        body = &body[..body_len.min(body.len())];
    }
    let mut protocol = header[6];
    for _ in 0..8 {
        match protocol {
            0 | 43 | 60 => {
                let len = 8 + 8 * usize::from(*body.get(1).ok_or(NotUdp::Truncated)?);
                (protocol, body) = (body[0], rest(body, len)?);
            }
            44 => {
                let head = body.first_chunk::<8>().ok_or(NotUdp::Truncated)?;
                let place = u16::from_be_bytes([head[2], head[3]]);
                // A packet in one piece (RFC 6946) is whole.
                if place & 0xfff9 == 0 {
                    (protocol, body) = (head[0], &body[8..]);
                    continue;
                }
                if is_cut {
                    return Err(NotUdp::Truncated);
                }
                return Ok(Err(Fragment {
                    from,
                    to,
                    protocol: head[0],
                    id: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
                    offset: usize::from(place & 0xfff8),
                    more: place & 1 != 0,
                    body: &body[8..],
                }));
            }
            _ => break,
        }
    }
    Ok(Ok(Body {
        from,
        to,
        protocol,
        bytes: body,
        is_cut,
    }))
}

/// RFC 768.
#[inline]
fn udp_header(ip: Body<'_>, vlan: Option<u16>) -> Result<UdpPacket<'_>, NotUdp> {
    let Some(header) = ip.bytes.first_chunk::<8>() else {
        return Err(NotUdp::Truncated);
    };
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let len = usize::from(word(4));
    if len < 8 {
        return Err(NotUdp::Inconsistent);
    }
    let payload = ip.bytes.get(8..len).ok_or(NotUdp::Truncated)?;
    Ok(UdpPacket {
        source: SocketAddr::new(ip.from, word(0)),
        destination: SocketAddr::new(ip.to, word(2)),
        payload,
        vlan,
    })
}

/// RFC 9293, section 3.1.
fn tcp_header(ip: Body<'_>) -> Result<TcpSegment<'_>, NotUdp> {
    let Some(header) = ip.bytes.first_chunk::<20>() else {
        return Err(NotUdp::Truncated);
    };
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let len = usize::from(header[12] >> 4) * 4;
    if len < 20 {
        return Err(NotUdp::Inconsistent);
    }
    let payload = ip.bytes.get(len..).ok_or(NotUdp::Truncated)?;
    if ip.is_cut {
        return Err(NotUdp::Truncated);
    }
    Ok(TcpSegment {
        source: SocketAddr::new(ip.from, word(0)),
        destination: SocketAddr::new(ip.to, word(2)),
        seq: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        begins: header[13] & 0x02 != 0,
        payload,
    })
}
