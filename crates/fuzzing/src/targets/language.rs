//! The strategy language.

use tickwire_language::ir::word;
use tickwire_language::{Engine, Host, Interpreter, compile, format};

/// A host that has nothing.
struct Nothing;

impl Host for Nothing {
    fn call(&mut self, _: usize, memory: &mut [i64]) {
        let from = word::SCRATCH as usize;
        memory[from..from + word::SCRATCH_LEN as usize].fill(0);
    }
}

/// A text is a strategy that runs within what the checker counted, or is refused with places within it; its
/// usual form is one.
pub fn strategy_file(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let compiled = compile(&text, &|name| Err(format!("{name} is not here")));
    match &compiled {
        Ok(program) => {
            let (mut engine, mut memory) = (Interpreter::new(program), program.memory.clone());
            for (n, code) in program.handlers.iter().enumerate() {
                let _ = engine.run(program, n, &mut memory, &mut Nothing);
                assert!(code.cost >= 1 && memory.len() == program.memory.len());
            }
        }
        Err(wrong) => {
            assert!(!wrong.is_empty());
            for found in wrong {
                assert!(found.render("fuzzed.tw", &text).starts_with("error: "));
                assert!(found.span.from as usize <= text.len());
            }
        }
    }
    if let Ok(once) = format(&text) {
        assert_eq!(format(&once).as_ref(), Ok(&once));
        let again = compile(&once, &|name| Err(format!("{name} is not here")));
        // What is longer than a file may be can become shorter.
        assert!(again.is_ok() == compiled.is_ok() || text.len() > 1 << 19);
    }
}
