//! Quotes as orders against a venue that handles one request at a time, late, and refuses, trades and cancels
//! as it likes.

use super::*;
use crate::quoter::tests::{Random, config, ladder, look, quoting};
use crate::{Fill, Quoter, QuoterConfig, QuotingState};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use tickwire_market::{BookState, Counter, Nanos, Qty};

/// A quote near the underlying's price.
const NEAR: u16 = 40;

/// An order as the venue has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Order {
    id: u64,
    quote: u16,
    side: Side,
    ticks: u16,
    leaves: u32,
    filled: u32,
}

enum Request {
    Side(SideRequest),
    CancelAll(u64),
}

enum Answer {
    /// With the price of a fill and its contracts.
    Report(SideReport, Option<(u16, u32)>),
    Cancelled(u64),
}

struct Venue {
    orders: Vec<Order>,
    requests: VecDeque<Request>,
    answers: VecDeque<Answer>,
    net: i64,
    paid: i64,
    is_full: bool,
    may_quote: bool,
}

/// The venue behind what makes orders of quotes.
struct Desk {
    quotes: QuoteOrders,
    venue: Venue,
}

impl SideSink for Venue {
    fn request(&mut self, request: &SideRequest) -> bool {
        assert!(self.may_quote, "an order after a pull");
        if self.is_full {
            return false;
        }
        self.requests.push_back(Request::Side(*request));
        true
    }
}

impl crate::QuoteSink for Desk {
    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool {
        self.quotes.quote(quote, &mut self.venue)
    }

    fn cancel_all(&mut self, id: u64, _: &Cause) -> bool {
        if self.venue.is_full {
            return false;
        }
        self.venue.requests.push_back(Request::CancelAll(id));
        true
    }
}

impl Desk {
    fn new(quotes: u16) -> Desk {
        Desk {
            quotes: QuoteOrders::new(quotes),
            venue: Venue {
                orders: Vec::new(),
                requests: VecDeque::new(),
                answers: VecDeque::new(),
                net: 0,
                paid: 0,
                is_full: false,
                may_quote: true,
            },
        }
    }

    /// The venue's next answer, to the quoter.
    fn answer_one(&mut self, now: Nanos, quoter: &mut Quoter) {
        match self.venue.answers.pop_front() {
            None => {}
            Some(Answer::Cancelled(id)) => {
                self.quotes.clear();
                quoter.on_cancelled(now, id, true, self);
            }
            Some(Answer::Report(report, fill)) => {
                let outcome = self.quotes.on_report(&report);
                if let Some((ticks, qty)) = fill {
                    let fill = Fill {
                        quote: report.quote,
                        side: report.side,
                        qty: Qty(qty),
                        ticks,
                        delta_milli: 500,
                    };
                    assert_ne!(outcome, SideOutcome::Unknown, "a fill of nothing: {report:?}");
                    quoter.on_order_fill(now, &fill, self);
                }
                match outcome {
                    SideOutcome::Answered(live) => quoter.on_orders(now, &live, self),
                    SideOutcome::Left(contracts) => {
                        let mut left = [u32::MAX; 2];
                        left[report.side as usize] = contracts;
                        quoter.on_left(report.quote, left);
                    }
                    SideOutcome::Nothing | SideOutcome::Unknown => {}
                }
            }
        }
        while let Some(live) = self.quotes.poll_answer() {
            quoter.on_orders(now, &live, self);
        }
    }

    fn drain(&mut self, now: Nanos, quoter: &mut Quoter, random: &mut Random) {
        while !self.venue.requests.is_empty() || !self.venue.answers.is_empty() {
            self.venue.handle_one(random, 0);
            self.answer_one(now, quoter);
        }
    }
}

impl Venue {
    fn report(&mut self, order: &Order, id: u64, kind: SideReportKind) {
        self.answers.push_back(Answer::Report(
            SideReport {
                quote: order.quote,
                side: order.side,
                id,
                kind,
                leaves: order.leaves,
                filled: order.filled,
            },
            None,
        ));
    }

