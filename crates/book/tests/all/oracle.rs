//! The fast books against the naive ones, on seeded random streams of good and bad events.

use crate::mirror;

use tickwire_book::naive::{NaiveApplied, NaiveBooks};
use tickwire_book::{Applied, Books, BooksConfig, Depth, Digest};
use tickwire_market::{
    BookState, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, SeqNo, Side,
    Upcoming, Venue, Volume,
};
use tickwire_testdata::Rng;

const INSTRUMENTS: u32 = 24;

fn config(depth: Depth) -> BooksConfig {
    BooksConfig {
        depth,
        instruments: INSTRUMENTS,
        // A small window that the ids go round many times: old orders move to the table all the time.
        orders: 4_096,
        levels: 1 << 16,
        tracked: true,
        ..BooksConfig::default()
    }
}

/// A stream of order events around a moving price, with a share of nonsense.
struct Stream {
    rng: Rng,
    live: Vec<OrderId>,
    next_id: u64,
    seq: u64,
    spread: u64,
    live_max: usize,
    /// Order ids are below this, but for some that are anywhere.
    ids: u64,
    /// Of a hundred events one in so many clears a book.
    clears: u64,
    /// Where prices are instead of around a price that stays.
    wander: Option<Wander>,
}

/// Prices around one that moves, in ticks that change: what windows of levels are laid anew for.
struct Wander {
    centre: i64,
    tick: i64,
}

impl Wander {
    const FROM: Wander = Wander {
        centre: 1_000_000_000,
        tick: 10_000_000,
    };

    fn price(&mut self, rng: &mut Rng) -> Price {
        match rng.below(3_000) {
            0 => {
                self.tick =
                    [1, 3, 5_000_000, 10_000_000, 250_000_000, 1 << 40, 1 << 58][rng.below(7) as usize]
            }
            1 => self.centre = [i64::MIN, -7, 0, 1_000_000_000, i64::MAX][rng.below(5) as usize],
            2..300 => {
                self.centre = self
                    .centre
                    .saturating_add(self.tick.saturating_mul(rng.below(5) as i64 - 2))
            }
            300..310 => {
                self.centre = self
                    .centre
                    .saturating_add(self.tick.saturating_mul(rng.below(400) as i64 - 200))
            }
            _ => {}
        }
        let away = match rng.below(10) {
            0 => rng.below(400) as i64 - 200,
            1..4 => rng.below(60) as i64 - 30,
            _ => rng.below(10) as i64 - 5,
        };
        let between = match rng.chance(1, 200) {
            true => rng.below(self.tick as u64) as i64,
            false => 0,
        };
        let price = self.centre.saturating_add(self.tick.saturating_mul(away));
        Price::from_raw(price.saturating_add(between))
    }
}

impl Stream {
    fn new(seed: u64, spread: u64, live_max: usize) -> Stream {
        Stream {
            rng: Rng::new(seed),
            live: Vec::new(),
            next_id: 1,
            seq: 0,
            spread,
            live_max,
            ids: 130_000,
            clears: 20,
            wander: None,
        }
    }

    fn price(&mut self) -> Price {
        if let Some(wander) = &mut self.wander {
            return wander.price(&mut self.rng);
        }
        let (wide, narrow) = (self.rng.below(self.spread), self.rng.below(6));
        let ticks = if self.rng.chance(1, 5) { wide } else { narrow };
        Price::from_raw((ticks as i64 - self.spread as i64 / 4) * 10_000_000)
    }

    fn new_id(&mut self) -> OrderId {
        self.next_id += 1 + self.rng.below(3);
        match self.rng.below(100) {
            0 => OrderId(self.rng.next_u64()),
            1 => OrderId(u64::MAX - self.rng.below(2_000)),
            _ => OrderId(self.next_id % self.ids),
        }
    }

    fn some_id(&mut self) -> OrderId {
        if self.live.is_empty() || self.rng.chance(1, 50) {
            return OrderId(self.rng.below(200_000));
        }
        self.live[self.rng.below(self.live.len() as u64) as usize]
    }

