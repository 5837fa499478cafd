//! `tickwire quote`: quotes the options on a future.
//!
//! ```text
//! quoting thread   packets ─► books ─► QuotePath ─► mass quotes; answers and fills ─► QuotePath
//!                     ▲ ladders, as boxes            │ fills, by a ring; the underlying's price, by an atomic
//! pricing thread   Pricer: volatilities, forwards, positions, terms ─► ladders
//! ```
//! The two share nothing else but `Shared`. A full ring of fills pulls every quote: what is held would not be known.
//!
//! ```
//! use tickwire_market::Nanos;
//! use tickwire_quoterd::sample;
//! use tickwire_quoterd::settings::QuoteConfig;
//!
//! // A market of 16 options on a future, and a quoter on it, as the text of a configuration.
//! let text = sample::text(16, Nanos(1_795_392_000 * Nanos::SECOND)).expect("16 options");
//! let config: QuoteConfig = toml::from_str(&text).expect("a configuration");
//! let quoter = config.quoter.expect("it says what to quote");
//! assert_eq!(quoter.comp_id.0.as_str(), "QUOTER");
//! ```

#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

/// Tests count what they allocate.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

mod account;
mod as_orders;
mod chain;
mod config;
mod control;
pub mod fills;
mod gather;
mod news;
mod path;
mod plausible;
mod pricer;
mod pricing;
mod reconciliation;
mod report;
pub mod sample;
pub mod settings;
mod talk;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tickwire_book::{Applied, Books, Depth};
use tickwire_feed::{Channel, Line};
use tickwire_fix::{CompId, Status, Store, Version};
use tickwire_lab::Histogram;
use tickwire_market::{
    BookState, Counter, Counters, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, Port, Price, Side,
    TradingStatus,
};
use tickwire_runtime::alloc;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::spsc;
use tickwire_runtime::tcp::{Received, TcpStream};
use tickwire_runtime::udp::DATAGRAM_BYTES_MAX;
use tickwire_runtime::wait::{WaitStrategy, Waiter};
use tickwire_trading::{PullReason, QuotingState};

pub use config::{QuoteEntry, QuoterSection};
pub use control::{QuoterWord, tell};
pub use report::{QuoterResults, demo_summary, summary};

use settings::QuoteConfig;
use tickwire_console::failure::Failure;
use tickwire_console::health::{count_waits, follow_clock, follow_if_set};
use tickwire_control::notice::Notice;
use tickwire_control::results::{counters_by_id, write_json};
use tickwire_node::controls::beat::Beat;
use tickwire_node::controls::{Guards, check_venue_cancels};
use tickwire_node::link::{Entry, Link};
use tickwire_node::trader::SILENCE_NS;
use tickwire_receive::intake::Intake;
use tickwire_venues::receiver::books_of;
use tickwire_venues::wait::Waiting;
use tickwire_venues::wiring;
use tickwire_venues::wiring::{Reception, WithChannel};

pub use chain::Chain;
pub use path::{QuotePath, QuoteSession, QuoteSetup, Traded, Trades, decimals_of, session_of};
pub use pricer::{NEAR_HALF_TICKS, Pricer};
pub use pricing::{Expiries, flat_surface};
pub use sample::text as demo_text;

use fills::{FillsFile, Recovered};
use path::{NotQuotable, lasting_session};
use pricing::{Begins, Pricing, Shared};
use talk::Talk;

/// Rounds over both lines before order entry and timers are looked at.
const PACKETS_PER_LOOK: u32 = 16;
/// The chain is taken when it has not grown for so long.
const CHAIN_QUIET_NS: u64 = Nanos::SECOND;
/// Fills on their way to the pricing thread.
const TRADES_MAX: usize = 1 << 16;
/// How a run ends that has ended well.
const CANCELLED: &str = "every quote was cancelled";
/// Of the session's store when it is new: nothing is kept for resends.
const STORE_BYTES: usize = 1 << 20;

