//! A thread that stands still while packets come, as when the scheduler or the host of a virtual machine has
//! its core: what lies in its sockets when it goes on is read before anything counts as lost. Counted is what
//! is asked for of a request server that does not answer.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use tickwire_feed::FeedState;
use tickwire_market::{Counter, EventSink, MarketEvent, Nanos, SeqNo};
use tickwire_receive::SocketOptions;
use tickwire_receive::receiver::{Consumer, Receiver, Taken};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::stamp::RxStamp;
use tickwire_runtime::udp::{MulticastSender, Stamping};
use tickwire_runtime::wait::WaitStrategy;
use tickwire_venues::channels::FeedFile;
use tickwire_venues::receiver::ReceiverSection;
use tickwire_venues::wiring::Reception;
use tickwire_wire::itch50::AddOrder;
use tickwire_wire::layout::Pod;
use tickwire_wire::moldudp64::PacketBuilder;

const OPTIONS: SocketOptions = SocketOptions {
    receive_buffer: 1 << 20,
    stamping: Stamping::OnDemand,
    batch: 1,
};
const PATIENCE: Duration = Duration::from_secs(20);
/// Longer than a gap waits for the other line.
const LONG: u64 = Nanos::SECOND;

/// Goes by a clock that is set by hand.
struct ByHand(Nanos);

impl EventSink for ByHand {
    fn on_event(&mut self, _: &MarketEvent) {}
}

impl Consumer for ByHand {
    type Successor = ByHand;

    fn now(&self) -> Nanos {
        self.0
    }

    fn turn_to(&mut self, _: usize) {}

    fn begins(&mut self, _: &RxStamp) -> Nanos {
        self.0
    }
}

/// A packet with one message.
fn packet(buffer: &mut [u8], seq: u64) -> &[u8] {
    let mut packet = PacketBuilder::new(buffer, *b"STANDS0001", SeqNo(seq));
    assert!(packet.push(AddOrder::at(1, seq).as_bytes()));
    let length = packet.finish();
    &buffer[..length]
}

struct Played {
    lines: [MulticastSender; 2],
    receiver: Receiver<ByHand>,
    hot: ByHand,
}

impl Played {
    /// `sockets`: a thread that has more than a few asks the kernel which of them have input.
    fn new(ports: [u16; 2], wait: WaitStrategy, sockets: usize) -> Played {
        Played::asking(ports, (wait, sockets), SocketAddr::from(([127, 0, 0, 1], 9)))
    }

    /// The same with a server of requests.
    fn asking(ports: [u16; 2], (wait, sockets): (WaitStrategy, usize), server: SocketAddr) -> Played {
        let [a, b] = ports.map(|port| format!("239.192.9.41:{port}"));
        let feed = format!(
            "[[feed]]\nvenue = \"nasdaq\"\nsession = \"STANDS0001\"\n\
             [[feed.channel]]\nname = \"1\"\nlive = {{ a = \"{a}\", b = \"{b}\" }}\n\
             requests = \"{server}\"\n"
        );
        let feeds = FeedFile::parse(&feed).expect("a feed").feeds;
        let section = ReceiverSection {
            max_instruments: 64,
            max_orders: 1 << 10,
            max_levels: 1 << 10,
            ..ReceiverSection::default()
        };
        let mut receiver = Receiver::empty(wait, sockets);
        let reception = Reception::new(&section);
        receiver.add(&feeds[0], (0, 0), &reception).expect("a channel");
        receiver.join_one(0, &feeds[0], OPTIONS).expect("joined");
        let interface = Interface::find("lo").expect("loopback");
        let line = |group: &str| {
            MulticastSender::open(group.parse().expect("a group"), &interface, 1).expect("a sender")
        };
        Played {
            lines: [line(&a), line(&b)],
            receiver,
            hot: ByHand(Nanos(Nanos::SECOND)),
        }
    }

    fn send(&self, line: usize, seq: u64) {
        let mut buffer = [0; 256];
        self.lines[line].send(packet(&mut buffer, seq)).expect("sent");
    }

    /// A look at the lines, a time in which the thread stands still, and what is due then.
    fn turn(&mut self, stands_still_ns: u64) -> Taken {
        self.receiver.wait(self.hot.0, Some(self.hot.0));
        let taken = self.receiver.receive(&mut self.hot);
        self.hot.0 = self.hot.0.after(stands_still_ns);
        self.receiver.timers(self.hot.0, &mut self.hot);
        self.receiver.links(self.hot.0, &mut self.hot);
        taken
    }

    fn of(&self, counter: Counter) -> u64 {
        self.receiver.counters().get(counter)
    }

    /// Turns until so many packets were received.
    fn until(&mut self, packets: u64) {
        let began = Instant::now();
        while self.of(Counter::PacketsA) + self.of(Counter::PacketsB) < packets {
            self.turn(Nanos::MICRO);
            assert!(began.elapsed() < PATIENCE, "{:?}", self.receiver.counters());
        }
    }
}

fn waits() -> [(WaitStrategy, usize); 3] {
    [
        (WaitStrategy::Spin, 3),
        (WaitStrategy::Spin, 100),
        (WaitStrategy::Poll, 3),
    ]
}

