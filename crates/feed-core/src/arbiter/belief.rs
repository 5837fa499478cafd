//! Whom an arbiter believes: a packet far ahead, numbers that begin anew, another session, messages that one
//! line alone has told of. A single packet proves none of it: the other line has to say the same, or the line
//! insists where there is no other.

use super::{Arbiter, Doubt, Progress, Rival, SEQ_MAX};
use crate::Line;
use crate::SessionId;
use crate::claim::Claim;
use tickwire_market::Counter;
use tickwire_market::Nanos;

/// How many times the mean rate of the session a silence may have hidden.
const BURST: u128 = 16;

impl Arbiter {
    /// Whether the packet belongs to the stream being followed. Begins a session or restarts the sequence
    /// when enough says so.
    pub(super) fn is_plausible(
        &mut self,
        now: Nanos,
        line: Line,
        session: SessionId,
        first: u64,
        end: u64,
    ) -> bool {
        if first == 0 || first > SEQ_MAX || self.config.session.is_some_and(|wanted| wanted != session) {
            return false;
        }
        self.before = self.lines[line as usize].high;
        if !self.begun || session != self.session {
            if !self.accepts_session(now, line, session) {
                return false;
            }
            self.begin(now, line, session, first);
            let progress = &mut self.lines[line as usize];
            progress.last = now;
            if line != Line::Retransmit {
                progress.high = end;
            }
            self.before = 0;
            return true;
        }
        if line == Line::Retransmit {
            // Nobody asked for what nobody has told of.
            let is_known = first <= self.high();
            if is_known {
                self.lines[line as usize].last = now;
            }
            return is_known;
        }
        if self.claims.claim.is_some() && self.is_against_claim(now, line, first, end) {
            self.lines[line as usize].fits(now);
            return true;
        }
        let known = self.high();
        if first > known.saturating_add(self.config.jump_max)
            && first > known.saturating_add(self.allowance(now))
        {
            return self.confirms_jump(now, line, first, end);
        }
        let progress = &mut self.lines[line as usize];
        // Behind its own line and nothing new: late, repeated, or the venue has begun anew.
        if first < progress.high && end <= progress.high && end <= self.next {
            progress.last = now;
            if self.confirms_restart(now, line, first, end) {
                self.begin(now, line, self.session, first);
                let progress = &mut self.lines[line as usize];
                (progress.last, progress.high) = (now, end);
                self.before = 0;
            }
        } else {
            progress.high = progress.high.max(end);
            progress.fits(now);
        }
        true
    }

    /// How far ahead of everything known a packet may be: some messages may be lost at once, more after a
    /// silence.
    pub(super) fn allowance(&self, now: Nanos) -> u64 {
        let told = self.high().saturating_sub(self.joined);
        let age = now.since(self.recovery.began).max(1);
        let silence = now.since(self.last_packet()).min(age);
        let hidden = BURST * u128::from(told) * u128::from(silence) / u128::from(age);
        self.config
            .jump_max
            .saturating_add(u64::try_from(hidden).unwrap_or(u64::MAX))
    }

    /// Another packet that does not fit its line: how many there are in a row, and since when.
    pub(super) fn doubt(&mut self, now: Nanos, line: Line, first: u64, end: u64, is_behind: bool) -> Doubt {
        let progress = &mut self.lines[line as usize];
        let doubt = &mut progress.doubt;
        let goes_on = doubt.packets > 0
            && (doubt.high, doubt.next, doubt.is_behind) == (progress.high, first, is_behind);
        if !goes_on {
            *doubt = Doubt {
                high: progress.high,
                since: now,
                is_behind,
                ..Doubt::default()
            };
        }
        doubt.packets += 1;
        (doubt.next, doubt.last) = (end, now);
        *doubt
    }

    /// Whether the other line says the same, of late and as its last word. Late packets on both lines are no
    /// restart.
    pub(super) fn agrees(&self, now: Nanos, line: Line, doubt: &Doubt) -> bool {
        let other = &self.lines[line.other() as usize];
        let theirs = &other.doubt;
        let least = if doubt.is_behind { 3 } else { 1 };
        theirs.packets.min(doubt.packets) >= least
            && (theirs.high, theirs.is_behind) == (other.high, doubt.is_behind)
            && theirs.next.abs_diff(doubt.next) <= self.config.jump_max
            && now.since(theirs.last) < self.config.session_quiet_ns
    }

    /// Whether packets in a row on one line are enough, the other one being silent.
    pub(super) fn insists(&self, doubt: &Doubt) -> bool {
        doubt.packets >= self.config.confirm_packets || self.lasts(doubt)
    }

    pub(super) fn lasts(&self, doubt: &Doubt) -> bool {
        doubt.packets >= 3 && doubt.last.since(doubt.since) >= self.config.confirm_ns
    }

