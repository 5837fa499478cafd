// line_arbiter: each message once and in sequence from two lines, the wait for the other line, the gap, its end.
`default_nettype none

module arbiter_test (output logic done, output int failures);
  import core_pkg::*;

  logic clk = 0, rst = 1;
  always #1 clk = !clk;

  packet_t waiting [3][$];
  event_t  events [3][$];
  logic    [2:0] packet_valid, packet_pop, event_pop;
  packet_t [2:0] packet;
  event_t  [2:0] head;
  logic    out_valid, gap, live, duplicate, resume = 0, out_ready = 1;
  event_t  out;
  logic [SEQ_BITS-1:0] expected;
  line_arbiter dut (
      .clk, .rst, .cfg_patience(16'd50), .cfg_start(1'b0), .cfg_seq('0), .stop(1'b0), .resume, .packet_valid, .packet,
      .packet_pop, .head, .event_pop, .out_valid, .out, .out_ready, .gap, .live, .expected, .tick_duplicate(duplicate)
  );

  always_comb for (int i = 0; i < 3; i++) begin
    packet_valid[i] = (sizes[i] != 0);
    packet[i]       = firsts[i];
    head[i]         = heads[i];
  end
  int      sizes [3];
  packet_t firsts [3];
  event_t  heads [3];
  logic [SEQ_BITS-1:0] taken [$];
  int gaps = 0, lives = 0;

  always @(negedge clk) begin
    for (int i = 0; i < 3; i++) begin
      sizes[i]  <= waiting[i].size();
      firsts[i] <= (waiting[i].size() != 0) ? waiting[i][0] : '0;
      heads[i]  <= (events[i].size() != 0) ? events[i][0] : '0;
    end
  end
  always @(posedge clk) if (!rst) begin
    for (int i = 0; i < 3; i++) begin
      if (packet_pop[i]) void'(waiting[i].pop_front());
      if (event_pop[i]) void'(events[i].pop_front());
    end
    gaps += int'(gap);
    if (out_valid && out_ready) begin
      if (out.kind == EV_LIVE) lives++;
      else taken.push_back(out.seq);
    end
    out_ready <= ($urandom_range(3) != 0);
  end

  task automatic check(input logic holds, input string what);
    if (!holds) begin
      failures++;
      $display("FAILED arbiter_test: %s", what);
    end
  endtask

  task automatic put(input int line, input int seq, input int count);
    event_t  e = '0;
    packet_t p;
    for (int i = 0; i < count; i++) begin
      e.kind = EV_DELETE;
      e.seq  = SEQ_BITS'(seq + i);
      events[line].push_back(e);
    end
    p.seq    = SEQ_BITS'(seq);
    p.next   = SEQ_BITS'(seq + count);
    p.events = 8'(count);
    waiting[line].push_back(p);
  endtask

  task automatic expect_all(input int upto, input string what);
    check(taken.size() == upto, {what, ": how many"});
    for (int i = 0; i < taken.size(); i++) check(taken[i] == SEQ_BITS'(i + 1), {what, ": each in its turn"});
  endtask

  initial begin
    int seq, count;
    done = 0; failures = 0;
    repeat (3) @(negedge clk);
    rst = 0;
    // Both lines whole, by turns ahead; sometimes a line has it in other packets.
    seq = 1;
    for (int n = 0; n < 200; n++) begin
      count = $urandom_range(4) + 1;
      if ($urandom_range(1) == 0) begin put(0, seq, count); repeat ($urandom_range(9)) @(posedge clk); end
      if (count > 1) begin put(1, seq, 1); put(1, seq + 1, count - 1); end
      else put(1, seq, count);
      seq += count;
      repeat ($urandom_range(12)) @(posedge clk);
    end
    repeat (400) @(posedge clk);
    expect_all(seq - 1, "two lines");
    check(gaps == 0 && lives == 1, "no gap, and told once that the stream is whole");

    // Ahead on one line: it waits for the other.
    put(0, seq + 2, 1);
    repeat (30) @(posedge clk);
    check(taken.size() == seq - 1, "it waits");
    put(1, seq, 2);
    repeat (60) @(posedge clk);
    expect_all(seq + 2, "the other line brings what is missing");
    seq += 3;
    check(gaps == 0, "in time");

    // Missing on both: a gap, and nothing more until software has mended it.
    put(0, seq + 5, 1); put(1, seq + 5, 1);
    repeat (200) @(posedge clk);
    check(gaps == 1 && !live && lives == 2, "a gap, told once in the stream");
    check(taken.size() == seq - 1, "nothing is taken");
    put(2, seq, 5);
    repeat (60) @(posedge clk);
    expect_all(seq + 4, "what software sends");
    resume = 1; @(negedge clk); resume = 0;
    repeat (60) @(posedge clk);
    expect_all(seq + 5, "and what waited");
    check(live && lives == 3 && gaps == 1, "whole again");
    done = 1;
  end
  wire logic unused = &{1'b0, expected, duplicate, unused};
endmodule

`default_nettype wire
