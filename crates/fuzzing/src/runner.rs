//! Running a target over mutated inputs until one fails or the budget is used up.

use crate::{Mutator, Target};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long to look.
#[derive(Clone, Copy, Debug)]
pub enum Budget {
    /// A number of inputs: the same run on every machine.
    Inputs(u64),
    /// A time.
    Time(Duration),
}

/// An input that makes a target panic.
#[derive(Clone, Debug)]
pub struct Crash {
    /// What the panic said and where.
    pub message: String,
    /// The input, made as small as removing stretches of it can.
    pub input: Vec<u8>,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Report {
    /// Inputs tried.
    pub inputs: u64,
    /// What was found.
    pub crash: Option<Crash>,
}

/// The panic of this thread's target, kept by the hook that [`quiet`] installs.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// One target at a time: the panic hook is the process's.
static RUNNING: Mutex<()> = Mutex::new(());

/// Tries the seeds as they are, then mutations of it.
pub fn run(target: &Target, seed: u64, budget: Budget) -> Report {
    let seeds = (target.seeds)();
    let mut mutator = Mutator::new(seeds.clone(), seed ^ name_hash(target.name));
    quiet(|| {
        let start = Instant::now();
        let mut fixed = seeds.into_iter();
        let mut inputs = 0;
        while within(budget, inputs, start) {
            let input = fixed.next().unwrap_or_else(|| mutator.next_input());
            inputs += 1;
            if fails(target, &input).is_some() {
                return Report {
                    inputs,
                    crash: Some(smallest(target, input)),
                };
            }
        }
        Report { inputs, crash: None }
    })
}

/// Tries one input.
pub fn crash(target: &Target, input: &[u8]) -> Option<Crash> {
    quiet(|| {
        fails(target, input).map(|message| Crash {
            message,
            input: input.to_vec(),
        })
    })
}

fn within(budget: Budget, inputs: u64, start: Instant) -> bool {
    match budget {
        Budget::Inputs(most) => inputs < most,
        Budget::Time(most) => !inputs.is_multiple_of(64) || start.elapsed() < most,
    }
}

fn fails(target: &Target, input: &[u8]) -> Option<String> {
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    outcome
        .is_err()
        .then(|| LAST_PANIC.lock().unwrap_or_else(|e| e.into_inner()).clone())
}

/// Removes stretches, halving their length, as long as what remains still fails.
fn smallest(target: &Target, mut input: Vec<u8>) -> Crash {
    let mut message = fails(target, &input)
        .unwrap_or_else(|| "failed once, then not again: it depends on more than its input".into());
    let mut stretch = input.len().div_ceil(2);
    while stretch > 0 {
        let mut at = 0;
        while at < input.len() {
            let mut candidate = input.clone();
            candidate.drain(at..(at + stretch).min(input.len()));
            match fails(target, &candidate) {
                Some(said) => (input, message) = (candidate, said),
                None => at += stretch,
            }
        }
        stretch /= 2;
    }
    Crash { message, input }
}

/// Keeps panics of the target from being printed: thousands of them while an input is made smaller.
fn quiet<T>(f: impl FnOnce() -> T) -> T {
    let running = RUNNING.lock().unwrap_or_else(|e| e.into_inner());
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|info| {
        let mut last = LAST_PANIC.lock().unwrap_or_else(|e| e.into_inner());
        *last = info.to_string();
    }));
    let result = f();
    panic::set_hook(hook);
    drop(running);
    result
}

/// FNV-1a: targets that share a corpus must not get the same inputs.
fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}
