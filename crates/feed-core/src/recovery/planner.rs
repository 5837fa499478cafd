//! The requests of one channel: which are under way, what is asked for next, and when a snapshot is the
//! better way.

use super::estimate::{Fit, Rate, RoundTrip, time_at};
use super::quota::Quotas;
use super::servers::Servers;
use super::snapshots::SnapshotGate;
use super::{Answers, DayUse, RecoveryLimits};
use crate::ArbiterConfig;
use crate::missing::Missing;
use alloc::vec::Vec;
use tickwire_market::{Nanos, Port};

/// How far a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// To be sent with the next poll.
    Send,
    /// Its answer is waited for.
    UnderWay,
    /// Not answered: to be asked again when there is room.
    Again,
}

/// Messages `[first, end)` that one request is to bring.
#[derive(Clone, Copy, Debug)]
struct Claim {
    first: u64,
    end: u64,
    /// The request reaches so far: an answer may hold more than is counted on.
    asked_end: u64,
    step: Step,
    /// The how many-th request it is.
    nth: u64,
    sent: Nanos,
    due: Nanos,
    attempts: u8,
    is_answered: bool,
    /// Answers of requests sent later that came before its own.
    overtaken: u8,
}

/// What the arbiter is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plan {
    /// Send what [`Planner::poll`] says; nothing else.
    Requests,
    /// Messages `[first, end)`, as far as they are missing, were asked for in vain.
    GiveUp { first: u64, end: u64 },
    /// Load a snapshot: it is sooner, or the quota runs short.
    Snapshot,
}

/// What the arbiter counts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Tally {
    pub(crate) timeouts: u64,
    pub(crate) held: u64,
    pub(crate) changes: u64,
}

/// Requests under way at first.
const WINDOW_FIRST: u16 = 8;
/// An answer that so many later ones have overtaken is lost.
const OVERTAKEN_MAX: u8 = 3;
/// Messages taken to fit an answer before one came.
const FIT_ASSUMED: u64 = 40;
/// A snapshot must be sooner by so much to be worth it: it empties the books.
const SNAPSHOT_HANDICAP_NS: u64 = 20 * Nanos::MILLI;
/// A rate of answers counts when it was measured for so long.
const MEASURED_NS: u64 = 50 * Nanos::MILLI;
/// So many answers in a row to nothing that was asked are a lie.
const STRAYS_MAX: u32 = 16;

/// What requests are bound by, besides the limits of the venue.
struct RequestTerms {
    request_messages: u64,
    attempts_max: u8,
    timeout_max_ns: u64,
    gap_max: u64,
    has_snapshot: bool,
}

/// See the module's description. All memory is taken at construction.
pub struct Planner {
    limits: RecoveryLimits,
    terms: RequestTerms,
    /// Ascending, disjoint; at most `limits.requests_under_way`.
    claims: Vec<Claim>,
    window: u16,
    sent: u64,
    quotas: Quotas,
    /// Nothing is sent before; set when something had to wait.
    blocked: Nanos,
    is_held: bool,
    round_trip: RoundTrip,
    fit: Fit,
    live: Rate,
    answered: Rate,
    /// Messages that answers brought, and since when requests are under way without a pause.
    brought: u64,
    asking_since: Option<Nanos>,
    strays: u32,
    servers: Servers,
    /// When a snapshot may be begun.
    pub snapshots: SnapshotGate,
    tally: Tally,
}

impl Planner {
    pub(crate) fn new(config: &ArbiterConfig) -> Planner {
        let limits = config.recovery;
        let under_way = limits.requests_under_way.max(1);
        Planner {
            terms: RequestTerms {
                request_messages: u64::from(config.request_messages.max(1)),
                attempts_max: config.request_attempts,
                timeout_max_ns: config.request_timeout_ns,
                gap_max: config.request_gap_max,
                has_snapshot: config.snapshot,
            },
            claims: Vec::with_capacity(under_way.into()),
            window: under_way.min(WINDOW_FIRST),
            sent: 0,
            quotas: Quotas::new(
                config.request_interval_ns,
                limits.requests_per_second,
                limits.requests_per_minute,
                limits.requests_per_day,
            ),
            blocked: Nanos::ZERO,
            is_held: false,
            round_trip: RoundTrip::default(),
            fit: Fit::default(),
            live: Rate::default(),
            answered: Rate::default(),
            brought: 0,
            asking_since: None,
            strays: 0,
            servers: Servers::new(),
            snapshots: SnapshotGate::new(&limits),
            tally: Tally::default(),
            limits,
        }
    }

