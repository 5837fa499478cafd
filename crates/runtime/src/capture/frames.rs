//! Every frame of a capture, accounted for once: what it carried, what was around it, or why nothing was read
//! from it. IP fragments are put together here.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use super::frame::{Body, Carried, Core, Fragment, Layer, NotUdp, Wrapping, Wrappings, peel, peel_from};
use super::{LinkType, Packet};

/// Datagrams in pieces that are kept at once; with more the oldest is given up.
const DATAGRAMS_MAX: usize = 1024;
/// Bytes of pieces that are kept at once.
const PIECES_BYTES_MAX: usize = 16 << 20;
/// The longest body of an IP packet.
const BODY_BYTES_MAX: usize = 65_535;
/// Pieces of one datagram: the smallest ones a network of 68 bytes makes of the longest packet, and some.
const PIECES_MAX: usize = 2048;

/// What became of the frames that were read.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FrameCounts {
    /// All of them.
    pub frames: u64,
    /// A datagram, or the last piece of one.
    pub udp: u64,
    /// A segment of TCP.
    pub tcp: u64,
    /// Pieces that were put together to datagrams or segments, but for the last ones; copies of pieces too.
    pub fragments: u64,
    /// Pieces of which the rest never came, or that contradict each other.
    pub fragments_lost: u64,
    /// Cut off by the snap length of the capture: what is missing was on the wire.
    pub cut: u64,
    /// Shorter than their own headers say, though all of the frame was captured.
    pub short: u64,
    /// With a contradiction in a header.
    pub inconsistent: u64,
    /// In more layers than any network has, or in a form of one that is not read.
    pub wrapped: u64,
    /// Of no IP packet, by EtherType; lengths of IEEE 802.3 together under 0.
    pub ether_types: BTreeMap<u16, u64>,
    /// Of another protocol over IP, by its number.
    pub protocols: BTreeMap<u8, u64>,
    /// Of a link type that is not supported.
    pub links: BTreeMap<u32, u64>,
    /// Frames from which something was stripped, by [`Wrapping`].
    pub stripped: BTreeMap<&'static str, u64>,
    /// Records whose time has a fraction of a second or more; it was carried over to the seconds.
    pub odd_times: u64,
}

impl FrameCounts {
    /// Frames that had, or may have had, a payload that could not be read.
    pub fn lost(&self) -> u64 {
        let foreign = self
            .ether_types
            .iter()
            .filter(|(kind, _)| !is_control(**kind))
            .map(|(_, count)| count);
        let sealed = self
            .protocols
            .iter()
            .filter(|(protocol, _)| protocol_name(**protocol).is_none())
            .map(|(_, count)| count);
        self.fragments_lost
            + self.cut
            + self.short
            + self.inconsistent
            + self.wrapped
            + foreign.sum::<u64>()
            + sealed.sum::<u64>()
            + self.links.values().sum::<u64>()
    }

    /// Frames that gave no datagram of UDP.
    pub fn total(&self) -> u64 {
        self.frames - self.udp
    }

    /// Says in a sentence that frames were lost, and which; `None` where none was.
    pub fn loss(&self) -> Option<String> {
        (self.lost() > 0).then(|| {
            format!(
                "{} of {} frames could not be read: {}",
                self.lost(),
                self.frames,
                self.not_read().join(", ")
            )
        })
    }

