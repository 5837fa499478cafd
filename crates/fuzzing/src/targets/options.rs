//! Options: what they are worth at any terms, and the quoter between a market and a venue that do anything.

use std::collections::VecDeque;
use std::sync::OnceLock;

use crate::Choices;
use tickwire_market::{
    BookState, BookUpdate, Cause, InstrumentId, MassQuoteEntry, Nanos, Price, Qty, SeqNo, Side, Volume,
};
use tickwire_options::{Kind, Terms, bachelier, black76, implied};
use tickwire_trading::{
    Fill, Ladder, MassQuote, NO_ASK, PriceGrid, Protection, QuoteOrders, QuoteSink, QuoteTerms, Quoter,
    QuoterConfig, Quoting, QuotingState, SideOutcome, SideReport, SideReportKind, SideRequest, SideSink,
};

/// A number of any kind: its bits, or one of an ordinary size.
fn number(choices: &mut Choices<'_>, most: f64) -> Option<f64> {
    let is_any = choices.byte()? < 64;
    let bits = choices.number()?;
    Some(if is_any {
        f64::from_bits(bits)
    } else {
        most * (bits >> 11) as f64 / (1_u64 << 53) as f64
    })
}

/// Any terms are refused or valued; where they are ordinary, within the bounds of no arbitrage, and the
/// value's volatility gives the value again.
pub fn option_terms(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let mut terms = || {
        Some(Terms {
            forward: number(&mut choices, 1e4)?,
            strike: number(&mut choices, 1e4)?,
            years: number(&mut choices, 5.0)?,
            vol: number(&mut choices, 2.0)?,
            rate: number(&mut choices, 0.2)?,
            kind: if choices.byte()? & 1 == 0 {
                Kind::Call
            } else {
                Kind::Put
            },
        })
    };
    while let Some(terms) = terms() {
        let _ = (bachelier::price(&terms), bachelier::greeks(&terms));
        let (price, greeks) = (black76::price(&terms), black76::greeks(&terms));
        assert_eq!(price.is_ok(), greeks.is_ok(), "{terms:?}");
        let Ok(price) = price else { continue };
        let _ = (implied::black76(&terms, price), implied::bachelier(&terms, price));
        let within = |x: f64, least: f64, most: f64| (least..=most).contains(&x);
        let is_ordinary = within(terms.forward, 1.0, 1e5)
            && within(terms.strike, 1.0, 1e5)
            && within(terms.years, 1e-4, 10.0)
            && within(terms.vol, 1e-3, 5.0)
            && within(terms.rate, -0.5, 0.5);
        if !is_ordinary {
            continue;
        }
        let (df, slack) = (terms.discount(), 1e-12 * terms.forward.max(terms.strike));
        let least = df * terms.kind.intrinsic(terms.forward, terms.strike);
        let most = black76::maximum(&terms);
        assert!(within(price, least - slack, most + slack), "{price} of {terms:?}");
        if let Ok(vol) = implied::black76(&terms, price) {
            let again = black76::price(&Terms { vol, ..terms }).expect("a volatility");
            assert!(
                (again - price).abs() <= 1e-9 * price + slack,
                "{again} and {price} of {terms:?}"
            );
        }
    }
}

const UNDERLYING: InstrumentId = InstrumentId(1);
/// More than one block of the table.
const QUOTES: usize = 70;
const MIDDLE: i64 = 8_000;
const ROWS: i64 = 24;
const LIMIT: u64 = 300;

#[derive(Clone, Copy, PartialEq, Eq, Default)]
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

/// A venue that keeps quotes as it is told, one request at a time.
struct Desk {
    quotes: Vec<Resting>,
    requests: VecDeque<Request>,
    answers: VecDeque<Answer>,
    is_protected: bool,
    may_quote: bool,
    is_full: bool,
    net: i64,
}

impl Desk {
    fn resting(&self, side: usize) -> u64 {
        self.quotes.iter().map(|quote| u64::from(quote.qty[side])).sum()
    }

