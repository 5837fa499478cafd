//! Every recording of market data that we have: decoded to the last byte, written again to the same bytes,
//! and printed by `tickwire decode`. What each file holds stands in `vectors/captures.txt`;
//! `UPDATE=1 cargo test -p tickwire --test captures` rewrites it: read the diff. A file that no row of
//! [`CLAIMS`] claims fails the test.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{run, text};
use tickwire_market::Nanos;
use tickwire_runtime::capture::{LinkType, PcapWriter};
use tickwire_testdata::{
    captures, file_bytes, framed_messages, hex, pcap_payloads, pcap_tcp_payloads, specs, unhex,
};
use tickwire_wire::fast::{self, Fault, Limits, Plan};
use tickwire_wire::zerocopy::IntoBytes;
use tickwire_wire::{Malformed, cqs, itch50, mdp3, moldudp64, openbook, pitch, uqdf, xdp};

/// Messages by name; what is not a message (a heartbeat) by what it is.
type Counts = BTreeMap<String, usize>;

/// Reads a datagram, counts what is in it, and writes it again from what was read.
type Again = fn(&[u8], &mut Counts) -> Vec<u8>;

/// What a file is.
enum Claim {
    /// Datagrams of a protocol, which `decode --protocol` reads too.
    Datagrams(&'static str, Again),
    /// TCP segments of conflated MDP 3.0.
    Conflated,
    /// ITCH messages behind their length, or behind a length of 0.
    Messages,
    /// MOEX datagrams in hexadecimal, and their template file.
    Moex(&'static str),
    /// A stream of FAST messages of the derivatives market.
    Forts,
    /// Of a feed or session that the project does not read here.
    Other,
    /// No recording.
    NoRecording,
}
use Claim::{Conflated, Datagrams, Forts, Messages, Moex, NoRecording, Other};

/// Files by how their path begins, under the folder of captures; the first row that fits.
const CLAIMS: &[(&str, Claim)] = &[
    ("README.md", NoRecording),
    (
        "books/itch-synthetic/first3000_mold.pcap",
        Datagrams("itch50", itch),
    ),
    ("books/itch-synthetic/synth120k.itch", Messages),
    // Messages, orders and books after them in files of their vendors: crates/book/tests/all/captures.rs.
    ("books/", NoRecording),
    ("dbn/", NoRecording),
    ("options/", NoRecording),
    ("itch-files/", Messages),
    ("moex-asts/packets-2017.hex", Moex("templates-2017-03.xml")),
    ("moex-asts/packets-2020.hex", Moex("templates-2020-11.xml")),
    ("moex-forts/config.xml", NoRecording),
    ("moex-forts/templates.xml", NoRecording),
    ("moex-forts/", Forts),
    (
        "packets/Cboe/Byx.Equities.DepthOfBook",
        Datagrams("pitch", equities),
    ),
    (
        "packets/Cboe/Options.ComplexDepthOfBook",
        Datagrams("pitch-complex", complex),
    ),
    (
        "packets/Cboe/Options.DepthOfBook",
        Datagrams("pitch-options", options),
    ),
    (
        "packets/Cboe/Futures.DepthOfBook",
        Datagrams("pitch-futures", futures),
    ),
    ("packets/Cboe/Options.MarketLevel2.Csm", Other),
    ("packets/Cboe/Options.TopOfMarket.Csm", Other),
    ("packets/Cboe/Options.OrderEntry.Boe", Other),
    ("packets/Cme/Mdp3.Sbe.v1.12/", Conflated),
    ("packets/Cme/Mdp3.", Datagrams("mdp3", mdp3)),
    ("packets/Cme/iLink3.", Other),
    ("packets/Nasdaq/Ise.", Other),
    ("packets/Nasdaq/Nasdaq.Equities.Bbo.", Other),
    ("packets/Nasdaq/Nasdaq.Equities.NlsPlus.", Other),
    (
        "packets/Nasdaq/Nasdaq.Equities.TotalView.",
        Datagrams("itch50", itch),
    ),
    ("packets/Nasdaq/Nasdaq.Nsm.Ouch.", Other),
    ("packets/Nasdaq/Uqdf.", Datagrams("uqdf", uqdf)),
    ("packets/Nyse/Arca.Options.TopFeed.", Datagrams("xdp", xdp)),
    ("packets/Nyse/Bbo.Xdp.", Datagrams("xdp", xdp)),
    ("packets/Nyse/Equities.BinaryGateway.", Other),
    ("packets/Nyse/ImbalancesFeed.", Datagrams("xdp", xdp)),
    ("packets/Nyse/IntegratedFeed.", Datagrams("xdp", xdp)),
    ("packets/Nyse/National.Equities.Bbo.", Datagrams("xdp", xdp)),
    (
        "packets/Nyse/Nyse.Equities.OpenBook.",
        Datagrams("openbook", openbook),
    ),
    ("packets/Siac/Cqs.", Datagrams("cqs", cqs)),
    ("packets/Siac/Cts.", Datagrams("cqs", cqs)),
    ("packets/Siac/Opra.", Other),
];

/// Types without a layout here, by how the path begins: of feeds that share the framing, and of packets that
/// are older than their template file. Any other unknown type fails the test.
const UNKNOWN: &[(&str, &[&str])] = &[
    ("moex-asts/packets-2017.hex", &["12", "2412", "2420", "2422"]),
    // Future instrument definitions.
    ("packets/Cboe/Futures.DepthOfBook", &["0xBB"]),
    // Symbol mapping, complex instrument definition, auctions.
    (
        "packets/Cboe/Options.ComplexDepthOfBook",
        &["0x2E", "0x9A", "0xAD", "0xAE", "0xD1"],
    ),
    // Options quote, and the quote of the BBO feeds.
    ("packets/Nyse/Arca.Options.TopFeed.", &["340"]),
    ("packets/Nyse/Bbo.Xdp.", &["140"]),
    ("packets/Nyse/National.Equities.Bbo.", &["140"]),
    // Corrections, cancels and summaries of the trade feed.
    (
        "packets/Siac/Cts.",
        &[
            "AA", "AB", "AC", "AD", "II", "MV", "PE", "PR", "SA", "SB", "SP", "ST", "TC", "TE", "TT",
        ],
    ),
];

fn count(counts: &mut Counts, name: impl Into<String>) {
    *counts.entry(name.into()).or_default() += 1;
}

fn count_unknown(counts: &mut Counts, kind: impl std::fmt::Display) {
    count(counts, format!("unknown:{kind}"));
}

/// The datagram of MoldUDP64 with each message read and written by `message`.
fn mold(payload: &[u8], counts: &mut Counts, message: fn(&[u8], &mut Counts) -> Vec<u8>) -> Vec<u8> {
    let packet = moldudp64::parse(payload).unwrap();
    let mut buffer = vec![0; payload.len()];
    let size = match packet.payload {
        moldudp64::Payload::Heartbeat => {
            count(counts, "Heartbeat");
            moldudp64::heartbeat(&mut buffer, packet.session, packet.seq)
        }
        moldudp64::Payload::EndOfSession => {
            count(counts, "EndOfSession");
            moldudp64::end_of_session(&mut buffer, packet.session, packet.seq)
        }
        moldudp64::Payload::Messages(blocks) => {
            let mut builder = moldudp64::PacketBuilder::new(&mut buffer, packet.session, packet.seq);
            blocks.for_each(|block| assert!(builder.push(&message(block, counts))));
            builder.finish()
        }
    };
    buffer.truncate(size);
    buffer
}

fn itch(payload: &[u8], counts: &mut Counts) -> Vec<u8> {
    mold(payload, counts, itch_message)
}

fn itch_message(bytes: &[u8], counts: &mut Counts) -> Vec<u8> {
    let message = itch50::parse(bytes).unwrap();
    count(counts, message.name());
    message.as_bytes().to_vec()
}

fn uqdf(payload: &[u8], counts: &mut Counts) -> Vec<u8> {
    mold(payload, counts, |bytes, counts| {
        let message = uqdf::parse(bytes).unwrap();
        count(counts, message.name());
        let mut again = vec![0; bytes.len()];
        let size = message.encode(&mut again).unwrap();
        again.truncate(size);
        again
    })
}

/// Reads a message of one PITCH family: its name and its own bytes.
type ReadPitch = for<'a> fn(&'a [u8]) -> Result<(&'static str, &'a [u8]), Malformed>;

/// A message's own bytes and those of its legs. A definition of a newer revision than the layouts says more
/// between or behind them: `decode` shows that as `UnreadBytes`, and it is copied.
fn with_legs(own: &[u8], message: &[u8]) -> Vec<u8> {
    let mut whole = own.to_vec();
    match own[1] {
        pitch::complex::ComplexInstrumentDefinition::KIND => {
            pitch::complex::legs(message).for_each(|leg| whole.extend_from_slice(leg.as_bytes()));
        }
        pitch::futures::FutureInstrumentDefinition::KIND => {
            let legs_at = match usize::from(own[39]) {
                0 => message.len(),
                at => at,
            };
            whole.extend_from_slice(&message[own.len()..legs_at]);
            pitch::futures::legs(message).for_each(|leg| whole.extend_from_slice(leg.as_bytes()));
        }
        _ => {}
    }
    whole
}

fn pitch(payload: &[u8], counts: &mut Counts, read: ReadPitch) -> Vec<u8> {
    let packet = pitch::packet(payload).unwrap();
    let mut buffer = vec![0; payload.len()];
    let mut builder = pitch::PacketBuilder::new(&mut buffer, packet.unit, packet.sequence);
    if packet.messages.len() == 0 {
        count(counts, "Heartbeat");
    }
    for bytes in packet.messages {
        match read(bytes) {
            Ok((name, own)) => {
                count(counts, name);
                assert!(builder.push(&with_legs(own, bytes)), "{name}");
            }
            Err(Malformed::UnknownType(kind)) => {
                count_unknown(counts, format_args!("0x{kind:02X}"));
                assert!(builder.push(bytes));
            }
            Err(error) => panic!("{error}"),
        }
    }
    let size = builder.finish();
    buffer.truncate(size);
    buffer
}

fn equities(payload: &[u8], counts: &mut Counts) -> Vec<u8> {
    pitch(payload, counts, |m| {
        pitch::parse(m).map(|m| (m.name(), m.as_bytes()))
    })
}

fn options(payload: &[u8], counts: &mut Counts) -> Vec<u8> {
    pitch(payload, counts, |m| {
        pitch::options::parse(m).map(|m| (m.name(), m.as_bytes()))
    })
}

fn complex(payload: &[u8], counts: &mut Counts) -> Vec<u8> {
    pitch(payload, counts, |m| {
        pitch::complex::parse(m).map(|m| (m.name(), m.as_bytes()))
    })
}

fn futures(payload: &[u8], counts: &mut Counts) -> Vec<u8> {
    pitch(payload, counts, |m| {
        pitch::futures::parse(m).map(|m| (m.name(), m.as_bytes()))
    })
}

fn xdp(payload: &[u8], counts: &mut Counts) -> Vec<u8> {
    let packet = xdp::parse_packet(payload).unwrap();
    let (header, flag) = (packet.header, packet.flag().unwrap());
    let mut buffer = vec![0; payload.len()];
    let mut builder = xdp::PacketBuilder::new(&mut buffer, flag, header.seq_num.get(), packet.sent());
    if packet.messages.len() == 0 {
        count(counts, format!("{flag:?}"));
    }
    for bytes in packet.messages {
        match xdp::parse(bytes) {
            Ok(message) => {
                count(counts, message.name());
                // A later release sends more at the end: `decode` shows it as `UnreadBytes`, and it is
                // copied.
                let own = message.as_bytes();
                assert!(builder.push(&[own, &bytes[own.len()..]].concat()));
            }
            Err(Malformed::UnknownTemplate(kind)) => {
                count_unknown(counts, kind);
                assert!(builder.push(bytes));
            }
            Err(error) => panic!("{error}"),
        }
    }
    let size = builder.finish();
    buffer.truncate(size);
    buffer
}

fn openbook(payload: &[u8], counts: &mut Counts) -> Vec<u8> {
    let packet = openbook::parse_packet(payload).unwrap();
    let kind = packet.kind();
    let mut buffer = vec![0; payload.len()];
    let mut builder = openbook::PacketBuilder::new(&mut buffer, *packet.header);
    if packet.messages.len() == 0 {
        assert_eq!(kind, openbook::HEARTBEAT);
        count(counts, "Heartbeat");
    }
    for bytes in packet.messages {
        let message = openbook::parse(kind, bytes).unwrap();
        count(counts, message.name());
        let mut again = vec![0; bytes.len()];
        assert_eq!(message.encode(&mut again), Some(bytes.len()));
        assert!(builder.push(&again));
    }
    let size = builder.finish();
    buffer.truncate(size);
    buffer
}

fn cqs(payload: &[u8], counts: &mut Counts) -> Vec<u8> {
    let block = cqs::parse_block(payload).unwrap();
    let mut buffer = vec![0xFF; cqs::BLOCK_SIZE_MAX];
    let mut builder = cqs::BlockBuilder::new(&mut buffer, *block.header);
    for bytes in block.messages {
        match cqs::parse(bytes) {
            Ok(message) => {
                count(counts, message.name());
                assert!(builder.push(&message.parts()));
            }
            Err(Malformed::UnknownTemplate(kind)) => {
                count_unknown(counts, kind.to_be_bytes().escape_ascii());
                assert!(builder.push(&[bytes]));
            }
            Err(error) => panic!("{error}"),
        }
    }
    let size = builder.finish();
    buffer.truncate(size);
    buffer
}

fn mdp3(payload: &[u8], counts: &mut Counts) -> Vec<u8> {
    let packet = mdp3::parse_packet(payload).unwrap();
    let mut buffer = vec![0xAA; payload.len()];
    let mut builder = mdp3::PacketBuilder::new(&mut buffer, packet.seq, packet.sending_time);
    for bytes in packet.messages {
        let message = mdp3::parse(bytes).unwrap();
        assert_eq!(message.rest, b"");
        count(counts, message.name());
        assert!(builder.push(|buffer| message.encode(buffer)));
    }
    let size = builder.finish();
    buffer.truncate(size);
    buffer
}

/// As [`mdp3`], of the conflated data over TCP and their requests.
fn conflated(payload: &[u8], counts: &mut Counts) -> Vec<u8> {
    let packet = mdp3::conflated::parse_packet(payload).unwrap();
    let mut again = payload[..mdp3::conflated::Header::SIZE].to_vec();
    for bytes in packet.messages {
        let mut buffer = vec![0; payload.len()];
        let size = match mdp3::parse(bytes) {
            Ok(message) => {
                count(counts, message.name());
                message.encode(&mut buffer)
            }
            Err(_) => {
                let (header, request) = mdp3::conflated::parse(bytes).unwrap();
                count(counts, request.name());
                request.encode(&mut buffer, header)
            }
        };
        again.extend(&buffer[..size.unwrap()]);
    }
    again
}

/// A file of ITCH messages, behind their length or behind a length of 0.
fn itch_file(bytes: &[u8], counts: &mut Counts) -> usize {
    let mut rest = bytes;
    let mut messages = 0;
    if !bytes.starts_with(&[0, 0]) {
        for message in framed_messages(bytes) {
            assert_eq!(itch_message(message, counts), message);
            messages += 1;
        }
        return messages;
    }
    while let [0, 0, message @ ..] = rest {
        let own = itch_message(message, counts);
        assert_eq!(own, message[..own.len()]);
        rest = &message[own.len()..];
        messages += 1;
    }
    assert_eq!(rest, b"");
    messages
}

fn plan(path: &Path) -> Arc<Plan> {
    let xml = std::fs::read_to_string(path).unwrap();
    Arc::new(Plan::parse(&xml).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// FAST messages back to back, read and written again; `alone`: the dictionaries are reset before each.
struct Fast {
    decoder: fast::Decoder,
    encoder: fast::Encoder,
    alone: bool,
}

impl Fast {
    fn new(templates: &Path, alone: bool) -> Fast {
        let plan = plan(templates);
        Fast {
            decoder: fast::Decoder::new(plan.clone(), Limits::default()),
            encoder: fast::Encoder::new(plan, Limits::default()),
            alone,
        }
    }

    /// The message at the start; how many bytes it takes, all where its template is unknown.
    fn message(&mut self, bytes: &[u8], counts: &mut Counts) -> usize {
        if self.alone {
            self.decoder.reset();
            self.encoder.reset();
        }
        let (message, taken) = match self.decoder.decode(bytes) {
            Ok(read) => read,
            Err(error) if error.fault == Fault::UnknownTemplate => {
                count_unknown(counts, error.template);
                return bytes.len();
            }
            Err(error) => panic!("{error}"),
        };
        count(counts, message.name());
        let mut again = vec![0; taken + 64];
        let size = self.encoder.encode(message.record(), &mut again).unwrap();
        assert_eq!(hex(&again[..size]), hex(&bytes[..taken]));
        taken
    }
}

/// What `tickwire decode` says about a file: the names of its objects, and the types it does not know.
fn decoded(file: &Path, more: &[&str]) -> Counts {
    let output = run(&[&["decode", file.to_str().unwrap()], more].concat());
    let mut counts = Counts::new();
    for line in text(&output.stdout).lines() {
        let object: BTreeMap<String, serde_json::Value> = serde_json::from_str(line).expect(line);
        assert_eq!(object.len(), members(line), "two members of one name: {line}");
        match (object.get("Message"), object.get("Error")) {
            (Some(name), None) => count(&mut counts, name.as_str().unwrap()),
            (None, Some(error)) => {
                let error = error.as_str().unwrap();
                let is_unknown = error.contains("unknown message") || error.contains("No template");
                assert!(is_unknown, "{}: {line}", file.display());
                count(&mut counts, "unknown");
            }
            _ => panic!("neither message nor error: {line}"),
        }
    }
    counts
}

/// How many members the outer object of a line of JSON has.
fn members(line: &str) -> usize {
    let (mut depth, mut quoted, mut escaped, mut colons) = (0, false, false, 0);
    for c in line.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ':' if depth == 1 => colons += 1,
            _ => {}
        }
    }
    colons
}

/// The counts with all unknown types as one.
fn merged(counts: &Counts) -> Counts {
    let mut merged = Counts::new();
    for (name, n) in counts {
        let name = if name.starts_with("unknown:") {
            "unknown"
        } else {
            name
        };
        *merged.entry(name.to_string()).or_default() += n;
    }
    merged
}

fn all_files(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all_files(&path, found);
        } else {
            found.insert(path);
        }
    }
}

