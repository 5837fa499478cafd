//! The market data protocols, each read packet by packet into what [`Sink`] is told.
//!
//! A payload goes into [`Reader::packet`]; its header, its messages with their fields, and what cannot be
//! read come out. Nothing here keeps state between packets: a message decodes alone, whichever line,
//! retransmission or snapshot brought it.

mod detect;
mod messages;

pub use detect::{Ambiguous, Detector, Verdict};
pub use messages::{dbn_record, ilink3_fields, lobster_line, mdp3_fields, sbe_step};

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tickwire_book::Depth;
use tickwire_market::{Port, TypeForm, Venue};
use tickwire_wire::fast::{Limits, Plan};
use tickwire_wire::{moex, xdp};

use crate::channels::BUILT_IN;
use crate::json::JsonLine;

/// What the payloads of a feed are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Nasdaq TotalView-ITCH 5.0 in MoldUDP64, or a file of its messages
    Itch50,
    /// Cboe Multicast PITCH of the equities exchanges
    Pitch,
    /// Cboe Multicast PITCH of the options exchanges
    PitchOptions,
    /// Cboe Multicast PITCH of complex options, whose prices have a sign
    PitchComplex,
    /// Cboe Multicast PITCH of the futures exchange
    PitchFutures,
    /// NYSE Integrated Feed (XDP, Pillar)
    Xdp,
    /// NYSE OpenBook Ultra
    Openbook,
    /// Consolidated Quotation System of the CTA
    Cqs,
    /// UTP Quotation Data Feed in MoldUDP64
    Uqdf,
    /// CME MDP 3.0
    Mdp3,
    /// Moscow Exchange ASTS in FAST; needs --templates
    Moex,
}

impl Protocol {
    /// Every protocol.
    pub const ALL: [Protocol; 11] = [
        Protocol::Itch50,
        Protocol::Pitch,
        Protocol::PitchOptions,
        Protocol::PitchComplex,
        Protocol::PitchFutures,
        Protocol::Xdp,
        Protocol::Openbook,
        Protocol::Cqs,
        Protocol::Uqdf,
        Protocol::Mdp3,
        Protocol::Moex,
    ];

    /// How long a channel of the venue may be silent before it sends a heartbeat, in seconds: MoldUDP64 and
    /// the Cboe's units send one every second, CME after 30, NYSE after 60; of the others none is published,
    /// or half a minute and more.
    pub const fn heartbeat_s(self) -> u32 {
        match self {
            Protocol::Itch50
            | Protocol::Uqdf
            | Protocol::Pitch
            | Protocol::PitchOptions
            | Protocol::PitchComplex
            | Protocol::PitchFutures => 1,
            Protocol::Mdp3 | Protocol::Moex => 30,
            Protocol::Xdp | Protocol::Openbook | Protocol::Cqs => 60,
        }
    }

    /// The name on the command line, in configurations and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Itch50 => "itch50",
            Protocol::Pitch => "pitch",
            Protocol::PitchOptions => "pitch-options",
            Protocol::PitchComplex => "pitch-complex",
            Protocol::PitchFutures => "pitch-futures",
            Protocol::Xdp => "xdp",
            Protocol::Openbook => "openbook",
            Protocol::Cqs => "cqs",
            Protocol::Uqdf => "uqdf",
            Protocol::Mdp3 => "mdp3",
            Protocol::Moex => "moex",
        }
    }

    /// How its message types are written.
    pub const fn type_form(self) -> TypeForm {
        match self {
            Protocol::Itch50 => TypeForm::Letter,
            Protocol::Pitch | Protocol::PitchOptions | Protocol::PitchComplex | Protocol::PitchFutures => {
                TypeForm::Hex
            }
            Protocol::Cqs | Protocol::Uqdf => TypeForm::Letters,
            Protocol::Xdp | Protocol::Openbook | Protocol::Mdp3 | Protocol::Moex => TypeForm::Decimal,
        }
    }

    /// Whether its messages belong to match events, after which alone a book is consistent.
    pub fn tells_match_events(self) -> bool {
        matches!(self, Protocol::Mdp3 | Protocol::Moex)
    }

    /// What books of it are made of: a channel's books are kept so wherever they are kept.
    pub const fn depth(self) -> Depth {
        match self {
            Protocol::Itch50
            | Protocol::Xdp
            | Protocol::Pitch
            | Protocol::PitchOptions
            | Protocol::PitchComplex
            | Protocol::PitchFutures
            | Protocol::Moex => Depth::Aggregated,
            Protocol::Openbook | Protocol::Cqs | Protocol::Uqdf | Protocol::Mdp3 => Depth::ByPrice,
        }
    }

    /// Whether it tells a venue's own orders or levels; if not, the best of all venues.
    pub const fn has_depth(self) -> bool {
        !matches!(self, Protocol::Cqs | Protocol::Uqdf)
    }

    /// What a venue speaks; the first is meant where a configuration does not say, if it is the only one.
    pub const fn of_venue(venue: Venue) -> &'static [Protocol] {
        match venue {
            Venue::Nasdaq | Venue::NasdaqTexas | Venue::Psx => &[Protocol::Itch50],
            Venue::Bzx | Venue::Byx | Venue::Edga | Venue::Edgx => &[Protocol::Pitch],
            Venue::Nyse | Venue::American => &[Protocol::Xdp, Protocol::Openbook],
            Venue::Arca | Venue::National | Venue::NyseTexas => &[Protocol::Xdp],
            Venue::Cqs => &[Protocol::Cqs],
            Venue::Uqdf => &[Protocol::Uqdf],
            Venue::Cme => &[Protocol::Mdp3],
            Venue::Moex => &[Protocol::Moex],
        }
    }

    /// The addresses that a channel may have, [`Port::Live`] first: that one it must have.
    pub const fn ports(self) -> &'static [Port] {
        use Port::{
            Definitions, Live, Replay, Requests, Retransmission, Snapshot, SnapshotByOrder, SnapshotServer,
        };
        match self {
            Protocol::Itch50 => &[Live, Requests, SnapshotServer],
            Protocol::Pitch | Protocol::PitchOptions | Protocol::PitchComplex | Protocol::PitchFutures => {
                &[Live, Retransmission, Replay, SnapshotServer]
            }
            Protocol::Xdp | Protocol::Openbook => &[Live, Retransmission, Snapshot, Replay],
            Protocol::Cqs => &[Live, Retransmission, Snapshot],
            Protocol::Uqdf => &[Live, Requests],
            Protocol::Mdp3 => &[Live, Snapshot, SnapshotByOrder, Definitions, Replay],
            Protocol::Moex => &[Live, Snapshot, Definitions, Replay],
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The type of a message as its venue writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One letter (ITCH).
    Letter(u8),
    /// One byte in hexadecimal (PITCH).
    Byte(u8),
    /// A number (XDP, OpenBook, MDP 3.0, FAST).
    Number(u32),
    /// Category and type (CTA, UTP).
    Pair([u8; 2]),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Letter(letter) => write!(f, "{}", letter.escape_ascii()),
            Kind::Byte(byte) => write!(f, "0x{byte:02X}"),
            Kind::Number(number) => write!(f, "{number}"),
            Kind::Pair(pair) => write!(f, "{}", pair.escape_ascii()),
        }
    }
}

