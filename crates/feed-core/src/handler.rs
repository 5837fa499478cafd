//! One channel of a feed: a datagram comes in, events go out in sequence, once.
//!
//! ```text
//! datagram ─► Framing::parse ─► Arbiter ─► Decoder ─► EventSink
//!                                  │ ▲
//!        poll_transmit: requests ◄─┘ └── retransmitted datagrams, messages of a snapshot
//! ```
//! The feed tells its own condition in the same stream: [`EventKind::Gap`] the moment a message is missing,
//! [`EventKind::Recovered`] when it is whole (also at the start of a session seen from its first message on),
//! [`EventKind::Clear`] when all that was said before is void: a new session, or a snapshot follows.

mod batch;
mod snapshots;

use crate::arbiter::{Arbiter, ArbiterConfig, FeedState, MissingRange, Situation, Verdict};
use crate::contents::Contents;
use crate::decoder::{Decoder, StreamEvent};
use crate::framing::{Content, Frame, Framing, Restart};
use crate::joins::JoinTally;
use crate::recovery::{Planner, SnapshotGate};
use crate::{Filter, Line, SessionId};
use alloc::{collections::BTreeSet, vec, vec::Vec};
use batch::Batch;
use core::hint::black_box;
use core::marker::PhantomData;
use tickwire_market::{
    Counter, Counters, DynSink, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, SeqNo,
};

/// A feed's channel. See the module's description.
pub struct FeedHandler<F, D> {
    arbiter: Arbiter,
    decoder: D,
    counters: Counters,
    /// One message that came by a reliable way, in the venue's framing.
    wrapped: Vec<u8>,
    /// What the latest packets held.
    contents: Contents,
    /// The last restart that the venue announced.
    restart: Option<Restart>,
    /// One that a single line has announced, which one, and when: the other has to say so too.
    announced: Option<(Restart, Line, Nanos)>,
    /// What the snapshot that comes is for.
    loading: Loading,
    /// When the live stream has reached this message, instruments that join have joined; the largest number
    /// if none do.
    joined_at: SeqNo,
    /// Instruments have joined since the feed was last made whole by a snapshot.
    has_joined: bool,
    has_snapshots: bool,
    join_bytes: usize,
    /// Instruments that were wanted and are no more.
    left: BTreeSet<InstrumentId>,
    framing: PhantomData<F>,
}

/// What a snapshot is loaded for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loading {
    /// None is.
    Nothing,
    /// The feed as a whole.
    Whole,
    /// Instruments that join.
    Join,
    /// Instruments that were to join and do not want to any more.
    Void,
}

/// So many messages may be on their way that a snapshot has already: a second of the fastest feed.
const SNAPSHOT_LEAD_MAX: u64 = 1_000_000;
/// So long a line may be behind the other one in announcing that numbers begin anew.
const RESTART_WAIT_NS: u64 = 500 * Nanos::MILLI;
/// No message has this number.
const NEVER: SeqNo = SeqNo(u64::MAX);

impl<F: Framing, D: Decoder> FeedHandler<F, D> {
    /// A feed that has seen nothing. All memory it will ever use is taken here.
    pub fn new(config: ArbiterConfig, decoder: D) -> FeedHandler<F, D> {
        FeedHandler {
            wrapped: vec![0; config.packet_bytes],
            contents: Contents::new(config.compare_messages, config.compare_seed),
            announced: None,
            has_snapshots: config.snapshot,
            left: BTreeSet::new(),
            join_bytes: config.join_bytes,
            arbiter: Arbiter::new(config),
            decoder,
            counters: Counters::default(),
            restart: None,
            loading: Loading::Nothing,
            joined_at: NEVER,
            has_joined: false,
            framing: PhantomData,
        }
    }

