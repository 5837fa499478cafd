//! Everything a user looks at: books, feeds, rates, latencies, checks for monitoring systems, the metrics,
//! the page of a daemon.
//!
//! ```text
//! shared memory ─► region (the only reader) ─► model (plain values) ─► ladder · top · latency   ─► text ─► screen, or a pipe
//!                                                                      nagios · cacti · metrics ─► one line, or HTTP
//! control socket ◄─► control (subscriptions)
//! other programs ──► programs (the page's)
//! ```
//!
//! **Invariant.** A view only reads: it cannot disturb the daemon, whatever it does and however many there
//! are.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//! use tickwire_control::http::Served;
//! use tickwire_views::MetricsServer;
//!
//! // A folder without a daemon: the page says that there is nothing to read.
//! let folder = std::env::temp_dir().join("tickwire-no-daemon");
//! let mut server = MetricsServer::bind("127.0.0.1:0".parse()?, &folder)?;
//! let address = server.address()?;
//! let scrape = std::thread::spawn(move || -> std::io::Result<String> {
//!     let mut stream = TcpStream::connect(address)?;
//!     stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
//!     let mut page = String::new();
//!     stream.read_to_string(&mut page)?;
//!     Ok(page)
//! });
//! while !scrape.is_finished() {
//!     server.poll(); // never waits: the daemon's main thread calls it between other things
//!     std::thread::yield_now();
//! }
//! let page = scrape.join().expect("it ended")?;
//! assert!(page.contains("tickwire_region_readable 0"), "{page}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

mod args;
mod cacti;
mod control;
#[cfg(test)]
mod examples;
pub mod fix_steps;
#[cfg(test)]
mod golden;
pub mod host;
mod ladder;
mod latency;
mod metrics;
mod model;
mod nagios;
mod programs;
mod region;
mod screen;
mod server;
mod text;
mod top;

pub use args::{
    BookArgs, CactiArgs, CheckCommand, LatencyArgs, NagiosArgs, StatsArgs, SubscribeArgs, SubscriptionsArgs,
    TopArgs,
};
pub use server::MetricsServer;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tickwire_market::Symbol;
use tickwire_runtime::signal::StopFlag;

use ladder::Choice;
use model::{Condition, Interval, Reading};
use nagios::{Answer, Thresholds, Verdict};
use region::{Absence, Detail, Places, Region, Watch};
use screen::Key;
use text::{Line, Page, Tone};
use tickwire_console::failure::Failure;
use tickwire_console::terminal;
use top::Subscriptions;

/// The exit code of a command line that is not one, or that asks for help: plugins have their own.
pub fn usage_code(error: &clap::Error, command: Option<&std::ffi::OsStr>) -> u8 {
    match error.use_stderr() {
        false => 0,
        true if command.is_some_and(|command| command == "check") => Verdict::Unknown as u8,
        true => tickwire_console::failure::Code::Usage as u8,
    }
}

/// Prints, and takes a closed pipe (`| head`) for the end.
fn print(text: &str) -> Result<(), Failure> {
    print!("{text}");
    tickwire_console::out::failure().map_or(Ok(()), Err)
}

fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}

/// The picture of a page.
fn write_svg(file: &Path, page: &Page, title: &str) -> Result<(), Failure> {
    tickwire_runtime::files::write(file, page.to_svg(title))
        .map_err(|e| Failure::system(format!("cannot write {}: {e}", file.display())))
}

/// Sleeps, but not through a signal.
fn sleep(time: Duration, stop: &StopFlag) -> Result<(), Failure> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if let Some(reason) = stop.reason() {
            return Err(Failure::interrupted(reason.to_string()));
        }
        std::thread::sleep((end - Instant::now().min(end)).min(Duration::from_millis(50)));
    }
    Ok(())
}

/// `tickwire book`.
pub fn book(args: &BookArgs, stop: &StopFlag) -> Result<(), Failure> {
    let symbol = Symbol::new(args.symbol.as_bytes())
        .filter(|symbol| !symbol.is_empty())
        .ok_or_else(|| {
            Failure::config(format!(
                "{:?} is no symbol: 1 to 23 printable characters",
                args.symbol
            ))
        })?;
    let mut watch = Watch::new(&args.place.folder());
    if args.once || args.json || args.svg.is_some() || !screen::is_terminal() {
        let region = watch.look().map_err(|absence| absence.failure())?;
        let (page, json) = book_once(&region, symbol, args)?;
        return match &args.svg {
            Some(file) => write_svg(file, &page, &format!("tickwire book {symbol}")),
            None if args.json => print_json(&json),
            None => print(&page.to_plain()),
        };
    }
    let mut live = LiveBook {
        symbol,
        args,
        turned: 0,
        places: Places::default(),
        missing: None,
    };
    screen::live(stop, args.interval, |columns, rows, keys| {
        live.turn(keys);
        Ok(match watch.look() {
            Ok(region) => live.frame(&region, columns, rows),
            Err(absence) => waiting(&absence),
        })
    })
}