/// Where a message stands in its feed.
#[derive(Clone, Copy, Default, Debug)]
pub struct Place<'a> {
    /// Session of MoldUDP64.
    pub session: Option<&'a [u8; 10]>,
    /// Unit of PITCH.
    pub unit: Option<u8>,
    /// The message's number, or the packet's where the protocol numbers packets.
    pub seq: Option<u64>,
}

/// A packet's header.
pub struct Header<'a> {
    /// What the specification calls it.
    pub name: &'a str,
    /// Bytes of the payload behind the packet.
    pub trailing: usize,
    /// Writes its fields.
    pub fields: &'a dyn Fn(&mut JsonLine<'_>),
}

/// A decoded message.
pub struct Message<'a> {
    /// Its type, as the venue writes it.
    pub kind: Kind,
    /// What the specification calls it.
    pub name: &'a str,
    /// Bytes of the message behind its layout.
    pub unread: usize,
    /// Writes its fields; only when it is called are they read.
    pub fields: &'a dyn Fn(&mut JsonLine<'_>),
}

/// Who is told what a packet holds.
pub trait Sink {
    /// Why it wants no more.
    type Stop;

    /// First of all; not for a packet that cannot be read.
    fn header(&mut self, header: Header<'_>) -> Result<(), Self::Stop>;

    /// The packet has no message; what that means.
    fn idle(&mut self, place: Place<'_>, name: &str) -> Result<(), Self::Stop>;

    /// Of the message that comes next: others read it whole too, and find other values in it.
    fn ambiguous(&mut self, _readings: &str) {}

    /// A message.
    fn message(&mut self, place: Place<'_>, message: Message<'_>) -> Result<(), Self::Stop>;

    /// These bytes, a packet or a message, cannot be read.
    fn malformed(
        &mut self,
        place: Place<'_>,
        error: &dyn fmt::Display,
        bytes: &[u8],
    ) -> Result<(), Self::Stop>;
}

/// Reads payloads of one protocol.
#[derive(Clone, Debug)]
pub struct Reader {
    protocol: Protocol,
    /// Of [`Protocol::Moex`]: one for each template file.
    moex: Vec<moex::Decoder>,
    /// Of PITCH: other kinds that the packets so far may be of, for the packet that comes next.
    others: Vec<Protocol>,
    xdp: XdpState,
}

/// Which release of XDP packets are of, as users say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
pub enum XdpRelease {
    /// XDP 2.1 to 2.3, of 2017 and before
    #[value(name = "2.1")]
    #[serde(rename = "2.1")]
    Xdp21,
    /// 2.5, on Pillar
    #[value(name = "2.5")]
    #[serde(rename = "2.5")]
    Pillar25,
}

impl XdpRelease {
    const fn layouts(self) -> xdp::Release {
        match self {
            XdpRelease::Xdp21 => xdp::Release::Xdp21,
            XdpRelease::Pillar25 => xdp::Release::Pillar25,
        }
    }
}

/// What earlier packets of XDP tell about later ones: the release, and the scale of each instrument's prices.
#[derive(Clone, Default, Debug)]
struct XdpState {
    told: Option<xdp::Release>,
    /// Where the packet that comes next goes; of a feed that a configuration names all are one.
    at: Option<SocketAddr>,
    channels: HashMap<Option<SocketAddr>, XdpChannel>,
}

#[derive(Clone, Default, Debug)]
struct XdpChannel {
    release: Option<xdp::Release>,
    /// Decimals of prices, by symbol index.
    scales: HashMap<u32, u8>,
}

impl XdpState {
    /// Symbol indexes of a channel that are remembered: more than any venue has.
    const SCALES_MAX: usize = 1 << 18;
    /// Destinations likewise.
    const CHANNELS_MAX: usize = 1 << 12;

    fn channel(&mut self) -> &mut XdpChannel {
        let at = self.at.take();
        if self.channels.len() >= XdpState::CHANNELS_MAX && !self.channels.contains_key(&at) {
            self.channels.clear();
        }
        self.channels.entry(at).or_default()
    }
}

impl XdpChannel {
    fn learn(&mut self, message: &[u8]) {
        if self.release.is_none() {
            self.release = xdp::release(message);
        }
        if let Ok(xdp::Message::SymbolIndexMapping(mapping)) = xdp::parse(message)
            && mapping.price_scale_code <= 18
            && self.scales.len() < XdpState::SCALES_MAX
        {
            self.scales
                .insert(mapping.symbol_index.get(), mapping.price_scale_code);
        }
    }
}

impl Reader {
    /// A reader; `templates` are for MOEX, which has none of its own.
    ///
    /// # Errors
    /// The sentence to say when a template file lacks a field that every one has, or MOEX has no template
    /// file.
    pub fn new(protocol: Protocol, templates: &[Arc<Plan>]) -> Result<Reader, String> {
        let moex = match protocol {
            Protocol::Moex if templates.is_empty() => {
                return Err(
                    "MOEX messages have their layout in the exchange's template file; name it".into(),
                );
            }
            Protocol::Moex => templates
                .iter()
                .map(|plan| moex::Decoder::new(plan.clone(), Limits::default()))
                .collect::<Result<_, _>>()
                .map_err(|e| format!("not a template file of MOEX: {e}"))?,
            _ => Vec::new(),
        };
        Ok(Reader {
            protocol,
            moex,
            others: Vec::new(),
            xdp: XdpState::default(),
        })
    }

    /// Packets of XDP are of this release, whatever they look like.
    pub fn with_xdp(mut self, release: Option<XdpRelease>) -> Reader {
        self.xdp.told = release.map(XdpRelease::layouts);
        self
    }

    /// The packet that comes next goes to this address, and may be of these protocols too.
    pub fn next_is(&mut self, destination: SocketAddr, others: &[Protocol]) -> &mut Reader {
        self.xdp.at = Some(destination);
        self.others.clear();
        self.others.extend(others.iter().filter(|p| **p != self.protocol));
        self
    }

    /// What it reads.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }
}

/// The project's own small template set, for the simulator: the file of the examples, by a link, so that the
/// published crate has it too.
const OWN_TEMPLATES: &str = include_str!("../../moex-templates.xml");

/// Reads a FAST template file; [`BUILT_IN`] stands for the project's own.
///
/// # Errors
/// The sentence to say.
pub fn templates(path: &Path) -> Result<Arc<Plan>, String> {
    let read;
    let xml = if path.as_os_str() == BUILT_IN {
        OWN_TEMPLATES
    } else {
        read = std::fs::read_to_string(path)
            .map_err(|e| format!("cannot read {}: {e}; give a FAST template file", path.display()))?;
        &read
    };
    Plan::parse(xml)
        .map(Arc::new)
        .map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_one_name_everywhere() {
        for protocol in Protocol::ALL {
            let value = protocol.to_possible_value().unwrap();
            assert_eq!(value.get_name(), protocol.name());
            assert_eq!(serde_json::to_value(protocol).unwrap(), protocol.name());
            assert_eq!(protocol.ports()[0], Port::Live);
        }
        assert_eq!(Protocol::value_variants(), Protocol::ALL);
    }

    #[test]
    fn the_projects_own_templates_are_built_in() {
        let plan = templates(Path::new(BUILT_IN)).unwrap();
        assert!(Reader::new(Protocol::Moex, &[plan]).is_ok());
        let said = templates(Path::new("/nowhere.xml")).unwrap_err();
        assert!(said.contains("cannot read /nowhere.xml"), "{said}");
        assert!(Reader::new(Protocol::Moex, &[]).unwrap_err().contains("name it"));
    }

    #[test]
    fn types_are_written_as_the_venues_write_them() {
        assert_eq!(Kind::Letter(b'A').to_string(), "A");
        assert_eq!(Kind::Byte(0x2D).to_string(), "0x2D");
        assert_eq!(Kind::Number(3610).to_string(), "3610");
        assert_eq!(Kind::Pair(*b"QF").to_string(), "QF");
    }
}
