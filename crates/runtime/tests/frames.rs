//! Frames made here: what mirrors wrap around packets, fragments, streams of TCP; and the account of every
//! frame.

use std::io::Cursor;

use tickwire_market::Nanos;
use tickwire_runtime::capture::{
    AHEAD_BYTES_MAX, CaptureReader, Carried, FrameCounts, Frames, Step, TcpSegment, TcpStreams,
};

/// A pcap of Ethernet frames: seconds, microseconds, the frame, its length on the wire.
fn pcap(link: u32, records: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = words(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, link]);
    for (seconds, micros, frame, wire) in records {
        file.extend(words(&[*seconds, *micros, frame.len() as u32, *wire]));
        file.extend(*frame);
    }
    file
}

/// The payloads of these frames, and the account.
fn read_as(link: u32, frames: &[Vec<u8>]) -> (Vec<Vec<u8>>, FrameCounts) {
    let records: Vec<_> = frames
        .iter()
        .map(|frame| (1, 0, &frame[..], frame.len() as u32))
        .collect();
    read_file(pcap(link, &records))
}

fn read(frames: &[Vec<u8>]) -> (Vec<Vec<u8>>, FrameCounts) {
    read_as(1, frames)
}

fn read_file(file: Vec<u8>) -> (Vec<Vec<u8>>, FrameCounts) {
    let mut reader = CaptureReader::from_reader("test.pcap", Cursor::new(file)).unwrap();
    let (mut frames, mut payloads) = (Frames::default(), Vec::new());
    while let Some(frame) = reader.next_frame(&mut frames).unwrap() {
        match frame.carried {
            Ok(Carried::Udp(udp)) => payloads.push(udp.payload.to_vec()),
            Ok(Carried::Tcp(tcp)) => payloads.push(tcp.payload.to_vec()),
            Err(_) => {}
        }
    }
    (payloads, frames.counts())
}

fn ether(kind: u16, body: &[u8]) -> Vec<u8> {
    [&[0xaa; 12][..], &kind.to_be_bytes(), body].concat()
}

/// IPv4 with this protocol; `place` is the word of flags and fragment's offset.
fn ip(protocol: u8, id: u16, place: u16, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0x45, 0];
    out.extend((20 + body.len() as u16).to_be_bytes());
    out.extend([id.to_be_bytes(), place.to_be_bytes()].concat());
    out.extend([64, protocol, 0, 0, 10, 0, 0, 1, 239, 1, 1, 1]);
    out.extend(body);
    out
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let words = [4000, port, 8 + payload.len() as u16, 0];
    let mut out: Vec<u8> = words.iter().flat_map(|w: &u16| w.to_be_bytes()).collect();
    out.extend(payload);
    out
}

fn plain() -> Vec<u8> {
    ether(0x800, &ip(17, 1, 0x4000, &udp(5000, b"data")))
}

