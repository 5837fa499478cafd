//! A strategy in the place of the built-in rule, and several of them: over several feeds and sessions,
//! without allocating.

mod quoter_and_eye;
mod restored;
mod twins;

use std::collections::BTreeMap;

use super::*;
use crate::memory::{self, MemoryOut, answer, strategy_path};
use crate::settings::SendWay;
use crate::trader::Rule;
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_feed::{ItchChannel, Line, SoupConfig};
use tickwire_fix::QuoteAnswer;
use tickwire_market::{
    BookState, Cause, Counter, Counters, EventFlags, OrderId, OrderIntent, Price, Qty, SeqNo, Side, Volume,
};
use tickwire_rig::recorded::{self, Recorded};
use tickwire_runtime::alloc::count_allocations;
use tickwire_runtime::clock::Clock;
use tickwire_trading::ControlsConfig;
use tickwire_trading::strategy::{
    BookChange, Consolidated, Context, NUMBERS, NotSent, OrderEvent, Quote, QuoteEvent, QuoteTerms,
    Subscription, SuperChange, Ticket, TimerId,
};
use tickwire_trading::{ReportKind, RiskReject};
use tickwire_venues::protocol::Protocol;

/// The built-in rule, written as anybody would.
struct Taker {
    symbol: Symbol,
    /// Orders that have ended.
    ends: u64,
}

impl Taker {
    fn new(symbol: Symbol) -> Taker {
        Taker { symbol, ends: 0 }
    }
}

impl Strategy for Taker {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::Symbol(self.symbol)]
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        if change.is_live()
            && let Some(offer) = change.new_best_price(Side::Ask)
        {
            let _ = ctx.buy_now(change.instrument, 100, offer);
        }
    }

    fn on_order(&mut self, _: &mut Context<'_>, event: &OrderEvent) {
        self.ends += u64::from(!event.order.state.is_open());
    }
}

/// Everything else that a strategy can do, at every change of the book.
struct Busy {
    symbol: Symbol,
}

impl Strategy for Busy {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::Symbol(self.symbol)]
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        let book = ctx.book(change.instrument);
        let depth = book.map_or(0, |book| book.levels(Side::Bid).map(|l| l.qty.0).sum());
        ctx.note("depth", depth as i64);
        ctx.set_timer(TimerId(1), ctx.now().after(1_000));
        if let Some((bid, _)) = change.after.best(Side::Bid) {
            let above = |units: i64| Price::from_raw(bid.raw() + units * Price::ONE_RAW);
            let _ = ctx.submit(Ticket::market(Side::Bid, change.instrument, 1));
            if let Ok(id) = ctx.sell(change.instrument, 1, above(2)) {
                let _ = ctx.replace(id, 2, above(3));
                let _ = ctx.cancel(id);
            }
        }
    }
}

#[test]
fn the_rule_as_a_strategy_sends_the_rules_orders_and_allocates_nothing() {
    let session = Recorded::generate(7, 100_000, 50);
    let clock = Clock::calibrate();
    let symbol = recorded::first_symbol();
    for packets in [session.packets(1), session.packets(30)] {
        let mut feed = recorded::feed(session.symbols);
        let mut built_in = memory::memory_path::<true>(memory::books(session.symbols), symbol, clock.clone())
            .expect("it logs on");
        for packet in recorded::walk(&packets) {
            let now = clock.now();
            feed.on_packet(now, Line::A, packet, &mut built_in);
            answer(&mut built_in, now);
        }
        let mut feed = recorded::feed(session.symbols);
        let mut own = strategy_path::<_, true>(
            Taker::new(symbol),
            memory::books(session.symbols),
            symbol,
            clock.clone(),
        )
        .expect("it logs on");
        let ((), count) = count_allocations(|| {
            for packet in recorded::walk(&packets) {
                let now = clock.now();
                feed.on_packet(now, Line::A, packet, &mut own);
                answer(&mut own, now);
            }
        });
        assert_eq!((count.allocations, count.releases), (0, 0), "{count:?}");
        let sent =
            |orders: &tickwire_trading::Orders, counters: &Counters| -> BTreeMap<u64, (i64, Qty, u64)> {
                (1..=counters.get(Counter::OrdersSent))
                    .filter_map(|id| orders.get(ClientOrderId(id)))
                    .map(|order| (order.id.0, (order.price.raw(), order.qty, order.cause.seq.0)))
                    .collect()
            };
        let expected = {
            let conductor = &built_in.rule.hosted[0].conductor;
            sent(conductor.orders(), conductor.counters())
        };
        assert!(expected.len() > 100);
        assert_eq!(
            sent(
                own.rule.hosted[0].conductor.orders(),
                own.rule.hosted[0].conductor.counters()
            ),
            expected
        );
        assert_eq!(own.sessions[0].out.orders, built_in.sessions[0].out.orders);
        assert!(own.rule.hosted[0].conductor.strategy().ends > 100);
    }
}

