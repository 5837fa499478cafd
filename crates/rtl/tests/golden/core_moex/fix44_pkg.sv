// The frame of an order: FIX 4.4 NewOrderSingle. The place of each field's first digit, with texts as long as here.
`default_nettype none

package fix44_pkg;

  localparam int FRAME_SIZE = 275;
  localparam int MESSAGE_PLACE = 107;
  localparam int SENDING_PLACE = 128;
  localparam int ORDER_PLACE = 146;
  localparam int SIDE_PLACE = 204;
  localparam int TRANSACT_PLACE = 218;
  localparam int QUANTITY_PLACE = 234;
  localparam int PRICE_PLACE = 252;
  localparam int CHECKSUM_PLACE = 271;

endpackage

`default_nettype wire
