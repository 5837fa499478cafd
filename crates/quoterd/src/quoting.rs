//! The thread that quotes: its loop around what the channel says and what the venue answers.
//!
//! ```text
//! Receiver ─► Quoting ─► QuotePath ─► mass quotes ─► link ─► venue
//!                        ▲ ladders          ▲ answers, timers, the operator's words
//! ```

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;

use tickwire_feed::Channel;
use tickwire_fix::Store;
use tickwire_lab::Histogram;
use tickwire_market::{
    Counter, Counters, EventSink, InstrumentId, MarketEvent, MessageType, Nanos, OrderId, Port,
};
use tickwire_receive::receiver::{Consumer, Receiver, Taken};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::spsc;
use tickwire_runtime::tcp::Received;
use tickwire_runtime::wait::WaitStrategy;
use tickwire_trading::QuotingState;

use crate::Run;
use crate::chain::Chain;
use crate::path::{QuotePath, Traded, Trades};
use crate::pricing::{Ladders, Made, Priced, Shared};
use crate::pulls::{PullNews, pulls_by_name};
use crate::report::{QuoteRow, QuoterResults};
use tickwire_console::failure::Failure;
use tickwire_console::health::{follow_clock, follow_if_set};
use tickwire_control::notice::Notice;
use tickwire_control::results::counters_by_id;
use tickwire_node::controls::beat::Beat;
use tickwire_node::hot::OrderOut;
use tickwire_node::link::{Entry, Link};
use tickwire_venues::wait::Waiting;

/// How a run ends that has ended well.
const CANCELLED: &str = "every quote was cancelled";
/// Between two looks at everything slow.
const LOOK_NS: u64 = 100 * Nanos::MILLI;

/// Who quotes by what the channel says.
pub(crate) struct Quoting {
    pub(crate) clock: Clock,
    pub(crate) path: QuotePath<Entry, Ring>,
    /// From a packet's receipt to the last mass quote it caused, of those that caused any.
    packet_to_quotes: Histogram,
    /// The packet in hand: when it was taken, by both clocks, and how many mass quotes had been sent before.
    arrived: u64,
    received: Nanos,
    sent: u64,
}

impl Quoting {
    pub(crate) fn new(clock: Clock, path: QuotePath<Entry, Ring>) -> Quoting {
        Quoting {
            clock,
            path,
            packet_to_quotes: Histogram::default(),
            arrived: 0,
            received: Nanos::ZERO,
            sent: 0,
        }
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
    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        self.path.upcoming(instrument, order_id);
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
        self.clock.now()
    }

    /// There is one.
    #[inline]
    fn turn_to(&mut self, _: usize) {}

    #[inline]
    fn begins(&mut self, tsc: u64) -> Nanos {
        self.arrived = tsc;
        self.received = self.clock.nanos_at(tsc);
        self.sent = self.path.sent()[0];
        self.received
    }

