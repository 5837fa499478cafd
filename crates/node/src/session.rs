//! What a venue's session says and how it is taken up, without sockets: trader, strategies and quoter have
//! this one, live and in memory.
//!
//! ```text
//! bytes ─► take_bytes ─► HotPath::next_said ─► answers (orders, quotes) ─► strategies
//!                                        └► Said: what the thread has to decide on
//! ```
//! A session that is logged on may miss what the venue had said before, and orders of ours may have outlived
//! the connection before: until that is settled nothing is traded over it ([`Returning`]). There are two
//! ways. Where the venue is trusted with nothing, what was open is cancelled and asked for one by one, until
//! the venue has said of each that it is over: the trader's loop does that. Where strategies said that what
//! they have open ends with the connection (`Hosting::ends_with_session`: cancel on disconnect was asked for
//! and confirmed), nothing of it is known any more, and the venue is asked for one cancel of everything where
//! quotes are orders: [`HotPath::take_up`].

use tickwire_fix::{DisconnectReason, Event, Reason};
use tickwire_market::{Nanos, SeqNo};

use crate::answers::{self, Heard};
use crate::hot::{HotPath, OrderOut, OrderSession};
use crate::trader::Rule;

/// What the venue has said, of which the thread decides what it means.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is decided on where it is returned, and never kept"
)]
pub enum Said {
    /// The session is logged on.
    LoggedOn,
    /// What no strategy could be told of.
    Heard(Heard),
    /// It rejected a message of ours.
    Rejected {
        /// The message's number.
        ref_seq: SeqNo,
        /// Why.
        text: Reason,
    },
    /// The session is over.
    Ended {
        /// Why.
        reason: DisconnectReason,
        /// In the venue's words.
        text: Reason,
    },
}

/// How far a session is taken up that nothing is traded over yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returning {
    /// Not logged on, or not everything is here that the venue sent.
    CatchingUp,
    /// The venue was asked to cancel every order of an earlier connection.
    Cleaning,
    /// What is open is being cancelled, and asked for until the venue has said of every order that it is
    /// over.
    Confirming,
    /// The venue has not confirmed that nothing of ours rests: this session is not taken up any more.
    Refused,
}

/// What taking a session up has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakenUp {
    /// It waits for the venue, or there is nothing to take up.
    Waits,
    /// It is traded over from now on.
    Whole,
    /// The venue has not confirmed that nothing of ours rests: the session is to end.
    Refused,
}

impl<O: OrderOut> OrderSession<O> {
    /// Whether nothing of it is missing or being taken up. It need not be logged on.
    pub fn is_whole(&self) -> bool {
        self.returning.is_none()
    }

    /// Time has passed: heartbeats, a peer that is silent. Whether anything was due.
    pub fn pass(&mut self, now: Nanos) -> bool {
        let is_due = self.fix.poll_timeout().is_some_and(|due| due <= now);
        if is_due {
            self.release_armed(now);
            self.fix.handle_timeout(now);
            self.transmit();
        }
        is_due
    }
}

/// Has a session take bytes of its venue; after each part `hear` drains what it says
/// ([`HotPath::next_said`]), and says whether there is a session still. Bytes that a session takes no more,
/// since it is over, are left.
///
/// # Errors
/// Those of `hear`.
pub fn take_bytes<T, O: OrderOut, E>(
    owner: &mut T,
    session: impl Fn(&mut T) -> &mut OrderSession<O>,
    now: Nanos,
    mut bytes: &[u8],
    mut hear: impl FnMut(&mut T) -> Result<bool, E>,
) -> Result<(), E> {
    let mut is_stuck = false;
    while !bytes.is_empty() {
        let own = session(owner);
        let taken = own.fix.handle_bytes(now, bytes);
        bytes = &bytes[taken..];
        own.transmit();
        if !hear(owner)? || (taken == 0 && is_stuck) {
            return Ok(());
        }
        is_stuck = taken == 0;
    }
    session(owner).transmit();
    Ok(())
}

