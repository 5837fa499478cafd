//! The pricing thread: makes ladders whenever something that they are made of has changed, and hands them over whole.
//!
//! After an edit or a fill the rows around the underlying's price go first ([`NEAR_HALF_TICKS`]), then all of them. Ladders come back
//! to be filled again, so that there are never more than [`LADDERS`] of each size. They go by rings ([`tickwire_runtime::spsc`]), one each
//! way, where a model checker has looked for a row that is read while it is filled.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tickwire_market::{Date, InstrumentId, Nanos, Price, Side, Symbol};
use tickwire_options::edge::points;
use tickwire_options::surface::{Curve, Roll, Smile, Surface, SurfaceConfig, Wing};
use tickwire_options::time::DayCount;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::spsc::{Consumer, Producer, ring};
use tickwire_trading::portfolio::LossBy;
use tickwire_trading::{EyeOff, EyeState, Ladder, OffMarket, PullReason, QuotingState};

use super::account::{Account, View};
use super::chain::Chain;
use super::config::{MarketSection, QuoterSection};
use super::fills::{Fill, FillsFile, Recovered};
use super::news::{Board, News, word};
use super::path::{QuotePath, Source, Traded, Trades};
use super::plausible::{self, Sight};
use super::pricer::{self, Exposure, NEAR_HALF_TICKS, Pricer};
use tickwire_console::failure::Failure;
use tickwire_desk::risk::LossMark;
use tickwire_desk::risk::{self, Format};
use tickwire_desk::vol::{self, Begun, VolFile};
use tickwire_node::hot::OrderOut;

/// Ladders of a size: one quoted by, one on its way, one being filled.
const LADDERS: usize = 3;
/// Room for all ladders of both sizes, in either direction: nothing is ever refused for want of it.
const LADDERS_MAX: usize = (2 * LADDERS).next_power_of_two();
/// How long the first ladder may take.
const FIRST_MAX: Duration = Duration::from_secs(10);
/// How often the account is valued.
const VALUE_NS: u64 = Nanos::SECOND;
/// Views of the market for the account: one on its way, one being filled.
const VIEWS: usize = 2;
/// How long the thread sleeps when there is nothing to do: fills and prices are looked at this often, edits wake it.
const REST: Duration = Duration::from_micros(200);
/// How often it is written down how far the venue was heard: what a process that is killed has to be told again is no more than that.
const NOTE_NS: u64 = 250 * Nanos::MILLI;

/// What both threads and the operator see. Words, no locks.
pub(crate) struct Shared {
    /// Bid plus ask of the underlying, in its ticks, as last seen by the thread that quotes.
    pub half_tick: AtomicI64,
    /// MsgSeqNum up to which the venue's messages were taken, and their fills handed over, by the thread that quotes.
    pub heard: AtomicU64,
    /// The kill switch: how often everything was to be pulled, and quoting resumed. The thread that quotes compares them with what it
    /// has done.
    pulls: AtomicU64,
    resumes: AtomicU64,
    /// How often the operator was heard.
    heartbeats: AtomicU64,
    /// How often more was lost than may be.
    losses: AtomicU64,
    /// How often the eye was to be turned on, and off.
    eye_on: AtomicU64,
    eye_off: AtomicU64,
    /// What of these was obeyed; written by the thread that quotes.
    obeyed: [AtomicU64; 6],
    ends: AtomicBool,
    /// For the operator: whether quotes go out (0), are being taken away (1) or not there (2), then the reason by its place in
    /// [`PullReason::ALL`]; the same of the last pull, from 1 on; mass quotes sent; contracts held.
    state: [AtomicU64; 3],
    /// How often quoting stopped, by reason.
    pulled: [AtomicU64; PullReason::ALL.len()],
    messages: AtomicU64,
    net: AtomicI64,
    /// The eye's: 0 there is none, 1 it trades, from 2 on [`EYE_OFF`]; orders sent, contracts traded and those of the underlying still to
    /// be traded against them, in thousandths.
    eye: [AtomicU64; 3],
    unhedged: AtomicI64,
    /// Options that are not quoted because of their market, in the order of [`OffMarket::ALL`].
    off_market: [AtomicU64; 4],
    /// What the pricing thread says to whoever asks; the thread that quotes does not touch it.
    pub board: Board,
}

/// Why the eye is off, in a fixed order.
const EYE_OFF: [EyeOff; 5] = [
    EyeOff::Disarmed,
    EyeOff::Heartbeat,
    EyeOff::LateAnswer,
    EyeOff::Unmatched,
    EyeOff::Killed,
];

