// The lowest bit that is set of 64, as a tree of eight times eight; of another number, for proofs on a small scale, as a
// chain.
`default_nettype none

module lowest_set #(
    parameter int ADDRESS = 6
) (
    input  wire logic [(1<<ADDRESS)-1:0] in,
    output logic               any,
    output logic [ADDRESS-1:0] at
);

  if (ADDRESS == 6) begin : tree
    function automatic logic [2:0] lowest8(input logic [7:0] bits);
      lowest8 = '0;
      for (int i = 7; i >= 0; i--) if (bits[i]) lowest8 = 3'(i);
    endfunction

    logic [7:0]      some;
    logic [7:0][2:0] low;
    logic [2:0]      group;
    always_comb begin
      for (int i = 0; i < 8; i++) begin
        some[i] = |in[8*i +: 8];
        low[i]  = lowest8(in[8*i +: 8]);
      end
      group = lowest8(some);
      any   = |some;
      at    = {group, low[group]};
    end
  end else begin : chain
    always_comb begin
      any = |in;
      at  = '0;
      for (int i = (1 << ADDRESS) - 1; i >= 0; i--) if (in[i]) at = ADDRESS'(i);
    end
  end

endmodule

`default_nettype wire
