//! Layouts of instrument definitions.
//!
//! CME MDP 3.0, SBE schema 1 version 13 (`templates_FixBinary.xml`, 2023-04-11); every row is compared with
//! it in a test.

use super::block::{Optional, Price9, Qty4, Text, layouts};
use crate::layout::{Char, le};
use crate::wire_struct;

wire_struct! {
    /// When a contract matures; any part may be null. MDP 3.0 SBE schema 1, version 13 (2023-04-11),
    /// `MaturityMonthYear`.
    pub struct MaturityMonthYear = "MaturityMonthYear", 5 {
        0 => year: Optional<le::U16>, "MaturityMonthYear.year";
        2 => month: Optional<u8>, "MaturityMonthYear.month";
        3 => day: Optional<u8>, "MaturityMonthYear.day";
        4 => week: Optional<u8>, "MaturityMonthYear.week";
    }
}

wire_struct! {
    /// Root block of `MDInstrumentDefinitionFuture54`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct FutureRoot = "MDInstrumentDefinitionFuture", 224 {
        /// See [`indicator`](super::indicator).
        0 => indicator: u8, "MatchEventIndicator";
        /// How many reports one loop has.
        1 => total_reports: Optional<le::U32>, "TotNumReports";
        /// `A` add, `M` modify, `D` delete.
        5 => security_update_action: Char, "SecurityUpdateAction";
        6 => last_update_time: le::U64, "LastUpdateTime";
        /// See [`TradingStatusCode`](super::TradingStatusCode).
        14 => trading_status: Optional<u8>, "MDSecurityTradingStatus";
        15 => appl_id: le::I16, "ApplID";
        17 => market_segment_id: u8, "MarketSegmentID";
        18 => underlying_product: u8, "UnderlyingProduct";
        19 => security_exchange: Text<4>, "SecurityExchange";
        23 => security_group: Text<6>, "SecurityGroup";
        29 => asset: Text<6>, "Asset";
        35 => symbol: Text<20>, "Symbol";
        55 => security_id: le::I32, "SecurityID";
        59 => security_type: Text<6>, "SecurityType";
        65 => cfi_code: Text<6>, "CFICode";
        71 => maturity_month_year: MaturityMonthYear, "MaturityMonthYear";
        76 => currency: Text<3>, "Currency";
        79 => settl_currency: Text<3>, "SettlCurrency";
        82 => match_algorithm: Char, "MatchAlgorithm";
        83 => min_trade_vol: le::U32, "MinTradeVol";
        87 => max_trade_vol: le::U32, "MaxTradeVol";
        91 => min_price_increment: Price9, "MinPriceIncrement";
        /// Displayed price = price times this.
        99 => display_factor: Price9, "DisplayFactor";
        107 => main_fraction: Optional<u8>, "MainFraction";
        108 => sub_fraction: Optional<u8>, "SubFraction";
        109 => price_display_format: Optional<u8>, "PriceDisplayFormat";
        110 => unit_of_measure: Text<30>, "UnitOfMeasure";
        140 => unit_of_measure_qty: Optional<Price9>, "UnitOfMeasureQty";
        148 => trading_reference_price: Optional<Price9>, "TradingReferencePrice";
        156 => settl_price_type: u8, "SettlPriceType";
        157 => open_interest_qty: Optional<le::I32>, "OpenInterestQty";
        161 => cleared_volume: Optional<le::I32>, "ClearedVolume";
        165 => high_limit: Optional<Price9>, "HighLimitPrice";
        173 => low_limit: Optional<Price9>, "LowLimitPrice";
        181 => max_price_variation: Optional<Price9>, "MaxPriceVariation";
        189 => decay_quantity: Optional<le::I32>, "DecayQuantity";
        /// Days since the Unix epoch.
        193 => decay_start_date: Optional<le::U16>, "DecayStartDate";
        195 => original_contract_size: Optional<le::I32>, "OriginalContractSize";
        199 => contract_multiplier: Optional<le::I32>, "ContractMultiplier";
        203 => contract_multiplier_unit: Optional<i8>, "ContractMultiplierUnit";
        204 => flow_schedule_type: Optional<i8>, "FlowScheduleType";
        205 => min_price_increment_amount: Optional<Price9>, "MinPriceIncrementAmount";
        213 => user_defined_instrument: Char, "UserDefinedInstrument";
        /// Days since the Unix epoch.
        214 => trading_reference_date: Optional<le::U16>, "TradingReferenceDate";
        216 => instrument_guid: Optional<le::U64>, "InstrumentGUID";
    }
}

