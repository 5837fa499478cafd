//! The eye as a strategy of its own beside the eye itself: of the same market, ladders and answers come the
//! same orders.

use super::*;
use crate::{EyeOff, EyeState, NoQuotes, OptionEye, SilenceConfig};

/// Both, on one market.
struct Alone {
    random: Random,
    books: Vec<Books>,
    conductor: Conductor<OptionEye<Desk>>,
    session: Session,
    eye: Eye,
    direct: Direct,
    now: Nanos,
    seq: u64,
    half_tick: i64,
    /// The underlying has prices.
    is_shown: bool,
    /// Orders that the venue has not answered: the strategy's number, the eye's, and what it was.
    open: VecDeque<(u64, u64, Sent)>,
    orders: u64,
}

impl Alone {
    fn new(seed: u64) -> Alone {
        Alone::of(seed, eye())
    }

    fn of(seed: u64, config: EyeConfig) -> Alone {
        let (underlying, options) = market();
        let strategy = OptionEye::new(config, underlying, options.clone(), Desk::default());
        let places: Vec<InstrumentId> = (0..QUOTES as u32).map(InstrumentId).collect();
        let mut alone = Alone {
            random: Random(seed),
            books: vec![books()],
            conductor: Conductor::new(strategy, &host()),
            session: Session::default(),
            eye: Eye::new(config, &places),
            direct: Direct::default(),
            now: Nanos(Nanos::SECOND),
            seq: 0,
            half_tick: MIDDLE,
            is_shown: false,
            open: VecDeque::new(),
            orders: 0,
        };
        let now = alone.now;
        alone.with(|c, m, s| c.start(now, m, s));
        alone.eye.on_logon();
        let ids = (FIRST..).map(InstrumentId);
        let named = [(UNDERLYING, underlying)].into_iter();
        for (id, symbol) in named.chain(ids.zip(options.iter().map(|option| option.symbol))) {
            let instrument = Instrument {
                id,
                symbol,
                venue: Venue::Cme,
                ..Instrument::default()
            };
            assert!(alone.with(|c, m, s| c.define(now, 0, &instrument, None, m, s)));
        }
        let top = alone.told_top(UNDERLYING);
        alone.eye.on_underlying(now, &top, &NoQuotes, &mut alone.direct);
        for option in 0..QUOTES as u16 {
            alone.level_of(option, Side::Bid, Price::from_4dp(500), 1);
            alone.level_of(option, Side::Ask, Price::from_4dp(400_000_000), 1);
        }
        alone.tick();
        alone.turn(true);
        // Calm, and the loop turns again.
        alone.now = alone.now.after(Nanos::SECOND);
        alone.turn(false);
        alone.now = alone.now.after(200 * Nanos::MILLI);
        alone.turn(false);
        alone.tick();
        alone.compare("calm");
        alone
    }

