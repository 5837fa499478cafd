//! The book as it would have been with our orders in it: recorded orders and ours in one matching engine.
//!
//! It is made from the recorded book when an order of ours arrives, and lives beside it as long as the two
//! differ. A recorded execution is entered as what it was, an order that takes so much down to that price; it
//! meets whoever stands first here. A recorded order whose owner cancels, reduces or replaces it does so here
//! too, less what it has lost here, plus what it was spared.
//!
//! Queues and tables, no pool: the idle path of a backtest has no such book.

use std::collections::{BTreeMap, VecDeque};

use tickwire_book::BookRef;
use tickwire_market::{ClientOrderId, OrderId, Price, Side};

use crate::ids::ById;

/// Whose order it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Who {
    Recorded(OrderId),
    Own(ClientOrderId),
}

/// An order in its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Standing {
    who: Who,
    /// In the order in which they came: ascending in a queue.
    number: u64,
    /// What is left of it here. Of a recorded order that has nothing left here the place is kept as long as
    /// it has something in the recording.
    qty: u64,
    /// What is left of it in the recording.
    recorded: u64,
}

impl Standing {
    fn is_as_recorded(&self) -> bool {
        self.qty == self.recorded
    }

    /// What it has beyond what it has in the recording: somebody of ours traded in its place.
    fn spared(&self) -> u64 {
        self.qty.saturating_sub(self.recorded)
    }
}

/// An order of ours that was hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hit {
    pub(crate) id: ClientOrderId,
    pub(crate) qty: u64,
}

/// Where an order stands.
pub(crate) type Place = (Side, Price);

/// The same with its number there.
type Spot = (Side, Price, u64);

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    /// Bids and asks by their keys, the best first.
    sides: [BTreeMap<i64, VecDeque<Standing>>; 2],
    recorded: ById<OrderId, Spot>,
    own: ById<ClientOrderId, Spot>,
    /// Numbers that were given.
    numbers: u64,
    /// Orders whose quantity is not the recorded one.
    different: usize,
    /// Our orders that were hit, in the order in which they were, since this was last taken.
    pub(crate) hits: Vec<Hit>,
    /// Recorded orders stand across each other: nobody matches, what comes to rest trades with nobody.
    pub(crate) is_auction: bool,
    /// Recorded executions that found less here than they took.
    pub(crate) found_less: u64,
    /// Recorded orders that were executed whole in the recording, and not here.
    pub(crate) spared: u64,
}

/// The better price has the smaller key.
fn key_of(side: Side, price: Price) -> i64 {
    match side {
        Side::Bid => price.raw().wrapping_neg(),
        Side::Ask => price.raw(),
    }
}

fn price_of(side: Side, key: i64) -> Price {
    match side {
        Side::Bid => Price::from_raw(key.wrapping_neg()),
        Side::Ask => Price::from_raw(key),
    }
}

/// Where an order of this number stands in its queue.
fn place_in(queue: &VecDeque<Standing>, number: u64) -> Option<usize> {
    queue
        .binary_search_by_key(&number, |standing| standing.number)
        .ok()
}

/// What an order that takes may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// Everybody's.
    All,
    /// Recorded orders', it is ours itself.
    Recorded,
    /// Only what goes before recorded orders that stand as they did: ours, and what others were spared.
    Ahead,
}

impl World {
    pub(crate) fn of(book: BookRef<'_>) -> World {
        let mut world = World::default();
        for side in Side::BOTH {
            for level in book.levels(side) {
                for order in book.orders(side, level.price) {
                    world.stand(
                        (side, level.price),
                        Who::Recorded(order.id),
                        (order.qty.0.into(), order.qty.0.into()),
                    );
                }
            }
        }
        world
    }

    /// Whether nothing of ours stands in it and nothing is left of what ours did.
    pub(crate) fn is_as_recorded(&self) -> bool {
        self.own.is_empty() && self.different == 0
    }

    /// An order comes to the end of its queue, with what it has here and in the recording.
    fn stand(&mut self, (side, price): Place, who: Who, (qty, recorded): (u64, u64)) {
        self.numbers += 1;
        let standing = Standing {
            who,
            number: self.numbers,
            qty,
            recorded,
        };
        let spot = (side, price, self.numbers);
        let known = match who {
            Who::Recorded(id) => self.recorded.insert(id, spot).is_some(),
            Who::Own(id) => self.own.insert(id, spot).is_some(),
        };
        debug_assert!(!known, "an order stands once");
        if matches!(who, Who::Recorded(_)) {
            self.different += usize::from(!standing.is_as_recorded());
        }
        let queue = self.sides[side as usize].entry(key_of(side, price)).or_default();
        queue.push_back(standing);
    }

    fn spot_of(&self, who: Who) -> Option<Spot> {
        match who {
            Who::Recorded(id) => self.recorded.get(&id).copied(),
            Who::Own(id) => self.own.get(&id).copied(),
        }
    }

