//! Two sessions against each other in virtual time: bytes cut anywhere, connections lost at any byte.
//! `SEED=n` repeats a run.

use std::collections::VecDeque;
use tickwire_fix::{
    Again, BusinessMessageReject, CompId, DisconnectReason, Event, Id, MsgType, Reason, Role, SendError,
    Session, SessionConfig, Status, Store,
};
use tickwire_market::{Nanos, SeqNo};
use tickwire_testdata::Rng;

const START: Nanos = Nanos(1_795_226_141_000_000_000);

/// A session, the messages its application sent and got, and the bytes on their way to the other.
struct End {
    session: Session,
    wire: VecDeque<u8>,
    sent: u64,
    got: Vec<u64>,
    gaps: usize,
    closing: Option<DisconnectReason>,
}

impl End {
    fn new(config: SessionConfig) -> End {
        End {
            session: Session::new(config),
            wire: VecDeque::new(),
            sent: 0,
            got: Vec::new(),
            gaps: 0,
            closing: None,
        }
    }

    fn drain(&mut self, step: usize) {
        let mut buf = vec![0; step];
        loop {
            while let Some(bytes) = self.session.poll_transmit(&mut buf) {
                self.wire.extend(bytes);
            }
            match self.session.poll_event() {
                Some(Event::Message { .. }) => {
                    let message = self.session.message().expect("the event is about it");
                    self.got
                        .push(BusinessMessageReject::decode(&message).unwrap().ref_seq.0);
                }
                Some(Event::Gap { .. }) => self.gaps += 1,
                Some(Event::Disconnect { reason, .. }) => self.closing = Some(reason),
                Some(Event::LoggedOn { .. } | Event::NotKept { .. }) => {}
                Some(other) => panic!("unexpected {other:?}"),
                None if self.session.backlog() == 0 => return,
                None => {}
            }
        }
    }

    fn send(&mut self, now: Nanos) {
        let number = self.sent + 1;
        let message = BusinessMessageReject {
            ref_seq: SeqNo(number),
            ref_msg_type: MsgType::new(b"D").unwrap(),
            ref_id: Id::from_number(number),
            reason: 0,
            text: Reason::lossy(&vec![b'x'; (number % 60) as usize]),
        };
        let msg_type = BusinessMessageReject::MSG_TYPE;
        match self
            .session
            .send(now, msg_type, Again::Resend, |e, _| message.encode(e))
        {
            Ok(_) => self.sent = number,
            Err(SendError::NotLoggedOn) => {}
            Err(other) => panic!("{other:?}"),
        }
    }

    fn receive(&mut self, now: Nanos, from: &mut VecDeque<u8>, max: usize) {
        let bytes: Vec<u8> = from.drain(..max.min(from.len())).collect();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let taken = self.session.handle_bytes(now, rest);
            rest = &rest[taken..];
            self.drain(4096);
        }
    }
}

fn ends(change: impl Fn(&mut SessionConfig)) -> (End, End) {
    let comp = |text: &[u8]| CompId::new(text).unwrap();
    let mut initiator = SessionConfig::new(Role::Initiator, comp(b"BUYER"), comp(b"VENUE"));
    let mut acceptor = SessionConfig::new(Role::Acceptor, comp(b"VENUE"), CompId::EMPTY);
    change(&mut initiator);
    change(&mut acceptor);
    (End::new(initiator), End::new(acceptor))
}

fn connect(a: &mut End, b: &mut End, now: Nanos) {
    a.session.handle_connected(now);
    b.session.handle_connected(now);
    a.drain(4096);
    b.drain(4096);
}

fn disconnect(a: &mut End, b: &mut End, now: Nanos) {
    for end in [a, b] {
        end.session.handle_disconnected(now);
        end.wire.clear();
        end.closing = None;
    }
}

/// Until nothing is on its way.
fn settle(a: &mut End, b: &mut End, now: Nanos, chunk: usize) {
    while !a.wire.is_empty() || !b.wire.is_empty() {
        let (mut to_b, mut to_a) = (std::mem::take(&mut a.wire), std::mem::take(&mut b.wire));
        while !to_b.is_empty() {
            b.receive(now, &mut to_b, chunk);
        }
        while !to_a.is_empty() {
            a.receive(now, &mut to_a, chunk);
        }
    }
}

