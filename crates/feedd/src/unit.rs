//! One channel with its sockets and its desk, behind one virtual call per poll: within, every call is static.

use tickwire_feed::{Channel, FeedState, Line, Pattern, Seen};
use tickwire_market::{Counters, InstrumentId, Nanos, Port};
use tickwire_runtime::clock::tsc;
use tickwire_runtime::wait::Waiter;

use super::command::{ChannelAnswer, Command, Deed};
use super::desk::{Common, Desk, Sink};
use super::quota::Cell;
use tickwire_receive::intake::Intake;

/// Rounds over both lines before the next channel has its turn.
const PACKETS_PER_LOOK: u32 = 16;

/// What a thread lends a channel for one look.
pub struct Look<'a> {
    /// Says which sockets have something to read.
    pub waiter: &'a Waiter,
    /// Where datagrams are read into, as long as the longest one.
    pub buffer: &'a mut [u8],
    /// Recovery groups are to be looked at too, which in a spin costs a system call each.
    pub is_thorough: bool,
}

/// A channel on a feed thread.
pub trait Station<'r> {
    /// Takes what its sockets hold, up to a bound; whether there was anything.
    fn poll(&mut self, look: &mut Look<'_>, common: &mut Common<'r>) -> bool;
    /// Takes a recorded datagram that is in memory now.
    fn on_datagram(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], common: &mut Common<'r>);
    /// Timers that are due, and silence.
    fn on_time(&mut self, now: Nanos, common: &mut Common<'r>);
    /// When [`Station::on_time`] is needed next.
    fn poll_timeout(&self) -> Option<Nanos>;
    /// Shows counters, those of the thread among them, and says which sockets work again.
    fn report(&mut self, of_thread: &Counters);
    /// Wants the instruments that the patterns name, before the first packet.
    fn subscribe(&mut self, now: Nanos, patterns: &[Pattern], common: &mut Common<'r>) -> Result<(), String>;
    /// Does a command, if it is about this channel's feed.
    fn command(&mut self, now: Nanos, command: &mut Command, common: &mut Common<'r>);
    /// No packet comes any more.
    fn finish(&mut self, now: Nanos, common: &mut Common<'r>);
    /// Gives back its desk, for another day.
    fn into_desk(self: Box<Self>) -> Desk<'r>;
    /// Gives its live groups a name in warnings, and whether their buffers are smaller than asked for.
    fn warning(&self) -> Option<String>;
}

/// See the module's description.
pub struct Unit<'r, C> {
    channel: C,
    desk: Desk<'r>,
    intake: Option<Intake>,
    feed: u8,
    silence_ns: u64,
    /// Where it leaves what it used of its day's quotas.
    quota: Option<Cell>,
}

impl<'r, C: Channel> Unit<'r, C> {
    /// A channel with its books. `intake` has its sockets; `None` where datagrams come from recordings. `feed` is the number of its feed, and after
    /// `silence_ns` nanoseconds without a packet its books are marked stale.
    pub fn new(channel: C, desk: Desk<'r>, intake: Option<Intake>, feed: u8, silence_ns: u64) -> Unit<'r, C> {
        let mut channel = channel;
        if let Some(intake) = &intake {
            intake.introduce(&mut channel);
        }
        Unit {
            channel,
            desk,
            intake,
            feed,
            silence_ns,
            quota: None,
        }
    }

    /// Goes on with what an earlier run used of the day's quotas, and leaves there what this one uses.
    pub fn keep_quota(&mut self, quota: Cell) {
        self.channel.restore_day_use(quota.load());
        self.quota = Some(quota);
    }

    /// How long after the last packet was in memory its last book was visible, nanoseconds, if it changed any.
    pub fn visible_ns(&self) -> Option<u64> {
        self.desk.visible_ns()
    }

    /// A datagram that was in memory at `stamp`.
    #[inline]
    fn take(
        &mut self,
        (stamp, now): (u64, Nanos),
        port: Port,
        line: Line,
        bytes: &[u8],
        common: &mut Common<'r>,
    ) {
        self.desk.begin(stamp, now);
        if self.desk.is_silent() {
            self.desk.set_silent(false, common);
        }
        let mut sink = Sink {
            desk: &mut self.desk,
            common,
        };
        if self.channel.poll_timeout().is_some_and(|t| t <= now) {
            self.channel.handle_timeout(now, &mut sink);
        }
        self.channel.on_datagram(now, port, line, bytes, &mut sink);
        self.desk.note_packet(self.channel.next_seq());
        self.desk.settle(&self.channel, common);
        if port != Port::Live {
            self.desk.show_pending(common);
        }
    }

    /// What was not said by a live packet is shown at once: it is no part of a group, or the group will never be over.
    fn conclude(&mut self, common: &mut Common<'r>) {
        self.desk.settle(&self.channel, common);
        self.desk.show_pending(common);
    }

    /// One datagram of a line, so that neither is read far ahead of the other; whether there was any.
    #[inline]
    fn receive(&mut self, index: usize, look: &mut Look<'_>, common: &mut Common<'r>) -> bool {
        let Some(intake) = &mut self.intake else {
            return false;
        };
        if !look.waiter.is_ready(intake.live_watches[index]) {
            return false;
        }
        let Some(datagram) = intake.receive(index, look.buffer) else {
            return false;
        };
        let line = if index == 0 { Line::A } else { Line::B };
        let received = common.clock.nanos_at(datagram.tsc);
        if let Some(arrived) = datagram.kernel_ns {
            self.desk
                .note_kernel(received.since(common.clock.at_wall(Nanos(arrived.get()))));
        }
        self.take((datagram.tsc, received), Port::Live, line, datagram.bytes, common);
        true
    }

    /// What a pattern names, of the instruments known.
    fn matches(&self, patterns: &[Pattern]) -> (u32, u32) {
        let (mut known, mut matched) = (0, 0);
        self.channel.instruments(&mut |instrument| {
            known += 1;
            matched += u32::from(patterns.iter().any(|pattern| pattern.matches(&instrument.symbol)));
        });
        (known, matched)
    }

    fn unsubscribe(
        &mut self,
        now: Nanos,
        patterns: &[Pattern],
        common: &mut Common<'r>,
    ) -> Result<u32, String> {
        let mut changed = 0;
        self.desk.set_leaving(true);
        for pattern in patterns {
            let mut sink = Sink {
                desk: &mut self.desk,
                common,
            };
            match self.channel.unsubscribe(now, pattern, &mut sink) {
                Ok(count) => changed += count,
                Err(e) => {
                    self.desk.set_leaving(false);
                    return Err(e.to_string());
                }
            }
            let mut named: Vec<InstrumentId> = Vec::new();
            self.channel.instruments(&mut |instrument| {
                if pattern.matches(&instrument.symbol) {
                    named.push(instrument.id);
                }
            });
            named.into_iter().for_each(|id| self.desk.leave(id, common));
        }
        self.desk.set_leaving(false);
        Ok(changed)
    }

    fn add(&mut self, now: Nanos, patterns: &[Pattern], common: &mut Common<'r>) -> Result<u32, String> {
        let mut changed = 0;
        for pattern in patterns {
            let desk = &mut self.desk;
            self.channel.instruments(&mut |instrument| {
                if pattern.matches(&instrument.symbol) {
                    desk.welcome(instrument.id);
                }
            });
            let mut sink = Sink {
                desk: &mut self.desk,
                common,
            };
            changed += self
                .channel
                .subscribe(now, pattern, &mut sink)
                .map_err(|e| e.to_string())?;
        }
        Ok(changed)
    }
}

#[cfg(test)]
impl<'r, C: Channel> Unit<'r, C> {
    /// The number of a symbol.
    pub fn instrument(&self, symbol: &tickwire_market::Symbol) -> Option<InstrumentId> {
        self.channel.find(symbol)
    }

    /// An event as if its channel had said it.
    pub fn tell(&mut self, event: &tickwire_market::MarketEvent, common: &mut Common<'r>) {
        let desk = &mut self.desk;
        tickwire_market::EventSink::on_event(&mut Sink { desk, common }, event);
    }
}

impl<'r, C: Channel> Station<'r> for Unit<'r, C> {
    fn poll(&mut self, look: &mut Look<'_>, common: &mut Common<'r>) -> bool {
        let lines = self.intake.as_ref().map_or(0, |intake| intake.live.len());
        let mut any = false;
        for _ in 0..PACKETS_PER_LOOK {
            let mut more = false;
            for line in 0..lines {
                more |= self.receive(line, look, common);
            }
            any |= more;
            if !more {
                break;
            }
        }
        let Some(intake) = &mut self.intake else {
            return any;
        };
        let recovers = look.is_thorough && intake.may_recover(look.waiter);
        let is_linked = intake.is_linked();
        if recovers || is_linked || look.is_thorough {
            let stamp = tsc();
            let now = common.clock.nanos_at(stamp);
            self.desk.begin(stamp, now);
            let mut sink = Sink {
                desk: &mut self.desk,
                common,
            };
            if recovers {
                intake.recover(now, look.buffer, &mut self.channel, &mut sink);
            }
            intake.links(now, look.buffer, &mut self.channel, &mut sink);
            self.conclude(common);
        }
        any
    }

    fn on_datagram(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], common: &mut Common<'r>) {
        self.take((tsc(), now), port, line, bytes, common);
    }

    fn on_time(&mut self, now: Nanos, common: &mut Common<'r>) {
        if self.channel.poll_timeout().is_some_and(|t| t <= now) {
            self.desk.begin(tsc(), now);
            let mut sink = Sink {
                desk: &mut self.desk,
                common,
            };
            self.channel.handle_timeout(now, &mut sink);
            self.conclude(common);
            if let Some(intake) = &mut self.intake {
                intake.request(&mut self.channel);
            }
        }
        let last = self.channel.last_packet();
        let is_silent = last != Nanos::ZERO
            && now.since(last) > self.silence_ns
            && self.channel.state() != FeedState::Ended;
        if is_silent && !self.desk.is_silent() {
            self.desk.set_silent(true, common);
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.channel.poll_timeout()
    }

    fn report(&mut self, of_thread: &Counters) {
        let mut more = of_thread.clone();
        if let Some(intake) = &mut self.intake {
            intake.settle();
            intake.count_into(&mut more);
        }
        self.desk.report(&self.channel, &more);
        if let Some(quota) = &self.quota {
            quota.store(self.channel.day_use());
        }
    }

    fn subscribe(&mut self, now: Nanos, patterns: &[Pattern], common: &mut Common<'r>) -> Result<(), String> {
        self.add(now, patterns, common).map(|_| ())
    }

    fn command(&mut self, now: Nanos, command: &mut Command, common: &mut Common<'r>) {
        if command.feed.is_some_and(|feed| feed != self.feed) {
            return;
        }
        self.desk.begin(tsc(), now);
        let mut answer = ChannelAnswer {
            feed: self.feed,
            ..ChannelAnswer::default()
        };
        (answer.instruments, answer.matched) = self.matches(&command.patterns);
        let done = match command.deed {
            Deed::Subscribe => self.add(now, &command.patterns, common),
            Deed::Unsubscribe => self.unsubscribe(now, &command.patterns, common),
            Deed::List => Ok(0),
        };
        match done {
            Ok(changed) => answer.changed = changed,
            Err(e) => answer.refused = Some(e),
        }
        self.desk.settle(&self.channel, common);
        self.channel.subscriptions(&mut |rule| answer.rules.push(*rule));
        self.channel.kinds(&mut |_, seen| {
            answer.seen = Seen {
                seen: answer.seen.seen + seen.seen,
                filtered: answer.seen.filtered + seen.filtered,
            };
        });
        command.answers.push(answer);
    }

    fn finish(&mut self, now: Nanos, common: &mut Common<'r>) {
        self.desk.begin(tsc(), now);
        let mut sink = Sink {
            desk: &mut self.desk,
            common,
        };
        self.channel.handle_timeout(now, &mut sink);
        self.conclude(common);
    }

    fn into_desk(self: Box<Self>) -> Desk<'r> {
        self.desk
    }

    fn warning(&self) -> Option<String> {
        let intake = self.intake.as_ref()?;
        let warning = intake.live.iter().find_map(|line| line.buffer_warning())?;
        Some(format!("{}: {warning}", intake.groups()))
    }
}
