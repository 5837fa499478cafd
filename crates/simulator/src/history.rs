//! The day's messages of one channel in a file: what its memory has no room for, found by sequence number.
//!
//! ```text
//!  file:   block*                every 32,768 bytes; block n is in place n modulo the capacity
//!  block:  u64 sum of the rest   u64 number of its first message   u32 messages   u32 bytes of them   (little-endian)
//!          each message: u16 length (big-endian), bytes
//! ```
//! Messages come together in memory and are written a whole block at a time, between two turns of the
//! exchange's loop, by the same thread as the journal. There is no index: first numbers ascend from block to
//! block, so that a message is found by looking at the heads of some twenty blocks of the largest file, and
//! the block that was read last is kept. Memory is two blocks, and those that wait.
//!
//! The file is made anew from the journal or goes on behind a snapshot of it; alone it means nothing, and a
//! block whose sum is wrong is not there.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tickwire_console::failure::Failure;
use tickwire_console::warn;
use tickwire_exchange::History;
use tickwire_market::{Nanos, SeqNo};
use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader, persist};
use tickwire_runtime::clock::monotonic;
use tickwire_runtime::files;

/// Bytes of a block.
pub const BLOCK: usize = 1 << 15;
/// What a block begins with: sum, first number, messages, bytes of them.
const HEAD: usize = 24;
/// Blocks that wait to be written, at most: when a disk takes none, the oldest are given up.
const WAITING_MAX: usize = 64;

/// How long after a failure it is tried again.
const RETRY_NS: u64 = 100 * Nanos::MILLI;

/// A block in memory, with room for its head.
#[derive(Clone)]
struct Block {
    first: u64,
    count: u32,
    bytes: Vec<u8>,
}

/// See the module's description.
pub struct HistoryFile {
    path: PathBuf,
    file: File,
    /// The most blocks that the file has at once; the oldest give way.
    capacity: u64,
    /// The oldest block that is there, and the next to be written.
    oldest: u64,
    next: u64,
    /// Complete blocks that are not written yet.
    waiting: VecDeque<Block>,
    /// What is being filled.
    open: Block,
    /// The block that was read last.
    read: RefCell<Option<(u64, Block)>>,
    /// Messages that could not be written.
    lost: u64,
    is_failing: bool,
    /// Before that it is not tried again.
    retry_at: Nanos,
}

impl Block {
    fn empty(first: u64) -> Block {
        let mut bytes = Vec::with_capacity(BLOCK);
        bytes.resize(HEAD, 0);
        Block {
            first,
            count: 0,
            bytes,
        }
    }

    fn end(&self) -> u64 {
        self.first + u64::from(self.count)
    }

    fn push(&mut self, message: &[u8]) {
        self.bytes
            .extend_from_slice(&(message.len() as u16).to_be_bytes());
        self.bytes.extend_from_slice(message);
        self.count += 1;
    }

    fn get(&self, seq: u64) -> Option<Vec<u8>> {
        let mut at = HEAD;
        for number in self.first..self.end() {
            let length = u16::from_be_bytes([*self.bytes.get(at)?, *self.bytes.get(at + 1)?]) as usize;
            if number == seq {
                return self.bytes.get(at + 2..at + 2 + length).map(<[u8]>::to_vec);
            }
            at += 2 + length;
        }
        None
    }

    /// Its bytes as they are in the file.
    fn seal(&mut self) -> &[u8] {
        let used = (self.bytes.len() - HEAD) as u32;
        self.bytes[8..16].copy_from_slice(&self.first.to_le_bytes());
        self.bytes[16..20].copy_from_slice(&self.count.to_le_bytes());
        self.bytes[20..24].copy_from_slice(&used.to_le_bytes());
        let sum = sum(&self.bytes[8..]);
        self.bytes[..8].copy_from_slice(&sum.to_le_bytes());
        &self.bytes
    }

