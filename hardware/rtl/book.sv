// The order book of one instrument. An order lies in one of two buckets of four, each found by another hash of its
// number, in the emptier one, or in a few spare places where both are full: a store that is a third full has
// room for the next order. Levels are a ladder of 4,096 prices with a two-level map of those that are in use. One event at a time, from its arrival to the last
// trace of it: nothing of one event is under way when the next is looked at.
//
// The best and the next best level of each side stand in registers, so the top after an event is known before
// the ladder is: that of an added order two clocks after it came, of a replacement eleven, of any other five. Then
// the ladder is brought up to date. Only where the best or the next best level is gone is the next best looked up
// again: an added order takes 9 clocks, a replacement 25, anything else 11, and up to 12 more with that.
//
// Orders outside the window of prices are kept, and counted instead of put into the ladder. That is right as
// long as they are worse than the best; where they are not, the book says so (`FAULT_PRICE`, `FAULT_BLIND`).
`default_nettype none

module book
  import core_pkg::*;
#(
    parameter int TICK = 100,         // one step of the ladder, in price units
    parameter int SET_ADDRESS = 11,   // buckets of four orders, twice so many
    parameter int HALF = 6,           // bits of half a step: of 4,096 steps 64 parts of 64
    parameter bit HAS_TRADE = 1'b1    // the strategy has a handler for trades
) (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic [31:0] cfg_base,       // price of the ladder's first step
    input  wire logic        clear,          // forgets everything

    input  wire logic        in_valid,
    input  wire event_t      in,
    output logic             in_ready,

    // the book as the strategy is told of it
    output logic             start_book,
    output logic             start_trade,
    input  wire logic        strategy_busy,
    output logic             live,
    output level_t           bid,
    output level_t           ask,
    output logic             has_last,
    output logic [31:0]      last_price,
    output logic [31:0]      last_qty,
    output logic [SEQ_BITS-1:0] seq,

    output logic              trading,        // venue and instrument trade
    output logic              reference,      // a good middle was seen before this event
    output logic              settled,        // the event under way has passed its checks
    output logic [FAULTS-1:0] fault,          // one clock each
    output logic [31:0]       events,         // applied

    // each level as it was changed, for whoever compares books
    output logic             trace_valid,
    output logic             trace_ask,
    output logic             trace_far,      // outside the window: no level
    output logic [31:0]      trace_price,
    output logic [39:0]      trace_qty,
    output logic [15:0]      trace_orders
);

  localparam int X = 2 * HALF;                // bits of a ladder's step
  localparam int PART = 1 << HALF;
  localparam int STEPS = 1 << X;
  localparam int TAG = ID_BITS - SET_ADDRESS;
  localparam int SPARES = 8;
  // floor(d / TICK) = d * RECIPROCAL >> SHIFT for every d below STEPS * TICK: the error d * (RECIPROCAL -
  // 2^SHIFT / TICK) / 2^SHIFT stays below 1 / TICK where 2^SHIFT > STEPS * TICK^2.
  localparam int OFFSET = $clog2(STEPS * TICK);
  localparam int SHIFT = $clog2(STEPS * TICK) + $clog2(TICK) + 1;
  localparam int RECIPROCAL = ((1 << SHIFT) + TICK - 1) / TICK;
  localparam int RECIPROCAL_BITS = $clog2(RECIPROCAL + 1);
  // Bits that tell a remainder below TICK from 0.
  localparam int REST = $clog2(TICK) + 1;

  typedef struct packed {
    logic           valid;
    logic [TAG-1:0] tag;
    logic           ask;
    logic [31:0]    price;
    logic [31:0]    qty;
  } entry_t;

  typedef struct packed {
    logic [39:0] qty;
    logic [15:0] orders;
  } rung_t;

  typedef enum logic [5:0] {
    CLEARING, IDLE, OTHER, READ, COMPARE, PICK, DECIDE, TRADE_WAIT, READ_NEW, TAKEN_NEW, WAIT_NEW, COMPARE_NEW, PICK_NEW, DECIDE_NEW,
    OFFSET_AT, STEP, STEP_SUM, RUNG_READ, RUNG_WAIT, RUNG_SUM, RUNG_WRITE, MAP_SUM, MAP_HIGH, MAP_LEAF, MAP_FIRST, MAP_NEXT, MAP_HIGH2,
    MAP_LEAF2, MAP_FIRST2, MAP_LOW, NEXT_READ, NEXT_WAIT, NEXT_SET
  } state_t;

  // Either bucket's number and the upper bits of an order's number give the lower bits back.
  function automatic logic [SET_ADDRESS-1:0] first_of(input logic [2*SET_ADDRESS-1:0] id);
    return id[SET_ADDRESS-1:0] ^ id[2*SET_ADDRESS-1:SET_ADDRESS];
  endfunction
  function automatic logic [SET_ADDRESS-1:0] second_of(input logic [3*SET_ADDRESS-1:0] id);
    second_of = id[SET_ADDRESS-1:0] ^ id[3*SET_ADDRESS-1:2*SET_ADDRESS];
    for (int i = 0; i < SET_ADDRESS; i++) second_of[i] ^= id[2*SET_ADDRESS-1-i];
  endfunction
  function automatic logic [2:0] ones(input logic [3:0] bits);
    return 3'(bits[0]) + 3'(bits[1]) + 3'(bits[2]) + 3'(bits[3]);
  endfunction

  function automatic logic is_better(input logic is_ask, input logic [31:0] a, input logic [31:0] b);
    return is_ask ? (a < b) : (a > b);
  endfunction

  state_t state_reg;
  event_t event_reg;
  level_t [1:0] top_reg, next_reg;            // 0 bid, 1 ask; behind the best the next best
  logic         live_reg, has_last_reg, feed_trades_reg, instrument_trades_reg;
  logic [31:0]  last_price_reg, last_qty_reg;
  logic [1:0]   reference_reg;                // 0: so far, 1: before the event under way
  logic [1:0][15:0] far_reg;
  logic [SET_ADDRESS-1:0] sweep_reg;
  logic         empties_reg;                  // the sweep is that of an event
  wire logic    empties = (state_reg == IDLE) && in_valid && in_ready && (in.kind == EV_CLEAR);

  // ---------------------------------------------------------------- store
  localparam int PLACES = 8 + SPARES;          // 4 of the first bucket, 4 of the second, the spare ones
  logic                        store_write;
  logic [PLACES-1:0]           store_place;
  logic [1:0][SET_ADDRESS-1:0] store_write_address, store_read_address;
  entry_t                      store_data;
  logic [SET_ADDRESS-1:0]      store_low;      // of the order's number; the rest is the entry's tag
  entry_t [7:0]                ways;
  // What is written is in its place two clocks after it was decided.
  logic [PLACES-1:0]           place_write_reg;
  logic [1:0][SET_ADDRESS-1:0] place_address_reg;
  entry_t                      place_data_reg;
  logic [SET_ADDRESS-1:0]      place_low_reg;
  always_ff @(posedge clk) begin
    place_write_reg   <= (store_write && !rst && !clear) ? store_place : '0;
    place_address_reg <= store_write_address;
    place_data_reg    <= store_data;
    place_low_reg     <= store_low;
  end
  for (genvar i = 0; i < 8; i++) begin : way
    block_ram #(.WIDTH($bits(entry_t)), .ADDRESS(SET_ADDRESS)) ram (
        .clk, .write(place_write_reg[i]), .write_address(place_address_reg[i/4]), .write_data(place_data_reg),
        .read_address(store_read_address[i/4]), .read_data(ways[i])
    );
  end
  entry_t [SPARES-1:0]              spare_reg;
  logic [SPARES-1:0][SET_ADDRESS-1:0] spare_low_reg;    // the bits of its number that a tag does not have
  always_ff @(posedge clk) begin
    for (int i = 0; i < SPARES; i++)
      if (place_write_reg[8+i]) begin
        spare_reg[i]     <= place_data_reg;
        spare_low_reg[i] <= place_low_reg;
      end
    if (rst || clear || empties) spare_reg <= '0;
  end

  wire logic [ID_BITS-1:0] wanted = (state_reg == COMPARE_NEW) ? event_reg.new_id : event_reg.id;
  // One clock tells which places hold the order and which are vacant, the next what the order is and where one can go.
  logic [PLACES-1:0] hits_reg, vacant_reg, free;
  entry_t            found;
  always_ff @(posedge clk) begin
    for (int i = 0; i < 8; i++) begin
      hits_reg[i]   <= ways[i].valid && (ways[i].tag == wanted[ID_BITS-1:SET_ADDRESS]);
      vacant_reg[i] <= !ways[i].valid;
    end
    for (int i = 0; i < SPARES; i++) begin
      hits_reg[8+i]   <= spare_reg[i].valid && ({spare_reg[i].tag, spare_low_reg[i]} == wanted);
      vacant_reg[8+i] <= !spare_reg[i].valid;
    end
  end
  always_comb begin
    found = '0;
    for (int i = 0; i < 8; i++) found |= hits_reg[i] ? ways[i] : '0;
    for (int i = 0; i < SPARES; i++) found |= hits_reg[8+i] ? spare_reg[i] : '0;
    // The emptier bucket first, a spare place last.
    free = vacant_reg;
    if (vacant_reg[7:0] != '0) free[PLACES-1:8] = '0;
    if ((vacant_reg[3:0] != '0) && (ones(vacant_reg[3:0]) >= ones(vacant_reg[7:4]))) free[7:4] = '0;
    else if (vacant_reg[7:4] != '0) free[3:0] = '0;
  end
  logic              hit_reg, room_reg;
  logic [PLACES-1:0] hit_place_reg, free_place_reg;
  entry_t            found_reg;

  // ---------------------------------------------------------------- one change of a level
  logic        op_ask_reg, op_adds_reg, op_gone_reg, op_again_reg;   // gone: the order left; again: an addition follows
  logic [31:0] op_price_reg, op_qty_reg;
  // From a price to its step in the ladder, a clock each: how far from the base, which step and whether there is one,
  // what is left over. They follow `op_price_reg`, which stays as it is until the ladder is done.
  logic [32:0]  offset_reg;
  logic [X-1:0] step_reg;
  logic         in_window_reg;
  logic [REST-1:0] rest_reg;
  wire logic        is_taking = (state_reg == DECIDE) && (event_reg.kind != EV_ADD);
  wire logic [31:0] price_now = is_taking ? found_reg.price : op_price_reg;
  // In parts of what one multiplier takes.
  localparam int LOW = 18;
  localparam int PRODUCT = OFFSET + RECIPROCAL_BITS + 1;
  localparam logic [LOW-1:0] RECIPROCAL_LOW = LOW'(RECIPROCAL);
  localparam logic [LOW-1:0] RECIPROCAL_HIGH = LOW'(RECIPROCAL >> LOW);
  logic [2*LOW-1:0] low_low_reg, low_high_reg, high_low_reg, high_high_reg;
  wire logic [LOW-1:0] offset_low  = LOW'(OFFSET'(offset_reg));
  wire logic [LOW-1:0] offset_high = LOW'((2*LOW)'(OFFSET'(offset_reg)) >> LOW);
  always_ff @(posedge clk) begin
    low_low_reg   <= (2*LOW)'(offset_low) * (2*LOW)'(RECIPROCAL_LOW);
    low_high_reg  <= (2*LOW)'(offset_low) * (2*LOW)'(RECIPROCAL_HIGH);
    high_low_reg  <= (2*LOW)'(offset_high) * (2*LOW)'(RECIPROCAL_LOW);
    high_high_reg <= (2*LOW)'(offset_high) * (2*LOW)'(RECIPROCAL_HIGH);
  end
  wire logic [PRODUCT-1:0] product = PRODUCT'(low_low_reg) + (PRODUCT'(low_high_reg) << LOW) + (PRODUCT'(high_low_reg) << LOW)
                                   + (PRODUCT'(high_high_reg) << (2 * LOW));
  wire logic [X-1:0] step_of  = X'(product >> SHIFT);
  wire logic [HALF-1:0] high_of = op_ask_reg ? step_of[X-1:HALF] : ~step_of[X-1:HALF];
  wire logic [X-1:0] place   = op_ask_reg ? step_reg : ~step_reg;      // best first on either side

  logic         rung_write;
  logic [X:0]   rung_write_address, rung_read_address;
  rung_t        rung, rung_reg;
  block_ram #(.WIDTH($bits(rung_t)), .ADDRESS(X + 1)) rungs (
      .clk, .write(rung_write), .write_address(rung_write_address), .write_data(rung_reg),
      .read_address(rung_read_address), .read_data(rung)
  );

  // ---------------------------------------------------------------- map of levels in use
  (* ram_style = "distributed" *) logic [PART-1:0] leaves [2 * PART];
  logic [1:0][PART-1:0] sum_reg;
  logic [HALF:0]   leaf_address_reg;
  logic [PART-1:0] leaf_reg;
  logic        used_reg;                       // a leaf that the sum says is empty may hold old bits
  logic [PART-1:0] scanned_reg, rest_sum_reg;
  logic        scan_any;
  logic [HALF-1:0] scan_at;
  lowest_set #(.ADDRESS(HALF)) scan (.in(scanned_reg), .any(scan_any), .at(scan_at));
  logic [HALF-1:0] high_reg;
  wire logic   searching = (state_reg >= MAP_SUM);

  always_ff @(posedge clk) begin
    offset_reg <= {1'b0, price_now} - {1'b0, cfg_base};
    rest_reg   <= REST'(offset_reg) - REST'(32'(step_reg) * 32'(TICK));
    leaf_reg   <= leaves[leaf_address_reg];
    used_reg   <= sum_reg[leaf_address_reg[HALF]][leaf_address_reg[HALF-1:0]];
    if (!searching) begin
      in_window_reg    <= !offset_reg[32] && (offset_reg[31:0] < 32'(STEPS * TICK));
      step_reg         <= step_of;
      leaf_address_reg <= {op_ask_reg, high_of};
    end
    if ((state_reg == MAP_NEXT) || (state_reg == MAP_LOW))
      step_reg <= op_ask_reg ? {high_reg, scan_at} : ~{high_reg, scan_at};
    if ((state_reg == MAP_HIGH) || (state_reg == MAP_HIGH2)) leaf_address_reg <= {op_ask_reg, scan_at};
  end

  // What stands at a level after the change: read, known to be in use or not, summed, written.
  logic        is_set_reg, level_is_more_reg;
  logic [PART-1:0] bit_reg, kept_reg, high_bit_reg;
  rung_t was;
  assign was = is_set_reg ? rung : '0;
  always_ff @(posedge clk) begin
    is_set_reg   <= used_reg && leaf_reg[place[HALF-1:0]];
    bit_reg      <= PART'(1) << place[HALF-1:0];
    high_bit_reg <= PART'(1) << place[X-1:HALF];
    kept_reg     <= used_reg ? (leaf_reg & ~bit_reg) : '0;
    level_is_more_reg <= (was.qty >= 40'(op_qty_reg)) && (was.orders != '0);
    if (op_adds_reg) begin
      rung_reg.qty    <= was.qty + 40'(op_qty_reg);
      rung_reg.orders <= was.orders + 16'd1;
    end else begin
      rung_reg.qty    <= was.qty - 40'(op_qty_reg);
      rung_reg.orders <= was.orders - 16'(op_gone_reg);
    end
  end
  wire logic in_use = (rung_reg.orders != '0);

  // What the change makes of the next best level, where that can be told without looking for it.
  logic   betters_reg;                         // an addition that is better than the best was
  logic   was_best_reg;                        // the best level gives
  logic   searches_reg;                        // the first half of a replacement asks for a search
  level_t held_reg;                            // the top that waits for the trade to be told, or that was the top before
  logic   next_same_reg, next_worse_reg, held_same_reg, top_same_reg;
  logic   searches, next_changes;
  level_t next_after, next_of, top_of;
  assign next_of = next_reg[op_ask_reg];
  assign top_of  = top_reg[op_ask_reg];
  always_ff @(posedge clk) begin
    next_same_reg  <= next_of.valid && (next_of.price == op_price_reg);
    next_worse_reg <= !next_of.valid || !is_better(op_ask_reg, next_of.price, op_price_reg);
    held_same_reg  <= (op_price_reg == held_reg.price);
    top_same_reg   <= (op_price_reg == top_of.price);
  end
  always_comb begin
    searches     = 1'b0;
    next_changes = 1'b0;
    next_after   = '{valid: 1'b1, price: op_price_reg, qty: rung_reg.qty};
    if (in_window_reg) begin
      if (op_adds_reg) begin
        next_changes = betters_reg || (!held_same_reg && next_worse_reg);
        if (betters_reg) next_after = held_reg;
      end else if (was_best_reg) searches = !in_use;
      else if (next_same_reg) begin
        searches     = !in_use;
        next_changes = in_use;
      end
    end
  end

  always_comb begin
    case (state_reg)
      IDLE: begin
        store_read_address[0] = first_of(in.id[2*SET_ADDRESS-1:0]);
        store_read_address[1] = second_of(in.id[3*SET_ADDRESS-1:0]);
      end
      READ: begin
        store_read_address[0] = first_of(event_reg.id[2*SET_ADDRESS-1:0]);
        store_read_address[1] = second_of(event_reg.id[3*SET_ADDRESS-1:0]);
      end
      default: begin
        store_read_address[0] = first_of(event_reg.new_id[2*SET_ADDRESS-1:0]);
        store_read_address[1] = second_of(event_reg.new_id[3*SET_ADDRESS-1:0]);
      end
    endcase
    rung_read_address   = {op_ask_reg, step_reg};
    rung_write          = (state_reg == RUNG_WRITE) && in_window_reg;
    rung_write_address  = {op_ask_reg, step_reg};
  end

  always_ff @(posedge clk) if (rung_write) leaves[leaf_address_reg] <= kept_reg | (in_use ? bit_reg : '0);

  // ---------------------------------------------------------------- what an event does to the top
  function automatic level_t with_added(input level_t top, input logic is_ask, input logic [31:0] price,
                                        input logic [31:0] qty);
    with_added = top;
    if (!top.valid || is_better(is_ask, price, top.price)) with_added = '{valid: 1'b1, price: price, qty: 40'(qty)};
    else if (price == top.price) with_added.qty = top.qty + 40'(qty);
  endfunction

  function automatic level_t with_taken(input level_t top, input level_t next, input logic [31:0] price,
                                        input logic [31:0] qty);
    with_taken = top;
    if (top.valid && price == top.price) begin
      if (top.qty == 40'(qty)) with_taken = next;
      else with_taken.qty = top.qty - 40'(qty);
    end
  endfunction

  wire logic takes_part  = (event_reg.kind == EV_EXECUTE) || (event_reg.kind == EV_REDUCE);
  wire logic [31:0] taken = takes_part ? event_reg.qty : found_reg.qty;
  wire logic goes        = (taken == found_reg.qty);
  wire logic is_trade    = (event_reg.kind == EV_EXECUTE) && event_reg.printable;
  // Of both sides at once; whose order it is is known as late as its price.
  level_t bid_taken, ask_taken, taken_top, first_top_reg;
  assign bid_taken = with_taken(top_reg[0], next_reg[0], found_reg.price, taken);
  assign ask_taken = with_taken(top_reg[1], next_reg[1], found_reg.price, taken);
  assign taken_top = found_reg.ask ? ask_taken : bid_taken;
  logic new_better_reg, new_same_reg;         // the replacing order over what the top is without the replaced one
  always_ff @(posedge clk) begin
    new_better_reg <= !held_reg.valid || is_better(op_ask_reg, event_reg.price, held_reg.price);
    new_same_reg   <= held_reg.valid && (event_reg.price == held_reg.price);
  end

  always_comb begin
    store_write = 1'b0;
    store_place = hit_place_reg;
    store_low   = event_reg.id[SET_ADDRESS-1:0];
    store_data  = found_reg;
    case (state_reg)
      CLEARING: begin
        store_write = 1'b1;
        store_place = PLACES'(8'hff);
        store_data  = '0;
      end
      DECIDE: begin
        if (event_reg.kind == EV_ADD) begin
          store_place = free_place_reg;
          store_data  = '{valid: 1'b1, tag: event_reg.id[ID_BITS-1:SET_ADDRESS], ask: event_reg.ask, price: event_reg.price,
                          qty: event_reg.qty};
          store_write = !hit_reg;
        end else begin
          store_data.qty   = found_reg.qty - taken;
          store_data.valid = !goes;
          store_write      = hit_reg;
        end
      end
      DECIDE_NEW: begin
        store_place = free_place_reg;
        store_low   = event_reg.new_id[SET_ADDRESS-1:0];
        store_data  = '{valid: 1'b1, tag: event_reg.new_id[ID_BITS-1:SET_ADDRESS], ask: op_ask_reg,
                        price: event_reg.price, qty: event_reg.qty};
        store_write = !hit_reg;
      end
      default: ;
    endcase
    store_write_address[0] = (state_reg == CLEARING) ? sweep_reg : first_of({store_data.tag[SET_ADDRESS-1:0], store_low});
    store_write_address[1] = (state_reg == CLEARING) ? sweep_reg : second_of({store_data.tag[2*SET_ADDRESS-1:0], store_low});
  end

  // ---------------------------------------------------------------- the way of an event
  // The price of a step that the map says is in use.
  logic [X+7+$clog2(TICK):0] step_times_reg;
  logic [31:0] step_price_reg;
  always_ff @(posedge clk) begin
    step_times_reg <= (X+8+$clog2(TICK))'(step_reg) * (X+8+$clog2(TICK))'(TICK);
    step_price_reg <= cfg_base + 32'(step_times_reg);
  end

  always_ff @(posedge clk) begin
    start_book  <= 1'b0;
    start_trade <= 1'b0;
    fault       <= '0;
    trace_valid <= 1'b0;
    if (start_book) begin
      reference_reg[1] <= reference_reg[0];
      reference_reg[0] <= reference_reg[0]
                       || (live_reg && top_reg[0].valid && top_reg[1].valid && (top_reg[0].price < top_reg[1].price));
    end
    if (start_trade) reference_reg[1] <= reference_reg[0];

    case (state_reg)
      CLEARING: begin
        sweep_reg <= sweep_reg + 1'b1;
        if (&sweep_reg) begin
          state_reg   <= IDLE;
          settled     <= 1'b1;
          start_book  <= empties_reg;
          empties_reg <= 1'b0;
        end
      end

      IDLE: if (in_valid && in_ready) begin
        event_reg     <= in;
        first_top_reg <= top_reg[in.ask];
        settled       <= 1'b0;
        case (in.kind)
          EV_TRADE, EV_STATUS, EV_LIVE: state_reg <= OTHER;
          EV_CLEAR: begin
            state_reg   <= CLEARING;
            sweep_reg   <= '0;
            empties_reg <= 1'b1;
            top_reg     <= '0;
            next_reg    <= '0;
            sum_reg     <= '0;
            far_reg     <= '0;
            events      <= events + 32'd1;
          end
          default:                      state_reg <= READ;
        endcase
      end

      OTHER: begin
        settled   <= 1'b1;
        state_reg <= IDLE;
        case (event_reg.kind)
          EV_TRADE: begin
            has_last_reg   <= 1'b1;
            last_price_reg <= event_reg.price;
            last_qty_reg   <= event_reg.qty;
            start_trade    <= HAS_TRADE;
          end
          EV_STATUS:
            if (event_reg.priced) feed_trades_reg <= event_reg.printable;
            else instrument_trades_reg <= event_reg.printable;
          default: begin                       // EV_LIVE
            live_reg   <= event_reg.printable;
            start_book <= 1'b1;
          end
        endcase
      end

      READ: begin
        state_reg    <= COMPARE;
        op_ask_reg   <= event_reg.ask;
        op_price_reg <= event_reg.price;
        betters_reg  <= !first_top_reg.valid || is_better(event_reg.ask, event_reg.price, first_top_reg.price);
        searches_reg <= 1'b0;
        if (event_reg.kind == EV_ADD) begin    // needs nothing of the store: its checks follow, see `settled`
          held_reg               <= first_top_reg;
          top_reg[event_reg.ask] <= with_added(first_top_reg, event_reg.ask, event_reg.price, event_reg.qty);
          start_book             <= 1'b1;
        end
      end

      COMPARE:     state_reg <= PICK;
      COMPARE_NEW: state_reg <= PICK_NEW;

      PICK, PICK_NEW: begin
        hit_reg        <= |hits_reg;
        room_reg       <= |vacant_reg;
        free_place_reg <= free & (~free + 1'b1);
        if (state_reg == PICK) begin
          hit_place_reg <= hits_reg;
          found_reg     <= found;
          state_reg     <= DECIDE;
        end else state_reg <= DECIDE_NEW;
      end

      DECIDE: begin
        events       <= events + 32'd1;
        op_adds_reg  <= (event_reg.kind == EV_ADD);
        op_qty_reg   <= (event_reg.kind == EV_ADD) ? event_reg.qty : taken;
        op_gone_reg  <= goes;
        op_again_reg <= 1'b0;
        state_reg    <= STEP;
        if (event_reg.kind == EV_ADD) begin
          state_reg              <= RUNG_READ;   // the ladder's step is known in the next clock
          fault[FAULT_DUPLICATE] <= hit_reg;
          fault[FAULT_STORE]     <= !room_reg;
          fault[FAULT_EXCESS]    <= (event_reg.qty == '0);
        end else if (!hit_reg) begin
          settled              <= 1'b1;
          fault[FAULT_UNKNOWN] <= 1'b1;
          state_reg            <= IDLE;
        end else begin
          op_ask_reg          <= found_reg.ask;
          op_price_reg        <= found_reg.price;
          held_reg            <= taken_top;
          was_best_reg        <= found_reg.ask ? (top_reg[1].valid && (top_reg[1].price == found_reg.price))
                                               : (top_reg[0].valid && (top_reg[0].price == found_reg.price));
          fault[FAULT_EXCESS] <= takes_part ? ((event_reg.qty > found_reg.qty) || (event_reg.qty == '0))
                                            : ((event_reg.kind == EV_REPLACE) && (event_reg.qty == '0));
          if (event_reg.kind == EV_REPLACE) state_reg <= READ_NEW;
          else begin
            settled            <= 1'b1;
            fault[FAULT_BLIND] <= !taken_top.valid && (far_reg[found_reg.ask] != '0);
            if (is_trade) begin
              has_last_reg   <= 1'b1;
              last_price_reg <= event_reg.priced ? event_reg.price : found_reg.price;
              last_qty_reg   <= event_reg.qty;
            end
            if (is_trade && HAS_TRADE) begin
              start_trade <= 1'b1;
              state_reg   <= TRADE_WAIT;
            end else begin
              top_reg[found_reg.ask] <= taken_top;
              start_book             <= 1'b1;
            end
          end
        end
      end

      // A trade is told with the book as it was.
      TRADE_WAIT: if (!start_trade && !strategy_busy) begin
        top_reg[op_ask_reg] <= held_reg;
        start_book          <= 1'b1;
        state_reg           <= STEP;
      end

      // The new order's set is read after the old order was taken out: it may be the same set.
      READ_NEW: begin
        op_price_reg <= event_reg.price;
        state_reg    <= TAKEN_NEW;
      end
      TAKEN_NEW: state_reg <= WAIT_NEW;
      WAIT_NEW: state_reg <= COMPARE_NEW;

      DECIDE_NEW: begin
        top_reg[op_ask_reg]    <= new_better_reg ? '{valid: 1'b1, price: event_reg.price, qty: 40'(event_reg.qty)}
                                : new_same_reg ? '{valid: 1'b1, price: held_reg.price, qty: held_reg.qty + 40'(event_reg.qty)}
                                : held_reg;
        start_book             <= 1'b1;
        settled                <= 1'b1;
        fault[FAULT_DUPLICATE] <= hit_reg;
        fault[FAULT_STORE]     <= !room_reg;
        fault[FAULT_PRICE]     <= in_window_reg ? (rest_reg != '0) : (op_ask_reg == offset_reg[32]);
        fault[FAULT_BLIND]     <= !in_window_reg && new_better_reg;
        op_price_reg           <= found_reg.price;
        op_again_reg           <= 1'b1;
        betters_reg            <= new_better_reg;
        state_reg              <= OFFSET_AT;
      end

      OFFSET_AT: state_reg <= STEP;
      STEP:      state_reg <= STEP_SUM;
      STEP_SUM:  state_reg <= RUNG_READ;
      RUNG_READ: state_reg <= RUNG_WAIT;
      RUNG_WAIT: begin
        state_reg <= RUNG_SUM;
        if (event_reg.kind == EV_ADD) begin
          settled            <= 1'b1;
          fault[FAULT_PRICE] <= in_window_reg ? (rest_reg != '0) : (event_reg.ask == offset_reg[32]);
          // The top is this order, and no step of the ladder.
          fault[FAULT_BLIND] <= !in_window_reg && top_same_reg;
        end
      end
      RUNG_SUM:  state_reg <= RUNG_WRITE;

      RUNG_WRITE: begin
        trace_valid  <= 1'b1;
        trace_ask    <= op_ask_reg;
        trace_far    <= !in_window_reg;
        trace_price  <= op_price_reg;
        trace_qty    <= rung_reg.qty;
        trace_orders <= rung_reg.orders;
        if (in_window_reg)
          sum_reg[op_ask_reg] <= (sum_reg[op_ask_reg] & ~high_bit_reg)
                               | ((in_use || (kept_reg != '0)) ? high_bit_reg : '0);
        else if (op_adds_reg) far_reg[op_ask_reg] <= far_reg[op_ask_reg] + 16'd1;
        else if (op_gone_reg) far_reg[op_ask_reg] <= far_reg[op_ask_reg] - 16'd1;
        state_reg <= (searches_reg || searches) ? MAP_SUM : IDLE;
        searches_reg <= searches_reg || searches;
        if (next_changes) next_reg[op_ask_reg] <= next_after;
        if (op_again_reg) begin
          op_again_reg <= 1'b0;
          op_adds_reg  <= 1'b1;
          op_price_reg <= event_reg.price;
          op_qty_reg   <= event_reg.qty;
          state_reg    <= OFFSET_AT;
        end
      end

      // The next best level, from the map: the second one that is in use.
      MAP_SUM: begin
        scanned_reg <= sum_reg[op_ask_reg];
        state_reg   <= MAP_HIGH;
      end
      MAP_HIGH, MAP_HIGH2: begin
        high_reg     <= scan_at;
        rest_sum_reg <= scanned_reg & (scanned_reg - PART'(1));
        state_reg    <= (state_reg == MAP_HIGH) ? MAP_LEAF : MAP_LEAF2;
        if (!scan_any) begin
          next_reg[op_ask_reg] <= '0;
          state_reg            <= IDLE;
        end
      end
      MAP_LEAF:  state_reg <= MAP_FIRST;
      MAP_LEAF2: state_reg <= MAP_FIRST2;
      MAP_FIRST: begin
        scanned_reg <= leaf_reg & (leaf_reg - PART'(1));
        state_reg   <= MAP_NEXT;
      end
      MAP_NEXT: begin
        state_reg <= NEXT_READ;
        if (!scan_any) begin
          scanned_reg <= rest_sum_reg;
          state_reg   <= MAP_HIGH2;
        end
      end
      MAP_FIRST2: begin
        scanned_reg <= leaf_reg;
        state_reg   <= MAP_LOW;
      end
      MAP_LOW:   state_reg <= NEXT_READ;
      NEXT_READ: state_reg <= NEXT_WAIT;
      NEXT_WAIT: state_reg <= NEXT_SET;
      NEXT_SET: begin
        next_reg[op_ask_reg] <= '{valid: 1'b1, price: step_price_reg, qty: rung.qty};
        state_reg            <= IDLE;
      end

      default: state_reg <= IDLE;
    endcase

    if (rst || clear) begin
      state_reg             <= CLEARING;
      sweep_reg             <= '0;
      empties_reg           <= 1'b0;
      top_reg               <= '0;
      next_reg              <= '0;
      sum_reg               <= '0;
      far_reg               <= '0;
      start_book            <= 1'b0;
      start_trade           <= 1'b0;
      settled               <= 1'b1;
      fault                 <= '0;
    end
    if (rst) begin
      live_reg              <= 1'b0;
      has_last_reg          <= 1'b0;
      last_price_reg        <= '0;
      last_qty_reg          <= '0;
      feed_trades_reg       <= 1'b1;
      instrument_trades_reg <= 1'b1;
      reference_reg         <= '0;
      events                <= '0;
      event_reg             <= '0;
    end
  end

  assign in_ready   = (state_reg == IDLE) && !strategy_busy && !start_book && !start_trade;
  assign live       = live_reg;
  assign bid        = top_reg[0];
  assign ask        = top_reg[1];
  assign has_last   = has_last_reg;
  assign last_price = last_price_reg;
  assign last_qty   = last_qty_reg;
  assign seq        = event_reg.seq;
  assign trading    = feed_trades_reg && instrument_trades_reg;
  assign reference  = reference_reg[1];

`ifndef SYNTHESIS
  // What the registers say is the best is the best of the map, and a level in use has orders and shares: as long as no
  // fault was raised.
  logic faulty_reg;
  function automatic logic [X-1:0] best_step();
    logic [X-1:0] best;
    best = {high_reg, HALF'(0)};
    for (int i = PART - 1; i >= 0; i--) if (leaf_reg[i]) best[HALF-1:0] = HALF'(i);
    return op_ask_reg ? best : ~best;
  endfunction
  wire logic [31:0] best_price = cfg_base + 32'(best_step()) * 32'(TICK);
  always_ff @(posedge clk) faulty_reg <= !(rst || clear) && (faulty_reg || (fault != '0));
  always_ff @(posedge clk) if (!rst && !faulty_reg && (fault == '0)) begin
    if (state_reg == MAP_FIRST)
      assert (top_of.valid && (top_of.price == best_price))
      else $error("the best level of the registers, %0d, is not that of the map, %0d", top_of.price, best_price);
    if (state_reg == RUNG_WRITE && in_window_reg && !op_adds_reg)
      assert (level_is_more_reg && (in_use == (rung_reg.qty != '0)))
      else $error("a level gives more than it has, at %0d", op_price_reg);
  end
`endif

  wire logic unused = &{1'b0, level_is_more_reg, step_times_reg, top_of, next_of, unused};

endmodule

`default_nettype wire
