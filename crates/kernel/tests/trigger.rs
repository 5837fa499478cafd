//! The pre-armed order, in the interpreter: the program fires where the plain reading of the same messages
//! says so and nowhere else, once; what leaves is the prepared segment; the packet that caused it is kept;
//! and whatever the process does between any two instructions, it knows afterwards whether the order left.

mod common;

use common::*;
use tickwire_kernel::asm::action;
use tickwire_kernel::filter::{FilterSpec, Framing};
use tickwire_kernel::interp::{Cpu, Outcome};
use tickwire_kernel::layout::{META_SIZE, Meta};
use tickwire_kernel::segment::{Checksum, Ends, Numbers, Template, checksum, tcp};
use tickwire_kernel::trigger::{self, Condition, ConditionError, Setup, SetupError, Shot, State, itch, nyse};
use tickwire_testdata::Rng;
use tickwire_wire::xdp;
use tickwire_wire::zerocopy::IntoBytes;

const ENDS: Ends = Ends {
    hardware: [[2, 0, 0, 0, 0x18, 1], [2, 0, 0, 0, 0x18, 2]],
    addresses: [[198, 18, 0, 1], [198, 18, 0, 2]],
    ports: [40_000, 26_404],
};
const OFFSET: u32 = 0xFFFF_FF00;

fn filter(framing: Framing) -> Filter {
    let mut filter = Filter::of(&FilterSpec {
        trigger: true,
        ..spec(framing)
    });
    filter.machine.now = 7_654_321_000;
    filter.machine.tail_room = 128;
    filter
}

/// An order's frame; with timestamps its own is 0.
fn order(payload: &[u8], has_stamps: bool) -> Vec<u8> {
    let numbers = Numbers {
        seq: 0xFFFF_FFF0,
        ack: 5_000,
        window: 500,
        stamps: (0, 77),
    };
    let mut frame = vec![0; 700];
    let length = Template::new(&ENDS, has_stamps).write(&mut frame, &numbers, payload);
    frame.truncate(length.expect("room"));
    frame
}

fn word(filter: &mut Filter, at: usize) -> u64 {
    let bytes = filter.machine.value(trigger::TRIGGER)[at..at + 8].try_into();
    u64::from_ne_bytes(bytes.expect("eight"))
}

fn put(filter: &mut Filter, at: usize, word: u64) {
    filter.machine.value(trigger::TRIGGER)[at..at + 8].copy_from_slice(&word.to_ne_bytes());
}

fn state(filter: &mut Filter) -> Option<State> {
    State::of(word(filter, trigger::WORD))
}

fn count(filter: &mut Filter, shot: Shot) -> u64 {
    word(filter, shot.offset())
}

/// Arms as a process does.
fn arm(filter: &mut Filter, turn: u64, next: u64, condition: &Condition, order: &[u8], stamps: bool) {
    let setup = Setup {
        condition,
        channel: 0,
        session: session(filter.framing),
        next,
        order,
        stamp_offset: stamps.then_some(OFFSET),
        out: 0,
        deadline_ns: u64::MAX,
    };
    put(filter, trigger::WORD, 0);
    setup.put(|at, value| put(filter, at, value)).expect("it fits");
    put(filter, trigger::WORD, State::Armed.word(turn));
}

fn run(filter: &mut Filter, frame: &[u8]) -> Outcome {
    filter.machine.run(&filter.program, frame, 0).expect("no fault")
}

/// The kept packet, taken as the process does: metadata and frame.
fn kept(filter: &mut Filter) -> Option<(Meta, Vec<u8>)> {
    let length = trigger::kept(word(filter, trigger::KEPT))?;
    put(filter, trigger::KEPT, 0);
    let value = filter.machine.value(trigger::TRIGGER);
    let at = trigger::KEPT_PACKET;
    let bytes = value[at..at + META_SIZE].try_into().expect("32 bytes");
    let frame = value[at + META_SIZE..at + META_SIZE + length].to_vec();
    Some((Meta::read(bytes).expect("ours"), frame))
}

