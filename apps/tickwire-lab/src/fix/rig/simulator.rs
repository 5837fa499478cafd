//! The simulator's side of the trade: market data at fixed times, orders compared with what must come, and
//! reported.

use std::collections::VecDeque;
use std::time::Duration;

use tickwire_fix::{Again, Event, Id, Message, Precision, SendError, SessionId, Stamp, tag};
use tickwire_market::{Nanos, Price};
use tickwire_runtime::child::ChildGuard;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::host::{ProcessDelays, run_delay_ns};

use super::market::Market;
use super::{END, Fault, Kept, MARKET, Measured, Plan, START_NS, SYMBOL, StepSeen};
use tickwire_console::failure::Failure;
use tickwire_fixengine::{Engine, Error, Flow, Handler, Table, Way};

/// Account of an ExecutionReport.
const ACCOUNT: u32 = 1;
/// Messages of one turn: after them orders are looked at. What is more waits, and its latency counts from
/// when it was due.
const BURST: usize = 32;
/// Orders expected and not come yet; beyond it no market data is sent.
const EXPECTED_MAX: usize = 1 << 20;
/// Between the subscription and the first message.
const LEAD_NS: u64 = 20_000_000;
/// How often the trader's process is looked at.
const LOOK_NS: u64 = 100_000_000;

/// An order that must come.
#[derive(Clone, Copy, Debug)]
struct Expected {
    /// MsgSeqNum of its message.
    seq: u64,
    /// How many messages were sent before it, in all steps.
    number: u64,
    step: usize,
    intended: u64,
    /// 0 until its turn is over.
    sent: u64,
    price: Price,
}

/// Where in the plan it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nobody has subscribed.
    Waiting,
    Sending,
    /// Nothing more is sent; orders may be on their way.
    Draining,
    Over,
}

/// The step being sent.
struct StepProgress {
    /// The step being sent, when it began, and how many messages of it were sent.
    step: usize,
    step_begun: u64,
    step_sent: u64,
    /// Messages of the steps before it.
    before: u64,
    /// The last sign of progress.
    moved: u64,
}

/// What the trader did and did not do.
struct Findings {
    /// Bytes of the venue's session came.
    arrived: u64,
    orders: u64,
    lost: u64,
    wrong: u64,
    first_wrong: Option<String>,
    trouble: Option<String>,
}

/// What was measured.
struct Samples {
    steps: Vec<StepSeen>,
    kept: Vec<Kept>,
    kept_every: u64,
    /// Of the trader's process and of this thread, since the first message.
    delays: Option<(ProcessDelays, Option<u64>)>,
    run_delays_ns: Vec<(String, u64)>,
}

/// See the module's description.
pub(super) struct Simulator<'a> {
    plan: &'a Plan,
    clock: &'a Clock,
    child: &'a mut ChildGuard,
    next_look: u64,
    patience: u64,
    behind_max: u64,
    market_id: SessionId,
    venue_id: SessionId,
    market: Market,
    phase: Phase,
    created: u64,
    begun: u64,
    progress: StepProgress,
    expected: VecDeque<Expected>,
    expectations: u64,
    findings: Findings,
    samples: Samples,
    lengths: [usize; 3],
    stamp: Stamp,
}

