//! The guard, in the interpreter: what is early is kept, everything else goes to the kernel, and whatever the
//! process does between any two instructions, each packet is passed on exactly once.

use tickwire_kernel::asm::{Program, action};
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group};
use tickwire_kernel::guard;
use tickwire_kernel::interp::{Cpu, Machine, Map};
use tickwire_kernel::layout;
use tickwire_kernel::segment::{Ends, Numbers, Template};

/// The peer's end, as it writes its segments.
const PEER: Ends = Ends {
    hardware: [[2, 0, 0, 0, 0x18, 2], [2, 0, 0, 0, 0x18, 1]],
    addresses: [[198, 18, 0, 2], [198, 18, 0, 1]],
    ports: [26_404, 40_000],
};

/// Ours.
const OURS: Ends = Ends {
    hardware: [PEER.hardware[1], PEER.hardware[0]],
    addresses: [PEER.addresses[1], PEER.addresses[0]],
    ports: [PEER.ports[1], PEER.ports[0]],
};

/// Which of the connections the tests guard.
const NUMBER: usize = 3;
const AT: usize = NUMBER * guard::CONNECTION;

fn machine() -> Machine {
    let mut machine = Machine::new();
    machine.insert(guard::GUARD, Map::Value(vec![0; guard::VALUE]));
    put(&mut machine, guard::KEY, guard::key(&OURS));
    put(
        &mut machine,
        guard::LOCAL,
        u32::from_ne_bytes(OURS.addresses[0]).into(),
    );
    machine
}

fn put(machine: &mut Machine, offset: usize, word: u64) {
    machine.value(guard::GUARD)[AT + offset..AT + offset + 8].copy_from_slice(&word.to_le_bytes());
}

fn get(machine: &mut Machine, offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&machine.value(guard::GUARD)[AT + offset..AT + offset + 8]);
    u64::from_le_bytes(word)
}

/// A segment of the peer that acknowledges everything before `ack`.
fn segment(ends: &Ends, ack: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 2_200];
    let numbers = Numbers {
        seq: 5_000,
        ack,
        window: 500,
        stamps: (0x0102_0304, 9),
    };
    let length = Template::new(ends, true).write(&mut frame, &numbers, payload);
    frame.truncate(length.expect("room"));
    frame
}

fn tagged(frame: &[u8], tags: usize) -> Vec<u8> {
    let mut all = frame[..12].to_vec();
    for _ in 0..tags {
        all.extend([0x81, 0x00, 0, 100]);
    }
    all.extend(&frame[12..]);
    all
}

fn run(machine: &mut Machine, program: &Program, frame: &[u8]) -> i32 {
    machine.run(program, frame, 0).expect("no fault").action
}

/// Takes what the slots hold, as the process does.
fn take(machine: &mut Machine) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for slot in 0..guard::SLOTS {
        let at = guard::SLOTS_AT + slot * guard::SLOT;
        if let Some(length) = guard::held(get(machine, at)) {
            let from = AT + at + guard::PACKET;
            all.push(machine.value(guard::GUARD)[from..from + length].to_vec());
            put(machine, at, guard::FREE);
        }
    }
    all
}

#[test]
fn only_what_acknowledges_the_unbooked_is_kept_tagged_or_not() {
    let program = guard::program().expect("a program");
    for tags in 0..3 {
        let mut machine = machine();
        let frame = |ack: u32| tagged(&segment(&PEER, ack, b"a report"), tags);
        assert_eq!(
            run(&mut machine, &program, &frame(2_000)),
            action::PASS,
            "no word"
        );
        for booked in [1_000, u32::MAX - 5, 0x7FFF_FFF0] {
            put(&mut machine, guard::WORD, guard::word(7, booked));
            for (behind, kept) in [
                (0, false),
                (1, true),
                (90, true),
                (1 << 30, true),
                (u32::MAX, false),
            ] {
                let frame = frame(booked.wrapping_add(behind));
                let expected = if kept { action::DROP } else { action::PASS };
                assert_eq!(
                    run(&mut machine, &program, &frame),
                    expected,
                    "{booked} + {behind}"
                );
                let held = take(&mut machine);
                assert_eq!(held.len(), usize::from(kept));
                assert!(held.iter().all(|packet| packet[..] == frame[14 + 4 * tags..]));
            }
        }
        assert_eq!(get(&mut machine, guard::HELD), 9);
        assert_eq!(get(&mut machine, guard::STAMP), 0x0102_0304);
    }
}

