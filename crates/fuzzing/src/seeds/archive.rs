//! Seeds of the target of archives.

use tickwire_archive::{ArchiveWriter, ChannelFacts};
use tickwire_market::{
    Counters, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, SeqNo, Venue, Volume,
};

/// An archive of one channel, its only block, and its index; and with versions and lengths that are not true.
pub(crate) fn archives() -> Vec<Vec<u8>> {
    let event = |n: u64| MarketEvent {
        kind: EventKind::from_u8(n as u8 + 1).unwrap_or_default(),
        seq: SeqNo(n),
        instrument: InstrumentId(1),
        order_id: OrderId(n / 3),
        price: Price::from_raw(n as i64 * 10_000_000),
        qty: Volume(100),
        ..MarketEvent::default()
    };
    let mut writer = match ArchiveWriter::new(Vec::new()) {
        Ok(writer) => writer,
        Err(_) => return super::none(),
    };
    let channel = writer.add_channel(Venue::Nasdaq);
    for n in 0..17 {
        let _ = writer.packet(channel, Nanos(n), &[event(n), event(n + 1)]);
    }
    let facts = ChannelFacts {
        name: "seed".into(),
        venue: Venue::Nasdaq,
        protocol: "itch50".into(),
        depth: tickwire_book::Depth::ByOrder,
        room: [16, 64, 64],
        state: tickwire_feed::FeedState::Live,
        next: SeqNo(0),
        counters: Counters::default(),
        instruments: Vec::new(),
    };
    writer.end_channel(channel, facts);
    let Ok((_, whole)) = writer.finish() else {
        return super::none();
    };
    let word = |at: usize| {
        whole[at..at + 4]
            .iter()
            .rev()
            .fold(0_usize, |sum, b| sum << 8 | usize::from(*b))
    };
    let (place, len) = (word(whole.len() - 24), word(whole.len() - 16));
    let (block, index) = (whole[12..place].to_vec(), whole[place..place + len].to_vec());
    let mut all = super::none();
    let mut with = |at: usize, bytes: &[u8]| {
        let mut file = whole.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        all.push(file);
    };
    for version in [0, tickwire_archive::VERSION + 1, u32::MAX] {
        with(8, &version.to_le_bytes());
    }
    // Where the index is, and how long.
    for place in [0, 1, whole.len() as u64, 1 << 40, u64::MAX] {
        with(whole.len() - 24, &place.to_le_bytes());
        with(whole.len() - 16, &(place as u32).to_le_bytes());
    }
    // Every number of the index as large as numbers get: counts, rooms, lengths and places of blocks.
    for at in 0..index.len() {
        let mut huge = index[..at].to_vec();
        huge.extend([0xff; 9]);
        huge.push(1);
        huge.extend(&index[at + 1..]);
        all.push(huge);
    }
    all.extend([whole, block, index]);
    all
}
