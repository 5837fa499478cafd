//! The eye against the same rule in the plainest form, which works everything out anew from the whole history
//! at every step.

use super::*;
use crate::MarketGuard;
use crate::quoter::tests::{QUOTES, Random, UNDERLYING, half_tick_of, look, theos};
use crate::{MarketNeed, PriceGrid, QuoteTerms, Quoting};
use alloc::vec::Vec;
use tickwire_market::{SeqNo, Volume};

const TICK: i64 = Price::ONE_RAW / 20;

fn terms(edge: f64) -> Quoting {
    let grid = PriceGrid::new(0.05, 5, 200).expect("a grid");
    let mut terms = Quoting::new(QUOTES, grid);
    for option in 0..QUOTES {
        let edge = QuoteTerms {
            edge,
            edge_relative: 0.001,
            half_width_max: 1e6,
            ..QuoteTerms::default()
        };
        terms.set(option, &edge).expect("good terms");
    }
    terms
}

fn ladder(version: u64, around: i64, rows: i64, terms: &Quoting) -> Box<Ladder> {
    let mut ladder = Box::new(Ladder::new(QUOTES, 2 * rows as usize + 1));
    ladder.begin(version, around - rows);
    for half_tick in around - rows..=around + rows {
        ladder
            .push_row(&theos(half_tick, version), terms)
            .expect("there is room");
    }
    ladder
}

fn instruments() -> Vec<InstrumentId> {
    (0..QUOTES as u32).map(|n| InstrumentId(10 + n)).collect()
}

fn market(seq: u64, option: usize, prices: [i64; 2], qty: [u64; 2]) -> BookUpdate {
    BookUpdate {
        seq: SeqNo(seq),
        recv_ts: Nanos(seq * 7),
        instrument: InstrumentId(10 + option as u32),
        state: BookState::Live,
        price: prices.map(Price::from_raw),
        qty: qty.map(Volume),
        ..BookUpdate::default()
    }
}

/// What left, in order.
#[derive(Default)]
struct Sent {
    orders: Vec<(Option<u16>, OrderIntent)>,
    is_full: bool,
}

impl OrderSink for Sent {
    fn order(&mut self, option: Option<u16>, order: &OrderIntent) -> bool {
        self.orders.push((option, *order));
        !self.is_full
    }
}

struct Own(Vec<Option<(u16, u16)>>);

impl OwnQuotes for Own {
    fn quoted(&self, option: u16) -> Option<(u16, u16)> {
        self.0[usize::from(option)]
    }
}

/// An order as the plain rule remembers it, for ever.
#[derive(Clone, Copy, Debug)]
struct Known {
    option: Option<usize>,
    side: Side,
    ticks: i64,
    qty: u32,
    filled: u32,
    /// Of the fills, thousandths of the underlying that hedge them.
    delta: i64,
    sent: Nanos,
    ended: Option<Nanos>,
}

impl Known {
    fn signed(&self, qty: u32) -> i64 {
        if self.side == Side::Bid {
            i64::from(qty)
        } else {
            -i64::from(qty)
        }
    }

    /// What traded or may still.
    fn live(&self) -> u32 {
        if self.ended.is_some() {
            self.filled
        } else {
            self.qty
        }
    }
}

/// What the rule wants to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Wanted {
    option: Option<u16>,
    side: Side,
    price: Price,
    qty: u32,
    cause: Cause,
}

/// The rule, plainly.
struct Plain {
    config: EyeConfig,
    terms: Quoting,
    version: u64,
    window: core::ops::RangeInclusive<i64>,
    ladder_at: Nanos,
    books: Vec<Option<BookUpdate>>,
    watched: Vec<bool>,
    deltas: Vec<i64>,
    history: Vec<Known>,
    other: i64,
    underlying: Option<(i64, BookUpdate)>,
    calm_at: Nanos,
    until: Option<Nanos>,
    is_killed: bool,
    has_session: bool,
    is_full: bool,
    wanted: Vec<Wanted>,
}

impl Plain {
    fn net(&self) -> i64 {
        self.other + self.options().map(|k| k.signed(k.filled)).sum::<i64>()
    }

    fn options(&self) -> impl Iterator<Item = &Known> {
        self.history.iter().filter(|known| known.option.is_some())
    }

    fn open(&self, side: Side) -> u64 {
        let open = self.options().filter(|k| k.side == side && k.ended.is_none());
        open.map(|k| u64::from(k.qty - k.filled)).sum()
    }

    fn premium(&self, side: Side) -> u64 {
        let all = self.options().filter(|k| k.side == side);
        all.map(|k| u64::from(k.live()) * k.ticks as u64).sum()
    }

    fn carry(&self) -> i64 {
        let fills: i64 = self.history.iter().map(|k| k.delta).sum();
        let hedges = self.history.iter().filter(|k| k.option.is_none());
        let done: i64 = hedges.map(|k| 1_000 * k.signed(k.live())).sum();
        -fills - done
    }

    fn is_on(&self, now: Nanos) -> bool {
        !self.is_killed && self.until.is_some_and(|until| now < until)
    }

    fn is_late(&self, now: Nanos) -> bool {
        let mut open = self.history.iter().filter(|k| k.ended.is_none());
        open.any(|k| now.since(k.sent) >= self.config.answer_max_ns)
    }

