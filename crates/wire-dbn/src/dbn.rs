//! Databento Binary Encoding (DBN), versions 1 to 3: market by order, trades, market by price, instrument
//! definitions.
//!
//! A file begins with [`Metadata`]: which data set and schema, and which symbol had which number when.
//! Records follow, each with its own length, so that a type which is not known here is passed over whole.
//! Everything is little-endian; prices are in 1e-9, times in nanoseconds since the Unix epoch. Source: "DBN
//! encoding" of Databento's documentation, versions 1, 2 and 3.
//!
//! | record | type | here |
//! |---|---|---|
//! | market by order | `A0` | [`Mbo`] |
//! | trades | `00` | [`Trade`] |
//! | market by price, 1 and 10 levels | `01` `0A` | [`Mbp1`] [`Mbp10`] |
//! | definition | `13` | [`DefinitionV1`] [`DefinitionV2`] [`Definition`] |
//! | all others | | [`Record::Other`]: its header |

use crate::layout::Pod;
use crate::layout::le::{I16, I32, I64, U16, U32, U64};
use crate::layout::{Alpha, Char, Field, FieldValue, Fields, prefix, trim};
use crate::{Malformed, wire_struct};
use tickwire_market::{Nanos, Price, Side};

/// What a file begins with.
pub const MAGIC: [u8; 3] = *b"DBN";
/// The newest version known here.
pub const NEWEST_VERSION: u8 = 3;

tickwire_wire_core::wire_layout! {
    /// A price in 1e-9; the largest number is none.
    #[derive(PartialEq, Eq, Debug)]
    pub struct Px(pub I64);
}

impl Px {
    /// No price.
    pub const NONE: Px = Px(I64::new(i64::MAX));

    /// A price.
    pub fn new(price: Price) -> Px {
        Px(price.raw().into())
    }

    /// The price, if there is one.
    pub fn get(self) -> Option<Price> {
        Some(self.0.get())
            .filter(|raw| *raw != i64::MAX)
            .map(Price::from_raw)
    }
}

impl Field for Px {
    const BLANK: Px = Px(I64::ZERO);

    fn value(&self) -> FieldValue<'_> {
        match self.get() {
            Some(price) => FieldValue::Decimal {
                mantissa: price.raw().into(),
                decimals: 9,
            },
            None => FieldValue::Null,
        }
    }
}

tickwire_wire_core::wire_layout! {
    /// A time in nanoseconds since the Unix epoch; the largest number is none.
    #[derive(PartialEq, Eq, Debug)]
    pub struct Stamp(pub U64);
}

impl Stamp {
    /// A time.
    pub fn new(time: Nanos) -> Stamp {
        Stamp(time.0.into())
    }

    /// The time, if there is one.
    pub fn get(self) -> Option<Nanos> {
        Some(self.0.get()).filter(|time| *time != u64::MAX).map(Nanos)
    }
}

impl Field for Stamp {
    const BLANK: Stamp = Stamp(U64::ZERO);

    fn value(&self) -> FieldValue<'_> {
        match self.get() {
            Some(time) => FieldValue::Unsigned(time.0),
            None => FieldValue::Null,
        }
    }
}

wire_struct! {
    /// Before every record. DBN 3, "RecordHeader".
    pub struct RecordHeader = "RecordHeader", 16 {
        0 => length: u8, "length";
        1 => rtype: u8, "rtype";
        2 => publisher_id: U16, "publisher_id";
        4 => instrument_id: U32, "instrument_id";
        8 => ts_event: Stamp, "ts_event";
    }
}

wire_struct! {
    /// An order event: market by order. DBN 3, "MboMsg".
    pub struct Mbo = "MboMsg", 56 {
        0 => length: u8, "length";
        1 => rtype: u8, "rtype";
        2 => publisher_id: U16, "publisher_id";
        4 => instrument_id: U32, "instrument_id";
        8 => ts_event: Stamp, "ts_event";
        16 => order_id: U64, "order_id";
        24 => price: Px, "price";
        32 => size: U32, "size";
        36 => flags: u8, "flags";
        37 => channel_id: u8, "channel_id";
        38 => action: Char, "action";
        39 => side: Char, "side";
        40 => ts_recv: Stamp, "ts_recv";
        48 => ts_in_delta: I32, "ts_in_delta";
        52 => sequence: U32, "sequence";
    }
}

wire_struct! {
    /// A trade. DBN 3, "TradeMsg".
    pub struct Trade = "TradeMsg", 48 {
        0 => length: u8, "length";
        1 => rtype: u8, "rtype";
        2 => publisher_id: U16, "publisher_id";
        4 => instrument_id: U32, "instrument_id";
        8 => ts_event: Stamp, "ts_event";
        16 => price: Px, "price";
        24 => size: U32, "size";
        28 => action: Char, "action";
        29 => side: Char, "side";
        30 => flags: u8, "flags";
        31 => depth: u8, "depth";
        32 => ts_recv: Stamp, "ts_recv";
        40 => ts_in_delta: I32, "ts_in_delta";
        44 => sequence: U32, "sequence";
    }
}

