//! Entries of the order log and of its snapshots, made into events.

use tickwire_market::{
    Counter, Counters, DynSink, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, Upcoming,
};
use tickwire_wire_moex::moex::{Action, BookEntry, Message, OrderKind, OrderLog};

use crate::decoder::Context;

use super::{Fragments, Instruments, about};

impl Instruments {
    /// Entries of the order log.
    #[inline(always)]
    pub(super) fn order_log<S: EventSink>(
        &mut self,
        context: Context,
        message: &Message<'_>,
        packet: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let mut orders = message.orders();
        let mut entry = orders.next_unread();
        while let Some(unread) = entry {
            entry = orders.next_unread();
            let Some(index) = self.enter(context, orders.instrument(&unread), counters, sink) else {
                continue;
            };
            let more = entry.is_some();
            let read = || orders.book_entry(&unread).ok();
            self.entry(context, (index, more), packet, counters, sink, read);
        }
        self.held.finish(true, sink);
    }

    /// The same of an order log that was read the short way.
    #[inline(always)]
    pub(super) fn order_rows<S: EventSink>(
        &mut self,
        context: Context,
        log: &OrderLog<'_>,
        packet: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let mut rows = log.entries();
        let mut known = (0, None);
        while let [row, rest @ ..] = rows {
            rows = rest;
            if known.0 != row.instrument || known.1.is_none() {
                let instrument = log.instrument(row.instrument);
                known = (row.instrument, self.enter(context, instrument, counters, sink));
            }
            let Some(index) = known.1 else {
                continue;
            };
            let more = !rest.is_empty();
            self.entry(context, (index, more), packet, counters, sink, || Some(row.entry));
        }
        self.held.finish(true, sink);
    }

    /// One entry of an order log, which is read if somebody wants it. `more`: another one follows.
    #[inline(always)]
    fn entry<S: EventSink>(
        &mut self,
        context: Context,
        (index, more): (usize, bool),
        packet: &[u8],
        counters: &mut Counters,
        sink: &mut S,
        read: impl FnOnce() -> Option<BookEntry>,
    ) {
        let id = InstrumentId(index as u32);
        if !self.passes(index, counters) {
            if self.filter.joins.has(id) {
                self.hold(context, index, read().as_ref(), packet, sink);
            }
            return;
        }
        match read() {
            Some(order) => {
                if more || self.held.pushed > 0 {
                    sink.upcoming(Upcoming::resting(id, order.order_id));
                }
                self.order(context, index, order, counters, sink);
            }
            None => {
                crate::decoder::count_bad_value(counters);
                self.tear(context, index, sink);
            }
        }
    }

    #[inline(always)]
    pub(super) fn order<S: EventSink>(
        &mut self,
        context: Context,
        index: usize,
        order: BookEntry,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        if !self.accept(context, index, order.rpt_seq, counters, sink) {
            return;
        }
        let event = |kind| MarketEvent {
            venue_ts: order.time.unwrap_or_default(),
            order_id: order.order_id,
            ..about(context, kind, index)
        };
        let OrderKind::Order(side) = order.kind else {
            return self.held.push(event(EventKind::Clear), sink);
        };
        let (kind, flags) = match order.action {
            Action::New => (EventKind::Add, EventFlags::NONE),
            // ASTS has no amendment in place: what changes is what is left of the order.
            Action::Change => (EventKind::Modify, EventFlags::KEEPS_PRIORITY),
            Action::Delete => (EventKind::Delete, EventFlags::NONE),
        };
        let Some(price) = order.price else {
            // A market order in an auction: it has no place among prices, neither when it comes nor when it
            // leaves.
            return;
        };
        if kind == EventKind::Delete {
            return self.held.push(event(kind), sink);
        }
        match order.qty {
            Some(qty) if !qty.is_zero() => self.held.push(
                MarketEvent {
                    side,
                    price,
                    qty,
                    flags: context.flags.with(flags),
                    ..event(kind)
                },
                sink,
            ),
            Some(_) if order.action == Action::Change => self.held.push(event(EventKind::Delete), sink),
            _ => {
                crate::decoder::count_bad_value(counters);
                self.tear(context, index, sink);
            }
        }
    }

    /// Whether an entry is new to its instrument. A hole in the numbers marks the book stale.
    #[inline(always)]
    pub(super) fn accept<S: EventSink>(
        &mut self,
        context: Context,
        index: usize,
        rpt_seq: u32,
        counters: &mut Counters,
        sink: &mut S,
    ) -> bool {
        let followed = &mut self.followed[index];
        let next = followed.rpt_seq.wrapping_add(1);
        if rpt_seq == next {
            (followed.rpt_seq, followed.is_known) = (rpt_seq, true);
            return true;
        }
        self.out_of_number(context, index, rpt_seq, counters, sink)
    }

    #[cold]
    #[inline(never)]
    fn out_of_number<S: EventSink>(
        &mut self,
        context: Context,
        index: usize,
        rpt_seq: u32,
        counters: &mut Counters,
        sink: &mut S,
    ) -> bool {
        let followed = &mut self.followed[index];
        let last = followed.rpt_seq;
        let is_known = (followed.is_known || self.is_whole) && !core::mem::take(&mut followed.is_new);
        if rpt_seq == 0 {
            return true;
        }
        if is_known && rpt_seq <= last {
            counters.bump(Counter::MessagesDuplicate);
            return false;
        }
        (followed.rpt_seq, followed.is_known) = (rpt_seq, true);
        if is_known {
            counters.add(Counter::MessagesLost, u64::from(rpt_seq - last - 1));
            self.tear(context, index, sink);
        }
        true
    }

