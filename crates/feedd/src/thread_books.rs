//! The books of every channel of one feed thread: what the thread's [`tickwire_receive::receiver::Receiver`]
//! tells.
//!
//! ```text
//! Receiver ─► ThreadBooks ─► ChannelBooks of the source ─► shared memory
//! ```

use tickwire_feed::{Channel, FeedState, Pattern, Seen};
use tickwire_market::{
    Counters, EventSink, InstrumentId, MarketEvent, MessageType, Nanos, Port, Price, SeqNo, Upcoming,
};
use tickwire_receive::receiver::Consumer;
use tickwire_runtime::clock::tsc;
use tickwire_runtime::stamp::RxStamp;

use super::channel_books::{ChannelBooks, ThreadShared};
use super::command::{ChannelAnswer, Command, Deed, InstrumentCount};
use super::quota::Cell;
use super::rehearsal::Rehearsal;

/// A channel's books, and what the daemon knows of the channel.
struct Published<'r> {
    books: ChannelBooks<'r>,
    /// The number of its feed.
    feed: u8,
    silence_ns: u64,
    /// Where it leaves what it used of its day's quotas.
    quota: Option<Cell>,
}

/// What a visit to the channels is for.
enum Errand {
    Nothing,
    /// The first packet has not come: quotas of an earlier run go on, and only these instruments are wanted;
    /// `None` is all.
    Begin(Option<Vec<Pattern>>),
    Command(Box<Command>),
}

/// See the module's description.
pub struct ThreadBooks<'r> {
    /// What the channels share.
    pub shared: ThreadShared<'r>,
    channels: Vec<Published<'r>>,
    /// The channel that speaks.
    source: usize,
    /// When the datagram in hand was taken.
    received: Nanos,
    /// Sockets stamp every datagram with the kernel's receive time.
    has_kernel_stamps: bool,
    /// The datagram in hand came from the hook of the network driver.
    is_hooked: bool,
    errand: Errand,
    /// Why an errand was not done.
    refused: Option<String>,
    /// The thread's own counts, which stand in its first channel.
    of_thread: Counters,
    rehearsal: Option<Box<Rehearsal<'r>>>,
}

impl<'r> ThreadBooks<'r> {
    /// Without any channel yet. `has_kernel_stamps`: sockets stamp every datagram with the kernel's receive
    /// time.
    pub fn new(shared: ThreadShared<'r>, has_kernel_stamps: bool) -> ThreadBooks<'r> {
        ThreadBooks {
            shared,
            channels: Vec::new(),
            source: 0,
            received: Nanos::ZERO,
            has_kernel_stamps,
            is_hooked: false,
            errand: Errand::Nothing,
            refused: None,
            of_thread: Counters::default(),
            rehearsal: None,
        }
    }

    /// Has packets of its channels rehearsed: of all that were added.
    pub fn rehearse_with(&mut self, rehearsal: Rehearsal<'r>) {
        assert_eq!(rehearsal.channels.len(), self.channels.len(), "each has its own");
        self.rehearsal = Some(Box::new(rehearsal));
    }

    /// For a thread that waits: `play` tells of a packet that nobody has sent, which goes the way of the
    /// channel's own to books that nobody sees; then the lines that the channel's next packet will write are
    /// asked for. Nothing else is changed. `false` if nothing is rehearsed, or nothing was told.
    #[inline]
    pub fn rehearse(&mut self, source: usize, now: Nanos, play: impl FnOnce(&mut Self) -> bool) -> bool {
        let Some(mut rehearsal) = self.rehearsal.take() else {
            return false;
        };
        self.change_places(&mut rehearsal, source);
        let turned_to = std::mem::replace(&mut self.source, source);
        self.books().begin(tsc(), now);
        let is_played = play(self);
        let Published { books, .. } = &mut self.channels[source];
        books.note_packet(SeqNo(1));
        books.show_pending(&mut self.shared);
        self.source = turned_to;
        self.change_places(&mut rehearsal, source);
        self.rehearsal = Some(rehearsal);
        let Published { books, .. } = &self.channels[source];
        books.fetch_ahead(&self.shared);
        is_played
    }

    /// What is rehearsed stands where the channel's own stood, and the other way around.
    #[inline]
    fn change_places(&mut self, rehearsal: &mut Rehearsal<'r>, source: usize) {
        std::mem::swap(&mut self.shared, &mut rehearsal.shared);
        std::mem::swap(&mut self.channels[source].books, &mut rehearsal.channels[source]);
    }

    /// The books of the next channel. `feed` is the number of its feed; after `silence_ns` nanoseconds
    /// without a packet they are marked stale.
    pub fn add(&mut self, books: ChannelBooks<'r>, feed: u8, silence_ns: u64) {
        self.channels.push(Published {
            books,
            feed,
            silence_ns,
            quota: None,
        });
    }

    /// The last channel goes on with what an earlier run used of the day's quotas, and leaves there what this
    /// one uses.
    pub(crate) fn keep_quota(&mut self, quota: Cell) {
        if let Some(channel) = self.channels.last_mut() {
            channel.quota = Some(quota);
        }
    }

    /// Gives the books back, for another day.
    pub(crate) fn take_channels(&mut self) -> Vec<ChannelBooks<'r>> {
        self.channels.drain(..).map(|channel| channel.books).collect()
    }

