//! The quoter against the exchange simulator: its packets, its FIX sessions, its matching and its protection,
//! in virtual time and from a seed. Both directions of order entry take a random time; a rival takes quotes;
//! options are halted; connections are lost; volatilities are edited; everything is pulled and resumed. After
//! every drain, what the quoter believes to be live is what the exchange holds.

use std::collections::{BTreeMap, VecDeque};

use tickwire_book::Depth;
use tickwire_exchange::{BreakReason, ClientOrder, DayPhase, Firm, Market, Outcome};
use tickwire_feed::{Channel, Line, Twin};
use tickwire_fix::{Again, CompId, Event, Id, NewOrderSingle, Role, Session, SessionConfig, Status};
use tickwire_market::{
    Counter, Currency, InstrumentId, Nanos, OrderType, PointValue, Price, Qty, Side, Symbol, TimeInForce,
    TradingStatus,
};
use tickwire_options::surface::Edit;
use tickwire_runtime::alloc;
use tickwire_runtime::clock::Clock;
use tickwire_trading::strategy::is_name_of_quote;
use tickwire_trading::{Ladder, NO_ASK, NO_BID, OffMarket, PullReason, QuotingState};

use super::account::{Account, View};
use super::chain::Chain;
use super::config::TermsSection;
use super::news::News;
use super::path::{QuotePath, QuoteSetup, Source, Traded, Trades};
use super::pricer::Pricer;
use super::pricing::{Expiries, flat_surface};
use super::{Learn, QuoteEntry, path, sample};
use crate::world::Config;
use tickwire_console::random::Random;
use tickwire_desk::risk::report;
use tickwire_desk::risk::snapshot::{Promised, Snapshot};
use tickwire_node::hot::OrderOut;
use tickwire_simulator::venue::{VIRTUAL_START, datagrams, market_of};
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::books_of;
use tickwire_venues::wiring;
use tickwire_venues::wiring::{Reception, WithChannel};

const OPTIONS: u32 = 24;
const US: usize = 0;
const RIVAL: usize = 1;
const FIRM: Firm = Firm(1);

/// What we send, until it is handed over.
#[derive(Default)]
struct Sent {
    bytes: Vec<u8>,
    /// Mass quotes, new orders and replacements among it.
    quotes: u64,
}

impl OrderOut for Sent {
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let kinds: [&[u8]; 3] = [b"\x0135=i\x01", b"\x0135=D\x01", b"\x0135=G\x01"];
        self.quotes += bytes.windows(6).filter(|w| kinds.contains(w)).count() as u64;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

/// Contracts bought less sold: by quote, those of the eye's orders, those of the underlying.
#[derive(Default)]
struct Counted {
    quotes: Vec<i64>,
    eye: Vec<i64>,
    hedges: i64,
    /// All of it, for the account.
    all: Vec<Traded>,
}

impl Trades for Counted {
    fn traded(&mut self, traded: &Traded) -> bool {
        let qty = i64::from(traded.qty);
        let signed = if traded.side == Side::Bid { qty } else { -qty };
        match traded.source {
            Source::Quote => self.quotes[usize::from(traded.quote)] += signed,
            Source::Eye => self.eye[usize::from(traded.quote)] += signed,
            Source::Hedge => self.hedges += signed,
        }
        self.all.push(*traded);
        true
    }
}

/// Bytes on their way, with the time at which they arrive.
#[derive(Default)]
struct Wire(VecDeque<(Nanos, Vec<u8>)>);

impl Wire {
    fn put(&mut self, at: Nanos, bytes: Vec<u8>) {
        // A connection keeps the order.
        let at = self.0.back().map_or(at, |(last, _)| at.max(*last));
        self.0.push_back((at, bytes));
    }

    fn due(&mut self, now: Nanos) -> Option<Vec<u8>> {
        let is_due = self.0.front().is_some_and(|(at, _)| *at <= now);
        is_due.then(|| self.0.pop_front().map(|(_, bytes)| bytes))?
    }
}

struct World<C> {
    now: Nanos,
    random: Random,
    market: Market,
    channel: C,
    /// Whose packets are rehearsed.
    twin: Option<Twin<C>>,
    path: QuotePath<Sent, Counted>,
    pricer: Pricer,
    chain: Chain,
    account: Account,
    /// Told of the same fills as that of a process which was started again is told of those in its file.
    restored: Account,
    to_venue: Wire,
    to_us: Wire,
    rival: Session,
    rival_orders: u64,
    is_connected: bool,
    /// Mass quotes and orders sent when everything was last pulled by hand.
    pulled_at: Option<(u64, u64)>,
    half_tick: i64,
    version: u64,
    /// How far edits have moved the volatilities of each expiry, and how far they may.
    walked: [f64; 2],
    walk_max: f64,
    long_max: i64,
    halted: Vec<usize>,
    checks: u64,
    /// The account's report at the last drain.
    shown: String,
    /// Of packets and answers, once quoting has begun.
    allocations: u64,
    states: BTreeMap<String, u32>,
}

/// What the exchange holds of our quote of an option, and what it has traded.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    price: [Price; 2],
    open: [u32; 2],
    traded: [u64; 2],
    cost: i128,
}

/// A run of `steps` from a seed.
struct Play {
    seed: u64,
    steps: u32,
    has_trouble: bool,
    /// The venue breaks every trade in the end.
    is_broken: bool,
    /// A volatility is typed with a digit too many in the end.
    is_mistyped: bool,
    /// In the end one quote is believed to be gone that is not.
    is_forgetful: bool,
    /// Quotes are held to the market, and volatilities stay where it is: the edits of the others walk away
    /// from it.
    is_guarded: bool,
    /// The thread has time to rehearse.
    is_rehearsed: bool,
    config: Config,
}

impl Play {
    /// Of these steps: nothing goes wrong, and the thread rehearses.
    fn new(seed: u64, steps: u32, config: Config) -> Play {
        Play {
            seed,
            steps,
            has_trouble: false,
            is_broken: false,
            is_mistyped: false,
            is_forgetful: false,
            is_guarded: false,
            is_rehearsed: true,
            config,
        }
    }
}

/// What happened, for the test to see that something did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    mass_quotes: u64,
    contracts: u64,
    checks: u64,
    pulls: u64,
    rejected: u64,
    /// Contracts that the eye traded in options, and its hedges in the underlying.
    eye: u64,
    hedged: u64,
    trips: u64,
    /// The account's report.
    shown: String,
    hash: u64,
    allocations: u64,
    /// Steps by state.
    states: BTreeMap<String, u32>,
    /// Options that were off their market at the end.
    off: [u32; 4],
}

