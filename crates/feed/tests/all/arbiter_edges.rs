//! What an arbiter answers beside its verdicts: each was found by a change of it that no test noticed
//! (`cargo xtask mutants`).

use tickwire_feed::{
    Arbiter, ArbiterConfig, FeedState, Line, RecoveryLimits, SessionId, Situation, Start, Verdict,
};
use tickwire_market::{Counter, Nanos, Port, SeqNo};

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

#[test]
fn a_packet_that_came_in_fragments_waits_for_those_before_it_like_any_other() {
    let mut arbiter = by_both(ArbiterConfig {
        request_attempts: 0,
        ..ArbiterConfig::default()
    });
    let long: Vec<u8> = (0..9_000_u32).map(|nth| nth as u8).collect();
    let fifth = arbiter.on_packet(Nanos(2), Line::A, SESSION, SeqNo(6), 1, &long);
    assert_eq!(fifth, Verdict::Buffered);
    assert_eq!(on(&mut arbiter, 3, Line::A, 5, 1), Verdict::Deliver { skip: 0 });
    while arbiter.poll_situation().is_some() {}
    let released = arbiter.next_buffered().expect("it has its turn");
    assert_eq!((released.first, released.packet), (SeqNo(6), &long[..]));
    assert!(arbiter.next_buffered().is_none());
    assert_eq!((arbiter.next_seq(), arbiter.state()), (SeqNo(7), FeedState::Live));
    assert_eq!(arbiter.counters().get(Counter::BufferOverflows), 0);
}

#[test]
fn waiting_for_a_snapshot_a_long_packet_takes_the_room_of_several_older_ones() {
    let mut config = by_snapshot();
    (config.buffer_packets, config.packet_bytes) = (4, 8);
    let mut arbiter = by_both(config);
    arbiter.await_snapshot(Nanos(2));
    for first in [10, 11, 12, 13] {
        assert_eq!(on(&mut arbiter, 3, Line::A, first, 1), Verdict::Buffered);
    }
    let mut long = |first: u64, len: usize| {
        let packet = vec![7; len];
        let verdict = arbiter.on_packet(Nanos(4), Line::A, SESSION, SeqNo(first), 1, &packet);
        (verdict, arbiter.first_held())
    };
    assert_eq!(long(14, 24), (Verdict::Buffered, Some(SeqNo(13))));
    assert_eq!(
        long(15, 33),
        (Verdict::Overflow, Some(SeqNo(13))),
        "longer than all room"
    );
    assert_eq!(long(16, 32), (Verdict::Buffered, Some(SeqNo(16))));
}

/// Runs its time-outs until recovery is given up: when.
fn given_up(arbiter: &mut Arbiter) -> Nanos {
    let mut now = Nanos::ZERO;
    while !arbiter.is_given_up() {
        now = arbiter.poll_timeout().expect("something is due").max(now);
        assert!(now < Nanos(60 * Nanos::SECOND), "it is never given up");
        arbiter.handle_timeout(now);
        while arbiter.poll_request().is_some() {}
    }
    now
}

/// Requests that nobody answers, given up after a second.
fn unanswered() -> ArbiterConfig {
    let config = by_snapshot();
    ArbiterConfig {
        snapshot: false,
        request_attempts: u8::MAX,
        ..config
    }
}

#[test]
fn only_what_fills_a_gap_is_progress() {
    let half = 500 * Nanos::MILLI;
    let with = |what: &dyn Fn(&mut Arbiter)| {
        let mut arbiter = by_both(unanswered());
        for line in [Line::A, Line::B] {
            on(&mut arbiter, 2, line, 10, 1);
        }
        what(&mut arbiter);
        given_up(&mut arbiter)
    };
    let plain = Nanos(2 + Nanos::SECOND);
    assert_eq!(with(&|_| {}), plain);
    let answered = |arbiter: &mut Arbiter| {
        on(arbiter, half, Line::Retransmit, 5, 1);
    };
    assert_eq!(with(&answered), Nanos(half + Nanos::SECOND));
    let goes_on = |arbiter: &mut Arbiter| {
        on(arbiter, half, Line::A, 11, 1);
    };
    assert_eq!(with(&goes_on), plain, "what follows fills nothing");
    let another_gap = |arbiter: &mut Arbiter| {
        for line in [Line::A, Line::B] {
            on(arbiter, half, line, 20, 1);
        }
    };
    assert_eq!(with(&another_gap), plain, "nor does another gap");
}