/// Quotes until the session ends, it is stopped, or the venue is gone; then every quote is cancelled.
///
/// # Errors
/// Why it ended, or could not begin.
pub fn run(
    config: &QuoteConfig,
    results: Option<&Path>,
    (is_child, is_forced): (bool, bool),
    stop: &StopFlag,
) -> Result<(), Failure> {
    let section = config
        .quoter
        .as_ref()
        .ok_or_else(|| Failure::config("the configuration has no [quoter]: nothing says what to quote"))?;
    let feed = config
        .feed
        .first()
        .ok_or_else(|| Failure::config("the configuration has no [[feed]] to receive"))?;
    let clock = Clock::calibrate();
    if let Some(warning) = clock.warning() {
        eprintln!("warning: {warning}");
    }
    tickwire_control::process::pin(section.core)?;
    alloc::populate_large_blocks();
    let run = Run {
        config,
        section,
        clock,
        results,
        is_child,
        is_forced,
        stop,
    };
    wiring::with_channel(feed, 0, &Reception::new(&config.receiver), run)?
}

/// A run, whatever the feed.
struct Run<'a> {
    config: &'a QuoteConfig,
    section: &'a QuoterSection,
    clock: Clock,
    results: Option<&'a Path>,
    is_child: bool,
    /// Volatilities that the market contradicts are meant.
    is_forced: bool,
    stop: &'a StopFlag,
}

impl Run<'_> {
    /// The session, and what was traded before, where that outlives the process.
    fn session(&self) -> Result<(Option<State>, QuoteSession), Failure> {
        let entry = &self.config.order_entry;
        let id = |s: tickwire_market::Symbol| CompId::new(s.as_bytes()).expect("a symbol fits a CompID");
        let ids = [id(self.section.comp_id.0), id(entry.exchange_comp_id.0)];
        let version = entry.version_of(self.section.comp_id);
        let heartbeat_s = entry.heartbeat_s_of(self.section.comp_id);
        if self.section.entry == QuoteEntry::Orders && version < Version::Fix43 {
            return Err(Failure::config(format!(
                "quoter.entry = \"orders\" needs FIX 4.3 or above, whose OrderMassCancelRequest (q) takes all of them away; {} of order_entry.session has {}",
                ids[0],
                version.name()
            )));
        }
        let Some(folder) = &self.section.state else {
            let mut session = session_of(ids, version, true, heartbeat_s);
            session.set_cancels_tag(entry.cancel_on_disconnect_tag);
            return Ok((None, session));
        };
        let (file, recovered) = FillsFile::open(&folder.join("fills"))?;
        let identity = format!("{} {} {}", version.name(), ids[0], ids[1]);
        let mut store = tickwire_fixengine::store::lasting(
            &folder.join("session.store"),
            STORE_BYTES,
            &identity,
            &tickwire_node::voice::console(),
        )
        .map_err(tickwire_node::voice::failure)?;
        // What was taken and is in no line is asked for again.
        let next_in = store.next_in().min(recovered.heard + 1);
        store.set_next_in(next_in);
        if !self.is_child {
            eprintln!(
                "state {}: {} fills, next out {}, next in {next_in}{}",
                folder.display(),
                recovered.fills.len(),
                store.next_out(),
                match recovered.torn {
                    0 => String::new(),
                    torn => format!("; {torn} bytes of a line that was not whole were cut"),
                }
            );
        }
        let mut session = lasting_session(ids, version, heartbeat_s, store);
        session.set_cancels_tag(entry.cancel_on_disconnect_tag);
        Ok((Some(State { file, recovered }), session))
    }
}

impl WithChannel for Run<'_> {
    type Output = Result<(), Failure>;

    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) -> Result<(), Failure> {
        let (state, session) = self.session()?;
        let (mut floor, talk, link) = Floor::open(&self, channel, session)?;
        let learned = floor.learn(&self, depth, talk)?;
        let outcome = floor.quote(&self, learned, state, link)?;
        if let Some(dir) = self.results {
            write_json(&dir.join("quoter.json"), &outcome.results)?;
        }
        if !self.is_child {
            print!("{}", summary(&outcome.results));
        }
        outcome.ended
    }
}

/// How a run ended, with what it left behind.
struct Outcome {
    results: QuoterResults,
    ended: Result<(), Failure>,
}

/// Books before anything is quoted, and what the instruments' states are.
pub struct Learn {
    /// The books of the channel.
    pub books: Books,
    /// What the venue says of itself.
    pub venue: TradingStatus,
    /// By instrument.
    pub statuses: Vec<TradingStatus>,
}

impl EventSink for Learn {
    fn on_event(&mut self, event: &MarketEvent) {
        if let (Applied::None, EventKind::Status) = (self.books.apply(event), event.kind) {
            match self.statuses.get_mut(event.instrument.index()) {
                _ if event.instrument == InstrumentId::WHOLE_FEED => {
                    self.venue = event.status;
                    self.statuses.fill(event.status);
                }
                Some(status) => *status = event.status,
                None => {}
            }
        }
    }
}

