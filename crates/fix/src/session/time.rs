//! What a session does because time has passed: heartbeats, tests of a silent peer, deadlines, a clock that
//! is set.

use tickwire_market::Nanos;

use crate::store::Store;
use crate::tag;
use crate::text::Reason;

use super::event::{DisconnectReason, Status};
use super::{Core, RESEND_ATTEMPTS};

impl Core<dyn Store + '_> {
    pub(super) fn timeout(&mut self) {
        self.keep_hours();
        self.cancel_when_due();
        let waited = self.clock.now.since(self.silence.status_since);
        match self.status {
            Status::LogonSent | Status::LogonAwaited if waited >= self.terms.config.logon_timeout_ns => {
                self.disconnect(DisconnectReason::LogonTimeout, Reason::EMPTY)
            }
            Status::LogoutSent if waited >= self.terms.config.logout_timeout_ns => {
                self.disconnect(DisconnectReason::LogoutTimeout, Reason::EMPTY)
            }
            Status::Active => self.active_timeout(),
            _ => {}
        }
    }

    fn active_timeout(&mut self) {
        if let Some(gap) = self.gaps.gap
            && self.clock.now.since(gap.since) >= self.terms.config.resend_timeout_ns
        {
            if gap.attempts >= RESEND_ATTEMPTS {
                return self
                    .logout_and_disconnect(DisconnectReason::ResendTimeout, "Resend request not answered");
            }
            self.request_resend(gap.upto, gap.attempts + 1);
        }
        if self.heartbeat_ns == 0 {
            return;
        }
        let silence = self.clock.now.since(self.silence.last_received);
        if self.silence_max_ns().is_some_and(|most| silence >= most) {
            return self.disconnect(DisconnectReason::HeartbeatTimeout, Reason::EMPTY);
        }
        if self.test_after_ns().is_some_and(|after| silence >= after) && !self.silence.test_outstanding {
            self.silence.test_outstanding = true;
            self.send_admin(b"1", |e| e.text(tag::TEST_REQ_ID, b"TEST"));
        }
        // While the peer is being tested it hears from us anyway, until its time is over.
        let is_tested = self.silence.test_outstanding && self.terms.config.silence_max_permille > 0;
        if !is_tested && self.clock.now.since(self.silence.last_sent) >= self.heartbeat_ns {
            self.send_admin(b"0", |_| {});
        }
    }
}

impl<S: Store + ?Sized> Core<S> {
    // ---- time -------------------------------------------------------------------------------------------------

    /// UTC now: what messages are stamped with and hours are told by.
    #[inline]
    pub(super) fn wall(&self) -> Nanos {
        self.wall_of(self.clock.now)
    }

    #[inline]
    pub(super) fn wall_of(&self, now: Nanos) -> Nanos {
        Nanos(now.0.saturating_add_signed(self.clock.wall_offset_ns))
    }

    /// Takes the time. A clock that was set back takes everything that is measured from a point in time with
    /// it, or nothing would be due for as long; one that was set forward looks like silence.
    #[inline]
    pub(super) fn follow_clock(&mut self, now: Nanos) {
        if now < self.clock.now {
            self.set_back(self.clock.now.since(now));
        }
        self.clock.now = now;
    }

    #[cold]
    fn set_back(&mut self, by_ns: u64) {
        let gap = self.gaps.gap.as_mut().map(|gap| &mut gap.since);
        let points = [
            &mut self.silence.status_since,
            &mut self.silence.last_sent,
            &mut self.silence.last_received,
        ];
        for point in points
            .into_iter()
            .chain(gap)
            .chain(self.connection.cancel_at.as_mut())
        {
            *point = Nanos(point.0.saturating_sub(by_ns));
        }
    }

    /// How long a silence is tested, if it is.
    fn test_after_ns(&self) -> Option<u64> {
        self.of_heartbeat(self.terms.config.test_after_permille)
    }

    /// How long a silence ends the session, if it does.
    fn silence_max_ns(&self) -> Option<u64> {
        self.of_heartbeat(self.terms.config.silence_max_permille)
    }

    fn of_heartbeat(&self, permille: u32) -> Option<u64> {
        (permille > 0).then(|| (self.heartbeat_ns / 1_000).saturating_mul(permille.into()))
    }

    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        let paced = self.pace.pace_out.as_ref();
        let paced = paced.and_then(|pace| pace.resumes(self.clock.now, self.resending.resend.is_some()));
        [
            self.status_timeout(),
            self.connection.cancel_at,
            self.hours_timeout(),
            paced.filter(|_| !self.is_over()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn status_timeout(&self) -> Option<Nanos> {
        match self.status {
            Status::Disconnected | Status::Closing => None,
            Status::LogonSent | Status::LogonAwaited => Some(
                self.silence
                    .status_since
                    .after(self.terms.config.logon_timeout_ns),
            ),
            Status::LogoutSent => Some(
                self.silence
                    .status_since
                    .after(self.terms.config.logout_timeout_ns),
            ),
            Status::Active => {
                let gap = self
                    .gaps
                    .gap
                    .map(|gap| gap.since.after(self.terms.config.resend_timeout_ns));
                let after = |ns: Option<u64>| ns.map(|ns| self.silence.last_received.after(ns));
                let end = after(self.silence_max_ns());
                let test = after(self.test_after_ns()).filter(|_| !self.silence.test_outstanding);
                let is_tested = self.silence.test_outstanding && end.is_some();
                let heartbeat = (!is_tested).then(|| self.silence.last_sent.after(self.heartbeat_ns));
                let beats = [end, test, heartbeat].map(|at| at.filter(|_| self.heartbeat_ns > 0));
                beats.into_iter().chain([gap]).flatten().min()
            }
        }
    }
}