#[test]
fn what_mirrors_and_overlays_wrap_around_a_packet_is_stripped_and_counted() {
    let inner = plain();
    let packet = &inner[14..];
    let tag = |kind: u16, id: u16, rest: &[u8]| ether(kind, &[&id.to_be_bytes(), rest].concat());
    let next = |kind: u16, rest: &[u8]| [&kind.to_be_bytes()[..], rest].concat();
    let gre = |head: &[u8], rest: &[u8]| ether(0x800, &ip(47, 1, 0, &[head, rest].concat()));
    let geneve = [&[1, 0, 0x65, 0x58, 0, 0, 9, 0, 1, 2, 3, 4][..], &inner].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("VLAN", tag(0x8100, 5, &next(0x800, packet))),
        (
            "QinQ",
            tag(
                0x88a8,
                5,
                &next(0x8100, &[&[0, 9][..], &next(0x800, packet)].concat()),
            ),
        ),
        (
            "MPLS",
            ether(0x8847, &[&[0, 1, 0x40, 64, 0, 2, 0x41, 64][..], packet].concat()),
        ),
        // A pseudo-wire, with a control word and without.
        (
            "MPLS",
            ether(0x8847, &[&[0, 2, 0x41, 64, 0, 0, 0, 0][..], &inner].concat()),
        ),
        ("MPLS", ether(0x8848, &[&[0, 2, 0x41, 64][..], &inner].concat())),
        ("GRE", gre(&[0, 0, 8, 0], packet)),
        (
            "GRE",
            gre(&[0xb0, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], packet),
        ),
        ("GRE", gre(&[0, 0, 0x65, 0x58], &inner)),
        ("ERSPAN", gre(&[0, 0, 0x88, 0xbe], &inner)),
        (
            "ERSPAN",
            gre(
                &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 5, 0, 1, 0, 0, 0, 0],
                &inner,
            ),
        ),
        (
            "ERSPAN",
            gre(
                &[
                    0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0,
                ],
                &inner,
            ),
        ),
        (
            "ERSPAN",
            gre(
                &[
                    0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6,
                    7, 8,
                ],
                &inner,
            ),
        ),
        (
            "VXLAN",
            ether(
                0x800,
                &ip(
                    17,
                    1,
                    0,
                    &udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &inner].concat()),
                ),
            ),
        ),
        ("GENEVE", ether(0x800, &ip(17, 1, 0, &udp(6081, &geneve)))),
        ("IP in IP", ether(0x800, &ip(4, 1, 0, packet))),
        (
            "IP in IP",
            ether(0x800, &ip(97, 1, 0, &[&[0x30, 0][..], &inner].concat())),
        ),
        (
            "PPPoE",
            ether(0x8864, &[&[0x11, 0, 0, 1, 0, 34, 0, 0x21][..], packet].concat()),
        ),
        (
            "802.1ah or VN-tag",
            ether(0x88e7, &[&[0, 0, 0, 1][..], &inner].concat()),
        ),
        (
            "802.1ah or VN-tag",
            ether(0x8926, &[&[0, 1, 0, 2, 8, 0][..], packet].concat()),
        ),
    ];
    for (name, frame) in cases {
        let (payloads, counts) = read(std::slice::from_ref(&frame));
        assert_eq!(payloads, [b"data".to_vec()], "{name}: {counts}");
        assert_eq!(counts.stripped.get(name), Some(&1), "{name}: {counts}");
        assert_eq!((counts.udp, counts.lost()), (1, 0), "{name}");
        // Cut anywhere, the frame is told lost or of the network's own business, never read beyond.
        for len in 0..frame.len() {
            let (payloads, counts) = read_file(pcap(1, &[(1, 0, &frame[..len], frame.len() as u32)]));
            assert!(payloads.iter().all(|p| p != b"data"), "{name} cut to {len}");
            assert_eq!(counts.frames, 1);
            assert_eq!(counts.udp + counts.lost(), 1, "{name} cut to {len}: {counts}");
        }
    }
}

#[test]
fn a_datagram_to_the_port_of_an_overlay_that_is_none_is_a_datagram() {
    let quote = ether(0x800, &ip(17, 1, 0, &udp(4789, &[8; 40])));
    let (payloads, counts) = read(&[quote]);
    assert_eq!(payloads, [vec![8; 40]]);
    assert!(counts.stripped.is_empty());
}

