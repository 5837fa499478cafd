//! The session state machine: bytes and time in, bytes and events out. FIX 4.4 with errata 20030618, volume 2; FIXT 1.1.
//! What differs from version to version is in [`Version`].
//!
//! ```text
//!  transport connected ──► LogonSent (initiator) ──┐ Logon
//!                     └──► LogonAwaited (acceptor) ─┴──► Active ──► LogoutSent ──► Closing ──► Disconnected
//! ```
//! Logon and logout, resets and hours are in `logon`; what waits because of a message rate is in `pace`.
//! A session outlives its connections: sequence numbers and sent messages are in its [`Store`]. The order of calls is
//! always the same: one `handle_*` or `send`, then drain [`Session::poll_transmit`] and [`Session::poll_event`], then
//! look at [`Session::poll_timeout`]. After [`Event::Disconnect`] what is left to transmit is sent, the transport is
//! closed and [`Session::handle_disconnected`] called.

mod logon;
mod pace;

pub use logon::LogonRequest;

use crate::buffer::{Bytes, Early, Ring};
use crate::config::{SessionConfig, SubIds};
use crate::decode::{Frame, Garbled, Index, Message, frame};
use crate::dict::{Dictionary, Validation, Validator};
use crate::encode::Encoder;
use crate::header::{Header, is_header};
use crate::message::{AppMessage, BusinessMessageReject, business_reject_reason};
use crate::quoting::{MassQuoteHead, MassQuoteTemplate, QuotePrices};
use crate::reject::{Fault, SessionRejectReason};
use crate::schedule::Hours;
use crate::store::{MemoryStore, NotKept, Store, StoreFailed};
use crate::tag;
use crate::template::{NewOrder, OrderTemplate};
use crate::text::{CompId, Id, MsgType, Reason};
use crate::time::Stamp;
use crate::version::Version;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use core::fmt::{self, Write};
use pace::{PaceIn, PaceOut};
use tickwire_market::{Counter, Counters, MassQuoteEntry, Nanos, OrderType, SeqNo, Symbol};
use tickwire_persist::{Persist, persist};

/// How long after our clock was set a peer may still stamp by what it was before, nanoseconds: programs look at the clock once a second.
pub const CLOCK_SET_NS: u64 = 5 * Nanos::SECOND;

/// Where a session stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// No transport connection.
    Disconnected,
    /// Initiator: our Logon is out.
    LogonSent,
    /// Acceptor: connected, waiting for a Logon.
    LogonAwaited,
    /// Logged on.
    Active,
    /// Our Logout is out.
    LogoutSent,
    /// Over: the transport is to be closed.
    Closing,
}

/// Why a session wants its transport closed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DisconnectReason {
    /// Our Logout was answered.
    LogoutComplete,
    /// The peer logged out; it has been answered.
    PeerLogout,
    /// The Logon did not come in time.
    LogonTimeout,
    /// The Logon was refused: not a Logon, wrong identity, wrong time.
    LogonRefused,
    /// Our Logout was not answered in time.
    LogoutTimeout,
    /// Nothing received for too many heartbeat intervals ([`SessionConfig::silence_max_permille`]).
    HeartbeatTimeout,
    /// A sequence number below the expected one, without PossDupFlag.
    SequenceTooLow,
    /// Missing messages were requested three times in vain.
    ResendTimeout,
    /// The peer asked for the same messages again and again.
    ResendLoop,
    /// The peer sent more messages than allowed.
    Throttled,
    /// BeginString, identity, SendingTime or MsgSeqNum made the message unusable.
    ProtocolViolation,
    /// The peer does not read: the transmit buffer is full.
    PeerTooSlow,
    /// The store failed.
    StoreFailed,
}

impl fmt::Display for DisconnectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DisconnectReason::LogoutComplete => "our Logout was answered",
            DisconnectReason::PeerLogout => "the peer logged out",
            DisconnectReason::LogonTimeout => "no Logon came in time",
            DisconnectReason::LogonRefused => "the Logon was refused",
            DisconnectReason::LogoutTimeout => "our Logout was not answered in time",
            DisconnectReason::HeartbeatTimeout => {
                "nothing came for too long, measured in heartbeat intervals (2.4 unless configured)"
            }
            DisconnectReason::SequenceTooLow => {
                "a MsgSeqNum (34) was too low: one side has begun its numbers anew, the other has not"
            }
            DisconnectReason::ResendTimeout => "missing messages were asked for three times in vain",
            DisconnectReason::ResendLoop => "the peer asked for the same messages again and again",
            DisconnectReason::Throttled => "the peer sent more messages than allowed",
            DisconnectReason::ProtocolViolation => {
                "BeginString, CompIDs, SendingTime or MsgSeqNum of a message made it unusable"
            }
            DisconnectReason::PeerTooSlow => "the peer does not read what it is sent",
            DisconnectReason::StoreFailed => "the store of sent messages failed",
        })
    }
}

/// What a session tells its owner.
#[expect(
    clippy::large_enum_variant,
    reason = "events live in a ring allocated once; a box would allocate each time"
)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A Logon that is right in form, where [`SessionConfig::asks_about_logons`]: [`Session::logon_request`] has it. Answer by
    /// [`Session::accept_logon`] or [`Session::refuse_logon`] within the logon time-out, now or later; what else the peer
    /// sends waits meanwhile.
    LogonRequested {
        /// The peer's SenderCompID.
        peer: CompId,
    },
    /// Logged on.
    LoggedOn {
        /// The peer's SenderCompID.
        peer: CompId,
        /// HeartBtInt in force, seconds.
        heartbeat_s: u32,
        /// Both sequence numbers were reset, for whatever reason, since the last logon.
        reset: bool,
    },
    /// An application message, in sequence, once.
    App {
        /// Its sequence number.
        seq: SeqNo,
        /// Sent before under this number (43=Y): it was missed the first time.
        poss_dup: bool,
        /// May have been sent under another number (97=Y): the application must check.
        poss_resend: bool,
        /// SendingTime (52).
        sending_time: Nanos,
        /// The message.
        message: AppMessage,
    },
    /// An application message, in sequence, once, where the session takes any: [`Session::message`] has it until the next
    /// call of [`Session::poll_event`].
    Message {
        /// Its sequence number.
        seq: SeqNo,
        /// Sent before under this number (43=Y).
        poss_dup: bool,
        /// May have been sent under another number (97=Y).
        poss_resend: bool,
        /// SendingTime (52).
        sending_time: Nanos,
    },
    /// A session message that was taken, where [`SessionConfig::tells_session_messages`]: [`Session::message`] has it until the
    /// next call of [`Session::poll_event`]. What it led to has been told before, but for the end of the session.
    Admin {
        /// Its sequence number.
        seq: SeqNo,
    },
    /// Messages `[expected, received)` are missing and have been requested.
    Gap {
        /// The first that is missing.
        expected: SeqNo,
        /// The one that showed it.
        received: SeqNo,
    },
    /// The peer rejected a message of ours (35=3).
    Rejected {
        /// Which (RefSeqNum).
        ref_seq: SeqNo,
        /// The field, 0 when not said (RefTagID).
        ref_tag: u32,
        /// Why (SessionRejectReason, any number), `None` when not said.
        reason: Option<u16>,
        /// Text (58).
        text: Reason,
    },
    /// The peer asked for messages that the store no longer has: their numbers went out as gap fills. Messages of the session
    /// itself, which are never kept, may be among them.
    NotKept {
        /// The lowest of the numbers.
        first: SeqNo,
        /// The highest.
        last: SeqNo,
        /// How many.
        count: u64,
    },
    /// Cancel what is open at or from this peer ([`SessionConfig::cancel_on`]): its connection was lost, and it did not log
    /// on again in time.
    CancelOrders {
        /// The peer.
        peer: CompId,
    },
    /// Transmit what is left, close the transport, call [`Session::handle_disconnected`].
    Disconnect {
        /// Why.
        reason: DisconnectReason,
        /// The text of the Logout sent or received.
        text: Reason,
    },
}

/// Why a message was not sent. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// Not logged on.
    NotLoggedOn,
    /// The transmit buffer has no room, or (for [`Session::encode_new_order`]) is not empty: drain
    /// [`Session::poll_transmit`] first.
    Backlog,
    /// A required text is empty, or the message is longer than the receive buffer's size.
    NotEncodable,
    /// The message is longer than the peer takes (MaxMessageSize of its Logon).
    TooLong,
    /// The configured rate is used up ([`SessionConfig::throttle_out`]).
    Throttled {
        /// When the next message is within it.
        until: Nanos,
    },
    /// The store refused it.
    StoreFailed,
}

/// What messages are checked against: dictionaries, which sessions share, and how strictly.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Of header, trailer and session messages.
    pub session: Arc<Dictionary>,
    /// Of application messages; the same one before FIXT.
    pub application: Arc<Dictionary>,
    /// What is checked.
    pub validation: Validation,
}