impl Shared {
    pub(crate) fn new(half_tick: i64) -> Shared {
        Shared {
            half_tick: AtomicI64::new(half_tick),
            heard: AtomicU64::new(0),
            pulls: AtomicU64::new(0),
            resumes: AtomicU64::new(0),
            heartbeats: AtomicU64::new(0),
            losses: AtomicU64::new(0),
            eye_on: AtomicU64::new(0),
            eye_off: AtomicU64::new(0),
            obeyed: [const { AtomicU64::new(0) }; 6],
            ends: AtomicBool::new(false),
            state: [const { AtomicU64::new(0) }; 3],
            pulled: [const { AtomicU64::new(0) }; PullReason::ALL.len()],
            messages: AtomicU64::new(0),
            net: AtomicI64::new(0),
            eye: [const { AtomicU64::new(0) }; 3],
            unhedged: AtomicI64::new(0),
            off_market: [const { AtomicU64::new(0) }; 4],
            board: Board::default(),
        }
    }

    /// Says how things are; on the thread that quotes, some times a second.
    pub(crate) fn note<O: OrderOut, T: Trades>(&self, path: &QuotePath<O, T>) {
        let (state, reason) = match path.maker.quoter.state() {
            QuotingState::Quoting => (0, None),
            QuotingState::Pulling(reason) => (1, Some(reason)),
            QuotingState::Halted(reason) => (2, Some(reason)),
        };
        self.state[0].store(state, Ordering::Relaxed);
        let place = reason.map_or(0, |reason| reason as u64);
        self.state[1].store(place, Ordering::Relaxed);
        let last = path
            .maker
            .quoter
            .last_pull()
            .map_or(0, |reason| 1 + reason as u64);
        self.state[2].store(last, Ordering::Relaxed);
        for (word, count) in self.pulled.iter().zip(path.maker.quoter.pulls()) {
            word.store(*count, Ordering::Relaxed);
        }
        self.messages.store(path.wire.sent[0], Ordering::Relaxed);
        self.net.store(path.maker.quoter.net(), Ordering::Relaxed);
        for (word, options) in self.off_market.iter().zip(path.maker.quoter.off_markets()) {
            word.store(options.into(), Ordering::Relaxed);
        }
        let Some(eye) = path.maker.eye() else { return };
        let state = match eye.state() {
            EyeState::Armed(_) => 1,
            EyeState::Off(why) => 2 + EYE_OFF.iter().position(|off| *off == why).unwrap_or(0),
        };
        let words = [state as u64, path.wire.orders_sent, path.maker.eye_contracts()];
        for (word, value) in self.eye.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        self.unhedged.store(eye.unhedged_milli(), Ordering::Relaxed);
    }

    /// The eye as it was last noted.
    fn eye_status(&self) -> Value {
        let [state, orders, contracts] = [0, 1, 2].map(|at| self.eye[at].load(Ordering::Relaxed));
        let state = match state {
            0 => return Value::Null,
            1 => "on".to_string(),
            off => format!("off: {:?}", EYE_OFF[(off as usize - 2).min(EYE_OFF.len() - 1)]),
        };
        json!({
            "state": state,
            "orders": orders,
            "contracts": contracts,
            "unhedged": (self.unhedged.load(Ordering::Relaxed) as f64 / 1e3),
        })
    }

