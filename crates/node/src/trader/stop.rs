//! How the trader stops: the kill switch, by command and by file, cancels what is open and asks the venue
//! what became of it.
//!
//! The requests leave together, one for each open order: OrderCancelRequest (F), since every version of FIX
//! and every venue has it. What is not answered within [`ASK_NS`] is asked for (OrderStatusRequest, H), again
//! and again; what the venue says of an order counts, whatever was believed. What is open there all the same,
//! its cancel refused or lost, is cancelled again. Until the venue has said of every one that it is gone, the
//! kill is not confirmed, and that is said.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tickwire_fix::{ExecutionReport, OrdStatus, OrderCancelRequest, tag};
use tickwire_kernelpath::KillSwitch;
use tickwire_kernelpath::delegate::Counts;
use tickwire_market::{Cause, ClientOrderId, Nanos, OrderId, OrderIntent, Qty, Side, Symbol};
use tickwire_runtime::spsc::Producer;
use tickwire_runtime::users::Peer;
use tickwire_trading::{OrderReport, OrderState, ReportKind};

use crate::controls::{ControlsSection, named};
use tickwire_console::failure::Failure;
use tickwire_console::warn;
use tickwire_control::client;
use tickwire_control::socket::Answer;

use super::Rule;

/// How long a cancel may take before the order's status is asked for, and between two such questions.
pub(super) const ASK_NS: u64 = 250 * Nanos::MILLI;
/// How long all of them may take before it is said that the venue has not confirmed.
pub(super) const PATIENCE_NS: u64 = 2 * Nanos::SECOND;
/// Orders whose status is asked for at once, when nothing is wrong.
pub(super) const ASKED_MAX: usize = 32;

/// A kill under way.
#[derive(Clone, Debug)]
pub(super) struct Stopping {
    pub(super) since: Nanos,
    /// When what is open is asked for next.
    pub(super) ask_at: Nanos,
    pub(super) is_late: bool,
    pub(super) orders: u32,
    /// It is for market data that was silent: nothing new is sent before it is confirmed.
    pub(super) holds: bool,
    /// The orders that were open, in their order. What a strategy that goes on has sent since is no matter of
    /// it.
    pub(super) meant: Vec<ClientOrderId>,
}

impl Stopping {
    pub(super) fn is_meant(&self, id: ClientOrderId) -> bool {
        self.meant.binary_search(&id).is_ok()
    }

    /// How many of the orders that are meant are open, and quotes.
    pub(super) fn open<R: Rule>(&self, rule: &R, session: usize) -> u32 {
        let (mut all, mut meant) = (0, 0);
        rule.each_open(session, &mut |order| {
            all += 1;
            meant += u32::from(self.is_meant(order.id));
        });
        rule.open(Some(session)) - all + meant
    }
}

/// An OrderCancelRequest for the next open order of a session, or of those that are left of these, that none
/// was sent for; `None` when there is one for all of them.
pub(super) fn next_cancel<R: Rule>(
    rule: &mut R,
    session: usize,
    of: Option<&mut std::slice::Iter<'_, ClientOrderId>>,
    symbol: Symbol,
    now: Nanos,
) -> Option<OrderCancelRequest> {
    let OrderIntent::Cancel {
        id,
        target,
        venue_id,
        cause,
        ..
    } = match of {
        None => rule.cancel_next(session, Cause::default()),
        Some(meant) => meant.find_map(|id| rule.cancel_one(session, *id)),
    }?
    else {
        return None;
    };
    let order = *rule.order(session, target)?;
    Some(OrderCancelRequest {
        cl_ord_id: id.into(),
        orig_cl_ord_id: target.into(),
        order_id: venue_id.map_or(tickwire_fix::Id::EMPTY, |id| tickwire_fix::Id::from_number(id.0)),
        symbol: rule.symbol_of(order.instrument).unwrap_or(symbol),
        side: order.side,
        transact_time: now,
        qty: order.qty,
        cause: Some(cause),
    })
}

