//! Order id → order, without hashing where ids are dense.
//!
//! Nasdaq and the other by-order feeds number orders upwards from a small number, so an id is an address: its upper
//! bits name a page, its lower bits the slot in it. A page gets a chunk of slots from a preallocated pool with its
//! first order and gives it back with its last. Ids beyond the dense range, and all ids once the pool is empty, go to a
//! table with open addressing and a fixed capacity.

use crate::books::BookError;
use crate::prefetch;
use crate::touched;
use alloc::vec;
use alloc::vec::Vec;
use tickwire_market::{InstrumentId, OrderId, Side};

/// No slot, no chunk.
pub(crate) const NONE: u32 = u32::MAX;

/// 2^14 slots of 16 bytes: 256 KiB a chunk, and 8 bytes of page table for it, so that the table of a whole day
/// (185 million ids: 11,300 pages) stays in the second-level cache.
const CHUNK_BITS: u32 = 14;
const CHUNK: usize = 1 << CHUNK_BITS;

/// A resting order, four to a cache line. Vacant when `qty` is 0.
#[derive(Clone, Copy, Default)]
pub(crate) struct Slot {
    pub(crate) key: i64,
    pub(crate) qty: u32,
    tag: u32,
}

impl Slot {
    #[inline]
    pub(crate) fn new(instrument: u32, side: Side, key: i64, qty: u32) -> Slot {
        Slot {
            key,
            qty,
            tag: instrument << 1 | side as u32,
        }
    }

    #[inline]
    pub(crate) fn instrument(self) -> u32 {
        self.tag >> 1
    }

    #[inline]
    pub(crate) fn side(self) -> Side {
        if self.tag & 1 == 0 { Side::Bid } else { Side::Ask }
    }
}

/// Neighbours in the queue of a level, by slot number.
#[derive(Clone, Copy, Default)]
pub(crate) struct Links {
    pub(crate) next: u32,
    pub(crate) prev: u32,
}

#[derive(Clone, Copy)]
struct Page {
    chunk: u32,
    live: u32,
}

const NO_PAGE: Page = Page { chunk: NONE, live: 0 };

/// An entry of the sparse table; vacant when `slot` is [`NONE`].
#[derive(Clone, Copy)]
struct Entry {
    id: u64,
    slot: u32,
}

const NO_ENTRY: Entry = Entry { id: 0, slot: NONE };

pub(crate) struct OrderIndex {
    /// Chunks first, then the sparse slots.
    slots: Vec<Slot>,
    /// Empty unless queues are kept; else one per slot.
    links: Vec<Links>,
    pages: Vec<Page>,
    page_of_chunk: Vec<u32>,
    free_chunks: Vec<u32>,
    dense_slots: usize,
    table: Vec<Entry>,
    sparse_ids: Vec<u64>,
    free_sparse: Vec<u32>,
}

impl OrderIndex {
    /// `dense_slots` is rounded up to whole chunks.
    pub(crate) fn new(dense_slots: usize, dense_ids: u64, sparse: usize, queues: bool) -> OrderIndex {
        let chunks = dense_slots.div_ceil(CHUNK);
        let dense_slots = chunks * CHUNK;
        let total = dense_slots + sparse;
        assert!(total < NONE as usize, "order capacity must stay below 2^32 - 1");
        let pages = if chunks == 0 {
            0
        } else {
            dense_ids.div_ceil(CHUNK as u64) as usize
        };
        let table_len = if sparse == 0 {
            0
        } else {
            (2 * sparse).next_power_of_two()
        };
        OrderIndex {
            slots: touched(Slot::default(), total),
            links: touched(Links::default(), if queues { total } else { 0 }),
            pages: vec![NO_PAGE; pages],
            page_of_chunk: vec![NONE; chunks],
            free_chunks: (0..chunks as u32).rev().collect(),
            dense_slots,
            table: vec![NO_ENTRY; table_len],
            sparse_ids: vec![0; sparse],
            free_sparse: (0..sparse as u32).rev().collect(),
        }
    }

    #[inline]
    pub(crate) fn slot(&self, index: u32) -> Slot {
        self.slots[index as usize]
    }

    #[inline]
    pub(crate) fn slot_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    #[inline]
    pub(crate) fn links_mut(&mut self) -> &mut [Links] {
        &mut self.links
    }

    #[inline]
    pub(crate) fn links(&self) -> &[Links] {
        &self.links
    }

    /// The slot an id has if its page has a chunk; it may be vacant.
    #[inline]
    fn dense(&self, id: OrderId) -> Option<u32> {
        let page = usize::try_from(id.0 >> CHUNK_BITS).ok()?;
        let chunk = self.pages.get(page)?.chunk;
        (chunk != NONE).then(|| chunk << CHUNK_BITS | (id.0 as u32 & (CHUNK as u32 - 1)))
    }

    /// The slot of a resting order.
    #[inline]
    pub(crate) fn find(&self, id: OrderId) -> Option<u32> {
        match self.dense(id) {
            Some(index) if self.slot(index).qty != 0 => Some(index),
            _ => self.find_sparse(id),
        }
    }

    #[inline]
    fn find_sparse(&self, id: OrderId) -> Option<u32> {
        if self.free_sparse.len() == self.sparse_ids.len() {
            None
        } else {
            self.probe(id)
        }
    }

    #[cold]
    fn probe(&self, id: OrderId) -> Option<u32> {
        let entry = self.table[self.position(id)];
        (entry.slot != NONE).then_some(entry.slot)
    }

