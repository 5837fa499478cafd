//! Order entry: whatever clients say, and the journal of it.

use crate::Choices;
use tickwire_exchange::{
    Applied, BreakReason, Exchange, ExchangeConfig, Firm, FlowConfig, Input, JOURNAL_MAGIC,
    JOURNAL_MAGIC_BEFORE, JournalReader, JournalWriter, Market, OrderEntryConfig, OuchPort, PaceConfig,
    SelfTrade, TradingAction, listings,
};
use tickwire_fix::{Frame, Index, frame, naive};
use tickwire_market::{InstrumentId, Nanos, Venue};
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
        order_entry: OrderEntryConfig {
            connections: 2,
            max_orders: 32,
            ouch: vec![user],
            ouch_connections: 2,
            waiting_max: 64,
            ..OrderEntryConfig::default()
        },
        ..ExchangeConfig::default()
    };
    Market::new(vec![(Venue::Nasdaq, Exchange::new(config, Vec::new()))])
}

/// Two connections of FIX, two of OUCH. Each operation is what happens, a length, and the bytes that a client
/// says. Replayed from its journal it comes to the same state.
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
            _ if what == 255 => {
                let last = live.exchange(0).engine().last_match_number();
                Input::Break(0, last.saturating_sub(length.into()), BreakReason::Consent)
            }
            _ if what == 254 => {
                use TradingAction::*;
                let action = [Halt, Call, Resume, Resume][usize::from(length & 3)];
                Input::Action(0, InstrumentId(u32::from(length >> 7)), action)
            }
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

/// Tags of quotes, and some that are none of theirs.
const TAGS: [u32; 24] = [
    117, 131, 132, 133, 134, 135, 293, 294, 295, 296, 297, 298, 299, 301, 302, 304, 311, 537, 55, 62, 649,
    9773, 167, 58,
];
/// What they say: numbers that fit and that do not, prices, text.
const VALUES: [&str; 20] = [
    "1",
    "2",
    "3",
    "4",
    "0",
    "-1",
    "15",
    "100",
    "999999",
    "4294967296",
    "10.01",
    "10.03",
    "0.0001",
    "9223372036.9",
    "Y",
    "N",
    "X",
    "A",
    "",
    "100.00000000001",
];

/// Sequences of MassQuote, QuoteCancel and QuoteStatusRequest, each of any fields in any order, well framed:
/// every answer can be read, and the journal makes the same market.
pub fn mass_quotes(bytes: &[u8]) {
    let (mut live, mut journal, mut now) = (market(), JournalWriter::new(""), START);
    let (mut choices, mut out, mut sent) = (Choices::new(bytes), [0; 4096], Vec::new());
    let symbol = listings(1)[0].symbol;
    let mut input = |live: &mut Market, now: Nanos, input: Input<'_>, out: &mut [u8]| {
        journal.put(now, &input);
        input.apply(now, live, out)
    };
    input(&mut live, now, Input::Open, &mut out);
    for _ in 0..40 {
        now = now.after(5 * Nanos::MILLI);
        input(&mut live, now, Input::Time, &mut out);
    }
    input(&mut live, now, Input::Connect(0), &mut out);
    let mut seq = 0_u64;
    let mut message = |kind: &[u8], body: Vec<(u32, Vec<u8>)>| {
        seq += 1;
        let head = [
            (35, kind.to_vec()),
            (49, b"CLIENT".to_vec()),
            (34, seq.to_string().into_bytes()),
            (52, b"20260105-14:30:00.000".to_vec()),
            (56, b"EXCHANGE".to_vec()),
        ];
        naive::encode(&[&head[..], &body].concat())
    };
    let logon = message(
        b"A",
        vec![(98, b"0".to_vec()), (108, b"30".to_vec()), (141, b"Y".to_vec())],
    );
    input(&mut live, now, Input::Bytes(0, &logon), &mut out);
    while let (Some(what), Some(count)) = (choices.byte(), choices.below(40)) {
        let mut body = Vec::new();
        for _ in 0..count {
            let (Some(tag), Some(value)) = (choices.below(TAGS.len() as u32), choices.byte()) else {
                break;
            };
            let tag = TAGS[tag as usize];
            let value = match (tag, value) {
                // Most symbols are the one there is.
                (55, 16..) => symbol.as_bytes().to_vec(),
                _ => VALUES[usize::from(value) % VALUES.len()].as_bytes().to_vec(),
            };
            body.push((tag, value));
        }
        let kind = [&b"i"[..], b"i", b"i", b"Z", b"a", b"b"][usize::from(what) % 6];
        let said = message(kind, body);
        now = now.after(Nanos::MILLI);
        input(&mut live, now, Input::Bytes(0, &said), &mut out);
        if what >= 64 {
            while let Applied::Sent(n) = input(&mut live, now, Input::Transmit(0, 4096), &mut out) {
                if n == 0 {
                    break;
                }
                sent.extend_from_slice(&out[..n]);
            }
        }
        if what == 255 {
            now = now.after(Nanos::SECOND);
            input(&mut live, now, Input::Time, &mut out);
        }
    }
    let (mut rest, mut index) = (&sent[..], Index::new(2_000));
    while let Frame::Whole(length) = frame(rest, rest.len()) {
        index
            .decode(&rest[..length])
            .expect("what the exchange says can be read");
        rest = &rest[length..];
    }
    let (mut again, hash) = (market(), live.state_hash());
    for (now, input) in JournalReader::new(journal.pending()).expect("just written") {
        input.apply(now, &mut again, &mut out);
    }
    assert_eq!(again.state_hash(), hash, "the journal makes the same market");
}

/// Inputs lie within the file, end at the first record that is not whole, and written again are the same
/// bytes; of a file of the form before, which is written again in that of today, all but its first eight.
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
    let before = if reader.has_passwords() {
        JOURNAL_MAGIC_BEFORE
    } else {
        JOURNAL_MAGIC
    };
    assert!(bytes.starts_with(&before) && writer.pending().starts_with(&JOURNAL_MAGIC));
    let head = before.len();
    assert_eq!(&writer.pending()[head..], &bytes[head..place]);
}