/// Where the feeds of the command line must be known.
fn known_feeds(feeds: &[String], reading: &Reading) -> Result<(), Failure> {
    let known = reading.feeds();
    match feeds.iter().find(|feed| !known.contains(&feed.as_str())) {
        Some(feed) => Err(Failure::config(format!(
            "there is no feed {feed:?}; feeds are {}",
            known.join(", ")
        ))),
        None => Ok(()),
    }
}

fn choice(feeds: &[String]) -> Choice {
    match feeds {
        [] => Choice::All,
        feeds => Choice::Feeds(feeds.to_vec()),
    }
}

/// The page and the JSON of one look.
fn book_once(
    region: &Region<'_>,
    symbol: Symbol,
    args: &BookArgs,
) -> Result<(Page, serde_json::Value), Failure> {
    let reading = region.reading(Detail::Counters);
    known_feeds(&args.feed, &reading)?;
    let Some(view) = region.symbol(symbol, &mut Places::default()) else {
        return Err(Failure::config(unknown(region, symbol)));
    };
    let mut page = Page::new();
    page.lines(trouble(&reading));
    let levels = args.levels.into();
    page.lines(
        ladder::page(
            &view,
            &reading,
            &choice(&args.feed),
            levels,
            terminal::columns().unwrap_or(usize::MAX),
        )
        .0,
    );
    Ok((page, ladder::json(&view, &choice(&args.feed))))
}

/// That nobody has a book of it, and what may have been meant.
fn unknown(region: &Region<'_>, symbol: Symbol) -> String {
    let symbols = region.symbols();
    let similar = tickwire_console::similar::similar(symbol.as_str(), symbols.iter().map(String::as_str));
    let hint = match similar.as_slice() {
        [] => "`tickwire subscriptions` tells what is subscribed to".to_string(),
        similar => format!("there are books of {}", similar.join(", ")),
    };
    format!(
        "there is no book of {symbol} ({} symbols have one); {hint}",
        symbols.len()
    )
}

/// What stands above a book when its daemon is not well: nothing when it is.
fn trouble(reading: &Reading) -> Option<Line> {
    let says = match reading.daemon.condition {
        Condition::Ready => return None,
        Condition::Starting => " the daemon is starting ".to_string(),
        Condition::Ended => " THE DAEMON HAS ENDED: this is its last word ".into(),
        Condition::Dead => format!(
            " THE DAEMON IS DEAD (pid {}): nothing here is current ",
            reading.daemon.pid
        ),
        Condition::Silent => format!(
            " THE DAEMON IS SILENT for {}: nothing here is current ",
            text::span(reading.daemon.heartbeat_age_ns)
        ),
    };
    Some(Line::toned(Tone::Loud, says))
}

/// The live view of a symbol: turning pages goes through the consolidated book and each feed's ladder.
struct LiveBook<'a> {
    symbol: Symbol,
    args: &'a BookArgs,
    turned: i64,
    places: Places,
    /// Why there is nothing to show, and when that was found out: similar symbols are not searched for every
    /// picture.
    missing: Option<(Instant, String)>,
}

impl LiveBook<'_> {
    fn turn(&mut self, keys: &[Key]) {
        for key in keys {
            self.turned += i64::from(*key == Key::Next) - i64::from(*key == Key::Previous);
        }
    }

    /// One picture.
    fn frame(&mut self, region: &Region<'_>, columns: usize, rows: usize) -> Page {
        let reading = region.reading(Detail::Counters);
        let mut page = Page::new();
        page.lines(trouble(&reading));
        if let Err(failure) = known_feeds(&self.args.feed, &reading) {
            page.line(Line::toned(Tone::Warning, failure.message));
        }
        let Some(view) = region.symbol(self.symbol, &mut self.places) else {
            page.line(Line::toned(Tone::Warning, self.missing(region)));
            page.line(Line::toned(
                Tone::Faint,
                "It is shown as soon as there is one. q quits.",
            ));
            return page;
        };
        let mut choices = vec![choice(&self.args.feed)];
        for book in &view.books {
            let one = Choice::Feeds(vec![book.feed.clone()]);
            if !choices.contains(&one) {
                choices.push(one);
            }
        }
        let chosen = &choices[self.turned.rem_euclid(choices.len() as i64) as usize];
        // Fewer levels where they would not fit, but at least one.
        let mut levels = usize::from(self.args.levels);
        let body = loop {
            let body = ladder::page(&view, &reading, chosen, levels, columns);
            if page.0.len() + body.0.len() < rows || levels <= 1 {
                break body;
            }
            levels -= 1;
        };
        page.lines(body.0);
        if page.0.len() + 1 < rows {
            page.line(Line::toned(
                Tone::Faint,
                "q quits, Tab: consolidated book, each feed",
            ));
        }
        page
    }

    fn missing(&mut self, region: &Region<'_>) -> String {
        match &self.missing {
            Some((at, says)) if at.elapsed() < Duration::from_secs(2) => says.clone(),
            _ => {
                let says = unknown(region, self.symbol);
                self.missing.insert((Instant::now(), says)).1.clone()
            }
        }
    }
}

