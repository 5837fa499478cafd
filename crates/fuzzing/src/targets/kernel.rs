//! Frames of the kernel path: what reads them, and the programs that see them before anybody else.

use tickwire_kernel::asm::{Program, action};
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group};
use tickwire_kernel::frame;
use tickwire_kernel::guard;
use tickwire_kernel::interp::{Machine, Map};
use tickwire_kernel::layout;
use tickwire_kernel::segment::{Checksum, Ends, Numbers, Template, checksum, complete, is_after, tcp};
use tickwire_kernel::trigger::{self, Condition, Field, Message, Setup, State, itch, nyse};

use std::cell::RefCell;

const BOOKED: u32 = 0xFFFF_FF00;

pub(crate) const ENDS: Ends = Ends {
    hardware: [[2, 0, 0, 0, 0x18, 1], [2, 0, 0, 0, 0x18, 2]],
    addresses: [[198, 18, 0, 1], [198, 18, 0, 2]],
    ports: [40_000, 26_404],
};

thread_local! {
    static GUARD: RefCell<(Program, Machine)> = RefCell::new(guarded());
}

fn guarded() -> (Program, Machine) {
    let mut machine = Machine::new();
    let mut value = vec![0; guard::VALUE];
    let mut put = |at: usize, word: u64| value[at..at + 8].copy_from_slice(&word.to_le_bytes());
    put(guard::KEY, guard::key(&ENDS));
    put(guard::LOCAL, u32::from_ne_bytes(ENDS.addresses[0]).into());
    put(guard::WORD, guard::word(1, BOOKED));
    machine.insert(guard::GUARD, Map::Value(value));
    (guard::program().expect("a program"), machine)
}

/// Any bytes as a frame: nothing panics, a completed checksum holds, and the guard keeps only what is early,
/// and all of it.
pub fn order_segment(bytes: &[u8]) {
    let read = tcp(bytes);
    if let Some(packet) = bytes.get(14..) {
        let mut packet = packet.to_vec();
        let before = checksum(&packet);
        assert_eq!(complete(&mut packet), before.is_some());
        if before.is_some() {
            assert_eq!(checksum(&packet), Some(Checksum::Whole));
        }
    }
    if bytes.len() < 14 {
        return;
    }
    GUARD.with_borrow_mut(|(program, machine)| {
        let outcome = machine.run(program, bytes, 0).expect("no fault");
        let value = machine.value(guard::GUARD);
        let mut held = None;
        for slot in 0..guard::SLOTS {
            let at = guard::SLOTS_AT + slot * guard::SLOT;
            let mut state = [0; 8];
            state.copy_from_slice(&value[at..at + 8]);
            if let Some(length) = guard::held(u64::from_le_bytes(state)) {
                held = Some(value[at + guard::PACKET..at + guard::PACKET + length].to_vec());
            }
            value[at..at + 8].fill(0);
        }
        assert_eq!(outcome.action == action::DROP, held.is_some());
        // Frames with tags are the guard's too; the reader is for those without.
        let Some((held, read)) = held.zip(read) else {
            return;
        };
        assert_eq!(held, bytes[14..14 + held.len()]);
        assert_eq!(read.ports, [ENDS.ports[1], ENDS.ports[0]]);
        assert!(is_after(read.ack, BOOKED) || read.ack.wrapping_sub(BOOKED) == 1 << 31);
    });
}

const GROUP: Group = Group::new([233, 54, 12, 111], 26_477);
const ORDER_PAYLOAD: &[u8] = b"8=FIX.4.4|35=D|an order|";

thread_local! {
    static ARMED: RefCell<[(Program, Machine); 2]> = RefCell::new([Framing::Itch, Framing::Nyse].map(armed));
}

fn armed(framing: Framing) -> (Program, Machine) {
    let spec = FilterSpec {
        channels: vec![ChannelSpec {
            framing,
            groups: vec![GROUP],
            set: 0,
        }],
        trigger: true,
        ..FilterSpec::default()
    };
    let mut machine = Machine::new();
    let (state, sets) = spec.initial();
    machine.insert(layout::STATE, Map::Value(state));
    machine.insert(layout::SETS, Map::Value(sets));
    machine.insert(layout::SOCKETS, Map::Sockets(vec![true; 64]));
    machine.insert(trigger::TRIGGER, Map::Value(vec![0; trigger::VALUE]));
    machine.tail_room = 512;
    (spec.program().expect("a program"), machine)
}

