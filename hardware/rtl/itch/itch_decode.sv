// A TotalView-ITCH 5.0 message of one instrument as what it means for a book. Offsets, types and sizes are those
// of itch50_pkg, which is written from the tables of the software's decoder.
`default_nettype none

module itch_decode
  import core_pkg::*;
  import itch50_pkg::*;
(
    input  wire logic [15:0]         cfg_locate,
    input  wire logic [7:0]          cfg_market,   // of operational halts: Q, B or X
    input  wire logic                in_valid,
    input  wire logic [55:0][7:0]    in_message,
    input  wire logic [7:0]          in_length,
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

  wire logic [7:0] kind = in_message[0];
  logic is_ours, is_known, is_right, is_order;
  logic [63:0] id, new_id;
  logic [7:0] size;

  always_comb begin
    out        = '0;
    out.seq    = in_seq;
    id         = u64(in_message, ORDER_REF_AT);
    new_id     = u64(in_message, ORDER_REPLACE_NEW_REF_AT);
    out.id     = id[ID_BITS-1:0];
    out.new_id = new_id[ID_BITS-1:0];
    is_order   = 1'b0;
    is_known   = 1'b1;
    is_right   = 1'b1;
    is_ours    = (u16(in_message, LOCATE_AT) == cfg_locate);
    size       = 8'd0;
    case (kind)
      ADD_ORDER, ADD_ORDER_MPID: begin
        size      = (kind == ADD_ORDER) ? ADD_ORDER_SIZE : ADD_ORDER_MPID_SIZE;
        out.kind  = EV_ADD;
        is_order  = 1'b1;
        out.ask   = (in_message[ADD_ORDER_SIDE_AT] == "S");
        is_right  = (in_message[ADD_ORDER_SIDE_AT] == "S") || (in_message[ADD_ORDER_SIDE_AT] == "B");
        out.qty   = u32(in_message, ADD_ORDER_SHARES_AT);
        out.price = u32(in_message, ADD_ORDER_PRICE_AT);
      end
      ORDER_EXECUTED: begin
        size          = ORDER_EXECUTED_SIZE;
        out.kind      = EV_EXECUTE;
        is_order  = 1'b1;
        out.printable = 1'b1;
        out.qty       = u32(in_message, ORDER_EXECUTED_SHARES_AT);
      end
      ORDER_EXECUTED_WITH_PRICE: begin
        size          = ORDER_EXECUTED_WITH_PRICE_SIZE;
        out.kind      = EV_EXECUTE;
        is_order  = 1'b1;
        out.priced    = 1'b1;
        out.printable = (in_message[ORDER_EXECUTED_WITH_PRICE_PRINTABLE_AT] == "Y");
        is_right      = out.printable || (in_message[ORDER_EXECUTED_WITH_PRICE_PRINTABLE_AT] == "N");
        out.qty       = u32(in_message, ORDER_EXECUTED_SHARES_AT);
        out.price     = u32(in_message, ORDER_EXECUTED_WITH_PRICE_PRICE_AT);
      end
      ORDER_CANCEL: begin
        size     = ORDER_CANCEL_SIZE;
        out.kind = EV_REDUCE;
        is_order  = 1'b1;
        out.qty  = u32(in_message, ORDER_CANCEL_SHARES_AT);
      end
      ORDER_DELETE: begin
        size     = ORDER_DELETE_SIZE;
        out.kind = EV_DELETE;
        is_order  = 1'b1;
      end
      ORDER_REPLACE: begin
        size      = ORDER_REPLACE_SIZE;
        out.kind  = EV_REPLACE;
        is_order  = 1'b1;
        out.qty   = u32(in_message, ORDER_REPLACE_SHARES_AT);
        out.price = u32(in_message, ORDER_REPLACE_PRICE_AT);
      end
      TRADE: begin
        size      = TRADE_SIZE;
        out.kind  = EV_TRADE;
        out.qty   = u32(in_message, TRADE_SHARES_AT);
        out.price = u32(in_message, TRADE_PRICE_AT);
      end
      CROSS_TRADE: begin
        size      = CROSS_TRADE_SIZE;
        out.kind  = EV_TRADE;
        // A cross of 2^32 shares or more has never been; its size would be shown cut.
        is_right  = (u32(in_message, CROSS_TRADE_SHARES_AT) == '0);
        out.qty   = u32(in_message, CROSS_TRADE_SHARES_AT + 4);
        out.price = u32(in_message, CROSS_TRADE_PRICE_AT);
      end
      STOCK_TRADING_ACTION: begin
        size          = STOCK_TRADING_ACTION_SIZE;
        out.kind      = EV_STATUS;
        out.printable = (in_message[STOCK_TRADING_ACTION_STATE_AT] == "T");
        case (in_message[STOCK_TRADING_ACTION_STATE_AT])
          "H", "P", "Q", "T": ;
          default: is_right = 1'b0;
        endcase
      end
      OPERATIONAL_HALT: begin
        size          = OPERATIONAL_HALT_SIZE;
        out.kind      = EV_STATUS;
        out.printable = (in_message[OPERATIONAL_HALT_ACTION_AT] == "T");
        is_known      = (in_message[OPERATIONAL_HALT_MARKET_AT] == cfg_market);
        is_right      = out.printable || (in_message[OPERATIONAL_HALT_ACTION_AT] == "H");
      end
      SYSTEM_EVENT: begin
        size          = SYSTEM_EVENT_SIZE;
        out.kind      = EV_STATUS;
        out.priced    = 1'b1;
        is_ours       = 1'b1;
        case (in_message[SYSTEM_EVENT_EVENT_AT])
          "O", "Q":           out.printable = 1'b1;
          "S", "M", "E", "C": out.printable = 1'b0;
          default:            is_right = 1'b0;
        endcase
      end
      default: is_known = 1'b0;
    endcase
    // Longer than the table says is allowed: the specification lets messages grow.
    is_right      = is_right && (in_length >= size);
    // An order's number that the core has no room for.
    if (is_order && ((id >> ID_BITS) != '0)) is_right = 1'b0;
    if ((kind == ORDER_REPLACE) && ((new_id >> ID_BITS) != '0)) is_right = 1'b0;
    out_valid     = in_valid && is_ours && is_known && is_right;
    out_malformed = in_valid && is_ours && is_known && !is_right;
  end

endmodule

`default_nettype wire
