//! Streams of every framing from a seed, a filter in the interpreter, and what a reader makes of what is
//! delivered. Shared with the tests that run the same packets through the kernel.
#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod quotes;

use std::collections::{BTreeMap, BTreeSet};
use tickwire_kernel::asm::Program;
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group, MapKind};
use tickwire_kernel::frame;
use tickwire_kernel::interp::{Machine, Map};
use tickwire_kernel::layout::{self, Count, Meta, Sizes};
use tickwire_kernel::trigger::{Condition, itch, nyse};
use tickwire_market::SeqNo;
use tickwire_testdata::Rng;
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::zerocopy::IntoBytes;
use tickwire_wire::{itch50, mdp3, moldudp64, openbook, pitch, xdp};

pub(crate) const LINES: [Group; 2] = [
    Group::new([233, 54, 12, 111], 26477),
    Group::new([233, 86, 230, 111], 26477),
];
pub(crate) const SESSION: [u8; 10] = *b"S000000001";
pub(crate) const UNIT: u8 = 3;
/// Instruments that are wanted; the streams are about 1 to [`INSTRUMENTS`].
pub(crate) const WANTED: [u32; 3] = [7, 40, 77];
pub(crate) const INSTRUMENTS: u64 = 120;

/// One packet of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) seq: u64,
    /// Numbers it uses.
    pub(crate) count: u64,
    /// Whether its receiver needs it.
    pub(crate) wanted: bool,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn spec(framing: Framing) -> FilterSpec {
    FilterSpec {
        channels: vec![ChannelSpec {
            framing,
            groups: LINES.to_vec(),
            set: 0,
        }],
        ..FilterSpec::default()
    }
}

pub(crate) fn symbol(instrument: u32) -> [u8; 8] {
    let mut text = *b"S       ";
    for (at, digit) in format!("{instrument}").bytes().enumerate() {
        text[at + 1] = digit;
    }
    text
}

/// What stands for an instrument where messages name it by a key.
pub(crate) fn key(framing: Framing, instrument: u32) -> u64 {
    match framing {
        Framing::Pitch | Framing::Cqs | Framing::Uqdf => u64::from_le_bytes(symbol(instrument)),
        Framing::Mdp3 => instrument.into(),
        _ => panic!("no keys"),
    }
}

/// The instruments of the streams that nobody wants.
fn unwanted() -> impl Iterator<Item = u32> {
    (0..=INSTRUMENTS as u32).filter(|instrument| !WANTED.contains(instrument))
}

/// What is said of who is wanted: the bits that are set, and the keys that are refused.
pub(crate) fn said(framing: Framing) -> (Vec<usize>, Vec<u64>) {
    let key = |instrument| key(framing, instrument);
    match framing {
        Framing::Any => (Vec::new(), Vec::new()),
        _ if framing.has_symbol_bits() => {
            // Half of those that nobody wants have no bit, the other half is refused.
            let refused: Vec<u64> = unwanted().filter(|n| n % 2 == 0).map(key).collect();
            let wanted = WANTED.into_iter().map(key);
            let bits = wanted.chain(refused.iter().copied()).map(layout::key_bit);
            (bits.collect(), refused)
        }
        _ if framing.is_keyed() => (Vec::new(), unwanted().map(key).collect()),
        _ => (WANTED.map(|instrument| instrument as usize).to_vec(), Vec::new()),
    }
}

/// The two words of the session.
pub(crate) fn session(framing: Framing) -> [u64; 2] {
    match framing {
        Framing::Itch | Framing::Uqdf => {
            let (a, b) = SESSION.split_first_chunk::<8>().expect("ten bytes");
            [u64::from_ne_bytes(*a), u16::from_ne_bytes([b[0], b[1]]).into()]
        }
        Framing::Pitch => [UNIT.into(), 0],
        _ => [0, 0],
    }
}

