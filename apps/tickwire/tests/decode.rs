//! `tickwire decode` on captures of several feeds: told by a configuration, by the user, or by the packets.

mod common;

use common::{Folder, run, text};
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use tickwire_market::{Nanos, SeqNo};
use tickwire_runtime::capture::{LinkType, PcapWriter};
use tickwire_testdata::{captures, specs, unhex, workspace};
use tickwire_wire::{cqs, moldudp64, pitch, xdp};

/// The bytes of a vector: of a message, or of a packet where the protocol's vectors are packets.
fn vector(protocol: &str, name: &str) -> Vec<u8> {
    let vectors = tickwire_testdata::vectors(protocol);
    let vector = vectors.into_iter().find(|vector| vector.name == name);
    vector.unwrap_or_else(|| panic!("{protocol} has no {name}")).bytes
}

/// A message in a packet of MoldUDP64.
fn in_mold(message: &[u8]) -> Vec<u8> {
    let mut buffer = [0; 200];
    let mut packet = moldudp64::PacketBuilder::new(&mut buffer, *b"000010059B", SeqNo(14_757_721));
    assert!(packet.push(message));
    let length = packet.finish();
    buffer[..length].to_vec()
}

fn itch() -> Vec<u8> {
    in_mold(&vector("itch50", "order_delete/whole"))
}

fn pitch() -> Vec<u8> {
    let mut buffer = [0; 200];
    let mut packet = pitch::PacketBuilder::new(&mut buffer, 1, 9);
    assert!(packet.push(&vector("pitch", "add_order_short/usual")));
    let length = packet.finish();
    buffer[..length].to_vec()
}

fn xdp() -> Vec<u8> {
    let mut buffer = [0; 200];
    let sent = Nanos(1_645_642_927 * Nanos::SECOND);
    let mut packet = xdp::PacketBuilder::new(&mut buffer, xdp::DeliveryFlag::Original, 53_173, sent);
    assert!(packet.push(&vector("xdp", "add_order/typical")));
    let length = packet.finish();
    buffer[..length].to_vec()
}

fn cqs() -> Vec<u8> {
    let mut buffer = [0; 400];
    let sent = cqs::UnixTime {
        seconds: 1_540_480_512.into(),
        nanos: 526_727_191.into(),
    };
    let header = cqs::BlockHeader::at(cqs::Feed::Quotes, 19_878_165, sent);
    let mut block = cqs::BlockBuilder::new(&mut buffer, header);
    assert!(block.push(&[&vector("cqs", "long_quote/keeps_the_national_best")]));
    let length = block.finish();
    buffer[..length].to_vec()
}

fn uqdf() -> Vec<u8> {
    in_mold(&vector("uqdf", "quote_long/keeps_the_national_best"))
}

/// A packet of two messages.
fn mdp3() -> Vec<u8> {
    let book = vector("mdp3", "incremental_refresh_book46/two_entries_a_group");
    let volume = vector("mdp3", "incremental_refresh_volume37/two_entries_a_group");
    [&book[..], &volume[12..]].concat()
}

/// A capture of these packets: sender, destination, payload.
fn capture(folder: &Folder, packets: &[(&str, &str, Vec<u8>)]) -> PathBuf {
    let path = folder.0.join("mixed.pcap");
    let mut pcap = PcapWriter::create(&path, LinkType::ETHERNET).unwrap();
    let address = |text: &str| text.parse::<SocketAddrV4>().unwrap();
    for (at, (from, to, payload)) in (1..).zip(packets) {
        pcap.write_udp(Nanos(at), address(from), address(to), payload)
            .unwrap();
    }
    pcap.finish().unwrap();
    path
}

/// A capture of packets of one sender.
fn sent(folder: &Folder, packets: &[(&str, Vec<u8>)]) -> PathBuf {
    let packets: Vec<_> = packets
        .iter()
        .map(|(to, payload)| ("10.0.0.1:1", *to, payload.clone()))
        .collect();
    capture(folder, &packets)
}

/// The objects that `decode` writes, and what it says at the end.
fn decode(args: &[&str], file: &Path) -> (Option<i32>, Vec<serde_json::Value>, String) {
    let output = run(&[&["decode", file.to_str().unwrap()], args].concat());
    let objects = text(&output.stdout)
        .lines()
        .map(|l| serde_json::from_str(l).expect(l))
        .collect();
    (output.status.code(), objects, text(&output.stderr))
}

