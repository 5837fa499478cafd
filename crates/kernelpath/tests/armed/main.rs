//! The pre-armed order, with root: market data and venue at the far end of one line, the order sent by the
//! program alone. It leaves once, its bytes are those that were prepared, the connection goes on as if the
//! kernel had sent it, and the packet that caused it is delivered.

#[allow(dead_code, reason = "each test uses a part")]
#[path = "../delegate/client.rs"]
mod client;
#[path = "../../../kernel/tests/common/mod.rs"]
mod common;
#[path = "../harness/mod.rs"]
mod harness;
#[allow(dead_code, reason = "each test uses a part")]
#[path = "../delegate/network.rs"]
mod network;
mod ouch;

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use client::{Client, PATIENCE, TALKING, child_that_says, direct, kill};
use common::{LINES, adds, framed, offer, session, spec, stream};
use harness::{Skip, Test, needs_capabilities};
use network::{Kind, Line, REPLY, inside, pattern};
use tickwire_kernel::filter::{FilterSpec, Framing, MapKind};
use tickwire_kernel::guard;
use tickwire_kernel::interp::Map;
use tickwire_kernel::segment::{Ends, Numbers, Template};
use tickwire_kernel::trigger::{self, Condition, Setup, State, itch, nyse};
use tickwire_kernelpath::delegate::Reason;
use tickwire_kernelpath::{KernelReceiver, LoadedFilter, NotArmed, ReceiverConfig, Shooting, Waits};
use tickwire_runtime::alloc::{OnAllocation, arm, disarm};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::netns::VethPair;
use tickwire_runtime::xdp::delegate::PacketSocket;
use tickwire_runtime::xdp::{Attached, Program, SharedMap, SocketMap, XdpMode};
use tickwire_testdata::Rng;

#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

const TESTS: &[(&str, Test)] = &[
    (
        "the_verifier_accepts_the_programs_and_verdicts_are_the_interpreters",
        verifier,
    ),
    ("orders_leave_once_and_are_whole_to_linux", whole_to_linux),
    ("orders_leave_once_and_are_whole_to_smoltcp", whole_to_smoltcp),
    ("the_driver_sends_it_too", native),
    ("an_order_of_ouch_is_read_and_accepted_by_its_venue", ouch::ouch),
    ("an_order_that_is_lost_is_sent_again_by_the_kernel", lost),
    ("what_is_taken_back_or_killed_does_not_leave", taken_back),
    ("what_is_sent_otherwise_takes_it_back_first", otherwise),
    ("a_gap_ends_it", gap),
    ("kill_9_leaves_nothing_behind", killed),
    ("after_start_up_nothing_is_allocated", no_allocation),
    ("what_cannot_be_armed_is_said_in_words", words),
];

/// Set in children of this program.
const CHILD: &str = "TICKWIRE_ARMED_CHILD";
/// The instrument that is waited for.
const INDEX: u32 = 7;

fn main() -> ExitCode {
    match std::env::var(CHILD) {
        Ok(venue) => child(venue.parse().expect("an address")),
        Err(_) => harness::run(TESTS),
    }
}

fn armed_spec(framing: Framing) -> FilterSpec {
    FilterSpec {
        guard: true,
        trigger: true,
        ..spec(framing)
    }
}

