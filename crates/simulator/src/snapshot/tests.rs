//! Snapshots: of every protocol, damaged, cut, foreign, of more than the journal has; and restarts from them
//! against those from the whole journal.

use super::*;
use crate::entry::Durability;
use crate::history::HistoryFile;
use crate::journal::{Journal, Recovered};
use crate::settings::MarketConfig;
use crate::venue::{VIRTUAL_START, datagrams, market_of};
use tickwire_exchange::Input;
use tickwire_market::{Port, SeqNo};
use tickwire_testdata::Rng;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::wiring::PUBLISHED;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tickwire-snapshot-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    files::create_folders(&folder).expect("a folder");
    folder
}

fn config(protocol: Protocol) -> MarketConfig {
    let mut config = MarketConfig::of_protocol(protocol);
    config.exchange.symbols.0 = 10;
    config.exchange.duration_s.0 = 3600.0;
    config.receiver.max_orders = 20_000;
    config
}

fn make(config: &MarketConfig) -> Market {
    market_of(config, Some(1 << 12)).expect("a market").0
}

fn state_of(market: &Market) -> Vec<u8> {
    let mut bytes = Vec::new();
    market.save(&mut bytes);
    bytes
}

/// What the live group of a market gets until a time.
fn live(market: &mut Market, from: Nanos, milliseconds: u64) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    for at in 0..milliseconds {
        datagrams(market, from.after(at * Nanos::MILLI), |port, bytes| {
            if port == Port::Live {
                sent.push(bytes.to_vec());
            }
        });
    }
    sent
}

#[test]
fn a_channel_of_any_protocol_goes_on_from_a_snapshot_with_the_same_packets() {
    for protocol in PUBLISHED {
        let config = config(protocol);
        let mut market = make(&config);
        market.open(VIRTUAL_START);
        live(&mut market, VIRTUAL_START, 300);
        let bytes = state_of(&market);
        let mut again = make(&config);
        let mut reader = StateReader::new(&bytes);
        again.load(&mut reader).expect("what was just saved");
        assert!(reader.is_empty() && state_of(&again) == bytes, "{protocol:?}");
        let from = VIRTUAL_START.after(300 * Nanos::MILLI);
        let (a, b) = (live(&mut market, from, 300), live(&mut again, from, 300));
        assert!(
            a.len() > 100 && a == b,
            "{protocol:?}: {} and {} packets",
            a.len(),
            b.len()
        );
        assert!(state_of(&market) == state_of(&again), "{protocol:?}");
        let (market, again) = (market.exchange_mut(0), again.exchange_mut(0));
        assert_eq!(market.state_hash(), again.state_hash());
        assert_eq!(market.engine().state_hash(), again.engine().state_hash());
    }
}

#[test]
fn bytes_of_anything_else_are_refused_and_never_a_panic() {
    let config = config(Protocol::Itch50);
    let mut market = make(&config);
    market.open(VIRTUAL_START);
    live(&mut market, VIRTUAL_START, 50);
    let bytes = state_of(&market);
    let mut rng = Rng::new(3);
    let mut refused = 0;
    for _ in 0..12 {
        let cut = rng.below(bytes.len() as u64) as usize;
        let loaded = make(&config).load(&mut StateReader::new(&bytes[..cut]));
        assert_eq!(loaded, Err(tickwire_persist::Damaged), "cut at {cut}");
        let mut wrong = bytes.clone();
        for _ in 0..20 {
            let at = rng.below(wrong.len() as u64) as usize;
            wrong[at] ^= 1 << rng.below(8);
        }
        refused += u32::from(make(&config).load(&mut StateReader::new(&wrong)).is_err());
    }
    assert!(refused > 0);
}

/// A day in a folder: a journal, snapshots at some places, and the state at its end.
struct Day {
    path: PathBuf,
    text: String,
    config: MarketConfig,
}