/// The messages of a packet, plainly.
fn messages(framing: Framing, payload: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    let mut rest = &payload[if framing == Framing::Itch { 20 } else { 16 }..];
    while rest.len() > 2 {
        let (from, length) = match framing {
            Framing::Itch => (2, usize::from(u16::from_be_bytes([rest[0], rest[1]]))),
            _ => (0, usize::from(u16::from_le_bytes([rest[0], rest[1]]))),
        };
        all.push(&rest[from..from + length]);
        rest = &rest[from + length..];
    }
    all
}

const BOTH: [Framing; 2] = [Framing::Itch, Framing::Nyse];

#[test]
fn what_fires_is_the_prepared_segment_and_the_packet_is_kept_with_any_tags() {
    for framing in BOTH {
        for tags in 0..3 {
            for armed in [false, true] {
                let mut filter = filter(framing);
                if armed {
                    filter.arm(1);
                }
                let condition = offer(framing, 7, 250_000, 100);
                let frame = order(b"8=FIX.4.4|35=D|", true);
                arm(&mut filter, 1, 1, &condition, &frame, true);
                let dear = adds(framing, 1, &[(7, b'S', 100, 250_001), (40, b'S', 100, 250_000)]);
                assert_eq!(run(&mut filter, &framed(&dear, 0, tags)).action, action::REDIRECT);
                let cheap = adds(
                    framing,
                    3,
                    &[
                        (7, b'B', 100, 250_000),
                        (7, b'S', 99, 250_000),
                        (7, b'S', 100, 250_000),
                    ],
                );
                let bytes = framed(&cheap, 1, tags);
                let outcome = run(&mut filter, &bytes);
                assert_eq!(outcome.action, action::TX, "{framing:?}, {tags} tags");
                assert_eq!(state(&mut filter), Some(State::Fired));
                // Its timestamp and the sum apart, it is what was prepared.
                let mut sent = outcome.packet.clone();
                let stamp = (7_654_u32).wrapping_add(OFFSET);
                assert_eq!(sent[58..62], stamp.to_be_bytes());
                assert_eq!(checksum(&sent[14..]), Some(Checksum::Whole));
                sent[58..62].fill(0);
                sent[50..52].copy_from_slice(&frame[50..52]);
                assert_eq!(sent, frame);
                assert_eq!(
                    tcp(&outcome.packet).expect("a segment").payload,
                    b"8=FIX.4.4|35=D|"
                );
                let (meta, packet) = kept(&mut filter).expect("kept");
                assert_eq!(packet[12..], bytes[12 + 4 * tags..]);
                assert_eq!((meta.channel, meta.delivery, meta.hook_ns), (0, 1, 7_654_321_000));
                assert_eq!(meta.claim().is_some(), armed);
                assert_eq!(word(&mut filter, trigger::FIRED_BY), 3);
                // The other line's copy, and the same again, find nothing armed.
                let again = run(&mut filter, &framed(&cheap, 0, tags));
                assert_ne!(again.action, action::TX);
                assert_eq!(count(&mut filter, Shot::Fired), 1);
            }
        }
    }
}

#[test]
fn it_fires_where_the_plain_reading_says_and_nowhere_else() {
    let mut fired = 0;
    for framing in BOTH {
        for seed in 0..60 {
            let rng = &mut Rng::new(seed);
            let packets = stream(framing, 60, rng, 3);
            let (index, message) = (WANTED[rng.below(3) as usize], rng.below(2));
            let condition = match (framing, message) {
                (Framing::Itch, 0) => Condition::new(itch::ADD_ORDER, index),
                (Framing::Itch, _) => Condition::new(itch::ORDER_EXECUTED, index),
                (_, 0) => Condition::new(nyse::ADD_ORDER, index),
                (_, _) => Condition::new(nyse::ORDER_EXECUTION, index),
            };
            let mut filter = filter(framing);
            if seed % 2 == 0 {
                filter.arm(1);
            }
            let from = rng.below(30);
            let next = packets[from as usize].seq;
            let frame = order(b"an order", false);
            arm(&mut filter, 9, next, &condition, &frame, false);
            let expected = packets.iter().position(|packet| {
                let all = messages(framing, &packet.payload);
                packet.seq >= next && all.iter().any(|message| condition.holds(message))
            });
            let mut found = None;
            for (at, packet) in packets.iter().enumerate() {
                for line in [0, 1] {
                    let outcome = run(&mut filter, &framed(&packet.payload, line, rng.below(3) as usize));
                    if outcome.action == action::TX {
                        assert_eq!(outcome.packet, frame);
                        assert!(found.replace(at).is_none(), "once");
                    }
                }
            }
            assert_eq!(found, expected, "{framing:?} {seed}");
            fired += usize::from(found.is_some());
            assert_eq!(count(&mut filter, Shot::Gap), 0);
        }
    }
    assert!(fired > 30, "{fired}");
}

