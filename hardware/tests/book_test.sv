// book against a plain list of orders: the top that the strategy is told, every level that is touched, the faults.
`default_nettype none

module book_test (output logic done, output int failures);
  import core_pkg::*;

  logic clk = 0, rst = 1;
  always #1 clk = !clk;

  event_t in;
  logic   in_valid = 0, in_ready, start_book, start_trade, live, has_last, trading, reference, settled, clear = 0;
  level_t bid, ask;
  logic [31:0] last_price, last_qty, events, trace_price;
  logic [SEQ_BITS-1:0] seq;
  logic [FAULTS-1:0] fault, faults = '0;
  logic trace_valid, trace_ask, trace_far;
  logic [39:0] trace_qty;
  logic [15:0] trace_orders;
  book #(.TICK(100), .SET_ADDRESS(6), .HAS_TRADE(1'b1)) dut (
      .clk, .rst, .cfg_base(32'd1000000), .clear, .in_valid, .in, .in_ready, .start_book, .start_trade,
      .strategy_busy(1'b0), .live, .bid, .ask, .has_last, .last_price, .last_qty, .seq, .trading, .reference, .settled,
      .fault, .events, .trace_valid, .trace_ask, .trace_far, .trace_price, .trace_qty, .trace_orders
  );

  // The model's orders, by number.
  logic model_ask [longint];
  int   model_price [longint];
  int   model_qty [longint];
  int told = 0, wrong = 0;
  longint level_qty [2][int];
  int     level_orders [2][int];

  task automatic check(input logic holds, input string what);
    if (!holds) begin
      failures++;
      if (failures < 20) $display("FAILED book_test: %s", what);
    end
  endtask

  function automatic void change(input logic is_ask, input int price, input int qty, input int orders);
    if (!level_qty[is_ask].exists(price)) begin
      level_qty[is_ask][price] = 0;
      level_orders[is_ask][price] = 0;
    end
    level_qty[is_ask][price] += longint'(qty);
    level_orders[is_ask][price] += orders;
    if (level_orders[is_ask][price] == 0) begin
      level_qty[is_ask].delete(price);
      level_orders[is_ask].delete(price);
    end
  endfunction

  function automatic level_t best(input logic is_ask);
    int price;
    best = '0;
    if (is_ask ? level_qty[1].first(price) != 0 : level_qty[0].last(price) != 0)
      best = '{valid: 1'b1, price: 32'(price), qty: 40'(level_qty[is_ask][price])};
  endfunction

  function automatic logic same(input level_t a, input level_t b);
    return (a.valid == b.valid) && (!a.valid || ((a.price == b.price) && (a.qty == b.qty)));
  endfunction

  always @(negedge clk) begin
    faults |= fault;
    if (start_book) begin
      told++;
      check(same(bid, best(0)) && same(ask, best(1)), $sformatf("the top after message %0d", seq));
    end
  end

  task automatic send(input event_t e, input int gap);
    in = e;
    in_valid = 1;
    do @(posedge clk); while (!in_ready);
    @(negedge clk);
    in_valid = 0;
    repeat (gap) @(negedge clk);
  endtask

  function automatic event_t event_of(input kind_t kind, input longint id, input int qty, input int price);
    event_of       = '0;
    event_of.kind  = kind;
    event_of.id    = ID_BITS'(id);
    event_of.qty   = 32'(qty);
    event_of.price = 32'(price);
    event_of.printable = 1'b1;
  endfunction

  initial begin
    event_t e;
    longint ids [$];
    longint next_id, id;
    int price, qty, pick;
    done = 0; failures = 0; next_id = 1;
    repeat (3) @(negedge clk);
    rst = 0;
    e = event_of(EV_LIVE, 0, 0, 0);
    send(e, 0);
    for (int n = 0; n < 6000; n++) begin
      // The model is not ahead of what the strategy is told; the next event waits at the book's door all the same.
      while (told != n + 1) @(negedge clk);
      pick = $urandom_range(99);
      if (ids.size() < 20 || (pick < 45 && ids.size() < 120)) begin
        price = 1000000 + 100 * (2000 + $urandom_range(60) - 30);
        qty   = $urandom_range(500) + 1;
        // Seldom far away, even outside the window on the side that is worse.
        if ($urandom_range(99) == 0) price = $urandom_range(1) == 0 ? 500000 : 2000000;
        e      = event_of(EV_ADD, next_id, qty, price);
        e.ask  = (price < 1200000) ? 1'b0 : (price > 1206000) ? 1'b1 : 1'($urandom_range(1));
        e.seq  = SEQ_BITS'(n);
        model_ask[next_id] = e.ask; model_price[next_id] = price; model_qty[next_id] = qty;
        ids.push_back(next_id);
        if (price >= 1000000 && price < 1409600) change(e.ask, price, qty, 1);
        next_id += longint'($urandom_range(3)) + 1;
      end else begin
        pick = $urandom_range(ids.size() - 1);
        id   = ids[pick];
        case ($urandom_range(3))
          0: begin
            qty = $urandom_range(model_qty[id] - 1) + 1;
            e = event_of(($urandom_range(1) == 0) ? EV_EXECUTE : EV_REDUCE, id, qty, 0);
          end
          1: begin
            qty = model_qty[id];
            e = event_of(EV_EXECUTE, id, qty, 0);
          end
          2: begin
            qty = model_qty[id];
            e = event_of(EV_DELETE, id, 0, 0);
          end
          default: begin
            qty = model_qty[id];
            price = 1000000 + 100 * (2000 + $urandom_range(60) - 30);
            e = event_of(EV_REPLACE, id, $urandom_range(500) + 1, price);
            e.new_id = ID_BITS'(next_id);
          end
        endcase
        e.seq = SEQ_BITS'(n);
        if (model_price[id] >= 1000000 && model_price[id] < 1409600)
          change(model_ask[id], model_price[id], -qty, (qty == model_qty[id]) ? -1 : 0);
        if (e.kind == EV_REPLACE) begin
          change(model_ask[id], price, int'(e.qty), 1);
          model_ask[next_id] = model_ask[id]; model_price[next_id] = price; model_qty[next_id] = int'(e.qty);
          ids[pick] = next_id;
          model_ask.delete(id); model_price.delete(id); model_qty.delete(id);
          next_id++;
        end else if (qty == model_qty[id]) begin
          model_ask.delete(id); model_price.delete(id); model_qty.delete(id);
          ids.delete(pick);
        end else model_qty[id] -= qty;
      end
      send(e, ($urandom_range(2) == 0) ? 0 : $urandom_range(30));
    end
    repeat (40) @(negedge clk);
    check(told == 6001, $sformatf("told of every event: %0d", told));
    check(events == 32'd6000, "every event is counted");
    check(faults == '0, $sformatf("no fault in a right stream: %b", faults));

    // Each fault is raised.
    faults = '0;
    send(event_of(EV_DELETE, 64'h7f_0000_0000, 0, 0), 40);
    check(faults == FAULTS'(1 << FAULT_UNKNOWN), "a deletion that meets nothing");
    faults = '0;
    send(event_of(EV_ADD, ids[0], 5, 1100000), 40);
    check(faults[FAULT_DUPLICATE], "an order that is there already");
    clear = 1; @(negedge clk); clear = 0;
    level_qty[0].delete(); level_qty[1].delete(); level_orders[0].delete(); level_orders[1].delete();
    wait (in_ready);
    change(0, 1100000, 5, 1);
    send(event_of(EV_ADD, 1, 5, 1100000), 40);
    faults = '0;
    change(0, 1100000, -6, 0);
    send(event_of(EV_REDUCE, 1, 6, 0), 40);
    check(faults[FAULT_EXCESS], "more than is there");
    clear = 1; @(negedge clk); clear = 0;
    level_qty[0].delete(); level_orders[0].delete();
    wait (in_ready);
    faults = '0;
    change(0, 1100050, 5, 1);
    send(event_of(EV_ADD, 1, 5, 1100050), 40);
    check(faults[FAULT_PRICE], "a price off the tick");
    clear = 1; @(negedge clk); clear = 0;
    level_qty[0].delete(); level_orders[0].delete();
    wait (in_ready);
    faults = '0;
    change(0, 5000, 5, 1);
    send(event_of(EV_ADD, 1, 5, 5000), 40);
    check(faults[FAULT_BLIND], "a best price outside the window");
    level_qty[0].delete(); level_orders[0].delete();
    clear = 1; @(negedge clk); clear = 0;
    wait (in_ready);
    faults = '0;
    for (int i = 0; i < 700; i++) begin
      change(0, 1100000, 1, 1);
      send(event_of(EV_ADD, longint'(i + 1), 1, 1100000), 40);
    end
    repeat (40) @(negedge clk);
    check(faults == FAULTS'(1 << FAULT_STORE), "more orders than there are places");
    done = 1;
  end
  wire logic unused = &{1'b0, start_trade, live, has_last, trading, reference, settled, last_price, last_qty, trace_valid,
                        trace_ask, trace_far, trace_price, trace_qty, trace_orders, wrong, unused};
endmodule

`default_nettype wire