    /// A book, or all of them (0), is wrong from here on.
    #[cold]
    #[inline(never)]
    pub(super) fn tear<S: EventSink>(&mut self, context: Context, index: usize, sink: &mut S) {
        self.is_torn = true;
        let gap = MarketEvent {
            ref_id: context.seq.0,
            ..about(context, EventKind::Gap, index)
        };
        self.held.push(gap, sink);
    }

    /// A fragment of an instrument's snapshot. One missing leaves the instrument to the next cycle.
    pub(super) fn snapshot(
        &mut self,
        context: Context,
        message: &Message<'_>,
        counters: &mut Counters,
        sink: &mut DynSink<'_>,
    ) {
        let (number, stamp) = (message.seq(), message.sending_stamp());
        if self.turn.is_on {
            self.turn.note(number, stamp);
        }
        let Ok(header) = message.snapshot_header() else {
            crate::decoder::count_bad_value(counters);
            return self.turn.refuse();
        };
        let Some(index) = self.enter(context, (header.symbol, header.board), counters, sink) else {
            return self.turn.refuse();
        };
        self.say_status(context, index, stamp, header.trading_status, sink);
        let id = InstrumentId(index as u32);
        let joins = !self.turn.is_on && self.filter.joins.has(id);
        if joins {
            let ends = self.fragment(context, number, index, message, counters, sink);
            match ends {
                Ok(is_new) if is_new && header.last_fragment => {
                    let followed = &mut self.followed[index];
                    (followed.rpt_seq, followed.is_known) = (header.rpt_seq, true);
                    followed.fragments.next = 0;
                    self.joined = Some((id, followed.fragments.last_packet));
                }
                Ok(_) => {}
                Err(()) => self.followed[index].fragments.next = 0,
            }
            return self.held.finish(false, sink);
        }
        if !self.turn.is_on || self.followed[index].taken == self.turn.number {
            return self.held.finish(true, sink);
        }
        if !self.filter.has(InstrumentId(index as u32)) {
            // Which packets its snapshot holds does not matter.
            self.followed[index].taken = self.turn.number;
            self.turn.taken += 1;
            return self.held.finish(true, sink);
        }
        let ends = match self.fragment(context, number, index, message, counters, sink) {
            Ok(is_new) => is_new && header.last_fragment,
            Err(()) => {
                self.followed[index].fragments.next = 0;
                self.turn.refuse();
                false
            }
        };
        if ends {
            let followed = &mut self.followed[index];
            let last_packet = followed.fragments.last_packet;
            (followed.rpt_seq, followed.is_known) = (header.rpt_seq, true);
            (followed.taken, followed.fragments.next) = (self.turn.number, 0);
            self.turn.taken += 1;
            self.turn.oldest = self.turn.oldest.min(last_packet.into());
        }
        self.held.finish(ends, sink);
    }

    /// Takes a fragment; `Ok(false)` for a copy of one, `Err` for one that does not count.
    fn fragment<S: EventSink>(
        &mut self,
        context: Context,
        number: u32,
        index: usize,
        message: &Message<'_>,
        counters: &mut Counters,
        sink: &mut S,
    ) -> Result<bool, ()> {
        let header = message.snapshot_header().map_err(|_| ())?;
        let last_packet = header.last_seq_processed.ok_or(())?;
        let id = InstrumentId(index as u32);
        let joins = !self.turn.is_on;
        let is_old = match joins {
            true if header.first_fragment => !self.filter.joins.is_met(id, last_packet.into()),
            true => !self.filter.joins.covers(id, last_packet.into()),
            false => u64::from(last_packet) + 1 < self.turn.floor,
        };
        if is_old || u64::from(last_packet) >= self.turn.ceiling {
            return Err(());
        }
        let taking = &mut self.followed[index].fragments;
        let is_same = (taking.rpt_seq, taking.last_packet) == (header.rpt_seq, last_packet);
        if is_same && taking.next != 0 && (taking.first..taking.next).contains(&number) {
            return Ok(false);
        }
        if header.first_fragment {
            *taking = Fragments {
                first: number,
                next: number.saturating_add(1),
                rpt_seq: header.rpt_seq,
                last_packet,
            };
            self.held.push(about(context, EventKind::Clear, index), sink);
            if joins {
                self.held.push(about(context, EventKind::Gap, index), sink);
            }
        } else if taking.next == number && number != 0 && taking.rpt_seq == header.rpt_seq {
            taking.next = number.saturating_add(1);
        } else {
            return Err(());
        }
        let mut orders = message.orders();
        while let Some(unread) = orders.next_unread() {
            let Ok(order) = orders.book_entry(&unread) else {
                crate::decoder::count_bad_value(counters);
                return Err(());
            };
            let OrderKind::Order(side) = order.kind else {
                continue;
            };
            let (Some(price), Some(qty)) = (order.price, order.qty) else {
                continue;
            };
            let event = MarketEvent {
                venue_ts: order.time.unwrap_or_default(),
                order_id: order.order_id,
                side,
                price,
                qty,
                ..about(context, EventKind::Add, index)
            };
            self.held.push(event, sink);
        }
        Ok(true)
    }
}
