//! Bounded buffers of a session: bytes in, bytes out, messages that came too early, events.

use alloc::boxed::Box;
use alloc::vec;

use tickwire_persist::{Damaged, Persist, PersistValue, StateReader, persist};

/// Bytes in arrival order in one piece of memory; moved to the front when the end is reached.
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    buf: Box<[u8]>,
    head: usize,
    tail: usize,
}

impl Bytes {
    pub(crate) fn new(capacity: usize) -> Bytes {
        Bytes {
            buf: vec![0; capacity].into_boxed_slice(),
            head: 0,
            tail: 0,
        }
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.buf.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.buf[self.head..self.tail]
    }

    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.buf.len() - (self.tail - self.head)
    }

    /// Takes as much of `bytes` as fits; how much.
    #[inline]
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.room());
        if self.tail + n > self.buf.len() {
            self.buf.copy_within(self.head..self.tail, 0);
            (self.head, self.tail) = (0, self.tail - self.head);
        }
        self.buf[self.tail..self.tail + n].copy_from_slice(&bytes[..n]);
        self.tail += n;
        n
    }

    /// Takes all of `bytes` or nothing; whether it did.
    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        let fits = bytes.len() <= self.room();
        if fits {
            self.fill(bytes);
        }
        fits
    }

    /// Drops bytes from the front.
    #[inline]
    pub(crate) fn consume(&mut self, n: usize) {
        self.head = (self.head + n).min(self.tail);
        if self.head == self.tail {
            (self.head, self.tail) = (0, 0);
        }
    }

    pub(crate) fn clear(&mut self) {
        (self.head, self.tail) = (0, 0);
    }
}

/// Messages received ahead of a gap, in ascending order of their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Early {
    bytes: Bytes,
    last: u64,
    /// Bytes of the message handed out, dropped by the next call.
    taken: usize,
}

/// Sequence number and length in front of each message.
const PREFIX: usize = 16;

impl Early {
    pub(crate) fn new(capacity: usize) -> Early {
        Early {
            bytes: Bytes::new(capacity),
            last: 0,
            taken: 0,
        }
    }

    /// Keeps a message, unless there is no room or one with its or a later number is kept: then it will be
    /// requested again.
    pub(crate) fn keep(&mut self, seq: u64, message: &[u8]) {
        self.drop_taken();
        if seq > self.last && PREFIX + message.len() <= self.bytes.room() {
            self.bytes.fill(&seq.to_le_bytes());
            self.bytes.fill(&(message.len() as u64).to_le_bytes());
            self.bytes.fill(message);
            self.last = seq;
        }
    }

    /// The message taken last, until the next call.
    pub(crate) fn taken(&self) -> &[u8] {
        self.bytes.as_slice().get(PREFIX..self.taken).unwrap_or_default()
    }

    /// The message with this number, once; all with lower numbers are dropped.
    #[inline]
    pub(crate) fn take(&mut self, seq: u64) -> Option<&[u8]> {
        if self.bytes.is_empty() {
            return None;
        }
        self.take_slow(seq)
    }

    #[cold]
    fn take_slow(&mut self, seq: u64) -> Option<&[u8]> {
        self.drop_taken();
        while let Some((first, len)) = self.front() {
            debug_assert!(first <= self.last, "a message kept behind the last one");
            if first > seq {
                return None;
            }
            if first == seq {
                self.taken = PREFIX + len;
                return self.bytes.as_slice().get(PREFIX..PREFIX + len);
            }
            self.bytes.consume(PREFIX + len);
        }
        self.last = 0;
        None
    }

    fn front(&self) -> Option<(u64, usize)> {
        let (words, _) = self.bytes.as_slice().as_chunks::<8>();
        match words {
            [seq, len, ..] => Some((u64::from_le_bytes(*seq), u64::from_le_bytes(*len) as usize)),
            _ => None,
        }
    }

    fn drop_taken(&mut self) {
        self.bytes.consume(core::mem::take(&mut self.taken));
        if self.bytes.is_empty() {
            self.last = 0;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        (self.last, self.taken) = (0, 0);
    }
}

/// First in, first out, of fixed capacity.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    slots: Box<[Option<T>]>,
    head: usize,
    len: usize,
}

impl<T: Copy> Ring<T> {
    pub(crate) fn new(capacity: usize) -> Ring<T> {
        Ring {
            slots: vec![None; capacity.next_power_of_two()].into_boxed_slice(),
            head: 0,
            len: 0,
        }
    }

    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.slots.len() - self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The caller has checked [`Ring::room`].
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        assert!(self.room() > 0, "room is checked before a message is processed");
        let mask = self.slots.len() - 1;
        self.slots[(self.head + self.len) & mask] = Some(item);
        self.len += 1;
    }

    /// The next one out.
    pub(crate) fn front(&self) -> Option<T> {
        match self.len {
            0 => None,
            _ => self.slots[self.head],
        }
    }

    pub(crate) fn clear(&mut self) {
        (self.head, self.len) = (0, 0);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let item = self.slots[self.head];
        self.head = (self.head + 1) & (self.slots.len() - 1);
        self.len -= 1;
        item
    }
}

impl Persist for Bytes {
    fn save(&self, out: &mut tickwire_persist::Bytes) {
        (self.as_slice().len() as u64).save(out);
        out.extend_from_slice(self.as_slice());
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        let length = from.length()?;
        let bytes = from.take(length)?;
        self.clear();
        self.push(bytes).then_some(()).ok_or(Damaged)
    }
}

impl<T: Copy + PersistValue> Persist for Ring<T> {
    fn save(&self, out: &mut tickwire_persist::Bytes) {
        (self.len as u64).save(out);
        for nth in 0..self.len {
            if let Some(item) = self.slots[(self.head + nth) & (self.slots.len() - 1)] {
                item.save(out);
            }
        }
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        let length = u64::read(from)?;
        self.clear();
        for _ in 0..length {
            let item = T::read(from)?;
            if self.room() == 0 {
                return Err(Damaged);
            }
            self.push(item);
        }
        Ok(())
    }
}

persist!(struct Early { bytes, last, taken });
