//! `tickwire decode`: one JSON object per message, on standard output.
//!
//! Every object begins with where the message comes from (file, packet or offset, time, addresses, feed,
//! session, sequence number), then its name and every field as the specification names them. What cannot be
//! decoded is an object too, with `"Error"`, so that nothing is passed over in silence.

mod output;
mod routes;
mod tcp;
mod types;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::Path;

use tickwire_market::Port;
use tickwire_runtime::capture::{CaptureError, CaptureReader, Carried, Frames};
use tickwire_runtime::itchfile::{ItchFile, Recording};
use tickwire_runtime::recordfile::{LineFile, RecordFile};
use tickwire_wire::itch50;

use crate::cli::DecodeArgs;
use output::{Origin, Output, PacketWriter, Shared};
pub(crate) use routes::Payloads;
use routes::Routes;
use tcp::{Conversations, Wanted};
use tickwire_console::failure::Failure;
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::protocol::{self, Protocol, Reader, Verdict};

/// Packets that wait while the protocol of one of them is not settled.
const HELD_MAX: usize = 4096;
/// Destinations of packets that were left out which the closing line names.
const NAMED_MAX: usize = 8;

/// Members of every object; a field of such a name is shown as `Message.Field`.
const MEMBERS: [&str; 17] = [
    "File",
    "Packet",
    "Number",
    "CaptureTime",
    "Destination",
    "Feed",
    "Channel",
    "Port",
    "Line",
    "Protocol",
    "Session",
    "Unit",
    "SequenceNumber",
    "Message",
    "Error",
    "UnreadBytes",
    "Ambiguous",
];

/// What was found, for the closing line and the exit code.
#[derive(Debug, Default)]
struct Tally {
    messages: u64,
    malformed: u64,
    /// Packets without messages, of a known protocol.
    idle: u64,
    printed: u64,
    /// Messages of which the bytes allow more than one reading.
    ambiguous: u64,
    /// Packets that were left out, by destination: of no configured feed, or of no protocol known here.
    left_out: BTreeMap<SocketAddr, u64>,
}

/// Stops the walk.
enum Stop {
    /// The limit is reached.
    Enough,
    /// The reader of our output has gone.
    Output(io::Error),
    /// The file cannot be read on: what came before it stands, and the next one follows.
    Damaged(String),
    /// It cannot go on without being told more.
    Failed(Failure),
}

impl From<CaptureError> for Stop {
    fn from(e: CaptureError) -> Stop {
        match e.is_unreadable() {
            true => Stop::Failed(Failure::system(e.to_string())),
            false => Stop::Damaged(e.to_string()),
        }
    }
}

impl From<io::Error> for Stop {
    fn from(e: io::Error) -> Stop {
        Stop::Output(e)
    }
}

/// What reads captures.
struct Walk {
    routes: Routes,
    /// What streams of TCP may be of.
    wanted: Wanted,
    tcp: Conversations,
    frames: Frames,
    /// Of every file in which there is nothing: what it is.
    empty: Vec<String>,
}

/// A packet that waits.
struct HeldPacket {
    number: u64,
    time: Option<u64>,
    destination: SocketAddr,
    payload: Vec<u8>,
}

pub(crate) fn run(args: &DecodeArgs) -> Result<(), Failure> {
    let mut walk = Walk::new(args)?;
    let stdout = io::stdout().lock();
    let mut out = Output {
        args,
        out: BufWriter::with_capacity(1 << 16, stdout),
        line: Vec::new(),
        tally: Tally::default(),
    };
    let mut damaged = None;
    let mut is_enough = false;
    for file in &args.files {
        match walk.file(file, &mut out) {
            Ok(()) => {}
            Err(Stop::Enough) => {
                is_enough = true;
                break;
            }
            // Whoever reads our output has seen enough (`| head`): a good end.
            Err(Stop::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(Stop::Output(e)) => return Err(Failure::system(format!("cannot write the output: {e}"))),
            Err(Stop::Damaged(message)) => damaged = Some(message),
            Err(Stop::Failed(failure)) => {
                // What came before it stands.
                let _ = out.out.flush();
                return Err(failure);
            }
        }
    }
    match out.out.flush() {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            return Err(Failure::system(format!("cannot write the output: {e}")));
        }
        _ => {}
    }
    eprintln!("{}", walk.closing_line(&out.tally));
    match walk.failure(&out.tally, damaged, is_enough, args) {
        Some(message) => Err(Failure::check(message)),
        None => Ok(()),
    }
}

