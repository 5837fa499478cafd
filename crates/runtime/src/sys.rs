//! System calls the standard library lacks, each behind a safe function: arguments are checked by type,
//! results are `io::Result`. No policy here. Every socket call of the crate stands here and asks
//! [`crate::faults`] first, so that tests can make any of them fail.

use std::ffi::{CStr, CString};
use std::io;
use std::io::{Read, Write};
use std::mem::{MaybeUninit, size_of, size_of_val};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use crate::faults::{Call, pass};

/// The result of a call that returns -1 and sets `errno` on failure.
pub(crate) fn check(ret: libc::c_int) -> io::Result<libc::c_int> {
    if ret < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(ret)
    }
}

/// A socket option's value, as the kernel reads it.
///
/// # Safety
/// * The type has no padding: every byte is initialised.
/// * Any bytes the kernel may write for the option are a valid value.
pub(crate) unsafe trait OptionValue: Copy + Default {}
// SAFETY: a plain integer: no padding, every bit pattern valid.
unsafe impl OptionValue for libc::c_int {}

/// `ip_mreqn` of `ip(7)`: a group and the interface to join or send it on.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct GroupOnInterface {
    pub(crate) group: [u8; 4],
    pub(crate) address: [u8; 4],
    pub(crate) index: libc::c_int,
}
const _: () = assert!(size_of::<GroupOnInterface>() == size_of::<libc::ip_mreqn>());
// SAFETY: twelve bytes in three fields of four, so no padding; every bit pattern valid.
unsafe impl OptionValue for GroupOnInterface {}

/// `ip_mreq_source` of `ip(7)`: a group, the interface's address and the only sender to accept.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct GroupFromSource {
    pub(crate) group: [u8; 4],
    pub(crate) interface: [u8; 4],
    pub(crate) source: [u8; 4],
}
const _: () = assert!(size_of::<GroupFromSource>() == size_of::<libc::ip_mreq_source>());
// SAFETY: twelve bytes in three fields of four, so no padding; every bit pattern valid.
unsafe impl OptionValue for GroupFromSource {}

/// `struct linger` of `socket(7)`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Linger {
    pub(crate) is_on: libc::c_int,
    pub(crate) seconds: libc::c_int,
}
const _: () = assert!(size_of::<Linger>() == size_of::<libc::linger>());
// SAFETY: two integers: no padding, every bit pattern valid.
unsafe impl OptionValue for Linger {}

/// The counters of `SO_MEMINFO`, in the order of `SK_MEMINFO_*` of linux/sock_diag.h.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct SocketMemory([u32; 9]);
// SAFETY: an array of integers: no padding, every bit pattern valid.
unsafe impl OptionValue for SocketMemory {}

impl SocketMemory {
    /// `SK_MEMINFO_DROPS`: datagrams dropped because the receive buffer was full.
    pub(crate) fn drops(self) -> u32 {
        self.0[8]
    }
}

/// A UDP socket over IPv4, closed on exec.
pub(crate) fn udp_socket() -> io::Result<OwnedFd> {
    pass(Call::Socket)?;
    // SAFETY: no pointers; a non-negative result is a new descriptor that nobody else owns.
    unsafe {
        let fd = check(libc::socket(
            libc::AF_INET,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
            0,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Sets a socket option.
pub(crate) fn set_option<T: OptionValue>(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: T,
) -> io::Result<()> {
    let is_membership = matches!(name, libc::IP_ADD_MEMBERSHIP | libc::IP_ADD_SOURCE_MEMBERSHIP);
    pass(match level == libc::IPPROTO_IP && is_membership {
        true => Call::Join,
        false => Call::Option,
    })?;
    // SAFETY: the pointer and length describe `value`, which lives through the call and has no padding
    // (OptionValue).
    let ret = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(ret).map(drop)
}

/// Reads a socket option.
pub(crate) fn get_option<T: OptionValue>(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<T> {
    pass(Call::Option)?;
    let mut value = T::default();
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and length describe `value`, exclusively borrowed; whatever is written is valid
    // (OptionValue).
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut len) })?;
    Ok(value)
}

/// The kernel's form of an IPv4 socket address.
fn sockaddr(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(address.ip().octets()),
        },
        sin_zero: [0; 8],
    }
}

