//! Multicast groups recorded: `tickwire record`.
//!
//! ```text
//! sockets, AF_XDP ─► Intake (kernel's stamps) ─► chunks of 1 MiB ─► Writer ─► FILE.pcapng ─► sync, zstd, index
//!                    receive thread               bounded queue      thread                    thread
//! ```
//! The kernel's receive time of every datagram, in nanoseconds, with its payload and its addresses; headers
//! of Ethernet, IPv4 and UDP are made of these and are not those of the wire. Each group is an interface of
//! the capture, so that losses stand by group: at the packet before which they were (`epb_dropcount`), and in
//! sum at the end of a file.
//!
//! When the disk is slow or full, chunks wait in the queue, then datagrams wait in the kernel's buffers, and
//! what these cannot hold is lost and counted by group; it goes on as soon as there is room. A process that
//! is killed leaves files that are whole up to the last chunk, at most 0.1 s and 1 MiB before.
//!
//! ```
//! use tickwire_record::{Folder, Group, Plan, record};
//! use tickwire_runtime::capture::CaptureReader;
//! use tickwire_runtime::interface::Interface;
//! use tickwire_runtime::signal::StopFlag;
//! use tickwire_runtime::udp::MulticastSender;
//!
//! let group = Group::new("239.255.80.1:26480".parse()?, Interface::loopback()?);
//! let sender = MulticastSender::open(group.address, &group.interface, 1)?;
//! let plan = Plan::new(vec![group]);
//! let path = std::env::temp_dir().join(format!("tickwire-record-{}", std::process::id()));
//! let folder = Folder::open(&path, "day", false, &plan)?;
//! let stop = StopFlag::new();
//! let (recorded, folder) = record(plan, folder, &stop, &mut |now| {
//!     if now.is_begun && now.packets == 0 {
//!         sender.send(b"a packet").expect("sent");
//!     }
//!     if now.packets > 0 {
//!         stop.stop();
//!     }
//! })?;
//! assert!(folder.finish().is_empty());
//! assert_eq!((recorded.groups[0].lost, recorded.files), (0, 1));
//!
//! let file = std::fs::read_dir(&path)?.find_map(|f| f.ok().filter(|f| f.path().extension() == Some("pcapng".as_ref())));
//! let mut reader = CaptureReader::open(file.expect("a file").path())?;
//! assert!(reader.next_packet()?.expect("one").bytes.ends_with(b"a packet"));
//! # std::fs::remove_dir_all(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tickwire_console::failure::Failure;
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::interface::Interface;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::wait::WaitStrategy;
use tickwire_venues::receiver::Backend;

mod args;
mod folder;
mod hook;
mod receive;
mod write;

pub use args::{RecordArgs, plan, run};
pub use folder::{Folder, IndexGroup, IndexLine, Writing};
pub use write::{Disk, FileSummary, GroupInFile};

/// Counts what the receive thread allocates.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

use receive::{Intake, Shared};
use write::{Progress, Writer};

/// How often the thread that watches looks.
const LOOK: Duration = Duration::from_millis(20);
/// How long a disk that takes nothing is tried at the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// A group that is recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Group and port.
    pub address: SocketAddrV4,
    /// Where it is joined.
    pub interface: Interface,
    /// The only sender that is heard; `None`: anybody.
    pub source: Option<Ipv4Addr>,
    /// What it carries, for people: `nasdaq 1 live a`. It may be empty.
    pub name: String,
}

impl Group {
    /// Of anybody, without a name.
    pub fn new(address: SocketAddrV4, interface: Interface) -> Group {
        Group {
            address,
            interface,
            source: None,
            name: String::new(),
        }
    }

    /// Its name as an interface of the capture.
    pub fn label(&self) -> String {
        let of = if self.name.is_empty() { "" } else { " " };
        format!("{} on {}{of}{}", self.address, self.interface.name(), self.name)
    }
}

/// What is recorded, and within which limits.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The groups, each an interface of the files, in this order.
    pub groups: Vec<Group>,
    /// Memory for what the disk has not taken yet, in bytes: whole MiB, 2 at the least.
    pub queue_bytes: usize,
    /// Receive buffer of each group that is asked of the kernel, in bytes.
    pub receive_buffer_bytes: u32,
    /// A file is begun when the next chunk would make this one longer, in bytes; 0: never.
    pub rotate_bytes: u64,
    /// A file is begun at every multiple of this time since 1970 (UTC), in nanoseconds; 0: never.
    pub rotate_ns: u64,
    /// Spinning gives each look a core; else the thread sleeps until there is something.
    pub wait: WaitStrategy,
    /// The core that the receive thread is pinned to.
    pub core: Option<usize>,
    /// How datagrams come.
    pub backend: Backend,
    /// How many receive queues of an interface are read by AF_XDP, from the first on; 0: all.
    pub xdp_queues: u32,
}

