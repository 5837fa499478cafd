//! What needs root: the kernel's verifier, its own run of every program, veth pairs between network
//! namespaces. Where the system does not allow it, tests are skipped and counted, each with the reason; with
//! `TICKWIRE_ROOT_TESTS=1` that is a failure.
//!
//! A harness of its own, as whether a test can run is known only when it runs.

#[path = "../../kernel/tests/common/mod.rs"]
mod common;
mod harness;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddrV4;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{Filter, LINES, Reader, WANTED, arrivals, framed, said, session, spec, stream};
use harness::{Skip, Test, namespaces, needs_capabilities};
use tickwire_book::{Books, BooksConfig};
use tickwire_exchange::generate_itch;
use tickwire_feed::{ArbiterConfig, FeedHandler, FeedState, ItchConfig, ItchDecoder, ItchFeed, Line};
use tickwire_kernel::asm::action;
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group};
use tickwire_kernel::interp::Map;
use tickwire_kernel::layout::{self, Count, META_SIZE, Meta};
use tickwire_kernelpath::{KernelReceiver, LoadedFilter, ReceiverConfig};
use tickwire_market::{InstrumentId, MarketEvent, Nanos, SeqNo, Symbol};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::netns::VethPair;
use tickwire_runtime::udp::MulticastSender;
use tickwire_runtime::xdp::XdpMode;
use tickwire_testdata::Rng;
use tickwire_wire::itch50;
use tickwire_wire::moldudp64::{PacketBuilder, Request};

const TESTS: &[(&str, Test)] = &[
    ("the_verifier_accepts_every_program_within_its_ceiling", verifier),
    ("verdicts_are_those_of_the_interpreter", verdicts),
    ("the_card_is_asked_where_its_driver_can_be", wire_time),
    ("two_cpus_on_one_channel_lose_nothing", race),
    ("orders_of_one_set_are_told_anew_and_others_stay", orders),
    ("books_with_the_filter_are_books_without", books),
    ("a_second_program_is_refused_in_words", second),
    ("kill_9_leaves_nothing_behind", killed),
    ("without_capabilities_the_words_name_them", unprivileged),
    ("what_the_program_leaves_to_the_kernel_is_heard", passed),
    ("a_ring_that_is_not_read_is_counted_and_disarms", overrun),
];

/// Set in children of this program: what they are to do.
const CHILD: &str = "TICKWIRE_KERNELPATH_CHILD";

fn main() -> ExitCode {
    match std::env::var(CHILD).as_deref() {
        Ok("hold") => return child_holds(),
        Ok("load") => return child_loads(),
        _ => {}
    }
    harness::run(TESTS)
}

/// Two threads that wait for each other, but not for ever.
#[derive(Default)]
struct Steps(AtomicU32);

impl Steps {
    fn reach(&self, step: u32) {
        self.0.store(step, Ordering::SeqCst);
    }