/// Binds a socket.
pub(crate) fn bind(fd: BorrowedFd<'_>, address: SocketAddrV4) -> io::Result<()> {
    pass(Call::Bind)?;
    let address = sockaddr(address);
    // SAFETY: the pointer and length describe a local `sockaddr_in` that lives through the call.
    let ret = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of_val(&address) as libc::socklen_t,
        )
    };
    check(ret).map(drop)
}

/// A bound UDP socket that never waits.
pub(crate) fn udp_bound(address: SocketAddrV4) -> io::Result<UdpSocket> {
    pass(Call::Socket)?;
    pass(Call::Bind)?;
    let socket = UdpSocket::bind(address)?;
    pass(Call::Option)?;
    socket.set_nonblocking(true).map(|()| socket)
}

/// Gives a UDP socket the only address it sends to.
pub(crate) fn connect_udp(socket: &UdpSocket, to: SocketAddrV4) -> io::Result<()> {
    pass(Call::Connect)?;
    socket.connect(to)
}

/// Sends a datagram on a connected socket.
#[inline]
pub(crate) fn send(socket: &UdpSocket, payload: &[u8]) -> io::Result<usize> {
    pass(Call::Send)?;
    socket.send(payload)
}

/// Sends a datagram to an address.
#[inline]
pub(crate) fn send_to(socket: &UdpSocket, payload: &[u8], to: SocketAddr) -> io::Result<usize> {
    pass(Call::Send)?;
    socket.send_to(payload, to)
}

/// The next datagram and who sent it.
#[inline]
pub(crate) fn recv_from(socket: &UdpSocket, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    pass(Call::Receive)?;
    socket.recv_from(buf)
}

/// A socket that listens and never waits.
pub(crate) fn tcp_listener(address: SocketAddr) -> io::Result<TcpListener> {
    pass(Call::Socket)?;
    pass(Call::Bind)?;
    let listener = TcpListener::bind(address)?;
    pass(Call::Option)?;
    listener.set_nonblocking(true).map(|()| listener)
}

/// The next connection.
pub(crate) fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    pass(Call::Accept)?;
    listener.accept()
}

/// A connection, waited for so long.
pub(crate) fn connect_tcp(to: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    pass(Call::Socket)?;
    pass(Call::Connect)?;
    TcpStream::connect_timeout(&to, timeout)
}

/// Makes a connection's calls never wait, nor its small messages.
pub(crate) fn prepare_tcp(stream: &TcpStream) -> io::Result<()> {
    pass(Call::Option)?;
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)
}

/// The next bytes of a connection.
#[inline]
pub(crate) fn read(stream: &mut TcpStream, buf: &mut [u8]) -> io::Result<usize> {
    pass(Call::Read)?;
    stream.read(buf)
}

/// Bytes to a connection, as many as the kernel takes.
#[inline]
pub(crate) fn write(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    pass(Call::Write)?;
    stream.write(bytes)
}

/// Room for the control messages of one datagram, aligned as `cmsghdr` wants.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct ControlBuffer(pub(crate) [u8; 128]);

/// What `recvmsg` said about a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageHeader {
    /// The datagram's length on the wire, which may exceed the buffer.
    pub(crate) len: usize,
    /// How many bytes of the control buffer were written.
    pub(crate) control_len: usize,
}

/// The next datagram of a socket with its control messages, `WouldBlock` if there is none.
#[inline]
pub(crate) fn recv_message(
    fd: BorrowedFd<'_>,
    buf: &mut [u8],
    control: &mut ControlBuffer,
) -> io::Result<MessageHeader> {
    receive_message(fd, buf, control, libc::MSG_DONTWAIT | libc::MSG_TRUNC)
}