    fn may_send(&self, now: Nanos) -> bool {
        self.is_on(now) && self.has_session && now >= self.calm_at
    }

    fn recent(&self, now: Nanos, is_option: bool) -> usize {
        let kind = self.history.iter().filter(|k| k.option.is_some() == is_option);
        kind.filter(|k| now.since(k.sent) < self.config.orders_window_ns)
            .count()
    }

    fn places_taken(&self) -> usize {
        self.history.iter().filter(|k| k.ended.is_none()).count()
    }

    /// Contracts within the window.
    fn taken(&self, now: Nanos) -> u64 {
        let recent = self
            .options()
            .filter(|k| now.since(k.sent) < self.config.contracts_window_ns);
        recent.map(|k| u64::from(k.live())).sum()
    }

    /// Looks at one option.
    fn consider(&mut self, now: Nanos, option: usize, cause: Cause, own: &Own) {
        let c = self.config;
        let (Some((half_tick, _)), Some(book)) = (self.underlying, self.books[option]) else {
            return;
        };
        let age = now.since(self.ladder_at);
        if !self.may_send(now) || !self.window.contains(&half_tick) || age > c.ladder_age_max_ns {
            return;
        }
        let mine = |k: &&Known| k.option == Some(option);
        if !self.watched[option] || self.options().filter(mine).any(|k| k.ended.is_none()) {
            return;
        }
        if book.state != BookState::Live {
            return;
        }
        let (bid, ask) = (book.best(Side::Bid), book.best(Side::Ask));
        if let (Some((bid, _)), Some((ask, _))) = (bid, ask)
            && bid >= ask
        {
            return;
        }
        let theo = theos(half_tick, self.version)[option];
        let (buys, sells) = self.terms.wanted(option, theo);
        let in_range = |price: &Price| price.raw() > 0 && price.raw() <= 65_534 * TICK;
        let ask_ticks = ask
            .map(|(p, _)| p)
            .filter(in_range)
            .map(|p| (p.raw() + TICK - 1) / TICK);
        let bid_ticks = bid.map(|(p, _)| p).filter(in_range).map(|p| p.raw() / TICK);
        let (side, limit, beyond, shown) = match (ask_ticks, bid_ticks) {
            (Some(a), _) if buys != NO_BID && a <= i64::from(buys) => (
                Side::Bid,
                i64::from(buys),
                i64::from(buys) - a,
                ask.expect("an ask").1,
            ),
            (_, Some(b)) if sells != NO_ASK && b >= i64::from(sells) => (
                Side::Ask,
                i64::from(sells),
                b - i64::from(sells),
                bid.expect("a bid").1,
            ),
            _ => return,
        };
        let last = self.options().filter(mine).filter_map(|k| k.ended).max();
        if last.is_some_and(|last| now < last.after(c.cool_down_ns)) || beyond > c.believed_ticks.into() {
            return;
        }
        let Some((own_bid, own_ask)) = own.0[option] else {
            return;
        };
        let touches = match side {
            Side::Bid => i64::from(own_ask) <= limit,
            Side::Ask => own_bid != NO_BID && i64::from(own_bid) >= limit,
        };
        if touches {
            return;
        }
        let left = match side {
            Side::Bid => c.long_max as i64 - self.net() - self.open(side) as i64,
            Side::Ask => c.short_max as i64 + self.net() - self.open(side) as i64,
        };
        let taken = self.taken(now);
        let premium = (c.premium_max[side as usize] - self.premium(side)) / limit as u64;
        let qty = shown
            .0
            .min(c.size_max.0.into())
            .min(left.max(0) as u64)
            .min(premium)
            .min(u64::from(c.contracts_max) - taken) as u32;
        if qty == 0 || self.places_taken() >= c.open_max as usize {
            return;
        }
        if self.recent(now, true) >= c.orders_max as usize {
            return;
        }
        self.wanted.push(Wanted {
            option: Some(option as u16),
            side,
            price: Price::from_raw(limit * TICK),
            qty,
            cause,
        });
        let ended = self.is_full.then_some(now);
        self.history.push(Known {
            option: Some(option),
            side,
            ticks: limit,
            qty,
            filled: 0,
            delta: 0,
            sent: now,
            ended,
        });
    }

    fn consider_all(&mut self, now: Nanos, own: &Own) {
        let Some((_, update)) = self.underlying else {
            return;
        };
        for option in 0..QUOTES {
            self.consider(now, option, cause_of(&update), own);
        }
    }

    fn hedge(&mut self, now: Nanos, cause: Cause) {
        let (Some(hedge), Some((_, look))) = (self.config.hedge, self.underlying) else {
            return;
        };
        let carry = self.carry();
        let whole = (carry.abs() + 500) / 1_000;
        let is_full = self.places_taken() >= self.config.open_max as usize;
        let has_rate = self.recent(now, false) < hedge.orders_max as usize;
        if whole == 0 || !self.may_send(now) || is_full || !has_rate {
            return;
        }
        let through = i64::from(hedge.through_ticks) * self.config.underlying_tick.raw();
        let (side, raw) = if carry > 0 {
            (Side::Bid, look.price[1].raw() + through)
        } else {
            (Side::Ask, look.price[0].raw() - through)
        };
        let qty = whole.min(hedge.size_max.0.into()) as u32;
        self.wanted.push(Wanted {
            option: None,
            side,
            price: Price::from_raw(raw),
            qty,
            cause,
        });
        self.history.push(Known {
            option: None,
            side,
            ticks: 0,
            qty,
            filled: 0,
            delta: 0,
            sent: now,
            ended: self.is_full.then_some(now),
        });
    }

