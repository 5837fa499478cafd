//! The quoter against a venue that answers late, rejects, trades, trips and goes away.

use super::*;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;
use tickwire_market::{BookState, BookUpdate, Cause, Counter, InstrumentId, Price, Qty, SeqNo, Side, Volume};

pub(crate) const UNDERLYING: InstrumentId = InstrumentId(1);
pub(crate) const QUOTES: usize = 100;

/// Small and repeatable: the same seed, the same run (Steele, Lea, Flood 2014, SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Resting {
    ticks: [u16; 2],
    qty: [u32; 2],
}

enum Request {
    Quote(u64, bool, Vec<MassQuoteEntry>),
    CancelAll(u64),
}

enum Answer {
    Quote(u64, Option<Vec<u16>>),
    Cancelled(u64),
    Filled(Fill),
    Protected,
}

/// Keeps quotes as they are told, one request at a time.
pub(crate) struct Venue {
    quotes: Vec<Resting>,
    requests: VecDeque<Request>,
    answers: VecDeque<Answer>,
    is_protected: bool,
    net: i64,
    paid: i64,
    /// Mass quotes may come.
    may_quote: bool,
    is_full: bool,
    causes: u64,
    /// A hash of everything sent, and how often was rehearsed.
    pub(crate) heard: u64,
    pub(crate) rehearsed: u64,
}

impl Venue {
    pub(crate) fn new() -> Venue {
        Venue {
            quotes: vec![Resting::default(); QUOTES],
            requests: VecDeque::new(),
            answers: VecDeque::new(),
            is_protected: false,
            net: 0,
            paid: 0,
            may_quote: true,
            is_full: false,
            causes: 0,
            heard: 0,
            rehearsed: 0,
        }
    }

    fn hear(&mut self, word: u64) {
        self.heard = Random(self.heard ^ word).next();
    }

    fn resting(&self, side: usize) -> u64 {
        self.quotes.iter().map(|quote| u64::from(quote.qty[side])).sum()
    }

    /// What it would cost if all of a side traded.
    fn premium(&self, side: usize) -> u64 {
        let cost = |quote: &Resting| u64::from(quote.qty[side]) * u64::from(quote.ticks[side]);
        self.quotes.iter().map(cost).sum()
    }

    fn handle_one(&mut self, random: &mut Random, rejects: u64) {
        match self.requests.pop_front() {
            None => {}
            Some(Request::CancelAll(id)) => {
                self.quotes.fill(Resting::default());
                self.answers.push_back(Answer::Cancelled(id));
            }
            Some(Request::Quote(id, reset, entries)) => {
                self.is_protected &= !reset;
                if self.is_protected || (rejects > 0 && random.one_in(20 * rejects)) {
                    return self.answers.push_back(Answer::Quote(id, None));
                }
                let mut rejected = Vec::new();
                for entry in entries {
                    if rejects > 0 && random.one_in(rejects) {
                        rejected.push(entry.quote);
                        continue;
                    }
                    let ticks = |ticks: u16, qty: Qty| if qty.is_zero() { 0 } else { ticks };
                    self.quotes[usize::from(entry.quote)] = Resting {
                        ticks: [
                            ticks(entry.bid_ticks, entry.bid_qty),
                            ticks(entry.ask_ticks, entry.ask_qty),
                        ],
                        qty: [entry.bid_qty.0, entry.ask_qty.0],
                    };
                }
                self.answers.push_back(Answer::Quote(id, Some(rejected)));
            }
        }
    }

    fn trade(&mut self, random: &mut Random) {
        let at = random.below(QUOTES as u64) as usize;
        let side = [Side::Bid, Side::Ask][random.below(2) as usize];
        let quote = &mut self.quotes[at];
        let open = quote.qty[side as usize];
        if open == 0 {
            return;
        }
        let qty = 1 + random.below(open.into()) as u32;
        let ticks = quote.ticks[side as usize];
        quote.qty[side as usize] -= qty;
        if quote.qty[side as usize] == 0 {
            quote.ticks[side as usize] = 0;
        }
        let signed = if side == Side::Bid {
            i64::from(qty)
        } else {
            -i64::from(qty)
        };
        self.net += signed;
        self.paid += signed * i64::from(ticks);
        self.answers.push_back(Answer::Filled(Fill {
            quote: at as u16,
            side,
            qty: Qty(qty),
            ticks,
            delta_milli: 500,
        }));
    }

    fn answer_one(&mut self, now: Nanos, quoter: &mut Quoter) {
        match self.answers.pop_front() {
            None => {}
            Some(Answer::Quote(id, rejected)) => quoter.on_answer(now, id, rejected.as_deref(), self),
            Some(Answer::Cancelled(id)) => quoter.on_cancelled(now, id, true, self),
            Some(Answer::Filled(fill)) => quoter.on_fill(now, &fill, self),
            Some(Answer::Protected) => quoter.on_protected(),
        }
    }

    fn drain(&mut self, now: Nanos, quoter: &mut Quoter, random: &mut Random) {
        while !self.requests.is_empty() || !self.answers.is_empty() {
            self.handle_one(random, 0);
            self.answer_one(now, quoter);
        }
    }
}

impl QuoteSink for Venue {
    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool {
        assert!(self.may_quote, "quoted after a pull");
        assert!(!quote.entries.is_empty() && quote.entries.len() <= 15);
        if self.is_full {
            return false;
        }
        self.causes = quote.cause.seq.0;
        self.hear(quote.id);
        for entry in quote.entries {
            self.hear(
                u64::from(entry.quote) << 32 | u64::from(entry.bid_ticks) << 16 | u64::from(entry.ask_ticks),
            );
            self.hear(u64::from(entry.bid_qty.0) << 32 | u64::from(entry.ask_qty.0));
        }
        let entries = quote.entries.to_vec();
        self.requests
            .push_back(Request::Quote(quote.id, quote.reset, entries));
        true
    }

    fn cancel_all(&mut self, id: u64, _cause: &Cause) -> bool {
        if self.is_full {
            return false;
        }
        self.hear(id);
        self.requests.push_back(Request::CancelAll(id));
        true
    }

    fn rehearse(&mut self, quote: &MassQuote<'_>) {
        assert!(!quote.entries.is_empty() && quote.entries.len() <= 15);
        self.rehearsed += 1;
    }
}

pub(crate) fn config() -> QuoterConfig {
    QuoterConfig {
        underlying: UNDERLYING,
        quotes: QUOTES as u16,
        messages_max: 100_000,
        improvements_max: 100_000,
        ..QuoterConfig::default()
    }
}

/// Theoretical values that any price can be checked by: calls on strikes a point apart, and a bit of time.
pub(crate) fn theos(half_tick: i64, version: u64) -> Vec<f64> {
    let forward = half_tick as f64 / 8.0;
    let more = version as f64 % 7.0;
    let value = |strike: f64| ((forward - strike).max(0.0).powi(2) + 1.0 + more) / 10.0;
    (0..QUOTES).map(|quote| value(950.0 + quote as f64)).collect()
}

pub(crate) fn quoting() -> Quoting {
    let grid = PriceGrid::new(0.05, 5, 200).expect("a grid");
    let mut quoting = Quoting::new(QUOTES, grid);
    (0..QUOTES).for_each(|quote| quoting.set(quote, &QuoteTerms::default()).expect("good terms"));
    quoting
}

