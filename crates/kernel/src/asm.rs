//! An assembler for BPF programs at run time: labels, maps by name, and a listing to read. Instruction
//! encoding: Linux `Documentation/bpf/standardization/instruction-set.rst` (RFC 9669).
//!
//! Nothing is compiled and no object file is read: a program is Rust code that emits instructions, checked
//! here for what the kernel's verifier would refuse for certain (labels without a place, jumps too far,
//! instructions that nothing reaches).
//!
//! ```
//! use tickwire_kernel::asm::{Assembler, Cond, Reg, Size, action};
//! let mut a = Assembler::new();
//! let pass = a.label();
//! a.load(Size::W, Reg::R2, Reg::R1, 0);
//! a.load(Size::W, Reg::R3, Reg::R1, 4);
//! a.jump_if(Cond::Ge, Reg::R2, Reg::R3, pass);
//! a.set(Reg::R0, action::DROP);
//! a.exit();
//! a.bind(pass);
//! a.set(Reg::R0, action::PASS);
//! a.exit();
//! let program = a.finish()?;
//! assert_eq!(program.instructions().len(), 7);
//! assert!(program.to_string().contains("if r2 >= r3 goto"));
//! # Ok::<(), tickwire_kernel::asm::AsmError>(())
//! ```

use alloc::vec::Vec;
use core::fmt;

/// What an XDP program says is to happen with a packet. Linux `include/uapi/linux/bpf.h`, `enum xdp_action`.
pub mod action {
    /// The program failed; the packet is dropped and a tracepoint is hit.
    pub const ABORTED: i32 = 0;
    /// The packet is dropped.
    pub const DROP: i32 = 1;
    /// The packet goes on to the kernel's network stack.
    pub const PASS: i32 = 2;
    /// The packet is sent back out of the interface.
    pub const TX: i32 = 3;
    /// The packet goes where a helper said.
    pub const REDIRECT: i32 = 4;
}

/// Numbers of the helper functions used. Linux `include/uapi/linux/bpf.h`, `___BPF_FUNC_MAPPER`.
pub mod helper {
    /// `bpf_map_lookup_elem(map, key)`: the value's address, or 0.
    pub const MAP_LOOKUP: i32 = 1;
    /// `bpf_map_update_elem(map, key, value, flags)`: 0, or a negative error.
    pub const MAP_UPDATE: i32 = 2;
    /// `bpf_map_delete_elem(map, key)`.
    pub const MAP_DELETE: i32 = 3;
    /// `bpf_ktime_get_ns()`: nanoseconds of `CLOCK_MONOTONIC`.
    pub const KTIME: i32 = 5;
    /// `bpf_get_smp_processor_id()`.
    pub const CPU: i32 = 8;
    /// `bpf_redirect(interface, flags)`: [`super::action::REDIRECT`].
    pub const REDIRECT: i32 = 23;
    /// `bpf_xdp_adjust_head(ctx, delta)`: 0, or a negative error; every packet pointer is void afterwards.
    pub const ADJUST_HEAD: i32 = 44;
    /// `bpf_xdp_adjust_tail(ctx, delta)`: 0, or a negative error; every packet pointer is void afterwards.
    pub const ADJUST_TAIL: i32 = 65;
    /// `bpf_redirect_map(map, index, flags)`: [`super::action::REDIRECT`], or the flags where the map has
    /// nothing there.
    pub const REDIRECT_MAP: i32 = 51;
    /// `bpf_xdp_load_bytes(ctx, offset, to, length)`: 0, or a negative error (Linux 5.18).
    pub const LOAD_BYTES: i32 = 189;
    /// `bpf_xdp_store_bytes(ctx, offset, from, length)`: 0, or a negative error (Linux 5.18).
    pub const STORE_BYTES: i32 = 190;
    /// `bpf_xdp_adjust_meta(ctx, delta)`: 0, or a negative error; every packet pointer is void afterwards.
    pub const ADJUST_META: i32 = 54;
}

/// A function of the kernel that is no helper (a *kfunc*): its number is another one in every kernel, so it
/// is called by name until the program is linked. For programs bound to a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KernelFunction {
    /// `bpf_xdp_metadata_rx_timestamp(ctx, *u64)`: 0 and when the card received the packet, nanoseconds of
    /// the card's clock, or a negative error (Linux 6.3).
    RxTimestamp,
}