#[test]
fn a_gap_is_asked_for_only_when_everything_that_came_in_time_was_read() {
    for (nth, (wait, sockets)) in (0..).zip(waits()) {
        let mut played = Played::new([26_941 + 2 * nth, 26_942 + 2 * nth], wait, sockets);
        for line in 0..2 {
            played.send(line, 1);
        }
        played.until(2);

        // Message 3 waits behind more of line B than one look takes.
        for seq in [2, 4] {
            played.send(0, seq);
        }
        for _ in 0..40 {
            played.send(1, 2);
        }
        played.send(1, 3);
        // Loopback has delivered them when the call that sends returns; a busy machine may need a moment.
        std::thread::sleep(Duration::from_millis(20));
        let taken = played.turn(LONG);
        assert_eq!(taken, Taken::Part, "{wait:?}");
        assert_eq!(
            (played.of(Counter::Gaps), played.of(Counter::RetransmitRequests)),
            (1, 0)
        );
        played.until(2 + 2 + 41);
        let recovered = played.of(Counter::MessagesRecovered);
        assert_eq!(
            (recovered, played.of(Counter::RetransmitRequests)),
            (1, 0),
            "{wait:?}"
        );

        // It comes while the thread stands still.
        played.send(0, 6);
        let before = played.of(Counter::PacketsA);
        let began = Instant::now();
        while played.of(Counter::PacketsA) == before {
            played.turn(0);
            assert!(began.elapsed() < PATIENCE);
        }
        played.receiver.receive(&mut played.hot);
        played.send(1, 5);
        std::thread::sleep(Duration::from_millis(20));
        played.hot.0 = played.hot.0.after(LONG);
        played.receiver.timers(played.hot.0, &mut played.hot);
        assert_eq!(played.of(Counter::RetransmitRequests), 0, "{wait:?}");
        played.until(2 + 2 + 41 + 2);
        let recovered = played.of(Counter::MessagesRecovered);
        assert_eq!(
            (recovered, played.of(Counter::RetransmitRequests)),
            (2, 0),
            "{wait:?}"
        );
        assert_eq!(played.receiver.source(0).state(), FeedState::Live, "{wait:?}");

        // What has not come is asked for.
        for line in 0..2 {
            played.send(line, 8);
        }
        played.until(2 + 2 + 41 + 2 + 2);
        played.hot.0 = played.hot.0.after(LONG);
        played.turn(0);
        played.turn(0);
        assert_eq!(played.of(Counter::RetransmitRequests), 1, "{wait:?}");
    }
}

/// A server of requests.
struct Server(UdpSocket);

impl Server {
    fn new() -> Server {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
        socket.set_nonblocking(true).expect("a socket");
        Server(socket)
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("bound")
    }

    /// Message 2 is lost; who asks for it.
    fn asked_by(&self, played: &mut Played) -> SocketAddr {
        for (line, seq) in [(0, 1), (1, 1), (0, 3), (1, 3)] {
            played.send(line, seq);
        }
        played.until(4);
        played.hot.0 = played.hot.0.after(LONG);
        let began = Instant::now();
        loop {
            played.turn(0);
            if let Ok((_, from)) = self.0.recv_from(&mut [0; 256]) {
                return from;
            }
            assert!(began.elapsed() < PATIENCE, "{:?}", played.receiver.counters());
        }
    }

    fn answer(&self, whom: SocketAddr) {
        self.0.send_to(packet(&mut [0; 256], 2), whom).expect("sent");
    }
}

/// The answer is taken, and nobody has asked again.
fn is_answered(played: &mut Played, how: WaitStrategy) {
    let began = Instant::now();
    loop {
        let (asked, vain) = (Counter::RetransmitRequests, Counter::RetransmitTimeouts);
        assert_eq!((played.of(asked), played.of(vain)), (1, 0), "{how:?}");
        if played.of(Counter::MessagesRecovered) == 1 {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{:?}", played.receiver.counters());
        played.turn(Nanos::MICRO);
    }
}

#[test]
fn a_request_is_in_vain_only_when_every_answer_that_came_was_read() {
    for (nth, (wait, sockets)) in (0..).zip(waits()) {
        let (server, stranger) = (Server::new(), Server::new());
        let ports = [26_951 + 2 * nth, 26_952 + 2 * nth];
        let mut played = Played::asking(ports, (wait, sockets), server.address());
        let us = server.asked_by(&mut played);
        // The answer waits behind more datagrams than one look takes.
        for _ in 0..40 {
            stranger.answer(us);
        }
        server.answer(us);
        std::thread::sleep(Duration::from_millis(20));
        played.hot.0 = played.hot.0.after(LONG);
        let taken = played.turn(0);
        assert_eq!(played.of(Counter::MessagesRecovered), 0, "{wait:?}");
        is_answered(&mut played, wait);
        assert_eq!(taken, Taken::Part, "{wait:?}");
    }
}

#[test]
fn an_answer_that_came_since_the_kernel_was_asked_is_read() {
    for (nth, (wait, sockets)) in (0..).zip(waits()) {
        let server = Server::new();
        let ports = [26_961 + 2 * nth, 26_962 + 2 * nth];
        let mut played = Played::asking(ports, (wait, sockets), server.address());
        let us = server.asked_by(&mut played);
        played.receiver.wait(played.hot.0, Some(played.hot.0));
        server.answer(us);
        std::thread::sleep(Duration::from_millis(20));
        played.hot.0 = played.hot.0.after(LONG);
        played.receiver.receive(&mut played.hot);
        played.receiver.timers(played.hot.0, &mut played.hot);
        is_answered(&mut played, wait);
    }
}
