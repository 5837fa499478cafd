//! One socket and one way of waiting for what comes: busy spin, blocking, `poll`, `epoll` or io_uring, behind
//! the same call. For loops with a single source of input, and for measuring what each way costs; loops with
//! several use [`crate::wait`].

use std::fmt;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};

use crate::clock::tsc;
use crate::sys;
use crate::trouble::Trouble;
use crate::udp::control_stamp;

/// Waits until the kernel stamps what TCP receives, at most `patience`; whether it does. It begins some time
/// after the first socket has asked, from a worker thread that may wait for a core; what comes before has no
/// stamp. To be called with such a socket open.
///
/// # Errors
/// Loopback cannot be used here.
pub fn await_receive_stamps(patience: Duration) -> io::Result<bool> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    let mut inbox = Inbox::open(&far, Backend::Poll, true)?;
    let began = Instant::now();
    loop {
        near.write_all(b"?")?;
        match inbox.recv(1_000_000)? {
            Input::Bytes {
                kernel_ns: Some(_), ..
            } => return Ok(true),
            _ if began.elapsed() > patience => return Ok(false),
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// A way of waiting and receiving.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Backend {
    /// `recv` again and again, never asleep: needs a core of its own.
    Spin,
    /// A `recv` that sleeps until something comes.
    Block,
    /// The same with `SO_BUSY_POLL`: the kernel looks at the network card's queue for 50 µs before it sleeps.
    /// Where the card's driver has no such queue (loopback, veth) it sleeps at once; [`Inbox::remark`] says
    /// so.
    BusyPoll,
    /// `ppoll`, then `recv`.
    Poll,
    /// `epoll_pwait2`, then `recv`.
    Epoll,
    /// io_uring, one thread, deferred task work: one system call arms the next receive and sleeps until it is
    /// done.
    IoUring,
    /// The same, looking again and again instead of sleeping.
    IoUringSpin,
}

impl Backend {
    /// Every one.
    pub const ALL: [Backend; 7] = [
        Backend::Spin,
        Backend::Block,
        Backend::BusyPoll,
        Backend::Poll,
        Backend::Epoll,
        Backend::IoUring,
        Backend::IoUringSpin,
    ];

    /// Its name in configurations and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Spin => "spin",
            Backend::Block => "block",
            Backend::BusyPoll => "busy-poll",
            Backend::Poll => "poll",
            Backend::Epoll => "epoll",
            Backend::IoUring => "io-uring",
            Backend::IoUringSpin => "io-uring-spin",
        }
    }

    /// The one of that name.
    pub fn by_name(name: &str) -> Option<Backend> {
        Backend::ALL.into_iter().find(|backend| backend.name() == name)
    }

    /// Whether it never sleeps.
    pub const fn spins(self) -> bool {
        matches!(self, Backend::Spin | Backend::IoUringSpin)
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What [`Inbox::recv`] gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input<'b> {
    /// A datagram, or some bytes of a stream.
    Bytes {
        /// Them; only the beginning of a datagram larger than the buffer.
        bytes: &'b [u8],
        /// The counter right after the receive call returned.
        tsc: u64,
        /// When the kernel received it (of a stream: its last segment), nanoseconds of `CLOCK_REALTIME`;
        /// `None` unless asked for.
        kernel_ns: Option<NonZeroU64>,
    },
    /// Nothing came in time.
    Nothing,
    /// The other side of a stream closed or reset it.
    Closed,
}

/// Bytes taken by one receive at most.
const BUFFER_BYTES: usize = 2_048;
/// How long [`Backend::Block`] sleeps at most: the kernel counts this time in timer ticks, so that a finer
/// one would not be kept.
const BLOCK_US: i64 = 50_000;
/// How long [`Backend::BusyPoll`] looks at the card's queue, microseconds.
const BUSY_POLL_US: i32 = 50;

/// A socket and the way of waiting for it.
#[derive(Debug)]
pub struct Inbox {
    socket: OwnedFd,
    backend: Backend,
    stream: bool,
    stamped: bool,
    buffer: Box<[u8]>,
    epoll: Option<OwnedFd>,
    ring: Option<Ring>,
    remark: Option<String>,
}

