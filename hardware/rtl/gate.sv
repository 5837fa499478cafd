// The last thing an order passes. It is let through, or stopped by the first check in the order of block_t that
// does not hold, and counted there. What is let through is charged at once: tokens, orders left, position.
//
// Armed by software, and disarmed by: a fault of the feed or the book, the watchdog (software has not written
// for `cfg_watchdog` clocks), the last order that was left. Only software arms again.
// The position counts every order that left as traded, until software writes what is held.
//
// What an order says is judged a clock before it may come (`soon`): an order that was not announced, or before which
// position, orders left or arming were written, waits a clock. Collar, size and the largest position hold from the
// second clock after software wrote them; a fault and `disarm` in the clock in which they come.
`default_nettype none

module gate
  import core_pkg::*;
#(
    parameter logic [31:0] QTY_MOST = 32'd999999,    // what an order's text has room for
    parameter logic [31:0] PRICE_MOST = 32'd1999999900
) (
    input  wire logic               clk,
    input  wire logic               rst,

    input  wire logic               arm,             // one clock
    input  wire logic               disarm,          // wins over arm
    input  wire logic               alive,           // one clock: software lives
    input  wire logic [31:0]        cfg_watchdog,    // clocks; 0: none
    input  wire logic [31:0]        cfg_low,         // collar, both ends allowed
    input  wire logic [31:0]        cfg_high,
    input  wire logic [31:0]        cfg_size,        // largest order
    input  wire logic [31:0]        cfg_position,    // largest position either way
    input  wire logic [15:0]        cfg_tokens,      // so many orders at once at most, and
    input  wire logic [31:0]        cfg_token_clocks, // one more after so many clocks; 0: none comes back
    input  wire logic               set_left,
    input  wire logic               set_held,        // position := value
    input  wire logic               add_held,        // position += value
    input  wire logic signed [31:0] value,

    input  wire logic               healthy,         // feed and book are right
    input  wire logic               trading,
    input  wire logic               reference,

    input  wire logic               soon_valid,      // in the next clock `soon` is offered
    input  wire order_t             soon,
    input  wire logic               in_valid,
    input  wire order_t             in,
    output logic                    in_ready,
    output logic                    out_valid,
    output order_t                  out,
    input  wire logic               out_ready,

    output logic                    armed,
    output logic                    expired,         // the watchdog has disarmed
    output logic signed [33:0]      held,
    output logic [31:0]             left,
    output logic [15:0]             tokens,
    output logic [31:0]             passed,
    output logic [BLOCKS-1:0][31:0] blocked
);

  logic [31:0] since_reg, refill_reg;
  order_t      last_reg;
  logic        has_last_reg;

  logic passes, decides, is_stopped;

  // Sell orders make the position smaller.
  wire logic signed [33:0] soon_change = soon.ask ? -signed'({2'b00, soon.qty}) : signed'({2'b00, soon.qty});
  wire logic signed [33:0] then_held = held + soon_change;
  wire logic signed [33:0] most = signed'({2'b00, cfg_position});
  logic known_reg, size_reg, collar_reg, over_reg, same_reg, no_tokens_reg, none_left_reg;
  logic signed [33:0] change_reg, passed_change_reg;
  logic charges_reg;                       // the position is charged with the order of the clock before
  always_ff @(posedge clk) begin
    known_reg  <= soon_valid && !set_held && !add_held && !set_left && !arm && !charges_reg && !rst;
    no_tokens_reg <= (tokens == '0);
    none_left_reg <= (left == '0);
    charges_reg       <= passes && !rst;
    passed_change_reg <= change_reg;
    size_reg   <= (soon.qty == '0) || (soon.qty > cfg_size) || (soon.qty > QTY_MOST);
    collar_reg <= (soon.price < cfg_low) || (soon.price > cfg_high) || (soon.price > PRICE_MOST);
    over_reg   <= soon.ask ? (then_held < -most) : (then_held > most);
    same_reg   <= has_last_reg && (last_reg == soon);
    change_reg <= soon_change;
  end
  wire logic is_healthy = healthy && !disarm;

  logic [BLOCKS-1:0] holds;
  logic [3:0]        reason;
  always_comb begin
    holds                  = '0;
    holds[BLOCK_DISARMED]  = !armed;
    holds[BLOCK_STOPPED]   = !is_healthy;
    holds[BLOCK_TRADING]   = !trading;
    holds[BLOCK_SIZE]      = size_reg;
    holds[BLOCK_REFERENCE] = !reference;
    holds[BLOCK_COLLAR]    = collar_reg;
    holds[BLOCK_DUPLICATE] = same_reg;
    holds[BLOCK_POSITION]  = over_reg;
    holds[BLOCK_TOKENS]    = no_tokens_reg;
    holds[BLOCK_LEFT]      = none_left_reg;
    is_stopped = |holds;
    reason     = '0;
    for (int i = BLOCKS - 1; i >= 0; i--) if (holds[i]) reason = 4'(i);
  end

  wire logic offered = in_valid && known_reg;
  assign decides = offered && (is_stopped || out_ready);
  assign passes  = offered && !is_stopped && out_ready;
  wire logic refills = (cfg_token_clocks != '0) && (refill_reg + 32'd1 >= cfg_token_clocks);
  // Counted a clock later.
  logic       stops_reg;
  logic [3:0] reason_reg;

  assign in_ready  = decides;
  assign out_valid = offered && !is_stopped;
  assign out       = in;

  always_ff @(posedge clk) begin
    if (passes) begin
      passed       <= passed + 32'd1;
      last_reg     <= in;
      has_last_reg <= 1'b1;
    end
    stops_reg  <= decides && is_stopped && !rst;
    reason_reg <= reason;
    for (int i = 0; i < BLOCKS; i++) if (stops_reg && (reason_reg == 4'(i))) blocked[i] <= blocked[i] + 32'd1;

    refill_reg <= refills ? '0 : refill_reg + 32'd1;
    if (passes && !(refills && tokens < cfg_tokens)) tokens <= tokens - 16'd1;
    else if (!passes && refills && (tokens < cfg_tokens)) tokens <= tokens + 16'd1;
    else if (tokens > cfg_tokens) tokens <= cfg_tokens;

    if (set_left) left <= value;
    else if (passes) left <= left - 32'd1;

    if (set_held) held <= 34'(value);
    else held <= held + (charges_reg ? passed_change_reg : 34'sd0) + (add_held ? 34'(value) : 34'sd0);

    if (alive) since_reg <= '0;
    else if (since_reg != '1) since_reg <= since_reg + 32'd1;
    if ((cfg_watchdog != '0) && (since_reg >= cfg_watchdog)) begin
      armed   <= 1'b0;
      expired <= armed || expired;
    end else if (arm) begin
      armed   <= healthy;
      expired <= 1'b0;
      tokens  <= cfg_tokens;
    end
    if (!is_healthy) armed <= 1'b0;
    if (passes && (left == 32'd1)) armed <= 1'b0;

    if (rst) begin
      armed        <= 1'b0;
      expired      <= 1'b0;
      held         <= '0;
      left         <= '0;
      tokens       <= '0;
      passed       <= '0;
      blocked      <= '0;
      since_reg    <= '0;
      refill_reg   <= '0;
      has_last_reg <= 1'b0;
    end
  end

endmodule

`default_nettype wire
