//! Fuzz targets, one registry for both ways to run them: `cargo xtask fuzz` mutates the vectors from a seed
//! on a stable toolchain, `fuzz/` wraps the same functions for cargo-fuzz, which follows coverage and needs a
//! nightly one.
//!
//! A target is a function of bytes that panics when something that must hold does not. Parsers get the bytes
//! as they are; state machines read them as a sequence of operations through [`Choices`].
//!
//! ```
//! use tickwire_fuzzing::{crash, find};
//!
//! let target = find("engine").expect("a target of that name");
//! println!("{}: {}", target.name, target.about);
//! assert!(crash(target, b"any bytes").is_none(), "what must hold holds for them");
//! let canary = find("canary").expect("the one that is wrong on purpose");
//! assert!(canary.must_fail);
//! ```
#![forbid(unsafe_code)]

mod choices;
mod mutate;
mod runner;
mod seeds;
pub mod targets;

pub use choices::Choices;
pub use mutate::Mutator;
pub use runner::{Budget, Crash, Report, crash, run};

/// One function that must hold for all bytes.
pub struct Target {
    /// As on the command line, and the name of its wrapper in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// What must hold.
    pub about: &'static str,
    /// The inputs that mutations start from; the empty one is always among them.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Panics when it does not hold.
    pub run: fn(&[u8]),
    /// A target that is wrong on purpose: a run that finds nothing wrong with it has proved nothing about the
    /// others.
    pub must_fail: bool,
}

/// A target that must hold.
const fn target(
    name: &'static str,
    about: &'static str,
    seeds: fn() -> Vec<Vec<u8>>,
    run: fn(&[u8]),
) -> Target {
    Target {
        name,
        about,
        seeds,
        run,
        must_fail: false,
    }
}

