//! Stores in memory that is killed between any two words, torn, overwritten and opened again.

use super::*;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use proptest::prelude::*;

/// Words of the smallest store.
const SMALL: usize = RECORDS + RING_MIN;

fn memory(words: usize) -> Box<[AtomicU64]> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

fn image(memory: &[AtomicU64]) -> Vec<u64> {
    memory.iter().map(|w| w.load(Ordering::Relaxed)).collect()
}

fn restored(image: &[u64]) -> Box<[AtomicU64]> {
    image.iter().map(|w| AtomicU64::new(*w)).collect()
}

fn message(seq: u64, len: usize) -> Vec<u8> {
    (0..len).map(|n| (seq as usize * 31 + n * 7) as u8).collect()
}

type Stored = LastingStore<Box<[AtomicU64]>>;

fn begun(words: usize) -> Stored {
    LastingStore::begin(memory(words), b"A>B").expect("it holds in this test")
}

fn reopened(image: &[u64]) -> Stored {
    LastingStore::open(restored(image), b"A>B").expect("it holds in this test")
}

/// Every number up to the next is looked for: what is found is what was sent.
fn check(store: &mut Stored, sent: &BTreeMap<u64, Vec<u8>>) -> u64 {
    let mut found = 0;
    for seq in 1..store.next_out() + 3 {
        let kept = store.get(seq).map(<[u8]>::to_vec);
        assert_eq!(store.next_kept(seq) == Some(seq), kept.is_some(), "message {seq}");
        if let Some(kept) = kept {
            assert_eq!(Some(&kept), sent.get(&seq), "message {seq}");
            found += 1;
        }
    }
    found
}

#[test]
fn what_was_stored_is_there_after_opening_again() {
    let mut store = begun(RECORDS + 1024);
    for seq in 1..=40 {
        store
            .append(seq, &message(seq, 1 + seq as usize * 5))
            .expect("it holds in this test");
    }
    store.set_next_out(43);
    store.set_next_in(17);
    store.set_period(Nanos(1_795_226_141_000_000_000));
    let mut again = reopened(&image(store.memory()));
    assert_eq!((again.next_out(), again.next_in()), (43, 17));
    assert_eq!(again.recovery().holes, []);
    for seq in 1..=40 {
        let expected = store.get(seq).map(<[u8]>::to_vec);
        assert_eq!(again.get(seq).map(<[u8]>::to_vec), expected);
        if let Some(kept) = expected {
            assert_eq!(kept, message(seq, 1 + seq as usize * 5));
        }
    }
    assert!(again.recovery().messages > 20);
    again.reset();
    assert_eq!(again.period(), Nanos(1_795_226_141_000_000_000));
    assert_eq!(again.get(40), None);
    assert_eq!((again.next_out(), again.next_in()), (1, 1));
}

/// The fault of 65,536: a ring that holds more messages finds all of them, in this process and the next.
#[test]
fn every_message_that_the_ring_holds_is_found_however_many() {
    const MESSAGES: u64 = 150_000;
    let mut store = begun(RECORDS + (1 << 20));
    for seq in 1..=MESSAGES {
        // Some numbers are the session's own.
        match seq % 7 {
            0 => store.set_next_out(seq + 1),
            _ => store
                .append(seq, &message(seq, 33))
                .expect("it holds in this test"),
        }
    }
    let mut again = reopened(&image(store.memory()));
    assert_eq!(again.recovery().messages, MESSAGES - MESSAGES / 7);
    for store in [&mut store, &mut again] {
        for seq in (1..=MESSAGES).filter(|seq| seq % 7 != 0) {
            assert_eq!(store.get(seq), Some(&message(seq, 33)[..]), "message {seq}");
        }
        assert_eq!(store.next_kept(7), Some(8));
        assert_eq!(store.not_kept(1, MESSAGES), None);
    }
}

