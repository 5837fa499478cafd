//! The one place with an unsafe instruction: a hint to fetch a cache line that will be needed soon.
//!
//! A safe read in its place was measured: a load that misses holds up everything behind it once the reorder
//! buffer is full, a prefetch does not.
#![allow(unsafe_code)]

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for the cache line of `items[index]`; does nothing when there is no such item.
#[inline(always)]
pub fn fetch<T>(items: &[T], index: usize) {
    if let Some(item) = items.get(index) {
        hint(item);
    }
}

/// The same without looking whether there is such an item: where one that is not there is rare, and near. The
/// line of an item before the first one or behind the last one is fetched in vain.
#[inline(always)]
pub fn fetch_near<T>(items: &[T], index: usize) {
    hint(items.as_ptr().wrapping_add(index));
}

/// Asks for the cache line of `rows[row][index]`; does nothing when there is no such row. The line of an
/// index that the row does not have is fetched in vain.
#[inline(always)]
pub(crate) fn fetch_in<T, const N: usize>(rows: &[[T; N]], row: usize, index: usize) {
    if let Some(row) = rows.get(row) {
        hint(row.as_ptr().wrapping_add(index));
    }
}

/// Asks for every cache line of a value itself, not of what it points to.
#[inline]
pub fn fetch_value<T>(value: &T) {
    fetch_from(core::ptr::from_ref(value).cast(), size_of::<T>());
}

/// Asks for every cache line of a packet.
#[inline]
pub fn fetch_bytes(bytes: &[u8]) {
    fetch_from(bytes.as_ptr(), bytes.len());
}

/// Asks for the code of a function, so many bytes from where it begins: what a rehearsal leaves out. As data,
/// so that it lies in the caches that code and data share.
#[inline]
pub fn fetch_code(function: *const (), bytes: usize) {
    fetch_from(function.cast(), bytes);
}

/// Asks for the stack below whoever calls, so many bytes of it: what the next call will keep there.
#[inline(always)]
pub fn fetch_stack(bytes: usize) {
    let here = 0_u8;
    let from = core::hint::black_box(&raw const here);
    fetch_from(from.wrapping_sub(bytes), bytes);
}

/// Asks for every cache line of so many bytes. Where they do not begin with a line, they end in another one.
#[inline(always)]
fn fetch_from(from: *const u8, bytes: usize) {
    for at in (0..bytes).step_by(LINE) {
        hint(from.wrapping_add(at));
    }
    if bytes > 0 {
        hint(from.wrapping_add(bytes - 1));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn hint<T>(item: *const T) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: PREFETCHT0 is part of SSE, which every x86_64 processor has, and it neither faults nor changes
    // memory or registers for any address, mapped or not.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(item.cast()) }
}

/// Other processors: no hint. Always correct, because a hint changes nothing but time.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn hint<T>(_item: *const T) {}