    fn wait_for(&self, step: u32) {
        let began = Instant::now();
        while self.0.load(Ordering::SeqCst) < step {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "step {step} was not reached"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn load(spec: FilterSpec) -> Result<LoadedFilter, Skip> {
    needs_capabilities()?;
    match LoadedFilter::load(spec) {
        Ok(filter) => Ok(filter),
        Err(error) if error.to_string().contains("forbids BPF") => Err(Skip(error.to_string())),
        Err(error) => panic!("{error}"),
    }
}

/// What the streams' receiver wants, as the interpreter's filter has it.
fn say_wanted(loaded: &mut LoadedFilter, framing: Framing) {
    let (bits, refused) = said(framing);
    bits.into_iter().for_each(|bit| loaded.want(0, bit, true));
    refused.into_iter().for_each(|key| loaded.refuse(0, key));
}

fn group_of(n: u16) -> Group {
    Group::new([233, 1, (n >> 8) as u8, n as u8], 1000 + n)
}

fn channel(framing: Framing, n: u16, set: u16) -> ChannelSpec {
    ChannelSpec {
        framing,
        groups: vec![group_of(2 * n), group_of(2 * n + 1)],
        set,
    }
}

fn verifier() -> Result<(), Skip> {
    let all: Vec<ChannelSpec> = Framing::ALL
        .into_iter()
        .enumerate()
        .map(|(n, framing)| channel(framing, n as u16, n as u16))
        .collect();
    let of = |channels: Vec<ChannelSpec>, messages_max| FilterSpec {
        channels,
        sets: Framing::ALL.len() as u16,
        messages_max,
        ..FilterSpec::default()
    };
    let one = |framing| vec![channel(framing, 0, 0)];
    let many = |framing| (0..64).map(|n| channel(framing, n, 0)).collect();
    for (name, spec, ceiling) in [
        ("ITCH, 64 messages", of(one(Framing::Itch), 64), 5_000),
        ("ITCH, 128 messages", of(one(Framing::Itch), 128), 10_000),
        ("ITCH, 64 channels", of(many(Framing::Itch), 64), 15_000),
        ("NYSE XDP, 64 messages", of(one(Framing::Nyse), 64), 8_000),
        ("MDP 3.0, 64 messages", of(one(Framing::Mdp3), 64), 100_000),
        ("MDP 3.0, 128 messages", of(one(Framing::Mdp3), 128), 200_000),
        ("PITCH, 64 messages", of(one(Framing::Pitch), 64), 150_000),
        ("PITCH, 128 messages", of(one(Framing::Pitch), 128), 400_000),
        ("CQS, 64 messages", of(one(Framing::Cqs), 64), 60_000),
        ("UQDF, 64 messages", of(one(Framing::Uqdf), 64), 20_000),
        ("OpenBook, 64 messages", of(one(Framing::OpenBook), 64), 20_000),
        (
            "all with statistics, 64 messages",
            FilterSpec {
                statistics: true,
                ..of(all.clone(), 64)
            },
            500_000,
        ),
        ("all, 64 messages", of(all, 64), 250_000),
        (
            "any protocol, 256 channels",
            of((0..256).map(|n| channel(Framing::Any, n, 0)).collect(), 64),
            200_000,
        ),
    ] {
        let length = spec.program().expect("a program").instructions().len();
        let began = Instant::now();
        let filter = load(spec)?;
        let processed = filter.program().processed();
        println!(
            "{name}: {length} instructions, {processed} followed, loaded in {:?}",
            began.elapsed()
        );
        assert!(
            processed > 0 && processed <= ceiling,
            "{name}: the verifier followed {processed}, not {ceiling}"
        );
    }
    Ok(())
}

/// The same packets through the kernel and the interpreter: good, lossy and broken ones; then the same state.
fn verdicts() -> Result<(), Skip> {
    let framings = Framing::ALL.into_iter();
    for (framing, statistics) in framings.flat_map(|framing| [(framing, false), (framing, true)]) {
        let spec = FilterSpec {
            statistics,
            ..spec(framing)
        };
        let mut loaded = load(spec.clone())?;
        let mut model = Filter::of(&spec);
        let queues = loaded.spec().queues as usize;
        // Nobody has bound a socket: a redirection falls back to the kernel's stack, in both.
        model
            .machine
            .insert(layout::SOCKETS, Map::Sockets(vec![false; queues]));
        say_wanted(&mut loaded, framing);
        let rng = &mut Rng::new(7);
        let packets = stream(framing, 400, rng, 25);
        let start = |loaded: &mut LoadedFilter, model: &mut Filter, next| {
            loaded.arm(0, session(framing), next);
            model.arm_open(next, framing == Framing::Mdp3);
        };
        loaded.set_session(0, session(framing));
        start(&mut loaded, &mut model, 1);
        let mut actions = BTreeMap::new();
        for (n, (at, line)) in arrivals(packets.len(), rng, 30, 40).into_iter().enumerate() {
            let mut payload = packets[at].payload.clone();
            if rng.below(12) == 0 {
                let place = rng.below(payload.len() as u64) as usize;
                payload[place] = rng.below(256) as u8;
            }
            let mut bytes = framed(&payload, line, rng.below(3) as usize);
            match rng.below(30) {
                0 => bytes.truncate(14.max(rng.below(bytes.len() as u64) as usize)),
                1 => bytes.extend([0xEE; 20]),
                _ => {}
            }
            let expected = model.machine.run(&model.program, &bytes, 0).expect("no fault");
            let tested = loaded.program().test(&bytes, 1).expect("a test run");
            assert_eq!(
                tested.action, expected.action as u32,
                "{framing:?} packet {n}: {bytes:02X?}"
            );
            let front = tested.bytes.len() - bytes.len();
            assert_eq!(front, expected.meta.len(), "{framing:?} packet {n}");
            if front == META_SIZE {
                let of = |bytes: &[u8]| Meta::read(bytes.try_into().expect("32 bytes")).expect("ours");
                let (kernel, model) = (of(&tested.bytes[..front]), of(&expected.meta));
                assert!(kernel.hook_ns > 0 && kernel.wire_ns == 0);
                assert_eq!(
                    (kernel.channel, kernel.delivery, kernel.word),
                    (model.channel, model.delivery, model.word)
                );
            }
            *actions.entry(tested.action).or_insert(0) += 1;
            if n % 150 == 149 {
                start(&mut loaded, &mut model, packets[at].seq + packets[at].count);
            }
        }
        for what in Count::ALL {
            assert_eq!(
                loaded.count(0, what),
                model.counter(what),
                "{framing:?}: {}",
                what.name()
            );
        }
        assert_eq!(loaded.holds(0), model.holds());
        let counts = statistics && framing.counts_instruments();
        let (mut sum, is_keyed) = (0, framing.is_keyed());
        for instrument in 0..200 {
            let of_kernel = match is_keyed {
                true => loaded.dropped_of_key(0, common::key(framing, instrument)),
                false => loaded.dropped(0, instrument as usize),
            };
            let expected = counts.then(|| model.dropped_instrument(instrument as usize));
            assert_eq!(of_kernel, expected, "{framing:?}: {instrument}");
            sum += expected.unwrap_or(0);
        }
        assert_eq!(sum > 100, counts, "{framing:?}: {sum}");
        if let Some(Map::Hash { entries, .. }) = model.machine.map(layout::ORDERS) {
            assert!(!entries.is_empty());
            for (key, value) in entries {
                let order = u64::from_ne_bytes(*key.first_chunk().expect("a number"));
                let messages = value.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
                let found = loaded.order_messages(0, order).expect("a look-up");
                assert_eq!(found, messages, "order {order}");
            }
        }
        println!("{framing:?}: {actions:?} (1 dropped, 2 delivered without a socket)");
        assert!(actions[&(action::DROP as u32)] > 50 && actions[&(action::PASS as u32)] > 50);
    }
    Ok(())
}

/// Between virtual interfaces the driver can be asked and has no card: programs that ask are loaded and
/// attached in it, every packet is delivered as without, and the card's time is absent, not 0. Behind the
/// driver nobody asks, and that is said.
fn wire_time() -> Result<(), Skip> {
    let pair = namespaces()?;
    let (pair, framings) = (&pair, Framing::ALL.into_iter().chain([Framing::Any]));
    for framing in framings {
        inside(pair, 1, || {
            let interface = Interface::find("veth0").expect("an end");
            for (trigger, guard) in [(false, false), (true, true)] {
                let asking = FilterSpec {
                    wire_time: true,
                    trigger: trigger && matches!(framing, Framing::Itch | Framing::Nyse),
                    guard,
                    ..spec(framing)
                };
                let loaded = LoadedFilter::load_for(asking.clone(), &interface);
                let loaded = loaded.unwrap_or_else(|why| panic!("{framing:?}: {why}"));
                assert!(loaded.program().processed() > 0);
                // A program that is bound to no device must not ask.
                assert!(LoadedFilter::load(asking).is_err());
            }
        });
    }
    for (mode, wire_time) in [
        (None, true),
        (Some(XdpMode::Native), true),
        (Some(XdpMode::Native), false),
        (Some(XdpMode::Generic), true),
    ] {
        let steps = &Steps::default();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                pair.enter(0).expect("entered");
                let to = SocketAddrV4::new(LINES[0].address.into(), LINES[0].port);
                let interface = Interface::find("veth0").expect("an end");
                let sender = MulticastSender::open(to, &interface, 1).expect("a sender");
                steps.wait_for(1);
                for n in 0..200_u8 {
                    sender.send(&[n; 100]).expect("sent");
                }
            });
            inside(pair, 1, || {
                let interface = Interface::find("veth0").expect("an end");
                let config = ReceiverConfig {
                    mode,
                    wire_time,
                    frames: 1 << 10,
                    ..ReceiverConfig::default()
                };
                let mut receiver = KernelReceiver::open(spec(Framing::Any), &interface, &config)
                    .unwrap_or_else(|why| panic!("{mode:?}: {why}"));
                let said = receiver.in_use();
                println!("{said}");
                let asks = wire_time && mode != Some(XdpMode::Generic);
                assert_eq!(receiver.card().is_asked(), asks, "{said}");
                assert_eq!(said.contains("no times of the card"), !asks, "{said}");
                steps.reach(1);
                let (began, mut taken) = (Instant::now(), 0_u8);
                while taken < 200 {
                    assert!(began.elapsed() < Duration::from_secs(60), "{taken} came");
                    receiver.settle();
                    while let Some(delivery) = receiver.recv() {
                        assert_eq!(delivery.payload, [taken; 100]);
                        let stamp = delivery.stamp;
                        assert!(stamp.hook_ns.is_some());
                        assert_eq!(
                            (stamp.wire_ns, stamp.wire_monotonic_ns, stamp.kernel_ns),
                            (None, None, None)
                        );
                        taken += 1;
                    }
                }
                assert_eq!((receiver.card().stamped(), receiver.card().error_ns()), (0, None));
            });
        });
    }
    Ok(())
}

