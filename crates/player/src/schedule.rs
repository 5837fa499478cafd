//! When each packet is due, from the first one on: by the capture's own times, by packets a second, by bits a
//! second, or at once.

use tickwire_market::Nanos;

/// How fast.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Rate {
    /// A multiple of the capture's own speed.
    Times(f64),
    /// Packets a second.
    Packets(f64),
    /// Bits a second of whole frames as they were on the recorded wire.
    Bits(f64),
    /// As fast as they are taken.
    Top,
}

/// Says when packets are due. A packet that is late does not move those behind it: what was lost is caught
/// up, and shown.
pub(crate) struct Schedule {
    rate: Rate,
    /// The capture's time of this pass's first packet, and when it was due.
    start: Option<(Nanos, u64)>,
    /// When the last packet was due.
    last_ns: u64,
    packets: u64,
    bits: u64,
}

impl Schedule {
    pub(crate) fn new(rate: Rate) -> Schedule {
        Schedule {
            rate,
            start: None,
            last_ns: 0,
            packets: 0,
            bits: 0,
        }
    }

    /// When a packet is due, in nanoseconds from the first; `None`: at once. Times that go backwards are due
    /// at once.
    pub(crate) fn due(&mut self, time: Nanos, frame_len: u32) -> Option<u64> {
        let (packets, bits) = (self.packets, self.bits);
        self.packets += 1;
        self.bits += u64::from(frame_len) * 8;
        let due = match self.rate {
            Rate::Times(times) => {
                let (first, from_ns) = *self.start.get_or_insert((time, self.last_ns));
                from_ns + (time.since(first) as f64 / times) as u64
            }
            Rate::Packets(rate) => (packets as f64 * 1e9 / rate) as u64,
            Rate::Bits(rate) => (bits as f64 * 1e9 / rate) as u64,
            Rate::Top => return None,
        };
        self.last_ns = self.last_ns.max(due);
        Some(self.last_ns)
    }

    /// The captures begin anew: their first packet is due together with the last one so far.
    pub(crate) fn rewind(&mut self) {
        self.start = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dues(rate: Rate, packets: &[(u64, u32)]) -> Vec<Option<u64>> {
        let mut schedule = Schedule::new(rate);
        packets
            .iter()
            .map(|&(time, len)| schedule.due(Nanos(time), len))
            .collect()
    }

    #[test]
    fn each_rate_counts_from_the_first_packet() {
        let packets = [(5_000, 125), (5_300, 250), (6_000, 125)];
        assert_eq!(
            dues(Rate::Times(1.0), &packets),
            [Some(0), Some(300), Some(1_000)]
        );
        assert_eq!(dues(Rate::Times(3.0), &packets), [Some(0), Some(100), Some(333)]);
        assert_eq!(
            dues(Rate::Packets(1e6), &packets),
            [Some(0), Some(1_000), Some(2_000)]
        );
        // 125 bytes are 1,000 bits: a microsecond at a gigabit a second.
        assert_eq!(
            dues(Rate::Bits(1e9), &packets),
            [Some(0), Some(1_000), Some(3_000)]
        );
        assert_eq!(dues(Rate::Top, &packets), [None; 3]);
    }

    #[test]
    fn a_second_pass_goes_on_where_the_first_ended_and_time_never_runs_back() {
        let mut schedule = Schedule::new(Rate::Times(1.0));
        assert_eq!(schedule.due(Nanos(100), 60), Some(0));
        assert_eq!(schedule.due(Nanos(400), 60), Some(300));
        assert_eq!(schedule.due(Nanos(350), 60), Some(300));
        schedule.rewind();
        assert_eq!(schedule.due(Nanos(100), 60), Some(300));
        assert_eq!(schedule.due(Nanos(200), 60), Some(400));
    }
}