#[test]
fn every_frame_is_counted_once_by_what_became_of_it() {
    let whole = plain();
    let tcp = ether(
        0x800,
        &ip(
            6,
            1,
            0,
            &[[0; 12].as_slice(), &[0x50, 0x10, 0, 0, 0, 0, 0, 0], b"x"].concat(),
        ),
    );
    let short = ether(0x800, &ip(17, 1, 0, &udp(1, b"data")[..10]));
    let frames: Vec<(&[u8], u32)> = vec![
        (&whole, whole.len() as u32),
        (&whole[..40], whole.len() as u32),
        (&tcp, tcp.len() as u32),
        (&short, short.len() as u32),
    ];
    let others = [
        ether(0x806, &[0; 28]),
        ether(60, &[0; 60]),
        ether(0x88e5, &[0; 60]),
        ether(0x800, &ip(2, 1, 0, &[0; 8])),
        ether(0x800, &ip(50, 1, 0, &[0; 40])),
        ether(0x800, &[0x44; 60]),
    ];
    let mut records: Vec<_> = frames.iter().map(|(frame, wire)| (1, 0, *frame, *wire)).collect();
    records.extend(others.iter().map(|frame| (1, 0, &frame[..], frame.len() as u32)));
    let (payloads, counts) = read_file(pcap(1, &records));
    assert_eq!(payloads, [b"data".to_vec(), b"x".to_vec()]);
    assert_eq!((counts.frames, counts.udp, counts.tcp), (10, 1, 1));
    assert_eq!((counts.cut, counts.short, counts.inconsistent), (1, 1, 1));
    // ARP, spanning tree and IGMP are the network's own; MACsec and ESP hide what they carry.
    assert_eq!((counts.ether_types.len(), counts.protocols.len()), (3, 2));
    assert_eq!(counts.lost(), 5);
    let said = counts.loss().unwrap();
    for words in [
        "5 of 10 frames could not be read",
        "1 cut off by the snap length",
        "1 shorter than their headers say",
        "1 of EtherType 0x88e5, which is not read",
        "1 of IP protocol 50, which is not read",
        "1 of ARP",
        "1 of IGMP",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let (payloads, counts) = read_as(147, &[whole]);
    assert!(payloads.is_empty());
    assert_eq!(
        (counts.lost(), &counts.not_read()[..]),
        (1, &["1 of link type 147, which is not supported".to_string()][..])
    );
}

#[test]
fn a_time_with_too_large_a_fraction_is_carried_over_and_counted() {
    let frame = plain();
    let len = frame.len() as u32;
    let file = pcap(
        1,
        &[
            (10, 1_000_000, &frame, len),
            (10, 4_294_967_295, &frame, len),
            (12, 5, &frame, len),
        ],
    );
    let mut reader = CaptureReader::from_reader("test.pcap", Cursor::new(file)).unwrap();
    let mut frames = Frames::default();
    let mut times = Vec::new();
    while let Some(frame) = reader.next_frame(&mut frames).unwrap() {
        times.push(frame.packet.time.unwrap());
    }
    assert_eq!(
        times,
        [
            Nanos(11_000_000_000),
            Nanos(4_304_967_295_000),
            Nanos(12_000_005_000)
        ]
    );
    let counts = frames.counts();
    assert_eq!((counts.frames, counts.odd_times, counts.lost()), (3, 2, 0));
}

/// The pieces of a datagram of `len` bytes of payload, cut every `step` bytes of the IP packet's body.
fn pieces(id: u16, len: usize, step: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
    let payload: Vec<u8> = (0..len).map(|at| (at * 7 + usize::from(id)) as u8).collect();
    let body = udp(5000, &payload);
    let frames = body.chunks(step).enumerate().map(|(at, part)| {
        let last = (at + 1) * step >= body.len();
        let place = (at * step / 8) as u16 | if last { 0 } else { 0x2000 };
        ether(0x800, &ip(17, id, place, part))
    });
    (payload, frames.collect())
}

#[test]
fn fragments_are_put_together_in_any_order_and_what_misses_one_is_lost() {
    let (payload, frames) = pieces(9, 5000, 1480);
    assert_eq!(frames.len(), 4);
    let reversed: Vec<_> = frames.iter().rev().cloned().collect();
    // Two mirrors: every piece twice.
    let doubled: Vec<_> = frames.iter().flat_map(|f| [f.clone(), f.clone()]).collect();
    let twice = [frames.clone(), frames.clone()].concat();
    for (order, fragments) in [(&frames, 3), (&reversed, 3), (&doubled, 7), (&twice, 7)] {
        let (found, counts) = read(order);
        assert_eq!(found, std::slice::from_ref(&payload));
        assert_eq!(
            (counts.udp, counts.fragments, counts.lost()),
            (1, fragments, 0),
            "{counts}"
        );
    }
    let (found, counts) = read(&frames[..3]);
    assert!(found.is_empty());
    assert_eq!((counts.udp, counts.fragments_lost, counts.lost()), (0, 3, 3));
    assert!(
        counts
            .loss()
            .unwrap()
            .contains("3 fragments of datagrams that did not come whole")
    );
    // The number comes again with another datagram.
    let (other, again) = pieces(9, 3000, 1480);
    let (found, counts) = read(&[frames.clone(), again].concat());
    assert_eq!(found, [payload, other]);
    assert_eq!(counts.lost(), 0);
}

#[test]
fn pieces_that_contradict_each_other_give_no_datagram() {
    let (_, frames) = pieces(3, 2000, 1480);
    let overlapping = ether(0x800, &ip(17, 3, 0x2000 | 8, &[0xee; 1480]));
    let (found, counts) = read(&[frames[0].clone(), overlapping, frames[1].clone()]);
    assert!(found.is_empty(), "{counts}");
    assert_eq!(counts.fragments_lost, 3);
    // Beyond the longest packet, and a piece that cannot be in the middle.
    let beyond = ether(0x800, &ip(17, 4, 0x1fff, &[0; 64]));
    let odd = ether(0x800, &ip(17, 5, 0x2000, &[0; 61]));
    let (_, counts) = read(&[beyond, odd]);
    assert_eq!(counts.fragments_lost, 2);
}

#[test]
fn pieces_of_many_datagrams_are_bounded() {
    let first = |id: u16| pieces(id, 60_000, 32_000).1[0].clone();
    let frames: Vec<_> = (0..3000).map(first).collect();
    let (found, counts) = read(&frames);
    assert!(found.is_empty());
    assert_eq!(counts.fragments_lost, 3000);
}

fn segment(seq: u32, payload: &[u8]) -> TcpSegment<'_> {
    TcpSegment {
        source: "10.0.0.1:40000".parse().unwrap(),
        destination: "10.0.0.2:20000".parse().unwrap(),
        seq,
        begins: false,
        payload,
    }
}

