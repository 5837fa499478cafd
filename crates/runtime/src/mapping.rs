//! Files as memory, and what happens when a file is made shorter while it is: reading or writing behind its
//! end then raises SIGBUS, which would end the process.
//!
//! The first mapping installs a handler. It puts zeroed memory of the process's own in the place of the
//! mapping that was hit, marks it as lost and returns: the access is repeated and succeeds, on memory that
//! goes nowhere. Owners look at [`Mapping::is_lost`] before they rely on what they wrote or read. Any other
//! SIGBUS goes where it went before.
//!
//! The handler reads a list whose nodes are never freed, and calls `mmap`, a system call of its own that
//! takes no lock of the process (the C library's function is a bare wrapper of it).

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use tickwire_shm::ReadWord;

use crate::alloc::HUGE_PAGE_BYTES;
use crate::sys::check;

/// Where a mapping is, for the handler. Nodes are made once and used again.
#[derive(Debug, Default)]
struct MappedRange {
    /// 0 while nobody has it.
    start: AtomicUsize,
    end: AtomicUsize,
    is_writable: AtomicBool,
    is_lost: AtomicBool,
    is_taken: AtomicBool,
    next: AtomicPtr<MappedRange>,
}

static FIRST: AtomicPtr<MappedRange> = AtomicPtr::new(std::ptr::null_mut());
/// What handled SIGBUS before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Every place that was ever made.
fn places() -> impl Iterator<Item = &'static MappedRange> {
    // SAFETY: pointers of the list are null or of leaked boxes, which live for ever and are changed through
    // atomics only.
    let next = |place: &AtomicPtr<MappedRange>| unsafe { place.load(Ordering::Acquire).as_ref() };
    std::iter::successors(next(&FIRST), move |place| next(&place.next))
}

/// A place that nobody has.
fn take_place() -> &'static MappedRange {
    let free = |place: &&MappedRange| !place.is_taken.swap(true, Ordering::AcqRel);
    if let Some(place) = places().find(free) {
        return place;
    }
    let place: &'static MappedRange = Box::leak(Box::new(MappedRange {
        is_taken: AtomicBool::new(true),
        ..MappedRange::default()
    }));
    let own = std::ptr::from_ref(place).cast_mut();
    let mut first = FIRST.load(Ordering::Acquire);
    loop {
        place.next.store(first, Ordering::Release);
        match FIRST.compare_exchange_weak(first, own, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return place,
            Err(newer) => first = newer,
        }
    }
}

impl MappedRange {
    fn access(&self) -> c_int {
        match self.is_writable.load(Ordering::Acquire) {
            true => libc::PROT_READ | libc::PROT_WRITE,
            false => libc::PROT_READ,
        }
    }

    /// Puts zeroed memory where the file was; whether it is there. Safe in a signal handler.
    fn lose(&self) -> bool {
        let (start, end) = (
            self.start.load(Ordering::Acquire),
            self.end.load(Ordering::Acquire),
        );
        self.is_lost.store(true, Ordering::Release);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: the range is one that `Mapping::new` mapped and that is unmapped only after `start` is 0
        // again; memory that takes its place has the same length and access, and is reached through atomics
        // only, as before.
        let memory = unsafe {
            libc::mmap(
                std::ptr::without_provenance_mut::<c_void>(start),
                end - start,
                self.access(),
                flags,
                -1,
                0,
            )
        };
        memory != libc::MAP_FAILED
    }
}

