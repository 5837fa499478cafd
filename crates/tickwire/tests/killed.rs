//! A strategy's process that is killed (SIGKILL) leaves nothing at the venue: its stop order and its mass
//! quote go away with the connection. The test's program is the strategy's too: with arguments it is that,
//! without any it is the test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tickwire::prelude::*;
use tickwire_trading::strategy::Quote;

const PATIENCE: Duration = Duration::from_secs(90);

/// Keeps a stop order in the first instrument that has a market, and a quote in the second.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Both {
    #[serde(skip)]
    instruments: Vec<InstrumentId>,
}

/// So many hundredths of a price, in whole cents.
fn share(price: Price, hundredths: i64) -> Price {
    const CENT: i64 = 10_000_000;
    Price::from_raw(price.raw() / 100 * hundredths / CENT * CENT)
}

impl Strategy for Both {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::All]
    }

    fn on_start(&mut self, _: &mut Context<'_>) {
        self.instruments.reserve(2);
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        let (id, top) = (change.instrument, change.after);
        let (Some((bid, _)), Some((ask, _)), true) =
            (top.best(Side::Bid), top.best(Side::Ask), change.is_live())
        else {
            return;
        };
        if self.instruments.len() < 2 && !self.instruments.contains(&id) {
            self.instruments.push(id);
        }
        if self.instruments.first() == Some(&id) && ctx.open_orders().next().is_none() {
            let _ = ctx.buy_stop(id, 10, share(ask, 104));
        }
        let is_quoted = ctx
            .own_quote(id)
            .is_some_and(|quote| quote.is_open() || quote.cancel.is_some());
        if self.instruments.get(1) == Some(&id) && !is_quoted {
            let _ = ctx.mass_quote(&[Quote::new(id, 10, share(bid, 97), share(ask, 103))]);
        }
    }
}

/// A process that ends with its owner.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // It may be over.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(words);
    command
}

fn start(folder: &Path, word: &str, config: &Path) -> Guard {
    let complaints = std::fs::File::create(folder.join(format!("{word}-said"))).expect("a file");
    let child = program(&[word, "-c"])
        .arg(config)
        .stdout(Stdio::null())
        .stderr(complaints)
        .spawn();
    Guard(child.expect("the program starts"))
}

/// Open orders and quoted sides of the strategy, as the exchange has them.
fn live(desk: &Path) -> Option<[u64; 2]> {
    let socket = desk.to_str().expect("a path of text");
    let said = program(&["exchange", "--tell", "status", "--socket", socket])
        .output()
        .ok()?;
    let said: serde_json::Value = serde_json::from_slice(&said.stdout).ok()?;
    // Before its first logon nobody knows it.
    let clients = said["clients"].as_array()?;
    let own = clients.iter().find(|one| one["name"] == "TRADER");
    own.map_or(Some([0, 0]), |own| {
        Some([own["orders"].as_u64()?, own["quoted_sides"].as_u64()?])
    })
}

fn wait_for(folder: &Path, what: &str, mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        let said = || {
            ["exchange-said", "run-said"]
                .map(|file| std::fs::read_to_string(folder.join(file)).unwrap_or_default())
                .join("\n")
        };
        assert!(begun.elapsed() < PATIENCE, "{what} never came: {}", said());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn nothing_is_left_of_a_strategy_that_was_killed() {
    let folder = std::env::temp_dir().join(format!("tickwire-killed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let own = folder.join("own.toml");
    let limits = "[strategy]\n[trader.risk]\nprice_band_bp = 1000\n";
    std::fs::write(&own, limits).expect("a file");
    // A second of it leaves a configuration with ports that are free.
    let (own, dir) = (own.to_str().expect("text"), folder.to_str().expect("text"));
    let words = ["--seconds", "1", "--rate", "2000", "--symbols", "8", "--dir", dir];
    let tried = program(&["sim", "-c", own]).args(words).output();
    let tried = tried.expect("the program starts");
    let text = std::fs::read_to_string(folder.join("trade.toml"));
    let text = text.unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&tried.stderr)));
    let mut config: toml::Table = text.parse().expect("a configuration");
    let section = |config: &mut toml::Table, name: &str, key: &str, value: toml::Value| {
        let table = config[name].as_table_mut().expect("a section");
        table.insert(key.into(), value);
    };
    section(&mut config, "exchange", "core", (-1).into());
    section(&mut config, "exchange", "duration_s", 3600.0.into());
    section(&mut config, "exchange", "control", "desk".into());
    section(&mut config, "exchange", "stop_on_client_loss", false.into());
    section(&mut config, "trader", "core", (-1).into());
    section(&mut config, "trader", "wait", "poll".into());
    let path: PathBuf = folder.join("killed.toml");
    std::fs::write(&path, config.to_string()).expect("a file");
    let desk = folder.join("desk");
    let _exchange = start(&folder, "exchange", &path);
    wait_for(&folder, "the exchange", || live(&desk).is_some());
    for round in 0..2 {
        let mut strategy = start(&folder, "run", &path);
        wait_for(&folder, "a stop order and a quote", || {
            live(&desk).is_some_and(|[orders, sides]| orders >= 1 && sides == 2)
        });
        strategy.0.kill().expect("SIGKILL");
        strategy.0.wait().expect("it is over");
        wait_for(&folder, "an empty book", || live(&desk) == Some([0, 0]));
        println!("round {round}: nothing is left");
    }
    // What is left is of no use to anybody.
    let _ = std::fs::remove_dir_all(&folder);
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let words = ["exchange", "run", "sim", "trade"];
    if arguments
        .next()
        .is_some_and(|word| words.contains(&word.as_str()))
    {
        return tickwire::main::<Both>();
    }
    if std::env::args().any(|word| word == "--list") {
        println!("nothing_is_left_of_a_strategy_that_was_killed: test");
        return ExitCode::SUCCESS;
    }
    nothing_is_left_of_a_strategy_that_was_killed();
    println!("test nothing_is_left_of_a_strategy_that_was_killed ... ok");
    ExitCode::SUCCESS
}
