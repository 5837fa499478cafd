//! What mutations start from: the packets under `vectors/`, and well-formed inputs made here for what has no
//! vectors.

mod archive;
mod kernel;
mod mirror;
mod records;

pub(crate) use archive::archives;
pub(crate) use kernel::{armed_order, order_segment};
pub(crate) use mirror::mirrors;
pub(crate) use records::records;

use crate::targets::FIX_DICTIONARY;
use tickwire_exchange::{BreakReason, Input, JOURNAL_MAGIC_BEFORE, JournalWriter, TradingAction};
use tickwire_fix::{CompId, Role, Session, SessionConfig, naive};
use tickwire_market::{InstrumentId, Nanos};
use tickwire_testdata::vectors;
use tickwire_wire::sbe::Template;
use tickwire_wire::zerocopy::IntoBytes;
use tickwire_wire::{ilink3, soupbintcp, xdp};

pub(crate) fn none() -> Vec<Vec<u8>> {
    vec![Vec::new()]
}

/// The example strategies.
pub(crate) fn strategy_files() -> Vec<Vec<u8>> {
    let folder = tickwire_testdata::workspace().join("examples/strategies");
    let entries = std::fs::read_dir(folder).expect("the examples are there");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "tw"))
        .collect();
    files.sort();
    let texts = files.iter().map(|path| std::fs::read(path).expect("a text"));
    texts.collect()
}

pub(crate) fn prices() -> Vec<Vec<u8>> {
    ["", "87.39", "-0.000000001", "9223372036.854775807"]
        .map(|text| text.as_bytes().to_vec())
        .into()
}

/// Messages come, one symbol is left and wanted again, and a snapshot makes it right.
pub(crate) fn subscriptions() -> Vec<Vec<u8>> {
    let events = [[0, 0], [0, 1], [0, 2], [0, 3], [3, 1]].concat();
    let joins = [
        [4, 8],
        [0, 0],
        [3, 1],
        [4, 0],
        [0, 4],
        [3, 1],
        [6, 1],
        [0, 0],
        [3, 1],
    ]
    .concat();
    let snapshot = [[6, 15], [0, 1], [3, 1], [6, 15], [3, 1]].concat();
    let once = [events.clone(), joins, snapshot].concat();
    vec![Vec::new(), once.clone(), [&once[..], &once].concat()]
}

pub(crate) fn itch50() -> Vec<Vec<u8>> {
    packets("itch50")
}

pub(crate) fn moldudp64() -> Vec<Vec<u8>> {
    packets("moldudp64")
}

pub(crate) fn mdp3() -> Vec<Vec<u8>> {
    packets("mdp3")
}

/// Operations of a channel by price and by order: every short packet behind its length, taken as a live one,
/// a definition and a snapshot of either kind.
pub(crate) fn mdp3_operations() -> Vec<Vec<u8>> {
    let short = mdp3().into_iter().filter(|bytes| bytes.len() < 256);
    let operations: Vec<Vec<u8>> = short
        .flat_map(|bytes| [0, 2, 3, 4].map(|what| [&[bytes.len() as u8, what][..], &bytes].concat()))
        .collect();
    let all = operations.concat();
    let runs = (0..4_u8).map(|choice| [&[choice][..], &all].concat());
    none().into_iter().chain(runs).collect()
}

/// Every template without values, with an entry in every group; alone, and all of them as one stream.
pub(crate) fn ilink3() -> Vec<Vec<u8>> {
    let message = |template: &Template| {
        let head = [
            template.block_length,
            template.id,
            ilink3::Body::SCHEMA,
            ilink3::NEWEST_VERSION,
        ];
        let mut bytes = [&[0, 0, 0xFE, 0xCA][..], &head.map(u16::to_le_bytes).concat()].concat();
        bytes.resize(bytes.len() + usize::from(template.block_length), 0);
        for (_, length, _) in template.groups {
            bytes.extend(length.to_le_bytes());
            bytes.push(1);
            bytes.resize(bytes.len() + usize::from(*length), 0);
        }
        // Length of the data, for the templates that have any.
        bytes.extend([0, 0]);
        let size = bytes.len() as u16;
        bytes[..2].copy_from_slice(&size.to_le_bytes());
        bytes
    };
    let mut all: Vec<Vec<u8>> = ilink3::Body::TEMPLATES.iter().map(message).collect();
    all.push(all.concat());
    all
}