/// A trader who rehearses before every packet sends the same bytes under the same numbers as one who never
/// does.
#[test]
fn orders_that_are_rehearsed_are_seen_in_nothing_that_leaves() {
    let session = Recorded::generate(7, 50_000, 20);
    let packets = session.packets(1);
    let symbol = recorded::first_symbol();
    let clock = Clock::calibrate();
    let path = || {
        let books = memory::books(session.symbols);
        let mut hot = memory::memory_path::<true>(books, symbol, clock.clone()).expect("it logs on");
        hot.by_event_time = true;
        (recorded::feed(session.symbols), hot)
    };
    let ((mut feed, mut hot), (mut feed_of_twin, mut twin)) = (path(), path());
    let begun = clock.now();
    let mut allocated = 0;
    for (at, packet) in recorded::walk(&packets).enumerate() {
        let now = begun.after(at as u64 * 10_000);
        let ((), count) = count_allocations(|| {
            Live::on_idle(&mut hot, now);
            Live::on_idle(&mut hot, now);
        });
        allocated += count.allocations + count.releases;
        for (feed, hot) in [(&mut feed, &mut hot), (&mut feed_of_twin, &mut twin)] {
            feed.on_packet(now, Line::A, packet, hot);
            answer(hot, now);
        }
        let (out, out_of_twin) = (&hot.sessions[0].out, &twin.sessions[0].out);
        assert_eq!(out.orders, out_of_twin.orders, "packet {at}");
        assert_eq!(out.last(), out_of_twin.last(), "packet {at}");
    }
    assert!(hot.sessions[0].out.orders > 100);
    assert_eq!(allocated, 0);
    let [own, of_twin] = [&hot, &twin].map(|hot| &hot.rule.hosted[0].conductor);
    assert_eq!(own.counters(), of_twin.counters());
    // Not shown when they differ: every place of the table would be.
    assert!(own.orders() == of_twin.orders(), "the tables of orders differ");
    assert_eq!(hot.sessions[0].fix.counters(), twin.sessions[0].fix.counters());
}

#[test]
fn everything_that_a_strategy_can_do_allocates_nothing() {
    let session = Recorded::generate(9, 30_000, 20);
    let clock = Clock::calibrate();
    let symbol = recorded::first_symbol();
    let packets = session.packets(3);
    let mut feed = recorded::feed(session.symbols);
    let mut own = strategy_path::<_, true>(
        Busy { symbol },
        memory::books(session.symbols),
        symbol,
        clock.clone(),
    )
    .expect("it logs on");
    let mut noted = 0_u64;
    let ((), count) = count_allocations(|| {
        for packet in recorded::walk(&packets) {
            let now = clock.now();
            feed.on_packet(now, Line::A, packet, &mut own);
            answer(&mut own, now);
            <Live<Busy> as Rule>::on_time(&mut own, now.after(5_000));
            own.rule.hosted[0].conductor.take_notes(|_| noted += 1);
        }
    });
    assert!(noted > 100 && own.rule.hosted[0].conductor.counters().get(Counter::OrdersSent) > 200);
    assert_eq!((count.allocations, count.releases), (0, 0), "{count:?}");
}

/// Does what it is told when a book changes.
struct Told {
    tickets: Vec<Ticket>,
    quotes: Vec<Quote>,
    cancels: bool,
    heard: Vec<String>,
    done: Vec<Result<ClientOrderId, NotSent>>,
    supers: u64,
    is_consolidated: bool,
}

impl Told {
    fn new(is_consolidated: bool) -> Told {
        Told {
            tickets: Vec::new(),
            quotes: Vec::new(),
            cancels: false,
            heard: Vec::new(),
            done: Vec::new(),
            supers: 0,
            is_consolidated,
        }
    }
}

