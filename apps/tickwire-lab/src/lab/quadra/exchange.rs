//! The exchange: a feed message at each interval, orders back, and from each the round trip since the message
//! that it answers.

use std::time::Duration;

use tickwire_lab::scenario::Shape;
use tickwire_lab::{Ledger, MISSING, Offer, Recorder, Schedule};
use tickwire_market::Nanos;
use tickwire_runtime::clock::{Clock, tsc, wall};
use tickwire_runtime::inbox::{Backend, Inbox, Input, await_receive_stamps};
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::tcp::TcpStream;

use super::link::FeedOut;
use super::message::{MESSAGE_MAX, OrderReader, Speech, Transport, lengths, put_feed};
use tickwire_console::failure::Failure;

/// What is offered, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) speech: Speech,
    pub(super) transport: Transport,
    /// How the exchange waits for orders.
    pub(super) backend: Backend,
    pub(super) shape: Shape,
    pub(super) warm_up: u64,
    pub(super) samples: u64,
    pub(super) interval_ns: u64,
    pub(super) timeout_ns: u64,
    /// Whether the kernel's receive times of orders are kept.
    pub(super) stamped: bool,
    /// Whether they are a measure of each order, and nothing else is kept of them.
    pub(super) wire: bool,
    /// The number of the first message: numbers go on over the repetitions of one connection.
    pub(super) first: u64,
}

/// What was seen beside the samples.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Messages sent, those before the first that counts included: fewer than planned when it was stopped.
    pub(super) sent: u64,
    /// Messages without an order in time.
    pub(super) lost: u64,
    /// Orders that answer no open message, or are not what they should be.
    pub(super) unexpected: u64,
    /// The kernel's and our times, of each message that was answered, where they were asked for.
    pub(super) legs: Vec<ExchangeLeg>,
}

/// The exchange's part of a round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangeLeg {
    pub(super) number: u64,
    /// When the intended time was, and when the send call began: the counter.
    pub(super) from: u64,
    pub(super) sent: u64,
    /// When the kernel had the order, nanoseconds of the real-time clock, 0 if it did not say.
    pub(super) kernel_ns: u64,
    /// When the receive call returned: the counter.
    pub(super) received: u64,
}

/// How long the kernel may take to begin to stamp what it receives.
const STAMPS_PATIENCE: Duration = Duration::from_secs(10);

/// One repetition, on a connection that is there. When `stop` is set, what was measured until then.
pub(super) fn run(
    plan: &Plan,
    clock: &Clock,
    feed: &mut FeedOut,
    orders: &TcpStream,
    recorder: &mut Recorder,
    stop: &StopFlag,
) -> Result<Outcome, Failure> {
    let system = |e: std::io::Error| Failure::system(format!("the exchange's orders: {e}"));
    let mut inbox = Inbox::open(orders, plan.backend, plan.stamped || plan.wire).map_err(system)?;
    let all = plan.warm_up + plan.samples;
    let mut ledger = Ledger::new(all as usize);
    let mut reader = OrderReader::new(plan.speech, lengths(plan.transport).1);
    let mut outcome = Outcome::default();
    // When each message was sent, by the clock of the kernel's stamps.
    let mut walls: Vec<Nanos> = Vec::with_capacity(if plan.wire { all as usize } else { 0 });
    if plan.stamped {
        outcome.legs.reserve_exact(all as usize);
    }
    if plan.stamped || plan.wire {
        // Before threads spin with priority and leave the kernel's worker no core. In a namespace without
        // loopback it is only hoped for.
        if !await_receive_stamps(STAMPS_PATIENCE).unwrap_or(false) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    let mut message = [0; MESSAGE_MAX];
    let put = |number: u64, due: u64, message: &mut [u8; MESSAGE_MAX]| {
        put_feed(
            plan.speech,
            plan.transport,
            plan.first + number,
            clock.nanos_at(due),
            message,
        )
    };
    // Some milliseconds, in which the other side comes to its loop.
    let start = tsc() + clock.span_ticks(Duration::from_millis(5).as_nanos() as u64);
    let mut schedule = Schedule::new(plan.shape, start, clock.span_ticks(plan.interval_ns));
    let measured_from = start + plan.warm_up * clock.span_ticks(plan.interval_ns);
    let timeout = clock.span_ticks(plan.timeout_ns);
    // Written before its time, so that nothing but the send call is between the time and the wire.
    let mut len = put(0, start, &mut message);
    loop {
        let now = tsc();
        let more = ledger.offered() < all;
        let free = schedule.overlaps() || ledger.open() == 0;
        if more && free && now >= schedule.due() {
            let from = schedule.take(now);
            let number = ledger.offer(Offer { from, sent: now });
            if plan.wire {
                walls.push(wall());
            }
            feed.send(&message[..len])
                .map_err(|e| Failure::peer_lost(format!("the feed cannot be sent: {e}")))?;
            len = put(number + 1, schedule.due(), &mut message);
            continue;
        }
        if ledger.open() == 0 {
            // Nothing can come before the next is sent; it must go out on time.
            if !more || stop.is_set() {
                outcome.sent = ledger.offered();
                return Ok(outcome);
            }
            if plan.backend.spins() || schedule.due().saturating_sub(now) < clock.span_ticks(60_000) {
                std::hint::spin_loop();
            } else {
                let left = clock.span_ns(schedule.due() - now) - 50_000;
                std::thread::sleep(Duration::from_nanos(left));
            }
            continue;
        }
        let patience = match more && schedule.overlaps() {
            true => clock.span_ns(schedule.due().saturating_sub(now)),
            false => 50_000_000,
        };
        match inbox.recv(patience).map_err(system)? {
            Input::Bytes {
                bytes,
                tsc: received,
                kernel_ns,
            } => {
                reader.read(bytes, |number| {
                    let number = number.and_then(|number| number.checked_sub(plan.first));
                    let offer = number.map(|number| (number, ledger.answer(number)));
                    let Some((number, Ok(offer))) = offer else {
                        outcome.unexpected += 1;
                        return;
                    };
                    schedule.answered(received);
                    if number < plan.warm_up {
                        return;
                    }
                    if plan.stamped {
                        outcome.legs.push(ExchangeLeg {
                            number,
                            from: offer.from,
                            sent: offer.sent,
                            kernel_ns: kernel_ns.map_or(0, |ns| ns.get()),
                            received,
                        });
                        return;
                    }
                    let half = |since: u64| clock.span_ns(received.saturating_sub(since)) / 2;
                    let at = clock.span_ns(offer.from.saturating_sub(measured_from));
                    let since = walls.get(number as usize).zip(kernel_ns);
                    let wire = since.and_then(|(sent, stamp)| stamp.get().checked_sub(sent.0));
                    let values = [half(offer.from), half(offer.sent), wire.unwrap_or(MISSING)];
                    recorder.record(at, &values[..2 + usize::from(plan.wire)], &[]);
                });
            }
            Input::Nothing => {
                let given_up = ledger.give_up_before(tsc().saturating_sub(timeout));
                if given_up > 0 {
                    outcome.lost += given_up;
                    schedule.answered(tsc());
                }
            }
            Input::Closed => {
                return Err(Failure::peer_lost(
                    "the trader closed the connection before the end",
                ));
            }
        }
    }
}
