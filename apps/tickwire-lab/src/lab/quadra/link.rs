//! The sockets of a run: the exchange listens, the trader connects, on loopback or from one network namespace
//! to the other.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use tickwire_runtime::interface::Interface;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::tcp::{TcpListener, TcpStream};
use tickwire_runtime::udp::{MulticastConfig, MulticastReceiver, MulticastSender, Stamping};

use super::message::Transport;
use crate::lab::net::Net;
use tickwire_console::failure::Failure;

/// How long one side waits for the other to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the trader finds the exchange.
#[derive(Clone, Copy, Debug)]
pub(in crate::lab) struct Route {
    /// Orders go here.
    pub(in crate::lab) orders: SocketAddrV4,
    /// The feed comes from here, over TCP, or to this group.
    pub(in crate::lab) feed: SocketAddrV4,
    pub(in crate::lab) transport: Transport,
}

fn system(e: impl std::fmt::Display) -> Failure {
    Failure::system(e.to_string())
}

/// The exchange before a trader has come.
pub(in crate::lab) struct Listening {
    orders: TcpListener,
    feed: FeedListening,
    route: Route,
}

enum FeedListening {
    Tcp(TcpListener),
    Multicast(MulticastSender),
}

/// What the exchange sends its feed through.
pub(in crate::lab) enum FeedOut {
    Tcp(TcpStream),
    Multicast(MulticastSender),
}

impl FeedOut {
    #[inline]
    pub(in crate::lab) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            FeedOut::Tcp(stream) => stream.send(bytes),
            FeedOut::Multicast(sender) => sender.send(bytes),
        }
    }
}

impl Listening {
    /// Opens the exchange's side. Ports of 0 take free ones (of a group: the port of orders). On the thread
    /// that is at its end.
    pub(in crate::lab) fn open(
        net: &Net,
        transport: Transport,
        ports: (u16, u16),
        group: Ipv4Addr,
    ) -> Result<Listening, Failure> {
        let address = net.address(0);
        let bind = |port| TcpListener::bind(SocketAddr::from((address, port))).map_err(system);
        let local = |listener: &TcpListener| match listener.local_addr().map_err(system)? {
            SocketAddr::V4(at) => Ok(at),
            SocketAddr::V6(_) => Err(system("an IPv4 socket has an IPv6 address")),
        };
        let orders = bind(ports.0)?;
        let at = local(&orders)?;
        let (feed, feed_at) = match transport {
            Transport::Tcp => {
                let listener = bind(ports.1)?;
                let at = local(&listener)?;
                (FeedListening::Tcp(listener), at)
            }
            Transport::Multicast => {
                let port = if ports.1 == 0 { at.port() } else { ports.1 };
                let to = SocketAddrV4::new(group, port);
                let interface = Interface::find(net.interface(0)).map_err(system)?;
                let sender = MulticastSender::open(to, &interface, 1).map_err(system)?;
                (FeedListening::Multicast(sender), to)
            }
        };
        let route = Route {
            orders: at,
            feed: feed_at,
            transport,
        };
        Ok(Listening { orders, feed, route })
    }

    pub(in crate::lab) fn route(&self) -> Route {
        self.route
    }

    /// Waits for the trader, for some time or until the end: it connects its orders last, when it is ready to
    /// receive.
    pub(in crate::lab) fn accept(
        mut self,
        patience: Option<Duration>,
        stop: &StopFlag,
    ) -> Result<(FeedOut, TcpStream), Failure> {
        let deadline = patience.map(|p| Instant::now() + p);
        let wait = |listener: &mut TcpListener| loop {
            if let Some(stream) = listener.accept().map_err(system)? {
                return Ok(stream);
            }
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return Err(Failure::peer_lost(format!(
                    "no trader came to {}",
                    self.route.orders
                )));
            }
            if stop.is_set() {
                return Err(Failure::interrupted("ended before a trader came"));
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let feed = match self.feed {
            FeedListening::Tcp(mut listener) => FeedOut::Tcp(wait(&mut listener)?),
            FeedListening::Multicast(sender) => FeedOut::Multicast(sender),
        };
        let orders = wait(&mut self.orders)?;
        Ok((feed, orders))
    }
}

/// What the trader receives its feed from.
pub(in crate::lab) enum FeedIn {
    Tcp(TcpStream),
    Multicast(MulticastReceiver),
}

/// Opens the trader's side: the feed first, then orders. On the thread that is at its end.
pub(in crate::lab) fn connect(net: &Net, route: &Route) -> Result<(FeedIn, TcpStream), Failure> {
    let tcp = |to: SocketAddrV4| TcpStream::connect(to.into(), PATIENCE).map_err(system);
    let feed = match route.transport {
        Transport::Tcp => FeedIn::Tcp(tcp(route.feed)?),
        Transport::Multicast => {
            let interface = Interface::find(net.interface(1)).map_err(system)?;
            let config = MulticastConfig::new(route.feed, interface).stamping(Stamping::Off);
            FeedIn::Multicast(MulticastReceiver::join(config).map_err(system)?)
        }
    };
    Ok((feed, tcp(route.orders)?))
}

/// How long an exchange that a run starts waits for its trader.
pub(in crate::lab) const COMING: Option<Duration> = Some(PATIENCE);