impl Strategy for Told {
    fn subscriptions(&self) -> Vec<Subscription> {
        match self.is_consolidated {
            true => vec![Subscription::Consolidated(recorded::first_symbol())],
            false => vec![Subscription::Symbol(recorded::first_symbol())],
        }
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, _: &BookChange) {
        while let Some(ticket) = self.tickets.pop() {
            self.done.push(ctx.submit(ticket));
        }
        if !self.quotes.is_empty() {
            self.done.push(ctx.mass_quote(&self.quotes));
            self.quotes.clear();
        }
        if std::mem::take(&mut self.cancels) {
            ctx.cancel_quotes();
        }
    }

    fn on_own_quote(&mut self, _: &mut Context<'_>, event: &QuoteEvent) {
        let open = Side::BOTH.map(|side| event.quote.open(side).0);
        self.heard.push(format!("{:?} open {open:?}", event.kind));
    }

    fn on_super_book(&mut self, ctx: &mut Context<'_>, change: &SuperChange) {
        let book = ctx.super_book(change.id).expect("it has changed");
        self.supers += u64::from(ctx.best_member(&book, Side::Ask).is_some());
    }
}

fn facts(feed: usize, name: &str, venue: Venue) -> SourceFacts {
    SourceFacts {
        feed,
        channel: 0,
        feed_name: name.to_string(),
        name: name.to_string(),
        venue,
        protocol: Protocol::Itch50,
        depth: Depth::Aggregated,
    }
}

fn hosting(name: &str, is_consolidated: bool, controls: ControlsConfig) -> Hosting<Told> {
    Hosting {
        name: name.to_string(),
        strategy: Told::new(is_consolidated),
        feeds: None,
        sessions: None,
        on_every_event: false,
        ends_with_session: false,
        max_orders: 1 << 10,
        risk: RiskConfig {
            price_band_bp: 10_000,
            controls: ControlsConfig {
                needs_reference: true,
                ..controls
            },
            ..RiskConfig::default()
        },
    }
}

fn routes() -> Routes {
    Routes {
        sessions: vec!["order_entry".to_string(), "BZX".to_string()],
        send: vec![SendWay::Kernel; 2],
        of_source: vec![vec![0], vec![1]],
    }
}

type Hot = HotPath<MemoryOut, true, Live<Told>>;

/// Two feeds, each with the first symbol as instrument 1, and a session for each.
fn two_feeds(strategies: Vec<Hosting<Told>>) -> Hot {
    two_feeds_from(strategies, Nanos::ZERO)
}

/// The same in a process that was started at a time.
fn two_feeds_from(strategies: Vec<Hosting<Told>>, started: Nanos) -> Hot {
    two_feeds_behind(strategies, started, |_| {})
}

/// The same behind processes whose state `restore` hands over.
fn two_feeds_behind(
    strategies: Vec<Hosting<Told>>,
    started: Nanos,
    restore: impl FnOnce(&mut Live<Told>),
) -> Hot {
    let clock = Clock::calibrate();
    let books = || {
        Books::new(BooksConfig {
            instruments: 4,
            orders: 1_024,
            levels: 1_024,
            initial: BookState::Live,
            tracked: true,
            ..BooksConfig::default()
        })
    };
    let mut live = Live::hosting(strategies);
    let sources = [facts(0, "nasdaq", Venue::Nasdaq), facts(1, "bzx", Venue::Bzx)];
    let wants = live.prepare(&sources, &routes(), 4, started).expect("it fits");
    restore(&mut live);
    live.set_session(0, true);
    live.set_session(1, true);
    let mut hot = memory::memory_path_of(MemoryOut::new(), books(), live, clock.clone()).expect("it logs on");
    let other: HotPath<MemoryOut, true, ()> =
        memory::memory_path_of(MemoryOut::new(), books(), (), clock).expect("it logs on");
    hot.sessions.extend(other.sessions);
    hot.books.extend(other.books);
    hot.consolidated = wants
        .consolidated
        .map(|(symbols, bits)| Consolidated::new(&[Venue::Nasdaq, Venue::Bzx], bits, symbols));
    let now = hot.clock.now();
    let instrument = Instrument {
        id: InstrumentId(1),
        symbol: recorded::first_symbol(),
        ..Instrument::default()
    };
    for source in 0..2 {
        hot.source = source;
        define_one(&mut hot, now, &instrument, None);
        for (order, side, price) in [(1, Side::Bid, 99), (2, Side::Ask, 101)] {
            add(&mut hot, source, order, side, price);
        }
    }
    hot
}

