//! The electronic eye: an option's changed book to an order, decided and encoded in FIX 4.4; a tick of the
//! underlying against the books of all options. 16 to 1024 options on one future, ten-cent edge.
//!
//! Every order's limit is compared with the ladder's row, and what was encoded with the order, before its
//! time counts. The row "clock" is the cost of measuring, which is in every other one. Behind a pause others
//! have had the caches for so long, and nothing was rehearsed in it.
//!
//! A regression means that an offer below its value stands longer before we reach for it.
//!
//! `cargo bench -p tickwire-trading --bench eye`; without `--bench` it runs tiny and only checks its answers.

mod chain;

use chain::{Figures, ID, MIDDLE, Random, START, chill, ladder, listed, said_now, session, update};
use std::hint::black_box;
use std::time::Instant;
use tickwire_fix::{Again, NewOrder, OrderTemplate, Session};
use tickwire_market::{
    BookState, BookUpdate, ClientOrderId, InstrumentId, Nanos, OrderIntent, Price, SeqNo, Side, Symbol,
    Venue, Volume,
};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::neighbours::{Neighbours, PAUSES};
use tickwire_trading::{
    Eye, EyeConfig, Ladder, NO_ASK, NO_BID, NoQuotes, OrderReport, OrderSink, PriceGrid, QuoteTerms, Quoting,
    ReportKind,
};

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

/// Keeps the last order, and encodes it where it is told to.
struct Wire {
    session: Session,
    templates: Vec<OrderTemplate>,
    encodes: bool,
    now: Nanos,
    last: Option<(u16, OrderIntent)>,
}

impl Wire {
    fn new(options: usize) -> Wire {
        let session = session();
        let template = |n: usize| {
            let symbol = Symbol::new(format!("ESG6 {n:05}").as_bytes()).expect("short");
            OrderTemplate::new(&session, symbol).expect("a template")
        };
        Wire {
            templates: (0..options).map(template).collect(),
            session,
            encodes: false,
            now: START,
            last: None,
        }
    }
}

impl OrderSink for Wire {
    #[inline]
    fn order(&mut self, option: Option<u16>, intent: &OrderIntent) -> bool {
        let (Some(option), Some(order)) = (option, NewOrder::of(intent)) else {
            return false;
        };
        if self.encodes {
            let template = &mut self.templates[usize::from(option)];
            if black_box(template.send(&mut self.session, self.now, &order, Again::Resend)).is_err() {
                return false;
            }
        }
        self.last = Some((option, *intent));
        true
    }
}

/// The text of a field in a message.
fn field<'m>(message: &'m [u8], tag: &str) -> &'m str {
    let text = std::str::from_utf8(message).expect("ASCII");
    let start = format!("\x01{tag}=");
    let rest = text.split(&start).nth(1).expect("it is there");
    rest.split('\x01').next().expect("its end")
}

/// Encodes an order again, and reads it back.
fn check_encoding(wire: &mut Wire, option: u16, intent: &OrderIntent) {
    let order = NewOrder::of(intent).expect("the eye sends orders");
    let template = &mut wire.templates[usize::from(option)];
    let message = template
        .send(&mut wire.session, wire.now, &order, Again::Resend)
        .expect("encoded");
    assert_eq!(field(message, "44").parse::<Price>(), Ok(order.price));
    assert_eq!(field(message, "38").parse::<u32>(), Ok(order.qty.0));
    assert_eq!(field(message, "11").parse::<u64>(), Ok(order.id.0));
    assert_eq!(
        field(message, "54"),
        if order.side == Side::Bid { "1" } else { "2" }
    );
    assert_eq!((field(message, "40"), field(message, "59")), ("2", "3"));
    assert_eq!(field(message, "55"), format!("ESG6 {option:05}"));
    assert_eq!(field(message, "20002").parse::<u64>(), Ok(order.cause.seq.0));
}

fn quoting(count: usize) -> Quoting {
    let grid = PriceGrid::new(0.05, 5, 200).expect("a grid");
    let mut quoting = Quoting::new(count, grid);
    let terms = QuoteTerms {
        edge: 0.1,
        edge_relative: 0.0,
        half_width_max: 1e6,
        ..QuoteTerms::default()
    };
    (0..count).for_each(|option| quoting.set(option, &terms).expect("good terms"));
    quoting
}

struct Rig {
    eye: Eye,
    wire: Wire,
    ladder: Ladder,
    seq: u64,
    random: Random,
}

#[derive(Clone, Copy, PartialEq)]
enum Task {
    Clock,
    Nothing,
    Decide,
    Encode,
    Tick,
}

impl Rig {
    fn new(count: usize) -> Rig {
        let quoting = quoting(count);
        let made = ladder(&listed(count), &quoting);
        let config = EyeConfig {
            underlying: ID,
            contracts_max: u32::MAX,
            contracts_window_ns: 1,
            orders_max: 16,
            orders_window_ns: 1,
            cool_down_ns: 0,
            long_max: u64::MAX / 2,
            short_max: u64::MAX / 2,
            ladder_age_max_ns: 0,
            armed_ns: Nanos::DAY,
            ..EyeConfig::default()
        };
        let instruments: Vec<InstrumentId> = (0..count as u32).map(|n| InstrumentId(2 + n)).collect();
        let mut rig = Rig {
            eye: Eye::new(config, &instruments),
            wire: Wire::new(count),
            ladder: Ladder::clone(&made),
            seq: 1,
            random: Random(1),
        };
        rig.eye.on_logon();
        rig.eye.arm(START);
        let none = rig.eye.replace_ladder(START, made, &NoQuotes, &mut rig.wire);
        assert!(none.is_none());
        rig.eye
            .on_underlying(START, &update(1, MIDDLE), &NoQuotes, &mut rig.wire);
        for option in 0..count {
            let (bid, ask) = rig.fair(option);
            let book = rig.book(option, bid, ask);
            rig.eye
                .on_option(START, option as u16, &book, &NoQuotes, &mut rig.wire);
        }
        assert!(rig.wire.last.is_none(), "nothing crosses");
        rig
    }

