//! Delegated send, with root: never a byte lost, doubled or out of order, against Linux and against another
//! TCP (smoltcp), over lines that lose and reorder; what the kernel has to refuse; what a killed process
//! leaves.
//!
//! No test asserts a time: that answers are not late is told by what had to be sent again.

#[path = "../harness/mod.rs"]
mod harness;

mod client;
#[allow(dead_code, reason = "each test uses a part")]
mod network;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use client::{Client, PATIENCE, TALKING, child_that_says, direct, kill, pause};
use harness::{Skip, Test, namespaces};
use network::{Habits, Kind, Line, PORT, REPLY, inside, pattern, start};
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group};
use tickwire_kernel::guard;
use tickwire_kernel::interp::{Machine, Map};
use tickwire_kernel::segment::{Ends, Numbers, Template};
use tickwire_kernelpath::delegate::{DelegateError, Reason, Way};
use tickwire_kernelpath::{KernelReceiver, LoadedFilter, ReceiverConfig};
use tickwire_runtime::alloc::{OnAllocation, arm, disarm};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::netns::VethPair;
use tickwire_runtime::tcp::TcpStream;
use tickwire_runtime::xdp::delegate::{flight, force_send_buffer};
use tickwire_runtime::xdp::{Program, SharedMap};
use tickwire_testdata::Rng;

#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

const TESTS: &[(&str, Test)] = &[
    (
        "the_verifier_accepts_the_guard_and_verdicts_are_the_interpreters",
        verifier,
    ),
    ("orders_and_answers_are_whole", whole),
    ("answers_that_come_before_the_booking_are_held_and_given", early),
    (
        "early_answers_are_taken_where_sources_are_checked_strictly",
        strict,
    ),
    ("nothing_is_lost_over_a_bad_line_to_linux", bad_line_to_linux),
    ("nothing_is_lost_over_a_bad_line_to_smoltcp", bad_line_to_smoltcp),
    ("a_peer_that_acknowledges_late_is_served", delayed),
    ("a_peer_that_does_not_read_stops_it_by_its_window", window),
    ("a_reset_ends_the_connection", reset),
    ("a_full_send_buffer_is_raised_and_booked_again", full_buffer),
    ("a_burst_leaves_as_one_train_and_is_booked_by_one_call", train),
    (
        "a_train_leaves_as_one_frame_where_market_data_has_the_queue",
        train_beside_market_data,
    ),
    (
        "what_is_booked_counts_as_sent_while_the_kernels_own_segments_wait",
        corked,
    ),
    ("kill_9_between_sending_and_booking_ends_the_connection", killed),
    ("two_connections_share_a_guard", two),
    ("the_filter_of_market_data_guards_too", beside_a_filter),
    ("after_start_up_nothing_is_allocated", no_allocation),
    ("what_cannot_be_delegated_is_said_in_words", words),
    ("a_next_hop_with_another_address_is_followed", other_hop),
    ("a_ring_that_is_full_leaves_it_to_the_kernel", full_ring),
    ("rights_that_are_lost_leave_it_to_the_kernel", rights),
];

/// Set in children of this program.
const CHILD: &str = "TICKWIRE_DELEGATE_CHILD";

fn main() -> ExitCode {
    match std::env::var(CHILD) {
        Ok(venue) => child(venue.parse().expect("an address")),
        Err(_) => harness::run(TESTS),
    }
}

