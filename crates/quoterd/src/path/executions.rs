//! What was traded: each execution once, to the quoter, the eye, the controls, and whoever keeps positions.

use tickwire_fix::{ExecType, ExecutionReport, Id};
use tickwire_market::{ClientOrderId, Nanos, OrderId, Price, Qty, Side, Symbol};
use tickwire_node::hot::OrderOut;
use tickwire_trading::{EyeFill, Fill, OrderReport, QuotingState, ReportError, SideOutcome, StrategyId};

use super::{NONE, ORDERS_FROM, QuotePath};
use crate::fills::Recovered;
use tickwire_node::trader::report_kind;

/// The last executions whose identifiers are remembered.
const RECENT: usize = 64;

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

/// Takes what happened. `false`: no room for it.
pub trait Trades {
    /// Takes a trade; whether there was room for it.
    fn traded(&mut self, traded: &Traded) -> bool;
}

/// Executions, each of which is booked once.
pub struct Executions<T> {
    /// Who hears of trades.
    pub trades: T,
    /// Fills there was no room for; each pulls everything.
    pub trades_lost: u64,
    /// Executions that were booked before, left out.
    pub repeated: u64,
    /// MsgSeqNum of the message being answered, and of the last execution that was booked, of a process
    /// before this one too.
    pub(super) told: u64,
    pub(super) booked: u64,
    /// ExecIDs of the last executions, the next one's place.
    recent: ([Id; RECENT], usize),
}

impl<T> Executions<T> {
    pub(super) fn new(trades: T) -> Executions<T> {
        Executions {
            trades,
            trades_lost: 0,
            repeated: 0,
            told: 0,
            booked: 0,
            recent: ([Id::EMPTY; RECENT], 0),
        }
    }

    pub(super) fn remember(&mut self, exec: Id) {
        let (recent, next) = &mut self.recent;
        recent[*next % RECENT] = exec;
        *next += 1;
    }

    /// Whether an execution is in the positions already: it was sent again because it was not known that we
    /// have it, or the venue says it twice.
    pub(super) fn is_booked(&mut self, report: &ExecutionReport, is_late: bool) -> bool {
        let is_known = (is_late && self.told <= self.booked)
            || (!report.exec_id.is_empty() && self.recent.0.contains(&report.exec_id));
        match is_known {
            true => self.repeated += 1,
            false => {
                self.booked = self.told;
                self.remember(report.exec_id);
            }
        }
        is_known
    }
}

impl<O: OrderOut, T: Trades> QuotePath<O, T> {
    /// What processes before this one have traded, by quotes and by an eye. How much of it is in options that
    /// are not quoted any more, contracts bought or sold.
    pub fn restore(&mut self, recovered: &Recovered) -> u64 {
        let mut elsewhere = 0;
        for fill in &recovered.fills {
            let (quote, contracts) = (self.quote_by_name(&fill.symbol), fill.signed());
            let paid = self.paid(contracts, fill.price);
            let slot = quote.map_or(self.quoter_slots(), usize::from);
            if let Some(controls) = &mut self.wire.controls
                && (quote.is_some() || fill.source == Source::Hedge)
            {
                let side = if contracts < 0 { Side::Ask } else { Side::Bid };
                let qty = Qty(contracts.unsigned_abs().min(u32::MAX.into()) as u32);
                controls.hold(strategy_of(fill.source), slot, (side, qty, fill.price));
            }
            match (fill.source, quote) {
                (Source::Hedge, _) => {}
                (_, None) => elsewhere += u64::from(fill.qty),
                (Source::Quote, Some(quote)) => {
                    self.maker.hold(quote, contracts, paid);
                }
                (Source::Eye, Some(quote)) => {
                    self.maker.hold_of_eye(quote, contracts, paid);
                }
            }
            self.executions.remember(fill.exec);
        }
        self.executions.booked = recovered.last_fill();
        elsewhere
    }

    /// What contracts cost at a price, in ticks of the options times contracts.
    pub(super) fn paid(&self, contracts: i64, price: Price) -> i64 {
        contracts.saturating_mul(price.raw() / self.options.tick.raw().max(1))
    }

