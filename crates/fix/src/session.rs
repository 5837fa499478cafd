//! The session state machine: bytes and time in, bytes and events out. FIX 4.4 with errata 20030618, volume
//! 2; FIXT 1.1. What differs from version to version is in [`Version`].
//!
//! ```text
//!  transport connected ──► LogonSent (initiator) ──┐ Logon
//!                     └──► LogonAwaited (acceptor) ─┴──► Active ──► LogoutSent ──► Closing ──► Disconnected
//! ```
//! Logon and logout, resets and hours are in `logon`; what waits because of a message rate is in `pace`. A
//! session outlives its connections: sequence numbers and sent messages are in its [`Store`]. The order of
//! calls is always the same: one `handle_*` or `send`, then drain [`Session::poll_transmit`] and
//! [`Session::poll_event`], then look at [`Session::poll_timeout`]. After [`Event::Disconnect`] what is left
//! to transmit is sent, the transport is closed and [`Session::handle_disconnected`] called.

mod event;
mod logon;
mod pace;
mod parties;
mod receiving;
mod resends;
mod reserve;
mod sending;
mod state;
mod time;

pub use event::{DisconnectReason, Event, SendError, Status};
pub use logon::LogonRequest;
pub use reserve::{Again, PreparedHeader, Reservation};

use crate::buffer::{Bytes, Early, Ring};
use crate::config::SessionConfig;
use crate::decode::{Frame, Garbled, Index, Message, frame};
use crate::dict::{Dictionary, Validation, Validator};
use crate::encode::Encoder;
use crate::header::{Header, is_header};
use crate::message::business_reject_reason;
use crate::reject::Fault;
use crate::schedule::Hours;
use crate::store::{MemoryStore, Store};
use crate::tag;
use crate::text::CompId;
use crate::time::Stamp;
use crate::version::Version;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use pace::{PaceIn, PaceOut};
use parties::Parties;
use state::{ConnectionState, Gaps, Pace, Resending, SessionClock, SessionTerms, Silence, Telling};
use tickwire_market::{Counter, Counters, Nanos, SeqNo};
use tickwire_persist::{Persist, persist};

