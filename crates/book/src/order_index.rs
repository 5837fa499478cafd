//! Order id → order, without hashing where ids are dense.
//!
//! Nasdaq and the other by-order feeds number orders upwards, and most orders are gone within seconds. So the
//! lower bits of an id are its place in a *window* of slots that the ids of the day go round and round: one
//! cache line holds the order, and no table is asked. Few orders live for hours. When the ids have gone round
//! once and a new order needs the slot of such an old one, the old one moves to a table with open addressing;
//! it moves once, and the slot is free for all that follow. Ids above the highest that ever moved cannot be
//! in the table, so a new order does not look there.
//!
//! A new order also fetches what the next ones will need, if they are numbered upwards: the lines of their
//! slots, and the places to which those go who stand there still.
//!
//! Nothing depends on ids being dense: ids in strides, at random or falling fill the table sooner and cost
//! its two cache lines more, and the books are the same.

use crate::books::BookError;
use crate::ladder::BookSide;
use crate::late_links::LateLinks;
use crate::prefetch;
use crate::touched;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use tickwire_market::{InstrumentId, OrderId, Side};

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;
/// Of [`Slot::links`], the order behind.
pub(crate) const NEXT: usize = 0;
/// Of [`Slot::links`], the order before.
pub(crate) const PREV: usize = 1;
/// Of [`Slot::links`] where queues are not kept, how often the order's book had been cleared when it came: an
/// order of before the last clear is gone, and its slot is anybody's.
pub(crate) const CLEARS: usize = 0;

/// How many orders after a new one a slot is fetched.
const FAR: u64 = 12;
/// How many orders after a new one a slot, which has been fetched, is looked at.
const NEAR: u64 = 4;
/// Of how many orders after the newest one a thread that waits fetches what they need.
const FOLLOWING: u64 = 4;

/// A resting order with its neighbours in the queue of its level, two to a cache line. Vacant when `qty` is 0.
///
/// ```text
///  0 key  8 id  16 qty  20 tag  24 links[next] 28 links[prev]
/// ```
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Slot {
    pub(crate) key: i64,
    id: u64,
    pub(crate) qty: u32,
    tag: u32,
    /// The orders behind this one ([`NEXT`]) and before it ([`PREV`]) in its queue, by slot number. Only
    /// where queues are kept, and not the latest word: see [`OrderIndex::links`].
    pub(crate) links: [u32; 2],
}

const _: () = assert!(core::mem::size_of::<Slot>() == 32);

const VACANT: Slot = Slot {
    key: 0,
    id: 0,
    qty: 0,
    tag: 0,
    links: [NONE; 2],
};

impl Slot {
    #[inline]
    pub(crate) fn new(id: OrderId, instrument: u32, side: Side, key: i64, qty: u32) -> Slot {
        Slot {
            key,
            id: id.0,
            qty,
            tag: instrument << 1 | side as u32,
            links: [NONE; 2],
        }
    }

    #[inline]
    pub(crate) fn id(&self) -> OrderId {
        OrderId(self.id)
    }

    #[inline]
    pub(crate) fn instrument(&self) -> u32 {
        self.tag >> 1
    }

    /// The side of this book that the order is on.
    #[inline(always)]
    pub(crate) fn side_of(&self, book: usize) -> BookSide {
        BookSide {
            book,
            side: self.side(),
        }
    }

    #[inline]
    pub(crate) fn side(&self) -> Side {
        if self.tag & 1 == 0 { Side::Bid } else { Side::Ask }
    }
}

/// An entry of the table; vacant when `slot` is [`NONE`].
#[derive(Clone, Copy)]
struct Entry {
    id: u64,
    slot: u32,
}

const NO_ENTRY: Entry = Entry { id: 0, slot: NONE };

/// Where a new order would stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OrderSlot {
    /// In this vacant slot.
    Vacant(u32),
    /// In this slot, once the older order in it has been moved by [`OrderIndex::move_out`].
    Taken(u32),
}

pub(crate) struct OrderIndex {
    /// The window first, a power of two; then the slots of orders in the table; then one that is no order's,
    /// if there is any.
    slots: Vec<Slot>,
    /// Slots of the window.
    window: usize,
    /// Slots of orders in the table.
    rooms: usize,
    /// Window slots from here on were vacant since the last clear.
    used: usize,
    /// The order that was placed last.
    newest: u64,
    /// No id above this was ever moved to the table.
    moved_max: u64,
    table: Vec<Entry>,
    free_moved: Vec<u32>,
    late: LateLinks,
}

