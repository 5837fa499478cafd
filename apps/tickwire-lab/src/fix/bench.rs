//! `tickwire fix bench`: NewOrderSingle out, ExecutionReport back, over loopback, both sides whole sessions
//! with their stores in files, beside a bare ping-pong of as many bytes over the same kind of connection in
//! the same run.
//!
//! Rounds take turns, so that what disturbs the machine disturbs both. Every report must answer its order,
//! else no figure is shown. A regression here is one of every order.

use std::hint::black_box;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tickwire_fix::{Again, Event, Id, Role, SessionId, Store, StoreFailed, tag};
use tickwire_lab::{Histogram, Table, format_ns};
use tickwire_market::Nanos;
use tickwire_runtime::alloc;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::tcp::{Received, TcpListener, TcpStream};
use tickwire_runtime::wait::{WaitStrategy, Waiter};

use super::{console, ended, failure, load, quiet};
use crate::cli::FixBenchArgs;
use tickwire_console::failure::Failure;
use tickwire_fixengine::settings::Wanted;
use tickwire_fixengine::store;
use tickwire_fixengine::{Engine, Error, Flow, Handler, Table as Sessions};

/// Orders before each round's first that counts.
const WARM_UP: u64 = 200;
/// Messages of the store's measurement.
const STORED: u64 = 200_000;
/// Messages of its measurement one by one, and how far they are apart.
const STORED_APART: u64 = 20_000;
const APART_NS: u64 = 10 * Nanos::MICRO;
/// Times that a store is brought to the disk in each round of its measurement.
const SYNCED: u64 = 100;

/// Where the round trips of one kind go.
struct Series {
    name: &'static str,
    store: bool,
    all: Histogram,
    /// The median of each round.
    medians: Vec<u64>,
    /// Blocks from the heap on the trader's thread after the warm-up, in all rounds.
    allocations: u64,
}

/// `tickwire fix bench`.
pub(crate) fn run(args: &FixBenchArgs, stop: &StopFlag) -> Result<(), Failure> {
    let folder = std::env::temp_dir().join(format!("tickwire-fix-bench-{}", std::process::id()));
    tickwire_runtime::files::create_folders(&folder)
        .map_err(|e| Failure::system(format!("cannot make {}: {e}", folder.display())))?;
    let done = measure(args, &folder, stop);
    // What is left behind is in the system's folder for that.
    let _ = std::fs::remove_dir_all(&folder);
    done
}

fn measure(args: &FixBenchArgs, folder: &Path, stop: &StopFlag) -> Result<(), Failure> {
    let cores: Vec<Option<usize>> = match args.cores[..] {
        [trader, venue] => vec![Some(trader), Some(venue)],
        [] => vec![None, None],
        _ => {
            return Err(Failure::config(
                "--cores needs two: of the side that sends orders and of the other, like 0,1",
            ));
        }
    };
    for (wait, name) in [(WaitStrategy::Spin, "spin"), (WaitStrategy::Poll, "block")] {
        if args.wait.as_ref().is_some_and(|w| w != name) {
            continue;
        }
        let bench = Bench {
            wait,
            name,
            cores: [cores[0], cores[1]],
            orders: args.orders,
            folder,
        };
        bench.run(args.rounds, stop)?;
    }
    stores(folder)
}

struct Bench<'b> {
    wait: WaitStrategy,
    name: &'static str,
    cores: [Option<usize>; 2],
    orders: u64,
    folder: &'b Path,
}

