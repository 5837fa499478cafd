//! `tickwire quote`: quotes the options on a future.
//!
//! ```text
//! quoting thread   Receiver ─► QuotePath (books, quoter, eye) ─► mass quotes; answers and fills ─► QuotePath
//!                     ▲ ladders, as boxes            │ fills, by a ring; the underlying's price, by an atomic
//! pricing thread   Pricer: volatilities, forwards, positions, terms ─► ladders
//! ```
//! The two share nothing else but `Shared`. A full ring of fills pulls every quote: what is held would not be
//! known.
//!
//! ```
//! use tickwire_market::Nanos;
//! use tickwire_quoterd::sample;
//! use tickwire_quoterd::settings::QuoteConfig;
//!
//! // A market of 16 options on a future, and a quoter on it, as the text of a configuration.
//! let text = sample::text(16, Nanos(1_795_392_000 * Nanos::SECOND)).expect("16 options");
//! let config: QuoteConfig = tickwire_console::settings::read(&text).expect("a configuration");
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
mod chain;
mod config;
mod control;
mod learn;
mod news;
mod opening;
mod path;
mod plausible;
mod pricer;
mod pricing;
mod pulls;
mod quoting;
mod report;
pub mod sample;
pub mod settings;
mod talk;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

use std::path::Path;

use tickwire_fix::{CompId, Store, Version};
use tickwire_runtime::alloc;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::signal::StopFlag;

pub use config::{QuoteEntry, QuoterSection};
pub use control::{QuoterWord, tell};
pub use report::{QuoterResults, demo_summary, summary};

pub use learn::Learn;
use settings::QuoteConfig;
use tickwire_console::failure::Failure;
use tickwire_control::results::write_json;
use tickwire_node::fills::FillsFile;

pub use chain::Chain;
pub use path::{
    QuotePath, QuoteSession, QuoteSetup, Source, Traded, Trades, VenueSession, decimals_of, session_of,
};
pub use pricer::{NEAR_HALF_TICKS, Pricer};
pub use pricing::{Expiries, flat_surface};
pub use sample::text as demo_text;

use opening::{Opening, State};
use path::lasting_session;
use tickwire_node::entry_store::EntryStore;

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
    if config.feed.is_empty() {
        return Err(Failure::config("the configuration has no [[feed]] to receive"));
    }
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
        is_child,
        is_forced,
        stop,
    };
    let mut opening = Opening::new(&run)?;
    let (state, session) = run.session()?;
    let (talk, link) = opening.connect(session)?;
    let learned = opening.learn(talk)?;
    let outcome = opening.quote(learned, state, link)?;
    if let Some(dir) = results {
        write_json(&dir.join("quoter.json"), &outcome.results)?;
    }
    if !is_child {
        print!("{}", summary(&outcome.results));
    }
    outcome.ended
}

/// A run, whatever the feed.
pub(crate) struct Run<'a> {
    config: &'a QuoteConfig,
    section: &'a QuoterSection,
    clock: Clock,
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
        let (mut file, mut recovered) = FillsFile::open(&folder.join("fills"), "quoter")?;
        let identity = format!("{} {} {}", version.name(), ids[0], ids[1]);
        let store = tickwire_fixengine::store::lasting(
            &folder.join("session.store"),
            STORE_BYTES,
            &identity,
            &tickwire_node::voice::console(),
        )
        .map_err(tickwire_node::voice::failure)?;
        if store.next_in() == 1 && recovered.heard > 0 {
            // Another day: the store was moved away, and the venue's numbers and names begin anew.
            file.begin_anew();
            recovered.begin_anew();
        }
        // What was taken and is in no line is asked for again.
        let store = EntryStore::lasting(store, recovered.heard);
        if !self.is_child {
            eprintln!(
                "state {}: {} fills, next out {}, next in {}{}",
                folder.display(),
                recovered.fills.len(),
                store.next_out(),
                store.next_in(),
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