/// Likewise, with who sent it.
#[inline]
pub(crate) fn recv_message_from(
    fd: BorrowedFd<'_>,
    buf: &mut [u8],
    control: &mut ControlBuffer,
) -> io::Result<(MessageHeader, SocketAddrV4)> {
    // SAFETY: `sockaddr_in` is plain integers: all zero is a valid value.
    let mut from: libc::sockaddr_in = unsafe { MaybeUninit::zeroed().assume_init() };
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    let header = message(fd, buf, control, flags, Some(&mut from))?;
    let address = Ipv4Addr::from(from.sin_addr.s_addr.to_ne_bytes());
    Ok((header, SocketAddrV4::new(address, u16::from_be(from.sin_port))))
}

/// Bytes of a stream, or the next datagram, with its control messages.
#[inline]
pub(crate) fn receive_message(
    fd: BorrowedFd<'_>,
    buf: &mut [u8],
    control: &mut ControlBuffer,
    flags: i32,
) -> io::Result<MessageHeader> {
    message(fd, buf, control, flags, None)
}

#[inline]
fn message(
    fd: BorrowedFd<'_>,
    buf: &mut [u8],
    control: &mut ControlBuffer,
    flags: i32,
    from: Option<&mut libc::sockaddr_in>,
) -> io::Result<MessageHeader> {
    pass(Call::Receive)?;
    let mut iov = libc::iovec {
        iov_base: buf.as_mut_ptr().cast(),
        iov_len: buf.len(),
    };
    // SAFETY: `msghdr` is plain integers and pointers: all zero is its empty value.
    let mut msg: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    if let Some(from) = from {
        msg.msg_name = (&raw mut *from).cast();
        msg.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    }
    msg.msg_iov = &raw mut iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control.0.as_mut_ptr().cast();
    msg.msg_controllen = control.0.len();
    // SAFETY: `iov`, the name and the control pointer describe exclusively borrowed buffers that outlive the
    // call, with their lengths.
    let len = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut msg, flags) };
    if len < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(MessageHeader {
        len: len as usize,
        control_len: msg.msg_controllen.min(control.0.len()),
    })
}

/// Room for the datagrams of one `recvmmsg` with their control messages. All of it is taken, and touched
/// where a packet of a venue comes, when it is made.
pub(crate) struct MessageBatch {
    bytes: Box<[u8]>,
    controls: Box<[ControlBuffer]>,
    vectors: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
}

// SAFETY: the pointers in `vectors` and `headers` are written by `receive` right before the call that reads
// them and are used by nobody else; everything they point to belongs to the same value.
unsafe impl Send for MessageBatch {}
// SAFETY: as above; who has it shared reads bytes and lengths and never follows a pointer.
unsafe impl Sync for MessageBatch {}

impl MessageBatch {
    /// From one datagram's room to the next: any datagram fits, and their beginnings, which is all that most
    /// have, are in different sets of the caches.
    const STRIDE: usize = (64 << 10) + 33 * 64;

    /// Room for so many.
    pub(crate) fn new(most: usize) -> MessageBatch {
        let mut bytes = vec![0; most * MessageBatch::STRIDE].into_boxed_slice();
        for room in bytes.chunks_mut(MessageBatch::STRIDE) {
            std::hint::black_box(room)[..2048].fill(0);
        }
        let nothing = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        // SAFETY: `mmsghdr` is plain integers and pointers: all zero is its empty value.
        let empty: libc::mmsghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        MessageBatch {
            bytes,
            controls: vec![ControlBuffer([0; 128]); most].into(),
            vectors: vec![nothing; most].into(),
            headers: vec![empty; most].into(),
        }
    }

    /// How many datagrams one call takes at most.
    pub(crate) fn most(&self) -> usize {
        self.headers.len()
    }