impl Plan {
    /// With 64 MiB of queue, 16 MiB of each receive buffer, files of 1 GiB, sockets, and a thread that
    /// sleeps.
    pub fn new(groups: Vec<Group>) -> Plan {
        Plan {
            groups,
            queue_bytes: 64 << 20,
            receive_buffer_bytes: 16 << 20,
            rotate_bytes: 1 << 30,
            rotate_ns: 0,
            wait: WaitStrategy::Poll,
            core: None,
            backend: Backend::Socket,
            xdp_queues: 0,
        }
    }
}

/// How a recording goes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Now {
    /// Every group is joined.
    pub is_begun: bool,
    /// Packets received, of all groups.
    pub packets: u64,
    /// Packets lost, of all groups.
    pub lost: u64,
    /// Bytes written.
    pub written: u64,
    /// The disk takes nothing at the moment.
    pub is_stuck: bool,
}

/// What was recorded of one group.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GroupTotal {
    /// Packets received.
    pub packets: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Packets that the kernel dropped for want of room, or that the disk did not take until the end.
    pub lost: u64,
}

/// What was recorded.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Recorded {
    /// By group, as in [`Plan::groups`].
    pub groups: Vec<GroupTotal>,
    /// Files finished.
    pub files: u64,
    /// Bytes written.
    pub bytes: u64,
    /// How often the queue was full: the kernel's buffers were all that was left.
    pub full: u64,
    /// Packets received that the disk did not take until the end, among those lost.
    pub unwritten: u64,
}

impl Recorded {
    /// Packets of all groups that are in the files.
    pub fn packets(&self) -> u64 {
        self.groups.iter().map(|group| group.packets).sum::<u64>() - self.unwritten
    }

    /// Packets of all groups that were lost.
    pub fn lost(&self) -> u64 {
        self.groups.iter().map(|group| group.lost).sum()
    }
}

/// Records until somebody says stop; what was recorded, and the disk back. `watch` is called some 50 times a
/// second, on this thread.
///
/// # Errors
/// A group that cannot be joined, a core that there is not, no threads. What the disk does is no error here:
/// it is counted.
pub fn record<D: Disk + 'static>(
    plan: Plan,
    disk: D,
    stop: &StopFlag,
    watch: &mut dyn FnMut(Now),
) -> Result<(Recorded, D), Failure> {
    let plan = Arc::new(plan);
    let shared = Arc::new(Shared::new(plan.groups.len()));
    let progress = Arc::new(Progress::default());
    let (intake, queue) = Intake::join(&plan, plan.wait, shared.clone())?;
    for warning in intake.warnings() {
        tickwire_console::warn(format_args!("{warning}"));
    }
    for said in intake.in_use() {
        tickwire_console::note(format_args!("{said}"));
    }
    let no_thread = |e| Failure::system(format!("cannot make a thread: {e}"));
    let writer = Writer::new(plan.clone(), disk, progress.clone());
    let of_writer = shared.clone();
    let writer = tickwire_runtime::affinity::beside("record-write", move || writer.run(queue, &of_writer))
        .map_err(no_thread)?;
    let cores = Cores::count();
    let core = plan.core;
    let receiver = tickwire_runtime::affinity::beside("record-receive", move || {
        if let Some(core) = core {
            cores.pin(core).map_err(|e| Failure::config(e.to_string()))?;
        }
        intake.run();
        Ok(())
    })
    .map_err(no_thread)?;
    let now = |is_begun: bool| Now {
        is_begun,
        packets: sum(&shared, |group| &group.packets),
        lost: sum(&shared, |group| &group.lost),
        written: progress.bytes.load(Ordering::Relaxed),
        is_stuck: progress.is_stuck.load(Ordering::Relaxed),
    };
    while !stop.is_set() && !receiver.is_finished() && !writer.is_finished() {
        watch(now(true));
        std::thread::sleep(LOOK);
    }
    shared.is_ending.store(true, Ordering::Release);
    let received = receiver.join();
    let ended = Instant::now();
    while !writer.is_finished() {
        if ended.elapsed() > PATIENCE && progress.is_stuck.load(Ordering::Relaxed) {
            progress.gives_up.store(true, Ordering::Relaxed);
        }
        std::thread::sleep(LOOK);
    }
    let died = |_| Failure::system("a thread of the recorder ended early; what it said is above");
    let disk = writer.join().map_err(died)?;
    received.map_err(died)??;
    let unwritten = sum(&shared, |group| &group.unwritten);
    let groups = shared.groups.iter().map(|group| GroupTotal {
        packets: group.packets.load(Ordering::Relaxed),
        bytes: group.bytes.load(Ordering::Relaxed),
        lost: group.lost.load(Ordering::Relaxed) + group.unwritten.load(Ordering::Relaxed),
    });
    let recorded = Recorded {
        groups: groups.collect(),
        files: progress.files.load(Ordering::Relaxed),
        bytes: progress.bytes.load(Ordering::Relaxed),
        full: shared.full.load(Ordering::Relaxed),
        unwritten,
    };
    Ok((recorded, disk))
}

fn sum(shared: &Shared, of: impl Fn(&receive::GroupCount) -> &std::sync::atomic::AtomicU64) -> u64 {
    shared
        .groups
        .iter()
        .map(|group| of(group).load(Ordering::Relaxed))
        .sum()
}
