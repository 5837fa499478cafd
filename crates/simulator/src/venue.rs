//! `tickwire exchange`: the sockets around the simulated venue.
//!
//! One thread does everything: publishes every channel on its multicast lines (through their impairments),
//! answers retransmission requests, serves snapshots, takes orders. It notes when each datagram first left
//! and when each order came in, so that packet-to-order latency is measured from outside the trader, with the
//! exchange's clock alone.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;

use tickwire_exchange::{
    Applied, ClientOrder, ClientQuote, DayPhase, Exchange, ExchangeConfig, FlowConfig, ImpairConfig, Input,
    Listing, Market, Mask, Outcome, PaceConfig, PublishedChannel, Reference, listings, market_listings,
};
use tickwire_lab::{Histogram, Series};
use tickwire_market::{Counter, Counters, Level, Nanos, Price, Side, Symbol, Venue as TradingVenue};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::tcp::{Received, TcpListener, TcpStream};
use tickwire_runtime::trouble::BackOff;
use tickwire_runtime::wait::{WaitStrategy, Waiter, Watch};

use crate::channel_sockets::{CONNECTIONS, ChannelSockets, Departures, LineTroubles};
use crate::entry::{self, OUCH_CONNECTIONS};
use crate::history::HistoryFile;
use crate::journal::{self, Journal, TRANSMIT_MAX};
use crate::operator::{self, Operator};
use crate::settings::Impairment;
use crate::settings::MarketConfig;
use crate::snapshot::SnapshotWriter;
use crate::strangers::{Seat, seat};
use crate::wiring;
use tickwire_console::failure::Failure;
use tickwire_console::health::{SocketHealth, count_waits, follow_clock, follow_if_set};
use tickwire_console::warn;
use tickwire_control::notice::Notice;
use tickwire_control::results::{
    ExchangeResults, LevelWriter, OrderOutcome, OrdersTraded, QuoteOutcome, counters_by_id, write_json,
};
use tickwire_control::socket::ControlSocket;
use tickwire_venues::ports::Ports;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::values::Probability;

/// After the last end-of-session packet, how long without a request until nobody needs us any more.
const QUIET_NS: u64 = 300 * Nanos::MILLI;
/// Order entry connections at once: first those of FIX, then those of OUCH.
const CLIENTS: usize = CONNECTIONS + OUCH_CONNECTIONS;
/// A turn of the loop that took longer than this was interrupted.
const STALL_NS: u64 = 500 * Nanos::MILLI;
/// Messages that a channel keeps in memory at least: more than one turn of the loop publishes.
const KEPT_MIN: u32 = 4096;
/// How often time is told to a market whose journal is kept, when nothing is due.
const TICK_NS: u64 = Nanos::MILLI;
/// How often its state hash is noted.
const MARK_NS: u64 = 60 * Nanos::SECOND;
/// When a session in virtual time opens: 2026-01-05 14:30 UTC, 09:30 in New York.
pub const VIRTUAL_START: Nanos = Nanos(1_767_623_400 * Nanos::SECOND);

/// A published channel: whose it is, and where.
pub struct Published {
    /// Which venue of the market.
    pub venue: usize,
    /// Which published channel of that venue.
    pub published_channel: usize,
    /// Which feed of the configuration.
    pub feed: usize,
    /// The addresses that it publishes on and answers at.
    pub ports: Ports,
}

/// Packets of the venues in the day that the reference system was measured with, in hundredths of Nasdaq's;
/// of others none are known.
fn activity_percent(venue: TradingVenue) -> u32 {
    match venue {
        TradingVenue::Nyse => 64,
        TradingVenue::Bzx => 41,
        TradingVenue::Edga => 21,
        TradingVenue::Arca => 16,
        TradingVenue::Edgx => 13,
        _ => 100,
    }
}

/// What the first channel of a market in virtual time sends now, in order.
pub fn datagrams(market: &mut Market, now: Nanos, mut each: impl FnMut(tickwire_market::Port, &[u8])) {
    loop {
        let has_more = market.on_time(now);
        let mut any = false;
        while let Some(datagram) = market.exchange_mut(0).poll_datagram(0, now) {
            each(datagram.port, datagram.bytes);
            any = true;
        }
        if !(has_more && any) {
            return;
        }
    }
}

/// The exchange of a configuration of one feed.
pub fn exchange_of(c: &MarketConfig) -> Result<Exchange, Failure> {
    let (market, _) = market_of(c, None)?;
    Ok(market.into_first())
}