    /// How long after a channel's last packet was in memory its last book was visible, nanoseconds, if it
    /// changed any.
    pub fn visible_ns(&self, source: usize) -> Option<u64> {
        self.channels[source].books.visible_ns()
    }

    /// Has every channel begin, at the visits that follow.
    pub(crate) fn begin(&mut self, symbols: Option<Vec<Pattern>>) {
        self.errand = Errand::Begin(symbols);
    }

    /// Why it could not.
    pub(crate) fn refused(&mut self) -> Option<String> {
        self.refused.take()
    }

    /// Has a command done by the channels that it is about, at the visits that `visits` makes.
    pub(crate) fn command(&mut self, command: &mut Command, visits: impl FnOnce(&mut Self)) {
        let nothing = Command {
            patterns: Vec::new(),
            answers: Vec::new(),
            ..*command
        };
        self.errand = Errand::Command(Box::new(std::mem::replace(command, nothing)));
        visits(self);
        if let Errand::Command(done) = std::mem::replace(&mut self.errand, Errand::Nothing) {
            *command = *done;
        }
    }

    /// Marks the books of a channel that was not heard for too long.
    pub(crate) fn note_silence(&mut self, source: usize, now: Nanos, last_packet: Nanos, state: FeedState) {
        let channel = &mut self.channels[source];
        let is_silent = last_packet != Nanos::ZERO
            && now.since(last_packet) > channel.silence_ns
            && state != FeedState::Ended;
        if is_silent && !channel.books.is_silent() {
            channel.books.set_silent(true, &mut self.shared);
        }
    }

    /// The thread's own counts, for the next look.
    pub(crate) fn set_counters(&mut self, of_thread: Counters) {
        self.of_thread = of_thread;
    }

    /// No packet comes any more: what waited for the end of its group is shown.
    pub(crate) fn finish(&mut self) {
        for channel in &mut self.channels {
            channel.books.show_pending(&mut self.shared);
        }
    }

    #[inline]
    fn begin_packet(&mut self, stamp: u64, now: Nanos) {
        self.received = now;
        let books = &mut self.channels[self.source].books;
        books.begin(stamp, now);
        if books.is_silent() {
            books.set_silent(false, &mut self.shared);
        }
    }

