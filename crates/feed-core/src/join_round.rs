//! Instruments subscribed to in mid-session: their books are made right by the venue's snapshot while all
//! others go on.
//!
//! ```text
//!            subscribed                     the snapshot begins          it ends, and holds        the live stream has
//!            Gap is told                                                 all before `next`         reached `next`
//!   ┌──────┐ ──────────► ┌────────┐ ───────────────────► ┌─────────┐ ──────────► ┌────────┐ ───────────────────► done:
//!   │ idle │             │ wanted │                      │ loading │             │ loaded │   held messages from `next` on,
//!   └──────┘             └────────┘ ◄─────────────────── └─────────┘             └────────┘   then Recovered is told
//!                             ▲      refused, cut, too old                            │
//!                             └────────── more held back than there is room for ◄─────┘
//! ```
//! Live messages that may be about a joining instrument are held back as bytes, from before the snapshot is
//! asked for. Of the snapshot only what is about joining instruments is read. An instrument subscribed to
//! while a snapshot is loaded waits for the next one. A snapshot of the whole feed, a new session or a clear
//! of everything make right what joins, too.
//!
//! When the held messages have no more room, all are dropped and the join begins again, counted as
//! [`Counter::JoinsFailed`](tickwire_market::Counter); the books stay marked meanwhile.

use crate::decoder::Context;
use crate::joins::JoinTally;
use alloc::{boxed::Box, vec, vec::Vec};
use tickwire_market::{EventFlags, InstrumentId, Nanos, SeqNo};

/// How far the instruments that join are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// There are none.
    Idle,
    /// Messages are held back; a snapshot is to be loaded.
    Wanted,
    /// Its messages come.
    Loading,
    /// It holds everything before this message, which the live stream has not reached.
    Loaded(SeqNo),
}

/// A set of instruments: a bit each.
pub(crate) struct Ids {
    words: Box<[u64]>,
    len: u32,
}

impl Ids {
    pub(crate) fn new(max: usize) -> Ids {
        Ids {
            words: vec![0; max.div_ceil(64)].into(),
            len: 0,
        }
    }

    #[inline(always)]
    fn has(&self, id: InstrumentId) -> bool {
        let word = self.words.get(id.index() / 64);
        word.is_some_and(|word| word >> (id.index() % 64) & 1 != 0)
    }

    /// Whether it was not so before.
    pub(crate) fn set(&mut self, id: InstrumentId, is_in: bool) -> bool {
        if self.has(id) == is_in {
            return false;
        }
        let Some(word) = self.words.get_mut(id.index() / 64) else {
            return false;
        };
        *word ^= 1 << (id.index() % 64);
        self.len = if is_in { self.len + 1 } else { self.len - 1 };
        true
    }

    fn each(&self, mut each: impl FnMut(InstrumentId)) {
        for (at, word) in self.words.iter().enumerate().filter(|(_, word)| **word != 0) {
            let ids = (0..64).filter(|bit| word >> bit & 1 != 0);
            ids.for_each(|bit| each(InstrumentId((at * 64 + bit) as u32)));
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
        self.len = 0;
    }
}

/// A message that was held back.
pub struct HeldMessage<'a> {
    /// Where it stood.
    pub context: Context,
    /// What the decoder's clock said when it came.
    pub clock: u64,
    /// The message.
    pub bytes: &'a [u8],
}

/// Bytes before each message: number, time, clock, flags, length.
const HEAD: usize = 8 + 8 + 8 + 4 + 2;

