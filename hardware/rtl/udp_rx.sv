// Ethernet II, IPv4 and UDP in cut-through: 64 bits a clock, the first byte of a frame in lane 0 (bits 7:0), no
// gap between words of a frame needed nor forbidden. Words pass through as they come, numbered; the verdict
// follows one clock behind the frame's last word. What is checked: EtherType, header length, fragments,
// protocol, destination address and port, the header's checksum, UDP length against the frame. The UDP
// checksum is not: the frame's FCS, which the MAC has judged (`rx_error`), covers the same bytes.
// A tagged (802.1Q) frame is not for this line.
`default_nettype none

module udp_rx (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic [31:0] cfg_address,   // destination, 239.1.2.3 is ef010203
    input  wire logic [15:0] cfg_port,

    input  wire logic [63:0] rx_data,
    input  wire logic [7:0]  rx_keep,       // of the last word; all ones before
    input  wire logic        rx_valid,
    input  wire logic        rx_last,
    input  wire logic        rx_error,      // with rx_last: bad FCS

    output logic [3:0]       word,          // 0 to 7 the frame's first words, then 8
    output logic             ours,          // the frame is for this line, as far as its words say; whole from word 5 on
    output logic [15:0]      payload_end,   // byte behind the datagram, counted from the frame's first; from word 5 on
    output logic [15:0]      payload_left,  // the same, counted from byte 40, with which word 5 begins

    output logic             end_valid,     // a frame is over
    output logic             end_ours,      // with it: it was for this line
    output logic             end_good,      // with it: and passed every check
    output logic             end_fcs        // with it: its FCS was bad
);

  logic [3:0]  word_reg;
  logic [15:0] bytes_reg;
  logic        ours_reg;
  logic [15:0] payload_end_reg, payload_left_reg;
  logic [19:0] sum_reg;
  logic        end_reg, end_error_reg;
  logic [15:0] frame_bytes_reg;

  function automatic logic [15:0] big16(input logic [63:0] data, input int lane);
    return {data[8*lane +: 8], data[8*lane+8 +: 8]};
  endfunction

  function automatic logic [3:0] ones(input logic [7:0] keep);
    ones = '0;
    for (int i = 0; i < 8; i++) ones += {3'd0, keep[i]};
  endfunction

  // The IPv4 header is bytes 14 to 33: one's complement sum of its ten halves.
  logic [18:0] header_halves;
  always_comb begin
    case (word_reg)
      4'd1:       header_halves = 19'(big16(rx_data, 6));
      4'd2, 4'd3: header_halves = 19'(big16(rx_data, 0)) + 19'(big16(rx_data, 2)) + 19'(big16(rx_data, 4))
                                + 19'(big16(rx_data, 6));
      4'd4:       header_halves = 19'(big16(rx_data, 0));
      default:    header_halves = '0;
    endcase
  end

  logic word_fits;
  always_comb begin
    word_fits = 1'b1;
    case (word_reg)
      4'd1: word_fits = (big16(rx_data, 4) == 16'h0800) && (rx_data[55:48] == 8'h45);
      // Fragments: only the "do not fragment" bit may be set.
      4'd2: word_fits = (rx_data[37:32] == '0) && !rx_data[39] && (rx_data[47:40] == '0) && (rx_data[63:56] == 8'd17);
      4'd3: word_fits = (big16(rx_data, 6) == cfg_address[31:16]);
      4'd4: word_fits = (big16(rx_data, 0) == cfg_address[15:0]) && (big16(rx_data, 4) == cfg_port);
      default: ;
    endcase
  end

  always_ff @(posedge clk) begin
    end_reg <= 1'b0;
    if (rx_valid) begin
      word_reg        <= (word_reg == 4'd8) ? 4'd8 : word_reg + 4'd1;
      bytes_reg       <= bytes_reg + 16'd8;
      ours_reg        <= (word_reg == 4'd0) ? 1'b1 : ours_reg && word_fits;
      sum_reg         <= (word_reg == 4'd0) ? '0 : sum_reg + 20'(header_halves);
      if (word_reg == 4'd4) begin
        payload_end_reg  <= big16(rx_data, 6) + 16'd34;
        payload_left_reg <= big16(rx_data, 6) - 16'd6;
      end
      end_error_reg   <= rx_error;
      frame_bytes_reg <= bytes_reg + 16'(ones(rx_keep));
      if (rx_last) begin
        end_reg   <= 1'b1;
        word_reg  <= '0;
        bytes_reg <= '0;
      end
    end
    if (rst) begin
      word_reg  <= '0;
      bytes_reg <= '0;
      end_reg   <= 1'b0;
    end
  end

  wire logic [16:0] fold = {1'b0, sum_reg[15:0]} + {13'd0, sum_reg[19:16]};

  assign word        = word_reg;
  assign ours        = ours_reg;
  assign payload_end = payload_end_reg;
  assign payload_left = payload_left_reg;
  assign end_valid   = end_reg;
  // A frame shorter than its headers leaves old values behind: 42 bytes are asked for.
  assign end_ours    = ours_reg && (frame_bytes_reg >= 16'd42);
  assign end_fcs     = end_error_reg;
  assign end_good    = end_ours && !end_error_reg && ((fold == 17'h0ffff) || (fold == 17'h1fffe))
                     && (payload_end_reg >= 16'd42) && (frame_bytes_reg >= payload_end_reg);

endmodule

`default_nettype wire
