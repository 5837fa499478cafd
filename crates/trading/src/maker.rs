//! A market maker: a [`Quoter`], and an [`Eye`] over the same options where there is one.
//!
//! The eye looks first: after the quoter, quotes that move are under way, and it trades with none that could
//! be ours. What it has under way, has sent and has traded counts towards the quoter's limits, and the
//! quoter's trades towards its own: here, in one place. One reason stops both.

use crate::{
    Eye, Fill, Ladder, OrderReport, OrderSink, PullReason, QuoteLive, QuoteSink, Quoter, QuotingState,
    ReportError, ReportKind,
};
use alloc::boxed::Box;
use tickwire_market::{BookUpdate, Counters, Nanos, Price, Qty};

/// Quotes options, and takes what others quote too well. One thread owns it; nothing allocates after it is
/// made.
#[derive(Debug)]
pub struct MarketMaker {
    /// What is quoted, and what is believed live.
    pub quoter: Quoter,
    eye: Option<Eye>,
    /// Contracts of options that the eye traded.
    eye_contracts: u64,
}

impl MarketMaker {
    /// A quoter without an eye.
    pub fn new(quoter: Quoter) -> MarketMaker {
        MarketMaker {
            quoter,
            eye: None,
            eye_contracts: 0,
        }
    }

    /// Lets an eye look at the same options; it is off.
    pub fn set_eye(&mut self, mut eye: Eye) {
        eye.add_net(self.quoter.net());
        self.eye = Some(eye);
    }

    /// The eye, if there is one.
    pub fn eye(&self) -> Option<&Eye> {
        self.eye.as_ref()
    }

    /// Contracts of options that it traded, without those that the venue took back.
    pub fn eye_contracts(&self) -> u64 {
        self.eye_contracts
    }

    /// Whether quotes go out.
    pub fn is_quoting(&self) -> bool {
        self.quoter.state() == QuotingState::Quoting
    }

    /// Has the eye do something: what it has under way and has sent counts towards the quoter's limits from
    /// then on.
    #[inline]
    fn with_eye<R>(&mut self, now: Nanos, does: impl FnOnce(&mut Eye, &Quoter) -> R) -> Option<R> {
        let eye = self.eye.as_mut()?;
        let done = does(eye, &self.quoter);
        self.quoter.set_beside(eye.open());
        self.quoter.on_sent_beside(now, eye.take_sent());
        Some(done)
    }

    // ---- what the market does ---------------------------------------------------------------------------------

    /// The underlying's book changed.
    #[inline]
    pub fn on_underlying<S: QuoteSink + OrderSink>(&mut self, now: Nanos, top: &BookUpdate, sink: &mut S) {
        self.with_eye(now, |eye, quoter| eye.on_underlying(now, top, quoter, sink));
        self.quoter.on_underlying(now, top, sink);
    }

    /// The book of an option changed: what the eye makes of it. [`MarketMaker::on_market`] comes next, when
    /// controls have seen the market.
    #[inline]
    pub fn on_option(&mut self, now: Nanos, option: u16, top: &BookUpdate, sink: &mut impl OrderSink) {
        self.with_eye(now, |eye, quoter| eye.on_option(now, option, top, quoter, sink));
    }

    /// The same for the quoter: best prices of others by side, and whether the book is to be trusted
    /// ([`Quoter::on_market`]).
    #[inline]
    pub fn on_market(
        &mut self,
        now: Nanos,
        option: u16,
        is_live: bool,
        best: [Option<Price>; 2],
        sink: &mut impl QuoteSink,
    ) {
        self.quoter.on_market(now, option, is_live, best, sink);
    }

    /// Whether an option trades.
    pub fn set_open(&mut self, now: Nanos, option: u16, is_open: bool, sink: &mut impl QuoteSink) {
        if let Some(eye) = &mut self.eye {
            eye.set_watched(option, is_open);
        }
        self.quoter.set_quoted(now, option, is_open, sink);
    }

    /// A turn of the loop begins, before anything else is done in it ([`Quoter::on_turn`]). For how long the
    /// loop stood still, in nanoseconds, if that was too long.
    #[inline]
    pub fn on_turn(&mut self, now: Nanos, sink: &mut impl QuoteSink) -> Option<u64> {
        let stood = self.quoter.on_turn(now, sink);
        self.follow_pull(now);
        stood
    }

    /// Packets of a time that the loop stood still still wait to be read.
    #[cold]
    pub fn on_backlog(&mut self, now: Nanos) {
        self.quoter.on_backlog(now);
        if let Some(eye) = &mut self.eye {
            eye.distrust(now);
        }
    }

    // ---- what was made beforehand -----------------------------------------------------------------------------

