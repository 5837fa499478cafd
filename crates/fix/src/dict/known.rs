//! Messages of kinds that were right before. Which fields a message may have, must have and in which order
//! depends on its type, on its tags as they come and on the counts of its groups: where all of them are as
//! they were in a message that was right, only the values are looked at. What is not right at first sight is
//! left to the rules in full, which know what is wrong first.

use super::rule::ValueRule;
use super::validate::value_in_full;
use super::{Dictionary, Validation};
use crate::decode::Message;
use crate::fields::Field;
use crate::number::load8;
use alloc::boxed::Box;
use alloc::vec;

/// How many kinds are kept.
const KEPT: usize = 4;
/// Of the right messages that are like none of those kept, one of so many is kept instead of another.
const KEPT_OF: u32 = 4;
/// A message of more fields is not kept.
pub(super) const FIELDS_MAX: usize = 128;

/// Kinds of messages that were right by two dictionaries and these rules.
#[derive(Clone, Debug)]
pub(super) struct Known {
    of: Option<(u64, u64, Validation)>,
    kinds: [Kind; KEPT],
    /// How many right messages were like none.
    unlike: u32,
}

#[derive(Clone, Debug)]
struct Kind {
    /// How many fields, of which every message has some; 0: there is none.
    count: usize,
    /// MsgType.
    msg_type: u64,
    /// Where the fields are that the body's dictionary rules, and whether that is the session's.
    body: (usize, usize),
    is_of_session: bool,
    /// Room for as many as there may be.
    fields: Box<[KnownField]>,
}

#[derive(Clone, Copy, Debug)]
struct KnownField {
    /// Of a count none, so that it is looked at in full.
    rule: ValueRule,
    tag: u32,
    /// How many entries follow it; [`NO_COUNT`] if it is no count of a group.
    entries: u32,
}

const NO_COUNT: u32 = u32::MAX;

/// Where the parts of a right message are: what it was judged by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    /// The place of the first field behind the header.
    pub(super) header: usize,
    /// And of the first behind the body.
    pub(super) body: usize,
    /// Fields that count entries of groups, a bit each.
    pub(super) counts: u128,
    /// There were fields that only leniency lets pass.
    pub(super) has_strangers: bool,
}

impl Known {
    pub(super) fn new() -> Known {
        let field = KnownField {
            rule: ValueRule::NONE,
            tag: 0,
            entries: NO_COUNT,
        };
        Known {
            of: None,
            kinds: core::array::from_fn(|_| Kind {
                count: 0,
                msg_type: 0,
                body: (0, 0),
                is_of_session: false,
                fields: vec![field; FIELDS_MAX].into_boxed_slice(),
            }),
            unlike: 0,
        }
    }

    /// Whether a message is surely right.
    #[inline]
    pub(super) fn admits(
        &mut self,
        session: &Dictionary,
        application: &Dictionary,
        message: &Message<'_>,
        rules: Validation,
    ) -> bool {
        let of = Some((session.number, application.number, rules));
        if self.of != of {
            self.of = of;
            self.kinds.iter_mut().for_each(|kind| kind.count = 0);
            return false;
        }
        let Some(msg_type) = msg_type(message) else {
            return false;
        };
        let count = message.fields().len();
        let alike = |kind: &&Kind| kind.count == count && kind.msg_type == msg_type;
        self.kinds.iter().filter(alike).any(|kind| {
            let body = if kind.is_of_session { session } else { application };
            kind.admits(session, body, message, rules)
        })
    }

    /// Takes note of a message that was right; `body` is the dictionary of its body.
    #[inline]
    pub(super) fn keep(
        &mut self,
        session: &Dictionary,
        body: &Dictionary,
        message: &Message<'_>,
        parts: Parts,
    ) {
        let nth = self.unlike;
        self.unlike = nth.wrapping_add(1);
        if nth.is_multiple_of(KEPT_OF) && message.fields().len() <= FIELDS_MAX && !parts.has_strangers {
            self.kinds[(nth / KEPT_OF) as usize % KEPT].become_that_of(session, body, message, parts);
        }
    }
}

impl Kind {
    #[inline]
    fn admits(
        &self,
        session: &Dictionary,
        body: &Dictionary,
        message: &Message<'_>,
        rules: Validation,
    ) -> bool {
        let mut at = 0;
        loop {
            at = self.surely_right(message, at);
            let (Some(field), Some(known)) = (message.fields().get(at), self.fields.get(at)) else {
                return true;
            };
            let is_of_body = at >= self.body.0 && at < self.body.1;
            let dictionary = if is_of_body { body } else { session };
            if field.tag != known.tag || !known.admits(dictionary, message, field, rules) {
                return false;
            }
            at += 1;
        }
    }

