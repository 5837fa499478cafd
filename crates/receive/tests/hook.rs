//! Live lines by AF_XDP between two network namespaces, with a filter at the hook: what is wanted comes, what
//! is not does not, and a change of what is wanted loses nothing. Needs root: says so where there is none,
//! and fails with `TICKWIRE_ROOT_TESTS=1`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tickwire_feed::{Channel, Pattern};
use tickwire_market::{Counter, Counters, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, SeqNo};
use tickwire_receive::SocketOptions;
use tickwire_receive::receiver::{Consumer, Receiver};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::interface::Interface;
use tickwire_runtime::netns::VethPair;
use tickwire_runtime::stamp::RxStamp;
use tickwire_runtime::udp::{MulticastSender, Stamping};
use tickwire_runtime::wait::WaitStrategy;
use tickwire_venues::channels::FeedFile;
use tickwire_venues::receiver::{Backend, ReceiverSection};
use tickwire_venues::wiring::Reception;
use tickwire_wire::itch50::{AddOrder, StockDirectory};
use tickwire_wire::layout::{Alpha, Char, Pod, Price4, Scaled};
use tickwire_wire::moldudp64::PacketBuilder;
use tickwire_wire::pitch;

/// Who sends: messages name an instrument by its number (ITCH), or by its symbol (PITCH).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sender {
    Itch,
    Pitch,
}

impl Sender {
    fn feed(self) -> &'static str {
        match self {
            Sender::Itch => FEED,
            Sender::Pitch => {
                "[[feed]]\nvenue = \"bzx\"\ninterface = \"veth0\"\n\
                 [[feed.channel]]\nname = \"1\"\nlive = { a = \"239.192.9.31:26931\", b = \"239.192.9.32:26932\" }\n"
            }
        }
    }

    /// The packet of a number, a message in each: the first four say who the instruments are, the others add
    /// orders in turn. Of PITCH the first four do, too.
    fn packet(self, seq: u64, buffer: &mut [u8]) -> usize {
        let which = if seq <= 4 { seq } else { 1 + seq % 4 };
        let name = NAMES[which as usize - 1];
        match self {
            Sender::Itch => {
                let mut packet = PacketBuilder::new(buffer, *b"HOOK000001", SeqNo(seq));
                match seq <= 4 {
                    true => {
                        let mut directory = StockDirectory::at(which as u16, seq);
                        directory.stock = Alpha::new(name).expect("a symbol");
                        assert!(packet.push(directory.as_bytes()));
                    }
                    false => {
                        let add = AddOrder {
                            order_ref: seq.into(),
                            side: Char(b'S'),
                            shares: 100.into(),
                            price: Price4::new(873_900),
                            ..AddOrder::at(which as u16, seq)
                        };
                        assert!(packet.push(add.as_bytes()));
                    }
                }
                packet.finish()
            }
            Sender::Pitch => {
                let mut packet = pitch::PacketBuilder::new(buffer, 1, seq as u32);
                let add = pitch::AddOrderLong {
                    order_id: seq.into(),
                    side: Char(b'S'),
                    qty: 100.into(),
                    symbol: Alpha::new(name).expect("a symbol"),
                    price: Scaled(873_900.into()),
                    ..pitch::AddOrderLong::BLANK_MESSAGE
                };
                assert!(packet.push(add.as_bytes()));
                packet.finish()
            }
        }
    }

    /// Orders that the first four packets add, of each instrument.
    fn added_at_first(self) -> u64 {
        u64::from(self == Sender::Pitch)
    }
}

const FEED: &str = "[[feed]]\nvenue = \"nasdaq\"\ninterface = \"veth0\"\nsession = \"HOOK000001\"\n\
    [[feed.channel]]\nname = \"1\"\nlive = { a = \"239.192.9.31:26931\", b = \"239.192.9.32:26932\" }\n";
