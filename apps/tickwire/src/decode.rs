//! `tickwire decode`: one JSON object per message, on standard output.
//!
//! Every object begins with where the message comes from (file, packet or offset, time, addresses, session, sequence
//! number), then its name and every field as the specification names them. What cannot be decoded is an object too, with
//! `"Error"`, so that nothing is passed over in silence.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use tickwire_market::SeqNo;
use tickwire_runtime::capture::{self, CaptureReader, UdpPacket};
use tickwire_runtime::itchfile::{ItchFile, Recording};
use tickwire_wire::moldudp64::{self, Payload};
use tickwire_wire::{Malformed, itch50};

use crate::cli::{DecodeArgs, Protocol};
use crate::failure::Failure;
use crate::json::JsonLine;

/// What was found, for the closing line and the exit code.
#[derive(Debug, Default)]
struct Tally {
    packets: u64,
    messages: u64,
    malformed: u64,
    not_udp: u64,
    printed: u64,
}

/// Stops the walk: the limit is reached, or the reader of our output has gone.
enum Stop {
    Enough,
    Output(io::Error),
}

impl From<io::Error> for Stop {
    fn from(e: io::Error) -> Stop {
        Stop::Output(e)
    }
}

struct Decoder<'a, W: Write> {
    args: &'a DecodeArgs,
    out: W,
    tally: Tally,
}

pub(crate) fn run(args: &DecodeArgs) -> Result<(), Failure> {
    let stdout = io::stdout().lock();
    let mut decoder = Decoder {
        args,
        out: BufWriter::with_capacity(1 << 16, stdout),
        tally: Tally::default(),
    };
    let mut damaged = None;
    for file in &args.files {
        match decoder.file(file) {
            Ok(()) => {}
            Err(FileEnd::Stopped(Stop::Enough)) => break,
            // Whoever reads our output has seen enough (`| head`): a good end.
            Err(FileEnd::Stopped(Stop::Output(e))) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(FileEnd::Stopped(Stop::Output(e))) => {
                return Err(Failure::system(format!("cannot write the output: {e}")));
            }
            Err(FileEnd::Damaged(message)) => damaged = Some(message),
        }
    }
    match decoder.out.flush() {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            return Err(Failure::system(format!("cannot write the output: {e}")));
        }
        _ => {}
    }
    let t = &decoder.tally;
    eprintln!(
        "{} messages in {} packets; {} malformed, {} frames without UDP",
        t.messages, t.packets, t.malformed, t.not_udp
    );
    match damaged {
        Some(message) => Err(Failure::check(message)),
        None if t.malformed > 0 && t.messages == 0 => Err(Failure::check(
            "nothing in it is ITCH 5.0 in MoldUDP64, the only protocol in packets that `decode` reads so far",
        )),
        None if t.malformed > 0 => Err(Failure::check(format!(
            "{} packets or messages could not be decoded; they are the lines with \"Error\"",
            t.malformed
        ))),
        None => Ok(()),
    }
}

/// Why a file was not read to its end.
enum FileEnd {
    Stopped(Stop),
    Damaged(String),
}

impl<E: Into<Stop>> From<E> for FileEnd {
    fn from(e: E) -> FileEnd {
        FileEnd::Stopped(e.into())
    }
}