    /// Takes what the socket holds, up to the most; how many, at least one, or `WouldBlock`. `stamped`: with
    /// control messages.
    #[inline]
    pub(crate) fn receive(&mut self, fd: BorrowedFd<'_>, stamped: bool) -> io::Result<usize> {
        pass(Call::Receive)?;
        let rooms = self.bytes.chunks_exact_mut(MessageBatch::STRIDE);
        let places = self.headers.iter_mut().zip(&mut self.vectors);
        for ((header, vector), (room, control)) in places.zip(rooms.zip(&mut self.controls)) {
            vector.iov_base = room.as_mut_ptr().cast();
            vector.iov_len = room.len();
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = if stamped { control.0.len() } else { 0 };
        }
        // SAFETY: so many headers, each of which describes room and control buffer of its own, borrowed
        // exclusively through `self` for the call, with their lengths; the kernel writes nothing else.
        let taken = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                libc::MSG_DONTWAIT | libc::MSG_TRUNC,
                std::ptr::null_mut(),
            )
        };
        check(taken).map(|taken| taken as usize)
    }

    /// One of those that the last call took: its bytes, its length on the wire, its control messages.
    #[inline]
    pub(crate) fn get(&self, nth: usize) -> (&[u8], usize, &[u8]) {
        let (header, from) = (&self.headers[nth], nth * MessageBatch::STRIDE);
        let len = header.msg_len as usize;
        let control = &self.controls[nth].0;
        (
            &self.bytes[from..from + len.min(MessageBatch::STRIDE)],
            len,
            &control[..header.msg_hdr.msg_controllen.min(control.len())],
        )
    }
}

impl std::fmt::Debug for MessageBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MessageBatch({})", self.most())
    }
}

/// The next datagram of a socket, `WouldBlock` if there is none. The length is that on the wire and may
/// exceed the buffer.
#[inline]
pub(crate) fn recv(fd: BorrowedFd<'_>, buf: &mut [u8]) -> io::Result<usize> {
    pass(Call::Receive)?;
    // SAFETY: pointer and length describe an exclusively borrowed buffer; MSG_TRUNC changes the result, not
    // what is written.
    let len = unsafe {
        libc::recv(
            fd.as_raw_fd(),
            buf.as_mut_ptr().cast(),
            buf.len(),
            libc::MSG_DONTWAIT | libc::MSG_TRUNC,
        )
    };
    if len < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(len as usize)
    }
}

/// When the kernel received the last datagram read from a socket, nanoseconds since the epoch. The first call
/// turns this on and fails with `ENOENT`. socket(7), `SIOCGSTAMPNS` (missing in `libc`; in its form for
/// 64-bit systems).
pub(crate) fn last_stamp(fd: BorrowedFd<'_>) -> io::Result<u64> {
    const SIOCGSTAMPNS: libc::Ioctl = 0x8907;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    const {
        assert!(
            size_of::<libc::timespec>() == 16,
            "the ioctl writes two 64-bit words"
        )
    };
    // SAFETY: the ioctl writes one `timespec`, of the size asserted, to an exclusively borrowed local.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), SIOCGSTAMPNS, &raw mut time) })?;
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Waits until a descriptor is ready or `timeout_ns` have passed (`None`: for ever); the number of ready
/// descriptors.
pub(crate) fn poll(fds: &mut [libc::pollfd], timeout_ns: Option<u64>) -> io::Result<usize> {
    pass(Call::Poll)?;
    let timeout = timeout_ns.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    let timeout = timeout
        .as_ref()
        .map_or(std::ptr::null(), |t| t as *const libc::timespec);
    // SAFETY: pointer and count describe an exclusively borrowed slice; `timeout` is null or a local that
    // outlives the call; the signal mask may be null.
    let ready = unsafe {
        libc::ppoll(
            fds.as_mut_ptr(),
            fds.len() as libc::nfds_t,
            timeout,
            std::ptr::null(),
        )
    };
    check(ready).map(|n| n as usize)
}

/// A kernel clock in nanoseconds.
pub(crate) fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to an exclusively borrowed local.
    let ret = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert_eq!(ret, 0, "clock {clock} exists on every Linux");
    let ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    match clock {
        libc::CLOCK_REALTIME => ns.saturating_add_signed(crate::faults::wall_step()),
        _ => ns,
    }
}

