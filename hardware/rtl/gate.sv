// The last thing an order passes. It is let through, or stopped by the first check in the order of block_t that
// does not hold, and counted there. What is let through is charged at once: tokens, orders left, position.
//
// Armed by software, and disarmed by: a fault of the feed or the book, the watchdog (software has not written
// for `cfg_watchdog` clocks), the last order that was left. Only software arms again.
// The position counts every order that left as traded, until software writes what is held.
`default_nettype none

module gate
  import core_pkg::*;
#(
    parameter logic [31:0] QTY_MOST = '1,    // what an order's text has room for
    parameter logic [31:0] PRICE_MOST = '1
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

  // Sell orders make the position smaller.
  wire logic signed [33:0] change = in.ask ? -signed'({2'b00, in.qty}) : signed'({2'b00, in.qty});
  wire logic signed [33:0] then_held = held + change;
  wire logic signed [33:0] most = signed'({2'b00, cfg_position});
  wire logic is_over = in.ask ? (then_held < -most) : (then_held > most);
  wire logic is_healthy = healthy && !disarm;

  logic [BLOCKS-1:0] holds;
  logic              is_stopped;
  logic [3:0]        reason;
  always_comb begin
    holds                  = '0;
    holds[BLOCK_DISARMED]  = !armed;
    holds[BLOCK_STOPPED]   = !is_healthy;
    holds[BLOCK_TRADING]   = !trading;
    holds[BLOCK_SIZE]      = (in.qty == '0) || (in.qty > cfg_size) || (in.qty > QTY_MOST);
    holds[BLOCK_REFERENCE] = !reference;
    holds[BLOCK_COLLAR]    = (in.price < cfg_low) || (in.price > cfg_high) || (in.price > PRICE_MOST);
    holds[BLOCK_DUPLICATE] = has_last_reg && (last_reg == in);
    holds[BLOCK_POSITION]  = is_over;
    holds[BLOCK_TOKENS]    = (tokens == '0);
    holds[BLOCK_LEFT]      = (left == '0);
    is_stopped = |holds;
    reason     = '0;
    for (int i = BLOCKS - 1; i >= 0; i--) if (holds[i]) reason = 4'(i);
  end

  wire logic decides = in_valid && (is_stopped || out_ready);
  wire logic passes  = in_valid && !is_stopped && out_ready;
  wire logic refills = (cfg_token_clocks != '0) && (refill_reg + 32'd1 >= cfg_token_clocks);

  assign in_ready  = decides;
  assign out_valid = in_valid && !is_stopped;
  assign out       = in;

  always_ff @(posedge clk) begin
    if (passes) begin
      passed       <= passed + 32'd1;
      last_reg     <= in;
      has_last_reg <= 1'b1;
    end
    if (decides && is_stopped) blocked[reason] <= blocked[reason] + 32'd1;

    refill_reg <= refills ? '0 : refill_reg + 32'd1;
    if (passes && !(refills && tokens < cfg_tokens)) tokens <= tokens - 16'd1;
    else if (!passes && refills && (tokens < cfg_tokens)) tokens <= tokens + 16'd1;
    else if (tokens > cfg_tokens) tokens <= cfg_tokens;

    if (set_left) left <= value;
    else if (passes) left <= left - 32'd1;

    if (set_held) held <= 34'(value);
    else held <= held + (passes ? change : 34'sd0) + (add_held ? 34'(value) : 34'sd0);

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
