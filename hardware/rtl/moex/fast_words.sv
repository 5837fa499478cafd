// The FAST message of a datagram out of a frame's words, behind Ethernet, IPv4 and UDP headers and the four bytes of
// the preamble: bytes 46 and on. A word goes through as it comes, or waits until the decoder takes it, which it does
// more slowly than words can come. What does not fit ends the message early, and says so (`full`).
`default_nettype none

module fast_words
  import core_pkg::*;
#(
    parameter int ADDRESS = 7             // 128 words wait at most: two thirds of the longest frame
) (
    input  wire logic        clk,
    input  wire logic        rst,

    input  wire logic [63:0] rx_data,
    input  wire logic        rx_valid,
    input  wire logic        rx_last,
    input  wire logic [3:0]  word,        // of udp_rx
    input  wire logic        ours,
    input  wire logic [15:0] payload_left,

    output logic             taken,       // words of the frame under way lie here
    output logic             full,        // and not all of them
    output logic [31:0]      number,      // its preamble

    output logic             out_valid,
    output logic [63:0]      out_data,    // first byte in bits 7:0
    output logic [7:0]       out_keep,    // bytes of the message, in one run
    output logic             out_first,
    output logic             out_last,    // the message ends with this word, whole or not
    input  wire logic        out_pop
);

  typedef struct packed {
    logic        first;
    logic        last;
    logic [7:0]  keep;
    logic [63:0] data;
  } waiting_t;

  logic        over_reg;                  // the message under way has its last word
  logic [15:0] left_reg;

  // Byte 40 is in lane 0 of word 5.
  wire logic is_first    = (word == 4'd5);
  wire logic [15:0] left = is_first ? payload_left : left_reg;
  wire logic is_word     = rx_valid && ((is_first && ours) || ((word > 4'd5) && taken && !over_reg));
  wire logic is_end      = rx_last || (left <= 16'd8);

  (* ram_style = "distributed" *) waiting_t memory [1 << ADDRESS];
  logic [ADDRESS:0] write_reg, read_reg;
  wire logic [ADDRESS:0] used = write_reg - read_reg;
  // The last place is kept for the word that ends a message.
  logic      is_tight_reg;
  wire logic is_full  = used[ADDRESS];
  wire logic is_empty = (write_reg == read_reg);

  // The word that is offered stands in a register; one that comes while nothing waits goes there at once.
  waiting_t in, out_reg;
  logic     out_valid_reg;
  wire logic loads  = !out_valid_reg || out_pop;
  wire logic passes = is_empty && is_word && loads;

  always_comb begin
    in.first = is_first;
    in.last  = is_end || is_tight_reg;
    in.data  = rx_data;
    for (int i = 0; i < 8; i++) in.keep[i] = (left > 16'(i)) && !(is_first && (i < 6)) && !is_tight_reg;
  end

  always_ff @(posedge clk) begin
    is_tight_reg <= (used >= (ADDRESS + 1)'((1 << ADDRESS) - 3));
    if (rx_valid && (word == 4'd0)) begin
      taken    <= 1'b0;
      over_reg <= 1'b0;
      full     <= 1'b0;
    end
    if (is_word) begin
      if (is_first) number <= {rx_data[47:40], rx_data[39:32], rx_data[31:24], rx_data[23:16]};
      left_reg <= left - 16'd8;
      over_reg <= is_end || is_tight_reg;
      full     <= is_tight_reg;
      taken    <= !(is_first && is_full);
      if (!is_full && !passes) begin
        memory[write_reg[ADDRESS-1:0]] <= in;
        write_reg <= write_reg + 1'b1;
      end
    end
    if (loads) begin
      out_reg       <= is_empty ? in : memory[read_reg[ADDRESS-1:0]];
      out_valid_reg <= !is_empty || is_word;
      if (!is_empty) read_reg <= read_reg + 1'b1;
    end
    if (rst) begin
      is_tight_reg  <= 1'b0;
      taken         <= 1'b0;
      over_reg      <= 1'b0;
      full          <= 1'b0;
      write_reg     <= '0;
      read_reg      <= '0;
      out_valid_reg <= 1'b0;
    end
  end

  assign out_valid = out_valid_reg;
  assign out_data  = out_reg.data;
  assign out_keep  = out_reg.keep;
  assign out_first = out_reg.first;
  assign out_last  = out_reg.last;

endmodule

`default_nettype wire
