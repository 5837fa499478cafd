//! The configuration of a trading thread, and the `[trader]` section.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickwire_console::failure::Failure;
use tickwire_control::access::AccessSection;
use tickwire_market::{Nanos, Qty, Symbol, TimeInForce};
use tickwire_trading::{Accounts, RiskConfig};
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::order_entry::OrderEntrySection;
use tickwire_venues::receiver::ReceiverSection;
use tickwire_venues::values::{Lot, SymbolName};
use tickwire_venues::wait::Wait;

use crate::controls::ControlsSection;
use crate::silence::SilenceMs;
use crate::trader::Routes;
use crate::watchdog::WatchdogSection;

/// Everything that a trading thread runs by.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// What it listens to: strategies to every channel of every feed, the built-in rule to the first channel
    /// of the first one.
    pub feed: Vec<FeedConfig>,
    /// Sizes and patience of the receiving side.
    pub receiver: ReceiverSection,
    /// Where orders go on feeds that no other session serves.
    pub order_entry: OrderEntrySection,
    /// Further order entry sessions.
    pub session: Vec<SessionSection>,
    /// The thread, the rule, its limits.
    pub trader: TraderSection,
    /// Controls before a trade.
    pub controls: ControlsSection,
    /// Who watches it from another process.
    pub watchdog: WatchdogSection,
    /// Who may ask it what.
    pub access: AccessSection,
}

impl NodeConfig {
    /// Limits of a strategy, with the controls.
    pub fn risk_of(&self, risk: &RiskSection) -> RiskConfig {
        risk_of(&self.controls, risk)
    }
}

/// Limits of a strategy, with the controls.
pub fn risk_of(controls: &ControlsSection, risk: &RiskSection) -> RiskConfig {
    RiskConfig {
        max_order_qty: Qty(risk.max_order_qty),
        price_band_bp: risk.price_band_bp,
        max_orders_per_window: risk.max_orders_per_s,
        window_ns: Nanos::SECOND,
        max_open_orders: risk.max_open_orders,
        max_position: risk.max_position,
        controls: controls.of_trader(),
        accounts: Accounts::default(),
    }
}

/// The name of the session of `[order_entry]`.
pub const FIRST_SESSION: &str = "order_entry";

/// A further order entry session: where orders on some feeds go.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSection {
    /// In messages, and for strategies that choose among several; the CompID of the exchange unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The feeds whose instruments are traded over it, by name.
    pub feeds: Vec<String>,
    /// How its bytes leave; as `trader.send` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<SendWay>,
    /// Where it connects, and as whom.
    pub order_entry: OrderEntrySection,
}

impl SessionSection {
    /// What it is called.
    pub fn name(&self) -> String {
        let named = self.name.clone();
        named.unwrap_or_else(|| self.order_entry.exchange_comp_id.0.to_string())
    }
}

impl NodeConfig {
    /// The sessions that channels need, which are named by their feeds, and which channel is traded over
    /// which of them.
    ///
    /// # Errors
    /// Two sessions of one name, or one that serves a feed that there is not.
    pub fn sessions(&self, feeds: &[&str]) -> Result<(Vec<OrderEntrySection>, Routes), Failure> {
        let send = self.trader.send;
        let mut all: Vec<(String, SendWay, &OrderEntrySection, Option<&[String]>)> =
            vec![(FIRST_SESSION.to_string(), send, &self.order_entry, None)];
        for section in &self.session {
            let name = section.name();
            if all.iter().any(|(known, ..)| *known == name) {
                return Err(Failure::config(format!("[[session]]: {name} is there twice")));
            }
            for feed in &section.feeds {
                if !self.feed.iter().any(|known| known.name() == feed) {
                    return Err(Failure::config(format!(
                        "[[session]] {name}: there is no [[feed]] {feed}"
                    )));
                }
            }
            let send = section.send.unwrap_or(send);
            all.push((name, send, &section.order_entry, Some(&section.feeds)));
        }
        let serves = |feed: &str, of: Option<&[String]>| of.is_some_and(|of| of.iter().any(|f| f == feed));
        let is_served = |feed: &str| all.iter().any(|(.., of)| serves(feed, *of));
        let is_needed = |of: Option<&[String]>| match of {
            None => feeds.iter().any(|feed| !is_served(feed)),
            some => feeds.iter().any(|feed| serves(feed, some)),
        };
        let needed: Vec<_> = all.iter().filter(|(.., of)| is_needed(*of)).collect();
        let of_source = feeds.iter().map(|feed| {
            let places = needed.iter().enumerate();
            let serving = places.filter(|(_, (.., of))| match of {
                None => !is_served(feed),
                some => serves(feed, *some),
            });
            serving.map(|(place, _)| place).collect()
        });
        let routes = Routes {
            sessions: needed.iter().map(|(name, ..)| name.clone()).collect(),
            send: needed.iter().map(|(_, send, ..)| *send).collect(),
            of_source: of_source.collect(),
        };
        Ok((
            needed
                .iter()
                .map(|(_, _, section, _)| (*section).clone())
                .collect(),
            routes,
        ))
    }
}

