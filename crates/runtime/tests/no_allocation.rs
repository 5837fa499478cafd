//! The hot path, a packet in and an order out, allocates nothing. Alone in its file: it brings the allocator
//! with the trap.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use tickwire_runtime::alloc::{AllocationCount, Allocator, count_allocations};
use tickwire_runtime::clock::Clock;
use tickwire_runtime::interface::Interface;
use tickwire_runtime::tcp::{TcpListener, TcpStream};
use tickwire_runtime::udp::{MulticastConfig, MulticastReceiver, MulticastSender, Stamping};
use tickwire_runtime::wait::{WaitStrategy, Waiter};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

#[test]
fn receiving_waiting_reading_the_clock_and_sending_allocate_nothing() {
    let lo = Interface::loopback().expect("lo exists");
    let mut listener = TcpListener::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let mut orders =
        TcpStream::connect(listener.local_addr().expect("bound"), Duration::from_secs(1)).expect("connected");
    let mut venue = listener.accept().expect("works").expect("a connection");
    let clock = Clock::calibrate();
    for (last, stamping, batch) in [
        (11, Stamping::Off, 1),
        (12, Stamping::Kernel, 1),
        (13, Stamping::OnDemand, 1),
        (14, Stamping::Off, 8),
        (15, Stamping::Kernel, 8),
    ] {
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 77, last), 26_499);
        let config = MulticastConfig {
            batch,
            ..MulticastConfig::new(group, lo.clone()).stamping(stamping)
        };
        let mut receiver = MulticastReceiver::join(config).expect("joined");
        let sender = MulticastSender::open(group, &lo, 1).expect("opened");
        for strategy in [WaitStrategy::Spin, WaitStrategy::Poll] {
            let mut waiter = Waiter::new(strategy);
            waiter.watch(&receiver);
            waiter.watch(&orders);
            let mut buf = [0; 2048];
            let (received, count) = count_allocations(|| {
                let mut received = 0;
                for _ in 0..50 {
                    assert!(receiver.recv(&mut buf).expect("works").is_none());
                    sender.send(&[1; 300]).expect("sent");
                    while !waiter.wait(1_000_000_000) {}
                    while let Some(datagram) = receiver.recv(&mut buf).expect("works") {
                        assert!(clock.nanos_at(datagram.stamp.tsc) <= clock.now());
                        received += datagram.bytes.len();
                    }
                    orders.send(&[2; 200]).expect("sent");
                    venue.recv(&mut buf).expect("works");
                    receiver.last_kernel_ns();
                }
                received
            });
            assert_eq!(
                (received, count),
                (50 * 300, AllocationCount::default()),
                "{stamping:?} {batch} {strategy:?}"
            );
        }
    }
}
