//! Streams of TCP inside a capture: which protocol each is of, where its messages begin and end, what they
//! say.
//!
//! A stream's protocol is told by its own bytes: what begins with a sign of its own (FIX, iLink 3, conflated
//! MDP, Cboe's BOE) at once; the others when one and only one reads a whole unit of it from the first to the
//! last byte. A stream that begins before the capture, or has a hole, is taken up at the first place where a
//! whole unit can be read; what was before is told.

use std::collections::HashMap;
use std::net::SocketAddr;

use tickwire_fix::{self as fix, Frame};
use tickwire_runtime::capture::{Step, Stream, StreamKey, TcpSegment, TcpStreams};
use tickwire_wire::{Malformed, ilink3, itch50, mdp3, openbook, ouch50, pitch, soupbintcp, xdp};

use tickwire_fixengine::names;
use tickwire_venues::json::JsonLine;
use tickwire_venues::protocol::{self, Kind, Message, Place, Protocol, Reader, Sink};

/// Bytes of a stream of no protocol known here after which it is not looked at any more.
const LOOK_BYTES: usize = 64 << 10;
/// Segments likewise.
const LOOK_SEGMENTS: u32 = 32;
/// The longest unit of any of these protocols; more bytes than that without one are no stream of it.
const UNIT_BYTES_MAX: usize = 256 << 10;
/// FIX messages longer than this are garbled.
const FIX_BYTES_MAX: usize = 64 << 10;
/// Fields of a FIX message.
const FIX_FIELDS_MAX: usize = 4096;

/// What a stream of TCP can be of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leg {
    /// FIX of every version.
    Fix,
    /// CME iLink 3.
    Ilink3,
    /// MDP 3.0, packets behind their length: TCP replay.
    MdpReplay,
    /// MDP 3.0, requests of a client of the TCP replay.
    MdpRequests,
    /// MDP 3.0, conflated, packets behind 0xCAFE.
    MdpConflated,
    /// SoupBinTCP with ITCH 5.0 (GLIMPSE) or OUCH 5.0 in it.
    Soup,
    /// Cboe's Gap Request Proxy and Spin servers.
    Pitch,
    /// NYSE's request servers of the XDP feeds.
    Xdp,
    /// NYSE's request servers of OpenBook Ultra.
    Openbook,
}

impl Leg {
    const ALL: [Leg; 9] = [
        Leg::Fix,
        Leg::Ilink3,
        Leg::MdpRequests,
        Leg::MdpConflated,
        Leg::MdpReplay,
        Leg::Soup,
        Leg::Pitch,
        Leg::Xdp,
        Leg::Openbook,
    ];

    /// As `Protocol` shows it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Leg::Fix => "fix",
            Leg::Ilink3 => "ilink3",
            Leg::MdpReplay | Leg::MdpRequests | Leg::MdpConflated => "mdp3",
            Leg::Soup => "soupbintcp",
            Leg::Pitch => "pitch",
            Leg::Xdp => "xdp",
            Leg::Openbook => "openbook",
        }
    }

    /// Those of a market data protocol.
    fn of(protocol: Protocol) -> &'static [Leg] {
        match protocol {
            Protocol::Itch50 => &[Leg::Soup],
            Protocol::Pitch | Protocol::PitchOptions | Protocol::PitchComplex | Protocol::PitchFutures => {
                &[Leg::Pitch]
            }
            Protocol::Xdp => &[Leg::Xdp],
            Protocol::Openbook => &[Leg::Openbook],
            Protocol::Mdp3 => &[Leg::MdpReplay, Leg::MdpRequests, Leg::MdpConflated],
            Protocol::Cqs | Protocol::Uqdf | Protocol::Moex => &[],
        }
    }

    /// Whether it begins with bytes that nothing else begins with.
    const fn is_signed(self) -> bool {
        matches!(
            self,
            Leg::Fix | Leg::Ilink3 | Leg::MdpRequests | Leg::MdpConflated
        )
    }
}

