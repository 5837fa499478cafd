//! What a strategy is told, what it may do, and what stops it, on two feeds of three orders.

use alloc::vec;
use alloc::vec::Vec;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_market::{
    BookState, ClientOrderId, EventFlags, EventKind, Instrument, InstrumentId, MarketEvent, Nanos, OrderId,
    OrderIntent, Price, Qty, SeqNo, Side, Symbol, TradingStatus, Venue, Volume,
};

mod quotes;
mod rehearsals;
mod stops;
mod whole;

use super::*;
use crate::{ControlsConfig, OrderReport, OrderState, RiskConfig, RiskReject};

/// What the strategy was told, and what it does when a book changes.
#[derive(Default)]
struct Probe {
    heard: Vec<alloc::string::String>,
    on_book: Vec<Ticket>,
    done: Vec<Result<ClientOrderId, NotSent>>,
    /// What was told of mass quotes as a whole.
    whole: Vec<alloc::string::String>,
    books_late: bool,
    turns: u32,
}

impl Strategy for Probe {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::symbol("A"), Subscription::symbol("B")]
    }
    fn on_instrument(&mut self, _: &mut Context<'_>, i: &Instrument) {
        self.heard
            .push(alloc::format!("instrument {} {}", i.id.0, i.symbol.as_str()));
    }
    fn on_book(&mut self, ctx: &mut Context<'_>, c: &BookChange) {
        let best = |side| c.after.best(side).map(|(p, q)| (p.raw() / Price::ONE_RAW, q.0));
        self.heard.push(alloc::format!(
            "book {} {:?} {:?}",
            c.instrument.0,
            best(Side::Bid),
            best(Side::Ask)
        ));
        for ticket in core::mem::take(&mut self.on_book) {
            self.done.push(ctx.submit(ticket));
        }
    }
    fn on_trade(&mut self, _: &mut Context<'_>, t: &Trade) {
        self.heard
            .push(alloc::format!("trade {} at {} {:?}", t.qty, t.price, t.resting));
    }
    fn on_quote(&mut self, _: &mut Context<'_>, quote: &MarketEvent) {
        self.heard.push(alloc::format!("quote {}", quote.instrument.0));
    }
    fn on_imbalance(&mut self, _: &mut Context<'_>, imbalance: &MarketEvent) {
        self.heard
            .push(alloc::format!("imbalance {}", imbalance.instrument.0));
    }
    fn on_status(&mut self, _: &mut Context<'_>, id: InstrumentId, status: TradingStatus) {
        self.heard.push(alloc::format!("status {} {status:?}", id.0));
    }
    fn on_live(&mut self, _: &mut Context<'_>, id: InstrumentId) {
        self.heard.push(alloc::format!("live {}", id.0));
    }
    fn on_stale(&mut self, _: &mut Context<'_>, id: InstrumentId) {
        self.heard.push(alloc::format!("stale {}", id.0));
    }
    fn on_order(&mut self, _: &mut Context<'_>, e: &OrderEvent) {
        self.heard.push(alloc::format!(
            "order {} {:?} filled {}",
            e.order.id.0,
            e.order.state,
            e.order.filled
        ));
    }
    fn on_own_quote(&mut self, _: &mut Context<'_>, e: &QuoteEvent) {
        let open = Side::BOTH.map(|side| e.quote.open(side).0);
        self.heard.push(alloc::format!(
            "quote {} {:?} open {open:?}",
            e.quote.instrument.0,
            e.kind
        ));
    }
    fn on_mass_quote(&mut self, _: &mut Context<'_>, e: &MassQuoteEvent<'_>) {
        self.whole.push(alloc::format!("{e:?}"));
    }
    fn on_late_execution(&mut self, ctx: &mut Context<'_>, late: &LateExecution) -> bool {
        self.heard.push(alloc::format!(
            "late {} of {} {:?}",
            late.signed(),
            late.symbol.as_str(),
            ctx.execution().map(|execution| execution.seq.0)
        ));
        self.books_late
    }
    fn on_turn(&mut self, _: &mut Context<'_>) {
        self.turns += 1;
    }
    fn on_packet(&mut self, _: &mut Context<'_>, feed: usize) {
        self.heard.push(alloc::format!("packet {feed}"));
    }
    fn on_timer(&mut self, _: &mut Context<'_>, timer: TimerId) {
        self.heard.push(alloc::format!("timer {}", timer.0));
    }
    fn on_command(&mut self, ctx: &mut Context<'_>, words: &str) {
        ctx.note("told", words.len() as i64);
    }
}