/// A stream of `packets` packets, in order. `rare`: one message in so many is about a wanted instrument.
pub(crate) fn stream(framing: Framing, packets: usize, rng: &mut Rng, rare: u64) -> Vec<Packet> {
    let mut maker = Maker::default();
    let mut seq = 1;
    let mut made = Vec::new();
    for _ in 0..packets {
        let messages = 1 + rng.below(9);
        let packet = maker.packet(framing, seq, messages, rng, rare);
        seq += packet.count;
        made.push(packet);
    }
    made
}

#[derive(Default)]
struct Maker {
    /// Orders of PITCH, and whether they are wanted.
    orders: Vec<(u64, bool)>,
    last_order: u64,
    /// A match event with something wanted goes on.
    open: bool,
}

fn instrument(rng: &mut Rng, rare: u64) -> (u32, bool) {
    if rng.below(rare) == 0 {
        return (WANTED[rng.below(3) as usize], true);
    }
    loop {
        let other = 1 + rng.below(INSTRUMENTS) as u32;
        if !WANTED.contains(&other) {
            return (other, false);
        }
    }
}

impl Maker {
    fn packet(&mut self, framing: Framing, seq: u64, messages: u64, rng: &mut Rng, rare: u64) -> Packet {
        let mut buffer = [0; 1400];
        let (mut wanted, mut count) = (false, messages);
        let length = match framing {
            Framing::Itch => {
                let mut p = moldudp64::PacketBuilder::new(&mut buffer, SESSION, SeqNo(seq));
                for _ in 0..messages {
                    let (locate, is) = instrument(rng, rare);
                    let locate = locate as u16;
                    let (pushed, is) = match rng.below(40) {
                        0 => (p.push(itch50::SystemEvent::at(0, 1).as_bytes()), true),
                        1 => (p.push(itch50::StockDirectory::at(locate, 1).as_bytes()), true),
                        2..10 => (p.push(itch50::OrderDelete::at(locate, 1).as_bytes()), is),
                        10..20 => (p.push(itch50::OrderExecuted::at(locate, 1).as_bytes()), is),
                        _ => (p.push(itch50::AddOrder::at(locate, 1).as_bytes()), is),
                    };
                    assert!(pushed);
                    wanted |= is;
                }
                p.finish()
            }
            Framing::Pitch => {
                let mut p = pitch::PacketBuilder::new(&mut buffer, UNIT, seq as u32);
                for _ in 0..messages {
                    wanted |= self.pitch(&mut p, rng, rare);
                }
                p.finish()
            }
            Framing::Nyse => {
                let flag = xdp::DeliveryFlag::Original;
                let mut p = xdp::PacketBuilder::new(&mut buffer, flag, seq as u32, tickwire_market::Nanos(1));
                for _ in 0..messages {
                    let (index, is) = instrument(rng, rare);
                    let index = index.into();
                    let (pushed, is) = match rng.below(60) {
                        0 => (
                            p.push(
                                xdp::SymbolIndexMapping {
                                    symbol_index: index,
                                    ..xdp::SymbolIndexMapping::NEW
                                }
                                .as_bytes(),
                            ),
                            true,
                        ),
                        1 => (
                            p.push(
                                xdp::SecurityStatus {
                                    symbol_index: index,
                                    ..xdp::SecurityStatus::NEW
                                }
                                .as_bytes(),
                            ),
                            true,
                        ),
                        2..12 => (
                            p.push(
                                xdp::Imbalance {
                                    symbol_index: index,
                                    ..xdp::Imbalance::NEW
                                }
                                .as_bytes(),
                            ),
                            is,
                        ),
                        12..30 => (
                            p.push(
                                xdp::DeleteOrder {
                                    symbol_index: index,
                                    ..xdp::DeleteOrder::NEW
                                }
                                .as_bytes(),
                            ),
                            is,
                        ),
                        _ => (
                            p.push(
                                xdp::AddOrder {
                                    symbol_index: index,
                                    ..xdp::AddOrder::NEW
                                }
                                .as_bytes(),
                            ),
                            is,
                        ),
                    };
                    assert!(pushed);
                    wanted |= is;
                }
                p.finish()
            }
            Framing::Any => panic!("what is not looked into has no stream of its own"),
            Framing::Cqs | Framing::Uqdf | Framing::OpenBook | Framing::Moex => {
                let length;
                (length, wanted, count) = quotes::packet(framing, &mut buffer, (seq, messages), rng, rare);
                length
            }
            Framing::Mdp3 => {
                count = 1;
                let mut p = mdp3::PacketBuilder::new(&mut buffer, seq as u32, 1);
                let mut ends = false;
                let (was_open, mut found) = (self.open, false);
                for _ in 0..1 + messages / 4 {
                    ends = rng.below(3) > 0;
                    let indicator = if ends { mdp3::indicator::END_OF_EVENT } else { 0 };
                    let root = mdp3::EventRoot {
                        indicator,
                        ..mdp3::EventRoot::BLANK
                    };
                    let ids: Vec<u32> = (0..rng.below(5))
                        .map(|_| {
                            let (id, is) = instrument(rng, rare);
                            found |= is;
                            id
                        })
                        .collect();
                    let id = |id: &u32| (*id as i32).into();
                    let pushed = match rng.below(3) {
                        0 => p.push(|b| {
                            let trades = ids.iter().map(|i| mdp3::TradeEntry {
                                security_id: id(i),
                                ..mdp3::TradeEntry::BLANK
                            });
                            mdp3::TradeSummary::encode(b, &root, trades, [])
                        }),
                        1 => p.push(|b| {
                            let entries = ids.iter().map(|i| mdp3::VolumeEntry {
                                security_id: id(i),
                                ..mdp3::VolumeEntry::BLANK
                            });
                            mdp3::Volume::encode(b, &root, entries)
                        }),
                        _ => p.push(|b| {
                            let entries = ids.iter().map(|i| mdp3::BookEntry {
                                security_id: id(i),
                                ..mdp3::BookEntry::BLANK
                            });
                            let order = mdp3::OrderEntry {
                                order_id: 5.into(),
                                ..mdp3::OrderEntry::BLANK
                            };
                            mdp3::Book::encode(b, &root, entries, [order])
                        }),
                    };
                    assert!(pushed);
                }
                wanted = found || was_open;
                self.open = wanted && !ends;
                p.finish()
            }
        };
        Packet {
            seq,
            count,
            wanted,
            payload: buffer[..length].to_vec(),
        }
    }

