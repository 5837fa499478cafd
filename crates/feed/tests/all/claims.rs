//! What one line tells of messages ahead, and what the other line says against it.

use tickwire_feed::{Arbiter, ArbiterConfig, Line, SessionId, Situation, Verdict};
use tickwire_market::{Counter, Nanos, SeqNo};

const SESSION: SessionId = SessionId(*b"S000000001");

fn packet(arbiter: &mut Arbiter, at: u64, line: Line, first: u64, count: u32) -> Verdict {
    arbiter.on_packet(Nanos(at), line, SESSION, SeqNo(first), count, b"packet")
}

fn drain(arbiter: &mut Arbiter) -> Vec<Situation> {
    std::iter::from_fn(|| arbiter.poll_situation()).collect()
}

/// Line A is ahead and right; most of what line B has not sent yet was recovered. A late packet of line B,
/// after a long silence, speaks against line A, but not against what has been delivered.
#[test]
fn a_slow_line_does_not_take_back_what_was_recovered() {
    let mut arbiter = Arbiter::new(ArbiterConfig::default());
    for line in [Line::A, Line::B] {
        packet(&mut arbiter, 1, line, 1, 9);
    }
    drain(&mut arbiter);
    assert_eq!(packet(&mut arbiter, 2, Line::A, 20, 1), Verdict::Buffered);
    assert_eq!(drain(&mut arbiter).len(), 1, "a gap");
    let answer = packet(&mut arbiter, 3, Line::Retransmit, 10, 5);
    assert_eq!(answer, Verdict::Deliver { skip: 0 });
    assert_eq!(arbiter.next_seq(), SeqNo(15));
    let late = packet(&mut arbiter, 3 * Nanos::SECOND, Line::B, 10, 2);
    assert_eq!(late, Verdict::Duplicate);
    assert_eq!(arbiter.counters().get(Counter::NumbersRefuted), 1);
    assert_eq!(arbiter.counters().get(Counter::SessionChanges), 0);
    while arbiter.next_buffered().is_some() {}
    assert_eq!(arbiter.next_seq(), SeqNo(15));
    let recovered = Situation::Recovered { next: SeqNo(15) };
    assert_eq!(drain(&mut arbiter), [recovered], "nothing else is known to exist");
}