wire_struct! {
    /// Entry of `NoEvents` in `MDInstrumentDefinitionFuture54`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct EventEntry = "NoEvents", 9 {
        0 => event_type: u8, "EventType";
        1 => event_time: le::U64, "EventTime";
    }
}

wire_struct! {
    /// Entry of `NoMDFeedTypes` in `MDInstrumentDefinitionFuture54`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct FeedTypeEntry = "NoMDFeedTypes", 4 {
        0 => feed_type: Text<3>, "MDFeedType";
        3 => market_depth: i8, "MarketDepth";
    }
}

wire_struct! {
    /// Entry of `NoInstAttrib` in `MDInstrumentDefinitionFuture54`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct AttributeEntry = "NoInstAttrib", 4 {
        /// Bit set, see [`attribute`](super::attribute).
        0 => inst_attrib_value: le::U32, "InstAttribValue";
    }
}

wire_struct! {
    /// Entry of `NoLotTypeRules` in `MDInstrumentDefinitionFuture54`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct LotTypeRule = "NoLotTypeRules", 5 {
        0 => lot_type: i8, "LotType";
        1 => min_lot_size: Optional<Qty4>, "MinLotSize";
    }
}

wire_struct! {
    /// Root block of `MDInstrumentDefinitionOption55`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct OptionRoot = "MDInstrumentDefinitionOption", 221 {
        /// See [`indicator`](super::indicator).
        0 => indicator: u8, "MatchEventIndicator";
        /// How many reports one loop has.
        1 => total_reports: Optional<le::U32>, "TotNumReports";
        /// `A` add, `M` modify, `D` delete.
        5 => security_update_action: Char, "SecurityUpdateAction";
        6 => last_update_time: le::U64, "LastUpdateTime";
        /// See [`TradingStatusCode`](super::TradingStatusCode).
        14 => trading_status: Optional<u8>, "MDSecurityTradingStatus";
        15 => appl_id: le::I16, "ApplID";
        17 => market_segment_id: u8, "MarketSegmentID";
        18 => underlying_product: u8, "UnderlyingProduct";
        19 => security_exchange: Text<4>, "SecurityExchange";
        23 => security_group: Text<6>, "SecurityGroup";
        29 => asset: Text<6>, "Asset";
        35 => symbol: Text<20>, "Symbol";
        55 => security_id: le::I32, "SecurityID";
        59 => security_type: Text<6>, "SecurityType";
        65 => cfi_code: Text<6>, "CFICode";
        71 => put_or_call: u8, "PutOrCall";
        72 => maturity_month_year: MaturityMonthYear, "MaturityMonthYear";
        77 => currency: Text<3>, "Currency";
        80 => strike_price: Optional<Price9>, "StrikePrice";
        88 => strike_currency: Text<3>, "StrikeCurrency";
        91 => settl_currency: Text<3>, "SettlCurrency";
        94 => min_cab_price: Optional<Price9>, "MinCabPrice";
        102 => match_algorithm: Char, "MatchAlgorithm";
        103 => min_trade_vol: le::U32, "MinTradeVol";
        107 => max_trade_vol: le::U32, "MaxTradeVol";
        111 => min_price_increment: Optional<Price9>, "MinPriceIncrement";
        119 => min_price_increment_amount: Optional<Price9>, "MinPriceIncrementAmount";
        /// Displayed price = price times this.
        127 => display_factor: Price9, "DisplayFactor";
        135 => tick_rule: Optional<i8>, "TickRule";
        136 => main_fraction: Optional<u8>, "MainFraction";
        137 => sub_fraction: Optional<u8>, "SubFraction";
        138 => price_display_format: Optional<u8>, "PriceDisplayFormat";
        139 => unit_of_measure: Text<30>, "UnitOfMeasure";
        169 => unit_of_measure_qty: Optional<Price9>, "UnitOfMeasureQty";
        177 => trading_reference_price: Optional<Price9>, "TradingReferencePrice";
        185 => settl_price_type: u8, "SettlPriceType";
        186 => cleared_volume: Optional<le::I32>, "ClearedVolume";
        190 => open_interest_qty: Optional<le::I32>, "OpenInterestQty";
        194 => low_limit: Optional<Price9>, "LowLimitPrice";
        202 => high_limit: Optional<Price9>, "HighLimitPrice";
        210 => user_defined_instrument: Char, "UserDefinedInstrument";
        /// Days since the Unix epoch.
        211 => trading_reference_date: Optional<le::U16>, "TradingReferenceDate";
        213 => instrument_guid: Optional<le::U64>, "InstrumentGUID";
    }
}

