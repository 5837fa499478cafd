// A token of FAST: a run of bytes with seven bits of it each.
`default_nettype none

package token_pkg;

  typedef struct packed {
    logic [83:0] bits;       // the last byte's in 6:0; of more than twelve bytes the last twelve
    logic [3:0]  length;     // bytes; 15: so many or more
    logic        negative;   // bit 6 of the first byte
    logic        is_null;    // the byte 80 alone
  } token_t;

endpackage

`default_nettype wire