    fn pitch(&mut self, p: &mut pitch::PacketBuilder<'_>, rng: &mut Rng, rare: u64) -> bool {
        let pick = |rng: &mut Rng, orders: &[(u64, bool)]| rng.below(orders.len() as u64) as usize;
        match rng.below(20) {
            0 => {
                assert!(p.push(pitch::Time::BLANK_MESSAGE.as_bytes()));
                true
            }
            1 => {
                let (which, is) = instrument(rng, rare);
                let message = pitch::TradingStatus {
                    symbol: Alpha(symbol(which)),
                    ..pitch::TradingStatus::BLANK_MESSAGE
                };
                assert!(p.push(message.as_bytes()));
                is
            }
            2..7 if !self.orders.is_empty() => {
                let (id, is) = self.orders[pick(rng, &self.orders)];
                let message = pitch::OrderExecuted {
                    order_id: id.into(),
                    ..pitch::OrderExecuted::BLANK_MESSAGE
                };
                assert!(p.push(message.as_bytes()));
                is
            }
            7..11 if !self.orders.is_empty() => {
                let at = pick(rng, &self.orders);
                let (id, is) = self.orders.swap_remove(at);
                let message = pitch::DeleteOrder {
                    order_id: id.into(),
                    ..pitch::DeleteOrder::BLANK_MESSAGE
                };
                assert!(p.push(message.as_bytes()));
                is
            }
            _ => {
                let (which, is) = instrument(rng, rare);
                // Numbers come again, as the venue allows.
                let gone = rng.below(4) == 0 && self.last_order > 0;
                let old = 1 + rng.below(self.last_order.max(1));
                let id = match gone && !self.orders.iter().any(|(id, _)| *id == old) {
                    true => old,
                    false => {
                        self.last_order += 1;
                        self.last_order
                    }
                };
                self.orders.push((id, is));
                let [a, b, c, d, e, f, ..] = symbol(which);
                let pushed = match rng.below(3) {
                    0 => p.push(
                        pitch::AddOrderExpanded {
                            order_id: id.into(),
                            symbol: Alpha(symbol(which)),
                            ..pitch::AddOrderExpanded::BLANK_MESSAGE
                        }
                        .as_bytes(),
                    ),
                    1 => p.push(
                        pitch::AddOrderLong {
                            order_id: id.into(),
                            symbol: Alpha([a, b, c, d, e, f]),
                            ..pitch::AddOrderLong::BLANK_MESSAGE
                        }
                        .as_bytes(),
                    ),
                    _ => p.push(
                        pitch::AddOrderShort {
                            order_id: id.into(),
                            symbol: Alpha([a, b, c, d, e, f]),
                            ..pitch::AddOrderShort::BLANK_MESSAGE
                        }
                        .as_bytes(),
                    ),
                };
                assert!(pushed);
                is
            }
        }
    }
}

