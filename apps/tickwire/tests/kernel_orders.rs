//! Orders and quotes that leave past the kernel, between two network namespaces: what a strategy arms on each
//! venue that has fields at fixed places, and the bursts of a quoter.
//!
//! Needs root; without it the tests say so, and with `TICKWIRE_ROOT_TESTS=1` they fail.

mod common;
#[path = "common/hosts.rs"]
mod hosts;
#[path = "common/namespaces.rs"]
mod namespaces;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Folder, run};
use hosts::{ended_well, exchange, path, results, start, trading};
use namespaces::namespaces;
use serde_json::Value;
use tickwire::config::Config;
use tickwire::prelude::{
    ArmEnd, ArmedEvent, Awaited, BookChange, Context, NotSent, Strategy, Subscription, Ticket,
};
use tickwire_market::{Price, Side};
use tickwire_node::live::{Hosting, Live};
use tickwire_node::trader::run_rule;
use tickwire_runtime::signal::StopFlag;

const TRADER: &str = include_str!("../../../examples/demo.toml");

/// Buys what somebody offers at the best price or below, by orders that lie armed at the hook.
struct Armer {
    ends: Arc<Ends>,
}

/// How armed orders ended, and that none was refused.
#[derive(Default)]
struct Ends {
    fired: AtomicU64,
    others: AtomicU64,
}

impl Strategy for Armer {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::symbol("AAPL")]
    }

    fn pre_arms(&self) -> bool {
        true
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange<'_>) {
        let instrument = change.instrument;
        let Some((offer, _)) = change.after.best(Side::Ask) else {
            return;
        };
        if ctx.armed().is_some() || !change.is_live() || !ctx.is_trading(instrument) {
            return;
        }
        let order = Ticket::limit(Side::Bid, instrument, 100, offer).immediate_or_cancel();
        let awaited = Awaited::added(instrument, Side::Ask).between(Price::ZERO, offer);
        match ctx.arm(order, awaited) {
            Ok(_) | Err(NotSent::Check(_) | NotSent::NoSession) => {}
            Err(why) => panic!("{why}"),
        }
    }

    fn on_armed(&mut self, _: &mut Context<'_>, event: &ArmedEvent) {
        match event.end {
            ArmEnd::Fired => &self.ends.fired,
            ArmEnd::TakenBack | ArmEnd::Gap => &self.ends.others,
            ArmEnd::NoRoom | ArmEnd::Refused(_) => panic!("{event:?}"),
        }
        .fetch_add(1, Ordering::SeqCst);
    }
}

/// Every order that left by itself is the exchange's, accepted, filled or over as the strategy has it; those
/// that were taken back never came there.
fn armed_on(venue: &str, example: &str) {
    let Some(pair) = namespaces("twarm") else { return };
    let folder = Folder::new(&format!("path-armed-{venue}"));
    let changes = [
        ("[trader]\n", "[trader]\nsend = \"delegated\"\n"),
        // In the driver, a virtual one sends nothing to a peer without a program of its own.
        ("[receiver]\n", "[receiver]\nxdp_mode = \"generic\"\n"),
    ];
    let text = trading(&pair, example, "xdp", (5, 20), &changes);
    let config = folder.file("trade.toml", text);
    let mut exchange = exchange(
        &pair,
        &folder,
        &["-c", path(&config), "--results", path(&folder.0)],
    );
    let ends = Arc::new(Ends::default());
    let (own, left_in) = (Arc::clone(&ends), folder.0.clone());
    let traded = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            pair.enter(1).expect("entered");
            let config = Config::load(&config)?;
            let hosting = Hosting {
                name: "armer".to_string(),
                strategy: Armer { ends: own },
                feeds: None,
                sessions: None,
                on_every_event: false,
                ends_with_session: false,
                max_orders: 100_000,
                risk: config.node().risk_of(&config.trader.risk),
            };
            let (rule, stop) = (Live::hosting(vec![hosting]), StopFlag::new());
            run_rule(&config.node(), Some(&left_in), false, &stop, rule)
        });
        thread.join().expect("no panic")
    });
    traded.unwrap_or_else(|why| panic!("{why}"));
    ended_well(&mut exchange, &folder, "exchange.said");
    let orders = |name| {
        let results = results(&folder.0, name);
        results["orders"].as_object().expect("orders").clone()
    };
    let (theirs, ours) = (orders("exchange.json"), orders("trader.json"));
    let count = |ends: &AtomicU64| ends.load(Ordering::SeqCst) as usize;
    let (fired, others) = (count(&ends.fired), count(&ends.others));
    println!("{venue}: {fired} left by themselves, {others} did not");
    assert!(fired > 0, "{others} did not leave");
    assert_eq!(theirs.len(), fired, "what left came there, and nothing else");
    for (id, order) in &theirs {
        assert_eq!(ours.get(id), Some(order), "order {id}");
    }
    assert_eq!(ours.len(), fired + others);
}

