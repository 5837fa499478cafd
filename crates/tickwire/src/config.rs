//! The configuration: one typed TOML file for both sides of a run, validated whole at start.
//!
//! Values are checked while they are read, so that an error names line and column. `tickwire config FILE`
//! prints the file with every default filled in.

#[cfg(test)]
mod keys;

use std::path::Path;

use serde::{Deserialize, Serialize};
use tickwire_console::failure::Failure;
use tickwire_console::warn;
use tickwire_control::access::AccessSection;
use tickwire_feedd::{DaemonConfig, DaemonSection};
use tickwire_node::controls::ControlsSection;
use tickwire_node::settings::{NodeConfig, RiskSection, SessionSection, TraderSection};
use tickwire_node::watchdog::WatchdogSection;
use tickwire_runtime::files;
use tickwire_runtime::places;
use tickwire_simulator::settings::{ExchangeSection, MarketConfig};
use tickwire_venues::channels::{FeedConfig, FeedFile};
use tickwire_venues::order_entry::OrderEntrySection;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::ReceiverSection;

use crate::strategy::BacktestSection;
use tickwire_quoterd::QuoterSection;
use tickwire_quoterd::settings::QuoteConfig;

/// From one feed's port numbers to the next one's, where nobody says them.
const PORTS_PER_FEED: u16 = 100;

/// Everything a run needs.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where the exchange publishes and the trader listens. The built-in rule trades on the first channel of
    /// the first feed, strategies on every channel of every feed.
    pub feed: Vec<FeedConfig>,
    /// Sizes and patience of the receiving side.
    pub receiver: ReceiverSection,
    /// Where orders go, and the sessions there.
    pub order_entry: OrderEntrySection,
    /// Further order entry sessions, each for some of the feeds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub session: Vec<SessionSection>,
    /// The simulated exchange.
    pub exchange: ExchangeSection,
    /// The trading thread and its limits.
    pub trader: TraderSection,
    /// Controls before a trade.
    pub controls: ControlsSection,
    /// Who watches the trading thread from another process.
    pub watchdog: WatchdogSection,
    /// The feed handler.
    pub daemon: DaemonSection,
    /// Which other users of this machine may read what is shown, and ask what.
    #[serde(skip_serializing_if = "AccessSection::is_closed")]
    pub access: AccessSection,
    /// Parameters of a strategy of one's own: what it has fields for.
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    pub strategy: toml::Table,
    /// Several strategies of one's own, each with its parameters; in the place of `strategy`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strategies: Vec<StrategySection>,
    /// How a strategy of one's own is backtested.
    pub backtest: BacktestSection,
    /// The options quoter; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quoter: Option<QuoterSection>,
}

/// One of several strategies in a process.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StrategySection {
    /// In messages.
    pub name: String,
    /// The feeds that it hears, by name; without it all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feeds: Option<Vec<String>>,
    /// The order entry sessions that it may use, by name, the first that serves a feed for that feed; without
    /// it each feed's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Vec<String>>,
    /// Its own pre-trade limits; `trader.risk` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<RiskSection>,
    /// What it has fields for.
    #[serde(default)]
    pub parameters: toml::Table,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            feed: vec![FeedConfig::on_loopback(Protocol::Itch50)],
            receiver: ReceiverSection::default(),
            order_entry: OrderEntrySection::default(),
            session: Vec::new(),
            exchange: ExchangeSection::default(),
            trader: TraderSection::default(),
            controls: ControlsSection::default(),
            watchdog: WatchdogSection::default(),
            daemon: DaemonSection::default(),
            access: AccessSection::default(),
            strategy: toml::Table::new(),
            strategies: Vec::new(),
            backtest: BacktestSection::default(),
            quoter: None,
        }
    }
}

impl Config {
    /// What a quoter runs by.
    pub fn quote(&self) -> QuoteConfig {
        QuoteConfig {
            feed: self.feed.clone(),
            receiver: self.receiver.clone(),
            order_entry: self.order_entry.clone(),
            quoter: self.quoter.clone(),
            controls: self.controls.clone(),
            access: self.access.clone(),
        }
    }

