//! The options quoter and the eye as strategies of one process: either alone, and both side by side.

use super::*;
use tickwire_trading::strategy::Either;
use tickwire_trading::{
    EyeConfig, EyeOff, EyeState, Ladder, Ladders, OptionEye, OptionQuoter, PriceGrid, Pricing, QuotedOption,
    QuoterConfig, QuoterTrade, Quoting,
};

/// Instrument 1 is the future, 2 and 3 are the options.
const NAMES: [&str; 3] = ["FUT", "O1", "O2"];
/// Bid plus ask of the future, in quarters of a point.
const HALF_TICK: i64 = 8_001;

/// One ladder on its way.
struct Desk {
    ladders: Option<Ladders>,
    trades: u32,
}

impl Pricing for Desk {
    fn next(&mut self) -> Option<Ladders> {
        self.ladders.take()
    }

    fn give_back(&mut self, _: Ladders) {}

    fn traded(&mut self, _: &QuoterTrade) -> bool {
        self.trades += 1;
        true
    }
}

type Maker = Either<OptionQuoter<Desk>, OptionEye<Desk>>;

fn name(at: usize) -> Symbol {
    Symbol::new(NAMES[at].as_bytes()).expect("a symbol")
}

fn options() -> Vec<QuotedOption> {
    let options = (1..3).map(|at| QuotedOption {
        symbol: name(at),
        delta_milli: 500,
    });
    options.collect()
}

/// The options are worth so much at any price of the future.
fn desk(values: [f64; 2]) -> Desk {
    let grid = PriceGrid::new(0.05, 5, 200).expect("a grid");
    let mut quoting = Quoting::new(2, grid);
    for quote in 0..2 {
        quoting.set(quote, &Default::default()).expect("good terms");
    }
    let ladder = || {
        let mut ladder = Box::new(Ladder::new(2, 81));
        ladder.begin(1, HALF_TICK - 40);
        (0..81).for_each(|_| ladder.push_row(&values, &quoting).expect("there is room"));
        ladder
    };
    let ladders = Ladders {
        quotes: ladder(),
        eye: Some(ladder()),
        hedges: vec![500; 2],
    };
    Desk {
        ladders: Some(ladders),
        trades: 0,
    }
}

fn quoter(values: [f64; 2]) -> Maker {
    let config = QuoterConfig {
        quotes: 2,
        ..QuoterConfig::default()
    };
    Either::First(OptionQuoter::new(config, name(0), options(), desk(values)))
}

fn eye(values: [f64; 2]) -> Maker {
    let config = EyeConfig {
        believed_ticks: u16::MAX,
        ..EyeConfig::default()
    };
    Either::Second(OptionEye::new(config, name(0), options(), desk(values)))
}

struct Rig {
    hot: HotPath<MemoryOut, false, Live<Maker>>,
    now: Nanos,
    seq: u64,
}

impl Rig {
    fn new(strategies: Vec<Maker>) -> Rig {
        let clock = Clock::calibrate();
        let hosting = strategies.into_iter().enumerate().map(|(at, strategy)| Hosting {
            name: format!("strategy {at}"),
            strategy,
            feeds: None,
            sessions: None,
            on_every_event: true,
            ends_with_session: false,
            max_orders: 1 << 10,
            risk: RiskConfig {
                price_band_bp: 10_000,
                controls: ControlsConfig::NONE,
                ..RiskConfig::default()
            },
        });
        let mut live = Live::hosting(hosting.collect());
        let routes = Routes {
            sessions: vec!["order_entry".to_string()],
            send: vec![SendWay::Kernel],
            of_source: vec![vec![0]],
        };
        live.prepare(&[facts(0, "cme", Venue::Cme)], &routes, 8, Nanos::ZERO)
            .expect("it fits");
        live.set_session(0, true);
        let books = Books::new(BooksConfig {
            instruments: 8,
            orders: 1_024,
            levels: 1_024,
            initial: BookState::Live,
            ..BooksConfig::default()
        });
        let hot = memory::memory_path_of(MemoryOut::new(), books, live, clock).expect("it logs on");
        let now = hot.clock.now();
        let mut rig = Rig { hot, now, seq: 0 };
        Live::start(&mut rig.hot, now);
        for (id, tick) in (1..).zip([0.25, 0.05, 0.05]) {
            let instrument = Instrument {
                id: InstrumentId(id),
                symbol: name(id as usize - 1),
                tick: points(tick),
                ..Instrument::default()
            };
            define_one(&mut rig.hot, now, &instrument, None);
        }
        for (id, best) in (2..).zip([[49.0, 51.0], [29.0, 31.0]]) {
            rig.show(id, Side::Bid, best[0]);
            rig.show(id, Side::Ask, best[1]);
        }
        rig.show(1, Side::Bid, 1_000.0);
        rig.show(1, Side::Ask, 1_000.25);
        rig.turn();
        // What the venue may have of a process before this one is cancelled first.
        let quoter = &rig.hot.rule.hosted[0].conductor;
        let done = QuoteReport::Cancelled {
            id: quoter.orders().last_id(),
            is_done: true,
        };
        tell_quotes(&mut rig.hot, now, &done);
        // The future has been good for long enough, and changes.
        rig.now = rig.now.after(200 * Nanos::MILLI);
        rig.turn();
        rig.show(1, Side::Bid, 999.75);
        rig
    }

