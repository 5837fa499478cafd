//! How a session begins and ends: connection, logon and its rules, session hours, logout, resets, and the
//! cancel that follows a loss. FIX 4.4 with errata 20030618, volume 2, "Logon" and "Logout";
//! NextExpectedMsgSeqNum as in FIX 4.4, volume 2, "Extended features for FIX session and FIX connection
//! initiation".

use super::receiving::too_low_text;
use super::{Core, DisconnectReason, Event, Gap, Handed, Outcome, Resend, Session, Status, handed_out};
use crate::config::{CancelOn, Role};
use crate::decode::Message;
use crate::header::Header;
use crate::schedule::Hours;
use crate::store::Store;
use crate::tag;
use crate::text::{CompId, Reason};
use core::fmt::{self, Write};
use tickwire_market::{Counter, Nanos, SeqNo};

/// A Logon that waits for the owner's word. Prints without passwords.
pub struct LogonRequest<'a> {
    message: Message<'a>,
}

impl<'a> LogonRequest<'a> {
    fn field(&self, tag: u32) -> &'a [u8] {
        self.message.find(tag).map_or(b"", |f| self.message.value(f))
    }

    /// SenderCompID (49).
    pub fn peer(&self) -> &'a [u8] {
        self.field(tag::SENDER_COMP_ID)
    }

    /// Username (553), empty if there is none.
    pub fn username(&self) -> &'a [u8] {
        self.field(tag::USERNAME)
    }

    /// Password (554), empty if there is none. Not to be logged.
    pub fn password(&self) -> &'a [u8] {
        self.field(tag::PASSWORD)
    }

    /// NewPassword (925), empty if there is none. Not to be logged.
    pub fn new_password(&self) -> &'a [u8] {
        self.field(tag::NEW_PASSWORD)
    }

    /// The whole Logon, passwords and all.
    pub fn message(&self) -> &Message<'a> {
        &self.message
    }
}

impl fmt::Debug for LogonRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogonRequest")
            .field("peer", &Reason::lossy(self.peer()))
            .field("username", &Reason::lossy(self.username()))
            .finish_non_exhaustive()
    }
}

/// What a Logon asks for.
#[derive(Clone, Copy)]
struct Terms {
    heartbeat_s: u32,
    /// 141=Y.
    resets: bool,
    next_expected: Option<u64>,
    message_max: Option<u64>,
}

impl<S: Store> Session<S> {
    /// The Logon of the last [`Event::LogonRequested`], until it is answered.
    pub fn logon_request(&self) -> Option<LogonRequest<'_>> {
        match self.handed {
            Handed::Logon(_) => handed_out(self.handed, &self.index, &self.received, &self.early)
                .map(|message| LogonRequest { message }),
            _ => None,
        }
    }

    /// Logs on who asked by [`Event::LogonRequested`]; without effect if nobody waits.
    pub fn accept_logon(&mut self, now: Nanos) {
        let Handed::Logon(len) = self.handed else { return };
        self.handed = Handed::Nothing;
        self.core.follow_clock(now);
        let message = self.index.again(&self.received.as_slice()[..len]);
        let header = Header::decode(&message);
        if let Some(seq) = header.seq
            && self.core.status == Status::LogonAwaited
        {
            match self.core.seldom().terms(&message, seq) {
                Ok(terms) => self.core.seldom().log_on(&message, &header, seq, terms),
                Err(why) => self.core.seldom().refuse_logon(why),
            };
        }
        if self.core.tell_admin() {
            // It stays in front until it was looked at.
            self.handed = Handed::Told(len);
            return;
        }
        self.received.consume(len);
        self.pump();
    }

    /// Refuses who asked: Logout with this text, then the end of the connection.
    pub fn refuse_logon(&mut self, now: Nanos, text: &str) {
        let Handed::Logon(_) = self.handed else { return };
        self.handed = Handed::Nothing;
        self.core.follow_clock(now);
        self.received.clear();
        self.core.seldom().refuse_logon(text);
    }

    /// Tells the session its hours, anew whenever [`crate::Schedule::next_change`] says: outside of them
    /// nobody is logged on, and numbers begin with 1 in every period. A session that was never told is always
    /// open.
    pub fn set_hours(&mut self, now: Nanos, hours: Hours) {
        self.core.follow_clock(now);
        self.core.hours = Some(hours);
        self.core.seldom().keep_hours();
    }

    /// Whether an initiator may connect and log on.
    pub fn may_log_on(&self, now: Nanos) -> bool {
        self.core.is_open(now)
    }
}