impl Rules {
    /// Everything is checked against one dictionary.
    pub fn of(dictionary: Arc<Dictionary>) -> Rules {
        Rules {
            session: dictionary.clone(),
            application: dictionary,
            validation: Validation::default(),
        }
    }
}

/// Rules with the memory to apply them.
#[derive(Debug)]
struct Checker {
    rules: Rules,
    validator: Validator,
}

/// A FIX session.
#[derive(Debug)]
pub struct Session<S: Store = MemoryStore> {
    core: Core<S>,
    received: Bytes,
    early: Early,
    index: Index,
    handed: Handed,
}

/// Where the message of an [`Event::Message`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Handed {
    Nothing,
    /// So many bytes at the front of those received.
    Received(usize),
    /// Among those that were kept behind a gap.
    Kept,
    /// A Logon of so many bytes at the front of those received, which the owner has to decide about.
    Logon(usize),
    /// So many bytes at the front of those received: a session message, which has counted already.
    Told(usize),
    /// The same among those that were kept.
    ToldKept,
}

impl Session<MemoryStore> {
    /// A session with a [`MemoryStore`] of the configured size. All memory is allocated here.
    pub fn new(config: SessionConfig) -> Session<MemoryStore> {
        Session::with_store(
            config,
            MemoryStore::new(config.store_messages, config.store_bytes),
        )
    }
}

impl<S: Store> Session<S> {
    /// A session that continues with the sequence numbers of `store`.
    pub fn with_store(config: SessionConfig, store: S) -> Session<S> {
        Session::with_rules(config, store, None)
    }

    /// The same, and messages are checked.
    pub fn with_rules(config: SessionConfig, store: S, rules: Option<Rules>) -> Session<S> {
        let message_max = config.receive_bytes.max(1024);
        Session {
            received: Bytes::new(message_max),
            early: Early::new(config.early_bytes),
            index: Index::new(config.fields_max),
            handed: Handed::Nothing,
            core: Core {
                checker: rules.map(|rules| Checker {
                    validator: Validator::new(&rules.session, &rules.application),
                    rules,
                }),
                config,
                store,
                status: Status::Disconnected,
                heartbeat_ns: 0,
                now: Nanos::ZERO,
                wall_offset_ns: 0,
                wall_before: (0, Nanos::ZERO),
                status_since: Nanos::ZERO,
                last_sent: Nanos::ZERO,
                last_received: Nanos::ZERO,
                test_outstanding: false,
                gap: None,
                seen_max: 0,
                resend: None,
                resend_verdict: None,
                told: None,
                not_kept: None,
                out: Bytes::new(config.transmit_bytes.max(4096).max(2 * message_max)),
                writer: Writer {
                    scratch: vec![0; message_max].into_boxed_slice(),
                    version: config.version,
                    stamp: Stamp::new(config.precision),
                    sender: config.sender,
                    peer: config.target,
                    subs: config.subs,
                    processed: config.last_processed.then_some(0),
                },
                pace_out: config.throttle_out.map(PaceOut::new),
                pace_in: config.throttle_in.map(PaceIn::new),
                events: Ring::new(config.events.max(8)),
                ending: None,
                was_on: false,
                was_reset: false,
                logged_out: false,
                cancel_at: None,
                cancels: false,
                hours: None,
                peer_message_max: usize::MAX,
                last_garbled: None,
                logon_fields: Box::default(),
                peer_cancels: None,
                asked: Asked::default(),
                counters: Counters::default(),
            },
        }
    }

    /// For how long the peer was not heard when time was last told, in nanoseconds.
    pub fn silent_ns(&self) -> u64 {
        self.core.now.since(self.core.last_received)
    }

    /// Where the session stands.
    pub fn status(&self) -> Status {
        self.core.status
    }

    /// The peer's identity; empty on an acceptor for anybody before the first Logon.
    pub fn peer(&self) -> CompId {
        self.core.writer.peer
    }

    /// The configuration.
    pub fn config(&self) -> &SessionConfig {
        &self.core.config
    }

    /// Messages and sequence numbers.
    pub fn store(&self) -> &S {
        &self.core.store
    }

    /// Those of the table that begin with `fix_`, but `fix_log_dropped`: the log is the owner's.
    pub fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// Why the last garbled message, of those that [`Counter::FixMalformed`] counts, was none.
    pub fn last_garbled(&self) -> Option<Garbled> {
        self.core.last_garbled
    }

    /// Bytes waiting for [`Session::poll_transmit`], resends not counted.
    pub fn backlog(&self) -> usize {
        self.core.out.as_slice().len()
    }

    /// Says how far UTC is from the `now` of all other calls, nanoseconds: 0 until it is said. Where `now` is of a clock that is never set,
    /// heartbeats and time-outs go on as they were while the system's clock is set by an hour; SendingTime, its check and the hours of the session
    /// follow UTC from the next message on.
    ///
    /// A peer on the same machine may notice later than we that its clock was set: for [`CLOCK_SET_NS`] a SendingTime that is right by what was
    /// said before is right, too. Say it before bytes are handed over that came after the clock was set.
    pub fn set_wall_offset(&mut self, offset_ns: i64) {
        let core = &mut self.core;
        core.wall_before = (core.wall_offset_ns, core.now.after(CLOCK_SET_NS));
        core.wall_offset_ns = offset_ns;
    }

    /// The transport is connected: an initiator logs on, an acceptor waits for the Logon.
    pub fn handle_connected(&mut self, now: Nanos) {
        self.forget_received();
        self.core.connected(now);
    }

    /// The transport is gone. What was not transmitted is forgotten; the peer will ask for it.
    pub fn handle_disconnected(&mut self, now: Nanos) {
        self.forget_received();
        self.core.disconnected(now);
    }

    fn forget_received(&mut self) {
        self.received.clear();
        self.early.clear();
        self.handed = Handed::Nothing;
    }