    fn turn(&mut self) {
        Live::on_turn(&mut self.hot, self.now);
        Live::settle(&mut self.hot, self.now);
    }

    /// Somebody enters an order.
    fn show(&mut self, id: u32, side: Side, price: f64) {
        self.seq += 1;
        self.hot.on_event(&MarketEvent {
            seq: SeqNo(self.seq),
            kind: EventKind::Add,
            instrument: InstrumentId(id),
            order_id: OrderId(self.seq),
            side,
            price: points(price),
            qty: Volume(5),
            venue: Venue::Cme,
            flags: EventFlags::LAST,
            recv_ts: self.now,
            ..MarketEvent::default()
        });
        Live::settle(&mut self.hot, self.now);
    }

    /// An operator's word to one of them.
    fn say(&mut self, at: usize, words: &str) {
        let now = self.now;
        parts(&mut self.hot, at, 0, |conductor, markets, port| {
            conductor.on_command(now, words, markets, port)
        });
    }

    /// How many messages have left, and the last of them as text.
    fn sent(&self) -> (u64, String) {
        let out = &self.hot.sessions[0].out;
        let text = String::from_utf8_lossy(out.last()).replace('\u{1}', "|");
        (out.orders, text)
    }

    fn refused(&self, at: usize) -> u64 {
        let counters = self.hot.rule.hosted[at].conductor.counters();
        counters.get(Counter::RiskSelfTrade)
    }
}

fn points(price: f64) -> Price {
    Price::from_raw((price * 100.0) as i64 * (Price::ONE_RAW / 100))
}

#[test]
fn the_quoter_alone_quotes_and_takes_nothing() {
    let mut rig = Rig::new(vec![quoter([50.0, 30.0])]);
    let (sent, last) = rig.sent();
    assert!(last.contains("|35=i|") && last.contains("|295=02|"), "{last}");
    memory::accept_quotes(&mut rig.hot, rig.now);
    rig.show(2, Side::Ask, 49.25);
    assert_eq!(rig.sent().0, sent, "what is offered too well is nothing to it");
}

#[test]
fn the_eye_alone_takes_what_is_offered_too_well_and_quotes_nothing() {
    let mut rig = Rig::new(vec![eye([50.0, 30.0])]);
    let (sent, _) = rig.sent();
    rig.show(2, Side::Ask, 49.25);
    assert_eq!(rig.sent().0, sent, "it is off until it is armed");
    rig.say(0, "arm");
    let ((), count) = count_allocations(|| {
        rig.show(3, Side::Ask, 29.5);
        rig.turn();
    });
    assert_eq!((count.allocations, count.releases), (0, 0), "{count:?}");
    let (sent_then, last) = rig.sent();
    assert_eq!(sent_then, sent + 1, "{last}");
    assert!(last.contains("|35=D|") && last.contains("|55=O2|"), "{last}");
    memory::answer(&mut rig.hot, rig.now);
    let eye = rig.hot.rule.hosted[0].conductor.strategy();
    let eye = eye.second().expect("the eye");
    assert_eq!((eye.eye().position(1), eye.pricing().trades), (5, 1));
}

#[test]
fn both_of_one_process_do_theirs_and_never_meet() {
    let mut rig = Rig::new(vec![quoter([50.0, 30.0]), eye([50.0, 40.0])]);
    let (sent, last) = rig.sent();
    assert!(last.contains("|35=i|") && last.contains("|295=02|"), "{last}");
    memory::accept_quotes(&mut rig.hot, rig.now);
    rig.say(1, "arm");
    rig.show(2, Side::Ask, 49.25);
    let (sent_then, last) = rig.sent();
    assert_eq!(sent_then, sent + 1, "{last}");
    assert!(last.contains("|35=D|") && last.contains("|55=O1|"), "{last}");
    // The eye thinks otherwise of the second option than the quoter does: it would buy of the quoter.
    assert_eq!(rig.refused(1), 0);
    rig.show(3, Side::Ask, 30.1);
    assert_eq!(
        rig.sent().0,
        sent_then,
        "what could trade with our own quote stays"
    );
    assert!(rig.refused(1) > 0);
    // One kill switch stops both.
    rig.hot.rule.kill();
    rig.turn();
    rig.say(1, "arm");
    let (sent, _) = rig.sent();
    rig.show(2, Side::Ask, 49.2);
    assert_eq!(rig.sent().0, sent);
    let killed = rig.hot.rule.hosted[1].conductor.strategy();
    let eye = killed.second().expect("the eye").eye();
    assert_eq!(eye.state(), EyeState::Off(EyeOff::Killed));
}