/// The peer's segments, at random around what is booked, through the kernel and through the interpreter.
fn verifier() -> Result<(), Skip> {
    harness::needs_capabilities()?;
    let code = guard::program().expect("a program");
    let map = SharedMap::create("tw_guard", guard::VALUE as u32).expect("a map");
    let program =
        Program::load("tw_guard", &code.link(|_| map.number())).unwrap_or_else(|why| panic!("{why}"));
    println!(
        "the guard: {} instructions, {} followed",
        code.instructions().len(),
        program.processed()
    );
    assert!(program.processed() < 8_000, "{}", program.processed());
    let peer = Ends {
        hardware: [[2; 6], [4; 6]],
        addresses: [[198, 18, 0, 2], [198, 18, 0, 1]],
        ports: [PORT, 40_000],
    };
    let ours = Ends {
        hardware: [peer.hardware[1], peer.hardware[0]],
        addresses: [peer.addresses[1], peer.addresses[0]],
        ports: [peer.ports[1], peer.ports[0]],
    };
    let mut machine = Machine::new();
    machine.insert(guard::GUARD, Map::Value(vec![0; guard::VALUE]));
    let at = 15 * guard::CONNECTION;
    let mut both = |offset: usize, word: u64| {
        map.words()[(at + offset) / 8].store(word, Ordering::SeqCst);
        machine.value(guard::GUARD)[at + offset..at + offset + 8].copy_from_slice(&word.to_ne_bytes());
    };
    both(guard::KEY, guard::key(&ours));
    both(guard::LOCAL, u32::from_ne_bytes(ours.addresses[0]).into());
    both(guard::WORD, guard::word(1, u32::MAX - 50));
    let (mut rng, mut actions) = (Rng::new(3), [0; 5]);
    for n in 0..400 {
        let numbers = Numbers {
            seq: rng.next_u64() as u32,
            ack: (u32::MAX - 50)
                .wrapping_add((rng.next_u64() % 200) as u32)
                .wrapping_sub(100),
            ..Numbers::default()
        };
        let mut ends = peer;
        ends.ports[1] += u16::from(rng.next_u64().is_multiple_of(8));
        let mut frame = vec![0; 2_300];
        let payload = vec![7; (rng.next_u64() % 2_200) as usize];
        let length =
            Template::new(&ends, rng.next_u64().is_multiple_of(2)).write(&mut frame, &numbers, &payload);
        frame.truncate(length.expect("room"));
        let theirs = program.test(&frame, 1).expect("run").action.cast_signed();
        let own = machine.run(&code, &frame, 0).expect("no fault").action;
        assert_eq!(theirs, own, "segment {n}: {numbers:?}");
        actions[own as usize] += 1;
        let words = &map.words()[at / 8..(at + guard::CONNECTION) / 8];
        let bytes: Vec<u8> = words
            .iter()
            .flat_map(|word| word.load(Ordering::SeqCst).to_ne_bytes())
            .collect();
        let interpreted = &machine.value(guard::GUARD)[at..at + guard::CONNECTION];
        assert!(bytes == interpreted, "segment {n}: the maps differ");
        for slot in 0..guard::SLOTS {
            if n % 7 == 0 {
                let state = guard::SLOTS_AT + slot * guard::SLOT;
                map.words()[(at + state) / 8].store(guard::FREE, Ordering::SeqCst);
                machine.value(guard::GUARD)[at + state..at + state + 8].fill(0);
            }
        }
    }
    println!("{} dropped, {} passed", actions[1], actions[2]);
    assert!(actions[1] > 50 && actions[2] > 100);
    let beside = FilterSpec {
        channels: vec![ChannelSpec {
            framing: Framing::Itch,
            groups: vec![Group::new([233, 54, 12, 111], 26_477)],
            set: 0,
        }],
        guard: true,
        ..FilterSpec::default()
    };
    let filter = LoadedFilter::load(beside).unwrap_or_else(|why| panic!("{why}"));
    println!("beside ITCH: {} followed", filter.program().processed());
    assert!(filter.program().processed() < 12_000);
    Ok(())
}

fn whole() -> Result<(), Skip> {
    for kind in [Kind::Linux, Kind::Smoltcp] {
        let (pair, peer, address) = direct(kind, TALKING)?;
        inside(&pair, 0, || {
            let mut client = Client::connect(address);
            println!("{kind:?}: {}", client.delegate.in_use());
            client.talk(4_000, &mut Rng::new(1));
            let counts = client.finish(&peer, true);
            // How many depends on how often the peer has a core; that each is counted does not.
            assert!(counts.delegated > 0, "{counts}");
            assert_eq!(counts.delegated + counts.by_kernel(), 4_000);
            assert_eq!((counts.not_started, counts.written_twice), (0, 0));
            assert_eq!(counts.held, counts.injected, "{counts}");
        });
    }
    Ok(())
}

