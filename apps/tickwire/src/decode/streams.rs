//! Streams of TCP in a capture, put together as far as their segments come in order.
//!
//! Bytes that come again are passed over. Where bytes are missing the stream begins anew behind them: what was read half is
//! dropped, and whoever asks is told how much is missing.

use std::collections::HashMap;
use std::net::SocketAddr;

use tickwire_runtime::capture::TcpSegment;

/// Every direction of every connection that has been seen.
#[derive(Default)]
pub(crate) struct Streams {
    of: HashMap<(SocketAddr, SocketAddr), Stream>,
}

struct Stream {
    /// Number of the byte that comes next.
    next: u32,
    /// What has come and was not taken.
    bytes: Vec<u8>,
}

impl Streams {
    /// Takes a segment: all bytes of its stream that were not taken yet, to take from at the front; and how many are missing
    /// before the segment's first.
    pub(crate) fn add(&mut self, segment: &TcpSegment<'_>) -> (&mut Vec<u8>, u32) {
        let first = segment.seq.wrapping_add(segment.begins.into());
        let anew = || Stream {
            next: first,
            bytes: Vec::new(),
        };
        let stream = self
            .of
            .entry((segment.source, segment.destination))
            .or_insert_with(anew);
        if segment.begins {
            *stream = anew();
        }
        let ahead = first.wrapping_sub(stream.next);
        let (missing, known) = if ahead < 1 << 31 {
            (ahead, 0)
        } else {
            (0, ahead.wrapping_neg() as usize)
        };
        if missing > 0 {
            stream.bytes.clear();
        }
        if let Some(new) = segment.payload.get(known..).filter(|new| !new.is_empty()) {
            stream.bytes.extend_from_slice(new);
            stream.next = first.wrapping_add(segment.payload.len() as u32);
        }
        (&mut stream.bytes, missing)
    }

    /// The streams that end within a message: where they go, and what there is of it.
    pub(crate) fn unfinished(&self) -> Vec<(SocketAddr, &[u8])> {
        let mut left: Vec<_> = self
            .of
            .iter()
            .filter(|(_, stream)| !stream.bytes.is_empty())
            .map(|((_, to), stream)| (*to, &stream.bytes[..]))
            .collect();
        left.sort_unstable();
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(seq: u32, payload: &[u8]) -> TcpSegment<'_> {
        TcpSegment {
            source: "10.0.0.1:40000".parse().unwrap(),
            destination: "10.0.0.2:20000".parse().unwrap(),
            seq,
            begins: false,
            payload,
        }
    }

    #[test]
    fn segments_are_joined_repeats_passed_over_and_gaps_told() {
        let mut streams = Streams::default();
        let mut add = |segment: TcpSegment<'_>| {
            let (bytes, missing) = streams.add(&segment);
            (bytes.clone(), missing)
        };
        let start = u32::MAX - 1;
        assert_eq!(add(segment(start, b"ab")), (b"ab".to_vec(), 0));
        assert_eq!(add(segment(0, b"cd")), (b"abcd".to_vec(), 0));
        assert_eq!(add(segment(start, b"ab")), (b"abcd".to_vec(), 0));
        assert_eq!(add(segment(1, b"def")), (b"abcdef".to_vec(), 0));
        assert_eq!(add(segment(4, b"")), (b"abcdef".to_vec(), 0));
        assert_eq!(add(segment(10, b"x")), (b"x".to_vec(), 6));
        // The other direction, and a new connection between the same two.
        let back = TcpSegment {
            source: segment(0, b"").destination,
            destination: segment(0, b"").source,
            ..segment(7, b"back")
        };
        assert_eq!(add(back), (b"back".to_vec(), 0));
        let syn = TcpSegment {
            begins: true,
            ..segment(99, b"")
        };
        assert_eq!(add(syn), (Vec::new(), 0));
        assert_eq!(add(segment(100, b"new")), (b"new".to_vec(), 0));
        let left: Vec<&[u8]> = streams.unfinished().iter().map(|(_, bytes)| *bytes).collect();
        assert_eq!(left, [&b"back"[..], b"new"]);
    }
}