wire_struct! {
    /// Entry of `NoUnderlyings` in `MDInstrumentDefinitionOption55`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct Underlying = "NoUnderlyings", 24 {
        0 => underlying_security_id: le::I32, "UnderlyingSecurityID";
        4 => underlying_symbol: Text<20>, "UnderlyingSymbol";
    }
}

wire_struct! {
    /// Entry of `NoRelatedInstruments` in `MDInstrumentDefinitionOption55`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct RelatedInstrument = "NoRelatedInstruments", 24 {
        0 => related_security_id: le::I32, "RelatedSecurityID";
        4 => related_symbol: Text<20>, "RelatedSymbol";
    }
}

wire_struct! {
    /// Root block of `MDInstrumentDefinitionSpread56`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct SpreadRoot = "MDInstrumentDefinitionSpread", 255 {
        /// See [`indicator`](super::indicator).
        0 => indicator: u8, "MatchEventIndicator";
        /// How many reports one loop has.
        1 => total_reports: Optional<le::U32>, "TotNumReports";
        /// `A` add, `M` modify, `D` delete.
        5 => security_update_action: Char, "SecurityUpdateAction";
        6 => last_update_time: le::U64, "LastUpdateTime";
        /// See [`TradingStatusCode`](super::TradingStatusCode).
        14 => trading_status: Optional<u8>, "MDSecurityTradingStatus";
        15 => appl_id: le::I16, "ApplID";
        17 => market_segment_id: u8, "MarketSegmentID";
        18 => underlying_product: Optional<u8>, "UnderlyingProduct";
        19 => security_exchange: Text<4>, "SecurityExchange";
        23 => security_group: Text<6>, "SecurityGroup";
        29 => asset: Text<6>, "Asset";
        35 => symbol: Text<20>, "Symbol";
        55 => security_id: le::I32, "SecurityID";
        59 => security_type: Text<6>, "SecurityType";
        65 => cfi_code: Text<6>, "CFICode";
        71 => maturity_month_year: MaturityMonthYear, "MaturityMonthYear";
        76 => currency: Text<3>, "Currency";
        79 => security_sub_type: Text<5>, "SecuritySubType";
        84 => user_defined_instrument: Char, "UserDefinedInstrument";
        85 => match_algorithm: Char, "MatchAlgorithm";
        86 => min_trade_vol: le::U32, "MinTradeVol";
        90 => max_trade_vol: le::U32, "MaxTradeVol";
        94 => min_price_increment: Optional<Price9>, "MinPriceIncrement";
        /// Displayed price = price times this.
        102 => display_factor: Price9, "DisplayFactor";
        110 => price_display_format: Optional<u8>, "PriceDisplayFormat";
        111 => price_ratio: Optional<Price9>, "PriceRatio";
        119 => tick_rule: Optional<i8>, "TickRule";
        120 => unit_of_measure: Text<30>, "UnitOfMeasure";
        150 => trading_reference_price: Optional<Price9>, "TradingReferencePrice";
        158 => settl_price_type: u8, "SettlPriceType";
        159 => open_interest_qty: Optional<le::I32>, "OpenInterestQty";
        163 => cleared_volume: Optional<le::I32>, "ClearedVolume";
        167 => high_limit: Optional<Price9>, "HighLimitPrice";
        175 => low_limit: Optional<Price9>, "LowLimitPrice";
        183 => max_price_variation: Optional<Price9>, "MaxPriceVariation";
        191 => main_fraction: Optional<u8>, "MainFraction";
        192 => sub_fraction: Optional<u8>, "SubFraction";
        /// Days since the Unix epoch.
        193 => trading_reference_date: Optional<le::U16>, "TradingReferenceDate";
        195 => price_quote_method: Text<5>, "PriceQuoteMethod";
        200 => risk_set: Text<6>, "RiskSet";
        206 => market_set: Text<6>, "MarketSet";
        212 => instrument_guid: Optional<le::U64>, "InstrumentGUID";
        220 => financial_instrument_full_name: Text<35>, "FinancialInstrumentFullName";
    }
}

