//! Every error of every call on the sockets of a published channel, in one process.

use tickwire_exchange::Market;
use tickwire_runtime::faults::{self, Call, ERRNO_MAX};
use tickwire_runtime::wait::WaitStrategy;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use super::*;
use crate::settings::MarketConfig;
use crate::strangers;
use crate::venue::{market_of, troubles_of};

fn config(live: [&str; 2], more: &str) -> MarketConfig {
    let [a, b] = live;
    let text = format!(
        "[[feed]]\nvenue = \"nasdaq\"\ninterface = \"lo\"\n[[feed.channel]]\nname = \"1\"\n\
         live = {{ a = \"{a}\", b = \"{b}\" }}\n{more}\n\
         [order_entry]\naddress = \"127.0.0.1:0\"\n[receiver]\nmax_instruments = 64\nmax_orders = 4096\nmax_levels = 4096\n\
         [exchange]\nsymbols = 4\nrate = 100000\nduration_s = 1.0\n"
    );
    MarketConfig::parse(&text).expect("a configuration")
}

/// A market, and the sockets of its channel.
fn opened(config: &MarketConfig, waiter: &mut Waiter) -> (Market, ChannelSockets) {
    let (market, published) = market_of(config, None).expect("a market");
    let ports = &published[0].ports;
    let sockets = ChannelSockets::open(0, ports, troubles_of(config), 1, 0, waiter).expect("opened");
    (market, sockets)
}

/// A SoupBinTCP login request, to which GLIMPSE answers: length, type, user, password, session, number.
fn login() -> Vec<u8> {
    [&[0, 47, b'L'][..], &[b' '; 46]].concat()
}

/// What errors came to: how many were injected, and how many of them are errors.
fn counted(counters: &Counters) -> [u64; 2] {
    let classes = [
        Counter::NetErrorsNetwork,
        Counter::NetErrorsPeer,
        Counter::NetErrorsResources,
        Counter::NetErrorsConfig,
    ];
    let sum = classes.into_iter().map(|class| counters.get(class)).sum();
    [counters.get(Counter::NetErrors), sum]
}

/// Errors that are none: there was nothing to do.
fn is_error(errno: &i32) -> bool {
    Trouble::of_number(*errno) != Trouble::WouldBlock
}

/// Has the next turn look for new clients.
fn look_now(published_channel: &mut ChannelSockets) {
    for server in &mut published_channel.servers {
        server.next_look = Nanos::ZERO;
    }
}

fn errors() -> u64 {
    (1..=ERRNO_MAX).filter(is_error).count() as u64
}

/// Both lines, the socket of requests and the listener go on after every error of every call, and count each
/// of them.
#[test]
fn no_error_of_any_call_ends_what_the_exchange_publishes() {
    let config = config(
        ["239.192.91.1:26911", "239.192.91.2:26912"],
        "requests = \"127.0.0.1:0\"\nsnapshot_server = \"127.0.0.1:0\"",
    );
    let clock = Clock::calibrate_for(Duration::from_millis(1));
    let mut waiter = Waiter::new(WaitStrategy::Poll);
    let (mut market, mut published_channel) = opened(&config, &mut waiter);
    let mut departures = Departures::default();
    let mut buffer = vec![0; 1 << 16];
    let mut now = Nanos(1_767_623_400 * Nanos::SECOND);
    market.on_time(now);
    for errno in 1..=ERRNO_MAX {
        faults::inject(Call::Send, errno, 2);
        let begun = std::time::Instant::now();
        while !published_channel.publish(now, market.exchange_mut(0), &mut departures) {
            now = now.after(Nanos::MILLI);
            market.on_time(now);
            assert!(begun.elapsed() < Duration::from_secs(30), "nothing to publish");
        }
        faults::clear();
        for call in [Call::Receive, Call::Accept] {
            faults::inject(call, errno, 1);
            look_now(&mut published_channel);
            published_channel.serve(&clock, market.exchange_mut(0), &mut waiter, &mut buffer);
            assert_eq!(faults::clear(), 0, "{call:?} was called");
        }
        // The waits after an error are tested where they are made.
        published_channel.healths_mut().for_each(SocketHealth::worked);
    }
    assert!(published_channel.healths_mut().all(|health| !health.is_ended()));
    let mut counters = Counters::default();
    published_channel.count(&mut counters);
    let [all, sum] = counted(&counters);
    assert_eq!(all, sum);
    // A connected sender tries again what a peer's refusal kept from being sent, and a connection that went
    // is none.
    let of_peer = (1..=ERRNO_MAX)
        .filter(|e| Trouble::of_number(*e) == Trouble::PeerGone)
        .count() as u64;
    assert_eq!(all, 4 * errors() - 3 * of_peer);
    // Everything still works.
    while !published_channel.publish(now, market.exchange_mut(0), &mut departures) {
        now = now.after(Nanos::MILLI);
        market.on_time(now);
    }
    let mut after = Counters::default();
    published_channel.count(&mut after);
    assert_eq!(counted(&after)[0], all);
}

