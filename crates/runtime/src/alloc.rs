//! The program's allocator: large blocks on huge pages, and a trap that catches allocations where none may
//! happen.
//!
//! ```text
//! #[global_allocator]
//! static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;
//! ```
//!
//! Blocks of 2 MiB and more (books, order index, buffers) are mapped on their own, aligned to 2 MiB and
//! marked for huge pages: a random access then misses the address translation cache far less often. Smaller
//! ones go to the system's allocator. The trap is per thread: [`arm`] it after start-up, run the hot path,
//! [`disarm`] it and look at the count.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// A huge page of x86-64 and of AArch64 with 4 KiB pages.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The allocator. See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

/// What an armed trap does at an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnAllocation {
    /// Count it.
    Count,
    /// Print where it happened and abort the process.
    Abort,
}

/// What happened while the trap was armed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AllocationCount {
    /// Blocks taken, growing an existing one included.
    pub allocations: u64,
    /// Blocks given back.
    pub releases: u64,
    /// Bytes asked for.
    pub bytes: u64,
}

thread_local! {
    // Constant initialisers and no destructors: touching these allocates nothing.
    static ARMED: Cell<Option<OnAllocation>> = const { Cell::new(None) };
    static COUNT: Cell<AllocationCount> =
        const { Cell::new(AllocationCount { allocations: 0, releases: 0, bytes: 0 }) };
}

/// Whether large blocks get their pages when they are made.
static POPULATE: AtomicBool = AtomicBool::new(false);

/// The environment's word on whether large blocks get their pages when they are made: `0` or `1`, which is
/// what holds where nothing is said.
pub const PREFAULT_VARIABLE: &str = "TICKWIRE_PREFAULT";

/// What [`PREFAULT_VARIABLE`] says.
///
/// # Errors
/// A sentence, if that is neither.
pub fn prefault_asked_for() -> Result<bool, String> {
    match std::env::var_os(PREFAULT_VARIABLE) {
        None => Ok(true),
        Some(said) if said == "1" => Ok(true),
        Some(said) if said == "0" => Ok(false),
        Some(said) => Err(format!(
            "{PREFAULT_VARIABLE} is {}: 0 leaves memory to the first touch, 1 takes it when a program starts",
            said.display()
        )),
    }
}

/// From now on, large blocks get all their pages at once instead of at the first touch: start-up takes longer
/// (about 0.1 s per GiB), and no page fault of the books' memory falls into the time that is measured or
/// traded in. Not where [`PREFAULT_VARIABLE`] is 0: programs that begin often, on little data, begin sooner.
pub fn populate_large_blocks() {
    if prefault_asked_for().unwrap_or(true) {
        POPULATE.store(true, Ordering::Relaxed);
    }
}

/// Whether a process without memory ends with a sentence.
static ENDS: AtomicBool = AtomicBool::new(false);

/// From now on a process that gets no memory says so, with the size and what to do, and ends with exit code
/// 3; without this the language aborts it (SIGABRT). For programs: attempts that may fail (`try_reserve`) end
/// the process too.
pub fn end_without_memory() {
    ENDS.store(true, Ordering::Relaxed);
}

