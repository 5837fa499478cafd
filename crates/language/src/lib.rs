//! A strategy in one file: the language `.tw`, its compiler, an interpreter, tests written in the file.
//!
//! ```
//! use std::sync::Arc;
//! use tickwire_language::{Machine, compile, run_test, Interpreter};
//!
//! let source = r#"
//! strategy best_offer_taker
//! param lot: qty = 100
//! instrument aapl = "AAPL"
//! state last: price? = none
//!
//! on book aapl when live(aapl) {
//!   let ask = aapl.ask[0].price
//!   if ask != last {
//!     last = ask
//!     if let price = ask { buy aapl lot @ price ioc }
//!   }
//! }
//!
//! test "a better offer is bought" {
//!   book aapl bid 100 @ 10.00 ask 100 @ 10.03   # no order: nothing to judge its price by yet
//!   book aapl ask 100 @ 10.02
//!   expect buy aapl 100 @ 10.02 ioc
//! }
//! "#;
//! let no_files = |name: &str| Err(format!("{name} is not here"));
//! let program = compile(source, &no_files).expect("it is right");
//! run_test(&program, &program.tests[0], Interpreter::new).expect("it does what its test says");
//! // What a host drives, as it drives a strategy in Rust.
//! let _strategy = Machine::interpreted(Arc::new(program));
//! ```
//! `docs/language.md` is the language; `docs/write-a-strategy.md` what runs it. A source becomes tokens, a
//! tree, and then code over registers and a memory of words ([`Program`]), which the [`Interpreter`], native
//! code (the crate `tickwire-language-native`) or another [`Engine`] runs; [`Machine`] is the strategy around
//! it, the same for all of them.
//!
//! **Invariant.** Whatever the text is, [`compile`] returns. No I/O: the caller gives the text and the files
//! of tables. Nothing is allocated after [`Machine::new`]; integers only.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ast;
mod check;
mod diag;
mod explain;
mod format;
mod interpret;
pub mod ir;
mod lex;
mod library;
mod machine;
mod outline;
mod parse;
pub mod scenario;
mod types;

pub use check::{Limits, Load, compile, compile_within};
pub use diag::{Diagnostic, Span, line_column};
pub use explain::{counts, explain, show_value};
pub use format::format;
pub use interpret::{Engine, Host, Interpreter, Trap, TrapKind};
pub use ir::Program;
pub use machine::{Machine, Outcomes};
pub use outline::{Declaration, Named, declaration, is_name, occurrences, outline, vocabulary};
pub use scenario::{Scenario, run_test};
pub use types::Type;
