//! What delegated send has counted.

use std::fmt;

use super::ArmedCounts;

/// Why a message was sent by the kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum Reason {
    /// The connection is not established, or the kernel does not say what it is.
    State,
    /// What was written before waits to be sent.
    Unsent,
    /// It is longer than all that may leave at once.
    Long,
    /// Congestion control does not allow so many segments on their way.
    CongestionWindow,
    /// The peer has no room for it.
    PeerWindow,
    /// A loss is being mended.
    Loss,
    /// The next hop's address is not known.
    Neighbour,
    /// Every frame of the ring is on its way.
    Ring,
    /// The kernel's send buffer could not take it.
    Buffer,
    /// The guard's program is at the interface no longer.
    Guard,
    /// Somebody else sends: see [`super::Delegate::lend`].
    Lent,
}

impl Reason {
    /// All of them, in the order of [`Counts::ordinary`].
    pub const ALL: [Reason; 11] = [
        Reason::State,
        Reason::Unsent,
        Reason::Long,
        Reason::CongestionWindow,
        Reason::PeerWindow,
        Reason::Loss,
        Reason::Neighbour,
        Reason::Ring,
        Reason::Buffer,
        Reason::Guard,
        Reason::Lent,
    ];

    /// What it is called in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::State => "state of the connection",
            Reason::Unsent => "unsent bytes before it",
            Reason::Long => "length",
            Reason::CongestionWindow => "congestion window",
            Reason::PeerWindow => "peer's window",
            Reason::Loss => "a loss being mended",
            Reason::Neighbour => "next hop not resolved",
            Reason::Ring => "ring full",
            Reason::Buffer => "send buffer",
            Reason::Guard => "guard gone",
            Reason::Lent => "lent",
        }
    }
}

/// Since the connection was delegated.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Messages that left past the kernel.
    pub delegated: u64,
    /// Segments that they made.
    pub segments: u64,
    /// Trains of them that left as one frame, which the kernel or the card cut.
    pub trains: u64,
    /// Bookings; one books all that left before it.
    pub booked: u64,
    /// Bookings that the kernel did not take at once.
    pub booked_again: u64,
    /// Bookings that it did not take at all: the same bytes were written.
    pub written_twice: u64,
    /// Trains that the interface did not take at once.
    pub not_started: u64,
    /// Messages that the kernel sent, by [`Reason`].
    pub ordinary: [u64; Reason::ALL.len()],
    /// Segments of the peer that came before the booking and were held back.
    pub held: u64,
    /// Of them, those that the kernel was given after it.
    pub injected: u64,
    /// Those that it did not take; the peer sends them again.
    pub not_injected: u64,
    /// Early ones that there was no room for; the peer sends them again.
    pub no_room: u64,
    /// Early ones that the program let go itself, as the booking was done meanwhile.
    pub let_go: u64,
    /// Segments that the kernel has sent again, its own included.
    pub retransmissions: u64,
    /// Orders that the program was to send.
    pub pre_armed: ArmedCounts,
}

impl Counts {
    /// Messages that the kernel sent, whatever the reason.
    pub fn by_kernel(&self) -> u64 {
        self.ordinary.iter().sum()
    }

    /// Those of one connection and of another.
    pub fn merge(&mut self, other: &Counts) {
        self.pre_armed.merge(&other.pre_armed);
        for (to, from) in self.ordinary.iter_mut().zip(other.ordinary) {
            *to += from;
        }
        for (to, from) in [
            (&mut self.delegated, other.delegated),
            (&mut self.segments, other.segments),
            (&mut self.trains, other.trains),
            (&mut self.booked, other.booked),
            (&mut self.booked_again, other.booked_again),
            (&mut self.written_twice, other.written_twice),
            (&mut self.not_started, other.not_started),
            (&mut self.held, other.held),
            (&mut self.injected, other.injected),
            (&mut self.not_injected, other.not_injected),
            (&mut self.no_room, other.no_room),
            (&mut self.let_go, other.let_go),
            (&mut self.retransmissions, other.retransmissions),
        ] {
            *to += from;
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages delegated in {} segments and {} bookings, {} by the kernel",
            self.delegated,
            self.segments,
            self.booked,
            self.by_kernel()
        )?;
        let reasons = Reason::ALL
            .iter()
            .zip(self.ordinary)
            .filter(|(_, count)| *count > 0);
        for (at, (reason, count)) in reasons.enumerate() {
            write!(
                f,
                "{}{count} {}",
                if at == 0 { " (" } else { ", " },
                reason.name()
            )?;
        }
        if self.by_kernel() > 0 {
            f.write_str(")")?;
        }
        write!(
            f,
            "; {} early answers held back, {} given to the kernel",
            self.held, self.injected
        )?;
        for (count, what) in [
            (self.trains, "trains as one frame"),
            (self.booked_again, "bookings repeated"),
            (self.written_twice, "written as well"),
            (self.not_started, "trains not started at once"),
            (self.not_injected, "answers not taken by the kernel"),
            (self.no_room, "early answers without room"),
            (self.retransmissions, "segments sent again"),
        ] {
            if count > 0 {
                write!(f, "; {count} {what}")?;
            }
        }
        let armed = &self.pre_armed;
        if armed.armed + armed.refused > 0 {
            write!(f, "; {} orders pre-armed, {} fired", armed.armed, armed.fired)?;
            for (count, what) in [
                (armed.taken_back, "taken back"),
                (armed.gap, "ended by a gap"),
                (armed.no_room, "without room in the frame"),
                (armed.refused, "not armed"),
            ] {
                if count > 0 {
                    write!(f, ", {count} {what}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_stand_where_their_counts_do_and_are_said() {
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at, "{}", reason.name());
        }
        let mut counts = Counts {
            delegated: 7,
            segments: 9,
            booked: 6,
            held: 2,
            injected: 2,
            ..Counts::default()
        };
        assert_eq!(
            counts.to_string(),
            "7 messages delegated in 9 segments and 6 bookings, 0 by the kernel; 2 early answers held back, 2 given to the kernel"
        );
        counts.ordinary[Reason::PeerWindow as usize] = 3;
        counts.ordinary[Reason::Loss as usize] = 1;
        let mut twice = counts;
        twice.merge(&counts);
        assert!(
            twice
                .to_string()
                .contains("8 by the kernel (6 peer's window, 2 a loss being mended)")
        );
    }
}
