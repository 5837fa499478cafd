//! What an arbiter answers beside its verdicts: each was found by a change of it that no test noticed
//! (`cargo xtask mutants`).

use tickwire_feed::{
    Arbiter, ArbiterConfig, FeedState, Line, RecoveryLimits, SessionId, Situation, Start, Verdict,
};
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

const OTHER: SessionId = SessionId(*b"S000000002");

fn on(arbiter: &mut Arbiter, at: u64, line: Line, first: u64, count: u32) -> Verdict {
    arbiter.on_packet(Nanos(at), line, SESSION, SeqNo(first), count, b"packet")
}

/// Messages 1 to 4 by both lines, at 1 ns.
fn by_both(config: ArbiterConfig) -> Arbiter {
    let mut arbiter = Arbiter::new(config);
    for line in [Line::A, Line::B] {
        on(&mut arbiter, 1, line, 1, 4);
    }
    drain(&mut arbiter);
    arbiter
}

fn drain(arbiter: &mut Arbiter) -> Vec<Situation> {
    while arbiter.next_buffered().is_some() {}
    std::iter::from_fn(|| arbiter.poll_situation()).collect()
}

/// Where a snapshot is to be had, and nothing else; given up after a second, for two.
fn by_snapshot() -> ArbiterConfig {
    ArbiterConfig {
        snapshot: true,
        request_attempts: 0,
        recovery: RecoveryLimits {
            deadline_ns: Nanos::SECOND,
            retry_ns: 2 * Nanos::SECOND,
            ..RecoveryLimits::MOLDUDP64
        },
        ..ArbiterConfig::default()
    }
}

#[test]
fn the_short_way_of_repeats_is_for_what_the_line_has_not_brought_yet() {
    let mut arbiter = begun();
    let b = |arbiter: &mut Arbiter, session, first, count| {
        arbiter.repeats(Nanos(2), Line::B, session, SeqNo(first), count)
    };
    assert!(!b(&mut arbiter, OTHER, 1, 4), "another session");
    assert!(!b(&mut arbiter, SESSION, 0, 4), "no number");
    assert!(!b(&mut arbiter, SESSION, 1, 5), "message 5 is new");
    assert!(b(&mut arbiter, SESSION, 1, 4));
    assert!(!b(&mut arbiter, SESSION, 1, 4), "the line has brought it");
    let counted = |what| arbiter.counters().get(what);
    assert_eq!(
        (
            counted(Counter::PacketsDuplicate),
            counted(Counter::MessagesDuplicate)
        ),
        (1, 4)
    );
}

#[test]
fn what_a_filter_has_seen_is_beyond_what_is_known_and_no_number_beyond_all() {
    let mut arbiter = begun();
    arbiter.seen_up_to(Nanos(9), SeqNo(5));
    assert_eq!(arbiter.last_packet(), Nanos(1), "it says nothing new");
    arbiter.seen_up_to(Nanos(9), SeqNo(1 << 62));
    assert_eq!(arbiter.next_seq(), SeqNo(5));
    arbiter.seen_up_to(Nanos(9), SeqNo((1 << 62) - 1));
    assert_eq!(arbiter.next_seq(), SeqNo((1 << 62) - 1));
}

#[test]
fn an_end_that_one_line_tells_waits_until_the_other_is_silent() {
    let mut arbiter = by_both(ArbiterConfig::default());
    arbiter.on_heartbeat(Nanos(10), Line::A, SESSION, SeqNo(5), true);
    assert_eq!(arbiter.state(), FeedState::Live);
    let due = arbiter.poll_timeout().expect("it waits");
    assert_eq!(due, Nanos(1 + 3 * Nanos::SECOND), "line B may speak until then");
    arbiter.handle_timeout(Nanos(due.0 - 1));
    assert_eq!(arbiter.state(), FeedState::Live);
    arbiter.handle_timeout(due);
    assert_eq!(arbiter.state(), FeedState::Ended);
}