impl Learn {
    fn status(&self, id: InstrumentId) -> TradingStatus {
        self.statuses.get(id.index()).copied().unwrap_or(self.venue)
    }

    /// Best bid and offer of an instrument whose book is live.
    fn market(&self, id: InstrumentId) -> [Option<Price>; 2] {
        let book = self.books.book(id).filter(|book| book.state() == BookState::Live);
        Side::BOTH.map(|side| Some(book.as_ref()?.best(side)?.price))
    }

    /// Bid plus ask of an instrument, in ticks, if its book is live and has both.
    pub fn half_tick(&self, id: InstrumentId, tick: tickwire_market::Price) -> Option<i64> {
        let book = self.books.book(id)?;
        let ticks = |side| book.best(side).map(|level| level.price.raw() / tick.raw().max(1));
        let sum = ticks(Side::Bid)? + ticks(Side::Ask)?;
        (book.state() == BookState::Live && self.status(id) == TradingStatus::Trading).then_some(sum)
    }
}

/// What has to be known before quoting begins.
struct Learned {
    learn: Learn,
    chain: Chain,
    half_tick: i64,
    talk: Talk,
}

/// What outlives the process.
struct State {
    file: FillsFile,
    recovered: Recovered,
}

/// Sockets of the quoting thread.
struct Floor<C> {
    clock: Clock,
    channel: C,
    intake: Intake,
    waiting: Waiting,
    waiter: Waiter,
    buffer: Vec<u8>,
    started: Nanos,
    /// How often the system's clock was set.
    clock_steps: u64,
}

impl<C: Channel> Floor<C> {
    fn open(run: &Run<'_>, mut channel: C, session: QuoteSession) -> Result<(Floor<C>, Talk, Link), Failure> {
        let feed = &run.config.feed[0];
        let waiting = run.section.wait.choose(3);
        let mut waiter = Waiter::new(waiting.strategy);
        let ports = feed.channels[0].ports(&feed.interface);
        let intake = Intake::join(&ports, run.config.receiver.receive_buffer, &mut waiter)?;
        intake.introduce(&mut channel);
        if let Some(warning) = intake.live[0].buffer_warning() {
            eprintln!("warning: {warning}");
        }
        let address = run.config.order_entry.address.into();
        let stream = TcpStream::connect(address, Duration::from_secs(5))
            .map_err(|e| Failure::system(e.to_string()))?;
        let watch = waiter.watch(&stream);
        let limits = &run.section.limits;
        let wait_ns = u64::from(limits.reconnect_ms) * Nanos::MILLI;
        let link = Link::new(
            address,
            "every quote went with it",
            limits.reconnects_max,
            wait_ns,
            watch,
            run.clock.now(),
        );
        let talk = Talk {
            stream,
            session,
            pending: None,
            rest: Vec::new(),
        };
        let floor = Floor {
            started: run.clock.now(),
            clock: run.clock.clone(),
            clock_steps: 0,
            channel,
            intake,
            waiting,
            waiter,
            buffer: vec![0; DATAGRAM_BYTES_MAX],
        };
        Ok((floor, talk, link))
    }

    /// Logs on, and listens until the underlying, its options and a price to begin with are known.
    fn learn(&mut self, run: &Run<'_>, depth: Depth, mut talk: Talk) -> Result<Learned, Failure> {
        talk.session.handle_connected(self.clock.now());
        let slots = run.config.receiver.max_instruments as usize + 1;
        let mut learn = Learn {
            books: books_of(&run.config.receiver, self.channel.venue(), depth),
            venue: TradingStatus::Unknown,
            statuses: vec![TradingStatus::Unknown; slots],
        };
        let underlying = run.section.underlying.0;
        let (mut known, mut grown) = (0, self.clock.now());
        let mut next_look = Nanos::ZERO;
        loop {
            self.receive(&mut learn, |_, _, _| {});
            self.around(&mut learn);
            let now = self.clock.now();
            talk.go_on(now, &mut self.buffer)?;
            if now >= next_look {
                next_look = now.after(50 * Nanos::MILLI);
                self.check(run, now, &format!("{underlying} and its options"))?;
                if let Some(chain) = Chain::of(&self.channel, &underlying)? {
                    if chain.options.len() != known {
                        (known, grown) = (chain.options.len(), now);
                    }
                    let half_tick = learn.half_tick(chain.underlying, chain.underlying_tick);
                    if let (Some(half_tick), Status::Active) = (half_tick, talk.session.status())
                        && now.since(grown) >= CHAIN_QUIET_NS
                    {
                        let tag = run.config.order_entry.cancel_on_disconnect_tag;
                        let said = talk.session.peer_cancels();
                        check_venue_cancels(run.config.controls.venue_cancels, tag, said)?;
                        return Ok(Learned {
                            learn,
                            chain,
                            half_tick,
                            talk,
                        });
                    }
                }
                if self.channel.is_done() {
                    return Err(Failure::peer_lost(format!(
                        "the session ended before {underlying} and options on it were known; {known} options were"
                    )));
                }
            }
            self.wait(now);
        }
    }

