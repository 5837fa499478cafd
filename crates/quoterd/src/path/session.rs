//! The session with the venue: logged on, caught up, lost, and its timers.

use tickwire_fix::{
    Again, CompId, DisconnectReason, MemoryStore, Precision, QuoteDecimals, Role, Session, SessionConfig,
    Status, Store, Version, put_quote_status_request,
};
use tickwire_market::{Cause, Nanos, Price, SeqNo};
use tickwire_node::hot::OrderOut;
use tickwire_trading::{QuoteSink, QuotingState};

use super::{QuotePath, QuoteSession, Trades};
use crate::reconciliation::{Question, Reconciliation};
use tickwire_console::failure::Failure;
use tickwire_node::controls::Policy;

/// What is known of the session beside its numbers.
pub struct VenueSession {
    /// How it ended.
    pub ended: Option<DisconnectReason>,
    /// Why the run has to end: the venue does not confirm that it cancels.
    pub refused: Option<Failure>,
    /// Answers that could not be read; each pulls everything.
    pub unread: u64,
    /// What the venue has of our quotes.
    pub reconciliation: Reconciliation,
    /// Logged on, and what the venue had said meanwhile is still coming.
    pub(super) is_catching_up: bool,
    /// What is done about a venue that does not confirm that it cancels, and the field in which it is asked.
    pub(super) venue_cancels: (Policy, u32),
    pub(super) answer_max_ns: u64,
    /// Entries that an answer names.
    pub(super) named: Vec<u16>,
}

/// The initiator's side of a market maker's session, `sender` to `target`, kept in memory. With `resets`, its
/// first logon begins with 1 anew. A connection that is lost is taken up where it was: executions of the time
/// between are sent again. `heartbeat_s` is HeartBtInt (108): the venue gives up who was not heard for 2.4
/// times as long, and cancels.
pub fn session_of(ids: [CompId; 2], version: Version, resets: bool, heartbeat_s: u32) -> QuoteSession {
    let config = SessionConfig {
        reset_on_logon: resets,
        ..session_config(ids, version, heartbeat_s)
    };
    let store = MemoryStore::new(config.store_messages, config.store_bytes);
    Session::with_store(config, Box::new(store))
}