fn add(hot: &mut Hot, source: usize, order: u64, side: Side, price: i64) {
    hot.source = source;
    hot.on_event(&MarketEvent {
        seq: SeqNo(order),
        kind: EventKind::Add,
        instrument: InstrumentId(1),
        order_id: OrderId(order),
        side,
        price: units(price),
        qty: Volume(300),
        venue: [Venue::Nasdaq, Venue::Bzx][source],
        flags: EventFlags::LAST,
        recv_ts: hot.clock.now(),
        ..MarketEvent::default()
    });
}

fn units(price: i64) -> Price {
    Price::from_raw(price * Price::ONE_RAW)
}

/// Instrument 1 of a feed.
fn at(hot: &Hot, source: u32) -> InstrumentId {
    InstrumentId(source << hot.rule.bits | 1)
}

/// What became of a ticket of a strategy, with the next change of a feed's book.
fn submit(hot: &mut Hot, who: usize, source: usize, ticket: Ticket) -> Result<ClientOrderId, NotSent> {
    hot.rule.hosted[who].conductor.strategy_mut().tickets.push(ticket);
    let order = 1_000
        + hot.books[source]
            .book(InstrumentId(1))
            .map_or(0, |b| b.levels(Side::Bid).len() as u64);
    add(hot, source, order, Side::Bid, 99 - (order as i64 - 1_000));
    hot.rule.hosted[who]
        .conductor
        .strategy_mut()
        .done
        .pop()
        .expect("it was submitted")
}

/// Two strategies on two channels, and the same with a consolidated book: nobody hears of what is rehearsed,
/// and no book but those of rehearsals has it.
#[test]
fn packets_that_are_rehearsed_are_heard_by_nobody() {
    for is_consolidated in [false, true] {
        let strategies = ["one", "two"].map(|name| hosting(name, is_consolidated, ControlsConfig::NONE));
        let mut hot = two_feeds(Vec::from(strategies));
        let now = hot.clock.now();
        <Live<Told> as Rule>::start(&mut hot, now);
        let of = |hot: &Hot| {
            let books = hot.books.iter();
            let books: Vec<_> = books.map(|books| (books.state_hash(), *books.last())).collect();
            let heard = hot.rule.hosted.iter().map(|hosted| {
                let strategy = hosted.conductor.strategy();
                let heard = (strategy.heard.clone(), strategy.supers, strategy.tickets.len());
                (heard, hosted.conductor.counters().clone())
            });
            let sent = hot.sessions.iter().map(|session| session.out.orders);
            let supers = hot.consolidated.iter().flat_map(|all| all.books().iter());
            let supers: Vec<_> = supers
                .map(|book| Side::BOTH.map(|side| book.levels(side).collect::<Vec<_>>()))
                .collect();
            (
                books,
                supers,
                heard.collect::<Vec<_>>(),
                sent.collect::<Vec<_>>(),
                hot.source,
            )
        };
        // What it would send if it was asked.
        let buy = Ticket::limit(Side::Bid, at(&hot, 0), 100, units(99));
        let submitted = |hot: &mut Hot| hot.rule.hosted[0].conductor.strategy_mut().done.pop();
        hot.rule.hosted[0].conductor.strategy_mut().tickets.push(buy);
        let before = of(&hot);
        let ((), count) = count_allocations(|| {
            for turn in 0..100 {
                idle(&mut hot, now.after(turn), |_| false);
            }
        });
        assert_eq!((count.allocations, count.releases), (0, 0), "{count:?}");
        assert_eq!(of(&hot), before);
        assert_eq!((hot.rule.rehearsals.turn, submitted(&mut hot)), (100, None));
        // Of one channel or the other each time, and consolidated books are those of rehearsals meanwhile.
        assert!(hot.rule.rehearsals.orders > 100, "{}", hot.rule.rehearsals.orders);
        let asks = |hot: &Hot| {
            let books = hot.consolidated.iter().flat_map(|all| all.books().iter());
            let asks = books.filter_map(|book| book.best(Side::Ask));
            asks.map(|level| level.price).collect::<Vec<_>>()
        };
        let stands = asks(&hot);
        assert_eq!(stands.len(), usize::from(is_consolidated));
        let source = Live::begin_rehearsal(&mut hot).expect("it is rehearsed");
        add(&mut hot, source, 99, Side::Ask, 55);
        assert_eq!(asks(&hot), vec![units(55); stands.len()]);
        Live::end_rehearsal(&mut hot);
        assert_eq!(asks(&hot), stands);
        // The next change is told as it is.
        add(&mut hot, 1, 3, Side::Bid, 100);
        assert_eq!(submitted(&mut hot), Some(Ok(ClientOrderId(1))));
    }
}