    /// What the feed handler runs by.
    pub fn daemon(&self) -> DaemonConfig {
        DaemonConfig {
            feed: self.feed.clone(),
            receiver: self.receiver.clone(),
            daemon: self.daemon.clone(),
            access: self.access.clone(),
        }
    }

    /// What a trading thread runs by.
    pub fn node(&self) -> NodeConfig {
        NodeConfig {
            feed: self.feed.clone(),
            receiver: self.receiver.clone(),
            order_entry: self.order_entry.clone(),
            session: self.session.clone(),
            trader: self.trader.clone(),
            controls: self.controls.clone(),
            watchdog: self.watchdog.clone(),
            access: self.access.clone(),
        }
    }

    /// What makes the simulated market.
    pub fn market(&self) -> MarketConfig {
        MarketConfig {
            feed: self.feed.clone(),
            receiver: self.receiver.clone(),
            order_entry: self.order_entry.clone(),
            exchange: self.exchange.clone(),
            access: self.access.clone(),
        }
    }

    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Config, Failure> {
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
            &mut config.trader.state,
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
    pub fn parse(text: &str) -> Result<Config, String> {
        let config: Config = tickwire_console::settings::read(text)?;
        if text.contains("[[feed]]") {
            FeedFile::parse(text)?;
        }
        config.check()?;
        Ok(config)
    }

    /// The defaults with a feed of another protocol.
    pub fn of_protocol(protocol: Protocol) -> Config {
        Config {
            feed: vec![FeedConfig::on_loopback(protocol)],
            ..Config::default()
        }
    }

    /// The defaults with these feeds, each on port numbers of its own: of several venues a market with an
    /// engine each.
    pub fn of_protocols(protocols: &[Protocol]) -> Config {
        let feeds = protocols.iter().zip(0..).map(|(protocol, nth)| {
            let mut feed = FeedConfig::on_loopback(*protocol);
            for channel in &mut feed.channels {
                channel.move_ports(nth * PORTS_PER_FEED);
            }
            feed
        });
        Config {
            feed: feeds.collect(),
            ..Config::default()
        }
    }

    /// Checks what concerns more than one value.
    pub fn check(&self) -> Result<(), String> {
        if self.trader.lot.0 > self.trader.risk.max_order_qty {
            return Err(format!(
                "trader.lot = {} exceeds trader.risk.max_order_qty = {}: no order would pass",
                self.trader.lot.0, self.trader.risk.max_order_qty
            ));
        }
        if !(1..=60_000).contains(&self.trader.reconnect_ms) {
            return Err("trader.reconnect_ms must be 1 to 60000 milliseconds".into());
        }
        self.market().check()?;
        if !self.strategies.is_empty() && !self.strategy.is_empty() {
            return Err(
                "[strategy] and [[strategies]] are both there: put its parameters into one of these".into(),
            );
        }
        for (at, strategy) in self.strategies.iter().enumerate() {
            if self.strategies[..at]
                .iter()
                .any(|known| known.name == strategy.name)
            {
                return Err(format!("[[strategies]]: {} is there twice", strategy.name));
            }
        }
        let feeds: Vec<&str> = self.feed.iter().map(FeedConfig::name).collect();
        self.node().sessions(&feeds).map_err(|e| e.message)?;
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
    pub fn without_passwords(&self) -> Config {
        let mut config = self.clone();
        config.order_entry.hide_passwords();
        for session in &mut config.session {
            session.order_entry.hide_passwords();
        }
        config
    }

    /// Whether something secret is in it.
    pub fn has_passwords(&self) -> bool {
        let mut further = self.session.iter().map(|session| &session.order_entry);
        self.order_entry.has_passwords() || further.any(OrderEntrySection::has_passwords)
    }

    /// As TOML with every default filled in.
    pub fn to_toml(&self) -> String {
        tickwire_console::settings::write(self).expect("every configuration value has a TOML form")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_runtime::affinity::Cores;
    use tickwire_runtime::wait::WaitStrategy;
    use tickwire_venues::wait::Wait;

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