impl Inbox {
    /// Takes input of a socket from now on; the caller keeps the socket for sending. Call it on the thread
    /// that will receive: an io_uring belongs to one. With [`Backend::Block`] and [`Backend::BusyPoll`] the
    /// socket blocks from now on, for everybody. With `stamped` the kernel's receive times are asked for (not
    /// by io_uring, which has no room for them here).
    ///
    /// # Errors
    /// What the kernel says; `Unsupported` for io_uring where it is missing or forbidden.
    pub fn open(socket: &impl AsFd, backend: Backend, stamped: bool) -> io::Result<Inbox> {
        let socket = socket.as_fd().try_clone_to_owned()?;
        let kind: i32 = sys::get_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TYPE)?;
        let mut inbox = Inbox {
            stream: kind == libc::SOCK_STREAM,
            stamped,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            epoll: None,
            ring: None,
            remark: None,
            backend,
            socket,
        };
        let fd = inbox.socket.as_fd();
        if stamped {
            sys::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        }
        match backend {
            Backend::Spin | Backend::Poll => {}
            Backend::Block => sys::block_for(fd, BLOCK_US)?,
            Backend::BusyPoll => {
                sys::block_for(fd, BLOCK_US)?;
                inbox.remark = Some(busy_poll(fd));
            }
            Backend::Epoll => inbox.epoll = Some(sys::epoll_of(fd)?),
            Backend::IoUring | Backend::IoUringSpin => inbox.ring = Some(Ring::new()?),
        }
        Ok(inbox)
    }

    /// Takes so many bytes by one receive at most, instead of 2,048; not by io_uring.
    #[must_use]
    pub fn room(mut self, bytes: usize) -> Inbox {
        self.buffer = vec![0; bytes.max(1)].into_boxed_slice();
        self
    }

    /// How it waits.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// What a reader of figures must know about this socket: that busy polling has no effect on it.
    pub fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    /// What came, waiting up to `timeout_ns`. Those that spin look once, whatever the time; those that block
    /// wait in steps of 50 ms. Allocates nothing.
    ///
    /// # Errors
    /// What the kernel says, but for signals.
    #[inline]
    pub fn recv(&mut self, timeout_ns: u64) -> io::Result<Input<'_>> {
        let flags = match self.backend {
            Backend::Spin => libc::MSG_DONTWAIT,
            Backend::Block | Backend::BusyPoll => 0,
            Backend::Poll => {
                let mut fds = [sys::poll_input(self.socket.as_raw_fd())];
                match none_if_interrupted(sys::poll(&mut fds, Some(timeout_ns)))? {
                    None | Some(0) => return Ok(Input::Nothing),
                    Some(_) => libc::MSG_DONTWAIT,
                }
            }
            Backend::Epoll => {
                let epoll = self.epoll.as_ref().expect("made with it").as_fd();
                match none_if_interrupted(sys::epoll_wait(epoll, timeout_ns))? {
                    None | Some(0) => return Ok(Input::Nothing),
                    Some(_) => libc::MSG_DONTWAIT,
                }
            }
            Backend::IoUring | Backend::IoUringSpin => {
                let ring = self.ring.as_mut().expect("made with it");
                let sleep = (self.backend == Backend::IoUring).then_some(timeout_ns);
                let done = ring.recv(self.socket.as_fd(), &mut self.buffer, sleep);
                return self.received(done, None);
            }
        };
        if self.stamped {
            let mut control = sys::ControlBuffer([0; 128]);
            let header = sys::receive_message(self.socket.as_fd(), &mut self.buffer, &mut control, flags);
            let stamp = match &header {
                Ok(header) => control_stamp(&control.0[..header.control_len]),
                Err(_) => None,
            };
            return self.received(header.map(|header| header.len), stamp);
        }
        let done = sys::receive(self.socket.as_fd(), &mut self.buffer, flags);
        self.received(done, None)
    }

    #[inline]
    fn received(&self, done: io::Result<usize>, kernel_ns: Option<NonZeroU64>) -> io::Result<Input<'_>> {
        let now = tsc();
        match done {
            Ok(0) if self.stream => Ok(Input::Closed),
            Ok(len) => Ok(Input::Bytes {
                bytes: &self.buffer[..len.min(self.buffer.len())],
                tsc: now,
                kernel_ns,
            }),
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ETIME) => Ok(Input::Nothing),
                Some(libc::ECONNREFUSED) if !self.stream => Ok(Input::Nothing),
                Some(libc::ECONNRESET | libc::EPIPE) if self.stream => Ok(Input::Closed),
                _ => Err(error),
            },
        }
    }
}