/// New orders, each its instrument, side, quantity and price, in one packet.
pub(crate) fn adds(framing: Framing, seq: u64, prices: &[(u32, u8, u32, u32)]) -> Vec<u8> {
    let mut buffer = [0; 1_700];
    let length = match framing {
        Framing::Itch => {
            let mut p = moldudp64::PacketBuilder::new(&mut buffer, SESSION, SeqNo(seq));
            for &(index, side, shares, price) in prices {
                let mut add = itch50::AddOrder::at(index as u16, 1);
                add.side = Char(side);
                add.shares = shares.into();
                add.price.0 = price.into();
                assert!(p.push(add.as_bytes()));
            }
            p.finish()
        }
        _ => {
            let flag = xdp::DeliveryFlag::Original;
            let mut p = xdp::PacketBuilder::new(&mut buffer, flag, seq as u32, tickwire_market::Nanos(1));
            for &(index, side, volume, price) in prices {
                let add = xdp::AddOrder {
                    symbol_index: index.into(),
                    side: Char(side),
                    volume: volume.into(),
                    price: price.cast_signed().into(),
                    ..xdp::AddOrder::NEW
                };
                assert!(p.push(add.as_bytes()));
            }
            p.finish()
        }
    };
    buffer[..length].to_vec()
}

/// Somebody sells an instrument: at this price at most, so much at least.
pub(crate) fn offer(framing: Framing, index: u32, at_most: u64, least: u64) -> Condition {
    let (message, [side, price, shares]) = match framing {
        Framing::Itch => (
            itch::ADD_ORDER,
            [
                itch::ADD_ORDER_SIDE,
                itch::ADD_ORDER_PRICE,
                itch::ADD_ORDER_SHARES,
            ],
        ),
        _ => (
            nyse::ADD_ORDER,
            [
                nyse::ADD_ORDER_SIDE,
                nyse::ADD_ORDER_PRICE,
                nyse::ADD_ORDER_VOLUME,
            ],
        ),
    };
    Condition::new(message, index)
        .and(side, b'S'.into()..=b'S'.into())
        .and_then(|c| c.and(price, 0..=at_most))
        .and_then(|c| c.and(shares, least..=u64::MAX))
        .expect("a condition")
}