/// Every answer comes before its order is booked. Without the guard the kernel would drop it, and the peer
/// send it again.
fn early() -> Result<(), Skip> {
    for kind in [Kind::Linux, Kind::Smoltcp] {
        let (pair, peer, address) = direct(kind, TALKING)?;
        inside(&pair, 0, || {
            let mut client = Client::connect(address);
            client.early_answers(300);
            let counts = client.finish(&peer, true);
            assert_eq!(counts.held, counts.injected);
            assert_eq!((counts.no_room, counts.not_injected), (0, 0));
            // All of them without the guard; with it those during which this thread had no core for 200 ms.
            let again = peer.retransmissions();
            assert!(again <= 150, "{again} of 300 answers had to be sent again");
        });
    }
    Ok(())
}

/// The same where the system looks strictly at where packets come from.
fn strict() -> Result<(), Skip> {
    let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
    inside(&pair, 0, || {
        std::fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "1").expect("set");
        let mut client = Client::connect(address);
        client.early_answers(20);
        client.finish(&peer, true);
        let again = peer.retransmissions();
        assert!(again <= 10, "{again} of 20 answers had to be sent again");
    });
    Ok(())
}

fn bad_line(kind: Kind) -> Result<(), Skip> {
    for (seed, lost, late) in [(1, 10, 0), (2, 10, 20), (3, 0, 100)] {
        let line = Line::new(seed)?;
        let peer = line.start(kind, TALKING);
        let address = line.peer();
        line.faults.lost.store(lost, Ordering::Relaxed);
        line.faults.late.store(late, Ordering::Relaxed);
        line.near(|| {
            let mut client = Client::connect(address);
            client.talk(2_000, &mut Rng::new(seed));
            let counts = client.finish(&peer, true);
            // While losses are mended the kernel sends, which is most of the time on the worst of these
            // lines.
            assert!(counts.delegated > 0, "{counts}");
            assert_eq!(counts.written_twice, 0);
            if lost > 0 {
                assert!(counts.retransmissions > 0, "the line loses: {counts}");
            }
        });
    }
    Ok(())
}

fn bad_line_to_linux() -> Result<(), Skip> {
    bad_line(Kind::Linux)
}

fn bad_line_to_smoltcp() -> Result<(), Skip> {
    bad_line(Kind::Smoltcp)
}

fn delayed() -> Result<(), Skip> {
    let habits = Habits {
        replies: false,
        reads: true,
    };
    let (pair, peer, address) = direct(Kind::SlowLinux, habits)?;
    inside(&pair, 0, || {
        let mut client = Client::connect(address);
        client.talk(3_000, &mut Rng::new(5));
        let counts = client.finish(&peer, false);
        assert!(counts.delegated > 0, "{counts}");
    });
    Ok(())
}

fn window() -> Result<(), Skip> {
    for kind in [Kind::Linux, Kind::Smoltcp] {
        let habits = Habits {
            replies: false,
            reads: false,
        };
        let (pair, peer, address) = direct(kind, habits)?;
        inside(&pair, 0, || {
            let mut client = Client::connect(address);
            let refused = |own: &Client| own.delegate.counts().ordinary[Reason::PeerWindow as usize];
            let began = Instant::now();
            while refused(&client) == 0 {
                client.send(1_000).expect("sent");
                client.hear();
                let sent = Instant::now();
                while flight(&client.stream).expect("asked").outstanding_bytes > 0
                    && sent.elapsed() < Duration::from_millis(5)
                {
                    client.hear();
                }
                assert!(began.elapsed() < PATIENCE, "{}", client.delegate.counts());
            }
            for _ in 0..100 {
                client.send(1_000).expect("sent, or kept");
                client.hear();
            }
            assert!(client.delegate.counts().ordinary[Reason::Unsent as usize] > 0);
            peer.read();
            client.until("what was kept", |own| peer.received() == own.sent);
            // It goes on past the kernel.
            let before = client.delegate.counts().delegated;
            for _ in 0..100 {
                client.send(100).expect("sent");
                client.until("the peer", |own| peer.received() == own.sent);
            }
            let counts = client.finish(&peer, false);
            assert!(counts.delegated > before, "{counts}");
        });
    }
    Ok(())
}

