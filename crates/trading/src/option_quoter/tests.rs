//! The strategy beside quoter and eye themselves: of the same market, ladders, answers and fills come the
//! same mass quotes and orders.

mod eye_alone;

use super::*;
use crate::quoter::tests::{QUOTES, Random, config, ladder, quoting, theos};
use crate::strategy::{
    Conductor, ConductorConfig, Markets, OrderPort, Outcome, QuoteIntent, QuoteReport, Rejected,
};
use crate::{
    Controls, ControlsConfig, HedgeConfig, MassQuote, OrderReport, OrderSink, QuoteSink, Quoting, RiskConfig,
};
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec;
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_market::{
    EventFlags, EventKind, Instrument, MarketEvent, MassQuoteEntry, OrderIntent, SeqNo, Venue, Volume,
};

const BITS: u32 = 8;
const UNDERLYING: InstrumentId = InstrumentId(1);
const FIRST: u32 = 2;
const MIDDLE: i64 = 8_000;

/// What left, of either.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Sent {
    Mass(bool, Vec<MassQuoteEntry>),
    Cancel,
    /// Option, none of a hedge; side, price, quantity.
    Order(Option<u16>, Side, Price, Qty),
}

/// Ladders on their way, and what traded.
#[derive(Default)]
struct Desk {
    ladders: VecDeque<Ladders>,
    trades: Vec<QuoterTrade>,
}

impl Pricing for Desk {
    fn next(&mut self) -> Option<Ladders> {
        self.ladders.pop_front()
    }

    fn give_back(&mut self, _: Ladders) {}

    fn traded(&mut self, trade: &QuoterTrade) -> bool {
        self.trades.push(*trade);
        true
    }
}

/// The order session of the strategy.
#[derive(Default)]
struct Session {
    sent: Vec<(u64, Sent)>,
}

impl OrderPort for Session {
    fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        let OrderIntent::New {
            id,
            instrument,
            side,
            price,
            qty,
            ..
        } = *request
        else {
            return Err(Rejected::Unsupported);
        };
        let option = instrument.0.checked_sub(FIRST).map(|option| option as u16);
        self.sent.push((id.0, Sent::Order(option, side, price, qty)));
        Ok(())
    }

    fn quote(&mut self, _: Nanos, request: &QuoteIntent<'_>) -> Result<(), Rejected> {
        let tick = config().option_tick.raw();
        let told = match *request {
            QuoteIntent::Mass {
                id, entries, resets, ..
            } => {
                let entries = entries.iter().map(|entry| {
                    let ticks = |side: usize, none: u16| match entry.quote.sides[side] {
                        (_, Qty::ZERO) => none,
                        (price, _) => (price.raw() / tick) as u16,
                    };
                    MassQuoteEntry {
                        quote: (entry.quote.instrument.0 - FIRST) as u16,
                        bid_ticks: ticks(0, NO_BID),
                        ask_ticks: ticks(1, NO_ASK),
                        bid_qty: entry.quote.sides[0].1,
                        ask_qty: entry.quote.sides[1].1,
                    }
                });
                (id.0, Sent::Mass(resets, entries.collect()))
            }
            QuoteIntent::CancelAll { id, .. } => (id.0, Sent::Cancel),
            // The host's own, after a lost session.
            QuoteIntent::Cancel { id, .. } => (id.0, Sent::Cancel),
            QuoteIntent::Status { .. } => return Err(Rejected::Unsupported),
        };
        self.sent.push(told);
        Ok(())
    }
}

/// Where the quoter's own messages go.
#[derive(Default)]
struct Direct {
    sent: Vec<(u64, Sent)>,
}

impl QuoteSink for Direct {
    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool {
        self.sent
            .push((quote.id, Sent::Mass(quote.reset, quote.entries.to_vec())));
        true
    }

    fn cancel_all(&mut self, id: u64, _: &Cause) -> bool {
        self.sent.push((id, Sent::Cancel));
        true
    }
}

impl OrderSink for Direct {
    fn order(&mut self, option: Option<u16>, order: &OrderIntent) -> bool {
        let OrderIntent::New {
            id, side, price, qty, ..
        } = *order
        else {
            return false;
        };
        self.sent.push((id.0, Sent::Order(option, side, price, qty)));
        true
    }
}