/// Messages one behind another. Its memory is taken with the first subscription that needs it.
#[derive(Default)]
pub struct HeldMessages {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl HeldMessages {
    /// `false`, and nothing held, if there is no room.
    fn push(&mut self, context: Context, clock: u64, message: &[u8]) -> bool {
        let Ok(length) = u16::try_from(message.len()) else {
            return false;
        };
        if self.bytes.len() + HEAD + message.len() > self.bytes_max {
            return false;
        }
        self.bytes.extend_from_slice(&context.seq.0.to_le_bytes());
        self.bytes.extend_from_slice(&context.received.0.to_le_bytes());
        self.bytes.extend_from_slice(&clock.to_le_bytes());
        self.bytes.extend_from_slice(&context.flags.0.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(message);
        true
    }

    /// The messages, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = HeldMessage<'_>> {
        let mut rest = &self.bytes[..];
        core::iter::from_fn(move || {
            let (&seq, behind) = rest.split_first_chunk()?;
            let (&received, behind) = behind.split_first_chunk()?;
            let (&clock, behind) = behind.split_first_chunk()?;
            let (&flags, behind) = behind.split_first_chunk()?;
            let (&length, behind) = behind.split_first_chunk()?;
            let (bytes, behind) = behind.split_at_checked(u16::from_le_bytes(length).into())?;
            rest = behind;
            Some(HeldMessage {
                context: Context {
                    seq: SeqNo(u64::from_le_bytes(seq)),
                    received: Nanos(u64::from_le_bytes(received)),
                    flags: EventFlags(u32::from_le_bytes(flags)).with(EventFlags::LAST),
                },
                clock: u64::from_le_bytes(clock),
                bytes,
            })
        })
    }
}

/// The instruments of a decoder that join. See the module's description.
pub struct JoinRound {
    phase: Phase,
    /// Messages are held back: every phase but [`Phase::Idle`].
    holds: bool,
    joining: Ids,
    /// They join next.
    waiting: Ids,
    /// They were wanted once: their books are marked, also behind a clear of everything.
    left: Ids,
    /// Every message of the joining instruments from this one on is held: a snapshot must reach to it.
    from: SeqNo,
    /// The next live message.
    next: SeqNo,
    /// A snapshot helps: there is one, and the session has begun.
    is_possible: bool,
    /// Joining books may hold parts of a snapshot that was not completed.
    is_dirty: bool,
    held: HeldMessages,
    /// What came of the joins so far.
    pub tally: JoinTally,
    /// Held messages that were not needed.
    pub dropped: u64,
}

impl JoinRound {
    /// None yet, of instruments numbered below `instruments_max`.
    pub fn new(instruments_max: usize) -> JoinRound {
        JoinRound {
            phase: Phase::Idle,
            holds: false,
            joining: Ids::new(instruments_max),
            waiting: Ids::new(instruments_max),
            left: Ids::new(instruments_max),
            from: SeqNo(0),
            next: SeqNo(0),
            is_possible: false,
            is_dirty: false,
            held: HeldMessages::default(),
            tally: JoinTally::default(),
            dropped: 0,
        }
    }

    /// What a subscription that follows needs to know: the next live message, `None` if instruments cannot
    /// join because there is no snapshot, or need not because the session has not begun; and the room for
    /// held messages.
    pub fn prepare(&mut self, next: Option<SeqNo>, bytes_max: usize) {
        self.is_possible = next.is_some();
        self.next = next.unwrap_or_default();
        self.held.bytes_max = bytes_max;
    }

    /// An instrument begins to be wanted, and `next` is the next live message. `false`: no snapshot can make
    /// its book right.
    pub fn begin(&mut self, id: InstrumentId, next: SeqNo) -> bool {
        if !self.is_possible {
            return false;
        }
        match self.phase {
            Phase::Idle | Phase::Wanted => {
                self.tally.begun += u64::from(self.joining.set(id, true));
                if self.phase == Phase::Idle {
                    let room = self.held.bytes_max;
                    self.held.bytes.clear();
                    self.held.bytes.reserve_exact(room);
                }
                self.set_phase(Phase::Wanted);
                self.from = next;
            }
            Phase::Loading | Phase::Loaded(_) => self.tally.begun += u64::from(self.waiting.set(id, true)),
        }
        true
    }

    /// An instrument was wanted and is no more, or is again.
    pub fn set_left(&mut self, id: InstrumentId, has_left: bool) {
        self.left.set(id, has_left);
    }

    /// Every instrument that was wanted and is no more.
    pub fn each_left(&self, each: impl FnMut(InstrumentId)) {
        if self.left.len > 0 {
            self.left.each(each);
        }
    }

    /// Numbers mean other instruments from now on.
    pub fn forget_left(&mut self) {
        self.left.clear();
    }

    /// An instrument is no longer wanted; whether it was joining.
    pub fn remove(&mut self, id: InstrumentId) -> bool {
        self.joining.set(id, false) | self.waiting.set(id, false)
    }

    /// Nobody wants anything any more.
    pub fn remove_all(&mut self) {
        self.joining.clear();
        self.waiting.clear();
    }