#[test]
fn while_recovery_is_given_up_a_gap_too_large_for_requests_brings_no_snapshot() {
    let mut config = unanswered();
    (config.snapshot, config.request_gap_max) = (true, 10);
    let mut arbiter = by_both(config);
    for line in [Line::A, Line::B] {
        on(&mut arbiter, 2, line, 100, 1);
    }
    arbiter.handle_timeout(Nanos(Nanos::MILLI));
    assert!(arbiter.awaits_snapshot());
    let now = given_up(&mut arbiter);
    drain(&mut arbiter);
    for line in [Line::A, Line::B] {
        on(&mut arbiter, now.0 + 1, line, 300, 1);
    }
    arbiter.handle_timeout(now.after(Nanos::SECOND));
    assert!(!arbiter.awaits_snapshot() && arbiter.is_given_up());
}

/// Line A tells of message 20, and then goes on with 5 to 12: nobody has sent 20.
fn refute(arbiter: &mut Arbiter) {
    on(arbiter, 10, Line::A, 20, 1);
    for first in 5..13 {
        on(arbiter, 20 + first, Line::A, first, 1);
    }
    assert_eq!(arbiter.counters().get(Counter::NumbersRefuted), 1);
}

#[test]
fn a_snapshot_that_is_awaited_for_another_reason_is_awaited_still() {
    let mut arbiter = by_both(by_snapshot());
    arbiter.distrust(Nanos(2), SeqNo(3));
    on(&mut arbiter, 10, Line::A, 20, 1);
    arbiter.await_snapshot(Nanos(11));
    for first in 5..13 {
        on(&mut arbiter, 20 + first, Line::A, first, 1);
    }
    assert_eq!(arbiter.counters().get(Counter::NumbersRefuted), 1);
    assert!(arbiter.awaits_snapshot(), "messages 1 and 2 are in doubt");
}

#[test]
fn of_two_numbers_ahead_the_first_is_what_is_refuted() {
    let mut arbiter = by_both(ArbiterConfig::default());
    on(&mut arbiter, 8, Line::A, 20, 1);
    on(&mut arbiter, 9, Line::A, 100, 1);
    for first in 5..13 {
        on(&mut arbiter, 20 + first, Line::A, first, 1);
    }
    assert_eq!(arbiter.counters().get(Counter::NumbersRefuted), 1);
    drain(&mut arbiter);
    assert_eq!((arbiter.next_seq(), arbiter.missing()), (SeqNo(13), 0));
    assert!(arbiter.is_whole());
}

#[test]
fn an_end_ahead_goes_with_the_number_that_told_of_it() {
    let mut arbiter = begun();
    arbiter.on_heartbeat(Nanos(5), Line::A, SESSION, SeqNo(30), true);
    refute(&mut arbiter);
    drain(&mut arbiter);
    assert_eq!(packet(&mut arbiter, 40, 13, 17), Verdict::Deliver { skip: 0 });
    assert_eq!(
        (arbiter.next_seq(), arbiter.state()),
        (SeqNo(30), FeedState::Live)
    );
}

#[test]
fn live_packets_leave_room_for_answers() {
    let mut arbiter = by_both(ArbiterConfig {
        buffer_packets: 16,
        ..ArbiterConfig::default()
    });
    let mut first = 100;
    while on(&mut arbiter, 2, Line::A, first, 1) == Verdict::Buffered {
        first += 1;
        assert!(first < 120, "there is no end of room");
    }
    assert!(arbiter.held() < 16, "some is left");
    assert_eq!(on(&mut arbiter, 3, Line::Retransmit, 50, 1), Verdict::Buffered);
}