fn reset() -> Result<(), Skip> {
    for kind in [Kind::Linux, Kind::Smoltcp] {
        let habits = Habits {
            replies: false,
            reads: false,
        };
        let (pair, peer, address) = direct(kind, habits)?;
        inside(&pair, 0, || {
            let mut client = Client::connect(address);
            for _ in 0..5 {
                client.send(100).expect("sent");
                client.hear();
            }
            peer.reset();
            let began = Instant::now();
            while !client.is_closed && client.send(100).is_ok() {
                client.hear();
                std::thread::sleep(Duration::from_millis(1));
                assert!(began.elapsed() < PATIENCE, "the reset was not noticed");
            }
            println!("{}", client.delegate.counts());
        });
    }
    Ok(())
}

fn full_buffer() -> Result<(), Skip> {
    let line = Line::new(4)?;
    let peer = line.start(Kind::Linux, TALKING);
    let address = line.peer();
    line.near(|| {
        let mut client = Client::connect(address);
        for _ in 0..20 {
            // Behind the back of the delegate, which believes in a large one; and nothing is acknowledged.
            force_send_buffer(&client.stream, 1).expect("set");
            line.faults.deaf.store(true, Ordering::Relaxed);
            for _ in 0..8 {
                client.send(900).expect("sent");
            }
            line.faults.deaf.store(false, Ordering::Relaxed);
            client.until("the answers", |own| own.heard == own.sent / REPLY * REPLY);
        }
        let counts = client.finish(&peer, true);
        assert!(counts.booked_again >= 20, "{counts}");
        assert_eq!(counts.written_twice, 0, "{counts}");
    });
    Ok(())
}

/// A connection may send so many segments before the first of them is acknowledged.
fn allow_at_once(pair: &VethPair, segments: &str) {
    let route = "route change 198.18.0.0/24 dev veth0 initcwnd";
    let words: Vec<&str> = route.split(' ').chain([segments]).collect();
    pair.ip(0, &words).expect("ip");
}

/// 28 mass quotes of 1,100 bytes, on a route that allows so many segments at once.
fn train() -> Result<(), Skip> {
    let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
    allow_at_once(&pair, "64");
    inside(&pair, 0, || {
        let mut client = Client::connect(address);
        let message = 28 * 1_100;
        for n in 1..=20 {
            client.send(message).expect("sent");
            let counts = client.delegate.counts();
            assert_eq!((counts.delegated, counts.booked), (n, n), "{counts}");
            assert_eq!(counts.segments, n * message.div_ceil(1_448), "{counts}");
            client.until("the answers", |own| own.heard == own.sent / REPLY * REPLY);
        }
        let counts = client.finish(&peer, true);
        assert_eq!((counts.by_kernel(), counts.not_started), (0, 0), "{counts}");
    });
    // What is more than may be on its way is sent by the kernel.
    let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
    inside(&pair, 0, || {
        let mut client = Client::connect(address);
        client.send(message_of(28)).expect("sent");
        let counts = client.finish(&peer, true);
        assert_eq!(counts.ordinary[Reason::CongestionWindow as usize], 1, "{counts}");
    });
    Ok(())
}

/// The same where market data has the interface's queue: a train leaves as one frame that is cut on its way,
/// and segment by segment over an interface that cuts none.
fn train_beside_market_data() -> Result<(), Skip> {
    for cuts in [true, false] {
        let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
        allow_at_once(&pair, "64");
        if !cuts {
            let short = ["link", "set", "veth0", "gso_max_size", "1500"];
            pair.ip(0, &short).expect("iproute2 of 2018 or later");
        }
        inside(&pair, 0, || {
            let _receiver = market_data();
            let mut client = Client::connect(address);
            assert!(client.delegate.in_use().contains("packet socket"));
            // A whole number of segments, one byte more, and many.
            for (n, message) in (1..).zip([1_448, 1_449, 2 * 1_448, 3_000, 28 * 1_100, 44 * 1_448]) {
                client.send(message).expect("sent");
                let counts = client.delegate.counts();
                assert_eq!((counts.delegated, counts.booked), (n, n), "{counts}");
                client.until("the answers", |own| own.heard == own.sent / REPLY * REPLY);
            }
            let burst: Vec<u8> = (client.sent..client.sent + 28 * 1_100).map(pattern).collect();
            arm(OnAllocation::Count);
            let launched = client.delegate.launch(&mut client.stream, &burst);
            let booked = launched.and_then(|()| client.delegate.settle(&mut client.stream));
            let count = disarm();
            booked.expect("launched and booked");
            assert_eq!(count.allocations, 0, "{count:?}");
            client.sent += burst.len() as u64;
            let counts = client.finish(&peer, true);
            assert_eq!((counts.by_kernel(), counts.not_started), (0, 0), "{counts}");
            assert_eq!(counts.segments, 1 + 2 + 2 + 3 + 22 + 44 + 22, "{counts}");
            assert_eq!(counts.retransmissions, 0, "{counts}");
            // One segment is no train.
            assert_eq!(counts.trains, if cuts { 6 } else { 0 }, "{counts}");
        });
    }
    Ok(())
}