wire_struct! {
    /// Entry of `NoLegs` in `MDInstrumentDefinitionSpread56`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct Leg = "NoLegs", 18 {
        0 => leg_security_id: le::I32, "LegSecurityID";
        4 => leg_side: u8, "LegSide";
        5 => leg_ratio_qty: i8, "LegRatioQty";
        6 => leg_price: Optional<Price9>, "LegPrice";
        14 => leg_option_delta: Optional<Qty4>, "LegOptionDelta";
    }
}

wire_struct! {
    /// Root block of `MDInstrumentDefinitionFixedIncome57`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct FixedIncomeRoot = "MDInstrumentDefinitionFixedIncome", 338 {
        /// See [`indicator`](super::indicator).
        0 => indicator: u8, "MatchEventIndicator";
        /// How many reports one loop has.
        1 => total_reports: Optional<le::U32>, "TotNumReports";
        /// `A` add, `M` modify, `D` delete.
        5 => security_update_action: Char, "SecurityUpdateAction";
        6 => last_update_time: le::U64, "LastUpdateTime";
        /// See [`TradingStatusCode`](super::TradingStatusCode).
        14 => trading_status: Optional<u8>, "MDSecurityTradingStatus";
        15 => appl_id: le::I16, "ApplID";
        17 => market_segment_id: u8, "MarketSegmentID";
        18 => underlying_product: u8, "UnderlyingProduct";
        19 => security_exchange: Text<4>, "SecurityExchange";
        23 => security_group: Text<6>, "SecurityGroup";
        29 => asset: Text<6>, "Asset";
        35 => symbol: Text<20>, "Symbol";
        55 => security_id: le::I32, "SecurityID";
        59 => security_type: Text<6>, "SecurityType";
        65 => cfi_code: Text<6>, "CFICode";
        71 => currency: Text<3>, "Currency";
        74 => settl_currency: Text<3>, "SettlCurrency";
        77 => match_algorithm: Char, "MatchAlgorithm";
        78 => min_trade_vol: le::U32, "MinTradeVol";
        82 => max_trade_vol: le::U32, "MaxTradeVol";
        86 => min_price_increment: Optional<Price9>, "MinPriceIncrement";
        /// Displayed price = price times this.
        94 => display_factor: Price9, "DisplayFactor";
        102 => main_fraction: Optional<u8>, "MainFraction";
        103 => sub_fraction: Optional<u8>, "SubFraction";
        104 => price_display_format: Optional<u8>, "PriceDisplayFormat";
        105 => unit_of_measure: Text<30>, "UnitOfMeasure";
        135 => unit_of_measure_qty: Optional<Price9>, "UnitOfMeasureQty";
        143 => trading_reference_price: Optional<Price9>, "TradingReferencePrice";
        /// Days since the Unix epoch.
        151 => trading_reference_date: Optional<le::U16>, "TradingReferenceDate";
        153 => high_limit: Optional<Price9>, "HighLimitPrice";
        161 => low_limit: Optional<Price9>, "LowLimitPrice";
        169 => max_price_variation: Optional<Price9>, "MaxPriceVariation";
        177 => min_price_increment_amount: Optional<Price9>, "MinPriceIncrementAmount";
        /// Days since the Unix epoch.
        185 => issue_date: Optional<le::U16>, "IssueDate";
        /// Days since the Unix epoch.
        187 => dated_date: Optional<le::U16>, "DatedDate";
        /// Days since the Unix epoch.
        189 => maturity_date: Optional<le::U16>, "MaturityDate";
        191 => coupon_rate: Optional<Price9>, "CouponRate";
        199 => par_value: Optional<Price9>, "ParValue";
        207 => coupon_frequency_unit: Text<3>, "CouponFrequencyUnit";
        210 => coupon_frequency_period: Optional<le::U16>, "CouponFrequencyPeriod";
        212 => coupon_day_count: Text<20>, "CouponDayCount";
        232 => country_of_issue: Text<2>, "CountryOfIssue";
        234 => issuer: Text<25>, "Issuer";
        259 => financial_instrument_full_name: Text<35>, "FinancialInstrumentFullName";
        294 => security_alt_id: Text<12>, "SecurityAltID";
        306 => security_alt_id_source: Optional<u8>, "SecurityAltIDSource";
        307 => price_quote_method: Text<5>, "PriceQuoteMethod";
        312 => party_role_clearing_org: Text<5>, "PartyRoleClearingOrg";
        317 => user_defined_instrument: Char, "UserDefinedInstrument";
        318 => risk_set: Text<6>, "RiskSet";
        324 => market_set: Text<6>, "MarketSet";
        330 => instrument_guid: Optional<le::U64>, "InstrumentGUID";
    }
}

