//! Runs programs of [`crate::asm`] without a kernel and without root: exactly the instructions and helpers
//! that the generators here emit, atomics included. It is the plain twin of the kernel's own interpreter and
//! JIT compiler: tests with root compare the two on the same packets.
//!
//! Every access is checked: a read beyond the packet or a map's value, of the context where it has no field,
//! of a register that a call has voided, or a missing exit is a [`Fault`], never a value. Several [`Cpu`]s
//! may be stepped by turns over one [`Machine`], which is how races between two queues of a network card are
//! tried.
//!
//! Addresses are numbers of this machine alone: the region in the upper 16 bits, the offset below.

use crate::asm::{Insn, KernelFunction, MapId, Program, action, helper};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use alloc::{format, string::String, vec};

/// Bytes in front of a packet that metadata can take. Linux `XDP_PACKET_HEADROOM`.
const HEADROOM: usize = 256;
/// What of it the kernel keeps for itself; more than `struct xdp_frame` has.
const KERNELS_OWN: usize = 64;
/// Bytes of an Ethernet header: no packet is shorter.
const ETHERNET: usize = 14;
/// Bytes of the stack. Linux `MAX_BPF_STACK`.
const STACK: usize = 512;
/// The most metadata that every kernel with metadata takes.
const META_MAX: usize = 32;
/// No program of ours runs so many instructions.
const STEPS_MAX: u64 = 1_000_000;

/// `-EOPNOTSUPP`: the driver knows nothing of the card's time.
const NO_CARD: i32 = -95;

const CONTEXT: u64 = 1 << 48;
const PACKET: u64 = 2 << 48;
const FRAME: u64 = 3 << 48;
const OPAQUE: u64 = 4 << 48;
/// The byte within a value of a hash table.
const VALUE_MASK: u64 = 0xFF;
const MAP: u64 = 5 << 48;
const VALUE: u64 = 0x100 << 48;
const REGION: u64 = 0xFFFF << 48;

/// A map of the machine.
#[derive(Clone, Debug)]
pub enum Map {
    /// An array with one value, which programs address directly.
    Value(Vec<u8>),
    /// A hash table.
    Hash {
        /// Bytes of a key.
        key: usize,
        /// Bytes of a value.
        value: usize,
        /// How many entries there is room for.
        room: usize,
        /// What is in it.
        entries: BTreeMap<Vec<u8>, Vec<u8>>,
    },
    /// AF_XDP sockets by queue: which queues have one.
    Sockets(Vec<bool>),
}

/// A program did what the kernel would not have let it do: where, and what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The instruction.
    pub at: usize,
    /// What was wrong.
    pub what: String,
}

/// What became of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// One of [`action`].
    pub action: i32,
    /// The queue of a redirection.
    pub queue: Option<u32>,
    /// The interface of a redirection past the sockets.
    pub interface: Option<u32>,
    /// What the program put in front of the packet.
    pub meta: Vec<u8>,
    /// The packet as the program left it.
    pub packet: Vec<u8>,
    /// Instructions run.
    pub steps: u64,
}

/// The maps that programs share, and the clock they read.
#[derive(Clone, Debug)]
pub struct Machine {
    maps: BTreeMap<MapId, Map>,
    /// What `ktime_get_ns` says, in nanoseconds.
    pub now: u64,
    /// When the card received the packet, nanoseconds of its clock: a driver's answer, or its error, a
    /// negative number. Drivers leave what they were given alone where they have none, but need not.
    pub wire: Result<u64, i32>,
    /// By how many bytes a packet can be made longer at its end.
    pub tail_room: usize,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            maps: BTreeMap::new(),
            now: 0,
            wire: Err(NO_CARD),
            tail_room: 0,
        }
    }
}

impl Machine {
    /// A machine without maps, whose card says nothing.
    pub fn new() -> Machine {
        Machine::default()
    }

    /// Puts a map in its place.
    pub fn insert(&mut self, id: MapId, map: Map) {
        self.maps.insert(id, map);
    }

    /// A map.
    pub fn map(&mut self, id: MapId) -> Option<&mut Map> {
        self.maps.get_mut(&id)
    }

    /// The value of an array map; empty if there is no such map.
    pub fn value(&mut self, id: MapId) -> &mut [u8] {
        match self.maps.get_mut(&id) {
            Some(Map::Value(bytes)) => bytes,
            _ => &mut [],
        }
    }