wire_struct! {
    /// An event with the best bid and offer after it. DBN 3, "Mbp1Msg".
    pub struct Mbp1 = "Mbp1Msg", 80 {
        0 => length: u8, "length";
        1 => rtype: u8, "rtype";
        2 => publisher_id: U16, "publisher_id";
        4 => instrument_id: U32, "instrument_id";
        8 => ts_event: Stamp, "ts_event";
        16 => price: Px, "price";
        24 => size: U32, "size";
        28 => action: Char, "action";
        29 => side: Char, "side";
        30 => flags: u8, "flags";
        31 => depth: u8, "depth";
        32 => ts_recv: Stamp, "ts_recv";
        40 => ts_in_delta: I32, "ts_in_delta";
        44 => sequence: U32, "sequence";
        48 => bid_px_00: Px, "bid_px_00";
        56 => ask_px_00: Px, "ask_px_00";
        64 => bid_sz_00: U32, "bid_sz_00";
        68 => ask_sz_00: U32, "ask_sz_00";
        72 => bid_ct_00: U32, "bid_ct_00";
        76 => ask_ct_00: U32, "ask_ct_00";
    }
}

wire_struct! {
    /// An event with ten levels of each side after it. DBN 3, "Mbp10Msg".
    pub struct Mbp10 = "Mbp10Msg", 368 {
        0 => length: u8, "length";
        1 => rtype: u8, "rtype";
        2 => publisher_id: U16, "publisher_id";
        4 => instrument_id: U32, "instrument_id";
        8 => ts_event: Stamp, "ts_event";
        16 => price: Px, "price";
        24 => size: U32, "size";
        28 => action: Char, "action";
        29 => side: Char, "side";
        30 => flags: u8, "flags";
        31 => depth: u8, "depth";
        32 => ts_recv: Stamp, "ts_recv";
        40 => ts_in_delta: I32, "ts_in_delta";
        44 => sequence: U32, "sequence";
        48 => bid_px_00: Px, "bid_px_00";
        56 => ask_px_00: Px, "ask_px_00";
        64 => bid_sz_00: U32, "bid_sz_00";
        68 => ask_sz_00: U32, "ask_sz_00";
        72 => bid_ct_00: U32, "bid_ct_00";
        76 => ask_ct_00: U32, "ask_ct_00";
        80 => bid_px_01: Px, "bid_px_01";
        88 => ask_px_01: Px, "ask_px_01";
        96 => bid_sz_01: U32, "bid_sz_01";
        100 => ask_sz_01: U32, "ask_sz_01";
        104 => bid_ct_01: U32, "bid_ct_01";
        108 => ask_ct_01: U32, "ask_ct_01";
        112 => bid_px_02: Px, "bid_px_02";
        120 => ask_px_02: Px, "ask_px_02";
        128 => bid_sz_02: U32, "bid_sz_02";
        132 => ask_sz_02: U32, "ask_sz_02";
        136 => bid_ct_02: U32, "bid_ct_02";
        140 => ask_ct_02: U32, "ask_ct_02";
        144 => bid_px_03: Px, "bid_px_03";
        152 => ask_px_03: Px, "ask_px_03";
        160 => bid_sz_03: U32, "bid_sz_03";
        164 => ask_sz_03: U32, "ask_sz_03";
        168 => bid_ct_03: U32, "bid_ct_03";
        172 => ask_ct_03: U32, "ask_ct_03";
        176 => bid_px_04: Px, "bid_px_04";
        184 => ask_px_04: Px, "ask_px_04";
        192 => bid_sz_04: U32, "bid_sz_04";
        196 => ask_sz_04: U32, "ask_sz_04";
        200 => bid_ct_04: U32, "bid_ct_04";
        204 => ask_ct_04: U32, "ask_ct_04";
        208 => bid_px_05: Px, "bid_px_05";
        216 => ask_px_05: Px, "ask_px_05";
        224 => bid_sz_05: U32, "bid_sz_05";
        228 => ask_sz_05: U32, "ask_sz_05";
        232 => bid_ct_05: U32, "bid_ct_05";
        236 => ask_ct_05: U32, "ask_ct_05";
        240 => bid_px_06: Px, "bid_px_06";
        248 => ask_px_06: Px, "ask_px_06";
        256 => bid_sz_06: U32, "bid_sz_06";
        260 => ask_sz_06: U32, "ask_sz_06";
        264 => bid_ct_06: U32, "bid_ct_06";
        268 => ask_ct_06: U32, "ask_ct_06";
        272 => bid_px_07: Px, "bid_px_07";
        280 => ask_px_07: Px, "ask_px_07";
        288 => bid_sz_07: U32, "bid_sz_07";
        292 => ask_sz_07: U32, "ask_sz_07";
        296 => bid_ct_07: U32, "bid_ct_07";
        300 => ask_ct_07: U32, "ask_ct_07";
        304 => bid_px_08: Px, "bid_px_08";
        312 => ask_px_08: Px, "ask_px_08";
        320 => bid_sz_08: U32, "bid_sz_08";
        324 => ask_sz_08: U32, "ask_sz_08";
        328 => bid_ct_08: U32, "bid_ct_08";
        332 => ask_ct_08: U32, "ask_ct_08";
        336 => bid_px_09: Px, "bid_px_09";
        344 => ask_px_09: Px, "ask_px_09";
        352 => bid_sz_09: U32, "bid_sz_09";
        356 => ask_sz_09: U32, "ask_sz_09";
        360 => bid_ct_09: U32, "bid_ct_09";
        364 => ask_ct_09: U32, "ask_ct_09";
    }
}

