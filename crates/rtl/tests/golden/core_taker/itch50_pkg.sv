// TotalView-ITCH 5.0: types, sizes and places of fields, written from the tables of tickwire-wire-nasdaq.
`default_nettype none

package itch50_pkg;

  localparam logic [7:0] ADD_ORDER = "A";
  localparam logic [7:0] ADD_ORDER_SIZE = 8'd36;
  localparam logic [7:0] ADD_ORDER_MPID = "F";
  localparam logic [7:0] ADD_ORDER_MPID_SIZE = 8'd40;
  localparam logic [7:0] ORDER_EXECUTED = "E";
  localparam logic [7:0] ORDER_EXECUTED_SIZE = 8'd31;
  localparam logic [7:0] ORDER_EXECUTED_WITH_PRICE = "C";
  localparam logic [7:0] ORDER_EXECUTED_WITH_PRICE_SIZE = 8'd36;
  localparam logic [7:0] ORDER_CANCEL = "X";
  localparam logic [7:0] ORDER_CANCEL_SIZE = 8'd23;
  localparam logic [7:0] ORDER_DELETE = "D";
  localparam logic [7:0] ORDER_DELETE_SIZE = 8'd19;
  localparam logic [7:0] ORDER_REPLACE = "U";
  localparam logic [7:0] ORDER_REPLACE_SIZE = 8'd35;
  localparam logic [7:0] TRADE = "P";
  localparam logic [7:0] TRADE_SIZE = 8'd44;
  localparam logic [7:0] CROSS_TRADE = "Q";
  localparam logic [7:0] CROSS_TRADE_SIZE = 8'd40;
  localparam logic [7:0] STOCK_TRADING_ACTION = "H";
  localparam logic [7:0] STOCK_TRADING_ACTION_SIZE = 8'd25;
  localparam logic [7:0] OPERATIONAL_HALT = "h";
  localparam logic [7:0] OPERATIONAL_HALT_SIZE = 8'd21;
  localparam logic [7:0] SYSTEM_EVENT = "S";
  localparam logic [7:0] SYSTEM_EVENT_SIZE = 8'd12;

  localparam int LOCATE_AT = 1;
  localparam int ORDER_REF_AT = 11;
  localparam int ADD_ORDER_SIDE_AT = 19;
  localparam int ADD_ORDER_SHARES_AT = 20;
  localparam int ADD_ORDER_PRICE_AT = 32;
  localparam int ORDER_EXECUTED_SHARES_AT = 19;
  localparam int ORDER_EXECUTED_WITH_PRICE_PRINTABLE_AT = 31;
  localparam int ORDER_EXECUTED_WITH_PRICE_PRICE_AT = 32;
  localparam int ORDER_CANCEL_SHARES_AT = 19;
  localparam int ORDER_REPLACE_NEW_REF_AT = 19;
  localparam int ORDER_REPLACE_SHARES_AT = 27;
  localparam int ORDER_REPLACE_PRICE_AT = 31;
  localparam int TRADE_SHARES_AT = 20;
  localparam int TRADE_PRICE_AT = 32;
  localparam int CROSS_TRADE_SHARES_AT = 11;
  localparam int CROSS_TRADE_PRICE_AT = 27;
  localparam int STOCK_TRADING_ACTION_STATE_AT = 19;
  localparam int OPERATIONAL_HALT_MARKET_AT = 19;
  localparam int OPERATIONAL_HALT_ACTION_AT = 20;
  localparam int SYSTEM_EVENT_EVENT_AT = 11;

endpackage

`default_nettype wire