/// The trader.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TraderSection {
    /// Core to pin to; -1 leaves it to the scheduler.
    pub core: i32,
    /// How to wait for packets: `spin` (a core of its own), `poll` (sleeps), or `auto` (spin with two cores
    /// or more).
    pub wait: Wait,
    /// How orders leave: `kernel`, or `delegated`: by AF_XDP, past the kernel's network stack, which is told
    /// afterwards (docs/kernel.md). Without the rights for it the program ends with exit code 3.
    pub send: SendWay,
    /// Ask the kernel when the network driver had each order, and the card where it stamps what it sends:
    /// `driver` and `card` in `latency_trader.txt`. It costs a system call behind each order. What
    /// leaves by AF_XDP has none.
    pub send_stamps: bool,
    /// Symbol to trade.
    pub symbol: SymbolName,
    /// Quantity of each order: one lot.
    pub lot: Lot,
    /// How long an order stays: `day` or `ioc`.
    pub time_in_force: Tif,
    /// No packet of market data for so many milliseconds, and what is open is cancelled; the rule goes on
    /// when packets come again. `"auto"`: three times the longest pause of late, 250 to 2,500 ms by what the
    /// venue's heartbeats allow; 0: never.
    pub silence_ms: SilenceMs,
    /// Attempts to take a lost order entry session up again before the run ends with exit code 4; 0: none.
    pub reconnects_max: u32,
    /// The wait before the first of them, milliseconds, 1 to 60000; each one doubles it, up to 5 s.
    pub reconnect_ms: u32,
    /// A thread that never sleeps rehearses every so many microseconds, in turns that find no packet, what
    /// the next packet and the next order of its strategies need, from the packet's bytes to the message's,
    /// and has them do the same with what is theirs (`on_idle`); 0: never.
    pub idle_us: u32,
    /// Folder of the control socket, from where this file lies; none without it. For `tickwire trade --tell`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<PathBuf>,
    /// Folder of what outlives the process, from where this file lies: what was traded and the numbers of
    /// each order session, so that the next process holds what this one held and hears of what traded
    /// meanwhile. None without it: the next process begins with no position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    /// Pre-trade limits.
    pub risk: RiskSection,
}

/// Pre-trade limits.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RiskSection {
    /// Largest order, shares.
    pub max_order_qty: u32,
    /// Highest deviation of an order's price from the last mid price, basis points.
    pub price_band_bp: u32,
    /// Orders per second.
    pub max_orders_per_s: u32,
    /// Orders open or not acknowledged yet.
    pub max_open_orders: u32,
    /// Largest position either way, shares.
    pub max_position: u64,
    /// Orders in one run; sizes the order table.
    pub max_orders: u32,
}

impl Default for TraderSection {
    fn default() -> Self {
        TraderSection {
            core: -1,
            wait: Wait::Auto,
            send: SendWay::Kernel,
            send_stamps: false,
            symbol: SymbolName(Symbol::new(b"AAPL").expect("a valid default")),
            lot: Lot(100),
            time_in_force: Tif::Ioc,
            silence_ms: SilenceMs::Auto,
            reconnects_max: 10,
            reconnect_ms: 200,
            idle_us: 10,
            control: None,
            state: None,
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

/// How the bytes of an order entry session leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SendWay {
    /// The kernel sends them.
    #[default]
    Kernel,
    /// They leave by AF_XDP, and the kernel is told afterwards; what it has to be, and what is done
    /// otherwise: [`tickwire_kernelpath::delegate`].
    Delegated,
}

/// FIX TimeInForce of the orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tif {
    /// The order stays in the book until the end of the day.
    Day,
    /// What does not trade at once is cancelled.
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