/// What a reader sees that takes every byte at once: bytes, and `-N-` for a hole, `|` for another connection.
fn taken(segments: &[TcpSegment<'_>]) -> String {
    let (mut streams, mut said) = (TcpStreams::default(), String::new());
    let take = |stream: &mut tickwire_runtime::capture::Stream, said: &mut String| {
        while let Some(step) = stream.step() {
            match step {
                Step::Bytes => *said += std::str::from_utf8(&std::mem::take(&mut stream.ready)).unwrap(),
                Step::Missing(count) => *said += &format!("-{count}-"),
                Step::Anew => *said += "|",
            }
        }
    };
    for segment in segments {
        take(streams.add(segment), &mut said);
    }
    for (_, stream) in streams.settle() {
        take(stream, &mut said);
    }
    said
}

#[test]
fn segments_out_of_order_again_overlapping_and_missing() {
    let start = u32::MAX - 1;
    let all = |list: &[(u32, &'static str)]| {
        let segments: Vec<_> = list
            .iter()
            .map(|(at, text)| segment(start.wrapping_add(*at), text.as_bytes()))
            .collect();
        taken(&segments)
    };
    assert_eq!(all(&[(0, "ab"), (2, "cd"), (4, "ef")]), "abcdef");
    assert_eq!(all(&[(0, "ab"), (4, "ef"), (2, "cd")]), "abcdef");
    assert_eq!(all(&[(0, "ab"), (0, "ab"), (1, "bcd"), (0, "abcdef")]), "abcdef");
    assert_eq!(all(&[(0, "ab"), (6, "gh"), (3, "defg"), (2, "cd")]), "abcdefgh");
    assert_eq!(all(&[(0, "ab"), (4, "ef"), (8, "ij")]), "ab-2-ef-2-ij");
    // What has been taken stands, whatever comes later.
    assert_eq!(all(&[(0, "ab"), (0, "XY"), (2, "cd")]), "abcd");
    let syn = TcpSegment {
        begins: true,
        ..segment(99, b"")
    };
    let list = [
        segment(5, b"old"),
        syn,
        segment(100, b"new"),
        syn,
        segment(103, b"er"),
    ];
    assert_eq!(taken(&list), "old|newer");
    // A SYN that was overtaken by data.
    assert_eq!(taken(&[syn, segment(103, b"er"), segment(100, b"new")]), "newer");
}

#[test]
fn a_hole_is_given_up_when_too_much_waits_behind_it() {
    let mut streams = TcpStreams::default();
    assert_eq!(streams.add(&segment(0, b"ab")).step(), Some(Step::Bytes));
    let block = [b'x'; 1000];
    let mut steps = Vec::new();
    for at in 0..(AHEAD_BYTES_MAX / 1000 + 2) as u32 {
        let stream = streams.add(&segment(10 + at * 1000, &block));
        while let Some(step) = stream.step() {
            steps.push(step);
        }
    }
    assert_eq!(steps[0], Step::Missing(8));
    assert!(steps.len() > AHEAD_BYTES_MAX / 1000);
}

/// However a stream is cut, repeated and shuffled: its bytes come once and in order.
#[test]
fn any_order_of_any_cuts_gives_the_stream() {
    let stream: Vec<u8> = (0..440).map(|at| b'a' + (at % 26) as u8).collect();
    let mut rng = tickwire_testdata::Rng::new(6);
    for _ in 0..500 {
        let start = rng.below(1 << 32) as u32;
        let mut parts: Vec<(usize, usize)> = (0..stream.len()).step_by(20).map(|at| (at, 20)).collect();
        parts.extend((0..rng.below(60)).map(|_| (rng.below(400) as usize, 1 + rng.below(40) as usize)));
        for at in (1..parts.len()).rev() {
            parts.swap(at, rng.below(at as u64 + 1) as usize);
        }
        let syn = TcpSegment {
            begins: true,
            ..segment(start.wrapping_sub(1), b"")
        };
        let mut segments = vec![syn];
        segments.extend(parts.iter().map(|(at, len)| {
            let end = (at + len).min(stream.len());
            segment(start.wrapping_add(*at as u32), &stream[*at..end])
        }));
        assert_eq!(taken(&segments).as_bytes(), stream);
    }
}
