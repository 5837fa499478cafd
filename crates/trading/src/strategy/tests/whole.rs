//! What concerns a strategy as a whole: mass quotes answered and cancelled, the venue's protection, what it
//! has of our quotes, executions of a process before this one, turns of the loop and packets.

use super::quotes::{NAME_A, NAME_B, answered, quote, two_books};
use super::*;

impl Rig {
    fn whole(&mut self) -> Vec<alloc::string::String> {
        core::mem::take(&mut self.conductor.strategy.whole)
    }

    fn tell(&mut self, report: &QuoteReport<'_>) {
        self.with(|c, m, p| c.on_quote_report(Nanos(9), report, m, p));
    }
}

/// A and B are quoted.
fn quoted() -> Rig {
    let mut rig = two_books();
    let both = [quote(A, 10, 99, 103), quote(B, 20, 98, 104)];
    let id = rig.act(|c| c.mass_quote(&both)).expect("it fits");
    rig.tell(&answered(id, &[]));
    rig.heard();
    rig.whole();
    rig
}

const B: InstrumentId = InstrumentId(3);

fn cancelled(id: ClientOrderId) -> QuoteReport<'static> {
    QuoteReport::Cancelled { id, is_done: true }
}

#[test]
fn a_mass_quote_is_told_of_as_a_whole_behind_each_of_its_quotes() {
    let mut rig = two_books();
    let both = [quote(A, 10, 99, 103), quote(B, 20, 98, 104)];
    let id = rig.act(|c| c.mass_quote(&both)).expect("it fits");
    rig.tell(&answered(id, &[NAME_B]));
    let event = MassQuoteEvent::Answered {
        id,
        is_rejected: false,
        refused: &[B],
    };
    assert_eq!(rig.whole(), [alloc::format!("{event:?}")]);
    // An answer to nothing tells nothing.
    rig.tell(&answered(ClientOrderId(77), &[]));
    assert!(rig.whole().is_empty());
    // More mass quotes than are remembered: the answer to an old one finds its quotes all the same.
    let old = rig.act(|c| c.mass_quote(&both[1..])).expect("it fits");
    for _ in 0..300 {
        // A second for each.
        rig.conductor.state.risk = crate::Risk::new(RiskConfig::default(), 2 << BITS);
        for id in [A, B] {
            rig.conductor.risk_mut().set_reference(id, price(101));
        }
        let id = rig.act(|c| c.mass_quote(&both[..1])).expect("it fits");
        rig.tell(&answered(id, &[]));
    }
    rig.whole();
    rig.tell(&answered(old, &[]));
    assert_eq!(rig.whole().len(), 1);
    assert!(rig.conductor.quotes().all(|own| own.asked.is_none()));
}

#[test]
fn every_quote_goes_by_one_message_or_by_as_many_as_it_takes() {
    for is_shared in [false, true] {
        let mut rig = quoted();
        rig.port.is_shared = is_shared;
        rig.port.quotes.clear();
        let id = rig.act(|c| c.cancel_every_quote()).expect("they are there");
        let (_, sent, names) = rig.port.quotes.pop().expect("it was sent");
        match is_shared {
            false => assert_eq!((sent, names), (id.0, vec![])),
            true => assert_eq!(names, vec![NAME_A, NAME_B]),
        }
        let pending = Err(NotSent::Pending);
        assert_eq!(rig.act(|c| c.mass_quote(&[quote(A, 1, 99, 103)])), pending);
        rig.tell(&cancelled(ClientOrderId(sent)));
        let event = MassQuoteEvent::Cancelled { id, is_done: true };
        assert_eq!(rig.whole(), [alloc::format!("{event:?}")]);
        assert!(rig.conductor.quotes().all(|own| !own.is_open()));
        // Of nothing: the venue may have what we do not know of.
        let again = rig.act(|c| c.cancel_every_quote());
        match is_shared {
            true => assert_eq!(again, Err(NotSent::NotOpen)),
            false => {
                rig.tell(&cancelled(again.expect("it leaves")));
                assert_eq!(rig.whole().len(), 1);
            }
        }
    }
    // What is refused is told too, and the quotes live.
    let mut rig = quoted();
    let id = rig.act(|c| c.cancel_every_quote()).expect("they are there");
    rig.tell(&QuoteReport::Cancelled { id, is_done: false });
    let event = MassQuoteEvent::Cancelled { id, is_done: false };
    assert_eq!(rig.whole(), [alloc::format!("{event:?}")]);
    assert_eq!(rig.conductor.quotes().filter(|own| own.is_open()).count(), 2);
}