/// Names the first few of a list with what each counts.
fn named<T>(all: &[T], what: &str, show: impl Fn(&T) -> String) -> String {
    let mut line: String = all
        .iter()
        .take(NAMED_MAX)
        .map(|one| format!(" {}", show(one)))
        .collect();
    if all.len() > NAMED_MAX {
        let _ = write!(line, " and {} more {what}", all.len() - NAMED_MAX);
    }
    line
}

impl Walk {
    fn new(args: &DecodeArgs) -> Result<Walk, Failure> {
        let wanted = match args.protocol {
            Some(Payloads::Stream(leg)) => Wanted::One(leg),
            Some(Payloads::Feed(protocol)) => Wanted::Of(protocol),
            None => Wanted::All,
        };
        let walk = Walk {
            routes: Routes::new(args)?,
            wanted,
            tcp: Conversations::default(),
            frames: Frames::default(),
            empty: Vec::new(),
        };
        types::check(&args.types, walk.routes.protocols(), wanted).map_err(Failure::config)?;
        Ok(walk)
    }

    fn closing_line(&self, t: &Tally) -> String {
        let counts = self.frames.counts();
        let mut line = format!(
            "{} messages in {} frames ({} of UDP, {} of TCP); {} malformed",
            t.messages, counts.frames, counts.udp, counts.tcp, t.malformed
        );
        if t.ambiguous > 0 {
            let _ = write!(line, ", {} marked \"Ambiguous\"", t.ambiguous);
        }
        for said in counts.mended() {
            let _ = write!(line, ", {said}");
        }
        let not_read = counts.not_read();
        if !not_read.is_empty() {
            let _ = write!(line, "; not read: {}", not_read.join(", "));
        }
        if !t.left_out.is_empty() {
            let of = match self.routes {
                Routes::Feeds(..) => "of no configured feed",
                Routes::Streams(_) => "of UDP",
                _ => "of no protocol known here",
            };
            let _ = write!(line, "; {} packets {of}:", t.left_out.values().sum::<u64>());
            let mut most: Vec<_> = t.left_out.iter().collect();
            most.sort_by_key(|(destination, count)| (std::cmp::Reverse(**count), **destination));
            line += &named(&most, "destinations", |(destination, count)| {
                format!("{destination} ({count})")
            });
        }
        let foreign = self.tcp.foreign();
        if !foreign.is_empty() {
            let bytes: u64 = foreign.iter().map(|f| f.bytes).sum();
            let _ = write!(
                line,
                "; {bytes} bytes of {} streams of TCP skipped, of no protocol {}:",
                foreign.len(),
                if self.wanted == Wanted::All {
                    "known here"
                } else {
                    "asked for"
                }
            );
            line += &named(&foreign, "streams", |f| match f.what {
                Some(what) => format!("{} ({}, {what})", f.destination, f.bytes),
                None => format!("{} ({})", f.destination, f.bytes),
            });
        }
        if self.tcp.forgotten() > 0 {
            let _ = write!(
                line,
                "; {} streams of TCP forgotten, there were too many",
                self.tcp.forgotten()
            );
        }
        line
    }