#[test]
fn other_connections_and_other_packets_go_to_the_kernel() {
    let program = guard::program().expect("a program");
    let mut machine = machine();
    put(&mut machine, guard::WORD, guard::word(1, 1_000));
    let mut port = PEER;
    port.ports[1] += 1;
    let mut address = PEER;
    address.addresses[1] = [198, 18, 0, 3];
    for other in [port, address] {
        assert_eq!(
            run(&mut machine, &program, &segment(&other, 1_001, b"")),
            action::PASS
        );
    }
    let early = segment(&PEER, 1_001, b"x");
    for (at, byte, what) in [
        (12, 0x86, "IPv6"),
        (14, 0x46, "IP options"),
        (20, 0x20, "a fragment"),
        (23, 17, "UDP"),
        (47, 0x14, "a reset"),
        (47, 0x02, "no ACK"),
    ] {
        let mut frame = early.clone();
        frame[at] = byte;
        assert_eq!(run(&mut machine, &program, &frame), action::PASS, "{what}");
    }
    for cut in 14..early.len() {
        let action = run(&mut machine, &program, &early[..cut]);
        assert_eq!(action, action::PASS, "cut to {cut} bytes");
    }
    assert!(take(&mut machine).is_empty());
    assert_eq!(run(&mut machine, &program, &early), action::DROP);
}

#[test]
fn what_finds_no_slot_goes_to_the_kernel_and_is_counted() {
    let program = guard::program().expect("a program");
    let mut machine = machine();
    put(&mut machine, guard::WORD, guard::word(1, 1_000));
    let long = segment(&PEER, 1_001, &[7; guard::PACKET_MAX - 52 + 1]);
    assert_eq!(run(&mut machine, &program, &long), action::PASS);
    let longest = segment(&PEER, 1_001, &[7; guard::PACKET_MAX - 52]);
    for _ in 0..guard::SLOTS {
        assert_eq!(run(&mut machine, &program, &longest), action::DROP);
    }
    assert_eq!(run(&mut machine, &program, &longest), action::PASS);
    assert_eq!(get(&mut machine, guard::NO_ROOM), 2);
    assert_eq!(take(&mut machine).len(), guard::SLOTS);
    assert_eq!(run(&mut machine, &program, &longest), action::DROP);
}

/// The booking is done between any two instructions of the program: what the process does then, and the
/// packet's way, are told by where it happens; the packet is passed on once in every case.
#[test]
fn wherever_the_booking_ends_the_packet_is_passed_on_once() {
    let program = guard::program().expect("a program");
    let frame = segment(&PEER, 1_050, b"a report");
    // (where the word is stored, where the slots are looked at)
    let mut ways = [0_u32; 3];
    for stored_at in 0..200 {
        for looked_at in stored_at..stored_at + 40 {
            for next in [0, guard::word(2, 1_050)] {
                let mut machine = machine();
                put(&mut machine, guard::WORD, guard::word(1, 1_000));
                let mut cpu = Cpu::new(&program, &frame, 0, 0);
                let (mut outcome, mut taken) = (None, 0);
                for step in 0..400 {
                    if step == stored_at {
                        put(&mut machine, guard::WORD, next);
                    }
                    if step == looked_at {
                        taken += take(&mut machine).len();
                    }
                    if outcome.is_none() {
                        outcome = cpu.step(&mut machine).expect("no fault");
                    }
                }
                let passed = u32::from(outcome.expect("it ends").action == action::PASS);
                // What is kept after the process has looked is nobody's.
                assert_eq!(
                    passed + taken as u32,
                    1,
                    "stored at {stored_at}, looked at {looked_at}"
                );
                let was_let_go = get(&mut machine, guard::LET_GO) as u32;
                ways[if taken > 0 { 0 } else { 1 + was_let_go as usize }] += 1;
            }
        }
    }
    assert!(ways.iter().all(|n| *n > 0), "every way is taken: {ways:?}");
}

#[test]
fn the_filter_of_market_data_guards_as_well() {
    let spec = FilterSpec {
        channels: vec![ChannelSpec {
            framing: Framing::Itch,
            groups: vec![Group::new([233, 54, 12, 111], 26_477)],
            set: 0,
        }],
        guard: true,
        ..FilterSpec::default()
    };
    let program = spec.program().expect("a program");
    let mut machine = machine();
    let (state, sets) = spec.initial();
    machine.insert(layout::STATE, Map::Value(state));
    machine.insert(layout::SETS, Map::Value(sets));
    machine.insert(layout::SOCKETS, Map::Sockets(vec![true]));
    put(&mut machine, guard::WORD, guard::word(1, 1_000));
    assert_eq!(
        run(&mut machine, &program, &segment(&PEER, 1_001, b"x")),
        action::DROP
    );
    assert_eq!(
        run(&mut machine, &program, &segment(&PEER, 1_000, b"x")),
        action::PASS
    );
    assert_eq!(take(&mut machine).len(), 1);
    let mut frame = [0; 100];
    let length = tickwire_kernel::frame::encode(&mut frame, 0, ([233, 54, 12, 111], 26_477), &[0; 30]);
    let outcome = machine.run(&program, &frame[..length.expect("room")], 0);
    assert_eq!(outcome.expect("no fault").action, action::REDIRECT);
}
