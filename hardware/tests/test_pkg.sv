// What the unit tests share: counting, random numbers from a seed, frames as lists of bytes.
`default_nettype none

package test_pkg;

  typedef byte unsigned bytes_t [$];

  function automatic logic [15:0] sum16(input bytes_t of, input int from, input int to);
    logic [31:0] sum = 0;
    for (int i = from; i < to; i += 2) sum += {16'd0, of[i], (i + 1 < to) ? of[i+1] : 8'd0};
    while (sum > 32'hffff) sum = (sum & 32'hffff) + (sum >> 16);
    return sum[15:0];
  endfunction

  // A datagram as an Ethernet frame to 239.1.2.3.
  function automatic bytes_t framed(input bytes_t datagram, input logic [15:0] port);
    bytes_t f;
    logic [15:0] total, sum, udp;
    f.delete();  // some simulators keep a function's queue from its last call
    for (int i = 0; i < 12; i++) f.push_back(8'(i + 1));
    f.push_back(8'h08); f.push_back(8'h00);
    total = 16'(28 + datagram.size());
    udp   = 16'(8 + datagram.size());
    f.push_back(8'h45); f.push_back(8'h00); f.push_back(total[15:8]); f.push_back(total[7:0]);
    f.push_back(8'h12); f.push_back(8'h34); f.push_back(8'h40); f.push_back(8'h00);
    f.push_back(8'd16); f.push_back(8'd17); f.push_back(8'd0); f.push_back(8'd0);
    f.push_back(8'd10); f.push_back(8'd0); f.push_back(8'd0); f.push_back(8'd9);
    f.push_back(8'd239); f.push_back(8'd1); f.push_back(8'd2); f.push_back(8'd3);
    sum = ~sum16(f, 14, 34);
    f[24] = sum[15:8]; f[25] = sum[7:0];
    f.push_back(8'h9c); f.push_back(8'h40); f.push_back(port[15:8]); f.push_back(port[7:0]);
    f.push_back(udp[15:8]); f.push_back(udp[7:0]); f.push_back(8'd0); f.push_back(8'd0);
    for (int i = 0; i < datagram.size(); i++) f.push_back(datagram[i]);
    while (f.size() < 60) f.push_back(8'd0);
    return f;
  endfunction

  function automatic bytes_t big(input logic [63:0] value, input int n);
    bytes_t b;
    b.delete();
    for (int i = n - 1; i >= 0; i--) b.push_back(value[8*i +: 8]);
    return b;
  endfunction

  // The header of a MoldUDP64 packet of the session "SESSION 01".
  function automatic bytes_t mold(input logic [63:0] seq, input int count);
    bytes_t b;
    string session = "SESSION 01";
    b.delete();
    for (int i = 0; i < 10; i++) b.push_back(session[i]);
    b = {b, big(seq, 8), big(64'(count), 2)};
    return b;
  endfunction

  function automatic bytes_t block(input bytes_t message);
    return {big(64'(message.size()), 2), message};
  endfunction

  // The start of an ITCH message.
  function automatic bytes_t itch(input byte unsigned kind, input logic [15:0] locate);
    bytes_t b;
    b.delete();
    b.push_back(kind);
    b = {b, big(64'(locate), 2), big(64'd7, 2), big(64'd99, 6)};
    return b;
  endfunction

  function automatic bytes_t itch_add(input logic [15:0] locate, input logic [63:0] id, input logic ask,
                                      input logic [31:0] qty, input logic [31:0] price);
    bytes_t b = itch("A", locate);
    b = {b, big(id, 8)};
    b.push_back(ask ? "S" : "B");
    b = {b, big(64'(qty), 4), big(64'h2020202020202020, 8), big(64'(price), 4)};
    return b;
  endfunction

  function automatic bytes_t itch_delete(input logic [15:0] locate, input logic [63:0] id);
    bytes_t b = itch("D", locate);
    b = {b, big(id, 8)};
    return b;
  endfunction

endpackage

`default_nettype wire
