//! Taking every quote away, why, and quoting again.

use super::rehearsing::Rehearsed;
use super::{Filled, QuoteSink, Quoter};
use tickwire_market::{Cause, Counter, Nanos};

/// Declares the reasons, and the list of all of them.
macro_rules! pull_reasons {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Why every quote was taken away.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum PullReason {
            $($(#[$doc])* $name,)*
        }

        impl PullReason {
            /// Every reason, in the order of their declaration.
            pub const ALL: &[PullReason] = &[$(PullReason::$name),*];

            /// The reason as it is written here.
            pub const fn name(self) -> &'static str {
                match self {
                    $(PullReason::$name => stringify!($name),)*
                }
            }
        }
    };
}

pull_reasons! {
    /// An operator.
    Operator,
    /// The operator's client was not heard.
    Heartbeat,
    /// The book of the underlying has a gap, or is not built.
    StaleUnderlying,
    /// A side of the underlying is empty, or its bid is not below its ask.
    CrossedUnderlying,
    /// Its bid and ask are too far apart.
    WideUnderlying,
    /// It moved too far at once.
    Jump,
    /// Its price is outside of the ladder, or there is no ladder.
    NoRow,
    /// A quote that must move had no room in the message rate, or too many messages wait for an answer.
    Rate,
    /// An answer did not come in time.
    LateAnswer,
    /// An answer or a fill fits nothing: we do not know what is live.
    Unmatched,
    /// A quote that had to be withdrawn was not, because the venue rejected that.
    Rejected,
    /// Our own protection.
    Protection,
    /// The venue's.
    VenueProtection,
    /// The session is not logged on.
    NoSession,
    /// What was traded has lost more than it may.
    Loss,
    /// The venue took a trade back: what is held is not what was decided on.
    BrokenTrade,
    /// The thread that quotes did not run for longer than
    /// [`QuoterConfig::stall_ns`](super::QuoterConfig::stall_ns): what it saw last may be long past.
    Stall,
    /// No packet of the underlying's market data came for longer than
    /// [`QuoterConfig::silence`](super::QuoterConfig::silence) allows.
    Silence,
    /// The underlying's own book did not change for longer than
    /// [`QuoterConfig::underlying_silence_ns`](super::QuoterConfig::underlying_silence_ns).
    SilentUnderlying,
    /// One of the controls ([`crate::Controls`]) stopped a quote, or the strategy.
    Control,
}

impl PullReason {
    /// Whether quoting goes on by itself once the underlying is good again.
    pub const fn is_passing(self) -> bool {
        matches!(
            self,
            PullReason::StaleUnderlying
                | PullReason::CrossedUnderlying
                | PullReason::WideUnderlying
                | PullReason::Jump
                | PullReason::NoRow
                | PullReason::Stall
                | PullReason::Silence
                | PullReason::SilentUnderlying
        )
    }
}

/// Whether quotes go out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuotingState {
    /// They do.
    Quoting,
    /// They are being taken away.
    Pulling(PullReason),
    /// None is live.
    Halted(PullReason),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Quoting,
    /// The cancel's number once it was sent, and since when it is wanted.
    Pulling(PullReason, Option<u64>, Nanos),
    Halted(PullReason),
}

/// Whether quotes go out, and how often they did not.
#[derive(Clone, Debug)]
pub(super) struct Pulls {
    pub(super) state: State,
    /// How often quoting stopped, by [`PullReason::ALL`].
    pub(super) counts: [u64; PullReason::ALL.len()],
    pub(super) last: Option<PullReason>,
    /// The turn of the loop in which quoting stopped last, as `Trust::turned` has it.
    pub(super) turn: Nanos,
}

/// What is known of the order session.
#[derive(Clone, Debug, Default)]
pub(super) struct OrderSession {
    pub(super) is_there: bool,
    /// When the operator's client was heard.
    pub(super) heard: Nanos,
    /// The next mass quote ends the venue's protection; the one under way that does.
    pub(super) must_reset: bool,
    pub(super) reset_in: Option<u64>,
    pub(super) wants_disconnect: bool,
}

impl Quoter {
    /// Takes every quote away, until [`Quoter::resume`].
    pub fn pull(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        self.pull_for(now, PullReason::Operator, self.last_cause(), sink);
    }

