//! What the venue says of quotes: from its messages to the quoter.

use tickwire_fix::{
    BusinessMessageReject, Event, ExecutionReport, Id, OrderCancelReject, QuoteAnswer, quote_status_answers,
    read_quote_answer,
};
use tickwire_market::Nanos;
use tickwire_node::hot::OrderOut;
use tickwire_trading::{SideOutcome, SideReport};

use super::{QuotePath, Trades};
use crate::as_orders::AsOrders;
use tickwire_node::controls::check_venue_cancels;

impl<O: OrderOut, T: Trades> QuotePath<O, T> {
    /// What the venue has said.
    pub fn answers(&mut self, now: Nanos) {
        self.wire.now = now;
        while let Some(event) = self.wire.session.poll_event() {
            match event {
                Event::LoggedOn { reset, .. } => {
                    let (policy, tag) = self.session.venue_cancels;
                    match check_venue_cancels(policy, tag, self.wire.session.peer_cancels()) {
                        Ok(()) => self.logged_on(now, reset),
                        // Without this nothing is quoted again.
                        Err(failure) => self.session.refused = Some(failure),
                    }
                }
                Event::Message { seq, poss_dup, .. } => {
                    self.executions.told = seq.0;
                    self.answer(now, poss_dup);
                }
                Event::Rejected { .. } => self.distrust(now),
                Event::Disconnect { reason, .. } => {
                    self.wire.transmit();
                    self.session_lost();
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
            self.wire.transmit();
        }
        self.catch_up(now);
        self.maker.follow_pull(now);
        self.wire.out.let_go();
    }

    /// What is sent again (`is_late`) is of a connection that was lost, and its quotes with it: only
    /// executions still count.
    pub(super) fn answer(&mut self, now: Nanos, is_late: bool) {
        let Some(message) = self.wire.session.message() else {
            return;
        };
        let asked =
            quote_status_answers(&message).and_then(|number| self.session.reconciliation.answered(number));
        match read_quote_answer(&message, &mut self.session.named) {
            Ok(Some(_)) if is_late => {}
            Ok(Some(QuoteAnswer::Answered { id, is_rejected })) => {
                let rejected = (!is_rejected).then_some(&self.session.named[..]);
                self.maker.quoter.on_answer(now, id, rejected, &mut self.wire);
            }
            Ok(Some(QuoteAnswer::Cancelled { id, is_done })) => self.cancelled(now, id, is_done),
            Ok(Some(QuoteAnswer::Removed { why: b'F' })) => self.maker.quoter.on_protected(),
            Ok(Some(QuoteAnswer::Removed { .. })) => {
                for quote in &self.session.named {
                    self.maker.quoter.on_removed(*quote, [true; 2]);
                }
            }
            Ok(Some(QuoteAnswer::Left { open, .. })) if asked.is_some() => {
                if let Some(asked) = asked {
                    self.reconciled(now, asked, open);
                }
            }
            Ok(Some(QuoteAnswer::Left { symbol, open })) => {
                if let Some(quote) = self.quote_by_name(&symbol) {
                    self.maker.quoter.on_left(quote, open);
                }
            }
            Ok(None) => match message.msg_type() {
                ExecutionReport::MSG_TYPE => match ExecutionReport::decode(&message) {
                    Ok(report) => self.report(now, &report, is_late),
                    Err(_) => self.distrust(now),
                },
                OrderCancelReject::MSG_TYPE => match OrderCancelReject::decode(&message) {
                    Ok(reject) if !is_late => self.refused(now, &reject.cl_ord_id),
                    Ok(_) => {}
                    Err(_) => self.distrust(now),
                },
                BusinessMessageReject::MSG_TYPE => self.distrust(now),
                _ => {}
            },
            Err(_) => self.distrust(now),
        }
    }

    /// Every quote was cancelled, or every order where they are orders.
    pub(super) fn cancelled(&mut self, now: Nanos, id: u64, is_done: bool) {
        let Some(entry) = self.wire.entry.as_orders() else {
            return self.maker.quoter.on_cancelled(now, id, is_done, &mut self.wire);
        };
        match entry.end_cancel(id, is_done) {
            Some(0) if is_done => {}
            Some(0) => self.refuse_to_begin(now),
            asked => self
                .maker
                .quoter
                .on_cancelled(now, asked.unwrap_or(id), is_done, &mut self.wire),
        }
    }

    /// A replacement or a cancel of a quote's order was refused.
    pub(super) fn refused(&mut self, now: Nanos, name: &Id) {
        let Some(entry) = self.wire.entry.as_orders() else {
            return;
        };
        if let Some(report) = entry.refusal(name.to_number().unwrap_or_default()) {
            let outcome = entry.orders.on_report(&report);
            self.follow(now, &report, outcome);
        }
    }

    /// Tells the quoter what a report means.
    pub(super) fn follow(&mut self, now: Nanos, report: &SideReport, outcome: SideOutcome) {
        match outcome {
            SideOutcome::Nothing | SideOutcome::Unknown => {}
            SideOutcome::Left(contracts) => {
                let mut left = [u32::MAX; 2];
                left[report.side as usize] = contracts;
                self.maker.quoter.on_left(report.quote, left);
            }
            SideOutcome::Answered(live) => self.maker.on_orders(now, &live, &mut self.wire),
        }
        self.answer_idle(now);
    }

    /// Answers what the venue need not be asked for.
    #[inline]
    pub(super) fn answer_idle(&mut self, now: Nanos) {
        let idle = |entry: &mut AsOrders| entry.orders.poll_answer();
        while let Some(live) = self.wire.entry.as_orders().and_then(idle) {
            self.maker.on_orders(now, &live, &mut self.wire);
        }
    }

    /// What cannot be read may have been about our quotes.
    #[cold]
    pub(super) fn distrust(&mut self, now: Nanos) {
        self.session.unread += 1;
        self.pull(now);
    }
}
