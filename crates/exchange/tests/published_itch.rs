//! What the simulator publishes: rebuilds its books exactly, looks like a real session, is the same for the same seed.

mod support;

use std::collections::BTreeMap;

use support::Builder;
use tickwire_exchange::{StateHash, generate_itch};
use tickwire_market::Side;

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

/// Shares of 1,000,000 messages of the session of 2019-10-30, and how far a run of two million may be off: deletes come
/// late in a short run, since one life in ten is longer than ten seconds.
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