    pub(super) fn report(&mut self, now: Nanos, report: &ExecutionReport, is_late: bool) {
        if report.exec_type == ExecType::TradeCancel {
            return self.broken(now, report, is_late);
        }
        let id = report.cl_ord_id.to_number();
        if let Some(id) = id.filter(|id| *id >= ORDERS_FROM) {
            return match id % 2 {
                0 => self.order_report(now, report, id, is_late),
                _ => self.side_report(now, report, id, is_late),
            };
        }
        if report.exec_type != ExecType::Trade || self.executions.is_booked(report, is_late) {
            return;
        }
        // The places of quotes may have been others in the process before this one.
        let quote = match is_late {
            true => self.quote_by_name(&report.symbol),
            false => id.and_then(|id| u16::try_from(id).ok()),
        };
        let Some((quote, fill)) = quote.and_then(|quote| Some((quote, self.fill_of(quote, report)?))) else {
            return self.distrust(now);
        };
        self.traded(now, Source::Quote, quote, report);
        match is_late {
            true => self.maker.on_late_fill(&fill),
            false => self.maker.on_fill(now, &fill, &mut self.wire),
        }
    }

    /// What became of a quote's order.
    pub(super) fn side_report(&mut self, now: Nanos, report: &ExecutionReport, name: u64, is_late: bool) {
        let is_fill = report.exec_type == ExecType::Trade;
        if is_fill && self.executions.is_booked(report, is_late) {
            return;
        }
        let quote = self.quote_by_name(&report.symbol);
        let told = self.wire.entry.as_orders().zip(quote).and_then(|(entry, quote)| {
            let told = entry.report(quote, name, report)?;
            Some((told, entry.orders.on_report(&told)))
        });
        if is_fill {
            let Some((quote, fill)) = quote.and_then(|quote| Some((quote, self.fill_of(quote, report)?)))
            else {
                return self.distrust(now);
            };
            self.traded(now, Source::Quote, quote, report);
            match told {
                Some((_, SideOutcome::Unknown)) | None => {
                    self.maker.on_late_fill(&fill);
                    if !is_late {
                        self.distrust(now);
                    }
                }
                Some(_) => self.maker.on_order_fill(now, &fill, &mut self.wire),
            }
        }
        if let Some((told, outcome)) = told {
            self.follow(now, &told, outcome);
        }
    }

    /// The venue takes a trade back. It is booked the other way round at its price, as what is held and what
    /// was paid are then; everything is pulled until an operator has seen to it.
    #[cold]
    pub(super) fn broken(&mut self, now: Nanos, report: &ExecutionReport, is_late: bool) {
        if self.executions.is_booked(report, is_late) {
            return;
        }
        let id = report.cl_ord_id.to_number();
        if let Some(id) = id.filter(|id| *id >= ORDERS_FROM && id % 2 == 0) {
            self.order_traded(now, report, id, !report.side, is_late);
            return self.pull_by(now, |maker, wire| {
                maker.pull_by(|quoter| quoter.pull_on_break(now, wire))
            });
        }
        // Which place it has now, if it was of a process before this one.
        let quote = self.quote_by_name(&report.symbol);
        let Some((quote, fill)) = quote.and_then(|quote| Some((quote, self.fill_of(quote, report)?))) else {
            return self.distrust(now);
        };
        let undone = ExecutionReport {
            side: !report.side,
            ..*report
        };
        self.traded(now, Source::Quote, quote, &undone);
        self.pull_by(now, |maker, wire| maker.on_broken(now, &fill, wire));
    }

    /// A trade as the quoter counts it; `None` without a price that is one.
    pub(super) fn fill_of(&self, quote: u16, report: &ExecutionReport) -> Option<Fill> {
        let tick = self.options.tick.raw().max(1);
        Some(Fill {
            quote,
            side: report.side,
            qty: report.last_qty,
            ticks: u16::try_from(report.last_px?.raw() / tick).ok()?,
            delta_milli: self.options.deltas.get(usize::from(quote)).copied().unwrap_or(0),
        })
    }

