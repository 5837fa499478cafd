//! How each protocol's packets are taken apart.
//!
//! Shown beside the fields of a message's own layout: for OpenBook Ultra the `MsgType` of the packet's
//! header, for MDP 3.0 the message header, for MOEX the `TemplateId`. Groups of MDP 3.0, sequences of FAST,
//! price points of OpenBook Ultra, odd-lot levels and closing prices of UQDF are arrays of objects.

use tickwire_wire::layout::{FieldValue, prefix};
use tickwire_wire::moldudp64::{self, Payload};
use tickwire_wire::sbe::Visit as SbeVisit;
use tickwire_wire::{Malformed, cqs, dbn, fast, ilink3, itch50, mdp3, moex, openbook, pitch, uqdf, xdp};

use super::{Header, Kind, Message, Place, Protocol, Reader, Sink, XdpState};
use crate::json::JsonLine;

/// Tells of a message whose fields are a flat list, or that it cannot be read.
macro_rules! tell {
    ($sink:expr, $place:expr, $bytes:expr, $parsed:expr, $kind:expr) => {
        match $parsed {
            Ok(message) => $sink.message(
                $place,
                Message {
                    kind: $kind(message.kind()),
                    name: message.name(),
                    unread: $bytes.len() - message.as_bytes().len(),
                    fields: &|line: &mut JsonLine<'_>| {
                        message.visit(&mut |name, value| line.field(name, value));
                    },
                },
            ),
            Err(error) => $sink.malformed($place, &error, $bytes),
        }
    };
}

/// Header and messages of a checked packet; a packet that could not be read goes to the sink.
macro_rules! checked {
    ($sink:expr, $payload:expr, $parsed:expr) => {
        match $parsed {
            Ok(packet) => packet,
            Err(error) => return $sink.malformed(Place::default(), &error, $payload),
        }
    };
}

impl Reader {
    /// Reads one payload.
    pub fn packet<S: Sink>(&mut self, payload: &[u8], sink: &mut S) -> Result<(), S::Stop> {
        match self.protocol {
            Protocol::Itch50 => mold(payload, sink, itch_message),
            Protocol::Uqdf => mold(payload, sink, uqdf_message),
            Protocol::Pitch | Protocol::PitchOptions | Protocol::PitchComplex | Protocol::PitchFutures => {
                let others = std::mem::take(&mut self.others);
                pitch_packet(self.protocol, &others, payload, sink)
            }
            Protocol::Xdp => xdp_packet(&mut self.xdp, payload, sink),
            Protocol::Openbook => openbook_packet(payload, sink),
            Protocol::Cqs => cqs_block(payload, sink),
            Protocol::Mdp3 => mdp3_packet(payload, sink),
            Protocol::Moex => moex_datagram(&mut self.moex, payload, sink),
        }
    }

    /// Reads one message of a file of ITCH messages.
    pub fn itch_message<S: Sink>(bytes: &[u8], sink: &mut S) -> Result<(), S::Stop> {
        itch_message(bytes, Place::default(), sink)
    }

    /// Reads a request for messages to be sent again, as a MoldUDP64 client sends it.
    pub fn request<S: Sink>(payload: &[u8], sink: &mut S) -> Result<(), S::Stop> {
        let request = checked!(sink, payload, moldudp64::Request::parse(payload));
        let place = Place {
            session: Some(&request.session),
            seq: Some(request.seq.0),
            unit: None,
        };
        let count = u64::from(request.count);
        sink.header(Header {
            name: "RequestPacket",
            trailing: payload.len() - moldudp64::Request::SIZE,
            fields: &|line| line.number("MessageCount", count),
        })?;
        sink.idle(place, "Request")
    }
}

