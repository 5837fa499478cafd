//! Several channels received by one thread, each with its sockets, into one consumer that is told whose
//! packet it is.
//!
//! ```text
//! Receiver ─► source 0: sockets ─► channel ─┐
//!          ─► source 1: sockets ─► channel ─┴─► Consumer: turn_to(source), begins, events, ends
//! ```
//! Channels of different protocols stand behind one call each time their sockets are looked at; from there to
//! the consumer every call is static. Trader, strategies, the quoter, the feed daemon and whoever only
//! listens have this one loop: `cargo xtask tidy` refuses a second one.

use std::marker::PhantomData;

use tickwire_book::Depth;
use tickwire_feed::{Channel, FeedState, Line};
use tickwire_kernel::filter::Framing;
use tickwire_kernelpath::Trigger;
use tickwire_market::{Counters, EventSink, InstrumentId, Nanos, Port, Price, Symbol, Venue};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::stamp::RxStamp;
use tickwire_runtime::udp::DATAGRAM_BYTES_MAX;
use tickwire_runtime::wait::{WaitStrategy, Waiter};

use tickwire_console::failure::Failure;
use tickwire_console::health::count_waits;
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::ports::Ports;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::{Backend, ReceiverSection};
use tickwire_venues::wiring::{self, Reception, WithChannel};

use crate::filtering::{FilterName, Gate};
use crate::hook::{self, ArmingPoint, Beside, Hook, Hooked, LiveLines};
use crate::intake::SocketOptions;

mod pace;
mod received;
mod rehearsing;
#[cfg(test)]
mod tests;

use pace::Pace;
pub use received::Received;
pub use rehearsing::{SpareTime, fetch};

/// Rounds over both lines of a source before others are looked at: each look is a system call.
const PACKETS_PER_LOOK: u32 = 16;
/// Between two slow looks.
const LOOK_NS: u64 = 100 * Nanos::MILLI;
/// A thread with more sockets than this asks the kernel which of them have input, instead of asking all of
/// them.
const SOCKETS_ASKED_MAX: usize = 8;

/// Who takes what the channels of a [`Receiver`] say.
///
/// ```text
/// turn_to · begins · events · ends              a datagram of a live line
/// turn_to · begins_at · events · ends           a datagram of a recording
/// turn_to · begins_aside · events · ends_aside  recovery groups, connections, timers
/// turn_to · looks, turn_to · visits             off the way of a packet
/// ```
pub trait Consumer: EventSink + Sized {
    /// Who takes the channels over by [`Receiver::succeed`]: itself where nobody does.
    type Successor: Consumer;

    /// Whether its events are worth a decoder of their own, compiled into one with it. Of a consumer that is
    /// not, which learns for instance what there is before it trades, they come through a table: some
    /// nanoseconds an event more, and 0.3 MB of a program less.
    const IS_HOT: bool = true;

    /// The time that channels go by.
    fn now(&self) -> Nanos;

    /// What comes next is of this source, until another one is named.
    fn turn_to(&mut self, source: usize);

    /// A datagram of a live line was taken off its socket or ring: what time that was, which `stamp` says by
    /// its counter. What else the stamp says is known from the ring alone; of a socket it is told at the end.
    fn begins(&mut self, stamp: &RxStamp) -> Nanos;

