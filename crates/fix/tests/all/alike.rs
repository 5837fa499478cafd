//! Messages of a kind that was there before are read by what is known of it: beside memory that knows
//! nothing, on seeded streams. `SEED=n` repeats a run.

use tickwire_fix::{Field, Frame, Garbled, Index, Message, frame, naive};
use tickwire_testdata::Rng;

use crate::codec::seeds;

/// Among them tags of every width, ones that share a slot of the table, and data with its length.
const TAGS: [u32; 18] = [
    8, 11, 34, 44, 49, 52, 58, 95, 150, 151, 354, 448, 1_035, 1_174, 1_184, 9_999, 20_001, 9_999_999,
];

fn field(rng: &mut Rng) -> Vec<(u32, Vec<u8>)> {
    let data = |length, rng: &mut Rng| {
        let data: Vec<u8> = (0..=rng.below(9)).map(|_| rng.below(4) as u8).collect();
        let said = data.len() as u64 + u64::from(rng.chance(1, 8));
        vec![(length, said.to_string().into_bytes()), (length + 1, data)]
    };
    match TAGS[rng.below(TAGS.len() as u64) as usize] {
        tag @ (95 | 354 | 1_184) => data(tag, rng),
        tag => {
            let value = (0..rng.below(12)).map(|_| b' ' + rng.below(95) as u8);
            let mut value: Vec<u8> = value.collect();
            if !rng.chance(1, 30) {
                value.push(b'.');
            }
            vec![(tag, value)]
        }
    }
}

/// Changes a message in none, one or two places.
fn change(rng: &mut Rng, fields: &mut Vec<(u32, Vec<u8>)>) {
    for _ in 0..rng.below(3) {
        let at = 1 + rng.below(fields.len() as u64) as usize;
        match rng.below(4) {
            0 if fields.len() < 120 => drop(fields.splice(at..at, field(rng))),
            1 if at < fields.len() => drop(fields.remove(at)),
            2 => fields.truncate(at.max(4)),
            _ if at < fields.len() => fields[at].1.extend_from_slice(b"7"),
            _ => {}
        }
    }
}

/// Everything that a message says of itself.
#[derive(Debug, PartialEq)]
struct Read {
    fields: Vec<Field>,
    found: Vec<Option<Field>>,
    faults: [Option<tickwire_fix::Fault>; 2],
}

fn read(message: Result<Message<'_>, Garbled>) -> Result<Read, Garbled> {
    let message = message?;
    let all = TAGS.iter().chain(&[9, 10, 35, 96, 355, 1_185, 7, 1_058]);
    Ok(Read {
        fields: message.fields().to_vec(),
        found: all.map(|&tag| message.find(tag)).collect(),
        faults: [message.fault, message.empty],
    })
}

#[test]
fn messages_of_known_kinds_read_as_if_there_had_been_none() {
    for seed in seeds(100) {
        let mut rng = Rng::new(seed);
        let mut index = Index::new(if rng.chance(1, 4) { 12 } else { 128 });
        let fresh = index.clone();
        let mut kinds: Vec<Vec<(u32, Vec<u8>)>> = (0..1 + rng.below(6))
            .map(|_| {
                let mut fields = vec![(35, b"8".to_vec())];
                (0..rng.below(100)).for_each(|_| fields.extend(field(&mut rng)));
                fields
            })
            .collect();
        for _ in 0..100 {
            let at = rng.below(kinds.len() as u64) as usize;
            if rng.chance(1, 5) {
                change(&mut rng, &mut kinds[at]);
            }
            let mut bytes = naive::encode(&kinds[at]);
            if rng.chance(1, 12) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = [1, b'=', b'0', b'x'][rng.below(4) as usize];
                let body = bytes.len() - 7;
                let sum = bytes[..body].iter().fold(0_u8, |sum, b| sum.wrapping_add(*b));
                bytes.splice(body.., format!("10={sum:03}\x01").into_bytes());
            }
            if frame(&bytes, 1 << 16) != Frame::Whole(bytes.len()) {
                continue;
            }
            let expected = read(fresh.clone().decode(&bytes));
            let got = read(index.decode(&bytes));
            assert_eq!(got, expected, "SEED={seed} {}", bytes.escape_ascii());
        }
    }
    // Not a message, and not the one before either.
    let mut index = Index::new(64);
    let whole = naive::encode(&[(35, b"8".to_vec()), (34, b"7".to_vec())]);
    for bytes in [&whole[..], b"10=000\x01", &whole[..]] {
        assert_eq!(index.decode(bytes).is_ok(), bytes.len() > 7);
    }
}