#[test]
fn a_line_that_is_alive_after_its_end_has_not_ended() {
    let mut arbiter = by_both(ArbiterConfig::default());
    arbiter.on_heartbeat(Nanos(10), Line::A, SESSION, SeqNo(5), true);
    arbiter.on_heartbeat(Nanos(20), Line::A, SESSION, SeqNo(5), false);
    arbiter.handle_timeout(Nanos(20 * Nanos::SECOND));
    assert_eq!(arbiter.state(), FeedState::Live);
}

#[test]
fn an_end_that_was_passed_does_not_hide_the_other_lines() {
    let mut arbiter = by_both(ArbiterConfig::default());
    arbiter.on_heartbeat(Nanos(10), Line::A, SESSION, SeqNo(5), true);
    assert_eq!(on(&mut arbiter, 20, Line::A, 5, 1), Verdict::Deliver { skip: 0 });
    arbiter.on_heartbeat(Nanos(30), Line::B, SESSION, SeqNo(6), true);
    arbiter.handle_timeout(Nanos(20 * Nanos::SECOND));
    assert_eq!(arbiter.state(), FeedState::Ended);
}

#[test]
fn an_end_told_by_recovery_that_was_passed_does_not_undo_a_later_one() {
    let mut arbiter = by_both(ArbiterConfig::default());
    arbiter.on_heartbeat(Nanos(10), Line::Retransmit, SESSION, SeqNo(5), true);
    assert_eq!(arbiter.state(), FeedState::Ended);
    for line in [Line::A, Line::B] {
        on(&mut arbiter, 20, line, 5, 1);
    }
    assert_eq!(arbiter.state(), FeedState::Live);
    arbiter.ends_at(SeqNo(6));
    arbiter.on_heartbeat(Nanos(30), Line::A, SESSION, SeqNo(6), true);
    assert_eq!(arbiter.state(), FeedState::Ended);
}

#[test]
fn what_began_in_the_middle_is_whole_when_that_is_accepted() {
    let mut arbiter = begun();
    assert!(arbiter.is_whole() && !arbiter.has_lost());
    assert_eq!(packet(&mut arbiter, 2, 8, 1), Verdict::Buffered);
    assert!(!arbiter.is_whole() && !arbiter.has_lost(), "messages are missing");
    let mut here = Arbiter::new(ArbiterConfig {
        start: Start::Here,
        ..ArbiterConfig::default()
    });
    assert_eq!(here.session(), None);
    assert_eq!(packet(&mut here, 1, 100, 4), Verdict::Deliver { skip: 0 });
    assert_eq!(here.session(), Some(SESSION));
    drain(&mut here);
    // One line alone said so: what lies before may yet come.
    assert!(!here.is_whole() && here.has_lost());
    here.accept_loss();
    assert!(here.is_whole() && !here.has_lost());
    assert_eq!(drain(&mut here), [Situation::Recovered { next: SeqNo(104) }]);
    here.accept_loss();
    assert_eq!(drain(&mut here), [], "once");
}

#[test]
fn a_request_that_could_not_be_sent_is_due_again_and_uses_no_quota() {
    let mut arbiter = by_both(ArbiterConfig {
        recovery: RecoveryLimits {
            requests_per_day: 1,
            ..RecoveryLimits::MOLDUDP64
        },
        ..ArbiterConfig::default()
    });
    for line in [Line::A, Line::B] {
        on(&mut arbiter, 2, line, 8, 1);
    }
    let mut now = Nanos(2);
    for nth in 1..=3 {
        let range = loop {
            now = arbiter.poll_timeout().expect("a request is due").max(now);
            arbiter.handle_timeout(now);
            assert!(now < Nanos(Nanos::SECOND), "request {nth}");
            if let Some(range) = arbiter.poll_request() {
                break range;
            }
        };
        assert_eq!((range.first, range.count), (SeqNo(5), 3));
        arbiter.take_back_request(now, range);
    }
}