    /// Does one request; entries whose bit of `rejects` is set are refused, all of them with every bit.
    fn handle(&mut self, rejects: u8) {
        match self.requests.pop_front() {
            None => {}
            Some(Request::CancelAll(id)) => {
                self.quotes.fill(Resting::default());
                self.answers.push_back(Answer::Cancelled(id));
            }
            Some(Request::Quote(id, reset, entries)) => {
                self.is_protected &= !reset;
                if self.is_protected || rejects == u8::MAX {
                    return self.answers.push_back(Answer::Quote(id, None));
                }
                let mut rejected = Vec::new();
                for (at, entry) in entries.iter().enumerate() {
                    if at < 8 && rejects >> at & 1 == 1 {
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

    fn trade(&mut self, quote: usize, side: Side, most: u32) {
        let at = side as usize;
        let resting = &mut self.quotes[quote];
        let qty = most.min(resting.qty[at]);
        if qty == 0 {
            return;
        }
        let ticks = resting.ticks[at];
        resting.qty[at] -= qty;
        if resting.qty[at] == 0 {
            resting.ticks[at] = 0;
        }
        self.net += [1, -1][at] * i64::from(qty);
        self.answers.push_back(Answer::Filled(Fill {
            quote: quote as u16,
            side,
            qty: Qty(qty),
            ticks,
            delta_milli: 500,
        }));
    }

    fn answer(&mut self, now: Nanos, quoter: &mut Quoter) {
        match self.answers.pop_front() {
            None => {}
            Some(Answer::Quote(id, rejected)) => quoter.on_answer(now, id, rejected.as_deref(), self),
            Some(Answer::Cancelled(id)) => quoter.on_cancelled(now, id, true, self),
            Some(Answer::Filled(fill)) => quoter.on_fill(now, &fill, self),
            Some(Answer::Protected) => quoter.on_protected(),
        }
    }

    fn drain(&mut self, now: Nanos, quoter: &mut Quoter) {
        while !self.requests.is_empty() || !self.answers.is_empty() {
            self.handle(0);
            self.answer(now, quoter);
        }
    }
}

impl QuoteSink for Desk {
    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool {
        assert!(self.may_quote, "quoted after a pull");
        assert!((1..=15).contains(&quote.entries.len()));
        if !self.is_full {
            let request = Request::Quote(quote.id, quote.reset, quote.entries.to_vec());
            self.requests.push_back(request);
        }
        !self.is_full
    }

    fn cancel_all(&mut self, id: u64, _: &Cause) -> bool {
        if !self.is_full {
            self.requests.push_back(Request::CancelAll(id));
        }
        !self.is_full
    }

    fn rehearse(&mut self, quote: &MassQuote<'_>) {
        assert!(self.may_quote, "rehearsed after a pull");
        assert!((1..=15).contains(&quote.entries.len()));
    }
}

fn ladder(version: u64, around: i64) -> Box<Ladder> {
    static QUOTING: OnceLock<Quoting> = OnceLock::new();
    let quoting = QUOTING.get_or_init(|| {
        let grid = PriceGrid::new(0.05, 5, 200).expect("a grid");
        let mut quoting = Quoting::new(QUOTES, grid);
        (0..QUOTES).for_each(|quote| quoting.set(quote, &QuoteTerms::default()).expect("good terms"));
        quoting
    });
    let mut ladder = Box::new(Ladder::new(QUOTES, 2 * ROWS as usize + 1));
    ladder.begin(version, around - ROWS);
    for half_tick in around - ROWS..=around + ROWS {
        let theo = |quote: usize| {
            let moneyness = half_tick as f64 / 8.0 - 965.0 - quote as f64;
            (moneyness.max(0.0).powi(2) + 1.0 + (version % 7) as f64) / 10.0
        };
        let theos: Vec<f64> = (0..QUOTES).map(theo).collect();
        ladder.push_row(&theos, quoting).expect("there is one");
    }
    ladder
}

fn look(seq: u64, half_tick: i64, spread: i64) -> BookUpdate {
    let bid = (half_tick - spread).div_euclid(2);
    let price = |ticks: i64| Price::from_raw(ticks * QuoterConfig::default().underlying_tick.raw());
    BookUpdate {
        seq: SeqNo(seq),
        instrument: UNDERLYING,
        state: BookState::Live,
        price: [price(bid), price(bid + spread)],
        qty: [Volume(5); 2],
        ..BookUpdate::default()
    }
}

/// Whatever market, venue and operator do: nothing is quoted after a pull, the venue never holds more than is
/// known or allowed, and once everything is answered it holds what is believed to be live.
pub fn quoter(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let Some(shape) = choices.byte() else { return };
    let mut quoter = Quoter::new(QuoterConfig {
        underlying: UNDERLYING,
        quotes: QUOTES as u16,
        size: Qty(10),
        long_max: LIMIT,
        short_max: LIMIT,
        quoted_max: 2 * LIMIT,
        messages_max: [10_000, 20][usize::from(shape & 1)],
        improvements_max: [10_000, 10][usize::from(shape >> 1 & 1)],
        in_flight_max: [256, 2][usize::from(shape >> 2 & 1)],
        fade_ticks: 3,
        fade_ns: 50 * Nanos::MILLI,
        calm_ns: 5 * Nanos::MILLI,
        jump_half_ticks: 12,
        protection: Protection {
            window_ns: Nanos::SECOND,
            fills: [0, 3][usize::from(shape >> 3 & 1)],
            ..Protection::default()
        },
        ..QuoterConfig::default()
    });
    let mut desk = Desk {
        quotes: vec![Resting::default(); QUOTES],
        requests: VecDeque::new(),
        answers: VecDeque::new(),
        is_protected: false,
        may_quote: true,
        is_full: false,
        net: 0,
    };
    let (mut now, mut half_tick, mut has_session, mut step) = (Nanos(1), MIDDLE, false, 0);
    quoter.replace_ladder(now, ladder(0, half_tick), &mut desk);
    while let (Some(what), Some(how)) = (choices.byte(), choices.byte()) {
        now = now.after(u64::from(how) * 10_000);
        step += 1;
        let quote = usize::from(how) % QUOTES;
        let side = [Side::Bid, Side::Ask][usize::from(how >> 7)];
        quoter.rehearse(now, &mut desk);
        match what % 16 {
            0..4 => {
                half_tick = (half_tick + i64::from(how % 9) - 4).clamp(MIDDLE - ROWS - 4, MIDDLE + ROWS + 4);
                let mut update = look(step, half_tick, 2);
                match what {
                    128.. => {}
                    0..4 => update.state = BookState::Stale,
                    4..20 => update.price.swap(0, 1),
                    20..36 => update = look(step, half_tick, 12),
                    _ => {}
                }
                quoter.on_underlying(now, &update, &mut desk);
            }
            4..7 => desk.handle(if what < 112 { 0 } else { how }),
            7..10 => desk.answer(now, &mut quoter),
            10 => desk.trade(quote, side, 1 + u32::from(what >> 4)),
            11 => quoter.handle_timeout(now, &mut desk),
            12 if has_session && what >> 4 == 0 => {
                desk.quotes.fill(Resting::default());
                for answer in std::mem::take(&mut desk.answers) {
                    if let Answer::Filled(fill) = answer {
                        quoter.on_fill(now, &fill, &mut desk);
                    }
                }
                desk.requests.clear();
                quoter.on_disconnect();
                (has_session, desk.is_protected) = (false, false);
            }
            12 if !has_session => {
                quoter.on_logon(now);
                has_session = true;
            }
            13 => match what >> 4 {
                0 => {
                    desk.quotes.fill(Resting::default());
                    desk.is_protected = true;
                    desk.answers.push_back(Answer::Protected);
                }
                1..4 => {
                    quoter.replace_ladder(now, ladder(step, half_tick), &mut desk);
                }
                4 => desk.is_full = how & 1 == 1,
                _ => quoter.set_quoted(now, quote as u16, how & 1 == 0, &mut desk),
            },
            14 if what >> 4 < 4 => {
                quoter.pull(now, &mut desk);
                desk.may_quote = false;
            }
            14 => {
                desk.may_quote = true;
                quoter.resume(now);
            }
            _ if has_session => {
                desk.is_full = false;
                quoter.handle_timeout(now, &mut desk);
                desk.drain(now, &mut quoter);
                for (at, resting) in desk.quotes.iter().enumerate() {
                    let (bid, ask) = quoter.live(at as u16);
                    let ask = if ask == NO_ASK { 0 } else { ask };
                    assert!(
                        resting.ticks == [bid, ask] && resting.qty == quoter.open(at as u16),
                        "quote {at}"
                    );
                }
                assert_eq!(quoter.net(), desk.net);
                assert_eq!(quoter.open_all(), [desk.resting(0), desk.resting(1)]);
                if matches!(quoter.state(), QuotingState::Halted(_)) {
                    assert_eq!(quoter.open_all(), [0, 0]);
                }
            }
            _ => {}
        }
        let [bids, asks] = [desk.resting(0), desk.resting(1)];
        let [open_bids, open_asks] = quoter.open_all();
        assert!(
            !has_session || (bids <= open_bids && asks <= open_asks),
            "more rests than is known"
        );
        assert!(desk.net + bids as i64 <= LIMIT as i64 && asks as i64 - desk.net <= LIMIT as i64);
        assert!(bids + asks <= 2 * LIMIT);
    }
}

/// Requests of orders that were not answered, by quote and side.
#[derive(Default)]
struct Requests {
    under_way: Vec<[Option<SideRequest>; 2]>,
    may_quote: bool,
    is_full: bool,
}

impl SideSink for Requests {
    fn request(&mut self, request: &SideRequest) -> bool {
        assert!(self.may_quote, "an order after a pull");
        if self.is_full {
            return false;
        }
        let place = &mut self.under_way[usize::from(request.quote)][request.side as usize];
        assert!(
            place.is_none(),
            "two requests of one side: {place:?} and {request:?}"
        );
        *place = Some(*request);
        true
    }
}

/// Quotes as orders, and what they ask for.
struct OrderDesk {
    quotes: QuoteOrders,
    requests: Requests,
}

impl QuoteSink for OrderDesk {
    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool {
        self.quotes.quote(quote, &mut self.requests)
    }

    fn cancel_all(&mut self, _: u64, _: &Cause) -> bool {
        !self.requests.is_full
    }
}

/// Whatever a venue reports about orders that it has, had or never had: one request a side is under way at
/// most, none after a pull, and what is believed live is what its reports said.
pub fn quote_orders(bytes: &[u8]) {
    const KINDS: [SideReportKind; 7] = [
        SideReportKind::Accepted,
        SideReportKind::Replaced,
        SideReportKind::Filled,
        SideReportKind::Cancelled,
        SideReportKind::Rejected,
        SideReportKind::Refused,
        SideReportKind::Reduced,
    ];
    let mut choices = Choices::new(bytes);
    let mut quoter = Quoter::new(QuoterConfig {
        underlying: UNDERLYING,
        quotes: QUOTES as u16,
        size: Qty(10),
        entries_max: 1,
        messages_max: 10_000,
        improvements_max: 10_000,
        jump_half_ticks: 12,
        retry_ns: Nanos::MILLI,
        ..QuoterConfig::default()
    });
    let mut desk = OrderDesk {
        quotes: QuoteOrders::new(QUOTES as u16),
        requests: Requests {
            under_way: vec![[None; 2]; QUOTES],
            may_quote: true,
            is_full: false,
        },
    };
    let (mut now, mut half_tick, mut step) = (Nanos(1), MIDDLE, 0);
    quoter.replace_ladder(now, ladder(0, half_tick), &mut desk);
    quoter.on_logon(now);
    while let (Some(what), Some(how), Some(much)) = (choices.byte(), choices.byte(), choices.byte()) {
        now = now.after(u64::from(how) * 10_000);
        step += 1;
        let quote = u16::from(how) % QUOTES as u16;
        let side = [Side::Bid, Side::Ask][usize::from(what >> 7)];
        match what % 8 {
            0 => {
                half_tick = (half_tick + i64::from(how % 9) - 4).clamp(MIDDLE - ROWS, MIDDLE + ROWS);
                quoter.on_underlying(now, &look(step, half_tick, 2), &mut desk);
            }
            1..6 => {
                let asked = desk.requests.under_way[usize::from(quote)][side as usize];
                let kind = KINDS[usize::from(what >> 3) % KINDS.len()];
                // Mostly of what is under way, as it should be; else of anything.
                let (id, leaves) = match (asked, much) {
                    (Some(asked), 0..200) => (asked.id, asked.qty),
                    (_, much) => (u64::from(much) * 3, u32::from(much) << (much % 25)),
                };
                let filled = u32::from(much % 7);
                let report = SideReport {
                    quote,
                    side,
                    id,
                    kind,
                    leaves,
                    filled,
                };
                let outcome = desk.quotes.on_report(&report);
                if asked.is_some_and(|asked| asked.id == id) && outcome != SideOutcome::Unknown {
                    desk.requests.under_way[usize::from(quote)][side as usize] = None;
                }
                if kind == SideReportKind::Filled && outcome != SideOutcome::Unknown {
                    let fill = Fill {
                        quote,
                        side,
                        qty: Qty(filled),
                        ticks: u16::from(much),
                        delta_milli: 500,
                    };
                    quoter.on_order_fill(now, &fill, &mut desk);
                }
                match outcome {
                    SideOutcome::Answered(live) => {
                        assert_eq!(desk.requests.under_way[usize::from(quote)], [None; 2]);
                        quoter.on_orders(now, &live, &mut desk);
                    }
                    SideOutcome::Left(contracts) => {
                        let mut left = [u32::MAX; 2];
                        left[side as usize] = contracts;
                        quoter.on_left(quote, left);
                    }
                    SideOutcome::Nothing | SideOutcome::Unknown => {}
                }
                while let Some(live) = desk.quotes.poll_answer() {
                    quoter.on_orders(now, &live, &mut desk);
                }
            }
            6 if what >> 4 == 0 => {
                quoter.pull(now, &mut desk);
                desk.requests.may_quote = false;
            }
            6 if what >> 4 < 4 => {
                // The venue has cancelled everything, or the connection is gone.
                desk.quotes.clear();
                desk.requests.under_way.fill([None; 2]);
                quoter.on_disconnect();
                quoter.on_logon(now);
            }
            6 => {
                desk.requests.may_quote = true;
                quoter.resume(now);
            }
            _ => {
                desk.requests.is_full = how & 7 == 0;
                quoter.handle_timeout(now, &mut desk);
            }
        }
        if let QuotingState::Halted(_) = quoter.state() {
            assert_eq!(quoter.open_all(), [0, 0]);
        }
    }
}