/// How long after our clock was set a peer may still stamp by what it was before, nanoseconds: programs look
/// at the clock once a second.
pub const CLOCK_SET_NS: u64 = 5 * Nanos::SECOND;

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
                store,
                status: Status::Disconnected,
                heartbeat_ns: 0,
                clock: SessionClock {
                    now: Nanos::ZERO,
                    wall_offset_ns: 0,
                    wall_before: (0, Nanos::ZERO),
                },
                silence: Silence {
                    status_since: Nanos::ZERO,
                    last_sent: Nanos::ZERO,
                    last_received: Nanos::ZERO,
                    test_outstanding: false,
                },
                gaps: Gaps {
                    gap: None,
                    seen_max: 0,
                },
                resending: Resending {
                    resend: None,
                    resend_verdict: None,
                    told: None,
                    not_kept: None,
                },
                out: Bytes::new(config.transmit_bytes.max(4096).max(2 * message_max)),
                writer: Writer {
                    scratch: vec![0; message_max].into_boxed_slice(),
                    version: config.version,
                    stamp: Stamp::new(config.precision),
                    parties: Parties::new(config.sender, config.target, config.subs),
                    processed: config.last_processed.then_some(0),
                },
                pace: Pace {
                    pace_out: config.throttle_out.map(PaceOut::new),
                    pace_in: config.throttle_in.map(PaceIn::new),
                },
                telling: Telling {
                    events: Ring::new(config.events.max(8)),
                    ending: None,
                },
                connection: ConnectionState {
                    was_on: false,
                    was_reset: false,
                    logged_out: false,
                    cancel_at: None,
                    cancels: false,
                },
                hours: None,
                peer_message_max: usize::MAX,
                last_garbled: None,
                logon_fields: Box::default(),
                peer_cancels: None,
                asked: Asked::default(),
                counters: Counters::default(),
                terms: SessionTerms {
                    config,
                    checker: rules.map(|rules| Checker {
                        validator: Validator::new(&rules.session, &rules.application),
                        rules,
                    }),
                },
            },
        }
    }

    /// For how long the peer was not heard when time was last told, in nanoseconds.
    pub fn silent_ns(&self) -> u64 {
        self.core.clock.now.since(self.core.silence.last_received)
    }

    /// Where the session stands.
    pub fn status(&self) -> Status {
        self.core.status
    }

    /// The peer's identity; empty on an acceptor for anybody before the first Logon.
    pub fn peer(&self) -> CompId {
        self.core.writer.parties.peer()
    }

    /// The configuration.
    pub fn config(&self) -> &SessionConfig {
        &self.core.terms.config
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

    /// Says how far UTC is from the `now` of all other calls, nanoseconds: 0 until it is said. Where `now` is
    /// of a clock that is never set, heartbeats and time-outs go on as they were while the system's clock is
    /// set by an hour; SendingTime, its check and the hours of the session follow UTC from the next message
    /// on.
    ///
    /// A peer on the same machine may notice later than we that its clock was set: for [`CLOCK_SET_NS`] a
    /// SendingTime that is right by what was said before is right, too. Say it before bytes are handed over
    /// that came after the clock was set.
    pub fn set_wall_offset(&mut self, offset_ns: i64) {
        let core = &mut self.core;
        core.clock.wall_before = (core.clock.wall_offset_ns, core.clock.now.after(CLOCK_SET_NS));
        core.clock.wall_offset_ns = offset_ns;
    }

    /// The transport is connected: an initiator logs on, an acceptor waits for the Logon.
    pub fn handle_connected(&mut self, now: Nanos) {
        self.forget_received();
        self.core.seldom().connected(now);
    }

    /// The transport is gone. What was not transmitted is forgotten; the peer will ask for it.
    pub fn handle_disconnected(&mut self, now: Nanos) {
        self.forget_received();
        self.core.seldom().disconnected(now);
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

    /// The application is done with the message, if there was one: only now it counts as received, so that
    /// one that was lost with the process is sent again. Whether there was one.
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
            self.core.step(self.core.store.next_in() + 1);
        }
        true
    }

    /// Bytes from the transport, cut anywhere. Returns how many were taken: all, unless events or the
    /// transmit queue have not been drained since; then drain and hand over the rest. When still none is
    /// taken, a logon waits for its answer or the peer is beyond its message rate: leave the rest to the
    /// transport until [`Session::is_reading`] again.
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

    /// Whether [`Session::handle_bytes`] would take bytes once events are drained. Not while the owner has to
    /// answer a Logon, nor while the peer is beyond its message rate and the receive buffer full;
    /// [`Session::poll_timeout`] tells when to look again.
    pub fn is_reading(&self) -> bool {
        let is_stopped = matches!(self.handed, Handed::Logon(_)) || self.core.is_held();
        !is_stopped || self.received.room() > 0
    }

    /// Time has passed: heartbeats, test requests, time-outs. May be called at any time.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.core.follow_clock(now);
        if self.core.is_held() && !self.received.is_empty() {
            // The peer has spoken; it is us who do not listen.
            self.core.silence.last_received = now;
        }
        self.pump();
        self.core.seldom().timeout();
    }

    /// Bytes to transmit, in order, as much as fits `buf`; `None` when there are none. `buf` must not be
    /// empty.
    pub fn poll_transmit<'b>(&mut self, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        if self.core.out.is_empty() {
            self.core.seldom().resend_next();
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
        if self.core.telling.events.is_empty() {
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
            .pace
            .pace_in
            .as_ref()
            .and_then(|pace| pace.resumes(self.core.clock.now));
        [
            self.core.next_timeout(),
            held.filter(|_| !self.received.is_empty()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Sends an application message: it waits for [`Session::poll_transmit`]. `fields` writes what follows
    /// TargetCompID, further header fields first; its second argument writes times. The message's number.
    ///
    /// # Errors
    /// Not logged on, no room or beyond the rate, or what was written is no message: nothing was sent.
    pub fn send(
        &mut self,
        now: Nanos,
        msg_type: &[u8],
        again: Again,
        fields: impl FnOnce(&mut Encoder<'_>, &mut Stamp),
    ) -> Result<SeqNo, SendError> {
        self.core.follow_clock(now);
        self.core.send_paced(msg_type, again, fields)
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
            self.core.seldom().refuse(&message, seq, reason, text);
        }
    }

    /// Answers it with a Reject (35=3): a field is missing or wrong.
    pub fn reject(&mut self, now: Nanos, fault: Fault) {
        self.core.follow_clock(now);
        if let Some(message) = handed_out(self.handed, &self.index, &self.received, &self.early)
            && let Some(seq) = Header::decode(&message).seq
        {
            self.core.seldom().send_reject(&message, seq, fault);
        }
    }

    /// The kept message that is to be sent again next, as it was sent the first time, with its number, where
    /// [`SessionConfig::asks_about_resends`]: nothing of the resend goes out before [`Session::decide_resend`]. Look here whenever
    /// [`Session::poll_transmit`] has no more.
    #[inline]
    pub fn resend_asked(&mut self) -> Option<(SeqNo, &[u8])> {
        let resend = self.core.resending.resend?;
        let is_decided = self
            .core
            .resending
            .resend_verdict
            .is_some_and(|(seq, _)| seq == resend.next);
        if !self.core.terms.config.asks_about_resends || is_decided || !self.core.out.is_empty() {
            return None;
        }
        let message = self.core.store.get(resend.next)?;
        Some((SeqNo(resend.next), message))
    }

    /// Whether the message of [`Session::resend_asked`] is sent again; a gap fill takes its place otherwise.
    pub fn decide_resend(&mut self, seq: SeqNo, may: bool) {
        self.core.resending.resend_verdict = Some((seq.0, may));
    }

    /// Begins the logout; [`Event::Disconnect`] follows. Without effect unless logged on.
    pub fn logout(&mut self, now: Nanos, text: &str) {
        self.core.follow_clock(now);
        self.core.seldom().log_out(text);
    }

    /// Leaves out the next `count` numbers of ours, as if messages had been lost: the peer asks for them and
    /// gets a gap fill. For trials of a peer.
    pub fn skip_numbers(&mut self, count: u64) {
        let next = self.core.store.next_out().saturating_add(count);
        self.core.store.set_next_out(next);
    }

    /// Whether everything is here that the peer has sent: it is logged on, and nothing is missing that it was
    /// asked for.
    pub fn is_caught_up(&self) -> bool {
        let core = &self.core;
        core.status == Status::Active && core.gaps.gap.is_none() && core.gaps.seen_max < core.store.next_in()
    }

    /// Whether the next logon begins with 1 anew, as [`SessionConfig::reset_on_logon`] says at first.
    pub fn set_reset_on_logon(&mut self, resets: bool) {
        self.core.terms.config.reset_on_logon = resets;
    }

    /// Asks with every Logon from the next one on whether the venue cancels, see
    /// [`SessionConfig::cancels_tag`].
    pub fn set_cancels_tag(&mut self, tag: u32) {
        self.core.terms.config.cancels_tag = tag;
    }

    /// What the peer's last Logon says in the field of [`SessionConfig::cancels_tag`]; `None` if it does not
    /// have it.
    pub fn peer_cancels(&self) -> Option<bool> {
        self.core.peer_cancels
    }

    /// Further fields of our Logon, written behind its own in this order: what a venue wants that no
    /// configuration knows.
    pub fn set_logon_fields(&mut self, fields: Box<[(u32, Box<[u8]>)]>) {
        self.core.logon_fields = fields;
    }

    /// Processes what has been received while there is room for events and no message is handed out; whether
    /// anything was.
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
                    // By reference: to move the message out of the result is to read it in words of 16 bytes,
                    // which waits until the words of eight that it was just written in are in the cache.
                    match &self.index.decode(bytes) {
                        Ok(message) => match self.core.process(message, false) {
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
                        Err(why) => self.core.seldom().garbled(*why),
                    }
                    if self.core.tell_admin() {
                        self.handed = Handed::Told(len);
                        return true;
                    }
                    (len, None)
                }
            };
            if let Some(why) = garbled {
                self.core.seldom().garbled(why);
            }
            self.received.consume(used);
            self.process_early();
            progress = true;
        }
        progress | self.process_early()
    }

    fn has_room(&self) -> bool {
        self.core.telling.events.room() >= EVENTS_PER_MESSAGE
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

/// No message makes more events: a logon and a gap, the request for the logon before them, and the word of
/// the message itself.
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
    parties: Parties,
    /// LastMsgSeqNumProcessed, where it is sent.
    processed: Option<u64>,
}