/// What an OrderStatusRequest (H) says behind its header.
pub(super) fn put_status_request(
    e: &mut tickwire_fix::Encoder<'_>,
    id: ClientOrderId,
    symbol: Symbol,
    side: Side,
) {
    e.text(tag::CL_ORD_ID, tickwire_fix::Id::from(id).as_bytes());
    e.text(tag::SYMBOL, symbol.as_bytes());
    e.char(tag::SIDE, if side == Side::Bid { b'1' } else { b'2' });
}

/// How what the venue says of an order differs from what is believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Difference {
    pub(super) id: ClientOrderId,
    /// Filled, as we have it and as the venue does.
    pub(super) filled: [Qty; 2],
    /// The venue has it no more, or never had.
    pub(super) is_over: bool,
}

/// Compares the answer to an OrderStatusRequest with what is believed. The reports that this gives bring the
/// order to where the venue has it: what traded without our hearing of it, at the average price of the whole
/// order, since no other is known; that a stop order was triggered; and the end of an order that the venue
/// has no more, which nothing else would end.
pub(super) fn compare<R: Rule>(
    rule: &R,
    session: usize,
    report: &ExecutionReport,
) -> (Option<Difference>, [Option<OrderReport>; 3]) {
    let known = report.cl_ord_id.to_number().map(ClientOrderId);
    let Some(order) = known.and_then(|id| rule.order(session, id)).copied() else {
        return (None, [None; 3]);
    };
    let id = order.id;
    let is_over = matches!(
        report.ord_status,
        OrdStatus::Filled
            | OrdStatus::Canceled
            | OrdStatus::Rejected
            | OrdStatus::Expired
            | OrdStatus::DoneForDay
    );
    let is_unknown = report.ord_status == OrdStatus::Rejected && report.cum_qty.is_zero();
    let venue = if is_unknown { order.filled } else { report.cum_qty };
    let difference = Difference {
        id,
        filled: [order.filled, venue],
        is_over,
    };
    let is_open = order.state.is_open();
    let unheard = Qty(venue.0.saturating_sub(order.filled.0).min(order.remaining().0));
    let filled = (!unheard.is_zero()).then(|| OrderReport {
        id,
        venue_id: report.order_id.to_number().map(OrderId),
        kind: ReportKind::Filled {
            qty: unheard,
            price: report.avg_px,
            cumulative: Qty(order.filled.0 + unheard.0),
        },
    });
    // What has traded was triggered.
    let is_news = report.is_working && order.is_waiting() && is_open && !is_over && filled.is_none();
    let triggered = is_news.then(|| OrderReport {
        id,
        venue_id: report.order_id.to_number().map(OrderId),
        kind: ReportKind::Triggered,
    });
    // That fill ends an order of which nothing remains.
    let is_open_still = is_open && unheard != order.remaining();
    let ended = (is_open_still && is_over).then(|| match order.replaces {
        // The one that it was to take the place of lives on, or has its own answer.
        Some(old) if order.state == OrderState::PendingNew => OrderReport {
            id: old,
            venue_id: None,
            kind: ReportKind::ReplaceRejected { by: id },
        },
        _ => OrderReport {
            id,
            venue_id: report.order_id.to_number().map(OrderId),
            kind: match order.state {
                OrderState::PendingNew if filled.is_none() => ReportKind::Rejected,
                _ => ReportKind::Cancelled,
            },
        },
    });
    let differs = venue != order.filled || (is_open && is_over);
    (differs.then_some(difference), [triggered, filled, ended])
}

/// The order that a request to cancel was sent for before its status was asked for, and that the venue has
/// open all the same: the request never came, or its refusal was not heard of.
pub(super) fn lives_on<R: Rule>(rule: &R, session: usize, report: &ExecutionReport) -> Option<ClientOrderId> {
    let is_open = matches!(report.ord_status, OrdStatus::New | OrdStatus::PartiallyFilled);
    let id = ClientOrderId(report.cl_ord_id.to_number()?);
    let order = rule.order(session, id)?;
    (is_open && order.state.is_open() && order.is_cancel_requested).then_some(id)
}

