//! The session with the venue, as the quoter decides on it; how it is taken up is the host's
//! ([`tickwire_node::session`]).

use std::convert::Infallible;

use tickwire_fix::{
    CompId, DisconnectReason, Precision, QuoteDecimals, Role, Session, SessionConfig, Version,
};
use tickwire_market::{Nanos, Price, SeqNo};
use tickwire_node::answers::{self, Heard};
use tickwire_node::entry_store::EntryStore;
use tickwire_node::hot::{OrderOut, session_in_memory};
use tickwire_node::live::Live;
use tickwire_node::session::{Said, TakenUp, take_bytes};
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
    /// What is done about a venue that does not confirm that it cancels, and the field in which it is asked.
    venue_cancels: (Policy, u32),
    /// Entries that an answer names.
    named: Vec<u64>,
}

impl VenueSession {
    pub(super) fn new(named: usize) -> VenueSession {
        VenueSession {
            ended: None,
            refused: None,
            unread: 0,
            differences: 0,
            venue_cancels: (Policy::Ignore, 0),
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
    store: EntryStore,
) -> QuoteSession {
    Session::with_store(session_config(ids, version, heartbeat_s), store)
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
        self.hot
            .rule
            .reconcile_quotes(now, u64::from(every_s) * Nanos::SECOND);
    }

    /// The connection is there: the logon goes out.
    pub fn connected(&mut self, now: Nanos) {
        self.hot.sessions[0].fix.handle_connected(now);
        self.hot.sessions[0].transmit();
    }

    /// Whether nothing waits for another packet to leave with.
    #[cfg(test)]
    pub(crate) fn holds_nothing(&self) -> bool {
        self.hot.sessions[0].holds_nothing()
    }

    /// The connection is gone, and with it every quote.
    pub fn disconnected(&mut self, now: Nanos) {
        self.hot.sessions[0].fix.handle_disconnected(now);
        self.answers(now);
        self.hot.lose(0, now);
    }

    /// The session is logged on. Nothing leaves until everything is here that the venue has said before: what
    /// is held would not be known.
    pub fn logged_on(&mut self, now: Nanos) {
        // From now on, what the venue says while we are away is to be heard of.
        self.hot.sessions[0].fix.set_reset_on_logon(false);
        self.hot.log_on(0, now);
        self.go_on(now);
    }

    /// The session of somebody who logged on and left the venue's messages alone, the first one of which
    /// waits.
    pub fn take_over(&mut self, now: Nanos, pending: Option<(SeqNo, bool)>, rest: &[u8]) {
        if let Some(at) = pending {
            let heard = answers::hear(&mut self.hot, 0, now, at, &mut self.session.named);
            self.on_said(now, Said::Heard(heard));
        }
        self.answers(now);
        self.on_bytes(now, rest);
    }

    /// What the venue has said.
    pub fn answers(&mut self, now: Nanos) {
        while let Some(said) = self.hot.next_said(0, now, &mut self.session.named) {
            self.on_said(now, said);
        }
        self.go_on(now);
    }

    /// What the venue has said that no strategy could be told of.
    pub(crate) fn on_said(&mut self, now: Nanos, said: Said) {
        match said {
            Said::LoggedOn => {
                let (policy, tag) = self.session.venue_cancels;
                match check_venue_cancels(policy, tag, self.fix().peer_cancels()) {
                    Ok(()) => self.logged_on(now),
                    // Without this nothing is quoted again.
                    Err(failure) => self.session.refused = Some(failure),
                }
            }
            // What cannot be read may have been about our quotes.
            Said::Rejected { .. } | Said::Heard(Heard::Fault(_) | Heard::NoQuotes(_) | Heard::Refused(_)) => {
                self.session.unread += 1;
                Live::on_distrust(&mut self.hot, 0, now);
            }
            Said::Ended { reason, .. } => {
                self.hot.sessions[0].transmit();
                self.hot.lose(0, now);
                self.session.ended.get_or_insert(reason);
            }
            Said::Heard(
                Heard::Told
                | Heard::Repeated
                | Heard::Broken { .. }
                | Heard::Status(_)
                | Heard::Request
                | Heard::Unknown,
            ) => {}
        }
        Live::settle(&mut self.hot, now);
        self.hot.sessions[0].transmit();
    }

    /// After the venue was heard, and in each turn of a loop: the session is taken up as far as it has said
    /// enough, and what it has of a quote otherwise is told.
    #[inline]
    pub(crate) fn go_on(&mut self, now: Nanos) {
        if self.hot.take_up(0, now) == TakenUp::Refused {
            // Orders of an earlier session may rest: the session ends, so that another one begins.
            self.log_out(now, "cancel on logon was not confirmed");
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

    /// When [`QuotePath::handle_timeout`] has something to do.
    pub fn poll_timeout(&mut self) -> Option<Nanos> {
        let maker = self.maker_mut().poll_timeout();
        let (timer, session) = (self.hot.rule.conductor().next_timer(), self.fix().poll_timeout());
        [maker, timer, session, self.hot.taking_up_due(0)]
            .into_iter()
            .flatten()
            .min()
    }

    /// Time has passed, for the session too: for a loop that is not [`tickwire_node::host::run`].
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.hot.sessions[0].pass(now) {
            self.answers(now);
        }
        self.on_time(now);
        self.go_on(now);
    }

    /// Time has passed.
    #[inline]
    pub(crate) fn on_time(&mut self, now: Nanos) {
        if self.maker_mut().poll_timeout().is_some_and(|due| due <= now) {
            self.hot.act(now, |quoter, ctx| quoter.pass(ctx));
        }
        Live::on_time(&mut self.hot, now);
        Live::settle(&mut self.hot, now);
    }

    /// Bytes of the venue, cut anywhere.
    pub fn on_bytes(&mut self, now: Nanos, bytes: &[u8]) {
        let hear = |path: &mut Self| {
            path.answers(now);
            Ok::<bool, Infallible>(true)
        };
        let Ok(()) = take_bytes(self, |path| &mut path.hot.sessions[0], now, bytes, hear);
    }

    /// We leave: the logout goes out.
    pub fn log_out(&mut self, now: Nanos, text: &str) {
        self.hot.sessions[0].fix.logout(now, text);
        self.hot.sessions[0].transmit();
    }
}