wire_struct! {
    /// A definition of version 1. DBN 1, "InstrumentDefMsg".
    pub struct DefinitionV1 = "InstrumentDefMsgV1", 360 {
        0 => length: u8, "length";
        1 => rtype: u8, "rtype";
        2 => publisher_id: U16, "publisher_id";
        4 => instrument_id: U32, "instrument_id";
        8 => ts_event: Stamp, "ts_event";
        16 => ts_recv: Stamp, "ts_recv";
        24 => min_price_increment: Px, "min_price_increment";
        32 => display_factor: Px, "display_factor";
        40 => expiration: Stamp, "expiration";
        48 => activation: Stamp, "activation";
        56 => high_limit_price: Px, "high_limit_price";
        64 => low_limit_price: Px, "low_limit_price";
        72 => max_price_variation: Px, "max_price_variation";
        80 => trading_reference_price: Px, "trading_reference_price";
        88 => unit_of_measure_qty: Px, "unit_of_measure_qty";
        96 => min_price_increment_amount: Px, "min_price_increment_amount";
        104 => price_ratio: Px, "price_ratio";
        112 => inst_attrib_value: I32, "inst_attrib_value";
        116 => underlying_id: U32, "underlying_id";
        120 => raw_instrument_id: U32, "raw_instrument_id";
        124 => market_depth_implied: I32, "market_depth_implied";
        128 => market_depth: I32, "market_depth";
        132 => market_segment_id: U32, "market_segment_id";
        136 => max_trade_vol: U32, "max_trade_vol";
        140 => min_lot_size: I32, "min_lot_size";
        144 => min_lot_size_block: I32, "min_lot_size_block";
        148 => min_lot_size_round_lot: I32, "min_lot_size_round_lot";
        152 => min_trade_vol: U32, "min_trade_vol";
        156 => reserved2: [u8;4], "reserved2";
        160 => contract_multiplier: I32, "contract_multiplier";
        164 => decay_quantity: I32, "decay_quantity";
        168 => original_contract_size: I32, "original_contract_size";
        172 => reserved3: [u8;4], "reserved3";
        176 => trading_reference_date: U16, "trading_reference_date";
        178 => appl_id: I16, "appl_id";
        180 => maturity_year: U16, "maturity_year";
        182 => decay_start_date: U16, "decay_start_date";
        184 => channel_id: U16, "channel_id";
        186 => currency: Alpha<4>, "currency";
        190 => settl_currency: Alpha<4>, "settl_currency";
        194 => secsubtype: Alpha<6>, "secsubtype";
        200 => raw_symbol: Alpha<22>, "raw_symbol";
        222 => group: Alpha<21>, "group";
        243 => exchange: Alpha<5>, "exchange";
        248 => asset: Alpha<7>, "asset";
        255 => cfi: Alpha<7>, "cfi";
        262 => security_type: Alpha<7>, "security_type";
        269 => unit_of_measure: Alpha<31>, "unit_of_measure";
        300 => underlying: Alpha<21>, "underlying";
        321 => strike_price_currency: Alpha<4>, "strike_price_currency";
        325 => instrument_class: Char, "instrument_class";
        326 => reserved4: [u8;2], "reserved4";
        328 => strike_price: Px, "strike_price";
        336 => reserved5: [u8;6], "reserved5";
        342 => match_algorithm: Char, "match_algorithm";
        343 => md_security_trading_status: u8, "md_security_trading_status";
        344 => main_fraction: u8, "main_fraction";
        345 => price_display_format: u8, "price_display_format";
        346 => settl_price_type: u8, "settl_price_type";
        347 => sub_fraction: u8, "sub_fraction";
        348 => underlying_product: u8, "underlying_product";
        349 => security_update_action: Char, "security_update_action";
        350 => maturity_month: u8, "maturity_month";
        351 => maturity_day: u8, "maturity_day";
        352 => maturity_week: u8, "maturity_week";
        353 => user_defined_instrument: Char, "user_defined_instrument";
        354 => contract_multiplier_unit: i8, "contract_multiplier_unit";
        355 => flow_schedule_type: i8, "flow_schedule_type";
        356 => tick_rule: u8, "tick_rule";
        357 => reserved6: [u8;3], "reserved6";
    }
}

