//! Sockets on the loopback interface: what the application relies on, and the sentences users get.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use tickwire_runtime::NetError;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::interface::Interface;
use tickwire_runtime::tcp::{Received, TcpListener, TcpStream, UNSENT_BYTES_MAX};
use tickwire_runtime::udp::{
    BATCH_MAX, Datagram, MulticastConfig, MulticastReceiver, MulticastSender, Stamping, UdpEndpoint,
};
use tickwire_runtime::wait::{WaitStrategy, Waiter};

fn loopback() -> Interface {
    Interface::loopback().expect("lo exists")
}

/// A group of its own for each test (tests run at the same time), on a port the system had free a moment ago.
fn group(last: u8) -> SocketAddrV4 {
    let endpoint = UdpEndpoint::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    SocketAddrV4::new(
        Ipv4Addr::new(239, 255, 77, last),
        endpoint.local_addr().expect("bound").port(),
    )
}

fn join(group: SocketAddrV4, stamping: Stamping) -> MulticastReceiver {
    MulticastReceiver::join(MulticastConfig::new(group, loopback()).stamping(stamping)).expect("joined")
}

fn send_to(group: SocketAddrV4) -> MulticastSender {
    MulticastSender::open(group, &loopback(), 1).expect("opened")
}

/// The next datagram, waited for up to a second.
fn next<'b>(receiver: &'b mut MulticastReceiver, buf: &'b mut [u8]) -> Option<Datagram<'b>> {
    if !receiver.holds_more() {
        let mut waiter = Waiter::new(WaitStrategy::Poll);
        waiter.watch(receiver);
        waiter.wait(1_000_000_000);
    }
    receiver.recv(buf).expect("receive works")
}

#[test]
fn multicast_arrives_with_the_kernels_time_and_the_counters_time_close_together() {
    let group = group(1);
    let clock = Clock::calibrate();
    let mut receiver = join(group, Stamping::Kernel);
    let mut buf = [0; 2048];
    assert!(receiver.recv(&mut buf).expect("nothing yet").is_none());
    let before = clock.now();
    send_to(group).send(b"hello").expect("sent");
    let datagram = next(&mut receiver, &mut buf).expect("arrived");
    let after = clock.now();
    assert_eq!(
        (datagram.bytes, datagram.drops, datagram.truncated),
        (&b"hello"[..], 0, false)
    );
    let kernel_ns = datagram.stamp.kernel_ns.expect("asked for").get();
    let received = clock.nanos_at(datagram.stamp.tsc);
    assert!(before <= received && received <= after);
    // 20 µs: the clock's own error, not the network's.
    assert!(
        kernel_ns + 20_000 >= before.0 && kernel_ns <= received.0 + 20_000,
        "{before:?} {kernel_ns} {received:?}"
    );
}

#[test]
fn the_kernels_time_can_be_asked_for_after_the_fact() {
    let group = group(10);
    let clock = Clock::calibrate();
    let mut receiver = join(group, Stamping::OnDemand);
    let sender = send_to(group);
    let mut buf = [0; 64];
    let mut previous = 0;
    for round in 0..3 {
        let before = clock.now();
        sender.send(&[round]).expect("sent");
        let datagram = next(&mut receiver, &mut buf).expect("arrived");
        assert_eq!((datagram.bytes, datagram.stamp.kernel_ns), (&[round][..], None));
        let received = clock.nanos_at(datagram.stamp.tsc);
        let kernel_ns = receiver.last_kernel_ns().expect("turned on when joining").get();
        // 20 µs: the clock's own error, not the network's.
        assert!(
            kernel_ns + 20_000 >= before.0 && kernel_ns <= received.0 + 20_000,
            "{before:?} {kernel_ns} {received:?}"
        );
        assert!(kernel_ns > previous);
        previous = kernel_ns;
    }
    assert_eq!(join(group, Stamping::Off).last_kernel_ns(), None);
}

