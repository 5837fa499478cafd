//! The session with the venue: logged on, caught up, lost, and its timers.

use tickwire_fix::{
    CompId, DisconnectReason, Event, Precision, QuoteDecimals, Role, Session, SessionConfig, Store, Version,
};
use tickwire_market::{Nanos, Price, SeqNo};
use tickwire_node::answers::{self, Heard};
use tickwire_node::hot::{EntryStore, OrderOut, session_in_memory};
use tickwire_node::live::{Cleanness, Live};
use tickwire_node::trader::Rule;

use super::{QuotePath, QuoteSession, Trades};
use tickwire_console::failure::Failure;
use tickwire_node::controls::{Policy, check_venue_cancels};

/// What is known of the session beside its numbers.
pub struct VenueSession {
    /// How it ended.
    pub ended: Option<DisconnectReason>,
    /// Why the run has to end: the venue does not confirm that it cancels.
    pub refused: Option<Failure>,
    /// Answers that could not be read, or were otherwise than we believed; each pulls everything.
    pub unread: u64,
    /// Quotes that the venue had otherwise than we believed, or did not say in time.
    pub(super) differences: u64,
    /// Logged on, and what the venue had said meanwhile is still coming.
    pub(super) is_catching_up: bool,
    /// The venue was asked to cancel what may rest of an earlier connection.
    has_asked: bool,
    /// What is done about a venue that does not confirm that it cancels, and the field in which it is asked.
    venue_cancels: (Policy, u32),
    answer_max_ns: u64,
    /// Entries that an answer names.
    named: Vec<u64>,
}

impl VenueSession {
    pub(super) fn new(answer_max_ns: u64, named: usize) -> VenueSession {
        VenueSession {
            ended: None,
            refused: None,
            unread: 0,
            differences: 0,
            is_catching_up: false,
            has_asked: false,
            venue_cancels: (Policy::Ignore, 0),
            answer_max_ns,
            named: Vec::with_capacity(named),
        }
    }
}

/// The initiator's side of a market maker's session, `sender` to `target`, kept in memory. With `resets`, its
/// first logon begins with 1 anew. A connection that is lost is taken up where it was: executions of the time
/// between are sent again. `heartbeat_s` is HeartBtInt (108): the venue gives up who was not heard for 2.4
/// times as long, and cancels.
pub fn session_of(ids: [CompId; 2], version: Version, resets: bool, heartbeat_s: u32) -> QuoteSession {
    session_in_memory(SessionConfig {
        reset_on_logon: resets,
        ..session_config(ids, version, heartbeat_s)
    })
}

/// The same with a store that outlives the process.
pub(crate) fn lasting_session(
    ids: [CompId; 2],
    version: Version,
    heartbeat_s: u32,
    store: Box<dyn Store + Send>,
) -> QuoteSession {
    Session::with_store(
        session_config(ids, version, heartbeat_s),
        EntryStore::Lasting(store),
    )
}

fn session_config([sender, target]: [CompId; 2], version: Version, heartbeat_s: u32) -> SessionConfig {
    SessionConfig {
        heartbeat_s,
        precision: Precision::Micros,
        receive_bytes: 256 << 10,
        fields_max: 4_096,
        ..SessionConfig::new(Role::Initiator, sender, target).of_version(version)
    }
}

/// The digits behind the point that a tick needs.
pub fn decimals_of(tick: Price) -> QuoteDecimals {
    let needs = |unit: i64| tick.raw() % unit != 0;
    match () {
        () if needs(Price::ONE_RAW / 10_000) => QuoteDecimals::Six,
        () if needs(Price::ONE_RAW / 100) => QuoteDecimals::Four,
        () => QuoteDecimals::Two,
    }
}

impl<O: OrderOut, T: Trades> QuotePath<O, T> {
    /// From now on a venue whose Logon does not confirm that it cancels when the connection is lost is not
    /// quoted at, or it is said.
    pub fn set_venue_cancels(&mut self, policy: Policy, tag: u32) {
        self.session.venue_cancels = (policy, tag);
    }