    fn on_underlying(&mut self, now: Nanos, update: &BookUpdate, own: &Own) {
        let tick = self.config.underlying_tick.raw();
        let is_good = update.state == BookState::Live
            && update.best(Side::Bid).is_some()
            && update.best(Side::Ask).is_some()
            && update.price[0] < update.price[1]
            && (update.price[1].raw() - update.price[0].raw()) / tick <= self.config.spread_max_ticks.into();
        if !is_good {
            self.underlying = None;
            self.calm_at = now.after(self.config.calm_ns);
            return;
        }
        let half_tick = half_tick_of(update);
        let before = self.underlying.replace((half_tick, *update));
        if before.is_some_and(|(b, _)| b.abs_diff(half_tick) > self.config.jump_half_ticks.into()) {
            self.calm_at = now.after(self.config.calm_ns);
            return;
        }
        self.consider_all(now, own);
        self.hedge(now, cause_of(update));
    }
}

/// Compares what left with what the rule wanted, and says which order of the rule each of the eye's is.
fn compare(
    seed: u64,
    step: u64,
    sent: &mut Sent,
    plain: &mut Plain,
    known: &mut Vec<(ClientOrderId, usize)>,
) {
    let first = plain.history.len() - plain.wanted.len();
    let place = format_place(seed, step);
    assert_eq!(
        sent.orders.len(),
        plain.wanted.len(),
        "{place}: {:?}, {:?}",
        sent.orders,
        plain.wanted
    );
    for (n, ((option, order), wanted)) in sent.orders.iter().zip(&plain.wanted).enumerate() {
        let OrderIntent::New {
            id,
            instrument,
            side,
            price,
            qty,
            time_in_force,
            cause,
            ..
        } = *order
        else {
            panic!("{place}: {order:?}")
        };
        let got = Wanted {
            option: *option,
            side,
            price,
            qty: qty.0,
            cause,
        };
        assert_eq!(got, *wanted, "{place}");
        assert_eq!(time_in_force, TimeInForce::ImmediateOrCancel);
        let listed = option.map_or(UNDERLYING, |at| InstrumentId(10 + u32::from(at)));
        assert_eq!(instrument, listed, "{place}");
        if plain.history[first + n].ended.is_none() {
            known.push((id, first + n));
        }
    }
    sent.orders.clear();
    plain.wanted.clear();
}

fn format_place(seed: u64, step: u64) -> alloc::string::String {
    alloc::format!("seed {seed}, step {step}")
}

/// An answer to an order under way, as a venue could give it; what it does to the order.
fn answer(random: &mut Random, id: ClientOrderId, order: &Known, is_accepted: bool) -> OrderReport {
    let left = order.qty - order.filled;
    let is_new = !is_accepted && order.filled == 0;
    let kind = match random.below(10) {
        0..2 if is_new => ReportKind::Accepted,
        2 if is_new && random.one_in(4) => ReportKind::Rejected,
        3..5 => ReportKind::Cancelled,
        _ => {
            let qty = 1 + random.below(left.into()) as u32;
            ReportKind::Filled {
                qty: Qty(qty),
                price: Price::from_raw(order.ticks * TICK),
                cumulative: Qty(order.filled + qty),
            }
        }
    };
    OrderReport {
        id,
        venue_id: None,
        kind,
    }
}

