//! The configuration: one typed TOML file for both sides of a run, validated whole at start.
//!
//! Values are checked while they are read, so that an error names line and column. `tickwire config FILE` prints the
//! file with every default filled in.

#[cfg(test)]
mod keys;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tickwire_book::BooksConfig;
use tickwire_exchange::{MDP3_PRICE_MAX, PRICE_MAX};
use tickwire_fix::Version;
use tickwire_market::{Price, Symbol, TimeInForce};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::files;
use tickwire_runtime::places;
use tickwire_runtime::wait::WaitStrategy;

use crate::channels::{FeedConfig, FeedFile};
use crate::controls::ControlsSection;
use crate::daemon::DaemonSection;
use crate::entry::{
    self, AuctionsSection, BreaksSection, FixSession, InstrumentSection, JournalSection, OuchSection,
    ProtectionSection,
};
use crate::protocol::Protocol;
use crate::quote::{QuoterSection, SilenceMs};
use crate::strategy::BacktestSection;
use crate::watchdog::WatchdogSection;
use tickwire_console::failure::Failure;
use tickwire_console::warn;
use tickwire_control::access::AccessSection;

/// Everything a run needs.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Where the exchange publishes and the trader listens; the trader trades on the first channel of the first feed.
    pub(crate) feed: Vec<FeedConfig>,
    pub(crate) receiver: ReceiverSection,
    pub(crate) order_entry: OrderEntrySection,
    pub(crate) exchange: ExchangeSection,
    pub(crate) trader: TraderSection,
    pub(crate) controls: ControlsSection,
    pub(crate) watchdog: WatchdogSection,
    pub(crate) daemon: DaemonSection,
    /// Which other users of this machine may read what is shown, and ask what.
    #[serde(skip_serializing_if = "AccessSection::is_closed")]
    pub(crate) access: AccessSection,
    /// Parameters of a strategy of one's own: what it has fields for.
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    pub(crate) strategy: toml::Table,
    /// How a strategy of one's own is backtested.
    pub(crate) backtest: BacktestSection,
    /// The options quoter; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quoter: Option<QuoterSection>,
}

/// Sizes and patience of the receiving side, alike for every feed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReceiverSection {
    /// Socket receive buffer per line, bytes.
    pub(crate) receive_buffer: u32,
    /// How long a gap waits for the other line before it is requested, microseconds.
    pub(crate) line_wait_us: u32,
    /// How long a retransmission request waits for its answer, milliseconds.
    pub(crate) request_timeout_ms: u32,
    /// Requests for the same messages before a snapshot is taken instead.
    pub(crate) request_attempts: u32,
    /// Packets kept while a gap is open.
    pub(crate) buffer_packets: u32,
    /// Instruments of one channel, which sizes the directory and the books.
    pub(crate) max_instruments: u32,
    /// Orders resting at once over all books; a whole Nasdaq day has had 1.65 million.
    pub(crate) max_orders: u32,
    /// Price levels over all books and both sides.
    pub(crate) max_levels: u32,
}

/// Order entry: the demo's FIX 4.4 session, sessions by name, and OUCH.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OrderEntrySection {
    pub(crate) address: SocketAddrV4,
    /// CompID of the exchange.
    pub(crate) exchange_comp_id: CompId,
    /// CompID of the trader.
    pub(crate) trader_comp_id: CompId,
    /// HeartBtInt that our clients ask for, trader and quoter, seconds; a session may say its own. The venue gives up who was not heard for 2.4
    /// times as long.
    pub(crate) heartbeat_s: u32,
    /// Whether clients that are not in `session` are let in as well: with FIX 4.4, numbers from 1 with every logon, and their
    /// orders go with the connection.
    pub(crate) anyone: bool,
    /// FIX sessions by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) session: Vec<FixSession>,
    /// Market maker protection, by firm and group of instruments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) protection: Vec<ProtectionSection>,
    /// OUCH 5.0 over SoupBinTCP; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ouch: Option<OuchSection>,
}