    /// The place, from one on, of the first field that is not right at first sight.
    #[inline(never)]
    fn surely_right(&self, message: &Message<'_>, from: usize) -> usize {
        let (Some(fields), Some(known)) = (message.fields().get(from..), self.fields.get(from..)) else {
            return from;
        };
        let mut at = from;
        for (field, known) in fields.iter().zip(known) {
            if field.tag != known.tag || !known.rule.surely_admits(message, field) {
                break;
            }
            at += 1;
        }
        at
    }

    #[cold]
    fn become_that_of(
        &mut self,
        session: &Dictionary,
        body: &Dictionary,
        message: &Message<'_>,
        parts: Parts,
    ) {
        self.count = 0;
        self.body = (parts.header, parts.body);
        self.is_of_session = body.number == session.number;
        for (at, (field, known)) in message.fields().iter().zip(&mut self.fields).enumerate() {
            let dictionary = match at >= parts.header && at < parts.body {
                true => body,
                false => session,
            };
            let rule = dictionary.number(field.tag).map(|n| dictionary.rules[n as usize]);
            let entries = match parts.counts >> at & 1 {
                0 => Some(NO_COUNT),
                _ => {
                    let entries = message.unsigned(*field).unwrap_or(0);
                    u32::try_from(entries).ok().filter(|n| *n != NO_COUNT)
                }
            };
            let (Some(rule), Some(entries)) = (rule, entries) else {
                return;
            };
            *known = KnownField {
                rule: if entries == NO_COUNT {
                    rule
                } else {
                    ValueRule::NONE
                },
                tag: field.tag,
                entries,
            };
        }
        if let Some(msg_type) = msg_type(message) {
            (self.count, self.msg_type) = (message.fields().len(), msg_type);
        }
    }
}

impl KnownField {
    /// Whether a field's value is right by all that is said of it.
    #[inline(never)]
    fn admits(
        &self,
        dictionary: &Dictionary,
        message: &Message<'_>,
        field: &Field,
        rules: Validation,
    ) -> bool {
        let definition = dictionary.field(field.tag);
        (self.entries == NO_COUNT || message.unsigned(*field) == Ok(self.entries.into()))
            && definition.is_some_and(|definition| value_in_full(definition, message, field, rules).is_ok())
    }
}

/// MsgType as a word; `None` of one that has more than seven bytes.
#[inline]
fn msg_type(message: &Message<'_>) -> Option<u64> {
    let field = message.fields().get(2)?;
    let len = field.end - field.start;
    let word = load8(message.bytes(), field.start as usize)?;
    (1..8).contains(&len).then(|| word & (u64::MAX >> (64 - 8 * len)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Index, naive};
    use alloc::vec::Vec;

    const HEADER: [(u32, &str); 5] = [
        (35, "X"),
        (34, "7"),
        (49, "V"),
        (52, "20261121-01:55:41"),
        (56, "T"),
    ];
    const ENTRY: [(u32, &str); 5] = [(268, "1"), (279, "0"), (269, "0"), (55, "WIRE"), (270, "12.5")];

    fn refresh(msg_type: &str, count: &str, price: &str) -> Vec<u8> {
        let mut fields: Vec<(u32, &str)> = HEADER.into_iter().chain(ENTRY).collect();
        (fields[0].1, fields[5].1, fields[9].1) = (msg_type, count, price);
        let fields = fields.into_iter().map(|(tag, value)| (tag, value.into()));
        naive::encode(&fields.collect::<Vec<_>>())
    }

    #[test]
    fn a_kind_that_was_right_is_known_by_type_counts_and_tags_and_until_it_is_forgotten() {
        let dictionary = Dictionary::standard("FIX.4.4").expect("it is built in");
        let (mut known, mut index) = (Known::new(), Index::new(64));
        let parts = Parts {
            header: 7,
            body: 12,
            counts: 1 << 7,
            has_strangers: false,
        };
        let mut admits = |msg_type: &str, count: &str, price: &str, is_kept, rules| {
            let bytes = refresh(msg_type, count, price);
            let message = index.decode(&bytes).expect("whole");
            if is_kept {
                known.keep(&dictionary, &dictionary, &message, parts);
            }
            known.admits(&dictionary, &dictionary, &message, rules)
        };
        let (strict, lenient) = (
            Validation::default(),
            Validation {
                group_order: false,
                ..Validation::default()
            },
        );
        assert!(!admits("X", "1", "12.5", false, strict));
        assert!(admits("X", "1", "12.5", true, strict));
        assert!(admits("X", "01", "187.250000001", false, strict));
        assert!(!admits("X", "1", "12.x", false, strict));
        assert!(!admits("X", "2", "12.5", false, strict));
        assert!(!admits("W", "1", "12.5", false, strict));
        assert!(!admits("X", "1", "12.5", false, lenient));
        assert!(!admits("\0", "1", "12.5", false, lenient));
        assert!(!admits("X", "1", "12.5", false, strict));
    }
}