fn play(seed: u64, steps: u32, has_trouble: bool) -> Seen {
    play_by(QuoteEntry::MassQuotes, seed, steps, has_trouble)
}

fn play_by(entry: QuoteEntry, seed: u64, steps: u32, has_trouble: bool) -> Seen {
    play_until(entry, seed, steps, has_trouble, false)
}

fn play_until(entry: QuoteEntry, seed: u64, steps: u32, has_trouble: bool, is_broken: bool) -> Seen {
    let config = configured(entry, seed);
    run(Play {
        has_trouble,
        is_broken,
        ..Play::new(seed, steps, config)
    })
}

/// Where quotes are held to the market.
fn play_guarded(entry: QuoteEntry, seed: u64, steps: u32, is_mistyped: bool) -> Seen {
    run(Play {
        is_mistyped,
        is_guarded: true,
        ..Play::new(seed, steps, configured(entry, seed))
    })
}

fn configured(entry: QuoteEntry, seed: u64) -> Config {
    let text = sample::text(OPTIONS, VIRTUAL_START).unwrap();
    let mut config = Config::parse(&text).unwrap();
    config.exchange.seed = seed;
    config.exchange.duration_s = 3_600.0.try_into().unwrap();
    config.exchange.rate = 8_000.0.try_into().unwrap();
    config.receiver.max_instruments = 64;
    config.receiver.max_orders = 1 << 12;
    config.receiver.max_levels = 1 << 12;
    config.exchange.symbols = 16.0.try_into().unwrap();
    // A connection that is lost is taken up where it was: what traded meanwhile is heard of.
    config.order_entry.session[0].reset_on_logon = false;
    let quoter = config.quoter.as_mut().unwrap();
    quoter.entry = entry;
    quoter.limits.long_max = 900;
    quoter.limits.short_max = 900;
    let eye = quoter.eye.as_mut().unwrap();
    (eye.long_max, eye.short_max) = (900, 900);
    config
}

fn run(play: Play) -> Seen {
    let feed = play.config.feed[0].clone();
    let reception = Reception::new(&play.config.receiver);
    wiring::with_channel(&feed, 0, &reception, play).unwrap()
}

impl WithChannel for Play {
    type Output = Seen;

    fn run<C: Channel + 'static>(mut self, channel: C, depth: Depth) -> Seen {
        if let Some(quoter) = &mut self.config.quoter {
            quoter.market.check = self.is_guarded;
        }
        let mut world = World::begin(&self, channel, depth);
        for step in 0..self.steps {
            world.step(self.has_trouble);
            if step % 40 == 39 {
                world.drain(&format!("seed {}, step {step}", self.seed));
            }
        }
        if self.is_broken {
            world.break_everything();
        }
        if self.is_mistyped {
            world.mistype();
        }
        if self.is_forgetful {
            world.forget();
        }
        world.seen()
    }
}

/// Whether an order is a side of a quote.
fn is_side(order: &ClientOrder) -> bool {
    let name = order.cl_ord_id.to_number().unwrap_or_default();
    order.firm == FIRM && is_name_of_quote(name)
}

fn comp(name: &str) -> CompId {
    CompId::new(name.as_bytes()).unwrap()
}

impl<C: Channel> World<C> {
    /// Logged on, with everything known and the first quotes on their way.
    fn begin(play: &Play, mut channel: C, depth: Depth) -> World<C> {
        let config = &play.config;
        let section = config.quoter.as_ref().unwrap();
        let (mut market, _) = market_of(&config.market(), Some(1 << 16)).unwrap();
        let mut now = VIRTUAL_START;
        market.open(now);
        let mut learn = Learn {
            books: books_of(&config.receiver, channel.venue(), depth),
            venue: TradingStatus::Unknown,
            statuses: vec![TradingStatus::Unknown; 65],
        };
        let underlying = section.underlying.0;
        let (mut chain, half_tick) = loop {
            now = now.after(Nanos::MILLI);
            datagrams(&mut market, now, |port, bytes| {
                channel.on_datagram(now, port, Line::A, bytes, &mut learn);
            });
            if channel.poll_timeout().is_some_and(|due| due <= now) {
                channel.handle_timeout(now, &mut learn);
            }
            assert!(
                now < VIRTUAL_START.after(60 * Nanos::SECOND),
                "the chain is never known"
            );
            if let Some(chain) = Chain::of(&channel, &underlying).unwrap()
                && chain.options.len() == OPTIONS as usize
                && market.exchange(0).phase() == DayPhase::Open
                && let Some(half_tick) = learn.half_tick(chain.underlying, chain.underlying_tick)
            {
                break (chain, half_tick);
            }
        };
        let smiles: Vec<_> = chain.expiries().keys().copied().collect();
        let front = half_tick as f64 * 12.5;
        let surface = flat_surface(section, &smiles, now, front).unwrap();
        let first = (now, half_tick);
        let pricer = Pricer::new(section, &mut chain, surface, &smiles, &Expiries, first).unwrap();
        let mut session = path::session_of([comp("QUOTER"), comp("EXCHANGE")], Default::default(), false, 1);
        session.handle_connected(now);
        let rival = SessionConfig {
            reset_on_logon: true,
            ..SessionConfig::new(Role::Initiator, comp("RIVAL"), comp("EXCHANGE"))
        };
        let ids: Vec<InstrumentId> = chain.options.iter().map(|o| o.id).collect();
        let symbols: Vec<Symbol> = chain.options.iter().map(|o| o.symbol).collect();
        let deltas: Vec<i32> = pricer.deltas().iter().map(|d| (d * 1000.0) as i32).collect();
        let setup = QuoteSetup {
            quoter: section.quoter(
                chain.underlying,
                ([chain.underlying_tick, chain.steps.tick], chain.option_value),
                ids.len() as u16,
                Protocol::Mdp3,
            ),
            instruments: &ids,
            symbols: &symbols,
            deltas: &deltas,
            session,
            by_orders: section.entry == QuoteEntry::Orders,
            started: now,
            underlying,
            eye: section.eye.as_ref().map(|eye| {
                let ticks = [chain.underlying_tick, chain.steps.tick];
                let ticks = (ticks, chain.option_value);
                eye.eye(chain.underlying, ticks, &section.trigger, &section.market)
            }),
            controls: None,
            values: None,
        };
        let status = learn.status(chain.underlying);
        let sent = Sent {
            bytes: Vec::with_capacity(1 << 20),
            quotes: 0,
        };
        let counted = Counted {
            quotes: vec![0; ids.len()],
            eye: vec![0; ids.len()],
            hedges: 0,
            all: Vec::with_capacity(1 << 16),
        };
        let clock = Clock::calibrate();
        let mut path = QuotePath::new(setup, learn.books, sent, counted, clock);
        if section.entry == QuoteEntry::MassQuotes {
            path.reconcile(now, 2);
        }
        path.begin(now, (channel.venue(), channel.next_seq()), status);
        let mut world = World {
            twin: play.is_rehearsed.then(|| {
                path.twin_of(&channel)
                    .expect("packets of the underlying can be rehearsed")
            }),
            now,
            random: Random(play.seed),
            market,
            channel,
            path,
            account: Account::new(section, &chain, &pricer),
            restored: Account::new(section, &chain, &pricer),
            pricer,
            chain,
            to_venue: Wire::default(),
            to_us: Wire::default(),
            rival: Session::new(rival),
            rival_orders: 0,
            is_connected: false,
            pulled_at: None,
            half_tick,
            version: 0,
            walked: [0.0; 2],
            walk_max: if play.is_guarded { 3e-4 } else { f64::INFINITY },
            long_max: 900,
            halted: Vec::new(),
            checks: 0,
            shown: String::new(),
            allocations: 0,
            states: Default::default(),
        };
        assert!(world.market.exchange_mut(0).connect(RIVAL, now));
        world.rival.handle_connected(now);
        world.connect();
        world.ladder();
        world.drain("the beginning");
        world.allocations = 0;
        assert_eq!(world.rival.status(), Status::Active);
        world
    }