    fn handle_one(&mut self, random: &mut Random, rejects: u64) {
        let request = match self.requests.pop_front() {
            None => return,
            Some(Request::CancelAll(id)) => {
                let is_first = random.one_in(2);
                if is_first {
                    self.answers.push_back(Answer::Cancelled(id));
                }
                for order in core::mem::take(&mut self.orders) {
                    self.report(&Order { leaves: 0, ..order }, order.id, SideReportKind::Cancelled);
                }
                if !is_first {
                    self.answers.push_back(Answer::Cancelled(id));
                }
                return;
            }
            Some(Request::Side(request)) => request,
        };
        let refuses = rejects > 0 && random.one_in(rejects);
        let asked = Order {
            id: request.id,
            quote: request.quote,
            side: request.side,
            ticks: request.ticks,
            leaves: request.qty,
            filled: 0,
        };
        let find = |orders: &Vec<Order>, id| orders.iter().position(|order| order.id == id);
        match request.kind {
            SideRequestKind::New if refuses => {
                self.report(
                    &Order { leaves: 0, ..asked },
                    request.id,
                    SideReportKind::Rejected,
                );
            }
            SideRequestKind::New => {
                let is_one = self
                    .orders
                    .iter()
                    .all(|order| (order.quote, order.side) != (request.quote, request.side));
                assert!(is_one, "two orders of one side");
                self.orders.push(asked);
                self.report(&asked, request.id, SideReportKind::Accepted);
            }
            SideRequestKind::Replace(id) | SideRequestKind::Cancel(id) => {
                let Some(at) = find(&self.orders, id).filter(|_| !refuses) else {
                    return self.report(&asked, request.id, SideReportKind::Refused);
                };
                let order = &mut self.orders[at];
                assert_eq!((order.quote, order.side), (request.quote, request.side));
                if matches!(request.kind, SideRequestKind::Cancel(_)) {
                    let gone = Order { leaves: 0, ..*order };
                    self.orders.remove(at);
                    return self.report(&gone, request.id, SideReportKind::Cancelled);
                }
                // What was filled on the way counts; nothing may be left.
                (order.id, order.ticks) = (request.id, request.ticks);
                order.leaves = request.qty.saturating_sub(order.filled);
                let replaced = *order;
                if replaced.leaves == 0 {
                    self.orders.remove(at);
                }
                self.report(&replaced, request.id, SideReportKind::Replaced);
            }
        }
    }

    fn trade(&mut self, random: &mut Random) {
        if self.orders.is_empty() {
            return;
        }
        let at = random.below(self.orders.len() as u64) as usize;
        let order = &mut self.orders[at];
        let qty = 1 + random.below(order.leaves.into()) as u32;
        order.leaves -= qty;
        order.filled += qty;
        let told = *order;
        if told.leaves == 0 {
            self.orders.remove(at);
        }
        let signed = if told.side == Side::Bid {
            i64::from(qty)
        } else {
            -i64::from(qty)
        };
        self.net += signed;
        self.paid += signed * i64::from(told.ticks);
        self.answers.push_back(Answer::Report(
            SideReport {
                quote: told.quote,
                side: told.side,
                id: told.id,
                kind: SideReportKind::Filled,
                leaves: told.leaves,
                filled: told.filled,
            },
            Some((told.ticks, qty)),
        ));
    }

    /// A halt, the end of the day.
    fn remove(&mut self, random: &mut Random) {
        if !self.orders.is_empty() {
            let at = random.below(self.orders.len() as u64) as usize;
            if self.orders[at].leaves > 1 && random.one_in(2) {
                // It would have traded with another order of ours.
                self.orders[at].leaves -= 1;
                let order = self.orders[at];
                return self.report(&order, order.id, SideReportKind::Reduced);
            }
            let order = self.orders.remove(at);
            self.report(&Order { leaves: 0, ..order }, order.id, SideReportKind::Cancelled);
        }
    }

    fn resting(&self, side: Side) -> u64 {
        let orders = self.orders.iter().filter(|order| order.side == side);
        orders.map(|order| u64::from(order.leaves)).sum()
    }

