//! Days of the Moscow Exchange: which datagrams of a capture are the order log, and what a packet asks of a
//! core.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tickwire_feed_core::Line;
use tickwire_market::{EventKind, EventSink, InstrumentId, MarketEvent, Nanos, Symbol};
use tickwire_rtl::Moex;
use tickwire_runtime::capture::{CaptureReader, udp};
use tickwire_wire_moex::fast::Limits;
use tickwire_wire_moex::moex::{Decoder, OrderKind, PREAMBLE_LEN, preamble};

use crate::software::moex_feed;
use crate::{CosimError, Day, Packet, Work};

/// Clocks of a core's book, in changes, for an instrument without orders: its store is emptied.
const CLEAR_CHANGES: u64 = 90;

/// What a feed says of one instrument.
struct Seen {
    instrument: Option<InstrumentId>,
    prices: Vec<u32>,
}

impl EventSink for Seen {
    fn on_event(&mut self, event: &MarketEvent) {
        if event.kind == EventKind::Add {
            self.instrument = Some(event.instrument);
            self.prices.extend(tickwire_rtl::frame::wire_price(event.price));
        }
    }
}

impl Day {
    /// Reads captures: the datagrams to whatever address the order log goes to. What both lines lost, and
    /// everything behind it, is left out.
    ///
    /// # Errors
    /// A file that cannot be read, or none with messages of the order log.
    pub fn read_moex(files: &[PathBuf], moex: &Moex) -> Result<Day, CosimError> {
        let mut decoder = decoder(moex).ok_or(CosimError::NoPackets)?;
        let template = moex
            .templates
            .template_named(&moex.template)
            .map(|template| template.id());
        let mut targets = BTreeSet::new();
        each_datagram(files, |destination, bytes| {
            let is_order_log = decoder
                .packet(bytes)
                .is_ok_and(|message| Some(message.template_id()) == template);
            if is_order_log {
                targets.insert(destination);
            }
        })?;
        let (mut found, mut again) = (BTreeMap::new(), 0);
        let left_out = each_datagram(files, |destination, bytes| {
            match preamble(bytes).filter(|_| targets.contains(&destination)) {
                Some(number) if !found.contains_key(&u64::from(number)) => {
                    let packet = Packet {
                        seq: number.into(),
                        messages: 1,
                        bytes: bytes.to_vec(),
                    };
                    found.insert(packet.seq, packet);
                }
                _ => again += 1,
            }
        })?;
        let left_out = left_out + again;
        match found.is_empty() {
            true => Err(CosimError::NoPackets),
            false => Ok(Day::in_sequence([0; 10], found, left_out)),
        }
    }

    /// The number that the software's decoder gives an instrument, and the price, in 1e-4, in the middle of
    /// those at which its orders were added; `None` where none was.
    pub(crate) fn of_moex(&self, moex: &Moex, symbol: &Symbol) -> Option<(InstrumentId, u32)> {
        let mut feed = moex_feed(moex, symbol)?;
        let mut seen = Seen {
            instrument: None,
            prices: Vec::new(),
        };
        for packet in &self.packets {
            feed.on_packet(Nanos::ZERO, Line::A, &packet.bytes, &mut seen);
        }
        seen.prices.sort_unstable();
        let middle = seen.prices.get(seen.prices.len() / 2).copied()?;
        Some((seen.instrument?, middle))
    }

    /// What each packet asks of a core for an instrument.
    pub(crate) fn work_of_moex(&self, moex: &Moex, symbol: &Symbol) -> Vec<Work> {
        let Some(mut decoder) = decoder(moex) else {
            return vec![Work::default(); self.packets.len()];
        };
        let instrument = moex.instrument(symbol);
        let of_packet = |packet: &Packet| {
            let message = decoder.packet(&packet.bytes).ok();
            let entries = message.into_iter().flat_map(|message| message.orders().flatten());
            let changes = entries
                .filter(|entry| (entry.symbol, entry.board) == instrument)
                .map(|entry| match entry.kind {
                    OrderKind::EmptyBook => CLEAR_CHANGES,
                    OrderKind::Order(_) => 1,
                });
            // Two tokens in a clock, where both end in the same word.
            let tokens = packet.bytes[PREAMBLE_LEN..]
                .iter()
                .filter(|byte| **byte >= 0x80)
                .count() as u64;
            Work {
                changes: changes.sum(),
                decode: tokens * 3 / 4 + 4,
            }
        };
        self.packets.iter().map(of_packet).collect()
    }
}

/// Every UDP datagram of captures with its destination; how many packets were none.
fn each_datagram(files: &[PathBuf], mut each: impl FnMut(SocketAddr, &[u8])) -> Result<u64, CosimError> {
    let mut left_out = 0;
    for file in files {
        let failed = |error: &dyn std::fmt::Display| CosimError::Capture(file.clone(), error.to_string());
        let mut reader = CaptureReader::open(file).map_err(|e| failed(&e))?;
        while let Some(packet) = reader.next_packet().map_err(|e| failed(&e))? {
            match udp(packet.link, packet.bytes) {
                Ok(datagram) => each(datagram.destination, datagram.payload),
                Err(_) => left_out += 1,
            }
        }
    }
    Ok(left_out)
}

fn decoder(moex: &Moex) -> Option<Decoder> {
    Decoder::new(Arc::clone(&moex.templates), Limits::default()).ok()
}
