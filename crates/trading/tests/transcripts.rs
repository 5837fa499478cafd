//! Trading as transcripts: each block of `tests/transcripts/*.txt` is commands, `----`, and everything that
//! came of them. `UPDATE=1 cargo test -p tickwire-trading` rewrites the answers; read the diff.
//!
//! ```text
//! config <key>=<n> …            lot, tif (day|ioc), size, band (bp), rate, window_ms, open, position, and of
//!                               the controls value, drift (bp in 1 s), messages, executions (in 1 s), held, loss
//! time <ms>                     the clock from here on
//! book <live|stale|building> <bid|-> <ask|->      a changed book of the traded instrument
//! accept|cancelled|rejected|cancel-rejected <id>  a report
//! fill <id> <qty>@<price> cum <qty>
//! venue|instrument|other <trading|paused|halted|closed>      a trading status
//! void                          a snapshot begins: what was said of trading statuses counts no more
//! withdraw <id> · kill · revive · session up|down · cancel-all
//! ```

use std::fmt::Write as _;
use std::path::Path;
use tickwire_market::{
    BookState, BookUpdate, ClientOrderId, InstrumentId, Nanos, OrderId, OrderIntent, Price, Qty, SeqNo,
    TimeInForce, TradingStatus, Venue, Volume,
};
use tickwire_trading::{Change, ControlsConfig, OrderReport, ReportKind, RiskConfig};

mod common;

use common::{ID, RuleRig};

struct Desk {
    desk: RuleRig,
    now: Nanos,
    seq: SeqNo,
}

#[test]
fn every_transcript_still_reads_the_same() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let update = std::env::var_os("UPDATE").is_some();
    let mut count = 0;
    for entry in std::fs::read_dir(&dir).expect("the directory of transcripts exists") {
        let path = entry.expect("a directory entry").path();
        let want = std::fs::read_to_string(&path).expect("a transcript is text");
        let got = play(&want);
        count += 1;
        if update {
            std::fs::write(&path, &got).expect("transcripts can be rewritten");
        }
        assert!(update || got == want, "{} now reads:\n{got}", path.display());
    }
    assert!(count >= 3, "only {count} transcripts in {}", dir.display());
}

fn trading_status(name: &str) -> TradingStatus {
    match name {
        "trading" => TradingStatus::Trading,
        "paused" => TradingStatus::Paused,
        "halted" => TradingStatus::Halted,
        "closed" => TradingStatus::Closed,
        _ => panic!("no status {name}"),
    }
}

/// The transcript with its answers as they are now.
fn play(text: &str) -> String {
    let mut desk = Desk::new("");
    let mut out = String::new();
    for block in text.trim_end().split("\n\n") {
        let commands: Vec<&str> = block.lines().take_while(|line| *line != "----").collect();
        let answers: String = commands
            .iter()
            .filter(|line| !line.starts_with('#'))
            .map(|line| desk.command(line))
            .collect();
        let separator = if commands.iter().all(|line| line.starts_with('#')) {
            ""
        } else {
            "----\n"
        };
        let _ = write!(out, "{}\n{separator}{answers}\n", commands.join("\n"));
    }
    out.trim_end().to_owned() + "\n"
}

impl Desk {
    fn new(settings: &str) -> Desk {
        let (mut lot, mut time_in_force) = (Qty(100), TimeInForce::ImmediateOrCancel);
        // Without those that a transcript is not about; it names what it is.
        let mut risk = RiskConfig {
            controls: ControlsConfig::NONE,
            ..RiskConfig::default()
        };
        for (key, value) in settings
            .split_whitespace()
            .filter_map(|setting| setting.split_once('='))
        {
            let n = || {
                value
                    .parse::<u32>()
                    .unwrap_or_else(|_| panic!("{key} takes a number, not {value}"))
            };
            match key {
                "lot" => lot = Qty(n()),
                "tif" if value == "day" => time_in_force = TimeInForce::Day,
                "tif" => time_in_force = TimeInForce::ImmediateOrCancel,
                "size" => risk.max_order_qty = Qty(n()),
                "band" => risk.price_band_bp = n(),
                "rate" => risk.max_orders_per_window = n(),
                "window_ms" => risk.window_ns = u64::from(n()) * Nanos::MILLI,
                "open" => risk.max_open_orders = n(),
                "position" => risk.max_position = u64::from(n()),
                "value" => risk.controls.value_max = n().into(),
                "drift" => (risk.controls.drift_bp, risk.controls.drift_ns) = (n(), Nanos::SECOND),
                "messages" => risk.controls.instrument_messages = n(),
                "executions" => {
                    (risk.controls.executions_max, risk.controls.executions_ns) = (n(), Nanos::SECOND)
                }
                "held" => risk.controls.strategy_position_max = n().into(),
                "loss" => risk.controls.strategy_loss_max = n().into(),
                _ => panic!("no setting {key}"),
            }
        }
        Desk {
            desk: RuleRig::new(lot, time_in_force, 16, risk),
            now: Nanos::ZERO,
            seq: SeqNo(0),
        }
    }