    /// Ends the round if nobody joins any more: what was held is named to `dropped`.
    pub fn settle(&mut self, dropped: impl FnMut(&[u8])) {
        if self.holds && self.joining.len == 0 {
            self.drop_all(dropped);
            self.finish_round(self.next);
        }
    }

    /// The live stream goes on at `next`, behind a snapshot of the whole feed during which nothing was
    /// delivered, so that nothing is held.
    pub fn rebase(&mut self, next: SeqNo) {
        self.from = next;
    }

    /// Whether an instrument joins, now or next.
    #[inline]
    pub fn has(&self, id: InstrumentId) -> bool {
        self.joining.has(id) || self.waiting.has(id)
    }

    /// Whether messages are held back at all.
    #[inline(always)]
    pub fn holds_any(&self) -> bool {
        self.holds
    }

    /// Whether messages of this instrument are held back.
    #[inline(always)]
    pub fn holds(&self, id: InstrumentId) -> bool {
        self.holds && self.joining.has(id)
    }

    /// Whether a snapshot's messages about this instrument are to be read.
    #[inline]
    pub fn loads(&self, id: InstrumentId) -> bool {
        self.phase == Phase::Loading && self.joining.has(id)
    }

    /// Holds a live message back. When there is no room the join begins again: what was held is named to
    /// `dropped`.
    pub fn hold(&mut self, context: Context, clock: u64, message: &[u8], dropped: impl FnMut(&[u8])) {
        if self.held.push(context, clock, message) {
            return;
        }
        self.drop_all(dropped);
        self.tally.failed += 1;
        self.is_dirty |= self.phase != Phase::Wanted;
        self.set_phase(Phase::Wanted);
        self.from = context.seq;
        if !self.held.push(context, clock, message) {
            self.from = context.seq.next();
        }
    }

    /// Whether a snapshot is to be loaded, or is on its way.
    pub fn wants_snapshot(&self) -> bool {
        matches!(self.phase, Phase::Wanted | Phase::Loading)
    }

    /// Whether the messages of a snapshot that come are of use.
    pub fn is_loading(&self) -> bool {
        self.phase == Phase::Loading
    }

    /// Whether a snapshot that holds everything before `next` reaches to what is held back.
    pub fn is_reached_by(&self, next: SeqNo) -> bool {
        self.from <= next
    }

    /// A snapshot begins. Names the joining instruments if their books may hold parts of an earlier one.
    pub fn load(&mut self, dirty: impl FnMut(InstrumentId)) {
        if self.is_dirty {
            self.joining.each(dirty);
        }
        self.is_dirty = true;
        self.set_phase(Phase::Loading);
    }

    /// The snapshot will not come: it is to be loaded again.
    pub fn fail(&mut self) {
        self.tally.failed += 1;
        if self.phase == Phase::Loading {
            self.set_phase(Phase::Wanted);
        }
    }

    /// The snapshot is complete and holds everything before `next`. One that does not reach to what is held
    /// back is of no use.
    pub fn loaded(&mut self, next: SeqNo) {
        match self.is_reached_by(next) {
            true => self.set_phase(Phase::Loaded(next)),
            false => self.fail(),
        }
    }

    /// The message from which on the held ones count, once the snapshot is complete.
    pub fn loaded_up_to(&self) -> Option<SeqNo> {
        match self.phase {
            Phase::Loaded(next) => Some(next),
            _ => None,
        }
    }

    /// Takes the held messages out; nothing is held until [`JoinRound::finish_round`].
    pub fn release(&mut self) -> HeldMessages {
        self.set_phase(Phase::Idle);
        core::mem::take(&mut self.held)
    }

    /// Gives the memory of held messages back.
    pub fn give_back(&mut self, mut held: HeldMessages) {
        held.bytes.clear();
        self.held = held;
    }

    /// The joining instruments.
    pub fn each_joining(&self, each: impl FnMut(InstrumentId)) {
        self.joining.each(each);
    }

    /// The joining instruments have joined: those that wait are next, and hold from the live message `next`
    /// on.
    pub fn finish_round(&mut self, next: SeqNo) {
        self.tally.done += u64::from(self.joining.len);
        self.joining.clear();
        self.held.bytes.clear();
        core::mem::swap(&mut self.joining, &mut self.waiting);
        self.from = next;
        // What waits may have joined and left before.
        self.is_dirty = self.joining.len > 0;
        self.set_phase(if self.joining.len > 0 {
            Phase::Wanted
        } else {
            Phase::Idle
        });
    }

