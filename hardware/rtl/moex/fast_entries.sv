// Entries of an order log out of a message's tokens: which token is which field follows from the template, of which
// fast_pkg is written, and from presence maps. `slots` are the template's fields as they may lie in the stream, a
// decimal two of them; those that are still to come are a mask, of which the lowest is the next token. Two tokens are
// taken in a clock, but for a presence map or a NULL first.
//
// An entry of the instrument is an event. `end_valid` comes behind or with the message's last one and says whether
// the message was read to its end without an error; what came of another message is to be forgotten. Messages by
// other templates are read over.
`default_nettype none

module fast_entries
  import core_pkg::*;
  import fast_pkg::*;
  import token_pkg::*;
(
    input  wire logic        clk,
    input  wire logic        rst,

    input  wire logic        in_valid,
    input  wire logic        in_a_valid,
    input  wire token_t      in_a,
    input  wire logic        in_b_valid,
    input  wire token_t      in_b,
    input  wire logic [31:0] in_number,
    input  wire logic        in_last,
    input  wire logic        in_broken,
    output logic             take_a,
    output logic             take_all,

    output logic             out_valid,
    output event_t           out,          // its number in `new_id`: see event_numbers
    output logic             end_valid,
    output logic             end_good
);

  // Tokens are passed whole; who takes one reads of it what he needs.
  /* verilator lint_off UNUSEDSIGNAL */

  // A presence map of up to three bytes, the first bit of it above.
  function automatic logic [20:0] map_of(input token_t token);
    case (token.length)
      4'd1:    return {token.bits[6:0], 14'd0};
      4'd2:    return {token.bits[13:0], 7'd0};
      default: return token.bits[20:0];
    endcase
  endfunction

  // ---------------------------------------------------------------- which token is which
  logic             header_reg, map_reg, skip_reg, bad_reg, complete_reg;
  logic [SLOTS-1:0] mask_reg;
  logic [7:0]       left_reg;              // entries to come, this one too

  wire logic acts = in_valid && in_a_valid && !skip_reg;
  // The lowest slot is A's and the next one B's, which is not taken together with a NULL before it: then there may
  // be a mantissa less.
  logic [SLOTS-1:0] after_one, after_two;
  always_comb begin
    logic one, two;
    one = 1'b0;
    two = 1'b0;
    for (int i = 0; i < SLOTS; i++) begin
      after_one[i] = one;
      after_two[i] = two;
      two |= one && mask_reg[i];
      one |= mask_reg[i];
    end
  end
  wire logic [SLOTS-1:0] slot_a = mask_reg & ~after_one;
  wire logic no_mantissa_a = in_a.is_null && !header_reg && |(slot_a & EXPONENTS);
  wire logic [SLOTS-1:0] after_a = mask_reg & after_one & ~(no_mantissa_a ? {slot_a[SLOTS-2:0], 1'b0} : '0);
  wire logic ends_a = (after_a == '0);
  // With A the last field of an entry, B is the next one's map.
  wire logic is_alone = ((mask_reg & after_one) == '0);        // A's slot is the last
  wire logic both   = in_b_valid && !map_reg && !in_a.is_null && !(header_reg && is_alone);
  wire logic [SLOTS-1:0] slot_b = mask_reg & after_one & ~after_two;
  wire logic no_mantissa_b = in_b.is_null && !header_reg && |(slot_b & EXPONENTS);
  wire logic [SLOTS-1:0] after_b = mask_reg & after_two & ~(no_mantissa_b ? {slot_b[SLOTS-2:0], 1'b0} : '0);
  wire logic ends_b = both && !is_alone && (after_b == '0);
  wire logic ends   = acts && !map_reg && (ends_a || ends_b);
  wire logic entry_ends  = ends && !header_reg;
  wire logic header_ends = ends && header_reg;
  wire logic next_begins = entry_ends && ends_a && both;       // in this clock
  token_t map, count;
  assign map   = map_reg ? in_a : in_b;
  assign count = ends_a ? in_a : in_b;
  wire logic [20:0] map_bits = map_of(map);
  wire logic is_last_entry = (left_reg == 8'd1);
  wire logic is_other = acts && header_reg && !map_reg && slot_a[0] && (in_a.bits != 84'(TEMPLATE));

  wire logic is_complete = complete_reg || (entry_ends && is_last_entry) || (header_ends && (count.bits == '0));
  wire logic is_bad = bad_reg || (in_valid && in_broken) || (acts && complete_reg) || (next_begins && is_last_entry)
                   || (acts && (map_reg || next_begins) && (map.length > 4'd3))
                   || (acts && map_reg && header_reg && !map_bits[20])   // no template identifier: the feed has it always
                   || (header_ends && ((count.length > 4'd2) || (|count.bits[13:8])));
  wire logic over = in_valid && take_all && in_last;
  logic other_reg;                         // by another template

  assign take_all = in_valid && (skip_reg || !in_b_valid || both);
  assign take_a   = in_valid && !take_all;

  always_ff @(posedge clk) begin
    if (acts) begin
      map_reg <= 1'b0;
      if (map_reg || next_begins) mask_reg <= header_reg ? header_mask(map_bits) : entry_mask(map_bits);
      else mask_reg <= both ? after_b : after_a;
      if (header_ends) begin
        header_reg <= 1'b0;
        left_reg   <= count.bits[7:0];
        map_reg    <= 1'b1;
      end
      if (entry_ends) begin
        left_reg <= left_reg - 8'd1;
        map_reg  <= !next_begins;
      end
      complete_reg <= is_complete;
    end
    bad_reg   <= is_bad;
    other_reg <= other_reg || is_other;
    if (is_bad || is_other) skip_reg <= 1'b1;
    if (over || rst) begin
      header_reg   <= 1'b1;
      map_reg      <= 1'b1;
      skip_reg     <= 1'b0;
      bad_reg      <= 1'b0;
      other_reg    <= 1'b0;
      complete_reg <= 1'b0;
    end
  end

  // ---------------------------------------------------------------- what is taken of it
  token_t           a_reg, b_reg;
  logic [SLOTS-1:0] of_a_reg, of_b_reg;
  logic             entry_reg, begins_reg;
  logic [31:0]      begins_number_reg;
  // End of the message, clock by clock behind its last token, until its last event is out.
  logic [4:0]       over_reg, over_good_reg;

  always_ff @(posedge clk) begin
    a_reg    <= in_a;
    b_reg    <= in_b;
    of_a_reg <= (acts && !map_reg && !header_reg) ? slot_a : '0;
    of_b_reg <= (acts && !map_reg && !header_reg && both && !ends_a) ? slot_b : '0;
    entry_reg  <= entry_ends;
    begins_reg <= acts && map_reg && header_reg;
    begins_number_reg <= in_number;
    over_reg      <= {over_reg[3:0], over};
    over_good_reg <= {over_good_reg[3:0], !is_bad && (is_complete || other_reg || is_other)};
    if (rst) begin
      of_a_reg   <= '0;
      of_b_reg   <= '0;
      entry_reg  <= 1'b0;
      begins_reg <= 1'b0;
      over_reg   <= '0;
    end
  end

  function automatic logic has(input int slot);
    return of_a_reg[slot] || of_b_reg[slot];
  endfunction
  function automatic token_t token_of(input int slot);
    return of_a_reg[slot] ? a_reg : b_reg;
  endfunction
  // An integer that may be NULL is one more than it says, where it is not negative.
  function automatic logic [31:0] counted(input token_t token, input logic nullable);
    return token.bits[31:0] - 32'(nullable && !token.negative);
  endfunction
  function automatic logic is_wide(input token_t token);
    return token.negative || (token.length > 4'd5) || (token.bits[34:32] != '0);
  endfunction
  // The characters of a number, all of which are digits: four bits each.
  function automatic logic [47:0] digits(input logic [83:0] bits);
    for (int i = 0; i < 12; i++) digits[4*i +: 4] = bits[7*i +: 4];
  endfunction
  function automatic logic are_digits(input token_t token);
    are_digits = (token.length <= 4'd12);
    for (int i = 0; i < 12; i++)
      if (4'(i) < token.length)
        are_digits &= (token.bits[7*i+4 +: 3] == 3'd3) && (token.bits[7*i +: 4] <= 4'd9);
  endfunction

  /* verilator lint_on UNUSEDSIGNAL */

  typedef struct packed {
    logic        there;
    logic        one;                      // the exponent is a byte
    logic [6:0]  exponent;
    logic        wide;                     // the mantissa is not one of 32 bits without a sign
    logic [31:0] mantissa;
  } decimal_t;

  logic [31:0] number_reg, seq_reg;
  logic        number_good_reg, action_good_reg, id_good_reg, symbol_reg, board_reg, bid_reg, ask_reg, empty_reg;
  logic [1:0]  action_reg;
  logic [47:0] id_reg;
  decimal_t    price_reg, size_reg;
  logic        whole_reg;                  // the registers hold an entry

  /* verilator lint_off UNUSEDSIGNAL */
  token_t of_action, of_type, of_id, of_number, of_symbol, of_board, price_exponent, price_mantissa, size_exponent,
      size_mantissa;
  /* verilator lint_on UNUSEDSIGNAL */
  assign of_action = token_of(SLOT_ACTION);
  assign of_type   = token_of(SLOT_TYPE);
  assign of_id     = token_of(SLOT_ID);
  assign of_number = token_of(SLOT_NUMBER);
  assign of_symbol = token_of(SLOT_SYMBOL);
  assign of_board  = token_of(SLOT_BOARD);
  assign price_exponent = token_of(SLOT_PRICE_EXPONENT);
  assign price_mantissa = token_of(SLOT_PRICE_MANTISSA);
  assign size_exponent  = token_of(SLOT_SIZE_EXPONENT);
  assign size_mantissa  = token_of(SLOT_SIZE_MANTISSA);
  wire logic [6:0] action = 7'(counted(of_action, ACTION_NULLABLE));

  always_ff @(posedge clk) begin
    whole_reg <= entry_reg;
    if (has(SLOT_ACTION)) begin
      action_reg      <= of_action.is_null ? 2'd0 : action[1:0];
      action_good_reg <= of_action.is_null || ((of_action.length == 4'd1) && (action <= 7'd2));
    end
    if (has(SLOT_TYPE)) begin
      bid_reg   <= (of_type.length == 4'd1) && (of_type.bits[6:0] == 7'h30);
      ask_reg   <= (of_type.length == 4'd1) && (of_type.bits[6:0] == 7'h31);
      empty_reg <= (of_type.length == 4'd1) && (of_type.bits[6:0] == 7'h4a);
    end
    if (has(SLOT_ID)) begin
      id_reg      <= digits(of_id.bits);
      id_good_reg <= !of_id.is_null && are_digits(of_id);
    end
    if (has(SLOT_SYMBOL)) symbol_reg <= (of_symbol.length == SYMBOL_LENGTH) && (of_symbol.bits == SYMBOL);
    if (has(SLOT_BOARD)) board_reg <= (of_board.length == BOARD_LENGTH) && (of_board.bits == BOARD);
    if (has(SLOT_NUMBER)) begin
      number_reg      <= of_number.is_null ? '0 : counted(of_number, NUMBER_NULLABLE);
      number_good_reg <= of_number.is_null || !is_wide(of_number);
    end
    if (has(SLOT_PRICE_EXPONENT)) begin
      price_reg.there    <= !(PRICE_NULLABLE && price_exponent.is_null);
      price_reg.exponent <= price_exponent.bits[6:0];
      price_reg.one      <= (price_exponent.length == 4'd1);
    end
    if (has(SLOT_PRICE_MANTISSA)) begin
      price_reg.mantissa <= price_mantissa.bits[31:0];
      price_reg.wide     <= is_wide(price_mantissa);
    end
    if (has(SLOT_SIZE_EXPONENT)) begin
      size_reg.there    <= !(SIZE_NULLABLE && size_exponent.is_null);
      size_reg.exponent <= size_exponent.bits[6:0];
      size_reg.one      <= (size_exponent.length == 4'd1);
    end
    if (has(SLOT_SIZE_MANTISSA)) begin
      size_reg.mantissa <= size_mantissa.bits[31:0];
      size_reg.wide     <= is_wide(size_mantissa);
    end
    // A message begins with nothing known.
    if (begins_reg) begin
      seq_reg         <= begins_number_reg;
      action_reg      <= '0;
      action_good_reg <= 1'b1;
      bid_reg         <= 1'b0;
      ask_reg         <= 1'b0;
      empty_reg       <= 1'b0;
      id_good_reg     <= 1'b0;
      symbol_reg      <= 1'b0;
      board_reg       <= 1'b0;
      number_reg      <= '0;
      number_good_reg <= 1'b1;
      price_reg       <= '0;
      size_reg        <= '0;
    end
    if (rst) whole_reg <= 1'b0;
  end

  // ---------------------------------------------------------------- an entry as an event
  // Powers of ten from an exponent's byte: up to 10^8, which times a mantissa of 32 bits is one of 59.
  function automatic logic [26:0] ten(input logic [3:0] power);
    case (power)
      4'd0: return 27'd1;
      4'd1: return 27'd10;
      4'd2: return 27'd100;
      4'd3: return 27'd1000;
      4'd4: return 27'd10000;
      4'd5: return 27'd100000;
      4'd6: return 27'd1000000;
      4'd7: return 27'd10000000;
      default: return 27'd100000000;
    endcase
  endfunction
  // The exponent plus `up`, where that is 0 to 8; 15 otherwise.
  function automatic logic [3:0] power(input logic [6:0] exponent, input logic nullable, input logic [3:0] up);
    logic [7:0] value;
    value = {exponent[6], exponent} - 8'(nullable && !exponent[6]) + 8'(up);
    return (value <= 8'd8) ? value[3:0] : 4'd15;
  endfunction

  // Price and size are multiplied out as they come, in three clocks. Mostly both stand before the entry ends, and the
  // event leaves at once; where one has just come it leaves three clocks later, and so does one right behind it.
  logic [31:0] price_mantissa_reg, size_mantissa_reg;
  logic [26:0] price_ten_reg, size_ten_reg;
  logic [58:0] price_product_reg, size_product_reg;
  // A product in four parts, each of what one multiplier takes, and their sum.
  typedef struct packed {
    logic [28:0] high_high;
    logic [29:0] high_low;
    logic [28:0] low_high;
    logic [29:0] low_low;
  } parts_t;
  parts_t price_parts_reg, size_parts_reg;
  logic   price_part_wrong_reg, size_part_wrong_reg;
  function automatic parts_t parts(input logic [31:0] mantissa, input logic [26:0] factor);
    return '{high_high: 29'(mantissa[31:16]) * 29'(factor[26:14]), high_low: 30'(mantissa[31:16]) * 30'(factor[13:0]),
             low_high: 29'(mantissa[15:0]) * 29'(factor[26:14]), low_low: 30'(mantissa[15:0]) * 30'(factor[13:0])};
  endfunction
  function automatic logic [58:0] sum_of(input parts_t of);
    return {of.high_high, of.low_low} + {13'd0, of.high_low, 16'd0} + {16'd0, of.low_high, 14'd0};
  endfunction
  logic [2:0]  fresh_reg;                   // a part of price or size came in this clock, one ago, two ago
  logic [2:0]  late_reg, late_wrong_reg, late_sent_reg;
  event_t [2:0] late_event_reg;
  event_t      event_now;
  wire logic   later = late_reg[2];

  wire logic [3:0] price_power = power(price_reg.exponent, PRICE_NULLABLE, 4'd4);
  wire logic [3:0] size_power  = power(size_reg.exponent, SIZE_NULLABLE, 4'd0);
  wire logic is_delete = (action_reg == 2'd2);
  // What is wrong with either is known a clock after it came, and goes along with the product.
  logic      is_empty_reg, price_bad_reg, size_bad_reg, price_wrong_reg, size_wrong_reg;
  wire logic is_empty_size = size_reg.there && (size_reg.mantissa == '0) && !size_reg.wide;
  wire logic is_empty_now  = (fresh_reg != '0) ? is_empty_size : is_empty_reg;
  wire logic is_priced = !is_delete && !empty_reg && price_reg.there;
  wire logic is_sized  = is_priced && !(is_empty_now && (action_reg == 2'd1));
  wire logic is_price_bad = price_reg.wide || !price_reg.one || (price_power == 4'd15);
  wire logic is_size_bad  = !size_reg.there || is_empty_size || size_reg.wide || !size_reg.one || (size_power == 4'd15);

  wire logic is_ours   = whole_reg && symbol_reg && board_reg;
  wire logic is_sent   = is_priced && is_sized;            // with price and size
  wire logic is_wrong  = !action_good_reg || !number_good_reg || !(bid_reg || ask_reg || empty_reg)
                      || (!empty_reg && !id_good_reg);
  wire logic is_late   = (fresh_reg != '0) || (late_reg != '0);

  always_comb begin
    event_now        = '0;
    event_now.ask    = ask_reg;
    event_now.id     = id_reg;
    event_now.new_id = ID_BITS'(number_reg);
    event_now.seq    = SEQ_BITS'(seq_reg);
    event_now.kind   = EV_NONE;              // an order without a price: at the market, in an auction
    if (empty_reg) event_now.kind = EV_CLEAR;
    else if (is_delete || (is_priced && !is_sized)) event_now.kind = EV_DELETE;
    else if (is_priced) event_now.kind = (action_reg == 2'd0) ? EV_ADD : EV_REPLACE;
  end

  always_ff @(posedge clk) begin
    price_mantissa_reg <= price_reg.mantissa;
    price_ten_reg      <= ten(price_power);
    size_mantissa_reg  <= size_reg.mantissa;
    size_ten_reg       <= ten(size_power);
    is_empty_reg       <= is_empty_size;
    price_bad_reg      <= is_price_bad;
    size_bad_reg       <= is_size_bad;
    price_part_wrong_reg <= price_bad_reg;
    size_part_wrong_reg  <= size_bad_reg;
    price_wrong_reg      <= price_part_wrong_reg;
    size_wrong_reg       <= size_part_wrong_reg;
    price_parts_reg      <= parts(price_mantissa_reg, price_ten_reg);
    size_parts_reg       <= parts(size_mantissa_reg, size_ten_reg);
    price_product_reg    <= sum_of(price_parts_reg);
    size_product_reg     <= sum_of(size_parts_reg);
    fresh_reg <= {fresh_reg[1:0], has(SLOT_PRICE_EXPONENT) || has(SLOT_PRICE_MANTISSA) || has(SLOT_SIZE_EXPONENT) || has(SLOT_SIZE_MANTISSA)};
    late_reg       <= {late_reg[1:0], is_ours && is_late};
    late_event_reg <= {late_event_reg[1:0], event_now};
    late_wrong_reg <= {late_wrong_reg[1:0], is_wrong};
    late_sent_reg  <= {late_sent_reg[1:0], is_sent};
    if (rst) late_reg <= '0;
  end

  wire logic is_now   = is_ours && !is_late;
  wire logic has_both = later ? late_sent_reg[2] : is_sent;
  always_comb begin
    out = later ? late_event_reg[2] : event_now;
    if (has_both) begin
      out.price = price_product_reg[31:0];
      out.qty   = size_product_reg[31:0];
    end
  end
  assign out_valid = later || is_now;
  wire logic is_wrong_one = (later ? late_wrong_reg[2] : is_wrong)
                         || (has_both && (price_wrong_reg || size_wrong_reg || (price_product_reg[58:32] != '0)
                                          || (size_product_reg[58:32] != '0)));
  wire logic is_over_now = over_reg[1] && !(is_ours && is_late) && (late_reg == '0);
  logic [2:0] over_told_reg;               // it was said a clock before, two, and three
  always_ff @(posedge clk) over_told_reg <= rst ? '0 : {over_told_reg[1:0], is_over_now};
  wire logic is_over_later = over_reg[4] && !over_told_reg[2];
  assign end_valid = is_over_now || is_over_later;

  // An event that cannot be makes its whole message one that cannot.
  logic malformed_message_reg;
  wire logic is_malformed = malformed_message_reg || (out_valid && is_wrong_one);
  always_ff @(posedge clk) malformed_message_reg <= !rst && is_malformed && !end_valid;
  assign end_good = (is_over_now ? over_good_reg[1] : over_good_reg[4]) && !is_malformed;

endmodule

`default_nettype wire
