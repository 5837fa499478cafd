//! `tickwire exchange`: the sockets around the simulated venue.
//!
//! One thread does everything: publishes every channel on its multicast lines (through their impairments),
//! answers retransmission requests, serves snapshots, takes orders. It notes when each datagram first left
//! and when each order came in, so that packet-to-order latency is measured from outside the trader, with the
//! exchange's clock alone.

mod clients;
mod markets;
mod results;

use std::path::Path;

pub use tickwire_exchange::DayPhase;
use tickwire_exchange::{Applied, Input, Market};
use tickwire_market::{Counter, Counters, Level, Nanos, Symbol};
use tickwire_runtime::clock::Clock;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::wait::Waiter;

use crate::channel_sockets::{CONNECTIONS, ChannelSockets, Departures};
use crate::entry::OUCH_CONNECTIONS;
use crate::journal::{self, Journal, TRANSMIT_MAX};
use crate::operator::Operator;
use crate::settings::MarketConfig;
use crate::snapshot::SnapshotWriter;
use clients::{Client, Entrance, has_lingered};
use markets::keep_histories;
pub use markets::{Published, datagrams, exchange_of, market_of, troubles_of};
use tickwire_console::failure::{Code, Failure};
use tickwire_console::health::{count_waits, follow_clock};
use tickwire_console::warn;
use tickwire_control::notice::Notice;
use tickwire_control::results::ExchangeResults;
use tickwire_control::socket::ControlSocket;
use tickwire_venues::wait::Wait;

/// After the last end-of-session packet, how long without a request until nobody needs us any more.
const QUIET_NS: u64 = 300 * Nanos::MILLI;
/// Order entry connections at once: first those of FIX, then those of OUCH.
const CLIENTS: usize = CONNECTIONS + OUCH_CONNECTIONS;
/// For how long after it has published something a thread that spins goes on spinning: who answers is read,
/// and its time noted, at once.
const ACTIVE_NS: u64 = Nanos::MILLI;
/// How long before something is due it is awake again.
const AWAKE_NS: u64 = 200 * Nanos::MICRO;
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

/// What a restart goes on from.
struct Kept {
    journal: Option<Journal>,
    snapshots: Option<SnapshotWriter>,
    /// When time was last told, the state hash last noted, and a snapshot last taken.
    ticked: Nanos,
    marked: Nanos,
    snapped: Nanos,
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
    kept: Kept,
    control: Option<ControlSocket>,
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
    let Listening {
        order_entry,
        ouch,
        servers,
    } = venue.listening();
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
            ouch.map_or(String::new(), |port| format!(", OUCH on port {port}")),
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
    let to = match is_child {
        true => Audience::Parent,
        false => Audience::Operator,
    };
    let served = venue.serve(to, stop, &mut |_| {});
    let outcome = venue.end()?;
    if let Some(dir) = results {
        venue.write(dir, &outcome)?;
    }
    served?;
    if !is_child {
        print!("{}", tickwire_control::summary::exchange_summary(&outcome));
    }
    Ok(())
}

/// Who is told how the session goes while it goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// Somebody at a terminal.
    Operator,
    /// The process that started this one.
    Parent,
    /// Nobody: the program is somebody else's.
    Nobody,
}

/// Where an exchange listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listening {
    /// The port of order entry by FIX.
    pub order_entry: u16,
    /// The port of OUCH, if it is configured.
    pub ouch: Option<u16>,
    /// Name and port of every server of market data: retransmission requests, snapshots.
    pub servers: Vec<(String, u16)>,
}

/// What an exchange tells the program that hosts it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostNotice {
    /// Where it listens, before anything is sent.
    Listening(Listening),
    /// Its day, or that of the first venue of several, has come so far.
    Phase(DayPhase),
}

/// Runs the exchange as [`run`] does, in a thread of somebody else's program: nothing is printed, no thread
/// is pinned. `tell` is told how it goes, from that thread. The end of the session, or `stop`, ends it; what
/// came of it is returned.
///
/// # Errors
/// As [`run`], but for signals.
pub fn host(
    config: &MarketConfig,
    stop: &StopFlag,
    tell: &mut dyn FnMut(HostNotice),
) -> Result<ExchangeResults, Failure> {
    let mut venue = Venue::start(config, Clock::calibrate())?;
    tell(HostNotice::Listening(venue.listening()));
    let served = venue.serve(Audience::Nobody, stop, &mut |phase| {
        tell(HostNotice::Phase(phase))
    });
    let outcome = venue.end()?;
    match served {
        Err(failure) if failure.code != Code::Interrupted => Err(failure),
        _ => Ok(outcome),
    }
}

impl<'a> Venue<'a> {
    fn listening(&self) -> Listening {
        let servers = self
            .published_channels
            .iter()
            .flat_map(|(_, published_channel)| published_channel.listening());
        Listening {
            order_entry: self.orders.local_addr().map(|a| a.port()).unwrap_or_default(),
            ouch: self
                .ouch
                .as_ref()
                .and_then(|ouch| ouch.local_addr().ok().map(|at| at.port())),
            servers: servers.map(|(port, at)| (port.name().to_string(), at)).collect(),
        }
    }

    /// However it ended: what came in is kept, and what it came to.
    fn end(&mut self) -> Result<ExchangeResults, Failure> {
        let (now, mark) = (self.clock.now(), Input::Mark(self.market.state_hash()));
        if self.kept.journal.is_some() {
            self.input(now, &mark);
            self.keep()?;
        }
        Ok(self.results())
    }