    fn triggers(&self, option: usize) -> (u16, u16) {
        let row = self.ladder.row(MIDDLE).expect("in the middle");
        (row.bids[option], row.asks[option])
    }

    /// A market that crosses nothing, also a few ticks away.
    fn fair(&self, option: usize) -> (u16, u16) {
        let (buys, sells) = self.triggers(option);
        (buys.saturating_sub(40), sells + 40)
    }

    fn book(&mut self, option: usize, bid: u16, ask: u16) -> BookUpdate {
        self.seq += 1;
        let tick = Price::ONE_RAW / 20;
        BookUpdate {
            seq: SeqNo(self.seq),
            recv_ts: Nanos(START.0 + self.seq * 1_000),
            venue: Venue::Cme,
            instrument: InstrumentId(2 + option as u32),
            state: BookState::Live,
            price: [bid, ask].map(|ticks| Price::from_raw(i64::from(ticks) * tick)),
            qty: [u64::from(bid != NO_BID), 7 * u64::from(ask != NO_ASK)].map(Volume),
            ..BookUpdate::default()
        }
    }

    /// One of them, behind whatever is done before it; its time.
    fn run(&mut self, task: Task, before: impl FnOnce()) -> u64 {
        let count = self.wire.templates.len();
        let crosses = matches!(task, Task::Decide | Task::Encode);
        let mut option = self.random.below(count as u64) as usize;
        // What is worth less than the edge is not bought at any price.
        while crosses && self.triggers(option).0 == NO_BID {
            option = self.random.below(count as u64) as usize;
        }
        let (buys, _) = self.triggers(option);
        let (bid, fair) = self.fair(option);
        let book = self.book(option, bid, if crosses { buys } else { fair });
        // Back and forth by a half tick: no market is crossed.
        let tick = update(self.seq, MIDDLE + (self.seq % 2) as i64);
        let now = book.recv_ts;
        (self.wire.now, self.wire.encodes) = (now, task == Task::Encode);
        before();
        let (book, tick) = (said_now(&book), said_now(&tick));
        let begin = Instant::now();
        match task {
            Task::Clock => {}
            Task::Tick => self
                .eye
                .on_underlying(now, black_box(&tick), &NoQuotes, &mut self.wire),
            _ => self
                .eye
                .on_option(now, option as u16, black_box(&book), &NoQuotes, &mut self.wire),
        }
        let time = begin.elapsed().as_nanos() as u64;
        let sent = self.wire.last.take();
        assert_eq!(sent.is_some(), crosses, "option {option}");
        if let Some((place, intent)) = sent {
            let OrderIntent::New { id, price, qty, .. } = intent else {
                panic!("{intent:?}")
            };
            assert_eq!(usize::from(place), option);
            assert_eq!(price.raw(), i64::from(buys) * Price::ONE_RAW / 20);
            assert_eq!(qty.0, 7);
            if self.seq.is_multiple_of(64) {
                check_encoding(&mut self.wire, place, &intent);
            }
            self.answer(now, id);
            let book = self.book(option, bid, fair);
            self.eye.on_option(now, place, &book, &NoQuotes, &mut self.wire);
        }
        if task == Task::Tick && self.seq % 2 == 1 {
            self.eye
                .on_underlying(now, &update(self.seq, MIDDLE), &NoQuotes, &mut self.wire);
        }
        time
    }

    fn answer(&mut self, now: Nanos, id: ClientOrderId) {
        let report = OrderReport {
            id,
            venue_id: None,
            kind: ReportKind::Cancelled,
        };
        self.eye
            .on_report(now, &report, &mut self.wire)
            .expect("it was under way");
    }
}

/// How many events of the full run come behind each of [`PAUSES`].
const EVENTS: [usize; 2] = [2_000, 200];

fn main() {
    let is_full = std::env::args().any(|arg| arg == "--bench");
    let rounds = if is_full { 200_000 } else { 100 };
    if is_full {
        Cores::count()
            .pin(Cores::count().usable()[0])
            .expect("the first core is available");
    }
    let mut memory = vec![0_u64; (4 << 20) / 8];
    let (clock, mut neighbours) = (Clock::calibrate(), Neighbours::new());
    println!("nanoseconds");
    println!(
        "{:>5} {:<62} {:>6} {:>6} {:>6} {:>6} {:>7} {:>8}",
        "n", "", "min", "p50", "p90", "p99", "p99.9", "max"
    );
    for count in [16, 128, 1_024] {
        let mut rig = Rig::new(count);
        for (task, what) in [
            (Task::Clock, "clock"),
            (Task::Nothing, "option's book, nothing crossed"),
            (Task::Decide, "option's book, order decided"),
            (Task::Encode, "option's book, order encoded"),
            (Task::Tick, "tick of the underlying, all compared"),
        ] {
            let mut row = |name: &str, most: usize, before: &mut dyn FnMut()| {
                let times = (0..most.min(rounds)).map(|_| rig.run(task, &mut *before));
                println!("{count:>5} {name:<62} {}", Figures(times.collect()).row());
            };
            row(what, rounds, &mut || ());
            row(&format!("{what}, cold"), 2_000, &mut || chill(&mut memory));
            for ((ns, pause), most) in PAUSES.into_iter().zip(EVENTS) {
                let most = if is_full { most } else { 2 };
                row(&format!("{what}, {pause}"), most, &mut || {
                    neighbours.work(&clock, ns, 0, |_| ());
                });
            }
        }
    }
}