impl Writer {
    /// Begins a message: MsgType first, then the header's tags ascending.
    fn header(&mut self, msg_type: &[u8], seq: u64, now: Nanos) -> (Encoder<'_>, &mut Stamp) {
        let mut e = Encoder::new(&mut self.scratch, self.version);
        e.text(tag::MSG_TYPE, msg_type);
        e.unsigned(tag::MSG_SEQ_NUM, seq);
        self.parties.put(&mut e, &mut self.stamp, now);
        if let Some(processed) = self.processed {
            e.unsigned(tag::LAST_MSG_SEQ_NUM_PROCESSED, processed);
        }
        (e, &mut self.stamp)
    }
}

/// All of a session except the received bytes, so that a message can be borrowed while it is processed.
#[derive(Debug)]
struct Core<S: ?Sized> {
    terms: SessionTerms,
    status: Status,
    heartbeat_ns: u64,
    clock: SessionClock,
    silence: Silence,
    gaps: Gaps,
    resending: Resending,
    out: Bytes,
    writer: Writer,
    telling: Telling,
    connection: ConnectionState,
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
    pace: Pace,
    counters: Counters,
    store: S,
}

impl<S: Store> Core<S> {
    /// The same without the kind of its store: what is done seldom is compiled once, and not for every store
    /// in every crate that has one.
    #[inline(always)]
    fn seldom(&mut self) -> &mut Core<dyn Store + '_> {
        self
    }

    /// The next message is `next_in`.
    #[inline]
    fn step(&mut self, next_in: u64) {
        match self.gaps.gap.is_none() && self.writer.processed.is_none() {
            true => self.store.set_next_in(next_in),
            false => self.seldom().advance(next_in),
        }
    }
}

