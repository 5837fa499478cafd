//! A program without memory ends with a sentence. Alone in its file: it brings the allocator.

use std::process::Command;

use tickwire_runtime::alloc::{Allocator, end_without_memory};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Set in the process that runs out of memory: how much it asks for.
const ASKS: &str = "TICKWIRE_TEST_ASKS_BYTES";

#[test]
fn a_program_without_memory_says_how_much_it_wanted_and_ends_with_3() {
    if let Ok(bytes) = std::env::var(ASKS) {
        end_without_memory();
        let bytes: usize = bytes.parse().unwrap();
        let block = vec![0_u8; bytes];
        panic!("there was memory: {}", std::hint::black_box(block).len());
    }
    let this = std::env::current_exe().unwrap();
    // More than the limit, and more than any machine has.
    for bytes in [8_usize << 30, isize::MAX as usize] {
        let run = Command::new("sh")
            .args(["-c", "ulimit -v 2000000; exec \"$0\" --exact --nocapture \"$1\""])
            .arg(&this)
            .arg("a_program_without_memory_says_how_much_it_wanted_and_ends_with_3")
            .env(ASKS, bytes.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(3), "{said}");
        let expected = format!("tickwire: the system gave no memory for {bytes} bytes; ");
        assert!(said.contains(&expected), "{said}");
    }
}