/// The kernel keeps a small segment back while one of its own waits in the interface's queue. What is booked
/// then must count as sent all the same: else the peer acknowledges what the kernel does not know of, and a
/// loss is never mended.
fn corked() -> Result<(), Skip> {
    let habits = Habits {
        replies: false,
        reads: true,
    };
    let (pair, peer, address) = direct(Kind::Linux, habits)?;
    allow_at_once(&pair, "64");
    inside(&pair, 0, || {
        let mut client = Client::connect(address);
        client.send(REPLY).expect("sent");
        client.until("the peer", |own| peer.received() == own.sent);
        let slow = "qdisc replace dev veth0 root tbf rate 64kbit burst 1600 latency 20s";
        let slow: Vec<&str> = slow.split(' ').collect();
        pair.tc(0, &slow).expect("tc (iproute2) is there");
        for _ in 0..4 {
            let message: Vec<u8> = (client.sent..client.sent + 1_000).map(pattern).collect();
            client.stream.send(&message).expect("sent");
            client.sent += 1_000;
        }
        let before = client.delegate.counts().delegated;
        for _ in 0..3 {
            client.send(REPLY).expect("sent");
        }
        let unsent = flight(&client.stream).expect("asked").unsent_bytes;
        let counts = client.delegate.counts();
        assert!(counts.delegated > before, "{counts}");
        assert_eq!(unsent, 0, "booked, and the kernel does not know that it was sent");
        let fast = ["qdisc", "del", "dev", "veth0", "root"];
        pair.tc(0, &fast).expect("tc");
        client.finish(&peer, false);
    });
    Ok(())
}

const fn message_of(quotes: u64) -> u64 {
    quotes * 1_100
}