fn eye() -> EyeConfig {
    EyeConfig {
        underlying: UNDERLYING,
        option_tick: config().option_tick,
        underlying_tick: config().underlying_tick,
        contracts_max: 1_000_000,
        orders_max: 1_000_000,
        long_max: 1_000_000,
        short_max: 1_000_000,
        premium_max: [u64::MAX / 4; 2],
        believed_ticks: u16::MAX,
        ladder_age_max_ns: 0,
        answer_max_ns: Nanos::DAY,
        armed_ns: 365 * Nanos::DAY,
        cool_down_ns: Nanos::MILLI,
        hedge: Some(HedgeConfig {
            through_ticks: 2,
            size_max: Qty(100),
            orders_max: 1_000_000,
        }),
        ..EyeConfig::default()
    }
}

/// The underlying and the options on it.
fn market() -> (Symbol, Vec<QuotedOption>) {
    let options = (0..QUOTES).map(|n| QuotedOption {
        symbol: Symbol::new(format!("O{n}").as_bytes()).expect("a symbol"),
        delta_milli: 500,
    });
    (Symbol::new(b"FUT").expect("a symbol"), options.collect())
}

/// A host that stops next to nothing.
fn host() -> ConductorConfig {
    ConductorConfig {
        instrument_bits: BITS,
        risk: RiskConfig {
            max_order_qty: Qty(1_000_000),
            price_band_bp: 1_000_000,
            max_orders_per_window: 1_000_000,
            max_position: 1 << 40,
            max_open_orders: 1_000,
            controls: ControlsConfig::NONE,
            ..RiskConfig::default()
        },
        ..ConductorConfig::default()
    }
}

fn books() -> Books {
    Books::new(BooksConfig {
        depth: Depth::ByPrice,
        instruments: 1 << BITS,
        orders: 64,
        levels: 4_096,
        initial: BookState::Live,
        ..BooksConfig::default()
    })
}

/// A level of the venue.
fn level(
    (now, seq): (Nanos, u64),
    instrument: InstrumentId,
    side: Side,
    price: Price,
    qty: u64,
    is_last: bool,
) -> MarketEvent {
    MarketEvent {
        kind: EventKind::Level,
        instrument,
        side,
        price,
        qty: Volume(qty),
        seq: SeqNo(seq),
        recv_ts: now,
        flags: match is_last {
            true => EventFlags::LAST,
            false => EventFlags::NONE,
        },
        ..MarketEvent::default()
    }
}

/// Both, on one market.
struct Both {
    random: Random,
    books: Vec<Books>,
    conductor: Conductor<OptionQuoter<Desk>>,
    session: Session,
    maker: MarketMaker,
    direct: Direct,
    /// Its ladders on their way.
    ladders: VecDeque<Ladders>,
    quoting: Quoting,
    now: Nanos,
    seq: u64,
    half_tick: i64,
    /// Prices of the underlying that are shown, in ticks.
    shown: [i64; 2],
    /// Requests that the venue has not answered: the strategy's number, the quoter's or the eye's, and what
    /// it was.
    open: VecDeque<(u64, u64, Sent)>,
    messages: u64,
    orders: u64,
}

