// The order log X-OLR-DEMO in FAST as places of the stream, written from the template file by tickwire-wire-moex.
`default_nettype none

package fast_pkg;

  localparam int TEMPLATE = 101;
  localparam int SLOTS = 14;
  localparam int SLOT_ACTION = 3;
  localparam int SLOT_TYPE = 4;
  localparam int SLOT_ID = 5;
  localparam int SLOT_SYMBOL = 0;
  localparam int SLOT_BOARD = 1;
  localparam int SLOT_NUMBER = 2;
  localparam int SLOT_PRICE_EXPONENT = 6;
  localparam int SLOT_PRICE_MANTISSA = 7;
  localparam int SLOT_SIZE_EXPONENT = 8;
  localparam int SLOT_SIZE_MANTISSA = 9;
  localparam bit ACTION_NULLABLE = 1'b1;
  localparam bit NUMBER_NULLABLE = 1'b1;
  localparam bit PRICE_NULLABLE = 1'b1;
  localparam bit SIZE_NULLABLE = 1'b1;
  localparam logic [SLOTS-1:0] EXPONENTS = SLOTS'(64'h140);
  localparam logic [83:0] SYMBOL = 84'hab4e23060c2ad4a7527cd;   // USD000UTSTOM
  localparam logic [3:0] SYMBOL_LENGTH = 4'd12;
  localparam logic [83:0] BOARD = 84'h000000000000008716a53;   // CETS
  localparam logic [3:0] BOARD_LENGTH = 4'd4;

  // Which fields of a message and of an entry are there, by their tags.
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic logic [SLOTS-1:0] header_mask(input logic [20:0] map);
    header_mask = '0;
    header_mask[0] = map[20];   // 0
    header_mask[1] = 1'b1;   // 34
    header_mask[2] = 1'b1;   // 52
    header_mask[3] = 1'b1;   // 268
  endfunction
  function automatic logic [SLOTS-1:0] entry_mask(input logic [20:0] map);
    entry_mask = '0;
    entry_mask[0] = map[20];   // 55
    entry_mask[1] = map[19];   // 336
    entry_mask[2] = 1'b1;   // 83
    entry_mask[3] = map[18];   // 279
    entry_mask[4] = map[17];   // 269
    entry_mask[5] = 1'b1;   // 278
    entry_mask[6] = map[16];   // 270
    entry_mask[7] = map[16];   // 270, mantissa
    entry_mask[8] = map[15];   // 271
    entry_mask[9] = map[15];   // 271, mantissa
    entry_mask[10] = map[14];   // 273
    entry_mask[11] = map[13];   // 9412
    entry_mask[12] = map[12];   // 10505
    entry_mask[13] = map[11];   // 625
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

endpackage

`default_nettype wire
