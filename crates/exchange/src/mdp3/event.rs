//! What one request did, as the messages of one match event: trades, then levels and orders.
//!
//! What a listener hears is collected; when the request is done, the ten levels shown before and after are
//! compared. An order's change rides on the entry of its price level where there is one, and goes into a
//! message of its own (template 47) where the level is not among the ten, did not change in sum, or the
//! message is full.

use alloc::vec::Vec;
use core::ops::Range;

use tickwire_market::{Level, Price, Qty, Side};
use tickwire_persist::persist;
use tickwire_wire::mdp3::{
    BookEntry, EntryType, OrderAction, OrderBookEntry, OrderEntry, Price9, TradeEntry, TradeOrderEntry,
    UpdateAction,
};

use crate::order::{Cross, Execution, Order};

/// Levels of a side by price.
pub(super) const DEPTH: usize = 10;

/// Size, message header, root and heads of two groups of templates 46 and 48, as they are written.
const HEADS: usize = 2 + 8 + 11 + 3 + 8;
/// Bytes of an entry of 46 and of 48.
const ENTRY: usize = 32;
/// Bytes of an order of 46.
const ORDER: usize = 24;
/// Bytes of an order of 48.
const PARTICIPANT: usize = 16;
/// Size, message header, root and head of the group of 47, and bytes of an entry.
const ORDERS_HEAD: usize = 2 + 8 + 11 + 3;
const ORDERS_ENTRY: usize = 40;
/// The most entries of a group.
const GROUP_MAX: usize = u8::MAX as usize;

/// The levels of a side that receivers by price have, best first.
#[derive(Clone, Copy, Default)]
pub(super) struct Shown {
    levels: [Level; DEPTH],
    len: usize,
}

impl Shown {
    pub(super) fn of(levels: impl Iterator<Item = Level>) -> Shown {
        let mut shown = Shown::default();
        for (to, level) in shown.levels.iter_mut().zip(levels) {
            *to = level;
            shown.len += 1;
        }
        shown
    }

    pub(super) fn levels(&self) -> &[Level] {
        &self.levels[..self.len]
    }

    fn find(&self, price: Price) -> Option<&Level> {
        self.levels().iter().find(|level| level.price == price)
    }

    /// What turns these levels into `after`, entry by entry as a receiver applies them: levels that are gone,
    /// those that changed in place, new ones from the best on. A new one pushes the last out without a word.
    fn changes(&self, after: &Shown, side: Side, tell: &mut impl FnMut(UpdateAction, usize, &Level)) {
        let worst = after.levels().last().filter(|_| after.len == DEPTH);
        let (mut kept, mut count) = ([Level::default(); DEPTH], 0);
        for level in self.levels() {
            let is_out_of_view = worst.is_some_and(|worst| side.better(worst.price, level.price));
            if after.find(level.price).is_some() || is_out_of_view {
                kept[count] = *level;
                count += 1;
            } else {
                tell(UpdateAction::Delete, count + 1, level);
            }
        }
        let kept = &kept[..count];
        for (nth, level) in kept.iter().enumerate() {
            match after.find(level.price) {
                Some(now) if now != level => tell(UpdateAction::Change, nth + 1, now),
                _ => {}
            }
        }
        for (nth, level) in after.levels().iter().enumerate() {
            if kept.iter().all(|k| k.price != level.price) {
                tell(UpdateAction::New, nth + 1, level);
            }
        }
    }
}

/// Orders that traded at one price.
pub(super) struct Step {
    pub(super) price: Price,
    pub(super) qty: u64,
    pub(super) aggressor_side: u8,
    aggressor: u64,
    participants: usize,
    /// The number of its first trade; the others follow it.
    pub(super) first: u64,
    /// The message is full: it begins another one.
    begins: bool,
}

impl Step {
    /// How many trades it is; 0: it is an auction's.
    pub(super) fn trades(&self) -> u64 {
        self.participants.saturating_sub(1) as u64
    }
}

/// What happened to a displayed order.
struct OrderChange {
    order: Order,
    action: OrderAction,
    is_placed: bool,
}

/// A message of the event: which of what was collected it holds.
#[derive(Clone)]
pub(super) enum Part {
    /// Template 48.
    Trades {
        /// Its steps.
        entries: Range<usize>,
        /// Their orders.
        orders: Range<usize>,
    },
    /// Template 37.
    Volume,
    /// Template 46.
    Book {
        /// Its levels.
        entries: Range<usize>,
        /// Orders that ride on them.
        orders: Range<usize>,
    },
    /// Template 47.
    Orders(Range<usize>),
}

