//! A market of options and a quoter on it, as the text of a configuration: for demonstrations, benchmarks and
//! tests.

use tickwire_console::failure::Failure;
use tickwire_market::{Date, Nanos, Price};
use tickwire_options::edge::{Rounding, price};
use tickwire_options::time::DayCount;
use tickwire_options::{Kind, Terms, black76};
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::protocol::Protocol;

/// The volatility of the market and of the quoter, who agree on it.
const VOL: f64 = 0.16;
const RATE: f64 = 0.04;
/// The future, as CME sends its price: a hundredth of an index point is one.
const FRONT: i64 = 690_000;
const STRIKE_STEP: i64 = 1_000;
/// The firm that quotes.
pub const FIRM: u32 = 1;

/// The configuration, but for ports and rates.
pub fn text(options: u32, now: Nanos) -> Result<String, Failure> {
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
    let feed = vec![FeedConfig::on_loopback(Protocol::Mdp3)];
    #[derive(serde::Serialize)]
    struct Feeds {
        feed: Vec<FeedConfig>,
    }
    let feeds = tickwire_console::settings::write(&Feeds { feed })
        .map_err(|e| Failure::system(format!("a feed has no TOML form: {e}")))?;
    Ok(text + &feeds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Config;
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
