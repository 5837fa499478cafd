//! Seeds of the target of archives.

use tickwire_archive::{ArchiveWriter, ChannelFacts};
use tickwire_market::{
    Counters, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, SeqNo, Venue, Volume,
};

/// An archive of one channel, its only block, and its index.
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
    super::none().into_iter().chain([whole, block, index]).collect()
}