    /// A newer ladder of the quotes, which follow it at once. The one before comes back, to be filled again.
    pub fn replace_ladder(
        &mut self,
        now: Nanos,
        ladder: Box<Ladder>,
        sink: &mut impl QuoteSink,
    ) -> Option<Box<Ladder>> {
        self.quoter.replace_ladder(now, ladder, sink)
    }

    /// A newer ladder of the eye, to be replaced before that of the quotes; it comes back at once where there
    /// is no eye.
    pub fn replace_eye_ladder(
        &mut self,
        now: Nanos,
        ladder: Box<Ladder>,
        sink: &mut impl OrderSink,
    ) -> Option<Box<Ladder>> {
        if self.eye.is_none() {
            return Some(ladder);
        }
        self.with_eye(now, |eye, quoter| eye.replace_ladder(now, ladder, quoter, sink))?
    }

    /// Contracts of the eye's largest order in each option.
    pub fn set_eye_sizes(&mut self, sizes: &[u32]) {
        if let Some(eye) = &mut self.eye {
            for (option, size) in (0..).zip(sizes) {
                eye.set_size(option, Qty(*size));
            }
        }
    }

    /// What hedges a contract of each option, in thousandths of a contract of the underlying.
    pub fn set_hedges(&mut self, milli: &[i32]) {
        if let Some(eye) = &mut self.eye {
            for (option, delta) in (0..).zip(milli) {
                eye.set_delta(option, *delta);
            }
        }
    }

    // ---- the session ------------------------------------------------------------------------------------------

    /// The session is logged on, and everything that the venue had said before was heard.
    pub fn on_logon(&mut self, now: Nanos) {
        self.with_eye(now, |eye, _| {
            // An order that did not arrive is not sent again, and one that did has been answered.
            eye.forget_open(now);
            eye.on_logon();
        });
        self.quoter.on_logon(now);
    }

    /// The session is lost, and with it every quote.
    pub fn on_disconnect(&mut self) {
        self.quoter.on_disconnect();
        if let Some(eye) = &mut self.eye {
            eye.on_disconnect();
        }
    }

    /// Whether nothing of ours is under way.
    pub fn is_still(&self) -> bool {
        !matches!(self.quoter.state(), QuotingState::Pulling(_))
            && self.quoter.in_flight() == 0
            && self.eye.as_ref().is_none_or(|eye| eye.orders().open() == 0)
    }

    // ---- what was traded --------------------------------------------------------------------------------------

    /// A quote traded.
    pub fn on_fill(&mut self, now: Nanos, fill: &Fill, sink: &mut impl QuoteSink) {
        self.quoter.on_fill(now, fill, sink);
        self.add_net_of_quotes(fill.signed());
    }

    /// An order that is a side of a quote traded.
    pub fn on_order_fill(&mut self, now: Nanos, fill: &Fill, sink: &mut impl QuoteSink) {
        self.quoter.on_order_fill(now, fill, sink);
        self.add_net_of_quotes(fill.signed());
    }

    /// A quote traded in a session that was lost.
    pub fn on_late_fill(&mut self, fill: &Fill) {
        self.quoter.on_late_fill(fill);
        self.add_net_of_quotes(fill.signed());
    }

    /// The venue took a quote's trade back: everything is pulled, and the eye is off.
    #[cold]
    pub fn on_broken(&mut self, now: Nanos, fill: &Fill, sink: &mut impl QuoteSink) {
        self.add_net_of_quotes(-fill.signed());
        self.pull_by(|quoter| quoter.on_broken(now, fill, sink));
    }

    fn add_net_of_quotes(&mut self, contracts: i64) {
        if let Some(eye) = &mut self.eye {
            eye.add_net(contracts);
        }
    }

    /// What became of an order of the eye; `None` without an eye.
    ///
    /// # Errors
    /// As [`Eye::on_report`].
    pub fn on_eye_report(
        &mut self,
        now: Nanos,
        report: &OrderReport,
        sink: &mut impl OrderSink,
    ) -> Option<Result<(), ReportError>> {
        self.with_eye(now, |eye, _| eye.on_report(now, report, sink).map(drop))
    }

    /// An order of the eye traded in an option, or that trade was taken back (`kind`): `fill` is what is
    /// booked. One that is `live`, of this session, trips the protection of both; `is_unknown`: no order of
    /// this process has it.
    pub fn on_eye_trade(
        &mut self,
        now: Nanos,
        (kind, is_live, is_unknown): (ReportKind, bool, bool),
        fill: &EyeFill,
        sink: &mut impl QuoteSink,
    ) {
        let contracts = fill.contracts.unsigned_abs();
        self.eye_contracts = match kind {
            ReportKind::Broken { .. } => self.eye_contracts.saturating_sub(contracts),
            _ => self.eye_contracts + contracts,
        };
        match &fill.counted {
            Some(counted) if matches!(kind, ReportKind::Filled { .. }) && is_live => {
                self.quoter.on_fill_beside(now, counted, sink);
            }
            _ => self.quoter.add_net(fill.contracts, fill.paid),
        }
        if let (Some(eye), true) = (&mut self.eye, is_unknown) {
            eye.hold(fill.option, fill.contracts);
        }
    }

