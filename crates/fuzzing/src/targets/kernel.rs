//! Frames of the kernel path: what reads them, and the guard's program, which sees them before anybody else.

use tickwire_kernel::asm::{Program, action};
use tickwire_kernel::guard;
use tickwire_kernel::interp::{Machine, Map};
use tickwire_kernel::segment::{Checksum, Ends, checksum, complete, is_after, tcp};

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
