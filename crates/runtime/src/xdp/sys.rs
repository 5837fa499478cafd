//! System calls and shared memory of the kernel path, each behind a safe function or type: bpf(2), AF_XDP
//! sockets and their rings. All unsafe code of the kernel path is in this file and, for orders that leave
//! before the kernel knows, in [`super::delegate`].

use std::ffi::c_void;
use std::io;
use std::mem::{size_of, size_of_val};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::sys::check;

/// Commands of bpf(2). Linux `include/uapi/linux/bpf.h`, `enum bpf_cmd`.
mod command {
    pub(super) const MAP_CREATE: i32 = 0;
    pub(super) const MAP_LOOKUP: i32 = 1;
    pub(super) const MAP_UPDATE: i32 = 2;
    pub(super) const MAP_DELETE: i32 = 3;
    pub(super) const MAP_NEXT_KEY: i32 = 4;
    pub(super) const PROG_LOAD: i32 = 5;
    pub(super) const TEST_RUN: i32 = 10;
    pub(super) const LINK_CREATE: i32 = 28;
}

const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// The program is bound to a device, and still runs in the kernel.
const DEV_BOUND_ONLY: u32 = 1 << 6;
/// The map can be mapped into a process.
const MMAPABLE: u32 = 1 << 10;

/// The key must not be there.
pub(super) const NO_EXIST: u64 = 1;

/// `union bpf_attr`, as words: every command reads zeros behind what it knows.
type Attr = [u64; 16];

/// Two 32-bit fields in the order of memory.
fn pair(low: u32, high: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (low.to_ne_bytes(), high.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// The two fields of a word.
fn unpair(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]))
}

fn fd(of: BorrowedFd<'_>) -> u32 {
    of.as_raw_fd() as u32
}

/// # Safety
/// Addresses in `attr` are of memory that lives through the call, as large as the command says, and writable
/// where it writes.
unsafe fn bpf(command: i32, attr: &mut Attr) -> io::Result<i32> {
    // SAFETY: the kernel reads and writes `attr` within the size given; what its addresses lead to is the
    // caller's obligation.
    let ret = unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_mut_ptr(), size_of_val(attr)) };
    check(ret as libc::c_int)
}

/// A name as bpf(2) takes it: at most 15 letters, digits, `_` and `.`.
fn name_words(name: &str) -> [u64; 2] {
    let mut bytes = [0; 16];
    let fits = name
        .bytes()
        .filter(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'.');
    for (to, byte) in bytes.iter_mut().take(15).zip(fits) {
        *to = byte;
    }
    let (words, _) = bytes.as_chunks::<8>();
    [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
}

/// What kind of map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum MapType {
    Hash = 1,
    Array = 2,
    Sockets = 17,
}

/// A map, with the sizes that the kernel reads and writes.
#[derive(Debug)]
pub(super) struct MapFd {
    fd: OwnedFd,
    key: usize,
    value: usize,
}

impl MapFd {
    pub(super) fn create(
        kind: MapType,
        name: &str,
        (key, value, entries): (u32, u32, u32),
    ) -> io::Result<MapFd> {
        let flags = if kind == MapType::Array { MMAPABLE } else { 0 };
        let [first, second] = name_words(name);
        let mut attr: Attr = [0; 16];
        attr[0] = pair(kind as u32, key);
        attr[1] = pair(value, entries);
        attr[2] = pair(flags, 0);
        // map_name stands at byte 28, between two words.
        let mut bytes = [0; 24];
        bytes[4..12].copy_from_slice(&first.to_ne_bytes());
        bytes[12..20].copy_from_slice(&second.to_ne_bytes());
        for (at, chunk) in bytes.as_chunks::<8>().0.iter().enumerate() {
            attr[3 + at] = u64::from_ne_bytes(*chunk);
        }
        // SAFETY: the command has no addresses; a result that is not negative is a new descriptor that nobody
        // else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(bpf(command::MAP_CREATE, &mut attr)?) };
        Ok(MapFd {
            fd,
            key: key as usize,
            value: value as usize,
        })
    }

    pub(super) fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    fn element(&self, key: &[u8], value: *mut c_void, flags: u64) -> Attr {
        assert_eq!(key.len(), self.key, "a key of the map has {} bytes", self.key);
        let mut attr: Attr = [0; 16];
        attr[0] = pair(self.number() as u32, 0);
        attr[1] = key.as_ptr() as u64;
        attr[2] = value as u64;
        attr[3] = flags;
        attr
    }