impl KernelFunction {
    /// Its name in the kernel.
    pub const fn name(self) -> &'static str {
        match self {
            KernelFunction::RxTimestamp => "bpf_xdp_metadata_rx_timestamp",
        }
    }
}

/// A register. R1 to R5 are arguments and do not survive a call, R0 is its result, R6 to R9 survive, R10 is
/// the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "their names say it")]
#[repr(u8)]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// How many bytes a load or store moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Size {
    /// 1.
    B = 0x10,
    /// 2.
    H = 0x08,
    /// 4.
    W = 0x00,
    /// 8.
    D = 0x18,
}

/// What a 64-bit computation does; numbers wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "their names say it")]
#[repr(u8)]
pub enum Op {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Div = 0x30,
    Or = 0x40,
    And = 0x50,
    Lsh = 0x60,
    Rsh = 0x70,
    Xor = 0xA0,
}

/// When a jump is taken; comparisons are unsigned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "their names say it")]
#[repr(u8)]
pub enum Cond {
    Eq = 0x10,
    Gt = 0x20,
    Ge = 0x30,
    /// Some bit of both is set.
    Any = 0x40,
    Ne = 0x50,
    Lt = 0xA0,
    Le = 0xB0,
    /// As large or larger, both with a sign.
    SignedGe = 0x70,
}

/// What an atomic instruction does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Atomic {
    /// Adds the register; the register is left alone.
    Add = 0x00,
    /// Adds the register and leaves the old value in it.
    FetchAdd = 0x01,
    /// Sets the register's bits.
    Or = 0x40,
    /// Exchanges; the register holds the old value afterwards.
    Exchange = 0xE1,
    /// Stores the register if memory equals R0; R0 holds the old value afterwards.
    CompareExchange = 0xF1,
}

/// A map that a program refers to; which kernel object that is, is said when the program is linked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MapId(pub u8);

/// A place in a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(usize);

/// One instruction as the kernel reads it, host byte order.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct Insn {
    /// Operation.
    pub code: u8,
    /// Destination register in the low four bits, source in the high ones.
    pub regs: u8,
    /// Jump distance or address offset.
    pub off: i16,
    /// Constant.
    pub imm: i32,
}

impl Insn {
    /// The destination register's number.
    pub const fn dst(self) -> u8 {
        self.regs & 15
    }

    /// The source register's number, or what kind of constant a wide load has.
    pub const fn src(self) -> u8 {
        self.regs >> 4
    }

    /// The eight bytes as one number, which is what the loader hands to the kernel.
    pub const fn word(self) -> u64 {
        let off = (self.off as u16).to_ne_bytes();
        let imm = self.imm.to_ne_bytes();
        u64::from_ne_bytes([
            self.code, self.regs, off[0], off[1], imm[0], imm[1], imm[2], imm[3],
        ])
    }
}

/// Why a program cannot be finished: always a fault of the generator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsmError {
    /// A jump at this instruction leads to a label that was never bound.
    Unbound(usize),
    /// A label was bound twice, the second time at this instruction.
    BoundTwice(usize),
    /// The jump at this instruction leads further than 32,767 instructions.
    TooFar(usize),
    /// The jump at this instruction leads backwards to itself or past the end.
    Outside(usize),
    /// Nothing leads to this instruction; the verifier refuses such programs.
    Unreachable(usize),
    /// The program runs past its last instruction.
    NoExit,
}

impl fmt::Display for AsmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AsmError::Unbound(at) => write!(f, "the jump at instruction {at} has a label without a place"),
            AsmError::BoundTwice(at) => write!(f, "a label was bound a second time at instruction {at}"),
            AsmError::TooFar(at) => write!(f, "the jump at instruction {at} leads too far"),
            AsmError::Outside(at) => write!(f, "the jump at instruction {at} leads out of the program"),
            AsmError::Unreachable(at) => write!(f, "nothing leads to instruction {at}"),
            AsmError::NoExit => f.write_str("the program runs past its last instruction"),
        }
    }
}

impl core::error::Error for AsmError {}

const WIDE: u8 = 0x18;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const JUMP: u8 = 0x05;

/// Emits instructions in order.
#[derive(Default, Debug)]
pub struct Assembler {
    code: Vec<Insn>,
    places: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
    maps: Vec<(usize, MapId)>,
    functions: Vec<(usize, KernelFunction)>,
    twice: Option<usize>,
}

