// The rule of the strategy `NAME`, written by `tickwire strategy rtl`: changes belong into its file.
// Prices are in 1e-4 of currency; `start_*` tells of a book or a trade, and what it is told stands until
// `busy` falls. A value is made in the clock that its name ends in, and kept in a register where a later
// clock needs it.
`default_nettype none

module strategy (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic        start_book,
    input  wire logic        start_trade,
    output logic             busy,

    input  wire logic        live,
    input  wire logic        bid_valid,
    input  wire logic [31:0] bid_price,
    input  wire logic [39:0] bid_qty,
    input  wire logic        ask_valid,
    input  wire logic [31:0] ask_price,
    input  wire logic [39:0] ask_qty,
    input  wire logic        has_last,
    input  wire logic [31:0] last_price,
    input  wire logic [31:0] last_qty,

    output logic             order_valid,
    output logic             order_ask,     // sell
    output logic [31:0]      order_qty,
    output logic [31:0]      order_price
);