    /// Whether a number far ahead is confirmed: by the other line, by time, or by packets in a row where
    /// there is no other line.
    pub(super) fn confirms_jump(&mut self, now: Nanos, line: Line, first: u64, end: u64) -> bool {
        let doubt = self.doubt(now, line, first, end, false);
        let is_alone = !self.is_heard(now, line.other());
        let sure = self.agrees(now, line, &doubt) || self.lasts(&doubt) || is_alone && self.insists(&doubt);
        if sure {
            let progress = &mut self.lines[line as usize];
            progress.high = end;
            progress.fits(now);
        }
        sure
    }

    /// Whether numbers that begin anew are: the other line says so too, or says nothing.
    pub(super) fn confirms_restart(&mut self, now: Nanos, line: Line, first: u64, end: u64) -> bool {
        let doubt = self.doubt(now, line, first, end, true);
        match self.is_heard(now, line.other()) {
            true => {
                let other = &self.lines[line.other() as usize];
                // A line that has never brought the old numbers is not behind itself: it says the same by
                // being where this one is now.
                let is_new_there = other.doubt.packets == 0
                    && other.high.abs_diff(doubt.next) <= self.config.jump_max
                    && other.high <= doubt.next.midpoint(self.next);
                self.agrees(now, line, &doubt) || is_new_there && self.insists(&doubt)
            }
            false => self.insists(&doubt),
        }
    }

    /// Another session is believed when both lines bring it, or the old one is quiet or over; with one line
    /// when it insists.
    pub(super) fn accepts_session(&mut self, now: Nanos, line: Line, session: SessionId) -> bool {
        if !self.begun {
            return true;
        }
        let quiet_ns = self.config.session_quiet_ns;
        let is_quiet = now.since(self.last_packet()) >= quiet_ns;
        let just_left = self.previous == Some(session) && now.since(self.recovery.began) < quiet_ns;
        if line == Line::Retransmit || just_left {
            return false;
        }
        let is_alone = !self.is_heard(now, line.other());
        let other = &self.lines[line.other() as usize];
        let agrees = other.rival.packets > 0
            && (other.rival.session, other.rival.high) == (session, other.high)
            && now.since(other.rival.last) < quiet_ns;
        let has_ended = self.has_ended();
        let progress = &mut self.lines[line as usize];
        let rival = &mut progress.rival;
        if rival.session != session || rival.high != progress.high {
            *rival = Rival {
                high: progress.high,
                session,
                ..Rival::default()
            };
        }
        rival.packets += 1;
        rival.last = now;
        let insists = is_alone && rival.packets >= self.config.confirm_packets;
        is_quiet || has_ended || agrees || insists
    }

    /// A live packet tells of messages up to its own, and those before it have not come.
    pub(super) fn claim(&mut self, now: Nanos, line: Line, first: u64) {
        if line != Line::Retransmit && self.claims.claim.is_none() {
            let has_witness = self.is_heard(now, line.other());
            let numbers = (self.high(), self.before);
            self.claims.claim = Some(Claim::new(now, line, first, numbers, has_witness));
        }
    }

    /// Whether a packet speaks against what was claimed; when enough do the claim is dropped.
    pub(super) fn is_against_claim(&mut self, now: Nanos, line: Line, first: u64, end: u64) -> bool {
        let patience_ns = self.config.confirm_ns;
        let Some(claim) = &mut self.claims.claim else {
            return false;
        };
        if first >= claim.first {
            if claim.supports(now, line) {
                self.claims.claim = None; // the other line knows of it, too
            }
            return false;
        }
        let fits = claim.continues(now, line, first, end);
        if claim.is_refuted(now, line, patience_ns) {
            self.refute(now, line, first);
        }
        fits
    }

    /// Nobody sent what was claimed, which a packet on `line` that begins at `first` has shown: forgets it.
    #[cold]
    pub(super) fn refute(&mut self, now: Nanos, line: Line, first: u64) {
        let Some(claim) = self.claims.claim.take() else {
            return;
        };
        self.counters.bump(Counter::NumbersRefuted);
        self.claims.has_refuted = true;
        let other = self.lines[claim.line.other() as usize].high;
        let other = if other <= claim.first { other } else { 0 };
        let high = claim.high.max(claim.said).max(other);
        self.lines[claim.line as usize] = Progress {
            high: claim.said.max(claim.before),
            last: self.lines[claim.line as usize].last,
            ..Progress::default()
        };
        if self.next >= claim.first {
            // The session was thought to begin with it.
            let (line, first) = match claim.said_first {
                0 => (line, first),
                said_first => (claim.line, said_first),
            };
            return self.begin(now, line, self.session, first);
        }
        // What was asked for because of it has come for the most part, whatever the lines say.
        let high = high.max(self.next);
        self.missing.forget_from(high);
        self.buffer.forget_from(high);
        self.planner.forget();
        self.high = high;
        self.ending.end = self.ending.end.filter(|end| *end <= high);
        self.snapshot.awaiting &= !core::mem::take(&mut self.claims.waits_for_claim);
    }
}