    /// What quotes of an option traded in a process before this one.
    pub fn hold(&mut self, option: u16, contracts: i64, paid: i64) {
        self.quoter.hold(option, contracts, paid);
        self.add_net_of_quotes(contracts);
    }

    /// The same of orders of an eye.
    pub fn hold_of_eye(&mut self, option: u16, contracts: i64, paid: i64) {
        self.quoter.add_net(contracts, paid);
        if let Some(eye) = &mut self.eye {
            eye.hold(option, contracts);
        }
    }

    /// A quote that is two orders was answered.
    pub fn on_orders(&mut self, now: Nanos, live: &QuoteLive, sink: &mut impl QuoteSink) {
        self.quoter.on_orders(now, live, sink);
    }

    // ---- time, and the operator -------------------------------------------------------------------------------

    /// When [`MarketMaker::handle_timeout`] has something to do.
    pub fn poll_timeout(&mut self) -> Option<Nanos> {
        let eye = self.eye.as_mut().and_then(Eye::poll_timeout);
        [self.quoter.poll_timeout(), eye].into_iter().flatten().min()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        if self.quoter.poll_timeout().is_some_and(|due| due <= now) {
            self.quoter.handle_timeout(now, sink);
        }
        if let Some(eye) = &mut self.eye
            && eye.poll_timeout().is_some_and(|due| due <= now)
        {
            eye.handle_timeout(now);
        }
    }

    /// The operator's client was heard.
    pub fn on_heartbeat(&mut self, now: Nanos) {
        self.quoter.on_heartbeat(now);
        if let Some(eye) = &mut self.eye {
            eye.on_heartbeat(now);
        }
    }

    /// Turns the eye on for as long as it stays so without a heartbeat; options that it no longer watched
    /// because an order was rejected are watched again where they trade. `false`: there is none, or the kill
    /// switch has it.
    pub fn arm_eye(&mut self, now: Nanos, are_open: &[bool]) -> bool {
        let Some(eye) = &mut self.eye else { return false };
        for (option, is_open) in (0..).zip(are_open) {
            eye.set_watched(option, *is_open);
        }
        eye.arm(now)
    }

    /// Turns it off.
    pub fn disarm_eye(&mut self) {
        if let Some(eye) = &mut self.eye {
            eye.disarm();
        }
    }

    /// Takes every quote away by a pull of the quoter, and turns the eye off until [`MarketMaker::resume`].
    pub fn pull_by(&mut self, pull: impl FnOnce(&mut Quoter)) {
        if let Some(eye) = &mut self.eye {
            eye.kill();
        }
        pull(&mut self.quoter);
    }

    /// Quotes again, and the eye may be turned on again; while quotes are still being taken away, neither.
    pub fn resume(&mut self, now: Nanos) -> bool {
        if let (Some(eye), false) = (
            &mut self.eye,
            matches!(self.quoter.state(), QuotingState::Pulling(_)),
        ) {
            eye.revive();
        }
        self.quoter.resume(now)
    }

    /// One reason stops both: what pulls quotes for as long as nobody resumes turns the eye off, and what the
    /// underlying is not trusted for leaves it idle. To be called when quotes may have been pulled by what
    /// the quoter was told.
    #[inline]
    pub fn follow_pull(&mut self, now: Nanos) {
        if !self.is_quoting() {
            self.stop_eye(now);
        }
    }

    #[cold]
    fn stop_eye(&mut self, now: Nanos) {
        let (QuotingState::Pulling(reason) | QuotingState::Halted(reason)) = self.quoter.state() else {
            return;
        };
        let Some(eye) = &mut self.eye else { return };
        match reason {
            PullReason::Stall | PullReason::Silence | PullReason::SilentUnderlying => eye.distrust(now),
            PullReason::NoSession => {}
            reason if reason.is_passing() => {}
            _ => eye.kill(),
        }
    }

    /// Everything counted by quoter and eye.
    pub fn count_into(&self, counters: &mut Counters) {
        counters.merge(self.quoter.counters());
        if let Some(eye) = &self.eye {
            counters.merge(eye.counters());
        }
    }
}

/// What an order of the eye traded in an option, as it is booked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EyeFill {
    /// Which option.
    pub option: u16,
    /// Contracts bought, below 0 sold.
    pub contracts: i64,
    /// What was paid for them, below 0 received, in ticks times contracts.
    pub paid: i64,
    /// The same as the quoter's protection counts it; `None` without a price that is one.
    pub counted: Option<Fill>,
}