/// The same packets through the kernel and through the interpreter: verdicts, what leaves, and the map.
fn verifier() -> Result<(), Skip> {
    needs_capabilities()?;
    for framing in [Framing::Itch, Framing::Nyse] {
        let spec = FilterSpec {
            trigger: true,
            ..spec(framing)
        };
        let code = spec.program().expect("a program");
        let (first_state, first_sets) = spec.initial();
        let state = SharedMap::create("tw_state", first_state.len() as u32).expect("a map");
        let sets = SharedMap::create("tw_sets", first_sets.len() as u32).expect("a map");
        let place = SharedMap::create("tw_trigger", trigger::VALUE as u32).expect("a map");
        let sockets = SocketMap::create("tw_sockets", spec.queues).expect("a map");
        state.fill(&first_state).expect("filled");
        sets.fill(&first_sets).expect("filled");
        let of_map = |id| match spec.maps().into_iter().find(|map| map.id == id) {
            Some(map) if map.kind == MapKind::Sockets => sockets.number(),
            _ if id == trigger::TRIGGER => place.number(),
            _ if id == tickwire_kernel::layout::STATE => state.number(),
            _ => sets.number(),
        };
        let program = Program::load("tw_filter", &code.link(of_map)).unwrap_or_else(|why| panic!("{why}"));
        println!(
            "{framing:?}: {} instructions, {} followed",
            code.instructions().len(),
            program.processed()
        );
        assert!(program.processed() < 60_000, "{}", program.processed());
        let mut model = common::Filter::of(&spec);
        model
            .machine
            .insert(tickwire_kernel::layout::SOCKETS, Map::Sockets(vec![false; 64]));
        model.machine.tail_room = 3_000;
        let order = segment(b"8=FIX.4.4|35=D|", 200);
        let mut fired = 0;
        for seed in 0..60 {
            let rng = &mut Rng::new(seed);
            let packets = stream(framing, 12, rng, 2);
            let condition = match framing {
                Framing::Itch => Condition::new(itch::ADD_ORDER, common::WANTED[0]),
                _ => Condition::new(nyse::ADD_ORDER, common::WANTED[0]),
            };
            let setup = Setup {
                condition: &condition,
                channel: 0,
                session: session(framing),
                next: packets[rng.below(3) as usize].seq,
                order: &order,
                stamp_offset: None,
                out: 0,
                deadline_ns: u64::MAX,
                tail_max: 512,
            };
            let mut both = |at: usize, word: u64| {
                place.words()[at / 8].store(word, Ordering::SeqCst);
                model.machine.value(trigger::TRIGGER)[at..at + 8].copy_from_slice(&word.to_ne_bytes());
            };
            both(trigger::WORD, 0);
            setup.put(&mut both).expect("it fits");
            both(trigger::KEPT, 0);
            both(trigger::WORD, State::Armed.word(seed + 1));
            for (n, packet) in packets.iter().enumerate() {
                if rng.below(20) == 0 {
                    continue;
                }
                let mut payload = packet.payload.clone();
                if rng.below(10) == 0 {
                    let at = rng.below(payload.len() as u64) as usize;
                    payload[at] = rng.next_u64() as u8;
                }
                let bytes = framed(&payload, 0, rng.below(3) as usize);
                let expected = model.machine.run(&model.program, &bytes, 0).expect("no fault");
                let tested = program.test(&bytes, 1).expect("a test run");
                assert_eq!(tested.action, expected.action as u32, "{framing:?} {seed} {n}");
                if expected.action == tickwire_kernel::asm::action::TX {
                    fired += 1;
                    assert_eq!(tested.bytes, expected.packet, "{framing:?} {seed} {n}");
                    assert_eq!(tested.bytes, order);
                }
                // All but the times.
                let words = place.words().iter().map(|word| word.load(Ordering::SeqCst));
                let times = [trigger::FIRED_AT, trigger::KEPT_PACKET + 8];
                let value = model.machine.value(trigger::TRIGGER);
                for (at, word) in words.enumerate().filter(|(at, _)| !times.contains(&(at * 8))) {
                    let own = u64::from_ne_bytes(value[at * 8..at * 8 + 8].try_into().expect("eight"));
                    assert_eq!(word, own, "{framing:?} {seed} {n}: the map at {}", at * 8);
                }
            }
        }
        println!("{fired} fired");
        assert!(fired > 10, "{fired}");
    }
    // Beside the guard, and with every protocol.
    let mut all = armed_spec(Framing::Itch);
    for (n, framing) in (1_u16..).zip([Framing::Nyse, Framing::Mdp3, Framing::Pitch, Framing::Any]) {
        let mut channel = all.channels[0].clone();
        channel.framing = framing;
        channel.set = n;
        channel.groups.iter_mut().for_each(|group| group.port += n);
        all.channels.push(channel);
    }
    all.sets = 5;
    let filter = LoadedFilter::load(all).unwrap_or_else(|why| panic!("{why}"));
    println!(
        "beside all others and the guard: {} followed",
        filter.program().processed()
    );
    assert!(filter.program().processed() < 400_000);
    Ok(())
}

