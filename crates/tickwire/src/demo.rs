//! `tickwire demo`: starts an exchange and a trader, watches them, compares what they say, reports.
//!
//! The two children talk to the parent by one JSON object per line on their standard output ([`Notice`]) and
//! leave their results as files. A child dies with its parent (`PR_SET_PDEATHSIG`), a parent ends when a
//! child does.

use std::io::{BufRead, BufReader, IsTerminal};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tickwire_market::Port;
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::child::ChildGuard;
use tickwire_runtime::signal::StopFlag;

use crate::config::Config;
use crate::report;
use tickwire_console::failure::{Code, Failure};
use tickwire_control::notice::Notice;
use tickwire_control::results::{self, ExchangeResults, TraderResults};
use tickwire_node::settings::SessionSection;
use tickwire_quoterd::QuoteEntry;
use tickwire_simulator::settings::Impairment;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::values::{DurationS, Probability, Rate, Symbols};

/// The arguments of `tickwire demo`.
#[derive(clap::Args, Clone, Debug)]
pub struct DemoArgs {
    /// What to show
    #[arg(value_enum, default_value_t = DemoKind::Trader, value_name = "WHAT")]
    pub what: DemoKind,
    /// The feed between exchange and trader
    #[arg(long, value_enum, default_value_t = Protocol::Itch50, value_name = "P")]
    pub feed: Protocol,
    /// Length of the trading session in seconds
    #[arg(long, default_value_t = 15.0, value_name = "S")]
    pub seconds: f64,
    /// Market data messages per second
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    pub rate: u32,
    /// Number of instruments
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub symbols: u32,
    /// Share of packets lost on each line, independently (0.01 is 1 %)
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub loss: f64,
    /// Share of packets sent twice on each line
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub duplicate: f64,
    /// Share of packets delivered late on each line
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub reorder: f64,
    /// How the quoter enters its quotes
    #[arg(long, value_enum, default_value_t = QuoteEntry::MassQuotes, value_name = "HOW")]
    pub entry: QuoteEntry,
    /// Seed of order flow and impairments
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Folder for configuration, results and report
    #[arg(long, default_value = "tickwire-demo", value_name = "DIR")]
    pub dir: PathBuf,
    /// Show what the trader, or the quoter, has counted, too
    #[arg(short, long)]
    pub verbose: bool,
}

/// What `demo` shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum DemoKind {
    /// A trader that takes the best offer: books and orders compared
    Trader,
    /// A quoter of the options on a future: positions compared (--feed is CME's MDP 3.0; --symbols are the
    /// options)
    Quoter,
}

/// How long a child may take to end once the other side has: recovery and logout are over by then, and
/// results are written.
const CHILD_GRACE: Duration = Duration::from_secs(60);
/// How long a child may take to begin: on a machine that is busy with something else, that takes its time.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How long the other side has to say why it ends as well, after one has failed.
const REASON_PATIENCE: Duration = Duration::from_secs(1);
/// Of order entry: neither side is to be given up because it has no core for some seconds.
const HEARTBEAT_S: u32 = 30;
/// How long after the close the exchange says so again, for a trader that gets no core, seconds.
const LINGER_S: u32 = 60;
/// How long the close of a demonstration may wait for the first order or quote, seconds: without one nothing
/// was measured.
pub const OVERTIME_S: u32 = 60;

/// Runs both sides, compares what they say, prints and writes the report.
///
/// # Errors
/// Books or orders differ, or a side could not run.
pub fn run(args: &DemoArgs, stop: &StopFlag) -> Result<(), Failure> {
    run_with(args, &[args.feed], stop, |_| {})
}

