//! Streams of TCP in a capture, put together: segments out of order, sent again, overlapping, missing;
//! connections that begin before the capture does. Each direction by itself.
//!
//! Whoever reads a stream takes [`Step`]s: bytes that follow what there was, or a hole that will not be
//! filled. A hole is given up when more than [`AHEAD_BYTES_MAX`] bytes or [`AHEAD_SEGMENTS_MAX`] segments
//! wait behind it, when another connection between the same two begins, or when the capture ends.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use super::TcpSegment;

/// Bytes that wait behind a hole of one stream before it is given up.
pub const AHEAD_BYTES_MAX: usize = 256 << 10;
/// Segments that wait behind a hole of one stream before it is given up.
pub const AHEAD_SEGMENTS_MAX: usize = 1024;
/// Streams that are known at once; with more the one that was silent the longest is settled and forgotten.
pub const STREAMS_MAX: usize = 1024;

/// From whom to whom.
pub type StreamKey = (SocketAddr, SocketAddr);

/// What comes next in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Bytes were appended to [`Stream::ready`].
    Bytes,
    /// So many bytes are missing; [`Stream::ready`] still has what was before them, which the reader has to
    /// settle.
    Missing(u64),
    /// The stream begins anew, with another connection between the same two: what was before is to be
    /// settled.
    Anew,
}

/// One direction of a connection.
#[derive(Debug)]
pub struct Stream {
    /// Bytes in order that the reader has not taken.
    pub ready: Vec<u8>,
    /// The capture has no beginning of it, or bytes were missing: what is ready may begin within a message.
    /// The reader's to unset.
    pub is_in_the_middle: bool,
    /// Place of its first byte that was seen or announced, counted on beyond 32 bits.
    first: u64,
    /// Place of the byte that comes next.
    next: u64,
    /// What came too early, by place.
    ahead: BTreeMap<u64, Vec<u8>>,
    ahead_bytes: usize,
    /// Holes are not waited for any more.
    is_over: bool,
    anew: Option<u32>,
    /// The segment that came last, in segments seen.
    touched: u64,
    /// Bytes that came once more with other content than before.
    contradictions: u64,
}

impl Stream {
    fn new(first: u32, in_the_middle: bool) -> Stream {
        Stream {
            ready: Vec::new(),
            is_in_the_middle: in_the_middle,
            // Numbers below it are left free for segments from before the first one seen.
            first: 1 << 32 | u64::from(first),
            next: 1 << 32 | u64::from(first),
            ahead: BTreeMap::new(),
            ahead_bytes: 0,
            is_over: false,
            anew: None,
            touched: 0,
            contradictions: 0,
        }
    }

    /// The place of a sequence number: the one nearest to what comes next.
    fn place(&self, seq: u32) -> u64 {
        let distance = seq.wrapping_sub(self.next as u32) as i32;
        self.next.wrapping_add_signed(distance.into())
    }

    /// Takes the next step, `None` while there is none.
    pub fn step(&mut self) -> Option<Step> {
        while let Some(entry) = self.ahead.first_entry() {
            let at = *entry.key();
            if at > self.next {
                break;
            }
            let bytes = entry.remove();
            self.ahead_bytes -= bytes.len();
            let known = (self.next - at) as usize;
            if let Some(new) = bytes.get(known..).filter(|new| !new.is_empty()) {
                self.ready.extend_from_slice(new);
                self.next += new.len() as u64;
                return Some(Step::Bytes);
            }
        }
        let is_full = self.ahead_bytes > AHEAD_BYTES_MAX || self.ahead.len() > AHEAD_SEGMENTS_MAX;
        if let Some((&at, _)) = self.ahead.first_key_value()
            && (self.is_over || is_full || self.anew.is_some())
        {
            let missing = at - self.next;
            self.next = at;
            self.is_in_the_middle = true;
            return Some(Step::Missing(missing));
        }
        if let Some(first) = self.anew.take() {
            let touched = self.touched;
            let ready = std::mem::take(&mut self.ready);
            *self = Stream::new(first, false);
            (self.ready, self.touched) = (ready, touched);
            return Some(Step::Anew);
        }
        None
    }

    /// Bytes that came twice and differed; the first ones were taken.
    pub fn contradictions(&self) -> u64 {
        self.contradictions
    }

    fn put(&mut self, place: u64, payload: &[u8]) {
        if payload.is_empty() {
            return;
        }
        let end = place + payload.len() as u64;
        if end <= self.next {
            return;
        }
        // Bytes that came before stay; what is new goes between them.
        let mut at = place.max(self.next);
        while at < end {
            let covering = self.ahead.range(..=at).next_back();
            if let Some((&start, bytes)) = covering
                && start + bytes.len() as u64 > at
            {
                let until = end.min(start + bytes.len() as u64);
                let before = &bytes[(at - start) as usize..(until - start) as usize];
                let again = &payload[(at - place) as usize..(until - place) as usize];
                self.contradictions += u64::from(before != again);
                at = until;
                continue;
            }
            let until = self
                .ahead
                .range(at..)
                .next()
                .map_or(end, |(start, _)| end.min(*start));
            let new = payload[(at - place) as usize..(until - place) as usize].to_vec();
            self.ahead_bytes += new.len();
            self.ahead.insert(at, new);
            at = until;
        }
    }
}

/// Every direction of every connection that has been seen.
#[derive(Debug, Default)]
pub struct TcpStreams {
    of: HashMap<StreamKey, Stream>,
    seen: u64,
    forgotten: u64,
}

impl TcpStreams {
    /// Takes a segment: its stream, of which the steps are to be taken now.
    pub fn add(&mut self, segment: &TcpSegment<'_>) -> &mut Stream {
        self.seen += 1;
        let key = (segment.source, segment.destination);
        if !self.of.contains_key(&key) && self.of.len() >= STREAMS_MAX {
            let idle = self.of.iter().min_by_key(|(_, stream)| stream.touched);
            if let Some(key) = idle.map(|(key, _)| *key)
                && let Some(stream) = self.of.remove(&key)
            {
                self.forgotten += u64::from(!stream.ready.is_empty() || !stream.ahead.is_empty());
            }
        }
        let first = segment.seq.wrapping_add(segment.begins.into());
        let stream = self
            .of
            .entry(key)
            .or_insert_with(|| Stream::new(first, !segment.begins));
        stream.touched = self.seen;
        // The same SYN once more is no other connection.
        if segment.begins && stream.place(first) != stream.first {
            stream.anew = Some(first);
            return stream;
        }
        stream.put(stream.place(first), segment.payload);
        stream
    }

    /// The capture has ended: holes are given up, and the steps of every stream are to be taken.
    pub fn settle(&mut self) -> Vec<(StreamKey, &mut Stream)> {
        let mut all: Vec<_> = self.of.iter_mut().map(|(key, stream)| (*key, stream)).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        for (_, stream) in &mut all {
            stream.is_over = true;
        }
        all
    }

    /// Streams that were forgotten, with bytes that were not read, because there were more than
    /// [`STREAMS_MAX`].
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}