fn column<'a>(objects: &'a [serde_json::Value], name: &str) -> Vec<&'a str> {
    objects.iter().map(|o| o[name].as_str().unwrap_or("-")).collect()
}

#[test]
fn a_configuration_tells_feed_channel_and_line_of_every_packet() {
    let folder = Folder::new("whole-market");
    let file = sent(
        &folder,
        &[
            ("239.1.1.1:26400", itch()),
            ("239.1.2.1:26400", itch()),
            ("239.4.2.17:30417", pitch()),
            ("239.99.0.1:5000", pitch()),
            ("239.8.1.3:32003", xdp()),
            ("239.16.1.12:33512", cqs()),
            ("239.17.2.6:33606", uqdf()),
            ("239.99.0.1:5000", pitch()),
            ("239.99.0.2:5000", mdp3()),
        ],
    );
    let config = workspace().join("examples/whole-market.toml");
    let (code, objects, said) = decode(&["-c", config.to_str().unwrap()], &file);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        column(&objects, "Feed"),
        ["nasdaq", "nasdaq", "bzx", "nyse", "cqs", "uqdf"]
    );
    assert_eq!(column(&objects, "Channel"), ["1", "1", "17", "3", "B12", "6"]);
    assert_eq!(column(&objects, "Line"), ["a", "b", "b", "a", "a", "b"]);
    assert_eq!(column(&objects, "Port"), ["live"; 6]);
    assert_eq!(
        column(&objects, "Protocol"),
        ["itch50", "itch50", "pitch", "xdp", "cqs", "uqdf"]
    );
    assert!(
        said.contains("6 messages in 9 frames (9 of UDP, 0 of TCP)")
            && said.contains("3 packets of no configured feed: 239.99.0.1:5000 (2) 239.99.0.2:5000 (1)"),
        "{said}"
    );
}

#[test]
fn without_a_configuration_every_group_is_told_by_its_packets() {
    let folder = Folder::new("mixed");
    let mut heartbeat = vec![0; 20];
    moldudp64::heartbeat(&mut heartbeat, *b"0000000001", SeqNo(7));
    let file = sent(
        &folder,
        &[
            ("239.0.0.1:1", heartbeat),
            ("239.0.0.2:1", b"what is this?".to_vec()),
            ("239.0.0.3:1", mdp3()),
            ("239.0.0.1:1", uqdf()),
            ("239.0.0.4:1", cqs()),
            ("239.0.0.5:1", xdp()),
            ("239.0.0.6:1", pitch()),
        ],
    );
    let (code, objects, said) = decode(&[], &file);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        column(&objects, "Protocol"),
        ["itch50", "mdp3", "mdp3", "uqdf", "cqs", "xdp", "pitch"]
    );
    assert_eq!(objects[0]["Message"], "Heartbeat");
    // In the order of the capture, though the second packet had to wait for the end.
    let numbers: Vec<_> = objects.iter().map(|o| o["Packet"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 3, 3, 4, 5, 6, 7]);
    assert!(
        said.contains("1 packets of no protocol known here: 239.0.0.2:1 (1)"),
        "{said}"
    );
}

#[test]
fn requests_and_their_answers_are_known_by_the_server() {
    let folder = Folder::new("requests");
    let request = moldudp64::Request {
        session: *b"000010059B",
        seq: SeqNo(14_757_721),
        count: 3,
    };
    let file = capture(
        &folder,
        &[
            ("10.0.0.9:4000", "127.0.0.1:26401", request.encode().to_vec()),
            ("127.0.0.1:26401", "10.0.0.9:4000", itch()),
        ],
    );
    let config = workspace().join("examples/nasdaq.toml");
    let (code, objects, said) = decode(&["--headers", "-c", config.to_str().unwrap()], &file);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(column(&objects, "Port"), ["requests"; 4]);
    assert_eq!(
        (&objects[0]["Header"], &objects[0]["MessageCount"]),
        (&"RequestPacket".into(), &3.into())
    );
    assert_eq!(
        (&objects[1]["Message"], &objects[1]["SequenceNumber"]),
        (&"Request".into(), &14_757_721.into())
    );
    assert_eq!(objects[2]["Header"], "DownstreamPacket");
    assert_eq!(objects[3]["Message"], "OrderDelete");
}