/// The same with a configuration that `adjust` has changed, for a strategy in the place of the rule; and with
/// an exchange for each of these feeds, each with an order entry session of its own.
pub fn run_with(
    args: &DemoArgs,
    feeds: &[Protocol],
    stop: &StopFlag,
    adjust: impl FnOnce(&mut Config),
) -> Result<(), Failure> {
    for feed in feeds {
        tickwire_venues::wiring::check_published(*feed)?;
    }
    let stale = [
        "exchange.json",
        "trader.json",
        "books-exchange.txt",
        "books-trader.txt",
        "report.html",
    ];
    let mut config = demo_config(args, feeds)?;
    adjust(&mut config);
    let started = Instant::now();
    let mut venues: Vec<(Config, PathBuf)> = Vec::new();
    let mut exchanges = Vec::new();
    for nth in 0..config.feed.len() {
        let dir = match nth {
            0 => args.dir.clone(),
            later => args.dir.join(format!("venue-{}", later + 1)),
        };
        prepare_folder(&dir, &stale)?;
        let mut venue = venue_config(&config, nth);
        let mut exchange = Side::start("exchange", &venue, &dir)?;
        exchange.take_ports(&mut venue)?;
        config.feed[nth] = venue.feed[0].clone();
        match nth {
            0 => config.order_entry.address = venue.order_entry.address,
            later => config.session[later - 1].order_entry.address = venue.order_entry.address,
        }
        venues.push((venue, dir));
        exchanges.push(exchange);
    }
    let mut trader = Side::start("trade", &config, &args.dir)?;
    eprintln!(
        "exchange (pid {}, core {}) and trader (pid {}, core {}): {} instruments, {} messages/s for {} s, two lines on {}",
        exchanges[0].child.id(),
        config.exchange.core,
        trader.child.id(),
        config.trader.core,
        config.exchange.symbols.0,
        config.exchange.rate.0,
        config.exchange.duration_s.0,
        config.feed[0].interface,
    );
    for (exchange, (venue, _)) in exchanges.iter().zip(&venues).skip(1) {
        eprintln!(
            "a further exchange (pid {}) for {}",
            exchange.child.id(),
            venue.feed[0].name()
        );
    }
    let mut sides: Vec<&mut Side> = exchanges.iter_mut().collect();
    sides.push(&mut trader);
    watch(&mut sides, config.exchange.duration_s.0, stop)?;
    let mut faults = Vec::new();
    for (nth, (venue, dir)) in venues.iter().enumerate() {
        faults.extend(conclude(args, nth, (venue, dir), started)?);
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::check(faults.join("; "))),
    }
}

/// What one of several exchanges runs by.
fn venue_config(config: &Config, nth: usize) -> Config {
    let mut venue = config.clone();
    venue.feed = vec![config.feed[nth].clone()];
    if let Some(further) = nth.checked_sub(1) {
        venue.order_entry = config.session[further].order_entry.clone();
        venue.exchange.seed = venue.exchange.seed.wrapping_add(nth as u64);
    }
    venue.session.clear();
    venue.strategies.clear();
    venue
}

/// The configuration both children get: free ports, two cores where there are two.
fn demo_config(args: &DemoArgs, feeds: &[Protocol]) -> Result<Config, Failure> {
    let usage = |what: &'static str| move |e: String| Failure::config(format!("--{what}: {e}"));
    let mut c = Config::of_protocols(feeds);
    c.controls.for_a_demo();
    let cores = Cores::count().usable();
    let (first, last) = (
        cores.first().copied().unwrap_or(0),
        cores.last().copied().unwrap_or(0),
    );
    c.exchange.core = first as i32;
    c.trader.core = last as i32;
    c.exchange.seed = args.seed;
    c.exchange.duration_s = DurationS::try_from(args.seconds).map_err(usage("seconds"))?;
    c.exchange.rate = Rate::try_from(f64::from(args.rate)).map_err(usage("rate"))?;
    c.exchange.symbols = Symbols::try_from(f64::from(args.symbols)).map_err(usage("symbols"))?;
    c.exchange.start_on_logon = true;
    c.exchange.stop_on_client_loss = true;
    // Whoever loses the other says so and ends: nobody starts it again.
    c.trader.reconnects_max = 0;
    c.order_entry.heartbeat_s = HEARTBEAT_S;
    c.exchange.linger_s = LINGER_S;
    (c.exchange.orders_min, c.exchange.overtime_s) = (1, OVERTIME_S);
    let line = impairment(args)?;
    (c.exchange.line_a, c.exchange.line_b) = (line, line);
    for nth in 0..c.feed.len() {
        let feed = &mut c.feed[nth];
        if matches!(feed.protocol(), Protocol::Itch50 | Protocol::Uqdf) {
            let number = (u64::from(std::process::id()) + nth as u64 * 50_000_000) % 100_000_000;
            feed.session = Some(format!("TW{number:08}"));
        }
        if nth > 0 {
            let name = format!("{}-{}", feed.venue.name(), nth + 1);
            feed.name = Some(name.clone());
            c.session.push(SessionSection {
                name: Some(name.clone()),
                feeds: vec![name],
                send: None,
                order_entry: c.order_entry.clone(),
            });
        }
    }
    take_free_ports(&mut c)?;
    c.check().map_err(Failure::config)?;
    Ok(c)
}

