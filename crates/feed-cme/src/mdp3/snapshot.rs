//! The loops of books: each instrument's snapshot, by price in one message, by order in chunks.

use super::event::{Moment, OrderUpdate, Tail, about, book_side, level_event, quantity, trading_status};
use super::rows::{Row, Rows};
use super::{Followed, Mdp3Decoder, Mdp3Depth, Trust};
use crate::decoder::Context;
use tickwire_market::{
    Counters, DynSink, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, SeqNo, Side,
};
use tickwire_wire_cme::mdp3::{self, EntryType, OrderAction, SnapshotRoot, UpdateAction};

/// A turn of the snapshot loop being taken.
#[derive(Clone, Copy, Default)]
pub(super) struct Turn {
    number: u32,
    /// Books are taken for the whole feed; otherwise only for instruments whose books are not sound.
    is_open: bool,
    /// Snapshots that end before this packet are too old: the packets after them are not held.
    floor: u64,
    /// Those that end at this packet or behind it are of other numbers than the lines'.
    ceiling: u64,
    taken: u32,
    total: Option<u32>,
    /// The oldest snapshot taken.
    oldest: u64,
}

impl Mdp3Decoder {
    /// Begins to take snapshots: only those that hold all packets before `floor` count. All books are void;
    /// statuses stand until a snapshot says another.
    pub(crate) fn begin_turn(&mut self, now: Nanos, floor: SeqNo, sink: &mut dyn EventSink) {
        self.forget_books();
        let (number, ceiling) = (self.turn.number + 1, self.turn.ceiling);
        self.turn = Turn {
            number,
            ceiling,
            is_open: true,
            floor: floor.0,
            oldest: u64::MAX,
            ..Turn::default()
        };
        let context = Context {
            seq: SeqNo(0),
            received: now,
            flags: EventFlags::SNAPSHOT,
        };
        let time = Nanos::ZERO;
        let mut sink = DynSink(sink);
        let mut out = Tail::new(&mut sink);
        self.say_statuses(&Moment { context, time }, &mut out);
        out.end();
    }

    /// A clear of the whole feed has made void what was told of statuses: those that stand are told again.
    pub(super) fn say_statuses<S: EventSink>(&self, at: &Moment, out: &mut Tail<'_, S>) {
        for index in 1..=self.securities.len() {
            let id = InstrumentId(index as u32);
            if let Some(status) = trading_status(self.known[index].status)
                && (self.filter.has(id) || self.filter.joins.has(id))
            {
                out.push(MarketEvent {
                    status,
                    ..about(at, EventKind::Status, index)
                });
            }
        }
    }

    /// No snapshot can hold what is sent behind this packet.
    pub(crate) fn set_ceiling(&mut self, ceiling: SeqNo) {
        self.turn.ceiling = ceiling.0;
    }

    /// The feed goes on.
    pub(crate) fn end_turn(&mut self) {
        self.turn.is_open = false;
    }

    /// Packets before `floor` are not held any more. Whether a snapshot already taken needs one of them: the
    /// turn must then begin anew.
    pub(crate) fn raise_floor(&mut self, floor: SeqNo) -> bool {
        self.turn.floor = self.turn.floor.max(floor.0);
        self.turn.taken > 0 && self.turn.oldest.saturating_add(1) < floor.0
    }

    /// How many instruments were taken of how many; with the packet to go on from when that is all of them.
    pub(crate) fn turn(&self) -> (u32, Option<u32>, Option<SeqNo>) {
        let Turn {
            taken, total, oldest, ..
        } = self.turn;
        let complete = total.is_some_and(|total| taken >= total);
        (taken, total, complete.then(|| SeqNo(oldest.saturating_add(1))))
    }

    pub(super) fn forget_books(&mut self) {
        self.open_all();
        self.rows.iter_mut().for_each(Rows::clear);
        self.resting.clear();
        for followed in &mut self.followed {
            *followed = Followed {
                passed: followed.passed,
                ..Followed::default()
            };
        }
        for known in &mut self.known {
            (known.chunk, known.chunk_of, known.rpt_seq) = (0, 0, (0, 0));
        }
        self.unsound = 0;
    }

