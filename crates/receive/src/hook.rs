//! Live lines taken at the hook of the network driver, before the kernel's network stack: one program and its
//! AF_XDP sockets for each interface. The sockets of the lines stay joined, for the memberships, and hear
//! what the program leaves to the kernel.

use std::collections::HashSet;
use std::net::SocketAddrV4;
use std::sync::{LazyLock, Mutex, PoisonError};

use tickwire_book::prefetch;
use tickwire_feed::Line;
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group};
use tickwire_kernel::layout::Count;
use tickwire_kernelpath::{FilterError, KernelReceiver, ReceiverConfig, ReceiverError, Trigger};
use tickwire_market::{Counter, Counters, InstrumentId, Nanos, Price};
use tickwire_runtime::clock::monotonic;
use tickwire_runtime::interface::Interface;
use tickwire_runtime::stamp::RxStamp;
use tickwire_runtime::wait::{Waiter, Watch};
use tickwire_runtime::xdp::{XdpError, XdpMode};
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::{ReceiverSection, XdpWay};

use crate::filtering::{FilterGate, FilterName, Filtering, framing_of};
use crate::receiver::{Consumer, Source, Taken};

/// Datagrams of an interface that are taken before others are looked at.
const PACKETS_PER_LOOK: u32 = 32;

/// So long what was delivered is waited for before it is given up for a gap: what the rings hold, and what a
/// driver shows only at the end of its round.
const DRAIN_MAX_NS: u64 = 20 * Nanos::MILLI;

/// What the filter has counted of a channel, by the reason of its verdict. `count` gives one of the program's
/// counters.
fn counts(count: impl Fn(Count) -> u64) -> Counters {
    let mut counters = Counters::default();
    let doubts = [
        Count::Ahead,
        Count::Behind,
        Count::Race,
        Count::Doubt,
        Count::Session,
    ];
    for (counter, value) in [
        (Counter::HookFiltered, count(Count::Filtered)),
        (Counter::HookDuplicates, count(Count::Duplicate)),
        (Counter::HookDoubts, doubts.into_iter().map(&count).sum()),
        (Counter::HookPackets, count(Count::Packets)),
        (Counter::HookWanted, count(Count::Wanted)),
        (Counter::HookAhead, count(Count::Ahead)),
        (Counter::HookBehind, count(Count::Behind)),
        (Counter::HookRaces, count(Count::Race)),
        (Counter::HookUnread, count(Count::Doubt)),
        (Counter::HookDisarmed, count(Count::Disarmed)),
        (Counter::HookPlain, count(Count::Plain)),
        (Counter::HookSession, count(Count::Session)),
        (Counter::HookMessages, count(Count::MessagesFiltered)),
        (Counter::HookOrderMessages, count(Count::OrderMessages)),
    ] {
        counters.add(counter, value);
    }
    counters
}

/// For how many processors a program counts apart, at most.
const CPUS_MAX: u16 = 128;

/// How many processors the machine may come to have, as the kernel numbers them: any of them may receive.
fn processors() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    last_of(&text).map_or(usize::MAX, |last| last + 1)
}

/// The last number of a list such as `0-3,8-11`.
fn last_of(list: &str) -> Option<usize> {
    list.trim().rsplit(['-', ',']).next()?.parse().ok()
}

/// The interfaces of this process that have a program, for what is said of a second one.
static TAKEN: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// The live lines of a source: the groups, and who alone is heard of each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveLines {
    /// Where they are joined.
    pub interface: Interface,
    /// What the packets are.
    pub protocol: Protocol,
    /// Line A, then line B if there is one.
    pub groups: Vec<(SocketAddrV4, Option<std::net::Ipv4Addr>)>,
}

/// A datagram of a live line, taken at the hook.
#[derive(Clone, Copy, Debug)]
pub struct Hooked<'a> {
    /// Which line.
    pub line: Line,
    /// What it carries.
    pub bytes: &'a [u8],
    /// When it was on the wire, at the hook and here.
    pub stamp: RxStamp,
    /// So many datagrams of the channel before it found no room in the ring.
    pub lost: u32,
    /// Everything before this number was seen in sequence by the filter, and what was not delivered nobody
    /// wants.
    pub seen_up_to: Option<u64>,
    /// The filter follows orders, and knows those of this packet.
    pub knows_orders: bool,
}

/// What a program does beside receiving.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Beside {
    /// It guards connections whose bytes leave past the kernel.
    pub(crate) guards_orders: bool,
    /// It has a place for a pre-armed order.
    pub(crate) arms_orders: bool,
}