    /// Changes one order's quantities; whoever has none left here nor there leaves the queue.
    fn change(&mut self, who: Who, change: impl FnOnce(&mut Standing)) {
        let Some((side, price, number)) = self.spot_of(who) else {
            return;
        };
        let key = key_of(side, price);
        let Some(queue) = self.sides[side as usize].get_mut(&key) else {
            return;
        };
        let Some(at) = place_in(queue, number) else { return };
        let standing = &mut queue[at];
        let before = *standing;
        change(standing);
        let after = *standing;
        if after.qty == 0 && after.recorded == 0 {
            queue.remove(at);
            if queue.is_empty() {
                self.sides[side as usize].remove(&key);
            }
            match who {
                Who::Recorded(id) => _ = self.recorded.remove(&id),
                Who::Own(id) => _ = self.own.remove(&id),
            }
        }
        if matches!(who, Who::Recorded(_)) {
            self.different += usize::from(!after.is_as_recorded());
            self.different -= usize::from(!before.is_as_recorded());
            self.spared += u64::from(before.recorded > 0 && after.recorded == 0 && after.qty > 0);
        }
    }

    fn find(&self, order: OrderId) -> Option<(Place, Standing)> {
        let (side, price, number) = self.spot_of(Who::Recorded(order))?;
        let queue = self.sides[side as usize].get(&key_of(side, price))?;
        Some(((side, price), queue[place_in(queue, number)?]))
    }

