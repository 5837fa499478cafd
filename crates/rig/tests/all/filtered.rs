//! Whether a message is dropped is the same however its packet is filled: a packet of several messages is
//! looked at as a whole before any of them is decoded, a packet of one is not.

use tickwire_book::Depth;
use tickwire_exchange::{Listing, Publisher, listings};
use tickwire_feed::{
    Channel, Content, CqsFeed, FeedHandler, Framing, ItchFeed, Line, Pattern, PitchFeed, Seen, UqdfFeed,
    XdpFeed,
};
use tickwire_market::{
    Counter, EventFlags, EventSink, InstrumentId, MarketEvent, MessageType, Nanos, Port, SeqNo, Symbol,
};
use tickwire_rig::feeds::{self, FeedVisitor, LiveDay};

const INSTRUMENTS: u16 = 12;
const DATAGRAMS: usize = 6_000;

/// What a channel told and counted.
#[derive(Default, PartialEq, Debug)]
struct Heard {
    /// Without which was the last of its packet: that is what differs.
    events: Vec<MarketEvent>,
    messages: Vec<MessageType>,
    kinds: Vec<(MessageType, Seen)>,
    by_instrument: Vec<(Symbol, Seen)>,
    seen: u64,
    filtered: u64,
    malformed: u64,
}

impl EventSink for Heard {
    fn on_event(&mut self, event: &MarketEvent) {
        self.events.push(MarketEvent {
            flags: EventFlags(event.flags.0 & !EventFlags::LAST.0),
            ..*event
        });
    }

    fn on_message(&mut self, kind: MessageType) {
        self.messages.push(kind);
    }
}

/// Cuts a datagram into datagrams of one message.
type Cut = fn(&[u8]) -> Vec<Vec<u8>>;

struct Play {
    cut: Option<Cut>,
    /// Datagrams of several messages there were.
    full: usize,
}

impl FeedVisitor for Play {
    type Output = Heard;

    fn visit<C: Channel>(&mut self, publisher: Box<dyn Publisher>, mut channel: C, _: Depth) -> Heard {
        let listed = listings(INSTRUMENTS);
        let day = LiveDay::generate(&listed, publisher, DATAGRAMS);
        let mut heard = Heard::default();
        let asked = channel.unsubscribe(Nanos(1), &Pattern::ALL, &mut heard);
        asked.expect("there is room for a rule");
        for Listing { symbol, .. } in listed.iter().step_by(2) {
            let pattern = Pattern::of_symbol(symbol).expect("a symbol");
            channel
                .subscribe(Nanos(1), &pattern, &mut heard)
                .expect("there is room");
        }
        for datagram in day.datagrams() {
            let cut = self.cut.map(|cut| cut(datagram));
            self.full += usize::from(cut.as_ref().is_some_and(|cut| cut.len() > 1));
            for datagram in cut.as_ref().unwrap_or(&vec![datagram.clone()]) {
                channel.on_datagram(Nanos(1), Port::Live, Line::A, datagram, &mut heard);
            }
        }
        channel.kinds(&mut |kind, seen| heard.kinds.push((kind, seen)));
        let by_instrument = &mut heard.by_instrument;
        channel.instruments(&mut |i| by_instrument.push((i.symbol, Seen::default())));
        for (symbol, seen) in by_instrument {
            let id = channel.find(symbol).unwrap_or(InstrumentId::WHOLE_FEED);
            *seen = channel.seen_of_instrument(id);
        }
        let counters = channel.counters();
        heard.seen = counters.get(Counter::Messages);
        heard.filtered = counters.get(Counter::MessagesFiltered);
        heard.malformed = counters.get(Counter::Malformed);
        heard
    }
}

/// By a feed's framing.
fn cut<F: Framing>(datagram: &[u8]) -> Vec<Vec<u8>> {
    let frame = F::parse(datagram).expect("the venue's own");
    let Content::Messages { messages, .. } = frame.content else {
        return vec![datagram.to_vec()];
    };
    let numbered = (frame.first.0..).map(SeqNo).zip(messages);
    let one = numbered.map(|(seq, message)| {
        let mut buffer = [0; 2048];
        let length = F::wrap(frame.session, seq, message, &mut buffer).expect("it came in a datagram");
        buffer[..length].to_vec()
    });
    one.collect()
}

fn cut_as<F: Framing, D>(_: core::marker::PhantomData<FeedHandler<F, D>>) -> Cut {
    cut::<F>
}

#[test]
fn a_message_is_dropped_or_told_whatever_is_with_it_in_its_packet() {
    use core::marker::PhantomData;
    let feeds = [
        ("itch50", cut_as(PhantomData::<ItchFeed>)),
        ("pitch", cut_as(PhantomData::<PitchFeed>)),
        ("xdp", cut_as(PhantomData::<XdpFeed>)),
        ("cqs", cut_as(PhantomData::<CqsFeed>)),
        ("uqdf", cut_as(PhantomData::<UqdfFeed>)),
    ];
    for (name, cut) in feeds {
        let listed = listings(INSTRUMENTS);
        let mut whole = Play { cut: None, full: 0 };
        let mut single = Play {
            cut: Some(cut),
            full: 0,
        };
        let as_sent = feeds::visit(name, &listed, &mut whole);
        let one_by_one = feeds::visit(name, &listed, &mut single);
        assert!(
            single.full > 500,
            "{name}: {} packets of several messages",
            single.full
        );
        assert!(as_sent.filtered > 1_000, "{name}: {} filtered", as_sent.filtered);
        assert!(
            as_sent.events.len() > 1_000,
            "{name}: {} events",
            as_sent.events.len()
        );
        assert_eq!(as_sent.kinds, one_by_one.kinds, "{name}");
        assert!(as_sent == one_by_one, "{name}: events or counts differ");
    }
}
