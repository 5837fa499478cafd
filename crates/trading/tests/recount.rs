//! The built-in rule and its conductor against a recount: after every step the whole history is gone through
//! again, in the plainest way, and must give the same orders, positions and verdicts.

use proptest::prelude::*;
use tickwire_market::{
    BookState, BookUpdate, ClientOrderId, Counter, Nanos, OrderIntent, Price, Qty, Side, TimeInForce, Volume,
};
use tickwire_trading::{
    Accounts, ControlsConfig, OrderReport, OrderState, ReportError, ReportKind, RiskConfig,
};

mod common;

use common::{ID, RuleRig};

const RISK: RiskConfig = RiskConfig {
    max_order_qty: Qty(50),
    price_band_bp: 200,
    max_orders_per_window: 4,
    window_ns: 1_000,
    max_open_orders: 3,
    max_position: 120,
    controls: ControlsConfig::NONE,
    accounts: Accounts::RULE,
};
const LOT: Qty = Qty(30);

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Time passes.
    Wait(u64),
    /// The book shows this.
    Book {
        state: BookState,
        bid: Option<Price>,
        ask: Option<Price>,
    },
    /// A report about the n-th order from the end (0 = one that was never sent).
    Report {
        back: u64,
        kind: Kind,
        qty: u32,
        off: i64,
    },
    /// All open orders are to be cancelled.
    CancelAll,
    Revive,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Accepted,
    Filled,
    Broken,
    Cancelled,
    Rejected,
    CancelRejected,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let price = prop::option::weighted(
        0.9,
        (9_950i64..10_050).prop_map(|ticks| Price::from_raw(ticks * 10_000_000)),
    );
    let far = prop::option::of((5_000i64..20_000).prop_map(|ticks| Price::from_raw(ticks * 10_000_000)));
    let state =
        prop_oneof![8 => Just(BookState::Live), 1 => Just(BookState::Stale), 1 => Just(BookState::Building)];
    let kind = prop_oneof![
        3 => Just(Kind::Accepted), 6 => Just(Kind::Filled), 3 => Just(Kind::Cancelled),
        1 => Just(Kind::Rejected), 1 => Just(Kind::CancelRejected), 2 => Just(Kind::Broken)
    ];
    let op = prop_oneof![
        4 => (0u64..7).prop_map(|n| Op::Wait(n * 100)),
        8 => (state.clone(), price.clone(), price).prop_map(|(state, bid, ask)| Op::Book { state, bid, ask }),
        1 => (state, far.clone(), far).prop_map(|(state, bid, ask)| Op::Book { state, bid, ask }),
        12 => (0u64..5, kind, 0u32..31, prop_oneof![8 => Just(0i64), 2 => -30i64..31])
            .prop_map(|(back, kind, qty, off)| Op::Report { back, kind, qty, off }),
        1 => Just(Op::CancelAll),
        2 => Just(Op::Revive),
    ];
    prop::collection::vec(op, 1..120)
}

/// An order as the history has it.
#[derive(Clone, Copy)]
struct Sent {
    at: Nanos,
    id: ClientOrderId,
    price: Price,
}

/// Everything that happened, and nothing derived from it.
#[derive(Default)]
struct History {
    sent: Vec<Sent>,
    /// Reports that were applied, and requests to cancel.
    told: Vec<(ClientOrderId, Told)>,
    books: Vec<(Nanos, BookUpdate)>,
    killed: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Told {
    Report(ReportKind),
    CancelRequest,
}

impl History {
    fn reports(&self, id: ClientOrderId) -> impl Iterator<Item = ReportKind> + '_ {
        self.told
            .iter()
            .filter(move |(of, _)| *of == id)
            .filter_map(|(_, told)| match told {
                Told::Report(kind) => Some(*kind),
                Told::CancelRequest => None,
            })
    }

    /// Traded, what was taken back included.
    fn traded(&self, id: ClientOrderId) -> u32 {
        let fills = self.reports(id).filter_map(|kind| match kind {
            ReportKind::Filled { qty, .. } => Some(qty.0),
            _ => None,
        });
        fills.sum()
    }

    /// Taken back.
    fn broken(&self, id: ClientOrderId) -> u32 {
        let breaks = self.reports(id).filter_map(|kind| match kind {
            ReportKind::Broken { qty, .. } => Some(qty.0),
            _ => None,
        });
        breaks.sum()
    }

