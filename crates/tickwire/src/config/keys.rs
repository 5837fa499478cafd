//! Every number and switch that `tickwire config` prints changes something: what the program is made of when
//! it is another one.

use std::fmt::Write;

use tickwire_market::{Currency, InstrumentId, PointValue, Price, Venue};
use toml::Value;

use super::Config;
use tickwire_simulator::entry;
use tickwire_venues::protocol::Protocol;

/// What is made of a configuration with every section that has numbers.
const WHOLE: &str = r#"
[order_entry]
[[order_entry.session]]
comp_id = "QUOTER"
firm = 1
heartbeat_s = 2
[[order_entry.protection]]
firm = 1
group = 1
window_ms = 1000
contracts = 200
trades = 5
percent = 300
both_sides = 7
[order_entry.ouch]
address = "127.0.0.1:1"
[[order_entry.ouch.user]]
username = "user"
firm_name = "FIRM"
firm = 3
[exchange.auctions]
opening = "09:30:00"
closing = "16:00:00"
no_cancel_s = 10
[exchange.breaks]
share = 0.5
[[exchange.instrument]]
symbol = "ESX6"
kind = "future"
price = "6900"
tick = "25"
expiry = "2026-12-18"
multiplier = 50
[[exchange.instrument]]
symbol = "EX C6900"
kind = "call"
underlying = "ESX6"
price = "500"
tick = "5"
strike = "6900"
expiry = "2026-12-18"
multiplier = 50
group = 1
delta = 0.5
[quoter]
comp_id = "QUOTER"
underlying = "ESX6"
[quoter.protection]
window_ms = 1000
fills = 3
contracts = 8000
delta = 10.0
[quoter.eye]
[quoter.eye.hedge]
"#;

