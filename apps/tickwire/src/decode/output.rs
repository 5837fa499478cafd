//! What is printed of messages, in text or JSON.

use std::collections::VecDeque;
use std::fmt;
use std::io::Write;
use std::net::SocketAddr;

use tickwire_venues::channels::{Destination, FeedConfig};
use tickwire_venues::json::JsonLine;
use tickwire_venues::protocol::{Detector, Header, Kind, Message, Place, Protocol, Reader, Sink, Verdict};

use crate::cli::DecodeArgs;

use super::{HeldPacket, MEMBERS, Stop, Tally};

/// Where objects are written.
pub(super) struct Output<'a, W: Write> {
    pub(super) args: &'a DecodeArgs,
    pub(super) out: W,
    pub(super) line: Vec<u8>,
    pub(super) tally: Tally,
}

impl<W: Write> Output<'_, W> {
    pub(super) fn read(
        &mut self,
        reader: &mut Reader,
        origin: Origin<'_>,
        payload: &[u8],
    ) -> Result<(), Stop> {
        let origin = Origin {
            protocol: reader.protocol().name(),
            ..origin
        };
        reader.packet(
            payload,
            &mut PacketWriter {
                origin,
                trailing: 0,
                ambiguous: None,
                out: self,
            },
        )
    }

    pub(super) fn request(
        &mut self,
        protocol: Protocol,
        origin: Origin<'_>,
        payload: &[u8],
    ) -> Result<(), Stop> {
        let origin = Origin {
            protocol: protocol.name(),
            ..origin
        };
        Reader::request(
            payload,
            &mut PacketWriter {
                origin,
                trailing: 0,
                ambiguous: None,
                out: self,
            },
        )
    }

    /// Reads a packet whose protocol was found out.
    pub(super) fn judged(
        &mut self,
        detector: &mut Detector,
        verdict: Verdict,
        origin: Origin<'_>,
        payload: &[u8],
    ) -> Result<(), Stop> {
        match verdict {
            Verdict::Is(protocol) | Verdict::Idle(protocol) => {
                let reader = match origin.destination {
                    Some(destination) => detector.reader_for(protocol, destination),
                    None => detector.reader(protocol),
                };
                self.read(reader, origin, payload)
            }
            Verdict::Wait | Verdict::Unknown => {
                if let Some(destination) = origin.destination {
                    self.leave_out(destination);
                }
                Ok(())
            }
        }
    }

    /// Reads the packets that waited.
    pub(super) fn release(
        &mut self,
        name: &str,
        detector: &mut Detector,
        held: &mut VecDeque<HeldPacket>,
    ) -> Result<(), Stop> {
        while let Some(packet) = held.pop_front() {
            let verdict = detector.verdict(packet.destination, &packet.payload);
            let origin = Origin {
                file: name,
                number: packet.number,
                time: packet.time,
                destination: Some(packet.destination),
                ..Origin::default()
            };
            self.judged(detector, verdict, origin, &packet.payload)?;
        }
        Ok(())
    }

    pub(super) fn leave_out(&mut self, destination: SocketAddr) {
        *self.tally.left_out.entry(destination).or_default() += 1;
    }

    fn wanted(&self, kind: Kind, name: &str) -> bool {
        let types = &self.args.types;
        if types.is_empty() {
            return true;
        }
        let kind = kind.to_string();
        let is_byte = kind.starts_with("0x");
        types
            .iter()
            .any(|t| *t == kind || t == name || (is_byte && t.eq_ignore_ascii_case(&kind)))
    }

    /// Writes one object.
    fn put(
        &mut self,
        origin: &Origin<'_>,
        place: Place<'_>,
        write: impl FnOnce(&mut JsonLine<'_>),
    ) -> Result<(), Stop> {
        self.line.clear();
        let mut line = JsonLine::begin(&mut self.line);
        origin.write(place, &mut line);
        write(&mut line);
        line.end();
        self.out.write_all(&self.line)?;
        Ok(())
    }

    fn count_printed(&mut self) -> Result<(), Stop> {
        self.tally.printed += 1;
        match self.args.limit {
            Some(limit) if self.tally.printed >= limit => Err(Stop::Enough),
            _ => Ok(()),
        }
    }
}

/// One packet on its way to the output.
pub(super) struct PacketWriter<'o, 'a, 'b, W: Write> {
    pub(super) origin: Origin<'o>,
    /// Bytes behind the packet.
    pub(super) trailing: usize,
    /// What else the next message may be read as.
    pub(super) ambiguous: Option<String>,
    pub(super) out: &'b mut Output<'a, W>,
}

/// What a stream of TCP tells of, message by message.
pub(super) struct Shared<'o, 's, 'a, 'b, W: Write> {
    pub(super) origin: Origin<'o>,
    pub(super) out: &'s std::cell::RefCell<&'b mut Output<'a, W>>,
}

