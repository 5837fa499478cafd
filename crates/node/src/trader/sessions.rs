//! The order entry sessions of a trading thread: what comes over them, what is cancelled over them, and how a
//! lost one is taken up again.

use tickwire_fix::{Again, DisconnectReason, Encoder, Event, ExecutionReport, OrderCancelRequest, Stamp};
use tickwire_market::{ClientOrderId, EventSink, Nanos, SeqNo, Side};
use tickwire_runtime::tcp::Received;
use tickwire_runtime::wait::Waiter;

use super::stop::{self, Stopping};
use super::{End, Rule, Trader};
use crate::answers::{self, Heard};
use crate::controls::check_venue_cancels;
use crate::hot::HotPath;
use crate::link::{Entry, Link};
use crate::settings::{SendWay, TraderSection};
use tickwire_console::failure::Failure;
use tickwire_console::health::follow_if_set;
use tickwire_console::warn;
use tickwire_venues::order_entry::OrderEntrySection;

/// How far a session that was lost is taken up again. The rule trades when all of it is done: nothing rests
/// then by what was known before, and what traded meanwhile is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Returning {
    /// Not logged on, or not everything is here that the venue sent.
    CatchingUp,
    /// What is open is being cancelled, and asked for until the venue has said of every order that it is
    /// over.
    Confirming,
}

/// One order entry session beside what the hot path has of it.
pub(super) struct Line {
    /// What it is called in messages.
    name: String,
    pub(super) link: Link,
    /// The field in which the venue's Logon confirms that it cancels what is open when the connection is
    /// lost.
    cancels_tag: u32,
    /// It was lost, and nothing is traded over it yet.
    returning: Option<Returning>,
    /// The exchange has ended it in good order.
    pub(super) logged_out: bool,
    /// After our own logout: nothing more comes.
    pub(super) is_over: bool,
    /// Everything open is being cancelled.
    pub(super) stopping: Option<Stopping>,
    /// When the venue is asked next what it has of our open orders.
    reconcile_at: Nanos,
}

impl Line {
    /// Connects to the venue.
    pub(super) fn open(
        name: &str,
        section: &OrderEntrySection,
        send: SendWay,
        trader: &TraderSection,
        waiter: &mut Waiter,
        now: Nanos,
    ) -> Result<(Line, Entry), Failure> {
        let attempts = (
            trader.reconnects_max,
            u64::from(trader.reconnect_ms) * Nanos::MILLI,
        );
        let meaning = "nothing is sent without it, and what is open is the venue's to cancel";
        let address = section.address.into();
        let (mut link, stream) = Link::connect(address, send, meaning, attempts, waiter, now)?;
        let entry = link.entry(stream)?;
        let line = Line {
            name: name.to_string(),
            link,
            cancels_tag: section.cancel_on_disconnect_tag,
            returning: None,
            logged_out: false,
            is_over: false,
            stopping: None,
            reconcile_at: Nanos::ZERO,
        };
        Ok((line, entry))
    }

    /// Nothing of it is being taken up again.
    pub(super) fn is_whole(&self) -> bool {
        self.returning.is_none()
    }
}