/// Keys that what is made here does not show, and where they are read.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("receiver.receive_buffer", "intake.rs", "section.receive_buffer"),
    ("receiver.xdp_queues", "hook.rs", "section.xdp_queues"),
    ("receiver.filter", "hook.rs", "section.filter"),
    (
        "receiver.filter_statistics",
        "hook.rs",
        "section.filter_statistics",
    ),
    ("receiver.xdp_frames", "hook.rs", "section.xdp_frames"),
    ("receiver.line_wait_us", "wiring.rs", "c.line_wait_us"),
    ("receiver.request_timeout_ms", "wiring.rs", "c.request_timeout_ms"),
    ("receiver.request_attempts", "wiring.rs", "c.request_attempts"),
    ("receiver.buffer_packets", "wiring.rs", "c.buffer_packets"),
    ("backtest.fill", "strategy/backtest.rs", "section.fill"),
    (
        "backtest.feed_ns",
        "strategy/backtest/section.rs",
        "section.feed_ns",
    ),
    (
        "backtest.entry_ns",
        "strategy/backtest/section.rs",
        "section.entry_ns",
    ),
    (
        "backtest.cancel_ns",
        "strategy/backtest/section.rs",
        "section.cancel_ns",
    ),
    (
        "backtest.response_ns",
        "strategy/backtest/section.rs",
        "section.response_ns",
    ),
    ("backtest.maker_fee", "strategy/backtest.rs", "section.maker_fee"),
    ("backtest.taker_fee", "strategy/backtest.rs", "section.taker_fee"),
    (
        "backtest.point_value",
        "strategy/backtest.rs",
        "section.point_value",
    ),
    ("backtest.seed", "strategy/backtest.rs", "section.seed"),
    ("exchange.core", "venue.rs", "config.exchange.core"),
    ("exchange.seed", "venue/markets.rs", "seed: e.seed"),
    ("exchange.symbols", "venue/markets.rs", "e.symbols.0"),
    ("exchange.rate", "venue.rs", "e.rate.0"),
    ("exchange.clusters", "venue/markets.rs", "e.clusters.0"),
    ("exchange.duration_s", "venue.rs", "e.duration_s.0"),
    ("exchange.start_on_logon", "venue.rs", "exchange.start_on_logon"),
    (
        "exchange.stop_on_client_loss",
        "venue/clients.rs",
        "exchange.stop_on_client_loss",
    ),
    (
        "exchange.answer_bytes_per_s",
        "venue.rs",
        "exchange.answer_bytes_per_s",
    ),
    ("exchange.linger_s", "venue.rs", "exchange.linger_s"),
    ("exchange.kept_messages", "venue/markets.rs", "e.kept_messages"),
    (
        "order_entry.cancel_on_disconnect_tag",
        "trader.rs",
        "section.cancel_on_disconnect_tag",
    ),
    ("trader.core", "trader.rs", "config.trader.core"),
    ("trader.idle_us", "trader.rs", "config.trader.idle_us"),
    ("trader.lot", "trader.rs", "t.lot.0"),
    ("trader.send_stamps", "trader.rs", "config.trader.send_stamps"),
    ("trader.risk.max_order_qty", "settings.rs", "risk.max_order_qty"),
    ("trader.risk.price_band_bp", "settings.rs", "risk.price_band_bp"),
    (
        "trader.risk.max_orders_per_s",
        "settings.rs",
        "risk.max_orders_per_s",
    ),
    (
        "trader.risk.max_open_orders",
        "settings.rs",
        "risk.max_open_orders",
    ),
    ("trader.risk.max_position", "settings.rs", "risk.max_position"),
    ("trader.risk.max_orders", "trader.rs", "t.risk.max_orders"),
    (
        "trader.reconnects_max",
        "trader/sessions.rs",
        "trader.reconnects_max",
    ),
    ("trader.reconnect_ms", "trader/sessions.rs", "trader.reconnect_ms"),
    (
        "controls.reconcile_s",
        "trader/sessions.rs",
        "controls.reconcile_s",
    ),
    (
        "controls.clock_error_max_us",
        "controls.rs",
        "section.clock_error_max_us",
    ),
    ("watchdog.stall_ms", "watchdog.rs", "section.stall_ms"),
    ("watchdog.heartbeat_s", "watchdog.rs", "section.heartbeat_s"),
    ("quoter.core", "lib.rs", "section.core"),
    ("quoter.pricing_core", "pricing.rs", "section.pricing_core"),
    ("quoter.rehearse_us", "opening.rs", "section.rehearse_us"),
    (
        "quoter.volatility",
        "pricing/volatilities.rs",
        "section.volatility",
    ),
    ("quoter.rate", "pricer.rs", "section.rate"),
    (
        "quoter.reach_half_ticks",
        "pricing.rs",
        "section.reach_half_ticks",
    ),
    ("quoter.reprice_ms", "pricing.rs", "section.reprice_ms"),
    ("quoter.limits.size_max", "config.rs", "self.limits.size_max"),
    ("quoter.limits.price_max", "pricer.rs", "limits.price_max"),
    (
        "quoter.limits.reconnects_max",
        "opening.rs",
        "limits.reconnects_max",
    ),
    ("quoter.limits.reconnect_ms", "opening.rs", "limits.reconnect_ms"),
    ("quoter.limits.loss_max", "pricing.rs", "limits.loss_max"),
    (
        "quoter.market.vol_distance_max",
        "plausible.rs",
        "vol_distance_max",
    ),
    ("quoter.market.vol_min", "plausible.rs", "vol_min"),
    ("quoter.market.vol_max", "plausible.rs", "vol_max"),
    (
        "quoter.risk.mark_difference_max",
        "pricing.rs",
        "section.risk.mark_difference_max",
    ),
    ("daemon.", "daemon/", ""),
];

/// What is made of a configuration, as text.
fn made(c: &Config) -> String {
    let mut text = String::new();
    let mut say = |part: &dyn std::fmt::Debug| writeln!(text, "{part:?}").expect("a string has room");
    say(&entry::gateway(&c.order_entry, 4));
    say(&entry::protections(&c.order_entry));
    say(&c.order_entry.heartbeat_s_of(c.order_entry.trader_comp_id));
    say(&c.controls.of_trader());
    say(&c.controls.of_quotes(Price::from_raw(Price::ONE_RAW)));
    say(&entry::auctions(c.exchange.auctions.as_ref()));
    say(&entry::breaks(c.exchange.breaks.as_ref()));
    say(&entry::listed(&c.exchange.instrument, c.market().price_max()));
    say(&tickwire_simulator::venue::troubles_of(&c.market()));
    say(&tickwire_venues::receiver::books_config(
        &c.receiver,
        Venue::Nasdaq,
        tickwire_book::Depth::Aggregated,
    ));
    let quoter = c.quoter.as_ref().expect("there is one");
    let value = PointValue::unit(Currency::USD);
    let ticks = [
        Price::from_raw(25 * Price::ONE_RAW),
        Price::from_raw(5 * Price::ONE_RAW),
    ];
    say(&quoter.quoter(InstrumentId(1), (ticks, value), 2, Protocol::Mdp3));
    say(&c.order_entry.heartbeat_s_of(quoter.comp_id));
    let eye = quoter.eye.as_ref().expect("there is one");
    say(&eye.eye(InstrumentId(1), (ticks, value), &quoter.trigger, &quoter.market));
    text
}