    /// The instrument of a snapshot that is wanted now: not yet taken in this turn of the loop and new
    /// enough; or, while the feed goes on, of a book that is not sound and has seen nothing later. `rpt_seq`
    /// is 0 where the snapshot has none.
    fn takes(
        &mut self,
        security_id: i32,
        last_packet: u32,
        rpt_seq: u32,
        total: u32,
        counters: &mut Counters,
    ) -> Option<usize> {
        if u64::from(last_packet) >= self.turn.ceiling {
            return None;
        }
        let index = self.enter(security_id, counters)?;
        let (followed, known) = (&self.followed[index], &self.known[index]);
        let counts = if self.turn.is_open {
            self.turn.total = Some(total);
            u64::from(last_packet) + 1 >= self.turn.floor && known.taken != self.turn.number
        } else if self.filter.joins.has(InstrumentId(index as u32)) {
            self.filter
                .joins
                .covers(InstrumentId(index as u32), last_packet.into())
        } else {
            followed.trust != Trust::Sound
                && (self.depth == Mdp3Depth::ByOrder || rpt_seq >= followed.rpt_seq)
                && u64::from(last_packet) >= followed.touched
        };
        counts.then_some(index)
    }

    fn took(&mut self, index: usize, last_packet: u32, rpt_seq: u32) {
        let followed = &mut self.followed[index];
        (followed.rpt_seq, followed.covered) = (rpt_seq, last_packet.into());
        self.known[index].chunk = 0;
        if self.turn.is_open {
            self.known[index].taken = self.turn.number;
            self.turn.taken += 1;
            self.turn.oldest = self.turn.oldest.min(last_packet.into());
        }
    }

    /// The status in a snapshot, which stands in the messages by price of both loops.
    fn snapshot_status<S: EventSink>(
        &mut self,
        at: &Moment,
        index: usize,
        root: &SnapshotRoot,
        out: &mut Tail<'_, S>,
    ) {
        let last_packet = u64::from(root.last_seq_processed.get());
        let known = &mut self.known[index];
        let is_news = last_packet > known.status_at
            && root.trading_status.get().is_some_and(|code| code != known.status);
        known.status_at = known.status_at.max(last_packet);
        if let Some(code) = root.trading_status.get().filter(|_| is_news) {
            self.status_of(at, index, code, [0; 8], out);
        }
    }

    /// Statistics and status of an instrument in the loop by order; its orders follow.
    pub(super) fn snapshot_statistics<S: EventSink>(
        &mut self,
        context: Context,
        root: &SnapshotRoot,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) {
        let (security_id, last_packet) = (root.security_id.get(), root.last_seq_processed.get());
        let total = root.total_reports.get();
        let taken = self.takes(security_id, last_packet, 0, total, counters);
        let Some(index) = taken else { return };
        let at = &Moment {
            context,
            time: Nanos(root.transact_time.get()),
        };
        self.known[index].rpt_seq = (root.rpt_seq.get(), last_packet);
        self.snapshot_status(at, index, root, out);
    }

