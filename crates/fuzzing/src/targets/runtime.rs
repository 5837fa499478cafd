//! Files: what a capture says about itself is not believed.

use std::io::Cursor;
use std::net::{Ipv4Addr, SocketAddrV4};

use tickwire_market::Nanos;
use tickwire_runtime::capture::{CaptureReader, Carried, Frames, Step, TcpStreams, blocks, udp};

use crate::Choices;

/// Reading ends, and every datagram lies within its frame.
pub fn capture(bytes: &[u8]) {
    let Ok(mut reader) = CaptureReader::from_reader("fuzz", Cursor::new(bytes.to_vec())) else {
        return;
    };
    let mut packets = 0;
    while let Ok(Some(packet)) = reader.next_packet() {
        packets += 1;
        assert!(packets <= 1 << 20, "the reader does not get on");
        if let Ok(datagram) = udp(packet.link, packet.bytes) {
            assert!(datagram.payload.len() <= packet.bytes.len());
        }
    }
}

/// Frames behind their length in two bytes, of the link type that the first byte says: every one is counted
/// once, whatever is around it, fragments are put together within bounds, and streams of TCP give each byte
/// once at most.
pub fn capture_frames(bytes: &[u8]) {
    let Some((link, mut rest)) = bytes.split_first() else {
        return;
    };
    let words = |words: [u32; 6]| words.map(u32::to_le_bytes).concat();
    let mut file = words([0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, u32::from(*link)]);
    while let Some((len, more)) = rest.split_first_chunk::<2>() {
        let frame = &more[..more.len().min(u16::from_le_bytes(*len).into())];
        rest = &more[frame.len()..];
        let len = (frame.len() as u32).to_le_bytes();
        file.extend([&[0; 8][..], &len, &len, frame].concat());
    }
    let Ok(mut reader) = CaptureReader::from_reader("fuzz", Cursor::new(file)) else {
        return;
    };
    let (mut frames, mut streams) = (Frames::default(), TcpStreams::default());
    let (mut read, mut segments, mut sent, mut taken) = (0_u64, 0_u64, 0_usize, 0_usize);
    while let Ok(Some(frame)) = reader.next_frame(&mut frames) {
        read += 1;
        if let Ok(Carried::Tcp(segment)) = frame.carried {
            segments += 1;
            sent += segment.payload.len();
            let stream = streams.add(&segment);
            while let Some(step) = stream.step() {
                if step == Step::Bytes {
                    taken += std::mem::take(&mut stream.ready).len();
                }
            }
        }
    }
    for (_, stream) in streams.settle() {
        while stream.step().is_some() {
            taken += std::mem::take(&mut stream.ready).len();
        }
    }
    assert!(taken <= sent, "{taken} bytes of {sent}");
    let counts = frames.counts();
    assert_eq!((counts.frames, counts.tcp), (read, segments));
    assert!(counts.udp + counts.tcp + counts.lost() <= read, "{counts}");
}

/// Datagrams of any lengths, times and losses, written as a recorder does and cut anywhere: the reader gives
/// every one that is whole, as it was.
pub fn recorded_blocks(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let cut = choices.below(1 << 16).unwrap_or(u32::MAX);
    let groups = choices.below(4).unwrap_or(0) + 1;
    let names: Vec<String> = (0..groups).map(|n| format!("239.1.1.{n}:{n}")).collect();
    let mut file = Vec::new();
    blocks::begin(&mut file, "fuzz", names.iter().map(String::as_str));
    let mut block = vec![0xa5; blocks::UDP_BLOCK_MAX];
    let mut sent = Vec::new();
    while let (Some(of), Some(time), Some(len)) = (choices.below(groups), choices.number(), choices.byte()) {
        let payload = choices.bytes(usize::from(len)).to_vec();
        let lost = u32::from(choices.byte().unwrap_or(0));
        let to = SocketAddrV4::new(Ipv4Addr::new(239, 1, 1, of as u8), of as u16);
        let from = SocketAddrV4::new(Ipv4Addr::from(time as u32), lost as u16);
        block[blocks::PAYLOAD_AT..blocks::PAYLOAD_AT + payload.len()].copy_from_slice(&payload);
        let len = blocks::udp(&mut block, of, Nanos(time), (from, to), payload.len(), lost);
        file.extend(&block[..len]);
        sent.push((file.len(), of, time, from, to, payload));
    }
    blocks::statistics(&mut file, 0, Nanos(0), sent.len() as u64, 0);
    file.truncate(cut as usize);
    let whole = sent.iter().filter(|(end, ..)| *end <= file.len());
    let Ok(mut reader) = CaptureReader::from_reader("fuzz", Cursor::new(file.clone())) else {
        assert_eq!(whole.count(), 0);
        return;
    };
    for (_, of, time, from, to, payload) in whole {
        let packet = reader.next_packet().expect("whole").expect("one more");
        assert_eq!((packet.interface, packet.time), (*of, Some(Nanos(*time))));
        let datagram = udp(packet.link, packet.bytes).expect("a datagram");
        assert_eq!(
            (datagram.source, datagram.destination),
            ((*from).into(), (*to).into())
        );
        assert_eq!(datagram.payload, payload);
    }
    if let Ok(packet) = reader.next_packet() {
        assert!(packet.is_none(), "nothing of what was cut");
    }
}