/// What has given way is known by its numbers, also to the next process.
#[test]
fn what_gave_way_is_told_by_its_numbers() {
    let mut store = begun(SMALL);
    for seq in 1..=100 {
        store
            .append(seq, &message(seq, 100))
            .expect("it holds in this test");
    }
    let oldest = store.next_kept(1).expect("it holds in this test");
    assert!((50..90).contains(&oldest), "{oldest}");
    let gone = NotKept {
        first: 1,
        last: oldest - 1,
        count: oldest - 1,
    };
    let mut again = reopened(&image(store.memory()));
    for store in [&mut store, &mut again] {
        assert_eq!(store.not_kept(1, 101), Some(gone));
        assert_eq!(store.not_kept(oldest, 101), None);
    }
    assert_eq!(again.recovery().oldest, oldest);
    store.reset();
    assert_eq!(store.not_kept(1, 101), None);
}

/// `fix store --next-out` with a number that was used: the messages from it on are forgotten, and do not come
/// back.
#[test]
fn a_number_set_back_forgets_what_was_sent_under_it() {
    let mut store = begun(SMALL);
    for seq in 1..=20 {
        store
            .append(seq, &message(seq, 40))
            .expect("it holds in this test");
    }
    store.set_next_out(11);
    assert_eq!(reopened(&image(store.memory())).next_out(), 11);
    store.append(11, &message(99, 40)).expect("it holds in this test");
    let mut again = reopened(&image(store.memory()));
    assert_eq!(again.next_out(), 12);
    for store in [&mut store, &mut again] {
        assert_eq!(store.get(10), Some(&message(10, 40)[..]));
        assert_eq!(store.get(11), Some(&message(99, 40)[..]));
        assert_eq!(store.next_kept(12), None);
    }
}

#[test]
fn other_memory_is_refused_and_left_alone() {
    let store = begun(SMALL);
    let refused = |change: &dyn Fn(&mut Vec<u64>), expected: StoreError| {
        let mut words = image(store.memory());
        change(&mut words);
        let identity: &[u8] = if expected == StoreError::OtherSession {
            b"A>C"
        } else {
            b"A>B"
        };
        let memory = restored(&words);
        assert_eq!(LastingStore::open(&memory, identity).unwrap_err(), expected);
        assert_eq!(image(&memory), words, "{expected}");
    };
    refused(&|_| {}, StoreError::OtherSession);
    refused(&|words| words.fill(7), StoreError::NotAStore);
    // Zeros are no new store: somebody took the numbers away.
    refused(&|words| words.fill(0), StoreError::Damaged);
    refused(&|words| words[..RECORDS].fill(0), StoreError::Damaged);
    refused(
        &|words| {
            words[STATE + 2] = 1;
            words[HEAD_WORDS + STATE + 2] = 1;
            words[STATE] ^= 1 << 40;
            words[HEAD_WORDS + STATE] ^= 1 << 40;
        },
        StoreError::Damaged,
    );
    refused(&|words| words.clear(), StoreError::CutShort { bytes: 0 });
    refused(&|words| words.truncate(700), StoreError::CutShort { bytes: 5600 });
    refused(
        &|words| words.truncate(RECORDS + 100),
        StoreError::CutShort {
            bytes: (RECORDS + 100) * 8,
        },
    );
}

impl Words for &Box<[AtomicU64]> {
    fn words(&self) -> &[AtomicU64] {
        self
    }
}

/// A head that says "1 and 1" without being written by a store is seen for what it is; the other copy still
/// knows.
#[test]
fn one_damaged_head_is_repaired_by_the_other_and_no_number_is_used_twice() {
    for copy in 0..2 {
        let mut store = begun(SMALL);
        for seq in 1..=9 {
            store
                .append(seq, &message(seq, 40))
                .expect("it holds in this test");
        }
        store.set_next_out(13);
        store.set_next_in(5);
        store.set_next_in(6);
        let mut words = image(store.memory());
        words[copy * HEAD_WORDS..(copy + 1) * HEAD_WORDS].fill(0);
        let mut again = reopened(&words);
        assert!(again.recovery().has_damaged_head);
        assert!((13..=14).contains(&again.next_out()), "{}", again.next_out());
        assert!((5..=6).contains(&again.next_in()), "{}", again.next_in());
        assert_eq!(again.get(9), Some(&message(9, 40)[..]));
        let repaired = reopened(&image(again.memory()));
        assert!(!repaired.recovery().has_damaged_head);
        assert_eq!(repaired.next_out(), again.next_out());
    }
}

