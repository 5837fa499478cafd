//! Capture files made here byte by byte, and the recorded ones compared with the plain reader of the test
//! data crate.

use std::io::{Cursor, Read, Write};
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use tickwire_market::Nanos;
use tickwire_runtime::capture::{
    CaptureError, CaptureFormat, CaptureReader, Carried, Compression, LinkType, NotUdp, PcapWriter,
    RECORD_BYTES_MAX, tcp, udp,
};
use tickwire_testdata::Rng;

/// What a test compares: time, frame, offset.
type Frames = Vec<(Option<u64>, Vec<u8>, u64)>;

fn read_all(input: impl Read + Send + 'static) -> (Frames, Option<CaptureError>) {
    let mut reader = match CaptureReader::from_reader("test.pcap", input) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut frames = Vec::new();
    loop {
        match reader.next_packet() {
            Ok(Some(p)) => frames.push((p.time.map(|t| t.0), p.bytes.to_vec(), p.offset)),
            Ok(None) => return (frames, None),
            Err(error) => {
                assert!(reader.next_packet().expect("an error is told once").is_none());
                return (frames, Some(error));
            }
        }
    }
}

fn read_bytes(bytes: &[u8]) -> (Frames, Option<CaptureError>) {
    read_all(Cursor::new(bytes.to_vec()))
}

fn word(big: bool, v: u32) -> [u8; 4] {
    if big { v.to_be_bytes() } else { v.to_le_bytes() }
}

fn half(big: bool, v: u16) -> [u8; 2] {
    if big { v.to_be_bytes() } else { v.to_le_bytes() }
}

/// A pcap file with records `(seconds, fraction, frame)`.
fn pcap(big: bool, nanos: bool, records: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let magic = if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut out: Vec<u8> = word(big, magic).to_vec();
    out.extend(half(big, 2).into_iter().chain(half(big, 4)));
    out.extend([0, 0, 65_535, 1].into_iter().flat_map(|v| word(big, v)));
    for (seconds, fraction, frame) in records {
        let len = frame.len() as u32;
        out.extend(
            [*seconds, *fraction, len, len + 7]
                .into_iter()
                .flat_map(|v| word(big, v)),
        );
        out.extend_from_slice(frame);
    }
    out
}

fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let total = word(big, padded as u32 + 12);
    let mut out = [word(big, kind), total].concat();
    out.extend_from_slice(body);
    out.resize(8 + padded, 0);
    out.extend(total);
    out
}

fn section(big: bool) -> Vec<u8> {
    let mut body = word(big, 0x1a2b_3c4d).to_vec();
    body.extend(half(big, 1).into_iter().chain(half(big, 0)));
    body.extend([0xff; 8]); // length of the section not told
    block(big, 0x0a0d_0d0a, &body)
}