pub(crate) fn ladder(version: u64, around: i64, rows: i64, quoting: &Quoting) -> Box<Ladder> {
    let mut ladder = Box::new(Ladder::new(QUOTES, 2 * rows as usize + 1));
    ladder.begin(version, around - rows);
    for half_tick in around - rows..=around + rows {
        ladder
            .push_row(&theos(half_tick, version), quoting)
            .expect("there is one");
    }
    ladder
}

pub(crate) fn look(seq: u64, half_tick: i64, spread: i64) -> BookUpdate {
    let (bid, ask) = (
        (half_tick - spread).div_euclid(2),
        (half_tick - spread).div_euclid(2) + spread,
    );
    let price = |ticks: i64| Price::from_raw(ticks * QuoterConfig::default().underlying_tick.raw());
    BookUpdate {
        seq: SeqNo(seq),
        instrument: UNDERLYING,
        state: BookState::Live,
        price: [price(bid), price(ask)],
        qty: [Volume(5); 2],
        ..BookUpdate::default()
    }
}

/// Bid plus ask of [`look`].
pub(crate) fn half_tick_of(update: &BookUpdate) -> i64 {
    let tick = QuoterConfig::default().underlying_tick.raw();
    (update.price[0].raw() + update.price[1].raw()) / tick
}

fn is_equal(quoter: &Quoter, venue: &Venue) -> bool {
    venue.quotes.iter().enumerate().all(|(at, resting)| {
        let (bid, ask) = quoter.live(at as u16);
        let ask = if ask == NO_ASK { 0 } else { ask };
        resting.ticks == [bid, ask] && resting.qty == quoter.open(at as u16)
    })
}

#[test]
fn a_tick_tells_the_venue_what_direct_repricing_wants_a_million_times() {
    let mut quoting = quoting();
    let mut random = Random(1);
    let mut venue = Venue::new();
    let mut quoter = Quoter::new(config());
    quoter.on_logon(Nanos(0));
    let mut version = 0;
    let mut half_tick = 8_000;
    assert!(
        quoter
            .replace_ladder(Nanos(0), ladder(0, half_tick, 40, &quoting), &mut venue)
            .is_none()
    );
    let ticks = 1_000_000 / QUOTES as u64;
    for step in 0..ticks {
        let now = Nanos(step * Nanos::MILLI);
        if random.one_in(100) {
            // A volatility edit, a new position: other values, other terms, around where the market is now.
            version += 1;
            let terms = QuoteTerms {
                lean: random.below(100) as f64 / 100.0 - 0.5,
                edge: random.below(40) as f64 / 100.0,
                ..QuoteTerms::default()
            };
            quoting
                .set(random.below(QUOTES as u64) as usize, &terms)
                .expect("there is one");
            quoter.replace_ladder(now, ladder(version, half_tick, 40, &quoting), &mut venue);
        }
        let moved = (half_tick + random.below(7) as i64 - 3).clamp(7_900, 8_100);
        let update = look(step + 1, moved, 1 + random.below(3) as i64);
        half_tick = half_tick_of(&update);
        let Some(is_inside) = quoter
            .ladder
            .as_ref()
            .map(|ladder| ladder.half_ticks().contains(&half_tick))
        else {
            unreachable!()
        };
        if !is_inside {
            version += 1;
            quoter.replace_ladder(now, ladder(version, half_tick, 40, &quoting), &mut venue);
        }
        quoter.on_underlying(now, &update, &mut venue);
        venue.drain(now, &mut quoter, &mut random);
        assert_eq!(quoter.state(), QuotingState::Quoting, "step {step}");
        for (at, theo) in theos(half_tick, version).into_iter().enumerate() {
            assert_eq!(
                quoter.live(at as u16),
                quoting.wanted(at, theo),
                "step {step}, quote {at}"
            );
        }
        assert!(is_equal(&quoter, &venue));
    }
    assert!(
        quoter.counters().get(Counter::QuoteEntriesSent) > ticks,
        "hardly anything moved"
    );
}

/// One run of the market, the venue and the operator, all of them at random; with a rehearsal at every step,
/// or none. What the venue was sent, and the counters.
fn storm(seed: u64, rehearses: bool) -> (u64, Counters) {
    let mut random = Random(seed);
    let limits = [40, 200, 100_000][random.below(3) as usize];
    // A quote of ten contracts is up to some 45,000.
    let premium_max = [60_000, 400_000, u64::MAX / 4][random.below(3) as usize];
    let config = QuoterConfig {
        long_max: limits,
        short_max: limits,
        premium_max: [premium_max; 2],
        quoted_max: 3 * limits / 2,
        messages_max: [30, 100_000][random.below(2) as usize],
        improvements_max: 25,
        in_flight_max: [2, 256][random.below(2) as usize],
        fade_ticks: 3,
        fade_ns: 50 * Nanos::MILLI,
        calm_ns: 5 * Nanos::MILLI,
        heartbeat_ns: 10 * Nanos::SECOND,
        jump_half_ticks: 12,
        protection: Protection {
            window_ns: Nanos::SECOND,
            fills: [0, 5][random.below(2) as usize],
            contracts: 0,
            delta_milli: 0,
        },
        ..config()
    };
    let quoting = quoting();
    let mut quoter = Quoter::new(config);
    let mut venue = Venue::new();
    let mut now = Nanos(1);
    let mut half_tick = 8_000;
    let mut has_session = false;
    quoter.replace_ladder(now, ladder(0, half_tick, 60, &quoting), &mut venue);
    for step in 0..3_000_u64 {
        now = now.after(random.below(2 * Nanos::MILLI));
        if rehearses {
            quoter.rehearse(now, &mut venue);
        }
        match random.below(100) {
            0..40 => {
                half_tick = (half_tick + random.below(9) as i64 - 4).clamp(7_930, 8_070);
                let mut update = look(step + 1, half_tick, 2);
                match random.below(150) {
                    0 => update.state = BookState::Stale,
                    1 => update.price.swap(0, 1),
                    2 => update.qty[1] = Volume(0),
                    3 => update = look(step + 1, half_tick, 12),
                    4 => update = look(step + 1, half_tick + 40, 2),
                    _ => {}
                }
                quoter.on_underlying(now, &update, &mut venue);
            }
            40..60 => venue.handle_one(&mut random, 60),
            60..80 => venue.answer_one(now, &mut quoter),
            80..85 => venue.trade(&mut random),
            85..90 => quoter.handle_timeout(now, &mut venue),
            90..92 => quoter.on_heartbeat(now),
            92 => {
                let made = ladder(step, half_tick, 60, &quoting);
                quoter.replace_ladder(now, made, &mut venue);
            }
            93 if has_session => {
                // What was executed is told again after the logon; everything else is lost.
                venue.quotes.fill(Resting::default());
                venue.requests.clear();
                for answer in core::mem::take(&mut venue.answers) {
                    if let Answer::Filled(fill) = answer {
                        quoter.on_fill(now, &fill, &mut venue);
                    }
                }
                venue.requests.clear();
                quoter.on_disconnect();
                (has_session, venue.is_protected) = (false, false);
            }
            93..95 if !has_session => {
                quoter.on_logon(now);
                has_session = true;
            }
            95 if random.one_in(4) => {
                venue.quotes.fill(Resting::default());
                venue.is_protected = true;
                venue.answers.push_back(Answer::Protected);
            }
            96 if random.one_in(4) => {
                quoter.pull(now, &mut venue);
                venue.may_quote = false;
            }
            97 => {
                venue.may_quote = true;
                quoter.resume(now);
            }
            98 => venue.is_full = random.one_in(3),
            99 => {
                let at = random.below(QUOTES as u64) as u16;
                quoter.set_quoted(now, at, true, &mut venue);
            }
            _ => {}
        }
        assert_eq!(
            quoter.exposed.all,
            quoter.known_open(),
            "seed {seed}, step {step}"
        );
        // Whatever is under way: the venue never holds more than we think it could, nor more than it may.
        for side in [0, 1] {
            assert!(
                !has_session || venue.resting(side) <= quoter.open_all()[side],
                "seed {seed}, step {step}: more rests than is known"
            );
        }
        let worst = venue.net + venue.resting(0) as i64;
        assert!(
            worst <= limits as i64,
            "seed {seed}, step {step}: could be {worst} long"
        );
        let worst = -venue.net + venue.resting(1) as i64;
        assert!(
            worst <= limits as i64,
            "seed {seed}, step {step}: could be {worst} short"
        );
        for (side, paid) in [venue.paid, -venue.paid].into_iter().enumerate() {
            let worst = paid + venue.premium(side) as i64;
            assert!(
                worst <= premium_max as i64,
                "seed {seed}, step {step}: side {side} could cost {worst}"
            );
        }
        assert!(
            venue.resting(0) + venue.resting(1) <= 3 * limits / 2,
            "seed {seed}, step {step}"
        );
        if has_session && random.one_in(50) {
            venue.is_full = false;
            quoter.handle_timeout(now, &mut venue);
            venue.drain(now, &mut quoter, &mut random);
            assert!(
                is_equal(&quoter, &venue),
                "seed {seed}, step {step}: {:?}",
                quoter.state()
            );
            assert_eq!(
                (quoter.net(), quoter.paid()),
                (venue.net, venue.paid),
                "seed {seed}, step {step}"
            );
            for side in [0, 1] {
                assert_eq!(
                    quoter.open_all()[side],
                    venue.resting(side),
                    "seed {seed}, step {step}"
                );
                assert_eq!(
                    quoter.open_premium()[side],
                    venue.premium(side),
                    "seed {seed}, step {step}"
                );
            }
            if matches!(quoter.state(), QuotingState::Halted(_)) {
                assert_eq!(venue.resting(0) + venue.resting(1), 0, "seed {seed}, step {step}");
            }
        }
    }
    assert_eq!(rehearses, venue.rehearsed > 0, "seed {seed}");
    (venue.heard, quoter.counters().clone())
}