/// The market of the configuration and its channels, in the order of the feeds. One venue is one engine,
/// whatever its feeds; feeds of two venues or more are a market with an engine each, and CQS and UQDF publish
/// what these show. `kept` is how many messages a channel keeps in memory for retransmission; without it as
/// many as a session has, `exchange.kept_messages` at most.
pub fn market_of(c: &MarketConfig, kept: Option<usize>) -> Result<(Market, Vec<Published>), Failure> {
    let e = &c.exchange;
    let mut names: Vec<TradingVenue> = Vec::new();
    for feed in c.feed.iter().filter(|feed| !is_consolidated(feed.venue)) {
        if !names.contains(&feed.venue) {
            names.push(feed.venue);
        }
    }
    let is_market = names.len() > 1;
    if !is_market {
        names = c.feed.first().map(|feed| feed.venue).into_iter().collect();
    }
    let (listings, utp) = match (e.instrument.is_empty(), is_market) {
        (false, true) => {
            return Err(Failure::config(
                "exchange.instrument is for one venue; several venues share made-up instruments (exchange.symbols)",
            ));
        }
        (false, false) => (
            entry::listed(&e.instrument, c.price_max()).map_err(Failure::config)?,
            0,
        ),
        (true, true) => market_listings(e.symbols.0 as u16),
        (true, false) => (listings(e.symbols.0 as u16), 0),
    };
    let symbols = listings.len() as u32;
    // Directory, opening orders and bursts come on top of rate times duration.
    let flow = (f64::from(e.rate.0) * e.duration_s.0 * 1.5) as usize;
    let once = symbols as usize * 200 + (1 << 20);
    let most = e.kept_messages.max(KEPT_MIN) as usize;
    let mut published_channels: Vec<Vec<PublishedChannel>> = names.iter().map(|_| Vec::new()).collect();
    let mut published = Vec::new();
    for (index, feed) in c.feed.iter().enumerate() {
        let venue = names.iter().position(|name| *name == feed.venue).unwrap_or(0);
        let own = match feed.venue {
            TradingVenue::Cqs if is_market => &listings[utp..],
            TradingVenue::Uqdf if is_market => &listings[..utp],
            _ => &listings[..],
        };
        let channels = feed.channels.len();
        for (number, channel) in feed.channels.iter().enumerate() {
            let own = share_of(own, number, channels);
            let messages = match is_market {
                true => flow / channels + once / 4,
                false => flow + once,
            };
            published.push(Published {
                venue,
                published_channel: published_channels[venue].len(),
                feed: index,
                ports: channel.ports(&feed.interface),
            });
            published_channels[venue].push(PublishedChannel {
                instruments: own
                    .first()
                    .map_or(0..0, |first| first.id.0..first.id.0 + own.len() as u32),
                publisher: wiring::publisher(
                    feed,
                    number,
                    own,
                    kept.unwrap_or(messages.min(most)),
                    is_market,
                )?,
            });
        }
    }
    let max_live = 400_000.min(c.receiver.max_orders / 2).max(symbols * 100);
    // Its order log has no word for it: what is less there was executed.
    let reduces = c.feed.iter().all(|feed| feed.protocol() != Protocol::Moex);
    let venues = names.into_iter().zip(published_channels).zip(0_u64..);
    let venues = venues.map(|((name, published_channels), nth)| {
        let config = ExchangeConfig {
            listings: listings.clone(),
            max_orders: max_live + max_live / 2,
            flow: FlowConfig {
                seed: e.seed.wrapping_add(nth << 32),
                max_live,
                reference: is_market.then_some(Reference { seed: e.seed }),
                reduces,
                ..FlowConfig::default()
            },
            pace: PaceConfig {
                rate: match is_market {
                    true => (u64::from(e.rate.0) * u64::from(activity_percent(name)) / 100).max(1) as u32,
                    false => e.rate.0,
                },
                cluster_percent: (e.clusters.0 * 100.0).round() as u32,
                ..PaceConfig::default()
            },
            desk: entry::desk(&c.order_entry, CONNECTIONS),
            auctions: entry::auctions(c.exchange.auctions.as_ref()),
            breaks: entry::breaks(c.exchange.breaks.as_ref()),
            protections: entry::protections(&c.order_entry),
            duration_ns: (e.duration_s.0 * 1e9) as u64,
            linger_ns: Nanos::SECOND,
            linger_max_ns: u64::from(c.exchange.linger_s) * Nanos::SECOND,
            orders_min: c.exchange.orders_min as usize,
            overtime_max_ns: u64::from(c.exchange.overtime_s) * Nanos::SECOND,
            ..ExchangeConfig::default()
        };
        (name, Exchange::new(config, published_channels))
    });
    Ok((Market::new(venues.collect()), published))
}

/// Gives every channel a file for the day's messages beside the journal.
fn keep_histories(
    section: &entry::JournalSection,
    market: &mut Market,
    published: &[Published],
) -> Result<(), Failure> {
    if section.history_bytes == 0 {
        return Ok(());
    }
    for (number, channel) in published.iter().enumerate() {
        let mut path = section.file.clone().into_os_string();
        path.push(format!(".history-{number}"));
        let history = HistoryFile::create(Path::new(&path), section.history_bytes)?;
        if let Some(publisher) = market
            .exchange_mut(channel.venue)
            .publisher_mut(channel.published_channel)
        {
            publisher.store_mut().keep_history(Box::new(history));
        }
    }
    Ok(())
}