wire_struct! {
    /// A definition of version 2. DBN 2, "InstrumentDefMsg".
    pub struct DefinitionV2 = "InstrumentDefMsgV2", 400 {
        0 => length: u8, "length";
        1 => rtype: u8, "rtype";
        2 => publisher_id: U16, "publisher_id";
        4 => instrument_id: U32, "instrument_id";
        8 => ts_event: Stamp, "ts_event";
        16 => ts_recv: Stamp, "ts_recv";
        24 => min_price_increment: Px, "min_price_increment";
        32 => display_factor: Px, "display_factor";
        40 => expiration: Stamp, "expiration";
        48 => activation: Stamp, "activation";
        56 => high_limit_price: Px, "high_limit_price";
        64 => low_limit_price: Px, "low_limit_price";
        72 => max_price_variation: Px, "max_price_variation";
        80 => trading_reference_price: Px, "trading_reference_price";
        88 => unit_of_measure_qty: Px, "unit_of_measure_qty";
        96 => min_price_increment_amount: Px, "min_price_increment_amount";
        104 => price_ratio: Px, "price_ratio";
        112 => strike_price: Px, "strike_price";
        120 => inst_attrib_value: I32, "inst_attrib_value";
        124 => underlying_id: U32, "underlying_id";
        128 => raw_instrument_id: U32, "raw_instrument_id";
        132 => market_depth_implied: I32, "market_depth_implied";
        136 => market_depth: I32, "market_depth";
        140 => market_segment_id: U32, "market_segment_id";
        144 => max_trade_vol: U32, "max_trade_vol";
        148 => min_lot_size: I32, "min_lot_size";
        152 => min_lot_size_block: I32, "min_lot_size_block";
        156 => min_lot_size_round_lot: I32, "min_lot_size_round_lot";
        160 => min_trade_vol: U32, "min_trade_vol";
        164 => contract_multiplier: I32, "contract_multiplier";
        168 => decay_quantity: I32, "decay_quantity";
        172 => original_contract_size: I32, "original_contract_size";
        176 => trading_reference_date: U16, "trading_reference_date";
        178 => appl_id: I16, "appl_id";
        180 => maturity_year: U16, "maturity_year";
        182 => decay_start_date: U16, "decay_start_date";
        184 => channel_id: U16, "channel_id";
        186 => currency: Alpha<4>, "currency";
        190 => settl_currency: Alpha<4>, "settl_currency";
        194 => secsubtype: Alpha<6>, "secsubtype";
        200 => raw_symbol: Alpha<71>, "raw_symbol";
        271 => group: Alpha<21>, "group";
        292 => exchange: Alpha<5>, "exchange";
        297 => asset: Alpha<7>, "asset";
        304 => cfi: Alpha<7>, "cfi";
        311 => security_type: Alpha<7>, "security_type";
        318 => unit_of_measure: Alpha<31>, "unit_of_measure";
        349 => underlying: Alpha<21>, "underlying";
        370 => strike_price_currency: Alpha<4>, "strike_price_currency";
        374 => instrument_class: Char, "instrument_class";
        375 => match_algorithm: Char, "match_algorithm";
        376 => md_security_trading_status: u8, "md_security_trading_status";
        377 => main_fraction: u8, "main_fraction";
        378 => price_display_format: u8, "price_display_format";
        379 => settl_price_type: u8, "settl_price_type";
        380 => sub_fraction: u8, "sub_fraction";
        381 => underlying_product: u8, "underlying_product";
        382 => security_update_action: Char, "security_update_action";
        383 => maturity_month: u8, "maturity_month";
        384 => maturity_day: u8, "maturity_day";
        385 => maturity_week: u8, "maturity_week";
        386 => user_defined_instrument: Char, "user_defined_instrument";
        387 => contract_multiplier_unit: i8, "contract_multiplier_unit";
        388 => flow_schedule_type: i8, "flow_schedule_type";
        389 => tick_rule: u8, "tick_rule";
        390 => reserved: [u8;10], "reserved";
    }
}

