//! An engine as bytes, and back.

use alloc::vec::Vec;

use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader};

use super::resting::Slot;
use super::{Engine, NIL};

/// Of the slots those that an order has, and the order in which the others are given out, in runs of
/// ascending numbers: there are many more than orders. Queues are numbered anew.
impl Persist for Engine {
    fn save(&self, out: &mut Bytes) {
        let Engine {
            config: _,
            listed,
            ladders,
            slots,
            links,
            triggers,
            quotes,
            free,
            live,
            index,
            last_order_id,
            last_match,
            trades,
        } = self;
        listed.save(out);
        ladders.save(out);
        index.save(out);
        for (_, slot) in index.iter() {
            let slot = slot as usize;
            (slots[slot].order, links[slot], triggers[slot]).save(out);
        }
        let mut runs: Vec<(u32, u32)> = Vec::new();
        let mut at = *free;
        while at != NIL {
            match runs.last_mut() {
                Some((first, length)) if *first + *length == at => *length += 1,
                _ => runs.push((at, 1)),
            }
            at = links[at as usize].next;
        }
        runs.save(out);
        quotes.save(out);
        (*live, *last_order_id, *last_match).save(out);
        trades.save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        self.listed.load(from)?;
        self.ladders.load(from)?;
        self.index.load(from)?;
        for (_, slot) in self.index.iter() {
            let (order, link, trigger) = PersistValue::read(from)?;
            let slot = slot as usize;
            *self.slots.get_mut(slot).ok_or(Damaged)? = Slot { order, queue: NIL };
            (self.links[slot], self.triggers[slot]) = (link, trigger);
        }
        self.find_queues()?;
        let runs = Vec::<(u32, u32)>::read(from)?;
        self.free = NIL;
        for (first, length) in runs.into_iter().rev() {
            let end = first.checked_add(length).ok_or(Damaged)?;
            if length > self.links.len() as u32 {
                return Err(Damaged);
            }
            for at in (first..end).rev() {
                self.links.get_mut(at as usize).ok_or(Damaged)?.next = self.free;
                self.free = at;
            }
        }
        self.quotes.load(from)?;
        (self.live, self.last_order_id, self.last_match) = PersistValue::read(from)?;
        self.trades.load(from)
    }
}

impl Engine {
    /// Tells every order which queue it stands in.
    fn find_queues(&mut self) -> Result<(), Damaged> {
        for (number, queue) in self.ladders.loaded() {
            let mut at = queue.head;
            for _ in 0..queue.orders {
                self.slots.get_mut(at as usize).ok_or(Damaged)?.queue = number;
                at = self.links[at as usize].next;
            }
        }
        let mut orders = self.index.iter().map(|(_, slot)| &self.slots[slot as usize]);
        match orders.all(|slot| slot.queue != NIL) {
            true => Ok(()),
            false => Err(Damaged),
        }
    }
}