/// What happens to a stream on its way: place in the stream and line of every arrival, in order of time.
pub(crate) fn arrivals(packets: usize, rng: &mut Rng, loss: u64, far: u64) -> Vec<(usize, usize)> {
    let mut events = Vec::new();
    for line in 0..LINES.len() {
        for at in 0..packets {
            if loss > 0 && rng.below(loss) == 0 {
                continue;
            }
            let late = if far > 0 && rng.below(far) == 0 {
                rng.below(80)
            } else {
                rng.below(4)
            };
            events.push((at as u64 * 10 + late + rng.below(9) * line as u64, at, line));
            if rng.below(200) == 0 {
                events.push((at as u64 * 10 + 30, at, line));
            }
        }
    }
    events.sort_unstable();
    events.into_iter().map(|(_, at, line)| (at, line)).collect()
}

pub(crate) fn framed(payload: &[u8], line: usize, tags: usize) -> Vec<u8> {
    let mut buffer = vec![0; payload.len() + 60];
    let to = LINES[line];
    let length = frame::encode(&mut buffer, tags, (to.address, to.port), payload).expect("room");
    buffer.truncate(length);
    buffer
}

/// A filter in the interpreter.
pub(crate) struct Filter {
    pub(crate) program: Program,
    pub(crate) machine: Machine,
    pub(crate) sizes: Sizes,
    pub(crate) framing: Framing,
    pub(crate) epoch: u16,
}

/// The instruments of a packet's messages, read without the program: what statistics have of a dropped
/// packet.
pub(crate) fn instruments_of(framing: Framing, payload: &[u8]) -> Vec<usize> {
    match framing {
        Framing::Itch => {
            let (mut rest, mut found) = (&payload[20..], Vec::new());
            for _ in 0..u16::from_be_bytes([payload[18], payload[19]]) {
                let length = u16::from_be_bytes([rest[0], rest[1]]);
                found.push(usize::from(u16::from_be_bytes([rest[3], rest[4]])));
                rest = &rest[2 + usize::from(length)..];
            }
            found
        }
        Framing::Nyse => {
            let (mut rest, mut found) = (&payload[16..], Vec::new());
            for _ in 0..payload[3] {
                let (size, kind) = (
                    u16::from_le_bytes([rest[0], rest[1]]),
                    u16::from_le_bytes([rest[2], rest[3]]),
                );
                // Imbalances have a source time in front of the index.
                let at = if kind == 105 { 12 } else { 8 };
                let index = rest[at..].first_chunk::<4>().expect("an index");
                found.push(u32::from_le_bytes(*index) as usize);
                rest = &rest[usize::from(size)..];
            }
            found
        }
        // Sizes and indices of full updates and of deltas stand at the same places.
        Framing::OpenBook => {
            let head = openbook::PacketHeader::SIZE;
            let (mut rest, mut found) = (&payload[head..], Vec::new());
            let count = payload[core::mem::offset_of!(openbook::PacketHeader, num_msgs)];
            for _ in 0..count {
                let size = u16::from_be_bytes([rest[0], rest[1]]);
                let index =
                    rest[core::mem::offset_of!(openbook::DeltaHead, symbol_index)..].first_chunk::<4>();
                found.push(u32::from_be_bytes(*index.expect("an index")) as usize);
                rest = &rest[usize::from(size)..];
            }
            found
        }
        Framing::Mdp3 => {
            let two = |at: usize| usize::from(u16::from_le_bytes([payload[at], payload[at + 1]]));
            let (mut at, mut found) = (mdp3::PacketHeader::SIZE, Vec::new());
            while at < payload.len() {
                let (size, block, template) = (two(at), two(at + 2), two(at + 4));
                let place = match template {
                    37 => core::mem::offset_of!(mdp3::VolumeEntry, security_id),
                    46 => core::mem::offset_of!(mdp3::BookEntry, security_id),
                    48 => core::mem::offset_of!(mdp3::TradeEntry, security_id),
                    other => panic!("template {other} is not in the streams"),
                };
                let group = at + 10 + block;
                for entry in 0..usize::from(payload[group + 2]) {
                    let id = payload[group + 3 + entry * two(group) + place..].first_chunk::<4>();
                    found.push(u32::from_le_bytes(*id.expect("a number")) as usize);
                }
                at += size;
            }
            found
        }
        // Every symbol of the streams is an S, a number and a blank.
        Framing::Pitch | Framing::Cqs | Framing::Uqdf => {
            let mut found = Vec::new();
            for (at, byte) in payload.iter().enumerate() {
                let rest = &payload[at + 1..];
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                if *byte == b'S' && (1..=4).contains(&digits) && rest.get(digits) == Some(&b' ') {
                    let text = str::from_utf8(&rest[..digits]).expect("digits");
                    found.push(text.parse().expect("a number"));
                }
            }
            found
        }
        Framing::Moex | Framing::Any => Vec::new(),
    }
}

