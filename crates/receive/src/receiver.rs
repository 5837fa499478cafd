//! Several channels received by one thread, each with its sockets, into one consumer that is told whose packet it is.
//!
//! ```text
//! Receiver ─► source 0: sockets ─► channel ─┐
//!          ─► source 1: sockets ─► channel ─┴─► Consumer: turn_to(source), begins, events, ends
//! ```
//! Channels of different protocols stand behind one call each time their sockets are looked at; from there to the consumer every call is static.
//! Trader, strategies and whoever only listens have this one loop.

use std::marker::PhantomData;
use std::num::NonZeroU64;

use tickwire_book::Depth;
use tickwire_feed::{Channel, Line};
use tickwire_market::{Counters, EventSink, InstrumentId, Nanos, Port, Symbol, Venue};
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::udp::DATAGRAM_BYTES_MAX;
use tickwire_runtime::wait::{WaitStrategy, Waiter};

use tickwire_console::failure::Failure;
use tickwire_console::health::count_waits;
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::ports::Ports;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::ReceiverSection;
use tickwire_venues::wiring::{self, Reception, WithChannel};

use crate::intake::Intake;

/// Rounds over both lines of a source before others are looked at: each look is a system call.
const PACKETS_PER_LOOK: u32 = 16;
/// Between two slow looks.
const LOOK_NS: u64 = 100 * Nanos::MILLI;

/// Who takes what the channels of a [`Receiver`] say.
pub trait Consumer: EventSink {
    /// The time that channels go by.
    fn now(&self) -> Nanos;

    /// What comes next is of this source, until another one is named.
    fn turn_to(&mut self, source: usize);

    /// A datagram of a live line was taken off its socket when the time stamp counter stood at `tsc`: what time that was.
    fn begins(&mut self, tsc: u64) -> Nanos;

    /// Everything that this datagram said was told. `arrived`: when the kernel had it, in nanoseconds of the system's clock; asked for only when it is
    /// called.
    #[inline]
    fn ends<C: Channel>(&mut self, channel: &C, arrived: impl FnOnce() -> Option<NonZeroU64>) {
        let _ = (channel, arrived);
    }

    /// Now and then, off the way of a packet: what the channel's directory knows.
    fn looks<C: Channel>(&mut self, channel: &C) {
        let _ = channel;
    }
}

/// One received channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceFacts {
    /// Its feed's place in the configuration.
    pub feed: usize,
    /// Its own place among the feed's channels.
    pub channel: usize,
    /// The name of the feed.
    pub feed_name: String,
    /// The same, and that of the channel where the feed has several.
    pub name: String,
    /// The venue.
    pub venue: Venue,
    /// What the packets are.
    pub protocol: Protocol,
    /// How deep its books are.
    pub depth: Depth,
}

/// A channel with its sockets, whatever the protocol.
pub trait Source<H> {
    /// Opens the sockets.
    ///
    /// # Errors
    /// As [`Intake::join`].
    fn join(&mut self, ports: &Ports, receive_buffer: u32, waiter: &mut Waiter) -> Result<(), Failure>;
    /// What the lines hold, up to a bound, then one retransmitted datagram.
    fn receive(&mut self, hot: &mut H, buffer: &mut [u8]);
    /// What is due by the time.
    fn timers(&mut self, now: Nanos, hot: &mut H);
    /// Opens, feeds and closes the recovery connections.
    fn links(&mut self, now: Nanos, hot: &mut H, buffer: &mut [u8]);
    /// Shows the consumer the channel, and says which sockets work again.
    fn look(&mut self, hot: &mut H);
    /// When [`Source::timers`] is wanted.
    fn poll_timeout(&self) -> Option<Nanos>;
    /// Whether the session has ended and nothing of it is missing.
    fn is_done(&self) -> bool;
    /// When the last live packet came; [`Nanos::ZERO`] before the first.
    fn last_packet(&self) -> Nanos;
    /// What channel and sockets have counted.
    fn counters(&self) -> Counters;
    /// The live groups, for messages.
    fn groups(&self) -> String;
    /// The number of a symbol.
    fn find(&self, symbol: &Symbol) -> Option<InstrumentId>;
    /// Every instrument that is known.
    fn directory(&self) -> Vec<(Symbol, InstrumentId)>;
}

struct Received<C> {
    number: usize,
    channel: C,
    intake: Option<Intake>,
}