wire_struct! {
    /// A definition of version 3: of each leg too. DBN 3, "InstrumentDefMsg".
    pub struct Definition = "InstrumentDefMsg", 520 {
        0 => length: u8, "length";
        1 => rtype: u8, "rtype";
        2 => publisher_id: U16, "publisher_id";
        4 => instrument_id: U32, "instrument_id";
        8 => ts_event: Stamp, "ts_event";
        16 => ts_recv: Stamp, "ts_recv";
        24 => min_price_increment: Px, "min_price_increment";
        32 => display_factor: Px, "display_factor";
        40 => expiration: Stamp, "expiration";
        48 => activation: Stamp, "activation";
        56 => high_limit_price: Px, "high_limit_price";
        64 => low_limit_price: Px, "low_limit_price";
        72 => max_price_variation: Px, "max_price_variation";
        80 => unit_of_measure_qty: Px, "unit_of_measure_qty";
        88 => min_price_increment_amount: Px, "min_price_increment_amount";
        96 => price_ratio: Px, "price_ratio";
        104 => strike_price: Px, "strike_price";
        112 => raw_instrument_id: U64, "raw_instrument_id";
        120 => leg_price: Px, "leg_price";
        128 => leg_delta: Px, "leg_delta";
        136 => inst_attrib_value: I32, "inst_attrib_value";
        140 => underlying_id: U32, "underlying_id";
        144 => market_depth_implied: I32, "market_depth_implied";
        148 => market_depth: I32, "market_depth";
        152 => market_segment_id: U32, "market_segment_id";
        156 => max_trade_vol: U32, "max_trade_vol";
        160 => min_lot_size: I32, "min_lot_size";
        164 => min_lot_size_block: I32, "min_lot_size_block";
        168 => min_lot_size_round_lot: I32, "min_lot_size_round_lot";
        172 => min_trade_vol: U32, "min_trade_vol";
        176 => contract_multiplier: I32, "contract_multiplier";
        180 => decay_quantity: I32, "decay_quantity";
        184 => original_contract_size: I32, "original_contract_size";
        188 => leg_instrument_id: U32, "leg_instrument_id";
        192 => leg_ratio_price_numerator: I32, "leg_ratio_price_numerator";
        196 => leg_ratio_price_denominator: I32, "leg_ratio_price_denominator";
        200 => leg_ratio_qty_numerator: I32, "leg_ratio_qty_numerator";
        204 => leg_ratio_qty_denominator: I32, "leg_ratio_qty_denominator";
        208 => leg_underlying_id: U32, "leg_underlying_id";
        212 => appl_id: I16, "appl_id";
        214 => maturity_year: U16, "maturity_year";
        216 => decay_start_date: U16, "decay_start_date";
        218 => channel_id: U16, "channel_id";
        220 => leg_count: U16, "leg_count";
        222 => leg_index: U16, "leg_index";
        224 => currency: Alpha<4>, "currency";
        228 => settl_currency: Alpha<4>, "settl_currency";
        232 => secsubtype: Alpha<6>, "secsubtype";
        238 => raw_symbol: Alpha<71>, "raw_symbol";
        309 => group: Alpha<21>, "group";
        330 => exchange: Alpha<5>, "exchange";
        335 => asset: Alpha<11>, "asset";
        346 => cfi: Alpha<7>, "cfi";
        353 => security_type: Alpha<7>, "security_type";
        360 => unit_of_measure: Alpha<31>, "unit_of_measure";
        391 => underlying: Alpha<21>, "underlying";
        412 => strike_price_currency: Alpha<4>, "strike_price_currency";
        416 => leg_raw_symbol: Alpha<71>, "leg_raw_symbol";
        487 => instrument_class: Char, "instrument_class";
        488 => match_algorithm: Char, "match_algorithm";
        489 => main_fraction: u8, "main_fraction";
        490 => price_display_format: u8, "price_display_format";
        491 => sub_fraction: u8, "sub_fraction";
        492 => underlying_product: u8, "underlying_product";
        493 => security_update_action: Char, "security_update_action";
        494 => maturity_month: u8, "maturity_month";
        495 => maturity_day: u8, "maturity_day";
        496 => maturity_week: u8, "maturity_week";
        497 => user_defined_instrument: Char, "user_defined_instrument";
        498 => contract_multiplier_unit: i8, "contract_multiplier_unit";
        499 => flow_schedule_type: i8, "flow_schedule_type";
        500 => tick_rule: u8, "tick_rule";
        501 => leg_instrument_class: Char, "leg_instrument_class";
        502 => leg_side: Char, "leg_side";
        503 => reserved: [u8;17], "reserved";
    }
}

/// Bits of `flags`.
pub mod flags {
    /// The last record of its event.
    pub const LAST: u8 = 0x80;
    /// Part of a snapshot.
    pub const SNAPSHOT: u8 = 0x20;
}

/// A side as records have it; `None` for `N`.
pub fn side(side: Char) -> Option<Side> {
    Side::of_letter(side.0, *b"BA")
}

/// One level of a record by price: price, quantity and orders of a side.
pub type LevelRow = (Option<Price>, u32, u32);