#[test]
fn whatever_the_venue_does_we_know_what_it_holds() {
    for seed in 0..60 {
        storm(seed, false);
    }
}

#[test]
fn a_rehearsal_changes_nothing_that_is_sent_or_counted() {
    for seed in 0..20 {
        assert_eq!(storm(seed, true), storm(seed, false), "seed {seed}");
    }
}

/// Quoting, with everything live at half tick 8000.
fn running(config: QuoterConfig) -> (Quoter, Venue, Random) {
    let (mut quoter, mut venue, mut random) = (Quoter::new(config), Venue::new(), Random(0));
    let quoting = quoting();
    quoter.replace_ladder(Nanos(0), ladder(0, 8_000, 60, &quoting), &mut venue);
    quoter.on_logon(Nanos(0));
    quoter.on_underlying(Nanos(1), &look(1, 8_000, 2), &mut venue);
    venue.drain(Nanos(1), &mut quoter, &mut random);
    assert!(is_equal(&quoter, &venue) && venue.resting(0) > 0);
    (quoter, venue, random)
}

#[test]
fn nothing_goes_out_without_session_ladder_or_underlying() {
    let mut venue = Venue::new();
    let mut quoter = Quoter::new(config());
    assert_eq!(quoter.state(), QuotingState::Halted(PullReason::NoSession));
    quoter.on_underlying(Nanos(1), &look(1, 8_000, 2), &mut venue);
    assert!(venue.requests.is_empty());
    quoter.on_logon(Nanos(2));
    assert_eq!(quoter.state(), QuotingState::Quoting);
    quoter.on_underlying(Nanos(3), &look(2, 8_000, 2), &mut venue);
    assert_eq!(quoter.state(), QuotingState::Pulling(PullReason::NoRow));
    let wrong = Box::new(Ladder::new(QUOTES - 1, 1));
    assert!(quoter.replace_ladder(Nanos(4), wrong, &mut venue).is_some());
}

#[test]
fn exposed_quotes_leave_first_and_carry_what_caused_them() {
    let (mut quoter, mut venue, _) = running(config());
    quoter.on_underlying(Nanos(2), &look(77, 8_006, 2), &mut venue);
    // The underlying rises: offers of calls are exposed, and every bid could be better.
    let Some(Request::Quote(_, false, first)) = venue.requests.front() else {
        panic!("nothing was sent");
    };
    assert_eq!(venue.causes, 77);
    let asks: Vec<u16> = first.iter().map(|entry| entry.quote).collect();
    assert!(asks.is_sorted(), "in the order of delta");
    for entry in first.iter().take(14) {
        let was = quoter.live(entry.quote);
        assert!(entry.ask_ticks > was.1, "{entry:?} was {was:?}");
    }
}

#[test]
fn a_rejected_entry_is_taken_away_and_one_that_cannot_be_is_the_end_of_quoting() {
    let (mut quoter, mut venue, mut random) = running(config());
    quoter.on_underlying(Nanos(2), &look(2, 8_010, 2), &mut venue);
    let (id, entry) = match &venue.requests[0] {
        Request::Quote(id, _, entries) => (*id, entries[0]),
        Request::CancelAll(_) => unreachable!(),
    };
    let was = venue.quotes[usize::from(entry.quote)];
    assert_ne!(was, Resting::default());
    venue.requests.pop_front();
    quoter.on_answer(Nanos(3), id, None, &mut venue);
    venue.drain(Nanos(3), &mut quoter, &mut random);
    assert_eq!(
        quoter.live(entry.quote),
        (NO_BID, NO_ASK),
        "withdrawn, and not quoted again"
    );
    assert!(is_equal(&quoter, &venue));
    // The next time, the withdrawal is refused.
    quoter.set_quoted(Nanos(4), entry.quote, true, &mut venue);
    venue.drain(Nanos(4), &mut quoter, &mut random);
    assert_ne!(quoter.live(entry.quote), (NO_BID, NO_ASK));
    quoter.set_quoted(Nanos(5), entry.quote, false, &mut venue);
    let Some(Request::Quote(id, ..)) = venue.requests.pop_front() else {
        panic!("it was not withdrawn");
    };
    quoter.on_answer(Nanos(6), id, Some(&[entry.quote]), &mut venue);
    assert_eq!(quoter.state(), QuotingState::Pulling(PullReason::Rejected));
}