impl<S: Store + ?Sized> Core<S> {
    fn set_status(&mut self, status: Status) {
        self.status = status;
        self.silence.status_since = self.clock.now;
    }

    /// Nothing more is read on this connection.
    fn is_over(&self) -> bool {
        matches!(self.status, Status::Closing | Status::Disconnected)
    }

    /// The peer is beyond its message rate and has to wait.
    #[inline]
    fn is_held(&self) -> bool {
        self.pace
            .pace_in
            .as_ref()
            .is_some_and(|pace| pace.holds(self.clock.now))
    }

    /// Notes that a session message was taken.
    #[inline]
    fn took(&mut self, seq: u64) {
        self.resending.told = Some(seq).filter(|_| self.terms.config.tells_session_messages);
    }

    /// Tells of the session message that was taken, if there was one; whether there was.
    #[inline]
    fn tell_admin(&mut self) -> bool {
        let Some(seq) = self.resending.told.take() else {
            return false;
        };
        self.telling.events.push(Event::Admin { seq: SeqNo(seq) });
        true
    }

    fn next_event(&mut self) -> Option<Event> {
        let last = || self.telling.ending.take();
        let event = self.telling.events.pop().or_else(last);
        if event.is_none() && core::mem::take(&mut self.connection.cancels) {
            let peer = self.writer.parties.peer();
            return Some(Event::CancelOrders { peer });
        }
        event
    }

    fn forget_connection(&mut self, now: Nanos) {
        self.follow_clock(now);
        self.out.clear();
        self.gaps.gap = None;
        self.resending.resend = None;
        self.resending.resend_verdict = None;
        self.resending.told = None;
        self.resending.not_kept = None;
        self.gaps.seen_max = 0;
        self.silence.test_outstanding = false;
        self.heartbeat_ns = 0;
        self.asked = Asked::default();
        self.peer_message_max = usize::MAX;
        (self.connection.was_on, self.connection.logged_out) = (false, false);
        if let Some(pace) = &mut self.pace.pace_out {
            pace.forget();
        }
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
                // Our clock may have been set back since. SendingTime is what the clock says now, or the
                // other side finds it inaccurate; an OrigSendingTime after it would end the session as well.
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
persist!(struct Writer { parties, processed } not { scratch, version, stamp });
persist!(struct Session<S: StoreState> { core, received, early, handed } not { index });

/// A store whose state is saved with its session.
pub trait StoreState: Store + Persist {}

impl<S: Store + Persist> StoreState for S {}

// What it counted is counted from the start of the process.
persist!(struct Core<S: Persist> {
    store, status, heartbeat_ns, clock, silence, gaps, resending, out, writer, telling, connection, hours, peer_message_max, last_garbled, asked,
    peer_cancels, pace,
} not { terms, logon_fields, counters });
