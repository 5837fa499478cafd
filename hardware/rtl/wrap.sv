// The core on four pins, for timing alone: every input of the core comes from a register of a shift register, every
// output goes into one, and the outputs are folded by exclusive or, a register a level, so that only the core's own
// paths are long.
`default_nettype none

module wrap (
    input  wire logic clk,
    input  wire logic rst_in,
    input  wire logic shift_in,
    output logic      folded_out
);

  localparam int INPUTS = 3*64 + 3*8 + 3 + 3 + 3 + 1 + 1 + 8 + 32;
  localparam int OUTPUTS = 64 + 8 + 1 + 1 + 32 + 1 + 1 + 1 + 32 + 40 + 1 + 32 + 40 + 40 + 1 + 1 + 1 + 32 + 40 + 16 + 1 + 40 + 1;
  localparam int GROUPS = (OUTPUTS + 7) / 8;
  localparam int FOLDS = (GROUPS + 7) / 8;

  logic [INPUTS-1:0] shift_reg, in_reg;
  logic              rst_first_reg, rst_reg;
  always_ff @(posedge clk) begin
    shift_reg     <= {shift_reg[INPUTS-2:0], shift_in};
    in_reg        <= shift_reg;
    rst_first_reg <= rst_in;
    rst_reg       <= rst_first_reg;
  end

  logic [OUTPUTS-1:0]  outs;
  logic [8*GROUPS-1:0] out_reg;
  logic [8*FOLDS-1:0]  group_reg;
  logic [FOLDS-1:0]    fold_reg;

  logic [2:0][63:0] rx_data;
  logic [2:0][7:0]  rx_keep;
  logic [2:0]       rx_valid, rx_last, rx_error;
  logic             tx_ready, write;
  logic [7:0]       address;
  logic [31:0]      write_data;
  assign {rx_data, rx_keep, rx_valid, rx_last, rx_error, tx_ready, write, address, write_data} = in_reg;

  logic [63:0] tx_data;
  logic [7:0]  tx_keep;
  logic        tx_valid, tx_last, told, told_live, told_bid_valid, told_ask_valid, trace_valid, trace_ask, trace_far;
  logic        order_passed, order_blocked;
  logic [31:0] read_data, told_bid_price, told_ask_price, trace_price;
  logic [39:0] told_bid_qty, told_ask_qty, trace_qty;
  logic [15:0] trace_orders;
  logic [core_pkg::SEQ_BITS-1:0] told_seq, order_seq;

  core whole (
      .clk, .rst(rst_reg), .rx_data, .rx_keep, .rx_valid, .rx_last, .rx_error, .tx_data, .tx_keep, .tx_valid, .tx_last,
      .tx_ready, .write, .address, .write_data, .read_data, .told, .told_live, .told_bid_valid, .told_bid_price,
      .told_bid_qty, .told_ask_valid, .told_ask_price, .told_ask_qty, .told_seq, .trace_valid, .trace_ask, .trace_far,
      .trace_price, .trace_qty, .trace_orders, .order_passed, .order_seq, .order_blocked
  );

  assign outs = {tx_data, tx_keep, tx_valid, tx_last, read_data, told, told_live, told_bid_valid, told_bid_price,
                 told_bid_qty, told_ask_valid, told_ask_price, told_ask_qty, told_seq, trace_valid, trace_ask, trace_far,
                 trace_price, trace_qty, trace_orders, order_passed, order_seq, order_blocked};

  always_ff @(posedge clk) begin
    out_reg <= (8*GROUPS)'(outs);
    for (int i = 0; i < GROUPS; i++) group_reg[i] <= ^out_reg[8*i +: 8];
    for (int i = GROUPS; i < 8*FOLDS; i++) group_reg[i] <= 1'b0;
    for (int i = 0; i < FOLDS; i++) fold_reg[i] <= ^group_reg[8*i +: 8];
    folded_out <= ^fold_reg;
  end

endmodule

`default_nettype wire