    /// Nothing is asked for any more: another session, or a snapshot takes over.
    pub(crate) fn forget(&mut self) {
        self.claims.clear();
        self.asking_since = None;
        self.is_held = false;
    }

    /// Numbers begin anew.
    pub(crate) fn restart(&mut self) {
        self.forget();
        self.live.forget();
    }

    /// The number after the latest message known to exist.
    pub(crate) fn note_high(&mut self, now: Nanos, high: u64) {
        self.live.note(now, high);
    }

    /// Counts that grew since the last time.
    pub(crate) fn take_tally(&mut self) -> Tally {
        let changes =
            core::mem::take(&mut self.servers.changes) + core::mem::take(&mut self.snapshots.servers.changes);
        let tally = core::mem::take(&mut self.tally);
        Tally { changes, ..tally }
    }

    /// Messages `[first, end)` came as an answer.
    pub(crate) fn on_answer(&mut self, now: Nanos, first: u64, end: u64) {
        let timeout = self.timeout_ns(1);
        self.brought = self.brought.saturating_add(end - first);
        self.answered.note(now, self.brought);
        let is_own = |c: &Claim| c.step == Step::UnderWay && c.first == first;
        let within = |c: &Claim| c.step == Step::UnderWay && c.first < end && first < c.end;
        let found = self
            .claims
            .iter()
            .position(is_own)
            .or_else(|| self.claims.iter().position(within));
        let Some(at) = found else {
            self.strays += 1;
            if self.limits.answers == Answers::OneDatagram && self.strays >= STRAYS_MAX {
                self.lied();
            }
            return;
        };
        self.strays = 0;
        self.servers.good();
        self.window = (self.window + 1).min(self.limits.requests_under_way.max(1));
        let claim = &mut self.claims[at];
        if !claim.is_answered && claim.attempts == 1 {
            self.round_trip.sample(now.since(claim.sent));
        }
        claim.is_answered = true;
        match self.limits.answers {
            Answers::OneDatagram => {
                let claim = self.claims.remove(at);
                if claim.first == first {
                    self.fit.sample(end - first, end < claim.asked_end);
                }
                let earlier = |c: &&mut Claim| c.step == Step::UnderWay && c.nth < claim.nth;
                for other in self.claims.iter_mut().filter(earlier) {
                    other.overtaken = other.overtaken.saturating_add(1);
                    if other.overtaken >= OVERTAKEN_MAX {
                        other.due = now;
                    }
                }
            }
            // One server answers all, in its own order: who waits longer is not forgotten.
            Answers::Everything => {
                for other in self.claims.iter_mut().filter(|c| c.step == Step::UnderWay) {
                    other.due = other.due.max(now.after(timeout));
                }
            }
        }
    }

    /// An answer cannot be right: another session, impossible numbers, malformed.
    pub fn lied(&mut self) {
        self.strays = 0;
        self.servers.bad();
        if self.servers.has_another() {
            for claim in &mut self.claims {
                claim.step = Step::Again;
            }
        }
    }

    /// The server refused, for a quota of a span of this length if it is not 0 (more than a minute: the
    /// day's).
    pub fn refused(&mut self, now: Nanos, span_ns: u64) {
        match span_ns {
            0 => self.servers.silent(),
            _ => self.quotas.exhaust(now, span_ns),
        }
    }

    /// No connection to the server could be opened.
    pub fn unreachable(&mut self) {
        self.servers.bad();
    }

