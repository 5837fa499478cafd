//! FIX: dictionaries of any text, messages of any fields against one, and stores in memory that holds
//! anything.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Choices;
use tickwire_fix::dict::{Dictionary, Validation, Validator};
use tickwire_fix::{Index, LastingStore, Message, Store, naive};

/// A dictionary with a header, a group within a group, a component used twice and lists of values.
pub(crate) const DICTIONARY: &str = include_str!("fix_dictionary.xml");

/// A text that is no dictionary is refused with a line it has; one that is can be checked against.
pub fn fix_dictionary(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    match Dictionary::parse(text) {
        Ok(dictionary) => {
            let field = |tag: u32, value: &str| (tag, value.as_bytes().to_vec());
            let fields = [field(35, "D"), field(34, "1"), field(55, "IVOO"), field(453, "2")];
            with_message(&fields, |message| {
                let _ = check(&dictionary, message, Validation::default());
            });
        }
        Err(error) => {
            let lines = text.lines().count() as u32 + 1;
            assert!((1..=lines).contains(&error.line), "{error} of {lines}");
            assert!(!error.what.is_empty());
        }
    }
}

/// What all rules admit, fewer rules admit as well; the memory of one check says nothing about the next.
pub fn fix_validator(bytes: &[u8]) {
    const TAGS: [u32; 20] = [
        34, 43, 49, 52, 55, 54, 38, 44, 58, 93, 89, 122, 453, 448, 447, 802, 523, 803, 5001, 999,
    ];
    const VALUES: [&[u8]; 10] = [
        b"1",
        b"2",
        b"0",
        b"",
        b"Y",
        b"x",
        b"3",
        b"-1",
        b"99999999999999999999",
        b"20261120-14:30:00",
    ];
    let dictionary = Dictionary::parse(DICTIONARY).expect("the target's own dictionary");
    let mut choices = Choices::new(bytes);
    let Some(kind) = choices.byte() else { return };
    let kinds: [&[u8]; 4] = [b"D", b"0", b"E", b"?"];
    let mut fields = vec![(35, kinds[usize::from(kind) % kinds.len()].to_vec())];
    while let (Some(tag), Some(value)) = (choices.byte(), choices.byte()) {
        let tag = TAGS[usize::from(tag) % TAGS.len()];
        fields.push((tag, VALUES[usize::from(value) % VALUES.len()].to_vec()));
    }
    with_message(&fields, |message| {
        let all = Validation::default();
        let strict = check(&dictionary, message, all);
        let mut validator = Validator::new(&dictionary, &dictionary);
        let mut again = |rules| validator.check(&dictionary, &dictionary, message, rules);
        let off = [
            |rules: &mut Validation| rules.fields_out_of_order = false,
            |rules: &mut Validation| rules.fields_have_values = false,
            |rules: &mut Validation| rules.group_order = false,
            |rules: &mut Validation| rules.user_defined_fields = false,
            |rules: &mut Validation| rules.unknown_fields = false,
        ];
        for loosen in off {
            let mut rules = all;
            loosen(&mut rules);
            let loose = again(rules);
            assert!(
                strict.is_err() || loose.is_ok(),
                "{fields:?}: {loose:?} with {rules:?}"
            );
        }
        assert_eq!(again(all), strict, "{fields:?}");
    });
}

fn check(
    dictionary: &Dictionary,
    message: &Message<'_>,
    rules: Validation,
) -> Result<(), tickwire_fix::Fault> {
    Validator::new(dictionary, dictionary).check(dictionary, dictionary, message, rules)
}

fn with_message(fields: &[(u32, Vec<u8>)], then: impl FnOnce(&Message<'_>)) {
    let mut index = Index::new(256);
    let bytes = naive::encode(fields);
    if let Ok(message) = index.decode(&bytes) {
        then(&message);
    }
}

/// Words of the store that the target works on: two heads and a ring of 512 words.
const WORDS: usize = 1024 + 512;

/// Damages words as crashes, broken disks and people do: one word, one bit, zeros, words from elsewhere.
/// `None` at the end of the choices.
fn damage(choices: &mut Choices<'_>, words: &mut [u64]) -> Option<()> {
    let kind = choices.byte()?;
    let at = choices.below(WORDS as u32)? as usize;
    let number = choices.number()?;
    let count = (number >> 8) as usize % 64 + 1;
    let from = (number >> 16) as usize % WORDS;
    match kind % 4 {
        0 => words[at] = number,
        1 => words[at] ^= 1 << (number % 64),
        2 => words.iter_mut().skip(at).take(count).for_each(|word| *word = 0),
        _ => {
            let planted: Vec<u64> = words.iter().skip(from).take(count).copied().collect();
            words
                .iter_mut()
                .skip(at)
                .zip(planted)
                .for_each(|(word, other)| *word = other);
        }
    }
    Some(())
}

/// Whatever the memory holds, opening it ends: refused, or with no number that was used before. A message it
/// gives is one that was appended, one that it has not is told of, and it goes on from there.
pub fn fix_store(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let words: Box<[AtomicU64]> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let mut store = LastingStore::begin(words, b"E>T").expect("room for a store");
    let mut sent = BTreeSet::new();
    while let Some(what) = choices.byte() {
        match what % 8 {
            0..=3 => {
                let seq = store.next_out();
                if store.append(seq, &text(seq, usize::from(what) * 2 + 1)).is_ok() {
                    sent.insert(seq);
                }
            }
            4 if what & 8 != 0 => {
                let next = store.next_out().saturating_sub(u64::from(what >> 4)).max(1);
                store.set_next_out(next);
                sent.split_off(&next);
            }
            4 => store.set_next_out(store.next_out() + u64::from(what)),
            5 => store.set_next_in(store.next_in() + 1),
            6 if what & 8 != 0 => {
                store.reset();
                sent.clear();
            }
            _ => {
                // The machine crashed, or somebody wrote there.
                let torn = usize::from(what >> 3) % 4;
                let mut copy: Vec<u64> = store.memory().iter().map(|w| w.load(Ordering::Relaxed)).collect();
                for _ in 0..torn {
                    if damage(&mut choices, &mut copy).is_none() {
                        return;
                    }
                }
                let before = store.next_out();
                let words: Box<[AtomicU64]> = copy.into_iter().map(AtomicU64::new).collect();
                match LastingStore::open(words, b"E>T") {
                    Ok(opened) => store = opened,
                    Err(error) => {
                        assert!(torn > 0, "{error} without any damage");
                        return;
                    }
                }
                assert!(
                    store.next_out() >= before,
                    "{before} was used, {} is next",
                    store.next_out()
                );
            }
        }
        let next = store.next_out();
        for seq in next.saturating_sub(40)..next {
            let is_told = store.not_kept(seq, seq + 1).is_some();
            match store.get(seq) {
                Some(kept) => {
                    let expected = text(seq, kept.len());
                    assert_eq!(kept, expected, "message {seq} is another one");
                }
                None => assert!(
                    is_told || !sent.contains(&seq),
                    "message {seq} is missing without a word"
                ),
            }
        }
        assert_eq!(store.get(next), None);
    }
}

fn text(seq: u64, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|n| seq.wrapping_mul(31).wrapping_add(n * 7) as u8)
        .collect()
}
