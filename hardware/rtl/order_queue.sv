// Orders between the strategy and the gate. `room` says that a whole handler's orders fit; the book waits with the
// next event until they do, so nothing is ever lost here.
`default_nettype none

module order_queue
  import core_pkg::*;
#(
    parameter int ADDRESS = 4,
    parameter int MOST = 4            // orders of one handler at most
) (
    input  wire logic   clk,
    input  wire logic   rst,
    input  wire logic   in_valid,
    input  wire order_t in,
    output logic        room,
    output logic        overflow,     // one clock: never, as long as who writes heeds `room`
    output logic        out_valid,
    output order_t      out,
    input  wire logic   out_ready
);

  (* ram_style = "distributed" *) order_t memory [1 << ADDRESS];
  logic [ADDRESS:0] write_reg, read_reg;
  wire logic [ADDRESS:0] used = write_reg - read_reg;
  wire logic is_full = used[ADDRESS];

  always_ff @(posedge clk) begin
    if (in_valid && !is_full) begin
      memory[write_reg[ADDRESS-1:0]] <= in;
      write_reg <= write_reg + 1'b1;
    end
    overflow <= in_valid && is_full;
    if (out_valid && out_ready) read_reg <= read_reg + 1'b1;
    if (rst) begin
      write_reg <= '0;
      read_reg  <= '0;
      overflow  <= 1'b0;
    end
  end

  assign room      = (used <= (ADDRESS + 1)'((1 << ADDRESS) - MOST));
  assign out_valid = (write_reg != read_reg);
  assign out       = memory[read_reg[ADDRESS-1:0]];

endmodule

`default_nettype wire