/// Two threads give one channel's packets to the program at once, each a line.
fn race() -> Result<(), Skip> {
    for framing in Framing::ALL {
        let mut loaded = load(spec(framing))?;
        say_wanted(&mut loaded, framing);
        let packets = stream(framing, 4000, &mut Rng::new(11), 30);
        let epoch = loaded.arm(0, session(framing), 1);
        let delivered = Mutex::new(Vec::new());
        let seen = Mutex::new(vec![false; packets.len()]);
        let places = [AtomicU32::new(0), AtomicU32::new(0)];
        std::thread::scope(|scope| {
            for line in 0..2 {
                let (loaded, packets, delivered, seen) = (&loaded, &packets, &delivered, &seen);
                let places = &places;
                scope.spawn(move || {
                    let mut rng = Rng::new(line as u64);
                    for (at, packet) in packets.iter().enumerate() {
                        if rng.below(50) == 0 {
                            continue;
                        }
                        let bytes = framed(&packet.payload, line, 0);
                        // Side by side, or one would only see what the other has left far behind.
                        places[line].store(at as u32, Ordering::SeqCst);
                        while places[1 - line].load(Ordering::SeqCst).saturating_add(1) < at as u32 {
                            std::thread::yield_now();
                        }
                        let tested = loaded.program().test(&bytes, 1).expect("a test run");
                        seen.lock().expect("no panic")[at] = true;
                        if tested.action == action::PASS as u32 {
                            let meta: &[u8; META_SIZE] = tested.bytes.first_chunk().expect("metadata");
                            delivered
                                .lock()
                                .expect("no panic")
                                .push((Meta::read(meta).expect("ours"), at));
                        }
                    }
                    places[line].store(u32::MAX, Ordering::SeqCst);
                });
            }
        });
        let (mut delivered, seen) = (
            delivered.into_inner().expect("no panic"),
            seen.into_inner().expect("no panic"),
        );
        delivered.sort_by_key(|(meta, _)| meta.delivery);
        let mut reader = Reader::new();
        reader.epoch = epoch;
        for (meta, at) in delivered {
            reader.on_delivery(meta, packets[at].seq, packets[at].count);
        }
        for (packet, seen) in packets.iter().zip(seen) {
            for number in packet.seq..packet.seq + packet.count {
                assert!(
                    !(seen && packet.wanted) || reader.got.contains(&number),
                    "{framing:?}: {number} was lost"
                );
                assert!(
                    seen || !reader.skipped.contains(&number),
                    "{framing:?}: {number} was called seen"
                );
            }
        }
        let of = |what| loaded.count(0, what);
        println!(
            "{framing:?}: {} filtered, {} duplicates, {} delivered, {} races",
            of(Count::Filtered),
            of(Count::Duplicate),
            of(Count::Wanted),
            of(Count::Race)
        );
    }
    Ok(())
}

