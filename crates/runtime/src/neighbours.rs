//! What other programs do to a core's caches between two packets, for benchmarks: a path that is run again
//! and again finds everything where it left it, which on a market it never does.

use crate::clock::{Clock, tsc};
use tickwire_market::Nanos;

/// How long after the packet before it a packet comes, nanoseconds, on a market that is quiet and on one that
/// is more so, and what that is called.
pub const PAUSES: [(u64, &str); 2] = [
    (Nanos::MILLI, "1 ms after the one before"),
    (10 * Nanos::MILLI, "10 ms after the one before"),
];
/// About what a call takes that receives a datagram, nanoseconds.
const RECEIVING_NS: u64 = 1_000;
/// A line of the caches, in words.
const LINE: usize = 8;
/// Lines between two looks at the clock.
const STRIDE: usize = 64;
/// More than the last cache that a core shares with others, on most machines.
const BYTES: usize = 64 << 20;

/// Memory that is walked through, as other programs on the machine walk through theirs. In a millisecond some
/// ten megabytes are written, more than the caches of one core hold; in ten milliseconds all of it, more than
/// most last caches do. Predictors of branches stay as they are.
#[derive(Debug)]
pub struct Neighbours {
    words: Vec<u64>,
    at: usize,
    /// What a socket copies a datagram to.
    buffer: Vec<u8>,
}

/// A datagram that was received.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// When, as [`tsc`] counts: what is timed begins here.
    pub at: u64,
    /// The same on the clock.
    pub now: Nanos,
}

impl<'a> Arrived<'a> {
    /// A datagram that has come now.
    #[inline(always)]
    pub fn at_once(clock: &Clock, bytes: &'a [u8]) -> Arrived<'a> {
        let at = tsc();
        Arrived {
            bytes,
            at,
            now: clock.nanos_at(at),
        }
    }
}

impl Default for Neighbours {
    fn default() -> Neighbours {
        Neighbours::new()
    }
}

impl Neighbours {
    /// Takes the memory, 64 MiB.
    pub fn new() -> Neighbours {
        Neighbours {
            // Not zeros: these would all be one page until they are written.
            words: vec![1; BYTES / size_of::<u64>()],
            at: 0,
            buffer: Vec::new(),
        }
    }

    /// Gives a datagram as a receive call does: it is copied, and about the time of such a call later the
    /// copy stands in the caches. A datagram that the benchmark keeps has left them in a pause: read there,
    /// its way from memory would be timed with the path. Until then the clock is read again and again, as by
    /// a receive loop in each of its turns.
    pub fn receive(&mut self, clock: &Clock, datagram: &[u8]) -> Arrived<'_> {
        self.buffer.clear();
        self.buffer.extend_from_slice(datagram);
        let until = tsc() + clock.span_ticks(RECEIVING_NS);
        loop {
            let arrived = Arrived::at_once(clock, &self.buffer);
            if arrived.at >= until {
                return arrived;
            }
            std::hint::spin_loop();
        }
    }

    /// Has the caches for so many nanoseconds, or for a few lines of them if the time is over already. In
    /// between, every `every_ns`, `between` is called, as a thread that waits for a packet would use its own
    /// core; 0: never.
    pub fn work(&mut self, clock: &Clock, ns: u64, every_ns: u64, mut between: impl FnMut(Nanos)) {
        let (began, whole, every) = (tsc(), clock.span_ticks(ns), clock.span_ticks(every_ns));
        let (mut now, mut due) = (began, began);
        loop {
            if every > 0 && now >= due {
                due = now + every;
                between(clock.nanos_at(now));
            }
            for _ in 0..STRIDE {
                self.words[self.at] = self.words[self.at].wrapping_add(1);
                self.at += LINE;
                if self.at >= self.words.len() {
                    self.at = 0;
                }
            }
            now = tsc();
            if now.wrapping_sub(began) >= whole {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_walks_through_memory_and_calls_in_between() {
        let clock = Clock::calibrate();
        let mut neighbours = Neighbours::new();
        let mut calls = 0;
        neighbours.work(&clock, 2_000_000, 10_000, |_| calls += 1);
        assert!(calls > 0);
        let touched = |n: &Neighbours| n.words.iter().filter(|word| **word > 1).count();
        let before = touched(&neighbours);
        assert!(before > 0);
        neighbours.work(&clock, 1_000_000, 0, |_| panic!("never"));
        assert!(touched(&neighbours) >= before);
        let asked = tsc();
        for datagram in [&b"a datagram"[..], b"shorter"] {
            let arrived = neighbours.receive(&clock, datagram);
            assert_eq!(arrived.bytes, datagram);
            assert!(arrived.at > asked, "it takes some time to receive one");
            assert_eq!(arrived.now, clock.nanos_at(arrived.at));
        }
    }
}