impl<O: OrderOut, const STAMPED: bool, R: Rule> HotPath<O, STAMPED, R> {
    /// What the venue has said next that somebody has to decide on; strategies were told of everything before
    /// it. `named` is room for the quotes that a message names.
    pub fn next_said(&mut self, session: usize, now: Nanos, named: &mut Vec<u64>) -> Option<Said> {
        loop {
            let own = &mut self.sessions[session];
            match own.fix.poll_event()? {
                Event::LoggedOn { reset, .. } => {
                    if reset {
                        own.once.begin_anew();
                        if let Some(record) = &mut own.record {
                            record.begin_anew();
                        }
                        self.doubt_the_rest(session);
                    }
                    let own = &self.sessions[session];
                    if own.returning.is_some() || self.rule.ends_with_session(session) {
                        // What the venue says while we are away is to be heard of.
                        self.sessions[session].fix.set_reset_on_logon(false);
                    }
                    return Some(Said::LoggedOn);
                }
                Event::Message { seq, poss_dup, .. } => {
                    let heard = answers::hear(self, session, now, (seq, poss_dup), named);
                    if !matches!(heard, Heard::Told | Heard::Repeated | Heard::Request) {
                        return Some(Said::Heard(heard));
                    }
                    R::settle(self, now);
                }
                Event::Rejected { ref_seq, text, .. } => return Some(Said::Rejected { ref_seq, text }),
                Event::Disconnect { reason, text } => return Some(Said::Ended { reason, text }),
                Event::NotKept { first, last, count } => tickwire_console::warn(format_args!(
                    "the venue asked for messages that are no longer kept: {count} numbers, {first} to {last}, were sent as gap fills"
                )),
                // An initiator is asked about no logon, and no cancel is configured.
                Event::Admin { .. }
                | Event::Gap { .. }
                | Event::LogonRequested { .. }
                | Event::CancelOrders { .. } => {}
            }
            self.sessions[session].transmit();
        }
    }

    /// The venue begins its numbers anew: if a process before this one was torn off, what it traded since is
    /// not sent again, and nothing is traded before somebody has compared.
    pub(crate) fn doubt_the_rest(&mut self, session: usize) {
        let own = &mut self.sessions[session];
        if !std::mem::take(&mut own.awaits_rest) {
            return;
        }
        if let Some(record) = &mut own.record {
            record.doubt(true);
        }
        self.rule.kill();
        tickwire_console::warn(format_args!(
            "ALERT: a process before this one ended with orders that may have been open, and the venue has begun its numbers anew: what \
             traded since is not sent again, and the position may be another; the kill switch is on: compare with the venue \
             (`tickwire reconcile`), then `resume`"
        ));
    }

    /// Nothing more is done: what sessions have in hand still is heard, and told to who keeps what was
    /// traded. Whether nothing is open.
    pub(crate) fn end_sessions(&mut self, now: Nanos) -> bool {
        let mut named = Vec::new();
        for session in 0..self.sessions.len() {
            while self.next_said(session, now, &mut named).is_some() {}
        }
        // Of a process that was torn off, nobody knows before the venue has said what it had.
        let is_known = !self.sessions.iter().any(|session| session.awaits_rest);
        let is_clean = is_known && self.rule.open(None) == 0;
        self.sessions
            .iter()
            .for_each(|session| session.note_heard(is_clean));
        is_clean
    }

    /// The session is logged on: whether it is traded over from now on. One that is taken up in steps is not,
    /// nor is one of strategies whose orders end with their session before everything is here that the venue
    /// had said: what is held would not be known.
    pub fn log_on(&mut self, session: usize, now: Nanos) -> bool {
        if self.rule.ends_with_session(session) {
            self.sessions[session].returning = Some(Returning::CatchingUp);
        }
        let is_whole = self.sessions[session].is_whole();
        if is_whole {
            R::on_session(self, session, true, now);
            R::settle(self, now);
        }
        is_whole
    }

    /// The session is lost: nothing is traded over it before it is taken up again.
    pub fn lose(&mut self, session: usize, now: Nanos) {
        self.sessions[session].returning = Some(Returning::CatchingUp);
        R::lose(self, session, now);
    }

    /// Goes on with taking a session up of strategies whose orders end with it, as far as the venue has said
    /// enough; to be called as often as it may have.
    #[inline]
    pub fn take_up(&mut self, session: usize, now: Nanos) -> TakenUp {
        match self.sessions[session].returning {
            None => TakenUp::Waits,
            Some(_) => R::take_up(self, session, now),
        }
    }
}