/// Between any two packets of a session, a packet of the channel's twin: what is sent and what the books
/// hold is what it is without, and nothing is allocated. Behind a lost packet the books are stale, and stay
/// it.
#[test]
fn packets_of_a_twin_change_nothing() {
    let session = Recorded::generate(7, 20_000, 50);
    let (clock, symbol) = (Clock::calibrate(), recorded::first_symbol());
    let packets = session.packets(3);
    for lost in [None, Some(5_000)] {
        let [with, without] = [true, false].map(|is_rehearsed| {
            let feed = recorded::feed(session.symbols);
            let mut channel = ItchChannel::new(feed, SoupConfig::default());
            let books = memory::books(session.symbols);
            let mut hot = strategy_path::<_, true>(Taker::new(symbol), books, symbol, clock.clone())
                .expect("it logs on");
            let mut twin = memory::twin_of(&hot, &channel);
            // A time of the test's own: when a lost packet is asked for again hangs on it.
            let began = clock.now();
            let ((), count) = count_allocations(|| {
                for (nth, packet) in recorded::walk(&packets).enumerate() {
                    let now = began.after(1_000 * nth as u64);
                    if is_rehearsed {
                        assert!(twin.is_some());
                        memory::idle(&mut hot, &channel, &mut twin, now);
                    }
                    if lost != Some(nth) {
                        channel.on_datagram(now, tickwire_market::Port::Live, Line::A, packet, &mut hot);
                    }
                    answer(&mut hot, now);
                }
            });
            assert_eq!((count.allocations, count.releases), (0, 0), "{count:?}");
            let books = &hot.books[0];
            match lost {
                None => assert_eq!(session.differences(books), 0),
                Some(_) => assert_eq!(books.feed_state(), BookState::Stale),
            }
            let strategy = hot.rule.hosted[0].conductor.strategy();
            let sent = hot.sessions[0].out.orders;
            (books.state_hash(), sent, strategy.ends, channel.counters())
        });
        assert_eq!(with, without, "lost: {lost:?}");
        assert!(with.1 > 10, "{} orders", with.1);
    }
}

/// Counts what it is told of the market.
struct Counting(u64);

impl Strategy for Counting {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::Symbol(recorded::first_symbol())]
    }

    fn on_book(&mut self, _: &mut Context<'_>, _: &BookChange) {
        self.0 += 1;
    }

    fn on_quote(&mut self, _: &mut Context<'_>, _: &MarketEvent) {
        self.0 += 1;
    }
}

/// On a consolidated feed, too, whose quotes have a callback of their own.
#[test]
fn on_no_kind_of_feed_is_a_strategy_told_of_what_is_rehearsed() {
    for (venue, depth) in [
        (Venue::Nasdaq, Depth::Aggregated),
        (Venue::Cme, Depth::ByOrder),
        (Venue::Nyse, Depth::ByPrice),
        (Venue::Cqs, Depth::ByPrice),
        (Venue::Uqdf, Depth::ByPrice),
    ] {
        let books = Books::new(BooksConfig {
            venue,
            depth,
            instruments: 4,
            orders: 64,
            levels: 1_024,
            ..BooksConfig::default()
        });
        let clock = Clock::calibrate();
        let mut hot = strategy_path::<_, true>(Counting(0), books, recorded::first_symbol(), clock)
            .expect("it logs on");
        let told = |hot: &HotPath<MemoryOut, true, Live<Counting>>| hot.rule.hosted[0].conductor.strategy().0;
        let (before, rehearsed) = (told(&hot), hot.rule.rehearsals.orders);
        let now = hot.clock.now();
        for turn in 0..10 {
            idle(&mut hot, now.after(turn), |_| false);
        }
        assert_eq!(told(&hot), before, "{venue:?}");
        assert_eq!(hot.rule.rehearsals.orders, rehearsed + 10, "{venue:?}");
    }
}

