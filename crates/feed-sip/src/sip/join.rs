//! Instruments subscribed to in mid-session: of a national best each side is right once it has been said, by
//! a quote or by a snapshot that goes far enough; of participants, each one that has quoted since, or that a
//! whole turn has said.
//!
//! Quotes say what stands, not what changed. So nothing has to be held: what a snapshot says counts where
//! nothing has been said since the subscription, whatever came first.

use super::{Best, Followed, PARTIAL, PARTICIPANTS, Quoted, STOOD, Sip, Standing, UNSURE, UNTOLD, bit};
use crate::decoder::{Context, StreamEvent};
use tickwire_market::{EventFlags, EventSink, InstrumentId, MarketEvent, SeqNo};
use tickwire_wire_core::layout::Char;
use tickwire_wire_sip::PaddedSymbol;

impl Sip {
    /// An instrument is wanted from now on, when `next` is the next message.
    pub(crate) fn join(&mut self, id: InstrumentId, next: SeqNo) {
        let room = self.followed.len();
        let Some(followed) = self.followed.get_mut(id.index()) else {
            return;
        };
        *followed = Followed {
            passed: followed.passed,
            unsure: UNSURE | PARTIAL,
            ..Followed::default()
        };
        if !self.standing.is_empty() {
            for column in 0..PARTICIPANTS {
                self.standing[column * room + id.index()] = Standing::default();
            }
        }
        self.filter.join(id, next);
    }

    /// What happens to the line: a snapshot of participants' quotes changes nothing of what stands.
    pub(crate) fn on_stream(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Restarted | StreamEvent::SnapshotBegins => self.forget_quotes(),
            StreamEvent::Subscribed(next) => self.subscribed(next),
            _ => {}
        }
    }

    /// Something was subscribed to when `next` was the next message: symbols not seen before may have had
    /// quotes.
    fn subscribed(&mut self, next: SeqNo) {
        if self.learns && !self.did_learn {
            self.learns_since = next.0;
        }
    }

    /// Whether snapshots of instruments are waited for.
    pub(crate) fn has_joins(&self) -> bool {
        !self.filter.joins.is_empty()
    }

    /// The instrument of a snapshot's message that goes up to `last`, if it joins and that is far enough.
    pub(crate) fn joining(&self, symbol: PaddedSymbol, last: u64) -> Option<InstrumentId> {
        let id = InstrumentId(self.symbols.wanted(symbol));
        self.filter.joins.covers(id, last).then_some(id)
    }

    /// Whether its participant has not quoted since the subscription.
    pub(crate) fn lacks(&self, id: InstrumentId, participant: u8) -> bool {
        self.followed[id.index()].quoting & bit(participant) == 0
    }

    /// Whether a snapshot's status and limit prices have yet to be told; from now on they have.
    pub(crate) fn stands_now(&mut self, id: InstrumentId) -> bool {
        let unsure = &mut self.followed[id.index()].unsure;
        let is_new = *unsure & STOOD == 0;
        *unsure |= STOOD;
        is_new
    }

    /// A snapshot's national best: of the sides that nothing has been said of since the subscription.
    pub(crate) fn tell_missing<S: EventSink>(
        &mut self,
        event: &MarketEvent,
        best: [Best; 2],
        luld: Char,
        sink: &mut S,
    ) {
        let followed = &mut self.followed[event.instrument.index()];
        if followed.unsure & UNSURE == 0 {
            return;
        }
        let mut all = followed.national;
        for (side, best) in best.into_iter().enumerate() {
            if followed.unsure >> side & 1 != 0 {
                all[side] = best;
            }
        }
        self.tell_national(event, all, luld, sink);
    }

    /// A whole turn of the snapshot stream was heard, which began when it held everything up to `first`: what
    /// it did not say of instruments that joined before does not stand.
    pub(crate) fn end_turn<S: EventSink>(&mut self, first: u64, context: Context, sink: &mut S) {
        for number in 1..self.numbers_used() as u32 {
            let id = InstrumentId(number);
            if !self.filter.joins.is_met(id, first) {
                continue;
            }
            let event = self.event(context, id, tickwire_market::Nanos::ZERO);
            self.tell_missing(&event, [Best::default(); 2], Char::SPACE, sink);
            self.filter.joins.end(id);
            self.followed[id.index()].unsure &= !(PARTIAL | STOOD | UNTOLD);
        }
    }

    /// Tells a participant's quote of a snapshot.
    pub(crate) fn tell_missing_quote<S: EventSink>(
        &mut self,
        context: Context,
        id: InstrumentId,
        quoted: &Quoted,
        sink: &mut S,
    ) {
        if self.lacks(id, quoted.own[0].participant) {
            let context = Context {
                flags: context.flags.with(EventFlags::LAST),
                ..context
            };
            self.tell_quote(context, id, tickwire_market::Nanos::ZERO, quoted, sink);
        }
    }
}