    /// What the quoter should believe.
    fn live(&self, quote: u16) -> ((u16, u16), [u32; 2]) {
        let of = |side| {
            self.orders
                .iter()
                .find(|order| (order.quote, order.side) == (quote, side))
        };
        let (bid, ask) = (of(Side::Bid), of(Side::Ask));
        (
            (
                bid.map_or(NO_BID, |order| order.ticks),
                ask.map_or(NO_ASK, |order| order.ticks),
            ),
            [bid, ask].map(|order| order.map_or(0, |order| order.leaves)),
        )
    }
}

fn config_of_orders() -> QuoterConfig {
    QuoterConfig {
        entries_max: 1,
        ..config()
    }
}

fn compare(quoter: &Quoter, venue: &Venue, what: &str) {
    for quote in 0..config().quotes {
        let live = (quoter.live(quote), quoter.open(quote));
        assert_eq!(live, venue.live(quote), "{what}: quote {quote}");
    }
    assert_eq!((quoter.net(), quoter.paid()), (venue.net, venue.paid), "{what}");
    assert_eq!(
        quoter.open_all(),
        Side::BOTH.map(|side| venue.resting(side)),
        "{what}"
    );
}

fn storm(seed: u64) {
    let mut random = Random(seed);
    let limits = [60, 300, 100_000][random.below(3) as usize];
    let config = QuoterConfig {
        long_max: limits,
        short_max: limits,
        quoted_max: 3 * limits / 2,
        messages_max: [60, 100_000][random.below(2) as usize],
        improvements_max: 50,
        in_flight_max: [4, 256][random.below(2) as usize],
        calm_ns: 5 * Nanos::MILLI,
        retry_ns: 30 * Nanos::MILLI,
        jump_half_ticks: 12,
        ..config_of_orders()
    };
    let quoting = quoting();
    let mut quoter = Quoter::new(config);
    let mut desk = Desk::new(config.quotes);
    let (mut now, mut half_tick, mut has_session) = (Nanos(1), 8_000, false);
    quoter.replace_ladder(now, ladder(0, half_tick, 60, &quoting), &mut desk);
    for step in 0..3_000_u64 {
        now = now.after(random.below(2 * Nanos::MILLI));
        match random.below(100) {
            0..30 => {
                half_tick = (half_tick + random.below(9) as i64 - 4).clamp(7_930, 8_070);
                let mut update = look(step + 1, half_tick, 2);
                if random.one_in(150) {
                    update.state = BookState::Stale;
                }
                quoter.on_underlying(now, &update, &mut desk);
            }
            30..55 => (0..8).for_each(|_| desk.venue.handle_one(&mut random, 60)),
            55..80 => (0..8).for_each(|_| desk.answer_one(now, &mut quoter)),
            80..86 => desk.venue.trade(&mut random),
            86..90 => quoter.handle_timeout(now, &mut desk),
            90..92 => desk.venue.remove(&mut random),
            92 => {
                let made = ladder(step, half_tick, 60, &quoting);
                quoter.replace_ladder(now, made, &mut desk);
            }
            93 if has_session => {
                // The venue cancels what rests; what it had said still comes, then the session is gone.
                desk.venue.requests.clear();
                desk.venue.orders.clear();
                while !desk.venue.answers.is_empty() {
                    desk.answer_one(now, &mut quoter);
                }
                desk.venue.requests.clear();
                desk.quotes.clear();
                quoter.on_disconnect();
                has_session = false;
            }
            93..96 if !has_session => {
                quoter.on_logon(now);
                has_session = true;
            }
            96 if random.one_in(4) => {
                quoter.pull(now, &mut desk);
                desk.venue.may_quote = false;
            }
            97 => {
                desk.venue.may_quote = true;
                quoter.resume(now);
            }
            98 => desk.venue.is_full = random.one_in(3),
            _ => {}
        }
        let what = alloc::format!("seed {seed}, step {step}");
        for side in Side::BOTH {
            let resting = desk.venue.resting(side);
            assert!(
                !has_session || resting <= quoter.open_all()[side as usize],
                "{what}: more rests than is known"
            );
            let net = if side == Side::Bid {
                desk.venue.net
            } else {
                -desk.venue.net
            };
            assert!(
                net + resting as i64 <= limits as i64,
                "{what}: a limit could be passed"
            );
        }
        if has_session && random.one_in(50) {
            desk.venue.is_full = false;
            quoter.handle_timeout(now, &mut desk);
            desk.drain(now, &mut quoter, &mut random);
            compare(&quoter, &desk.venue, &what);
            if matches!(quoter.state(), QuotingState::Halted(_)) {
                assert!(desk.venue.orders.is_empty(), "{what}");
            }
        }
    }
    assert!(
        quoter.counters().get(Counter::MassQuotesSent) > 100,
        "seed {seed}"
    );
}