/// The time of a clock that may be gone: of a device, by the number of its descriptor.
pub(crate) fn try_clock_ns(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to an exclusively borrowed local.
    check(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
    Ok((time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64))
}

/// The clock's state and what the kernel tells of it.
pub(crate) fn timekeeping() -> io::Result<(libc::c_int, libc::timex)> {
    // SAFETY: `timex` is integers: all zero is a value of it, and `modes` 0 asks the kernel to change
    // nothing.
    let mut told: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local that lives through the call.
    let state = check(unsafe { libc::adjtimex(&raw mut told) })?;
    Ok((state, told))
}

/// The cores the calling thread may run on, ascending.
pub(crate) fn affinity() -> io::Result<Vec<usize>> {
    // SAFETY: `cpu_set_t` is a bit array: all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: size and pointer describe `set`, exclusively borrowed.
    check(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) })?;
    // SAFETY: the index stays below the number of bits of the set.
    Ok((0..8 * size_of_val(&set))
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &set) })
        .collect())
}

/// Restricts the calling thread to these cores. Allocates nothing.
pub(crate) fn set_affinity(cores: &[usize]) -> io::Result<()> {
    // SAFETY: `cpu_set_t` is a bit array: all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
    for &core in cores {
        if core >= 8 * size_of_val(&set) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: the index was checked against the number of bits of the set.
        unsafe { libc::CPU_SET(core, &mut set) };
    }
    // SAFETY: size and pointer describe `set`, which lives through the call.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) }).map(drop)
}

/// The core the calling thread runs on.
pub(crate) fn current_core() -> usize {
    // SAFETY: no arguments, no memory.
    unsafe { libc::sched_getcpu() }.max(0) as usize
}

/// Gives the calling thread the first-in-first-out real-time policy.
pub(crate) fn set_fifo(priority: i32) -> io::Result<()> {
    let param = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the pointer is to a local that lives through the call.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) }).map(drop)
}

/// Locks all present and future pages in memory.
pub(crate) fn lock_memory() -> io::Result<()> {
    // SAFETY: no pointers; locking does not change the meaning of memory.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }).map(drop)
}

/// Sends `signal` to this process when its parent's starting thread ends; whether the parent is still
/// `parent`.
pub(crate) fn signal_on_parent_death(signal: i32, parent: u32) -> io::Result<bool> {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number and touches no memory; getppid takes nothing.
    unsafe {
        check(libc::prctl(libc::PR_SET_PDEATHSIG, signal as libc::c_ulong))?;
        Ok(libc::getppid() as u32 == parent)
    }
}

/// Sends a signal to a process.
pub(crate) fn send_signal(pid: u32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is involved. A positive pid addresses one process, never a group.
    check(unsafe { libc::kill((pid as libc::pid_t).max(1), signal) }).map(drop)
}

/// The index of a network interface; `None` when there is none of that name (any more).
pub(crate) fn interface_index(name: &str) -> io::Result<Option<u32>> {
    let name = CString::new(name)?;
    // SAFETY: a NUL-terminated string that lives through the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENODEV | libc::ENXIO) => Ok(None),
                // The call opens a socket: that can fail for its own reasons.
                _ => Err(error),
            }
        }
        index => Ok(Some(index)),
    }
}