    /// The value that a look-up has found: map and place of the entry.
    fn found_value(&mut self, found: u64) -> Option<&mut [u8]> {
        let (map, place) = (MapId((found >> 40) as u8), found >> 8 & 0xFFFF_FFFF);
        match self.maps.get_mut(&map)? {
            Map::Hash { entries, .. } => {
                let place = usize::try_from(place).ok()?.checked_sub(1)?;
                entries.values_mut().nth(place).map(Vec::as_mut_slice)
            }
            _ => None,
        }
    }

    /// Runs a program over a packet that came by `queue`, from its beginning to its end, on CPU 0.
    ///
    /// # Errors
    /// What the kernel would have refused.
    pub fn run(&mut self, program: &Program, packet: &[u8], queue: u32) -> Result<Outcome, Fault> {
        let mut cpu = Cpu::new(program, packet, queue, 0);
        loop {
            if let Some(outcome) = cpu.step(self)? {
                return Ok(outcome);
            }
        }
    }
}

/// A program on its way through one packet.
#[derive(Clone, Debug)]
pub struct Cpu<'p> {
    program: &'p Program,
    registers: [Option<u64>; 11],
    stack: Vec<u8>,
    buffer: Vec<u8>,
    meta_at: usize,
    data_at: usize,
    /// Where the packet ended when it came.
    end_at: usize,
    queue: u32,
    number: u32,
    redirected: Option<u32>,
    interface: Option<u32>,
    at: usize,
    steps: u64,
}

