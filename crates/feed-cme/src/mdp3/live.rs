//! The incremental feed: books, trades, statistics and status to events.

use super::event::{
    LevelEntry, Moment, OrderUpdate, Tail, Trade, about, book_side, level_event, moment, quantity, row,
    trading_status,
};
use super::rows::Row;
use super::snapshot::collect;
use super::{Mdp3Decoder, Mdp3Depth, Trust};
use crate::decoder::Context;
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, OrderId, Price,
    Side, Volume,
};
use tickwire_wire_cme::mdp3::{
    self, Body, BookEntry, Entries, EntryType, EventRoot, Message, OrderAction, OrderEntry,
    TradingStatusCode, UpdateAction, indicator,
};

impl Mdp3Decoder {
    #[inline(always)]
    pub(super) fn book<S: EventSink>(
        &mut self,
        context: Context,
        m: &mdp3::Book<'_>,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<u8> {
        let root = m.root.get();
        let at = &moment(context, &root);
        match m.entries.whole() {
            Some(entries) => {
                for e in entries {
                    self.book_entry(at, e, counters, out)?;
                }
            }
            None => self.book_entries(at, m.entries, counters, out)?,
        }
        if self.depth == Mdp3Depth::ByOrder {
            let place = |n| {
                let e = m.entries.get(n)?;
                Some((e.security_id.get(), e.entry_type.0, e.price.price()))
            };
            self.referred_orders(at, m.orders, place, counters, out)?;
        }
        Some(root.indicator)
    }

    /// Template 32, of schema versions up to 8.
    #[cold]
    fn book_of_old<S: EventSink>(
        &mut self,
        context: Context,
        m: &mdp3::Book32<'_>,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<u8> {
        let root = m.root.get();
        let at = &moment(context, &root);
        for e in m.entries {
            let entry = LevelEntry {
                security_id: e.security_id.get(),
                rpt_seq: e.rpt_seq.get(),
                entry_type: e.entry_type.0,
                action: e.action,
                level: e.level,
            };
            let row = || {
                let size = quantity(e.size.get().map(|n| n.get().into()))?;
                let price = match e.price.price() {
                    Some(price) => Some(of_old(price)?),
                    None => None,
                };
                row(price, size, e.orders.get())
            };
            self.level(at, entry, row, counters, out)?;
        }
        Some(root.indicator)
    }

    /// Template 42, of the same.
    #[cold]
    fn trades_of_old<S: EventSink>(
        &mut self,
        context: Context,
        m: &mdp3::TradeSummary42<'_>,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<u8> {
        let root = m.root.get();
        let at = &moment(context, &root);
        for e in m.entries {
            let trade = Trade {
                security_id: e.security_id.get(),
                rpt_seq: e.rpt_seq.get(),
                price: of_old(e.price.price())?,
                qty: quantity(Some(e.size.get().into()))?,
                aggressor: e.aggressor_side.get(),
                action: e.action,
                id: e.trade_entry_id.get().map_or(0, |n| n.get()),
            };
            self.trade(at, trade, core::iter::empty(), counters, out);
        }
        Some(root.indicator)
    }

    /// Entries of senders whose layout is shorter than ours.
    #[inline(never)]
    fn book_entries<S: EventSink>(
        &mut self,
        at: &Moment,
        entries: Entries<'_, BookEntry>,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<()> {
        for e in entries {
            self.book_entry(at, &e, counters, out)?;
        }
        Some(())
    }

