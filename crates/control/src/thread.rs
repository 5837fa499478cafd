//! The control socket of a program whose main thread trades: served by a thread of its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tickwire_runtime::wait::{WaitStrategy, Waiter};

use crate::access::AccessSection;
use crate::socket::{Answer, ControlSocket};
use tickwire_console::failure::Failure;

/// How often the thread looks whether the run has ended.
const LOOK_NS: u64 = 50_000_000;

/// See the module's description.
pub struct ControlThread {
    thread: JoinHandle<()>,
    ends: Arc<AtomicBool>,
}

impl ControlThread {
    /// Listens in a folder, which is made if it is not there.
    pub fn open(
        folder: &Path,
        access: &AccessSection,
        mut desk: impl Answer + Send + 'static,
    ) -> Result<ControlThread, Failure> {
        let mut waiter = Waiter::new(WaitStrategy::Poll);
        let mut socket = ControlSocket::open(folder, access, &mut waiter)?;
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = ends.clone();
        let thread = tickwire_runtime::affinity::beside("control", move || {
            while !is_over.load(Ordering::Relaxed) {
                socket.serve(&mut waiter, &mut desk);
                waiter.wait(LOOK_NS);
            }
        })
        .map_err(|e| Failure::system(format!("cannot start the control thread: {e}")))?;
        Ok(ControlThread { thread, ends })
    }

    /// Closes the socket.
    pub fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}