    /// What makes the exit code 1.
    fn failure(
        &self,
        t: &Tally,
        damaged: Option<String>,
        is_enough: bool,
        args: &DecodeArgs,
    ) -> Option<String> {
        let nothing = || {
            let templates = match args.templates[..] {
                [] if matches!(self.routes, Routes::Detect(..)) => ", and --templates for MOEX",
                _ => "",
            };
            format!(
                "nothing in it is {}; see --protocol{templates}",
                self.routes.name()
            )
        };
        let counts = self.frames.counts();
        let lost = counts.loss().filter(|_| !is_enough);
        match damaged {
            Some(message) => Some(message),
            None if t.malformed > 0 && t.messages == 0 => Some(nothing()),
            None if t.malformed > 0 => Some(format!(
                "{} packets or messages could not be decoded; they are the lines with \"Error\"",
                t.malformed
            )),
            None if lost.is_some() => lost,
            None if t.messages + t.idle == 0 && !is_enough => match self.empty.first() {
                Some(empty) if counts.frames == 0 => Some(empty.clone()),
                _ => Some(nothing()),
            },
            None if self.tcp.forgotten() > 0 => {
                Some("there were too many streams of TCP at once".to_string())
            }
            None => None,
        }
    }
}

impl Walk {
    fn file<W: Write>(&mut self, path: &Path, out: &mut Output<'_, W>) -> Result<(), Stop> {
        let name = match path.as_os_str() == "-" {
            true => "standard input".to_string(),
            false => path.display().to_string(),
        };
        let recording = Recording::open(path, itch50::message_size)?;
        let kind = recording.kind();
        let before = (
            self.frames.counts().frames,
            out.tally.messages + out.tally.malformed,
        );
        self.recording(&name, recording, out)?;
        if before
            == (
                self.frames.counts().frames,
                out.tally.messages + out.tally.malformed,
            )
        {
            self.empty.push(kind.nothing_in(&name));
        }
        Ok(())
    }

    fn recording<W: Write>(
        &mut self,
        name: &str,
        recording: Recording,
        out: &mut Output<'_, W>,
    ) -> Result<(), Stop> {
        match recording {
            Recording::Packets(reader) => self.packets(name, reader, out),
            Recording::Messages(file) => match &self.routes {
                Routes::One(reader) if reader.protocol() != Protocol::Itch50 => Err(Stop::Damaged(format!(
                    "{name} is a file of ITCH 5.0 messages, not a packet capture of {}",
                    reader.protocol()
                ))),
                Routes::Streams(leg) => Err(Stop::Damaged(format!(
                    "{name} is a file of ITCH 5.0 messages, not a packet capture of {}",
                    leg.name()
                ))),
                _ => itch_messages(name, file, out),
            },
            Recording::Records(_) | Recording::Lines(_) if !matches!(self.routes, Routes::Detect(..)) => {
                Err(Stop::Damaged(format!(
                    "{name} is a file of DBN records or LOBSTER messages, not a packet capture: leave --protocol and --config out"
                )))
            }
            Recording::Records(file) => records(name, file, out),
            Recording::Lines(file) => lines(name, file, out),
        }
    }