macro_rules! levels {
    ($record:expr, $($bp:ident $bs:ident $bc:ident $ap:ident $as_:ident $ac:ident),*) => {[
        [$(($record.$bp.get(), $record.$bs.get(), $record.$bc.get())),*],
        [$(($record.$ap.get(), $record.$as_.get(), $record.$ac.get())),*],
    ]};
}

impl Mbp1 {
    /// The best level of each side, bids first.
    pub fn levels(&self) -> [[LevelRow; 1]; 2] {
        levels!(self, bid_px_00 bid_sz_00 bid_ct_00 ask_px_00 ask_sz_00 ask_ct_00)
    }
}

impl Mbp10 {
    /// Ten levels of each side, bids first, the best first.
    pub fn levels(&self) -> [[LevelRow; 10]; 2] {
        levels!(
            self,
            bid_px_00 bid_sz_00 bid_ct_00 ask_px_00 ask_sz_00 ask_ct_00,
            bid_px_01 bid_sz_01 bid_ct_01 ask_px_01 ask_sz_01 ask_ct_01,
            bid_px_02 bid_sz_02 bid_ct_02 ask_px_02 ask_sz_02 ask_ct_02,
            bid_px_03 bid_sz_03 bid_ct_03 ask_px_03 ask_sz_03 ask_ct_03,
            bid_px_04 bid_sz_04 bid_ct_04 ask_px_04 ask_sz_04 ask_ct_04,
            bid_px_05 bid_sz_05 bid_ct_05 ask_px_05 ask_sz_05 ask_ct_05,
            bid_px_06 bid_sz_06 bid_ct_06 ask_px_06 ask_sz_06 ask_ct_06,
            bid_px_07 bid_sz_07 bid_ct_07 ask_px_07 ask_sz_07 ask_ct_07,
            bid_px_08 bid_sz_08 bid_ct_08 ask_px_08 ask_sz_08 ask_ct_08,
            bid_px_09 bid_sz_09 bid_ct_09 ask_px_09 ask_sz_09 ask_ct_09
        )
    }
}

