// One line of MOEX's order log: frames in, checked packets with their events out. A datagram is a message of FAST
// behind a number of four bytes, least first (Market Data Multicast FIX/FAST Platform, 4.2), and that number is the
// packet's. A packet that fails a check leaves no trace but a count, so that the other line's copy of it can be
// taken. The decoder lags behind the frame: its verdict waits for the decoder's.
`default_nettype none

module feed_line
  import core_pkg::*;
  import token_pkg::*;
#(
    parameter int EVENT_ADDRESS = 7,   // 128 events of one instrument wait at most
    parameter int PACKET_ADDRESS = 6,
    parameter int WORD_ADDRESS = 7
) (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic [31:0] cfg_address,
    input  wire logic [15:0] cfg_port,
    input  wire logic [79:0] cfg_session,    // these three are ITCH's: nothing here
    input  wire logic [15:0] cfg_locate,
    input  wire logic [7:0]  cfg_market,

    input  wire logic [63:0] rx_data,
    input  wire logic [7:0]  rx_keep,
    input  wire logic        rx_valid,
    input  wire logic        rx_last,
    input  wire logic        rx_error,

    output logic             packet_valid,
    output packet_t          packet,
    input  wire logic        packet_pop,
    output event_t           head,          // the first event of `packet`, where it has any
    input  wire logic        event_pop,

    output logic             tick_good,     // one clock for each packet that was kept,
    output logic             tick_bad,      // that was ours and not right,
    output logic             tick_fcs,      // whose frame was damaged,
    output logic             tick_foreign,  // never: there are no sessions,
    output logic             tick_full      // that there was no room for
);

  logic [3:0]  word;
  logic [15:0] payload_end, payload_left;
  logic        ours, frame_end, end_ours, end_good, end_fcs;
  udp_rx udp (
      .clk, .rst, .cfg_address, .cfg_port, .rx_data, .rx_keep, .rx_valid, .rx_last, .rx_error,
      .word, .ours, .payload_end, .payload_left, .end_valid(frame_end), .end_ours, .end_good, .end_fcs
  );

  logic        word_valid, word_first, word_last, word_pop, taken, full;
  logic [63:0] word_data;
  logic [7:0]  word_keep;
  logic [31:0] number;
  fast_words #(.ADDRESS(WORD_ADDRESS)) words (
      .clk, .rst, .rx_data, .rx_valid, .rx_last, .word, .ours, .payload_left, .taken, .full, .number,
      .out_valid(word_valid), .out_data(word_data), .out_keep(word_keep), .out_first(word_first), .out_last(word_last),
      .out_pop(word_pop)
  );

  logic        pair_valid, a_valid, b_valid, pair_last, pair_broken, take_a, take_all;
  logic [31:0] pair_number;
  token_t      first, second;
  fast_tokens tokens (
      .clk, .rst, .in_valid(word_valid), .in_data(word_data), .in_keep(word_keep), .in_first(word_first),
      .in_last(word_last), .in_pop(word_pop), .out_valid(pair_valid), .out_a_valid(a_valid), .out_a(first), .out_b_valid(b_valid),
      .out_b(second), .out_number(pair_number), .out_last(pair_last), .out_broken(pair_broken), .take_a, .take_all
  );

  logic   decoded_valid, decoded_end, decoded_good;
  event_t decoded;
  fast_entries entries (
      .clk, .rst, .in_valid(pair_valid), .in_a_valid(a_valid), .in_a(first), .in_b_valid(b_valid), .in_b(second),
      .in_number(pair_number), .in_last(pair_last), .in_broken(pair_broken), .take_a, .take_all,
      .out_valid(decoded_valid), .out(decoded), .end_valid(decoded_end), .end_good(decoded_good)
  );

  // ---------------------------------------------------------------- verdicts of frames, which the decoder follows
  typedef struct packed {
    logic        good;
    logic        fcs;
    logic        full;
    logic [31:0] number;
  } verdict_t;
  (* ram_style = "distributed" *) verdict_t verdicts [1 << WORD_ADDRESS];
  logic [WORD_ADDRESS:0] write_reg, read_reg;
  wire logic waits = (write_reg != read_reg);
  verdict_t verdict;
  assign verdict = verdicts[read_reg[WORD_ADDRESS-1:0]];

  logic done_reg, done_good_reg, events_full, packets_full;
  logic [7:0] events_reg;
  wire logic is_done = decoded_end || done_reg;
  wire logic ends    = is_done && waits;
  wire logic is_read = decoded_end ? decoded_good : done_good_reg;
  wire logic is_good = ends && verdict.good && is_read && !verdict.full;
  wire logic keeps   = is_good && !events_full && !packets_full;
  wire logic drops   = ends && !keeps;
  wire logic [7:0] events = events_reg + {7'd0, decoded_valid};

  always_ff @(posedge clk) begin
    if (frame_end && taken) begin
      verdicts[write_reg[WORD_ADDRESS-1:0]] <= '{good: end_good, fcs: end_fcs, full: full, number: number};
      write_reg <= write_reg + 1'b1;
    end
    if (ends) read_reg <= read_reg + 1'b1;
    done_reg <= is_done && !ends;
    if (decoded_end) done_good_reg <= decoded_good;
    events_reg <= ends ? '0 : events;
    if (rst) begin
      write_reg  <= '0;
      read_reg   <= '0;
      done_reg   <= 1'b0;
      events_reg <= '0;
    end
  end

  logic head_valid;
  packet_fifo #(.WIDTH($bits(event_t)), .ADDRESS(EVENT_ADDRESS)) events_waiting (
      .clk, .rst, .in_valid(decoded_valid), .in(decoded), .commit(keeps), .rollback(drops), .overflow(events_full),
      .out_valid(head_valid), .out(head), .pop(event_pop)
  );

  packet_t ended;
  assign ended = '{seq: SEQ_BITS'(verdict.number), next: SEQ_BITS'(verdict.number) + 1'b1, events: events};
  packet_fifo #(.WIDTH($bits(packet_t)), .ADDRESS(PACKET_ADDRESS)) packets_waiting (
      .clk, .rst, .in_valid(is_good), .in(ended), .commit(keeps), .rollback(drops), .overflow(packets_full),
      .out_valid(packet_valid), .out(packet), .pop(packet_pop)
  );

  // A frame of which nothing could be taken is counted when it ends.
  wire logic lost = frame_end && end_ours && !taken;
  assign tick_good    = keeps;
  assign tick_bad     = ends && !verdict.fcs && !verdict.full && (!verdict.good || !is_read);
  assign tick_fcs     = frame_end && end_fcs;
  assign tick_foreign = 1'b0;
  assign tick_full    = (ends && !verdict.fcs && (verdict.full || (is_good && !keeps))) || lost;

  wire logic unused = &{1'b0, cfg_session, cfg_locate, cfg_market, payload_end, head_valid, unused};

endmodule

`default_nettype wire