wire_struct! {
    /// Root block of `MDInstrumentDefinitionRepo58`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct RepoRoot = "MDInstrumentDefinitionRepo", 276 {
        /// See [`indicator`](super::indicator).
        0 => indicator: u8, "MatchEventIndicator";
        /// How many reports one loop has.
        1 => total_reports: Optional<le::U32>, "TotNumReports";
        /// `A` add, `M` modify, `D` delete.
        5 => security_update_action: Char, "SecurityUpdateAction";
        6 => last_update_time: le::U64, "LastUpdateTime";
        /// See [`TradingStatusCode`](super::TradingStatusCode).
        14 => trading_status: Optional<u8>, "MDSecurityTradingStatus";
        15 => appl_id: le::I16, "ApplID";
        17 => market_segment_id: u8, "MarketSegmentID";
        18 => underlying_product: u8, "UnderlyingProduct";
        19 => security_exchange: Text<4>, "SecurityExchange";
        23 => security_group: Text<6>, "SecurityGroup";
        29 => asset: Text<6>, "Asset";
        35 => symbol: Text<20>, "Symbol";
        55 => security_id: le::I32, "SecurityID";
        59 => security_type: Text<6>, "SecurityType";
        65 => cfi_code: Text<6>, "CFICode";
        71 => currency: Text<3>, "Currency";
        74 => settl_currency: Text<3>, "SettlCurrency";
        77 => match_algorithm: Char, "MatchAlgorithm";
        78 => min_trade_vol: le::U32, "MinTradeVol";
        82 => max_trade_vol: le::U32, "MaxTradeVol";
        86 => min_price_increment: Price9, "MinPriceIncrement";
        /// Displayed price = price times this.
        94 => display_factor: Price9, "DisplayFactor";
        102 => unit_of_measure: Text<30>, "UnitOfMeasure";
        132 => unit_of_measure_qty: Optional<Price9>, "UnitOfMeasureQty";
        140 => trading_reference_price: Optional<Price9>, "TradingReferencePrice";
        /// Days since the Unix epoch.
        148 => trading_reference_date: Optional<le::U16>, "TradingReferenceDate";
        150 => high_limit: Optional<Price9>, "HighLimitPrice";
        158 => low_limit: Optional<Price9>, "LowLimitPrice";
        166 => max_price_variation: Optional<Price9>, "MaxPriceVariation";
        174 => financial_instrument_full_name: Text<35>, "FinancialInstrumentFullName";
        209 => party_role_clearing_org: Text<5>, "PartyRoleClearingOrg";
        /// Days since the Unix epoch.
        214 => start_date: Optional<le::U16>, "StartDate";
        /// Days since the Unix epoch.
        216 => end_date: Optional<le::U16>, "EndDate";
        218 => termination_type: Text<8>, "TerminationType";
        226 => security_sub_type: u8, "SecuritySubType";
        227 => money_or_par: Optional<u8>, "MoneyOrPar";
        228 => max_no_of_substitutions: u8, "MaxNoOfSubstitutions";
        229 => price_quote_method: Text<5>, "PriceQuoteMethod";
        234 => user_defined_instrument: Char, "UserDefinedInstrument";
        235 => risk_set: Text<6>, "RiskSet";
        241 => market_set: Text<6>, "MarketSet";
        247 => instrument_guid: Optional<le::U64>, "InstrumentGUID";
        255 => term_code: Text<20>, "TermCode";
        275 => broken_date_term_type: Optional<u8>, "BrokenDateTermType";
    }
}