fn interface(big: bool, link: u16, snap_len: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = [half(big, link), half(big, 0)].concat();
    body.extend(word(big, snap_len));
    for (code, value) in options {
        body.extend(half(big, *code).into_iter().chain(half(big, value.len() as u16)));
        body.extend_from_slice(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    block(big, 1, &body)
}

fn enhanced(big: bool, interface: u32, units: u64, frame: &[u8]) -> Vec<u8> {
    let len = frame.len() as u32;
    let fields = [interface, (units >> 32) as u32, units as u32, len, len];
    let mut body: Vec<u8> = fields.into_iter().flat_map(|v| word(big, v)).collect();
    body.extend_from_slice(frame);
    block(big, 6, &body)
}

fn simple_file() -> Vec<u8> {
    pcap(
        false,
        true,
        &[(10, 1, b"one"), (11, 2, b""), (12, 999_999_999, &[3; 300])],
    )
}

fn ng_file() -> Vec<u8> {
    let big = false;
    [
        section(big),
        interface(big, 1, 0, &[(9, &[9])]),
        enhanced(big, 0, 10_000_000_001, b"one"),
        block(big, 5, &[0; 12]), // interface statistics
        enhanced(big, 0, 11_000_000_002, b""),
        enhanced(big, 0, 12_999_999_999, &[3; 301]),
    ]
    .concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("memory takes it");
    out.finish().expect("memory takes it")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn both_byte_orders_and_both_resolutions_of_pcap_read_the_same() {
    let expected: Frames = vec![
        (Some(1_700_000_000_000_123_000), b"first".to_vec(), 24),
        (Some(1_700_000_001_999_999_000), vec![7; 1500], 45),
    ];
    for big in [false, true] {
        for (nanos, unit) in [(false, 1), (true, 1_000)] {
            let records: [(u32, u32, &[u8]); 2] = [
                (1_700_000_000, 123 * unit, b"first"),
                (1_700_000_001, 999_999 * unit, &[7; 1500]),
            ];
            let file = pcap(big, nanos, &records);
            let (frames, error) = read_bytes(&file);
            assert!(error.is_none(), "{error:?}");
            assert_eq!(frames, expected, "big-endian {big}, nanoseconds {nanos}");
            let reader = CaptureReader::from_reader("x", Cursor::new(file)).expect("a capture");
            let format = if nanos {
                CaptureFormat::PcapNanos
            } else {
                CaptureFormat::PcapMicros
            };
            assert_eq!(
                (reader.format(), reader.compression()),
                (format, Compression::None)
            );
        }
    }
}

#[test]
fn the_length_on_the_wire_is_kept_beside_the_captured_bytes() {
    let mut reader =
        CaptureReader::from_reader("x", Cursor::new(pcap(true, true, &[(1, 0, b"abc")]))).expect("a capture");
    let packet = reader.next_packet().expect("whole").expect("one");
    assert_eq!(
        (packet.bytes, packet.original_len, packet.link),
        (&b"abc"[..], 10, LinkType::ETHERNET)
    );
}

#[test]
fn compressed_files_are_told_by_their_first_bytes_also_in_several_parts() {
    let plain = simple_file();
    let expected = read_bytes(&plain).0;
    assert_eq!(expected.len(), 3);
    let (head, tail) = plain.split_at(100);
    let skippable: &[u8] = &[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9];
    for (file, compression) in [
        (gzip(&plain), Compression::Gzip),
        ([gzip(head), gzip(tail)].concat(), Compression::Gzip),
        (zstd(&plain), Compression::Zstd),
        (
            [
                skippable,
                &zstd(head),
                skippable,
                &zstd(&[]),
                &zstd(tail),
                skippable,
            ]
            .concat(),
            Compression::Zstd,
        ),
    ] {
        let (frames, error) = read_bytes(&file);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(frames, expected);
        let reader = CaptureReader::from_reader("x", Cursor::new(file)).expect("a capture");
        assert_eq!(reader.compression(), compression);
    }
}

/// Gives one byte at a time, as a slow pipe may.
struct Trickle(Cursor<Vec<u8>>);
impl Read for Trickle {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let len = buf.len().min(1);
        self.0.read(&mut buf[..len])
    }
}

#[test]
fn how_the_bytes_arrive_makes_no_difference() {
    for file in [simple_file(), ng_file(), gzip(&simple_file()), zstd(&ng_file())] {
        let (frames, error) = read_all(Trickle(Cursor::new(file.clone())));
        assert!(error.is_none(), "{error:?}");
        assert_eq!(frames, read_bytes(&file).0);
    }
}

#[test]
fn a_file_much_longer_than_the_buffer_streams_through_it() {
    let mut rng = Rng::new(1);
    let frames: Vec<Vec<u8>> = (0..9_000)
        .map(|i| vec![i as u8; rng.below(1_500) as usize])
        .collect();
    let records: Vec<(u32, u32, &[u8])> = frames
        .iter()
        .zip(0..)
        .map(|(f, i)| (i, i, f.as_slice()))
        .collect();
    let file = pcap(false, true, &records);
    assert!(file.len() > 3 * RECORD_BYTES_MAX);
    let (read, error) = read_bytes(&file);
    assert!(error.is_none() && read.iter().map(|(_, frame, _)| frame).eq(&frames));
    assert_eq!(read_bytes(&gzip(&file)).0, read);
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_packets_and_then_says_where_it_breaks_off() {
    for whole in [simple_file(), ng_file()] {
        let (frames, _) = read_bytes(&whole);
        for cut in 1..whole.len() {
            let (read, error) = read_bytes(&whole[..cut]);
            assert_eq!(read, frames[..read.len()], "cut at {cut}");
            match error {
                Some(CaptureError::Truncated {
                    offset, need, have, ..
                }) => {
                    assert!(
                        need > have && offset + have == cut as u64,
                        "cut at {cut}: {offset} {need} {have}"
                    );
                }
                Some(CaptureError::Unrecognised { .. }) => assert!(cut < 4),
                Some(error) => panic!("cut at {cut}: {error}"),
                // Between two records a file may end, and nobody can tell that there was more.
                None => assert!(cut >= 24 && read_bytes(&whole[..cut + 1]).1.is_some()),
            }
        }
    }
    let text = read_bytes(&simple_file()[..50])
        .1
        .expect("cut in a record")
        .to_string();
    assert_eq!(
        text,
        "test.pcap is cut off: the packet header at byte 43 needs 16 bytes and 7 are left; everything before it was read, \
         copy the file again for the rest"
    );
}

#[test]
fn cut_or_damaged_compressed_data_gives_what_can_be_had_and_names_the_compression() {
    let mut noise = vec![0; 400_000];
    Rng::new(2).fill(&mut noise);
    let records: Vec<(u32, u32, &[u8])> = noise.chunks(1_000).map(|chunk| (1, 1, chunk)).collect();
    let plain = pcap(false, true, &records);
    for (whole, name) in [(gzip(&plain), "gzip"), (zstd(&plain), "zstd")] {
        let (read, error) = read_bytes(&whole[..whole.len() * 3 / 4]);
        assert!((100..400).contains(&read.len()), "{name}: {} packets", read.len());
        assert!(
            matches!(error, Some(CaptureError::Decompress { .. })),
            "{error:?}"
        );
        let text = error.expect("just seen").to_string();
        assert!(
            text.contains(&format!("its {name} data ends after")) && text.contains("copy the file again"),
            "{text}"
        );
    }
    let mut damaged = gzip(&plain);
    let end = damaged.len() - 6; // in the checksum
    damaged[end] ^= 1;
    let (read, error) = read_bytes(&damaged);
    assert!(
        read.len() == 400 && matches!(error, Some(CaptureError::Decompress { .. })),
        "{error:?}"
    );
}

#[test]
fn contradictions_are_garbled_at_the_offset_of_their_record() {
    let with_word = |mut file: Vec<u8>, at: usize, v: u32| {
        file[at..at + 4].copy_from_slice(&v.to_le_bytes());
        file
    };
    let ng = ng_file(); // section 0..28, interface 28..56, first packet 56..92, statistics 92..116
    let start = |part: Vec<Vec<u8>>| [vec![section(false)], part].concat().concat();
    for (file, offset, words) in [
        (
            with_word(simple_file(), 43 + 8, RECORD_BYTES_MAX as u32 + 1),
            43,
            "longer than any frame",
        ),
        (with_word(ng.clone(), 60, 8), 56, "cannot have a length of 8"),
        (with_word(ng.clone(), 60, 37), 56, "cannot have a length of 37"),
        (with_word(ng.clone(), 88, 40), 56, "two lengths differ: 36 and 40"),
        (
            with_word(ng.clone(), 112, 40),
            92,
            "two lengths differ: 24 and 40",
        ),
        (
            with_word(ng.clone(), 64, 1),
            56,
            "interface 1, which was not described",
        ),
        (
            with_word(ng.clone(), 76, 5),
            56,
            "a packet of 5 bytes does not fit",
        ),
        (
            with_word(ng.clone(), 60, RECORD_BYTES_MAX as u32 + 4),
            56,
            "longer than any frame",
        ),
        (with_word(ng.clone(), 8, 0), 0, "no byte-order magic"),
        (with_word(ng.clone(), 12, 2), 0, "version 2 of the pcapng format"),
        (
            with_word(ng.clone(), 4, 24),
            0,
            "section header cannot have a length of 24",
        ),
        (
            start(vec![block(false, 1, &[])]),
            28,
            "interface description cannot have a length of 12",
        ),
        (
            start(vec![interface(false, 1, 0, &[]), block(false, 6, &[0; 8])]),
            48,
            "packet block cannot have a length of 20",
        ),
        (
            start(vec![interface(false, 1, 0, &[(9, &[99])])]),
            28,
            "resolution of 0x63 is not possible",
        ),
        (
            with_word(
                start(vec![interface(false, 1, 0, &[(2, b"eth0")])]),
                44,
                2 | 8 << 16,
            ),
            28,
            "reaches beyond its block",
        ),
        (
            start(vec![interface(false, 1, 0, &[]); 4097]),
            28 + 20 * 4096,
            "more than 4096 interfaces",
        ),
    ] {
        match read_bytes(&file).1 {
            Some(error @ CaptureError::Garbled { offset: at, .. }) => {
                let text = error.to_string();
                assert!(at == offset && text.contains(words), "{text}");
            }
            other => panic!("{words}: {other:?}"),
        }
    }
}

#[test]
fn pcapng_sections_may_differ_in_byte_order_and_interfaces_in_link_and_resolution() {
    let old_packet = |big: bool, frame: &[u8]| {
        let mut body = [half(big, 1), half(big, 0)].concat(); // interface 1, drops unknown
        body.extend(
            [0, 2_000_000, frame.len() as u32, 99]
                .into_iter()
                .flat_map(|v| word(big, v)),
        );
        body.extend_from_slice(frame);
        block(big, 2, &body)
    };
    let simple =
        |big: bool, original: u32, frame: &[u8]| block(big, 3, &[&word(big, original)[..], frame].concat());
    let mut file = Vec::new();
    for big in [true, false] {
        let offset: [u8; 8] = if big {
            1_000i64.to_be_bytes()
        } else {
            1_000i64.to_le_bytes()
        };
        file.extend(section(big));
        file.extend(interface(
            big,
            1,
            4,
            &[(2, b"eth0!"), (9, &[9]), (14, &offset), (0, b"")],
        ));
        file.extend(interface(big, 101, 0, &[]));
        file.extend(interface(big, 276, 0, &[(9, &[0x80 | 20])]));
        file.extend(block(big, 0x0bad_cafe, &[1; 77])); // a kind not known
        file.extend(enhanced(big, 0, 5_000_000_001, b"a"));
        file.extend(enhanced(big, 1, 7, b"bb"));
        file.extend(enhanced(big, 2, 3 << 19, b"ccc"));
        file.extend(old_packet(big, b"dddd"));
        file.extend(simple(big, 9, b"eeee"));
    }
    let mut reader = CaptureReader::from_reader("x", Cursor::new(file)).expect("a capture");
    for _ in 0..2 {
        for (interface, link, time, bytes, original_len) in [
            (0, LinkType::ETHERNET, Some(1_005_000_000_001), &b"a"[..], 1),
            (1, LinkType::RAW, Some(7_000), b"bb", 2),
            (2, LinkType::LINUX_SLL2, Some(1_500_000_000), b"ccc", 3),
            (1, LinkType::RAW, Some(2_000_000_000), b"dddd", 99),
            (0, LinkType::ETHERNET, None, b"eeee", 9),
        ] {
            let p = reader.next_packet().expect("whole").expect("there");
            let found = (p.interface, p.link, p.time.map(|t| t.0), p.bytes, p.original_len);
            assert_eq!(found, (interface, link, time, bytes, original_len));
        }
    }
    assert!(reader.next_packet().expect("whole").is_none());
}

#[test]
fn a_pcapng_block_longer_than_the_buffer_is_passed_over() {
    let big = false;
    let long = block(big, 0xa, &vec![0; 3 * RECORD_BYTES_MAX]);
    let start = [section(big), interface(big, 1, 0, &[])].concat();
    let whole = [start.clone(), long.clone(), enhanced(big, 0, 1, b"after")].concat();
    let (frames, error) = read_bytes(&whole);
    assert!(error.is_none() && frames.len() == 1 && frames[0].1 == b"after");
    let cut = read_bytes(&whole[..start.len() + 2 * RECORD_BYTES_MAX]).1;
    let (need, have) = (long.len() as u64, 2 * RECORD_BYTES_MAX as u64);
    assert!(
        matches!(cut, Some(CaptureError::Truncated { offset: 48, need: n, have: h, .. }) if (n, h) == (need, have)),
        "{cut:?}"
    );
}

#[test]
fn what_is_not_a_capture_is_named_with_its_first_bytes() {
    for (bytes, words) in [
        (&b"PK\x03\x04zip"[..], "begins with 50 4b 03 04"),
        (b"", "nothing (it is empty)"),
        (b"\xa1", "begins with a1"),
    ] {
        let error = read_bytes(bytes).1.expect("refused");
        assert!(matches!(error, CaptureError::Unrecognised { .. }));
        assert!(
            error.to_string().contains(words) && error.to_string().contains("pcap or pcapng"),
            "{error}"
        );
    }
    let text = CaptureReader::open("/nonexistent/x.pcap")
        .expect_err("not there")
        .to_string();
    assert!(
        text.contains("cannot open /nonexistent/x.pcap") && text.contains("check the name"),
        "{text}"
    );
    let text = CaptureReader::open("/").expect_err("a folder").to_string();
    assert!(text.contains("cannot open /: is a directory"), "{text}");
}

#[test]
fn an_input_that_fails_keeps_what_it_gave() {
    struct Failing(Cursor<Vec<u8>>);
    impl Read for Failing {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buf)? {
                0 => Err(std::io::Error::other("the disk is on fire")),
                n => Ok(n),
            }
        }
    }
    let (frames, error) = read_all(Failing(Cursor::new(simple_file()[..60].to_vec())));
    assert_eq!(frames.len(), 2);
    let text = error.expect("failed").to_string();
    assert!(
        text.contains("beyond byte 60") && text.contains("on fire"),
        "{text}"
    );
}

#[test]
fn damaged_files_never_panic() {
    let seed = 20_240_611;
    let mut rng = Rng::new(seed);
    let good = [simple_file(), ng_file(), gzip(&simple_file()), zstd(&ng_file())];
    for round in 0..20_000 {
        let mut file = good[round % good.len()].clone();
        for _ in 0..=rng.below(4) {
            let at = rng.below(file.len() as u64) as usize;
            file[at] = rng.next_u64() as u8;
        }
        let (frames, _) = read_bytes(&file);
        assert!(frames.len() < 100, "seed {seed}, round {round}");
        for (_, frame, _) in &frames {
            let _ = udp(LinkType(rng.below(120) as u32), frame);
        }
    }
}

fn pcap_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            pcap_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "pcap") {
            found.push(path);
        }
    }
}

