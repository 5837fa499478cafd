//! What is rehearsed goes the whole way, and nobody sees anything of it.

use super::*;
use crate::config::{LatencyOf, RingContent};
use crate::thread_books::ThreadBooks;
use tickwire_feed::{Channel, Line};
use tickwire_market::Port;
use tickwire_receive::receiver::{Received, Source as _};
use tickwire_runtime::clock::Clock;
use tickwire_shm::{Reader, RegionState, SourceWriter};
use tickwire_simulator::session::{Packing, Session};
use tickwire_simulator::venue::VIRTUAL_START;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::wiring::{self, Reception, WithChannel};

/// Packets of the live day's beginning, two rehearsals before each.
const PACKETS: usize = 200;

/// Plays a day to shared memory, with rehearsals or without.
struct Played<'a> {
    session: &'a Session,
    protocol: Protocol,
    is_rehearsed: bool,
}

/// What is in shared memory but for times, and how many books were shown of what was rehearsed.
struct Seen {
    updates: u64,
    books: Vec<(Symbol, [Vec<tickwire_market::Level>; 2])>,
    records: u64,
    rehearsed: u64,
}

impl WithChannel for Played<'_> {
    type Output = Seen;

    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) -> Seen {
        let config = RegionConfig {
            books: 100,
            supers: 100,
            ring_records: 1 << 14,
            ..RegionConfig::default()
        };
        let layout = config.layout().expect("sizes in range");
        let words: Vec<AtomicU64> = (0..layout.words).map(|_| AtomicU64::new(0)).collect();
        let identity = Identity {
            generation: VIRTUAL_START,
            pid: 1,
        };
        let region = Region::format(&words, &config, identity).expect("as large as it has to be");
        let venue = channel.venue();
        let row: SourceWriter<'_, AtomicU64> = region.source(
            0,
            &SourceIdentity {
                name: "1".into(),
                feed_name: "feed".into(),
                protocol: self.protocol.name().into(),
                feed: 0,
                venue: Some(venue),
                ring: Some(0),
            },
        );
        let relay = match self.protocol.has_depth() {
            true => Relay::Levels,
            false => Relay::National,
        };
        let books = Books::new(BooksConfig {
            venue,
            tracked: true,
            ..*self.session.books(depth).config()
        });
        let (notices, _notices) = sync_channel(64);
        let clock = Clock::calibrate();
        let supers = SuperConfig {
            sources: vec![Source {
                feed: 0,
                is_national: relay == Relay::National,
            }],
            symbols: 100,
            members: 100,
            shares: 1 << 12,
        };
        let supers = SuperPublisher::new(
            supers,
            region,
            &[row.super_latency()],
            clock.clone(),
            notices.clone(),
        );
        let shared = ThreadShared {
            ring: Some(region.ring(0)),
            content: RingContent::Both,
            latency_of: LatencyOf::Packets,
            supers: Supers::Inline(Box::new(supers)),
            clock,
            notices,
        };
        // Channels of every kind can be on one thread.
        let relays = [None, Some(Relay::National), Some(Relay::Levels), Some(relay)];
        let all = relays.map(|relay| Rehearsed { venue, depth, relay });
        let together = Room::new(all.len(), &config);
        let rehearsed_together = Rehearsal::new(&shared, together.region(), &all);
        assert_eq!(rehearsed_together.channels.len(), all.len());
        let room = Room::new(1, &config);
        let (aside, of) = (
            room.region(),
            Rehearsed {
                venue,
                depth,
                relay: Some(relay),
            },
        );
        let rehearsal = Rehearsal::new(&shared, aside, &[of]);
        let mut source = Received::new(0, channel);
        let mut thread = ThreadBooks::new(shared, false);
        thread.add(ChannelBooks::new(region, row, books, Some(relay)), 0, u64::MAX);
        if self.is_rehearsed {
            thread.rehearse_with(rehearsal);
        }
        region.set_state(RegionState::Ready);
        aside.set_state(RegionState::Ready);
        for (port, datagram) in &self.session.before {
            source.deliver(VIRTUAL_START, *port, Line::A, datagram, &mut thread);
        }
        let mut now = VIRTUAL_START;
        for datagram in tickwire_rig::recorded::walk(&self.session.live).take(PACKETS) {
            now = now.after(Nanos::MICRO);
            for _ in 0..2 {
                let is_played = thread.rehearse(0, now, |thread| source.rehearse(now, thread));
                // Its twin is made off the way of a packet, once it was missed.
                if self.is_rehearsed && !is_played {
                    source.look(&mut thread);
                }
            }
            source.deliver(now, Port::Live, Line::A, datagram, &mut thread);
        }
        let reader = Reader::attach(&words).expect("it is ready");
        let mut books = Vec::new();
        let mut copy = tickwire_shm::BookCopy::default();
        for (slot, identity) in reader.books() {
            reader.read_book(slot, &mut copy).expect("nobody writes");
            let sides = tickwire_market::Side::BOTH.map(|side| copy.side(side).to_vec());
            books.push((identity.symbol, sides));
        }
        let rehearsed = Reader::attach(&room.words).expect("it is ready");
        Seen {
            updates: reader.source(0).expect("it has a row").totals.updates,
            books,
            records: reader.ring_written(0),
            rehearsed: rehearsed.source(0).expect("it has a row").totals.updates,
        }
    }
}

#[test]
fn what_is_rehearsed_goes_the_whole_way_and_nobody_sees_it() {
    for &protocol in wiring::PUBLISHED.iter() {
        let session = Session::publish(protocol, 3, 4_000, 20, Packing::Recorded)
            .unwrap_or_else(|failure| panic!("{}", failure.message));
        let [with, without] = [true, false].map(|is_rehearsed| {
            let played = Played {
                session: &session,
                protocol,
                is_rehearsed,
            };
            let reception = Reception::recorded(1_000, 100_000, None);
            wiring::with_channel(&session.config.feed[0], 0, &reception, played)
                .unwrap_or_else(|failure| panic!("{}", failure.message))
        });
        // It is shown empty; then the first rehearsal is missed, and each of the others shows it twice.
        assert_eq!(with.rehearsed, 1 + 2 * (2 * PACKETS as u64 - 1), "{protocol}");
        assert_eq!(without.rehearsed, 1, "{protocol}");
        assert!(with.updates > 0, "{protocol}");
        assert_eq!(with.updates, without.updates, "{protocol}");
        assert!(with.books == without.books, "{protocol}");
        assert_eq!(with.records, without.records, "{protocol}");
    }
}
