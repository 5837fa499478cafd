//! One word of shared memory, and the two fences that order words.

use core::sync::atomic::{AtomicU64, Ordering, fence};

/// 64 bits that another thread or process may write at any time. Loads and stores order nothing by
/// themselves; the fences do.
pub trait Word {
    /// Its value, at some moment not before what the last acquire fence saw. Never writes in order to read.
    fn load(&self) -> u64;
    /// Loads before it stay before everything after it; pairs with [`WriteWord::release`].
    fn acquire();
    /// Called between two attempts to read what is being written.
    fn pause();
}

/// A word that this process may write.
pub trait WriteWord: Word {
    /// Gives it a value.
    fn store(&self, value: u64);
    /// Adds to it, also against other writers; the value before. Wraps.
    fn fetch_add(&self, n: u64) -> u64;
    /// Everything before it stays before stores after it; pairs with [`Word::acquire`].
    fn release();
}

/// A word that this process can only read: what a read-only mapping is made of.
#[derive(Debug)]
#[repr(transparent)]
pub struct ReadWord(AtomicU64);

impl Word for ReadWord {
    #[inline]
    fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    fn acquire() {
        fence(Ordering::Acquire)
    }

    #[inline]
    fn pause() {
        core::hint::spin_loop()
    }
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self) -> u64 {
        AtomicU64::load(self, Ordering::Relaxed)
    }

    #[inline]
    fn acquire() {
        fence(Ordering::Acquire)
    }

    #[inline]
    fn pause() {
        core::hint::spin_loop()
    }
}

impl WriteWord for AtomicU64 {
    #[inline]
    fn store(&self, value: u64) {
        AtomicU64::store(self, value, Ordering::Relaxed)
    }

    #[inline]
    fn fetch_add(&self, n: u64) -> u64 {
        AtomicU64::fetch_add(self, n, Ordering::Relaxed)
    }

    #[inline]
    fn release() {
        fence(Ordering::Release)
    }
}

/// Up to `8 * N` bytes of text as words, NUL-padded; what does not fit is cut off.
pub(crate) fn text_to_words<const N: usize>(text: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (at, &byte) in text.iter().take(8 * N).enumerate() {
        words[at / 8] |= u64::from(byte) << (8 * (at % 8));
    }
    words
}

/// The bytes of words, as they lie in memory.
pub(crate) fn words_to_bytes<const N: usize, const BYTES: usize>(words: [u64; N]) -> [u8; BYTES] {
    core::array::from_fn(|at| (words[at / 8] >> (8 * (at % 8))) as u8)
}