/// The table of orders in the kernel: full, emptied of one set's orders while another's stay, filled again;
/// and keys that are refused.
fn orders() -> Result<(), Skip> {
    let mut loaded = load(FilterSpec {
        channels: vec![channel(Framing::Pitch, 0, 0), channel(Framing::Pitch, 1, 1)],
        sets: 2,
        orders_max: 64,
        statistics: true,
        ..FilterSpec::default()
    })?;
    let followed = |loaded: &LoadedFilter, set| {
        let known = |order: &u64| loaded.order_messages(set, *order).expect("a look-up").is_some();
        (0..200).filter(known).count()
    };
    (0..10).for_each(|order| loaded.follow(1, order).expect("room"));
    // One that is followed already takes no more room.
    (0..10).for_each(|order| loaded.follow(1, order).expect("room"));
    let taken = (0..200)
        .take_while(|order| loaded.follow(0, *order).is_ok())
        .count();
    assert_eq!(taken, 54);
    assert_eq!(loaded.follow_none(0).expect("emptied"), 54);
    assert_eq!((followed(&loaded, 0), followed(&loaded, 1)), (0, 10));
    loaded.follow(0, 199).expect("room again");
    assert_eq!((followed(&loaded, 0), followed(&loaded, 1)), (1, 10));

    for key in 0..1_000 {
        loaded.refuse(1, key);
    }
    assert!((0..1_000).all(|key| loaded.refuses(1, key) && !loaded.refuses(0, key)));
    assert!((1_000..2_000).all(|key| !loaded.refuses(1, key)));
    loaded.refuse_none(1);
    assert!((0..1_000).all(|key| !loaded.refuses(1, key)));
    Ok(())
}

