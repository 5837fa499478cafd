//! How messages leave a session: their numbers, what is kept of them, rejects.

use super::{Again, Core, DisconnectReason, SendError, Status, put_reverse_route};
use crate::decode::Message;
use crate::encode::Encoder;
use crate::reject::Fault;
use crate::store::Store;
use crate::store::StoreFailed;
use crate::tag;
use crate::text::Reason;
use crate::time::Stamp;
use core::fmt::Write;
use tickwire_market::Counter;
use tickwire_market::Nanos;
use tickwire_market::SeqNo;

impl Core<dyn Store + '_> {
    /// Queues a session message. If there is no room the session ends: it would leave a hole no resend could
    /// explain.
    pub(super) fn send_admin(&mut self, msg_type: &[u8], body: impl FnOnce(&mut Encoder<'_>)) {
        if self.status == Status::Closing {
            return;
        }
        let seq = self.store.next_out();
        let wall = self.wall();
        let mut begun = self.writer.header(msg_type, seq, wall);
        body(&mut begun.0);
        let Ok(message) = begun.0.finish() else { return };
        if self.out.push(message) {
            self.store.set_next_out(seq + 1);
            self.silence.last_sent = self.clock.now;
        } else {
            self.disconnect(DisconnectReason::PeerTooSlow, Reason::EMPTY);
        }
    }

    pub(super) fn send_logout(&mut self, text: &Reason) {
        self.send_admin(b"5", |e| e.text_if(tag::TEXT, text.as_bytes()));
    }

    pub(super) fn send_reject(&mut self, m: &Message<'_>, seq: u64, fault: Fault) {
        self.counters.bump(Counter::FixRejects);
        let version = self.terms.config.version;
        self.send_admin(b"3", |e| {
            put_reverse_route(e, m, version);
            e.unsigned(tag::REF_SEQ_NUM, seq);
            let text = fault.reason.text().as_bytes();
            if !version.rejects_in_fields() {
                let mut long = Reason::lossy(text);
                if let Some(tag) = fault.tag {
                    let _ = write!(long, " ({tag})");
                }
                return e.text(tag::TEXT, long.as_bytes());
            }
            e.text(tag::TEXT, text);
            if let Some(tag) = fault.tag {
                e.signed(tag::REF_TAG_ID, tag.into());
            }
            e.text_if(tag::REF_MSG_TYPE, m.msg_type());
            if fault.reason as u8 <= version.highest_reject_reason() {
                e.unsigned(tag::SESSION_REJECT_REASON, fault.reason as u64);
            }
        });
    }

    pub(super) fn logout_and_disconnect(&mut self, reason: DisconnectReason, text: &str) {
        let text = Reason::lossy(text.as_bytes());
        self.send_logout(&text);
        self.disconnect(reason, text);
    }
}

impl<S: Store> Core<S> {
    /// The number of a message that is transmitted at once, if it may be; of one that is rehearsed nothing is
    /// counted.
    #[inline]
    pub(super) fn prepare_to_send(&mut self, now: Nanos, is_rehearsal: bool) -> Result<u64, SendError> {
        if self.status != Status::Active {
            return Err(SendError::NotLoggedOn);
        }
        if !self.out.is_empty() {
            return Err(SendError::Backlog);
        }
        if !is_rehearsal {
            self.follow_clock(now);
            if self.pace.pace_out.is_some() {
                self.pace_at_once()?;
            }
        }
        Ok(self.store.next_out())
    }
}

impl<S: Store + ?Sized> Core<S> {
    pub(super) fn send_encoded(
        &mut self,
        msg_type: &[u8],
        again: Again,
        body: impl FnOnce(&mut Encoder<'_>, &mut Stamp),
    ) -> Result<SeqNo, SendError> {
        let (keeps, seq) = (self.keeps(again), self.store.next_out());
        let wall = self.wall();
        // Used where it is: to move the encoder is to read it in words of 16 bytes, which waits until the
        // parts that it was just written in are in the cache.
        let mut begun = self.writer.header(msg_type, seq, wall);
        body(&mut begun.0, begun.1);
        let bytes = begun.0.finish().map_err(|_| SendError::NotEncodable)?;
        if bytes.len() > self.peer_message_max {
            return Err(SendError::TooLong);
        }
        if bytes.len() > self.out.room() {
            return Err(SendError::Backlog);
        }
        match keeps {
            true => {
                if let Err(failed) = self.store.append(seq, bytes) {
                    return Err(self.store_failed(failed));
                }
            }
            false => self.store.set_next_out(seq + 1),
        }
        self.out.push(bytes);
        self.silence.last_sent = self.clock.now;
        self.counters.bump(Counter::FixMessagesOut);
        Ok(SeqNo(seq))
    }

    /// A message is with the caller, to be transmitted.
    #[inline]
    pub(super) fn count_sent(&mut self, now: Nanos, len: usize) {
        self.silence.last_sent = now;
        self.counters.bump(Counter::FixMessagesOut);
        self.counters.add(Counter::FixBytesOut, len as u64);
    }

    /// Whether a message is kept for resends.
    #[inline]
    pub(super) fn keeps(&self, again: Again) -> bool {
        again == Again::Resend && self.terms.config.keeps_messages
    }

    /// A message has its number, and is kept for resends or not.
    #[inline]
    pub(super) fn keep(&mut self, seq: u64, message: &[u8], again: Again) -> Result<(), SendError> {
        debug_assert_eq!(seq, self.store.next_out(), "a number is used once");
        let kept = match self.keeps(again) {
            true => self.store.append(seq, message),
            false => {
                self.store.set_next_out(seq + 1);
                Ok(())
            }
        };
        debug_assert!(
            kept.is_err() || self.store.next_out() == seq + 1,
            "no number is left out"
        );
        // It is transmitted as soon as the caller has it.
        let kept = kept.and_then(|()| self.store.settle());
        kept.map_err(|failed| self.store_failed(failed))
    }

    /// What was put into the store may be sent; the session ends otherwise.
    #[inline]
    pub(super) fn settle(&mut self) -> bool {
        let settled = self.store.settle();
        if let Err(failed) = settled {
            self.store_failed(failed);
        }
        settled.is_ok()
    }

    /// The store did not take a message: the session ends, unless it is the message alone that is wrong.
    #[cold]
    pub(super) fn store_failed(&mut self, failed: StoreFailed) -> SendError {
        if failed != StoreFailed::TooLong {
            self.out.clear();
            self.disconnect(
                DisconnectReason::StoreFailed,
                Reason::lossy(failed.text().as_bytes()),
            );
        }
        SendError::StoreFailed
    }
}
