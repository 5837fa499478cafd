//! A connection's timestamps (RFC 7323): what the kernel would write into a segment at this moment. A peer
//! drops a segment whose timestamp lies before one that it has seen.

use std::io;
use std::time::Duration;

use tickwire_runtime::clock::monotonic;
use tickwire_runtime::tcp::TcpStream;
use tickwire_runtime::xdp::delegate::stamp;

/// Milliseconds of the monotonic clock, and an offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamps {
    offset: u32,
}

/// Looks that tell both values of the bit that the kernel does not say.
const LOOKS: u32 = 8;

fn milliseconds() -> u32 {
    (monotonic().0 / 1_000_000) as u32
}

/// What the kernel's timestamp is ahead of the clock; one less where the kernel hides the lowest bit. `None`
/// if the clock moved on between.
fn offset(stream: &TcpStream) -> io::Result<Option<u32>> {
    for _ in 0..4 {
        let before = milliseconds();
        let stamp = stamp(stream)?;
        if milliseconds() == before {
            return Ok(Some(stamp.wrapping_sub(before)));
        }
    }
    Ok(None)
}

impl Stamps {
    /// Takes a few milliseconds; `None` if timestamps are no milliseconds.
    pub(super) fn learn(stream: &TcpStream) -> io::Result<Option<Stamps>> {
        let mut found: Vec<u32> = Vec::new();
        for _ in 0..LOOKS {
            found.extend(offset(stream)?);
            std::thread::sleep(Duration::from_micros(700));
        }
        Ok(of(&found))
    }

    /// Looks again: what was told too low before is mended.
    pub(super) fn follow(&mut self, stream: &TcpStream) {
        if let Ok(Some(offset)) = offset(stream)
            && offset.wrapping_sub(self.offset) == 1
        {
            self.offset = offset;
        }
    }

    /// What it is ahead of the milliseconds of the monotonic clock.
    pub(super) fn offset(&self) -> u32 {
        self.offset
    }

    /// The timestamp of a segment that leaves now.
    #[inline]
    pub(super) fn now(&self) -> u32 {
        milliseconds().wrapping_add(self.offset)
    }
}

/// The largest of offsets that differ by the hidden bit at most.
fn of(found: &[u32]) -> Option<Stamps> {
    let first = *found.first()?;
    // Around the first one, on a circle of 2^32.
    let ahead = found
        .iter()
        .map(|offset| offset.wrapping_sub(first).cast_signed());
    let (low, high) = ahead.fold((0, 0), |(low, high), ahead| (ahead.min(low), ahead.max(high)));
    let offset = first.wrapping_add_signed(high);
    (high - low <= 1).then_some(Stamps { offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hidden_bit_is_found_and_other_units_are_told() {
        let offset = |found: &[u32]| of(found).map(|stamps| stamps.offset);
        assert_eq!(offset(&[7, 6, 7]), Some(7));
        assert_eq!(offset(&[6, 7]), Some(7));
        assert_eq!(offset(&[u32::MAX, 0, u32::MAX]), Some(0));
        assert_eq!(offset(&[9]), Some(9));
        assert_eq!(offset(&[0, 999, 1998]), None);
        assert_eq!(offset(&[]), None);
    }
}
