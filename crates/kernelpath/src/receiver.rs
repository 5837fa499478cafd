//! The whole way in: memberships, program, sockets, deliveries in order.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU64;
use std::sync::Arc;

use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Group};
use tickwire_kernel::frame;
use tickwire_kernel::layout::{META_SIZE, Meta};
use tickwire_runtime::NetError;
use tickwire_runtime::clock::{monotonic, tsc};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::stamp::RxStamp;
use tickwire_runtime::udp::{MulticastConfig, MulticastReceiver, Stamping};
use tickwire_runtime::xdp::{
    Attached, XdpDrops, XdpError, XdpMode, XdpSocket, XdpSocketConfig, in_use, in_use_by,
};

use crate::card::{self, Card};
use crate::delegate::Guard;
use crate::progress::Progress;
use crate::trigger::{Kept, Place, Trigger};
use crate::{FilterError, LoadedFilter};

/// How a [`KernelReceiver`] is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverConfig {
    /// How many receive queues of the interface are read, from 0 on. Multicast may come by any of them: all,
    /// or the one it is steered to.
    pub queues: u32,
    /// Frames for each queue, see [`XdpSocketConfig`].
    pub frames: u32,
    /// Where the program stands; `None`: in the driver if it can, else behind it.
    pub mode: Option<XdpMode>,
    /// Whether frames are to be taken without a copy; `None`: if the driver can.
    pub zero_copy: Option<bool>,
    /// Whether the card is asked when it received each packet, where its driver can be: in the driver only.
    pub wire_time: bool,
    /// Receive buffer of each ordinary socket, which hears what the program leaves to the kernel, bytes.
    pub passed_buffer_bytes: u32,
}

impl Default for ReceiverConfig {
    /// One queue, 16,384 frames, the best mode there is, the card's time where it can be had, 1 MiB for what
    /// is passed.
    fn default() -> ReceiverConfig {
        ReceiverConfig {
            queues: 1,
            frames: XdpSocketConfig::default().frames,
            mode: None,
            zero_copy: None,
            wire_time: true,
            passed_buffer_bytes: 1 << 20,
        }
    }
}

/// Why the kernel path cannot be taken; sockets can.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverError {
    /// The filter.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// Program or sockets.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// A membership.
    #[error(transparent)]
    Net(#[from] NetError),
}

/// So long a delivery waits for those before it that another queue is to bring: a driver shows what it
/// delivers at the end of a round of 64 packets, and the host of a virtual machine may take the processor for
/// some milliseconds meanwhile. What was lost is waited for so long, too, once until it is given up.
const EARLY_WAITS_NS: u64 = 20_000_000;

/// So many calls of [`KernelReceiver::settle`] in a row give nothing up because something waits in a ring.
const UNSETTLED_MAX: u32 = 10;

/// What is ready and waits for what is before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Early {
    /// Nothing.
    None,
    /// Since then, nanoseconds of the kernel's clock.
    Since(u64),
    /// For long enough: if another look at every ring does not find what is before it, it is taken. The
    /// thread may have stood still between its last look and the clock.
    Long,
}

/// So often what the program kept is looked at before what should have come before it counts as lost.
const KEPT_LOOKS_MAX: u32 = 10_000;

/// A datagram that the program delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivery<'a> {
    /// The channel's number in the specification.
    pub channel: u16,
    /// The group it was sent to.
    pub group: Group,
    /// Who sent it, and from which port.
    pub source: ([u8; 4], u16),
    /// The group's place in the channel's specification: which line.
    pub line: usize,
    /// What it carries.
    pub payload: &'a [u8],
    /// When it came.
    pub stamp: RxStamp,
    /// Everything before this number was seen in sequence, and what was not delivered nobody wants. To be
    /// told to the channel before the payload.
    pub seen_up_to: Option<u64>,
    /// Where orders are followed: the channel was armed when the program saw this, is armed since, and does
    /// not hold. The program knows the packet's orders then.
    pub knows_orders: bool,
    /// So many deliveries of this channel before it were lost between program and reader. The channel has
    /// been disarmed; what is missing is found and asked for as on any line.
    pub lost: u32,
}

/// An interface's market data, by AF_XDP. Dropping it detaches the program.
#[derive(Debug)]
pub struct KernelReceiver {
    attached: Attached,
    sockets: Vec<XdpSocket>,
    turn: usize,
    /// With several queues: since when something is ready and waits for what is before it.
    early: Early,
    /// Calls of [`KernelReceiver::settle`] that found something in a ring, in a row.
    unsettled: u32,
    passed: Vec<MulticastReceiver>,
    filter: LoadedFilter,
    /// What guards connections at the interface, for those that are delegated.
    guard: Option<Arc<Guard>>,
    /// Where the program keeps the packet that it has written an order over.
    kept: Option<Kept>,
    /// How often it was looked at and not its turn, with nothing in a ring.
    kept_looks: u32,
    progress: Vec<Progress>,
    card: Card,
    lost: u64,
    stray: u64,
}

