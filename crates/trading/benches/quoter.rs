//! A tick of the underlying to every mass quote that it changes, encoded: 16 to 1024 options on one future,
//! in the order of their delta, quoted with an edge of a tenth of a point and half a percent, FIX 4.4 and, by
//! the way, iLink 3 (SBE).
//!
//! Compares in one run, warm, with 4 MiB walked between the ticks (cold caches), and after pauses of 1 and 10
//! ms, in which others have the caches, with rehearsals as shipped and without: the quoter with its ladder,
//! up to its first message and up to its last; and what it replaces, pricing every option anew by the scalar
//! formula and comparing one by one. Every tick's answer is checked against direct repricing before its time
//! counts.
//!
//! **Not as shipped in one thing**: no market is there to hold quotes to ([`QuoterConfig::market`]), which
//! `tickwire quote` does, by one more comparison of a block.
//!
//! A regression of the quoter alone means that looking up, comparing or encoding has become dearer on every
//! tick.
//!
//! `cargo bench -p tickwire-trading --bench quoter`; without `--bench` it runs tiny and only checks its
//! answers.

mod chain;

use chain::{
    Figures, ID, MIDDLE, ROWS, Random, START, chill, forward, ladder, listed, said_now, session, terms,
    update,
};
use std::hint::black_box;
use std::time::Instant;
use tickwire_book::prefetch;
use tickwire_fix::{MassQuoteHead, MassQuoteTemplate, QuoteDecimals, QuotePrices, Session};
use tickwire_market::{Cause, Nanos, Price, Symbol};
use tickwire_options::batch::Engine;
use tickwire_options::black76;
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::neighbours::{Neighbours, PAUSES};
use tickwire_trading::{
    MassQuote, PriceGrid, QuoteSink, QuoteTerms, Quoter, QuoterConfig, Quoting, QuotingState,
};
use tickwire_wire::ilink3;
use tickwire_wire::sbe::Text;

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

fn quoting(count: usize) -> Quoting {
    // 0.05 up to 10 points, 0.25 from there on.
    let grid = PriceGrid::new(0.05, 5, 200).expect("a grid");
    let mut quoting = Quoting::new(count, grid);
    for quote in 0..count {
        quoting.set(quote, &QuoteTerms::default()).expect("good terms");
    }
    quoting
}