/// One flipped byte cut everything behind it: now it costs the message that it is in.
#[test]
fn a_flipped_byte_costs_one_message_and_says_which() {
    let mut store = begun(RECORDS + (1 << 14));
    let mut sent = BTreeMap::new();
    for seq in 1..=900 {
        store
            .append(seq, &message(seq, 100))
            .expect("it holds in this test");
        sent.insert(seq, message(seq, 100));
    }
    let mut words = image(store.memory());
    // In the middle of the message 401: a record has 2 + 13 words.
    words[RECORDS + 400 * 15 + 7] ^= 1 << 13;
    let mut again = reopened(&words);
    let hole = Hole {
        after: 400,
        before: 402,
        bytes: 120,
    };
    assert_eq!(again.recovery().holes, [hole]);
    assert_eq!(again.recovery().messages, 899);
    assert_eq!(check(&mut again, &sent), 899);
    assert_eq!(
        again.not_kept(1, 901).map(|gone| (gone.first, gone.last)),
        Some((401, 401))
    );
    // It stays known, and the ring goes on over it.
    let mut third = reopened(&image(again.memory()));
    assert_eq!(third.recovery().holes, [hole]);
    for seq in 901..=3000 {
        third
            .append(seq, &message(seq, 100))
            .expect("it holds in this test");
        sent.insert(seq, message(seq, 100));
    }
    assert!(check(&mut third, &sent) > 800);
    // What was missing has given way with its neighbours, and the next process knows.
    assert!(reopened(&image(third.memory())).not_kept(401, 402).is_some());
}

/// The newest message is damaged where the ring begins again: the oldest ones, in the same block a lap ago,
/// are found all the same.
#[test]
fn damage_to_the_newest_message_does_not_hide_the_oldest() {
    let mut store = begun(SMALL);
    // Records of 16 words: the last begins with the second lap.
    for seq in 1..=33 {
        store
            .append(seq, &message(seq, 112))
            .expect("it holds in this test");
    }
    let (begin, end) = (store.state.begin, store.state.end);
    assert!(begin > 0 && end > RING_MIN as u64);
    let mut words = image(store.memory());
    words[store.place(end - 1)] ^= 1;
    let mut again = reopened(&words);
    let oldest = store.next_kept(1).expect("it holds in this test");
    for seq in oldest..33 {
        assert_eq!(again.get(seq), Some(&message(seq, 112)[..]), "message {seq}");
    }
    assert!(again.not_kept(33, 34).is_some());
}

/// A number is set back behind damage: what lies between is still found.
#[test]
fn a_number_set_back_behind_damage_leaves_what_is_before_it() {
    let mut store = begun(RECORDS + 4 * RING_MIN);
    for seq in 1..=120 {
        store
            .append(seq, &message(seq, 112))
            .expect("it holds in this test");
    }
    let mut words = image(store.memory());
    words[RECORDS + 3 * 16 + 5] ^= 1;
    let mut again = reopened(&words);
    again.set_next_out(100);
    for seq in (1..100).filter(|seq| *seq != 4) {
        assert_eq!(again.get(seq), Some(&message(seq, 112)[..]), "message {seq}");
    }
    again.append(100, b"8=FIX").expect("it holds in this test");
    assert_eq!(again.get(100), Some(&b"8=FIX"[..]));
    assert_eq!(again.next_kept(101), None);
}

