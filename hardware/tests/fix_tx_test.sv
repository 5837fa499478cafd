// FIX's order_tx and decimal_digits: frames whole, every digit in its place, both checksums right, whatever the
// transmitter does and whenever the clock is set.
`default_nettype none

module fix_tx_test (output logic done, output int failures);
  import core_pkg::*;
  import fix44_pkg::*;
  import test_pkg::*;

  logic clk = 0, rst = 1;
  always #1 clk = !clk;

  logic        write = 0, set_sequence = 0, set_user_ref = 0, set_message = 0, set_time = 0, valid = 0, ready;
  logic [6:0]  address = 0;
  logic [31:0] write_data = 0, value = 0, sequence_number, user_ref, message_number;
  logic [23:0] second = 0;
  logic [15:0] sum = 0;
  logic [7:0]  text_sum = 0;
  order_t      order = '0;
  logic [63:0] tx_data;
  logic [7:0]  tx_keep;
  logic        tx_valid, tx_last, tx_ready = 1;
  order_tx dut (
      .clk, .rst, .write, .write_address(address), .write_data, .cfg_sum(sum), .cfg_text_sum(text_sum), .cfg_second(second),
      .set_sequence, .set_user_ref, .set_message, .set_time, .value, .soon_valid(valid), .soon(order), .in_valid(valid),
      .in(order), .in_ready(ready),
      .tx_data, .tx_keep, .tx_valid, .tx_last, .tx_ready, .sequence_number, .user_ref, .message_number
  );

  task automatic check(input logic holds, input string what);
    if (!holds) begin
      failures++;
      if (failures < 20) $display("FAILED fix_tx_test: %s", what);
    end
  endtask

  bytes_t prepared, got;
  order_t sent [$];
  string  clocks [$];
  int     frames = 0;
  logic   busy = 0;
  string  clock = "00:00:00.000";

  function automatic string text_at(input bytes_t f, input int at, input int length);
    text_at = "";
    for (int i = 0; i < length; i++) text_at = {text_at, string'(f[at+i])};
  endfunction
  function automatic string digits(input longint n, input int count);
    digits = "";
    for (int i = 0; i < count; i++) begin
      digits = {string'(8'h30 + 8'(n % 10)), digits};
      n = n / 10;
    end
  endfunction
  function automatic logic [15:0] segment_sum(input bytes_t f);
    bytes_t p;
    p.delete();
    for (int i = 26; i < 34; i++) p.push_back(f[i]);
    p.push_back(8'd0); p.push_back(8'd6);
    p = {p, big(64'(f.size() - 34), 2)};
    for (int i = 34; i < f.size(); i++) p.push_back(f[i]);
    return sum16(p, 0, p.size());
  endfunction
  function automatic logic [7:0] sum_of_text(input bytes_t f);
    sum_of_text = 0;
    for (int i = 54; i < CHECKSUM_PLACE - 3; i++) sum_of_text += f[i];
  endfunction

  always @(negedge clk) begin
    if (tx_valid && tx_ready) begin
      for (int i = 0; i < 8; i++) if (tx_keep[i]) got.push_back(tx_data[8*i +: 8]);
      if (tx_last) begin
        order_t o = sent.pop_front();
        string  at = clocks.pop_front();
        check(got.size() == FRAME_SIZE, "its length");
        check(segment_sum(got) == 16'hffff, "TCP's checksum");
        check(text_at(got, CHECKSUM_PLACE, 3) == digits(longint'(sum_of_text(got)), 3), "FIX's checksum");
        check({got[38], got[39], got[40], got[41]} == 32'hffff_ff80 + 32'((FRAME_SIZE - 54) * frames), "its sequence number");
        check(text_at(got, MESSAGE_PLACE, 8) == digits(99_999_900 + frames, 8), "MsgSeqNum");
        check(text_at(got, ORDER_PLACE, 8) == digits(frames + 198, 8), "ClOrdID");
        check(text_at(got, SENDING_PLACE, 12) == at && text_at(got, TRANSACT_PLACE, 12) == at, "the time");
        check(got[SIDE_PLACE] == (o.ask ? "2" : "1"), "its side");
        check(text_at(got, QUANTITY_PLACE, 9) == digits(longint'(o.qty), 9), "its quantity");
        check(text_at(got, PRICE_PLACE, 10)
              == {digits(longint'(o.price) / 10000, 5), ".", digits(longint'(o.price), 4)}, "its price");
        check(got[0] == prepared[0] && got[60] == prepared[60] && got[FRAME_SIZE-1] == prepared[FRAME_SIZE-1],
              "what was prepared");
        got.delete();
        frames++;
      end
    end
  end
  always @(posedge clk) tx_ready <= busy ? ($urandom_range(2) == 0) : 1'b1;

  task automatic fill(input int at, input int count);
    for (int i = 0; i < count; i++) prepared[at+i] = "0";
  endtask
  task automatic fill_time(input int at);
    fill(at, 12);
    prepared[at+2] = ":"; prepared[at+5] = ":"; prepared[at+8] = ".";
  endtask

  task automatic set_clock(input int h, input int m, input int s, input int milli);
    second = {4'(h / 10), 4'(h % 10), 4'(m / 10), 4'(m % 10), 4'(s / 10), 4'(s % 10)};
    value = {20'd0, 4'(milli / 100), 4'(milli / 10 % 10), 4'(milli % 10)};
    set_time = 1;
    @(negedge clk);
    set_time = 0;
    clock = {digits(h, 2), ":", digits(m, 2), ":", digits(s, 2), ".", digits(milli, 3)};
  endtask

  initial begin
    done = 0; failures = 0;
    repeat (3) @(negedge clk);
    rst = 0;
    for (int i = 0; i < FRAME_SIZE; i++) prepared.push_back(8'($urandom_range(255)));
    for (int i = 38; i < 42; i++) prepared[i] = 0;
    for (int i = 50; i < 52; i++) prepared[i] = 0;
    fill(MESSAGE_PLACE, 8); fill(ORDER_PLACE, 8); fill(SIDE_PLACE, 1); fill(QUANTITY_PLACE, 9); fill(PRICE_PLACE, 10);
    fill(CHECKSUM_PLACE, 3);
    prepared[PRICE_PLACE+5] = ".";
    fill_time(SENDING_PLACE); fill_time(TRANSACT_PLACE);
    sum = segment_sum(prepared);
    text_sum = sum_of_text(prepared);
    @(negedge clk);
    for (int i = 0; i < (FRAME_SIZE + 3) / 4; i++) begin
      write = 1; address = 7'(i);
      for (int n = 0; n < 4; n++) write_data[8*n +: 8] = (4*i + n < FRAME_SIZE) ? prepared[4*i+n] : 8'd0;
      @(negedge clk);
    end
    write = 0;
    value = 32'hffff_ff80; set_sequence = 1; @(negedge clk); set_sequence = 0;
    value = 32'h0000_0198; set_user_ref = 1; @(negedge clk); set_user_ref = 0;
    value = 32'h9999_9900; set_message = 1; @(negedge clk); set_message = 0;
    for (int n = 0; n < 99; n++) begin
      busy = (n > 50);
      // Right before an order, at times while the one before it leaves.
      if (n % 3 == 0) set_clock($urandom_range(23), $urandom_range(59), $urandom_range(59), $urandom_range(999));
      order = '{ask: 1'($urandom_range(1)), qty: $urandom & 32'h1fff_ffff, price: $urandom & 32'h1fff_ffff, seq: '0};
      case (n)
        0: begin order.qty = 0; order.price = 0; end
        1: begin order.qty = 999_999_999; order.price = 999_999_999; end
        2: begin order.qty = 999; order.price = 1000; end
        3: begin order.qty = 999_999; order.price = 1_000_000; end
        4: begin order.qty = 100_000_000; order.price = 999_000_999; end
        default: ;
      endcase
      valid = 1;
      while (!ready) @(negedge clk);
      sent.push_back(order);
      clocks.push_back(clock);
      @(negedge clk);
      valid = 0;
      repeat ($urandom_range((n % 2 == 0) ? 0 : 60)) @(negedge clk);
    end
    repeat (400) @(negedge clk);
    check(frames == 99 && sent.size() == 0, "every order left");
    check(user_ref == 32'h0000_0297 && message_number == 32'h9999_9999
          && sequence_number == 32'hffff_ff80 + 32'((FRAME_SIZE - 54) * 99), "the numbers of the next order");
    done = 1;
  end
endmodule

`default_nettype wire