/// A frame that is no connection's.
fn segment(payload: &[u8], length: usize) -> Vec<u8> {
    let ends = Ends {
        hardware: [[2; 6], [4; 6]],
        addresses: [[198, 18, 0, 1], [198, 18, 0, 2]],
        ports: [1, 2],
    };
    let mut whole = payload.to_vec();
    whole.resize(length, b'x');
    let mut frame = vec![0; 512];
    let written = Template::new(&ends, false).write(&mut frame, &Numbers::default(), &whole);
    frame.truncate(written.expect("room"));
    frame
}

/// A program that passes everything: the guard of no connection.
fn pass_all() -> (SharedMap, Program, Attached) {
    let map = SharedMap::create("tw_guard", guard::VALUE as u32).expect("a map");
    let code = guard::program().expect("a program").link(|_| map.number());
    let program = Program::load("tw_guard", &code).unwrap_or_else(|why| panic!("{why}"));
    let interface = Interface::find("veth0").expect("it is there");
    let at = (interface.name(), interface.index());
    let attached = program
        .attach(at, XdpMode::Native)
        .unwrap_or_else(|why| panic!("{why}"));
    (map, program, attached)
}

/// Market data from the far end.
struct Feed {
    socket: UdpSocket,
    /// Where the far end has no address: by frames.
    frames: Option<PacketSocket>,
    framing: Framing,
    next: u64,
}

impl Feed {
    fn new(pair: &VethPair, framing: Framing) -> Feed {
        let socket = inside(pair, 1, || {
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("bound")
        });
        Feed {
            socket,
            frames: None,
            framing,
            next: 1,
        }
    }

    /// Orders that are added, in one packet on a line.
    fn send(&mut self, line: usize, orders: &[(u32, u8, u32, u32)]) {
        self.send_as(line, self.next, orders);
        self.next += orders.len() as u64;
    }

    fn send_as(&self, line: usize, seq: u64, orders: &[(u32, u8, u32, u32)]) {
        let group = LINES[line];
        let to = SocketAddrV4::new(Ipv4Addr::from(group.address), group.port);
        let payload = adds(self.framing, seq, orders);
        if let Some(frames) = &self.frames {
            assert!(frames.send(&framed(&payload, line, 0)).expect("sent"));
            return;
        }
        self.socket.send_to(&payload, to).expect("sent");
    }
}

/// One that is waited for, one that is not.
const HIT: (u32, u8, u32, u32) = (INDEX, b'S', 100, 250_000);
const MISS: (u32, u8, u32, u32) = (INDEX, b'S', 100, 250_001);

fn receive(framing: Framing, mode: XdpMode) -> KernelReceiver {
    let interface = Interface::find("veth0").expect("it is there");
    let config = ReceiverConfig {
        mode: Some(mode),
        ..ReceiverConfig::default()
    };
    KernelReceiver::attach(armed_spec(framing), &interface, &config).unwrap_or_else(|why| panic!("{why}"))
}

fn waits(framing: Framing, next: u64) -> Waits {
    Waits {
        condition: offer(framing, INDEX, 250_000, 100),
        channel: 0,
        session: session(framing),
        next,
        idle_ns: 600_000_000_000,
    }
}

/// Our end: market data, the connection, and what is armed.
struct Trader {
    client: Client,
    receiver: KernelReceiver,
    framing: Framing,
    /// Numbers of the packets that were delivered.
    seen: Vec<u64>,
}

impl Trader {
    fn new(framing: Framing, venue: SocketAddr, mode: XdpMode) -> Trader {
        let receiver = receive(framing, mode);
        let mut client = Client::connect(venue);
        client
            .delegate
            .use_trigger(receiver.trigger().expect("it is free"));
        Trader {
            client,
            receiver,
            framing,
            seen: Vec::new(),
        }
    }