impl<'p> Cpu<'p> {
    /// A program about to look at a packet.
    pub fn new(program: &'p Program, packet: &[u8], queue: u32, number: u32) -> Cpu<'p> {
        let mut buffer = vec![0xAA; HEADROOM];
        buffer.extend_from_slice(packet);
        let mut registers = [None; 11];
        registers[1] = Some(CONTEXT);
        registers[10] = Some(FRAME + STACK as u64);
        Cpu {
            program,
            registers,
            stack: vec![0xAA; STACK],
            end_at: buffer.len(),
            buffer,
            meta_at: HEADROOM,
            data_at: HEADROOM,
            queue,
            number,
            redirected: None,
            interface: None,
            at: 0,
            steps: 0,
        }
    }

    /// Runs one instruction; the outcome if it was the last.
    ///
    /// # Errors
    /// What the kernel would have refused.
    pub fn step(&mut self, machine: &mut Machine) -> Result<Option<Outcome>, Fault> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(self.fault("the program does not end"));
        }
        let Some(&insn) = self.program.instructions().get(self.at) else {
            return Err(self.fault("past the last instruction"));
        };
        match insn.code {
            0x95 => {
                let action = self.get(0)? as i32;
                return Ok(Some(Outcome {
                    action,
                    queue: self.redirected.filter(|_| action == action::REDIRECT),
                    interface: self.interface.filter(|_| action == action::REDIRECT),
                    meta: self.buffer[self.meta_at..self.data_at].to_vec(),
                    packet: self.buffer[self.data_at..].to_vec(),
                    steps: self.steps,
                }));
            }
            0x85 => {
                let result = match self.program.function_at(self.at) {
                    Some(function) => self.call_kernel(machine, function)?,
                    None => self.call(machine, insn.imm)?,
                };
                for voided in &mut self.registers[1..6] {
                    *voided = None;
                }
                self.registers[0] = Some(result);
            }
            0x18 => {
                let wide = self.wide(machine, insn)?;
                self.put(insn.dst(), wide)?;
                self.at += 1;
            }
            0xBF => {
                let value = self.get(insn.src())?;
                self.put(insn.dst(), value)?;
            }
            0xB7 => self.put(insn.dst(), i64::from(insn.imm) as u64)?,
            0xDC => {
                let value = self.get(insn.dst())?;
                let swapped = match insn.imm {
                    16 => u16::from_be(value as u16).into(),
                    32 => u32::from_be(value as u32).into(),
                    64 => u64::from_be(value),
                    _ => return Err(self.fault("bits to swap")),
                };
                self.put(insn.dst(), swapped)?;
            }
            0xDB => self.atomic(machine, insn, 8)?,
            0xC3 => self.atomic(machine, insn, 4)?,
            code => match code & 7 {
                1 => {
                    let address = self.address(insn.src(), insn.off)?;
                    let value = self.read(machine, address, size_of_code(code))?;
                    self.put(insn.dst(), value)?;
                }
                2 | 3 => {
                    let address = self.address(insn.dst(), insn.off)?;
                    let value = match code & 7 {
                        2 => i64::from(insn.imm) as u64,
                        _ => self.get(insn.src())?,
                    };
                    self.write(machine, address, size_of_code(code), value)?;
                }
                5 | 6 => self.jump(insn)?,
                _ => {
                    let right = self.right(insn)?;
                    let left = self.get(insn.dst())?;
                    let value = match code & 0xF0 {
                        0x00 => left.wrapping_add(right),
                        0x10 => left.wrapping_sub(right),
                        0x20 => left.wrapping_mul(right),
                        // As the standard has it: 0 where the divisor is.
                        0x30 => left.checked_div(right).unwrap_or(0),
                        0x40 => left | right,
                        0x50 => left & right,
                        0x60 => left << (right & 63),
                        0x70 => left >> (right & 63),
                        0xA0 => left ^ right,
                        _ => return Err(self.fault("an operation that is not emitted")),
                    };
                    self.put(insn.dst(), value)?;
                }
            },
        }
        self.at += 1;
        Ok(None)
    }

    fn fault(&self, what: &str) -> Fault {
        Fault {
            at: self.at,
            what: what.into(),
        }
    }

    fn get(&self, register: u8) -> Result<u64, Fault> {
        match self.registers.get(usize::from(register)) {
            Some(Some(value)) => Ok(*value),
            _ => Err(self.fault(&format!("r{register} holds nothing"))),
        }
    }

    fn put(&mut self, register: u8, value: u64) -> Result<(), Fault> {
        if register > 9 {
            return Err(self.fault("r10 cannot be written"));
        }
        self.registers[usize::from(register)] = Some(value);
        Ok(())
    }

    fn right(&self, insn: Insn) -> Result<u64, Fault> {
        match insn.code & 8 {
            0 => Ok(i64::from(insn.imm) as u64),
            _ => self.get(insn.src()),
        }
    }

    fn address(&self, register: u8, offset: i16) -> Result<u64, Fault> {
        Ok(self.get(register)?.wrapping_add(i64::from(offset) as u64))
    }

    fn jump(&mut self, insn: Insn) -> Result<(), Fault> {
        let taken = insn.code == 0x05 || {
            let (mut left, mut right) = (self.get(insn.dst())?, self.right(insn)?);
            if insn.code & 7 == 6 {
                (left, right) = (u64::from(left as u32), u64::from(right as u32));
            }
            match insn.code & 0xF0 {
                0x10 => left == right,
                0x20 => left > right,
                0x30 => left >= right,
                0x40 => left & right != 0,
                0x50 => left != right,
                0xA0 => left < right,
                0xB0 => left <= right,
                0x70 if insn.code & 7 != 6 => left.cast_signed() >= right.cast_signed(),
                _ => return Err(self.fault("a condition that is not emitted")),
            }
        };
        if taken {
            self.at = (self.at as i64 + i64::from(insn.off)) as usize;
        }
        Ok(())
    }

    fn wide(&self, machine: &Machine, insn: Insn) -> Result<u64, Fault> {
        let high = match self.program.instructions().get(self.at + 1) {
            Some(second) => second.imm as u32,
            None => return Err(self.fault("half a wide load")),
        };
        let Some(map) = self.program.map_at(self.at) else {
            return Ok(u64::from(high) << 32 | u64::from(insn.imm as u32));
        };
        match (machine.maps.get(&map), insn.src()) {
            (None, _) => Err(self.fault("a map that is not there")),
            (Some(Map::Value(_)), 2) => Ok(VALUE + (u64::from(map.0) << 48) + u64::from(high)),
            (Some(_), 1) => Ok(MAP + u64::from(map.0)),
            _ => Err(self.fault("this map has no address")),
        }
    }

    /// Where an address leads, if all its bytes are there.
    fn memory<'m>(
        &'m mut self,
        machine: &'m mut Machine,
        address: u64,
        bytes: usize,
        writes: bool,
    ) -> Result<&'m mut [u8], Fault> {
        let offset = address & !REGION;
        let outside = |region: &str| Fault {
            at: self.at,
            what: format!("{bytes} bytes at {offset} of {region}"),
        };
        let found = match address & REGION {
            PACKET => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                if from < self.meta_at {
                    return Err(outside("the packet"));
                }
                (&mut self.buffer[..], "the packet")
            }
            FRAME => (&mut self.stack[..], "the stack"),
            OPAQUE if offset > 0 => match machine.found_value(offset) {
                Some(found) => (found, "a table's value"),
                None => return Err(outside("a table's value")),
            },
            region if region >= VALUE => {
                let map = MapId(((region - VALUE) >> 48) as u8);
                (machine.value(map), "a map's value")
            }
            CONTEXT if !writes => return Err(outside("the context")),
            _ => return Err(outside("nothing")),
        };
        let (memory, region) = found;
        let from = match address & REGION {
            OPAQUE => (offset & VALUE_MASK) as usize,
            _ => usize::try_from(offset).unwrap_or(usize::MAX),
        };
        let length = memory.len();
        match memory.get_mut(from..from.saturating_add(bytes)) {
            Some(found) => Ok(found),
            None => Err(Fault {
                at: self.at,
                what: format!("{bytes} bytes at {from} of {region}, which has {length}"),
            }),
        }
    }

    fn read(&mut self, machine: &mut Machine, address: u64, bytes: usize) -> Result<u64, Fault> {
        if address & REGION == CONTEXT {
            return match (address & !REGION, bytes) {
                (0, 4) => Ok(PACKET + self.data_at as u64),
                (4, 4) => Ok(PACKET + self.buffer.len() as u64),
                (8, 4) => Ok(PACKET + self.meta_at as u64),
                (16, 4) => Ok(self.queue.into()),
                _ => Err(self.fault("the context has no such field")),
            };
        }
        let found = self.memory(machine, address, bytes, false)?;
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(found);
        Ok(u64::from_le_bytes(value))
    }

    fn write(&mut self, machine: &mut Machine, address: u64, bytes: usize, value: u64) -> Result<(), Fault> {
        let found = self.memory(machine, address, bytes, true)?;
        found.copy_from_slice(&value.to_le_bytes()[..bytes]);
        Ok(())
    }

    fn atomic(&mut self, machine: &mut Machine, insn: Insn, bytes: usize) -> Result<(), Fault> {
        let address = self.address(insn.dst(), insn.off)?;
        if address & REGION < VALUE && address & REGION != OPAQUE {
            return Err(self.fault("an atomic change outside of a map"));
        }
        if address % bytes as u64 != 0 {
            return Err(self.fault("an atomic change across words"));
        }
        let old = self.read(machine, address, bytes)?;
        let operand = self.get(insn.src())?;
        let mask = if bytes == 4 { u64::from(u32::MAX) } else { u64::MAX };
        let (new, keeps) = match insn.imm {
            0x00 => (old.wrapping_add(operand), None),
            0x01 => (old.wrapping_add(operand), Some(insn.src())),
            0x40 => (old | operand, None),
            0xE1 => (operand, Some(insn.src())),
            0xF1 if old == self.get(0)? & mask => (operand, Some(0)),
            0xF1 => (old, Some(0)),
            _ => return Err(self.fault("an atomic operation that is not emitted")),
        };
        self.write(machine, address, bytes, new & mask)?;
        match keeps {
            Some(register) => self.put(register, old),
            None => Ok(()),
        }
    }

    fn bytes(&mut self, machine: &mut Machine, address: u64, bytes: usize) -> Result<Vec<u8>, Fault> {
        self.memory(machine, address, bytes, false)
            .map(|found| found.to_vec())
    }

    fn call_kernel(&mut self, machine: &mut Machine, function: KernelFunction) -> Result<u64, Fault> {
        match function {
            KernelFunction::RxTimestamp => {
                if self.get(1)? != CONTEXT {
                    return Err(self.fault("r1 is not the context"));
                }
                let to = self.get(2)?;
                // What is written to must be there, whatever is written.
                self.memory(machine, to, 8, true)?;
                match machine.wire {
                    Ok(at) => {
                        self.write(machine, to, 8, at)?;
                        Ok(0)
                    }
                    Err(number) => {
                        // A driver may have begun to write.
                        self.write(machine, to, 8, 0xAAAA_AAAA_AAAA_AAAA)?;
                        Ok(i64::from(number) as u64)
                    }
                }
            }
        }
    }

    fn call(&mut self, machine: &mut Machine, number: i32) -> Result<u64, Fault> {
        match number {
            helper::KTIME => Ok(machine.now),
            helper::CPU => Ok(self.number.into()),
            helper::ADJUST_META => {
                let delta = self.get(2)? as i32;
                let at = self.meta_at as i64 + i64::from(delta);
                let (least, data) = (self.data_at.saturating_sub(META_MAX) as i64, self.data_at as i64);
                let fits = at >= least && at <= data && (data - at) % 4 == 0;
                self.void_packet();
                if !fits {
                    return Ok(-22_i64 as u64);
                }
                self.meta_at = at as usize;
                Ok(0)
            }
            helper::ADJUST_HEAD => {
                let delta = self.get(2)? as i32;
                let at = self.data_at as i64 + i64::from(delta);
                self.void_packet();
                if self.meta_at != self.data_at {
                    return Err(self.fault("metadata would have to move"));
                }
                if at < KERNELS_OWN as i64 || at > self.buffer.len() as i64 - ETHERNET as i64 {
                    return Ok(-22_i64 as u64);
                }
                (self.data_at, self.meta_at) = (at as usize, at as usize);
                Ok(0)
            }
            helper::ADJUST_TAIL => {
                let delta = self.get(2)? as i32;
                let end = self.buffer.len() as i64 + i64::from(delta);
                self.void_packet();
                if end > (self.end_at + machine.tail_room) as i64 || end < (self.data_at + ETHERNET) as i64 {
                    return Ok(-22_i64 as u64);
                }
                self.buffer.resize(end as usize, 0);
                Ok(0)
            }
            helper::STORE_BYTES => {
                let (to, from, length) = (self.get(2)?, self.get(3)?, self.get(4)?);
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length == 0 {
                    return Err(self.fault("no bytes to store"));
                }
                let to = self
                    .data_at
                    .saturating_add(usize::try_from(to).unwrap_or(usize::MAX));
                let bytes = self.bytes(machine, from, length)?;
                match self.buffer.get_mut(to..to.saturating_add(length)) {
                    Some(found) => found.copy_from_slice(&bytes),
                    None => return Ok(-22_i64 as u64),
                }
                Ok(0)
            }
            helper::REDIRECT => {
                if self.get(2)? != 0 {
                    return Ok(action::ABORTED as u64);
                }
                self.interface = Some(self.get(1)? as u32);
                Ok(action::REDIRECT as u64)
            }
            helper::REDIRECT_MAP => {
                let map = self.map_argument()?;
                let (queue, flags) = (self.get(2)?, self.get(3)?);
                let there = match machine.maps.get(&map) {
                    Some(Map::Sockets(queues)) => usize::try_from(queue)
                        .ok()
                        .and_then(|queue| queues.get(queue).copied())
                        .unwrap_or(false),
                    _ => return Err(self.fault("a redirection into another kind of map")),
                };
                if !there {
                    return Ok(flags & 3);
                }
                self.redirected = Some(queue as u32);
                Ok(action::REDIRECT as u64)
            }
            helper::LOAD_BYTES => {
                let (from, to, length) = (self.get(2)?, self.get(3)?, self.get(4)?);
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length == 0 {
                    return Err(self.fault("no bytes to load"));
                }
                let from = self
                    .data_at
                    .saturating_add(usize::try_from(from).unwrap_or(usize::MAX));
                let found = self.buffer.get(from..from.saturating_add(length));
                let Some(bytes) = found.map(<[u8]>::to_vec) else {
                    return Ok(-22_i64 as u64);
                };
                self.memory(machine, to, length, true)?.copy_from_slice(&bytes);
                Ok(0)
            }
            helper::MAP_LOOKUP | helper::MAP_UPDATE | helper::MAP_DELETE => self.hash(machine, number),
            _ => Err(self.fault("a helper that is not known")),
        }
    }

    /// Packet pointers are void; registers that hold one are found out by the region's change of meaning
    /// only, so the ones that the caller may still have are cleared.
    fn void_packet(&mut self) {
        for register in &mut self.registers {
            if register.is_some_and(|value| value & REGION == PACKET) {
                *register = None;
            }
        }
    }

    fn map_argument(&self) -> Result<MapId, Fault> {
        let map = self.get(1)?;
        if map & REGION != MAP {
            return Err(self.fault("r1 is no map"));
        }
        Ok(MapId(map as u8))
    }

    fn hash(&mut self, machine: &mut Machine, number: i32) -> Result<u64, Fault> {
        let map = self.map_argument()?;
        let (key_bytes, value_bytes) = match machine.maps.get(&map) {
            Some(Map::Hash { key, value, .. }) => (*key, *value),
            _ => return Err(self.fault("no hash table")),
        };
        let key_at = self.get(2)?;
        let key = self.bytes(machine, key_at, key_bytes)?;
        let value = match number {
            helper::MAP_UPDATE => {
                let value_at = self.get(3)?;
                self.bytes(machine, value_at, value_bytes)?
            }
            _ => Vec::new(),
        };
        let Some(Map::Hash { room, entries, .. }) = machine.maps.get_mut(&map) else {
            return Err(self.fault("no hash table"));
        };
        Ok(match number {
            // The map, and the entry's place: good until the table changes.
            helper::MAP_LOOKUP => match entries.keys().position(|known| *known == key) {
                Some(place) => OPAQUE + (u64::from(map.0) << 40) + ((place as u64 + 1) << 8),
                None => 0,
            },
            helper::MAP_UPDATE if entries.len() >= *room && !entries.contains_key(&key) => -7_i64 as u64,
            helper::MAP_UPDATE => {
                entries.insert(key, value);
                0
            }
            _ => match entries.remove(&key) {
                Some(_) => 0,
                None => -2_i64 as u64,
            },
        })
    }
}