#[test]
fn quotes_are_named_in_the_order_that_the_strategy_wants() {
    let mut rig = two_books();
    let c = InstrumentId(5);
    assert_eq!(rig.act(|ctx| ctx.name_quote(c)), None, "nobody subscribed to it");
    for _ in 0..2 {
        assert_eq!(rig.act(|ctx| ctx.name_quote(B)), Some(NAME_A));
    }
    let both = [quote(A, 10, 99, 103), quote(B, 20, 98, 104)];
    rig.act(|ctx| ctx.mass_quote(&both)).expect("it fits");
    let (_, _, names) = rig.port.quotes.pop().expect("it was sent");
    assert_eq!(names, vec![NAME_B, NAME_A]);
}

#[test]
fn the_protection_of_the_venue_is_told_of_once_and_by_name() {
    let mut rig = quoted();
    rig.tell(&QuoteReport::Removed {
        names: &[NAME_A, NAME_B],
        why: Removal::Protection,
    });
    assert_eq!(
        rig.heard(),
        [
            "quote 2 Removed(Protection) open [0, 0]",
            "quote 3 Removed(Protection) open [0, 0]"
        ]
    );
    assert_eq!(rig.whole(), ["Protected"]);
}

#[test]
fn a_quote_that_is_answered_side_by_side_is_what_is_live_of_it() {
    let mut rig = two_books();
    let id = rig
        .act(|c| c.mass_quote(&[quote(A, 10, 99, 103)]))
        .expect("it fits");
    let settled = QuoteReport::Settled {
        id,
        name: NAME_A,
        live: [(price(99), Qty(6)), (Price::ZERO, Qty::ZERO)],
        is_refused: true,
    };
    rig.tell(&settled);
    assert_eq!(rig.heard(), ["quote 2 Refused open [6, 0]"]);
    assert_eq!(rig.whole().len(), 1);
    let working = rig.conductor.positions().get(A).working.map(|qty| qty.0);
    assert_eq!(working, [6, 0]);
}

#[test]
fn the_venue_is_asked_about_each_quote_in_turn_and_what_differs_is_told() {
    let mut rig = quoted();
    let start = Nanos(Nanos::SECOND);
    assert_eq!(rig.conductor.next_timer(), None);
    rig.conductor.reconcile_quotes(start, 2 * Nanos::SECOND);
    let mut names = Vec::new();
    for turn in 1..=4 {
        let due = rig.conductor.next_timer().expect("a question is due");
        assert_eq!(due, start.after(turn * Nanos::SECOND), "each within two seconds");
        rig.with(|c, m, p| c.on_time(due, m, p));
        let (id, name) = rig.port.asked.pop().expect("it was asked");
        names.push(name);
        let own = rig.conductor.quotes().find(|own| own.name == name).copied();
        let left = own.expect("it is ours").live.map(|side| side.left);
        let id = ClientOrderId(id);
        rig.tell(&QuoteReport::Status { id, left });
    }
    assert_eq!(names, [NAME_B, NAME_A, NAME_B, NAME_A]);
    assert_eq!(rig.conductor.reconciled_quotes(), [4, 0]);
    let heard = rig.heard();
    assert!(
        heard.len() == 4 && heard[0] == "quote 3 Confirmed open [20, 20]",
        "{heard:?}"
    );
    // It has something else.
    let due = rig.conductor.next_timer().expect("a question is due");
    rig.with(|c, m, p| c.on_time(due, m, p));
    let (id, _) = rig.port.asked.pop().expect("it was asked");
    let (id, left) = (ClientOrderId(id), [Qty(1), Qty(0)]);
    rig.tell(&QuoteReport::Status { id, left });
    assert_eq!(rig.heard(), ["quote 3 Differs([1, 0]) open [20, 20]"]);
    // Something left since: an answer of another moment.
    let due = rig.conductor.next_timer().expect("a question is due");
    rig.with(|c, m, p| c.on_time(due, m, p));
    let (id, _) = rig.port.asked.pop().expect("it was asked");
    rig.act(|c| c.mass_quote(&[quote(A, 1, 99, 103)]))
        .expect("it fits");
    rig.tell(&QuoteReport::Status {
        id: ClientOrderId(id),
        left,
    });
    assert!(rig.heard().is_empty());
    // No answer.
    for _ in 0..2 {
        let due = rig
            .conductor
            .next_timer()
            .expect("a question, or its end, is due");
        rig.with(|c, m, p| c.on_time(due, m, p));
    }
    assert_eq!(rig.heard(), ["quote 3 Unanswered open [20, 20]"]);
    assert_eq!(rig.conductor.reconciled_quotes(), [5, 2]);
}