    fn packets<W: Write>(
        &mut self,
        name: &str,
        mut reader: CaptureReader,
        out: &mut Output<'_, W>,
    ) -> Result<(), Stop> {
        let mut number = 0_u64;
        self.frames.next_file();
        let end = loop {
            let frame = match reader.next_frame(&mut self.frames) {
                Ok(Some(frame)) => frame,
                Ok(None) => break Ok(()),
                Err(e) => break Err(e.into()),
            };
            number += 1;
            let packet = frame.packet;
            let udp = match frame.carried {
                Ok(Carried::Udp(udp)) => udp,
                Ok(Carried::Tcp(segment)) => {
                    let origin = Origin {
                        file: name,
                        number,
                        time: packet.time.map(|t| t.0),
                        destination: Some(segment.destination),
                        ..Origin::default()
                    };
                    let out = std::cell::RefCell::new(&mut *out);
                    self.tcp.add(self.wanted, &segment, &mut |protocol| {
                        let origin = Origin { protocol, ..origin };
                        Shared { origin, out: &out }
                    })?;
                    continue;
                }
                Err(_) => continue,
            };
            let origin = Origin {
                file: name,
                number,
                time: packet.time.map(|t| t.0),
                destination: Some(udp.destination),
                ..Origin::default()
            };
            match &mut self.routes {
                Routes::One(reader) => {
                    out.read(reader.next_is(udp.destination, &[]), origin, udp.payload)?;
                }
                Routes::Feeds(file, readers) => {
                    let source = file.find(udp.source).filter(|d| d.port == Port::Requests);
                    match file.find(udp.destination).or(source) {
                        Some(place) => {
                            let feed = &file.feeds[place.feed];
                            let reader = &mut readers[place.feed];
                            // To the server of requests, not from it.
                            let asks = place.port == Port::Requests && source.is_none();
                            let origin = Origin {
                                feed: Some((feed, place)),
                                ..origin
                            };
                            if asks {
                                out.request(reader.protocol(), origin, udp.payload)?;
                            } else {
                                out.read(reader, origin, udp.payload)?;
                            }
                        }
                        None => out.leave_out(udp.destination),
                    }
                }
                Routes::Detect(detector, held) => {
                    let settled = |a: protocol::Ambiguous| Stop::Failed(Failure::config(a.to_string()));
                    let verdict = detector.observe(udp.destination, udp.payload).map_err(settled)?;
                    if held.is_empty() && verdict != Verdict::Wait {
                        out.judged(detector, verdict, origin, udp.payload)?;
                        continue;
                    }
                    held.push_back(HeldPacket {
                        number,
                        time: origin.time,
                        destination: udp.destination,
                        payload: udp.payload.to_vec(),
                    });
                    if held.len() >= HELD_MAX {
                        detector.settle_all().map_err(settled)?;
                    }
                    if detector.open() == 0 {
                        out.release(name, detector, held)?;
                    }
                }
                Routes::Streams(_) => out.leave_out(udp.destination),
            }
        };
        {
            let out = std::cell::RefCell::new(&mut *out);
            self.tcp.settle(self.wanted, &mut |destination, protocol| {
                let origin = Origin {
                    file: name,
                    number,
                    destination: Some(destination),
                    protocol,
                    ..Origin::default()
                };
                Shared { origin, out: &out }
            })?;
        }
        if let Routes::Detect(detector, held) = &mut self.routes {
            detector
                .settle_all()
                .map_err(|a| Stop::Failed(Failure::config(a.to_string())))?;
            out.release(name, detector, held)?;
        }
        end
    }
}

fn feed_reader(path: &Path, feed: &FeedConfig) -> Result<Reader, String> {
    let mut feed = feed.clone();
    feed.resolve_templates(path.parent().unwrap_or(Path::new("")));
    let templates: Vec<_> = feed
        .templates
        .iter()
        .map(|file| protocol::templates(file))
        .collect::<Result<_, _>>()?;
    let reader =
        Reader::new(feed.protocol(), &templates).map_err(|e| format!("feed {}: {e}", feed.name()))?;
    Ok(reader.with_xdp(feed.xdp))
}

fn itch_messages<W: Write>(name: &str, mut file: ItchFile, out: &mut Output<'_, W>) -> Result<(), Stop> {
    let mut number = 0;
    while let Some(message) = file.next_message()? {
        number += 1;
        let origin = Origin {
            file: name,
            number,
            protocol: Protocol::Itch50.name(),
            ..Origin::default()
        };
        Reader::itch_message(
            message.bytes,
            &mut PacketWriter {
                origin,
                trailing: 0,
                ambiguous: None,
                out,
            },
        )?;
    }
    Ok(())
}