#[test]
fn each_distrust_of_the_underlying_pulls_under_its_name_and_passes() {
    for (update, reason) in [
        (
            BookUpdate {
                state: BookState::Stale,
                ..look(2, 8_000, 2)
            },
            PullReason::StaleUnderlying,
        ),
        (look(2, 8_000, 0), PullReason::CrossedUnderlying),
        (
            BookUpdate {
                qty: [Volume(0); 2],
                ..look(2, 8_000, 2)
            },
            PullReason::CrossedUnderlying,
        ),
        (look(2, 8_000, 12), PullReason::WideUnderlying),
        (look(2, 8_042, 2), PullReason::Jump),
        (look(2, 8_062, 2), PullReason::NoRow),
    ] {
        let jump_half_ticks = if reason == PullReason::NoRow { 100 } else { 40 };
        let (mut quoter, mut venue, mut random) = running(QuoterConfig {
            jump_half_ticks,
            ..config()
        });
        let bad = Nanos(Nanos::SECOND);
        quoter.on_underlying(bad, &update, &mut venue);
        assert_eq!(quoter.state(), QuotingState::Pulling(reason));
        venue.drain(bad, &mut quoter, &mut random);
        assert_eq!(quoter.state(), QuotingState::Halted(reason));
        assert!(is_equal(&quoter, &venue) && venue.resting(0) == 0);
        quoter.on_underlying(bad.after(1), &look(3, 8_004, 2), &mut venue);
        assert!(venue.requests.is_empty(), "not calm yet: {reason:?}");
        let calm = bad.after(quoter.config.calm_ns + Nanos::MILLI);
        quoter.on_underlying(calm, &look(4, 8_004, 2), &mut venue);
        venue.drain(calm, &mut quoter, &mut random);
        assert_eq!(quoter.state(), QuotingState::Quoting, "{reason:?}");
        assert!(venue.resting(0) > 0);
    }
}

#[test]
fn late_answers_silent_operators_and_unknown_fills_stop_quoting_until_it_is_resumed() {
    let heartbeat_ns = 5 * Nanos::SECOND;
    let fill = Fill {
        quote: 3,
        side: Side::Bid,
        qty: Qty(1_000),
        ticks: 5,
        delta_milli: 1,
    };
    let config = QuoterConfig {
        heartbeat_ns,
        ..config()
    };
    for reason in [
        PullReason::LateAnswer,
        PullReason::Heartbeat,
        PullReason::Unmatched,
    ] {
        let (mut quoter, mut venue, mut random) = running(config);
        let now = Nanos(4 * Nanos::SECOND);
        match reason {
            PullReason::LateAnswer => {
                quoter.on_underlying(now, &look(2, 8_006, 2), &mut venue);
                let due = quoter.poll_timeout().expect("there is one");
                assert_eq!(due, now.after(config.answer_max_ns));
                quoter.handle_timeout(due, &mut venue);
                assert_eq!(quoter.state(), QuotingState::Quoting);
                quoter.handle_timeout(due.after(1), &mut venue);
            }
            PullReason::Heartbeat => {
                assert_eq!(quoter.poll_timeout(), Some(Nanos(heartbeat_ns)));
                quoter.handle_timeout(Nanos(heartbeat_ns + 1), &mut venue);
            }
            _ => quoter.on_fill(now, &fill, &mut venue),
        }
        assert_eq!(quoter.state(), QuotingState::Pulling(reason));
        assert!(!quoter.resume(now), "quotes are still there");
        let now = Nanos(7 * Nanos::SECOND);
        venue.drain(now, &mut quoter, &mut random);
        assert_eq!(quoter.state(), QuotingState::Halted(reason));
        quoter.on_underlying(now, &look(3, 8_006, 2), &mut venue);
        assert!(venue.requests.is_empty());
        assert!(quoter.resume(now));
        quoter.on_underlying(now, &look(4, 8_006, 2), &mut venue);
        venue.drain(now, &mut quoter, &mut random);
        assert!(venue.resting(0) > 0 && is_equal(&quoter, &venue));
    }
}

#[test]
fn the_venues_protection_is_reset_by_the_first_quote_after_it_was_resumed() {
    let (mut quoter, mut venue, mut random) = running(config());
    venue.quotes.fill(Resting::default());
    venue.is_protected = true;
    quoter.on_protected();
    assert_eq!(quoter.state(), QuotingState::Halted(PullReason::VenueProtection));
    assert!(is_equal(&quoter, &venue));
    assert!(quoter.resume(Nanos(2)));
    quoter.on_underlying(Nanos(3), &look(2, 8_000, 2), &mut venue);
    let resets: Vec<bool> = venue
        .requests
        .iter()
        .map(|request| matches!(request, Request::Quote(_, true, _)))
        .collect();
    assert!(resets[0] && !resets[1..].contains(&true), "{resets:?}");
    venue.drain(Nanos(3), &mut quoter, &mut random);
    assert!(venue.resting(0) > 0 && is_equal(&quoter, &venue));
}

#[test]
fn a_reset_that_is_lost_with_the_session_is_sent_again() {
    let (mut quoter, mut venue, mut random) = running(config());
    venue.quotes.fill(Resting::default());
    venue.is_protected = true;
    quoter.on_protected();
    assert!(quoter.resume(Nanos(2)));
    quoter.on_underlying(Nanos(3), &look(2, 8_000, 2), &mut venue);
    assert!(matches!(venue.requests.front(), Some(Request::Quote(_, true, _))));
    venue.requests.clear();
    quoter.on_disconnect();
    quoter.on_logon(Nanos(4));
    quoter.on_underlying(Nanos(5), &look(3, 8_000, 2), &mut venue);
    assert!(matches!(venue.requests.front(), Some(Request::Quote(_, true, _))));
    venue.drain(Nanos(5), &mut quoter, &mut random);
    assert!(venue.resting(0) > 0 && is_equal(&quoter, &venue));
}

#[test]
fn a_cancel_that_is_refused_or_not_taken_ends_the_session() {
    let (mut quoter, mut venue, _) = running(config());
    quoter.pull(Nanos(2), &mut venue);
    assert!(!quoter.wants_disconnect());
    let Some(Request::CancelAll(id)) = venue.requests.pop_back() else {
        panic!("no cancel");
    };
    quoter.on_cancelled(Nanos(3), id, false, &mut venue);
    assert!(quoter.wants_disconnect());
    quoter.on_disconnect();
    assert_eq!(quoter.state(), QuotingState::Halted(PullReason::Operator));
    quoter.on_logon(Nanos(4));
    assert_eq!(quoter.state(), QuotingState::Halted(PullReason::Operator));

    let (mut quoter, mut venue, _) = running(config());
    venue.is_full = true;
    quoter.pull(Nanos(2), &mut venue);
    quoter.handle_timeout(Nanos(3), &mut venue);
    assert!(!quoter.wants_disconnect());
    quoter.handle_timeout(Nanos(2 * Nanos::SECOND), &mut venue);
    assert!(quoter.wants_disconnect());
}

