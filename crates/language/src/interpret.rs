//! The code run word by word: slower than native code, and what native code is compared with.

use alloc::vec;
use alloc::vec::Vec;

use crate::ir::{Binary, Op, Program, word};

/// Why a handler was left in the middle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrapKind {
    /// A number was divided by 0.
    DivisionByZero,
    /// An index lay outside its array.
    Index,
}

impl TrapKind {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            TrapKind::DivisionByZero => "trap: division by zero, in line",
            TrapKind::Index => "trap: an index outside its array, in line",
        }
    }
}

/// A handler was left in the middle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trap {
    /// Why.
    pub kind: TrapKind,
    /// At which operation of the handler.
    pub op: u32,
}

/// Who is asked at [`Op::Host`].
pub trait Host {
    /// Reads its arguments from [`word::SCRATCH`] on, and leaves its answers there.
    fn call(&mut self, site: usize, memory: &mut [i64]);
}

/// A way to run a program's code.
pub trait Engine {
    /// Runs a handler to its end, or to a trap. `memory` is as long as [`Program::memory`].
    fn run(
        &mut self,
        program: &Program,
        handler: usize,
        memory: &mut [i64],
        host: &mut dyn Host,
    ) -> Result<(), Trap>;
}

/// Runs code as it is.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    registers: Vec<i64>,
}

impl Interpreter {
    /// For a program: takes all memory that it will need.
    pub fn new(program: &Program) -> Interpreter {
        let most = program.handlers.iter().map(|code| code.registers).max();
        Interpreter {
            registers: vec![0; most.unwrap_or(0) as usize + 1],
        }
    }
}

impl Engine for Interpreter {
    fn run(
        &mut self,
        program: &Program,
        handler: usize,
        memory: &mut [i64],
        host: &mut dyn Host,
    ) -> Result<(), Trap> {
        let code = &program.handlers[handler];
        let r = &mut self.registers[..];
        let mut at = 0_usize;
        loop {
            let op = code.ops[at];
            at += 1;
            match op {
                Op::Const(d, value) => r[d as usize] = value,
                Op::Move(d, a) => r[d as usize] = r[a as usize],
                Op::Load(d, from) => r[d as usize] = memory[from as usize],
                Op::Store(to, a) => memory[to as usize] = r[a as usize],
                Op::LoadAt(d, base, index, len) => {
                    r[d as usize] = memory[element(base, r[index as usize], len, at)?];
                }
                Op::StoreAt(base, index, len, a) => {
                    let to = element(base, r[index as usize], len, at)?;
                    memory[to] = r[a as usize];
                }
                Op::Binary(op, d, a, b) => {
                    let (a, b) = (r[a as usize], r[b as usize]);
                    r[d as usize] = match op {
                        Binary::Add => a.saturating_add(b),
                        Binary::Sub => a.saturating_sub(b),
                        Binary::Mul => a.saturating_mul(b),
                        Binary::Div | Binary::Rem if b == 0 => {
                            return Err(Trap {
                                kind: TrapKind::DivisionByZero,
                                op: at as u32 - 1,
                            });
                        }
                        Binary::Div => a.saturating_div(b),
                        // The least number by -1 leaves 0.
                        Binary::Rem => a.wrapping_rem(b),
                        Binary::Eq => i64::from(a == b),
                        Binary::Ne => i64::from(a != b),
                        Binary::Lt => i64::from(a < b),
                        Binary::Le => i64::from(a <= b),
                        Binary::And => a & b,
                        Binary::Or => a | b,
                        Binary::Min => a.min(b),
                        Binary::Max => a.max(b),
                    };
                }
                Op::Not(d, a) => r[d as usize] = r[a as usize] ^ 1,
                Op::Neg(d, a) => r[d as usize] = r[a as usize].saturating_neg(),
                Op::Select(d, c, a, b) => {
                    r[d as usize] = if r[c as usize] != 0 {
                        r[a as usize]
                    } else {
                        r[b as usize]
                    };
                }
                Op::Jump(to) => at = to as usize,
                Op::JumpIfNot(c, to) => {
                    if r[c as usize] == 0 {
                        at = to as usize;
                    }
                }
                Op::Loop(a, b, to) => {
                    if r[a as usize] < r[b as usize] {
                        at = to as usize;
                    }
                }
                Op::Host(site) => {
                    let asked = &program.sites[site as usize];
                    let scratch = word::SCRATCH as usize;
                    for (n, reg) in asked.arguments.iter().enumerate() {
                        memory[scratch + n] = r[*reg as usize];
                    }
                    host.call(site as usize, memory);
                    for (n, reg) in asked.results.iter().enumerate() {
                        r[*reg as usize] = memory[scratch + n];
                    }
                }
                Op::Return => return Ok(()),
            }
        }
    }
}

#[inline]
fn element(base: u32, index: i64, len: u32, at: usize) -> Result<usize, Trap> {
    match usize::try_from(index) {
        Ok(index) if index < len as usize => Ok(base as usize + index),
        _ => Err(Trap {
            kind: TrapKind::Index,
            op: at as u32 - 1,
        }),
    }
}
