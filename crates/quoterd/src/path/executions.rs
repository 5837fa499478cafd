//! What was traded: from the strategy to whoever keeps positions, and what processes before this one have
//! traded.

use tickwire_fix::Id;
use tickwire_market::{Nanos, Price, Qty, SeqNo, Side, Symbol};
use tickwire_node::hot::OrderOut;
use tickwire_trading::strategy::{ExecutionId, LateExecution};
use tickwire_trading::{Ladders, Pricing, QuoterTrade, TradeOf};

use super::QuotePath;
use tickwire_node::fills::{self, Recovered};

/// What traded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// A quote.
    Quote,
    /// An order of the electronic eye in an option.
    Eye,
    /// A hedge in the underlying.
    Hedge,
}

impl fills::Source for Source {
    fn put(&self, line: &mut String) -> std::fmt::Result {
        line.push_str(match self {
            Source::Quote => "quote",
            Source::Eye => "eye",
            Source::Hedge => "hedge",
        });
        Ok(())
    }

    fn read(text: &str) -> Option<Source> {
        Some(match text {
            "quote" => Source::Quote,
            "eye" => Source::Eye,
            "hedge" => Source::Hedge,
            _ => return None,
        })
    }
}

/// What happened to our quotes and orders, for whoever keeps positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traded {
    /// When it was heard of, UTC.
    pub at: Nanos,
    /// What traded.
    pub source: Source,
    /// The option's place among the quotes; of a hedge without meaning.
    pub quote: u16,
    /// Our side: a filled bid bought.
    pub side: Side,
    /// The venue took a trade of the other side back.
    pub is_broken: bool,
    /// Contracts.
    pub qty: u32,
    /// Of one contract, points.
    pub price: Price,
    /// Bid plus ask of the underlying then, in its ticks; 0 when it was not known.
    pub half_tick: i64,
    /// MsgSeqNum (34) of the report, and its ExecID (17).
    pub seq: u64,
    /// ExecID (17) of the venue's report.
    pub exec: Id,
}

impl Traded {
    /// Our side of the trade that it is about: of one that was taken back, the other one than it is booked
    /// on.
    pub fn side_of_trade(&self) -> Side {
        if self.is_broken { !self.side } else { self.side }
    }
}

impl From<&QuoterTrade> for Traded {
    fn from(trade: &QuoterTrade) -> Traded {
        let execution = trade.execution;
        Traded {
            at: trade.at,
            source: match trade.of {
                TradeOf::Quote => Source::Quote,
                TradeOf::Eye => Source::Eye,
                TradeOf::Hedge => Source::Hedge,
            },
            quote: trade.quote,
            side: trade.side,
            is_broken: trade.is_broken,
            qty: trade.qty.0,
            price: trade.price,
            half_tick: trade.half_tick,
            seq: execution.map_or(0, |execution| execution.seq.0),
            exec: execution
                .and_then(|execution| Id::new(execution.id.as_bytes()))
                .unwrap_or(Id::EMPTY),
        }
    }
}

/// Who prices and keeps positions, another thread most often; nothing here waits.
pub trait Trades {
    /// Takes a trade; whether there was room for it.
    fn traded(&mut self, traded: &Traded) -> bool;

    /// Newer ladders, if some have come: asked for between packets.
    #[inline]
    fn ladders(&mut self) -> Option<Ladders> {
        None
    }

    /// Those before, to be filled again.
    fn give_back(&mut self, before: Ladders) {
        drop(before);
    }
}

/// The strategy's side of it.
pub(crate) struct Handed<T> {
    pub(super) trades: T,
}

impl<T> Handed<T> {
    pub(super) fn new(trades: T) -> Handed<T> {
        Handed { trades }
    }
}

impl<T: Trades> Pricing for Handed<T> {
    #[inline]
    fn next(&mut self) -> Option<Ladders> {
        self.trades.ladders()
    }

    fn give_back(&mut self, before: Ladders) {
        self.trades.give_back(before);
    }

    fn traded(&mut self, trade: &QuoterTrade) -> bool {
        self.trades.traded(&Traded::from(trade))
    }
}

impl<O: OrderOut, T: Trades> QuotePath<O, T> {
    /// What processes before this one have traded, by quotes and by an eye. How much of it is in options that
    /// are not quoted any more, contracts bought or sold.
    pub fn restore(&mut self, recovered: &Recovered<Source>) -> u64 {
        let mut elsewhere = 0;
        for fill in &recovered.fills {
            let (quote, contracts) = (self.quote_by_name(&fill.symbol), fill.signed());
            let paid = contracts.saturating_mul(fill.price.raw() / self.options.tick.raw().max(1));
            let instrument = match (quote, fill.source) {
                (Some(quote), _) => Some(self.options.ids[usize::from(quote)]),
                (None, Source::Hedge) => Some(self.underlying.id),
                (None, _) => None,
            };
            let name = match fill.source {
                Source::Quote => self.hot.rule.conductor().first_name(),
                Source::Eye | Source::Hedge => 1,
            };
            self.hot.rule.conductor_mut().hold(&LateExecution {
                symbol: fill.symbol,
                instrument,
                number: Some(name),
                side: if contracts < 0 { Side::Ask } else { Side::Bid },
                qty: Qty(contracts.unsigned_abs().min(u32::MAX.into()) as u32),
                price: fill.price,
                is_broken: false,
                is_again: true,
            });
            match (fill.source, quote) {
                (Source::Hedge, _) => {}
                (_, None) => elsewhere += u64::from(fill.qty),
                (Source::Quote, Some(quote)) => self.maker_mut().hold(quote, contracts, paid),
                (Source::Eye, Some(quote)) => self.maker_mut().hold_of_eye(quote, contracts, paid),
            }
        }
        for fill in recovered.since_numbers_began() {
            if let Some(exec) = ExecutionId::new(fill.exec.as_bytes()) {
                self.hot.sessions[0].once.remember(exec);
            }
        }
        self.hot.sessions[0].once.set_booked(SeqNo(recovered.last_fill()));
        elsewhere
    }

    pub(super) fn quote_by_name(&self, symbol: &Symbol) -> Option<u16> {
        let known = &self.options.by_symbol;
        let at = known.binary_search_by(|(own, _)| own.cmp(symbol)).ok()?;
        Some(known[at].1)
    }
}