#[derive(Default)]
struct Port {
    sent: Vec<OrderIntent>,
    /// Mass quotes and cancellations, and the names in each.
    quotes: Vec<(bool, u64, Vec<u64>)>,
    /// What was asked about, by whose name.
    asked: Vec<(u64, u64)>,
    /// Others quote over the same session.
    is_shared: bool,
    refuses: Option<Rejected>,
    /// What was rehearsed, where it can be.
    rehearsed: Option<Vec<OrderIntent>>,
    /// Numbers of mass quotes that were, and how many quotes each had.
    rehearsed_quotes: Vec<(u64, usize)>,
    is_rehearsal: bool,
}

impl OrderPort for Port {
    fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        match (self.refuses, &mut self.rehearsed) {
            (Some(reason), _) => Err(reason),
            (None, Some(rehearsed)) if self.is_rehearsal => {
                rehearsed.push(*request);
                Ok(())
            }
            _ => {
                self.sent.push(*request);
                Ok(())
            }
        }
    }

    fn begin_rehearsal(&mut self) -> bool {
        self.is_rehearsal = self.rehearsed.is_some();
        self.is_rehearsal
    }

    fn end_rehearsal(&mut self) {
        self.is_rehearsal = false;
    }

    fn quote(&mut self, _: Nanos, request: &QuoteIntent<'_>) -> Result<(), Rejected> {
        if let Some(reason) = self.refuses {
            return Err(reason);
        }
        if self.is_rehearsal {
            if let QuoteIntent::Mass { id, entries, .. } = *request {
                self.rehearsed_quotes.push((id.0, entries.len()));
            }
            return Ok(());
        }
        let (is_mass, id, entries) = match *request {
            QuoteIntent::Mass { id, entries, .. } => (true, id, entries),
            QuoteIntent::Cancel { id, entries, .. } => (false, id, entries),
            QuoteIntent::CancelAll { .. } if self.is_shared => return Err(Rejected::Unsupported),
            QuoteIntent::CancelAll { id, .. } => {
                self.quotes.push((false, id.0, Vec::new()));
                return Ok(());
            }
            QuoteIntent::Status { id, entry } => {
                self.asked.push((id.0, entry.name));
                return Ok(());
            }
        };
        let names = entries.iter().map(|entry| entry.name).collect();
        self.quotes.push((is_mass, id.0, names));
        Ok(())
    }
}

/// Two feeds, of which the second has the instrument A as number 3.
struct Rig {
    books: Vec<Books>,
    conductor: Conductor<Probe>,
    port: Port,
    next: u64,
}

const BITS: u32 = 4;
const A: InstrumentId = InstrumentId(2);
const A_THERE: InstrumentId = InstrumentId((1 << BITS) | 3);

impl Rig {
    fn new() -> Rig {
        let config = BooksConfig {
            depth: Depth::ByOrder,
            instruments: 8,
            orders: 64,
            levels: 1024,
            initial: BookState::Live,
            ..BooksConfig::default()
        };
        let risk = RiskConfig {
            max_order_qty: Qty(100),
            max_open_orders: 4,
            controls: ControlsConfig::NONE,
            ..RiskConfig::default()
        };
        let conductor = ConductorConfig {
            feeds: 2,
            instrument_bits: BITS,
            max_orders: 16,
            last_id: 0,
            risk,
            ..ConductorConfig::default()
        };
        let mut rig = Rig {
            books: vec![Books::new(config), Books::new(config)],
            conductor: Conductor::new(Probe::default(), &conductor),
            port: Port::default(),
            next: 0,
        };
        rig.with(|c, m, p| c.start(Nanos(1), m, p));
        assert!(rig.define(0, 2, "A"));
        assert!(rig.define(1, 3, "A"));
        assert!(!rig.define(0, 5, "C"), "nobody subscribed to it");
        rig.heard();
        rig
    }

