//! Which protocol the packets to a destination are of, told by the packets themselves.
//!
//! A protocol is a candidate if it reads a whole packet: every message, no byte behind them. Packets that no
//! protocol reads tell nothing; the others leave fewer and fewer candidates. A destination is settled when
//! one is left, and at the latest after [`PACKETS_MAX`] packets, when more than one left is an error.
//!
//! Of the four kinds of PITCH, which share most layouts, that of the equities exchanges goes first. A
//! heartbeat of MoldUDP64 or PITCH says nothing about the messages, and settles nothing.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tickwire_wire::fast::Plan;

use super::{Header, Message, Place, Protocol, Reader, Sink, XdpRelease};

/// Packets to one destination after which it is settled one way or the other.
const PACKETS_MAX: u32 = 16;

/// What is known about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is of this protocol.
    Is(Protocol),
    /// A heartbeat that several protocols have in common, to be read as this one.
    Idle(Protocol),
    /// More packets are needed.
    Wait,
    /// No protocol reads it.
    Unknown,
}

/// A destination whose packets several protocols read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ambiguous {
    destination: SocketAddr,
    candidates: Vec<Protocol>,
}

impl fmt::Display for Ambiguous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.candidates.iter().map(|p| p.name()).collect();
        write!(
            f,
            "packets to {} may be {}; say which with --protocol, or name the feeds in a file given with --config",
            self.destination,
            names.join(" or ")
        )
    }
}

/// What is known about a destination.
#[derive(Clone, Debug)]
enum State {
    Settled(Protocol),
    /// Candidates, none before the first packet that any protocol reads; packets seen.
    Open(Vec<Protocol>, u32),
    Unknown,
}

/// Tells protocols apart.
pub struct Detector {
    readers: Vec<Reader>,
    destinations: HashMap<SocketAddr, State>,
    /// What a destination may be of as well, where a kind of PITCH was preferred to others.
    others: HashMap<SocketAddr, Vec<Protocol>>,
    open: usize,
}

impl Detector {
    /// Knows every protocol, MOEX if there are templates.
    ///
    /// # Errors
    /// As [`Reader::new`].
    pub fn new(templates: &[Arc<Plan>]) -> Result<Detector, String> {
        let readers = Protocol::ALL
            .into_iter()
            .filter(|&protocol| protocol != Protocol::Moex || !templates.is_empty())
            .map(|protocol| Reader::new(protocol, templates))
            .collect::<Result<_, _>>()?;
        Ok(Detector {
            readers,
            destinations: HashMap::new(),
            others: HashMap::new(),
            open: 0,
        })
    }

    /// Packets of XDP are of this release.
    pub fn with_xdp(mut self, release: Option<XdpRelease>) -> Detector {
        let readers = std::mem::take(&mut self.readers);
        self.readers = readers.into_iter().map(|r| r.with_xdp(release)).collect();
        self
    }

    /// The reader of a protocol that it knows, for a packet to this destination.
    pub fn reader_for(&mut self, protocol: Protocol, destination: SocketAddr) -> &mut Reader {
        let others = self.others.get(&destination).map_or(&[][..], |others| others);
        let found = self.readers.iter_mut().find(|r| r.protocol() == protocol);
        let found = found.expect("verdicts name protocols that have a reader");
        found.next_is(destination, others)
    }

    /// The reader of a protocol that it knows.
    pub fn reader(&mut self, protocol: Protocol) -> &mut Reader {
        let found = self.readers.iter_mut().find(|r| r.protocol() == protocol);
        found.expect("verdicts name protocols that have a reader")
    }

    /// How many destinations need more packets.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Takes a packet into account.
    ///
    /// # Errors
    /// [`Ambiguous`] when enough packets have not settled the destination.
    pub fn observe(&mut self, destination: SocketAddr, payload: &[u8]) -> Result<Verdict, Ambiguous> {
        if let Some(State::Settled(protocol)) = self.destinations.get(&destination) {
            return Ok(Verdict::Is(*protocol));
        }
        let (matches, idle) = self.readings(payload);
        let state = self.destinations.get(&destination);
        if let (true, Some(idle)) = (matches.is_empty(), idle) {
            return Ok(Verdict::Idle(idle));
        }
        let (left, seen) = match state {
            Some(State::Open(before, seen)) => (narrowed(before, matches), seen + 1),
            Some(_) if matches.is_empty() => return Ok(Verdict::Unknown),
            _ => (matches, 1),
        };
        if !matches!(state, Some(State::Open(..))) {
            self.open += 1;
        }
        let settled = left.len() == 1;
        self.destinations.insert(destination, State::Open(left, seen));
        if settled || seen >= PACKETS_MAX {
            self.settle(destination)?;
        }
        Ok(self.verdict(destination, payload))
    }