    fn books(&mut self) -> &mut ChannelBooks<'r> {
        &mut self.channels[self.source].books
    }

    fn add_patterns<C: Channel>(
        &mut self,
        now: Nanos,
        patterns: &[Pattern],
        channel: &mut C,
    ) -> Result<u32, String> {
        let mut changed = 0;
        for pattern in patterns {
            for id in named_by(channel, pattern) {
                self.books().welcome(id);
            }
            let added = channel.subscribe(now, pattern, self);
            changed += added.map_err(|e| e.to_string())?;
        }
        Ok(changed)
    }

    fn drop_patterns<C: Channel>(
        &mut self,
        now: Nanos,
        patterns: &[Pattern],
        channel: &mut C,
    ) -> Result<u32, String> {
        let mut changed = Ok(0);
        self.books().set_unsubscribing(true);
        for pattern in patterns {
            match channel.unsubscribe(now, pattern, self) {
                Ok(count) => changed = changed.map(|all: u32| all + count),
                Err(e) => {
                    changed = Err(e.to_string());
                    break;
                }
            }
            let Published { books, .. } = &mut self.channels[self.source];
            for id in named_by(channel, pattern) {
                books.leave(id, &mut self.shared);
            }
        }
        self.books().set_unsubscribing(false);
        changed
    }

    /// Does a command, if it is about this channel's feed.
    fn obey<C: Channel>(&mut self, now: Nanos, command: &mut Command, channel: &mut C) {
        let feed = self.channels[self.source].feed;
        if command.feed.is_some_and(|wanted| wanted != feed) {
            return;
        }
        self.books().begin(tsc(), now);
        let mut answer = ChannelAnswer {
            feed,
            ..ChannelAnswer::default()
        };
        channel.instruments(&mut |instrument| {
            let is_named = command.patterns.iter().any(|p| p.matches(&instrument.symbol));
            answer.instruments += 1;
            answer.matched += u32::from(is_named);
        });
        let done = match command.deed {
            Deed::Subscribe => self.add_patterns(now, &command.patterns, channel),
            Deed::Unsubscribe => self.drop_patterns(now, &command.patterns, channel),
            Deed::List | Deed::Statistics => Ok(0),
        };
        match done {
            Ok(changed) => answer.changed = changed,
            Err(e) => answer.refused = Some(e),
        }
        let Published { books, .. } = &mut self.channels[self.source];
        books.settle(channel, &mut self.shared);
        told_by(channel, &mut answer);
        command.answers.push(answer);
    }

    /// Answers a question, if it is about this channel's feed.
    fn tell<C: Channel>(
        &self,
        command: &mut Command,
        channel: &C,
        dropped: &dyn Fn(InstrumentId) -> Option<u64>,
    ) {
        let feed = self.channels[self.source].feed;
        if command.feed.is_some_and(|wanted| wanted != feed) {
            return;
        }
        let mut answer = ChannelAnswer {
            feed,
            ..ChannelAnswer::default()
        };
        let counts_all = command.deed == Deed::Statistics;
        channel.instruments(&mut |instrument| {
            answer.instruments += 1;
            if !counts_all {
                return;
            }
            let (seen, at_hook) = (channel.seen_of_instrument(instrument.id), dropped(instrument.id));
            if seen.seen + at_hook.unwrap_or(0) > 0 {
                answer.counts.push(InstrumentCount {
                    symbol: instrument.symbol,
                    wanted: channel.wants(instrument.id),
                    seen,
                    at_hook,
                });
            }
        });
        told_by(channel, &mut answer);
        command.answers.push(answer);
    }
}

/// What a channel says of its subscriptions.
fn told_by<C: Channel>(channel: &C, answer: &mut ChannelAnswer) {
    channel.subscriptions(&mut |rule| answer.rules.push(*rule));
    channel.kinds(&mut |_, seen| {
        answer.seen = Seen {
            seen: answer.seen.seen + seen.seen,
            filtered: answer.seen.filtered + seen.filtered,
        };
    });
}

/// The instruments that a channel knows and a pattern names.
fn named_by<C: Channel>(channel: &C, pattern: &Pattern) -> Vec<InstrumentId> {
    let mut named = Vec::new();
    channel.instruments(&mut |instrument| {
        if pattern.matches(&instrument.symbol) {
            named.push(instrument.id);
        }
    });
    named
}