/// Where a channel stands, for an order that is to be armed on it: everything that was received has been
/// looked at, and nothing is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArmingPoint {
    /// What the packets are.
    pub protocol: Protocol,
    /// The channel's number in its program.
    pub channel: u16,
    /// The session, as a filter has it.
    pub session: [u64; 2],
    /// The number of the next message.
    pub next: u64,
    /// What 1 in the price fields of the instrument's messages stands for, where each instrument has a scale
    /// of its own and it is known.
    pub unit: Option<Price>,
}

/// An interface's way past the sockets. Dropping it takes the program away.
pub(crate) struct Hook {
    receiver: KernelReceiver,
    interface: String,
    /// Which source each channel of the program is.
    sources: Vec<usize>,
    /// What each source's packets are.
    protocols: Vec<Protocol>,
    /// As many frames as its rings can hold.
    frames: u32,
    /// Some channel is filtered.
    is_filtering: bool,
    /// Packets of each channel as counted last: more of them are a sign of life.
    packets: Vec<u64>,
    /// What tells a thread that sleeps of frames.
    pub(crate) watches: Vec<Watch>,
}

impl Hook {
    /// Attaches a program for the sources of an interface.
    pub(crate) fn attach(
        interface: &Interface,
        sources: Vec<(usize, LiveLines)>,
        (section, beside): (&ReceiverSection, Beside),
        waiter: &mut Waiter,
    ) -> Result<Hook, ReceiverError> {
        let looks = (section.filter, beside.arms_orders);
        let channels = (0..).zip(&sources);
        let channels = channels.map(|(number, (_, lines))| channel(lines, number, looks));
        let channels: Vec<ChannelSpec> = channels.collect();
        let is_looking = channels.iter().any(|channel| channel.framing != Framing::Any);
        let processors = processors();
        let cpus = match processors {
            ..=64 => 64,
            _ => CPUS_MAX,
        };
        let spec = FilterSpec {
            sets: u16::try_from(channels.len()).unwrap_or(u16::MAX),
            channels,
            cpus,
            guard: beside.guards_orders,
            trigger: beside.arms_orders && is_looking,
            // Each processor has notes of its own of what it drops.
            statistics: section.filter
                && section.filter_statistics
                && is_looking
                && processors <= usize::from(cpus),
            ..FilterSpec::default()
        };
        let (mode, zero_copy) = match section.xdp_mode {
            XdpWay::Auto => (None, None),
            XdpWay::ZeroCopy => (Some(XdpMode::Native), Some(true)),
            XdpWay::Copy => (Some(XdpMode::Native), Some(false)),
            XdpWay::Generic => (Some(XdpMode::Generic), None),
        };
        let config = ReceiverConfig {
            queues: match section.xdp_queues {
                0 => interface.receive_queues(),
                queues => queues,
            },
            frames: section.xdp_frames,
            mode,
            zero_copy,
            ..ReceiverConfig::default()
        };
        let receiver = KernelReceiver::attach(spec, interface, &config)?;
        let watches = receiver.sockets().iter().map(|socket| waiter.watch(socket));
        let watches = watches.collect();
        taken().insert(interface.name().to_owned());
        let mut hook = Hook {
            packets: vec![0; sources.len()],
            frames: config.frames.saturating_mul(config.queues.max(1)),
            is_filtering: section.filter && is_looking,
            protocols: sources.iter().map(|(_, lines)| lines.protocol).collect(),
            receiver,
            interface: interface.name().to_owned(),
            sources: sources.into_iter().map(|(source, _)| source).collect(),
            watches,
        };
        for channel in 0..hook.sources.len() as u16 {
            let framing = hook.framing(channel);
            if framing != Framing::Any {
                Filtering::new(framing).begin(&mut hook.gate(channel));
            }
        }
        Ok(hook)
    }

    fn framing(&self, channel: u16) -> Framing {
        self.receiver.filter().spec().channels[usize::from(channel)].framing
    }

