//! The hand-written modules, as they lie in `hardware/`.

/// Name and text of each, in an order in which tools can read them: packages first, then what is used before
/// what uses it.
pub const MODULES: [(&str, &str); 14] = [
    ("core_pkg.sv", include_str!("../hardware/rtl/core_pkg.sv")),
    ("udp_rx.sv", include_str!("../hardware/rtl/udp_rx.sv")),
    ("mold_rx.sv", include_str!("../hardware/rtl/mold_rx.sv")),
    ("itch_decode.sv", include_str!("../hardware/rtl/itch_decode.sv")),
    ("packet_fifo.sv", include_str!("../hardware/rtl/packet_fifo.sv")),
    ("itch_line.sv", include_str!("../hardware/rtl/itch_line.sv")),
    ("line_arbiter.sv", include_str!("../hardware/rtl/line_arbiter.sv")),
    ("block_ram.sv", include_str!("../hardware/rtl/block_ram.sv")),
    ("lowest_set.sv", include_str!("../hardware/rtl/lowest_set.sv")),
    ("book.sv", include_str!("../hardware/rtl/book.sv")),
    ("order_queue.sv", include_str!("../hardware/rtl/order_queue.sv")),
    ("gate.sv", include_str!("../hardware/rtl/gate.sv")),
    ("ouch_tx.sv", include_str!("../hardware/rtl/ouch_tx.sv")),
    ("core.sv", include_str!("../hardware/rtl/core.sv")),
];

/// The bench that plays a stimulus into the simulated core.
pub const BENCH: (&str, &str) = ("core_bench.cpp", include_str!("../hardware/sim/core_bench.cpp"));
