//! The way out of an interface towards a peer: ring, next hop, guard.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tickwire_runtime::interface::Interface;
use tickwire_runtime::sent::SendStamps;
use tickwire_runtime::xdp::delegate::{PacketSocket, hardware_address, neighbour, next_hop};
use tickwire_runtime::xdp::{XdpError, XdpSocket};

use super::{DelegateError, Guard};

/// Frames of a ring: more than a burst.
const FRAMES: u32 = 256;
/// Frames that one system call starts. Linux `TX_BATCH_SIZE`.
const STARTED: u32 = 32;
/// How long a next hop is waited for that the kernel has to ask for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where frames go.
#[derive(Debug)]
enum Port {
    /// A ring of the interface.
    Ring(Box<XdpSocket>),
    /// Every queue of the interface has a ring already, as when market data is received there by AF_XDP: a
    /// system call for each frame. The second one takes trains of segments, one call for each, until the
    /// interface has refused one.
    Packet(PacketSocket, Option<PacketSocket>),
}

/// The way to a peer. It is made before the connection, as a program that comes to an interface may stop a
/// network card for a moment, and serves one connection after the other.
#[derive(Debug)]
pub struct Way {
    interface: Interface,
    hardware: [u8; 6],
    hop: Ipv4Addr,
    neighbour: Option<[u8; 6]>,
    port: Port,
    guard: Arc<Guard>,
    /// Frames put on the way one by one since they are stamped, modulo 2^32; `None` where they are not, or
    /// their numbers are not sure any more.
    stamped: Option<u32>,
}

impl Way {
    /// Finds the way, attaches the guard to its interface if this process has none there, and opens a ring.
    ///
    /// # Errors
    /// [`DelegateError`], in words with the remedy: rights, another program at the interface, no route, no
    /// Ethernet.
    pub fn towards(peer: SocketAddr) -> Result<Way, DelegateError> {
        let system = |what| move |error| DelegateError::System(what, error);
        let IpAddr::V4(to) = peer.ip() else {
            return Err(DelegateError::NotIpv4(peer));
        };
        let direct = Interface::towards(to).filter(Interface::is_up);
        let direct = direct.ok_or(DelegateError::NoRoute(to))?;
        let foreign = |interface: &str| DelegateError::NotEthernet {
            to,
            interface: interface.to_owned(),
        };
        let hardware = hardware_address(direct.name()).map_err(system("ask for the interface's address"))?;
        let hardware = hardware.ok_or_else(|| foreign(direct.name()))?;
        let hop = next_hop(to).map_err(system("read the routing table"))?;
        let (name, hop) = hop.ok_or(DelegateError::NoRoute(to))?;
        if name != direct.name() {
            return Err(foreign(&name));
        }
        let guard = Guard::at(&direct)?;
        let port = open(&direct)?;
        let mut way = Way {
            interface: direct,
            hardware,
            hop,
            neighbour: None,
            port,
            guard,
            stamped: None,
        };
        way.resolve().map_err(system("ask for the next hop's address"))?;
        Ok(way)
    }