    /// A request that [`Planner::poll`] gave was not sent: it does not count and is due again after a while.
    pub(crate) fn unsent(&mut self, now: Nanos, first: u64) {
        if let Some(claim) = self
            .claims
            .iter_mut()
            .find(|c| c.step == Step::UnderWay && c.first == first)
        {
            // Its attempt counts: a server that is never there is given up as one that never answers.
            (claim.step, claim.due) = (Step::UnderWay, now.after(self.terms.timeout_max_ns));
            self.quotas.give_back();
        }
    }

    /// What is due, given up, or better done by a snapshot. `room`: how many answers can be kept before their
    /// turn; `live_room`: how many live messages. Call it again until it says [`Plan::Requests`].
    pub(crate) fn plan(&mut self, now: Nanos, missing: &Missing, room: usize, live_room: u64) -> Plan {
        self.claims.retain(|c| missing.has_any(c.first, c.end));
        if let Some(vain) = self.expire(now) {
            return vain;
        }
        if self.terms.attempts_max == 0 {
            let vain = missing.holes().iter().find(|h| !h.lost && h.due <= now);
            return vain.map_or(Plan::Requests, |h| Plan::GiveUp {
                first: h.first,
                end: h.end,
            });
        }
        if self.terms.has_snapshot && self.is_snapshot_better(now, missing, live_room) {
            return Plan::Snapshot;
        }
        let most = usize::from(self.window).min(room.max(1));
        while self.under_way() < most {
            let Some((first, end)) = self.next_wanted(now, missing) else {
                break;
            };
            self.blocked = self.quotas.ready_at(now);
            if self.blocked > now {
                if !self.is_held && self.quotas.is_used_up(now) {
                    (self.is_held, self.tally.held) = (true, self.tally.held + 1);
                }
                break;
            }
            self.is_held = false;
            self.ask(now, first, end, missing);
        }
        if self.under_way() == 0 {
            self.asking_since = None;
            self.answered.forget();
        }
        Plan::Requests
    }

    /// Requests whose patience is over: to be asked again, or in vain.
    fn expire(&mut self, now: Nanos) -> Option<Plan> {
        let mut has_expired = false;
        let mut vain = None;
        for (at, claim) in self.claims.iter_mut().enumerate() {
            if claim.step == Step::Again || claim.due > now {
                continue;
            }
            self.tally.timeouts += 1;
            has_expired = true;
            if claim.overtaken < OVERTAKEN_MAX {
                self.servers.silent();
            }
            claim.step = Step::Again;
            if claim.attempts >= self.terms.attempts_max {
                vain = Some(at);
                break;
            }
        }
        if has_expired {
            self.window = (self.window / 2).max(1);
        }
        vain.map(|at| {
            let claim = self.claims.remove(at);
            Plan::GiveUp {
                first: claim.first,
                end: claim.end,
            }
        })
    }

    fn under_way(&self) -> usize {
        self.claims.iter().filter(|c| c.step != Step::Again).count()
    }

    /// The first range that is to be asked for now: one to be asked again, or one that nobody was asked for.
    fn next_wanted(&self, now: Nanos, missing: &Missing) -> Option<(u64, u64)> {
        let again = self.claims.iter().find(|c| c.step == Step::Again);
        let fresh = match self.claims.len() < self.claims.capacity() {
            true => self.uncovered(missing, now),
            false => None,
        };
        match (again, fresh) {
            (Some(claim), Some(fresh)) if fresh.0 < claim.first => Some(fresh),
            (Some(claim), _) => Some((claim.first, claim.end)),
            (None, fresh) => fresh,
        }
    }

    /// The first part of a missing range due by `by` that no request is to bring.
    fn uncovered(&self, missing: &Missing, by: Nanos) -> Option<(u64, u64)> {
        let mut claims = self.claims.iter().peekable();
        for hole in missing.holes() {
            let mut from = hole.first;
            while from < hole.end {
                while claims.next_if(|c| c.end <= from).is_some() {}
                match claims.peek() {
                    Some(claim) if claim.first <= from => from = claim.end,
                    next => {
                        let end = next.map_or(hole.end, |c| c.first.min(hole.end));
                        if !hole.lost && hole.due <= by {
                            return Some((from, end));
                        }
                        from = end;
                    }
                }
            }
        }
        None
    }