    /// The same because more was lost than may be: the owner knows.
    pub fn pull_on_loss(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        self.pull_for(now, PullReason::Loss, self.last_cause(), sink);
    }

    /// The same because one of the controls stopped the strategy: the owner knows which.
    pub fn pull_on_control(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        self.pull_for(now, PullReason::Control, self.last_cause(), sink);
    }

    /// The same because the venue took a trade back that was no quote's: the owner knows.
    pub fn pull_on_break(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        self.pull_for(now, PullReason::BrokenTrade, self.last_cause(), sink);
    }

    /// Quotes again after a pull that does not pass by itself. `false` while quotes are still being taken
    /// away, and when there is no session: then as soon as there is one.
    pub fn resume(&mut self, now: Nanos) -> bool {
        self.session.heard = now;
        match self.pulls.state {
            State::Pulling(..) => false,
            State::Halted(_) => {
                self.filled = Filled::default();
                self.pulls.state = if self.session.is_there {
                    State::Quoting
                } else {
                    State::Halted(PullReason::NoSession)
                };
                self.session.is_there
            }
            State::Quoting => true,
        }
    }

    /// The session is logged on; without quotes, which the venue cancelled when it was lost.
    pub fn on_logon(&mut self, now: Nanos) {
        (self.session.is_there, self.session.wants_disconnect) = (true, false);
        self.session.heard = now;
        if self.pulls.state == State::Halted(PullReason::NoSession) {
            self.pulls.state = State::Quoting;
        }
    }

    /// The session is lost, and with it every quote.
    pub fn on_disconnect(&mut self) {
        (self.session.is_there, self.session.wants_disconnect) = (false, false);
        // Whether a reset arrived is not known: it is asked for again.
        self.session.must_reset |= self.session.reset_in.take().is_some();
        self.forget_all();
        if self.pulls.state == State::Quoting {
            self.note_pull(PullReason::NoSession);
        }
        self.pulls.state = match self.pulls.state {
            State::Quoting => State::Halted(PullReason::NoSession),
            // What passes by itself would, without a session.
            State::Pulling(reason, ..) | State::Halted(reason) if reason.is_passing() => {
                State::Halted(PullReason::NoSession)
            }
            State::Pulling(reason, ..) | State::Halted(reason) => State::Halted(reason),
        };
    }

    #[cold]
    pub(super) fn unmatched(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        self.counters.bump(Counter::QuoteAnswersUnmatched);
        self.pull_for(now, PullReason::Unmatched, self.last_cause(), sink);
    }

    pub(super) fn note_pull(&mut self, reason: PullReason) {
        self.pulls.counts[reason as usize] += 1;
        self.pulls.last = Some(reason);
        self.pulls.turn = self.trust.turned;
    }

    #[cold]
    pub(super) fn pull_for(
        &mut self,
        now: Nanos,
        reason: PullReason,
        cause: Cause,
        sink: &mut impl QuoteSink,
    ) {
        match self.pulls.state {
            State::Quoting => {
                self.counters.bump(Counter::QuotePulls);
                self.note_pull(reason);
                self.try_cancel(now, reason, now, cause, sink);
            }
            // A reason that stays replaces one that passes.
            State::Pulling(before, id, since) if before.is_passing() && !reason.is_passing() => {
                self.note_pull(reason);
                self.pulls.state = State::Pulling(reason, id, since);
            }
            State::Halted(before)
                if !reason.is_passing() && (before.is_passing() || before == PullReason::NoSession) =>
            {
                self.note_pull(reason);
                self.pulls.state = State::Halted(reason);
            }
            _ => {}
        }
    }

    pub(super) fn try_cancel(
        &mut self,
        now: Nanos,
        reason: PullReason,
        since: Nanos,
        cause: Cause,
        sink: &mut impl QuoteSink,
    ) {
        if self.batch.rehearsed == Rehearsed::Whole {
            return; // A twin has nothing at the venue.
        }
        let id = self.flights.number();
        let is_sent = sink.cancel_all(id, &cause);
        self.pulls.state = State::Pulling(reason, is_sent.then_some(id), if is_sent { now } else { since });
        // A session that takes nothing for so long is of no use.
        self.session.wants_disconnect |= !is_sent && now.since(since) > self.config.answer_max_ns;
    }
}
