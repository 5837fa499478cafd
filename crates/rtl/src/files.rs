//! The hand-written modules, as they lie in `hardware/`.

macro_rules! module {
    ($folder:literal, $name:literal) => {
        ($name, include_str!(concat!("../hardware/rtl/", $folder, $name)))
    };
}

/// Name and text of what every core has, in an order in which tools can read them: packages first, then what
/// is used before what uses it. `core.sv` comes after the venue's own.
pub const MODULES: [(&str, &str); 9] = [
    module!("", "core_pkg.sv"),
    module!("", "udp_rx.sv"),
    module!("", "packet_fifo.sv"),
    module!("", "line_arbiter.sv"),
    module!("", "block_ram.sv"),
    module!("", "lowest_set.sv"),
    module!("", "book.sv"),
    module!("", "order_queue.sv"),
    module!("", "gate.sv"),
];

/// Nasdaq's: ITCH 5.0 in, OUCH 5.0 out.
pub const NASDAQ: [(&str, &str); 4] = [
    module!("itch/", "mold_rx.sv"),
    module!("itch/", "itch_decode.sv"),
    module!("itch/", "feed_line.sv"),
    module!("ouch/", "order_tx.sv"),
];

/// Moscow Exchange's: FAST in, FIX 4.4 out.
pub const MOEX: [(&str, &str); 7] = [
    module!("moex/", "token_pkg.sv"),
    module!("moex/", "fast_words.sv"),
    module!("moex/", "fast_tokens.sv"),
    module!("moex/", "fast_entries.sv"),
    module!("moex/", "feed_line.sv"),
    module!("fix/", "decimal_digits.sv"),
    module!("fix/", "order_tx.sv"),
];

/// What holds them together.
pub const CORE: [(&str, &str); 2] = [module!("", "event_numbers.sv"), module!("", "core.sv")];

/// The bench that plays a stimulus into the simulated core.
pub const BENCH: (&str, &str) = ("core_bench.cpp", include_str!("../hardware/sim/core_bench.cpp"));