impl Drop for KernelReceiver {
    fn drop(&mut self) {
        if let Some(guard) = &self.guard {
            guard.detached();
        }
        if let Some(kept) = &self.kept {
            kept.place.detached();
        }
    }
}

impl KernelReceiver {
    /// Loads the filter, joins every group by an ordinary socket, attaches the program and opens a socket for
    /// each queue.
    ///
    /// # Errors
    /// One sentence each for what is missing, with the remedy; nothing is left behind then.
    pub fn open(
        spec: FilterSpec,
        interface: &Interface,
        config: &ReceiverConfig,
    ) -> Result<KernelReceiver, ReceiverError> {
        let mut receiver = KernelReceiver::attach(spec, interface, config)?;
        // The switch sends what somebody is a member of, whoever reads it then.
        for (number, channel) in receiver.filter.spec().channels.iter().enumerate() {
            for group in &channel.groups {
                let address = SocketAddrV4::new(Ipv4Addr::from(group.address), group.port);
                let mut member = MulticastConfig::new(address, interface.clone())
                    .line(number as u8)
                    .stamping(Stamping::Kernel);
                member.receive_buffer_bytes = config.passed_buffer_bytes;
                member.source = group.source.map(Ipv4Addr::from);
                receiver.passed.push(MulticastReceiver::join(member)?);
            }
        }
        Ok(receiver)
    }

    /// Loads a filter, attaches it and opens a socket for each queue, for who keeps the memberships himself:
    /// packets that nobody has asked the switch for do not come, and what the program leaves to the kernel
    /// has to be read from sockets.
    ///
    /// # Errors
    /// As [`KernelReceiver::open`].
    pub fn attach(
        spec: FilterSpec,
        interface: &Interface,
        config: &ReceiverConfig,
    ) -> Result<KernelReceiver, ReceiverError> {
        let (mut filter, (attached, sockets), card) = card::attach(spec, interface, config)?;
        let guard = filter.guard().map(|map| Guard::of_filter(map, interface));
        let kept = filter
            .take_trigger()
            .map(|map| Kept::new(Arc::new(Place::new(map, interface.index(), attached.mode()))));
        let channels = filter.spec().channels.len();
        Ok(KernelReceiver {
            attached,
            sockets,
            turn: 0,
            early: Early::None,
            unsettled: 0,
            passed: Vec::new(),
            filter,
            guard,
            kept,
            kept_looks: 0,
            progress: vec![Progress::default(); channels],
            card,
            lost: 0,
            stray: 0,
        })
    }

    /// How packets are received, for a line in a log.
    pub fn in_use(&self) -> String {
        match self.sockets.as_slice() {
            [one] => format!("{}, {}", in_use(&self.attached, one), self.card),
            [first, .., last] => format!("{}, {}", in_use_by(&self.attached, first, last), self.card),
            [] => String::new(),
        }
    }

