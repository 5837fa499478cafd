//! A source whose consumer rehearses packets has a twin of its channel from the first look on after it was
//! to be played.

use super::*;
use crate::receiver::{Received, Source};
use tickwire_feed::{ArbiterConfig, ItchChannel, ItchConfig, ItchDecoder, ItchFeed, SoupConfig};
use tickwire_market::{Counter, EventKind, EventSink, MarketEvent, Port, Price};
use tickwire_runtime::stamp::RxStamp;

/// Wants packets of an instrument rehearsed, or none.
struct Hearing {
    wanted: Option<InstrumentId>,
    heard: Vec<(EventKind, InstrumentId)>,
}

impl EventSink for Hearing {
    fn on_event(&mut self, event: &MarketEvent) {
        self.heard.push((event.kind, event.instrument));
    }
}

impl Consumer for Hearing {
    type Successor = Hearing;
    fn now(&self) -> Nanos {
        Nanos(1)
    }
    fn turn_to(&mut self, _: usize) {}
    fn begins(&mut self, _: &RxStamp) -> Nanos {
        panic!("no packet of a line")
    }
    fn ends<C: Channel>(&mut self, _: &C, _: Port, _: impl FnOnce() -> Option<RxStamp>) {
        panic!("no packet of a line")
    }
    fn rehearsed(&self) -> Option<(InstrumentId, Price)> {
        Some((self.wanted?, Price::from_4dp(100_0000)))
    }
}

fn channel() -> ItchChannel {
    let config = ItchConfig {
        instruments_max: 8,
        ..ItchConfig::default()
    };
    let feed = ItchFeed::new(ArbiterConfig::default(), ItchDecoder::new(config));
    ItchChannel::new(feed, SoupConfig::default())
}

fn source() -> impl Source<Hearing> {
    Received::new(0, channel())
}

#[test]
fn what_is_rehearsed_is_heard_and_the_channel_knows_nothing_of_it() {
    let (it, mut source) = (InstrumentId(3), source());
    let mut hearing = Hearing {
        wanted: None,
        heard: Vec::new(),
    };
    source.look(&mut hearing);
    hearing.wanted = Some(it);
    source.look(&mut hearing);
    assert!(
        !source.rehearse(Nanos(1), &mut hearing),
        "nobody has missed it so far"
    );
    source.look(&mut hearing);
    for _ in 0..3 {
        assert!(source.rehearse(Nanos(1), &mut hearing));
    }
    let offer = [(EventKind::Add, it), (EventKind::Delete, it)];
    assert_eq!(hearing.heard, [offer; 3].concat());
    assert_eq!(Source::<Hearing>::counters(&source).get(Counter::PacketsA), 0);
    assert_eq!(Source::<Hearing>::last_packet(&source), Nanos::ZERO);
    // Another instrument has another twin.
    let other = InstrumentId(4);
    hearing.wanted = Some(other);
    source.look(&mut hearing);
    hearing.heard.clear();
    assert!(source.rehearse(Nanos(1), &mut hearing));
    assert_eq!(
        hearing.heard,
        [(EventKind::Add, other), (EventKind::Delete, other)]
    );
}

#[test]
fn of_an_instrument_that_has_no_twin_no_packet_is_rehearsed() {
    let mut source = source();
    let mut hearing = Hearing {
        wanted: Some(InstrumentId(1 << 16)),
        heard: Vec::new(),
    };
    for _ in 0..2 {
        assert!(!source.rehearse(Nanos(1), &mut hearing));
        source.look(&mut hearing);
    }
    assert_eq!(hearing.heard, []);
}

#[test]
fn a_twin_whose_numbers_are_used_up_is_followed_by_another_one() {
    let (mut rehearsed, channel) = (Rehearsed::nothing(), channel());
    let mut hearing = Hearing {
        wanted: Some(InstrumentId(3)),
        heard: Vec::new(),
    };
    assert!(!rehearsed.play(Nanos(1), &mut hearing));
    rehearsed.look(&channel, &hearing);
    rehearsed.twin = rehearsed.twin.map(|twin| twin.ending_after(4));
    assert!(rehearsed.play(Nanos(1), &mut hearing));
    assert!(!rehearsed.play(Nanos(1), &mut hearing));
    rehearsed.look(&channel, &hearing);
    assert!(rehearsed.play(Nanos(1), &mut hearing));
    assert_eq!(hearing.heard.len(), 4);
}