pub(crate) fn cqs() -> Vec<Vec<u8>> {
    packets("cqs")
}

pub(crate) fn uqdf() -> Vec<Vec<u8>> {
    packets("uqdf")
}

pub(crate) fn pitch() -> Vec<Vec<u8>> {
    [packets("pitch"), packets("pitch_unit")].concat()
}

/// Every message and block behind its length, all of them one after the other.
pub(crate) fn pitch_datagrams() -> Vec<Vec<u8>> {
    let operation = |bytes: Vec<u8>| [&[bytes.len() as u8, 0][..], &bytes].concat();
    let operations: Vec<Vec<u8>> = pitch().into_iter().map(operation).collect();
    vec![Vec::new(), operations.concat()]
}

/// Every message of both plans as an operation of its feed, in sequence on one line; then the quotes as a
/// snapshot.
pub(crate) fn sip_messages() -> Vec<Vec<u8>> {
    let operation = |what: u8, number: u8| {
        move |bytes: Vec<u8>| [&[bytes.len() as u8, what, number][..], &bytes].concat()
    };
    let live: Vec<Vec<u8>> = cqs().into_iter().map(operation(0, 2)).collect();
    let snapshot: Vec<Vec<u8>> = cqs().into_iter().map(operation(3, 3)).collect();
    let uqdf: Vec<Vec<u8>> = uqdf().into_iter().map(operation(4, 2)).collect();
    let gap = vec![0, 0, 7, 0, 7, 200, 0, 7, 200];
    let lost = [live.concat(), gap, snapshot.concat()].concat();
    vec![Vec::new(), live.concat(), lost, uqdf.concat()]
}

/// A client of each service that connects, logs in, and asks.
pub(crate) fn pitch_clients() -> Vec<Vec<u8>> {
    let of_type = |kind: u8| {
        let mut all = packets("pitch").into_iter();
        all.find(|message| message.get(1) == Some(&kind))
            .unwrap_or_default()
    };
    let session = |client: u8| {
        let say = |message: Vec<u8>| {
            let length = message.len() as u8 + 8;
            [
                &[client | 5 << 2, length, length, 0, 1, 0, 0, 0, 0, 0][..],
                &message,
            ]
            .concat()
        };
        let orders = [2 << 2, 1, 2 << 2, 1, 3 << 2, 1];
        let asks = [
            say(of_type(0x03)),
            say(of_type(0x81)),
            vec![4 << 2, 255, 3 << 2, 2],
        ]
        .concat();
        [
            &orders[..],
            &[client, 1],
            &say(of_type(0x01)),
            &asks,
            &orders,
            &asks,
        ]
        .concat()
    };
    vec![
        Vec::new(),
        session(0),
        session(2),
        [session(1), session(3)].concat(),
    ]
}

pub(crate) fn openbook() -> Vec<Vec<u8>> {
    packets("openbook")
}

pub(crate) fn xdp() -> Vec<Vec<u8>> {
    packets("xdp")
}

/// Operations of a NYSE channel: every packet and message of both protocols, the messages in packets with
/// numbers that go on, each behind its length and what takes it.
pub(crate) fn nyse_datagrams() -> Vec<Vec<u8>> {
    let little = nyse_operations(self::xdp(), |number, message| {
        let mut bytes = [0; 256];
        let mut packet = xdp::PacketBuilder::new(&mut bytes, xdp::DeliveryFlag::Original, number, Nanos(1));
        let fits = packet.push(message);
        let length = packet.finish();
        fits.then(|| bytes[..length].to_vec())
    });
    let big = nyse_operations(openbook(), |_, _| None);
    vec![Vec::new(), [vec![0], little].concat(), [vec![1], big].concat()]
}

/// The same for its request server.
pub(crate) fn nyse_requests() -> Vec<Vec<u8>> {
    nyse_datagrams()
}

