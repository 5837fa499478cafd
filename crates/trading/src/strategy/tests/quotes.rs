//! Mass quotes: what is sent, what stops one, how it counts, and what becomes of it.

use super::*;

pub(super) const B: InstrumentId = InstrumentId(3);
pub(super) const NAME_A: u64 = 900_000_000_000;
pub(super) const NAME_B: u64 = NAME_A + 1;

/// A and B are bid at 100 and offered at 102.
pub(super) fn two_books() -> Rig {
    let mut rig = two_sided();
    assert!(rig.define(0, 3, "B"));
    rig.add(0, 3, 11, Side::Bid, 100, 50);
    rig.add(0, 3, 12, Side::Ask, 102, 70);
    rig.heard();
    rig
}

pub(super) fn quote(instrument: InstrumentId, qty: u32, bid: i64, ask: i64) -> Quote {
    Quote::new(instrument, qty, price(bid), price(ask))
}

impl Rig {
    fn quoted(&mut self, quotes: &[Quote]) -> Result<ClientOrderId, NotSent> {
        self.act(|c| c.mass_quote(quotes))
    }

    fn told(&mut self, report: &QuoteReport<'_>) -> Vec<alloc::string::String> {
        self.with(|c, m, p| c.on_quote_report(Nanos(9), report, m, p));
        self.heard()
    }

    fn working(&self, id: InstrumentId) -> [u64; 2] {
        self.conductor.positions().get(id).working.map(|qty| qty.0)
    }
}

pub(super) fn answered(id: ClientOrderId, refused: &[u64]) -> QuoteReport<'_> {
    QuoteReport::Answered {
        id,
        is_rejected: false,
        refused,
    }
}

fn filled(name: u64, side: Side, qty: u32, at: i64, of: u32) -> QuoteReport<'static> {
    QuoteReport::Filled {
        name,
        side,
        qty: Qty(qty),
        price: price(at),
        of: (price(at), Qty(of)),
    }
}

#[test]
fn several_instruments_leave_in_one_message_and_each_is_answered_for_itself() {
    let mut rig = two_books();
    let id = rig
        .quoted(&[quote(A, 10, 99, 103), quote(B, 20, 98, 104)])
        .expect("it is within every limit");
    assert_eq!(rig.port.quotes, [(true, id.0, vec![NAME_A, NAME_B])]);
    assert!(rig.port.sent.is_empty());
    assert_eq!(
        (rig.working(A), rig.working(B)),
        ([10; 2], [20; 2]),
        "it counts at once"
    );
    assert_eq!(
        rig.told(&answered(id, &[NAME_B])),
        ["quote 2 Accepted open [10, 10]", "quote 3 Refused open [0, 0]"]
    );
    assert_eq!((rig.working(A), rig.working(B)), ([10; 2], [0; 2]));
    assert_eq!(
        rig.told(&filled(NAME_A, Side::Ask, 4, 103, 10)),
        ["quote 2 Filled { side: Ask, qty: 4, price: 103.00 } open [10, 6]"]
    );
    assert_eq!(rig.conductor.positions().get(A).qty, -4);
    assert_eq!(rig.working(A), [10, 6]);
}

#[test]
fn a_quote_that_takes_the_place_of_another_counts_beside_it_until_the_venue_has_said() {
    let mut rig = two_books();
    let first = rig.quoted(&[quote(A, 10, 99, 103)]).expect("it fits");
    assert_eq!(
        rig.quoted(&[quote(A, 10, 98, 103)]),
        Err(NotSent::Pending),
        "one at a time"
    );
    rig.told(&answered(first, &[]));
    let second = rig.quoted(&[quote(A, 7, 98, 102)]).expect("it fits");
    assert_eq!(rig.working(A), [17; 2]);
    // The old one traded before the new one came there.
    rig.told(&filled(NAME_A, Side::Bid, 10, 99, 10));
    assert_eq!(rig.working(A), [7, 17]);
    // The new one traded while it was entered, before the answer.
    rig.told(&filled(NAME_A, Side::Ask, 2, 102, 7));
    assert_eq!(rig.working(A), [7, 15]);
    assert_eq!(rig.told(&answered(second, &[])), ["quote 2 Accepted open [7, 5]"]);
    assert_eq!(rig.working(A), [7, 5]);
    assert_eq!(rig.conductor.positions().get(A).qty, 8);
    // What is refused leaves the earlier one.
    let third = rig
        .quoted(&[Quote::none(A)])
        .expect("taking away is within every limit");
    let refused = QuoteReport::Answered {
        id: third,
        is_rejected: true,
        refused: &[],
    };
    assert_eq!(rig.told(&refused), ["quote 2 Refused open [7, 5]"]);
}