/// A condition of the first bytes: message, instrument, and bounds of a field, in steps that meet real
/// values.
fn condition(head: &[u8; 8]) -> Condition {
    const ITCH: [(Message, Field); 3] = [
        (itch::ADD_ORDER, itch::ADD_ORDER_PRICE),
        (itch::ORDER_EXECUTED, itch::ORDER_EXECUTED_SHARES),
        (itch::TRADE, itch::TRADE_SHARES),
    ];
    const NYSE: [(Message, Field); 3] = [
        (nyse::ADD_ORDER, nyse::ADD_ORDER_PRICE),
        (nyse::MODIFY_ORDER, nyse::MODIFY_ORDER_VOLUME),
        (nyse::ORDER_EXECUTION, nyse::ORDER_EXECUTION_PRICE),
    ];
    let all = if head[0] & 1 == 0 { ITCH } else { NYSE };
    let (message, field) = all[usize::from(head[1]) % 3];
    let index = u32::from(u16::from_be_bytes([head[2], head[3]]));
    let (low, high) = (
        u64::from(head[4]) << (head[5] & 31),
        u64::from(head[6]) << (head[7] & 63),
    );
    let any = Condition::new(message, index);
    any.and(field, low..=high).unwrap_or(any)
}

/// Whether a packet of the channel says what is waited for: its messages one by one, up to where it ends.
fn says(condition: &Condition, payload: &[u8], messages_max: usize) -> bool {
    let is_itch = condition.message().framing() == Framing::Itch;
    let (first, count) = match is_itch {
        true => (20, usize::from(u16::from_be_bytes([payload[18], payload[19]]))),
        false => (16, usize::from(payload[3])),
    };
    if count > messages_max {
        return false;
    }
    let mut rest = payload.get(first..).unwrap_or(&[]);
    for _ in 0..count {
        let Some(head) = rest.first_chunk::<4>() else {
            return false;
        };
        let length = match is_itch {
            true => usize::from(u16::from_be_bytes([head[0], head[1]])) + 2,
            false => usize::from(u16::from_le_bytes([head[0], head[1]])),
        };
        if length < 4 {
            return false;
        }
        let begin = if is_itch { 2 } else { 0 };
        // A message that is cut is looked at as far as the frame goes.
        let message = &rest[begin..length.min(rest.len()).max(begin)];
        if length <= rest.len() && condition.holds(message) {
            return true;
        }
        rest = rest.get(length..).unwrap_or(&[]);
    }
    false
}

/// Eight bytes are a condition, the others a packet's payload: the program sends exactly if the plain reading
/// says so, the prepared bytes, and keeps the packet.
pub fn armed_order(bytes: &[u8]) {
    let Some((head, payload)) = bytes.split_first_chunk::<8>() else {
        return;
    };
    let condition = condition(head);
    let is_itch = condition.message().framing() == Framing::Itch;
    if payload.len() < 20 || payload.len() > frame::PAYLOAD_MAX {
        return;
    }
    let mut tick = vec![0; payload.len() + frame::HEADERS];
    let to = (GROUP.address, GROUP.port);
    let length = frame::encode(&mut tick, 0, to, payload).expect("room");
    assert_eq!(length, tick.len());
    let mut order = vec![0; 200];
    let written = Template::new(&ENDS, true).write(&mut order, &Numbers::default(), ORDER_PAYLOAD);
    order.truncate(written.expect("room"));
    let at = |at: usize| u64::from(payload[at]);
    let (session, seq) = match is_itch {
        true => {
            let first = payload
                .first_chunk::<8>()
                .map_or(0, |first| u64::from_ne_bytes(*first));
            let seq = (10..18).fold(0, |seq, byte| seq << 8 | at(byte));
            ([first, u16::from_ne_bytes([payload[8], payload[9]]).into()], seq)
        }
        false => ([0, 0], (4..8).rev().fold(0, |seq, byte| seq << 8 | at(byte))),
    };
    ARMED.with_borrow_mut(|both| {
        let (program, machine) = &mut both[usize::from(!is_itch)];
        let value = machine.value(trigger::TRIGGER);
        let mut put = |at: usize, word: u64| value[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        put(trigger::KEPT, 0);
        let setup = Setup {
            condition: &condition,
            channel: 0,
            session,
            next: seq,
            order: &order,
            stamp_offset: Some(5),
            out: 0,
            deadline_ns: u64::MAX,
        };
        setup.put(&mut put).expect("it fits");
        put(trigger::WORD, State::Armed.word(1));
        let outcome = machine.run(program, &tick, 0).expect("no fault");
        let has_left = outcome.action == action::TX;
        if has_left {
            assert_eq!(tcp(&outcome.packet).expect("a segment").payload, ORDER_PAYLOAD);
            assert_eq!(checksum(&outcome.packet[14..]), Some(Checksum::Whole));
            let value = machine.value(trigger::TRIGGER);
            let at = trigger::KEPT_PACKET + layout::META_SIZE;
            assert_eq!(value[at..at + tick.len()], tick, "the packet is kept");
        }
        // Packets without messages, or of a kind that is never looked into, cause nothing; what the two
        // readers make of a cut message's end is the program's: it may fire only where the message holds.
        let says = says(&condition, payload, 64);
        assert!(says || !has_left, "it left, and nothing says so");
        let is_plain = match is_itch {
            true => seq >= layout::SEQUENCE_MAX || payload[18..20] == [0xFF, 0xFF],
            false => {
                payload[2] != 11 || usize::from(u16::from_le_bytes([payload[0], payload[1]])) != payload.len()
            }
        };
        assert!(has_left || !says || is_plain, "it says so, and it did not leave");
    });
}
