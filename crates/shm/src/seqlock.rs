//! A slot that one thread writes and anybody reads: its first word counts writes twice, odd while one is
//! going on.
//!
//! The writer makes the word odd, writes, makes it even again. A reader that found the same even number
//! before and after saw nothing of any other write; else it tries again. Nobody waits for a reader, who
//! leaves no trace.

use crate::{Word, WriteWord};

/// The slot was being written at every attempt, or nobody has written it yet. Try again later; when it stays
/// so, the writer died in the middle: ask whether it is alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;

impl core::fmt::Display for Busy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(
            "the slot is being written; read it again, and if it stays so ask whether the writer is alive",
        )
    }
}

impl core::error::Error for Busy {}

/// How often a reader tries before it says [`Busy`]: a write takes some 30 ns, so that many in a row mean
/// that the writer was stopped in the middle of one.
pub(crate) const ATTEMPTS: u32 = 256;

/// Begins a write; the odd number to end it with. Also after a write that was never ended.
#[inline]
pub(crate) fn begin<W: WriteWord>(sequence: &W) -> u64 {
    let odd = sequence.load() | 1;
    sequence.store(odd);
    // SYNC torn: a reader that saw any word written after this sees at least `odd` behind `read`'s second
    // acquire.
    W::release();
    odd
}

/// Ends a write.
#[inline]
pub(crate) fn end<W: WriteWord>(sequence: &W, odd: u64) {
    // SYNC whole: a reader that sees the even number before `read`'s first acquire sees all words written
    // until here.
    W::release();
    sequence.store(odd.wrapping_add(1));
}

/// Calls `copy` until what it copied was whole. `copy` may see any mixture of words, and is then called
/// again.
#[inline]
pub(crate) fn read<W: Word, T>(sequence: &W, attempts: u32, mut copy: impl FnMut() -> T) -> Result<T, Busy> {
    for _ in 0..attempts {
        let before = sequence.load();
        if before & 1 == 0 && before != 0 {
            // SYNC whole: pairs with `end`.
            W::acquire();
            let copied = copy();
            // SYNC torn: pairs with `begin`.
            W::acquire();
            if sequence.load() == before {
                return Ok(copied);
            }
        }
        W::pause();
    }
    Err(Busy)
}
