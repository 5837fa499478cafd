//! A tick of the underlying to every mass quote that it changes, encoded: 16 to 1024 options on one future, in the order of their
//! delta, quoted with an edge of a tenth of a point and half a percent, FIX 4.4.
//!
//! Compares in one run, warm and with 4 MiB walked between the ticks (cold caches): the quoter with its ladder, up to its first
//! message and up to its last; and what it replaces, pricing every option anew by the scalar formula and comparing one by one.
//! Every tick's answer is checked against direct repricing before its time counts.
//!
//! A regression of the quoter alone means that looking up, comparing or encoding has become dearer on every tick.
//!
//! `cargo bench -p tickwire-trading --bench quoter`; without `--bench` it runs tiny and only checks its answers.

use std::hint::black_box;
use std::time::Instant;
use tickwire_fix::{
    CompId, Event, MassQuoteHead, MassQuoteTemplate, Precision, QuoteDecimals, QuotePrices, Role, Session,
    SessionConfig,
};
use tickwire_market::{
    BookState, BookUpdate, Cause, InstrumentId, Nanos, Price, SeqNo, Symbol, Venue, Volume,
};
use tickwire_options::batch::{Engine, LANES_MAX, Listed, Strip};
use tickwire_options::{Kind, Terms, black76};
use tickwire_runtime::affinity;
use tickwire_trading::{
    Ladder, MassQuote, PriceGrid, QuoteSink, QuoteTerms, Quoter, QuoterConfig, Quoting, QuotingState,
};

const ID: InstrumentId = InstrumentId(1);
const START: Nanos = Nanos(1_767_623_400_000_000_000);
/// Bid plus ask of the future, in quarters of a point: 5000.
const MIDDLE: i64 = 40_000;
const ROWS: i64 = 64;

/// Calls and puts around the money, 35 days: the most of delta first.
fn listed(count: usize) -> Vec<Listed> {
    let mut all: Vec<Listed> = (0..count)
        .map(|n| Listed {
            strike: 5_000.0 + 5.0 * (n as f64 / 2.0 - count as f64 / 4.0).trunc(),
            kind: if n % 2 == 0 { Kind::Call } else { Kind::Put },
            vol: 0.18,
        })
        .collect();
    let delta = |option: &Listed| {
        black76::greeks(&terms(option, 5_000.0))
            .expect("valued")
            .delta
            .abs()
    };
    all.sort_by(|a, b| delta(b).total_cmp(&delta(a)));
    all
}

fn terms(option: &Listed, forward: f64) -> Terms {
    Terms {
        forward,
        strike: option.strike,
        years: 35.0 / 365.0,
        vol: option.vol,
        rate: 0.04,
        kind: option.kind,
    }
}

fn quoting(count: usize) -> Quoting {
    // 0.05 up to 10 points, 0.25 from there on.
    let grid = PriceGrid::new(0.05, 5, 200).expect("a grid");
    let mut quoting = Quoting::new(count, grid);
    for quote in 0..count {
        quoting.set(quote, &QuoteTerms::default()).expect("good terms");
    }
    quoting
}

fn forward(half_tick: i64) -> f64 {
    half_tick as f64 / 8.0
}

fn ladder(options: &[Listed], quoting: &Quoting) -> Box<Ladder> {
    let strip = Strip::new(5_000.0, 35.0 / 365.0, 0.04, options).expect("valued");
    let mut ladder = Box::new(Ladder::new(options.len(), 2 * ROWS as usize + 1));
    let mut theos = vec![0.0; options.len().next_multiple_of(LANES_MAX)];
    ladder.begin(1, MIDDLE - ROWS);
    for half_tick in MIDDLE - ROWS..=MIDDLE + ROWS {
        Engine::detect()
            .price(&strip, forward(half_tick), &mut theos)
            .expect("priced");
        ladder.push_row(&theos[..options.len()], quoting).expect("room");
    }
    ladder
}

fn update(seq: u64, half_tick: i64) -> BookUpdate {
    let quarter = Price::ONE_RAW / 4;
    let bid = (half_tick - 1).div_euclid(2);
    BookUpdate {
        seq: SeqNo(seq),
        recv_ts: Nanos(START.0 + seq * 100_000),
        venue: Venue::Cme,
        instrument: ID,
        state: BookState::Live,
        price: [bid, half_tick - bid].map(|ticks| Price::from_raw(ticks * quarter)),
        qty: [Volume(50); 2],
        ..BookUpdate::default()
    }
}