    #[inline(always)]
    fn book_entry<S: EventSink>(
        &mut self,
        at: &Moment,
        e: &BookEntry,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<()> {
        let entry = LevelEntry {
            security_id: e.security_id.get(),
            rpt_seq: e.rpt_seq.get(),
            entry_type: e.entry_type.0,
            action: e.action,
            level: e.level,
        };
        let row = || {
            let size = quantity(e.size.get().map(|n| n.get().into()))?;
            row(e.price.price(), size, e.orders.get())
        };
        self.level(at, entry, row, counters, out)
    }

    #[inline(always)]
    pub(super) fn order_book<S: EventSink>(
        &mut self,
        context: Context,
        m: &mdp3::OrderBook<'_>,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<u8> {
        let root = m.root.get();
        let at = &moment(context, &root);
        for e in m.entries {
            let wanted = self.wanted(e.security_id.get(), counters);
            let Some(index) = wanted.filter(|_| self.depth == Mdp3Depth::ByOrder) else {
                continue;
            };
            let order = e.order_id.get()?.get();
            let action = OrderAction::from_wire(e.action);
            let update = OrderUpdate {
                index,
                action: action?,
                order,
                priority: e.priority.get().map_or(0, |n| n.get()),
                side: book_side(e.entry_type.0)?.0,
                price: e.price.price().unwrap_or_default(),
                qty: quantity(e.display_qty.get().map(|n| n.get().into()))?,
            };
            self.order(at, update, out);
        }
        Some(root.indicator)
    }

    #[inline(always)]
    pub(super) fn trades<S: EventSink>(
        &mut self,
        context: Context,
        m: &mdp3::TradeSummary<'_>,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<u8> {
        let root = m.root.get();
        let at = &moment(context, &root);
        let mut orders = m.orders.map(|of| {
            (
                of.order_id.get(),
                u64::from(of.last_qty.get().max(0).unsigned_abs()),
            )
        });
        for e in m.entries {
            let trade = Trade {
                security_id: e.security_id.get(),
                rpt_seq: e.rpt_seq.get(),
                price: e.price.price(),
                qty: quantity(Some(e.size.get().into()))?,
                aggressor: e.aggressor_side.get(),
                action: e.action,
                id: e.trade_entry_id.get().map_or(0, |n| n.get()),
            };
            let mut fills = orders.by_ref().take(e.orders.get().max(0) as usize);
            self.trade(at, trade, &mut fills, counters, out);
            // The next trade's orders stand behind all of this one's.
            fills.for_each(drop);
        }
        Some(root.indicator)
    }

    /// Every template; those of a trading day's bulk have been taken before.
    #[inline(never)]
    pub(super) fn message<S: EventSink>(
        &mut self,
        context: Context,
        message: &Message<'_>,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<u8> {
        let in_snapshot = context.flags.has(EventFlags::SNAPSHOT);
        let at = |root: &EventRoot| moment(context, root);
        let at_time = |time: u64| Moment {
            context,
            time: Nanos(time),
        };
        match &message.body {
            Body::Book(m) => self.book(context, m, counters, out),
            Body::BookLongQty(m) => {
                let root = m.root.get();
                for e in m.entries {
                    let entry = LevelEntry {
                        security_id: e.security_id.get(),
                        rpt_seq: e.rpt_seq.get(),
                        entry_type: e.entry_type.0,
                        action: e.action,
                        level: e.level,
                    };
                    let row = || {
                        row(
                            e.price.price(),
                            e.size.get().map_or(0, |n| n.get()),
                            e.orders.get(),
                        )
                    };
                    self.level(&at(&root), entry, row, counters, out)?;
                }
                if self.depth == Mdp3Depth::ByOrder {
                    let place = |n| {
                        let e = m.entries.get(n)?;
                        Some((e.security_id.get(), e.entry_type.0, e.price.price()))
                    };
                    self.referred_orders(&at(&root), m.orders, place, counters, out)?;
                }
                Some(root.indicator)
            }
            Body::OrderBook(m) => self.order_book(context, m, counters, out),
            Body::TradeSummary(m) => self.trades(context, m, counters, out),
            Body::TradeSummaryLongQty(m) => {
                let root = m.root.get();
                for e in m.entries {
                    let trade = Trade {
                        security_id: e.security_id.get(),
                        rpt_seq: e.rpt_seq.get(),
                        price: e.price.price(),
                        qty: e.size.get(),
                        aggressor: e.aggressor_side.get(),
                        action: e.action,
                        id: e.trade_entry_id.get(),
                    };
                    self.trade(&at(&root), trade, core::iter::empty(), counters, out);
                }
                Some(root.indicator)
            }
            Body::SecurityStatus(m) => {
                let r = m.root.get();
                let at = &at_time(r.transact_time.get());
                if let Some(code) = r.trading_status.get() {
                    let why = [b'0'.saturating_add(r.halt_reason), 0, 0, 0, 0, 0, 0, 0];
                    let one = r.security_id.get().map(|id| id.get());
                    self.status(at, one, r.security_group.0, r.asset.0, code, why, out);
                }
                Some(r.indicator)
            }
            Body::Workup(m) => {
                let r = m.root.get();
                let at = &at_time(r.transact_time.get());
                let why = [b'0'.saturating_add(r.halt_reason), 0, 0, 0, 0, 0, 0, 0];
                let one = Some(r.security_id.get());
                self.status(at, one, [0; 6], [0; 6], r.trading_status, why, out);
                Some(r.indicator)
            }
            Body::ChannelReset(m) => {
                let root = m.root.get();
                self.reset(&at(&root), out);
                Some(root.indicator)
            }
            Body::Volume(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Some(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::VolumeLongQty(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Some(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::DailyStatistics(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Some(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::SessionStatistics(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Some(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::SessionStatisticsLongQty(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Some(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::LimitsBanding(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Some(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::Snapshot(m) if in_snapshot && self.depth == Mdp3Depth::ByPrice => {
                let mut levels = [(EntryType::Bid, 0, Row::default()); 64];
                let mut count = 0;
                for e in m.entries {
                    let row = row(
                        e.price.price(),
                        quantity(e.size.get().map(|n| n.get().into()))?,
                        e.orders.get(),
                    )?;
                    let level = e.level.get().and_then(|n| u8::try_from(n).ok()).unwrap_or(0);
                    collect(&mut levels, &mut count, e.entry_type.0, level, row)?;
                }
                self.snapshot(context, &m.root.get(), &mut levels[..count], counters, out);
                Some(indicator::END_OF_EVENT)
            }
            Body::SnapshotLongQty(m) if in_snapshot && self.depth == Mdp3Depth::ByPrice => {
                let mut levels = [(EntryType::Bid, 0, Row::default()); 64];
                let mut count = 0;
                for e in m.entries {
                    let row = row(
                        e.price.price(),
                        e.size.get().map_or(0, |n| n.get()),
                        e.orders.get(),
                    )?;
                    collect(
                        &mut levels,
                        &mut count,
                        e.entry_type.0,
                        e.level.get().unwrap_or(0),
                        row,
                    )?;
                }
                self.snapshot(context, &m.root.get(), &mut levels[..count], counters, out);
                Some(indicator::END_OF_EVENT)
            }
            Body::Snapshot(m) if in_snapshot => {
                self.snapshot_statistics(context, &m.root.get(), counters, out);
                Some(indicator::END_OF_EVENT)
            }
            Body::SnapshotLongQty(m) if in_snapshot => {
                self.snapshot_statistics(context, &m.root.get(), counters, out);
                Some(indicator::END_OF_EVENT)
            }
            Body::SnapshotOrders(m) if in_snapshot && self.depth == Mdp3Depth::ByOrder => {
                self.snapshot_orders(context, m, counters, out)?;
                Some(indicator::END_OF_EVENT)
            }
            Body::Future(_)
            | Body::OptionDefinition(_)
            | Body::Spread(_)
            | Body::FixedIncome(_)
            | Body::Repo(_)
            | Body::Fx(_) => Some(self.define(context, &message.body, counters, out)),
            Body::AdminHeartbeat(_)
            | Body::AdminLogin(_)
            | Body::AdminLogout(_)
            | Body::QuoteRequest(_)
            | Body::Snapshot(_)
            | Body::SnapshotLongQty(_)
            | Body::SnapshotOrders(_)
            | Body::TopOrders(_)
            | Body::TcpSnapshot(_)
            | Body::TcpSnapshotLongQty(_)
            | Body::CollateralMarketValue(_) => Some(0),
            Body::Book32(m) => self.book_of_old(context, m, counters, out),
            Body::TradeSummary42(m) => self.trades_of_old(context, m, counters, out),
            Body::SessionStatistics35(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Some(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::DailyStatistics33(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Some(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::LimitsBanding34(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Some(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::Trade36(m) => {
                let entries = m.entries.map(|e| (e.security_id.get(), e.rpt_seq.get()));
                Some(self.follow(context, m.root.get(), entries, counters, out))
            }
            Body::Future27(_)
            | Body::Spread29(_)
            | Body::Snapshot38(_)
            | Body::Option41(_)
            | Body::OrderBook43(_)
            | Body::SnapshotOrders44(_) => {
                counters.bump(Counter::MessagesUnknown);
                Some(0)
            }
        }
    }

    /// The instrument of a security number, if anyone wants it. Entries of one instrument mostly follow each
    /// other.
    #[inline(always)]
    fn wanted(&mut self, security_id: i32, counters: &mut Counters) -> Option<usize> {
        let wanted = match self.latest {
            Some((latest, wanted)) if latest == security_id => wanted.map(|index| index as usize),
            _ => self.look_up(security_id, counters),
        };
        match wanted {
            Some(index) => {
                self.in_message.passed = true;
                self.followed[index].passed += 1;
            }
            None => {
                self.in_message.dropped = true;
                if !self.filter.joins.is_empty() {
                    self.shut(security_id);
                }
            }
        }
        wanted
    }

    /// Counts an entry that nobody wants.
    #[inline(always)]
    fn pass_over(&self, security_id: i32, counters: &mut Counters) {
        if self.shut != Some(security_id) {
            counters.bump(Counter::MessagesFiltered);
        }
    }

    #[inline(always)]
    fn look_up(&mut self, security_id: i32, counters: &mut Counters) -> Option<usize> {
        let position = match self.securities.find(security_id) {
            None if self.filter.subscriptions().takes_unnamed() => {
                self.enter(security_id, counters).map(|index| index as u32)
            }
            known => known,
        };
        let wanted = position
            .filter(|position| self.filter.has(InstrumentId(*position)))
            .filter(|position| self.only.is_none_or(|only| only == *position));
        self.latest = Some((security_id, wanted));
        wanted.map(|index| index as usize)
    }

    /// The instrument of an entry that is wanted and new.
    #[inline(always)]
    fn accept<S: EventSink>(
        &mut self,
        at: &Moment,
        security_id: i32,
        rpt_seq: u32,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<usize> {
        let Some(index) = self.wanted(security_id, counters) else {
            self.pass_over(security_id, counters);
            return None;
        };
        self.is_new(at, index, rpt_seq, counters, out).then_some(index)
    }

    /// Whether an instrument's entry is not known from a snapshot. A hole in the numbers makes the book
    /// stale.
    #[inline(always)]
    fn is_new<S: EventSink>(
        &mut self,
        at: &Moment,
        index: usize,
        rpt_seq: u32,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> bool {
        let followed = &mut self.followed[index];
        if rpt_seq != followed.rpt_seq.wrapping_add(1) || followed.trust == Trust::Doubtful {
            return self.is_new_otherwise(at, index, rpt_seq, counters, out);
        }
        followed.rpt_seq = rpt_seq;
        true
    }

    /// An entry that is not simply the next one of its instrument.
    #[cold]
    fn is_new_otherwise<S: EventSink>(
        &mut self,
        at: &Moment,
        index: usize,
        rpt_seq: u32,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> bool {
        let followed = &mut self.followed[index];
        let last = followed.rpt_seq;
        if last == 0 && rpt_seq > 1 && followed.trust == Trust::Sound && !self.refreshes.is_empty() {
            // Entries came before the first that is seen: the rows are learned.
            self.distrust(at, index, out);
        }
        let followed = &mut self.followed[index];
        if last != 0 && rpt_seq <= last {
            counters.bump(Counter::MessagesDuplicate);
            return false;
        }
        followed.rpt_seq = rpt_seq;
        let is_next = rpt_seq == last.wrapping_add(1);
        if followed.trust == Trust::Doubtful {
            // What was lost was not about this instrument, or its book begins from nothing.
            match is_next {
                true => self.trust(at, index, out),
                false => self.begin_refresh(index),
            }
        }
        if last != 0 && !is_next {
            counters.add(Counter::MessagesLost, u64::from(rpt_seq - last - 1));
            self.distrust(at, index, out);
        }
        true
    }

    /// Entries that say nothing to a book: only their numbers count.
    fn follow<S: EventSink>(
        &mut self,
        context: Context,
        root: EventRoot,
        entries: impl Iterator<Item = (i32, u32)>,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> u8 {
        let at = &Moment {
            context,
            time: Nanos(root.transact_time.get()),
        };
        for (security_id, rpt_seq) in entries {
            self.accept(at, security_id, rpt_seq, counters, out);
        }
        root.indicator
    }

    #[inline(always)]
    fn level<S: EventSink>(
        &mut self,
        at: &Moment,
        entry: LevelEntry,
        row: impl FnOnce() -> Option<Row>,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<()> {
        if entry.entry_type == EntryType::BookReset as u8 {
            self.reset(at, out);
            return Some(());
        }
        let Some(index) = self.wanted(entry.security_id, counters) else {
            self.pass_over(entry.security_id, counters);
            return Some(());
        };
        if self.depth == Mdp3Depth::ByOrder {
            self.is_new(at, index, entry.rpt_seq, counters, out);
            return Some(());
        }
        // All of it is read before its number counts: an entry that cannot be read is one that is missing.
        let Some((side, is_implied)) = EntryType::from_wire(entry.entry_type)?.book_side() else {
            // The market's best (of schema version 12 on) is no row of a book.
            self.is_new(at, index, entry.rpt_seq, counters, out);
            return Some(());
        };
        let action = UpdateAction::from_wire(entry.action);
        let action = action?;
        let row = row()?;
        if !self.is_new(at, index, entry.rpt_seq, counters, out) || is_implied && !self.implied {
            return Some(());
        }
        if self.followed[index].trust == Trust::Rebuilding {
            self.refresh_level(at, index, (side, is_implied), action, entry.level, row, out);
            return Some(());
        }
        let changed = |price, total| out.push(level_event(at, index, side, price, total));
        if self.rows[index]
            .apply(side, is_implied, action, entry.level, row, changed)
            .is_none()
        {
            // The venue's rows and ours differ: its book cannot be followed until its next snapshot.
            crate::decoder::count_bad_value(counters);
            self.distrust(at, index, out);
        }
        Some(())
    }

    /// By order, which is for the caller to ask: the orders of a message of price levels. `place` is where
    /// the level of a number stands.
    fn referred_orders<S: EventSink>(
        &mut self,
        at: &Moment,
        orders: impl Iterator<Item = OrderEntry>,
        place: impl Fn(usize) -> Option<(i32, u8, Option<Price>)>,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<()> {
        for order in orders {
            let place = reference(&order).and_then(&place);
            self.referred_order(at, place, &order, counters, out)?;
        }
        Some(())
    }

    /// An order whose instrument, side and price are those of a price level of the same message.
    fn referred_order<S: EventSink>(
        &mut self,
        at: &Moment,
        place: Option<(i32, u8, Option<Price>)>,
        order: &OrderEntry,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<()> {
        let (security_id, entry_type, price) = place?;
        let Some(index) = self.wanted(security_id, counters) else {
            return Some(());
        };
        let action = OrderAction::from_wire(order.action);
        let update = OrderUpdate {
            index,
            action: action?,
            order: order.order_id.get(),
            priority: order.priority.get().map_or(0, |n| n.get()),
            side: book_side(entry_type)?.0,
            price: price.unwrap_or_default(),
            qty: quantity(order.display_qty.get().map(|n| n.get().into()))?,
        };
        self.order(at, update, out);
        Some(())
    }

    pub(super) fn order<S: EventSink>(&mut self, at: &Moment, update: OrderUpdate, out: &mut Tail<'_, S>) {
        if !at.context.flags.has(EventFlags::SNAPSHOT) {
            let followed = &mut self.followed[update.index];
            if at.context.seq.0 <= followed.covered {
                return;
            }
            followed.touched = at.context.seq.0;
            if followed.trust != Trust::Sound {
                // A snapshot that has come in part does not hold this.
                self.known[update.index].chunk = 0;
            }
        }
        let now = (update.priority, update.qty);
        let (kind, flags) = match update.action {
            OrderAction::New => {
                self.resting.set(update.order, now, update.index);
                (EventKind::Add, EventFlags::NONE)
            }
            OrderAction::Update => {
                let is_shown_again = self.resting.take_executed(at.time, update.order);
                match self.resting.set(update.order, now, update.index) {
                    _ if is_shown_again => (EventKind::Add, EventFlags::NONE),
                    // That was told as an execution.
                    Some(before) if before == now && self.resting.tells_executions() => return,
                    Some((priority, _)) if priority == update.priority => {
                        (EventKind::Modify, EventFlags::KEEPS_PRIORITY)
                    }
                    _ => (EventKind::Modify, EventFlags::NONE),
                }
            }
            OrderAction::Delete if self.resting.take_executed(at.time, update.order) => return,
            OrderAction::Delete => {
                self.resting.remove(update.order);
                let deleted = about(at, EventKind::Delete, update.index);
                return out.push(MarketEvent {
                    order_id: OrderId(update.order),
                    ..deleted
                });
            }
        };
        out.push(MarketEvent {
            order_id: OrderId(update.order),
            side: update.side,
            price: update.price,
            qty: Volume(update.qty),
            flags: at.context.flags.with(flags),
            ..about(at, kind, update.index)
        });
    }

    fn trade<S: EventSink>(
        &mut self,
        at: &Moment,
        trade: Trade,
        fills: impl Iterator<Item = (u64, u64)>,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) {
        let index = match self.accept(at, trade.security_id, trade.rpt_seq, counters, out) {
            Some(index) if self.only.is_none() => index,
            // What was held was told as a trade when it came.
            Some(_) => return,
            None => match self.joining(trade.security_id) {
                Some(index) => index,
                None => return,
            },
        };
        let (side, no_side) = match trade.aggressor.unwrap_or(0) {
            1 => (Side::Bid, EventFlags::NONE),
            2 => (Side::Ask, EventFlags::NONE),
            _ => (Side::Bid, EventFlags::NO_SIDE),
        };
        let ref_id = u64::from(trade.id);
        let mut rest = trade.qty;
        if self.resting.tells_executions() && trade.action == UpdateAction::New as u8 {
            let has_aggressor = no_side == EventFlags::NONE;
            // Who takes stands first, where he was before he came.
            for (order, qty) in fills.skip(usize::from(has_aggressor)) {
                let Some(done) = self.execute(at, index, order, qty) else {
                    continue;
                };
                rest = rest.saturating_sub(done);
                out.push(MarketEvent {
                    side: !side,
                    price: trade.price,
                    qty: Volume(done),
                    order_id: OrderId(order),
                    ref_id,
                    flags: at.context.flags.with(EventFlags::AT_OTHER_PRICE),
                    ..about(at, EventKind::Execute, index)
                });
            }
            if rest == 0 {
                return;
            }
        }
        if trade.action != UpdateAction::New as u8 {
            out.push(MarketEvent {
                ref_id,
                ..about(at, EventKind::TradeBreak, index)
            });
        }
        if trade.action != UpdateAction::Delete as u8 {
            out.push(MarketEvent {
                side,
                price: trade.price,
                qty: Volume(rest),
                ref_id,
                flags: at.context.flags.with(no_side),
                ..about(at, EventKind::Trade, index)
            });
        }
    }

    /// An order that rests is executed: how much of it. What a snapshot has told already, or makes good soon,
    /// is not.
    fn execute(&mut self, at: &Moment, index: usize, order: u64, qty: u64) -> Option<u64> {
        let followed = &self.followed[index];
        let is_followed = followed.trust == Trust::Sound && at.context.seq.0 > followed.covered;
        if !is_followed || at.context.flags.has(EventFlags::SNAPSHOT) {
            return None;
        }
        self.resting.execute(at.time, index, order, qty)
    }

    /// The status of one instrument, or of all of a product or group, one event each.
    #[allow(clippy::too_many_arguments, reason = "the fields of one message")]
    fn status<S: EventSink>(
        &mut self,
        at: &Moment,
        security_id: Option<i32>,
        security_group: [u8; 6],
        asset: [u8; 6],
        code: u8,
        why: [u8; 8],
        out: &mut Tail<'_, S>,
    ) {
        if let Some(security_id) = security_id {
            if let Some(index) = self.securities.find(security_id) {
                self.status_of(at, index as usize, code, why, out);
            }
            return;
        }
        let fits = |wanted: [u8; 6], have: [u8; 6]| wanted == [0; 6] || wanted == have;
        for index in 1..=self.securities.len() {
            let known = &self.known[index];
            let is_defined = self.filter.instrument(InstrumentId(index as u32)).is_some();
            if is_defined && fits(security_group, known.security_group) && fits(asset, known.asset) {
                self.status_of(at, index, code, why, out);
            }
        }
    }

    /// The status of an instrument as a message, a snapshot or a definition has it. What its last snapshot
    /// said holds until the packets after it.
    pub(super) fn status_of<S: EventSink>(
        &mut self,
        at: &Moment,
        index: usize,
        code: u8,
        why: [u8; 8],
        out: &mut Tail<'_, S>,
    ) {
        let is_live = !at.context.flags.has(EventFlags::SNAPSHOT);
        let Some(status) =
            trading_status(code).filter(|_| !is_live || at.context.seq.0 > self.known[index].status_at)
        else {
            return;
        };
        self.note_status(index, code, self.known[index].status_at);
        let id = InstrumentId(index as u32);
        if self.filter.has(id) || self.filter.joins.has(id) {
            out.push(MarketEvent {
                status,
                code: why,
                ..about(at, EventKind::Status, index)
            });
        }
    }

    /// Keeps count of the defined instruments whose day is over.
    pub(super) fn note_status(&mut self, index: usize, code: u8, status_at: u64) {
        let is_over = |code: u8| {
            let code = TradingStatusCode::from_wire(code);
            matches!(
                code,
                Some(TradingStatusCode::Close | TradingStatusCode::NotAvailable)
            )
        };
        let known = &mut self.known[index];
        self.closed -= u32::from(is_over(known.status));
        self.closed += u32::from(is_over(code));
        (known.status, known.status_at) = (code, status_at);
    }

    /// All books of the channel are void.
    fn reset<S: EventSink>(&mut self, at: &Moment, out: &mut Tail<'_, S>) {
        self.forget_books();
        out.push(about(at, EventKind::Clear, 0));
        self.say_statuses(at, out);
    }
}

/// A price whose mantissa has 7 decimals on the wire and was read as if it had 9; `None` when it is out of
/// range.
fn of_old(price: Price) -> Option<Price> {
    price.raw().checked_mul(100).map(Price::from_raw)
}

/// Which entry of its message an order refers to, counted from 0.
fn reference(order: &OrderEntry) -> Option<usize> {
    usize::from(order.reference_id.get()?).checked_sub(1)
}