/// The handler of SIGBUS.
extern "C" fn on_bus_error(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t` to a handler installed with SA_SIGINFO; `si_addr` is set
    // for codes above 0, which the kernel alone gives.
    let fault = unsafe {
        info.as_ref()
            .filter(|i| i.si_code > 0)
            .map(|i| i.si_addr() as usize)
    };
    let hit = fault.and_then(|address| {
        places().find(|place| {
            let start = place.start.load(Ordering::Acquire);
            start != 0 && (start..place.end.load(Ordering::Acquire)).contains(&address)
        })
    });
    if hit.is_some_and(MappedRange::lose) {
        return;
    }
    // Not ours: the access is repeated and goes to whoever handled it before.
    // SAFETY: the pointer is to a static that was filled by `sigaction` before this handler was installed, or
    // null, which only asks; `sigaction` may be called in handlers (signal-safety(7)).
    unsafe {
        let before = BEFORE.get().map_or(std::ptr::null(), std::ptr::from_ref);
        libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut());
    }
}

/// Installs the handler, once.
fn watch_bus_errors() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        // The model checker's coroutines install a handler of their own once, with the first of them: that
        // comes first here, or it would take the place of ours in the tests of this crate.
        #[cfg(test)]
        loom::model(|| {});
        // SAFETY: `sigaction` is integers, a set of bits and an optional function: all zero is its empty
        // value. The pointers are to locals; the handler has the signature that SA_SIGINFO asks for and calls
        // only what handlers may.
        let set = unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            check(libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before)).map(|_| {
                let _ = BEFORE.set(before);
                let mut own: libc::sigaction = std::mem::zeroed();
                own.sa_sigaction = on_bus_error as extern "C" fn(_, _, _) as usize;
                own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigaction(libc::SIGBUS, &raw const own, std::ptr::null_mut())
            })
        };
        let set = set.and_then(check);
        set.map(drop).map_err(|e| e.raw_os_error().unwrap_or(0))
    });
    installed.map_err(io::Error::from_raw_os_error)
}

/// A file's bytes as memory, shared with every other process that maps it; unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: std::ptr::NonNull<AtomicU64>,
    bytes: usize,
    /// Addresses taken, more than `bytes` where they end with a huge page.
    mapped: usize,
    is_writable: bool,
    place: &'static MappedRange,
}

// SAFETY: the memory belongs to the mapping and not to a thread; it is reached through atomics only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Moves pages that are there to huge pages, of a file in memory too, whatever is configured for files of its
/// kind (Linux 6.1; `uapi/asm-generic/mman-common.h`).
const MADV_COLLAPSE: c_int = 25;

/// Room for a file that begins at a multiple of a huge page, so that its pages can be huge, and how many
/// bytes of addresses it takes; `None` if the file is too small for one, or there is no room.
fn aligned_room(bytes: usize) -> Option<(*mut c_void, usize)> {
    let len = bytes.checked_next_multiple_of(HUGE_PAGE_BYTES)?;
    let reserved = len.checked_add(HUGE_PAGE_BYTES)?;
    if bytes < HUGE_PAGE_BYTES {
        return None;
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice, which nobody may touch, disturbs no memory.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), reserved, libc::PROT_NONE, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let head = start.cast::<u8>().align_offset(HUGE_PAGE_BYTES); // the bytes up to the next multiple
    let tail = HUGE_PAGE_BYTES - head;
    // SAFETY: `head + len + tail == reserved`: the room and the two pieces around it lie in the mapping just
    // made, disjoint and page-aligned, and nobody else knows them.
    unsafe {
        let room = start.byte_add(head);
        if head > 0 {
            libc::munmap(start, head);
        }
        if tail > 0 {
            libc::munmap(room.byte_add(len), tail);
        }
        Some((room, len))
    }
}

impl Mapping {
    /// Maps the first `bytes` of a file to be read and written, with all their pages. The file should be as
    /// long: what is behind its end is lost when it is touched.
    pub(crate) fn writable(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        Mapping::new(fd, bytes, true, libc::MAP_POPULATE)
    }

    /// As [`Mapping::writable`], but pages come when they are touched, and the file may grow into the mapping
    /// later.
    pub(crate) fn growing(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        Mapping::new(fd, bytes, true, 0)
    }

    /// As [`Mapping::writable`], to be read only.
    pub(crate) fn read_only(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        Mapping::new(fd, bytes, false, libc::MAP_POPULATE)
    }

    fn new(fd: BorrowedFd<'_>, bytes: usize, is_writable: bool, flags: c_int) -> io::Result<Mapping> {
        watch_bus_errors()?;
        let place = take_place();
        place.is_writable.store(is_writable, Ordering::Release);
        place.is_lost.store(false, Ordering::Release);
        let room = match flags & libc::MAP_POPULATE {
            0 => None,
            _ => aligned_room(bytes),
        };
        let (at, mapped) = room.unwrap_or((std::ptr::null_mut(), bytes));
        let fixed = room.map_or(0, |_| libc::MAP_FIXED);
        // SAFETY: the kernel chooses the address, or it is room for so many bytes that was mapped for this
        // and that nobody else knows: nothing in use is mapped over. The descriptor is open.
        let address = unsafe {
            libc::mmap(
                at,
                bytes,
                place.access(),
                libc::MAP_SHARED | flags | fixed,
                fd.as_raw_fd(),
                0,
            )
        };
        match std::ptr::NonNull::new(address.cast::<AtomicU64>()) {
            Some(start) if address != libc::MAP_FAILED => {
                // By its writer: the pages of a reader are those that it has.
                if room.is_some() && is_writable {
                    // SAFETY: the whole range was mapped just now; the call moves what it holds to larger
                    // pages and changes nothing else. Where the system refuses, small pages stay.
                    unsafe { libc::madvise(address, bytes, MADV_COLLAPSE) };
                }
                place.end.store(address.addr() + bytes, Ordering::Release);
                place.start.store(address.addr(), Ordering::Release);
                Ok(Mapping {
                    address: start,
                    bytes,
                    mapped,
                    is_writable,
                    place,
                })
            }
            _ => {
                let error = io::Error::last_os_error();
                if room.is_some() {
                    // SAFETY: the room was mapped for the file, which did not come.
                    unsafe { libc::munmap(at, mapped) };
                }
                place.is_taken.store(false, Ordering::Release);
                Err(error)
            }
        }
    }

    /// Whether the file was made shorter below memory that was touched: what is read is zeros, what is
    /// written goes nowhere.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.place.is_lost.load(Ordering::Acquire)
    }

    /// The words, of a mapping that can be written.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        assert!(self.is_writable, "a read-only mapping has no words to write");
        // SAFETY: so many whole words are mapped, page-aligned, until `self` is dropped; any bits are a valid
        // `AtomicU64`; other processes change them with atomic instructions only.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.bytes / 8) }
    }

    /// The words, to be read only.
    pub(crate) fn read_words(&self) -> &[ReadWord] {
        // SAFETY: as in `words`; `ReadWord` is a transparent `AtomicU64` that is only ever loaded from,
        // relaxed and of the size of a pointer, which `core::sync::atomic` allows on read-only memory.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr().cast(), self.bytes / 8) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Before the range can be another's.
        self.place.start.store(0, Ordering::Release);
        // SAFETY: mapped by `new` with this length and not unmapped since; nothing borrowed from it outlives
        // it.
        unsafe { libc::munmap(self.address.as_ptr().cast(), self.mapped) };
        self.place.is_taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn file(bytes: u64) -> (std::fs::File, std::path::PathBuf) {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tickwire-mapping-{}-{n}", std::process::id()));
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        file.set_len(bytes).unwrap();
        (file, path)
    }

    /// A file that holds huge pages begins with one, whether the system gives them or not; its words are the
    /// file's, and a cut file is lost as a small one is.
    #[test]
    fn a_large_file_begins_where_a_huge_page_can() {
        let bytes = 2 * HUGE_PAGE_BYTES + (3 << 12);
        let (file, path) = file(bytes as u64);
        let writer = Mapping::writable(file.as_fd(), bytes).unwrap();
        let reader = Mapping::read_only(file.as_fd(), bytes).unwrap();
        assert_eq!(writer.words().as_ptr().addr() % HUGE_PAGE_BYTES, 0);
        assert_eq!(reader.read_words().as_ptr().addr() % HUGE_PAGE_BYTES, 0);
        for at in [0, bytes / 16, bytes / 8 - 1] {
            writer.words()[at].store(at as u64 + 1, Ordering::Relaxed);
            assert_eq!(tickwire_shm::Word::load(&reader.read_words()[at]), at as u64 + 1);
        }
        file.set_len(0).unwrap();
        assert_eq!(tickwire_shm::Word::load(&reader.read_words()[bytes / 8 - 1]), 0);
        assert!(reader.is_lost() && !writer.is_lost());
        drop((writer, reader));
        std::fs::remove_file(path).unwrap();
    }

    /// A file cut to nothing under two mappings: both go on with memory that is lost, and say so; a third is
    /// untouched.
    #[test]
    fn a_file_that_is_cut_loses_its_mappings_and_not_the_process() {
        let ((cut, cut_path), (whole, whole_path)) = (file(3 << 12), file(1 << 12));
        let writer = Mapping::writable(cut.as_fd(), 3 << 12).unwrap();
        let reader = Mapping::read_only(cut.as_fd(), 3 << 12).unwrap();
        let other = Mapping::writable(whole.as_fd(), 1 << 12).unwrap();
        writer.words()[1024].store(7, Ordering::Relaxed);
        other.words()[3].store(9, Ordering::Relaxed);
        assert!(!writer.is_lost() && !reader.is_lost());
        cut.set_len(0).unwrap();
        writer.words()[1024].store(8, Ordering::Relaxed);
        assert!(writer.is_lost());
        assert_eq!(writer.words()[1024].load(Ordering::Relaxed), 8);
        assert_eq!(reader.read_words().len(), 1536);
        assert_eq!(tickwire_shm::Word::load(&reader.read_words()[1024]), 0);
        assert!(reader.is_lost());
        assert!(!other.is_lost());
        assert_eq!(other.words()[3].load(Ordering::Relaxed), 9);
        drop((writer, reader));
        // A place is used again, and begins unmarked.
        let again = Mapping::growing(whole.as_fd(), 1 << 12).unwrap();
        assert!(!again.is_lost());
        for path in [cut_path, whole_path] {
            std::fs::remove_file(path).unwrap();
        }
    }
}