    /// `flags`: 0, or [`NO_EXIST`].
    pub(super) fn update(&self, key: &[u8], value: &[u8], flags: u64) -> io::Result<()> {
        assert_eq!(
            value.len(),
            self.value,
            "a value of the map has {} bytes",
            self.value
        );
        let mut attr = self.element(key, value.as_ptr().cast_mut().cast(), flags);
        // SAFETY: key and value are as long as the map's, checked above, borrowed through the call, and only
        // read.
        unsafe { bpf(command::MAP_UPDATE, &mut attr) }.map(drop)
    }

    pub(super) fn delete(&self, key: &[u8]) -> io::Result<()> {
        let mut attr = self.element(key, std::ptr::null_mut(), 0);
        // SAFETY: the key is as long as the map's, borrowed through the call, and only read.
        unsafe { bpf(command::MAP_DELETE, &mut attr) }.map(drop)
    }

    /// The key behind this one, `None` behind the last; the first one behind a key that is not there.
    pub(super) fn next_key(&self, key: Option<&[u8]>) -> io::Result<Option<Vec<u8>>> {
        let mut next = vec![0_u8; self.key];
        let to: *mut c_void = next.as_mut_ptr().cast();
        let mut attr: Attr = [0; 16];
        match key {
            Some(key) => attr = self.element(key, to, 0),
            None => (attr[0], attr[2]) = (pair(self.number() as u32, 0), to as u64),
        }
        // SAFETY: a key is as long as the map's, borrowed through the call, and only read; without one the
        // address is null, which asks for the first. What is written is a key, for which there is room.
        match unsafe { bpf(command::MAP_NEXT_KEY, &mut attr) } {
            Ok(_) => Ok(Some(next)),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn value(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut value = vec![0_u8; self.value.next_multiple_of(8)];
        let mut attr = self.element(key, value.as_mut_ptr().cast(), 0);
        // SAFETY: the key is as long as the map's and only read; the value's buffer is at least as long as
        // the map's values.
        match unsafe { bpf(command::MAP_LOOKUP, &mut attr) } {
            Ok(_) => {
                value.truncate(self.value);
                Ok(Some(value))
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The only value of an array map, as memory shared with programs.
    pub(super) fn words(&self) -> io::Result<Words> {
        Words::map(&self.fd, self.value)
    }
}

/// Memory shared with the kernel, as words that change at any time.
#[derive(Debug)]
pub(super) struct Words {
    start: NonNull<c_void>,
    mapped: usize,
    words: usize,
}

// SAFETY: the memory belongs to no thread and is reached through atomics only.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    fn map(fd: &OwnedFd, bytes: usize) -> io::Result<Words> {
        let mapped = bytes.next_multiple_of(page_size());
        // SAFETY: a new mapping at an address of the kernel's choice; the descriptor lives through the call,
        // the mapping outlives it.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        Ok(Words {
            start: mapped_at(start)?,
            mapped,
            words: bytes / 8,
        })
    }

    pub(super) fn get(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, at least `words` words long and lives as long as `self`; all
        // bit patterns are valid, and the kernel's programs change it as atomics do.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.words) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped; no reference outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr(), self.mapped) };
    }
}

fn mapped_at(start: *mut c_void) -> io::Result<NonNull<c_void>> {
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start).ok_or_else(|| io::Error::other("the system mapped address 0"))
}

fn page_size() -> usize {
    // SAFETY: a question without memory.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// Loads a program; with a log buffer the verifier writes what it did into it, or why it refused. With
/// `device`, the index of an interface, it can be attached there only, in the driver, and may call functions
/// of the kernel about what the card says.
pub(super) fn load(
    code: &[u64],
    name: &str,
    device: Option<u32>,
    (level, log): (u32, &mut [u8]),
) -> io::Result<OwnedFd> {
    // No helper is called that is for GPL programs only. Functions of the kernel are for programs that may be
    // had under the GPL: ours may, as MIT lets anybody pass it on so.
    let licence = if device.is_some() { c"Dual MIT/GPL" } else { c"MIT" };
    let [first, second] = name_words(name);
    let mut attr: Attr = [0; 16];
    attr[0] = pair(PROG_TYPE_XDP, u32::try_from(code.len()).unwrap_or(u32::MAX));
    attr[1] = code.as_ptr() as u64;
    attr[2] = licence.as_ptr() as u64;
    let level = if log.is_empty() { 0 } else { level };
    attr[3] = pair(level, u32::try_from(log.len()).unwrap_or(u32::MAX));
    attr[4] = if log.is_empty() {
        0
    } else {
        log.as_mut_ptr() as u64
    };
    if let Some(device) = device {
        attr[5] = pair(0, DEV_BOUND_ONLY);
        attr[8] = pair(device, 0);
    }
    attr[6] = first;
    attr[7] = second;
    // SAFETY: code, licence and log are borrowed through the call, with their lengths; the log is exclusively
    // ours. A result that is not negative is a new descriptor that nobody else owns.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(command::PROG_LOAD, &mut attr)?)) }
}

/// What a test run gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct TestRun {
    pub(super) action: u32,
    pub(super) length: usize,
    pub(super) nanoseconds: u32,
}

