//! From a datagram to books in shared memory, as the feed daemon goes: channel, books, book slots, ring,
//! consolidated books on the same thread. In the end the slots are read as any reader reads them.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::sync_channel;

use tickwire_book::super_books::Source;
use tickwire_book::{Books, Relay, SuperConfig};
use tickwire_exchange::Listing;
use tickwire_feed::{Channel, FeedState, Line};
use tickwire_feedd::DaemonSection;
use tickwire_feedd::channel_books::{ChannelBooks, ThreadShared};
use tickwire_feedd::rehearsal::Room;
use tickwire_feedd::supers::{SuperPublisher, Supers};
use tickwire_feedd::thread_books::ThreadBooks;
use tickwire_market::{Nanos, Port, Side};
use tickwire_receive::receiver::Consumer as _;
use tickwire_rig::feeds::LiveDay;
use tickwire_runtime::clock::Clock;
use tickwire_shm::{BookCopy, Reader, RegionConfig, RegionState, SourceIdentity};

/// Levels of a side in a slot, as the daemon has them by default.
const LEVELS: u32 = 10;

/// So many datagrams of a day; how many messages that were.
pub(super) fn to_shared<C: Channel>(
    day: &LiveDay,
    listed: &[Listing],
    done: usize,
    mut channel: C,
    books: Books,
    with_supers: bool,
) -> u64 {
    let symbols = listed.len() as u32 + 1;
    let room = Room::of(RegionConfig {
        books: symbols,
        book_levels: LEVELS,
        supers: symbols,
        rings: 1,
        ..RegionConfig::default()
    });
    let region = room.region();
    let about = SourceIdentity {
        name: "day".into(),
        feed_name: "day".into(),
        protocol: "any".into(),
        feed: 0,
        venue: Some(channel.venue()),
        ring: Some(0),
    };
    let row = region.source(0, &about);
    let clock = Clock::calibrate();
    let (notices, _notices) = sync_channel(64);
    let supers = match with_supers {
        false => Supers::Off,
        true => Supers::Inline(Box::new(SuperPublisher::new(
            SuperConfig {
                sources: vec![Source {
                    feed: 0,
                    is_national: false,
                }],
                symbols,
                members: symbols,
                shares: symbols * 1024,
            },
            region,
            &[row.super_latency()],
            clock.clone(),
            notices.clone(),
        ))),
    };
    let shipped = DaemonSection::default();
    let shared = ThreadShared {
        ring: Some(region.ring(0)),
        content: shipped.ring,
        latency_of: shipped.latency_of,
        supers,
        clock,
        notices,
    };
    let relay = with_supers.then_some(Relay::Levels);
    let mut thread = ThreadBooks::new(shared, false);
    thread.add(ChannelBooks::new(region, row, books, relay), 0, u64::MAX);
    let first = channel.next_seq();
    region.set_state(RegionState::Ready);
    thread.turn_to(0);
    for datagram in &day.datagrams()[..done] {
        thread.begins_at(Nanos(1));
        channel.on_datagram(Nanos(1), Port::Live, Line::A, black_box(datagram), &mut thread);
        thread.ends(&channel, Port::Live, || None);
    }
    assert_eq!(channel.state(), FeedState::Live, "nothing was lost");
    if done == day.datagrams().len() {
        compare(day, listed, &Reader::attach(room.words()).expect("a region"));
    }
    channel.next_seq().0 - first.0
}

/// Every level that a slot shows must be the venue's.
fn compare(day: &LiveDay, listed: &[Listing], reader: &Reader<'_, AtomicU64>) {
    let mut copy = BookCopy::default();
    for listing in listed {
        let symbol = listing.symbol;
        let slot = reader.find(symbol).next();
        let (slot, _) = slot.unwrap_or_else(|| panic!("no book of {symbol}"));
        reader.read_book(slot, &mut copy).expect("nobody writes it");
        for side in Side::BOTH {
            let theirs = day.levels(listing, side);
            let top = &theirs[..theirs.len().min(LEVELS as usize)];
            assert_eq!(copy.side(side), top, "{symbol} {side:?}");
            assert_eq!(
                copy.levels[side as usize] as usize,
                theirs.len(),
                "{symbol} {side:?}"
            );
        }
    }
}