impl Filter {
    /// How many messages of an instrument were dropped, with statistics.
    pub(crate) fn dropped(&mut self, bit: usize) -> u64 {
        let bytes = &self.machine.value(layout::DROPPED)[8 * bit..8 * bit + 8];
        u64::from_ne_bytes(bytes.try_into().expect("eight"))
    }

    /// Packets left to the kernel in which a group's datagram may be.
    pub(crate) fn aside(&mut self) -> u64 {
        let at = self.sizes.aside();
        let bytes = &self.machine.value(layout::STATE)[at..at + 8];
        u64::from_ne_bytes(bytes.try_into().expect("eight"))
    }

    pub(crate) fn new(framing: Framing) -> Filter {
        Filter::of(&spec(framing))
    }

    pub(crate) fn of(spec: &FilterSpec) -> Filter {
        let mut machine = Machine::new();
        let (state, sets) = spec.initial();
        for map in spec.maps() {
            machine.insert(
                map.id,
                match map.kind {
                    MapKind::Value if map.id == layout::STATE => Map::Value(state.clone()),
                    MapKind::Value if map.id == layout::SETS => Map::Value(sets.clone()),
                    MapKind::Value if map.id == layout::REFUSED => Map::Value(spec.initial_refused()),
                    MapKind::Value => Map::Value(vec![0; map.value as usize]),
                    MapKind::Sockets => Map::Sockets(vec![true; map.entries as usize]),
                    MapKind::Hash => Map::Hash {
                        key: map.key as usize,
                        value: map.value as usize,
                        room: map.entries as usize,
                        entries: BTreeMap::new(),
                    },
                },
            );
        }
        let framing = spec.channels[0].framing;
        let mut filter = Filter {
            program: spec.program().expect("a program"),
            machine,
            sizes: Sizes::of(spec),
            framing,
            epoch: 0,
        };
        let (bits, refused) = said(framing);
        bits.into_iter().for_each(|bit| filter.want(bit));
        refused.into_iter().for_each(|key| filter.refuse(key));
        for (at, word) in session(framing).into_iter().enumerate() {
            filter.put(layout::SESSION + 8 * at, &word.to_ne_bytes());
        }
        filter
    }

    pub(crate) fn want(&mut self, bit: usize) {
        let at = self.sizes.sets_at() + bit / 8;
        self.machine.value(layout::SETS)[at] |= 1 << (bit % 8);
    }

    /// How many messages of one of the streams' instruments were dropped, with statistics.
    pub(crate) fn dropped_instrument(&mut self, instrument: usize) -> u64 {
        match self.framing.is_keyed() {
            true => self.dropped_of(key(self.framing, instrument as u32)),
            false => self.dropped(instrument),
        }
    }

    /// How many messages of a key were dropped, with statistics.
    pub(crate) fn dropped_of(&mut self, key: u64) -> u64 {
        let bucket = layout::refused_bucket(key);
        let (words, _) = self.machine.value(layout::REFUSED).as_chunks::<8>();
        let word = words[2 * bucket..2 * bucket + 2]
            .iter()
            .position(|word| u64::from_ne_bytes(*word) == key);
        word.map_or(0, |word| self.dropped(layout::refused_count(bucket, word)))
    }