const SYMBOLS: u16 = 60;
const SESSION: [u8; 10] = *b"BOOKS00001";

/// A session of the simulated exchange in packets, with its symbols by number.
fn day() -> (Vec<(u64, Vec<u8>)>, Vec<Symbol>) {
    let (mut packets, mut symbols) = (Vec::new(), vec![Symbol::default(); usize::from(SYMBOLS) + 1]);
    let (mut seq, mut waiting): (u64, Vec<Vec<u8>>) = (1, Vec::new());
    let mut rng = Rng::new(3);
    let mut flush = |waiting: &mut Vec<Vec<u8>>| {
        let mut buffer = [0; 1400];
        let mut builder = PacketBuilder::new(&mut buffer, SESSION, SeqNo(seq));
        for message in waiting.iter() {
            assert!(builder.push(message));
        }
        let length = builder.finish();
        packets.push((seq, buffer[..length].to_vec()));
        seq += waiting.len() as u64;
        waiting.clear();
    };
    generate_itch(5, 30_000, SYMBOLS, &mut |message: &[u8]| {
        if let Ok(itch50::Message::StockDirectory(m)) = itch50::parse(message) {
            symbols[usize::from(m.locate.get())] = m.stock.symbol().expect("a name");
        }
        waiting.push(message.to_vec());
        if waiting.len() as u64 > rng.below(6) {
            flush(&mut waiting);
        }
    });
    if !waiting.is_empty() {
        flush(&mut waiting);
    }
    (packets, symbols)
}

fn feed(wanted: &[Symbol]) -> (ItchFeed, Books) {
    let decoder = ItchDecoder::new(ItchConfig {
        instruments_max: u32::from(SYMBOLS) + 1,
        symbols: Some(wanted.to_vec()),
        ..ItchConfig::default()
    });
    let books = Books::new(BooksConfig {
        instruments: u32::from(SYMBOLS) + 1,
        orders: 1 << 17,
        levels: 1 << 14,
        ..BooksConfig::default()
    });
    (FeedHandler::new(ArbiterConfig::default(), decoder), books)
}