/// The same with a store that outlives the process.
pub(crate) fn lasting_session(
    ids: [CompId; 2],
    version: Version,
    heartbeat_s: u32,
    store: Box<dyn Store + Send>,
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
    /// The connection is there: the logon goes out.
    pub fn connected(&mut self, now: Nanos) {
        self.wire.session.handle_connected(now);
        self.wire.transmit();
    }

    /// The connection is gone.
    pub fn disconnected(&mut self, now: Nanos) {
        self.wire.session.handle_disconnected(now);
        self.answers(now);
        self.session_lost();
    }

    pub(super) fn session_lost(&mut self) {
        self.session.is_catching_up = false;
        self.session.reconciliation.forget();
        if let Some(entry) = self.wire.entry.as_orders() {
            entry.forget();
        }
        self.maker.on_disconnect();
    }

    /// The session is logged on. Nothing leaves until everything is here that the venue has said before: what
    /// is held would not be known.
    pub fn logged_on(&mut self, now: Nanos, is_reset: bool) {
        self.session.is_catching_up = true;
        if is_reset {
            self.executions.booked = 0;
        }
        // From now on, what the venue says while we are away is to be heard of.
        self.wire.session.set_reset_on_logon(false);
        self.catch_up(now);
    }

    /// The session of somebody who logged on and left the venue's messages alone, the first one of which
    /// waits.
    pub fn take_over(&mut self, now: Nanos, pending: Option<(SeqNo, bool)>, rest: &[u8]) {
        if let Some((seq, is_late)) = pending {
            self.wire.now = now;
            self.executions.told = seq.0;
            self.answer(now, is_late);
        }
        self.answers(now);
        self.on_bytes(now, rest);
    }

    pub(super) fn catch_up(&mut self, now: Nanos) {
        if !(self.session.is_catching_up && self.wire.session.is_caught_up()) {
            return;
        }
        if let Some(entry) = self.wire.entry.as_orders()
            && !entry.is_clean()
        {
            // Orders may have outlived the connection: none of them may be there when the first one goes out.
            if !entry.is_cancelling() {
                self.wire.now = now;
                self.wire.cancel_all(0, &Cause::default());
            }
            return;
        }
        self.session.is_catching_up = false;
        self.maker.on_logon(now);
    }

    /// When [`QuotePath::handle_timeout`] has something to do.
    pub fn poll_timeout(&mut self) -> Option<Nanos> {
        let (maker, session) = (self.maker.poll_timeout(), self.wire.session.poll_timeout());
        let asking = self.session.reconciliation.poll_timeout();
        [maker, session, self.cancel_due(), asking]
            .into_iter()
            .flatten()
            .min()
    }

    /// When the venue must have confirmed that no order of an earlier session rests.
    pub(super) fn cancel_due(&mut self) -> Option<Nanos> {
        let entry = self.wire.entry.as_orders()?;
        Some(entry.waits_since()?.after(self.session.answer_max_ns))
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.wire.now = now;
        if self.cancel_due().is_some_and(|due| due <= now) {
            if let Some(entry) = self.wire.entry.as_orders() {
                entry.drop_cancel();
            }
            self.refuse_to_begin(now);
        }
        if self.wire.session.poll_timeout().is_some_and(|due| due <= now) {
            self.wire.session.handle_timeout(now);
            self.wire.transmit();
            self.answers(now);
        }
        self.maker.handle_timeout(now, &mut self.wire);
        self.reconcile(now);
        self.wire.out.let_go();
    }

    /// Bytes of the venue, cut anywhere.
    pub fn on_bytes(&mut self, now: Nanos, mut bytes: &[u8]) {
        let mut is_stuck = false;
        while !bytes.is_empty() {
            let taken = self.wire.session.handle_bytes(now, bytes);
            bytes = &bytes[taken..];
            self.wire.transmit();
            self.answers(now);
            if taken == 0 && is_stuck {
                // The session is over and takes no more.
                return;
            }
            is_stuck = taken == 0;
        }
        self.wire.transmit();
    }

    /// Orders of an earlier session may rest, since the venue has not confirmed that it cancelled them: the
    /// session ends, so that another one begins.
    #[cold]
    pub(super) fn refuse_to_begin(&mut self, now: Nanos) {
        self.wire.session.logout(now, "cancel on logon was not confirmed");
        self.wire.transmit();
    }

    /// Asks the venue about one quote after the other; see [`Reconciliation`].
    pub(super) fn reconcile(&mut self, now: Nanos) {
        if let Some(late) = self.session.reconciliation.overdue(now) {
            tickwire_console::warn(format_args!(
                "ALERT: the venue has not said for {:.1} s what it has of our quote in {}: every quote is pulled",
                now.since(late.at) as f64 / 1e9,
                late.symbol
            ));
            return self.distrust(now);
        }
        let Some(place) = self.session.reconciliation.due(now, self.options.by_symbol.len()) else {
            return;
        };
        let (symbol, quote) = self.options.by_symbol[place];
        let is_quoting = self.maker.quoter.state() == QuotingState::Quoting && !self.session.is_catching_up;
        let is_still = !self.maker.quoter.is_in_flight(quote);
        if !is_quoting || !is_still || self.wire.session.status() != Status::Active {
            return;
        }
        let sent = [self.wire.sent[0], self.wire.orders_sent];
        let number = self.session.reconciliation.ask(now, quote, symbol, sent);
        let session = &mut self.wire.session;
        let asked = session.send(now, b"a", Again::GapFill, |e, _| {
            put_quote_status_request(e, number, &symbol)
        });
        match asked {
            Ok(_) => self.wire.transmit(),
            // There is no room for it now.
            Err(_) => self.session.reconciliation.forget(),
        }
    }

    /// What the venue has of a quote that it was asked about.
    pub(super) fn reconciled(&mut self, now: Nanos, asked: Question, open: [u32; 2]) {
        let is_same_moment = asked.sent == [self.wire.sent[0], self.wire.orders_sent];
        if !is_same_moment || self.maker.quoter.is_in_flight(asked.quote) {
            return;
        }
        self.session.reconciliation.compared += 1;
        let ours = self.maker.quoter.open(asked.quote);
        if ours != open {
            self.session.reconciliation.differences += 1;
            tickwire_console::warn(format_args!(
                "ALERT: the venue has {} bid and {} offered of our quote in {}, and we have {} and {}: every quote is pulled",
                open[0], open[1], asked.symbol, ours[0], ours[1]
            ));
            self.distrust(now);
        }
    }
}