#[test]
fn plain_receiving_gives_the_same_bytes_without_kernel_time() {
    let group = group(2);
    let mut receiver = join(group, Stamping::Off);
    send_to(group).send(&[7; 1400]).expect("sent");
    let mut buf = [0; 2048];
    let datagram = next(&mut receiver, &mut buf).expect("arrived");
    assert_eq!(
        (datagram.bytes, datagram.stamp.kernel_ns, datagram.truncated),
        (&[7; 1400][..], None, false)
    );
}

#[test]
fn a_datagram_longer_than_the_buffer_says_so_in_both_modes() {
    let group = group(3);
    let mut receivers = [join(group, Stamping::Off), join(group, Stamping::Kernel)];
    send_to(group).send(&[9; 100]).expect("sent");
    for receiver in &mut receivers {
        let mut buf = [0; 60];
        let datagram = next(receiver, &mut buf).expect("arrived at every member");
        assert_eq!((datagram.bytes, datagram.truncated), (&[9; 60][..], true));
    }
}

#[test]
fn two_groups_on_one_port_do_not_hear_each_other() {
    let a = group(4);
    let b = SocketAddrV4::new(Ipv4Addr::new(239, 255, 77, 5), a.port());
    let (mut line_a, mut line_b) = (join(a, Stamping::Kernel), join(b, Stamping::Kernel));
    send_to(a).send(b"A").expect("sent");
    send_to(b).send(b"B").expect("sent");
    let mut buf = [0; 16];
    assert_eq!(next(&mut line_a, &mut buf).expect("arrived").bytes, b"A");
    assert!(line_a.recv(&mut buf).expect("works").is_none());
    assert_eq!(next(&mut line_b, &mut buf).expect("arrived").bytes, b"B");
    assert!(line_b.recv(&mut buf).expect("works").is_none());
}

#[test]
fn only_the_chosen_source_is_heard() {
    let group = group(6);
    let with_source = |source| {
        MulticastReceiver::join(MulticastConfig {
            source: Some(source),
            ..MulticastConfig::new(group, loopback())
        })
        .expect("joined")
    };
    let mut from_us = with_source(Ipv4Addr::LOCALHOST);
    let mut from_elsewhere = with_source(Ipv4Addr::new(127, 9, 9, 9));
    send_to(group).send(b"x").expect("sent");
    let mut buf = [0; 16];
    assert_eq!(next(&mut from_us, &mut buf).expect("arrived").bytes, b"x");
    assert!(from_elsewhere.recv(&mut buf).expect("works").is_none());
}

#[test]
fn datagrams_of_one_call_come_one_by_one_as_those_of_many_do() {
    let group = group(16);
    for stamping in [Stamping::Off, Stamping::Kernel, Stamping::OnDemand] {
        let mut receivers = [1, 3, BATCH_MAX, u32::MAX].map(|batch| {
            MulticastReceiver::join(MulticastConfig {
                batch,
                ..MulticastConfig::new(group, loopback()).stamping(stamping)
            })
            .expect("joined")
        });
        let sender = send_to(group);
        let sent: Vec<Vec<u8>> = (0..70_u8).map(|n| vec![n; usize::from(n) * 20]).collect();
        sent.iter().for_each(|bytes| sender.send(bytes).expect("sent"));
        for receiver in &mut receivers {
            let (mut buf, mut heard, mut before) = ([0; 2048], Vec::new(), 0);
            while heard.len() < sent.len() {
                let Some(datagram) = next(receiver, &mut buf) else {
                    continue;
                };
                assert_eq!((datagram.drops, datagram.truncated), (0, false));
                let kernel_ns = datagram.stamp.kernel_ns.map_or(0, |ns| ns.get());
                assert_eq!(kernel_ns > 0, stamping == Stamping::Kernel);
                assert!(kernel_ns >= before && datagram.stamp.tsc > 0);
                before = kernel_ns;
                heard.push(datagram.bytes.to_vec());
            }
            assert_eq!(heard, sent, "{stamping:?}");
            assert!(!receiver.holds_more());
        }
    }
}

