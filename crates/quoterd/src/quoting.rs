//! The thread that quotes, on the loop of everybody's ([`tickwire_node::host`]): what the quoter's process
//! does in it.
//!
//! ```text
//! Receiver ─► Quoting ─► QuotePath ─► mass quotes ─► link ─► venue
//!                        ▲ ladders          ▲ answers, timers, the operator's words
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tickwire_feed::Channel;
use tickwire_fix::Store;
use tickwire_lab::Histogram;
use tickwire_market::{
    Counter, Counters, EventSink, InstrumentId, MarketEvent, MessageType, Nanos, Port, Price, Upcoming,
};
use tickwire_receive::receiver::Consumer;
use tickwire_runtime::clock::tsc;
use tickwire_runtime::spsc;
use tickwire_runtime::stamp::RxStamp;
use tickwire_trading::{Ladders, QuotingState};

use crate::Run;
use crate::chain::Chain;
use crate::path::{QuotePath, Quoters, QuotingHot, Traded, Trades};
use crate::pricing::{LadderRing, Priced, PricingEnd, Shared};
use crate::pulls::{PullNews, pulls_by_name};
use crate::report::{QuoteRow, QuoterResults};
use tickwire_console::failure::Failure;
use tickwire_control::results::counters_by_id;
use tickwire_node::host::{Desk, Host, Path};
use tickwire_node::link::Entry;
use tickwire_node::session::Said;

/// How a run ends that has ended well.
const CANCELLED: &str = "every quote was cancelled";

/// Who quotes by what the channel says.
pub(crate) struct Quoting {
    pub(crate) path: QuotePath<Entry, Ring>,
    /// From a packet's receipt to the last mass quote it caused, of those that caused any.
    packet_to_quotes: Histogram,
    /// The packet in hand: when it was taken, by both clocks, and how many mass quotes had been sent before.
    arrived: u64,
    received: Nanos,
    sent: u64,
}

impl Quoting {
    pub(crate) fn new(path: QuotePath<Entry, Ring>) -> Quoting {
        Quoting {
            path,
            packet_to_quotes: Histogram::default(),
            arrived: 0,
            received: Nanos::ZERO,
            sent: 0,
        }
    }
}

impl Path<false> for Quoting {
    type Rule = Quoters<Ring>;

    #[inline(always)]
    fn hot(&self) -> &QuotingHot<Entry, Ring> {
        self.path.hot()
    }

    #[inline(always)]
    fn hot_mut(&mut self) -> &mut QuotingHot<Entry, Ring> {
        self.path.hot_mut()
    }
}

impl EventSink for Quoting {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        self.path.on_event(event);
    }

    #[inline]
    fn on_message(&mut self, kind: MessageType) {
        self.path.on_message(kind);
    }

    #[inline]
    fn upcoming(&mut self, next: Upcoming) {
        self.path.upcoming(next);
    }

    #[inline]
    fn arriving(&mut self, next: Upcoming) {
        self.path.arriving(next);
    }

    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.path.next_distrusted()
    }
}

impl Consumer for Quoting {
    type Successor = Quoting;

    #[inline]
    fn now(&self) -> Nanos {
        self.hot().clock.now()
    }

    /// There is one.
    #[inline]
    fn turn_to(&mut self, _: usize) {}

    #[inline]
    fn begins(&mut self, stamp: &RxStamp) -> Nanos {
        self.arrived = stamp.tsc;
        self.received = self.hot().clock.nanos_at(stamp.tsc);
        self.sent = self.path.sent()[0];
        self.received
    }

    #[inline]
    fn ends<C: Channel>(&mut self, _: &C, _: Port, _: impl FnOnce() -> Option<RxStamp>) {
        self.path.packet(self.received);
        if self.path.sent()[0] != self.sent {
            let took = self.hot().clock.span_ns(tsc().saturating_sub(self.arrived));
            self.packet_to_quotes.record(took);
        }
    }

    fn rehearsed(&self) -> Option<(InstrumentId, Price)> {
        self.path.rehearsed()
    }

    fn begins_aside(&mut self, now: Nanos) {
        self.received = now;
    }

    fn ends_aside<C: Channel>(&mut self, _: &C) {
        self.path.settle(self.received);
    }
}

/// How far the end is.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Quoting,
    Pulling { since: Nanos },
    LoggingOut { since: Nanos },
}

