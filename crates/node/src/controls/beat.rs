//! The beat: words in shared memory that a trading thread counts up with every turn of its loop, and that
//! `tickwire watchdog` reads. A thread that stands still (stopped, swapped out, hung) and a process that is
//! gone look the same: the count does not change.

use std::path::Path;
use std::sync::atomic::Ordering;

use tickwire_runtime::shared::{SharedMemory, SharedView};
use tickwire_shm::Word;

use super::ControlsSection;
use tickwire_console::failure::Failure;

/// "TWBEAT" and the version of this layout.
const MAGIC: u64 = u64::from_le_bytes(*b"TWBEAT\x01\0");
/// A page: nothing less can be mapped.
const BYTES: usize = 4096;
/// Places of the words.
const AT_MAGIC: usize = 0;
const AT_TURNS: usize = 1;
const AT_END: usize = 2;
const AT_PROCESS: usize = 3;

/// Written by the trading thread.
pub struct Beat(SharedMemory);

impl Beat {
    /// The one that the configuration names, if it names one.
    pub fn open(section: &ControlsSection) -> Result<Option<Beat>, Failure> {
        section.beat.as_deref().map(Beat::create).transpose()
    }

    fn create(path: &Path) -> Result<Beat, Failure> {
        let failed = |e: tickwire_runtime::shared::SharedError| Failure::system(e.to_string());
        let memory = SharedMemory::create(path, BYTES).map_err(failed)?;
        memory.words()[AT_PROCESS].store(std::process::id().into(), Ordering::Relaxed);
        memory.words()[AT_MAGIC].store(MAGIC, Ordering::Relaxed);
        memory.publish().map_err(failed)?;
        Ok(Beat(memory))
    }

    /// A turn of the loop begins: one store.
    #[inline]
    pub fn turn(&self) {
        // One thread writes: a load and a store are enough. The count says nothing about any other word.
        let turns = &self.0.words()[AT_TURNS];
        turns.store(turns.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// The program ends, and has seen to it that nothing of it is open.
    pub fn end(&self) {
        self.0.words()[AT_END].store(1, Ordering::Relaxed);
    }
}

/// What a reader sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pulse {
    /// Turns of the loop so far. The count begins at 0 with every process.
    pub turns: u64,
    /// Number of the process that writes it.
    pub process: u64,
    /// It ended as it should: nothing of it is open.
    pub has_ended: bool,
}

/// Reads the beat of another process.
pub struct BeatView(SharedView);

impl BeatView {
    /// The file that is at a path now; `None` while there is none, or none of these.
    pub fn open(path: &Path) -> Option<BeatView> {
        let view = SharedView::open(path).ok()?;
        let is_beat = view.words().len() > AT_PROCESS && view.words()[AT_MAGIC].load() == MAGIC;
        is_beat.then_some(BeatView(view))
    }

    /// As it is now.
    pub fn pulse(&self) -> Pulse {
        let word = |at: usize| self.0.words()[at].load();
        Pulse {
            turns: word(AT_TURNS),
            process: word(AT_PROCESS),
            has_ended: word(AT_END) != 0,
        }
    }

    /// Whether the process that writes it is there, stopped or not. Some system calls.
    pub fn is_alive(&self) -> bool {
        self.0.writer_is_alive()
    }

    /// Whether another process writes another one at its place.
    pub fn is_replaced(&self) -> bool {
        self.0.is_replaced()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_turns_the_end_and_that_the_writer_is_gone() {
        let folder = std::env::temp_dir().join(format!("tickwire-beat-{}", std::process::id()));
        let path = folder.join("beat");
        assert!(BeatView::open(&path).is_none());
        let beat = Beat::create(&path).unwrap();
        let view = BeatView::open(&path).unwrap();
        let before = view.pulse();
        beat.turn();
        beat.turn();
        assert_eq!(view.pulse().turns, before.turns + 2);
        assert!(!view.pulse().has_ended && view.is_alive() && !view.is_replaced());
        assert_eq!(view.pulse().process, u64::from(std::process::id()));
        beat.end();
        assert!(view.pulse().has_ended);
        drop(beat);
        assert!(!view.is_alive());
        let _other = Beat::create(&path).unwrap();
        assert!(view.is_replaced());
        std::fs::write(folder.join("junk"), vec![1; BYTES]).unwrap();
        assert!(BeatView::open(&folder.join("junk")).is_none());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