#[test]
fn a_conversation_is_the_same_with_bytes_cut_at_every_offset() {
    for chunk in 1..200 {
        let (mut a, mut b) = ends(|_| {});
        connect(&mut a, &mut b, START);
        settle(&mut a, &mut b, START, chunk);
        assert_eq!(
            (a.session.status(), b.session.status()),
            (Status::Active, Status::Active)
        );
        assert_eq!(b.session.peer().as_str(), "BUYER");
        for _ in 0..20 {
            a.send(START);
            b.send(START);
            b.send(START);
        }
        a.drain(chunk);
        b.drain(chunk);
        settle(&mut a, &mut b, START, chunk);
        assert_eq!(b.got, (1..=20).collect::<Vec<_>>(), "chunk {chunk}");
        assert_eq!(a.got, (1..=40).collect::<Vec<_>>(), "chunk {chunk}");
        a.session.logout(START, "done");
        a.drain(chunk);
        settle(&mut a, &mut b, START, chunk);
        assert_eq!(a.closing, Some(DisconnectReason::LogoutComplete));
        assert_eq!(b.closing, Some(DisconnectReason::PeerLogout));
        let trouble = a.session.counters().iter().filter(|(counter, n)| {
            use tickwire_market::Counter::{
                FixBytesIn, FixBytesOut, FixLogons, FixMessagesIn, FixMessagesOut,
            };
            let is_traffic = matches!(
                counter,
                FixBytesIn | FixBytesOut | FixLogons | FixMessagesIn | FixMessagesOut
            );
            *n > 0 && !is_traffic
        });
        assert_eq!(trouble.count(), 0, "{:?}", a.session.counters());
    }
}

#[test]
fn nothing_is_lost_or_doubled_when_the_connection_is_cut_at_any_byte() {
    let total = {
        let (mut a, mut b) = ends(|_| {});
        connect(&mut a, &mut b, START);
        conversation(&mut a, &mut b, START, usize::MAX)
    };
    for cut in 0..total {
        let (mut a, mut b) = ends(|_| {});
        connect(&mut a, &mut b, START);
        conversation(&mut a, &mut b, START, cut);
        let now = START.after(Nanos::SECOND);
        disconnect(&mut a, &mut b, now);
        connect(&mut a, &mut b, now);
        settle(&mut a, &mut b, now, 4096);
        assert_eq!(a.closing, None, "cut at {cut}");
        assert_eq!(b.closing, None, "cut at {cut}");
        assert_eq!(b.got, (1..=a.sent).collect::<Vec<_>>(), "cut at {cut}");
        assert_eq!(a.got, (1..=b.sent).collect::<Vec<_>>(), "cut at {cut}");
    }
}

/// A logon and a few messages each way, as far as `cut` bytes in all lead; how many bytes it took.
fn conversation(a: &mut End, b: &mut End, now: Nanos, cut: usize) -> usize {
    let mut left = cut;
    for round in 0..8 {
        let (mut to_b, mut to_a) = (std::mem::take(&mut a.wire), std::mem::take(&mut b.wire));
        let n = left.min(to_b.len());
        b.receive(now, &mut to_b, n);
        left -= n;
        let n = left.min(to_a.len());
        a.receive(now, &mut to_a, n);
        left -= n;
        if round >= 2 {
            a.send(now);
            b.send(now);
        }
        a.drain(4096);
        b.drain(4096);
        if left == 0 {
            break;
        }
    }
    cut - left
}