    /// What the packets so far say about one of them.
    pub fn verdict(&mut self, destination: SocketAddr, payload: &[u8]) -> Verdict {
        match self.destinations.get(&destination) {
            Some(State::Settled(protocol)) => Verdict::Is(*protocol),
            Some(State::Open(..)) => Verdict::Wait,
            Some(State::Unknown) | None => match self.readings(payload) {
                (_, Some(idle)) => Verdict::Idle(idle),
                _ => Verdict::Unknown,
            },
        }
    }

    /// No more packets can be waited for.
    ///
    /// # Errors
    /// [`Ambiguous`] for the first destination that several protocols read.
    pub fn settle_all(&mut self) -> Result<(), Ambiguous> {
        let mut open: Vec<SocketAddr> = self
            .destinations
            .iter()
            .filter(|(_, state)| matches!(state, State::Open(..)))
            .map(|(destination, _)| *destination)
            .collect();
        open.sort_unstable();
        open.into_iter().try_for_each(|d| self.settle(d))
    }

    fn settle(&mut self, destination: SocketAddr) -> Result<(), Ambiguous> {
        let Some(state) = self.destinations.get_mut(&destination) else {
            return Ok(());
        };
        let State::Open(left, _) = state else {
            return Ok(());
        };
        let pitch = |p: &Protocol| {
            matches!(
                p,
                Protocol::Pitch | Protocol::PitchOptions | Protocol::PitchComplex | Protocol::PitchFutures
            )
        };
        let next = match left[..] {
            [] => State::Unknown,
            [one] => State::Settled(one),
            [first, ..] if left.iter().all(pitch) => {
                self.others.insert(destination, std::mem::take(left));
                State::Settled(first)
            }
            _ => {
                return Err(Ambiguous {
                    destination,
                    candidates: std::mem::take(left),
                });
            }
        };
        *state = next;
        self.open -= 1;
        Ok(())
    }

    /// The protocols that read the packet whole, in the order of [`Protocol::ALL`]; else the one whose
    /// heartbeat it is.
    fn readings(&mut self, payload: &[u8]) -> (Vec<Protocol>, Option<Protocol>) {
        let (mut whole, mut idle) = (Vec::new(), None);
        for reader in &mut self.readers {
            let mut strict = Strict::default();
            if reader.packet(payload, &mut strict).is_err() {
                continue;
            }
            let protocol = reader.protocol();
            // The sizes of XDP vary by market and release; elsewhere a longer message is one of another feed.
            if strict.unread > 0 && protocol != Protocol::Xdp {
                continue;
            }
            match (strict.messages, protocol) {
                (1.., _) => whole.push(protocol),
                // Size, count and flag or type all say so.
                (0, Protocol::Xdp | Protocol::Openbook) if strict.heartbeat => whole.push(protocol),
                (0, Protocol::Itch50 | Protocol::Pitch) => idle = Some(protocol),
                (0, _) => {}
            }
        }
        (whole, idle)
    }
}

/// The candidates that are left; a packet that leaves none says nothing.
fn narrowed(before: &[Protocol], matches: Vec<Protocol>) -> Vec<Protocol> {
    if before.is_empty() {
        return matches;
    }
    let both: Vec<Protocol> = before.iter().filter(|p| matches.contains(p)).copied().collect();
    if both.is_empty() { before.to_vec() } else { both }
}

/// Stops at anything that is not as the protocol wants it.
#[derive(Default)]
struct Strict {
    messages: u64,
    /// Bytes of messages behind their layouts.
    unread: usize,
    heartbeat: bool,
}

impl Sink for Strict {
    type Stop = ();

    fn header(&mut self, header: Header<'_>) -> Result<(), ()> {
        if header.trailing == 0 { Ok(()) } else { Err(()) }
    }

    fn idle(&mut self, _: Place<'_>, name: &str) -> Result<(), ()> {
        self.heartbeat = name == "Heartbeat";
        Ok(())
    }

    fn message(&mut self, _: Place<'_>, message: Message<'_>) -> Result<(), ()> {
        self.messages += 1;
        self.unread += message.unread;
        Ok(())
    }