impl Both {
    fn new(seed: u64) -> Both {
        let (underlying, options) = market();
        let strategy =
            OptionQuoter::new(config(), underlying, options.clone(), Desk::default()).with_eye(eye());
        let mut both = Both {
            random: Random(seed),
            books: vec![books()],
            conductor: Conductor::new(strategy, &host()),
            session: Session::default(),
            maker: maker(),
            direct: Direct::default(),
            ladders: VecDeque::new(),
            quoting: quoting(),
            now: Nanos(Nanos::SECOND),
            seq: 0,
            half_tick: MIDDLE,
            shown: [0; 2],
            open: VecDeque::new(),
            messages: 0,
            orders: 0,
        };
        let now = both.now;
        both.with(|c, m, s| c.start(now, m, s));
        both.own(|maker, _| maker.on_logon(now));
        let names = [(UNDERLYING, underlying)].into_iter();
        let options = (FIRST..).map(InstrumentId).zip(options.iter().map(|o| o.symbol));
        for (id, symbol) in names.chain(options) {
            let instrument = Instrument {
                id,
                symbol,
                venue: Venue::Cme,
                ..Instrument::default()
            };
            assert!(both.with(|c, m, s| c.define(now, 0, &instrument, None, m, s)));
        }
        // The underlying was shown without any price when it was named.
        let top = both.told_top(UNDERLYING);
        both.own(|maker, sink| {
            maker.quoter.on_change(now);
            maker.on_underlying(now, &top, sink);
        });
        for option in 0..QUOTES as u16 {
            // A market of others, which nothing is held to.
            both.level_of(option, Side::Bid, Price::from_4dp(500), 1);
            both.level_of(option, Side::Ask, Price::from_4dp(400_000_000), 1);
        }
        both.command("arm");
        both.own(|maker, _| _ = maker.arm_eye(now, &[true; QUOTES]));
        both.compare("named");
        // It was not to be trusted: whatever the venue has is cancelled.
        while !both.open.is_empty() {
            both.answer();
            both.compare("named");
        }
        // Calm again.
        both.now = both.now.after(Nanos::SECOND);
        both
    }

    /// Quoter and eye by themselves do something.
    fn own<T>(&mut self, does: impl FnOnce(&mut MarketMaker, &mut Direct) -> T) -> T {
        let done = does(&mut self.maker, &mut self.direct);
        self.maker.follow_pull(self.now);
        done
    }

    fn command(&mut self, words: &str) {
        let now = self.now;
        self.with(|c, m, s| c.on_command(now, words, m, s));
    }