/// The folder of a demonstration, without what an earlier one has left there.
pub fn prepare_folder(dir: &Path, stale: &[&str]) -> Result<(), Failure> {
    tickwire_runtime::files::create_folders(dir).map_err(|e| {
        Failure::system(format!(
            "cannot create {}: {e}; give another folder with --dir",
            dir.display()
        ))
    })?;
    for name in stale {
        let _ = std::fs::remove_file(dir.join(name));
    }
    Ok(())
}

/// Multicast groups with ports that are free, and servers that take any.
pub fn take_free_ports(c: &mut Config) -> Result<(), Failure> {
    for channel in c.feed.iter_mut().flat_map(|feed| &mut feed.channels) {
        channel.renumber_groups(free_udp_port)?;
        for port in Port::ALL {
            if let Some(server) = channel.server_mut(port) {
                server.set_port(0);
            }
        }
    }
    let further = c.session.iter_mut().map(|session| &mut session.order_entry);
    for order_entry in further.chain([&mut c.order_entry]) {
        order_entry.address.set_port(0);
    }
    Ok(())
}

/// What the network does to each line.
pub fn impairment(args: &DemoArgs) -> Result<Impairment, Failure> {
    let usage = |what: &'static str| move |e: String| Failure::config(format!("--{what}: {e}"));
    Ok(Impairment {
        loss: Probability::try_from(args.loss).map_err(usage("loss"))?,
        duplicate: Probability::try_from(args.duplicate).map_err(usage("duplicate"))?,
        reorder: Probability::try_from(args.reorder).map_err(usage("reorder"))?,
    })
}

/// A port for datagrams that nobody has at the moment, and that the kernel gives to no socket which did not
/// ask for it (Linux: those from 32,768 on): whoever is told of it finds it free when he starts, and again.
///
/// # Errors
/// The system has none.
pub fn free_udp_port() -> Result<u16, Failure> {
    const FIRST: u32 = 15_000;
    const COUNT: u32 = 17_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let bound = |port: u16| UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
    let mut ports = (0..COUNT).map(|_| {
        // Other programs that look now begin elsewhere, those of neighbouring numbers far away.
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let at = std::process::id().wrapping_mul(10_507).wrapping_add(nth) % COUNT;
        (FIRST + at) as u16
    });
    if let Some(port) = ports.find(|port| bound(*port).is_ok()) {
        return Ok(port);
    }
    let any = bound(0).and_then(|s| s.local_addr()).map(|a| a.port());
    any.map_err(|e| {
        Failure::system(format!(
            "cannot bind a UDP port on 127.0.0.1: {e}; is the loopback interface up?"
        ))
    })
}

/// One child process.
pub struct Side {
    name: &'static str,
    /// Its process: ended when this goes.
    pub child: ChildGuard,
    notices: Receiver<Notice>,
}

impl Side {
    /// Starts this program's command of that name with the configuration, which is written into the folder.
    ///
    /// # Errors
    /// The file cannot be written, or the process not be started.
    pub fn start(name: &'static str, config: &Config, dir: &Path) -> Result<Side, Failure> {
        let own = std::env::current_exe().map_err(|e| {
            Failure::system(format!(
                "cannot find this program's own file to start the {name}: {e}"
            ))
        })?;
        Side::start_of(&own, name, config, dir)
    }