    /// What was last noted, for the operator.
    pub(crate) fn status(&self) -> Value {
        let word = |at: usize| self.state[at].load(Ordering::Relaxed) as usize;
        let named = |place: usize| PullReason::ALL.get(place).map(|reason| format!("{reason:?}"));
        let reason = named(word(1));
        let counts = PullReason::ALL.iter().zip(&self.pulled);
        let pulls: BTreeMap<String, u64> = counts
            .map(|(reason, count)| (format!("{reason:?}"), count.load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect();
        json!({
            "state": (["quoting", "pulling", "halted"][word(0).min(2)]),
            "reason": (if word(0) == 0 { None } else { reason }),
            "last_pull": (word(2).checked_sub(1).and_then(named)),
            "pulls": (pulls),
            "half_tick": (self.half_tick.load(Ordering::Relaxed)),
            "mass_quotes": (self.messages.load(Ordering::Relaxed)),
            "net": (self.net.load(Ordering::Relaxed)),
            "eye": (self.eye_status()),
            "off_market": (self.off_market_status()),
            "account": (self.board.get()),
        })
    }

    /// How many options are not quoted because of their market, by reason.
    fn off_market_status(&self) -> Value {
        let options = self.off_market.iter().map(|word| word.load(Ordering::Relaxed));
        let by_reason = OffMarket::ALL.iter().zip(options);
        Value::Object(
            by_reason
                .map(|(why, n)| (word(*why).to_string(), n.into()))
                .collect(),
        )
    }

    /// Takes every quote away.
    pub(crate) fn pull(&self) {
        self.pulls.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes every quote away, because of what was lost.
    fn lose(&self) {
        self.losses.fetch_add(1, Ordering::Relaxed);
    }

    /// Quotes again.
    pub(crate) fn resume(&self) {
        self.resumes.fetch_add(1, Ordering::Relaxed);
    }

    /// Turns the eye on or off.
    pub(crate) fn set_eye(&self, is_on: bool) {
        let word = if is_on { &self.eye_on } else { &self.eye_off };
        word.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether there is an eye.
    pub(crate) fn has_eye(&self) -> bool {
        self.eye[0].load(Ordering::Relaxed) != 0
    }

    /// The operator is there.
    pub(crate) fn heartbeat(&self) {
        self.heartbeats.fetch_add(1, Ordering::Relaxed);
    }

    /// Does what was asked for since it was last called; on the thread that quotes.
    #[inline]
    pub(crate) fn obey<O: OrderOut, T: Trades>(&self, now: Nanos, path: &mut QuotePath<O, T>) {
        let is_news = |word: &AtomicU64, at: usize| {
            let asked = word.load(Ordering::Relaxed);
            let is_news = self.obeyed[at].load(Ordering::Relaxed) != asked;
            if is_news {
                self.obeyed[at].store(asked, Ordering::Relaxed);
            }
            is_news
        };
        if is_news(&self.heartbeats, 0) {
            path.maker.on_heartbeat(now);
        }
        if is_news(&self.resumes, 1) {
            path.resume(now);
        }
        if is_news(&self.eye_on, 3) {
            path.arm_eye(now);
        }
        if is_news(&self.eye_off, 4) {
            path.maker.disarm_eye();
        }
        if is_news(&self.losses, 5) {
            path.pull_on_loss(now);
        }
        // Last: a pull that was asked for at the same time wins.
        if is_news(&self.pulls, 2) {
            path.pull(now);
        }
    }
}

/// What the operator asks the pricing thread, and where the answer goes.
pub(crate) type Ask = (Wish, Sender<Result<String, String>>);

/// What the operator wants of it.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    /// An edit of the volatilities as typed, and its author.
    Edit(String, vol::By),
    /// A report of the account.
    Risk(Format),
}

/// What the pricing thread leaves behind.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Priced {
    /// Ladders made, and those there was no room for: the quoting thread had not taken the one before.
    pub ladders: u64,
    pub ladders_late: u64,
    /// Contracts held, bought less sold, by quote, as counted from fills alone: those of quotes and of the eye's orders.
    pub positions: Vec<i64>,
    /// Contracts of the underlying held, from hedges.
    #[serde(default)]
    pub underlying: i64,
    /// Fills; here and below without those that the venue took back.
    pub fills: u64,
    /// Contracts of options bought and sold,
    pub contracts: [u64; 2],
    /// of these by the eye,
    #[serde(default)]
    pub eye_contracts: [u64; 2],
    /// and of the underlying.
    #[serde(default)]
    pub hedged: [u64; 2],
    /// Cash received less paid, in points times contracts of options.
    pub cash: f64,
    /// How many contracts of an option one of the underlying is as large as.
    #[serde(default)]
    pub underlying_size: f64,
    /// What is held, at theoretical values, in the same unit.
    pub value: f64,
    /// The same at the market's mids; without one, at the worse of the last mid and the theoretical value.
    #[serde(default)]
    pub market_value: f64,
    /// Options held that have no mid, and their contracts.
    #[serde(default)]
    pub without_mid: (u32, u64),
    /// What a point of an option is worth, for one contract, and in which currency.
    #[serde(default)]
    pub point: f64,
    #[serde(default)]
    pub currency: String,
    /// The loss limit, in money, 0 for none, and by which prices.
    #[serde(default)]
    pub loss_max: u64,
    #[serde(default)]
    pub loss_by: LossMark,
    /// Gains that differ by more are a warning.
    #[serde(default)]
    pub difference_max: u64,
    /// In the order of `positions`, in points: theoretical values, and the market's mids.
    #[serde(default)]
    pub theos: Vec<f64>,
    #[serde(default)]
    pub mids: Vec<Option<f64>>,
    /// Theoretical edge of all fills when they were made.
    pub edge: f64,
    pub delta: f64,
    pub gamma: f64,
    pub vega: f64,
    /// Version of the volatilities.
    pub version: u64,
    /// Memory of the process after each minute, KiB; of the first [`MINUTES_MAX`].
    #[serde(default)]
    pub memory_kib: Vec<u64>,
    /// Why pricing ended early.
    pub failure: Option<String>,
}

impl Priced {
    /// What was gained, in money, by theoretical value and by the market.
    pub fn gains(&self) -> [f64; 2] {
        [self.value, self.market_value].map(|value| (self.cash + value) * self.point)
    }

    /// The gain that the loss limit goes by.
    pub fn judged(&self) -> f64 {
        let [theo, market] = self.gains();
        LossBy::from(self.loss_by).of(theo, market)
    }

    /// Whether the two gains differ by more than they may without a warning.
    pub fn differs(&self) -> bool {
        let [theo, market] = self.gains();
        self.difference_max > 0 && (theo - market).abs() > self.difference_max as f64
    }

    /// For the operator.
    fn status(&self) -> Value {
        let [theo, market] = self.gains();
        json!({
            "currency": (self.currency),
            "gain_by_theo": theo,
            "gain_by_market": market,
            "differs": (self.differs()),
            "options_without_mid": (self.without_mid.0),
            "contracts_without_mid": (self.without_mid.1),
            "loss_by": (self.loss_by),
            "loss_max": (self.loss_max),
        })
    }
}

/// A day.
const MINUTES_MAX: usize = 1_440;

/// What is handed over: the quoter's ladder, and the eye's from the same values.
pub(crate) struct Made {
    pub quotes: Box<Ladder>,
    pub eye: Option<Box<Ladder>>,
    /// What hedges one contract of each option, in thousandths of a contract of the underlying; empty without an eye, and of a narrow
    /// ladder.
    pub hedges: Vec<i32>,
}

/// The quoting thread's end: ladders come, and go back.
pub(crate) struct Ladders {
    incoming: Consumer<Made>,
    outgoing: Producer<Made>,
    deltas: Vec<i32>,
    sizes: Vec<u32>,
    eye_sizes: Vec<u32>,
    is_over: bool,
    /// Views go, and come back to be filled again.
    to_account: Producer<Box<View>>,
    seen: Consumer<Box<View>>,
}

impl Ladders {
    /// Whether the pricing thread is gone: there is nobody who renews what is quoted by.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The first ladder, which is waited for.
    pub(crate) fn first(&mut self) -> Option<Made> {
        let began = Instant::now();
        while began.elapsed() < FIRST_MAX {
            match self.next() {
                None if !self.is_over => std::thread::sleep(REST),
                made => return made,
            }
        }
        None
    }

    /// The next ladder that has come.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Made> {
        let is_over = self.incoming.is_abandoned();
        let made = self.incoming.pop();
        self.is_over = is_over && made.is_none();
        made
    }

    /// Gives one back, to be filled again.
    pub(crate) fn give_back(&mut self, made: Made) {
        // There is room for as many as there are.
        let _ = self.outgoing.push(made);
    }

    /// A view to be filled, if the account has given one back.
    pub(crate) fn view(&mut self) -> Option<Box<View>> {
        self.seen.pop()
    }

    /// Shows it to the account.
    pub(crate) fn show(&mut self, view: Box<View>) {
        // There is room for as many as there are.
        let _ = self.to_account.push(view);
    }

    /// Deltas of the options, in thousandths.
    pub(crate) fn deltas(&self) -> &[i32] {
        &self.deltas
    }

    /// Contracts on each side of each quote.
    pub(crate) fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Contracts of the eye's largest order in each option.
    pub(crate) fn eye_sizes(&self) -> &[u32] {
        &self.eye_sizes
    }
}

/// What is known of the market before the first quote, and whether volatilities that it contradicts are meant.
pub(crate) struct Begins<'b> {
    /// Bid plus ask of the underlying, in its ticks.
    pub half_tick: i64,
    /// Best bid and offer of an option.
    pub market: &'b dyn Fn(InstrumentId) -> [Option<Price>; 2],
    pub is_forced: bool,
}