fn storm(seed: u64, steps: u64) -> u64 {
    let mut random = Random(seed);
    let config = EyeConfig {
        underlying: UNDERLYING,
        size_max: Qty(8),
        believed_ticks: 12,
        contracts_max: [6, 30, 1_000][random.below(3) as usize],
        contracts_window_ns: 40 * Nanos::MILLI,
        orders_max: [3, 50][random.below(2) as usize],
        orders_window_ns: 30 * Nanos::MILLI,
        open_max: [2, 16][random.below(2) as usize],
        cool_down_ns: 4 * Nanos::MILLI,
        long_max: [10, 200][random.below(2) as usize],
        short_max: [10, 200][random.below(2) as usize],
        premium_max: [[3_000, 40_000_000][random.below(2) as usize], 40_000_000],
        jump_half_ticks: 20,
        calm_ns: 3 * Nanos::MILLI,
        ladder_age_max_ns: 300 * Nanos::MILLI,
        answer_max_ns: 60 * Nanos::MILLI,
        armed_ns: 50 * Nanos::MILLI,
        hedge: [
            None,
            Some(HedgeConfig {
                through_ticks: 2,
                size_max: Qty(3),
                orders_max: 4,
            }),
        ][random.below(2) as usize],
        ..EyeConfig::default()
    };
    let mut eye = Eye::new(config, &instruments());
    let mut plain = Plain {
        config,
        terms: terms(0.2),
        version: 0,
        window: 0..=0,
        ladder_at: Nanos::ZERO,
        books: vec![None; QUOTES],
        watched: vec![true; QUOTES],
        deltas: vec![0; QUOTES],
        history: Vec::new(),
        other: 0,
        underlying: None,
        calm_at: Nanos::ZERO,
        until: None,
        is_killed: false,
        has_session: false,
        is_full: false,
        wanted: Vec::new(),
    };
    let mut own = Own(vec![Some((NO_BID, NO_ASK)); QUOTES]);
    let mut sent = Sent::default();
    // Orders under way at the venue: our number, its place in the history, whether it was accepted.
    let mut open: Vec<(ClientOrderId, usize, bool)> = Vec::new();
    let mut last_fill: Option<OrderReport> = None;
    let (mut now, mut half_tick, mut orders) = (Nanos(1), 8_000_i64, 0);
    for option in 0..QUOTES {
        let delta = random.below(1_200) as i32 - 600;
        eye.set_delta(option as u16, delta);
        plain.deltas[option] = delta.into();
    }
    for step in 0..steps {
        now = now.after(random.below(Nanos::MILLI));
        let mut known = Vec::new();
        match random.below(100) {
            0..45 => {
                let option = random.below(QUOTES as u64) as usize;
                let fair = (theos(half_tick, plain.version)[option] * 20.0) as i64;
                let bid = (fair - 8 + random.below(12) as i64) * TICK;
                let ask = bid + (1 + random.below(9) as i64) * TICK;
                let qty = [random.below(12), random.below(12)];
                let mut update = market(step, option, [bid, ask], qty);
                match random.below(60) {
                    0 => update.state = BookState::Stale,
                    1 => update.price.swap(0, 1),
                    2 => update.price[1] = Price::from_raw(ask - 1),
                    3 => update.price[0] = Price::from_raw(bid + 1),
                    4 => update.price = [Price::from_raw(-TICK), Price::from_raw(0)],
                    5 => update.price[0] = Price::from_raw(bid + 40 * TICK),
                    6 => update.price[1] = Price::MAX,
                    7 => update.qty[1] = Volume(u64::MAX),
                    _ => {}
                }
                eye.on_option(now, option as u16, &update, &own, &mut sent);
                plain.books[option] = Some(update);
                plain.consider(now, option, cause_of(&update), &own);
            }
            45..65 => {
                half_tick = (half_tick + random.below(9) as i64 - 4).clamp(7_930, 8_070);
                let mut update = look(step, half_tick, 2);
                half_tick = half_tick_of(&update);
                match random.below(100) {
                    0 => update.state = BookState::Stale,
                    1 => update.price.swap(0, 1),
                    2 => update.qty[0] = Volume(0),
                    3 => update = look(step, half_tick, 12),
                    4 => update = look(step, half_tick + 40, 2),
                    _ => {}
                }
                eye.on_underlying(now, &update, &own, &mut sent);
                plain.on_underlying(now, &update, &own);
            }
            65..82 if !open.is_empty() => {
                let at = random.below(open.len() as u64) as usize;
                let (id, place, is_accepted) = open[at];
                let report = answer(&mut random, id, &plain.history[place], is_accepted);
                let change = eye.on_report(now, &report, &mut sent).expect("it fits");
                let order = &mut plain.history[place];
                match report.kind {
                    ReportKind::Filled { qty, .. } => {
                        order.filled += qty.0;
                        let delta = order.option.map_or(0, |option| plain.deltas[option]);
                        if config.hedge.is_some() {
                            order.delta += order.signed(qty.0) * delta;
                        }
                        if order.filled == order.qty {
                            order.ended = Some(now);
                        }
                        last_fill = Some(report);
                        plain.hedge(now, change.order.cause);
                    }
                    ReportKind::Accepted => open[at].2 = true,
                    ReportKind::Rejected => {
                        order.ended = Some(now);
                        if let Some(option) = order.option {
                            plain.watched[option] = false;
                        }
                    }
                    _ => order.ended = Some(now),
                }
                if plain.history[place].ended.is_some() {
                    open.swap_remove(at);
                }
            }
            82..84 => {
                let version = plain.version + random.below(2);
                let made = ladder(version, half_tick, 40, &plain.terms);
                (plain.version, plain.ladder_at) = (version, now);
                plain.window = half_tick - 40..=half_tick + 40;
                eye.replace_ladder(now, made, &own, &mut sent);
                plain.consider_all(now, &own);
            }
            84..87 => {
                let is_on = plain.is_on(now) && !plain.is_late(now);
                assert_eq!(eye.on_heartbeat(now), is_on);
                plain.until = is_on.then(|| now.after(config.armed_ns));
            }
            87..89 => {
                assert_eq!(eye.arm(now), !plain.is_killed);
                plain.until = Some(now.after(config.armed_ns));
            }
            89 => {
                eye.handle_timeout(now);
                plain.until = plain.until.filter(|_| !plain.is_late(now));
            }
            90 => match random.below(4) {
                0 => {
                    eye.kill();
                    (plain.is_killed, plain.until) = (true, None);
                }
                1 => {
                    eye.disarm();
                    plain.until = None;
                }
                _ => {
                    eye.revive();
                    plain.until = plain.until.filter(|_| !plain.is_killed);
                    plain.is_killed = false;
                }
            },
            91 => {
                let is_up = !random.one_in(4);
                if is_up {
                    eye.on_logon()
                } else {
                    eye.on_disconnect()
                }
                plain.has_session = is_up;
            }
            92 => {
                let option = random.below(QUOTES as u64) as usize;
                let is_watched = !random.one_in(3);
                eye.set_watched(option as u16, is_watched);
                plain.watched[option] = is_watched;
            }
            93..95 => {
                let option = random.below(QUOTES as u64) as usize;
                let fair = (theos(half_tick, plain.version)[option] * 20.0) as u16;
                own.0[option] = match random.below(4) {
                    0 => None,
                    1 => Some((NO_BID, NO_ASK)),
                    _ => Some((
                        fair.saturating_sub(random.below(8) as u16),
                        fair + random.below(8) as u16,
                    )),
                };
            }
            95 => {
                let by = random.below(7) as i64 - 3;
                eye.add_net(by);
                plain.other += by;
            }
            96 => {
                sent.is_full = random.one_in(4);
                plain.is_full = sent.is_full;
            }
            97 => {
                // Said again, and of an order that never was.
                if let Some(report) = last_fill {
                    let error = eye.on_report(now, &report, &mut sent).expect_err("said again");
                    if error != ReportError::Duplicate {
                        // Its place has been used again: nobody knows it any more.
                        plain.until = None;
                    }
                }
                if random.one_in(5) {
                    let stray = OrderReport {
                        id: ClientOrderId(u64::MAX),
                        venue_id: None,
                        kind: ReportKind::Filled {
                            qty: Qty(1),
                            price: Price::ZERO,
                            cumulative: Qty(1),
                        },
                    };
                    assert!(eye.on_report(now, &stray, &mut sent).is_err());
                    plain.until = None;
                }
            }
            98 if random.one_in(5) => {
                eye.forget_open(now);
                open.drain(..)
                    .for_each(|(_, place, _)| plain.history[place].ended = Some(now));
                last_fill = None;
            }
            99 if random.one_in(5) => {
                eye.forget_books();
                plain.books.fill(None);
            }
            _ => {}
        }
        orders += sent.orders.len() as u64;
        let sides: Vec<Option<Side>> = plain.wanted.iter().map(|w| w.option.map(|_| w.side)).collect();
        compare(seed, step, &mut sent, &mut plain, &mut known);
        open.extend(known.into_iter().map(|(id, place)| (id, place, false)));
        let place = format_place(seed, step);
        let is_on = matches!(eye.state(), EyeState::Armed(until) if now < until);
        assert_eq!(is_on, plain.is_on(now), "{place}");
        assert!(
            sides.is_empty() || is_on && plain.has_session,
            "{place}: sent while off"
        );
        assert_eq!(eye.net(), plain.net(), "{place}");
        for side in Side::BOTH {
            assert_eq!(eye.open()[side as usize].contracts, plain.open(side), "{place}");
            assert_eq!(eye.premium()[side as usize], plain.premium(side), "{place}");
            assert!(
                plain.premium(side) <= config.premium_max[side as usize],
                "{place}"
            );
        }
        let unhedged = config.hedge.map_or(0, |_| plain.carry());
        assert_eq!(eye.unhedged_milli(), unhedged, "{place}");
        // Contracts from elsewhere can pass a limit on the position; no order may.
        let (net, open) = (plain.net(), Side::BOTH.map(|side| plain.open(side) as i64));
        if sides.contains(&Some(Side::Bid)) {
            assert!(net + open[0] <= config.long_max as i64, "{place}");
        }
        if sides.contains(&Some(Side::Ask)) {
            assert!(open[1] - net <= config.short_max as i64, "{place}");
        }
        assert!(plain.recent(now, true) <= config.orders_max as usize, "{place}");
        assert!(plain.taken(now) <= config.contracts_max.into(), "{place}");
    }
    orders
}