/// There was no block of `bytes` bytes.
#[cold]
#[inline(never)]
fn without_memory(bytes: usize) {
    if !ENDS.load(Ordering::Relaxed) {
        return;
    }
    // Nothing here may allocate.
    let mut digits = [0; 20];
    let (mut rest, mut at) = (bytes, digits.len());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let said: [&[u8]; 3] = [
        b"tickwire: the system gave no memory for ",
        &digits[at..],
        b" bytes; make the sizes of the configuration smaller (instruments, orders, levels, buffers), or raise the limit \
          (`ulimit -v`, `MemoryMax=` of a systemd unit)\n",
    ];
    for part in said {
        // SAFETY: the bytes are readable for their length; what cannot be written is left out.
        unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: ends the process at once, without handlers, which might want memory.
    unsafe { libc::_exit(3) };
}

/// A block as it is, or the end of the process.
#[inline]
fn checked(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() {
        without_memory(bytes);
    }
    block
}

/// Arms the trap on this thread and forgets earlier counts. Works only where [`Allocator`] is the global
/// allocator.
pub fn arm(on_allocation: OnAllocation) {
    COUNT.set(AllocationCount::default());
    ARMED.set(Some(on_allocation));
}

/// Disarms the trap on this thread; what was counted since [`arm`].
pub fn disarm() -> AllocationCount {
    ARMED.set(None);
    COUNT.get()
}

/// Runs `f` with the trap counting; its result and the count.
///
/// # Panics
/// [`Allocator`] is not the global one of this program: nothing would be counted, and every count would be
/// right.
pub fn count_allocations<R>(f: impl FnOnce() -> R) -> (R, AllocationCount) {
    arm(OnAllocation::Count);
    drop(std::hint::black_box(Box::new(0_u8)));
    assert_eq!(
        disarm().allocations,
        1,
        "nothing is counted: the program needs `#[global_allocator] static ALLOCATOR: tickwire_runtime::alloc::Allocator`"
    );
    arm(OnAllocation::Count);
    let result = f();
    (result, disarm())
}

#[inline]
fn note_allocation(bytes: usize) {
    // `try_with`: a thread may still allocate while its locals are being torn down.
    if let Ok(Some(action)) = ARMED.try_with(Cell::get) {
        trapped(action, bytes);
    }
}

#[inline]
fn note_release() {
    if let Ok(Some(_)) = ARMED.try_with(Cell::get) {
        let mut count = COUNT.get();
        count.releases += 1;
        COUNT.set(count);
    }
}

#[cold]
fn trapped(action: OnAllocation, bytes: usize) {
    let mut count = COUNT.get();
    count.allocations += 1;
    count.bytes += bytes as u64;
    COUNT.set(count);
    if action == OnAllocation::Abort {
        ARMED.set(None); // printing allocates
        eprintln!(
            "allocation of {bytes} bytes on a path that must not allocate:\n{}",
            std::backtrace::Backtrace::force_capture()
        );
        std::process::abort();
    }
}

/// Whether a block is mapped on its own.
#[inline]
fn is_large(layout: Layout) -> bool {
    layout.size() >= HUGE_PAGE_BYTES && layout.align() <= HUGE_PAGE_BYTES
}

/// The length a large block is mapped with: whole huge pages. `None` for sizes no machine has.
#[inline]
fn mapped_len(size: usize) -> Option<usize> {
    size.checked_next_multiple_of(HUGE_PAGE_BYTES)
}

/// Maps a zeroed block of whole huge pages at a multiple of their size, null if there is no memory.
fn map(size: usize) -> *mut u8 {
    let Some(len) = mapped_len(size) else {
        return ptr::null_mut();
    };
    let Some(reserved) = len.checked_add(HUGE_PAGE_BYTES) else {
        return ptr::null_mut();
    };
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new anonymous mapping at an address of the kernel's choice disturbs no existing memory.
    let start = unsafe { libc::mmap(ptr::null_mut(), reserved, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    let head = start.align_offset(HUGE_PAGE_BYTES); // of a byte pointer: the bytes up to the next multiple
    let tail = HUGE_PAGE_BYTES - head;
    // SAFETY: `head + len + tail == reserved`: the block and the two pieces lie in the mapping just made,
    // which nobody else knows; the pieces are page-aligned and disjoint from the block. A refused madvise
    // leaves ordinary pages.
    unsafe {
        let block = start.cast::<u8>().add(head);
        if head > 0 {
            libc::munmap(start, head);
        }
        if tail > 0 {
            libc::munmap(block.add(len).cast(), tail);
        }
        libc::madvise(block.cast(), len, libc::MADV_HUGEPAGE);
        if POPULATE.load(Ordering::Relaxed) {
            // Kernels before 5.14 refuse; the pages then come at the first touch.
            libc::madvise(block.cast(), len, libc::MADV_POPULATE_WRITE);
        }
        block
    }
}

// SAFETY: small layouts go to `System` unchanged, with all obligations passed on. A large block is a private
// mapping of at least `size` bytes, zeroed, aligned to 2 MiB >= `align`, and unmapped only by `dealloc`.
// `is_large` depends on the layout alone, so that a block is released by the side that made it. Nothing
// unwinds: `trapped` aborts.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note_allocation(layout.size());
        if is_large(layout) {
            return checked(map(layout.size()), layout.size());
        }
        // SAFETY: the caller's layout, unchanged.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note_allocation(layout.size());
        if is_large(layout) {
            return checked(map(layout.size()), layout.size());
        }
        // SAFETY: the caller's layout, unchanged.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note_release();
        if is_large(layout) {
            let len = mapped_len(layout.size()).expect("it was mapped with this length");
            // SAFETY: a large block is a mapping of exactly this length, and the caller gives it up.
            unsafe { libc::munmap(block.cast(), len) };
            return;
        }
        // SAFETY: a small block came from `System` with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that `new_size` rounded up to the alignment does not overflow.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if !is_large(layout) && !is_large(new_layout) {
            note_allocation(new_size);
            // SAFETY: a small block that stays small belongs to `System`; arguments unchanged.
            return checked(unsafe { System.realloc(block, layout, new_size) }, new_size);
        }
        if is_large(layout) && is_large(new_layout) && mapped_len(layout.size()) == mapped_len(new_size) {
            return block;
        }
        // SAFETY: both layouts are valid; the blocks are distinct and both hold at least the smaller size;
        // the old one is released once, and only when the new one exists.
        unsafe {
            let new_block = self.alloc(new_layout);
            if !new_block.is_null() {
                ptr::copy_nonoverlapping(block, new_block, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
            new_block
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    #[test]
    fn a_large_block_is_zeroed_aligned_to_a_huge_page_and_can_be_written_to_its_last_byte() {
        for extra in [0, 1, 4096, HUGE_PAGE_BYTES - 1] {
            let mut block = vec![0u8; HUGE_PAGE_BYTES + extra];
            assert_eq!(block.as_ptr() as usize % HUGE_PAGE_BYTES, 0);
            assert!(block.iter().all(|&b| b == 0));
            *block.last_mut().expect("not empty") = 1;
        }
    }

    #[test]
    fn contents_survive_growing_and_shrinking_across_the_limit() {
        let mut v: Vec<u64> = Vec::new();
        for i in 0..1_000_000u64 {
            v.push(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
        let right = |v: &[u64]| {
            v.iter()
                .zip(0u64..)
                .all(|(&x, i)| x == i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        };
        assert!(right(&v));
        v.truncate(1_000);
        v.shrink_to_fit();
        assert!(right(&v) && v.len() == 1_000);
        v.reserve_exact(2_000_000);
        assert!(right(&v));
    }

    #[test]
    fn impossible_sizes_fail_instead_of_wrapping_around() {
        assert!(Vec::<u8>::new().try_reserve_exact(isize::MAX as usize).is_err());
    }

    #[test]
    fn the_trap_counts_what_is_allocated_while_armed_and_nothing_else() {
        let before = vec![1u8; 100];
        let (v, count) = count_allocations(|| {
            drop(before);
            vec![2u8; 50]
        });
        assert_eq!(
            count,
            AllocationCount {
                allocations: 1,
                releases: 1,
                bytes: 50
            }
        );
        drop(v);
        let (sum, count) = count_allocations(|| (0..1_000u64).sum::<u64>());
        assert_eq!((sum, count), (499_500, AllocationCount::default()));
    }

    #[test]
    fn the_trap_is_per_thread() {
        let ((), count) = count_allocations(|| {
            std::thread::scope(|s| {
                // Starting the thread allocates here; what it does itself does not count.
                s.spawn(|| drop(vec![0u8; 12_345]));
            });
        });
        assert!(count.bytes < 12_345, "{count:?}");
    }
}