impl<'a> Simulator<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        clock: &'a Clock,
        engine: &Engine,
        child: &'a mut ChildGuard,
    ) -> Simulator<'a> {
        let is_market = |id: &SessionId| engine.table.session(*id).config().sender.as_str() == MARKET;
        let market_id = engine.sessions().find(is_market).expect("it was configured");
        let room = plan.messages() / plan.order_every / plan.kept_every() * 2 + 1_000;
        let now = tsc();
        let none = Kept {
            seq: 1,
            depth: 0,
            step: 0,
            intended: 0,
            sent: 0,
            arrived: 0,
            reported: 0,
        };
        let mut kept = vec![none; room as usize];
        kept.clear();
        Simulator {
            plan,
            clock,
            child,
            next_look: now,
            patience: clock.span_ticks(plan.timeout_ns),
            behind_max: clock.span_ticks(plan.behind_max_ns),
            market_id,
            venue_id: SessionId(1 - market_id.0),
            market: Market::new(plan.seed, plan.order_every, plan.entries),
            phase: Phase::Waiting,
            created: now,
            begun: 0,
            progress: StepProgress {
                step: 0,
                step_begun: 0,
                step_sent: 0,
                before: 0,
                moved: 0,
            },
            expected: VecDeque::with_capacity(EXPECTED_MAX),
            expectations: 0,
            findings: Findings {
                arrived: 0,
                orders: 0,
                lost: 0,
                wrong: 0,
                first_wrong: None,
                trouble: None,
            },
            samples: Samples {
                steps: vec![StepSeen::default(); plan.steps.len()],
                kept,
                kept_every: plan.kept_every(),
                delays: None,
                run_delays_ns: Vec::new(),
            },
            lengths: [0; 3],
            stamp: Stamp::new(Precision::Millis),
        }
    }

    /// What was measured; of a run that was `interrupted`, as far as it came.
    pub(super) fn finish(mut self, interrupted: bool) -> Result<Measured, Failure> {
        if !interrupted {
            if let Some(trouble) = self.findings.trouble {
                return Err(Failure::system(trouble));
            }
            self.findings.lost += self.expected.len() as u64;
            if let Some(first) = self.expected.front() {
                let said = format!("the order for message {} never came", first.seq);
                self.findings.first_wrong.get_or_insert(said);
            }
        }
        Ok(Measured {
            begun: self.begun,
            kept: self.samples.kept,
            stamps: Vec::new(),
            steps: self.samples.steps,
            messages: self.progress.before + self.progress.step_sent,
            expected: self.expectations
                - if interrupted {
                    self.expected.len() as u64
                } else {
                    0
                },
            orders: self.findings.orders,
            lost: self.findings.lost,
            wrong: self.findings.wrong,
            first_wrong: self.findings.first_wrong,
            lengths: self.lengths,
            run_delays_ns: self.samples.run_delays_ns,
            interrupted,
        })
    }

    /// When message `k` of the step being sent is due.
    #[inline]
    fn due(&self, k: u64) -> u64 {
        let rate = self.plan.steps[self.progress.step].rate;
        self.progress.step_begun
            + (u128::from(k) * u128::from(self.clock.frequency_hz()) / u128::from(rate)) as u64
    }

    /// Messages due by now, in all steps.
    #[inline]
    fn due_by(&self, now: u64) -> u64 {
        let Some(step) = self.plan.steps.get(self.progress.step) else {
            return self.progress.before;
        };
        let ticks = u128::from(now.saturating_sub(self.progress.step_begun));
        let due = ticks * u128::from(step.rate) / u128::from(self.clock.frequency_hz()) + 1;
        self.progress.before + (due as u64).min(step.messages())
    }

    /// Sends what is due.
    fn send_due(&mut self, at: Nanos, table: &mut Table) {
        let first_new = self.expected.len();
        for _ in 0..BURST {
            let step = self.plan.steps[self.progress.step];
            let now = tsc();
            let intended = self.due(self.progress.step_sent);
            if self.progress.step_sent == step.messages() {
                if now >= self.progress.step_begun + self.clock.span_ticks(step.span_ns) {
                    self.next_step(now);
                }
                break;
            }
            if now < intended {
                break;
            }
            if now - intended > self.behind_max {
                self.samples.steps[self.progress.step].is_given_up = true;
                (self.phase, self.progress.moved) = (Phase::Draining, now);
                break;
            }
            if self.expected.len() == EXPECTED_MAX {
                break;
            }
            if table.session(self.market_id).backlog() > 128 << 10 {
                // The connection has no room: the trader does not keep up. What is due goes on being due.
                break;
            }
            let moves = self.market.step();
            let market = &mut self.market;
            let sent = table
                .session_mut(self.market_id)
                .send(at, b"X", Again::Resend, |e, _| match market.write(e) {
                    Ok(()) => {}
                    Err(_) => e.fail(),
                });
            let seq = match sent {
                Ok(seq) => seq.0,
                Err(e) => {
                    self.findings.trouble =
                        Some(format!("a market data message was not sent: {}", describe(e)));
                    return;
                }
            };
            if let Some(price) = moves {
                self.expect(seq, intended, price);
            }
            self.progress.step_sent += 1;
            let seen = &mut self.samples.steps[self.progress.step];
            seen.sent += 1;
            seen.lasted = now - self.progress.step_begun;
            if now >= self.progress.step_begun + self.clock.span_ticks(step.span_ns) {
                seen.behind += 1;
            }
            self.progress.moved = now;
        }
        let now = tsc();
        self.expected
            .range_mut(first_new..)
            .for_each(|expected| expected.sent = now);
    }

    #[inline]
    fn expect(&mut self, seq: u64, intended: u64, price: Price) {
        let number = self.progress.before + self.progress.step_sent;
        let hundredth = self.expectations % 100 == 99;
        let price = match self.plan.fault {
            Fault::WrongPrice if hundredth => Price::from_raw(price.raw() + 1),
            _ => price,
        };
        let expected = Expected {
            seq,
            number,
            step: self.progress.step,
            intended,
            sent: 0,
            price,
        };
        self.expected.push_back(expected);
        self.expectations += 1;
        if self.plan.fault == Fault::LoseOrder && hundredth {
            // Nobody has moved the price twice.
            self.expected.push_back(expected);
            self.expectations += 1;
        }
    }

    #[cold]
    fn next_step(&mut self, now: u64) {
        self.progress.before += self.progress.step_sent;
        self.progress.step_begun += self.clock.span_ticks(self.plan.steps[self.progress.step].span_ns);
        self.progress.step_sent = 0;
        self.progress.step += 1;
        if self.progress.step == self.plan.steps.len() {
            (self.phase, self.progress.moved) = (Phase::Draining, now);
        } else if now > self.progress.step_begun + self.clock.span_ticks(Nanos::SECOND) {
            // Behind by more than a second: what was due is not sent in one go into the next step.
            self.progress.step_begun = now;
        }
    }

    /// An order has come.
    #[inline]
    fn order(&mut self, at: Nanos, table: &mut Table) {
        let arrived = self.findings.arrived;
        let Some(message) = table
            .session(self.venue_id)
            .message()
            .filter(|m| m.msg_type() == b"D")
        else {
            return self.found_wrong("something else than a NewOrderSingle came".into());
        };
        self.lengths[1] = message.bytes().len();
        let Some((seq, price)) = read(&message) else {
            let text = String::from_utf8_lossy(message.bytes()).replace('\u{1}', "|");
            return self.found_wrong(format!("an order that cannot be read: {text}"));
        };
        self.findings.orders += 1;
        while self.expected.front().is_some_and(|expected| expected.seq < seq) {
            let missing = self.expected.pop_front().map_or(0, |expected| expected.seq);
            self.findings.lost += 1;
            self.findings
                .first_wrong
                .get_or_insert_with(|| format!("the order for message {missing} never came"));
        }
        let Some(expected) = self
            .expected
            .front()
            .copied()
            .filter(|expected| expected.seq == seq)
        else {
            return self.found_wrong(format!("an order for message {seq}, which leads to none"));
        };
        self.expected.pop_front();
        if price != expected.price {
            self.found_wrong(format!(
                "the order for message {seq} has the price {price}, and {} is due",
                expected.price
            ));
        }
        let reported = tsc();
        self.report(at, seq, price, table);
        self.progress.moved = arrived;
        self.record(&expected, arrived, reported);
    }

    #[inline]
    fn record(&mut self, expected: &Expected, arrived: u64, reported: u64) {
        let depth = self.due_by(arrived).saturating_sub(expected.number + 1);
        let number = self.findings.orders - 1;
        if number < self.plan.warm_up {
            return;
        }
        let seen = &mut self.samples.steps[expected.step];
        seen.orders += 1;
        let latency = arrived.saturating_sub(expected.intended);
        seen.latency.record(self.clock.span_ns(latency));
        if let (Some(step), Some(seen)) = (
            self.plan.steps.get(self.progress.step),
            self.samples.steps.get_mut(self.progress.step),
        ) {
            seen.depth.record(depth);
            let part = arrived.saturating_sub(self.progress.step_begun) * 8
                / self.clock.span_ticks(step.span_ns).max(1);
            let part = &mut seen.parts[part.min(7) as usize];
            (part.0, part.1) = (part.0 + depth, part.1 + 1);
        }
        if number.is_multiple_of(self.samples.kept_every)
            && self.samples.kept.len() < self.samples.kept.capacity()
        {
            self.samples.kept.push(Kept {
                seq: expected.seq,
                depth,
                step: expected.step,
                intended: expected.intended,
                sent: expected.sent,
                arrived,
                reported,
            });
        }
    }

    /// All of it is done.
    #[inline]
    fn report(&mut self, at: Nanos, seq: u64, price: Price, table: &mut Table) {
        let (id, number) = (
            Id::from_number(seq),
            Id::from_number(7_000_000_000 + self.findings.orders),
        );
        let stamp = &mut self.stamp;
        let sent = table
            .session_mut(self.venue_id)
            .send(at, b"8", Again::Resend, |e, _| {
                e.text(tag::ORDER_ID, number.as_bytes());
                e.text(tag::CL_ORD_ID, id.as_bytes());
                e.text(tag::EXEC_ID, number.as_bytes());
                e.char(tag::EXEC_TYPE, b'F');
                e.char(tag::ORD_STATUS, b'2');
                e.text(ACCOUNT, b"ACCOUNT-0042");
                e.text(tag::SYMBOL, SYMBOL.as_bytes());
                e.char(tag::SIDE, b'1');
                e.unsigned(tag::ORDER_QTY, 100);
                e.char(tag::ORD_TYPE, b'2');
                e.price(tag::PRICE, price);
                e.char(tag::TIME_IN_FORCE, b'0');
                e.unsigned(tag::LAST_QTY, 100);
                e.price(tag::LAST_PX, price);
                e.unsigned(tag::LEAVES_QTY, 0);
                e.unsigned(tag::CUM_QTY, 100);
                e.price(tag::AVG_PX, price);
                e.timestamp(tag::TRANSACT_TIME, stamp, at);
            });
        if let Err(e) = sent {
            self.findings.trouble = Some(format!("a report was not sent: {}", describe(e)));
        }
    }

    #[cold]
    fn found_wrong(&mut self, what: String) {
        self.findings.wrong += 1;
        self.findings.first_wrong.get_or_insert(what);
    }

    fn begin(&mut self, at: Nanos, table: &mut Table) {
        let market = &mut self.market;
        let session = table.session_mut(self.market_id);
        let sent = session.send(at, b"W", Again::Resend, |e, _| match market.write_snapshot(e) {
            Ok(()) => {}
            Err(_) => e.fail(),
        });
        if let Err(e) = sent {
            self.findings.trouble = Some(format!("the snapshot was not sent: {}", describe(e)));
        }
        self.samples.delays = Some((ProcessDelays::begin(self.child.id()), run_delay_ns()));
        self.begun = tsc() + self.clock.span_ticks(LEAD_NS);
        self.progress.step_begun = self.begun;
        self.progress.moved = self.begun;
        self.phase = Phase::Sending;
    }

    /// The last order has come, and the trader is still there.
    #[cold]
    fn end(&mut self) {
        self.phase = Phase::Over;
        if let Some((trader, own)) = self.samples.delays.take() {
            let own = own.zip(run_delay_ns());
            let own = own.map(|(before, now)| ("simulator".to_owned(), now.saturating_sub(before)));
            self.samples.run_delays_ns = own.into_iter().chain(trader.since("trader")).collect();
        }
    }

    /// Whether the trader still is there.
    #[cold]
    fn look(&mut self, now: u64) {
        self.next_look = now + self.clock.span_ticks(LOOK_NS);
        if self.phase == Phase::Waiting {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    self.findings.trouble =
                        Some(format!("the trader ended before it had subscribed: {status}"))
                }
                Ok(None) if now > self.created + self.clock.span_ticks(START_NS) => {
                    self.findings.trouble = Some(format!(
                        "the trader has not subscribed within {} s",
                        START_NS / 1_000_000_000
                    ));
                }
                _ => {}
            }
        }
        let stuck = now
            > self.progress.moved
                + self
                    .clock
                    .span_ticks(END.max(Duration::from_secs(1)).as_nanos() as u64);
        if self.phase == Phase::Sending && stuck {
            self.findings.trouble = Some("the trader takes no more market data".into());
        }
    }
}