/// Every interface with its IPv4 addresses: name, flags (`IFF_*`), address. An interface without one appears
/// once, with `None`.
pub(crate) fn interface_addresses() -> io::Result<Vec<(String, u32, Option<Ipv4Addr>)>> {
    let mut head: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the pointer is to a local that receives a list which `freeifaddrs` below releases.
    check(unsafe { libc::getifaddrs(&raw mut head) })?;
    let mut out: Vec<(String, u32, Option<Ipv4Addr>)> = Vec::new();
    let mut next = head;
    // SAFETY: `next` walks the list getifaddrs built, whose nodes are valid until freed below.
    while let Some(node) = unsafe { next.as_ref() } {
        // SAFETY: `ifa_name` of a node is a NUL-terminated string.
        let name = unsafe { CStr::from_ptr(node.ifa_name) }
            .to_string_lossy()
            .into_owned();
        // SAFETY: `ifa_addr` is null or a `sockaddr` of the node.
        let family = unsafe { node.ifa_addr.as_ref() }.map(|a| i32::from(a.sa_family));
        let address = (family == Some(libc::AF_INET)).then(|| {
            // SAFETY: a `sockaddr` of family AF_INET is a `sockaddr_in`, which has the same alignment demands
            // in this list.
            let addr = unsafe { node.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
            Ipv4Addr::from(addr.sin_addr.s_addr.to_ne_bytes())
        });
        if address.is_some() || !out.iter().any(|(n, _, _)| *n == name) {
            out.retain(|(n, _, a)| *n != name || a.is_some());
            out.push((name, node.ifa_flags, address));
        }
        next = node.ifa_next;
    }
    // SAFETY: `head` came from getifaddrs and is released once; nothing refers to it any more.
    unsafe { libc::freeifaddrs(head) };
    Ok(out)
}

/// A descriptor to poll for input.
pub(crate) fn poll_input(fd: RawFd) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}