const OPTIONS: SocketOptions = SocketOptions {
    receive_buffer: 1 << 20,
    stamping: Stamping::OnDemand,
    batch: 1,
};
const PATIENCE: Duration = Duration::from_secs(20);
/// So many packets one line may be ahead of the other.
const AHEAD_MAX: u64 = 4;
/// How often what is wanted is said anew in mid-session.
const VISITS: u32 = 40;
/// Instruments, by stock locate from 1 on.
const NAMES: [&[u8]; 4] = [b"ONE", b"TWO", b"THREE", b"FOUR"];

/// Counts what is added, by instrument, and wants what it is told to.
struct Counts {
    clock: Clock,
    added: [u64; 5],
    arrived: u64,
    wants: Pattern,
    /// By stock locate: seen here, and dropped at the hook.
    of_instrument: [(u64, Option<u64>); 5],
}

impl Counts {
    fn new(wants: Pattern) -> Counts {
        Counts {
            clock: Clock::calibrate(),
            added: [0; 5],
            arrived: 0,
            wants,
            of_instrument: Default::default(),
        }
    }
}

impl EventSink for Counts {
    fn on_event(&mut self, event: &MarketEvent) {
        if event.kind == EventKind::Add {
            self.added[event.instrument.index()] += 1;
        }
    }
}

impl Consumer for Counts {
    type Successor = Counts;

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn turn_to(&mut self, _: usize) {}

    fn begins(&mut self, stamp: &RxStamp) -> Nanos {
        self.clock.nanos_at(stamp.tsc)
    }

    fn ends<C: Channel>(&mut self, _: &C, _: tickwire_market::Port, stamp: impl FnOnce() -> Option<RxStamp>) {
        let stamp = stamp().expect("a live line's");
        let times = stamp.times(&self.clock);
        // The hook comes before this thread, and no card says anything between virtual interfaces.
        if let Some(hook) = times.hook {
            assert_eq!((stamp.wire_ns, times.wire, times.kernel), (None, None, None));
            self.arrived += u64::from(hook.0 <= times.user.0 + 1_000_000);
        }
    }

    fn counts<C: Channel>(&mut self, channel: &C, dropped: &dyn Fn(InstrumentId) -> Option<u64>) {
        for (at, of) in (0..).zip(&mut self.of_instrument) {
            let id = InstrumentId(at);
            *of = (channel.seen_of_instrument(id).seen, dropped(id));
        }
    }

    fn visits<C: Channel>(&mut self, now: Nanos, channel: &mut C) {
        channel
            .subscribe(now, &self.wants, &mut |_: &MarketEvent| {})
            .expect("room");
    }
}

fn pattern(text: &str) -> Pattern {
    text.parse().expect("a pattern")
}

#[test]
fn what_nobody_wants_is_dropped_at_the_hook() {
    // One after the other: a network namespace belongs to a thread, and the interface has one hook.
    for sender in [Sender::Itch, Sender::Pitch] {
        println!("{sender:?}");
        dropped_at_the_hook(sender, 1);
    }
}

/// Each line by a queue of its own, on a processor of its own: a packet and its copy are in the program at
/// the same time.
#[test]
fn lines_by_two_queues_lose_nothing() {
    for sender in [Sender::Itch, Sender::Pitch] {
        println!("{sender:?}");
        dropped_at_the_hook(sender, 2);
    }
}

fn dropped_at_the_hook(sender: Sender, queues: u32) {
    let Some(pair) = pair(queues) else { return };
    let (pair, sent, stop, go) = (
        &pair,
        &[AtomicU64::new(0), AtomicU64::new(0)],
        &AtomicBool::new(false),
        &AtomicBool::new(false),
    );
    std::thread::scope(|scope| {
        match queues {
            1 => drop(scope.spawn(move || send(sender, pair, &[0, 1], (sent, stop, go)))),
            _ => (0..2).for_each(|line| {
                scope.spawn(move || {
                    let cores = Cores::count();
                    if let Some(core) = cores.usable().get(line) {
                        cores.pin(*core).expect("pinned");
                    }
                    send(sender, pair, &[line], (sent, stop, go));
                });
            }),
        }
        let receiver = scope.spawn(move || {
            pair.enter(1).expect("entered");
            receive(sender, queues, sent, stop, go);
        });
        receiver.join().expect("no panic");
    });
}