#[tickwire_testdata::recorded_data("captures/packets", "captures/books")]
#[test]
fn every_recorded_packet_gives_the_payload_the_plain_reader_gives() {
    let mut files = Vec::new();
    pcap_files(&tickwire_testdata::captures("packets"), &mut files);
    pcap_files(&tickwire_testdata::captures("books"), &mut files);
    assert!(files.len() > 150, "{} captures", files.len());
    let (mut payloads, mut frames) = (0, tickwire_runtime::capture::Frames::default());
    for file in &files {
        let mut reader = CaptureReader::open(file).expect("opens");
        let mut found = Vec::new();
        while let Some(frame) = reader.next_frame(&mut frames).unwrap_or_else(|e| panic!("{e}")) {
            if let Ok(Carried::Udp(datagram)) = frame.carried {
                found.push(datagram.payload.to_vec());
            }
        }
        assert_eq!(
            found,
            tickwire_testdata::pcap_payloads(file),
            "{}",
            file.display()
        );
        payloads += found.len();
    }
    assert!(payloads > 300, "{payloads}");
    // What is left out is TCP.
    let counts = frames.counts();
    assert_eq!((counts.lost(), counts.total()), (0, counts.tcp), "{counts}");
}

fn temp(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tickwire-{}-{name}", std::process::id()))
}