    fn connect(&mut self) {
        assert!(self.market.exchange_mut(0).connect(US, self.now));
        (self.to_venue, self.to_us) = (Wire::default(), Wire::default());
        self.path.out_mut().bytes.clear();
        self.path.session.ended = None;
        self.path.connected(self.now);
        self.is_connected = true;
    }

    /// The connection is lost, with whatever is on its way.
    fn disconnect(&mut self) {
        self.market.exchange_mut(0).disconnect(US, self.now);
        self.path.disconnected(self.now);
        self.path.out_mut().bytes.clear();
        (self.to_venue, self.to_us) = (Wire::default(), Wire::default());
        self.is_connected = false;
    }

    fn ladder(&mut self) {
        let mut ladder = Box::new(Ladder::new(self.chain.options.len(), 129));
        self.pricer.settle(self.half_tick).unwrap();
        let mut eye_ladder = Box::new(Ladder::new(self.chain.options.len(), 129));
        self.pricer
            .fill_both(&mut ladder, Some(&mut eye_ladder), self.half_tick, 64)
            .unwrap();
        let mut hedges = Vec::new();
        self.pricer.hedge_deltas(&mut hedges);
        self.path.maker_mut().set_hedges(&hedges);
        self.path.replace_eye_ladder(self.now, eye_ladder);
        self.path.replace_ladder(self.now, ladder);
    }

    /// Some time passes: packets, bytes both ways, timers.
    fn pass(&mut self, ns: u64, delay_ns: u64) {
        self.now = self.now.after(ns);
        let (now, channel, path) = (self.now, &mut self.channel, &mut self.path);
        let allocations = &mut self.allocations;
        datagrams(&mut self.market, now, |port, bytes| {
            let ((), count) = alloc::count_allocations(|| {
                channel.on_datagram(now, port, Line::A, bytes, path);
                path.settle(now);
            });
            *allocations += count.allocations;
        });
        if channel.poll_timeout().is_some_and(|due| due <= now) {
            channel.handle_timeout(now, path);
        }
        if path.poll_timeout().is_some_and(|due| due <= now) {
            path.handle_timeout(now);
        }
        if let Some(half_tick) = path.half_tick()
            && (half_tick - self.half_tick).abs() > 32
        {
            self.half_tick = half_tick;
            self.ladder();
        }
        self.bytes(delay_ns);
        self.talk_to_rival();
        self.hold_to_the_limits();
    }

