//! Line arbitration and gap recovery for any feed of numbered messages.
//!
//! A packet tells its session, the number of its first message and how many messages it holds; what they mean
//! is not looked at. That fits MoldUDP64 (session, messages), PITCH units, NYSE XDP channels, CQS lines
//! (messages, no session) and CME MDP 3.0 or MOEX FAST packets (one number a packet). The owner frames
//! packets, delivers what it is told to, and after every call drains, in this order:
//! [`Arbiter::poll_situation`], [`Arbiter::next_buffered`] until `None`, [`Arbiter::poll_situation`] again,
//! [`Arbiter::poll_request`].
//!
//! ```text
//!              in sequence                       first later than next: Gap
//!   ┌───────┐ ────────────►  Deliver   ┌──────┐ ───────────────────────────► ┌────────┐
//!   │ start │                          │ LIVE │                              │ GAPPED │ later packets are buffered
//!   └───────┘ ◄─ new session, restart  └──────┘ ◄─── filled: Recovered ───── └────────┘
//!                                          ▲                                     │ line_wait_ns → request, again and again
//!                                          │ resume_at(snapshot's number)        ▼ request_attempts unanswered: lost
//!                                          └──────────────────────────────── AWAITING A SNAPSHOT, or on without the
//!                                                                            lost messages, marked incomplete
//! ```
//!
//! Nothing that was received in sequence is ever dropped: a packet that finds the buffer full stays on the
//! list of missing messages and is requested again when the gap before it is closed.

mod belief;
mod config;

pub use config::{ArbiterConfig, FeedState, MissingRange, Released, Situation, Start, Verdict};

use crate::claim::Claim;
use crate::missing::Missing;
use crate::recovery::{Plan, Planner};
use crate::reorder::{HeldPacket, ReorderBuffer};
use crate::{Line, SessionId};
use tickwire_market::{Counter, Counters, Nanos, SeqNo};

/// No venue sends so many messages; numbers above are ignored, and counting on from here cannot overflow.
const SEQ_MAX: u64 = 1 << 62;

/// What one line has brought.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// The number after the latest message.
    high: u64,
    /// When its last packet came that could be right.
    last: Nanos,
    /// Where it says that the session ends; 0: it does not.
    end: u64,
    /// A message said so: heartbeats may follow it.
    end_lasts: bool,
    /// Packets in a row that do not fit this line's progress.
    doubt: Doubt,
    /// Packets in a row of another session.
    rival: Rival,
}

/// Packets in a row that are far ahead, or behind their own line.
#[derive(Clone, Copy, Default)]
struct Doubt {
    high: u64,
    next: u64,
    packets: u32,
    since: Nanos,
    last: Nanos,
    is_behind: bool,
}

#[derive(Clone, Copy, Default)]
struct Rival {
    high: u64,
    session: SessionId,
    packets: u32,
    last: Nanos,
}

impl Progress {
    /// What comes fits: whatever did not was not in a row.
    fn fits(&mut self, now: Nanos) {
        self.last = now;
        (self.doubt.packets, self.rival.packets) = (0, 0);
    }
}

/// Where the session ends, as far as that is believed.
struct Ending {
    /// Where the session ends, as far as that is believed, and whether a message said so (heartbeats may
    /// follow it).
    end: Option<u64>,
    is_end_message: bool,
    /// An end that only one line tells is believed then, if the other has nothing to say.
    end_due: Option<Nanos>,
}

/// Messages that somebody has told of and nobody has brought.
struct ClaimState {
    /// Who told of messages that have not come.
    claim: Option<Claim>,
    /// A snapshot is wanted because of the claim alone, and has not begun.
    waits_for_claim: bool,
    /// A claim has been dropped since [`Arbiter::take_refuted`].
    has_refuted: bool,
}

/// How the feed stands to snapshots.
struct SnapshotState {
    /// Of messages before this one the content is in doubt: only a snapshot behind them is of use.
    distrusted: u64,
    awaiting: bool,
    /// Never complete in this session: lost messages, or started in its middle.
    incomplete: bool,
    building: bool,
}

/// When the session began, and how its recovery gets on.
struct RecoveryTimes {
    began: Nanos,
    /// When something was recovered last, or recovery began; and when it began.
    progress: (Nanos, Nanos),
    /// Recovery was given up: the feed goes on, marked, until then.
    retry: Option<Nanos>,
    /// Every line has been read up to this time.
    read: Nanos,
}

