// An order as a whole Ethernet frame: TCP segment with a FIX 4.4 NewOrderSingle, every number in it of a fixed width
// with leading zeros (FIX 4.4, volume 1, "FIX Field Data Types", allows them), so that BodyLength does not change.
// Software prepares the frame (`write_*`, halves of a word) with the digit 0 wherever one is filled in and nothing in
// TCP's sequence number and checksum; `cfg_sum` is the one's complement sum of pseudo header and segment as prepared,
// `cfg_text_sum` that of the message's bytes before its CheckSum, modulo 256. Filled in are both sequence numbers,
// ClOrdID, SendingTime and TransactTime, side, quantity, price, and both checksums. In between places of digits a
// checksum is linear: digits at even places of the frame count 256 times in TCP's, those at odd ones once.
//
// The first word leaves four clocks after the order came: the checksum, which lies in word 6, needs the digits, which
// are begun a clock before.
// The connection and the session are software's: it hands over the numbers while nothing is sent (`set_*`), takes
// them back by reading, sends again what is lost, and reads everything that the venue says. It also keeps the clock:
// it writes the time of day each millisecond, or as often as the venue wants it.
`default_nettype none

module order_tx
  import core_pkg::*;
  import fix44_pkg::*;
(
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic        write,
    input  wire logic [6:0]  write_address,
    input  wire logic [31:0] write_data,      // first byte of the frame in bits 7:0
    input  wire logic [15:0] cfg_sum,
    input  wire logic [7:0]  cfg_text_sum,
    input  wire logic [23:0] cfg_second,      // HHMMSS, four bits a digit; taken with `set_time`
    input  wire logic        set_sequence,
    input  wire logic        set_user_ref,    // the number in ClOrdID: eight digits, four bits each
    input  wire logic        set_message,     // MsgSeqNum, the same
    input  wire logic        set_time,        // milliseconds: three digits
    input  wire logic [31:0] value,

    input  wire logic        soon_valid,      // what may come in the next clock: its digits are made already
    input  wire order_t      soon,
    input  wire logic        in_valid,
    input  wire order_t      in,
    output logic             in_ready,

    output logic [63:0]      tx_data,
    output logic [7:0]       tx_keep,
    output logic             tx_valid,
    output logic             tx_last,
    input  wire logic        tx_ready,

    output logic [31:0]      sequence_number,
    output logic [31:0]      user_ref,
    output logic [31:0]      message_number
);

  localparam int WORDS   = (FRAME_SIZE + 7) / 8;
  localparam int SEGMENT = FRAME_SIZE - 54;
  localparam logic [7:0] LAST_KEEP = 8'(9'h0ff >> (8 * WORDS - FRAME_SIZE));
  // Clocks until the numbers of the next order are summed.
  localparam int SETTLES = 4;
  // Clocks between an order and its first word.
  localparam int WAITS = 3;

  (* ram_style = "distributed" *) logic [31:0] low_halves [64];
  (* ram_style = "distributed" *) logic [31:0] high_halves [64];
  always_ff @(posedge clk) if (write) begin
    if (write_address[0]) high_halves[write_address[6:1]] <= write_data;
    else low_halves[write_address[6:1]] <= write_data;
  end

  typedef struct packed {
    logic [31:0]     sequence_number;
    logic [7:0][3:0] message;
    logic [7:0][3:0] order;
    logic [8:0][3:0] clock;             // HHMMSSmmm
  } numbers_t;
  numbers_t next_reg, now_reg;          // of the next order, and of the one that leaves

  // Decimal plus one; 99,999,999 is followed by 0, which no day reaches.
  function automatic logic [7:0][3:0] plus_one(input logic [7:0][3:0] digits);
    logic carries;
    carries = 1'b1;
    for (int i = 0; i < 8; i++) begin
      plus_one[i] = !carries ? digits[i] : (digits[i] == 4'd9) ? 4'd0 : digits[i] + 4'd1;
      carries &= (digits[i] == 4'd9);
    end
  endfunction

  // ---------------------------------------------------------------- sums of digits
  // What digits add, by whether they lie at even or odd places; `first` is the place of the first, which is the
  // highest, of so many.
  typedef struct packed {
    logic [8:0] even;
    logic [8:0] odd;
  } sums_t;
  function automatic sums_t summed(input logic [8:0][3:0] digits, input int count, input int first);
    summed = '0;
    for (int i = 0; i < 9; i++)
      if (i < count) begin
        if ((first + count - 1 - i) % 2 == 0) summed.even += 9'(digits[i]);
        else summed.odd += 9'(digits[i]);
      end
  endfunction
  function automatic sums_t both(input sums_t a, input sums_t b);
    return '{even: a.even + b.even, odd: a.odd + b.odd};
  endfunction
  // A time of day has colons and a point in it: HH:MM:SS.mmm.
  function automatic sums_t summed_time(input logic [8:0][3:0] digits, input int first);
    return both(both(summed(36'(digits[8:7]), 2, first), summed(36'(digits[6:5]), 2, first + 3)),
                both(summed(36'(digits[4:3]), 2, first + 6), summed(36'(digits[2:0]), 3, first + 9)));
  endfunction
  function automatic logic [16:0] fold(input logic [20:0] sum);
    return {1'b0, sum[15:0]} + {12'd0, sum[20:16]};
  endfunction
  function automatic logic [15:0] folded(input logic [20:0] sum);
    logic [16:0] once;
    once = fold(sum);
    return once[15:0] + 16'(once[16]);
  endfunction

  sums_t       message_sums_reg, order_sums_reg, time_sums_reg, number_sums_reg;
  logic [20:0] number_total_reg;
  logic [7:0]  number_text_reg, text_sum_reg;
  logic [15:0] next_sum_reg, before_reg;
  logic [2:0]  settles_reg;
  wire logic starts  = in_valid && in_ready;
  wire logic changes = starts || set_sequence || set_user_ref || set_message || set_time;

  always_ff @(posedge clk) begin
    message_sums_reg <= summed(36'(next_reg.message), 8, MESSAGE_PLACE);
    order_sums_reg   <= summed(36'(next_reg.order), 8, ORDER_PLACE);
    time_sums_reg    <= both(summed_time(next_reg.clock, SENDING_PLACE), summed_time(next_reg.clock, TRANSACT_PLACE));
    number_sums_reg  <= both(both(message_sums_reg, order_sums_reg), time_sums_reg);
    number_total_reg <= 21'(cfg_sum) + 21'(next_reg.sequence_number[31:16]) + 21'(next_reg.sequence_number[15:0])
                      + 21'({number_sums_reg.even, 8'd0}) + 21'(number_sums_reg.odd);
    number_text_reg  <= cfg_text_sum + 8'(number_sums_reg.even) + 8'(number_sums_reg.odd);
    next_sum_reg     <= folded(number_total_reg);
    if (changes || rst) settles_reg <= 3'(SETTLES);
    else if (settles_reg != '0) settles_reg <= settles_reg - 3'd1;
    if (starts) begin
      before_reg   <= next_sum_reg;
      text_sum_reg <= number_text_reg;
    end
  end

  // ---------------------------------------------------------------- the order's own digits
  logic [8:0][3:0] qty_digits, price_digits;
  decimal_digits of_qty (.clk, .in(soon.qty), .out(qty_digits));
  decimal_digits of_price (.clk, .in(soon.price), .out(price_digits));
  logic            ask_reg;
  logic [8:0][3:0] qty_reg, price_reg;
  sums_t           own_reg;
  logic [20:0]     total_reg, whole_reg;
  logic [7:0]      text_reg;
  logic [2:0][3:0] text_digits_reg;
  logic [15:0]     checksum_reg;
  // Order came, and then clock by clock.
  logic [6:0]      at_reg;

  // What is offered is what was to come a clock before, and its digits are under way.
  logic   known_reg;
  order_t soon_reg;
  always_ff @(posedge clk) begin
    soon_reg  <= soon;
    known_reg <= soon_valid && !rst;
  end
`ifndef SYNTHESIS
  always_ff @(posedge clk) if (!rst && starts)
    assert (soon_reg == in) else $error("the digits under way are not those of the order");