    /// The same of another program, for one that has not these commands itself.
    ///
    /// # Errors
    /// As [`Side::start`].
    pub fn start_of(
        program: &Path,
        name: &'static str,
        config: &Config,
        dir: &Path,
    ) -> Result<Side, Failure> {
        let mut command = Command::new(program);
        command.arg(name);
        Side::start_command(command, name, config, dir)
    }

    /// The same of a command that is begun: the configuration and what a side's command takes come behind it.
    ///
    /// # Errors
    /// As [`Side::start`].
    pub fn start_command(
        mut command: Command,
        name: &'static str,
        config: &Config,
        dir: &Path,
    ) -> Result<Side, Failure> {
        let path = dir.join(format!("{name}.toml"));
        tickwire_runtime::files::write(&path, config.to_toml())
            .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?;
        command.arg("--config").arg(&path).arg("--results").arg(dir);
        command.arg("--child-of").arg(std::process::id().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = ChildGuard::spawn(&mut command)
            .map_err(|e| Failure::system(format!("cannot start the {name} process: {e}")))?;
        let stdout = child.child_mut().stdout.take().expect("piped above");
        let (send, notices) = channel();
        let hear = move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Ok(notice) = serde_json::from_str(&line)
                    && send.send(notice).is_err()
                {
                    return;
                }
            }
        };
        tickwire_runtime::affinity::beside("notices", hear)
            .map_err(|e| Failure::system(format!("no thread to hear the {name} process by: {e}")))?;
        Ok(Side { name, child, notices })
    }

    /// Waits until an exchange listens, and takes its ports into the configuration of the other side.
    pub fn take_ports(&mut self, config: &mut Config) -> Result<(), Failure> {
        match self.next_notice(START_PATIENCE)? {
            Notice::Listening { order_entry, servers } => {
                config.order_entry.address.set_port(order_entry);
                for (name, number) in servers {
                    for port in Port::ALL.into_iter().filter(|port| port.name() == name) {
                        if let Some(server) = config.feed[0].channels[0].server_mut(port) {
                            server.set_port(number);
                        }
                    }
                }
                Ok(())
            }
            other => Err(Failure::system(format!(
                "the exchange said {other:?} before it was listening"
            ))),
        }
    }

    fn next_notice(&mut self, patience: Duration) -> Result<Notice, Failure> {
        match self.notices.recv_timeout(patience) {
            Ok(Notice::Failed { message }) => Err(Failure::system(format!("the {}: {message}", self.name))),
            Ok(notice) => Ok(notice),
            Err(RecvTimeoutError::Timeout) => Err(Failure::system(format!(
                "the {} did not start within {patience:?}",
                self.name
            ))),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait_for(Duration::from_secs(1)).ok().flatten();
                let status = status.map_or("no exit code yet".into(), |s| describe(&s));
                Err(Failure::system(format!(
                    "the {} ended before it was ready ({status})",
                    self.name
                )))
            }
        }
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        // An error here means that the child cannot be waited for any more: it is gone.
        self.child.try_wait().ok().flatten()
    }

    /// Why it failed, once it has ended: everything it said is waited for.
    fn last_words(&mut self) -> Option<String> {
        let deadline = Instant::now() + REASON_PATIENCE;
        let mut reason = None;
        while let Ok(notice) = self
            .notices
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            if let Notice::Failed { message } = notice {
                reason = Some(message);
            }
        }
        reason
    }

    /// The newest progress, and the reason of a failure.
    pub fn drain(&mut self) -> (Option<Notice>, Option<String>) {
        let (mut newest, mut reason) = (None, None);
        for notice in self.notices.try_iter() {
            match notice {
                Notice::Failed { message } => reason = Some(message),
                other => newest = Some(other),
            }
        }
        (newest, reason)
    }
}

fn describe(status: &ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        _ => "ended".into(),
    }
}