impl Assembler {
    /// An empty program.
    pub fn new() -> Assembler {
        Assembler::default()
    }

    fn emit(&mut self, code: u8, dst: Reg, src: u8, off: i16, imm: i32) {
        self.code.push(Insn {
            code,
            regs: dst as u8 | src << 4,
            off,
            imm,
        });
    }

    /// A label for a place to come.
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// The next instruction is where this label leads.
    pub fn bind(&mut self, label: Label) {
        if self.places[label.0].replace(self.code.len()).is_some() {
            self.twice = Some(self.code.len());
        }
    }

    /// A label for the next instruction.
    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    /// `dst = src`.
    pub fn copy(&mut self, dst: Reg, src: Reg) {
        self.emit(0xBF, dst, src as u8, 0, 0);
    }

    /// `dst = value`, sign-extended.
    pub fn set(&mut self, dst: Reg, value: i32) {
        self.emit(0xB7, dst, 0, 0, value);
    }

    /// `dst = value`, all 64 bits.
    pub fn set_wide(&mut self, dst: Reg, value: u64) {
        self.emit(WIDE, dst, 0, 0, value as u32 as i32);
        self.code.push(Insn {
            imm: (value >> 32) as u32 as i32,
            ..Insn::default()
        });
    }

    /// `dst = the map`, for helpers.
    pub fn map(&mut self, dst: Reg, map: MapId) {
        self.maps.push((self.code.len(), map));
        self.emit(WIDE, dst, 1, 0, 0);
        self.code.push(Insn::default());
    }

    /// `dst = address of byte `offset` in the only value of an array map`: no helper is called at run time.
    pub fn map_value(&mut self, dst: Reg, map: MapId, offset: u32) {
        self.maps.push((self.code.len(), map));
        self.emit(WIDE, dst, 2, 0, 0);
        self.code.push(Insn {
            imm: offset as i32,
            ..Insn::default()
        });
    }

    /// `dst = *(src + offset)`, zero-extended, in host order.
    pub fn load(&mut self, size: Size, dst: Reg, src: Reg, offset: i16) {
        self.emit(0x61 | size as u8, dst, src as u8, offset, 0);
    }

    /// `*(dst + offset) = src`.
    pub fn store(&mut self, size: Size, dst: Reg, offset: i16, src: Reg) {
        self.emit(0x63 | size as u8, dst, src as u8, offset, 0);
    }

    /// `*(dst + offset) = value`, sign-extended.
    pub fn store_value(&mut self, size: Size, dst: Reg, offset: i16, value: i32) {
        self.emit(0x62 | size as u8, dst, 0, offset, value);
    }

    /// An atomic change of the 8 bytes at `dst + offset`.
    pub fn atomic(&mut self, op: Atomic, dst: Reg, offset: i16, src: Reg) {
        self.emit(0xDB, dst, src as u8, offset, op as i32);
    }

    /// The same for 4 bytes.
    pub fn atomic32(&mut self, op: Atomic, dst: Reg, offset: i16, src: Reg) {
        self.emit(0xC3, dst, src as u8, offset, op as i32);
    }

    /// `dst = dst op src`.
    pub fn alu(&mut self, op: Op, dst: Reg, src: Reg) {
        self.emit(0x0F | op as u8, dst, src as u8, 0, 0);
    }

    /// `dst = dst op value`.
    pub fn alu_value(&mut self, op: Op, dst: Reg, value: i32) {
        self.emit(0x07 | op as u8, dst, 0, 0, value);
    }

    /// Turns the low `bits` (16, 32 or 64) of a register from big-endian to host order and clears the others.
    pub fn from_big_endian(&mut self, dst: Reg, bits: i32) {
        self.emit(0xDC, dst, 0, 0, bits);
    }

    /// Goes to `label` if `a cond b`.
    pub fn jump_if(&mut self, cond: Cond, a: Reg, b: Reg, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.emit(0x0D | cond as u8, a, b as u8, 0, 0);
    }

    /// Goes to `label` if `a cond value`, sign-extended.
    pub fn jump_if_value(&mut self, cond: Cond, a: Reg, value: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.emit(0x05 | cond as u8, a, 0, 0, value);
    }

    /// Goes to `label` if the low 32 bits of `a` compare so with `value`.
    pub fn jump_if_value32(&mut self, cond: Cond, a: Reg, value: u32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.emit(0x06 | cond as u8, a, 0, 0, value as i32);
    }