    /// A block from the bytes of its place; `None` if they are not whole.
    fn of_bytes(mut bytes: Vec<u8>) -> Option<Block> {
        let first = u64::from_le_bytes(*bytes.get(8..)?.first_chunk()?);
        let count = u32::from_le_bytes(*bytes.get(16..)?.first_chunk()?);
        let used = u32::from_le_bytes(*bytes.get(20..)?.first_chunk()?) as usize;
        if HEAD + used > bytes.len() {
            return None;
        }
        bytes.truncate(HEAD + used);
        let is_whole = sum(&bytes[8..]).to_le_bytes() == bytes[..8];
        is_whole.then_some(Block { first, count, bytes })
    }
}

/// Tells torn from whole, not friend from foe.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(23);
    let start = step(0xCBF2_9CE4_8422_2325, bytes.len() as u64);
    bytes.chunks(8).fold(start, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        step(hash, u64::from_le_bytes(word))
    })
}

impl HistoryFile {
    /// An empty history in a file, which is made, or written over unless a state is loaded; at most
    /// `bytes_max` long, two blocks at least.
    ///
    /// # Errors
    /// It is in use, another's, a link; what the system says.
    pub fn create(path: &Path, bytes_max: u64) -> Result<HistoryFile, Failure> {
        // Whoever has the journal's lock is the one who writes here.
        let file = files::open_or_create(path)
            .map_err(|e| Failure::system(format!("history {}: opening it failed: {e}", path.display())))?;
        Ok(HistoryFile {
            path: path.to_path_buf(),
            file,
            capacity: (bytes_max / BLOCK as u64).max(2),
            oldest: 0,
            next: 0,
            waiting: VecDeque::new(),
            open: Block::empty(1),
            read: RefCell::new(None),
            lost: 0,
            is_failing: false,
            retry_at: Nanos::ZERO,
        })
    }

    fn place(&self, block: u64) -> u64 {
        block % self.capacity * BLOCK as u64
    }

    /// The number of a block's first message, by its head alone.
    fn first_of(&self, block: u64) -> Option<u64> {
        let mut head = [0; 8];
        self.file.read_exact_at(&mut head, self.place(block) + 8).ok()?;
        Some(u64::from_le_bytes(head))
    }

    /// The block of the file in which a message is, if it is in the file.
    fn find(&self, seq: u64) -> Option<u64> {
        if let Some((at, block)) = &*self.read.borrow()
            && (block.first..block.end()).contains(&seq)
            && *at >= self.oldest
        {
            return Some(*at);
        }
        let (mut low, mut high) = (self.oldest, self.next);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.first_of(middle)? <= seq {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low.checked_sub(1).filter(|block| *block >= self.oldest)
    }

    /// Does something with a block of the file.
    fn with<T>(&self, at: u64, then: impl FnOnce(&Block) -> Option<T>) -> Option<T> {
        let mut read = self.read.borrow_mut();
        if read.as_ref().is_none_or(|(number, _)| *number != at) {
            *read = None;
            let mut bytes = vec![0; BLOCK];
            let mut got = 0;
            // The last block of the file ends with its last message.
            while got < BLOCK {
                match self.file.read_at(&mut bytes[got..], self.place(at) + got as u64) {
                    Ok(0) => break,
                    Ok(length) => got += length,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => return None,
                }
            }
            bytes.truncate(got);
            *read = Some((at, Block::of_bytes(bytes)?));
        }
        read.as_ref().and_then(|(_, block)| then(block))
    }

    /// Blocks in memory, those that wait and the one being filled.
    fn in_memory(&self) -> impl Iterator<Item = &Block> {
        self.waiting.iter().chain([&self.open])
    }

    fn complete(&mut self) {
        let next = self.open.end();
        let full = std::mem::replace(&mut self.open, Block::empty(next));
        if full.count > 0 {
            self.waiting.push_back(full);
        }
        if self.waiting.len() > WAITING_MAX
            && let Some(lost) = self.waiting.pop_front()
        {
            self.lost += u64::from(lost.count);
        }
    }
}

persist!(value struct Block { first, count, bytes });

/// Where it stands, and what is not in the file yet.
impl Persist for HistoryFile {
    fn save(&self, out: &mut Bytes) {
        (self.capacity, self.oldest, self.next).save(out);
        self.waiting.save(out);
        self.open.save(out);
        self.lost.save(out);
    }

