//! Everything that a quoter runs by.

use serde::{Deserialize, Serialize};
use tickwire_control::access::AccessSection;
use tickwire_node::controls::ControlsSection;
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::order_entry::OrderEntrySection;
use tickwire_venues::receiver::ReceiverSection;

use crate::QuoterSection;

/// The sections of a file that concern a quoter; others are other programs' and are passed over.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct QuoteConfig {
    /// What it listens to: the first channel of the first feed.
    pub feed: Vec<FeedConfig>,
    /// Sizes and patience of the receiving side.
    pub receiver: ReceiverSection,
    /// Where quotes and orders go.
    pub order_entry: OrderEntrySection,
    /// What is quoted, and how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quoter: Option<QuoterSection>,
    /// Controls before a trade.
    pub controls: ControlsSection,
    /// Who may ask it what.
    #[serde(skip_serializing_if = "AccessSection::is_closed")]
    pub access: AccessSection,
}
