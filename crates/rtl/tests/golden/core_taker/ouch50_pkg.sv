// The frame of an order: OUCH 5.0 Enter Order in SoupBinTCP, written from the tables of tickwire-wire-nasdaq.
`default_nettype none

package ouch50_pkg;

  localparam int FRAME_SIZE = 104;
  localparam int USER_REF_PLACE = 58;
  localparam int SIDE_PLACE = 62;
  localparam int QUANTITY_PLACE = 63;
  localparam int PRICE_PLACE = 75;
  localparam logic [7:0] SIDE_BUY = "B";
  localparam logic [7:0] SIDE_SELL = "S";

endpackage

`default_nettype wire