/// MsgSeqNum of what caused it, and price, of an order whose other fields are right.
#[inline]
fn read(order: &Message<'_>) -> Option<(u64, Price)> {
    let field = |tag| order.find(tag);
    let seq = order.unsigned(field(tag::CL_ORD_ID)?).ok()?;
    let price = order.price(field(tag::PRICE)?).ok()?;
    let is_right = order.char(field(tag::SIDE)?).ok()? == b'1'
        && order.value(field(tag::SYMBOL)?) == SYMBOL.as_bytes()
        && order.unsigned(field(tag::ORDER_QTY)?).ok()? == 100;
    is_right.then_some((seq, price))
}

fn describe(error: SendError) -> String {
    format!("{error:?}")
}

impl Handler for Simulator<'_> {
    #[inline]
    fn on_event(&mut self, now: Nanos, id: SessionId, event: &Event, table: &mut Table) {
        match event {
            Event::Message { .. } if id == self.venue_id => self.order(now, table),
            Event::Message { .. } => {
                let is_request = table.session(id).message().is_some_and(|m| m.msg_type() == b"V");
                if is_request && self.phase == Phase::Waiting {
                    self.begin(now, table);
                }
            }
            Event::Rejected { text, .. } => {
                let text = text.as_str();
                self.found_wrong(format!("the trader rejected a message: {text}"));
            }
            Event::Disconnect { reason, text } if self.phase != Phase::Over => {
                self.findings.trouble = Some(format!("the trader's session ended early: {reason} {text}"));
            }
            _ => {}
        }
    }

    #[inline]
    fn on_wire(&mut self, _: Nanos, id: SessionId, way: Way, bytes: &[u8]) {
        match way {
            Way::In if id == self.venue_id => self.findings.arrived = tsc(),
            Way::Out if id == self.venue_id => self.lengths[2] = bytes.len(),
            Way::Out if self.lengths[0] == 0 && self.phase == Phase::Sending => {
                self.lengths[0] = bytes.len();
            }
            _ => {}
        }
    }

    fn turn(&mut self, now: Nanos, engine: &mut Engine) -> Result<Flow, Error> {
        match self.phase {
            Phase::Sending => self.send_due(now, &mut engine.table),
            Phase::Draining => {
                if self.expected.is_empty() || tsc() > self.progress.moved + self.patience {
                    self.end();
                }
            }
            Phase::Waiting | Phase::Over => {}
        }
        let counter = tsc();
        if counter >= self.next_look {
            self.look(counter);
        }
        let is_over = self.phase == Phase::Over || self.findings.trouble.is_some();
        Ok(if is_over { Flow::End } else { Flow::Go })
    }
}
