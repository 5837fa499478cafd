//! What a run of the trading thread leaves behind: orders, books and latencies, for each order entry session.

use std::collections::BTreeMap;
use std::path::Path;

use tickwire_fix::{ExecType, ExecutionReport};
use tickwire_lab::{Histogram, Stage};
use tickwire_market::{EventSink, InstrumentId, Side};
use tickwire_trading::{OrderState, ReportKind};

use super::{Rule, Trader};
use crate::hot::HotPath;
use crate::link::Entry;
use crate::settings::SendWay;
use tickwire_console::failure::Failure;
use tickwire_control::latency_file::{
    CARD, DECIDED, DRIVER, HOOK, KERNEL, LatencyFile, SENT, TOTAL, WIRE, WIRE_TO_WIRE,
};
use tickwire_control::results::{LevelWriter, OrderOutcome, TraderResults, counters_by_id, write_json};

impl<R: Rule + 'static> Trader<'_, R>
where
    HotPath<Entry, true, R>: EventSink,
{
    /// The results with the orders of one session.
    fn results(&self, line: usize) -> TraderResults {
        let counters = self.host.counters();
        let mut by_id: BTreeMap<String, OrderOutcome> = BTreeMap::new();
        self.host.path.rule.each_order(line, &mut |order| {
            // The venue has an order under the last number that it was given.
            let is_replaced = order.state == OrderState::Replaced
                || (order.state == OrderState::Rejected && order.replaces.is_some());
            if !is_replaced {
                let outcome = OrderOutcome {
                    status: ord_status(order.state),
                    filled: order.filled.0.into(),
                };
                by_id.insert(order.id.0.to_string(), outcome);
            }
        });
        let span = |ticks| self.host.path.clock.span_ns(ticks);
        let times = self.host.path.probes.stage_times(span);
        let named = times.named().into_iter();
        let mut stages: Vec<_> = named.map(|(name, h)| (name.to_string(), h.clone())).collect();
        stages.extend(self.departures());
        TraderResults {
            counters: counters_by_id(&counters),
            orders: by_id,
            position: self.position(),
            stages,
            total_series: self.host.path.probes.series(Stage::Total, span),
            samples_dropped: times.dropped(),
            host: tickwire_control::summary::host(&self.host.path.clock, Some(self.host.waiting.to_string())),
        }
    }

    /// Behind the stages, which follow one another, what is known of departures: those that were stamped.
    fn departures(&self) -> Vec<(String, Histogram)> {
        let mut parts = ["decided to driver", "decided to card", "wire to wire"]
            .map(|name| (name.to_string(), Histogram::new()));
        for (sample, departed) in self.host.path.probes.departures() {
            for ((_, histogram), ticks) in parts.iter_mut().zip(sample.departure(departed)) {
                if let Some(ticks) = ticks {
                    histogram.record(self.host.path.clock.span_ns(ticks));
                }
            }
        }
        parts.into_iter().filter(|(_, h)| !h.is_empty()).collect()
    }

    /// The parts of the way of every packet that led to an order, as [`LatencyFile`] has them. A part that
    /// was not measured is not in it.
    fn parts_of_the_way(&self) -> LatencyFile {
        let clock = &self.host.path.clock;
        let mut file = LatencyFile {
            feed: "trader".into(),
            remarks: vec![
                "packets that led to an order, nanoseconds: wire to hook, hook or kernel to user space, user space to decided, decided to the driver, to sent, to sent by the card; from wire to wire"
                    .into(),
                format!("written: {} ns since 1970", clock.wall_at(clock.now()).0),
            ],
            types: BTreeMap::new(),
        };
        for (sample, departed) in self.host.path.probes.departures() {
            let [driver, card, wire_to_wire] = sample.departure(departed);
            let parts = [
                (WIRE, sample.ticks(Stage::Wire)),
                (HOOK, sample.ticks(Stage::Hook)),
                (KERNEL, sample.ticks(Stage::Receive)),
                (DECIDED, sample.user_to_decided()),
                (DRIVER, driver),
                (SENT, sample.decided_to_sent()),
                (CARD, card),
                (TOTAL, sample.ticks(Stage::Total)),
                (WIRE_TO_WIRE, wire_to_wire),
            ];
            for (name, ticks) in parts {
                let Some(ticks) = ticks else { continue };
                let latencies = file.types.entry(name.into()).or_default();
                latencies.record(clock.span_ns(ticks));
            }
        }
        file
    }

    pub(super) fn print(&self) {
        for line in 0..self.host.lines.len() {
            if self.host.lines.len() > 1 {
                println!("session{}", self.over(line));
            }
            print!(
                "{}",
                tickwire_control::summary::trader_summary(&self.results(line))
            );
            if self.routes.send[line] == SendWay::Delegated {
                let counts = self.host.lines[line]
                    .link
                    .counts(&self.host.path.sessions[line].out);
                println!("order entry: {counts}");
            }
        }
    }

    /// Writes what the first session has done into `trader.json` and the books of its channels into
    /// `books-trader.txt`; those of the second one have `-2` in their names, and so on. `latency_trader.txt`
    /// is about all of them.
    pub(super) fn write(&self, dir: &Path) -> Result<(), Failure> {
        self.parts_of_the_way().write(dir).map_err(|e| {
            Failure::system(format!(
                "cannot write latency_trader.txt into {}: {e}",
                dir.display()
            ))
        })?;
        for line in 0..self.host.lines.len() {
            let which = match line {
                0 => String::new(),
                later => format!("-{}", later + 1),
            };
            let mut levels = LevelWriter::create(&dir.join(format!("books-trader{which}.txt")))?;
            let mut known = Vec::new();
            for (number, routes) in self.routes.of_source.iter().enumerate() {
                if routes.first() == Some(&line) {
                    let directory = self.host.receiver.source(number).directory();
                    known.extend(directory.into_iter().map(|(symbol, id)| (symbol, number, id)));
                }
            }
            known.sort_unstable();
            for (symbol, number, id) in known {
                self.levels(symbol.as_str(), (number, id), &mut levels)?;
            }
            levels.finish()?;
            write_json(&dir.join(format!("trader{which}.json")), &self.results(line))?;
        }
        Ok(())
    }

    fn levels(
        &self,
        symbol: &str,
        (number, id): (usize, InstrumentId),
        levels: &mut LevelWriter,
    ) -> Result<(), Failure> {
        let Some(book) = self.host.path.books[number].book(id) else {
            return Ok(());
        };
        let at_close = self
            .host
            .path
            .at_close
            .get(&(number, id))
            .filter(|_| book.is_empty());
        for side in Side::BOTH {
            let shown: Vec<_> = match at_close {
                Some(closed) => closed[side as usize].clone(),
                None => book.levels(side).collect(),
            };
            levels.book(symbol, side, shown.into_iter())?;
        }
        Ok(())
    }
}

