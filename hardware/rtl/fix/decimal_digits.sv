// A number below 10^9 as nine decimal digits, four bits each, four clocks later: twice divided by a thousand through
// a product, then each three digits apart.
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
  logic [2:0][3:0] hundreds_reg;
  logic [2:0][6:0] rest_reg;

  function automatic logic [3:0] hundreds_of(input logic [9:0] n);
    return 4'((17'(n) * 17'd41) >> 12);
  endfunction
  function automatic logic [3:0] tens_of(input logic [6:0] n);
    return 4'((14'(n) * 14'd103) >> 10);
  endfunction

  always_ff @(posedge clk) begin
    by_thousand_reg <= 61'(in) * 61'(THOUSANDTH);
    by_million_reg  <= 63'(in) * 63'(MILLIONTH);
    low_reg         <= in[9:0];
    part_reg[0]     <= low_reg + thousands * 10'd24;
    part_reg[1]     <= thousands + millions * 10'd24;
    part_reg[2]     <= millions;
    for (int i = 0; i < 3; i++) begin
      hundreds_reg[i] <= hundreds_of(part_reg[i]);
      rest_reg[i]     <= 7'(part_reg[i] - 10'(hundreds_of(part_reg[i])) * 10'd100);
      out[3*i+2]      <= hundreds_reg[i];
      out[3*i+1]      <= tens_of(rest_reg[i]);
      out[3*i]        <= 4'(rest_reg[i] - 7'(tens_of(rest_reg[i])) * 7'd10);
    end
  end

  wire logic unused = &{1'b0, by_thousand_reg[60:48], by_thousand_reg[37:0], by_million_reg[62:60], by_million_reg[49:0], unused};

endmodule

`default_nettype wire