impl OrderIndex {
    /// Room for at least `orders` orders, whatever their ids.
    pub(crate) fn new(orders: usize) -> OrderIndex {
        let window = if orders == 0 {
            0
        } else {
            orders.next_power_of_two()
        };
        let total = window + orders;
        assert!(total < NONE as usize, "order capacity must stay below 2^31");
        OrderIndex {
            slots: touched(VACANT, total + (total > 0) as usize),
            window,
            rooms: orders,
            used: 0,
            newest: 0,
            moved_max: 0,
            table: vec![
                NO_ENTRY;
                if orders == 0 {
                    0
                } else {
                    (2 * orders).next_power_of_two()
                }
            ],
            free_moved: (0..orders as u32).rev().collect(),
            late: LateLinks::new(total as u32),
        }
    }

    #[inline]
    pub(crate) fn slot(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }

    #[inline]
    pub(crate) fn slot_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// The orders behind and before one in its queue.
    pub(crate) fn links(&self, index: u32) -> [u32; 2] {
        self.late.read(&self.slots, index)
    }

    /// Writes all links that wait, before orders leave their slots by other ways.
    pub(crate) fn settle_links(&mut self) {
        self.late.settle(&mut self.slots);
    }

    /// [`OrderIndex::links`] of an order that is about to leave its slot: nothing is written there any more.
    #[inline(always)]
    pub(crate) fn last_links(&mut self, index: u32) -> [u32; 2] {
        if self.late.may_hold(index) {
            self.late.settle(&mut self.slots);
        }
        self.slots[index as usize].links
    }

    /// Makes `follows` come behind the order `before`, and `precedes` before the order `after`, where there
    /// are such.
    #[inline(always)]
    pub(crate) fn tie(&mut self, [after, before]: [u32; 2], [follows, precedes]: [u32; 2]) {
        self.link(before, NEXT, follows);
        self.link(after, PREV, precedes);
    }

    /// Sets a link of an order, if there is one. Where there is none is not predictable: no branch.
    #[inline(always)]
    pub(crate) fn link(&mut self, index: u32, which: usize, value: u32) {
        let nobody = self.late.nobody();
        let slot = if index == NONE { nobody } else { index };
        self.late.put(&mut self.slots, slot, which, value);
    }

    /// An id's slot in the window; beyond all slots when there is no window.
    #[inline]
    fn home(&self, id: OrderId) -> usize {
        id.0 as usize & self.window.wrapping_sub(1)
    }

    /// The slot of a resting order.
    #[inline]
    pub(crate) fn find(&self, id: OrderId) -> Option<u32> {
        let at = self.home(id);
        match self.slots.get(at) {
            Some(slot) if slot.id == id.0 && slot.qty != 0 => Some(at as u32),
            _ => self.find_moved(id),
        }
    }

    #[inline]
    fn find_moved(&self, id: OrderId) -> Option<u32> {
        if id.0 > self.moved_max || self.is_none_moved() {
            None
        } else {
            self.probe(id)
        }
    }

    fn is_none_moved(&self) -> bool {
        self.free_moved.len() == self.rooms
    }

    #[cold]
    fn probe(&self, id: OrderId) -> Option<u32> {
        let entry = self.table[self.position(id.0)];
        (entry.slot != NONE).then_some(entry.slot)
    }

    /// Where the id is or would be. The table is at most half full, so the walk ends.
    fn position(&self, id: u64) -> usize {
        let mask = self.table.len() - 1;
        let mut at = self.entry_of(id);
        while self.table[at].slot != NONE && self.table[at].id != id {
            at = (at + 1) & mask;
        }
        at
    }

