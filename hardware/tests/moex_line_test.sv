// MOEX's feed_line: what of a message comes through, and what of a bad one does not.
`default_nettype none

module moex_line_test (output logic done, output int failures);
  import core_pkg::*;
  import test_pkg::*;
  import moex_test_pkg::*;

  logic clk = 0, rst = 1;
  always #1 clk = !clk;

  logic [63:0] rx_data;
  logic [7:0]  rx_keep;
  logic        rx_valid = 0, rx_last = 0, rx_error = 0, packet_valid, packet_pop = 0, event_pop = 0;
  logic        good, bad, fcs, foreign_one, full;
  packet_t     packet;
  event_t      head;
  feed_line line (
      .clk, .rst, .cfg_address(32'hef010203), .cfg_port(16'd26400), .cfg_session('0), .cfg_locate('0), .cfg_market('0),
      .rx_data, .rx_keep, .rx_valid, .rx_last, .rx_error, .packet_valid, .packet, .packet_pop, .head,
      .event_pop, .tick_good(good), .tick_bad(bad), .tick_fcs(fcs), .tick_foreign(foreign_one), .tick_full(full)
  );

  int goods = 0, bads = 0, damaged = 0, fulls = 0;
  always_ff @(negedge clk) begin
    goods += int'(good); bads += int'(bad); damaged += int'(fcs); fulls += int'(full);
  end

  task automatic check(input logic holds, input string what);
    if (!holds) begin
      failures++;
      $display("FAILED moex_line_test: %s", what);
    end
  endtask

  // A frame's words, whether it ends early or not; `idle`: gaps between them.
  task automatic words(input bytes_t f, input int length, input logic error, input int idle);
    logic [63:0] data;
    logic [7:0]  keep;
    for (int at = 0; at < length; at += 8) begin
      @(negedge clk);
      for (int i = 0; i < 8; i++) begin
        data[8*i +: 8] = (at + i < length) ? f[at+i] : 8'hee;
        keep[i] = (at + i < length);
      end
      rx_data  = data;
      rx_keep  = keep;
      rx_valid = 1;
      rx_last  = (at + 8 >= length);
      rx_error = error && rx_last;
      if (idle > 0 && $urandom_range(2) == 0) begin
        @(negedge clk);
        rx_valid = 0; rx_last = 0; rx_error = 0;
        repeat ($urandom_range(idle)) @(negedge clk);
      end
    end
    @(negedge clk);
    rx_valid = 0; rx_last = 0; rx_error = 0;
  endtask

  task automatic send(input bytes_t datagram, input logic error, input int idle);
    bytes_t f = framed(datagram, 16'd26400);
    words(f, f.size(), error, idle);
    repeat (60) @(negedge clk);
  endtask

  task automatic taken(input logic [31:0] seq, input int events, input string what);
    check(packet_valid, {what, ": a packet"});
    check(packet.seq == 40'(seq) && packet.next == 40'(seq) + 1 && int'(packet.events) == events, {what, ": its numbers"});
    packet_pop = 1;
    @(negedge clk);
    packet_pop = 0;
  endtask

  task automatic is(input kind_t kind, input logic ask, input logic [47:0] id, input logic [47:0] number,
                    input logic [31:0] price, input logic [31:0] qty, input string what);
    check(head.kind == kind && head.id == id && head.new_id == number, {what, ": kind, order, number"});
    check(head.kind == EV_NONE || head.kind == EV_CLEAR || head.ask == ask, {what, ": side"});
    if (kind == EV_ADD || kind == EV_REPLACE) check(head.price == price && head.qty == qty, {what, ": price and size"});
    event_pop = 1;
    @(negedge clk);
    event_pop = 0;
  endtask

  logic [31:0] seq = 100;
  int bads_so_far = 0;

  // Datagrams of which nothing may come through.
  task automatic refused(input bytes_t datagram, input string what);
    send(datagram, 0, 0);
    bads_so_far++;
    check(!packet_valid, {what, ": nothing comes through"});
    check(bads == bads_so_far, {what, ": it is counted"});
    // And the next one does.
    send(message(seq, 101, 1, added(0, "0", "9", 560000, 1)), 0, 0);
    taken(seq, 1, {what, ": the packet behind it"});
    is(EV_ADD, 0, 48'h9, 0, 560000, 1, {what, ": the order behind it"});
    seq++;
  endtask

  initial begin
    bytes_t b, other;
    done = 0; failures = 0;
    repeat (3) @(negedge clk);
    rst = 0;
    for (int n = 0; n < 40; n++) begin
      int idle = (n < 20) ? 0 : 3;
      // Two entries of ours, the second by what the first said; one of another board between them.
      b = {added(7, "1", "123456789012", 561025, 137), again(8, "42"),
           entry("USD000UTSTOM", "LICU", 1, 0, "0", "77", -4, 560000, 0, 5), gone(9, "0", "5000000001")};
      // The last word is filled in eight ways.
      for (int pad = 0; pad < n % 8; pad++) b = {b, again(20 + pad, "x")};
      // Those with an x for a number are not ours, but what they say would be wrong if they were.
      if (n % 8 != 0) b = {added(7, "1", "123456789012", 561025, 137), again(8, "42"),
           entry("USD000UTSTOM", "LICU", 1, 0, "0", "77", -4, 560000, 0, 5)};
      for (int pad = 0; pad < n % 8; pad++) b = {b, again(20 + pad, "9")};
      if (n % 8 != 0) b = {b, gone(9, "0", "5000000001")};
      send(message(seq, 101, (n % 8 == 0) ? 4 : 4 + n % 8, b), 0, idle);
      taken(seq, 3, "three entries");
      is(EV_ADD, 1, 48'h123456789012, 7, 561025, 137, "the first");
      is(EV_ADD, 1, 48'h42, 8, 561025, 137, "the second");
      is(EV_DELETE, 0, 48'h5000000001, 9, 0, 0, "the third");
      seq++;
    end
    check(goods == 40 && bads == 0, "forty good packets");

    // Exponents: prices in 1e-4, sizes in units.
    send(message(seq, 101, 1, entry("USD000UTSTOM", "CETS", 1, 0, "0", "1", -2, 5610, 3, 12)), 0, 0);
    taken(seq++, 1, "exponents"); is(EV_ADD, 0, 1, 1, 561000, 12000, "exponents");
    send(message(seq, 101, 1, entry("USD000UTSTOM", "CETS", 1, 1, "0", "1", 1, 5, 0, 1)), 0, 0);
    taken(seq++, 1, "a change"); is(EV_REPLACE, 0, 1, 1, 500000, 1, "a change");
    send(message(seq, 101, 1, entry("USD000UTSTOM", "CETS", 2, 1, "0", "1", 1, 5, 0, 0)), 0, 0);
    taken(seq++, 1, "nothing left"); is(EV_DELETE, 0, 1, 2, 0, 0, "a change to nothing");
    // Market orders of an auction have a number and no place; an instrument without orders is said so.
    b.delete(); b.push_back(8'hfe);
    b = {b, text("USD000UTSTOM"), text("CETS"), optional(3), counted(1), text("0"), text("8"), null_one(), optional(0), number(4)};
    send(message(seq, 101, 1, b), 0, 0);
    taken(seq++, 1, "an order without a price"); is(EV_NONE, 0, 8, 3, 0, 0, "an order without a price");
    b.delete(); b.push_back(8'hfe);
    b = {b, text("USD000UTSTOM"), text("CETS"), optional(4), null_one(), text("J"), null_one(), null_one(), null_one()};
    send(message(seq, 101, 1, b), 0, 0);
    taken(seq++, 1, "no orders"); is(EV_CLEAR, 0, 0, 4, 0, 0, "no orders");
    // Nothing in it, and another template's.
    b.delete();
    send(message(seq, 101, 0, b), 0, 0);
    taken(seq++, 0, "no entries");
    send(message(seq, 109, 3, text("whatever")), 0, 0);
    taken(seq++, 0, "another template");
    check(bads == 0, "all of them were good");

    refused(message(seq, 101, 2, added(1, "0", "1", 560000, 1)), "fewer entries than it says");
    refused(message(seq, 101, 1, {added(1, "0", "1", 560000, 1), again(2, "2")}), "more entries than it says");
    b = message(seq, 101, 1, added(1, "0", "1", 560000, 1));
    b[b.size()-1] &= 8'h7f;
    refused(b, "its last byte ends nothing");
    refused(message(seq, 101, 1, added(1, "0", "12a", 560000, 1)), "a letter in an order's number");
    refused(message(seq, 101, 1, added(1, "0", "1234567890123", 560000, 1)), "an order's number of thirteen digits");
    refused(message(seq, 101, 1, added(1, "2", "1", 560000, 1)), "a side that is none");
    refused(message(seq, 101, 1, added(1, "0", "1", -560000, 1)), "a negative price");
    refused(message(seq, 101, 1, added(1, "0", "1", 64'd4294967296, 1)), "a price of 33 bits");
    refused(message(seq, 101, 1, entry("USD000UTSTOM", "CETS", 1, 0, "0", "1", 4, 100, 0, 1)), "a price too high");
    refused(message(seq, 101, 1, entry("USD000UTSTOM", "CETS", 1, 0, "0", "1", -5, 5600000, 0, 1)), "a price of five decimals");
    refused(message(seq, 101, 1, entry("USD000UTSTOM", "CETS", 1, 0, "0", "1", -4, 560000, -1, 10)), "a size with a fraction");
    refused(message(seq, 101, 1, added(1, "0", "1", 560000, 0)), "an added order of nothing");
    refused(message(seq, 101, 1, entry("USD000UTSTOM", "CETS", 1, 3, "0", "1", -4, 560000, 0, 1)), "an action that is none");
    b = message(seq, 101, 1, added(1, "0", "1", 560000, 1));
    b[4] = 8'h80;
    refused(b, "no template");
    b.delete();
    for (int i = 0; i < 4; i++) b.push_back(8'd1);
    refused(b, "no message behind the number");
    // Cut short on the way, with every header saying otherwise.
    b = framed(message(seq, 101, 3, {added(1, "0", "1", 560000, 1), added(2, "0", "2", 560000, 1), added(3, "0", "3", 560000, 1)}), 16'd26400);
    words(b, 96, 0, 0);
    repeat (60) @(negedge clk);
    bads_so_far++;
    check(!packet_valid && bads == bads_so_far, "a frame that breaks off");
    b = message(seq, 101, 1, added(1, "0", "1", 560000, 1));
    send(b, 1, 0);
    check(!packet_valid && damaged == 1 && bads == bads_so_far, "a bad FCS");
    other = framed(b, 16'd26401);
    words(other, other.size(), 0, 0);
    repeat (60) @(negedge clk);
    check(!packet_valid && bads == bads_so_far, "another port");

    // Two in a row, no clock between them: each whole.
    for (int n = 0; n < 3; n++) begin
      bytes_t f = framed(message(seq + 32'(n), 101, 2, {added(1, "0", "1", 560000, 1), again(2, "2")}), 16'd26400);
      words(f, f.size(), 0, 0);
    end
    repeat (60) @(negedge clk);
    for (int n = 0; n < 3; n++) begin
      taken(seq + 32'(n), 2, "back to back");
      is(EV_ADD, 0, 1, 1, 560000, 1, "back to back");
      is(EV_ADD, 0, 2, 2, 560000, 1, "back to back");
    end
    seq += 3;

    // Small tokens come faster than they are taken: what does not fit is dropped whole, and the line goes on.
    b.delete();
    for (int n = 0; n < 220; n++) b = {b, again(n, "1")};
    for (int n = 0; n < 6; n++) begin
      bytes_t f = framed(message(seq, 101, 220, b), 16'd26400);
      words(f, f.size(), 0, 0);
    end
    repeat (4000) @(negedge clk);
    check(fulls > 0, "a line that cannot keep up says so");
    while (packet_valid) begin
      check(packet.events == 0, "nothing but whole packets");
      packet_pop = 1;
      @(negedge clk);
      packet_pop = 0;
    end
    send(message(seq, 101, 1, added(0, "0", "9", 560000, 1)), 0, 0);
    taken(seq, 1, "after that");
    is(EV_ADD, 0, 48'h9, 0, 560000, 1, "after that");
    done = 1;
  end
  wire logic unused = &{1'b0, foreign_one, head.printable, head.priced, head.seq, unused};
endmodule

`default_nettype wire
