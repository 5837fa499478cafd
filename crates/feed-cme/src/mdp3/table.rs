//! Two fixed tables: security number to position, order to priority. Open addressing, linear probing, at most
//! half full.

use crate::fixed_map::FixedMap;
use alloc::{boxed::Box, vec, vec::Vec};
use tickwire_market::Nanos;

/// Spreads numbers that come in runs.
#[inline(always)]
fn slot_of(key: u64, mask: usize) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask
}

fn slots(entries: usize) -> usize {
    (entries.max(1) * 2).next_power_of_two()
}

/// Security numbers, which may be any 32 bits, to positions from 1 on in order of appearance. Nothing is ever
/// removed.
pub(super) struct Securities {
    /// Number and position; position 0 is an empty slot.
    slots: Box<[(i32, u32)]>,
    len: u32,
    max: u32,
}

impl Securities {
    pub(super) fn new(max: u32) -> Securities {
        Securities {
            slots: vec![(0, 0); slots(max as usize)].into(),
            len: 0,
            max,
        }
    }

    /// With room for one, whose position will be this, at least 1.
    pub(super) fn of_one(position: u32) -> Securities {
        Securities {
            len: position - 1,
            max: position,
            ..Securities::new(1)
        }
    }

    /// How many there are: positions go from 1 to this.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline(always)]
    pub(super) fn find(&self, security: i32) -> Option<u32> {
        match self.slots[self.probe(security)] {
            (_, 0) => None,
            (_, position) => Some(position),
        }
    }

    /// Its position, a new one if need be; `None` when all are taken.
    pub(super) fn enter(&mut self, security: i32) -> Option<u32> {
        let slot = self.probe(security);
        if self.slots[slot].1 == 0 {
            if self.len == self.max {
                return None;
            }
            self.len += 1;
            self.slots[slot] = (security, self.len);
        }
        Some(self.slots[slot].1)
    }

    /// Where the number is, or would be.
    #[inline(always)]
    fn probe(&self, security: i32) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = slot_of(u64::from(security.cast_unsigned()), mask);
        while self.slots[slot].1 != 0 && self.slots[slot].0 != security {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

/// How many orders that were executed whole in one match event are remembered. Of further ones the trade is
/// told, and that they are deleted.
const EXECUTED_MAX: usize = 1 << 12;

/// Resting orders: their priorities, to know whether a change keeps the place in the queue, and how much of
/// each is left, to tell executions. When full, orders are left out: a change of theirs then counts as one
/// that loses the place, and what executes them is told as a trade.
pub(super) struct Resting {
    orders: FixedMap<(u64, u32, u32)>,
    /// Whether executions are told as such.
    tells_executions: bool,
    /// Executed whole in the match event of this time; the venue deletes or shows them again in the same one.
    executed: Vec<u64>,
    event: Nanos,
}

impl Resting {
    pub(super) fn new(orders: u32, tells_executions: bool) -> Resting {
        Resting {
            orders: FixedMap::new(orders as usize),
            tells_executions,
            executed: Vec::with_capacity(if tells_executions { EXECUTED_MAX } else { 0 }),
            event: Nanos::ZERO,
        }
    }

    #[inline(always)]
    pub(super) fn tells_executions(&self) -> bool {
        self.tells_executions
    }

    pub(super) fn clear(&mut self) {
        self.orders.clear();
        self.executed.clear();
    }

    /// Sets priority and quantity of an order of an instrument; what they were before, if known.
    pub(super) fn set(
        &mut self,
        order: u64,
        (priority, qty): (u64, u64),
        index: usize,
    ) -> Option<(u64, u64)> {
        let qty = u32::try_from(qty).unwrap_or(u32::MAX);
        let before = self
            .orders
            .insert(order, (priority, index as u32, qty))
            .ok()
            .flatten();
        before.map(|(priority, _, qty)| (priority, qty.into()))
    }

    /// Forgets an instrument's orders, of which nothing will be heard. Not for the hot path.
    pub(super) fn forget(&mut self, index: usize) {
        self.orders.retain(|(_, of, _)| *of != index as u32);
    }

    pub(super) fn remove(&mut self, order: u64) {
        self.orders.remove(order);
    }

    /// Takes an execution from an order of an instrument, in the match event of a time: how much of it was
    /// left to execute. `None`: no such order rests, or there is no room to remember that it is gone.
    pub(super) fn execute(&mut self, event: Nanos, index: usize, order: u64, qty: u64) -> Option<u64> {
        if event != self.event {
            self.executed.clear();
            self.event = event;
        }
        let slot = self.orders.find(order)?;
        let (_, of, left) = self.orders.at_mut(slot);
        let done = qty.min((*left).into()) as u32;
        if *of != index as u32 || done == 0 {
            return None;
        }
        if done < *left {
            *left -= done;
            return Some(done.into());
        }
        if self.executed.len() == EXECUTED_MAX {
            return None;
        }
        self.executed.push(order);
        self.orders.remove_at(slot);
        Some(done.into())
    }

    /// Whether an order was executed whole in the match event of this time: told once.
    pub(super) fn take_executed(&mut self, event: Nanos, order: u64) -> bool {
        if !self.tells_executions || event != self.event {
            return false;
        }
        let at = self.executed.iter().position(|executed| *executed == order);
        at.map(|at| self.executed.swap_remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeMap;
    use tickwire_testdata::Rng;

    #[test]
    fn priorities_are_those_of_a_map() {
        let (mut table, mut map, mut rng) = (Resting::new(64, false), BTreeMap::new(), Rng::new(3));
        for _ in 0..100_000 {
            let (order, priority) = (rng.below(100), rng.next_u64());
            if rng.chance(1, 2) && (map.len() < 64 || map.contains_key(&order)) {
                let of = (priority, priority >> 40);
                assert_eq!(table.set(order, of, 1), map.insert(order, of));
            } else {
                table.remove(order);
                map.remove(&order);
            }
        }
    }

    #[test]
    fn an_order_is_executed_by_what_it_has_left_and_deleted_once() {
        let (mut table, now) = (Resting::new(8, true), Nanos(9));
        table.set(7, (1, 10), 2);
        assert_eq!(table.execute(now, 1, 7, 4), None, "of another instrument");
        assert_eq!(table.execute(now, 2, 8, 4), None, "it does not rest");
        assert_eq!(table.execute(now, 2, 7, 4), Some(4));
        assert!(!table.take_executed(now, 7), "something is left");
        assert_eq!(table.execute(now, 2, 7, 40), Some(6));
        assert_eq!(table.execute(now, 2, 7, 1), None);
        assert!(!table.take_executed(Nanos(10), 7), "another match event");
        assert!(table.take_executed(now, 7) && !table.take_executed(now, 7));
    }

    #[test]
    fn a_full_table_leaves_orders_out_and_securities_keep_their_positions() {
        let mut table = Resting::new(0, true);
        assert_eq!((table.set(7, (1, 5), 1), table.set(7, (2, 5), 1)), (None, None));
        assert_eq!(table.execute(Nanos(1), 1, 7, 5), None);
        let mut securities = Securities::new(2);
        assert_eq!(
            (securities.enter(-5), securities.enter(0), securities.enter(9)),
            (Some(1), Some(2), None)
        );
        assert_eq!(
            (securities.enter(-5), securities.find(0), securities.find(9)),
            (Some(1), Some(2), None)
        );
    }
}