    /// Takes a datagram. A corrupt one is counted and treated as lost.
    #[inline]
    pub fn on_packet<S: EventSink>(&mut self, now: Nanos, line: Line, bytes: &[u8], sink: &mut S) {
        self.counters.bump(line.counter());
        let mut frame = match F::parse(bytes) {
            Ok(frame) => frame,
            Err(malformed) => {
                if line == Line::Retransmit {
                    self.arbiter.planner_mut().lied();
                }
                return crate::decoder::count_malformed(&mut self.counters, &malformed);
            }
        };
        frame.first = F::full_number(frame.first, self.arbiter.next_seq());
        if frame.trailing > 0 {
            self.counters.bump(Counter::TrailingBytes);
        }
        if let Content::Messages { count, messages } = &frame.content {
            if self
                .arbiter
                .in_sequence(now, line, frame.session, frame.first, *count)
            {
                let batch = Batch::new(frame.first, *count, 0, line, now);
                if batch.deliver(messages.clone(), &mut self.decoder, &mut self.counters, sink) {
                    self.arbiter.ends_at(self.arbiter.next_seq());
                }
                if line != Line::Retransmit {
                    self.contents.note(frame.first.0, *count, content::<F>(bytes));
                }
                self.distrust_all(now, sink);
                return self.join_if_due(now, sink);
            }
            if self
                .arbiter
                .repeats(now, line, frame.session, frame.first, *count)
            {
                if line != Line::Retransmit
                    && self.contents.differs(frame.first.0, *count, content::<F>(bytes))
                {
                    self.diverged(now, frame.first.advance((*count).into()), sink);
                }
                return;
            }
        }
        self.out_of_sequence(now, line, bytes, frame, sink);
    }

    /// What a filter in front of this feed has seen, see [`Arbiter::seen_up_to`].
    #[inline]
    pub fn seen_up_to(&mut self, now: Nanos, next: SeqNo) {
        self.arbiter.seen_up_to(now, next);
    }

    /// The venue is alive, see [`Arbiter::alive`].
    #[inline]
    pub fn alive(&mut self, now: Nanos) {
        self.arbiter.alive(now);
    }

    /// Every line has been read up to this time, see [`Arbiter::read_up_to`].
    #[inline]
    pub fn read_up_to(&mut self, read: Nanos) {
        self.arbiter.read_up_to(read);
    }

