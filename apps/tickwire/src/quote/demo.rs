//! `tickwire demo quoter`: an exchange with a future and a chain of options on it, a quoter, and what both say compared.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tickwire_market::{Date, Nanos, Port, Price};
use tickwire_options::edge::{Rounding, price};
use tickwire_options::time::DayCount;
use tickwire_options::{Kind, Terms, black76};
use tickwire_runtime::affinity;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::signal::StopFlag;

use super::QuoterResults;
use crate::cli::DemoArgs;
use crate::config::{Config, DurationS, Rate};
use crate::demo::{Side, free_udp_port, watch};
use crate::failure::Failure;
use crate::protocol::Protocol;
use crate::results::{ExchangeResults, read_json};

/// The volatility of the market and of the quoter, who agree on it.
const VOL: f64 = 0.16;
const RATE: f64 = 0.04;
/// The future, as CME sends its price: a hundredth of an index point is one.
const FRONT: i64 = 690_000;
const STRIKE_STEP: i64 = 1_000;
/// The firm that quotes.
const FIRM: u32 = 1;

pub(crate) fn run(args: &DemoArgs, stop: &StopFlag) -> Result<(), Failure> {
    std::fs::create_dir_all(&args.dir).map_err(|e| {
        Failure::system(format!(
            "cannot create {}: {e}; give another folder with --dir",
            args.dir.display()
        ))
    })?;
    for stale in ["exchange.json", "quoter.json"] {
        let _ = std::fs::remove_file(args.dir.join(stale));
    }
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
    watch(&mut exchange, &mut quoter, config.exchange.duration_s.0, stop)?;
    conclude(&args.dir, started)
}

/// What both children get: a future, options at strikes around it, free ports.
fn demo_config(args: &DemoArgs) -> Result<Config, Failure> {
    let usage = |what: &'static str| move |e: String| Failure::config(format!("--{what}: {e}"));
    let options = args.symbols.clamp(2, 2_048) & !1;
    let now = Clock::calibrate_for(Duration::from_millis(1)).now();
    let mut c = Config::parse(&text(options, now)?).map_err(Failure::config)?;
    let cores = affinity::available_cores();
    c.exchange.core = cores.first().map_or(-1, |core| *core as i32);
    if let Some(quoter) = &mut c.quoter {
        quoter.core = cores.last().map_or(-1, |core| *core as i32);
    }
    c.exchange.seed = args.seed;
    c.exchange.duration_s = DurationS::try_from(args.seconds).map_err(usage("seconds"))?;
    c.exchange.rate = Rate::try_from(f64::from(args.rate)).map_err(usage("rate"))?;
    let line = crate::demo::impairment(args)?;
    (c.exchange.line_a, c.exchange.line_b) = (line, line);
    c.exchange.start_on_logon = true;
    for channel in &mut c.feed[0].channels {
        channel.renumber_groups(free_udp_port)?;
        for port in Port::ALL {
            if let Some(server) = channel.server_mut(port) {
                server.set_port(0);
            }
        }
    }
    c.order_entry.address.set_port(0);
    c.check().map_err(Failure::config)?;
    Ok(c)
}

/// The configuration, but for ports and rates.
pub(crate) fn text(options: u32, now: Nanos) -> Result<String, Failure> {
    use std::fmt::Write;
    let expiries = [30, 90].map(|days| Date::of_days((now.0 / Nanos::DAY) as u32 + days));
    let last = super::pricer::date(expiries[1]);
    let mut text = format!(
        "[quoter]\n\
         comp_id = \"QUOTER\"\n\
         underlying = \"ESX6\"\n\
         volatility = {VOL}\n\
         rate = {RATE}\n\
         size = 20\n\
         [quoter.trigger]\nfade_ticks = 2\nfade_ms = 250\n\
         [quoter.limits]\nlong_max = 100000\nshort_max = 100000\nmessages_per_s = 20000\nimprovements_per_s = 15000\n\
         [quoter.protection]\nwindow_ms = 1000\ncontracts = 800\n\
         [[quoter.terms]]\nedge = 6.0\nedge_relative = 0.002\nwidth_min = 10.0\nwidth_max = 400.0\nlean_delta = 0.02\n\
         [order_entry]\nexchange_comp_id = \"EXCHANGE\"\nanyone = false\n\
         [[order_entry.session]]\ncomp_id = \"QUOTER\"\nversion = \"FIX.4.4\"\nfirm = {FIRM}\nreset_on_logon = true\n\
         cancel_on_disconnect = true\n\
         [[order_entry.session]]\ncomp_id = \"RIVAL\"\nversion = \"FIX.4.4\"\nfirm = 2\nreset_on_logon = true\n\
         [[order_entry.protection]]\nfirm = {FIRM}\ngroup = 1\nwindow_ms = 1000\ncontracts = 2000\n\
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
            super::pricer::date(expiry),
            greeks.delta,
        );
    }
    let feed = Config::of_protocol(Protocol::Mdp3).feed;
    #[derive(serde::Serialize)]
    struct Feeds {
        feed: Vec<crate::channels::FeedConfig>,
    }
    let feeds = toml::to_string_pretty(&Feeds { feed })
        .map_err(|e| Failure::system(format!("a feed has no TOML form: {e}")))?;
    Ok(text + &feeds)
}

/// Reads what both sides say, compares it, prints the report.
fn conclude(dir: &Path, started: Instant) -> Result<(), Failure> {
    let file = |name: &str| -> PathBuf { dir.join(name) };
    let exchange: ExchangeResults = read_json(&file("exchange.json"))?;
    let quoter: QuoterResults = read_json(&file("quoter.json"))?;
    print!("{}", super::summary(&quoter));
    let ours: Vec<_> = exchange
        .quotes
        .iter()
        .filter(|quote| quote.firm == FIRM)
        .collect();
    let mut wrong = Vec::new();
    for quote in &ours {
        let held = quote.traded[0] as i64 - quote.traded[1] as i64;
        let rows = quoter.quotes.iter().enumerate();
        let own = rows.into_iter().find(|(_, row)| row.symbol == quote.symbol);
        let believed = own.map_or(0, |(_, row)| row.position);
        let counted = own.and_then(|(at, _)| quoter.priced.positions.get(at)).copied();
        if believed != held || counted != Some(held) {
            wrong.push(format!(
                "{}: the exchange has {held} contracts, the quoter {believed}, its fills {counted:?}",
                quote.symbol
            ));
        }
        if quote.open != [0; 2] {
            wrong.push(format!(
                "{} is still quoted after the end: {:?}",
                quote.symbol, quote.open
            ));
        }
    }
    let traded: u64 = ours.iter().map(|quote| quote.traded[0] + quote.traded[1]).sum();
    println!(
        "\nexchange: {} options quoted, {traded} contracts traded with our quotes; positions {}   ({:.1} s)",
        ours.len(),
        if wrong.is_empty() { "agree" } else { "DIFFER" },
        started.elapsed().as_secs_f64()
    );
    if quoter.messages == 0 {
        wrong.push("no mass quote was sent".into());
    }
    if traded == 0 {
        wrong.push("nobody traded with a quote, so nothing was compared".into());
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
            let listed = crate::entry::listed(&config.exchange.instrument, config.price_max()).unwrap();
            assert!(
                listed
                    .iter()
                    .skip(1)
                    .all(|l| l.delta_milli != 0 || points(l.start) < 10.0)
            );
        }
    }
}
