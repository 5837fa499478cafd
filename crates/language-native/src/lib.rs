//! Native code of a strategy file, made in the process: no compiler is needed where it runs.
//!
//! ```
//! use std::sync::Arc;
//! use tickwire_language::{Machine, compile};
//! use tickwire_language_native::Native;
//!
//! let source = "strategy idle\ninstrument a = \"AAPL\"\ncounter books\non book a { count books }\n";
//! let program = Arc::new(compile(source, &|_| Err("no files here".to_string())).expect("it is right"));
//! let native = Native::new(&program).expect("this machine has code for it");
//! let _strategy = Machine::new(program, native);
//! ```
//! [`Native`] is an [`Engine`] as the [`tickwire_language::Interpreter`] is: same program, same memory, same
//! answers, trap for trap. Every handler is one function; registers of the program are variables that the
//! code generator (Cranelift) puts where it likes, memory is read and written at constant places, and what is
//! asked of the host is one call. Random programs on random events are compared with the interpreter in
//! `tests/differential.rs`.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AbiParam, Block, InstBuilder, MemFlagsData, Signature, Value, types};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};
use tickwire_language::ir::{Binary, Code, Op, Program, Reg, word};
use tickwire_language::{Engine, Host, Trap, TrapKind};

/// A handler: memory, what [`host_call`] is given; 0, or how it was left.
///
/// # Safety
/// Memory is as long as that of the program it was made from, and the second pointer is to an [`Env`]; both
/// live until it is done.
type Handler = unsafe extern "C" fn(*mut i64, *mut c_void) -> u64;

/// Left because the host panicked.
const PANICKED: u64 = 0xFF;

/// Why no native code could be made.
#[derive(Debug)]
pub struct NoCode(String);

impl fmt::Display for NoCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no native code could be made: {}", self.0)
    }
}

impl std::error::Error for NoCode {}

fn no_code(error: impl fmt::Display) -> NoCode {
    NoCode(error.to_string())
}

/// Native code of a program.
pub struct Native {
    handlers: Vec<Handler>,
    /// Memory words that the code takes to be there.
    words: usize,
    /// Holds the code; gone only with this.
    module: Option<JITModule>,
    bytes: usize,
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Native({} handlers, {} bytes)",
            self.handlers.len(),
            self.bytes
        )
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            self.handlers.clear();
            // SAFETY: the pointers into the code are in `handlers` alone, which is private and empty now; no
            // handler runs, since running one borrows `self`.
            unsafe { module.free_memory() };
        }
    }
}

/// What the code hands back to us when it asks the host.
struct Env<'a> {
    host: &'a mut dyn Host,
    memory: *mut i64,
    words: usize,
    panic: Option<Box<dyn Any + Send>>,
}