    fn bytes(&mut self, delay_ns: u64) {
        let delay = |random: &mut Random| self.now.after(random.below(delay_ns + 1));
        if !self.is_connected {
            return;
        }
        assert!(self.path.holds_nothing(), "nothing waits for another packet");
        let sent = self.path.out().bytes.clone();
        self.path.out_mut().bytes.clear();
        if !sent.is_empty() {
            self.to_venue.put(delay(&mut self.random), sent);
        }
        let mut buffer = [0; 8192];
        while let Some(bytes) = self.to_venue.due(self.now) {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let exchange = self.market.exchange_mut(0);
                let taken = exchange.handle_bytes(US, self.now, rest);
                rest = &rest[taken..];
                while let Some(said) = exchange.poll_transmit(US, &mut buffer) {
                    let said = said.to_vec();
                    self.to_us.put(delay(&mut self.random), said);
                }
            }
        }
        while let Some(said) = self.market.exchange_mut(0).poll_transmit(US, &mut buffer) {
            let said = said.to_vec();
            self.to_us.put(delay(&mut self.random), said);
        }
        while let Some(bytes) = self.to_us.due(self.now) {
            let (path, now) = (&mut self.path, self.now);
            let ((), count) = alloc::count_allocations(|| path.on_bytes(now, &bytes));
            self.allocations += count.allocations;
        }
        if self.path.maker().quoter.wants_disconnect() || self.path.session.ended.is_some() {
            self.disconnect();
        }
    }

    fn talk_to_rival(&mut self) {
        let mut buffer = [0; 8192];
        if self.rival.poll_timeout().is_some_and(|due| due <= self.now) {
            self.rival.handle_timeout(self.now);
        }
        let exchange = self.market.exchange_mut(0);
        while let Some(bytes) = self.rival.poll_transmit(&mut buffer) {
            exchange.handle_bytes(RIVAL, self.now, bytes);
        }
        while let Some(bytes) = exchange.poll_transmit(RIVAL, &mut buffer) {
            let _ = self.rival.handle_bytes(self.now, bytes);
            while self.rival.poll_event().is_some() {}
        }
    }

    /// What could trade against us at the exchange never passes the limits, whatever is under way.
    fn hold_to_the_limits(&self) {
        let (mut net, mut open) = (0, [0; 2]);
        for quote in self.held().values() {
            net += quote.traded[0] as i64 - quote.traded[1] as i64;
            open[0] += i64::from(quote.open[0]);
            open[1] += i64::from(quote.open[1]);
        }
        for (instrument, contracts) in self.taken() {
            net += if instrument == self.chain.underlying {
                0
            } else {
                contracts
            };
        }
        assert!(
            net + open[0] <= self.long_max,
            "long: {net} held, {} bid",
            open[0]
        );
        assert!(
            open[1] - net <= self.long_max,
            "short: {net} held, {} offered",
            open[1]
        );
    }

    /// What it has of our quotes, be they orders or not.
    fn held(&self) -> BTreeMap<InstrumentId, Held> {
        let exchange = self.market.exchange(0);
        let mut all: BTreeMap<InstrumentId, Held> = BTreeMap::new();
        for quote in exchange.quotes().filter(|quote| quote.firm == FIRM) {
            let held = all.entry(quote.instrument).or_default();
            (held.price, held.open) = (quote.price, quote.open.map(|qty| qty.0));
            (held.traded, held.cost) = (quote.traded, quote.cost[0] - quote.cost[1]);
        }
        for order in exchange.ledger().iter().filter(|order| is_side(order)) {
            let (held, side) = (all.entry(order.instrument).or_default(), order.side as usize);
            held.traded[side] += u64::from(order.filled.0);
            held.cost += if side == 0 { order.cost } else { -order.cost };
            if order.outcome == Outcome::Open {
                assert_eq!(held.open[side], 0, "two orders of one side: {order:?}");
                (held.price[side], held.open[side]) =
                    (order.price, order.qty.0 - order.filled.0 - order.broken.0);
            }
        }
        all
    }

    /// What our other orders have traded, as the exchange's ledger has it: bought, or sold where negative.
    fn taken(&self) -> impl Iterator<Item = (InstrumentId, i64)> + '_ {
        let ledger = self.market.exchange(0).ledger().iter();
        let ours = ledger.filter(|order| order.firm == FIRM && !order.filled.is_zero() && !is_side(order));
        ours.map(|order| {
            let qty = i64::from(order.filled.0);
            (order.instrument, if order.side == Side::Bid { qty } else { -qty })
        })
    }

    /// Premium paid for options, less what was received, as the exchange has it.
    fn paid(&self) -> i128 {
        let ledger = self.market.exchange(0).ledger().iter();
        let orders = ledger.filter(|order| order.firm == FIRM && !is_side(order));
        let orders = orders.filter(|order| order.instrument != self.chain.underlying);
        let bought = |side: Side| if side == Side::Bid { 1 } else { -1 };
        let by_quotes: i128 = self.held().values().map(|held| held.cost).sum();
        by_quotes + orders.map(|order| bought(order.side) * order.cost).sum::<i128>()
    }

    fn step(&mut self, has_trouble: bool) {
        *self
            .states
            .entry(format!("{:?}", self.path.maker().quoter.state()))
            .or_default() += 1;
        let (ns, delay) = (100_000 + self.random.below(2_000_000), 3_000_000);
        self.pass(ns, delay);
        if self.twin.is_some() {
            self.path.rehearse(self.now, &self.channel, &mut self.twin);
        }
        if self.random.below(3) == 0 {
            self.edit();
        }
        match self.random.below(100) {
            0..=24 => self.take(),
            25..=32 => self.leave(),
            60..=64 => {
                self.path.arm_eye(self.now);
            }
            65..=84 => self.path.maker_mut().on_heartbeat(self.now),
            85 if has_trouble => self.path.maker_mut().disarm_eye(),
            35..=36 if has_trouble => self.halt(),
            37 if has_trouble => {
                self.path.pull(self.now);
                // What was sent before is not taken back; nothing follows.
                self.pulled_at = Some((self.path.out().quotes, self.path.orders_sent()));
            }
            38 if has_trouble && self.is_connected => self.disconnect(),
            39..=44 if !self.is_connected => self.connect(),
            45..=54 => {
                // Without a session it holds for the next one; while quotes are being taken away, not at all.
                let is_pulling = matches!(self.path.maker().quoter.state(), QuotingState::Pulling(_));
                self.path.resume(self.now);
                if !is_pulling {
                    self.pulled_at = None;
                }
            }
            _ => {}
        }
        if let Some(before) = self.pulled_at
            && self.path.maker().quoter.state() != QuotingState::Quoting
        {
            assert_eq!(
                (self.path.out().quotes, self.path.orders_sent()),
                before,
                "a quote or an order after the kill switch"
            );
        }
    }

    /// The rival takes what somebody quotes, as likely as not us.
    fn take(&mut self) {
        let at = self.random.below(self.chain.options.len() as u64) as usize;
        let option = self.chain.options[at];
        let side = if self.random.below(2) == 0 {
            Side::Bid
        } else {
            Side::Ask
        };
        let Some(best) = self.market.exchange(0).engine().best(option.id, !side) else {
            return;
        };
        self.enter(at, side, best.price, TimeInForce::ImmediateOrCancel);
    }

    /// The rival leaves an order that is better than it should be: above the theoretical value to buy, below
    /// it to sell. Whatever is between it and our own quotes stays as it is; where it would trade with us, it
    /// is none that rests.
    fn leave(&mut self) {
        let at = self.random.below(self.chain.options.len() as u64) as usize;
        let theo = self.pricer.theos(self.half_tick).unwrap()[at];
        let beyond = 20.0 + 5.0 * self.random.below(12) as f64;
        let (side, points) = match self.random.below(2) {
            0 => (Side::Bid, theo * 1.01 + beyond),
            _ => (Side::Ask, theo * 0.99 - beyond),
        };
        let step = if points >= 500.0 { 25 } else { 5 };
        let price = (points / f64::from(step)) as i64 * i64::from(step);
        if price > 0 {
            self.enter(
                at,
                side,
                Price::from_raw(price * Price::ONE_RAW),
                TimeInForce::Day,
            );
        }
    }

    fn enter(&mut self, at: usize, side: Side, price: Price, time_in_force: TimeInForce) {
        self.rival_orders += 1;
        let order = NewOrderSingle {
            cl_ord_id: Id::new(self.rival_orders.to_string().as_bytes()).unwrap(),
            symbol: self.chain.options[at].symbol,
            side,
            transact_time: self.now,
            qty: Qty(1 + self.random.below(40) as u32),
            order_type: OrderType::Limit,
            price: Some(price),
            stop: None,
            time_in_force,
            cause: None,
        };
        let _ = self
            .rival
            .send(self.now, NewOrderSingle::MSG_TYPE, Again::Resend, |e, stamp| {
                order.encode(e, stamp)
            });
        self.talk_to_rival();
    }

    fn edit(&mut self) {
        let by = (self.random.below(21) as f64 - 10.0) * 2e-4;
        let expiry = self.random.below(2) as usize;
        if (self.walked[expiry] + by).abs() > self.walk_max {
            return;
        }
        self.walked[expiry] += by;
        if self
            .pricer
            .surface_mut()
            .apply(self.now, 1, Edit::Atm { expiry, by })
            .is_ok()
        {
            self.version += 1;
            self.half_tick = self.path.half_tick().unwrap_or(self.half_tick);
            self.ladder();
        }
    }

    /// An option is halted, or trades again.
    fn halt(&mut self) {
        let (at, status) = match self.halted.pop() {
            Some(at) if self.random.below(3) > 0 => (at, TradingStatus::Trading),
            before => {
                self.halted.extend(before);
                let at = self.random.below(self.chain.options.len() as u64) as usize;
                self.halted.push(at);
                (at, TradingStatus::Halted)
            }
        };
        let id = self.chain.options[at].id;
        let done = self
            .market
            .exchange_mut(0)
            .trade(self.now, |engine, out| engine.set_status(id, status, out));
        assert!(done.is_ok() || status == TradingStatus::Trading);
    }

    /// Until nothing is under way; then both sides have to agree.
    fn drain(&mut self, what: &str) {
        for _ in 0..20_000 {
            // What traded while the connection was lost is heard of in the next one.
            if !self.is_connected {
                self.connect();
            }
            self.pass(200_000, 0);
            let is_quiet = self.to_venue.0.is_empty() && self.to_us.0.is_empty();
            if is_quiet && self.is_connected && self.path.is_still() && self.path.out().bytes.is_empty() {
                return self.compare(what);
            }
        }
        panic!("{what}: never still: {:?}", self.path.maker().quoter.state());
    }

    /// Quotes are out, some have traded, and the venue breaks all that was traded: everything is taken away,
    /// and what is held of quotes, of the eye and in hedges is what the exchange has.
    fn break_everything(&mut self) {
        let is_out = |world: &World<C>| {
            let held = world.held();
            let mut any = [false; 2];
            for quote in held.values() {
                any[0] |= quote.open != [0; 2];
                any[1] |= quote.traded != [0; 2];
            }
            any == [true; 2] && world.path.maker().quoter.state() == QuotingState::Quoting
        };
        self.drain("before the breaks");
        let found = (0..1_000).any(|_| {
            self.path.resume(self.now);
            self.step(false);
            is_out(self)
        });
        assert!(found, "{:?}", self.path.maker().quoter.state());
        let exchange = self.market.exchange_mut(0);
        for number in 1..=exchange.engine().last_match_number() {
            // An auction is not broken.
            let _ = exchange.break_trade(self.now, number, BreakReason::Consent);
        }
        let held = self.held();
        assert!(held.values().all(|quote| quote.traded == [0; 2]), "{held:?}");
        // What trades until the quotes are gone stands.
        (0..50).for_each(|_| self.pass(200_000, 0));
        assert_eq!(
            self.path.maker().quoter.state(),
            QuotingState::Halted(PullReason::BrokenTrade)
        );
        assert!(self.path.counters().get(Counter::TradesBroken) > 0);
        let held = self.held();
        assert!(held.values().all(|quote| quote.open == [0; 2]), "{held:?}");
        self.compare("after the breaks");
        // To the account it is as if they had never been.
        let fills = self.account.snapshot(self.now).fills;
        let counted: u64 = fills.iter().map(|(_, fill)| u64::from(fill.qty.0)).sum();
        let quoted = self
            .held()
            .into_values()
            .map(|quote| quote.traded[0] + quote.traded[1]);
        let taken = self.taken().map(|(_, contracts)| contracts.unsigned_abs());
        assert_eq!(counted, quoted.sum::<u64>() + taken.sum::<u64>());
    }

    /// Options that are quoted, in the order of the quotes.
    fn quoted(&self) -> Vec<bool> {
        let held = self.held();
        let options = self.chain.options.iter();
        options
            .map(|option| held.get(&option.id).is_some_and(|held| held.open != [0; 2]))
            .collect()
    }

    /// An operator types `nudge EXPIRY STRIKE +0.2` for `+0.002`: what the edit would ask for is nowhere in
    /// the venue's book, its options are pulled under a name, everything else goes on, and they are quoted
    /// again when it is taken back.
    fn mistype(&mut self) {
        self.drain("before the edit");
        self.path.resume(self.now);
        (0..400).for_each(|_| self.pass(1_000_000, 0));
        assert_eq!(self.path.maker().quoter.state(), QuotingState::Quoting);
        let quoted = self.quoted();
        let count = quoted.iter().filter(|is_quoted| **is_quoted).count();
        assert!(
            count >= quoted.len() / 3,
            "{quoted:?}: {:?}",
            self.path.maker().quoter.off_markets()
        );
        // The one nearest to the money that is quoted.
        let at = (0..quoted.len())
            .filter(|at| quoted[*at])
            .min_by_key(|at| (self.pricer.deltas()[*at].abs() * 1e3 - 500.0).abs() as u64)
            .unwrap();
        let option = self.chain.options[at];
        let before = self.pricer.theos(self.half_tick).unwrap()[at];
        let traded = self.held()[&option.id];
        let crossing = self.path.maker().quoter.counters().get(Counter::QuotesCrossing);
        let expiry = usize::from(option.expiry != *self.chain.expiries().keys().next().unwrap());
        let strike = option.strike_points();
        let surface = self.pricer.surface_mut();
        let by = 0.2;
        surface
            .apply(self.now, 1, Edit::Nudge { expiry, strike, by })
            .unwrap();
        self.half_tick = self.path.half_tick().unwrap_or(self.half_tick);
        let after = self.pricer.theos(self.half_tick).unwrap()[at];
        assert!(after > 1.5 * before, "{before} to {after}");
        self.ladder();
        let dear = Price::from_raw(((before * 1.3) as i64) * Price::ONE_RAW);
        for _ in 0..1_300 {
            self.pass(1_000_000, 2_000_000);
            let held = self.held().get(&option.id).copied().unwrap_or_default();
            // What was on its way before the edit may rest, and trade, at what it was worth then.
            assert!(held.open[0] == 0 || held.price[0] < dear, "bid {:?}", held.price);
        }
        let pulled = self.path.maker().quoter.off_market(at as u16).unwrap();
        assert_eq!(pulled.why, OffMarket::Crosses);
        assert!(self.path.maker().quoter.counters().get(Counter::QuotesCrossing) > crossing);
        let held = self.held()[&option.id];
        assert_eq!(held.open, [0; 2], "{option:?} is still quoted");
        let bought = held.traded[0] - traded.traded[0];
        assert!(bought <= 40, "{bought} contracts were bought");
        let paid = held.cost - traded.cost;
        assert!(
            paid <= i128::from(bought) * i128::from(dear.raw()),
            "at a wrong price"
        );
        assert_eq!(self.path.maker().quoter.state(), QuotingState::Quoting);
        // The operator sees which, and why.
        let mut view = View::default();
        self.path.look(self.now, &mut view);
        assert_eq!(view.seen[at].off.map(|off| off.why), Some(OffMarket::Crosses));
        let still = self.quoted().iter().filter(|is_quoted| **is_quoted).count();
        assert!(still > 0, "{still} of {count} are quoted");
        self.pricer.surface_mut().undo(self.now, 1).unwrap();
        self.ladder();
        (0..1_000).for_each(|_| self.pass(1_000_000, 0));
        // Whether it is quoted at once is for the limits to say.
        assert_eq!(self.path.maker().quoter.off_market(at as u16), None);
    }

    /// We take a quote for gone that the venue has: its answer says so within seconds, and every quote is
    /// pulled.
    fn forget(&mut self) {
        let from = self.now;
        while self.path.reconciled()[0] <= 20 {
            self.step(false);
            assert!(self.now.since(from) < 60 * Nanos::SECOND, "nothing is compared");
        }
        assert_eq!((self.path.reconciled()[1], self.path.session.unread), (0, 0));
        let open = |world: &World<C>, quote: u16| world.path.maker().quoter.open(quote) != [0; 2];
        let pulls: u64 = self.path.maker().quoter.pulls().iter().sum();
        let since = self.now;
        // Where it is quoted anew meanwhile, it is not forgotten any more.
        while self.path.reconciled()[1] == 0 {
            for quote in 0..self.chain.options.len() as u16 {
                if open(self, quote) && !self.path.maker().quoter.is_in_flight(quote) {
                    self.path.maker_mut().quoter.on_left(quote, [0; 2]);
                    break;
                }
            }
            self.step(false);
            assert!(self.now.since(since) < 5 * Nanos::SECOND, "nothing was noticed");
        }
        assert_eq!(self.path.session.unread, 1);
        assert!(self.path.maker().quoter.pulls().iter().sum::<u64>() > pulls);
        assert_ne!(self.path.maker().quoter.state(), QuotingState::Quoting);
    }

    fn compare(&mut self, what: &str) {
        self.checks += 1;
        assert_eq!(
            (
                self.path.session.unread,
                self.path.trades_lost(),
                self.path.repeated()
            ),
            (0, 0, 0),
            "{what}"
        );
        let tick = self.chain.steps.tick.raw();
        let price = |ticks: u16| Price::from_raw(i64::from(ticks) * tick);
        let held = self.held();
        for (at, option) in self.chain.options.iter().enumerate() {
            let quote = at as u16;
            let (bid, ask) = self.path.maker().quoter.live(quote);
            let open = self.path.maker().quoter.open(quote);
            let at_venue = held.get(&option.id);
            let venue = at_venue.map_or([0; 2], |quote| quote.open);
            assert_eq!(open, venue, "{what}: {} is quoted otherwise", option.symbol);
            if let Some(held) = at_venue {
                if open[0] > 0 {
                    assert_eq!(price(bid), held.price[0], "{what}: bid of {}", option.symbol);
                } else {
                    assert_eq!(bid, NO_BID, "{what}: {}", option.symbol);
                }
                if open[1] > 0 {
                    assert_eq!(price(ask), held.price[1], "{what}: offer of {}", option.symbol);
                } else {
                    assert_eq!(ask, NO_ASK, "{what}: {}", option.symbol);
                }
            }
            let position = at_venue.map_or(0, |q| q.traded[0] as i64 - q.traded[1] as i64);
            assert_eq!(
                self.path.maker().quoter.position(quote),
                position,
                "{what}: {}",
                option.symbol
            );
            assert_eq!(
                self.path.trades().quotes[at],
                position,
                "{what}: {}",
                option.symbol
            );
            let taken = self.taken().filter(|(instrument, _)| *instrument == option.id);
            let taken: i64 = taken.map(|(_, contracts)| contracts).sum();
            let eye = self.path.maker().eye().map(|eye| eye.position(quote));
            assert_eq!(eye, Some(taken), "{what}: the eye in {}", option.symbol);
            assert_eq!(self.path.trades().eye[at], taken, "{what}: {}", option.symbol);
        }
        let hedged = self
            .taken()
            .filter(|(instrument, _)| *instrument == self.chain.underlying);
        let hedged: i64 = hedged.map(|(_, contracts)| contracts).sum();
        assert_eq!(self.path.trades().hedges, hedged, "{what}: hedges");
        let counted = self.path.trades();
        let net: i64 = counted.quotes.iter().chain(&counted.eye).sum();
        let eye = self.path.maker().eye().map(|eye| eye.net());
        assert_eq!(
            (self.path.maker().quoter.net(), eye),
            (net, Some(net)),
            "{what}: net"
        );
        let paid = i128::from(self.path.maker().quoter.paid()) * i128::from(tick);
        assert_eq!(paid, self.paid(), "{what}: premium paid");
        assert_eq!(self.market.exchange(0).phase(), DayPhase::Open, "{what}");
        self.hold_the_account_to_it(what);
    }

    /// The account has what the exchange has, its parts add up to what was earned to the last digit, and what
    /// it sees quoted is what is.
    fn hold_the_account_to_it(&mut self, what: &str) {
        let half_tick = self.half_tick;
        for fill in std::mem::take(&mut self.path.trades_mut().all) {
            self.pricer.theos(half_tick).unwrap();
            let theo = self.pricer.theo(usize::from(fill.quote));
            self.account.on_fill(&fill, theo, true);
            self.restored.on_fill(&fill, theo, false);
        }
        self.path.trades_mut().all = Vec::with_capacity(1 << 16);
        let mut view = View::default();
        self.path.look(self.now, &mut view);
        self.account.on_view(&view, &mut News::silent());
        self.account
            .revalue(self.now, half_tick, &mut self.pricer, &Expiries)
            .unwrap();
        let snapshot = self.account.snapshot(self.now);
        let counted = self.path.trades();
        for (at, seen) in view.seen.iter().enumerate().take(counted.eye.len()) {
            let held = self.account.held(at as u32);
            assert_eq!(held, counted.quotes[at] + counted.eye[at], "{what}: held of {at}");
            let open = self.path.maker().quoter.open(at as u16);
            let own = seen.own.map(|side| side.map_or(0, |(_, qty)| qty.0));
            assert_eq!(own, open, "{what}: quoted of {at}");
        }
        assert_eq!(
            self.account.held(counted.eye.len() as u32),
            counted.hedges,
            "{what}"
        );
        let positions = |snapshot: &Snapshot| -> Vec<_> {
            let held = snapshot.holdings.iter();
            held.map(|holding| (holding.symbol.clone(), holding.position))
                .collect()
        };
        let restored = self.restored.snapshot(self.now);
        assert_eq!(
            positions(&restored),
            positions(&snapshot),
            "{what}: started again"
        );
        assert_eq!(restored.explained.fees, snapshot.explained.fees, "{what}");
        let gain = snapshot.gains[3];
        assert_eq!(snapshot.explained.total(), gain.net(), "{what}: the parts add up");
        assert_eq!(gain.unmarked, 0, "{what}");
        if let Some(Promised { kept, series, .. }) = &snapshot.obligations {
            assert!(
                kept.enough_ns <= kept.observed_ns && kept.time_bp <= 10_000,
                "{what}: {kept:?}"
            );
            assert_eq!(series.len(), self.chain.options.len(), "{what}");
            let all: u64 = series.iter().map(|(_, kept)| u64::from(kept.valid_bp)).sum();
            let average = all / series.len() as u64;
            assert!(
                average.abs_diff(kept.series_bp.into()) <= 1,
                "{what}: {average} of {kept:?}"
            );
        }
        self.shown = report::text(&snapshot);
    }

    fn seen(&self) -> Seen {
        if let Some(twin) = &self.twin {
            let rehearsed = twin.channel().counters().get(Counter::PacketsA);
            assert!(rehearsed > 2, "{rehearsed} packets of the twin");
        }
        let counters = self.path.maker().quoter.counters();
        let held = self.held();
        Seen {
            mass_quotes: counters.get(Counter::MassQuotesSent),
            contracts: held.values().map(|quote| quote.traded[0] + quote.traded[1]).sum(),
            checks: self.checks,
            pulls: counters.get(Counter::QuotePulls),
            rejected: counters.get(Counter::QuoteEntriesRejected),
            eye: self.path.maker().eye_contracts(),
            hedged: self
                .taken()
                .filter(|(id, _)| *id == self.chain.underlying)
                .map(|(_, n)| n.unsigned_abs())
                .sum(),
            trips: u64::from(
                self.path.maker().quoter.state() == QuotingState::Halted(PullReason::VenueProtection),
            ),
            shown: self.shown.clone(),
            hash: self.market.state_hash(),
            allocations: self.allocations,
            states: self.states.clone(),
            off: self.path.maker().quoter.off_markets(),
        }
    }
}