impl Bench<'_> {
    fn run(&self, rounds: usize, stop: &StopFlag) -> Result<(), Failure> {
        let series = |name, store| Series {
            name,
            store,
            all: Histogram::new(),
            medians: Vec::new(),
            allocations: 0,
        };
        let mut bare = series("bare TCP", false);
        let mut sessions = [
            series("FIX, store in a file", true),
            series("FIX, store in memory", false),
        ];
        let mut lengths = (0, 0);
        for round in 0..rounds {
            for one in &mut sessions {
                lengths = self.session_round(round, one, stop)?;
            }
            let histogram = self.bare_round(lengths)?;
            bare.medians.push(histogram.at_quantile(0.5));
            bare.all.add(&histogram);
        }
        let (order, report) = lengths;
        let title = format!(
            "{} round trips of {order} + {report} bytes, {}, {rounds} rounds in turns",
            bare.all.count(),
            self.name
        );
        let named: Vec<(&str, &Histogram)> = std::iter::once(&bare)
            .chain(&sessions)
            .map(|s| (s.name, &s.all))
            .collect();
        print!(
            "{}",
            Table::latencies(&title, &named).to_text(tickwire_console::terminal::width())
        );
        for one in &sessions {
            let over = |a: u64, b: u64| match a >= b {
                true => format_ns(a - b),
                false => format!("-{}", format_ns(b - a)),
            };
            let difference = |quantile: f64| {
                let (own, bare) = (one.all.at_quantile(quantile), bare.all.at_quantile(quantile));
                over(own, bare)
            };
            let pairs = one.medians.iter().zip(&bare.medians);
            let mut rounds: Vec<i64> = pairs.map(|(a, b)| *a as i64 - *b as i64).collect();
            rounds.sort_unstable();
            let middle = rounds[rounds.len() / 2];
            println!(
                "{} over bare: p50 {}, p99 {}, p99.9 {}; median of the rounds' p50 {} ns, least {} ns; {} heap blocks after start-up",
                one.name,
                difference(0.5),
                difference(0.99),
                difference(0.999),
                middle,
                rounds[0],
                one.allocations
            );
        }
        println!();
        Ok(())
    }

    fn config(&self, role: &str, round: usize, store: bool, rest: &str) -> Result<PathBuf, Failure> {
        let core = self.cores[usize::from(role == "acceptor")];
        let core = core.map_or(String::new(), |core| format!("ThreadCore={core}\n"));
        let store = match store {
            true => format!(
                "FileStorePath={role}-{}-{round}\nFileStoreMegabytes=16\n",
                self.name
            ),
            false => String::new(),
        };
        let (sender, target) = match role {
            "acceptor" => ("VENUE", "TRADER"),
            _ => ("TRADER", "VENUE"),
        };
        let text = format!(
            "[DEFAULT]\nConnectionType={role}\nUseDataDictionary=N\nHeartBtInt=30\nReconnectInterval=1\nWaitStrategy={}\n{core}{store}\
             [SESSION]\nBeginString=FIX.4.4\nSenderCompID={sender}\nTargetCompID={target}\nResetOnLogon=Y\n{rest}",
            self.name
        );
        let path = self.folder.join(format!("{role}.cfg"));
        tickwire_runtime::files::write(&path, text)
            .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?;
        Ok(path)
    }

    fn session_round(
        &self,
        round: usize,
        series: &mut Series,
        stop: &StopFlag,
    ) -> Result<(usize, usize), Failure> {
        let path = self.config(
            "acceptor",
            round,
            series.store,
            "SocketAcceptPort=0\nAllowedRemoteAddresses=127.0.0.1\n",
        )?;
        let mut acceptor = quiet(load(&path, Wanted::Only(Role::Acceptor))?)?;
        let port = acceptor.addresses()[0].port();
        let host = format!("SocketConnectHost=127.0.0.1\nSocketConnectPort={port}\n");
        let path = self.config("initiator", round, series.store, &host)?;
        let mut initiator = quiet(load(&path, Wanted::Only(Role::Initiator))?)?;
        let mut trader = Trader::new(self.orders + WARM_UP);
        let mut venue = Venue::default();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| ended(acceptor.run(&mut venue, stop)));
            let own = ended(initiator.run(&mut trader, stop));
            let other = other
                .join()
                .unwrap_or_else(|_| Err(Failure::system("the venue's thread has panicked")));
            own.and(other)
        })?;
        if trader.answered != self.orders + WARM_UP || trader.wrong > 0 {
            return Err(Failure::check(format!(
                "{} of {} orders were answered, {} of them with another's number",
                trader.answered,
                self.orders + WARM_UP,
                trader.wrong
            )));
        }
        let clock = &initiator.clock;
        let mut histogram = Histogram::new();
        for ticks in &trader.ticks[WARM_UP as usize..] {
            histogram.record(clock.span_ns(*ticks));
        }
        series.medians.push(histogram.at_quantile(0.5));
        series.all.add(&histogram);
        series.allocations += trader.allocations;
        Ok((venue.order_len, trader.report_len))
    }

    /// As many bytes both ways by the same sockets and waits, and nothing else.
    fn bare_round(&self, (out, back): (usize, usize)) -> Result<Histogram, Failure> {
        let system = |e: tickwire_runtime::NetError| Failure::system(e.to_string());
        let mut listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).map_err(system)?;
        let address = listener
            .local_addr()
            .map_err(|e| Failure::system(e.to_string()))?;
        let count = self.orders + WARM_UP;
        let mut near = TcpStream::connect(address, std::time::Duration::from_secs(5)).map_err(system)?;
        let mut far = loop {
            if let Ok(Some(stream)) = listener.accept() {
                break stream;
            }
        };
        let clock = Clock::calibrate();
        let mut histogram = Histogram::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                self.pin(1);
                let mut waiter = Waiter::new(self.wait);
                waiter.watch(&far);
                (0..count)
                    .all(|_| pass(&mut far, &mut waiter, out) && far.send(&[b'r'; 4096][..back]).is_ok())
            });
            self.pin(0);
            let mut waiter = Waiter::new(self.wait);
            waiter.watch(&near);
            for n in 0..count {
                let begin = tsc();
                if near.send(&[b'o'; 4096][..out]).is_err() || !pass(&mut near, &mut waiter, back) {
                    return;
                }
                if n >= WARM_UP {
                    histogram.record(clock.span_ns(tsc() - begin));
                }
            }
        });
        match histogram.count() == self.orders {
            true => Ok(histogram),
            false => Err(Failure::system("the bare connection was lost")),
        }
    }

    fn pin(&self, side: usize) {
        if let Some(core) = self.cores[side]
            && let Err(e) = tickwire_runtime::affinity::Cores::count().pin(core)
        {
            eprintln!("warning: {e}");
        }
    }
}