/// The thread.
pub(crate) struct Pricing {
    thread: JoinHandle<Priced>,
    shared: Arc<Shared>,
    asks: Sender<Ask>,
}

impl Pricing {
    /// Prices the chain, which it puts into the order of quotes, and begins.
    pub(crate) fn start(
        section: &QuoterSection,
        chain: &mut Chain,
        clock: Clock,
        shared: Arc<Shared>,
        traded: Consumer<Traded>,
        kept: Option<(FillsFile, &Recovered)>,
        begins: &Begins<'_>,
    ) -> Result<(Pricing, Ladders), Failure> {
        let half_tick = begins.half_tick;
        let (mut surface, smiles, times) = volatilities(section, chain, clock.now(), half_tick)?;
        if !begins.is_forced {
            surface.set_front(half_tick as f64 * points(chain.underlying_tick) / 2.0);
            let markets: Vec<_> = chain
                .options
                .iter()
                .map(|option| (begins.market)(option.id))
                .collect();
            let sight = Sight {
                clock: &times,
                rate: section.rate,
                now: clock.now(),
                options: &chain.options,
                markets: &markets,
            };
            plausible::check(&section.market, &surface, &smiles, &sight).map_err(|why| {
                Failure::check(format!(
                    "{why}; nothing was quoted. Start with --force if they are meant"
                ))
            })?;
        }
        let first = (clock.now(), half_tick);
        let pricer = Pricer::new(section, chain, surface, &smiles, &times, first)?;
        let (to_quoting, incoming) = ring(LADDERS_MAX);
        let (outgoing, back) = ring(LADDERS_MAX);
        let (asks, asked) = channel();
        let (to_account, views) = ring(VIEWS);
        let (mut give_back, seen) = ring(VIEWS);
        for _ in 0..VIEWS {
            let seen = Vec::with_capacity(pricer.options().len() + 1);
            let _ = give_back.push(Box::new(View {
                at: Nanos::ZERO,
                seen,
            }));
        }
        let ladders = Ladders {
            incoming,
            outgoing,
            deltas: pricer.deltas().iter().map(|d| (d * 1000.0) as i32).collect(),
            sizes: pricer.terms().iter().map(|t| t.size).collect(),
            eye_sizes: pricer.eye_sizes(),
            to_account,
            seen,
            is_over: false,
        };
        let reach = i64::from(section.reach_half_ticks);
        let count = pricer.options().len();
        let has_eye = pricer.has_eye();
        let pool = |rows: i64| {
            let ladder = || Box::new(Ladder::new(count, (2 * rows + 1) as usize));
            let made = || Made {
                quotes: ladder(),
                eye: has_eye.then(ladder),
                hedges: Vec::with_capacity(if has_eye { count } else { 0 }),
            };
            (0..LADDERS).map(|_| made()).collect::<Vec<_>>()
        };
        let (fills, recovered) = kept.unzip();
        let account = Account::new(section, chain, &pricer);
        let mut work = Work {
            names: pricer.options().iter().map(|option| option.symbol).collect(),
            underlying: section.underlying.0,
            fills,
            noted: Nanos::ZERO,
            valued: Nanos::ZERO,
            near: pool(NEAR_HALF_TICKS),
            wide: pool(reach),
            near_rows: (2 * NEAR_HALF_TICKS + 1) as usize,
            reach,
            pricer,
            times,
            clock,
            shared: shared.clone(),
            traded,
            account,
            news: News::default(),
            market: section.market,
            rate: section.rate,
            smiles: smiles.clone(),
            views,
            give_back,
            asked,
            to_quoting,
            back,
            reprice_ns: u64::from(section.reprice_ms.max(10)) * Nanos::MILLI,
            centre: None,
            is_warned: false,
            priced: Priced {
                point: chain.option_value.raw() as f64 / Price::ONE_RAW as f64,
                currency: chain.option_value.currency().to_string(),
                loss_max: section.limits.loss_max,
                loss_by: section.limits.loss_by,
                difference_max: section.risk.mark_difference_max,
                ..Priced::default()
            },
        };
        for fill in recovered.iter().flat_map(|recovered| &recovered.fills) {
            work.restore(fill);
        }
        let core = section.pricing_core;
        let thread = std::thread::Builder::new()
            .name("pricing".into())
            .spawn(move || work.run(core))
            .map_err(|e| Failure::system(format!("cannot start the pricing thread: {e}")))?;
        Ok((Pricing { thread, shared, asks }, ladders))
    }