/// What does not fit into a packet by `wrap` is a packet, or is taken for one.
fn nyse_operations(units: Vec<Vec<u8>>, wrap: impl Fn(u32, &[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
    let mut all = Vec::new();
    for (at, unit) in units.into_iter().enumerate() {
        let packet = wrap(at as u32 + 1, &unit).unwrap_or(unit);
        if let Ok(length) = u8::try_from(packet.len()) {
            all.extend([length, at as u8]);
            all.extend(packet);
        }
    }
    all
}

/// A short day of our own templates: each datagram behind its length and what takes it.
pub(crate) fn moex_operations() -> Vec<Vec<u8>> {
    use tickwire_market::{Nanos, OrderId, Price, Side, Volume};
    use tickwire_wire::fast::Limits;
    use tickwire_wire::moex::{
        Action, Board, Definition, Encoder, MessageKind, OrderEntry, OrderKind, SnapshotHeader, Status,
        replay,
    };

    let mut encoder =
        Encoder::new(crate::targets::moex::templates(), Limits::default()).expect("our templates");
    let template = |encoder: &Encoder, kind| encoder.find(kind, "").expect("our templates have every kind");
    let sent = Nanos(1_767_596_400 * Nanos::SECOND);
    let entry = |action, rpt_seq| OrderEntry {
        action,
        kind: OrderKind::Order(Side::Bid),
        order_id: OrderId(70),
        symbol: b"SBER",
        board: b"TQBR",
        rpt_seq,
        price: Some(Price::from_4dp(2_713_500)),
        qty: Some(Volume(20)),
        date: None,
        time: Some(Nanos(36_000 * Nanos::SECOND)),
        order_status: b"O",
        session: b"N",
    };
    let mut out = [0; 255];
    let mut operations = Vec::new();
    let mut add = |what: u8, bytes: &[u8]| operations.push([&[bytes.len() as u8, what][..], bytes].concat());
    let (log, heartbeat) = (
        template(&encoder, MessageKind::OrderLog),
        template(&encoder, MessageKind::Heartbeat),
    );
    for (seq, action) in [(1, Action::New), (2, Action::Change), (4, Action::Delete)] {
        let length = encoder.order_log(log, seq, sent, &[entry(action, seq)], &mut out);
        add(0, &out[..length.expect("it fits")]);
    }
    let board = Board {
        board: b"TQBR",
        trading_status: Some(17),
        ..Board::default()
    };
    let definition = Definition {
        symbol: b"SBER",
        total_reports: Some(1),
        ..Definition::default()
    };
    let kind = template(&encoder, MessageKind::SecurityDefinition);
    let length = encoder.definition(kind, 1, sent, &definition, &[board], &mut out);
    add(4, &out[..length.expect("it fits")]);
    add(7, b"");
    add(6, b"");
    let kind = template(&encoder, MessageKind::Logon);
    let length = encoder
        .session(kind, 1, sent, b"ME", b"", &mut out)
        .expect("it fits");
    add(5, &out[..length]);
    let length = encoder
        .order_log(log, 3, sent, &[entry(Action::Change, 3)], &mut out)
        .expect("it fits");
    replay::put_length(&mut out[..length]);
    add(5, &out[..length]);
    let kind = template(&encoder, MessageKind::Logout);
    let length = encoder
        .session(kind, 3, sent, b"ME", b"", &mut out)
        .expect("it fits");
    add(5, &out[..length]);
    add(6 | 8, b"");
    let length = encoder.heartbeat(heartbeat, 9, sent, &mut out).expect("it fits");
    add(8, &out[..length]);
    add(7, b"");
    add(7, b"");
    let kind = template(&encoder, MessageKind::OrderSnapshot);
    for (seq, first_fragment) in [(1, true), (2, false)] {
        let header = SnapshotHeader {
            symbol: b"SBER",
            board: b"TQBR",
            rpt_seq: 8,
            last_seq_processed: Some(9),
            first_fragment,
            last_fragment: !first_fragment,
            trading_status: Some(17),
            ..SnapshotHeader::default()
        };
        let length = encoder.order_snapshot(kind, seq, sent, &header, &[entry(Action::New, 0)], &mut out);
        add(3, &out[..length.expect("it fits")]);
    }
    let status = Status {
        symbol: b"SBER",
        board: b"TQBR",
        trading_status: Some(18),
        ..Status::default()
    };
    let kind = template(&encoder, MessageKind::SecurityStatus);
    let length = encoder.status(kind, 1, sent, &status, &mut out).expect("it fits");
    add(4, &out[..length]);
    none().into_iter().chain([operations.concat()]).collect()
}

/// What a client says, cut in three ways, with good and bad wishes.
pub(crate) fn moex_requests() -> Vec<Vec<u8>> {
    use tickwire_market::Nanos;
    use tickwire_wire::moex::replay;
    let now = Nanos(1_767_596_400 * Nanos::SECOND);
    let mut buffer = [0; replay::REQUEST_SIZE_MAX];
    let length = replay::logon(&mut buffer, now, b"ME", b"user0", b"pass0").expect("it fits");
    let logon = buffer[..length].to_vec();
    let mut seeds = none();
    for (cut, first, last) in [(255, 1, 10), (1, 2, 3), (7, 0, 600)] {
        let mut seed = [&[cut][..], &logon].concat();
        let length = replay::market_data_request(&mut buffer, now, b"ME", b"OLR", first, last);
        seed.extend_from_slice(&buffer[..length.expect("it fits")]);
        let length = replay::logout(&mut buffer, now, b"ME").expect("it fits");
        seed.extend_from_slice(&buffer[..length]);
        seeds.push(seed);
    }
    seeds
}

/// Operations of order entry: a FIX client and a user of OUCH log in, order and cancel.
pub(crate) fn order_entry() -> Vec<Vec<u8>> {
    let operation =
        |what: u8, id: u8, bytes: &[u8]| [&[what << 2 | id, bytes.len() as u8][..], bytes].concat();
    let unsequenced = |message: &[u8]| {
        let mut packet = [0; 300];
        let length = soupbintcp::Packet::Unsequenced(message).encode(&mut packet);
        packet[..length.expect("it fits")].to_vec()
    };
    let login = soupbintcp::LoginRequest::new(b"alice", b"", b"", 1).expect("short");
    let mut ouch = [operation(0, 2, &[]), operation(5, 2, login.as_bytes())].concat();
    for vector in vectors("ouch50")
        .iter()
        .filter(|v| v.name.starts_with("inbound/"))
    {
        ouch.extend(operation(5, 2, &unsequenced(&vector.bytes)));
    }
    ouch.extend([3 << 2 | 2, 250]);
    let id = |name: &[u8]| CompId::new(name).expect("short");
    let config = SessionConfig::new(Role::Initiator, id(b"CLIENT"), id(b"EXCHANGE"));
    let (mut session, now) = (Session::new(config), crate::targets::order_entry::START);
    let (mut fix, mut buffer) = (operation(0, 0, &[]), [0; 250]);
    session.handle_connected(now);
    while let Some(bytes) = session.poll_transmit(&mut buffer) {
        fix.extend(operation(5, 0, bytes));
    }
    fix.extend([3 << 2, 250]);
    vec![Vec::new(), [&fix[..], &ouch].concat(), fix, ouch]
}

/// A mass quote of two entries, one with a protection's reset, a status request and a cancellation, each of
/// them read at once.
pub(crate) fn mass_quotes() -> Vec<Vec<u8>> {
    // Tags and values by their places in the target's tables.
    let entry = |id: u8| [12, id, 18, 16, 2, 10, 3, 11, 4, 7, 5, 7];
    let head = [0, 0, 9, 0, 14, 0, 15, 1, 8, 1];
    let quote = |start: &[u8]| {
        let fields = [start, &head, &entry(0), &entry(1)].concat();
        [&[66, (fields.len() / 2) as u8][..], &fields].concat()
    };
    let cancel = [69, 2, 0, 0, 11, 3].to_vec();
    let status = [70, 3, 20, 0, 18, 16, 0, 0].to_vec();
    let reset = quote(&[21, 14]);
    vec![
        Vec::new(),
        quote(&[]),
        [quote(&[]), status, reset, cancel].concat(),
    ]
}

/// A call and a put of ordinary terms, and one of all ones.
pub(crate) fn option_terms() -> Vec<Vec<u8>> {
    let number = |kind: u8, word: u64| [&[kind][..], &word.to_le_bytes()].concat();
    let terms = |kind: u8, shares: [f64; 5]| {
        let word = |share: f64| number(255, (share * (1_u64 << 53) as f64) as u64 * 2048);
        let words = shares.map(word).concat();
        [&words[..], &[kind]].concat()
    };
    let odd = [
        number(0, u64::MAX),
        number(0, 1),
        number(0, 0),
        number(0, 1 << 63),
        number(0, 0x7FF0 << 48),
    ];
    let odd = [&odd.concat()[..], &[0]].concat();
    let call = terms(0, [0.5, 0.51, 0.05, 0.09, 0.2]);
    let put = terms(1, [0.5, 0.2, 0.5, 0.4, 0.0]);
    vec![Vec::new(), [call, put].concat(), odd]
}

/// Orders are sent, accepted and replaced, trade, are refused and cancelled; everything is pulled and quoted
/// again.
pub(crate) fn quote_orders() -> Vec<Vec<u8>> {
    // Both sides of the quotes around the money; the kind of report is in the middle bits.
    let report = |kind: u8, much: u8| -> Vec<u8> {
        let of = |quote: u8| [1 + (kind << 3), quote, much, 1 + (kind << 3) + 128, quote, much];
        (25..45).flat_map(of).collect()
    };
    let tick = |how: u8| vec![0, how, 0];
    let day = [
        tick(6),
        report(0, 1),
        tick(8),
        report(1, 2),
        report(2, 3),
        tick(1),
        report(5, 0),
    ]
    .concat();
    let troubles = [
        report(3, 201),
        vec![6, 0, 0],
        tick(5),
        vec![6 + 64, 0, 0],
        vec![6 + 16, 0, 0],
        tick(2),
    ]
    .concat();
    vec![Vec::new(), day.clone(), [&day[..], &troubles, &day].concat()]
}

/// Quoting begins, the market moves, the venue answers and trades, is pulled, loses the session and gets it
/// again.
pub(crate) fn quoter() -> Vec<Vec<u8>> {
    let logon = [12 + 16, 1];
    let tick = |how: u8| [128, how];
    let answered = [[4, 0], [7, 0]].concat();
    let mut day = [&logon[..], &tick(4), &answered.repeat(5)].concat();
    for how in [2, 7, 3, 8, 1, 0] {
        day.extend(tick(how));
        day.extend(&answered);
        day.extend([10 + 32, how * 9]);
        day.extend([15, 0]);
    }
    let troubles = [
        [14, 0],
        [4, 0],
        [7, 0],
        [15, 0],
        [14 + 64, 0],
        [128, 6],
        [12, 0],
        [12 + 16, 0],
        [13, 0],
        [15, 0],
    ];
    let stormy = [&day[..], &troubles.concat(), &day].concat();
    let shape = |first: u8| [&[first][..], &stormy].concat();
    vec![Vec::new(), shape(0), shape(1), shape(14)]
}

/// A journal of every kind of input, in the form of today and in the one before.
pub(crate) fn journal() -> Vec<Vec<u8>> {
    let mut writer = JournalWriter::new("seed = 1");
    let inputs = [
        Input::Open,
        Input::Time,
        Input::Connect(1),
        Input::Bytes(1, b"bytes"),
        Input::Transmit(1, 512),
        Input::Mark(7),
        Input::Break(0, 9, BreakReason::Consent),
        Input::Action(0, InstrumentId(1), TradingAction::Halt),
        Input::Disconnect(1),
        Input::Resume,
        Input::Stop,
    ];
    for (at, input) in (0..).zip(&inputs) {
        writer.put(Nanos(at), input);
    }
    let journal = writer.pending().to_vec();
    let mut before = journal.clone();
    before[..JOURNAL_MAGIC_BEFORE.len()].copy_from_slice(&JOURNAL_MAGIC_BEFORE);
    vec![Vec::new(), journal, before]
}

pub(crate) fn ouch50() -> Vec<Vec<u8>> {
    packets("ouch50")
}

pub(crate) fn soupbintcp() -> Vec<Vec<u8>> {
    let mut seeds = packets("soupbintcp");
    seeds.push(seeds.concat());
    seeds
}

/// The bytes of every vector of a protocol, after the empty input.
fn packets(protocol: &str) -> Vec<Vec<u8>> {
    let bytes = vectors(protocol).into_iter().map(|vector| vector.bytes);
    none().into_iter().chain(bytes).collect()
}

/// Operations of the feed: a configuration byte, then datagrams behind a length and a kind, the kinds taken
/// in turn.
pub(crate) fn datagrams() -> Vec<Vec<u8>> {
    let short = moldudp64()
        .into_iter()
        .chain(soupbintcp())
        .filter(|bytes| bytes.len() < 256)
        .enumerate();
    let operations: Vec<Vec<u8>> = short
        .map(|(at, bytes)| [&[bytes.len() as u8, at as u8][..], &bytes].concat())
        .collect();
    let alone = operations
        .iter()
        .map(|operation| [&[0u8][..], operation].concat());
    let all = [&[4u8][..], &operations.concat()].concat();
    none().into_iter().chain(alone).chain([all]).collect()
}

/// Decisions that make a file of two groups with some packets.
pub(crate) fn recorded_blocks() -> Vec<Vec<u8>> {
    let packet = |of: u8| [&[of][..], &[1; 8], &[5], b"bytes", &[of]].concat();
    let whole = [&[255, 255, 1][..], &packet(0), &packet(1), &packet(0)].concat();
    let cut = [&[0, 200, 1][..], &packet(0), &packet(1)].concat();
    none().into_iter().chain([whole, cut]).collect()
}

/// A capture of each kind with one datagram in it.
pub(crate) fn captures() -> Vec<Vec<u8>> {
    let frame = ethernet(&[0; 20]);
    let len = (frame.len() as u32).to_le_bytes();
    let header = |magic: u32| {
        [magic, 4 << 16 | 2, 0, 0, 65_535, 1]
            .map(u32::to_le_bytes)
            .concat()
    };
    let record = [&[0; 8][..], &len, &len, &frame].concat();
    let classic = [0xA1B2_C3D4, 0xA1B2_3C4D].map(|magic| [&header(magic)[..], &record, &record].concat());
    let section = block(
        0x0A0D_0D0A,
        &[
            0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
        ],
    );
    let interface = block(1, &[1, 0, 0, 0, 255, 255, 0, 0]);
    let packet = block(6, &[&[0; 12][..], &len, &len, &frame].concat());
    let next_generation = [section, interface, packet.clone(), packet].concat();
    none()
        .into_iter()
        .chain(classic)
        .chain([next_generation])
        .collect()
}

/// Frames behind their lengths: a datagram in two fragments, segments of a stream, what is around them.
pub(crate) fn capture_frames() -> Vec<Vec<u8>> {
    let ip = |protocol: u8, place: u16, body: &[u8]| {
        let len = (20 + body.len() as u16).to_be_bytes();
        let place = place.to_be_bytes();
        let head = [
            &[0x45, 0][..],
            &len,
            &[0, 7],
            &place,
            &[64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2],
        ]
        .concat();
        [&[0; 12][..], &[8, 0], &head, body].concat()
    };
    let segment = |seq: u8, flags: u8, payload: &[u8]| {
        let head = [
            &[
                0, 1, 0, 2, 0, 0, 0, seq, 0, 0, 0, 0, 0x50, flags, 1, 0, 0, 0, 0, 0,
            ][..],
            payload,
        ]
        .concat();
        ip(6, 0x4000, &head)
    };
    let datagram = [&[0, 1, 0, 2, 0, 24, 0, 0][..], &[7; 16]].concat();
    let inner = ip(17, 0, &datagram);
    let frames = |frames: &[Vec<u8>]| {
        let framed = frames
            .iter()
            .map(|f| [&(f.len() as u16).to_le_bytes()[..], f].concat());
        [&[1][..], &framed.collect::<Vec<_>>().concat()].concat()
    };
    let pieces = frames(&[ip(17, 0x2000, &datagram[..16]), ip(17, 2, &datagram[16..])]);
    let stream = frames(&[
        segment(0, 2, b""),
        segment(4, 0x18, b"def"),
        segment(1, 0x18, b"abc"),
        segment(2, 0x18, b"bcde"),
    ]);
    let gre = frames(&[ip(
        47,
        0,
        &[
            &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0][..],
            &inner,
        ]
        .concat(),
    )]);
    none().into_iter().chain([pieces, stream, gre]).collect()
}

/// A pcapng block: type, length, body padded to 32 bits, length again.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
    let len = ((12 + body.len() + padding.len()) as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &len, body, &padding, &len].concat()
}