/// So many round trips of as many bytes as an order and a report over loopback, and nothing else; what a
/// session is measured beside.
pub(super) fn bare(
    blocks: bool,
    cores: [Option<usize>; 2],
    orders: u64,
    lengths: (usize, usize),
) -> Result<Histogram, Failure> {
    let (wait, name) = match blocks {
        true => (WaitStrategy::Poll, "block"),
        false => (WaitStrategy::Spin, "spin"),
    };
    let bench = Bench {
        wait,
        name,
        cores,
        orders,
        folder: Path::new(""),
    };
    bench.bare_round(lengths)
}

/// Waits for so many bytes; `false` when the connection is gone.
fn pass(stream: &mut TcpStream, waiter: &mut Waiter, len: usize) -> bool {
    let (mut buffer, mut have) = ([0; 4096], 0);
    while have < len {
        waiter.wait(Nanos::SECOND);
        match stream.recv(&mut buffer) {
            Ok(Received::Bytes(bytes)) => have += bytes.len(),
            Ok(Received::Nothing) => {}
            Ok(Received::Closed) | Err(_) => return false,
        }
    }
    true
}

/// Sends an order, waits for its report, sends the next.
struct Trader {
    orders: u64,
    sent: u64,
    answered: u64,
    wrong: u64,
    begin: u64,
    /// Of every round trip.
    ticks: Vec<u64>,
    report_len: usize,
    allocations: u64,
}

impl Trader {
    fn new(orders: u64) -> Trader {
        Trader {
            orders,
            sent: 0,
            answered: 0,
            wrong: 0,
            begin: 0,
            ticks: Vec::with_capacity(orders as usize),
            report_len: 0,
            allocations: 0,
        }
    }

    #[inline]
    fn send(&mut self, now: Nanos, id: SessionId, table: &mut Sessions) {
        self.begin = tsc();
        self.sent += 1;
        let number = self.sent;
        // A session that is gone is seen by what is missing in the end.
        let _ = table.session_mut(id).send(now, b"D", Again::Resend, |e, _| {
            e.text(tag::CL_ORD_ID, Id::from_number(1_000_000_000 + number).as_bytes());
            e.text(1, b"ACCOUNT-0042");
            e.char(21, b'1');
            e.unsigned(tag::ORDER_QTY, 100 + number % 900);
            e.char(tag::ORD_TYPE, b'2');
            e.price(tag::PRICE, price(number));
            e.char(tag::SIDE, b'1');
            e.text(tag::SYMBOL, b"AAPL");
            e.char(tag::TIME_IN_FORCE, b'0');
            e.text(tag::TRANSACT_TIME, b"20261122-09:30:00.000");
            e.text(100, b"XNAS");
            e.text(207, b"XNAS");
        });
    }
}

fn price(number: u64) -> tickwire_market::Price {
    tickwire_market::Price::from_raw(187_000_000_000 + (number % 100) as i64 * 10_000_000)
}

