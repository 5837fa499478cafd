//! An order that is rehearsed leaves nothing behind: whoever rehearses all day sends, knows and says the same
//! as his twin who never does.

use proptest::prelude::{Just, ProptestConfig, any, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;

use super::*;
use crate::ReportKind;

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// An order enters or leaves a feed's book at a price.
    Book {
        feed: usize,
        side: Side,
        price: i64,
    },
    Delete(u64),
    Gap(bool),
    Submit {
        side: Side,
        price: i64,
        qty: u32,
        rests: bool,
    },
    Stop(i64),
    Cancel(u64),
    Replace(u64, i64),
    Fill(u64, u32),
    Refused(u64),
    Gone(u64),
    Session(bool),
    Kill(bool),
    Quotes(i64),
    Answered(u64, bool),
}

fn step() -> impl Generator<Value = Step> {
    let side = || prop_oneof![Just(Side::Bid), Just(Side::Ask)];
    prop_oneof![
        6 => (0..2_usize, side(), 96..108_i64).prop_map(|(feed, side, price)| Step::Book { feed, side, price }),
        3 => (1..40_u64).prop_map(Step::Delete),
        1 => any::<bool>().prop_map(Step::Gap),
        6 => (side(), 96..108_i64, 1..60_u32, any::<bool>())
            .prop_map(|(side, price, qty, rests)| Step::Submit { side, price, qty, rests }),
        1 => (104..112_i64).prop_map(Step::Stop),
        2 => (1..20_u64).prop_map(Step::Cancel),
        2 => (1..20_u64, 96..108_i64).prop_map(|(id, price)| Step::Replace(id, price)),
        3 => (1..20_u64, 1..60_u32).prop_map(|(id, qty)| Step::Fill(id, qty)),
        1 => (1..20_u64).prop_map(Step::Refused),
        2 => (1..20_u64).prop_map(Step::Gone),
        1 => any::<bool>().prop_map(Step::Session),
        1 => any::<bool>().prop_map(Step::Kill),
        3 => (96..108_i64).prop_map(Step::Quotes),
        3 => (1..20_u64, any::<bool>()).prop_map(|(id, is_refused)| Step::Answered(id, is_refused)),
    ]
}

impl Rig {
    fn take(&mut self, step: Step) {
        match step {
            Step::Book { feed, side, price } => {
                let local = 2 + feed as u32;
                self.add(feed, local, self.next + 1, side, price, 10);
            }
            Step::Delete(order) => {
                let event = MarketEvent {
                    kind: EventKind::Delete,
                    instrument: A,
                    order_id: OrderId(order),
                    ..MarketEvent::default()
                };
                self.event(0, event, false);
            }
            Step::Gap(begins) => {
                let event = MarketEvent {
                    kind: if begins {
                        EventKind::Gap
                    } else {
                        EventKind::Recovered
                    },
                    instrument: InstrumentId::WHOLE_FEED,
                    ..MarketEvent::default()
                };
                self.event(0, event, false);
            }
            Step::Submit {
                side,
                price: at,
                qty,
                rests,
            } => {
                let ticket = Ticket::limit(side, A, qty, price(at));
                let ticket = if rests {
                    ticket
                } else {
                    ticket.immediate_or_cancel()
                };
                let done = self.act(|c| c.submit(ticket));
                self.conductor.strategy.done.push(done);
            }
            Step::Stop(trigger) => {
                let done = self.act(|c| c.buy_stop(A, 5, price(trigger)));
                self.conductor.strategy.done.push(done);
            }
            Step::Cancel(id) => {
                let _ = self.act(|c| c.cancel(ClientOrderId(id)));
            }
            Step::Replace(id, at) => {
                let done = self.act(|c| c.replace(ClientOrderId(id), 7, price(at)));
                self.conductor.strategy.done.push(done);
            }
            Step::Fill(id, qty) => {
                let kind = ReportKind::Filled {
                    qty: Qty(qty),
                    price: price(102),
                    cumulative: Qty(qty),
                };
                let _ = self.report(id, kind);
            }
            Step::Refused(id) => {
                let _ = self.report(id, ReportKind::Rejected);
            }
            Step::Gone(id) => {
                let _ = self.report(id, ReportKind::Cancelled);
            }
            Step::Session(is_up) => self.conductor.set_session(is_up),
            Step::Kill(is_on) => {
                let risk = self.conductor.risk_mut();
                if is_on { risk.kill() } else { risk.revive() }
            }
            Step::Quotes(bid) => {
                let quote = super::quotes::quote(A, 5, bid, bid + 3);
                let _ = self.act(|c| c.mass_quote(&[quote]));
            }
            Step::Answered(id, is_rejected) => {
                let answer = QuoteReport::Answered {
                    id: ClientOrderId(id),
                    is_rejected,
                    refused: &[],
                };
                self.with(|c, m, p| c.on_quote_report(Nanos(7), &answer, m, p));
            }
        }
    }