`endif

  wire logic [2:0][3:0] side = {8'd0, ask_reg ? 4'd2 : 4'd1};
  // 0 to 255 as three digits, from a table.
  function automatic logic [255:0][11:0] three_digits();
    for (int n = 0; n < 256; n++) three_digits[n] = {4'(n / 100), 4'((n / 10) % 10), 4'(n % 10)};
  endfunction
  localparam logic [255:0][11:0] THREE_DIGITS = three_digits();
  sums_t text_sums;
  assign text_sums = summed(36'(text_digits_reg), 3, CHECKSUM_PLACE);

  always_ff @(posedge clk) begin
    at_reg <= {at_reg[5:0], starts};
    // The digits stand four clocks after the order.
    if (at_reg[3]) begin
      qty_reg   <= qty_digits;
      price_reg <= price_digits;
      own_reg   <= both(both(summed(qty_digits, 9, QUANTITY_PLACE), summed(36'(side), 1, SIDE_PLACE)),
                        both(summed(36'(price_digits[8:4]), 5, PRICE_PLACE), summed(36'(price_digits[3:0]), 4, PRICE_PLACE + 6)));
    end
    if (at_reg[4]) begin
      total_reg <= 21'(before_reg) + 21'({own_reg.even, 8'd0}) + 21'(own_reg.odd);
      text_reg  <= text_sum_reg + 8'(own_reg.even) + 8'(own_reg.odd);
    end
    if (at_reg[5]) text_digits_reg <= THREE_DIGITS[text_reg];
    if (at_reg[6]) whole_reg <= total_reg + 21'({text_sums.even, 8'd0}) + 21'(text_sums.odd);
    // A clock later it is folded.
    checksum_reg <= ~folded(whole_reg);
    if (rst) at_reg <= '0;
  end

  // ---------------------------------------------------------------- frame
  logic       busy_reg;
  logic [1:0] waits_reg;
  logic [5:0] word_reg;
  wire logic  moves   = !tx_valid || tx_ready;
  wire logic  is_last = (word_reg == 6'(WORDS - 1));
  wire logic  flows   = busy_reg && (waits_reg == '0);

  function automatic logic [63:0] at(input int place, input int word_of, input logic [7:0] data);
    return (place / 8 == word_of) ? 64'(data) << (8 * (place % 8)) : '0;
  endfunction
  // So many digits, the highest first, over zeros that stand there.
  function automatic logic [63:0] put(input int place, input int word_of, input logic [8:0][3:0] digits, input int count);
    put = '0;
    for (int i = 0; i < 9; i++)
      if (i < count) put |= at(place + count - 1 - i, word_of, {4'd0, digits[i]});
  endfunction
  function automatic logic [63:0] put_time(input int place, input int word_of, input logic [8:0][3:0] digits);
    return put(place, word_of, 36'(digits[8:7]), 2) | put(place + 3, word_of, 36'(digits[6:5]), 2)
         | put(place + 6, word_of, 36'(digits[4:3]), 2) | put(place + 9, word_of, 36'(digits[2:0]), 3);
  endfunction

  // What is filled into each word.
  logic [WORDS-1:0][63:0] patch;
  for (genvar w = 0; w < WORDS; w++) begin : of_word
    assign patch[w] = at(38, w, now_reg.sequence_number[31:24]) | at(39, w, now_reg.sequence_number[23:16])
                    | at(40, w, now_reg.sequence_number[15:8]) | at(41, w, now_reg.sequence_number[7:0])
                    | at(50, w, checksum_reg[15:8]) | at(51, w, checksum_reg[7:0])
                    | put(MESSAGE_PLACE, w, 36'(now_reg.message), 8) | put(ORDER_PLACE, w, 36'(now_reg.order), 8)
                    | put_time(SENDING_PLACE, w, now_reg.clock) | put_time(TRANSACT_PLACE, w, now_reg.clock)
                    | put(SIDE_PLACE, w, 36'(side), 1) | put(QUANTITY_PLACE, w, qty_reg, 9)
                    | put(PRICE_PLACE, w, 36'(price_reg[8:4]), 5) | put(PRICE_PLACE + 6, w, 36'(price_reg[3:0]), 4)
                    | put(CHECKSUM_PLACE, w, 36'(text_digits_reg), 3);
  end
  wire logic [63:0] filled = {high_halves[word_reg], low_halves[word_reg]} | patch[word_reg];

  always_ff @(posedge clk) begin
    if (waits_reg != '0) waits_reg <= waits_reg - 2'd1;
    if (moves) begin
      tx_valid <= flows;
      tx_data  <= filled;
      tx_keep  <= is_last ? LAST_KEEP : 8'hff;
      tx_last  <= flows && is_last;
      if (flows) begin
        word_reg <= is_last ? 6'd0 : word_reg + 6'd1;
        if (is_last) busy_reg <= 1'b0;
      end
    end
    if (starts) begin
      busy_reg  <= 1'b1;
      waits_reg <= 2'(WAITS - 1);
      ask_reg   <= in.ask;
      now_reg   <= next_reg;
      next_reg.sequence_number <= next_reg.sequence_number + 32'(SEGMENT);
      next_reg.message         <= plus_one(next_reg.message);
      next_reg.order           <= plus_one(next_reg.order);
    end
    if (set_sequence) next_reg.sequence_number <= value;
    if (set_message) next_reg.message <= value;
    if (set_user_ref) next_reg.order <= value;
    if (set_time) next_reg.clock <= {cfg_second, value[11:0]};
    if (rst) begin
      busy_reg  <= 1'b0;
      tx_valid  <= 1'b0;
      tx_last   <= 1'b0;
      word_reg  <= '0;
      waits_reg <= '0;
      next_reg  <= '0;
      next_reg.message <= 32'd1;
      next_reg.order   <= 32'd1;
    end
  end

  assign in_ready        = !busy_reg && moves && (settles_reg == '0) && known_reg;
  assign sequence_number = next_reg.sequence_number;
  assign user_ref        = next_reg.order;
  assign message_number  = next_reg.message;

  wire logic unused = &{1'b0, in.qty, in.price, in.seq, soon_reg, unused};

endmodule

`default_nettype wire