    fn qty(&mut self) -> Volume {
        match self.rng.below(200) {
            0 => Volume(0),
            1 => Volume(u32::MAX as u64),
            2 => Volume(self.rng.next_u64()),
            _ => Volume(1 + self.rng.below(500)),
        }
    }

    fn next(&mut self, naive: &NaiveBooks) -> MarketEvent {
        self.seq += 1;
        let full = self.live.len() >= self.live_max;
        let kind = match self.rng.below(100) {
            0..=44 if !full => EventKind::Add,
            0..=64 => EventKind::Delete,
            65..=74 => EventKind::Replace,
            75..=84 => EventKind::Execute,
            85..=89 => EventKind::Reduce,
            90..=95 => EventKind::Modify,
            96 => EventKind::Trade,
            97 => EventKind::Gap,
            98 => EventKind::Recovered,
            _ if self.rng.chance(1, self.clears) => EventKind::Clear,
            _ => EventKind::Level,
        };
        let mut event = MarketEvent {
            kind,
            seq: SeqNo(self.seq),
            venue_ts: Nanos(self.seq * 10),
            recv_ts: Nanos(self.seq * 10 + 3),
            side: if self.rng.chance(1, 2) {
                Side::Bid
            } else {
                Side::Ask
            },
            price: self.price(),
            qty: self.qty(),
            ..MarketEvent::default()
        };
        match kind {
            EventKind::Add => {
                event.instrument = InstrumentId(self.rng.below(INSTRUMENTS as u64 + 1) as u32);
                event.order_id = if self.rng.chance(1, 100) {
                    self.some_id()
                } else {
                    self.new_id()
                };
                self.live.push(event.order_id);
            }
            EventKind::Gap | EventKind::Recovered | EventKind::Clear => {
                let whole = self.rng.chance(1, 10);
                event.instrument = InstrumentId(if whole { 0 } else { 1 + self.rng.below(23) as u32 });
                if self.rng.chance(1, 3) {
                    event.flags = EventFlags::UNUSABLE;
                }
            }
            EventKind::Level => event.instrument = InstrumentId(1),
            _ => self.about_order(naive, &mut event),
        }
        event
    }

    fn about_order(&mut self, naive: &NaiveBooks, event: &mut MarketEvent) {
        event.order_id = self.some_id();
        if let Some(order) = naive.order(event.order_id) {
            event.instrument = match self.rng.below(60) {
                0 => InstrumentId(self.rng.below(INSTRUMENTS as u64 + 3) as u32),
                1..10 => InstrumentId::WHOLE_FEED,
                _ => order.instrument,
            };
            match self.rng.below(4) {
                0 => event.qty = Volume(order.qty as u64),
                1 => event.price = order.price,
                _ => {}
            }
        } else {
            event.instrument = InstrumentId(self.rng.below(INSTRUMENTS as u64) as u32);
            self.live.retain(|&id| id != event.order_id);
        }
        if event.kind == EventKind::Replace {
            event.ref_id = if self.rng.chance(1, 50) {
                self.some_id()
            } else {
                self.new_id()
            }
            .0;
            self.live.push(OrderId(event.ref_id));
        }
        if self.rng.chance(1, 2) {
            event.flags = event.flags.with(EventFlags::KEEPS_PRIORITY);
        }
        if self.rng.chance(1, 2) {
            event.flags = event.flags.with(EventFlags::NO_SIDE);
        }
    }
}

fn same(fast: Applied<'_>, naive: NaiveApplied) -> bool {
    match (fast, naive) {
        (Applied::Update(a), NaiveApplied::Update(b)) => *a == b,
        (Applied::Feed(a), NaiveApplied::Feed(b)) => a == b,
        (Applied::None, NaiveApplied::None) => true,
        (Applied::Rejected(a), NaiveApplied::Rejected(b)) => a == b,
        _ => false,
    }
}

fn queues_hash(books: &Books) -> u64 {
    let mut digest = Digest::default();
    books.iter().for_each(|book| book.digest_queues_into(&mut digest));
    digest.finish()
}

