// A FIFO whose writer can take back what it wrote since its last commit: what belongs to a frame that turns out
// bad is never seen at the other end. Read data stands at `out` while `out_valid`. When there is no room the
// write is lost and `overflow` says so until the next commit or rollback; the writer has to roll back.
`default_nettype none

module packet_fifo #(
    parameter int WIDTH = 8,
    parameter int ADDRESS = 5
) (
    input  wire logic             clk,
    input  wire logic             rst,
    input  wire logic             in_valid,
    input  wire logic [WIDTH-1:0] in,
    input  wire logic             commit,     // after what is written in the same clock
    input  wire logic             rollback,   // with what is written in the same clock
    output logic                  overflow,
    output logic                  out_valid,
    output logic [WIDTH-1:0]      out,
    input  wire logic             pop
);

  (* ram_style = "distributed" *) logic [WIDTH-1:0] memory [1 << ADDRESS];
  logic [ADDRESS:0] write_reg, committed_reg, read_reg;
  logic             overflow_reg;

  wire logic is_full = (write_reg[ADDRESS-1:0] == read_reg[ADDRESS-1:0]) && (write_reg[ADDRESS] != read_reg[ADDRESS]);
  wire logic writes  = in_valid && !is_full;
  wire logic [ADDRESS:0] write_next = write_reg + {{ADDRESS{1'b0}}, writes};

  always_ff @(posedge clk) begin
    if (writes) memory[write_reg[ADDRESS-1:0]] <= in;
    write_reg <= rollback ? committed_reg : write_next;
    if (commit && !rollback) committed_reg <= write_next;
    overflow_reg <= (commit || rollback) ? 1'b0 : overflow_reg || (in_valid && is_full);
    if (pop) read_reg <= read_reg + 1'b1;
    if (rst) begin
      write_reg     <= '0;
      committed_reg <= '0;
      read_reg      <= '0;
      overflow_reg  <= 1'b0;
    end
  end

  assign overflow  = overflow_reg || (in_valid && is_full);
  assign out_valid = (read_reg != committed_reg);
  assign out       = memory[read_reg[ADDRESS-1:0]];

endmodule

`default_nettype wire