    /// What the lines hold, up to a bound; `after` each packet with the time stamp counter at its receipt. Whether they hold nothing more.
    #[inline]
    fn receive<S: EventSink>(&mut self, sink: &mut S, mut after: impl FnMut(&mut S, &Clock, u64)) -> bool {
        let lines = (0..self.intake.live.len()).zip([Line::A, Line::B]);
        for _ in 0..PACKETS_PER_LOOK {
            let mut any = false;
            for (index, line) in lines.clone() {
                let Some(datagram) = self.intake.receive(index, &mut self.buffer) else {
                    continue;
                };
                any = true;
                let arrived = datagram.tsc;
                let at = self.clock.nanos_at(arrived);
                self.channel
                    .on_datagram(at, Port::Live, line, datagram.bytes, sink);
                after(sink, &self.clock, arrived);
            }
            if !any {
                return true;
            }
        }
        false
    }

    /// Recovery, requests, timers of the channel.
    fn around<S: EventSink>(&mut self, sink: &mut S) {
        let now = self.clock.now();
        self.intake
            .recover(now, &mut self.buffer, &mut self.channel, sink);
        if self.channel.poll_timeout().is_some_and(|due| due <= now) {
            self.channel.handle_timeout(now, sink);
            self.intake.request(&mut self.channel);
        }
        self.intake.links(now, &mut self.buffer, &mut self.channel, sink);
    }

    fn check(&self, run: &Run<'_>, now: Nanos, what: &str) -> Result<(), Failure> {
        if let Some(reason) = run.stop.reason() {
            return Err(Failure::interrupted(format!("{reason}; nothing was quoted yet")));
        }
        let last = self.channel.last_packet().0.max(self.started.0);
        if now.since(Nanos(last)) > 4 * SILENCE_NS {
            return Err(Failure::peer_lost(format!(
                "no packet on {} for {} s while waiting for {what}",
                self.intake.groups(),
                4 * SILENCE_NS / Nanos::SECOND
            )));
        }
        Ok(())
    }

    fn wait(&mut self, now: Nanos) {
        let due = self
            .channel
            .poll_timeout()
            .map_or(Nanos::MILLI, |t| t.since(now))
            .min(Nanos::MILLI);
        self.waiter.wait(due);
    }

