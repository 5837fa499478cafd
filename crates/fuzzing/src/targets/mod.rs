//! The targets themselves, by the crate they are about.

mod archive;
mod backtest;
mod book;
mod engine;
mod feed;
mod fix;
mod fix_rules;
mod fix_typed;
pub(crate) mod kernel;
mod language;
mod mdp3;
mod mirror;
pub(crate) mod moex;
mod nyse;
mod options;
pub(crate) mod order_entry;
mod pitch;
mod records;
mod runtime;
mod shm;
mod sip;
mod subscriptions;
mod super_books;
mod wire;

pub use archive::archive;
pub use backtest::backtest;
pub use book::book;
pub use engine::engine;
pub use feed::{feed_arbiter, feed_handler, pitch_feed, soup_stream};
pub use fix::{fix_decode, fix_session};
pub(crate) use fix_rules::DICTIONARY as FIX_DICTIONARY;
pub use fix_rules::{fix_dictionary, fix_store, fix_validator};
pub use fix_typed::fix_typed;
pub use kernel::{armed_order, order_segment};
pub use language::strategy_file;
pub use mdp3::mdp3_channel;
pub use mirror::mirror;
pub use moex::{moex_feed, moex_replay_server};
pub use nyse::{nyse_feed, nyse_server};
pub use options::{option_terms, quote_orders, quoter};
pub use order_entry::{journal, mass_quotes, order_entry};
pub use pitch::pitch_servers;
pub use records::records;
pub use runtime::{capture, capture_frames, recorded_blocks};
pub(crate) use shm::region_bytes;
pub use shm::shared_region;
pub use sip::sip_channels;
pub use subscriptions::subscriptions;
pub use super_books::super_books;
pub use wire::{cqs, ilink3, itch50, mdp3, moldudp64, openbook, ouch50, pitch, soupbintcp, uqdf, xdp};

use tickwire_market::{EventFlags, MarketEvent, Price, SeqNo};

/// A sink that wants the numbers of live events of instruments to ascend.
fn ascending() -> impl FnMut(&MarketEvent) {
    let mut highest = SeqNo(0);
    move |event| {
        let of_feed = event.flags.has(EventFlags::SNAPSHOT) || event.instrument.0 == 0;
        if !of_feed {
            assert!(event.seq >= highest, "{event:?} after {highest}");
            highest = event.seq;
        }
    }
}

/// A text that is a price prints as a text that is the same price.
pub fn price_text(bytes: &[u8]) {
    if let Ok(price) = Price::parse(bytes) {
        assert_eq!(Price::parse(price.to_string().as_bytes()), Ok(price));
    }
}

/// Wrong on purpose: fails when the second byte is the first one turned over.
pub fn canary(bytes: &[u8]) {
    if let [first, second, ..] = bytes {
        assert!(*second != !*first, "the canary sings");
    }
}
