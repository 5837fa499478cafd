//! What a program must bring along when nothing else does: memory functions, an allocator, a panic handler,
//! an exit.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Memory for the constructors of the crates; nothing is ever given back.
const ARENA_BYTES: usize = 256 << 20;

#[repr(C, align(4096))]
struct Arena {
    memory: UnsafeCell<[u8; ARENA_BYTES]>,
    used: AtomicUsize,
}

// SAFETY: `memory` is only reached through ranges that `used` hands out once each, by an atomic operation.
unsafe impl Sync for Arena {}

#[global_allocator]
static ARENA: Arena = Arena {
    memory: UnsafeCell::new([0; ARENA_BYTES]),
    used: AtomicUsize::new(0),
};

// SAFETY: every call returns a range of the arena that no other call returned, aligned as asked (the arena is
// aligned to 4096, larger alignments are refused), or null when the arena is used up.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut from = self.used.load(Ordering::Relaxed);
        loop {
            let start = from.next_multiple_of(layout.align());
            let Some(end) = start.checked_add(layout.size()).filter(|&end| end <= ARENA_BYTES) else {
                return core::ptr::null_mut();
            };
            if layout.align() > 4096 {
                return core::ptr::null_mut();
            }
            match self
                .used
                .compare_exchange(from, end, Ordering::Relaxed, Ordering::Relaxed)
            {
                // SAFETY: start <= end <= ARENA_BYTES, so the result is within the arena or one past it.
                Ok(_) => return unsafe { self.memory.get().cast::<u8>().add(start) },
                Err(now) => from = now,
            }
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[panic_handler]
fn on_panic(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(101)
}

/// The precompiled `core` refers to it although nothing here unwinds.
// SAFETY: the only symbol of this name in the program; panics abort, so it is never called.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// Landing pads of the precompiled `core` refer to it although nothing here unwinds.
// SAFETY: the only symbol of this name in the program; panics abort, so it is never called.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    exit(102)
}

/// Ends the process with one system call, the only one in the program.
pub(crate) fn exit(code: i32) -> ! {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    // SAFETY: exit_group (231) takes the code in rdi and does not return.
    unsafe {
        core::arch::asm!("syscall", in("rax") 231, in("rdi") code, options(noreturn, nostack))
    }
    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    // SAFETY: exit_group (94) takes the code in x0 and does not return.
    unsafe {
        core::arch::asm!("svc #0", in("x8") 94, in("x0") code, options(noreturn, nostack))
    }
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    loop {
        core::hint::spin_loop();
        let _ = code;
    }
}

/// C's memcpy.
///
/// # Safety
/// * `to` is valid for writes of `n` bytes and `from` for reads of `n` bytes.
/// * They do not overlap.
// SAFETY: the only symbol of this name in the program, with C's signature.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    for at in 0..n {
        // SAFETY: at < n, within both ranges by the caller's promise.
        unsafe { *to.add(at) = *from.add(at) }
    }
    to
}

/// C's memmove.
///
/// # Safety
/// * `to` is valid for writes of `n` bytes and `from` for reads of `n` bytes.
// SAFETY: the only symbol of this name in the program, with C's signature.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    if to.cast_const() <= from {
        // SAFETY: copying upwards reads each byte before it is overwritten when `to` is not above `from`.
        return unsafe { memcpy(to, from, n) };
    }
    for at in (0..n).rev() {
        // SAFETY: at < n, within both ranges by the caller's promise.
        unsafe { *to.add(at) = *from.add(at) }
    }
    to
}

/// C's memset.
///
/// # Safety
/// * `to` is valid for writes of `n` bytes.
// SAFETY: the only symbol of this name in the program, with C's signature.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, value: i32, n: usize) -> *mut u8 {
    for at in 0..n {
        // SAFETY: at < n, within the range by the caller's promise.
        unsafe { *to.add(at) = value as u8 }
    }
    to
}

/// C's memcmp.
///
/// # Safety
/// * `a` and `b` are valid for reads of `n` bytes.
// SAFETY: the only symbol of this name in the program, with C's signature.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
    for at in 0..n {
        // SAFETY: at < n, within both ranges by the caller's promise.
        let (x, y) = unsafe { (*a.add(at), *b.add(at)) };
        if x != y {
            return i32::from(x) - i32::from(y);
        }
    }
    0
}

/// The old name that LLVM uses for comparisons for equality.
///
/// # Safety
/// * As [`memcmp`].
// SAFETY: the only symbol of this name in the program, with C's signature.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller's promise is the same.
    unsafe { memcmp(a, b, n) }
}

/// C's strlen, which `core::ffi` refers to.
///
/// # Safety
/// * `text` points to bytes that end with a 0.
// SAFETY: the only symbol of this name in the program, with C's signature.
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut n = 0;
    // SAFETY: no byte before this one was 0, so it lies within the text.
    while unsafe { *text.add(n) } != 0 {
        n += 1;
    }
    n
}
