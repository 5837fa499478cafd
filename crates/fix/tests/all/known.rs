//! A validator that has seen messages of the same kinds beside one that has seen nothing: whatever is changed
//! in a message, both find the same wrong with it. Seeded streams; `SEED=n` repeats a run.

use tickwire_fix::dict::{Dictionary, Validation, Validator};
use tickwire_fix::{Frame, Index, frame, naive};
use tickwire_testdata::Rng;

use crate::codec::seeds;

/// Right messages, `|` for the separator, without BeginString, BodyLength and CheckSum.
const MESSAGES: [&str; 8] = [
    "35=8|34=7|49=A|52=20261121-10:00:00.000|56=B|37=1|17=E1|150=F|39=1|55=WIRE|54=2|151=60|14=40|6=187.2501|11=C1|38=100|40=2|44=187.25|59=0|32=40|31=187.2|60=20261121-10:00:00.123|",
    "35=8|34=8|49=A|52=20261121-10:00:01|56=B|37=1|17=E1|150=0|39=0|55=F|54=1|151=0|14=0|6=0|",
    "35=D|34=2|49=A|52=20261121-10:00:00.000|56=B|11=ID|21=1|40=1|54=1|38=002000.00|55=INTC|60=20261121-10:00:00|167=CS|18=1 2|58=text|",
    "35=D|34=2|49=A|52=20261121-10:00:00.000|56=B|11=ID|453=2|448=x|447=D|452=1|802=2|523=a|803=1|523=b|803=2|448=y|447=D|452=3|21=1|40=1|54=1|38=1|55=INTC|60=20261121-10:00:00|386=1|336=1|",
    "35=X|34=3|49=A|52=20261121-10:00:00.000000|56=B|262=R|268=2|279=0|269=0|55=WIRE|270=12.5|271=100|279=1|269=1|55=WIRE|270=12.75|271=1|",
    "35=0|34=4|49=A|52=20261121-10:00:00.000|56=B|112=T|",
    "35=A|34=1|49=A|52=20261121-10:00:00.000|56=B|98=0|108=30|141=Y|",
    "35=D|34=2|49=A|52=20261121-10:00:00.000|56=B|627=1|628=H|629=20261121-09:59:59|95=3|96=abc|11=ID|21=1|40=1|54=1|38=1|55=INTC|60=20261121-10:00:00|",
];

/// Some right for one field or another, most wrong for most.
const VALUES: [&str; 22] = [
    "",
    "0",
    "1",
    "2",
    "3",
    "8",
    "D",
    "Y",
    "x",
    "ZZ",
    "CS",
    "1 2",
    "1 !",
    "12.5",
    "1.2.3",
    ".",
    "-7",
    "123456789012345678901",
    "20261121-10:00:00",
    "20261121-10:00:00.12x",
    "20261131-10:00:00.000",
    "20261121-10:00:00.123456789",
];

/// Of fields that are known, in other places, and of ones that are not.
const TAGS: [u32; 22] = [
    1, 11, 34, 35, 37, 52, 55, 58, 60, 93, 89, 97, 115, 268, 269, 386, 448, 453, 802, 999, 5_001, 20_001,
];

type Fields = Vec<(u32, Vec<u8>)>;

fn fields(text: &str) -> Fields {
    let pieces = text.split('|').filter_map(|piece| piece.split_once('='));
    pieces
        .map(|(tag, value)| (tag.parse().expect("a tag"), value.into()))
        .collect()
}

fn one<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// Changes one thing.
fn change(rng: &mut Rng, fields: &mut Fields) {
    let (last, at) = (fields.len() - 1, 1 + rng.below(fields.len() as u64 - 1) as usize);
    let other = 1 + rng.below(last as u64) as usize;
    match rng.below(9) {
        0 => drop(fields.remove(at)),
        1 => fields.swap(at, other),
        2 => fields.insert(other, fields[at].clone()),
        3 => fields[at].0 = one(rng, &TAGS),
        4 => fields.insert(at, (one(rng, &TAGS), one(rng, &VALUES).into())),
        5 => fields[at].1.push(b'0'),
        6 => fields[0].1 = one(rng, &["8", "D", "X", "0", "ZZ", "U77", "12345678"]).into(),
        _ => fields[at].1 = one(rng, &VALUES).into(),
    }
}

