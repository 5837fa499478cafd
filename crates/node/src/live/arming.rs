//! The order that a strategy arms ([`tickwire_trading::strategy::Context::arm`]), as it lies in a program at
//! the driver's hook: what it waits for in the feed's own numbers, the message with the session's next
//! number, and what became of it.

use tickwire_fix::{Encoder, NewOrderSingle, OrderRequest, SendError, Stamp};
use tickwire_kernelpath::condition::{Condition, ConditionError, itch, nyse};
use tickwire_kernelpath::{NotArmed, Shooting, Waits};
use tickwire_market::{Nanos, Price, Side};
use tickwire_receive::hook::ArmingPoint;
use tickwire_trading::strategy::{ArmEnd, ArmRefusal, Awaited, AwaitedEvent, Strategy};
use tickwire_venues::protocol::Protocol;

use super::{Live, parts};
use crate::hot::{HotPath, OrderOut};

/// How long an order stays armed while its thread does not turn: as long as a thread may stand still before
/// what is open is cancelled.
const IDLE_NS: u64 = Nanos::SECOND;

/// The longest message that fits into a segment of a program's.
const MESSAGE_MAX: usize = 446;

/// What became of an order, in the strategy's words.
pub(super) fn end_of(told: Shooting) -> ArmEnd {
    match told {
        Shooting::Fired { .. } => ArmEnd::Fired,
        Shooting::Back => ArmEnd::TakenBack,
        Shooting::Gap => ArmEnd::Gap,
        Shooting::NoRoom => ArmEnd::NoRoom,
    }
}

/// Why an order is not armed; `None`: it may be a moment later.
fn refusal_of(why: NotArmed) -> Option<ArmRefusal> {
    Some(match why {
        // Something is on its way still, or the packet of the last one was not read.
        NotArmed::Connection(_) | NotArmed::Unread => return None,
        NotArmed::NoProgram | NotArmed::Detached => ArmRefusal::NoProgram,
        NotArmed::ByKernel => ArmRefusal::ByKernel,
        NotArmed::Taken => ArmRefusal::Taken,
        NotArmed::Killed => ArmRefusal::Killed,
        NotArmed::Long(_) => ArmRefusal::Long,
        NotArmed::Framing => ArmRefusal::Feed,
    })
}

/// What is waited for, in the numbers of the feed. `unit`: what 1 in the instrument's prices stands for,
/// where each instrument has a scale of its own.
fn condition(
    awaited: &Awaited,
    instrument: u32,
    (protocol, unit): (Protocol, Option<Price>),
) -> Result<Condition, ArmRefusal> {
    let side = |side| match side {
        Side::Bid => u64::from(b'B'),
        Side::Ask => u64::from(b'S'),
    };
    let qty = u64::from(awaited.qty_min.0)..=u64::MAX;
    let feed = |_: ConditionError| ArmRefusal::Feed;
    match (protocol, awaited.event) {
        (Protocol::Itch50, AwaitedEvent::Added(of)) => {
            let added = Condition::new(itch::ADD_ORDER, instrument)
                .and(itch::ADD_ORDER_SIDE, side(of)..=side(of))
                .and_then(|added| added.and(itch::ADD_ORDER_SHARES, qty))
                .map_err(feed)?;
            let Some(prices) = awaited.prices else {
                return Ok(added);
            };
            let (low, high) = units(prices, Price::from_4dp(1)).ok_or(ArmRefusal::Price)?;
            added
                .and(itch::ADD_ORDER_PRICE, low..=high)
                .map_err(|_| ArmRefusal::Price)
        }
        (Protocol::Itch50, AwaitedEvent::Executed) if awaited.prices.is_none() => {
            Condition::new(itch::ORDER_EXECUTED, instrument)
                .and(itch::ORDER_EXECUTED_SHARES, qty)
                .map_err(feed)
        }
        (Protocol::Xdp, event) => {
            let (condition, price) = match event {
                AwaitedEvent::Added(of) => (
                    Condition::new(nyse::ADD_ORDER, instrument)
                        .and(nyse::ADD_ORDER_SIDE, side(of)..=side(of))
                        .and_then(|added| added.and(nyse::ADD_ORDER_VOLUME, qty)),
                    nyse::ADD_ORDER_PRICE,
                ),
                AwaitedEvent::Executed => (
                    Condition::new(nyse::ORDER_EXECUTION, instrument).and(nyse::ORDER_EXECUTION_VOLUME, qty),
                    nyse::ORDER_EXECUTION_PRICE,
                ),
            };
            let condition = condition.map_err(feed)?;
            let Some(prices) = awaited.prices else {
                return Ok(condition);
            };
            // Prices of NYSE are scaled by instrument: without its scale none can be compared.
            let unit = unit.ok_or(ArmRefusal::Price)?;
            let (low, high) = units(prices, unit).ok_or(ArmRefusal::Price)?;
            condition.and(price, low..=high).map_err(|_| ArmRefusal::Price)
        }
        _ => Err(ArmRefusal::Feed),
    }
}