#[test]
fn two_strategies_trade_over_two_sessions_with_numbers_and_limits_of_their_own() {
    let controls = ControlsConfig {
        position_max: 150,
        ..ControlsConfig::NONE
    };
    let mut hot = two_feeds(vec![
        hosting("one", false, controls),
        hosting("two", false, controls),
    ]);
    let (here, there) = (at(&hot, 0), at(&hot, 1));
    let buy = |id| Ticket::limit(Side::Bid, id, 100, units(99));
    let sell = |id| Ticket::limit(Side::Ask, id, 100, units(99));
    assert_eq!(submit(&mut hot, 0, 0, buy(here)), Ok(ClientOrderId(1)));
    assert_eq!(submit(&mut hot, 0, 1, buy(there)), Ok(ClientOrderId(2)));
    assert_eq!(submit(&mut hot, 1, 1, buy(there)), Ok(ClientOrderId(NUMBERS + 1)));
    assert_eq!((hot.sessions[0].out.orders, hot.sessions[1].out.orders), (1, 2));
    assert_eq!(
        [Some(0), Some(1), None].map(|session| hot.rule.open(session)),
        [1, 2, 3]
    );
    // What would meet another strategy's order does not leave; at the other venue it may.
    let met = Err(NotSent::Check(RiskReject::SelfTrade));
    assert_eq!(submit(&mut hot, 1, 0, sell(here)), met);
    assert_eq!(hot.sessions[0].out.orders, 1);
    // A venue that speaks of an order of another one's is not believed, and ends trading.
    let filled = |id: u64| OrderReport {
        id: ClientOrderId(id),
        venue_id: None,
        kind: ReportKind::Filled {
            qty: Qty(100),
            price: units(99),
            cumulative: Qty(100),
        },
    };
    let report =
        |hot: &mut Hot, session, report| <Live<Told> as Rule>::on_report(hot, session, Nanos(1), &report);
    assert!(report(&mut hot, 0, filled(1)).is_ok());
    let over = Err(NotSent::Check(RiskReject::TotalPosition));
    assert_eq!(
        submit(&mut hot, 1, 0, buy(here)),
        over,
        "100 of 150 are the other one's"
    );
    assert_eq!(
        report(&mut hot, 0, filled(NUMBERS + 1)),
        Err(ReportError::Unknown)
    );
    assert!(hot.rule.is_killed());
    let killed = Err(NotSent::Check(RiskReject::KillSwitch));
    assert_eq!(submit(&mut hot, 0, 0, sell(here)), killed);
    assert_eq!(submit(&mut hot, 1, 1, buy(there)), killed);
    // Each session cancels what is open over it, whoever's it is.
    assert_eq!(hot.rule.cancel_next(0, Cause::default()), None);
    let mut cancelled = Vec::new();
    while let Some(OrderIntent::Cancel { target, .. }) = hot.rule.cancel_next(1, Cause::default()) {
        cancelled.push(target.0);
    }
    assert_eq!(cancelled, [2, NUMBERS + 1]);
}

#[test]
fn a_session_that_is_lost_stops_who_needs_it_and_nobody_else() {
    let mut only_here = hosting("here", false, ControlsConfig::NONE);
    only_here.feeds = Some(vec!["nasdaq".to_string()]);
    let mut hot = two_feeds(vec![hosting("both", false, ControlsConfig::NONE), only_here]);
    let here = at(&hot, 0);
    let buy = |id| Ticket::limit(Side::Bid, id, 10, units(99));
    hot.rule.set_session(1, false);
    let lost = Err(NotSent::Check(RiskReject::NoSession));
    assert_eq!(
        submit(&mut hot, 0, 0, buy(here)),
        lost,
        "one leg alone is not traded"
    );
    assert!(submit(&mut hot, 1, 0, buy(here)).is_ok());
    hot.rule.set_session(1, true);
    assert!(submit(&mut hot, 0, 0, buy(here)).is_ok());
}

/// A venue knows the numbers of the process before, of orders and of requests to cancel them.
#[test]
fn a_process_that_is_started_again_numbers_its_requests_above_those_of_the_one_before() {
    let first = |started| {
        let both = ["one", "two"].map(|name| hosting(name, false, ControlsConfig::NONE));
        let mut hot = two_feeds_from(both.into(), started);
        let here = at(&hot, 0);
        let buy = Ticket::limit(Side::Bid, here, 100, units(99));
        [0, 1].map(|which| submit(&mut hot, which, 0, buy).expect("it may"))
    };
    let began = Nanos(1_795_862_332 * Nanos::SECOND);
    let [before, behind] = [first(began), first(began.after(Nanos::SECOND))];
    for which in 0..2 {
        assert_eq!([whose(before[which]), whose(behind[which])], [which; 2]);
        let room = behind[which].0 - before[which].0;
        assert_eq!(room, 1_000_000, "as many as a process may enter in that second");
    }
}