/// Ethernet, IPv4 and UDP around a payload; checksums are 0.
fn ethernet(payload: &[u8]) -> Vec<u8> {
    let udp_len = (8 + payload.len()) as u16;
    let link = [&[0; 12][..], &[8, 0]].concat();
    let ip = [
        &[0x45, 0][..],
        &(20 + udp_len).to_be_bytes(),
        &[0, 0, 0, 0, 1, 17, 0, 0, 127, 0, 0, 1, 239, 0, 0, 1],
    ]
    .concat();
    let udp = [&[0x6D, 0x60, 0x6D, 0x60][..], &udp_len.to_be_bytes(), &[0, 0]].concat();
    [&link[..], &ip, &udp, payload].concat()
}

/// Well-formed messages of a session.
pub(crate) fn fix_messages() -> Vec<Vec<u8>> {
    let header = |kind: &str, seq: u32| {
        let text = format!("35={kind}|34={seq}|49=TRADER|56=EXCHANGE|52=20261120-14:30:00.000");
        fields(&text)
    };
    let bodies = [
        ("A", "98=0|108=30|141=Y"),
        ("0", "112=TEST"),
        ("1", "112=TEST"),
        ("2", "7=1|16=0"),
        ("4", "123=Y|36=9"),
        ("5", "58=bye"),
        (
            "D",
            "11=1|55=IVOO|54=1|60=20261120-14:30:00.000|38=100|40=2|44=87.39|59=3|20001=1|20002=77|20003=5",
        ),
        (
            "8",
            "37=1|11=1|17=1|150=F|39=2|55=IVOO|54=1|38=100|32=100|31=87.39|151=0|14=100|6=87.39",
        ),
    ];
    let messages = bodies
        .iter()
        .zip(1..)
        .map(|((kind, body), seq)| naive::encode(&[header(kind, seq), fields(body)].concat()));
    let mut seeds: Vec<Vec<u8>> = none().into_iter().chain(messages).collect();
    seeds.push(seeds.concat());
    seeds
}