    /// The message of the last [`Event::Message`].
    pub fn message(&self) -> Option<Message<'_>> {
        handed_out(self.handed, &self.index, &self.received, &self.early)
    }

    /// The application is done with the message, if there was one: only now it counts as received, so that one that was
    /// lost with the process is sent again. Whether there was one.
    fn release(&mut self) -> bool {
        let handed = self.handed;
        match handed {
            Handed::Nothing | Handed::Logon(_) => return false,
            Handed::Received(len) | Handed::Told(len) => self.received.consume(len),
            Handed::Kept | Handed::ToldKept => {}
        }
        self.handed = Handed::Nothing;
        if matches!(handed, Handed::Told(_) | Handed::ToldKept) {
            return true;
        }
        if matches!(self.core.status, Status::Active | Status::LogoutSent) {
            self.core.advance(self.core.store.next_in() + 1);
        }
        true
    }

    /// Bytes from the transport, cut anywhere. Returns how many were taken: all, unless events or the transmit queue
    /// have not been drained since; then drain and hand over the rest. When still none is taken, a logon waits for its
    /// answer or the peer is beyond its message rate: leave the rest to the transport until [`Session::is_reading`] again.
    #[must_use = "bytes not taken must be handed over again"]
    pub fn handle_bytes(&mut self, now: Nanos, bytes: &[u8]) -> usize {
        self.core.follow_clock(now);
        let mut taken = 0;
        loop {
            let n = self.received.fill(&bytes[taken..]);
            taken += n;
            let progress = self.pump();
            if taken == bytes.len() || (n == 0 && !progress) {
                self.core.counters.add(Counter::FixBytesIn, taken as u64);
                return taken;
            }
        }
    }

    /// Whether [`Session::handle_bytes`] would take bytes once events are drained. Not while the owner has to answer a Logon,
    /// nor while the peer is beyond its message rate and the receive buffer full; [`Session::poll_timeout`] tells when to look
    /// again.
    pub fn is_reading(&self) -> bool {
        let is_stopped = matches!(self.handed, Handed::Logon(_)) || self.core.is_held();
        !is_stopped || self.received.room() > 0
    }

    /// Time has passed: heartbeats, test requests, time-outs. May be called at any time.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.core.follow_clock(now);
        if self.core.is_held() && !self.received.is_empty() {
            // The peer has spoken; it is us who do not listen.
            self.core.last_received = now;
        }
        self.pump();
        self.core.timeout();
    }

    /// Bytes to transmit, in order, as much as fits `buf`; `None` when there are none. `buf` must not be empty.
    pub fn poll_transmit<'b>(&mut self, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        if self.core.out.is_empty() {
            self.core.resend_next();
        }
        let n = self.core.out.as_slice().len().min(buf.len());
        let n = self.core.released(n);
        if n == 0 || !self.core.settle() {
            return None;
        }
        buf[..n].copy_from_slice(&self.core.out.as_slice()[..n]);
        self.core.out.consume(n);
        self.core.counters.add(Counter::FixBytesOut, n as u64);
        Some(&buf[..n])
    }

    /// What happened. Events that found no room wait in the received bytes and come out here too: poll
    /// [`Session::poll_transmit`] again after the last one.
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.core.events.is_empty() {
            let was_handed = self.release();
            if was_handed || !self.received.is_empty() {
                self.pump();
            }
        }
        self.core.next_event()
    }

    /// When [`Session::handle_timeout`] is due, `None` for never.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let held = self
            .core
            .pace_in
            .as_ref()
            .and_then(|pace| pace.resumes(self.core.now));
        [
            self.core.next_timeout(),
            held.filter(|_| !self.received.is_empty()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Sends an application message: it is kept for resends and waits for [`Session::poll_transmit`]. Its sequence
    /// number.
    pub fn send(&mut self, now: Nanos, message: &AppMessage) -> Result<SeqNo, SendError> {
        self.core.follow_clock(now);
        self.core
            .send_paced(message.msg_type(), true, |e, stamp| message.encode_body(e, stamp))
    }

    /// The same for a message that counts only when it is sent, a quote's order for instance: it is not kept. A peer that asks for it
    /// again gets a gap fill.
    ///
    /// # Errors
    /// As there.
    pub fn send_passing(&mut self, now: Nanos, message: &AppMessage) -> Result<SeqNo, SendError> {
        self.core.follow_clock(now);
        self.core.send_paced(message.msg_type(), false, |e, stamp| {
            message.encode_body(e, stamp)
        })
    }

    /// Sends any application message: `fields` writes what follows TargetCompID, further header fields first.
    pub fn send_any(
        &mut self,
        now: Nanos,
        msg_type: &[u8],
        fields: impl FnOnce(&mut Encoder<'_>),
    ) -> Result<SeqNo, SendError> {
        self.core.follow_clock(now);
        self.core.send_paced(msg_type, true, |e, _| fields(e))
    }

    /// The same, and does not keep it: asked for again, it is gap-filled. For what must not be done later than now.
    pub fn send_any_passing(
        &mut self,
        now: Nanos,
        msg_type: &[u8],
        fields: impl FnOnce(&mut Encoder<'_>),
    ) -> Result<SeqNo, SendError> {
        self.core.follow_clock(now);
        self.core.send_paced(msg_type, false, |e, _| fields(e))
    }

    /// Answers the message of the last [`Event::Message`] as one that the application does not know.
    pub fn refuse(&mut self, now: Nanos) {
        self.refuse_because(now, business_reject_reason::UNSUPPORTED_MESSAGE_TYPE, UNSUPPORTED);
    }

    /// Answers it with a BusinessMessageReject of this reason (380) and text, up to 4.1 with a Reject.
    pub fn refuse_because(&mut self, now: Nanos, reason: u16, text: &str) {
        self.core.follow_clock(now);
        if let Some(message) = handed_out(self.handed, &self.index, &self.received, &self.early)
            && let Some(seq) = Header::decode(&message).seq
        {
            self.core.refuse(&message, seq, reason, text);
        }
    }

    /// Answers it with a Reject (35=3): a field is missing or wrong.
    pub fn reject(&mut self, now: Nanos, fault: Fault) {
        self.core.follow_clock(now);
        if let Some(message) = handed_out(self.handed, &self.index, &self.received, &self.early)
            && let Some(seq) = Header::decode(&message).seq
        {
            self.core.send_reject(&message, seq, fault);
        }
    }

    /// The kept message that is to be sent again next, as it was sent the first time, with its number, where
    /// [`SessionConfig::asks_about_resends`]: nothing of the resend goes out before [`Session::decide_resend`]. Look here whenever
    /// [`Session::poll_transmit`] has no more.
    #[inline]
    pub fn resend_asked(&mut self) -> Option<(SeqNo, &[u8])> {
        let resend = self.core.resend?;
        let is_decided = self
            .core
            .resend_verdict
            .is_some_and(|(seq, _)| seq == resend.next);
        if !self.core.config.asks_about_resends || is_decided || !self.core.out.is_empty() {
            return None;
        }
        let message = self.core.store.get(resend.next)?;
        Some((SeqNo(resend.next), message))
    }

    /// Whether the message of [`Session::resend_asked`] is sent again; a gap fill takes its place otherwise.
    pub fn decide_resend(&mut self, seq: SeqNo, may: bool) {
        self.core.resend_verdict = Some((seq.0, may));
    }

    /// Begins the logout; [`Event::Disconnect`] follows. Without effect unless logged on.
    pub fn logout(&mut self, now: Nanos, text: &str) {
        self.core.follow_clock(now);
        self.core.log_out(text);
    }

    /// Leaves out the next `count` numbers of ours, as if messages had been lost: the peer asks for them and gets a gap fill. For
    /// trials of a peer.
    pub fn skip_numbers(&mut self, count: u64) {
        let next = self.core.store.next_out().saturating_add(count);
        self.core.store.set_next_out(next);
    }

    /// A prepared NewOrderSingle for one instrument of this session, `None` if the symbol is empty, the peer not
    /// known yet, or every message carries LastMsgSeqNumProcessed, whose width changes.
    pub fn order_template(&self, symbol: Symbol) -> Option<OrderTemplate> {
        let core = &self.core;
        if core.writer.processed.is_some() {
            return None;
        }
        OrderTemplate::new(symbol, core.config.version, core.config.precision, |e, time| {
            core.put_prepared_header(e, b"D", time);
        })
    }

    /// A prepared MassQuote for instruments by their place, up to `entries_max` of them a message (1 to 99). `None` as for
    /// [`Session::order_template`].
    pub fn mass_quote_template(
        &self,
        symbols: &[Symbol],
        prices: QuotePrices,
        entries_max: u8,
    ) -> Option<MassQuoteTemplate> {
        let core = &self.core;
        if core.writer.processed.is_some() {
            return None;
        }
        let (version, precision) = (core.config.version, core.config.precision);
        MassQuoteTemplate::new(symbols, prices, entries_max, version, precision, |e, time| {
            core.put_prepared_header(e, b"i", time);
        })
    }

    /// Sends a mass quote from its template, as [`Session::encode_new_order`] an order; but it is not kept. A peer that asks for it
    /// again gets a gap fill: quotes of the past must not come to life.
    ///
    /// # Errors
    /// As there; `NotEncodable` also for what does not fit: sizes of more than 6 digits, instruments and numbers of entries that it was
    /// not made for. Nothing was sent then.
    #[inline]
    pub fn encode_mass_quote<'t>(
        &mut self,
        now: Nanos,
        template: &'t mut MassQuoteTemplate,
        head: &MassQuoteHead,
        entries: &[MassQuoteEntry],
    ) -> Result<&'t [u8], SendError> {
        let core = &mut self.core;
        let seq = core.prepare_to_send(now)?;
        let message = template
            .write(core.wall_of(now), seq, head, entries)
            .ok_or(SendError::NotEncodable)?;
        core.store.set_next_out(seq + 1);
        core.count_sent(now, message.len());
        Ok(message)
    }

    /// Writes a mass quote as it would be sent next and keeps nothing of it: no number is used and no byte given out. For a loop that has
    /// nothing else to do, so that the template and its code are in the caches when a message has to leave.
    pub fn rehearse_mass_quote(
        &self,
        now: Nanos,
        template: &mut MassQuoteTemplate,
        head: &MassQuoteHead,
        entries: &[MassQuoteEntry],
    ) {
        let _ = template.write(self.core.wall_of(now), self.core.store.next_out(), head, entries);
    }

    /// Sends an order from its template: the bytes are for the caller to transmit at once and are kept for resends.
    /// Refused while other bytes wait to be transmitted. Values beyond the template's widths are written by the
    /// general encoder. TransactTime is SendingTime.
    #[inline]
    pub fn encode_new_order<'t>(
        &mut self,
        now: Nanos,
        template: &'t mut OrderTemplate,
        order: &NewOrder,
    ) -> Result<&'t [u8], SendError> {
        self.core.encode_order(now, template, order, true)
    }

    /// The same for an order that lives for a moment only (immediate or cancel, fill or kill): it is not kept. A peer that asks for it
    /// again gets a gap fill: an order of the past must not come to life.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn encode_passing_order<'t>(
        &mut self,
        now: Nanos,
        template: &'t mut OrderTemplate,
        order: &NewOrder,
    ) -> Result<&'t [u8], SendError> {
        self.core.encode_order(now, template, order, false)
    }

    /// Whether everything is here that the peer has sent: it is logged on, and nothing is missing that it was asked for.
    pub fn is_caught_up(&self) -> bool {
        let core = &self.core;
        core.status == Status::Active && core.gap.is_none() && core.seen_max < core.store.next_in()
    }

    /// Whether the next logon begins with 1 anew, as [`SessionConfig::reset_on_logon`] says at first.
    pub fn set_reset_on_logon(&mut self, resets: bool) {
        self.core.config.reset_on_logon = resets;
    }

    /// Asks with every Logon from the next one on whether the venue cancels, see [`SessionConfig::cancels_tag`].
    pub fn set_cancels_tag(&mut self, tag: u32) {
        self.core.config.cancels_tag = tag;
    }

    /// What the peer's last Logon says in the field of [`SessionConfig::cancels_tag`]; `None` if it does not have it.
    pub fn peer_cancels(&self) -> Option<bool> {
        self.core.peer_cancels
    }

    /// Further fields of our Logon, written behind its own in this order: what a venue wants that no configuration knows.
    pub fn set_logon_fields(&mut self, fields: Box<[(u32, Box<[u8]>)]>) {
        self.core.logon_fields = fields;
    }

    /// Processes what has been received while there is room for events and no message is handed out; whether anything was.
    fn pump(&mut self) -> bool {
        let mut progress = false;
        if self.core.is_over() && matches!(self.handed, Handed::Logon(_)) {
            self.handed = Handed::Nothing;
        }
        while self.has_room() && !self.received.is_empty() {
            if self.core.is_over() {
                self.received.clear();
                return true;
            }
            let bytes = self.received.as_slice();
            let (used, garbled) = match frame(bytes, self.received.capacity()) {
                Frame::Partial => break,
                Frame::Garbled { skip, why } => (skip, Some(why)),
                Frame::Whole(len) => {
                    let bytes = &bytes[..len];
                    match self.index.decode(bytes) {
                        Ok(message) => match self.core.process(&message, false) {
                            Outcome::Done => {}
                            Outcome::Handed => {
                                self.handed = Handed::Received(len);
                                return true;
                            }
                            Outcome::Asked => {
                                self.handed = Handed::Logon(len);
                                return true;
                            }
                            Outcome::Early(seq) => self.early.keep(seq, bytes),
                            Outcome::Reset => self.early.clear(),
                        },
                        Err(why) => self.core.garbled(why),
                    }
                    if self.core.tell_admin() {
                        self.handed = Handed::Told(len);
                        return true;
                    }
                    (len, None)
                }
            };
            if let Some(why) = garbled {
                self.core.garbled(why);
            }
            self.received.consume(used);
            self.process_early();
            progress = true;
        }
        progress | self.process_early()
    }

    fn has_room(&self) -> bool {
        self.core.events.room() >= EVENTS_PER_MESSAGE
            && self.handed == Handed::Nothing
            && !self.core.is_held()
    }

    /// Processes messages that were kept behind a gap and are next now; asks for what is still missing.
    fn process_early(&mut self) -> bool {
        let mut progress = false;
        while self.has_room() && matches!(self.core.status, Status::Active | Status::LogoutSent) {
            let Some(bytes) = self.early.take(self.core.store.next_in()) else {
                self.core.request_what_was_dropped();
                break;
            };
            if let Ok(message) = self.index.decode(bytes) {
                match self.core.process(&message, true) {
                    Outcome::Reset => self.early.clear(),
                    Outcome::Handed => self.handed = Handed::Kept,
                    Outcome::Done | Outcome::Early(_) | Outcome::Asked => {}
                }
                if self.core.tell_admin() {
                    self.handed = Handed::ToldKept;
                }
            }
            progress = true;
        }
        progress
    }
}