/// Sends a few messages, the last one not booked, and is killed.
fn child(venue: SocketAddr) -> ExitCode {
    let mut client = Client::connect(venue);
    for _ in 0..3 {
        client.send(REPLY).expect("sent");
        client.until("the answers", |own| own.heard == own.sent);
    }
    client.launch(REPLY).expect("launched");
    println!("launched");
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn killed() -> Result<(), Skip> {
    let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
    let child = child_that_says("launched", &pair, (CHILD, address));
    let began = Instant::now();
    while peer.received() < 4 * REPLY {
        assert!(began.elapsed() < PATIENCE, "the launched message did not arrive");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(peer.ended(), 0);
    kill(child);
    // The answer to what was never booked, sent again, finds nobody.
    let began = Instant::now();
    while peer.ended() == 0 {
        assert!(began.elapsed() < PATIENCE, "the peer was not told");
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("told after {:?}", began.elapsed());
    assert_eq!(peer.received(), 4 * REPLY, "whole, and nothing else");
    Ok(())
}

/// A second connection finds no free queue, and leaves by a packet socket.
fn two() -> Result<(), Skip> {
    let (one, first, address) = direct(Kind::Linux, TALKING)?;
    let other = TALKING;
    inside(&one, 0, || {
        let mut client = Client::connect(address);
        let way = Way::towards(address).unwrap_or_else(|why| panic!("{why}"));
        assert!(
            client.delegate.in_use().contains("AF_XDP"),
            "{}",
            client.delegate.in_use()
        );
        assert!(way.in_use().contains("packet socket"), "{}", way.in_use());
        client.talk(500, &mut Rng::new(11));
        let counts = client.finish(&first, true);
        assert!(counts.delegated > 0, "{counts}");
        // The first one's ring goes to the second one's successor, the guard stays.
        drop(client);
        drop(first);
        let second = start(&one, Kind::Linux, other);
        let stream = TcpStream::connect(address, Duration::from_secs(20)).expect("connected");
        let mut client = Client::of(way, stream);
        client.talk(500, &mut Rng::new(12));
        let counts = client.finish(&second, true);
        assert!(counts.delegated > 0, "{counts}");
    });
    Ok(())
}

/// A receiver that has all queues of the interface, with the guard in its program.
fn market_data() -> KernelReceiver {
    let spec = FilterSpec {
        channels: vec![ChannelSpec {
            framing: Framing::Any,
            groups: vec![Group::new([233, 54, 12, 111], 26_477)],
            set: 0,
        }],
        guard: true,
        ..FilterSpec::default()
    };
    let interface = Interface::find("veth0").expect("it is there");
    let receiver = KernelReceiver::attach(spec, &interface, &ReceiverConfig::default());
    receiver.expect("attached")
}

/// Market data by AF_XDP at the same interface: its program guards.
fn beside_a_filter() -> Result<(), Skip> {
    let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
    inside(&pair, 0, || {
        let receiver = market_data();
        let mut client = Client::connect(address);
        assert!(client.delegate.in_use().contains("packet socket"));
        client.early_answers(100);
        let counts = client.finish(&peer, true);
        assert_eq!(counts.held, counts.injected);
        // Without its program nothing is delegated any more.
        drop(receiver);
        let before = client.delegate.counts();
        std::thread::sleep(Duration::from_millis(1_100));
        client.hear();
        client.send(REPLY).expect("sent");
        let counts = client.finish(&peer, true);
        assert_eq!(counts.delegated, before.delegated, "{counts}");
        assert_eq!(counts.ordinary[Reason::Guard as usize], 1, "{counts}");
    });
    Ok(())
}

fn no_allocation() -> Result<(), Skip> {
    let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
    inside(&pair, 0, || {
        let mut client = Client::connect(address);
        let message: Vec<u8> = (0..200 * REPLY).map(pattern).collect();
        client.send(0).expect("nothing");
        arm(OnAllocation::Count);
        for part in message.chunks(REPLY as usize) {
            client
                .delegate
                .launch(&mut client.stream, part)
                .expect("launched");
            client.delegate.settle(&mut client.stream).expect("booked");
            client.sent += part.len() as u64;
            while client.heard < client.sent {
                client.hear();
            }
        }
        let count = disarm();
        assert_eq!(count.allocations, 0, "{count:?}");
        let counts = client.finish(&peer, true);
        assert!(counts.delegated > 0, "{counts}");
    });
    Ok(())
}

fn words() -> Result<(), Skip> {
    let pair = namespaces()?;
    inside(&pair, 0, || {
        let of = |peer: &str| match Way::towards(peer.parse().expect("an address")) {
            Ok(way) => panic!("{peer}: {way:?}"),
            Err(why) => why,
        };
        let own = of("127.0.0.1:1");
        assert!(matches!(own, DelegateError::NotEthernet { .. }), "{own}");
        assert!(own.to_string().contains("reached by lo"), "{own}");
        let none = of("192.0.2.1:1");
        assert!(none.to_string().contains("no route to 192.0.2.1"), "{none}");
        let six = of("[::1]:1");
        assert!(six.to_string().contains("for IPv4"), "{six}");
    });
    // Another process's program.
    let held = namespaces()?;
    inside(&held, 0, || {
        let spec = FilterSpec {
            channels: vec![ChannelSpec {
                framing: Framing::Any,
                groups: vec![Group::new([233, 54, 12, 111], 26_477)],
                set: 0,
            }],
            ..FilterSpec::default()
        };
        let interface = Interface::find("veth0").expect("it is there");
        let _receiver = KernelReceiver::attach(spec, &interface, &ReceiverConfig::default());
        let why = Way::towards((held.address(1), PORT).into()).expect_err("the hook is taken");
        assert!(why.to_string().contains("another XDP program"), "{why}");
    });
    Ok(())
}

/// The venue's host has another network card: what goes to the old one is lost, and sent again.
fn other_hop() -> Result<(), Skip> {
    let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
    inside(&pair, 0, || {
        let mut client = Client::connect(address);
        client.talk(200, &mut Rng::new(21));
        let before = client.finish(&peer, true);
        assert!(before.delegated > 0, "{before}");
        let card = "02:00:00:00:18:77";
        pair.ip(1, &["link", "set", "veth0", "address", card])
            .expect("ip");
        // Before the neighbour's new address is known here.
        for _ in 0..5 {
            client.send(REPLY).expect("sent");
        }
        let hop = pair.address(1).to_string();
        let entry = [
            "neigh",
            "replace",
            &hop,
            "lladdr",
            card,
            "dev",
            "veth0",
            "nud",
            "permanent",
        ];
        pair.ip(0, &entry).expect("ip");
        client.until("what was sent to the old one", |own| peer.received() == own.sent);
        // It is asked for every second.
        let began = Instant::now();
        let stale = client.delegate.counts().delegated;
        while client.delegate.counts().delegated < stale + 100 {
            client.send(REPLY).expect("sent");
            client.until("the answer", |own| own.heard == own.sent / REPLY * REPLY);
            pause(Duration::from_millis(5));
            assert!(began.elapsed() < PATIENCE, "{}", client.delegate.counts());
        }
        let counts = client.finish(&peer, true);
        assert!(counts.retransmissions > before.retransmissions, "{counts}");
        assert_eq!(counts.written_twice, 0, "{counts}");
    });
    Ok(())
}

/// The interface goes down, so that nothing of the ring leaves, and comes back.
fn full_ring() -> Result<(), Skip> {
    let habits = Habits {
        replies: false,
        reads: true,
    };
    let (pair, peer, address) = direct(Kind::Linux, habits)?;
    allow_at_once(&pair, "600");
    inside(&pair, 0, || {
        let mut client = Client::connect(address);
        pair.ip(0, &["link", "set", "veth0", "down"]).expect("ip");
        for _ in 0..300 {
            client.launch(50).expect("launched, or kept");
        }
        client.delegate.settle(&mut client.stream).expect("booked");
        let counts = client.delegate.counts();
        assert!(counts.ordinary[Reason::Ring as usize] > 0, "{counts}");
        assert!(counts.not_started >= 256, "{counts}");
        pair.ip(0, &["link", "set", "veth0", "up"]).expect("ip");
        client.until("everything", |own| peer.received() == own.sent);
        // And it goes on past the kernel.
        let began = Instant::now();
        while client.delegate.counts().delegated == counts.delegated {
            client.send(50).expect("sent");
            client.until("the peer", |own| peer.received() == own.sent);
            pause(Duration::from_millis(5));
            assert!(began.elapsed() < PATIENCE, "{}", client.delegate.counts());
        }
        client.finish(&peer, false);
    });
    Ok(())
}

/// CAP_NET_ADMIN is given up in mid-session: what was sent is written as well, and the kernel sends from then
/// on.
fn rights() -> Result<(), Skip> {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let (pair, peer, address) = direct(Kind::Linux, TALKING)?;
    inside(&pair, 0, || {
        let mut client = Client::connect(address);
        client.talk(50, &mut Rng::new(22));
        let before = client.finish(&peer, true);
        let mut sets = capabilities(None).expect("asked");
        sets.effective.remove(CapabilitySet::NET_ADMIN);
        set_capabilities(None, sets).expect("given up");
        client.launch(REPLY).expect("launched");
        let launched = client.delegate.counts().delegated;
        client.delegate.settle(&mut client.stream).expect("written");
        let counts = client.delegate.counts();
        assert_eq!(counts.written_twice, launched - before.delegated, "{counts}");
        // It is noticed when the kernel is asked for numbers.
        let began = Instant::now();
        while client.delegate.counts().ordinary[Reason::State as usize] == 0 {
            client.send(REPLY).expect("sent");
            client.until("the answer", |own| own.heard == own.sent / REPLY * REPLY);
            pause(Duration::from_millis(5));
            assert!(began.elapsed() < PATIENCE, "{}", client.delegate.counts());
        }
        client.finish(&peer, true);
    });
    Ok(())
}