impl Handler for Trader {
    #[inline]
    fn on_event(&mut self, now: Nanos, id: SessionId, event: &Event, table: &mut Sessions) {
        match event {
            Event::LoggedOn { .. } => self.send(now, id, table),
            Event::Message { .. } => {
                let end = tsc();
                let Some(message) = table.session(id).message() else {
                    return;
                };
                self.report_len = message.bytes().len();
                let answers = message
                    .find(tag::CL_ORD_ID)
                    .and_then(|f| message.unsigned(f).ok());
                self.wrong += u64::from(answers != Some(1_000_000_000 + self.sent));
                self.answered += 1;
                self.ticks.push(end - self.begin);
                if self.answered == WARM_UP {
                    alloc::arm(alloc::OnAllocation::Count);
                }
                if self.answered == self.orders {
                    self.allocations = alloc::disarm().allocations;
                    return;
                }
                self.send(now, id, table);
            }
            _ => {}
        }
    }

    fn turn(&mut self, _: Nanos, _: &mut Engine) -> Result<Flow, Error> {
        Ok(if self.answered == self.orders {
            Flow::End
        } else {
            Flow::Go
        })
    }
}

/// Reports every order as filled.
#[derive(Default)]
struct Venue {
    executions: u64,
    order_len: usize,
    is_over: bool,
}

impl Handler for Venue {
    #[inline]
    fn on_event(&mut self, now: Nanos, id: SessionId, event: &Event, table: &mut Sessions) {
        match event {
            Event::Message { .. } => self.fill(now, id, table),
            Event::Disconnect { .. } => self.is_over = true,
            _ => {}
        }
    }

    fn turn(&mut self, _: Nanos, _: &mut Engine) -> Result<Flow, Error> {
        Ok(if self.is_over { Flow::End } else { Flow::Go })
    }
}

impl Venue {
    #[inline]
    fn fill(&mut self, now: Nanos, id: SessionId, table: &mut Sessions) {
        let session = table.session_mut(id);
        let Some(order) = session.message().filter(|m| m.msg_type() == b"D") else {
            return;
        };
        self.order_len = order.bytes().len();
        let text = |tag| order.find(tag).and_then(|f| Id::new(order.value(f)));
        let (Some(cl_ord_id), Some(symbol)) = (text(tag::CL_ORD_ID), text(tag::SYMBOL)) else {
            return;
        };
        let qty = order.find(tag::ORDER_QTY).and_then(|f| order.unsigned(f).ok());
        let price = order.find(tag::PRICE).and_then(|f| order.price(f).ok());
        let side = order.find(tag::SIDE).and_then(|f| order.char(f).ok());
        let (Some(qty), Some(price), Some(side)) = (qty, price, side) else {
            return;
        };
        self.executions += 1;
        let number = Id::from_number(7_000_000_000 + self.executions);
        // Who does not read loses the report; it can be asked for again.
        let _ = session.send(now, b"8", Again::Resend, |e, _| {
            e.text(1, b"ACCOUNT-0042");
            e.price(tag::AVG_PX, price);
            e.text(tag::CL_ORD_ID, cl_ord_id.as_bytes());
            e.unsigned(tag::CUM_QTY, qty);
            e.text(tag::EXEC_ID, number.as_bytes());
            e.price(tag::LAST_PX, price);
            e.unsigned(tag::LAST_QTY, qty);
            e.text(tag::ORDER_ID, number.as_bytes());
            e.unsigned(tag::ORDER_QTY, qty);
            e.char(tag::ORD_STATUS, b'2');
            e.char(tag::ORD_TYPE, b'2');
            e.price(tag::PRICE, price);
            e.char(tag::SIDE, side);
            e.text(tag::SYMBOL, symbol.as_bytes());
            e.char(tag::TIME_IN_FORCE, b'0');
            e.text(tag::TRANSACT_TIME, b"20261122-09:30:00.000");
            e.char(tag::EXEC_TYPE, b'F');
            e.unsigned(tag::LEAVES_QTY, 0);
            e.text(207, b"XNAS");
        });
    }
}

/// Keeps numbers only.
struct NullStore {
    next_out: u64,
    next_in: u64,
}

impl Store for NullStore {
    fn next_out(&self) -> u64 {
        self.next_out
    }
    fn next_in(&self) -> u64 {
        self.next_in
    }
    fn set_next_out(&mut self, seq: u64) {
        self.next_out = seq;
    }
    fn set_next_in(&mut self, seq: u64) {
        self.next_in = seq;
    }
    fn append(&mut self, seq: u64, message: &[u8]) -> Result<(), StoreFailed> {
        black_box(message);
        self.next_out = seq + 1;
        Ok(())
    }
    fn get(&mut self, _: u64) -> Option<&[u8]> {
        None
    }
    fn period(&self) -> Nanos {
        Nanos::ZERO
    }
    fn set_period(&mut self, _: Nanos) {}
    fn reset(&mut self) {
        (self.next_out, self.next_in) = (1, 1);
    }
}