/// What BusinessMessageReject says of a type that is not known, as QuickFIX words it.
const UNSUPPORTED: &str = "Unsupported Message Type";

/// The message an [`Event::Message`] told of. Apart from the session, so that its core can be used beside it.
fn handed_out<'s>(
    handed: Handed,
    index: &'s Index,
    received: &'s Bytes,
    early: &'s Early,
) -> Option<Message<'s>> {
    match handed {
        Handed::Nothing => None,
        Handed::Received(len) | Handed::Logon(len) | Handed::Told(len) => {
            Some(index.again(&received.as_slice()[..len]))
        }
        Handed::Kept | Handed::ToldKept => Some(index.again(early.taken())),
    }
}

/// No message makes more events: a logon and a gap, the request for the logon before them, and the word of the message itself.
const EVENTS_PER_MESSAGE: usize = 4;
/// A ResendRequest is sent at most this often without progress.
const RESEND_ATTEMPTS: u8 = 3;

/// Whether a message is the session's own.
#[inline]
fn is_admin(msg_type: &[u8]) -> bool {
    matches!(msg_type, b"0" | b"1" | b"2" | b"3" | b"4" | b"5" | b"A")
}

/// What became of a message.
enum Outcome {
    Done,
    /// An [`Event::Message`] tells of it.
    Handed,
    /// Ahead of a gap: to be kept under this number.
    Early(u64),
    /// Sequence numbers began anew: what was kept is void.
    Reset,
    /// An [`Event::LogonRequested`] tells of it.
    Asked,
}

/// Messages `[next_in, upto]` are missing, and those up to `asked_upto` have been requested.
#[derive(Clone, Copy, Debug)]
struct Gap {
    upto: u64,
    asked_upto: u64,
    since: Nanos,
    attempts: u8,
}

/// Messages `[next, last]` are to be sent again.
#[derive(Clone, Copy, Debug)]
struct Resend {
    next: u64,
    last: u64,
}

/// From which number on the peer asked last, and how often in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    begin: u64,
    times: u32,
}

/// Where messages are written before they are queued.
#[derive(Debug)]
struct Writer {
    scratch: Box<[u8]>,
    version: Version,
    stamp: Stamp,
    sender: CompId,
    peer: CompId,
    subs: SubIds,
    /// LastMsgSeqNumProcessed, where it is sent.
    processed: Option<u64>,
}

impl Writer {
    /// Begins a message: MsgType first, then the header's tags ascending.
    fn header(&mut self, msg_type: &[u8], seq: u64, now: Nanos) -> (Encoder<'_>, &mut Stamp) {
        let mut e = Encoder::new(&mut self.scratch, self.version);
        e.text(tag::MSG_TYPE, msg_type);
        e.unsigned(tag::MSG_SEQ_NUM, seq);
        e.text(tag::SENDER_COMP_ID, self.sender.as_bytes());
        e.text_if(tag::SENDER_SUB_ID, self.subs.sender_sub.as_bytes());
        e.timestamp(tag::SENDING_TIME, &mut self.stamp, now);
        e.text(tag::TARGET_COMP_ID, self.peer.as_bytes());
        put_subs(&mut e, &self.subs);
        if let Some(processed) = self.processed {
            e.unsigned(tag::LAST_MSG_SEQ_NUM_PROCESSED, processed);
        }
        (e, &mut self.stamp)
    }
}

/// The parts of the counterparties that stand behind TargetCompID.
#[inline]
fn put_subs(e: &mut Encoder<'_>, subs: &SubIds) {
    e.text_if(tag::TARGET_SUB_ID, subs.target_sub.as_bytes());
    e.text_if(tag::SENDER_LOCATION_ID, subs.sender_location.as_bytes());
    e.text_if(tag::TARGET_LOCATION_ID, subs.target_location.as_bytes());
}

/// All of a session except the received bytes, so that a message can be borrowed while it is processed.
#[derive(Debug)]
struct Core<S> {
    config: SessionConfig,
    checker: Option<Checker>,
    store: S,
    status: Status,
    heartbeat_ns: u64,
    now: Nanos,
    /// UTC less `now`.
    wall_offset_ns: i64,
    /// The same before the clock was set, and until when a peer may not have noticed.
    wall_before: (i64, Nanos),
    status_since: Nanos,
    last_sent: Nanos,
    last_received: Nanos,
    test_outstanding: bool,
    gap: Option<Gap>,
    /// Highest sequence number received on this connection.
    seen_max: u64,
    resend: Option<Resend>,
    /// Whether the message of this number may be sent again.
    resend_verdict: Option<(u64, bool)>,
    /// A session message of this number was taken and is to be told of.
    told: Option<u64>,
    /// Numbers that were filled and not told of yet.
    not_kept: Option<NotKept>,
    out: Bytes,
    writer: Writer,
    events: Ring<Event>,
    /// The disconnect, after all other events; it always has room.
    ending: Option<Event>,
    /// The connection was logged on.
    was_on: bool,
    /// Numbers were reset since the last [`Event::LoggedOn`].
    was_reset: bool,
    /// Logouts were exchanged on it.
    logged_out: bool,
    /// When the owner is to cancel.
    cancel_at: Option<Nanos>,
    /// [`Event::CancelOrders`] is due, after all other events.
    cancels: bool,
    hours: Option<Hours>,
    /// The longest message the peer takes.
    peer_message_max: usize,
    /// Why the last garbled message was.
    last_garbled: Option<Garbled>,
    /// What else our Logon says.
    logon_fields: Box<[(u32, Box<[u8]>)]>,
    /// What the peer's last Logon says of cancelling.
    peer_cancels: Option<bool>,
    asked: Asked,
    pace_out: Option<PaceOut>,
    pace_in: Option<PaceIn>,
    counters: Counters,
}

impl<S: Store> Core<S> {
    fn set_status(&mut self, status: Status) {
        self.status = status;
        self.status_since = self.now;
    }