#[test]
fn while_a_feed_is_silent_nobody_sends_whatever_else_is_heard() {
    let mut only_here = hosting("here", false, ControlsConfig::NONE);
    only_here.feeds = Some(vec!["nasdaq".to_string()]);
    let mut hot = two_feeds(vec![hosting("both", false, ControlsConfig::NONE), only_here]);
    let here = at(&hot, 0);
    let buy = |id| Ticket::limit(Side::Bid, id, 10, units(99));
    hot.rule.set_silent(true);
    let silent = Err(NotSent::Check(RiskReject::Silence));
    assert_eq!(submit(&mut hot, 0, 0, buy(here)), silent);
    assert_eq!(submit(&mut hot, 1, 0, buy(here)), silent);
    hot.rule.set_silent(false);
    assert!(submit(&mut hot, 0, 0, buy(here)).is_ok());
    assert!(submit(&mut hot, 1, 0, buy(here)).is_ok());
}

#[test]
fn what_does_not_fit_feeds_and_sessions_is_named() {
    let sources = [facts(0, "nasdaq", Venue::Nasdaq), facts(1, "bzx", Venue::Bzx)];
    let fails = |change: &dyn Fn(&mut Hosting<Told>), words: &str| {
        let mut wrong = hosting("one", true, ControlsConfig::NONE);
        change(&mut wrong);
        let failed = Live::hosting(vec![wrong]).prepare(&sources, &routes(), 4, Nanos::ZERO);
        let message = failed.expect_err("it does not fit").message;
        assert!(message.contains(words), "{words:?} in {message}");
    };
    fails(
        &|h| h.feeds = Some(vec!["edgx".to_string()]),
        "there is no feed edgx",
    );
    fails(
        &|h| h.sessions = Some(vec!["EDGX".to_string()]),
        "there is no session EDGX",
    );
    fails(
        &|h| h.sessions = Some(vec!["BZX".to_string()]),
        "serves feed nasdaq",
    );
    fails(
        &|h| h.feeds = Some(vec!["bzx".to_string()]),
        "a consolidated book is over every feed",
    );
}

#[test]
fn consolidated_books_are_kept_up_without_allocating() {
    let mut hot = two_feeds(vec![hosting("one", true, ControlsConfig::NONE)]);
    let before = hot.rule.hosted[0].conductor.strategy().supers;
    let ((), count) = count_allocations(|| {
        for order in 100..140 {
            for source in 0..2 {
                add(&mut hot, source, order, Side::Ask, order as i64 + 2);
            }
        }
    });
    assert_eq!((count.allocations, count.releases), (0, 0), "{count:?}");
    assert_eq!(hot.rule.hosted[0].conductor.strategy().supers, before + 80);
}

/// The fields of the last message that left over a session, behind its header.
fn last(hot: &Hot, session: usize) -> String {
    let text = String::from_utf8_lossy(hot.sessions[session].out.last()).replace('\x01', "|");
    let body = text.split_once("|56=").expect("a header").1;
    let body = body.split_once('|').expect("a name").1;
    body.rsplit_once("10=").expect("a checksum").0.to_string()
}

#[test]
fn a_stop_order_is_ord_type_3_with_its_trigger_and_a_replacement_moves_it() {
    let mut hot = two_feeds(vec![hosting("one", false, ControlsConfig::NONE)]);
    let here = at(&hot, 0);
    assert!(submit(&mut hot, 0, 0, Ticket::stop(Side::Bid, here, 10, units(105))).is_ok());
    let sent = last(&hot, 0);
    assert!(
        sent.starts_with("11=0000000000000001|38=10|40=3|54=1|99=105.00|55="),
        "{sent}"
    );
    let limit = Ticket::stop_limit(Side::Ask, here, 10, units(90), units(89));
    assert!(submit(&mut hot, 0, 0, limit).is_ok());
    let sent = last(&hot, 0);
    assert!(
        sent.starts_with("11=0000000000000002|38=10|40=4|44=89.00|54=2|99=90.00|55="),
        "{sent}"
    );
    assert_eq!(hot.rule.open(Some(0)), 2);
}

