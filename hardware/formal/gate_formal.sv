// What is proved of the gate, for every order, every word of software's and every fault, in every clock: an order that
// is let through passes each check at that moment, and each limit holds over all orders together.
`default_nettype none

module gate_formal
  import core_pkg::*;
(
    input wire logic               clk,
    input wire logic               arm,
    input wire logic               disarm,
    input wire logic               alive,
    input wire logic               set_left,
    input wire logic               set_held,
    input wire logic               add_held,
    input wire logic signed [31:0] value,
    input wire logic               healthy,
    input wire logic               trading,
    input wire logic               reference,
    // What software has written before it arms; it does not change while the core runs.
    input wire logic [31:0]        watchdog,
    input wire logic [31:0]        low,
    input wire logic [31:0]        high,
    input wire logic [31:0]        size,
    input wire logic [31:0]        position,
    input wire logic [31:0]        token_clocks,
    input wire logic [15:0]        max_tokens,
    input wire logic               put,
    input wire order_t             wanted,
    input wire logic               out_ready
);
  logic started = 1'b0;
  wire logic rst = !started;
  always_ff @(posedge clk) started <= 1'b1;

  logic [207:0] written_reg;
  wire logic [207:0] written = {watchdog, low, high, size, position, token_clocks, max_tokens};
  always_ff @(posedge clk) begin
    written_reg <= written;
    if (started) assume (written == written_reg);
  end

  // The queue as the core has it: an order is announced a clock before it is offered.
  logic   queue_valid = 1'b0;
  order_t queued = '0;
  logic   in_ready, out_valid, armed, expired;
  order_t out;
  wire logic takes = !queue_valid || in_ready;
  wire logic comes = queue_valid ? !in_ready : put;
  order_t soon;
  assign soon = queue_valid ? queued : wanted;
  always_ff @(posedge clk) begin
    if (queue_valid && in_ready) queue_valid <= 1'b0;
    if (!queue_valid && put) begin
      queue_valid <= 1'b1;
      queued      <= wanted;
    end
    if (rst) queue_valid <= 1'b0;
  end

  logic signed [33:0] held;
  logic [31:0] left, passed;
  logic [15:0] tokens;
  logic [BLOCKS-1:0][31:0] blocked;
  gate #(.QTY_MOST(32'd999999), .PRICE_MOST(32'd1999999900)) dut (
      .clk, .rst, .arm, .disarm, .alive, .cfg_watchdog(watchdog), .cfg_low(low), .cfg_high(high), .cfg_size(size),
      .cfg_position(position), .cfg_tokens(max_tokens), .cfg_token_clocks(token_clocks), .set_left, .set_held, .add_held,
      .value, .healthy, .trading, .reference, .soon_valid(comes), .soon, .in_valid(queue_valid), .in(queued), .in_ready,
      .out_valid, .out, .out_ready, .armed, .expired, .held, .left, .tokens, .passed, .blocked
  );

  wire logic passes = out_valid && out_ready && started;
  // What `left` was a clock ago, where software has not written it.
  logic [31:0] left_before = '0;
  logic        passed_before = 1'b0, wrote_before = 1'b1;
  always_ff @(posedge clk) begin
    left_before   <= left;
    passed_before <= passes;
    wrote_before  <= set_left || rst;
    if (passes) begin
      assert (armed);
      assert (healthy && !disarm);
      assert (trading && reference);
      assert (out == queued);
      assert ((out.qty != '0) && (out.qty <= size) && (out.qty <= 32'd999999));
      assert ((out.price >= low) && (out.price <= high) && (out.price <= 32'd1999999900));
      assert (left != '0);
      assert (tokens != '0);
      assert (!dut.charges_reg);
      assert (out.ask ? (held - signed'({2'b00, out.qty}) >= -signed'({2'b00, position}))
                      : (held + signed'({2'b00, out.qty}) <= signed'({2'b00, position})));
    end
    // What is judged a clock ahead is of the order that is offered, and nothing it is judged by has moved since.
    if (started && dut.known_reg) begin
      assert (queue_valid);
      assert (dut.size_reg == ((queued.qty == '0) || (queued.qty > size) || (queued.qty > 32'd999999)));
      assert (dut.collar_reg == ((queued.price < low) || (queued.price > high) || (queued.price > 32'd1999999900)));
      assert (dut.change_reg == (queued.ask ? -signed'({2'b00, queued.qty}) : signed'({2'b00, queued.qty})));
      assert (dut.over_reg == (queued.ask ? (held + dut.change_reg < -signed'({2'b00, position}))
                                          : (held + dut.change_reg > signed'({2'b00, position}))));
      assert (!dut.charges_reg);
      assert (dut.no_tokens_reg || (tokens != '0));
      assert (dut.none_left_reg || (left != '0));
    end
    if (started) assert (tokens <= max_tokens);
    // Every order that is let through is one fewer, and no other clock takes one away.
    if (started && !wrote_before) assert (left == left_before - 32'(passed_before));
    if (started && !takes) assert (queue_valid);
  end
endmodule

`default_nettype wire
