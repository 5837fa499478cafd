//! What a backtest has found.

use tickwire_market::{ClientOrderId, InstrumentId, Nanos, Price, Qty, Side, Symbol};

/// After how long the market is looked at again after each fill: 100 ms, 1 s, 10 s.
pub const HORIZONS: [u64; 3] = [100 * Nanos::MILLI, Nanos::SECOND, 10 * Nanos::SECOND];

/// What the venue takes for a unit of quantity, in 1e-9 units of the currency; below 0 it pays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fees {
    /// Of who rested.
    pub maker: i64,
    /// Of who took.
    pub taker: i64,
}

/// One fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill {
    /// When the venue matched it.
    pub at: Nanos,
    /// Our order, or the name of our quote.
    pub order: ClientOrderId,
    /// What was traded.
    pub instrument: InstrumentId,
    /// Buy is [`Side::Bid`].
    pub side: Side,
    /// How much.
    pub qty: Qty,
    /// At what price.
    pub price: Price,
    /// Whether our order rested.
    pub is_maker: bool,
    /// What stood before it in its queue when it came to rest; 0 of an order that took.
    pub queue_at_entry: u64,
    /// The middle of the book when it was matched.
    pub mid: Option<Price>,
    /// The middle after each of [`HORIZONS`]; none where the recording ends before, or a side is empty.
    pub mark_outs: [Option<Price>; 3],
}

/// What a backtest cannot know: each is a number of cases in which another rule would have given another
/// result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Doubts {
    /// Orders that ended at the front of their queue without a fill: what was recorded stopped exactly before
    /// them.
    pub stopped_at_front: u64,
    /// Fills in queues that the feed tells by price: the place was estimated, with cancellations taken from
    /// behind.
    pub estimated_queue: u64,
    /// Fills because somebody's order, recorded as resting, came at or through our price: it would have
    /// traded with ours instead.
    pub crossed_by_recorded: u64,
    /// Fills that took from recorded orders, whose later executions and cancellations the recording shows as
    /// if they were whole.
    pub took_recorded: u64,
    /// Fills of the touch model, which has no queue.
    pub touched: u64,
    /// Requests that came while the book was not live.
    pub on_stale_book: u64,
    /// Recorded executions that found less than they took, in the matching model: ours had taken it, and what
    /// those who came later would have done instead is not known.
    pub found_less: u64,
    /// Recorded orders that were executed whole and stand on in the matching model, as ours traded in their
    /// place: when their owners would have cancelled them is not known.
    pub spared: u64,
    /// Reports that came back before the strategy had heard of the same moment by its feed, and were told
    /// right after it: the response takes less time than the feed does.
    pub told_before_feed: u64,
}

impl Doubts {
    /// Each with its number.
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            (
                "orders that ended at the front of their queue without a fill",
                self.stopped_at_front,
            ),
            (
                "fills whose place in the queue was estimated",
                self.estimated_queue,
            ),
            (
                "fills because a recorded order came at or through our price",
                self.crossed_by_recorded,
            ),
            ("fills that took from recorded orders", self.took_recorded),
            ("fills of the touch model", self.touched),
            (
                "requests that came while the book was not live",
                self.on_stale_book,
            ),
            (
                "recorded executions that found less than they took",
                self.found_less,
            ),
            (
                "recorded orders that stand on because ours traded in their place",
                self.spared,
            ),
            (
                "reports that came before the feed's own word of their moment",
                self.told_before_feed,
            ),
        ]
    }
}

/// What became of one instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstrumentResult {
    /// Its number.
    pub instrument: InstrumentId,
    /// Its symbol.
    pub symbol: Symbol,
    /// Held at the end.
    pub position: i64,
    /// Bought and sold.
    pub traded: [u64; 2],
    /// The last middle of its book, by which the position is valued; the last price that we traded at where
    /// there is none.
    pub mark: Price,
    /// Gain with the position valued so, without fees, in 1e-9 units of its currency.
    pub gain: i128,
    /// Fees in the same units.
    pub fees: i128,
}

/// What became of one of several strategies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StrategyResult {
    /// Fills, of these as maker.
    pub fills: [u64; 2],
    /// Every instrument that it traded.
    pub instruments: Vec<InstrumentResult>,
    /// Its gain less fees, in 1e-9 units of the currency.
    pub gain: i128,
}

/// The whole of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Events of market data.
    pub events: u64,
    /// First and last time of the recording.
    pub span: [Nanos; 2],
    /// Requests that came to the venue: new orders, replacements, cancellations.
    pub requests: [u64; 3],
    /// Orders that the venue refused.
    pub rejects: u64,
    /// Fills, of these as maker.
    pub fills: [u64; 2],
    /// Every instrument that was traded.
    pub instruments: Vec<InstrumentResult>,
    /// Gain of all less fees, in 1e-9 units of the currency.
    pub gain: i128,
    /// The largest loss from a high of the gain to a later low, looked at after every fill and every second.
    pub drawdown: i128,
    /// What cannot be known.
    pub doubts: Doubts,
    /// Of every request and report: the same for the same inputs, configuration and seed.
    pub hash: u64,
}

impl Summary {
    /// The part of the orders that were filled at least once, from 0 to 1, in parts of 10,000.
    pub fn filled_parts(&self, filled_orders: u64) -> u64 {
        (filled_orders * 10_000)
            .checked_div(self.requests[0])
            .unwrap_or(0)
    }
}