/// Whether a feed is made of other venues' quotes.
fn is_consolidated(venue: TradingVenue) -> bool {
    matches!(venue, TradingVenue::Cqs | TradingVenue::Uqdf)
}

/// The instruments of one of a feed's channels: equal parts, in order.
fn share_of(listings: &[Listing], channel: usize, channels: usize) -> &[Listing] {
    let bound = |channel: usize| listings.len() * channel / channels;
    &listings[bound(channel)..bound(channel + 1)]
}

fn impair_of(i: Impairment) -> ImpairConfig {
    let ppm = |share: f64| (share * 1e6) as u32;
    ImpairConfig {
        seed: 0,
        loss_ppm: ppm(i.loss.0),
        duplicate_ppm: ppm(i.duplicate.0),
        reorder_ppm: ppm(i.reorder.0),
        reorder_depth: 3,
    }
}

/// What happens to packets and requests of every channel, as the configuration says. Each line draws its own:
/// the seed is added later.
pub fn troubles_of(c: &MarketConfig) -> LineTroubles {
    LineTroubles {
        lines: [impair_of(c.exchange.line_a), impair_of(c.exchange.line_b)],
        requests: impair_of(Impairment {
            loss: Probability(1.0 - c.exchange.answer_requests.0),
            ..Impairment::default()
        }),
    }
}

/// A connected client.
struct Client {
    stream: TcpStream,
    watch: Watch,
    mask: Option<Mask>,
    came: Nanos,
    /// It has said something.
    is_heard: bool,
}

/// Where connections of order entry come in.
struct Entrance {
    listener: TcpListener,
    health: SocketHealth,
}

impl Entrance {
    fn open(address: SocketAddr, waiter: &mut Waiter) -> Result<Entrance, Failure> {
        let listener = TcpListener::bind(address).map_err(|e| Failure::system(e.to_string()))?;
        waiter.watch(&listener);
        let health = SocketHealth::new(
            BackOff::SEND,
            format!("accepting orders' connections at {address}"),
        );
        Ok(Entrance { listener, health })
    }