#[test]
fn what_is_believed_live_is_what_the_exchange_holds_after_every_drain() {
    believe(QuoteEntry::MassQuotes);
}

#[test]
fn so_it_is_where_quotes_are_orders() {
    believe(QuoteEntry::Orders);
}

fn believe(entry: QuoteEntry) {
    let mut sum = Seen::default();
    for seed in 1..=6 {
        let seen = play_by(entry, seed, 800, true);
        sum.mass_quotes += seen.mass_quotes;
        sum.contracts += seen.contracts;
        sum.checks += seen.checks;
        sum.pulls += seen.pulls;
        sum.rejected += seen.rejected;
        (sum.eye, sum.hedged) = (sum.eye + seen.eye, sum.hedged + seen.hedged);
        for (state, steps) in seen.states {
            *sum.states.entry(state).or_default() += steps;
        }
    }
    // Otherwise nothing was shown.
    assert!(sum.mass_quotes > 200 && sum.contracts > 1_000, "{sum:?}");
    assert!(sum.pulls > 10 && sum.checks >= 120 && sum.rejected > 0, "{sum:?}");
    assert!(sum.eye > 100 && sum.hedged > 10, "{sum:?}");
}

/// Terms without a side quote nothing; what the eye does is not hindered by it.
#[test]
fn with_terms_that_have_no_side_the_eye_trades_alone() {
    for entry in [QuoteEntry::MassQuotes, QuoteEntry::Orders] {
        let mut config = configured(entry, 5);
        config.quoter.as_mut().unwrap().terms = vec![TermsSection {
            bid: Some(false),
            ask: Some(false),
            ..TermsSection::default()
        }];
        let seen = run(Play {
            has_trouble: true,
            ..Play::new(5, 800, config)
        });
        assert!(seen.eye > 20 && seen.hedged > 0, "{entry:?}: {seen:?}");
        assert_eq!((seen.mass_quotes, seen.contracts), (0, 0), "{entry:?}: {seen:?}");
        assert_eq!(seen.allocations, 0, "{entry:?}");
    }
}