#[test]
fn recovery_that_makes_no_progress_is_given_up_for_a_while() {
    let mut arbiter = by_both(by_snapshot());
    let began = 5 * Nanos::SECOND;
    for line in [Line::A, Line::B] {
        on(&mut arbiter, began, line, 8, 1);
    }
    arbiter.handle_timeout(Nanos(began + Nanos::MILLI));
    assert!(arbiter.awaits_snapshot() && !arbiter.is_given_up());
    let waits = Nanos(began + Nanos::MILLI + Nanos::SECOND);
    assert_eq!(arbiter.poll_timeout(), Some(waits));
    // Whoever says again what is awaited already has brought nothing.
    arbiter.await_snapshot(Nanos(began + 500 * Nanos::MILLI));
    assert_eq!(arbiter.poll_timeout(), Some(waits));
    arbiter.note_progress(Nanos(began + 600 * Nanos::MILLI));
    let waits = Nanos(began + 1_600 * Nanos::MILLI);
    assert_eq!(arbiter.poll_timeout(), Some(waits));
    arbiter.handle_timeout(Nanos(waits.0 - 1));
    assert!(!arbiter.is_given_up());
    arbiter.handle_timeout(waits);
    assert!(arbiter.is_given_up() && !arbiter.awaits_snapshot());
    assert_eq!(arbiter.counters().get(Counter::RecoveriesFailed), 1);
    drain(&mut arbiter);
    assert_eq!(arbiter.next_seq(), SeqNo(9), "it goes on with what has come");
    assert_eq!(arbiter.state(), FeedState::Stale);
    // What is missed meanwhile does not bring the snapshot back before its time.
    for line in [Line::A, Line::B] {
        on(&mut arbiter, waits.0 + 1, line, 12, 1);
    }
    arbiter.handle_timeout(waits.after(Nanos::SECOND));
    assert!(!arbiter.awaits_snapshot());
    let again = waits.after(2 * Nanos::SECOND);
    arbiter.handle_timeout(again);
    assert!(arbiter.awaits_snapshot() && !arbiter.is_given_up());
    let deadline = again.after(Nanos::SECOND);
    assert_eq!(arbiter.poll_timeout(), Some(deadline), "a second anew");
}

#[test]
fn a_deadline_of_nothing_is_none_and_neither_is_there_one_before_anything_came() {
    let mut config = by_snapshot();
    config.recovery.deadline_ns = 0;
    let mut arbiter = by_both(config);
    for line in [Line::A, Line::B] {
        on(&mut arbiter, 2, line, 8, 1);
    }
    arbiter.handle_timeout(Nanos(100 * Nanos::SECOND));
    assert!(arbiter.awaits_snapshot() && !arbiter.is_given_up());
    assert_eq!(arbiter.poll_timeout(), None);
    let mut new = Arbiter::new(by_snapshot());
    new.await_snapshot(Nanos(1));
    new.handle_timeout(Nanos(100 * Nanos::SECOND));
    assert!(new.awaits_snapshot() && !new.is_given_up());
}

#[test]
fn without_snapshots_what_was_given_up_stays_marked() {
    let mut config = by_snapshot();
    (config.snapshot, config.request_attempts) = (false, u8::MAX);
    let mut arbiter = by_both(config);
    for line in [Line::A, Line::B] {
        on(&mut arbiter, 2, line, 8, 1);
    }
    let mut now = Nanos(2);
    while !arbiter.is_given_up() {
        now = arbiter
            .poll_timeout()
            .filter(|due| *due > now)
            .expect("something later");
        assert!(now <= Nanos(2 * Nanos::SECOND), "the deadline has passed");
        arbiter.handle_timeout(now);
        while arbiter.poll_request().is_some() {}
    }
    drain(&mut arbiter);
    arbiter.handle_timeout(now.after(10 * Nanos::SECOND));
    assert!(!arbiter.awaits_snapshot() && !arbiter.is_given_up());
    assert_eq!(
        (arbiter.next_seq(), arbiter.state()),
        (SeqNo(9), FeedState::Stale)
    );
}

#[test]
fn a_place_that_a_snapshot_gave_is_for_the_session_that_begins_there() {
    let mut new = Arbiter::new(by_snapshot());
    new.await_snapshot(Nanos(1));
    new.resume_at(Nanos(2), SeqNo(10));
    assert_eq!(packet(&mut new, 3, 10, 2), Verdict::Deliver { skip: 0 });
    assert_eq!(new.next_seq(), SeqNo(12));
    let mut arbiter = by_both(by_snapshot());
    arbiter.distrust(Nanos(2), SeqNo(3));
    assert!(arbiter.awaits_snapshot());
    arbiter.resume_at(Nanos(3), SeqNo(5));
    drain(&mut arbiter);
    // Another session begins with its own first message.
    let late = Nanos(60 * Nanos::SECOND);
    let verdict = arbiter.on_packet(late, Line::A, OTHER, SeqNo(1), 2, b"packet");
    assert_eq!(verdict, Verdict::Deliver { skip: 0 });
    assert_eq!((arbiter.session(), arbiter.next_seq()), (Some(OTHER), SeqNo(3)));
}

