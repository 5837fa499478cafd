//! What a feed says of the messages that lie ahead is what they do then.

use std::collections::HashMap;

use tickwire_book::Depth;
use tickwire_exchange::{Publisher, listings};
use tickwire_feed::{Channel, Line};
use tickwire_market::{EventKind, EventSink, InstrumentId, MarketEvent, Nanos, OrderId, Port, Upcoming};
use tickwire_rig::feeds::{self, FeedVisitor, LiveDay};

const INSTRUMENTS: u16 = 12;
const DATAGRAMS: usize = 3_000;

/// New orders that were announced with their place, until they come.
#[derive(Default)]
struct Heard {
    announced: HashMap<OrderId, Upcoming>,
    /// What a packet of one message is about, until it comes.
    arriving: Option<Upcoming>,
    alone: usize,
    as_announced: usize,
    added: usize,
}

impl EventSink for Heard {
    fn on_event(&mut self, event: &MarketEvent) {
        if let Some(said) = self.arriving.take() {
            let known = [InstrumentId::WHOLE_FEED, event.instrument];
            assert!(said.order_id == event.order_id && known.contains(&said.instrument));
            self.alone += 1;
        }
        if event.kind != EventKind::Add {
            return;
        }
        self.added += 1;
        if let Some(said) = self.announced.remove(&event.order_id) {
            assert_eq!(said, Upcoming::of(event));
            self.as_announced += 1;
        }
    }

    fn upcoming(&mut self, next: Upcoming) {
        if next.says_where {
            self.announced.insert(next.order_id, next);
        }
    }

    fn arriving(&mut self, next: Upcoming) {
        let before = self.arriving.replace(next);
        assert_eq!(before, None, "it was announced and did not come");
    }
}

struct Play;

impl FeedVisitor for Play {
    type Output = Heard;

    fn visit<C: Channel>(&mut self, publisher: Box<dyn Publisher>, mut channel: C, _: Depth) -> Heard {
        let day = LiveDay::generate(&listings(INSTRUMENTS), publisher, DATAGRAMS);
        let mut heard = Heard::default();
        for datagram in day.datagrams() {
            channel.on_datagram(Nanos(1), Port::Live, Line::A, datagram, &mut heard);
        }
        heard
    }
}

#[test]
fn a_new_order_comes_at_the_price_at_which_it_was_announced() {
    for name in ["itch50", "pitch", "xdp"] {
        let heard = feeds::visit(name, &listings(INSTRUMENTS), &mut Play);
        let left = heard.announced.len();
        assert!(left == 0, "{name}: {left} announced that did not come");
        let of = heard.added;
        assert!(heard.as_announced > 500, "{name}: {} of {of}", heard.as_announced);
        assert!(heard.alone > 300, "{name}: {} came alone", heard.alone);
    }
}
