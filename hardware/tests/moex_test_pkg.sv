// Messages of the order log X-OLR-DEMO (examples/moex-templates.xml) as bytes.
`default_nettype none

package moex_test_pkg;
  import test_pkg::*;

  // An integer of so many bits at least: seven bits a byte, the last one marked.
  function automatic bytes_t number(input longint value);
    bytes_t b;
    b.delete();
    b.push_back(8'(value[6:0]) | 8'h80);
    for (longint rest = value >>> 7; !((rest == 0 && !b[0][6]) || (rest == -1 && b[0][6])); rest = rest >>> 7)
      b.push_front(8'(rest[6:0]));
    return b;
  endfunction

  function automatic bytes_t counted(input longint value);
    bytes_t b;
    b.delete();
    b.push_back(8'(value[6:0]) | 8'h80);
    for (longint rest = value >> 7; rest != 0; rest = rest >> 7) b.push_front(8'(rest[6:0]));
    return b;
  endfunction

  function automatic bytes_t text(input string s);
    bytes_t b;
    b.delete();
    for (int i = 0; i < s.len(); i++) b.push_back(s[i]);
    b[b.size()-1] |= 8'h80;
    return b;
  endfunction

  function automatic bytes_t null_one();
    bytes_t b;
    b.delete();
    b.push_back(8'h80);
    return b;
  endfunction

  // One that may be NULL.
  function automatic bytes_t optional(input longint value);
    return number((value >= 0) ? value + 1 : value);
  endfunction

  function automatic bytes_t message(input logic [31:0] seq, input int template_id, input int count, input bytes_t entries);
    bytes_t b;
    b.delete();
    for (int i = 0; i < 4; i++) b.push_back(seq[8*i +: 8]);
    b.push_back(8'hc0);
    b = {b, counted(template_id), counted(longint'(seq)), counted(64'd20170502101530123), counted(count), entries};
    return b;
  endfunction

  // An entry with symbol, board, action, side, price and size, and none of the rest.
  function automatic bytes_t entry(input string symbol, input string board, input int rpt, input int action,
                                   input string side, input string id, input int exponent, input longint mantissa,
                                   input int size_exponent, input longint size);
    bytes_t b;
    b.delete();
    b.push_back(8'hfe);
    b = {b, text(symbol), text(board), optional(rpt), counted(action + 1), text(side), text(id), optional(exponent),
         number(mantissa), optional(size_exponent), number(size)};
    return b;
  endfunction

  // One of the same instrument, action and side as the one before it, without price and size.
  function automatic bytes_t again(input int rpt, input string id);
    bytes_t b;
    b.delete();
    b.push_back(8'h80);
    b = {b, optional(rpt), text(id)};
    return b;
  endfunction

  // A deletion whose price and size are NULL.
  function automatic bytes_t gone(input int rpt, input string side, input string id);
    bytes_t b;
    b.delete();
    b.push_back(8'hfe);
    b = {b, text("USD000UTSTOM"), text("CETS"), optional(rpt), counted(3), text(side), text(id), null_one(), null_one()};
    return b;
  endfunction

  function automatic bytes_t added(input int rpt, input string side, input string id, input longint price, input longint size);
    return entry("USD000UTSTOM", "CETS", rpt, 0, side, id, -4, price, 0, size);
  endfunction

endpackage

`default_nettype wire