/// Every target.
pub const TARGETS: &[Target] = &[
    target(
        "price_text",
        "a text that is a price prints as the same price",
        seeds::prices,
        targets::price_text,
    ),
    target(
        "itch50",
        "an ITCH message shows its fields and is its own bytes",
        seeds::itch50,
        targets::itch50,
    ),
    target(
        "moldudp64",
        "a packet's blocks lie within it, are as many as it says, and build it again",
        seeds::moldudp64,
        targets::moldudp64,
    ),
    target(
        "order_segment",
        "nothing in a frame panics, and the guard keeps what is early and nothing else",
        seeds::order_segment,
        targets::order_segment,
    ),
    target(
        "armed_order",
        "a pre-armed order leaves by a packet that the plain reading says holds, and by no other",
        seeds::armed_order,
        targets::armed_order,
    ),
    target(
        "mdp3",
        "messages fill their packet, show their fields, and are written back as they were",
        seeds::mdp3,
        targets::mdp3,
    ),
    target(
        "ilink3",
        "messages of a stream take what they say, show their fields, and are written back as they were",
        seeds::ilink3,
        targets::ilink3,
    ),
    target(
        "cqs",
        "messages fill their block, show their fields, and are made of their parts",
        seeds::cqs,
        targets::cqs,
    ),
    target(
        "uqdf",
        "a message shows its fields, is made of its parts and reads the same from them",
        seeds::uqdf,
        targets::uqdf,
    ),
    target(
        "pitch",
        "a block's messages fill it and build it again; a message shows its fields and begins its own bytes",
        seeds::pitch,
        targets::pitch,
    ),
    target(
        "nyse_feed",
        "events of a NYSE channel ascend, whatever arrives on its lines, groups and connection",
        seeds::nyse_datagrams,
        targets::nyse_feed,
    ),
    target(
        "nyse_server",
        "a NYSE request server sends whole packets only, whatever it is asked",
        seeds::nyse_requests,
        targets::nyse_server,
    ),
    target(
        "openbook",
        "updates fill their packet, show their fields, and are written back as they were",
        seeds::openbook,
        targets::openbook,
    ),
    target(
        "xdp",
        "messages fill their packet, show their fields, and are their own bytes",
        seeds::xdp,
        targets::xdp,
    ),
    target(
        "ouch50",
        "messages of both directions are refused or written back as they were",
        seeds::ouch50,
        targets::ouch50,
    ),
    target(
        "order_entry",
        "whatever clients say, an exchange speaks its protocols, and its journal makes it again",
        seeds::order_entry,
        targets::order_entry,
    ),
    target(
        "mass_quotes",
        "quotes of any fields over FIX are answered in messages that can be read, and the journal makes them again",
        seeds::mass_quotes,
        targets::mass_quotes,
    ),
    target(
        "option_terms",
        "an option of any terms is refused, or worth something between its bounds",
        seeds::option_terms,
        targets::option_terms,
    ),
    target(
        "strategy_file",
        "a text is a strategy that runs, or is refused with its places; its usual form is one",
        seeds::strategy_files,
        targets::strategy_file,
    ),
    target(
        "quoter",
        "what is believed live is what the venue holds, within limits, whatever market and venue do",
        seeds::quoter,
        targets::quoter,
    ),
    target(
        "quote_orders",
        "quotes that are orders have one request a side under way, whatever the venue reports",
        seeds::quote_orders,
        targets::quote_orders,
    ),
    target(
        "journal",
        "inputs lie within the file and are the same bytes when written again",
        seeds::journal,
        targets::journal,
    ),
    target(
        "soupbintcp",
        "a packet takes no more than there is and encodes to what it was",
        seeds::soupbintcp,
        targets::soupbintcp,
    ),
    target(
        "soup_stream",
        "a stream cut anywhere says the same as in one piece",
        seeds::soupbintcp,
        targets::soup_stream,
    ),
    target(
        "recorded_blocks",
        "a capture written as a recorder does and cut anywhere gives every whole packet as it was",
        seeds::recorded_blocks,
        targets::recorded_blocks,
    ),
    target(
        "archive",
        "an archive, its index or a block of it is read within itself, or refused",
        seeds::archives,
        targets::archive,
    ),
    target(
        "mirror",
        "what frames of a mirror make of a region can be read, or they are refused",
        seeds::mirrors,
        targets::mirror,
    ),
    target(
        "capture",
        "a capture ends or is refused; its frames lie within it",
        seeds::captures,
        targets::capture,
    ),
    target(
        "records",
        "a file of DBN records or of LOBSTER lines ends or is refused; an order executes no more than it shows",
        seeds::records,
        targets::records,
    ),
    target(
        "capture_frames",
        "every frame is counted once, fragments and streams are put together within bounds",
        seeds::capture_frames,
        targets::capture_frames,
    ),
    target(
        "fix_decode",
        "the fast decoder sees the fields the naive one sees",
        seeds::fix_messages,
        targets::fix_decode,
    ),
    target(
        "fix_typed",
        "typed groups have the entries that a naive walk finds, or say which count lies",
        seeds::fix_groups,
        targets::fix_typed,
    ),
    target(
        "fix_session",
        "messages come out in sequence, once; what is sent can be read",
        seeds::fix_operations,
        targets::fix_session,
    ),
    target(
        "fix_dictionary",
        "a dictionary of any text loads or is refused with its line",
        seeds::fix_dictionaries,
        targets::fix_dictionary,
    ),
    target(
        "fix_validator",
        "what all rules admit, fewer admit; one check says nothing about the next",
        seeds::fix_fields,
        targets::fix_validator,
    ),
    target(
        "fix_store",
        "a store in damaged memory opens or is refused, and never gives another message",
        seeds::fix_store_operations,
        targets::fix_store,
    ),
    target(
        "feed_arbiter",
        "no message is delivered twice; a live feed misses nothing",
        seeds::none,
        targets::feed_arbiter,
    ),
    target(
        "feed_handler",
        "events of a whole ITCH feed ascend, whatever arrives",
        seeds::datagrams,
        targets::feed_handler,
    ),
    target(
        "subscriptions",
        "books that are live are the venue's, however subscriptions, messages and snapshots come",
        seeds::subscriptions,
        targets::subscriptions,
    ),
    target(
        "mdp3_channel",
        "events of an MDP 3.0 channel ascend, whatever arrives on its feeds and its connection",
        seeds::mdp3_operations,
        targets::mdp3_channel,
    ),
    target(
        "pitch_feed",
        "events of a PITCH unit ascend, whatever arrives on its lines and connections",
        seeds::pitch_datagrams,
        targets::pitch_feed,
    ),
    target(
        "sip_channels",
        "events of consolidated feeds ascend, whatever arrives on their lines, sent again, or as snapshot",
        seeds::sip_messages,
        targets::sip_channels,
    ),
    target(
        "pitch_servers",
        "blocks of a PITCH unit's servers are whole, whatever their clients say",
        seeds::pitch_clients,
        targets::pitch_servers,
    ),
    target(
        "moex_feed",
        "events of a Moscow Exchange channel ascend, whatever arrives on its lines, loops and connection",
        seeds::moex_operations,
        targets::moex_feed,
    ),
    target(
        "moex_replay_server",
        "a replay connection answers what can be read, or hangs up",
        seeds::moex_requests,
        targets::moex_replay_server,
    ),
    target(
        "book",
        "the fast books answer as the naive ones do",
        seeds::none,
        targets::book,
    ),
    target(
        "engine",
        "the matching engine answers, tells and stands as the naive one does",
        seeds::none,
        targets::engine,
    ),
    target(
        "shared_region",
        "whatever shared memory holds, reading it ends and stays within it",
        seeds::shared_regions,
        targets::shared_region,
    ),
    target(
        "super_books",
        "the fast consolidated books answer as the naive ones do",
        seeds::none,
        targets::super_books,
    ),
    target(
        "backtest",
        "orders beside a recording, and among it, are filled as in a plain list of orders",
        seeds::none,
        targets::backtest,
    ),
    Target {
        name: "canary",
        about: "fails on a short rare input: shows that failures are found",
        seeds: seeds::none,
        run: targets::canary,
        must_fail: true,
    },
];

/// The target of that name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
