//! How long a restart of the exchange takes: from the whole journal, and from a snapshot with the last part
//! of it, by how much of the day is over; and for how long the exchange stands still while a snapshot is
//! taken.
//!
//! ```text
//! cargo bench -p tickwire-simulator --bench restart             60 to 1,800 s of a day at 20,000 messages a second
//! cargo test -p tickwire-simulator --bench restart              the same, tiny
//! ```
//! The configuration is the one that ships (200 instruments, ITCH), in virtual time; the snapshot is 30 s
//! before the end. Times are of this thread on its core, as Linux counts them, so that other work on the
//! machine does not count. The answer is checked: both ways come to the same state. A regression means that
//! an exchange that was killed is away for longer, or stands still for longer while it takes a snapshot.

use std::path::{Path, PathBuf};

use tickwire_exchange::{Input, Market};
use tickwire_market::Nanos;
use tickwire_persist::Persist;
use tickwire_simulator::entry::Durability;
use tickwire_simulator::history::HistoryFile;
use tickwire_simulator::journal::{Journal, Recovered};
use tickwire_simulator::settings::MarketConfig;
use tickwire_simulator::snapshot::SnapshotWriter;
use tickwire_simulator::venue::{VIRTUAL_START, market_of};

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

struct Day {
    path: PathBuf,
    text: String,
    config: MarketConfig,
}

fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text
        .split_whitespace()
        .next()
        .and_then(|first| first.parse().ok());
    first.unwrap_or_default()
}

impl Day {
    fn open(&self) -> (Market, Recovered, Journal, u64) {
        let make = || {
            let (mut market, _) = market_of(&self.config, None)?;
            let mut path = self.path.clone().into_os_string();
            path.push(".history-0");
            let history = HistoryFile::create(Path::new(&path), 16 << 30)?;
            let publisher = market.exchange_mut(0).publisher_mut(0).expect("a channel");
            publisher.store_mut().keep_history(Box::new(history));
            Ok(market)
        };
        let started = cpu_ns();
        let mut market = make().expect("a market");
        let opened = Journal::open(&self.path, Durability::Process, &self.text, &mut market, &make);
        let (journal, found) = opened.expect("a journal");
        (market, found, journal, cpu_ns() - started)
    }
}

fn main() {
    let full = std::env::args().any(|arg| arg == "--bench");
    let (rate, lengths, behind): (u32, &[u64], u64) = match full {
        true => (20_000, &[60, 300, 1_800], 30),
        false => (2_000, &[3], 1),
    };
    let folder = std::env::temp_dir().join(format!("tickwire-restart-{}", std::process::id()));
    println!(
        "  seconds    messages   journal MB  snapshot MB  stands still ms  whole journal s  snapshot s   ratio"
    );
    for &seconds in lengths {
        tickwire_runtime::files::create_folders(&folder).expect("a folder");
        let mut config = MarketConfig::default();
        config.exchange.rate.0 = rate;
        config.exchange.duration_s.0 = 36_000.0;
        let day = Day {
            path: folder.join("exchange.journal"),
            text: config.to_toml(),
            config,
        };
        let (mut market, _, mut journal, _) = day.open();
        let mut writer = SnapshotWriter::new(&day.path, &day.text, None);
        let mut still = 0;
        let mut put = |now: Nanos, input: Input<'_>, market: &mut Market| {
            journal.put(now, &input);
            input.apply(now, market, &mut []);
            journal.flush().expect("written");
        };
        put(VIRTUAL_START, Input::Open, &mut market);
        let mut taken = None;
        for at in 0..seconds * 1_000 {
            let now = VIRTUAL_START.after(at * Nanos::MILLI);
            put(now, Input::Time, &mut market);
            while market.exchange_mut(0).poll_datagram(0, now).is_some() {}
            market.histories_mut().for_each(|history| history.write());
            if at == (seconds - behind) * 1_000 {
                taken = Some(now);
                break;
            }
        }
        let now = taken.expect("a snapshot is taken");
        let started = cpu_ns();
        writer.take(journal.place(now).expect("readable"), &market);
        still += cpu_ns() - started;
        for at in (seconds - behind) * 1_000 + 1..seconds * 1_000 {
            let now = VIRTUAL_START.after(at * Nanos::MILLI);
            journal.put(now, &Input::Time);
            Input::Time.apply(now, &mut market, &mut []);
            journal.flush().expect("written");
            while market.exchange_mut(0).poll_datagram(0, now).is_some() {}
            market.histories_mut().for_each(|history| history.write());
        }
        drop(writer);
        let messages = market.total();
        drop((market, journal));
        let size =
            |name: &str| std::fs::metadata(folder.join(name)).map_or(0, |data| data.len()) as f64 / 1e6;
        let (journal_mb, snapshot_mb) = (size("exchange.journal"), size("exchange.journal.snapshot-0"));
        let state = |market: &Market| {
            let mut bytes = Vec::new();
            market.save(&mut bytes);
            bytes
        };
        let (market, found, journal, quick) = day.open();
        assert!(found.before > found.inputs, "the snapshot serves");
        let from_snapshot = (market.state_hash(), market.total(), state(&market).len());
        drop((market, journal));
        std::fs::remove_file(folder.join("exchange.journal.snapshot-0")).expect("removed");
        let (market, found, _journal, whole) = day.open();
        assert_eq!(found.before, 0);
        assert_eq!(
            (market.state_hash(), market.total(), state(&market).len()),
            from_snapshot
        );
        println!(
            "{seconds:>9} {messages:>11} {journal_mb:>12.1} {snapshot_mb:>12.1} {:>16.1} {:>16.2} {:>11.2} {:>7.1}",
            still as f64 / 1e6,
            whole as f64 / 1e9,
            quick as f64 / 1e9,
            whole as f64 / quick as f64
        );
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
