// What the modules of the core say to each other. Prices are unsigned, in 1e-4 units of currency, as ITCH has
// them; quantities in shares.
`default_nettype none

package core_pkg;

  // Sequence numbers are 64 bits on the wire; the core takes 40 (a Nasdaq day uses 29) and refuses more.
  localparam int SEQ_BITS = 40;

  // Order numbers: of ITCH binary (2^32 is not reached in a day), of MOEX twelve decimal digits, four bits each.
  localparam int ID_BITS = 48;

  typedef enum logic [3:0] {
    EV_ADD,
    EV_EXECUTE,
    EV_REDUCE,
    EV_DELETE,
    EV_REPLACE,
    EV_TRADE,
    EV_STATUS,
    EV_LIVE,   // from the arbiter: the stream is whole, or is not any more
    EV_CLEAR,  // the instrument has no orders
    EV_NONE    // nothing for a book, but it has a number
  } kind_t;

  typedef struct packed {
    kind_t               kind;
    logic                ask;        // ADD: side
    logic                printable;  // EXECUTE: counts as a trade. STATUS: trades. LIVE: whole
    logic                priced;     // EXECUTE: at `price`. STATUS: of the whole feed
    logic [ID_BITS-1:0]  id;
    logic [ID_BITS-1:0]  new_id;     // REPLACE. Of a feed that numbers each instrument's events: that number, as far
                                     // as event_numbers, which puts `id` here
    logic [31:0]         qty;
    logic [31:0]         price;
    logic [SEQ_BITS-1:0] seq;
  } event_t;

  // A packet that passed all checks; its events lie in the line's event FIFO.
  typedef struct packed {
    logic [SEQ_BITS-1:0] seq;        // of its first message; of a heartbeat the next to come
    logic [SEQ_BITS-1:0] next;       // behind its last message
    logic [7:0]          events;
  } packet_t;

  typedef struct packed {
    logic                valid;
    logic [31:0]         price;
    logic [39:0]         qty;        // all orders of the level
  } level_t;

  typedef struct packed {
    logic                ask;        // sell
    logic [31:0]         qty;
    logic [31:0]         price;
    logic [SEQ_BITS-1:0] seq;        // of the message that caused it
  } order_t;

  // Why the book is not right, in the order of bits of the register FAULTS.
  typedef enum logic [3:0] {
    FAULT_GAP,          // a message is missing on both lines
    FAULT_UNKNOWN,      // execution, reduction, deletion or replacement of an order that is not there
    FAULT_DUPLICATE,    // an added order is there already
    FAULT_EXCESS,       // more executed or cancelled than is there, or nothing
    FAULT_STORE,        // no room for an order
    FAULT_PRICE,        // not on the tick, or better than the window of prices
    FAULT_BLIND,        // the best of a side lies outside the window of prices
    FAULT_FCS,          // a frame with a bad checksum came, and the core is told to stop at one
    FAULT_STRAY,        // an order wanted a place that the queue behind the strategy did not have
    FAULT_NUMBER        // the instrument's own numbers have a hole
  } fault_t;
  localparam int FAULTS = 10;

  // Why an order was not sent, in the order of the gate's checks.
  typedef enum logic [3:0] {
    BLOCK_DISARMED,
    BLOCK_STOPPED,
    BLOCK_TRADING,
    BLOCK_SIZE,
    BLOCK_REFERENCE,
    BLOCK_COLLAR,
    BLOCK_DUPLICATE,
    BLOCK_POSITION,
    BLOCK_TOKENS,
    BLOCK_LEFT
  } block_t;
  localparam int BLOCKS = 10;

endpackage

`default_nettype wire
