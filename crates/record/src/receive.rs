//! Datagrams of every group into blocks of memory, in the form that files have. Its thread allocates nothing
//! after the start, takes no lock, and waits for nobody but the kernel.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tickwire_console::failure::Failure;
use tickwire_console::health::SocketHealth;
use tickwire_market::Nanos;
use tickwire_runtime::capture::blocks;
use tickwire_runtime::clock::{monotonic, tsc};
use tickwire_runtime::spsc::{Consumer, Producer, ring};
use tickwire_runtime::trouble::BackOff;
use tickwire_runtime::udp::{MulticastConfig, MulticastReceiver, Stamping};
use tickwire_runtime::wait::{WaitStrategy, Waiter, Watch};

use tickwire_venues::receiver::Backend;

use crate::hook::{Hook, Hooked};
use crate::{Group, Plan};

/// Bytes of a chunk: what is written by one call.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;
/// The shortest block: of an empty datagram.
const BLOCK_MIN: usize = blocks::PAYLOAD_AT + 2 + 4;
/// Datagrams of one group before the others are looked at.
const DATAGRAMS_PER_LOOK: usize = 64;
/// A chunk that has waited for so long is written as it is.
const CHUNK_AGE_NS: u64 = 100 * Nanos::MILLI;
/// How long the thread sleeps for want of input.
const IDLE_NS: u64 = 20 * Nanos::MILLI;
/// How long it waits for an empty chunk; the kernel keeps what comes meanwhile, as long as it has room.
const FULL_WAIT: Duration = Duration::from_micros(500);

/// A datagram in a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// When the kernel received it, nanoseconds since 1970.
    pub(crate) time: u64,
    pub(crate) from: u32,
    pub(crate) len: u32,
    /// Bytes of its payload.
    pub(crate) payload: u32,
    pub(crate) group: u32,
    /// Of its group, lost before it.
    pub(crate) lost: u32,
}

/// A datagram whose payload is in its chunk.
struct Arrived {
    group: usize,
    /// Who sent it, and where to.
    addresses: (SocketAddrV4, SocketAddrV4),
    /// Nanoseconds since 1970.
    time: u64,
    /// Bytes of its payload.
    len: usize,
    /// Of its group, lost before it.
    lost: u32,
}

/// Blocks of packets, one behind the other.
#[derive(Debug)]
pub(crate) struct Chunk {
    bytes: Box<[u8]>,
    pub(crate) frames: Vec<Frame>,
    used: usize,
}

impl Chunk {
    pub(crate) fn new() -> Chunk {
        Chunk {
            // Touched here, so that no page is new on the way of a packet.
            bytes: vec![1; CHUNK_BYTES + blocks::UDP_BLOCK_MAX].into_boxed_slice(),
            frames: Vec::with_capacity(CHUNK_BYTES / BLOCK_MIN + 1),
            used: 0,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Makes the block of a datagram whose payload is in its place already.
    #[inline]
    fn note(&mut self, arrived: &Arrived, count: &GroupCount) {
        let Arrived {
            group,
            addresses,
            time,
            len,
            lost,
        } = *arrived;
        let room = &mut self.bytes[self.used..];
        let bytes = blocks::udp(room, group as u32, Nanos(time), addresses, len, lost);
        self.frames.push(Frame {
            time,
            from: self.used as u32,
            len: bytes as u32,
            payload: len as u32,
            group: group as u32,
            lost,
        });
        self.used += bytes;
        add(&count.packets, 1);
        add(&count.bytes, len as u64);
        if lost > 0 {
            add(&count.lost, u64::from(lost));
        }
    }

    fn clear(&mut self) {
        self.frames.clear();
        self.used = 0;
    }

    /// Puts blocks in order of time, by way of `scratch`; those of one time stay as they are. The sockets are
    /// read one after the other, so that those of two groups may stand the wrong way round.
    pub(crate) fn sort(&mut self, scratch: &mut Vec<u8>) {
        if self.frames.is_sorted_by_key(|frame| frame.time) {
            return;
        }
        self.frames.sort_by_key(|frame| frame.time);
        scratch.clear();
        for frame in &mut self.frames {
            let from = frame.from as usize;
            frame.from = scratch.len() as u32;
            scratch.extend_from_slice(&self.bytes[from..from + frame.len as usize]);
        }
        self.bytes[..self.used].copy_from_slice(scratch);
    }
}

/// What is counted of one group; written by one thread each, read by all.
#[derive(Debug, Default)]
pub(crate) struct GroupCount {
    pub(crate) packets: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) lost: AtomicU64,
    /// Received, and not written until the end.
    pub(crate) unwritten: AtomicU64,
}

/// What threads tell each other.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) groups: Vec<GroupCount>,
    /// How often a time began in which no chunk was empty.
    pub(crate) full: AtomicU64,
    pub(crate) is_ending: AtomicBool,
}

