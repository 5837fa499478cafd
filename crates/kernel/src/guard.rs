//! The guard of connections whose segments a process puts on the wire before the kernel knows of them.
//!
//! Such a segment may be acknowledged before the kernel has booked it. The kernel drops a segment that
//! acknowledges what it has not sent, with the data in it, and the peer sends it again after its
//! retransmission timeout: 200 ms late. So the program at the hook keeps what comes too early in a slot of a
//! map, and the process gives it to the kernel once the booking is done.
//!
//! ```text
//!  GUARD  a connection:  0 key u64      8 our address u32    16 WORD u64      24 next slot u64
//!                       32 held u64    40 no room u64        48 let go u64    56 last timestamp u32
//!                       64 slots of 2,048 bytes: state u64, then the packet from its IP header on
//! ```
//! `WORD` is 0 while nothing is unbooked, otherwise a number of its own in the upper half ([`word`]) and the
//! first unbooked sequence number below. A segment is early if it acknowledges something behind that.
//!
//! **Nothing stays in a slot.** The program writes a packet into a slot, says so by the slot's state, and
//! looks at `WORD` once more: if it has changed, the booking is done, and unless the process has taken the
//! packet already the program takes it back and lets it go to the kernel. The process stores `WORD` first and
//! then looks at the slots. Of a store and a load on both sides at least one load sees the other's store, so
//! every packet is passed on exactly once.
//!
//! **Deliver on doubt.** What is longer than a slot, finds all slots taken, or is a fragment, a reset or no
//! plain segment goes to the kernel: late at worst.

use crate::asm::{Atomic, Cond, Label, MapId, Op, Program, Reg, Size, action, helper};
use crate::filter::{FilterSpec, Generator, PAYLOAD, SpecError, stack};
use crate::segment::Ends;
use Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};

/// State of guarded connections: an array with one value.
pub const GUARD: MapId = MapId(4);
/// Connections that one program guards.
pub const CONNECTIONS: usize = 16;
/// Slots of a connection, a power of two.
pub const SLOTS: usize = 16;
/// Bytes of a slot.
pub const SLOT: usize = 2048;
/// The longest packet that a slot takes, in bytes.
pub const PACKET_MAX: usize = SLOT - PACKET;
/// Offset of the packet in a slot.
pub const PACKET: usize = 8;

/// Offset of the peer's address and both ports, see [`key`]; 0: nothing is guarded.
pub const KEY: usize = 0;
/// Offset of our address, `u32`, as the packet has it.
pub const LOCAL: usize = 8;
/// Offset of the word that says from which number on nothing is booked.
pub const WORD: usize = 16;
/// Offset of the number of the slot that is taken next.
pub const NEXT: usize = 24;
/// Offset of how many packets were held back.
pub const HELD: usize = 32;
/// Offset of how many early packets found no slot, or none that is long enough.
pub const NO_ROOM: usize = 40;
/// Offset of how many were taken out of their slot again by the program, as the booking was done meanwhile.
pub const LET_GO: usize = 48;
/// Offset of the timestamp of the last segment that went to the kernel, `u32`, 0 before the first one.
pub const STAMP: usize = 56;
/// Offset of the first slot.
pub const SLOTS_AT: usize = 64;
/// Bytes of a connection.
pub const CONNECTION: usize = SLOTS_AT + SLOTS * SLOT;
/// Bytes of the value of [`GUARD`].
pub const VALUE: usize = CONNECTIONS * CONNECTION;

/// State of a slot: free.
pub const FREE: u64 = 0;
/// State of a slot: the program is writing into it.
pub const WRITING: u64 = 1;
/// The lowest bits of the state of a slot with a packet; its length stands above bit 8.
pub const FULL: u64 = 2;

/// The length of the packet in a slot of this state, if there is one.
pub const fn held(state: u64) -> Option<usize> {
    let length = (state >> 8) as usize;
    match state & 0xFF == FULL && length >= crate::segment::IP_TCP && length <= PACKET_MAX {
        true => Some(length),
        false => None,
    }
}