#[test]
fn a_hundred_thousand_events_lead_to_the_orders_of_the_plain_rule_and_to_no_others() {
    let orders: u64 = (0..50).map(|seed| storm(seed, 2_000)).sum();
    assert!(orders > 2_000, "hardly anything was traded: {orders}");
}

/// Armed, logged on, with a ladder around 8000 half ticks.
fn ready(config: EyeConfig) -> (Eye, Sent) {
    let (mut eye, mut sent) = (Eye::new(config, &instruments()), Sent::default());
    eye.on_logon();
    eye.arm(Nanos(0));
    let made = ladder(0, 8_000, 40, &terms(0.2));
    assert!(eye.replace_ladder(Nanos(0), made, &NoQuotes, &mut sent).is_none());
    eye.on_underlying(Nanos(1), &look(1, 8_000, 2), &NoQuotes, &mut sent);
    (eye, sent)
}

fn config() -> EyeConfig {
    EyeConfig {
        underlying: UNDERLYING,
        hedge: Some(HedgeConfig {
            through_ticks: 2,
            size_max: Qty(10),
            orders_max: 10,
        }),
        ..EyeConfig::default()
    }
}

/// The triggers of an option at 8000 half ticks, in ticks.
fn triggers(option: usize) -> (i64, i64) {
    let (buys, sells) = terms(0.2).wanted(option, theos(8_000, 0)[option]);
    (buys.into(), sells.into())
}

fn only(sent: &mut Sent) -> (Option<u16>, ClientOrderId, Side, Price, Qty, Cause) {
    assert_eq!(sent.orders.len(), 1, "{:?}", sent.orders);
    match sent.orders.remove(0) {
        (
            option,
            OrderIntent::New {
                id,
                side,
                price,
                qty,
                cause,
                ..
            },
        ) => (option, id, side, price, qty, cause),
        other => panic!("{other:?}"),
    }
}

