// gate: for each check the order that is not sent, and that it would be without.
`default_nettype none

module gate_test (output logic done, output int failures);
  import core_pkg::*;

  logic clk = 0, rst = 1;
  always #2 clk = !clk;

  logic arm = 0, disarm = 0, alive = 0, set_left = 0, set_held = 0, add_held = 0, healthy = 1, trading = 1, reference = 1;
  logic [31:0] watchdog = 0, low = 100, high = 200, size = 50, most = 1000, token_clocks = 0, left, passed;
  logic [15:0] max_tokens = 9, tokens;
  logic signed [31:0] value = 0;
  logic soon_valid = 0, in_valid = 0, in_ready, out_valid, armed, expired;
  order_t in, out;
  logic signed [33:0] held;
  logic [BLOCKS-1:0][31:0] blocked;
  gate #(.QTY_MOST(32'd60), .PRICE_MOST(32'd250)) dut (
      .clk, .rst, .arm, .disarm, .alive, .cfg_watchdog(watchdog), .cfg_low(low), .cfg_high(high), .cfg_size(size),
      .cfg_position(most), .cfg_tokens(max_tokens), .cfg_token_clocks(token_clocks), .set_left, .set_held, .add_held, .value,
      .healthy, .trading, .reference, .soon_valid, .soon(in), .in_valid, .in, .in_ready, .out_valid, .out, .out_ready(1'b1), .armed, .expired, .held,
      .left, .tokens, .passed, .blocked
  );

  task automatic check(input logic holds, input string what);
    if (!holds) begin
      failures++;
      $display("FAILED gate_test: %s", what);
    end
  endtask

  int next_seq = 1;
  // Offers an order; `reason` is that of the check that is to stop it, or -1: it leaves.
  task automatic order(input logic sell, input int qty, input int price, input int reason, input string what);
    logic [31:0] was [BLOCKS], sent;
    for (int i = 0; i < BLOCKS; i++) was[i] = blocked[i];
    sent = passed;
    @(negedge clk);
    in = '{ask: sell, qty: 32'(qty), price: 32'(price), seq: SEQ_BITS'(next_seq)};
    soon_valid = 1;
    @(negedge clk);
    soon_valid = 0;
    in_valid = 1;
    #1;
    check(out_valid == (reason < 0), {what, (reason < 0) ? ": it leaves" : ": it is not sent"});
    @(negedge clk);
    in_valid = 0;
    @(negedge clk);
    check(passed == sent + 32'(reason < 0), {what, ": counted as sent"});
    for (int i = 0; i < BLOCKS; i++) check(blocked[i] == was[i] + 32'(i == reason), {what, ": counted by its reason"});
    next_seq++;
  endtask

  // One clock of one of software's words.
  typedef enum int { ARM, DISARM, ALIVE, SET_LEFT, SET_HELD, ADD_HELD } word_t;
  task automatic pulse(input word_t what);
    @(negedge clk);
    arm      = (what == ARM);
    disarm   = (what == DISARM);
    alive    = (what == ALIVE);
    set_left = (what == SET_LEFT);
    set_held = (what == SET_HELD);
    add_held = (what == ADD_HELD);
    @(negedge clk);
    arm = 0; disarm = 0; alive = 0; set_left = 0; set_held = 0; add_held = 0;
  endtask

  initial begin
    done = 0; failures = 0; in = '0;
    repeat (3) @(negedge clk);
    rst = 0;
    value = 100; pulse(SET_LEFT);
    order(0, 10, 150, int'(BLOCK_DISARMED), "before it is armed");
    pulse(ARM);
    order(0, 10, 150, -1, "armed");
    order(0, 0, 150, int'(BLOCK_SIZE), "nothing");
    order(0, 51, 150, int'(BLOCK_SIZE), "too much");
    order(0, 50, 150, -1, "as much as may be");
    order(0, 10, 99, int'(BLOCK_COLLAR), "below the collar");
    order(0, 10, 201, int'(BLOCK_COLLAR), "above the collar");
    order(0, 10, 200, -1, "at its end");
    // What an order's text has no room for, whatever software allows.
    size = 100; high = 1000;
    order(0, 61, 150, int'(BLOCK_SIZE), "more than an order has room for");
    order(0, 10, 251, int'(BLOCK_COLLAR), "a price that an order has no room for");
    size = 50; high = 200;
    trading = 0; order(0, 10, 150, int'(BLOCK_TRADING), "in a halt"); trading = 1;
    reference = 0; order(0, 10, 150, int'(BLOCK_REFERENCE), "without a reference"); reference = 1;
    next_seq = 1000; order(0, 10, 150, -1, "an order");
    next_seq = 1000; order(0, 10, 150, int'(BLOCK_DUPLICATE), "the same of the same message");
    next_seq = 1000; order(0, 11, 150, -1, "another of the same message");
    next_seq = 2000;
    check(held == 34'sd91, "what left counts as held");
    value = 980; pulse(SET_HELD);
    order(0, 20, 150, -1, "to the position's end");
    order(0, 1, 150, int'(BLOCK_POSITION), "one share more");
    order(1, 50, 150, -1, "the other way");
    value = -30; pulse(ADD_HELD);
    check(held == 34'sd920, "what was cancelled is given back");
    value = -1000; pulse(SET_HELD);
    order(1, 1, 150, int'(BLOCK_POSITION), "one share more, short");
    value = 0; pulse(SET_HELD);
    order(0, 1, 150, -1, "a token");
    order(0, 1, 150, -1, "a token");
    order(0, 1, 150, int'(BLOCK_TOKENS), "no token is left");
    token_clocks = 60; repeat (40) @(negedge clk);
    order(0, 1, 150, -1, "one has come back");
    order(0, 1, 150, int'(BLOCK_TOKENS), "one only");
    token_clocks = 1; repeat (12) @(negedge clk);
    value = 2; pulse(SET_LEFT);
    order(0, 1, 150, -1, "the last but one");
    order(0, 1, 150, -1, "the last");
    check(!armed, "disarmed with the last order");
    order(0, 1, 150, int'(BLOCK_DISARMED), "none is left");
    pulse(ARM);
    order(0, 1, 150, int'(BLOCK_LEFT), "armed again, and none is left");
    value = 100; pulse(SET_LEFT);
    order(0, 1, 150, -1, "some are left again");
    // Each of these disarms for good.
    @(negedge clk); healthy = 0;
    order(0, 1, 150, int'(BLOCK_STOPPED) == 1 ? int'(BLOCK_DISARMED) : 0, "feed or book not right");
    healthy = 1;
    order(0, 1, 150, int'(BLOCK_DISARMED), "right again, and not armed");
    @(negedge clk); healthy = 0; pulse(ARM); check(!armed, "cannot be armed while it is not right"); healthy = 1;
    pulse(ARM);
    // In the very clock of the fault.
    @(negedge clk);
    in = '{ask: 1'b0, qty: 32'd1, price: 32'd150, seq: SEQ_BITS'(5000)};
    soon_valid = 1; @(negedge clk); soon_valid = 0;
    in_valid = 1; #1;
    check(out_valid, "an order in a clock without a fault is sent");
    healthy = 0; #1;
    check(!out_valid, "an order in the clock of the fault is not sent");
    @(negedge clk); in_valid = 0; healthy = 1;
    pulse(ARM); pulse(DISARM);
    order(0, 1, 150, int'(BLOCK_DISARMED), "disarmed by software");
    watchdog = 100; pulse(ALIVE); pulse(ARM);
    repeat (80) @(negedge clk);
    order(0, 1, 150, -1, "software lives");
    repeat (120) @(negedge clk);
    check(!armed && expired, "the watchdog");
    order(0, 1, 150, int'(BLOCK_DISARMED), "after the watchdog");
    pulse(ALIVE);
    order(0, 1, 150, int'(BLOCK_DISARMED), "software lives again, and has not armed");
    pulse(ARM);
    order(0, 1, 150, -1, "armed again");
    done = 1;
  end
  wire logic unused = &{1'b0, in_ready, out, left, tokens, unused};
endmodule

`default_nettype wire
