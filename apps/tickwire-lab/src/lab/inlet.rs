//! The trader's side of a scenario whose two sides are threads of this process: market data by a socket or
//! from the driver's hook, orders by the kernel or past it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tickwire_console::failure::Failure;
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group};
use tickwire_kernelpath::delegate::{Delegate, Way};
use tickwire_kernelpath::{KernelReceiver, ReceiverConfig};
use tickwire_node::link::Entry;
use tickwire_node::settings::SendWay;
use tickwire_runtime::interface::Interface;
use tickwire_runtime::tcp::TcpStream;
use tickwire_runtime::udp::{MulticastConfig, MulticastReceiver, Stamping};
use tickwire_runtime::xdp::XdpMode;

use super::net::{Net, TRADER};
use super::paths::Path;
use super::quadra::link::Route;

/// How long one side waits for the other to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a group's datagrams come from.
pub(crate) enum Inlet {
    Socket(MulticastReceiver),
    Hook(Box<KernelReceiver>),
}

impl Inlet {
    /// The next datagram, if there is one: when it was in this process's hands (the counter), and its bytes.
    /// Never waits.
    #[inline]
    pub(crate) fn recv<'b>(&'b mut self, buffer: &'b mut [u8]) -> io::Result<Option<(u64, &'b [u8])>> {
        match self {
            Inlet::Socket(receiver) => {
                let datagram = receiver.recv(buffer)?;
                Ok(datagram.map(|datagram| (datagram.stamp.tsc, datagram.bytes)))
            }
            Inlet::Hook(receiver) => {
                let delivery = receiver.recv();
                Ok(delivery.map(|delivery| (delivery.stamp.tsc, delivery.payload)))
            }
        }
    }
}

/// Opens the trader's side: the feed first, then orders. On the thread that is at its end of the network.
pub(crate) fn open(path: Path, net: &Net, route: Route) -> Result<(Inlet, Entry), Failure> {
    let (feed, orders) = (route.feed, route.orders);
    let system = |e: &dyn std::fmt::Display| Failure::system(e.to_string());
    let interface = Interface::find(net.interface(TRADER)).map_err(|e| system(&e))?;
    let inlet = match path {
        Path::Socket => {
            let config = MulticastConfig::new(feed, interface).stamping(Stamping::Off);
            Inlet::Socket(MulticastReceiver::join(config).map_err(|e| system(&e))?)
        }
        Path::Xdp | Path::Delegated | Path::PreArmed => {
            let spec = FilterSpec {
                channels: vec![ChannelSpec {
                    framing: Framing::Any,
                    groups: vec![Group::new(feed.ip().octets(), feed.port())],
                    set: 0,
                }],
                guard: path.send() == SendWay::Delegated,
                ..FilterSpec::default()
            };
            let config = ReceiverConfig {
                mode: matches!(net, Net::Veth(_)).then_some(XdpMode::Generic),
                ..ReceiverConfig::default()
            };
            let receiver = KernelReceiver::open(spec, &interface, &config).map_err(|e| system(&e))?;
            Inlet::Hook(Box::new(receiver))
        }
    };
    let to = SocketAddr::from(orders);
    let past = |e: &dyn std::fmt::Display| {
        Failure::system(format!("orders cannot leave past the kernel to {to}: {e}"))
    };
    let way = match path.send() {
        SendWay::Kernel => None,
        // Before the connection: a program that comes to an interface may stop it for a moment.
        SendWay::Delegated => Some(Way::towards(to).map_err(|e| past(&e))?),
    };
    let stream = TcpStream::connect(to, PATIENCE).map_err(|e| system(&e))?;
    let entry = match way {
        None => Entry::by_kernel(stream),
        Some(way) => {
            let delegate = Delegate::new(way, &stream).map_err(|refused| past(&refused.why))?;
            Entry::past_kernel(stream, delegate)
        }
    };
    Ok((inlet, entry))
}
