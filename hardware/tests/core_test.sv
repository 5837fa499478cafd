// The whole core with a rule that buys at every new offer: what stops it, and that the order is then not sent.
`default_nettype none

module core_test (output logic done, output int failures);
  import core_pkg::*;
  import test_pkg::*;

  logic clk = 0, rst = 1;
  always #1 clk = !clk;

  logic [2:0][63:0] rx_data;
  logic [2:0][7:0]  rx_keep;
  logic [2:0]       rx_valid = 0, rx_last = 0, rx_error = 0;
  logic [63:0] tx_data;
  logic [7:0]  tx_keep, address = 0;
  logic        tx_valid, tx_last, write = 0, passed_one, blocked_one;
  logic [31:0] write_data = 0, read_data;
  /* verilator lint_off PINCONNECTEMPTY */
  core dut (
      .clk, .rst, .rx_data, .rx_keep, .rx_valid, .rx_last, .rx_error, .tx_data, .tx_keep, .tx_valid, .tx_last,
      .tx_ready(1'b1), .write, .address, .write_data, .read_data, .told(), .told_live(), .told_bid_valid(),
      .told_bid_price(), .told_bid_qty(), .told_ask_valid(), .told_ask_price(), .told_ask_qty(), .told_seq(), .trace_valid(),
      .trace_ask(), .trace_far(), .trace_price(), .trace_qty(), .trace_orders(), .order_passed(passed_one), .order_seq(),
      .order_blocked(blocked_one)
  );
  /* verilator lint_on PINCONNECTEMPTY */

  int frames = 0, blocks = 0, passes = 0;
  always @(negedge clk) begin
    frames += int'(tx_valid && tx_last);
    passes += int'(passed_one);
    blocks += int'(blocked_one);
  end

  task automatic check(input logic holds, input string what);
    if (!holds) begin
      failures++;
      $display("FAILED core_test: %s", what);
    end
  endtask

  task automatic set(input int at, input logic [31:0] data);
    @(negedge clk);
    write = 1; address = 8'(at); write_data = data;
    @(negedge clk);
    write = 0;
  endtask

  task automatic get(input int at, output logic [31:0] data);
    @(negedge clk);
    address = 8'(at);
    @(negedge clk);
    data = read_data;
  endtask

  task automatic send(input int line, input bytes_t datagram, input logic error);
    bytes_t f = framed(datagram, 16'd26400);
    logic [63:0] data;
    logic [7:0]  keep;
    for (int at = 0; at < f.size(); at += 8) begin
      @(negedge clk);
      for (int i = 0; i < 8; i++) begin
        data[8*i +: 8] = (at + i < f.size()) ? f[at+i] : 8'h00;
        keep[i] = (at + i < f.size());
      end
      rx_data  = {3{data}};
      rx_keep  = {3{keep}};
      rx_valid = 3'd1 << line;
      rx_last  = (at + 8 >= f.size()) ? 3'd1 << line : 3'd0;
      rx_error = (error && (at + 8 >= f.size())) ? 3'd1 << line : 3'd0;
    end
    @(negedge clk);
    rx_valid = 0; rx_last = 0; rx_error = 0;
  endtask

  int seq = 1, id = 1, price = 1150000;

  // A new best offer, on line A, as message `at`.
  function automatic bytes_t offer(input int at);
    price -= 100;
    id++;
    offer = {mold(64'(at), 1), block(itch_add(16'd7, 64'(id), 1'b1, 32'd100, 32'(price)))};
  endfunction

  task automatic trade(input int orders, input string what);
    int f = frames;
    send(0, offer(seq), 0);
    seq++;
    repeat (60) @(negedge clk);
    check(frames == f + orders, {what, (orders == 0) ? ": the order is not sent" : ": the order is sent"});
  endtask

  task automatic mend(input string what);
    logic [31:0] status;
    set(0, 32'b10100);
    repeat (40) @(negedge clk);
    trade(0, {what, ", right again and not armed"});
    set(0, 32'b00001);
    trade(1, {what, ", armed again"});
    get(0, status);
    check(status[1:0] == 2'b11, {what, ": its state"});
  endtask

  initial begin
    logic [31:0] faults;
    bytes_t p;
    done = 0; failures = 0;
    repeat (3) @(negedge clk);
    rst = 0;
    repeat (5000) @(negedge clk);
    for (int i = 0; i < 3; i++) begin set(1 + i, 32'hef010203); set(4 + i, 32'd26400); end
    set(7, "SESS"); set(8, "ION "); set(9, "01"); set(10, 32'd7); set(11, {23'd0, 1'b1, 8'("Q")});
    set(12, 32'd1000000); set(13, 32'd200); set(17, 32'd1); set(18, 32'd2000000); set(19, 32'd1000); set(20, 32'd100000);
    set(21, 32'd100); set(22, 32'd1); set(23, 32'd1000); set(24, 32'd0);
    // A bid, so that there is a middle to judge by.
    p = {mold(64'd1, 1), block(itch_add(16'd7, 64'd1, 1'b0, 32'd100, 32'd1010000))};
    send(0, p, 0);
    seq = 2;
    trade(0, "before it is armed");
    set(0, 32'b00001);
    trade(1, "armed");

    // Missing on both lines.
    seq++;
    send(0, offer(seq), 0);
    repeat (400) @(negedge clk);
    check(frames == 1, "a gap: the order is not sent");
    get(1, faults);
    check(faults == 32'(1 << FAULT_GAP), "a gap: its fault");
    p = {mold(64'(seq - 1), 1), block(itch_add(16'd7, 64'd900, 1'b0, 32'd1, 32'd1010000))};
    send(2, p, 0);
    repeat (60) @(negedge clk);
    seq++;
    mend("a gap");

    // A damaged frame, where the core is told to stop at one.
    p = offer(seq);
    send(0, p, 1);
    repeat (60) @(negedge clk);
    send(1, p, 0);
    repeat (60) @(negedge clk);
    get(1, faults);
    check(frames == 2 && faults == 32'(1 << FAULT_FCS), "a damaged frame: the order is not sent");
    send(2, p, 0);
    seq++;
    repeat (60) @(negedge clk);
    mend("a damaged frame");

    // Told not to, the other line's copy is taken.
    set(11, {24'd0, 8'("Q")});
    p = offer(seq);
    send(0, p, 1);
    repeat (20) @(negedge clk);
    send(1, p, 0);
    repeat (60) @(negedge clk);
    check(frames == 4, "a damaged frame, the other line's copy: the order is sent");
    seq++;

    // An order that is not there.
    p = {mold(64'(seq), 1), block(itch_delete(16'd7, 64'd4242))};
    send(0, p, 0);
    seq++;
    repeat (60) @(negedge clk);
    get(1, faults);
    check(faults == 32'(1 << FAULT_UNKNOWN), "a deletion that meets nothing: its fault");
    send(2, offer(seq), 0);
    seq++;
    repeat (60) @(negedge clk);
    check(frames == 4, "a deletion that meets nothing: the order is not sent");
    mend("a deletion that meets nothing");

    // A halt.
    p = itch("H", 16'd7);
    p = {p, big(64'h2020202020202020, 8)};
    p.push_back("H"); p.push_back(" ");
    p = {p, big(64'h20202020, 4)};
    p = {mold(64'(seq), 1), block(p)};
    send(0, p, 0);
    seq++;
    trade(0, "in a halt");
    check(passes == frames, "what passed the gate has left");
    check(blocks > 0, "what was stopped is counted");
    done = 1;
  end
  wire logic unused = &{1'b0, tx_data, tx_keep, unused};
endmodule

`default_nettype wire