    fn accept(&mut self) -> Option<TcpStream> {
        tickwire_console::health::accept(&mut self.listener, &mut self.health)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

struct Venue<'a> {
    config: &'a MarketConfig,
    clock: Clock,
    market: Market,
    /// With the venue that each is of.
    published_channels: Vec<(usize, ChannelSockets)>,
    orders: Entrance,
    ouch: Option<Entrance>,
    clients: [Option<Client>; CLIENTS],
    /// Whether passwords are taken out of what clients send before anything else is done with it; where it is
    /// then.
    is_masked: bool,
    masked: Vec<u8>,
    journal: Option<Journal>,
    snapshots: Option<SnapshotWriter>,
    control: Option<ControlSocket>,
    /// When time was last told, the state hash last noted, and a snapshot last taken.
    ticked: Nanos,
    marked: Nanos,
    snapped: Nanos,
    /// What is to be transmitted.
    out: Vec<u8>,
    waiter: Waiter,
    next_clock: Nanos,
    /// How often the system's clock was set.
    clock_steps: u64,
    departures: Departures,
    opened: Option<Nanos>,
    /// The books as the first channel shows them when trading ends, in order of symbol: on some venues the
    /// close empties them.
    at_close: Option<Vec<(Symbol, [Vec<Level>; 2])>>,
    /// When everything had been sent.
    over_since: Option<Nanos>,
}

/// Runs the exchange: publishes its feeds, takes orders, answers requests, until the end of the session, a
/// signal or a word on its control socket. `results`: the folder that the run's results are written to;
/// `is_child`: the demo started it, and what it says goes into those files instead of onto the terminal.
///
/// # Errors
/// A configuration that contradicts itself, an address that is taken, a journal that cannot be read or
/// written, a signal.
pub fn run(
    config: &MarketConfig,
    results: Option<&Path>,
    is_child: bool,
    stop: &StopFlag,
) -> Result<(), Failure> {
    let clock = Clock::calibrate();
    tickwire_control::process::pin(config.exchange.core)?;
    let mut venue = Venue::start(config, clock)?;
    let order_entry = venue.orders.local_addr().map(|a| a.port()).unwrap_or_default();
    let ouch = venue.ouch.as_ref().and_then(|ouch| ouch.local_addr().ok());
    let servers = venue
        .published_channels
        .iter()
        .flat_map(|(_, published_channel)| published_channel.listening());
    let servers: Vec<(String, u16)> = servers.map(|(port, at)| (port.name().to_string(), at)).collect();
    if is_child {
        Notice::Listening { order_entry, servers }.send();
    } else {
        for warning in tickwire_venues::order_entry::unguarded(&config.order_entry) {
            warn(format_args!("{warning}"));
        }
        let servers: String = servers
            .iter()
            .map(|(name, at)| format!(", {name} on port {at}"))
            .collect();
        eprintln!(
            "listening: order entry on port {order_entry}{}{servers}{}{}",
            ouch.map_or(String::new(), |at| format!(", OUCH on port {}", at.port())),
            config.exchange.control.as_ref().map_or(String::new(), |folder| {
                format!("; control socket in {}", folder.display())
            }),
            if config.exchange.start_on_logon {
                "; the session starts with the first logon"
            } else {
                ""
            }
        );
    }
    let served = venue.serve(is_child, stop);
    // However it ends: what came in is kept, and what it came to.
    let (now, mark) = (venue.clock.now(), Input::Mark(venue.market.state_hash()));
    if venue.journal.is_some() {
        venue.input(now, &mark);
        venue.keep()?;
    }
    let outcome = venue.results();
    if let Some(dir) = results {
        venue.write(dir, &outcome)?;
    }
    served?;
    if !is_child {
        print!("{}", tickwire_control::summary::exchange_summary(&outcome));
    }
    Ok(())
}

impl<'a> Venue<'a> {
    fn start(config: &'a MarketConfig, mut clock: Clock) -> Result<Venue<'a>, Failure> {
        let mut waiter = Waiter::new(WaitStrategy::for_threads(2));
        let journal_file = config.exchange.journal.as_ref().map(|section| &section.file);
        // With a journal the market never sees a password: what came of it is told to it instead, and kept.
        let is_masked = journal_file.is_some_and(|file| !journal::has_passwords(file));
        let make = || {
            let (mut market, published) = match is_masked {
                true => market_of(&config.without_passwords(), None)?,
                false => market_of(config, None)?,
            };
            if let Some(section) = &config.exchange.journal {
                keep_histories(section, &mut market, &published)?;
            }
            Ok((market, published))
        };
        let (mut market, published) = make()?;
        let now = clock.now();
        let (mut journal, mut snapshots) = (None, None);
        if let Some(section) = &config.exchange.journal {
            if !is_masked {
                warn(format_args!(
                    "journal {} is of an earlier form, which has what clients sent with their passwords; it is gone on with: move it away after \
                     the day, and the next one has none",
                    section.file.display()
                ));
            }
            let kept = journal::kept_configuration(config);
            let text = kept.to_toml();
            let again = || Ok(make()?.0);
            let (mut opened, found) =
                Journal::open(&section.file, section.durability, &text, &mut market, &again)?;
            if section.snapshot_s > 0 {
                snapshots = Some(SnapshotWriter::new(&section.file, &text, found.snapshot));
            }
            if found.before > 0 {
                eprintln!(
                    "journal {}: {} inputs are in the snapshot, from which it goes on",
                    section.file.display(),
                    found.before
                );
            }
            if found.inputs + found.before > 0 {
                eprintln!(
                    "journal {}: {} inputs replayed, {} orders, {} bytes torn and cut, {:.1} s since the last",
                    section.file.display(),
                    found.inputs,
                    market.exchange(0).ledger().len(),
                    found.torn,
                    now.since(found.last) as f64 / 1e9
                );
                // The system's clock may have been set back meanwhile: the market's time never is.
                clock.not_before(found.last);
                let (now, offset_ns) = (clock.now(), clock.wall_offset_ns());
                for input in [
                    Input::Mark(market.state_hash()),
                    Input::Resume,
                    Input::ClockSet(offset_ns),
                ] {
                    opened.put(now, &input);
                    input.apply(now, &mut market, &mut []);
                }
            }
            journal = Some(opened);
        }
        let troubles = troubles_of(config);
        let published_channels = published.iter().map(|p| {
            let seed = config.exchange.seed.wrapping_add((p.venue as u64) << 32);
            let sockets = ChannelSockets::open(
                p.published_channel,
                &p.ports,
                troubles,
                seed,
                config.exchange.answer_bytes_per_s,
                &mut waiter,
            )?;
            Ok((p.venue, sockets))
        });
        let published_channels = published_channels.collect::<Result<Vec<_>, Failure>>()?;
        let orders = Entrance::open(config.order_entry.address.into(), &mut waiter)?;
        let ouch = &config.order_entry.ouch;
        let ouch = ouch
            .as_ref()
            .map(|section| Entrance::open(section.address.into(), &mut waiter))
            .transpose()?;
        let control = &config.exchange.control;
        let control = control
            .as_ref()
            .map(|folder| ControlSocket::open(folder, &config.access, &mut waiter))
            .transpose()?;
        // A close that waits for its first order goes on publishing: an order's cause may be of that time.
        let seconds = config.exchange.duration_s.0 + f64::from(config.exchange.overtime_s);
        let packets = f64::from(config.exchange.rate.0) * seconds * 2.0;
        let is_begun = market.phase() != DayPhase::Waiting;
        Ok(Venue {
            market,
            config,
            clock,
            published_channels,
            orders,
            ouch,
            clients: [const { None }; CLIENTS],
            is_masked,
            masked: Vec::new(),
            journal,
            snapshots,
            control,
            ticked: Nanos::ZERO,
            marked: now,
            snapped: now,
            out: vec![0; TRANSMIT_MAX],
            waiter,
            next_clock: Nanos::ZERO,
            clock_steps: 0,
            departures: Departures::with_capacity(packets as usize),
            opened: (is_begun).then_some(now),
            at_close: None,
            over_since: None,
        })
    }

    fn serve(&mut self, is_child: bool, stop: &StopFlag) -> Result<(), Failure> {
        let mut buffer = vec![0_u8; 1 << 16];
        let mut next_look = Nanos::ZERO;
        if !self.config.exchange.start_on_logon && self.opened.is_none() {
            self.open(self.clock.now());
        }
        let mut turned = self.clock.now();
        loop {
            let mut now = self.clock.now();
            if now.since(turned) > STALL_NS {
                // This thread had no core: clients may have spoken meanwhile, and are heard before they are
                // called silent.
                self.serve_orders(&mut buffer)?;
                now = self.clock.now();
            }
            turned = now;
            let more = self.tick(now)?;
            if self.at_close.is_none() && self.market.phase() == DayPhase::Closing {
                self.at_close = Some(self.shown_levels());
            }
            let mut sent = false;
            self.keep()?;
            for (venue, published_channel) in &mut self.published_channels {
                sent |=
                    published_channel.publish(now, self.market.exchange_mut(*venue), &mut self.departures);
            }
            self.serve_orders(&mut buffer)?;
            for (venue, published_channel) in &mut self.published_channels {
                let exchange = self.market.exchange_mut(*venue);
                published_channel.serve(&self.clock, exchange, &mut self.waiter, &mut buffer);
            }
            self.market.histories_mut().for_each(|history| history.write());
            if now >= next_look {
                next_look = now.after(100 * Nanos::MILLI);
                if let Some(reason) = stop.reason() {
                    return Err(Failure::interrupted(format!(
                        "{reason}; the session was not finished"
                    )));
                }
                if now >= self.next_clock {
                    self.next_clock = now.after(Nanos::SECOND);
                    if follow_clock(&mut self.clock, &mut self.clock_steps) {
                        self.input(now, &Input::ClockSet(self.clock.wall_offset_ns()));
                    }
                }
                self.accept(now);
                self.hear_operator()?;
                self.tell_of_clients(is_child);
                self.progress(is_child, now);
                if self.is_done(now) {
                    return Ok(());
                }
            }
            if !more && !sent {
                self.snap(now)?;
                let due = self
                    .market
                    .poll_timeout()
                    .map_or(Nanos::MILLI, |t| t.since(now))
                    .min(Nanos::MILLI);
                self.waiter.wait(due);
            }
        }
    }

    /// Gives the market an input, which is put into the journal.
    fn input(&mut self, now: Nanos, input: &Input<'_>) -> Applied {
        if let Some(journal) = &mut self.journal {
            journal.put(now, input);
        }
        input.apply(now, &mut self.market, &mut self.out)
    }

    /// Brings the journal to its file: before anything is sent that follows from what is in it.
    fn keep(&mut self) -> Result<(), Failure> {
        match &mut self.journal {
            Some(journal) => journal.flush(),
            None => Ok(()),
        }
    }

    /// Tells the market the time; whether more is due already. With a journal only when something is due, and
    /// each [`TICK_NS`].
    fn tick(&mut self, now: Nanos) -> Result<bool, Failure> {
        if self.journal.is_none() {
            return Ok(self.market.on_time(now));
        }
        let is_due = self.market.poll_timeout().is_some_and(|due| due <= now);
        if !is_due && now.since(self.ticked) < TICK_NS {
            return Ok(false);
        }
        self.ticked = now;
        let more = self.input(now, &Input::Time) == Applied::More(true);
        if now.since(self.marked) >= MARK_NS {
            self.marked = now;
            self.input(now, &Input::Mark(self.market.state_hash()));
        }
        self.keep()?;
        Ok(more)
    }

    /// Takes a snapshot when it is time for one. Nothing waits to be sent by a channel.
    fn snap(&mut self, now: Nanos) -> Result<(), Failure> {
        let every = self
            .config
            .exchange
            .journal
            .as_ref()
            .map_or(0, |section| section.snapshot_s);
        let (Some(snapshots), Some(journal)) = (&mut self.snapshots, &mut self.journal) else {
            return Ok(());
        };
        if now.since(self.snapped) < u64::from(every) * Nanos::SECOND || !snapshots.is_ready() {
            return Ok(());
        }
        self.snapped = now;
        journal.flush()?;
        let place = journal
            .place(self.ticked.max(now))
            .map_err(|e| Failure::system(format!("the journal cannot be read for a snapshot: {e}")))?;
        snapshots.take(place, &self.market);
        // Whoever goes on from it sees first that it is the same state.
        self.marked = now;
        self.input(now, &Input::Mark(self.market.state_hash()));
        self.keep()
    }

    fn open(&mut self, now: Nanos) {
        self.input(now, &Input::Open);
        self.opened = Some(now);
    }

    fn accept(&mut self, now: Nanos) {
        while let Some(stream) = self.orders.accept() {
            self.admit(now, stream, 0..CONNECTIONS);
        }
        while let Some(ouch) = &mut self.ouch
            && let Some(stream) = ouch.accept()
        {
            self.admit(now, stream, CONNECTIONS..CLIENTS);
        }
        for entry in [Some(&mut self.orders), self.ouch.as_mut()].into_iter().flatten() {
            entry.health.settle();
        }
        self.published_channels
            .iter_mut()
            .for_each(|(_, published_channel)| published_channel.settle());
    }

    /// What sockets count.
    fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        for entry in [Some(&self.orders), self.ouch.as_ref()].into_iter().flatten() {
            entry.health.count(&mut counters);
        }
        self.published_channels
            .iter()
            .for_each(|(_, published_channel)| published_channel.count(&mut counters));

        count_waits(&mut counters, self.waiter.errors());
        counters.add(Counter::ClockSteps, self.clock_steps);
        counters
    }