#[test]
fn types_are_asked_for_as_the_venue_writes_them() {
    let folder = Folder::new("types");
    let file = sent(
        &folder,
        &[
            ("239.0.0.1:1", pitch()),
            ("239.0.0.2:1", uqdf()),
            ("239.0.0.3:1", mdp3()),
        ],
    );
    for (wanted, messages) in [
        ("0x22", 1),
        ("0X22", 1),
        ("AddOrderShort", 1),
        ("QF", 1),
        ("46", 1),
        ("A", 0),
        ("22", 0),
    ] {
        let (code, objects, said) = decode(&["--type", wanted], &file);
        assert_eq!(code, Some(0), "{said}");
        assert!(
            objects.len() >= messages && (messages > 0 || objects.is_empty()),
            "{wanted}: {objects:?}"
        );
    }
    let (_, objects, _) = decode(&["--type", "0x22", "--type", "QF"], &file);
    assert_eq!(column(&objects, "Protocol"), ["pitch", "uqdf"]);
}

#[test]
fn headers_come_before_the_messages_of_their_packet() {
    let folder = Folder::new("headers");
    let file = sent(&folder, &[("239.0.0.1:1", cqs()), ("239.0.0.2:1", mdp3())]);
    let (_, objects, _) = decode(&["--headers"], &file);
    assert_eq!(objects[0]["Header"], "BlockHeader");
    let checksum = u16::from_be_bytes([cqs()[18], cqs()[19]]);
    assert_eq!(objects[0]["BlockChecksum"], checksum);
    assert_eq!(objects[1]["Message"], "LongQuote");
    assert_eq!(objects[2]["Header"], "BinaryPacketHeader");
    assert!(objects[2]["SendingTime"].is_u64());
    // Only messages count for the limit.
    let (_, objects, _) = decode(&["--headers", "--limit", "2"], &file);
    assert_eq!(
        column(&objects, "Header"),
        ["BlockHeader", "-", "BinaryPacketHeader", "-"]
    );
}

#[test]
fn groups_of_entries_are_arrays() {
    let folder = Folder::new("arrays");
    let delta = vector("openbook", "delta_update/two_price_points");
    let file = sent(&folder, &[("239.0.0.1:1", mdp3()), ("239.0.0.2:1", delta)]);
    let (_, objects, _) = decode(&[], &file);
    let book = objects.iter().find(|o| o["templateId"] == 46).unwrap();
    let entries = book["NoMDEntries"].as_array().unwrap();
    assert!(!entries.is_empty() && entries.iter().all(|e| e["SecurityID"].is_i64()));
    assert!(book["NoOrderIDEntries"].is_array());
    let delta = objects.iter().find(|o| o["MsgType"] == 231).unwrap();
    assert_eq!(delta["PricePoints"][0]["PriceNumerator"], 1_716_000);
}