/// The sequencing state of one channel. See the module's description.
pub struct Arbiter {
    // The first cache line is all that a packet in sequence touches, besides its line's progress.
    next: u64,
    session: SessionId,
    /// Nothing is missing or held and delivery is on.
    whole: bool,
    /// A session is being followed.
    begun: bool,
    /// A snapshot was loaded before the first packet came: `next` is its number.
    positioned: bool,
    lines: [Progress; Line::COUNT],
    /// The number after the latest message known to exist; equal to `next` while whole.
    high: u64,
    ending: Ending,
    /// The first message seen of the session.
    joined: u64,
    claims: ClaimState,
    /// What the line of the packet in hand had brought before it.
    before: u64,
    snapshot: SnapshotState,
    previous: Option<SessionId>,
    recovery: RecoveryTimes,
    missing: Missing,
    buffer: ReorderBuffer,
    planner: Planner,
    situations: [Option<Situation>; 4],
    counters: Counters,
    config: ArbiterConfig,
}

impl Arbiter {
    /// An arbiter that has seen nothing. All memory it will ever use is taken here.
    pub fn new(config: ArbiterConfig) -> Arbiter {
        Arbiter {
            next: 1,
            session: SessionId::NONE,
            whole: false,
            begun: false,
            positioned: false,
            lines: [Progress::default(); Line::COUNT],
            high: 1,
            ending: Ending {
                end: None,
                is_end_message: false,
                end_due: None,
            },
            joined: 1,
            claims: ClaimState {
                claim: None,
                waits_for_claim: false,
                has_refuted: false,
            },
            before: 0,
            snapshot: SnapshotState {
                distrusted: 0,
                awaiting: false,
                incomplete: false,
                building: true,
            },
            previous: None,
            recovery: RecoveryTimes {
                began: Nanos::ZERO,
                progress: (Nanos::ZERO, Nanos::ZERO),
                retry: None,
                read: Nanos(u64::MAX),
            },
            missing: Missing::new(config.gaps),
            buffer: ReorderBuffer::new(config.buffer_packets, config.packet_bytes),
            planner: Planner::new(&config),
            situations: [None; 4],
            counters: Counters::default(),
            config,
        }
    }

    /// The short way: whether the packet is exactly the next one of a feed without gaps. If so it counts as
    /// delivered, whole, and nothing needs draining. Otherwise nothing has changed: ask
    /// [`Arbiter::on_packet`].
    #[inline]
    pub fn in_sequence(
        &mut self,
        now: Nanos,
        line: Line,
        session: SessionId,
        first: SeqNo,
        count: u32,
    ) -> bool {
        let fits = (first.0 == self.next) & self.whole & (session == self.session);
        if fits {
            self.next += u64::from(count); // `first` was reached message by message: far from 2^64
            let progress = &mut self.lines[line as usize];
            (progress.high, progress.last) = (self.next, now);
        }
        fits
    }

    /// The short way of every second packet: whether it only repeats, on a line that makes progress, what the
    /// other line brought. If so it is counted and nothing needs draining. Otherwise nothing has changed.
    #[inline]
    pub fn repeats(&mut self, now: Nanos, line: Line, session: SessionId, first: SeqNo, count: u32) -> bool {
        let end = first.advance(u64::from(count)).0;
        let progress = &mut self.lines[line as usize];
        let known = (end <= self.next)
            & (end > progress.high)
            & self.whole
            & (first.0 > 0)
            & (session == self.session);
        if known {
            (progress.high, progress.last) = (end, now);
            self.counters.bump(Counter::PacketsDuplicate);
            self.counters.add(Counter::MessagesDuplicate, u64::from(count));
        }
        known
    }

    /// A filter in front of this arbiter has seen every message before `next` in sequence, and of those that
    /// were not delivered nobody wants any: they count as received, without a gap. Called before the packet
    /// with which that was said.
    ///
    /// While something is missing nothing changes: what the filter kept back then is asked for again like
    /// what was lost, which is slow and right. A number that nobody could have reached is ignored.
    #[inline]
    pub fn seen_up_to(&mut self, now: Nanos, next: SeqNo) {
        if self.whole && next.0 > self.next && next.0 < SEQ_MAX {
            self.counters.add(Counter::MessagesFiltered, next.0 - self.next);
            (self.next, self.high) = (next.0, next.0);
            for line in &mut self.lines {
                line.high = line.high.max(next.0);
                line.last = line.last.max(now);
            }
        }
    }