    /// Goes to `label`.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.emit(JUMP, Reg::R0, 0, 0, 0);
    }

    /// Calls a [`helper`].
    pub fn call(&mut self, helper: i32) {
        self.emit(CALL, Reg::R0, 0, 0, helper);
    }

    /// Calls a function of the kernel.
    pub fn call_kernel(&mut self, function: KernelFunction) {
        self.functions.push((self.code.len(), function));
        // BPF_PSEUDO_KFUNC_CALL.
        self.emit(CALL, Reg::R0, 2, 0, 0);
    }

    /// Ends the program with R0.
    pub fn exit(&mut self) {
        self.emit(EXIT, Reg::R0, 0, 0, 0);
    }

    /// Instructions so far.
    pub fn len(&self) -> usize {
        self.code.len()
    }

    /// Whether nothing was emitted yet.
    pub fn is_empty(&self) -> bool {
        self.code.is_empty()
    }

    /// Resolves labels and checks the whole.
    ///
    /// # Errors
    /// The first [`AsmError`], with the instruction's number.
    pub fn finish(mut self) -> Result<Program, AsmError> {
        if let Some(at) = self.twice {
            return Err(AsmError::BoundTwice(at));
        }
        for &(at, label) in &self.jumps {
            let to = self.places[label.0].ok_or(AsmError::Unbound(at))?;
            if to >= self.code.len() || to == at {
                return Err(AsmError::Outside(at));
            }
            let distance = to as i64 - at as i64 - 1;
            self.code[at].off = i16::try_from(distance).map_err(|_| AsmError::TooFar(at))?;
        }
        let program = Program {
            code: self.code,
            maps: self.maps,
            functions: self.functions,
        };
        program.reachable()?;
        Ok(program)
    }
}

/// A finished program; maps and functions of the kernel are still names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    code: Vec<Insn>,
    maps: Vec<(usize, MapId)>,
    functions: Vec<(usize, KernelFunction)>,
}

impl Program {
    /// The instructions, with 0 in the place of maps and functions of the kernel.
    pub fn instructions(&self) -> &[Insn] {
        &self.code
    }

    /// The map that the wide load at this instruction names.
    pub(crate) fn map_at(&self, at: usize) -> Option<MapId> {
        let found = self.maps.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(self.maps[found].1)
    }

    /// The function of the kernel that is called at this instruction.
    pub(crate) fn function_at(&self, at: usize) -> Option<KernelFunction> {
        let found = self.functions.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(self.functions[found].1)
    }

    /// The program as the kernel takes it, each map a file descriptor of this process; for programs that call
    /// no function of the kernel.
    pub fn link(&self, descriptor: impl FnMut(MapId) -> i32) -> Vec<u64> {
        self.link_with(descriptor, |_| 0)
    }

    /// The same, each function by the running kernel's number for it.
    pub fn link_with(
        &self,
        mut descriptor: impl FnMut(MapId) -> i32,
        mut number: impl FnMut(KernelFunction) -> i32,
    ) -> Vec<u64> {
        let mut code = self.code.clone();
        for &(at, function) in &self.functions {
            code[at].imm = number(function);
        }
        for &(at, map) in &self.maps {
            code[at].imm = descriptor(map);
        }
        code.iter().map(|insn| insn.word()).collect()
    }

    /// Every instruction must be reached, and none may be the last without being an exit.
    fn reachable(&self) -> Result<(), AsmError> {
        let mut seen = alloc::vec![false; self.code.len()];
        let mut open = alloc::vec![0_usize];
        while let Some(at) = open.pop() {
            let Some(mark) = seen.get_mut(at) else {
                return Err(AsmError::NoExit);
            };
            if core::mem::replace(mark, true) {
                continue;
            }
            let insn = self.code[at];
            let target = (at as i64 + 1 + i64::from(insn.off)) as usize;
            match insn.code {
                EXIT => {}
                JUMP => open.push(target),
                CALL => open.push(at + 1),
                WIDE => {
                    if let Some(second) = seen.get_mut(at + 1) {
                        *second = true;
                    }
                    open.push(at + 2);
                }
                code if code & 7 == 5 || code & 7 == 6 => open.extend([target, at + 1]),
                _ => open.push(at + 1),
            }
        }
        match seen.iter().position(|seen| !seen) {
            Some(at) => Err(AsmError::Unreachable(at)),
            None => Ok(()),
        }
    }
}