/// Messages with groups within groups, from MsgType to the last field before CheckSum; some whose counts lie.
pub(crate) fn fix_groups() -> Vec<Vec<u8>> {
    let bodies = [
        (
            "i",
            "117=Q1|537=1|296=1|302=1|304=2|295=2|299=1|55=ABC|132=10.01|133=10.03|134=500|135=400|299=2|55=XYZ|132=20.5",
        ),
        (
            "i",
            "117=Q1|296=2|302=1|304=1|295=1|299=1|55=ABC|302=2|304=1|893=Y|295=1|299=1|5797=x|132=1",
        ),
        ("i", "117=Q1|296=1|302=1|295=3|299=1|55=ABC|299=2"),
        ("i", "117=Q1|296=0|5797=1"),
        (
            "X",
            "262=R|268=2|279=0|269=0|55=WIRE|270=87.39|271=100|279=2|269=1|270=87.40",
        ),
        ("X", "262=R|268=1|279=0|269=0|279=1|269=1"),
        ("Z", "117=Q1|298=1|295=1|55=ABC|202=12.5"),
    ];
    let head = "34=1|49=TRADER|56=EXCHANGE|52=20261120-14:30:00.000";
    let message = |(kind, body)| {
        format!("35={kind}|{head}|{body}|")
            .replace('|', "\x01")
            .into_bytes()
    };
    bodies.into_iter().map(message).collect()
}