    /// Has the venue asked about each quote every so many seconds.
    pub fn reconcile(&mut self, now: Nanos, every_s: u32) {
        let every_ns = u64::from(every_s) * Nanos::SECOND;
        self.hot.rule.conductor_mut().reconcile_quotes(now, every_ns);
    }

    /// The connection is there: the logon goes out.
    pub fn connected(&mut self, now: Nanos) {
        self.hot.sessions[0].fix.handle_connected(now);
        self.hot.sessions[0].transmit();
    }

    /// Another connection takes the place of the one before.
    pub fn replace(&mut self, out: O) {
        self.hot.sessions[0].replace(out);
    }

    /// The first failure of the connection since this was last asked.
    pub fn take_failure(&mut self) -> Option<std::io::Error> {
        self.hot.sessions[0].failure.take()
    }

    /// Whether nothing waits for another packet to leave with.
    #[cfg(test)]
    pub(crate) fn holds_nothing(&self) -> bool {
        self.hot.sessions[0].holds_nothing()
    }

    /// The connection is gone.
    pub fn disconnected(&mut self, now: Nanos) {
        self.hot.sessions[0].fix.handle_disconnected(now);
        self.answers(now);
        self.session_lost(now);
    }

    fn session_lost(&mut self, now: Nanos) {
        (self.session.is_catching_up, self.session.has_asked) = (false, false);
        self.hot.lose_session();
        self.hot.act(now, |quoter, ctx| quoter.sync(ctx));
    }

    /// The session is logged on. Nothing leaves until everything is here that the venue has said before: what
    /// is held would not be known.
    pub fn logged_on(&mut self, now: Nanos, is_reset: bool) {
        self.session.is_catching_up = true;
        let session = &mut self.hot.sessions[0];
        if is_reset {
            session.once.begin_anew();
        }
        // From now on, what the venue says while we are away is to be heard of.
        session.fix.set_reset_on_logon(false);
        self.catch_up(now);
    }

    /// The session of somebody who logged on and left the venue's messages alone, the first one of which
    /// waits.
    pub fn take_over(&mut self, now: Nanos, pending: Option<(SeqNo, bool)>, rest: &[u8]) {
        if let Some(at) = pending {
            self.hear(now, at);
        }
        self.answers(now);
        self.on_bytes(now, rest);
    }

    /// What the venue has said.
    pub fn answers(&mut self, now: Nanos) {
        while let Some(event) = self.hot.sessions[0].fix.poll_event() {
            match event {
                Event::LoggedOn { reset, .. } => {
                    let (policy, tag) = self.session.venue_cancels;
                    match check_venue_cancels(policy, tag, self.fix().peer_cancels()) {
                        Ok(()) => self.logged_on(now, reset),
                        // Without this nothing is quoted again.
                        Err(failure) => self.session.refused = Some(failure),
                    }
                }
                Event::Message { seq, poss_dup, .. } => self.hear(now, (seq, poss_dup)),
                Event::Rejected { .. } => self.distrust(now),
                Event::Disconnect { reason, .. } => {
                    self.hot.sessions[0].transmit();
                    self.session_lost(now);
                    self.session.ended.get_or_insert(reason);
                }
                Event::NotKept { first, last, count } => tickwire_console::warn(format_args!(
                    "the venue asked for messages that the store no longer has: {count} numbers, {first} to {last}, were sent as gap fills"
                )),
                Event::Admin { .. }
                | Event::Gap { .. }
                | Event::LogonRequested { .. }
                | Event::CancelOrders { .. } => {}
            }
            self.hot.sessions[0].transmit();
        }
        self.catch_up(now);
        Live::settle(&mut self.hot, now);
    }

    /// One message of the venue's.
    fn hear(&mut self, now: Nanos, at: (SeqNo, bool)) {
        match answers::hear(&mut self.hot, 0, now, at, &mut self.session.named) {
            // What cannot be read may have been about our quotes.
            Heard::Fault(_) | Heard::NoQuotes(_) | Heard::Refused(_) => self.distrust(now),
            Heard::Told
            | Heard::Repeated
            | Heard::Broken { .. }
            | Heard::Status(_)
            | Heard::Request
            | Heard::Unknown => {}
        }
        self.say_difference();
        Live::settle(&mut self.hot, now);
    }

