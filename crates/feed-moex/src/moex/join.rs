//! Instruments subscribed to in mid-session: packets with their orders are held until the loop has brought
//! their snapshots.
//!
//! A snapshot counts if everything behind it is held. Its orders are told, then what is held behind it, as
//! far as the instrument's own numbers say that it is new. A message that empties the book makes it right
//! without one.

use super::{Fragments, Instruments, MoexDecoder, about};
use crate::decoder::Context;
use tickwire_market::{Counters, DynSink, EventFlags, EventKind, EventSink, InstrumentId, SeqNo};
use tickwire_wire_moex::moex::{BookEntry, MessageKind, OrderKind};

impl Instruments {
    /// An instrument is wanted from now on, when `next` is the next packet. Whether its book has to be made
    /// right: a trade log has none.
    pub(super) fn begin_join(&mut self, id: InstrumentId, next: SeqNo) -> bool {
        let is_trade_log = self.filter.seen_of_type(MessageKind::Trades as usize).seen > 0;
        let followed = &mut self.followed[id.index()];
        (followed.rpt_seq, followed.is_known, followed.is_new) = (0, false, is_trade_log);
        followed.fragments = Fragments::default();
        if !is_trade_log {
            self.filter.join(id, next);
        }
        !is_trade_log
    }

    /// An entry of an instrument that joins.
    #[cold]
    #[inline(never)]
    pub(super) fn hold<S: EventSink>(
        &mut self,
        context: Context,
        index: usize,
        order: Option<&BookEntry>,
        packet: &[u8],
        sink: &mut S,
    ) {
        let id = InstrumentId(index as u32);
        match order {
            Some(order) if !matches!(order.kind, OrderKind::Order(_)) => {
                self.filter.open(id);
                let followed = &mut self.followed[index];
                (followed.rpt_seq, followed.is_known) = (order.rpt_seq, true);
                for kind in [EventKind::Clear, EventKind::Recovered] {
                    self.held.push(about(context, kind, index), sink);
                }
            }
            _ => self
                .filter
                .joins
                .hold((id, context.seq, context.received, 0), packet),
        }
    }
}

impl MoexDecoder {
    /// The snapshot of an instrument that joins has been told, which goes up to `last_packet`: what is held
    /// behind it follows.
    #[cold]
    #[inline(never)]
    pub(super) fn end_join(
        &mut self,
        context: Context,
        id: InstrumentId,
        last_packet: u32,
        counters: &mut Counters,
        sink: &mut DynSink<'_>,
    ) {
        let MoexDecoder { wire, books } = self;
        let index = id.index();
        let was_torn = core::mem::take(&mut books.is_torn);
        let held = books.filter.joins.take_held();
        for (record, packet) in held.of(id, last_packet.into()) {
            let context = Context {
                seq: record.seq,
                received: record.received,
                flags: EventFlags::NONE,
            };
            // It was read when it was held.
            let Ok(message) = wire.packet(packet) else {
                continue;
            };
            let mut orders = message.orders();
            while let Some(unread) = orders.next_unread() {
                if books.enter(context, orders.instrument(&unread), counters, sink) != Some(index) {
                    continue;
                }
                match orders.book_entry(&unread) {
                    Ok(order) => books.order(context, index, order, counters, sink),
                    Err(_) => {
                        crate::decoder::count_bad_value(counters);
                        books.tear(context, index, sink);
                    }
                }
            }
        }
        books.filter.joins.give_back(held);
        books.filter.set_open(id, true);
        if books.is_torn {
            // The numbers have a hole: right is it with the next turn of the loop.
            books.filter.joins.tally.failed += u64::from(books.filter.joins.end(id));
        } else {
            books.filter.joins.finish(id);
            books.held.push(about(context, EventKind::Recovered, index), sink);
        }
        books.is_torn |= was_torn;
        books.held.finish(true, sink);
    }
}