    /// Quotes until the feed has ended, the session is over, or the run is stopped.
    fn quote(
        &mut self,
        run: &Run<'_>,
        learned: Learned,
        state: Option<State>,
        mut link: Link,
    ) -> Result<Outcome, Failure> {
        let Learned {
            learn,
            mut chain,
            half_tick,
            talk,
        } = learned;
        let (file, recovered) = state.map(|state| (state.file, state.recovered)).unzip();
        let recovered = recovered.unwrap_or_default();
        let shared = Arc::new(Shared::new(half_tick));
        let (trades, traded) = spsc::ring::<Traded>(TRADES_MAX);
        let begins = Begins {
            half_tick,
            market: &|id| learn.market(id),
            is_forced: run.is_forced,
        };
        let (pricing, mut ladders) = Pricing::start(
            run.section,
            &mut chain,
            self.clock.clone(),
            shared.clone(),
            traded,
            file.map(|file| (file, &recovered)),
            &begins,
        )?;
        let ids: Vec<_> = chain.options.iter().map(|option| option.id).collect();
        let symbols: Vec<_> = chain.options.iter().map(|option| option.symbol).collect();
        let ticks = [chain.underlying_tick, chain.steps.tick];
        let setup = QuoteSetup {
            quoter: run.section.quoter(
                chain.underlying,
                (ticks, chain.option_value),
                ids.len() as u16,
                run.config.feed[0].protocol(),
            ),
            instruments: &ids,
            symbols: &symbols,
            deltas: ladders.deltas(),
            session: talk.session,
            by_orders: run.section.entry == QuoteEntry::Orders,
            first_order: first_order(self.clock.now()),
        };
        let statuses: Vec<_> = ids.iter().map(|id| learn.status(*id)).collect();
        let status = learn.status(chain.underlying);
        let mut path = QuotePath::new(setup, learn.books, Entry(Some(talk.stream)), Ring(trades))
            .map_err(|NotQuotable(why)| Failure::config(why))?;
        let now = self.clock.now();
        for (quote, size) in ladders.sizes().iter().enumerate() {
            path.quoter.set_size(quote as u16, tickwire_market::Qty(*size));
        }
        if let Some(eye) = &run.section.eye {
            let config = eye.eye(
                chain.underlying,
                (ticks, chain.option_value),
                &run.section.trigger,
                &run.section.market,
            );
            let underlying = run.section.underlying.0;
            path.open_eye(config, &ids, &symbols, underlying)
                .map_err(|NotQuotable(why)| Failure::config(why))?;
            path.set_eye_sizes(ladders.eye_sizes());
        }
        path.set_controls(run.config.controls.of_quotes(
            ids.len() as u32,
            chain.steps.tick,
            [chain.option_value, chain.underlying_value],
        ));
        if run.section.entry == QuoteEntry::MassQuotes && path.wire.session.config().version >= Version::Fix44
        {
            let every_s = run.config.controls.reconcile_s;
            path.reconciliation.start(self.clock.now(), every_s, ids.len());
        }
        path.set_venue_cancels(
            run.config.controls.venue_cancels,
            run.config.order_entry.cancel_on_disconnect_tag,
        );
        let elsewhere = path.restore(&recovered);
        if elsewhere > 0 {
            tickwire_console::warn(format_args!(
                "{elsewhere} contracts were traded before in options that are not quoted any more; they are in no position"
            ));
        }
        if let Some(first) = ladders.first() {
            take_ladders(now, &mut path, first);
        }
        path.begin(now, &self.channel, status);
        path.logged_on(now, false);
        for (quote, status) in statuses.iter().enumerate() {
            if *status != TradingStatus::Trading {
                path.close(now, quote as u16);
            }
        }
        path.take_over(now, talk.pending, &talk.rest);
        if !run.is_child {
            eprintln!(
                "quoting {} options of {} expiries on {}",
                ids.len(),
                chain.expiries().len(),
                run.section.underlying.0
            );
        }
        let control = match &run.section.control {
            Some(folder) => {
                let (shared, controls) = (shared.clone(), run.config.controls.clone());
                Some(control::open(
                    folder,
                    &run.config.access,
                    shared,
                    pricing.asks(),
                    controls,
                )?)
            }
            None => None,
        };
        let killed = shared.clone();
        let _guards = Guards::start(&run.config.controls, run.is_child, move || killed.pull())?;
        let beat = Beat::open(&run.config.controls)?;
        let mut figures = Figures::default();
        let desk = (&*shared, beat.as_ref());
        let ended = self.serve(run, &mut path, &mut ladders, desk, &mut figures, &mut link);
        if let (Some(beat), Ok(())) = (&beat, &ended) {
            beat.end();
        }
        if let Some(control) = control {
            control.end();
        }
        let priced = pricing.end();
        if let Some(stream) = &mut path.wire.out.to.0 {
            stream.finish();
        }
        let results = self.results(run, &chain, &path, figures, priced);
        Ok(Outcome { results, ended })
    }

