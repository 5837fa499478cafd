// Parameters of the core for the strategy `core_pair`.
`default_nettype none

package strategy_pkg;

  localparam int TICK = 100;           // price step, in 1e-4
  localparam int SET_ADDRESS = 11;     // two buckets of four orders each: 16384 places
  localparam int ORDERS_MOST = 3;      // orders of one handler
  localparam bit HAS_TRADE = 1'b1;    // it has a handler for trades
  localparam bit NUMBERED = 1'b0;     // the feed numbers each instrument's events
  localparam logic [31:0] QTY_MOST = 32'd999999;     // what an order has room for
  localparam logic [31:0] PRICE_MOST = 32'd1999999900;  // in 1e-4

endpackage

`default_nettype wire