#[test]
fn nothing_is_lost_or_doubled_over_many_connections_lost_at_random() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("SEED is a number")],
        Err(_) => (1..=400).collect::<Vec<u64>>(),
    };
    let (mut gaps, runs) = (0, seeds.len());
    for seed in seeds {
        let mut rng = Rng::new(seed);
        // Small buffers, so that messages ahead of a gap are dropped and requested again.
        let early = [0, 300, 5_000][rng.below(3) as usize];
        let (mut a, mut b) = ends(|config| {
            config.early_bytes = early;
            config.heartbeat_s = 1;
            config.events = 8;
            config.latency_max_ns = 0;
        });
        let mut now = START;
        connect(&mut a, &mut b, now);
        for _ in 0..2_000 {
            now = now.after(rng.below(50_000_000));
            match rng.below(100) {
                0 => {
                    disconnect(&mut a, &mut b, now);
                    connect(&mut a, &mut b, now);
                }
                1..=30 => a.send(now),
                31..=60 => b.send(now),
                _ => {}
            }
            for (from, to) in [(true, rng.below(400)), (false, rng.below(400))] {
                let (from, to, max) = if from {
                    (&mut a, &mut b, to)
                } else {
                    (&mut b, &mut a, to)
                };
                from.drain(1 + rng.below(500) as usize);
                let mut wire = std::mem::take(&mut from.wire);
                to.receive(now, &mut wire, max as usize);
                from.wire = wire;
                to.session.handle_timeout(now);
                to.drain(4096);
            }
            assert!(a.closing.is_none_or(is_time), "SEED={seed} {:?}", a.closing);
            assert!(b.closing.is_none_or(is_time), "SEED={seed} {:?}", b.closing);
            if a.closing.is_some() || b.closing.is_some() {
                disconnect(&mut a, &mut b, now);
                connect(&mut a, &mut b, now);
            }
        }
        settle(&mut a, &mut b, now, 1000);
        for _ in 0..4 {
            if a.got.len() as u64 == b.sent && b.got.len() as u64 == a.sent {
                break;
            }
            disconnect(&mut a, &mut b, now);
            connect(&mut a, &mut b, now);
            settle(&mut a, &mut b, now, 1000);
        }
        assert_eq!(b.got, (1..=a.sent).collect::<Vec<_>>(), "SEED={seed}");
        assert_eq!(a.got, (1..=b.sent).collect::<Vec<_>>(), "SEED={seed}");
        assert!(a.sent > 100, "SEED={seed}: only {} sent", a.sent);
        gaps += a.gaps + b.gaps;
    }
    assert!(runs == 1 || gaps > runs, "hardly a gap in {runs} runs: {gaps}");
}

/// A slow link makes heartbeats late.
fn is_time(reason: DisconnectReason) -> bool {
    matches!(
        reason,
        DisconnectReason::HeartbeatTimeout | DisconnectReason::ResendTimeout
    )
}

#[test]
fn messages_the_store_no_longer_has_are_filled_and_the_rest_comes_again() {
    let (mut a, mut b) = ends(|config| config.store_messages = 4);
    connect(&mut a, &mut b, START);
    settle(&mut a, &mut b, START, 4096);
    for _ in 0..10 {
        a.send(START);
    }
    disconnect(&mut a, &mut b, START);
    connect(&mut a, &mut b, START);
    settle(&mut a, &mut b, START, 4096);
    // Logon 1, orders 2 to 11, Logon 12, of which four are kept.
    assert_eq!(b.got, [7, 8, 9, 10]);
    assert_eq!(a.session.store().next_out(), b.session.store().next_in());
}

#[test]
fn an_idle_session_lives_on_heartbeats_and_a_silent_peer_is_noticed() {
    let (mut a, mut b) = ends(|config| config.heartbeat_s = 10);
    let mut now = START;
    connect(&mut a, &mut b, now);
    settle(&mut a, &mut b, now, 4096);
    for _ in 0..20 {
        now = [&a, &b]
            .into_iter()
            .filter_map(|end| end.session.poll_timeout())
            .min()
            .unwrap();
        for end in [&mut a, &mut b] {
            end.session.handle_timeout(now);
            end.drain(4096);
            assert!(
                end.session.poll_timeout().unwrap() > now,
                "a time-out that does not move"
            );
        }
        settle(&mut a, &mut b, now, 4096);
    }
    assert_eq!((a.closing, b.closing), (None, None));
    assert!(now.since(START) >= 90 * Nanos::SECOND);
    let silent_since = now;
    while a.closing.is_none() {
        now = a.session.poll_timeout().unwrap();
        a.session.handle_timeout(now);
        a.drain(4096);
    }
    assert_eq!(a.closing, Some(DisconnectReason::HeartbeatTimeout));
    assert!(now.since(silent_since) <= 24 * Nanos::SECOND);
}