#[test]
fn of_packets_that_begin_alike_the_one_that_is_kept_stays() {
    let mut config = by_snapshot();
    config.buffer_packets = 2;
    let mut arbiter = by_both(config);
    arbiter.await_snapshot(Nanos(2));
    for first in [10, 11] {
        assert_eq!(on(&mut arbiter, 3, Line::A, first, 1), Verdict::Buffered);
    }
    assert_eq!(on(&mut arbiter, 4, Line::B, 10, 9), Verdict::Overflow);
}

#[test]
fn a_lost_message_is_passed_over_when_its_turn_has_come() {
    let mut arbiter = by_both(by_snapshot());
    for first in [6, 9] {
        for line in [Line::A, Line::B] {
            on(&mut arbiter, 2, line, first, if first == 6 { 2 } else { 1 });
        }
    }
    arbiter.handle_timeout(Nanos(100 * Nanos::MILLI));
    assert!(arbiter.awaits_snapshot(), "5 and 8 will not come");
    arbiter.resume_at(Nanos(200 * Nanos::MILLI), SeqNo(6));
    let released: Vec<u64> = std::iter::from_fn(|| arbiter.next_buffered().map(|it| it.first.0)).collect();
    assert_eq!(released.first(), Some(&6), "{released:?}");
    assert!(arbiter.next_seq() >= SeqNo(8));
}

#[test]
fn after_a_silence_a_jump_may_be_larger() {
    // Four messages so far, sixteen times as many may have been missed in a silence.
    let allowed = 5 + 100 + 16 * 4;
    for (first, is_believed) in [(allowed, true), (allowed + 1, false)] {
        let mut arbiter = by_both(ArbiterConfig {
            jump_max: 100,
            ..ArbiterConfig::default()
        });
        let verdict = on(&mut arbiter, 1_000, Line::A, first, 1);
        assert_eq!(verdict != Verdict::Ignored, is_believed, "{first}");
    }
}

/// Both lines alive at this time, with nothing new.
fn alive(arbiter: &mut Arbiter, at: u64) {
    for line in [Line::A, Line::B] {
        arbiter.on_heartbeat(Nanos(at), line, SESSION, SeqNo(5), false);
    }
}

#[test]
fn three_packets_far_ahead_have_to_last_while_the_other_line_says_otherwise() {
    let mut arbiter = by_both(ArbiterConfig::default());
    let late = 100 * Nanos::SECOND;
    alive(&mut arbiter, late);
    for nth in 0..3 {
        let verdict = on(&mut arbiter, late + nth, Line::A, 1_000_000 + nth, 1);
        assert_eq!(verdict, Verdict::Ignored, "{nth}");
    }
    let lasts = late + 2 * Nanos::SECOND;
    assert_eq!(on(&mut arbiter, lasts, Line::A, 1_000_003, 1), Verdict::Buffered);
}

#[test]
fn the_other_lines_word_for_a_jump_counts_for_as_long_as_it_is_heard() {
    let quiet = 3 * Nanos::SECOND;
    for (after, is_believed) in [(quiet - 1, true), (quiet, false)] {
        let mut arbiter = by_both(ArbiterConfig::default());
        let late = 100 * Nanos::SECOND;
        alive(&mut arbiter, late);
        assert_eq!(on(&mut arbiter, late, Line::B, 1_000_000, 1), Verdict::Ignored);
        let verdict = on(&mut arbiter, late + after, Line::A, 1_000_000, 1);
        assert_eq!(verdict != Verdict::Ignored, is_believed, "{after}");
    }
}

fn of_other(arbiter: &mut Arbiter, at: u64, line: Line) -> Verdict {
    arbiter.on_packet(Nanos(at), line, OTHER, SeqNo(1), 1, b"packet")
}

#[test]
fn another_session_needs_both_lines_of_late() {
    let (second, quiet) = (Nanos::SECOND, 3 * Nanos::SECOND);
    for (after, is_believed) in [(quiet - 1, true), (quiet, false)] {
        let mut arbiter = by_both(ArbiterConfig::default());
        assert_eq!(of_other(&mut arbiter, second, Line::A), Verdict::Ignored);
        // Line A says nothing more of its own session, which would take its word back.
        let at = Nanos(second + after - 1);
        arbiter.on_heartbeat(at, Line::B, SESSION, SeqNo(5), false);
        let verdict = of_other(&mut arbiter, second + after, Line::B);
        assert_eq!(verdict != Verdict::Ignored, is_believed, "{after}");
    }
}

