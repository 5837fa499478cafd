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

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tickwire_feed::{
    Content, Cqs, Framing, Line, Mdp3, Moex, MoldUdp64, OpenBook, PitchUnit, SessionId, Xdp,
};
use tickwire_market::Port;
use tickwire_runtime::capture::CaptureReader;
use tickwire_runtime::itchfile::Recording;
use tickwire_runtime::recordfile::RecordFile;
use tickwire_runtime::signal::StopFlag;
use tickwire_wire::fast::Plan;
use tickwire_wire::{cqs, dbn, itch50, mdp3, moex, openbook, xdp};

use super::lines::{Lines, hash, mix};
use crate::progress::Progress;
use crate::tape::{End, Frame, Speed, Tape};
use tickwire_console::failure::Failure;
use tickwire_venues::channels::FeedFile;
use tickwire_venues::json::JsonLine;
use tickwire_venues::protocol::{Detector, Header, Kind, Message, Place, Protocol, Sink, Verdict};
use tickwire_venues::wiring::PUBLISHED;

/// Packets of a stream of which every one is looked into for instruments and roles; of later ones every
/// [`KEYS_LATER`]th.
const KEYS_UNTIL: u64 = 64;
const KEYS_LATER: u64 = 256;
/// Instruments of a stream that are remembered.
const KEYS_MAX: usize = 8192;
/// Members of messages that say which instrument, and what for.
const NAMED: [&str; 4] = ["SecurityID", "Symbol", "SymbolIndex", "MessageType"];
/// Frames between two looks at the stop flag and the clock.
const LOOK: u64 = 1024;

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
    /// Messages of ITCH files.
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

/// More than any file holds.
pub(super) const UNKNOWN: u64 = 1 << 40;
/// The shortest record that a book hears of, and the shortest line: `0,1,1,1,1,1` and its end.
const RECORD_MIN: u64 = 56;
const LINE_MIN: u64 = 12;

impl Files {
    /// Takes the header of a DBN file. Of one that does not say which records it has, all are looked at.
    fn records(&mut self, path: &Path, mut reader: RecordFile, look: Look<'_>) -> Result<(), Stopped> {
        let metadata = dbn::Metadata::parse(reader.version(), reader.metadata());
        if let Ok(metadata) = &metadata {
            let mut symbols = 0;
            // What cannot be read is said when the file is played.
            let _ = metadata.mappings(&mut |_, _| symbols += 1);
            self.symbols += symbols;
        }
        match metadata.ok().and_then(|metadata| metadata.is_by_order()) {
            Some(is_by_order) => {
                self.has_orders |= is_by_order;
                self.records += at_most(path, reader.is_plain(), RECORD_MIN);
            }
            None => {
                while let Ok(Some(record)) = reader.next_record() {
                    self.records += 1;
                    self.has_orders |= matches!(dbn::parse(record.bytes), Ok(dbn::Record::Mbo(_)));
                    look(self.records, reader.offset())?;
                }
            }
        }
        Ok(())
    }
}

/// Now and then: whether to stop, and how far it is.
type Look<'l> = &'l mut dyn FnMut(u64, u64) -> Result<(), Stopped>;