    pub(super) fn snapshot<S: EventSink>(
        &mut self,
        context: Context,
        root: &SnapshotRoot,
        levels: &mut [(EntryType, u8, Row)],
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) {
        let (security_id, last_packet) = (root.security_id.get(), root.last_seq_processed.get());
        let (rpt_seq, total) = (root.rpt_seq.get(), root.total_reports.get());
        let Some(index) = self.takes(security_id, last_packet, rpt_seq, total, counters) else {
            return;
        };
        self.took(index, last_packet, rpt_seq);
        let joins = self.joins_now(index);
        if !joins && !self.filter.has(InstrumentId(index as u32)) {
            return;
        }
        let at = &Moment {
            context,
            time: Nanos(root.transact_time.get()),
        };
        out.push(about(at, EventKind::Clear, index));
        if joins {
            out.push(about(at, EventKind::Gap, index));
        }
        self.rows[index].clear();
        levels.sort_unstable_by_key(|(_, level, _)| *level);
        for &(entry_type, level, row) in levels.iter() {
            let Some((side, is_implied)) = entry_type
                .book_side()
                .filter(|(_, implied)| self.implied || !implied)
            else {
                continue;
            };
            if self.rows[index]
                .apply(side, is_implied, UpdateAction::New, level, row, |_, _| ())
                .is_none()
            {
                crate::decoder::count_bad_value(counters);
            }
        }
        for side in Side::BOTH {
            for (price, total) in self.rows[index].levels(side).filter(|(_, total)| total.qty > 0) {
                out.push(level_event(at, index, side, price, total));
            }
        }
        match joins {
            true => self.end_join(at, index, last_packet.into(), counters, out),
            false => self.trust(at, index, out),
        }
        self.snapshot_status(at, index, root, out);
    }

    /// Whether a snapshot is for an instrument that joins while the feed goes on.
    fn joins_now(&self, index: usize) -> bool {
        !self.turn.is_open && self.filter.joins.has(InstrumentId(index as u32))
    }

    /// A chunk of an instrument's orders. A chunk missing leaves the instrument to the next turn of the loop.
    pub(super) fn snapshot_orders<S: EventSink>(
        &mut self,
        context: Context,
        m: &mdp3::SnapshotOrders<'_>,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<()> {
        let root = m.root.get();
        let (last_packet, chunk) = (root.last_seq_processed.get(), root.current_chunk.get());
        let taken = self.takes(
            root.security_id.get(),
            last_packet,
            0,
            root.total_reports.get(),
            counters,
        );
        let Some(index) = taken else { return Some(()) };
        let joins = self.joins_now(index);
        let wanted = joins || self.filter.has(InstrumentId(index as u32));
        let at = &Moment {
            context,
            time: Nanos(root.transact_time.get()),
        };
        let is_sound = self.followed[index].trust == Trust::Sound;
        let known = &mut self.known[index];
        if chunk == 1 {
            (known.chunk, known.chunk_of) = (1, last_packet);
            if wanted {
                out.push(about(at, EventKind::Clear, index));
            }
            if wanted && !is_sound {
                // Cleared it would count as right, and that it is with the last chunk only.
                out.push(about(at, EventKind::Gap, index));
            }
        } else if (chunk, last_packet) != (known.chunk, known.chunk_of) {
            return Some(());
        }
        for e in m.entries.filter(|_| wanted) {
            let update = OrderUpdate {
                index,
                action: OrderAction::New,
                order: e.order_id.get(),
                priority: e.priority.get().map_or(0, |n| n.get()),
                side: book_side(e.entry_type.0)?.0,
                price: e.price.price(),
                qty: quantity(Some(e.display_qty.get().into()))?,
            };
            self.order(at, update, out);
        }
        self.known[index].chunk = chunk.saturating_add(1);
        if chunk >= root.chunks.get() {
            let (rpt_seq, packet) = self.known[index].rpt_seq;
            self.took(
                index,
                last_packet,
                if packet == last_packet { rpt_seq } else { 0 },
            );
            match joins {
                true => self.end_join(at, index, last_packet.into(), counters, out),
                false => self.trust(at, index, out),
            }
        }
        Some(())
    }
}

/// Keeps an entry of a snapshot if it is of the book.
pub(super) fn collect(
    levels: &mut [(EntryType, u8, Row)],
    count: &mut usize,
    entry_type: u8,
    level: u8,
    row: Row,
) -> Option<()> {
    let Some(entry_type) = EntryType::from_wire(entry_type).filter(|e| e.book_side().is_some()) else {
        return Some(());
    };
    let free = levels.get_mut(*count)?;
    *free = (entry_type, level, row);
    *count += 1;
    Some(())
}
