// The whole core with MOEX's feed and a rule that buys at every new offer: what the instrument's own numbers stop.
`default_nettype none

module moex_core_test (output logic done, output int failures);
  import core_pkg::*;
  import test_pkg::*;
  import moex_test_pkg::*;

  logic clk = 0, rst = 1;
  always #1 clk = !clk;

  logic [2:0][63:0] rx_data;
  logic [2:0][7:0]  rx_keep;
  logic [2:0]       rx_valid = 0, rx_last = 0;
  logic [63:0] tx_data;
  logic [7:0]  tx_keep, address = 0;
  logic        tx_valid, tx_last, write = 0;
  logic [31:0] write_data = 0, read_data;
  /* verilator lint_off PINCONNECTEMPTY */
  core dut (
      .clk, .rst, .rx_data, .rx_keep, .rx_valid, .rx_last, .rx_error(3'd0), .tx_data, .tx_keep, .tx_valid, .tx_last,
      .tx_ready(1'b1), .write, .address, .write_data, .read_data, .told(), .told_live(), .told_bid_valid(),
      .told_bid_price(), .told_bid_qty(), .told_ask_valid(), .told_ask_price(), .told_ask_qty(), .told_seq(), .trace_valid(),
      .trace_ask(), .trace_far(), .trace_price(), .trace_qty(), .trace_orders(), .order_passed(), .order_seq(),
      .order_blocked()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  int frames = 0;
  always @(negedge clk) frames += int'(tx_valid && tx_last);

  task automatic check(input logic holds, input string what);
    if (!holds) begin
      failures++;
      $display("FAILED moex_core_test: %s", what);
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

  task automatic send(input int line, input bytes_t datagram);
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
    end
    @(negedge clk);
    rx_valid = 0; rx_last = 0;
  endtask

  int seq = 1, id = 1, rpt = 1, price = 561000;

  // A new best offer as the instrument's event `at`.
  task automatic offer(input int at, input int orders, input string what);
    int f = frames;
    price -= 25;
    id++;
    send(0, message(32'(seq), 101, 1, added(at, "1", $sformatf("%0d", id), longint'(price), 100)));
    seq++;
    repeat (100) @(negedge clk);
    check(frames == f + orders, {what, (orders == 0) ? ": the order is not sent" : ": the order is sent"});
  endtask

  initial begin
    logic [31:0] faults, read;
    bytes_t empty;
    done = 0; failures = 0;
    repeat (3) @(negedge clk);
    rst = 0;
    repeat (5000) @(negedge clk);
    for (int i = 0; i < 3; i++) begin set(1 + i, 32'hef010203); set(4 + i, 32'd26400); end
    set(11, 32'd0); set(12, 32'd520000); set(13, 32'd200); set(17, 32'd1); set(18, 32'd2000000); set(19, 32'd1000);
    set(20, 32'd100000); set(21, 32'd100); set(22, 32'd1); set(23, 32'd1000); set(24, 32'd0);
    send(0, message(32'(seq), 101, 1, added(rpt, "0", "1", 64'd550000, 100)));
    seq++;
    rpt++;
    offer(rpt++, 0, "before it is armed");
    set(0, 32'b00001);
    offer(rpt++, 1, "armed");
    offer(rpt++, 1, "and again");
    get(12, read);
    check(read == 32'h3, "MsgSeqNum of the next order");
    // An event that was seen, in a packet that was not.
    offer(rpt - 1, 0, "a number that was seen");
    offer(rpt++, 1, "behind it");
    get(1, faults);
    check(faults == 0, "a number that was seen is no fault");
    // One is missing although no packet is.
    rpt++;
    offer(rpt++, 0, "a hole in the instrument's numbers");
    get(1, faults);
    check(faults == 32'(1 << FAULT_NUMBER), "its fault");
    send(2, message(32'(seq), 101, 1, added(rpt, "1", "5555", 64'd561000, 100)));
    seq++;
    rpt++;
    set(0, 32'b10100);
    repeat (40) @(negedge clk);
    offer(rpt++, 0, "right again and not armed");
    set(0, 32'b00001);
    offer(rpt++, 1, "armed again");
    // Software took a snapshot: the next number is another one.
    set(34, 32'd500);
    offer(500, 1, "behind a snapshot");
    offer(499, 0, "what the snapshot had");
    offer(502, 0, "a hole behind it");
    // The instrument has no orders: a worse offer than those before it is the best.
    set(0, 32'b10100);
    set(34, 32'd600);
    repeat (40) @(negedge clk);
    set(0, 32'b00001);
    price = 580000;
    offer(600, 0, "an offer behind better ones");
    empty = {8'hfe, text("USD000UTSTOM"), text("CETS"), optional(601), null_one(), text("J"), null_one(), null_one(), null_one()};
    send(0, message(32'(seq), 101, 1, empty));
    seq++;
    repeat (5000) @(negedge clk);
    offer(602, 1, "the same once the book was emptied");
    done = 1;
  end
  wire logic unused = &{1'b0, tx_data, tx_keep, unused};
endmodule

`default_nettype wire