    /// Everything but the next packet of a feed without gaps.
    #[inline(never)]
    fn out_of_sequence<'a>(
        &mut self,
        now: Nanos,
        line: Line,
        bytes: &'a [u8],
        frame: Frame<F::Messages<'a>>,
        sink: &mut dyn EventSink,
    ) {
        if line != Line::Retransmit && !self.follows_restart(now, line, bytes, frame.first) {
            self.counters.bump(Counter::PacketsIgnored);
            return;
        }
        let ends = matches!(frame.content, Content::EndOfSession);
        let Content::Messages { count, messages } = frame.content else {
            self.arbiter
                .on_heartbeat(now, line, frame.session, frame.first, ends);
            return self.release(now, sink);
        };
        let verdict = self
            .arbiter
            .on_packet(now, line, frame.session, frame.first, count, bytes);
        // Said also by a packet that waits: a snapshot may take its place.
        if verdict != Verdict::Ignored && messages.clone().last().is_some_and(D::ends) {
            self.arbiter.ends_at(frame.first.advance(count.into()));
        }
        match verdict {
            Verdict::Deliver { skip } => {
                self.tell(now, sink);
                let batch = Batch::new(frame.first, count, skip, line, now);
                batch.deliver(
                    messages,
                    &mut self.decoder,
                    &mut self.counters,
                    &mut DynSink(sink),
                );
                self.release(now, sink);
            }
            Verdict::Duplicate | Verdict::Buffered | Verdict::Overflow | Verdict::Ignored => {
                self.release(now, sink)
            }
        }
        if self.arbiter.take_refuted() {
            self.contents.forget();
        }
        let is_known = !matches!(verdict, Verdict::Overflow | Verdict::Ignored);
        if is_known && line != Line::Retransmit {
            self.compare(now, frame.first, count, content::<F>(bytes), sink);
        }
    }

    /// Compares a live packet with an earlier copy, or keeps what it holds.
    fn compare(&mut self, now: Nanos, first: SeqNo, count: u32, content: &[u8], sink: &mut dyn EventSink) {
        match self.contents.has(first.0) {
            false => self.contents.note(first.0, count, content),
            true if self.contents.differs(first.0, count, content) => {
                self.diverged(now, first.advance(count.into()), sink);
            }
            true => {}
        }
    }

    /// A packet that ends before `end` held something else when it came first: one of the two is false, and
    /// it may have been delivered.
    #[cold]
    #[inline(never)]
    fn diverged(&mut self, now: Nanos, end: SeqNo, sink: &mut dyn EventSink) {
        self.counters.bump(Counter::LinesDiverged);
        self.arbiter.distrust(now, end);
        self.release(now, sink);
    }

    /// The books that the sink knows to be wrong.
    #[inline(always)]
    fn distrust_all(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        if let Some(instrument) = sink.next_distrusted() {
            self.distrust_each(now, instrument, sink);
        }
    }

    #[cold]
    #[inline(never)]
    fn distrust_each(&mut self, now: Nanos, first: InstrumentId, sink: &mut dyn EventSink) {
        let mut next = Some(first);
        while let Some(instrument) = next {
            self.distrust(now, instrument, sink);
            next = sink.next_distrusted();
        }
    }

    /// See [`crate::Channel::distrust`]. Nothing is done for one that nobody wants, that is being made right
    /// already, or that the snapshot of the whole feed will make right.
    #[cold]
    pub fn distrust(&mut self, now: Nanos, instrument: InstrumentId, sink: &mut dyn EventSink) {
        let is_due = self.arbiter.awaits_snapshot() || self.loading == Loading::Whole;
        if is_due || !self.decoder.is_followed(instrument) {
            return;
        }
        self.counters.bump(Counter::BooksDistrusted);
        let next = self.next_seq();
        let gap = MarketEvent {
            instrument,
            ref_id: next.0,
            ..self.about_itself(EventKind::Gap, next, now)
        };
        if !self.has_snapshots {
            return sink.on_event(&gap);
        }
        self.prepare_join();
        empty(gap, instrument, sink);
        if self.decoder.join(instrument, next) {
            self.has_joined |= self.wants_join();
        }
    }

    /// Begins anew where the venue says so, on both lines or on the only one that is heard. `false` for a
    /// packet that was sent before and comes after, or of a line whose announcement nobody has confirmed.
    fn follows_restart(&mut self, now: Nanos, line: Line, bytes: &[u8], first: SeqNo) -> bool {
        if self.restart.is_some_and(|restart| F::precedes(bytes, restart)) {
            return false;
        }
        let announced = self
            .announced
            .filter(|(_, _, when)| now.since(*when) < RESTART_WAIT_NS);
        if let Some(restart) = F::restart(bytes, self.restart) {
            let is_confirmed = !self.arbiter.is_heard(now, line.other())
                || announced
                    .is_some_and(|(earlier, by, _)| by != line && F::restart(bytes, Some(earlier)).is_none());
            if !is_confirmed {
                self.announced = Some((restart, line, now));
                return false;
            }
            (self.restart, self.announced) = (Some(restart), None);
            self.arbiter.restart(now, first);
            return true;
        }
        // What this line sends behind its announcement is numbered anew, or nothing of it is true.
        announced.is_none_or(|(restart, by, _)| by != line || F::precedes(bytes, restart))
    }

    /// Sizes and times of the feed of a [`Twin`](crate::Twin) of which this instrument is traded; `None` if
    /// the feed can have none of that number.
    pub fn config_of_twin(&self, instrument: InstrumentId) -> Option<ArbiterConfig> {
        let is_one = instrument != InstrumentId::WHOLE_FEED;
        let is_possible = is_one && instrument.index() < self.filter().numbers_end();
        is_possible.then(|| self.arbiter.config_of_twin())
    }

    /// Reads what the next packet will need, and the next message of an instrument, so that it is in the
    /// caches: for a thread that waits.
    pub fn fetch(&self, id: InstrumentId) {
        self.contents.fetch(self.arbiter.next_seq().0);
        self.filter().fetch(D::BUSY_TYPES);
        black_box((
            self.filter().has(id),
            self.decoder.seen_of_instrument(id),
            self.filter().instrument(id).map(|entry| entry.symbol),
        ));
        self.decoder.fetch(id);
    }

    /// What plans requests and snapshots.
    pub fn planner_mut(&mut self) -> &mut Planner {
        self.arbiter.planner_mut()
    }

    /// When a snapshot may be begun.
    pub fn gate(&self) -> &SnapshotGate {
        &self.arbiter.planner().snapshots
    }

    /// Takes the next message of a source that cannot lose any (a file, a recording without packet headers).
    /// It gets the next number.
    #[inline]
    pub fn on_message<S: EventSink>(&mut self, now: Nanos, message: &[u8], sink: &mut S) {
        if !self
            .arbiter
            .in_sequence(now, Line::A, SessionId::NONE, self.arbiter.next_seq(), 1)
        {
            self.arbiter.restart(now, SeqNo(1));
            self.tell(now, sink);
            self.arbiter
                .in_sequence(now, Line::A, SessionId::NONE, SeqNo(1), 1);
        }
        let seq = SeqNo(self.arbiter.next_seq().0 - 1);
        let batch = Batch::new(seq, 1, 0, Line::A, now);
        let messages = core::iter::once(message);
        if batch.deliver(messages, &mut self.decoder, &mut self.counters, sink) {
            self.arbiter.ends_at(self.arbiter.next_seq());
        }
        self.join_if_due(now, sink);
    }

    /// Looks at a message that [`FeedHandler::on_message`] is to take some messages later.
    #[inline]
    pub fn preview<S: EventSink>(&self, message: &[u8], sink: &mut S) {
        self.decoder.preview(message, sink);
    }

    /// Takes a numbered message that came over a recovery connection (SoupBinTCP logged in with session and
    /// number).
    pub fn on_recovered_message(
        &mut self,
        now: Nanos,
        session: SessionId,
        seq: SeqNo,
        message: &[u8],
        sink: &mut dyn EventSink,
    ) {
        let mut wrapped = core::mem::take(&mut self.wrapped);
        match F::wrap(session, seq, message, &mut wrapped) {
            Some(len) => self.on_packet(now, Line::Retransmit, &wrapped[..len], &mut DynSink(sink)),
            None => crate::decoder::count_bad_value(&mut self.counters),
        }
        self.wrapped = wrapped;
    }

    /// Requests what is due and gives up what is hopeless. Call it when [`FeedHandler::poll_timeout`] says
    /// so.
    pub fn handle_timeout(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.arbiter.handle_timeout(now);
        self.release(now, sink);
    }

    /// The next datagram to send to the retransmission server, written into `buffer`. Drain after every
    /// packet and timeout. With a buffer too small for it the request is dropped, and repeated after its
    /// timeout.
    #[inline]
    pub fn poll_transmit<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let range = self.arbiter.poll_request()?;
        let len = F::request(range, buffer)?;
        Some(&buffer[..len])
    }

    /// The next range to ask for, where a venue replays over a connection of its own instead of answering
    /// datagrams. Takes the place of [`FeedHandler::poll_transmit`]; what is not asked for comes again after
    /// its timeout.
    #[inline]
    pub fn poll_missing(&mut self) -> Option<MissingRange> {
        self.arbiter.poll_request()
    }

    /// The range that [`FeedHandler::poll_missing`] gave could not be asked for: no connection, or no room.
    /// No quota is used; it is due again after its time-out.
    pub fn take_back_missing(&mut self, now: Nanos, range: MissingRange) {
        self.arbiter.take_back_request(now, range);
    }

    /// When to call [`FeedHandler::handle_timeout`], if no packet comes before.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.arbiter.poll_timeout()
    }

    /// A venue's own message says that nothing follows before `next`: the feed has ended once it is there.
    pub fn ends_at(&mut self, now: Nanos, line: Line, next: SeqNo, sink: &mut dyn EventSink) {
        let session = self.arbiter.session().unwrap_or(SessionId::NONE);
        self.arbiter.on_last_message(now, line, session, next);
        self.release(now, sink);
    }

    /// The last restart that the venue announced.
    pub fn last_restart(&self) -> Option<Restart> {
        self.restart
    }

    /// What was given up for lost is made up for otherwise: the feed is whole again.
    pub fn accept_loss(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.arbiter.accept_loss();
        self.tell(now, sink);
    }

    /// The decoder, and where it counts: to tell an instrument what was held for it.
    pub fn decoder_and_counters(&mut self) -> (&mut D, &mut Counters) {
        (&mut self.decoder, &mut self.counters)
    }

    /// Counts a packet of a recovery stream that cannot be read.
    pub fn count_malformed(&mut self) {
        crate::decoder::count_bad_value(&mut self.counters);
    }

    /// How far the feed can be trusted. A live feed has ended when its messages say so, too.
    pub fn state(&self) -> FeedState {
        match self.arbiter.state() {
            FeedState::Live if self.decoder.has_ended() => FeedState::Ended,
            state => state,
        }
    }

    /// The next message to deliver.
    pub fn next_seq(&self) -> SeqNo {
        self.arbiter.next_seq()
    }

    /// Whether the session has ended and nothing of it is missing.
    pub fn is_done(&self) -> bool {
        self.state() == FeedState::Ended
    }

    /// The sequencing below: session, silence, what is missing and held back.
    pub fn arbiter(&self) -> &Arbiter {
        &self.arbiter
    }

    /// What is wanted, joins and was seen, and the instruments so far.
    pub fn filter(&self) -> &Filter {
        self.decoder.filter()
    }

    /// The decoder: what only this venue says.
    pub fn decoder(&self) -> &D {
        &self.decoder
    }

    /// The decoder, to change it.
    pub fn decoder_mut(&mut self) -> &mut D {
        &mut self.decoder
    }

    /// Everything counted here, as of now.
    pub fn counters(&self) -> Counters {
        let mut all = self.counters.clone();
        all.merge(self.arbiter.counters());
        if let Some(joins) = self.decoder.filter().round() {
            all.add(Counter::MessagesFiltered, joins.dropped);
        }
        let JoinTally { begun, done, failed } = self.decoder.filter().tally();
        all.add(Counter::JoinsBegun, begun);
        all.add(Counter::JoinsDone, done);
        all.add(Counter::JoinsFailed, failed);
        all
    }

    /// Tells what happened, delivers what was held back and is next, tells what happened then.
    #[inline(always)]
    fn release(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        if !self.arbiter.is_quiet() {
            self.release_held(now, sink);
        }
        self.distrust_all(now, sink);
        self.join_if_due(now, sink);
    }

    #[inline(never)]
    fn release_held(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.tell(now, sink);
        while let Some(held) = self.arbiter.next_buffered() {
            // It was checked when it was kept.
            if let Ok(Frame {
                content: Content::Messages { count, messages },
                ..
            }) = F::parse(held.packet)
            {
                let batch = Batch::new(held.first, count, held.skip, held.line, held.received);
                // What ends the session was said when the packet came.
                batch.deliver(
                    messages,
                    &mut self.decoder,
                    &mut self.counters,
                    &mut DynSink(sink),
                );
            }
        }
        self.tell(now, sink);
    }

    fn tell(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        while let Some(situation) = self.arbiter.poll_situation() {
            match situation {
                Situation::Restarted => {
                    self.decoder.on_stream(StreamEvent::Restarted);
                    self.contents.clear();
                    self.loading = match self.loading {
                        Loading::Nothing | Loading::Whole => Loading::Nothing,
                        Loading::Join | Loading::Void => Loading::Void,
                    };
                    self.say(EventKind::Clear, self.next_seq(), 0, EventFlags::NONE, now, sink);
                    self.mark_left(now, sink);
                }
                Situation::Gap { first, end } => {
                    self.say(EventKind::Gap, first, end.0, EventFlags::NONE, now, sink);
                }
                Situation::Recovered { next } => {
                    self.say(EventKind::Recovered, next, 0, EventFlags::NONE, now, sink);
                }
            }
        }
    }

    /// An event about the feed itself.
    fn say(
        &self,
        kind: EventKind,
        seq: SeqNo,
        ref_id: u64,
        flags: EventFlags,
        now: Nanos,
        sink: &mut dyn EventSink,
    ) {
        let event = self.about_itself(kind, seq, now);
        sink.on_event(&MarketEvent {
            ref_id,
            flags: flags.with(EventFlags::LAST),
            ..event
        });
    }

    /// A clear of everything makes books right, but not those that nobody keeps any more.
    fn mark_left(&self, now: Nanos, sink: &mut dyn EventSink) {
        let gap = self.about_itself(EventKind::Gap, self.next_seq(), now);
        let ref_id = gap.seq.0;
        let mut mark = |instrument| {
            sink.on_event(&MarketEvent {
                instrument,
                ref_id,
                ..gap
            });
        };
        match self.decoder.filter().round() {
            Some(round) => round.each_left(mark),
            // Where numbers begin anew they are other instruments'.
            None => {
                let known = |id: &&InstrumentId| self.decoder.filter().instrument(**id).is_some();
                self.left.iter().filter(known).for_each(|&id| mark(id));
            }
        }
    }

    fn about_itself(&self, kind: EventKind, seq: SeqNo, now: Nanos) -> MarketEvent {
        MarketEvent {
            seq,
            recv_ts: now,
            instrument: InstrumentId::WHOLE_FEED,
            venue: self.decoder.filter().venue(),
            kind,
            flags: EventFlags::LAST,
            ..MarketEvent::default()
        }
    }
}

/// What both lines say alike.
#[inline(always)]
fn content<F: Framing>(datagram: &[u8]) -> &[u8] {
    datagram.get(F::HEADER..).unwrap_or_default()
}

/// Says that a book is empty and not to be trusted. Between the two events it looks live: the first is not
/// the last.
fn empty(gap: MarketEvent, instrument: InstrumentId, sink: &mut dyn EventSink) {
    sink.on_event(&MarketEvent {
        kind: EventKind::Clear,
        instrument,
        flags: EventFlags::NONE,
        ..gap
    });
    let ref_id = gap.seq.0;
    sink.on_event(&MarketEvent {
        instrument,
        ref_id,
        ..gap
    });
}