/// What a report means for the order's state; `None` for kinds that change nothing.
pub fn report_kind(r: &ExecutionReport) -> Option<ReportKind> {
    match r.exec_type {
        ExecType::New if r.is_working => Some(ReportKind::Triggered),
        ExecType::New => Some(ReportKind::Accepted),
        ExecType::Trade => Some(ReportKind::Filled {
            qty: r.last_qty,
            price: r.last_px.unwrap_or_default(),
            cumulative: r.cum_qty,
        }),
        ExecType::TradeCancel => Some(ReportKind::Broken {
            qty: r.last_qty,
            price: r.last_px.unwrap_or_default(),
            cumulative: r.cum_qty,
        }),
        ExecType::Canceled | ExecType::Expired | ExecType::DoneForDay => Some(ReportKind::Cancelled),
        ExecType::Rejected => Some(ReportKind::Rejected),
        ExecType::Triggered => Some(ReportKind::Triggered),
        // Versions before 5.0 have no word for it: restated, or told as new once more.
        ExecType::Restated if r.is_working => Some(ReportKind::Triggered),
        _ => None,
    }
}

/// FIX OrdStatus of a state.
fn ord_status(state: OrderState) -> char {
    match state {
        OrderState::PendingNew => 'A',
        OrderState::New => '0',
        OrderState::PartiallyFilled => '1',
        OrderState::Filled => '2',
        OrderState::Cancelled => '4',
        OrderState::Rejected => '8',
        OrderState::Replaced => '5',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_fix::{Id, OrdStatus, Reason};
    use tickwire_market::{Nanos, OrderType, Price, Qty, Symbol, TimeInForce};

    #[test]
    fn a_trade_taken_back_is_a_report_of_its_own_and_a_trigger_is_understood_in_every_version() {
        let report = ExecutionReport {
            order_id: Id::from_number(7),
            cl_ord_id: Id::from_number(1),
            orig_cl_ord_id: Id::EMPTY,
            exec_id: Id::from_number(9),
            exec_type: ExecType::TradeCancel,
            ord_status: OrdStatus::PartiallyFilled,
            ord_rej_reason: None,
            symbol: Symbol::EMPTY,
            side: Side::Bid,
            qty: Qty(100),
            order_type: OrderType::Limit,
            price: Some(Price::from_4dp(10_0000)),
            stop: None,
            is_working: false,
            time_in_force: TimeInForce::Day,
            last_qty: Qty(40),
            last_px: Some(Price::from_4dp(9_0000)),
            leaves_qty: Qty(40),
            cum_qty: Qty(20),
            avg_px: Price::from_4dp(10_0000),
            transact_time: Nanos::ZERO,
            cause: None,
            text: Reason::EMPTY,
        };
        let broken = ReportKind::Broken {
            qty: Qty(40),
            price: Price::from_4dp(9_0000),
            cumulative: Qty(20),
        };
        assert_eq!(report_kind(&report), Some(broken));
        // How a trigger is told: in a word of its own, or as a change or acceptance of what works now.
        let trigger = |exec_type, is_working| {
            report_kind(&ExecutionReport {
                exec_type,
                is_working,
                stop: Some(Price::from_4dp(9_0000)),
                ..report
            })
        };
        for (exec_type, is_working) in [
            (ExecType::Triggered, false),
            (ExecType::Restated, true),
            (ExecType::New, true),
        ] {
            assert_eq!(trigger(exec_type, is_working), Some(ReportKind::Triggered));
        }
        assert_eq!(trigger(ExecType::Restated, false), None);
        assert_eq!(trigger(ExecType::New, false), Some(ReportKind::Accepted));
    }
}