/// Asks the host; not 0 when it panicked, which must not unwind through code that has no tables for it.
///
/// # Safety
/// `env` is the [`Env`] of the [`Engine::run`] that is under way.
unsafe extern "C" fn host_call(env: *mut c_void, site: u64) -> u64 {
    // SAFETY: `Native::run` gave the code this pointer to an `Env` that it keeps until the code is done, and
    // uses it in no other way meanwhile.
    let env = unsafe { &mut *env.cast::<Env<'_>>() };
    // SAFETY: pointer and length are those of the slice that `Native::run` was given, which it does not touch
    // meanwhile; the code holds no references, only addresses.
    let memory = unsafe { std::slice::from_raw_parts_mut(env.memory, env.words) };
    let host = &mut *env.host;
    match catch_unwind(AssertUnwindSafe(|| host.call(site as usize, memory))) {
        Ok(()) => 0,
        Err(panic) => {
            env.panic = Some(panic);
            PANICKED
        }
    }
}

impl Engine for Native {
    #[inline]
    fn run(
        &mut self,
        _: &Program,
        handler: usize,
        memory: &mut [i64],
        host: &mut dyn Host,
    ) -> Result<(), Trap> {
        assert!(memory.len() >= self.words, "the memory of another program");
        let mut env = Env {
            host,
            memory: memory.as_mut_ptr(),
            words: memory.len(),
            panic: None,
        };
        let address = (&raw mut env).cast::<c_void>();
        // SAFETY: the function was made from a checked program, whose memory places all lie below `words`;
        // `env` lives until it is done.
        let left = unsafe { self.handlers[handler](env.memory, address) };
        match left & 0xFF {
            0 => Ok(()),
            PANICKED => resume_unwind(env.panic.take().unwrap_or_else(|| Box::new("the host panicked"))),
            kind => Err(Trap {
                kind: if kind == 1 {
                    TrapKind::DivisionByZero
                } else {
                    TrapKind::Index
                },
                op: (left >> 8) as u32,
            }),
        }
    }
}

impl Native {
    /// Makes code of every handler.
    ///
    /// # Errors
    /// The machine's processor has no code generator.
    pub fn new(program: &Program) -> Result<Native, NoCode> {
        let mut flags = settings::builder();
        flags.set("opt_level", "speed").map_err(no_code)?;
        flags.set("is_pic", "false").map_err(no_code)?;
        flags
            .set(
                "enable_verifier",
                if cfg!(debug_assertions) { "true" } else { "false" },
            )
            .map_err(no_code)?;
        let isa = cranelift_native::builder().map_err(no_code)?;
        let isa = isa.finish(settings::Flags::new(flags)).map_err(no_code)?;
        let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        let (mut context, mut scratch) = (module.make_context(), FunctionBuilderContext::new());
        let (mut ids, mut bytes) = (Vec::new(), 0);
        for (n, code) in program.handlers.iter().enumerate() {
            check(program, code)?;
            let mut signature = module.make_signature();
            let pointer = module.target_config().pointer_type();
            signature.params = vec![AbiParam::new(pointer), AbiParam::new(pointer)];
            signature.returns = vec![AbiParam::new(types::I64)];
            context.func.signature = signature;
            let builder = FunctionBuilder::new(&mut context.func, &mut scratch);
            let mut asks = module.make_signature();
            asks.params = vec![AbiParam::new(pointer), AbiParam::new(types::I64)];
            asks.returns = vec![AbiParam::new(types::I64)];
            Making::new(builder, module.target_config(), asks).all(program, code);
            let id = module
                .declare_function(&format!("handler{n}"), Linkage::Local, &context.func.signature)
                .map_err(no_code)?;
            module
                .define_function(id, &mut context)
                .map_err(|e| no_code(format!("{e:?}")))?;
            bytes += context.compiled_code().map_or(0, |code| code.code_buffer().len());
            module.clear_context(&mut context);
            ids.push(id);
        }
        module.finalize_definitions().map_err(no_code)?;
        let handlers = ids.into_iter().map(|id| {
            let code = module.get_finalized_function(id);
            // SAFETY: the function was defined above with this very signature and calling convention, and is
            // finished.
            unsafe { std::mem::transmute::<*const u8, Handler>(code) }
        });
        Ok(Native {
            handlers: handlers.collect(),
            words: program.memory.len(),
            module: Some(module),
            bytes,
        })
    }

    /// Bytes of code.
    pub fn code_bytes(&self) -> usize {
        self.bytes
    }
}

/// What safety rests on: places in memory lie within it, jumps land within the code.
fn check(program: &Program, code: &Code) -> Result<(), NoCode> {
    let words = program.memory.len() as u64;
    let ops = code.ops.len() as u64;
    let scratch = u64::from(word::SCRATCH) + u64::from(word::SCRATCH_LEN);
    let fits = code.ops.iter().all(|op| match *op {
        Op::Load(_, at) | Op::Store(at, _) => u64::from(at) < words,
        Op::LoadAt(_, base, _, len) | Op::StoreAt(base, _, len, _) => {
            u64::from(base) + u64::from(len) <= words
        }
        Op::Jump(to) | Op::JumpIfNot(_, to) | Op::Loop(_, _, to) => u64::from(to) < ops,
        Op::Host(site) => program.sites.get(site as usize).is_some_and(|site| {
            let most = site.arguments.len().max(site.results.len());
            most <= word::SCRATCH_LEN as usize && scratch <= words
        }),
        _ => true,
    });
    match fits && code.ops.last() == Some(&Op::Return) {
        true => Ok(()),
        false => Err(no_code("the program is not a checked one")),
    }
}

/// A function under way.
struct Making<'a> {
    b: FunctionBuilder<'a>,
    pointer: ir::Type,
    target: TargetFrontendConfig,
    asks: Signature,
    variables: BTreeMap<Reg, Variable>,
    memory: Value,
    env: Value,
}

