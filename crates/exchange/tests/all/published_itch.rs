//! What the simulator publishes: rebuilds its books exactly, looks like a real session, is the same for the
//! same seed.

use crate::support;

use std::collections::BTreeMap;

use support::Builder;
use tickwire_exchange::{FlowConfig, OrderKinds, PaceConfig, StateHash, generate_itch, generate_itch_of};
use tickwire_market::Side;
use tickwire_testdata::{captures, file_bytes};
use tickwire_wire::itch50::{Message, parse};

fn build(seed: u64, messages: u64, symbols: u16) -> Builder {
    println!("seed {seed}");
    let mut builder = Builder::default();
    let engine = generate_itch(seed, messages, symbols, &mut |message| builder.apply(message));
    builder.assert_equals(&engine);
    assert!(builder.ended, "the day was closed");
    builder
}

#[test]
fn rebuilds_the_books_of_the_engine_order_by_order() {
    for (seed, messages, symbols) in [
        (1, 200_000, 1),
        (2, 200_000, 7),
        (3, 1_000_000, 100),
        (4, 300_000, 900),
    ] {
        let builder = build(seed, messages, symbols);
        for locate in 1..=u32::from(symbols) {
            for side in Side::BOTH {
                // The closing cross has taken some.
                assert!(
                    builder.book(locate, side).len() >= 3,
                    "{side:?} of {locate} has depth"
                );
            }
        }
    }
}

/// Shares of 1,000,000 messages of the session of 2019-10-30, and how far a run of two million may be off:
/// deletes come late in a short run, since one life in ten is longer than ten seconds.
#[test]
fn has_the_message_mix_of_a_real_day() {
    let builder = build(5, 2_000_000, 100);
    let real = BTreeMap::from([
        ('A', (433_000, 45_000)),
        ('D', (419_000, 70_000)),
        ('U', (87_000, 15_000)),
        ('E', (25_000, 6_000)),
        ('I', (13_000, 3_000)),
        ('X', (12_000, 3_000)),
        ('P', (5_200, 1_500)),
        ('F', (4_800, 1_500)),
        ('C', (400, 200)),
    ]);
    let mut off = Vec::new();
    for (kind, (share, tolerance)) in real {
        let ours = builder.kinds.get(&kind).copied().unwrap_or(0) * 1_000_000 / builder.messages;
        println!("{kind}: real {share:>7} ours {ours:>7} per million");
        if ours.abs_diff(share) > tolerance {
            off.push(kind);
        }
    }
    assert!(off.is_empty(), "shares of {off:?} are off");
}

/// What a strategy that follows the touch lives on.
#[test]
fn the_best_offer_of_the_most_active_instrument_moves_often_and_by_little() {
    let (mut builder, mut last, mut moves, mut far) = (Builder::default(), None, 0_u64, 0_u64);
    generate_itch(6, 500_000, 100, &mut |message| {
        builder.apply(message);
        let best = builder.best(1, Side::Ask);
        if let (Some(now), Some(before)) = (best, last)
            && now != before
        {
            moves += 1;
            far += u64::from((now.raw() - before.raw()).abs() > 100_000_000);
        }
        last = best;
    });
    println!(
        "{moves} moves in {} messages of it, {far} by more than ten ticks",
        builder.messages
    );
    assert!((100..20_000).contains(&moves), "{moves}");
    assert!(far * 50 < moves, "{far} of {moves} are far");
}

#[test]
fn one_seed_is_one_stream_and_another_seed_another() {
    let hash = |seed| {
        let mut hash = StateHash::default();
        let engine = generate_itch(seed, 50_000, 20, &mut |message| {
            message.iter().for_each(|byte| hash.word(u64::from(*byte)));
        });
        (hash.value(), engine.state_hash())
    };
    assert_eq!(hash(11), hash(11));
    assert_ne!(hash(11), hash(12));
}

/// What happened to an order, when, as a recording of one instrument has it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Added,
    Deleted,
    Other,
}

/// Nanoseconds, what, which order. A replacement is a deletion and an addition, as in the recordings.
type Record = (u64, Kind, u64);

/// Statistics of one instrument's order flow.
#[derive(Debug)]
struct Shape {
    /// Of all events, in a thousand: additions, deletions.
    added: u64,
    deleted: u64,
    /// Of lives that ended with a deletion, in a thousand: shorter than 1 s, than 10 s.
    below_1_s: u64,
    below_10_s: u64,
    /// Of the gaps between events, in a thousand: shorter than a tenth of the mean gap (95 if events came
    /// independently).
    short_gaps: u64,
    /// Variance over mean of the number of events in windows of twenty mean gaps (1 if events came
    /// independently).
    dispersion: u64,
}

