//! Prints the part of the C header that is made from the layout's tables and from the vocabulary:
//! `cargo xtask header` puts it into the template, `cargo xtask bindings` compares it with what is committed.

use core::mem::offset_of;
use std::io::Write;
use tickwire_market::{
    BookState, BookUpdate, Counter, EventFlags, EventKind, MarketEvent, TradingStatus, Unit, UpdateFlags,
    Venue,
};
use tickwire_shm::layout;

fn main() -> std::io::Result<()> {
    let text = [limits(), sections(), vocabulary(), counters(), offsets()].concat();
    std::io::stdout().write_all(text.as_bytes())
}

fn limits() -> String {
    let rows: [(&str, u64, &str); 10] = [
        (
            "VERSION",
            layout::VERSION,
            "Version of the layout that this header reads.",
        ),
        (
            "MAX_LEVELS",
            layout::MAX_LEVELS as u64,
            "Most levels per side of a book.",
        ),
        (
            "MAX_SHARES",
            layout::MAX_SHARES as u64,
            "Most shares per side of a consolidated book.",
        ),
        (
            "MAX_FEEDS",
            layout::MAX_FEEDS as u64,
            "Most feeds: a bit of a mask each.",
        ),
        (
            "MAX_KINDS",
            layout::MAX_KINDS as u64,
            "Most kinds of message of a source.",
        ),
        (
            "MAX_COUNTERS",
            layout::MAX_COUNTERS as u64,
            "Most counters of a source.",
        ),
        ("BUCKETS", layout::BUCKETS as u64, "Buckets of a histogram."),
        (
            "LEVEL_WORDS",
            layout::LEVEL_WORDS as u64,
            "Words of a level: price, quantity, orders.",
        ),
        (
            "SHARE_WORDS",
            layout::SHARE_WORDS as u64,
            "Words of a share: price, quantity, feed and orders.",
        ),
        (
            "COUNTERS",
            Counter::ALL.len() as u64,
            "Counters of the table below.",
        ),
    ];
    let mut text = format!(
        "/* The first word of a region: the bytes TICKWIRE. */\n#define TW_MAGIC UINT64_C({:#018x})\n",
        layout::MAGIC
    );
    for (name, value, sentence) in rows {
        text += &format!("/* {sentence} */\n#define TW_{name} {value}u\n");
    }
    text
}

/// The places of all fields, in words, one enumeration per section.
fn sections() -> String {
    let mut text = String::new();
    for section in layout::SECTIONS {
        let name = section.name.to_uppercase();
        text += &format!("\n/* {} In words. */\nenum {{\n", section.sentence);
        for field in section.fields {
            let len = if field.words == 1 {
                String::new()
            } else {
                format!(" {} words.", field.words)
            };
            text += &format!(
                "    TW_WORD_{name}_{} = {}, /* {}{len} */\n",
                field.name.to_uppercase(),
                field.offset,
                field.sentence
            );
        }
        text += &format!("    TW_WORDS_OF_{name} = {}\n}};\n", section.words);
    }
    text
}

