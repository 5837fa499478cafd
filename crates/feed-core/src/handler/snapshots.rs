//! Snapshots and joins: what a handler does when it begins in the middle, or begins anew.

use alloc::vec::Vec;

use tickwire_market::{Counter, DynSink, EventFlags, EventKind, EventSink, MarketEvent, Nanos, SeqNo};

use crate::arbiter::FeedState;
use crate::decoder::{Context, Decoder, StreamEvent};
use crate::framing::Framing;
use crate::{JoinRound, Pattern, Rule, SubscriptionsFull};

use super::{FeedHandler, Loading, NEVER, SNAPSHOT_LEAD_MAX, empty};

impl<F: Framing, D: Decoder> FeedHandler<F, D> {
    /// A connection to a snapshot server is there.
    pub fn snapshot_connected(&mut self, now: Nanos) {
        let is_whole = self.arbiter.awaits_snapshot();
        let gate = &mut self.arbiter.planner_mut().snapshots;
        match is_whole {
            true => gate.began(now),
            false => gate.count(now),
        }
    }

    /// The connection to a snapshot server is gone, or could not be opened; whether it brought what was
    /// wanted.
    pub fn snapshot_disconnected(&mut self, now: Nanos, is_done: bool) {
        let is_void = self.is_snapshot_void();
        let gate = &mut self.arbiter.planner_mut().snapshots;
        match is_done {
            true => gate.loaded(now),
            false if is_void => {}
            false => gate.failed(now),
        }
        if !is_done {
            self.lose_snapshot();
        }
    }

    /// Whether a snapshot may be connected to: one is wanted, and none was begun a moment ago.
    #[inline]
    pub fn may_load_snapshot(&self) -> bool {
        self.gate().is_open() && self.wants_snapshot()
    }

    /// When a snapshot that is wanted may be begun, if that is not now.
    #[inline]
    pub fn snapshot_opens_at(&self) -> Option<Nanos> {
        self.gate().opens_at().filter(|_| self.wants_snapshot())
    }

    /// No true snapshot ends beyond this message: see [`FeedHandler::is_snapshot_plausible`].
    pub fn snapshot_ceiling(&self) -> SeqNo {
        match self.arbiter.session() {
            Some(_) => self.arbiter.latest().advance(SNAPSHOT_LEAD_MAX),
            None => SeqNo(u64::MAX),
        }
    }

    /// Whether a snapshot that ends at `next` can be true: not beyond everything that the lines have told of,
    /// but for what may be on its way.
    pub fn is_snapshot_plausible(&self, next: SeqNo) -> bool {
        let ahead = next.0.saturating_sub(self.arbiter.latest().0);
        next.0 > 0 && (self.arbiter.session().is_none() || ahead <= SNAPSHOT_LEAD_MAX)
    }

    /// Whether only a snapshot can make the feed, or instruments that join, whole: start one and hand it to
    /// [`FeedHandler::begin_snapshot`].
    #[inline]
    pub fn wants_snapshot(&self) -> bool {
        self.arbiter.awaits_snapshot() || self.wants_join()
    }

    /// Whether instruments that join want a snapshot.
    pub(super) fn wants_join(&self) -> bool {
        self.decoder
            .filter()
            .round()
            .is_some_and(JoinRound::wants_snapshot)
            && self.state() != FeedState::Ended
    }

    /// Whether a snapshot that holds every message before `next` reaches to the messages that are held back.
    pub fn is_reached_by(&self, next: SeqNo) -> bool {
        if self.arbiter.awaits_snapshot() {
            let reaches = self.arbiter.first_held().is_none_or(|first| first <= next);
            return reaches && next >= self.arbiter.distrusted();
        }
        self.decoder
            .filter()
            .round()
            .is_none_or(|joins| joins.is_reached_by(next))
    }

