//! The order entry sessions of a trading thread: what comes over them, what is cancelled over them, and how a
//! lost one is taken up again.

use tickwire_fix::{
    Again, DisconnectReason, Encoder, ExecutionReport, OrderCancelRequest, Reason, Stamp, Store,
};
use tickwire_market::{ClientOrderId, EventSink, Nanos, SeqNo, Side};
use tickwire_runtime::wait::Waiter;
use tickwire_trading::ReportKind;

use super::stop::{self, Stopping};
use super::{End, Rule, Trader};
use crate::answers::{self, Heard};
use crate::controls::check_venue_cancels;
use crate::host::{self, Line};
use crate::hot::HotPath;
use crate::link::{Entry, Link};
use crate::session::{Returning, Said, TakenUp};
use crate::settings::{SendWay, TraderSection};
use tickwire_console::failure::Failure;
use tickwire_console::warn;
use tickwire_venues::order_entry::OrderEntrySection;

/// How far cancelling over an order entry session is.
#[derive(Default)]
pub(super) struct Stop {
    /// Everything open is being cancelled.
    pub(super) stopping: Option<Stopping>,
    /// When the venue is asked next what it has of our open orders.
    reconcile_at: Nanos,
    /// After our own logout: nothing more comes.
    pub(super) is_over: bool,
}

/// Connects to the venue of a session.
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
    if trader.send_stamps {
        link.stamp_what_is_sent();
    }
    let entry = link.entry(stream)?;
    Ok((Line::new(name, link, section.cancel_on_disconnect_tag), entry))
}