#[test]
fn the_account_explains_what_was_earned_and_measures_what_was_promised() {
    let seen = play(5, 400, false);
    assert!(seen.contracts > 0, "{seen:?}");
    for part in [
        "ESX6",
        "delta",
        "edge",
        "Quoting obligations: ",
        "Mark-outs",
        "Limits in use",
    ] {
        assert!(seen.shown.contains(part), "{part} is not in it:\n{}", seen.shown);
    }
    assert!(!seen.shown.contains("not measured"), "{}", seen.shown);
}

#[test]
fn neither_a_packet_nor_an_answer_takes_memory() {
    for entry in [QuoteEntry::MassQuotes, QuoteEntry::Orders] {
        let seen = play_by(entry, 3, 400, true);
        assert!(
            seen.mass_quotes > 20 && seen.contracts > 0 && seen.eye > 0,
            "{seen:?}"
        );
        assert_eq!(seen.allocations, 0, "{seen:?}");
    }
}

#[test]
fn a_quote_that_the_venue_has_otherwise_is_noticed_and_pulls_everything() {
    run(Play {
        is_forgetful: true,
        ..Play::new(6, 400, configured(QuoteEntry::MassQuotes, 6))
    });
}

#[test]
fn a_trade_that_the_venue_breaks_pulls_everything() {
    for entry in [QuoteEntry::MassQuotes, QuoteEntry::Orders] {
        play_until(entry, 4, 300, false, true);
    }
}