#[test]
fn improvements_wait_for_their_rate_and_exposed_quotes_without_room_pull() {
    let rates = QuoterConfig {
        messages_max: 24,
        improvements_max: 2,
        ..config()
    };
    let (mut quoter, mut venue, mut random) = running(rates);
    // The first quotes were improvements on nothing: two messages of 15.
    assert_eq!(
        venue
            .quotes
            .iter()
            .filter(|quote| quote.qty[0] + quote.qty[1] > 0)
            .count(),
        30
    );
    for (step, half_tick) in [8_010, 7_990].into_iter().cycle().take(40).enumerate() {
        let now = Nanos(2 + step as u64);
        quoter.on_underlying(now, &look(2 + step as u64, half_tick, 2), &mut venue);
        if quoter.state() != QuotingState::Quoting {
            break;
        }
        venue.drain(now, &mut quoter, &mut random);
    }
    assert_eq!(quoter.state(), QuotingState::Pulling(PullReason::Rate));
    assert_eq!(quoter.counters().get(Counter::MassQuotesSent), 24);
}

#[test]
fn a_filled_side_stays_away_for_a_while() {
    let fading = QuoterConfig {
        fade_ticks: 5,
        fade_ns: Nanos::SECOND,
        ..config()
    };
    let (mut quoter, mut venue, mut random) = running(fading);
    let (bid, _) = quoter.live(20);
    venue.quotes[20].qty[0] = 0;
    venue.quotes[20].ticks[0] = 0;
    let fill = Fill {
        quote: 20,
        side: Side::Bid,
        qty: Qty(10),
        ticks: bid,
        delta_milli: 500,
    };
    quoter.on_fill(Nanos(2), &fill, &mut venue);
    venue.drain(Nanos(2), &mut quoter, &mut random);
    assert_eq!(quoter.live(20).0, bid - 5);
    assert_eq!((quoter.position(20), quoter.net()), (10, 10));
    let due = quoter.poll_timeout().expect("there is one");
    assert_eq!(due, Nanos(2 + Nanos::SECOND));
    quoter.handle_timeout(due, &mut venue);
    venue.drain(due, &mut quoter, &mut random);
    assert_eq!(quoter.live(20).0, bid);
}

/// A quoter that holds its quotes to the market, and the bid and ask that it wants of quote 20.
fn guarded(guard: MarketGuard) -> (Quoter, Venue, (u16, u16)) {
    let market = Some(guard);
    let (mut quoter, mut venue) = (Quoter::new(QuoterConfig { market, ..config() }), Venue::new());
    let quoting = quoting();
    quoter.replace_ladder(Nanos(0), ladder(0, 8_000, 60, &quoting), &mut venue);
    quoter.on_logon(Nanos(0));
    quoter.on_underlying(Nanos(1), &look(1, 8_000, 2), &mut venue);
    (quoter, venue, quoting.wanted(20, theos(8_000, 0)[20]))
}

fn in_ticks(best: [u16; 2]) -> [Option<Price>; 2] {
    let price = |ticks: u16| Price::from_raw(i64::from(ticks) * config().option_tick.raw());
    best.map(|ticks| (ticks != 0).then(|| price(ticks)))
}

#[test]
fn a_quote_that_does_not_go_with_its_market_is_not_sent_and_its_option_is_pulled_by_name() {
    let guard = MarketGuard {
        better_max: 4,
        mid_ticks: 10,
        mid_bp: 0,
        ..MarketGuard::default()
    };
    // 0 is a side that is empty.
    let cases: [(&str, [i32; 2], Option<OffMarket>); 11] = [
        ("inside of it by as much as it may", [-4, 4], None),
        ("outside of it", [3, -3], None),
        ("the bid locks the offer", [-9, 0], Some(OffMarket::Crosses)),
        (
            "the bid is above the offer",
            [-900, -800],
            Some(OffMarket::Crosses),
        ),
        ("the offer locks the bid", [0, 9], Some(OffMarket::Crosses)),
        ("the offer is below the bid", [800, 900], Some(OffMarket::Crosses)),
        ("the bid is too good", [-5, 4], Some(OffMarket::TooGood)),
        ("the offer is too good", [-4, 5], Some(OffMarket::TooGood)),
        (
            "it is far from a wide market's middle",
            [-3, 30],
            Some(OffMarket::OffMid),
        ),
        ("the offer is missing", [-1, i32::MAX], Some(OffMarket::NoMarket)),
        ("the bid is missing", [i32::MAX, 1], Some(OffMarket::NoMarket)),
    ];
    for (what, [bid_by, ask_by], why) in cases {
        let (mut quoter, mut venue, (bid, ask)) = guarded(guard);
        assert!(venue.requests.is_empty(), "no market of an option is known");
        assert_eq!(quoter.off_markets(), [0, 0, 0, QUOTES as u32]);
        let near = |of: u16, by: i32| {
            if by == i32::MAX {
                0
            } else {
                (i32::from(of) + by) as u16
            }
        };
        // `0` beside a far price is our own other side: locked.
        let market = match [bid_by, ask_by] {
            [by, 0] => [near(bid, by), bid],
            [0, by] => [ask, near(ask, by)],
            [bid_by, ask_by] => [near(bid, bid_by), near(ask, ask_by)],
        };
        quoter.on_market(Nanos(2), 20, true, in_ticks(market), &mut venue);
        // It was pulled for want of a market; it is quoted when its market was good for long enough.
        let mut now = Nanos(2);
        for _ in 0..4 {
            let due = quoter.poll_timeout().expect("options are pulled");
            now = due.max(now);
            quoter.handle_timeout(now, &mut venue);
            venue.drain(now, &mut quoter, &mut Random(0));
        }
        let pulled = quoter.off_market(20);
        match why {
            None => {
                assert_eq!((quoter.live(20), pulled), ((bid, ask), None), "{what}");
            }
            Some(_) => {
                assert_eq!(quoter.live(20), (NO_BID, NO_ASK), "{what}");
                assert!(pulled.is_some(), "{what}");
            }
        }
        // The same of one that is quoted.
        let (mut quoter, mut venue, _) = guarded(guard);
        quoter.on_market(Nanos(2), 20, true, in_ticks([bid - 1, ask + 1]), &mut venue);
        let now = Nanos(2 * Nanos::SECOND);
        for at in [1, 2, 3] {
            quoter.handle_timeout(Nanos(at * Nanos::SECOND / 2), &mut venue);
        }
        venue.drain(now, &mut quoter, &mut Random(0));
        assert_eq!(quoter.live(20), (bid, ask), "{what}");
        let before = quoter.counters().clone();
        quoter.on_market(now, 20, true, in_ticks(market), &mut venue);
        venue.drain(now, &mut quoter, &mut Random(0));
        let Some(why) = why else {
            assert_eq!(quoter.live(20), (bid, ask), "{what}");
            continue;
        };
        assert_eq!(quoter.live(20), (NO_BID, NO_ASK), "{what}");
        assert_eq!(venue.quotes[20].qty, [0; 2], "{what}: the venue has it still");
        let pulled = quoter.off_market(20).expect("it is pulled");
        assert_eq!((pulled.why, pulled.wanted), (why, (bid, ask)), "{what}");
        assert_eq!(
            quoter.counters().get(why.counter()),
            before.get(why.counter()) + 1,
            "{what}"
        );
        assert_eq!(
            quoter.off_markets()[why as usize],
            1 + u32::from(why == OffMarket::NoMarket) * 99
        );
        assert_eq!(quoter.state(), QuotingState::Quoting, "{what}: the others go on");
    }
}