    /// Nothing more is read on this connection.
    fn is_over(&self) -> bool {
        matches!(self.status, Status::Closing | Status::Disconnected)
    }

    /// The peer is beyond its message rate and has to wait.
    #[inline]
    fn is_held(&self) -> bool {
        self.pace_in.as_ref().is_some_and(|pace| pace.holds(self.now))
    }

    /// Notes that a session message was taken.
    #[inline]
    fn took(&mut self, seq: u64) {
        self.told = Some(seq).filter(|_| self.config.tells_session_messages);
    }

    /// Tells of the session message that was taken, if there was one; whether there was.
    #[inline]
    fn tell_admin(&mut self) -> bool {
        let Some(seq) = self.told.take() else {
            return false;
        };
        self.events.push(Event::Admin { seq: SeqNo(seq) });
        true
    }

    fn next_event(&mut self) -> Option<Event> {
        let last = || self.ending.take();
        let event = self.events.pop().or_else(last);
        if event.is_none() && core::mem::take(&mut self.cancels) {
            let peer = self.writer.peer;
            return Some(Event::CancelOrders { peer });
        }
        event
    }

    fn forget_connection(&mut self, now: Nanos) {
        self.follow_clock(now);
        self.out.clear();
        self.gap = None;
        self.resend = None;
        self.resend_verdict = None;
        self.told = None;
        self.not_kept = None;
        self.seen_max = 0;
        self.test_outstanding = false;
        self.heartbeat_ns = 0;
        self.asked = Asked::default();
        self.peer_message_max = usize::MAX;
        (self.was_on, self.logged_out) = (false, false);
        if let Some(pace) = &mut self.pace_out {
            pace.forget();
        }
    }

    // ---- time -------------------------------------------------------------------------------------------------

    /// UTC now: what messages are stamped with and hours are told by.
    #[inline]
    fn wall(&self) -> Nanos {
        self.wall_of(self.now)
    }

    #[inline]
    fn wall_of(&self, now: Nanos) -> Nanos {
        Nanos(now.0.saturating_add_signed(self.wall_offset_ns))
    }

    /// Takes the time. A clock that was set back takes everything that is measured from a point in time with it, or nothing
    /// would be due for as long; one that was set forward looks like silence.
    #[inline]
    fn follow_clock(&mut self, now: Nanos) {
        if now < self.now {
            self.set_back(self.now.since(now));
        }
        self.now = now;
    }

    #[cold]
    fn set_back(&mut self, by_ns: u64) {
        let gap = self.gap.as_mut().map(|gap| &mut gap.since);
        let points = [
            &mut self.status_since,
            &mut self.last_sent,
            &mut self.last_received,
        ];
        for point in points.into_iter().chain(gap).chain(self.cancel_at.as_mut()) {
            *point = Nanos(point.0.saturating_sub(by_ns));
        }
    }

    fn timeout(&mut self) {
        self.keep_hours();
        self.cancel_when_due();
        let waited = self.now.since(self.status_since);
        match self.status {
            Status::LogonSent | Status::LogonAwaited if waited >= self.config.logon_timeout_ns => {
                self.disconnect(DisconnectReason::LogonTimeout, Reason::EMPTY)
            }
            Status::LogoutSent if waited >= self.config.logout_timeout_ns => {
                self.disconnect(DisconnectReason::LogoutTimeout, Reason::EMPTY)
            }
            Status::Active => self.active_timeout(),
            _ => {}
        }
    }

    fn active_timeout(&mut self) {
        if let Some(gap) = self.gap
            && self.now.since(gap.since) >= self.config.resend_timeout_ns
        {
            if gap.attempts >= RESEND_ATTEMPTS {
                return self
                    .logout_and_disconnect(DisconnectReason::ResendTimeout, "Resend request not answered");
            }
            self.request_resend(gap.upto, gap.attempts + 1);
        }
        if self.heartbeat_ns == 0 {
            return;
        }
        let silence = self.now.since(self.last_received);
        if self.silence_max_ns().is_some_and(|most| silence >= most) {
            return self.disconnect(DisconnectReason::HeartbeatTimeout, Reason::EMPTY);
        }
        if self.test_after_ns().is_some_and(|after| silence >= after) && !self.test_outstanding {
            self.test_outstanding = true;
            self.send_admin(b"1", |e| e.text(tag::TEST_REQ_ID, b"TEST"));
        }
        // While the peer is being tested it hears from us anyway, until its time is over.
        let is_tested = self.test_outstanding && self.config.silence_max_permille > 0;
        if !is_tested && self.now.since(self.last_sent) >= self.heartbeat_ns {
            self.send_admin(b"0", |_| {});
        }
    }

    /// How long a silence is tested, if it is.
    fn test_after_ns(&self) -> Option<u64> {
        self.of_heartbeat(self.config.test_after_permille)
    }

    /// How long a silence ends the session, if it does.
    fn silence_max_ns(&self) -> Option<u64> {
        self.of_heartbeat(self.config.silence_max_permille)
    }

    fn of_heartbeat(&self, permille: u32) -> Option<u64> {
        (permille > 0).then(|| (self.heartbeat_ns / 1_000).saturating_mul(permille.into()))
    }