/// Encodes what leaves.
struct Wire {
    session: Session,
    template: MassQuoteTemplate,
    /// Instead of FIX.
    sbe: Option<ilink3::MassQuoteTemplate>,
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
    fn new(count: usize, encoding: Encoding) -> Wire {
        let symbol = |n| Symbol::new(format!("ESG6 {n:05}").as_bytes()).expect("short");
        let symbols: Vec<Symbol> = (0..count).map(symbol).collect();
        let session = session();
        let prices = QuotePrices {
            tick: Price::from_raw(Price::ONE_RAW / 20),
            decimals: QuoteDecimals::Two,
        };
        let template = MassQuoteTemplate::new(&session, &symbols, prices, 15).expect("a template");
        let security = |n| ilink3::QuotedSecurity {
            security_id: n,
            underlying_security_id: Some(1),
            quote_set_id: 1,
        };
        let securities: Vec<_> = (1..=count as i32).map(security).collect();
        let identity = ilink3::Identity {
            party_details_list_req_id: 1,
            sender_id: Text::new(b"QUOTER").expect("short"),
            location: Text::new(b"US").expect("short"),
        };
        let sbe =
            || ilink3::MassQuoteTemplate::new(&identity, &securities, prices.tick, 15).expect("a template");
        Wire {
            session,
            template,
            sbe: (encoding == Encoding::Sbe).then(sbe),
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
        let message = match &mut self.sbe {
            None => self
                .template
                .send(&mut self.session, self.now, &head, quote.entries)
                .ok(),
            Some(template) => {
                let head = ilink3::MassQuoteHead {
                    seq: quote.id as u32,
                    sending_time: self.now,
                    id: quote.id as u32,
                    reset: quote.reset,
                };
                template.write(&head, quote.entries)
            }
        };
        let Some(message) = black_box(message) else {
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

    fn rehearse(&mut self, quote: &MassQuote<'_>) {
        let head = MassQuoteHead {
            id: quote.id,
            cause: quote.cause,
            reset: quote.reset,
        };
        self.template
            .rehearse(&mut self.session, self.now, &head, quote.entries);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Until {
    First,
    Last,
}

/// FIX 4.4, or iLink 3 in SBE.
#[derive(Clone, Copy, PartialEq)]
enum Encoding {
    Fix,
    Sbe,
}

/// What happens before a tick.
enum Before<'m> {
    /// Nothing: the last one was just now.
    Nothing,
    /// Memory is walked through, so that no cache has anything.
    Cold(&'m mut Vec<u64>),
    /// A pause of so many nanoseconds, in which others have the caches; with a rehearsal every so many, or
    /// none.
    Pause {
        neighbours: &'m mut Neighbours,
        clock: &'m Clock,
        ns: u64,
        rehearse_ns: u64,
    },
}

/// How many ticks of the full run come behind each of [`PAUSES`].
const TICKS: [u64; 2] = [2_000, 200];
/// A rehearsal comes every so often in them, as shipped.
const REHEARSE_NS: u64 = 10 * Nanos::MICRO;

/// Times of ticks of one half tick up or down, with all quotes answered in between; entries and messages a
/// tick.
fn quoter(count: usize, ticks: u64, until: Until, before: Before<'_>) -> (Figures, [f64; 3]) {
    quoter_by(Encoding::Fix, count, ticks, until, before)
}

fn quoter_by(
    encoding: Encoding,
    count: usize,
    ticks: u64,
    until: Until,
    mut before: Before<'_>,
) -> (Figures, [f64; 3]) {
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
    let mut wire = Wire::new(count, encoding);
    quoter.replace_ladder(START, ladder(&options, &quoting), &mut wire);
    quoter.on_logon(START);
    let (mut random, mut half_tick) = (Random(1), MIDDLE);
    let mut times = Vec::with_capacity(ticks as usize);
    for tick in 0..=ticks {
        half_tick += [-1, 1][random.below(2) as usize];
        half_tick = half_tick.clamp(MIDDLE - ROWS, MIDDLE + ROWS);
        let update = update(tick + 1, half_tick);
        let now = Nanos(update.recv_ts.0 + 500);
        (wire.now, wire.first, wire.times_first) = (now, None, until == Until::First);
        match &mut before {
            Before::Nothing => {}
            Before::Cold(memory) => chill(memory),
            Before::Pause {
                neighbours,
                clock,
                ns,
                rehearse_ns,
            } => neighbours.work(clock, *ns, *rehearse_ns, |_| {
                // As a host does with its sessions.
                prefetch::fetch_value(&wire);
                quoter.rehearse(now, &mut wire);
            }),
        }
        let update = said_now(&update);
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
            // The scalar formula and the vectors' may differ in the last bit; a quote at the edge of a tick
            // by one.
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

/// What a ladder replaces: every option priced by the scalar formula, then rounded and compared. Nothing is
/// encoded.
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
        Cores::count()
            .pin(Cores::count().usable()[0])
            .expect("the first core is available");
    }
    let (clock, mut neighbours) = (Clock::calibrate(), Neighbours::new());
    let mut memory = vec![0_u64; (4 << 20) / 8];
    println!("nanoseconds a tick; {:?} for the ladder", Engine::detect().path());
    println!("quotes are held to no market, as `tickwire quote` does (quoter.market)");
    println!(
        "{:>5} {:<26} {:>6} {:>6} {:>6} {:>6} {:>7} {:>8}",
        "n", "", "min", "p50", "p90", "p99", "p99.9", "max"
    );
    for count in [16, 32, 64, 128, 256, 512, 1_024] {
        let ((all, sizes), (first, _)) = (
            quoter(count, ticks, Until::Last, Before::Nothing),
            quoter(count, ticks, Until::First, Before::Nothing),
        );
        println!("{count:>5} {:<26} {}", "to the last message", all.row());
        println!("{count:>5} {:<26} {}", "to the first message", first.row());
        let (all, [_, _, sbe_bytes]) = quoter_by(Encoding::Sbe, count, ticks, Until::Last, Before::Nothing);
        println!("{count:>5} {:<26} {}", "to the last, in SBE", all.row());
        let cold_ticks = ticks.min(2_000);
        let (all, _) = quoter(count, cold_ticks, Until::Last, Before::Cold(&mut memory));
        println!("{count:>5} {:<26} {}", "to the last, cold caches", all.row());
        let (first, _) = quoter(count, cold_ticks, Until::First, Before::Cold(&mut memory));
        println!("{count:>5} {:<26} {}", "to the first, cold caches", first.row());
        for ((ns, pause), most) in PAUSES.into_iter().zip(TICKS) {
            for (name, rehearse_ns) in [(pause, REHEARSE_NS), ("the same, not rehearsed", 0)] {
                let before = Before::Pause {
                    neighbours: &mut neighbours,
                    clock: &clock,
                    ns,
                    rehearse_ns,
                };
                let (all, _) = quoter(count, ticks.min(most), Until::Last, before);
                println!("{count:>5} {name:<26} {}", all.row());
            }
        }
        println!(
            "{count:>5} {:<26} {}",
            "scalar repricing alone",
            repriced(count, cold_ticks).row()
        );
        let [entries, messages, bytes] = sizes;
        println!(
            "{count:>5} {entries:.1} quotes changed, {messages:.1} messages, {bytes:.0} bytes a tick, {sbe_bytes:.0} in SBE"
        );
    }
}