/// What a live view shows while there is no daemon.
fn waiting(absence: &Absence) -> Page {
    let mut page = Page::new();
    let tone = match absence {
        Absence::Starting(_) => Tone::Warning,
        Absence::NoDaemon(_) | Absence::Unreadable(_) => Tone::Loud,
    };
    page.line(Line::toned(tone, absence.sentence()));
    page.line(Line::toned(Tone::Faint, "Waiting for it. q quits."));
    page
}

/// Readings one after the other, and what happened between them.
#[derive(Default, Debug)]
struct Readings {
    /// The last one, and the one before that which rates are counted from.
    last: Option<Reading>,
}

impl Readings {
    /// A new reading and the interval since the one before.
    fn next(&mut self, region: &Region<'_>, detail: Detail) -> (&Reading, Option<Interval>) {
        let reading = region.reading(detail);
        let interval = self
            .last
            .as_ref()
            .and_then(|before| Interval::between(before, &reading));
        (self.last.insert(reading), interval)
    }
}

/// Two readings so far apart; one alone for none.
fn read_twice(
    watch: &mut Watch,
    apart: Duration,
    detail: Detail,
    stop: &StopFlag,
) -> Result<Result<(Reading, Option<Interval>), Absence>, Failure> {
    let before = match watch.look() {
        Ok(region) => region.reading(detail),
        Err(absence) => return Ok(Err(absence)),
    };
    if apart.is_zero() {
        return Ok(Ok((before, None)));
    }
    sleep(apart, stop)?;
    Ok(watch.look().map(|region| {
        let after = region.reading(detail);
        let interval = Interval::between(&before, &after);
        (after, interval)
    }))
}

/// What the daemon is subscribed to; a daemon that does not answer is no reason to show nothing else.
fn subscriptions_of(folder: &Path) -> Subscriptions {
    let answer =
        tickwire_control::client::ask(folder, tickwire_control::client::Request::Subscriptions, None);
    answer
        .map(|answer| control::summary(&answer))
        .map_err(|failure| failure.message)
}

/// How often `top` asks for subscriptions.
const SUBSCRIPTIONS_EVERY: Duration = Duration::from_secs(5);

/// `tickwire top`.
pub fn top(args: &TopArgs, stop: &StopFlag) -> Result<(), Failure> {
    let folder = args.place.folder();
    let mut watch = Watch::new(&folder);
    if args.once || args.svg.is_some() || !screen::is_terminal() {
        let found = read_twice(&mut watch, args.interval, Detail::Latencies, stop)?;
        let (reading, interval) = found.map_err(|absence| absence.failure())?;
        let page = top::page(
            &reading,
            interval.as_ref(),
            &subscriptions_of(&folder),
            terminal::columns().unwrap_or(usize::MAX),
        );
        return match &args.svg {
            Some(file) => write_svg(file, &page, "tickwire top"),
            None => print(&page.to_plain()),
        };
    }
    let mut readings = Readings::default();
    let mut asked: Option<(Instant, Subscriptions)> = None;
    let mut shown: Option<(Instant, Reading, Option<Interval>)> = None;
    screen::live(stop, args.interval, |columns, _, _| {
        let region = match watch.look() {
            Ok(region) => region,
            Err(absence) => return Ok(waiting(&absence)),
        };
        if asked
            .as_ref()
            .is_none_or(|(at, _)| at.elapsed() >= SUBSCRIPTIONS_EVERY)
        {
            asked = Some((Instant::now(), subscriptions_of(&folder)));
        }
        // A key or a new size draws again what was read; rates need their whole interval.
        if shown
            .as_ref()
            .is_none_or(|(at, ..)| at.elapsed() + NEARLY >= args.interval)
        {
            let (reading, interval) = readings.next(&region, Detail::Latencies);
            shown = Some((Instant::now(), reading.clone(), interval));
        }
        let (_, reading, interval) = shown.as_ref().expect("read above");
        let (_, subscriptions) = asked.as_ref().expect("asked above");
        let mut page = top::page(reading, interval.as_ref(), subscriptions, columns);
        page.line(Line::toned(Tone::Faint, "q quits"));
        Ok(page)
    })
}

/// Two clocks need not agree to the last moment.
const NEARLY: Duration = Duration::from_millis(20);