    fn start(config: &'a MarketConfig, mut clock: Clock) -> Result<Venue<'a>, Failure> {
        let mut waiter = Waiter::new(config.exchange.wait.strategy(2));
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
            kept: Kept {
                journal,
                snapshots,
                ticked: Nanos::ZERO,
                marked: now,
                snapped: now,
            },
            control,
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

    fn serve(
        &mut self,
        to: Audience,
        stop: &StopFlag,
        come_to: &mut dyn FnMut(DayPhase),
    ) -> Result<(), Failure> {
        let mut phase = DayPhase::Waiting;
        let mut buffer = vec![0_u8; 1 << 16];
        let mut next_look = Nanos::ZERO;
        if !self.config.exchange.start_on_logon && self.opened.is_none() {
            self.open(self.clock.now());
        }
        let mut turned = self.clock.now();
        let mut active = turned;
        loop {
            let (now, more) = self.begin_turn(turned, &mut buffer)?;
            turned = now;
            if self.at_close.is_none() && self.market.phase() == DayPhase::Closing {
                self.at_close = Some(self.shown_levels());
            }
            let mut sent = false;
            self.keep()?;
            for (venue, published_channel) in &mut self.published_channels {
                sent |=
                    published_channel.publish(now, self.market.exchange_mut(*venue), &mut self.departures);
            }
            if self.market.phase() != phase {
                phase = self.market.phase();
                come_to(phase);
            }
            self.serve_orders(&mut buffer)?;
            self.serve_channels(&mut buffer);
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
                self.tell_of_clients(to);
                self.progress(to, now);
                if self.is_done(now) {
                    return Ok(());
                }
            }
            if more || sent {
                active = now;
            } else {
                self.snap(now)?;
                let due = self
                    .market
                    .poll_timeout()
                    .map_or(Nanos::MILLI, |t| t.since(now))
                    .min(Nanos::MILLI);
                let is_idle = now.since(active) > ACTIVE_NS && due > AWAKE_NS;
                if is_idle && self.config.exchange.wait == Wait::Auto {
                    self.waiter.sleep(due - AWAKE_NS);
                } else {
                    self.waiter.wait(due);
                }
            }
        }
    }

    /// Tells the market the time, after a turn that began at `turned`; the time, and whether more is due
    /// already.
    fn begin_turn(&mut self, turned: Nanos, buffer: &mut [u8]) -> Result<(Nanos, bool), Failure> {
        let mut now = self.clock.now();
        if now.since(turned) > STALL_NS {
            // This thread had no core: clients of order entry and of recovery may have spoken meanwhile, and
            // are heard before they are called silent.
            self.serve_orders(buffer)?;
            self.serve_channels(buffer);
            now = self.clock.now();
        }
        let more = self.tick(now)?;
        Ok((now, more))
    }

    /// Answers requests of recovery on every channel.
    fn serve_channels(&mut self, buffer: &mut [u8]) {
        for (venue, published_channel) in &mut self.published_channels {
            let exchange = self.market.exchange_mut(*venue);
            published_channel.serve(&self.clock, exchange, &mut self.waiter, buffer);
        }
    }

    /// Gives the market an input, which is put into the journal.
    fn input(&mut self, now: Nanos, input: &Input<'_>) -> Applied {
        if let Some(journal) = &mut self.kept.journal {
            journal.put(now, input);
        }
        input.apply(now, &mut self.market, &mut self.out)
    }

    /// Brings the journal to its file: before anything is sent that follows from what is in it.
    fn keep(&mut self) -> Result<(), Failure> {
        match &mut self.kept.journal {
            Some(journal) => journal.flush(),
            None => Ok(()),
        }
    }

    /// Tells the market the time; whether more is due already. With a journal only when something is due, and
    /// each [`TICK_NS`].
    fn tick(&mut self, now: Nanos) -> Result<bool, Failure> {
        if self.kept.journal.is_none() {
            return Ok(self.market.on_time(now));
        }
        let is_due = self.market.poll_timeout().is_some_and(|due| due <= now);
        if !is_due && now.since(self.kept.ticked) < TICK_NS {
            return Ok(false);
        }
        self.kept.ticked = now;
        let more = self.input(now, &Input::Time) == Applied::More(true);
        if now.since(self.kept.marked) >= MARK_NS {
            self.kept.marked = now;
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
        let (Some(snapshots), Some(journal)) = (&mut self.kept.snapshots, &mut self.kept.journal) else {
            return Ok(());
        };
        if now.since(self.kept.snapped) < u64::from(every) * Nanos::SECOND || !snapshots.is_ready() {
            return Ok(());
        }
        self.kept.snapped = now;
        journal.flush()?;
        let place = journal
            .place(self.kept.ticked.max(now))
            .map_err(|e| Failure::system(format!("the journal cannot be read for a snapshot: {e}")))?;
        snapshots.take(place, &self.market);
        // Whoever goes on from it sees first that it is the same state.
        self.kept.marked = now;
        self.input(now, &Input::Mark(self.market.state_hash()));
        self.keep()
    }

    fn open(&mut self, now: Nanos) {
        self.input(now, &Input::Open);
        self.opened = Some(now);
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

    /// Does what is asked for through the control socket.
    fn hear_operator(&mut self) -> Result<(), Failure> {
        let Some(control) = &mut self.control else {
            return Ok(());
        };
        let now = self.clock.now();
        let mut operator = Operator {
            now,
            market: &mut self.market,
            journal: self.kept.journal.as_mut(),
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
}

#[cfg(test)]
mod tests;