impl Shared {
    pub(crate) fn new(groups: usize) -> Shared {
        Shared {
            groups: (0..groups).map(|_| GroupCount::default()).collect(),
            full: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
        }
    }
}

struct Line {
    group: Group,
    receiver: MulticastReceiver,
    watch: Watch,
    health: SocketHealth,
    /// Stamp of the last datagram.
    last: u64,
    /// Lost before the next datagram that is kept.
    lost: u32,
    told: u64,
}

/// The receiving end. See the module's description.
pub(crate) struct Intake {
    lines: Vec<Line>,
    hooks: Vec<Hook>,
    /// How the hooks receive, and why there are none.
    said: Vec<String>,
    waiter: Waiter,
    shared: Arc<Shared>,
    chunk: Option<Chunk>,
    begun: Nanos,
    /// No chunk was empty at the last look.
    is_full: bool,
    filled: Producer<Chunk>,
    empty: Consumer<Chunk>,
}

/// The other ends of an intake's queues: chunks that are filled come, and go back.
pub(crate) struct Queue {
    pub(crate) filled: Consumer<Chunk>,
    pub(crate) empty: Producer<Chunk>,
}

impl Intake {
    /// Joins every group and makes the chunks.
    pub(crate) fn join(
        plan: &Plan,
        strategy: WaitStrategy,
        shared: Arc<Shared>,
    ) -> Result<(Intake, Queue), Failure> {
        // The first reading finds out which clock the machine has, and allocates.
        tsc();
        let mut waiter = Waiter::new(strategy);
        let mut lines = Vec::new();
        for group in &plan.groups {
            let mut config =
                MulticastConfig::new(group.address, group.interface.clone()).stamping(Stamping::Kernel);
            config.receive_buffer_bytes = plan.receive_buffer_bytes;
            config.source = group.source;
            let receiver = MulticastReceiver::join(config).map_err(|e| Failure::system(e.to_string()))?;
            lines.push(Line {
                watch: waiter.watch(&receiver),
                health: SocketHealth::new(BackOff::RECEIVE, format!("receiving {}", group.address)),
                group: group.clone(),
                receiver,
                last: 0,
                lost: 0,
                told: 0,
            });
        }
        let (hooks, said) = hooks(plan, &mut waiter)?;
        let chunks = (plan.queue_bytes / CHUNK_BYTES).max(2);
        let (filled, filled_out) = ring(chunks.next_power_of_two());
        let (mut empty_in, empty) = ring(chunks.next_power_of_two());
        for _ in 0..chunks {
            // The ring has room for all of them.
            let _ = empty_in.push(Chunk::new());
        }
        let intake = Intake {
            lines,
            hooks,
            said,
            waiter,
            shared,
            chunk: None,
            begun: Nanos::ZERO,
            is_full: false,
            filled,
            empty,
        };
        let queue = Queue {
            filled: filled_out,
            empty: empty_in,
        };
        Ok((intake, queue))
    }

