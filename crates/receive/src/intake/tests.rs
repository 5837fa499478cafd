//! Who is heard: the sources of groups, and who answers requests.

use std::net::UdpSocket;
use std::time::Instant;

use tickwire_feed::{ArbiterConfig, ItchChannel, ItchConfig, ItchDecoder, ItchFeed, SoupConfig};
use tickwire_market::{MarketEvent, SeqNo};
use tickwire_runtime::netns::VethPair;
use tickwire_runtime::udp::MulticastSender;
use tickwire_runtime::wait::WaitStrategy;

use super::*;
use tickwire_venues::channels::FeedFile;

/// As who sends orders has them.
pub(super) const OPTIONS: SocketOptions = SocketOptions {
    receive_buffer: 1 << 16,
    stamping: Stamping::OnDemand,
    batch: 1,
};

fn ports(text: &str) -> Ports {
    let file = FeedFile::parse(text).expect("right");
    let feed = &file.feeds[0];
    feed.channels[0].ports(&feed.interface)
}

fn join(ports: &Ports) -> (Intake, Waiter) {
    let mut waiter = Waiter::new(WaitStrategy::Spin);
    let intake = Intake::join(ports, Protocol::Itch50, OPTIONS, &mut waiter).expect("joined");
    (intake, waiter)
}