wire_struct! {
    /// Entry of `NoUnderlyings` in `MDInstrumentDefinitionRepo58`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct RepoUnderlying = "NoUnderlyings", 118 {
        0 => underlying_symbol: Text<20>, "UnderlyingSymbol";
        20 => underlying_security_id: Optional<le::I32>, "UnderlyingSecurityID";
        24 => underlying_security_alt_id: Text<12>, "UnderlyingSecurityAltID";
        36 => underlying_security_alt_id_source: Optional<u8>, "UnderlyingSecurityAltIDSource";
        37 => underlying_financial_instrument_full_name: Text<35>, "UnderlyingFinancialInstrumentFullName";
        72 => underlying_security_type: Text<6>, "UnderlyingSecurityType";
        78 => underlying_country_of_issue: Text<2>, "UnderlyingCountryOfIssue";
        80 => underlying_issuer: Text<25>, "UnderlyingIssuer";
        105 => underlying_max_life_time: Optional<u8>, "UnderlyingMaxLifeTime";
        106 => underlying_min_days_to_maturity: Optional<le::U16>, "UnderlyingMinDaysToMaturity";
        108 => underlying_instrument_guid: Optional<le::U64>, "UnderlyingInstrumentGUID";
        /// Days since the Unix epoch.
        116 => underlying_maturity_date: Optional<le::U16>, "UnderlyingMaturityDate";
    }
}

wire_struct! {
    /// Entry of `NoRelatedInstruments` in `MDInstrumentDefinitionRepo58`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct RepoRelatedInstrument = "NoRelatedInstruments", 32 {
        0 => related_security_id: le::I32, "RelatedSecurityID";
        4 => related_symbol: Text<20>, "RelatedSymbol";
        24 => related_instrument_guid: Optional<le::U64>, "RelatedInstrumentGUID";
    }
}

wire_struct! {
    /// Entry of `NoBrokenDates` in `MDInstrumentDefinitionRepo58`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct BrokenDate = "NoBrokenDates", 16 {
        0 => broken_date_guid: le::U64, "BrokenDateGUID";
        8 => broken_date_security_id: le::I32, "BrokenDateSecurityID";
        /// Days since the Unix epoch.
        12 => broken_date_start: Optional<le::U16>, "BrokenDateStart";
        /// Days since the Unix epoch.
        14 => broken_date_end: Optional<le::U16>, "BrokenDateEnd";
    }
}