    #[inline]
    fn ends<C: Channel>(&mut self, _: &C, _: Port, _: impl FnOnce() -> Option<NonZeroU64>) {
        self.path.packet(self.received);
        if self.path.sent()[0] != self.sent {
            let took = self.clock.span_ns(tsc().saturating_sub(self.arrived));
            self.packet_to_quotes.record(took);
        }
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

/// Fills, to the pricing thread.
pub(crate) struct Ring(pub(crate) spsc::Producer<Traded>);

impl Trades for Ring {
    fn traded(&mut self, traded: &Traded) -> bool {
        self.0.push(*traded).is_ok()
    }
}

/// See the module's description.
pub(crate) struct QuotingThread<'a> {
    pub(crate) run: &'a Run<'a>,
    pub(crate) receiver: Receiver<Quoting>,
    pub(crate) hot: Quoting,
    pub(crate) link: Link,
    pub(crate) waiting: Waiting,
    /// What the venue sends is read into it.
    pub(crate) buffer: Vec<u8>,
    pub(crate) started: Nanos,
    /// How often the system's clock was set.
    pub(crate) clock_steps: u64,
    pub(crate) end: End,
    pub(crate) news: PullNews,
    /// Packets of a time that the loop stood still wait to be read.
    pub(crate) is_behind: bool,
    /// The pricing thread is there.
    pub(crate) is_priced: bool,
}

impl QuotingThread<'_> {
    /// Quotes until the feed has ended, the session is over, or the run is stopped.
    pub(crate) fn serve(
        &mut self,
        ladders: &mut Ladders,
        shared: &Shared,
        beat: Option<&Beat>,
    ) -> Result<(), Failure> {
        let mut next_look = Nanos::ZERO;
        let mut looks = 0_u32;
        // Only a thread that never sleeps has time to spare.
        let spins = self.waiting.strategy == WaitStrategy::Spin;
        let rehearse_ns = u64::from(self.run.section.rehearse_us) * Nanos::MICRO;
        let mut next_rehearsal = (spins && rehearse_ns > 0).then_some(Nanos::ZERO);
        loop {
            if let Some(beat) = beat {
                beat.turn();
            }
            self.turn(ladders, shared);
            let now = self.hot.clock.now();
            self.mind_session(now);
            shared.obey(now, &mut self.hot.path);
            if let Some(due) = &mut next_rehearsal
                && now >= *due
            {
                *due = now.after(rehearse_ns);
                self.hot.path.rehearse(now);
            }
            if now >= next_look {
                next_look = now.after(LOOK_NS);
                looks += 1;
                if let Some(done) = self.look(now, looks.is_multiple_of(10), ladders, shared)? {
                    return done;
                }
            }
            self.receiver.wait(now, None);
        }
    }

    /// One turn of the loop: market data, ladders, the venue, timers.
    #[inline]
    fn turn(&mut self, ladders: &mut Ladders, shared: &Shared) {
        if let Some(stood) = self.hot.path.turn(self.hot.clock.now()) {
            // Before anything of the meantime is read.
            self.is_behind = true;
            self.news.stood = stood;
            self.receiver.renew();
        }
        let taken = self.receiver.receive(&mut self.hot);
        let now = self.hot.clock.now();
        if self.is_behind {
            self.hot.path.backlog(now);
            self.is_behind = taken == Taken::Part;
        }
        while let Some(made) = ladders.next() {
            if let Some(before) = take_ladders(now, &mut self.hot.path, made) {
                ladders.give_back(before);
            }
        }
        if let Some(half_tick) = self.hot.path.half_tick() {
            shared.half_tick.store(half_tick, Ordering::Relaxed);
        }
        self.hear_venue(now);
        // Fills up to there are in the ring.
        let heard = self.hot.path.fix().store().next_in() - 1;
        shared.heard.store(heard, Ordering::Release);
        if self.hot.path.poll_timeout().is_some_and(|due| due <= now) {
            self.hot.path.handle_timeout(now);
        }
        self.receiver.timers(now, &mut self.hot);
        self.receiver.links(now, &mut self.hot);
        self.hot.path.settle(now);
    }

    /// What the venue says.
    fn hear_venue(&mut self, now: Nanos) {
        let path = &mut self.hot.path;
        let why = match path.out_mut().recv(&mut self.buffer) {
            Ok(Received::Nothing) => return,
            Ok(Received::Bytes(bytes)) => {
                let bytes: &[u8] = bytes;
                if follow_if_set(&mut self.hot.clock, &mut self.clock_steps) {
                    path.fix_mut().set_wall_offset(self.hot.clock.wall_offset_ns());
                }
                return path.on_bytes(now, bytes);
            }
            Ok(Received::Closed) => format!("the venue at {} closed the connection", self.link.peer()),
            Err(e) => format!("the connection to the venue failed: {e}"),
        };
        self.lose(now, why);
    }

    /// Ends the session where its connection failed, where it ended itself, and where the venue does not
    /// confirm that it cancelled.
    fn mind_session(&mut self, now: Nanos) {
        let is_quoting = matches!(self.end, End::Quoting);
        if let Some(error) = self.hot.path.take_failure()
            && self.link.is_up()
        {
            self.lose(now, format!("the connection to the venue failed: {error}"));
        }
        if let Some(reason) = self.hot.path.session.ended
            && self.link.is_up()
            && is_quoting
        {
            self.lose(now, format!("the session with the venue ended: {reason}"));
        }
        if self.hot.path.maker().quoter.wants_disconnect() && is_quoting {
            let why = "the venue did not confirm that quotes were cancelled: the session is ended so that it cancels them";
            self.lose(now, why.to_string());
        }
    }