/// The simulated exchange.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ExchangeSection {
    /// Core to pin to; -1 leaves it to the scheduler.
    pub(crate) core: i32,
    /// Seed of the order flow and of the impairments: one seed, one session.
    pub(crate) seed: u64,
    /// Number of listed instruments, made up; `instrument` takes their place.
    pub(crate) symbols: Symbols,
    /// Average market data messages per second once the market is open.
    pub(crate) rate: Rate,
    /// Share of them that follow another one about the same instrument at once; with 0.5 arrivals cluster as in recorded names.
    pub(crate) clusters: Part,
    /// Length of the trading session, seconds.
    pub(crate) duration_s: DurationS,
    /// Wait for a client's logon before the session starts.
    pub(crate) start_on_logon: bool,
    /// End the run when a client's connection is lost before the session's end.
    pub(crate) stop_on_client_loss: bool,
    /// For how long after the close the end of the session is said again, and recovery is served, at most, seconds: as long as
    /// clients are connected or ask. Who has not logged out by then is logged out.
    pub(crate) linger_s: u32,
    /// The close waits until clients have entered so many orders, for `overtime_s` at most.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) orders_min: u32,
    /// For how long the close may wait for orders, seconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) overtime_s: u32,
    /// Folder of the control socket, from where this file lies; none without it. For `tickwire exchange --tell`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control: Option<PathBuf>,
    /// When auctions take place; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auctions: Option<AuctionsSection>,
    /// Trades that it breaks; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) breaks: Option<BreaksSection>,
    pub(crate) line_a: Impairment,
    pub(crate) line_b: Impairment,
    /// Answer this share of retransmission requests (1 = all); the rest is dropped, as a real network may.
    pub(crate) answer_requests: Probability,
    /// Bytes of answers by datagram that one address gets in a second, and at once; 0: no limit. A forged address is not flooded by us.
    pub(crate) answer_bytes_per_s: u64,
    /// Instruments by name, with their rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) instrument: Vec<InstrumentSection>,
    /// Where everything that comes in is kept; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) journal: Option<JournalSection>,
}

/// What the network does to one line.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Impairment {
    /// Share of packets lost.
    pub(crate) loss: Probability,
    /// Share of packets sent twice.
    pub(crate) duplicate: Probability,
    /// Share of packets held back behind up to three later ones.
    pub(crate) reorder: Probability,
}

/// The trader.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TraderSection {
    /// Core to pin to; -1 leaves it to the scheduler.
    pub(crate) core: i32,
    /// How to wait for packets: `spin` (a core of its own), `poll` (sleeps), or `auto` (spin with two cores or more).
    pub(crate) wait: Wait,
    /// Symbol to trade.
    pub(crate) symbol: SymbolName,
    /// Quantity of each order: one lot.
    pub(crate) lot: Lot,
    pub(crate) time_in_force: Tif,
    /// No packet of market data for so many milliseconds, and what is open is cancelled; the rule goes on when packets come again. `"auto"`: three
    /// times the longest pause of late, 250 to 2,500 ms by what the venue's heartbeats allow; 0: never.
    pub(crate) silence_ms: SilenceMs,
    /// Attempts to take a lost order entry session up again before the run ends with exit code 4; 0: none.
    pub(crate) reconnects_max: u32,
    /// The wait before the first of them, milliseconds, 1 to 60000; each one doubles it, up to 5 s.
    pub(crate) reconnect_ms: u32,
    /// Folder of the control socket, from where this file lies; none without it. For `tickwire trade --tell`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control: Option<PathBuf>,
    pub(crate) risk: RiskSection,
}

/// Pre-trade limits.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RiskSection {
    /// Largest order, shares.
    pub(crate) max_order_qty: u32,
    /// Highest deviation of an order's price from the last mid price, basis points.
    pub(crate) price_band_bp: u32,
    /// Orders per second.
    pub(crate) max_orders_per_s: u32,
    /// Orders open or not acknowledged yet.
    pub(crate) max_open_orders: u32,
    /// Largest position either way, shares.
    pub(crate) max_position: u64,
    /// Orders in one run; sizes the order table.
    pub(crate) max_orders: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// How a thread waits for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wait {
    Auto,
    Spin,
    Poll,
}

impl Wait {
    /// The same for a thread that shares the machine: `threads` is how many, itself included, should have a core each.
    pub(crate) fn strategy(self, threads: usize) -> WaitStrategy {
        match self {
            Wait::Spin => WaitStrategy::Spin,
            Wait::Poll => WaitStrategy::Poll,
            Wait::Auto => WaitStrategy::for_threads(threads),
        }
    }