#[test]
fn a_server_is_blamed_for_what_it_says_and_not_for_what_a_line_says() {
    let mut arbiter = begun();
    arbiter.planner_mut().set_servers(Port::Requests, 2);
    let asked = |arbiter: &Arbiter| arbiter.planner().server(Port::Requests);
    assert_eq!(on(&mut arbiter, 2, Line::A, 0, 1), Verdict::Ignored);
    assert_eq!(asked(&arbiter), 0, "line A has no number");
    let answer = on(&mut arbiter, 3, Line::Retransmit, 50, 1);
    assert_eq!(answer, Verdict::Ignored, "nobody asked for message 50");
    assert_eq!(asked(&arbiter), 1);
}

#[test]
fn two_other_sessions_are_no_other_session() {
    let mut arbiter = by_both(ArbiterConfig::default());
    assert_eq!(of_other(&mut arbiter, 2, Line::A), Verdict::Ignored);
    let third = SessionId(*b"S000000003");
    let verdict = arbiter.on_packet(Nanos(3), Line::B, third, SeqNo(1), 1, b"packet");
    assert_eq!(verdict, Verdict::Ignored);
    assert_eq!(arbiter.session(), Some(SESSION));
}

#[test]
fn where_there_is_one_line_another_session_has_to_insist() {
    let mut arbiter = Arbiter::new(ArbiterConfig {
        confirm_packets: 3,
        ..ArbiterConfig::default()
    });
    packet(&mut arbiter, 1, 1, 4);
    for nth in 1..3 {
        assert_eq!(
            of_other(&mut arbiter, 1 + nth, Line::A),
            Verdict::Ignored,
            "{nth}"
        );
    }
    assert_eq!(of_other(&mut arbiter, 9, Line::A), Verdict::Deliver { skip: 0 });
}

#[test]
fn a_packet_that_follows_on_what_both_lines_know_claims_nothing() {
    let mut arbiter = by_both(ArbiterConfig::default());
    for line in [Line::A, Line::B] {
        on(&mut arbiter, 2, line, 13, 1);
    }
    assert_eq!(on(&mut arbiter, 3, Line::A, 14, 1), Verdict::Buffered);
    // Line B is late by more than one line can be behind the other, and speaks of what both know to exist.
    on(&mut arbiter, 2_500 * Nanos::MILLI, Line::B, 6, 1);
    assert_eq!(arbiter.counters().get(Counter::NumbersRefuted), 0);
    assert_eq!(arbiter.latest(), SeqNo(15));
}

#[test]
fn what_the_other_line_says_up_to_a_refuted_number_is_believed() {
    let mut arbiter = by_both(ArbiterConfig::default());
    on(&mut arbiter, 2, Line::A, 20, 1);
    assert_eq!(on(&mut arbiter, 3, Line::B, 18, 2), Verdict::Buffered);
    for first in 5..13 {
        on(&mut arbiter, 20 + first, Line::A, first, 1);
    }
    assert_eq!(arbiter.counters().get(Counter::NumbersRefuted), 1);
    drain(&mut arbiter);
    assert_eq!(
        (arbiter.next_seq(), arbiter.latest(), arbiter.missing()),
        (SeqNo(13), SeqNo(20), 5),
        "18 and 19 came by line B"
    );
}

#[test]
fn a_line_whose_number_was_refuted_is_where_it_went_on() {
    let mut arbiter = by_both(ArbiterConfig::default());
    refute(&mut arbiter);
    drain(&mut arbiter);
    // Line B is silent; line A begins anew, for as long as is believed.
    let late = 10 * Nanos::SECOND;
    for nth in 0..3 {
        on(
            &mut arbiter,
            late + nth * 1_500 * Nanos::MILLI,
            Line::A,
            1 + nth,
            1,
        );
    }
    assert_eq!(arbiter.counters().get(Counter::SessionChanges), 1);
}