#[test]
fn a_volatility_with_a_digit_too_many_is_not_quoted() {
    for entry in [QuoteEntry::MassQuotes, QuoteEntry::Orders] {
        play_guarded(entry, 11, 40, true);
    }
}

#[test]
fn held_to_the_market_it_quotes_and_trades_all_the_same() {
    for entry in [QuoteEntry::MassQuotes, QuoteEntry::Orders] {
        let seen = play_guarded(entry, 3, 400, false);
        assert!(
            seen.mass_quotes > 20 && seen.contracts > 0 && seen.eye > 0,
            "{entry:?}: {} mass quotes, {} contracts, {} by the eye, {:?}",
            seen.mass_quotes,
            seen.contracts,
            seen.eye,
            seen.off
        );
        assert_eq!(seen.allocations, 0, "{entry:?}");
    }
}

/// What a unit of the price of a feed's first instrument is worth.
struct Worth(Config);

impl WithChannel for Worth {
    type Output = Option<PointValue>;

    fn run<C: Channel + 'static>(self, mut channel: C, depth: Depth) -> Option<PointValue> {
        let (mut market, _) = market_of(&self.0.market(), Some(1 << 16)).unwrap();
        let mut now = VIRTUAL_START;
        market.open(now);
        let mut learn = Learn {
            books: books_of(&self.0.receiver, channel.venue(), depth),
            venue: TradingStatus::Unknown,
            statuses: vec![TradingStatus::Unknown; 65],
        };
        for _ in 0..5_000 {
            now = now.after(Nanos::MILLI);
            datagrams(&mut market, now, |port, bytes| {
                channel.on_datagram(now, port, Line::A, bytes, &mut learn);
            });
            let mut first = None;
            channel.instruments(&mut |instrument| first = first.or(Some(instrument.id)));
            if let Some(value) = first.and_then(|id| channel.point_value(id)) {
                return Some(value);
            }
        }
        None
    }
}

