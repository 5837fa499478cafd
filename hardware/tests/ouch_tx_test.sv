// OUCH's order_tx and order_queue: frames whole and with right checksums, whatever the transmitter does; nothing lost.
`default_nettype none

module ouch_tx_test (output logic done, output int failures);
  import core_pkg::*;
  import ouch50_pkg::*;
  import test_pkg::*;

  logic clk = 0, rst = 1;
  always #1 clk = !clk;

  logic        write = 0, set_sequence = 0, set_user_ref = 0, put = 0, room, overflow, valid, ready;
  logic [6:0]  address = 0;
  logic [31:0] write_data = 0, value = 0, sequence_number, user_ref;
  logic [15:0] sum = 0;
  order_t      order = '0, queued;
  logic [63:0] tx_data;
  logic [7:0]  tx_keep;
  logic        tx_valid, tx_last, tx_ready = 1;
  order_queue #(.MOST(2)) queue (
      .clk, .rst, .in_valid(put), .in(order), .room, .overflow, .out_valid(valid), .out(queued), .out_ready(ready)
  );
  /* verilator lint_off PINCONNECTEMPTY */
  order_tx dut (
      .clk, .rst, .write, .write_address(address), .write_data, .cfg_sum(sum), .cfg_text_sum(8'd0), .cfg_second(24'd0),
      .set_sequence, .set_user_ref, .set_message(1'b0), .set_time(1'b0), .value,
      .soon_valid(1'b0), .soon('0), .in_valid(valid), .in(queued), .in_ready(ready), .tx_data, .tx_keep, .tx_valid, .tx_last, .tx_ready, .sequence_number,
      .user_ref, .message_number()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  task automatic check(input logic holds, input string what);
    if (!holds) begin
      failures++;
      if (failures < 20) $display("FAILED ouch_tx_test: %s", what);
    end
  endtask

  bytes_t prepared, got;
  order_t sent [$];
  int     frames = 0;
  logic   busy = 0;

  function automatic logic [31:0] big32_at(input bytes_t f, input int at);
    return {f[at], f[at+1], f[at+2], f[at+3]};
  endfunction

  // The sum of pseudo header and segment: all ones when the checksum is right.
  function automatic logic [15:0] segment_sum(input bytes_t f);
    bytes_t p;
    p.delete();
    for (int i = 26; i < 34; i++) p.push_back(f[i]);
    p.push_back(8'd0); p.push_back(8'd6);
    p = {p, big(64'(f.size() - 34), 2)};
    for (int i = 34; i < f.size(); i++) p.push_back(f[i]);
    return sum16(p, 0, p.size());
  endfunction

  always @(negedge clk) begin
    if (tx_valid && tx_ready) begin
      for (int i = 0; i < 8; i++) if (tx_keep[i]) got.push_back(tx_data[8*i +: 8]);
      if (tx_last) begin
        order_t o = sent.pop_front();
        check(got.size() == FRAME_SIZE, "its length");
        check(segment_sum(got) == 16'hffff, "its checksum");
        check(big32_at(got, 38) == 32'hffff_ff80 + 32'(50 * frames), "its sequence number");
        check(big32_at(got, USER_REF_PLACE) == 32'd9 + 32'(frames), "its UserRefNum");
        check(got[SIDE_PLACE] == (o.ask ? "S" : "B"), "its side");
        check(big32_at(got, QUANTITY_PLACE) == o.qty && big32_at(got, PRICE_PLACE + 4) == o.price, "quantity and price");
        check(got[0] == prepared[0] && got[13] == prepared[13] && got[67] == prepared[67] && got[103] == prepared[103],
              "what was prepared");
        got.delete();
        frames++;
      end
    end
  end
  always @(posedge clk) tx_ready <= busy ? ($urandom_range(2) == 0) : 1'b1;

  initial begin
    done = 0; failures = 0;
    repeat (3) @(negedge clk);
    rst = 0;
    for (int i = 0; i < FRAME_SIZE; i++) prepared.push_back(8'($urandom_range(255)));
    for (int i = 38; i < 42; i++) prepared[i] = 0;
    for (int i = 50; i < 52; i++) prepared[i] = 0;
    for (int i = 0; i < 4; i++) begin prepared[USER_REF_PLACE+i] = 0; prepared[QUANTITY_PLACE+i] = 0; end
    for (int i = 0; i < 8; i++) prepared[PRICE_PLACE+i] = 0;
    prepared[SIDE_PLACE] = 0;
    @(negedge clk);
    for (int i = 0; i < FRAME_SIZE / 4; i++) begin
      write = 1; address = 7'(i);
      write_data = {prepared[4*i+3], prepared[4*i+2], prepared[4*i+1], prepared[4*i]};
      @(negedge clk);
    end
    write = 0;
    sum = segment_sum(prepared);
    value = 32'hffff_ff80; set_sequence = 1; @(negedge clk); set_sequence = 0;
    value = 32'd9; set_user_ref = 1; @(negedge clk); set_user_ref = 0;
    repeat (5) @(negedge clk);
    for (int n = 0; n < 400; n++) begin
      busy = (n > 100);
      while (!room) @(negedge clk);
      order = '{ask: 1'($urandom_range(1)), qty: $urandom, price: $urandom, seq: '0};
      put = 1; sent.push_back(order);
      @(negedge clk);
      put = 0;
      check(!overflow, "no order is lost");
      repeat ($urandom_range((n % 3 == 0) ? 0 : 40)) @(negedge clk);
    end
    repeat (4000) @(negedge clk);
    check(frames == 400 && sent.size() == 0, "every order left");
    check(user_ref == 32'd409 && sequence_number == 32'hffff_ff80 + 32'd20000, "the numbers of the next order");
    done = 1;
  end
endmodule

`default_nettype wire