    fn malformed(&mut self, _: Place<'_>, _: &dyn fmt::Display, _: &[u8]) -> Result<(), ()> {
        Err(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_market::SeqNo;
    use tickwire_wire::zerocopy::IntoBytes;
    use tickwire_wire::{itch50, moldudp64, pitch};

    fn at(port: u16) -> SocketAddr {
        ([239, 1, 1, 1], port).into()
    }

    fn itch() -> Vec<u8> {
        let mut buffer = [0; 64];
        let mut packet = moldudp64::PacketBuilder::new(&mut buffer, *b"0000000001", SeqNo(7));
        assert!(packet.push(itch50::SystemEvent::at(0, 5).as_bytes()));
        let size = packet.finish();
        buffer[..size].to_vec()
    }

    fn pitch_block(message: &[u8]) -> Vec<u8> {
        let mut buffer = [0; 64];
        let mut packet = pitch::PacketBuilder::new(&mut buffer, 1, 1);
        assert!(packet.push(message));
        let size = packet.finish();
        buffer[..size].to_vec()
    }

    #[test]
    fn a_packet_that_one_protocol_reads_settles_its_destination_alone() {
        let mut detector = Detector::new(&[]).unwrap();
        assert_eq!(
            detector.observe(at(1), &itch()),
            Ok(Verdict::Is(Protocol::Itch50))
        );
        assert_eq!(
            detector.observe(at(1), b"noise"),
            Ok(Verdict::Is(Protocol::Itch50))
        );
        assert_eq!(detector.observe(at(2), b"noise"), Ok(Verdict::Wait));
        assert_eq!(detector.open(), 1);
    }

    #[test]
    fn a_heartbeat_settles_nothing() {
        let mut detector = Detector::new(&[]).unwrap();
        let mut heartbeat = [0; 20];
        moldudp64::heartbeat(&mut heartbeat, *b"0000000001", SeqNo(7));
        assert_eq!(
            detector.observe(at(1), &heartbeat),
            Ok(Verdict::Idle(Protocol::Itch50))
        );
        assert_eq!(detector.open(), 0);
        assert_eq!(
            detector.observe(at(1), &itch()),
            Ok(Verdict::Is(Protocol::Itch50))
        );
    }

    #[test]
    fn pitch_is_of_the_equities_unless_a_message_says_otherwise() {
        let shared = pitch_block(pitch::DeleteOrder::BLANK_MESSAGE.as_bytes());
        let options = pitch_block(pitch::options::AddOrderExpanded::BLANK_MESSAGE.as_bytes());
        let mut detector = Detector::new(&[]).unwrap();
        assert_eq!(detector.observe(at(1), &shared), Ok(Verdict::Wait));
        assert_eq!(detector.observe(at(2), &shared), Ok(Verdict::Wait));
        assert_eq!(detector.open(), 2);
        let told = detector.observe(at(2), &options).unwrap();
        assert_ne!(told, Verdict::Is(Protocol::Pitch));
        detector.settle_all().unwrap();
        assert_eq!(detector.verdict(at(1), &shared), Verdict::Is(Protocol::Pitch));
        assert_eq!(
            detector.verdict(at(2), &shared),
            Verdict::Is(Protocol::PitchOptions)
        );
        assert_eq!(detector.open(), 0);
    }

    #[test]
    fn what_no_protocol_reads_is_unknown_until_one_does() {
        let mut detector = Detector::new(&[]).unwrap();
        for _ in 1..PACKETS_MAX {
            assert_eq!(detector.observe(at(1), b"noise"), Ok(Verdict::Wait));
        }
        assert_eq!(detector.observe(at(1), b"noise"), Ok(Verdict::Unknown));
        assert_eq!(detector.open(), 0);
        assert_eq!(
            detector.observe(at(1), &itch()),
            Ok(Verdict::Is(Protocol::Itch50))
        );
    }

    #[test]
    fn an_ambiguous_destination_is_an_error_that_says_what_to_do() {
        let mut detector = Detector::new(&[]).unwrap();
        let destination = at(9);
        let state = State::Open(vec![Protocol::Cqs, Protocol::Xdp], 3);
        detector.destinations.insert(destination, state);
        detector.open = 1;
        let said = detector.settle_all().unwrap_err().to_string();
        assert!(
            said.contains("239.1.1.1:9 may be cqs or xdp") && said.contains("--protocol"),
            "{said}"
        );
    }
}
