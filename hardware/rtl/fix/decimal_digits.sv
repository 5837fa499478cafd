// A number below 10^9 as nine decimal digits, four bits each, five clocks later: divided by a thousand and by a
// million through products, then each three digits apart.
`default_nettype none

module decimal_digits (
    input  wire logic        clk,
    input  wire logic [31:0] in,
    output logic [8:0][3:0]  out        // out[0] the units
);

  // n / 1,000 and n / 1,000,000 exactly, for every n of 32 bits: the errors, n * 56 / 2^38 and n * 157,376 / 2^50,
  // stay below a thousandth and a millionth.
  localparam logic [28:0] THOUSANDTH = 29'd274877907;
  localparam logic [30:0] MILLIONTH  = 31'd1125899907;

  logic [60:0] by_thousand_reg;
  logic [62:0] by_million_reg;
  logic [9:0]  low_reg;
  // Modulo 1,024, where 1,000 is -24.
  wire logic [9:0] thousands = by_thousand_reg[47:38];
  wire logic [9:0] millions  = by_million_reg[59:50];

  logic [2:0][9:0] part_reg;            // three digits each
  logic [2:0][6:0] part_low_reg, rest_reg;
  logic [2:0][3:0] hundreds_reg, hundreds_then_reg;

  function automatic logic [3:0] hundreds_of(input logic [9:0] n);
    hundreds_of = '0;
    for (int i = 1; i < 10; i++) if (n >= 10'(100 * i)) hundreds_of = 4'(i);
  endfunction
  // 0 to 99 as two digits, from a table.
  function automatic logic [127:0][7:0] two_digits();
    for (int n = 0; n < 128; n++) two_digits[n] = {4'((n / 10) % 10), 4'(n % 10)};
  endfunction
  localparam logic [127:0][7:0] TWO_DIGITS = two_digits();

  always_ff @(posedge clk) begin
    by_thousand_reg <= 61'(in) * 61'(THOUSANDTH);
    by_million_reg  <= 63'(in) * 63'(MILLIONTH);
    low_reg         <= in[9:0];
    // 24 times is 16 and 8 times.
    part_reg[0]     <= low_reg + {thousands[5:0], 4'd0} + {thousands[6:0], 3'd0};
    part_reg[1]     <= thousands + {millions[5:0], 4'd0} + {millions[6:0], 3'd0};
    part_reg[2]     <= millions;
    for (int i = 0; i < 3; i++) begin
      hundreds_reg[i]      <= hundreds_of(part_reg[i]);
      part_low_reg[i]      <= part_reg[i][6:0];
      hundreds_then_reg[i] <= hundreds_reg[i];
      // Modulo 128, where 100 is -28.
      rest_reg[i]          <= part_low_reg[i] + 7'({hundreds_reg[i], 5'd0}) - 7'({hundreds_reg[i], 2'd0});
      out[3*i+2]           <= hundreds_then_reg[i];
      {out[3*i+1], out[3*i]} <= TWO_DIGITS[rest_reg[i]];
    end
  end

  wire logic unused = &{1'b0, by_thousand_reg[60:48], by_thousand_reg[37:0], by_million_reg[62:60], by_million_reg[49:0], unused};

endmodule

`default_nettype wire
