//! The first reading of the recordings: which channels are in them, on which addresses, and how much each
//! carries.
//!
//! ```text
//! every frame ─► destination ─► protocol (as `decode` recognises it)
//!                    └─ stream: destination and unit or session ─► role: live, retransmission, snapshot, definitions
//!                         ├─ [`Lines`]: streams whose messages of the same number are the same bytes are lines of one channel
//!                         └─ keys: a snapshot belongs to the live stream that is about the same instruments
//! ```
//! All of it is settled when the last file has been read, so that a destination which appears late, or with
//! one packet only, has its place. What the second reading plays into is made to the measure of what was
//! counted here.

mod channels;
mod framed;
mod keys;
mod reading;
mod streams;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tickwire_console::failure::Failure;
use tickwire_feed::{Line, SessionId};
use tickwire_market::Port;
use tickwire_runtime::signal::StopFlag;
use tickwire_venues::channels::FeedFile;
use tickwire_venues::protocol::Protocol;
use tickwire_wire::fast::Plan;

use framed::{frame, instrument};
use reading::read;
use streams::Surveyor;

/// How much a channel carries, and so how much room it needs.
#[derive(Clone, Copy, Default, Debug)]
pub struct Load {
    /// Messages on its busiest live stream, with what came another way.
    pub messages: u64,
    /// The bytes of them.
    pub bytes: u64,
    /// The highest number of an instrument, where messages name them by number at a known place.
    pub highest: Option<u32>,
}

impl Load {
    fn note(&mut self, messages: u64, bytes: usize, highest: Option<u32>) {
        self.messages += messages;
        self.bytes += bytes as u64;
        self.highest = self.highest.max(highest);
    }

    fn and(self, other: Load) -> Load {
        Load {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            highest: self.highest.max(other.highest),
        }
    }
}

/// A channel that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What its packets are.
    pub protocol: Protocol,
    /// Unit of PITCH.
    pub unit: Option<u8>,
    /// Of MoldUDP64, where its addresses carry several at the same time.
    pub session: Option<[u8; 10]>,
    /// Where it is received, line A of the live port first. [`Line::Retransmit`] of the live port: what was
    /// sent again there.
    pub on: Vec<(SocketAddr, Port, Line)>,
    /// How much it carries.
    pub load: Load,
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    /// Index into the channels.
    pub channel: usize,
    /// What the packet was sent for.
    pub port: Port,
    /// The line that it came on.
    pub line: Line,
}

/// Who the packets to one destination are for.
#[derive(Debug)]
pub enum Addressee {
    /// All of one channel.
    One(At),
    /// By unit or session.
    Several(Protocol, Vec<(SessionId, At)>),
}

impl Addressee {
    /// Who a packet is for; `None` if its session or unit is nobody's, or it cannot be read.
    pub fn of(&self, payload: &[u8]) -> Option<At> {
        match self {
            Addressee::One(at) => Some(*at),
            Addressee::Several(protocol, by_session) => {
                let session = frame(*protocol, payload, &mut |_, _, _| {})?.session;
                by_session.iter().find(|(s, _)| *s == session).map(|(_, at)| *at)
            }
        }
    }
}

/// Everything that a first reading of recordings found: see the module's description, and [`of_files`].
#[derive(Debug, Default)]
pub struct Survey {
    /// The channels whose books are known here, in order of the first packet of each.
    pub channels: Vec<Found>,
    /// By destination: who its packets are for.
    pub places: HashMap<SocketAddr, Addressee>,
    /// Destinations that carry nothing but heartbeats.
    pub idle: usize,
    /// Destinations of no channel: packets, and of which protocol if that is known.
    pub left_out: Vec<(SocketAddr, u64, Option<Protocol>)>,
    /// Messages of files without packets.
    pub files: Files,
    /// What the first reading cost: streams told apart.
    pub streams: usize,
    /// Packets of which every message was visited field by field.
    pub looked_into: u64,
}