    /// What was not read or not as it stands in the file, a phrase for each kind:
    /// `3 cut off by the snap length`.
    pub fn not_read(&self) -> Vec<String> {
        let mut said: Vec<String> = [
            (self.cut, "cut off by the snap length"),
            (self.short, "shorter than their headers say"),
            (self.inconsistent, "with a contradiction in a header"),
            (self.wrapped, "in layers that are not read"),
            (
                self.fragments_lost,
                "fragments of datagrams that did not come whole",
            ),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        for (link, count) in &self.links {
            said.push(format!("{count} of link type {link}, which is not supported"));
        }
        for (kind, count) in &self.ether_types {
            said.push(match ether_name(*kind) {
                Some(name) => format!("{count} of {name}"),
                None => format!("{count} of EtherType {kind:#06x}, which is not read"),
            });
        }
        for (protocol, count) in &self.protocols {
            said.push(match protocol_name(*protocol) {
                Some(name) => format!("{count} of {name}"),
                None => format!("{count} of IP protocol {protocol}, which is not read"),
            });
        }
        said
    }

    /// What was done to frames so that they could be read, a phrase for each kind: `12 out of GRE`.
    pub fn mended(&self) -> Vec<String> {
        let mut said: Vec<String> = self
            .stripped
            .iter()
            .map(|(name, count)| format!("{count} out of {name}"))
            .collect();
        if self.fragments > 0 {
            said.push(format!("{} fragments put together", self.fragments));
        }
        if self.odd_times > 0 {
            said.push(format!(
                "{} times with a fraction of a second or more, carried over",
                self.odd_times
            ));
        }
        said
    }

    fn skip(&mut self, reason: NotUdp, is_cut: bool) {
        match reason {
            NotUdp::NotIp(0..=1500) => *self.ether_types.entry(0).or_default() += 1,
            NotUdp::NotIp(kind) => *self.ether_types.entry(kind).or_default() += 1,
            NotUdp::Protocol(protocol) => *self.protocols.entry(protocol).or_default() += 1,
            NotUdp::Fragment => self.fragments += 1,
            NotUdp::Truncated if is_cut => self.cut += 1,
            NotUdp::Truncated => self.short += 1,
            // What a header says of bytes that were not captured is no contradiction.
            NotUdp::Inconsistent if is_cut => self.cut += 1,
            NotUdp::Inconsistent => self.inconsistent += 1,
            NotUdp::Link(link) => *self.links.entry(link.0).or_default() += 1,
            NotUdp::Wrapped => self.wrapped += 1,
        }
    }
}

/// EtherTypes of the network's own business, which never carry market data.
fn is_control(kind: u16) -> bool {
    ether_name(kind).is_some()
}

fn ether_name(kind: u16) -> Option<&'static str> {
    Some(match kind {
        0 => "IEEE 802.3 (spanning tree and the like)",
        0x0806 => "ARP",
        0x0842 => "wake on LAN",
        0x8035 => "reverse ARP",
        0x8808 => "flow control",
        0x8809 => "link aggregation",
        0x8863 => "PPPoE discovery",
        0x888e => "EAPOL",
        0x88cc => "LLDP",
        0x88f5 | 0x88f6 => "multiple registration",
        0x88f7 => "PTP",
        0x8902 => "connectivity fault management",
        0x9000 => "loopback tests",
        _ => return None,
    })
}

/// Protocols over IP of the network's own business.
fn protocol_name(protocol: u8) -> Option<&'static str> {
    Some(match protocol {
        1 => "ICMP",
        2 => "IGMP",
        46 => "RSVP",
        58 => "ICMPv6",
        59 => "IPv6 without a payload",
        88 => "EIGRP",
        89 => "OSPF",
        103 => "PIM",
        112 => "VRRP",
        _ => return None,
    })
}

/// What a frame gave.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its record.
    pub packet: Packet<'a>,
    /// What it carries, or why nothing was read from it. Of a datagram that came in pieces the last frame
    /// carries all of it.
    pub carried: Result<Carried<'a>, NotUdp>,
}

/// Takes frames apart one after the other: what is around them off, pieces together; and counts.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    counts: FrameCounts,
    fragments: Fragments,
}

impl Frames {
    /// What a frame carries. `scratch` takes a datagram that is put together here.
    ///
    /// # Errors
    /// [`NotUdp`] says why it carries nothing; it has been counted.
    pub(super) fn take<'a>(
        &mut self,
        packet: &Packet<'a>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Carried<'a>, NotUdp> {
        self.counts.frames += 1;
        self.counts.odd_times += u64::from(packet.is_time_odd);
        let is_cut = (packet.bytes.len() as u64) < u64::from(packet.original_len);
        let carried = self.read(packet.link, packet.bytes, scratch);
        match carried {
            Ok(Carried::Udp(_)) => self.counts.udp += 1,
            Ok(Carried::Tcp(_)) => self.counts.tcp += 1,
            // Told by the pieces themselves.
            Err(NotUdp::Fragment) => {}
            Err(reason) => self.counts.skip(reason, is_cut),
        }
        carried
    }

    fn read<'a>(
        &mut self,
        link: LinkType,
        bytes: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> Result<Carried<'a>, NotUdp> {
        let peeled = peel(link, bytes)?;
        self.note(peeled.wrappings);
        let piece = match peeled.core {
            Core::Whole(carried) => return Ok(carried),
            Core::Piece(piece) => piece,
        };
        if !self.fragments.add(&piece, scratch, &mut self.counts) {
            return Err(NotUdp::Fragment);
        }
        let whole = Body {
            from: piece.from,
            to: piece.to,
            protocol: piece.protocol,
            bytes: scratch,
            is_cut: false,
        };
        let peeled = peel_from(Layer::Body(whole))?;
        self.note(peeled.wrappings);
        match peeled.core {
            Core::Whole(carried) => Ok(carried),
            // A piece inside of what was in pieces: nobody's network does that twice.
            Core::Piece(_) => Err(NotUdp::Wrapped),
        }
    }

    fn note(&mut self, wrappings: Wrappings) {
        if wrappings.is_empty() {
            return;
        }
        for wrapping in Wrapping::ALL.into_iter().filter(|w| wrappings.has(*w)) {
            *self.counts.stripped.entry(wrapping.name()).or_default() += 1;
        }
    }

    /// Another file, or the same once more: a datagram that was put together before may come again whole.
    /// Pieces that wait still do.
    pub fn next_file(&mut self) {
        self.fragments.datagrams.retain(|_, datagram| !datagram.is_done);
    }

    /// The account so far; pieces that still wait for the rest count as lost.
    pub fn counts(&self) -> FrameCounts {
        let mut counts = self.counts.clone();
        counts.fragments_lost += self.fragments.waiting();
        counts
    }
}