impl Day {
    fn open(&self) -> (Market, Recovered, Journal) {
        let made = || {
            let (mut market, published) = market_of(&self.config, Some(64)).expect("a market");
            let mut path = self.path.clone().into_os_string();
            path.push(".history-0");
            let history = HistoryFile::create(Path::new(&path), 1 << 30)?;
            let publisher = market
                .exchange_mut(0)
                .publisher_mut(published[0].published_channel)
                .expect("a channel");
            publisher.store_mut().keep_history(Box::new(history));
            Ok(market)
        };
        let mut market = made().expect("a market");
        let opened = Journal::open(&self.path, Durability::Process, &self.text, &mut market, &made);
        let (journal, found) = opened.expect("a journal");
        (market, found, journal)
    }

    /// So many milliseconds of it, with a snapshot after each of some of them.
    fn run(
        &self,
        from: Nanos,
        milliseconds: u64,
        snapshots: &[u64],
        journal: &mut Journal,
        market: &mut Market,
    ) {
        let mut writer = SnapshotWriter::new(&self.path, &self.text, Some(10));
        let put = |now: Nanos, input: Input<'_>, market: &mut Market, journal: &mut Journal| {
            journal.put(now, &input);
            input.apply(now, market, &mut []);
        };
        put(from, Input::Open, market, journal);
        for at in 0..milliseconds {
            let now = from.after(at * Nanos::MILLI);
            put(now, Input::Time, market, journal);
            while market.exchange_mut(0).poll_datagram(0, now).is_some() {}
            market.histories_mut().for_each(|history| history.write());
            if at % 100 == 99 {
                put(now, Input::Mark(market.state_hash()), market, journal);
            }
            journal.flush().expect("written");
            if snapshots.contains(&at) {
                while !writer.is_ready() {
                    std::thread::yield_now();
                }
                writer.take(journal.place(now).expect("readable"), market);
                put(now, Input::Mark(market.state_hash()), market, journal);
            }
        }
        journal.flush().expect("written");
    }

    fn snapshot(&self, number: u64) -> PathBuf {
        path_of(&self.path, number)
    }

    /// The state after a restart, how much was replayed, and whether the earliest messages are still there.
    fn restarted(&self) -> (Vec<u8>, u64) {
        let (mut market, found, journal) = self.open();
        drop(journal);
        let store = market
            .exchange_mut(0)
            .publisher_mut(0)
            .expect("a channel")
            .store_mut();
        assert!(store.recent_from().0 > 3);
        for seq in [1, 2, store.recent_from().0 - 1, store.next().0 - 1] {
            assert!(
                store.get(SeqNo(seq)).is_some(),
                "message {seq} of {:?}",
                store.next()
            );
        }
        (state_of(&market), found.inputs)
    }
}