/// The word that guards everything from `booked` on. `turn` is another one than the last time.
pub const fn word(turn: u32, booked: u32) -> u64 {
    (turn as u64 | 1 << 31) << 32 | booked as u64
}

/// What a connection is known by in the packets that come: the peer's address, its port, ours.
pub const fn key(ends: &Ends) -> u64 {
    let [_, peer] = ends.addresses;
    let [a, b] = ends.ports[1].to_be_bytes();
    let [c, d] = ends.ports[0].to_be_bytes();
    (u32::from_ne_bytes(peer) as u64) << 32 | u32::from_ne_bytes([a, b, c, d]) as u64
}

/// The program that guards and does nothing else; [`FilterSpec::guard`] has it beside a filter.
///
/// # Errors
/// None that a caller can cause.
pub fn program() -> Result<Program, SpecError> {
    let spec = FilterSpec {
        guard: true,
        ..FilterSpec::default()
    };
    let mut g = Generator::new(&spec);
    g.entry();
    g.guard();
    // It has no groups to count for.
    for label in [g.exits.aside, g.exits.pass] {
        g.a.bind(label);
    }
    g.a.set(R0, action::PASS);
    g.a.exit();
    Ok(g.a.finish()?)
}

impl Generator<'_> {
    /// What becomes of a TCP segment; [`Generator::entry`] jumps here, with R7 the frame without its tags and
    /// R8 its end.
    pub(crate) fn guard(&mut self) {
        let pass = self.exits.pass;
        let (found, seen, no_room) = (self.a.label(), self.a.label(), self.a.label());
        let a = &mut self.a;
        a.bind(self.exits.tcp);
        a.copy(R1, R7);
        a.alu_value(Op::Add, R1, 54);
        a.jump_if(Cond::Gt, R1, R8, pass);
        a.load(Size::H, R1, R7, 20);
        a.alu_value(Op::And, R1, i32::from(0x3FFF_u16.to_be()));
        a.jump_if_value(Cond::Ne, R1, 0, pass);
        a.load(Size::W, R2, R7, 26);
        a.alu_value(Op::Lsh, R2, 32);
        a.load(Size::W, R3, R7, 34);
        a.alu(Op::Or, R2, R3);
        for number in 0..CONNECTIONS {
            let next = a.label();
            a.map_value(R9, GUARD, (number * CONNECTION) as u32);
            a.load(Size::D, R1, R9, KEY as i16);
            a.jump_if(Cond::Ne, R1, R2, next);
            a.jump(found);
            a.bind(next);
        }
        a.jump(pass);

        a.bind(found);
        a.load(Size::W, R1, R7, 30);
        a.load(Size::D, R2, R9, LOCAL as i16);
        a.jump_if(Cond::Ne, R1, R2, pass);
        // ACK, and no RST.
        a.load(Size::B, R1, R7, 47);
        a.alu_value(Op::And, R1, 0x14);
        a.jump_if_value(Cond::Ne, R1, 0x10, pass);
        a.load(Size::D, R5, R9, WORD as i16);
        a.jump_if_value(Cond::Eq, R5, 0, seen);
        // How far behind the first unbooked number it acknowledges, on a circle of 2^32: 1 to 2^31 is early.
        a.load(Size::W, R1, R7, 42);
        a.from_big_endian(R1, 32);
        a.alu(Op::Sub, R1, R5);
        a.alu_value(Op::Sub, R1, 1);
        a.alu_value(Op::Lsh, R1, 32);
        a.alu_value(Op::Rsh, R1, 63);
        a.jump_if_value(Cond::Ne, R1, 0, seen);
        self.hold_back(no_room);

        self.a.bind(no_room);
        self.count_guarded(NO_ROOM);
        self.a.jump(pass);

        self.a.bind(seen);
        self.note_stamp();
    }

    /// One more of a kind; changes R1.
    fn count_guarded(&mut self, what: usize) {
        self.a.set(R1, 1);
        self.a.atomic(Atomic::Add, R9, what as i16, R1);
    }

    /// An early segment of the connection at R9 into a slot; R5 is the word.
    fn hold_back(&mut self, no_room: Label) {
        let pass = self.exits.pass;
        let (failed, kept) = (self.a.label(), self.a.label());
        let a = &mut self.a;
        a.load(Size::H, R6, R7, 16);
        a.from_big_endian(R6, 16);
        a.jump_if_value(Cond::Lt, R6, crate::segment::IP_TCP as i32, pass);
        a.jump_if_value(Cond::Gt, R6, PACKET_MAX as i32, no_room);
        a.store(Size::D, R10, stack::WORD, R5);
        a.set(R1, 1);
        a.atomic(Atomic::FetchAdd, R9, NEXT as i16, R1);
        a.alu_value(Op::And, R1, SLOTS as i32 - 1);
        a.alu_value(Op::Lsh, R1, SLOT.trailing_zeros() as i32);
        a.alu(Op::Add, R1, R9);
        a.alu_value(Op::Add, R1, SLOTS_AT as i32);
        a.store(Size::D, R10, stack::MESSAGE, R1);
        a.set(R0, FREE as i32);
        a.set(R2, WRITING as i32);
        a.atomic(Atomic::CompareExchange, R1, 0, R2);
        a.jump_if_value(Cond::Ne, R0, FREE as i32, no_room);
        // The IP header's place in the frame, tags in front of it.
        a.copy(R3, R1);
        a.alu_value(Op::Add, R3, PACKET as i32);
        a.load(Size::D, R1, R10, stack::CONTEXT);
        a.load(Size::W, R4, R1, 0);
        a.copy(R2, R7);
        a.alu(Op::Sub, R2, R4);
        a.alu_value(Op::Add, R2, crate::segment::ETHERNET as i32);
        a.copy(R4, R6);
        a.call(helper::LOAD_BYTES);
        a.load(Size::D, R7, R10, stack::MESSAGE);
        a.jump_if_value(Cond::Ne, R0, 0, failed);
        a.alu_value(Op::Lsh, R6, 8);
        a.alu_value(Op::Or, R6, FULL as i32);
        a.copy(R2, R6);
        a.atomic(Atomic::Exchange, R7, 0, R2);
        a.load(Size::D, R1, R10, stack::WORD);
        a.load(Size::D, R2, R9, WORD as i16);
        a.jump_if(Cond::Eq, R1, R2, kept);
        a.copy(R0, R6);
        a.set(R2, FREE as i32);
        a.atomic(Atomic::CompareExchange, R7, 0, R2);
        a.jump_if(Cond::Ne, R0, R6, kept);
        self.count_guarded(LET_GO);
        self.a.jump(pass);

        self.a.bind(kept);
        self.count_guarded(HELD);
        self.a.set(R0, action::DROP);
        self.a.exit();

        // The frame is shorter than its header says.
        let a = &mut self.a;
        a.bind(failed);
        a.set(R2, FREE as i32);
        a.atomic(Atomic::Exchange, R7, 0, R2);
        a.jump(pass);
    }

    /// Keeps the timestamp of a segment that goes to the kernel, if it has one where everybody writes it.
    fn note_stamp(&mut self) {
        let pass = self.exits.pass;
        let begin = u32::from_ne_bytes(crate::segment::STAMPS_BEGIN);
        let a = &mut self.a;
        a.copy(R1, R7);
        a.alu_value(Op::Add, R1, i32::from(PAYLOAD) + 24);
        a.jump_if(Cond::Gt, R1, R8, pass);
        a.load(Size::B, R1, R7, 46);
        a.jump_if_value(Cond::Lt, R1, 0x80, pass);
        a.load(Size::W, R1, R7, 54);
        a.jump_if_value32(Cond::Ne, R1, begin, pass);
        a.load(Size::W, R1, R7, 58);
        a.from_big_endian(R1, 32);
        a.store(Size::W, R9, STAMP as i16, R1);
        a.jump(pass);
    }
}