impl<W: Write> Decoder<'_, W> {
    fn file(&mut self, path: &Path) -> Result<(), FileEnd> {
        let damaged = |e: capture::CaptureError| FileEnd::Damaged(e.to_string());
        let name = path.display().to_string();
        match Recording::open(path, itch50::message_size).map_err(damaged)? {
            Recording::Packets(reader) => self.packets(&name, reader),
            Recording::Messages(file) => self.messages(&name, file),
        }
    }

    fn packets(&mut self, name: &str, mut reader: CaptureReader) -> Result<(), FileEnd> {
        if self.args.protocol == Protocol::Itch50File {
            return Err(FileEnd::Damaged(format!(
                "{name} is a packet capture, not a file of messages; leave --protocol out"
            )));
        }
        let mut number = 0_u64;
        while let Some(packet) = reader
            .next_packet()
            .map_err(|e| FileEnd::Damaged(e.to_string()))?
        {
            number += 1;
            self.tally.packets += 1;
            let Ok(udp) = capture::udp(packet.link, packet.bytes) else {
                self.tally.not_udp += 1;
                continue;
            };
            let origin = Origin {
                file: name,
                number,
                time: packet.time.map(|t| t.0),
                udp: Some(&udp),
            };
            self.datagram(&origin, udp.payload)?;
        }
        Ok(())
    }

    fn messages(&mut self, name: &str, mut file: ItchFile) -> Result<(), FileEnd> {
        let mut number = 0;
        while let Some(message) = file.next_message().map_err(|e| FileEnd::Damaged(e.to_string()))? {
            number += 1;
            let origin = Origin {
                file: name,
                number,
                time: None,
                udp: None,
            };
            self.message(&origin, None, message.bytes)?;
        }
        Ok(())
    }

    fn datagram(&mut self, origin: &Origin<'_>, payload: &[u8]) -> Result<(), Stop> {
        let packet = match moldudp64::parse(payload) {
            Ok(packet) => packet,
            Err(e) => return self.malformed(origin, None, e),
        };
        match packet.payload {
            Payload::Heartbeat => self.framing(origin, &packet, "Heartbeat"),
            Payload::EndOfSession => self.framing(origin, &packet, "EndOfSession"),
            Payload::Messages(blocks) => {
                let mut seq = packet.seq;
                for block in blocks {
                    self.message(origin, Some((&packet.session, seq)), block)?;
                    seq = seq.next();
                }
                Ok(())
            }
        }
    }

    /// A packet without messages.
    fn framing(
        &mut self,
        origin: &Origin<'_>,
        packet: &moldudp64::Packet<'_>,
        name: &str,
    ) -> Result<(), Stop> {
        if !self.args.types.is_empty() {
            return Ok(());
        }
        let mut line = origin.begin(&mut self.out, Some((&packet.session, packet.seq)));
        line.text("Message", name);
        line.end()?;
        self.count_printed()
    }

    fn message(&mut self, origin: &Origin<'_>, place: Place<'_>, bytes: &[u8]) -> Result<(), Stop> {
        self.tally.messages += 1;
        if let [kind, ..] = bytes
            && !self.args.types.is_empty()
            && !self.args.types.contains(&char::from(*kind))
        {
            return Ok(());
        }
        let message = match itch50::parse(bytes) {
            Ok(message) => message,
            Err(e) => return self.malformed(origin, place, e),
        };
        let mut line = origin.begin(&mut self.out, place);
        line.text("Message", message.name());
        message.visit(&mut |name, value| line.field(name, value));
        line.end()?;
        self.count_printed()
    }

    fn malformed(&mut self, origin: &Origin<'_>, place: Place<'_>, e: Malformed) -> Result<(), Stop> {
        self.tally.malformed += 1;
        let mut line = origin.begin(&mut self.out, place);
        line.text("Error", &e.to_string());
        line.end()?;
        self.count_printed()
    }

    fn count_printed(&mut self) -> Result<(), Stop> {
        self.tally.printed += 1;
        match self.args.limit {
            Some(limit) if self.tally.printed >= limit => Err(Stop::Enough),
            _ => Ok(()),
        }
    }
}

/// Session and sequence number, where the transport has them.
type Place<'a> = Option<(&'a [u8; 10], SeqNo)>;

/// Where a message was found.
struct Origin<'a> {
    file: &'a str,
    /// Of the packet in a capture, of the message in a file of messages; from 1.
    number: u64,
    time: Option<u64>,
    udp: Option<&'a UdpPacket<'a>>,
}

impl Origin<'_> {
    fn begin<'o, W: Write>(&self, out: &'o mut W, place: Place<'_>) -> JsonLine<'o, W> {
        let mut line = JsonLine::begin(out);
        line.text("File", self.file);
        line.number(if self.udp.is_some() { "Packet" } else { "Number" }, self.number);
        if let Some(time) = self.time {
            line.number("CaptureTime", time);
        }
        if let Some(udp) = self.udp {
            line.text("Destination", &udp.destination.to_string());
        }
        if let Some((session, seq)) = place {
            line.text("Session", &session.escape_ascii().to_string());
            line.number("SequenceNumber", seq.0);
        }
        line
    }
}