/// Which legs may be looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    All,
    One(Leg),
    Of(Protocol),
}

impl Wanted {
    pub(super) fn legs(self) -> impl Iterator<Item = Leg> {
        Leg::ALL.into_iter().filter(move |leg| match self {
            Wanted::All => true,
            Wanted::One(one) => *leg == one,
            Wanted::Of(protocol) => Leg::of(protocol).contains(leg),
        })
    }
}

/// What stands at the front of a stream's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Front {
    /// A unit of so many bytes, whole in its framing.
    Whole(usize),
    /// The beginning of one, as far as can be seen.
    Partial,
    /// None.
    Wrong(String),
}

impl Front {
    fn of<T>(split: Result<Option<(T, usize)>, Malformed>) -> Front {
        match split {
            Ok(Some((_, taken))) => Front::Whole(taken),
            Ok(None) => Front::Partial,
            Err(error) => Front::Wrong(error.to_string()),
        }
    }
}

/// What is known about a stream.
#[derive(Default)]
struct State {
    leg: Option<Leg>,
    /// Of no protocol known here: what it looks like, if it looks like anything.
    foreign: Option<&'static str>,
    /// Segments and bytes that told nothing.
    segments: u32,
    bytes: u64,
    /// Bytes passed over in search of a unit.
    skipped: u64,
    /// Of conflated MDP: the number of the packet that goes on.
    seq: u32,
}

/// What was not decoded, by where it went: streams are named by what they look like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Foreign {
    pub(crate) destination: SocketAddr,
    pub(crate) bytes: u64,
    pub(crate) what: Option<&'static str>,
}

/// All streams of a capture.
pub(crate) struct Conversations {
    streams: TcpStreams,
    states: HashMap<StreamKey, State>,
    fix: fix::Index,
    pub(crate) segments: u64,
}

impl Default for Conversations {
    fn default() -> Conversations {
        Conversations {
            streams: TcpStreams::default(),
            states: HashMap::new(),
            fix: fix::Index::new(FIX_FIELDS_MAX),
            segments: 0,
        }
    }
}