    /// Where the id is or would be. The table is at most half full, so the walk ends.
    fn position(&self, id: OrderId) -> usize {
        let mask = self.table.len() - 1;
        let mut at = self.home(id.0);
        while self.table[at].slot != NONE && self.table[at].id != id.0 {
            at = (at + 1) & mask;
        }
        at
    }

    fn home(&self, id: u64) -> usize {
        (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as usize & (self.table.len() - 1)
    }

    /// Reserves the slot of a new order; the caller fills it with a quantity above 0 or calls [`OrderIndex::release`].
    #[inline]
    pub(crate) fn claim(&mut self, id: OrderId) -> Result<u32, BookError> {
        if let Some(index) = self.dense(id) {
            if self.slot(index).qty != 0 || self.find_sparse(id).is_some() {
                return Err(BookError::DuplicateOrder);
            }
            self.pages[(id.0 >> CHUNK_BITS) as usize].live += 1;
            return Ok(index);
        }
        self.claim_in_new_page(id)
    }

    #[cold]
    fn claim_in_new_page(&mut self, id: OrderId) -> Result<u32, BookError> {
        if self.find_sparse(id).is_some() {
            return Err(BookError::DuplicateOrder);
        }
        let number = id.0 >> CHUNK_BITS;
        if let Some(page) = usize::try_from(number).ok().and_then(|n| self.pages.get_mut(n))
            && let Some(chunk) = self.free_chunks.pop()
        {
            *page = Page { chunk, live: 1 };
            self.page_of_chunk[chunk as usize] = number as u32;
            return Ok(chunk << CHUNK_BITS | (id.0 as u32 & (CHUNK as u32 - 1)));
        }
        let sparse = self.free_sparse.pop().ok_or(BookError::Full)?;
        let index = self.dense_slots as u32 + sparse;
        let at = self.position(id);
        self.table[at] = Entry {
            id: id.0,
            slot: index,
        };
        self.sparse_ids[sparse as usize] = id.0;
        Ok(index)
    }

    /// Vacates the slot `index` of order `id`.
    #[inline]
    pub(crate) fn release(&mut self, id: OrderId, index: u32) {
        self.slot_mut(index).qty = 0;
        if (index as usize) < self.dense_slots {
            let page = &mut self.pages[(id.0 >> CHUNK_BITS) as usize];
            page.live -= 1;
            if page.live == 0 {
                self.recycle((id.0 >> CHUNK_BITS) as usize);
            }
        } else {
            self.release_sparse(id, index);
        }
    }

    /// Gives the chunk of an empty page back. All its slots are vacant, so it needs no cleaning.
    #[cold]
    fn recycle(&mut self, page: usize) {
        let chunk = core::mem::replace(&mut self.pages[page], NO_PAGE).chunk;
        self.page_of_chunk[chunk as usize] = NONE;
        self.free_chunks.push(chunk);
    }

    /// Takes the entry out and moves later ones of the same run into the hole, so that no tombstones are needed.
    #[cold]
    fn release_sparse(&mut self, id: OrderId, index: u32) {
        self.free_sparse.push(index - self.dense_slots as u32);
        let mask = self.table.len() - 1;
        let mut hole = self.position(id);
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.table[at].slot == NONE {
                break;
            }
            let home = self.home(self.table[at].id);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.table[hole] = self.table[at];
                hole = at;
            }
        }
        self.table[hole] = NO_ENTRY;
    }

    /// The id of the order in a slot.
    pub(crate) fn id_of(&self, index: u32) -> OrderId {
        match (index as usize).checked_sub(self.dense_slots) {
            Some(sparse) => OrderId(self.sparse_ids[sparse]),
            None => {
                let page = self.page_of_chunk[(index >> CHUNK_BITS) as usize] as u64;
                OrderId(page << CHUNK_BITS | (index as u64 & (CHUNK as u64 - 1)))
            }
        }
    }

    /// Removes every order of an instrument by looking at every slot in use: for clears, not for the path of a packet.
    pub(crate) fn release_all_of(&mut self, instrument: InstrumentId) {
        for chunk in 0..self.page_of_chunk.len() {
            for index in chunk * CHUNK..(chunk + 1) * CHUNK {
                if self.page_of_chunk[chunk] == NONE {
                    break;
                }
                self.release_if_of(instrument, index);
            }
        }
        if self.free_sparse.len() < self.sparse_ids.len() {
            for index in self.dense_slots..self.slots.len() {
                self.release_if_of(instrument, index);
            }
        }
    }

    fn release_if_of(&mut self, instrument: InstrumentId, index: usize) {
        let slot = self.slots[index];
        if slot.qty != 0 && slot.instrument() == instrument.0 {
            self.release(self.id_of(index as u32), index as u32);
        }
    }

    /// Removes every order.
    pub(crate) fn clear(&mut self) {
        for chunk in 0..self.page_of_chunk.len() {
            let page = core::mem::replace(&mut self.page_of_chunk[chunk], NONE);
            if page != NONE {
                self.slots[chunk * CHUNK..(chunk + 1) * CHUNK].fill(Slot::default());
                self.pages[page as usize] = NO_PAGE;
                self.free_chunks.push(chunk as u32);
            }
        }
        if self.free_sparse.len() < self.sparse_ids.len() {
            self.slots[self.dense_slots..].fill(Slot::default());
            self.table.fill(NO_ENTRY);
            self.free_sparse.clear();
            self.free_sparse.extend((0..self.sparse_ids.len() as u32).rev());
        }
    }

    /// Fetches the cache lines of an order that is about to be used.
    #[inline(always)]
    pub(crate) fn prefetch(&self, id: OrderId) {
        if let Some(index) = self.dense(id) {
            prefetch::fetch(&self.slots, index as usize);
            prefetch::fetch(&self.links, index as usize);
        }
    }
}