/// To and from the pricing thread: fills go, ladders come.
pub(crate) struct Ring {
    pub(crate) trades: spsc::Producer<Traded>,
    pub(crate) ladders: LadderRing,
}

impl Trades for Ring {
    fn traded(&mut self, traded: &Traded) -> bool {
        self.trades.push(*traded).is_ok()
    }

    #[inline]
    fn ladders(&mut self) -> Option<Ladders> {
        self.ladders.next()
    }

    fn give_back(&mut self, before: Ladders) {
        self.ladders.give_back(before);
    }
}

/// What the quoter's process does on its thread, around the host.
pub(crate) struct QuotingThread<'a> {
    pub(crate) run: &'a Run<'a>,
    pub(crate) host: Host<Quoting, false>,
    pub(crate) pricing: PricingEnd,
    pub(crate) shared: Arc<Shared>,
    pub(crate) started: Nanos,
    pub(crate) end: End,
    pub(crate) news: PullNews,
    /// The pricing thread is there.
    pub(crate) is_priced: bool,
    /// How the run ended.
    pub(crate) done: Option<Result<(), Failure>>,
}

impl Desk<false> for QuotingThread<'_> {
    type Path = Quoting;

    #[inline(always)]
    fn host(&self) -> &Host<Quoting, false> {
        &self.host
    }

    #[inline(always)]
    fn host_mut(&mut self) -> &mut Host<Quoting, false> {
        &mut self.host
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.done.is_some()
    }

    #[inline]
    fn begins(&mut self, now: Nanos) {
        if let Some(stood) = self.host.path.path.turn(now) {
            // Before anything of the meantime is read.
            self.news.stood = stood;
            self.host.receiver.renew();
        }
    }

    #[inline]
    fn received(&mut self) {
        if let Some(half_tick) = self.host.path.path.half_tick() {
            self.shared.half_tick.store(half_tick, Ordering::Relaxed);
        }
    }

    fn said(&mut self, _: usize, now: Nanos, said: Said) -> Result<(), Failure> {
        self.host.path.path.on_said(now, said);
        Ok(())
    }

    fn closed(&mut self, _: usize, now: Nanos) -> Result<(), Failure> {
        let why = format!(
            "the venue at {} closed the connection",
            self.host.lines[0].link.peer()
        );
        self.lose(now, why);
        Ok(())
    }

    fn failed(&mut self, _: usize, now: Nanos, error: &std::io::Error) {
        if self.host.lines[0].link.is_up() {
            self.lose(now, format!("the connection to the venue failed: {error}"));
        }
    }

    #[inline]
    fn turned(&mut self, now: Nanos) {
        let path = &mut self.host.path.path;
        path.go_on(now);
        // Before time is judged: the operator's heartbeats are not late while they lie here.
        self.shared.obey(now, path);
        // Behind what the venue has said: this thread may have stood still since the turn began, and an
        // answer that lies in the socket is not late.
        path.on_time(now);
        // Fills up to there are in the ring.
        let heard = path.fix().store().next_in() - 1;
        self.shared.heard.store(heard, Ordering::Release);
        path.settle(now);
        self.mind_session(now);
    }

    fn look(&mut self, now: Nanos) -> Result<(), Failure> {
        let path = &mut self.host.path.path;
        if let Some(refused) = path.session.refused.take() {
            return Err(refused);
        }
        path.look_up(now);
        self.shared.note(path);
        if !self.run.is_child {
            self.news.tell(path, &self.host.lines[0].link);
        }
        if let Some(mut view) = self.pricing.view() {
            path.look(now, &mut view);
            self.pricing.show(view);
        }
        if path.trades().ladders.is_over() && matches!(self.end, End::Quoting) {
            path.pull(now);
            self.end = End::Pulling { since: now };
            self.is_priced = false;
        }
        self.host.receiver.look(&mut self.host.path);
        if let Some(done) = self.conclude(now) {
            self.done = Some(match self.is_priced {
                true => done,
                false => Err(Failure::system(
                    "pricing ended, see above; every quote was cancelled",
                )),
            });
            return Ok(());
        }
        if matches!(self.end, End::Quoting) && self.host.mend(0, now)? {
            self.host.path.path.session.ended = None;
        }
        if self.run.is_child {
            let sent = self.host.path.path.sent()[0];
            self.host.tell_progress(self.started, now, sent);
        }
        Ok(())
    }
}

