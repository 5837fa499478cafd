//! A strategy's process that is killed (SIGKILL), that stands still (SIGSTOP) or that never returns from a
//! callback leaves nothing at the venue: its stop order and its mass quote go away with the connection, by
//! missed heartbeats, or by the watchdog, at every venue that it trades at; and what a venue does not cancel
//! at first is cancelled again. The test's program is the
//! strategy's and the watchdog's too: with their words as arguments it is those, else it is the tests.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use std::sync::{Arc, Mutex};

use serde::Deserialize;
use tickwire::prelude::*;
use tickwire_fix::{
    CancelKind, CompId, ExecType, ExecutionReport, Id, Message, NewOrderSingle, OrdStatus, OrderCancelReject,
    OrderCancelRequest, Reason, Role, SessionConfig, cxl_rej_reason,
};
use tickwire_fixengine::settings::Setup;
use tickwire_fixengine::{Application, Refusal, Silent};
use tickwire_trading::strategy::Quote;

const PATIENCE: Duration = Duration::from_secs(90);

/// Keeps a stop order in the first instrument that has a market, and a quote in the second.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Both {
    /// Once there is such a file, the next callback never returns.
    #[serde(default)]
    hang: Option<PathBuf>,
    /// No quote.
    #[serde(default)]
    order_only: bool,
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
        while self.hang.as_ref().is_some_and(|file| file.exists()) {
            std::thread::sleep(Duration::from_secs(3600));
        }
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
        let is_quoted = self.order_only
            || ctx
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

/// Starts the program; what it says goes into a file.
fn start(folder: &Path, word: &str, config: &Path) -> Guard {
    let named = config.file_stem().expect("a file").to_str().expect("text");
    let file = folder.join(format!("{named}-{word}-said"));
    let file = std::fs::File::create(file).expect("a file");
    let child = program(&[word, "-c"])
        .arg(config)
        .stdout(file.try_clone().expect("the same file"))
        .stderr(file)
        .spawn();
    Guard(child.expect("the program starts"))
}

/// What everybody in this folder said.
fn said(folder: &Path) -> String {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with("-said")))
        .collect();
    files.sort();
    let text = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    files.iter().map(text).collect::<Vec<_>>().join("\n")
}

fn signal(which: &str, to: &Guard) {
    let sent = Command::new("kill")
        .args(["-s", which, &to.0.id().to_string()])
        .status();
    assert!(sent.is_ok_and(|sent| sent.success()), "it is there");
}

fn wait_for(folder: &Path, what: &str, mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < PATIENCE, "{what} never came: {}", said(folder));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A simulated exchange and what it can be asked.
struct Desk {
    socket: PathBuf,
    _exchange: Guard,
}

impl Desk {
    fn tell(&self, words: &[&str]) -> Option<Vec<u8>> {
        let socket = self.socket.to_str().expect("a path of text");
        let mut command = program(&["exchange", "--socket", socket, "--tell"]);
        let said = command.args(words).output().ok()?;
        said.status.success().then_some(said.stdout)
    }

    fn client(&self, name: &str) -> Option<serde_json::Value> {
        // Asked without a program: this is a question of every few milliseconds.
        let question = serde_json::json!({ "do": "status" });
        let said = tickwire_control::client::ask_exchange(&self.socket, &question).ok()?;
        let own = said["clients"].as_array()?.iter().find(|one| one["name"] == name);
        // Before its first logon nobody knows it.
        Some(own.cloned().unwrap_or_default())
    }

    /// Open orders and quoted sides of the strategy, as the exchange has them.
    fn live(&self) -> Option<[u64; 2]> {
        let own = self.client("TRADER")?;
        let count = |what: &str| own[what].as_u64().unwrap_or(0);
        Some([count("orders"), count("quoted_sides")])
    }

    fn has_both(&self) -> bool {
        self.live()
            .is_some_and(|[orders, sides]| orders >= 1 && sides == 2)
    }

    fn is_empty(&self) -> bool {
        self.live() == Some([0, 0])
    }
}

fn insert(config: &mut toml::Table, section: &str, key: &str, value: impl Into<toml::Value>) {
    let table = config[section].as_table_mut().expect("a section");
    table.insert(key.into(), value.into());
}