/// A datagram in fragments goes by the kernel, around the ring in which those before it wait for a thread
/// that has stood still: they are read first.
#[test]
fn a_datagram_in_fragments_is_read_behind_what_the_ring_holds() {
    let Some(pair) = pair(1) else { return };
    let pair = &pair;
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || fragments(pair));
        receiver.join().expect("no panic");
    });
}

/// Messages of the long datagrams, which are more than a frame holds.
const LONG: u64 = 60;
/// Short datagrams before each of them: more than one look takes.
const SHORT: u64 = 80;

fn fragments(pair: &VethPair) {
    pair.enter(0).expect("entered");
    let interface = Interface::find("veth0").expect("an end");
    let group = "239.192.9.31:26931".parse().expect("a group");
    let sender = MulticastSender::open(group, &interface, 1).expect("a sender");
    pair.enter(1).expect("entered");
    let feeds = FeedFile::parse(Sender::Itch.feed()).expect("a feed").feeds;
    let section = ReceiverSection {
        backend: Backend::Xdp,
        max_instruments: 64,
        ..ReceiverSection::default()
    };
    let mut counts = Counts::new(pattern("*"));
    let mut receiver: Receiver<Counts> = Receiver::empty(WaitStrategy::Spin, 2);
    let reception = Reception::new(&section);
    receiver.add(&feeds[0], (0, 0), &reception).expect("a channel");
    receiver.join_one(0, &feeds[0], OPTIONS).expect("joined");
    println!("{:?}", receiver.hook(&section).expect("AF_XDP"));

    let mut next = 1;
    let mut send = |messages: u64| {
        let mut buffer = [0; 4096];
        let mut packet = PacketBuilder::new(&mut buffer, *b"HOOK000001", SeqNo(next));
        for seq in next..next + messages {
            assert!(packet.push(AddOrder::at(1, seq).as_bytes()));
        }
        next += messages;
        let length = packet.finish();
        assert_eq!(length > 1_500, messages == LONG);
        sender.send(&buffer[..length]).expect("sent");
        next - 1
    };
    for round in 0..20 {
        let mut last = 0;
        for _ in 0..SHORT {
            last = send(1);
        }
        last = last.max(send(LONG));
        // All of it has come before anything is read.
        std::thread::sleep(Duration::from_millis(20));
        let began = Instant::now();
        while receiver.counters().get(Counter::Messages) < last {
            receiver.receive(&mut counts);
            let now = counts.now();
            receiver.timers(now, &mut counts);
            receiver.wait(now, None);
            assert!(began.elapsed() < PATIENCE, "{:?}", receiver.counters());
        }
        let counters = receiver.counters();
        let of = |what: Counter| counters.get(what);
        assert_eq!(
            (of(Counter::Gaps), of(Counter::BufferOverflows)),
            (0, 0),
            "round {round}"
        );
    }
}

/// Two namespaces with so many receive queues, if there can be any here.
fn pair(queues: u32) -> Option<VethPair> {
    match VethPair::with_queues("twhook", queues) {
        Ok(pair) if tickwire_runtime::xdp::caps::missing().is_empty() => Some(pair),
        made => {
            let must_run = std::env::var_os("TICKWIRE_ROOT_TESTS").is_some_and(|value| value == "1");
            assert!(!must_run, "{made:?}");
            tickwire_testdata::not_tested("no network namespaces, or no rights for AF_XDP here");
            None
        }
    }
}