    fn gate(&mut self, channel: u16) -> FilterGate<'_> {
        FilterGate::new(self.receiver.filter_mut(), channel)
    }

    /// The sources whose channels are looked into, with how their packets are made up.
    pub(crate) fn filtered(&self) -> impl Iterator<Item = (usize, Framing)> + '_ {
        let channels = self.sources.iter().zip(&self.receiver.filter().spec().channels);
        let channels = channels.map(|(source, channel)| (*source, channel.framing));
        channels.filter(|(_, framing)| *framing != Framing::Any)
    }

    /// What the program has left to the kernel in which a datagram of its groups may be.
    #[inline]
    pub(crate) fn aside(&self) -> u64 {
        self.receiver.aside()
    }

    /// How it receives, for people.
    pub(crate) fn in_use(&self) -> String {
        let groups = self.receiver.filter().spec().channels.iter();
        let groups: usize = groups.map(|channel| channel.groups.len()).sum();
        let filtered = match self.filtered().count() {
            _ if !self.is_filtering => String::new(),
            0 => String::new(),
            n => format!("; {n} of {} channels behind the filter", self.sources.len()),
        };
        format!(
            "receiving {groups} groups on {} by AF_XDP: {}{filtered}",
            self.interface,
            self.receiver.in_use()
        )
    }

    /// The program's pre-armed order, unless somebody has it or the program has none.
    pub(crate) fn trigger(&self) -> Option<Trigger> {
        self.receiver.trigger()
    }

    /// Where a source's channel stands, if it is of this interface and an order can be armed on it now.
    pub(crate) fn arming_point<H: Consumer>(
        &self,
        sources: &[Box<dyn Source<H>>],
        source: usize,
        instrument: InstrumentId,
    ) -> Option<ArmingPoint> {
        let at = self.sources.iter().position(|own| *own == source)?;
        if !self.receiver.is_drained() {
            return None;
        }
        let of = sources.get(source)?;
        let (session, next) = of.position()?;
        Some(ArmingPoint {
            protocol: *self.protocols.get(at)?,
            channel: u16::try_from(at).ok()?,
            session,
            next,
            unit: of.price_unit(instrument),
        })
    }

    /// How many messages of a source's instrument the filter has dropped; `None` if that is not counted here.
    pub(crate) fn dropped(&self, source: usize, name: FilterName) -> Option<u64> {
        let at = self.sources.iter().position(|own| *own == source)?;
        let (channel, filter) = (u16::try_from(at).ok()?, self.receiver.filter());
        match name {
            FilterName::Bit(bit) => filter.dropped(channel, bit),
            FilterName::Key(key) => filter.dropped_of_key(channel, key),
        }
    }

    /// What the rings hold, up to a bound.
    #[inline]
    pub(crate) fn receive<H: Consumer>(&mut self, sources: &mut [Box<dyn Source<H>>], hot: &mut H) -> Taken {
        let mut taken = Taken::Nothing;
        for _ in 0..PACKETS_PER_LOOK {
            self.receiver.behind().for_each(prefetch::fetch_bytes);
            let Some(delivery) = self.receiver.recv() else {
                return taken;
            };
            taken = Taken::All;
            let datagram = Hooked {
                line: if delivery.line == 0 { Line::A } else { Line::B },
                bytes: delivery.payload,
                stamp: delivery.stamp,
                lost: delivery.lost,
                seen_up_to: delivery.seen_up_to,
                knows_orders: delivery.knows_orders,
            };
            let channel = delivery.channel;
            let source = self.sources[usize::from(channel)];
            sources[source].take(&datagram, hot);
            if self.is_filtering {
                sources[source].guard(&mut self.gate(channel));
            }
        }
        Taken::Part
    }

    /// Everything that the rings hold at the moment.
    pub(crate) fn drain<H: Consumer>(&mut self, sources: &mut [Box<dyn Source<H>>], hot: &mut H) {
        // What comes meanwhile may have no end.
        for _ in 0..=self.frames.div_ceil(PACKETS_PER_LOOK) {
            if self.receive(sources, hot) != Taken::Part {
                return;
            }
        }
    }

    /// Disarms every channel, and takes everything that the rings had until then: what the filter has dropped
    /// lies before what the channels know next, so that their subscriptions may change. Nothing that was
    /// delivered before says anything of what was seen afterwards: it was said by the old subscription. What
    /// finds no end in time is a gap, and asked for.
    pub(crate) fn open<H: Consumer>(&mut self, sources: &mut [Box<dyn Source<H>>], hot: &mut H) {
        if !self.is_filtering {
            return;
        }
        for channel in 0..self.sources.len() as u16 {
            if self.framing(channel) == Framing::Any {
                continue;
            }
            self.open_channel(channel, sources, hot);
        }
    }

    /// The same of one channel.
    fn open_channel<H: Consumer>(&mut self, channel: u16, sources: &mut [Box<dyn Source<H>>], hot: &mut H) {
        self.receiver.filter_mut().disarm(channel);
        let made = self.receiver.filter().made(channel);
        // `None`: some are missing, which the receiver has waited for already.
        let is_behind = |hook: &Hook| {
            let taken = hook.receiver.taken(channel)?;
            Some(made.wrapping_sub(taken).cast_signed() > 0)
        };
        let began = monotonic();
        while is_behind(self) == Some(true) {
            // The clock is read before the rings, as the thread may stand still in between. Other channels
            // may have no end.
            let waited = monotonic().since(began);
            let is_empty = self.receive(sources, hot) == Taken::Nothing;
            if waited >= DRAIN_MAX_NS && (is_empty || waited >= 10 * DRAIN_MAX_NS) {
                break;
            }
        }
        if is_behind(self) == Some(false) {
            let seen = self.receiver.filter_mut().last_seen(channel);
            if seen.is_some() {
                sources[self.sources[usize::from(channel)]].seen(hot.now(), seen);
            }
        }
        self.receiver.filter_mut().forget(channel);
    }

    /// For the slow part of a loop: follows the card's clock, gives up what the rings lost, tells channels
    /// what was seen of them though nothing was delivered, and arms what can be armed.
    pub(crate) fn settle<H: Consumer>(&mut self, sources: &mut [Box<dyn Source<H>>], hot: &mut H) {
        self.receiver.settle();
        if !self.is_filtering {
            return;
        }
        for channel in 0..self.sources.len() as u16 {
            if self.framing(channel) == Framing::Any {
                continue;
            }
            let source = &mut sources[self.sources[usize::from(channel)]];
            let filter = self.receiver.filter();
            let packets = filter.count(channel, Count::Packets);
            let before = std::mem::replace(&mut self.packets[usize::from(channel)], packets);
            source.note_filter(counts(|what| filter.count(channel, what)));
            if packets != before {
                source.seen(hot.now(), self.receiver.seen_up_to(channel));
            }
            let is_to_open = source.is_to_open(&mut self.gate(channel));
            if is_to_open || self.receiver.filter().is_last_due(channel) {
                self.open_channel(channel, sources, hot);
            }
            sources[self.sources[usize::from(channel)]].settle(&mut self.gate(channel));
        }
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        taken().remove(&self.interface);
    }
}

