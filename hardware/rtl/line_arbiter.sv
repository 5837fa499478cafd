// Lines of the same feed as one stream, each message once and in sequence. A packet from before the next message
// is dropped; one that begins behind it waits for the other line, at most `cfg_patience` clocks. Then the
// stream has a gap: `gap` says so once, and from there on only the last line is listened to, into which
// software sends what is missing, until software says that the stream is whole (`resume`).
`default_nettype none

module line_arbiter
  import core_pkg::*;
#(
    parameter int LINES = 3               // the last one is software's
) (
    input  wire logic                clk,
    input  wire logic                rst,
    input  wire logic [15:0]         cfg_patience,
    input  wire logic                cfg_start,       // takes cfg_seq as the next message
    input  wire logic [SEQ_BITS-1:0] cfg_seq,
    input  wire logic                stop,            // something else is not right
    input  wire logic                resume,

    input  wire logic    [LINES-1:0] packet_valid,
    input  wire packet_t [LINES-1:0] packet,
    output logic         [LINES-1:0] packet_pop,
    input  wire event_t  [LINES-1:0] head,
    output logic         [LINES-1:0] event_pop,

    output logic                     out_valid,
    output event_t                   out,
    input  wire logic                out_ready,

    output logic                     gap,             // one clock
    output logic                     live,            // the stream is whole
    output logic [SEQ_BITS-1:0]      expected,
    output logic                     tick_duplicate
);

  logic [SEQ_BITS-1:0] expected_reg;
  logic                live_reg, busy_reg, skips_reg, told_reg;
  logic [7:0]          left_reg;
  logic [SEQ_BITS-1:0] next_reg;
  logic [15:0]         waited_reg;
  logic [LINES-1:0]    turn_reg;                       // one hot: the line under way

  logic [LINES-1:0] is_ahead, is_over, may;
  always_comb begin
    for (int i = 0; i < LINES; i++) begin
      is_ahead[i] = packet_valid[i] && (packet[i].seq > expected_reg);
      is_over[i]  = (packet[i].next <= expected_reg);
      may[i]      = packet_valid[i] && !is_ahead[i] && (live_reg || (i == LINES - 1));
    end
  end
  // The first line that has something to take.
  wire logic [LINES-1:0] choice = may & (~may + 1'b1);

  packet_t chosen;
  event_t  current;
  always_comb begin
    chosen  = '0;
    current = '0;
    for (int i = 0; i < LINES; i++) begin
      chosen  |= choice[i] ? packet[i] : '0;
      current |= turn_reg[i] ? head[i] : '0;
    end
  end

  // A change of `live` is told in the stream, between packets.
  wire logic tells  = !busy_reg && (told_reg != live_reg);
  // What an event's number says decides whether it is passed on, and not when the next one comes: that path is long.
  wire logic is_new = (current.seq >= expected_reg);
  wire logic moves  = busy_reg && (left_reg != '0) && (skips_reg || out_ready);

  always_comb begin
    out       = current;
    out_valid = busy_reg && (left_reg != '0) && !skips_reg && is_new;
    if (tells) begin
      out           = '0;
      out.kind      = EV_LIVE;
      out.printable = live_reg;
      out.seq       = expected_reg;
      out_valid     = 1'b1;
    end
    event_pop      = moves ? turn_reg : '0;
    packet_pop     = (!busy_reg && !tells) ? choice : '0;
    tick_duplicate = !busy_reg && !tells && (choice != '0) && |(choice & is_over) && (chosen.events != '0);
  end

  always_ff @(posedge clk) begin
    gap <= 1'b0;
    if (!busy_reg) begin
      if (tells) begin
        if (out_ready) told_reg <= live_reg;
      end else if (choice != '0) begin
        turn_reg   <= choice;
        left_reg   <= chosen.events;
        next_reg   <= chosen.next;
        skips_reg  <= |(choice & is_over);
        busy_reg   <= 1'b1;
        waited_reg <= '0;
      end else if (live_reg && (is_ahead != '0)) begin
        waited_reg <= waited_reg + 16'd1;
        if (waited_reg >= cfg_patience) begin
          live_reg <= 1'b0;
          gap      <= 1'b1;
        end
      end else waited_reg <= '0;
    end else begin
      if (moves) left_reg <= left_reg - 8'd1;
      if ((left_reg == '0) || (moves && (left_reg == 8'd1))) begin
        busy_reg <= 1'b0;
        if (!skips_reg) expected_reg <= next_reg;
      end
    end
    if (stop) live_reg <= 1'b0;
    if (resume) begin
      live_reg   <= 1'b1;
      waited_reg <= '0;
    end
    if (cfg_start) expected_reg <= cfg_seq;
    if (rst) begin
      expected_reg <= SEQ_BITS'(1);
      live_reg     <= 1'b1;
      told_reg     <= 1'b0;
      busy_reg     <= 1'b0;
      skips_reg    <= 1'b0;
      waited_reg   <= '0;
      turn_reg     <= '0;
      left_reg     <= '0;
      gap          <= 1'b0;
    end
  end

  assign live     = live_reg;
  assign expected = expected_reg;

endmodule

`default_nettype wire
