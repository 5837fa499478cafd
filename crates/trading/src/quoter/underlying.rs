//! Whether the underlying, its market data and our own loop are to be trusted.

use super::pull::State;
use super::{PullReason, QuoteSink, Quoter, Silence, TwoLooks};
use tickwire_market::{BookState, BookUpdate, Cause, Nanos, Price, Side};

/// The last look at the underlying.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) half_tick: i64,
    pub(super) cause: Cause,
}

/// What was seen of the underlying and of the loop.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    pub(super) look: Option<Look>,
    /// The underlying is not to be trusted before then.
    pub(super) calm_at: Nanos,
    /// The last turn of the loop, and the last change of the underlying's book; zero before the first.
    pub(super) turned: Nanos,
    pub(super) changed: Nanos,
    pub(super) silence: Silence,
    /// At silence, one when each turn begins.
    pub(super) looks: TwoLooks,
}

impl Quoter {
    /// The underlying's book changed: quotes that must move or may be improved are sent, or all of them
    /// pulled.
    #[inline]
    pub fn on_underlying(&mut self, now: Nanos, update: &BookUpdate, sink: &mut impl QuoteSink) {
        let cause = Cause {
            venue: update.venue,
            seq: update.seq,
            recv_ts: update.recv_ts,
        };
        let half_tick = match self.judge(update) {
            Ok(half_tick) => half_tick,
            Err(reason) => return self.distrust(now, reason, cause, sink),
        };
        self.follow(now, half_tick, cause, sink);
    }

    /// The underlying is there now.
    #[inline(never)]
    pub(super) fn follow(&mut self, now: Nanos, half_tick: i64, cause: Cause, sink: &mut impl QuoteSink) {
        let look = Look { half_tick, cause };
        let before = self.trust.look.replace(look);
        let moved = before.map_or(0, |look| look.half_tick.abs_diff(half_tick));
        if moved > self.config.jump_half_ticks.into() {
            return self.distrust(now, PullReason::Jump, cause, sink);
        }
        if let State::Halted(reason) = self.pulls.state
            && reason.is_passing()
            && now >= self.trust.calm_at
        {
            self.pulls.state = State::Quoting;
        }
        self.decide_at(now, &look, 0..self.table.blocks(), sink);
    }

    /// The price of the underlying, or why it is not to be trusted.
    #[inline]
    pub(super) fn judge(&self, update: &BookUpdate) -> Result<i64, PullReason> {
        half_tick(update, self.config.underlying_tick, self.config.spread_max_ticks)
    }

    #[cold]
    pub(super) fn distrust(
        &mut self,
        now: Nanos,
        reason: PullReason,
        cause: Cause,
        sink: &mut impl QuoteSink,
    ) {
        self.trust.calm_at = now.after(self.config.calm_ns);
        self.trust.look = self.trust.look.map(|look| Look { cause, ..look });
        if reason != PullReason::Jump && reason != PullReason::NoRow {
            // What comes next is compared with nothing.
            self.trust.look = None;
        }
        self.pull_for(now, reason, cause, sink);
    }

    /// A packet of the underlying's market data was received, whatever it holds: its channel is not silent.
    #[inline]
    pub fn on_packet(&mut self, now: Nanos) {
        self.trust.silence.on_packet(now);
    }

    /// The market data changed the underlying's book.
    #[inline]
    pub fn on_change(&mut self, now: Nanos) {
        self.trust.changed = now;
    }

    /// A turn of the loop begins, before anything else is done in it. One that comes too late after the turn
    /// before pulls everything, as does market data that is silent at the begin of two turns, with what was
    /// to be read in between read: what is quoted by may be long past.
    /// Either passes by itself. How long the loop stood still, in nanoseconds, if it was too long; what waits
    /// in the sockets then is older than it seems, see [`Quoter::on_backlog`].
    #[inline]
    pub fn on_turn(&mut self, now: Nanos, sink: &mut impl QuoteSink) -> Option<u64> {
        let before = core::mem::replace(&mut self.trust.turned, now);
        let stood = now.since(before);
        if self.config.stall_ns > 0 && stood > self.config.stall_ns && before != Nanos::ZERO {
            // Nobody listened meanwhile: that nothing was heard says nothing of the venue.
            self.trust.silence.restart(now);
            self.trust.changed = now;
            // What stopped quoting in the turn that stood still, as the loss of the session, came of that.
            let is_told = self.pulls.last == Some(PullReason::Stall);
            if self.pulls.state != State::Quoting && self.pulls.turn == before && !is_told {
                self.note_pull(PullReason::Stall);
            }
            self.distrust(now, PullReason::Stall, self.last_cause(), sink);
            return Some(stood);
        }
        let underlying_max = self.config.underlying_silence_ns;
        let is_unchanged = underlying_max > 0
            && self.trust.changed != Nanos::ZERO
            && now.since(self.trust.changed) > underlying_max;
        let silent = match self.trust.silence.is_silent(now) {
            true => Some((PullReason::Silence, self.trust.silence.heard())),
            false => is_unchanged.then_some((PullReason::SilentUnderlying, self.trust.changed)),
        };
        // Nothing has been read in this turn yet.
        let is_believed = self.trust.looks.confirm(silent.map(|(_, since)| since));
        if let Some((reason, _)) = silent.filter(|_| is_believed) {
            self.distrust(now, reason, self.last_cause(), sink);
        }
        None
    }

    /// After a stall, packets of the meantime still wait to be read: nothing is quoted by them.
    pub fn on_backlog(&mut self, now: Nanos) {
        self.trust.calm_at = self.trust.calm_at.max(now.after(self.config.calm_ns));
    }

    /// How long market data may be silent now, in nanoseconds; `None` for any time.
    pub fn silence_max_ns(&self) -> Option<u64> {
        self.trust.silence.limit_ns()
    }
}

/// Bid plus ask of an underlying in its ticks, or why they are not to be trusted.
#[inline]
pub(crate) fn half_tick(update: &BookUpdate, tick: Price, spread_max_ticks: u32) -> Result<i64, PullReason> {
    if update.state != BookState::Live {
        return Err(PullReason::StaleUnderlying);
    }
    let (Some((bid, _)), Some((ask, _))) = (update.best(Side::Bid), update.best(Side::Ask)) else {
        return Err(PullReason::CrossedUnderlying);
    };
    let tick = tick.raw().max(1);
    let (bid, ask) = (bid.raw() / tick, ask.raw() / tick);
    if bid >= ask {
        return Err(PullReason::CrossedUnderlying);
    }
    if ask.abs_diff(bid) > spread_max_ticks.into() {
        return Err(PullReason::WideUnderlying);
    }
    Ok(bid + ask)
}