    fn with<T>(
        &mut self,
        does: impl FnOnce(&mut Conductor<OptionEye<Desk>>, Markets<'_>, &mut Session) -> T,
    ) -> T {
        let markets = Markets::new(&self.books, BITS);
        does(&mut self.conductor, markets, &mut self.session)
    }

    fn command(&mut self, words: &str) {
        let now = self.now;
        self.with(|c, m, s| c.on_command(now, words, m, s));
    }

    fn arm(&mut self) {
        self.command("arm");
        // Those too whose orders were rejected.
        (0..QUOTES as u16).for_each(|option| self.eye.set_watched(option, true));
        assert!(self.eye.arm(self.now));
    }

    fn level(&mut self, instrument: InstrumentId, side: Side, price: Price, qty: u64, is_last: bool) {
        self.seq += 1;
        let event = level((self.now, self.seq), instrument, side, price, qty, is_last);
        let outcome = Outcome::of(&mut self.books[0], &event);
        self.with(|c, m, s| c.on_event(0, &event, &outcome, true, m, s));
    }

    fn told_top(&self, of: InstrumentId) -> BookUpdate {
        let mut known = self.conductor.instruments();
        *known.find(|(id, ..)| *id == of).expect("it is known").2
    }

    /// The underlying moves: one tick between bid and offer.
    fn tick(&mut self) {
        let price = |ticks: i64| Price::from_raw(ticks * config().underlying_tick.raw());
        let before = self.half_tick;
        self.half_tick += 2 * (self.random.below(5) as i64 - 2);
        if self.is_shown {
            for (side, far) in [(Side::Bid, 0), (Side::Ask, 1)] {
                self.level(UNDERLYING, side, price(before / 2 + far), 0, false);
            }
        }
        self.is_shown = true;
        self.level(UNDERLYING, Side::Bid, price(self.half_tick / 2), 5, false);
        self.level(UNDERLYING, Side::Ask, price(self.half_tick / 2 + 1), 5, true);
        let (now, top) = (self.now, self.told_top(UNDERLYING));
        self.eye.on_underlying(now, &top, &NoQuotes, &mut self.direct);
    }

    fn level_of(&mut self, option: u16, side: Side, price: Price, qty: u64) {
        let id = InstrumentId(FIRST + u32::from(option));
        self.level(id, side, price, qty, true);
        let (now, top) = (self.now, self.told_top(id));
        self.eye.on_option(now, option, &top, &NoQuotes, &mut self.direct);
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
        if (2.0..=60_000.0).contains(&ticks) {
            let price = Price::from_raw(config().option_tick.raw() * ticks as i64);
            let qty = 1 + self.random.below(20);
            self.level_of(option, side, price, qty);
            self.level_of(option, side, price, 0);
        }
    }

    /// The host's loop turns, and a ladder may have come.
    fn turn(&mut self, has_ladder: bool) {
        let now = self.now;
        let ladder = |half_tick| ladder_of(1, half_tick, &quoting());
        if has_ladder {
            let made = Ladders {
                quotes: ladder(self.half_tick),
                eye: Some(ladder(self.half_tick)),
                hedges: vec![500; QUOTES],
            };
            self.conductor
                .strategy_mut()
                .pricing_mut()
                .ladders
                .push_back(made);
        }
        self.with(|c, m, s| c.on_turn(now, m, s));
        self.with(|c, m, s| c.on_time(now, m, s));
        if has_ladder {
            (0..QUOTES as u16).for_each(|option| self.eye.set_delta(option, 500));
            let ladder = ladder(self.half_tick);
            self.eye.replace_ladder(now, ladder, &NoQuotes, &mut self.direct);
        }
        self.eye.handle_timeout(now);
    }

    /// The venue answers the oldest order.
    fn answer(&mut self) {
        let Some((theirs, ours, Sent::Order(_, _, price, qty))) = self.open.pop_front() else {
            return;
        };
        let kind = match self.random.below(4) {
            0 => ReportKind::Cancelled,
            1 => ReportKind::Rejected,
            _ => ReportKind::Filled {
                qty,
                price,
                cumulative: qty,
            },
        };
        let report = |id| OrderReport {
            id: ClientOrderId(id),
            venue_id: None,
            kind,
        };
        let now = self.now;
        let done = self.with(|c, m, s| c.on_report(now, &report(theirs), m, s));
        assert!(done.is_ok(), "{done:?}");
        let done = self.eye.on_report(now, &report(ours), &mut self.direct);
        assert!(done.is_ok(), "{done:?}");
    }

    /// What left since this was last asked is the same.
    fn compare(&mut self, what: &str) -> usize {
        let theirs = core::mem::take(&mut self.session.sent);
        let ours = core::mem::take(&mut self.direct.sent);
        let said = |sent: &[(u64, Sent)]| sent.iter().map(|(_, sent)| sent.clone()).collect::<Vec<_>>();
        assert_eq!(said(&theirs), said(&ours), "{what}");
        assert_eq!(
            self.conductor.strategy().eye().state(),
            self.eye.state(),
            "{what}"
        );
        let pairs = theirs.into_iter().zip(&ours);
        self.open
            .extend(pairs.map(|((theirs, sent), (ours, _))| (theirs, *ours, sent)));
        self.orders += ours.len() as u64;
        ours.len()
    }
}

#[test]
fn the_eye_alone_sends_what_it_sends_by_itself() {
    let (mut orders, mut hedges) = (0, 0);
    for seed in 0..6 {
        let mut alone = Alone::new(seed);
        alone.arm();
        for step in 0..600 {
            let what = format!("seed {seed}, step {step}");
            alone.now = alone.now.after(100_000 + alone.random.below(Nanos::MILLI));
            match alone.random.below(20) {
                0 => alone.turn(true),
                1 | 2 => alone.turn(false),
                3..=6 => alone.tick(),
                7..=10 => alone.tempt(),
                11..=17 => alone.answer(),
                18 if alone.random.one_in(10) => {
                    alone.command("disarm");
                    alone.eye.disarm();
                }
                _ => alone.arm(),
            }
            alone.compare(&what);
        }
        let held: i64 = (0..QUOTES as u16)
            .map(|option| {
                let strategy = alone.conductor.strategy().eye();
                assert_eq!(
                    strategy.position(option),
                    alone.eye.position(option),
                    "seed {seed}"
                );
                let id = InstrumentId(FIRST + u32::from(option));
                assert_eq!(
                    alone.conductor.positions().get(id).qty,
                    alone.eye.position(option),
                    "seed {seed}"
                );
                alone.eye.position(option)
            })
            .sum();
        let trades = &alone.conductor.strategy().pricing().trades;
        let signed = |trade: &QuoterTrade| match trade.side {
            Side::Bid => i64::from(trade.qty.0),
            Side::Ask => -i64::from(trade.qty.0),
        };
        let of_options = trades.iter().filter(|trade| trade.of == TradeOf::Eye);
        assert_eq!(of_options.map(signed).sum::<i64>(), held, "seed {seed}");
        orders += alone.orders;
        hedges += trades.iter().filter(|trade| trade.of == TradeOf::Hedge).count();
    }
    assert!(orders > 100 && hedges > 10, "{orders} orders, {hedges} hedges");
}

#[test]
fn nothing_of_it_leaves_until_it_is_armed_nor_after_what_stops_it() {
    let mut alone = Alone::new(7);
    let sends = |alone: &mut Alone| {
        (0..40).for_each(|_| alone.tempt());
        core::mem::take(&mut alone.session.sent).len()
    };
    assert_eq!(sends(&mut alone), 0, "it was not armed");
    alone.command("arm");
    assert!(sends(&mut alone) > 0);
    alone.command("pull");
    assert_eq!(sends(&mut alone), 0, "it is pulled");
    alone.command("arm");
    assert_eq!(sends(&mut alone), 0, "it is to be resumed first");
    let killed = EyeState::Off(EyeOff::Killed);
    assert_eq!(alone.conductor.strategy().eye().state(), killed);
    // Another session: what was under way is over, and it can be armed again.
    alone.command("resume");
    alone.command("arm");
    alone.conductor.lose_session();
    assert_eq!(sends(&mut alone), 0, "there is no session");
    alone.conductor.take_up_session(alone.now);
    alone.now = alone.now.after(Nanos::SECOND);
    assert!(sends(&mut alone) > 0, "the session is there again");
    // The loop stands still: what is known of the underlying may be long past.
    alone.turn(false);
    alone.now = alone.now.after(300 * Nanos::MILLI);
    alone.turn(false);
    assert_eq!(sends(&mut alone), 0, "the loop stood still");
    alone.now = alone.now.after(Nanos::SECOND);
    alone.turn(false);
    alone.with(|c, _, _| c.kill());
    alone.turn(false);
    assert_eq!(
        alone.conductor.strategy().eye().state(),
        killed,
        "the host's kill switch"
    );
}

/// The thread stood still for longer than an answer may be out: it lies unread when the turn begins, and is
/// read before what is due is judged.
#[test]
fn an_answer_that_lies_unread_when_a_turn_begins_is_not_late() {
    let mut alone = Alone::of(
        7,
        EyeConfig {
            answer_max_ns: Nanos::SECOND,
            ..eye()
        },
    );
    let order = |alone: &mut Alone| {
        (0..100).for_each(|_| alone.tempt());
        let state = alone.conductor.strategy().eye().state();
        assert!(!alone.session.sent.is_empty(), "{state:?}");
    };
    let state = |alone: &Alone| alone.conductor.strategy().eye().state();
    alone.command("arm");
    order(&mut alone);
    alone.now = alone.now.after(20 * Nanos::SECOND);
    let now = alone.now;
    alone.with(|c, m, s| c.on_turn(now, m, s));
    for (id, _) in core::mem::take(&mut alone.session.sent) {
        let report = OrderReport {
            id: ClientOrderId(id),
            venue_id: None,
            kind: ReportKind::Cancelled,
        };
        let done = alone.with(|c, m, s| c.on_report(now, &report, m, s));
        assert!(done.is_ok(), "{done:?}");
    }
    alone.with(|c, m, s| c.on_time(now, m, s));
    assert!(matches!(state(&alone), EyeState::Armed(_)), "{:?}", state(&alone));
    // What is not there when all has been read is late.
    for _ in 0..2 {
        alone.now = alone.now.after(200 * Nanos::MILLI);
        alone.turn(false);
    }
    alone.tick();
    order(&mut alone);
    alone.now = alone.now.after(2 * Nanos::SECOND);
    alone.turn(false);
    assert_eq!(state(&alone), EyeState::Off(EyeOff::LateAnswer));
}

#[test]
fn nothing_of_it_leaves_while_market_data_or_the_underlying_is_silent() {
    let ms = Nanos::MILLI;
    let sends = |alone: &mut Alone| {
        (0..40).for_each(|_| alone.tempt());
        core::mem::take(&mut alone.session.sent).len()
    };
    // Turns of the loop every 10 ms, with packets of the feed or without; the underlying changes, or does
    // not.
    let pass = |alone: &mut Alone, turns: u64, has_packets: bool, ticks: bool| {
        for _ in 0..turns {
            alone.now = alone.now.after(10 * ms);
            let now = alone.now;
            if has_packets {
                alone.with(|c, m, s| c.on_packet(now, 0, m, s));
            }
            if ticks {
                alone.tick();
            }
            alone.turn(false);
        }
        // What it has been tempted by is of another time.
        alone.session.sent.clear();
    };
    for of_underlying in [false, true] {
        let mut alone = Alone::new(11);
        let strategy = alone.conductor.strategy_mut();
        let silence = SilenceConfig {
            least_ns: 100 * ms,
            most_ns: 100 * ms,
        };
        strategy.set_silence(silence, if of_underlying { 100 * ms } else { 0 });
        alone.command("arm");
        alone.turn(true);
        pass(&mut alone, 60, true, true);
        assert!(sends(&mut alone) > 0, "packets come, and the underlying changes");
        // Without an order in an option the underlying stays as it is.
        pass(&mut alone, 20, of_underlying, false);
        assert_eq!(sends(&mut alone), 0, "silent: {of_underlying}");
        pass(&mut alone, 1, true, true);
        assert_eq!(sends(&mut alone), 0, "not calm yet");
        pass(&mut alone, 100, true, true);
        assert!(sends(&mut alone) > 0, "it goes on");
    }
}