impl EventSink for ThreadBooks<'_> {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        self.channels[self.source].books.on_event(event, &mut self.shared);
    }

    #[inline]
    fn on_message(&mut self, kind: MessageType) {
        self.channels[self.source]
            .books
            .on_message(kind, &mut self.shared);
    }

    #[inline]
    fn upcoming(&mut self, next: Upcoming) {
        self.channels[self.source].books.upcoming(next, &self.shared);
    }

    #[inline]
    fn arriving(&mut self, next: Upcoming) {
        self.channels[self.source].books.arriving(next);
    }

    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.channels[self.source].books.next_distrusted()
    }
}

impl Consumer for ThreadBooks<'_> {
    type Successor = Self;

    #[inline]
    fn now(&self) -> Nanos {
        self.shared.clock.now()
    }

    #[inline]
    fn turn_to(&mut self, source: usize) {
        self.source = source;
    }

    #[inline]
    fn begins(&mut self, stamp: &RxStamp) -> Nanos {
        let now = self.shared.clock.nanos_at(stamp.tsc);
        self.is_hooked = stamp.hook_ns.is_some();
        self.begin_packet(stamp.tsc, now);
        now
    }

    #[inline]
    fn begins_at(&mut self, now: Nanos) {
        self.begin_packet(tsc(), now);
    }

    #[inline]
    fn ends<C: Channel>(&mut self, channel: &C, port: Port, stamp: impl FnOnce() -> Option<RxStamp>) {
        let Published { books, .. } = &mut self.channels[self.source];
        // What the hook says is here already; a socket is asked only where that is wanted.
        if (self.has_kernel_stamps || self.is_hooked)
            && let Some(stamp) = stamp()
        {
            books.note_arrival(&stamp.times(&self.shared.clock));
        }
        books.note_packet(channel.next_seq());
        books.settle(channel, &mut self.shared);
        if port != Port::Live {
            books.show_pending(&mut self.shared);
        }
    }

    fn begins_aside(&mut self, now: Nanos) {
        self.books().begin(tsc(), now);
    }

    /// What was not said by a live packet is shown at once: it is no part of a group, or the group will never
    /// be over.
    fn ends_aside<C: Channel>(&mut self, channel: &C) {
        let Published { books, .. } = &mut self.channels[self.source];
        books.settle(channel, &mut self.shared);
        books.show_pending(&mut self.shared);
    }

    /// Shows counters, those of the thread among them.
    fn looks<C: Channel>(&mut self, channel: &C, count: impl FnOnce(&mut Counters)) {
        let mut more = std::mem::take(&mut self.of_thread);
        count(&mut more);
        let Published { books, quota, .. } = &mut self.channels[self.source];
        books.report(channel, &more);
        if let Some(quota) = quota {
            quota.store(channel.day_use());
        }
    }

    fn rehearsed(&self) -> Option<(InstrumentId, Price)> {
        self.rehearsal.is_some().then(Rehearsal::wanted)
    }

    fn counts<C: Channel>(&mut self, channel: &C, dropped: &dyn Fn(InstrumentId) -> Option<u64>) {
        let mut errand = std::mem::replace(&mut self.errand, Errand::Nothing);
        if let Errand::Command(command) = &mut errand {
            self.tell(command, channel, dropped);
        }
        self.errand = errand;
    }

    fn visits<C: Channel>(&mut self, now: Nanos, channel: &mut C) {
        let mut errand = std::mem::replace(&mut self.errand, Errand::Nothing);
        match &mut errand {
            Errand::Nothing => {}
            Errand::Begin(symbols) => {
                if let Some(quota) = &self.channels[self.source].quota {
                    channel.restore_day_use(quota.load());
                }
                if let Some(symbols) = symbols
                    && let Err(why) = self.add_patterns(now, symbols, channel)
                {
                    self.refused.get_or_insert(why);
                }
            }
            Errand::Command(command) => self.obey(now, command, channel),
        }
        self.errand = errand;
    }
}