fn records<W: Write>(name: &str, mut file: RecordFile, out: &mut Output<'_, W>) -> Result<(), Stop> {
    let mut number = 0;
    while let Some(record) = file.next_record()? {
        number += 1;
        let origin = Origin {
            file: name,
            number,
            protocol: "dbn",
            ..Origin::default()
        };
        protocol::dbn_record(
            record.bytes,
            &mut PacketWriter {
                origin,
                trailing: 0,
                ambiguous: None,
                out,
            },
        )?;
    }
    Ok(())
}

fn lines<W: Write>(name: &str, mut file: LineFile, out: &mut Output<'_, W>) -> Result<(), Stop> {
    while let Some((number, line)) = file.next_line()? {
        if number == 1 && line.starts_with(b"Time,") {
            continue;
        }
        let origin = Origin {
            file: name,
            number,
            protocol: "lobster",
            ..Origin::default()
        };
        protocol::lobster_line(
            line,
            &mut PacketWriter {
                origin,
                trailing: 0,
                ambiguous: None,
                out,
            },
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use std::collections::BTreeSet;
    use tickwire_market::SeqNo;
    use tickwire_wire::{cqs, mdp3, moldudp64, openbook, pitch, uqdf, xdp};

    /// Packets of one message each, of every type that a protocol has, filled with `fill`.
    fn packets(protocol: Protocol, fill: u8) -> Vec<Vec<u8>> {
        let filled = |size: usize, start: &[u8]| {
            let mut bytes = vec![fill; size];
            bytes[..start.len()].copy_from_slice(start);
            bytes
        };
        let mold = |message: Vec<u8>| {
            let mut buffer = [0; 1024];
            let mut builder = moldudp64::PacketBuilder::new(&mut buffer, *b"SESSION  1", SeqNo(1));
            assert!(builder.push(&message));
            let size = builder.finish();
            buffer[..size].to_vec()
        };
        let unit = |&(kind, _, size): &(u8, &str, usize)| {
            let mut buffer = [0; 1024];
            let mut builder = pitch::PacketBuilder::new(&mut buffer, 1, 1);
            assert!(builder.push(&filled(size, &[size as u8, kind])));
            let size = builder.finish();
            buffer[..size].to_vec()
        };
        match protocol {
            Protocol::Itch50 => {
                let types = itch50::TYPES.iter();
                types.map(|t| mold(filled(t.2, &[t.0]))).collect()
            }
            Protocol::Uqdf => {
                let types = uqdf::TYPES.iter();
                types
                    .map(|(kind, _, size)| mold(filled(*size, &[uqdf::VERSION, kind[0], kind[1]])))
                    .collect()
            }
            Protocol::Pitch => pitch::TYPES.iter().map(unit).collect(),
            Protocol::PitchOptions => pitch::options::TYPES.iter().map(unit).collect(),
            Protocol::PitchComplex => pitch::complex::TYPES.iter().map(unit).collect(),
            Protocol::PitchFutures => pitch::futures::TYPES.iter().map(unit).collect(),
            Protocol::Xdp => {
                let packet = |&(kind, _, size): &(u16, &str, usize)| {
                    let mut buffer = [0; 1024];
                    let flag = xdp::DeliveryFlag::Original;
                    let mut builder =
                        xdp::PacketBuilder::new(&mut buffer, flag, 1, tickwire_market::Nanos(0));
                    let start = [(size as u16).to_le_bytes(), kind.to_le_bytes()].concat();
                    assert!(builder.push(&filled(size, &start)));
                    let size = builder.finish();
                    buffer[..size].to_vec()
                };
                xdp::TYPES.iter().map(packet).collect()
            }
            Protocol::Openbook => {
                let packet = |&(kind, _, size): &(u16, &str, usize)| {
                    let mut buffer = [0; 1024];
                    let header = openbook::PacketHeader {
                        msg_type: kind.into(),
                        ..openbook::PacketHeader::BLANK
                    };
                    let mut builder = openbook::PacketBuilder::new(&mut buffer, header);
                    let start = (size as u16).to_be_bytes();
                    assert!(builder.push(&filled(size, &start)));
                    let size = builder.finish();
                    buffer[..size].to_vec()
                };
                openbook::TYPES.iter().map(packet).collect()
            }
            Protocol::Cqs => {
                let packet = |&(kind, _, size): &([u8; 2], &str, usize)| {
                    let mut buffer = [0; 1024];
                    let time = cqs::UnixTime::from_nanos(0);
                    let header = cqs::BlockHeader::at(cqs::Feed::Quotes, 1, time);
                    let mut builder = cqs::BlockBuilder::new(&mut buffer, header);
                    let length = (size as u16).to_be_bytes();
                    let start = [length, kind].concat();
                    assert!(builder.push(&[&filled(size, &start)]));
                    let size = builder.finish();
                    buffer[..size].to_vec()
                };
                cqs::TYPES.iter().map(packet).collect()
            }
            Protocol::Mdp3 => {
                // A root block and empty groups, then what no schema version explains. Some templates are of
                // old versions only.
                let version = if fill == 0 { mdp3::NEWEST_VERSION } else { 5 };
                let packet = |template: &mdp3::Template| {
                    let head = [template.block_length, template.id, 1, version];
                    let head = head.map(u16::to_le_bytes).concat();
                    let body = vec![0; usize::from(template.block_length) + 64];
                    let size = (2 + head.len() + body.len()) as u16;
                    [&[0; 12][..], &size.to_le_bytes(), &head, &body].concat()
                };
                mdp3::Body::TEMPLATES.iter().map(packet).collect()
            }
            // Its layouts are in files.
            Protocol::Moex => Vec::new(),
        }
    }

    /// An object whose members have different names is as long as its map.
    #[derive(Debug)]
    struct Members(Vec<String>);

    impl<'de> serde::Deserialize<'de> for Members {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Members;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                    let mut names = Vec::new();
                    while let Some((name, _)) = map.next_entry::<String, serde::de::IgnoredAny>()? {
                        names.push(name);
                    }
                    Ok(Members(names))
                }
            }
            deserializer.deserialize_map(Visitor)
        }
    }

    #[test]
    fn no_message_has_two_members_of_one_name() {
        let cli = Cli::parse_from(["tickwire", "decode", "x", "--headers"]);
        let Command::Decode(args) = cli.command else {
            panic!("another command")
        };
        let mut shown = 0;
        for protocol in Protocol::ALL.into_iter().filter(|p| *p != Protocol::Moex) {
            let mut reader = Reader::new(protocol, &[]).unwrap();
            let fills = [0, b' ', b'0'].map(|fill| packets(protocol, fill));
            for at in 0..fills[0].len() {
                // Indicators of some messages are refused but for a space or a digit.
                let read = fills.iter().find_map(|packets| {
                    let mut out = Output {
                        args: &args,
                        out: Vec::new(),
                        line: Vec::new(),
                        tally: Tally::default(),
                    };
                    let origin = Origin {
                        file: "f",
                        number: 1,
                        time: Some(1),
                        destination: Some(([239, 0, 0, 1], 1).into()),
                        ..Origin::default()
                    };
                    assert!(out.read(&mut reader, origin, &packets[at]).is_ok());
                    (out.tally.messages == 1 && out.tally.malformed == 0).then_some(out.out)
                });
                let lines = String::from_utf8(read.unwrap_or_else(|| panic!("{protocol} {at}"))).unwrap();
                for line in lines.lines() {
                    let Members(names) = serde_json::from_str(line).expect(line);
                    // What a configuration would add.
                    let more = ["Feed", "Channel", "Port", "Line"].map(String::from);
                    let all: BTreeSet<_> = names.iter().chain(&more).collect();
                    assert_eq!(all.len(), names.len() + more.len(), "{line}");
                    shown += 1;
                }
            }
        }
        println!("{shown} objects");
    }
}