    pub(crate) fn refuse(&mut self, key: u64) {
        let bucket = layout::refused_bucket(key);
        let (words, _) = self.machine.value(layout::REFUSED).as_chunks_mut::<8>();
        let words = &mut words[2 * bucket..2 * bucket + 2];
        let have = [words[0], words[1]].map(u64::from_ne_bytes);
        if let Some(at) = layout::refused_place(bucket, have, key) {
            words[at] = key.to_ne_bytes();
        }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.machine.value(layout::STATE)[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn arm(&mut self, next: u64) {
        // At the beginning no match event is under way.
        self.arm_open(next, next > 1);
    }

    pub(crate) fn arm_open(&mut self, next: u64, open: bool) {
        self.epoch += 1;
        self.put(layout::HOLD, &0_u32.to_ne_bytes());
        let open = if open { layout::OPEN } else { 0 };
        self.put(
            layout::WORD,
            &(layout::word(self.epoch, next) | open).to_ne_bytes(),
        );
    }

    /// As the owner does it: what the word said of the next number stays.
    pub(crate) fn disarm(&mut self) -> u64 {
        let at = layout::WORD..layout::WORD + 8;
        let word = &mut self.machine.value(layout::STATE)[at];
        let was = u64::from_ne_bytes(word.try_into().expect("eight"));
        word.copy_from_slice(&(was & !layout::ARMED).to_ne_bytes());
        was & layout::NEXT_MASK
    }

    pub(crate) fn holds(&mut self) -> bool {
        self.machine.value(layout::STATE)[layout::HOLD] != 0
    }

    pub(crate) fn is_full(&mut self) -> bool {
        self.machine.value(layout::STATE)[layout::FULL] != 0
    }

    pub(crate) fn counter(&mut self, count: Count) -> u64 {
        let value = self.machine.value(layout::STATE);
        let mut sum = 0;
        for cpu in 0..16 {
            let at = layout::COUNTERS + cpu * layout::COUNTERS_SIZE + count.offset();
            sum += u64::from_ne_bytes(value[at..at + 8].try_into().expect("eight"));
        }
        sum
    }
}

/// A reader of deliveries: what it has, what it knows to be missing, and what it was told to be of no
/// interest.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) high: u64,
    pub(crate) delivery: u32,
    pub(crate) got: BTreeSet<u64>,
    pub(crate) missing: BTreeSet<u64>,
    pub(crate) skipped: BTreeSet<u64>,
    pub(crate) epoch: u16,
}

impl Reader {
    pub(crate) fn new() -> Reader {
        Reader {
            high: 1,
            ..Reader::default()
        }
    }

    /// `count` messages from `seq` on, 0: a packet that cannot be read.
    pub(crate) fn on_delivery(&mut self, meta: Meta, seq: u64, count: u64) {
        assert_eq!(meta.delivery, self.delivery, "deliveries count up by one");
        self.delivery = self.delivery.wrapping_add(1);
        if let Some((epoch, next)) = meta.claim()
            && epoch == self.epoch
            && next > self.high
        {
            self.skipped.extend(self.high..next);
            self.high = next;
        }
        if count == 0 {
            return;
        }
        self.missing.extend(self.high..seq.max(self.high));
        for number in seq..seq + count {
            self.missing.remove(&number);
            self.got.insert(number);
        }
        self.high = self.high.max(seq + count);
    }

    /// Nothing is missing.
    pub(crate) fn is_whole(&self) -> bool {
        self.missing.is_empty()
    }
}

pub(crate) fn meta(bytes: &[u8]) -> Meta {
    Meta::read(bytes.try_into().expect("32 bytes")).expect("our metadata")
}