/// Runs a program over a packet without a network, `repeat` times; `out` takes what it made of it, metadata
/// first.
pub(super) fn test_run(
    program: BorrowedFd<'_>,
    packet: &[u8],
    out: &mut [u8],
    repeat: u32,
) -> io::Result<TestRun> {
    let mut attr: Attr = [0; 16];
    attr[0] = pair(fd(program), 0);
    attr[1] = pair(packet.len() as u32, out.len() as u32);
    attr[2] = packet.as_ptr() as u64;
    attr[3] = out.as_mut_ptr() as u64;
    attr[4] = pair(repeat, 0);
    // SAFETY: packet and out are borrowed through the call with their lengths, out exclusively.
    unsafe { bpf(command::TEST_RUN, &mut attr) }?;
    Ok(TestRun {
        action: unpair(attr[0]).1,
        length: unpair(attr[1]).1 as usize,
        nanoseconds: unpair(attr[4]).1,
    })
}

/// Attaches a program to an interface until the descriptor is closed. `flags`: 2 generic, 4 native.
pub(super) fn link_xdp(program: BorrowedFd<'_>, interface: u32, flags: u32) -> io::Result<OwnedFd> {
    let mut attr: Attr = [0; 16];
    attr[0] = pair(fd(program), interface);
    attr[1] = pair(ATTACH_XDP, flags);
    // SAFETY: the command has no addresses; a result that is not negative is a new descriptor that nobody
    // else owns.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(command::LINK_CREATE, &mut attr)?)) }
}

/// An AF_XDP socket, not bound yet.
pub(super) fn xdp_socket() -> io::Result<OwnedFd> {
    raw_socket(libc::AF_XDP, 0)
}

/// A socket to ask the kernel over, by generic netlink.
pub(super) fn generic_netlink() -> io::Result<OwnedFd> {
    raw_socket(libc::AF_NETLINK, libc::NETLINK_GENERIC)
}