    /// What the venue has of a quote was otherwise, or was not said: the strategy has pulled every quote.
    fn say_difference(&mut self) {
        let Some(found) = self.hot.rule.conductor_mut().strategy_mut().take_difference() else {
            return;
        };
        self.session.unread += 1;
        self.session.differences += 1;
        let symbol = self.options.symbols[usize::from(found.quote)];
        match found.venue {
            Some([bids, asks]) => tickwire_console::warn(format_args!(
                "ALERT: the venue has {bids} bid and {asks} offered of our quote in {symbol}, and we have {} and {}: every quote is pulled",
                found.ours[0], found.ours[1]
            )),
            None => tickwire_console::warn(format_args!(
                "ALERT: the venue has not said in time what it has of our quote in {symbol}: every quote is pulled"
            )),
        }
    }

    /// What cannot be read may have been about our quotes.
    #[cold]
    fn distrust(&mut self, now: Nanos) {
        self.session.unread += 1;
        self.pull(now);
    }

    fn catch_up(&mut self, now: Nanos) {
        if !(self.session.is_catching_up && self.fix().is_caught_up()) {
            return;
        }
        match self.hot.rule.cleanness() {
            Cleanness::Clean => {}
            Cleanness::Asked(_) => return,
            // It has refused to.
            Cleanness::Unknown if self.session.has_asked => return self.refuse_to_begin(now),
            // Orders may have outlived the connection: none of them may be there when the first one goes out.
            Cleanness::Unknown => {
                self.session.has_asked = self.hot.begin_clean(now);
                return;
            }
        }
        self.session.is_catching_up = false;
        self.hot.rule.conductor_mut().take_up_session(now);
        self.hot.act(now, |quoter, ctx| quoter.sync(ctx));
    }

    /// When [`QuotePath::handle_timeout`] has something to do.
    pub fn poll_timeout(&mut self) -> Option<Nanos> {
        let maker = self.maker_mut().poll_timeout();
        let (timer, session) = (self.hot.rule.conductor().next_timer(), self.fix().poll_timeout());
        [maker, timer, session, self.cancel_due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// When the venue must have confirmed that no order of an earlier session rests.
    fn cancel_due(&mut self) -> Option<Nanos> {
        match self.hot.rule.cleanness() {
            Cleanness::Asked(since) => Some(since.after(self.session.answer_max_ns)),
            _ => None,
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.cancel_due().is_some_and(|due| due <= now) {
            self.hot.rule.give_up_cleaning();
            self.refuse_to_begin(now);
        }
        let session = &mut self.hot.sessions[0];
        if session.fix.poll_timeout().is_some_and(|due| due <= now) {
            session.fix.handle_timeout(now);
            session.transmit();
            self.answers(now);
        }
        if self.maker_mut().poll_timeout().is_some_and(|due| due <= now) {
            self.hot.act(now, |quoter, ctx| quoter.pass(ctx));
        }
        Live::on_time(&mut self.hot, now);
        self.say_difference();
        Live::settle(&mut self.hot, now);
    }

    /// Bytes of the venue, cut anywhere.
    pub fn on_bytes(&mut self, now: Nanos, mut bytes: &[u8]) {
        let mut is_stuck = false;
        while !bytes.is_empty() {
            let taken = self.hot.sessions[0].fix.handle_bytes(now, bytes);
            bytes = &bytes[taken..];
            self.hot.sessions[0].transmit();
            self.answers(now);
            if taken == 0 && is_stuck {
                // The session is over and takes no more.
                return;
            }
            is_stuck = taken == 0;
        }
        self.hot.sessions[0].transmit();
    }

    /// We leave: the logout goes out.
    pub fn log_out(&mut self, now: Nanos, text: &str) {
        self.hot.sessions[0].fix.logout(now, text);
        self.hot.sessions[0].transmit();
    }

    /// Orders of an earlier session may rest, since the venue has not confirmed that it cancelled them: the
    /// session ends, so that another one begins.
    #[cold]
    fn refuse_to_begin(&mut self, now: Nanos) {
        self.session.is_catching_up = false;
        self.log_out(now, "cancel on logon was not confirmed");
    }
}