/// One line of the table, and a claim that the file is what it says.
fn examine(name: &str, path: &Path, claim: &Claim) -> Option<String> {
    let mut counts = Counts::new();
    let (what, packets) = match claim {
        NoRecording => return None,
        Other => return Some(format!("{name}: of another feed")),
        Datagrams(protocol, again) => {
            let payloads = pcap_payloads(path);
            for payload in &payloads {
                assert_eq!(hex(&again(payload, &mut counts)), hex(payload), "{name}");
            }
            assert_eq!(
                decoded(path, &["--protocol", protocol]),
                merged(&counts),
                "{name}"
            );
            (*protocol, payloads.len())
        }
        Conflated => {
            let payloads = pcap_tcp_payloads(path);
            for payload in &payloads {
                assert_eq!(hex(&conflated(payload, &mut counts)), hex(payload), "{name}");
            }
            ("mdp3 over TCP", payloads.len())
        }
        Messages => {
            let messages = itch_file(&file_bytes(path), &mut counts);
            assert_eq!(decoded(path, &[]), counts, "{name}");
            assert_eq!(counts.values().sum::<usize>(), messages, "{name}");
            ("itch50, a file of messages", 0)
        }
        Moex(templates) => {
            let templates = specs(&format!("moex/{templates}"));
            let mut fast = Fast::new(&templates, true);
            let packets: Vec<_> = std::fs::read_to_string(path)
                .unwrap()
                .lines()
                .filter(|line| !line.is_empty())
                .map(unhex)
                .collect();
            for packet in &packets {
                assert_eq!(
                    4 + fast.message(&packet[4..], &mut counts),
                    packet.len(),
                    "{name}"
                );
            }
            let folder = common::Folder::new("captures");
            let pcap = folder.0.join("moex.pcap");
            write_pcap(&pcap, &packets);
            let templates = templates.to_str().unwrap();
            let said = decoded(&pcap, &["--protocol", "moex", "--templates", templates]);
            assert_eq!(said, merged(&counts), "{name}");
            ("moex", packets.len())
        }
        Forts => {
            let mut fast = Fast::new(&captures("moex-forts/templates.xml"), false);
            let bytes = file_bytes(path);
            let mut at = 0;
            while at < bytes.len() {
                at += fast.message(&bytes[at..], &mut counts);
            }
            ("FAST of the derivatives market", 0)
        }
    };
    for unknown in counts.keys().filter_map(|n| n.strip_prefix("unknown:")) {
        let allowed = UNKNOWN.iter().find(|(path, _)| name.starts_with(path));
        assert!(
            allowed.is_some_and(|(_, types)| types.contains(&unknown)),
            "{name}: type {unknown} is unknown"
        );
    }
    let mut line = format!("{name}: {what}");
    if packets > 0 {
        let _ = write!(line, ", {packets} packets");
    }
    let counts: Vec<_> = counts.iter().map(|(name, n)| format!("{name} {n}")).collect();
    let _ = write!(line, ": {}", counts.join(", "));
    Some(line)
}