    fn rehearse(&mut self, times: usize) -> usize {
        let quote = super::quotes::quote(A, 5, 99, 102);
        self.act(|c| c.rehearse_quotes(&[quote], QuoteTerms::default()));
        let now = Nanos(self.next * Nanos::MILLI + 1);
        (0..times)
            .filter(|_| self.with(|c, m, p| c.rehearse(now, m, p)))
            .count()
    }

    /// Everything that is known and was said.
    fn known(&self) -> alloc::string::String {
        let probe = &self.conductor.strategy;
        alloc::format!(
            "{:?} {:?} {:?} {:?} {:?}",
            self.conductor.state,
            probe.heard,
            probe.done,
            self.port.sent,
            self.port.quotes
        )
    }
}

fn rehearsing() -> Rig {
    let mut rig = two_sided();
    rig.port.rehearsed = Some(Vec::new());
    rig
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_twin_that_rehearses_all_day_differs_in_nothing(steps in proptest::collection::vec(step(), 1..60)) {
        let (mut rig, mut twin) = (rehearsing(), two_sided());
        for step in steps {
            rig.rehearse(3);
            rig.take(step);
            twin.take(step);
            prop_assert_eq!(rig.known(), twin.known(), "after {:?}", step);
        }
        rig.rehearse(3);
        prop_assert_eq!(rig.known(), twin.known());
    }
}

/// A quote of a consolidated feed has a callback of its own beside that of the book, a status and a gap have
/// others: none of them is called, and none of what they change is changed.
#[test]
fn no_event_that_is_rehearsed_is_told() {
    let mut kinds = 0;
    for kind in (0..=u8::MAX).filter_map(EventKind::from_u8) {
        for instrument in [A, InstrumentId::WHOLE_FEED] {
            let mut rig = two_sided();
            let before = rig.known();
            assert!(rig.conductor.begin_rehearsal());
            let event = MarketEvent {
                kind,
                instrument,
                order_id: OrderId(77),
                side: Side::Ask,
                price: price(101),
                qty: Volume(5),
                ask_price: price(102),
                ask_qty: Volume(5),
                flags: EventFlags::LAST,
                ..MarketEvent::default()
            };
            rig.event(0, event, false);
            rig.conductor.end_rehearsal();
            assert_eq!(rig.known(), before, "{kind:?}");
            kinds += 1;
        }
    }
    assert!(kinds > 20, "{kinds}");
    // Within a group nothing is rehearsed.
    let mut rig = two_sided();
    let add = MarketEvent {
        kind: EventKind::Add,
        instrument: A,
        order_id: OrderId(78),
        side: Side::Ask,
        price: price(101),
        qty: Volume(5),
        ..MarketEvent::default()
    };
    rig.event(0, add, true);
    assert!(!rig.conductor.begin_rehearsal());
}

/// A rehearsed message of several events waits for its last one as a group of the venue's does, and leaves
/// nothing to tell behind, whether that came or not.
#[test]
fn no_group_that_is_rehearsed_is_told_later() {
    for flags in [EventFlags::NONE, EventFlags::LAST] {
        let mut rig = two_sided();
        let before = rig.known();
        assert!(rig.conductor.begin_rehearsal());
        for (id, flags) in [(77, EventFlags::NONE), (78, flags)] {
            let add = MarketEvent {
                kind: EventKind::Add,
                instrument: A,
                order_id: OrderId(id),
                side: Side::Ask,
                price: price(101),
                qty: Volume(5),
                flags,
                ..MarketEvent::default()
            };
            rig.event(0, add, true);
        }
        rig.conductor.end_rehearsal();
        assert_eq!(rig.known(), before);
        assert!(rig.conductor.begin_rehearsal(), "nothing waits to be told");
        rig.conductor.end_rehearsal();
    }
}