    /// Sentences about receive buffers that are smaller than wanted, and drops that nobody counts.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let all = self.lines.iter().flat_map(|line| line.receiver.warnings());
        all.collect()
    }

    /// Sentences about how datagrams come, where that is not by sockets alone.
    pub(crate) fn in_use(&self) -> &[String] {
        &self.said
    }

    /// Receives until it is told to end.
    pub(crate) fn run(mut self) {
        let mut settled = monotonic();
        while !self.shared.is_ending.load(Ordering::Acquire) {
            self.turn();
            let now = monotonic();
            if now.since(settled) > Nanos::SECOND {
                settled = now;
                self.lines.iter_mut().for_each(|line| line.health.settle());
                let groups = &self.shared.groups;
                let hooks = self.hooks.iter_mut();
                hooks.for_each(|hook| hook.settle(|group, lost| count_lost(&groups[group], lost)));
            }
        }
        // What the kernel has by now; a group that goes on and on does not keep us here.
        for _ in 0..64 {
            if !self.look(true) {
                break;
            }
        }
        for hook in &mut self.hooks {
            hook.end(|group, lost| count_lost(&self.shared.groups[group], lost));
        }
        for (line, count) in self.lines.iter_mut().zip(&self.shared.groups) {
            // Those lost behind the last datagram were told by none.
            let more = u64::from(line.receiver.kernel_drops()).saturating_sub(line.told);
            count.lost.fetch_add(more, Ordering::Relaxed);
        }
        self.hand_over();
    }

    /// One turn of the loop: waits for input, takes what is there, hands over a chunk that is old.
    pub(crate) fn turn(&mut self) {
        let has_input = self.waiter.wait(IDLE_NS);
        if has_input && !self.look(false) && self.is_full {
            std::thread::sleep(FULL_WAIT);
        }
        if self.chunk.as_ref().is_some_and(|chunk| chunk.used > 0)
            && monotonic().since(self.begun) >= CHUNK_AGE_NS
        {
            self.hand_over();
        }
    }

    /// Takes datagrams of every hook and group, in turn; whether there was one.
    fn look(&mut self, is_last: bool) -> bool {
        let mut took = false;
        for at in 0..self.hooks.len() {
            for _ in 0..DATAGRAMS_PER_LOOK {
                if !self.has_room() {
                    return took;
                }
                let (Some(hooked), Some(chunk)) = (self.hooks[at].next(), &mut self.chunk) else {
                    break;
                };
                let group = hooked.group;
                put(
                    &hooked,
                    self.lines[group].group.address,
                    chunk,
                    &self.shared.groups[group],
                );
                took = true;
            }
        }
        for at in 0..self.lines.len() {
            if !self.lines[at].health.may_try() || !(is_last || self.waiter.is_ready(self.lines[at].watch)) {
                continue;
            }
            for _ in 0..DATAGRAMS_PER_LOOK {
                if !self.has_room() {
                    return took;
                }
                let Some(chunk) = &mut self.chunk else { break };
                if !take(&mut self.lines[at], at, chunk, &self.shared.groups[at]) {
                    break;
                }
                took = true;
            }
        }
        took
    }

    /// Whether there is a chunk with room for a datagram; one that is full goes to the writer.
    #[inline]
    fn has_room(&mut self) -> bool {
        if self
            .chunk
            .as_ref()
            .is_some_and(|chunk| chunk.used >= CHUNK_BYTES - BLOCK_MIN)
        {
            self.hand_over();
        }
        if self.chunk.is_some() {
            return true;
        }
        let Some(chunk) = self.empty.pop() else {
            if !self.is_full {
                self.is_full = true;
                self.shared.full.fetch_add(1, Ordering::Relaxed);
            }
            return false;
        };
        self.is_full = false;
        self.chunk = Some(chunk);
        self.begun = monotonic();
        true
    }

    /// The chunk goes to the writer. There are as many places as chunks: it always fits.
    fn hand_over(&mut self) {
        if self.chunk.as_ref().is_some_and(|chunk| chunk.used > 0)
            && let Some(chunk) = self.chunk.take()
            && let Err(chunk) = self.filled.push(chunk)
        {
            self.chunk = Some(chunk);
        }
    }
}

/// The next datagram of a line into a chunk, which has room for it; whether there was one.
#[inline]
fn take(line: &mut Line, group: usize, chunk: &mut Chunk, count: &GroupCount) -> bool {
    let room = &mut chunk.bytes[chunk.used..];
    let (len, source, time, drops) = match line.receiver.recv_from(&mut room[blocks::PAYLOAD_AT..]) {
        Ok(Some((datagram, source))) => {
            // The kernel stamps every one; if it ever does not, it came after the one before.
            let time = datagram.stamp.kernel_ns.map_or(line.last, |ns| ns.get());
            (datagram.bytes.len(), source, time, datagram.drops)
        }
        Ok(None) => {
            line.health.worked();
            return false;
        }
        Err(error) => {
            line.health.failed(&error);
            return false;
        }
    };
    line.health.worked();
    line.last = time;
    line.told += u64::from(drops);
    line.lost = line.lost.saturating_add(drops);
    let lost = std::mem::take(&mut line.lost);
    let arrived = Arrived {
        group,
        addresses: (source, line.group.address),
        time,
        len,
        lost,
    };
    chunk.note(&arrived, count);
    true
}