    fn with<T>(&mut self, f: impl FnOnce(&mut Conductor<Probe>, Markets<'_>, &mut Port) -> T) -> T {
        f(
            &mut self.conductor,
            Markets::new(&self.books, BITS),
            &mut self.port,
        )
    }

    fn define(&mut self, feed: usize, id: u32, symbol: &str) -> bool {
        let instrument = Instrument {
            id: InstrumentId(id),
            symbol: Symbol::new(symbol.as_bytes()).expect("it can be done"),
            venue: Venue::Nasdaq,
            ..Instrument::default()
        };
        self.with(|c, m, p| c.define(Nanos(1), feed, &instrument, None, m, p))
    }

    fn event(&mut self, feed: usize, event: MarketEvent, is_grouped: bool) {
        self.next += 1;
        let event = MarketEvent {
            seq: SeqNo(self.next),
            recv_ts: Nanos(self.next * Nanos::MILLI),
            ..event
        };
        let outcome = Outcome::of(&mut self.books[feed], &event);
        let (c, m) = (&mut self.conductor, Markets::new(&self.books, BITS));
        c.on_event(feed, &event, &outcome, is_grouped, m, &mut self.port);
    }

    fn add(&mut self, feed: usize, local: u32, order: u64, side: Side, price: i64, qty: u64) {
        self.event(feed, adding(local, order, side, price, qty), false);
    }

    fn report(&mut self, id: u64, kind: ReportKind) -> Result<crate::Change, crate::ReportError> {
        let report = OrderReport {
            id: ClientOrderId(id),
            venue_id: Some(OrderId(1000 + id)),
            kind,
        };
        self.with(|c, m, p| c.on_report(Nanos(9), &report, m, p))
    }

    fn heard(&mut self) -> Vec<alloc::string::String> {
        core::mem::take(&mut self.conductor.strategy.heard)
    }

    fn act<T>(&mut self, f: impl FnOnce(&mut Context<'_>) -> T) -> T {
        let mut context = Context {
            now: Nanos(5),
            cause: Default::default(),
            markets: Markets::new(&self.books, BITS),
            live: InstrumentId::WHOLE_FEED,
            state: &mut self.conductor.state,
            port: &mut self.port,
        };
        f(&mut context)
    }
}

fn price(units: i64) -> Price {
    Price::from_raw(units * Price::ONE_RAW)
}

fn adding(local: u32, order: u64, side: Side, at: i64, qty: u64) -> MarketEvent {
    MarketEvent {
        kind: EventKind::Add,
        instrument: InstrumentId(local),
        order_id: OrderId(order),
        side,
        price: price(at),
        qty: Volume(qty),
        ..MarketEvent::default()
    }
}

fn two_sided() -> Rig {
    let mut rig = Rig::new();
    rig.add(0, 2, 1, Side::Bid, 100, 50);
    rig.add(0, 2, 2, Side::Ask, 102, 70);
    rig.heard();
    rig
}

#[test]
fn instruments_of_several_feeds_have_numbers_of_their_own() {
    let mut rig = Rig::new();
    rig.add(0, 2, 1, Side::Bid, 100, 50);
    rig.add(1, 3, 1, Side::Ask, 103, 20);
    rig.add(1, 2, 2, Side::Ask, 90, 20);
    assert_eq!(
        rig.heard(),
        [
            "book 2 Some((100, 50)) None",
            &alloc::format!("book {} None Some((103, 20))", A_THERE.0)
        ],
        "number 2 of the second feed is another instrument, which nobody subscribed to"
    );
}

#[test]
fn a_book_is_told_of_once_after_a_group_and_a_trade_before_it() {
    let mut rig = two_sided();
    let part = |order, qty, flags| MarketEvent {
        kind: EventKind::Execute,
        instrument: A,
        order_id: OrderId(order),
        qty: Volume(qty),
        flags,
        ..MarketEvent::default()
    };
    rig.event(0, part(2, 30, EventFlags::NONE), true);
    rig.event(0, part(2, 40, EventFlags::LAST), true);
    assert_eq!(
        rig.heard(),
        [
            "trade 30 at 102.00 Some(Ask)",
            "trade 40 at 102.00 Some(Ask)",
            "book 2 Some((100, 50)) None"
        ]
    );
}

#[test]
fn an_order_leaves_inside_the_callback_and_its_life_is_told() {
    let mut rig = two_sided();
    rig.conductor.strategy.on_book = vec![Ticket::limit(Side::Bid, A, 10, price(102)).immediate_or_cancel()];
    rig.add(0, 2, 3, Side::Ask, 104, 70);
    assert_eq!(rig.conductor.strategy.done, [Ok(ClientOrderId(1))]);
    assert!(
        matches!(rig.port.sent[..], [OrderIntent::New { id: ClientOrderId(1), qty: Qty(10), cause, .. }] if cause.seq == SeqNo(3)),
        "{:?}",
        rig.port.sent
    );
    rig.heard();
    rig.report(1, ReportKind::Accepted).expect("it can be done");
    let fill = ReportKind::Filled {
        qty: Qty(10),
        price: price(102),
        cumulative: Qty(10),
    };
    rig.report(1, fill).expect("it can be done");
    assert_eq!(rig.heard(), ["order 1 New filled 0", "order 1 Filled filled 10"]);
    assert_eq!(rig.conductor.positions().get(A).qty, 10);
    assert!(rig.report(1, fill).is_err(), "said again, it counts once");
    assert_eq!(rig.conductor.positions().get(A).qty, 10);
}

#[test]
fn what_stops_an_order_is_named() {
    let mut rig = two_sided();
    let limit = |qty, at| Ticket::limit(Side::Bid, A, qty, price(at));
    let checked = |reason| Err(NotSent::Check(reason));
    assert_eq!(
        rig.act(|c| c.submit(limit(101, 100))),
        checked(RiskReject::OrderSize)
    );
    assert_eq!(
        rig.act(|c| c.submit(limit(1, 200))),
        checked(RiskReject::PriceBand)
    );
    assert_eq!(
        rig.act(|c| c.submit(Ticket::limit(Side::Bid, A_THERE, 1, price(100)))),
        checked(RiskReject::NoReference),
        "nothing is known of that book"
    );
    assert_eq!(
        rig.act(|c| c.submit(Ticket::limit(Side::Bid, InstrumentId(5), 1, price(100)))),
        Err(NotSent::UnknownInstrument)
    );
    assert_eq!(
        rig.act(|c| c.submit(Ticket::market(Side::Bid, A_THERE, 1))),
        Err(NotSent::NoOpposite)
    );
    let status = |status| MarketEvent {
        kind: EventKind::Status,
        instrument: A,
        status,
        ..MarketEvent::default()
    };
    rig.event(0, status(TradingStatus::Halted), false);
    assert_eq!(rig.act(|c| c.submit(limit(1, 100))), Err(NotSent::NotTrading));
    rig.event(0, status(TradingStatus::Trading), false);
    rig.port.refuses = Some(Rejected::NoSession);
    assert_eq!(rig.act(|c| c.submit(limit(1, 100))), Err(NotSent::NoSession));
    assert_eq!(rig.conductor.orders().open(), 0, "what has not left is not open");
    assert_eq!(rig.conductor.positions().get(A), crate::Position::default());
    rig.port.refuses = None;
    assert!(rig.act(|c| c.submit(limit(1, 100))).is_ok());
    rig.with(|c, m, p| c.stop(Nanos(7), m, p));
    assert_eq!(rig.act(|c| c.submit(limit(1, 100))), Err(NotSent::Stopping));
}

#[test]
fn a_stale_book_is_said_and_not_traded_on_unless_the_order_says_so() {
    let mut rig = two_sided();
    let whole = |kind| MarketEvent {
        kind,
        instrument: InstrumentId::WHOLE_FEED,
        ..MarketEvent::default()
    };
    rig.event(0, whole(EventKind::Gap), false);
    assert_eq!(rig.heard()[0], "stale 2");
    let order = Ticket::limit(Side::Bid, A, 1, price(100));
    assert_eq!(rig.act(|c| c.submit(order)), Err(NotSent::StaleBook));
    assert!(rig.act(|c| c.submit(order.on_stale_book())).is_ok());
    rig.event(0, whole(EventKind::Recovered), false);
    assert_eq!(rig.heard()[0], "live 2");
}

#[test]
fn a_replacement_counts_beside_its_order_until_the_venue_has_said() {
    let mut rig = two_sided();
    let id = rig.act(|c| c.buy(A, 40, price(99))).expect("it can be done");
    rig.report(id.0, ReportKind::Accepted).expect("it can be done");
    let new = rig
        .act(|c| c.replace(id, 60, price(100)))
        .expect("it can be done");
    assert_eq!(rig.conductor.positions().get(A).working[0], Volume(100));
    assert_eq!(rig.act(|c| c.replace(id, 70, price(100))), Err(NotSent::Pending));
    assert_eq!(rig.act(|c| c.cancel(new)), Err(NotSent::Pending));
    // Ten of it trade while the request is under way.
    let fill = ReportKind::Filled {
        qty: Qty(10),
        price: price(99),
        cumulative: Qty(10),
    };
    rig.report(id.0, fill).expect("it can be done");
    let replaced = ReportKind::Replaced {
        by: new,
        venue_id: None,
    };
    rig.report(id.0, replaced).expect("it can be done");
    let order = *rig.conductor.orders().get(new).expect("it can be done");
    assert_eq!(
        (order.state, order.filled, order.remaining()),
        (OrderState::PartiallyFilled, Qty(10), Qty(50))
    );
    assert_eq!(
        rig.conductor.orders().get(id).expect("it can be done").state,
        OrderState::Replaced
    );
    assert_eq!(rig.conductor.positions().get(A).working[0], Volume(50));
    assert_eq!(rig.conductor.orders().open(), 1);
    assert!(rig.report(id.0, replaced).is_err(), "said again");
    // One that is refused leaves the order as it was.
    let late = rig
        .act(|c| c.replace(new, 55, price(100)))
        .expect("it can be done");
    rig.report(new.0, ReportKind::ReplaceRejected { by: late })
        .expect("it can be done");
    assert_eq!(rig.conductor.positions().get(A).working[0], Volume(50));
    assert_eq!(rig.conductor.orders().open(), 1);
    rig.report(new.0, ReportKind::Cancelled).expect("it can be done");
    assert_eq!(rig.conductor.positions().get(A).working[0], Volume(0));
    assert_eq!(rig.conductor.orders().open(), 0);
}

#[test]
fn a_cancel_of_everything_finds_the_order_that_took_the_place_of_another() {
    let mut rig = two_sided();
    let id = rig.act(|c| c.buy(A, 40, price(99))).expect("it can be done");
    rig.report(id.0, ReportKind::Accepted).expect("it can be done");
    let new = rig
        .act(|c| c.replace(id, 60, price(100)))
        .expect("it can be done");
    assert_eq!(rig.act(|c| c.cancel_all()), 1, "the one that the venue knows");
    rig.port.sent.clear();
    let replaced = ReportKind::Replaced {
        by: new,
        venue_id: None,
    };
    rig.report(id.0, replaced).expect("it can be done");
    assert!(
        matches!(rig.port.sent[..], [OrderIntent::Cancel { target, .. }] if target == new),
        "{:?}",
        rig.port.sent
    );
}

#[test]
fn timers_come_in_order_and_notes_are_bounded() {
    let mut rig = two_sided();
    rig.act(|c| {
        c.set_timer(TimerId(3), Nanos(300));
        c.set_timer(TimerId(1), Nanos(100));
        c.set_timer(TimerId(2), Nanos(200));
        c.stop_timer(TimerId(2));
        c.set_timer(TimerId(200), Nanos(1));
    });
    assert_eq!(rig.conductor.next_timer(), Some(Nanos(100)));
    rig.with(|c, m, p| c.on_time(Nanos(1_000), m, p));
    assert_eq!(rig.heard(), ["timer 1", "timer 3"]);
    assert_eq!(rig.conductor.next_timer(), None);
    for _ in 0..2_000 {
        rig.with(|c, m, p| c.on_command(Nanos(1), "abc", m, p));
    }
    let mut count = 0;
    assert_eq!(
        rig.conductor.take_notes(|note| count += note.value),
        2_000 - 1_024
    );
    assert_eq!(count, 3 * 1_024);
}

#[test]
fn a_quote_that_has_moved_away_does_not_stop_the_other_side() {
    let mut rig = two_sided();
    let mut bid = rig.act(|c| c.buy(A, 10, price(101))).expect("it can be done");
    rig.report(bid.0, ReportKind::Accepted).expect("it can be done");
    let stopped = Err(NotSent::Check(RiskReject::SelfTrade));
    assert_eq!(
        rig.act(|c| c.sell(A, 10, price(101))),
        stopped,
        "it would trade with our own"
    );
    for at in [100, 99] {
        let new = rig
            .act(|c| c.replace(bid, 10, price(at)))
            .expect("it can be done");
        assert_eq!(
            rig.act(|c| c.sell(A, 10, price(at))),
            stopped,
            "while it is under way"
        );
        let replaced = ReportKind::Replaced {
            by: new,
            venue_id: None,
        };
        rig.report(bid.0, replaced).expect("it can be done");
        bid = new;
    }
    assert!(
        rig.act(|c| c.sell(A, 10, price(101))).is_ok(),
        "the bid is at 99 now"
    );
    assert_eq!(rig.act(|c| c.sell(A, 10, price(99))), stopped);
}
