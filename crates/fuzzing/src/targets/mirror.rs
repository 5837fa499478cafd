//! Frames of a mirror.

use std::sync::atomic::AtomicU64;

use tickwire_aeron::{Mirror, invitation};
use tickwire_market::Nanos;
use tickwire_shm::{BookCopy, Identity, Next, Reader, Region, SuperCopy};

/// The largest region that is made for an input, words.
const WORDS_MAX: usize = 1 << 15;

/// Frames, each behind its length (two bytes), little-endian: what they make of a region can be read without
/// a panic, and its ring comes to an end.
pub fn mirror(mut bytes: &[u8]) {
    let mut words: Vec<AtomicU64> = Vec::new();
    let mut frames = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (frame, rest) = rest.split_at(length);
        frames.push(frame);
        bytes = rest;
    }
    let invited = frames
        .iter()
        .enumerate()
        .find_map(|(at, frame)| Some((at, invitation(frame, 0).ok()??)));
    let Some((at, invited)) = invited else { return };
    let Ok(layout) = invited.config.layout() else {
        return;
    };
    if layout.words > WORDS_MAX {
        return;
    }
    words.resize_with(layout.words, || AtomicU64::new(0));
    let identity = Identity {
        generation: Nanos(1),
        pid: 1,
    };
    let Ok(region) = Region::format(&words, &invited.config, identity) else {
        return;
    };
    let mut mirror = Mirror::new(region, &invited, 0);
    for (now, frame) in frames[at + 1..].iter().enumerate() {
        let taken = mirror.frame(frame, now as u64);
        if taken.is_err() || mirror.look(now as u64).is_err() {
            break;
        }
    }
    let Ok(reader) = Reader::attach(&words) else {
        return;
    };
    let (mut book, mut merged) = (BookCopy::default(), SuperCopy::default());
    for slot in 0..reader.books_used() {
        let _ = reader.read_book(slot, &mut book);
    }
    for slot in 0..layout.supers.count {
        let _ = reader.read_super(slot, &mut merged);
    }
    let _ = reader.sources().count();
    for ring in 0..layout.rings.count {
        let Some(mut cursor) = reader.ring_from_oldest(ring) else {
            continue;
        };
        // Nobody writes: after a ring's records there is nothing.
        for _ in 0..=2 * u64::from(layout.config.ring_records) {
            if cursor.next(&reader) == Next::Empty {
                break;
            }
        }
        assert_eq!(cursor.next(&reader), Next::Empty, "a ring without an end");
    }
}
