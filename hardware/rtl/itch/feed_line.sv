// One line of ITCH: frames in, checked packets with their events out. A packet that fails a check leaves no
// trace but a count, so that the other line's copy of it can be taken.
`default_nettype none

module feed_line
  import core_pkg::*;
#(
    parameter int EVENT_ADDRESS = 7,   // 128 events of one instrument wait at most; a packet has 93 messages at most
    parameter int PACKET_ADDRESS = 6
) (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic [31:0] cfg_address,
    input  wire logic [15:0] cfg_port,
    input  wire logic [79:0] cfg_session,
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
    output logic             tick_foreign,  // that was of another session,
    output logic             tick_full      // that there was no room for
);

  logic [3:0]  word;
  logic [15:0] payload_end, payload_left;
  logic        ours, end_valid, end_ours, end_good, end_fcs;

  udp_rx udp (
      .clk, .rst, .cfg_address, .cfg_port, .rx_data, .rx_keep, .rx_valid, .rx_last, .rx_error,
      .word, .ours, .payload_end, .payload_left, .end_valid, .end_ours, .end_good, .end_fcs
  );

  logic                message_valid;
  logic [55:0][7:0]    message;
  logic [7:0]          soon_kind, soon_length;
  logic [SEQ_BITS-1:0] message_seq, packet_seq, packet_next;
  logic                packet_good, packet_bad, packet_foreign, packet_void;

  mold_rx mold (
      .clk, .rst, .cfg_session, .rx_data, .rx_valid, .rx_last, .word, .payload_end, .end_valid, .end_ours, .end_good,
      .soon_kind, .soon_length, .message_valid, .message, .message_seq,
      .packet_good, .packet_bad, .packet_foreign, .packet_void, .packet_seq, .packet_next
  );

  logic   decoded_valid, malformed;
  event_t decoded;

  itch_decode decode (
      .clk, .cfg_locate, .cfg_market, .soon_kind, .soon_length, .in_valid(message_valid), .in_message(message),
      .in_seq(message_seq), .out_valid(decoded_valid), .out_malformed(malformed), .out(decoded)
  );

  // A packet's verdict may come in the clock of its last message.
  logic [7:0] events_reg;
  logic       malformed_reg;
  wire logic [7:0] events = events_reg + {7'd0, decoded_valid};
  wire logic  is_malformed = malformed_reg || malformed;
  logic       events_full, packets_full;
  wire logic  keeps = packet_good && !is_malformed && !events_full && !packets_full;
  wire logic  drops = packet_void || (packet_good && !keeps);

  always_ff @(posedge clk) begin
    events_reg    <= (keeps || drops) ? '0 : events;
    malformed_reg <= (keeps || drops) ? 1'b0 : is_malformed;
    if (rst) begin
      events_reg    <= '0;
      malformed_reg <= 1'b0;
    end
  end

  logic head_valid;
  packet_fifo #(.WIDTH($bits(event_t)), .ADDRESS(EVENT_ADDRESS)) events_waiting (
      .clk, .rst, .in_valid(decoded_valid), .in(decoded), .commit(keeps), .rollback(drops), .overflow(events_full),
      .out_valid(head_valid), .out(head), .pop(event_pop)
  );

  packet_t ended;
  assign ended = '{seq: packet_seq, next: packet_next, events: events};
  packet_fifo #(.WIDTH($bits(packet_t)), .ADDRESS(PACKET_ADDRESS)) packets_waiting (
      .clk, .rst, .in_valid(packet_good), .in(ended), .commit(keeps), .rollback(drops), .overflow(packets_full),
      .out_valid(packet_valid), .out(packet), .pop(packet_pop)
  );

  assign tick_good    = keeps;
  assign tick_bad     = (packet_bad && !end_fcs) || (packet_good && is_malformed);
  assign tick_fcs     = end_valid && end_fcs;
  assign tick_foreign = packet_foreign;
  assign tick_full    = packet_good && !is_malformed && !keeps;

  wire logic unused = &{1'b0, ours, payload_left, head_valid, unused};

endmodule

`default_nettype wire
