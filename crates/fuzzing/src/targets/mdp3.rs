//! Delivery of MDP 3.0: a channel with everything it listens to.

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_feed::{ArbiterConfig, Channel, Line, Mdp3Channel, Mdp3Config, Mdp3Decoder, Mdp3Depth};
use tickwire_market::{EventFlags, EventKind, MarketEvent, Nanos, Port, SeqNo};

/// A channel by price or by order, with executions or without. The first byte says which; then each operation
/// is a length, what takes the bytes, and the bytes. Asserts: live events of packets ascend; an end that
/// comes alone is marked; books take what comes.
pub fn mdp3_channel(bytes: &[u8]) {
    let Some((&choice, mut rest)) = bytes.split_first() else {
        return;
    };
    let depth = [Mdp3Depth::ByPrice, Mdp3Depth::ByOrder][usize::from(choice & 1)];
    let natural_refresh = choice & 2 != 0;
    let config = ArbiterConfig {
        snapshot: !natural_refresh,
        buffer_packets: 4,
        packet_bytes: 256,
        gaps: 4,
        ..Mdp3Channel::arbiter_config()
    };
    let decoder = Mdp3Decoder::new(Mdp3Config {
        depth,
        natural_refresh,
        executions: choice & 4 != 0,
        instruments_max: 4,
        orders_max: 8,
        ..Mdp3Config::default()
    });
    let replay = Mdp3Channel::replay_config(310, b"ME", b"PW");
    let mut channel = Mdp3Channel::new(config, decoder, replay, Nanos::SECOND);
    let mut books = Books::new(BooksConfig {
        depth: match depth {
            Mdp3Depth::ByPrice => Depth::ByPrice,
            Mdp3Depth::ByOrder => Depth::ByOrder,
        },
        instruments: 8,
        orders: 16,
        levels: 256,
        ..BooksConfig::default()
    });
    let (mut now, mut buffer) = (Nanos(1), [0; 256]);
    while let [length, what, more @ ..] = rest {
        let (datagram, after) = more.split_at(more.len().min(usize::from(*length)));
        rest = after;
        now = now.after(u64::from(*what) * 1_000_000);
        let mut highest = SeqNo(0);
        let mut sink = |event: &MarketEvent| {
            let of_feed = event.flags.has(EventFlags::SNAPSHOT) || event.instrument.0 == 0;
            if !of_feed && event.kind != EventKind::Gap {
                assert!(event.seq >= highest, "{event:?} after {highest}");
                highest = event.seq;
            }
            assert!(event.kind != EventKind::EndOfGroup || event.flags.has(EventFlags::LAST));
            books.apply(event);
        };
        match what % 8 {
            0..=1 => channel.on_datagram(now, Port::Live, Line::A, datagram, &mut sink),
            2 => channel.on_datagram(now, Port::Definitions, Line::A, datagram, &mut sink),
            3 => channel.on_datagram(now, Port::Snapshot, Line::A, datagram, &mut sink),
            4 => channel.on_datagram(now, Port::SnapshotByOrder, Line::B, datagram, &mut sink),
            5 if channel.wants_connection(Port::Replay) => {
                channel.connected(now, Port::Replay);
                channel.on_bytes(now, Port::Replay, datagram, &mut sink);
            }
            5 => channel.on_bytes(now, Port::Replay, datagram, &mut sink),
            6 => channel.disconnected(now, Port::Replay, &mut sink),
            _ => channel.handle_timeout(now, &mut sink),
        }
        while channel.poll_transmit(Port::Replay, &mut buffer).is_some() {}
        assert!(channel.feed().decoder().unsound() <= 4);
        let _ = channel.state();
    }
}
