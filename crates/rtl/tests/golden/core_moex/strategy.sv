// The rule of the strategy `core_moex`, written by `tickwire strategy rtl`: changes belong into its file.
// Prices are in 1e-4 of currency; `start_*` tells of a book or a trade, and what it is told stands until
// `busy` falls. A value is made in the clock that its name ends in, and kept in a register where a later
// clock needs it.
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
    output logic             order_ask,     // sell
    output logic [31:0]      order_qty,
    output logic [31:0]      order_price
);

  localparam logic signed [1:0] LOT = 2'sd1;  // param lot: 1
  logic signed [32:0] state_last_reg;  // in units of 100000
  logic state_last_1_reg;

  // ---------------------------------------------------------------- on book a
  // 2 clocks from the start to its first order, 1 orders at most.
  logic [2:2] book_run_reg;
  wire logic [2:1] book_at = {book_run_reg, start_book};  // bit n: clock n of a run
  always_ff @(posedge clk) begin
    book_run_reg <= book_at[1:1];
    if (rst) book_run_reg <= '0;
  end
  // clock 1
  // line 14: on book a when live(a) {
  wire logic book_2 = !live;
  logic book_2_reg;
  always_ff @(posedge clk) book_2_reg <= book_2;
  // line 15: let ask = a.ask[0].price
  wire logic book_6 = ask_qty != '0;
  logic book_6_reg;
  always_ff @(posedge clk) book_6_reg <= book_6;
  // line 16: if ask != last {
  wire logic book_9 = 33'($signed({1'b0, ask_price})) == state_last_reg;
  wire logic book_10 = book_6 == state_last_1_reg;
  logic book_10_reg;
  always_ff @(posedge clk) book_10_reg <= book_10;
  wire logic book_11 = !book_6;
  wire logic book_12 = book_9 || book_11;
  logic book_12_reg;
  always_ff @(posedge clk) book_12_reg <= book_12;
  // line 17: if distance(ask, last) <= collar { buy a lot @ ask ioc }
  wire logic book_18 = book_6 && state_last_1_reg;
  logic book_18_reg;
  always_ff @(posedge clk) book_18_reg <= book_18;
  wire logic signed [32:0] book_19 = 33'(33'($signed({1'b0, ask_price})) - state_last_reg);
  wire logic book_29 = -33'sd10000 <= book_19;
  logic book_29_reg;
  always_ff @(posedge clk) book_29_reg <= book_29;
  wire logic book_30 = book_19 <= 33'sd10000;
  logic book_30_reg;
  always_ff @(posedge clk) book_30_reg <= book_30;
  // clock 2
  // line 16: if ask != last {
  wire logic book_13 = book_10_reg && book_12_reg;
  wire logic book_14 = !book_13;
  wire logic book_16 = live && book_14;
  // line 17: if distance(ask, last) <= collar { buy a lot @ ask ioc }
  wire logic book_31 = book_29_reg && book_30_reg;
  wire logic book_32 = book_31 && book_18_reg;
  wire logic book_35 = book_16 && book_32;
  // line 14: on book a when live(a) {
  wire logic signed [32:0] book_38 = book_16 ? 33'($signed({1'b0, ask_price})) : state_last_reg;
  wire logic book_39 = book_16 ? book_6_reg : state_last_1_reg;
  wire logic book_40 = book_16 || book_2_reg;
  wire logic signed [32:0] book_41 = book_40 ? book_38 : state_last_reg;
  wire logic book_42 = book_40 ? book_39 : state_last_1_reg;

  // ---------------------------------------------------------------- orders and state
  assign busy = order_valid || (|book_run_reg);
  always_ff @(posedge clk) begin
    order_valid <= 1'b0;
    // line 17: if distance(ask, last) <= collar { buy a lot @ ask ioc }
    if (book_at[2] && book_35) begin
      order_valid <= 1'b1;
      order_ask   <= 1'b0;
      order_qty   <= 32'(33'(LOT));
      order_price <= ask_price;
    end
    if (book_at[2]) begin
      state_last_reg <= book_41;
      state_last_1_reg <= book_42;
    end
    if (rst) begin
      order_valid <= 1'b0;
      state_last_reg <= 33'sd0;
      state_last_1_reg <= 1'b0;
    end
  end

  // Not looked at by this rule.
  wire logic unused = &{1'b0, bid_valid, bid_price, bid_qty, ask_valid, has_last, last_price, last_qty, start_trade, book_at, unused};

endmodule

`default_nettype wire