#[test]
fn nothing_is_sent_behind_a_gap_or_by_an_old_packet_or_in_another_session() {
    for framing in BOTH {
        for armed in [false, true] {
            let condition = offer(framing, 7, 10, 1);
            let frame = order(b"an order", false);
            let hit = |seq| framed(&adds(framing, seq, &[(7, b'S', 1, 10)]), 0, 0);
            let mut filter = filter(framing);
            if armed {
                filter.arm(1);
            }
            arm(&mut filter, 1, 5, &condition, &frame, false);
            if armed {
                for seq in 1..5 {
                    assert_eq!(run(&mut filter, &hit(seq)).action, action::REDIRECT);
                }
            }
            assert_ne!(run(&mut filter, &hit(4)).action, action::TX, "old");
            assert_eq!(state(&mut filter), Some(State::Armed));
            assert_eq!(run(&mut filter, &hit(6)).action, action::REDIRECT, "5 is missing");
            assert_eq!(state(&mut filter), Some(State::Gap));
            assert_ne!(run(&mut filter, &hit(5)).action, action::TX, "too late");
            assert_eq!(count(&mut filter, Shot::Gap), 1);
            assert_eq!(count(&mut filter, Shot::Fired), 0);
        }
    }
    let mut filter = filter(Framing::Itch);
    let condition = offer(Framing::Itch, 7, 10, 1);
    arm(&mut filter, 1, 1, &condition, &order(b"an order", false), false);
    let mut other = adds(Framing::Itch, 1, &[(7, b'S', 1, 10)]);
    other[9] ^= 1;
    assert_eq!(run(&mut filter, &framed(&other, 0, 0)).action, action::REDIRECT);
    assert_eq!(state(&mut filter), Some(State::Gap));
}

#[test]
fn the_kill_switch_is_one_store_and_holds_until_it_is_taken_back() {
    let mut filter = filter(Framing::Itch);
    let condition = offer(Framing::Itch, 7, 10, 1);
    let frame = order(b"an order", false);
    arm(&mut filter, 1, 1, &condition, &frame, false);
    put(&mut filter, trigger::KILL, 1);
    let hit = |seq| framed(&adds(Framing::Itch, seq, &[(7, b'S', 1, 10)]), 0, 0);
    assert_eq!(run(&mut filter, &hit(1)).action, action::REDIRECT);
    assert_eq!(count(&mut filter, Shot::Killed), 1);
    assert_eq!(count(&mut filter, Shot::Fired), 0);
    assert!(kept(&mut filter).is_none());
    put(&mut filter, trigger::KILL, 0);
    assert_eq!(run(&mut filter, &hit(2)).action, action::TX);
}

#[test]
fn nothing_is_sent_behind_the_deadline_of_a_process_that_hangs() {
    let mut filter = filter(Framing::Itch);
    let condition = offer(Framing::Itch, 7, 10, 1);
    arm(&mut filter, 1, 1, &condition, &order(b"an order", false), false);
    let now = filter.machine.now;
    put(&mut filter, trigger::DEADLINE, now - 1);
    let hit = |seq| framed(&adds(Framing::Itch, seq, &[(7, b'S', 1, 10)]), 0, 0);
    assert_eq!(run(&mut filter, &hit(1)).action, action::REDIRECT);
    assert_eq!(count(&mut filter, Shot::Late), 1);
    assert_eq!(state(&mut filter), Some(State::Armed));
    put(&mut filter, trigger::DEADLINE, now);
    assert_eq!(run(&mut filter, &hit(2)).action, action::TX);
}

