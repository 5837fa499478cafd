//! Packets of a channel's twin, of every feed, between the packets of a session.

use super::*;
use tickwire_exchange::{Publisher, listings};
use tickwire_feed::Channel;
use tickwire_market::Port;
use tickwire_rig::feeds::{self, FEEDS, FeedVisitor, LiveDay};

const INSTRUMENTS: u16 = 12;
const DATAGRAMS: usize = 6_000;

/// What came of a session: the books, the orders sent and how many of them ended, and what was counted.
type Outcome = (u64, u64, u64, Counters);

struct Session {
    is_rehearsed: bool,
}

impl FeedVisitor for Session {
    type Output = Outcome;

    fn visit<C: Channel>(&mut self, publisher: Box<dyn Publisher>, mut channel: C, depth: Depth) -> Outcome {
        let listed = listings(INSTRUMENTS);
        let day = LiveDay::generate(&listed, publisher, DATAGRAMS);
        let books = Books::new(BooksConfig {
            venue: channel.venue(),
            depth,
            instruments: u32::from(INSTRUMENTS) + 1,
            orders: 1 << 14,
            levels: 1 << 14,
            initial: BookState::Live,
            tracked: true,
        });
        let (clock, symbol) = (Clock::calibrate(), listed[0].symbol);
        let mut hot =
            memory::path_of::<_, _, true>(MemoryOut::new(), Taker::new(symbol), books, clock.clone())
                .expect("it logs on");
        let began = clock.now();
        let mut twin = None;
        for (nth, datagram) in day.datagrams().iter().enumerate() {
            let now = began.after(1_000 * nth as u64);
            if twin.is_none() && memory::watch(&mut hot, &channel, &symbol) {
                twin = memory::twin_of(&hot, &channel);
                assert!(twin.is_some(), "{symbol} is known and wanted");
            }
            let ((), count) = count_allocations(|| {
                if self.is_rehearsed && twin.is_some() {
                    memory::idle(&mut hot, &channel, &mut twin, now);
                }
            });
            assert_eq!((count.allocations, count.releases), (0, 0), "{count:?}");
            channel.on_datagram(now, Port::Live, Line::A, datagram, &mut hot);
            answer(&mut hot, now);
        }
        let rehearsed = twin.map_or(0, |twin| twin.channel().counters().get(Counter::PacketsA));
        assert_eq!(
            rehearsed > 2,
            self.is_rehearsed,
            "{rehearsed} packets of the twin"
        );
        day.compare(&listed, &channel, &hot.books[0]);
        let ends = hot.rule.hosted[0].conductor.strategy().ends;
        let sent = hot.sessions[0].out.orders;
        (hot.books[0].state_hash(), sent, ends, channel.counters())
    }
}

#[test]
fn of_no_feed_do_packets_of_a_twin_change_anything() {
    for feed in FEEDS {
        let listed = listings(INSTRUMENTS);
        let [with, without] =
            [true, false].map(|is_rehearsed| feeds::visit(feed, &listed, &mut Session { is_rehearsed }));
        assert_eq!(with, without, "{feed}");
        assert!(with.1 > 10, "{feed}: {} orders", with.1);
    }
}