/// A datagram of the hook into a chunk, which has room for it.
#[inline]
fn put(hooked: &Hooked<'_>, group: SocketAddrV4, chunk: &mut Chunk, count: &GroupCount) {
    let len = hooked.payload.len();
    chunk.bytes[chunk.used + blocks::PAYLOAD_AT..][..len].copy_from_slice(hooked.payload);
    let arrived = Arrived {
        group: hooked.group,
        addresses: (hooked.source, group),
        time: hooked.time,
        len,
        lost: hooked.lost,
    };
    chunk.note(&arrived, count);
}

#[inline]
fn add(to: &AtomicU64, n: u64) {
    to.store(to.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

/// Lost, and told of by no datagram.
fn count_lost(count: &GroupCount, lost: u32) {
    add(&count.lost, lost.into());
}

/// A program at the hook of every interface of the plan, as far as it is wanted and can be; what is to be
/// said of them.
fn hooks(plan: &Plan, waiter: &mut Waiter) -> Result<(Vec<Hook>, Vec<String>), Failure> {
    let (mut hooks, mut said) = (Vec::new(), Vec::new());
    if plan.backend == Backend::Socket {
        return Ok((hooks, said));
    }
    for (at, group) in plan.groups.iter().enumerate() {
        let interface = &group.interface;
        if plan.groups[..at]
            .iter()
            .any(|other| other.interface == *interface)
        {
            continue;
        }
        match Hook::attach(interface, plan, waiter) {
            Ok(hook) => {
                said.push(hook.in_use(interface));
                hooks.push(hook);
            }
            Err(why) if plan.backend == Backend::Auto => {
                said.push(format!("receiving on {} by sockets: {why}", interface.name()));
            }
            Err(why) => return Err(Failure::system(format!("{why}; or leave --backend out"))),
        }
    }
    Ok((hooks, said))
}

/// Makes a chunk empty again.
pub(crate) fn give_back(queue: &mut Queue, mut chunk: Chunk) {
    chunk.clear();
    // There are as many places as chunks; at the end nobody takes it any more.
    let _ = queue.empty.push(chunk);
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use tickwire_runtime::alloc::{AllocationCount, count_allocations};
    use tickwire_runtime::interface::Interface;
    use tickwire_runtime::udp::MulticastSender;

    use super::*;

    #[test]
    fn receiving_allocates_nothing() {
        let [_, _, c, d] = std::process::id().to_be_bytes();
        let lo = Interface::loopback().expect("loopback");
        let groups = [1, 2].map(|n| {
            let address = SocketAddrV4::new(Ipv4Addr::new(239, 90 + n, c, d), 26_520);
            Group::new(address, lo.clone())
        });
        let senders = groups
            .clone()
            .map(|group| MulticastSender::open(group.address, &lo, 1).expect("a sender"));
        let plan = Plan {
            queue_bytes: 3 << 20,
            ..Plan::new(groups.to_vec())
        };
        let shared = Arc::new(Shared::new(2));
        let (mut intake, mut queue) =
            Intake::join(&plan, WaitStrategy::Poll, shared.clone()).expect("joined");
        let received = |shared: &Shared| {
            let count = |group: &GroupCount| group.packets.load(Ordering::Relaxed);
            shared.groups.iter().map(count).sum::<u64>()
        };
        let ((), count) = count_allocations(|| {
            for n in 0..2_000_u64 {
                senders[n as usize % 2].send(&[7; 1_200]).expect("sent");
                while received(&shared) <= n {
                    intake.turn();
                    if let Some(chunk) = queue.filled.pop() {
                        give_back(&mut queue, chunk);
                    }
                }
            }
        });
        assert_eq!(count, AllocationCount::default());
    }

    #[test]
    fn blocks_are_put_in_order_of_time() {
        let mut chunk = Chunk::new();
        for (n, time) in [3_u64, 1, 2, 1].into_iter().enumerate() {
            let from = chunk.used;
            chunk.bytes[from..from + 4].fill(n as u8);
            chunk.used += 4;
            chunk.frames.push(Frame {
                time,
                from: from as u32,
                len: 4,
                payload: 0,
                group: 0,
                lost: 0,
            });
        }
        chunk.sort(&mut Vec::new());
        assert_eq!(chunk.bytes(), [[1; 4], [3; 4], [2; 4], [0; 4]].concat());
        let places: Vec<_> = chunk
            .frames
            .iter()
            .map(|frame| (frame.time, frame.from))
            .collect();
        assert_eq!(places, [(1, 0), (1, 4), (2, 8), (3, 12)]);
    }
}