fn filled(id: ClientOrderId, qty: u32) -> OrderReport {
    OrderReport {
        id,
        venue_id: None,
        kind: ReportKind::Filled {
            qty: Qty(qty),
            price: Price::ZERO,
            cumulative: Qty(qty),
        },
    }
}

#[test]
fn it_buys_what_is_shown_with_a_limit_at_the_trigger_and_hedges_in_the_same_event() {
    let (mut eye, mut sent) = ready(config());
    assert!(sent.orders.is_empty());
    eye.set_delta(40, 260);
    let (buys, _) = triggers(40);
    let update = market(9, 40, [(buys - 20) * TICK, (buys - 3) * TICK], [5, 7]);
    eye.on_option(Nanos(5), 40, &update, &NoQuotes, &mut sent);
    let (option, id, side, price, qty, cause) = only(&mut sent);
    assert_eq!(
        (option, side, price, qty),
        (Some(40), Side::Bid, Price::from_raw(buys * TICK), Qty(7))
    );
    assert_eq!((cause.seq, cause.recv_ts), (SeqNo(9), Nanos(63)));
    // The same market again: one order at a time.
    eye.on_option(Nanos(6), 40, &update, &NoQuotes, &mut sent);
    assert!(sent.orders.is_empty());
    // 7 of a delta of 0.26 are 1.82: two sold, 0.18 too many.
    eye.on_report(Nanos(7), &filled(id, 7), &mut sent)
        .expect("it fits");
    let (option, hedge, side, price, qty, cause) = only(&mut sent);
    let bid = look(1, 8_000, 2).price[0].raw();
    let quarter = config().underlying_tick.raw();
    assert_eq!(
        (option, side, price.raw(), qty),
        (None, Side::Ask, bid - 2 * quarter, Qty(2))
    );
    assert_eq!(
        (cause.seq, eye.unhedged_milli(), eye.position(40)),
        (SeqNo(9), 180, 7)
    );
    // Half of the hedge is not done: the next look at the underlying sells it.
    eye.on_report(Nanos(8), &filled(hedge, 1), &mut sent)
        .expect("it fits");
    let cancelled = OrderReport {
        id: hedge,
        venue_id: None,
        kind: ReportKind::Cancelled,
    };
    eye.on_report(Nanos(9), &cancelled, &mut sent).expect("it fits");
    assert!(sent.orders.is_empty());
    assert_eq!(eye.unhedged_milli(), -820);
    eye.on_underlying(Nanos(10), &look(2, 8_000, 2), &NoQuotes, &mut sent);
    assert_eq!(only(&mut sent).4, Qty(1));
    assert_eq!(eye.counters().get(Counter::OrdersSent), 3);
}

#[test]
fn a_trade_taken_back_is_held_no_more_and_turns_it_off() {
    let (mut eye, mut sent) = ready(config());
    eye.set_delta(40, 260);
    let (buys, _) = triggers(40);
    let update = market(9, 40, [(buys - 20) * TICK, (buys - 3) * TICK], [5, 7]);
    eye.on_option(Nanos(5), 40, &update, &NoQuotes, &mut sent);
    let (_, id, ..) = only(&mut sent);
    eye.on_report(Nanos(7), &filled(id, 7), &mut sent)
        .expect("it fits");
    let (_, hedge, ..) = only(&mut sent);
    assert_eq!((eye.position(40), eye.net(), eye.unhedged_milli()), (7, 7, 180));
    assert!(eye.premium()[0] > 0);
    let broken = |id, qty| OrderReport {
        id,
        venue_id: None,
        kind: ReportKind::Broken {
            qty: Qty(qty),
            price: Price::ZERO,
            cumulative: Qty::ZERO,
        },
    };
    let taken_back = broken(id, 7);
    eye.on_report(Nanos(8), &taken_back, &mut sent).expect("it fits");
    assert_eq!(eye.state(), EyeState::Off(EyeOff::Killed));
    // What was sold against it is to be bought again, by whoever turns it on.
    assert_eq!((eye.position(40), eye.net(), eye.unhedged_milli()), (0, 0, 2_000));
    assert_eq!(
        (eye.premium(), eye.counters().get(Counter::TradesBroken)),
        ([0; 2], 1)
    );
    assert_eq!(
        eye.on_report(Nanos(9), &taken_back, &mut sent).err(),
        Some(ReportError::Duplicate)
    );
    assert_eq!(
        eye.on_report(Nanos(9), &filled(hedge, 2), &mut sent)
            .map(|c| c.filled),
        Ok(Qty(2))
    );
    eye.on_report(Nanos(10), &broken(hedge, 2), &mut sent)
        .expect("it fits");
    assert_eq!(eye.unhedged_milli(), 0);
    assert!(sent.orders.is_empty());
}