#[test]
fn packets_of_the_session_just_left_are_nobodys() {
    let mut arbiter = Arbiter::new(ArbiterConfig {
        confirm_packets: 1,
        ..ArbiterConfig::default()
    });
    packet(&mut arbiter, 1, 1, 4);
    let begins = 10 * Nanos::SECOND;
    let of = |arbiter: &mut Arbiter, at, session| {
        arbiter.on_packet(Nanos(at), Line::A, session, SeqNo(1), 1, b"packet")
    };
    assert_eq!(of(&mut arbiter, begins, OTHER), Verdict::Deliver { skip: 0 });
    let quiet = 3 * Nanos::SECOND;
    assert_eq!(of(&mut arbiter, begins + quiet - 1, SESSION), Verdict::Ignored);
    assert_eq!(arbiter.session(), Some(OTHER));
    assert_eq!(
        of(&mut arbiter, begins + quiet, SESSION),
        Verdict::Deliver { skip: 0 },
        "it insists, and the time is over"
    );
}

#[test]
fn numbers_up_to_the_largest_are_numbers() {
    let largest = 1 << 62;
    for (first, is_read) in [(largest, true), (largest + 1, false), (0, false)] {
        let mut arbiter = Arbiter::new(ArbiterConfig {
            start: Start::Here,
            ..ArbiterConfig::default()
        });
        let verdict = packet(&mut arbiter, 1, first, 0);
        assert_eq!(verdict != Verdict::Ignored, is_read, "{first}");
    }
}

#[test]
fn a_jump_of_the_configured_size_is_believed_at_once() {
    for (first, is_believed) in [(5 + 100, true), (5 + 101, false)] {
        let mut arbiter = by_both(ArbiterConfig {
            jump_max: 100,
            ..ArbiterConfig::default()
        });
        let verdict = on(&mut arbiter, 1, Line::A, first, 1);
        assert_eq!(verdict != Verdict::Ignored, is_believed, "{first}");
    }
}

#[test]
fn what_is_waited_for_is_looked_at_later_each_time() {
    // One line alone tells of messages that nobody has: they are not passed over as lost.
    let mut arbiter = by_both(ArbiterConfig {
        request_attempts: 0,
        ..ArbiterConfig::default()
    });
    assert_eq!(on(&mut arbiter, 2, Line::A, 8, 1), Verdict::Buffered);
    let mut now = Nanos(2);
    for _ in 0..50 {
        let Some(due) = arbiter.poll_timeout() else { break };
        assert!(due > now, "{due:?} is not behind {now:?}");
        now = due;
        arbiter.handle_timeout(now);
        while arbiter.poll_request().is_some() {}
        drain(&mut arbiter);
    }
    assert_eq!(arbiter.next_seq(), SeqNo(5));
}

#[test]
fn waiting_for_a_snapshot_the_newest_packets_are_kept() {
    let mut config = by_snapshot();
    config.buffer_packets = 4;
    let mut arbiter = by_both(config);
    arbiter.await_snapshot(Nanos(2));
    for first in [10, 11, 12, 13] {
        assert_eq!(on(&mut arbiter, 3, Line::A, first, 1), Verdict::Buffered);
    }
    assert_eq!(arbiter.first_held(), Some(SeqNo(10)));
    assert_eq!(on(&mut arbiter, 4, Line::A, 14, 1), Verdict::Buffered);
    assert_eq!(arbiter.first_held(), Some(SeqNo(11)), "the oldest made room");
    assert_eq!(
        on(&mut arbiter, 4, Line::B, 9, 1),
        Verdict::Overflow,
        "none is older"
    );
    assert_eq!(arbiter.first_held(), Some(SeqNo(11)));
}
