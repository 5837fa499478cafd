// An order as a whole Ethernet frame: TCP segment, SoupBinTCP unsequenced packet, OUCH 5.0 Enter Order. Software
// prepares the frame (`write_*`, 26 halves of a word) with every byte that does not change, zero where something
// is filled in, and with `cfg_sum` the one's complement sum of pseudo header and segment as prepared. Filled in
// are TCP sequence number and checksum, UserRefNum, side, quantity and price.
//
// The first word leaves in the clock after the order came; the checksum, which lies in word 6, is ready before.
// The connection is software's: it hands over sequence number and UserRefNum while nothing is sent (`set_*`),
// takes them back by reading, sends again what is lost, and reads everything that the venue says.
`default_nettype none

module order_tx
  import core_pkg::*;
  import ouch50_pkg::*;
(
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic        write,
    input  wire logic [6:0]  write_address,   // half of a word
    input  wire logic [31:0] write_data,      // first byte of the frame in bits 7:0
    input  wire logic [15:0] cfg_sum,
    input  wire logic [7:0]  cfg_text_sum,    // these are for text: nothing here
    input  wire logic [23:0] cfg_second,
    input  wire logic        set_sequence,
    input  wire logic        set_user_ref,
    input  wire logic        set_message,
    input  wire logic        set_time,
    input  wire logic [31:0] value,

    input  wire logic        soon_valid,      // what may come in the next clock: nothing here
    input  wire order_t      soon,
    input  wire logic        in_valid,
    input  wire order_t      in,
    output logic             in_ready,

    output logic [63:0]      tx_data,
    output logic [7:0]       tx_keep,
    output logic             tx_valid,
    output logic             tx_last,
    input  wire logic        tx_ready,

    output logic [31:0]      sequence_number,
    output logic [31:0]      user_ref,
    output logic [31:0]      message_number
);

  wire logic unused = &{1'b0, in.seq, soon_valid, soon, cfg_text_sum, cfg_second, set_message, set_time, write_address[6:5], unused};

  localparam int WORDS = FRAME_SIZE / 8;
  localparam int SEGMENT = FRAME_SIZE - 54;

  (* ram_style = "distributed" *) logic [31:0] low_halves [16];
  (* ram_style = "distributed" *) logic [31:0] high_halves [16];
  always_ff @(posedge clk) if (write && (write_address[6:5] == '0)) begin
    if (write_address[0]) high_halves[write_address[4:1]] <= write_data;
    else low_halves[write_address[4:1]] <= write_data;
  end

  logic        busy_reg;
  logic [3:0]  word_reg;
  logic        ask_reg;
  logic [31:0] qty_reg, price_reg;
  logic [31:0] sequence_reg, user_ref_reg, next_sequence_reg, next_user_ref_reg;

  wire logic moves  = !tx_valid || tx_ready;
  wire logic starts = in_valid && in_ready;
  wire logic [3:0] word = busy_reg ? word_reg : 4'd0;
  wire logic is_last = (word == 4'(WORDS - 1));

  // ---------------------------------------------------------------- checksum
  function automatic logic [16:0] fold(input logic [19:0] sum);
    return {1'b0, sum[15:0]} + {13'd0, sum[19:16]};
  endfunction

  // Of the frame as prepared with both numbers: of the next order, ready three clocks after the last one began or
  // software wrote a number (it arms after that), and of the one that leaves.
  logic [15:0] next_sum_reg, before_reg;
  logic [19:0] numbers_reg;
  logic [19:0] values_reg, total_reg;
  logic [15:0] checksum_reg;
  wire logic [16:0] folded_numbers = fold(numbers_reg);
  wire logic [16:0] folded_total   = fold(total_reg);
  wire logic [7:0]  side = ask_reg ? SIDE_SELL : SIDE_BUY;

  // A half of the segment has its first byte, at an even place of the frame, in bits 15:8.
  always_ff @(posedge clk) begin
    numbers_reg  <= 20'(cfg_sum) + 20'(next_sequence_reg[31:16]) + 20'(next_sequence_reg[15:0])
                  + 20'(next_user_ref_reg[31:16]) + 20'(next_user_ref_reg[15:0]);
    next_sum_reg <= folded_numbers[15:0] + 16'(folded_numbers[16]);
    if (starts) before_reg <= next_sum_reg;
    values_reg   <= 20'({side, qty_reg[31:24]}) + 20'(qty_reg[23:8]) + 20'({qty_reg[7:0], 8'd0})
                  + 20'(price_reg[31:24]) + 20'(price_reg[23:8]) + 20'({price_reg[7:0], 8'd0});
    total_reg    <= values_reg + 20'(before_reg);
    checksum_reg <= ~(folded_total[15:0] + 16'(folded_total[16]));
  end

  // ---------------------------------------------------------------- frame
  function automatic logic [63:0] at(input int place, input int word_of, input logic [7:0] data);
    return (place / 8 == word_of) ? 64'(data) << (8 * (place % 8)) : '0;
  endfunction
  function automatic logic [63:0] big32(input int place, input int word_of, input logic [31:0] data);
    return at(place, word_of, data[31:24]) | at(place + 1, word_of, data[23:16]) | at(place + 2, word_of, data[15:8])
         | at(place + 3, word_of, data[7:0]);
  endfunction

  logic [63:0] filled;
  always_comb begin
    filled = {high_halves[word], low_halves[word]};
    for (int w = 0; w < WORDS; w++)
      if (word == 4'(w))
        filled |= big32(38, w, sequence_reg) | big32(USER_REF_PLACE, w, user_ref_reg)
                | at(50, w, checksum_reg[15:8]) | at(51, w, checksum_reg[7:0])
                | at(SIDE_PLACE, w, side) | big32(QUANTITY_PLACE, w, qty_reg)
                | big32(PRICE_PLACE + 4, w, price_reg);
  end

  // Word n leaves n clocks after the first at the soonest; the checksum is ready after four, for word 6.
  always_ff @(posedge clk) begin
    if (moves) begin
      tx_valid <= starts || busy_reg;
      tx_data  <= filled;
      tx_keep  <= 8'hff;
      tx_last  <= (starts || busy_reg) && is_last;
      if (starts || busy_reg) word_reg <= is_last ? 4'd0 : word + 4'd1;
      if (busy_reg && is_last) busy_reg <= 1'b0;
    end
    if (starts) begin
      busy_reg          <= 1'b1;
      ask_reg           <= in.ask;
      qty_reg           <= in.qty;
      price_reg         <= in.price;
      sequence_reg      <= next_sequence_reg;
      user_ref_reg      <= next_user_ref_reg;
      next_sequence_reg <= next_sequence_reg + 32'(SEGMENT);
      next_user_ref_reg <= next_user_ref_reg + 32'd1;
    end
    if (set_sequence) next_sequence_reg <= value;
    if (set_user_ref) next_user_ref_reg <= value;
    if (rst) begin
      busy_reg          <= 1'b0;
      tx_valid          <= 1'b0;
      tx_last           <= 1'b0;
      word_reg          <= '0;
      next_sequence_reg <= '0;
      next_user_ref_reg <= 32'd1;
    end
  end

  assign in_ready        = !busy_reg && moves;
  assign sequence_number = next_sequence_reg;
  assign user_ref        = next_user_ref_reg;
  assign message_number  = '0;

endmodule

`default_nettype wire