    /// A datagram out of a recording is in memory, which says that it came at `now`.
    #[inline]
    fn begins_at(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Everything that this datagram said was told. `stamp`: when it was where, as far as that is known; the
    /// kernel is asked for it only when it is called, and there is none of a recording.
    #[inline]
    fn ends<C: Channel>(&mut self, channel: &C, port: Port, stamp: impl FnOnce() -> Option<RxStamp>) {
        let _ = (channel, port, stamp);
    }

    /// What comes next is of no live line: recovery groups, connections, a timer.
    #[inline]
    fn begins_aside(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Everything of these was told.
    #[inline]
    fn ends_aside<C: Channel>(&mut self, channel: &C) {
        let _ = channel;
    }

    /// Now and then, off the way of a packet: what the channel's directory knows. `count` adds what its
    /// sockets have counted.
    fn looks<C: Channel>(&mut self, channel: &C, count: impl FnOnce(&mut Counters)) {
        let _ = (channel, count);
    }

    /// Of which instrument of this source packets are rehearsed, an offer at which price, if any are: asked
    /// where the consumer looks.
    fn rehearsed(&self) -> Option<(InstrumentId, Price)> {
        None
    }

    /// What [`Receiver::visit`] was called for, off the way of a packet: to subscribe for instance.
    fn visits<C: Channel>(&mut self, now: Nanos, channel: &mut C) {
        let _ = (now, channel);
    }

    /// What [`Receiver::count`] was called for, off the way of a packet: statistics. `dropped` says how many
    /// messages of an instrument a filter in front of the channel has dropped, which the channel has never
    /// seen; `None` where that is not counted.
    fn counts<C: Channel>(&mut self, channel: &C, dropped: &dyn Fn(InstrumentId) -> Option<u64>) {
        let _ = (channel, dropped);
    }
}

/// What the lines held, and recovery groups.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Taken {
    /// Nothing.
    Nothing,
    /// Datagrams, all of which were taken.
    All,
    /// More datagrams than are taken in one look: others wait.
    Part,
}

/// What a source needs to look at its sockets.
pub struct Look<'a> {
    waiter: &'a Waiter,
    buffer: &'a mut [u8],
    /// Only sockets are read of which the kernel said that they have input.
    asks_kernel: bool,
    /// Recovery groups and connections are looked at too.
    is_thorough: bool,
    /// When this look began.
    now: Nanos,
    /// Every line has been read up to this time.
    read: Nanos,
}

impl<'a> Look<'a> {
    #[inline]
    fn begin(
        now: Nanos,
        pace: &Pace,
        (waiter, buffer): (&'a Waiter, &'a mut [u8]),
        asks_kernel: bool,
    ) -> Look<'a> {
        Look {
            waiter,
            buffer,
            asks_kernel,
            is_thorough: pace.is_thorough(now),
            now,
            read: pace.judged_by(now),
        }
    }
}

