//! The pricing thread and a file of volatilities: quotes do not wait for a disk, and go back where it takes
//! nothing.

use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use tickwire_market::{Currency, Date, InstrumentId, PointValue, Price, PriceSteps, Symbol};
use tickwire_options::Kind;
use tickwire_runtime::spsc;
use tickwire_trading::{NO_ASK, NO_BID};

use super::super::chain::{Chain, Listed};
use super::super::sample;
use super::*;
use crate::world::Config;

const HALF_TICK: i64 = 55_200;
const PATIENCE: Duration = Duration::from_secs(20);

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A point of CME's E-mini, whose prices are hundredths.
fn half_a_dollar() -> PointValue {
    PointValue::new(Price::ONE_RAW / 2, Currency::USD).unwrap()
}

struct Thread {
    folder: Folder,
    expiry: Date,
    asks: Sender<Ask>,
    ladders: LadderRing,
    _end: PricingEnd,
    pricing: Pricing,
}

impl Thread {
    /// Calls and puts at seven strikes, and a file of their volatilities.
    fn start(name: &str) -> Thread {
        Thread::start_with(name, |_| {})
    }

    fn start_with(name: &str, change: impl FnOnce(&mut QuoterSection)) -> Thread {
        let clock = Clock::calibrate_for(Duration::from_millis(1));
        let expiry = Date::of_days((clock.now().0 / Nanos::DAY) as u32 + 90);
        let folder = std::env::temp_dir().join(format!("tickwire-pricing-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let folder = Folder(folder);
        let surface = format!(
            "front = 690000.0\n[[expiry]]\nname = \"{expiry}\"\nyears = 0.25\nwing = {{ vol = 0.16, slope = -0.1, put = 0.5, call = 0.5, \
             down = -0.2, up = 0.2 }}\n"
        );
        std::fs::write(folder.0.join("vol.toml"), surface).unwrap();
        let config = Config::parse(&sample::text(2, clock.now()).unwrap()).unwrap();
        let mut section = config.quoter.unwrap();
        section.surface = Some(folder.0.join("vol.toml"));
        change(&mut section);
        let whole = |n: i64| Price::from_raw(n * Price::ONE_RAW);
        let option = |n: i64| Listed {
            id: InstrumentId(n as u32 + 1),
            symbol: Symbol::new(format!("O{n}").as_bytes()).unwrap(),
            expiry,
            strike: whole(660_000 + n / 2 * 10_000),
            kind: if n % 2 == 0 { Kind::Call } else { Kind::Put },
            multiplier: 50,
        };
        let mut chain = Chain {
            underlying: InstrumentId(0),
            underlying_tick: whole(25),
            underlying_value: half_a_dollar(),
            option_value: half_a_dollar(),
            steps: PriceSteps {
                tick: whole(5),
                beyond: None,
            },
            options: (0..14).map(option).collect(),
        };
        let shared = Arc::new(Shared::new(HALF_TICK));
        let (_, traded) = spsc::ring(16);
        let begins = Begins {
            half_tick: HALF_TICK,
            market: &|_| [None; 2],
            is_forced: false,
        };
        let started = Pricing::start(&section, &mut chain, clock, shared, traded, None, &begins);
        let (pricing, end, ladders) = started.unwrap();
        Thread {
            folder,
            expiry,
            asks: pricing.asks(),
            ladders,
            _end: end,
            pricing,
        }
    }

    /// What is wanted by the next ladder.
    fn next(&mut self) -> Vec<(u16, u16)> {
        let since = Instant::now();
        loop {
            if let Some(made) = self.ladders.next() {
                let row = made.quotes.row(HALF_TICK).unwrap();
                let wanted = row.bids.iter().zip(row.asks).map(|(b, a)| (*b, *a)).collect();
                self.ladders.give_back(made);
                return wanted;
            }
            assert!(since.elapsed() < PATIENCE, "no ladder");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn edit(&self, what: &str) -> Receiver<Result<String, String>> {
        let (answer, answered) = channel();
        let line = format!("atm {} {what}", self.expiry);
        self.asks.send((Wish::Edit(line, "me".into()), answer)).unwrap();
        answered
    }

    fn file(&self) -> PathBuf {
        self.folder.0.join("vol.toml")
    }
}

#[test]
fn quotes_follow_an_edit_before_a_disk_has_it() {
    let mut thread = Thread::start("disk");
    let first = thread.next();
    let text = std::fs::read_to_string(thread.file()).unwrap();
    // A disk that stands still until somebody has it go on: a pipe in the place of the file, which is read
    // before it is replaced.
    std::fs::remove_file(thread.file()).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(thread.file())
            .status()
            .unwrap()
            .success()
    );
    let answered = thread.edit("+0.01");
    let (near, wide) = (thread.next(), thread.next());
    assert!(near == wide && near != first, "the quotes of the edit");
    assert!(answered.try_recv().is_err(), "answered before it is kept");
    std::fs::write(thread.file(), text).unwrap();
    let said = answered.recv_timeout(PATIENCE).unwrap().unwrap();
    assert!(said.starts_with("version 1: "), "{said}");
    let written = std::fs::read_to_string(thread.file()).unwrap();
    assert!(written.contains("atm = 0.01"), "{written}");
    assert_eq!(thread.pricing.end().failure, None);
}

#[test]
fn a_file_that_others_have_edited_is_read_again_when_it_is_asked_for() {
    let mut thread = Thread::start("reload");
    let first = thread.next();
    let text = std::fs::read_to_string(thread.file()).unwrap();
    let ask = |thread: &Thread| {
        let (answer, answered) = channel();
        thread
            .asks
            .send((Wish::Edit("reload".into(), "me".into()), answer))
            .unwrap();
        answered.recv_timeout(PATIENCE).unwrap()
    };
    std::fs::write(thread.file(), text.replace("vol = 0.16", "vol = 0.17")).unwrap();
    let said = ask(&thread).unwrap();
    assert!(
        said.starts_with("read again, version 0: ") && said.contains("-> 17.0"),
        "{said}"
    );
    let (near, wide) = (thread.next(), thread.next());
    assert!(near == wide && near != first);
    // The bytes are known: edits go on.
    let said = thread.edit("-0.01").recv_timeout(PATIENCE).unwrap().unwrap();
    assert!(said.contains("-> 16.0"), "{said}");
    assert_ne!(thread.next(), near);
    assert_ne!(thread.next(), near);
    // What cannot be quoted leaves everything as it was.
    for (wrong, says) in [
        (text.replace("vol = 0.16", "vol = nothing"), "line 5"),
        (
            text.replace(&format!("{}", thread.expiry), "2099-12-18"),
            "other ones want another start",
        ),
    ] {
        std::fs::write(thread.file(), wrong).unwrap();
        let refused = ask(&thread).unwrap_err();
        assert!(refused.contains(says), "{refused}");
    }
    std::thread::sleep(Duration::from_millis(20));
    assert!(
        thread.ladders.next().is_none(),
        "quotes of a file that was refused"
    );
    assert_eq!(thread.pricing.end().failure, None);
}

#[test]
fn nothing_is_quoted_above_the_highest_price() {
    let mut thread = Thread::start("free");
    let free = thread.next();
    let mut thread = Thread::start_with("capped", |section| section.limits.price_max = 20_000);
    let capped = thread.next();
    // Ticks of five points.
    let most = 20_000 / 5;
    let cap = |bid: u16, ask: u16| {
        let bid = if bid > most { NO_BID } else { bid };
        (bid, if ask > most { NO_ASK } else { ask })
    };
    let expected: Vec<_> = free.iter().map(|(bid, ask)| cap(*bid, *ask)).collect();
    assert_eq!(capped, expected);
    assert!(
        capped != free && capped.iter().any(|(bid, _)| *bid != NO_BID),
        "{free:?}"
    );
}

#[test]
fn quotes_go_back_when_an_edit_cannot_be_kept() {
    let mut thread = Thread::start("kept");
    let first = thread.next();
    std::fs::write(thread.file(), "# another's\n").unwrap();
    let answered = thread.edit("+0.01");
    assert_ne!(thread.next(), first);
    assert_ne!(thread.next(), first);
    let refused = answered.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert!(refused.contains("changed by somebody else"), "{refused}");
    // Around the price, then all of it.
    assert_eq!(thread.next(), first);
    assert_eq!(thread.next(), first);
    assert_eq!(std::fs::read_to_string(thread.file()).unwrap(), "# another's\n");
    assert_eq!(thread.pricing.end().failure, None);
}