#[test]
fn it_trades_neither_with_our_own_quotes_nor_with_what_is_too_good() {
    let (mut eye, mut sent) = ready(config());
    let (buys, sells) = triggers(40);
    let offer = market(9, 40, [(buys - 20) * TICK, buys * TICK], [5, 7]);
    let mut own = Own(vec![Some((NO_BID, NO_ASK)); QUOTES]);
    for ours in [None, Some((NO_BID, buys as u16)), Some((NO_BID, buys as u16 - 1))] {
        own.0[40] = ours;
        eye.on_option(Nanos(5), 40, &offer, &own, &mut sent);
        assert!(sent.orders.is_empty(), "{ours:?}");
    }
    assert_eq!(eye.counters().get(Counter::EyeOwn), 3);
    let far = market(10, 40, [(sells + 41) * TICK, (sells + 50) * TICK], [5, 7]);
    eye.on_option(Nanos(6), 40, &far, &NoQuotes, &mut sent);
    assert_eq!(
        (sent.orders.len(), eye.counters().get(Counter::EyeUnlikely)),
        (0, 1)
    );
    // A quote of ours beyond the limit is in nobody's way.
    own.0[40] = Some((NO_BID, buys as u16 + 1));
    eye.on_option(Nanos(7), 40, &offer, &own, &mut sent);
    assert_eq!(only(&mut sent).2, Side::Bid);
}

#[test]
fn what_is_far_from_the_middle_of_its_market_or_has_none_is_not_taken() {
    let guard = |needs: MarketNeed| MarketGuard {
        mid_ticks: 20,
        mid_bp: 0,
        needs,
        ..MarketGuard::default()
    };
    let (buys, sells) = triggers(40);
    let middle = (buys + sells) / 2;
    // An offer at what we would pay; beside it a bid that makes the middle as far away as it may be, and a
    // tick further; and none.
    let offers = [
        (2 * (middle - 20) - buys, true),
        (2 * (middle - 22) - buys, false),
    ];
    for needs in [MarketNeed::BothSides, MarketNeed::Nothing] {
        for (bid, is_taken) in offers {
            let (mut eye, mut sent) = ready(EyeConfig {
                market: Some(guard(needs)),
                ..config()
            });
            let offer = market(9, 40, [bid * TICK, buys * TICK], [5, 7]);
            eye.on_option(Nanos(5), 40, &offer, &NoQuotes, &mut sent);
            assert_eq!(sent.orders.len(), usize::from(is_taken), "{needs:?}, {bid}");
            assert_eq!(eye.counters().get(Counter::EyeOffMarket), u64::from(!is_taken));
        }
        let (mut eye, mut sent) = ready(EyeConfig {
            market: Some(guard(needs)),
            ..config()
        });
        let alone = market(9, 40, [0, buys * TICK], [0, 7]);
        eye.on_option(Nanos(5), 40, &alone, &NoQuotes, &mut sent);
        assert_eq!(
            sent.orders.len(),
            usize::from(needs == MarketNeed::Nothing),
            "{needs:?}"
        );
    }
}

#[test]
fn without_a_heartbeat_after_a_kill_and_by_an_old_ladder_nothing_leaves() {
    let (buys, _) = triggers(40);
    let offer = market(9, 40, [(buys - 20) * TICK, buys * TICK], [5, 7]);
    let trial = |now: Nanos, prepare: &dyn Fn(&mut Eye)| {
        let (mut eye, mut sent) = ready(config());
        prepare(&mut eye);
        eye.on_option(now, 40, &offer, &NoQuotes, &mut sent);
        (sent.orders.len(), eye.state())
    };
    let second = |n: u64| Nanos(n * Nanos::SECOND);
    assert_eq!(trial(second(4), &|_| ()).0, 1);
    assert_eq!(trial(second(5), &|_| ()), (0, EyeState::Off(EyeOff::Heartbeat)));
    let heard = |eye: &mut Eye| assert!(eye.on_heartbeat(second(3)));
    assert_eq!(trial(second(5), &heard).0, 1);
    assert_eq!(trial(second(6), &heard).0, 0, "the ladder is older than 5 s");
    assert_eq!(
        trial(second(1), &|eye| eye.kill()),
        (0, EyeState::Off(EyeOff::Killed))
    );
    let kept = |eye: &mut Eye| {
        eye.kill();
        assert!(!eye.arm(Nanos(2)));
        eye.revive();
    };
    assert_eq!(trial(second(1), &kept).0, 0, "revived, not armed");
    assert_eq!(trial(second(1), &|eye| eye.disarm()).0, 0);
    assert_eq!(trial(second(1), &|eye| eye.on_disconnect()).0, 0);
}

#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

#[test]
fn nothing_is_allocated_from_the_first_look_on() {
    let config = EyeConfig {
        ladder_age_max_ns: 0,
        contracts_max: 1_000,
        orders_max: 1_000,
        ..config()
    };
    let (mut eye, mut sent) = ready(config);
    sent.orders.reserve(10_000);
    let (buys, sells) = triggers(40);
    let (_, count) = tickwire_runtime::alloc::count_allocations(|| {
        for step in 0..1_000_u64 {
            let now = Nanos((1 + step) * 20 * Nanos::MILLI);
            eye.on_heartbeat(now);
            let prices = [[buys - 20, buys - 1], [sells + 1, sells + 9]][step as usize % 2];
            let update = market(step, 40, prices.map(|ticks| ticks * TICK), [4; 2]);
            eye.on_option(now, 40, &update, &NoQuotes, &mut sent);
            eye.on_underlying(now, &look(step, 8_000, 2), &NoQuotes, &mut sent);
            let last = sent.orders.last().copied();
            if let Some((Some(_), OrderIntent::New { id, qty, .. })) = last {
                let _ = eye.on_report(now, &filled(id, qty.0), &mut sent);
            }
            eye.handle_timeout(now);
        }
    });
    assert_eq!(count.allocations, 0);
    assert!(sent.orders.len() > 100, "{}", sent.orders.len());
}

