//! Order entry: whatever clients say, and the journal of it.

use crate::Choices;
use tickwire_exchange::{
    Applied, DeskConfig, Exchange, ExchangeConfig, Firm, FlowConfig, Input, JournalReader, JournalWriter,
    Market, OuchPort, PaceConfig, SelfTrade, listings,
};
use tickwire_market::{Nanos, Venue};
use tickwire_wire::layout::Alpha;
use tickwire_wire::ouch50::parse_outbound;
use tickwire_wire::soupbintcp::{Packet, split};

/// When it begins; seeds are made for it.
pub(crate) const START: Nanos = Nanos(1_767_623_400 * Nanos::SECOND);

fn market() -> Market {
    let user = OuchPort {
        username: Alpha(*b"alice "),
        password: Alpha([b' '; 10]),
        firm_name: Alpha(*b"FIRM"),
        firm: Firm(9),
        cancel_on_disconnect: true,
        self_trade: SelfTrade::Decrement,
    };
    let config = ExchangeConfig {
        listings: listings(1),
        max_orders: 1_000,
        max_levels: 64,
        flow: FlowConfig {
            max_live: 200,
            ..FlowConfig::default()
        },
        pace: PaceConfig {
            rate: 1_000,
            ..PaceConfig::default()
        },
        desk: DeskConfig {
            connections: 2,
            max_orders: 32,
            ouch: vec![user],
            ouch_connections: 2,
            waiting_max: 64,
            ..DeskConfig::default()
        },
        ..ExchangeConfig::default()
    };
    Market::new(vec![(Venue::Nasdaq, Exchange::new(config, Vec::new()))])
}

/// Two connections of FIX, two of OUCH. Each operation is what happens, a length, and the bytes that a client says. Replayed
/// from its journal it comes to the same state.
pub fn order_entry(bytes: &[u8]) {
    let (mut live, mut journal, mut now) = (market(), JournalWriter::new(""), START);
    let (mut choices, mut out) = (Choices::new(bytes), [0; 512]);
    let mut streams = [const { Vec::new() }; 4];
    let mut input = |live: &mut Market, now: Nanos, input: Input<'_>, out: &mut [u8]| {
        journal.put(now, &input);
        input.apply(now, live, out)
    };
    input(&mut live, now, Input::Open, &mut out);
    for _ in 0..40 {
        now = now.after(5 * Nanos::MILLI);
        input(&mut live, now, Input::Time, &mut out);
    }
    while let (Some(what), Some(length)) = (choices.byte(), choices.byte()) {
        let id = u16::from(what & 3);
        now = now.after(u64::from(length) * Nanos::MILLI);
        let said = match what >> 2 & 7 {
            0 => Input::Connect(id),
            1 => Input::Disconnect(id),
            2 => Input::Time,
            3 => Input::Transmit(id, u32::from(length)),
            4 if length == 255 => Input::Resume,
            _ => Input::Bytes(id, choices.bytes(length.into())),
        };
        let done = input(&mut live, now, said, &mut out);
        match (said, done) {
            (Input::Transmit(..), Applied::Sent(n)) => streams[usize::from(id)].extend_from_slice(&out[..n]),
            (Input::Connect(_), _) | (Input::Disconnect(_), _) => streams[usize::from(id)].clear(),
            (Input::Resume, _) => streams.iter_mut().for_each(Vec::clear),
            _ => {}
        }
    }
    for stream in &streams[2..] {
        let mut rest = &stream[..];
        while let Some((packet, length)) = split(rest).expect("a server's packets are well formed") {
            if let Packet::Sequenced(message) = packet {
                parse_outbound(message).expect("what the host says can be read");
            }
            rest = &rest[length..];
        }
    }
    let (mut again, hash) = (market(), live.state_hash());
    for (now, input) in JournalReader::new(journal.pending()).expect("just written") {
        input.apply(now, &mut again, &mut out);
    }
    assert_eq!(again.state_hash(), hash, "the journal makes the same market");
}

/// Inputs lie within the file, end at the first record that is not whole, and written again are the same bytes.
pub fn journal(bytes: &[u8]) {
    let Ok(mut reader) = JournalReader::new(bytes) else {
        return;
    };
    let mut writer = JournalWriter::new(reader.configuration());
    for (now, input) in reader.by_ref() {
        writer.put(now, &input);
    }
    let place = reader.place() as usize;
    assert!(place <= bytes.len() && reader.torn() as usize == bytes.len() - place);
    assert_eq!(writer.pending(), &bytes[..place]);
}