#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
#[test]
fn moex_is_read_with_the_first_template_file_that_fits() {
    let folder = Folder::new("moex");
    let packets: Vec<(&str, Vec<u8>)> = ["packets-2017.hex", "packets-2020.hex"]
        .iter()
        .flat_map(|file| {
            let text = std::fs::read_to_string(captures(&format!("moex-asts/{file}"))).unwrap();
            let lines: Vec<_> = text.lines().take(3).map(unhex).collect();
            lines.into_iter().map(|payload| ("239.195.0.1:16001", payload))
        })
        .collect();
    let file = sent(&folder, &packets);
    let [old, new] = ["templates-2017-03.xml", "templates-2020-11.xml"]
        .map(|name| specs(&format!("moex/{name}")).to_str().unwrap().to_string());
    let all = ["--protocol", "moex", "--templates", &old, "--templates", &new];
    let (code, objects, said) = decode(&all, &file);
    assert_eq!((code, objects.len()), (Some(0), 6), "{said}");
    let log = objects.iter().find(|o| o["Message"] == "X-OLR-CURR").unwrap();
    assert_eq!(log["MsgSeqNum"], log["SequenceNumber"]);
    assert!(log["TemplateId"].is_u64());
    let entries = log
        .as_object()
        .unwrap()
        .values()
        .find_map(|v| v.as_array())
        .unwrap();
    assert!(!entries.is_empty());
    // With templates, MOEX is one of the protocols that packets are tried for.
    let (code, found, said) = decode(&["--templates", &old, "--templates", &new], &file);
    assert_eq!((code, found.len()), (Some(0), 6), "{said}");
    let (code, _, said) = decode(&["--protocol", "moex"], &file);
    assert!(code == Some(2) && said.contains("--templates FILE"), "{said}");
    let (code, _, said) = decode(&["--protocol", "moex", "--templates", "/nowhere.xml"], &file);
    assert!(code == Some(2) && said.contains("/nowhere.xml"), "{said}");
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let folder = Folder::new("refused");
    let file = sent(&folder, &[("239.0.0.1:1", cqs())]);
    let bad = folder.file("bad.toml", "[[feed]]\nvenue = \"bats\"\n");
    let (code, _, said) = decode(&["-c", bad.to_str().unwrap()], &file);
    assert!(
        code == Some(2)
            && said.contains("bad.toml")
            && said.contains("line 2")
            && said.contains("unknown venue"),
        "{said}"
    );
    let (code, _, said) = decode(&["-c", bad.to_str().unwrap(), "--protocol", "cqs"], &file);
    assert!(code == Some(2) && said.contains("cannot be used with"), "{said}");
    let (code, _, said) = decode(&["--protocol", "sbe"], &file);
    assert!(code == Some(2) && said.contains("mdp3"), "{said}");
    // A configuration without the capture's feed.
    let config = workspace().join("examples/cme.toml");
    let (code, _, said) = decode(&["-c", config.to_str().unwrap()], &file);
    assert!(
        code == Some(1) && said.contains("nothing in it is of the configured feeds (cme)"),
        "{said}"
    );
    // Another protocol than the packets'.
    let (code, objects, said) = decode(&["--protocol", "xdp"], &file);
    assert!(code == Some(1) && said.contains("nothing in it is xdp"), "{said}");
    assert!(objects[0]["Error"].is_string() && objects[0]["Bytes"].is_string());
    // A file of ITCH messages is of no other protocol.
    let delete = vector("itch50", "order_delete/whole");
    let messages = folder.file("messages.itch", [&[0, 19][..], &delete].concat());
    let (code, _, said) = decode(&["--protocol", "cqs"], &messages);
    assert!(
        code == Some(1) && said.contains("is a file of ITCH 5.0 messages"),
        "{said}"
    );
}

#[tickwire_testdata::recorded_data("captures/packets/Cme/iLink3.Sbe.8.5")]
#[test]
fn ilink3_is_read_from_streams_of_tcp() {
    let file = |name: &str| captures(&format!("packets/Cme/iLink3.Sbe.8.5/{name}.pcap"));
    let ilink3 = ["--protocol", "ilink3"];
    let (code, objects, said) = decode(&ilink3, &file("QuoteCancel"));
    assert_eq!((code, objects.len()), (Some(0), 1), "{said}");
    let cancel = &objects[0];
    assert_eq!(
        (&cancel["Message"], &cancel["Protocol"]),
        (&"QuoteCancel528".into(), &"ilink3".into())
    );
    assert_eq!(
        (&cancel["MessageLength"], &cancel["QuoteCancelType"]),
        (&80.into(), &4.into())
    );
    assert_eq!(cancel["NoQuoteEntries"][0]["SecurityGroup"], "[N/A]");
    assert!(cancel["NoQuoteEntries"][0]["SecurityID"].is_null() && cancel["NoQuoteSets"].is_array());
    let (_, objects, _) = decode(&["--protocol", "ilink3", "--type", "506"], &file("Sequence"));
    assert_eq!(column(&objects, "Message"), ["Sequence506"]);
    // A message that we have no layout of, and a capture without any.
    let (code, objects, said) = decode(&ilink3, &file("ExecutionReportStatus"));
    assert!(objects[0]["Error"].is_string() && code == Some(1), "{said}");
    let folder = Folder::new("ilink3");
    let datagrams = sent(&folder, &[("239.0.0.1:1", cqs())]);
    let (code, objects, said) = decode(&ilink3, &datagrams);
    assert_eq!((code, objects.len()), (Some(1), 0), "{said}");
    assert!(said.contains("1 packets of UDP: 239.0.0.1:1 (1)"), "{said}");
    assert!(said.contains("nothing in it is ilink3"), "{said}");
    // Nobody has to say it.
    let (code, objects, _) = decode(&[], &file("QuoteCancel"));
    assert_eq!((code, column(&objects, "Protocol")), (Some(0), vec!["ilink3"]));
}