/// A record.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Record<'a> {
    /// `A0`.
    Mbo(&'a Mbo),
    /// `00`.
    Trade(&'a Trade),
    /// `01`.
    Mbp1(&'a Mbp1),
    /// `0A`.
    Mbp10(&'a Mbp10),
    /// `13` of version 1.
    DefinitionV1(&'a DefinitionV1),
    /// `13` of version 2.
    DefinitionV2(&'a DefinitionV2),
    /// `13` of version 3.
    Definition(&'a Definition),
    /// Any other type.
    Other(&'a RecordHeader),
}

/// Reads a record, whole as its first byte says. Definitions are told apart by their length, which no two
/// versions share.
///
/// # Errors
/// [`Malformed::Truncated`], or [`Malformed::Length`] when a record is shorter than its type.
pub fn parse(bytes: &[u8]) -> Result<Record<'_>, Malformed> {
    let (header, _) = prefix::<RecordHeader>(bytes)?;
    let size = usize::from(header.length) * 4;
    let bytes = bytes.get(..size).ok_or(Malformed::truncated(size, bytes.len()))?;
    Ok(match header.rtype {
        0xA0 => Record::Mbo(prefix(bytes)?.0),
        0x00 => Record::Trade(prefix(bytes)?.0),
        0x01 => Record::Mbp1(prefix(bytes)?.0),
        0x0A => Record::Mbp10(prefix(bytes)?.0),
        0x13 if size >= Definition::SIZE => Record::Definition(prefix(bytes)?.0),
        0x13 if size >= DefinitionV2::SIZE => Record::DefinitionV2(prefix(bytes)?.0),
        0x13 => Record::DefinitionV1(prefix(bytes)?.0),
        _ => Record::Other(prefix(bytes)?.0),
    })
}

impl<'a> Record<'a> {
    /// Its name in the encoding.
    pub fn name(&self) -> &'static str {
        match self {
            Record::Mbo(_) => Mbo::NAME,
            Record::Trade(_) => Trade::NAME,
            Record::Mbp1(_) => Mbp1::NAME,
            Record::Mbp10(_) => Mbp10::NAME,
            Record::DefinitionV1(_) => DefinitionV1::NAME,
            Record::DefinitionV2(_) => DefinitionV2::NAME,
            Record::Definition(_) => Definition::NAME,
            Record::Other(header) => match header.rtype {
                0x12 => "StatusMsg",
                0x14 => "ImbalanceMsg",
                0x15 => "ErrorMsg",
                0x16 => "SymbolMappingMsg",
                0x17 => "SystemMsg",
                0x18 => "StatMsg",
                0x11 | 0x20..=0x24 => "OhlcvMsg",
                0xB1 => "Cmbp1Msg",
                0xC0 | 0xC1 => "CbboMsg",
                0xC2 => "TcbboMsg",
                0xC3 | 0xC4 => "BboMsg",
                _ => "Record",
            },
        }
    }

    /// How many bytes of it are read here.
    pub fn size(&self) -> usize {
        match self {
            Record::Mbo(_) => Mbo::SIZE,
            Record::Trade(_) => Trade::SIZE,
            Record::Mbp1(_) => Mbp1::SIZE,
            Record::Mbp10(_) => Mbp10::SIZE,
            Record::DefinitionV1(_) => DefinitionV1::SIZE,
            Record::DefinitionV2(_) => DefinitionV2::SIZE,
            Record::Definition(_) => Definition::SIZE,
            Record::Other(_) => RecordHeader::SIZE,
        }
    }

    /// Calls `f` with name and value of every field that is read here.
    pub fn visit(&self, f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
        match self {
            Record::Mbo(m) => m.visit(f),
            Record::Trade(m) => m.visit(f),
            Record::Mbp1(m) => m.visit(f),
            Record::Mbp10(m) => m.visit(f),
            Record::DefinitionV1(m) => m.visit(f),
            Record::DefinitionV2(m) => m.visit(f),
            Record::Definition(m) => m.visit(f),
            Record::Other(m) => m.visit(f),
        }
    }

    /// What every record begins with.
    pub fn header(&self) -> &'a RecordHeader {
        fn of<T: Pod>(record: &T) -> &RecordHeader {
            let read = prefix(record.as_bytes());
            read.expect("every record begins with a header").0
        }
        match *self {
            Record::Mbo(m) => of(m),
            Record::Trade(m) => of(m),
            Record::Mbp1(m) => of(m),
            Record::Mbp10(m) => of(m),
            Record::DefinitionV1(m) => of(m),
            Record::DefinitionV2(m) => of(m),
            Record::Definition(m) => of(m),
            Record::Other(header) => header,
        }
    }

    /// What a definition says.
    pub fn definition(&self) -> Option<Terms<'a>> {
        fn of<'a>(number: U32, symbol: &'a [u8], steps: [Px; 2], currency: &Alpha<4>) -> Terms<'a> {
            let above_zero = |price: Px| price.get().filter(|price| *price > Price::ZERO);
            Terms {
                number: number.get(),
                symbol: trim(symbol),
                tick: above_zero(steps[0]),
                tick_amount: above_zero(steps[1]),
                currency: [currency.0[0], currency.0[1], currency.0[2]],
            }
        }
        macro_rules! terms {
            ($m:ident) => {{
                let steps = [$m.min_price_increment, $m.min_price_increment_amount];
                of($m.instrument_id, &$m.raw_symbol.0, steps, &$m.currency)
            }};
        }
        Some(match *self {
            Record::DefinitionV1(m) => terms!(m),
            Record::DefinitionV2(m) => terms!(m),
            Record::Definition(m) => terms!(m),
            _ => return None,
        })
    }
}

/// What a definition of any version says that trading needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms<'a> {
    /// Its number on that day.
    pub number: u32,
    /// Its symbol, without the padding.
    pub symbol: &'a [u8],
    /// The smallest step of its prices; `None` where there is no single one.
    pub tick: Option<Price>,
    /// What that step of a contract is worth.
    pub tick_amount: Option<Price>,
    /// Of prices and amounts; `0` where it does not say.
    pub currency: [u8; 3],
}

/// What a file says of itself before its records.
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'a> {
    /// 1 to 3.
    pub version: u8,
    /// `GLBX.MDP3`, `XNAS.ITCH`, …
    pub dataset: &'a [u8],
    /// 0 market by order, 1 and 2 by price, 8 definitions; 65,535 mixed.
    pub schema: u16,
    symbol_len: usize,
    /// From the counted lists of symbols on.
    lists: &'a [u8],
}