impl<R: Rule + 'static> Trader<'_, R>
where
    HotPath<Entry, true, R>: EventSink,
{
    /// Which of several sessions, for messages.
    pub(super) fn over(&self, line: usize) -> String {
        match self.lines.len() {
            1 => String::new(),
            _ => format!(" {}", self.lines[line].name),
        }
    }

    /// The same in front of a sentence.
    fn of(&self, line: usize) -> String {
        match self.lines.len() {
            1 => String::new(),
            _ => format!("session {}: ", self.lines[line].name),
        }
    }

    /// Cancels everything that is open.
    pub(super) fn cancel_all(&mut self, now: Nanos) {
        for line in 0..self.lines.len() {
            self.cancel_open(line, now);
        }
    }

    /// What a stop has come to, and what the venue has of our orders.
    pub(super) fn follow_stop(&mut self, line: usize, now: Nanos) {
        let open = self.hot.rule.open(Some(line));
        let of = self.of(line);
        let own = &mut self.lines[line];
        let Some(stopping) = &mut own.stopping else {
            if now >= own.reconcile_at && self.config.controls.reconcile_s > 0 {
                own.reconcile_at = now.after(u64::from(self.config.controls.reconcile_s) * Nanos::SECOND);
                self.ask_for_open(line, now);
            }
            return;
        };
        if open == 0 {
            if stopping.orders > 0 {
                warn(format_args!(
                    "{of}the venue has confirmed: none of {} orders is open any more",
                    stopping.orders
                ));
            }
            own.stopping = None;
            return;
        }
        if now.since(stopping.since) > stop::PATIENCE_NS && !stopping.is_late {
            stopping.is_late = true;
            warn(format_args!(
                "ALERT: {of}{open} orders are not confirmed to be over {} s after their cancels; the venue is asked again and again",
                stop::PATIENCE_NS / Nanos::SECOND
            ));
        }
        if now >= stopping.ask_at {
            stopping.ask_at = now.after(stop::ASK_NS);
            self.ask_for_open(line, now);
        }
    }

    /// Cancels everything that is open. The requests leave together.
    #[cold]
    pub(super) fn cancel_open(&mut self, line: usize, now: Nanos) {
        let symbol = self.config.trader.symbol.0;
        let begun = self.hot.clock.now();
        let mut count = 0_u32;
        let is_up = self.hot.sessions[line].is_active();
        self.end_all_armed(line, now);
        if is_up {
            R::cancel_quotes(&mut self.hot, line, now, false);
        }
        while is_up && let Some(cancel) = stop::next_cancel(&mut self.hot.rule, line, symbol, now) {
            count += 1;
            // Kept for no resend: what is open is asked for instead.
            let session = &mut self.hot.sessions[line];
            let msg_type = OrderCancelRequest::MSG_TYPE;
            let put = |e: &mut Encoder<'_>, stamp: &mut Stamp| cancel.encode(e, stamp);
            if session.fix.send(now, msg_type, Again::GapFill, put).is_err() {
                break;
            }
            if count.is_multiple_of(16) {
                session.transmit();
            }
        }
        self.hot.sessions[line].transmit();
        let took = self.hot.clock.now().since(begun);
        let open = self.hot.rule.open(Some(line));
        let of = self.of(line);
        match is_up {
            true => warn(format_args!(
                "{of}{count} cancels were sent within {:.3} ms; {open} orders are open until the venue says otherwise",
                took as f64 / 1e6,
            )),
            false => warn(format_args!(
                "{of}there is no order entry session: {open} orders are cancelled when it is back, if the venue has not done so"
            )),
        }
        self.lines[line].stopping = Some(Stopping {
            since: now,
            ask_at: now.after(stop::ASK_NS),
            is_late: false,
            orders: open,
        });
    }

    /// There is no session any more; [`Trader::mend`] takes it up again.
    #[cold]
    pub(super) fn lose(&mut self, line: usize, now: Nanos, why: String) {
        if !self.lines[line].link.is_up() {
            return;
        }
        if self.end == End::LoggingOut {
            return self.over_in_good_order(line);
        }
        self.end_all_armed(line, now);
        let session = &mut self.hot.sessions[line];
        session.fix.handle_disconnected(now);
        // Of this connection nothing more is to be done; of the end of the session somebody has told.
        while session.fix.poll_event().is_some() {}
        self.hot.rule.set_session(line, false);
        // What the venue says meanwhile is to be heard of.
        session.fix.set_reset_on_logon(false);
        session.drop_held();
        let own = &mut self.lines[line];
        own.returning = Some(Returning::CatchingUp);
        // Its number is watched no longer before it may be another file's.
        own.link.lost(now, why, &mut self.receiver.waiter);
        own.link.close(&mut session.out);
    }

    fn over_in_good_order(&mut self, line: usize) {
        self.lines[line].is_over = true;
        self.end_if_over();
    }

    /// Ten times a second: the way back of a session that was lost, step by step.
    pub(super) fn mend(&mut self, line: usize, now: Nanos) -> Result<(), Failure> {
        let own = &mut self.lines[line];
        if own.logged_out || matches!(self.end, End::LoggingOut | End::Done) {
            return Ok(());
        }
        if let Some(stream) = own.link.mend(now, &mut self.receiver.waiter)? {
            let session = &mut self.hot.sessions[line];
            session.replace(own.link.entry_again(stream));
            if self.hot.rule.pre_arms()
                && let Some(trigger) = self.receiver.trigger()
            {
                session.out.use_trigger(trigger);
            }
            session.fix.handle_connected(now);
            session.transmit();
        }
        let open = self.hot.rule.open(Some(line));
        match own.returning {
            Some(Returning::CatchingUp) if self.hot.sessions[line].fix.is_caught_up() => {
                own.returning = Some(Returning::Confirming);
                if open > 0 {
                    self.cancel_open(line, now);
                }
            }
            Some(Returning::Confirming) if own.stopping.is_none() && open > 0 => self.cancel_open(line, now),
            Some(Returning::Confirming) if open == 0 => {
                own.returning = None;
                self.hot.rule.set_session(line, true);
                self.lines[line].link.say(format!(
                    "the order entry session{} goes on: everything that was missed has come, nothing of ours is open, position {}",
                    self.over(line),
                    self.position()
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// Asks the venue what it has of the orders that we believe to be open.
    pub(super) fn ask_for_open(&mut self, line: usize, now: Nanos) {
        if !self.hot.sessions[line].is_active() {
            return;
        }
        self.end_all_armed(line, now);
        if self.lines[line].stopping.is_some() {
            R::cancel_quotes(&mut self.hot, line, now, true);
        }
        let symbol = self.config.trader.symbol.0;
        let rule = &self.hot.rule;
        let mut asked: Vec<(ClientOrderId, Side, tickwire_market::Symbol)> = Vec::new();
        rule.each_open(line, &mut |order| {
            if asked.len() < stop::ASKED_MAX {
                let symbol = rule.symbol_of(order.instrument).unwrap_or(symbol);
                asked.push((order.id, order.side, symbol));
            }
        });
        let session = &mut self.hot.sessions[line];
        for (id, side, symbol) in asked {
            let put = |e: &mut tickwire_fix::Encoder<'_>| stop::put_status_request(e, id, symbol, side);
            if session
                .fix
                .send(now, b"H", Again::GapFill, |e, _| put(e))
                .is_err()
            {
                break;
            }
        }
        session.transmit();
    }

    pub(super) fn session_timers(&mut self, line: usize, now: Nanos) {
        let session = &mut self.hot.sessions[line];
        if session.fix.poll_timeout().is_some_and(|t| t <= now) {
            session.release_armed(now);
            session.fix.handle_timeout(now);
            session.transmit();
        }
    }

    /// Execution reports and session messages; whether there were none.
    #[inline]
    pub(super) fn order_entry(
        &mut self,
        line: usize,
        now: Nanos,
        buffer: &mut [u8],
    ) -> Result<bool, Failure> {
        if self.lines[line].logged_out {
            return Ok(true);
        }
        let received = match self.hot.sessions[line].out.recv(buffer) {
            Ok(Received::Nothing) => return self.session_events(line, now).map(|()| true),
            Ok(Received::Bytes(bytes)) => bytes.len(),
            Ok(Received::Closed) => {
                self.hot.sessions[line].fix.handle_disconnected(now);
                self.session_events(line, now)?;
                if matches!(self.end, End::LoggingOut | End::Done) {
                    self.over_in_good_order(line);
                } else if !self.lines[line].logged_out {
                    let why = format!(
                        "the exchange at {} closed the order entry connection before the session's end; was it stopped or killed?",
                        self.lines[line].link.peer()
                    );
                    self.lose(line, now, why);
                }
                return Ok(false);
            }
            Err(e) => {
                self.lose(line, now, connection_failed(&e));
                return Ok(false);
            }
        };
        if follow_if_set(&mut self.hot.clock, &mut self.clock_steps) {
            let offset = self.hot.clock.wall_offset_ns();
            for session in &mut self.hot.sessions {
                session.fix.set_wall_offset(offset);
            }
        }
        // An answer may have to be answered, and may be about it.
        self.end_armed(line, now);
        let mut bytes = &buffer[..received];
        while !bytes.is_empty() {
            let session = &mut self.hot.sessions[line];
            let taken = session.fix.handle_bytes(now, bytes);
            bytes = &bytes[taken..];
            session.transmit();
            self.session_events(line, now)?;
            if !self.lines[line].link.is_up() {
                return Ok(false);
            }
        }
        self.hot.sessions[line].transmit();
        Ok(false)
    }

    fn session_events(&mut self, line: usize, now: Nanos) -> Result<(), Failure> {
        while let Some(event) = self.hot.sessions[line].fix.poll_event() {
            match event {
                Event::LoggedOn { reset, .. } => {
                    if reset {
                        self.hot.sessions[line].once.begin_anew();
                    }
                    // Before the first order, and before the next one after a lost connection.
                    let (policy, own) = (self.config.controls.venue_cancels, &self.lines[line]);
                    let session = &mut self.hot.sessions[line];
                    check_venue_cancels(policy, own.cancels_tag, session.fix.peer_cancels())?;
                    match own.is_whole() {
                        true => self.hot.rule.set_session(line, true),
                        // One that was lost is taken up in steps.
                        false => session.fix.set_reset_on_logon(false),
                    }
                }
                Event::Message { seq, poss_dup, .. } => self.message(line, now, (seq, poss_dup)),
                Event::Admin { .. } | Event::Gap { .. } => {}
                // An initiator is asked about no logon, and no cancel is configured.
                Event::LogonRequested { .. } | Event::CancelOrders { .. } => {}
                Event::Rejected { ref_seq, text, .. } => {
                    return Err(Failure::peer_lost(format!(
                        "the exchange rejected our message {ref_seq} ({}); trading on would hide a fault",
                        text.as_str()
                    )));
                }
                Event::NotKept { first, last, count } => tickwire_console::warn(format_args!(
                    "the exchange asked for messages that are no longer kept: {count} numbers, {first} to {last}, were sent as gap fills"
                )),
                Event::Disconnect { reason, text } => {
                    let session = &mut self.hot.sessions[line];
                    session.transmit();
                    session.fix.handle_disconnected(now);
                    self.hot.rule.set_session(line, false);
                    if self.end == End::LoggingOut {
                        self.over_in_good_order(line);
                        return Ok(());
                    }
                    let own = &mut self.lines[line];
                    if reason == DisconnectReason::PeerLogout && own.is_whole() {
                        // The exchange closes order entry at the end of its day; market data may still be
                        // under way.
                        own.logged_out = true;
                        return Ok(());
                    }
                    let why = format!("the order entry session ended early: {reason} {}", text.as_str());
                    // Of a connection that was lost, the venue may still hold the other end; or it begins its
                    // numbers anew with every logon.
                    let is_back = !own.is_whole();
                    let begins_anew = is_back && reason == DisconnectReason::SequenceTooLow;
                    let is_held = is_back && reason == DisconnectReason::LogonRefused;
                    if !(is_passing(reason) || begins_anew || is_held) {
                        return Err(Failure::peer_lost(why));
                    }
                    self.lose(line, now, why);
                    if begins_anew {
                        self.hot.sessions[line].fix.set_reset_on_logon(true);
                        self.lines[line].link.say(
                            "the venue has begun its numbers anew, so do we: what it said meanwhile is not sent again, each open order is asked for"
                                .to_string(),
                        );
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// What the venue says of orders and quotes.
    fn message(&mut self, line: usize, now: Nanos, at: (SeqNo, bool)) {
        let heard = answers::hear(&mut self.hot, line, now, at, &mut self.named);
        let session = &mut self.hot.sessions[line];
        match heard {
            // A request: not for us. The session has counted and sequenced it.
            Heard::Told | Heard::Repeated | Heard::Request | Heard::Refused(_) => {}
            Heard::Status(report) => self.status_report(line, now, &report),
            Heard::Broken { order, qty, price } => warn(format_args!(
                "the venue took a trade back: {qty} at {price} of order {}; no further order is sent",
                order.0
            )),
            Heard::NoQuotes(text) => warn(format_args!(
                "{}the venue takes no request about quotes: {}",
                self.of(line),
                text.as_str()
            )),
            Heard::Unknown => session.fix.refuse(now),
            Heard::Fault(fault) => session.fix.reject(now, fault),
        }
        R::settle(&mut self.hot, now);
    }

    /// What a venue has of an order that it was asked about.
    fn status_report(&mut self, line: usize, now: Nanos, report: &ExecutionReport) {
        let (found, reports) = stop::compare(&self.hot.rule, line, report);
        for report in reports.iter().flatten() {
            let _ = R::on_report(&mut self.hot, line, now, report);
        }
        if let Some(found) = found {
            self.differences += 1;
            warn(format_args!(
                "ALERT: {}the venue has order {} otherwise: {} filled, {} here{}",
                self.of(line),
                found.id.0,
                found.filled[1],
                found.filled[0],
                if found.is_over { "; it is over there" } else { "" }
            ));
        }
    }
}

pub(super) fn connection_failed(e: &std::io::Error) -> String {
    format!("the order entry connection failed: {e}")
}

/// Whether a session that ended for this reason may be taken up again: another attempt does not mend numbers
/// that do not fit, a Logon that is refused for what it says, or a store.
fn is_passing(reason: DisconnectReason) -> bool {
    !matches!(
        reason,
        DisconnectReason::SequenceTooLow
            | DisconnectReason::LogonRefused
            | DisconnectReason::ProtocolViolation
            | DisconnectReason::ResendLoop
            | DisconnectReason::StoreFailed
    )
}
