//! A session of one venue in memory, for benchmarks and tests of what is behind the socket: ITCH 5.0 in
//! MoldUDP64, made by a real matching engine.

use std::hint::black_box;

use tickwire_book::{Books, prefetch};
use tickwire_exchange::{Engine, generate_itch};
use tickwire_feed::{ArbiterConfig, ItchConfig, ItchDecoder, ItchFeed};
use tickwire_market::{EventSink, InstrumentId, MarketEvent, SeqNo, Side, Symbol, Upcoming};
use tickwire_wire::moldudp64;

/// A session in memory: messages behind their length, as in a file, and the engine's books at the end.
pub struct Recorded {
    /// The messages, each behind its length in two bytes.
    pub bytes: Vec<u8>,
    /// How many.
    pub messages: u64,
    engine: Engine,
    /// Instruments, with the ids from 1.
    pub symbols: u16,
}

impl Recorded {
    /// A session of so many messages; one seed, one session.
    pub fn generate(seed: u64, messages: u64, symbols: u16) -> Recorded {
        let mut bytes = Vec::with_capacity(messages as usize * 36);
        let mut count = 0;
        let engine = generate_itch(seed, messages, symbols, &mut |message: &[u8]| {
            bytes.extend_from_slice(&(message.len() as u16).to_be_bytes());
            bytes.extend_from_slice(message);
            count += 1;
        });
        Recorded {
            bytes,
            messages: count,
            engine,
            symbols,
        }
    }

    /// The messages.
    pub fn each(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let (len, tail) = rest.split_first_chunk::<2>()?;
            let (message, tail) = tail.split_at(usize::from(u16::from_be_bytes(*len)));
            rest = tail;
            Some(message)
        })
    }

    /// As MoldUDP64 datagrams of up to `per_packet` messages and 1,400 bytes, one behind the other, each
    /// behind its length.
    pub fn packets(&self, per_packet: u16) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len() + self.bytes.len() / usize::from(per_packet));
        let mut buffer = [0_u8; 1400];
        let mut messages = self.each().peekable();
        let mut seq = SeqNo(1);
        while messages.peek().is_some() {
            let mut packet = moldudp64::PacketBuilder::new(&mut buffer, *SESSION, seq);
            while packet.count() < per_packet && messages.peek().is_some_and(|m| packet.push(m)) {
                messages.next();
            }
            seq = seq.advance(packet.count().into());
            let len = packet.finish();
            out.extend_from_slice(&(len as u16).to_be_bytes());
            out.extend_from_slice(&buffer[..len]);
        }
        out
    }

    /// How many price levels of these books are not the engine's.
    pub fn differences(&self, books: &Books) -> usize {
        let mut different = 0;
        for id in (1..=u32::from(self.symbols)).map(InstrumentId) {
            for side in Side::BOTH {
                let mut theirs = self.engine.levels(id, side);
                if let Some(book) = books.book(id) {
                    different += book
                        .levels(side)
                        .filter(|l| theirs.next().is_none_or(|t| t != *l))
                        .count();
                }
                different += theirs.count();
            }
        }
        different
    }
}

/// MoldUDP64's name of the session.
pub const SESSION: &[u8; 10] = b"BENCHMARK0";

/// Walks length-prefixed packets. The lines of the packet behind the next one are asked for, as the receive
/// loop behind AF_XDP does; a packet of a socket has just been copied. Read from memory where they lie, the
/// packets would be timed with what is done to them.
pub fn walk(packets: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut ahead = prefixed(packets);
    ahead.next();
    prefixed(packets).inspect(move |_| {
        if let Some(behind) = ahead.next() {
            prefetch::fetch_bytes(behind);
        }
    })
}

fn prefixed(packets: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = packets;
    std::iter::from_fn(move || {
        let (len, tail) = rest.split_first_chunk::<2>()?;
        let (packet, tail) = tail.split_at(usize::from(u16::from_be_bytes(*len)));
        rest = tail;
        Some(packet)
    })
}

/// Events counted, and thrown away.
#[derive(Debug)]
pub struct Discard(pub u64);

impl EventSink for Discard {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        self.0 += 1;
        black_box(event);
    }
}

/// Books alone.
pub struct BooksOnly(pub Books);

impl EventSink for BooksOnly {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        // The books are looked at in the end. An answer that had to be in memory would cost 2 to 8 % of the
        // way here.
        let _ = self.0.apply(event);
    }
    #[inline]
    fn upcoming(&mut self, next: Upcoming) {
        self.0.upcoming(next);
    }

    #[inline]
    fn arriving(&mut self, next: Upcoming) {
        self.0.arriving(next);
    }
}

/// The receiving side of such a session.
pub fn feed(symbols: u16) -> ItchFeed {
    let decoder = ItchDecoder::new(ItchConfig {
        instruments_max: u32::from(symbols) + 1,
        ..ItchConfig::default()
    });
    ItchFeed::new(ArbiterConfig::default(), decoder)
}

/// The symbol of its instrument 1.
pub fn first_symbol() -> Symbol {
    tickwire_exchange::listings(1)[0].symbol
}
