//! The configuration of a simulated market: its feeds, its order entry, and the `[exchange]` section.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickwire_control::access::AccessSection;
use tickwire_exchange::{MDP3_PRICE_MAX, PRICE_MAX};
use tickwire_market::Price;
use tickwire_venues::channels::{FeedConfig, FeedFile};
use tickwire_venues::order_entry::OrderEntrySection;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::ReceiverSection;
use tickwire_venues::values::{DurationS, Part, Probability, Rate, Symbols};
use tickwire_venues::wait::Wait;

use crate::entry::{self, AuctionsSection, BreaksSection, InstrumentSection, JournalSection};

/// Everything that makes a simulated market, and who may speak to it. Other sections of a file are other
/// programs' and are passed over.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct MarketConfig {
    /// Where it publishes.
    pub feed: Vec<FeedConfig>,
    /// Sizes, of which some are its own, too.
    pub receiver: ReceiverSection,
    /// Where it takes orders.
    pub order_entry: OrderEntrySection,
    /// How it behaves.
    pub exchange: ExchangeSection,
    /// Who may ask it what.
    #[serde(skip_serializing_if = "AccessSection::is_closed")]
    pub access: AccessSection,
}

impl Default for MarketConfig {
    fn default() -> MarketConfig {
        MarketConfig {
            feed: vec![FeedConfig::on_loopback(Protocol::Itch50)],
            receiver: ReceiverSection::default(),
            order_entry: OrderEntrySection::default(),
            exchange: ExchangeSection::default(),
            access: AccessSection::default(),
        }
    }
}

impl MarketConfig {
    /// Reads and checks the text of a file. Without a feed in it, there is the one of the demo.
    ///
    /// # Errors
    /// A sentence with the line of what is wrong.
    pub fn parse(text: &str) -> Result<MarketConfig, String> {
        let config: MarketConfig = tickwire_console::settings::read(text)?;
        if text.contains("[[feed]]") {
            FeedFile::parse(text)?;
        }
        config.check()?;
        Ok(config)
    }

    /// The defaults with a feed of another protocol.
    pub fn of_protocol(protocol: Protocol) -> MarketConfig {
        MarketConfig {
            feed: vec![FeedConfig::on_loopback(protocol)],
            ..MarketConfig::default()
        }
    }

    /// Checks what concerns more than one value.
    ///
    /// # Errors
    /// A sentence that names the keys.
    pub fn check(&self) -> Result<(), String> {
        if self.exchange.symbols.0 >= self.receiver.max_instruments {
            return Err(format!(
                "exchange.symbols = {} needs receiver.max_instruments above it, which is {}",
                self.exchange.symbols.0, self.receiver.max_instruments
            ));
        }
        entry::check(
            &self.order_entry,
            &self.exchange.instrument,
            self.exchange.auctions.as_ref(),
            self.price_max(),
        )?;
        self.access.check()
    }

    /// The largest price that every feed carries.
    pub fn price_max(&self) -> Price {
        let is_wide = |feed: &FeedConfig| feed.protocol() == Protocol::Mdp3;
        match !self.feed.is_empty() && self.feed.iter().all(is_wide) {
            true => MDP3_PRICE_MAX,
            false => PRICE_MAX,
        }
    }

    /// The same without what is secret: wherever a configuration is shown or kept.
    pub fn without_passwords(&self) -> MarketConfig {
        let mut config = self.clone();
        config.order_entry.hide_passwords();
        config
    }

    /// As TOML with every default filled in.
    pub fn to_toml(&self) -> String {
        tickwire_console::settings::write(self).expect("every configuration value has a TOML form")
    }
}

/// The simulated exchange.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExchangeSection {
    /// Core to pin to; -1 leaves it to the scheduler.
    pub core: i32,
    /// How it waits. `auto` spins where there are two cores at least, but sleeps where nothing was published
    /// for a millisecond and nothing is due.
    #[serde(skip_serializing_if = "is_auto")]
    pub wait: Wait,
    /// Seed of the order flow and of the impairments: one seed, one session.
    pub seed: u64,
    /// Number of listed instruments, made up; `instrument` takes their place.
    pub symbols: Symbols,
    /// Average market data messages per second once the market is open.
    pub rate: Rate,
    /// Share of them that follow another one about the same instrument at once; with 0.5 arrivals cluster as
    /// in recorded names.
    pub clusters: Part,
    /// Length of the trading session, seconds.
    pub duration_s: DurationS,
    /// Wait for a client's logon before the session starts.
    pub start_on_logon: bool,
    /// End the run when a client's connection is lost before the session's end.
    pub stop_on_client_loss: bool,
    /// For how long after the close the end of the session is said again, and recovery is served, at most,
    /// seconds: as long as clients are connected or ask. Who has not logged out by then is logged out.
    pub linger_s: u32,
    /// The close waits until clients have entered so many orders and quotes of instruments, for `overtime_s`
    /// at most.
    #[serde(skip_serializing_if = "is_zero")]
    pub orders_min: u32,
    /// For how long the close may wait for orders, seconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub overtime_s: u32,
    /// Folder of the control socket, from where this file lies; none without it. For
    /// `tickwire exchange --tell`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<PathBuf>,
    /// When auctions take place; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auctions: Option<AuctionsSection>,
    /// Trades that it breaks; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaks: Option<BreaksSection>,
    /// What happens to packets of line A on their way: losses, duplicates, reordering.
    pub line_a: Impairment,
    /// The same of line B.
    pub line_b: Impairment,
    /// Answer this share of retransmission requests (1 = all); the rest is dropped, as a real network may.
    pub answer_requests: Probability,
    /// Bytes of answers by datagram that one address gets in a second, and at once; 0: no limit. A forged
    /// address is not flooded by us.
    pub answer_bytes_per_s: u64,
    /// Messages that each channel keeps in memory to send them again, at most; the oldest are forgotten, or
    /// read from the file beside the journal.
    pub kept_messages: u32,
    /// Instruments by name, with their rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instrument: Vec<InstrumentSection>,
    /// Where everything that comes in is kept; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalSection>,
}

/// What the network does to one line.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Impairment {
    /// Share of packets lost.
    pub loss: Probability,
    /// Share of packets sent twice.
    pub duplicate: Probability,
    /// Share of packets held back behind up to three later ones.
    pub reorder: Probability,
}

impl Default for ExchangeSection {
    fn default() -> Self {
        ExchangeSection {
            core: -1,
            wait: Wait::Auto,
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
            kept_messages: 4_194_304,
            instrument: Vec::new(),
            journal: None,
            control: None,
        }
    }
}

fn is_auto(wait: &Wait) -> bool {
    *wait == Wait::Auto
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}