/// Takes flock(2)'s lock of an open file for us alone until it is closed; `false` if somebody holds one.
/// Anybody who may open the file for reading can take it, so it is for files that are ours alone (0600).
pub(crate) fn lock(fd: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: no memory is involved.
    match check(unsafe { libc::flock(fd.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives flock(2)'s lock of an open file back before the file is closed.
pub(crate) fn unlock(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::flock(fd.as_raw_fd(), libc::LOCK_UN) }).map(drop)
}

/// Gives a file bytes from `from` to `to` that the file system has set aside, so that no access to them can
/// fail later for want of room.
pub(crate) fn allocate(fd: BorrowedFd<'_>, from: usize, to: usize) -> io::Result<()> {
    let len = to.saturating_sub(from);
    // SAFETY: no memory is involved.
    match unsafe { libc::posix_fallocate(fd.as_raw_fd(), from as libc::off_t, len as libc::off_t) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// `ucred` of unix(7): who is at the other end of a local socket.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct PeerCredentials {
    pub(crate) pid: i32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}
const _: () = assert!(size_of::<PeerCredentials>() == size_of::<libc::ucred>());
// SAFETY: three integers of four bytes: no padding, every bit pattern valid.
unsafe impl OptionValue for PeerCredentials {}

/// The supplementary groups of whoever is at the other end of a local socket, as they were when it was
/// connected.
pub(crate) fn peer_groups(fd: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    let mut groups = vec![0_u32; 64];
    loop {
        let mut len = size_of_val(&groups[..]) as libc::socklen_t;
        // SAFETY: the pointer and length describe `groups`, exclusively borrowed; any integers may be written
        // to it.
        let got = check(unsafe {
            libc::getsockopt(
                fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut len,
            )
        });
        match got {
            Ok(_) => {
                groups.truncate(len as usize / size_of::<u32>());
                return Ok(groups);
            }
            // `len` says what is needed.
            Err(e) if e.raw_os_error() == Some(libc::ERANGE) && groups.len() < 1 << 16 => {
                groups.resize(len as usize / size_of::<u32>() + 1, 0);
            }
            Err(e) => return Err(e),
        }
    }
}

/// The effective user of this process.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: no memory is involved, and it cannot fail.
    unsafe { libc::geteuid() }
}

/// A name as the system wants it.
fn c_text(text: &std::ffi::OsStr) -> io::Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(text.as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

/// openat(2): opens or makes a file by its name in an open folder.
pub(crate) fn open_at(
    folder: BorrowedFd<'_>,
    name: &std::ffi::OsStr,
    flags: libc::c_int,
    mode: u32,
) -> io::Result<OwnedFd> {
    let name = c_text(name)?;
    // SAFETY: the name is a C string that lives through the call.
    let fd = check(unsafe {
        libc::openat(
            folder.as_raw_fd(),
            name.as_ptr(),
            flags | libc::O_CLOEXEC,
            mode as libc::c_uint,
        )
    })?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// renameat(2), within an open folder.
pub(crate) fn rename_in(
    folder: BorrowedFd<'_>,
    from: &std::ffi::OsStr,
    to: &std::ffi::OsStr,
) -> io::Result<()> {
    let (from, to) = (c_text(from)?, c_text(to)?);
    let at = folder.as_raw_fd();
    // SAFETY: both names are C strings that live through the call.
    check(unsafe { libc::renameat(at, from.as_ptr(), at, to.as_ptr()) }).map(drop)
}

/// unlinkat(2), of a file in an open folder.
pub(crate) fn remove_in(folder: BorrowedFd<'_>, name: &std::ffi::OsStr) -> io::Result<()> {
    let name = c_text(name)?;
    // SAFETY: the name is a C string that lives through the call.
    check(unsafe { libc::unlinkat(folder.as_raw_fd(), name.as_ptr(), 0) }).map(drop)
}

/// The whole of a file, as a lock of open file descriptions (fcntl(2), `F_OFD_SETLK`).
fn whole_file(kind: libc::c_int) -> libc::flock {
    // SAFETY: `flock` is integers: all zero is a valid value, and means the whole file.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock
}

/// Takes the write lock of an open file until it is closed; `false` if somebody has a lock on it. It can be
/// taken through a descriptor that may write alone: who may only read a file cannot have it.
pub(crate) fn lock_for_writing(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let lock = whole_file(libc::F_WRLCK);
    // SAFETY: the pointer is to a local `flock` that lives through the call.
    match check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) }) {
        Ok(_) => Ok(true),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Whether somebody has the write lock of a file. Takes nothing: locks of readers are not seen and none is
/// made.
pub(crate) fn is_locked_for_writing(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut lock = whole_file(libc::F_RDLCK);
    // SAFETY: the pointer is to a local `flock`, exclusively borrowed, which the kernel fills with the lock
    // in the way or with F_UNLCK.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) })?;
    Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
}

/// The entry of the users' database for a number or a name: number and name.
pub(crate) fn user(wanted: Result<u32, &str>) -> Option<(u32, String)> {
    let name = CString::new(wanted.err().unwrap_or_default()).ok()?;
    let mut buffer = vec![0 as libc::c_char; 1 << 14];
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    let (to, room) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: all pointers are to locals with the stated room, or to a C string, that live through the call.
    let failed = unsafe {
        match wanted {
            Ok(uid) => libc::getpwuid_r(uid, entry.as_mut_ptr(), to, room, &raw mut found),
            Err(_) => libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), to, room, &raw mut found),
        }
    };
    if failed != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the call succeeded and found something, so that the entry is filled and its name a C string in
    // `buffer`, which lives.
    let (uid, name) = unsafe { ((*found).pw_uid, CStr::from_ptr((*found).pw_name)) };
    Some((uid, name.to_string_lossy().into_owned()))
}

/// The number of a group.
pub(crate) fn group(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let mut buffer = vec![0 as libc::c_char; 1 << 16];
    let mut entry = MaybeUninit::<libc::group>::uninit();
    let mut found = std::ptr::null_mut();
    let (to, room) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: all pointers are to locals with the stated room, or to a C string, that live through the call.
    let failed = unsafe { libc::getgrnam_r(name.as_ptr(), entry.as_mut_ptr(), to, room, &raw mut found) };
    if failed != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the call succeeded and found something, so that the entry is filled.
    Some(unsafe { (*found).gr_gid })
}

/// `timeval` of `SO_RCVTIMEO` in socket(7).
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct ReceiveTimeout {
    seconds: i64,
    micros: i64,
}
const _: () = assert!(size_of::<ReceiveTimeout>() == size_of::<libc::timeval>());
// SAFETY: two fields of eight bytes, so no padding; every bit pattern valid.
unsafe impl OptionValue for ReceiveTimeout {}

/// Makes a socket block, for everybody who shares it, for at most so long at a time.
pub(crate) fn block_for(fd: BorrowedFd<'_>, micros: i64) -> io::Result<()> {
    let timeout = ReceiveTimeout {
        seconds: micros / 1_000_000,
        micros: micros % 1_000_000,
    };
    set_option(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, timeout)?;
    // SAFETY: reading and setting flags of a descriptor touches no memory of ours.
    unsafe {
        let flags = check(libc::fcntl(fd.as_raw_fd(), libc::F_GETFL))?;
        check(libc::fcntl(
            fd.as_raw_fd(),
            libc::F_SETFL,
            flags & !libc::O_NONBLOCK,
        ))
        .map(drop)
    }
}

/// Bytes of a stream, or a datagram cut to the buffer.
#[inline]
pub(crate) fn receive(fd: BorrowedFd<'_>, buf: &mut [u8], flags: i32) -> io::Result<usize> {
    pass(Call::Receive)?;
    // SAFETY: pointer and length describe an exclusively borrowed buffer; no flag of ours writes more than
    // that.
    let len = unsafe { libc::recv(fd.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len(), flags) };
    if len < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(len as usize)
    }
}