#[test]
fn a_store_that_is_written_meanwhile_is_inspected() {
    let mut store = begun(SMALL);
    for seq in 1..=100 {
        store
            .append(seq, &message(seq, 40))
            .expect("it holds in this test");
    }
    let mut copy = image(store.memory());
    // Half a lap more, while the second half of the ring was copied.
    for seq in 101..=140 {
        store
            .append(seq, &message(seq, 40))
            .expect("it holds in this test");
    }
    let now = image(store.memory());
    copy[RECORDS + 256..].copy_from_slice(&now[RECORDS + 256..]);
    let later = restored(&now[..RECORDS]);
    let mut seen = LastingStore::inspect(restored(&copy), Some(&later)).expect("it holds in this test");
    assert_eq!(seen.next_out(), 141);
    assert_eq!(seen.recovery().holes, []);
    let mut oldest = None;
    seen.for_each(|seq, bytes| {
        oldest.get_or_insert(seq);
        assert_eq!(bytes, &message(seq, 40)[..]);
    });
    assert_eq!(oldest, store.next_kept(1));
}

/// What a store of the earlier format holds: two messages and their numbers, put together by hand from its
/// description.
#[test]
fn a_store_of_the_earlier_format_is_read() {
    let mut words = alloc::vec![0_u64; 16 + 512];
    words[0] = earlier::MAGIC;
    (words[1], words[2], words[6]) = (9, 5, 77);
    words[8..16].copy_from_slice(&identity_words(b"A>B"));
    let mut at = 16;
    for seq in [6_u64, 8] {
        let bytes = message(seq, 20);
        let mut hash = Hash::new(seq, 20);
        for (n, part) in bytes.chunks(8).enumerate() {
            words[at + 2 + n] = word_of(part);
            hash.take(n, word_of(part));
        }
        words[at] = seq;
        words[at + 1] = 20 | hash.finish() >> 32 << 32;
        at += 5;
    }
    words[4] = at as u64 - 16;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(
        LastingStore::open(restored(&words), b"A>B").unwrap_err(),
        StoreError::Earlier
    );
    let read = EarlierStore::read(&bytes, Some(b"A>B")).expect("it holds in this test");
    assert_eq!((read.next_out, read.next_in, read.period), (9, 5, Nanos(77)));
    assert_eq!(read.messages, [(6, message(6, 20)), (8, message(8, 20))]);
    assert_eq!(
        EarlierStore::read(&bytes, Some(b"A>C")).unwrap_err(),
        StoreError::OtherSession
    );
}

#[test]
fn a_new_file_begins_with_what_begins_a_new_store() {
    let bytes = store_bytes(100_000);
    assert_eq!(bytes, STORE_HEAD_BYTES + (1 << 17));
    let head = new_store(b"A>B", bytes);
    assert_eq!(head.len(), STORE_HEAD_BYTES);
    let size = StoreSize {
        bytes,
        used: STORE_HEAD_BYTES,
        next_out: 1,
        is_half: false,
    };
    assert_eq!(store_size(&head), Ok(size));
    assert_eq!(store_size(&head[..99]), Err(StoreError::CutShort { bytes: 99 }));
    assert_eq!(store_size(b""), Err(StoreError::CutShort { bytes: 0 }));
    assert_eq!(store_size(&[7; 9000]), Err(StoreError::NotAStore));
    assert_eq!(store_size(&[0; 9000]), Err(StoreError::Damaged));
}