/// RFC 768 allows a source port of 0, to which the kernel sends nothing: `EINVAL`, which ended the exchange.
#[test]
fn a_request_from_port_0_is_counted_and_others_are_answered() {
    let endpoint = UdpEndpoint::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("bound");
    let mut server = RequestServer {
        endpoint,
        receiving: SocketHealth::new(BackOff::RECEIVE, "receiving"),
        answering: SocketHealth::new(BackOff::SEND, "answering"),
        limit: AnswerLimit::new(0),
    };
    let now = Nanos(1_767_623_400 * Nanos::SECOND);
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    for _ in 0..100 {
        server.answer(now, b"answer", nobody);
    }
    let mut client = UdpEndpoint::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("bound");
    server.answer(now, b"answer", client.local_addr().expect("bound"));
    let mut buffer = [0; 64];
    let (datagram, _) = client.recv_from(&mut buffer).expect("works").expect("an answer");
    assert_eq!(datagram.bytes, b"answer");
    let mut counters = Counters::default();
    server.answering.count(&mut counters);
    assert_eq!(counters.get(Counter::NetErrorsPeer), 100);
    assert!(!server.answering.is_ended());
}

/// However many connections say nothing, who speaks is served at once: a place is free after the time that a
/// network takes, not after the protocol's patience of 10 s and more.
#[test]
fn connections_that_say_nothing_keep_nobody_out() {
    use std::io::{Read, Write};
    let config = config(
        ["239.192.91.5:26915", "239.192.91.6:26916"],
        "snapshot_server = \"127.0.0.1:0\"",
    );
    let clock = Clock::calibrate_for(Duration::from_millis(1));
    let mut waiter = Waiter::new(WaitStrategy::Poll);
    let (mut market, mut published_channel) = opened(&config, &mut waiter);
    let address = published_channel.servers[0].listener.local_addr().expect("bound");
    let mut buffer = vec![0; 1 << 16];
    let mut turn = |published_channel: &mut ChannelSockets| {
        look_now(published_channel);
        published_channel.serve(&clock, market.exchange_mut(0), &mut waiter, &mut buffer);
    };
    for silent in [CONNECTIONS, 100] {
        let held: Vec<_> = (0..silent)
            .map(|_| {
                let stream = std::net::TcpStream::connect(address).expect("connected");
                turn(&mut published_channel);
                stream
            })
            .collect();
        std::thread::sleep(Duration::from_nanos(2 * strangers::SILENT_NS));
        let mut honest = std::net::TcpStream::connect(address).expect("connected");
        honest.set_nonblocking(true).expect("a socket");
        honest.write_all(&login()).expect("written");
        let begun = std::time::Instant::now();
        let mut answer = [0; 3];
        while honest.read(&mut answer).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{silent} silent ones keep it out"
            );
            turn(&mut published_channel);
        }
        assert!(
            matches!(answer[2], b'A' | b'J'),
            "accepted or rejected, but heard: {answer:?}"
        );
        drop(held);
        for _ in 0..10 {
            turn(&mut published_channel);
        }
    }
}

/// Who has said something keeps its place, also when the exchange's thread stood still meanwhile and has not
/// read it.
#[test]
fn a_client_is_read_before_it_has_to_give_way() {
    use std::io::{Read, Write};
    let config = config(
        ["239.192.91.7:26917", "239.192.91.8:26918"],
        "snapshot_server = \"127.0.0.1:0\"",
    );
    let mut clock = Clock::calibrate_for(Duration::from_millis(1));
    let mut waiter = Waiter::new(WaitStrategy::Poll);
    let (mut market, mut published_channel) = opened(&config, &mut waiter);
    let address = published_channel.servers[0].listener.local_addr().expect("bound");
    let mut buffer = vec![0; 1 << 16];
    let mut turn = |clock: &Clock, published_channel: &mut ChannelSockets| {
        look_now(published_channel);
        published_channel.serve(clock, market.exchange_mut(0), &mut waiter, &mut buffer);
    };
    let mut clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| std::net::TcpStream::connect(address).expect("connected"))
        .collect();
    let accepted = |published_channel: &ChannelSockets| {
        let clients = published_channel.servers[0].clients.iter();
        clients.flatten().count()
    };
    for _ in 0..100_000 {
        turn(&clock, &mut published_channel);
        if accepted(&published_channel) == CONNECTIONS {
            break;
        }
    }
    assert_eq!(accepted(&published_channel), CONNECTIONS);
    for client in &mut clients {
        client.set_nonblocking(true).expect("a socket");
        client.write_all(&login()).expect("written");
    }
    let one_more = std::net::TcpStream::connect(address).expect("connected");
    let later = clock.now().after(2 * strangers::SILENT_NS);
    clock.not_before(later);
    for client in &mut clients {
        let mut answer = [0; 3];
        for _ in 0..100_000 {
            turn(&clock, &mut published_channel);
            if client.read(&mut answer).is_ok() {
                break;
            }
        }
        assert!(matches!(answer[2], b'A' | b'J'), "it is heard: {answer:?}");
    }
    drop(one_more);
}