/// Sends on some of the lines, never far ahead of the other one, until it is told to stop.
fn send(
    sender: Sender,
    pair: &VethPair,
    lines: &[usize],
    (sent, stop, go): (&[AtomicU64; 2], &AtomicBool, &AtomicBool),
) {
    pair.enter(0).expect("entered");
    let interface = Interface::find("veth0").expect("an end");
    let open = |group: &str| {
        MulticastSender::open(group.parse().expect("a group"), &interface, 1).expect("a sender")
    };
    let groups = ["239.192.9.31:26931", "239.192.9.32:26932"];
    let senders: Vec<(usize, MulticastSender)> =
        lines.iter().map(|line| (*line, open(groups[*line]))).collect();
    while !go.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut seq = 1;
    while !stop.load(Ordering::SeqCst) {
        let mut buffer = [0; 256];
        let length = sender.packet(seq, &mut buffer);
        for (line, sender) in &senders {
            let other = &sent[1 - line];
            while lines.len() == 1
                && other.load(Ordering::SeqCst) + AHEAD_MAX < seq
                && !stop.load(Ordering::SeqCst)
            {
                std::hint::spin_loop();
            }
            sender.send(&buffer[..length]).expect("sent");
            sent[*line].store(seq, Ordering::SeqCst);
        }
        seq += 1;
        if seq % 8 == 0 {
            std::thread::sleep(Duration::from_micros(400));
        }
    }
}

/// Nothing was taken for missing that the filter had dropped. By two queues a packet may be delivered while
/// another processor looks at the one before still: that one is missing until it has looked, which closes the
/// gap by itself, and nothing is given up.
fn no_gap(queues: u32, counters: &Counters) {
    let of = |what: Counter| counters.get(what);
    let most = match queues {
        1 => 0,
        _ => of(Counter::HookAhead) + of(Counter::HookRaces),
    };
    assert!(of(Counter::Gaps) <= most, "{counters:?}");
    assert_eq!(
        of(Counter::MessagesMissed),
        of(Counter::MessagesRecovered),
        "{counters:?}"
    );
}

/// Ends the sender, whatever becomes of the receiver.
struct Ends<'a>(&'a AtomicBool, &'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
        self.1.store(true, Ordering::SeqCst);
    }
}

