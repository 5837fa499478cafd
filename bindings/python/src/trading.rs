//! Backtests, and the simulated exchange in this process.

use crate::reading::{Batch, value_of};
use crate::types::Trouble;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tickwire::config::Config;
use tickwire::hosted::HostedExchange;
use tickwire::strategy::{BacktestArgs, BacktestResult, file};
use tickwire_console::failure::Failure;
use tickwire_export::arrow::Prices;
use tickwire_export::batch::Batch as Columns;
use tickwire_export::reader::Rows;
use tickwire_export::schema::{Column, Kind, NO_PRICE, NO_TIME};
use tickwire_market::{Port, Price, Side};
use tickwire_runtime::signal::StopFlag;
use tickwire_venues::protocol::Protocol;

/// How long a wait lasts before the interpreter may see signals.
const SLICE: Duration = Duration::from_millis(5);

/// Runs `work` in a thread, without the interpreter; Ctrl-C stops it.
fn beside<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&StopFlag) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let stop = StopFlag::new();
    let own = stop.clone();
    let thread = std::thread::spawn(move || work(&own));
    let mut raised = Ok(());
    while !thread.is_finished() {
        py.detach(|| std::thread::sleep(SLICE));
        if raised.is_ok() {
            raised = py.check_signals();
            if raised.is_err() {
                stop.stop();
            }
        }
    }
    let ended = thread.join();
    raised?;
    match ended {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(failure)) => Err(Trouble::from(failure).into()),
        Err(_) => Err(PyRuntimeError::new_err(
            "the strategy panicked; what it said is on standard error",
        )),
    }
}

/// A table that is being filled: texts are kept once.
struct Filled {
    rows: Rows,
    places: BTreeMap<String, u64>,
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

impl Filled {
    fn new(columns: &[Column]) -> Filled {
        Filled {
            rows: Rows {
                batch: Columns::new(columns.to_vec()),
                symbols: Vec::new(),
            },
            places: BTreeMap::new(),
        }
    }

    fn text(&mut self, text: &str) -> u64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.rows.symbols.len() as u64;
        self.rows.symbols.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }

    fn batch(self) -> Batch {
        Batch::new(self.rows, Prices::Decimal)
    }
}

fn word(price: Option<Price>) -> u64 {
    price.map_or(NO_PRICE, |price| price.raw() as u64)
}

/// Money of 1e-9, where it fits 64 bits; none where it does not.
fn money(nanos: i128) -> u64 {
    i64::try_from(nanos).map_or(NO_PRICE, |nanos| nanos as u64)
}

fn side_of(side: Side) -> &'static str {
    match side {
        Side::Bid => "buy",
        Side::Ask => "sell",
    }
}

/// Runs a strategy on recordings; see `tickwire.backtest`.
#[pyfunction]
#[pyo3(signature = (config, files, strategy, *, name, set, feeds, protocol, templates))]
#[expect(clippy::too_many_arguments, reason = "they are named")]
pub(crate) fn backtest(
    py: Python<'_>,
    config: PathBuf,
    files: Vec<PathBuf>,
    strategy: PathBuf,
    name: Option<String>,
    set: Vec<String>,
    feeds: Option<PathBuf>,
    protocol: Option<&str>,
    templates: Vec<PathBuf>,
) -> PyResult<Backtest> {
    let args = BacktestArgs {
        files,
        config,
        feeds,
        protocol: protocol
            .map(|name| value_of::<Protocol>("protocol", name))
            .transpose()?,
        templates,
        strategy: name,
        set,
        sweep: Vec::new(),
        results: None,
        fills: None,
        report: None,
        ghosts: None,
        json: false,
    };
    let result = beside(py, move |stop| file::tested(&strategy, &args, stop))?;
    Ok(Backtest { result })
}

/// The names of the built-in strategies.
#[pyfunction]
pub(crate) fn strategies() -> Vec<&'static str> {
    file::BUILT_IN.iter().map(|(name, _)| *name).collect()
}

/// What came of a backtest.
#[pyclass(frozen, module = "tickwire._native")]
pub(crate) struct Backtest {
    result: BacktestResult,
}

impl Backtest {
    fn symbol(&self, id: tickwire_market::InstrumentId) -> String {
        let known = self.result.symbols.get(&id);
        known.map_or_else(|| format!("#{}", id.0), ToString::to_string)
    }
}

#[pymethods]
impl Backtest {
    /// Gain of all less fees, in 1e-9 of the currency.
    #[getter]
    fn pnl(&self) -> i128 {
        self.result.summary.gain
    }

    /// The largest loss from a high to a later low, in 1e-9 of the currency.
    #[getter]
    fn drawdown(&self) -> i128 {
        self.result.summary.drawdown
    }

    /// Events of market data.
    #[getter]
    fn events(&self) -> u64 {
        self.result.summary.events
    }

