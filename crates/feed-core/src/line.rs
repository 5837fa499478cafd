//! Where a packet came from and which session it belongs to.

use tickwire_market::Counter;

/// The way a packet came in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Line {
    /// The first multicast line.
    A = 0,
    /// The second multicast line: the same messages, possibly packed differently.
    B = 1,
    /// The retransmission server, or a retransmission multicast group.
    Retransmit = 2,
}

impl Line {
    /// How many lines there are.
    pub const COUNT: usize = 3;

    /// The other live line; of the retransmission server the first one.
    pub(crate) const fn other(self) -> Line {
        match self {
            Line::A => Line::B,
            Line::B | Line::Retransmit => Line::A,
        }
    }

    /// What counts its packets.
    #[inline]
    pub const fn counter(self) -> Counter {
        match self {
            Line::A => Counter::PacketsA,
            Line::B => Counter::PacketsB,
            Line::Retransmit => Counter::PacketsRetransmit,
        }
    }
}

/// The name of a stream of sequence numbers; numbers of two sessions are never compared. MoldUDP64 calls it
/// Session; venues without one use [`SessionId::NONE`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct SessionId(pub [u8; 10]);

impl SessionId {
    /// The session of venues that do not name theirs.
    pub const NONE: SessionId = SessionId([0; 10]);
}