/// A store of the measurement, with more lines of configuration.
fn store_of(folder: &Path, name: &str, more: &str) -> Result<Box<dyn Store + Send>, Failure> {
    let text = format!(
        "[SESSION]\nBeginString=FIX.4.4\nSenderCompID=A\nTargetCompID={name}\nSocketAcceptPort=0\n\
         AllowedRemoteAddresses=127.0.0.1\nUseDataDictionary=N\nFileStorePath=store\nFileStoreMegabytes=16\n{more}"
    );
    let path = folder.join(format!("{name}.cfg"));
    tickwire_runtime::files::write(&path, text)
        .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?;
    let setups = load(&path, Wanted::Only(Role::Acceptor))?;
    store::open(&setups[0], &console()).map_err(failure)
}

/// Puts messages into a store, so many before each settling; nanoseconds for one.
fn keep(store: &mut dyn Store, clock: &Clock, messages: u64, group: u64) -> Result<f64, Failure> {
    let refused = |_| Failure::check("the store refused a message");
    let message = black_box([b'm'; 223]);
    let begin = tsc();
    for n in 1..=messages {
        store.append(store.next_out(), &message).map_err(refused)?;
        if n % group == 0 {
            store.settle().map_err(refused)?;
        }
    }
    let ns = clock.span_ns(tsc() - begin);
    let newest = store.next_out() - 1;
    match store.get(newest).is_none_or(|kept| kept == message) {
        true => Ok(ns as f64 / messages as f64),
        false => Err(Failure::check("the store does not have what it was given")),
    }
}

/// What keeping one message takes where the next one comes [`APART_NS`] later, as in a session: the pages and
/// lines of the file are not those of a moment ago.
fn keep_apart(store: &mut dyn Store, clock: &Clock) -> Result<Histogram, Failure> {
    let refused = |_| Failure::check("the store refused a message");
    let message = black_box([b'm'; 223]);
    let mut histogram = Histogram::new();
    let mut next = tsc();
    for _ in 0..STORED_APART {
        next += clock.span_ticks(APART_NS);
        while tsc() < next {
            std::hint::spin_loop();
        }
        let begin = tsc();
        store.append(store.next_out(), &message).map_err(refused)?;
        store.settle().map_err(refused)?;
        histogram.record(clock.span_ns(tsc() - begin));
    }
    Ok(histogram)
}

/// What it costs to keep a message of 223 bytes: a store in a file beside none, and one that is on the disk
/// before it is sent. Least of several rounds.
fn stores(folder: &Path) -> Result<(), Failure> {
    let clock = Clock::calibrate();
    let mut null_store: Box<dyn Store + Send> = Box::new(NullStore {
        next_out: 1,
        next_in: 1,
    });
    let mut file_store = store_of(folder, "file", "")?;
    let mut least = [f64::MAX; 2];
    for _ in 0..7 {
        for (least, store) in least.iter_mut().zip([&mut null_store, &mut file_store]) {
            *least = least.min(keep(store.as_mut(), &clock, STORED, 1)?);
        }
    }
    let [null, file] = least;
    println!(
        "a message of 223 bytes kept in a file: {file:.1} ns, {:.1} ns over no store",
        file - null
    );
    let apart = [
        keep_apart(null_store.as_mut(), &clock)?,
        keep_apart(file_store.as_mut(), &clock)?,
    ];
    let title = format!(
        "{STORED_APART} messages of 223 bytes kept, one every {} us",
        APART_NS / 1_000
    );
    let named: Vec<(&str, &Histogram)> = ["no store", "in a file"].into_iter().zip(&apart).collect();
    print!(
        "{}",
        Table::latencies(&title, &named).to_text(tickwire_console::terminal::width())
    );
    let mut disk = store_of(folder, "disk", "FileStoreSync=Y\n")?;
    for group in [1, 16, 256] {
        let mut least = f64::MAX;
        for _ in 0..3 {
            least = least.min(keep(disk.as_mut(), &clock, SYNCED * group, group)?);
        }
        println!(
            "on the disk of {} before it is sent (FileStoreSync=Y), {group} at a time: {:.1} us a message",
            folder.display(),
            least / 1000.0
        );
    }
    Ok(())
}
