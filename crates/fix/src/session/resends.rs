//! Gaps in what the peer sent, and what the peer asks for again.

use super::{Core, EVENTS_PER_MESSAGE, Event, Gap, Resend, Status, Writer, put_again};
use crate::encode::Encoder;
use crate::store::NotKept;
use crate::store::Store;
use crate::tag;
use tickwire_market::Counter;
use tickwire_market::SeqNo;

impl<S: Store> Core<S> {
    /// A gap has been filled, but of the messages after it some found no room: asks for them.
    #[inline]
    pub(super) fn request_what_was_dropped(&mut self) {
        if self.gaps.gap.is_none() && self.gaps.seen_max >= self.store.next_in() {
            let upto = self.gaps.seen_max;
            self.seldom().request_resend(upto, 1);
        }
    }
}

impl Core<dyn Store + '_> {
    /// Asks for everything from the next expected message on; what arrives up to `upto` is the answer.
    pub(super) fn request_resend(&mut self, upto: u64, attempts: u8) {
        let begin = self.store.next_in();
        let (end, asked_upto) = match self.terms.config.resend_chunk {
            0 => (self.terms.config.version.resend_to_end(), upto),
            chunk => {
                let end = upto.min(begin + (chunk - 1).min(u64::MAX / 4));
                (end, end)
            }
        };
        self.gaps.gap = Some(Gap {
            upto,
            asked_upto,
            since: self.clock.now,
            attempts,
        });
        self.counters.bump(Counter::FixResends);
        self.send_admin(b"2", |e| {
            e.unsigned(tag::BEGIN_SEQ_NO, begin);
            e.unsigned(tag::END_SEQ_NO, end);
        });
    }

    /// Queues the next message of a resend: a stored one again, or one gap fill for a run of others.
    pub(super) fn resend_next(&mut self) {
        let Some(resend) = self
            .resending
            .resend
            .filter(|_| matches!(self.status, Status::Active | Status::LogoutSent))
        else {
            return;
        };
        if let Some(pace) = &mut self.pace.pace_out
            && !pace.admits(self.clock.now)
        {
            return;
        }
        let mut next = resend.next;
        if self.store.get(next).is_none() {
            let kept = self.store.next_kept(next);
            next = kept.unwrap_or(u64::MAX).min(resend.last + 1);
        }
        let verdict = match self.resending.resend_verdict {
            _ if !self.terms.config.asks_about_resends => Some(true),
            Some((seq, may)) if seq == next => Some(may),
            _ => None,
        };
        let queued = if next > resend.next {
            self.tell_not_kept(resend.next, next);
            self.queue_gap_fill(resend.next, next)
        } else if verdict == Some(false) {
            self.resending.resend_verdict = None;
            next += 1;
            self.queue_gap_fill(resend.next, next)
        } else if verdict.is_none() {
            return;
        } else {
            self.resending.resend_verdict = None;
            next += 1;
            if let Some(pace) = &mut self.pace.pace_out {
                pace.take(self.clock.now);
            }
            self.queue_again(resend.next)
        };
        if queued {
            self.silence.last_sent = self.clock.now;
        }
        self.resending.resend = (next <= resend.last).then_some(Resend {
            next,
            last: resend.last,
        });
    }

    /// Says which of the numbers that are filled were of messages that are gone; what finds no room is told
    /// with the next.
    pub(super) fn tell_not_kept(&mut self, from: u64, to: u64) {
        let now = self.store.not_kept(from, to);
        let both = [self.resending.not_kept.take(), now].into_iter().flatten();
        let Some(gone) = both.reduce(NotKept::and) else {
            return;
        };
        if self.telling.events.room() <= EVENTS_PER_MESSAGE {
            self.resending.not_kept = Some(gone);
            return;
        }
        self.telling.events.push(Event::NotKept {
            first: SeqNo(gone.first),
            last: SeqNo(gone.last),
            count: gone.count,
        });
    }

    pub(super) fn queue_gap_fill(&mut self, seq: u64, next: u64) -> bool {
        let wall = self.wall();
        let Writer {
            scratch,
            version,
            stamp,
            parties,
            processed,
        } = &mut self.writer;
        let mut e = Encoder::new(scratch, *version);
        e.text(tag::MSG_TYPE, b"4");
        e.unsigned(tag::MSG_SEQ_NUM, seq);
        e.char(tag::POSS_DUP_FLAG, b'Y');
        parties.put(&mut e, stamp, wall);
        e.timestamp(tag::ORIG_SENDING_TIME, stamp, wall);
        if let Some(processed) = processed {
            e.unsigned(tag::LAST_MSG_SEQ_NUM_PROCESSED, *processed);
        }
        e.unsigned(tag::NEW_SEQ_NO, next);
        e.char(tag::GAP_FILL_FLAG, b'Y');
        e.finish().is_ok_and(|message| self.out.push(message))
    }

    /// The stored message with PossDupFlag, a new SendingTime and the old one as OrigSendingTime.
    pub(super) fn queue_again(&mut self, seq: u64) -> bool {
        let wall = self.wall();
        let Some(stored) = self.store.get(seq) else {
            return false;
        };
        let Writer {
            scratch,
            version,
            stamp,
            processed,
            ..
        } = &mut self.writer;
        let mut e = Encoder::new(scratch, *version);
        let Some(body) = put_again(&mut e, stored, stamp.format(wall), *processed) else {
            return false;
        };
        e.raw(body);
        e.finish().is_ok_and(|message| self.out.push(message))
    }
}