    /// The venue is alive, though a filter in front of this arbiter lets nothing pass at the moment: silence
    /// is counted from here.
    #[inline]
    pub fn alive(&mut self, now: Nanos) {
        if self.begun {
            for line in &mut self.lines {
                line.last = line.last.max(now);
            }
        }
    }

    /// Every line has been read up to this time: a packet makes due what was due by then. Who never says so
    /// has read everything that came before a packet.
    #[inline]
    pub fn read_up_to(&mut self, read: Nanos) {
        self.recovery.read = read;
    }

    /// Decides about a packet with `count` messages from `first` on. `packet` is what is kept if it has to
    /// wait.
    pub fn on_packet(
        &mut self,
        now: Nanos,
        line: Line,
        session: SessionId,
        first: SeqNo,
        count: u32,
        packet: &[u8],
    ) -> Verdict {
        let end = first.advance(u64::from(count)).0;
        let first = first.0;
        if !self.is_plausible(now, line, session, first, end) {
            self.counters.bump(Counter::PacketsIgnored);
            if line == Line::Retransmit {
                self.planner.lied();
            }
            return Verdict::Ignored;
        }
        let verdict = self.place(now, line, first, end, packet);
        match verdict {
            Verdict::Deliver { skip } => self.counters.add(Counter::MessagesDuplicate, u64::from(skip)),
            Verdict::Duplicate => {
                self.counters.bump(Counter::PacketsDuplicate);
                self.counters.add(Counter::MessagesDuplicate, u64::from(count));
            }
            Verdict::Overflow => self.counters.bump(Counter::BufferOverflows),
            Verdict::Buffered | Verdict::Ignored => {}
        }
        self.handle_timeout(now.min(self.recovery.read));
        self.check();
        verdict
    }

    /// Takes note of a packet without messages that tells the `next` number; `ends` if it also says that
    /// nothing will follow. Numbers below 1 say nothing.
    pub fn on_heartbeat(&mut self, now: Nanos, line: Line, session: SessionId, next: SeqNo, ends: bool) {
        self.on_number(now, line, session, next, ends, false);
    }

    /// The venue's message outside of the numbers says that nothing follows before `next`. Its heartbeats may
    /// go on.
    pub fn on_last_message(&mut self, now: Nanos, line: Line, session: SessionId, next: SeqNo) {
        self.on_number(now, line, session, next, true, true);
    }

    fn on_number(
        &mut self,
        now: Nanos,
        line: Line,
        session: SessionId,
        next: SeqNo,
        ends: bool,
        lasts: bool,
    ) {
        self.counters.bump(if ends {
            Counter::EndOfSession
        } else {
            Counter::Heartbeats
        });
        if next.0 == 0 {
            return;
        }
        // An end below what has come, or is known to exist, is none.
        let is_plausible = self.is_plausible(now, line, session, next.0, next.0);
        if !is_plausible || ends && next.0 < self.high() {
            self.counters.bump(Counter::PacketsIgnored);
            return;
        }
        if next.0 > self.high() {
            self.claim(now, line, next.0);
            self.open_gap(now, next.0);
            self.high = next.0;
        }
        let progress = &mut self.lines[line as usize];
        if ends {
            (progress.end, progress.end_lasts) = (next.0, lasts);
            self.ending.end_due = Some(now);
        } else {
            // Who is alive has not ended.
            progress.end *= u64::from(progress.end_lasts);
            self.ending.end = self.ending.end.filter(|_| self.ending.is_end_message);
        }
        self.handle_timeout(now.min(self.recovery.read));
        self.check();
    }

    /// A message said that nothing follows it: `next` would be the number after it. The venue's heartbeats
    /// may go on.
    #[cold]
    pub fn ends_at(&mut self, next: SeqNo) {
        if next.0 >= self.high() && self.ending.end != Some(next.0) {
            self.counters.bump(Counter::EndOfSession);
            (self.ending.end, self.ending.is_end_message) = (Some(next.0), true);
        }
    }

