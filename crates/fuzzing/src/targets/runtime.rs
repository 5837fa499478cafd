//! Files: what a capture says about itself is not believed.

use std::io::Cursor;
use tickwire_runtime::capture::{CaptureReader, Carried, Frames, Step, TcpStreams, udp};

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