    /// Likewise, with the reason.
    pub(crate) fn choose(self, threads: usize) -> Waiting {
        let cores = Cores::count().parallelism();
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let strategy = self.strategy(threads);
        Waiting {
            strategy,
            why: match (self, strategy) {
                (Wait::Spin | Wait::Poll, _) => "as configured".to_owned(),
                (Wait::Auto, WaitStrategy::Spin) => format!(
                    "auto: there are {} for {}",
                    count(cores, "core"),
                    count(threads.max(2), "busy thread")
                ),
                (Wait::Auto, WaitStrategy::Poll) => format!(
                    "auto: there is no core for each of {}, only {}",
                    count(threads.max(2), "busy thread"),
                    count(cores, "core")
                ),
            },
        }
    }
}

/// How a thread waits, and why so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) strategy: WaitStrategy,
    /// A clause for reports.
    why: String,
}

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match self.strategy {
            WaitStrategy::Spin => "spins",
            WaitStrategy::Poll => "sleeps in poll",
        };
        write!(f, "{how} ({})", self.why)
    }
}

/// FIX TimeInForce of the orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tif {
    Day,
    Ioc,
}

impl From<Tif> for TimeInForce {
    fn from(t: Tif) -> TimeInForce {
        match t {
            Tif::Day => TimeInForce::Day,
            Tif::Ioc => TimeInForce::ImmediateOrCancel,
        }
    }
}

