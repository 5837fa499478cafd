//! `tickwire demo quoter`: an exchange with a future and a chain of options on it, a quoter, and what both say compared.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;
use tickwire_market::{Date, Nanos, Price};
use tickwire_options::edge::{Rounding, price};
use tickwire_options::time::DayCount;
use tickwire_options::{Kind, Terms, black76};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::signal::StopFlag;

use super::{QuoteEntry, QuoterResults};
use crate::cli::DemoArgs;
use crate::config::Config;
use crate::demo::{Side, watch};
use tickwire_console::failure::Failure;
use tickwire_control::results::{ExchangeResults, read_json};
use tickwire_venues::protocol::Protocol;
use tickwire_venues::values::{DurationS, Rate};

/// The volatility of the market and of the quoter, who agree on it.
const VOL: f64 = 0.16;
const RATE: f64 = 0.04;
/// The future, as CME sends its price: a hundredth of an index point is one.
const FRONT: i64 = 690_000;
const STRIKE_STEP: i64 = 1_000;
/// The firm that quotes.
const FIRM: u32 = 1;

pub(crate) fn run(args: &DemoArgs, stop: &StopFlag) -> Result<(), Failure> {
    crate::demo::prepare_folder(&args.dir, &["exchange.json", "quoter.json"])?;
    let mut config = demo_config(args)?;
    let started = Instant::now();
    let mut exchange = Side::start("exchange", &config, &args.dir)?;
    exchange.take_ports(&mut config)?;
    let mut quoter = Side::start("quote", &config, &args.dir)?;
    eprintln!(
        "exchange (pid {}) and quoter (pid {}): {} options, {} messages/s for {} s",
        exchange.child.id(),
        quoter.child.id(),
        config.exchange.instrument.len() - 1,
        config.exchange.rate.0,
        config.exchange.duration_s.0,
    );
    let operator = Operator::start(args.dir.clone())?;
    let watched = watch(&mut exchange, &mut quoter, config.exchange.duration_s.0, stop);
    operator.end();
    watched?;
    conclude(args, started)
}

/// The operator's client: turns the eye on as soon as there is one, and is heard from then on.
struct Operator {
    thread: JoinHandle<()>,
    is_over: Arc<AtomicBool>,
}