    fn serve(
        &mut self,
        run: &Run<'_>,
        path: &mut QuotePath<Entry, Ring>,
        ladders: &mut pricing::Ladders,
        (shared, beat): (&Shared, Option<&Beat>),
        figures: &mut Figures,
        link: &mut Link,
    ) -> Result<(), Failure> {
        let mut next_look = Nanos::ZERO;
        let mut looks = 0_u32;
        // Only a thread that never sleeps has time to spare.
        let spins = self.waiter.strategy() == WaitStrategy::Spin;
        let rehearse_ns = u64::from(run.section.rehearse_us) * Nanos::MICRO;
        let mut next_rehearsal = (spins && rehearse_ns > 0).then_some(Nanos::ZERO);
        let mut end = End::Quoting;
        let mut is_priced = true;
        let mut told = Told::default();
        let mut is_behind = false;
        loop {
            let now = self.clock.now();
            if let Some(beat) = beat {
                beat.turn();
            }
            if let Some(stood) = path.turn(now) {
                // Before anything of the meantime is read.
                is_behind = true;
                told.stood = stood;
            }
            let mut sent = path.wire.sent[0];
            let is_read = self.receive(path, |path, clock, arrived| {
                path.packet(clock.nanos_at(arrived));
                if path.wire.sent[0] != sent {
                    sent = path.wire.sent[0];
                    let took = clock.span_ns(tsc().saturating_sub(arrived));
                    figures.packet_to_quotes.record(took);
                }
            });
            let now = self.clock.now();
            if is_behind {
                path.backlog(now);
                is_behind = !is_read;
            }
            while let Some(made) = ladders.next() {
                if let Some(before) = take_ladders(now, path, made) {
                    ladders.give_back(before);
                }
            }
            if let Some(half_tick) = path.half_tick() {
                shared.half_tick.store(half_tick, Ordering::Relaxed);
            }
            self.venue(now, path, link);
            // Fills up to there are in the ring.
            let heard = path.wire.session.store().next_in() - 1;
            shared.heard.store(heard, Ordering::Release);
            if path.poll_timeout().is_some_and(|due| due <= now) {
                path.handle_timeout(now);
            }
            self.around(path);
            path.settle(now);
            if let Some(error) = path.wire.out.failure.take()
                && link.is_up()
            {
                self.lose(
                    now,
                    path,
                    link,
                    format!("the connection to the venue failed: {error}"),
                );
            }
            if let Some(reason) = path.ended
                && link.is_up()
                && matches!(end, End::Quoting)
            {
                let why = format!("the session with the venue ended: {reason}");
                self.lose(now, path, link, why);
            }
            if path.quoter.wants_disconnect() && matches!(end, End::Quoting) {
                let why = "the venue did not confirm that quotes were cancelled: the session is ended so that it cancels them";
                self.lose(now, path, link, why.to_string());
            }
            shared.obey(now, path);
            if let Some(due) = &mut next_rehearsal
                && now >= *due
            {
                *due = now.after(rehearse_ns);
                path.rehearse(now);
            }
            if now >= next_look {
                looks += 1;
                if let Some(refused) = path.refused.take() {
                    return Err(refused);
                }
                if looks.is_multiple_of(10) && follow_clock(&mut self.clock, &mut self.clock_steps) {
                    path.wire.session.set_wall_offset(self.clock.wall_offset_ns());
                }
                next_look = now.after(100 * Nanos::MILLI);
                self.intake.settle();
                path.look_up(now);
                shared.note(path);
                if !run.is_child {
                    told.tell(path, link);
                }
                if let Some(mut view) = ladders.view() {
                    path.look(now, &mut view);
                    ladders.show(view);
                }
                if ladders.is_over() && matches!(end, End::Quoting) {
                    path.pull(now);
                    end = End::Pulling { since: now };
                    is_priced = false;
                }
                if let Some(done) = self.conclude(run, now, path, &mut end, link)? {
                    if !is_priced {
                        return Err(Failure::system(
                            "pricing ended, see above; every quote was cancelled",
                        ));
                    }
                    return done;
                }
                if matches!(end, End::Quoting)
                    && let Some(stream) = link.mend(now, &mut self.waiter)?
                {
                    path.wire.out.replace(Entry(Some(stream)));
                    path.ended = None;
                    path.connected(now);
                }
                if run.is_child {
                    Notice::Progress {
                        seconds: now.since(self.started) as f64 / 1e9,
                        messages: self.channel.counters().get(Counter::Messages),
                        orders: path.wire.sent[0],
                    }
                    .send();
                }
            }
            self.wait(now);
        }
    }

