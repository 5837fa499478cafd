//! Errors on demand, for tests: any `errno` from any socket call.
//!
//! Every socket call of this crate asks `pass` first. Only tests of this crate and builds with the feature
//! `faults`, which the dependencies of tests ask for and no shipped program has, contain more of it than a
//! constant.
//!
//! A test in the same thread says `inject`; a test of a whole program starts it with `TICKWIRE_FAULTS` naming
//! a file, which the program reads again and again: one line `every=N calls=send,receive errno=101`, where
//! `calls=all` is every call and `errno=all` each number in turn. Without the file, or with an empty one,
//! nothing fails. `step=SECONDS at=MONOTONIC` there sets the system's clock, as this program sees it, by so
//! much, at that time of `CLOCK_MONOTONIC` in nanoseconds: a clock is set for all programs of a machine at
//! once.

/// A socket call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Call {
    /// `socket`.
    Socket,
    /// `setsockopt` and `getsockopt`, but for memberships.
    Option,
    /// `bind` and `listen`.
    Bind,
    /// `setsockopt` for membership of a multicast group.
    Join,
    /// `connect`.
    Connect,
    /// `accept`.
    Accept,
    /// `recv`, `recvfrom`, `recvmsg` of datagrams.
    Receive,
    /// `send`, `sendto` of datagrams.
    Send,
    /// `read` of a connection.
    Read,
    /// `write` to a connection.
    Write,
    /// `poll`.
    Poll,
}

impl Call {
    /// Every one.
    pub const ALL: [Call; 11] = [
        Call::Socket,
        Call::Option,
        Call::Bind,
        Call::Join,
        Call::Connect,
        Call::Accept,
        Call::Receive,
        Call::Send,
        Call::Read,
        Call::Write,
        Call::Poll,
    ];
}

/// Linux numbers its errors from 1 to this (errno(3); `EHWPOISON`).
pub const ERRNO_MAX: i32 = 133;

#[cfg(any(test, feature = "faults"))]
pub use armed::{clear, inject, injected, step_wall};

#[cfg(any(test, feature = "faults"))]
pub(crate) use armed::{pass, wall_step};

/// By how much the system's clock was set on request: not at all.
#[cfg(not(any(test, feature = "faults")))]
#[inline(always)]
pub(crate) const fn wall_step() -> i64 {
    0
}

/// Whether the call may be made: always.
#[cfg(not(any(test, feature = "faults")))]
#[inline(always)]
pub(crate) const fn pass(_: Call) -> std::io::Result<()> {
    Ok(())
}

