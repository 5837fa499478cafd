//! Who told of messages that have not come, and what speaks against it: a forged packet with a number ahead
//! makes a gap that nobody can fill, and the venue's own packets show that it was none.
//!
//! ```text
//!   line A:  ... 98 99 | 5000 (the claim: 100 to 4999 exist) | 100 101 102 ... 107  → refuted: line A goes on as if nothing had been
//!   line A:  ... 98 99 |  110 (110 exists)                   | 111 112 ...           → a gap like any other
//! ```
//! While the other line is heard, nobody passes over messages as lost on the word of a single packet: until
//! the claim is supported by as much as would refute it, they are waited for.
//!
//! A venue numbers its messages in order on each line: the line that told of message 5000 does not send 100
//! to 107 afterwards, but for packets that the network has put into another order. The slower line may well
//! send them, for as long as it is slower.

use crate::Line;
use tickwire_market::Nanos;

/// So many packets that follow each other on the line of a claim, and lie before it, refute it: no network
/// overtakes by more.
const REFUTING_PACKETS: u32 = 8;
/// Two of them do when the claim is this old (an idle venue sends heartbeats only).
const REFUTING_NS: u64 = 100 * Nanos::MILLI;

/// The oldest open claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// The first message of the packet that told.
    pub(crate) first: u64,
    /// The number after the latest message known before.
    pub(crate) high: u64,
    /// On which line it came, and what that had brought before.
    pub(crate) line: Line,
    pub(crate) before: u64,
    since: Nanos,
    /// When it was last told that the message, or a later one, exists.
    supported: Nanos,
    supports: u32,
    /// The other line was heard when it was made.
    has_witness: bool,
    /// When to look at it again, if it is waited for.
    pub(crate) look: Nanos,
    /// Packets of the line in a row before the claim: the first message, the number after the last one, how
    /// many.
    pub(crate) said_first: u64,
    pub(crate) said: u64,
    packets: u32,
}

impl Claim {
    pub(crate) fn new(
        now: Nanos,
        line: Line,
        first: u64,
        (high, before): (u64, u64),
        has_witness: bool,
    ) -> Claim {
        Claim {
            first,
            high,
            line,
            before,
            since: now,
            supported: now,
            supports: 0,
            has_witness,
            look: now.after(REFUTING_NS),
            said_first: 0,
            said: 0,
            packets: 0,
        }
    }

    /// A packet tells of the claimed message or a later one; whether that is the other line's word.
    pub(crate) fn supports(&mut self, now: Nanos, line: Line) -> bool {
        self.supported = now;
        self.supports = self.supports.saturating_add(1);
        line != self.line
    }

    /// Whether as much speaks for it as would have to speak against it.
    pub(crate) fn is_settled(&self) -> bool {
        let age = self.supported.since(self.since);
        !self.has_witness || self.supports >= REFUTING_PACKETS || self.supports >= 2 && age >= REFUTING_NS
    }

    /// It is looked at again after some time.
    pub(crate) fn put_off(&mut self, now: Nanos) {
        self.look = now.after(REFUTING_NS);
    }

    /// A packet from before the claim. Whether it goes on where its line was before it made the claim.
    pub(crate) fn continues(&mut self, now: Nanos, line: Line, first: u64, end: u64) -> bool {
        if line != self.line || first < self.before || now < self.since {
            return false;
        }
        if self.packets == 0 || first != self.said {
            (self.said_first, self.packets) = (first, 0);
        }
        self.said = end;
        self.packets += 1;
        true
    }

    /// Whether a packet from before the claim, on `line`, was the one too many: its own line goes on without
    /// it, or only the other line is there, for longer than one can be behind the other.
    pub(crate) fn is_refuted(&self, now: Nanos, line: Line, patience_ns: u64) -> bool {
        let age = now.since(self.since);
        match line == self.line {
            true => self.packets >= REFUTING_PACKETS || self.packets >= 2 && age >= REFUTING_NS,
            false => now.since(self.supported) >= patience_ns,
        }
    }
}