    /// Takes up to `wanted` of a side down to a price, the first first; how much, and of each price. It ends
    /// at `until`.
    fn take(
        &mut self,
        side: Side,
        limit: Option<Price>,
        wanted: u64,
        from: From,
        until: Option<OrderId>,
        mut each: impl FnMut(Price, u64),
    ) -> u64 {
        let most = limit.map_or(i64::MAX, |price| key_of(side, price));
        let mut parts = Vec::new();
        let mut left = wanted;
        'levels: for (key, queue) in self.sides[side as usize].range(..=most) {
            for standing in queue {
                if left == 0 || until.is_some_and(|id| standing.who == Who::Recorded(id)) {
                    break 'levels;
                }
                let has = match (standing.who, from) {
                    (Who::Own(_), From::Recorded) => 0,
                    (Who::Own(_), _) => standing.qty,
                    (Who::Recorded(_), From::Ahead) => standing.spared(),
                    (Who::Recorded(_), _) => standing.qty,
                };
                let part = has.min(left);
                if part > 0 {
                    left -= part;
                    parts.push((standing.who, price_of(side, *key), part));
                }
            }
        }
        for (who, price, part) in parts {
            self.change(who, |standing| standing.qty -= part);
            match who {
                Who::Own(id) => self.hits.push(Hit { id, qty: part }),
                Who::Recorded(_) => each(price, part),
            }
        }
        wanted - left
    }

    /// What an order of ours on the other side could have.
    pub(crate) fn available(&self, side: Side, limit: Option<Price>) -> u64 {
        let most = limit.map_or(i64::MAX, |price| key_of(side, price));
        let levels = self.sides[side as usize].range(..=most);
        levels
            .flat_map(|(_, queue)| queue)
            .filter(|standing| matches!(standing.who, Who::Recorded(_)))
            .map(|standing| standing.qty)
            .sum()
    }

    /// An order of ours takes; `each` hears prices and quantities.
    pub(crate) fn hit(
        &mut self,
        side: Side,
        limit: Option<Price>,
        wanted: u64,
        each: impl FnMut(Price, u64),
    ) {
        self.take(side, limit, wanted, From::Recorded, None, each);
    }

    /// An order of ours comes to rest; how much stands before it.
    pub(crate) fn rest(&mut self, id: ClientOrderId, side: Side, price: Price, qty: u64) -> u64 {
        let queue = self.sides[side as usize].get(&key_of(side, price));
        let ahead = queue.map_or(0, |queue| {
            let others = queue.iter().filter(|s| matches!(s.who, Who::Recorded(_)));
            others.map(|standing| standing.qty).sum()
        });
        self.stand((side, price), Who::Own(id), (qty, 0));
        ahead
    }

    /// What stands before an order of ours.
    pub(crate) fn ahead(&self, id: ClientOrderId) -> u64 {
        let Some((side, price, number)) = self.spot_of(Who::Own(id)) else {
            return 0;
        };
        let Some(queue) = self.sides[side as usize].get(&key_of(side, price)) else {
            return 0;
        };
        let before = queue.iter().take_while(|standing| standing.number < number);
        before
            .filter(|standing| matches!(standing.who, Who::Recorded(_)))
            .map(|standing| standing.qty)
            .sum()
    }

    /// An order of ours leaves.
    pub(crate) fn leave(&mut self, id: ClientOrderId) {
        self.change(Who::Own(id), |standing| standing.qty = 0);
    }

    /// An order of ours gets another number and a smaller quantity, and keeps its place.
    pub(crate) fn rename(&mut self, old: ClientOrderId, new: ClientOrderId, qty: u64) {
        let Some(spot) = self.own.remove(&old) else {
            return;
        };
        self.own.insert(new, spot);
        let (side, price, number) = spot;
        if let Some(queue) = self.sides[side as usize].get_mut(&key_of(side, price))
            && let Some(at) = place_in(queue, number)
        {
            (queue[at].who, queue[at].qty) = (Who::Own(new), qty);
        }
    }

    /// A recorded order came to rest, whatever it met here.
    pub(crate) fn add(&mut self, order: OrderId, side: Side, price: Price, qty: u64) {
        self.enter(order, (side, price), qty, qty);
    }

    fn enter(&mut self, order: OrderId, (side, price): Place, qty: u64, recorded: u64) {
        // Its number may have been executed in the recording, and shown again: an iceberg. What it was spared
        // goes with it.
        let spared = self.find(order).map_or(0, |(_, standing)| standing.qty);
        self.delete(order);
        let qty = qty + spared;
        // Recorded orders that cross recorded ones did so without trading, before an opening: only what
        // differs here trades.
        let met = match self.is_auction {
            true => 0,
            false => self.take(!side, Some(price), qty, From::Ahead, None, |_, _| ()),
        };
        self.stand((side, price), Who::Recorded(order), (qty - met, recorded));
    }

    /// So much of a recorded order was executed: whoever is ahead of it here trades first, then it, then
    /// those behind, down to its price.
    pub(crate) fn execute(&mut self, order: OrderId, qty: u64) {
        let Some(((side, price), _)) = self.find(order) else {
            return;
        };
        let mut left = qty;
        left -= self.take(side, Some(price), left, From::Ahead, Some(order), |_, _| ());
        let of_order = self.find(order).map_or(0, |(_, standing)| standing.qty.min(left));
        self.change(Who::Recorded(order), |standing| {
            standing.qty -= of_order;
            standing.recorded = standing.recorded.saturating_sub(qty);
        });
        left -= of_order;
        left -= self.take(side, Some(price), left, From::All, None, |_, _| ());
        self.found_less += u64::from(left > 0);
    }

    /// So much of a recorded order was executed elsewhere than at its price, in an auction or against the
    /// price of somebody else.
    pub(crate) fn execute_elsewhere(&mut self, order: OrderId, qty: u64) {
        self.change(Who::Recorded(order), |standing| {
            standing.qty = standing.qty.saturating_sub(qty);
            standing.recorded = standing.recorded.saturating_sub(qty);
        });
    }

    /// Somebody traded with one who was hidden: ours at a better price would have traded first.
    pub(crate) fn trade(&mut self, side: Side, price: Price, qty: u64) {
        let Some(better) = key_of(side, price).checked_sub(1) else {
            return;
        };
        self.take(
            side,
            Some(price_of(side, better)),
            qty,
            From::Ahead,
            None,
            |_, _| (),
        );
    }

    /// A recorded order was cancelled in part.
    pub(crate) fn reduce(&mut self, order: OrderId, by: u64) {
        self.change(Who::Recorded(order), |standing| {
            standing.recorded = standing.recorded.saturating_sub(by);
            standing.qty = match standing.recorded {
                0 => 0,
                _ => standing.qty.saturating_sub(by),
            };
        });
    }

    /// A recorded order was cancelled: what it was spared goes too.
    pub(crate) fn delete(&mut self, order: OrderId) {
        self.change(Who::Recorded(order), |standing| {
            (standing.qty, standing.recorded) = (0, 0)
        });
    }

    /// A recorded order was replaced by another, which goes to the end of its queue.
    pub(crate) fn replace(&mut self, order: OrderId, by: OrderId, (side, price): Place, recorded: u64) {
        let Some((_, standing)) = self.find(order) else {
            return;
        };
        self.delete(order);
        // Less what it has lost here, plus what it was spared.
        let qty = (recorded + standing.qty).saturating_sub(standing.recorded);
        self.enter(by, (side, price), qty, recorded);
    }

    /// A recorded order has another quantity and keeps its place.
    pub(crate) fn resize(&mut self, order: OrderId, recorded: u64) {
        self.change(Who::Recorded(order), |standing| {
            standing.qty = (recorded + standing.qty).saturating_sub(standing.recorded);
            standing.recorded = recorded;
        });
    }

    /// All recorded orders are gone.
    pub(crate) fn clear(&mut self) {
        for side in &mut self.sides {
            for queue in side.values_mut() {
                queue.retain(|standing| matches!(standing.who, Who::Own(_)));
            }
            side.retain(|_, queue| !queue.is_empty());
        }
        self.recorded.clear();
        self.different = 0;
    }
}
