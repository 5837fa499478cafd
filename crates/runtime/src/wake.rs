//! Waking a loop that waits in [`crate::wait::Waiter`] from another thread.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// The loop's end: watch it, and clear it after each wake-up.
#[derive(Debug)]
pub struct WakeUp(UnixStream);

/// The other threads' end.
#[derive(Clone, Debug)]
pub struct Waker(Arc<UnixStream>);

/// Both ends.
///
/// # Errors
/// The process has too many open files.
pub fn pair() -> io::Result<(Waker, WakeUp)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    Ok((Waker(Arc::new(theirs)), WakeUp(ours)))
}

impl WakeUp {
    /// Forgets the wake-ups so far. What the other threads did before them is seen after this.
    pub fn clear(&mut self) {
        let mut bytes = [0; 64];
        while self.0.read(&mut bytes).is_ok_and(|n| n == bytes.len()) {}
    }
}

impl AsFd for WakeUp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Waker {
    /// Wakes the loop, now or when it waits next.
    pub fn wake(&self) {
        // A full socket holds wake-ups enough; a closed one has nobody to wake.
        let _ = (&*self.0).write(&[1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::{WaitStrategy, Waiter};

    #[test]
    fn a_loop_that_sleeps_is_woken_once_for_any_number_of_calls() {
        let (waker, mut wake_up) = pair().unwrap();
        let mut waiter = Waiter::new(WaitStrategy::Poll);
        waiter.watch(&wake_up);
        let minute = 60_000_000_000;
        let other = waker.clone();
        let thread = std::thread::spawn(move || (0..10_000).for_each(|_| other.wake()));
        assert!(waiter.wait(minute));
        thread.join().unwrap();
        wake_up.clear();
        assert!(!waiter.wait(0));
    }
}