    /// Tells the terminal who came and went, why, and what was cancelled with it.
    fn tell_of_clients(&mut self, is_child: bool) {
        let exchange = self.market.exchange_mut(0);
        while let Some(notice) = exchange.poll_client_notice() {
            if !is_child {
                let name = exchange.client_name(notice.route);
                let line = operator::client_line(name, &notice.event);
                tickwire_console::warn(format_args!("{line}"));
            }
        }
    }

    /// Does what is asked for through the control socket.
    fn hear_operator(&mut self) -> Result<(), Failure> {
        let Some(control) = &mut self.control else {
            return Ok(());
        };
        let now = self.clock.now();
        let mut operator = Operator {
            now,
            market: &mut self.market,
            journal: self.journal.as_mut(),
            published_channels: &mut self.published_channels,
            connections: self.clients.iter().flatten().count(),
            disconnects: false,
            failed: None,
            by: None,
        };
        control.serve(&mut self.waiter, &mut operator);
        if let Some(failure) = operator.failed {
            return Err(failure);
        }
        if operator.disconnects {
            for id in 0..CLIENTS {
                self.close_client(id, now)?;
            }
        }
        Ok(())
    }

    /// Gives a connection the first free number of its kind, or that of one that says nothing; without one it
    /// is closed.
    fn admit(&mut self, now: Nanos, stream: TcpStream, ids: Range<usize>) {
        let places = ids.map(|id| (id, self.clients[id].as_ref().map(|c| (c.came, c.is_heard))));
        let id = match seat(places, now) {
            Seat::None => return,
            Seat::Free(id) => id,
            Seat::Silent(id) => {
                self.drop_client(id, now);
                id
            }
        };
        if self.input(now, &Input::Connect(id as u16)) == Applied::Admitted(true) {
            let watch = self.waiter.watch(&stream);
            let mask = self.is_masked.then(|| match id < CONNECTIONS {
                true => Mask::fix(),
                false => Mask::ouch(entry::ouch_credentials(&self.config.order_entry)),
            });
            self.clients[id] = Some(Client {
                stream,
                watch,
                mask,
                came: now,
                is_heard: false,
            });
        }
    }