/// A logged-on market maker's session.
fn session() -> Session {
    let config = |role, sender: &[u8], target: &[u8]| SessionConfig {
        precision: Precision::Micros,
        latency_max_ns: 0,
        ..SessionConfig::new(
            role,
            CompId::new(sender).expect("short"),
            CompId::new(target).expect("short"),
        )
    };
    let mut maker = Session::new(config(Role::Initiator, b"MM1", b"XCH"));
    let mut venue = Session::new(config(Role::Acceptor, b"XCH", b"MM1"));
    maker.handle_connected(START);
    venue.handle_connected(START);
    let mut buf = [0; 4096];
    while let Some(bytes) = maker.poll_transmit(&mut buf) {
        assert_eq!(venue.handle_bytes(START, bytes), bytes.len());
    }
    while let Some(bytes) = venue.poll_transmit(&mut buf) {
        assert_eq!(maker.handle_bytes(START, bytes), bytes.len());
    }
    assert!(matches!(maker.poll_event(), Some(Event::LoggedOn { .. })));
    maker
}

/// Encodes what leaves.
struct Wire {
    session: Session,
    template: MassQuoteTemplate,
    now: Nanos,
    /// Numbers of the messages of this tick.
    sent: Vec<u64>,
    bytes: usize,
    entries: u64,
    messages: u64,
    first: Option<Instant>,
    times_first: bool,
}

impl Wire {
    fn new(count: usize) -> Wire {
        let symbol = |n| Symbol::new(format!("ESG6 {n:05}").as_bytes()).expect("short");
        let symbols: Vec<Symbol> = (0..count).map(symbol).collect();
        let session = session();
        let prices = QuotePrices {
            tick: Price::from_raw(Price::ONE_RAW / 20),
            decimals: QuoteDecimals::Two,
        };
        let template = session
            .mass_quote_template(&symbols, prices, 15)
            .expect("a template");
        Wire {
            session,
            template,
            now: START,
            sent: Vec::with_capacity(1_024),
            bytes: 0,
            entries: 0,
            messages: 0,
            first: None,
            times_first: false,
        }
    }
}

impl QuoteSink for Wire {
    #[inline]
    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool {
        let head = MassQuoteHead {
            id: quote.id,
            cause: quote.cause,
            reset: quote.reset,
        };
        let message = self
            .session
            .encode_mass_quote(self.now, &mut self.template, &head, quote.entries);
        let Ok(message) = black_box(message) else {
            return false;
        };
        if self.times_first && self.first.is_none() {
            self.first = Some(Instant::now());
        }
        self.bytes += message.len();
        self.entries += quote.entries.len() as u64;
        self.messages += 1;
        self.sent.push(quote.id);
        true
    }

    fn cancel_all(&mut self, _: u64, cause: &Cause) -> bool {
        panic!("pulled at {cause:?}");
    }
}

struct Figures(Vec<u64>);