/// What the thread that trades and the one of the control socket share: words.
#[derive(Debug, Default)]
pub(super) struct Shared {
    kills: AtomicU64,
    resumes: AtomicU64,
    obeyed: [AtomicU64; 2],
    /// Whether the kill switch is on; 1 + the reason that stopped the rule; orders sent, open; what the venue
    /// said of them was different; whether the order entry session is up.
    state: [AtomicU64; 6],
    position: AtomicI64,
    gain: AtomicI64,
    /// What left past the kernel, where something may, in the order of [`SENDING`].
    sending: [AtomicU64; SENDING.len()],
    /// Orders leave past the kernel.
    is_delegated: AtomicBool,
    /// Of an order that a program may send at any moment.
    kill_switch: OnceLock<KillSwitch>,
}

/// What a status says of orders that leave past the kernel.
const SENDING: [&str; 10] = [
    "delegated",
    "segments",
    "by_kernel",
    "early_answers",
    "early_answers_lost",
    "sent_again",
    "armed",
    "fired",
    "taken_back",
    "armed_in_vain",
];

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OperatorRequest {
    Kill,
    Resume,
}

impl Shared {
    /// Asks for the kill switch. What is armed does not leave from here on, before the trading thread hears
    /// of it.
    pub(super) fn kill(&self) {
        if let Some(armed) = self.kill_switch.get() {
            armed.kill();
        }
        self.kills.fetch_add(1, Ordering::Relaxed);
    }

    /// The kill switch of what may be armed.
    pub(super) fn guard_armed(&self, kill_switch: KillSwitch) {
        let _ = self.kill_switch.set(kill_switch);
    }

    /// The trading thread goes on: what is armed from now on may leave.
    pub(super) fn lift(&self) {
        if let Some(armed) = self.kill_switch.get() {
            armed.lift();
        }
    }

    /// What has left past the kernel.
    pub(super) fn note_sending(&self, counts: &Counts) {
        let armed = &counts.pre_armed;
        let words: [u64; SENDING.len()] = [
            counts.delegated,
            counts.segments,
            counts.by_kernel(),
            counts.held,
            counts.no_room + counts.not_injected,
            counts.retransmissions,
            armed.armed,
            armed.fired,
            armed.taken_back,
            armed.gap + armed.no_room,
        ];
        for (word, value) in self.sending.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        self.is_delegated.store(true, Ordering::Relaxed);
    }

    /// What was asked for since this was last called; a kill goes before a resumption. Two loads when there
    /// is nothing.
    #[inline]
    pub(super) fn poll(&self) -> Option<OperatorRequest> {
        let is_news = |word: &AtomicU64, at: usize| {
            let asked = word.load(Ordering::Relaxed);
            self.obeyed[at].swap(asked, Ordering::Relaxed) != asked
        };
        let resumes = self.resumes.load(Ordering::Relaxed) != self.obeyed[1].load(Ordering::Relaxed)
            && is_news(&self.resumes, 1);
        let kills = self.kills.load(Ordering::Relaxed) != self.obeyed[0].load(Ordering::Relaxed)
            && is_news(&self.kills, 0);
        match (kills, resumes) {
            (true, _) => Some(OperatorRequest::Kill),
            (false, true) => Some(OperatorRequest::Resume),
            (false, false) => None,
        }
    }

    /// Says how things are.
    pub(super) fn note<R: Rule>(
        &self,
        rule: &R,
        sent: u64,
        position: i64,
        differences: u64,
        has_session: bool,
    ) {
        let stopped = (0..rule.count()).find_map(|which| rule.stopped(which));
        let stopped = stopped.map_or(0, |reason| 1 + reason as u64);
        let words = [
            u64::from(rule.is_killed()),
            stopped,
            sent,
            rule.open(None).into(),
            differences,
            has_session.into(),
        ];
        for (word, value) in self.state.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        self.position.store(position, Ordering::Relaxed);
        self.gain.store(rule.gain(), Ordering::Relaxed);
    }

