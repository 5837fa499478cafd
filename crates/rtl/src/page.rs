//! What is written beside the rule: parameters, constraints, the page.

use std::fmt::Write;

use tickwire_language::Program;

use crate::registers::{BLOCKS, FAULTS, READ, WRITTEN};
use crate::{HandlerReport, Target, Venue};

/// `strategy_pkg`: the parameters of the core.
pub(crate) fn parameters(
    program: &Program,
    target: &Target,
    handlers: &[HandlerReport],
    has_trade: bool,
) -> String {
    let orders = handlers
        .iter()
        .map(|report| report.orders)
        .max()
        .unwrap_or(1)
        .max(1);
    let (qty_most, price_most) = target.venue.order_most();
    format!(
        "// Parameters of the core for the strategy `{}`.\n\
         `default_nettype none\n\n\
         package strategy_pkg;\n\n  \
         localparam int TICK = {};           // price step, in 1e-4\n  \
         localparam int SET_ADDRESS = {};     // two buckets of four orders each: {} places\n  \
         localparam int ORDERS_MOST = {orders};      // orders of one handler\n  \
         localparam bit HAS_TRADE = 1'b{};    // it has a handler for trades\n  \
         localparam bit NUMBERED = 1'b{};     // the feed numbers each instrument's events\n  \
         localparam logic [31:0] QTY_MOST = 32'd{qty_most};     // what an order has room for\n  \
         localparam logic [31:0] PRICE_MOST = 32'd{price_most};  // in 1e-4\n\n\
         endpackage\n\n`default_nettype wire\n",
        program.name,
        target.tick.raw() / 100_000,
        target.set_address(),
        8_u32 << target.set_address(),
        u8::from(has_trade),
        u8::from(matches!(target.venue, Venue::Moex(_))),
    )
}

/// The clock, for tools that read SDC.
pub(crate) fn constraints() -> String {
    "# 10 Gbit/s Ethernet at 64 bits a clock.\ncreate_clock -name clk -period 6.4 [get_ports clk]\n"
        .to_string()
}

/// Every input of the core from a register and every output into one, on few pins: for timing the core alone.
pub(crate) fn wrap() -> String {
    include_str!("../hardware/rtl/wrap.sv").to_string()
}

/// README.md.
pub(crate) fn readme(program: &Program, target: &Target, handlers: &[HandlerReport]) -> String {
    let mut out = format!("# A core for the strategy `{}`\n\n", program.name);
    let used = program.instruments.first();
    let (feed, orders) = match &target.venue {
        Venue::Nasdaq => ("ITCH 5.0 in MoldUDP64".to_string(), "OUCH 5.0"),
        Venue::Moex(moex) => (format!("MOEX's order log {} in FAST", moex.template), "FIX 4.4"),
    };
    let _ = writeln!(
        out,
        "{feed} on two lines and a third one of software's, the book of {}, the rule, the gate, {orders} \
         orders out: 64 bits a clock. 10 Gbit/s Ethernet asks for 156.25 MHz; what it routes at is in Tickwire's `docs/hardware.md`. Tick {}, {} places for orders, 4,096 price steps. `core.sv` is \
         the top, `wrap.sv` the same on few pins for timing. Written by `tickwire strategy rtl`; what it means and what \
         software has to do is in Tickwire's `docs/hardware.md`.\n",
        used.map_or("nothing".to_string(), |used| used.symbol.to_string()),
        target.tick,
        8_u32 << target.set_address(),
    );
    out.push_str(
        "| handler | clocks to its first order | orders at most | operations |\n|---|---|---|---|\n",
    );
    for report in handlers {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            report.name, report.clocks, report.orders, report.operations
        );
    }
    out.push_str(
        "\nSimulate: `verilator --cc --exe --build -O3 --assert --top-module core *_pkg.sv *.sv core_bench.cpp` (without \
         `wrap.sv`; packages first, `core_pkg.sv` before all).\n",
    );
    out.push_str("\n## Registers that software writes\n| address | name | meaning |\n|---|---|---|\n");
    for register in WRITTEN {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            register.address, register.name, register.meaning
        );
    }
    out.push_str("\n## Registers that software reads\n| address | name | meaning |\n|---|---|---|\n");
    for register in READ {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            register.address, register.name, register.meaning
        );
    }
    out.push_str("\n## FAULTS\n| bit | fault | meaning |\n|---|---|---|\n");
    for (bit, (name, meaning)) in FAULTS.iter().enumerate() {
        let _ = writeln!(out, "| {bit} | {name} | {meaning} |");
    }
    out.push_str("\n## BLOCKS\n| address | reason | meaning |\n|---|---|---|\n");
    for (n, (name, meaning)) in BLOCKS.iter().enumerate() {
        let _ = writeln!(out, "| {} | {name} | {meaning} |", 16 + n);
    }
    out
}