impl Conversations {
    /// Takes a segment; tells of what has become whole.
    pub(crate) fn add<S: Sink>(
        &mut self,
        wanted: Wanted,
        segment: &TcpSegment<'_>,
        sink: &mut dyn FnMut(&'static str) -> S,
    ) -> Result<(), S::Stop> {
        self.segments += 1;
        let key = (segment.source, segment.destination);
        let state = self.states.entry(key).or_default();
        let stream = self.streams.add(segment);
        steps(wanted, stream, state, &mut self.fix, false, sink)
    }

    /// The capture has ended: what waits is told, whole or not.
    pub(crate) fn settle<S: Sink>(
        &mut self,
        wanted: Wanted,
        sink: &mut dyn FnMut(SocketAddr, &'static str) -> S,
    ) -> Result<(), S::Stop> {
        for (key, stream) in self.streams.settle() {
            let state = self.states.entry(key).or_default();
            let sink = &mut |name| sink(key.1, name);
            steps(wanted, stream, state, &mut self.fix, true, sink)?;
            if let Some(leg) = state.leg
                && !stream.ready.is_empty()
            {
                let cut = std::mem::take(&mut stream.ready);
                sink(leg.name()).malformed(Place::default(), &"the capture ends within a message", &cut)?;
            }
        }
        Ok(())
    }

    /// What was of no protocol known here, most bytes first.
    pub(crate) fn foreign(&self) -> Vec<Foreign> {
        let mut all: Vec<Foreign> = self
            .states
            .iter()
            .filter(|(_, state)| state.leg.is_none() && state.bytes > 0)
            .map(|(key, state)| Foreign {
                destination: key.1,
                bytes: state.bytes,
                what: state.foreign,
            })
            .collect();
        all.sort_by_key(|f| (std::cmp::Reverse(f.bytes), f.destination));
        all
    }

    /// Streams forgotten, with bytes unread, because there were too many.
    pub(crate) fn forgotten(&self) -> u64 {
        self.streams.forgotten()
    }
}

fn steps<S: Sink>(
    wanted: Wanted,
    stream: &mut Stream,
    state: &mut State,
    fix: &mut fix::Index,
    at_end: bool,
    sink: &mut dyn FnMut(&'static str) -> S,
) -> Result<(), S::Stop> {
    while let Some(step) = stream.step() {
        match step {
            Step::Bytes => take(wanted, stream, state, fix, false, sink)?,
            Step::Missing(count) => {
                let half = std::mem::take(&mut stream.ready);
                if let Some(leg) = state.leg {
                    let why = format!("{count} bytes of the stream are missing behind these");
                    sink(leg.name()).malformed(Place::default(), &why, &half)?;
                }
            }
            Step::Anew => {
                let half = std::mem::take(&mut stream.ready);
                if let Some(leg) = state.leg.filter(|_| !half.is_empty()) {
                    let why = "the connection ended within a message";
                    sink(leg.name()).malformed(Place::default(), &why, &half)?;
                }
                *state = State {
                    bytes: if state.leg.is_none() { state.bytes } else { 0 },
                    ..State::default()
                };
            }
        }
    }
    if at_end {
        take(wanted, stream, state, fix, true, sink)?;
    }
    Ok(())
}

/// Reads what is whole at the front of a stream.
fn take<S: Sink>(
    wanted: Wanted,
    stream: &mut Stream,
    state: &mut State,
    fix: &mut fix::Index,
    at_end: bool,
    sink: &mut dyn FnMut(&'static str) -> S,
) -> Result<(), S::Stop> {
    if state.leg.is_none() {
        look(wanted, stream, state, fix, at_end);
    }
    let Some(leg) = state.leg else {
        return Ok(());
    };
    let mut at = 0;
    while at < stream.ready.len() {
        if stream.is_in_the_middle {
            // Until a whole unit, and nothing but one, is read.
            match read_strictly(leg, &stream.ready[at..], fix) {
                Strictly::Yes(_) => stream.is_in_the_middle = false,
                Strictly::Partial if !at_end && stream.ready.len() - at < UNIT_BYTES_MAX => break,
                _ => {
                    state.skipped += 1;
                    at += 1;
                    continue;
                }
            }
        }
        if state.skipped > 0 {
            let from = at.saturating_sub(state.skipped as usize);
            let why = format!(
                "{} bytes before the first whole message of the stream, which was joined in its middle",
                std::mem::take(&mut state.skipped)
            );
            sink(leg.name()).malformed(Place::default(), &why, &stream.ready[from..at])?;
        }
        match front(leg, &stream.ready[at..]) {
            Front::Whole(taken) => {
                let unit = &stream.ready[at..at + taken];
                tell(wanted, leg, unit, state, fix, sink)?;
                at += taken;
            }
            Front::Partial if stream.ready.len() - at <= UNIT_BYTES_MAX => break,
            wrong => {
                let why = match wrong {
                    Front::Wrong(why) => why,
                    _ => "no message is as long as this one says".to_string(),
                };
                let rest = stream.ready.split_off(at);
                stream.ready.clear();
                stream.is_in_the_middle = true;
                return sink(leg.name()).malformed(Place::default(), &why, &rest);
            }
        }
    }
    stream.ready.drain(..at);
    Ok(())
}

/// Finds out what a stream is of.
fn look(wanted: Wanted, stream: &mut Stream, state: &mut State, fix: &mut fix::Index, at_end: bool) {
    let bytes = &stream.ready[..];
    if bytes.is_empty() {
        return;
    }
    let mut readings = Vec::new();
    let mut may_become = false;
    if state.foreign.is_none() && state.segments < LOOK_SEGMENTS {
        for leg in wanted.legs() {
            match read_strictly(leg, bytes, fix) {
                Strictly::Yes(_) => readings.push(leg),
                Strictly::Partial => may_become = true,
                Strictly::No => {}
            }
        }
    }
    let signed = readings.iter().find(|leg| leg.is_signed());
    let only = match readings[..] {
        [one] if !may_become || at_end || stream.ready.len() > LOOK_BYTES => Some(one),
        _ => None,
    };
    if let Some(leg) = signed.copied().or(only) {
        state.leg = Some(leg);
        if state.bytes > 0 {
            state.skipped = 0;
        }
        return;
    }
    // Told by the user: what is not read is an error, not another protocol.
    if let Wanted::One(leg) = wanted
        && !may_become
    {
        state.leg = Some(leg);
        return;
    }
    if (may_become || readings.len() > 1) && !at_end && stream.ready.len() <= LOOK_BYTES {
        return;
    }
    // Another segment may begin with a unit.
    state.segments += 1;
    state.bytes += bytes.len() as u64;
    if state.foreign.is_none() {
        state.foreign = what_it_looks_like(bytes);
    }
    stream.ready.clear();
}

/// Protocols that are known by their first bytes and not decoded.
fn what_it_looks_like(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xBA, 0xBA, ..] => Some("Cboe BOE order entry, which is not decoded"),
        [0x16, 0x03, ..] => Some("TLS"),
        [b'S', b'S', b'H', b'-', ..] => Some("SSH"),
        _ => None,
    }
}

/// How a unit at the front reads.
enum Strictly {
    /// Whole, every message of it known and as long as its layout.
    Yes(#[allow(dead_code, reason = "for the reader of the type")] usize),
    /// Not all there; what is there fits.
    Partial,
    No,
}

/// The unit at the front in its framing.
fn front(leg: Leg, bytes: &[u8]) -> Front {
    match leg {
        Leg::Fix => match fix::frame(bytes, FIX_BYTES_MAX) {
            Frame::Whole(len) => Front::Whole(len),
            Frame::Partial => Front::Partial,
            Frame::Garbled { why, .. } => Front::Wrong(format!("not a FIX message: {why:?}")),
        },
        Leg::Ilink3 => Front::of(ilink3::split(bytes)),
        Leg::MdpReplay => Front::of(mdp3::tcp::split(bytes)),
        Leg::MdpRequests => Front::of(mdp3::tcp::Request::split(bytes)),
        Leg::MdpConflated => conflated_front(bytes),
        Leg::Soup => Front::of(soupbintcp::split(bytes)),
        Leg::Pitch => Front::of(pitch::split(bytes)),
        Leg::Xdp => Front::of(xdp::split(bytes)),
        Leg::Openbook => Front::of(openbook::split(bytes)),
    }
}

/// A header, or a message behind one: packets do not say how long they are.
fn conflated_front(bytes: &[u8]) -> Front {
    const MAGIC: [u8; 2] = mdp3::conflated::MAGIC.to_le_bytes();
    match bytes {
        [] | [_] => Front::Partial,
        [a, b, ..] if [*a, *b] == MAGIC => match bytes.len() < mdp3::conflated::Header::SIZE {
            true => Front::Partial,
            false => Front::Whole(mdp3::conflated::Header::SIZE),
        },
        [low, high, ..] => match usize::from(u16::from_le_bytes([*low, *high])) {
            size @ ..10 => Front::Wrong(format!("a message cannot have a size of {size} bytes")),
            size if size <= bytes.len() => Front::Whole(size),
            _ => Front::Partial,
        },
    }
}

/// Whether the front is a unit of this protocol and nothing else.
fn read_strictly(leg: Leg, bytes: &[u8], fix: &mut fix::Index) -> Strictly {
    let begins = |sign: &[u8]| {
        let known = bytes.len().min(sign.len());
        bytes[..known] == sign[..known]
    };
    let taken = match leg {
        Leg::Fix if !begins(b"8=FIX") => return Strictly::No,
        Leg::MdpRequests if !begins(b"9=") => return Strictly::No,
        Leg::MdpConflated if !begins(&mdp3::conflated::MAGIC.to_le_bytes()) => return Strictly::No,
        _ => match front(leg, bytes) {
            Front::Whole(taken) => taken,
            Front::Partial if fits_so_far(leg, bytes) => return Strictly::Partial,
            Front::Partial | Front::Wrong(_) => return Strictly::No,
        },
    };
    let unit = &bytes[..taken];
    let is_good = match leg {
        Leg::Fix => fix.decode(unit).is_ok(),
        // A template that is not known here is told as such.
        Leg::Ilink3 => matches!(
            ilink3::parse(&unit[ilink3::Frame::SIZE..]),
            Ok(_) | Err(Malformed::UnknownTemplate(_))
        ),
        Leg::MdpReplay => mdp3::parse_packet(&unit[2..]).is_ok_and(|packet| {
            let mut messages = packet.messages.peekable();
            messages.peek().is_some() && messages.all(|m| mdp3::parse(m).is_ok_and(|m| m.rest.is_empty()))
        }),
        Leg::MdpRequests | Leg::MdpConflated => true,
        Leg::Soup => {
            soupbintcp::split(unit).is_ok_and(|packet| packet.is_some_and(|(p, _)| soup_is_known(&p, taken)))
        }
        Leg::Pitch => pitch::packet(unit).is_ok_and(|packet| {
            let alone = packet.trailing == 0 && packet.messages.clone().all(pitch_is_known);
            alone && (packet.messages.len() > 0 || unit.len() == pitch::UnitHeader::SIZE)
        }),
        Leg::Xdp => xdp::parse_packet(unit).is_ok_and(|packet| {
            let is_flag = packet.flag().is_some();
            is_flag && packet.trailing == 0 && packet.messages.clone().all(|m| xdp::parse(m).is_ok())
        }),
        Leg::Openbook => openbook::parse_packet(unit).is_ok_and(|packet| {
            let kind = packet.kind();
            let known =
                openbook::TYPES.iter().any(|(known, ..)| *known == kind) || kind == openbook::HEARTBEAT;
            known && packet.trailing == 0 && packet.messages.clone().all(|m| openbook::parse(kind, m).is_ok())
        }),
    };
    if is_good {
        Strictly::Yes(taken)
    } else {
        Strictly::No
    }
}

/// Whether a beginning can be that of a unit: its length is one that such a unit has.
fn fits_so_far(leg: Leg, bytes: &[u8]) -> bool {
    match (leg, bytes) {
        (_, [] | [_]) => true,
        (Leg::Soup, [high, low, rest @ ..]) => {
            let length = u16::from_be_bytes([*high, *low]);
            let is_kind = rest.first().is_none_or(|kind| b"+LAJSUHRZO".contains(kind));
            is_kind && (1..=4096).contains(&length)
        }
        (Leg::MdpReplay, [low, high, rest @ ..]) => {
            let length = usize::from(u16::from_le_bytes([*low, *high]));
            // Behind 12 bytes of packet header the first message: its size within the packet, schema 1.
            let size = rest.get(12..14).is_none_or(|s| {
                (10..=length.saturating_sub(12)).contains(&usize::from(u16::from_le_bytes([s[0], s[1]])))
            });
            let schema = rest.get(18..20).is_none_or(|s| s == [1, 0]);
            (22..=2048).contains(&length) && size && schema
        }
        (Leg::Pitch, [low, high, ..]) => {
            let length = u16::from_le_bytes([*low, *high]);
            let count = bytes.get(2).copied().unwrap_or(1);
            (10..=1500).contains(&length) && usize::from(count) * 2 + 8 <= usize::from(length) && count > 0
        }
        (Leg::Xdp, [low, high, ..]) => {
            let is_flag = bytes
                .get(2)
                .is_none_or(|f| xdp::DeliveryFlag::from_wire(*f).is_some());
            (16..=1400).contains(&u16::from_le_bytes([*low, *high])) && is_flag
        }
        (Leg::Openbook, [high, low, ..]) => (14..=1400).contains(&u16::from_be_bytes([*high, *low])),
        _ => true,
    }
}

fn pitch_is_known(message: &[u8]) -> bool {
    let is_whole = |read: Result<usize, Malformed>| read.is_ok_and(|len| len == message.len());
    is_whole(pitch::parse(message).map(|m| m.as_bytes().len()))
        || is_whole(pitch::options::parse(message).map(|m| m.as_bytes().len()))
        || is_whole(pitch::futures::parse(message).map(|m| m.as_bytes().len()))
        || pitch::complex::parse(message)
            .is_ok_and(|m| m.kind() == pitch::complex::ComplexInstrumentDefinition::KIND)
}

fn soup_is_known(packet: &soupbintcp::Packet<'_>, taken: usize) -> bool {
    use soupbintcp::{LoginAccepted, LoginRejected, LoginRequest, Packet};
    match packet {
        Packet::LoginRequest(_) => taken == LoginRequest::SIZE,
        Packet::LoginAccepted(_) => taken == LoginAccepted::SIZE,
        Packet::LoginRejected(_) => taken == LoginRejected::SIZE,
        Packet::Sequenced(message) => itch_is_whole(message) || ouch50::parse_outbound(message).is_ok(),
        Packet::Unsequenced(message) => ouch50::parse_inbound(message).is_ok(),
        Packet::ServerHeartbeat | Packet::ClientHeartbeat | Packet::EndOfSession | Packet::LogoutRequest => {
            taken == soupbintcp::HEADER_SIZE
        }
        Packet::Debug(text) => text.iter().all(|b| b.is_ascii_graphic() || *b == b' '),
        Packet::Unknown(_) => false,
    }
}

fn itch_is_whole(message: &[u8]) -> bool {
    itch50::parse(message).is_ok_and(|m| m.as_bytes().len() == message.len())
}

/// Tells of a unit whose framing is whole.
fn tell<S: Sink>(
    wanted: Wanted,
    leg: Leg,
    unit: &[u8],
    state: &mut State,
    fix: &mut fix::Index,
    sink: &mut dyn FnMut(&'static str) -> S,
) -> Result<(), S::Stop> {
    let protocol = match leg {
        Leg::Fix => return tell_fix(unit, fix, &mut sink(leg.name())),
        Leg::Ilink3 => return tell_ilink3(unit, &mut sink(leg.name())),
        Leg::MdpRequests => return tell_request(unit, &mut sink(leg.name())),
        Leg::MdpConflated => return tell_conflated(unit, state, &mut sink(leg.name())),
        Leg::Soup => return tell_soup(unit, sink),
        Leg::MdpReplay => Protocol::Mdp3,
        Leg::Pitch => pitch_family(wanted, unit),
        Leg::Xdp => Protocol::Xdp,
        Leg::Openbook => Protocol::Openbook,
    };
    let packet = if leg == Leg::MdpReplay { &unit[2..] } else { unit };
    let name = protocol.name();
    match Reader::new(protocol, &[]) {
        Ok(mut reader) => reader.packet(packet, &mut sink(name)),
        Err(why) => sink(name).malformed(Place::default(), &why, packet),
    }
}

/// Which kind of PITCH a block is of: the one that was told where it reads it whole, else the first that
/// does. The messages of the servers themselves are those of equities everywhere.
fn pitch_family(wanted: Wanted, unit: &[u8]) -> Protocol {
    let told = match wanted {
        Wanted::Of(protocol) => Some(protocol),
        _ => None,
    };
    let families = [
        Protocol::Pitch,
        Protocol::PitchOptions,
        Protocol::PitchComplex,
        Protocol::PitchFutures,
    ];
    let reads = |family: &Protocol| {
        pitch::packet(unit).is_ok_and(|packet| {
            packet.messages.clone().all(|message| {
                let len = match family {
                    Protocol::PitchOptions => pitch::options::parse(message).map(|m| m.as_bytes().len()),
                    Protocol::PitchComplex => pitch::complex::parse(message).map(|m| m.as_bytes().len()),
                    Protocol::PitchFutures => pitch::futures::parse(message).map(|m| m.as_bytes().len()),
                    _ => pitch::parse(message).map(|m| m.as_bytes().len()),
                };
                len.is_ok_and(|len| len == message.len())
            })
        })
    };
    told.into_iter()
        .chain(families)
        .find(reads)
        .unwrap_or(Protocol::Pitch)
}

fn tell_fix<S: Sink>(unit: &[u8], index: &mut fix::Index, sink: &mut S) -> Result<(), S::Stop> {
    let message = match index.decode(unit) {
        Ok(message) => message,
        Err(why) => {
            return sink.malformed(
                Place::default(),
                &format!("not a whole FIX message: {why:?}"),
                unit,
            );
        }
    };
    let msg_type = message.msg_type();
    let kind = match msg_type {
        [one] => Kind::Letter(*one),
        [one, two, ..] => Kind::Pair([*one, *two]),
        [] => Kind::Letter(b' '),
    };
    let shown = msg_type.escape_ascii().to_string();
    let seq = message.find(34).and_then(|field| message.unsigned(field).ok());
    let place = Place {
        seq,
        ..Place::default()
    };
    sink.message(
        place,
        Message {
            kind,
            name: names::message(msg_type).unwrap_or(&shown),
            unread: 0,
            fields: &|line: &mut JsonLine<'_>| {
                let fields = message.fields();
                for (at, field) in fields.iter().enumerate() {
                    line.enter("Fields", at, fields.len());
                    line.number("Tag", field.tag.into());
                    if let Some(name) = names::tag(field.tag) {
                        line.text("Name", name);
                    }
                    line.text("Value", &message.value(*field).escape_ascii().to_string());
                    line.leave();
                }
            },
        },
    )
}

fn tell_ilink3<S: Sink>(unit: &[u8], sink: &mut S) -> Result<(), S::Stop> {
    let message = &unit[ilink3::Frame::SIZE..];
    match ilink3::parse(message) {
        Ok(read) => sink.message(
            Place::default(),
            Message {
                kind: Kind::Number(read.header.template_id.get().into()),
                name: read.name(),
                unread: read.rest.len(),
                fields: &|line| {
                    line.number("MessageLength", unit.len() as u64);
                    line.number("EncodingType", ilink3::ENCODING.into());
                    protocol::ilink3_fields(&read, line);
                },
            },
        ),
        Err(error) => sink.malformed(Place::default(), &error, message),
    }
}

fn tell_request<S: Sink>(unit: &[u8], sink: &mut S) -> Result<(), S::Stop> {
    use mdp3::tcp::Request;
    let (name, kind) = match Request::split(unit) {
        Ok(Some((Request::Logon { .. }, _))) => ("Logon", b'A'),
        Ok(Some((Request::MarketData { .. }, _))) => ("MarketDataRequest", b'V'),
        Ok(Some((Request::Heartbeat, _))) => ("Heartbeat", b'0'),
        Ok(Some((Request::Logout, _))) => ("Logout", b'5'),
        _ => return sink.malformed(Place::default(), &"not a request", unit),
    };
    sink.message(
        Place::default(),
        Message {
            kind: Kind::Letter(kind),
            name,
            unread: 0,
            fields: &|line| {
                let fields = || unit.split(|b| *b == 1).filter(|f| !f.is_empty());
                let count = fields().count();
                for (at, field) in fields().enumerate() {
                    let split = field.iter().position(|b| *b == b'=').unwrap_or(field.len());
                    let (tag, value) = (&field[..split], field.get(split + 1..).unwrap_or_default());
                    line.enter("Fields", at, count);
                    line.text("Tag", &tag.escape_ascii().to_string());
                    line.text("Value", &value.escape_ascii().to_string());
                    line.leave();
                }
            },
        },
    )
}

fn tell_conflated<S: Sink>(unit: &[u8], state: &mut State, sink: &mut S) -> Result<(), S::Stop> {
    if unit.len() == mdp3::conflated::Header::SIZE
        && let Ok(packet) = mdp3::conflated::parse_packet(unit)
    {
        state.seq = packet.seq;
        let (seq, time) = (u64::from(packet.seq), packet.sending_time);
        return sink.header(protocol::Header {
            name: "ConflatedPacket",
            trailing: 0,
            fields: &|line| {
                line.number("EncodingType", mdp3::conflated::MAGIC.into());
                line.number("MsgSeqNum", seq);
                line.number("SendingTime", time);
            },
        });
    }
    let place = Place {
        seq: Some(state.seq.into()),
        ..Place::default()
    };
    let message = &unit[2..];
    match (mdp3::parse(message), mdp3::conflated::parse(message)) {
        (Ok(read), _) => sink.message(
            place,
            Message {
                kind: Kind::Number(read.header.template_id.get().into()),
                name: read.name(),
                unread: read.rest.len(),
                fields: &|line| protocol::mdp3_fields(&read, line),
            },
        ),
        (_, Ok((header, request))) => sink.message(
            place,
            Message {
                kind: Kind::Number(header.template_id.get().into()),
                name: request.name(),
                unread: 0,
                fields: &|line| {
                    line.fields(header);
                    request.visit(&mut |step| protocol::sbe_step(step, line));
                },
            },
        ),
        (Err(error), _) => sink.malformed(place, &error, message),
    }
}

/// A packet of SoupBinTCP; what it carries is of ITCH 5.0 or OUCH 5.0 where it reads as that.
fn tell_soup<S: Sink>(unit: &[u8], sink: &mut dyn FnMut(&'static str) -> S) -> Result<(), S::Stop> {
    use soupbintcp::Packet;
    let packet = match soupbintcp::split(unit) {
        Ok(Some((packet, _))) => packet,
        _ => return sink(Leg::Soup.name()).malformed(Place::default(), &"not a packet", unit),
    };
    match packet {
        Packet::Sequenced(message) if itch_is_whole(message) => {
            return Reader::itch_message(message, &mut sink(Protocol::Itch50.name()));
        }
        Packet::Sequenced(message) => {
            if let Ok((read, options)) = ouch50::parse_outbound(message) {
                let show = |line: &mut JsonLine<'_>| {
                    read.visit(&mut |name, value| line.field(name, value));
                    options.visit(&mut |name, value| line.field(name, value));
                };
                let (kind, name) = (Kind::Letter(read.kind()), read.name());
                return sink("ouch50").message(Place::default(), told(kind, name, &show));
            }
        }
        Packet::Unsequenced(message) => {
            if let Ok((read, options)) = ouch50::parse_inbound(message) {
                let show = |line: &mut JsonLine<'_>| {
                    read.visit(&mut |name, value| line.field(name, value));
                    options.visit(&mut |name, value| line.field(name, value));
                };
                let (kind, name) = (Kind::Letter(read.kind()), read.name());
                return sink("ouch50").message(Place::default(), told(kind, name, &show));
            }
        }
        _ => {}
    }
    let show = |line: &mut JsonLine<'_>| packet.visit(&mut |name, value| line.field(name, value));
    let (kind, name) = (Kind::Letter(packet.kind()), packet.name());
    sink(Leg::Soup.name()).message(Place::default(), told(kind, name, &show))
}

fn told<'a>(kind: Kind, name: &'a str, fields: &'a dyn Fn(&mut JsonLine<'_>)) -> Message<'a> {
    Message {
        kind,
        name,
        unread: 0,
        fields,
    }
}
