//! What an arbiter answers beside its verdicts: each was found by a change of it that no test noticed
//! (`cargo xtask mutants`).

use tickwire_feed::{Arbiter, ArbiterConfig, FeedState, Line, SessionId, Verdict};
use tickwire_market::{Counter, Nanos, SeqNo};

const SESSION: SessionId = SessionId(*b"S000000001");

fn packet(arbiter: &mut Arbiter, at: u64, first: u64, count: u32) -> Verdict {
    arbiter.on_packet(Nanos(at), Line::A, SESSION, SeqNo(first), count, b"packet")
}

/// A feed that has delivered messages 1 to 4.
fn begun() -> Arbiter {
    let mut arbiter = Arbiter::new(ArbiterConfig::default());
    assert_eq!(packet(&mut arbiter, 1, 1, 4), Verdict::Deliver { skip: 0 });
    while arbiter.next_buffered().is_some() {}
    while arbiter.poll_situation().is_some() {}
    arbiter
}

#[test]
fn a_message_that_says_that_nothing_follows_ends_the_feed_unless_something_is_known_to_follow() {
    let mut arbiter = begun();
    assert_eq!(arbiter.state(), FeedState::Live);
    arbiter.ends_at(SeqNo(4));
    assert_eq!(arbiter.state(), FeedState::Live, "message 4 has come");
    arbiter.ends_at(SeqNo(5));
    arbiter.ends_at(SeqNo(5));
    assert_eq!(arbiter.state(), FeedState::Ended);
    assert_eq!(arbiter.counters().get(Counter::EndOfSession), 1, "said once");
    assert_eq!(packet(&mut arbiter, 2, 5, 1), Verdict::Deliver { skip: 0 });
    assert_eq!(arbiter.state(), FeedState::Live, "what follows proves it wrong");
}

#[test]
fn what_is_known_to_exist_and_where_a_snapshot_is_of_use_is_told() {
    let mut arbiter = begun();
    assert_eq!((arbiter.latest(), arbiter.snapshot_floor()), (SeqNo(5), SeqNo(5)));
    assert_eq!(packet(&mut arbiter, 2, 8, 3), Verdict::Buffered);
    assert_eq!((arbiter.next_seq(), arbiter.latest()), (SeqNo(5), SeqNo(11)));
    assert_eq!(
        arbiter.snapshot_floor(),
        SeqNo(8),
        "from there on everything is held"
    );
    assert_eq!(arbiter.first_held(), Some(SeqNo(8)));
    assert!(arbiter.misses(SeqNo(7), SeqNo(8)) && !arbiter.misses(SeqNo(8), SeqNo(20)));
    arbiter.distrust(Nanos(3), SeqNo(10));
    assert_eq!(
        arbiter.snapshot_floor(),
        SeqNo(10),
        "and of what lies before one copy is false"
    );
}