/// Asks for busy polling; what came of it.
fn busy_poll(fd: BorrowedFd<'_>) -> String {
    // linux/socket.h; SO_PREFER_BUSY_POLL and its budget are missing in `libc`.
    const SO_PREFER_BUSY_POLL: i32 = 69;
    const SO_INCOMING_NAPI_ID: i32 = 56;
    let level = libc::SOL_SOCKET;
    let asked = sys::set_option(fd, level, libc::SO_BUSY_POLL, BUSY_POLL_US)
        .and_then(|()| sys::set_option(fd, level, SO_PREFER_BUSY_POLL, 1));
    if let Err(error) = asked {
        return format!(
            "busy polling is refused ({error}): it needs CAP_NET_ADMIN; the socket sleeps at once"
        );
    }
    match sys::get_option::<i32>(fd, level, SO_INCOMING_NAPI_ID) {
        Ok(id) if id > 0 => format!("busy polling for {BUSY_POLL_US} µs on queue {id}"),
        _ => format!(
            "busy polling for {BUSY_POLL_US} µs is accepted, but no queue of a network card is behind the socket yet: on loopback and \
             veth it has no effect"
        ),
    }
}

/// `None` for an interruption by a signal.
fn none_if_interrupted<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if Trouble::of(&error) == Trouble::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// An io_uring with at most one receive under way.
struct Ring {
    ring: IoUring,
    /// A receive was handed to the kernel, which writes into the buffer until it is done.
    armed: bool,
    /// The kernel's buffer while `armed`: a box of its own, so that it stays where it is.
    landing: Box<[u8; BUFFER_BYTES]>,
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("armed", &self.armed)
            .finish_non_exhaustive()
    }
}

/// What the receive's completion is known by, and its cancellation's.
const RECEIVE: u64 = 1;
const CANCEL: u64 = 2;