fn size_of_code(code: u8) -> usize {
    match code & 0x18 {
        0x10 => 1,
        0x08 => 2,
        0x00 => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::{Assembler, Atomic, Cond, Op, Reg, Size};

    const M: MapId = MapId(0);

    fn run(build: impl FnOnce(&mut Assembler), packet: &[u8]) -> Result<Outcome, Fault> {
        let mut a = Assembler::new();
        build(&mut a);
        a.exit();
        let program = a.finish().expect("whole");
        let mut machine = Machine::new();
        machine.insert(M, Map::Value(vec![0; 64]));
        machine.run(&program, packet, 0)
    }

    #[test]
    fn a_read_beyond_the_packet_is_a_fault() {
        let read = |offset| {
            move |a: &mut Assembler| {
                a.load(Size::W, Reg::R2, Reg::R1, 0);
                a.load(Size::H, Reg::R0, Reg::R2, offset);
            }
        };
        assert_eq!(run(read(2), &[1, 2, 3, 4]).expect("inside").action, 0x0403);
        assert!(run(read(3), &[1, 2, 3, 4]).is_err());
        assert!(run(read(-1), &[1, 2, 3, 4]).is_err());
    }

    #[test]
    fn registers_that_hold_nothing_and_calls_that_void_them_are_faults() {
        assert!(run(|a| a.copy(Reg::R0, Reg::R5), &[]).is_err());
        let called = |a: &mut Assembler| {
            a.set(Reg::R1, 5);
            a.call(helper::KTIME);
            a.copy(Reg::R0, Reg::R1);
        };
        assert!(run(called, &[]).is_err());
    }

    #[test]
    fn atomics_do_what_their_names_say() {
        let outcome = run(
            |a| {
                a.map_value(Reg::R9, M, 8);
                a.set(Reg::R1, 40);
                a.atomic(Atomic::FetchAdd, Reg::R9, 0, Reg::R1);
                a.set(Reg::R2, 2);
                a.atomic(Atomic::Add, Reg::R9, 0, Reg::R2);
                a.set(Reg::R0, 42);
                a.set(Reg::R3, 7);
                a.atomic(Atomic::CompareExchange, Reg::R9, 0, Reg::R3);
                a.copy(Reg::R4, Reg::R0);
                a.set(Reg::R0, 42);
                a.set(Reg::R3, 8);
                a.atomic(Atomic::CompareExchange, Reg::R9, 0, Reg::R3);
                a.alu_value(Op::Lsh, Reg::R0, 8);
                a.alu(Op::Or, Reg::R0, Reg::R4);
                a.set(Reg::R5, 1);
                a.atomic(Atomic::Exchange, Reg::R9, 0, Reg::R5);
                a.alu_value(Op::Lsh, Reg::R5, 16);
                a.alu(Op::Or, Reg::R0, Reg::R5);
            },
            &[],
        );
        assert_eq!(outcome.expect("no fault").action, 7 << 16 | 7 << 8 | 42);
    }

    #[test]
    fn a_loop_without_end_is_a_fault() {
        let endless = |a: &mut Assembler| {
            a.set(Reg::R0, 0);
            let again = a.here();
            a.alu_value(Op::Add, Reg::R0, 2);
            a.jump_if_value(Cond::Ne, Reg::R0, 1, again);
        };
        assert!(run(endless, &[]).is_err());
    }
}
