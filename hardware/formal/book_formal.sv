// What `cargo xtask hardware` puts inside the module `book`, before its end, to prove that the best is the best.
//
// A run is one event, from a moment at which nothing is under way to the next one. Before it everything is arbitrary:
// orders, levels, the map, what the registers hold, as long as they are consistent, which is what is to be shown again
// behind it. So it holds over any number of events:
//   - the best level of either side in the registers is the first one of the map that is in use, with the quantity that
//     the ladder has there; the next best is the second one;
//   - a part of the map that is said to be in use has a level (for one part that the solver chooses, so for each);
//   - the top that the strategy is told of is that of the ladder once the event is over;
//   - an event is over 25 clocks after it came, a replacement 39.
// It is proved of the same text with narrower words, so that a solver comes to an end: 16 steps in four parts of a tick of
// one, prices of six bits, quantities of six and eight, orders of four (`cargo xtask hardware` says which).
//
// Assumed is what the book itself checks or is given: no fault (the book says of itself that it is not right then, and
// software empties it), no more is taken from a level than is there (which no bounded look at the orders can show;
// the simulations assert it for every change), a level has fewer orders than its counter can tell (the store has room
// for a quarter of that), an order's price that was on the tick when it came still is.

  localparam bit F_SIDE = 1'b0;                // one side a run, and replacements by themselves: all four are run
  localparam bit F_REPLACES = 1'b0;
  logic [6:0] f_clock = '0;
  // A part of the map, any: side and upper half of a step. The event's number has no other meaning here.
  logic [HALF:0] f_part_reg;
  wire logic [HALF:0] f_part = (f_clock == '0) ? in.seq[HALF:0] : f_part_reg;
  logic       f_over = 1'b0, f_has_told = 1'b0;
  logic [31:0] f_base;
  entry_t      f_found;
  level_t [1:0] f_told;

  function automatic logic [HALF-1:0] f_first(input logic [PART-1:0] bits);
    f_first = '0;
    for (int i = PART - 1; i >= 0; i--) if (bits[i]) f_first = HALF'(i);
  endfunction
  function automatic logic [PART-1:0] f_rest(input logic [PART-1:0] bits);
    return bits & (bits - PART'(1));
  endfunction

  // The first two levels of a side, and whether its first three parts that are said to be in use are.
  typedef struct packed {
    logic         any;
    logic         two;
    logic [X-1:0] first;                       // as the map has it: best first
    logic [X-1:0] second;
    logic         parts;
  } f_map_t;
  f_map_t [1:0] f_map;
  logic [1:0][HALF-1:0] f_h1, f_h2, f_h3;
  logic [1:0][PART-1:0] f_l1, f_l2, f_l3;
  always_comb begin
    for (int s = 0; s < 2; s++) begin
      f_h1[s] = f_first(sum_reg[s]);
      f_h2[s] = f_first(f_rest(sum_reg[s]));
      f_h3[s] = f_first(f_rest(f_rest(sum_reg[s])));
      f_l1[s] = leaves[{s[0], f_h1[s]}];
      f_l2[s] = leaves[{s[0], f_h2[s]}];
      f_l3[s] = leaves[{s[0], f_h3[s]}];
      f_map[s].any   = sum_reg[s] != '0;
      f_map[s].first = {f_h1[s], f_first(f_l1[s])};
      if (f_rest(f_l1[s]) != '0) begin
        f_map[s].two    = f_map[s].any;
        f_map[s].second = {f_h1[s], f_first(f_rest(f_l1[s]))};
      end else begin
        f_map[s].two    = f_rest(sum_reg[s]) != '0;
        f_map[s].second = {f_h2[s], f_first(f_l2[s])};
      end
      f_map[s].parts = (sum_reg[s] == '0 || f_l1[s] != '0) && (f_rest(sum_reg[s]) == '0 || f_l2[s] != '0)
                    && (f_rest(f_rest(sum_reg[s])) == '0 || f_l3[s] != '0);
    end
  end
  wire logic f_part_holds = !sum_reg[f_part[HALF]][f_part[HALF-1:0]] || (leaves[f_part] != '0);

  // The ladder's step of a place in the map, its price, what lies there.
  function automatic logic [X-1:0] f_step(input logic s, input logic [X-1:0] at);
    return s ? at : ~at;
  endfunction
  function automatic logic [31:0] f_price(input logic [X-1:0] step);
    return cfg_base + 32'(step) * 32'(TICK);
  endfunction
  rung_t [1:0] f_first_rung, f_second_rung;
  always_comb
    for (int s = 0; s < 2; s++) begin
      f_first_rung[s]  = rungs.memory[{s[0], f_step(s[0], f_map[s].first)}];
      f_second_rung[s] = rungs.memory[{s[0], f_step(s[0], f_map[s].second)}];
    end

  logic [1:0] f_best_holds, f_next_holds;
  always_comb
    for (int s = 0; s < 2; s++) begin
      f_best_holds[s] = (top_reg[s].valid == f_map[s].any)
                     && (!f_map[s].any || ((top_reg[s].price == f_price(f_step(s[0], f_map[s].first)))
                                           && (top_reg[s].qty == f_first_rung[s].qty)));
      f_next_holds[s] = (next_reg[s].valid == f_map[s].two)
                     && (!f_map[s].two || ((next_reg[s].price == f_price(f_step(s[0], f_map[s].second)))
                                           && (next_reg[s].qty == f_second_rung[s].qty)));
    end

  wire logic f_begins = (f_clock == '0);
  wire logic f_ends   = !f_begins && !f_over && (state_reg == IDLE);
  always_ff @(posedge clk) begin
    if (f_clock != '1) f_clock <= f_clock + 7'd1;
    f_over <= f_over || f_ends;
    f_part_reg <= f_part;
    f_base  <= cfg_base;
    f_found <= found_reg;
    if (start_book && !f_begins) begin
      f_has_told <= 1'b1;
      f_told     <= top_reg;
    end
  end

  always_comb begin
    assume (!rst && !clear && !strategy_busy);
    assume (fault == '0);
    assume (cfg_base <= 32'hffff_ffff - 32'(STEPS * TICK));
    assume (in_valid == f_begins);
    assume (!f_begins || ((in.kind == EV_REPLACE) == F_REPLACES));
    assume (f_part[HALF] == F_SIDE);
    assume (f_begins || ((cfg_base == f_base) && (found_reg == f_found)));
    if (f_begins) begin
      assume (state_reg == IDLE && settled && !start_book && !start_trade && place_write_reg == '0);
      assume (f_best_holds[F_SIDE] && f_next_holds[F_SIDE]);
      assume (f_map[F_SIDE].parts && f_part_holds);
    end
    if (state_reg == RUNG_WRITE && in_window_reg) begin
      assume (rest_reg == '0);
      if (op_adds_reg) assume (rung_reg.orders != '0);
      else assume (level_is_more_reg && is_set_reg && (in_use == (rung_reg.qty != '0)));
    end
    if (f_ends) begin
      assert (f_best_holds[F_SIDE]);
      assert (f_next_holds[F_SIDE]);
      assert (f_part_holds);
      assert (!f_has_told || (f_told[F_SIDE] == top_reg[F_SIDE]));
    end
    if (f_clock == (F_REPLACES ? 7'd39 : 7'd25)) assert (f_over || f_ends);
  end
