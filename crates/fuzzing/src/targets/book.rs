//! Books: the fast ones answer every event as the naive ones do.

use crate::Choices;
use tickwire_book::naive::{NaiveApplied, NaiveBooks};
use tickwire_book::{Applied, Books, BooksConfig, Depth, Digest};
use tickwire_market::{
    BookState, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, SeqNo, Side,
    Upcoming, Venue, Volume,
};

const INSTRUMENTS: u32 = 4;

/// Room for every id of [`id`], which the naive books (they have no capacities) require; a window so small
/// that ids meet in it and older orders move to the table.
fn config(depth: Depth) -> BooksConfig {
    BooksConfig {
        depth,
        instruments: INSTRUMENTS,
        orders: 64,
        levels: 16_384,
        ..BooksConfig::default()
    }
}

/// The first byte chooses what is kept, eight bytes more are one event.
pub fn book(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let Some(depth) = choices.below(3) else { return };
    let depth = [Depth::ByOrder, Depth::Aggregated, Depth::ByPrice][depth as usize];
    let mut fast = Books::new(config(depth));
    let mut naive = NaiveBooks::new(Venue::Nasdaq, depth, INSTRUMENTS, BookState::Live);
    let mut seq = 0;
    while let Some(event) = event(&mut choices, seq) {
        seq += 1;
        fast.upcoming(Upcoming::of(&event));
        let expected = naive.apply(&event);
        let got = fast.apply(&event);
        assert!(
            same(&got, &expected),
            "{event:?}\n fast {got:?}\nnaive {expected:?}"
        );
        assert_eq!(fast.state_hash(), naive.state_hash(), "{event:?}");
    }
    if depth == Depth::ByOrder {
        let mut digest = Digest::default();
        fast.iter().for_each(|book| book.digest_queues_into(&mut digest));
        assert_eq!(digest.finish(), naive.queues_hash());
    }
}

fn event(choices: &mut Choices<'_>, seq: u64) -> Option<MarketEvent> {
    let kind = match choices.below(20)? {
        0..=5 => EventKind::Add,
        other => EventKind::from_u8(other as u8 - 4)?,
    };
    let instrument = InstrumentId(choices.below(INSTRUMENTS + 1)?);
    let (order_id, other_id) = (id(choices.byte()?), id(choices.byte()?));
    let traits = choices.byte()?;
    let price = Price::from_raw(i64::from(choices.byte()? % 16) - 4);
    let flags = [
        EventFlags::KEEPS_PRIORITY,
        EventFlags::NO_SIDE,
        EventFlags::SNAPSHOT,
        EventFlags::UNUSABLE,
    ];
    let flags = flags
        .into_iter()
        .enumerate()
        .filter(|(at, _)| traits >> (at + 1) & 1 == 1);
    Some(MarketEvent {
        seq: SeqNo(seq),
        venue_ts: Nanos(seq),
        instrument,
        kind,
        order_id,
        ref_id: other_id.0,
        side: if traits & 1 == 0 { Side::Bid } else { Side::Ask },
        flags: flags.fold(EventFlags::NONE, |all, (_, flag)| all.with(flag)),
        price,
        qty: quantity(choices)?,
        ask_price: Price::from_raw(price.raw() + i64::from(traits >> 6)),
        ask_qty: Volume(u64::from(traits >> 4 & 3)),
        order_count: u32::from(traits >> 5),
        ..MarketEvent::default()
    })
}

/// Few ids, so that events meet; some of them share a slot of the window.
fn id(byte: u8) -> OrderId {
    match byte {
        0..200 => OrderId(u64::from(byte % 32)),
        200..220 => OrderId(16_380 + u64::from(byte % 8)),
        220..240 => OrderId(32_764 + u64::from(byte % 8)),
        _ => OrderId(u64::MAX - u64::from(byte % 4)),
    }
}

fn quantity(choices: &mut Choices<'_>) -> Option<Volume> {
    Some(match choices.below(65_536)? {
        edge @ 0..16 => {
            Volume([0, 1, u64::from(u32::MAX), 1 << 32, 1 << 43, 1 << 44, u64::MAX, 7][edge as usize % 8])
        }
        qty => Volume(u64::from(qty % 8)),
    })
}

fn same(fast: &Applied<'_>, naive: &NaiveApplied) -> bool {
    match (fast, naive) {
        (Applied::Update(a), NaiveApplied::Update(b)) => *a == b,
        (Applied::Feed(a), NaiveApplied::Feed(b)) => a == b,
        (Applied::None, NaiveApplied::None) => true,
        (Applied::Rejected(a), NaiveApplied::Rejected(b)) => a == b,
        _ => false,
    }
}