    /// Whether the snapshot that comes is of no use any more: it was for instruments that join, and they
    /// begin again, left, or the whole feed needs one. Its connection is to be closed.
    pub fn is_snapshot_void(&self) -> bool {
        let is_loading = || self.decoder.filter().round().is_some_and(JoinRound::is_loading);
        match self.loading {
            Loading::Nothing | Loading::Whole => false,
            Loading::Join => self.arbiter.awaits_snapshot() || !is_loading(),
            Loading::Void => true,
        }
    }

    /// The snapshot that was wanted will not come over this connection, or none could be opened.
    pub fn lose_snapshot(&mut self) {
        let is_void = self.is_snapshot_void();
        self.loading = Loading::Nothing;
        if !is_void
            && !self.arbiter.awaits_snapshot()
            && let Some(joins) = self
                .decoder
                .filter_mut()
                .round_mut()
                .filter(|joins| joins.wants_snapshot())
        {
            joins.fail();
        }
    }

    /// A snapshot is about to come. For the whole feed: what was known is void; live messages are held back
    /// until it is complete. For instruments that join nothing changes for the others.
    pub fn begin_snapshot(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        if !self.arbiter.awaits_snapshot() && self.has_joined {
            return self.begin_join(now, sink);
        }
        (self.loading, self.has_joined) = (Loading::Whole, false);
        self.arbiter.await_snapshot(now);
        self.tell(now, sink);
        self.decoder.on_stream(StreamEvent::SnapshotBegins);
        self.say(EventKind::Clear, SeqNo(0), 0, EventFlags::SNAPSHOT, now, sink);
        self.mark_left(now, sink);
    }

    #[cold]
    fn begin_join(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        let is_wanted = self.wants_join();
        self.loading = if is_wanted { Loading::Join } else { Loading::Void };
        let gap = self.about_itself(EventKind::Gap, self.next_seq(), now);
        if let Some(joins) = self.decoder.filter_mut().round_mut().filter(|_| is_wanted) {
            joins.load(|instrument| empty(gap, instrument, sink));
        }
    }

    /// A message of the snapshot.
    pub fn on_snapshot_message(&mut self, now: Nanos, message: &[u8], sink: &mut dyn EventSink) {
        self.arbiter.note_progress(now);
        let context = Context {
            seq: SeqNo(0),
            received: now,
            flags: EventFlags::SNAPSHOT,
        };
        match self.loading {
            Loading::Nothing | Loading::Whole => {
                self.decoder
                    .decode(context, message, &mut self.counters, &mut DynSink(sink))
            }
            Loading::Join => {
                self.decoder
                    .decode_joining(context, message, &mut self.counters, &mut DynSink(sink))
            }
            Loading::Void => {}
        }
    }

    /// The snapshot is complete and holds every message before `next`. Goes on with what was held back from
    /// there.
    pub fn end_snapshot(&mut self, now: Nanos, next: SeqNo, sink: &mut dyn EventSink) {
        match core::mem::replace(&mut self.loading, Loading::Nothing) {
            Loading::Nothing | Loading::Whole => {}
            Loading::Join => return self.end_join(now, next, sink),
            Loading::Void => return,
        }
        self.counters.bump(Counter::Snapshots);
        self.arbiter.resume_at(now, next);
        self.decoder.on_stream(StreamEvent::SnapshotEnded(next));
        self.arbiter.handle_timeout(now);
        self.release(now, sink);
    }

    /// The snapshot for instruments that join is complete. One that began before them, or was overtaken, says
    /// nothing.
    #[cold]
    fn end_join(&mut self, now: Nanos, next: SeqNo, sink: &mut dyn EventSink) {
        let Some(joins) = self
            .decoder
            .filter_mut()
            .round_mut()
            .filter(|joins| joins.is_loading())
        else {
            return;
        };
        joins.loaded(next);
        if let Some(next) = joins.loaded_up_to() {
            self.counters.bump(Counter::Snapshots);
            self.joined_at = next;
            self.join_if_due(now, sink);
        }
    }