/// Every answer is compared; the touched book after every event; everything every `check_every` events.
fn compare(seed: u64, depth: Depth, events: u64, spread: u64, live_max: usize, check_every: u64) {
    compare_in(config(depth), seed, events, spread, live_max, check_every);
}

/// The same with books of these sizes.
fn compare_in(config: BooksConfig, seed: u64, events: u64, spread: u64, live_max: usize, check_every: u64) {
    compare_stream(
        config,
        Stream::new(seed, spread, live_max),
        seed,
        events,
        check_every,
    );
}

fn compare_stream(config: BooksConfig, mut stream: Stream, seed: u64, events: u64, check_every: u64) {
    let depth = config.depth;
    let mut fast = Books::new(config);
    let mut mirror = mirror::Mirror::new(&fast);
    let mut naive = NaiveBooks::new(Venue::Nasdaq, depth, INSTRUMENTS, BookState::Live);
    for n in 0..events {
        let event = stream.next(&naive);
        match n % 3 {
            0 => fast.arriving(Upcoming::of(&event)),
            _ => fast.upcoming(Upcoming::of(&event)),
        }
        let expected = naive.apply(&event);
        let got = fast.apply(&event);
        assert!(
            same(got, expected),
            "seed {seed} event {n} {event:?}\n fast {got:?}\nnaive {expected:?}"
        );
        let outcome = got.outcome();
        mirror.follow(&fast, &event, outcome);
        if let NaiveApplied::Update(update) = expected {
            let (a, b) = (fast.digest(update.instrument), naive.digest(update.instrument));
            assert_eq!(a, b, "seed {seed} event {n} {event:?}");
        }
        if n % check_every == 0 || n + 1 == events {
            assert_eq!(fast.state_hash(), naive.state_hash(), "seed {seed} event {n}");
            if depth == Depth::ByOrder {
                assert_eq!(queues_hash(&fast), naive.queues_hash(), "seed {seed} event {n}");
                if n % (7 * check_every) == 0 {
                    check_queue_positions(&fast, &naive, seed);
                }
            }
        }
    }
    mirror.check(&fast);
    for (&id, order) in naive.orders() {
        let view = fast
            .order(id)
            .unwrap_or_else(|| panic!("seed {seed}: {id:?} is missing"));
        assert_eq!(
            (view.id, view.instrument, view.side),
            (id, order.instrument, order.side),
            "seed {seed}"
        );
        assert_eq!((view.price, view.qty.0), (order.price, order.qty), "seed {seed}");
    }
    if depth == Depth::ByOrder {
        check_queue_positions(&fast, &naive, seed);
    }
}

fn check_queue_positions(fast: &Books, naive: &NaiveBooks, seed: u64) {
    for (&id, order) in naive.orders() {
        let queue = naive.queue(order.instrument, order.side, order.price);
        let ahead: Vec<_> = queue.iter().take_while(|(other, _)| *other != id).collect();
        let position = fast.queue_position(id).unwrap();
        assert_eq!(position.orders_ahead as usize, ahead.len(), "seed {seed} {id:?}");
        assert_eq!(
            position.qty_ahead.0,
            ahead.iter().map(|(_, qty)| *qty as u64).sum::<u64>(),
            "seed {seed}"
        );
    }
}

/// Few orders, so that neighbours in a queue come and leave within a few events, in a window so small that
/// old ones are in the way of new ones all the time.
#[test]
fn queues_equal_the_naive_ones_where_all_that_happens_is_near() {
    for seed in 1..=16 {
        let live_max = [3, 10, 30, 60][seed as usize % 4];
        let config = BooksConfig {
            orders: 64,
            ..config(Depth::ByOrder)
        };
        compare_in(config, seed, 20_000, 1 + seed % 5, live_max, 1);
    }
}

