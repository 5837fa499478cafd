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
    logic [3:0]  upto;                    // bytes of the datagram in it
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
  wire logic is_tight = (used >= (ADDRESS + 1)'((1 << ADDRESS) - 1));
  wire logic is_full  = used[ADDRESS];

  waiting_t in;
  always_comb begin
    in.first = is_first;
    in.last  = is_end || is_tight;
    in.upto  = (left >= 16'd8) ? 4'd8 : left[3:0];
    in.data  = rx_data;
    if (is_tight) in.upto = '0;
  end

  always_ff @(posedge clk) begin
    if (rx_valid && (word == 4'd0)) begin
      taken    <= 1'b0;
      over_reg <= 1'b0;
      full     <= 1'b0;
    end
    if (is_word) begin
      if (is_first) number <= {rx_data[47:40], rx_data[39:32], rx_data[31:24], rx_data[23:16]};
      left_reg <= left - 16'd8;
      over_reg <= is_end || is_tight;
      full     <= is_tight;
      taken    <= !(is_first && is_full);
      if (!is_full && !passes) begin
        memory[write_reg[ADDRESS-1:0]] <= in;
        write_reg <= write_reg + 1'b1;
      end
    end
    if (out_pop && !passes) read_reg <= read_reg + 1'b1;
    if (rst) begin
      taken     <= 1'b0;
      over_reg  <= 1'b0;
      full      <= 1'b0;
      write_reg <= '0;
      read_reg  <= '0;
    end
  end

  waiting_t head;
  wire logic is_empty = (write_reg == read_reg);
  // Nothing waits, and the word is taken as it comes.
  wire logic passes = is_empty && is_word && out_pop;
  assign head      = is_empty ? in : memory[read_reg[ADDRESS-1:0]];
  assign out_valid = !is_empty || is_word;
  assign out_data  = head.data;
  assign out_first = head.first;
  assign out_last  = head.last;
  always_comb
    for (int i = 0; i < 8; i++) out_keep[i] = (4'(i) < head.upto) && !(head.first && (i < 6));

endmodule

`default_nettype wire