impl QuotingThread<'_> {
    /// Ends the session where it ended itself, and where the venue does not confirm that it cancelled.
    #[inline]
    fn mind_session(&mut self, now: Nanos) {
        let path = &self.host.path.path;
        if !matches!(self.end, End::Quoting) {
            return;
        }
        if let Some(reason) = path.session.ended
            && self.host.lines[0].link.is_up()
        {
            self.lose(now, format!("the session with the venue ended: {reason}"));
        } else if path.maker().quoter.wants_disconnect() {
            let why = "the venue did not confirm that quotes were cancelled: the session is ended so that it cancels them";
            self.lose(now, why.to_string());
        }
    }

    /// There is no session any more, and no quote; [`Host::mend`] makes a new connection.
    #[cold]
    fn lose(&mut self, now: Nanos, why: String) {
        self.host.path.path.disconnected(now);
        self.host.drop_connection(0, now, why);
    }

    /// The end, step by step: everything is pulled, the venue confirms, we log out. Market data that is
    /// silent is no end: nothing is quoted until it comes again.
    fn conclude(&mut self, now: Nanos) -> Option<Result<(), Failure>> {
        let QuotingThread { run, host, end, .. } = self;
        let (path, link) = (&mut host.path.path, &mut host.lines[0].link);
        let stopped = run.stop.reason();
        let done = |how: &str| match stopped {
            Some(reason) => Err(Failure::interrupted(format!("{reason}; {how}"))),
            None => Ok(()),
        };
        let is_over = host.receiver.is_done() || stopped.is_some();
        if !link.is_up() || path.session.ended.is_some() {
            // Without a session nothing is quoted: there is nothing to wait for.
            let how = match end {
                End::LoggingOut { .. } => CANCELLED,
                _ => {
                    "the session with the venue was lost before it confirmed that quotes were cancelled: it cancels them with the session"
                }
            };
            return (is_over || !matches!(end, End::Quoting)).then(|| done(how));
        }
        if path.maker().quoter.wants_disconnect() {
            return Some(Err(Failure::peer_lost(
                "the venue did not confirm that quotes were cancelled; the session was ended so that it cancels them",
            )));
        }
        match *end {
            End::Quoting if is_over => {
                path.pull(now);
                *end = End::Pulling { since: now };
            }
            End::Pulling { since } => {
                let is_empty = matches!(path.maker().quoter.state(), QuotingState::Halted(_));
                if is_empty && path.is_still() {
                    path.log_out(now, "end of quoting");
                    // What comes now is the answer to that.
                    link.leave();
                    *end = End::LoggingOut { since: now };
                } else if now.since(since) > 2 * Nanos::SECOND {
                    return Some(Err(Failure::peer_lost(
                        "the venue did not confirm that quotes were cancelled within 2 s",
                    )));
                }
            }
            End::LoggingOut { since } if now.since(since) > 2 * Nanos::SECOND => {
                return Some(done(CANCELLED));
            }
            End::Quoting | End::LoggingOut { .. } => {}
        }
        None
    }

    /// What the run leaves behind.
    pub(crate) fn results(self, chain: &Chain, priced: Priced) -> QuoterResults {
        let (run, path) = (self.run, &self.host.path.path);
        let mut counters: Counters = self.host.receiver.counters();
        counters.merge(&path.counters());
        counters.add(Counter::ClockSteps, self.host.clock_steps);
        let rows = (0_u16..).zip(&chain.options).map(|(quote, option)| QuoteRow {
            symbol: option.symbol.to_string(),
            position: path.maker().quoter.position(quote),
            live: path.maker().quoter.open(quote),
            eye: path.maker().eye().map_or(0, |eye| eye.position(quote)),
        });
        QuoterResults {
            counters: counters_by_id(&counters),
            quotes: rows.collect(),
            messages: path.sent()[0],
            bytes: path.sent()[1],
            eye_orders: path.orders_sent(),
            repeated_fills: path.repeated(),
            unread_answers: path.session.unread,
            pulls: pulls_by_name(path.maker().quoter.pulls()),
            packet_to_quotes: self.host.path.packet_to_quotes.clone(),
            priced,
            host: tickwire_control::summary::host(self.host.clock(), Some(self.host.waiting.to_string())),
            underlying: run.section.underlying.0.to_string(),
        }
    }
}