    /// A file that is shorter or has another bound is given up, and so are its messages: it goes on behind
    /// them.
    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        let (capacity, oldest, next) = <(u64, u64, u64)>::read(from)?;
        let waiting = PersistValue::read(from)?;
        let open: Block = PersistValue::read(from)?;
        let lost = u64::read(from)?;
        self.clear();
        (self.open, self.lost) = (open, lost);
        self.waiting = waiting;
        let used = next.min(capacity) * BLOCK as u64;
        let length = self.file.metadata().map_or(0, |data| data.len());
        // The last block ends with its last message.
        if capacity == self.capacity && length + BLOCK as u64 > used {
            (self.oldest, self.next) = (oldest, next);
        }
        Ok(())
    }
}

impl History for HistoryFile {
    fn keep(&mut self, seq: SeqNo, message: &[u8]) {
        let need = 2 + message.len();
        if self.open.bytes.len() + need > BLOCK || seq.0 != self.open.end() {
            self.complete();
            self.open.first = seq.0;
        }
        if HEAD + need > BLOCK {
            // No protocol here has one so long.
            self.lost += 1;
            self.open.first = seq.0 + 1;
            return;
        }
        self.open.push(message);
    }

    fn kept_from(&self, seq: SeqNo) -> Option<SeqNo> {
        let mut candidates = self.in_memory().filter(|block| block.end() > seq.0);
        let in_memory = candidates.next().map(|block| SeqNo(block.first.max(seq.0)));
        let at = self.find(seq.0).unwrap_or(self.oldest);
        // A block that is not whole is passed over, as if it had not been written; all of them are not looked
        // at.
        let mut blocks = (at..self.next.min(at + 4)).filter_map(|at| {
            let from = |block: &Block| (block.end() > seq.0).then(|| SeqNo(block.first.max(seq.0)));
            self.with(at, from)
        });
        blocks.next().or(in_memory)
    }

    fn get(&self, seq: SeqNo) -> Option<Vec<u8>> {
        let is_in = |block: &&Block| (block.first..block.end()).contains(&seq.0);
        if let Some(block) = self.in_memory().find(is_in) {
            return block.get(seq.0);
        }
        let at = self.find(seq.0)?;
        self.with(at, |block| block.get(seq.0))
    }

    fn lost(&self) -> u64 {
        self.lost
    }

    /// What is in the file is written over.
    fn clear(&mut self) {
        (self.oldest, self.next, self.lost) = (0, 0, 0);
        self.waiting.clear();
        self.open = Block::empty(1);
        self.read.replace(None);
    }

    fn write(&mut self) {
        if self.waiting.is_empty() || (self.is_failing && monotonic() < self.retry_at) {
            return;
        }
        while let Some(mut block) = self.waiting.pop_front() {
            let place = self.place(self.next);
            if self.next - self.oldest == self.capacity {
                self.oldest += 1;
            }
            if self
                .read
                .borrow()
                .as_ref()
                .is_some_and(|(at, _)| *at < self.oldest)
            {
                self.read.replace(None);
            }
            match self.file.write_all_at(block.seal(), place) {
                Ok(()) => {
                    self.next += 1;
                    if std::mem::take(&mut self.is_failing) {
                        warn(format_args!(
                            "history {} is written again; {} messages of it are lost and are not sent again from it",
                            self.path.display(),
                            self.lost
                        ));
                    }
                }
                Err(e) => {
                    if !std::mem::replace(&mut self.is_failing, true) {
                        warn(format_args!(
                            "history {} could not be written: {e}; the exchange goes on, and requests for messages that are neither there nor in \
                             memory are answered as for those that are not kept; make room, it is tried again",
                            self.path.display()
                        ));
                    }
                    self.retry_at = monotonic().after(RETRY_NS);
                    // It waits for the next turn; those that no longer find room to wait are lost.
                    self.waiting.push_front(block);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