/// Declares a value type that is checked while it is read.
macro_rules! checked {
    ($($(#[$doc:meta])* $name:ident($inner:ty) from $raw:ty, $check:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
        #[serde(try_from = "String", into = "String")]
        pub(crate) struct $name(pub(crate) $inner);
        impl TryFrom<String> for $name {
            type Error = String;
            fn try_from(raw: String) -> Result<Self, String> {
                let check: fn(&str) -> Result<$inner, String> = $check;
                check(&raw).map($name)
            }
        }
    )*};
}

checked! {
    /// A FIX CompID.
    CompId(Symbol) from String, |s| match Symbol::new(s.as_bytes()) {
        Some(id) if !id.is_empty() && !s.contains(['=', ' ']) => Ok(id),
        _ => Err(format!("CompID {s:?} must be 1 to 23 printable ASCII characters without '=' or space")),
    };
    /// An instrument's symbol.
    SymbolName(Symbol) from String, |s| match Symbol::new(s.as_bytes()) {
        Some(id) if !id.is_empty() => Ok(id),
        _ => Err(format!("symbol {s:?} must be 1 to 23 printable ASCII characters")),
    };
}

impl From<CompId> for String {
    fn from(v: CompId) -> String {
        v.0.to_string()
    }
}
impl From<SymbolName> for String {
    fn from(v: SymbolName) -> String {
        v.0.to_string()
    }
}

/// Declares a number with a range that is checked while it is read.
macro_rules! ranged {
    ($($(#[$doc:meta])* $name:ident($inner:ty) $range:expr, $unit:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Default, Deserialize, Serialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub(crate) struct $name(pub(crate) $inner);
        impl TryFrom<f64> for $name {
            type Error = String;
            fn try_from(raw: f64) -> Result<Self, String> {
                let range = $range;
                if raw >= *range.start() as f64 && raw <= *range.end() as f64 {
                    Ok($name(raw as $inner))
                } else {
                    Err(format!("{raw} is outside {}..={} {}", range.start(), range.end(), $unit))
                }
            }
        }
        impl From<$name> for f64 {
            fn from(v: $name) -> f64 {
                v.0 as f64
            }
        }
    )*};
}

ranged! {
    /// A share of events.
    Probability(f64) 0.0..=1.0, "(a share, not a percentage)";
    /// A share that leaves something.
    Part(f64) 0.0..=0.9, "(a share, not a percentage)";
    /// Market data messages per second.
    Rate(u32) 1u32..=5_000_000, "messages per second";
    /// Length of a session.
    DurationS(f64) 0.1..=86_400.0, "seconds";
    /// HeartBtInt of a session.
    HeartbeatS(u32) 1u32..=3_600, "seconds";
    /// Number of instruments.
    Symbols(u32) 1u32..=60_000, "instruments";
    /// Quantity of an order.
    Lot(u32) 1u32..=1_000_000, "shares";
}

impl Default for Config {
    fn default() -> Self {
        Config {
            feed: vec![FeedConfig::on_loopback(Protocol::Itch50)],
            receiver: ReceiverSection::default(),
            order_entry: OrderEntrySection::default(),
            exchange: ExchangeSection::default(),
            trader: TraderSection::default(),
            controls: ControlsSection::default(),
            watchdog: WatchdogSection::default(),
            daemon: DaemonSection::default(),
            access: AccessSection::default(),
            strategy: toml::Table::new(),
            backtest: BacktestSection::default(),
            quoter: None,
        }
    }
}

impl Default for ReceiverSection {
    fn default() -> Self {
        // The books' own sizes are what ships, so that what the library's benchmarks measure is what runs.
        let books = BooksConfig::default();
        ReceiverSection {
            receive_buffer: 8 << 20,
            line_wait_us: 500,
            request_timeout_ms: 20,
            request_attempts: 5,
            buffer_packets: 4096,
            max_instruments: books.instruments,
            max_orders: books.orders,
            max_levels: books.levels,
        }
    }
}

impl Default for OrderEntrySection {
    fn default() -> Self {
        let id = |s: &str| CompId(Symbol::new(s.as_bytes()).expect("a valid default"));
        OrderEntrySection {
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 26404),
            exchange_comp_id: id("EXCHANGE"),
            trader_comp_id: id("TRADER"),
            heartbeat_s: 5,
            anyone: true,
            session: Vec::new(),
            protection: Vec::new(),
            ouch: None,
        }
    }
}

impl OrderEntrySection {
    /// What is said of the session of a client.
    pub(crate) fn session_of(&self, comp_id: CompId) -> Option<&FixSession> {
        self.session.iter().find(|session| session.comp_id == comp_id)
    }

    /// The version of FIX that a client speaks: that of its session, or 4.4.
    pub(crate) fn version_of(&self, comp_id: CompId) -> Version {
        self.session_of(comp_id)
            .map_or(Version::Fix44, |session| session.version.0)
    }

    /// HeartBtInt that a client asks for, seconds.
    pub(crate) fn heartbeat_s_of(&self, comp_id: CompId) -> u32 {
        let own = self.session_of(comp_id).and_then(|session| session.heartbeat_s);
        own.map_or(self.heartbeat_s, |own| own.0)
    }
}

impl Default for ExchangeSection {
    fn default() -> Self {
        ExchangeSection {
            core: -1,
            seed: 1,
            symbols: Symbols(200),
            rate: Rate(20_000),
            clusters: Part(0.0),
            duration_s: DurationS(15.0),
            start_on_logon: false,
            stop_on_client_loss: false,
            linger_s: 10,
            orders_min: 0,
            overtime_s: 0,
            auctions: None,
            breaks: None,
            line_a: Impairment::default(),
            line_b: Impairment::default(),
            answer_requests: Probability(1.0),
            answer_bytes_per_s: 16_000_000,
            instrument: Vec::new(),
            journal: None,
            control: None,
        }
    }
}

impl Default for TraderSection {
    fn default() -> Self {
        TraderSection {
            core: -1,
            wait: Wait::Auto,
            symbol: SymbolName(Symbol::new(b"AAPL").expect("a valid default")),
            lot: Lot(100),
            time_in_force: Tif::Ioc,
            silence_ms: SilenceMs::Auto,
            reconnects_max: 10,
            reconnect_ms: 200,
            control: None,
            risk: RiskSection::default(),
        }
    }
}

impl Default for RiskSection {
    fn default() -> Self {
        RiskSection {
            max_order_qty: 1_000,
            price_band_bp: 500,
            max_orders_per_s: 1_000,
            max_open_orders: 100,
            max_position: 10_000_000,
            max_orders: 1 << 20,
        }
    }
}

impl Config {
    /// Reads and checks a file.
    pub(crate) fn load(path: &Path) -> Result<Config, Failure> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            Failure::config(format!(
                "cannot read {}: {e}; give the path of a TOML file (see examples/)",
                path.display()
            ))
        })?;
        let mut config =
            Config::parse(&text).map_err(|e| Failure::config(format!("{}: {e}", path.display())))?;
        if config.has_passwords()
            && let Some(mode) = files::is_readable_by_others(path)
        {
            warn(format_args!(
                "{} holds a password and others may read it (mode {mode:04o}): chmod go-rwx {}",
                path.display(),
                path.display()
            ));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        config
            .feed
            .iter_mut()
            .for_each(|feed| feed.resolve_templates(folder));
        if let Some(journal) = &mut config.exchange.journal {
            // Like every file a configuration names: from where it lies.
            journal.file = folder.join(&journal.file);
        }
        let quoter = config.quoter.iter_mut();
        let quoters = quoter.flat_map(|q| [&mut q.surface, &mut q.state, &mut q.control]);
        let own = [
            &mut config.exchange.control,
            &mut config.trader.control,
            &mut config.controls.beat,
        ];
        for path in quoters.chain(own).flatten() {
            *path = folder.join(places::expand(path));
        }
        // Kept apart, so that what is printed is what was written.
        config.controls.folder = folder.to_owned();
        Ok(config)
    }

    /// Reads and checks the text of a file. Without a feed in it, there is the one of the demo.
    pub(crate) fn parse(text: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|e| e.to_string().trim_end().to_string())?;
        if text.contains("[[feed]]") {
            FeedFile::parse(text)?;
        }
        config.check()?;
        Ok(config)
    }

    /// The defaults with a feed of another protocol.
    pub(crate) fn of_protocol(protocol: Protocol) -> Config {
        Config {
            feed: vec![FeedConfig::on_loopback(protocol)],
            ..Config::default()
        }
    }

    /// The largest price that every feed carries.
    pub(crate) fn price_max(&self) -> Price {
        let is_wide = |feed: &FeedConfig| feed.protocol() == Protocol::Mdp3;
        match !self.feed.is_empty() && self.feed.iter().all(is_wide) {
            true => MDP3_PRICE_MAX,
            false => PRICE_MAX,
        }
    }

    /// Checks what concerns more than one value.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.exchange.symbols.0 >= self.receiver.max_instruments {
            return Err(format!(
                "exchange.symbols = {} needs receiver.max_instruments above it, which is {}",
                self.exchange.symbols.0, self.receiver.max_instruments
            ));
        }
        if self.trader.lot.0 > self.trader.risk.max_order_qty {
            return Err(format!(
                "trader.lot = {} exceeds trader.risk.max_order_qty = {}: no order would pass",
                self.trader.lot.0, self.trader.risk.max_order_qty
            ));
        }
        if !(1..=60_000).contains(&self.trader.reconnect_ms) {
            return Err("trader.reconnect_ms must be 1 to 60000 milliseconds".into());
        }
        entry::check(
            &self.order_entry,
            &self.exchange.instrument,
            self.exchange.auctions.as_ref(),
            self.price_max(),
        )?;
        self.access.check()?;
        if let Some(quoter) = &self.quoter {
            quoter.check()?;
        }
        for (name, value) in [
            ("receiver.request_timeout_ms", self.receiver.request_timeout_ms),
            ("receiver.request_attempts", self.receiver.request_attempts),
            ("receiver.buffer_packets", self.receiver.buffer_packets),
            ("receiver.max_orders", self.receiver.max_orders),
            ("receiver.max_levels", self.receiver.max_levels),
            ("order_entry.heartbeat_s", self.order_entry.heartbeat_s),
            ("trader.risk.max_orders", self.trader.risk.max_orders),
        ] {
            if value == 0 {
                return Err(format!("{name} must be at least 1"));
            }
        }
        Ok(())
    }

    /// The same without what is secret: wherever a configuration is shown or kept.
    pub(crate) fn without_passwords(&self) -> Config {
        let mut config = self.clone();
        let users = config.order_entry.ouch.iter_mut().flat_map(|ouch| &mut ouch.user);
        users.for_each(|user| user.password = user.password.hidden());
        config
    }

    /// Whether something secret is in it.
    pub(crate) fn has_passwords(&self) -> bool {
        let mut users = self.order_entry.ouch.iter().flat_map(|ouch| &ouch.user);
        users.any(|user| user.password.is_asked_for())
    }

    /// As TOML with every default filled in.
    pub(crate) fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("every configuration value has a TOML form")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text)
    }

    #[test]
    fn a_pinned_thread_chooses_as_any_other_and_says_why() {
        let choose = || [2, 3, 10_000].map(|threads| Wait::Auto.choose(threads));
        let cores = Cores::count();
        let core = i32::try_from(cores.usable()[0]).expect("a small number");
        let pinned = std::thread::spawn(move || {
            tickwire_control::process::pin(core)
                .map_err(|f| f.message)
                .expect("available");
            choose()
        });
        let pinned = pinned.join().expect("no panic");
        assert_eq!(pinned, choose());
        let n = cores.parallelism();
        let said = pinned.each_ref().map(ToString::to_string);
        assert_eq!(pinned[0].strategy == WaitStrategy::Spin, n >= 2, "{said:?}");
        if n >= 2 {
            assert_eq!(
                said[0],
                format!("spins (auto: there are {n} cores for 2 busy threads)")
            );
        }
        assert!(
            said[2].starts_with("sleeps in poll (auto: there is no core for each of 10000 busy threads"),
            "{said:?}"
        );
        assert_eq!(Wait::Spin.choose(9).to_string(), "spins (as configured)");
    }

    #[test]
    fn defaults_print_and_read_back() {
        let text = Config::default().to_toml();
        assert_eq!(parse(&text).unwrap().to_toml(), text);
    }

    #[test]
    fn what_order_entry_and_instruments_say_is_checked_and_named() {
        let line = [
            (
                "[[order_entry.session]]\ncomp_id = \"MM1\"\nfirm = 1\nversion = \"FIX.4.9\"\n",
                "line 4",
                "FIX.5.0SP2",
            ),
            (
                "[[order_entry.session]]\ncomp_id = \"MM1\"\nfirm = 0\n",
                "line 3",
                "outside 1..=65535",
            ),
            (
                "[[order_entry.session]]\ncomp_id = \"MM1\"\n",
                "line 1",
                "missing field `firm`",
            ),
            (
                "[order_entry.ouch]\naddress = \"127.0.0.1:1\"\n[[order_entry.ouch.user]]\nusername = \"toolong\"\n",
                "line 4",
                "1 to 6",
            ),
            (
                "[[exchange.instrument]]\nsymbol = \"A\"\nprice = 5\n",
                "line 3",
                "string",
            ),
            (
                "[[exchange.instrument]]\nsymbol = \"A\"\nprice = \"-5\"\n",
                "line 3",
                "above 0",
            ),
            (
                "[[exchange.instrument]]\nsymbol = \"A\"\nprice = \"5\"\nself_trade = 1\n",
                "line 4",
                "unknown field",
            ),
            (
                "[exchange.journal]\nfile = \"j\"\ndurability = \"paper\"\n",
                "line 3",
                "process",
            ),
        ];
        for (text, line, what) in line {
            let e = parse(text).unwrap_err();
            assert!(e.contains(line) && e.contains(what), "{e}");
        }
        let whole = [
            (
                "[[exchange.instrument]]\nsymbol = \"A\"\nprice = \"5.001\"\n",
                "A: its price 5.001",
            ),
            (
                "[[exchange.instrument]]\nsymbol = \"ES\"\nprice = \"5\"\nkind = \"future\"\n",
                "ES: expiry is missing",
            ),
            (
                "[[exchange.instrument]]\nsymbol = \"EU\"\nprice = \"5\"\nkind = \"currency\"\n",
                "six letters",
            ),
            (
                "[order_entry.ouch]\naddress = \"127.0.0.1:1\"\nuser = []\n",
                "no user",
            ),
        ];
        for (text, what) in whole {
            let e = parse(text).unwrap_err();
            assert!(e.contains(what), "{e}");
        }
    }

    #[test]
    fn errors_name_the_line_and_what_is_allowed() {
        let cases = [
            ("[exchange]\nloss = 1\n", "line 2", "unknown field"),
            ("[exchange.line_a]\nloss = 1.5\n", "line 2", "outside 0..=1"),
            ("[exchange.breaks]\nshare = 2\n", "line 2", "outside 0..=1"),
            (
                "[exchange.breaks]\nafter_ms = 1\n",
                "line 1",
                "missing field `share`",
            ),
            ("[[feed]]\nvenue = \"bats\"\n", "line 2", "nasdaq-texas"),
            (
                "[[feed]]\nvenue = \"psx\"\n[[feed.channel]]\nname = \"1\"\nlive = { a = \"10.0.0.1:1\" }\n",
                "line 5",
                "not a multicast group",
            ),
            (
                "[[feed]]\nvenue = \"psx\"\nsession = \"short\"\n",
                "line 3",
                "exactly 10",
            ),
        ];
        for (text, line, what) in cases {
            let e = parse(text).unwrap_err();
            assert!(e.contains(line) && e.contains(what), "{e}");
        }
    }
}