    fn filled(&self, id: ClientOrderId) -> u32 {
        self.traded(id) - self.broken(id)
    }

    fn state(&self, id: ClientOrderId) -> OrderState {
        let has = |kind: ReportKind| self.reports(id).any(|k| k == kind);
        let last_trade = self.reports(id).filter(|kind| kind.is_trade());
        let is_broken_last = matches!(last_trade.last(), Some(ReportKind::Broken { .. }));
        match self.traded(id) {
            _ if has(ReportKind::Rejected) => OrderState::Rejected,
            _ if has(ReportKind::Cancelled) => OrderState::Cancelled,
            // Nothing follows the last fill but breaks.
            traded if traded == LOT.0 && is_broken_last => OrderState::Cancelled,
            traded if traded == LOT.0 => OrderState::Filled,
            traded if traded > 0 => OrderState::PartiallyFilled,
            _ if has(ReportKind::Accepted) => OrderState::New,
            _ => OrderState::PendingNew,
        }
    }

    fn is_open(&self, id: ClientOrderId) -> bool {
        [
            OrderState::PendingNew,
            OrderState::New,
            OrderState::PartiallyFilled,
        ]
        .contains(&self.state(id))
    }

    fn is_cancel_pending(&self, id: ClientOrderId) -> bool {
        let about = self.told.iter().rev().filter(|(of, _)| *of == id);
        let mut last = about.filter(|(_, told)| {
            matches!(
                told,
                Told::CancelRequest | Told::Report(ReportKind::CancelRejected)
            )
        });
        last.next().is_some_and(|(_, told)| *told == Told::CancelRequest)
    }

    fn verdict(&self, id: ClientOrderId, kind: ReportKind) -> Result<(), ReportError> {
        use OrderState::*;
        if self.sent.iter().all(|sent| sent.id != id) {
            return Err(ReportError::Unknown);
        }
        let (state, filled) = (self.state(id), self.filled(id));
        match kind {
            ReportKind::Accepted if state == PendingNew => Ok(()),
            ReportKind::Accepted if state == Rejected => Err(ReportError::OutOfOrder),
            ReportKind::Accepted => Err(ReportError::Duplicate),
            ReportKind::Cancelled if self.is_open(id) => Ok(()),
            ReportKind::Cancelled if state == Cancelled => Err(ReportError::Duplicate),
            ReportKind::Rejected if state == PendingNew => Ok(()),
            ReportKind::Rejected if state == Rejected => Err(ReportError::Duplicate),
            ReportKind::Cancelled | ReportKind::Rejected => Err(ReportError::OutOfOrder),
            ReportKind::CancelRejected if self.is_cancel_pending(id) => Ok(()),
            ReportKind::CancelRejected => Err(ReportError::Duplicate),
            ReportKind::Replaced { .. } | ReportKind::ReplaceRejected { .. } => {
                unreachable!("nothing is replaced here")
            }
            ReportKind::Triggered => unreachable!("there are no stop orders here"),
            ReportKind::Filled { cumulative, .. } if cumulative.0 <= filled => Err(ReportError::Duplicate),
            ReportKind::Filled { .. } if !self.is_open(id) => Err(ReportError::OutOfOrder),
            ReportKind::Filled { qty, cumulative, .. } if qty.0 == 0 || cumulative.0 < filled + qty.0 => {
                Err(ReportError::OutOfOrder)
            }
            ReportKind::Filled { cumulative, .. } if cumulative.0 > LOT.0 - self.broken(id) => {
                Err(ReportError::Overfill)
            }
            ReportKind::Filled { qty, cumulative, .. } if cumulative.0 > filled + qty.0 => {
                Err(ReportError::Missed)
            }
            ReportKind::Filled { .. } => Ok(()),
            ReportKind::Broken { qty, .. } if qty.0 == 0 => Err(ReportError::OutOfOrder),
            ReportKind::Broken { qty, cumulative, .. }
                if cumulative.0 == filled && qty.0 <= self.broken(id) =>
            {
                Err(ReportError::Duplicate)
            }
            ReportKind::Broken { qty, .. } if qty.0 > filled => Err(ReportError::OutOfOrder),
            ReportKind::Broken { qty, cumulative, .. } if filled - qty.0 != cumulative.0 => {
                Err(ReportError::Missed)
            }
            ReportKind::Broken { .. } => Ok(()),
        }
    }

