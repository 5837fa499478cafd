//! The configuration of a quoter together with that of the simulated exchange it quotes on, from one text,
//! for tests.

use serde::Deserialize;
use tickwire_control::access::AccessSection;
use tickwire_node::controls::ControlsSection;
use tickwire_simulator::settings::{ExchangeSection, MarketConfig};
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::order_entry::OrderEntrySection;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::ReceiverSection;

use crate::QuoterSection;
use crate::settings::QuoteConfig;

/// See the module.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) feed: Vec<FeedConfig>,
    pub(crate) receiver: ReceiverSection,
    pub(crate) order_entry: OrderEntrySection,
    pub(crate) exchange: ExchangeSection,
    pub(crate) quoter: Option<QuoterSection>,
    pub(crate) controls: ControlsSection,
    pub(crate) access: AccessSection,
}

impl Config {
    pub(crate) fn parse(text: &str) -> Result<Config, String> {
        let config: Config = tickwire_console::settings::read(text)?;
        config.market().check()?;
        if let Some(quoter) = &config.quoter {
            quoter.check()?;
        }
        Ok(config)
    }

    pub(crate) fn of_protocol(protocol: Protocol) -> Config {
        Config {
            feed: vec![FeedConfig::on_loopback(protocol)],
            ..Config::default()
        }
    }

    pub(crate) fn market(&self) -> MarketConfig {
        MarketConfig {
            feed: self.feed.clone(),
            receiver: self.receiver.clone(),
            order_entry: self.order_entry.clone(),
            exchange: self.exchange.clone(),
            access: self.access.clone(),
        }
    }

    #[expect(dead_code, reason = "the whole is here, whichever part a test asks for")]
    pub(crate) fn quote(&self) -> QuoteConfig {
        QuoteConfig {
            feed: self.feed.clone(),
            receiver: self.receiver.clone(),
            order_entry: self.order_entry.clone(),
            quoter: self.quoter.clone(),
            controls: self.controls.clone(),
            access: self.access.clone(),
        }
    }
}