/// How many pieces of at least so many bytes a file can have.
fn at_most(path: &Path, is_plain: bool, least: u64) -> u64 {
    match std::fs::metadata(path) {
        Ok(file) if is_plain => file.len() / least + 1,
        _ => UNKNOWN,
    }
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

/// Hands every datagram of every capture to `each`; how many messages the files of messages hold. Every file
/// is opened before anything is read: one that is no recording is refused at once. What is damaged within a
/// file is said when it is played.
fn read(
    files: &[PathBuf],
    stop: &StopFlag,
    mut each: impl FnMut(SocketAddr, &[u8]) -> Result<(), Failure>,
) -> Result<Files, Stopped> {
    let refused = |e: tickwire_runtime::capture::CaptureError| match End::from(e) {
        End::Failed(failure) => Stopped::Failed(failure),
        End::Damaged(message) => Stopped::Failed(Failure::check(message)),
        End::Interrupted => Stopped::Interrupted,
    };
    for file in files {
        Recording::open(file, itch50::message_size).map_err(refused)?;
    }
    let (mut progress, mut held) = (Progress::new("looking through"), Files::default());
    for file in files {
        match Recording::open(file, itch50::message_size).map_err(refused)? {
            Recording::Packets(reader) => packets(file, reader, stop, &mut progress, &mut each)?,
            Recording::Messages(mut reader) => {
                while let Ok(Some(_)) = reader.next_message() {
                    held.messages += 1;
                    look(held.messages, file, reader.offset(), stop, &mut progress)?;
                }
            }
            Recording::Records(reader) => held.records(file, reader, &mut |n, offset| {
                look(n, file, offset, stop, &mut progress)
            })?,
            Recording::Lines(reader) => held.lines += at_most(file, reader.is_plain(), LINE_MIN),
        }
    }
    Ok(held)
}

/// Now and then: whether to stop, and how far it is.
fn look(n: u64, file: &Path, offset: u64, stop: &StopFlag, progress: &mut Progress) -> Result<(), Stopped> {
    if n.is_multiple_of(LOOK) {
        if stop.is_set() {
            return Err(Stopped::Interrupted);
        }
        progress.show(file, n, offset);
    }
    Ok(())
}

fn packets(
    file: &Path,
    mut reader: CaptureReader,
    stop: &StopFlag,
    progress: &mut Progress,
    each: &mut impl FnMut(SocketAddr, &[u8]) -> Result<(), Failure>,
) -> Result<(), Stopped> {
    let mut tape = Tape::new(Speed::Max);
    loop {
        look(tape.frames(), file, reader.offset(), stop, progress)?;
        match tape.frame(&mut reader) {
            Ok(Some(Frame { udp: Ok(udp), .. })) => {
                each(udp.destination, udp.payload).map_err(Stopped::Failed)?
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(End::Damaged(_)) => return Ok(()),
            Err(End::Interrupted) => return Err(Stopped::Interrupted),
            Err(End::Failed(failure)) => return Err(Stopped::Failed(failure)),
        }
    }
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

/// What a packet says of itself.
struct Framed {
    session: SessionId,
    /// Messages that use a number.
    count: u32,
}

/// The instrument's number in a message, where its place follows from the message's type.
fn instrument(protocol: Protocol, message: &[u8]) -> Option<u32> {
    match protocol {
        Protocol::Itch50 => itch50::stock_locate(message).map(u32::from),
        Protocol::Xdp => xdp::symbol_index(message),
        _ => None,
    }
}

/// Who is told a message of a packet: the packet's session, the message's number, and its bytes without what
/// may differ between lines.
type Each<'e> = &'e mut dyn FnMut(SessionId, u64, &[u8]);

/// Reads a packet's frame, and hands every message to `each`.
fn frame(protocol: Protocol, payload: &[u8], each: Each<'_>) -> Option<Framed> {
    fn of<F: Framing>(payload: &[u8], head: usize, each: Each<'_>) -> Option<Framed> {
        let frame = F::parse(payload).ok()?;
        let mut count = 0;
        if let Content::Messages { messages, count: all } = frame.content {
            count = all;
            for (number, message) in (frame.first.0..).zip(messages) {
                each(frame.session, number, message.get(head..).unwrap_or_default());
            }
        }
        Some(Framed {
            session: frame.session,
            count,
        })
    }
    match protocol {
        Protocol::Itch50 | Protocol::Uqdf => of::<MoldUdp64>(payload, 0, each),
        Protocol::Pitch | Protocol::PitchOptions | Protocol::PitchComplex | Protocol::PitchFutures => {
            of::<PitchUnit>(payload, 0, each)
        }
        Protocol::Xdp => of::<Xdp>(payload, 0, each),
        Protocol::Openbook => of::<OpenBook>(payload, openbook::PacketHeader::SIZE, each),
        Protocol::Cqs if payload.first() == Some(&cqs::VERSION_SNAPSHOT) => {
            let block = cqs::parse_snapshot_block(payload).ok()?;
            let first = u64::from(block.header.seq.get());
            let count = block.messages.len() as u32;
            for (number, message) in (first..).zip(block.messages) {
                each(SessionId::NONE, number, message);
            }
            Some(Framed {
                session: SessionId::NONE,
                count,
            })
        }
        Protocol::Cqs => of::<Cqs>(payload, 0, each),
        Protocol::Mdp3 => of::<Mdp3>(payload, mdp3::PacketHeader::SIZE, each),
        Protocol::Moex => of::<Moex>(payload, moex::PREAMBLE_LEN, each),
    }
}

/// What a packet's header says it was sent for, where headers say it.
fn port_of(protocol: Protocol, payload: &[u8]) -> Port {
    match protocol {
        Protocol::Xdp => {
            use xdp::DeliveryFlag as Flag;
            match xdp::parse_packet(payload).ok().and_then(|packet| packet.flag()) {
                Some(Flag::Retransmission | Flag::RetransmissionPart | Flag::Unavailable) => {
                    Port::Retransmission
                }
                Some(Flag::Refresh | Flag::RefreshStart | Flag::RefreshPart | Flag::RefreshEnd) => {
                    Port::Snapshot
                }
                _ => Port::Live,
            }
        }
        Protocol::Openbook => {
            use openbook::RetransFlag as Flag;
            match openbook::parse_packet(payload)
                .ok()
                .and_then(|packet| packet.flag())
            {
                Some(Flag::Retransmitted) => Port::Retransmission,
                Some(Flag::Refresh | Flag::LastRefresh) => Port::Snapshot,
                _ => Port::Live,
            }
        }
        Protocol::Cqs if payload.first() == Some(&cqs::VERSION_SNAPSHOT) => Port::Snapshot,
        Protocol::Cqs => {
            let flag = cqs::parse_block(payload).ok().map(|b| b.header.transmission.0);
            let is_again =
                flag.and_then(cqs::Transmission::from_wire) == Some(cqs::Transmission::Retransmitted);
            if is_again {
                Port::Retransmission
            } else {
                Port::Live
            }
        }
        _ => Port::Live,
    }
}

/// The packet of this number in its stream, from 1, is looked into for instruments.
fn is_looked_into(packet: u64) -> bool {
    packet <= KEYS_UNTIL || packet.is_multiple_of(KEYS_LATER)
}

/// What is known of one stream.
struct Stream {
    destination: usize,
    protocol: Protocol,
    session: SessionId,
    load: Load,
    packets: u64,
    /// Packets that carry messages, by what they were sent for.
    ports: [u64; Port::COUNT],
    /// Instruments, hashed.
    keys: HashSet<u64>,
}

impl Stream {
    /// What it is for. A live stream may carry definitions too, and the loop of orders carries headers of the
    /// other one.
    fn port(&self) -> Port {
        const BY_RANK: [Port; 5] = [
            Port::Live,
            Port::SnapshotByOrder,
            Port::Snapshot,
            Port::Definitions,
            Port::Retransmission,
        ];
        let has = |port: &Port| self.ports[*port as usize] > 0;
        BY_RANK.into_iter().find(has).unwrap_or(Port::Live)
    }
}

/// What is known of a destination.
struct Destination {
    address: SocketAddr,
    protocol: Option<Protocol>,
    packets: u64,
    /// There were heartbeats, which several protocols have in common.
    beats: bool,
    /// Packets that wait until the protocol is known.
    waiting: Vec<Vec<u8>>,
    /// Indices of its streams.
    streams: Vec<usize>,
    /// The stream of the last packet, and how often that changed.
    latest: usize,
    changes: u64,
}

/// See the module's description.
struct Surveyor {
    forced: Option<Protocol>,
    detector: Detector,
    by_address: HashMap<SocketAddr, usize>,
    destinations: Vec<Destination>,
    streams: Vec<Stream>,
    lines: Lines,
    keys: Keys,
    /// Packets of which every message was visited field by field.
    looked_into: u64,
}

impl Surveyor {
    fn new(forced: Option<Protocol>, templates: &[Arc<Plan>]) -> Result<Surveyor, String> {
        Ok(Surveyor {
            forced,
            detector: Detector::new(templates)?,
            by_address: HashMap::new(),
            destinations: Vec::new(),
            streams: Vec::new(),
            lines: Lines::new(),
            keys: Keys::default(),
            looked_into: 0,
        })
    }

    fn on_packet(&mut self, address: SocketAddr, payload: &[u8]) -> Result<(), String> {
        let index = *self.by_address.entry(address).or_insert_with(|| {
            self.destinations.push(Destination {
                address,
                protocol: self.forced,
                packets: 0,
                beats: false,
                waiting: Vec::new(),
                streams: Vec::new(),
                latest: 0,
                changes: 0,
            });
            self.destinations.len() - 1
        });
        let destination = &mut self.destinations[index];
        destination.packets += 1;
        if let Some(protocol) = destination.protocol {
            self.take(index, protocol, payload);
            return Ok(());
        }
        match self
            .detector
            .observe(address, payload)
            .map_err(|a| a.to_string())?
        {
            Verdict::Is(protocol) => self.is(index, protocol, Some(payload)),
            Verdict::Wait => destination.waiting.push(payload.to_vec()),
            Verdict::Idle(_) => destination.beats = true,
            Verdict::Unknown => destination.waiting.clear(),
        }
        Ok(())
    }

    /// The protocol of a destination is known now.
    fn is(&mut self, index: usize, protocol: Protocol, last: Option<&[u8]>) {
        self.destinations[index].protocol = Some(protocol);
        let waiting = std::mem::take(&mut self.destinations[index].waiting);
        for payload in waiting.iter().map(Vec::as_slice).chain(last) {
            self.take(index, protocol, payload);
        }
    }

    /// A packet of a known protocol.
    fn take(&mut self, index: usize, protocol: Protocol, payload: &[u8]) {
        let (mut of, mut highest) = (None, None);
        let framed = frame(protocol, payload, &mut |session, number, message| {
            let (stream, kind) = *of.get_or_insert_with(|| {
                let kind = mix(hash(&session.0) ^ protocol as u64);
                (self.stream(index, protocol, session), kind)
            });
            self.lines.note(stream, kind, number, message);
            if let Some(number) = instrument(protocol, message) {
                highest = highest.max(Some(number));
                let found = &mut self.streams[stream];
                if is_looked_into(found.packets + 1) && found.keys.len() < KEYS_MAX {
                    found.keys.insert(mix(number.into()));
                }
            }
        });
        let (Some(Framed { count, .. }), Some((stream, _))) = (framed, of) else {
            return;
        };
        let port = port_of(protocol, payload);
        let found = &mut self.streams[stream];
        found.packets += 1;
        found.load.note(count.into(), payload.len(), highest);
        let has_loops = matches!(protocol, Protocol::Mdp3 | Protocol::Moex);
        if !has_loops {
            found.ports[port as usize] += 1;
        }
        let is_looked_into = is_looked_into(found.packets);
        let has_snapshots = matches!(protocol, Protocol::Openbook | Protocol::Cqs);
        if has_loops || has_snapshots && is_looked_into {
            self.keys.port = None;
            self.keys.is_looked_into = is_looked_into;
            match protocol {
                // The template says what a packet is for.
                Protocol::Mdp3 if !is_looked_into => self.keys.note_templates(payload),
                _ => {
                    self.looked_into += 1;
                    _ = self.detector.reader(protocol).packet(payload, &mut self.keys);
                }
            }
            if has_loops && let Some(port) = self.keys.port {
                found.ports[port as usize] += 1;
            }
            for key in self.keys.keys.drain(..) {
                if found.keys.len() < KEYS_MAX {
                    found.keys.insert(key);
                }
            }
        }
    }

    /// The stream of a packet.
    fn stream(&mut self, index: usize, protocol: Protocol, session: SessionId) -> usize {
        let destination = &mut self.destinations[index];
        if destination.streams.is_empty() || self.streams[destination.latest].session != session {
            let known = destination.streams.iter().copied();
            let known = known.into_iter().find(|s| self.streams[*s].session == session);
            destination.latest = known.unwrap_or_else(|| {
                self.streams.push(Stream {
                    destination: index,
                    protocol,
                    session,
                    load: Load::default(),
                    packets: 0,
                    ports: [0; Port::COUNT],
                    keys: HashSet::new(),
                });
                self.lines.add();
                self.streams.len() - 1
            });
            match known {
                Some(_) => destination.changes += 1,
                None => destination.streams.push(destination.latest),
            }
        }
        destination.latest
    }

    /// Nothing comes any more.
    fn settle(mut self) -> Result<Survey, String> {
        self.detector.settle_all().map_err(|a| a.to_string())?;
        for index in 0..self.destinations.len() {
            let Some(first) = self.destinations[index].waiting.first() else {
                continue;
            };
            let address = self.destinations[index].address;
            if let Verdict::Is(protocol) = self.detector.verdict(address, first) {
                self.is(index, protocol, None);
            }
        }
        let channel_of = self.grouped();
        let mut survey = Survey {
            streams: self.streams.len(),
            looked_into: self.looked_into,
            ..Survey::default()
        };
        self.enter(&channel_of, &mut survey);
        for destination in &self.destinations {
            let is_played = destination.protocol.is_none_or(|p| PUBLISHED.contains(&p));
            let beats = destination.beats || destination.protocol.is_some() && self.forced.is_none();
            match destination.streams.is_empty() {
                true if beats && destination.waiting.is_empty() => survey.idle += 1,
                false if is_played => {}
                _ => survey
                    .left_out
                    .push((destination.address, destination.packets, destination.protocol)),
            }
        }
        survey
            .left_out
            .sort_unstable_by_key(|left| (std::cmp::Reverse(left.1), left.0));
        Ok(survey)
    }

    /// Which streams are one channel: the index of a stream that stands for it, by stream.
    fn grouped(&self) -> Vec<usize> {
        let mut of: Vec<usize> = (0..self.streams.len()).collect();
        fn root(of: &[usize], mut stream: usize) -> usize {
            while of[stream] != stream {
                stream = of[stream];
            }
            stream
        }
        let join = |of: &mut Vec<usize>, one: usize, other: usize| {
            let (one, other) = (root(of, one), root(of, other));
            of[one.max(other)] = one.min(other);
        };
        for (index, stream) in self.streams.iter().enumerate() {
            let is_live = matches!(stream.port(), Port::Live | Port::Retransmission);
            for (other, agreement) in self.lines.partners(index) {
                let theirs = self.streams[other].port();
                let is_one = if is_live {
                    matches!(theirs, Port::Live | Port::Retransmission) && agreement.is_one_channel(false)
                } else {
                    theirs == stream.port() && agreement.is_one_channel(true)
                };
                if is_one {
                    join(&mut of, index, other);
                }
            }
        }
        // Sessions of one destination that follow each other are days of one channel.
        for destination in &self.destinations {
            let sessions = &destination.streams;
            let is_mold = matches!(destination.protocol, Some(Protocol::Itch50 | Protocol::Uqdf));
            if is_mold && destination.changes <= 4 * sessions.len() as u64 {
                sessions.iter().for_each(|s| join(&mut of, sessions[0], *s));
            }
        }
        let mut of: Vec<usize> = (0..of.len()).map(|stream| root(&of, stream)).collect();
        self.split(&mut of);
        // What is sent again or in a loop belongs to the live stream that is about the same instruments.
        let live: Vec<usize> = (0..of.len())
            .filter(|s| of[*s] == *s && self.has_live(&of, *s))
            .collect();
        let others: Vec<usize> = (0..of.len())
            .filter(|s| of[*s] == *s && !live.contains(s))
            .collect();
        for other in others {
            if let Some(best) = self.nearest(&live, other) {
                of[other] = best;
            }
        }
        (0..of.len()).map(|stream| root(&of, stream)).collect()
    }

    /// A channel has two lines: more copies of the whole are more channels that say the same (nothing but a
    /// beginning of the day, or one market published twice). Lines of one channel mostly have one port
    /// number.
    fn split(&self, of: &mut [usize]) {
        let mut groups: HashMap<usize, Vec<usize>> = HashMap::new();
        for (stream, group) in of.iter().enumerate() {
            groups.entry(*group).or_default().push(stream);
        }
        for members in groups.into_values() {
            let most = members
                .iter()
                .map(|s| self.streams[*s].packets)
                .max()
                .unwrap_or(0);
            let (mut whole, part): (Vec<usize>, Vec<usize>) = members
                .into_iter()
                .partition(|s| self.streams[*s].packets * 2 >= most);
            self.part_with(of, &whole, part);
            let addresses: HashSet<SocketAddr> =
                whole.iter().map(|s| self.address(&self.streams[*s])).collect();
            if addresses.len() <= 2 || addresses.len() < whole.len() {
                continue;
            }
            whole.sort_by_key(|s| {
                let address = self.address(&self.streams[*s]);
                (address.port(), octets(address))
            });
            let port = |s: &usize| self.address(&self.streams[*s]).port();
            let all_alone = whole
                .chunk_by(|a, b| port(a) == port(b))
                .all(|of_port| of_port.len() == 1);
            let pairs: Vec<&[usize]> = match all_alone {
                true => whole.chunks(2).collect(),
                false => whole
                    .chunk_by(|a, b| port(a) == port(b))
                    .flat_map(|of_port| of_port.chunks(2))
                    .collect(),
            };
            let first = of[whole[0]];
            for (number, pair) in pairs.into_iter().enumerate() {
                // Copies that are not whole stay with the first.
                let root = if pair.contains(&first) || number == 0 && !whole.contains(&first) {
                    first
                } else {
                    pair[0]
                };
                pair.iter().for_each(|s| of[*s] = root);
            }
        }
    }

    /// Where nothing is sent again by multicast, groups that hardly began and have port numbers of their own
    /// are channels that begin with the same messages (the session's status), and no copies of the `whole`
    /// ones.
    fn part_with(&self, of: &mut [usize], whole: &[usize], mut part: Vec<usize>) {
        let port = |s: &usize| self.address(&self.streams[*s]).port();
        let ports: HashSet<u16> = whole.iter().map(port).collect();
        part.retain(|s| {
            let stream = &self.streams[*s];
            let is_sent_again = stream.protocol.ports().contains(&Port::Retransmission);
            !is_sent_again && self.address(stream).ip().is_multicast() && !ports.contains(&port(s))
        });
        let root = of[whole[0]];
        if part.contains(&root) {
            for group in of.iter_mut().filter(|group| **group == root) {
                *group = whole[0];
            }
        }
        part.sort_by_key(|s| (port(s), octets(self.address(&self.streams[*s]))));
        for pair in part
            .chunk_by(|a, b| port(a) == port(b))
            .flat_map(|of_port| of_port.chunks(2))
        {
            pair.iter().for_each(|s| of[*s] = pair[0]);
        }
    }

    fn has_live(&self, of: &[usize], group: usize) -> bool {
        self.streams
            .iter()
            .zip(of)
            .any(|(stream, of)| *of == group && stream.port() == Port::Live)
    }

    /// The live stream with most instruments of another one; among equals the one with the nearest address.
    fn nearest(&self, live: &[usize], other: usize) -> Option<usize> {
        let stream = &self.streams[other];
        let distance = |one: &Stream| {
            let (a, b) = (self.address(one), self.address(stream));
            (
                u32::from(a.port().abs_diff(b.port())),
                octets(a).abs_diff(octets(b)),
            )
        };
        live.iter()
            .copied()
            .filter(|l| self.streams[*l].protocol == stream.protocol)
            .map(|l| {
                let common = self.streams[l].keys.intersection(&stream.keys).count();
                (common, l)
            })
            .filter(|(common, _)| *common > 0)
            .max_by_key(|(common, l)| (*common, std::cmp::Reverse(distance(&self.streams[*l]))))
            .map(|(_, l)| l)
    }

    fn address(&self, stream: &Stream) -> SocketAddr {
        self.destinations[stream.destination].address
    }

    /// Gives every channel its lines, and every destination its channels.
    fn enter(&self, group_of: &[usize], survey: &mut Survey) {
        let mut groups: Vec<usize> = group_of.to_vec();
        groups.sort_unstable();
        groups.dedup();
        let mut addressees: Vec<Vec<(SessionId, At)>> = vec![Vec::new(); self.destinations.len()];
        for group in groups {
            let protocol = self.streams[group].protocol;
            if !PUBLISHED.contains(&protocol) {
                continue;
            }
            let mut members: Vec<usize> = (0..group_of.len()).filter(|s| group_of[*s] == group).collect();
            members.sort_by_key(|s| self.address(&self.streams[*s]));
            let channel = survey.channels.len();
            let mut on: Vec<(SocketAddr, Port, Line)> = Vec::new();
            let mut load = Load::default();
            let is_alone = !self.has_live(group_of, group);
            for port in [
                Port::Live,
                Port::Retransmission,
                Port::Snapshot,
                Port::SnapshotByOrder,
                Port::Definitions,
            ] {
                let of_port = members.iter().map(|s| (*s, &self.streams[*s]));
                let of_port: Vec<_> = of_port.filter(|(_, s)| s.port() == port).collect();
                let most = of_port.iter().map(|(_, s)| s.packets).max().unwrap_or(0);
                let fullest = of_port.iter().map(|(_, s)| s.load).max_by_key(|load| load.bytes);
                load = load.and(fullest.unwrap_or_default());
                load.highest = of_port
                    .iter()
                    .fold(load.highest, |most, (_, s)| most.max(s.load.highest));
                let mut lines: Vec<SocketAddr> = Vec::new();
                for (_, stream) in &of_port {
                    let address = self.address(stream);
                    let known = lines.iter().position(|a| *a == address);
                    // A copy that is not whole is what was sent again.
                    let is_whole = stream.packets * 2 >= most || known.is_some();
                    let number = known.unwrap_or_else(|| {
                        if is_whole {
                            lines.push(address);
                        }
                        lines.len() - usize::from(is_whole)
                    });
                    let (port, line) = match (port, number) {
                        (Port::Live, 0) if is_whole => (Port::Live, Line::A),
                        (Port::Live, 1) if is_whole => (Port::Live, Line::B),
                        (Port::Live, _) => (Port::Retransmission, Line::Retransmit),
                        // Sent again of what is not in the recording: it is all there is.
                        (Port::Retransmission, 0) if is_alone => (Port::Live, Line::A),
                        (Port::Retransmission, _) => (port, Line::Retransmit),
                        (_, number) => (port, if number == 0 { Line::A } else { Line::B }),
                    };
                    let port = if protocol.ports().contains(&port) {
                        port
                    } else {
                        Port::Live
                    };
                    if known.is_none() {
                        on.push((address, port, line));
                    }
                    addressees[stream.destination].push((stream.session, At { channel, port, line }));
                }
            }
            let session = self.streams[group].session;
            survey.channels.push(Found {
                protocol,
                unit: (protocol == Protocol::Pitch).then_some(session.0[0]),
                session: None,
                on,
                load,
            });
        }
        for (destination, of) in self.destinations.iter().zip(addressees) {
            let Some(protocol) = destination.protocol else {
                continue;
            };
            let addressee = match &of[..] {
                [] => continue,
                // Heartbeats of the other days too.
                [(_, at), rest @ ..] if rest.iter().all(|(_, other)| other == at) => Addressee::One(*at),
                several => {
                    let is_mold = matches!(protocol, Protocol::Itch50 | Protocol::Uqdf);
                    for (session, at) in several.iter().filter(|_| is_mold) {
                        survey.channels[at.channel].session = Some(session.0);
                    }
                    Addressee::Several(protocol, of)
                }
            };
            survey.places.insert(destination.address, addressee);
        }
    }
}

/// An address as a number.
fn octets(address: SocketAddr) -> u128 {
    match address {
        SocketAddr::V4(v4) => u128::from(v4.ip().to_bits()),
        SocketAddr::V6(v6) => v6.ip().to_bits(),
    }
}

/// The instruments of a packet and what it is for, taken from the fields that `decode` would print.
#[derive(Default)]
struct Keys {
    keys: Vec<u64>,
    port: Option<Port>,
    line: Vec<u8>,
    /// Its instruments are wanted, not only what it is for.
    is_looked_into: bool,
    /// What messages of a feed with loops are for, by template.
    by_template: HashMap<u32, Option<Port>>,
}

impl Keys {
    /// What a message of a feed with loops is for, by its name (MDP 3.0) or its FIX type (MOEX).
    fn port_of(&self, name: &str) -> Option<Port> {
        match name {
            _ if name.starts_with("SnapshotFullRefreshOrderBook") => Some(Port::SnapshotByOrder),
            _ if name.starts_with("SnapshotFullRefresh") => Some(Port::Snapshot),
            _ if name.starts_with("MDInstrumentDefinition") => Some(Port::Definitions),
            _ if name.starts_with("MDIncrementalRefresh") || name.starts_with("SecurityStatus") => {
                Some(Port::Live)
            }
            _ => match value(&self.line, b"\"MessageType\":") {
                Some(b"\"W\"") => Some(Port::Snapshot),
                Some(b"\"X\"") => Some(Port::Live),
                Some(b"\"d\"" | b"\"f\"") => Some(Port::Definitions),
                _ => None,
            },
        }
    }

    /// A live message outweighs others, the orders of a snapshot its header.
    fn note(&mut self, port: Option<Port>) {
        self.port = match (self.port, port) {
            (Some(Port::Live), _) | (Some(Port::SnapshotByOrder), Some(Port::Snapshot)) => self.port,
            (before, now) => now.or(before),
        };
    }

    fn note_templates(&mut self, packet: &[u8]) {
        if mdp3::parse_packet(packet).is_err() {
            return;
        }
        for message in mdp3::Messages::of_checked(packet) {
            let template = mdp3::template(message).unwrap_or_default().into();
            let port = *self.by_template.entry(template).or_insert_with(|| {
                let name = mdp3::Body::TEMPLATES
                    .iter()
                    .find(|t| u32::from(t.id) == template)
                    .map(|t| t.name);
                Keys::default().port_of(name.unwrap_or_default())
            });
            self.note(port);
        }
    }
}

/// The value of the first member of a name, as it is written.
fn value<'l>(line: &'l [u8], member: &[u8]) -> Option<&'l [u8]> {
    let at = line.windows(member.len()).position(|w| w == member)?;
    Some(up_to_its_end(&line[at + member.len()..]))
}

fn up_to_its_end(rest: &[u8]) -> &[u8] {
    let end = rest.iter().position(|b| matches!(b, b',' | b'}' | b']'));
    &rest[..end.unwrap_or(rest.len())]
}

impl Sink for Keys {
    type Stop = std::convert::Infallible;

    fn header(&mut self, _: Header<'_>) -> Result<(), Self::Stop> {
        Ok(())
    }

    fn idle(&mut self, _: Place<'_>, _: &str) -> Result<(), Self::Stop> {
        Ok(())
    }

    fn message(&mut self, _: Place<'_>, message: Message<'_>) -> Result<(), Self::Stop> {
        let template = match message.kind {
            Kind::Number(template) => template,
            _ => 0,
        };
        let known = self.by_template.get(&template).copied();
        if let (Some(port), false) = (known, self.is_looked_into) {
            self.note(port);
            return Ok(());
        }
        self.line.clear();
        let mut line = JsonLine::only(&mut self.line, &NAMED);
        (message.fields)(&mut line);
        line.end();
        for (at, _) in self.line.iter().enumerate().filter(|(_, b)| **b == b'"') {
            let rest = &self.line[at..];
            let named = [&b"\"SecurityID\":"[..], b"\"Symbol\":", b"\"SymbolIndex\":"];
            if let Some(value) = named.into_iter().find_map(|name| rest.strip_prefix(name)) {
                self.keys.push(hash(up_to_its_end(value)));
            }
        }
        let port = known.unwrap_or_else(|| self.port_of(message.name));
        self.by_template.insert(template, port);
        self.note(port);
        Ok(())
    }

    fn malformed(&mut self, _: Place<'_>, _: &dyn std::fmt::Display, _: &[u8]) -> Result<(), Self::Stop> {
        Ok(())
    }
}
