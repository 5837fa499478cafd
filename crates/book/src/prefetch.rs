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
    if cfg!(tickwire_hints_read) {
        return fetch(items, index);
    }
    hint(items.as_ptr().wrapping_add(index));
}

/// Asks for the cache line of `rows[row][index]`; does nothing when there is no such row. The line of an
/// index that the row does not have is fetched in vain.
#[inline(always)]
pub(crate) fn fetch_in<T, const N: usize>(rows: &[[T; N]], row: usize, index: usize) {
    if let Some(row) = rows.get(row) {
        fetch_near(row, index);
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
    #[cfg(tickwire_hints_read)]
    let bytes = counted::of_text(function, bytes);
    fetch_from(function.cast(), bytes);
}

/// Asks for the stack below whoever calls, so many bytes of it: what the next call will keep there.
#[inline(always)]
pub fn fetch_stack(bytes: usize) {
    #[cfg(tickwire_hints_read)]
    return counted::write_stack(bytes);
    #[cfg(not(tickwire_hints_read))]
    hint_stack(bytes);
}

#[cfg(not(tickwire_hints_read))]
#[inline(always)]
fn hint_stack(bytes: usize) {
    let here = 0_u8;
    let from = core::hint::black_box(&raw const here);
    fetch_from(from.wrapping_sub(bytes), bytes);
}

/// Asks for every cache line of so many bytes.
#[inline(always)]
fn fetch_from(from: *const u8, bytes: usize) {
    let behind = from.addr() % LINE;
    let first = from.wrapping_sub(behind);
    for nth in 0..lines(behind, bytes) {
        hint(first.wrapping_add(nth * LINE));
    }
}

/// In how many lines so many bytes lie that begin this far behind the begin of one.
#[inline(always)]
const fn lines(behind: usize, bytes: usize) -> usize {
    match bytes {
        0 => 0,
        _ => (behind + bytes).div_ceil(LINE),
    }
}

#[cfg(all(target_arch = "x86_64", not(tickwire_hints_read)))]
#[inline(always)]
fn hint<T>(item: *const T) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: PREFETCHT0 is part of SSE, which every x86_64 processor has, and it neither faults nor changes
    // memory or registers for any address, mapped or not.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(item.cast()) }
}

/// Other processors: no hint. Always correct, because a hint changes nothing but time.
#[cfg(all(not(target_arch = "x86_64"), not(tickwire_hints_read)))]
#[inline(always)]
fn hint<T>(_item: *const T) {}

#[cfg(tickwire_hints_read)]
use counted::hint;

/// Hints that read, with `--cfg tickwire_hints_read`: Callgrind, whose model of the caches counts the lines
/// that nothing has asked for (`cargo xtask cold`), passes over hints. Nothing that ships is built so.
#[cfg(tickwire_hints_read)]
mod counted {
    use core::arch::asm;

    unsafe extern "C" {
        /// The end of the program's code, as linkers name it.
        static etext: u8;
    }

    /// Reads a byte there.
    #[inline(always)]
    pub(super) fn hint<T>(item: *const T) {
        // SAFETY: whoever calls names a place in a line of the caches in which a byte lies that it borrows,
        // or that is code of the program (`of_text`); a line is part of one page, so it is mapped, and mapped
        // memory of a program can be read. What is read there goes nowhere.
        unsafe {
            asm!("mov {}, byte ptr [{}]", out(reg_byte) _, in(reg) item, options(nostack, readonly, preserves_flags));
        }
    }

    /// How many of so many bytes behind the begin of a function are code.
    pub(super) fn of_text(function: *const (), bytes: usize) -> usize {
        let end = (&raw const etext).addr();
        bytes.min(end.saturating_sub(function.addr()))
    }

    /// Writes to so many bytes of the stack below whoever calls, and to some more.
    #[inline(never)]
    pub(super) fn write_stack(bytes: usize) {
        const PAGE: usize = 4096;
        let page = core::hint::black_box([0_u8; PAGE]);
        if bytes > PAGE {
            write_stack(bytes - PAGE);
        }
        core::hint::black_box(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hint changes nothing, whatever it names: nothing, a line, a value that ends in one more line than it
    /// is long, code, and the stack further down than there is any.
    #[test]
    fn any_address_may_be_named() {
        fetch_value(&());
        fetch_value(&[7_u8; 65]);
        fetch_bytes(&[]);
        fetch_bytes(&[7; 129][63..]);
        fetch_code(any_address_may_be_named as *const (), 1 << 16);
        #[cfg(not(tickwire_hints_read))]
        fetch_code(core::ptr::null(), 100);
        fetch_stack(if cfg!(tickwire_hints_read) {
            1 << 16
        } else {
            1 << 24
        });
        fetch(&[1_u64; 3], 4);
        fetch_near(&[1_u64; 3], usize::MAX);
        fetch_in(&[[1_u64; 3]; 2], 2, 0);
    }

    #[test]
    fn a_value_that_does_not_begin_with_a_line_ends_in_another_one() {
        let counted = [
            (0, 0),
            (63, 0),
            (0, 1),
            (63, 1),
            (0, 64),
            (1, 64),
            (63, 64),
            (63, 65),
            (63, 66),
        ];
        let lines = counted.map(|(behind, bytes)| lines(behind, bytes));
        assert_eq!(lines, [0, 0, 1, 1, 1, 2, 2, 2, 3]);
    }
}
