//! What a session does with messages that come: checks, order, what is handed to the application.

use super::{
    Again, Asked, Checker, Core, DisconnectReason, Event, Outcome, Resend, SendError, Status, is_admin,
};
use crate::decode::Garbled;
use crate::decode::Message;
use crate::header::Header;
use crate::message::BusinessMessageReject;
use crate::message::business_reject_reason;
use crate::reject::Fault;
use crate::reject::SessionRejectReason;
use crate::store::Store;
use crate::tag;
use crate::text::CompId;
use crate::text::Id;
use crate::text::MsgType;
use crate::text::Reason;
use crate::text::is_same;
use core::fmt::Write;
use tickwire_market::Counter;
use tickwire_market::Nanos;
use tickwire_market::SeqNo;

impl<S: Store> Core<S> {
    pub(super) fn process(&mut self, m: &Message<'_>, held: bool) -> Outcome {
        self.silence.last_received = self.clock.now;
        self.silence.test_outstanding = false;
        let logged_on = matches!(self.status, Status::Active | Status::LogoutSent);
        let h = Header::decode(m);
        if !is_same(m.value(m.fields()[0]), self.terms.config.version.begin_string()) {
            return self.seldom().violation("Incorrect BeginString", logged_on);
        }
        let Some(seq) = h.seq else {
            return self
                .seldom()
                .violation("MsgSeqNum missing or not a number", logged_on);
        };
        if !logged_on && m.msg_type() != b"A" {
            return self.seldom().before_logon(m);
        }
        // What was kept behind a gap was checked when it came.
        if !held && let Some(fault) = self.check(m) {
            return self.seldom().reject_and_accept(m, seq, fault);
        }
        if let Some(fault) = h.fault {
            return self.seldom().reject_and_accept(m, seq, fault);
        }
        if !self.identities_match(m, &h) {
            return self.seldom().reject_and_end(
                m,
                seq,
                Fault::no_tag(SessionRejectReason::CompIdProblem),
                logged_on,
            );
        }
        if !held && !self.on_time(&h) {
            let late = Fault::no_tag(SessionRejectReason::SendingTimeAccuracy);
            return self.seldom().reject_and_end(m, seq, late, logged_on);
        }
        if !logged_on {
            return self.seldom().on_logon(m, &h, seq);
        }
        self.sequenced(m, &h, seq, held)
    }

    /// What the dictionary finds wrong with a message; nothing if there is none.
    #[inline]
    pub(super) fn check(&mut self, m: &Message<'_>) -> Option<Fault> {
        let Checker { rules, validator } = self.terms.checker.as_mut()?;
        if m.fault.is_some() {
            return m.fault;
        }
        validator
            .check(&rules.session, &rules.application, m, rules.validation)
            .err()
    }

    pub(super) fn identities_match(&self, m: &Message<'_>, h: &Header<'_>) -> bool {
        if !self.terms.config.checks_comp_ids && self.status != Status::LogonAwaited {
            return true;
        }
        let anybody = self.status == Status::LogonAwaited && self.terms.config.target.is_empty();
        let peer = if anybody {
            CompId::new(h.sender).is_some()
        } else {
            is_same(h.sender, self.writer.parties.peer().as_bytes())
        };
        peer && !h.sender.is_empty()
            && is_same(h.target, self.terms.config.sender.as_bytes())
            && (self.terms.config.subs.are_empty() || self.subs_match(m))
    }

    /// Sub and location ids, as far as they are configured.
    #[cold]
    pub(super) fn subs_match(&self, m: &Message<'_>) -> bool {
        let subs = &self.terms.config.subs;
        let expected = [
            (subs.target_sub, tag::SENDER_SUB_ID),
            (subs.target_location, tag::SENDER_LOCATION_ID),
            (subs.sender_sub, tag::TARGET_SUB_ID),
            (subs.sender_location, tag::TARGET_LOCATION_ID),
        ];
        let is_there = |tag, id: &CompId| m.find(tag).is_some_and(|f| m.value(f) == id.as_bytes());
        expected
            .iter()
            .all(|(id, tag)| id.is_empty() || is_there(*tag, id))
    }

    pub(super) fn on_time(&self, h: &Header<'_>) -> bool {
        let is_right = |wall: Nanos| wall.0.abs_diff(h.sending_time.0) <= self.terms.config.latency_max_ns;
        self.terms.config.latency_max_ns == 0 || is_right(self.wall()) || {
            let (before_ns, until) = self.clock.wall_before;
            self.clock.now < until && is_right(Nanos(self.clock.now.0.saturating_add_signed(before_ns)))
        }
    }