#[test]
fn datagrams_the_kernel_dropped_are_counted_once() {
    [1, 16].into_iter().for_each(drops_are_counted_once);
}

fn drops_are_counted_once(batch: u32) {
    let group = group(7);
    let config = MulticastConfig {
        receive_buffer_bytes: 4096,
        batch,
        ..MulticastConfig::new(group, loopback())
    };
    let mut receiver = MulticastReceiver::join(config).expect("joined");
    let sender = send_to(group);
    (0..200).for_each(|_| sender.send(&[1; 500]).expect("sent"));
    let told_before = receiver.kernel_drops();
    assert!(told_before > 0);
    let (mut received, mut dropped) = (0, 0);
    let mut buf = [0; 2048];
    while let Some(datagram) = receiver.recv(&mut buf).expect("works") {
        received += 1;
        dropped += datagram.drops;
    }
    // A datagram carries the count as it was when it was queued: the next one tells about drops after that.
    sender.send(&[1; 500]).expect("sent");
    dropped += next(&mut receiver, &mut buf).expect("arrived").drops;
    assert_eq!((received + dropped, dropped), (200, told_before));
}

#[test]
fn a_receive_buffer_smaller_than_wanted_is_reported_with_the_remedy() {
    let wanted = 1 << 30;
    let config = MulticastConfig {
        receive_buffer_bytes: wanted,
        ..MulticastConfig::new(group(8), loopback())
    };
    let receiver = MulticastReceiver::join(config).expect("joined");
    match receiver.buffer_warning() {
        Some(text) => assert!(text.contains("net.core.rmem_max=1073741824"), "{text}"),
        None => assert!(receiver.receive_buffer_bytes() / 2 >= wanted),
    }
}

#[test]
fn unicast_requests_and_replies_find_each_other() {
    let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let mut server = UdpEndpoint::bind(any).expect("bound");
    let mut client = UdpEndpoint::bind(any).expect("bound");
    let mut buf = [0; 64];
    assert!(
        client
            .send_to(b"request", server.local_addr().expect("bound"))
            .expect("sent")
    );
    let (request, from) = server
        .recv_from(&mut buf)
        .expect("works")
        .expect("loopback delivers at once");
    assert_eq!(request.bytes, b"request");
    assert!(server.send_to(b"reply", from).expect("sent"));
    let (reply, _) = client
        .recv_from(&mut buf)
        .expect("works")
        .expect("loopback delivers at once");
    assert_eq!(reply.bytes, b"reply");
}

#[test]
fn every_network_mistake_gets_its_own_sentence_with_what_to_do() {
    let says = |error: NetError, words: &[&str]| {
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let unicast = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4000);
    let error = MulticastReceiver::join(MulticastConfig::new(unicast, loopback())).expect_err("not a group");
    says(error, &["10.0.0.1 is not a multicast group", "224.0.0.0"]);
    says(
        MulticastSender::open(unicast, &loopback(), 1).expect_err("not a group"),
        &["is not a multicast group"],
    );

    let taken = UdpEndpoint::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("bound");
    let SocketAddr::V4(address) = taken.local_addr().expect("bound") else {
        panic!("IPv4")
    };
    let port = address.port().to_string();
    says(
        UdpEndpoint::bind(address).expect_err("taken"),
        &["UDP port", &port, "already in use", "choose another port"],
    );
    let foreign = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 1), 4000);
    says(
        UdpEndpoint::bind(foreign).expect_err("not ours"),
        &["203.0.113.1:4000 is not an address of this machine"],
    );

    let listener = TcpListener::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let address = listener.local_addr().expect("bound");
    says(
        TcpListener::bind(address).expect_err("taken"),
        &["TCP port", "already in use"],
    );
    drop(listener);
    let second = Duration::from_secs(1);
    says(
        TcpStream::connect(address, second).expect_err("closed"),
        &["nothing listens on 127.0.0.1", "start the server"],
    );
}