fn fields(text: &str) -> Vec<(u32, Vec<u8>)> {
    let pairs = text.split('|').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(tag, value)| (tag.parse().expect("written above"), value.as_bytes().to_vec()))
        .collect()
}

/// Operations of a session, acceptor and initiator: connected, logged on, then everything in turn.
pub(crate) fn fix_operations() -> Vec<Vec<u8>> {
    let (connected, logon, order, send) = ([7], [1, 0, 0], [1, 6, 0], [5]);
    let (resend, gap, later, logout) = ([1, 3, 0, 1, 0], [1, 6, 13], [4, 60], [8]);
    let busy = [
        &order[..],
        &send,
        &send,
        &order,
        &resend,
        &gap,
        &order,
        &later,
        &send,
        &later,
        &later,
        &logout,
    ]
    .concat();
    let runs = (0..32u8).map(|setup| {
        [
            &[setup, 0][..],
            &connected,
            &logon,
            &busy,
            &[6],
            &connected,
            &logon,
            &busy,
        ]
        .concat()
    });
    // Everything that may be configured, with the owner's word on logons and a session period.
    let more = (0..=255u8).map(|more| {
        [
            &[more / 3, more][..],
            &[11, 100],
            &connected,
            &logon,
            &[9],
            &busy,
            &[6, 4, 40],
            &connected,
            &logon,
            &[10],
            &[6],
            &connected,
            &[1, 0, 64],
            &[9],
            &send,
            &send,
            &send,
            &order,
            &order,
            &later,
        ]
        .concat()
    });
    none().into_iter().chain(runs).chain(more).collect()
}