    /// The next bytes of the stream, armed. They are counted as sent when they have left.
    fn arm(&mut self, next: u64, length: u64) -> Result<(), NotArmed> {
        let sent = self.client.sent;
        let order: Vec<u8> = (sent..sent + length).map(pattern).collect();
        let waits = waits(self.framing, next);
        self.client.delegate.arm(&self.client.stream, &waits, &order)
    }

    /// Packets that have come: the first number of each.
    fn market(&mut self) {
        while let Some(delivery) = self.receiver.recv() {
            assert_eq!(delivery.lost, 0);
            let at = if self.framing == Framing::Itch {
                10..18
            } else {
                4..8
            };
            let bytes = &delivery.payload[at];
            let append = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
            self.seen.push(match self.framing {
                Framing::Itch => bytes.iter().fold(0, append),
                _ => bytes.iter().rev().fold(0, append),
            });
        }
    }

    fn shooting(&mut self) -> Option<Shooting> {
        let stream = &mut self.client.stream;
        self.client
            .delegate
            .shooting(stream)
            .expect("the connection holds")
    }

    /// Until something has become of what is armed.
    fn shot(&mut self) -> Shooting {
        let began = Instant::now();
        loop {
            self.market();
            if let Some(told) = self.shooting() {
                return told;
            }
            assert!(began.elapsed() < PATIENCE, "nothing has become of it");
        }
    }

    fn until_seen(&mut self, packets: usize) {
        let began = Instant::now();
        while self.seen.len() < packets {
            self.market();
            assert!(began.elapsed() < PATIENCE, "{:?}", self.seen);
        }
    }
}

fn whole(kind: Kind, mode: XdpMode) -> Result<(), Skip> {
    for framing in [Framing::Itch, Framing::Nyse] {
        let (pair, peer, address) = direct(kind, TALKING)?;
        // A virtual driver takes what the other end's driver sends only if it has a program itself.
        let _passing = (mode == XdpMode::Native).then(|| inside(&pair, 1, pass_all));
        let mut feed = Feed::new(&pair, framing);
        if kind == Kind::Smoltcp {
            feed.frames = Some(inside(&pair, 1, || {
                let interface = Interface::find("veth0").expect("it is there");
                PacketSocket::open(interface.index(), false).expect("opened")
            }));
        }
        inside(&pair, 0, || {
            let mut trader = Trader::new(framing, address, mode);
            let mut rng = Rng::new(5);
            for n in 0..150 {
                if n % 3 == 0 {
                    trader.client.send(40 + rng.below(200)).expect("sent");
                }
                trader.client.hear();
                let length = 40 + rng.below(180);
                let began = Instant::now();
                loop {
                    match trader.arm(feed.next, length) {
                        Ok(()) => break,
                        // What was sent before is on its way.
                        Err(NotArmed::Connection(_)) => trader.client.hear(),
                        Err(why) => panic!("{why}"),
                    }
                    assert!(began.elapsed() < PATIENCE, "{}", trader.client.delegate.counts());
                }
                feed.send(0, &[MISS]);
                feed.send(rng.below(2) as usize, &[MISS, (INDEX + 1, b'S', 100, 1), HIT]);
                // The other line brings it too, and somebody else the like.
                feed.send_as(1, feed.next - 3, &[MISS, (INDEX + 1, b'S', 100, 1), HIT]);
                feed.send(0, &[HIT]);
                let told = trader.shot();
                assert!(
                    matches!(told, Shooting::Fired { by, .. } if by == feed.next - 4),
                    "{told:?}"
                );
                trader.client.sent += length;
                trader.until_seen(4 * (n + 1));
                let told = [feed.next - 5, feed.next - 4, feed.next - 4, feed.next - 1];
                assert_eq!(trader.seen[4 * n..], told, "every packet, in order");
            }
            let counts = trader.client.finish(&peer, true);
            assert_eq!(
                (counts.pre_armed.fired, counts.pre_armed.armed),
                (150, 150),
                "{counts}"
            );
            assert_eq!(counts.held, counts.injected + counts.not_injected, "{counts}");
        });
    }
    Ok(())
}