#[test]
fn whatever_the_venue_does_we_know_which_orders_it_holds() {
    for seed in 0..60 {
        storm(seed);
    }
}

/// Everything quoted at half tick 8000.
fn running() -> (Quoter, Desk, Random) {
    let config = config_of_orders();
    let (mut quoter, mut desk, mut random) = (Quoter::new(config), Desk::new(config.quotes), Random(0));
    quoter.replace_ladder(Nanos(0), ladder(0, 8_000, 60, &quoting()), &mut desk);
    quoter.on_logon(Nanos(0));
    quoter.on_underlying(Nanos(1), &look(1, 8_000, 2), &mut desk);
    desk.drain(Nanos(1), &mut quoter, &mut random);
    compare(&quoter, &desk.venue, "the beginning");
    assert!(desk.venue.orders.len() > usize::from(config.quotes));
    (quoter, desk, random)
}

#[test]
fn the_side_that_gives_way_is_asked_for_first() {
    let (mut quoter, mut desk, mut random) = running();
    for (seq, half_tick) in [(2, 8_004), (3, 7_998)] {
        let before = quoter.live(NEAR).0;
        quoter.on_underlying(Nanos(seq), &look(seq, half_tick, 2), &mut desk);
        let sides = desk.venue.requests.iter().filter_map(|request| match request {
            Request::Side(r) if r.quote == NEAR => Some(r.side),
            _ => None,
        });
        let sides: Vec<Side> = sides.collect();
        desk.drain(Nanos(seq), &mut quoter, &mut random);
        let is_up = quoter.live(NEAR).0 > before;
        assert_eq!(is_up, half_tick == 8_004);
        let first = if is_up { Side::Ask } else { Side::Bid };
        assert_eq!(sides, [first, !first], "{before} to {:?}", quoter.live(NEAR));
    }
}

#[test]
fn a_replacement_that_comes_too_late_leaves_the_side_empty_and_the_next_tick_fills_it_again() {
    let (mut quoter, mut desk, mut random) = running();
    let (bid, _) = quoter.live(NEAR);
    quoter.on_underlying(Nanos(2), &look(2, 8_004, 2), &mut desk);
    // Meanwhile all of the bid trades.
    let at = desk
        .venue
        .orders
        .iter()
        .position(|o| (o.quote, o.side) == (NEAR, Side::Bid));
    let order = desk.venue.orders.remove(at.expect("it rests"));
    desk.venue.net += i64::from(order.leaves);
    desk.venue.paid += i64::from(order.leaves) * i64::from(order.ticks);
    desk.venue.answers.push_back(Answer::Report(
        SideReport {
            quote: NEAR,
            side: Side::Bid,
            id: order.id,
            kind: SideReportKind::Filled,
            leaves: 0,
            filled: order.leaves,
        },
        Some((bid, order.leaves)),
    ));
    desk.drain(Nanos(3), &mut quoter, &mut random);
    assert_eq!(quoter.state(), QuotingState::Quoting);
    assert_eq!(quoter.counters().get(Counter::QuoteEntriesRejected), 0);
    compare(&quoter, &desk.venue, "after the fill");
    let (bid, _) = quoter.live(NEAR);
    assert!(bid > 0, "it is quoted again, by the answer of its replacement");
}