    /// There is no session any more, and no quote; [`Link::mend`] makes a new connection.
    #[cold]
    fn lose(&mut self, now: Nanos, why: String) {
        self.hot.path.disconnected(now);
        // Its number is watched no longer before it may be another file's.
        self.link.lost(now, why, &mut self.receiver.waiter);
        self.link.close(self.hot.path.out_mut());
        self.hot.path.replace(Entry::default());
    }

    /// Everything slow, ten times a second; once a second the clock follows the kernel's (`follows`). How the
    /// run ended, once it has.
    fn look(
        &mut self,
        now: Nanos,
        follows: bool,
        ladders: &mut Ladders,
        shared: &Shared,
    ) -> Result<Option<Result<(), Failure>>, Failure> {
        let path = &mut self.hot.path;
        if let Some(refused) = path.session.refused.take() {
            return Err(refused);
        }
        if follows && follow_clock(&mut self.hot.clock, &mut self.clock_steps) {
            path.fix_mut().set_wall_offset(self.hot.clock.wall_offset_ns());
        }
        path.look_up(now);
        shared.note(path);
        if !self.run.is_child {
            self.news.tell(path, &self.link);
        }
        if let Some(mut view) = ladders.view() {
            path.look(now, &mut view);
            ladders.show(view);
        }
        if ladders.is_over() && matches!(self.end, End::Quoting) {
            path.pull(now);
            self.end = End::Pulling { since: now };
            self.is_priced = false;
        }
        self.receiver.look(&mut self.hot);
        if let Some(done) = self.conclude(now) {
            return match self.is_priced {
                true => Ok(Some(done)),
                false => Err(Failure::system(
                    "pricing ended, see above; every quote was cancelled",
                )),
            };
        }
        if matches!(self.end, End::Quoting)
            && let Some(stream) = self.link.mend(now, &mut self.receiver.waiter)?
        {
            let path = &mut self.hot.path;
            path.replace(self.link.entry_again(stream));
            path.session.ended = None;
            path.connected(now);
        }
        if self.run.is_child {
            Notice::Progress {
                seconds: now.since(self.started) as f64 / 1e9,
                messages: self.receiver.counters().get(Counter::Messages),
                orders: self.hot.path.sent()[0],
            }
            .send();
        }
        Ok(None)
    }

    /// The end, step by step: everything is pulled, the venue confirms, we log out. Market data that is
    /// silent is no end: nothing is quoted until it comes again.
    fn conclude(&mut self, now: Nanos) -> Option<Result<(), Failure>> {
        let QuotingThread {
            run,
            receiver,
            hot,
            link,
            end,
            ..
        } = self;
        let path = &mut hot.path;
        let stopped = run.stop.reason();
        let done = |how: &str| match stopped {
            Some(reason) => Err(Failure::interrupted(format!("{reason}; {how}"))),
            None => Ok(()),
        };
        let is_over = receiver.is_done() || stopped.is_some();
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
        let (run, path) = (self.run, &self.hot.path);
        let mut counters: Counters = self.receiver.counters();
        counters.merge(&path.counters());
        counters.add(Counter::ClockSteps, self.clock_steps);
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
            packet_to_quotes: self.hot.packet_to_quotes,
            priced,
            host: tickwire_control::summary::host(&self.hot.clock, Some(self.waiting.to_string())),
            underlying: run.section.underlying.0.to_string(),
        }
    }
}

/// Hands newer ladders over, the eye's first; those before them come back.
pub(crate) fn take_ladders<O: OrderOut, T: Trades>(
    now: Nanos,
    path: &mut QuotePath<O, T>,
    made: Made,
) -> Option<Made> {
    path.maker_mut().set_hedges(&made.hedges);
    let eye = made.eye.and_then(|ladder| path.replace_eye_ladder(now, ladder));
    let quotes = path.replace_ladder(now, made.quotes)?;
    Some(Made {
        quotes,
        eye,
        hedges: made.hedges,
    })
}
