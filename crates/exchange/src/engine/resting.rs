//! Where orders stand: a slot each, and a link to their neighbours in the queue.

use tickwire_market::{Price, Qty};
use tickwire_persist::persist;

use super::matching::leave;
use super::{Engine, LADDERS, NIL, key_of};
use crate::order::{CancelReason, Listener, Order, OrderPlace};

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

const _: () = assert!(size_of::<Slot>() == 64 && size_of::<Link>() == 8);

impl Engine {
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
        self.unrest(slot);
        // What it says stays until the slot is given out again.
        leave(&self.slots[slot as usize].order, reason, out);
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
        self.ladders.queue_mut(*queue).volume -= u64::from(qty.0);
        *order
    }

    pub(super) fn rest(&mut self, order: &Order, trigger: Price) {
        let slot = self.free;
        assert_ne!(slot, NIL, "room was checked when the order was accepted");
        self.free = self.links[slot as usize].next;
        self.live += 1;
        self.index.insert(order.id.0, slot);
        if order.is_waiting() {
            self.triggers[slot as usize] = trigger;
        }
        let queue = self.ladders.level(ladder_of(order), rung_key(order, trigger));
        let level = self.ladders.queue_mut(queue);
        let prev = level.tail;
        level.tail = slot;
        level.volume += u64::from(order.qty.0);
        level.orders += 1;
        level.icebergs += u32::from(!order.display.is_zero());
        match prev {
            NIL => level.head = slot,
            prev => self.links[prev as usize].next = slot,
        }
        self.slots[slot as usize] = Slot { order: *order, queue };
        self.links[slot as usize] = Link { prev, next: NIL };
    }

    pub(super) fn unrest(&mut self, slot: u32) {
        let Slot { order, queue } = &self.slots[slot as usize];
        let Link { prev, next } = self.links[slot as usize];
        let level = self.ladders.queue_mut(*queue);
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
            self.ladders.remove(ladder_of(order), *queue);
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

persist!(value struct Link { prev, next });