    /// The card's own time: whether it is asked for, and how it stands to ours.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// The next delivery, `None` if there is none at the moment. Never waits; no system call unless the
    /// driver asks for one.
    ///
    /// The queues take turns. Where a channel's packets come by several of them, they are given in the order
    /// in which the program delivered them; one that is before the others and does not come is waited for for
    /// 20 ms. After that a claim counts only when all deliveries before it have been given; until then it is
    /// withheld, and what it would have covered is asked for again. [`KernelReceiver::settle`] is to be
    /// called now and then.
    #[inline]
    pub fn recv(&mut self) -> Option<Delivery<'_>> {
        let (queues, is_arming) = (self.sockets.len(), self.kept.is_some());
        let (at, is_ready) = match queues {
            1 => (0, self.sockets[0].is_ready()),
            _ => self.choose(),
        };
        // Looked at in this order: if something is in a ring, what was kept before it is seen.
        let kept = self.kept.as_ref().and_then(|kept| kept.place.kept_delivery());
        let is_due = kept.is_some_and(|kept| self.is_due(kept, is_ready));
        let (meta, bytes) = match self.kept.as_mut().filter(|_| is_due).and_then(Kept::take) {
            Some(kept) => kept,
            None if is_arming && !is_ready => {
                self.sockets[at].wake_if_asked();
                return None;
            }
            // Something is before what is ready, and may come.
            None if queues > 1 && !is_ready => {
                self.sockets[at].wake_if_asked();
                return None;
            }
            None => self.sockets[at].recv::<META_SIZE>()?,
        };
        let tsc = tsc();
        let Some(udp) = frame::udp(bytes) else {
            self.stray += 1;
            return None;
        };
        // The driver may have no room for metadata: the group says which channel it is, and nothing is
        // claimed.
        let channels = &self.filter.spec().channels;
        let meta = Meta::read(&meta).filter(|meta| usize::from(meta.channel) < channels.len());
        let found = match meta {
            Some(meta) => {
                line_of(&channels[usize::from(meta.channel)], &udp).map(|line| (meta.channel, line))
            }
            None => (0..)
                .zip(channels)
                .find_map(|(number, channel)| Some((number, line_of(channel, &udp)?))),
        };
        let Some((channel, line)) = found else {
            self.stray += 1;
            return None;
        };
        let mut delivery = Delivery {
            channel,
            group: channels[usize::from(channel)].groups[line],
            source: (udp.source, udp.source_port),
            line,
            payload: udp.payload,
            stamp: RxStamp::here(tsc),
            seen_up_to: None,
            knows_orders: false,
            lost: 0,
        };
        let Some(meta) = meta else {
            return Some(delivery);
        };
        delivery.stamp.hook_ns = NonZeroU64::new(meta.hook_ns);
        self.card.stamp(meta.wire_ns, &mut delivery.stamp);
        let step = self.progress[usize::from(channel)].step(meta.delivery, queues == 1);
        if step.lost > 0 {
            delivery.lost = step.lost;
            self.lost += u64::from(step.lost);
            self.filter.forget(channel);
        }
        delivery.knows_orders = self.filter.knows_orders(&meta);
        if step.is_whole {
            delivery.seen_up_to = self.filter.claim(&meta);
        }
        Some(delivery)
    }

    /// What waits behind the next delivery of each queue, as it lies in memory. A card writes packets to
    /// memory or the last cache, and another processor to its own: who asks for their lines before the next
    /// delivery is taken need not wait for them afterwards.
    #[inline]
    pub fn behind(&self) -> impl Iterator<Item = &[u8]> {
        self.sockets.iter().filter_map(XdpSocket::behind::<META_SIZE>)
    }

    /// The queue whose turn it is, and whether its next delivery is to be taken. They take turns, but a
    /// delivery waits for those before it: they lie in other rings already, or will when the processor that
    /// has numbered them has come to the end of what its card gave it.
    fn choose(&mut self) -> (usize, bool) {
        let (queues, first) = (self.sockets.len(), self.turn);
        self.turn = if first + 1 == queues { 0 } else { first + 1 };
        let mut early = None;
        for at in (first..queues).chain(0..first) {
            let Some(meta) = self.sockets[at].look::<META_SIZE>() else {
                continue;
            };
            let meta = Meta::read(&meta);
            let of =
                meta.and_then(|meta| Some((self.progress.get(usize::from(meta.channel))?, meta.delivery)));
            if of.is_none_or(|(progress, delivery)| progress.is_due(delivery)) {
                self.early = Early::None;
                return (at, true);
            }
            early = early.or(Some(at));
        }
        let Some(at) = early else {
            return (first, false);
        };
        match self.early {
            Early::None => self.early = Early::Since(monotonic().0),
            Early::Since(since) if monotonic().0.saturating_sub(since) > EARLY_WAITS_NS => {
                self.early = Early::Long;
            }
            Early::Since(_) => {}
            Early::Long => {
                self.early = Early::None;
                return (at, true);
            }
        }
        (at, false)
    }

    /// How many packets were left to the kernel in which a datagram of a group may be, see
    /// [`LoadedFilter::aside`]: when there are more than before, [`KernelReceiver::sockets`] are worth a look.
    #[inline]
    pub fn aside(&self) -> u64 {
        self.filter.aside()
    }

    /// Whether it is the turn of the packet that the program kept: it stands before what a ring got after it,
    /// and behind what it got before, which a driver may show later.
    #[cold]
    fn is_due(&mut self, (channel, delivery): (u16, u32), is_ready: bool) -> bool {
        let progress = self.progress.get(usize::from(channel));
        let is_next = progress.is_none_or(|progress| progress.is_next(delivery));
        self.kept_looks = if is_next || is_ready {
            0
        } else {
            self.kept_looks + 1
        };
        is_next || self.sockets.len() > 1 || self.kept_looks > KEPT_LOOKS_MAX
    }

    /// For the slow part of a loop: gives up deliveries that other queues have not brought since the last
    /// call, and disarms their channels; not while something waits in a ring, ten calls in a row at most. How
    /// many there were. Follows the card's clock, too.
    pub fn settle(&mut self) -> u32 {
        let mut all = 0;
        self.settle_each(|_, lost| all += lost);
        all
    }

    /// The same; `each` is told of every channel that lost some, and how many.
    pub fn settle_each(&mut self, mut each: impl FnMut(u16, u32)) {
        self.card.follow();
        self.unsettled = match self.is_drained() {
            true => 0,
            false => self.unsettled + 1,
        };
        if (1..UNSETTLED_MAX).contains(&self.unsettled) {
            return;
        }
        self.unsettled = 0;
        for (channel, progress) in (0..).zip(&mut self.progress) {
            let lost = progress.settle();
            if lost > 0 {
                self.filter.forget(channel);
                self.lost += u64::from(lost);
                each(channel, lost);
            }
        }
    }

    /// What [`Delivery::seen_up_to`] would say now, without a packet: for the slow part of a loop, so that a
    /// channel of which nothing is wanted for a while goes on all the same. `None` if the channel is disarmed
    /// or something of it waits in a ring.
    pub fn seen_up_to(&self, channel: u16) -> Option<u64> {
        let progress = self.progress.get(usize::from(channel))?;
        self.filter.seen_up_to(channel, progress.taken()?)
    }

    /// How many deliveries of a channel were taken, modulo 2^32, if none before is missing.
    pub fn taken(&self, channel: u16) -> Option<u32> {
        self.progress.get(usize::from(channel))?.taken()
    }

    /// The pre-armed order of the program; `None` if [`FilterSpec::trigger`] did not ask for one, or somebody
    /// has it.
    pub fn trigger(&self) -> Option<Trigger> {
        Trigger::of(&self.kept.as_ref()?.place)
    }

    /// Whether nothing waits to be taken: what an order is armed for begins with the next packet then.
    pub fn is_drained(&self) -> bool {
        !self.kept.as_ref().is_some_and(|kept| kept.place.has_kept())
            && !self.sockets.iter().any(XdpSocket::is_ready)
    }

    /// The ordinary sockets, one a group in the order of the specification, [`MulticastReceiver::line`] the
    /// channel: they keep the memberships, and hear what the program leaves to the kernel (fragments, IP
    /// options, a queue without a socket). To be read in the slow part of a loop.
    pub fn passed(&mut self) -> &mut [MulticastReceiver] {
        &mut self.passed
    }

    /// The filter: counters, what is wanted.
    pub fn filter(&self) -> &LoadedFilter {
        &self.filter
    }

    /// The filter, to say what is wanted and to arm it.
    pub fn filter_mut(&mut self) -> &mut LoadedFilter {
        &mut self.filter
    }

    /// Deliveries lost between program and reader so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Frames that were delivered and are no datagrams of ours: none, unless another program sends to the
    /// sockets.
    pub fn stray(&self) -> u64 {
        self.stray
    }

    /// What the rings had no room for, over all queues. A system call for each.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn drops(&self) -> std::io::Result<XdpDrops> {
        let mut sum = XdpDrops::default();
        for socket in &self.sockets {
            let drops = socket.drops()?;
            sum.other += drops.other;
            sum.ring_full += drops.ring_full;
            sum.no_frame += drops.no_frame;
        }
        Ok(sum)
    }

    /// The sockets, one a queue: what a waiting loop watches.
    pub fn sockets(&self) -> &[XdpSocket] {
        &self.sockets
    }
}

