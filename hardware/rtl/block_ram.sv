// One write and one read port, one clock. Read data comes a clock after the address; with REGISTERED one more,
// through the output register that block RAMs have and without which their clock-to-out is half a period.
`default_nettype none

module block_ram #(
    parameter int WIDTH = 8,
    parameter int ADDRESS = 8,
    parameter bit REGISTERED = 1'b1
) (
    input  wire logic               clk,
    input  wire logic               write,
    input  wire logic [ADDRESS-1:0] write_address,
    input  wire logic [WIDTH-1:0]   write_data,
    input  wire logic [ADDRESS-1:0] read_address,
    output logic [WIDTH-1:0]        read_data
);

  (* ram_style = "block", no_rw_check *) logic [WIDTH-1:0] memory [1 << ADDRESS];
  logic [WIDTH-1:0] read_reg;

  always_ff @(posedge clk) begin
    if (write) memory[write_address] <= write_data;
    read_reg <= memory[read_address];
  end

  if (REGISTERED) begin : output_register
    logic [WIDTH-1:0] out_reg;
    always_ff @(posedge clk) out_reg <= read_reg;
    assign read_data = out_reg;
  end else begin : no_output_register
    assign read_data = read_reg;
  end

endmodule

`default_nettype wire