#[test]
fn an_order_of_any_length_leaves_or_is_said_not_to_have_left() {
    let condition = offer(Framing::Itch, 7, 10, 1);
    for length in 1..=trigger::ORDER_MAX - 54 {
        let mut filter = filter(Framing::Itch);
        let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let frame = order(&payload, false);
        arm(&mut filter, 1, 1, &condition, &frame, false);
        let tick = framed(&adds(Framing::Itch, 1, &[(7, b'S', 1, 10)]), 0, 0);
        let outcome = run(&mut filter, &tick);
        assert!(kept(&mut filter).is_some_and(|(_, packet)| packet == tick));
        // 192 bytes at the front and 128 at the end is what there is.
        match frame.len() <= tick.len() + 192 + 128 {
            true => {
                assert_eq!(outcome.action, action::TX, "{length}");
                assert_eq!(outcome.packet, frame);
            }
            false => {
                assert_eq!(outcome.action, action::DROP, "{length}");
                assert_eq!(state(&mut filter), Some(State::NoRoom));
                assert_eq!(count(&mut filter, Shot::NoRoom), 1);
            }
        }
    }
    let long = order(&[0; trigger::ORDER_MAX - 53], false);
    let setup = Setup {
        condition: &condition,
        channel: 0,
        session: [0, 0],
        next: 1,
        order: &long,
        stamp_offset: None,
        out: 0,
        deadline_ns: u64::MAX,
    };
    let refused = setup.put(|_, _| panic!("nothing is written"));
    assert_eq!(refused, Err(SetupError::Order(trigger::ORDER_MAX + 1)));
}

#[test]
fn it_leaves_by_another_interface_if_the_connection_does() {
    let mut filter = filter(Framing::Nyse);
    let condition = offer(Framing::Nyse, 7, 10, 1);
    let frame = order(b"an order", false);
    let setup = Setup {
        condition: &condition,
        channel: 0,
        session: [0, 0],
        next: 1,
        order: &frame,
        stamp_offset: None,
        out: 12,
        deadline_ns: u64::MAX,
    };
    setup
        .put(|at, value| put(&mut filter, at, value))
        .expect("it fits");
    put(&mut filter, trigger::WORD, State::Armed.word(1));
    let outcome = run(
        &mut filter,
        &framed(&adds(Framing::Nyse, 1, &[(7, b'S', 1, 10)]), 0, 0),
    );
    assert_eq!((outcome.action, outcome.interface), (action::REDIRECT, Some(12)));
    assert_eq!(outcome.queue, None);
    assert_eq!(outcome.packet, frame);
}

/// The process takes the order back after any number of the program's instructions: either it has left, and
/// the process is told so, or it never leaves.
#[test]
fn whenever_it_is_taken_back_both_sides_agree() {
    let condition = offer(Framing::Itch, 7, 10, 1);
    let frame = order(b"an order", true);
    let tick = framed(
        &adds(Framing::Itch, 1, &[(9, b'B', 1, 1), (7, b'S', 1, 10)]),
        0,
        0,
    );
    let (mut left, mut back) = (0, 0);
    for steps in 0.. {
        let mut filter = filter(Framing::Itch);
        arm(&mut filter, 1, 1, &condition, &frame, true);
        let program = filter.program.clone();
        let mut cpu = Cpu::new(&program, &tick, 0, 0);
        let mut outcome = None;
        for _ in 0..steps {
            outcome = cpu.step(&mut filter.machine).expect("no fault");
            if outcome.is_some() {
                break;
            }
        }
        let is_over = outcome.is_some();
        // The exchange of the process.
        let taken_back = word(&mut filter, trigger::WORD) == State::Armed.word(1);
        if taken_back {
            put(&mut filter, trigger::WORD, 0);
        }
        while outcome.is_none() {
            outcome = cpu.step(&mut filter.machine).expect("no fault");
        }
        let sent = outcome.expect("an end").action == action::TX;
        assert_eq!(sent, !taken_back, "after {steps} instructions");
        if sent {
            assert_eq!(state(&mut filter), Some(State::Fired));
            left += 1;
        } else {
            back += 1;
        }
        if is_over {
            break;
        }
    }
    assert!(left > 20 && back > 20, "{left} {back}");
}