fn address(text: &str) -> SocketAddrV4 {
    text.parse().expect("an address")
}

#[test]
fn what_the_writer_writes_the_reader_reads() {
    let path = temp("round-trip.pcap");
    let (from, to) = (address("10.1.2.3:40000"), address("233.54.12.111:26477"));
    let mut writer = PcapWriter::create(&path, LinkType::ETHERNET).expect("created");
    let mut rng = Rng::new(5);
    let sent: Vec<(Nanos, Vec<u8>)> = (0..200u64)
        .map(|i| {
            let mut payload = vec![0; rng.below(1_473) as usize];
            rng.fill(&mut payload);
            (Nanos(1_700_000_000_000_000_000 + i * 999_999_937), payload)
        })
        .collect();
    sent.iter()
        .for_each(|(time, payload)| writer.write_udp(*time, from, to, payload).expect("written"));
    assert!(
        writer
            .write_udp(Nanos(0), from, to, &[0; 65_508])
            .expect_err("too long")
            .to_string()
            .contains("longer")
    );
    writer.finish().expect("written");
    let mut reader = CaptureReader::open(&path).expect("opens");
    assert_eq!(reader.format(), CaptureFormat::PcapNanos);
    for (time, payload) in &sent {
        let packet = reader.next_packet().expect("whole").expect("there");
        let datagram = udp(packet.link, packet.bytes).expect("UDP");
        assert_eq!((packet.time, datagram.payload), (Some(*time), payload.as_slice()));
        assert_eq!((datagram.source, datagram.destination), (from.into(), to.into()));
        // Over its header, IP's checksum sums up to all ones (RFC 1071); over the datagram and addresses
        // UDP's.
        assert_eq!(ones_sum(&packet.bytes[14..34], 0), 0xffff);
        assert_eq!(
            ones_sum(&packet.bytes[26..], 17 + 8 + payload.len() as u64),
            0xffff
        );
    }
    assert!(reader.next_packet().expect("whole").is_none());
    std::fs::remove_file(&path).expect("removed");
    let text = PcapWriter::create("/nonexistent/x.pcap", LinkType::ETHERNET)
        .expect_err("no folder")
        .to_string();
    assert!(text.contains("cannot write /nonexistent/x.pcap"), "{text}");
}

