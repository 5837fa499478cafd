//! Where orders stand: prices, queues and slots.
//!
//! ```text
//!  ladder: [price, queue] ... [best price, queue]
//!                   │
//!                   └─► queue: volume, orders, head ─► slot ⇄ slot ⇄ slot ◄─ tail
//! ```
//! A queue stays where it is while its level is in the book, so that an order names it by its number: only a
//! new price and a level that empties search the ladder.

use alloc::vec::Vec;

use tickwire_market::{Price, Qty};
use tickwire_persist::persist;

use super::matching::leave;
use super::{Engine, LADDERS, NIL, key_of};
use crate::order::{CancelReason, Listener, Order, OrderPlace};

/// A price level's place in its ladder.
#[derive(Clone, Copy)]
pub(super) struct Rung {
    pub(super) key: i64,
    pub(super) queue: u32,
}

/// The orders of a price level, two levels to a cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Queue {
    pub(super) key: i64,
    pub(super) volume: u64,
    /// Of one that is no level's: the next such.
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) orders: u32,
    /// How many of them may have a reserve.
    pub(super) icebergs: u32,
}

/// A cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Slot {
    pub(super) order: Order,
    pub(super) queue: u32,
}

/// The neighbours in the queue; of a vacant slot, the next vacant one.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) prev: u32,
    pub(super) next: u32,
}

const _: () = assert!(size_of::<Queue>() == 32 && size_of::<Slot>() == 64 && size_of::<Link>() == 8);

/// Levels in ascending order of their keys.
pub(super) struct Ladder(pub(super) Vec<Rung>);

impl Ladder {
    /// Where `key` is (`Ok`) or belongs (`Err`). Looks at the best few first: most changes are there.
    #[inline]
    pub(super) fn find(&self, key: i64) -> Result<usize, usize> {
        /// They are counted without a branch on any of them: where an order stands is not predictable.
        const NEAR: usize = 4;
        let Some((rest, near)) = self.0.split_last_chunk::<NEAR>() else {
            return self.0.binary_search_by_key(&key, |rung| rung.key);
        };
        let better = near.iter().map(|rung| usize::from(rung.key > key)).sum::<usize>();
        if better == NEAR {
            return rest.binary_search_by_key(&key, |rung| rung.key);
        }
        let at = NEAR - 1 - better;
        match near[at].key == key {
            true => Ok(rest.len() + at),
            false => Err(rest.len() + at + 1),
        }
    }
}

impl Engine {
    #[inline]
    pub(super) fn queue_of(&self, rung: &Rung) -> &Queue {
        &self.queues[rung.queue as usize]
    }