impl Ring {
    fn new() -> io::Result<Ring> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(4)
            .map_err(|error| {
                let why = format!("io_uring with deferred task work is not to be had ({error}): it needs Linux 6.1 and kernel.io_uring_disabled=0");
                io::Error::new(io::ErrorKind::Unsupported, why)
            })?;
        Ok(Ring {
            ring,
            armed: false,
            landing: Box::new([0; BUFFER_BYTES]),
        })
    }

    /// Arms a receive unless one is under way, waits (`None`: looks once), and copies what came.
    fn recv(&mut self, fd: BorrowedFd<'_>, out: &mut [u8], sleep: Option<u64>) -> io::Result<usize> {
        let fresh = !self.armed;
        if fresh {
            let (at, room) = (self.landing.as_mut_ptr(), BUFFER_BYTES as u32);
            let entry = opcode::Recv::new(types::Fd(fd.as_raw_fd()), at, room)
                .build()
                .user_data(RECEIVE);
            // SAFETY: the entry's pointer and length describe `landing`, which is boxed, is written by the
            // kernel only while `armed`, is not read then, and is not freed before the receive has ended
            // (`drop` waits for that or leaks it).
            unsafe { self.ring.submission().push(&entry) }.expect("the queue was empty");
            self.armed = true;
        }
        let submitter = self.ring.submitter();
        match sleep {
            Some(ns) => {
                let span = types::Timespec::new()
                    .sec(ns / 1_000_000_000)
                    .nsec((ns % 1_000_000_000) as u32);
                submitter.submit_with_args(1, &types::SubmitArgs::new().timespec(&span))?;
            }
            None => {
                const GET_EVENTS: u32 = 1; // IORING_ENTER_GETEVENTS: runs the deferred work
                // SAFETY: no signal mask is passed, so no memory of ours is read; at most the one entry
                // pushed above is submitted.
                unsafe { submitter.enter::<libc::sigset_t>(u32::from(fresh), 0, GET_EVENTS, None)? };
            }
        }
        let Some(done) = self.ring.completion().next() else {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        };
        self.armed = false;
        match done.result() {
            error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
            len => {
                let len = (len as usize).min(BUFFER_BYTES);
                out[..len].copy_from_slice(&self.landing[..len]);
                Ok(len)
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let cancel = opcode::AsyncCancel::new(RECEIVE).build().user_data(CANCEL);
        // SAFETY: the entry names a request by its number and holds no pointer.
        let pushed = unsafe { self.ring.submission().push(&cancel) };
        let ended = pushed.is_ok()
            && self.ring.submit_and_wait(2).is_ok()
            && self.ring.completion().any(|done| done.user_data() == RECEIVE);
        if !ended {
            // The kernel may still write there.
            std::mem::forget(std::mem::replace(&mut self.landing, Box::new([0; BUFFER_BYTES])));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    const SECOND: u64 = 1_000_000_000;

    /// The next input, for back ends that look once too.
    fn next(inbox: &mut Inbox) -> Option<Vec<u8>> {
        for _ in 0..2_000_000 {
            match inbox.recv(SECOND).expect("receives") {
                Input::Bytes { bytes, .. } => return Some(bytes.to_vec()),
                Input::Nothing => std::thread::yield_now(),
                Input::Closed => return None,
            }
        }
        panic!("nothing came");
    }

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let near = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        (near, listener.accept().expect("accepted").0)
    }

    #[test]
    fn every_back_end_receives_datagrams_whole_and_in_order() {
        for backend in Backend::ALL {
            let receiver = UdpSocket::bind("127.0.0.1:0").expect("bound");
            let sender = UdpSocket::bind("127.0.0.1:0").expect("bound");
            let to = receiver.local_addr().expect("an address");
            let mut inbox = Inbox::open(&receiver, backend, false).expect("opened");
            assert_eq!(inbox.recv(1_000).expect("receives"), Input::Nothing, "{backend}");
            for i in 0..3u8 {
                sender.send_to(&[i; 100], to).expect("sent");
            }
            sender.send_to(&[], to).expect("sent");
            for i in 0..3u8 {
                assert_eq!(next(&mut inbox), Some(vec![i; 100]), "{backend}");
            }
            assert_eq!(
                next(&mut inbox),
                Some(vec![]),
                "{backend}: an empty datagram is no end"
            );
            assert_eq!(Backend::by_name(backend.name()), Some(backend));
        }
    }

    #[test]
    fn every_back_end_follows_a_stream_to_its_end() {
        for backend in Backend::ALL {
            let (mut near, far) = pair();
            let mut inbox = Inbox::open(&far, backend, false).expect("opened");
            near.write_all(b"first").expect("written");
            assert_eq!(next(&mut inbox).as_deref(), Some(&b"first"[..]), "{backend}");
            near.write_all(b"second").expect("written");
            assert_eq!(next(&mut inbox).as_deref(), Some(&b"second"[..]), "{backend}");
            drop(near);
            assert_eq!(next(&mut inbox), None, "{backend}");
        }
    }

    #[test]
    fn an_inbox_dropped_in_mid_wait_leaves_the_socket_to_others() {
        let (mut near, far) = pair();
        let mut inbox = Inbox::open(&far, Backend::IoUring, false).expect("opened");
        assert_eq!(inbox.recv(1_000).expect("receives"), Input::Nothing);
        drop(inbox);
        near.write_all(b"later").expect("written");
        let mut inbox = Inbox::open(&far, Backend::Poll, false).expect("opened");
        assert_eq!(next(&mut inbox).as_deref(), Some(&b"later"[..]));
    }
}