fn ones_sum(bytes: &[u8], start: u64) -> u64 {
    let pad = [bytes, &[0]].concat();
    let words = pad
        .chunks_exact(2)
        .map(|w| u64::from(u16::from_be_bytes([w[0], w[1]])));
    let mut sum = start + words.sum::<u64>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

/// IPv4 with UDP from 1.2.3.4:1000 to 5.6.7.8:2000.
fn ipv4(options: &[u8], flags_and_offset: u16, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let udp_len = 8 + payload.len() as u16;
    let total = 20 + options.len() as u16 + udp_len;
    let mut out = vec![0x45 + options.len() as u8 / 4, 0];
    out.extend(total.to_be_bytes());
    out.extend([0, 1]);
    out.extend(flags_and_offset.to_be_bytes());
    out.extend([64, protocol, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    out.extend(options);
    out.extend(udp_header(payload));
    out.extend(payload);
    out
}

fn udp_header(payload: &[u8]) -> Vec<u8> {
    [1000u16, 2000, 8 + payload.len() as u16, 0]
        .iter()
        .flat_map(|v| v.to_be_bytes())
        .collect()
}

fn ipv6(extensions: &[u8], first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x60, 0, 0, 0];
    out.extend((extensions.len() as u16 + 8 + payload.len() as u16).to_be_bytes());
    out.extend([first, 64]);
    out.extend([[0x20; 16], [0x30; 16]].concat());
    out.extend(extensions);
    out.extend(udp_header(payload));
    out.extend(payload);
    out
}

fn ethernet(tags: &[(u16, u16)], ether_type: u16, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0xaa; 12];
    tags.iter()
        .for_each(|(kind, id)| out.extend([kind.to_be_bytes(), id.to_be_bytes()].concat()));
    out.extend(ether_type.to_be_bytes());
    out.extend(body);
    out
}

#[test]
fn a_payload_is_found_behind_every_supported_header() {
    let (v4, data) = (ipv4(&[], 0x4000, 17, b"data"), &b"data"[..]);
    let padded = [v4.clone(), vec![0xee; 20]].concat();
    let cooked = |ether_type: u16| [vec![0; 14], ether_type.to_be_bytes().to_vec()].concat();
    let cooked2 = |ether_type: u16| [ether_type.to_be_bytes().to_vec(), vec![0; 18]].concat();
    let options = [0x94, 4, 0, 0]; // router alert
    let hops = [60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0]; // hop-by-hop, then destination options
    for (link, frame, vlan) in [
        (LinkType::ETHERNET, ethernet(&[], 0x800, &v4), None),
        (LinkType::ETHERNET, ethernet(&[], 0x800, &padded), None),
        (
            LinkType::ETHERNET,
            ethernet(&[(0x8100, 0x6123)], 0x800, &padded),
            Some(0x123),
        ),
        (
            LinkType::ETHERNET,
            ethernet(&[(0x88a8, 7), (0x8100, 9)], 0x800, &v4),
            Some(9),
        ),
        (
            LinkType::ETHERNET,
            ethernet(&[], 0x800, &ipv4(&options, 0, 17, data)),
            None,
        ),
        (
            LinkType::ETHERNET,
            ethernet(&[], 0x86dd, &ipv6(&[], 17, data)),
            None,
        ),
        (
            LinkType::ETHERNET,
            ethernet(&[(0x8100, 5)], 0x86dd, &ipv6(&hops, 0, data)),
            Some(5),
        ),
        (LinkType::LINUX_SLL, [cooked(0x800), v4.clone()].concat(), None),
        (LinkType::LINUX_SLL2, [cooked2(0x800), v4.clone()].concat(), None),
        (LinkType::RAW, padded.clone(), None),
        (LinkType::RAW, ipv6(&[], 17, data), None),
        (LinkType::IPV4, v4.clone(), None),
        (LinkType(12), v4.clone(), None),
        (LinkType::NULL, [vec![2, 0, 0, 0], v4.clone()].concat(), None),
        (
            LinkType::LOOP,
            [vec![0, 0, 0, 24], ipv6(&[], 17, data)].concat(),
            None,
        ),
    ] {
        let found = udp(link, &frame).unwrap_or_else(|e| panic!("{link:?} {frame:02x?}: {e:?}"));
        assert_eq!((found.payload, found.vlan), (data, vlan));
        assert_eq!((found.source.port(), found.destination.port()), (1000, 2000));
        // Any shorter frame is reported, never read beyond.
        let udp_end = frame.len() - if frame.ends_with(&[0xee; 20]) { 20 } else { 0 };
        for len in 0..udp_end {
            assert_eq!(
                udp(link, &frame[..len]),
                Err(NotUdp::Truncated),
                "{link:?} cut to {len}"
            );
        }
    }
}

#[test]
fn a_segment_of_tcp_is_found_with_its_place_in_the_stream() {
    // IPv4 without options, then TCP with four bytes of them, as `ipv4` and `udp_header` put a payload of 16
    // bytes together.
    let header = |flags: u8, words: u8| {
        let mut tcp = vec![
            0x9C,
            0x40,
            0x5D,
            0xC1,
            0,
            0,
            1,
            2,
            0,
            0,
            0,
            9,
            words << 4,
            flags,
            0x40,
            0,
            0,
            0,
            0,
            0,
        ];
        tcp.extend([1, 1, 1, 1]);
        tcp
    };
    let frame = |tcp: &[u8]| {
        let total = 20 + tcp.len() as u16;
        let mut frame = vec![0x45, 0];
        frame.extend(total.to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        frame.extend(tcp);
        ethernet(&[], 0x800, &frame)
    };
    let whole = [
        frame(&[header(0x18, 6), b"data".to_vec()].concat()),
        vec![0xee; 6],
    ]
    .concat();
    let segment = tcp(LinkType::ETHERNET, &whole).unwrap();
    assert_eq!(
        (segment.seq, segment.begins, segment.payload),
        (258, false, &b"data"[..])
    );
    assert_eq!(segment.source, "1.2.3.4:40000".parse().unwrap());
    assert_eq!(segment.destination, "5.6.7.8:24001".parse().unwrap());
    let syn = frame(&header(0x02, 6));
    let syn = tcp(LinkType::ETHERNET, &syn).unwrap();
    assert_eq!((syn.begins, syn.payload), (true, &b""[..]));
    for (frame, wrong) in [
        (frame(&header(0x18, 4)), NotUdp::Inconsistent),
        (frame(&header(0x18, 7)), NotUdp::Truncated),
        (frame(&header(0x18, 6)[..19]), NotUdp::Truncated),
        (
            ethernet(&[], 0x800, &ipv4(&[], 0, 17, b"data")),
            NotUdp::Protocol(17),
        ),
    ] {
        assert_eq!(tcp(LinkType::ETHERNET, &frame), Err(wrong));
    }
}

#[test]
fn a_datagram_whose_total_length_is_left_to_the_network_card_is_bounded_by_udp() {
    let mut v4 = [ipv4(&[], 0, 17, b"data"), vec![9; 30]].concat();
    v4[2..4].fill(0);
    assert_eq!(udp(LinkType::RAW, &v4).expect("UDP").payload, b"data");
}

#[test]
fn frames_without_a_payload_say_why() {
    let edit = |at: usize, v: u8| {
        let mut v4 = ipv4(&[], 0, 17, b"data");
        v4[at] = v;
        v4
    };
    let fragment6 = ipv6(&[17, 0, 0, 1, 0, 0, 0, 0], 44, b"data");
    for (link, frame, reason) in [
        (
            LinkType::ETHERNET,
            ethernet(&[], 0x806, &[0; 28]),
            NotUdp::NotIp(0x806),
        ),
        (
            LinkType::ETHERNET,
            ethernet(&[(0x8100, 1); 24], 0x800, &[0; 60]),
            NotUdp::Wrapped,
        ),
        (LinkType::RAW, ipv6(&[], 58, b"data"), NotUdp::Protocol(58)),
        (LinkType::RAW, ipv4(&[], 0x2000, 17, b"first"), NotUdp::Fragment),
        (LinkType::RAW, ipv4(&[], 185, 17, b"later"), NotUdp::Fragment),
        (LinkType::RAW, fragment6, NotUdp::Fragment),
        (LinkType::RAW, edit(0, 0x44), NotUdp::Inconsistent),
        (LinkType::RAW, edit(3, 19), NotUdp::Inconsistent),
        (LinkType::RAW, edit(25, 7), NotUdp::Inconsistent),
        (LinkType::RAW, edit(25, 13), NotUdp::Truncated),
        (LinkType::RAW, edit(0, 0x55), NotUdp::NotIp(0)),
        (
            LinkType::ETHERNET,
            ethernet(&[], 0x800, &edit(0, 0x65)),
            NotUdp::Inconsistent,
        ),
        (
            LinkType::ETHERNET,
            ethernet(&[], 0x86dd, &edit(0, 0x45)),
            NotUdp::Inconsistent,
        ),
        (LinkType(147), vec![0; 60], NotUdp::Link(LinkType(147))),
    ] {
        assert_eq!(udp(link, &frame), Err(reason), "{frame:02x?}");
    }
}