impl<S: Store + ?Sized> Core<S> {
    pub(super) fn disconnect(&mut self, reason: DisconnectReason, text: Reason) {
        if self.is_over() {
            return;
        }
        if matches!(self.status, Status::LogonAwaited | Status::LogonSent) {
            self.counters.bump(Counter::FixLogonsRefused);
        }
        match reason {
            DisconnectReason::LogonTimeout => self.counters.bump(Counter::FixLogonTimeouts),
            DisconnectReason::HeartbeatTimeout => self.counters.bump(Counter::FixConnectionsLost),
            _ => {}
        }
        self.set_status(Status::Closing);
        self.telling.ending = Some(Event::Disconnect { reason, text });
        if matches!(
            reason,
            DisconnectReason::LogoutComplete | DisconnectReason::PeerLogout
        ) {
            self.connection.logged_out = true;
            if self.terms.config.reset_on_logout {
                self.reset_numbers();
            }
        }
    }

    fn is_open(&self, now: Nanos) -> bool {
        let now = self.wall_of(now);
        self.hours.is_none_or(|hours| {
            let periods = [hours.current, hours.next];
            periods.into_iter().flatten().any(|period| period.admits(now))
        })
    }

    /// When the hours change something.
    pub(super) fn hours_timeout(&self) -> Option<Nanos> {
        let hours = self.hours?;
        let periods = [hours.current, hours.next];
        let changes = periods
            .into_iter()
            .flatten()
            .flat_map(|p| [p.start, p.logon_start, p.logon_end, p.end]);
        let next = changes.filter(|at| *at > self.wall()).min()?;
        Some(Nanos(next.0.saturating_add_signed(-self.clock.wall_offset_ns)))
    }

    /// Both numbers begin with 1, and what was sent is forgotten.
    fn reset_numbers(&mut self) {
        self.store.reset();
        self.connection.was_reset = true;
        self.note_processed();
    }

    /// LastMsgSeqNumProcessed after the numbers changed by themselves.
    fn note_processed(&mut self) {
        if let Some(processed) = &mut self.writer.processed {
            *processed = self.store.next_in() - 1;
        }
    }
}

