//! The one place with an unsafe instruction: a hint to fetch a cache line that will be needed soon.
//!
//! A safe read in its place was measured: a load that misses holds up everything behind it once the reorder
//! buffer is full, a prefetch does not.
#![allow(unsafe_code)]

/// Asks for the cache line of `items[index]`; does nothing when there is no such item.
#[inline(always)]
pub fn fetch<T>(items: &[T], index: usize) {
    if let Some(item) = items.get(index) {
        hint(item);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn hint<T>(item: &T) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: PREFETCHT0 is part of SSE, which every x86_64 processor has, and it neither faults nor changes
    // memory or registers for any address; the address here is that of a live reference anyway.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(item).cast()) }
}

/// Other processors: no hint. Always correct, because a hint changes nothing but time.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn hint<T>(_item: &T) {}
