//! A channel's messages in a file: found, bounded, on a full disk, damaged; and of every protocol the same as
//! with memory for all of the day.

use super::*;
use crate::settings::MarketConfig;
use crate::venue::{VIRTUAL_START, market_of};
use tickwire_runtime::files;
use tickwire_testdata::Rng;
use tickwire_wire::moldudp64;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tickwire-history-{name}-{}", std::process::id()));
    files::create_folders(&folder).expect("a folder");
    folder
}

fn message(seq: u64) -> Vec<u8> {
    let mut rng = Rng::new(seq);
    let mut bytes = vec![0; rng.below(200) as usize];
    rng.fill(&mut bytes);
    bytes
}

fn fill(history: &mut HistoryFile, range: std::ops::Range<u64>) {
    for seq in range {
        history.keep(SeqNo(seq), &message(seq));
        if seq % 97 == 0 {
            history.write();
        }
    }
}

#[test]
fn every_message_is_found_by_its_number_in_memory_and_in_the_file_which_is_ours_alone() {
    use std::os::unix::fs::MetadataExt;
    let folder = folder("found");
    let path = folder.join("x.history-0");
    let mut history = HistoryFile::create(&path, u64::MAX).expect("a file");
    assert_eq!((history.kept_from(SeqNo(1)), history.get(SeqNo(1))), (None, None));
    fill(&mut history, 1..20_001);
    assert!(std::fs::metadata(&path).expect("a file").len() > 1_500_000);
    assert_eq!(std::fs::metadata(&path).expect("a file").mode() & 0o777, 0o600);
    let mut rng = Rng::new(2);
    for seq in (1..=20_000).chain((0..5_000).map(|_| 1 + rng.below(20_000))) {
        assert_eq!(history.get(SeqNo(seq)), Some(message(seq)), "message {seq}");
        assert_eq!(history.kept_from(SeqNo(seq)), Some(SeqNo(seq)));
    }
    assert_eq!(history.get(SeqNo(20_001)), None);
    assert_eq!(history.get(SeqNo(0)), None);
    assert_eq!(history.kept_from(SeqNo(20_001)), None);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_file_at_its_bound_has_the_newest_messages_and_does_not_grow() {
    let folder = folder("bound");
    let path = folder.join("x.history-0");
    let mut history = HistoryFile::create(&path, 4 * BLOCK as u64).expect("a file");
    fill(&mut history, 1..50_001);
    let length = std::fs::metadata(&path).expect("a file").len();
    assert!(
        (3 * BLOCK as u64..=4 * BLOCK as u64).contains(&length),
        "{length}"
    );
    let first = history.kept_from(SeqNo(1)).expect("some").0;
    assert!((48_000..49_000).contains(&first), "{first}");
    for seq in first..=50_000 {
        assert_eq!(history.get(SeqNo(seq)), Some(message(seq)), "message {seq}");
    }
    assert_eq!(history.get(SeqNo(first - 1)), None);
    std::fs::remove_dir_all(folder).expect("removed");
}

/// A device that is always full.
#[test]
fn a_full_disk_is_counted_memory_stays_bounded_and_what_follows_is_kept_again() {
    let folder = folder("full");
    let path = folder.join("x.history-0");
    let mut history = HistoryFile::create(&path, u64::MAX).expect("a file");
    fill(&mut history, 1..2_001);
    let written = history.next;
    let file = std::mem::replace(
        &mut history.file,
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("a full device"),
    );
    fill(&mut history, 2_001..60_001);
    assert!(history.waiting.len() <= WAITING_MAX && history.is_failing && history.lost() > 10_000);
    assert_eq!(history.next, written);
    history.file = file;
    history.retry_at = Nanos::ZERO;
    history.write();
    fill(&mut history, 60_001..70_001);
    assert!(!history.is_failing && history.waiting.is_empty());
    let hole = (1..)
        .find(|seq| history.get(SeqNo(*seq)).is_none())
        .expect("a hole");
    let behind = history.kept_from(SeqNo(hole)).expect("something behind it").0;
    assert_eq!(
        behind - hole,
        history.lost(),
        "what is missing is what was counted"
    );
    for seq in (1..hole).chain(behind..=70_000) {
        assert_eq!(history.get(SeqNo(seq)), Some(message(seq)), "message {seq}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_block_whose_sum_is_wrong_is_not_there() {
    let folder = folder("damaged");
    let path = folder.join("x.history-0");
    let mut history = HistoryFile::create(&path, u64::MAX).expect("a file");
    fill(&mut history, 1..5_001);
    let block = history.find(1_000).expect("in the file");
    history
        .file
        .write_all_at(b"?", history.place(block) + 500)
        .expect("damaged");
    assert_eq!(history.get(SeqNo(1_000)), None);
    let behind = history.kept_from(SeqNo(1_000)).expect("the next block");
    assert_eq!(Some(behind.0), history.first_of(block + 1));
    assert_eq!(history.get(behind), Some(message(behind.0)));
    std::fs::remove_dir_all(folder).expect("removed");
}

/// Every protocol that is published: a channel with little memory and a file has what one with memory for the
/// whole session has, and answers the same, once everything was sent.
#[test]
fn a_channel_with_little_memory_and_a_file_has_the_whole_day() {
    use tickwire_exchange::Publisher;
    let folder = folder("day");
    let mut asked = 0;
    for protocol in tickwire_venues::wiring::PUBLISHED {
        let mut config = MarketConfig::of_protocol(protocol);
        config.exchange.symbols.0 = 10;
        config.receiver.max_orders = 20_000;
        config.exchange.duration_s.0 = 1.0;
        let day = |kept: Option<usize>, history: Option<&Path>| {
            let (mut market, published) = market_of(&config, kept).expect("a market");
            if let Some(path) = history {
                let file = HistoryFile::create(path, u64::MAX).expect("a file");
                let publisher = market
                    .exchange_mut(0)
                    .publisher_mut(published[0].published_channel)
                    .expect("a channel");
                publisher.store_mut().keep_history(Box::new(file));
            }
            market.open(VIRTUAL_START);
            let mut now = VIRTUAL_START;
            while now < VIRTUAL_START.after(2 * Nanos::SECOND) {
                crate::venue::datagrams(&mut market, now, |_, _| {});
                market.histories_mut().for_each(|history| history.write());
                now = now.after(Nanos::MILLI);
            }
            market
        };
        let mut whole = day(None, None);
        let path = folder.join(format!("{protocol:?}"));
        let mut bounded = day(Some(16), Some(&path));
        let whole = whole.exchange_mut(0).publisher_mut(0).expect("a channel");
        let bounded = bounded.exchange_mut(0).publisher_mut(0).expect("a channel");
        let next = whole.store_mut().next();
        assert_eq!(bounded.store_mut().next(), next);
        assert_eq!(bounded.store_mut().first(), SeqNo(1), "{protocol:?}");
        let recent = bounded.store_mut().recent_from();
        assert!(
            recent > SeqNo(1_000),
            "{protocol:?}: {recent:?} of {next:?} and later in memory"
        );
        for seq in 1..next.0 {
            let (a, b) = (
                whole.store_mut().get(SeqNo(seq)),
                bounded.store_mut().get(SeqNo(seq)),
            );
            assert!(a.is_some() && a == b, "{protocol:?}: message {seq}");
        }
        let session = *b"TICKWIRE01";
        for seq in (1..next.0).step_by(77) {
            let request = moldudp64::Request {
                session,
                seq: SeqNo(seq),
                count: 20,
            }
            .encode();
            let ask = |publisher: &mut dyn Publisher| {
                let mut reply = [0; 2048];
                let length = publisher.handle_request(VIRTUAL_START, &request, &mut reply);
                length.map(|length| reply[..length].to_vec())
            };
            let answer = ask(bounded);
            assert_eq!(answer, ask(whole), "{protocol:?}: message {seq}");
            asked += u32::from(answer.is_some());
        }
    }
    assert!(asked > 100, "{asked} answers");
    std::fs::remove_dir_all(folder).expect("removed");
}