fn leniency(rng: &mut Rng) -> Validation {
    let mut is_asked = || !rng.chance(1, 4);
    Validation {
        fields_out_of_order: is_asked(),
        fields_have_values: is_asked(),
        group_order: is_asked(),
        user_defined_fields: is_asked(),
        unknown_fields: is_asked(),
        listed_values: is_asked(),
    }
}

/// How many messages were right and how many wrong.
fn compare(session: &Dictionary, application: &Dictionary, seed: u64) -> [u32; 2] {
    let mut rng = Rng::new(seed);
    let fresh = Validator::new(session, application);
    let (mut validator, mut index) = (fresh.clone(), Index::new(128));
    let (mut rules, mut kinds) = (Validation::default(), MESSAGES.map(fields));
    let mut found = [0; 2];
    for _ in 0..400 {
        if rng.chance(1, 100) {
            rules = leniency(&mut rng);
        }
        let at = rng.below(kinds.len() as u64) as usize;
        let mut changed = kinds[at].clone();
        for _ in 0..rng.below(3) {
            change(&mut rng, &mut changed);
        }
        let bytes = naive::encode(&changed);
        if frame(&bytes, 1 << 16) != Frame::Whole(bytes.len()) {
            continue;
        }
        let Ok(message) = index.decode(&bytes) else {
            continue;
        };
        let mut plain = Index::new(128);
        let plain = plain.decode(&bytes).expect("the other one read it");
        let expected = fresh.clone().check(session, application, &plain, rules);
        let got = validator.check(session, application, &message, rules);
        assert_eq!(got, expected, "SEED={seed} {rules:?} {}", bytes.escape_ascii());
        found[usize::from(got.is_err())] += 1;
        // What is right may become what the others are changed from.
        if got.is_ok() && changed.len() < 100 && rng.chance(1, 8) {
            kinds[at] = changed;
        }
    }
    found
}

#[test]
fn a_validator_that_knows_a_kind_finds_what_one_that_knows_none_does() {
    let whole = Dictionary::standard("FIX.4.4").expect("it is built in");
    let session = Dictionary::standard("FIXT.1.1").expect("it is built in");
    let application = Dictionary::standard("FIX.5.0").expect("it is built in");
    let mut found = [0; 2];
    for seed in seeds(60) {
        let of_one = compare(&whole, &whole, seed);
        let of_two = compare(&session, &application, seed);
        (0..2).for_each(|i| found[i] += of_one[i] + of_two[i]);
    }
    println!("{} messages were right, {} were wrong", found[0], found[1]);
    assert!(found.iter().all(|count| *count > 1_000) || std::env::var("SEED").is_ok());
}

#[test]
fn other_dictionaries_and_other_rules_are_not_those_of_before() {
    let [strict, lenient] = ["FIX.4.4", "FIX.4.2"].map(|name| Dictionary::standard(name).expect("built in"));
    let bytes = naive::encode(&fields(MESSAGES[0]));
    let mut index = Index::new(64);
    let fresh = Validator::new(&strict, &lenient);
    let mut validator = fresh.clone();
    let user_defined = naive::encode(&fields(&(MESSAGES[0].to_owned() + "5001=x|")));
    for turn in 0..40 {
        for bytes in [&bytes, &user_defined] {
            let message = index.decode(bytes).expect("whole");
            let rules = Validation {
                user_defined_fields: turn % 3 == 0,
                ..Validation::default()
            };
            let dictionary = if turn / 8 % 2 == 0 { &strict } else { &lenient };
            let expected = fresh.clone().check(dictionary, dictionary, &message, rules);
            let got = validator.check(dictionary, dictionary, &message, rules);
            assert_eq!(got, expected, "{turn}");
        }
    }
}