fn whole_to_linux() -> Result<(), Skip> {
    whole(Kind::Linux, XdpMode::Generic)
}

fn whole_to_smoltcp() -> Result<(), Skip> {
    whole(Kind::Smoltcp, XdpMode::Generic)
}

fn native() -> Result<(), Skip> {
    whole(Kind::Linux, XdpMode::Native)
}

/// A line that loses everything while the program sends: the kernel sends it again.
fn lost() -> Result<(), Skip> {
    let line = Line::new(9)?;
    let peer = line.start(Kind::Linux, TALKING);
    let address = line.peer();
    let feed = line.far(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("bound"));
    line.near(|| {
        let mut trader = Trader::new(Framing::Itch, address, XdpMode::Generic);
        let mut feed = Feed {
            socket: feed,
            frames: None,
            framing: Framing::Itch,
            next: 1,
        };
        for _ in 0..5 {
            trader.client.send(REPLY).expect("sent");
            trader.client.until("the answer", |own| own.heard == own.sent);
            trader.market();
            trader.arm(feed.next, REPLY).unwrap_or_else(|why| panic!("{why}"));
            line.faults.mute.store(true, Ordering::SeqCst);
            feed.send(0, &[HIT]);
            let told = trader.shot();
            assert!(matches!(told, Shooting::Fired { .. }), "{told:?}");
            trader.client.sent += REPLY;
            let began = Instant::now();
            while line.faults.muted.load(Ordering::SeqCst) == 0 {
                assert!(began.elapsed() < PATIENCE, "nothing was sent");
                std::thread::sleep(Duration::from_millis(1));
            }
            line.faults.muted.store(0, Ordering::SeqCst);
            line.faults.mute.store(false, Ordering::SeqCst);
            trader.client.until("the answer", |own| own.heard == own.sent);
        }
        let counts = trader.client.finish(&peer, true);
        assert_eq!(counts.pre_armed.fired, 5, "{counts}");
        // Those of the last one may not have been counted yet.
        assert!(counts.retransmissions >= 4, "{counts}");
    });
    Ok(())
}

fn taken_back() -> Result<(), Skip> {
    let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
    let mut feed = Feed::new(&pair, Framing::Itch);
    inside(&pair, 0, || {
        let mut trader = Trader::new(Framing::Itch, address, XdpMode::Generic);
        trader.arm(1, REPLY).unwrap_or_else(|why| panic!("{why}"));
        let told = trader.client.delegate.disarm(&mut trader.client.stream);
        assert_eq!(told.expect("the connection holds"), Some(Shooting::Back));
        feed.send(0, &[HIT]);
        trader.until_seen(1);
        assert_eq!(trader.shooting(), None);
        assert_eq!(peer.received(), 0);
        // The kill switch, by anybody.
        trader.arm(feed.next, REPLY).unwrap_or_else(|why| panic!("{why}"));
        let kill = trader.client.delegate.kill_switch().expect("there is one");
        std::thread::spawn(move || kill.kill()).join().expect("killed");
        feed.send(0, &[HIT]);
        trader.until_seen(2);
        assert_eq!(trader.shooting(), None);
        let told = trader.client.delegate.disarm(&mut trader.client.stream);
        assert_eq!(told.expect("the connection holds"), Some(Shooting::Back));
        assert_eq!(trader.arm(feed.next, REPLY), Err(NotArmed::Killed));
        trader.client.delegate.kill_switch().expect("there is one").lift();
        // A process that does not look for longer than it said.
        let hangs = Waits {
            idle_ns: 1_000,
            ..waits(Framing::Itch, feed.next)
        };
        let order: Vec<u8> = (0..REPLY).map(pattern).collect();
        let armed = trader.client.delegate.arm(&trader.client.stream, &hangs, &order);
        armed.unwrap_or_else(|why| panic!("{why}"));
        std::thread::sleep(Duration::from_millis(1));
        feed.send(0, &[HIT]);
        trader.until_seen(3);
        let told = trader.client.delegate.disarm(&mut trader.client.stream);
        assert_eq!(told.expect("the connection holds"), Some(Shooting::Back));
        trader.arm(feed.next, REPLY).unwrap_or_else(|why| panic!("{why}"));
        feed.send(0, &[HIT]);
        assert!(matches!(trader.shot(), Shooting::Fired { .. }));
        trader.client.sent += REPLY;
        let counts = trader.client.finish(&peer, true);
        let armed = counts.pre_armed;
        assert_eq!(
            (armed.armed, armed.taken_back, armed.fired, armed.refused),
            (4, 3, 1, 1)
        );
    });
    Ok(())
}