impl Core<dyn Store + '_> {
    // ---- connection -------------------------------------------------------------------------------------------

    pub(super) fn connected(&mut self, now: Nanos) {
        self.forget_connection(now);
        self.telling.ending = None;
        self.silence.last_received = now;
        self.set_status(Status::LogonAwaited);
        self.keep_hours();
        self.note_processed();
        if self.terms.config.role == Role::Initiator {
            if !self.is_open(now) {
                return self.disconnect(DisconnectReason::LogonRefused, Reason::lossy(OUTSIDE.as_bytes()));
            }
            if self.terms.config.reset_on_logon {
                self.reset_numbers();
            }
            self.set_status(Status::LogonSent);
            let expected = self.store.next_in();
            self.send_logon(
                self.terms.config.heartbeat_s,
                self.terms.config.reset_on_logon,
                expected,
            );
        }
    }

    pub(super) fn disconnected(&mut self, now: Nanos) {
        self.follow_clock(now);
        if matches!(self.status, Status::Active | Status::LogoutSent) {
            self.counters.bump(Counter::FixConnectionsLost);
        }
        if self.terms.config.reset_on_disconnect {
            self.reset_numbers();
        }
        let cancels = match self.terms.config.cancel_on {
            CancelOn::Never => false,
            CancelOn::ConnectionLost => self.connection.was_on && !self.connection.logged_out,
            CancelOn::AnyEnd => self.connection.was_on,
        };
        if cancels {
            self.connection.cancel_at = Some(now.after(self.terms.config.cancel_after_ns));
        }
        self.forget_connection(now);
        self.set_status(Status::Disconnected);
        self.keep_hours();
        self.cancel_when_due();
    }

    pub(super) fn cancel_when_due(&mut self) {
        if self.connection.cancel_at.is_some_and(|at| at <= self.clock.now) {
            self.connection.cancel_at = None;
            self.connection.cancels = true;
        }
    }

    // ---- hours ------------------------------------------------------------------------------------------------

    /// Begins a new period's numbers, and logs out whose hours are over.
    pub(super) fn keep_hours(&mut self) {
        let wall = self.wall();
        let Some(hours) = &mut self.hours else { return };
        if hours.next.is_some_and(|period| period.start <= wall) {
            hours.current = hours.next.take();
        }
        let current = hours.current.filter(|period| period.contains(wall));
        let known = self.store.period();
        if let Some(period) = current
            && known == Nanos::ZERO
        {
            // The numbers of a store that knows no period yet are those of this one.
            self.store.set_period(period.start);
        }
        // Only forward: a clock that was set back does not begin a period again.
        let begins = current.filter(|period| known != Nanos::ZERO && period.start > known);
        if self.status == Status::Active && (begins.is_some() || !self.is_open(self.clock.now)) {
            self.log_out(OUTSIDE);
        }
        let is_idle = matches!(self.status, Status::Disconnected | Status::LogonAwaited);
        if let Some(period) = begins
            && is_idle
        {
            self.reset_numbers();
            self.store.set_period(period.start);
        }
    }

    // ---- logon ------------------------------------------------------------------------------------------------

    /// Logon while none is in force, or with ResetSeqNumFlag at any time.
    pub(super) fn on_logon(&mut self, m: &Message<'_>, h: &Header<'_>, seq: u64) -> Outcome {
        let terms = match self.terms(m, seq) {
            Ok(terms) => terms,
            Err(why) => return self.refuse_logon(why),
        };
        if self.status == Status::LogonAwaited && self.terms.config.asks_about_logons {
            let peer = CompId::new(h.sender).unwrap_or_default();
            self.telling.events.push(Event::LogonRequested { peer });
            return Outcome::Asked;
        }
        self.log_on(m, h, seq, terms)
    }

    /// What a Logon asks for, or why that cannot be.
    fn terms(&self, m: &Message<'_>, seq: u64) -> Result<Terms, &'static str> {
        let number = |tag| m.find(tag).map(|f| m.unsigned(f));
        let is_set = |tag| m.find(tag).is_some_and(|f| m.value(f) == b"Y");
        let heartbeat_s = match number(tag::HEART_BT_INT) {
            Some(Ok(seconds)) if seconds <= 3_600 => seconds as u32,
            _ => return Err("HeartBtInt must be 0 to 3600"),
        };
        if !(self.terms.config.heartbeat_s_min..=self.terms.config.heartbeat_s_max).contains(&heartbeat_s) {
            return Err("HeartBtInt is not within the limits of this session");
        }
        if number(tag::ENCRYPT_METHOD) != Some(Ok(0)) {
            return Err("EncryptMethod must be 0");
        }
        if m.malformed().is_some() {
            return Err("Logon malformed");
        }
        match self.terms.config.is_test {
            Some(true) if !is_set(tag::TEST_MESSAGE_INDICATOR) => {
                return Err("TestMessageIndicator must be Y: this session is for tests");
            }
            Some(false) if is_set(tag::TEST_MESSAGE_INDICATOR) => {
                return Err("TestMessageIndicator must be N: this session is no test");
            }
            _ => {}
        }
        if !self.is_open(self.clock.now) {
            return Err(OUTSIDE);
        }
        let resets = is_set(tag::RESET_SEQ_NUM_FLAG);
        if resets && seq != 1 {
            return Err("MsgSeqNum must be 1 with ResetSeqNumFlag");
        }
        let next_expected = match number(tag::NEXT_EXPECTED_MSG_SEQ_NUM) {
            Some(Ok(n)) if self.terms.config.next_expected && n > 0 => Some(n),
            Some(_) if self.terms.config.next_expected => {
                return Err("NextExpectedMsgSeqNum must be a number from 1 on");
            }
            _ => None,
        };
        Ok(Terms {
            heartbeat_s,
            resets,
            next_expected,
            message_max: number(tag::MAX_MESSAGE_SIZE)
                .and_then(Result::ok)
                .filter(|n| *n > 0),
        })
    }

    /// Logs on under terms that can be.
    fn log_on(&mut self, m: &Message<'_>, h: &Header<'_>, seq: u64, terms: Terms) -> Outcome {
        let first = matches!(self.status, Status::LogonSent | Status::LogonAwaited);
        let we_asked = self.status == Status::LogonSent && self.terms.config.reset_on_logon;
        let reset = terms.resets || (self.status == Status::LogonAwaited && self.terms.config.reset_on_logon);
        if reset && !we_asked {
            self.reset_numbers();
            self.gaps.gap = None;
            self.resending.resend = None;
            self.gaps.seen_max = 0;
            if self.status == Status::LogonSent {
                self.store.set_next_out(2); // our Logon, already sent, counts as the first message
            }
        }
        let reached = self.store.reached();
        if seq < reached && !h.poss_dup {
            return self.too_low(m, h, (seq, reached));
        }
        let next_out = self.store.next_out();
        if let Some(n) = terms.next_expected
            && n > next_out
        {
            let mut text = Reason::EMPTY;
            let _ = write!(
                text,
                "NextExpectedMsgSeqNum too high, expecting {next_out} but received {n}"
            );
            return self.refuse_logon(text.as_str());
        }
        let is_new = self.terms.config.checks_comp_ids || self.writer.parties.peer().is_empty();
        if let Some(peer) = CompId::new(h.sender).filter(|_| is_new) {
            self.writer.parties.set_peer(peer);
        }
        let field = m
            .find(self.terms.config.cancels_tag)
            .filter(|_| self.terms.config.cancels_tag > 0);
        self.peer_cancels = field.map(|field| m.value(field) == b"Y");
        let answers = self.status != Status::LogonSent;
        let expected = self.store.next_in();
        self.heartbeat_ns = u64::from(terms.heartbeat_s) * Nanos::SECOND;
        self.peer_message_max = terms
            .message_max
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(usize::MAX);
        self.set_status(Status::Active);
        (self.connection.was_on, self.connection.cancel_at) = (true, None);
        if seq == expected {
            self.advance(seq + 1);
        }
        self.took(seq);
        if answers {
            self.send_logon(terms.heartbeat_s, terms.resets, self.store.next_in());
        }
        self.counters.bump(Counter::FixLogons);
        self.telling.events.push(Event::LoggedOn {
            peer: self.writer.parties.peer(),
            heartbeat_s: terms.heartbeat_s,
            // What we asked for was done when we asked, whether the answer repeats it or not.
            reset: core::mem::take(&mut self.connection.was_reset),
        });
        if seq > expected {
            self.gaps.seen_max = seq;
            self.telling.events.push(Event::Gap {
                expected: SeqNo(expected),
                received: SeqNo(seq),
            });
            if terms.next_expected.is_some() {
                // Our own Logon has said what we expect: it is coming, or asked for when it does not come.
                self.gaps.gap = Some(Gap {
                    upto: seq,
                    asked_upto: seq,
                    since: self.clock.now,
                    attempts: 0,
                });
            } else {
                self.request_resend(seq, 1);
            }
        }
        if let Some(next) = terms.next_expected.filter(|n| *n < next_out) {
            // Up to and with the Logon just sent, which the peer could not take in its turn.
            let last = self.store.next_out() - 1;
            self.counters.bump(Counter::FixResends);
            self.resending.resend = Some(Resend { next, last });
        }
        if first { Outcome::Done } else { Outcome::Reset }
    }

    pub(super) fn refuse_logon(&mut self, text: &str) -> Outcome {
        self.logout_and_disconnect(DisconnectReason::LogonRefused, text);
        Outcome::Done
    }

    fn send_logon(&mut self, heartbeat_s: u32, reset: bool, next_expected: u64) {
        let version = self.terms.config.version.appl_ver_id();
        let config = self.terms.config;
        let credentials = match config.role {
            Role::Initiator => config.credentials,
            Role::Acceptor => Default::default(),
        };
        let cancels = match config.role {
            Role::Initiator => (config.cancels_tag > 0).then_some(true),
            Role::Acceptor => self.peer_cancels.map(|_| config.cancels_orders),
        };
        let fields = core::mem::take(&mut self.logon_fields);
        self.send_admin(b"A", |e| {
            e.unsigned(tag::ENCRYPT_METHOD, 0);
            e.unsigned(tag::HEART_BT_INT, u64::from(heartbeat_s));
            // Both sides of 4.0 are configured to begin anew: it has no word for it.
            if reset && config.version.is_since_41() {
                e.char(tag::RESET_SEQ_NUM_FLAG, b'Y');
            }
            if config.says_message_max {
                e.unsigned(tag::MAX_MESSAGE_SIZE, config.receive_bytes.max(1024) as u64);
            }
            if let Some(is_test) = config.is_test {
                e.char(tag::TEST_MESSAGE_INDICATOR, if is_test { b'Y' } else { b'N' });
            }
            e.text_if(tag::USERNAME, credentials.username.as_bytes());
            e.text_if(tag::PASSWORD, credentials.password.expose());
            if config.next_expected {
                e.unsigned(tag::NEXT_EXPECTED_MSG_SEQ_NUM, next_expected);
            }
            e.text_if(tag::NEW_PASSWORD, credentials.new_password.expose());
            if let Some(version) = version {
                e.char(tag::DEFAULT_APPL_VER_ID, version);
            }
            if let Some(says) = cancels {
                e.char(config.cancels_tag, if says { b'Y' } else { b'N' });
            }
            fields.iter().for_each(|(tag, value)| e.text(*tag, value));
        });
        self.logon_fields = fields;
    }

    // ---- logout -----------------------------------------------------------------------------------------------

    /// Begins the logout, if logged on.
    pub(super) fn log_out(&mut self, text: &str) {
        if self.status == Status::Active {
            self.send_logout(&Reason::lossy(text.as_bytes()));
            if self.status == Status::Active {
                self.set_status(Status::LogoutSent);
            }
        }
    }

    pub(super) fn on_logout(&mut self, m: &Message<'_>) {
        let text = m
            .find(tag::TEXT)
            .map_or(Reason::EMPTY, |f| Reason::lossy(m.value(f)));
        if self.status == Status::LogoutSent {
            return self.disconnect(DisconnectReason::LogoutComplete, text);
        }
        self.send_logout(&Reason::EMPTY);
        self.disconnect(DisconnectReason::PeerLogout, text);
    }

    /// A Logout with a number that is too low: confirmed without a word, as elsewhere, but the owner is told
    /// that numbers do not fit, and they are not reset as after a logout in good order.
    pub(super) fn on_low_logout(&mut self, seq: u64) -> Outcome {
        let text = too_low_text(seq, self.store.next_in());
        if self.status != Status::LogoutSent {
            self.send_logout(&Reason::EMPTY);
        }
        self.disconnect(DisconnectReason::SequenceTooLow, text);
        Outcome::Done
    }
}

/// What is said to who comes outside the session's hours.
const OUTSIDE: &str = "Outside the hours of this session";
