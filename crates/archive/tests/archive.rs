//! What is written is read, and what is damaged is not taken for whole.

use proptest::prelude::*;
use tickwire_archive::{
    Archive, ArchiveChannel, ArchiveError, ArchiveWriter, ChannelFacts, Cursor, Known, packets,
};
use tickwire_book::Depth;
use tickwire_feed_core::{Channel, FeedState};
use tickwire_market::{
    Counter, Counters, Currency, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent,
    Nanos, OrderId, PointValue, Price, Qty, SeqNo, Side, Symbol, TradingStatus, Venue, Volume,
};

#[derive(Default)]
struct Events(Vec<MarketEvent>);

impl EventSink for Events {
    fn on_event(&mut self, event: &MarketEvent) {
        self.0.push(*event);
    }
}

fn facts(name: &str) -> ChannelFacts {
    let mut counters = Counters::default();
    counters.add(Counter::Messages, 17);
    let instrument = |id: u32, symbol: &[u8]| Known {
        instrument: Instrument {
            id: InstrumentId(id),
            venue: Venue::Bzx,
            symbol: Symbol::new(symbol).expect("a symbol"),
            tick: Price::from_raw(-5),
            lot: Qty(100),
            is_test: id == 2,
        },
        point: PointValue::new(7, Currency::USD).filter(|_| id == 1),
    };
    ChannelFacts {
        name: name.into(),
        venue: Venue::Bzx,
        protocol: "pitch".into(),
        depth: Depth::Aggregated,
        room: [100, 200, 300],
        state: FeedState::Stale,
        next: SeqNo(99),
        counters,
        instruments: vec![instrument(1, b"AAPL"), instrument(2, b"ZVZZT")],
    }
}

type Written = Vec<(usize, Nanos, Vec<MarketEvent>)>;

/// Packets of two channels as a file.
fn file(written: &Written) -> Vec<u8> {
    let mut writer = ArchiveWriter::new(Vec::new()).expect("memory");
    for name in ["one", "two"] {
        writer.add_channel(Venue::Bzx);
        assert!(!name.is_empty());
    }
    for (channel, now, events) in written {
        writer.packet(*channel, *now, events).expect("memory");
    }
    for (channel, name) in ["one", "two"].into_iter().enumerate() {
        writer.end_channel(channel, facts(name));
    }
    let (bytes, out) = writer.finish().expect("memory");
    assert_eq!(bytes as usize, out.len());
    out
}

/// Everything of an archive, by channel; `is_ahead`: packets are shown before they come.
fn read(archive: Archive, is_ahead: bool) -> Result<[Vec<MarketEvent>; 2], ArchiveError> {
    let mut channels = [0, 1].map(|at| ArchiveChannel::new(archive.channels()[at].clone(), None));
    let mut all = [Events::default(), Events::default()];
    let mut cursor = Cursor::new(archive);
    while cursor.read_block(|_| true)? {
        while cursor.advance()? {
            let packet = cursor.packet();
            channels[packet.channel].on_message(packet.now, packet.bytes, &mut all[packet.channel]);
            if is_ahead {
                while let Some(packet) = cursor.ahead() {
                    channels[packet.channel].preview(packet.now, packet.bytes, &mut all[packet.channel]);
                }
            }
        }
    }
    for channel in &channels {
        assert_eq!(channel.counters().get(Counter::Malformed), 0);
    }
    Ok(all.map(|events| events.0))
}

fn event() -> impl Strategy<Value = MarketEvent> {
    // Small numbers, and those at the ends.
    let number = || prop_oneof![0_u64..300, any::<u64>(), Just(u64::MAX)];
    let price = || prop_oneof![(0_i64..10_000).prop_map(|n| n * 100_000), any::<i64>()];
    let first = (1_u8..=17, any::<bool>(), 0_u32..5, number(), number(), number());
    let second = (number(), price(), number(), number(), any::<u16>(), 0_u8..8);
    let third = (price(), number(), price(), price(), number(), any::<[u8; 2]>());
    (first, second, third, 0_usize..16).prop_map(|(a, b, c, venue)| MarketEvent {
        kind: EventKind::from_u8(a.0).expect("a kind"),
        side: if a.1 { Side::Ask } else { Side::Bid },
        instrument: InstrumentId(a.2),
        seq: SeqNo(a.3),
        venue_ts: Nanos(a.4),
        recv_ts: Nanos(a.5),
        order_id: OrderId(b.0),
        price: Price::from_raw(b.1),
        qty: Volume(b.2),
        ref_id: b.3,
        flags: EventFlags(b.4.into()),
        status: TradingStatus::from_u8(b.5).expect("a status"),
        ask_price: Price::from_raw(c.0),
        ask_qty: Volume(c.1),
        near_price: Price::from_raw(c.2),
        far_price: Price::from_raw(c.3),
        imbalance_qty: Volume(c.4),
        order_count: c.5[0].into(),
        code: [c.5[1], 0, 0, 0, 0, 0, 0, c.5[0]],
        venue: Venue::ALL[venue],
        reserved: 0,
    })
}