#[test]
fn what_stops_a_mass_quote_is_named_and_nothing_of_it_leaves() {
    let mut rig = two_books();
    let good = quote(A, 10, 99, 103);
    let checked = |reason| Err(NotSent::Check(reason));
    assert_eq!(rig.quoted(&[]), Err(NotSent::QuoteCount));
    assert_eq!(rig.quoted(&[good, good]), Err(NotSent::QuoteCount));
    assert_eq!(
        rig.quoted(&[good, quote(B, 101, 99, 103)]),
        checked(RiskReject::OrderSize)
    );
    assert_eq!(
        rig.quoted(&[good, quote(B, 1, 50, 103)]),
        checked(RiskReject::PriceBand)
    );
    assert_eq!(
        rig.quoted(&[good, quote(B, 1, 103, 103)]),
        checked(RiskReject::SelfTrade),
        "with itself"
    );
    assert_eq!(
        rig.quoted(&[quote(InstrumentId(5), 1, 99, 103)]),
        Err(NotSent::UnknownInstrument)
    );
    assert!(rig.act(|c| c.buy(A, 1, price(102))).is_ok());
    assert_eq!(
        rig.quoted(&[quote(A, 1, 99, 102)]),
        checked(RiskReject::SelfTrade),
        "with an order of ours"
    );
    assert_eq!(
        rig.act(|c| c.sell(A, 1, price(102))),
        checked(RiskReject::SelfTrade)
    );
    rig.conductor.kill();
    assert_eq!(rig.quoted(&[good]), checked(RiskReject::KillSwitch));
    rig.conductor.risk_mut().revive();
    rig.port.refuses = Some(Rejected::Unsupported);
    assert_eq!(rig.quoted(&[quote(B, 1, 99, 103)]), Err(NotSent::Unsupported));
    assert!(rig.port.quotes.is_empty());
    assert_eq!(rig.working(B), [0; 2], "what has not left does not count");
}

#[test]
fn positions_and_own_quotes_count_against_the_limits_of_orders() {
    let mut rig = two_books();
    let id = rig.quoted(&[quote(A, 100, 99, 103)]).expect("it fits");
    rig.told(&answered(id, &[]));
    let met = Err(NotSent::Check(RiskReject::SelfTrade));
    assert_eq!(rig.act(|c| c.buy(A, 1, price(103))), met, "our offer is there");
    let stop = Ticket::stop_limit(Side::Ask, A, 1, price(100), price(98));
    assert_eq!(rig.act(|c| c.submit(stop)), met, "our bid is between");
    assert!(rig.act(|c| c.buy(A, 1, price(102))).is_ok());
}

#[test]
fn quotes_are_cancelled_and_removed_and_a_stop_takes_them_away() {
    let mut rig = two_books();
    let both = [quote(A, 10, 99, 103), quote(B, 20, 98, 104)];
    let id = rig.quoted(&both).expect("it fits");
    rig.told(&answered(id, &[]));
    rig.told(&QuoteReport::Removed {
        names: &[NAME_B],
        why: Removal::Other,
    });
    assert_eq!((rig.working(A), rig.working(B)), ([10; 2], [0; 2]));
    assert_eq!(rig.act(|c| c.cancel_quotes()), 1);
    assert_eq!(rig.act(|c| c.cancel_quotes()), 0, "it was asked for");
    let (is_mass, cancel, names) = rig.port.quotes.pop().expect("it was sent");
    assert_eq!((is_mass, names), (false, vec![NAME_A]));
    assert_eq!(rig.quoted(&both[..1]), Err(NotSent::Pending));
    let done = QuoteReport::Cancelled {
        id: ClientOrderId(cancel),
        is_done: true,
    };
    assert_eq!(rig.told(&done), ["quote 2 Cancelled open [0, 0]"]);
    assert_eq!(rig.working(A), [0; 2]);
    rig.quoted(&both).expect("both are free again");
    rig.with(|c, m, p| c.stop(Nanos(7), m, p));
    assert_eq!(
        rig.port
            .quotes
            .last()
            .map(|(is_mass, _, names)| (*is_mass, names.len())),
        Some((false, 2))
    );
    assert_eq!(rig.quoted(&both), Err(NotSent::Stopping));
}

#[test]
fn a_trade_of_an_unknown_quote_and_one_taken_back_put_the_kill_switch_on() {
    let mut rig = two_books();
    rig.told(&filled(NAME_A + 7, Side::Bid, 1, 99, 1));
    assert!(rig.conductor.risk().is_killed());
    rig.conductor.risk_mut().revive();
    let id = rig.quoted(&[quote(A, 10, 99, 103)]).expect("it fits");
    rig.told(&answered(id, &[]));
    rig.told(&filled(NAME_A, Side::Bid, 10, 99, 10));
    let broken = QuoteReport::Broken {
        name: NAME_A,
        side: Side::Bid,
        qty: Qty(10),
        price: price(99),
    };
    rig.told(&broken);
    assert_eq!(rig.conductor.positions().get(A).qty, 0);
    assert!(rig.conductor.risk().is_killed());
}

#[test]
fn a_lost_session_leaves_quotes_counted_until_they_are_cancelled_again() {
    let mut rig = two_books();
    let id = rig.quoted(&[quote(A, 10, 99, 103)]).expect("it fits");
    rig.told(&answered(id, &[]));
    rig.quoted(&[quote(A, 5, 99, 103)]).expect("it fits");
    assert_eq!(rig.act(|c| c.cancel_quotes()), 1);
    rig.conductor.set_session(false);
    assert_eq!(rig.working(A), [15; 2]);
    let lost = Err(NotSent::Check(RiskReject::NoSession));
    assert_eq!(rig.quoted(&[quote(B, 5, 99, 103)]), lost);
    rig.with(|c, m, p| c.cancel_quotes_of(Nanos(8), true, |_| true, m, p));
    let (_, cancel, _) = rig.port.quotes.pop().expect("it was sent");
    let done = QuoteReport::Cancelled {
        id: ClientOrderId(cancel),
        is_done: true,
    };
    rig.told(&done);
    assert_eq!(rig.working(A), [0; 2], "what had no answer never came there");
}