/// The listing: one instruction a line, with its number, as the kernel's own tools write it.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at = 0;
        while let Some(&insn) = self.code.get(at) {
            write!(f, "{at:4}: ")?;
            self.line(f, at, insn)?;
            at += if insn.code == WIDE { 2 } else { 1 };
        }
        Ok(())
    }
}

impl Program {
    fn line(&self, f: &mut fmt::Formatter<'_>, at: usize, insn: Insn) -> fmt::Result {
        let (dst, src, off, imm) = (insn.dst(), insn.src(), insn.off, insn.imm);
        let to = at as i64 + 1 + i64::from(off);
        let size = match insn.code & 0x18 {
            0x10 => "u8",
            0x08 => "u16",
            0x00 => "u32",
            _ => "u64",
        };
        match insn.code {
            EXIT => writeln!(f, "exit"),
            CALL => match self.function_at(at) {
                Some(function) => writeln!(f, "call {}", function.name()),
                None => writeln!(f, "call {}", helper_name(imm)),
            },
            JUMP => writeln!(f, "goto {to}"),
            WIDE => {
                let high = self.code.get(at + 1).map_or(0, |second| second.imm);
                match (src, self.map_at(at)) {
                    (1, Some(map)) => writeln!(f, "r{dst} = map {}", map.0),
                    (2, Some(map)) => writeln!(f, "r{dst} = map {} value + {high}", map.0),
                    _ => {
                        let value = u64::from(high as u32) << 32 | u64::from(imm as u32);
                        writeln!(f, "r{dst} = {value:#x}")
                    }
                }
            }
            0xBF => writeln!(f, "r{dst} = r{src}"),
            0xB7 => writeln!(f, "r{dst} = {imm}"),
            0xDC => writeln!(f, "r{dst} = be{imm} r{dst}"),
            0xDB | 0xC3 => writeln!(f, "atomic {} {size}(r{dst} {off:+}), r{src}", atomic_name(imm)),
            code => match code & 7 {
                1 => writeln!(f, "r{dst} = {size}(r{src} {off:+})"),
                2 => writeln!(f, "{size}(r{dst} {off:+}) = {imm}"),
                3 => writeln!(f, "{size}(r{dst} {off:+}) = r{src}"),
                5 if code & 8 != 0 => writeln!(f, "if r{dst} {} r{src} goto {to}", cond_name(code)),
                5 => writeln!(f, "if r{dst} {} {imm} goto {to}", cond_name(code)),
                6 => writeln!(f, "if w{dst} {} {:#x} goto {to}", cond_name(code), imm as u32),
                _ if code & 8 != 0 => writeln!(f, "r{dst} {}= r{src}", op_name(code)),
                _ => writeln!(f, "r{dst} {}= {imm}", op_name(code)),
            },
        }
    }
}

fn helper_name(number: i32) -> &'static str {
    match number {
        helper::MAP_LOOKUP => "map_lookup_elem",
        helper::MAP_UPDATE => "map_update_elem",
        helper::MAP_DELETE => "map_delete_elem",
        helper::KTIME => "ktime_get_ns",
        helper::CPU => "get_smp_processor_id",
        helper::REDIRECT_MAP => "redirect_map",
        helper::ADJUST_META => "xdp_adjust_meta",
        helper::LOAD_BYTES => "xdp_load_bytes",
        helper::STORE_BYTES => "xdp_store_bytes",
        helper::ADJUST_HEAD => "xdp_adjust_head",
        helper::ADJUST_TAIL => "xdp_adjust_tail",
        helper::REDIRECT => "redirect",
        _ => "?",
    }
}

fn atomic_name(op: i32) -> &'static str {
    match op {
        0x00 => "add",
        0x01 => "fetch_add",
        0x40 => "or",
        0xE1 => "xchg",
        0xF1 => "cmpxchg",
        _ => "?",
    }
}

fn cond_name(code: u8) -> &'static str {
    match code & 0xF0 {
        0x10 => "==",
        0x20 => ">",
        0x30 => ">=",
        0x40 => "&",
        0x50 => "!=",
        0xA0 => "<",
        0xB0 => "<=",
        0x70 => "s>=",
        _ => "?",
    }
}

