//! The bare floor of the host: a thread that answers each datagram with the bytes of an order and does
//! nothing else.

use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tickwire_console::failure::Failure;
use tickwire_market::Symbol;
use tickwire_player::single::{OrderPort, OrdersAre};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::host::run_delay_ns;
use tickwire_runtime::interface::Interface;
use tickwire_runtime::tcp::TcpStream;
use tickwire_runtime::udp::{
    DATAGRAM_BYTES_MAX, MulticastConfig, MulticastReceiver, MulticastSender, Stamping,
};

use crate::lab::net::{EXCHANGE, Net, TRADER};

/// The bare floor of the host.
pub(super) struct BareHost {
    pub(super) port: OrderPort,
    pub(super) sender: MulticastSender,
    is_awake: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    /// How long its thread had no core, from its begin to its end, nanoseconds; [`NOT_COUNTED`] before that,
    /// and where the kernel does not count it.
    waited_ns: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// There is no such figure.
const NOT_COUNTED: u64 = u64::MAX;

impl BareHost {
    /// Its thread, at the trader's end of the network, which the calling thread comes back from.
    pub(super) fn start(
        net: &Net,
        group: SocketAddrV4,
        (order_len, is_stamped): (usize, bool),
        core: Option<usize>,
    ) -> Result<BareHost, Failure> {
        let system = |e: tickwire_runtime::NetError| Failure::system(e.to_string());
        let any = SocketAddrV4::new(net.address(EXCHANGE), 0);
        let found = |end: usize| Interface::find(net.interface(end)).map_err(system);
        net.enter(EXCHANGE)?;
        let mut port = OrderPort::listen(any, OrdersAre::Bytes, [Symbol::EMPTY; 2])?;
        if is_stamped {
            port = port.stamp();
        }
        let sender = MulticastSender::open(group, &found(EXCHANGE)?, 1).map_err(system)?;
        let address: SocketAddr = port.address()?;
        net.enter(TRADER)?;
        let there = || -> Result<_, Failure> {
            let stream = TcpStream::connect(address, Duration::from_secs(5)).map_err(system)?;
            let wanted = MulticastConfig::new(group, found(TRADER)?).stamping(Stamping::Off);
            Ok((stream, MulticastReceiver::join(wanted).map_err(system)?))
        };
        let opened = there();
        net.enter(EXCHANGE)?;
        let (stream, receiver) = opened?;
        let clock = Clock::calibrate();
        while !port.is_ready(&clock)? {
            std::hint::spin_loop();
        }
        let (is_awake, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let order = vec![b'F'; order_len.max(1)];
        let waited_ns = Arc::new(AtomicU64::new(NOT_COUNTED));
        let thread = {
            let (is_awake, is_over) = (Arc::clone(&is_awake), Arc::clone(&is_over));
            let waited_ns = Arc::clone(&waited_ns);
            std::thread::Builder::new()
                .name("floor".into())
                .spawn(move || {
                    if let Some(core) = core {
                        let _ = Cores::count().pin(core);
                    }
                    let before = run_delay_ns();
                    answer(receiver, stream, &order, &is_awake, &is_over);
                    if let Some((before, now)) = before.zip(run_delay_ns()) {
                        waited_ns.store(now.saturating_sub(before), Ordering::Release);
                    }
                })
                .map_err(|e| Failure::system(format!("no thread for the floor: {e}")))?
        };
        Ok(BareHost {
            port,
            sender,
            is_awake,
            is_over,
            waited_ns,
            thread: Some(thread),
        })
    }

    pub(super) fn wake(&self, awake: bool) {
        self.is_awake.store(awake, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Its thread ends; how long it had no core.
    pub(super) fn end(&mut self) -> Option<(String, u64)> {
        self.is_over.store(true, Ordering::Release);
        self.wake(false);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let waited = self.waited_ns.load(Ordering::Acquire);
        (waited != NOT_COUNTED).then(|| ("floor".to_owned(), waited))
    }
}

impl Drop for BareHost {
    fn drop(&mut self) {
        self.end();
    }
}

/// A datagram in, an order's bytes out, nothing else.
fn answer(
    mut receiver: MulticastReceiver,
    mut stream: TcpStream,
    order: &[u8],
    is_awake: &AtomicBool,
    is_over: &AtomicBool,
) {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        match receiver.recv(&mut buffer) {
            Ok(Some(_)) => {
                if stream.send(order).is_err() {
                    return;
                }
            }
            Ok(None) if is_awake.load(Ordering::Acquire) => {}
            Ok(None) if is_over.load(Ordering::Acquire) => return,
            Ok(None) => std::thread::park(),
            Err(_) => return,
        }
    }
}