impl<'a> Metadata<'a> {
    /// Reads metadata: the bytes behind magic, version and length.
    ///
    /// # Errors
    /// [`Malformed::Truncated`], [`Malformed::BadValue`] for a version that is not known.
    pub fn parse(version: u8, bytes: &'a [u8]) -> Result<Metadata<'a>, Malformed> {
        if !(1..=NEWEST_VERSION).contains(&version) {
            return Err(Malformed::BadValue {
                offset: 3,
                value: version,
            });
        }
        // Version 1 has a count of records here; from version 2 on the length of symbols stands before the
        // reserved bytes.
        let (fixed, symbol_len_at) = match version {
            1 => (104, None),
            _ => (104, Some(45)),
        };
        let short = Malformed::truncated(fixed, bytes.len());
        let (head, lists) = bytes.split_at_checked(fixed).ok_or(short)?;
        let number = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        // The layout of the schema, which nobody writes.
        let skipped = word(&head[100..]) as usize;
        let lists = lists
            .get(skipped..)
            .ok_or(Malformed::truncated(skipped, lists.len()))?;
        Ok(Metadata {
            version,
            dataset: trim(&head[..16]),
            schema: number(16),
            symbol_len: symbol_len_at.map_or(22, |at| number(at).into()),
            lists,
        })
    }

    /// Whether every record is of orders (schema 0), or of levels (1, 2); `None` of other schemas, and of
    /// files of several.
    pub fn is_by_order(&self) -> Option<bool> {
        match self.schema {
            0 => Some(true),
            1 | 2 => Some(false),
            _ => None,
        }
    }

    /// Calls `f` with symbol and number (in characters) of every mapping of the file.
    ///
    /// # Errors
    /// [`Malformed::Truncated`]; mappings before it have been told.
    pub fn mappings(&self, f: &mut dyn FnMut(&'a [u8], &'a [u8])) -> Result<(), Malformed> {
        let mut rest = self.lists;
        // Symbols asked for, found in part, and not found.
        for _ in 0..3 {
            let count = take_word(&mut rest)?;
            take(&mut rest, (count as usize).saturating_mul(self.symbol_len))?;
        }
        for _ in 0..take_word(&mut rest)? {
            let symbol = trim(take(&mut rest, self.symbol_len)?);
            for _ in 0..take_word(&mut rest)? {
                take(&mut rest, 8)?;
                f(symbol, trim(take(&mut rest, self.symbol_len)?));
            }
        }
        Ok(())
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Malformed> {
    let short = Malformed::truncated(len, rest.len());
    let (taken, left) = rest.split_at_checked(len).ok_or(short)?;
    *rest = left;
    Ok(taken)
}

fn take_word(rest: &mut &[u8]) -> Result<u32, Malformed> {
    take(rest, 4).map(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};

    #[test]
    fn metadata_tells_symbols_and_numbers() {
        for (version, symbol_len) in [(1, 22), (2, 71), (3, 40)] {
            let symbol = |text: &[u8]| {
                let mut padded = vec![0; symbol_len];
                padded[..text.len()].copy_from_slice(text);
                padded
            };
            let mut bytes = vec![0; 104];
            bytes[..9].copy_from_slice(b"GLBX.MDP3");
            bytes[16] = 2;
            if version > 1 {
                bytes[45] = symbol_len as u8;
            }
            let word = |n: u32| n.to_le_bytes().to_vec();
            let lists: Vec<Vec<u8>> = vec![
                word(1),
                symbol(b"ESH4"),
                word(0),
                word(0),
                word(1),
                symbol(b"ESH4"),
                word(1),
                word(20_231_225),
                word(20_231_226),
                symbol(b"17077"),
            ];
            bytes.extend(lists.concat());
            let metadata = Metadata::parse(version, &bytes).unwrap();
            assert_eq!((metadata.dataset, metadata.schema), (&b"GLBX.MDP3"[..], 2));
            let mut told = Vec::new();
            metadata
                .mappings(&mut |symbol, number| told.push((symbol, number)))
                .unwrap();
            assert_eq!(told, [(&b"ESH4"[..], &b"17077"[..])]);
            for len in 0..bytes.len() {
                let cut = Metadata::parse(version, &bytes[..len]);
                assert!(
                    cut.is_err() || cut.unwrap().mappings(&mut |_, _| ()).is_err(),
                    "{len}"
                );
            }
        }
        assert!(Metadata::parse(4, &[0; 200]).is_err() && Metadata::parse(0, &[0; 200]).is_err());
    }

    #[test]
    fn records_are_told_by_type_and_length() {
        let mut record = Mbo::BLANK;
        (record.length, record.rtype) = ((Mbo::SIZE / 4) as u8, 0xA0);
        record.price = Px::NONE;
        let bytes = record.as_bytes();
        let Ok(Record::Mbo(read)) = parse(bytes) else {
            panic!("a record of an order")
        };
        assert_eq!((read, read.price.get(), side(read.side)), (&record, None, None));
        for len in 0..bytes.len() {
            assert!(parse(&bytes[..len]).is_err(), "{len}");
        }
        // A length that is too short for the type, and a type that is not known.
        let mut short = record;
        short.length = 5;
        assert!(parse(short.as_bytes()).is_err());
        let mut other = record;
        other.rtype = 0x99;
        let other = parse(other.as_bytes()).unwrap();
        assert_eq!((other.name(), other.size()), ("Record", RecordHeader::SIZE));
        for (size, name) in [
            (360, "InstrumentDefMsgV1"),
            (400, "InstrumentDefMsgV2"),
            (520, "InstrumentDefMsg"),
        ] {
            let mut bytes = vec![0; size];
            (bytes[0], bytes[1]) = ((size / 4) as u8, 0x13);
            let record = parse(&bytes).unwrap();
            assert_eq!((record.name(), record.size()), (name, size));
        }
    }
}