#[test]
fn orders_that_a_strategy_arms_leave_by_themselves_and_are_the_exchanges() {
    armed_on("nasdaq", TRADER);
}

/// The same of NYSE, whose prices have a scale of their own for each instrument.
#[test]
fn orders_armed_on_nyse_leave_by_themselves_and_are_the_exchanges() {
    let (before, after) = TRADER.split_once("[[feed]]").expect("a feed");
    let (_, after) = after.split_once("[receiver]").expect("the receiver follows");
    let nyse = r#"[[feed]]
venue = "nyse"
protocol = "xdp"
interface = "127.0.0.1"
[[feed.channel]]
name = "1"
live = { a = "239.192.78.31:27431", b = "239.192.78.32:27432" }
retransmission = { a = "239.192.78.33:27433" }
snapshot = { a = "239.192.78.34:27434" }
replay = "127.0.0.1:27435"

[receiver]"#;
    armed_on("nyse", &format!("{before}{nyse}{after}"));
}

/// A quoter whose bursts are longer than a segment: each leaves as a train of them, and is booked by one
/// call. What traded is what the exchange says.
#[test]
fn the_bursts_of_a_quoter_leave_as_trains_and_trade_what_the_exchange_says() {
    let Some(pair) = namespaces("twquo") else { return };
    let folder = Folder::new("path-quotes");
    // A configuration of these days' options, which the demonstration writes.
    let dir = folder.0.join("demo");
    let demo = [
        "demo",
        "quoter",
        "--symbols",
        "64",
        "--rate",
        "4000",
        "--seconds",
        "1",
        "--dir",
        path(&dir),
    ];
    // In a second perhaps nothing trades, which it calls a failure: only its configuration is wanted.
    run(&demo);
    let left = std::fs::read_to_string(dir.join("quote.toml")).expect("the demonstration has left it");
    for backend in ["socket", "xdp"] {
        let mut config: toml::Table = left.parse().expect("a configuration");
        for section in ["exchange", "quoter"] {
            config[section]["core"] = (-1).into();
        }
        config["exchange"]["duration_s"] = 5.0.into();
        let quoter = config["quoter"].as_table_mut().expect("a section");
        quoter.insert("send".into(), "delegated".into());
        // One at a time, which another one's folder is not.
        quoter.remove("control");
        let address = pair.address(0).to_string();
        let text = config
            .to_string()
            .replace("interface = \"127.0.0.1\"", "interface = \"veth0\"")
            .replace("127.0.0.1", &address)
            .replace("backend = \"socket\"", &format!("backend = {backend:?}"));
        let config = folder.file(&format!("quote-{backend}.toml"), text);
        let results_in = folder.0.join(backend);
        std::fs::create_dir_all(&results_in).expect("a folder");
        let options = ["-c", path(&config), "--results", path(&results_in)];
        let mut exchange = exchange(&pair, &folder, &options);
        let quote = [&["quote"], &options[..]].concat();
        let mut quoter = start(&pair, 1, &folder, "quote.said", &quote);
        let words = ended_well(&mut quoter, &folder, "quote.said");
        ended_well(&mut exchange, &folder, "exchange.said");
        assert!(words.contains("and is booked afterwards"), "{words}");
        let is_by_ring = words.contains("on veth0 by AF_XDP: XDP ");
        assert_eq!(is_by_ring, backend == "xdp", "{words}");
        let counted = words.lines().find(|line| line.starts_with("order entry: "));
        let counted = counted.unwrap_or_else(|| panic!("{words}"));
        println!("{backend}: {counted}");
        let mut numbers = counted.split(' ').filter_map(|word| word.parse::<u64>().ok());
        let mut next = || numbers.next().expect("a number");
        let (delegated, segments, bookings) = (next(), next(), next());
        assert!(delegated > 20 && segments > delegated, "no trains: {counted}");
        assert!(
            bookings <= delegated,
            "more than one booking for a burst: {counted}"
        );
        let [theirs, ours] = ["exchange.json", "quoter.json"].map(|name| results(&results_in, name));
        let net = |traded: &Value| traded[0].as_i64().expect("bought") - traded[1].as_i64().expect("sold");
        let theirs = theirs["quotes"].as_array().expect("quotes");
        let (mut traded, quotes) = (0, ours["quotes"].as_array().expect("quotes"));
        for quote in quotes {
            let of_exchange = theirs.iter().find(|row| row["symbol"] == quote["symbol"]);
            let position = of_exchange.map_or(0, |row| net(&row["traded"]));
            assert_eq!(quote["position"].as_i64(), Some(position), "{backend}: {quote}");
            traded += of_exchange.map_or(0, |row| {
                row["traded"][0].as_u64().expect("bought") + row["traded"][1].as_u64().expect("sold")
            });
        }
        assert_eq!(quotes.len(), 64);
        println!("{backend}: {traded} contracts traded");
    }
}
