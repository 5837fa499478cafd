//! A day of a feed: the packets of a capture, each once, in sequence.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tickwire_market::Symbol;
use tickwire_runtime::capture::{CaptureReader, udp};
use tickwire_wire_nasdaq::itch50::{self, Message};
use tickwire_wire_nasdaq::moldudp64::{self, Payload};

use crate::CosimError;

/// Packets of one feed, of ITCH of one MoldUDP64 session, in sequence and without a hole.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Day {
    /// The session of MoldUDP64.
    pub session: [u8; 10],
    /// Datagrams.
    pub packets: Vec<Packet>,
    /// Packets in the capture that were there already, or of another session or protocol.
    pub left_out: u64,
}

/// A datagram of a day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Of its first message.
    pub seq: u64,
    /// Messages in it.
    pub messages: u32,
    /// The datagram.
    pub bytes: Vec<u8>,
}

impl Day {
    /// Reads captures: whatever in them is MoldUDP64 of the first session that has messages. What both lines
    /// lost, and everything behind it, is left out.
    ///
    /// # Errors
    /// A file that cannot be read, or none with such packets.
    pub fn read(files: &[PathBuf]) -> Result<Day, CosimError> {
        let mut session = None;
        let mut found: BTreeMap<u64, Packet> = BTreeMap::new();
        let mut left_out = 0;
        for file in files {
            let failed = |error: &dyn std::fmt::Display| CosimError::Capture(file.clone(), error.to_string());
            let mut reader = CaptureReader::open(file).map_err(|e| failed(&e))?;
            while let Some(packet) = reader.next_packet().map_err(|e| failed(&e))? {
                let Ok(datagram) = udp(packet.link, packet.bytes) else {
                    left_out += 1;
                    continue;
                };
                let known = moldudp64::parse(datagram.payload).ok().filter(|mold| {
                    mold.count() > 0 && (session.is_none() || session == Some(mold.session)) && is_itch(mold)
                });
                match known {
                    Some(mold) if !found.contains_key(&mold.seq.0) => {
                        session = Some(mold.session);
                        let packet = Packet {
                            seq: mold.seq.0,
                            messages: mold.count().into(),
                            bytes: datagram.payload.to_vec(),
                        };
                        found.insert(packet.seq, packet);
                    }
                    _ => left_out += 1,
                }
            }
        }
        let session = session.ok_or(CosimError::NoPackets)?;
        Ok(Day::in_sequence(session, found, left_out))
    }

    /// Packets as far as there is no hole.
    pub(crate) fn in_sequence(session: [u8; 10], found: BTreeMap<u64, Packet>, left_out: u64) -> Day {
        let mut day = Day {
            session,
            packets: Vec::with_capacity(found.len()),
            left_out,
        };
        let mut next = None;
        for (seq, packet) in found {
            if next.is_none_or(|next| next == seq) {
                next = Some(seq + u64::from(packet.messages));
                day.packets.push(packet);
            } else {
                day.left_out += 1;
            }
        }
        day
    }

    /// A file of messages with two bytes of length before each, as packets of several.
    ///
    /// # Errors
    /// A file that cannot be read or breaks off.
    pub fn of_messages(file: &Path, per_packet: impl FnMut() -> usize) -> Result<Day, CosimError> {
        let failed =
            |error: &dyn std::fmt::Display| CosimError::Capture(file.to_path_buf(), error.to_string());
        let bytes = std::fs::read(file).map_err(|e| failed(&e))?;
        let mut messages = Vec::new();
        let mut rest = &bytes[..];
        while let Some((length, after)) = rest.split_first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*length));
            let message = after
                .get(..length)
                .ok_or_else(|| failed(&"it breaks off in a message"))?;
            messages.push(message.to_vec());
            rest = &after[length..];
        }
        Ok(Day::of(&messages, per_packet))
    }

    /// Messages as packets; `per_packet` says how many the next one has.
    pub fn of(messages: &[Vec<u8>], mut per_packet: impl FnMut() -> usize) -> Day {
        let session = *b"TICKWIRE01";
        let (mut packets, mut at) = (Vec::new(), 0);
        while at < messages.len() {
            let mut bytes = Vec::new();
            bytes.extend_from_slice(&session);
            bytes.extend_from_slice(&(at as u64 + 1).to_be_bytes());
            bytes.extend_from_slice(&[0, 0]);
            let (first, most) = (at, per_packet().max(1));
            while at < messages.len() && at - first < most && bytes.len() + 2 + messages[at].len() < 1_400 {
                bytes.extend_from_slice(&(messages[at].len() as u16).to_be_bytes());
                bytes.extend_from_slice(&messages[at]);
                at += 1;
            }
            let count = at - first;
            bytes[18..20].copy_from_slice(&(count as u16).to_be_bytes());
            packets.push(Packet {
                seq: first as u64 + 1,
                messages: count as u32,
                bytes,
            });
        }
        Day {
            session,
            packets,
            left_out: 0,
        }
    }

    /// All messages.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        self.packets
            .iter()
            .flat_map(
                |packet| match moldudp64::parse(&packet.bytes).map(|mold| mold.payload) {
                    Ok(Payload::Messages(blocks)) => Some(blocks),
                    _ => None,
                },
            )
            .flatten()
    }

    /// The stock locate of a symbol, where the day says it.
    pub fn locate(&self, symbol: &Symbol) -> Option<u16> {
        self.messages().find_map(|message| match itch50::parse(message) {
            Ok(Message::StockDirectory(m)) if m.stock.symbol().as_ref() == Some(symbol) => {
                Some(m.locate.get())
            }
            _ => None,
        })
    }

    /// Every symbol that the day names, with its locate and how many orders were added.
    pub fn symbols(&self) -> Vec<(Symbol, u16, u64)> {
        let mut found: BTreeMap<u16, (Option<Symbol>, u64)> = BTreeMap::new();
        for message in self.messages() {
            match itch50::parse(message) {
                Ok(Message::StockDirectory(m)) => {
                    found.entry(m.locate.get()).or_default().0 = m.stock.symbol()
                }
                Ok(Message::AddOrder(m)) => found.entry(m.locate.get()).or_default().1 += 1,
                _ => {}
            }
        }
        let named = found
            .into_iter()
            .filter_map(|(locate, (symbol, orders))| Some((symbol?, locate, orders)));
        named.collect()
    }

    /// The price, in 1e-4, in the middle of those at which orders of an instrument were added.
    pub fn middle(&self, locate: u16) -> Option<u32> {
        let mut prices: Vec<u32> = self
            .messages()
            .filter_map(|message| match itch50::parse(message) {
                Ok(Message::AddOrder(m)) if m.locate.get() == locate => Some(m.price.0.get()),
                _ => None,
            })
            .collect();
        prices.sort_unstable();
        prices.get(prices.len() / 2).copied()
    }
}

/// Whether a packet's messages are of the sizes that ITCH has.
fn is_itch(mold: &moldudp64::Packet<'_>) -> bool {
    let Payload::Messages(blocks) = &mold.payload else {
        return false;
    };
    let is_known = |message: &[u8]| {
        message
            .first()
            .and_then(|kind| itch50::message_size(*kind))
            .is_some_and(|size| message.len() >= size)
    };
    blocks.clone().all(is_known)
}