#[cfg(any(test, feature = "faults"))]
mod armed {
    use std::cell::Cell;
    use std::io;
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};
    use std::time::Duration;

    use super::{Call, ERRNO_MAX};

    thread_local! {
        /// What fails on this thread: call, error, how often.
        static LOCAL: Cell<Option<(Call, i32, u64)>> = const { Cell::new(None) };
    }

    thread_local! {
        /// By how much the system's clock was set, as this thread sees it.
        static STEP: Cell<i64> = const { Cell::new(0) };
    }

    /// Sets the system's clock by so many nanoseconds, as this thread sees it.
    pub fn step_wall(by_ns: i64) {
        STEP.set(STEP.get() + by_ns);
    }

    pub(crate) fn wall_step() -> i64 {
        let of_process = match *WATCHED.get_or_init(watch) {
            true if crate::clock::monotonic().0 >= STEP_AT.load(Ordering::Acquire) => {
                WALL_STEP.load(Ordering::Relaxed)
            }
            true => WALL_BEFORE.load(Ordering::Relaxed),
            false => 0,
        };
        STEP.get() + of_process
    }

    /// The same for the whole process.
    static WALL_STEP: AtomicI64 = AtomicI64::new(0);
    /// From when on, by `CLOCK_MONOTONIC`, and what it was before.
    static STEP_AT: AtomicU64 = AtomicU64::new(0);
    static WALL_BEFORE: AtomicI64 = AtomicI64::new(0);

    /// Makes the next `times` calls of a kind on this thread fail.
    pub fn inject(call: Call, errno: i32, times: u64) {
        LOCAL.set(Some((call, errno, times)));
    }

    /// Nothing fails on this thread any more; how many failures were left.
    pub fn clear() -> u64 {
        LOCAL.take().map_or(0, |(_, _, left)| left)
    }

    /// How many calls failed on request in this process, by `inject` or by the file.
    pub fn injected() -> u64 {
        INJECTED.load(Ordering::Relaxed)
    }

    static INJECTED: AtomicU64 = AtomicU64::new(0);
    /// Every so many-th call fails; 0: none. Lone numbers that publish nothing else, hence `Relaxed`, here
    /// and below.
    static EVERY: AtomicU64 = AtomicU64::new(0);
    /// Which calls, a bit each.
    static CALLS: AtomicU32 = AtomicU32::new(0);
    /// With which error; 0: each in turn.
    static ERRNO: AtomicI32 = AtomicI32::new(0);
    static MADE: AtomicU64 = AtomicU64::new(0);
    /// Whether there is a file to read.
    static WATCHED: OnceLock<bool> = OnceLock::new();

    /// Whether the call may be made.
    pub(crate) fn pass(call: Call) -> io::Result<()> {
        let errno = match LOCAL.get() {
            Some((wanted, errno, left @ 1..)) if wanted == call => {
                LOCAL.set(Some((wanted, errno, left - 1)));
                Some(errno)
            }
            _ if *WATCHED.get_or_init(watch) => of_file(call),
            _ => None,
        };
        match errno {
            Some(errno) => {
                INJECTED.fetch_add(1, Ordering::Relaxed);
                Err(io::Error::from_raw_os_error(errno))
            }
            None => Ok(()),
        }
    }

    fn of_file(call: Call) -> Option<i32> {
        let every = EVERY.load(Ordering::Relaxed);
        if every == 0 || CALLS.load(Ordering::Relaxed) & (1 << call as u8) == 0 {
            return None;
        }
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        if !made.is_multiple_of(every) {
            return None;
        }
        match ERRNO.load(Ordering::Relaxed) {
            0 => Some(1 + (made / every % ERRNO_MAX as u64) as i32),
            errno => Some(errno),
        }
    }

    fn watch() -> bool {
        let Some(file) = std::env::var_os("TICKWIRE_FAULTS").map(PathBuf::from) else {
            return false;
        };
        let read = move || {
            loop {
                let plan = std::fs::read_to_string(&file).unwrap_or_default();
                let (mut every, mut calls, mut errno, mut step, mut at) = (0, 0, 0, 0_i64, 0);
                for (key, value) in plan.split_whitespace().filter_map(|word| word.split_once('=')) {
                    match key {
                        "every" => every = value.parse().expect("every=N"),
                        "step" => step = value.parse().expect("step=SECONDS"),
                        "at" => at = value.parse().expect("at=NANOSECONDS"),
                        "errno" => errno = value.parse().unwrap_or(0),
                        _ => calls = calls_of(value),
                    }
                }
                CALLS.store(calls, Ordering::Relaxed);
                ERRNO.store(errno, Ordering::Relaxed);
                if at == 0 {
                    WALL_STEP.store(step * 1_000_000_000, Ordering::Relaxed);
                } else if STEP_AT.load(Ordering::Relaxed) != at {
                    WALL_BEFORE.store(WALL_STEP.load(Ordering::Relaxed), Ordering::Relaxed);
                    STEP_AT.store(u64::MAX, Ordering::Release);
                    WALL_STEP.store(step * 1_000_000_000, Ordering::Relaxed);
                    STEP_AT.store(at, Ordering::Release);
                }
                EVERY.store(every, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        crate::affinity::beside("faults", read).is_ok()
    }

    fn calls_of(names: &str) -> u32 {
        let bit = |call: &Call| {
            let name = format!("{call:?}").to_lowercase();
            let is_named = names == "all" || names.split(',').any(|n| n == name);
            u32::from(is_named) << *call as u8
        };
        Call::ALL.iter().map(bit).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};
    use std::time::Duration;

    use super::*;
    use crate::interface::Interface;
    use crate::tcp::{Received, TcpListener, TcpStream};
    use crate::trouble::Trouble;
    use crate::udp::{MulticastConfig, MulticastReceiver, MulticastSender, UdpEndpoint};

    const LOCAL: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 192, 91, 9), 0);

    /// At start-up every error is one, with the address in its sentence.
    #[test]
    fn what_cannot_be_opened_is_an_error_that_names_its_address() {
        let lo = Interface::find("lo").expect("every machine has it");
        let opens: [(&str, &dyn Fn() -> Option<crate::NetError>); 5] = [
            ("127.0.0.1", &|| UdpEndpoint::bind(LOCAL).err()),
            ("127.0.0.1", &|| TcpListener::bind(LOCAL.into()).err()),
            ("239.192.91.9", &|| {
                MulticastReceiver::join(MulticastConfig::new(GROUP, lo.clone())).err()
            }),
            ("239.192.91.9", &|| MulticastSender::open(GROUP, &lo, 0).err()),
            ("127.0.0.1", &|| {
                TcpStream::connect(LOCAL.into(), Duration::from_millis(1)).err()
            }),
        ];
        for errno in 1..=ERRNO_MAX {
            for (address, open) in opens {
                for call in [Call::Socket, Call::Bind, Call::Join, Call::Connect] {
                    inject(call, errno, 1);
                    let error = open();
                    let was_called = clear() == 0;
                    if was_called {
                        let says = error.expect("the call failed").to_string();
                        assert!(says.contains(address), "{call:?} {errno}: {says}");
                    }
                }
            }
        }
    }

    /// A connection lives on where the kernel is short of something, and ends, saying so, where the peer is
    /// gone.
    #[test]
    fn every_error_of_a_connection_is_nothing_an_end_or_an_error_and_never_loses_bytes() {
        let mut listener = TcpListener::bind(LOCAL.into()).expect("bound");
        let address = listener.local_addr().expect("bound");
        let mut near = TcpStream::connect(address, Duration::from_secs(5)).expect("connected");
        let mut far = loop {
            if let Some(far) = listener.accept().expect("works") {
                break far;
            }
        };
        let mut buffer = [0; 64];
        let mut sent = 0_u64;
        for errno in 1..=ERRNO_MAX {
            let lives = matches!(Trouble::of_number(errno), Trouble::WouldBlock | Trouble::Resource);
            inject(Call::Read, errno, 1);
            match near.recv(&mut buffer) {
                Ok(Received::Nothing) => assert!(lives, "{errno}"),
                Ok(Received::Closed) | Err(_) => assert!(!lives, "{errno}"),
                Ok(Received::Bytes(_)) => panic!("{errno}: nobody sent anything"),
            }
            inject(Call::Write, errno, 1);
            let outcome = near.send(b"x");
            assert_eq!(outcome.is_ok(), lives, "{errno}");
            assert_eq!(clear(), 0);
            assert!(near.flush().expect("nothing fails any more"));
            sent += u64::from(lives);
        }
        let mut got = 0;
        while got < sent {
            if let Received::Bytes(bytes) = far.recv(&mut buffer).expect("works") {
                got += bytes.len() as u64;
            }
        }
        assert_eq!(got, sent);
    }

    /// In a storm a waiter that cannot wait looks everywhere instead.
    #[test]
    fn a_waiter_that_cannot_wait_calls_every_socket_ready() {
        use crate::wait::{WaitStrategy, Waiter};
        let endpoint = UdpEndpoint::bind(LOCAL).expect("bound");
        let mut waiter = Waiter::new(WaitStrategy::Poll);
        let watch = waiter.watch(&endpoint);
        for errno in 1..=ERRNO_MAX {
            inject(Call::Poll, errno, 1);
            let is_error = Trouble::of_number(errno) != Trouble::WouldBlock;
            assert_eq!(waiter.wait(0), is_error, "{errno}");
            assert_eq!(waiter.is_ready(watch), is_error, "{errno}");
        }
        assert!(!waiter.wait(0) && !waiter.is_ready(watch));
    }
}
