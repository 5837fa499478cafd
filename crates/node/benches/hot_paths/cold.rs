//! How many lines of the caches a packet and the order behind it find missing, when the thread has had time
//! to spare and others have had the caches before that: `cargo xtask cold` counts them by Callgrind's model
//! of the caches, inside of [`tickwire_cold_packet`] alone.

use std::hint::black_box;

use tickwire_book::{Books, Depth};
use tickwire_exchange::{Publisher, listings};
use tickwire_feed::{Channel, Line};
use tickwire_market::{EventSink, Nanos, Port};
use tickwire_node::memory::{MemoryOut, answer, idle, memory_path_to, twin_of, watch};
use tickwire_rig::feeds::{self, FeedVisitor};
use tickwire_rig::{MovingOffer, RigConfig, START, exchange_of};
use tickwire_runtime::clock::Clock;
use tickwire_venues::receiver::{ReceiverSection, books_config};

/// More than the model's last cache holds, several times.
const NEIGHBOURS: usize = 8 << 20;
/// Words in a line of the caches.
const LINE: usize = 8;
/// Turns of the waiting loop behind the neighbours: more than there are of whatever it takes in turn.
const TURNS: usize = 4;
/// Packets before the first one that counts.
const FIRST: u64 = 20;

/// A step eight times.
macro_rules! eight_times {
    ($($step:tt)*) => {
        $($step)*; $($step)*; $($step)*; $($step)*; $($step)*; $($step)*; $($step)*; $($step)*;
    };
}

/// How many orders left in so many steps of a feed's best offer; each of the packets is one of
/// [`tickwire_cold_packet`]. `turns`: whether the waiting loop has its turns before each.
pub(super) fn orders(feed: &str, steps: u64, turns: bool) -> u64 {
    feeds::visit(feed, &listings(super::LISTED), &mut Moves { steps, turns })
}

struct Moves {
    steps: u64,
    turns: bool,
}

impl FeedVisitor for Moves {
    type Output = u64;

    fn visit<C: Channel>(&mut self, publisher: Box<dyn Publisher>, mut channel: C, depth: Depth) -> u64 {
        let listed = listings(super::LISTED);
        let symbol = listed[0].symbol;
        let books = Books::new(books_config(&ReceiverSection::default(), channel.venue(), depth));
        let clock = Clock::calibrate();
        let mut hot =
            memory_path_to::<_, false>(MemoryOut::new(), books, symbol, clock.clone()).expect("it logs on");
        let venue = exchange_of(&RigConfig::default(), &listed, publisher);
        let mut venue = MovingOffer::open(venue, START, |now, port, bytes| {
            channel.on_datagram(now, port, Line::A, bytes, &mut hot);
        });
        assert!(watch(&mut hot, &channel, &symbol), "the channel knows {symbol}");
        let mut twin = twin_of(&hot, &channel);
        let mut neighbours = vec![1_u64; NEIGHBOURS / size_of::<u64>()];
        let mut received = Vec::with_capacity(1 << 16);
        let (mut first, mut last) = (0, 0);
        for step in 0..FIRST + self.steps {
            assert!(venue.enter(), "the venue takes an offer");
            others(&mut neighbours);
            if self.turns {
                for _ in 0..TURNS {
                    idle(&mut hot, &channel, &mut twin, clock.now());
                }
            }
            venue.live(|_, datagram| {
                // As a socket gives it.
                received.clear();
                received.extend_from_slice(datagram);
                let now = clock.now();
                if step < FIRST {
                    channel.on_datagram(now, Port::Live, Line::A, &received, &mut hot);
                } else {
                    tickwire_cold_packet(now, &mut channel, &received, &mut hot);
                }
            });
            answer(&mut hot, venue.now());
            venue.leave();
            venue.live(|now, datagram| channel.on_datagram(now, Port::Live, Line::A, datagram, &mut hot));
            answer(&mut hot, venue.now());
            let orders = hot.sessions[0].out.orders;
            match step < FIRST {
                true => first = orders,
                false => last = orders,
            }
        }
        // Of books by price, an offer that leaves makes another one the best: that is no step.
        let orders = last - first;
        assert!(orders >= self.steps, "{orders} orders in {} steps", self.steps);
        self.steps
    }
}

/// Others have the caches: their data the last one and the first one of data, their code the first one of
/// code. A line that a rehearsal still found in the latter would not be asked of the last one, and would
/// count as missing once other code has pushed it out of the first.
fn others(neighbours: &mut [u64]) {
    let words = neighbours.iter_mut().step_by(LINE);
    words.for_each(|word| *word = black_box(*word + 1));
    code_of_others();
}

/// 4,096 steps, each of more than eight bytes of code: more than the model's cache of code holds.
#[inline(never)]
fn code_of_others() {
    let mut word = 0_u64;
    eight_times!(eight_times!(eight_times!(eight_times!(word ^= black_box(1)))));
    black_box(word);
}

/// What is counted: a packet from its bytes to the order's, and until the thread takes the next one.
#[inline(never)]
fn tickwire_cold_packet<C: Channel, S: EventSink>(now: Nanos, channel: &mut C, bytes: &[u8], sink: &mut S) {
    channel.on_datagram(now, Port::Live, Line::A, bytes, sink);
}
