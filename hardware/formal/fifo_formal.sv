// What is proved of packet_fifo: what comes out was committed and comes in the order in which it went in, nothing of it
// is lost and nothing of what was taken back is seen. One value is followed, whichever it is.
`default_nettype none

module fifo_formal (
    input wire logic       clk,
    input wire logic       in_valid,
    input wire logic [3:0] in,
    input wire logic       commit,
    input wire logic       rollback,
    input wire logic       take,
    input wire logic       choose      // the value that is written in this clock is the one that is followed
);
  localparam int ADDRESS = 2;
  logic started = 1'b0;
  wire logic rst = !started;
  always_ff @(posedge clk) started <= 1'b1;

  logic       overflow, out_valid;
  logic [3:0] out;
  wire logic  pop = take && out_valid;
  packet_fifo #(.WIDTH(4), .ADDRESS(ADDRESS)) dut (
      .clk, .rst, .in_valid(in_valid && started), .in, .commit, .rollback, .overflow, .out_valid, .out, .pop
  );

  // How much lies in it, how much of that is committed; and the place of the value that is followed, counted from the
  // one that comes out next.
  logic [ADDRESS:0] used = '0, committed = '0, place = '0;
  logic             followed = 1'b0;
  logic [3:0]       value = '0;
  wire logic is_full = used[ADDRESS];
  wire logic writes  = in_valid && started && !is_full;
  wire logic [ADDRESS:0] then_used = used + (ADDRESS + 1)'(writes);

  always_ff @(posedge clk) if (started) begin
    if (rollback) used <= committed - (ADDRESS + 1)'(pop);
    else used <= then_used - (ADDRESS + 1)'(pop);
    if (commit && !rollback) committed <= then_used - (ADDRESS + 1)'(pop);
    else committed <= committed - (ADDRESS + 1)'(pop);
    if (followed && pop) begin
      if (place == '0) followed <= 1'b0;
      else place <= place - 1'b1;
    end
    if (followed && rollback && (place >= committed)) followed <= 1'b0;
    if (!followed && choose && writes && !rollback) begin
      followed <= 1'b1;
      value    <= in;
      place    <= used - (ADDRESS + 1)'(pop);
    end

    assert (committed <= used && used <= (ADDRESS + 1)'(1 << ADDRESS));
    assert (out_valid == (committed != '0));
    assert (used == dut.write_reg - dut.read_reg);
    assert (committed == dut.committed_reg - dut.read_reg);
    if (followed) begin
      assert (place < used);
      assert (dut.memory[ADDRESS'(dut.read_reg[ADDRESS-1:0] + place[ADDRESS-1:0])] == value);
    end
    if (followed && (place == '0) && out_valid) assert (out == value);
    if (in_valid && is_full) assert (overflow);
  end
endmodule

`default_nettype wire
