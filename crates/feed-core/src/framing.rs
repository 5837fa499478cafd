//! How a venue numbers and packs its messages: the part of delivery that [`crate::Arbiter`] does not see.

use crate::{MissingRange, SessionId};
use tickwire_market::SeqNo;
use tickwire_wire_core::Malformed;

/// A checked datagram.
#[derive(Clone, Debug)]
pub struct Frame<M> {
    /// The stream its numbers belong to.
    pub session: SessionId,
    /// Number of its first message, or the next to expect where there is none.
    pub first: SeqNo,
    /// What it carries.
    pub content: Content<M>,
    /// Bytes after the last message; ignored, counted.
    pub trailing: u16,
}

/// What a datagram carries.
#[derive(Clone, Debug)]
pub enum Content<M> {
    /// `count` messages, at least one.
    Messages {
        /// How many numbers it uses.
        count: u32,
        /// The messages, in order.
        messages: M,
    },
    /// Nothing: the venue is alive.
    Heartbeat,
    /// Nothing, and nothing will follow.
    EndOfSession,
}

/// A venue's announcement that its numbers begin anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restart {
    /// What tells it from other ones, as the venue has it.
    pub id: u64,
    /// When it was sent, in the venue's unit.
    pub sent: u64,
}

/// A venue's datagrams. One implementation per framing, without state.
pub trait Framing {
    /// Walks the messages of a checked datagram.
    type Messages<'a>: Iterator<Item = &'a [u8]> + Clone;

    /// How many bytes at the start of a datagram may differ between the lines, or say what is compared
    /// anyway: number and count of messages.
    const HEADER: usize;

    /// Checks a datagram once and whole: an error means that none of it may be used.
    fn parse(datagram: &[u8]) -> Result<Frame<Self::Messages<'_>>, Malformed>;

    /// The number that `first` on the wire stands for, where the wire's numbers are too short to be counted
    /// on; `next` is the one expected. Most venues' numbers stand for themselves.
    #[inline(always)]
    fn full_number(first: SeqNo, next: SeqNo) -> SeqNo {
        let _ = next;
        first
    }

    /// Writes the datagram that asks for `range`; its length, `None` if `buffer` is too small.
    fn request(range: MissingRange, buffer: &mut [u8]) -> Option<usize>;

    /// Writes a datagram that holds one message which came by another way; its length, `None` if `buffer` is
    /// too small.
    fn wrap(session: SessionId, seq: SeqNo, message: &[u8], buffer: &mut [u8]) -> Option<usize>;

    /// Whether a datagram of line A or B says that numbers begin anew with its own, and is not the other
    /// line's copy of the `last` one that did. Default: no; venues that name their sessions need none.
    fn restart(datagram: &[u8], last: Option<Restart>) -> Option<Restart> {
        let _ = (datagram, last);
        None
    }

    /// Whether a datagram was sent before a restart (on the slower line): its numbers are the old ones.
    fn precedes(datagram: &[u8], restart: Restart) -> bool {
        let _ = (datagram, restart);
        false
    }
}