fn mold<S: Sink>(
    payload: &[u8],
    sink: &mut S,
    message: impl Fn(&[u8], Place<'_>, &mut S) -> Result<(), S::Stop>,
) -> Result<(), S::Stop> {
    let packet = checked!(sink, payload, moldudp64::parse(payload));
    let (header, _) = checked!(sink, payload, prefix::<moldudp64::Header>(payload));
    sink.header(Header {
        name: "DownstreamPacket",
        trailing: packet.trailing.into(),
        fields: &|line| line.fields(header),
    })?;
    let place = |seq| Place {
        session: Some(&packet.session),
        seq: Some(seq),
        unit: None,
    };
    match packet.payload {
        Payload::Heartbeat => sink.idle(place(packet.seq.0), "Heartbeat"),
        Payload::EndOfSession => sink.idle(place(packet.seq.0), "EndOfSession"),
        // A corrupt packet may have the highest number there is.
        Payload::Messages(blocks) => (0..)
            .zip(blocks)
            .try_for_each(|(at, bytes)| message(bytes, place(packet.seq.advance(at).0), sink)),
    }
}

fn itch_message<S: Sink>(bytes: &[u8], place: Place<'_>, sink: &mut S) -> Result<(), S::Stop> {
    tell!(sink, place, bytes, itch50::parse(bytes), Kind::Letter)
}

fn uqdf_message<S: Sink>(bytes: &[u8], place: Place<'_>, sink: &mut S) -> Result<(), S::Stop> {
    let message = match uqdf::parse(bytes) {
        Ok(message) => message,
        Err(error) => return sink.malformed(place, &error, bytes),
    };
    let parts: usize = message.parts().iter().map(|part| part.len()).sum();
    sink.message(
        place,
        Message {
            kind: Kind::Pair(message.kind()),
            name: message.name(),
            unread: bytes.len() - parts,
            fields: &|line| uqdf_fields(&message, line),
        },
    )
}

/// As [`uqdf::Message::visit`], with what repeats in arrays.
fn uqdf_fields(message: &uqdf::Message<'_>, line: &mut JsonLine<'_>) {
    let more = &message.appendages;
    message.body.visit(&mut |name, value| line.field(name, value));
    match more.nbbo {
        uqdf::Nbbo::Unchanged | uqdf::Nbbo::Gone | uqdf::Nbbo::Quote => {}
        uqdf::Nbbo::Short(best) => line.fields(best),
        uqdf::Nbbo::Long(best) => line.fields(best),
    }
    if let Some(mpids) = more.adf_mpids {
        line.fields(mpids);
    }
    match more.bolo {
        uqdf::Bolo::Unchanged | uqdf::Bolo::Gone => {}
        uqdf::Bolo::Short(best) => line.fields(best),
        uqdf::Bolo::Long(best) => line.fields(best),
        uqdf::Bolo::Mpid(best) => line.fields(best),
    }
    match more.odd_lots {
        uqdf::OddLots::None => {}
        uqdf::OddLots::Short(levels) => line.array("OddLotLevels", levels),
        uqdf::OddLots::Long(levels) => line.array("OddLotLevels", levels),
        uqdf::OddLots::Mpid(levels) => line.array("OddLotLevels", levels),
    }
    match message.body {
        uqdf::Body::GeneralAdministrative(_) => line.field("Text", FieldValue::Text(more.text)),
        uqdf::Body::CloseRecap(_) => line.array("MarketCenterCloses", more.closes),
        _ => {}
    }
}

/// Shows the fields of a message of one kind of PITCH; `None` if it does not read all of it.
fn pitch_fields(family: Protocol, bytes: &[u8]) -> Option<(u8, &'static str, usize, Fields)> {
    Some(match family {
        Protocol::PitchOptions => {
            let m = pitch::options::parse(bytes).ok()?;
            (m.kind(), m.name(), m.as_bytes().len(), shown(|f| m.visit(f)))
        }
        Protocol::PitchComplex => {
            let m = pitch::complex::parse(bytes).ok()?;
            (m.kind(), m.name(), m.as_bytes().len(), shown(|f| m.visit(f)))
        }
        Protocol::PitchFutures => {
            let m = pitch::futures::parse(bytes).ok()?;
            (m.kind(), m.name(), m.as_bytes().len(), shown(|f| m.visit(f)))
        }
        _ => {
            let m = pitch::parse(bytes).ok()?;
            (m.kind(), m.name(), m.as_bytes().len(), shown(|f| m.visit(f)))
        }
    })
}

/// Names and values as they are shown.
type Fields = Vec<(&'static str, String)>;

fn shown(visit: impl FnOnce(&mut dyn FnMut(&'static str, FieldValue<'_>))) -> Fields {
    let mut fields = Fields::new();
    visit(&mut |name, value| fields.push((name, value.to_string())));
    fields
}

/// The kinds of PITCH that read a message whole as well, and other values in it.
fn other_readings(family: Protocol, others: &[Protocol], bytes: &[u8]) -> Option<String> {
    let own = pitch_fields(family, bytes)?;
    let differs = |other: &&Protocol| {
        pitch_fields(**other, bytes).is_some_and(|read| read.2 == bytes.len() && read.3 != own.3)
    };
    let names: Vec<_> = others.iter().filter(differs).map(|p| p.name()).collect();
    (!names.is_empty()).then(|| names.join(" or "))
}

fn pitch_packet<S: Sink>(
    family: Protocol,
    others: &[Protocol],
    payload: &[u8],
    sink: &mut S,
) -> Result<(), S::Stop> {
    let packet = checked!(sink, payload, pitch::packet(payload));
    let (header, _) = checked!(sink, payload, prefix::<pitch::UnitHeader>(payload));
    sink.header(Header {
        name: "SequencedUnitHeader",
        trailing: packet.trailing.into(),
        fields: &|line| line.fields(header),
    })?;
    let mut seq = packet.sequence;
    let place = |seq: u32| Place {
        unit: Some(packet.unit),
        seq: (seq != 0).then_some(seq.into()),
        session: None,
    };
    if packet.messages.len() == 0 {
        return sink.idle(place(seq), "Heartbeat");
    }
    for bytes in packet.messages.clone() {
        if !others.is_empty()
            && let Some(readings) = other_readings(family, others, bytes)
        {
            sink.ambiguous(&readings);
        }
        match family {
            Protocol::PitchOptions => {
                tell!(sink, place(seq), bytes, pitch::options::parse(bytes), Kind::Byte)?
            }
            Protocol::PitchComplex => {
                tell!(sink, place(seq), bytes, pitch::complex::parse(bytes), Kind::Byte)?
            }
            Protocol::PitchFutures => {
                tell!(sink, place(seq), bytes, pitch::futures::parse(bytes), Kind::Byte)?
            }
            _ => tell!(sink, place(seq), bytes, pitch::parse(bytes), Kind::Byte)?,
        }
        if seq != 0 {
            seq = pitch::after(seq, 1);
        }
    }
    Ok(())
}

fn xdp_packet<S: Sink>(state: &mut XdpState, payload: &[u8], sink: &mut S) -> Result<(), S::Stop> {
    let packet = checked!(sink, payload, xdp::parse_packet(payload));
    sink.header(Header {
        name: "PacketHeader",
        trailing: packet.trailing.into(),
        fields: &|line| line.fields(packet.header),
    })?;
    let place = |seq| Place {
        seq: Some(seq),
        ..Place::default()
    };
    let first = packet.seq().0;
    if packet.messages.len() == 0 {
        let name = packet
            .flag()
            .map_or("Empty".to_string(), |flag| format!("{flag:?}"));
        return sink.idle(place(first), &name);
    }
    let told = state.told;
    let channel = state.channel();
    // What any message of the packet tells holds for all of them.
    for bytes in packet.messages.clone() {
        channel.learn(bytes);
    }
    for (seq, bytes) in (first..).zip(packet.messages) {
        let scale = xdp::symbol_index(bytes).and_then(|index| channel.scales.get(&index).copied());
        let (release, is_guess) = match told.or(channel.release) {
            Some(release) => (release, false),
            None => (xdp::Release::Pillar25, true),
        };
        let older = xdp::v21::parse(bytes).ok();
        let newer = match xdp::parse(bytes) {
            Ok(message) => message,
            Err(error) => {
                sink.malformed(place(seq), &error, bytes)?;
                continue;
            }
        };
        if let Some(older) = older.filter(|_| is_guess) {
            // Alike but for what the one calls reserved and the other a number of 0.
            let readings = [shown(|f| older.visit(f)), shown(|f| newer.visit(f))];
            let [older, newer] = readings.map(|mut fields| {
                fields.retain(|(name, value)| {
                    !(*name == "Reserved" || name.ends_with("Splits")) || value != "0"
                });
                fields
            });
            if older != newer {
                sink.ambiguous("xdp 2.1");
            }
        }
        let older = older.filter(|_| release == xdp::Release::Xdp21);
        let (name, length) = match &older {
            Some(older) => (older.name(), older.as_bytes().len()),
            None => (newer.name(), newer.as_bytes().len()),
        };
        let is_mapping = newer.kind() == xdp::SymbolIndexMapping::KIND;
        sink.message(
            place(seq),
            Message {
                kind: Kind::Number(newer.kind().into()),
                name,
                unread: bytes.len() - length,
                fields: &|line: &mut JsonLine<'_>| {
                    let mut has_price = false;
                    // Prices are the only numbers of XDP with a sign.
                    let mut show = |name: &'static str, value: FieldValue<'_>| match (value, scale) {
                        (FieldValue::Signed(mantissa), scale) => {
                            has_price = true;
                            line.field(
                                name,
                                match scale {
                                    Some(decimals) => FieldValue::Decimal {
                                        mantissa: mantissa.into(),
                                        decimals,
                                    },
                                    None => value,
                                },
                            );
                        }
                        _ => line.field(name, value),
                    };
                    match &older {
                        Some(older) => older.visit(&mut show),
                        None => newer.visit(&mut show),
                    }
                    if has_price && !is_mapping {
                        let scale = scale.map_or(FieldValue::Null, |s| FieldValue::Unsigned(s.into()));
                        line.field("PriceScale", scale);
                    }
                },
            },
        )?;
    }
    Ok(())
}

fn openbook_packet<S: Sink>(payload: &[u8], sink: &mut S) -> Result<(), S::Stop> {
    let packet = checked!(sink, payload, openbook::parse_packet(payload));
    sink.header(Header {
        name: "PacketHeader",
        trailing: packet.trailing.into(),
        fields: &|line| line.fields(packet.header),
    })?;
    let place = Place {
        seq: Some(packet.seq().0),
        ..Place::default()
    };
    let kind = packet.kind();
    if packet.messages.len() == 0 {
        let heartbeat = kind == openbook::HEARTBEAT;
        return sink.idle(place, if heartbeat { "Heartbeat" } else { "Empty" });
    }
    for bytes in packet.messages {
        match openbook::parse(kind, bytes) {
            Ok(message) => sink.message(
                place,
                Message {
                    kind: Kind::Number(kind.into()),
                    name: message.name(),
                    unread: 0,
                    fields: &|line| {
                        line.number("MsgType", kind.into());
                        openbook_fields(&message, line);
                    },
                },
            )?,
            Err(error) => sink.malformed(place, &error, bytes)?,
        }
    }
    Ok(())
}

fn openbook_fields(message: &openbook::Message<'_>, line: &mut JsonLine<'_>) {
    match message {
        openbook::Message::FullUpdate(full) => {
            line.fields(full.head);
            line.array("PricePoints", full.points);
        }
        openbook::Message::DeltaUpdate(delta) => {
            line.fields(delta.head);
            line.array("PricePoints", delta.points);
        }
        other => other.visit(&mut |_, name, value| line.field(name, value)),
    }
}

fn cqs_block<S: Sink>(payload: &[u8], sink: &mut S) -> Result<(), S::Stop> {
    // The version byte of a snapshot block is one that no other block has.
    if payload.first() == Some(&cqs::VERSION_SNAPSHOT) {
        let block = checked!(sink, payload, cqs::parse_snapshot_block(payload));
        sink.header(Header {
            name: "SnapshotHeader",
            trailing: block.trailing.into(),
            fields: &|line| line.fields(block.header),
        })?;
        return cqs_messages(
            block.header.seq.get(),
            block.messages,
            sink,
            |place, bytes, sink| {
                let message = cqs::SnapshotMessage::parse(bytes);
                tell!(sink, place, bytes, message, Kind::Pair)
            },
        );
    }
    let block = checked!(sink, payload, cqs::parse_block(payload));
    sink.header(Header {
        name: "BlockHeader",
        trailing: block.trailing.into(),
        fields: &|line| line.fields(block.header),
    })?;
    cqs_messages(
        block.header.seq.get(),
        block.messages,
        sink,
        |place, bytes, sink| match cqs::parse(bytes) {
            Ok(message) => sink.message(
                place,
                Message {
                    kind: Kind::Pair(message.kind()),
                    name: message.name(),
                    unread: bytes.len() - message.parts().iter().map(|part| part.len()).sum::<usize>(),
                    fields: &|line| message.visit(&mut |name, value| line.field(name, value)),
                },
            ),
            Err(error) => sink.malformed(place, &error, bytes),
        },
    )
}

fn cqs_messages<S: Sink>(
    first: u32,
    messages: cqs::Messages<'_>,
    sink: &mut S,
    tell: impl Fn(Place, &[u8], &mut S) -> Result<(), S::Stop>,
) -> Result<(), S::Stop> {
    let place = |seq| Place {
        seq: Some(seq),
        ..Place::default()
    };
    let first = u64::from(first);
    if messages.len() == 0 {
        return sink.idle(place(first), "Empty");
    }
    for (seq, bytes) in (first..).zip(messages) {
        tell(place(seq), bytes, sink)?;
    }
    Ok(())
}

fn mdp3_packet<S: Sink>(payload: &[u8], sink: &mut S) -> Result<(), S::Stop> {
    let packet = checked!(sink, payload, mdp3::parse_packet(payload));
    let (header, _) = checked!(sink, payload, prefix::<mdp3::PacketHeader>(payload));
    sink.header(Header {
        name: "BinaryPacketHeader",
        trailing: 0,
        fields: &|line| line.fields(header),
    })?;
    let place = Place {
        seq: Some(packet.seq.into()),
        ..Place::default()
    };
    let mut any = false;
    for bytes in packet.messages {
        any = true;
        match mdp3::parse(bytes) {
            Ok(message) => sink.message(
                place,
                Message {
                    kind: Kind::Number(message.header.template_id.get().into()),
                    name: message.name(),
                    unread: message.rest.len(),
                    fields: &|line| mdp3_fields(&message, line),
                },
            )?,
            Err(error) => sink.malformed(place, &error, bytes)?,
        }
    }
    if any { Ok(()) } else { sink.idle(place, "Empty") }
}

/// Header and fields of an MDP 3.0 message.
pub fn mdp3_fields(message: &mdp3::Message<'_>, line: &mut JsonLine<'_>) {
    line.fields(message.header);
    message.visit(&mut |step| sbe_step(step, line));
}

/// Header and fields of an iLink 3 message.
pub fn ilink3_fields(message: &ilink3::Message<'_>, line: &mut JsonLine<'_>) {
    line.fields(message.header);
    message.visit(&mut |step| sbe_step(step, line));
}

/// Writes one step of a visit to an SBE message: a field, or the begin or end of a group's entry.
pub fn sbe_step(step: SbeVisit<'_>, line: &mut JsonLine<'_>) {
    match step {
        SbeVisit::Field(name, value) => line.field(name, value),
        SbeVisit::Enter(name, index, count) => line.enter(name, index.into(), count.into()),
        SbeVisit::Leave => line.leave(),
    }
}

/// Template files are tried in their order; the first that reads a datagram whole is right.
fn moex_datagram<S: Sink>(
    decoders: &mut [moex::Decoder],
    payload: &[u8],
    sink: &mut S,
) -> Result<(), S::Stop> {
    let Some(preamble) = moex::preamble(payload) else {
        let short = Malformed::truncated(moex::PREAMBLE_LEN, payload.len());
        return sink.malformed(Place::default(), &short, payload);
    };
    let place = Place {
        seq: Some(preamble.into()),
        ..Place::default()
    };
    let mut first_error = None;
    for decoder in decoders {
        match decoder.packet(payload) {
            Ok(message) => {
                sink.header(Header {
                    name: "Preamble",
                    trailing: 0,
                    fields: &|line| line.number("MsgSeqNum", preamble.into()),
                })?;
                let raw = message.raw();
                return sink.message(
                    place,
                    Message {
                        kind: Kind::Number(message.template_id()),
                        name: raw.name(),
                        unread: 0,
                        fields: &|line| {
                            line.number("TemplateId", message.template_id().into());
                            fast_fields(&raw, line);
                        },
                    },
                );
            }
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) => sink.malformed(place, &error, payload),
        None => Ok(()),
    }
}

fn fast_fields(message: &fast::Message<'_>, line: &mut JsonLine<'_>) {
    message.visit(&mut |step| match step {
        fast::Visit::Field(name, _, value) => line.fast(name, value),
        fast::Visit::Enter(name, index, count) => line.enter(name, index as usize, count as usize),
        fast::Visit::Leave => line.leave(),
    });
}

/// Tells of a record of a DBN file.
pub fn dbn_record<S: Sink>(bytes: &[u8], sink: &mut S) -> Result<(), S::Stop> {
    match dbn::parse(bytes) {
        Ok(record) => sink.message(
            Place::default(),
            Message {
                kind: Kind::Byte(record.header().rtype),
                name: record.name(),
                unread: bytes.len() - record.size(),
                fields: &|line| record.visit(&mut |name, value| line.field(name, value)),
            },
        ),
        Err(error) => sink.malformed(Place::default(), &error, bytes),
    }
}

/// Tells of a line of a LOBSTER message file.
pub fn lobster_line<S: Sink>(bytes: &[u8], sink: &mut S) -> Result<(), S::Stop> {
    let fields: Vec<&[u8]> = bytes.split(|b| *b == b',').map(<[u8]>::trim_ascii).collect();
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse::<i64>().ok();
    let numbers: Option<Vec<i64>> = fields.iter().skip(1).map(|field| number(field)).collect();
    let name = match numbers.as_deref() {
        Some([kind @ 1..=7, _, _, _, 1 | -1]) => LOBSTER_TYPES[*kind as usize - 1],
        _ => {
            let wrong = "not a line of a LOBSTER message file: time, type 1 to 7, order, size, price, direction 1 or -1";
            return sink.malformed(Place::default(), &wrong, bytes);
        }
    };
    let numbers = numbers.unwrap_or_default();
    sink.message(
        Place::default(),
        Message {
            kind: Kind::Number(numbers[0] as u32),
            name,
            unread: 0,
            fields: &|line| {
                line.field("Time", FieldValue::Text(fields[0]));
                line.field("Type", FieldValue::Signed(numbers[0]));
                line.field("OrderID", FieldValue::Signed(numbers[1]));
                line.field("Size", FieldValue::Signed(numbers[2]));
                let price = FieldValue::Decimal {
                    mantissa: numbers[3].into(),
                    decimals: 4,
                };
                line.field("Price", price);
                line.field("Direction", FieldValue::Signed(numbers[4]));
            },
        },
    )
}

/// What LOBSTER's types 1 to 7 are.
const LOBSTER_TYPES: [&str; 7] = [
    "Submission",
    "Cancellation",
    "Deletion",
    "Execution",
    "HiddenExecution",
    "CrossTrade",
    "TradingHalt",
];