/// Which datagram a piece is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    id: u32,
}

/// A datagram in pieces, or one that has been put together, of which the pieces' hashes are kept: a capture
/// of two mirrors has every piece twice.
#[derive(Clone, Debug)]
struct Pieces {
    /// When it began, in pieces seen.
    since: u64,
    /// Offset, length and hash of each piece, by offset.
    parts: BTreeMap<usize, (usize, u64)>,
    /// Where the last piece ends, once it is there.
    len: Option<usize>,
    /// The body so far; empty when it has been given out.
    bytes: Vec<u8>,
    is_done: bool,
}

#[derive(Clone, Debug, Default)]
struct Fragments {
    datagrams: HashMap<Key, Pieces>,
    bytes: usize,
    seen: u64,
}

impl Fragments {
    fn waiting(&self) -> u64 {
        let waiting = self.datagrams.values().filter(|d| !d.is_done);
        waiting.map(|d| d.parts.len() as u64).sum()
    }

    /// Takes a piece; whether its datagram is whole now, in `scratch`.
    fn add(&mut self, piece: &Fragment<'_>, scratch: &mut Vec<u8>, counts: &mut FrameCounts) -> bool {
        let end = piece.offset + piece.body.len();
        // A piece that is not the last one ends at a multiple of 8.
        let is_possible = !piece.body.is_empty()
            && end <= BODY_BYTES_MAX
            && (!piece.more || piece.body.len().is_multiple_of(8));
        if !is_possible {
            counts.fragments_lost += 1;
            return false;
        }
        let key = Key {
            from: piece.from,
            to: piece.to,
            protocol: piece.protocol,
            id: piece.id,
        };
        let mut hasher = DefaultHasher::new();
        piece.body.hash(&mut hasher);
        let part = (piece.body.len(), hasher.finish());
        self.seen += 1;
        if let Some(known) = self.datagrams.get(&key) {
            if known.parts.get(&piece.offset) == Some(&part) {
                // The same once more.
                counts.fragments += 1;
                return false;
            }
            // Numbers come again after 65,536 packets: a new datagram. Or pieces that contradict each other:
            // none of them holds.
            let contradicts = known
                .parts
                .iter()
                .any(|(at, (len, _))| *at < end && piece.offset < at + len)
                || known.parts.len() >= PIECES_MAX
                || known
                    .len
                    .is_some_and(|len| end > len || (!piece.more && end != len));
            if known.is_done || contradicts {
                self.drop(&key, counts);
            }
        }
        self.make_room(piece.body.len(), counts);
        let datagram = self.datagrams.entry(key).or_insert_with(|| Pieces {
            since: self.seen,
            parts: BTreeMap::new(),
            len: None,
            bytes: Vec::new(),
            is_done: false,
        });
        let before = datagram.bytes.len();
        if before < end {
            datagram.bytes.resize(end, 0);
        }
        self.bytes += datagram.bytes.len() - before;
        datagram.bytes[piece.offset..end].copy_from_slice(piece.body);
        datagram.parts.insert(piece.offset, part);
        if !piece.more {
            datagram.len = Some(end);
        }
        let covered: usize = datagram.parts.values().map(|(len, _)| len).sum();
        if datagram.len != Some(covered) || datagram.bytes.len() != covered {
            return false;
        }
        datagram.is_done = true;
        *scratch = std::mem::take(&mut datagram.bytes);
        self.bytes -= scratch.len();
        // The last one is counted as what it completes.
        counts.fragments += datagram.parts.len() as u64 - 1;
        true
    }

    /// Gives a datagram up.
    fn drop(&mut self, key: &Key, counts: &mut FrameCounts) {
        if let Some(dropped) = self.datagrams.remove(key) {
            self.bytes -= dropped.bytes.len();
            if !dropped.is_done {
                counts.fragments_lost += dropped.parts.len() as u64;
            }
        }
    }

    /// Gives the oldest ones up until there is room for one more piece.
    fn make_room(&mut self, more: usize, counts: &mut FrameCounts) {
        while self.datagrams.len() >= DATAGRAMS_MAX || self.bytes + more > PIECES_BYTES_MAX {
            let oldest = self.datagrams.iter().min_by_key(|(_, d)| (!d.is_done, d.since));
            let Some(key) = oldest.map(|(key, _)| *key) else {
                return;
            };
            self.drop(&key, counts);
        }
    }
}

impl fmt::Display for FrameCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (read, not) = (self.mended(), self.not_read());
        write!(
            f,
            "{} frames: {} of UDP, {} of TCP",
            self.frames, self.udp, self.tcp
        )?;
        for said in read.iter().chain(&not) {
            write!(f, ", {said}")?;
        }
        Ok(())
    }
}