#[test]
fn a_side_that_is_refused_takes_the_other_one_away_too() {
    let (mut quoter, mut desk, mut random) = running();
    quoter.on_underlying(Nanos(2), &look(2, 8_004, 2), &mut desk);
    let refused = desk.venue.requests.iter().find_map(|request| match request {
        Request::Side(r) if (r.quote, r.side) == (NEAR, Side::Bid) => Some(r.id),
        _ => None,
    });
    // Its replacement is refused, the offer's is made.
    desk.venue
        .requests
        .retain(|r| !matches!(r, Request::Side(r) if Some(r.id) == refused));
    let order = *desk
        .venue
        .orders
        .iter()
        .find(|o| (o.quote, o.side) == (NEAR, Side::Bid))
        .expect("it rests");
    desk.venue.report(
        &order,
        refused.expect("it was asked for"),
        SideReportKind::Refused,
    );
    desk.drain(Nanos(3), &mut quoter, &mut random);
    assert_eq!(quoter.counters().get(Counter::QuoteEntriesRejected), 1);
    compare(&quoter, &desk.venue, "withdrawn");
    assert_eq!(desk.venue.live(NEAR), ((NO_BID, NO_ASK), [0; 2]));
}

#[test]
fn what_cannot_be_is_refused_or_unknown() {
    let mut quotes = QuoteOrders::new(2);
    let mut desk = Desk::new(2);
    let entry = tickwire_market::MassQuoteEntry {
        quote: 1,
        bid_ticks: 5,
        ask_ticks: 9,
        bid_qty: Qty(1),
        ask_qty: Qty(0),
    };
    let entries = [
        entry,
        entry,
        tickwire_market::MassQuoteEntry { quote: 2, ..entry },
    ];
    let quote = |id, entries| MassQuote {
        id,
        cause: Cause::default(),
        reset: false,
        entries,
    };
    // Two entries, none, an option that there is none of, one whose change is under way.
    assert!(!quotes.quote(&quote(1, &entries[..2]), &mut desk.venue));
    assert!(!quotes.quote(&quote(1, &entries[..0]), &mut desk.venue));
    assert!(!quotes.quote(&quote(1, &entries[2..]), &mut desk.venue));
    assert!(quotes.quote(&quote(1, &entries[..1]), &mut desk.venue));
    assert!(!quotes.quote(&quote(2, &entries[..1]), &mut desk.venue));
    assert_eq!((quotes.find(1), quotes.find(2)), (Some((1, Side::Bid)), None));
    let report = SideReport {
        quote: 1,
        side: Side::Bid,
        id: 1,
        kind: SideReportKind::Accepted,
        leaves: 1,
        filled: 0,
    };
    let wrong = [
        SideReport { quote: 2, ..report },
        SideReport { id: 2, ..report },
        SideReport {
            side: Side::Ask,
            ..report
        },
        SideReport {
            kind: SideReportKind::Replaced,
            ..report
        },
    ];
    for report in wrong {
        assert_eq!(quotes.on_report(&report), SideOutcome::Unknown, "{report:?}");
    }
    let live = QuoteLive {
        id: 1,
        quote: 1,
        ticks: (5, NO_ASK),
        open: [1, 0],
        is_refused: false,
    };
    assert_eq!(quotes.on_report(&report), SideOutcome::Answered(live));
    // The same again needs no request, and is answered all the same.
    assert!(quotes.quote(&quote(3, &entries[..1]), &mut desk.venue));
    assert_eq!(quotes.poll_answer(), Some(QuoteLive { id: 3, ..live }));
    assert_eq!(quotes.poll_answer(), None);
    // Without room nothing is under way.
    desk.venue.is_full = true;
    let other = [tickwire_market::MassQuoteEntry {
        bid_ticks: 6,
        ..entry
    }];
    assert!(!quotes.quote(&quote(4, &other), &mut desk.venue));
    desk.venue.is_full = false;
    assert!(quotes.quote(&quote(4, &other), &mut desk.venue));
}
