//! A message against its dictionary: structure, required fields, syntax and lists of values, fields that
//! belong to the message, repeating groups. Nothing is copied or allocated.
//!
//! When several things are wrong, the one reported is that of the first rule in this order: header, body and
//! trailer in their places; a message type that exists; required fields; then field by field as they come.

use super::known::{Known, Parts};
use super::{Dictionary, FieldDef, Part};
use crate::decode::Message;
use crate::fields::Field;
use crate::reject::{Fault, SessionRejectReason};
use alloc::boxed::Box;
use alloc::vec;

/// What is checked; named as in QuickFIX where it has a name. The default is everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Validation {
    /// `ValidateFieldsOutOfOrder`: header fields stand before the body, trailer fields behind it.
    pub fields_out_of_order: bool,
    /// `ValidateFieldsHaveValues`: `tag=` alone is wrong.
    pub fields_have_values: bool,
    /// `ValidateUnorderedGroupFields`: fields of a group's entry stand in the dictionary's order.
    pub group_order: bool,
    /// `ValidateUserDefinedFields`: tags from 5000 on must be in the dictionary.
    pub user_defined_fields: bool,
    /// Opposite of `AllowUnknownMsgFields`: fields that are not of this message are wrong.
    pub unknown_fields: bool,
    /// Opposite of `AllowUnknownEnumValues`: of a field with listed values, others are wrong.
    pub listed_values: bool,
}

impl Default for Validation {
    fn default() -> Validation {
        Validation {
            fields_out_of_order: true,
            fields_have_values: true,
            group_order: true,
            user_defined_fields: true,
            unknown_fields: true,
            listed_values: true,
        }
    }
}

/// The first tag that users may define for themselves.
const USER_DEFINED: u32 = 5000;

/// Memory for checking one message at a time.
#[derive(Clone, Debug)]
pub struct Validator {
    /// For every depth of groups and field number: in which entry the field was seen last.
    seen: Box<[u32]>,
    /// Field numbers of one depth.
    fields: usize,
    entry: u32,
    known: Known,
}

/// One message being checked. Fields are handed on by reference: one that was listed a moment ago is read
/// faster in parts than copied whole.
struct Check<'c, 'm> {
    seen: &'c mut [u32],
    seen_fields: usize,
    entry: &'c mut u32,
    message: &'c Message<'m>,
    fields: &'m [Field],
    rules: Validation,
    /// Only the form of groups is looked at.
    skips_values: bool,
    parts: Parts,
}

impl Validator {
    /// For messages of these two dictionaries: the session's, and the application's, which are one before
    /// FIXT.
    pub fn new(session: &Dictionary, application: &Dictionary) -> Validator {
        let fields = session.fields.len().max(application.fields.len());
        let depth = session.depth().max(application.depth());
        Validator {
            seen: vec![0; fields * (depth + 1)].into_boxed_slice(),
            fields,
            entry: 0,
            known: Known::new(),
        }
    }

    /// Checks a message whose integrity is verified.
    #[inline]
    pub fn check(
        &mut self,
        session: &Dictionary,
        application: &Dictionary,
        message: &Message<'_>,
        rules: Validation,
    ) -> Result<(), Fault> {
        match self.known.admits(session, application, message, rules) {
            true => Ok(()),
            false => self.check_in_full(session, application, message, rules),
        }
    }