/// Books of a few symbols, over a veth pair whose lines lose and reorder, with the filter and without.
fn books() -> Result<(), Skip> {
    let pair = namespaces()?;
    let (packets, symbols) = day();
    let chosen = [3_usize, 17, 42];
    let wanted: Vec<Symbol> = chosen.iter().map(|n| symbols[*n]).collect();

    // Without a network: the truth.
    let (mut plain, mut truth) = feed(&wanted);
    for (_, packet) in &packets {
        plain.on_packet(Nanos(1), Line::A, packet, &mut |event: &MarketEvent| {
            truth.apply(event);
        });
    }
    for mode in [XdpMode::Generic, XdpMode::Native] {
        let (mut filtered, mut have) = feed(&wanted);
        let (packets, pair, symbols) = (&packets, &pair, &symbols);
        let ready = &Steps::default();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                pair.enter(0).expect("entered");
                let lines = LINES.map(|line| {
                    let to = SocketAddrV4::new(line.address.into(), line.port);
                    let interface = Interface::find("veth0").expect("an end");
                    MulticastSender::open(to, &interface, 1).expect("a sender")
                });
                ready.wait_for(1);
                let mut rng = Rng::new(99);
                let mut late: Option<(usize, usize)> = None;
                for (at, (_, packet)) in packets.iter().enumerate() {
                    // One packet in 40 is on neither line, and has to be asked for.
                    let gone = rng.below(40) == 0 && at + 1 < packets.len();
                    for (line, sender) in lines.iter().enumerate() {
                        if gone || rng.below(10) == 0 && line == 1 {
                            continue;
                        }
                        if rng.below(15) == 0 && late.is_none() && at + 1 < packets.len() {
                            late = Some((at, line));
                            continue;
                        }
                        sender.send(packet).expect("sent");
                    }
                    if let Some((other, line)) = late.filter(|(other, _)| *other < at) {
                        lines[line].send(&packets[other].1).expect("sent");
                        late = None;
                    }
                    // Not faster than a thread that shares its core with others reads.
                    if at % 32 == 0 {
                        std::thread::sleep(Duration::from_micros(300));
                    }
                }
                let (next, _) = packets.last().expect("packets");
                // Heartbeats say where the stream ends.
                let end = next + 1;
                for _ in 0..20 {
                    let mut buffer = [0; 64];
                    let length = PacketBuilder::new(&mut buffer, SESSION, SeqNo(end)).finish();
                    lines[0].send(&buffer[..length]).expect("sent");
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
            let receiver = scope.spawn(move || {
                pair.enter(1).expect("entered");
                let interface = Interface::find("veth0").expect("an end");
                let config = ReceiverConfig {
                    mode: Some(mode),
                    frames: 1 << 14,
                    ..ReceiverConfig::default()
                };
                let mut receiver =
                    KernelReceiver::open(spec(Framing::Itch), &interface, &config).expect("a receiver");
                println!("{}", receiver.in_use());
                for n in &chosen {
                    receiver.filter_mut().want(0, *n, true);
                }
                receiver.filter_mut().arm_itch(0, SESSION, 1);
                ready.reach(1);
                let began = Instant::now();
                let mut quiet = Instant::now();
                let mut stamps = 0;
                let mut asked = [0; 64];
                let mut sink = |event: &MarketEvent| {
                    have.apply(event);
                };
                while quiet.elapsed() < Duration::from_millis(400)
                    && began.elapsed() < Duration::from_secs(60)
                {
                    let now = Nanos(began.elapsed().as_nanos() as u64 + 1);
                    while let Some(delivery) = receiver.recv() {
                        quiet = Instant::now();
                        stamps += u64::from(delivery.stamp.hook_ns.is_some());
                        if let Some(next) = delivery.seen_up_to {
                            filtered.seen_up_to(now, SeqNo(next));
                        }
                        let line = if delivery.group == LINES[0] {
                            Line::A
                        } else {
                            Line::B
                        };
                        filtered.on_packet(now, line, delivery.payload, &mut sink);
                    }
                    if filtered.poll_timeout().is_some_and(|at| at <= now) {
                        filtered.handle_timeout(now, &mut sink);
                    }
                    if let Some(request) = filtered.poll_transmit(&mut asked) {
                        quiet = Instant::now();
                        let request = Request::parse(request).expect("a request");
                        answer(packets, request.seq.0, request.count.into(), |bytes| {
                            filtered.on_packet(now, Line::Retransmit, bytes, &mut sink);
                        });
                    }
                }
                let drops = receiver.drops().expect("statistics");
                (
                    filtered,
                    have,
                    receiver.filter().count(0, Count::Filtered),
                    drops,
                    stamps,
                )
            });
            let (filtered, have, dropped, drops, stamps) = receiver.join().expect("no panic");
            assert_eq!(filtered.state(), FeedState::Live, "drops {drops:?}");
            assert_eq!(filtered.next_seq(), plain.next_seq());
            println!(
                "{mode}: {} packets, {dropped} dropped as unwanted, {stamps} with a stamp, {drops:?}",
                packets.len()
            );
            assert!(dropped as usize > packets.len() / 2 && stamps > 0);
            for n in chosen {
                let id = InstrumentId(n as u32);
                assert_eq!(have.digest(id), truth.digest(id), "the book of {}", symbols[n]);
            }
        });
    }
    Ok(())
}