fn taken() -> std::sync::MutexGuard<'static, HashSet<String>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `looks`: whether it is filtered, whether orders are armed.
fn channel(lines: &LiveLines, number: u16, looks: (bool, bool)) -> ChannelSpec {
    let group = |(group, source): &(SocketAddrV4, Option<std::net::Ipv4Addr>)| Group {
        source: source.map(|source| source.octets()),
        ..Group::new(group.ip().octets(), group.port())
    };
    ChannelSpec {
        framing: match framing_of(lines.protocol) {
            framing if looks.0 => framing,
            // An order can be armed on these.
            framing @ (Framing::Itch | Framing::Nyse) if looks.1 => framing,
            _ => Framing::Any,
        },
        groups: lines.groups.iter().map(group).collect(),
        set: number,
    }
}

/// Why an interface cannot be received by AF_XDP, and what to do.
pub(crate) fn explained(interface: &Interface, error: &ReceiverError) -> String {
    let xdp = match error {
        ReceiverError::Xdp(xdp) | ReceiverError::Filter(FilterError::Xdp(xdp)) => xdp,
        other => return other.to_string(),
    };
    match xdp {
        XdpError::Busy { .. } if taken().contains(interface.name()) => format!(
            "another thread of this process receives on {} already, and an interface has one program: give all feeds of the interface to \
             one thread",
            interface.name()
        ),
        XdpError::Busy { .. } => {
            format!("{xdp}; what that program takes off the interface is not heard by sockets")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_processor_is_the_last_of_the_kernels_list() {
        let lists = ["0-1\n", "0", "0-3,8-11\n", "0-3,8", "", "none"];
        assert_eq!(
            lists.map(last_of),
            [Some(1), Some(0), Some(11), Some(8), None, None]
        );
    }

    #[test]
    fn every_packet_has_one_reason() {
        // What the program counts of each.
        let of = |what: Count| match what {
            Count::Packets => 2_047,
            Count::Filtered => 1,
            Count::Duplicate => 2,
            Count::Wanted => 4,
            Count::Ahead => 8,
            Count::Behind => 16,
            Count::Race => 32,
            Count::Doubt => 64,
            Count::Disarmed => 128,
            Count::Plain => 256,
            Count::Session => 512 + 1_024,
            _ => 0,
        };
        let counters = counts(of);
        let reasons = [
            Counter::HookFiltered,
            Counter::HookDuplicates,
            Counter::HookWanted,
            Counter::HookAhead,
            Counter::HookBehind,
            Counter::HookRaces,
            Counter::HookUnread,
            Counter::HookDisarmed,
            Counter::HookPlain,
            Counter::HookSession,
        ];
        let sum: u64 = reasons.iter().map(|reason| counters.get(*reason)).sum();
        assert_eq!(sum, counters.get(Counter::HookPackets));
        assert_eq!(counters.get(Counter::HookDoubts), 8 + 16 + 32 + 64 + 1_536);
    }
}