/// Asks again and again, for a generous while.
fn within<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let found = look();
        if found.is_some() || Instant::now() > end {
            return found;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Datagrams that one call took are given one by one, each before the next call, and the line says so while
/// there are any: the kernel does not.
#[test]
fn what_a_call_took_beyond_the_first_is_given_before_the_socket_is_asked_again() {
    let ports = ports(
        r#"
        [[feed]]
        venue = "nasdaq"
        [[feed.channel]]
        name = "1"
        live = { a = "239.192.78.31:27831" }
        "#,
    );
    let options = SocketOptions {
        stamping: Stamping::Kernel,
        batch: 4,
        ..OPTIONS
    };
    let mut waiter = Waiter::new(WaitStrategy::Spin);
    let mut intake = Intake::join(&ports, Protocol::Itch50, options, &mut waiter).expect("joined");
    let sender = MulticastSender::open(
        "239.192.78.31:27831".parse().expect("an address"),
        &ports.interface.find().expect("lo"),
        1,
    );
    let sender = sender.expect("opened");
    (0..6_u8).for_each(|n| sender.send(&[n]).expect("sent"));
    let mut buffer = [0; 64];
    let mut heard = Vec::new();
    let mut holds = Vec::new();
    while heard.len() < 6 {
        let heard_one = within(|| {
            intake
                .receive(0, &mut buffer)
                .map(|d| (d.bytes.to_vec(), d.stamp.kernel_ns))
        });
        let (bytes, kernel_ns) = heard_one.expect("six were sent");
        assert!(kernel_ns.is_some(), "each has its own stamp");
        heard.extend(bytes);
        holds.push(intake.live[0].holds_more());
    }
    assert_eq!(heard, [0, 1, 2, 3, 4, 5]);
    assert!(!holds[5], "nothing is left: {holds:?}");
    assert!(intake.receive(0, &mut buffer).is_none() && intake.receive(0, &mut buffer).is_none());
}

/// Everybody on the network can send to a group. With a source the kernel gives what comes from it and
/// nothing else.
#[test]
fn only_the_source_of_a_group_is_heard() {
    let pair = match VethPair::create("twssm") {
        Ok(pair) => pair,
        Err(why) => return tickwire_testdata::not_tested(format!("no network namespaces here: {why}")),
    };
    let of = |source: &str| {
        format!(
            "[[feed]]\nvenue = \"nasdaq\"\ninterface = \"veth0\"\n[[feed.channel]]\nname = \"1\"\n\
             live = {{ a = \"239.192.9.1:26901\", {source} b = \"239.192.9.2:26902\" }}\n"
        )
    };
    let us = pair.address(0);
    std::thread::scope(|scope| {
        let receivers = scope.spawn(|| {
            pair.enter(1).expect("entered");
            let sources = [
                String::new(),
                format!("source_a = \"{us}\","),
                // The sender is nobody that this one listens to.
                "source_a = \"198.18.0.77\", source_b = \"198.18.0.1\",".into(),
            ];
            sources.map(|source| join(&ports(&of(&source))))
        });
        let mut intakes = receivers.join().expect("joined");
        let sender = scope.spawn(|| {
            pair.enter(0).expect("entered");
            let interface = tickwire_runtime::interface::Interface::find("veth0").expect("it is there");
            for (group, what) in [("239.192.9.1:26901", b"A"), ("239.192.9.2:26902", b"B")] {
                let group = group.parse().expect("an address");
                let sender = MulticastSender::open(group, &interface, 1).expect("opened");
                sender.send(what).expect("sent");
            }
        });
        sender.join().expect("sent");
        let mut buffer = [0; 64];
        for (intake, _) in &mut intakes {
            // Line B, sent last, reaches all three.
            let heard = within(|| {
                let datagram = intake.live[1].recv(&mut buffer).expect("works");
                datagram.map(|datagram| datagram.bytes.to_vec())
            });
            assert_eq!(heard.as_deref(), Some(&b"B"[..]));
        }
        let heard = intakes.map(|(mut intake, _)| {
            let datagram = intake.live[0].recv(&mut buffer).expect("works");
            datagram.is_some()
        });
        assert_eq!(heard, [true, true, false]);
    });
}

/// Whoever knows the port of our request socket can send to it: what he sends is counted and dropped, whether
/// it comes from another address or from another port of the server's.
#[test]
fn answers_of_who_was_not_asked_are_dropped_and_counted() {
    let bind = || UdpSocket::bind("127.0.0.1:0").expect("bound");
    let (server, stranger) = (bind(), bind());
    let address = server.local_addr().expect("bound");
    let text = format!(
        "[[feed]]\nvenue = \"nasdaq\"\n[[feed.channel]]\nname = \"1\"\nlive = {{ a = \"239.192.9.3:26903\" }}\n\
         requests = \"{address}\"\n"
    );
    let (mut intake, _) = join(&ports(&text));
    let ours = intake
        .requests
        .as_ref()
        .expect("there is one")
        .endpoint
        .local_addr();
    let ours = SocketAddr::from((Ipv4Addr::LOCALHOST, ours.expect("bound").port()));
    let elsewhere = UdpSocket::bind("127.0.0.9:0").expect("all of 127.0.0.0/8 is this machine");
    let decoder = ItchDecoder::new(ItchConfig::default());
    let feed = ItchFeed::new(ArbiterConfig::default(), decoder);
    let mut channel = ItchChannel::new(feed, SoupConfig::default());
    let mut forged = [0; 20];
    tickwire_wire::moldudp64::heartbeat(&mut forged, *b"FORGED    ", SeqNo(77));
    let mut true_one = [0; 20];
    tickwire_wire::moldudp64::heartbeat(&mut true_one, *b"MONDAY    ", SeqNo(5));
    for _ in 0..3 {
        stranger.send_to(&forged, ours).expect("sent");
        elsewhere.send_to(&forged, ours).expect("sent");
    }
    server.send_to(&true_one, ours).expect("sent");
    let mut buffer = [0; 2048];
    let mut sink = |_: &MarketEvent| {};
    let counters = within(|| {
        intake.recover(Nanos(1), &mut buffer, &mut channel, &mut sink);
        let mut counters = channel.counters();
        intake.count_into(&mut counters);
        (counters.get(Counter::PacketsRetransmit) > 0).then_some(counters)
    });
    let counters = counters.expect("the server's answer is taken");
    assert_eq!(counters.get(Counter::AnswersUnasked), 6);
    assert_eq!(counters.get(Counter::PacketsRetransmit), 1);
    assert_eq!(
        channel.feed().arbiter().session().map(|s| s.0),
        Some(*b"MONDAY    ")
    );
}