    /// What the venue says.
    fn venue<T: Trades>(&mut self, now: Nanos, path: &mut QuotePath<Entry, T>, link: &mut Link) {
        let Some(stream) = &mut path.wire.out.to.0 else {
            return;
        };
        let why = match stream.recv(&mut self.buffer) {
            Ok(Received::Nothing) => match stream.has_unsent().then(|| stream.flush()) {
                Some(Err(e)) => format!("the connection to the venue failed: {e}"),
                _ => return,
            },
            Ok(Received::Bytes(bytes)) => {
                let bytes: &[u8] = bytes;
                if follow_if_set(&mut self.clock, &mut self.clock_steps) {
                    path.wire.session.set_wall_offset(self.clock.wall_offset_ns());
                }
                return path.on_bytes(now, bytes);
            }
            Ok(Received::Closed) => format!("the venue at {} closed the connection", stream.peer()),
            Err(e) => format!("the connection to the venue failed: {e}"),
        };
        self.lose(now, path, link, why);
    }

    /// There is no session any more, and no quote; [`Link::mend`] makes a new connection.
    #[cold]
    fn lose<T: Trades>(&mut self, now: Nanos, path: &mut QuotePath<Entry, T>, link: &mut Link, why: String) {
        path.disconnected(now);
        // Its number is watched no longer before it may be another file's.
        link.lost(now, why, &mut self.waiter);
        path.wire.out.replace(Entry(None));
    }

    /// The end, step by step: everything is pulled, the venue confirms, we log out. Market data that is silent is no end: nothing is quoted
    /// until it comes again.
    fn conclude<T: Trades>(
        &mut self,
        run: &Run<'_>,
        now: Nanos,
        path: &mut QuotePath<Entry, T>,
        end: &mut End,
        link: &mut Link,
    ) -> Result<Option<Result<(), Failure>>, Failure> {
        let stopped = run.stop.reason();
        let done = |how: &str| match stopped {
            Some(reason) => Err(Failure::interrupted(format!("{reason}; {how}"))),
            None => Ok(()),
        };
        let is_over = self.channel.is_done() || stopped.is_some();
        if !link.is_up() || path.ended.is_some() {
            // Without a session nothing is quoted: there is nothing to wait for.
            let how = match end {
                End::LoggingOut { .. } => CANCELLED,
                _ => {
                    "the session with the venue was lost before it confirmed that quotes were cancelled: it cancels them with the session"
                }
            };
            return Ok((is_over || !matches!(end, End::Quoting)).then(|| done(how)));
        }
        if path.quoter.wants_disconnect() {
            return Ok(Some(Err(Failure::peer_lost(
                "the venue did not confirm that quotes were cancelled; the session was ended so that it cancels them",
            ))));
        }
        match *end {
            End::Quoting if is_over => {
                path.pull(now);
                *end = End::Pulling { since: now };
            }
            End::Pulling { since } => {
                let is_empty = matches!(path.quoter.state(), QuotingState::Halted(_));
                if is_empty && path.is_still() {
                    path.wire.session.logout(now, "end of quoting");
                    path.wire.transmit();
                    // What comes now is the answer to that.
                    link.leave();
                    *end = End::LoggingOut { since: now };
                } else if now.since(since) > 2 * Nanos::SECOND {
                    return Ok(Some(Err(Failure::peer_lost(
                        "the venue did not confirm that quotes were cancelled within 2 s",
                    ))));
                }
            }
            End::LoggingOut { since } if now.since(since) > 2 * Nanos::SECOND => {
                return Ok(Some(done(CANCELLED)));
            }
            End::Quoting | End::LoggingOut { .. } => {}
        }
        Ok(None)
    }

    fn results<T: Trades>(
        &self,
        run: &Run<'_>,
        chain: &Chain,
        path: &QuotePath<Entry, T>,
        figures: Figures,
        priced: pricing::Priced,
    ) -> QuoterResults {
        let mut counters: Counters = self.channel.counters();
        counters.merge(&path.counters());
        self.intake.count_into(&mut counters);
        count_waits(&mut counters, self.waiter.errors());
        counters.add(Counter::ClockSteps, self.clock_steps);
        let rows = (0_u16..)
            .zip(&chain.options)
            .map(|(quote, option)| report::QuoteRow {
                symbol: option.symbol.to_string(),
                position: path.quoter.position(quote),
                live: path.quoter.open(quote),
                eye: path.eye.as_ref().map_or(0, |eye| eye.position(quote)),
            });
        QuoterResults {
            counters: counters_by_id(&counters),
            quotes: rows.collect(),
            messages: path.wire.sent[0],
            bytes: path.wire.sent[1],
            eye_orders: path.wire.orders_sent,
            repeated_fills: path.repeated,
            unread_answers: path.unread,
            pulls: pulls_by_name(path.quoter.pulls()),
            packet_to_quotes: figures.packet_to_quotes,
            priced,
            host: tickwire_control::summary::host(&self.clock, Some(self.waiting.to_string())),
            underlying: run.section.underlying.0.to_string(),
        }
    }
}