/// Orders of cleared books stand where others come, in the window and in the table, and their ids come again.
#[test]
fn books_equal_the_naive_ones_where_orders_of_cleared_books_are_in_the_way() {
    for seed in 1..=24 {
        let depth = [Depth::Aggregated, Depth::ByOrder][seed as usize % 2];
        let stream = Stream {
            ids: [90, 300, 130_000][seed as usize % 3],
            clears: 1,
            ..Stream::new(seed, 5, [3, 8, 60][seed as usize / 6 % 3])
        };
        let config = BooksConfig {
            orders: [8, 8, 64][seed as usize / 6 % 3],
            ..config(depth)
        };
        compare_stream(config, stream, seed, 20_000, 1);
    }
}

#[test]
fn every_answer_and_every_book_equals_the_naive_one_on_short_streams() {
    for seed in 1..=24 {
        compare(seed, Depth::ByOrder, 8_000, 40, 300, 1);
        compare(seed + 100, Depth::Aggregated, 8_000, 40, 300, 1);
    }
}

#[test]
fn deep_books_grow_move_and_shrink_like_the_naive_ones() {
    compare(5, Depth::ByOrder, 150_000, 4_000, 6_000, 5_000);
    compare(6, Depth::Aggregated, 150_000, 4_000, 6_000, 5_000);
}

/// Bids and offers stand on either side of all prices there are, between ticks, and far from each other.
#[test]
fn books_equal_the_naive_ones_wherever_prices_go_and_whatever_their_ticks_are() {
    for seed in 1..=12 {
        for depth in [Depth::ByOrder, Depth::Aggregated] {
            let stream = Stream {
                wander: Some(Wander::FROM),
                ..Stream::new(seed, 1, [20, 200, 3_000][seed as usize % 3])
            };
            compare_stream(config(depth), stream, seed, 30_000, 500);
        }
    }
}

#[test]
fn two_million_events_end_in_the_same_books() {
    compare(7, Depth::ByOrder, 1_000_000, 120, 2_500, 100_000);
    compare(8, Depth::Aggregated, 1_000_000, 120, 2_500, 100_000);
}

#[test]
fn levels_and_quotes_of_a_by_price_feed_equal_the_naive_ones() {
    levels_and_quotes(9, |rng| Price::from_raw(rng.below(60) as i64 - 30));
    let mut wander = Wander::FROM;
    levels_and_quotes(10, |rng| wander.price(rng));
}

fn levels_and_quotes(seed: u64, mut price: impl FnMut(&mut Rng) -> Price) {
    let mut fast = Books::new(config(Depth::ByPrice));
    let mut naive = NaiveBooks::new(Venue::Nasdaq, Depth::ByPrice, INSTRUMENTS, BookState::Live);
    let mut mirror = mirror::Mirror::new(&fast);
    let mut rng = Rng::new(seed);
    for n in 0..200_000 {
        let kind = match rng.below(100) {
            0 => EventKind::Clear,
            1..=3 => EventKind::Quote,
            4 => EventKind::Add,
            5 => EventKind::Gap,
            6 => EventKind::Recovered,
            _ => EventKind::Level,
        };
        let qty = |rng: &mut Rng| {
            let bits = rng.below(46);
            Volume(if rng.chance(1, 3) { 0 } else { rng.below(1 << bits) })
        };
        let event = MarketEvent {
            kind,
            instrument: InstrumentId(rng.below(INSTRUMENTS as u64 + 1) as u32),
            order_id: OrderId(rng.below(50)),
            side: if rng.chance(1, 2) { Side::Bid } else { Side::Ask },
            price: price(&mut rng),
            qty: qty(&mut rng),
            ask_price: price(&mut rng),
            ask_qty: qty(&mut rng),
            order_count: rng.below(9) as u32,
            ..MarketEvent::default()
        };
        let expected = naive.apply(&event);
        let got = fast.apply(&event);
        assert!(
            same(got, expected),
            "seed {seed} event {n} {event:?}\n fast {got:?}\nnaive {expected:?}"
        );
        let outcome = got.outcome();
        mirror.follow(&fast, &event, outcome);
    }
    mirror.check(&fast);
    assert_eq!(fast.state_hash(), naive.state_hash(), "seed {seed}");
}