    /// All instruments that join, or wait, are made right otherwise: each is named, and what was held named
    /// to `dropped`.
    pub fn absorb(&mut self, each: impl FnMut(InstrumentId), dropped: impl FnMut(&[u8])) {
        if self.phase == Phase::Idle {
            return;
        }
        self.each(each);
        self.drop_all(dropped);
        self.tally.done += u64::from(self.waiting.len);
        self.waiting.clear();
        self.finish_round(self.next);
    }

    /// Every instrument that joins, now or next.
    pub fn each(&self, mut each: impl FnMut(InstrumentId)) {
        if self.holds {
            self.joining.each(&mut each);
            self.waiting.each(each);
        }
    }

    fn drop_all(&mut self, mut dropped: impl FnMut(&[u8])) {
        for message in self.held.iter() {
            self.dropped += 1;
            dropped(message.bytes);
        }
        self.held.bytes.clear();
    }

    fn set_phase(&mut self, phase: Phase) {
        self.phase = phase;
        self.holds = phase != Phase::Idle;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn context(seq: u64) -> Context {
        Context {
            seq: SeqNo(seq),
            received: Nanos(seq + 100),
            flags: EventFlags::RETRANSMITTED,
        }
    }

    #[test]
    fn held_messages_come_back_as_they_were_and_too_many_begin_anew() {
        let mut joins = JoinRound::new(64);
        joins.prepare(Some(SeqNo(5)), 2 * (HEAD + 3));
        assert!(joins.begin(InstrumentId(7), SeqNo(5)) && joins.holds(InstrumentId(7)));
        let none = |_: &[u8]| panic!("dropped");
        joins.hold(context(5), 9, b"abc", none);
        joins.hold(context(8), 9, b"def", none);
        assert!(joins.is_reached_by(SeqNo(5)) && !joins.is_reached_by(SeqNo(4)));
        let mut dropped = 0;
        joins.hold(context(9), 10, b"ghi", |_| dropped += 1);
        assert_eq!((dropped, joins.tally.failed), (2, 1));
        assert!(joins.is_reached_by(SeqNo(9)) && !joins.is_reached_by(SeqNo(8)));
        let held = joins.release();
        let all: Vec<_> = held
            .iter()
            .map(|m| (m.context.seq.0, m.context.received.0, m.clock, m.bytes))
            .collect();
        assert_eq!(all, [(9, 109, 10, &b"ghi"[..])]);
        joins.give_back(held);
        joins.finish_round(SeqNo(10));
        assert_eq!(
            (joins.tally.begun, joins.tally.done, joins.holds_any()),
            (1, 1, false)
        );
    }

    #[test]
    fn who_comes_while_a_snapshot_is_loaded_waits_for_the_next() {
        let mut joins = JoinRound::new(64);
        joins.prepare(Some(SeqNo(5)), 1000);
        joins.begin(InstrumentId(1), SeqNo(5));
        joins.load(|_| panic!("nothing was loaded before"));
        joins.begin(InstrumentId(2), SeqNo(5));
        assert!(joins.loads(InstrumentId(1)) && !joins.loads(InstrumentId(2)));
        assert!(!joins.holds(InstrumentId(2)) && joins.has(InstrumentId(2)));
        joins.loaded(SeqNo(4));
        assert_eq!(joins.loaded_up_to(), None, "it does not reach to what is held");
        let mut dirty = 0;
        joins.load(|_| dirty += 1);
        joins.loaded(SeqNo(6));
        assert_eq!((joins.loaded_up_to(), dirty), (Some(SeqNo(6)), 1));
        joins.release();
        joins.finish_round(SeqNo(7));
        assert!(joins.holds(InstrumentId(2)) && joins.wants_snapshot() && !joins.has(InstrumentId(1)));
        assert!(joins.remove(InstrumentId(2)));
        joins.settle(|_| ());
        assert!(!joins.holds_any());
        assert_eq!(
            (joins.tally.begun, joins.tally.done, joins.tally.failed),
            (2, 1, 1)
        );
    }

    #[test]
    fn without_a_snapshot_nobody_joins() {
        let mut joins = JoinRound::new(64);
        joins.prepare(None, 1000);
        assert!(!joins.begin(InstrumentId(1), SeqNo(5)) && !joins.holds_any());
    }
}
