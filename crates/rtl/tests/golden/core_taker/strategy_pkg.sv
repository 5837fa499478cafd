// Parameters of the core for the strategy `core_taker`.
`default_nettype none

package strategy_pkg;

  localparam int TICK = 100;           // price step, in 1e-4
  localparam int SET_ADDRESS = 11;     // two buckets of four orders each: 16384 places
  localparam int ORDERS_MOST = 1;      // orders of one handler
  localparam bit HAS_TRADE = 1'b0;    // it has a handler for trades

endpackage

`default_nettype wire