fn written() -> impl Strategy<Value = Written> {
    // Of many events: more than wait for their packet.
    let few = || proptest::collection::vec(event(), 0..6);
    let events = prop_oneof![few(), few(), proptest::collection::vec(event(), 0..120)];
    let packet = (0_usize..2, any::<u64>().prop_map(Nanos), events);
    proptest::collection::vec(packet, 0..20)
}

proptest! {
    #[test]
    fn events_of_any_fields_come_back_as_they_were(written in written(), is_ahead in any::<bool>()) {
        let archive = Archive::from_bytes(file(&written)).expect("whole");
        prop_assert_eq!(&archive.channels()[1], &facts("two"));
        let back = read(archive, is_ahead).expect("whole");
        for (channel, back) in back.into_iter().enumerate() {
            let of = written.iter().filter(|packet| packet.0 == channel);
            let expected: Vec<_> = of.flat_map(|packet| packet.2.clone()).collect();
            prop_assert_eq!(back, expected);
        }
    }
}

/// Enough for several blocks.
fn day() -> Written {
    let mut all = Vec::new();
    for n in 0..40_000_u64 {
        let event = MarketEvent {
            kind: EventKind::Add,
            seq: SeqNo(n),
            venue: Venue::Bzx,
            venue_ts: Nanos(n * 1_000),
            recv_ts: Nanos(n * 1_000 + 7),
            instrument: InstrumentId((n / 20_000 + 1) as u32),
            order_id: OrderId(n * 3),
            price: Price::from_raw((1_000 + (n % 50) as i64) * 10_000_000),
            qty: Volume(100 + n % 7),
            ..MarketEvent::default()
        };
        all.push((n as usize % 2, Nanos(n * 1_000 + 7), vec![event]));
    }
    all
}

#[test]
fn blocks_are_found_by_time_and_instrument_and_read_alone() {
    let archive = Archive::from_bytes(file(&day())).expect("whole");
    let blocks = archive.blocks();
    assert!(blocks.len() > 2, "{}", blocks.len());
    assert_eq!(blocks.iter().map(|block| block.events).sum::<u64>(), 40_000);
    let holds = |number: u32| {
        blocks
            .iter()
            .filter(|b| b.holds.iter().any(|h| h.1 == InstrumentId(number)))
            .count()
    };
    assert!(holds(1) < blocks.len() && holds(2) < blocks.len() && holds(3) == 0);
    let time = Nanos(30_000_000);
    let from = archive.block_at(time);
    assert!(blocks[from].first <= time && time <= blocks[from].last);
    assert_eq!(archive.block_at(Nanos(u64::MAX)), blocks.len());
    // The last block, without those before it.
    let (mut buffer, mut events) = (Vec::new(), Events::default());
    let mut channel = ArchiveChannel::new(archive.channels()[0].clone(), None);
    for packet in packets(archive.block(blocks.len() - 1, &mut buffer).expect("whole"), 2) {
        if packet.channel == 0 {
            channel.on_message(packet.now, packet.bytes, &mut events);
        }
    }
    let expected: Vec<_> = day().into_iter().filter(|p| p.0 == 0).flat_map(|p| p.2).collect();
    assert_eq!(events.0[..], expected[expected.len() - events.0.len()..]);
    // Bytes an event, packets of one: no more than a wire message of it.
    let bytes: u64 = blocks.iter().map(|block| u64::from(block.bytes)).sum();
    assert!(bytes / 40_000 < 20, "{bytes}");
}

#[test]
fn of_an_instrument_only_its_events_come() {
    let archive = Archive::from_bytes(file(&day())).expect("whole");
    let symbol = Symbol::new(b"ZVZZT").expect("a symbol");
    let mut channel = ArchiveChannel::new(archive.channels()[0].clone(), Some(&[symbol]));
    let (mut buffer, mut events) = (Vec::new(), Events::default());
    for number in 0..archive.blocks().len() {
        for packet in packets(archive.block(number, &mut buffer).expect("whole"), 2) {
            if packet.channel == 0 {
                channel.on_message(packet.now, packet.bytes, &mut events);
            }
        }
    }
    assert!(events.0.len() == 10_000 && events.0.iter().all(|e| e.instrument == InstrumentId(2)));
}

#[test]
fn whatever_is_cut_or_changed_is_an_error() {
    let mut small = day();
    small.truncate(40);
    let bytes = file(&small);
    let is_whole =
        |bytes: Vec<u8>| Archive::from_bytes(bytes).and_then(|archive| read(archive, true).map(drop));
    is_whole(bytes.clone()).expect("whole");
    for cut in 0..bytes.len() {
        let error = is_whole(bytes[..cut].to_vec()).expect_err("cut");
        assert!(
            matches!(error, ArchiveError::NotOne | ArchiveError::Index),
            "{cut}: {error}"
        );
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        is_whole(changed).expect_err("changed");
    }
    let mut other = bytes;
    other[8] = 3;
    assert!(matches!(is_whole(other), Err(ArchiveError::Version(3))));
}