#[test]
fn what_an_option_needs_of_its_market_is_configured() {
    let sides = |needs: MarketNeed, market: [u16; 2], is_live: bool| {
        let calm_ns = 1;
        let guard = MarketGuard {
            needs,
            calm_ns,
            ..MarketGuard::default()
        };
        let (mut quoter, mut venue, wanted) = guarded(guard);
        quoter.on_market(Nanos(2), 20, is_live, in_ticks(market), &mut venue);
        (3..8).for_each(|at| quoter.handle_timeout(Nanos(at), &mut venue));
        venue.drain(Nanos(9), &mut quoter, &mut Random(0));
        assert!([wanted, (NO_BID, NO_ASK)].contains(&quoter.live(20)));
        quoter.live(20) == wanted
    };
    let (_, _, (bid, ask)) = guarded(MarketGuard::default());
    use MarketNeed::{BothSides, Nothing, OneSide};
    for (needs, both, one, none) in [
        (BothSides, true, false, false),
        (OneSide, true, true, false),
        (Nothing, true, true, true),
    ] {
        assert_eq!(sides(needs, [bid - 1, ask + 1], true), both, "{needs:?}");
        assert_eq!(sides(needs, [bid - 1, 0], true), one, "{needs:?}");
        assert_eq!(sides(needs, [0, ask + 1], true), one, "{needs:?}");
        assert_eq!(sides(needs, [0, 0], true), none, "{needs:?}");
        // What is there is held to all the same, and a book with a gap is none.
        assert!(
            !sides(needs, [0, bid], true) && !sides(needs, [ask, 0], true),
            "{needs:?}"
        );
        assert!(!sides(needs, [bid - 1, ask + 1], false), "{needs:?}");
    }
}

#[test]
fn a_level_that_is_only_ours_is_no_market() {
    let (mut quoter, mut venue, (bid, ask)) = guarded(MarketGuard {
        calm_ns: 1,
        ..MarketGuard::default()
    });
    quoter.on_market(Nanos(2), 20, true, in_ticks([bid - 1, ask + 1]), &mut venue);
    let level = |ticks: u16, qty: u64| (in_ticks([ticks, 0])[0].expect("a price"), Volume(qty));
    assert!(!quoter.is_own(Nanos(2), 20, Side::Bid, level(bid, 1)));
    (3..8).for_each(|at| quoter.handle_timeout(Nanos(at), &mut venue));
    // On its way already.
    assert!(quoter.is_own(Nanos(9), 20, Side::Bid, level(bid, 10)));
    venue.drain(Nanos(9), &mut quoter, &mut Random(0));
    for (side, ticks) in [(Side::Bid, bid), (Side::Ask, ask)] {
        assert!(quoter.is_own(Nanos(9), 20, side, level(ticks, 10)));
        assert!(
            !quoter.is_own(Nanos(9), 20, side, level(ticks, 11)),
            "somebody joined"
        );
        assert!(!quoter.is_own(Nanos(9), 20, side, level(ticks + 1, 1)));
        assert!(
            !quoter.is_own(Nanos(9), 21, side, level(ticks, 1)),
            "another option's"
        );
    }
    // The book shows a quote for a while after it was taken away.
    quoter.set_quoted(Nanos(10), 20, false, &mut venue);
    venue.drain(Nanos(10), &mut quoter, &mut Random(0));
    assert_eq!(quoter.live(20), (NO_BID, NO_ASK));
    assert!(quoter.is_own(Nanos(11), 20, Side::Bid, level(bid, 10)));
    assert!(!quoter.is_own(Nanos(11 + 2 * Nanos::SECOND), 20, Side::Bid, level(bid, 10)));
}

#[test]
fn whatever_markets_do_nothing_is_sent_that_does_not_go_with_them() {
    for seed in 0..20 {
        let guard = MarketGuard {
            better_max: 3,
            mid_ticks: 30,
            mid_bp: 100,
            calm_ns: 5,
            needs: [MarketNeed::BothSides, MarketNeed::OneSide, MarketNeed::Nothing][seed as usize % 3],
        };
        let (mut quoter, mut venue, _) = guarded(guard);
        let (mut random, quoting) = (Random(seed), quoting());
        let mut markets = vec![[0_u16; 2]; QUOTES];
        let (mut half_tick, mut version, mut sent) = (8_000, 0, 0);
        for step in 2..3_000 {
            let now = Nanos(step);
            match random.below(4) {
                0 => {
                    half_tick = (half_tick + random.below(5) as i64 - 2).clamp(7_960, 8_040);
                    let update = look(step, half_tick, 2);
                    half_tick = half_tick_of(&update);
                    quoter.on_underlying(now, &update, &mut venue);
                }
                1 if random.one_in(20) => {
                    version = random.below(7);
                    quoter.replace_ladder(now, ladder(version, 8_000, 60, &quoting), &mut venue);
                }
                _ => {
                    let at = random.below(QUOTES as u64) as usize;
                    let (bid, ask) = quoting.wanted(at, theos(half_tick, version)[at]);
                    let mut near = |of: u16| of.saturating_add(random.below(12) as u16).saturating_sub(6);
                    let (bid, ask) = (near(bid), near(if ask == NO_ASK { 2 } else { ask }));
                    markets[at] = match random.below(8) {
                        0 => [bid, 0],
                        1 => [0, ask],
                        2 => [0, 0],
                        _ => [bid, ask],
                    };
                    quoter.on_market(now, at as u16, true, in_ticks(markets[at]), &mut venue);
                }
            }
            quoter.handle_timeout(now, &mut venue);
            for request in &venue.requests {
                let Request::Quote(_, _, entries) = request else {
                    continue;
                };
                for entry in entries {
                    let ([market_bid, market_ask], has) =
                        (markets[usize::from(entry.quote)], |qty: Qty| !qty.is_zero());
                    let says =
                        format!("seed {seed}, step {step}: {entry:?}, market {market_bid}/{market_ask}");
                    let is_quoted = has(entry.bid_qty) || has(entry.ask_qty);
                    sent += u64::from(is_quoted);
                    let sides = u32::from(market_bid > 0) + u32::from(market_ask > 0);
                    let needed = 2 - guard.needs as u32;
                    assert!(!is_quoted || sides >= needed, "{says}");
                    if has(entry.bid_qty) {
                        assert!(market_ask == 0 || entry.bid_ticks < market_ask, "{says}");
                        assert!(market_bid == 0 || entry.bid_ticks <= market_bid + 3, "{says}");
                    }
                    if has(entry.ask_qty) {
                        assert!(entry.ask_ticks > market_bid, "{says}");
                        assert!(market_ask == 0 || entry.ask_ticks + 3 >= market_ask, "{says}");
                    }
                    if has(entry.bid_qty) && has(entry.ask_qty) && sides == 2 {
                        let middle = market_bid.midpoint(market_ask);
                        let most = (middle / 100).max(30);
                        let ours = entry.bid_ticks.midpoint(entry.ask_ticks);
                        assert!(ours.abs_diff(middle) <= most, "{says}");
                    }
                }
            }
            venue.drain(now, &mut quoter, &mut random);
        }
        assert!(sent > 100, "seed {seed}: {sent}");
    }
}

/// A venue behind a gate that lets nothing of one option pass.
struct Gated<'v>(&'v mut Venue, u16);