/// The validator's own dictionary, and small ones that are wrong.
pub(crate) fn fix_dictionaries() -> Vec<Vec<u8>> {
    let texts = [
        FIX_DICTIONARY,
        "<fix major='4' minor='4'><header/><trailer/><messages/><fields/></fix>",
        "<fix major='4' minor='4'><header/><trailer/><messages><message name='A' msgtype='A'><component name='C'/></message></messages><components><component name='C'><component name='C'/></component></components><fields/></fix>",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

/// Choices of fields: an order with two parties, one with a list within, and a heartbeat.
pub(crate) fn fix_fields() -> Vec<Vec<u8>> {
    let order = [
        0, 4, 5, 5, 0, 12, 1, 13, 5, 14, 5, 15, 0, 16, 5, 13, 5, 14, 5, 6, 0,
    ];
    vec![order.to_vec(), vec![1, 8, 5], Vec::new()]
}

/// Operations of a store: messages until the ring is full, a crash without and with damage, a reset.
pub(crate) fn fix_store_operations() -> Vec<Vec<u8>> {
    let messages = |n: usize| [1, 33, 66, 99].into_iter().cycle().take(n).collect::<Vec<u8>>();
    let damage = |at: u8| vec![15, at % 4, at, 4, 1, 2, 3, 4, 5, 6, 7, 8];
    vec![
        [
            messages(40),
            vec![7],
            messages(9),
            vec![4, 5, 14],
            messages(3),
            vec![44],
            vec![7],
        ]
        .concat(),
        [messages(9), damage(20), messages(3), vec![7]].concat(),
        [messages(60), damage(3), damage(4), messages(3)].concat(),
    ]
}

/// A region's own bytes, and words put into one: a book that is being written, and a ring's newest record.
pub(crate) fn shared_regions() -> Vec<Vec<u8>> {
    let put = |word: u16, value: u64| [&word.to_le_bytes()[..], &value.to_le_bytes()].concat();
    let words = [put(72, 1), put(2024, 3), put(2032, 1), put(2038, 2)].concat();
    vec![
        Vec::new(),
        [&[0][..], &crate::targets::region_bytes()].concat(),
        [&[1][..], &words].concat(),
    ]
}