/// A quoter beside the eye whose quotes are in nobody's way.
struct Beside<'q>(&'q Quoter);

impl OwnQuotes for Beside<'_> {
    fn quoted(&self, _: u16) -> Option<(u16, u16)> {
        Some((NO_BID, NO_ASK))
    }

    fn admits(&self, now: Nanos, uncounted: u32) -> bool {
        OwnQuotes::admits(self.0, now, uncounted)
    }

    fn room(&self, side: Side) -> Exposure {
        OwnQuotes::room(self.0, side)
    }
}

/// Takes everything.
struct Nowhere;

impl crate::QuoteSink for Nowhere {
    fn mass_quote(&mut self, _: &crate::MassQuote<'_>) -> bool {
        true
    }

    fn cancel_all(&mut self, _: u64, _: &Cause) -> bool {
        true
    }
}

#[test]
fn whatever_pulls_the_quotes_stops_the_eye_and_their_limits_are_its_own() {
    let (buys, _) = triggers(40);
    let offer = market(9, 40, [(buys - 20) * TICK, (buys - 3) * TICK], [5, 7]);
    let now = Nanos(5);
    // Contracts ordered beside a quoter to which something was done.
    let ordered = |limits: crate::QuoterConfig, prepare: &dyn Fn(&mut Quoter)| {
        let (mut eye, mut sent) = ready(config());
        let mut quoter = Quoter::new(limits);
        quoter.on_logon(now);
        prepare(&mut quoter);
        eye.on_option(now, 40, &offer, &Beside(&quoter), &mut sent);
        sent.orders
            .iter()
            .map(|(_, order)| match order {
                OrderIntent::New { qty, .. } => qty.0,
                _ => 0,
            })
            .sum::<u32>()
    };
    let limits = crate::QuoterConfig {
        quotes: QUOTES as u16,
        ..crate::QuoterConfig::default()
    };
    assert_eq!(ordered(limits, &|_| ()), 7);
    assert_eq!(ordered(limits, &|quoter| quoter.pull(now, &mut Nowhere)), 0);
    assert_eq!(
        ordered(limits, &|quoter| quoter.pull_on_loss(now, &mut Nowhere)),
        0
    );
    assert_eq!(
        ordered(limits, &|quoter| quoter.pull_on_break(now, &mut Nowhere)),
        0
    );
    assert_eq!(ordered(limits, &Quoter::on_protected), 0);
    assert_eq!(ordered(limits, &Quoter::on_disconnect), 0);
    let stalled = |quoter: &mut Quoter| {
        quoter.on_turn(Nanos(1), &mut Nowhere);
        assert!(quoter.on_turn(Nanos(Nanos::SECOND), &mut Nowhere).is_some());
    };
    assert_eq!(ordered(limits, &stalled), 0);
    let silent = |quoter: &mut Quoter| {
        quoter.on_packet(Nanos(1));
        quoter.on_turn(Nanos(Nanos::SECOND), &mut Nowhere);
        quoter.on_turn(Nanos(Nanos::SECOND), &mut Nowhere);
        assert_eq!(
            quoter.state(),
            crate::QuotingState::Pulling(crate::PullReason::Silence)
        );
    };
    assert_eq!(ordered(limits, &silent), 0);
    // Its position, what it paid, and its rate.
    let few = crate::QuoterConfig {
        long_max: 3,
        ..limits
    };
    assert_eq!(ordered(few, &|_| ()), 3);
    assert_eq!(ordered(few, &|quoter| quoter.add_net(2, 0)), 1);
    let poor = crate::QuoterConfig {
        premium_max: [2 * buys as u64, u64::MAX],
        ..limits
    };
    assert_eq!(ordered(poor, &|_| ()), 2);
    let slow = crate::QuoterConfig {
        messages_max: 10,
        ..limits
    };
    assert_eq!(ordered(slow, &|quoter| quoter.on_sent_beside(now, 9)), 7);
    assert_eq!(ordered(slow, &|quoter| quoter.on_sent_beside(now, 10)), 0);
}

#[test]
fn what_is_not_trusted_any_more_leaves_it_idle_for_a_while() {
    let (mut eye, mut sent) = ready(config());
    let (buys, _) = triggers(40);
    let offer = market(9, 40, [(buys - 20) * TICK, (buys - 3) * TICK], [5, 7]);
    let at = Nanos(Nanos::SECOND);
    eye.distrust(at);
    eye.on_option(at.after(1), 40, &offer, &NoQuotes, &mut sent);
    assert!(sent.orders.is_empty(), "nothing is known of the underlying");
    let calm = config().calm_ns;
    eye.on_underlying(at.after(calm - 1), &look(10, 8_000, 2), &NoQuotes, &mut sent);
    assert!(sent.orders.is_empty(), "not calm yet");
    eye.on_underlying(at.after(calm), &look(11, 8_000, 2), &NoQuotes, &mut sent);
    assert_eq!((sent.orders.len(), eye.take_sent(), eye.take_sent()), (1, 1, 0));
}