    fn status(&self) -> Value {
        let [killed, stopped, sent, open, differences, has_session] =
            [0, 1, 2, 3, 4, 5].map(|at: usize| self.state[at].load(Ordering::Relaxed));
        let reason = (stopped as usize)
            .checked_sub(1)
            .and_then(|at| tickwire_trading::RiskReject::ALL.get(at));
        let state = match (killed, reason) {
            (0, None) => "trading",
            (0, Some(_)) => "stopped",
            _ => "killed",
        };
        let mut status = json!({
            "state": state,
            "session": (if has_session == 0 { "lost" } else { "up" }),
            "stopped_by": (reason.map(|reason| named(*reason))),
            "orders": sent,
            "open": open,
            "position": (self.position.load(Ordering::Relaxed)),
            "gain_at_mid": (self.gain.load(Ordering::Relaxed)),
            "differences": differences,
        });
        if self.is_delegated.load(Ordering::Relaxed) {
            let words = SENDING.iter().zip(&self.sending);
            let words = words.map(|(name, word)| ((*name).to_owned(), word.load(Ordering::Relaxed).into()));
            status["sending"] = Value::Object(words.collect());
        }
        status
    }
}

/// The longest words of an operator, bytes.
const WORDS_MAX: usize = 120;
/// Words on their way to the trading thread, which takes one in each turn; what there is no room for is
/// refused.
pub(super) const WORDS_WAITING: usize = 16;

/// An operator's words to the strategies, as typed.
#[derive(Clone, Copy)]
pub(super) struct Words {
    bytes: [u8; WORDS_MAX],
    len: usize,
}

