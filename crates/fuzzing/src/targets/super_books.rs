//! Consolidated books: the fast ones answer every event of every source as the naive ones do.

use crate::Choices;
use tickwire_book::naive::{NaiveSuper, NaiveSuperBooks};
use tickwire_book::super_books::Source;
use tickwire_book::super_books::{SuperFlags, end_event};
use tickwire_book::{SourceId, SuperBooks, SuperConfig, SuperId, SuperRef, SuperUpdate};
use tickwire_market::{
    EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, Price, SeqNo, Side, Symbol, TradingStatus,
    Volume,
};

/// Feeds 0 and 1 with one source, 2 with two; 3 and 4 are consolidated.
const SOURCES: [(u8, bool); 6] = [
    (0, false),
    (1, false),
    (2, false),
    (2, false),
    (3, true),
    (4, true),
];
const SYMBOLS: [&[u8]; 3] = [b"A", b"B", b"C.A"];

/// Eight bytes or fewer are one event. Capacities are large enough for the longest input: the naive
/// consolidated books have none.
pub fn super_books(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let sources = SOURCES.map(|(feed, is_national)| Source { feed, is_national });
    let mut fast = SuperBooks::new(SuperConfig {
        sources: sources.to_vec(),
        symbols: 4,
        members: 32,
        shares: 1 << 14,
    });
    let mut naive = NaiveSuperBooks::new(&sources);
    let mut clock = 0;
    while step(&mut choices, &mut clock, &mut fast, &mut naive).is_some() {
        for index in 0..naive.len() {
            let id = SuperId(index as u32);
            let book = fast.book(id).expect("as many symbols as the naive ones");
            assert_eq!(NaiveSuper::from(book), naive.book(id));
        }
    }
}

fn step(
    choices: &mut Choices<'_>,
    clock: &mut u64,
    fast: &mut SuperBooks,
    naive: &mut NaiveSuperBooks,
) -> Option<()> {
    let source = SourceId(choices.below(SOURCES.len() as u32)? as u16);
    let instrument = InstrumentId(choices.below(4)?);
    let mut sink = |book: &SuperRef<'_>, update: &SuperUpdate| {
        assert_eq!(book.id(), update.id);
        assert_ne!(update.changed, SuperFlags::NONE);
    };
    *clock += 1;
    match choices.below(16)? {
        0 => {
            let symbol = SYMBOLS[choices.below(SYMBOLS.len() as u32)? as usize];
            let symbol = Symbol::new(symbol).expect("a symbol");
            let expected = naive.define(source, instrument, &symbol);
            assert_eq!(fast.define(source, instrument, &symbol, &mut sink), expected);
        }
        1 if choices.byte()? < 32 => {
            naive.end(source);
            fast.apply(source, &end_event(), &mut sink).expect("a source");
        }
        1 => {
            naive.undefine(source, instrument);
            fast.undefine(source, instrument, &mut sink).expect("a source");
        }
        other => {
            let event = event(choices, other, instrument, *clock)?;
            let expected = naive.apply(source, &event);
            assert_eq!(fast.apply(source, &event, &mut sink), expected, "{event:?}");
        }
    }
    Some(())
}

fn event(
    choices: &mut Choices<'_>,
    choice: u32,
    instrument: InstrumentId,
    clock: u64,
) -> Option<MarketEvent> {
    let kind = match choice {
        2..=8 => EventKind::Level,
        9 | 10 => EventKind::Quote,
        other => EventKind::from_u8(other as u8 - 3)
            .filter(|_| other < 14)
            .unwrap_or(EventKind::Recovered),
    };
    let kind = if choice == 15 {
        EventKind::from_u8(1 + choices.below(17)? as u8)?
    } else {
        kind
    };
    let traits = choices.byte()?;
    let qty = match choices.byte()? {
        0 => Volume(1 << 44),
        byte => Volume(u64::from(byte % 4)),
    };
    let price = Price::from_raw(i64::from(choices.byte()? % 16) - 4);
    Some(MarketEvent {
        kind,
        instrument,
        seq: SeqNo(clock),
        recv_ts: Nanos(clock * 3 - u64::from(traits >> 6)),
        side: if traits & 1 == 0 { Side::Bid } else { Side::Ask },
        price,
        qty,
        ask_price: Price::from_raw(price.raw() + i64::from(traits >> 5)),
        ask_qty: Volume(u64::from(traits >> 3 & 3)),
        order_count: u32::from(traits >> 4),
        status: TradingStatus::from_u8(traits & 7)?,
        flags: match traits >> 1 & 7 {
            0 => EventFlags::UNUSABLE,
            1 => EventFlags::NOT_PRINTABLE,
            _ => EventFlags::NONE,
        },
        code: [
            if traits & 0x30 == 0x30 { b'N' } else { 0 },
            b'P',
            b'Z',
            0,
            0,
            0,
            0,
            0,
        ],
        ..MarketEvent::default()
    })
}
