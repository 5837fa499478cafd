//! Instruments subscribed to in mid-session: their messages are held until the loop has brought their
//! snapshots.
//!
//! A snapshot counts if everything behind it is held. Its book is told, then what is held behind it, as far
//! as the instrument's own numbers say that it is new. Trades and status have nothing to wait for and are
//! told when they come.

use super::event::{Moment, Tail, about};
use super::{Left, MET_MAX, Mdp3Decoder, Trust};
use crate::decoder::Context;
use crate::mdp3::Followed;
use tickwire_market::{Counters, EventFlags, EventKind, EventSink, InstrumentId, SeqNo};
use tickwire_wire_cme::mdp3::{self, Book, OrderBook, TradeSummary};

impl Mdp3Decoder {
    /// An instrument is wanted from now on, when `next` is the next packet: its book is not right before its
    /// snapshot has come, or its rows have been learned anew where there are no snapshots.
    pub(super) fn begin_join(&mut self, index: usize, next: u64) {
        let id = InstrumentId(index as u32);
        self.unsound += u32::from(self.followed[index].trust == Trust::Sound);
        self.followed[index] = Followed {
            trust: Trust::Stale,
            passed: self.followed[index].passed,
            ..Followed::default()
        };
        self.known[index].chunk = 0;
        if let Some(rows) = self.rows.get_mut(index) {
            rows.clear();
        }
        if self.refreshes_naturally() {
            self.filter.joins.expect(id);
            self.begin_refresh(index);
        } else {
            self.filter.join(id, SeqNo(next));
        }
        (self.latest, self.shut) = (None, None);
    }

    /// An instrument is wanted no more.
    pub(super) fn leave(&mut self, index: usize) {
        let id = InstrumentId(index as u32);
        self.filter.joins.leave(id);
        self.filter.set_open(id, false);
        (self.latest, self.shut) = (None, None);
        Left {
            followed: &mut self.followed,
            unsound: &mut self.unsound,
            resting: &mut self.resting,
        }
        .take_note(index);
    }

    /// All books begin anew: nothing that joins needs a snapshot of its own.
    pub(super) fn open_all(&mut self) {
        self.filter.open_all();
        self.in_message.met.clear();
        (self.latest, self.shut) = (None, None);
    }

    /// An entry does not pass. Whether that is because its instrument joins is noted.
    #[cold]
    #[inline(never)]
    pub(super) fn shut(&mut self, security_id: i32) {
        self.shut = None;
        if self.only.is_some() {
            self.shut = Some(security_id);
            return;
        }
        let Some(position) = self.securities.find(security_id) else {
            return;
        };
        if self.filter.joins.has(InstrumentId(position)) {
            self.shut = Some(security_id);
            if self.in_message.met.len() < MET_MAX && !self.in_message.met.contains(&position) {
                self.in_message.met.push(position);
            }
        }
    }

    /// The instrument of a trade whose entry did not pass, if it joins.
    #[cold]
    #[inline(never)]
    pub(super) fn joining(&self, security_id: i32) -> Option<usize> {
        let position = self.securities.find(security_id)?;
        let joins = self.shut == Some(security_id) && self.only.is_none();
        (joins && self.filter.joins.has(InstrumentId(position))).then_some(position as usize)
    }

    /// A message with entries of instruments that join has been read.
    #[cold]
    #[inline(never)]
    pub(super) fn hold(&mut self, context: Context, bytes: &[u8]) {
        for at in 0..self.in_message.met.len() {
            let id = InstrumentId(self.in_message.met[at]);
            self.filter
                .joins
                .hold((id, context.seq, context.received, 0), bytes);
        }
        self.in_message.met.clear();
    }

    /// The snapshot of an instrument that joins has been told, which goes up to `last_packet`: what is held
    /// behind it follows.
    #[cold]
    #[inline(never)]
    pub(super) fn end_join<S: EventSink>(
        &mut self,
        at: &Moment,
        index: usize,
        last_packet: u64,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) {
        let id = InstrumentId(index as u32);
        self.unsound -= u32::from(self.followed[index].trust != Trust::Sound);
        self.followed[index].trust = Trust::Sound;
        self.filter.set_open(id, true);
        (self.only, self.latest) = (Some(id.0), None);
        let held = self.filter.joins.take_held();
        for (record, bytes) in held.of(id, last_packet) {
            let context = Context {
                seq: record.seq,
                received: record.received,
                flags: EventFlags::NONE,
            };
            if self.tell_again(context, bytes, counters, out).is_none() {
                crate::decoder::count_bad_value(counters);
            }
        }
        self.filter.joins.give_back(held);
        (self.only, self.latest, self.shut) = (None, None, None);
        if self.followed[index].trust != Trust::Sound {
            // Its numbers had a hole.
            self.filter.joins.tally.failed += u64::from(self.filter.joins.end(id));
        } else {
            self.filter.joins.finish(id);
            out.push(about(at, EventKind::Recovered, index));
        }
    }

    #[inline(never)]
    fn tell_again<S: EventSink>(
        &mut self,
        context: Context,
        bytes: &[u8],
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> Option<u8> {
        match mdp3::template(bytes) {
            Some(Book::TEMPLATE) => Book::read(bytes).and_then(|m| self.book(context, &m, counters, out)),
            Some(OrderBook::TEMPLATE) => {
                OrderBook::read(bytes).and_then(|m| self.order_book(context, &m, counters, out))
            }
            Some(TradeSummary::TEMPLATE) => {
                TradeSummary::read(bytes).and_then(|m| self.trades(context, &m, counters, out))
            }
            _ => mdp3::parse(bytes)
                .ok()
                .and_then(|m| self.message(context, &m, counters, out)),
        }
    }
}