impl Words {
    fn new(text: &str) -> Result<Words, String> {
        let text = text.trim();
        if text.is_empty() || text.len() > WORDS_MAX {
            return Err(format!(
                "words to a strategy have 1 to {WORDS_MAX} bytes, these have {}",
                text.len()
            ));
        }
        let mut bytes = [0; WORDS_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        let len = text.len();
        Ok(Words { bytes, len })
    }

    /// The words.
    pub(super) fn as_str(&self) -> &str {
        // They were a text.
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

/// What a trader may be asked for.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Request {
    /// Cancels everything and sends nothing more, until it is resumed.
    Kill {},
    /// Lets the rule go on: after a kill, or after a control has stopped it.
    Resume {},
    /// How it is.
    Status {},
    /// Says something to every strategy.
    Say {
        /// As typed.
        words: String,
    },
}

/// The operator's side.
pub(super) struct OperatorControl {
    pub(super) shared: Arc<Shared>,
    /// To the trading thread.
    pub(super) words: Producer<Words>,
    pub(super) controls: ControlsSection,
}

impl Answer for OperatorControl {
    type Request = Request;
    const WHO: &'static str = "a trader";

    fn answer(&mut self, request: Request, by: &Peer) -> Result<Value, String> {
        match request {
            Request::Kill {} => {
                warn(format_args!("killed by {by}"));
                self.shared.kill();
                Ok(
                    json!({ "says": "everything open is being cancelled, and nothing more is sent; `status` says what is open still" }),
                )
            }
            Request::Resume {} => {
                self.controls.may_resume()?;
                warn(format_args!("resumed by {by}"));
                self.shared.resumes.fetch_add(1, Ordering::Relaxed);
                Ok(json!({ "says": "the rule trades again" }))
            }
            Request::Status {} => Ok(self.shared.status()),
            Request::Say { words } => {
                let told = Words::new(&words)?;
                self.words.push(told).map_err(|_| {
                    format!(
                        "{WORDS_WAITING} words wait for the trading thread already; `status` says how it is"
                    )
                })?;
                warn(format_args!("{by} says to the strategies: {}", told.as_str()));
                Ok(json!({ "says": "every strategy is told" }))
            }
        }
    }
}

/// What an operator tells a trader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum TraderWord {
    /// State, orders sent and open, position, gain at mid prices
    Status,
    /// Cancel everything that is open and send nothing more, until `resume`: the kill switch
    Kill,
    /// Trade again: after a kill, or after a control has stopped the rule
    Resume,
}

/// Says a word to a running trader and prints the answer.
pub fn tell(socket: &std::path::Path, word: TraderWord) -> Result<(), Failure> {
    let request = match word {
        TraderWord::Status => Request::Status {},
        TraderWord::Kill => Request::Kill {},
        TraderWord::Resume => Request::Resume {},
    };
    let request = serde_json::to_value(request).map_err(|e| Failure::system(e.to_string()))?;
    client::print_answer(&client::ask_trader(socket, &request)?);
    Ok(())
}

/// Says something to the strategies of a running trader, in their own words, and prints the answer.
///
/// # Errors
/// Nobody listens there, or there is no room.
pub fn say(socket: &std::path::Path, words: &str) -> Result<(), Failure> {
    let words = words.to_string();
    let request = serde_json::to_value(Request::Say { words }).map_err(|e| Failure::system(e.to_string()))?;
    client::print_answer(&client::ask_trader(socket, &request)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hot::HotPath;
    use crate::live::{self, Live};
    use crate::memory::{self, MemoryOut};
    use tickwire_fix::{ExecType, Id, Reason};
    use tickwire_market::{
        EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, OrderType, Price, SeqNo, TimeInForce,
        Volume,
    };
    use tickwire_runtime::clock::Clock;
    use tickwire_trading::BestOffer;

    type Hot = HotPath<MemoryOut, true, Live<BestOffer>>;

    /// What the trader does: the order ends as the venue says.
    fn compare(hot: &mut Hot, report: &ExecutionReport) -> Option<Difference> {
        let (found, reports) = super::compare(&hot.rule, 0, report);
        for report in reports.iter().flatten() {
            live::report(hot, Nanos(1), report).expect("it was open");
        }
        found
    }

    /// The offer moves; whether an order left.
    fn moves(hot: &mut Hot, kind: EventKind, seq: u64, side: Side, price_4dp: u32) -> bool {
        let before = hot.sessions[0].out.orders;
        hot.on_event(&MarketEvent {
            kind,
            instrument: InstrumentId(1),
            seq: SeqNo(seq),
            recv_ts: Nanos(seq * 10 * Nanos::MILLI),
            order_id: OrderId(if kind == EventKind::Replace { seq - 1 } else { seq }),
            ref_id: seq,
            side,
            price: Price::from_4dp(price_4dp),
            qty: Volume(1),
            flags: EventFlags::LAST,
            ..MarketEvent::default()
        });
        hot.sessions[0].out.orders > before
    }

    /// A rule with so many open orders of 100.
    fn rule(orders: u32) -> Hot {
        let symbol = Symbol::new(b"AAPL").unwrap();
        let own = BestOffer::new(symbol, Qty(100), TimeInForce::Day);
        let mut hot =
            memory::strategy_path::<_, true>(own, memory::books(1), symbol, Clock::calibrate()).unwrap();
        hot.on_event(&MarketEvent {
            kind: EventKind::Recovered,
            instrument: InstrumentId::WHOLE_FEED,
            ..MarketEvent::default()
        });
        assert!(!moves(&mut hot, EventKind::Add, 1, Side::Bid, 99_0000));
        for n in 0..=orders {
            let kind = if n == 0 {
                EventKind::Add
            } else {
                EventKind::Replace
            };
            let seq = u64::from(n) + 2;
            let sent = moves(&mut hot, kind, seq, Side::Ask, 100_0000 + n % 2 * 100);
            assert_eq!(sent, n > 0, "{n}");
        }
        hot
    }

    fn status(id: u64, ord_status: OrdStatus, cum_qty: u32) -> ExecutionReport {
        ExecutionReport {
            order_id: Id::from_number(7),
            cl_ord_id: Id::from_number(id),
            orig_cl_ord_id: Id::EMPTY,
            exec_id: Id::from_number(9),
            exec_type: ExecType::OrderStatus,
            ord_status,
            ord_rej_reason: None,
            symbol: Symbol::EMPTY,
            side: Side::Bid,
            qty: Qty(100),
            order_type: OrderType::Limit,
            price: Some(Price::from_4dp(100_0000)),
            stop: None,
            is_working: false,
            time_in_force: TimeInForce::Day,
            last_qty: Qty(0),
            last_px: None,
            leaves_qty: Qty(0),
            cum_qty: Qty(cum_qty),
            avg_px: Price::ZERO,
            transact_time: Nanos::ZERO,
            cause: None,
            text: Reason::EMPTY,
        }
    }

    #[test]
    fn a_status_says_what_left_past_the_kernel_where_something_may() {
        let shared = Shared::default();
        assert!(
            shared.status().get("sending").is_none(),
            "orders leave by the kernel"
        );
        let mut counts = Counts {
            delegated: 7,
            segments: 9,
            held: 3,
            no_room: 1,
            not_injected: 2,
            ..Counts::default()
        };
        counts.ordinary[0] = 4;
        counts.pre_armed.fired = 5;
        counts.pre_armed.gap = 6;
        shared.note_sending(&counts);
        let status = shared.status();
        let sending = &status["sending"];
        assert_eq!(sending.as_object().map(serde_json::Map::len), Some(SENDING.len()));
        for (name, value) in [
            ("delegated", 7),
            ("segments", 9),
            ("by_kernel", 4),
            ("early_answers", 3),
            ("early_answers_lost", 3),
            ("fired", 5),
            ("armed_in_vain", 6),
        ] {
            assert_eq!(sending[name], value, "{name}");
        }
    }

    #[test]
    fn every_open_order_is_cancelled_once_and_nothing_is_sent_after_the_kill() {
        let mut hot = rule(1_000);
        assert_eq!(hot.rule.open(None), 1_000);
        hot.rule.kill();
        let symbol = Symbol::new(b"AAPL").unwrap();
        let mut targets = Vec::new();
        while let Some(cancel) = next_cancel(&mut hot.rule, 0, None, symbol, Nanos(1)) {
            assert_ne!(cancel.cl_ord_id, cancel.orig_cl_ord_id);
            targets.push(cancel.orig_cl_ord_id.to_number().unwrap());
        }
        assert_eq!(targets, (1..=1_000).collect::<Vec<u64>>());
        let is_killed = !moves(&mut hot, EventKind::Replace, 1_003, Side::Ask, 101_0000);
        assert!(is_killed);
        hot.rule.revive();
        let is_sent = moves(&mut hot, EventKind::Replace, 1_004, Side::Ask, 101_0100);
        assert!(is_sent, "the next good one");
    }

    #[test]
    fn what_is_open_although_it_was_cancelled_is_cancelled_again() {
        // The third one came after the stop.
        let mut hot = rule(3);
        let symbol = Symbol::new(b"AAPL").unwrap();
        let meant = [ClientOrderId(1), ClientOrderId(2)];
        let next = |hot: &mut Hot| {
            let cancel = next_cancel(&mut hot.rule, 0, Some(&mut meant.iter()), symbol, Nanos(1))?;
            Some((cancel.cl_ord_id, cancel.orig_cl_ord_id.to_number()?))
        };
        let requests = [next(&mut hot), next(&mut hot)].map(|one| one.expect("two are open"));
        assert_eq!((requests[0].1, requests[1].1), (1, 2));
        assert_eq!(next(&mut hot), None, "one request is under way for each");
        // The first is refused: for what, if the order is open, no matter.
        let refused = OrderReport {
            id: ClientOrderId(1),
            venue_id: None,
            kind: ReportKind::CancelRejected,
        };
        live::report(&mut hot, Nanos(2), &refused).expect("it was asked for");
        let again = next(&mut hot).expect("it is open");
        assert_eq!(again.1, 1);
        assert_ne!(again.0, requests[0].0, "another number");
        // The second came nowhere: the venue, asked behind it, has the order as it was.
        let own = |hot: &Hot, status: &ExecutionReport| lives_on(&hot.rule, 0, status);
        for (id, ord_status, found) in [
            (2, OrdStatus::New, Some(2)),
            (2, OrdStatus::PartiallyFilled, Some(2)),
            (2, OrdStatus::PendingCancel, None),
            (2, OrdStatus::Canceled, None),
            (9, OrdStatus::New, None),
        ] {
            let found = found.map(ClientOrderId);
            assert_eq!(
                own(&hot, &status(id, ord_status, 0)),
                found,
                "{id} {ord_status:?}"
            );
        }
        hot.rule.forget_cancel(0, ClientOrderId(2));
        assert_eq!(
            own(&hot, &status(2, OrdStatus::New, 0)),
            None,
            "no request is under way"
        );
        let again = next(&mut hot).expect("it is open");
        assert_eq!(again.1, 2);
        assert_ne!(again.0, requests[1].0);
        assert_eq!(next(&mut hot), None);
        let stopping = Stopping {
            since: Nanos(1),
            ask_at: Nanos(1),
            is_late: false,
            orders: 2,
            holds: false,
            meant: meant.to_vec(),
        };
        assert_eq!((stopping.open(&hot.rule, 0), hot.rule.open(Some(0))), (2, 3));
        for id in meant {
            let gone = OrderReport {
                id,
                venue_id: None,
                kind: ReportKind::Cancelled,
            };
            live::report(&mut hot, Nanos(3), &gone).expect("it was open");
        }
        assert_eq!((stopping.open(&hot.rule, 0), hot.rule.open(Some(0))), (0, 1));
    }

    #[test]
    fn what_the_venue_has_otherwise_is_noticed_and_an_order_it_has_no_more_ends() {
        let mut hot = rule(4);
        assert_eq!(compare(&mut hot, &status(1, OrdStatus::New, 0)), None);
        assert_eq!(
            compare(&mut hot, &status(99, OrdStatus::New, 0)),
            None,
            "none of ours"
        );
        let found = compare(&mut hot, &status(1, OrdStatus::PartiallyFilled, 40)).unwrap();
        assert_eq!((found.filled, found.is_over), ([Qty(0), Qty(40)], false));
        // What traded unheard is held, and said once.
        assert_eq!(hot.rule.position(None), 40);
        assert_eq!(
            compare(&mut hot, &status(1, OrdStatus::PartiallyFilled, 40)),
            None
        );
        let found = compare(&mut hot, &status(2, OrdStatus::Canceled, 0)).unwrap();
        assert!(found.is_over);
        // It never had it.
        assert!(compare(&mut hot, &status(3, OrdStatus::Rejected, 0)).is_some());
        assert_eq!(hot.rule.open(None), 2, "those two are over here as well");
        // It traded a part and was cancelled, unheard; and another traded in full.
        assert!(compare(&mut hot, &status(4, OrdStatus::Canceled, 30)).is_some());
        assert_eq!((hot.rule.open(None), hot.rule.position(None)), (1, 70));
        assert!(compare(&mut hot, &status(1, OrdStatus::Filled, 100)).is_some());
        assert_eq!((hot.rule.open(None), hot.rule.position(None)), (0, 130));
        let filled = hot.rule.order(0, ClientOrderId(1)).unwrap();
        assert_eq!(filled.state, OrderState::Filled);
        assert_eq!(
            compare(&mut hot, &status(2, OrdStatus::Canceled, 0)),
            None,
            "agreed"
        );
    }

    #[test]
    fn a_kill_that_was_asked_for_beside_a_resumption_wins() {
        let shared = Shared::default();
        assert_eq!(shared.poll(), None);
        shared.resumes.fetch_add(1, Ordering::Relaxed);
        shared.kill();
        assert_eq!(
            (shared.poll(), shared.poll()),
            (Some(OperatorRequest::Kill), None)
        );
        shared.resumes.fetch_add(1, Ordering::Relaxed);
        assert_eq!(
            (shared.poll(), shared.poll()),
            (Some(OperatorRequest::Resume), None)
        );
    }

    #[test]
    fn words_of_an_operator_are_refused_when_they_are_too_long_or_too_many() {
        let (words, mut taken) = tickwire_runtime::spsc::ring(WORDS_WAITING);
        let mut control = OperatorControl {
            shared: Arc::default(),
            words,
            controls: ControlsSection::default(),
        };
        let by = Peer::ourselves();
        let mut say = |words: &str| {
            let words = words.to_string();
            control.answer(Request::Say { words }, &by)
        };
        assert!(say("  ").is_err_and(|why| why.contains("1 to 120 bytes, these have 0")));
        assert!(say(&"x".repeat(121)).is_err_and(|why| why.contains("these have 121")));
        for n in 0..WORDS_WAITING {
            assert!(say(&format!(" lot {n} ")).is_ok());
        }
        assert!(say("one more").is_err_and(|why| why.contains("16 words wait")));
        assert_eq!(taken.pop().unwrap().as_str(), "lot 0");
        assert!(say("one more").is_ok());
    }
}