fn table(text: &str) -> toml::Value {
    toml::Value::Table(text.parse().expect("a table"))
}

/// A folder with a configuration that has ports which are free.
struct Setting {
    folder: PathBuf,
    config: toml::Table,
}

impl Setting {
    fn new(name: &str, feeds: &[&str]) -> Setting {
        let folder = std::env::temp_dir().join(format!("tickwire-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let own = folder.join("own.toml");
        let limits = "[strategy]\n[trader.risk]\nprice_band_bp = 1000\n";
        std::fs::write(&own, limits).expect("a file");
        // A second of it leaves the configuration. The close would wait a minute for an order.
        let (own, dir) = (own.to_str().expect("text"), folder.to_str().expect("text"));
        let mut command = program(&["sim", "-c", own, "--seconds", "1", "--rate", "2000"]);
        command.args(["--symbols", "8", "--dir", dir]);
        for feed in feeds {
            command.args(["--feed", feed]);
        }
        let tried = command.output().expect("the program starts");
        let text = std::fs::read_to_string(folder.join("trade.toml"));
        let text = text.unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&tried.stderr)));
        let mut config: toml::Table = text.parse().expect("a configuration");
        for (key, value) in [("core", (-1).into()), ("stop_on_client_loss", false.into())] {
            insert(&mut config, "exchange", key, toml::Value::clone(&value));
        }
        insert(&mut config, "exchange", "duration_s", 3600.0);
        insert(&mut config, "trader", "core", -1);
        insert(&mut config, "trader", "wait", "poll");
        Setting { folder, config }
    }

    /// Once there is such a file, the strategy's next callback never returns.
    fn hang(&self) -> PathBuf {
        self.folder.join("hang")
    }

    /// Starts the exchange that publishes the feed of this place, with the order entry that serves it.
    fn exchange(&self, place: usize, sessions: &[&str]) -> Desk {
        let mut config = self.config.clone();
        let feed = config["feed"].as_array().expect("feeds")[place].clone();
        config.insert("feed".into(), vec![feed].into());
        if let Some(further) = config.remove("session")
            && place > 0
        {
            let section = &further.as_array().expect("sessions")[place - 1];
            config.insert("order_entry".into(), section["order_entry"].clone());
        }
        let sessions: Vec<toml::Value> = sessions.iter().map(|text| table(text)).collect();
        if !sessions.is_empty() {
            insert(&mut config, "order_entry", "session", sessions);
        }
        let socket = self.folder.join(format!("desk-{place}"));
        insert(&mut config, "exchange", "control", socket.to_str().expect("text"));
        insert(&mut config, "exchange", "seed", 1 + place as i64);
        config.remove("strategies");
        let path = self.write(&format!("venue-{place}.toml"), &config);
        let desk = Desk {
            _exchange: start(&self.folder, "exchange", &path),
            socket,
        };
        wait_for(&self.folder, "the exchange", || desk.live().is_some());
        desk
    }

    fn write(&self, name: &str, config: &toml::Table) -> PathBuf {
        let path = self.folder.join(name);
        std::fs::write(&path, config.to_string()).expect("a file");
        path
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // What is left is of no use to anybody.
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

fn nothing_is_left_of_a_strategy_that_was_killed() {
    let setting = Setting::new("killed", &[]);
    let folder = &setting.folder;
    let desk = setting.exchange(0, &[]);
    let path = setting.write("killed.toml", &setting.config);
    for round in 0..2 {
        let mut strategy = start(folder, "run", &path);
        wait_for(folder, "a stop order and a quote", || desk.has_both());
        strategy.0.kill().expect("SIGKILL");
        strategy.0.wait().expect("it is over");
        wait_for(folder, "an empty book", || desk.is_empty());
        println!("round {round}: nothing is left");
    }
}

/// The venue keeps what a lost connection leaves, and cancels what 2.4 heartbeats were not heard of.
fn nothing_is_left_of_a_strategy_that_hangs_once_its_heartbeats_are_missed() {
    let mut setting = Setting::new("hangs", &[]);
    let hang = setting.hang();
    insert(&mut setting.config, "order_entry", "heartbeat_s", 1);
    let own = format!("hang = {:?}", hang.to_str().expect("text"));
    setting.config.insert("strategy".into(), table(&own));
    let session = "comp_id = \"TRADER\"\nversion = \"FIX.4.4\"\nfirm = 1\nheartbeat_s = 1\n\
                   reset_on_logon = true\ncancel_on_disconnect = false\ncancel_on_missed_heartbeats = true";
    let desk = setting.exchange(0, &[session]);
    let path = setting.write("hangs.toml", &setting.config);
    for (round, fault) in ["SIGSTOP", "a callback that never returns"]
        .into_iter()
        .enumerate()
    {
        let strategy = start(&setting.folder, "run", &path);
        wait_for(&setting.folder, "a stop order and a quote", || desk.has_both());
        match round {
            0 => signal("STOP", &strategy),
            _ => std::fs::write(&hang, "").expect("a file"),
        }
        wait_for(&setting.folder, "an empty book", || desk.is_empty());
        let reasons = || -> Vec<String> {
            let said = said(&setting.folder);
            // After 2.4 heartbeats, and what a busy machine adds.
            let is_reason = |line: &&str| {
                let (_, behind) = line
                    .split_once("client TRADER: heartbeats missed, nothing heard for ")
                    .unwrap_or_default();
                let seconds = behind.split(' ').next().map(str::parse::<f64>);
                seconds.is_some_and(|seconds| seconds.is_ok_and(|seconds| seconds >= 2.4))
            };
            said.lines().filter(is_reason).map(str::to_owned).collect()
        };
        wait_for(&setting.folder, "the reason", || reasons().len() == 1 + round);
        let reasons = reasons();
        let cancelled = "1 open orders and 1 quoted instruments cancelled";
        assert!(reasons[round].contains(cancelled), "{fault}: {reasons:?}");
        println!("{fault}: {}", reasons[round].trim());
    }
}

/// Two venues that do nothing by themselves for a minute and a half, a strategy at each in one process, and
/// a watchdog beside it: it cancels at both when the process stands still or hangs, and the process itself
/// does when the feed of one of them is silent.
fn what_is_live_at_two_venues_goes_when_the_process_hangs_or_one_of_the_feeds_is_silent() {
    let mut setting = Setting::new("two-venues", &["itch50", "pitch"]);
    let (folder, hang) = (setting.folder.clone(), setting.hang());
    let feeds = setting.config["feed"].as_array().expect("feeds").clone();
    let mut strategies = Vec::new();
    for (place, feed) in feeds.iter().enumerate() {
        let feed = feed
            .get("name")
            .unwrap_or(&feed["venue"])
            .as_str()
            .expect("a name");
        strategies.push(table(&format!(
            "name = \"own-{place}\"\nfeeds = [{feed:?}]\nrisk = {{ price_band_bp = 1000 }}\n\
             [parameters]\nhang = {:?}",
            hang.to_str().expect("text")
        )));
    }
    setting.config.insert("strategies".into(), strategies.into());
    setting.config.remove("strategy");
    insert(&mut setting.config, "order_entry", "heartbeat_s", 40);
    insert(&mut setting.config, "controls", "beat", "beat");
    insert(&mut setting.config, "trader", "silence_ms", 400);
    let further = setting.config["session"].as_array_mut().expect("sessions");
    insert(
        further[0].as_table_mut().expect("a session"),
        "order_entry",
        "heartbeat_s",
        40,
    );
    let trader = "comp_id = \"TRADER\"\nversion = \"FIX.4.4\"\nfirm = 1\nheartbeat_s = 40\n\
                  reset_on_logon = true\ncancel_on_disconnect = false\ncancel_on_missed_heartbeats = false";
    let dog = "comp_id = \"WATCHDOG\"\nversion = \"FIX.4.4\"\nfirm = 1\ncancels_firm = true\n\
               reset_on_logon = true";
    let desks = [0, 1].map(|place| setting.exchange(place, &[trader, dog]));
    let path = setting.write("two.toml", &setting.config);
    let _dog = start(&folder, "watchdog", &path);
    wait_for(&folder, "the watchdog at both venues", || {
        let is_on = |desk: &Desk| {
            desk.client("WATCHDOG")
                .is_some_and(|own| own["logged_on"] == true)
        };
        desks.iter().all(is_on)
    });
    let both_live = || desks.iter().all(Desk::has_both);
    let both_empty = || desks.iter().all(Desk::is_empty);
    let stalls = || said(&folder).matches("and has not turned for").count();

    let strategy = start(&folder, "run", &path);
    wait_for(&folder, "a stop order and a quote at both venues", both_live);
    signal("STOP", &strategy);
    wait_for(&folder, "empty books at both venues", both_empty);
    wait_for(&folder, "what the watchdog says of each venue", || {
        let heard = said(&folder);
        let second = feeds[1]["name"].as_str().expect("a name");
        let done = ["order_entry", second].map(|name| format!("{name}: the venue has cancelled everything"));
        heard.contains("is there and has not turned for") && done.iter().all(|done| heard.contains(done))
    });
    println!("SIGSTOP: nothing is left at either venue");

    // It takes up where it stood; then it hangs by itself.
    signal("CONT", &strategy);
    wait_for(
        &folder,
        "a stop order and a quote at both venues again",
        both_live,
    );
    let before = stalls();
    std::fs::write(&hang, "").expect("a file");
    wait_for(&folder, "empty books at both venues", both_empty);
    assert!(stalls() > before, "{}", said(&folder));
    println!("a callback that never returns: nothing is left at either venue");
    drop(strategy);
    std::fs::remove_file(&hang).expect("ours");

    // Another one, which turns; one of its two feeds falls silent.
    let _strategy = start(&folder, "run", &path);
    wait_for(&folder, "a stop order and a quote at both venues", both_live);
    desks[1].tell(&["lose", "4000000000"]).expect("it does");
    wait_for(&folder, "empty books at both venues", both_empty);
    let heard = said(&folder);
    assert!(
        heard.contains("what is open is cancelled, and nothing is sent until packets come again"),
        "{heard}"
    );
    println!("a silent feed: nothing is left at either venue");
}

/// A venue that refuses the first request to cancel an order, as one that knows its number, hears nothing of
/// the second, and obeys the third.
struct Obstinate {
    order: Option<NewOrderSingle>,
    is_over: bool,
    /// What the requests were numbered.
    requests: Arc<Mutex<Vec<Id>>>,
}

impl Obstinate {
    fn report(
        &self,
        ctx: &mut tickwire_fixengine::Context<'_>,
        exec_type: ExecType,
        [id, orig]: [Id; 2],
    ) -> Result<(), Refusal> {
        let order = self.order.as_ref().ok_or(Refusal::Silently)?;
        let report = ExecutionReport {
            order_id: Id::from_number(7),
            cl_ord_id: id,
            orig_cl_ord_id: orig,
            exec_id: Id::from_number(ctx.now().0 / 1_000),
            exec_type,
            ord_status: match self.is_over {
                true => OrdStatus::Canceled,
                false => OrdStatus::New,
            },
            leaves_qty: if self.is_over { Qty(0) } else { order.qty },
            transact_time: ctx.now(),
            cause: None,
            ..ExecutionReport::of(order)
        };
        ctx.send(ExecutionReport::MSG_TYPE, |e, stamp| {
            report.encode(e, stamp);
            Ok(())
        })?;
        Ok(())
    }
}

impl Application for Obstinate {
    fn from_app(
        &mut self,
        ctx: &mut tickwire_fixengine::Context<'_>,
        message: &Message<'_>,
    ) -> Result<(), Refusal> {
        match message.msg_type() {
            b"D" => {
                let order = NewOrderSingle::decode(message).map_err(Refusal::Field)?;
                self.order = Some(order);
                self.report(ctx, ExecType::New, [order.cl_ord_id, Id::EMPTY])
            }
            b"F" => {
                let request = OrderCancelRequest::decode(message).map_err(Refusal::Field)?;
                let names = [request.cl_ord_id, request.orig_cl_ord_id];
                let nth = {
                    let mut requests = self.requests.lock().expect("nobody panicked");
                    requests.push(names[0]);
                    requests.len()
                };
                match nth {
                    1 => {
                        let refused = OrderCancelReject {
                            order_id: Id::from_number(7),
                            cl_ord_id: names[0],
                            orig_cl_ord_id: names[1],
                            ord_status: OrdStatus::New,
                            response_to: CancelKind::Cancel,
                            reason: Some(cxl_rej_reason::DUPLICATE_CL_ORD_ID),
                            text: Reason::EMPTY,
                        };
                        ctx.send(OrderCancelReject::MSG_TYPE, |e, _| {
                            refused.encode(e);
                            Ok(())
                        })?;
                        Ok(())
                    }
                    2 => Ok(()),
                    _ => {
                        self.is_over = true;
                        self.report(ctx, ExecType::Canceled, names)
                    }
                }
            }
            b"H" => {
                let id = self.order.as_ref().map_or(Id::EMPTY, |order| order.cl_ord_id);
                self.report(ctx, ExecType::OrderStatus, [id, Id::EMPTY])
            }
            _ => Err(Refusal::UnsupportedMessageType),
        }
    }
}

fn what_the_venue_does_not_cancel_at_first_is_cancelled_again() {
    let id = |text: &str| CompId::new(text.as_bytes()).expect("a CompID");
    let requests: Arc<Mutex<Vec<Id>>> = Arc::default();
    let venue = Obstinate {
        order: None,
        is_over: false,
        requests: requests.clone(),
    };
    let terms = SessionConfig::new(Role::Acceptor, id("EXCHANGE"), id("TRADER"));
    let listening = Setup::listening(terms, "127.0.0.1:0".parse().expect("an address"));
    let venue = tickwire_fixengine::start(vec![listening], venue, Arc::new(Silent)).expect("it listens");

    let mut setting = Setting::new("obstinate", &[]);
    insert(&mut setting.config, "exchange", "start_on_logon", false);
    setting
        .config
        .insert("strategy".into(), table("order_only = true"));
    let desk = setting.exchange(0, &[]);
    let address = venue.addresses()[0].to_string();
    insert(&mut setting.config, "order_entry", "address", address);
    let path = setting.write("obstinate.toml", &setting.config);
    let _strategy = start(&setting.folder, "run", &path);
    let heard = |words: &str| said(&setting.folder).contains(words);
    wait_for(&setting.folder, "the order", || {
        let (tell, told) = std::sync::mpsc::channel();
        venue.caller().call(move |venue: &mut Obstinate, _| {
            let _ = tell.send(venue.order.is_some());
        });
        told.recv().unwrap_or(false)
    });
    desk.tell(&["lose", "4000000000"]).expect("it does");
    wait_for(&setting.folder, "the confirmation", || {
        heard("the venue has confirmed: none of 1 orders is open any more")
    });
    let mut requests = requests.lock().expect("nobody panicked").clone();
    assert_eq!(requests.len(), 3);
    requests.sort_unstable_by_key(Id::to_number);
    requests.dedup();
    assert_eq!(requests.len(), 3, "a number of its own for each");
    drop(venue.stop());
}

/// What `tickwire watchdog -c FILE` does.
fn watchdog() -> ExitCode {
    let path = std::env::args_os().nth(3).map(PathBuf::from).expect("a file");
    let stop = tickwire_runtime::signal::StopFlag::install().expect("signals can be caught");
    let ended = tickwire::config::Config::load(&path)
        .and_then(|config| tickwire_node::watchdog::run(&config.node(), &stop));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.code as u8)
        }
    }
}

const TESTS: [(&str, fn()); 4] = [
    (
        "what_the_venue_does_not_cancel_at_first_is_cancelled_again",
        what_the_venue_does_not_cancel_at_first_is_cancelled_again,
    ),
    (
        "nothing_is_left_of_a_strategy_that_was_killed",
        nothing_is_left_of_a_strategy_that_was_killed,
    ),
    (
        "nothing_is_left_of_a_strategy_that_hangs_once_its_heartbeats_are_missed",
        nothing_is_left_of_a_strategy_that_hangs_once_its_heartbeats_are_missed,
    ),
    (
        "what_is_live_at_two_venues_goes_when_the_process_hangs_or_one_of_the_feeds_is_silent",
        what_is_live_at_two_venues_goes_when_the_process_hangs_or_one_of_the_feeds_is_silent,
    ),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("exchange" | "run" | "sim" | "trade") => return tickwire::main::<Both>(),
        Some("watchdog") => return watchdog(),
        _ => {}
    }
    let is_listing = words.iter().any(|word| word == "--list");
    let wanted: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    for (name, test) in TESTS {
        if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        if is_listing {
            println!("{name}: test");
            continue;
        }
        test();
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}
