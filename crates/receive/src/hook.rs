//! Live lines taken at the hook of the network driver, before the kernel's network stack: one program and its
//! AF_XDP sockets for each interface. The sockets of the lines stay joined, for the memberships, and hear
//! what the program leaves to the kernel.

use std::collections::HashSet;
use std::net::SocketAddrV4;
use std::num::NonZeroU64;
use std::sync::{LazyLock, Mutex, PoisonError};

use tickwire_feed::Line;
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group};
use tickwire_kernelpath::{FilterError, KernelReceiver, LoadedFilter, ReceiverConfig, ReceiverError};
use tickwire_runtime::clock::{monotonic, wall};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::wait::{Waiter, Watch};
use tickwire_runtime::xdp::{XdpError, XdpMode};
use tickwire_venues::receiver::{ReceiverSection, XdpWay};

use crate::receiver::{Consumer, Source, Taken};

/// Datagrams of an interface that are taken before others are looked at.
const PACKETS_PER_LOOK: u32 = 32;

/// The interfaces of this process that have a program, for what is said of a second one.
static TAKEN: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// The live lines of a source: the groups, and who alone is heard of each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveLines {
    /// Where they are joined.
    pub interface: Interface,
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
    /// The time stamp counter when it was taken.
    pub tsc: u64,
    /// When the program saw it, in nanoseconds of the system's clock.
    pub arrived: Option<NonZeroU64>,
    /// So many datagrams of the channel before it found no room in the ring.
    pub lost: u32,
}

/// An interface's way past the sockets. Dropping it takes the program away.
pub(crate) struct Hook {
    receiver: KernelReceiver,
    interface: String,
    /// Which source each channel of the program is.
    sources: Vec<usize>,
    /// What tells a thread that sleeps of frames.
    pub(crate) watches: Vec<Watch>,
    /// From the program's clock to the system's, nanoseconds.
    to_wall_ns: u64,
}

impl Hook {
    /// Attaches a program for the sources of an interface.
    pub(crate) fn attach(
        interface: &Interface,
        sources: Vec<(usize, LiveLines)>,
        section: &ReceiverSection,
        waiter: &mut Waiter,
    ) -> Result<Hook, ReceiverError> {
        let spec = FilterSpec {
            channels: sources.iter().map(|(_, lines)| channel(lines)).collect(),
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
        let filter = LoadedFilter::load(spec)?;
        let receiver = KernelReceiver::attach(filter, interface, &config)?;
        let watches = receiver.sockets().iter().map(|socket| waiter.watch(socket));
        let watches = watches.collect();
        taken().insert(interface.name().to_owned());
        Ok(Hook {
            receiver,
            interface: interface.name().to_owned(),
            sources: sources.into_iter().map(|(source, _)| source).collect(),
            watches,
            to_wall_ns: to_wall_ns(),
        })
    }

    /// How it receives, for people.
    pub(crate) fn in_use(&self) -> String {
        let groups = self.receiver.filter().spec().channels.iter();
        let groups: usize = groups.map(|channel| channel.groups.len()).sum();
        format!(
            "receiving {groups} groups on {} by AF_XDP: {}",
            self.interface,
            self.receiver.in_use()
        )
    }

    /// What the rings hold, up to a bound.
    #[inline]
    pub(crate) fn receive<H: Consumer>(&mut self, sources: &mut [Box<dyn Source<H>>], hot: &mut H) -> Taken {
        let mut taken = Taken::Nothing;
        for _ in 0..PACKETS_PER_LOOK {
            let Some(delivery) = self.receiver.recv() else {
                return taken;
            };
            taken = Taken::All;
            let hook_ns = delivery.stamp.hook_ns;
            let datagram = Hooked {
                line: if delivery.line == 0 { Line::A } else { Line::B },
                bytes: delivery.payload,
                tsc: delivery.stamp.tsc,
                arrived: hook_ns.and_then(|ns| ns.checked_add(self.to_wall_ns)),
                lost: delivery.lost,
            };
            let source = self.sources[usize::from(delivery.channel)];
            sources[source].take(&datagram, hot);
        }
        Taken::Part
    }

    /// For the slow part of a loop: follows the system's clock, and gives up what the rings lost.
    pub(crate) fn settle(&mut self) {
        self.to_wall_ns = to_wall_ns();
        self.receiver.settle();
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

/// What the system's clock is ahead of the monotonic one, which it is from 1970 on.
fn to_wall_ns() -> u64 {
    wall().0.saturating_sub(monotonic().0)
}

fn channel(lines: &LiveLines) -> ChannelSpec {
    let group = |(group, source): &(SocketAddrV4, Option<std::net::Ipv4Addr>)| Group {
        source: source.map(|source| source.octets()),
        ..Group::new(group.ip().octets(), group.port())
    };
    ChannelSpec {
        framing: Framing::Any,
        groups: lines.groups.iter().map(group).collect(),
        set: 0,
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