    /// The mid price of the last good book before the newest.
    fn reference(&self) -> Option<Price> {
        let earlier = &self.books[..self.books.len() - 1];
        let good = |book: &BookUpdate| {
            let (bid, ask) = (book.best(Side::Bid)?.0, book.best(Side::Ask)?.0);
            (book.state == BookState::Live && bid < ask).then(|| Price::from_raw((bid.raw() + ask.raw()) / 2))
        };
        earlier.iter().rev().find_map(|(_, book)| good(book))
    }

    /// Whether the newest book must make us buy; the check that stops it otherwise.
    fn decision(&self) -> Option<Result<Price, Counter>> {
        let (now, book) = self.books.last()?;
        let live = |(_, book): &&(Nanos, BookUpdate)| book.state == BookState::Live;
        let before = self.books[..self.books.len() - 1].iter().rfind(live);
        let offer = book.best(Side::Ask).map(|(price, _)| price);
        let was = before
            .and_then(|(_, book)| book.best(Side::Ask))
            .map(|(price, _)| price);
        let price = offer.filter(|_| book.state == BookState::Live && offer != was)?;
        let open: Vec<_> = self.sent.iter().filter(|sent| self.is_open(sent.id)).collect();
        let held: u32 = self.sent.iter().map(|sent| self.filled(sent.id)).sum();
        let working: u32 = open.iter().map(|sent| LOT.0 - self.traded(sent.id)).sum();
        let recent = self
            .sent
            .iter()
            .filter(|sent| now.0 - sent.at.0 < RISK.window_ns)
            .count();
        let is_far = |reference: Price| {
            (price.raw() - reference.raw()).abs() * 10_000 > i64::from(RISK.price_band_bp) * reference.raw()
        };
        Some(match self.reference() {
            _ if self.killed => Err(Counter::RiskKillSwitch),
            None => Err(Counter::RiskNoReference),
            Some(reference) if is_far(reference) => Err(Counter::RiskPriceBand),
            _ if open.len() as u32 >= RISK.max_open_orders => Err(Counter::RiskOpenOrders),
            _ if u64::from(held + working + LOT.0) > RISK.max_position => Err(Counter::RiskPosition),
            _ if recent as u32 >= RISK.max_orders_per_window => Err(Counter::RiskOrderRate),
            _ => Ok(price),
        })
    }
}

struct Pair {
    desk: RuleRig,
    history: History,
    now: Nanos,
}

impl Pair {
    fn step(&mut self, op: Op) {
        match op {
            Op::Wait(ns) => self.now = self.now.after(ns),
            Op::Book { state, bid, ask } => self.book(state, bid, ask),
            Op::Report { back, kind, qty, off } => self.report(back, kind, qty, off),
            Op::CancelAll => self.cancel_all(),
            Op::Revive => {
                self.desk.conductor.risk_mut().revive();
                self.history.killed = false;
            }
        }
        self.compare();
    }

    fn book(&mut self, state: BookState, bid: Option<Price>, ask: Option<Price>) {
        let volume = |price: Option<Price>| Volume(u64::from(price.is_some()));
        let price = [bid.unwrap_or_default(), ask.unwrap_or_default()];
        let update = BookUpdate {
            instrument: ID,
            state,
            price,
            qty: [volume(bid), volume(ask)],
            ..BookUpdate::default()
        };
        self.history.books.push((self.now, update));
        let expected = self.history.decision();
        let before = self.desk.conductor.counters().clone();
        match (self.desk.on_update(self.now, &update), expected) {
            (
                Some(OrderIntent::New {
                    id,
                    price,
                    qty,
                    side,
                    time_in_force,
                    ..
                }),
                Some(Ok(wanted)),
            ) => {
                assert_eq!(
                    (price, qty, side, time_in_force),
                    (wanted, LOT, Side::Bid, TimeInForce::Day)
                );
                self.history.sent.push(Sent {
                    at: self.now,
                    id,
                    price,
                });
            }
            (None, Some(Err(counter))) => assert_eq!(
                self.desk.conductor.counters().get(counter),
                before.get(counter) + 1,
                "{counter:?}"
            ),
            (None, None) => assert_eq!(self.desk.conductor.counters(), &before),
            (intent, expected) => panic!("{intent:?} where {expected:?} was expected"),
        }
    }