    /// Asks for what is missing from `first` on, up to `end` or as far as one request reaches.
    fn ask(&mut self, now: Nanos, first: u64, end: u64, missing: &Missing) {
        let reach = first.saturating_add(self.terms.request_messages);
        let step = match (self.limits.answers, self.fit.sure()) {
            (Answers::OneDatagram, Some(fit)) => fit.min(self.terms.request_messages),
            _ => self.terms.request_messages,
        };
        let known = self.claims.iter().position(|c| c.first == first);
        let attempts = match known {
            Some(at) => self.claims.remove(at).attempts + 1,
            None => 1,
        };
        let at = self.claims.partition_point(|c| c.first < first);
        // No further than the next request begins.
        let next = self.claims.get(at).map_or(u64::MAX, |c| c.first);
        let Some((first, last_end)) = missing.bounds(first, reach.min(next)) else {
            return;
        };
        let (own_end, asked_end) = match self.limits.spans_gaps {
            true => (last_end, last_end),
            false => {
                let hole_end = missing.hole_end(first).unwrap_or(end);
                let own = hole_end.min(first.saturating_add(step)).min(next);
                let own = if known.is_some() {
                    own.min(end.max(first + 1))
                } else {
                    own
                };
                (own, hole_end.min(reach).max(own))
            }
        };
        let asked_end = match self.limits.answers {
            Answers::OneDatagram => asked_end,
            Answers::Everything => own_end,
        };
        let timeout = self.timeout_ns(attempts);
        self.claims.insert(
            at,
            Claim {
                first,
                end: own_end,
                asked_end,
                step: Step::Send,
                nth: self.sent,
                sent: now,
                due: now.after(timeout),
                attempts,
                is_answered: false,
                overtaken: 0,
            },
        );
        self.sent += 1;
        self.quotas.take(now);
        self.asking_since.get_or_insert(now);
    }

    /// How long an answer is waited for: twice as long for every time it was not.
    fn timeout_ns(&self, attempts: u8) -> u64 {
        let timeout = self
            .round_trip
            .timeout_ns(self.limits.timeout_min_ns, self.terms.timeout_max_ns);
        let doubled = timeout << u32::from(attempts.saturating_sub(1)).min(16);
        doubled.min(self.terms.timeout_max_ns)
    }

    /// The next request to send: its first message and how many are wanted.
    pub(crate) fn poll(&mut self) -> Option<(u64, u16)> {
        let claim = self.claims.iter_mut().find(|c| c.step == Step::Send)?;
        claim.step = Step::UnderWay;
        let count = (claim.asked_end - claim.first).min(u64::from(u16::MAX));
        Some((claim.first, count as u16))
    }

    /// When [`Planner::plan`] has something to do next, if nothing comes before.
    pub(crate) fn timeout(&self, missing: &Missing, room: usize) -> Option<Nanos> {
        if self.terms.attempts_max == 0 {
            return missing.holes().iter().filter(|h| !h.lost).map(|h| h.due).min();
        }
        let answers = self
            .claims
            .iter()
            .filter(|c| c.step != Step::Again)
            .map(|c| c.due)
            .min();
        if self.under_way() >= usize::from(self.window).min(room.max(1)) {
            return answers;
        }
        let again = self
            .claims
            .iter()
            .any(|c| c.step == Step::Again)
            .then_some(self.blocked);
        let fresh = match self.claims.len() < self.claims.capacity() {
            true => self.first_due(missing).map(|due| due.max(self.blocked)),
            false => None,
        };
        [answers, again, fresh].into_iter().flatten().min()
    }

    /// When the first missing range that no request is to bring is due.
    fn first_due(&self, missing: &Missing) -> Option<Nanos> {
        let is_open = |h: &&crate::missing::Hole| !h.lost && !self.covers(h.first, h.end);
        missing.holes().iter().filter(is_open).map(|h| h.due).min()
    }

    fn covers(&self, first: u64, end: u64) -> bool {
        let mut from = first;
        let at = self.claims.partition_point(|c| c.end <= from);
        for claim in &self.claims[at..] {
            if claim.first > from || from >= end {
                break;
            }
            from = claim.end;
        }
        from >= end
    }