    fn command(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["config", settings @ ..] => *self = Desk::new(&settings.join(" ")),
            ["time", ms] => self.now = Nanos(ms.parse::<u64>().expect("milliseconds") * Nanos::MILLI),
            ["book", state, bid, ask] => return self.book(state, bid, ask),
            ["accept", id] => return self.report(id, ReportKind::Accepted),
            ["cancelled", id] => return self.report(id, ReportKind::Cancelled),
            ["rejected", id] => return self.report(id, ReportKind::Rejected),
            ["cancel-rejected", id] => return self.report(id, ReportKind::CancelRejected),
            ["fill", id, trade, "cum", cumulative] => {
                let (amount, price) = trade.split_once('@').expect("<qty>@<price>");
                let kind = ReportKind::Filled {
                    qty: qty(amount),
                    price: price.parse().expect("a price"),
                    cumulative: qty(cumulative),
                };
                return self.report(id, kind);
            }
            ["broken", id, trade, "cum", cumulative] => {
                let (amount, price) = trade.split_once('@').expect("<qty>@<price>");
                let kind = ReportKind::Broken {
                    qty: qty(amount),
                    price: price.parse().expect("a price"),
                    cumulative: qty(cumulative),
                };
                return self.report(id, kind);
            }
            ["withdraw", id] => return format!("withdrawn: {}\n", self.desk.withdraw(number(id))),
            ["kill"] => self.desk.conductor.kill(),
            ["revive"] => self.desk.conductor.risk_mut().revive(),
            ["void"] => self.desk.forget_statuses(),
            ["venue", status] => self
                .desk
                .on_status(InstrumentId::WHOLE_FEED, trading_status(status)),
            ["instrument", status] => self.desk.on_status(ID, trading_status(status)),
            ["other", status] => self.desk.on_status(InstrumentId(2), trading_status(status)),
            ["session", state] => self.desk.conductor.set_session(*state == "up"),
            ["cancel-all"] => return self.cancel_all(),
            _ => panic!("no command {line}"),
        }
        String::new()
    }

    fn book(&mut self, state: &str, bid: &str, ask: &str) -> String {
        self.seq = self.seq.next();
        let state = match state {
            "live" => BookState::Live,
            "stale" => BookState::Stale,
            _ => BookState::Building,
        };
        let side = |text: &str| {
            text.parse::<Price>()
                .map_or((Price::ZERO, Volume(0)), |price| (price, Volume(1_000)))
        };
        let ((bid, bid_qty), (ask, ask_qty)) = (side(bid), side(ask));
        let update = BookUpdate {
            seq: self.seq,
            recv_ts: self.now,
            instrument: ID,
            venue: Venue::Nasdaq,
            state,
            price: [bid, ask],
            qty: [bid_qty, ask_qty],
            ..BookUpdate::default()
        };
        let before = self.desk.conductor.counters().clone();
        let intent = self.desk.on_update(self.now, &update);
        intent.map_or_else(|| self.stopped(&before), |intent| shown(&intent))
    }

    /// The check that stopped an order, if one did.
    fn stopped(&self, before: &tickwire_market::Counters) -> String {
        let raised = self
            .desk
            .conductor
            .counters()
            .iter()
            .filter(|(counter, n)| *n > before.get(*counter));
        let names = raised
            .map(|(counter, _)| counter.spec().id)
            .filter(|id| *id != "risk_rejects");
        names.map(|id| format!("stopped: {id}\n")).collect()
    }

    fn report(&mut self, id: &str, kind: ReportKind) -> String {
        let report = OrderReport {
            id: number(id),
            venue_id: Some(OrderId(900 + number(id).0)),
            kind,
        };
        let killed = self.desk.conductor.risk().is_killed();
        let mut text = match self.desk.on_report(&report) {
            Ok(Change { order, .. }) => format!(
                "{id}: {:?} filled {} of {}\n",
                order.state, order.filled, order.qty
            ),
            Err(error) => format!("{id}: not applied: {error:?}\n"),
        };
        let position = self.desk.conductor.positions().get(ID);
        let cost = Price::from_raw(i64::try_from(position.cost).expect("transcripts trade little"));
        let _ = writeln!(
            text,
            "position {} cost {cost} working {:?}",
            position.qty, position.working
        );
        if self.desk.conductor.risk().is_killed() != killed {
            text.push_str("kill switch on\n");
        }
        text
    }

    fn cancel_all(&mut self) -> String {
        std::iter::from_fn(|| self.desk.cancel_next())
            .map(|intent| shown(&intent))
            .collect()
    }
}

fn shown(intent: &OrderIntent) -> String {
    match intent {
        OrderIntent::New {
            id,
            side,
            price,
            qty,
            time_in_force,
            cause,
            ..
        } => {
            format!(
                "send {}: {side:?} {qty} at {price} {time_in_force:?}, caused by message {}\n",
                id.0, cause.seq
            )
        }
        OrderIntent::Replace { .. } => unreachable!("nothing is replaced here"),
        OrderIntent::Cancel {
            id, target, venue_id, ..
        } => {
            format!(
                "send {}: cancel {} known to the venue as {:?}\n",
                id.0,
                target.0,
                venue_id.map(|id| id.0)
            )
        }
    }
}

fn number(text: &str) -> ClientOrderId {
    ClientOrderId(text.parse().expect("an order number"))
}

fn qty(text: &str) -> Qty {
    Qty(text.parse().expect("a quantity"))
}