impl Operator {
    fn start(folder: PathBuf) -> Result<Operator, Failure> {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = is_over.clone();
        let thread = std::thread::Builder::new()
            .name("operator".into())
            .spawn(move || {
                // Until the quoter listens, nobody answers; and an eye that is off stays so when it is told of a heartbeat.
                while !ends.load(Ordering::Relaxed) {
                    let said = tickwire_control::client::ask_quoter(&folder, &json!({ "do": "status" }));
                    let state = said.as_ref().ok().and_then(|said| said["eye"]["state"].as_str());
                    let _ = match state {
                        Some("on") => {
                            tickwire_control::client::ask_quoter(&folder, &json!({ "do": "heartbeat" }))
                        }
                        Some(_) => {
                            tickwire_control::client::ask_quoter(&folder, &json!({ "do": "eye", "on": true }))
                        }
                        None => Ok(json!(null)),
                    };
                    std::thread::sleep(Duration::from_millis(200));
                }
            })
            .map_err(|e| Failure::system(format!("cannot start the operator's thread: {e}")))?;
        Ok(Operator { thread, is_over })
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

/// What both children get: a future, options at strikes around it, free ports.
fn demo_config(args: &DemoArgs) -> Result<Config, Failure> {
    let usage = |what: &'static str| move |e: String| Failure::config(format!("--{what}: {e}"));
    let options = args.symbols.clamp(2, 2_048) & !1;
    let now = Clock::calibrate_for(Duration::from_millis(1)).now();
    let mut c = Config::parse(&text(options, now)?).map_err(Failure::config)?;
    let cores = Cores::count().usable();
    c.exchange.core = cores.first().map_or(-1, |core| *core as i32);
    if let Some(quoter) = &mut c.quoter {
        quoter.core = cores.last().map_or(-1, |core| *core as i32);
        // Beside its configuration.
        quoter.control = Some(PathBuf::from("."));
        quoter.entry = args.entry;
    }
    c.exchange.seed = args.seed;
    c.exchange.duration_s = DurationS::try_from(args.seconds).map_err(usage("seconds"))?;
    c.exchange.rate = Rate::try_from(f64::from(args.rate)).map_err(usage("rate"))?;
    let line = crate::demo::impairment(args)?;
    (c.exchange.line_a, c.exchange.line_b) = (line, line);
    c.exchange.start_on_logon = true;
    crate::demo::take_free_ports(&mut c)?;
    c.check().map_err(Failure::config)?;
    Ok(c)
}

/// The configuration, but for ports and rates.
pub(crate) fn text(options: u32, now: Nanos) -> Result<String, Failure> {
    use std::fmt::Write;
    let expiries = [30, 90].map(|days| Date::of_days((now.0 / Nanos::DAY) as u32 + days));
    let last = expiries[1];
    let mut text = format!(
        "[quoter]\n\
         comp_id = \"QUOTER\"\n\
         underlying = \"ESX6\"\n\
         volatility = {VOL}\n\
         rate = {RATE}\n\
         size = 20\n\
         [quoter.trigger]\nfade_ticks = 2\nfade_ms = 250\n\
         [quoter.limits]\nlong_max = 100000\nshort_max = 100000\nmessages_per_s = 20000\nimprovements_per_s = 15000\n\
         [quoter.protection]\nwindow_ms = 1000\ncontracts = 8000\n\
         [controls]\nexecutions_max = 0\nstrategy_loss_max = 0\nloss_max = 0\ninstrument_messages_per_s = 20000\n\
         [[quoter.terms]]\nedge = 6.0\nedge_relative = 0.002\nwidth_min = 10.0\nwidth_max = 400.0\nlean_delta = 0.02\n\
         [quoter.risk.obligations]\nwidth_max = \"400\"\nsize_min = 10\nseries_min = 0.8\ntime_min = 0.5\n\
         [quoter.eye]\nsize = 20\ncontracts_per_s = 500\norders_per_s = 100\nlong_max = 100000\nshort_max = 100000\n\
         [quoter.eye.hedge]\n\
         [[quoter.eye.terms]]\nedge = 3.0\nedge_relative = 0.0002\nwidth_min = 6.0\nlean_delta = 0.02\n\
         [order_entry]\nexchange_comp_id = \"EXCHANGE\"\nanyone = false\n\
         [[order_entry.session]]\ncomp_id = \"QUOTER\"\nversion = \"FIX.4.4\"\nfirm = {FIRM}\n\
         cancel_on_disconnect = true\ncancel_on_missed_heartbeats = true\nheartbeat_s = 1\n\
         [[order_entry.session]]\ncomp_id = \"RIVAL\"\nversion = \"FIX.4.4\"\nfirm = 2\nreset_on_logon = true\n\
         [[order_entry.protection]]\nfirm = {FIRM}\ngroup = 1\nwindow_ms = 1000\ncontracts = 20000\n\
         [[exchange.instrument]]\nsymbol = \"ESX6\"\nkind = \"future\"\nprice = \"{FRONT}\"\ntick = \"25\"\n\
         display_factor = \"0.01\"\nexpiry = \"{last}\"\nmultiplier = 50\n"
    );
    let tick = Price::from_raw(5 * Price::ONE_RAW);
    let coarse = Price::from_raw(25 * Price::ONE_RAW);
    for nth in 0..options {
        let (pair, kind) = (
            i64::from(nth / 2),
            if nth % 2 == 0 { Kind::Call } else { Kind::Put },
        );
        let expiry = expiries[pair as usize % 2];
        // Around the money: 0, 1, -1, 2, -2, ...
        let rung = pair / 2;
        let steps = (rung + 1) / 2 * if rung % 2 == 0 { 1 } else { -1 };
        let strike = FRONT + steps * STRIKE_STEP;
        let end = Nanos((u64::from(expiry.days()) + 1) * Nanos::DAY);
        let terms = Terms {
            forward: FRONT as f64,
            strike: strike as f64,
            years: DayCount::Actual365.years(now, end),
            vol: VOL,
            rate: RATE,
            kind,
        };
        let greeks = black76::greeks(&terms)
            .map_err(|e| Failure::config(format!("{options} options are too many to list: {e}")))?;
        let step = if greeks.price > 500.0 { coarse } else { tick };
        let start = price(greeks.price, step, Rounding::Nearest)
            .filter(|p| *p > Price::ZERO)
            .unwrap_or(tick);
        let letter = if kind == Kind::Call { 'C' } else { 'P' };
        let month = if pair % 2 == 0 { 'X' } else { 'Z' };
        let _ = write!(
            text,
            "[[exchange.instrument]]\nsymbol = \"E{month} {letter}{strike}\"\nkind = \"{}\"\nunderlying = \"ESX6\"\n\
             price = \"{start}\"\ntick = \"5\"\nticks = [{{ from = \"500\", tick = \"25\" }}]\ndisplay_factor = \"0.01\"\n\
             strike = \"{strike}\"\nexpiry = \"{}\"\nmultiplier = 50\ngroup = 1\ndelta = {:.3}\n",
            if kind == Kind::Call { "call" } else { "put" },
            expiry,
            greeks.delta,
        );
    }
    let feed = Config::of_protocol(Protocol::Mdp3).feed;
    #[derive(serde::Serialize)]
    struct Feeds {
        feed: Vec<tickwire_venues::channels::FeedConfig>,
    }
    let feeds = toml::to_string_pretty(&Feeds { feed })
        .map_err(|e| Failure::system(format!("a feed has no TOML form: {e}")))?;
    Ok(text + &feeds)
}

/// Reads what both sides say, compares it, prints the report.
fn conclude(args: &DemoArgs, started: Instant) -> Result<(), Failure> {
    let entry = args.entry;
    let file = |name: &str| -> PathBuf { args.dir.join(name) };
    let exchange: ExchangeResults = read_json(&file("exchange.json"))?;
    let quoter: QuoterResults = read_json(&file("quoter.json"))?;
    let ours: Vec<_> = exchange
        .quotes
        .iter()
        .filter(|quote| quote.firm == FIRM)
        .collect();
    let orders: Vec<_> = exchange
        .orders_traded
        .iter()
        .filter(|sum| sum.firm == FIRM)
        .collect();
    let net = |[bought, sold]: [u64; 2]| bought as i64 - sold as i64;
    let mut wrong = Vec::new();
    for (at, row) in quoter.quotes.iter().enumerate() {
        let quote = ours.iter().find(|quote| quote.symbol == row.symbol);
        let by_quotes = quote.map_or(0, |quote| net(quote.traded));
        let of_symbol = orders.iter().find(|sum| sum.symbol == row.symbol);
        let by_orders = of_symbol.map_or(0, |sum| net(sum.traded));
        let counted = quoter.priced.positions.get(at).copied();
        // Where quotes are orders, the exchange does not know which are the eye's.
        let is_same = match entry {
            QuoteEntry::MassQuotes => (row.position, row.eye) == (by_quotes, by_orders),
            QuoteEntry::Orders => by_quotes == 0 && row.position + row.eye == by_orders,
        };
        if !is_same || counted != Some(by_quotes + by_orders) {
            wrong.push(format!(
                "{}: the exchange has {by_quotes} contracts by quotes and {by_orders} by orders, the quoter {}, the eye {}, the fills \
                 {counted:?}",
                row.symbol, row.position, row.eye
            ));
        }
        if let Some(open) = quote.map(|quote| quote.open).filter(|open| *open != [0; 2]) {
            wrong.push(format!("{} is still quoted after the end: {open:?}", row.symbol));
        }
    }
    let hedged = orders.iter().find(|sum| sum.symbol == quoter.underlying);
    let hedged = hedged.map_or(0, |sum| net(sum.traded));
    if hedged != quoter.priced.underlying {
        wrong.push(format!(
            "{}: the exchange has {hedged} contracts of hedges, the fills {}",
            quoter.underlying, quoter.priced.underlying
        ));
    }
    // Prices are whole ticks: what both sides sum up is the same to the last digit that a double has.
    let size = |symbol: &str| match symbol == quoter.underlying {
        true => quoter.priced.underlying_size,
        false => 1.0,
    };
    let by_quotes: f64 = ours.iter().map(|quote| quote.cash).sum();
    let by_orders: f64 = orders.iter().map(|sum| sum.cash * size(&sum.symbol)).sum();
    let (cash, counted) = (by_quotes + by_orders, quoter.priced.cash);
    if (cash - counted).abs() > 1e-9 * cash.abs().max(counted.abs()) {
        wrong.push(format!(
            "the exchange has cash of {cash} points, the fills {counted}"
        ));
    }
    if let [first, .., last] = quoter.priced.memory_kib[..]
        && last > first + first / 10
    {
        wrong.push(format!(
            "the quoter grew from {first} KiB after a minute to {last} KiB"
        ));
    }
    let mut traded: u64 = ours.iter().map(|quote| quote.traded[0] + quote.traded[1]).sum();
    let options = orders.iter().filter(|sum| sum.symbol != quoter.underlying);
    let mut taken: u64 = options.map(|sum| sum.traded[0] + sum.traded[1]).sum();
    let mut quoted = ours.len();
    if entry == QuoteEntry::Orders {
        let by_eye = quoter.priced.eye_contracts.iter().sum();
        (traded, taken) = (taken.saturating_sub(by_eye), by_eye.min(taken));
        quoted = quoter.quotes.len();
    }
    println!(
        "exchange: {quoted} options quoted, {traded} contracts traded with our quotes, {taken} taken by the eye; positions and cash {}   ({:.1} s)",
        if wrong.is_empty() { "agree" } else { "DIFFER" },
        started.elapsed().as_secs_f64()
    );
    print!("{}", super::demo_summary(&quoter, args.verbose));
    if quoter.messages == 0 {
        wrong.push("no quote was sent".into());
    }
    if traded == 0 {
        wrong.push("nobody traded with a quote, so nothing was compared".into());
    }
    if taken == 0 {
        wrong.push("the eye took nothing, so it was not compared".into());
    }
    if quoter.unread_answers > 0 {
        wrong.push(format!("{} answers could not be read", quoter.unread_answers));
    }
    if let Some(failure) = &quoter.priced.failure {
        wrong.push(format!("pricing ended: {failure}"));
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Failure::check(wrong.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_options::edge::points;

    #[test]
    fn the_configuration_of_any_size_is_one() {
        let now = Nanos(1_795_392_000 * Nanos::SECOND);
        for options in [2, 16, 64, 512] {
            let config = Config::parse(&text(options, now).unwrap()).unwrap();
            assert_eq!(config.exchange.instrument.len(), options as usize + 1);
            assert!(config.quoter.is_some());
            let listed =
                tickwire_simulator::entry::listed(&config.exchange.instrument, config.market().price_max())
                    .unwrap();
            assert!(
                listed
                    .iter()
                    .skip(1)
                    .all(|l| l.delta_milli != 0 || points(l.start) < 10.0)
            );
        }
    }
}