/// Messages race with what fires them: the stream has every byte of those that left, in order.
fn otherwise() -> Result<(), Skip> {
    let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
    let mut feed = Feed::new(&pair, Framing::Itch);
    inside(&pair, 0, || {
        let mut trader = Trader::new(Framing::Itch, address, XdpMode::Generic);
        let (mut fired, mut back) = (0, 0);
        for n in 0..400_u32 {
            let began = Instant::now();
            while let Err(why) = trader.arm(feed.next, REPLY) {
                assert!(matches!(why, NotArmed::Connection(_) | NotArmed::Unread), "{why}");
                trader.market();
                trader.client.hear();
                assert!(began.elapsed() < PATIENCE);
            }
            if n % 3 != 0 {
                feed.send(0, &[HIT]);
            }
            // If it has left, what follows begins behind it. Of three one is not caused, one is, and one
            // races.
            let told = match n % 3 {
                1 => Some(trader.shot()),
                _ => {
                    let told = trader.client.delegate.disarm(&mut trader.client.stream);
                    told.expect("the connection holds")
                }
            };
            match told {
                Some(Shooting::Fired { .. }) => {
                    trader.client.sent += REPLY;
                    fired += 1;
                }
                Some(Shooting::Back) => back += 1,
                other => panic!("{other:?}"),
            }
            trader.client.send(50).expect("sent");
            trader.market();
            trader.client.hear();
        }
        println!("{fired} fired, {back} taken back");
        let counts = trader.client.finish(&peer, true);
        assert_eq!(counts.pre_armed.fired, fired, "{counts}");
        assert!(fired > 0 && back > 0, "{fired} {back}");
        // Not taken back by hand: the message does it.
        trader.arm(feed.next, REPLY).unwrap_or_else(|why| panic!("{why}"));
        trader.client.send(50).expect("sent");
        assert_eq!(trader.shooting(), Some(Shooting::Back));
        trader.client.finish(&peer, true);
    });
    Ok(())
}

fn gap() -> Result<(), Skip> {
    let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
    let mut feed = Feed::new(&pair, Framing::Nyse);
    inside(&pair, 0, || {
        let mut trader = Trader::new(Framing::Nyse, address, XdpMode::Generic);
        trader.arm(1, REPLY).unwrap_or_else(|why| panic!("{why}"));
        feed.next = 2;
        feed.send(0, &[HIT]);
        assert_eq!(trader.shot(), Shooting::Gap);
        feed.send_as(0, 1, &[HIT]);
        trader.until_seen(2);
        assert_eq!(peer.received(), 0);
        trader.client.send(REPLY).expect("sent");
        let counts = trader.client.finish(&peer, true);
        assert_eq!((counts.pre_armed.gap, counts.pre_armed.fired), (1, 0), "{counts}");
    });
    Ok(())
}