    #[inline(always)]
    pub(super) fn join_if_due(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        if self.arbiter.next_seq() >= self.joined_at {
            self.join(now, sink);
        }
    }

    /// The live stream has reached the snapshot of the instruments that join: what was held back for them
    /// follows, and their books are right.
    #[cold]
    #[inline(never)]
    pub(super) fn join(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.joined_at = NEVER;
        let next = self.next_seq();
        let recovered = self.about_itself(EventKind::Recovered, next, now);
        let Some(joins) = self.decoder.filter_mut().round_mut() else {
            return;
        };
        let Some(from) = joins.loaded_up_to() else { return };
        let held = joins.release();
        self.decoder.filter_mut().admit_joining();
        for message in held.iter() {
            if message.context.seq < from {
                self.decoder.filter_mut().drop_held(message.bytes);
                continue;
            }
            self.decoder.on_stream(StreamEvent::Releases(message.clock));
            let (counters, sink) = (&mut self.counters, &mut DynSink(sink));
            self.decoder
                .decode(message.context, message.bytes, counters, sink);
        }
        self.decoder.on_stream(StreamEvent::Released);
        if let Some(joins) = self.decoder.filter_mut().round_mut() {
            joins.give_back(held);
            joins.each_joining(|instrument| {
                sink.on_event(&MarketEvent {
                    instrument,
                    ..recovered
                })
            });
            joins.finish_round(next);
        }
    }

    /// See [`crate::Channel::subscribe`].
    pub fn subscribe(
        &mut self,
        now: Nanos,
        pattern: &Pattern,
        sink: &mut dyn EventSink,
    ) -> Result<u32, SubscriptionsFull> {
        let (pattern, wanted) = (*pattern, true);
        let has_begun = self.prepare_join();
        let mut added = Vec::new();
        self.decoder
            .select(Rule { pattern, wanted }, &mut |instrument| added.push(instrument))?;
        if has_begun {
            let next = self.arbiter.next_seq();
            self.decoder.on_stream(StreamEvent::Subscribed(next));
        }
        // A snapshot that is yet to come holds all of them; of one that comes part has gone by.
        let joins = has_begun && (self.loading == Loading::Whole || !self.arbiter.awaits_snapshot());
        let next = self.next_seq();
        for &instrument in &added {
            self.left.remove(&instrument);
            let is_right = !has_begun || joins && !self.decoder.join(instrument, next);
            let (kind, ref_id) = match is_right {
                true => (EventKind::Recovered, 0),
                false => (EventKind::Gap, next.0),
            };
            sink.on_event(&MarketEvent {
                instrument,
                ref_id,
                ..self.about_itself(kind, next, now)
            });
        }
        self.has_joined |= self.wants_join();
        Ok(added.len() as u32)
    }

    /// See [`crate::Channel::unsubscribe`].
    pub fn unsubscribe(
        &mut self,
        now: Nanos,
        pattern: &Pattern,
        sink: &mut dyn EventSink,
    ) -> Result<u32, SubscriptionsFull> {
        let (pattern, wanted) = (*pattern, false);
        self.prepare_join();
        let gap = self.about_itself(EventKind::Gap, self.next_seq(), now);
        let mut count = 0;
        let left = &mut self.left;
        self.decoder.select(Rule { pattern, wanted }, &mut |instrument| {
            count += 1;
            left.insert(instrument);
            empty(gap, instrument, sink);
        })?;
        Ok(count)
    }

    /// Tells instruments that join from where on; whether any message may have been missed.
    pub(super) fn prepare_join(&mut self) -> bool {
        // Of a session that has not begun nothing was missed.
        let has_begun = self.arbiter.session().is_some() || self.next_seq() > SeqNo(1);
        let next = (has_begun && self.has_snapshots).then(|| self.next_seq());
        let bytes_max = self.join_bytes;
        if let Some(joins) = self.decoder.filter_mut().round_mut() {
            joins.prepare(next, bytes_max);
        }
        has_begun
    }
}