    pub(super) fn chain(&self, head: u32) -> impl Iterator<Item = &Order> + '_ {
        let mut at = head;
        core::iter::from_fn(move || {
            let slot = self.slots.get(at as usize)?;
            at = self.links[at as usize].next;
            Some(&slot.order)
        })
    }

    /// An order leaves.
    pub(super) fn remove(&mut self, slot: u32, reason: Option<CancelReason>, out: &mut impl Listener) {
        let order = self.slots[slot as usize].order;
        self.unrest(slot);
        leave(&order, reason, out);
    }

    /// An order loses less than all it has, the reserve first, in its place.
    pub(super) fn lower(
        &mut self,
        slot: u32,
        by: Qty,
        reason: Option<CancelReason>,
        out: &mut impl Listener,
    ) {
        let old = self.slots[slot as usize].order;
        if by <= old.reserve {
            let order = &mut self.slots[slot as usize].order;
            order.reserve = Qty(old.reserve.0 - by.0);
            let order = *order;
            if let Some(reason) = reason {
                out.cancelled(&order, reason);
            }
            return out.reserve_reduced(&order, by);
        }
        let shown = Qty(by.0 - old.reserve.0);
        self.slots[slot as usize].order.reserve = Qty::ZERO;
        let order = self.take(slot, shown);
        if let Some(reason) = reason {
            out.cancelled(&order, reason);
        }
        match order.is_waiting() {
            true => out.reparked(&old, &order),
            false => out.reduced(&order, shown),
        }
    }

    /// Takes less than all from an order (of an iceberg, from its slice) in its place.
    pub(super) fn take(&mut self, slot: u32, qty: Qty) -> Order {
        let Slot { order, queue } = &mut self.slots[slot as usize];
        order.qty = Qty(order.qty.0 - qty.0);
        self.queues[*queue as usize].volume -= u64::from(qty.0);
        *order
    }

    pub(super) fn rest(&mut self, order: Order, trigger: Price) {
        let slot = self.free;
        assert_ne!(slot, NIL, "room was checked when the order was accepted");
        self.free = self.links[slot as usize].next;
        self.live += 1;
        self.index.insert(order.id.0, slot);
        if order.is_waiting() {
            self.triggers[slot as usize] = trigger;
        }
        let queue = self.level_of(ladder_of(&order), rung_key(&order, trigger));
        let level = &mut self.queues[queue as usize];
        let prev = level.tail;
        level.tail = slot;
        level.volume += u64::from(order.qty.0);
        level.orders += 1;
        level.icebergs += u32::from(!order.display.is_zero());
        match prev {
            NIL => level.head = slot,
            prev => self.links[prev as usize].next = slot,
        }
        self.slots[slot as usize] = Slot { order, queue };
        self.links[slot as usize] = Link { prev, next: NIL };
    }

    /// The queue of a level, which is made when missing.
    #[inline]
    fn level_of(&mut self, ladder: usize, key: i64) -> u32 {
        let ladder = &mut self.ladders[ladder];
        match ladder.find(key) {
            Ok(at) => ladder.0[at].queue,
            Err(at) => {
                let new = Queue {
                    key,
                    volume: 0,
                    head: NIL,
                    tail: NIL,
                    orders: 0,
                    icebergs: 0,
                };
                let queue = match self.free_queue {
                    NIL => {
                        self.queues.push(new);
                        self.queues.len() as u32 - 1
                    }
                    free => {
                        let vacant = core::mem::replace(&mut self.queues[free as usize], new);
                        self.free_queue = vacant.head;
                        free
                    }
                };
                ladder.0.insert(at, Rung { key, queue });
                queue
            }
        }
    }

    pub(super) fn unrest(&mut self, slot: u32) {
        let Slot { order, queue } = &self.slots[slot as usize];
        let Link { prev, next } = self.links[slot as usize];
        let level = &mut self.queues[*queue as usize];
        level.volume -= u64::from(order.qty.0);
        level.orders -= 1;
        level.icebergs -= u32::from(!order.display.is_zero());
        match prev {
            NIL => level.head = next,
            prev => self.links[prev as usize].next = next,
        }
        match next {
            NIL => level.tail = prev,
            next => self.links[next as usize].prev = prev,
        }
        if level.orders == 0 {
            let ladder = &mut self.ladders[ladder_of(order)];
            let at = ladder.find(level.key);
            ladder.0.remove(at.expect("a resting order has its level"));
            level.head = self.free_queue;
            self.free_queue = *queue;
        }
        self.index.remove(order.id.0);
        self.links[slot as usize].next = self.free;
        self.free = slot;
        self.live -= 1;
    }
}

/// Waiting stop orders stand by their triggers, the first to be passed best; market orders before all others.
pub(super) fn rung_key(order: &Order, trigger: Price) -> i64 {
    match order.terms.place() {
        OrderPlace::Book => key_of(order.side, order.price),
        OrderPlace::Stop => key_of(!order.side, trigger),
        OrderPlace::Opening | OrderPlace::Closing if order.is_market() => i64::MAX,
        OrderPlace::Opening | OrderPlace::Closing => key_of(order.side, order.price),
    }
}

pub(super) fn ladder_of(order: &Order) -> usize {
    let base = order.instrument.index() * LADDERS;
    match order.terms.place() {
        OrderPlace::Book => base + order.side as usize * 2 + usize::from(order.hidden),
        waiting => base + 2 + waiting as usize * 2 + order.side as usize,
    }
}

persist!(value struct Queue { key, volume, head, tail, orders, icebergs });
persist!(value struct Link { prev, next });