    fn report(&mut self, back: u64, kind: Kind, qty: u32, off: i64) {
        let last = self.history.sent.last().map_or(0, |sent| sent.id.0);
        let id = ClientOrderId(if back == 0 {
            last + 1_000
        } else {
            (last + 1).saturating_sub(back)
        });
        let price = self
            .history
            .sent
            .iter()
            .find(|sent| sent.id == id)
            .map_or(Price::ZERO, |sent| sent.price);
        let kind = match kind {
            Kind::Accepted => ReportKind::Accepted,
            Kind::Cancelled => ReportKind::Cancelled,
            Kind::Rejected => ReportKind::Rejected,
            Kind::CancelRejected => ReportKind::CancelRejected,
            Kind::Filled => {
                let cumulative = i64::from(self.history.filled(id)) + i64::from(qty) + off;
                ReportKind::Filled {
                    qty: Qty(qty),
                    price,
                    cumulative: Qty(cumulative.max(0) as u32),
                }
            }
            Kind::Broken => {
                // Now and then all of it, which a number at random hardly is.
                let qty = if off == 0 {
                    qty.min(self.history.filled(id))
                } else {
                    qty
                };
                let cumulative = i64::from(self.history.filled(id)) - i64::from(qty) + off;
                ReportKind::Broken {
                    qty: Qty(qty),
                    price,
                    cumulative: Qty(cumulative.max(0) as u32),
                }
            }
        };
        let expected = self.history.verdict(id, kind);
        let got = self.desk.on_report(&OrderReport {
            id,
            venue_id: None,
            kind,
        });
        assert_eq!(got.map(|_| ()), expected, "{id:?} {kind:?}");
        match expected {
            Ok(()) => {
                self.history.told.push((id, Told::Report(kind)));
                self.history.killed |= matches!(kind, ReportKind::Broken { .. });
            }
            Err(ReportError::Duplicate) => {}
            Err(_) => {
                self.history.killed |= kind.is_trade();
            }
        }
    }

    fn cancel_all(&mut self) {
        let wanted = self
            .history
            .sent
            .iter()
            .filter(|s| self.history.is_open(s.id) && !self.history.is_cancel_pending(s.id));
        let wanted: Vec<ClientOrderId> = wanted.map(|sent| sent.id).collect();
        let mut asked = Vec::new();
        while let Some(OrderIntent::Cancel { target, .. }) = self.desk.cancel_next() {
            asked.push(target);
        }
        self.history
            .told
            .extend(asked.iter().map(|id| (*id, Told::CancelRequest)));
        asked.sort();
        assert_eq!(asked, wanted);
    }

    fn compare(&self) {
        let (desk, history) = (&self.desk.conductor, &self.history);
        for state in OrderState::ALL {
            let count = history
                .sent
                .iter()
                .filter(|sent| history.state(sent.id) == state)
                .count();
            assert_eq!(desk.orders().count(state), count as u64, "{state:?}");
        }
        for sent in &history.sent {
            let order = desk
                .orders()
                .get(sent.id)
                .expect("the table is large enough for all");
            assert_eq!(
                (order.state, order.filled),
                (history.state(sent.id), Qty(history.filled(sent.id))),
                "{:?}",
                sent.id
            );
        }
        let open = history.sent.iter().filter(|sent| history.is_open(sent.id));
        assert_eq!(desk.orders().open() as usize, open.clone().count());
        let position = desk.positions().get(ID);
        let held: u32 = history.sent.iter().map(|sent| history.filled(sent.id)).sum();
        let cost: i128 = history
            .sent
            .iter()
            .map(|sent| sent.price.notional(u64::from(history.filled(sent.id))))
            .sum();
        let working: u32 = open.map(|sent| LOT.0 - history.traded(sent.id)).sum();
        assert_eq!((position.qty, position.cost), (i64::from(held), cost));
        assert_eq!(
            (position.working, position.traded[0]),
            ([Volume(u64::from(working)), Volume(0)], Volume(u64::from(held)))
        );
        assert_eq!(desk.risk().is_killed(), history.killed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn orders_positions_and_verdicts_equal_a_recount_of_the_history(ops in ops()) {
        let desk = RuleRig::new(LOT, TimeInForce::Day, 512, RISK);
        let mut pair = Pair { desk, history: History::default(), now: Nanos(1_000_000) };
        for op in ops {
            pair.step(op);
        }
    }
}
