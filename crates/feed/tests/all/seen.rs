//! What a filter in front of a feed says: messages that it kept back are no gap, and nothing of it counts
//! while something is missing.

use tickwire_feed::{Arbiter, ArbiterConfig, Line, SessionId, Situation, Verdict};
use tickwire_market::{Counter, Nanos, SeqNo};

const SESSION: SessionId = SessionId(*b"S000000001");

fn packet(arbiter: &mut Arbiter, at: u64, first: u64, count: u32) -> Verdict {
    arbiter.on_packet(Nanos(at), Line::A, SESSION, SeqNo(first), count, b"packet")
}

#[test]
fn what_was_kept_back_is_no_gap_and_is_counted() {
    let mut arbiter = Arbiter::new(ArbiterConfig::default());
    assert_eq!(packet(&mut arbiter, 1, 1, 2), Verdict::Deliver { skip: 0 });
    while arbiter.poll_situation().is_some() {}
    arbiter.seen_up_to(Nanos(2), SeqNo(10));
    assert_eq!((arbiter.next_seq(), arbiter.last_packet()), (SeqNo(10), Nanos(2)));
    assert!(arbiter.in_sequence(Nanos(3), Line::A, SESSION, SeqNo(10), 1));
    assert_eq!(arbiter.poll_situation(), None);
    assert_eq!(arbiter.counters().get(Counter::MessagesFiltered), 7);
    // What is behind, or beyond all numbers, changes nothing.
    arbiter.seen_up_to(Nanos(4), SeqNo(5));
    arbiter.seen_up_to(Nanos(4), SeqNo(u64::MAX));
    assert_eq!(arbiter.next_seq(), SeqNo(11));
}

#[test]
fn while_something_is_missing_it_is_asked_for() {
    let mut arbiter = Arbiter::new(ArbiterConfig::default());
    packet(&mut arbiter, 1, 1, 1);
    while arbiter.poll_situation().is_some() {}
    assert_eq!(packet(&mut arbiter, 2, 5, 1), Verdict::Buffered);
    let gap = Situation::Gap {
        first: SeqNo(2),
        end: SeqNo(5),
    };
    assert_eq!(arbiter.poll_situation(), Some(gap));
    arbiter.seen_up_to(Nanos(3), SeqNo(20));
    assert_eq!(arbiter.next_seq(), SeqNo(2));
}

#[test]
fn a_line_that_is_kept_back_is_not_silent() {
    let mut arbiter = Arbiter::new(ArbiterConfig::default());
    arbiter.alive(Nanos(9));
    assert_eq!(arbiter.last_packet(), Nanos::ZERO, "nothing has begun");
    packet(&mut arbiter, 10, 1, 1);
    arbiter.alive(Nanos(30));
    arbiter.alive(Nanos(20));
    assert_eq!(arbiter.last_packet(), Nanos(30));
}