impl<'a> Making<'a> {
    fn new(mut b: FunctionBuilder<'a>, target: TargetFrontendConfig, asks: Signature) -> Making<'a> {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let (memory, env) = (b.block_params(entry)[0], b.block_params(entry)[1]);
        Making {
            b,
            pointer: target.pointer_type(),
            target,
            asks,
            variables: BTreeMap::new(),
            memory,
            env,
        }
    }

    fn variable(&mut self, reg: Reg) -> Variable {
        let b = &mut self.b;
        *self
            .variables
            .entry(reg)
            .or_insert_with(|| b.declare_var(types::I64))
    }

    fn get(&mut self, reg: Reg) -> Value {
        let variable = self.variable(reg);
        self.b.use_var(variable)
    }

    fn set(&mut self, reg: Reg, value: Value) {
        let variable = self.variable(reg);
        self.b.def_var(variable, value);
    }

    fn constant(&mut self, value: i64) -> Value {
        self.b.ins().iconst(types::I64, value)
    }

    /// Of a comparison, 0 or 1.
    fn truth(&mut self, code: IntCC, a: Value, b: Value) -> Value {
        let is = self.b.ins().icmp(code, a, b);
        self.b.ins().uextend(types::I64, is)
    }

    /// Leaves the handler by a trap where the condition holds.
    fn trap_if(&mut self, condition: Value, kind: u64, op: usize) {
        let (out, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(out);
        self.b.ins().brif(condition, out, &[], on, &[]);
        self.b.switch_to_block(out);
        let left = self.constant(((op as u64) << 8 | kind) as i64);
        self.b.ins().return_(&[left]);
        self.b.switch_to_block(on);
    }

    fn all(mut self, program: &Program, code: &Code) {
        let mut blocks: BTreeMap<usize, Block> = BTreeMap::new();
        for (at, op) in code.ops.iter().enumerate() {
            let targets = match *op {
                Op::Jump(to) => vec![to as usize],
                Op::JumpIfNot(_, to) | Op::Loop(_, _, to) => vec![to as usize, at + 1],
                _ => Vec::new(),
            };
            for target in targets {
                blocks.entry(target).or_insert_with(|| self.b.create_block());
            }
        }
        let mut is_open = true;
        for (at, op) in code.ops.iter().enumerate() {
            if let Some(block) = blocks.get(&at) {
                if is_open {
                    self.b.ins().jump(*block, &[]);
                }
                self.b.switch_to_block(*block);
                is_open = true;
            }
            if !is_open {
                // Nothing leads here.
                continue;
            }
            match *op {
                Op::Jump(to) => {
                    self.b.ins().jump(blocks[&(to as usize)], &[]);
                    is_open = false;
                }
                Op::JumpIfNot(condition, to) => {
                    let condition = self.get(condition);
                    self.b
                        .ins()
                        .brif(condition, blocks[&(at + 1)], &[], blocks[&(to as usize)], &[]);
                    is_open = false;
                }
                Op::Loop(a, b, to) => {
                    let (a, b) = (self.get(a), self.get(b));
                    let again = self.b.ins().icmp(IntCC::SignedLessThan, a, b);
                    self.b
                        .ins()
                        .brif(again, blocks[&(to as usize)], &[], blocks[&(at + 1)], &[]);
                    is_open = false;
                }
                Op::Return => {
                    let zero = self.constant(0);
                    self.b.ins().return_(&[zero]);
                    is_open = false;
                }
                op => self.one(program, op, at),
            }
        }
        self.b.seal_all_blocks();
        self.b.finalize(self.target);
    }

    fn one(&mut self, program: &Program, op: Op, at: usize) {
        let flags = MemFlagsData::trusted();
        match op {
            Op::Const(d, value) => {
                let value = self.constant(value);
                self.set(d, value);
            }
            Op::Move(d, a) => {
                let value = self.get(a);
                self.set(d, value);
            }
            Op::Load(d, from) => {
                let value = self.b.ins().load(types::I64, flags, self.memory, from as i32 * 8);
                self.set(d, value);
            }
            Op::Store(to, a) => {
                let value = self.get(a);
                self.b.ins().store(flags, value, self.memory, to as i32 * 8);
            }
            Op::LoadAt(d, base, index, len) => {
                let place = self.element(index, len, at);
                let value = self.b.ins().load(types::I64, flags, place, base as i32 * 8);
                self.set(d, value);
            }
            Op::StoreAt(base, index, len, a) => {
                let place = self.element(index, len, at);
                let value = self.get(a);
                self.b.ins().store(flags, value, place, base as i32 * 8);
            }
            Op::Binary(op, d, a, b) => {
                let (a, b) = (self.get(a), self.get(b));
                let value = self.binary(op, a, b, at);
                self.set(d, value);
            }
            Op::Not(d, a) => {
                let a = self.get(a);
                let value = self.b.ins().bxor_imm_s(a, 1);
                self.set(d, value);
            }
            Op::Neg(d, a) => {
                let a = self.get(a);
                let value = self.negative(a);
                self.set(d, value);
            }
            Op::Select(d, c, a, b) => {
                let (c, a, b) = (self.get(c), self.get(a), self.get(b));
                let value = self.b.ins().select(c, a, b);
                self.set(d, value);
            }
            Op::Host(site) => {
                let asked = &program.sites[site as usize];
                let from = word::SCRATCH as i32 * 8;
                for (n, reg) in asked.arguments.iter().enumerate() {
                    let value = self.get(*reg);
                    self.b.ins().store(flags, value, self.memory, from + n as i32 * 8);
                }
                let signature = self.b.import_signature(self.asks.clone());
                let called = self.b.ins().iconst(self.pointer, host_call as *const () as i64);
                let number = self.constant(i64::from(site));
                let call = self.b.ins().call_indirect(signature, called, &[self.env, number]);
                let left = self.b.inst_results(call)[0];
                self.trap_if(left, PANICKED, at);
                for (n, reg) in asked.results.iter().enumerate() {
                    let value = self
                        .b
                        .ins()
                        .load(types::I64, flags, self.memory, from + n as i32 * 8);
                    self.set(*reg, value);
                }
            }
            // Where control goes is said by `all`.
            Op::Jump(_) | Op::JumpIfNot(..) | Op::Loop(..) | Op::Return => {}
        }
    }

    /// The address of `index` words on; a trap where it is not below `len`.
    fn element(&mut self, index: Reg, len: u32, at: usize) -> Value {
        let index = self.get(index);
        let len = self.constant(i64::from(len));
        let beyond = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, len);
        self.trap_if(beyond, 2, at);
        let bytes = self.b.ins().ishl_imm_s(index, 3);
        self.b.ins().iadd(self.memory, bytes)
    }

    /// The negative; of the least number the greatest.
    fn negative(&mut self, a: Value) -> Value {
        let negative = self.b.ins().ineg(a);
        let least = self.constant(i64::MIN);
        let most = self.constant(i64::MAX);
        let is_least = self.b.ins().icmp(IntCC::Equal, a, least);
        self.b.ins().select(is_least, most, negative)
    }

    /// The greatest number where `sign` is not below 0, else the least.
    fn nearest(&mut self, sign: Value) -> Value {
        let all = self.b.ins().sshr_imm_s(sign, 63);
        let most = self.constant(i64::MAX);
        self.b.ins().bxor(all, most)
    }

    fn binary(&mut self, op: Binary, a: Value, b: Value, at: usize) -> Value {
        match op {
            Binary::Add => {
                let sum = self.b.ins().iadd(a, b);
                // It left the range where its sign is that of neither.
                let (x, y) = (self.b.ins().bxor(a, sum), self.b.ins().bxor(b, sum));
                let both = self.b.ins().band(x, y);
                let nearest = self.nearest(a);
                self.unless_negative(both, sum, nearest)
            }
            Binary::Sub => {
                let difference = self.b.ins().isub(a, b);
                let (x, y) = (self.b.ins().bxor(a, b), self.b.ins().bxor(a, difference));
                let both = self.b.ins().band(x, y);
                let nearest = self.nearest(a);
                self.unless_negative(both, difference, nearest)
            }
            Binary::Mul => {
                let product = self.b.ins().imul(a, b);
                let above = self.b.ins().smulhi(a, b);
                let sign = self.b.ins().sshr_imm_s(product, 63);
                let fits = self.b.ins().icmp(IntCC::Equal, above, sign);
                let signs = self.b.ins().bxor(a, b);
                let nearest = self.nearest(signs);
                self.b.ins().select(fits, product, nearest)
            }
            Binary::Div | Binary::Rem => {
                let zero = self.b.ins().icmp_imm_s(IntCC::Equal, b, 0);
                self.trap_if(zero, 1, at);
                // By -1 the processor traps on the least number: it is not asked.
                let is_negated = self.b.ins().icmp_imm_s(IntCC::Equal, b, -1);
                let one = self.constant(1);
                let divisor = self.b.ins().select(is_negated, one, b);
                match op {
                    Binary::Div => {
                        let quotient = self.b.ins().sdiv(a, divisor);
                        let negative = self.negative(a);
                        self.b.ins().select(is_negated, negative, quotient)
                    }
                    _ => self.b.ins().srem(a, divisor),
                }
            }
            Binary::Eq => self.truth(IntCC::Equal, a, b),
            Binary::Ne => self.truth(IntCC::NotEqual, a, b),
            Binary::Lt => self.truth(IntCC::SignedLessThan, a, b),
            Binary::Le => self.truth(IntCC::SignedLessThanOrEqual, a, b),
            Binary::And => self.b.ins().band(a, b),
            Binary::Or => self.b.ins().bor(a, b),
            Binary::Min => self.b.ins().smin(a, b),
            Binary::Max => self.b.ins().smax(a, b),
        }
    }

    fn unless_negative(&mut self, sign: Value, value: Value, other: Value) -> Value {
        let is_negative = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, sign, 0);
        self.b.ins().select(is_negative, other, value)
    }
}