/// A frame of TCP from 10.0.0.1 to a port of 10.0.0.2, or back.
fn tcp(port: u16, back: bool, seq: u32, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0];
    ip.extend((40 + payload.len() as u16).to_be_bytes());
    ip.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
    let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
    ip.extend([ends[usize::from(back)], ends[usize::from(!back)]].concat());
    let ports = [40_000_u16, port];
    for at in [usize::from(back), usize::from(!back)] {
        ip.extend(ports[at].to_be_bytes());
    }
    ip.extend(seq.to_be_bytes());
    ip.extend([0, 0, 0, 1, 0x50, 0x18, 0x10, 0, 0, 0, 0, 0]);
    ip.extend(payload);
    [&[0xaa; 12][..], &[8, 0], &ip].concat()
}

fn frames(folder: &Folder, frames: &[Vec<u8>]) -> PathBuf {
    let path = folder.0.join("frames.pcap");
    let mut pcap = PcapWriter::create(&path, LinkType::ETHERNET).unwrap();
    for (at, frame) in (1..).zip(frames) {
        pcap.write_frame(Nanos(at), frame).unwrap();
    }
    pcap.finish().unwrap();
    path
}

fn fix(body: &str) -> Vec<u8> {
    let body = body.replace('|', "\x01");
    let start = format!("8=FIX.4.4\x019={}\x01{body}", body.len());
    let sum = start.bytes().fold(0_u8, |sum, byte| sum.wrapping_add(byte));
    format!("{start}10={sum:03}\x01").into_bytes()
}

#[tickwire_testdata::recorded_data("captures/packets/Cme/iLink3.Sbe.8.5")]
#[test]
fn streams_of_every_protocol_are_put_together_and_decoded() {
    let folder = Folder::new("streams");
    let logon = fix("35=A|49=ME|56=YOU|34=1|52=20261123-10:00:00.000|98=0|108=30|");
    let order = fix(
        "35=D|49=ME|56=YOU|34=2|52=20261123-10:00:01.000|11=a|55=X|54=1|38=5|40=2|44=1.25|60=20261123-10:00:01|",
    );
    let both = [logon.clone(), order.clone()].concat();
    let (first, last) = both.split_at(logon.len() + 40);
    let packet = mdp3();
    let replayed = [&(packet.len() as u16).to_le_bytes()[..], &packet].concat();
    let mut request = [0; 256];
    let len = tickwire_wire::mdp3::tcp::market_data_request(&mut request, 310, 1, 5, 6).unwrap();
    // Spin: an image, then an order; a heartbeat between.
    let spin = unhex("0E00 01 01 00000000 0680 05000000  0800 00 01 00000000");
    let boe = unhex("BABA 0E00 09 01 00000000 00000000");
    let file = frames(
        &folder,
        &[
            tcp(9002, false, 1, &request[..len]),
            tcp(9002, true, 1, &replayed[..20]),
            tcp(9002, true, 21, &replayed[20..]),
            tcp(9003, true, 77, &spin),
            tcp(9004, false, 1, &boe),
        ],
    );
    let (code, objects, said) = decode(&[], &file);
    let protocols = column(&objects, "Protocol");
    assert!(
        protocols.contains(&"mdp3") && protocols.contains(&"pitch"),
        "{objects:?}"
    );
    let messages = column(&objects, "Message");
    for message in [
        "MarketDataRequest",
        "MDIncrementalRefreshBook46",
        "SpinImageAvailable",
        "Heartbeat",
    ] {
        assert!(messages.contains(&message), "{message}: {messages:?} {said}");
    }
    assert!(
        said.contains("14 bytes of 1 streams of TCP skipped")
            && said.contains("10.0.0.2:9004 (14, Cboe BOE order entry, which is not decoded)"),
        "{said}"
    );
    assert_eq!(code, Some(0), "{said}");
    // Out of order and once more, behind its SYN.
    let mut syn = tcp(9001, false, 4999, b"");
    syn[47] = 2;
    let file = frames(
        &folder,
        &[
            syn,
            tcp(9001, false, 5000 + first.len() as u32, last),
            tcp(9001, false, 5000, first),
            tcp(9001, false, 5000, first),
        ],
    );
    let (code, objects, said) = decode(&[], &file);
    assert_eq!(
        (code, column(&objects, "Message")),
        (Some(0), vec!["Logon", "NewOrderSingle"]),
        "{said}"
    );
    let field = |tag: u32| {
        let fields = objects[1]["Fields"].as_array().unwrap();
        fields.iter().find(|f| f["Tag"] == tag).unwrap()["Value"].clone()
    };
    assert_eq!((field(44), field(11)), ("1.25".into(), "a".into()));
    let (_, objects, _) = decode(&["--type", "D"], &file);
    assert_eq!(column(&objects, "Message"), ["NewOrderSingle"]);
    // Joined in the middle of a message, and a hole.
    let file = frames(
        &folder,
        &[
            tcp(9001, false, 10, &logon[30..]),
            tcp(9001, false, 10 + logon.len() as u32 - 30, &order),
            tcp(9001, false, 500_000, &order),
        ],
    );
    let (code, objects, said) = decode(&["--protocol", "fix"], &file);
    assert_eq!(code, Some(1), "{said}");
    let seen: Vec<_> = column(&objects, "Message")
        .into_iter()
        .filter(|m| *m == "NewOrderSingle")
        .collect();
    assert_eq!(seen.len(), 2, "{objects:?}");
    let errors = column(&objects, "Error").join(";");
    assert!(
        errors.contains("joined in its middle") && errors.contains("are missing"),
        "{errors}"
    );
}