/// `tickwire stats`.
pub fn stats(args: &StatsArgs, stop: &StopFlag) -> Result<(), Failure> {
    let folder = args.place.folder();
    let found = read_twice(&mut Watch::new(&folder), args.interval, Detail::Kinds, stop)?;
    let (reading, interval) = found.map_err(|absence| absence.failure())?;
    let subscriptions = subscriptions_of(&folder);
    match args.json {
        true => print_json(&top::json(&reading, interval.as_ref(), &subscriptions)),
        false => print(
            &top::stats(
                &reading,
                interval.as_ref(),
                &subscriptions,
                terminal::columns().unwrap_or(usize::MAX),
            )
            .to_plain(),
        ),
    }
}

/// `tickwire latency`.
pub fn latency(args: &LatencyArgs) -> Result<(), Failure> {
    let report = if args.files.is_empty() {
        let mut watch = Watch::new(&args.place.folder());
        let region = watch.look().map_err(|absence| absence.failure())?;
        latency::Report::of_reading(&region.reading(Detail::Kinds))
    } else {
        latency::Report::of_files(&args.files)?
    };
    match args.json {
        true => print_json(&report.json()),
        false => print(&report.page(terminal::columns().unwrap_or(usize::MAX)).to_plain()),
    }
}

/// `tickwire check`: prints its line itself and tells the exit code.
///
/// # Errors
/// Interrupted, or the line cannot be printed.
pub fn check(command: &CheckCommand, stop: &StopFlag) -> Result<ExitCode, Failure> {
    match command {
        CheckCommand::Nagios(args) => {
            let answer = nagios_answer(args, stop)?;
            print(&answer.text)?;
            Ok(ExitCode::from(answer.verdict as u8))
        }
        CheckCommand::Cacti(args) => {
            print(&cacti_line(args)?)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn nagios_answer(args: &NagiosArgs, stop: &StopFlag) -> Result<Answer, Failure> {
    let mut watch = Watch::new(&args.place.folder());
    let (mut reading, interval) = match read_twice(&mut watch, args.interval, Detail::Latencies, stop)? {
        Ok(found) => found,
        Err(absence) => {
            let verdict = match absence {
                Absence::NoDaemon(_) => Verdict::Critical,
                Absence::Starting(_) => Verdict::Warning,
                Absence::Unreadable(_) => Verdict::Unknown,
            };
            return Ok(Answer::without_reading(verdict, absence.sentence()));
        }
    };
    if let Err(failure) = only(&mut reading, &args.feed) {
        return Ok(Answer::without_reading(Verdict::Unknown, &failure.message));
    }
    let thresholds = Thresholds {
        warning: args.warning.clone(),
        critical: args.critical.clone(),
    };
    Ok(nagios::check(&reading, interval.as_ref(), &thresholds))
}

fn cacti_line(args: &CactiArgs) -> Result<String, Failure> {
    let mut watch = Watch::new(&args.place.folder());
    let Ok(region) = watch.look() else {
        return Ok(cacti::line_without_reading());
    };
    let mut reading = region.reading(Detail::Latencies);
    only(&mut reading, &args.feed)?;
    Ok(match reading.daemon.condition {
        Condition::Dead | Condition::Ended => cacti::line_without_reading(),
        Condition::Starting | Condition::Ready | Condition::Silent => cacti::line(&reading, true),
    })
}

/// Cuts a reading down to some feeds; to all of them for none.
fn only(reading: &mut Reading, feeds: &[String]) -> Result<(), Failure> {
    known_feeds(feeds, reading)?;
    if !feeds.is_empty() {
        reading.sources.retain(|source| feeds.contains(&source.feed));
    }
    Ok(())
}

/// `tickwire subscribe` and `tickwire unsubscribe`.
pub fn subscribe(args: &SubscribeArgs, wanted: bool) -> Result<(), Failure> {
    let request = match wanted {
        true => tickwire_control::client::Request::Subscribe(&args.patterns),
        false => tickwire_control::client::Request::Unsubscribe(&args.patterns),
    };
    let answer = tickwire_control::client::ask(&args.place.folder(), request, args.feed.as_deref())?;
    answered(&answer, args.json)
}

/// `tickwire subscriptions`.
pub fn subscriptions(args: &SubscriptionsArgs) -> Result<(), Failure> {
    let answer = tickwire_control::client::ask(
        &args.place.folder(),
        match args.statistics {
            true => tickwire_control::client::Request::Statistics,
            false => tickwire_control::client::Request::Subscriptions,
        },
        args.feed.as_deref(),
    )?;
    answered(&answer, args.json)
}

fn answered(answer: &serde_json::Value, json: bool) -> Result<(), Failure> {
    match json {
        true => print_json(answer),
        false => print(&control::page(answer, terminal::columns().unwrap_or(usize::MAX)).to_plain()),
    }
}
