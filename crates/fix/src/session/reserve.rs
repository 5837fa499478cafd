//! Messages whose bytes others make: a number is reserved, the message made with it, and committed. What is
//! prepared for it ([`crate::OrderTemplate`], [`crate::MassQuoteTemplate`]) is no business of the session.

use tickwire_market::{Nanos, SeqNo};

use crate::encode::Encoder;
use crate::store::Store;
use crate::tag;
use crate::time::Precision;
use crate::version::Version;

use super::{Core, SendError, Session};

/// What a peer gets that asks for a message again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Again {
    /// The message: it is kept, where the configuration keeps messages.
    Resend,
    /// A gap fill. For what must not come to life later than now: quotes, orders that live for a moment.
    GapFill,
}

/// The next number of a session, until it is committed or dropped: dropped, it is as if nothing had been.
///
/// ```text
///  reserve ─► seq, time ─► the message's bytes ─► commit ─► the caller transmits them
/// ```
#[derive(Debug)]
pub struct Reservation<'s, S: Store> {
    core: &'s mut Core<S>,
    now: Nanos,
    seq: u64,
    /// Committed, it is dropped.
    is_rehearsal: bool,
}

impl<S: Store> Session<S> {
    /// The number and the time for a message that the caller transmits himself, at once.
    ///
    /// # Errors
    /// Not logged on, other bytes wait to be transmitted, or the message would be beyond the rate.
    #[inline]
    pub fn reserve(&mut self, now: Nanos) -> Result<Reservation<'_, S>, SendError> {
        self.reserve_as(now, false)
    }

    /// The same, or a number that is dropped when it is committed, and was never counted: by the same code.
    #[inline(always)]
    pub(crate) fn reserve_as(
        &mut self,
        now: Nanos,
        is_rehearsal: bool,
    ) -> Result<Reservation<'_, S>, SendError> {
        let seq = self.core.prepare_to_send(now, is_rehearsal)?;
        Ok(Reservation {
            core: &mut self.core,
            now,
            seq,
            is_rehearsal,
        })
    }

    /// Where the code begins that [`Reservation::commit`] goes through unless it is rehearsed, some 500 bytes
    /// on x86-64: for whoever fetches what a rehearsal leaves out.
    pub fn committing() -> *const () {
        Core::<S>::commit as *const ()
    }

    /// What stands in front of the fields of every message that is prepared for this session; `None` if every
    /// message carries LastMsgSeqNumProcessed, whose width changes.
    pub fn prepared_header(&self) -> Option<PreparedHeader<'_, S>> {
        self.core
            .writer
            .processed
            .is_none()
            .then_some(PreparedHeader { core: &self.core })
    }

    /// Writes a message for somebody else to transmit, at a moment that nobody knows, into `into`: its bytes
    /// and its number. The number is used from now on, and the message counts as sent once
    /// [`Session::held_left`] says so. Nothing else is to be sent before that, or before
    /// [`Session::withdraw`]; what is sent all the same leaves out the number, which the peer asks for and
    /// gets as a gap fill. It is kept for no resend; its SendingTime is that of this moment.
    ///
    /// # Errors
    /// As [`Session::reserve`]; a message that is longer than `into`, or that cannot be written.
    pub fn hold<'b>(
        &mut self,
        now: Nanos,
        msg_type: &[u8],
        fields: impl FnOnce(&mut Encoder<'_>, &mut crate::Stamp),
        into: &'b mut [u8],
    ) -> Result<(&'b [u8], SeqNo), SendError> {
        let mut reserved = self.reserve(now)?;
        let message = reserved.encoded(msg_type, fields)?;
        let into = into.get_mut(..message.len()).ok_or(SendError::NotEncodable)?;
        into.copy_from_slice(message);
        let seq = reserved.seq;
        reserved.core.keep(seq, into, Again::GapFill)?;
        Ok((into, SeqNo(seq)))
    }

    /// A message that was held ([`Session::hold`]) has been transmitted.
    pub fn held_left(&mut self, now: Nanos, bytes: usize) {
        self.core.count_sent(now, bytes);
    }

    /// A message that was held was not transmitted and will not be: the next one has its number. `false` if
    /// others have been sent since: the number is left out then.
    pub fn withdraw(&mut self, held: SeqNo) -> bool {
        let is_last = self.core.store.next_out() == held.0 + 1;
        if is_last {
            self.core.store.set_next_out(held.0);
        }
        is_last
    }

    /// The number and the time that a message would have if it were sent now: nothing is reserved.
    #[inline]
    pub fn next_to_send(&self, now: Nanos) -> (SeqNo, Nanos) {
        (SeqNo(self.core.store.next_out()), self.core.wall_of(now))
    }
}

impl<S: Store> Core<S> {
    /// A reserved message has its number, and is with the caller.
    // One copy of the code, which rehearsals fetch.
    #[inline(never)]
    fn commit(&mut self, now: Nanos, seq: u64, message: &[u8], again: Again) -> Result<(), SendError> {
        self.keep(seq, message, again)?;
        self.count_sent(now, message.len());
        Ok(())
    }
}

impl<S: Store> Reservation<'_, S> {
    /// MsgSeqNum (34).
    #[inline]
    pub fn seq(&self) -> SeqNo {
        SeqNo(self.seq)
    }

    /// SendingTime (52), UTC.
    #[inline]
    pub fn time(&self) -> Nanos {
        self.core.wall_of(self.now)
    }

    /// The message, a whole one with this number, is the caller's to transmit now.
    ///
    /// # Errors
    /// The store did not take it; the session ends, unless the message alone is wrong.
    #[inline]
    pub fn commit(self, message: &[u8], again: Again) -> Result<(), SendError> {
        match self.is_rehearsal {
            true => Ok(()),
            false => self.core.commit(self.now, self.seq, message, again),
        }
    }

    /// The message as the general encoder writes it, for what a template has no room for.
    #[cold]
    pub(crate) fn encoded(
        &mut self,
        msg_type: &[u8],
        fields: impl FnOnce(&mut Encoder<'_>, &mut crate::Stamp),
    ) -> Result<&[u8], SendError> {
        let wall = self.core.wall_of(self.now);
        let mut begun = self.core.writer.header(msg_type, self.seq, wall);
        fields(&mut begun.0, begun.1);
        begun.0.finish().map_err(|_| SendError::NotEncodable)
    }
}

/// See [`Session::prepared_header`].
#[derive(Debug)]
pub struct PreparedHeader<'s, S: Store> {
    core: &'s Core<S>,
}

impl<S: Store> PreparedHeader<'_, S> {
    /// The version spoken.
    pub fn version(&self) -> Version {
        self.core.terms.config.version
    }

    /// Of SendingTime.
    pub fn precision(&self) -> Precision {
        self.core.terms.config.precision
    }

    /// Writes MsgType and the header's fields, with eight digits of MsgSeqNum (zeros) and this SendingTime:
    /// both are written over when a message is sent.
    pub fn put(&self, e: &mut Encoder<'_>, msg_type: &[u8], time: &[u8]) {
        e.text(tag::MSG_TYPE, msg_type);
        e.text(tag::MSG_SEQ_NUM, b"00000000");
        let parties = &self.core.writer.parties;
        parties.put_ours(e);
        e.text(tag::SENDING_TIME, time);
        parties.put_theirs(e);
    }
}