    fn next_timeout(&self) -> Option<Nanos> {
        let paced = self.pace_out.as_ref();
        let paced = paced.and_then(|pace| pace.resumes(self.now, self.resend.is_some()));
        [
            self.status_timeout(),
            self.cancel_at,
            self.hours_timeout(),
            paced.filter(|_| !self.is_over()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn status_timeout(&self) -> Option<Nanos> {
        match self.status {
            Status::Disconnected | Status::Closing => None,
            Status::LogonSent | Status::LogonAwaited => {
                Some(self.status_since.after(self.config.logon_timeout_ns))
            }
            Status::LogoutSent => Some(self.status_since.after(self.config.logout_timeout_ns)),
            Status::Active => {
                let gap = self.gap.map(|gap| gap.since.after(self.config.resend_timeout_ns));
                let after = |ns: Option<u64>| ns.map(|ns| self.last_received.after(ns));
                let end = after(self.silence_max_ns());
                let test = after(self.test_after_ns()).filter(|_| !self.test_outstanding);
                let is_tested = self.test_outstanding && end.is_some();
                let heartbeat = (!is_tested).then(|| self.last_sent.after(self.heartbeat_ns));
                let beats = [end, test, heartbeat].map(|at| at.filter(|_| self.heartbeat_ns > 0));
                beats.into_iter().chain([gap]).flatten().min()
            }
        }
    }

    // ---- receiving --------------------------------------------------------------------------------------------

    /// Bytes that are no message: skipped, but nobody logs on with them.
    #[cold]
    fn garbled(&mut self, why: Garbled) {
        self.counters.bump(Counter::FixMalformed);
        self.last_garbled = Some(why);
        if matches!(self.status, Status::LogonAwaited | Status::LogonSent) {
            self.disconnect(DisconnectReason::LogonRefused, Reason::lossy(b"garbled"));
        }
    }

    fn process(&mut self, m: &Message<'_>, held: bool) -> Outcome {
        self.last_received = self.now;
        self.test_outstanding = false;
        let logged_on = matches!(self.status, Status::Active | Status::LogoutSent);
        let h = Header::decode(m);
        if m.value(m.fields()[0]) != self.config.version.begin_string() {
            return self.violation("Incorrect BeginString", logged_on);
        }
        let Some(seq) = h.seq else {
            return self.violation("MsgSeqNum missing or not a number", logged_on);
        };
        if !logged_on && m.msg_type() != b"A" {
            return self.before_logon(m);
        }
        // What was kept behind a gap was checked when it came.
        if !held && let Some(fault) = self.check(m) {
            return self.reject_and_accept(m, seq, fault);
        }
        if let Some(fault) = h.fault {
            return self.reject_and_accept(m, seq, fault);
        }
        if !self.identities_match(m, &h) {
            return self.reject_and_end(
                m,
                seq,
                Fault::no_tag(SessionRejectReason::CompIdProblem),
                logged_on,
            );
        }
        if !held && !self.on_time(&h) {
            let late = Fault::no_tag(SessionRejectReason::SendingTimeAccuracy);
            return self.reject_and_end(m, seq, late, logged_on);
        }
        if !logged_on {
            return self.on_logon(m, &h, seq);
        }
        self.sequenced(m, &h, seq, held)
    }

    /// What the dictionary finds wrong with a message; nothing if there is none.
    #[inline]
    fn check(&mut self, m: &Message<'_>) -> Option<Fault> {
        let Checker { rules, validator } = self.checker.as_mut()?;
        if m.fault.is_some() {
            return m.fault;
        }
        validator
            .check(&rules.session, &rules.application, m, rules.validation)
            .err()
    }

    fn identities_match(&self, m: &Message<'_>, h: &Header<'_>) -> bool {
        if !self.config.checks_comp_ids && self.status != Status::LogonAwaited {
            return true;
        }
        let anybody = self.status == Status::LogonAwaited && self.config.target.is_empty();
        let peer = if anybody {
            CompId::new(h.sender).is_some()
        } else {
            h.sender == self.writer.peer.as_bytes()
        };
        peer && !h.sender.is_empty()
            && h.target == self.config.sender.as_bytes()
            && (self.config.subs == SubIds::default() || self.subs_match(m))
    }

    /// Sub and location ids, as far as they are configured.
    #[cold]
    fn subs_match(&self, m: &Message<'_>) -> bool {
        let subs = &self.config.subs;
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

    fn on_time(&self, h: &Header<'_>) -> bool {
        let is_right = |wall: Nanos| wall.0.abs_diff(h.sending_time.0) <= self.config.latency_max_ns;
        self.config.latency_max_ns == 0 || is_right(self.wall()) || {
            let (before_ns, until) = self.wall_before;
            self.now < until && is_right(Nanos(self.now.0.saturating_add_signed(before_ns)))
        }
    }

    /// Anything but a Logon before the logon ends the connection without an answer. A Logout or Reject is the peer's
    /// refusal of ours.
    fn before_logon(&mut self, m: &Message<'_>) -> Outcome {
        let text = m
            .find(tag::TEXT)
            .map_or(Reason::EMPTY, |f| Reason::lossy(m.value(f)));
        self.disconnect(DisconnectReason::LogonRefused, text);
        Outcome::Done
    }

    /// The message cannot be placed in the session: logout (when logged on) and disconnect.
    fn violation(&mut self, text: &str, logged_on: bool) -> Outcome {
        match logged_on {
            true => self.logout_and_disconnect(DisconnectReason::ProtocolViolation, text),
            false => self.disconnect(DisconnectReason::LogonRefused, Reason::lossy(text.as_bytes())),
        }
        Outcome::Done
    }

    fn reject_and_end(&mut self, m: &Message<'_>, seq: u64, fault: Fault, logged_on: bool) -> Outcome {
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
    fn reject_and_accept(&mut self, m: &Message<'_>, seq: u64, fault: Fault) -> Outcome {
        if !matches!(self.status, Status::Active | Status::LogoutSent) {
            return self.violation(fault.reason.text(), false);
        }
        self.send_reject(m, seq, fault);
        if seq == self.store.next_in() {
            self.advance(seq + 1);
        }
        Outcome::Done
    }

    fn sequenced(&mut self, m: &Message<'_>, h: &Header<'_>, seq: u64, held: bool) -> Outcome {
        //= FIX 4.4 vol 2, "Sequence Reset": in reset mode MsgSeqNum is ignored.
        let gap_fill = m.find(tag::GAP_FILL_FLAG).is_some_and(|f| m.value(f) == b"Y");
        if m.msg_type() == b"4" && !gap_fill {
            return self.on_sequence_reset(m, seq);
        }
        //= FIX 4.4 vol 2, "Logon": ResetSeqNumFlag may be used while logged on.
        if m.msg_type() == b"A"
            && m.find(tag::RESET_SEQ_NUM_FLAG)
                .is_some_and(|f| m.value(f) == b"Y")
        {
            return self.on_logon(m, h, seq);
        }
        let expected = self.store.next_in();
        //= FIX 4.4 vol 2, "Logout": it is confirmed whatever its number; what is missing is asked for at the next logon.
        if m.msg_type() == b"5" && seq > expected {
            self.took(seq);
            self.on_logout(m);
            return Outcome::Done;
        }
        if m.msg_type() == b"5" && seq < expected && !h.poss_dup {
            return self.on_low_logout(seq);
        }
        if seq > expected {
            return self.too_high(m, seq);
        }
        if seq < expected {
            // A kept message may meanwhile have been resent.
            return match m.msg_type() {
                _ if held => Outcome::Done,
                // Who asks again in despair over numbers is answered, whatever the request's own.
                b"2" => {
                    self.on_resend_request(m, seq);
                    Outcome::Done
                }
                _ => self.too_low(m, h, seq),
            };
        }
        if h.poss_dup && h.orig_sending_time.is_some_and(|orig| orig > h.sending_time) {
            let late = Fault::no_tag(SessionRejectReason::SendingTimeAccuracy);
            return self.reject_and_end(m, seq, late, true);
        }
        let fault = m.malformed().filter(|_| self.checker.is_none());
        let is_session = is_admin(m.msg_type());
        if !is_session
            && self.pace_in.is_some()
            && let Some(outcome) = self.beyond_rate(m, h, seq)
        {
            return outcome;
        }
        if !is_session && fault.is_none() {
            self.counters.bump(Counter::FixMessagesIn);
        }
        if self.config.any_message && !is_session && fault.is_none() {
            self.events.push(Event::Message {
                seq: SeqNo(seq),
                poss_dup: h.poss_dup,
                poss_resend: h.poss_resend,
                sending_time: h.sending_time,
            });
            return Outcome::Handed;
        }
        self.advance(seq + 1);
        match fault {
            Some(fault) => self.send_reject(m, seq, fault),
            None => self.accept(m, h, seq),
        }
        Outcome::Done
    }

    /// A gap: asks for what is missing. A ResendRequest is answered all the same, else two sides that both miss
    /// something would wait for each other; so is a Logout.
    fn too_high(&mut self, m: &Message<'_>, seq: u64) -> Outcome {
        let expected = self.store.next_in();
        let is_request = m.msg_type() == b"2";
        if !is_request {
            // A request is answered now and not missed later.
            self.seen_max = self.seen_max.max(seq);
        }
        if self.gap.is_none() {
            self.events.push(Event::Gap {
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

    fn too_low(&mut self, m: &Message<'_>, h: &Header<'_>, seq: u64) -> Outcome {
        if !h.poss_dup {
            let text = self.too_low_text(seq);
            self.logout_and_disconnect(DisconnectReason::SequenceTooLow, text.as_str());
            return Outcome::Done;
        }
        match h.orig_sending_time {
            None if self.config.wants_orig_sending_time => {
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

    fn too_low_text(&self, seq: u64) -> Reason {
        let mut text = Reason::EMPTY;
        let expected = self.store.next_in();
        let _ = write!(text, "MsgSeqNum too low, expecting {expected} but received {seq}");
        text
    }

    /// The next message is `next_in`.
    fn advance(&mut self, next_in: u64) {
        self.store.set_next_in(next_in);
        if let Some(processed) = &mut self.writer.processed {
            *processed = next_in - 1;
        }
        if let Some(gap) = &mut self.gap {
            (gap.since, gap.attempts) = (self.now, 1);
            if next_in > gap.upto {
                self.gap = None;
            } else if next_in > gap.asked_upto {
                let upto = gap.upto;
                self.request_resend(upto, 1);
            }
        }
    }

    fn accept(&mut self, m: &Message<'_>, h: &Header<'_>, seq: u64) {
        if is_admin(m.msg_type()) {
            self.took(seq);
        }
        match m.msg_type() {
            b"0" | b"A" => {}
            b"1" => self.on_test_request(m, seq),
            b"2" => self.on_resend_request(m, seq),
            b"3" => self.on_reject(m),
            b"4" => self.on_gap_fill(m, seq),
            b"5" => self.on_logout(m),
            _ => self.on_app(m, h, seq),
        }
    }

    fn on_app(&mut self, m: &Message<'_>, h: &Header<'_>, seq: u64) {
        match AppMessage::decode(m) {
            Ok(Some(message)) => self.events.push(Event::App {
                seq: SeqNo(seq),
                poss_dup: h.poss_dup,
                poss_resend: h.poss_resend,
                sending_time: h.sending_time,
                message,
            }),
            Ok(None) => {
                let reason = business_reject_reason::UNSUPPORTED_MESSAGE_TYPE;
                self.refuse(m, seq, reason, UNSUPPORTED);
            }
            Err(fault) => self.send_reject(m, seq, fault),
        }
    }

    fn refuse(&mut self, m: &Message<'_>, seq: u64, reason: u16, text: &str) {
        let Some(ref_msg_type) = MsgType::new(m.msg_type()) else {
            let fault = Fault::new(SessionRejectReason::InvalidMsgType, tag::MSG_TYPE);
            return self.send_reject(m, seq, fault);
        };
        if !self.config.version.rejects_in_fields() {
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
        let reject = AppMessage::BusinessMessageReject(BusinessMessageReject {
            ref_seq: SeqNo(seq),
            ref_msg_type,
            ref_id: Id::EMPTY,
            reason,
            text: Reason::lossy(text.as_bytes()),
        });
        let version = self.config.version.appl_ver_id();
        let sent = self.send_encoded(reject.msg_type(), true, |e, stamp| {
            reject.encode_body(e, stamp);
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

    fn on_test_request(&mut self, m: &Message<'_>, seq: u64) {
        match m.find(tag::TEST_REQ_ID) {
            Some(id) => self.send_admin(b"0", |e| e.copy(tag::TEST_REQ_ID, m.value(id))),
            None => self.send_reject(m, seq, Fault::missing(tag::TEST_REQ_ID)),
        }
    }

    fn on_resend_request(&mut self, m: &Message<'_>, seq: u64) {
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
            if self.asked.times >= self.config.resend_repeats_max.max(1) {
                let mut text = Reason::EMPTY;
                let _ = write!(text, "ResendRequest from {begin} on repeated too often");
                return self.logout_and_disconnect(DisconnectReason::ResendLoop, text.as_str());
            }
        } else {
            self.asked = Asked { begin, times: 0 };
        }
        self.resend = Some(match self.resend {
            Some(r) => Resend {
                next: r.next.min(begin),
                last: r.last.max(last),
            },
            None => Resend { next: begin, last },
        });
    }

    fn on_reject(&mut self, m: &Message<'_>) {
        let number = |tag| m.find(tag).and_then(|f| m.unsigned(f).ok());
        self.events.push(Event::Rejected {
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

    fn new_seq_no(m: &Message<'_>) -> Result<u64, Fault> {
        m.find(tag::NEW_SEQ_NO)
            .ok_or(Fault::missing(tag::NEW_SEQ_NO))
            .and_then(|f| m.unsigned(f))
    }

    fn on_gap_fill(&mut self, m: &Message<'_>, seq: u64) {
        match Self::new_seq_no(m) {
            Ok(next) if next > seq => self.advance(next),
            Ok(_) => self.send_reject(m, seq, Fault::no_tag(SessionRejectReason::IncorrectValue)),
            Err(fault) => self.send_reject(m, seq, fault),
        }
    }

    fn on_sequence_reset(&mut self, m: &Message<'_>, seq: u64) -> Outcome {
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

    // ---- sending ----------------------------------------------------------------------------------------------

    /// Queues a session message. If there is no room the session ends: it would leave a hole no resend could explain.
    fn send_admin(&mut self, msg_type: &[u8], body: impl FnOnce(&mut Encoder<'_>)) {
        if self.status == Status::Closing {
            return;
        }
        let seq = self.store.next_out();
        let wall = self.wall();
        let (mut e, _) = self.writer.header(msg_type, seq, wall);
        body(&mut e);
        let Ok(message) = e.finish() else { return };
        if self.out.push(message) {
            self.store.set_next_out(seq + 1);
            self.last_sent = self.now;
        } else {
            self.disconnect(DisconnectReason::PeerTooSlow, Reason::EMPTY);
        }
    }

    fn send_encoded(
        &mut self,
        msg_type: &[u8],
        is_kept: bool,
        body: impl FnOnce(&mut Encoder<'_>, &mut Stamp),
    ) -> Result<SeqNo, SendError> {
        let seq = self.store.next_out();
        let wall = self.wall();
        let (mut e, stamp) = self.writer.header(msg_type, seq, wall);
        body(&mut e, stamp);
        let bytes = e.finish().map_err(|_| SendError::NotEncodable)?;
        if bytes.len() > self.peer_message_max {
            return Err(SendError::TooLong);
        }
        if bytes.len() > self.out.room() {
            return Err(SendError::Backlog);
        }
        match is_kept && self.config.keeps_messages {
            true => {
                if let Err(failed) = self.store.append(seq, bytes) {
                    return Err(self.store_failed(failed));
                }
            }
            false => self.store.set_next_out(seq + 1),
        }
        self.out.push(bytes);
        self.last_sent = self.now;
        self.counters.bump(Counter::FixMessagesOut);
        Ok(SeqNo(seq))
    }

    /// The header of a prepared message: sequence number and time are written when it is sent.
    fn put_prepared_header(&self, e: &mut Encoder<'_>, kind: &[u8], time: &[u8]) {
        e.text(tag::MSG_TYPE, kind);
        e.text(tag::MSG_SEQ_NUM, b"00000000");
        e.text(tag::SENDER_COMP_ID, self.config.sender.as_bytes());
        e.text_if(tag::SENDER_SUB_ID, self.writer.subs.sender_sub.as_bytes());
        e.text(tag::SENDING_TIME, time);
        e.text(tag::TARGET_COMP_ID, self.writer.peer.as_bytes());
        put_subs(e, &self.writer.subs);
    }

    /// The number of a message that is transmitted at once, if it may be.
    #[inline]
    fn prepare_to_send(&mut self, now: Nanos) -> Result<u64, SendError> {
        if self.status != Status::Active {
            return Err(SendError::NotLoggedOn);
        }
        if !self.out.is_empty() {
            return Err(SendError::Backlog);
        }
        self.follow_clock(now);
        if self.pace_out.is_some() {
            self.pace_at_once()?;
        }
        Ok(self.store.next_out())
    }

    /// A message is with the caller, to be transmitted.
    #[inline]
    fn count_sent(&mut self, now: Nanos, len: usize) {
        self.last_sent = now;
        self.counters.bump(Counter::FixMessagesOut);
        self.counters.add(Counter::FixBytesOut, len as u64);
    }

    #[inline]
    fn encode_order<'t>(
        &mut self,
        now: Nanos,
        template: &'t mut OrderTemplate,
        order: &NewOrder,
        is_kept: bool,
    ) -> Result<&'t [u8], SendError> {
        let seq = self.prepare_to_send(now)?;
        if !template.patch(self.wall_of(now), seq, order) {
            return self.encode_beyond_template(template, order, is_kept);
        }
        let message = template.message();
        self.keep(seq, message, is_kept)?;
        self.count_sent(now, message.len());
        Ok(message)
    }

    /// A message has its number, and is kept for resends or not.
    #[inline]
    fn keep(&mut self, seq: u64, message: &[u8], is_kept: bool) -> Result<(), SendError> {
        let kept = match is_kept && self.config.keeps_messages {
            true => self.store.append(seq, message),
            false => {
                self.store.set_next_out(seq + 1);
                Ok(())
            }
        };
        // It is transmitted as soon as the caller has it.
        let kept = kept.and_then(|()| self.store.settle());
        kept.map_err(|failed| self.store_failed(failed))
    }

    /// What was put into the store may be sent; the session ends otherwise.
    #[inline]
    fn settle(&mut self) -> bool {
        let settled = self.store.settle();
        if let Err(failed) = settled {
            self.store_failed(failed);
        }
        settled.is_ok()
    }

    /// The store did not take a message: the session ends, unless it is the message alone that is wrong.
    #[cold]
    fn store_failed(&mut self, failed: StoreFailed) -> SendError {
        if failed != StoreFailed::TooLong {
            self.out.clear();
            self.disconnect(
                DisconnectReason::StoreFailed,
                Reason::lossy(failed.text().as_bytes()),
            );
        }
        SendError::StoreFailed
    }

    #[cold]
    fn encode_beyond_template<'t>(
        &mut self,
        template: &'t mut OrderTemplate,
        order: &NewOrder,
        is_kept: bool,
    ) -> Result<&'t [u8], SendError> {
        let seq = self.store.next_out();
        let message = AppMessage::NewOrderSingle(crate::NewOrderSingle {
            cl_ord_id: order.id.into(),
            symbol: template.symbol(),
            side: order.side,
            transact_time: self.wall(),
            qty: order.qty,
            order_type: OrderType::Limit,
            price: Some(order.price),
            stop: None,
            time_in_force: order.time_in_force,
            cause: Some(order.cause),
        });
        let wall = self.wall();
        let (mut e, stamp) = self.writer.header(b"D", seq, wall);
        message.encode_body(&mut e, stamp);
        let bytes = e.finish().map_err(|_| SendError::NotEncodable)?;
        let copy = template.copy_of(bytes).ok_or(SendError::NotEncodable)?;
        self.keep(seq, copy, is_kept)?;
        self.count_sent(self.now, copy.len());
        Ok(copy)
    }

    fn send_logout(&mut self, text: &Reason) {
        self.send_admin(b"5", |e| e.text_if(tag::TEXT, text.as_bytes()));
    }

    fn send_reject(&mut self, m: &Message<'_>, seq: u64, fault: Fault) {
        self.counters.bump(Counter::FixRejects);
        let version = self.config.version;
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

    fn logout_and_disconnect(&mut self, reason: DisconnectReason, text: &str) {
        let text = Reason::lossy(text.as_bytes());
        self.send_logout(&text);
        self.disconnect(reason, text);
    }

    // ---- gaps and resends -------------------------------------------------------------------------------------

    /// Asks for everything from the next expected message on; what arrives up to `upto` is the answer.
    fn request_resend(&mut self, upto: u64, attempts: u8) {
        let begin = self.store.next_in();
        let (end, asked_upto) = match self.config.resend_chunk {
            0 => (self.config.version.resend_to_end(), upto),
            chunk => {
                let end = upto.min(begin + (chunk - 1).min(u64::MAX / 4));
                (end, end)
            }
        };
        self.gap = Some(Gap {
            upto,
            asked_upto,
            since: self.now,
            attempts,
        });
        self.counters.bump(Counter::FixResends);
        self.send_admin(b"2", |e| {
            e.unsigned(tag::BEGIN_SEQ_NO, begin);
            e.unsigned(tag::END_SEQ_NO, end);
        });
    }

    /// A gap has been filled, but of the messages after it some found no room: asks for them.
    fn request_what_was_dropped(&mut self) {
        if self.gap.is_none() && self.seen_max >= self.store.next_in() {
            self.request_resend(self.seen_max, 1);
        }
    }

    /// Queues the next message of a resend: a stored one again, or one gap fill for a run of others.
    fn resend_next(&mut self) {
        let Some(resend) = self
            .resend
            .filter(|_| matches!(self.status, Status::Active | Status::LogoutSent))
        else {
            return;
        };
        if let Some(pace) = &mut self.pace_out
            && !pace.admits(self.now)
        {
            return;
        }
        let mut next = resend.next;
        if self.store.get(next).is_none() {
            let kept = self.store.next_kept(next);
            next = kept.unwrap_or(u64::MAX).min(resend.last + 1);
        }
        let verdict = match self.resend_verdict {
            _ if !self.config.asks_about_resends => Some(true),
            Some((seq, may)) if seq == next => Some(may),
            _ => None,
        };
        let queued = if next > resend.next {
            self.tell_not_kept(resend.next, next);
            self.queue_gap_fill(resend.next, next)
        } else if verdict == Some(false) {
            self.resend_verdict = None;
            next += 1;
            self.queue_gap_fill(resend.next, next)
        } else if verdict.is_none() {
            return;
        } else {
            self.resend_verdict = None;
            next += 1;
            if let Some(pace) = &mut self.pace_out {
                pace.take(self.now);
            }
            self.queue_again(resend.next)
        };
        if queued {
            self.last_sent = self.now;
        }
        self.resend = (next <= resend.last).then_some(Resend {
            next,
            last: resend.last,
        });
    }

    /// Says which of the numbers that are filled were of messages that are gone; what finds no room is told with the next.
    fn tell_not_kept(&mut self, from: u64, to: u64) {
        let now = self.store.not_kept(from, to);
        let both = [self.not_kept.take(), now].into_iter().flatten();
        let Some(gone) = both.reduce(NotKept::and) else {
            return;
        };
        if self.events.room() <= EVENTS_PER_MESSAGE {
            self.not_kept = Some(gone);
            return;
        }
        self.events.push(Event::NotKept {
            first: SeqNo(gone.first),
            last: SeqNo(gone.last),
            count: gone.count,
        });
    }

    fn queue_gap_fill(&mut self, seq: u64, next: u64) -> bool {
        let wall = self.wall();
        let Writer {
            scratch,
            version,
            stamp,
            sender,
            peer,
            subs,
            processed,
        } = &mut self.writer;
        let mut e = Encoder::new(scratch, *version);
        let time = stamp.format(wall);
        e.text(tag::MSG_TYPE, b"4");
        e.unsigned(tag::MSG_SEQ_NUM, seq);
        e.char(tag::POSS_DUP_FLAG, b'Y');
        e.text(tag::SENDER_COMP_ID, sender.as_bytes());
        e.text_if(tag::SENDER_SUB_ID, subs.sender_sub.as_bytes());
        e.text(tag::SENDING_TIME, time);
        e.text(tag::TARGET_COMP_ID, peer.as_bytes());
        put_subs(&mut e, subs);
        e.text(tag::ORIG_SENDING_TIME, time);
        if let Some(processed) = processed {
            e.unsigned(tag::LAST_MSG_SEQ_NUM_PROCESSED, *processed);
        }
        e.unsigned(tag::NEW_SEQ_NO, next);
        e.char(tag::GAP_FILL_FLAG, b'Y');
        e.finish().is_ok_and(|message| self.out.push(message))
    }

    /// The stored message with PossDupFlag, a new SendingTime and the old one as OrigSendingTime.
    fn queue_again(&mut self, seq: u64) -> bool {
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

/// Where a message came from on behalf of others, a reject goes back to; in the order of the tags written.
const REVERSE_ROUTE: [(u32, u32); 6] = [
    (128, 115),
    (129, 116),
    (115, 128),
    (116, 129),
    (145, 144),
    (144, 145),
];

fn put_reverse_route(e: &mut Encoder<'_>, m: &Message<'_>, version: Version) {
    let header = m.fields().iter().take_while(|f| is_header(f.tag));
    if header
        .clone()
        .all(|f| !matches!(f.tag, 115 | 116 | 128 | 129 | 144 | 145))
    {
        return;
    }
    let is_there = |to| version.is_since_41() || !matches!(to, 144 | 145);
    for (from, to) in REVERSE_ROUTE.into_iter().filter(|(_, to)| is_there(*to)) {
        if let Some(field) = header.clone().find(|f| f.tag == from) {
            e.text_if(to, m.value(*field));
        }
    }
}

/// Writes the header of a stored message for its resend; the fields after it.
fn put_again<'m>(
    e: &mut Encoder<'_>,
    stored: &'m [u8],
    time: &[u8],
    processed: Option<u64>,
) -> Option<&'m [u8]> {
    let body_end = stored.len().checked_sub(7)?;
    let mut at = 0;
    let mut sent_at: &[u8] = b"";
    while at < body_end {
        let len = stored[at..body_end].iter().position(|&b| b == crate::scan::SOH)?;
        let field = &stored[at..at + len];
        let equals = field.iter().position(|&b| b == b'=')?;
        let (tag, value) = (
            crate::number::parse_plain(&field[..equals])? as u32,
            &field[equals + 1..],
        );
        match tag {
            tag::BEGIN_STRING | tag::BODY_LENGTH => {}
            tag::MSG_SEQ_NUM => {
                e.text(tag, value);
                e.char(tag::POSS_DUP_FLAG, b'Y');
            }
            tag::SENDING_TIME => {
                // Our clock may have been set back since. SendingTime is what the clock says now, or the other side finds it inaccurate; an
                // OrigSendingTime after it would end the session as well.
                e.text(tag, time);
                sent_at = value.min(time);
            }
            tag::LAST_MSG_SEQ_NUM_PROCESSED if processed.is_some() => {
                e.unsigned(tag, processed.unwrap_or_default());
            }
            _ if is_header(tag) => e.text(tag, value),
            _ => break,
        }
        at += len + 1;
    }
    e.text(tag::ORIG_SENDING_TIME, sent_at);
    stored.get(at..body_end)
}

persist!(value enum Status {
    0 => Disconnected, 1 => LogonSent, 2 => LogonAwaited, 3 => Active, 4 => LogoutSent, 5 => Closing,
});
persist!(value enum DisconnectReason {
    0 => LogoutComplete, 1 => PeerLogout, 2 => LogonTimeout, 3 => LogonRefused, 4 => LogoutTimeout, 5 => HeartbeatTimeout,
    6 => SequenceTooLow, 7 => ResendTimeout, 8 => ResendLoop, 9 => Throttled, 10 => ProtocolViolation, 11 => PeerTooSlow,
    12 => StoreFailed,
});
persist!(value enum Event {
    0 => LogonRequested { peer },
    1 => LoggedOn { peer, heartbeat_s, reset },
    2 => App { seq, poss_dup, poss_resend, sending_time, message },
    3 => Message { seq, poss_dup, poss_resend, sending_time },
    4 => Admin { seq },
    5 => Gap { expected, received },
    6 => Rejected { ref_seq, ref_tag, reason, text },
    7 => NotKept { first, last, count },
    8 => CancelOrders { peer },
    9 => Disconnect { reason, text },
});
persist!(value enum Handed {
    0 => Nothing, 1 => Received(length), 2 => Kept, 3 => Logon(length), 4 => Told(length), 5 => ToldKept,
});
persist!(value struct Gap { upto, asked_upto, since, attempts });
persist!(value struct Resend { next, last });
persist!(value struct Asked { begin, times });
// Its stamp is the text of a time, made again; the rest is as the configuration says.
persist!(struct Writer { sender, peer, subs, processed } not { scratch, version, stamp });
persist!(struct Session<S: StoreState> { core, received, early, handed } not { index });

/// A store whose state is saved with its session.
pub trait StoreState: Store + Persist {}

impl<S: Store + Persist> StoreState for S {}

// What it counted is counted from the start of the process.
persist!(struct Core<S: Persist> {
    store, status, heartbeat_ns, now, wall_offset_ns, wall_before, status_since, last_sent, last_received, test_outstanding, gap, seen_max,
    resend, resend_verdict, told, not_kept, out, writer, events, ending, was_on, was_reset, logged_out, cancel_at, cancels, hours,
    peer_message_max, last_garbled, asked, peer_cancels,
} each { pace_out, pace_in } not { config, checker, logon_fields, counters });