fn receive(sender: Sender, queues: u32, sent: &[AtomicU64; 2], stop: &AtomicBool, go: &AtomicBool) {
    let _ends = Ends(stop, go);
    let feeds = FeedFile::parse(sender.feed()).expect("a feed").feeds;
    let section = ReceiverSection {
        backend: Backend::Xdp,
        filter: true,
        filter_statistics: true,
        // All that there are.
        xdp_queues: 0,
        max_instruments: 64,
        ..ReceiverSection::default()
    };
    let mut reception = Reception::new(&section);
    reception.symbols = Some(Vec::new());
    let mut counts = Counts::new(pattern("TWO"));
    let mut receiver: Receiver<Counts> = Receiver::empty(WaitStrategy::Poll, 2);
    receiver.add(&feeds[0], (0, 0), &reception).expect("a channel");
    receiver.join_one(0, &feeds[0], OPTIONS).expect("joined");
    receiver.visit_one(0, Nanos::ZERO, &mut counts);
    let said = receiver.hook(&section).expect("AF_XDP");
    println!("{said:?}");
    let by = match queues {
        1 => "queue 0,",
        _ => "queues 0 to 1,",
    };
    assert!(said[0].contains(by), "{said:?}");
    go.store(true, Ordering::SeqCst);
    let turn = |receiver: &mut Receiver<Counts>,
                counts: &mut Counts,
                what: &str,
                done: &dyn Fn(&Receiver<Counts>, &Counts) -> bool| {
        let began = Instant::now();
        let mut next_look = Nanos::ZERO;
        while !done(receiver, counts) {
            receiver.receive(counts);
            let now = counts.now();
            receiver.timers(now, counts);
            if now >= next_look {
                next_look = now.after(10 * Nanos::MILLI);
                receiver.look(counts);
            }
            receiver.wait(now, None);
            let state = receiver.source(0).state();
            assert!(
                began.elapsed() < PATIENCE,
                "{what}: {state:?} {:?} {:?}",
                counts.added,
                receiver.counters()
            );
        }
    };
    let filtered = |receiver: &Receiver<Counts>| receiver.counters().get(Counter::HookFiltered);
    turn(&mut receiver, &mut counts, "dropped packets", &|r, _| {
        filtered(r) > 2000
    });
    let (added, counters) = (counts.added, receiver.counters());
    assert!(added[2] > 500 && added[1] == 0 && added[3] == 0, "{added:?}");
    assert!(counters.get(Counter::HookDuplicates) > 500, "{counters:?}");
    no_gap(queues, &counters);
    assert!(counts.arrived > 500, "{} stamps", counts.arrived);

    // A visit opens the filter: nothing that is wanted is lost by it, to the last message, and nothing that
    // was dropped before is taken for missing, whatever comes meanwhile.
    for _ in 0..VISITS {
        receiver.visit(counts.now(), &mut counts);
        let before = filtered(&receiver);
        turn(&mut receiver, &mut counts, "it is armed again", &|r, _| {
            filtered(r) > before + 50
        });
    }
    no_gap(queues, &receiver.counters());
    stop.store(true, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(20));
    let lines = [0, 1].map(|line: usize| sent[line].load(Ordering::SeqCst));
    let last = lines[0].max(lines[1]);
    let wanted = (5..=last).filter(|seq| seq % 4 == 1).count() as u64 + sender.added_at_first();
    turn(&mut receiver, &mut counts, "the last message", &|_, counts| {
        counts.added[2] >= wanted
    });
    assert_eq!(counts.added, [0, 0, wanted, 0, 0]);

    // Of every instrument, what was dropped at the hook and what was seen here is what was sent: each message
    // once, the directory's among them. What is on its way still is waited for. A message whose copies two
    // processors took at one moment may count at both: as often as the hook says that it met that.
    let sent_of = |locate: u64| 1 + (5..=last).filter(|seq| 1 + seq % 4 == locate).count() as u64;
    let accounted = |counts: &Counts, locate: u64| {
        let (seen, dropped) = counts.of_instrument[locate as usize];
        seen + dropped.expect("counted here")
    };
    let began = Instant::now();
    loop {
        receiver.receive(&mut counts);
        receiver.look(&mut counts);
        receiver.count(&mut counts);
        // And what was delivered while the filter was open and whose copy met it armed, at any visit: by one
        // queue the last packet, by two as many as one line may be ahead of the other.
        let ahead = if queues == 1 { 1 } else { AHEAD_MAX };
        let armed = ahead * u64::from(VISITS);
        let twice = receiver.counters().get(Counter::HookRaces) + armed;
        let is_whole = (1..=4).all(|locate| accounted(&counts, locate) >= sent_of(locate));
        let all = (1..=4).map(|locate| accounted(&counts, locate)).sum::<u64>();
        if is_whole && all <= (1..=4).map(sent_of).sum::<u64>() + twice {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{last}: {:?}", counts.of_instrument);
    }
    println!("seen here, dropped at the hook: {:?}", counts.of_instrument);
    for locate in 1..=4 {
        // What is wanted is never dropped, and of the others most are.
        let dropped = counts.of_instrument[locate as usize].1;
        assert_eq!(dropped == Some(0), locate == 2, "{:?}", counts.of_instrument);
    }
    // Every packet that came to the hook has one reason.
    receiver.look(&mut counts);
    let counters = receiver.counters();
    let reasons = [
        Counter::HookFiltered,
        Counter::HookDuplicates,
        Counter::HookWanted,
        Counter::HookAhead,
        Counter::HookBehind,
        Counter::HookRaces,
        Counter::HookUnread,
        Counter::HookDisarmed,
        Counter::HookPlain,
        Counter::HookSession,
    ];
    let reasons: u64 = reasons.iter().map(|reason| counters.get(*reason)).sum();
    // One that was delivered for another reason, while a second processor moved the channel on, met that race
    // as well.
    let (packets, races) = (
        counters.get(Counter::HookPackets),
        counters.get(Counter::HookRaces),
    );
    assert!(
        (packets..=packets + races).contains(&reasons),
        "{reasons} reasons of {packets} packets, {races} races"
    );
    assert_eq!(packets, lines[0] + lines[1]);
    let dropped: u64 = counts
        .of_instrument
        .iter()
        .filter_map(|(_, dropped)| *dropped)
        .sum();
    assert_eq!(counters.get(Counter::HookMessages), dropped);
}