/// Both bounds in units of the wire, none that lies outside; `None` if no price lies between.
fn units([low, high]: [Price; 2], unit: Price) -> Option<(u64, u64)> {
    let unit = u64::try_from(unit.raw()).ok().filter(|unit| *unit > 0)?;
    let low = u64::try_from(low.raw()).unwrap_or(0).div_ceil(unit);
    let high = u64::try_from(high.raw()).ok()? / unit;
    (low <= high).then_some((low, high))
}

/// Puts the order that waits for it in its place; what cannot be is told.
pub(super) fn arm<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
    point: &ArmingPoint,
) {
    if let Err(why) = place(hot, now, point) {
        end(hot, now, ArmEnd::Refused(why));
    }
}

fn place<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
    point: &ArmingPoint,
) -> Result<(), ArmRefusal> {
    let bits = hot.rule.bits;
    let Some(hosted) = hot.rule.hosted.first_mut() else {
        return Ok(());
    };
    let Some(armed) = hosted.conductor.armed() else {
        return Ok(());
    };
    let instrument = armed.awaited.instrument;
    let local = instrument.0 & ((1 << bits) - 1);
    let waits = Waits {
        condition: condition(&armed.awaited, local, (point.protocol, point.unit))?,
        channel: point.channel,
        session: point.session,
        next: point.next,
        idle_ns: IDLE_NS,
    };
    let traded = hosted.wiring.traded.get(armed.request.instrument().index());
    let traded = traded.and_then(Option::as_deref).ok_or(ArmRefusal::Order)?;
    // What causes it is not known before: it names no message of the venue.
    let OrderRequest::New(message) = OrderRequest::of(&armed.request, traded.symbol, now) else {
        return Err(ArmRefusal::Order);
    };
    let message = NewOrderSingle {
        cause: None,
        ..message
    };
    let session = hot.sessions.first_mut().ok_or(ArmRefusal::NoSession)?;
    // Before a number of the session is used for it.
    if let Err(why) = session.out.may_arm() {
        return refusal_of(why).map_or(Ok(()), Err);
    }
    let mut buffer = [0; MESSAGE_MAX];
    let put = |e: &mut Encoder<'_>, stamp: &mut Stamp| message.encode(e, stamp);
    let held = session.fix.hold(now, NewOrderSingle::MSG_TYPE, put, &mut buffer);
    let bytes = match held {
        Ok(held) => held,
        Err(SendError::NotEncodable) => return Err(ArmRefusal::Order),
        // Other bytes go first.
        Err(SendError::Backlog) => return Ok(()),
        Err(_) => return Err(ArmRefusal::NoSession),
    };
    match session.arm(&waits, bytes) {
        Ok(()) => hosted.conductor.note_armed(),
        Err(why) => {
            if let Some(refusal) = refusal_of(why) {
                return Err(refusal);
            }
        }
    }
    Ok(())
}

