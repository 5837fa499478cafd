//! `tickwire demo quoter`: an exchange with a future and a chain of options on it, a quoter, and what both
//! say compared.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::signal::StopFlag;

use tickwire::config::Config;
use tickwire::demo::{DemoArgs, OVERTIME_S, Side, watch};
use tickwire_console::failure::Failure;
use tickwire_control::results::{ExchangeResults, read_json};
use tickwire_quoterd::sample::{FIRM, text};
use tickwire_quoterd::{QuoteEntry, QuoterResults};
use tickwire_venues::values::{DurationS, Rate};

/// A demonstration in which there was nothing to compare is run once more, for so many seconds at least, in a
/// market that is so many times as calm: on a machine that has little time for it the eye comes too late for
/// nearly all that it sees.
const AGAIN: (f64, u32) = (30.0, 5);

pub(crate) fn run(args: &DemoArgs, stop: &StopFlag) -> Result<(), Failure> {
    let missing = run_once(args, stop, IfMissing::Tell)?;
    if missing.is_empty() {
        return Ok(());
    }
    let (least, calmer) = AGAIN;
    let again = DemoArgs {
        seconds: args.seconds.max(least),
        rate: (args.rate / calmer).max(1),
        ..args.clone()
    };
    eprintln!(
        "{}, in {} s: this machine has little time for it; once more, {} messages/s for {} s",
        missing.join("; "),
        args.seconds,
        again.rate,
        again.seconds
    );
    run_once(&again, stop, IfMissing::Fail).map(|_| ())
}

/// What becomes of a run in which something did not happen that was to be compared.
#[derive(Clone, Copy, PartialEq)]
enum IfMissing {
    /// The caller is told what; nothing is printed.
    Tell,
    /// It fails; but where the eye has sent orders and came too late with all of them, which is said.
    Fail,
}

/// Runs both sides to their end, and compares. What there was not to compare, for [`IfMissing::Tell`] alone.
fn run_once(args: &DemoArgs, stop: &StopFlag, if_missing: IfMissing) -> Result<Vec<String>, Failure> {
    tickwire::demo::prepare_folder(&args.dir, &["exchange.json", "quoter.json"])?;
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
    let watched = watch(
        &mut [&mut exchange, &mut quoter],
        config.exchange.duration_s.0,
        stop,
    );
    operator.end();
    watched?;
    conclude(args, started, if_missing)
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
        let thread = tickwire_runtime::affinity::beside("operator", move || {
            // Until the quoter listens, nobody answers; and an eye that is off stays so when it is told
            // of a heartbeat.
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
    let line = tickwire::demo::impairment(args)?;
    (c.exchange.line_a, c.exchange.line_b) = (line, line);
    c.exchange.start_on_logon = true;
    // A machine that is busy with something else takes its time until the quoter knows its instruments.
    (c.exchange.orders_min, c.exchange.overtime_s) = (1, OVERTIME_S);
    tickwire::demo::take_free_ports(&mut c)?;
    c.check().map_err(Failure::config)?;
    Ok(c)
}

/// Reads what both sides say, compares it, prints the report.
fn conclude(args: &DemoArgs, started: Instant, if_missing: IfMissing) -> Result<Vec<String>, Failure> {
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
    let agree = if wrong.is_empty() { "agree" } else { "DIFFER" };
    if quoter.messages == 0 {
        wrong.push("no quote was sent".into());
    }
    if quoter.unread_answers > 0 {
        wrong.push(format!("{} answers could not be read", quoter.unread_answers));
    }
    if let Some(failure) = &quoter.priced.failure {
        wrong.push(format!("pricing ended: {failure}"));
    }
    let mut missing = Vec::new();
    if traded == 0 {
        missing.push("nobody traded with a quote, so nothing was compared".to_owned());
    }
    if taken == 0 {
        missing.push("the eye took nothing, so it was not compared".to_owned());
    }
    if wrong.is_empty() && !missing.is_empty() && if_missing == IfMissing::Tell {
        return Ok(missing);
    }
    println!(
        "exchange: {quoted} options quoted, {traded} contracts traded with our quotes, {taken} taken by the eye; positions and cash {agree}   ({:.1} s)",
        started.elapsed().as_secs_f64()
    );
    print!("{}", tickwire_quoterd::demo_summary(&quoter, args.verbose));
    if taken == 0 && traded > 0 && quoter.eye_orders > 0 {
        println!(
            "note: the eye came too late with every order ({}), so it was not compared",
            quoter.eye_orders
        );
        missing.clear();
    }
    wrong.append(&mut missing);
    match wrong.is_empty() {
        true => Ok(missing),
        false => Err(Failure::check(wrong.join("; "))),
    }
}