impl<W: Write> Shared<'_, '_, '_, '_, W> {
    fn told<T>(&self, tell: impl FnOnce(&mut PacketWriter<'_, '_, '_, W>) -> T) -> T {
        tell(&mut PacketWriter {
            origin: self.origin,
            trailing: 0,
            ambiguous: None,
            out: &mut **self.out.borrow_mut(),
        })
    }
}

impl<W: Write> Sink for Shared<'_, '_, '_, '_, W> {
    type Stop = Stop;

    fn header(&mut self, header: Header<'_>) -> Result<(), Stop> {
        self.told(|told| told.header(header))
    }

    fn idle(&mut self, place: Place<'_>, name: &str) -> Result<(), Stop> {
        self.told(|told| told.idle(place, name))
    }

    fn message(&mut self, place: Place<'_>, message: Message<'_>) -> Result<(), Stop> {
        self.told(|told| told.message(place, message))
    }

    fn malformed(&mut self, place: Place<'_>, error: &dyn fmt::Display, bytes: &[u8]) -> Result<(), Stop> {
        self.told(|told| told.malformed(place, error, bytes))
    }
}

impl<W: Write> Sink for PacketWriter<'_, '_, '_, W> {
    type Stop = Stop;

    fn header(&mut self, header: Header<'_>) -> Result<(), Stop> {
        self.trailing = header.trailing;
        if !self.out.args.headers {
            return Ok(());
        }
        self.out.put(&self.origin, Place::default(), |line| {
            line.text("Header", header.name);
            (header.fields)(line);
            if header.trailing > 0 {
                line.number("TrailingBytes", header.trailing as u64);
            }
        })
    }

    fn idle(&mut self, place: Place<'_>, name: &str) -> Result<(), Stop> {
        self.out.tally.idle += 1;
        if !self.out.args.types.is_empty() {
            return Ok(());
        }
        let trailing = self.trailing;
        self.out.put(&self.origin, place, |line| {
            line.text("Message", name);
            if trailing > 0 {
                line.number("TrailingBytes", trailing as u64);
            }
        })?;
        self.out.count_printed()
    }

    fn ambiguous(&mut self, readings: &str) {
        self.out.tally.ambiguous += 1;
        self.ambiguous = Some(readings.to_string());
    }

    fn message(&mut self, place: Place<'_>, message: Message<'_>) -> Result<(), Stop> {
        self.out.tally.messages += 1;
        if !self.out.wanted(message.kind, message.name) {
            self.ambiguous = None;
            return Ok(());
        }
        let ambiguous = self.ambiguous.take();
        self.out.put(&self.origin, place, |line| {
            line.text("Message", message.name);
            if let Some(readings) = &ambiguous {
                line.text("Ambiguous", readings);
            }
            line.taken(&MEMBERS, message.name);
            (message.fields)(line);
            if message.unread > 0 {
                line.number("UnreadBytes", message.unread as u64);
            }
        })?;
        self.out.count_printed()
    }

    fn malformed(&mut self, place: Place<'_>, error: &dyn fmt::Display, bytes: &[u8]) -> Result<(), Stop> {
        self.out.tally.malformed += 1;
        self.out.put(&self.origin, place, |line| {
            line.text("Error", &error.to_string());
            line.bytes("Bytes", bytes);
        })?;
        self.out.count_printed()
    }
}

/// Where a packet, or a message of a file of messages, was found.
#[derive(Clone, Copy, Default)]
pub(super) struct Origin<'a> {
    pub(super) file: &'a str,
    /// Of the packet in a capture, of the message in a file of messages; from 1.
    pub(super) number: u64,
    pub(super) time: Option<u64>,
    pub(super) destination: Option<SocketAddr>,
    pub(super) feed: Option<(&'a FeedConfig, Destination)>,
    pub(super) protocol: &'a str,
}

impl Origin<'_> {
    fn write(&self, place: Place<'_>, line: &mut JsonLine<'_>) {
        line.text("File", self.file);
        let packet = self.destination.is_some();
        line.number(if packet { "Packet" } else { "Number" }, self.number);
        if let Some(time) = self.time {
            line.number("CaptureTime", time);
        }
        if let Some(destination) = self.destination {
            line.text("Destination", &destination.to_string());
        }
        if let Some((feed, at)) = self.feed {
            line.text("Feed", feed.name());
            line.text("Channel", &feed.channels[at.channel].name);
            line.text("Port", at.port.name());
            if let Some(name) = at.line_name() {
                line.text("Line", name);
            }
        }
        line.text("Protocol", self.protocol);
        if let Some(session) = place.session {
            line.text("Session", &session.escape_ascii().to_string());
        }
        if let Some(unit) = place.unit {
            line.number("Unit", unit.into());
        }
        if let Some(seq) = place.seq {
            line.number("SequenceNumber", seq);
        }
    }
}