#[test]
fn both_sides_of_each_instrument_are_rehearsed_in_turn() {
    let mut rig = rehearsing();
    rig.add(1, 3, 1, Side::Bid, 101, 5);
    rig.add(1, 3, 2, Side::Ask, 104, 5);
    assert_eq!(rig.rehearse(8), 8);
    let rehearsed = rig.port.rehearsed.take().expect("it can be done");
    let mut seen: Vec<_> = rehearsed
        .iter()
        .map(|request| match *request {
            OrderIntent::New {
                instrument,
                side,
                price,
                qty,
                time_in_force,
                ..
            } => {
                assert_eq!((qty, time_in_force.rests()), (Qty(1), false));
                (instrument.0, side as u8, price.raw() / Price::ONE_RAW)
            }
            _ => panic!("{request:?} is no order"),
        })
        .collect();
    seen.sort_unstable();
    seen.dedup();
    let there = A_THERE.0;
    let (bid, ask) = (Side::Bid as u8, Side::Ask as u8);
    let mut expected = vec![(2, bid, 102), (2, ask, 100), (there, bid, 104), (there, ask, 101)];
    expected.sort_unstable();
    assert_eq!(seen, expected);
    assert!(rig.port.sent.is_empty());
}

#[test]
fn nothing_is_rehearsed_that_could_leave_or_that_nobody_could_enter() {
    // A port that cannot rehearse is not tried.
    let mut rig = two_sided();
    assert_eq!(rig.rehearse(4), 0);
    assert!(rig.port.sent.is_empty());
    // The book is stale.
    let mut rig = rehearsing();
    rig.take(Step::Gap(true));
    assert_eq!(rig.rehearse(4), 0);
    rig.take(Step::Gap(false));
    assert!(rig.rehearse(4) > 0);
    // The session is lost, or the kill switch on: the check says so, and is asked all the same.
    rig.conductor.set_session(false);
    assert_eq!(rig.rehearse(4), 0);
    rig.conductor.set_session(true);
    rig.conductor.risk_mut().kill();
    assert_eq!(rig.rehearse(4), 0);
    rig.conductor.risk_mut().revive();
    assert!(rig.rehearse(4) > 0);
    // The run is ending.
    rig.with(|c, m, p| c.stop(Nanos(9), m, p));
    assert_eq!(rig.rehearse(4), 0);
    // A port that refuses what it was to rehearse: nothing of it stays.
    let (mut rig, twin) = (rehearsing(), two_sided());
    rig.port.refuses = Some(Rejected::NoSession);
    assert_eq!(rig.rehearse(4), 0);
    let (orders, known) = (&rig.conductor.state.orders, &twin.conductor.state.orders);
    assert_eq!(alloc::format!("{orders:?}"), alloc::format!("{known:?}"));
}

/// A mass quote whose quotes are answered goes through every check and every count, and nothing of it stays;
/// of one that waits for an answer only the message is written.
#[test]
fn quotes_that_are_rehearsed_go_the_whole_way_and_leave_nothing() {
    let mut rig = super::quotes::two_books();
    rig.port.rehearsed = Some(Vec::new());
    let quotes = [
        super::quotes::quote(A, 5, 99, 103),
        super::quotes::quote(super::quotes::B, 5, 99, 103),
    ];
    let again = |rig: &mut Rig| {
        let before = rig.known();
        rig.act(|c| c.rehearse_quotes(&quotes, QuoteTerms::default()));
        assert_eq!(rig.known(), before);
        rig.port.rehearsed_quotes.pop()
    };
    // Neither has a name yet.
    assert_eq!(again(&mut rig), None);
    let id = rig.act(|c| c.mass_quote(&quotes)).expect("within every limit");
    assert_eq!(again(&mut rig), Some((id.0, 2)), "as if it were the last one");
    rig.with(|c, m, p| c.on_quote_report(Nanos(7), &super::quotes::answered(id, &[]), m, p));
    let next = id.0 + 1;
    assert_eq!(again(&mut rig), Some((next, 2)));
    assert_eq!(again(&mut rig), Some((next, 2)));
    // What a check would stop is written all the same, and so is what one message cannot have.
    rig.conductor.risk_mut().kill();
    assert_eq!(again(&mut rig), Some((id.0, 2)));
    rig.conductor.risk_mut().revive();
    rig.act(|c| c.rehearse_quotes(&[quotes[0]; 2], QuoteTerms::default()));
    assert_eq!(rig.port.rehearsed_quotes.pop(), None);
    assert_eq!(again(&mut rig), Some((next, 2)));
    assert_eq!(rig.act(|c| c.mass_quote(&quotes)), Ok(ClientOrderId(next)));
}