    /// What became of an order of the eye. What traded is booked whether the order is known or not: those of
    /// a process before this one are not.
    pub(super) fn order_report(&mut self, now: Nanos, report: &ExecutionReport, id: u64, is_late: bool) {
        if report.exec_type == ExecType::Trade && self.executions.is_booked(report, is_late) {
            return;
        }
        self.order_traded(now, report, id, report.side, is_late);
    }

    /// The same when what traded is not in the positions yet; it is booked on `side`: the other one where the
    /// trade is taken back.
    pub(super) fn order_traded(
        &mut self,
        now: Nanos,
        report: &ExecutionReport,
        id: u64,
        side: Side,
        is_late: bool,
    ) {
        let Some(kind) = report_kind(report) else { return };
        let told = OrderReport {
            id: ClientOrderId(id.saturating_sub(self.wire.first_order) / 2),
            venue_id: report.order_id.to_number().map(OrderId),
            kind,
        };
        let quote = self.quote_by_name(&report.symbol);
        let outcome = self.maker.on_eye_report(now, &told, &mut self.wire);
        let is_unknown = match outcome {
            Some(Ok(_)) => false,
            Some(Err(ReportError::Duplicate)) => return,
            Some(Err(_)) | None => true,
        };
        if !kind.is_trade() {
            return;
        }
        let trade = ExecutionReport { side, ..*report };
        match quote {
            Some(quote) => {
                self.traded(now, Source::Eye, quote, &trade);
                let fill = EyeFill {
                    option: quote,
                    contracts: signed(&trade),
                    paid: self.paid(signed(&trade), trade.last_px.unwrap_or_default()),
                    counted: self.fill_of(quote, &trade),
                };
                self.maker
                    .on_eye_trade(now, (kind, !is_late, is_unknown), &fill, &mut self.wire);
            }
            None if self.is_underlying(&report.symbol) => self.traded(now, Source::Hedge, NONE, &trade),
            None => self.distrust(now),
        }
    }

    /// Tells whoever keeps positions.
    pub(super) fn traded(&mut self, now: Nanos, source: Source, quote: u16, report: &ExecutionReport) {
        let traded = Traded {
            at: now,
            source,
            quote,
            side: report.side,
            is_broken: report.exec_type == ExecType::TradeCancel,
            qty: report.last_qty.0,
            price: report.last_px.unwrap_or_default(),
            half_tick: self.half_tick().unwrap_or(0),
            seq: self.executions.told,
            exec: report.exec_id,
        };
        if let Some(controls) = &mut self.wire.controls {
            let slot = match source {
                Source::Hedge => self.options.is_open.len(),
                Source::Quote | Source::Eye => quote.into(),
            };
            let trade = (traded.side, report.last_qty, traded.price);
            let strategy = strategy_of(source);
            match traded.is_broken {
                // Its side is turned round already.
                true => controls.hold(strategy, slot, trade),
                false => drop(controls.fill(now, strategy, slot, trade)),
            }
            if controls.stopped(strategy).is_some() && self.maker.quoter.state() == QuotingState::Quoting {
                self.wire.stopped_by = controls.stopped(strategy);
                self.pull_on_control(now);
            }
        }
        if !self.executions.trades.traded(&traded) {
            self.executions.trades_lost += 1;
            self.distrust(now);
        }
    }

    /// Without an eye, what trades under an order's number and is no option was a hedge of a process that had
    /// one.
    pub(super) fn is_underlying(&self, symbol: &Symbol) -> bool {
        let last = self.wire.orders.last();
        last.is_none_or(|template| template.symbol() == *symbol)
    }

    pub(super) fn quote_by_name(&self, symbol: &Symbol) -> Option<u16> {
        let at = self
            .options
            .by_symbol
            .binary_search_by(|(own, _)| own.cmp(symbol))
            .ok()?;
        Some(self.options.by_symbol[at].1)
    }
}

/// Whose trade it is to the controls.
fn strategy_of(source: Source) -> StrategyId {
    match source {
        Source::Quote => StrategyId::Quotes,
        Source::Eye | Source::Hedge => StrategyId::Eye,
    }
}

/// Contracts that an execution bought, below 0 sold.
fn signed(report: &ExecutionReport) -> i64 {
    let qty = i64::from(report.last_qty.0);
    match report.side {
        Side::Bid => qty,
        Side::Ask => -qty,
    }
}