fn raw_socket(family: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; a result that is not negative is a new descriptor that nobody else owns.
    unsafe {
        let fd = check(libc::socket(
            family,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            protocol,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Memory for frames.
#[derive(Debug)]
pub(super) struct Frames {
    start: NonNull<u8>,
    bytes: usize,
    /// Whether it is of huge pages.
    pub(super) huge: bool,
}

// SAFETY: plain memory of this process, which `Rings` alone hands out, each frame to one owner at a time.
unsafe impl Send for Frames {}

impl Frames {
    pub(super) fn allocate(bytes: usize) -> io::Result<Frames> {
        const HUGE: usize = 2 << 20;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let map = |bytes: usize, extra: i32| {
            // SAFETY: a new mapping without a file, at an address of the kernel's choice.
            let start = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    flags | extra,
                    -1,
                    0,
                )
            };
            mapped_at(start)
        };
        let rounded = bytes.next_multiple_of(HUGE);
        let (start, bytes, huge) = match map(rounded, libc::MAP_HUGETLB) {
            Ok(start) => (start, rounded, true),
            Err(_) => (map(bytes, 0)?, bytes, false),
        };
        Ok(Frames {
            start: start.cast(),
            bytes,
            huge,
        })
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; `Rings` closes the socket, which is what else uses it, before its
        // frames go.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A ring between kernel and process, entries of `T`.
#[derive(Debug)]
struct Ring {
    map: NonNull<c_void>,
    mapped: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<u8>,
    mask: u32,
    /// Our own side's position.
    own: u32,
    /// The other side's, as last seen.
    other: u32,
}

// SAFETY: the shared words are atomics; entries are touched by the side that owns them, which positions say.
unsafe impl Send for Ring {}

impl Ring {
    fn map(
        socket: &OwnedFd,
        offsets: &libc::xdp_ring_offset,
        count: u32,
        entry: usize,
        at: libc::off_t,
    ) -> io::Result<Ring> {
        let mapped = offsets.desc as usize + count as usize * entry;
        // SAFETY: a new mapping at an address of the kernel's choice, as long as the ring that was asked for.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.as_raw_fd(),
                at,
            )
        };
        let map = mapped_at(start)?;
        // SAFETY: the kernel's offsets lie within the mapping it made for them, aligned for their words.
        let word = |offset: u64| unsafe { map.cast::<u8>().add(offset as usize).cast::<AtomicU32>() };
        Ok(Ring {
            map,
            mapped,
            producer: word(offsets.producer),
            consumer: word(offsets.consumer),
            flags: word(offsets.flags),
            entries: word(offsets.desc).cast(),
            mask: count - 1,
            own: 0,
            other: 0,
        })
    }

    fn word(word: &NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: a word of the mapping, which lives as long as the ring that lends it.
        unsafe { word.as_ref() }
    }

    /// The entry that a position is at.
    fn entry<T>(&self, position: u32) -> NonNull<T> {
        // SAFETY: masked, so within the entries of the mapping; their size is T's, as every ring is used for
        // one type.
        unsafe { self.entries.cast::<T>().add((position & self.mask) as usize) }
    }

    /// What the kernel has produced next, which [`Ring::take`] takes.
    #[inline(always)]
    fn look<T: Copy>(&mut self) -> Option<T> {
        if self.own == self.other {
            self.other = Ring::word(&self.producer).load(Ordering::Acquire);
            if self.own == self.other {
                return None;
            }
        }
        // SAFETY: between consumer and producer: written by the kernel before its release of the producer,
        // and ours until the consumer moves.
        Some(unsafe { self.entry::<T>(self.own).read() })
    }

    /// What is behind that, as far as the kernel was seen to have produced it.
    #[inline(always)]
    fn behind<T: Copy>(&self) -> Option<T> {
        let next = self.own.wrapping_add(1);
        if self.own == self.other || next == self.other {
            return None;
        }
        // SAFETY: between consumer and producer: written by the kernel before its release of the producer,
        // and ours until the consumer moves.
        Some(unsafe { self.entry::<T>(next).read() })
    }

    /// Takes what the kernel has produced next.
    #[inline(always)]
    fn take<T: Copy>(&mut self) -> Option<T> {
        let entry = self.look()?;
        self.own = self.own.wrapping_add(1);
        Ring::word(&self.consumer).store(self.own, Ordering::Release);
        Some(entry)
    }

    /// Gives the kernel an entry; `false` if the ring is full.
    #[inline(always)]
    fn give<T>(&mut self, entry: T) -> bool {
        if self.own.wrapping_sub(self.other) > self.mask {
            self.other = Ring::word(&self.consumer).load(Ordering::Acquire);
            if self.own.wrapping_sub(self.other) > self.mask {
                return false;
            }
        }
        // SAFETY: between producer and consumer + size: ours until the producer moves.
        unsafe { self.entry::<T>(self.own).write(entry) };
        self.own = self.own.wrapping_add(1);
        Ring::word(&self.producer).store(self.own, Ordering::Release);
        true
    }

    /// Whether the kernel has produced something that was not taken.
    #[inline(always)]
    fn has_more(&self) -> bool {
        self.own != self.other || Ring::word(&self.producer).load(Ordering::Acquire) != self.own
    }

    fn wants_wakeup(&self) -> bool {
        Ring::word(&self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped; nothing borrows from it longer than `self`.
        unsafe { libc::munmap(self.map.as_ptr(), self.mapped) };
    }
}

/// Bytes of a frame's place, headroom included.
pub(super) const FRAME: usize = 2048;

/// An AF_XDP socket with its frames and rings. Frames 0 to `count` are the kernel's to receive into, the same
/// number behind them ours to send from.
#[derive(Debug)]
pub(super) struct Rings {
    // Dropped in this order: rings, socket, then the frames that the socket uses.
    receive: Ring,
    send: Ring,
    fill: Ring,
    complete: Ring,
    socket: OwnedFd,
    frames: Frames,
    count: u32,
    /// Frames for sending that are free.
    free: Vec<u64>,
    /// A received frame that was lent out: back to the kernel with the next call.
    lent: Option<u64>,
}

impl Rings {
    /// `count` frames for receiving and as many for sending, a power of two.
    pub(super) fn new(count: u32) -> io::Result<Rings> {
        let socket = xdp_socket()?;
        let frames = Frames::allocate(2 * count as usize * FRAME)?;
        let area = libc::xdp_umem_reg {
            addr: frames.start.as_ptr() as u64,
            len: frames.bytes as u64,
            chunk_size: FRAME as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set(&socket, libc::XDP_UMEM_REG, &area)?;
        for ring in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            set(&socket, ring, &count)?;
        }
        let offsets = offsets(&socket)?;
        let descriptor = size_of::<libc::xdp_desc>();
        let fill_at = libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t;
        let complete_at = libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t;
        let mut rings = Rings {
            receive: Ring::map(&socket, &offsets.rx, count, descriptor, libc::XDP_PGOFF_RX_RING)?,
            send: Ring::map(&socket, &offsets.tx, count, descriptor, libc::XDP_PGOFF_TX_RING)?,
            fill: Ring::map(&socket, &offsets.fr, count, size_of::<u64>(), fill_at)?,
            complete: Ring::map(&socket, &offsets.cr, count, size_of::<u64>(), complete_at)?,
            socket,
            frames,
            count,
            free: Vec::with_capacity(count as usize),
            lent: None,
        };
        for n in 0..u64::from(count) {
            rings.fill.give(n * FRAME as u64);
            rings.free.push((u64::from(count) + n) * FRAME as u64);
        }
        Ok(rings)
    }

    pub(super) fn bind(&self, interface: u32, queue: u32, flags: u16) -> io::Result<()> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        // SAFETY: the pointer and length describe a local address that lives through the call.
        let ret = unsafe {
            libc::bind(
                self.socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        check(ret).map(drop)
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(super) fn has_huge_pages(&self) -> bool {
        self.frames.huge
    }

    /// The next frame, with what stands in front of it; both are the caller's until the next call.
    #[inline(always)]
    pub(super) fn receive<const META: usize>(&mut self) -> Option<([u8; META], &[u8])> {
        if let Some(address) = self.lent.take() {
            self.give_back(address, META);
        }
        let descriptor = self.receive.take::<libc::xdp_desc>()?;
        self.lent = Some(descriptor.addr);
        let (start, length) = self.place::<META>(&descriptor)?;
        // SAFETY: within the frames for receiving, as `place` checks; the descriptor makes the frame ours
        // until it is given back, which takes `&mut self` and so ends the borrow.
        let (meta, frame) = unsafe {
            let at = self.frames.start.add(start);
            let meta = at.sub(META).cast::<[u8; META]>().read();
            (meta, std::slice::from_raw_parts(at.as_ptr(), length))
        };
        Some((meta, frame))
    }

    /// What stands in front of the next frame, which stays where it is.
    #[inline(always)]
    pub(super) fn look<const META: usize>(&mut self) -> Option<[u8; META]> {
        let descriptor = self.receive.look::<libc::xdp_desc>()?;
        let start = descriptor.addr as usize;
        if start < META || start > self.count as usize * FRAME {
            // No frame: it is taken as such.
            return Some([0; META]);
        }
        // SAFETY: within the frames for receiving, checked above; the descriptor says that the kernel has
        // written the frame and what stands in front of it, and it is ours until it is given back.
        Some(unsafe { self.frames.start.add(start - META).cast::<[u8; META]>().read() })
    }

    /// The frame behind the next one with what stands in front of it, as far as the kernel was seen to have
    /// given it.
    #[inline(always)]
    pub(super) fn behind<const META: usize>(&self) -> Option<&[u8]> {
        let descriptor = self.receive.behind::<libc::xdp_desc>()?;
        let (start, length) = self.place::<META>(&descriptor)?;
        // SAFETY: within the frames for receiving, as `place` checks; the descriptor makes the frame ours
        // until it is given back, which takes `&mut self` and so ends the borrow.
        Some(unsafe {
            let at = self.frames.start.add(start - META);
            std::slice::from_raw_parts(at.as_ptr(), META + length)
        })
    }

    /// Where a received frame begins, and its length. The kernel's word is checked all the same: a frame that
    /// is not, with what stands in front of it, among the frames for receiving is no frame.
    #[inline(always)]
    fn place<const META: usize>(&self, descriptor: &libc::xdp_desc) -> Option<(usize, usize)> {
        let (start, length) = (descriptor.addr as usize, descriptor.len as usize);
        let end = start.checked_add(length)?;
        (start >= META && end <= self.count as usize * FRAME).then_some((start, length))
    }

    /// A frame goes back to the kernel; what stood in front of it is made void first, as the next packet may
    /// bring none.
    #[inline(always)]
    fn give_back(&mut self, address: u64, meta: usize) {
        let start = address as usize;
        if start >= meta && start < self.count as usize * FRAME {
            // SAFETY: within the frames for receiving, and ours until the ring below has it.
            unsafe { self.frames.start.add(start - meta).write_bytes(0, meta.min(8)) };
            // The ring has room for every frame that there is.
            self.fill.give(address / FRAME as u64 * FRAME as u64);
        }
    }

    /// Puts a frame on the way; `false` if all frames are on their way already. [`Rings::kick`] starts it.
    pub(super) fn send(&mut self, bytes: &[u8]) -> bool {
        while let Some(done) = self.complete.take::<u64>() {
            self.free.push(done / FRAME as u64 * FRAME as u64);
        }
        if bytes.len() > FRAME {
            return false;
        }
        let Some(address) = self.free.pop() else {
            return false;
        };
        // SAFETY: a free frame for sending is ours alone and FRAME bytes long; the source is another memory.
        unsafe {
            let to = self.frames.start.add(address as usize);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len());
        }
        let given = self.send.give(libc::xdp_desc {
            addr: address,
            len: bytes.len() as u32,
            options: 0,
        });
        if !given {
            self.free.push(address);
        }
        given
    }

    #[inline(always)]
    pub(super) fn has_frame(&self) -> bool {
        self.receive.has_more()
    }

    pub(super) fn needs_kick(&self) -> bool {
        self.send.wants_wakeup()
    }

    pub(super) fn needs_wake(&self) -> bool {
        self.fill.wants_wakeup()
    }

    /// Has the kernel look at what is to be sent.
    pub(super) fn kick(&self) -> io::Result<()> {
        // SAFETY: no buffer: length 0 and null pointers.
        let ret = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null(),
                0,
            )
        };
        check(ret as libc::c_int).map(drop)
    }

    /// Has the kernel look at the frames it may receive into.
    pub(super) fn wake(&self) {
        // SAFETY: no buffer: length 0 and null pointers.
        unsafe {
            libc::recvfrom(
                self.socket.as_raw_fd(),
                std::ptr::null_mut(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
    }
}

fn set<T>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`, borrowed through the call, which only reads it.
    let ret = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(ret).map(drop)
}

fn offsets(socket: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    let none = libc::xdp_ring_offset {
        producer: 0,
        consumer: 0,
        desc: 0,
        flags: 0,
    };
    let mut value = libc::xdp_mmap_offsets {
        rx: none,
        tx: none,
        fr: none,
        cr: none,
    };
    let mut length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the pointer and length describe `value`, exclusively borrowed; it is made of integers.
    let ret = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    check(ret)?;
    if length as usize != size_of_val(&value) {
        return Err(io::Error::other(
            "the kernel's AF_XDP rings have no flags: Linux 5.4 or later is needed",
        ));
    }
    Ok(value)
}

/// Counters of an AF_XDP socket, in the order of `struct xdp_statistics`.
pub(super) fn statistics(socket: &OwnedFd) -> io::Result<[u64; 6]> {
    integers(socket, libc::XDP_STATISTICS)
}

/// Whether frames are taken without a copy.
pub(super) fn is_zero_copy(socket: &OwnedFd) -> io::Result<bool> {
    let [options] = integers::<u32, 1>(socket, libc::XDP_OPTIONS)?;
    Ok(options & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

/// A plain integer.
trait Integer: Copy + Default {}
impl Integer for u32 {}
impl Integer for u64 {}

fn integers<T: Integer, const N: usize>(socket: &OwnedFd, option: i32) -> io::Result<[T; N]> {
    let mut value = [T::default(); N];
    let mut length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the pointer and length describe `value`, exclusively borrowed; every bit pattern of integers is
    // valid.
    let ret = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            option,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    check(ret).map(|_| value)
}
