//! Groups taken at the hook of the network driver, before the kernel's network stack (AF_XDP). Their sockets
//! stay joined: for the memberships, and for what the program leaves to the kernel (fragments, datagrams of
//! fewer than 8 bytes or more than its frames hold, queues that are not read).

use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU64;

use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group as FilterGroup};
use tickwire_kernelpath::{KernelReceiver, ReceiverConfig, ReceiverError};
use tickwire_runtime::clock::{monotonic, wall};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::wait::Waiter;

use crate::Plan;

/// What a frame has room for.
const FRAME_BYTES: u32 = 2048;

/// A datagram, taken at the hook.
pub(crate) struct Hooked<'a> {
    /// The group's place in the plan.
    pub(crate) group: usize,
    pub(crate) source: SocketAddrV4,
    /// When the program saw it, nanoseconds since 1970.
    pub(crate) time: u64,
    /// So many of its group before it found no room in the ring.
    pub(crate) lost: u32,
    pub(crate) payload: &'a [u8],
}

/// An interface's program, and its sockets. Dropping it takes the program away.
pub(crate) struct Hook {
    receiver: KernelReceiver,
    /// By channel of the program, which is one group: its place in the plan.
    groups: Vec<usize>,
    /// Of which something was taken: what came before the sockets were there went to the ordinary ones.
    is_heard: Vec<bool>,
    /// From the program's clock to the system's, nanoseconds.
    to_wall_ns: u64,
}

impl Hook {
    /// Attaches a program to an interface, for the groups of the plan that are joined there.
    pub(crate) fn attach(
        interface: &Interface,
        plan: &Plan,
        waiter: &mut Waiter,
    ) -> Result<Hook, ReceiverError> {
        let groups = (0..plan.groups.len()).filter(|at| plan.groups[*at].interface == *interface);
        let groups: Vec<usize> = groups.collect();
        let channel = |at: &usize| {
            let group = &plan.groups[*at];
            ChannelSpec {
                framing: Framing::Any,
                groups: vec![FilterGroup {
                    source: group.source.map(|source| source.octets()),
                    ..FilterGroup::new(group.address.ip().octets(), group.address.port())
                }],
                set: 0,
            }
        };
        let spec = FilterSpec {
            sets: 1,
            channels: groups.iter().map(channel).collect(),
            cpus: 64,
            ..FilterSpec::default()
        };
        let config = ReceiverConfig {
            queues: match plan.xdp_queues {
                0 => interface.receive_queues(),
                queues => queues,
            },
            // As much as a group's socket gets.
            frames: (plan.receive_buffer_bytes / FRAME_BYTES)
                .next_power_of_two()
                .max(64),
            ..ReceiverConfig::default()
        };
        let receiver = KernelReceiver::attach(spec, interface, &config)?;
        for socket in receiver.sockets() {
            waiter.watch(socket);
        }
        Ok(Hook {
            receiver,
            is_heard: vec![false; groups.len()],
            groups,
            to_wall_ns: to_wall_ns(),
        })
    }

    /// How it receives, for people.
    pub(crate) fn in_use(&self, interface: &Interface) -> String {
        format!(
            "receiving {} groups on {} by AF_XDP: {}",
            self.groups.len(),
            interface.name(),
            self.receiver.in_use()
        )
    }

    /// The next datagram, if there is one. No system call, unless the driver asks for one.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Hooked<'_>> {
        let delivery = self.receiver.recv()?;
        self.is_heard[usize::from(delivery.channel)] = true;
        let (source, port) = delivery.source;
        let arrived = delivery.stamp.arrived_utc(self.to_wall_ns);
        let time = arrived.map_or_else(|| wall().0, NonZeroU64::get);
        Some(Hooked {
            group: self.groups[usize::from(delivery.channel)],
            source: SocketAddrV4::new(Ipv4Addr::from(source), port),
            time,
            lost: delivery.lost,
            payload: delivery.payload,
        })
    }

    /// For the slow part of a loop: follows the system's clock, and tells of what other queues did not bring.
    pub(crate) fn settle(&mut self, mut each: impl FnMut(usize, u32)) {
        self.to_wall_ns = to_wall_ns();
        let groups = &self.groups;
        self.receiver
            .settle_each(|channel, lost| each(groups[usize::from(channel)], lost));
    }

    /// Nothing is taken any more: tells of what the program delivered behind the last datagram that was
    /// taken.
    pub(crate) fn end(&mut self, mut each: impl FnMut(usize, u32)) {
        self.settle(&mut each);
        self.settle(&mut each);
        for ((channel, group), is_heard) in (0..).zip(&self.groups).zip(&self.is_heard) {
            if !is_heard {
                continue;
            }
            let made = self.receiver.filter().made(channel);
            if let Some(taken) = self.receiver.taken(channel) {
                let behind = made.wrapping_sub(taken).cast_signed();
                each(*group, u32::try_from(behind).unwrap_or(0));
            }
        }
    }
}

/// What the system's clock is ahead of the monotonic one.
fn to_wall_ns() -> u64 {
    wall().0.saturating_sub(monotonic().0)
}