#[test]
fn a_share_is_worth_a_dollar_for_each_dollar_of_its_price() {
    for protocol in [Protocol::Itch50, Protocol::Pitch, Protocol::Xdp] {
        let mut config = Config::of_protocol(protocol);
        config.receiver.max_instruments = 64;
        config.exchange.symbols = 4.0.try_into().unwrap();
        let feed = config.feed[0].clone();
        let reception = Reception::new(&config.receiver);
        let value = wiring::with_channel(&feed, 0, &reception, Worth(config)).unwrap();
        let value = value.unwrap_or_else(|| panic!("{protocol}: nothing is said"));
        // 250 shares at 101.37 dollars.
        let points = 250 * i128::from(Price::from_4dp(101_3700).raw());
        assert_eq!(value.money(points), 25_342_500_000_000, "{protocol}");
        assert_eq!(value.currency(), Currency::USD, "{protocol}");
    }
}

#[test]
fn one_seed_is_one_run() {
    assert_eq!(play(9, 300, true), play(9, 300, true));
    assert_ne!(play(9, 300, false).hash, play(10, 300, false).hash);
}

/// Neither ticks that are rehearsed nor packets change what is quoted, traded or pulled.
#[test]
fn a_thread_that_rehearses_does_what_one_does_that_does_not() {
    for entry in [QuoteEntry::MassQuotes, QuoteEntry::Orders] {
        let [with, without] = [true, false].map(|is_rehearsed| {
            run(Play {
                has_trouble: true,
                is_rehearsed,
                ..Play::new(12, 600, configured(entry, 12))
            })
        });
        assert_eq!(with, without, "{entry:?}");
        assert!(with.contracts > 0 && with.pulls > 0, "{entry:?}: {with:?}");
    }
}

/// Where quotes are orders, a session begins with a mass cancel: `answer` is MassCancelResponse (531), none
/// that the venue says nothing. Whether the quoter has the session then, and whether it logged out.
fn begins(answer: Option<u8>) -> (bool, bool) {
    let config = Config::parse(&sample::text(2, VIRTUAL_START).unwrap()).unwrap();
    let setup = QuoteSetup {
        quoter: tickwire_trading::QuoterConfig {
            underlying: InstrumentId(2),
            quotes: 1,
            entries_max: 1,
            ..Default::default()
        },
        instruments: &[InstrumentId(1)],
        symbols: &[Symbol::new(b"OPT").unwrap()],
        deltas: &[500],
        session: path::session_of([comp("QUOTER"), comp("EXCHANGE")], Default::default(), true, 1),
        by_orders: true,
        started: VIRTUAL_START,
        underlying: Symbol::new(b"FUT").unwrap(),
        eye: None,
        controls: None,
        values: None,
    };
    let books = books_of(&config.receiver, tickwire_market::Venue::Cme, Depth::ByOrder);
    let clock = Clock::calibrate();
    let mut path = QuotePath::new(setup, books, Sent::default(), Counted::default(), clock);
    let mut venue = Session::new(SessionConfig {
        ..SessionConfig::new(Role::Acceptor, comp("EXCHANGE"), comp("QUOTER"))
    });
    let mut now = VIRTUAL_START;
    venue.handle_connected(now);
    path.connected(now);
    let (mut asked, mut is_out) = (0, false);
    let mut buffer = [0; 4_096];
    for _ in 0..40 {
        let sent = std::mem::take(&mut path.out_mut().bytes);
        is_out |= sent.windows(6).any(|w| w == b"\x0135=5\x01");
        let _ = venue.handle_bytes(now, &sent);
        while let Some(event) = venue.poll_event() {
            let Event::Message { .. } = event else { continue };
            let message = venue.message().unwrap();
            assert_eq!(message.msg_type(), b"q", "nothing but the mass cancel");
            let name = message.value(message.find(11).unwrap()).to_vec();
            asked += 1;
            if let Some(response) = answer {
                let sent = venue.send(now, b"r", Again::Resend, |e, _| {
                    e.text(11, &name);
                    e.char(530, b'7');
                    e.char(531, response);
                });
                sent.unwrap();
            }
        }
        while let Some(bytes) = venue.poll_transmit(&mut buffer) {
            path.on_bytes(now, bytes);
        }
        now = now.after(100 * Nanos::MILLI);
        if path.poll_timeout().is_some_and(|due| due <= now) {
            path.handle_timeout(now);
        }
    }
    assert_eq!(asked, 1);
    let has_session = path.maker().quoter.state() != QuotingState::Halted(PullReason::NoSession);
    (has_session, is_out)
}

#[test]
fn no_order_goes_out_before_those_of_before_are_cancelled() {
    assert_eq!(begins(Some(b'7')), (true, false));
    assert_eq!(begins(Some(b'0')), (false, true), "it was refused");
    assert_eq!(begins(None), (false, true), "it was not answered");
}