impl Figures {
    fn row(mut self) -> String {
        self.0.sort_unstable();
        let at = |part: f64| self.0[((self.0.len() - 1) as f64 * part) as usize];
        format!(
            "{:>6} {:>6} {:>6} {:>6} {:>7} {:>8}",
            self.0[0],
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            self.0[self.0.len() - 1]
        )
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Walks memory, so that a tick finds nothing of the last one in the first two caches.
fn chill(memory: &mut [u64]) {
    for word in memory.iter_mut().step_by(8) {
        *word = word.wrapping_add(1);
    }
    black_box(memory);
}

#[derive(Clone, Copy, PartialEq)]
enum Until {
    First,
    Last,
}

/// Times of ticks of one half tick up or down, with all quotes answered in between; entries and messages a tick.
fn quoter(count: usize, ticks: u64, until: Until, cold: Option<&mut Vec<u64>>) -> (Figures, [f64; 3]) {
    let options = listed(count);
    let quoting = quoting(count);
    let mut quoter = Quoter::new(QuoterConfig {
        underlying: ID,
        quotes: count as u16,
        messages_max: 1_024,
        improvements_max: 1_024,
        window_ns: 1,
        ..QuoterConfig::default()
    });
    let mut wire = Wire::new(count);
    quoter.replace_ladder(START, ladder(&options, &quoting), &mut wire);
    quoter.on_logon(START);
    let (mut random, mut half_tick, mut cold) = (Random(1), MIDDLE, cold);
    let mut times = Vec::with_capacity(ticks as usize);
    for tick in 0..=ticks {
        half_tick += [-1, 1][random.below(2) as usize];
        half_tick = half_tick.clamp(MIDDLE - ROWS, MIDDLE + ROWS);
        let update = update(tick + 1, half_tick);
        let now = Nanos(update.recv_ts.0 + 500);
        (wire.now, wire.first, wire.times_first) = (now, None, until == Until::First);
        if let Some(memory) = &mut cold {
            chill(memory);
        }
        let begin = Instant::now();
        quoter.on_underlying(now, black_box(&update), &mut wire);
        let end = if until == Until::First {
            wire.first
        } else {
            Some(Instant::now())
        };
        while !wire.sent.is_empty() {
            for id in std::mem::take(&mut wire.sent) {
                quoter.on_answer(now, id, Some(&[]), &mut wire);
            }
        }
        assert_eq!(quoter.state(), QuotingState::Quoting);
        let forward = forward(half_tick);
        let stride = if tick % 16 == 0 { 1 } else { 17 };
        for quote in (0..count).step_by(stride) {
            let theo = black76::price(&terms(&options[quote], forward)).expect("priced");
            let (bid, ask) = quoter.live(quote as u16);
            let wanted = quoting.wanted(quote, theo);
            // The scalar formula and the vectors' may differ in the last bit; a quote at the edge of a tick by one.
            let is_near = |a: u16, b: u16| a.abs_diff(b) <= 5;
            assert!(
                is_near(bid, wanted.0) && is_near(ask, wanted.1),
                "quote {quote} at {forward}"
            );
        }
        if let (Some(end), true) = (end, tick > 0) {
            times.push((end - begin).as_nanos() as u64);
        }
        if tick == 0 {
            // The first tick quotes everything; it is not one of those measured.
            (wire.bytes, wire.entries, wire.messages) = (0, 0, 0);
        }
    }
    let each = |n: u64| n as f64 / ticks as f64;
    let sizes = [each(wire.entries), each(wire.messages), each(wire.bytes as u64)];
    (Figures(times), sizes)
}

/// What a ladder replaces: every option priced by the scalar formula, then rounded and compared. Nothing is encoded.
fn repriced(count: usize, ticks: u64) -> Figures {
    let options = listed(count);
    let quoting = quoting(count);
    let mut live = vec![(0, u16::MAX); count];
    let (mut random, mut half_tick) = (Random(1), MIDDLE);
    let times = (0..ticks).map(|_| {
        half_tick += [-1, 1][random.below(2) as usize];
        let forward = black_box(forward(half_tick));
        let begin = Instant::now();
        let mut changed = 0;
        for (quote, option) in options.iter().enumerate() {
            let wanted = quoting.wanted(quote, black76::price(&terms(option, forward)).expect("priced"));
            changed += u32::from(wanted != live[quote]);
            live[quote] = wanted;
        }
        black_box(changed);
        begin.elapsed().as_nanos() as u64
    });
    Figures(times.collect())
}

fn main() {
    let is_full = std::env::args().any(|arg| arg == "--bench");
    let ticks = if is_full { 100_000 } else { 40 };
    if is_full {
        affinity::pin(affinity::available_cores()[0]).expect("the first core is available");
    }
    let mut memory = vec![0_u64; (4 << 20) / 8];
    println!("nanoseconds a tick; {:?} for the ladder", Engine::detect().path());
    println!(
        "{:>5} {:<26} {:>6} {:>6} {:>6} {:>6} {:>7} {:>8}",
        "n", "", "min", "p50", "p90", "p99", "p99.9", "max"
    );
    for count in [16, 32, 64, 128, 256, 512, 1_024] {
        let ((all, sizes), (first, _)) = (
            quoter(count, ticks, Until::Last, None),
            quoter(count, ticks, Until::First, None),
        );
        println!("{count:>5} {:<26} {}", "to the last message", all.row());
        println!("{count:>5} {:<26} {}", "to the first message", first.row());
        let cold_ticks = ticks.min(2_000);
        let (all, _) = quoter(count, cold_ticks, Until::Last, Some(&mut memory));
        println!("{count:>5} {:<26} {}", "to the last, cold caches", all.row());
        let (first, _) = quoter(count, cold_ticks, Until::First, Some(&mut memory));
        println!("{count:>5} {:<26} {}", "to the first, cold caches", first.row());
        println!(
            "{count:>5} {:<26} {}",
            "scalar repricing alone",
            repriced(count, cold_ticks).row()
        );
        let [entries, messages, bytes] = sizes;
        println!("{count:>5} {entries:.1} quotes changed, {messages:.1} messages, {bytes:.0} bytes a tick");
    }
}