    fn with<T>(
        &mut self,
        does: impl FnOnce(&mut Conductor<OptionQuoter<Desk>>, Markets<'_>, &mut Session) -> T,
    ) -> T {
        let markets = Markets::new(&self.books, BITS);
        does(&mut self.conductor, markets, &mut self.session)
    }

    fn level(&mut self, instrument: InstrumentId, side: Side, price: Price, qty: u64, is_last: bool) {
        self.seq += 1;
        let event = level((self.now, self.seq), instrument, side, price, qty, is_last);
        let outcome = Outcome::of(&mut self.books[0], &event);
        let markets = Markets::new(&self.books, BITS);
        self.conductor
            .on_event(0, &event, &outcome, true, markets, &mut self.session);
    }

    /// The underlying moves.
    fn tick(&mut self) {
        self.half_tick += self.random.below(7) as i64 - 3;
        let bid = (self.half_tick - 1).div_euclid(2);
        let prices = [bid, bid + 1 + (self.half_tick - 1).rem_euclid(2)];
        if prices == self.shown {
            return;
        }
        let tick = config().underlying_tick.raw();
        let before = core::mem::replace(&mut self.shown, prices);
        let price = |ticks: i64| Price::from_raw(ticks * tick);
        for side in Side::BOTH {
            if before != [0; 2] && before[side as usize] != prices[side as usize] {
                self.level(UNDERLYING, side, price(before[side as usize]), 0, false);
            }
        }
        self.level(UNDERLYING, Side::Bid, price(prices[0]), 5, false);
        self.level(UNDERLYING, Side::Ask, price(prices[1]), 5, true);
        let (now, top) = (self.now, self.told_top(UNDERLYING));
        self.own(|maker, sink| {
            maker.quoter.on_change(now);
            maker.on_underlying(now, &top, sink);
        });
    }

    /// A level of others in an option.
    fn level_of(&mut self, option: u16, side: Side, price: Price, qty: u64) {
        let id = InstrumentId(FIRST + u32::from(option));
        self.level(id, side, price, qty, true);
        let (now, top) = (self.now, self.told_top(id));
        self.own(|maker, sink| maker.on_option(now, option, &top, sink));
    }

    /// Somebody shows a price in an option that is better than it should be, and takes it away.
    fn tempt(&mut self) {
        let option = self.random.below(QUOTES as u64) as u16;
        let side = [Side::Bid, Side::Ask][self.random.below(2) as usize];
        let value = theos(self.half_tick, 0)[usize::from(option)];
        let ticks = match side {
            Side::Bid => value * 24.0 + 40.0,
            Side::Ask => value * 16.0 - 40.0,
        };
        if !(2.0..=60_000.0).contains(&ticks) {
            return;
        }
        let price = Price::from_raw(config().option_tick.raw() * ticks as i64);
        let qty = 1 + self.random.below(20);
        self.level_of(option, side, price, qty);
        self.level_of(option, side, price, 0);
    }

    /// The first quotes leave.
    fn begin(&mut self) {
        self.tick();
        self.turn(Some(1));
        self.compare("first");
        // There was no ladder when it moved: calm again once all of that is taken away.
        while !self.open.is_empty() {
            self.answer();
            self.compare("first");
        }
        self.now = self.now.after(200 * Nanos::MILLI);
        self.turn(None);
        self.compare("calm");
    }

    /// An instrument as the strategy was told last.
    fn told_top(&self, of: InstrumentId) -> BookUpdate {
        let mut known = self.conductor.instruments();
        *known.find(|(id, ..)| *id == of).expect("it is known").2
    }

    /// The host's loop turns.
    fn turn(&mut self, ladder: Option<u64>) {
        if let Some(version) = ladder {
            let made = || Ladders {
                quotes: ladder_of(version, self.half_tick, &self.quoting),
                eye: Some(ladder_of(version, self.half_tick, &self.quoting)),
                hedges: vec![500; QUOTES],
            };
            let (theirs, ours) = (made(), made());
            self.conductor
                .strategy_mut()
                .pricing_mut()
                .ladders
                .push_back(theirs);
            self.ladders.push_back(ours);
        }
        let now = self.now;
        self.with(|c, m, s| c.on_turn(now, m, s));
        let ladders = core::mem::take(&mut self.ladders);
        self.own(|maker, sink| {
            maker.on_turn(now, sink);
            for made in ladders {
                maker.set_hedges(&made.hedges);
                if let Some(eye) = made.eye {
                    maker.replace_eye_ladder(now, eye, sink);
                }
                maker.replace_ladder(now, made.quotes, sink);
            }
            if maker.poll_timeout().is_some_and(|due| due <= now) {
                maker.handle_timeout(now, sink);
            }
        });
        if self.conductor.next_timer().is_none_or(|due| due > now) {
            return;
        }
        self.with(|c, m, s| c.on_time(now, m, s));
        let top = self.told_top(UNDERLYING);
        if let QuotingState::Halted(reason) = self.maker.quoter.state()
            && reason.is_passing()
            && top.state == BookState::Live
        {
            self.own(|maker, sink| maker.on_underlying(now, &top, sink));
        }
    }

    /// The venue answers the oldest request.
    fn answer(&mut self) {
        let Some((theirs, ours, sent)) = self.open.pop_front() else {
            return;
        };
        let now = self.now;
        let id = ClientOrderId(theirs);
        match sent {
            Sent::Cancel => {
                let done = QuoteReport::Cancelled { id, is_done: true };
                self.with(|c, m, s| c.on_quote_report(now, &done, m, s));
                self.own(|maker, sink| maker.quoter.on_cancelled(now, ours, true, sink));
            }
            Sent::Mass(_, entries) => {
                let is_rejected = self.random.one_in(40);
                let refused: Vec<u16> = entries
                    .iter()
                    .map(|entry| entry.quote)
                    .filter(|_| is_rejected || self.random.one_in(60))
                    .collect();
                let names: Vec<u64> = refused.iter().map(|quote| self.name(*quote)).collect();
                let report = QuoteReport::Answered {
                    id,
                    is_rejected,
                    refused: &names,
                };
                self.with(|c, m, s| c.on_quote_report(now, &report, m, s));
                self.own(|maker, sink| {
                    let refused = (!is_rejected).then_some(&refused[..]);
                    maker.quoter.on_answer(now, ours, refused, sink);
                });
            }
            Sent::Order(option, side, price, qty) => {
                self.answer_order((theirs, ours), option, side, price, qty)
            }
        }
    }

    /// An order of the eye trades in part, or not, and is over.
    fn answer_order(
        &mut self,
        (theirs, ours): (u64, u64),
        option: Option<u16>,
        side: Side,
        price: Price,
        qty: Qty,
    ) {
        let filled = Qty(self.random.below(u64::from(qty.0) + 1) as u32);
        let fill = ReportKind::Filled {
            qty: filled,
            price,
            cumulative: filled,
        };
        let fill = (!filled.is_zero()).then_some(fill);
        let end = (filled < qty).then_some(ReportKind::Cancelled);
        let now = self.now;
        for kind in [fill, end].into_iter().flatten() {
            let report = |id: u64| OrderReport {
                id: ClientOrderId(id),
                venue_id: None,
                kind,
            };
            let done = self.with(|c, m, s| c.on_report(now, &report(theirs), m, s));
            assert!(done.is_ok(), "{done:?}");
            self.own(|maker, sink| {
                let done = maker.on_eye_report(now, &report(ours), sink);
                assert_eq!(done, Some(Ok(())));
                if let (ReportKind::Filled { qty, .. }, Some(option)) = (kind, option) {
                    let ticks = (price.raw() / config().option_tick.raw()) as u16;
                    let counted = Fill {
                        quote: option,
                        side,
                        qty,
                        ticks,
                        delta_milli: 500,
                    };
                    let fill = EyeFill {
                        option,
                        contracts: counted.signed(),
                        paid: counted.paid(),
                        counted: Some(counted),
                    };
                    maker.on_eye_trade(now, (kind, true, false), &fill, sink);
                }
            });
        }
    }

    fn name(&self, quote: u16) -> u64 {
        let id = InstrumentId(FIRST + u32::from(quote));
        let mut known = self.conductor.quotes();
        known.find(|own| own.instrument == id).map_or(0, |own| own.name)
    }

    /// Some of a live quote trades.
    fn fill(&mut self) {
        let quote = self.random.below(QUOTES as u64) as u16;
        let side = [Side::Bid, Side::Ask][self.random.below(2) as usize];
        let open = self.maker.quoter.open(quote)[side as usize];
        if open == 0 || self.maker.quoter.is_in_flight(quote) {
            return;
        }
        let (bid, ask) = self.maker.quoter.live(quote);
        let ticks = if side == Side::Bid { bid } else { ask };
        let price = Price::from_raw(config().option_tick.raw() * i64::from(ticks));
        let (now, qty) = (self.now, Qty(1 + self.random.below(open.into()) as u32));
        let report = QuoteReport::Filled {
            name: self.name(quote),
            side,
            qty,
            price,
            of: (price, config().size),
        };
        self.with(|c, m, s| c.on_quote_report(now, &report, m, s));
        let fill = Fill {
            quote,
            side,
            qty,
            ticks,
            delta_milli: 500,
        };
        self.own(|maker, sink| maker.on_fill(now, &fill, sink));
    }

    /// What left of both since the last look is the same.
    fn compare(&mut self, what: &str) {
        let (theirs, ours) = (
            core::mem::take(&mut self.session.sent),
            core::mem::take(&mut self.direct.sent),
        );
        let their: Vec<&Sent> = theirs.iter().map(|(_, sent)| sent).collect();
        let own: Vec<&Sent> = ours.iter().map(|(_, sent)| sent).collect();
        let strategy = self.conductor.strategy();
        let state = strategy.quoter().state();
        assert_eq!(
            their,
            own,
            "{what}: {state:?}, stopped by {:?}",
            strategy.last_stop()
        );
        assert_eq!(state, self.maker.quoter.state(), "{what}");
        for ((theirs, sent), (ours, _)) in theirs.into_iter().zip(ours) {
            self.messages += 1;
            self.orders += u64::from(matches!(sent, Sent::Order(..)));
            self.open.push_back((theirs, ours, sent));
        }
    }
}

fn maker() -> MarketMaker {
    let places: Vec<InstrumentId> = (0..QUOTES as u32).map(InstrumentId).collect();
    let mut maker = MarketMaker::new(Quoter::new(config()));
    maker.set_eye(Eye::new(eye(), &places));
    maker
}

fn ladder_of(version: u64, around: i64, quoting: &Quoting) -> Box<Ladder> {
    ladder(version, around, 300, quoting)
}

#[test]
fn as_a_strategy_it_sends_what_it_sends_by_itself() {
    let (mut messages, mut orders, mut hedges) = (0, 0, 0);
    for seed in 0..20 {
        let mut both = Both::new(seed);
        let mut version = 0;
        for step in 0..1_500 {
            let what = format!("seed {seed}, step {step}");
            both.now = both.now.after(100_000 + both.random.below(Nanos::MILLI));
            match both.random.below(20) {
                0 => {
                    version += 1;
                    both.turn(Some(version));
                }
                1 | 2 => both.turn(None),
                3..=6 => both.tick(),
                7 | 8 => both.tempt(),
                9..=15 => both.answer(),
                16 | 17 => both.fill(),
                18 if both.random.one_in(10) => {
                    let now = both.now;
                    both.command("pull");
                    both.own(|maker, sink| maker.pull_by(|quoter| quoter.pull(now, sink)));
                }
                _ => {
                    let now = both.now;
                    both.command("resume");
                    let top = both.told_top(UNDERLYING);
                    both.own(|maker, sink| {
                        if maker.resume(now) {
                            maker.on_underlying(now, &top, sink);
                        }
                    });
                    both.command("arm");
                    both.own(|maker, _| _ = maker.arm_eye(now, &[true; QUOTES]));
                }
            }
            both.compare(&what);
        }
        for quote in 0..QUOTES as u16 {
            let strategy = both.conductor.strategy().quoter();
            assert_eq!(
                strategy.live(quote),
                both.maker.quoter.live(quote),
                "seed {seed}, quote {quote}"
            );
            assert_eq!(
                strategy.open(quote),
                both.maker.quoter.open(quote),
                "seed {seed}, quote {quote}"
            );
            let id = InstrumentId(FIRST + u32::from(quote));
            let held = both.conductor.positions().get(id).qty;
            let by_eye = both.maker.eye().map_or(0, |eye| eye.position(quote));
            let own = both.maker.quoter.position(quote) + by_eye;
            assert_eq!(held, own, "seed {seed}, quote {quote}");
            let told = both.conductor.strategy_mut().pricing_mut().trades.iter();
            let of_it = told.filter(|trade| trade.of != TradeOf::Hedge && trade.quote == quote);
            let booked: i64 = of_it
                .map(|trade| match trade.side {
                    Side::Bid => i64::from(trade.qty.0),
                    Side::Ask => -i64::from(trade.qty.0),
                })
                .sum();
            assert_eq!(booked, own, "seed {seed}, quote {quote}");
        }
        (messages, orders) = (messages + both.messages, orders + both.orders);
        let told = both.conductor.strategy_mut().pricing_mut().trades.iter();
        hedges += told.filter(|trade| trade.of == TradeOf::Hedge).count();
    }
    assert!(
        messages > 2_000 && orders > 200 && hedges > 20,
        "{messages} messages, {orders} of them orders, {hedges} hedges"
    );
}

#[test]
fn what_the_host_stops_or_loses_takes_quotes_away_and_they_come_again() {
    let mut both = Both::new(7);
    both.begin();
    while !both.open.is_empty() {
        both.answer();
        both.compare("answers");
    }
    let live = |both: &Both| {
        let quoter = both.conductor.strategy().quoter();
        (0..QUOTES as u16)
            .filter(|quote| quoter.open(*quote) != [0; 2])
            .count()
    };
    assert!(live(&both) > QUOTES / 4);
    // The session is lost: nothing is believed live; logged on again, everything is quoted anew.
    both.conductor.set_session(false);
    both.now = both.now.after(2 * Nanos::MILLI);
    let now = both.now;
    both.with(|c, m, s| c.on_turn(now, m, s));
    let state = both.conductor.strategy().quoter().state();
    assert_eq!(
        (state, live(&both)),
        (QuotingState::Halted(PullReason::NoSession), 0)
    );
    // The venue confirms to the host what it asks after a logon.
    both.conductor.set_session(true);
    both.with(|c, m, s| c.cancel_quotes_of(now, true, |_| true, m, s));
    for (id, _) in core::mem::take(&mut both.session.sent) {
        let done = QuoteReport::Cancelled {
            id: ClientOrderId(id),
            is_done: true,
        };
        both.with(|c, m, s| c.on_quote_report(now, &done, m, s));
    }
    both.now = both.now.after(2 * Nanos::MILLI);
    let now = both.now;
    both.with(|c, m, s| c.on_turn(now, m, s));
    (0..4).for_each(|_| both.tick());
    let again = both
        .session
        .sent
        .iter()
        .filter(|(_, sent)| matches!(sent, Sent::Mass(..)));
    let strategy = both.conductor.strategy();
    let (state, stop) = (strategy.quoter().state(), strategy.last_stop());
    assert!(again.count() > 0, "{state:?}, {stop:?}");
    // A stopped host takes them away, until an operator resumes.
    both.conductor.kill();
    both.now = both.now.after(2 * Nanos::MILLI);
    let now = both.now;
    both.with(|c, m, s| c.on_turn(now, m, s));
    let state = both.conductor.strategy().quoter().state();
    assert_eq!(state, QuotingState::Pulling(PullReason::Control));
    assert!(both.session.sent.iter().any(|(_, sent)| *sent == Sent::Cancel));
}

#[test]
fn what_trades_before_its_answer_is_counted_once() {
    let mut both = Both::new(3);
    both.begin();
    let Some((id, _, Sent::Mass(_, entries))) = both.open.front().cloned() else {
        panic!(
            "a mass quote left, not {:?} by {:?}",
            both.open.front(),
            both.maker.quoter.state()
        )
    };
    let entry = *entries
        .iter()
        .find(|entry| !entry.bid_qty.is_zero())
        .expect("a bid");
    let price = Price::from_raw(config().option_tick.raw() * i64::from(entry.bid_ticks));
    let (now, name) = (both.now, both.name(entry.quote));
    let filled = QuoteReport::Filled {
        name,
        side: Side::Bid,
        qty: Qty(4),
        price,
        of: (price, entry.bid_qty),
    };
    let answered = QuoteReport::Answered {
        id: ClientOrderId(id),
        is_rejected: false,
        refused: &[],
    };
    both.with(|c, m, s| {
        c.on_quote_report(now, &filled, m, s);
        c.on_quote_report(now, &answered, m, s);
    });
    let quoter = both.conductor.strategy().quoter();
    assert_eq!(quoter.state(), QuotingState::Quoting);
    assert_eq!(quoter.position(entry.quote), 4);
    assert_eq!(quoter.open(entry.quote)[0], entry.bid_qty.0 - 4);
}

#[test]
fn an_order_of_the_eye_that_a_check_stops_pulls_no_quote() {
    let mut both = Both::new(5);
    both.begin();
    while !both.open.is_empty() {
        both.answer();
        both.compare("answers");
    }
    // Nothing may be bought or sold any more: by anybody's order, quotes as well.
    let now = both.now;
    let refused = both.with(|c, m, s| {
        c.risk_mut().set_controls(Controls::new(
            ControlsConfig {
                value_max: 1,
                ..ControlsConfig::NONE
            },
            1 << BITS,
        ));
        c.act(now, m, s, |quoter, ctx| {
            let intent = OrderIntent::New {
                id: ClientOrderId(1),
                instrument: UNDERLYING,
                side: Side::Bid,
                order_type: tickwire_market::OrderType::Limit,
                price: Price::from_4dp(10_000_000),
                stop: None,
                qty: Qty(10),
                time_in_force: tickwire_market::TimeInForce::ImmediateOrCancel,
                cause: Cause::default(),
            };
            quoter.with(ctx, |_, _, port| !port.order(None, &intent))
        })
    });
    assert!(refused, "it was stopped");
    assert!(both.session.sent.is_empty(), "{:?}", both.session.sent);
    let state = both.conductor.strategy().quoter().state();
    assert_eq!(state, QuotingState::Quoting);
}