/// Arms, says so, and waits; what it was armed for comes after it was killed.
fn child(venue: SocketAddr) -> ExitCode {
    let mut trader = Trader::new(Framing::Itch, venue, XdpMode::Generic);
    trader.client.send(REPLY).expect("sent");
    trader.client.until("the answer", |own| own.heard == own.sent);
    let began = Instant::now();
    while let Err(why) = trader.arm(1, REPLY) {
        assert!(began.elapsed() < PATIENCE, "{why}");
        trader.client.hear();
    }
    println!("armed");
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn killed() -> Result<(), Skip> {
    let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
    kill(child_that_says("armed", &pair, (CHILD, address)));
    let mut feed = Feed::new(&pair, Framing::Itch);
    feed.send(0, &[HIT]);
    let began = Instant::now();
    while peer.ended() == 0 {
        assert!(began.elapsed() < PATIENCE, "the peer was not told");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(peer.received(), REPLY, "nothing armed has left");
    // The interface is free.
    inside(&pair, 0, || drop(receive(Framing::Itch, XdpMode::Generic)));
    Ok(())
}

fn no_allocation() -> Result<(), Skip> {
    let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
    let mut feed = Feed::new(&pair, Framing::Itch);
    inside(&pair, 0, || {
        let mut trader = Trader::new(Framing::Itch, address, XdpMode::Generic);
        trader.seen.reserve(200);
        let message: Vec<u8> = (0..40 * REPLY).map(pattern).collect();
        let hits: Vec<Vec<u8>> = (1..=40).map(|seq| adds(Framing::Itch, seq, &[HIT])).collect();
        let to = SocketAddrV4::new(Ipv4Addr::from(LINES[0].address), LINES[0].port);
        arm(OnAllocation::Count);
        for (n, (order, hit)) in (1..).zip(message.chunks(REPLY as usize).zip(&hits)) {
            let waits = waits(Framing::Itch, n);
            while trader
                .client
                .delegate
                .arm(&trader.client.stream, &waits, order)
                .is_err()
            {
                trader.client.hear();
                trader.market();
            }
            feed.socket.send_to(hit, to).expect("sent");
            let told = trader.shot();
            assert!(matches!(told, Shooting::Fired { .. }));
            trader.client.sent += REPLY;
            while trader.client.heard < trader.client.sent {
                trader.client.hear();
            }
        }
        let count = disarm();
        assert_eq!(count.allocations, 0, "{count:?}");
        feed.next = 41;
        let counts = trader.client.finish(&peer, true);
        assert_eq!(counts.pre_armed.fired, 40, "{counts}");
    });
    Ok(())
}

fn words() -> Result<(), Skip> {
    let (pair, _peer, address) = direct(Kind::Linux, TALKING)?;
    inside(&pair, 0, || {
        let mut alone = Client::connect(address);
        let none = alone
            .delegate
            .arm(&alone.stream, &waits(Framing::Itch, 1), b"an order");
        assert_eq!(none, Err(NotArmed::NoProgram));
        drop(alone);
    });
    let (pair, _peer, address) = direct(Kind::Linux, TALKING)?;
    let mut feed = Feed::new(&pair, Framing::Itch);
    {
        inside(&pair, 0, || {
            let mut trader = Trader::new(Framing::Itch, address, XdpMode::Generic);
            assert!(trader.receiver.trigger().is_none(), "somebody has it");
            let long = trader.arm(1, 500).expect_err("it is too long");
            assert!(matches!(long, NotArmed::Long(_)), "{long}");
            trader.arm(1, REPLY).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(trader.arm(1, REPLY), Err(NotArmed::Taken));
            feed.send(0, &[HIT]);
            let began = Instant::now();
            while trader.shooting().is_none() {
                assert!(began.elapsed() < PATIENCE);
            }
            trader.client.sent += REPLY;
            assert_eq!(trader.arm(2, REPLY), Err(NotArmed::Unread));
            trader.until_seen(1);
            drop(trader.receiver);
            let waits = waits(Framing::Itch, 2);
            let gone = trader
                .client
                .delegate
                .arm(&trader.client.stream, &waits, b"an order");
            assert_eq!(gone, Err(NotArmed::Detached));
            for why in [
                NotArmed::NoProgram,
                NotArmed::ByKernel,
                NotArmed::Connection(Reason::PeerWindow),
                NotArmed::Framing,
            ] {
                assert!(!why.to_string().is_empty());
            }
        });
    }
    Ok(())
}