    pub(super) fn sequenced(&mut self, m: &Message<'_>, h: &Header<'_>, seq: u64, held: bool) -> Outcome {
        //= FIX 4.4 vol 2, "Sequence Reset": in reset mode MsgSeqNum is ignored.
        let gap_fill = || m.find(tag::GAP_FILL_FLAG).is_some_and(|f| m.value(f) == b"Y");
        if m.msg_type() == b"4" && !gap_fill() {
            return self.seldom().on_sequence_reset(m, seq);
        }
        //= FIX 4.4 vol 2, "Logon": ResetSeqNumFlag may be used while logged on.
        if m.msg_type() == b"A"
            && m.find(tag::RESET_SEQ_NUM_FLAG)
                .is_some_and(|f| m.value(f) == b"Y")
        {
            return self.seldom().on_logon(m, h, seq);
        }
        let expected = self.store.next_in();
        //= FIX 4.4 vol 2, "Logout": it is confirmed whatever its number; what is missing is asked for at the next logon.
        if m.msg_type() == b"5" && seq > expected {
            self.took(seq);
            self.seldom().on_logout(m);
            return Outcome::Done;
        }
        if m.msg_type() == b"5" && seq < expected && !h.poss_dup {
            return self.seldom().on_low_logout(seq);
        }
        if seq > expected {
            return self.seldom().too_high(m, seq);
        }
        if seq < expected {
            // A kept message may meanwhile have been resent.
            return match m.msg_type() {
                _ if held => Outcome::Done,
                // Who asks again in despair over numbers is answered, whatever the request's own.
                b"2" => {
                    self.seldom().on_resend_request(m, seq);
                    Outcome::Done
                }
                _ => self.seldom().too_low(m, h, (seq, expected)),
            };
        }
        if h.poss_dup && h.orig_sending_time.is_some_and(|orig| orig > h.sending_time) {
            let late = Fault::no_tag(SessionRejectReason::SendingTimeAccuracy);
            return self.seldom().reject_and_end(m, seq, late, true);
        }
        let fault = m.malformed().filter(|_| self.terms.checker.is_none());
        let is_session = is_admin(m.msg_type());
        if !is_session
            && self.pace.pace_in.is_some()
            && let Some(outcome) = self.seldom().beyond_rate(m, h, seq)
        {
            return outcome;
        }
        if !is_session && fault.is_none() {
            self.counters.bump(Counter::FixMessagesIn);
        }
        if !is_session && fault.is_none() {
            self.telling.events.push(Event::Message {
                seq: SeqNo(seq),
                poss_dup: h.poss_dup,
                poss_resend: h.poss_resend,
                sending_time: h.sending_time,
            });
            return Outcome::Handed;
        }
        self.seldom().advance(seq + 1);
        match fault {
            Some(fault) => self.seldom().send_reject(m, seq, fault),
            None => self.seldom().accept(m, seq),
        }
        Outcome::Done
    }
}

