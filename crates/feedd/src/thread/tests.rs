//! A feed thread that stands still: a channel whose packets lie in its sockets is not silent.

use std::sync::mpsc::sync_channel;
use std::time::Instant;

use tickwire_market::Venue;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::udp::MulticastSender;
use tickwire_shm::{Reader, RegionConfig, RegionState, SourceIdentity, SourceState};
use tickwire_venues::protocol::Protocol;
use tickwire_wire::itch50::AddOrder;
use tickwire_wire::layout::Pod;
use tickwire_wire::moldudp64::PacketBuilder;

use super::super::command::command_line;
use super::super::config::{LatencyOf, RingContent};
use super::super::rehearsal::Room;
use super::super::supers::Supers;
use super::*;
use tickwire_market::SeqNo;
use tickwire_runtime::clock::Clock;

const PATIENCE: Duration = Duration::from_secs(20);
const GROUP: &str = "239.192.9.45:26995";

#[test]
fn a_channel_is_silent_by_what_was_read() {
    let text = format!(
        "[[feed]]\nvenue = \"nasdaq\"\nsession = \"STANDS0001\"\n\
         [[feed.channel]]\nname = \"1\"\nlive = {{ a = \"{GROUP}\" }}\n"
    );
    let feed = FeedFile::parse(&text).expect("a feed").feeds.remove(0);
    let section = ReceiverSection {
        max_instruments: 64,
        max_orders: 1 << 10,
        max_levels: 1 << 10,
        ..ReceiverSection::default()
    };
    let config = RegionConfig {
        books: 10,
        ..RegionConfig::default()
    };
    let shown = Room::of(config);
    let region = shown.region();
    let clock = Clock::calibrate();
    let row = region.source(
        0,
        &SourceIdentity {
            name: "1".into(),
            feed_name: "feed".into(),
            protocol: Protocol::Itch50.name().into(),
            feed: 0,
            venue: Some(Venue::Nasdaq),
            ring: None,
        },
    );
    let plan = ThreadPlan {
        index: 0,
        core: -1,
        wait: Wait::Poll,
        sources: vec![SourcePlan {
            source: 0,
            feed,
            feed_number: 0,
            channel: 0,
            silence_ns: Nanos::MICRO,
            quota: Default::default(),
            relay: None,
        }],
        receiver: &section,
        symbols: vec![Pattern::ALL],
        kernel_stamps: false,
        receive_batch: 1,
        rehearse_ns: 10 * Nanos::MICRO,
        recorded: None,
        threads: 1,
    };
    let (notices, _notices) = sync_channel(64);
    let shared = ThreadShared {
        ring: None,
        content: RingContent::Off,
        latency_of: LatencyOf::Packets,
        supers: Supers::Off,
        clock: clock.clone(),
        notices,
    };
    let (_line, commands) = command_line();
    let halt = Halt::new(&StopFlag::new());
    assert!(plan.spare_time().is_none(), "it sleeps");
    let spins = ThreadPlan {
        wait: Wait::Spin,
        sources: Vec::new(),
        symbols: Vec::new(),
        ..plan
    };
    let spare = spins.spare_time();
    assert!(spare.is_some());
    let room = Room::new(1, &config);
    let rows = vec![Some(row)];
    let mut thread = FeedThread::start(plan, region, rows, shared, commands, halt, Some(room.region()))
        .expect("it starts");
    region.set_state(RegionState::Ready);
    let reader = Reader::attach(shown.words()).expect("it is ready");
    let state = || reader.source(0).expect("it has a row").state;

    let interface = tickwire_runtime::interface::Interface::find("lo").expect("loopback");
    let sender = MulticastSender::open(GROUP.parse().expect("a group"), &interface, 1).expect("a sender");
    let mut buffer = [0; 256];
    let mut packet = PacketBuilder::new(&mut buffer, *b"STANDS0001", SeqNo(1));
    assert!(packet.push(AddOrder::at(1, 1).as_bytes()));
    let length = packet.finish();
    sender.send(&buffer[..length]).expect("sent");
    let began = Instant::now();
    while thread.receiver.source(0).last_packet() == Nanos::ZERO {
        thread.receiver.receive(&mut thread.books);
        assert!(began.elapsed() < PATIENCE);
    }
    assert_eq!(state(), SourceState::Live);

    // Rehearsed in a turn without a packet, once a twin was made off their way; what is shown stays as it is.
    let shown = reader.source(0).expect("it has a row").totals;
    thread.spare = spare;
    thread.idle(Nanos(1));
    thread.report();
    let (receiver, books) = (&mut thread.receiver, &mut thread.books);
    assert!(books.rehearse(0, Nanos(2), |books| receiver.rehearse(0, Nanos(2), books)));
    assert_eq!(reader.source(0).expect("it has a row").totals, shown);

    // What has come since lies in the socket, perhaps.
    let last = thread.receiver.source(0).last_packet();
    thread.pass_time(last.after(Nanos::DAY));
    assert_eq!(state(), SourceState::Live);

    let began = Instant::now();
    while state() == SourceState::Live {
        thread.receiver.receive(&mut thread.books);
        thread.pass_time(last.after(Nanos::DAY));
        assert!(began.elapsed() < PATIENCE);
    }
    assert_eq!(state(), SourceState::Stale);
}