impl<C: Channel> Received<C> {
    /// One datagram of a line, so that neither is read far ahead of the other; whether there was any.
    #[inline]
    fn receive_line<H: Consumer>(
        &mut self,
        index: usize,
        line: Line,
        hot: &mut H,
        buffer: &mut [u8],
    ) -> bool {
        let Some(intake) = &mut self.intake else {
            return false;
        };
        let Some(datagram) = intake.receive(index, buffer) else {
            return false;
        };
        let received = hot.begins(datagram.tsc);
        self.channel
            .on_datagram(received, Port::Live, line, datagram.bytes, hot);
        hot.ends(&self.channel, || intake.live[index].last_kernel_ns());
        true
    }
}

impl<C: Channel, H: Consumer> Source<H> for Received<C> {
    fn join(&mut self, ports: &Ports, receive_buffer: u32, waiter: &mut Waiter) -> Result<(), Failure> {
        let intake = Intake::join(ports, receive_buffer, waiter)?;
        intake.introduce(&mut self.channel);
        if let Some(warning) = intake.live[0].buffer_warning() {
            eprintln!("warning: {warning}");
        }
        self.intake = Some(intake);
        Ok(())
    }

    #[inline]
    fn receive(&mut self, hot: &mut H, buffer: &mut [u8]) {
        hot.turn_to(self.number);
        let has_two = self.intake.as_ref().is_some_and(|intake| intake.live.len() > 1);
        for _ in 0..PACKETS_PER_LOOK {
            let a = self.receive_line(0, Line::A, hot, buffer);
            let b = has_two && self.receive_line(1, Line::B, hot, buffer);
            if !(a || b) {
                break;
            }
        }
        if let Some(intake) = &mut self.intake {
            let now = hot.now();
            intake.recover(now, buffer, &mut self.channel, hot);
        }
    }

    fn timers(&mut self, now: Nanos, hot: &mut H) {
        if self.channel.poll_timeout().is_some_and(|due| due <= now) {
            hot.turn_to(self.number);
            self.channel.handle_timeout(now, hot);
            if let Some(intake) = &mut self.intake {
                intake.request(&mut self.channel);
            }
        }
    }

    fn links(&mut self, now: Nanos, hot: &mut H, buffer: &mut [u8]) {
        if let Some(intake) = &mut self.intake {
            hot.turn_to(self.number);
            intake.links(now, buffer, &mut self.channel, hot);
        }
    }

    fn look(&mut self, hot: &mut H) {
        hot.turn_to(self.number);
        hot.looks(&self.channel);
        if let Some(intake) = &mut self.intake {
            intake.settle();
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.channel.poll_timeout()
    }

    fn is_done(&self) -> bool {
        self.channel.is_done()
    }

    fn last_packet(&self) -> Nanos {
        self.channel.last_packet()
    }

    fn counters(&self) -> Counters {
        let mut all = self.channel.counters();
        if let Some(intake) = &self.intake {
            intake.count_into(&mut all);
        }
        all
    }

    fn groups(&self) -> String {
        self.intake.as_ref().map(Intake::groups).unwrap_or_default()
    }

    fn find(&self, symbol: &Symbol) -> Option<InstrumentId> {
        self.channel.find(symbol)
    }

    fn directory(&self) -> Vec<(Symbol, InstrumentId)> {
        let mut known = Vec::new();
        self.channel.instruments(&mut |i| known.push((i.symbol, i.id)));
        known
    }
}

/// A source and what is known of it.
type Made<H> = (Box<dyn Source<H>>, Venue, Depth);

/// Makes a source, with its number, of a channel for one kind of consumer.
struct MakeFor<H>(usize, PhantomData<H>);

impl<H: Consumer + 'static> WithChannel for MakeFor<H> {
    type Output = Made<H>;

    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) -> Made<H> {
        let venue = channel.venue();
        let source = Received {
            number: self.0,
            channel,
            intake: None,
        };
        (Box::new(source), venue, depth)
    }
}

/// The channels of one thread.
pub struct Receiver<H> {
    sources: Vec<Box<dyn Source<H>>>,
    facts: Vec<SourceFacts>,
    buffer: Vec<u8>,
    /// What waits for them, and for whatever else the thread watches.
    pub waiter: Waiter,
}