fn write_pcap(path: &Path, payloads: &[Vec<u8>]) {
    let mut pcap = PcapWriter::create(path, LinkType::ETHERNET).unwrap();
    let [from, to]: [SocketAddrV4; 2] = ["10.0.0.1:1", "239.195.1.1:16001"].map(|a| a.parse().unwrap());
    for (at, payload) in (1..).zip(payloads) {
        pcap.write_udp(Nanos(at), from, to, payload).unwrap();
    }
    pcap.finish().unwrap();
}

#[tickwire_testdata::recorded_data(
    "captures",
    "captures/books/itch-synthetic",
    "captures/books/lobster",
    "captures/books/xnas-mbo-mbp10",
    "captures/moex-asts",
    "captures/options",
    "specs/moex"
)]
#[test]
fn every_recording_decodes_to_the_last_byte_and_is_written_again() {
    let root = captures("");
    let mut files = BTreeSet::new();
    all_files(&root, &mut files);
    let mut used = BTreeSet::new();
    let mut table = String::new();
    for path in &files {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let claim = CLAIMS
            .iter()
            .enumerate()
            .find(|(_, (start, _))| name.starts_with(start));
        let (row, (_, claim)) =
            claim.unwrap_or_else(|| panic!("{name}: nobody claims this file; add it to CLAIMS"));
        used.insert(row);
        if let Some(line) = examine(name, path, claim) {
            println!("{line}");
            table += &line;
            table.push('\n');
        }
    }
    assert_eq!(used.len(), CLAIMS.len(), "a row of CLAIMS claims no file");
    let expected = tickwire_testdata::workspace().join("vectors/captures.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&expected, &table).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&expected).unwrap();
    for (found, expected) in table.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "UPDATE=1 rewrites vectors/captures.txt");
    }
    assert_eq!(table.lines().count(), expected.lines().count());
}
