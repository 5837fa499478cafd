// A rule for tests of the core: buys one lot at every new best offer.
`default_nettype none

module strategy (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic        start_book,
    input  wire logic        start_trade,
    output logic             busy,
    input  wire logic        live,
    input  wire logic        bid_valid,
    input  wire logic [31:0] bid_price,
    input  wire logic [39:0] bid_qty,
    input  wire logic        ask_valid,
    input  wire logic [31:0] ask_price,
    input  wire logic [39:0] ask_qty,
    input  wire logic        has_last,
    input  wire logic [31:0] last_price,
    input  wire logic [31:0] last_qty,
    output logic             order_valid,
    output logic             order_ask,
    output logic [31:0]      order_qty,
    output logic [31:0]      order_price
);
  logic [31:0] bought_reg;
  assign busy = order_valid;
  always_ff @(posedge clk) begin
    order_valid <= start_book && ask_valid && (ask_price != bought_reg);
    order_ask   <= 1'b0;
    order_qty   <= 32'd100;
    order_price <= ask_price;
    if (start_book) bought_reg <= ask_price;
    if (rst) begin
      order_valid <= 1'b0;
      bought_reg  <= '0;
    end
  end
  wire logic unused = &{1'b0, start_trade, live, bid_valid, bid_price, bid_qty, ask_qty, has_last, last_price, last_qty, unused};
endmodule

`default_nettype wire