#[test]
fn a_line_whose_number_was_refuted_is_heard_still() {
    let mut arbiter = by_both(ArbiterConfig::default());
    on(&mut arbiter, 2, Line::A, 20, 1);
    let refuted = 2_500 * Nanos::MILLI;
    on(&mut arbiter, refuted, Line::B, 5, 1);
    assert_eq!(arbiter.counters().get(Counter::NumbersRefuted), 1);
    // Line A said something less than three seconds ago: line B alone begins no session.
    for nth in 1..=u64::from(2 * ArbiterConfig::default().confirm_packets) {
        assert_eq!(
            of_other(&mut arbiter, refuted + nth, Line::B),
            Verdict::Ignored,
            "{nth}"
        );
    }
}

#[test]
fn a_lost_message_before_a_claim_is_passed_over() {
    let mut config = unanswered();
    (config.request_attempts, config.recovery.deadline_ns) = (1, 0);
    let mut arbiter = by_both(config);
    for line in [Line::A, Line::B] {
        arbiter.on_heartbeat(Nanos(2), line, SESSION, SeqNo(6), false);
    }
    // Line A alone tells of 20; what lies between comes by line B, 5 by none.
    on(&mut arbiter, 3, Line::A, 20, 1);
    assert_eq!(on(&mut arbiter, 4, Line::B, 6, 14), Verdict::Buffered);
    let mut now = Nanos(5);
    while arbiter.next_seq() < SeqNo(21) {
        now = arbiter.poll_timeout().expect("something is due").max(now);
        assert!(now < Nanos(Nanos::SECOND), "5 is waited for");
        arbiter.handle_timeout(now);
        while arbiter.poll_request().is_some() {}
        drain(&mut arbiter);
    }
    assert_eq!(arbiter.counters().get(Counter::MessagesLost), 1);
}

#[test]
fn of_what_was_given_up_each_is_passed_over_in_its_turn() {
    let mut arbiter = by_both(unanswered());
    for line in [Line::A, Line::B] {
        on(&mut arbiter, 2, line, 6, 2);
        on(&mut arbiter, 2, line, 9, 1);
    }
    given_up(&mut arbiter);
    let released: Vec<u64> = std::iter::from_fn(|| arbiter.next_buffered().map(|it| it.first.0)).collect();
    assert_eq!(released, [6, 9]);
    assert_eq!(arbiter.counters().get(Counter::MessagesLost), 2, "5 and 8");
}

#[test]
fn a_packet_that_opens_no_gap_needs_no_room_for_one() {
    let mut arbiter = by_both(ArbiterConfig {
        gaps: 4,
        ..ArbiterConfig::default()
    });
    let mut first = 6;
    while on(&mut arbiter, 2, Line::A, first, 1) == Verdict::Buffered {
        first += 2;
        assert!(first < 40, "there is no end of room");
    }
    assert_eq!(arbiter.latest(), SeqNo(first + 1), "it is known to exist");
    assert_eq!(on(&mut arbiter, 3, Line::A, first + 1, 1), Verdict::Buffered);
}

/// A line that was never heard before comes up with the numbers that begin anew, as the other one does.
#[test]
fn numbers_begin_anew_although_one_line_has_not_known_the_old_ones() {
    let mut arbiter = Arbiter::new(ArbiterConfig::default());
    let mut take = |now: u64, line, n: u64| {
        arbiter.on_packet(Nanos(now), line, SessionId::NONE, SeqNo(n), 1, b"");
        while arbiter.poll_situation().is_some() {}
        while arbiter.next_buffered().is_some() {}
        arbiter.next_seq().0
    };
    for n in 1..=1000 {
        take(n * 1_000, Line::A, n);
    }
    let night = 12 * 3600 * Nanos::SECOND;
    let mut next = 0;
    for n in 1..=200 {
        for line in [Line::A, Line::B] {
            next = take(night + n * 100 * Nanos::MILLI, line, n);
        }
    }
    assert_eq!(next, 201);
}
