//! How a loop waits for input: spinning, which is fastest and needs a core of its own, or sleeping in `poll`.

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use crate::sys;
use crate::trouble::Trouble;

/// How long [`Waiter::wait`] sleeps instead where the kernel cannot wait for sockets at the moment.
const BLIND_NS: u64 = 1_000_000;

/// How to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WaitStrategy {
    /// Never sleep: look at every socket again and again. Needs a core that nobody else wants.
    Spin,
    /// Sleep until a socket has input or the time has come. Right when cores are shared. A wake-up was
    /// measured at 2 to 10 µs more than spinning on a virtual machine.
    #[default]
    Poll,
}

impl WaitStrategy {
    /// Spin where every one of `threads` spinning threads can have a core of its own, else sleep.
    pub fn for_threads(threads: usize) -> WaitStrategy {
        if crate::affinity::Cores::count().parallelism() >= threads.max(2) {
            WaitStrategy::Spin
        } else {
            WaitStrategy::Poll
        }
    }
}

/// Which descriptor of a [`Waiter`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch(usize);

/// Waits for input on several descriptors. Allocates only in [`Waiter::watch`].
#[derive(Debug, Default)]
pub struct Waiter {
    strategy: WaitStrategy,
    fds: Vec<libc::pollfd>,
    errors: u64,
}

impl Waiter {
    /// A waiter that watches nothing yet.
    pub fn new(strategy: WaitStrategy) -> Waiter {
        Waiter {
            strategy,
            fds: Vec::with_capacity(16),
            errors: 0,
        }
    }

    /// How it waits.
    pub fn strategy(&self) -> WaitStrategy {
        self.strategy
    }

    /// Watches a socket for input. Call [`Waiter::forget`] before closing it, lest its number be given to
    /// another file.
    pub fn watch(&mut self, socket: &impl AsFd) -> Watch {
        let entry = sys::poll_input(socket.as_fd().as_raw_fd());
        match self.fds.iter().position(|fd| fd.fd < 0) {
            Some(free) => {
                self.fds[free] = entry;
                Watch(free)
            }
            None => {
                self.fds.push(entry);
                Watch(self.fds.len() - 1)
            }
        }
    }

    /// Watches it no longer.
    pub fn forget(&mut self, watch: Watch) {
        self.fds[watch.0] = sys::poll_input(-1); // poll(2) passes over negative descriptors
    }

    /// Also wakes up when the socket can take output, or no longer does so.
    pub fn want_output(&mut self, watch: Watch, wanted: bool) {
        self.fds[watch.0].events = if wanted {
            libc::POLLIN | libc::POLLOUT
        } else {
            libc::POLLIN
        };
    }

    /// Waits until there may be input, but not longer than `timeout_ns`. When spinning it returns at once and
    /// `true`: look everywhere. When sleeping, `false` means that the time was up or a signal came, and
    /// [`Waiter::is_ready`] tells where to look.
    ///
    /// Never fails: where the kernel cannot wait for sockets at the moment (no memory, more descriptors than
    /// the process may have), it sleeps for a millisecond at most and every socket counts as ready, so that
    /// all are looked at. [`Waiter::errors`] counts that.
    #[inline]
    pub fn wait(&mut self, timeout_ns: u64) -> bool {
        match self.strategy {
            WaitStrategy::Spin => {
                std::hint::spin_loop();
                true
            }
            WaitStrategy::Poll => self.sleep(timeout_ns),
        }
    }

    /// Sleeps until a socket has input, but not longer than `timeout_ns`, whichever way it waits otherwise:
    /// for a loop that has nothing to do for a while.
    pub fn sleep(&mut self, timeout_ns: u64) -> bool {
        match sys::poll(&mut self.fds, Some(timeout_ns)) {
            Ok(ready) => ready > 0,
            Err(error) if Trouble::of(&error) == Trouble::WouldBlock => {
                self.fds.iter_mut().for_each(|fd| fd.revents = 0);
                false
            }
            Err(_) => {
                self.errors += 1;
                self.fds.iter_mut().for_each(|fd| fd.revents = libc::POLLIN);
                std::thread::sleep(Duration::from_nanos(timeout_ns.min(BLIND_NS)));
                true
            }
        }
    }

    /// How often the kernel could not wait.
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// Whether the last [`Waiter::wait`] found input, an error or an end on this descriptor. Always `true`
    /// when spinning.
    #[inline]
    pub fn is_ready(&self, watch: Watch) -> bool {
        self.strategy == WaitStrategy::Spin || self.fds[watch.0].revents != 0
    }
}