proptest! {
    /// Words were torn by a crash of the machine, or overwritten: whatever they are now, what is found is
    /// what was stored, what is not is in a hole or has given way, and no number is used twice.
    #[test]
    fn torn_words_are_never_taken_for_messages(
        lengths in prop::collection::vec(1_usize..200, 1..60),
        torn in prop::collection::vec((0_usize..512, any::<u64>()), 1..6),
    ) {
        let mut store = begun(SMALL);
        let mut sent = BTreeMap::new();
        for (n, len) in lengths.into_iter().enumerate() {
            let seq = n as u64 + 1;
            store.append(seq, &message(seq, len)).expect("it holds in this test");
            sent.insert(seq, message(seq, len));
        }
        let mut words = image(store.memory());
        for (at, word) in torn {
            words[RECORDS + at] = word;
        }
        let mut again = reopened(&words);
        prop_assert_eq!(again.next_out(), sent.len() as u64 + 1);
        check(&mut again, &sent);
        for seq in 1..again.next_out() {
            let is_told = again.not_kept(seq, seq + 1).is_some();
            prop_assert!(is_told || again.get(seq).is_some(), "message {} is missing without a word", seq);
        }
        // It goes on from there.
        let next = again.next_out();
        again.append(next, b"8=FIX").expect("it holds in this test");
        prop_assert_eq!(again.get(next), Some(&b"8=FIX"[..]));
    }

    /// Any words anywhere, heads included: refused, or numbers that are not below those of before.
    #[test]
    fn damaged_heads_never_give_a_number_that_was_used(
        messages in 1_u64..40,
        torn in prop::collection::vec((0_usize..SMALL, 0_u32..64), 1..4),
    ) {
        let mut store = begun(SMALL);
        for seq in 1..=messages {
            store.append(seq, &message(seq, 60)).expect("it holds in this test");
        }
        store.set_next_out(messages + 3);
        let mut words = image(store.memory());
        for (at, bit) in torn {
            words[at] ^= 1 << bit;
        }
        if let Ok(again) = LastingStore::open(restored(&words), b"A>B") {
            prop_assert!(again.next_out() >= messages + 3);
        }
    }

    /// The process was killed between any two stores of anything: the state is the one before or the one
    /// after.
    #[test]
    fn every_prefix_of_what_a_store_writes_is_a_whole_state(
        len in 1_usize..300,
        before in 1_u64..120,
        kill in 0_usize..90,
        what in 0_u8..4,
    ) {
        let mut store = begun(SMALL);
        for seq in 1..=before {
            store.append(seq, &message(seq, 40)).expect("it holds in this test");
        }
        store.set_next_in(before + 7);
        store.set_period(Nanos(5));
        let old = image(store.memory());
        let next = before + 1;
        let act = |store: &mut Stored| match what {
            0 => store.append(next, &message(next, len)).expect("it holds in this test"),
            1 => store.set_next_in(before + 8),
            2 => store.reset(),
            _ => store.set_next_out(next + 2),
        };
        let (end, generation) = (store.state.end, store.state.generation);
        act(&mut store);
        let new = image(store.memory());
        // The words in the order in which they are written: heads for what gives way, the record, the head
        // that counts it.
        let mut order = Vec::new();
        for changed in generation + 1..=store.state.generation {
            if changed == store.state.generation {
                let record = (end + 2..store.state.end).chain(end..(end + 2).min(store.state.end));
                order.extend(record.map(|at| store.place(at)).map(|place| (place, new[place])));
            }
            let head = (changed & 1) as usize * HEAD_WORDS + STATE;
            order.push((head, BEING_WRITTEN));
            order.extend((head + 1..head + STATE_WORDS).chain([head]).map(|place| (place, new[place])));
        }
        let mut killed = old;
        for (place, value) in order.into_iter().take(kill) {
            killed[place] = value;
        }
        let mut again = reopened(&killed);
        let numbers = (again.next_out(), again.next_in());
        let after = (store.next_out(), store.next_in());
        prop_assert!(numbers == (next, before + 7) || numbers == after, "{:?}", numbers);
        prop_assert_eq!(again.recovery().holes.len(), 0);
        prop_assert!(!again.recovery().has_damaged_head);
        prop_assert_eq!(again.period(), Nanos(5));
        if what == 0 {
            prop_assert_eq!(again.get(next).is_some(), numbers == after);
        }
        for seq in 1..=before {
            let kept = again.get(seq).map(<[u8]>::to_vec);
            prop_assert!(kept.is_none() || kept == Some(message(seq, 40)));
            prop_assert!(kept.is_none() || numbers != (1, 1));
        }
        let next = again.next_out();
        again.append(next, b"8=FIX").expect("it holds in this test");
        prop_assert_eq!(again.get(next), Some(&b"8=FIX"[..]));
    }
}