#[test]
fn every_frame_that_gives_nothing_is_named_and_makes_the_exit_code_1() {
    let folder = Folder::new("account");
    let whole = sent(&folder, &[("239.0.0.1:1", cqs()), ("239.0.0.1:1", cqs())]);
    let mut bytes = std::fs::read(&whole).unwrap();
    let (code, _, said) = decode(&[], &whole);
    assert!(
        code == Some(0) && said.contains("2 messages in 2 frames (2 of UDP, 0 of TCP)"),
        "{said}"
    );
    // The second record says that it was longer on the wire, and its IP packet is.
    let record = 24 + (bytes.len() - 24) / 2;
    let cut = 30;
    let len = u32::from_le_bytes(bytes[record + 8..record + 12].try_into().unwrap());
    bytes[record + 8..record + 12].copy_from_slice(&(len - cut).to_le_bytes());
    bytes.truncate(bytes.len() - cut as usize);
    let cut = folder.file("cut.pcap", "");
    std::fs::write(&cut, &bytes).unwrap();
    let (code, objects, said) = decode(&[], &cut);
    assert_eq!((code, objects.len()), (Some(1), 1), "{said}");
    assert!(said.contains("not read: 1 cut off by the snap length"), "{said}");
    assert!(said.contains("1 of 2 frames could not be read"), "{said}");
    // Standard input, and types that no message has.
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tickwire"))
        .args(["decode", "-"])
        .stdin(std::fs::File::open(&whole).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("\"File\":\"standard input\""));
    let (code, _, said) = decode(&["--type", "ZZZ"], &whole);
    assert!(
        code == Some(2)
            && said.contains("--type ZZZ is no type of message")
            && said.contains("--protocol NAME")
            && said.len() < 300,
        "{said}"
    );
    let (code, _, said) = decode(&["--type", "AddOrderLnog"], &whole);
    assert!(
        code == Some(2) && said.contains("did you mean") && said.contains("0x21 AddOrderLong"),
        "{said}"
    );
    let (code, _, said) = decode(&["--protocol", "cqs", "--type", "0x21"], &whole);
    assert!(code == Some(2) && said.contains("QL LongQuote"), "{said}");
}