impl<H: Consumer + 'static> Receiver<H> {
    /// Makes the channels, each by the place of its feed and its own place there; takes all their memory. [`Receiver::join`] opens their sockets.
    ///
    /// # Errors
    /// The configuration of a channel.
    pub fn new(
        feeds: &[FeedConfig],
        channels: &[(usize, usize)],
        section: &ReceiverSection,
        wait: WaitStrategy,
    ) -> Result<Receiver<H>, Failure> {
        let reception = Reception::new(section);
        let mut receiver = Receiver {
            sources: Vec::with_capacity(channels.len()),
            facts: Vec::with_capacity(channels.len()),
            buffer: vec![0; DATAGRAM_BYTES_MAX],
            waiter: Waiter::new(wait),
        };
        for (number, &(feed, channel)) in channels.iter().enumerate() {
            let of = &feeds[feed];
            let make = MakeFor(number, PhantomData);
            let (source, venue, depth) = wiring::with_channel(of, channel, &reception, make)?;
            receiver.sources.push(source);
            receiver.facts.push(SourceFacts {
                feed,
                channel,
                feed_name: of.name().to_string(),
                name: of.channel_name(channel),
                venue,
                protocol: of.protocol(),
                depth,
            });
        }
        Ok(receiver)
    }

    /// Joins every group.
    ///
    /// # Errors
    /// As [`Intake::join`].
    pub fn join(&mut self, feeds: &[FeedConfig], receive_buffer: u32) -> Result<(), Failure> {
        for (source, facts) in self.sources.iter_mut().zip(&self.facts) {
            let feed = &feeds[facts.feed];
            let ports = feed.channels[facts.channel].ports(&feed.interface);
            source.join(&ports, receive_buffer, &mut self.waiter)?;
        }
        Ok(())
    }

    /// Everything of [`Receiver::new`] and [`Receiver::join`], for every channel of every feed.
    ///
    /// # Errors
    /// As these.
    pub fn open(
        feeds: &[FeedConfig],
        section: &ReceiverSection,
        wait: WaitStrategy,
    ) -> Result<Receiver<H>, Failure> {
        let mut receiver = Receiver::new(feeds, &channels_of(feeds), section, wait)?;
        receiver.join(feeds, section.receive_buffer)?;
        Ok(receiver)
    }

    /// The channels, by number.
    pub fn facts(&self) -> &[SourceFacts] {
        &self.facts
    }

    /// A channel by its number.
    pub fn source(&self, number: usize) -> &dyn Source<H> {
        &*self.sources[number]
    }

    /// What every channel's lines hold, up to a bound.
    #[inline]
    pub fn receive(&mut self, hot: &mut H) {
        for source in &mut self.sources {
            source.receive(hot, &mut self.buffer);
        }
    }

    /// What is due by the time.
    #[inline]
    pub fn timers(&mut self, now: Nanos, hot: &mut H) {
        for source in &mut self.sources {
            source.timers(now, hot);
        }
    }

    /// Opens, feeds and closes the recovery connections.
    #[inline]
    pub fn links(&mut self, now: Nanos, hot: &mut H) {
        for source in &mut self.sources {
            source.links(now, hot, &mut self.buffer);
        }
    }

    /// For the slow part of a loop: shows the consumer every channel.
    pub fn look(&mut self, hot: &mut H) {
        for source in &mut self.sources {
            source.look(hot);
        }
    }

    /// Waits for a packet until something is due, a millisecond at most; `sooner` is what else is.
    #[inline]
    pub fn wait(&mut self, now: Nanos, sooner: Option<Nanos>) {
        let timeouts = self.sources.iter().filter_map(|source| source.poll_timeout());
        let due = timeouts.chain(sooner).min();
        let due = due.map_or(Nanos::MILLI, |due| due.since(now));
        self.waiter.wait(due.min(Nanos::MILLI));
    }

    /// Whether every channel's session has ended and nothing of them is missing.
    pub fn is_done(&self) -> bool {
        self.sources.iter().all(|source| source.is_done())
    }

    /// What channels, sockets and waits have counted.
    pub fn counters(&self) -> Counters {
        let mut all = Counters::default();
        for source in &self.sources {
            all.merge(&source.counters());
        }
        count_waits(&mut all, self.waiter.errors());
        all
    }

    /// Receives until every channel has ended, or until `stop`: the whole loop of who only listens.
    pub fn run(&mut self, hot: &mut H, stop: &StopFlag) {
        let mut next_look = Nanos::ZERO;
        while !stop.is_set() {
            self.receive(hot);
            let now = hot.now();
            self.timers(now, hot);
            self.links(now, hot);
            if now >= next_look {
                next_look = now.after(LOOK_NS);
                self.look(hot);
                if self.is_done() {
                    return;
                }
            }
            self.wait(now, None);
        }
    }
}

/// Every channel of every feed: the place of its feed, and its own there.
pub fn channels_of(feeds: &[FeedConfig]) -> Vec<(usize, usize)> {
    let channels = feeds.iter().enumerate();
    channels
        .flat_map(|(feed, config)| (0..config.channels.len()).map(move |channel| (feed, channel)))
        .collect()
}