#[test]
fn bytes_of_any_kind_neither_panic_nor_grow_anything() {
    for seed in 1..=300u64 {
        let mut rng = Rng::new(seed);
        let (mut a, mut b) = ends(|config| (config.events, config.transmit_bytes) = (8, 4096));
        let mut now = START;
        connect(&mut a, &mut b, now);
        settle(&mut a, &mut b, now, 4096);
        for _ in 0..300 {
            now = now.after(rng.below(3_000_000_000));
            a.send(now);
            a.drain(4096);
            let mut bytes: Vec<u8> = a.wire.drain(..).collect();
            for _ in 0..rng.below(3) {
                if !bytes.is_empty() {
                    let at = rng.below(bytes.len() as u64) as usize;
                    bytes[at] = rng.next_u64() as u8;
                }
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let taken = b.session.handle_bytes(now, rest);
                rest = &rest[taken..];
                b.drain(64);
            }
            b.session.handle_timeout(now);
            b.drain(4096);
            b.wire.clear();
            if b.session.status() == Status::Closing {
                disconnect(&mut a, &mut b, now);
                connect(&mut a, &mut b, now);
                settle(&mut a, &mut b, now, 4096);
            }
        }
    }
}

/// The machine's clock is set by an hour. Either side may notice first, and the other's SendingTime is right
/// for as long as it may not have; what is off by an hour afterwards ends the session as it always does.
#[test]
fn a_clock_that_is_set_ends_no_session_whoever_notices_first() {
    const HOUR: i64 = 3_600 * Nanos::SECOND as i64;
    for step in [-HOUR, HOUR] {
        for acceptor_first in [true, false] {
            let (mut a, mut b) = ends(|_| {});
            connect(&mut a, &mut b, START);
            settle(&mut a, &mut b, START, 4096);
            let (first, second) = match acceptor_first {
                true => (&mut b, &mut a),
                false => (&mut a, &mut b),
            };
            let now = START.after(Nanos::SECOND);
            first.session.handle_timeout(now);
            first.session.set_wall_offset(step);
            // The second has not noticed: the first takes what it stamps.
            second.send(now);
            second.drain(4096);
            settle(first, second, now, 4096);
            assert_eq!(
                (first.got.len(), first.closing),
                (1, None),
                "{step} {acceptor_first}"
            );
            // It notices before it reads what the first stamps.
            second.session.set_wall_offset(step);
            first.send(now);
            first.drain(4096);
            settle(first, second, now, 4096);
            assert_eq!(
                (second.got.len(), second.closing),
                (1, None),
                "{step} {acceptor_first}"
            );
            // Later nothing but UTC is right.
            let later = now.after(tickwire_fix::CLOCK_SET_NS + 1);
            second.session.handle_timeout(later);
            second.session.set_wall_offset(0);
            second.send(later);
            second.drain(4096);
            let bytes: Vec<u8> = second.wire.drain(..).collect();
            assert_eq!(first.session.handle_bytes(later, &bytes), bytes.len());
            let events: Vec<_> =
                std::iter::from_fn(|| first.session.poll_event().map(|e| format!("{e:?}"))).collect();
            assert!(
                events.iter().any(|e| e.contains("ProtocolViolation")),
                "{step} {acceptor_first}: {events:?}"
            );
            assert!(
                !events.iter().any(|e| e.starts_with("App")),
                "{step} {acceptor_first}: {events:?}"
            );
        }
    }
}

/// What was sent before the clock was set back is sent again after it: SendingTime is right by the clock of
/// now, OrigSendingTime not after it.
#[test]
fn what_was_sent_before_a_clock_was_set_back_can_be_sent_again() {
    const HOUR: i64 = 3_600 * Nanos::SECOND as i64;
    let (mut a, mut b) = ends(|_| {});
    for end in [&mut a, &mut b] {
        end.session.set_wall_offset(HOUR);
    }
    connect(&mut a, &mut b, START);
    settle(&mut a, &mut b, START, 4096);
    let lost = START.after(20 * Nanos::SECOND);
    b.send(lost);
    b.drain(4096);
    disconnect(&mut a, &mut b, lost);
    // By then no stamp of before is taken any more.
    let now = lost.after(Nanos::SECOND);
    for end in [&mut a, &mut b] {
        end.session.set_wall_offset(0);
    }
    let later = now.after(2 * tickwire_fix::CLOCK_SET_NS);
    connect(&mut a, &mut b, later);
    settle(&mut a, &mut b, later, 4096);
    assert_eq!((a.got.as_slice(), a.closing), ([1].as_slice(), None));
    assert_eq!(a.session.status(), Status::Active);
}