    fn serve_orders(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        for id in 0..CLIENTS {
            let Some(client) = &mut self.clients[id] else {
                continue;
            };
            let received = client.stream.recv(buffer);
            let now = self.clock.nanos_at(tsc());
            let is_over = match received {
                Ok(Received::Bytes(bytes)) => {
                    client.is_heard = true;
                    self.take_orders(id, now, bytes)?
                }
                Ok(Received::Nothing) => self.transmit(id, now)?.is_none(),
                Ok(Received::Closed) | Err(_) => true,
            };
            if is_over || self.market.exchange(0).wants_close(id) {
                self.close_client(id, now)?;
            }
        }
        Ok(())
    }

    /// Hands over what a client sent, without passwords where they could be kept; `true` when the connection
    /// is over.
    fn take_orders(&mut self, id: usize, now: Nanos, bytes: &[u8]) -> Result<bool, Failure> {
        let Some(mask) = self.clients[id].as_mut().and_then(|client| client.mask.as_mut()) else {
            return self.take_bytes(id, now, bytes);
        };
        let mut masked = std::mem::take(&mut self.masked);
        masked.clear();
        mask.feed(bytes, &mut masked);
        let taken = self.take_bytes(id, now, &masked);
        self.masked = masked;
        taken
    }

    fn take_bytes(&mut self, id: usize, now: Nanos, mut bytes: &[u8]) -> Result<bool, Failure> {
        if follow_if_set(&mut self.clock, &mut self.clock_steps) {
            self.input(now, &Input::ClockSet(self.clock.wall_offset_ns()));
        }
        while !bytes.is_empty() {
            let Applied::Taken(taken) = self.input(now, &Input::Bytes(id as u16, bytes)) else {
                return Ok(true);
            };
            bytes = &bytes[taken..];
            match self.transmit(id, now)? {
                // Neither taken nor sent: the client does not read what it is sent.
                Some(false) if taken == 0 => return Ok(true),
                Some(_) => {}
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Sends what is waiting for a client; whether there was anything, `None` when the connection is lost.
    fn transmit(&mut self, id: usize, now: Nanos) -> Result<Option<bool>, Failure> {
        if self.clients[id].is_none() {
            return Ok(Some(false));
        }
        let mut any = false;
        loop {
            let input = Input::Transmit(id as u16, TRANSMIT_MAX as u32);
            let Applied::Sent(length @ 1..) = input.apply(now, &mut self.market, &mut self.out) else {
                break;
            };
            // One that gave nothing has changed nothing.
            if let Some(journal) = &mut self.journal {
                journal.put(now, &input);
            }
            any = true;
            self.keep()?;
            if let Some(client) = &mut self.clients[id]
                && client.stream.send(&self.out[..length]).is_err()
            {
                return Ok(None);
            }
        }
        if let Some(client) = &mut self.clients[id]
            && client.stream.has_unsent()
            && client.stream.flush().is_err()
        {
            return Ok(None);
        }
        if any && self.opened.is_none() {
            let now = self.clock.now();
            self.open(now);
        }
        Ok(Some(any))
    }

    fn close_client(&mut self, id: usize, now: Nanos) -> Result<(), Failure> {
        let is_ended = self.market.exchange(0).wants_close(id);
        self.transmit(id, now)?;
        if !self.drop_client(id, now) {
            return Ok(());
        }
        let early = matches!(
            self.market.exchange(0).phase(),
            DayPhase::Waiting | DayPhase::Opening | DayPhase::Open
        );
        if early && self.config.exchange.stop_on_client_loss {
            return Err(Failure::peer_lost(match is_ended {
                true => "the trader's session ended before the close",
                false => "the trader's connection was lost before the close; was it stopped or killed?",
            }));
        }
        Ok(())
    }

    /// Closes a connection; whether there was one.
    fn drop_client(&mut self, id: usize, now: Nanos) -> bool {
        let Some(mut client) = self.clients[id].take() else {
            return false;
        };
        self.waiter.forget(client.watch);
        client.stream.finish();
        self.input(now, &Input::Disconnect(id as u16));
        true
    }

    fn progress(&self, is_child: bool, now: Nanos) {
        if is_child {
            Notice::Progress {
                seconds: self.opened.map_or(0.0, |t| now.since(t) as f64 / 1e9),
                messages: self.market.total(),
                orders: self.market.exchange(0).ledger().len() as u64,
            }
            .send();
        }
    }

    /// Everything was sent, and nobody asks for anything any more, or has been served for as long as is
    /// configured.
    fn is_done(&mut self, now: Nanos) -> bool {
        if !self.market.is_over() {
            return false;
        }
        let since = *self.over_since.get_or_insert(now);
        let is_busy = || {
            let mut published_channels = self.published_channels.iter();
            published_channels.any(|(_, published_channel)| published_channel.is_busy(now, QUIET_NS))
        };
        has_lingered(now, since, self.config.exchange.linger_s) || !is_busy()
    }

    /// What the receiver of the first channel must have, in order of symbol.
    fn shown_levels(&self) -> Vec<(Symbol, [Vec<Level>; 2])> {
        let exchange = self.market.exchange(0);
        let Some(published_channel) = exchange.published_channels().first() else {
            return Vec::new();
        };
        let mut listings = exchange.listings().to_vec();
        listings.retain(|listing| published_channel.instruments.contains(&listing.id.0));
        listings.sort_unstable_by_key(|listing| listing.symbol);
        let levels = |id, side| published_channel.publisher.levels(exchange.engine(), id, side);
        let sides = |listing: &Listing| Side::BOTH.map(|side| levels(listing.id, side));
        listings
            .iter()
            .map(|listing| (listing.symbol, sides(listing)))
            .collect()
    }

    fn results(&mut self) -> ExchangeResults {
        self.departures.settle();
        let mut packet_to_order = Histogram::new();
        let mut series = Series::with_capacity(self.market.exchange(0).ledger().len());
        let mut unmatched = 0;
        let opened = self.opened.unwrap_or_default();
        for order in self.market.exchange(0).ledger() {
            // Number 0 is no message: a strategy's order at a time of its own.
            let Some(cause) = order.cause.filter(|cause| cause.seq.0 > 0) else {
                continue;
            };
            match self.departures.of(cause.seq.0) {
                Some(ticks) => {
                    let ns = order.received.since(self.clock.nanos_at(ticks));
                    packet_to_order.record(ns);
                    series.push(order.received.since(opened), ns);
                }
                None => unmatched += 1,
            }
        }
        let mut counts = [(0, 0); 2];
        for (_, published_channel) in &self.published_channels {
            for (sum, line) in counts.iter_mut().zip(published_channel.live_counts()) {
                *sum = (sum.0 + line.0, sum.1 + line.1);
            }
        }
        ExchangeResults {
            messages: self.market.total(),
            datagrams: counts.map(|c| c.0),
            dropped: counts.map(|c| c.1),
            retransmissions: self
                .published_channels
                .iter()
                .map(|(_, published_channel)| published_channel.answered())
                .sum(),
            orders: self
                .market
                .exchange(0)
                .ledger()
                .iter()
                .map(outcome_of)
                .collect::<BTreeMap<_, _>>(),
            packet_to_order,
            packet_to_order_series: series,
            unmatched_causes: unmatched,
            quotes: self.market.exchange(0).quotes().map(quote_outcome_of).collect(),
            counters: counters_by_id(&self.counters()),
            orders_traded: orders_traded(self.market.exchange(0).ledger()),
        }
    }

    fn write(&self, dir: &Path, results: &ExchangeResults) -> Result<(), Failure> {
        let mut levels = LevelWriter::create(&dir.join("books-exchange.txt"))?;
        // A book that the close has emptied on its channel is compared as the closing auction left it, like
        // any other.
        let exchange = self.market.exchange(0);
        let mut shown = self.shown_levels();
        for (symbol, sides) in &mut shown {
            let was_shown = self.at_close.iter().flatten();
            let had_levels = was_shown
                .into_iter()
                .any(|(other, before)| other == symbol && before.iter().any(|side| !side.is_empty()));
            let listing = exchange
                .listings()
                .iter()
                .find(|listing| listing.symbol == *symbol);
            if had_levels
                && sides.iter().all(Vec::is_empty)
                && let Some(listing) = listing
            {
                *sides = Side::BOTH.map(|side| exchange.levels(listing.id, side).collect());
            }
        }
        for (symbol, sides) in shown {
            for side in Side::BOTH {
                levels.book(symbol.as_str(), side, sides[side as usize].iter().copied())?;
            }
        }
        levels.finish()?;
        // The other venues of a market, as their channels show them at the end.
        for (venue, exchange) in self.market.venues().skip(1) {
            let mut levels = LevelWriter::create(&dir.join(format!("books-{}.txt", venue.name())))?;
            for published_channel in exchange.published_channels() {
                let own = |listing: &&Listing| published_channel.instruments.contains(&listing.id.0);
                for listing in exchange.listings().iter().filter(own) {
                    for side in Side::BOTH {
                        let shown = published_channel
                            .publisher
                            .levels(exchange.engine(), listing.id, side);
                        levels.book(listing.symbol.as_str(), side, shown.into_iter())?;
                    }
                }
            }
            levels.finish()?;
        }
        write_json(&dir.join("exchange.json"), results)
    }
}

/// Whether clients have been served for long enough after the end.
fn has_lingered(now: Nanos, over_since: Nanos, linger_s: u32) -> bool {
    now.since(over_since) >= u64::from(linger_s) * Nanos::SECOND
}

fn quote_outcome_of(quote: ClientQuote) -> QuoteOutcome {
    QuoteOutcome {
        firm: quote.firm.0,
        symbol: quote.symbol.to_string(),
        open: quote.open.map(|qty| qty.0.into()),
        traded: quote.traded,
        cash: cash_of(quote.cost),
    }
}

/// Received less paid, of what was bought and sold.
fn cash_of([bought, sold]: [i128; 2]) -> f64 {
    (sold - bought) as f64 / Price::ONE_RAW as f64
}

fn orders_traded(ledger: &[ClientOrder]) -> Vec<OrdersTraded> {
    let mut sums: BTreeMap<_, ([u64; 2], [i128; 2])> = BTreeMap::new();
    for order in ledger.iter().filter(|order| !order.filled.is_zero()) {
        let (traded, cost) = sums.entry((order.firm.0, order.symbol.to_string())).or_default();
        traded[order.side as usize] += u64::from(order.filled.0);
        cost[order.side as usize] += order.cost;
    }
    let row = |((firm, symbol), (traded, cost))| OrdersTraded {
        firm,
        symbol,
        traded,
        cash: cash_of(cost),
    };
    sums.into_iter().map(row).collect()
}

fn outcome_of(order: &ClientOrder) -> (String, OrderOutcome) {
    let status = match order.outcome {
        Outcome::Rejected => '8',
        Outcome::Filled => '2',
        Outcome::Cancelled => '4',
        Outcome::Open if order.filled.is_zero() => '0',
        Outcome::Open => '1',
    };
    // The number without its padding: the trader's orders are numbered.
    let id = order
        .cl_ord_id
        .to_number()
        .map_or_else(|| order.cl_ord_id.to_string(), |n| n.to_string());
    (
        id,
        OrderOutcome {
            status,
            filled: order.filled.0.into(),
        },
    )
}