/// See the module's description. Keeps its memory from event to event.
pub(super) struct MatchEvent {
    /// Bytes of a message.
    room: usize,
    steps: Vec<Step>,
    trade_bytes: usize,
    changes: Vec<OrderChange>,
    pub(super) trades: Vec<TradeEntry>,
    pub(super) participants: Vec<TradeOrderEntry>,
    pub(super) levels: Vec<BookEntry>,
    pub(super) riding: Vec<OrderEntry>,
    pub(super) alone: Vec<OrderBookEntry>,
    pub(super) parts: Vec<Part>,
}

impl MatchEvent {
    /// Nothing happened. Messages have at most `room` bytes.
    pub(super) fn new(room: usize) -> MatchEvent {
        MatchEvent {
            room,
            steps: Vec::new(),
            trade_bytes: 0,
            changes: Vec::new(),
            trades: Vec::new(),
            participants: Vec::new(),
            levels: Vec::new(),
            riding: Vec::new(),
            alone: Vec::new(),
            parts: Vec::new(),
        }
    }

    pub(super) fn changed(&mut self, order: &Order, action: OrderAction) {
        if !order.hidden {
            self.changes.push(OrderChange {
                order: *order,
                action,
                is_placed: false,
            });
        }
    }

    /// A trade: the aggressor stands first among the orders of its price.
    pub(super) fn executed(&mut self, execution: &Execution) {
        let (maker, taker) = (&execution.maker, &execution.taker);
        let same = |step: &&mut Step| (step.price, step.aggressor) == (execution.price, taker.id.0);
        let has_room = self.trade_bytes + PARTICIPANT <= self.room;
        match self.steps.last_mut().filter(same).filter(|_| has_room) {
            Some(step) => {
                step.qty += u64::from(execution.qty.0);
                step.participants += 1;
                self.trade_bytes += PARTICIPANT;
                let aggressor = self.participants.len() + 1 - step.participants;
                let entry = &mut self.participants[aggressor];
                entry.last_qty = quantity(step.qty).into();
            }
            None => {
                self.step(
                    execution.price,
                    execution.qty.0.into(),
                    1 + taker.side as u8,
                    execution.match_number,
                    2,
                );
                if let Some(step) = self.steps.last_mut() {
                    step.aggressor = taker.id.0;
                }
                self.participate(taker, execution.qty);
            }
        }
        self.participate(maker, execution.qty);
        let action = match maker.qty.is_zero() {
            true => OrderAction::Delete,
            false => OrderAction::Update,
        };
        self.changed(maker, action);
    }

    /// A trade without aggressor; its orders are not told.
    pub(super) fn crossed(&mut self, cross: &Cross) {
        self.step(cross.price, cross.qty, 0, cross.match_number, 0);
    }

    fn step(&mut self, price: Price, qty: u64, aggressor_side: u8, match_number: u64, participants: usize) {
        let bytes = ENTRY + participants * PARTICIPANT;
        let begins = self.steps.is_empty() || self.trade_bytes + bytes > self.room;
        self.trade_bytes = bytes + if begins { HEADS } else { self.trade_bytes };
        self.steps.push(Step {
            price,
            qty,
            aggressor_side,
            aggressor: 0,
            participants,
            first: match_number,
            begins,
        });
    }

    fn participate(&mut self, order: &Order, qty: Qty) {
        self.participants.push(TradeOrderEntry {
            order_id: order.id.0.into(),
            last_qty: quantity(qty.0.into()).into(),
        });
    }

    /// What traded, price by price.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// How much traded; 0 if nothing did.
    pub(super) fn traded(&self) -> u64 {
        self.steps.iter().map(|step| step.qty).sum()
    }

    /// The last trade.
    pub(super) fn last_trade(&self) -> Option<(Price, u64)> {
        self.steps.last().map(|step| (step.price, step.qty))
    }

    /// The request is done: lays out the messages. `rpt_seq` gives each entry its number.
    pub(super) fn lay_out(
        &mut self,
        security_id: i32,
        sides: [(Shown, Shown); 2],
        mut rpt_seq: impl FnMut() -> u32,
    ) -> u32 {
        self.lay_out_trades(security_id, &mut rpt_seq);
        let volume_rpt = if self.steps.is_empty() {
            0
        } else {
            self.parts.push(Part::Volume);
            rpt_seq()
        };
        for (side, (before, after)) in Side::BOTH.into_iter().zip(sides) {
            before.changes(&after, side, &mut |action, level, row| {
                self.levels
                    .push(level_entry(security_id, rpt_seq(), side, action, level, row));
            });
        }
        self.lay_out_levels();
        self.lay_out_rest(security_id);
        volume_rpt
    }

