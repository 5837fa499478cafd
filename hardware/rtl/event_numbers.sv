// The numbers that a feed gives each instrument's events, one after the other (MOEX: RptSeq). An event that was seen
// is dropped; a hole says that the book is not right, and what comes behind it is passed on. The first event may have
// any number, 0 stands for none. What has a number and means nothing to a book ends here.
`default_nettype none

module event_numbers
  import core_pkg::*;
(
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic        set_next,     // software says which number comes next (it took a snapshot); 0: any
    input  wire logic [31:0] value,

    input  wire logic        in_valid,
    input  wire event_t      in,           // its number in `new_id`
    output logic             in_ready,
    output logic             out_valid,
    output event_t           out,
    input  wire logic        out_ready,
    output logic             hole          // one clock
);

  logic [31:0] next_reg;
  logic        known_reg;

  wire logic [31:0] number = in.new_id[31:0];
  wire logic is_numbered = (in.kind != EV_LIVE) && (number != '0);
  wire logic is_old  = is_numbered && known_reg && (number < next_reg);
  wire logic is_hole = is_numbered && known_reg && (number > next_reg);
  wire logic ends    = is_old || (in.kind == EV_NONE);
  wire logic moves   = in_valid && in_ready;

  always_comb begin
    out        = in;
    out.new_id = in.id;
  end
  assign out_valid = in_valid && !ends;
  assign in_ready  = ends || out_ready;

  always_ff @(posedge clk) begin
    hole <= moves && is_hole;
    if (moves && is_numbered && !is_old) begin
      next_reg  <= number + 32'd1;
      known_reg <= 1'b1;
    end
    if (set_next) begin
      next_reg  <= value;
      known_reg <= (value != '0);
    end
    if (rst) begin
      next_reg  <= '0;
      known_reg <= 1'b0;
      hole      <= 1'b0;
    end
  end

  wire logic unused = &{1'b0, in.new_id[ID_BITS-1:32], unused};

endmodule

`default_nettype wire