/// Shows progress until all children have ended well; ends the run when one does not. The last of them is who
/// trades.
pub fn watch(sides: &mut [&mut Side], duration_s: f64, stop: &StopFlag) -> Result<(), Failure> {
    let terminal = std::io::stderr().is_terminal();
    let mut shown = Instant::now();
    let mut first_end: Option<Instant> = None;
    let mut reasons: Vec<String> = Vec::new();
    let (mut messages, mut orders, mut seconds) = (0, 0, 0.0);
    loop {
        if let Some(reason) = stop.reason() {
            return Err(Failure::interrupted(format!("{reason}; both sides were stopped")));
        }
        for side in &mut *sides {
            let (newest, reason) = side.drain();
            if let Some(Notice::Progress {
                seconds: s,
                messages: m,
                orders: o,
            }) = newest
            {
                if side.name == "exchange" {
                    (seconds, messages) = (s, m);
                } else {
                    orders = o;
                }
            }
            reasons.extend(reason.map(|r| format!("the {}: {r}", side.name)));
        }
        let every = if terminal {
            Duration::from_millis(200)
        } else {
            Duration::from_secs(5)
        };
        if shown.elapsed() >= every {
            shown = Instant::now();
            let end = if terminal { '\r' } else { '\n' };
            eprint!(
                "{seconds:5.1} s of {duration_s:.0}   {messages:>9} messages   {orders:>6} orders  {end}"
            );
        }
        let ends: Vec<Option<ExitStatus>> = sides.iter_mut().map(|side| side.ended()).collect();
        for (which, end) in ends.iter().enumerate() {
            if let Some(status) = end
                && !status.success()
            {
                // Often one ends because the other does: both reasons are told.
                let name = sides[which].name;
                for side in &mut *sides {
                    let _ = side.child.wait_for(REASON_PATIENCE);
                    reasons.extend(side.last_words().map(|r| format!("the {}: {r}", side.name)));
                }
                let code = if status.code() == Some(Code::Interrupted as i32) {
                    Code::Interrupted
                } else {
                    Code::PeerLost
                };
                reasons.insert(0, format!("the {name} ended early ({})", describe(status)));
                reasons.dedup();
                return Err(Failure {
                    code,
                    message: reasons.join("; "),
                });
            }
        }
        match ends.iter().flatten().count() {
            all if all == ends.len() => {
                if terminal {
                    eprintln!();
                }
                return Ok(());
            }
            0 => {}
            _ => {
                let since = *first_end.get_or_insert_with(Instant::now);
                if since.elapsed() > CHILD_GRACE {
                    return Err(Failure::peer_lost(
                        "one side ended, the other did not follow and was stopped",
                    ));
                }
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Reads both sides' results of one exchange, compares them, prints and writes the report; what is wrong.
fn conclude(
    args: &DemoArgs,
    nth: usize,
    (config, dir): (&Config, &Path),
    started: Instant,
) -> Result<Vec<String>, Failure> {
    let which = match nth {
        0 => String::new(),
        later => format!("-{}", later + 1),
    };
    let of_trader = |name: &str, end: &str| args.dir.join(format!("{name}{which}.{end}"));
    let exchange: ExchangeResults = results::read_json(&dir.join("exchange.json"))?;
    let trader: TraderResults = results::read_json(&of_trader("trader", "json"))?;
    let books = results::compare_books(&dir.join("books-exchange.txt"), &of_trader("books-trader", "txt"))?;
    let orders = results::compare_orders(&exchange.orders, &trader.orders);
    let run = report::Run {
        config,
        exchange: &exchange,
        trader: &trader,
        books: &books,
        orders: &orders,
    };
    print!("{}", run.to_text(args.verbose));
    let html = dir.join("report.html");
    tickwire_runtime::files::write(&html, run.to_html())
        .map_err(|e| Failure::system(format!("cannot write {}: {e}", html.display())))?;
    let shown = html.canonicalize().unwrap_or(html);
    println!(
        "\nreport: {}   ({:.1} s)",
        shown.display(),
        started.elapsed().as_secs_f64()
    );
    Ok(run.faults())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_are_no_others_and_none_is_given_twice() {
        let ports = (0..50).map(|_| free_udp_port().expect("there are free ones"));
        let ports: BTreeSet<u16> = ports.collect();
        assert_eq!(ports.len(), 50);
        let is_low = |port: &u16| (15_000..32_768).contains(port);
        assert!(ports.iter().all(is_low), "{ports:?}");
    }
}