    fn lay_out_trades(&mut self, security_id: i32, rpt_seq: &mut impl FnMut() -> u32) {
        let (mut entry, mut order) = (0, 0);
        for (nth, step) in self.steps.iter().enumerate() {
            self.trades.push(TradeEntry {
                price: Price9::of(step.price),
                size: quantity(step.qty).into(),
                security_id: security_id.into(),
                rpt_seq: rpt_seq().into(),
                orders: (step.participants as i32).into(),
                aggressor_side: Some(step.aggressor_side).into(),
                action: UpdateAction::New as u8,
                trade_entry_id: Some(trade_entry_id(step.first).into()).into(),
            });
            let orders = order + step.participants;
            let ends = self.steps.get(nth + 1).is_none_or(|next| next.begins);
            if ends {
                let first = self.parts.last().map_or(0, |part| match part {
                    Part::Trades { orders, .. } => orders.end,
                    _ => 0,
                });
                self.parts.push(Part::Trades {
                    entries: entry..nth + 1,
                    orders: first..orders,
                });
                entry = nth + 1;
            }
            order = orders;
        }
    }

    /// Cuts the levels into messages, each level with the orders that changed it as far as there is room.
    fn lay_out_levels(&mut self) {
        let (mut entry, mut order, mut bytes) = (0, 0, HEADS);
        for nth in 0..self.levels.len() {
            if bytes + ENTRY > self.room {
                self.parts.push(Part::Book {
                    entries: entry..nth,
                    orders: order..self.riding.len(),
                });
                (entry, order, bytes) = (nth, self.riding.len(), HEADS);
            }
            bytes += ENTRY;
            let level = self.levels[nth];
            let (entry_type, price) = (level.entry_type, level.price.price());
            let of_level = |change: &&mut OrderChange| {
                let is_there = entry_type_of(change.order.side).into();
                entry_type == is_there && price == Some(change.order.price)
            };
            for change in self.changes.iter_mut().filter(of_level) {
                if bytes + ORDER > self.room || self.riding.len() - order == GROUP_MAX {
                    break;
                }
                bytes += ORDER;
                change.is_placed = true;
                self.riding.push(OrderEntry {
                    order_id: change.order.id.0.into(),
                    priority: Some(change.order.id.0.into()).into(),
                    display_qty: Some(quantity(change.order.qty.0.into()).into()).into(),
                    reference_id: Some((nth - entry + 1) as u8).into(),
                    action: change.action as u8,
                });
            }
        }
        if entry < self.levels.len() {
            self.parts.push(Part::Book {
                entries: entry..self.levels.len(),
                orders: order..self.riding.len(),
            });
        }
    }

    /// Orders that ride on no level.
    fn lay_out_rest(&mut self, security_id: i32) {
        let alone = self.changes.iter().filter(|change| !change.is_placed);
        self.alone.extend(alone.map(|change| OrderBookEntry {
            order_id: Some(change.order.id.0.into()).into(),
            priority: Some(change.order.id.0.into()).into(),
            price: Some(Price9::of(change.order.price)).into(),
            display_qty: Some(quantity(change.order.qty.0.into()).into()).into(),
            security_id: security_id.into(),
            action: change.action as u8,
            entry_type: entry_type_of(change.order.side).into(),
        }));
        let each = ((self.room - ORDERS_HEAD) / ORDERS_ENTRY).min(GROUP_MAX);
        let count = self.alone.len();
        let cuts = (0..count).step_by(each);
        self.parts
            .extend(cuts.map(|first| Part::Orders(first..(first + each).min(count))));
    }

    /// Nothing happened since.
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.trade_bytes = 0;
        self.changes.clear();
        self.trades.clear();
        self.participants.clear();
        self.levels.clear();
        self.riding.clear();
        self.alone.clear();
        self.parts.clear();
    }
}

/// A level's entry. Of one that is gone: what it held.
fn level_entry(
    security_id: i32,
    rpt_seq: u32,
    side: Side,
    action: UpdateAction,
    position: usize,
    level: &Level,
) -> BookEntry {
    BookEntry {
        price: Some(Price9::of(level.price)).into(),
        size: Some(quantity(level.qty.0).into()).into(),
        security_id: security_id.into(),
        rpt_seq: rpt_seq.into(),
        orders: Some((level.orders as i32).into()).into(),
        level: position as u8,
        action: action as u8,
        entry_type: entry_type_of(side).into(),
        ..BookEntry::BLANK
    }
}

/// The number of a trade whose first execution has this one: unique within some billions.
pub(super) fn trade_entry_id(first: u64) -> u32 {
    first as u32
}

/// The venue's quantities have 31 bits and the largest is null.
pub(super) fn quantity(qty: u64) -> i32 {
    qty.min(i32::MAX as u64 - 1) as i32
}

pub(super) fn entry_type_of(side: Side) -> EntryType {
    match side {
        Side::Bid => EntryType::Bid,
        Side::Ask => EntryType::Offer,
    }
}

persist!(value struct Shown { levels, len });
