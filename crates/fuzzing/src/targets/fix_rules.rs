//! FIX: dictionaries of any text, messages of any fields against one, and stores in memory that holds anything.

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

/// Words of the store that the target works on: a ring of 512 words behind its head.
const WORDS: usize = 640;

/// Whatever the memory holds, opening it ends; a message it gives is one that was appended, and it goes on from there.
pub fn fix_store(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let words: Box<[AtomicU64]> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let mut store = LastingStore::open(words, b"E>T", 32).expect("zeros are a new store");
    while let Some(what) = choices.byte() {
        match what % 8 {
            0..=3 => {
                let seq = store.next_out();
                let _ = store.append(seq, &text(seq, usize::from(what) * 2 + 1));
            }
            4 => store.set_next_out(store.next_out() + u64::from(what)),
            5 => store.set_next_in(store.next_in() + 1),
            6 if what & 8 != 0 => store.reset(),
            _ => {
                // The machine crashed, or somebody wrote there.
                let torn = usize::from(what >> 3) % 4;
                let mut copy: Vec<u64> = store.memory().iter().map(|w| w.load(Ordering::Relaxed)).collect();
                for _ in 0..torn {
                    let (Some(at), Some(value)) = (choices.below(WORDS as u32), choices.number()) else {
                        return;
                    };
                    copy[at as usize] = value;
                }
                let words: Box<[AtomicU64]> = copy.into_iter().map(AtomicU64::new).collect();
                match LastingStore::open(words, b"E>T", 32) {
                    Ok(opened) => store = opened,
                    Err(error) => {
                        assert!(torn > 0, "{error} without any damage");
                        return;
                    }
                }
            }
        }
        let next = store.next_out();
        for seq in next.saturating_sub(40)..next {
            if let Some(kept) = store.get(seq) {
                let expected = text(seq, kept.len());
                assert_eq!(kept, expected, "message {seq} is another one");
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