/// Paths of all numbers and switches, an element of a list by the list's name.
fn leaves(value: &Value, path: &str, found: &mut Vec<(String, Vec<Step>)>, steps: &mut Vec<Step>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                steps.push(Step::Key(key.clone()));
                leaves(value, &path, found, steps);
                steps.pop();
            }
        }
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                steps.push(Step::At(at));
                leaves(value, path, found, steps);
                steps.pop();
            }
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {
            found.push((path.to_string(), steps.clone()));
        }
        Value::String(_) | Value::Datetime(_) => {}
    }
}

#[derive(Clone)]
enum Step {
    Key(String),
    At(usize),
}

fn at<'v>(mut value: &'v mut Value, steps: &[Step]) -> &'v mut Value {
    for step in steps {
        value = match step {
            Step::Key(key) => value.get_mut(key),
            Step::At(at) => value.get_mut(at),
        }
        .expect("it was there");
    }
    value
}

/// Other values of the same kind, near and far, some of which a check may refuse.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Integer(n) => [n + 1, n - 1, n * 2 + 10, n / 2].map(Value::Integer).into(),
        Value::Float(x) => [x * 0.5 + 0.001, x * 1.5 + 0.01, x + 1.0]
            .map(Value::Float)
            .into(),
        Value::Boolean(b) => vec![Value::Boolean(!b)],
        _ => Vec::new(),
    }
}

/// What stands in the files of that name of every crate; `None` where there is none.
fn source(file: &str) -> Option<String> {
    let root = tickwire_testdata::workspace();
    let folders = ["crates", "apps"].iter().flat_map(|folder| {
        let crates = std::fs::read_dir(root.join(folder)).expect("a folder of crates");
        crates.map(|entry| entry.expect("readable").path())
    });
    let texts: Vec<String> = folders
        .filter_map(|folder| std::fs::read_to_string(folder.join("src").join(file)).ok())
        .collect();
    (!texts.is_empty()).then(|| texts.concat())
}

#[test]
fn a_key_that_is_printed_changes_something() {
    let config = Config::parse(WHOLE).unwrap();
    let before = made(&config);
    let printed: Value = tickwire_console::settings::read(&config.to_toml()).unwrap();
    let mut keys = Vec::new();
    leaves(&printed, "", &mut keys, &mut Vec::new());
    assert!(keys.len() > 100, "{} keys", keys.len());
    let mut idle = Vec::new();
    for (path, steps) in keys {
        let elsewhere = ELSEWHERE
            .iter()
            .find(|(key, ..)| path == *key || (key.ends_with('.') && path.starts_with(key)));
        if let Some((_, file, word)) = elsewhere {
            let is_read = file.ends_with('/') || source(file).is_some_and(|text| text.contains(word));
            if !is_read {
                idle.push(format!("{path}: {file} does not read it as {word:?} any more"));
            }
            continue;
        }
        let mut value = printed.clone();
        let is_obeyed = others(at(&mut value, &steps)).into_iter().any(|other| {
            let mut value = printed.clone();
            *at(&mut value, &steps) = other;
            let text = toml::to_string(&value).expect("it was one");
            Config::parse(&text).is_ok_and(|config| made(&config) != before)
        });
        if !is_obeyed {
            idle.push(path);
        }
    }
    assert!(
        idle.is_empty(),
        "printed, and nothing is another for them; obey them, or say in ELSEWHERE where they are read: {idle:#?}"
    );
}