    /// The same by every rule.
    #[inline(never)]
    fn check_in_full(
        &mut self,
        session: &Dictionary,
        application: &Dictionary,
        message: &Message<'_>,
        rules: Validation,
    ) -> Result<(), Fault> {
        let known = session.message(message.msg_type());
        let (body, definition) = match known {
            Some(definition) if definition.is_admin => (session, known),
            _ if core::ptr::eq(session, application) => (application, known),
            _ => (application, application.message(message.msg_type())),
        };
        if self.entry > u32::MAX / 2 {
            self.seen.fill(0);
            self.entry = 0;
        }
        let mut check = Check {
            seen: &mut self.seen,
            seen_fields: self.fields,
            entry: &mut self.entry,
            message,
            fields: message.fields(),
            rules,
            skips_values: false,
            parts: Parts::default(),
        };
        let Some(definition) = definition else {
            check.structure(session)?;
            return Err(Fault::no_tag(SessionRejectReason::InvalidMsgType));
        };
        match check.walk(session, body, &definition.body) {
            Ok(()) => {
                let parts = check.parts;
                self.known.keep(session, body, message, parts);
                Ok(())
            }
            Err(fault) => {
                let first = check.structure(session).err();
                let missing = || check.missing(session, body, &definition.body);
                Err(first.or_else(missing).unwrap_or(fault))
            }
        }
    }
}