#[test]
fn a_restart_from_a_snapshot_is_one_from_the_whole_journal_and_a_damaged_snapshot_falls_back() {
    let mut rng = Rng::new(22);
    for round in 0..6 {
        let protocol = PUBLISHED[round % PUBLISHED.len()];
        let folder = folder("restart");
        let mut config = config(protocol);
        config.exchange.seed = round as u64;
        let day = Day {
            path: folder.join("exchange.journal"),
            text: config.to_toml(),
            config,
        };
        let (mut market, _, mut journal) = day.open();
        let places = [100 + rng.below(200), 400 + rng.below(300), 750 + rng.below(40)];
        day.run(
            VIRTUAL_START,
            800 + rng.below(10),
            &places,
            &mut journal,
            &mut market,
        );
        // Killed: nothing more is written.
        let end = state_of(&market);
        drop((market, journal));
        let numbers: Vec<u64> = Snapshot::all(&day.path, &day.text)
            .iter()
            .map(Snapshot::number)
            .collect();
        assert_eq!(numbers, [13, 12]);
        let is_end = |state: &Vec<u8>| *state == end;

        let (state, newest) = day.restarted();
        assert!(is_end(&state), "{protocol:?}: the newest snapshot");
        let damage = |path: PathBuf, at: u64| {
            let mut bytes = std::fs::read(&path).expect("a snapshot");
            let at = at as usize % bytes.len();
            bytes[at] ^= 0x10;
            std::fs::write(&path, bytes).expect("written");
        };
        damage(day.snapshot(13), rng.below(1 << 20));
        let (state, older) = day.restarted();
        assert!(is_end(&state), "{protocol:?}: the older snapshot");
        // Cut short.
        let bytes = std::fs::read(day.snapshot(12)).expect("a snapshot");
        std::fs::write(day.snapshot(12), &bytes[..rng.below(bytes.len() as u64) as usize]).expect("written");
        let (state, whole) = day.restarted();
        assert!(is_end(&state), "{protocol:?}: the whole journal");
        assert!(
            newest < older && older < whole && whole > 800,
            "{newest} {older} {whole}"
        );

        // A snapshot of more of the journal than there is.
        std::fs::write(day.snapshot(12), &bytes).expect("written");
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(&day.path)
            .expect("a journal");
        let place = Snapshot::all(&day.path, &day.text)[0].place;
        file.set_len(place - 10).expect("cut");
        let (market, found, _journal) = day.open();
        assert_eq!(found.before, 0);
        assert!(market.total() > 100);
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}

/// Of another version, or of a market that is not this one: it is said, and the journal is replayed.
#[test]
fn a_snapshot_that_does_not_make_its_state_is_not_used() {
    let folder = folder("other");
    let config = config(Protocol::Itch50);
    let day = Day {
        path: folder.join("exchange.journal"),
        text: config.to_toml(),
        config,
    };
    let (mut market, _, mut journal) = day.open();
    day.run(VIRTUAL_START, 300, &[200], &mut journal, &mut market);
    let end = state_of(&market);
    drop((market, journal));
    // Whole, and with another state: what a program with other fields would have written.
    let path = day.snapshot(11);
    let whole = std::fs::read(&path).expect("a snapshot");
    let mut bytes = whole.clone();
    let at = bytes.len() - 9;
    bytes.remove(at);
    let sum = sum(&bytes[16..]);
    bytes[8..16].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&path, &bytes).expect("written");
    let (state, inputs) = day.restarted();
    assert!(state == end && inputs > 300);
    // Of another day, whose journal is as long to the byte: the same configuration, and snapshots that were
    // left where they lay.
    std::fs::write(&path, &whole).expect("written");
    std::fs::remove_file(&day.path).expect("moved away");
    let (mut market, found, mut journal) = day.open();
    assert_eq!((found.before, found.snapshot), (0, Some(11)));
    day.run(
        VIRTUAL_START.after(Nanos::DAY),
        200,
        &[],
        &mut journal,
        &mut market,
    );
    let today = state_of(&market);
    drop((market, journal));
    let length = std::fs::metadata(&day.path).expect("a journal").len();
    let mut bytes = whole.clone();
    bytes[32..40].copy_from_slice(&length.to_le_bytes());
    let sum = crate::history::sum(&bytes[16..]);
    bytes[8..16].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&path, &bytes).expect("written");
    let (state, inputs) = day.restarted();
    assert!(state == today && inputs > 200);
    // Of another configuration.
    assert!(Snapshot::all(&day.path, "another").is_empty());
    // A disk that takes none: said, and tried again.
    let mut writer = SnapshotWriter::new(Path::new("/proc/none/exchange.journal"), "", None);
    writer.take(
        JournalPosition {
            place: 0,
            tail: 0,
            last: Nanos(1),
            inputs: 0,
        },
        &make(&day.config),
    );
    while !writer.is_ready() {
        std::thread::yield_now();
    }
    assert_eq!(writer.failed(), 1);
    std::fs::remove_dir_all(&folder).expect("removed");
}