    /// An end that a line tells is believed when the other line tells it too, or is not heard any more.
    fn settle_end(&mut self, now: Nanos) {
        self.ending.end_due = None;
        for line in [Line::A, Line::B] {
            let (told, other) = (self.lines[line as usize], self.lines[line.other() as usize]);
            if told.end == 0 || told.end < self.high() {
                continue;
            }
            if !self.is_heard(now, line.other()) || other.end == told.end {
                (self.ending.end, self.ending.is_end_message) = (Some(told.end), told.end_lasts);
                return;
            }
            self.ending.end_due = Some(other.last.after(self.config.session_quiet_ns));
        }
        // Said over a connection of recovery.
        let told = self.lines[Line::Retransmit as usize];
        if told.end > 0 && told.end >= self.high() {
            (self.ending.end, self.ending.is_end_message) = (Some(told.end), told.end_lasts);
        }
    }

    /// Whether the session has ended, with everything delivered. What follows an end proves it wrong.
    fn has_ended(&self) -> bool {
        self.ending.end == Some(self.next)
    }

    /// Whether a line has a say.
    pub(crate) fn is_heard(&self, now: Nanos, line: Line) -> bool {
        let last = self.lines[line as usize].last;
        last > Nanos::ZERO && now.since(last) < self.config.session_quiet_ns
    }

    /// Whether there is nothing to drain: a feed without gaps to which nothing has happened.
    #[inline(always)]
    pub fn is_quiet(&self) -> bool {
        self.whole && self.situations[0].is_none()
    }

    /// Whether nothing is missing or held back, and none of it given up.
    #[inline(always)]
    pub fn is_whole(&self) -> bool {
        self.whole && !self.snapshot.incomplete
    }