/// A datagram of a line that comes by AF_XDP which the program has left to the kernel, such as one in
/// fragments.
pub struct Held {
    line: Line,
    stamp: RxStamp,
    length: usize,
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
pub trait Source<H: Consumer> {
    /// The same source for who comes after this consumer.
    fn succeed(self: Box<Self>) -> Box<dyn Source<H::Successor>>;
    /// Opens the sockets.
    ///
    /// # Errors
    /// An address or interface that cannot be used, a group that cannot be joined.
    fn join(
        &mut self,
        ports: &Ports,
        protocol: Protocol,
        options: SocketOptions,
        waiter: &mut Waiter,
    ) -> Result<(), Failure>;
    /// What the lines hold, up to a bound; then, in a thorough look, what recovery groups and the request
    /// server sent, also up to one.
    fn receive(&mut self, hot: &mut H, look: &mut Look<'_>) -> Taken;
    /// Of live lines that come by [`Source::take`]: a datagram that was left to the kernel, taken off its
    /// socket and put into the buffer.
    fn hold(&mut self, waiter: &Waiter, buffer: &mut [u8], into: &mut [u8]) -> Option<Held>;
    /// It, once everything that came by the other way before it was read was taken.
    fn take_held(&mut self, held: &Held, bytes: &[u8], hot: &mut H);
    /// The live lines, once they are joined.
    fn live_lines(&self) -> Option<&LiveLines>;
    /// From now on the live lines come by [`Source::take`], and their sockets are looked at seldom.
    fn leave_sockets(&mut self);
    /// A filter stands in front of the live lines, which takes packets to be made up so.
    fn filter(&mut self, framing: Framing);
    /// Disarms the filter if something is missing.
    fn guard(&mut self, gate: &mut dyn Gate);
    /// Session and next number, while nothing is missing, of a channel that a program looks into.
    fn position(&self) -> Option<([u64; 2], u64)>;
    /// What 1 in the price fields of an instrument's messages stands for, where each has its own scale.
    fn price_unit(&self, instrument: InstrumentId) -> Option<Price>;
    /// Whether the filter has to be opened
    /// ([`Filtering::is_to_open`](crate::filtering::Filtering::is_to_open)).
    fn is_to_open(&mut self, gate: &mut dyn Gate) -> bool;
    /// Arms the filter if it can be.
    fn settle(&mut self, gate: &mut dyn Gate);
    /// The line lives; and all before this number was seen in sequence by the filter.
    fn seen(&mut self, now: Nanos, up_to: Option<u64>);
    /// What the filter has counted.
    fn note_filter(&mut self, counts: Counters);
    /// A datagram of a live line that was taken at the hook of the network driver.
    fn take(&mut self, datagram: &Hooked<'_>, hot: &mut H);
    /// A datagram out of a recording; timers that were due before it are handled first.
    fn deliver(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], hot: &mut H);
    /// What was due by the time up to which every line has been read; when something is due next.
    fn timers(&mut self, read: Nanos, hot: &mut H) -> Option<Nanos>;
    /// The same, behind what lies in the recovery connections.
    fn pass_time(&mut self, hot: &mut H, look: &mut Look<'_>) -> Option<Nanos>;
    /// Opens, feeds and closes the recovery connections.
    fn links(&mut self, hot: &mut H, look: &mut Look<'_>);
    /// Fetches what the next packet will need of the channel.
    fn fetch(&self);
    /// Plays packets of a [`Twin`](tickwire_feed::Twin) of the channel to the consumer; `false` if there is
    /// none.
    fn rehearse(&mut self, now: Nanos, hot: &mut H) -> bool;
    /// Shows the consumer the channel, and says which sockets work again.
    fn look(&mut self, hot: &mut H);
    /// Shows the consumer the channel for its statistics.
    fn count(&self, hot: &mut H, dropped: &dyn Fn(FilterName) -> Option<u64>);
    /// Lets the consumer change the channel.
    fn visit(&mut self, now: Nanos, hot: &mut H);
    /// When [`Source::timers`] is wanted.
    fn poll_timeout(&self) -> Option<Nanos>;
    /// How far the channel can be trusted.
    fn state(&self) -> FeedState;
    /// Whether the session has ended and nothing of it is missing.
    fn is_done(&self) -> bool;
    /// When the last live packet came; [`Nanos::ZERO`] before the first.
    fn last_packet(&self) -> Nanos;
    /// What channel and sockets have counted.
    fn counters(&self) -> Counters;
    /// The live groups, for messages.
    fn groups(&self) -> String;
    /// That a receive buffer is smaller than what was asked for, or that nobody counts what is dropped.
    fn warning(&self) -> Option<String>;
    /// The number of a symbol.
    fn find(&self, symbol: &Symbol) -> Option<InstrumentId>;
    /// Every instrument that is known.
    fn directory(&self) -> Vec<(Symbol, InstrumentId)>;
}

/// A source and what is known of it.
type Made<H> = (Box<dyn Source<H>>, Venue, Depth);

/// Makes a source, with its number, of a channel for one kind of consumer.
struct MakeFor<H: Consumer>(usize, PhantomData<H>);

impl<H: Consumer> WithChannel for MakeFor<H> {
    type Output = Made<H>;

    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) -> Made<H> {
        let venue = channel.venue();
        (Box::new(Received::new(self.0, channel)), venue, depth)
    }
}

/// The channels of one thread.
pub struct Receiver<H: Consumer> {
    sources: Vec<Box<dyn Source<H>>>,
    facts: Vec<SourceFacts>,
    /// Interfaces whose live lines come by AF_XDP.
    hooks: Vec<Hook>,
    /// What their programs do as well.
    beside: Beside,
    buffer: Vec<u8>,
    /// A datagram that waits until the rings are read.
    held: Vec<u8>,
    /// What waits for them, and for whatever else the thread watches.
    pub waiter: Waiter,
    /// Only sockets are read of which the kernel said that they have input: there are many.
    asks_kernel: bool,
    pace: Pace,
}

impl<H: Consumer> Receiver<H> {
    /// No channel yet: [`Receiver::add`] makes them. A thread that spins and has more than a few sockets
    /// (`sockets`) asks the kernel which have input, without sleeping.
    pub fn empty(wait: WaitStrategy, sockets: usize) -> Receiver<H> {
        let asks_kernel = sockets > SOCKETS_ASKED_MAX;
        let spins = wait == WaitStrategy::Spin;
        Receiver {
            sources: Vec::new(),
            facts: Vec::new(),
            hooks: Vec::new(),
            beside: Beside::default(),
            buffer: vec![0; DATAGRAM_BYTES_MAX],
            held: vec![0; DATAGRAM_BYTES_MAX],
            waiter: Waiter::new(match spins && !asks_kernel {
                true => WaitStrategy::Spin,
                false => WaitStrategy::Poll,
            }),
            asks_kernel,
            pace: Pace::new(spins),
        }
    }

    /// Makes one of a feed's channels, and takes its memory; [`Receiver::join_one`] opens its sockets. Its
    /// number is its place here.
    ///
    /// # Errors
    /// The configuration of the channel.
    pub fn add(
        &mut self,
        config: &FeedConfig,
        (feed, channel): (usize, usize),
        reception: &Reception,
    ) -> Result<&SourceFacts, Failure> {
        let make = MakeFor(self.sources.len(), PhantomData);
        let (source, venue, depth) = wiring::with_channel(config, channel, reception, make)?;
        self.sources.push(source);
        self.facts.push(SourceFacts {
            feed,
            channel,
            feed_name: config.name().to_string(),
            name: config.channel_name(channel),
            venue,
            protocol: config.protocol(),
            depth,
        });
        Ok(&self.facts[self.facts.len() - 1])
    }

    /// The same channels, as they stand, for another consumer.
    pub fn succeed(self) -> Receiver<H::Successor> {
        let Receiver {
            sources,
            facts,
            hooks,
            beside,
            buffer,
            held,
            waiter,
            asks_kernel,
            pace,
        } = self;
        Receiver {
            sources: sources.into_iter().map(|source| source.succeed()).collect(),
            facts,
            hooks,
            beside,
            buffer,
            held,
            waiter,
            asks_kernel,
            pace,
        }
    }

    /// Forgets every channel, for another recording.
    pub fn clear(&mut self) {
        for hook in self.hooks.drain(..) {
            hook.watches.iter().for_each(|watch| self.waiter.forget(*watch));
        }
        self.sources.clear();
        self.facts.clear();
    }

    /// Makes the channels, each by the place of its feed and its own place there; takes all their memory.
    /// [`Receiver::join`] opens their sockets.
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
        let sockets = channels
            .iter()
            .map(|&(feed, channel)| sockets_of(&feeds[feed], channel));
        let mut receiver = Receiver::empty(wait, sockets.sum());
        for &(feed, channel) in channels {
            receiver.add(&feeds[feed], (feed, channel), &reception)?;
        }
        Ok(receiver)
    }

    /// Joins every group of a channel.
    ///
    /// # Errors
    /// An address or interface that cannot be used, a group that cannot be joined.
    pub fn join_one(
        &mut self,
        number: usize,
        config: &FeedConfig,
        options: SocketOptions,
    ) -> Result<(), Failure> {
        let ports = config.channels[self.facts[number].channel].ports(&config.interface);
        let protocol = self.facts[number].protocol;
        self.sources[number].join(&ports, protocol, options, &mut self.waiter)
    }

    /// Joins every group, takes live lines off their sockets where `section` says so, and says on the
    /// terminal how they are received and which receive buffers are smaller than what was asked for.
    ///
    /// # Errors
    /// An address or interface that cannot be used, a group that cannot be joined; with `backend = "xdp"`,
    /// what is missing for AF_XDP.
    pub fn join(&mut self, feeds: &[FeedConfig], section: &ReceiverSection) -> Result<(), Failure> {
        let options = SocketOptions::of(section);
        for number in 0..self.sources.len() {
            let config = &feeds[self.facts[number].feed];
            self.join_one(number, config, options)?;
        }
        for line in self.hook(section)? {
            eprintln!("{line}");
        }
        for warning in self.warnings() {
            eprintln!("warning: {warning}");
        }
        Ok(())
    }

    /// Programs that are attached from here on guard connections as well whose bytes leave past the kernel:
    /// an interface has one program.
    pub fn guard_orders(&mut self) {
        self.beside.guards_orders = true;
    }

    /// Programs that are attached from here on have a place for a pre-armed order.
    pub fn arm_orders(&mut self) {
        self.beside.arms_orders = true;
    }

    /// The place for a pre-armed order; `None` if market data come by sockets, of protocols without fields at
    /// fixed places, or if somebody has it.
    pub fn trigger(&self) -> Option<Trigger> {
        self.hooks.iter().find_map(Hook::trigger)
    }

    /// How many interfaces are received past the sockets.
    pub fn hooks(&self) -> usize {
        self.hooks.len()
    }

    /// Where a source's channel stands, if an order that waits for a message about one of its instruments can
    /// be armed on it now: everything that was received has been looked at, and nothing is missing.
    pub fn arming_point(&self, source: usize, instrument: InstrumentId) -> Option<ArmingPoint> {
        let mut hooks = self.hooks.iter();
        hooks.find_map(|hook| hook.arming_point(&self.sources, source, instrument))
    }

    /// Takes the live lines of all sources that are joined off their sockets, unless `section` wants sockets:
    /// a program at each interface, and AF_XDP behind it. Gives a sentence for each interface: how it
    /// is received, or why by sockets still.
    ///
    /// # Errors
    /// With `backend = "xdp"`, what is missing, in words that say how to get it.
    pub fn hook(&mut self, section: &ReceiverSection) -> Result<Vec<String>, Failure> {
        if section.backend == Backend::Socket {
            return Ok(Vec::new());
        }
        let mut interfaces: Vec<(Interface, Vec<(usize, LiveLines)>)> = Vec::new();
        for (number, source) in self.sources.iter().enumerate() {
            let Some(lines) = source.live_lines().filter(|lines| !lines.groups.is_empty()) else {
                continue;
            };
            let of = (number, lines.clone());
            match interfaces
                .iter_mut()
                .find(|(i, _)| i.index() == lines.interface.index())
            {
                Some((_, all)) => all.push(of),
                None => interfaces.push((lines.interface.clone(), vec![of])),
            }
        }
        let mut said = Vec::new();
        for (interface, lines) in interfaces {
            let numbers: Vec<usize> = lines.iter().map(|(number, _)| *number).collect();
            let attached = Hook::attach(&interface, lines, (section, self.beside), &mut self.waiter);
            match attached {
                Ok(hook) => {
                    said.push(hook.in_use());
                    self.hooks.push(hook);
                    numbers
                        .iter()
                        .for_each(|number| self.sources[*number].leave_sockets());
                    for (number, framing) in self.hooks.iter().flat_map(Hook::filtered) {
                        self.sources[number].filter(framing);
                    }
                }
                Err(error) => {
                    let why = hook::explained(&interface, &error);
                    if section.backend == Backend::Xdp {
                        return Err(Failure::system(format!("receiver.backend = \"xdp\": {why}")));
                    }
                    said.push(format!("receiving on {} by sockets: {why}", interface.name()));
                }
            }
        }
        Ok(said)
    }

    /// Which receive buffers are smaller than what was asked for.
    pub fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        self.sources.iter().filter_map(|source| source.warning())
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
        receiver.join(feeds, section)?;
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

    /// What every channel's lines hold, up to a bound; and what recovery groups sent, at each call of a
    /// thread that sleeps, every 50 µs of one that does not.
    #[inline]
    pub fn receive(&mut self, hot: &mut H) -> Taken {
        let now = hot.now();
        let mut taken = Taken::Nothing;
        for hook in &mut self.hooks {
            taken = taken.max(hook.receive(&mut self.sources, hot));
        }
        let sockets = (&self.waiter, &mut self.buffer[..]);
        let mut look = Look::begin(now, &self.pace, sockets, self.asks_kernel);
        for source in &mut self.sources {
            taken = taken.max(source.receive(hot, &mut look));
        }
        let mut is_all = true;
        if !self.hooks.is_empty() {
            let aside = self.hooks.iter().map(Hook::aside).sum();
            is_all = self.pace.looks_at_passed(now, aside);
            if is_all {
                taken = taken.max(self.receive_passed(hot));
            }
        }
        // Sockets of lines that come by AF_XDP are asked for by every thread whose waits ask the kernel.
        let asks =
            self.waiter.strategy() == WaitStrategy::Poll && (self.asks_kernel || !self.hooks.is_empty());
        self.pace.looked(now, taken, (is_all, asks));
        taken
    }

    /// What programs have left to the kernel of lines that come by AF_XDP. Each datagram waits in a buffer of
    /// its own until everything is taken that the rings hold: whatever came before it is there, however long
    /// this thread stood still in between.
    #[cold]
    fn receive_passed(&mut self, hot: &mut H) -> Taken {
        let mut taken = Taken::Nothing;
        for number in 0..self.sources.len() {
            for _ in 0..PACKETS_PER_LOOK {
                let source = &mut self.sources[number];
                let Some(held) = source.hold(&self.waiter, &mut self.buffer, &mut self.held) else {
                    break;
                };
                for hook in &mut self.hooks {
                    hook.drain(&mut self.sources, hot);
                }
                let bytes = &self.held[..held.length];
                self.sources[number].take_held(&held, bytes, hot);
                // Others may wait behind it.
                taken = Taken::Part;
            }
        }
        taken
    }

    /// A datagram out of a recording; timers of its channel that were due before it are handled first.
    #[inline]
    pub fn deliver(
        &mut self,
        number: usize,
        now: Nanos,
        (port, line): (Port, Line),
        bytes: &[u8],
        hot: &mut H,
    ) {
        self.sources[number].deliver(now, port, line, bytes, hot);
    }

    /// By which time silence is judged: everything that came before has been read by [`Receiver::receive`].
    /// Without that, `now`.
    #[inline]
    pub fn read_up_to(&self, now: Nanos) -> Nanos {
        self.pace.judged_by(now)
    }

    /// What is due, by the time up to which every line has been read by [`Receiver::receive`]; without that,
    /// by `now`.
    #[inline]
    pub fn timers(&mut self, now: Nanos, hot: &mut H) {
        let sockets = (&self.waiter, &mut self.buffer[..]);
        let mut look = Look::begin(now, &self.pace, sockets, self.asks_kernel);
        let mut next = None;
        for source in &mut self.sources {
            let due = source.pass_time(hot, &mut look);
            next = [next, due].into_iter().flatten().min();
        }
        self.pace.due_at(next);
    }

    /// Opens, feeds and closes the recovery connections; to be called once after each [`Receiver::receive`].
    #[inline]
    pub fn links(&mut self, now: Nanos, hot: &mut H) {
        let sockets = (&self.waiter, &mut self.buffer[..]);
        let mut look = Look::begin(now, &self.pace, sockets, self.asks_kernel);
        for source in &mut self.sources {
            source.links(hot, &mut look);
        }
        self.pace.recovered(now);
    }

    /// For a thread that waits for packets: fetches what the next one will need of its channel. Of one
    /// channel at a time, which `turn` tells, so that it takes as long for many.
    pub fn fetch(&self, turn: usize) {
        if let Some(source) = self.sources.get(turn % self.sources.len().max(1)) {
            source.fetch();
        }
    }

    /// For a thread that waits for packets: plays packets of a [`Twin`](tickwire_feed::Twin) of a source's
    /// channel to the consumer, by the way that those of its lines take; `false` if it has none.
    #[inline]
    pub fn rehearse(&mut self, source: usize, now: Nanos, hot: &mut H) -> bool {
        let source = self.sources.get_mut(source);
        source.is_some_and(|source| source.rehearse(now, hot))
    }

    /// For the slow part of a loop: shows the consumer every channel.
    pub fn look(&mut self, hot: &mut H) {
        for hook in &mut self.hooks {
            hook.settle(&mut self.sources, hot);
        }
        for source in &mut self.sources {
            source.look(hot);
        }
    }

    /// Lets the consumer change every channel ([`Consumer::visits`]); filters in front of them let everything
    /// pass until they know of it.
    pub fn visit(&mut self, now: Nanos, hot: &mut H) {
        for hook in &mut self.hooks {
            hook.open(&mut self.sources, hot);
        }
        for source in &mut self.sources {
            source.visit(now, hot);
        }
    }

    /// The same of one.
    pub fn visit_one(&mut self, number: usize, now: Nanos, hot: &mut H) {
        for hook in &mut self.hooks {
            hook.open(&mut self.sources, hot);
        }
        self.sources[number].visit(now, hot);
    }

    /// Shows the consumer every channel for its statistics ([`Consumer::counts`]); filters in front of them
    /// stay as they are.
    pub fn count(&self, hot: &mut H) {
        for (number, source) in self.sources.iter().enumerate() {
            let dropped = |name| self.hooks.iter().find_map(|hook| hook.dropped(number, name));
            source.count(hot, &dropped);
        }
    }

    /// For a thread that stood still: asks the kernel anew which sockets have input.
    pub fn renew(&mut self) {
        if self.asks_kernel {
            self.waiter.wait(0);
        }
    }

    /// Waits for a packet until something is due, a millisecond at most; `sooner` is what else is.
    #[inline]
    pub fn wait(&mut self, now: Nanos, sooner: Option<Nanos>) {
        if self.pace.spins() {
            if self.pace.asks(now, self.hooks.is_empty() || !self.asks_kernel) {
                self.waiter.wait(0);
            }
            return;
        }
        self.pace.asks_now(now);
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
        self.run_until(hot, |receiver, _, _, is_slow| {
            let is_over = stop.is_set() || is_slow && receiver.is_done();
            is_over.then_some(())
        });
    }

    /// Receives until `beside` gives a result: the whole loop of who listens and does little else. It is
    /// called at each turn, behind what was received, with the time, and with whether everything slow is due
    /// too, ten times a second: the consumer has then just been shown every channel.
    pub fn run_until<T>(
        &mut self,
        hot: &mut H,
        mut beside: impl FnMut(&mut Self, &mut H, Nanos, bool) -> Option<T>,
    ) -> T {
        let mut next_look = Nanos::ZERO;
        loop {
            self.receive(hot);
            let now = hot.now();
            self.timers(now, hot);
            self.links(now, hot);
            let is_slow = now >= next_look;
            if is_slow {
                next_look = now.after(LOOK_NS);
                self.look(hot);
            }
            if let Some(result) = beside(self, hot, now, is_slow) {
                return result;
            }
            self.wait(now, None);
        }
    }
}

/// How many sockets one of a feed's channels has: a group each, and one that asks.
pub fn sockets_of(feed: &FeedConfig, channel: usize) -> usize {
    let ports = feed.channels[channel].ports(&feed.interface);
    ports.groups.iter().flatten().flatten().count() + 1
}

/// Every channel of every feed: the place of its feed, and its own there.
pub fn channels_of(feeds: &[FeedConfig]) -> Vec<(usize, usize)> {
    let channels = feeds.iter().enumerate();
    channels
        .flat_map(|(feed, config)| (0..config.channels.len()).map(move |channel| (feed, channel)))
        .collect()
}
