//! A connection that is lent: somebody else, a core in hardware, puts its next segments on the wire, by
//! himself and at a moment that nobody knows, and says of each what left. It is booked then as what leaves
//! from here is. While a connection is lent, nothing is sent from here.

use std::io;

use tickwire_kernel::segment::{Ends, Numbers};
use tickwire_runtime::tcp::TcpStream;

use super::{Delegate, Reason, UNBOOKED_BYTES_MAX};

/// What whoever borrows a connection has to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loan {
    /// Between whom.
    pub ends: Ends,
    /// Of the next segment: sequence number, acknowledgement, window. The timestamps are of now.
    pub numbers: Numbers,
    /// Whether segments of this connection carry timestamps.
    pub has_stamps: bool,
    /// Segments that may leave until the connection is lent anew.
    pub segments: usize,
    /// Bytes that may.
    pub bytes: usize,
    /// Bytes of one segment at most.
    pub segment_bytes: usize,
}

impl Delegate {
    /// Lends the connection until [`Delegate::take_back`]. What acknowledges the borrower's segments before
    /// they are booked is held back from here on.
    ///
    /// # Errors
    /// Why it cannot be lent now, after [`Delegate::settle`]: the connection is as it was.
    pub fn lend(&mut self, stream: &mut TcpStream) -> Result<Loan, Reason> {
        let is_settled = self.disarm(stream).is_ok() && self.settle(stream).is_ok();
        if !is_settled {
            return Err(Reason::State);
        }
        self.look(stream);
        if let Some(reason) = self.refusal(stream, 1) {
            return Err(reason);
        }
        let seq = self.next_seq(stream);
        let loan = Loan {
            ends: self.ends,
            numbers: self.numbers(stream, seq),
            has_stamps: self.stamps.is_some(),
            segments: self.room.segments,
            bytes: self.room.bytes,
            segment_bytes: self.room.segment_bytes,
        };
        self.is_lent = true;
        self.room.refused = Some(Reason::Lent);
        self.watched.begin(seq);
        Ok(loan)
    }

    /// The borrower has sent a segment with these bytes, the next ones of the connection. It is booked with
    /// the next [`Delegate::settle`] or [`Delegate::tend`], which is to follow when the borrower says of no
    /// other one.
    ///
    /// # Errors
    /// The connection is not lent, or as [`Delegate::settle`].
    pub fn lent_has_sent(&mut self, stream: &mut TcpStream, payload: &[u8]) -> io::Result<()> {
        if !self.is_lent {
            return Err(io::Error::other("a connection that is not lent was sent by"));
        }
        if payload.len() > UNBOOKED_BYTES_MAX - self.unbooked.len() {
            self.settle(stream)?;
        }
        self.unbooked.extend_from_slice(payload);
        self.unbooked_segments += 1;
        self.counts.segments += 1;
        self.counts.delegated += 1;
        Ok(())
    }

    /// Whether the borrower may go on: `None`, or why not. Asks the kernel.
    pub fn trouble_of_loan(&mut self, stream: &TcpStream) -> Option<Reason> {
        self.look(stream);
        self.room.refused.filter(|reason| *reason != Reason::Lent)
    }

    /// The loan is over, and the borrower sends no more: what he sent is booked, and this end sends again.
    ///
    /// # Errors
    /// As [`Delegate::settle`].
    pub fn take_back(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let settled = self.settle(stream);
        if self.is_lent {
            self.is_lent = false;
            self.watched.end();
            self.look(stream);
        }
        settled
    }

    /// Whether it is lent.
    #[inline]
    pub fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// The sequence number of the next byte that is not booked.
    pub(super) fn next_seq(&self, stream: &TcpStream) -> u32 {
        self.numbers.send.wrapping_add(stream.taken() as u32)
    }
}