    /// Of every request and report: the same for the same inputs, configuration and seed.
    #[getter]
    fn hash(&self) -> u64 {
        self.result.summary.hash
    }

    /// Why the recording is not to be relied on, if it is not.
    #[getter]
    fn fault(&self) -> Option<String> {
        self.result.fault.clone()
    }

    /// What a backtest cannot know, in cases.
    #[getter]
    fn doubts(&self) -> BTreeMap<&'static str, u64> {
        let all = self.result.summary.doubts.named();
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// The strategy's own numbers.
    #[getter]
    fn figures(&self) -> BTreeMap<String, i64> {
        self.result.figures.iter().cloned().collect()
    }

    /// The first notes of the strategy.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.result.notes.clone()
    }

    /// Every fill.
    fn fills(&self) -> Batch {
        let mut table = Filled::new(&[
            column("time", Kind::Time),
            column("order", Kind::Unsigned(64)),
            column("symbol", Kind::Symbol),
            column("side", Kind::Symbol),
            column("qty", Kind::Unsigned(32)),
            column("price", Kind::Price),
            column("is_maker", Kind::Unsigned(8)),
            column("queue_at_entry", Kind::Unsigned(64)),
            column("mid", Kind::Price),
            column("mid_100ms", Kind::Price),
            column("mid_1s", Kind::Price),
            column("mid_10s", Kind::Price),
        ]);
        for fill in &self.result.fills {
            let (symbol, side) = (self.symbol(fill.instrument), side_of(fill.side));
            let texts = [table.text(&symbol), table.text(side)];
            table.rows.batch.push(&[
                fill.at.0,
                fill.order.0,
                texts[0],
                texts[1],
                fill.qty.0.into(),
                word(Some(fill.price)),
                fill.is_maker.into(),
                fill.queue_at_entry,
                word(fill.mid),
                word(fill.mark_outs[0]),
                word(fill.mark_outs[1]),
                word(fill.mark_outs[2]),
            ]);
        }
        table.batch()
    }

    /// Every order that reached the venue.
    fn orders(&self) -> Batch {
        let mut table = Filled::new(&[
            column("arrived", Kind::Time),
            column("ended", Kind::TimeOrNone),
            column("order", Kind::Unsigned(64)),
            column("replaces", Kind::Unsigned(64)),
            column("symbol", Kind::Symbol),
            column("side", Kind::Symbol),
            column("order_type", Kind::Symbol),
            column("time_in_force", Kind::Symbol),
            column("price", Kind::Price),
            column("stop", Kind::Price),
            column("qty", Kind::Unsigned(32)),
            column("filled", Kind::Unsigned(32)),
            column("state", Kind::Symbol),
        ]);
        for order in &self.result.orders {
            let texts = [
                self.symbol(order.instrument),
                side_of(order.side).to_owned(),
                snake(&format!("{:?}", order.order_type)),
                snake(&format!("{:?}", order.time_in_force)),
                snake(&format!("{:?}", order.state)),
            ];
            let texts = texts.map(|text| table.text(&text));
            table.rows.batch.push(&[
                order.arrived.0,
                order.ended.map_or(NO_TIME, |at| at.0),
                order.id.0,
                order.replaces.unwrap_or_default().0,
                texts[0],
                texts[1],
                texts[2],
                texts[3],
                word(Some(order.price)),
                word(order.stop),
                order.qty.0.into(),
                order.filled.0.into(),
                texts[4],
            ]);
        }
        table.batch()
    }

    /// What was held at the end, by instrument.
    fn positions(&self) -> Batch {
        let mut table = Filled::new(&[
            column("symbol", Kind::Symbol),
            column("position", Kind::Signed(64)),
            column("bought", Kind::Unsigned(64)),
            column("sold", Kind::Unsigned(64)),
            column("mark", Kind::Price),
            column("pnl_before_fees", Kind::Price),
            column("fees", Kind::Price),
        ]);
        for of in &self.result.summary.instruments {
            let symbol = table.text(of.symbol.as_str());
            table.rows.batch.push(&[
                symbol,
                of.position as u64,
                of.traded[0],
                of.traded[1],
                word(Some(of.mark)),
                money(of.gain),
                money(of.fees),
            ]);
        }
        table.batch()
    }

    /// The gain over time.
    fn equity(&self) -> Batch {
        let mut table = Filled::new(&[column("time", Kind::Time), column("pnl", Kind::Price)]);
        for (at, gain) in &self.result.curve {
            table.rows.batch.push(&[at.0, money(*gain)]);
        }
        table.batch()
    }

    fn __repr__(&self) -> String {
        let summary = &self.result.summary;
        format!(
            "<Backtest, P&L {:.2}, {} orders, {} fills>",
            summary.gain as f64 / 1e9,
            summary.requests[0],
            summary.fills[0]
        )
    }
}

