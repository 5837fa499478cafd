//! How many messages come when: the mean, the busiest second, the busiest millisecond.

use tickwire_market::Nanos;

/// The busiest stretch of a length.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Peak {
    /// Messages in it.
    pub messages: u64,
    /// When it begins: a whole second, or millisecond, of the recording's clock.
    pub at: Nanos,
}

/// Counts one stretch after the other. Stretches are cut at whole multiples of their length.
#[derive(Clone, Copy, Default, Debug)]
struct Stretch {
    begin: u64,
    messages: u64,
    peak: Peak,
}

impl Stretch {
    fn note(&mut self, now: Nanos, length: u64, messages: u64) {
        let begin = now.0 - now.0 % length;
        if begin != self.begin {
            self.close();
            (self.begin, self.messages) = (begin, 0);
        }
        self.messages += messages;
    }

    fn close(&mut self) {
        if self.messages > self.peak.messages {
            self.peak = Peak {
                messages: self.messages,
                at: Nanos(self.begin),
            };
        }
    }
}

/// Messages in time.
#[derive(Clone, Copy, Default, Debug)]
pub struct Rates {
    /// Messages, each once.
    pub messages: u64,
    /// Packets, or records of files without packets.
    pub packets: u64,
    /// Bytes of packets, both lines.
    pub bytes: u64,
    /// The first and the last time; `None` without a packet that has one.
    pub span: Option<[Nanos; 2]>,
    second: Stretch,
    millisecond: Stretch,
}

impl Rates {
    pub(crate) fn note(&mut self, now: Nanos, bytes: usize, messages: u64) {
        self.packets += 1;
        self.bytes += bytes as u64;
        self.messages += messages;
        if now == Nanos::ZERO {
            return;
        }
        let span = self.span.get_or_insert([now, now]);
        *span = [span[0].min(now), span[1].max(now)];
        self.second.note(now, Nanos::SECOND, messages);
        self.millisecond.note(now, Nanos::MILLI, messages);
    }

    pub(crate) fn end(mut self) -> Rates {
        self.second.close();
        self.millisecond.close();
        self
    }

    /// Nanoseconds from the first to the last.
    pub fn length_ns(&self) -> u64 {
        self.span.map_or(0, |[first, last]| last.since(first))
    }

    /// Messages a second, over the whole span; `None` where the span is empty.
    pub fn mean(&self) -> Option<f64> {
        let seconds = self.length_ns() as f64 / Nanos::SECOND as f64;
        (seconds > 0.0).then(|| self.messages as f64 / seconds)
    }

    /// The busiest second.
    pub fn peak_second(&self) -> Peak {
        self.second.peak
    }

    /// The busiest millisecond.
    pub fn peak_millisecond(&self) -> Peak {
        self.millisecond.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_second_and_millisecond_are_found_and_a_mean_needs_a_span() {
        let mut rates = Rates::default();
        assert_eq!(rates.mean(), None);
        let second = Nanos::SECOND;
        for (at, messages) in [
            (second, 3),
            (second + 1, 4),
            (second + 2 * Nanos::MILLI, 6),
            (2 * second, 10),
            (4 * second, 1),
        ] {
            rates.note(Nanos(at), 100, messages);
        }
        let rates = rates.end();
        assert_eq!((rates.messages, rates.packets, rates.bytes), (24, 5, 500));
        assert_eq!(
            rates.peak_second(),
            Peak {
                messages: 13,
                at: Nanos(second)
            }
        );
        assert_eq!(
            rates.peak_millisecond(),
            Peak {
                messages: 10,
                at: Nanos(2 * second)
            }
        );
        assert_eq!(rates.mean(), Some(8.0));
    }

    #[test]
    fn a_packet_without_a_time_counts_and_has_no_part_in_the_span() {
        let mut rates = Rates::default();
        rates.note(Nanos::ZERO, 10, 2);
        assert_eq!((rates.end().span, rates.messages), (None, 2));
    }
}
