// MoldUDP64 1.00 out of a frame's words: header, then each message whole, in one of two buffers that take turns.
// A message is ready one clock behind the word with its last byte. Nothing is known of a packet until its
// frame's verdict: who takes messages keeps them back until then (`packet_good`, `packet_bad`).
//
// The header lies in bytes 42 to 61 of the frame, the first block's length in 62 and 63. Messages of 11 to 255
// bytes are taken; a shorter one (MoldUDP64 allows it, ITCH has none) makes the packet bad.
`default_nettype none

module mold_rx
  import core_pkg::*;
(
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic [79:0] cfg_session,    // first character in bits 79:72

    input  wire logic [63:0] rx_data,
    input  wire logic        rx_valid,
    input  wire logic        rx_last,
    input  wire logic [3:0]  word,           // of udp_rx
    input  wire logic [15:0] payload_end,
    input  wire logic        end_valid,
    input  wire logic        end_ours,
    input  wire logic        end_good,

    output logic [7:0]          soon_kind,     // of the message under way, which may be whole in the next clock
    output logic [7:0]          soon_length,
    output logic                message_valid,
    output logic [55:0][7:0]    message,       // byte 0 is the type; beyond its length old bytes
    output logic [SEQ_BITS-1:0] message_seq,

    output logic                packet_good,   // the frame is over: seq, next and all messages before stand
    output logic                packet_bad,    // the frame was ours and cannot be used
    output logic                packet_foreign, // of another session
    output logic                packet_void,   // what came is to be forgotten, whoever it was for
    output logic [SEQ_BITS-1:0] packet_seq,
    output logic [SEQ_BITS-1:0] packet_next
);

  // ---------------------------------------------------------------- header
  logic [79:0] session_reg;
  logic [63:0] seq_reg;
  logic [15:0] count_reg;

  function automatic logic [7:0] lane(input logic [63:0] data, input logic [2:0] i);
    return data[8*i +: 8];
  endfunction

  always_ff @(posedge clk) begin
    if (rx_valid) begin
      case (word)
        4'd5: session_reg[79:32] <= {rx_data[23:16], rx_data[31:24], rx_data[39:32], rx_data[47:40], rx_data[55:48],
                                     rx_data[63:56]};
        4'd6: begin
          session_reg[31:0] <= {rx_data[7:0], rx_data[15:8], rx_data[23:16], rx_data[31:24]};
          seq_reg[63:32]    <= {rx_data[39:32], rx_data[47:40], rx_data[55:48], rx_data[63:56]};
        end
        4'd7: begin
          seq_reg[31:0] <= {rx_data[7:0], rx_data[15:8], rx_data[23:16], rx_data[31:24]};
          count_reg     <= {rx_data[39:32], rx_data[47:40]};
        end
        default: ;
      endcase
    end
  end

  // ---------------------------------------------------------------- blocks
  // `low_at`: where the low byte of the next length lies, counted from lane 0 of the word that comes next. A
  // message under way ends two bytes before it.
  logic [8:0]  low_at_reg;
  logic [15:0] left_reg;       // lengths still to be read
  logic        busy_reg;       // a message is under way
  logic        bank_reg;       // into which buffer
  logic        malformed_reg;
  logic [7:0]  previous_reg;   // lane 7 of the word before
  logic        header_reg;     // the header was seen
  logic [15:0] base_reg;       // byte of the frame in lane 0
  logic [15:0] end_at_reg;     // byte behind the last message
  logic [7:0]  length_reg;
  logic [SEQ_BITS-1:0] number_reg;

  wire logic is_header    = (word == 4'd7);
  wire logic is_walk      = rx_valid && (is_header || (word == 4'd8));
  wire logic [15:0] left  = is_header ? {rx_data[39:32], rx_data[47:40]} : left_reg;
  wire logic [8:0]  low_at = is_header ? 9'd7 : low_at_reg;
  // 0: heartbeat, 65535: end of session.
  wire logic is_any       = (left != '0) && !(is_header && left == 16'hffff);
  wire logic starts       = is_walk && is_any && (low_at < 9'd8);
  wire logic ends         = is_walk && !is_header && busy_reg && (low_at >= 9'd2) && (low_at <= 9'd9);
  wire logic [7:0] length_low  = lane(rx_data, low_at[2:0]);
  wire logic [7:0] length_high = (low_at[2:0] == 3'd0) ? previous_reg : lane(rx_data, low_at[2:0] - 3'd1);
  wire logic next_bank    = bank_reg ^ 1'b1;

  always_ff @(posedge clk) begin
    message_valid <= 1'b0;
    if (is_walk) begin
      previous_reg <= rx_data[63:56];
      header_reg   <= 1'b1;
      base_reg     <= is_header ? 16'd64 : base_reg + 16'd8;
      left_reg     <= (is_header && left == 16'hffff) ? '0 : left;
      low_at_reg   <= (low_at < 9'd8) ? low_at : low_at - 9'd8;
      if (is_header) begin
        malformed_reg <= 1'b0;
        busy_reg      <= 1'b0;
        end_at_reg    <= 16'd62;
        number_reg    <= {seq_reg[SEQ_BITS-1:32], rx_data[7:0], rx_data[15:8], rx_data[23:16], rx_data[31:24]};
      end
      if (ends) begin
        busy_reg       <= 1'b0;
        message_valid  <= 1'b1;
        message_seq    <= number_reg;
        number_reg     <= number_reg + 1'b1;
        end_at_reg     <= base_reg + 16'(low_at) - 16'd1;
      end
      if (starts) begin
        busy_reg   <= 1'b1;
        bank_reg   <= next_bank;
        length_reg <= length_low;
        left_reg   <= left - 16'd1;
        low_at_reg <= low_at + 9'(length_low) + 9'd2 - 9'd8;
        if ((length_high != '0) || (length_low < 8'd11)) begin
          malformed_reg <= 1'b1;
          left_reg      <= '0;
          busy_reg      <= 1'b0;
        end
      end
    end
    if (end_valid && !is_walk) begin
      header_reg <= 1'b0;
      busy_reg   <= 1'b0;
      left_reg   <= '0;
    end
    if (rst) begin
      header_reg    <= 1'b0;
      busy_reg      <= 1'b0;
      bank_reg      <= 1'b0;
      left_reg      <= '0;
      malformed_reg <= 1'b0;
      message_valid <= 1'b0;
    end
  end

  // ---------------------------------------------------------------- buffers
  // A byte of lane i goes to position 8 * words + i - start: rotated by `start`, it lies at its place within
  // eight bytes, and only which eight depends on how far the message has come.
  logic [1:0][6:0][7:0][7:0] buffer_reg;
  logic [1:0][2:0] start_reg;
  logic [1:0][4:0] words_reg;
  logic [1:0][2:0] start;
  logic [1:0][4:0] words;
  logic [1:0]      takes;
  logic [1:0][7:0][7:0] rotated;
  logic            bank_done_reg;

  always_comb begin
    for (int n = 0; n < 2; n++) begin
      takes[n] = is_walk && ((starts && next_bank == n[0]) || (busy_reg && !is_header && bank_reg == n[0]));
      start[n] = start_reg[n];
      words[n] = words_reg[n];
      if (starts && next_bank == n[0]) begin
        start[n] = low_at[2:0] + 3'd1;
        // With the length in lane 7 the message begins in the next word: nothing of this one is its.
        words[n] = (low_at[2:0] == 3'd7) ? 5'd31 : 5'd0;
      end
      for (int r = 0; r < 8; r++) rotated[n][r] = rx_data[8*(3'(r) + start[n]) +: 8];
    end
  end

  always_ff @(posedge clk) begin
    for (int n = 0; n < 2; n++) begin
      if (takes[n]) begin
        start_reg[n] <= start[n];
        words_reg[n] <= words[n] + 5'd1;
        for (int q = 0; q < 7; q++)
          for (int r = 0; r < 8; r++)
            if ((({1'b0, 3'(r)} + {1'b0, start[n]}) < 4'd8) ? (words[n] == 5'(q)) : (words[n] == 5'(q + 1)))
              buffer_reg[n][q][r] <= rotated[n][r];
      end
    end
    bank_done_reg <= bank_reg;
  end

  assign message     = buffer_reg[bank_done_reg];
  assign soon_kind   = buffer_reg[bank_reg][0][0];
  assign soon_length = length_reg;

  // ---------------------------------------------------------------- verdict
  wire logic is_whole = header_reg && !malformed_reg && !busy_reg && (left_reg == '0) && (end_at_reg <= payload_end)
                     && (seq_reg[63:SEQ_BITS] == '0);
  logic is_session_reg;                        // a clock behind the session, which is long before the end
  always_ff @(posedge clk) is_session_reg <= (session_reg == cfg_session);
  wire logic is_data  = (count_reg != '0) && (count_reg != 16'hffff);
  assign packet_good    = end_valid && end_good && is_whole && is_session_reg;
  assign packet_foreign = end_valid && end_good && is_whole && !is_session_reg;
  assign packet_bad     = end_valid && end_ours && !(end_good && is_whole);
  assign packet_void    = end_valid && !packet_good;
  assign packet_seq     = seq_reg[SEQ_BITS-1:0];
  assign packet_next    = seq_reg[SEQ_BITS-1:0] + (is_data ? SEQ_BITS'(count_reg) : '0);

  // rx_last is what udp_rx counts words by.
  wire logic unused = &{1'b0, rx_last, unused};

endmodule

`default_nettype wire