impl<R: Rule + 'static> Trader<'_, R>
where
    HotPath<Entry, true, R>: EventSink,
{
    /// Which of several sessions, for messages.
    pub(super) fn over(&self, line: usize) -> String {
        match self.host.lines.len() {
            1 => String::new(),
            _ => format!(" {}", self.host.lines[line].name),
        }
    }

    /// The same in front of a sentence.
    fn of(&self, line: usize) -> String {
        match self.host.lines.len() {
            1 => String::new(),
            _ => format!("session {}: ", self.host.lines[line].name),
        }
    }

    /// Cancels everything that is open.
    pub(super) fn cancel_all(&mut self, now: Nanos) {
        for line in 0..self.host.lines.len() {
            self.cancel_open(line, now);
        }
    }

    /// What a stop has come to, and what the venue has of our orders.
    pub(super) fn follow_stop(&mut self, line: usize, now: Nanos) {
        let of = self.of(line);
        let own = &mut self.stops[line];
        let Some(stopping) = &mut own.stopping else {
            if now >= own.reconcile_at && self.config.controls.reconcile_s > 0 {
                own.reconcile_at = now.after(u64::from(self.config.controls.reconcile_s) * Nanos::SECOND);
                self.ask_for_open(line, now);
            }
            return;
        };
        let open = stopping.open(&self.host.path.rule, line);
        if open == 0 {
            if stopping.orders > 0 {
                warn(format_args!(
                    "{of}the venue has confirmed: none of {} orders is open any more",
                    stopping.orders
                ));
            }
            own.stopping = None;
            self.hold();
            return;
        }
        if now.since(stopping.since) > stop::PATIENCE_NS && !stopping.is_late {
            stopping.is_late = true;
            warn(format_args!(
                "ALERT: {of}{open} orders are not confirmed to be over {} s after their cancels; the venue is asked again and again, and what it has open is cancelled again",
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
        let begun = self.host.path.clock.now();
        let is_up = self.host.path.sessions[line].is_active();
        self.end_all_armed(line, now);
        let count = match is_up {
            true => self.send_cancels(line, now, None),
            false => 0,
        };
        let took = self.host.path.clock.now().since(begun);
        let open = self.host.path.rule.open(Some(line));
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
        let mut meant = Vec::new();
        let rule = &self.host.path.rule;
        rule.each_open(line, &mut |order| meant.push(order.id));
        meant.sort_unstable();
        self.stops[line].stopping = Some(Stopping {
            since: now,
            ask_at: now.after(stop::ASK_NS),
            is_late: false,
            orders: open,
            holds: self.holds(line),
            meant,
        });
    }

    /// Sends a request to cancel for each open order that none is under way for; how many. `again`: of these
    /// orders alone, and of quotes also those that a cancellation was asked for and not answered.
    fn send_cancels(&mut self, line: usize, now: Nanos, again: Option<&[ClientOrderId]>) -> u32 {
        let symbol = self.config.trader.symbol.0;
        let mut count = 0_u32;
        R::cancel_quotes(&mut self.host.path, line, now, again.is_some());
        let mut meant = again.map(<[ClientOrderId]>::iter);
        while let Some(cancel) =
            stop::next_cancel(&mut self.host.path.rule, line, meant.as_mut(), symbol, now)
        {
            count += 1;
            // Kept for no resend: what is open is asked for instead.
            let session = &mut self.host.path.sessions[line];
            let msg_type = OrderCancelRequest::MSG_TYPE;
            let put = |e: &mut Encoder<'_>, stamp: &mut Stamp| cancel.encode(e, stamp);
            if session.fix.send(now, msg_type, Again::GapFill, put).is_err() {
                break;
            }
            if count.is_multiple_of(16) {
                session.transmit();
            }
        }
        self.host.path.sessions[line].transmit();
        count
    }

    /// Nothing is sent while a feed is silent, nor before the venue has confirmed that what was cancelled for
    /// it is gone: what was sent meanwhile would be cancelled too, and would keep the rest from being
    /// confirmed.
    pub(super) fn hold(&mut self) {
        let is_silent = self.hearing.iter().any(|hearing| hearing.silent_since.is_some());
        self.host.path.rule.set_silent(is_silent || self.is_held());
    }

    /// Whether what is new waits for the confirmation of a stop.
    pub(super) fn is_held(&self) -> bool {
        (0..self.stops.len()).any(|line| self.holds(line))
    }

    /// Whether the stop of a session, if there is one, holds back what is new.
    fn holds(&self, line: usize) -> bool {
        let stopping = self.stops[line].stopping.as_ref();
        stopping.is_some_and(|stopping| stopping.holds)
    }

    /// There is no session any more; [`Trader::mend`] takes it up again.
    #[cold]
    pub(super) fn lose(&mut self, line: usize, now: Nanos, why: String) {
        if !self.host.lines[line].link.is_up() {
            return;
        }
        if self.end == End::LoggingOut {
            return self.over_in_good_order(line);
        }
        self.end_all_armed(line, now);
        let session = &mut self.host.path.sessions[line];
        session.fix.handle_disconnected(now);
        // Of this connection nothing more is to be done; of the end of the session somebody has told.
        while session.fix.poll_event().is_some() {}
        // What the venue says meanwhile is to be heard of.
        session.fix.set_reset_on_logon(false);
        self.host.path.lose(line, now);
        self.host.drop_connection(line, now, why);
    }

    fn over_in_good_order(&mut self, line: usize) {
        self.stops[line].is_over = true;
        self.end_if_over();
    }

    /// Ten times a second: the way back of a session that was lost, step by step.
    pub(super) fn mend(&mut self, line: usize, now: Nanos) -> Result<(), Failure> {
        if self.host.lines[line].is_ended || matches!(self.end, End::LoggingOut | End::Done) {
            return Ok(());
        }
        self.host.mend(line, now)?;
        if self.host.path.rule.ends_with_session(line) {
            // It is taken up as soon as the venue has said enough.
            return Ok(());
        }
        let open = self.host.path.rule.open(Some(line));
        let session = &mut self.host.path.sessions[line];
        match session.returning {
            Some(Returning::CatchingUp) if session.fix.is_caught_up() => {
                session.returning = Some(Returning::Confirming);
                if open > 0 {
                    self.cancel_open(line, now);
                }
            }
            Some(Returning::Confirming) if self.stops[line].stopping.is_none() && open > 0 => {
                self.cancel_open(line, now)
            }
            Some(Returning::Confirming) if open == 0 && self.stops[line].stopping.is_none() => {
                session.returning = None;
                session.awaits_rest = false;
                R::on_session(&mut self.host.path, line, true, now);
                R::settle(&mut self.host.path, now);
                self.host.lines[line].link.say(format!(
                    "the order entry session{} goes on: everything that was missed has come, nothing of ours is open, position {}",
                    self.over(line),
                    self.position()
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// Goes on with a session of strategies whose orders end with it.
    #[inline]
    pub(super) fn take_up(&mut self, line: usize, now: Nanos) {
        match self.host.path.take_up(line, now) {
            TakenUp::Waits | TakenUp::Whole => {}
            TakenUp::Refused => {
                let session = &mut self.host.path.sessions[line];
                session.fix.logout(now, "cancel on logon was not confirmed");
                session.transmit();
            }
        }
    }

    /// Asks the venue what it has of the orders that we believe to be open.
    pub(super) fn ask_for_open(&mut self, line: usize, now: Nanos) {
        if !self.host.path.sessions[line].is_active() {
            return;
        }
        self.end_all_armed(line, now);
        if let Some(stopping) = self.stops[line].stopping.take() {
            // Also those whose cancel was refused, and what a replacement that was under way has become.
            self.send_cancels(line, now, Some(&stopping.meant));
            self.stops[line].stopping = Some(stopping);
        }
        let symbol = self.config.trader.symbol.0;
        let rule = &self.host.path.rule;
        let mut asked: Vec<(ClientOrderId, Side, tickwire_market::Symbol)> = Vec::new();
        rule.each_open(line, &mut |order| {
            if asked.len() < stop::ASKED_MAX {
                let symbol = rule.symbol_of(order.instrument).unwrap_or(symbol);
                asked.push((order.id, order.side, symbol));
            }
        });
        let session = &mut self.host.path.sessions[line];
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

    /// The exchange has closed the connection.
    pub(super) fn connection_closed(&mut self, line: usize, now: Nanos) -> Result<(), Failure> {
        self.host.path.sessions[line].fix.handle_disconnected(now);
        host::events(self, line, now)?;
        if matches!(self.end, End::LoggingOut | End::Done) {
            self.over_in_good_order(line);
        } else if !self.host.lines[line].is_ended {
            let why = format!(
                "the exchange at {} closed the order entry connection before the session's end; was it stopped or killed?",
                self.host.lines[line].link.peer()
            );
            self.lose(line, now, why);
        }
        Ok(())
    }

    /// What the session has said that the thread decides on.
    pub(super) fn session_said(&mut self, line: usize, now: Nanos, said: Said) -> Result<(), Failure> {
        match said {
            Said::LoggedOn => {
                // Before the first order, and before the next one after a lost connection.
                let (policy, tag) = (
                    self.config.controls.venue_cancels,
                    self.host.lines[line].cancels_tag,
                );
                check_venue_cancels(policy, tag, self.host.path.sessions[line].fix.peer_cancels())?;
                self.host.path.log_on(line, now);
                Ok(())
            }
            Said::Heard(heard) => {
                self.heard(line, now, heard);
                Ok(())
            }
            Said::Rejected { ref_seq, text } => match R::on_distrust(&mut self.host.path, line, now) {
                true => {
                    R::settle(&mut self.host.path, now);
                    warn(format_args!(
                        "ALERT: {}the exchange rejected our message {ref_seq} ({}): what is open may be otherwise than we believe, and is taken away",
                        self.of(line),
                        text.as_str()
                    ));
                    Ok(())
                }
                false => Err(Failure::peer_lost(format!(
                    "the exchange rejected our message {ref_seq} ({}); trading on would hide a fault",
                    text.as_str()
                ))),
            },
            Said::Ended { reason, text } => self.session_ended(line, now, reason, text),
        }
    }

    fn session_ended(
        &mut self,
        line: usize,
        now: Nanos,
        reason: DisconnectReason,
        text: Reason,
    ) -> Result<(), Failure> {
        let session = &mut self.host.path.sessions[line];
        session.transmit();
        session.fix.handle_disconnected(now);
        let is_whole = session.is_whole();
        R::lose(&mut self.host.path, line, now);
        if self.end == End::LoggingOut {
            self.over_in_good_order(line);
            return Ok(());
        }
        if reason == DisconnectReason::PeerLogout && is_whole {
            // The exchange closes order entry at the end of its day; market data may still be under way.
            self.host.lines[line].is_ended = true;
            return Ok(());
        }
        let why = format!("the order entry session ended early: {reason} {}", text.as_str());
        // Of a connection that was lost, the venue may still hold the other end; or it begins its numbers
        // anew with every logon.
        let begins_anew = !is_whole && reason == DisconnectReason::SequenceTooLow;
        let is_held = !is_whole && reason == DisconnectReason::LogonRefused;
        if !(is_passing(reason) || begins_anew || is_held) {
            return Err(Failure::peer_lost(why));
        }
        if begins_anew {
            // Written well before the logon that says so to the venue.
            self.host.path.doubt_the_rest(line);
        }
        self.lose(line, now, why);
        if begins_anew {
            self.host.path.sessions[line].fix.set_reset_on_logon(true);
            self.host.lines[line].link.say(
                "the venue has begun its numbers anew, so do we: what it said meanwhile is not sent again, each open order is asked for"
                    .to_string(),
            );
        }
        Ok(())
    }

    /// What the venue says of orders and quotes that no strategy could be told of.
    fn heard(&mut self, line: usize, now: Nanos, heard: Heard) {
        let session = &mut self.host.path.sessions[line];
        match heard {
            // A request: not for us. The session has counted and sequenced it.
            Heard::Told | Heard::Repeated | Heard::Request => {}
            Heard::Refused(_) => self.distrust(line, now),
            Heard::Status(report) => self.status_report(line, now, &report),
            Heard::Broken { order, qty, price } => warn(format_args!(
                "the venue took a trade back: {qty} at {price} of order {}; no further order is sent",
                order.0
            )),
            Heard::NoQuotes(text) => {
                warn(format_args!(
                    "{}the venue takes no request about quotes: {}",
                    self.of(line),
                    text.as_str()
                ));
                self.distrust(line, now);
            }
            Heard::Unknown => session.fix.refuse(now),
            Heard::Fault(fault) => {
                session.fix.reject(now, fault);
                self.distrust(line, now);
            }
        }
        R::settle(&mut self.host.path, now);
    }

    /// What a strategy may have to see to; one that does not goes on.
    fn distrust(&mut self, line: usize, now: Nanos) {
        let _ = R::on_distrust(&mut self.host.path, line, now);
    }

    /// What a venue has of an order that it was asked about.
    fn status_report(&mut self, line: usize, now: Nanos, report: &ExecutionReport) {
        let (found, reports) = stop::compare(&self.host.path.rule, line, report);
        for told in reports.iter().flatten() {
            let done = R::on_report(&mut self.host.path, line, now, told);
            // What traded unheard is held from now on, and in the next process.
            if let (Ok(_), ReportKind::Filled { qty, price, .. } | ReportKind::Broken { qty, price, .. }) =
                (done, told.kind)
            {
                let path = &mut self.host.path;
                let seq = SeqNo(path.sessions[line].fix.store().next_in().saturating_sub(1));
                answers::keep(path, line, now, seq, report, (qty, price));
            }
        }
        if let Some(stopping) = &self.stops[line].stopping
            && let Some(id) = stop::lives_on(&self.host.path.rule, line, report)
            && stopping.is_meant(id)
        {
            self.host.path.rule.forget_cancel(line, id);
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