/// Which line of a channel a datagram is of.
#[inline]
fn line_of(channel: &ChannelSpec, udp: &frame::Udp<'_>) -> Option<usize> {
    channel.groups.iter().position(|group| {
        let to = (group.address, group.port) == (udp.address, udp.port);
        to && group.source.is_none_or(|source| source == udp.source)
    })
}

/// In the driver without a copy, in it with one, behind it: the first that works for all queues.
pub(crate) fn attach_at(
    filter: &LoadedFilter,
    interface: &Interface,
    config: &ReceiverConfig,
) -> Result<(Attached, Vec<XdpSocket>), XdpError> {
    let at = (interface.name(), interface.index());
    let socket = XdpSocketConfig {
        frames: config.frames,
        zero_copy: config.zero_copy,
    };
    let both = [XdpMode::Native, XdpMode::Generic];
    let modes = both.iter().filter(|mode| config.mode.is_none_or(|m| m == **mode));
    let mut last = None;
    for mode in modes {
        let tried = filter.program().attach(at, *mode).and_then(|attached| {
            let sockets = (0..config.queues.max(1))
                .map(|queue| XdpSocket::open(at, queue, socket, Some(filter.sockets())))
                .collect::<Result<Vec<XdpSocket>, XdpError>>()?;
            Ok((attached, sockets))
        });
        match tried {
            Err(error @ (XdpError::Attach { .. } | XdpError::Socket { .. })) => last = Some(error),
            other => return other,
        }
    }
    Err(last.unwrap_or(XdpError::Frames {
        frames: config.frames,
    }))
}
