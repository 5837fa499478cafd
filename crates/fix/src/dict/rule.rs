//! What the validator asks of a value first: one look that says yes to nearly every right one. What it does
//! not say yes to is looked at in full.

use super::{FieldDef, FieldKind};
use crate::fields::{Field, Fields, usual_price};
use crate::number::{digits_before, parse_unsigned};

/// A field's rule in 24 bytes, apart from its definition, which has several times as many.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueRule {
    /// The values of one ASCII character that are right, a bit each.
    short: [u64; 2],
    form: Form,
}

/// What is asked of longer values.
#[derive(Clone, Copy, Debug)]
enum Form {
    Anything,
    Digits,
    Decimal,
    Timestamp,
    /// To be looked at in full.
    Other,
}

impl ValueRule {
    /// Of no field: no value is right.
    pub(super) const NONE: ValueRule = ValueRule {
        short: [0; 2],
        form: Form::Other,
    };

    pub(super) fn of(field: &FieldDef) -> ValueRule {
        let mut short = [0; 2];
        for c in 0..128_u8 {
            let is_right = field.kind.admits(&[c]) && field.admits(&[c]);
            short[usize::from(c / 64)] |= u64::from(is_right) << (c % 64);
        }
        let form = match field.kind {
            _ if !field.values.is_empty() => Form::Other,
            FieldKind::Text | FieldKind::Texts | FieldKind::Data => Form::Anything,
            FieldKind::Count | FieldKind::Int => Form::Digits,
            FieldKind::Decimal => Form::Decimal,
            FieldKind::Timestamp => Form::Timestamp,
            _ => Form::Other,
        };
        ValueRule { short, form }
    }

    /// Whether the value of a field is right at first sight; the empty value never is.
    #[inline(always)]
    pub(super) fn surely_admits(&self, fields: &Fields<'_>, field: &Field) -> bool {
        let (message, start, end) = (fields.bytes(), field.start as usize, field.end as usize);
        let len = end.wrapping_sub(start);
        if len == 1 {
            return match message.get(start) {
                Some(&c) if c < 128 => self.short[usize::from(c / 64)] >> (c % 64) & 1 != 0,
                _ => false,
            };
        }
        if matches!(self.form, Form::Anything) {
            return len != 0;
        }
        // Two to eight.
        if len.wrapping_sub(2) < 7 && matches!(self.form, Form::Digits | Form::Decimal) {
            let Some(word) = digits_before(message, end, len) else {
                return false;
            };
            let others = other_than_digits(word);
            // One byte, and it is a point: there is a digit beside it.
            let is_point = || {
                others & (others - 1) == 0
                    && word.unbounded_shr(others.trailing_zeros() - 7) as u8 == b'.' ^ b'0'
            };
            return others == 0 || (matches!(self.form, Form::Decimal) && is_point());
        }
        match self.form {
            Form::Decimal => usual_price(message, start, end).is_some(),
            Form::Digits => parse_unsigned(message, start, end).is_some(),
            Form::Timestamp => fields.time(start, end).is_some(),
            Form::Anything | Form::Other => false,
        }
    }
}

/// 0x80 in each byte that is no digit's value.
#[inline(always)]
const fn other_than_digits(v: u64) -> u64 {
    // What is not above 0x7f carries nowhere; what is has the top bit itself.
    let carried = (v & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676;
    (carried | v) & 0x8080_8080_8080_8080
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::dict::{Dictionary, standard_names};
    use crate::time::Second;
    use core::ops::Range;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::sync::LazyLock;
    use std::vec::Vec;

    fn is_admitted(rule: ValueRule, message: &[u8], value: Range<usize>) -> bool {
        let field = Field {
            tag: 1,
            start: value.start as u32,
            end: value.end as u32,
        };
        rule.surely_admits(&Fields::new(message, &[field], &Second::FIRST), &field)
    }

    /// What is right at first sight is right; and most of what is right is seen so.
    fn agrees(field: &FieldDef, value: &[u8]) {
        let mut message = Vec::from(*b"8=FIX.4.4\x019=100\x0135=8\x01");
        let start = message.len();
        message.extend_from_slice(value);
        let end = message.len();
        message.extend_from_slice(b"\x0110=123\x01");
        let is_right = !value.is_empty() && field.kind.admits(value) && field.admits(value);
        let at_sight = is_admitted(ValueRule::of(field), &message, start..end);
        assert!(is_right || !at_sight, "{} {}", field.name, value.escape_ascii());
        if let [c] = value
            && c.is_ascii()
        {
            assert_eq!(at_sight, is_right, "{} {}", field.name, value.escape_ascii());
        }
    }

    #[test]
    fn every_listed_value_and_every_byte_is_as_the_full_rules_say() {
        let mut rules = BTreeSet::new();
        for version in standard_names() {
            let dictionary = Dictionary::standard(version).expect("it is built in");
            for field in dictionary.fields() {
                // Most fields are ruled as many others are: by a type alone.
                if !rules.insert(std::format!("{:?} {:?}", field.kind, field.values)) {
                    continue;
                }
                (0..=255).for_each(|c| agrees(field, &[c]));
                field.values.iter().for_each(|(value, _)| agrees(field, value));
            }
        }
    }

    #[test]
    fn ordinary_values_are_right_at_first_sight() {
        let dictionary = Dictionary::standard("FIX.4.4").expect("it is built in");
        let message = b"8=FIX.4.4\x019=100\x01187.25\x01100\x0120241128-12:34:56.789\x01WIRE\x0110=123\x01";
        for (tag, range) in [
            (44, 16..22),
            (38, 23..26),
            (34, 23..26),
            (60, 27..48),
            (55, 49..53),
        ] {
            let rule = ValueRule::of(dictionary.field(tag).expect("a field"));
            assert!(is_admitted(rule, message, range), "{tag}");
        }
    }

    proptest! {
        #[test]
        fn no_wrong_value_is_right_at_first_sight(
            tag in prop::sample::select([34_u32, 38, 44, 52, 54, 55, 43, 60, 75, 200, 18, 95].as_slice()),
            value in "[0-9.]{0,18}|[-+0-9.x ]{0,10}|[0-9]{8}-[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{0,9})?|\\PC{0,5}",
        ) {
            static DICTIONARY: LazyLock<Dictionary> =
                LazyLock::new(|| Dictionary::standard("FIX.4.4").expect("it is built in"));
            agrees(DICTIONARY.field(tag).expect("a field"), value.as_bytes());
        }
    }
}