/// Tells the strategy what became of its order.
pub(super) fn end<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
    end: ArmEnd,
) {
    parts(hot, 0, 0, |conductor, markets, port| {
        conductor.end_armed(now, end, markets, port);
    });
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::memory;
    use crate::trader::Rule;
    use tickwire_feed::Line;
    use tickwire_market::{ClientOrderId, Instrument, InstrumentId};
    use tickwire_rig::recorded::{self, Recorded};
    use tickwire_runtime::clock::Clock;
    use tickwire_trading::strategy::{ArmedEvent, BookChange, Context, NotSent, Subscription, Ticket};

    #[test]
    fn bounds_are_prices_of_the_wire_and_none_outside() {
        let price = |raw| Price::from_raw(raw);
        let unit = Price::from_4dp(1);
        assert_eq!(
            units([price(0), Price::from_4dp(250_000)], unit),
            Some((0, 250_000))
        );
        // Between two prices of the wire.
        assert_eq!(units([price(100_001), price(199_999)], unit), None);
        assert_eq!(units([price(100_001), price(200_000)], unit), Some((2, 2)));
        assert_eq!(units([price(-5), price(0)], unit), Some((0, 0)));
        assert_eq!(units([price(-5), price(-1)], unit), None);
    }

    #[test]
    fn what_a_feed_does_not_say_at_a_fixed_place_is_refused() {
        let added = Awaited::added(InstrumentId(7), Side::Ask).of_at_least(100);
        let priced = added.between(Price::ZERO, Price::from_4dp(250_000));
        let executed = Awaited::executed(InstrumentId(7));
        let of = |awaited: &Awaited, protocol| condition(awaited, 7, (protocol, None)).map(|_| ());
        assert_eq!(of(&priced, Protocol::Itch50), Ok(()));
        assert_eq!(of(&executed, Protocol::Itch50), Ok(()));
        let at_price = executed.between(Price::ZERO, Price::ZERO);
        assert_eq!(of(&at_price, Protocol::Itch50), Err(ArmRefusal::Feed));
        assert_eq!(of(&added, Protocol::Xdp), Ok(()));
        assert_eq!(of(&executed, Protocol::Xdp), Ok(()));
        assert_eq!(of(&priced, Protocol::Xdp), Err(ArmRefusal::Price));
        assert_eq!(of(&at_price, Protocol::Xdp), Err(ArmRefusal::Price));
        assert_eq!(of(&added, Protocol::Pitch), Err(ArmRefusal::Feed));
    }

    /// NYSE's prices are in units of each instrument's own: bounds are compared in these, and none outside.
    #[test]
    fn prices_of_nyse_are_compared_in_the_scale_of_the_instrument() {
        let bounds = [Price::from_4dp(100_001), Price::from_4dp(250_000)];
        let added = Awaited::added(InstrumentId(7), Side::Ask).between(bounds[0], bounds[1]);
        let executed = Awaited::executed(InstrumentId(7)).between(bounds[0], bounds[1]);
        // Two decimals, four, six: of what lies between 10.0001 and 25.0000 the least and the most.
        for (unit, low, high) in [(100, 1_001, 2_500), (1, 100_001, 250_000)] {
            let unit = Price::from_4dp(unit);
            for (awaited, message, fields) in [
                (
                    &added,
                    nyse::ADD_ORDER,
                    [nyse::ADD_ORDER_PRICE, nyse::ADD_ORDER_VOLUME],
                ),
                (
                    &executed,
                    nyse::ORDER_EXECUTION,
                    [nyse::ORDER_EXECUTION_PRICE, nyse::ORDER_EXECUTION_VOLUME],
                ),
            ] {
                let found = condition(awaited, 7, (Protocol::Xdp, Some(unit))).expect("it can be waited for");
                let mut wanted = Condition::new(message, 7);
                if *awaited == added {
                    wanted = wanted
                        .and(nyse::ADD_ORDER_SIDE, b'S'.into()..=b'S'.into())
                        .expect("a field");
                }
                let wanted = wanted
                    .and(fields[1], 0..=u64::MAX)
                    .and_then(|wanted| wanted.and(fields[0], low..=high));
                assert_eq!(Ok(found), wanted);
            }
        }
        // Whole dollars: none lies between 10.0001 and 10.9999.
        let narrow =
            Awaited::executed(InstrumentId(7)).between(Price::from_4dp(100_001), Price::from_4dp(109_999));
        assert_eq!(
            condition(&narrow, 7, (Protocol::Xdp, Some(Price::from_4dp(10_000)))),
            Err(ArmRefusal::Price)
        );
    }

    /// A connection with a program beside it.
    #[derive(Default)]
    struct Out {
        sent: Vec<Vec<u8>>,
        armed: Option<Vec<u8>>,
        has_fired: bool,
        refuses: Option<NotArmed>,
    }

    impl OrderOut for Out {
        fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
            assert!(self.armed.is_none(), "what is armed is taken back first");
            self.sent.push(bytes.to_vec());
            Ok(())
        }

        fn may_arm(&mut self) -> Result<(), NotArmed> {
            self.refuses.map_or(Ok(()), Err)
        }

        fn arm(&mut self, _: &Waits, bytes: &[u8]) -> Result<(), NotArmed> {
            self.armed = Some(bytes.to_vec());
            Ok(())
        }

        fn disarm(&mut self) -> io::Result<Option<Shooting>> {
            if self.has_fired {
                return self.shooting();
            }
            Ok(self.armed.take().map(|_| Shooting::Back))
        }

        fn shooting(&mut self) -> io::Result<Option<Shooting>> {
            if !std::mem::take(&mut self.has_fired) {
                return Ok(None);
            }
            self.sent.extend(self.armed.take());
            Ok(Some(Shooting::Fired { at_ns: 1, by: 1 }))
        }
    }

    /// What it is to do with the next change of the book.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Do {
        Nothing,
        Arm,
        Buy,
        Disarm,
        Cancel,
    }

    struct Armer {
        next: Do,
        armed: Vec<Result<ClientOrderId, NotSent>>,
        ends: Vec<(ClientOrderId, ArmEnd)>,
        disarmed: Vec<ArmEnd>,
    }

    impl Strategy for Armer {
        fn subscriptions(&self) -> Vec<Subscription> {
            vec![Subscription::Symbol(recorded::first_symbol())]
        }

        fn pre_arms(&self) -> bool {
            true
        }

        fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
            let Some((bid, _)) = change.after.best(Side::Bid) else {
                return;
            };
            let (true, true) = (change.is_live(), ctx.is_trading(change.instrument)) else {
                return;
            };
            let instrument = change.instrument;
            match std::mem::replace(&mut self.next, Do::Nothing) {
                Do::Nothing => {}
                Do::Arm => {
                    let ticket = Ticket::limit(Side::Bid, instrument, 1, bid).immediate_or_cancel();
                    let awaited = Awaited::added(instrument, Side::Ask).between(Price::ZERO, bid);
                    self.armed.push(ctx.arm(ticket, awaited));
                    if self.armed.last().is_some_and(Result::is_ok) {
                        let second = ctx.arm(ticket, awaited);
                        assert_eq!(second, Err(NotSent::NotArmed(ArmRefusal::Taken)));
                    }
                }
                Do::Buy => {
                    ctx.buy_now(instrument, 2, bid).expect("sent");
                }
                Do::Disarm => {
                    let id = ctx.armed().expect("one is armed").0;
                    self.disarmed.push(ctx.disarm(id).expect("it is armed"));
                }
                Do::Cancel => {
                    let id = ctx.armed().expect("one is armed").0;
                    ctx.cancel(id).expect("taken back");
                }
            }
        }

        fn on_armed(&mut self, _: &mut Context<'_>, event: &ArmedEvent) {
            self.ends.push((event.id, event.end));
        }
    }

    const POINT: ArmingPoint = ArmingPoint {
        protocol: Protocol::Itch50,
        channel: 0,
        session: [0, 0],
        next: 1,
        unit: None,
    };

    type Path = HotPath<Out, true, Live<Armer>>;

    /// A path in memory, and packets that change its book.
    struct Run {
        hot: Path,
        feed: tickwire_feed::ItchFeed,
        packets: Vec<Vec<u8>>,
        at: usize,
    }

    impl Run {
        fn new(arms: Result<(), ArmRefusal>) -> Run {
            let session = Recorded::generate(11, 20_000, 10);
            let packets = session.packets(1);
            let strategy = Armer {
                next: Do::Nothing,
                armed: Vec::new(),
                ends: Vec::new(),
                disarmed: Vec::new(),
            };
            let books = memory::books(session.symbols);
            let mut hot: Path =
                memory::path_of(Out::default(), strategy, books, Clock::calibrate()).expect("it logs on");
            let instrument = Instrument {
                id: InstrumentId(1),
                symbol: recorded::first_symbol(),
                ..Instrument::default()
            };
            memory::define(&mut hot, &instrument);
            assert!(hot.rule.pre_arms());
            hot.rule.set_arming(arms);
            Run {
                hot,
                feed: recorded::feed(session.symbols),
                packets: recorded::walk(&packets).map(<[u8]>::to_vec).collect(),
                at: 0,
            }
        }

        fn strategy(&mut self) -> &mut Armer {
            self.hot.rule.hosted[0].conductor.strategy_mut()
        }

        /// Market data until it has been done.
        fn does(&mut self, what: Do) {
            self.strategy().next = what;
            while self.strategy().next != Do::Nothing {
                let now = self.hot.clock.now();
                self.feed
                    .on_packet(now, Line::A, &self.packets[self.at], &mut self.hot);
                self.at += 1;
            }
        }

        /// As the trader's turn does.
        fn turn(&mut self) {
            let now = self.hot.clock.now();
            if let Some(told) = self.hot.sessions[0].shooting(now) {
                <Live<Armer> as Rule>::end_armed(&mut self.hot, now, told);
            }
            if self.hot.rule.to_arm().is_some() {
                <Live<Armer> as Rule>::arm(&mut self.hot, now, &POINT);
            }
            // What is rehearsed takes nothing back.
            <Live<Armer> as Rule>::on_idle(&mut self.hot, now);
        }

        fn out(&mut self) -> &mut Out {
            &mut self.hot.sessions[0].out
        }

        fn open(&self) -> u32 {
            self.hot.rule.hosted[0].conductor.orders().open()
        }
    }

    /// MsgSeqNum of a message.
    fn number(message: &[u8]) -> u64 {
        let text = String::from_utf8_lossy(message).replace('\x01', "|");
        let value = text.split("|34=").nth(1).and_then(|rest| rest.split('|').next());
        value.and_then(|value| value.parse().ok()).expect("a number")
    }

    #[test]
    fn what_leaves_by_itself_has_the_next_number_and_is_an_order_then() {
        let mut run = Run::new(Ok(()));
        run.does(Do::Buy);
        let first = number(run.out().sent.last().expect("sent"));
        run.does(Do::Arm);
        assert!(run.out().armed.is_none(), "not before everything was looked at");
        run.turn();
        let armed = run.out().armed.clone().expect("in its place");
        assert_eq!(number(&armed), first + 1);
        assert_eq!(run.open(), 2, "it counts");
        run.turn();
        run.out().has_fired = true;
        run.turn();
        let id = run.strategy().armed[0].expect("armed");
        assert_eq!(run.strategy().ends, [(id, ArmEnd::Fired)]);
        assert_eq!(run.out().sent.last(), Some(&armed));
        assert_eq!(run.open(), 2, "an order like any other");
        run.does(Do::Buy);
        assert_eq!(number(run.out().sent.last().expect("sent")), first + 2);
    }

    #[test]
    fn what_is_sent_otherwise_takes_it_back_and_has_its_number() {
        let mut run = Run::new(Ok(()));
        run.does(Do::Arm);
        run.turn();
        let armed = number(&run.out().armed.clone().expect("in its place"));
        run.does(Do::Buy);
        assert_eq!(number(run.out().sent.last().expect("sent")), armed);
        run.turn();
        let id = run.strategy().armed[0].expect("armed");
        assert_eq!(run.strategy().ends, [(id, ArmEnd::TakenBack)]);
        assert_eq!(run.open(), 1, "the other one");
        // Taken back by the strategy, in its place or not yet; nothing is told twice.
        for turns in [false, true] {
            for what in [Do::Disarm, Do::Cancel] {
                run.does(Do::Arm);
                if turns {
                    run.turn();
                }
                run.does(what);
                run.turn();
                assert_eq!(run.open(), 1);
            }
        }
        assert_eq!(run.strategy().ends.len(), 1);
        assert_eq!(run.strategy().disarmed, [ArmEnd::TakenBack; 2]);
        // It left just before.
        run.does(Do::Arm);
        run.turn();
        run.out().has_fired = true;
        run.does(Do::Disarm);
        assert_eq!(run.strategy().disarmed[2], ArmEnd::Fired);
        assert_eq!(run.open(), 2);
        run.does(Do::Buy);
        assert_eq!(number(run.out().sent.last().expect("sent")), armed + 2);
    }

    #[test]
    fn why_it_cannot_be_armed_is_answered_or_told() {
        let mut run = Run::new(Err(ArmRefusal::ByKernel));
        run.does(Do::Arm);
        assert_eq!(
            run.strategy().armed,
            [Err(NotSent::NotArmed(ArmRefusal::ByKernel))]
        );
        assert_eq!(run.open(), 0);

        let mut run = Run::new(Ok(()));
        run.out().refuses = Some(NotArmed::Unread);
        run.does(Do::Arm);
        run.turn();
        assert_eq!(run.open(), 1, "it waits for its place");
        run.out().refuses = Some(NotArmed::Killed);
        run.turn();
        let id = run.strategy().armed[0].expect("armed");
        assert_eq!(run.strategy().ends, [(id, ArmEnd::Refused(ArmRefusal::Killed))]);
        assert_eq!(run.open(), 0);
        // Its number is the next one's.
        run.out().refuses = None;
        run.does(Do::Arm);
        run.turn();
        let armed = number(&run.out().armed.clone().expect("in its place"));
        run.does(Do::Buy);
        assert_eq!(number(run.out().sent.last().expect("sent")), armed);
    }
}