wire_struct! {
    /// Root block of `MDInstrumentDefinitionFX63`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct FxRoot = "MDInstrumentDefinitionFX", 337 {
        /// See [`indicator`](super::indicator).
        0 => indicator: u8, "MatchEventIndicator";
        /// How many reports one loop has.
        1 => total_reports: Optional<le::U32>, "TotNumReports";
        /// `A` add, `M` modify, `D` delete.
        5 => security_update_action: Char, "SecurityUpdateAction";
        6 => last_update_time: le::U64, "LastUpdateTime";
        /// See [`TradingStatusCode`](super::TradingStatusCode).
        14 => trading_status: Optional<u8>, "MDSecurityTradingStatus";
        15 => appl_id: le::I16, "ApplID";
        17 => market_segment_id: u8, "MarketSegmentID";
        18 => underlying_product: u8, "UnderlyingProduct";
        19 => security_exchange: Text<4>, "SecurityExchange";
        23 => security_group: Text<6>, "SecurityGroup";
        29 => asset: Text<6>, "Asset";
        35 => symbol: Text<20>, "Symbol";
        55 => security_id: le::I32, "SecurityID";
        59 => security_type: Text<6>, "SecurityType";
        65 => cfi_code: Text<6>, "CFICode";
        71 => currency: Text<3>, "Currency";
        74 => settl_currency: Text<3>, "SettlCurrency";
        77 => price_quote_currency: Text<3>, "PriceQuoteCurrency";
        80 => match_algorithm: Char, "MatchAlgorithm";
        81 => min_trade_vol: le::U32, "MinTradeVol";
        85 => max_trade_vol: le::U32, "MaxTradeVol";
        89 => min_price_increment: Price9, "MinPriceIncrement";
        /// Displayed price = price times this.
        97 => display_factor: Price9, "DisplayFactor";
        105 => price_precision: u8, "PricePrecision";
        106 => unit_of_measure: Text<30>, "UnitOfMeasure";
        136 => unit_of_measure_qty: Optional<Price9>, "UnitOfMeasureQty";
        144 => high_limit: Optional<Price9>, "HighLimitPrice";
        152 => low_limit: Optional<Price9>, "LowLimitPrice";
        160 => max_price_variation: Optional<Price9>, "MaxPriceVariation";
        168 => user_defined_instrument: Char, "UserDefinedInstrument";
        169 => financial_instrument_full_name: Text<35>, "FinancialInstrumentFullName";
        204 => fx_currency_symbol: Text<7>, "FXCurrencySymbol";
        211 => settl_type: Text<3>, "SettlType";
        214 => intervening_days: le::U16, "InterveningDays";
        216 => fx_benchmark_rate_fix: Text<20>, "FXBenchmarkRateFix";
        236 => rate_source: Text<12>, "RateSource";
        248 => fix_rate_local_time: Text<8>, "FixRateLocalTime";
        256 => fix_rate_local_time_zone: Text<20>, "FixRateLocalTimeZone";
        276 => min_quote_life: le::U32, "MinQuoteLife";
        280 => max_price_discretion_offset: Price9, "MaxPriceDiscretionOffset";
        288 => instrument_guid: Optional<le::U64>, "InstrumentGUID";
        296 => maturity_month_year: MaturityMonthYear, "MaturityMonthYear";
        301 => settlement_locale: Text<8>, "SettlementLocale";
        309 => alt_min_price_increment: Optional<Price9>, "AltMinPriceIncrement";
        317 => alt_min_quote_life: Optional<le::U32>, "AltMinQuoteLife";
        321 => alt_price_increment_constraint: Optional<Price9>, "AltPriceIncrementConstraint";
        329 => max_bid_ask_constraint: Optional<Price9>, "MaxBidAskConstraint";
    }
}

wire_struct! {
    /// Entry of `NoLotTypeRules` in `MDInstrumentDefinitionFX63`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct FxLotTypeRule = "NoLotTypeRules", 9 {
        0 => lot_type: i8, "LotType";
        1 => min_lot_size: le::U64, "MinLotSize";
    }
}

wire_struct! {
    /// Entry of `NoTradingSessions` in `MDInstrumentDefinitionFX63`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct TradingSession = "NoTradingSessions", 18 {
        /// Days since the Unix epoch.
        0 => trade_date: Optional<le::U16>, "TradeDate";
        /// Days since the Unix epoch.
        2 => settl_date: Optional<le::U16>, "SettlDate";
        /// Days since the Unix epoch.
        4 => maturity_date: Optional<le::U16>, "MaturityDate";
        6 => security_alt_id: Text<12>, "SecurityAltID";
    }
}

layouts! {
    FutureRoot [3 => 213, 6 => 214, 10 => 216];
    EventEntry;
    FeedTypeEntry;
    AttributeEntry;
    LotTypeRule;
    OptionRoot [6 => 211, 10 => 213];
    Underlying;
    RelatedInstrument;
    SpreadRoot [6 => 193, 10 => 195];
    Leg;
    FixedIncomeRoot;
    RepoRoot [11 => 255, 13 => 275];
    RepoUnderlying [11 => 108];
    RepoRelatedInstrument;
    BrokenDate;
    FxRoot [13 => 309];
    FxLotTypeRule;
    TradingSession;
}