/// What files without packets hold. Files of records and lines are read once: what they can hold at most
/// follows from their sizes, and of DBN from the header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files {
    /// Messages of ITCH files, counted until they are more than books get room for.
    pub messages: u64,
    /// Records of DBN files, at most; 1 << 40 of compressed ones.
    pub records: u64,
    /// Lines of LOBSTER files, likewise.
    pub lines: u64,
    /// Records are of orders, not of levels only.
    pub has_orders: bool,
    /// Symbols of DBN files.
    pub symbols: u64,
}

/// What a first reading of configured feeds found: by feed and channel, the load and the ports that carry
/// messages.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) loads: HashMap<(usize, usize), Load>,
    pub(super) ports: HashSet<(usize, usize, Port)>,
}

/// Why a first reading did not come to its end.
pub(super) enum Stopped {
    Interrupted,
    Failed(Failure),
}

/// Reads recordings of configured feeds.
pub(super) fn of_configured(files: &[PathBuf], feeds: &FeedFile, stop: &StopFlag) -> Result<Heard, Stopped> {
    let mut heard = Heard::default();
    let mut live: HashMap<(usize, usize, bool), Load> = HashMap::new();
    read(files, stop, |destination, payload| {
        let Some(at) = feeds.find(destination) else {
            return Ok(());
        };
        let protocol = feeds.feeds[at.feed].protocol();
        let mut highest = None;
        let framed = frame(protocol, payload, &mut |_, _, message| {
            highest = highest.max(instrument(protocol, message));
        });
        if let Some(framed) = framed.filter(|framed| framed.count > 0) {
            heard.ports.insert((at.feed, at.channel, at.port));
            let is_b = at.port == Port::Live && at.line == Some(Line::B);
            let load = live.entry((at.feed, at.channel, is_b)).or_default();
            load.note(framed.count.into(), payload.len(), highest);
        }
        Ok(())
    })?;
    // Both lines carry the same: the fuller one counts.
    for ((feed, channel, _), load) in live {
        let most = heard.loads.entry((feed, channel)).or_default();
        let highest = most.highest.max(load.highest);
        if load.bytes > most.bytes {
            *most = load;
        }
        most.highest = highest;
    }
    Ok(heard)
}

/// Reads recordings (captures, files of messages, records or lines) and finds out, by content, which channels
/// are in them, on which lines and ports: what `replay` without a configuration plays, and what `inspect`
/// shows. `protocol`: all packets are of it; otherwise it is recognised. `templates`: FAST templates, without
/// which MOEX is not recognised.
///
/// ```
/// use tickwire_replay::replay::survey;
/// use tickwire_runtime::capture::{LinkType, PcapWriter};
/// use tickwire_runtime::signal::StopFlag;
///
/// let path = std::env::temp_dir().join(format!("tickwire-survey-{}.pcap", std::process::id()));
/// PcapWriter::create(&path, LinkType::ETHERNET)?.finish()?;
/// let survey = survey::of_files(&[path.clone()], None, &[], &StopFlag::install()?)?;
/// assert!(survey.channels.is_empty() && survey.left_out.is_empty());
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A file that cannot be read or is no recording, a protocol that is not clear, a signal. What is damaged
/// within a file ends the reading of that file without a word: it is said when the file is played.
pub fn of_files(
    files: &[PathBuf],
    protocol: Option<Protocol>,
    templates: &[Arc<Plan>],
    stop: &StopFlag,
) -> Result<Survey, Failure> {
    of_recognised(files, protocol, templates, stop).map_err(|stopped| match stopped {
        Stopped::Failed(failure) => failure,
        Stopped::Interrupted => {
            Failure::interrupted("nothing was found out: the recording was being looked through")
        }
    })
}

/// See [`of_files`].
pub(super) fn of_recognised(
    files: &[PathBuf],
    protocol: Option<Protocol>,
    templates: &[Arc<Plan>],
    stop: &StopFlag,
) -> Result<Survey, Stopped> {
    let failed = |message: String| Stopped::Failed(Failure::config(message));
    let mut surveyor = Surveyor::new(protocol, templates).map_err(failed)?;
    let held = read(files, stop, |destination, payload| {
        surveyor.on_packet(destination, payload).map_err(Failure::config)
    })?;
    let mut survey = surveyor.settle().map_err(failed)?;
    survey.files = held;
    Ok(survey)
}