    /// The next packet whose turn has come; drain after every call that may have moved the sequence.
    pub fn next_buffered(&mut self) -> Option<Released<'_>> {
        if self.whole || self.snapshot.awaiting {
            return None;
        }
        let (first, end) = loop {
            self.skip_lost();
            match self.buffer.front() {
                Some((first, end)) if first <= self.next && end > self.next => break (first, end),
                Some((_, end)) if end <= self.next => _ = self.buffer.pop_front(),
                _ => {
                    self.settle();
                    return None;
                }
            }
        };
        // Usually nothing of it is missing; a list of gaps that ran full may say otherwise.
        let recovered = self.missing.fill(first, end, Nanos::ZERO, false);
        self.counters.add(Counter::MessagesRecovered, recovered);
        let skip = (self.next - first) as u32;
        self.next = end;
        self.counters.add(Counter::MessagesDuplicate, u64::from(skip));
        let HeldPacket {
            first,
            line,
            received,
            bytes,
        } = self.buffer.pop_front()?;
        Some(Released {
            first: SeqNo(first),
            skip,
            line,
            received,
            packet: bytes,
        })
    }

    /// What happened, oldest first. At most four wait; if nobody drains them the last one is replaced.
    pub fn poll_situation(&mut self) -> Option<Situation> {
        let situation = self.situations[0]?;
        self.situations.rotate_left(1);
        self.situations[3] = None;
        Some(situation)
    }

    /// A retransmission request to send now.
    pub fn poll_request(&mut self) -> Option<MissingRange> {
        if self.whole {
            return None;
        }
        let (first, count) = self.planner.poll()?;
        self.counters.bump(Counter::RetransmitRequests);
        Some(MissingRange {
            session: self.session,
            first: SeqNo(first),
            count,
        })
    }

    /// A request that [`Arbiter::poll_request`] gave could not be sent: it is due again after its time-out,
    /// and no quota is used.
    pub fn take_back_request(&mut self, now: Nanos, range: MissingRange) {
        self.planner.unsent(now, range.first.0);
    }

    /// When to call [`Arbiter::handle_timeout`] next, if nothing comes before.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        if self.whole {
            return match (self.recovery.retry, self.ending.end_due) {
                (None, None) => None,
                (retry, due) => retry.into_iter().chain(due).min(),
            };
        }
        let requests = match self.snapshot.awaiting {
            true => None,
            false => self.planner.timeout(&self.missing, self.buffer.free()),
        };
        let blocked = |claim: &Claim| {
            !self.snapshot.awaiting
                && !claim.is_settled()
                && self.missing.first().is_some_and(|hole| hole.lost)
        };
        let claim = self
            .claims
            .claim
            .as_ref()
            .filter(|claim| blocked(claim))
            .map(|claim| claim.look);
        [
            requests,
            self.deadline(),
            self.recovery.retry,
            self.ending.end_due,
            claim,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Requests what is due, gives up what has been requested in vain.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.ending.end_due.is_some_and(|due| due <= now) {
            self.settle_end(now);
        }
        if self.recovery.retry.is_some_and(|retry| retry <= now) {
            self.retry_now(now);
        }
        if self.whole {
            return;
        }
        if let Some(claim) = self.claims.claim.as_mut().filter(|claim| claim.look <= now) {
            claim.put_off(now);
        }
        if !self.snapshot.awaiting {
            self.plan(now);
        }
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.go_on_marked(now);
        }
    }

    /// What the planner wants.
    fn plan(&mut self, now: Nanos) {
        self.planner.note_high(now, self.high());
        loop {
            let room = self.buffer.free();
            match self.planner.plan(now, &self.missing, room, room as u64) {
                Plan::Requests => break,
                Plan::GiveUp { first, end } => self.give_up(now, first, end),
                Plan::Snapshot if self.recovery.retry.is_none() => self.await_snapshot(now),
                // Marked as it is, with what requests bring.
                Plan::Snapshot => break,
            }
            if self.snapshot.awaiting {
                break;
            }
        }
        let tally = self.planner.take_tally();
        self.counters.add(Counter::RetransmitTimeouts, tally.timeouts);
        self.counters.add(Counter::RequestsHeld, tally.held);
        self.counters.add(Counter::ServerChanges, tally.changes);
    }

    /// When recovery is given up for a while.
    fn deadline(&self) -> Option<Nanos> {
        let deadline_ns = self.config.recovery.deadline_ns;
        let (last, first) = self.recovery.progress;
        let is_open = !self.whole && self.begun && deadline_ns > 0 && self.recovery.retry.is_none();
        let runs = is_open && (self.snapshot.awaiting || self.missing.has_any(0, u64::MAX));
        runs.then(|| {
            last.after(deadline_ns)
                .min(first.after(deadline_ns.saturating_mul(10)))
        })
    }

    /// Neither requests nor snapshots made the feed whole in time: it goes on with what comes, never live,
    /// and recovery is tried again later.
    #[cold]
    fn go_on_marked(&mut self, now: Nanos) {
        self.counters.bump(Counter::RecoveriesFailed);
        self.missing.lose(0, u64::MAX);
        self.planner.forget();
        (self.snapshot.awaiting, self.snapshot.incomplete) = (false, true);
        self.recovery.retry = Some(now.after(self.config.recovery.retry_ns.max(1)));
    }

    /// Recovery that was given up begins anew, where there is a way.
    #[cold]
    fn retry_now(&mut self, now: Nanos) {
        self.recovery.retry = None;
        if self.config.snapshot && self.snapshot.incomplete {
            self.await_snapshot(now);
        }
        self.recovery.progress = (now, now);
    }

    /// Something was recovered: a message, or a part of a snapshot.
    #[inline]
    pub fn note_progress(&mut self, now: Nanos) {
        self.recovery.progress.0 = now;
    }

    /// Whether recovery was given up for a while, and the feed goes on marked.
    pub fn is_given_up(&self) -> bool {
        self.recovery.retry.is_some()
    }

    /// What plans requests and snapshots.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// For the feed of a [`Twin`](crate::Twin).
    pub(crate) fn config_of_twin(&self) -> ArbiterConfig {
        self.config.of_twin()
    }

    /// What plans requests and snapshots.
    pub fn planner_mut(&mut self) -> &mut Planner {
        &mut self.planner
    }

    /// Holds everything back until [`Arbiter::resume_at`]: a snapshot is about to be loaded.
    pub fn await_snapshot(&mut self, now: Nanos) {
        if self.whole {
            self.recovery.progress = (now, now);
            self.high = self.next;
            self.push(Situation::Gap {
                first: SeqNo(self.next),
                end: SeqNo(self.next),
            });
        }
        if !self.snapshot.awaiting {
            self.recovery.progress.0 = now;
        }
        self.claims.waits_for_claim = !self.snapshot.awaiting
            && !self.snapshot.incomplete
            && self
                .claims
                .claim
                .is_some_and(|claim| !self.missing.has_any(0, claim.high));
        self.planner.forget();
        (self.snapshot.awaiting, self.whole) = (true, false);
    }

    /// Whether delivery waits for a snapshot.
    pub fn awaits_snapshot(&self) -> bool {
        self.snapshot.awaiting
    }

    /// A snapshot holds the effect of every message before `seq`: goes on from there, with what has been held
    /// back since. Drain [`Arbiter::next_buffered`] afterwards.
    pub fn resume_at(&mut self, now: Nanos, seq: SeqNo) {
        let seq = seq.0.clamp(1, SEQ_MAX);
        self.high = self.high();
        // What was sent before anybody listened is not lost.
        let lost = self.missing.forget_before(seq, self.joined, now);
        self.counters.add(Counter::MessagesLost, lost);
        if seq < self.next {
            // Older than what has been delivered: those messages are needed a second time.
            let missed = self.missing.prepend(seq, self.next, now);
            self.counters.add(Counter::MessagesMissed, missed);
        }
        self.next = seq;
        self.high = self.high.max(seq);
        (self.snapshot.awaiting, self.snapshot.incomplete, self.whole) = (false, false, false);
        (self.recovery.retry, self.recovery.progress.0) = (None, now);
        self.positioned = !self.begun;
        self.claims.waits_for_claim = false;
        if self.config.snapshot && seq < self.snapshot.distrusted {
            self.snapshot.awaiting = true; // it does not reach behind what is in doubt
        }
        self.check();
    }

    /// The content of messages `[first, end)` is in doubt: two copies of them differ, and nobody knows which
    /// one was true. Marked, and made right by a snapshot where there is one.
    #[cold]
    pub fn distrust(&mut self, now: Nanos, end: SeqNo) {
        self.snapshot.distrusted = self.snapshot.distrusted.max(end.0);
        if self.config.snapshot && self.recovery.retry.is_none() {
            self.await_snapshot(now);
        } else if !self.snapshot.incomplete {
            self.snapshot.incomplete = true;
            if self.whole {
                let next = SeqNo(self.next);
                self.push(Situation::Gap {
                    first: next,
                    end: next,
                });
            }
        }
    }

    /// Whether packets were forgotten as nobody's since the last call.
    pub(crate) fn take_refuted(&mut self) -> bool {
        core::mem::take(&mut self.claims.has_refuted)
    }

    /// A snapshot has to hold every message before this one.
    pub(crate) fn distrusted(&self) -> SeqNo {
        SeqNo(self.snapshot.distrusted)
    }

    /// A venue's own message says that the numbers begin anew at `next` (sequence reset, channel reset, unit
    /// clear).
    pub fn restart(&mut self, now: Nanos, next: SeqNo) {
        self.follow(now, self.session, next.0.clamp(1, SEQ_MAX));
        self.settle();
    }

    /// Whether nothing is missing or held, but messages were given up for lost or the session's first never
    /// came.
    #[inline]
    pub fn has_lost(&self) -> bool {
        self.snapshot.incomplete && self.whole
    }

    /// What was lost is made up for otherwise: the feed counts as whole.
    pub fn accept_loss(&mut self) {
        if self.has_lost() {
            (self.snapshot.incomplete, self.snapshot.building) = (false, false);
            self.push(Situation::Recovered {
                next: SeqNo(self.next),
            });
        }
    }

    /// The next message to deliver.
    pub fn next_seq(&self) -> SeqNo {
        SeqNo(self.next)
    }

    /// The session being followed.
    pub fn session(&self) -> Option<SessionId> {
        self.begun.then_some(self.session)
    }

    /// How far the feed can be trusted.
    pub fn state(&self) -> FeedState {
        match (self.whole, self.snapshot.building || self.snapshot.incomplete) {
            (true, _) if self.has_ended() => FeedState::Ended,
            (true, false) => FeedState::Live,
            _ if self.snapshot.building => FeedState::Building,
            _ => FeedState::Stale,
        }
    }

    /// When the last packet of the session came, on any line.
    pub fn last_packet(&self) -> Nanos {
        let [a, b, answers] = &self.lines;
        a.last.max(b.last).max(answers.last)
    }

    /// How many messages are missing now.
    pub fn missing(&self) -> u64 {
        self.missing.messages()
    }

    /// How many packets are held back now.
    pub fn held(&self) -> usize {
        self.buffer.len()
    }

    /// Whether any message of `[first, end)` is missing.
    pub fn misses(&self, first: SeqNo, end: SeqNo) -> bool {
        self.missing.has_any(first.0, end.0)
    }

    /// The first message held back now.
    pub fn first_held(&self) -> Option<SeqNo> {
        self.buffer.front().map(|(first, _)| SeqNo(first))
    }

    /// A snapshot is of use when it holds every message before this one.
    pub fn snapshot_floor(&self) -> SeqNo {
        let held = self.first_held().unwrap_or(self.next_seq());
        held.max(self.distrusted())
    }

    /// The number after the latest message known to exist, held back or missing ones included.
    pub fn latest(&self) -> SeqNo {
        SeqNo(self.high())
    }

    /// What this arbiter has counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The number after the latest message known to exist.
    fn high(&self) -> u64 {
        if self.whole { self.next } else { self.high }
    }

    /// What is said of the fields above, and of the state as a whole.
    #[inline(always)]
    fn check(&self) {
        debug_assert!(self.next >= 1, "messages are numbered from 1");
        debug_assert!(self.high() >= self.next, "more was delivered than exists");
        debug_assert!(
            !self.whole || self.missing.is_empty() && self.buffer.is_empty() && !self.snapshot.awaiting,
            "whole, with messages missing or held back"
        );
        debug_assert!(
            self.begun || !self.whole || self.positioned,
            "whole before anything came"
        );
        debug_assert!(!self.missing.is_overfull(), "more holes than there is room for");
        let is_said_in_order = self
            .situations
            .windows(2)
            .all(|w| w[0].is_some() || w[1].is_none());
        debug_assert!(is_said_in_order, "a situation behind none");
    }

    fn push(&mut self, situation: Situation) {
        let at = self.situations.iter().position(Option::is_none).unwrap_or(3);
        self.situations[at] = Some(situation);
    }

    /// Starts following a stream whose earliest packet seen begins at `first`.
    fn begin(&mut self, now: Nanos, line: Line, session: SessionId, first: u64) {
        self.joined = first;
        if self.positioned {
            (self.session, self.begun, self.positioned, self.recovery.began) = (session, true, false, now);
            return;
        }
        let held = self.snapshot.awaiting && !self.begun;
        let from_beginning = self.config.start == Start::Beginning && !held;
        self.follow(now, session, if from_beginning { 1 } else { first });
        self.snapshot.awaiting = held || self.config.start == Start::Snapshot && first != 1;
        self.snapshot.incomplete = self.config.start == Start::Here && first != 1;
        if self.next == first {
            self.settle();
            // Nothing but this packet says so.
            if !self.whole {
                self.before = 0;
                self.claim(now, line, first);
            }
        }
    }

    /// Forgets the old stream: `next` is the first message of the new one.
    fn follow(&mut self, now: Nanos, session: SessionId, next: u64) {
        if self.begun {
            self.counters.bump(Counter::SessionChanges);
            self.push(Situation::Restarted);
            self.previous = (self.session != session).then_some(self.session);
        }
        self.missing.clear();
        self.buffer.clear();
        self.planner.restart();
        (self.recovery.retry, self.recovery.progress) = (None, (now, now));
        self.lines = [Progress::default(); Line::COUNT];
        (self.session, self.begun, self.recovery.began, self.ending.end) = (session, true, now, None);
        (
            self.ending.is_end_message,
            self.ending.end_due,
            self.claims.claim,
            self.snapshot.distrusted,
        ) = (false, None, None, 0);
        self.joined = next;
        (self.next, self.high) = (next, next);
        (
            self.whole,
            self.snapshot.building,
            self.snapshot.awaiting,
            self.snapshot.incomplete,
        ) = (false, true, false, false);
    }

    /// Puts a packet of the session where it belongs.
    fn place(&mut self, now: Nanos, line: Line, first: u64, end: u64, packet: &[u8]) -> Verdict {
        let answered = line == Line::Retransmit;
        if answered {
            self.planner.on_answer(now, first, end);
        }
        if end <= self.next {
            return Verdict::Duplicate;
        }
        self.high = self.high();
        let due = now.after(self.config.line_wait_ns);
        if first <= self.next && !self.snapshot.awaiting {
            self.fill(now, first, end, due, answered);
            let skip = (self.next - first) as u32;
            self.next = end;
            self.high = self.high.max(end);
            return Verdict::Deliver { skip };
        }
        let fills = self.missing.overlap(first, end) > 0;
        if end <= self.high && !fills {
            return Verdict::Duplicate;
        }
        let recordable = !(fills || first > self.high) || !self.missing.is_nearly_full();
        if !recordable || !self.hold(now, line, first, end, packet) {
            if answered {
                // The server does answer; it is our own want of room.
                self.missing
                    .postpone(first, end, now.after(self.config.request_timeout_ns));
            }
            if end > self.high {
                self.claim(now, line, first.max(self.high));
                self.open_gap(now, end);
                self.high = end;
            }
            return Verdict::Overflow;
        }
        self.fill(now, first, end, due, answered);
        if first > self.high {
            self.claim(now, line, first);
            self.open_gap(now, first);
        }
        self.high = self.high.max(end);
        Verdict::Buffered
    }

    /// Messages `[first, end)` have come.
    fn fill(&mut self, now: Nanos, first: u64, end: u64, due: Nanos, answered: bool) {
        let recovered = self.missing.fill(first, end, due, answered);
        self.counters.add(Counter::MessagesRecovered, recovered);
        if recovered > 0 {
            self.note_progress(now);
        }
    }

    /// Keeps a packet. Live ones leave some room to answers, which make room again. Waiting for a snapshot,
    /// the newest packets matter: the oldest one makes room.
    fn hold(&mut self, now: Nanos, line: Line, first: u64, end: u64, packet: &[u8]) -> bool {
        let Some(slots) = self.buffer.slots_of(packet) else {
            return false;
        };
        let is_live = line != Line::Retransmit && !self.snapshot.awaiting;
        if is_live && self.buffer.free() < self.buffer.reserve() + slots {
            return false;
        }
        while self.buffer.free() < slots && self.snapshot.awaiting {
            match self.buffer.front() {
                Some((oldest, oldest_end)) if oldest < first => {
                    self.buffer.pop_front();
                    if oldest_end > self.next {
                        let missed = self.missing.prepend(self.next, oldest_end, now);
                        self.counters.add(Counter::MessagesMissed, missed);
                    }
                }
                _ => return false,
            }
        }
        self.buffer.insert(first, end, line, now, packet)
    }

    /// Messages from `high` to `end` exist and have not come.
    fn open_gap(&mut self, now: Nanos, end: u64) {
        let first = self.high();
        self.whole = false;
        let (missed, is_new) = self
            .missing
            .append(first, end, now.after(self.config.line_wait_ns));
        self.counters.add(Counter::MessagesMissed, missed);
        if self.missing.holes().len() == 1 && is_new {
            self.recovery.progress = (now, now);
        }
        if is_new {
            self.counters.bump(Counter::Gaps);
            self.push(Situation::Gap {
                first: SeqNo(first),
                end: SeqNo(end),
            });
        }
    }

    /// Messages `[first, end)`, as far as they are missing, will not come.
    fn give_up(&mut self, now: Nanos, first: u64, end: u64) {
        self.missing.lose(first, end);
        if self.config.snapshot && self.recovery.retry.is_none() {
            self.await_snapshot(now);
        }
    }

    /// Steps over lost messages that are next.
    fn skip_lost(&mut self) {
        while let Some(hole) = self.missing.first() {
            let is_claimed = |claim: &Claim| hole.end > claim.high && !claim.is_settled();
            if hole.first > self.next || !hole.lost || self.claims.claim.as_ref().is_some_and(is_claimed) {
                return;
            }
            self.counters
                .add(Counter::MessagesLost, hole.end.saturating_sub(self.next));
            self.snapshot.incomplete = true;
            self.next = self.next.max(hole.end);
            self.missing.remove_first();
        }
    }

    /// Back to the short way once nothing is missing or held.
    fn settle(&mut self) {
        let known = self.begun || self.positioned;
        if !known
            || self.whole
            || self.snapshot.awaiting
            || !self.missing.is_empty()
            || !self.buffer.is_empty()
        {
            return;
        }
        self.whole = true;
        self.claims.claim = None;
        self.planner.forget();
        if !self.snapshot.incomplete {
            self.snapshot.building = false;
            self.push(Situation::Recovered {
                next: SeqNo(self.next),
            });
        }
    }
}
