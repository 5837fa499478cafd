//! Data dictionaries: which fields, values, groups and messages a FIX version has.
//!
//! [`Dictionary::parse`] reads the XML format of QuickFIX, so that a user's own dictionary serves as it is;
//! what it says is turned once into flat tables. [`Validator`] checks messages against them without
//! allocating.
//!
//! FIXT 1.1 splits a version in two: the session's dictionary (header, trailer, session messages) and that of
//! the application version.

mod kind;
mod known;
mod layout;
mod load;
mod rule;
mod standard;
mod validate;

pub use kind::FieldKind;
pub use layout::{Layout, Member, MemberKind};
pub use load::DictionaryError;
pub use standard::{standard_names, standard_xml};
pub use validate::{Validation, Validator};

use alloc::boxed::Box;
use alloc::vec::Vec;
use layout::{ComponentDef, Row};

/// One version of FIX, or one counterparty's variant of it. Immutable; shared by all sessions that speak it.
#[derive(Clone, Debug)]
pub struct Dictionary {
    /// A hash of the text that it was read from: by it others are told from it.
    number: u64,
    begin_string: Box<str>,
    /// Field number + 1 by tag; 0: there is no such field.
    by_tag: Vec<u16>,
    fields: Vec<FieldDef>,
    /// By field number.
    rules: Vec<rule::ValueRule>,
    header: Part,
    trailer: Part,
    /// Sorted by type.
    messages: Vec<MessageDef>,
    /// Place + 1 among the messages by a type of one ASCII character, which nearly all have; 0: there is
    /// none.
    by_char: [u16; 128],
    groups: Vec<GroupDef>,
    components: Vec<ComponentDef>,
    header_rows: Vec<Row>,
    trailer_rows: Vec<Row>,
}

/// A field as the dictionary defines it.
#[derive(Clone, Debug)]
pub struct FieldDef {
    /// Its tag.
    pub tag: u32,
    /// Its name.
    pub name: Box<str>,
    /// The type of its value.
    pub kind: FieldKind,
    /// The type as the dictionary calls it: `PRICE`, `CURRENCY`.
    pub type_name: Box<str>,
    /// The values allowed, sorted, each with its description; empty when every value of the type is.
    pub values: Vec<(Box<[u8]>, Box<str>)>,
    /// The values of one ASCII character, a bit each.
    short_values: [u64; 2],
}

/// A message type.
#[derive(Clone, Debug)]
pub struct MessageDef {
    /// MsgType (35).
    pub msg_type: Box<[u8]>,
    /// Its name.
    pub name: Box<str>,
    /// Of the session layer, not the application.
    pub is_admin: bool,
    body: Part,
    rows: Vec<Row>,
}

/// A repeating group within one message or group.
#[derive(Clone, Debug)]
struct GroupDef {
    /// Field numbers in their order; the first begins every entry.
    order: Vec<u16>,
    part: Part,
    rows: Vec<Row>,
}

/// Which fields stand at one place: header, body, trailer, or one entry of a group.
#[derive(Clone, Debug, Default)]
struct Part {
    /// 64 field numbers each.
    bits: Vec<Bits>,
    /// Field numbers that must be there.
    required: Vec<u16>,
    /// Counts (field numbers, sorted) with their groups.
    groups: Vec<(u16, u32)>,
}

/// What a part says of 64 fields, a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Bits {
    allowed: u64,
    /// Must be there.
    needed: u64,
    /// Counts of groups.
    counts: u64,
}

impl Part {
    #[inline(always)]
    fn bit(&self, field: u16, of: impl FnOnce(&Bits) -> u64) -> bool {
        let bits = self.bits.get(field as usize / 64);
        bits.is_some_and(|bits| of(bits) >> (field % 64) & 1 != 0)
    }

    #[inline(always)]
    fn has(&self, field: u16) -> bool {
        self.bit(field, |bits| bits.allowed)
    }

    #[inline(always)]
    fn needs(&self, field: u16) -> bool {
        self.bit(field, |bits| bits.needed)
    }

    #[inline(always)]
    fn group(&self, count: u16) -> Option<u32> {
        if !self.bit(count, |bits| bits.counts) {
            return None;
        }
        let at = self.groups.binary_search_by_key(&count, |g| g.0).ok()?;
        Some(self.groups[at].1)
    }
}

impl Dictionary {
    /// What BeginString (8) names the version, or ApplVerID its application version: `FIX.4.2`, `FIXT.1.1`,
    /// `FIX.5.0SP2`.
    pub fn begin_string(&self) -> &str {
        &self.begin_string
    }

    /// A field by its tag.
    pub fn field(&self, tag: u32) -> Option<&FieldDef> {
        Some(&self.fields[self.number(tag)? as usize])
    }

    /// A field by its name.
    pub fn field_named(&self, name: &str) -> Option<&FieldDef> {
        self.fields.iter().find(|f| &*f.name == name)
    }

    /// Every field, by rising tag.
    pub fn fields(&self) -> &[FieldDef] {
        &self.fields
    }

    /// A message by its type.
    pub fn message(&self, msg_type: &[u8]) -> Option<&MessageDef> {
        if let [c @ ..128] = *msg_type {
            let at = usize::from(self.by_char[usize::from(c)]).checked_sub(1)?;
            return self.messages.get(at);
        }
        let at = self
            .messages
            .binary_search_by(|m| (*m.msg_type).cmp(msg_type))
            .ok()?;
        Some(&self.messages[at])
    }

    /// Every message, by type.
    pub fn messages(&self) -> &[MessageDef] {
        &self.messages
    }

    /// Whether a field belongs to the standard header.
    pub fn is_header(&self, tag: u32) -> bool {
        self.number(tag).is_some_and(|n| self.header.has(n))
    }

    /// Whether a field belongs to the standard trailer.
    pub fn is_trailer(&self, tag: u32) -> bool {
        self.number(tag).is_some_and(|n| self.trailer.has(n))
    }

    /// How many repeating groups are defined, at every place that has them.
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// How deep groups lie within groups.
    fn depth(&self) -> usize {
        // A group is entered after the groups within it.
        let mut depths: Vec<usize> = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            let inner = group.part.groups.iter().map(|&(_, g)| depths[g as usize]).max();
            depths.push(1 + inner.unwrap_or(0));
        }
        depths.into_iter().max().unwrap_or(0)
    }

    #[inline(always)]
    fn number(&self, tag: u32) -> Option<u16> {
        match self.by_tag.get(tag as usize) {
            Some(&n) if n > 0 => Some(n - 1),
            _ => None,
        }
    }
}

impl FieldDef {
    /// Whether the dictionary allows a value; fields without a list allow every one of their type.
    pub fn admits(&self, value: &[u8]) -> bool {
        if self.values.is_empty() {
            return true;
        }
        if self.kind.is_multiple() {
            return value.split(|&b| b == b' ').all(|one| self.lists(one));
        }
        self.lists(value)
    }

    /// What a listed value means.
    pub fn describe(&self, value: &[u8]) -> Option<&str> {
        let at = self.values.binary_search_by(|v| (*v.0).cmp(value)).ok()?;
        Some(&self.values[at].1)
    }

    #[inline]
    fn lists(&self, value: &[u8]) -> bool {
        match value {
            &[c] if c < 128 => self.short_values[c as usize / 64] >> (c % 64) & 1 != 0,
            _ => self.values.binary_search_by(|v| (*v.0).cmp(value)).is_ok(),
        }
    }
}