    fn entry_of(&self, id: u64) -> usize {
        (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as usize & self.table.len().wrapping_sub(1)
    }

    /// Fetches what the orders after a new one need if they are numbered upwards: their slots, and where
    /// those go who stand there still. The instrument of one of these.
    #[inline(always)]
    pub(crate) fn prefetch_next(&self, id: OrderId) -> Option<InstrumentId> {
        prefetch::fetch_near(&self.slots, self.home(OrderId(id.0.wrapping_add(FAR))));
        let standing = self.slots.get(self.home(OrderId(id.0.wrapping_add(NEAR))))?;
        (standing.qty != 0).then(|| self.prefetch_move(standing))
    }

    /// Fetches what the next orders need if they are numbered upwards: their slots, those that
    /// [`OrderIndex::prefetch_next`] looks at then, and the one that is no order's.
    pub(crate) fn prefetch_following(&self) {
        for next in 1..=FOLLOWING + NEAR {
            self.prefetch(OrderId(self.newest.wrapping_add(next)));
        }
        prefetch::fetch_near(&self.slots, self.late.nobody() as usize);
    }

    #[cold]
    fn prefetch_move(&self, standing: &Slot) -> InstrumentId {
        prefetch::fetch(&self.table, self.entry_of(standing.id));
        if let Some(&free) = self.free_moved.last() {
            prefetch::fetch(&self.slots, self.window + free as usize);
        }
        InstrumentId(standing.instrument())
    }

    /// Where a new order stands. The caller writes it there, with a quantity above 0; nothing is reserved. An
    /// order that `is_gone` stands in nobody's way.
    #[inline]
    pub(crate) fn place(
        &mut self,
        id: OrderId,
        is_gone: impl Fn(&Slot) -> bool,
    ) -> Result<OrderSlot, BookError> {
        let at = self.home(id);
        let Some(standing) = self.slots.get(at) else {
            return Err(BookError::Full);
        };
        let is_taken = standing.qty != 0 && !is_gone(standing);
        if is_taken && standing.id == id.0 {
            return Err(BookError::DuplicateOrder);
        }
        if let Some(moved) = self.find_moved(id) {
            if !is_gone(self.slot(moved)) {
                return Err(BookError::DuplicateOrder);
            }
            self.release(moved);
        }
        self.used = self.used.max(at + 1);
        self.newest = id.0;
        Ok(if is_taken {
            OrderSlot::Taken(at as u32)
        } else {
            OrderSlot::Vacant(at as u32)
        })
    }

    /// Moves the order of a window slot to the table and vacates the slot: the order's new slot number. Its
    /// neighbours in the queue still name the old one.
    #[cold]
    pub(crate) fn move_out(&mut self, index: u32) -> Result<u32, BookError> {
        let free = self.free_moved.pop().ok_or(BookError::Full)?;
        let to = self.window as u32 + free;
        let links = self.last_links(index);
        let mut order = core::mem::replace(&mut self.slots[index as usize], VACANT);
        order.links = links;
        let at = self.position(order.id);
        self.table[at] = Entry {
            id: order.id,
            slot: to,
        };
        self.slots[to as usize] = order;
        self.moved_max = self.moved_max.max(order.id);
        Ok(to)
    }

    /// Vacates a slot.
    #[inline]
    pub(crate) fn release(&mut self, index: u32) {
        let slot = self.slot_mut(index);
        slot.qty = 0;
        let id = slot.id;
        if index as usize >= self.window {
            self.release_moved(id, index);
        }
    }

    /// Takes the entry out and moves later ones of the same run into the hole, so that no tombstones are
    /// needed.
    #[cold]
    fn release_moved(&mut self, id: u64, index: u32) {
        self.free_moved.push(index - self.window as u32);
        let mask = self.table.len() - 1;
        let mut hole = self.position(id);
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.table[at].slot == NONE {
                break;
            }
            let home = self.entry_of(self.table[at].id);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.table[hole] = self.table[at];
                hole = at;
            }
        }
        self.table[hole] = NO_ENTRY;
    }

    /// Takes those who are gone out of the table, for a new one that finds no room there.
    pub(crate) fn release_moved_if(&mut self, is_gone: impl Fn(&Slot) -> bool) {
        self.release_if(self.window..self.slots.len(), is_gone);
    }

    /// Takes those who are gone out wherever they are, by looking at every slot used since the last clear.
    #[cold]
    pub(crate) fn release_all_if(&mut self, is_gone: impl Fn(&Slot) -> bool) {
        self.release_if(0..self.used, &is_gone);
        self.release_if(self.window..self.slots.len(), is_gone);
    }

    fn release_if(&mut self, indices: Range<usize>, is_gone: impl Fn(&Slot) -> bool) {
        for index in indices {
            let slot = &self.slots[index];
            if slot.qty != 0 && is_gone(slot) {
                self.release(index as u32);
            }
        }
    }

    /// Removes every order.
    pub(crate) fn clear(&mut self) {
        self.slots[..self.used].fill(VACANT);
        self.used = 0;
        self.moved_max = 0;
        if !self.is_none_moved() {
            self.slots[self.window..].fill(VACANT);
            self.table.fill(NO_ENTRY);
            self.free_moved.clear();
            self.free_moved.extend((0..self.rooms as u32).rev());
        }
        self.late.forget();
    }

    /// What stands in the window where this order would, be it this order or not; `None` without a window.
    #[inline(always)]
    pub(crate) fn standing(&self, id: OrderId) -> Option<&Slot> {
        self.slots.get(self.home(id))
    }

    /// Fetches the cache line of an order whose entry has been fetched, if it was moved.
    #[inline(always)]
    pub(crate) fn prefetch_moved(&self, id: OrderId) {
        if let Some(index) = self.find_moved(id) {
            prefetch::fetch(&self.slots, index as usize);
        }
    }

    /// Fetches the cache line of an order that is about to be used, and its entry where it may have been
    /// moved.
    #[inline(always)]
    pub(crate) fn prefetch(&self, id: OrderId) {
        prefetch::fetch_near(&self.slots, self.home(id));
        if id.0 <= self.moved_max {
            prefetch::fetch(&self.table, self.entry_of(id.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(index: &mut OrderIndex, id: u64) -> u32 {
        let at = match index.place(OrderId(id), |_| false).unwrap() {
            OrderSlot::Vacant(at) => at,
            OrderSlot::Taken(at) => {
                index.move_out(at).unwrap();
                at
            }
        };
        *index.slot_mut(at) = Slot::new(OrderId(id), 1, Side::Bid, 5, 10);
        at
    }

    #[test]
    fn an_old_order_gives_its_slot_to_a_new_one_and_is_found_in_the_table() {
        let mut index = OrderIndex::new(8);
        let old = put(&mut index, 3);
        assert_eq!(index.place(OrderId(11), |_| false), Ok(OrderSlot::Taken(old)));
        assert_eq!(put(&mut index, 11), old);
        let moved = index.find(OrderId(3)).unwrap();
        assert_ne!(moved, old);
        assert_eq!(index.slot(moved).id(), OrderId(3));
        assert_eq!(index.find(OrderId(11)), Some(old));
        assert_eq!(index.find(OrderId(19)), None, "an id of the same slot");
        assert_eq!(index.place(OrderId(3), |_| false), Err(BookError::DuplicateOrder));
        assert_eq!(
            index.place(OrderId(11), |_| false),
            Err(BookError::DuplicateOrder)
        );
        index.release(old);
        assert_eq!(
            index.place(OrderId(3), |_| false),
            Err(BookError::DuplicateOrder),
            "its slot is vacant"
        );
        index.release(moved);
        assert_eq!(index.find(OrderId(3)), None);
        assert_eq!(index.place(OrderId(3), |_| false), Ok(OrderSlot::Vacant(old)));
    }

    #[test]
    fn as_many_orders_as_configured_fit_whatever_their_ids_are() {
        for stride in [1, 7, 64, 1 << 40] {
            let mut index = OrderIndex::new(100);
            let ids: Vec<u64> = (0..100).map(|i| u64::MAX - i * stride).collect();
            ids.iter().for_each(|&id| {
                put(&mut index, id);
            });
            for &id in &ids {
                let at = index.find(OrderId(id)).expect("rests");
                assert_eq!(index.slot(at).id(), OrderId(id));
            }
            index.clear();
            assert!(ids.iter().all(|&id| index.find(OrderId(id)).is_none()));
        }
    }

    #[test]
    fn without_room_nothing_moves() {
        let mut index = OrderIndex::new(1);
        put(&mut index, 1);
        put(&mut index, 2);
        let Ok(OrderSlot::Taken(at)) = index.place(OrderId(3), |_| false) else {
            panic!("the slot of order 2 is taken");
        };
        assert_eq!(index.move_out(at), Err(BookError::Full));
        assert!(index.find(OrderId(1)).is_some() && index.find(OrderId(2)).is_some());
    }
}