/// The messages of a range, as a retransmission server sends them.
fn answer(packets: &[(u64, Vec<u8>)], first: u64, count: u64, mut send: impl FnMut(&[u8])) {
    for (seq, packet) in packets {
        let parsed = tickwire_wire::moldudp64::parse(packet).expect("whole");
        if parsed.next_seq().0 > first && *seq < first + count {
            send(packet);
        }
    }
}

/// A datagram in fragments is none of the program's: it comes by the ordinary socket of its group, beside
/// those that come by the ring.
fn passed() -> Result<(), Skip> {
    let pair = namespaces()?;
    let (pair, steps) = (&pair, &Steps::default());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            pair.enter(0).expect("entered");
            let to = SocketAddrV4::new(LINES[1].address.into(), LINES[1].port);
            let interface = Interface::find("veth0").expect("an end");
            let sender = MulticastSender::open(to, &interface, 1).expect("a sender");
            steps.wait_for(1);
            sender.send(&[7; 3000]).expect("sent in fragments");
            sender.send(&[8; 300]).expect("sent whole");
            steps.reach(2);
        });
        inside(pair, 1, || {
            let mut receiver = open("veth0").expect("a receiver");
            steps.reach(1);
            steps.wait_for(2);
            let began = Instant::now();
            let (mut by_ring, mut by_socket, mut buffer) = (0, 0, [0; 4096]);
            while (by_ring, by_socket) == (0, 0) || by_ring + by_socket < 2 {
                assert!(
                    began.elapsed() < Duration::from_secs(20),
                    "{by_ring} by the ring, {by_socket} by a socket"
                );
                while let Some(delivery) = receiver.recv() {
                    assert_eq!((delivery.group, delivery.payload), (LINES[1], &[8; 300][..]));
                    by_ring += 1;
                }
                for member in receiver.passed() {
                    if let Some(datagram) = member.recv(&mut buffer).expect("no error") {
                        assert_eq!(datagram.bytes, [7; 3000]);
                        by_socket += 1;
                    }
                }
            }
            assert_eq!((by_ring, by_socket), (1, 1));
            // The program has said that sockets are worth a look: three fragments.
            assert_eq!(receiver.aside(), 3);
        });
    });
    Ok(())
}

fn open(interface: &str) -> Result<KernelReceiver, String> {
    let interface = Interface::find(interface).map_err(|e| e.to_string())?;
    let config = ReceiverConfig {
        frames: 1 << 10,
        ..ReceiverConfig::default()
    };
    KernelReceiver::open(spec(Framing::Itch), &interface, &config).map_err(|e| e.to_string())
}

/// Does something in an end's namespace, on a thread of its own.
fn inside<T: Send>(pair: &VethPair, end: usize, what: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            pair.enter(end).expect("entered");
            what()
        });
        thread.join().expect("no panic")
    })
}

fn second() -> Result<(), Skip> {
    let pair = namespaces()?;
    inside(&pair, 1, || {
        let first = open("veth0").expect("the first");
        let words = open("veth0").expect_err("a second");
        assert!(
            words.contains("interface veth0 has another XDP program"),
            "{words}"
        );
        drop(first);
        open("veth0").expect("the first has gone");
    });
    Ok(())
}