fn late(signed: i64) -> LateExecution {
    LateExecution {
        symbol: Symbol::new(b"A").expect("a symbol"),
        instrument: Some(A),
        number: Some(1),
        side: if signed > 0 { Side::Bid } else { Side::Ask },
        qty: Qty(signed.unsigned_abs() as u32),
        price: price(100),
        is_broken: false,
        is_again: true,
    }
}

#[test]
fn what_a_process_before_has_traded_is_held_if_the_strategy_books_it_and_stops_it_if_not() {
    let mut rig = two_sided();
    rig.conductor.strategy.books_late = true;
    rig.conductor.set_execution(Some(Execution {
        seq: SeqNo(41),
        id: ExecutionId::NONE,
    }));
    assert!(rig.with(|c, m, p| c.on_late_execution(Nanos(9), &late(30), m, p)));
    rig.conductor.set_execution(None);
    assert_eq!(rig.heard(), ["late 30 of A Some(41)"]);
    assert_eq!(rig.conductor.positions().get(A).qty, 30);
    let broken = LateExecution {
        is_broken: true,
        ..late(10)
    };
    assert!(rig.with(|c, m, p| c.on_late_execution(Nanos(9), &broken, m, p)));
    assert_eq!(rig.heard(), ["late -10 of A None"]);
    assert_eq!(rig.conductor.positions().get(A).qty, 20);
    assert!(!rig.conductor.risk().is_killed());
    rig.conductor.strategy.books_late = false;
    assert!(!rig.with(|c, m, p| c.on_late_execution(Nanos(9), &late(1), m, p)));
    assert_eq!(rig.conductor.positions().get(A).qty, 20);
    assert!(rig.conductor.risk().is_killed(), "the position is not known");
}

#[test]
fn the_end_of_a_packet_tells_what_the_venue_forgot_to_end() {
    let mut rig = two_sided();
    rig.event(0, adding(2, 9, Side::Bid, 101, 5), true);
    assert!(rig.heard().is_empty(), "its group goes on");
    rig.with(|c, m, p| c.on_packet(Nanos(8), 0, m, p));
    assert_eq!(rig.heard(), ["book 2 Some((101, 5)) Some((102, 70))", "packet 0"]);
    rig.with(|c, m, p| c.on_turn(Nanos(9), m, p));
    assert_eq!(rig.conductor.strategy.turns, 1);
}

#[test]
fn orders_alike_by_one_message_are_one_unless_they_are_meant() {
    let mut rig = two_sided();
    let ticket = || Ticket::limit(Side::Bid, A, 1, price(100)).immediate_or_cancel();
    rig.conductor.strategy.on_book = vec![ticket(), ticket(), ticket().repeatable()];
    rig.add(0, 2, 9, Side::Bid, 101, 5);
    let done = &rig.conductor.strategy.done;
    assert!(done[0].is_ok() && done[2].is_ok(), "{done:?}");
    assert_eq!(done[1], Err(NotSent::Check(RiskReject::Duplicate)));
}

#[test]
fn what_a_lost_session_had_is_gone_and_what_it_traded_still_counts() {
    let mut rig = quoted();
    let ticket = Ticket::limit(Side::Bid, A, 5, price(101)).immediate_or_cancel();
    let order = rig.act(|c| c.submit(ticket)).expect("it is within every limit");
    rig.conductor.lose_session();
    assert!(rig.conductor.quotes().all(|own| !own.is_open()));
    let working = |rig: &Rig| rig.conductor.positions().get(A).working.map(|qty| qty.0);
    assert_eq!(working(&rig), [5, 0], "the order may have traded");
    // Both had, and are heard of in the next session.
    rig.tell(&QuoteReport::Filled {
        name: NAME_A,
        side: Side::Bid,
        qty: Qty(3),
        price: price(99),
        of: (price(99), Qty(10)),
    });
    let filled = ReportKind::Filled {
        qty: Qty(2),
        price: price(101),
        cumulative: Qty(2),
    };
    rig.report(order.0, filled).expect("it is open");
    rig.conductor.take_up_session(Nanos(9));
    assert_eq!(rig.conductor.positions().get(A).qty, 5);
    assert_eq!((working(&rig), rig.conductor.orders().open()), ([0; 2], 0));
    assert!(!rig.conductor.risk().is_killed());
}