/// A name of Rust as one of Python's: `PartiallyFilled` is `partially_filled`.
fn snake(name: &str) -> String {
    let mut all = String::new();
    for (at, letter) in name.chars().enumerate() {
        if letter.is_ascii_uppercase() && at > 0 {
            all.push('_');
        }
        all.push(letter.to_ascii_lowercase());
    }
    all
}

/// The simulated exchange in a thread of this process.
#[pyclass(frozen, module = "tickwire._native")]
pub(crate) struct Exchange {
    hosted: Mutex<Option<HostedExchange>>,
    /// What is asked for after it was stopped, too.
    config: Config,
    order_entry: u16,
    ouch: Option<u16>,
    servers: Vec<(String, u16)>,
}

#[pymethods]
impl Exchange {
    #[new]
    #[pyo3(signature = (feed, config, *, symbols, rate, seconds, seed))]
    fn new(
        py: Python<'_>,
        feed: &str,
        config: Option<PathBuf>,
        symbols: u32,
        rate: f64,
        seconds: f64,
        seed: u64,
    ) -> PyResult<Exchange> {
        let usage =
            |what: &'static str| move |e: String| Trouble::from(Failure::config(format!("{what}: {e}")));
        let config = match config {
            Some(path) => Config::load(&path).map_err(Trouble::from)?,
            None => {
                let protocol = value_of::<Protocol>("feed", feed)?;
                let mut config = HostedExchange::on_free_ports(protocol).map_err(Trouble::from)?;
                config.exchange.symbols = f64::from(symbols).try_into().map_err(usage("symbols"))?;
                config.exchange.rate = rate.try_into().map_err(usage("rate"))?;
                config.exchange.duration_s = seconds.try_into().map_err(usage("seconds"))?;
                config.exchange.seed = seed;
                config
            }
        };
        let started = py.detach(|| HostedExchange::start(config));
        let hosted = started.map_err(Trouble::from)?;
        let listening = hosted.listening().clone();
        Ok(Exchange {
            config: hosted.config().clone(),
            hosted: Mutex::new(Some(hosted)),
            order_entry: listening.order_entry,
            ouch: listening.ouch,
            servers: listening.servers,
        })
    }

    /// The TCP port of order entry by FIX, on loopback.
    #[getter]
    fn order_entry(&self) -> u16 {
        self.order_entry
    }

    /// The TCP port of OUCH, None without it.
    #[getter]
    fn ouch(&self) -> Option<u16> {
        self.ouch
    }

    /// Port of every server of market data by its name.
    #[getter]
    fn servers(&self) -> BTreeMap<String, u16> {
        self.servers.iter().cloned().collect()
    }

    /// Group and port of every line of live data, by name of the feed.
    #[getter]
    fn groups(&self) -> BTreeMap<String, Vec<(String, u16)>> {
        let feeds = self.config.feed.iter().map(|feed| {
            let lines = feed
                .channels
                .iter()
                .filter_map(|channel| channel.lines(Port::Live));
            let lines = lines.flat_map(|lines| std::iter::once(lines.a).chain(lines.b));
            let lines = lines.map(|at| (at.ip().to_string(), at.port()));
            (feed.name().to_owned(), lines.collect())
        });
        feeds.collect()
    }

    /// FIX CompIDs: the exchange's, and that of the trader it expects.
    #[getter]
    fn comp_ids(&self) -> (String, String) {
        let entry = &self.config.order_entry;
        (
            entry.exchange_comp_id.0.to_string(),
            entry.trader_comp_id.0.to_string(),
        )
    }

    /// The configuration as TOML, with the ports that it listens on: what `tickwire trade` needs.
    #[getter]
    fn toml(&self) -> String {
        self.config.to_toml()
    }

    /// Whether its session goes on.
    #[getter]
    fn is_running(&self) -> bool {
        let hosted = self.hosted.lock().unwrap_or_else(PoisonError::into_inner);
        hosted.as_ref().is_some_and(HostedExchange::is_running)
    }

    /// Waits until its market is open; at once where it opens with the first logon.
    fn wait_until_open(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let patience = Duration::try_from_secs_f64(seconds)
            .map_err(|_| PyValueError::new_err(format!("{seconds}: seconds, 0 or more")))?;
        if self.config.exchange.start_on_logon {
            return Ok(());
        }
        py.detach(|| {
            let hosted = self.hosted.lock().unwrap_or_else(PoisonError::into_inner);
            hosted
                .as_ref()
                .map_or(Ok(()), |hosted| hosted.wait_until_open(patience))
        })
        .map_err(|failure| Trouble::from(failure).into())
    }

    /// Ends it: what came of it, as JSON; None when it was stopped before.
    fn stop(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let hosted = self.hosted.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(hosted) = hosted else { return Ok(None) };
        let results = py.detach(|| hosted.stop()).map_err(Trouble::from)?;
        serde_json::to_string(&results)
            .map(Some)
            .map_err(|e| PyRuntimeError::new_err(e.to_string()))
    }
}
