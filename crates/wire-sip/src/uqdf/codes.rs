//! Codes of one letter that many messages share.

use crate::wire_enum;

wire_enum! {
    /// `MarketCenterOriginatorID`. The CTA plan uses other letters for some of them.
    pub enum Originator {
        /// NYSE American.
        b'A' => American;
        /// Nasdaq Texas, formerly BX.
        b'B' => NasdaqTexas;
        /// NYSE National.
        b'C' => National;
        /// FINRA.
        b'D' => Finra;
        /// The SIP itself: market independent.
        b'E' => Sip;
        /// Texas Stock Exchange.
        b'F' => Txse;
        /// 24X National Exchange.
        b'G' => TwentyFourX;
        /// MIAX Pearl.
        b'H' => MiaxPearl;
        /// Nasdaq ISE.
        b'I' => Ise;
        /// Cboe EDGA.
        b'J' => Edga;
        /// Cboe EDGX.
        b'K' => Edgx;
        /// Long-Term Stock Exchange.
        b'L' => Ltse;
        /// NYSE Texas.
        b'M' => NyseTexas;
        /// New York Stock Exchange.
        b'N' => Nyse;
        /// NYSE Arca.
        b'P' => Arca;
        /// Nasdaq.
        b'Q' => Nasdaq;
        /// MEMX.
        b'U' => Memx;
        /// Investors Exchange.
        b'V' => Iex;
        /// CBOE Stock Exchange.
        b'W' => Cbsx;
        /// Nasdaq PSX.
        b'X' => Psx;
        /// Cboe BYX.
        b'Y' => Byx;
        /// Cboe BZX.
        b'Z' => Bzx;
    }
}

wire_enum! {
    /// `NBBOQuoteCondition` of the national best appendages.
    pub enum NbboCondition {
        /// Both sides.
        b'R' => TwoSided;
        /// One side.
        b'Y' => OneSided;
        /// Closed.
        b'L' => Closed;
    }
}

wire_enum! {
    /// `LULDBBOIndicator` of a quote.
    pub enum Luld {
        /// Executable, or not applicable.
        b' ' => Executable;
        /// Bid above the upper band.
        b'A' => BidNonExecutable;
        /// Ask below the lower band.
        b'B' => AskNonExecutable;
        /// Both.
        b'C' => BothNonExecutable;
    }
}

wire_enum! {
    /// `LULDPriceBandIndicator` of [`PriceBand`](super::PriceBand).
    pub enum BandIndicator {
        /// Of the opening.
        b'A' => Opening;
        /// During the day.
        b'B' => Intraday;
        /// Restated.
        b'C' => Restated;
        /// Suspended.
        b'D' => Suspended;
        /// Of a reopening.
        b'E' => Reopening;
        /// Outside the hours in which bands apply.
        b'F' => OutsideHours;
    }
}

wire_enum! {
    /// `Action` of [`TradingAction`](super::TradingAction) and
    /// [`MarketCenterAction`](super::MarketCenterAction).
    pub enum Action {
        /// Halted.
        b'H' => Halted;
        /// Quotation only.
        b'Q' => QuotationOnly;
        /// Trading.
        b'T' => Trading;
        /// Paused for volatility.
        b'P' => Paused;
    }
}