impl Core<dyn Store + '_> {
    /// Bytes that are no message: skipped, but nobody logs on with them.
    #[cold]
    pub(super) fn garbled(&mut self, why: Garbled) {
        self.counters.bump(Counter::FixMalformed);
        self.last_garbled = Some(why);
        if matches!(self.status, Status::LogonAwaited | Status::LogonSent) {
            self.disconnect(DisconnectReason::LogonRefused, Reason::lossy(b"garbled"));
        }
    }

    /// Anything but a Logon before the logon ends the connection without an answer. A Logout or Reject is the
    /// peer's refusal of ours.
    pub(super) fn before_logon(&mut self, m: &Message<'_>) -> Outcome {
        let text = m
            .find(tag::TEXT)
            .map_or(Reason::EMPTY, |f| Reason::lossy(m.value(f)));
        self.disconnect(DisconnectReason::LogonRefused, text);
        Outcome::Done
    }

    /// The message cannot be placed in the session: logout (when logged on) and disconnect.
    pub(super) fn violation(&mut self, text: &str, logged_on: bool) -> Outcome {
        match logged_on {
            true => self.logout_and_disconnect(DisconnectReason::ProtocolViolation, text),
            false => self.disconnect(DisconnectReason::LogonRefused, Reason::lossy(text.as_bytes())),
        }
        Outcome::Done
    }

    pub(super) fn reject_and_end(
        &mut self,
        m: &Message<'_>,
        seq: u64,
        fault: Fault,
        logged_on: bool,
    ) -> Outcome {
        if !logged_on {
            return self.violation(fault.reason.text(), false);
        }
        self.send_reject(m, seq, fault);
        if seq == self.store.next_in() {
            self.advance(seq + 1);
        }
        // The Reject has said why; the Logout only ends it.
        self.send_logout(&Reason::EMPTY);
        let text = Reason::lossy(fault.reason.text().as_bytes());
        self.disconnect(DisconnectReason::ProtocolViolation, text);
        Outcome::Done
    }

    /// A faulty message is answered and counts as received.
    pub(super) fn reject_and_accept(&mut self, m: &Message<'_>, seq: u64, fault: Fault) -> Outcome {
        if !matches!(self.status, Status::Active | Status::LogoutSent) {
            return self.violation(fault.reason.text(), false);
        }
        self.send_reject(m, seq, fault);
        if seq == self.store.next_in() {
            self.advance(seq + 1);
        }
        Outcome::Done
    }

    /// A gap: asks for what is missing. A ResendRequest is answered all the same, else two sides that both
    /// miss something would wait for each other; so is a Logout.
    pub(super) fn too_high(&mut self, m: &Message<'_>, seq: u64) -> Outcome {
        let expected = self.store.next_in();
        let is_request = m.msg_type() == b"2";
        if !is_request {
            // A request is answered now and not missed later.
            self.gaps.seen_max = self.gaps.seen_max.max(seq);
        }
        if self.gaps.gap.is_none() {
            self.telling.events.push(Event::Gap {
                expected: SeqNo(expected),
                received: SeqNo(seq),
            });
            self.request_resend(seq, 1);
        }
        if !is_request {
            return Outcome::Early(seq);
        }
        self.on_resend_request(m, seq);
        Outcome::Done
    }

    pub(super) fn too_low(
        &mut self,
        m: &Message<'_>,
        h: &Header<'_>,
        (seq, expected): (u64, u64),
    ) -> Outcome {
        if !h.poss_dup {
            let text = too_low_text(seq, expected);
            self.logout_and_disconnect(DisconnectReason::SequenceTooLow, text.as_str());
            return Outcome::Done;
        }
        match h.orig_sending_time {
            None if self.terms.config.wants_orig_sending_time => {
                self.send_reject(m, seq, Fault::missing(tag::ORIG_SENDING_TIME));
            }
            Some(orig) if orig > h.sending_time => {
                let late = Fault::no_tag(SessionRejectReason::SendingTimeAccuracy);
                return self.reject_and_end(m, seq, late, true);
            }
            None | Some(_) => {} // already received
        }
        Outcome::Done
    }

    /// The next message is `next_in`.
    pub(super) fn advance(&mut self, next_in: u64) {
        self.store.set_next_in(next_in);
        if let Some(processed) = &mut self.writer.processed {
            *processed = next_in - 1;
        }
        if let Some(gap) = &mut self.gaps.gap {
            (gap.since, gap.attempts) = (self.clock.now, 1);
            if next_in > gap.upto {
                self.gaps.gap = None;
            } else if next_in > gap.asked_upto {
                let upto = gap.upto;
                self.request_resend(upto, 1);
            }
        }
    }

    pub(super) fn accept(&mut self, m: &Message<'_>, seq: u64) {
        self.took(seq);
        match m.msg_type() {
            b"1" => self.on_test_request(m, seq),
            b"2" => self.on_resend_request(m, seq),
            b"3" => self.on_reject(m),
            b"4" => self.on_gap_fill(m, seq),
            b"5" => self.on_logout(m),
            _ => {}
        }
    }

    pub(super) fn refuse(&mut self, m: &Message<'_>, seq: u64, reason: u16, text: &str) {
        let Some(ref_msg_type) = MsgType::new(m.msg_type()) else {
            let fault = Fault::new(SessionRejectReason::InvalidMsgType, tag::MSG_TYPE);
            return self.send_reject(m, seq, fault);
        };
        if !self.terms.config.version.rejects_in_fields() {
            // BusinessMessageReject came with FIX 4.2.
            self.counters.bump(Counter::FixRejects);
            let text = match reason {
                business_reject_reason::UNSUPPORTED_MESSAGE_TYPE => "Unsupported message type",
                _ => text,
            };
            return self.send_admin(b"3", |e| {
                e.unsigned(tag::REF_SEQ_NUM, seq);
                e.text_if(tag::TEXT, text.as_bytes());
            });
        }
        let reject = BusinessMessageReject {
            ref_seq: SeqNo(seq),
            ref_msg_type,
            ref_id: Id::EMPTY,
            reason,
            text: Reason::lossy(text.as_bytes()),
        };
        let version = self.terms.config.version.appl_ver_id();
        let sent = self.send_encoded(BusinessMessageReject::MSG_TYPE, Again::Resend, |e, _| {
            reject.encode(e);
            if let Some(version) = version {
                e.char(tag::DEFAULT_APPL_VER_ID, version);
            }
        });
        match sent {
            Ok(_)
            | Err(
                SendError::NotLoggedOn
                | SendError::NotEncodable
                | SendError::TooLong
                | SendError::Throttled { .. },
            ) => {}
            Err(SendError::Backlog) => self.disconnect(DisconnectReason::PeerTooSlow, Reason::EMPTY),
            Err(SendError::StoreFailed) => self.disconnect(DisconnectReason::StoreFailed, Reason::EMPTY),
        }
    }

    pub(super) fn on_test_request(&mut self, m: &Message<'_>, seq: u64) {
        match m.find(tag::TEST_REQ_ID) {
            Some(id) => self.send_admin(b"0", |e| e.copy(tag::TEST_REQ_ID, m.value(id))),
            None => self.send_reject(m, seq, Fault::missing(tag::TEST_REQ_ID)),
        }
    }

    pub(super) fn on_resend_request(&mut self, m: &Message<'_>, seq: u64) {
        let number = |tag| m.find(tag).ok_or(Fault::missing(tag)).and_then(|f| m.unsigned(f));
        let (begin, end) = match (number(tag::BEGIN_SEQ_NO), number(tag::END_SEQ_NO)) {
            (Ok(begin), Ok(end)) => (begin, end),
            (Err(fault), _) | (_, Err(fault)) => return self.send_reject(m, seq, fault),
        };
        let newest = self.store.next_out() - 1;
        //= FIX 4.4 vol 2, "Resend Request": EndSeqNo = 0 asks for all that follow.
        let last = if end == 0 { newest } else { end.min(newest) };
        if begin == 0 || begin > last {
            return self.send_reject(m, seq, Fault::value(tag::BEGIN_SEQ_NO));
        }
        self.counters.bump(Counter::FixResends);
        if self.asked.begin == begin {
            self.asked.times += 1;
            self.counters.bump(Counter::FixResendRepeats);
            if self.asked.times >= self.terms.config.resend_repeats_max.max(1) {
                let mut text = Reason::EMPTY;
                let _ = write!(text, "ResendRequest from {begin} on repeated too often");
                return self.logout_and_disconnect(DisconnectReason::ResendLoop, text.as_str());
            }
        } else {
            self.asked = Asked { begin, times: 0 };
        }
        self.resending.resend = Some(match self.resending.resend {
            Some(r) => Resend {
                next: r.next.min(begin),
                last: r.last.max(last),
            },
            None => Resend { next: begin, last },
        });
    }

    pub(super) fn on_reject(&mut self, m: &Message<'_>) {
        let number = |tag| m.find(tag).and_then(|f| m.unsigned(f).ok());
        self.telling.events.push(Event::Rejected {
            ref_seq: SeqNo(number(tag::REF_SEQ_NUM).unwrap_or(0)),
            ref_tag: number(tag::REF_TAG_ID)
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(0),
            reason: number(tag::SESSION_REJECT_REASON).and_then(|n| u16::try_from(n).ok()),
            text: m
                .find(tag::TEXT)
                .map_or(Reason::EMPTY, |f| Reason::lossy(m.value(f))),
        });
    }

    pub(super) fn new_seq_no(m: &Message<'_>) -> Result<u64, Fault> {
        m.find(tag::NEW_SEQ_NO)
            .ok_or(Fault::missing(tag::NEW_SEQ_NO))
            .and_then(|f| m.unsigned(f))
    }

    pub(super) fn on_gap_fill(&mut self, m: &Message<'_>, seq: u64) {
        match Self::new_seq_no(m) {
            Ok(next) if next > seq => self.advance(next),
            Ok(_) => self.send_reject(m, seq, Fault::no_tag(SessionRejectReason::IncorrectValue)),
            Err(fault) => self.send_reject(m, seq, fault),
        }
    }

    pub(super) fn on_sequence_reset(&mut self, m: &Message<'_>, seq: u64) -> Outcome {
        match Self::new_seq_no(m) {
            Ok(next) if next >= self.store.next_in() => {
                self.took(seq);
                self.advance(next);
            }
            Ok(_) => self.send_reject(m, seq, Fault::no_tag(SessionRejectReason::IncorrectValue)),
            Err(fault) => self.send_reject(m, seq, fault),
        }
        Outcome::Done
    }
}

pub(super) fn too_low_text(seq: u64, expected: u64) -> Reason {
    let mut text = Reason::EMPTY;
    let _ = write!(text, "MsgSeqNum too low, expecting {expected} but received {seq}");
    text
}