    /// Whether a snapshot makes the feed whole sooner than requests, or the quota would run short.
    fn is_snapshot_better(&mut self, now: Nanos, missing: &Missing, live_room: u64) -> bool {
        let count = missing.messages();
        if count > self.terms.gap_max {
            return true;
        }
        // The other line, or a late packet, may still bring it.
        if self.claims.is_empty() && missing.holes().iter().all(|h| h.lost || h.due > now) {
            return false;
        }
        let per_request = match self.limits.answers {
            Answers::OneDatagram => self.fit.sure().unwrap_or(FIT_ASSUMED),
            Answers::Everything => self.terms.request_messages,
        };
        let Some(by_snapshot) = self.snapshots.time(now, self.limits.snapshot_ns) else {
            return false;
        };
        let gaps = match self.limits.spans_gaps {
            true => 1,
            false => missing.holes().len() as u64,
        };
        let requests = count.div_ceil(per_request).max(gaps);
        if requests > 16 && requests > u64::from(self.quotas.day().left(now)) / 2 {
            return true;
        }
        match self.time_by_requests(now, count, requests, live_room) {
            Some(ns) => ns > by_snapshot + by_snapshot / 4 + SNAPSHOT_HANDICAP_NS,
            None => true,
        }
    }

    /// How long requests take until nothing is missing, nanoseconds; `None`: for ever, or longer than the
    /// day's quota.
    fn time_by_requests(&mut self, now: Nanos, count: u64, requests: u64, live_room: u64) -> Option<u64> {
        let by_quota = self.quotas.time_of(now, requests)?;
        let measured = self
            .asking_since
            .filter(|since| now.since(*since) >= MEASURED_NS)
            .and(self.answered.per_s())
            .filter(|rate| *rate > 0);
        let round_trip = self.round_trip.ns().unwrap_or(self.limits.round_trip_ns).max(1);
        let by_answers = match measured {
            Some(rate) => time_at(count, rate)?,
            None => {
                let under_way = u64::from(self.limits.requests_under_way.max(1));
                requests.div_ceil(under_way).saturating_mul(round_trip)
            }
        };
        let alone = by_quota.max(by_answers).max(1);
        let live = self.live.per_s().unwrap_or(0);
        // Live messages that come meanwhile wait, as far as there is room; the others are missing too.
        let meanwhile = u128::from(live) * u128::from(alone) / u128::from(Nanos::SECOND);
        if meanwhile <= u128::from(live_room) {
            return Some(alone);
        }
        let rate = u128::from(count) * u128::from(Nanos::SECOND) / u128::from(alone);
        let gain = u64::try_from(rate).unwrap_or(u64::MAX).checked_sub(live)?;
        time_at(count, gain)
    }

    /// Which server of a port is to be asked, from 0.
    pub fn server(&self, port: Port) -> usize {
        match port {
            Port::SnapshotServer => self.snapshots.servers.at(),
            _ => self.servers.at(),
        }
    }

    /// How many servers of a port there are.
    pub fn set_servers(&mut self, port: Port, count: u8) {
        match port {
            Port::SnapshotServer => self.snapshots.servers.set_count(count),
            _ => self.servers.set_count(count),
        }
    }

    /// What was used of the day's quotas.
    pub fn day_use(&self) -> DayUse {
        let (day, requests) = self.quotas.day_used();
        let (of_snapshots, snapshots) = self.snapshots.day_used();
        match day.cmp(&of_snapshots) {
            core::cmp::Ordering::Equal => DayUse {
                day,
                requests,
                snapshots,
            },
            core::cmp::Ordering::Greater => DayUse {
                day,
                requests,
                snapshots: 0,
            },
            core::cmp::Ordering::Less => DayUse {
                day: of_snapshots,
                requests: 0,
                snapshots,
            },
        }
    }

    /// What an earlier run of the program used of a day's quotas.
    pub fn restore(&mut self, used: DayUse) {
        self.quotas.day().restore(used.day, used.requests);
        self.snapshots.restore(used);
    }
}
