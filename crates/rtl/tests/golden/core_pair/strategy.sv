// The rule of the strategy `core_pair`, written by `tickwire strategy rtl`: changes belong into its file.
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

  localparam logic signed [4:0] LOT = 5'sd10;  // param lot: 10
  localparam logic signed [2:0] BURST = 3'sd3;  // param burst: 3
  logic signed [63:0] state_prints_reg;
  logic signed [63:0] state_traded_reg;
  logic signed [32:0] state_start_reg;  // in units of 100000
  logic state_start_1_reg;

  // ---------------------------------------------------------------- on book a
  // 2 clocks from the start to its first order, 3 orders at most.
  logic [4:2] book_run_reg;
  wire logic [4:1] book_at = {book_run_reg, start_book};  // bit n: clock n of a run
  always_ff @(posedge clk) begin
    book_run_reg <= book_at[3:1];
    if (rst) book_run_reg <= '0;
  end
  // clock 1
  // line 21: on book a when live(a) {
  wire logic book_2 = !live;
  logic book_2_reg;
  always_ff @(posedge clk) book_2_reg <= book_2;
  // line 22: if spread(a) <= wide {
  wire logic book_6 = bid_qty != '0;
  wire logic book_9 = ask_qty != '0;
  wire logic book_10 = book_6 && book_9;
  logic book_10_reg;
  always_ff @(posedge clk) book_10_reg <= book_10;
  wire logic signed [32:0] book_11 = 33'(33'($signed({1'b0, ask_price})) - 33'($signed({1'b0, bid_price})));
  wire logic book_16 = book_11 < 33'sd600;
  logic book_16_reg;
  always_ff @(posedge clk) book_16_reg <= book_16;
  // line 24: if a.bid[0].qty > a.ask[0].qty + traded { buy a lot @ a.ask[0].price ioc }
  wire logic signed [64:0] book_27_exact = 65'($signed({1'b0, ask_qty})) + 65'(state_traded_reg);
  wire logic signed [63:0] book_27 = (book_27_exact > 65'sd9223372036854775807) ? 64'(65'sd9223372036854775807)
      : (book_27_exact < -65'sd9223372036854775808) ? 64'(-65'sd9223372036854775808) : 64'(book_27_exact);
  wire logic book_28 = book_27 < 64'($signed({1'b0, bid_qty}));
  logic book_28_reg;
  always_ff @(posedge clk) book_28_reg <= book_28;
  // line 25: if a.ask[0].qty > 2 * a.bid[0].qty {
  wire logic signed [41:0] book_35 = 42'(42'sd2 * 42'($signed({1'b0, bid_qty})));
  logic signed [41:0] book_35_reg;
  always_ff @(posedge clk) book_35_reg <= book_35;
  // line 27: if price > a.bid[0].price { sell a min(lot * 2, a.bid[0].qty) @ stepped(a.bid[0].price, 1)
  wire logic book_41 = 33'($signed({1'b0, bid_price})) < state_start_reg;
  logic book_41_reg;
  always_ff @(posedge clk) book_41_reg <= book_41;
  wire logic book_42 = !book_41;
  logic book_42_reg;
  always_ff @(posedge clk) book_42_reg <= book_42;
  wire logic signed [5:0] book_46 = 6'((41'sd20 < 41'($signed({1'b0, bid_qty}))) ? 41'sd20 : 41'($signed({1'b0, bid_qty})));
  logic signed [5:0] book_46_reg;
  always_ff @(posedge clk) book_46_reg <= book_46;
  wire logic signed [33:0] book_47 = 34'(34'($signed({1'b0, bid_price})) + 34'sd100);
  logic signed [33:0] book_47_reg;
  always_ff @(posedge clk) book_47_reg <= book_47;
  // clock 2
  // line 22: if spread(a) <= wide {
  wire logic book_17 = book_16_reg && book_10_reg;
  wire logic book_18 = !book_17;
  wire logic book_19 = live && book_18;
  logic book_19_reg;
  always_ff @(posedge clk) book_19_reg <= book_19;
  wire logic book_20 = live && book_17;
  // line 23: if let price = start {
  wire logic book_25 = book_20 && state_start_1_reg;
  // line 24: if a.bid[0].qty > a.ask[0].qty + traded { buy a lot @ a.ask[0].price ioc }
  wire logic book_31 = book_25 && book_28_reg;
  // line 25: if a.ask[0].qty > 2 * a.bid[0].qty {
  wire logic book_36 = book_35_reg < 42'($signed({1'b0, ask_qty}));
  wire logic book_37 = !book_36;
  wire logic book_38 = book_25 && book_37;
  wire logic book_39 = book_25 && book_36;
  logic book_39_reg;
  always_ff @(posedge clk) book_39_reg <= book_39;
  // line 27: if price > a.bid[0].price { sell a min(lot * 2, a.bid[0].qty) @ stepped(a.bid[0].price, 1)
  wire logic book_43 = book_39 && book_42_reg;
  logic book_43_reg;
  always_ff @(posedge clk) book_43_reg <= book_43;
  wire logic book_44 = book_39 && book_41_reg;
  logic book_44_reg;
  always_ff @(posedge clk) book_44_reg <= book_44;
  // line 29: start = none
  wire logic book_53 = book_44 || book_38;
  logic book_53_reg;
  always_ff @(posedge clk) book_53_reg <= book_53;
  // clock 3
  wire logic book_58 = book_53_reg || book_43_reg;
  // line 21: on book a when live(a) {
  wire logic signed [63:0] book_59 = book_58 ? 64'sd0 : state_traded_reg;
  wire logic signed [32:0] book_60 = book_58 ? 33'sd0 : state_start_reg;
  wire logic book_61 = book_58 ? 1'b0 : state_start_1_reg;
  wire logic book_62 = book_58 || book_2_reg;
  wire logic signed [63:0] book_63 = book_62 ? book_59 : state_traded_reg;
  wire logic signed [32:0] book_64 = book_62 ? book_60 : state_start_reg;
  wire logic book_65 = book_62 ? book_61 : state_start_1_reg;
  wire logic book_66 = book_62 || book_19_reg;
  wire logic signed [63:0] book_67 = book_66 ? book_63 : state_traded_reg;
  logic signed [63:0] book_67_reg;
  always_ff @(posedge clk) book_67_reg <= book_67;
  wire logic signed [32:0] book_68 = book_66 ? book_64 : state_start_reg;
  logic signed [32:0] book_68_reg;
  always_ff @(posedge clk) book_68_reg <= book_68;
  wire logic book_69 = book_66 ? book_65 : state_start_1_reg;
  logic book_69_reg;
  always_ff @(posedge clk) book_69_reg <= book_69;

  // ---------------------------------------------------------------- on trade a
  // 1 clocks from the start to its first order, 0 orders at most.
  logic [2:2] trade_run_reg;
  wire logic [2:1] trade_at = {trade_run_reg, start_trade};  // bit n: clock n of a run
  always_ff @(posedge clk) begin
    trade_run_reg <= trade_at[1:1];
    if (rst) trade_run_reg <= '0;
  end
  // clock 1
  // line 16: traded += trade.qty
  wire logic signed [64:0] trade_3_exact = 65'(state_traded_reg) + 65'($signed({1'b0, last_qty}));
  wire logic signed [63:0] trade_3 = (trade_3_exact > 65'sd9223372036854775807) ? 64'(65'sd9223372036854775807)
      : (trade_3_exact < -65'sd9223372036854775808) ? 64'(-65'sd9223372036854775808) : 64'(trade_3_exact);
  logic signed [63:0] trade_3_reg;
  always_ff @(posedge clk) trade_3_reg <= trade_3;
  // line 17: if trade.qty >= lot { prints += 1 }
  wire logic trade_5 = 33'(LOT) <= 33'($signed({1'b0, last_qty}));
  wire logic signed [64:0] trade_8_exact = 65'(state_prints_reg) + 65'sd1;
  wire logic signed [63:0] trade_8 = (trade_8_exact > 65'sd9223372036854775807) ? 64'(65'sd9223372036854775807)
      : (trade_8_exact < -65'sd9223372036854775808) ? 64'(-65'sd9223372036854775808) : 64'(trade_8_exact);
  // line 18: if prints > burst { prints = 0  start = trade.price }
  wire logic signed [63:0] trade_9 = trade_5 ? trade_8 : state_prints_reg;
  logic signed [63:0] trade_9_reg;
  always_ff @(posedge clk) trade_9_reg <= trade_9;
  // clock 2
  wire logic trade_11 = 64'(BURST) < trade_9_reg;
  // line 15: on trade a {
  wire logic signed [63:0] trade_16 = trade_11 ? 64'sd0 : trade_9_reg;
  wire logic signed [32:0] trade_18 = trade_11 ? 33'($signed({1'b0, last_price})) : state_start_reg;
  wire logic trade_20 = trade_11 ? 1'b1 : state_start_1_reg;

  // ---------------------------------------------------------------- orders and state
  assign busy = order_valid || (|book_run_reg) || (|trade_run_reg);
  // As in software: a quantity or price that an order cannot have becomes the nearest one that it can.
  function automatic logic [31:0] nearest32(input logic signed [127:0] n);
    return (n < 0) ? 32'd0 : (n > 128'sd4294967295) ? 32'hffffffff : n[31:0];
  endfunction
  always_ff @(posedge clk) begin
    order_valid <= 1'b0;
    // line 24: if a.bid[0].qty > a.ask[0].qty + traded { buy a lot @ a.ask[0].price ioc }
    if (book_at[2] && book_31) begin
      order_valid <= 1'b1;
      order_ask   <= 1'b0;
      order_qty   <= 32'(33'(LOT));
      order_price <= ask_price;
    end
    // line 26: sell a lot @ a.bid[0].price ioc
    if (book_at[3] && book_39_reg) begin
      order_valid <= 1'b1;
      order_ask   <= 1'b1;
      order_qty   <= 32'(33'(LOT));
      order_price <= bid_price;
    end
    // line 27: if price > a.bid[0].price { sell a min(lot * 2, a.bid[0].qty) @ stepped(a.bid[0].price, 1)
    if (book_at[4] && book_44_reg) begin
      order_valid <= 1'b1;
      order_ask   <= 1'b1;
      order_qty   <= 32'(33'(book_46_reg));
      order_price <= nearest32(128'(book_47_reg));
    end
    if (book_at[4]) begin
      state_traded_reg <= book_67_reg;
      state_start_reg <= book_68_reg;
      state_start_1_reg <= book_69_reg;
    end
    if (trade_at[2]) begin
      state_prints_reg <= trade_16;
      state_traded_reg <= trade_3_reg;
      state_start_reg <= trade_18;
      state_start_1_reg <= trade_20;
    end
    if (rst) begin
      order_valid <= 1'b0;
      state_prints_reg <= 64'sd0;
      state_traded_reg <= 64'sd0;
      state_start_reg <= 33'sd0;
      state_start_1_reg <= 1'b0;
    end
  end

  // Not looked at by this rule.
  wire logic unused = &{1'b0, bid_valid, ask_valid, has_last, book_at, trade_at, unused};

endmodule

`default_nettype wire