impl QuoteSink for Gated<'_> {
    fn admit(&mut self, _: Nanos, quote: &MassQuote<'_>) -> Result<(), crate::RiskReject> {
        match quote.entries.iter().any(|entry| entry.quote == self.1) {
            true => Err(crate::RiskReject::OrderValue),
            false => Ok(()),
        }
    }

    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool {
        assert!(quote.entries.iter().all(|entry| entry.quote != self.1));
        self.0.mass_quote(quote)
    }

    fn cancel_all(&mut self, id: u64, cause: &Cause) -> bool {
        self.0.cancel_all(id, cause)
    }
}

#[test]
fn a_quote_that_a_control_stops_is_not_sent_and_pulls_everything_until_it_is_resumed() {
    let (mut quoter, mut venue, mut random) = running(config());
    let mut now = Nanos(2);
    let mut seq = 1;
    let mut moved = |quoter: &mut Quoter, venue: &mut Gated<'_>, now: Nanos| {
        seq += 1;
        quoter.on_underlying(now, &look(seq, 8_000 + 4 * (seq % 2) as i64 + 4, 2), venue);
    };
    now = now.after(Nanos::MILLI);
    moved(&mut quoter, &mut Gated(&mut venue, 0), now);
    assert!(
        matches!(quoter.state(), QuotingState::Pulling(PullReason::Control)),
        "{:?}",
        quoter.state()
    );
    assert_eq!(quoter.counters().get(Counter::RiskOrderValue), 1);
    venue.drain(now, &mut quoter, &mut random);
    assert_eq!(quoter.state(), QuotingState::Halted(PullReason::Control));
    now = now.after(60 * Nanos::SECOND);
    moved(&mut quoter, &mut Gated(&mut venue, 0), now);
    assert_eq!(
        quoter.state(),
        QuotingState::Halted(PullReason::Control),
        "not by itself"
    );
    venue.may_quote = true;
    assert!(quoter.resume(now));
    moved(&mut quoter, &mut Gated(&mut venue, u16::MAX), now);
    assert_eq!(quoter.state(), QuotingState::Quoting);
    assert!(!venue.requests.is_empty(), "the next good one is");
}

#[test]
fn our_own_protection_pulls_before_the_venues_would() {
    for (protection, fills) in [
        (
            Protection {
                fills: 3,
                ..Protection::default()
            },
            3,
        ),
        (
            Protection {
                contracts: 4,
                ..Protection::default()
            },
            4,
        ),
        (
            Protection {
                delta_milli: 1_000,
                ..Protection::default()
            },
            2,
        ),
    ] {
        let protection = Protection {
            window_ns: Nanos::SECOND,
            ..protection
        };
        let (mut quoter, mut venue, _) = running(QuoterConfig {
            protection,
            ..config()
        });
        for count in 0..fills {
            assert_eq!(
                quoter.state(),
                QuotingState::Quoting,
                "{protection:?} after {count}"
            );
            let fill = Fill {
                quote: 20 + count,
                side: Side::Bid,
                qty: Qty(1),
                ticks: 1,
                delta_milli: 500,
            };
            quoter.on_fill(Nanos(2), &fill, &mut venue);
        }
        assert_eq!(quoter.state(), QuotingState::Pulling(PullReason::Protection));
        // The same fills a second apart are no reason.
        let (mut quoter, mut venue, _) = running(QuoterConfig {
            protection,
            ..config()
        });
        for count in 0..u64::from(fills) {
            let now = Nanos(2 + count * (Nanos::SECOND + 1));
            let fill = Fill {
                quote: 20 + count as u16,
                side: Side::Bid,
                qty: Qty(1),
                ticks: 1,
                delta_milli: 500,
            };
            quoter.on_fill(now, &fill, &mut venue);
        }
        assert_eq!(quoter.state(), QuotingState::Quoting);
    }
}

#[test]
fn a_side_that_would_cost_more_than_it_may_is_not_quoted() {
    let (quoter, venue, _) = running(config());
    let (dear, cheap) = ((QUOTES - 1) as u16, 0_u16);
    let all = quoter.open_premium();
    assert_eq!(all, [venue.premium(0), venue.premium(1)]);
    let dearest = [Side::Bid, Side::Ask].map(|side| {
        let each = |quote| [quoter.live(quote).0, quoter.live(quote).1][side as usize];
        each(dear).max(each(cheap))
    });
    // Bids may cost a contract less than they do; offers may not bring in as much as the dearest of them
    // does.
    let config = QuoterConfig {
        premium_max: [all[0] - 1, 10 * u64::from(dearest[1]) - 1],
        ..config()
    };
    let (mut quoter, mut venue, mut random) = running(config);
    let premium = quoter.open_premium();
    assert!(
        premium[0] <= config.premium_max[0] && premium[1] <= config.premium_max[1],
        "{premium:?}"
    );
    assert!(premium[0] > 0 && quoter.counters().get(Counter::QuotesCapped) > 0);
    // What is bought is paid: it stays within the limit when the contracts do not rest any more.
    let paid = loop {
        venue.trade(&mut random);
        venue.drain(Nanos(2), &mut quoter, &mut random);
        if quoter.paid() > 0 {
            break quoter.paid();
        }
    };
    assert_eq!(paid, venue.paid);
    assert!(paid as u64 + venue.premium(0) <= config.premium_max[0]);
}

/// Turns of the loop, a millisecond apart, with a packet in each of them or in none.
fn turns(
    quoter: &mut Quoter,
    venue: &mut Venue,
    random: &mut Random,
    ms: core::ops::Range<u64>,
    heard: bool,
) {
    for ms in ms {
        let now = Nanos(ms * Nanos::MILLI);
        assert_eq!(quoter.on_turn(now, venue), None, "at {ms} ms");
        if heard {
            quoter.on_packet(now);
            quoter.on_change(now);
            quoter.on_underlying(now, &look(ms, 8_000, 2), venue);
        }
        venue.drain(now, quoter, random);
    }
}

#[test]
fn a_loop_that_stood_still_pulls_before_anything_else_and_quotes_again_when_all_is_read() {
    let (mut quoter, mut venue, mut random) = running(config());
    turns(&mut quoter, &mut venue, &mut random, 1..1_000, true);
    assert_eq!(quoter.state(), QuotingState::Quoting);
    // As long as may be, and then a millisecond more.
    let stall = quoter.config.stall_ns;
    let last = Nanos(999 * Nanos::MILLI);
    let on_time = last.after(stall);
    assert_eq!(quoter.on_turn(on_time, &mut venue), None);
    let late = on_time.after(stall + 1);
    assert_eq!(quoter.on_turn(late, &mut venue), Some(stall + 1));
    assert_eq!(quoter.state(), QuotingState::Pulling(PullReason::Stall));
    assert!(matches!(venue.requests.front(), Some(Request::CancelAll(_))));
    venue.drain(late, &mut quoter, &mut random);
    assert_eq!(quoter.state(), QuotingState::Halted(PullReason::Stall));
    assert_eq!((venue.resting(0), venue.resting(1)), (0, 0));
    // What it reads now is old, however good it looks, for as long as more waits.
    let mut now = late;
    for step in 0..300 {
        now = now.after(Nanos::MILLI);
        quoter.on_turn(now, &mut venue);
        quoter.on_underlying(now, &look(2_000 + step, 8_030, 2), &mut venue);
        quoter.on_packet(now);
        quoter.on_backlog(now);
        assert!(venue.requests.is_empty(), "quoted by what is old, step {step}");
    }
    for step in 0..200 {
        now = now.after(Nanos::MILLI);
        quoter.on_turn(now, &mut venue);
        quoter.on_packet(now);
        quoter.on_underlying(now, &look(3_000 + step, 8_030, 2), &mut venue);
        venue.drain(now, &mut quoter, &mut random);
        let calm = now.since(late) >= 300 * Nanos::MILLI + quoter.config.calm_ns;
        assert_eq!(quoter.state() == QuotingState::Quoting, calm, "step {step}");
    }
    assert!(is_equal(&quoter, &venue) && venue.resting(0) > 0);
    assert_eq!(quoter.pulls()[PullReason::Stall as usize], 1);
    assert_eq!(quoter.last_pull(), Some(PullReason::Stall));
    assert_eq!(quoter.pulls().iter().sum::<u64>(), 1);
}