/// A child: takes an interface and waits.
fn child_holds() -> ExitCode {
    match open("veth0") {
        Ok(_receiver) => {
            println!("ready");
            std::thread::sleep(Duration::from_secs(60));
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn killed() -> Result<(), Skip> {
    let pair = namespaces()?;
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new("ip")
        .args(["netns", "exec", pair.name(1)])
        .arg(&program)
        .env(CHILD, "hold")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output"))
        .read_line(&mut line)
        .expect("a line");
    assert_eq!(line.trim(), "ready");
    let busy = inside(&pair, 1, || open("veth0").expect_err("the child has it"));
    assert!(busy.contains("another XDP program"), "{busy}");
    child.kill().expect("killed");
    child.wait().expect("gone");
    // Sockets and program go with the process; the kernel may take a moment.
    let freed = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        inside(&pair, 1, || open("veth0").is_ok())
    });
    assert!(freed, "the interface is still taken");
    Ok(())
}

/// A child without capabilities: says why it cannot.
fn child_loads() -> ExitCode {
    match LoadedFilter::load(spec(Framing::Itch)) {
        Ok(_) => println!("loaded"),
        Err(error) => println!("{error}"),
    }
    ExitCode::SUCCESS
}

fn unprivileged() -> Result<(), Skip> {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new("setpriv")
        .args(["--bounding-set=-all", "--inh-caps=-all"])
        .arg(&program)
        .env(CHILD, "load")
        .output()
        .map_err(|why| Skip(format!("setpriv (util-linux) cannot be run: {why}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Skip(format!("setpriv takes no capabilities away here: {said}")));
    }
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        words.contains("lacks CAP_BPF, CAP_NET_ADMIN, CAP_NET_RAW, CAP_PERFMON"),
        "{words}"
    );
    assert!(words.contains("setcap"), "{words}");
    Ok(())
}

/// A reader that does not read: the kernel counts what finds no room, the next delivery says how many are
/// missing, and the channel delivers everything from then on.
fn overrun() -> Result<(), Skip> {
    let pair = namespaces()?;
    let packets = stream(Framing::Itch, 600, &mut Rng::new(2), 1);
    let (pair, packets, steps) = (&pair, &packets, &Steps::default());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            pair.enter(0).expect("entered");
            let to = SocketAddrV4::new(LINES[0].address.into(), LINES[0].port);
            let interface = Interface::find("veth0").expect("an end");
            let sender = MulticastSender::open(to, &interface, 1).expect("a sender");
            steps.wait_for(1);
            for packet in &packets[..500] {
                sender.send(&packet.payload).expect("sent");
            }
            steps.reach(2);
            steps.wait_for(3);
            for packet in &packets[500..] {
                sender.send(&packet.payload).expect("sent");
            }
            steps.reach(4);
        });
        overrun_reader(pair, steps);
    });
    Ok(())
}

fn overrun_reader(pair: &VethPair, steps: &Steps) {
    inside(pair, 1, || {
        let interface = Interface::find("veth0").expect("an end");
        let config = ReceiverConfig {
            frames: 64,
            ..ReceiverConfig::default()
        };
        let mut receiver =
            KernelReceiver::open(spec(Framing::Itch), &interface, &config).expect("a receiver");
        for instrument in WANTED {
            receiver.filter_mut().want(0, instrument as usize, true);
        }
        receiver.filter_mut().arm_itch(0, common::SESSION, 1);
        steps.reach(1);
        steps.wait_for(2);
        let mut read = 0;
        // Before a delivery is taken, what is behind it lies open: it is the one that is taken next.
        let (mut open, mut foreseen) = (Vec::new(), 0);
        loop {
            let behind: Vec<Vec<u8>> = receiver.behind().map(<[u8]>::to_vec).collect();
            let Some(delivery) = receiver.recv() else { break };
            assert_eq!(delivery.lost, 0, "what is in the ring is whole");
            if let [frame] = open.as_slice() {
                let frame: &Vec<u8> = frame;
                assert!(frame.ends_with(delivery.payload), "delivery {read}");
                foreseen += 1;
            }
            open = behind;
            read += 1;
        }
        assert!(open.is_empty(), "nothing is behind the last one");
        assert!(read <= 64, "{read} frames of 64");
        // Of the first one it was not known yet that others are behind it.
        assert_eq!(foreseen, read - 2);
        assert!(receiver.drops().expect("statistics").total() > 0);
        assert!(receiver.filter().is_armed(0));
        steps.reach(3);
        steps.wait_for(4);
        let first = receiver.recv().expect("it goes on");
        assert_eq!((u64::from(first.lost), first.seen_up_to), (500 - read, None));
        assert!(!receiver.filter().is_armed(0));
        assert_eq!(receiver.lost(), 500 - read);
    });
}