impl<'m> Check<'_, 'm> {
    fn walk(&mut self, session: &Dictionary, body: &Dictionary, part: &Part) -> Result<(), Fault> {
        let header = &session.header;
        let (at, found) = self.part(session, header, 0, |n| !header.has(n))?;
        if found < header.required.len() {
            return Err(self.first_missing(session, header, self.fields));
        }
        // FIXT: the application's dictionary need not know the fields of the trailer.
        let ends = |tag: u32| session.is_trailer(tag);
        self.parts.header = at;
        let at = self.body(session, body, part, at, ends)?;
        self.parts.body = at;
        // CheckSum, which the trailer requires, was verified before and is not among the fields.
        let (at, _) = self.part(session, &session.trailer, at, |_| false)?;
        match self.fields.get(at) {
            Some(behind) => Err(fault(SessionRejectReason::TagOutOfOrder, behind)),
            None => Ok(()),
        }
    }

    /// Header or trailer: from `at` until `ends`; where it ended, and how many of its required fields there
    /// were.
    fn part(
        &mut self,
        dictionary: &Dictionary,
        part: &Part,
        mut at: usize,
        ends: impl Fn(u16) -> bool,
    ) -> Result<(usize, usize), Fault> {
        let entry = self.next_entry();
        let mut found = 0;
        while let Some(field) = self.fields.get(at) {
            let Some(number) = dictionary.number(field.tag) else {
                break;
            };
            if ends(number) {
                break;
            }
            if !part.has(number) {
                return Err(fault(SessionRejectReason::TagOutOfOrder, field));
            }
            found += self.see(part, number, 0, entry, field)?;
            self.value(dictionary, number, field)?;
            at += 1;
            if let Some(group) = part.group(number) {
                at = self.group(dictionary, group, field, at, 1)?;
            }
        }
        Ok((at, found))
    }

    fn body(
        &mut self,
        session: &Dictionary,
        dictionary: &Dictionary,
        part: &Part,
        mut at: usize,
        ends: impl Fn(u32) -> bool,
    ) -> Result<usize, Fault> {
        let entry = self.next_entry();
        let mut found = 0;
        while let Some(field) = self.fields.get(at) {
            let number = dictionary.number(field.tag);
            match number.filter(|&n| part.has(n)) {
                Some(number) => {
                    found += self.see(part, number, 0, entry, field)?;
                    self.value(dictionary, number, field)?;
                    at += 1;
                    if let Some(group) = part.group(number) {
                        at = self.outer_group(dictionary, group, field, at)?;
                    }
                }
                None if ends(field.tag) => break,
                None => {
                    self.stranger(session, dictionary, number, field, entry)?;
                    at += 1;
                }
            }
        }
        if found < part.required.len() {
            return Err(self.first_missing(dictionary, part, self.fields));
        }
        Ok(at)
    }

    /// A field in the body that is not of this message.
    #[cold]
    fn stranger(
        &mut self,
        session: &Dictionary,
        dictionary: &Dictionary,
        number: Option<u16>,
        field: &Field,
        entry: u32,
    ) -> Result<(), Fault> {
        self.parts.has_strangers = true;
        if session.is_header(field.tag) {
            // In its wrong place, but allowed to be there.
            return match self.rules.fields_out_of_order {
                true => Err(fault(SessionRejectReason::TagOutOfOrder, field)),
                false => Ok(()),
            };
        }
        if let Some(number) = number {
            self.once(number, 0, entry, field)?;
            self.value(dictionary, number, field)?;
        } else if self.rules.fields_have_values && self.message.value(*field).is_empty() {
            return Err(fault(SessionRejectReason::TagWithoutValue, field));
        }
        let is_tolerated = field.tag >= USER_DEFINED && !self.rules.user_defined_fields;
        match (is_tolerated || !self.rules.unknown_fields, number) {
            (true, _) => Ok(()),
            (false, Some(_)) => Err(fault(SessionRejectReason::TagNotDefined, field)),
            (false, None) => Err(fault(SessionRejectReason::InvalidTagNumber, field)),
        }
    }

    /// A group of the body: when a value in it is wrong and its count too, the count is what is told.
    fn outer_group(
        &mut self,
        dictionary: &Dictionary,
        group: u32,
        count: &Field,
        at: usize,
    ) -> Result<usize, Fault> {
        self.group(dictionary, group, count, at, 1).map_err(|fault| {
            self.skips_values = true;
            let form = self.group(dictionary, group, count, at, 1).err();
            self.skips_values = false;
            form.filter(|form| form.reason == SessionRejectReason::IncorrectNumInGroup)
                .unwrap_or(fault)
        })
    }

    /// The entries of a group, from the field after its count on; where they ended.
    fn group(
        &mut self,
        dictionary: &Dictionary,
        group: u32,
        count: &Field,
        mut at: usize,
        depth: usize,
    ) -> Result<usize, Fault> {
        // The count is the field before.
        self.parts.counts |= 1_u128.checked_shl(at as u32 - 1).unwrap_or(0);
        let group = &dictionary.groups[group as usize];
        let first = group.order[0];
        let entries = self.message.unsigned(*count).unwrap_or(0);
        for _ in 0..entries {
            match self.number_at(dictionary, at) {
                Some(number) if number == first => {}
                Some(number) if group.part.has(number) => {
                    return Err(fault(SessionRejectReason::GroupOutOfOrder, &self.fields[at]));
                }
                _ => return Err(fault(SessionRejectReason::IncorrectNumInGroup, count)),
            }
            let entry = self.next_entry();
            let begin = at;
            let (mut found, mut rank) = (0, 0);
            while let Some(number) = self.number_at(dictionary, at) {
                if !group.part.has(number) || (number == first && at > begin) {
                    break;
                }
                let field = &self.fields[at];
                found += self.see(&group.part, number, depth, entry, field)?;
                match group.order[rank..].iter().position(|&n| n == number) {
                    Some(ahead) => rank += ahead + 1,
                    None if self.rules.group_order => {
                        return Err(fault(SessionRejectReason::GroupOutOfOrder, field));
                    }
                    None => {}
                }
                self.value(dictionary, number, field)?;
                at += 1;
                if let Some(inner) = group.part.group(number) {
                    at = self.group(dictionary, inner, field, at, depth + 1)?;
                }
            }
            if found < group.part.required.len() {
                return Err(self.first_missing(dictionary, &group.part, &self.fields[begin..at]));
            }
        }
        match self.number_at(dictionary, at) {
            Some(number) if number == first => Err(fault(SessionRejectReason::IncorrectNumInGroup, count)),
            _ => Ok(at),
        }
    }

    #[inline]
    fn number_at(&self, dictionary: &Dictionary, at: usize) -> Option<u16> {
        dictionary.number(self.fields.get(at)?.tag)
    }

    #[inline]
    fn next_entry(&mut self) -> u32 {
        *self.entry += 1;
        *self.entry
    }

    /// Notes a field of a part: whether it is one that must be there.
    #[inline(always)]
    fn see(
        &mut self,
        part: &Part,
        number: u16,
        depth: usize,
        entry: u32,
        field: &Field,
    ) -> Result<usize, Fault> {
        self.once(number, depth, entry, field)?;
        Ok(usize::from(part.needs(number)))
    }

    #[inline(always)]
    fn once(&mut self, number: u16, depth: usize, entry: u32, field: &Field) -> Result<(), Fault> {
        let seen = &mut self.seen[depth * self.seen_fields + number as usize];
        if core::mem::replace(seen, entry) == entry {
            return Err(fault(SessionRejectReason::TagTwice, field));
        }
        Ok(())
    }

    /// What is wrong with the value of a field of this number.
    #[inline(always)]
    fn value(&self, dictionary: &Dictionary, number: u16, field: &Field) -> Result<(), Fault> {
        match dictionary.rules.get(usize::from(number)) {
            Some(rule) if rule.surely_admits(self.message, field) => Ok(()),
            _ if self.skips_values => Ok(()),
            _ => {
                let definition = &dictionary.fields[usize::from(number)];
                value_in_full(definition, self.message, field, self.rules)
            }
        }
    }

    /// Whether header, body and trailer follow each other.
    #[cold]
    fn structure(&self, session: &Dictionary) -> Result<(), Fault> {
        if !self.rules.fields_out_of_order {
            return Ok(());
        }
        let mut rest = self
            .fields
            .iter()
            .skip_while(|f| session.is_header(f.tag))
            .peekable();
        // The entries of the header's own groups have fields of the header only.
        while let Some(field) = rest.next() {
            let behind = rest.peek().copied();
            if session.is_header(field.tag) {
                return Err(fault(SessionRejectReason::TagOutOfOrder, field));
            }
            if session.is_trailer(field.tag)
                && let Some(next) = behind
                && !session.is_trailer(next.tag)
            {
                return Err(fault(SessionRejectReason::TagOutOfOrder, next));
            }
        }
        Ok(())
    }

    /// A required field of header or body that is nowhere.
    #[cold]
    fn missing(&self, session: &Dictionary, body: &Dictionary, part: &Part) -> Option<Fault> {
        let is_there = |dictionary: &Dictionary, number: u16| {
            let tag = dictionary.fields[number as usize].tag;
            self.fields.iter().any(|f| f.tag == tag)
        };
        let of_header = session.header.required.iter().map(|&n| (session, n));
        let of_body = part.required.iter().map(|&n| (body, n));
        let mut all = of_header.chain(of_body);
        let (dictionary, number) = all.find(|&(dictionary, number)| !is_there(dictionary, number))?;
        Some(Fault::missing(dictionary.fields[number as usize].tag))
    }

    /// The first field that a part needs and `fields` do not have.
    #[cold]
    fn first_missing(&self, dictionary: &Dictionary, part: &Part, fields: &[Field]) -> Fault {
        let tags = part.required.iter().map(|&n| dictionary.fields[n as usize].tag);
        let mut absent = tags.filter(|&tag| fields.iter().all(|f| f.tag != tag));
        match absent.next() {
            Some(tag) => Fault::missing(tag),
            // It is there, but within a group and not where it is needed.
            None => Fault::no_tag(SessionRejectReason::RequiredTagMissing),
        }
    }
}

/// What is wrong with a value by all that is said of its field.
#[inline(never)]
pub(super) fn value_in_full(
    definition: &FieldDef,
    message: &Message<'_>,
    field: &Field,
    rules: Validation,
) -> Result<(), Fault> {
    let value = message.value(*field);
    if value.is_empty() {
        return match rules.fields_have_values {
            true => Err(fault(SessionRejectReason::TagWithoutValue, field)),
            false => Ok(()),
        };
    }
    if !definition.kind.admits(value) {
        return Err(fault(SessionRejectReason::IncorrectFormat, field));
    }
    if rules.listed_values && !definition.admits(value) {
        return Err(fault(SessionRejectReason::IncorrectValue, field));
    }
    Ok(())
}

#[cold]
fn fault(reason: SessionRejectReason, field: &Field) -> Fault {
    Fault::new(reason, field.tag)
}
