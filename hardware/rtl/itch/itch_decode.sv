// A TotalView-ITCH 5.0 message of one instrument as what it means for a book. Offsets, types and sizes are those
// of itch50_pkg, which is written from the tables of the software's decoder.
//
// Which message it is, and whether it is as long as it has to be, is known a clock before its last bytes are in place
// (`soon_*`): a message has at least eleven bytes, and type and length come first.
`default_nettype none

module itch_decode
  import core_pkg::*;
  import itch50_pkg::*;
(
    input  wire logic                clk,
    input  wire logic [15:0]         cfg_locate,
    input  wire logic [7:0]          cfg_market,   // of operational halts: Q, B or X
    input  wire logic [7:0]          soon_kind,    // of the message that may be whole in the next clock: its type
    input  wire logic [7:0]          soon_length,  // and its length
    input  wire logic                in_valid,
    input  wire logic [55:0][7:0]    in_message,
    input  wire logic [SEQ_BITS-1:0] in_seq,
    output logic                     out_valid,    // the message is an event of the instrument
    output logic                     out_malformed, // it would be one, and has a size or value that it cannot have
    output event_t                   out
);

  function automatic logic [15:0] u16(input logic [55:0][7:0] m, input int at);
    return {m[at], m[at+1]};
  endfunction
  function automatic logic [31:0] u32(input logic [55:0][7:0] m, input int at);
    return {m[at], m[at+1], m[at+2], m[at+3]};
  endfunction
  function automatic logic [63:0] u64(input logic [55:0][7:0] m, input int at);
    return {u32(m, at), u32(m, at + 4)};
  endfunction

  // ---------------------------------------------------------------- a clock before
  // Longer than the table says is allowed: the specification lets messages grow.
  logic [11:0] is_reg;                         // one of them, or none
  localparam int IS_ADD = 0, IS_ADD_MPID = 1, IS_EXECUTED = 2, IS_PRICED = 3, IS_CANCEL = 4, IS_DELETE = 5, IS_REPLACE = 6,
      IS_TRADE = 7, IS_CROSS = 8, IS_ACTION = 9, IS_HALT = 10, IS_SYSTEM = 11;
  logic [11:0] is;
  logic        is_short, short_reg;
  logic [7:0]  size;
  always_comb begin
    is[IS_ADD]      = (soon_kind == ADD_ORDER);
    is[IS_ADD_MPID] = (soon_kind == ADD_ORDER_MPID);
    is[IS_EXECUTED] = (soon_kind == ORDER_EXECUTED);
    is[IS_PRICED]   = (soon_kind == ORDER_EXECUTED_WITH_PRICE);
    is[IS_CANCEL]   = (soon_kind == ORDER_CANCEL);
    is[IS_DELETE]   = (soon_kind == ORDER_DELETE);
    is[IS_REPLACE]  = (soon_kind == ORDER_REPLACE);
    is[IS_TRADE]    = (soon_kind == TRADE);
    is[IS_CROSS]    = (soon_kind == CROSS_TRADE);
    is[IS_ACTION]   = (soon_kind == STOCK_TRADING_ACTION);
    is[IS_HALT]     = (soon_kind == OPERATIONAL_HALT);
    is[IS_SYSTEM]   = (soon_kind == SYSTEM_EVENT);
    size = (is[IS_ADD] ? ADD_ORDER_SIZE : 8'd0) | (is[IS_ADD_MPID] ? ADD_ORDER_MPID_SIZE : 8'd0)
         | (is[IS_EXECUTED] ? ORDER_EXECUTED_SIZE : 8'd0) | (is[IS_PRICED] ? ORDER_EXECUTED_WITH_PRICE_SIZE : 8'd0)
         | (is[IS_CANCEL] ? ORDER_CANCEL_SIZE : 8'd0) | (is[IS_DELETE] ? ORDER_DELETE_SIZE : 8'd0)
         | (is[IS_REPLACE] ? ORDER_REPLACE_SIZE : 8'd0) | (is[IS_TRADE] ? TRADE_SIZE : 8'd0)
         | (is[IS_CROSS] ? CROSS_TRADE_SIZE : 8'd0) | (is[IS_ACTION] ? STOCK_TRADING_ACTION_SIZE : 8'd0)
         | (is[IS_HALT] ? OPERATIONAL_HALT_SIZE : 8'd0) | (is[IS_SYSTEM] ? SYSTEM_EVENT_SIZE : 8'd0);
    is_short = (soon_length < size);
  end
  always_ff @(posedge clk) begin
    is_reg    <= is;
    short_reg <= is_short;
  end

  // ---------------------------------------------------------------- what the message says
  wire logic [63:0] id        = u64(in_message, ORDER_REF_AT);
  wire logic [63:0] new_id    = u64(in_message, ORDER_REPLACE_NEW_REF_AT);
  wire logic [7:0]  side      = in_message[ADD_ORDER_SIDE_AT];
  wire logic [7:0]  printable = in_message[ORDER_EXECUTED_WITH_PRICE_PRINTABLE_AT];
  wire logic [7:0]  state     = in_message[STOCK_TRADING_ACTION_STATE_AT];
  wire logic [7:0]  action    = in_message[OPERATIONAL_HALT_ACTION_AT];
  wire logic [7:0]  system    = in_message[SYSTEM_EVENT_EVENT_AT];
  wire logic is_add   = is_reg[IS_ADD] || is_reg[IS_ADD_MPID];
  wire logic is_order = is_add || is_reg[IS_EXECUTED] || is_reg[IS_PRICED] || is_reg[IS_CANCEL] || is_reg[IS_DELETE]
                      || is_reg[IS_REPLACE];

  function automatic logic [31:0] if32(input logic is_it, input logic [31:0] value);
    return is_it ? value : 32'd0;
  endfunction

  always_comb begin
    out      = '0;
    out.seq  = in_seq;
    out.id     = id[ID_BITS-1:0];
    out.new_id = new_id[ID_BITS-1:0];
    out.kind = is_reg[IS_EXECUTED] || is_reg[IS_PRICED] ? EV_EXECUTE
             : is_reg[IS_CANCEL] ? EV_REDUCE
             : is_reg[IS_DELETE] ? EV_DELETE
             : is_reg[IS_REPLACE] ? EV_REPLACE
             : is_reg[IS_TRADE] || is_reg[IS_CROSS] ? EV_TRADE
             : is_reg[IS_ACTION] || is_reg[IS_HALT] || is_reg[IS_SYSTEM] ? EV_STATUS
             : EV_ADD;
    out.ask  = is_add && (side == "S");
    out.printable = is_reg[IS_EXECUTED] || (is_reg[IS_PRICED] && (printable == "Y")) || (is_reg[IS_ACTION] && (state == "T"))
                 || (is_reg[IS_HALT] && (action == "T")) || (is_reg[IS_SYSTEM] && ((system == "O") || (system == "Q")));
    out.priced = is_reg[IS_PRICED] || is_reg[IS_SYSTEM];
    out.qty = if32(is_add, u32(in_message, ADD_ORDER_SHARES_AT))
            | if32(is_reg[IS_EXECUTED] || is_reg[IS_PRICED], u32(in_message, ORDER_EXECUTED_SHARES_AT))
            | if32(is_reg[IS_CANCEL], u32(in_message, ORDER_CANCEL_SHARES_AT))
            | if32(is_reg[IS_REPLACE], u32(in_message, ORDER_REPLACE_SHARES_AT))
            | if32(is_reg[IS_TRADE], u32(in_message, TRADE_SHARES_AT))
            | if32(is_reg[IS_CROSS], u32(in_message, CROSS_TRADE_SHARES_AT + 4));
    out.price = if32(is_add, u32(in_message, ADD_ORDER_PRICE_AT))
              | if32(is_reg[IS_PRICED], u32(in_message, ORDER_EXECUTED_WITH_PRICE_PRICE_AT))
              | if32(is_reg[IS_REPLACE], u32(in_message, ORDER_REPLACE_PRICE_AT))
              | if32(is_reg[IS_TRADE], u32(in_message, TRADE_PRICE_AT))
              | if32(is_reg[IS_CROSS], u32(in_message, CROSS_TRADE_PRICE_AT));
  end

  // ---------------------------------------------------------------- whether it can be so
  // A cross of 2^32 shares or more has never been; its size would be shown cut. An order's number that the core has no
  // room for is refused.
  wire logic is_ours  = is_reg[IS_SYSTEM] || (u16(in_message, LOCATE_AT) == cfg_locate);
  wire logic is_known = (is_reg != '0) && (!is_reg[IS_HALT] || (in_message[OPERATIONAL_HALT_MARKET_AT] == cfg_market));
  wire logic is_wrong = short_reg
      || (is_add && (side != "S") && (side != "B"))
      || (is_reg[IS_PRICED] && (printable != "Y") && (printable != "N"))
      || (is_reg[IS_CROSS] && (u32(in_message, CROSS_TRADE_SHARES_AT) != '0))
      || (is_reg[IS_ACTION] && (state != "H") && (state != "P") && (state != "Q") && (state != "T"))
      || (is_reg[IS_HALT] && (action != "T") && (action != "H"))
      || (is_reg[IS_SYSTEM] && (system != "O") && (system != "Q") && (system != "S") && (system != "M") && (system != "E")
          && (system != "C"))
      || (is_order && ((id >> ID_BITS) != '0))
      || (is_reg[IS_REPLACE] && ((new_id >> ID_BITS) != '0));
  wire logic is_event = in_valid && is_ours && is_known;

  assign out_valid     = is_event && !is_wrong;
  assign out_malformed = is_event && is_wrong;

endmodule

`default_nettype wire
