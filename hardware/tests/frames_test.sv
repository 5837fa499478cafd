// udp_rx, mold_rx, itch_decode and packet_fifo together as feed_line: what of a frame comes through, and what of a bad
// one does not.
`default_nettype none

module frames_test (output logic done, output int failures);
  import core_pkg::*;
  import test_pkg::*;

  logic clk = 0, rst = 1;
  always #1 clk = !clk;

  logic [63:0] rx_data;
  logic [7:0]  rx_keep;
  logic        rx_valid = 0, rx_last = 0, rx_error = 0, packet_valid, packet_pop = 0, event_pop = 0;
  logic        good, bad, fcs, foreign_one, full;
  packet_t     packet;
  event_t      head;
  feed_line line (
      .clk, .rst, .cfg_address(32'hef010203), .cfg_port(16'd26400), .cfg_session("SESSION 01"), .cfg_locate(16'd7),
      .cfg_market("Q"), .rx_data, .rx_keep, .rx_valid, .rx_last, .rx_error, .packet_valid, .packet, .packet_pop, .head,
      .event_pop, .tick_good(good), .tick_bad(bad), .tick_fcs(fcs), .tick_foreign(foreign_one), .tick_full(full)
  );

  int goods = 0, bads = 0, damaged = 0, foreigns = 0, fulls = 0;
  always_ff @(negedge clk) begin
    goods += int'(good); bads += int'(bad); damaged += int'(fcs); foreigns += int'(foreign_one); fulls += int'(full);
  end

  task automatic check(input logic holds, input string what);
    if (!holds) begin
      failures++;
      $display("FAILED frames_test: %s", what);
    end
  endtask

  task automatic send(input bytes_t f, input logic error, input int idle);
    logic [63:0] data;
    logic [7:0]  keep;
    for (int at = 0; at < f.size(); at += 8) begin
      @(negedge clk);
      for (int i = 0; i < 8; i++) begin
        data[8*i +: 8] = (at + i < f.size()) ? f[at+i] : 8'hee;
        keep[i] = (at + i < f.size());
      end
      rx_data  = data;
      rx_keep  = keep;
      rx_valid = 1;
      rx_last  = (at + 8 >= f.size());
      rx_error = error && rx_last;
      if (idle > 0 && $urandom_range(2) == 0) begin
        @(negedge clk);
        rx_valid = 0; rx_last = 0; rx_error = 0;
        repeat ($urandom_range(idle)) @(negedge clk);
      end
    end
    @(negedge clk);
    rx_valid = 0; rx_last = 0; rx_error = 0;
    repeat (4) @(negedge clk);
  endtask

  task automatic take(input logic [63:0] seq, input logic [63:0] next, input int events, input string what);
    check(packet_valid, {what, ": it is there"});
    check(packet.seq == 40'(seq) && packet.next == 40'(next), {what, ": its numbers"});
    check(int'(packet.events) == events, {what, ": its events"});
    packet_pop = packet_valid;
    @(negedge clk);
    packet_pop = 0;
  endtask

  task automatic nothing(input string what);
    check(!packet_valid, {what, ": nothing comes through"});
  endtask

  initial begin
    bytes_t p, f, m;
    done = 0; failures = 0;
    repeat (3) @(negedge clk);
    rst = 0;

    // Every place within a word at which a message can begin and end.
    for (int pad = 11; pad < 51; pad++) begin
      m = itch("?", 16'd7);
      while (m.size() < pad) m.push_back(8'(m.size()));
      p = {mold(64'd100, 3), block(m), block(itch_add(16'd7, 64'h1_2345_6789, pad[0], 32'd300 + 32'(pad), 32'd1234500)),
           block(itch_delete(16'd7, 64'd42))};
      send(framed(p, 16'd26400), 0, pad % 3);
      take(64'd100, 64'd103, 2, $sformatf("a packet with %0d bytes before", pad));
      check(head.kind == EV_ADD && head.ask == pad[0] && head.qty == 32'd300 + 32'(pad) && head.price == 32'd1234500
            && head.id == 40'h1_2345_6789 && head.seq == 40'd101, "the added order");
      event_pop = 1; @(negedge clk); event_pop = 0;
      check(head.kind == EV_DELETE && head.id == 40'd42 && head.seq == 40'd102, "the deleted order");
      event_pop = 1; @(negedge clk); event_pop = 0;
    end
    check(goods == 40 && bads == 0, "forty good packets");

    // A full packet of small messages, more than one event a few clocks.
    p = mold(64'd200, 60);
    for (int i = 0; i < 60; i++) p = {p, block(itch_delete(16'd7, 64'(i)))};
    send(framed(p, 16'd26400), 0, 0);
    take(64'd200, 64'd260, 60, "sixty messages");
    for (int i = 0; i < 60; i++) begin
      check(head.id == 40'(i) && head.seq == 40'(200 + i), "each in turn");
      event_pop = 1; @(negedge clk); event_pop = 0;
    end

    // A heartbeat, the end of the session, and a packet of other instruments have numbers and no events.
    send(framed(mold(64'd260, 0), 16'd26400), 0, 0);
    take(64'd260, 64'd260, 0, "a heartbeat");
    send(framed(mold(64'd260, 65535), 16'd26400), 0, 0);
    take(64'd260, 64'd260, 0, "the end of the session");
    p = {mold(64'd260, 1), block(itch_delete(16'd8, 64'd1))};
    send(framed(p, 16'd26400), 0, 0);
    take(64'd260, 64'd261, 0, "another instrument");

    // What does not come through.
    p = {mold(64'd300, 1), block(itch_delete(16'd7, 64'd1))};
    send(framed(p, 16'd26401), 0, 0);
    nothing("another port");
    check(bads == 0, "which is nobody's fault");
    send(framed(p, 16'd26400), 1, 0);
    nothing("a damaged frame");
    check(damaged == 1, "which is counted");
    f = framed(p, 16'd26400); f[24] ^= 8'h01;
    send(f, 0, 0);
    nothing("a wrong header checksum");
    f = framed(p, 16'd26400); f[20] ^= 8'h20;
    send(f, 0, 0);
    nothing("a fragment");
    f = framed(p, 16'd26400); f[39] += 8'd40;
    send(f, 0, 0);
    nothing("a length beyond the frame");
    p = mold(64'd300, 2); p = {p, block(itch_delete(16'd7, 64'd1))};
    send(framed(p, 16'd26400), 0, 0);
    nothing("a message that is missing");
    p = {mold(64'd300, 1), block(itch_delete(16'd7, 64'd1))}; p[20] = 8'd1;
    send(framed(p, 16'd26400), 0, 0);
    nothing("a block that is too long");
    m = itch("D", 16'd7);
    p = {mold(64'd300, 1), block(m)};
    send(framed(p, 16'd26400), 0, 0);
    nothing("a message that is too short for its type");
    p = {mold(64'd300, 1), block(itch_add(16'd7, 64'd1, 0, 32'd1, 32'd1))}; p[22+19] = "X";
    send(framed(p, 16'd26400), 0, 0);
    nothing("a side that there is not");
    p = {mold(64'd300, 1), block(itch_add(16'd7, 64'h1_0000_0000_0000, 0, 32'd1, 32'd1))};
    send(framed(p, 16'd26400), 0, 0);
    nothing("an order's number of more than it has room for");
    p = {mold(64'd300, 1), block(itch_delete(16'd7, 64'd1))}; p[0] = "s";
    send(framed(p, 16'd26400), 0, 0);
    nothing("another session");
    check(foreigns == 1, "which is counted");
    p = {mold(64'h1_00_0000_0000, 1), block(itch_delete(16'd7, 64'd1))};
    send(framed(p, 16'd26400), 0, 0);
    nothing("a sequence number of more than it has room for");
    f = framed(p, 16'd26400);
    while (f.size() > 20) void'(f.pop_back());
    send(f, 0, 0);
    nothing("a frame that breaks off");

    // And after all that a good one does.
    p = {mold(64'd300, 1), block(itch_delete(16'd7, 64'd77))};
    send(framed(p, 16'd26400), 0, 0);
    take(64'd300, 64'd301, 1, "a good packet after bad ones");
    check(head.id == 40'd77, "its order");
    event_pop = 1; @(negedge clk); event_pop = 0;

    // No room: the packet is lost whole, and later ones are not.
    for (int k = 0; k < 3; k++) begin
      p = mold(64'd400 + 64'(60 * k), 60);
      for (int i = 0; i < 60; i++) p = {p, block(itch_delete(16'd7, 64'(i)))};
      send(framed(p, 16'd26400), 0, 0);
    end
    check(fulls == 1, "the third packet has no room");
    take(64'd400, 64'd460, 60, "the first of three");
    repeat (60) begin event_pop = 1; @(negedge clk); end
    event_pop = 0;
    take(64'd460, 64'd520, 60, "the second of three");
    nothing("the third");
    done = 1;
  end
endmodule

`default_nettype wire