/// A packet of XDP to 239.8.1.3:32003: these messages, numbered from 1.
fn xdp_packet(messages: &[Vec<u8>]) -> Vec<u8> {
    let body = messages.concat();
    let mut packet = ((16 + body.len()) as u16).to_le_bytes().to_vec();
    packet.extend([11, messages.len() as u8, 1, 0, 0, 0]);
    packet.extend([0; 8]);
    packet.extend(body);
    packet
}

#[test]
fn releases_of_xdp_are_told_apart_and_prices_have_the_scale_of_their_symbol() {
    let folder = Folder::new("xdp");
    // Symbol 5 with four decimals; an execution with these last four bytes; an order of a symbol never
    // mapped.
    let mapping = unhex(
        "2C00 0300 05000000 414243 0000000000000000 00 0100 01 4E 04 45 6400 00000000 00000000 00 59 0100 0100 0000",
    );
    let execution = |tail: &str| {
        unhex(&format!(
            "2A00 6700 01000000 05000000 01000000 0900000000000000 07000000 40420F00 64000000 01 02 {tail}"
        ))
    };
    let add = |symbol: u8, splits: u8| {
        let mut add =
            unhex("2700 6400 01000000 00000000 01000000 0900000000000000 40420F00 64000000 42 2020202020 00");
        (add[8], add[38]) = (symbol, splits);
        add
    };
    let one = |messages: &[Vec<u8>]| sent(&folder, &[("239.8.1.3:32003", xdp_packet(messages))]);
    // Conditions that the specification has: Pillar.
    let (code, objects, said) = decode(&[], &one(&[mapping.clone(), execution("40202020"), add(6, 0)]));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        (&objects[1]["TradeCond1"], &objects[1]["PriceScale"]),
        (&"@".into(), &4.into())
    );
    assert_eq!(objects[1]["Price"].to_string(), "100.0");
    // Never mapped: the number on the wire, and said so.
    assert_eq!(
        (&objects[2]["Price"], &objects[2]["PriceScale"]),
        (&1_000_000.into(), &serde_json::Value::Null)
    );
    // None of them: an execution id of XDP 2.1, and what else differs with it.
    let (_, objects, _) = decode(&[], &one(&[mapping.clone(), execution("01020304"), add(5, 3)]));
    assert_eq!(
        (&objects[1]["DBExecID"], &objects[1]["NumParitySplits"]),
        (&0x0403_0201.into(), &2.into())
    );
    assert!(objects[1]["TradeCond1"].is_null() && objects[2]["NumParitySplits"] == 3);
    // Said by the user.
    let (_, objects, _) = decode(&["--xdp", "2.1"], &one(&[execution("40202020")]));
    assert_eq!(objects[0]["DBExecID"], 0x2020_2040);
    // Nothing tells, and it matters: marked.
    let (_, objects, said) = decode(&[], &one(&[add(5, 3), add(5, 0)]));
    assert_eq!(column(&objects, "Ambiguous"), ["xdp 2.1", "-"]);
    assert!(said.contains("1 marked \"Ambiguous\""), "{said}");
    let (_, objects, _) = decode(&["--xdp", "2.5"], &one(&[add(5, 3)]));
    assert_eq!(column(&objects, "Ambiguous"), ["-"]);
}

#[test]
fn a_price_that_two_kinds_of_pitch_read_otherwise_is_marked() {
    let folder = Folder::new("sign");
    // A short modification at 434.71, or at -220.65.
    let modify = unhex("1B00 01 01 01000000 1328 1CE40600 F2EA1DD12ED5983C 0100 CFA9 01");
    let low = unhex("1B00 01 01 01000000 1328 1CE40600 F2EA1DD12ED5983C 0100 CF29 01");
    let file = sent(&folder, &[("239.1.1.1:1", modify), ("239.1.1.1:1", low)]);
    let (code, objects, said) = decode(&[], &file);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(column(&objects, "Protocol"), ["pitch", "pitch"]);
    assert_eq!(column(&objects, "Ambiguous"), ["pitch-complex", "-"]);
    assert_eq!(objects[0]["Price"].to_string(), "434.71");
    let (_, objects, _) = decode(&["--protocol", "pitch-complex"], &file);
    assert_eq!(objects[0]["Price"].to_string(), "-220.65");
    assert_eq!(column(&objects, "Ambiguous"), ["-", "-"]);
}