#[test]
fn quotes_leave_as_mass_quotes_and_answers_come_back() {
    let mut hot = two_feeds(vec![
        hosting("one", false, ControlsConfig::NONE),
        hosting("two", false, ControlsConfig::NONE),
    ]);
    let (here, there) = (at(&hot, 0), at(&hot, 1));
    let quote = |hot: &mut Hot, who: usize, quotes: &[Quote]| {
        let strategy = hot.rule.hosted[who].conductor.strategy_mut();
        strategy.quotes.extend(quotes);
        let levels = hot.books[0]
            .book(InstrumentId(1))
            .map_or(0, |b| b.levels(Side::Bid).len());
        add(hot, 0, 2_000 + levels as u64, Side::Bid, 99 - levels as i64);
        hot.let_go();
        hot.rule.hosted[who]
            .conductor
            .strategy_mut()
            .done
            .pop()
            .expect("it was asked for")
    };
    let both = [
        Quote::new(here, 10, units(98), units(102)),
        Quote::new(there, 10, units(98), units(102)),
    ];
    assert_eq!(quote(&mut hot, 0, &both), Err(NotSent::SeveralSessions));
    let id = quote(&mut hot, 0, &both[..1])
        .expect("it is within every limit")
        .0;
    let sent = last(&hot, 0);
    let expected = format!("117={id:016}|537=1|301=2|");
    assert!(sent.starts_with(&expected), "{sent}");
    let symbol = recorded::first_symbol();
    let entries = format!(
        "|296=1|302=1|304=01|295=01|299=900000000000|55={symbol}|132=000098.00|133=000102.00|134=000010|135=000010|"
    );
    assert!(sent.ends_with(&entries), "{sent}");
    // Rehearsed, nothing of it is said, nor of a quote that is written otherwise.
    let messages = hot.sessions[0].out.orders;
    parts(&mut hot, 0, 0, |conductor, markets, port| {
        conductor.act(Nanos(1), markets, port, |_, ctx| {
            ctx.rehearse_quotes(&both[..1], QuoteTerms::default());
            ctx.rehearse_quotes(&both, QuoteTerms::default());
        });
    });
    hot.let_go();
    assert_eq!((hot.sessions[0].out.orders, last(&hot, 0)), (messages, sent));
    // A venue has one quote of an instrument.
    let met = Err(NotSent::Check(RiskReject::SelfTrade));
    assert_eq!(
        quote(&mut hot, 1, &[Quote::new(here, 1, units(97), units(103))]),
        met
    );
    let now = Nanos(1);
    let heard = |hot: &mut Hot| std::mem::take(&mut hot.rule.hosted[0].conductor.strategy_mut().heard);
    let taken = QuoteAnswer::Answered {
        id,
        is_rejected: false,
    };
    <Live<Told> as Rule>::on_quotes(&mut hot, 0, now, &taken, (None, &[]));
    assert_eq!(heard(&mut hot), ["Accepted open [10, 10]"]);
    assert_eq!([hot.rule.open(Some(0)), hot.rule.open(Some(1))], [1, 0]);
    let less = QuoteAnswer::Left {
        symbol,
        open: [10, 0],
    };
    <Live<Told> as Rule>::on_quotes(&mut hot, 0, now, &less, (None, &[]));
    assert_eq!(heard(&mut hot), ["Removed(Other) open [10, 0]"]);
    // A kill takes it away, again and again until the venue has said so.
    hot.rule.kill();
    for (again, messages) in [(false, 1), (false, 0), (true, 1)] {
        let before = hot.sessions[0].out.orders;
        <Live<Told> as Rule>::cancel_quotes(&mut hot, 0, now, again);
        assert_eq!(hot.sessions[0].out.orders, before + messages);
    }
    let sent = last(&hot, 0);
    assert!(sent.contains("|298=1|301=2|295=1|55="), "{sent}");
    let number = sent.split('|').find_map(|field| field.strip_prefix("117="));
    let done = QuoteAnswer::Cancelled {
        id: number.expect("a QuoteID").parse().expect("a number"),
        is_done: true,
    };
    <Live<Told> as Rule>::on_quotes(&mut hot, 0, now, &done, (None, &[]));
    assert_eq!(heard(&mut hot), ["Cancelled open [0, 0]"]);
    assert_eq!(hot.rule.open(None), 0);
}