fn connected() -> (TcpStream, TcpStream) {
    let mut listener = TcpListener::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let address = listener.local_addr().expect("bound");
    assert!(listener.accept().expect("works").is_none());
    let client = TcpStream::connect(address, Duration::from_secs(1)).expect("connected");
    let server = listener.accept().expect("works").expect("a connection");
    (client, server)
}

/// Receives until `len` bytes came, or none for a second.
fn receive(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let (mut all, mut buf, deadline) = (
        Vec::new(),
        vec![0; 65_536],
        Instant::now() + Duration::from_secs(60),
    );
    while all.len() < len && Instant::now() < deadline {
        match stream.recv(&mut buf).expect("works") {
            Received::Bytes(bytes) => all.extend_from_slice(bytes),
            Received::Nothing => std::thread::yield_now(),
            Received::Closed => break,
        }
    }
    all
}

#[test]
fn bytes_cross_a_connection_both_ways_and_an_end_is_seen() {
    let (mut client, mut server) = connected();
    assert_eq!(server.recv(&mut [0; 8]).expect("works"), Received::Nothing);
    client.send(b"order").expect("sent");
    assert_eq!(receive(&mut server, 5), b"order");
    server.send(b"report").expect("sent");
    assert_eq!(receive(&mut client, 6), b"report");
    client.finish();
    let mut waiter = Waiter::new(WaitStrategy::Poll);
    let watch = waiter.watch(&server);
    assert!(waiter.wait(1_000_000_000) && waiter.is_ready(watch));
    assert_eq!(server.recv(&mut [0; 8]).expect("works"), Received::Closed);
}

#[test]
fn what_the_kernel_does_not_take_is_kept_in_order_up_to_a_bound_and_sent_later() {
    let (mut client, mut server) = connected();
    let chunk: Vec<u8> = (0..=255).cycle().take(60_000).collect();
    let mut sent = 0;
    let refused = loop {
        match client.send(&chunk) {
            Ok(()) => sent += chunk.len(),
            Err(error) => break error,
        }
        assert!(
            sent < 1 << 28,
            "a connection nobody reads from takes no end of bytes"
        );
    };
    assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
    assert!(refused.to_string().contains("has stopped reading"), "{refused}");
    assert!(client.has_unsent() && sent > UNSENT_BYTES_MAX / 2);
    let mut all = Vec::new();
    while all.len() < sent {
        let more = receive(&mut server, 1);
        assert!(!more.is_empty(), "{} of {sent} bytes came", all.len());
        all.extend(more);
        client.flush().expect("works");
    }
    assert!(!client.has_unsent());
    assert!(all.chunks(chunk.len()).all(|c| c == chunk));
}

#[test]
fn a_waiter_sleeps_until_the_time_or_the_first_input_and_says_which_socket() {
    let group = group(9);
    let receiver = join(group, Stamping::Kernel);
    let silent = UdpEndpoint::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("bound");
    let mut waiter = Waiter::new(WaitStrategy::Poll);
    let (quiet, busy) = (waiter.watch(&silent), waiter.watch(&receiver));
    let started = Instant::now();
    assert!(!waiter.wait(3_000_000));
    assert!(started.elapsed() >= Duration::from_millis(3));
    send_to(group).send(b"x").expect("sent");
    assert!(waiter.wait(5_000_000_000));
    assert!(waiter.is_ready(busy) && !waiter.is_ready(quiet));
    waiter.forget(busy);
    assert!(!waiter.wait(0));
    assert_eq!(waiter.watch(&receiver), busy, "a forgotten place is used again");
}

#[test]
fn a_spinning_waiter_never_sleeps_and_says_look_everywhere() {
    let silent = UdpEndpoint::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("bound");
    let mut waiter = Waiter::new(WaitStrategy::Spin);
    let watch = waiter.watch(&silent);
    let started = Instant::now();
    assert!(waiter.wait(3_600_000_000_000) && waiter.is_ready(watch));
    assert!(started.elapsed() < Duration::from_secs(600));
}