/// Two CPUs with the two lines' copies, in any order of instructions: one order.
#[test]
fn two_lines_on_two_cpus_fire_once() {
    let condition = offer(Framing::Itch, 7, 10, 1);
    let frame = order(b"an order", true);
    let tick = adds(Framing::Itch, 1, &[(7, b'S', 1, 10)]);
    for seed in 0..2_000 {
        let rng = &mut Rng::new(seed);
        let mut filter = filter(Framing::Itch);
        if seed % 2 == 0 {
            filter.arm(1);
        }
        arm(&mut filter, 1, 1, &condition, &frame, true);
        let program = filter.program.clone();
        let frames = [framed(&tick, 0, 0), framed(&tick, 1, 0)];
        let mut cpus: Vec<Cpu<'_>> = (0..2)
            .map(|n| Cpu::new(&program, &frames[n], n as u32, n as u32))
            .collect();
        let mut actions = Vec::new();
        while let Some(at) = (!cpus.is_empty()).then(|| rng.below(cpus.len() as u64) as usize) {
            if let Some(outcome) = cpus[at].step(&mut filter.machine).expect("no fault") {
                actions.push(outcome.action);
                cpus.remove(at);
            }
        }
        let sent = actions.iter().filter(|action| **action == action::TX).count();
        assert_eq!(sent, 1, "seed {seed}");
        assert_eq!(count(&mut filter, Shot::Fired), 1);
    }
}

/// Cut and damaged packets: no fault, and what fires still has the message that was waited for, whole.
#[test]
fn damaged_packets_are_read_within_their_ends() {
    let mut fired = 0;
    for seed in 0..4_000 {
        let rng = &mut Rng::new(seed);
        let framing = BOTH[rng.below(2) as usize];
        let condition = offer(framing, 7, 10, 1);
        let mut filter = filter(framing);
        let frame = order(b"an order", false);
        arm(&mut filter, 1, 1, &condition, &frame, false);
        let mut payload = adds(framing, 1, &[(7, b'B', 1, 10), (7, b'S', 1, 10)]);
        if framing == Framing::Itch {
            for _ in 0..rng.below(3) {
                let at = rng.below(payload.len() as u64) as usize;
                payload[at] = rng.next_u64() as u8;
            }
        }
        let mut bytes = framed(&payload, 0, 0);
        if rng.below(2) == 0 {
            bytes.truncate(60 + rng.below(bytes.len() as u64 - 59) as usize);
        }
        if run(&mut filter, &bytes).action == action::TX {
            fired += 1;
            let size = if framing == Framing::Itch { 36 } else { 39 };
            let is_in = bytes.windows(size).any(|message| condition.holds(message));
            assert!(is_in, "seed {seed}");
        }
    }
    assert!(fired > 500, "{fired}");
}

#[test]
fn signed_prices_and_conditions_that_cannot_be() {
    let base = Condition::new(nyse::ADD_ORDER, 7);
    let below = base
        .and_signed(nyse::ADD_ORDER_PRICE, i64::MIN..=-1)
        .expect("a condition");
    let message = |price: i32| {
        let add = xdp::AddOrder {
            symbol_index: 7.into(),
            price: price.into(),
            ..xdp::AddOrder::NEW
        };
        add.as_bytes().to_vec()
    };
    for price in [i32::MIN, -1, 0, 1, i32::MAX] {
        assert_eq!(below.holds(&message(price)), price < 0, "{price}");
        let above = base
            .and(nyse::ADD_ORDER_PRICE, 1..=u64::MAX)
            .expect("a condition");
        assert_eq!(above.holds(&message(price)), price > 0, "{price}");
    }
    assert_eq!(
        base.and(itch::TRADE_PRICE, 0..=1),
        Err(ConditionError::OtherMessage)
    );
    let (low, high) = (2, 1);
    assert_eq!(
        base.and(nyse::ADD_ORDER_PRICE, low..=high),
        Err(ConditionError::Never)
    );
    let once = |c: Condition| c.and(nyse::ADD_ORDER_VOLUME, 1..=2);
    let full = once(base).and_then(once).and_then(once).expect("three");
    assert_eq!(once(full), Err(ConditionError::TooMany));
}