/// An epoll instance that watches one descriptor for input.
pub(crate) fn epoll_of(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; a non-negative result is a new descriptor that nobody else owns.
    let epoll = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
    let mut event = libc::epoll_event {
        events: libc::EPOLLIN as u32,
        u64: 0,
    };
    // SAFETY: the pointer is to a local that lives through the call; both descriptors are open.
    let ret = unsafe {
        libc::epoll_ctl(
            epoll.as_raw_fd(),
            libc::EPOLL_CTL_ADD,
            fd.as_raw_fd(),
            &raw mut event,
        )
    };
    check(ret).map(|_| epoll)
}

/// Waits until the watched descriptor is ready or `timeout_ns` have passed; the number of events.
pub(crate) fn epoll_wait(epoll: BorrowedFd<'_>, timeout_ns: u64) -> io::Result<usize> {
    let timeout = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
    };
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: room for one event is given, in a local that outlives the call as the time does; the signal
    // mask may be null. Called by number, since older C libraries lack the function (epoll_pwait2(2), Linux
    // 5.11).
    let ready = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            &raw mut event,
            1,
            &raw const timeout,
            std::ptr::null::<libc::sigset_t>(),
            0,
        )
    };
    check(ready as libc::c_int).map(|n| n as usize)
}

/// Moves the calling thread into a network namespace.
pub(crate) fn enter_network_namespace(namespace: &std::fs::File) -> io::Result<()> {
    // SAFETY: no memory is involved; only what the thread opens from now on is different.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Has the calling thread take none of these signals while something is done: one that comes meanwhile is
/// delivered after it. Before there are other threads, which would take it at once.
pub(crate) fn with_signals_held<T>(signals: &[libc::c_int], does: impl FnOnce() -> T) -> io::Result<T> {
    // SAFETY: a set of signals is plain integers: all zero is a value of it.
    let (mut held, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: all pointers are to the two sets, which live longer than the calls; they change which signals
    // this thread takes, and no memory.
    unsafe {
        check(libc::sigemptyset(&raw mut held))?;
        for signal in signals {
            check(libc::sigaddset(&raw mut held, *signal))?;
        }
        let failed = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, &raw mut before);
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
    }
    let done = does();
    // SAFETY: as above; the set is what the call before has left.
    let failed = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    match failed {
        0 => Ok(done),
        _ => Err(io::Error::from_raw_os_error(failed)),
    }
}
