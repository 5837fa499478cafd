// The core: three lines of a feed (A, B, and software's own), arbitrated, one book, the strategy, the gate, orders
// out. `feed_line` and `order_tx` are those of the venue: ITCH 5.0 in MoldUDP64 and OUCH 5.0, or MOEX's FAST and FIX.
// Registers are written and read by software; `register_map` in README.md.
`default_nettype none

module core
  import core_pkg::*;
  import strategy_pkg::*;
(
    input  wire logic        clk,
    input  wire logic        rst,

    input  wire logic [2:0][63:0] rx_data,
    input  wire logic [2:0][7:0]  rx_keep,
    input  wire logic [2:0]       rx_valid,
    input  wire logic [2:0]       rx_last,
    input  wire logic [2:0]       rx_error,

    output logic [63:0]      tx_data,
    output logic [7:0]       tx_keep,
    output logic             tx_valid,
    output logic             tx_last,
    input  wire logic        tx_ready,

    input  wire logic        write,
    input  wire logic [7:0]  address,
    input  wire logic [31:0] write_data,
    output logic [31:0]      read_data,        // of `address`, a clock later

    // What comparisons and mirrors read; nothing of it goes back in.
    output logic             told,             // the strategy is told of a book, below
    output logic             told_live,
    output logic             told_bid_valid,
    output logic [31:0]      told_bid_price,
    output logic [39:0]      told_bid_qty,
    output logic             told_ask_valid,
    output logic [31:0]      told_ask_price,
    output logic [39:0]      told_ask_qty,
    output logic [SEQ_BITS-1:0] told_seq,
    output logic             trace_valid,
    output logic             trace_ask,
    output logic             trace_far,
    output logic [31:0]      trace_price,
    output logic [39:0]      trace_qty,
    output logic [15:0]      trace_orders,
    output logic             order_passed,     // an order leaves, of the message `order_seq`
    output logic [SEQ_BITS-1:0] order_seq,
    output logic             order_blocked
);

  // ---------------------------------------------------------------- registers that software writes
  logic [2:0][31:0] cfg_address;
  logic [2:0][15:0] cfg_port;
  logic [79:0]      cfg_session;
  logic [15:0]      cfg_locate;
  logic [7:0]       cfg_market;
  logic [31:0]      cfg_base, cfg_watchdog, cfg_low, cfg_high, cfg_size, cfg_position, cfg_token_clocks;
  logic [15:0]      cfg_tokens, cfg_patience, cfg_sum;
  logic [23:0]      cfg_second;
  logic [7:0]       cfg_text_sum;
  logic             cfg_stop_at_fcs;
  logic [7:0]       seq_high;

  // Addresses below 64; from 64 on the prepared frame.
  localparam logic [7:0] CONTROL = 8'd0, ADDRESS_A = 8'd1, PORT_A = 8'd4, SESSION = 8'd7, LOCATE = 8'd10, MARKET = 8'd11,
      BASE = 8'd12, PATIENCE = 8'd13, SEQ_HIGH = 8'd14, SEQ_LOW = 8'd15, WATCHDOG = 8'd16, LOW = 8'd17, HIGH = 8'd18,
      SIZE = 8'd19, POSITION = 8'd20, TOKENS = 8'd21, TOKEN_CLOCKS = 8'd22, LEFT = 8'd23, HELD = 8'd24, HELD_ADD = 8'd25,
      SUM = 8'd26, SEQUENCE = 8'd27, USER_REF = 8'd28, ALIVE = 8'd29, TEXT_SUM = 8'd30,
      MESSAGE = 8'd31, SECOND = 8'd32, MILLISECOND = 8'd33, NUMBER = 8'd34, FRAME = 8'd64;

  wire logic control = write && (address == CONTROL);
  wire logic arm     = control && write_data[0];
  wire logic disarm  = control && write_data[1];
  wire logic resume  = control && write_data[2];
  wire logic clear   = control && write_data[3];
  wire logic forget  = control && write_data[4];
  wire logic start   = write && (address == SEQ_LOW);

  always_ff @(posedge clk) begin
    if (write) begin
      case (address)
        ADDRESS_A, ADDRESS_A + 8'd1, ADDRESS_A + 8'd2: cfg_address[2'(address - ADDRESS_A)] <= write_data;
        PORT_A, PORT_A + 8'd1, PORT_A + 8'd2: cfg_port[2'(address - PORT_A)] <= write_data[15:0];
        SESSION:        cfg_session[79:48] <= write_data;
        SESSION + 8'd1: cfg_session[47:16] <= write_data;
        SESSION + 8'd2: cfg_session[15:0] <= write_data[15:0];
        LOCATE:         cfg_locate <= write_data[15:0];
        MARKET: begin
          cfg_market      <= write_data[7:0];
          cfg_stop_at_fcs <= write_data[8];
        end
        BASE:           cfg_base <= write_data;
        PATIENCE:       cfg_patience <= write_data[15:0];
        SEQ_HIGH:       seq_high <= write_data[7:0];
        WATCHDOG:       cfg_watchdog <= write_data;
        LOW:            cfg_low <= write_data;
        HIGH:           cfg_high <= write_data;
        SIZE:           cfg_size <= write_data;
        POSITION:       cfg_position <= write_data;
        TOKENS:         cfg_tokens <= write_data[15:0];
        TOKEN_CLOCKS:   cfg_token_clocks <= write_data;
        SUM:            cfg_sum <= write_data[15:0];
        TEXT_SUM:       cfg_text_sum <= write_data[7:0];
        SECOND:         cfg_second <= write_data[23:0];
        default: ;
      endcase
    end
    // Nothing is allowed until software says so.
    if (rst) begin
      cfg_address     <= '0;
      cfg_port        <= '0;
      cfg_session     <= '0;
      cfg_locate      <= '0;
      cfg_market      <= "Q";
      cfg_stop_at_fcs <= 1'b1;
      cfg_base        <= '0;
      cfg_patience    <= 16'd1000;
      seq_high        <= '0;
      cfg_watchdog    <= '0;
      cfg_low         <= '0;
      cfg_high        <= '0;
      cfg_size        <= '0;
      cfg_position    <= '0;
      cfg_tokens      <= '0;
      cfg_token_clocks <= '0;
      cfg_sum         <= '0;
      cfg_text_sum    <= '0;
      cfg_second      <= '0;
    end
  end

  // ---------------------------------------------------------------- lines
  logic    [2:0] packet_valid, packet_pop, event_pop;
  packet_t [2:0] packet;
  event_t  [2:0] head;
  logic    [2:0] tick_good, tick_bad, tick_fcs, tick_foreign, tick_full;
  for (genvar i = 0; i < 3; i++) begin : line
    feed_line rx (
        .clk, .rst, .cfg_address(cfg_address[i]), .cfg_port(cfg_port[i]), .cfg_session, .cfg_locate, .cfg_market,
        .rx_data(rx_data[i]), .rx_keep(rx_keep[i]), .rx_valid(rx_valid[i]), .rx_last(rx_last[i]), .rx_error(rx_error[i]),
        .packet_valid(packet_valid[i]), .packet(packet[i]), .packet_pop(packet_pop[i]), .head(head[i]),
        .event_pop(event_pop[i]), .tick_good(tick_good[i]), .tick_bad(tick_bad[i]), .tick_fcs(tick_fcs[i]),
        .tick_foreign(tick_foreign[i]), .tick_full(tick_full[i])
    );
  end

  logic              stream_valid, stream_ready, gap, stream_live, tick_duplicate;
  event_t            stream;
  logic [SEQ_BITS-1:0] expected;
  logic [FAULTS-1:0] book_fault, fault, faults;
  line_arbiter arbiter (
      .clk, .rst, .cfg_patience, .cfg_start(start), .cfg_seq({seq_high, write_data}), .stop(|fault), .resume,
      .packet_valid, .packet, .packet_pop, .head, .event_pop,
      .out_valid(stream_valid), .out(stream), .out_ready(stream_ready), .gap, .live(stream_live), .expected, .tick_duplicate
  );

  logic   numbered_valid, numbered_ready, number_hole;
  event_t numbered;
  if (NUMBERED) begin : numbers
    event_numbers check (
        .clk, .rst, .set_next(write && (address == NUMBER)), .value(write_data), .in_valid(stream_valid), .in(stream),
        .in_ready(stream_ready), .out_valid(numbered_valid), .out(numbered), .out_ready(numbered_ready), .hole(number_hole)
    );
  end else begin : no_numbers
    assign numbered_valid = stream_valid;
    assign numbered       = stream;
    assign stream_ready   = numbered_ready;
    assign number_hole    = 1'b0;
  end

  // An event waits in a register for the book.
  logic   next_valid_reg, book_takes;
  event_t next_event_reg;
  assign numbered_ready = !next_valid_reg || book_takes;
  always_ff @(posedge clk) begin
    if (numbered_ready) begin
      next_valid_reg <= numbered_valid;
      next_event_reg <= numbered;
    end
    if (rst) next_valid_reg <= 1'b0;
  end

  // ---------------------------------------------------------------- book and strategy
  logic   start_book, start_trade, strategy_busy, live, has_last, trading, reference, settled, book_ready, room, stray;
  level_t bid, ask;
  logic [31:0] last_price, last_qty, events;
  logic [SEQ_BITS-1:0] book_seq;
  book #(.TICK(TICK), .SET_ADDRESS(SET_ADDRESS), .HAS_TRADE(HAS_TRADE)) book_of_one (
      .clk, .rst, .cfg_base, .clear, .in_valid(next_valid_reg && room), .in(next_event_reg), .in_ready(book_ready),
      .start_book, .start_trade, .strategy_busy, .live, .bid, .ask, .has_last, .last_price, .last_qty, .seq(book_seq),
      .trading, .reference, .settled, .fault(book_fault), .events,
      .trace_valid, .trace_ask, .trace_far, .trace_price, .trace_qty, .trace_orders
  );
  assign book_takes = next_valid_reg && book_ready && room;

  logic        want_valid;
  logic        want_ask;
  logic [31:0] want_qty, want_price;
  strategy rule (
      .clk, .rst, .start_book, .start_trade, .busy(strategy_busy),
      .live, .bid_valid(bid.valid), .bid_price(bid.price), .bid_qty(bid.qty),
      .ask_valid(ask.valid), .ask_price(ask.price), .ask_qty(ask.qty),
      .has_last, .last_price, .last_qty,
      .order_valid(want_valid), .order_ask(want_ask), .order_qty(want_qty), .order_price(want_price)
  );

  logic   queue_valid, queue_ready;
  order_t queued;
  order_t wanted;
  assign wanted = '{ask: want_ask, qty: want_qty, price: want_price, seq: book_seq};
  order_queue #(.MOST(ORDERS_MOST)) queue (
      .clk, .rst, .in_valid(want_valid), .in(wanted),
      .room, .overflow(stray), .out_valid(queue_valid), .out(queued), .out_ready(queue_ready)
  );

  // ---------------------------------------------------------------- what is not right
  always_comb begin
    fault             = book_fault;
    fault[FAULT_GAP]  = gap;
    fault[FAULT_FCS]  = cfg_stop_at_fcs && |tick_fcs[1:0];
    fault[FAULT_STRAY] = stray;
    fault[FAULT_NUMBER] = number_hole;
  end
  always_ff @(posedge clk) begin
    faults <= (forget ? '0 : faults) | fault;
    if (rst) faults <= '0;
  end

  // ---------------------------------------------------------------- gate and frames
  // What is offered in the next clock.
  order_t    soon;
  wire logic comes = queue_valid ? !queue_ready : want_valid;
  assign soon = queue_valid ? queued : wanted;

  logic gate_valid, gate_ready, armed, expired, tx_take;
  order_t passed_order;
  logic signed [33:0] held;
  logic [31:0] left, passed, sequence_number, user_ref, message_number;
  logic [15:0] tokens;
  logic [BLOCKS-1:0][31:0] blocked;
  gate #(.QTY_MOST(QTY_MOST), .PRICE_MOST(PRICE_MOST)) last_gate (
      .clk, .rst, .arm, .disarm, .alive(write && (address == ALIVE)), .cfg_watchdog, .cfg_low, .cfg_high, .cfg_size,
      .cfg_position, .cfg_tokens, .cfg_token_clocks, .set_left(write && (address == LEFT)),
      .set_held(write && (address == HELD)), .add_held(write && (address == HELD_ADD)), .value(write_data),
      .healthy(stream_live && live && (fault == '0)), .trading, .reference,
      .soon_valid(comes), .soon, .in_valid(queue_valid && settled), .in(queued), .in_ready(gate_ready), .out_valid(gate_valid), .out(passed_order),
      .out_ready(tx_take), .armed, .expired, .held, .left, .tokens, .passed, .blocked
  );
  assign queue_ready = gate_ready && settled;

  order_tx tx (
      .clk, .rst, .write(write && (address >= FRAME) && (address < FRAME + 8'd128)), .write_address(7'(address - FRAME)),
      .write_data, .cfg_sum, .cfg_text_sum, .cfg_second, .set_sequence(write && (address == SEQUENCE)),
      .set_user_ref(write && (address == USER_REF)), .set_message(write && (address == MESSAGE)),
      .set_time(write && (address == MILLISECOND)), .value(write_data), .soon_valid(comes), .soon,
      .in_valid(gate_valid), .in(passed_order), .in_ready(tx_take), .tx_data, .tx_keep, .tx_valid, .tx_last, .tx_ready, .sequence_number, .user_ref,
      .message_number
  );

  // ---------------------------------------------------------------- counters
  // Counted a clock later.
  logic [2:0][31:0] count_good, count_bad, count_fcs, count_foreign, count_full;
  logic [31:0]      count_duplicate;
  logic [2:0]       good_reg, bad_reg, fcs_reg, foreign_reg, full_reg;
  logic             duplicate_reg;
  always_ff @(posedge clk) begin
    good_reg      <= rst ? '0 : tick_good;
    bad_reg       <= rst ? '0 : tick_bad;
    fcs_reg       <= rst ? '0 : tick_fcs;
    foreign_reg   <= rst ? '0 : tick_foreign;
    full_reg      <= rst ? '0 : tick_full;
    duplicate_reg <= tick_duplicate && !rst;
    for (int i = 0; i < 3; i++) begin
      count_good[i]    <= count_good[i] + 32'(good_reg[i]);
      count_bad[i]     <= count_bad[i] + 32'(bad_reg[i]);
      count_fcs[i]     <= count_fcs[i] + 32'(fcs_reg[i]);
      count_foreign[i] <= count_foreign[i] + 32'(foreign_reg[i]);
      count_full[i]    <= count_full[i] + 32'(full_reg[i]);
    end
    count_duplicate <= count_duplicate + 32'(duplicate_reg);
    if (rst) begin
      count_good      <= '0;
      count_bad       <= '0;
      count_fcs       <= '0;
      count_foreign   <= '0;
      count_full      <= '0;
      count_duplicate <= '0;
    end
  end

  always_ff @(posedge clk) begin
    read_data <= '0;
    case (address)
      8'd0:  read_data <= {28'd0, expired, trading, stream_live && live, armed};
      8'd1:  read_data <= 32'(faults);
      8'd2:  read_data <= {24'd0, expected[39:32]};
      8'd3:  read_data <= expected[31:0];
      8'd4:  read_data <= events;
      8'd5:  read_data <= passed;
      8'd6:  read_data <= left;
      8'd7:  read_data <= held[31:0];
      8'd8:  read_data <= {16'd0, tokens};
      8'd9:  read_data <= sequence_number;
      8'd10: read_data <= user_ref;
      8'd11: read_data <= count_duplicate;
      8'd12: read_data <= message_number;
      default: begin
        for (int i = 0; i < BLOCKS; i++) if (address == 8'(16 + i)) read_data <= blocked[i];
        for (int i = 0; i < 3; i++) begin
          if (address == 8'(32 + 8*i)) read_data <= count_good[i];
          if (address == 8'(33 + 8*i)) read_data <= count_bad[i];
          if (address == 8'(34 + 8*i)) read_data <= count_fcs[i];
          if (address == 8'(35 + 8*i)) read_data <= count_foreign[i];
          if (address == 8'(36 + 8*i)) read_data <= count_full[i];
        end
      end
    endcase
  end

  assign told           = start_book;
  assign told_live      = live;
  assign told_bid_valid = bid.valid;
  assign told_bid_price = bid.price;
  assign told_bid_qty   = bid.qty;
  assign told_ask_valid = ask.valid;
  assign told_ask_price = ask.price;
  assign told_ask_qty   = ask.qty;
  assign told_seq       = book_seq;
  assign order_passed   = gate_valid && tx_take;
  assign order_seq      = passed_order.seq;
  assign order_blocked  = queue_valid && queue_ready && !order_passed;

  // Spare high bits of a wider position than a register has.
  wire logic unused = &{1'b0, held[33:32], unused};

endmodule

`default_nettype wire