fn op_name(code: u8) -> &'static str {
    match code & 0xF0 {
        0x00 => "+",
        0x10 => "-",
        0x20 => "*",
        0x30 => "/",
        0x40 => "|",
        0x50 => "&",
        0x60 => "<<",
        0x70 => ">>",
        0xA0 => "^",
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn exit(a: &mut Assembler) {
        a.set(Reg::R0, action::PASS);
        a.exit();
    }

    #[test]
    fn instructions_are_encoded_as_the_standard_has_them() {
        let mut a = Assembler::new();
        let end = a.label();
        a.load(Size::H, Reg::R2, Reg::R7, 12);
        a.jump_if_value(Cond::Ne, Reg::R2, 8, end);
        a.atomic(Atomic::CompareExchange, Reg::R9, 16, Reg::R3);
        a.set_wide(Reg::R3, 0x1122_3344_5566_7788);
        a.bind(end);
        exit(&mut a);
        let program = a.finish().expect("whole");
        let words: Vec<u64> = program.link(|_| 0);
        // (code, regs, off, imm), little-endian hosts.
        let bytes: Vec<[u8; 8]> = words.iter().map(|w| w.to_ne_bytes()).collect();
        if cfg!(target_endian = "little") {
            assert_eq!(bytes[0], [0x69, 0x72, 12, 0, 0, 0, 0, 0]);
            assert_eq!(bytes[1], [0x55, 0x02, 3, 0, 8, 0, 0, 0]);
            assert_eq!(bytes[2], [0xDB, 0x39, 16, 0, 0xF1, 0, 0, 0]);
            assert_eq!(bytes[3], [0x18, 0x03, 0, 0, 0x88, 0x77, 0x66, 0x55]);
            assert_eq!(bytes[4], [0, 0, 0, 0, 0x44, 0x33, 0x22, 0x11]);
        }
    }

    #[test]
    fn maps_are_named_until_the_program_is_linked() {
        let mut a = Assembler::new();
        a.map_value(Reg::R9, MapId(3), 40);
        exit(&mut a);
        let program = a.finish().expect("whole");
        assert_eq!(
            program.to_string(),
            "   0: r9 = map 3 value + 40\n   2: r0 = 2\n   3: exit\n"
        );
        let linked = program.link(|map| i32::from(map.0) + 100);
        assert_eq!(linked[0].to_ne_bytes()[4..], 103_i32.to_ne_bytes());
        assert_eq!(linked[1].to_ne_bytes()[4..], 40_i32.to_ne_bytes());
    }

    #[test]
    fn functions_of_the_kernel_are_named_until_the_program_is_linked() {
        let mut a = Assembler::new();
        a.call_kernel(KernelFunction::RxTimestamp);
        exit(&mut a);
        let program = a.finish().expect("whole");
        assert!(
            program
                .to_string()
                .starts_with("   0: call bpf_xdp_metadata_rx_timestamp\n")
        );
        let [code, regs, _, _, number @ ..] =
            program.link_with(|_| 0, |function| function.name().len() as i32)[0].to_ne_bytes();
        assert_eq!((code, regs >> 4, i32::from_ne_bytes(number)), (0x85, 2, 29));
    }

    #[test]
    fn what_the_verifier_would_refuse_is_refused_here() {
        let mut a = Assembler::new();
        let nowhere = a.label();
        a.jump_if_value(Cond::Eq, Reg::R1, 0, nowhere);
        exit(&mut a);
        assert_eq!(a.finish(), Err(AsmError::Unbound(0)));

        let mut a = Assembler::new();
        exit(&mut a);
        exit(&mut a);
        assert_eq!(a.finish(), Err(AsmError::Unreachable(2)));

        let mut a = Assembler::new();
        a.set(Reg::R0, 1);
        assert_eq!(a.finish(), Err(AsmError::NoExit));

        let mut a = Assembler::new();
        let here = a.here();
        a.set(Reg::R0, 1);
        a.bind(here);
        a.exit();
        assert_eq!(a.finish(), Err(AsmError::BoundTwice(1)));

        let mut a = Assembler::new();
        let far = a.label();
        a.jump_if_value(Cond::Eq, Reg::R1, 0, far);
        for _ in 0..40_000 {
            a.set(Reg::R0, 1);
        }
        a.bind(far);
        a.exit();
        assert_eq!(a.finish(), Err(AsmError::TooFar(0)));
    }
}
