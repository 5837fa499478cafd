//! What a running quoter or exchange tells the terminal, written by a thread of its own: a terminal that is stopped, or a pipe that nobody
//! reads, must not stop the thread that quotes or trades.

use std::sync::mpsc::{SyncSender, sync_channel};

use crate::failure::Failure;
use crate::queue::warn;

/// Lines on their way; with more, the newest are lost.
const WAITING_MAX: usize = 256;

/// The way to it. The thread ends when this goes.
pub struct Notes(SyncSender<String>);

impl Notes {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start() -> Result<Notes, Failure> {
        let (to, lines) = sync_channel::<String>(WAITING_MAX);
        std::thread::Builder::new()
            .name("notes".into())
            .spawn(move || {
                for line in lines {
                    warn(format_args!("{line}"));
                }
            })
            .map_err(|e| Failure::system(format!("cannot start the thread that writes notes: {e}")))?;
        Ok(Notes(to))
    }

    /// A line for standard error; never waits.
    pub fn say(&self, line: String) {
        let _ = self.0.try_send(line);
    }
}