/// Hands newer ladders over, the eye's first; those before them come back.
fn take_ladders<O: tickwire_node::hot::OrderOut, T: Trades>(
    now: Nanos,
    path: &mut QuotePath<O, T>,
    made: pricing::Made,
) -> Option<pricing::Made> {
    path.set_hedges(&made.hedges);
    let eye = made.eye.and_then(|ladder| path.replace_eye_ladder(now, ladder));
    let quotes = path.replace_ladder(now, made.quotes)?;
    Some(pricing::Made {
        quotes,
        eye,
        hedges: made.hedges,
    })
}

/// Above every order number of a process before this one, as long as it sent fewer than half a million a second: microseconds since 1970.
fn first_order(now: Nanos) -> u64 {
    now.0 / Nanos::MICRO
}

/// How far the end is.
#[derive(Clone, Copy)]
enum End {
    Quoting,
    Pulling { since: Nanos },
    LoggingOut { since: Nanos },
}

/// What is measured while quoting.
#[derive(Default)]
struct Figures {
    /// From a packet's receipt to the last mass quote it caused, of those that caused any.
    packet_to_quotes: Histogram,
}

/// How often quoting stopped, by reason, of those that it did stop for.
fn pulls_by_name(pulls: &[u64]) -> std::collections::BTreeMap<String, u64> {
    let all = PullReason::ALL.iter().zip(pulls);
    all.filter(|(_, count)| **count > 0)
        .map(|(reason, count)| (format!("{reason:?}"), *count))
        .collect()
}

/// What the terminal was told of pulls.
#[derive(Default)]
struct Told {
    pulls: [u64; PullReason::ALL.len()],
    /// How long the loop stood still last, in nanoseconds.
    stood: u64,
    is_pulled: bool,
}

impl Told {
    /// Says why quoting stopped since it was last called, and that it goes on.
    #[cold]
    fn say<O: tickwire_node::hot::OrderOut, T: Trades>(&mut self, path: &QuotePath<O, T>, link: &Link) {
        let pulls = path.quoter.pulls();
        for ((reason, told), count) in PullReason::ALL.iter().zip(&mut self.pulls).zip(pulls) {
            let more = count - core::mem::replace(told, *count);
            if more == 0 || *reason == PullReason::NoSession {
                // Of a lost session [`Link::lost`] tells.
                continue;
            }
            let why = match reason {
                PullReason::Stall => format!(
                    ": the quoting thread did not run for {:.3} s",
                    self.stood as f64 / 1e9
                ),
                PullReason::Silence => path.quoter.silence_max_ns().map_or(String::new(), |limit| {
                    format!(
                        ": no packet of the underlying's channel for {} ms",
                        limit / Nanos::MILLI
                    )
                }),
                PullReason::Control => path.wire.stopped_by.map_or(String::new(), |control| {
                    format!(
                        ": {} stopped it ([controls])",
                        tickwire_node::controls::named(control)
                    )
                }),
                _ => String::new(),
            };
            let times = if more > 1 {
                format!(", {more} times")
            } else {
                String::new()
            };
            let goes_on = match reason.is_passing() {
                true => "quoting goes on when the underlying is good again",
                false => "until `tickwire quote --tell resume`",
            };
            link.say(format!(
                "every quote was pulled, {reason:?}{times}{why}; {goes_on}"
            ));
            self.is_pulled = true;
        }
        if self.is_pulled && path.quoter.state() == QuotingState::Quoting {
            self.is_pulled = false;
            link.say("quoting again".to_string());
        }
    }

    fn tell<O: tickwire_node::hot::OrderOut, T: Trades>(&mut self, path: &QuotePath<O, T>, link: &Link) {
        if self.is_pulled || self.pulls[..] != *path.quoter.pulls() {
            self.say(path, link);
        }
    }
}

/// Fills, to the pricing thread.
struct Ring(spsc::Producer<Traded>);

impl Trades for Ring {
    fn traded(&mut self, traded: &Traded) -> bool {
        self.0.push(*traded).is_ok()
    }
}