#[test]
fn a_stall_is_told_of_when_its_own_turn_lost_the_session_first() {
    let (mut quoter, mut venue, mut random) = running(config());
    turns(&mut quoter, &mut venue, &mut random, 1..1_000, true);
    // The process is stopped within a turn: when it goes on it finds the session closed, and then the turn
    // that follows comes too late.
    quoter.on_disconnect();
    assert_eq!(quoter.state(), QuotingState::Halted(PullReason::NoSession));
    let stall = quoter.config.stall_ns;
    let late = Nanos(999 * Nanos::MILLI).after(2 * stall);
    assert_eq!(quoter.on_turn(late, &mut venue), Some(2 * stall));
    assert_eq!(quoter.state(), QuotingState::Halted(PullReason::NoSession));
    assert_eq!(quoter.pulls()[PullReason::NoSession as usize], 1);
    assert_eq!(quoter.pulls()[PullReason::Stall as usize], 1);
    assert_eq!(quoter.last_pull(), Some(PullReason::Stall));
    // While there is no session a further one stops nothing.
    assert_eq!(quoter.on_turn(late.after(2 * stall), &mut venue), Some(2 * stall));
    assert_eq!(quoter.pulls()[PullReason::Stall as usize], 1);
    quoter.on_logon(late);
    assert_eq!(quoter.state(), QuotingState::Quoting);
}

#[test]
fn silent_market_data_pulls_under_its_name_and_passes() {
    let underlying_silence_ns = 400 * Nanos::MILLI;
    let (mut quoter, mut venue, mut random) = running(QuoterConfig {
        underlying_silence_ns,
        ..config()
    });
    turns(&mut quoter, &mut venue, &mut random, 1..1_000, true);
    turns(&mut quoter, &mut venue, &mut random, 1_000..1_249, false);
    assert_eq!(quoter.state(), QuotingState::Quoting, "249 ms are no silence");
    turns(&mut quoter, &mut venue, &mut random, 1_249..1_251, false);
    assert_eq!(
        quoter.state(),
        QuotingState::Quoting,
        "what came in 251 ms is read in this turn"
    );
    turns(&mut quoter, &mut venue, &mut random, 1_251..1_252, false);
    assert_eq!(quoter.state(), QuotingState::Halted(PullReason::Silence));
    assert_eq!((venue.resting(0), venue.resting(1)), (0, 0));
    turns(&mut quoter, &mut venue, &mut random, 1_252..60_000, false);
    // It comes again, and is believed when it has been there for a while.
    turns(&mut quoter, &mut venue, &mut random, 60_000..60_099, true);
    assert_eq!(quoter.state(), QuotingState::Halted(PullReason::Silence));
    turns(&mut quoter, &mut venue, &mut random, 60_099..60_102, true);
    assert_eq!(quoter.state(), QuotingState::Quoting);
    assert!(venue.resting(0) > 0);
    // Others are heard of on its channel, the underlying is not.
    let mut now = 60_102;
    while quoter.state() == QuotingState::Quoting {
        assert!(now < 60_600, "the underlying is silent");
        quoter.on_turn(Nanos(now * Nanos::MILLI), &mut venue);
        quoter.on_packet(Nanos(now * Nanos::MILLI));
        now += 1;
    }
    assert_eq!(
        quoter.state(),
        QuotingState::Pulling(PullReason::SilentUnderlying)
    );
    assert_eq!(now, 60_101 + 400 + 3, "its last change was at 60 101 ms");
}

/// The thread itself may have stood still, for less than is a stall.
#[test]
fn packets_that_lie_in_the_sockets_when_a_turn_begins_are_no_silence() {
    let (mut quoter, mut venue, mut random) = running(QuoterConfig {
        stall_ns: Nanos::SECOND,
        underlying_silence_ns: 400 * Nanos::MILLI,
        ..config()
    });
    for from in (1..8_000).step_by(800) {
        turns(&mut quoter, &mut venue, &mut random, from..from + 1, true);
        assert_eq!(quoter.state(), QuotingState::Quoting, "at {from} ms");
    }
}

#[test]
fn neither_is_looked_for_where_it_is_turned_off() {
    let none = SilenceConfig {
        least_ns: 0,
        most_ns: 0,
    };
    let (mut quoter, mut venue, _) = running(QuoterConfig {
        stall_ns: 0,
        silence: none,
        ..config()
    });
    for second in 1..100 {
        assert_eq!(quoter.on_turn(Nanos(second * Nanos::SECOND), &mut venue), None);
    }
    assert_eq!(quoter.state(), QuotingState::Quoting);
}

#[test]
fn a_fill_beside_the_quotes_counts_towards_protection_and_an_order_towards_the_rate() {
    let protection = Protection {
        contracts: 10,
        window_ns: Nanos::SECOND,
        ..Protection::default()
    };
    let (mut quoter, mut venue, _) = running(QuoterConfig {
        protection,
        long_max: 10_000,
        messages_max: 40,
        ..config()
    });
    let now = Nanos(5 * Nanos::SECOND);
    let fill = Fill {
        quote: 40,
        side: Side::Bid,
        qty: Qty(9),
        ticks: 10,
        delta_milli: 500,
    };
    let before = quoter.room_beside(Side::Bid);
    quoter.on_fill_beside(now, &fill, &mut venue);
    assert_eq!((quoter.net(), quoter.paid()), (9, 90));
    assert_eq!(quoter.room_beside(Side::Bid).contracts, before.contracts - 9);
    assert_eq!(quoter.state(), QuotingState::Quoting);
    assert!(quoter.admits_beside(now, 40) && !quoter.admits_beside(now, 41));
    quoter.on_sent_beside(now, 39);
    assert!(quoter.admits_beside(now, 1) && !quoter.admits_beside(now, 2));
    assert!(quoter.admits_beside(now.after(Nanos::SECOND), 40));
    quoter.on_fill_beside(now, &Fill { qty: Qty(1), ..fill }, &mut venue);
    assert_eq!(quoter.state(), QuotingState::Pulling(PullReason::Protection));
    assert!(!quoter.admits_beside(now.after(Nanos::SECOND), 1), "it is pulled");
}