fn vocabulary() -> String {
    let mut text = String::new();
    text += &numbered(
        "What happened: `kind` of an event.",
        "KIND",
        (1..=u8::MAX).map_while(|v| Some((EventKind::from_u8(v)?, v))),
    );
    text += &numbered(
        "Trading status of an instrument.",
        "STATUS",
        (0..=u8::MAX).map_while(|v| Some((TradingStatus::from_u8(v)?, v))),
    );
    let states = [BookState::Building, BookState::Live, BookState::Stale];
    text += &numbered(
        "Whether a book can be trusted.",
        "BOOK",
        states.into_iter().map(|state| (state, state as u8)),
    );
    let flags = [
        ("LAST", EventFlags::LAST),
        ("SNAPSHOT", EventFlags::SNAPSHOT),
        ("RETRANSMITTED", EventFlags::RETRANSMITTED),
        ("NOT_PRINTABLE", EventFlags::NOT_PRINTABLE),
        ("AT_OTHER_PRICE", EventFlags::AT_OTHER_PRICE),
        ("NO_SIDE", EventFlags::NO_SIDE),
        ("KEEPS_PRIORITY", EventFlags::KEEPS_PRIORITY),
        ("IMPLIED", EventFlags::IMPLIED),
        ("NOT_FIRM", EventFlags::NOT_FIRM),
        ("UNUSABLE", EventFlags::UNUSABLE),
    ];
    text += "\n/* Conditions of an event: bits of `flags`. */\nenum {\n";
    for (name, flag) in flags {
        text += &format!("    TW_FLAG_{name} = {},\n", flag.0);
    }
    text += "};\n";
    let changes = [
        ("BEST_BID", UpdateFlags::BEST_BID),
        ("BEST_ASK", UpdateFlags::BEST_ASK),
        ("DEPTH", UpdateFlags::DEPTH),
        ("STATE", UpdateFlags::STATE),
        ("BEST_BID_PRICE", UpdateFlags::BEST_BID_PRICE),
        ("BEST_ASK_PRICE", UpdateFlags::BEST_ASK_PRICE),
    ];
    text += "\n/* What changed in a book: bits of `changed` of an update. */\nenum {\n";
    for (name, flag) in changes {
        text += &format!("    TW_CHANGED_{name} = {},\n", flag.0);
    }
    text += "};\n";
    text += &numbered(
        "Venues.",
        "VENUE",
        Venue::ALL.into_iter().map(|venue| (venue, venue as u8)),
    );
    let names: Vec<&str> = Venue::ALL.iter().map(|venue| venue.name()).collect();
    text += "\n/* The name of a venue as in configuration files, NULL for a number that is none. */\n";
    text += "static inline const char *tw_venue_name(uint64_t venue) {\n";
    text += &format!("    static const char *const names[] = {{{}}};\n", quoted(&names));
    text +=
        "    return venue >= 1 && venue <= sizeof names / sizeof names[0] ? names[venue - 1] : NULL;\n}\n";
    text
}

fn numbered<T: core::fmt::Debug>(
    sentence: &str,
    prefix: &str,
    values: impl Iterator<Item = (T, u8)>,
) -> String {
    let mut text = format!("\n/* {sentence} */\nenum {{\n");
    for (value, number) in values {
        text += &format!("    TW_{prefix}_{} = {number},\n", snake(&format!("{value:?}")));
    }
    text + "};\n"
}

fn counters() -> String {
    let mut text = String::from(
        "\n/* A counter: its identifier, what a heading says, what is counted, one sentence. */\ntypedef struct tw_counter {\n    \
         const char *id, *label, *unit, *sentence;\n} tw_counter;\n\n/* The table of counters, `TW_COUNTERS` of them; NULL for an \
         index beyond it. */\nstatic inline const tw_counter *tw_counter_at(uint32_t index) {\n    static const tw_counter table[TW_COUNTERS] = {\n",
    );
    for counter in Counter::ALL {
        let spec = counter.spec();
        let unit = match spec.unit {
            Unit::Packets => "packets",
            Unit::Messages => "messages",
            Unit::Events => "events",
            Unit::Bytes => "bytes",
        };
        text += &format!(
            "        {{{}}},\n",
            quoted(&[spec.id, spec.label, unit, spec.sentence])
        );
    }
    text + "    };\n    return index < TW_COUNTERS ? &table[index] : NULL;\n}\n"
}

/// Where the fields of the two records lie, in bytes: the header's structs are held against these.
fn offsets() -> String {
    let mut text =
        String::from("\n/* Where the fields of `tw_event` and `tw_update` lie, in bytes. */\nenum {\n");
    macro_rules! rows {
        ($record:ident $prefix:literal $($field:ident)*) => {
            $(text += &format!("    TW_AT_{}_{} = {},\n", $prefix, stringify!($field).to_uppercase(), offset_of!($record, $field));)*
        };
    }
    rows!(MarketEvent "EVENT" seq venue_ts recv_ts instrument venue kind side status order_id price qty ref_id ask_price ask_qty
        near_price far_price imbalance_qty order_count flags code reserved);
    rows!(BookUpdate "UPDATE" seq venue_ts recv_ts instrument venue state changed price qty);
    text + "};\n"
}

/// `BestBid` as `BEST_BID`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(c.to_ascii_uppercase());
    }
    text
}

fn quoted(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    quoted.join(", ")
}