    /// Has the kernel ask for the next hop if it does not know it, and waits a little.
    fn resolve(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.neighbour = neighbour(self.interface.name(), self.hop)?;
            if self.neighbour.is_some() || Instant::now() >= deadline {
                return Ok(());
            }
            // Anything that is sent there has it asked for; the discard service takes it.
            let probe = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            let _ = probe.send_to(&[], SocketAddrV4::new(self.hop, 9));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(super) fn hardware(&self) -> [u8; 6] {
        self.hardware
    }

    pub(super) fn hop(&self) -> Ipv4Addr {
        self.hop
    }

    pub(super) fn neighbour(&self) -> [u8; 6] {
        self.neighbour.unwrap_or_default()
    }

    pub(super) fn set_neighbour(&mut self, hardware: Option<[u8; 6]>) {
        self.neighbour = hardware;
    }

    pub(super) fn is_resolved(&self) -> bool {
        self.neighbour.is_some()
    }

    pub(super) fn guard(&self) -> Arc<Guard> {
        Arc::clone(&self.guard)
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        self.interface.name()
    }

    pub(super) fn interface_index(&self) -> u32 {
        self.interface.index()
    }

    /// Puts a frame on the way; `false` if there is no room.
    #[inline]
    pub(super) fn put(&mut self, frame: &[u8]) -> bool {
        let is_put = match &mut self.port {
            Port::Ring(ring) => ring.send(frame),
            Port::Packet(socket, _) => socket.send(frame).unwrap_or(false),
        };
        // Whether the kernel has numbered a frame that it did not take is not known.
        self.stamped = self
            .stamped
            .filter(|_| is_put)
            .map(|frames| frames.wrapping_add(1));
        is_put
    }

    /// The stamps of frames that leave one by one from now on. A ring has none: of frames in it cards alone
    /// could tell, and are not asked.
    pub(super) fn stamps(&mut self) -> io::Result<Option<SendStamps>> {
        let Port::Packet(socket, _) = &self.port else {
            return Ok(None);
        };
        let stamps = SendStamps::enable(socket)?;
        self.stamped = Some(0);
        Ok(Some(stamps))
    }

    #[inline]
    pub(super) fn stamped(&self) -> Option<u32> {
        self.stamped
    }

    /// Whether a train of segments can leave as one frame.
    #[inline]
    pub(super) fn takes_trains(&self) -> bool {
        matches!(self.port, Port::Packet(_, Some(_)))
    }

    /// Sends a train of segments, see [`PacketSocket::send_train`]; `false` if nothing of it has left. It is
    /// not tried again then.
    #[inline]
    pub(super) fn put_train(&mut self, frame: &[u8], headers: usize, segment: usize) -> bool {
        let Port::Packet(_, trains) = &mut self.port else {
            return false;
        };
        let has_left = trains
            .as_ref()
            .is_some_and(|socket| socket.send_train(frame, headers, segment).unwrap_or(false));
        if !has_left {
            *trains = None;
        }
        has_left
    }

    /// Starts what was put on the way; `false` if the interface does not take all of it.
    #[inline]
    pub(super) fn kick(&mut self, frames: u32) -> bool {
        let Port::Ring(ring) = &mut self.port else {
            return true;
        };
        for _ in 0..frames / STARTED + 4 {
            match ring.flush() {
                Ok(()) => return true,
                Err(error) if is_busy(&error) => {}
                Err(_) => return false,
            }
        }
        false
    }

    /// How frames leave, for a line in a log: `by AF_XDP, queue 0, of veth0`.
    pub fn in_use(&self) -> String {
        let by = match &self.port {
            Port::Ring(ring) => {
                let copy = if ring.is_zero_copy() { "without" } else { "with" };
                format!("by AF_XDP {copy} a copy, queue {},", ring.queue())
            }
            Port::Packet(..) => "by a packet socket, as every queue has an AF_XDP socket,".to_owned(),
        };
        format!("{by} of {}", self.interface.name())
    }
}

fn is_busy(error: &io::Error) -> bool {
    // EAGAIN: there is more, call again. EBUSY: the driver is busy. ENOBUFS: its queue is full.
    matches!(error.raw_os_error(), Some(11 | 16 | 105))
}

/// A ring of the last queue that has none: multicast is steered to the first ones.
fn open(interface: &Interface) -> Result<Port, DelegateError> {
    let at = (interface.name(), interface.index());
    for queue in (0..interface.receive_queues()).rev() {
        match XdpSocket::open_to_send(at, queue, FRAMES) {
            Ok(ring) => return Ok(Port::Ring(Box::new(ring))),
            Err(XdpError::Socket { source, .. }) if is_busy(&source) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let socket = PacketSocket::open(interface.index(), false)
        .map_err(|error| DelegateError::System("open a packet socket", error))?;
    // Not every kernel has it: segments leave one by one then.
    Ok(Port::Packet(
        socket,
        PacketSocket::open_for_trains(interface.index()).ok(),
    ))
}
