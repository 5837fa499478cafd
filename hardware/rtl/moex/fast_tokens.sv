// Words of a FAST message as tokens: runs of bytes of which only the last has its upper bit set (FAST 1.1, section
// 10.6). Two tokens of a word leave in a clock; one that goes on in the next word waits for it. A token is its bytes'
// lower seven bits one behind the other, the last one in bits 6:0: an integer as it is, a text in seven bits a
// character. Twelve bytes are kept; `length` says when there were more.
//
// `last` comes with a message's last pair, which may be no token at all; `broken` with it: the message's last byte
// did not end a token.
`default_nettype none

module fast_tokens
  import token_pkg::*;
(
    input  wire logic        clk,
    input  wire logic        rst,

    input  wire logic        in_valid,
    input  wire logic [63:0] in_data,
    input  wire logic [7:0]  in_keep,
    input  wire logic        in_first,
    input  wire logic        in_last,
    output logic             in_pop,

    output logic             out_valid,   // there is something: a token, or the end
    output logic             out_a_valid, // the first token
    output token_t           out_a,
    output logic             out_b_valid, // and the one behind it
    output token_t           out_b,
    output logic [31:0]      out_number,  // the preamble of the message, which its first word holds
    output logic             out_last,
    output logic             out_broken,
    input  wire logic        take_a,      // A is taken and B is not: B will be A
    input  wire logic        take_all
);

  // ---------------------------------------------------------------- which bytes, one word a step
  // Stage 1 finds up to two ends of tokens among the bytes of the word that were not taken yet.
  logic       fresh_reg;                  // none of the word were
  logic [7:0] stops_reg, bytes_reg;       // what is left of it
  wire logic [7:0] ends  = {in_data[63], in_data[55], in_data[47], in_data[39], in_data[31], in_data[23], in_data[15],
                            in_data[7]};
  wire logic [7:0] stops = fresh_reg ? (ends & in_keep) : stops_reg;
  wire logic [7:0] bytes = fresh_reg ? in_keep : bytes_reg;

  // Whether a token ends before a place, and whether two do.
  logic [7:0] after_one, after_two;
  always_comb begin
    logic one, two;
    one = 1'b0;
    two = 1'b0;
    for (int i = 0; i < 8; i++) begin
      after_one[i] = one;
      after_two[i] = two;
      two |= one && stops[i];
      one |= stops[i];
    end
  end

  wire logic [7:0] stop_a = stops & ~after_one;
  wire logic [7:0] stop_b = stops & after_one & ~after_two;
  wire logic [7:0] rest   = stops & after_two;
  wire logic has_a = (stops != '0);
  wire logic has_b = (stop_b != '0);
  wire logic done  = (rest == '0);        // nothing of the word stays behind but the start of a token
  wire logic [7:0] after = bytes & (has_b ? after_two : has_a ? after_one : '1);

  logic        step_reg, done_reg, first_reg, last_reg;
  logic [63:0] data_reg;
  logic [7:0]  stop_a_reg, stop_b_reg, mask_a_reg, mask_b_reg, tail_reg;
  logic        en;

  assign in_pop = in_valid && done && en;

  always_ff @(posedge clk) begin
    if (en) begin
      step_reg   <= in_valid;
      done_reg   <= done;
      first_reg  <= in_first && fresh_reg;
      last_reg   <= in_last && done;
      data_reg   <= in_data;
      stop_a_reg <= stop_a;
      stop_b_reg <= stop_b;
      mask_a_reg <= has_a ? (bytes & ~after_one) : '0;
      mask_b_reg <= has_b ? (bytes & after_one & ~after_two) : '0;
      tail_reg   <= done ? after : '0;
      if (in_valid) begin
        fresh_reg <= done;
        stops_reg <= rest;
        bytes_reg <= bytes & after_two;
      end
    end
    if (rst) begin
      step_reg  <= 1'b0;
      fresh_reg <= 1'b1;
    end
  end

  // ---------------------------------------------------------------- bytes to tokens
  function automatic logic [55:0] packed7(input logic [63:0] data, input logic [7:0] mask);
    for (int i = 0; i < 8; i++) packed7[7*(7-i) +: 7] = data[8*i +: 7] & {7{mask[i]}};
  endfunction
  function automatic logic [3:0] ones(input logic [7:0] bits);
    ones = '0;
    for (int i = 0; i < 8; i++) ones += {3'd0, bits[i]};
  endfunction
  function automatic logic [3:0] sum(input logic [3:0] a, input logic [3:0] b);
    logic [4:0] both;
    both = {1'b0, a} + {1'b0, b};
    return both[4] ? 4'd15 : both[3:0];
  endfunction
  // Bit 6 of the first byte of a run: the sign of an integer.
  function automatic logic sign(input logic [63:0] data, input logic [7:0] mask);
    logic [7:0] begins;
    begins = mask & ~{mask[6:0], 1'b0};
    sign = 1'b0;
    for (int i = 0; i < 8; i++) sign |= begins[i] && data[8*i+6];
  endfunction

  logic [31:0] number_reg;
  wire logic [31:0] number = first_reg ? {data_reg[47:40], data_reg[39:32], data_reg[31:24], data_reg[23:16]} : number_reg;
  always_ff @(posedge clk) if (en && step_reg) number_reg <= number;

  logic [83:0] carry_reg;                 // of a token that began in words before
  logic [3:0]  carry_length_reg;
  logic        carry_sign_reg;
  wire logic [83:0] carry        = first_reg ? '0 : carry_reg;
  wire logic [3:0]  carry_length = first_reg ? '0 : carry_length_reg;

  wire logic [55:0] run_a = packed7(data_reg, mask_a_reg);
  wire logic [55:0] run_b = packed7(data_reg, mask_b_reg);
  wire logic [55:0] tail  = packed7(data_reg, tail_reg);
  wire logic [3:0] ones_a = ones(mask_a_reg);
  wire logic [3:0] ones_b = ones(mask_b_reg);

  token_t made_a, made_b;
  always_comb begin
    made_a = '0;
    made_b = '0;
    for (int i = 0; i < 8; i++) begin
      if (stop_a_reg[i]) made_a.bits |= 84'({carry, run_a} >> (7 * (7 - i)));
      if (stop_b_reg[i]) made_b.bits |= 84'(run_b) >> (7 * (7 - i));
    end
    made_a.length   = sum(carry_length, ones_a);
    made_a.negative = (carry_length != '0) ? carry_sign_reg : sign(data_reg, mask_a_reg);
    made_a.is_null  = (carry_length == '0) && |(stop_a_reg & lone(data_reg)) && (ones_a == 4'd1);
    made_b.length   = ones_b;
    made_b.negative = sign(data_reg, mask_b_reg);
    made_b.is_null  = |(stop_b_reg & lone(data_reg)) && (ones_b == 4'd1);
  end
  // Bytes that are 80: alone they are NULL.
  function automatic logic [7:0] lone(input logic [63:0] data);
    for (int i = 0; i < 8; i++) lone[i] = (data[8*i +: 7] == '0);
  endfunction

  typedef struct packed {
    logic   a_valid;
    logic   b_valid;
    logic   last;
    logic   broken;
    logic [31:0] number;
    token_t a;
    token_t b;
  } pair_t;
  pair_t made;
  always_comb begin
    made.a_valid = (stop_a_reg != '0);
    made.b_valid = (stop_b_reg != '0);
    made.last    = last_reg;
    // A token that ends in this word needs nothing of what was carried.
    made.broken  = last_reg && ((tail_reg != '0) || ((stop_a_reg == '0) && (carry_length != '0)));
    made.number  = number;
    made.a       = made_a;
    made.b       = made_b;
  end
  wire logic is_made = step_reg && (made.a_valid || made.last);

  always_ff @(posedge clk) begin
    if (en && step_reg && done_reg) begin
      // Without an end in it the whole word belongs to the token under way.
      if (stop_a_reg == '0) begin
        carry_reg        <= {carry[27:0], tail};
        carry_length_reg <= sum(carry_length, ones(tail_reg));
        carry_sign_reg   <= (carry_length != '0) ? carry_sign_reg : sign(data_reg, tail_reg);
      end else begin
        carry_reg        <= 84'(tail);
        carry_length_reg <= ones(tail_reg);
        carry_sign_reg   <= sign(data_reg, tail_reg);
      end
    end else if (en && step_reg && (stop_a_reg != '0)) begin
      carry_reg        <= '0;
      carry_length_reg <= '0;
    end
    if (rst) carry_length_reg <= '0;
  end

  // ---------------------------------------------------------------- the pair that is offered, and one behind it
  pair_t pair_reg, spare_reg;
  logic  pair_valid_reg, spare_valid_reg;
  wire logic moves = !pair_valid_reg || take_all;
  assign en = !spare_valid_reg;

  always_ff @(posedge clk) begin
    if (moves) begin
      pair_reg       <= spare_valid_reg ? spare_reg : made;
      pair_valid_reg <= spare_valid_reg || is_made;
    end else if (take_a) begin
      pair_reg.a       <= pair_reg.b;
      pair_reg.b_valid <= 1'b0;
    end
    if (en) spare_reg <= made;
    spare_valid_reg <= !moves && (spare_valid_reg || is_made);
    if (rst) begin
      pair_valid_reg  <= 1'b0;
      spare_valid_reg <= 1'b0;
    end
  end

  assign out_valid   = pair_valid_reg;
  assign out_a_valid = pair_reg.a_valid;
  assign out_a       = pair_reg.a;
  assign out_b_valid = pair_reg.b_valid;
  assign out_b       = pair_reg.b;
  assign out_number  = pair_reg.number;
  assign out_last    = pair_reg.last;
  assign out_broken  = pair_reg.broken;

endmodule

`default_nettype wire
