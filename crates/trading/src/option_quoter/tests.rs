//! The strategy beside the quoter itself: of the same market, ladders, answers and fills come the same mass
//! quotes.

use super::*;
use crate::quoter::tests::{QUOTES, Random, config, ladder, quoting};
use crate::strategy::{
    Conductor, ConductorConfig, Markets, OrderPort, Outcome, QuoteIntent, QuoteReport, Rejected,
};
use crate::{ControlsConfig, Quoting, RiskConfig};
use alloc::collections::VecDeque;
use alloc::format;
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_market::{
    BookUpdate, ClientOrderId, EventFlags, EventKind, MarketEvent, OrderIntent, SeqNo, Venue, Volume,
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
}

/// Ladders on their way.
#[derive(Default)]
struct Queue(VecDeque<Box<Ladder>>);

impl Ladders for Queue {
    fn next(&mut self) -> Option<Box<Ladder>> {
        self.0.pop_front()
    }

    fn give_back(&mut self, _: Box<Ladder>) {}
}

/// The order session of the strategy.
#[derive(Default)]
struct Session {
    sent: Vec<(u64, Sent)>,
}

impl OrderPort for Session {
    fn send(&mut self, _: Nanos, _: &OrderIntent) -> Result<(), Rejected> {
        Err(Rejected::Unsupported)
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
            QuoteIntent::Cancel { id, .. } => (id.0, Sent::Cancel),
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

/// Both, on one market.
struct Both {
    random: Random,
    books: Vec<Books>,
    conductor: Conductor<OptionQuoter<Queue>>,
    session: Session,
    quoter: Quoter,
    direct: Direct,
    /// Its ladders on their way.
    ladders: VecDeque<Box<Ladder>>,
    quoting: Quoting,
    now: Nanos,
    seq: u64,
    half_tick: i64,
    /// Prices of the underlying that are shown, in ticks.
    shown: [i64; 2],
    /// Requests that the venue has not answered: the strategy's numbers (it cancels some at a time), the
    /// quoter's, and what it was.
    open: VecDeque<(Vec<u64>, u64, Sent)>,
    messages: u64,
}

impl Both {
    fn new(seed: u64) -> Both {
        let options = (0..QUOTES).map(|n| QuotedOption {
            symbol: Symbol::new(format!("O{n}").as_bytes()).expect("a symbol"),
            delta_milli: 500,
        });
        let underlying = Symbol::new(b"FUT").expect("a symbol");
        let options: Vec<QuotedOption> = options.collect();
        let strategy = OptionQuoter::new(config(), underlying, options.clone(), Queue::default());
        let conductor = ConductorConfig {
            instrument_bits: BITS,
            risk: RiskConfig {
                max_order_qty: Qty(1_000_000),
                price_band_bp: 1_000_000,
                max_orders_per_window: 1_000_000,
                max_position: 1 << 40,
                controls: ControlsConfig::NONE,
                ..RiskConfig::default()
            },
            ..ConductorConfig::default()
        };
        let books = Books::new(BooksConfig {
            depth: Depth::ByPrice,
            instruments: 1 << BITS,
            orders: 64,
            levels: 4_096,
            initial: BookState::Live,
            ..BooksConfig::default()
        });
        let mut both = Both {
            random: Random(seed),
            books: vec![books],
            conductor: Conductor::new(strategy, &conductor),
            session: Session::default(),
            quoter: Quoter::new(QuoterConfig {
                silence: SilenceConfig {
                    least_ns: 0,
                    most_ns: 0,
                },
                ..config()
            }),
            direct: Direct::default(),
            ladders: VecDeque::new(),
            quoting: quoting(),
            now: Nanos(Nanos::SECOND),
            seq: 0,
            half_tick: MIDDLE,
            shown: [0; 2],
            open: VecDeque::new(),
            messages: 0,
        };
        let now = both.now;
        both.with(|c, m, s| c.start(now, m, s));
        both.quoter.on_logon(now);
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
        for id in (FIRST..).take(QUOTES) {
            // A market of others, which nothing is held to.
            both.level(InstrumentId(id), Side::Bid, Price::from_4dp(500), 1, false);
            both.level(InstrumentId(id), Side::Ask, Price::from_4dp(4_000_000), 1, true);
        }
        // The underlying was shown without any price when it was named.
        let top = both.told_top();
        both.quoter.on_change(now);
        both.quoter.on_underlying(now, &top, &mut both.direct);
        both.compare("named");
        // Calm again.
        both.now = both.now.after(Nanos::SECOND);
        both
    }

    fn with<T>(
        &mut self,
        does: impl FnOnce(&mut Conductor<OptionQuoter<Queue>>, Markets<'_>, &mut Session) -> T,
    ) -> T {
        let markets = Markets::new(&self.books, BITS);
        does(&mut self.conductor, markets, &mut self.session)
    }

    fn level(&mut self, instrument: InstrumentId, side: Side, price: Price, qty: u64, is_last: bool) {
        self.seq += 1;
        let event = MarketEvent {
            kind: EventKind::Level,
            instrument,
            side,
            price,
            qty: Volume(qty),
            seq: SeqNo(self.seq),
            recv_ts: self.now,
            flags: match is_last {
                true => EventFlags::LAST,
                false => EventFlags::NONE,
            },
            ..MarketEvent::default()
        };
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
        let top = self.told_top();
        self.quoter.on_change(self.now);
        self.quoter.on_underlying(self.now, &top, &mut self.direct);
    }

    /// The underlying as the strategy was told last.
    fn told_top(&self) -> BookUpdate {
        let mut known = self.conductor.instruments();
        *known.find(|(id, ..)| *id == UNDERLYING).expect("it is known").2
    }

    /// The host's timers.
    fn timer(&mut self, ladder: Option<u64>) {
        if let Some(version) = ladder {
            let made = ladder_of(version, self.half_tick, &self.quoting);
            self.conductor
                .strategy_mut()
                .ladders_mut()
                .0
                .push_back(made.clone());
            self.ladders.push_back(made);
        }
        let now = self.now;
        if self.conductor.next_timer().is_none_or(|due| due > now) {
            return;
        }
        self.with(|c, m, s| c.on_time(now, m, s));
        self.quoter.on_turn(now, &mut self.direct);
        while let Some(ladder) = self.ladders.pop_front() {
            self.quoter.replace_ladder(now, ladder, &mut self.direct);
        }
        if self.quoter.poll_timeout().is_some_and(|due| due <= now) {
            self.quoter.handle_timeout(now, &mut self.direct);
        }
        let top = self.told_top();
        if let QuotingState::Halted(reason) = self.quoter.state()
            && reason.is_passing()
            && top.state == BookState::Live
        {
            self.quoter.on_underlying(now, &top, &mut self.direct);
        }
    }

    /// The venue answers the oldest request.
    fn answer(&mut self) {
        let Some((theirs, ours, sent)) = self.open.pop_front() else {
            return;
        };
        let now = self.now;
        let Sent::Mass(_, entries) = sent else {
            for id in theirs.into_iter().map(ClientOrderId) {
                let done = QuoteReport::Cancelled { id, is_done: true };
                self.with(|c, m, s| c.on_quote_report(now, &done, m, s));
            }
            self.quoter.on_cancelled(now, ours, true, &mut self.direct);
            return;
        };
        let id = ClientOrderId(theirs[0]);
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
        let is_any = refused.len() < entries.len();
        self.quoter
            .on_answer(now, ours, is_any.then_some(&refused), &mut self.direct);
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
        let open = self.quoter.open(quote)[side as usize];
        if open == 0 || self.quoter.is_in_flight(quote) {
            return;
        }
        let (bid, ask) = self.quoter.live(quote);
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
        self.quoter.on_fill(now, &fill, &mut self.direct);
    }

    /// What left of both since the last look is the same. A cancellation of nothing is none at the venue, and
    /// done at once.
    fn compare(&mut self, what: &str) {
        let now = self.now;
        let (theirs, mut ours) = (
            core::mem::take(&mut self.session.sent),
            core::mem::take(&mut self.direct.sent),
        );
        let is_cancel = |(_, sent): &(u64, Sent)| *sent == Sent::Cancel;
        if !theirs.iter().any(is_cancel)
            && let Some(at) = ours.iter().position(is_cancel)
        {
            let (id, _) = ours.remove(at);
            self.quoter.on_cancelled(now, id, true, &mut self.direct);
            ours.append(&mut self.direct.sent);
        }
        let mut requests: Vec<(Vec<u64>, Sent)> = Vec::new();
        for (id, sent) in theirs {
            match requests.last_mut() {
                Some((ids, Sent::Cancel)) if sent == Sent::Cancel => ids.push(id),
                _ => requests.push((vec![id], sent)),
            }
        }
        let their: Vec<&Sent> = requests.iter().map(|(_, sent)| sent).collect();
        let own: Vec<&Sent> = ours.iter().map(|(_, sent)| sent).collect();
        let state = self.conductor.strategy().quoter().state();
        assert_eq!(
            their,
            own,
            "{what}: {state:?}, stopped by {:?}",
            self.conductor.strategy().last_stop()
        );
        for ((theirs, sent), (ours, _)) in requests.into_iter().zip(ours) {
            self.messages += 1;
            self.open.push_back((theirs, ours, sent));
        }
        let strategy = self.conductor.strategy().quoter();
        assert_eq!(strategy.state(), self.quoter.state(), "{what}");
    }
}

fn ladder_of(version: u64, around: i64, quoting: &Quoting) -> Box<Ladder> {
    ladder(version, around, 300, quoting)
}

#[test]
fn as_a_strategy_it_sends_what_it_sends_by_itself() {
    let mut messages = 0;
    for seed in 0..20 {
        let mut both = Both::new(seed);
        let mut version = 0;
        for step in 0..1_500 {
            let what = format!("seed {seed}, step {step}");
            both.now = both.now.after(100_000 + both.random.below(Nanos::MILLI));
            match both.random.below(20) {
                0 => {
                    version += 1;
                    both.timer(Some(version));
                }
                1 | 2 => both.timer(None),
                3..=8 => both.tick(),
                9..=15 => both.answer(),
                16 | 17 => both.fill(),
                18 if both.random.one_in(10) => {
                    let now = both.now;
                    both.with(|c, m, s| c.on_command(now, "pull", m, s));
                    both.quoter.pull(now, &mut both.direct);
                }
                _ => {
                    let now = both.now;
                    both.with(|c, m, s| c.on_command(now, "resume", m, s));
                    both.quoter.resume(now);
                }
            }
            both.compare(&what);
        }
        let strategy = both.conductor.strategy().quoter();
        for quote in 0..QUOTES as u16 {
            assert_eq!(
                strategy.live(quote),
                both.quoter.live(quote),
                "seed {seed}, quote {quote}"
            );
            assert_eq!(
                strategy.open(quote),
                both.quoter.open(quote),
                "seed {seed}, quote {quote}"
            );
            let id = InstrumentId(FIRST + u32::from(quote));
            let held = both.conductor.positions().get(id).qty;
            assert_eq!(held, both.quoter.position(quote), "seed {seed}, quote {quote}");
        }
        messages += both.messages;
    }
    assert!(messages > 2_000, "{messages} messages");
}

#[test]
fn what_the_host_stops_or_loses_takes_quotes_away_and_they_come_again() {
    let mut both = Both::new(7);
    both.tick();
    both.timer(Some(1));
    both.compare("first");
    // There was no ladder when it moved: calm again.
    both.now = both.now.after(200 * Nanos::MILLI);
    both.timer(None);
    both.compare("calm");
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
    both.with(|c, m, s| c.on_time(now, m, s));
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
    both.with(|c, m, s| c.on_time(now, m, s));
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
    both.with(|c, m, s| c.on_time(now, m, s));
    let state = both.conductor.strategy().quoter().state();
    assert_eq!(state, QuotingState::Pulling(PullReason::Control));
    assert!(both.session.sent.iter().any(|(_, sent)| *sent == Sent::Cancel));
}

#[test]
fn what_trades_before_its_answer_is_counted_once() {
    let mut both = Both::new(3);
    both.tick();
    both.timer(Some(1));
    both.compare("first");
    both.now = both.now.after(200 * Nanos::MILLI);
    both.timer(None);
    both.compare("calm");
    let Some((ids, _, Sent::Mass(_, entries))) = both.open.front().cloned() else {
        panic!("a mass quote left")
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
        id: ClientOrderId(ids[0]),
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