    /// Where the operator's questions go.
    pub(crate) fn asks(&self) -> Sender<Ask> {
        self.asks.clone()
    }

    /// Ends the thread; what it leaves behind.
    pub(crate) fn end(self) -> Priced {
        self.shared.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// When options expire: at the end of their last day, by the calendar.
pub struct Expiries;

impl pricer::Clock for Expiries {
    fn years(&self, expiry: Date, now: Nanos) -> [f64; 2] {
        let end = Nanos((u64::from(expiry.days()) + 1) * Nanos::DAY);
        [DayCount::Actual365.years(now, end); 2]
    }
}

/// How the volatilities age: as their file says, else by the calendar.
struct Times {
    file: Option<VolFile>,
}

impl Times {
    fn place(&self, expiry: Date) -> Option<(&VolFile, usize)> {
        let file = self.file.as_ref()?;
        let place = file.expiries().iter().position(|e| e.date == expiry)?;
        Some((file, place))
    }
}

impl pricer::Clock for Times {
    fn years(&self, expiry: Date, now: Nanos) -> [f64; 2] {
        match (self.place(expiry), &self.file) {
            (Some((file, place)), _) => file.years(place, now).unwrap_or([0.0; 2]),
            (None, Some(_)) => [0.0; 2],
            (None, None) => pricer::Clock::years(&Expiries, expiry, now),
        }
    }

    fn rate(&self, expiry: Date) -> Option<f64> {
        let (file, place) = self.place(expiry)?;
        file.expiries().get(place).map(|e| e.rate)
    }
}

/// The volatilities of a configuration, and which expiries they are of.
fn volatilities(
    section: &QuoterSection,
    chain: &Chain,
    now: Nanos,
    half_tick: i64,
) -> Result<(Surface, Vec<Date>, Times), Failure> {
    if let Some(path) = &section.surface {
        let (file, surface) = vol::load(path)?;
        let dates = file.expiries().iter().map(|expiry| expiry.date).collect();
        return Ok((surface, dates, Times { file: Some(file) }));
    }
    let front = half_tick as f64 * points(chain.underlying_tick) / 2.0;
    let smiles: Vec<Date> = chain
        .expiries()
        .keys()
        .copied()
        .filter(|expiry| pricer::Clock::years(&Expiries, *expiry, now)[0] > 0.0)
        .collect();
    let surface = flat_surface(section, &smiles, now, front)?;
    Ok((surface, smiles, Times { file: None }))
}

/// One volatility for every option of these expiries, linked.
pub fn flat_surface(
    section: &QuoterSection,
    smiles: &[Date],
    now: Nanos,
    front: f64,
) -> Result<Surface, Failure> {
    let of = |expiry: &Date| {
        let [years, _] = pricer::Clock::years(&Expiries, *expiry, now);
        Smile::new(Curve::Wing(Wing::flat(section.volatility)), front, years)
            .map(|smile| (smile, Roll::Points(0.0), 1))
            .ok_or_else(|| {
                Failure::config(format!("no volatility of {expiry} can be {}", section.volatility))
            })
    };
    let all = smiles.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    Surface::new(SurfaceConfig::default(), front, all)
        .map_err(|e| Failure::config(format!("the volatilities: {e}")))
}

/// The thread's part.
struct Work {
    near: Vec<Made>,
    wide: Vec<Made>,
    near_rows: usize,
    reach: i64,
    pricer: Pricer,
    times: Times,
    clock: Clock,
    shared: Arc<Shared>,
    traded: Consumer<Traded>,
    account: Account,
    news: News,
    /// How far volatilities may be from the market, at which rate, and the dates of the surface's expiries.
    market: MarketSection,
    rate: f64,
    smiles: Vec<Date>,
    views: Consumer<Box<View>>,
    give_back: Producer<Box<View>>,
    asked: Receiver<Ask>,
    to_quoting: Producer<Made>,
    back: Consumer<Made>,
    reprice_ns: u64,
    /// That the gains differ was said.
    is_warned: bool,
    /// Of the wide ladder that was made last.
    centre: Option<i64>,
    priced: Priced,
    /// Symbols of the options in the order of the quotes, and of the underlying.
    names: Vec<Symbol>,
    underlying: Symbol,
    /// What was traded, where it outlives the process; when it was last said how far the venue was heard.
    fills: Option<FillsFile>,
    noted: Nanos,
    /// When the account was last valued.
    valued: Nanos,
}

impl Work {
    fn run(mut self, core: i32) -> Priced {
        let pinned = tickwire_control::process::pin(core);
        if let Err(failure) = pinned.and_then(|()| self.work()) {
            // Quotes of a ladder that is not renewed any more: pulled, and not resumed by themselves.
            self.shared.pull();
            tickwire_console::warn(format_args!("pricing ended: {failure}; every quote is pulled"));
            self.priced.failure = Some(failure.message);
        }
        let Exposure { delta, gamma, vega } = self.pricer.exposure();
        self.priced.positions = self.pricer.positions().to_vec();
        self.priced.underlying = self.pricer.underlying();
        self.priced.underlying_size = self.pricer.underlying_size();
        self.priced.version = self.pricer.surface().version();
        let count = self.priced.positions.len();
        self.priced.theos = (0..count)
            .map(|at| self.pricer.theo(at).unwrap_or_default())
            .collect();
        self.priced.mids = (0..count).map(|at| self.account.mid(at)).collect();
        Priced {
            delta,
            gamma,
            vega,
            ..self.priced
        }
    }

    fn work(&mut self) -> Result<(), Failure> {
        let mut aged = self.clock.now();
        let mut minute = aged;
        let mut is_new = true;
        loop {
            let half_tick = self.shared.half_tick.load(Ordering::Relaxed);
            is_new |= self.take_fills(half_tick)?;
            let mut is_seen = false;
            while let Some(view) = self.views.pop() {
                self.account.on_view(&view, &mut self.news);
                let _ = self.give_back.push(view);
                is_seen = true;
            }
            if is_seen {
                // The market of what is held has moved, maybe without us.
                self.mark(half_tick)?;
            }
            let now = self.clock.now();
            if now.since(minute) >= 60 * Nanos::SECOND && self.priced.memory_kib.len() < MINUTES_MAX {
                minute = now;
                self.priced
                    .memory_kib
                    .extend(tickwire_control::summary::resident_kib());
            }
            if now.since(aged) >= self.reprice_ns {
                aged = now;
                self.clock.resync();
                // What is left until an expiry is of UTC, as it is now.
                self.pricer.age(&self.times, self.clock.wall_at(now))?;
                is_new = true;
            }
            let is_off = self
                .centre
                .is_none_or(|centre| half_tick.abs_diff(centre) > self.reach as u64 / 2);
            if is_new || is_off {
                is_new = !self.follow(half_tick, is_new)?;
            }
            // Behind what is quoted by.
            if now.since(self.valued) >= VALUE_NS {
                self.valued = now;
                let _ = self.revalue(half_tick);
                self.shared
                    .board
                    .put(self.account.off_market(), self.priced.status());
            }
            if self.shared.ends.load(Ordering::Relaxed) {
                self.take_fills(half_tick)?;
                self.mark(half_tick)?;
                return Ok(());
            }
            match self.asked.recv_timeout(REST) {
                Ok((Wish::Edit(line, by), answer)) => {
                    let _ = answer.send(self.edit(&line, &by, &mut is_new));
                }
                Ok((Wish::Risk(format), answer)) => {
                    let shown = self.revalue(half_tick).map(|()| {
                        let snapshot = self.account.snapshot(self.clock.now());
                        risk::shown(&snapshot, format)
                    });
                    let _ = answer.send(shown);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(REST),
            }
        }
    }

    /// Values the account by the present volatilities. Where that cannot be done it stays as it was, quotes do not depend on it, and whoever
    /// asks for a report is told why.
    fn revalue(&mut self, half_tick: i64) -> Result<(), String> {
        let now = self.clock.now();
        let valued = self
            .account
            .revalue(now, half_tick, &mut self.pricer, &self.times);
        valued.map_err(|e| format!("the account cannot be valued: {e}"))
    }

    /// Makes ladders of what has changed and hands them over, those around the price first if `is_urgent`; `false` where there is none
    /// left to fill, because the quoting thread has not taken the last ones: later.
    fn follow(&mut self, half_tick: i64, is_urgent: bool) -> Result<bool, Failure> {
        self.pricer.settle(half_tick)?;
        self.mark(half_tick)?;
        if is_urgent && self.centre.is_some() {
            self.publish(half_tick, false)?;
        }
        self.publish(half_tick, true)
    }

    /// Does what a line says to the volatilities. Quotes follow it before a file is written, so that they do not wait for a disk; whoever
    /// asked is answered behind both. An edit that cannot be priced or kept is taken back, and quotes go back with it.
    fn edit(&mut self, line: &str, by: &vol::By, is_new: &mut bool) -> Result<String, String> {
        let Some(file) = &mut self.times.file else {
            return Err(
                "these volatilities come from quoter.volatility: name a file, quoter.surface, to edit them"
                    .into(),
            );
        };
        let now = self.clock.now();
        let edited = match vol::begin(file, self.pricer.surface_mut(), line, by, now)? {
            Begun::Answer(says) => return Ok(says),
            Begun::Edited(edited) => *edited,
        };
        if edited.is_reload() && !by.is_forced {
            let sight = Sight {
                clock: &self.times,
                rate: self.rate,
                now,
                options: self.pricer.options(),
                markets: self.account.markets(),
            };
            if let Err(why) = plausible::check(&self.market, self.pricer.surface(), &self.smiles, &sight)
                && let Some(file) = &mut self.times.file
            {
                vol::drop_edit(file, self.pricer.surface_mut(), edited);
                return Err(format!(
                    "`{line}` is refused: {why}. Nothing was changed; give --force if it is meant"
                ));
            }
        }
        let half_tick = self.shared.half_tick.load(Ordering::Relaxed);
        let aged = match edited.is_reload() {
            true => self.pricer.age(&self.times, now),
            false => Ok(()),
        };
        let followed = aged.and_then(|()| self.follow(half_tick, true));
        // In case what was handed over has to be taken back.
        *is_new = true;
        let surface = self.pricer.surface_mut();
        let Some(file) = &mut self.times.file else {
            return Err("the file of the volatilities is gone".into());
        };
        let is_followed = match followed {
            Ok(is_followed) => is_followed,
            Err(failure) => {
                vol::drop_edit(file, surface, edited);
                let _ = self.pricer.age(&self.times, now);
                return Err(format!("taken back: {failure}"));
            }
        };
        let kept = vol::keep(file, surface, edited)?;
        *is_new = !is_followed;
        Ok(kept)
    }

    /// Fills since the last time; whether there were any.
    fn take_fills(&mut self, half_tick: i64) -> Result<bool, Failure> {
        let mut any = false;
        // Before the fills: all up to there are in the ring.
        let heard = self.shared.heard.load(Ordering::Acquire);
        while let Some(fill) = self.traded.pop() {
            if !any {
                self.pricer.theos(half_tick)?;
            }
            any = true;
            let theo = self.pricer.theo(usize::from(fill.quote));
            self.keep(&fill, theo);
            self.account.on_fill(&fill, theo, true);
            self.book(&fill, theo);
        }
        let now = self.clock.now();
        if let Some(fills) = &mut self.fills {
            if now.since(self.noted) >= NOTE_NS {
                self.noted = now;
                fills.heard(heard);
            }
            fills.flush()?;
        }
        Ok(any)
    }

    /// Adds a fill to those that outlive the process.
    fn keep(&mut self, fill: &Traded, theo: Option<f64>) {
        let Some(fills) = &mut self.fills else { return };
        let is_hedge = fill.source == Source::Hedge;
        let option = self.names.get(usize::from(fill.quote)).copied();
        let (symbol, theo) = match (is_hedge, option) {
            (false, Some(symbol)) => (symbol, theo),
            _ => (self.underlying, None),
        };
        fills.put(&Fill {
            at: fill.at,
            symbol,
            source: fill.source,
            side: fill.side,
            is_broken: fill.is_broken,
            qty: fill.qty,
            price: fill.price,
            theo,
            seq: fill.seq,
            exec: fill.exec,
        });
    }

    /// Counts a fill of a process before this one. One in an option that is not quoted any more has no place.
    fn restore(&mut self, fill: &Fill) {
        let place = self.names.iter().position(|name| *name == fill.symbol);
        let quote = match (fill.source, place) {
            (Source::Hedge, _) => u16::MAX,
            (_, Some(place)) => place as u16,
            (_, None) => return,
        };
        let traded = Traded {
            at: fill.at,
            source: fill.source,
            quote,
            side: fill.side,
            is_broken: fill.is_broken,
            qty: fill.qty,
            price: fill.price,
            half_tick: 0,
            seq: fill.seq,
            exec: fill.exec,
        };
        self.account.on_fill(&traded, fill.theo, false);
        self.book(&traded, fill.theo);
    }

    /// Counts a fill of an option that was worth `theo`.
    fn book(&mut self, fill: &Traded, theo: Option<f64>) {
        let quote = usize::from(fill.quote);
        let qty = f64::from(fill.qty);
        let sign = match fill.side {
            Side::Bid => 1.0,
            Side::Ask => -1.0,
        };
        let signed = i64::from(fill.qty) * if sign > 0.0 { 1 } else { -1 };
        let price = points(fill.price);
        let count = |all: &mut u64, more: u64| match fill.is_broken {
            true => *all = all.saturating_sub(more),
            false => *all += more,
        };
        let contracts = u64::from(fill.qty);
        let side = fill.side_of_trade() as usize;
        count(&mut self.priced.fills, 1);
        if fill.source == Source::Hedge {
            count(&mut self.priced.hedged[side], contracts);
            self.priced.cash -= sign * qty * price * self.pricer.underlying_size();
            return self.pricer.hedged(signed);
        }
        count(&mut self.priced.contracts[side], contracts);
        if fill.source == Source::Eye {
            count(&mut self.priced.eye_contracts[side], contracts);
        }
        self.priced.cash -= sign * qty * price;
        if let Some(theo) = theo {
            self.priced.edge += sign * qty * (theo - price);
        }
        self.pricer.filled(quote, signed);
    }

    /// What is held, at theoretical values and at the market's mids; too large a loss pulls everything, and too large a difference is said.
    fn mark(&mut self, half_tick: i64) -> Result<(), Failure> {
        self.priced.value = self.pricer.value_held(half_tick)?;
        let (mut off, mut without) = (0.0, (0, 0));
        for (at, held) in self
            .pricer
            .positions()
            .iter()
            .enumerate()
            .filter(|(_, held)| **held != 0)
        {
            let theo = self.pricer.theo(at).unwrap_or_default();
            let (value, has_mid) = self.account.market_value(at, *held, theo);
            off += *held as f64 * (value - theo);
            if !has_mid {
                without = (without.0 + 1, without.1 + held.unsigned_abs());
            }
        }
        // The underlying is at its mid in both.
        self.priced.market_value = self.priced.value + off;
        self.priced.without_mid = without;
        if self.priced.loss_max > 0 && self.priced.judged() < -(self.priced.loss_max as f64) {
            self.shared.lose();
        }
        if self.priced.differs() != self.is_warned {
            self.is_warned = !self.is_warned;
            let ([theo, market], p) = (self.priced.gains(), &self.priced);
            let line = match self.is_warned {
                true => format!(
                    "warning: what is held has gained {theo:.2} {c} by our values and {market:.2} {c} by the market's mids, which differ by more than {} \
                     (quoter.risk.mark_difference_max): look at the volatilities (`tickwire vol show -s`)",
                    p.difference_max,
                    c = p.currency
                ),
                false => format!(
                    "our values and the market's mids agree again within {} {}",
                    p.difference_max, p.currency
                ),
            };
            self.news.say(&line);
        }
        Ok(())
    }

    /// Fills a pair of ladders and hands it over; `false` when there was none to fill.
    fn publish(&mut self, half_tick: i64, is_wide: bool) -> Result<bool, Failure> {
        while let Some(made) = self.back.pop() {
            self.pool(made.quotes.room() != self.near_rows).push(made);
        }
        let reach = if is_wide { self.reach } else { NEAR_HALF_TICKS };
        let Some(mut made) = self.pool(is_wide).pop() else {
            self.priced.ladders_late += 1;
            return Ok(false);
        };
        self.pricer
            .fill_both(&mut made.quotes, made.eye.as_deref_mut(), half_tick, reach)?;
        if made.eye.is_some() && is_wide {
            self.pricer.hedge_deltas(&mut made.hedges);
        }
        let sent = self.to_quoting.push(made);
        debug_assert!(sent.is_ok(), "the ring has room for every ladder there is");
        self.priced.ladders += 1;
        if is_wide {
            self.centre = Some(half_tick);
        }
        Ok(true)
    }

    fn pool(&mut self, is_wide: bool) -> &mut Vec<Made> {
        match is_wide {
            true => &mut self.wide,
            false => &mut self.near,
        }
    }
}

#[cfg(test)]
mod tests;