impl Shape {
    fn of(records: &[Record]) -> Shape {
        let thousandth = |part: usize, all: usize| (part * 1000 / all.max(1)) as u64;
        let share = |kind| thousandth(records.iter().filter(|r| r.1 == kind).count(), records.len());
        let (mut born, mut lives) = (BTreeMap::new(), Vec::new());
        for (at, kind, id) in records {
            match kind {
                Kind::Added => drop(born.insert(*id, *at)),
                Kind::Deleted => lives.extend(born.remove(id).map(|since| at - since)),
                Kind::Other => {}
            }
        }
        let below = |limit: u64| thousandth(lives.iter().filter(|life| **life < limit).count(), lives.len());
        let (first, last) = (records[0].0, records[records.len() - 1].0);
        let mean = (last - first) / (records.len() as u64 - 1);
        let gaps = records
            .windows(2)
            .filter(|pair| pair[1].0 - pair[0].0 < mean / 10);
        let mut windows = vec![0_u64; ((last - first) / (20 * mean)) as usize + 1];
        records
            .iter()
            .for_each(|r| windows[((r.0 - first) / (20 * mean)) as usize] += 1);
        let variance: u64 = windows.iter().map(|n| n.abs_diff(20).pow(2)).sum::<u64>() / windows.len() as u64;
        Shape {
            added: share(Kind::Added),
            deleted: share(Kind::Deleted),
            below_1_s: below(1_000_000_000),
            below_10_s: below(10_000_000_000),
            short_gaps: thousandth(gaps.count(), records.len()),
            dispersion: variance / 20,
        }
    }
}

/// A day of a name: LOBSTER's messages (time in seconds, type, order, size, price, direction).
fn recorded(path: &str) -> Shape {
    let text = String::from_utf8(file_bytes(&captures(path))).expect("text");
    let records: Vec<Record> = text
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(',');
            let seconds: f64 = fields.next()?.parse().ok()?;
            let kind = match fields.next()? {
                "1" => Kind::Added,
                "3" => Kind::Deleted,
                _ => Kind::Other,
            };
            Some(((seconds * 1e9) as u64, kind, fields.next()?.parse().ok()?))
        })
        .collect();
    Shape::of(&records)
}

/// The flow's most active instrument beside the recorded names. Recorded are AAPL's first 999 messages and
/// AMZN's whole day, both of 2012-06-21; each statistic of the flow lies between theirs, or off the nearer
/// one by no more than stated.
#[tickwire_testdata::recorded_data("captures/books/lobster")]
#[test]
fn has_the_shares_lives_and_bursts_of_recorded_names() {
    let flow = FlowConfig {
        seed: 8,
        max_live: 50_000,
        kinds: OrderKinds::FEW,
        ..FlowConfig::default()
    };
    let pace = PaceConfig {
        rate: 2_000,
        cluster_percent: PaceConfig::RECORDED_CLUSTERS,
        ..PaceConfig::default()
    };
    let mut records: Vec<Record> = Vec::new();
    generate_itch_of(flow, pace, 400_000, 20, &mut |bytes| {
        let at = u64::from_be_bytes([0, 0, bytes[5], bytes[6], bytes[7], bytes[8], bytes[9], bytes[10]]);
        if bytes[1..3] != [0, 1] {
            return;
        }
        match parse(bytes).expect("a well-formed message") {
            Message::AddOrder(m) => records.push((at, Kind::Added, m.order_ref.get())),
            Message::AddOrderMpid(m) => records.push((at, Kind::Added, m.order_ref.get())),
            Message::OrderDelete(m) => records.push((at, Kind::Deleted, m.order_ref.get())),
            Message::OrderReplace(m) => {
                records.push((at, Kind::Deleted, m.original_order_ref.get()));
                records.push((at, Kind::Added, m.new_order_ref.get()));
            }
            Message::OrderExecuted(_)
            | Message::OrderExecutedWithPrice(_)
            | Message::OrderCancel(_)
            | Message::Trade(_) => records.push((at, Kind::Other, 0)),
            _ => {}
        }
    });
    let ours = Shape::of(&records);
    let aapl = recorded("books/lobster/AAPL_first1000_message_10.csv");
    let amzn = recorded("books/lobster/AMZN_2012-06-21_34200000_57600000_message_1.csv");
    println!("AAPL {aapl:?}\nAMZN {amzn:?}\nours {ours:?}");
    type Statistic = (&'static str, fn(&Shape) -> u64, u64);
    let statistics: [Statistic; 6] = [
        ("additions", |s| s.added, 30),
        ("deletions", |s| s.deleted, 120),
        ("lives below 1 s", |s| s.below_1_s, 100),
        ("lives below 10 s", |s| s.below_10_s, 60),
        ("short gaps", |s| s.short_gaps, 60),
        ("dispersion", |s| s.dispersion, 12),
    ];
    for (name, of, tolerance) in statistics {
        let (low, high) = (of(&aapl).min(of(&amzn)), of(&aapl).max(of(&amzn)));
        let is_near = (low.saturating_sub(tolerance)..=high + tolerance).contains(&of(&ours));
        assert!(is_near, "{name}: ours {}, recorded {low} to {high}", of(&ours));
    }
}
