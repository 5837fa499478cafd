//! What typed messages are made of: generated code (`tickwire-fixgen`) is thin, the work is here.
//!
//! Reading: a view is a [`Message`] or the [`Fields`] of one entry of a repeating group ([`Source`]) with a
//! getter for each field of its definition; a getter looks its field up and reads its value ([`Value`]) when
//! it is called, not before. Entries of a group come from [`Entries`], which is handed out only if the count
//! is true.
//!
//! Writing: a writer puts fields into an [`Encoder`] as its setters are called, in the dictionary's order,
//! which is checked, as are required fields and what the values hold ([`Scope`]). Counts of groups are those
//! of the entries handed in. The first thing wrong is kept, named, and the message does not leave the
//! encoder.
//!
//! Nothing is copied or allocated. FIX 4.4 with errata 20030618, volume 1, "Repeating Groups" and "Required
//! fields".

use crate::decode::Message;
use crate::encode::Encoder;
use crate::fields::{Field, Fields};
use crate::group::{Group, RepeatingGroup};
use crate::reject::{Fault, SessionRejectReason};
use crate::scan::SOH;
use crate::tag::is_data_length;
use crate::time::Stamp;
use core::fmt;
use core::marker::PhantomData;
pub use tickwire_market::{Nanos, Price, Qty};

/// A field of a dictionary: what errors name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FieldName {
    /// Its tag.
    pub tag: u32,
    /// Its name in the dictionary.
    pub name: &'static str,
}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.tag)
    }
}

/// Why a field of a received message could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FieldError {
    /// Which field.
    pub field: FieldName,
    /// What is wrong with it, as a Reject would say.
    pub reason: SessionRejectReason,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason.text())
    }
}

impl core::error::Error for FieldError {}

impl From<FieldError> for Fault {
    fn from(e: FieldError) -> Fault {
        Fault::new(e.reason, e.field.tag)
    }
}

impl FieldError {
    #[cold]
    fn new(field: FieldName, fault: Fault) -> FieldError {
        FieldError {
            field,
            reason: fault.reason,
        }
    }
}

/// A set of tags for [`RepeatingGroup::has`], made at compile time: a bit for each tag below 2048, lists
/// above.
#[derive(Clone, Copy, Debug)]
pub struct TagSet {
    low: [u64; LOW_WORDS],
    members: &'static [u32],
    /// Of the whole dictionary; empty in a set of it.
    known: &'static [u32],
}

const LOW_WORDS: usize = 32;
const LOW_TAGS: u32 = 64 * LOW_WORDS as u32;

impl TagSet {
    /// These tags, which ascend.
    pub const fn new(tags: &'static [u32]) -> TagSet {
        let mut low = [0; LOW_WORDS];
        let mut i = 0;
        while i < tags.len() && tags[i] < LOW_TAGS {
            low[tags[i] as usize / 64] |= 1 << (tags[i] % 64);
            i += 1;
        }
        TagSet {
            low,
            members: tags,
            known: &[],
        }
    }

    /// What may be in an entry of a group: its members, which ascend, and whatever the dictionary does not
    /// know, so that a counterparty's additional field does not end the entry.
    pub const fn entry(members: &'static [u32], dictionary: &TagSet) -> TagSet {
        let mut set = TagSet::new(members);
        let mut i = 0;
        while i < LOW_WORDS {
            set.low[i] |= !dictionary.low[i];
            i += 1;
        }
        set.known = dictionary.members;
        set
    }

    /// Whether a tag is in an entry's set.
    #[inline]
    pub fn has(&self, tag: u32) -> bool {
        match self.low.get(tag as usize / 64) {
            Some(word) => word >> (tag % 64) & 1 != 0,
            None => self.has_high(tag),
        }
    }

    #[cold]
    fn has_high(&self, tag: u32) -> bool {
        self.members.binary_search(&tag).is_ok() || self.known.binary_search(&tag).is_err()
    }
}

/// A value as its field's type says.
pub trait Value<'m>: Sized {
    /// Reads it.
    fn read(fields: &Fields<'m>, field: Field) -> Result<Self, Fault>;
}

macro_rules! values {
    ($($(#[$doc:meta])* $type:ty: $read:expr;)*) => {$(
        $(#[$doc])*
        impl<'m> Value<'m> for $type {
            #[inline]
            fn read(fields: &Fields<'m>, field: Field) -> Result<Self, Fault> {
                let read: fn(&Fields<'m>, Field) -> Result<Self, Fault> = $read;
                read(fields, field)
            }
        }
    )*};
}

values! {
    /// Text, data and everything without a type of its own: as it stands.
    &'m [u8]: |m, f| Ok(m.value(f));
    /// PRICE, AMT, PERCENTAGE and other decimals.
    Price: |m, f| m.price(f);
    /// QTY: whole, below 2^32.
    Qty: |m, f| m.qty(f);
    /// UTCTIMESTAMP.
    Nanos: |m, f| m.timestamp(f);
    /// BOOLEAN.
    bool: |m, f| m.boolean(f);
    /// CHAR.
    u8: |m, f| m.char(f);
    /// LENGTH, SEQNUM, NUMINGROUP and other numbers without a sign.
    u64: |m, f| m.unsigned(f);
    /// INT.
    i64: |m, f| m.signed(f);
}

/// Where a view looks for its fields.
pub trait Source<'m>: Copy {
    /// The first field with this tag.
    fn lookup(&self, tag: u32) -> Option<Field>;

    /// All of its fields.
    fn all(&self) -> Fields<'m>;

    /// A group by its count.
    fn repeating<G: RepeatingGroup>(&self) -> Option<Group<'m, G>>;

    /// A field that must be there.
    #[inline]
    fn required<T: Value<'m>>(&self, name: FieldName) -> Result<T, FieldError> {
        match self.lookup(name.tag) {
            Some(field) => T::read(&self.all(), field).map_err(|fault| FieldError::new(name, fault)),
            None => Err(FieldError::new(name, Fault::missing(name.tag))),
        }
    }

    /// A field that may be absent.
    #[inline]
    fn optional<T: Value<'m>>(&self, name: FieldName) -> Result<Option<T>, FieldError> {
        match self.lookup(name.tag) {
            Some(field) => match T::read(&self.all(), field) {
                Ok(value) => Ok(Some(value)),
                Err(fault) => Err(FieldError::new(name, fault)),
            },
            None => Ok(None),
        }
    }

    /// The entries of a group; none if its count is not there.
    #[inline]
    fn entries<E: Entry<'m>>(&self) -> Result<Entries<'m, E>, FieldError> {
        match self.repeating::<E>() {
            Some(group) => Entries::of(group),
            None => Ok(Entries::none()),
        }
    }

    /// The entries of a group that must be there.
    #[inline]
    fn required_entries<E: Entry<'m>>(&self) -> Result<Entries<'m, E>, FieldError> {
        match self.repeating::<E>() {
            Some(group) => Entries::of(group),
            None => Err(FieldError::new(E::NAME, Fault::missing(E::COUNT))),
        }
    }
}

impl<'m> Source<'m> for Message<'m> {
    #[inline]
    fn lookup(&self, tag: u32) -> Option<Field> {
        self.find(tag)
    }

    #[inline]
    fn all(&self) -> Fields<'m> {
        **self
    }

    #[inline]
    fn repeating<G: RepeatingGroup>(&self) -> Option<Group<'m, G>> {
        self.group()
    }
}

impl<'m> Source<'m> for Fields<'m> {
    #[inline]
    fn lookup(&self, tag: u32) -> Option<Field> {
        self.find(tag)
    }

    #[inline]
    fn all(&self) -> Fields<'m> {
        *self
    }

    #[inline]
    fn repeating<G: RepeatingGroup>(&self) -> Option<Group<'m, G>> {
        self.group()
    }
}

/// The count of a group, and what may be in its entries.
pub type CountAndMembers = (u32, fn(u32) -> bool);

/// A place in which some tags mean the place itself as well as entries of its groups: groups are passed over.
#[derive(Clone, Copy, Debug)]
pub struct Outside<'m> {
    /// The whole place.
    pub fields: Fields<'m>,
    /// The counts of its groups, and what may be in their entries.
    pub groups: &'static [CountAndMembers],
}

impl<'m> Source<'m> for Outside<'m> {
    fn lookup(&self, tag: u32) -> Option<Field> {
        let mut rest = self.fields.fields().iter();
        while let Some(&field) = rest.next() {
            if field.tag == tag {
                return Some(field);
            }
            if let Some((_, has)) = self.groups.iter().find(|(count, _)| *count == field.tag) {
                let len = rest.as_slice().iter().take_while(|f| has(f.tag)).count();
                rest = rest.as_slice()[len..].iter();
            }
        }
        None
    }

    fn all(&self) -> Fields<'m> {
        self.fields
    }

    fn repeating<G: RepeatingGroup>(&self) -> Option<Group<'m, G>> {
        self.fields.group()
    }
}

/// One entry of a repeating group, typed.
pub trait Entry<'m>: RepeatingGroup + Copy {
    /// The count's name.
    const NAME: FieldName;

    /// The field that begins every entry.
    const FIRST: FieldName;

    /// The view of an entry's fields.
    fn of(fields: Fields<'m>) -> Self;
}

/// The entries of a repeating group, in their order. Their number has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'m, E> {
    /// Those that have not been given.
    rest: Fields<'m>,
    left: usize,
    of: PhantomData<E>,
}

impl<'m, E: Entry<'m>> Entries<'m, E> {
    fn none() -> Entries<'m, E> {
        Entries {
            rest: Fields::NONE,
            left: 0,
            of: PhantomData,
        }
    }

    /// Walks over the entries once: each begins with the first field, and they are as many as the count says.
    #[inline]
    fn of(group: Group<'m, E>) -> Result<Entries<'m, E>, FieldError> {
        let (said, behind) = group.open().map_err(|fault| FieldError::new(E::NAME, fault))?;
        let fields = behind.fields();
        let (mut found, mut len) = (0, 0);
        for field in fields {
            if field.tag == E::FIRST.tag {
                found += 1;
            } else if found == 0 || !E::has(field.tag) {
                break;
            }
            len += 1;
        }
        if found != said {
            return Err(Entries::<E>::miscounted(found, fields));
        }
        Ok(Entries {
            rest: behind.others(&fields[..len]),
            left: found as usize,
            of: PhantomData,
        })
    }

    #[cold]
    fn miscounted(found: u64, fields: &[Field]) -> FieldError {
        match fields.first() {
            Some(field) if found == 0 && E::has(field.tag) => FieldError {
                field: E::FIRST,
                reason: SessionRejectReason::GroupOutOfOrder,
            },
            _ => FieldError {
                field: E::NAME,
                reason: SessionRejectReason::IncorrectNumInGroup,
            },
        }
    }
}

impl<'m, E: Entry<'m>> Iterator for Entries<'m, E> {
    type Item = E;

    #[inline]
    fn next(&mut self) -> Option<E> {
        let fields = self.rest.fields();
        let behind_first = fields.get(1..)?;
        let begins = |field: &Field| field.tag == E::FIRST.tag;
        let len = 1 + behind_first.iter().position(begins).unwrap_or(behind_first.len());
        let (entry, rest) = fields.split_at(len);
        self.rest = self.rest.others(rest);
        self.left -= 1;
        Some(E::of(self.rest.others(entry)))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<'m, E: Entry<'m>> ExactSizeIterator for Entries<'m, E> {}

/// The single values of a field that holds several, such as ExecInst (18).
pub fn several(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b' ')
}

/// What is wrong with what was to be written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WriteFault {
    /// A required field was not written.
    Missing,
    /// It stands before what was written last, or was written before.
    OutOfOrder,
    /// An entry of a group does not begin with this field, which every entry must.
    NotFirst,
    /// An iterator of entries was longer or shorter than it said.
    EntryCount,
    /// An empty text.
    Empty,
    /// A separator in a value that is no data, or in data that receivers do not know as such.
    Separator,
    /// The buffer is full.
    Full,
}

/// Why a message was not written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WriteError {
    /// The field it is about.
    pub field: FieldName,
    /// What is wrong.
    pub fault: WriteFault,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.fault {
            WriteFault::Missing => "is required and was not written",
            WriteFault::OutOfOrder => {
                "was written twice, or after a field that follows it in the dictionary: write it before"
            }
            WriteFault::NotFirst => "must be the first field written of every entry",
            WriteFault::EntryCount => "counts entries whose iterator gave another number than it said",
            WriteFault::Empty => "must not be empty: leave the field out",
            WriteFault::Separator => "must not hold a separator (SOH)",
            WriteFault::Full => "did not fit the buffer",
        };
        write!(f, "{} {what}", self.field)
    }
}

impl core::error::Error for WriteError {}

/// What must be written at one place.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The fields that must be there: number `i` is bit `i`.
    pub required: &'static [FieldName],
    /// The first field of the place.
    pub first: FieldName,
}

/// A place being written: which field may come next and what came.
#[derive(Clone, Copy, Debug, Default)]
struct WritingState {
    /// The lowest rank that may come.
    next: u16,
    /// Required fields that came.
    seen: u64,
    /// Of an entry of a group: the field that begins it.
    first: Option<FieldName>,
}

/// Where everything goes.
#[derive(Debug)]
struct Out<'w, 'b> {
    encoder: &'w mut Encoder<'b>,
    stamp: &'w mut Stamp,
    error: Option<WriteError>,
    /// What was written before the body is wrong already.
    had_failed: bool,
}

impl Out<'_, '_> {
    #[cold]
    fn fail(&mut self, field: FieldName, fault: WriteFault) {
        self.encoder.fail();
        self.error = self.error.or(Some(WriteError { field, fault }));
    }

    fn close(&mut self, place: &WritingState, form: &Form) {
        if place.next == 0
            && let Some(first) = place.first
        {
            self.fail(first, WriteFault::NotFirst);
        }
        let missing = (!place.seen).trailing_zeros() as usize;
        if let Some(field) = form.required.get(missing) {
            self.fail(*field, WriteFault::Missing);
        }
    }
}

/// The bit of a field that need not be there.
pub const OPTIONAL: u32 = 64;

/// A place of a message that is being written: its body, an entry of a group, or a component of either.
#[derive(Debug)]
pub struct Scope<'s, 'w, 'b> {
    out: &'s mut Out<'w, 'b>,
    place: &'s mut WritingState,
    /// Of a component: the rank of its first field.
    base: u16,
    /// Of a component: the bit of its first required field.
    bit: u32,
}

/// Writes the body of a message: what follows the header. An error also fails the encoder.
pub fn write<'b>(
    encoder: &mut Encoder<'b>,
    stamp: &mut Stamp,
    form: &Form,
    fill: impl FnOnce(Scope<'_, '_, 'b>),
) -> Result<(), WriteError> {
    let mut out = Out {
        had_failed: encoder.has_failed(),
        encoder,
        stamp,
        error: None,
    };
    let mut place = WritingState::default();
    fill(Scope {
        out: &mut out,
        place: &mut place,
        base: 0,
        bit: 0,
    });
    out.close(&place, form);
    out.error.map_or(Ok(()), Err)
}

impl<'w, 'b> Scope<'_, 'w, 'b> {
    /// A component whose first field has this rank here and its first required field this bit.
    #[inline]
    pub fn component(&mut self, rank: u16, bit: u32) -> Scope<'_, 'w, 'b> {
        Scope {
            out: self.out,
            place: self.place,
            base: self.base + rank,
            bit: self.bit + bit,
        }
    }

    #[inline(always)]
    fn advance(&mut self, rank: u16, bit: u32, field: FieldName) {
        let rank = self.base + rank;
        if rank < self.place.next {
            self.out.fail(field, WriteFault::OutOfOrder);
        }
        if self.place.next == 0
            && rank != 0
            && let Some(first) = self.place.first
        {
            self.out.fail(first, WriteFault::NotFirst);
        }
        self.place.next = rank + 1;
        self.place.seen |= 1_u64.checked_shl(self.bit + bit).unwrap_or(0);
    }

    /// A field. Inlined, as are the writers of values: the encoder renders a tag that is a constant at
    /// compile time.
    #[inline(always)]
    pub fn put<T: Put>(&mut self, rank: u16, bit: u32, field: FieldName, value: T) {
        self.advance(rank, bit, field);
        value.put(self, field);
        self.check_room(field);
    }

    /// Data, with the field before it that says its length.
    pub fn data(&mut self, rank: u16, bit: u32, length: FieldName, field: FieldName, value: &[u8]) {
        self.advance(rank, bit, length);
        self.place.next += 1;
        if value.is_empty() {
            self.out.fail(field, WriteFault::Empty);
        } else if !is_data_length(length.tag) && value.contains(&SOH) {
            self.out.fail(field, WriteFault::Separator);
        }
        self.out.encoder.unsigned(length.tag, value.len() as u64);
        self.out.encoder.copy(field.tag, value);
        self.check_room(field);
    }

    /// A group: its count, then each entry as `fill` writes it. Nothing if there are no entries.
    #[inline]
    pub fn group<I: IntoIterator<IntoIter: ExactSizeIterator>>(
        &mut self,
        rank: u16,
        bit: u32,
        field: FieldName,
        form: &'static Form,
        entries: I,
        mut fill: impl FnMut(Scope<'_, 'w, 'b>, I::Item),
    ) {
        let entries = entries.into_iter();
        let count = entries.len();
        if count == 0 {
            return;
        }
        self.put(rank, bit, field, count as u64);
        let mut written = 0;
        for entry in entries {
            let mut place = WritingState {
                first: Some(form.first),
                ..WritingState::default()
            };
            let scope = Scope {
                out: self.out,
                place: &mut place,
                base: 0,
                bit: 0,
            };
            fill(scope, entry);
            self.out.close(&place, form);
            written += 1;
        }
        if written != count {
            self.out.fail(field, WriteFault::EntryCount);
        }
    }

    #[inline(always)]
    fn check_room(&mut self, field: FieldName) {
        if self.out.encoder.has_failed() && !self.out.had_failed {
            self.out.fail(field, WriteFault::Full);
        }
    }

    #[inline(always)]
    fn text(&mut self, field: FieldName, value: &[u8]) {
        self.out.encoder.text(field.tag, value);
        if self.out.encoder.has_failed() {
            self.refuse(field, value);
        }
    }

    /// Why a text was not taken.
    #[cold]
    fn refuse(&mut self, field: FieldName, value: &[u8]) {
        if value.is_empty() {
            self.out.fail(field, WriteFault::Empty);
        } else if value.contains(&SOH) {
            self.out.fail(field, WriteFault::Separator);
        }
    }
}

/// A value that can be written.
pub trait Put {
    /// Writes it.
    fn put(self, to: &mut Scope<'_, '_, '_>, field: FieldName);
}

macro_rules! puts {
    ($($(#[$doc:meta])* $type:ty: $put:expr;)*) => {$(
        $(#[$doc])*
        impl Put for $type {
            #[inline(always)]
            fn put(self, to: &mut Scope<'_, '_, '_>, field: FieldName) {
                let put: fn(&mut Scope<'_, '_, '_>, FieldName, Self) = $put;
                put(to, field, self)
            }
        }
    )*};
}

puts! {
    /// Text: not empty, without separators.
    &[u8]: |to, field, value| to.text(field, value);
    /// A decimal: at least two decimals, as many as make it exact.
    Price: |to, field, value| to.out.encoder.price(field.tag, value);
    /// A whole number.
    Qty: |to, field, value| to.out.encoder.unsigned(field.tag, u64::from(value.0));
    /// As precise as the [`Stamp`].
    Nanos: |to, field, value| to.out.encoder.timestamp(field.tag, to.out.stamp, value);
    /// `Y` or `N`.
    bool: |to, field, value| to.out.encoder.char(field.tag, if value { b'Y' } else { b'N' });
    /// One character.
    u8: |to, field, value| to.text(field, &[value]);
    /// A number.
    u64: |to, field, value| to.out.encoder.unsigned(field.tag, value);
    /// A number with a sign.
    i64: |to, field, value| to.out.encoder.signed(field.tag, value);
}

/// A listed value, for [`field_values!`](crate::field_values).
#[doc(hidden)]
#[inline(always)]
pub fn put_listed(to: &mut Scope<'_, '_, '_>, field: FieldName, value: &'static [u8]) {
    to.out.encoder.text(field.tag, value);
}

/// The listed values of a field as an enumeration. Generated code calls it.
#[macro_export]
macro_rules! field_values {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name { $($(#[$value_doc])* $variant),* }

        impl $name {
            /// Every value, in the order of the dictionary's texts.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// As the message has it.
            #[inline]
            pub const fn as_bytes(self) -> &'static [u8] {
                match self { $($name::$variant => $text),* }
            }

            /// By what the message has; `None` if it is not listed.
            #[inline]
            pub const fn from_bytes(value: &[u8]) -> Option<$name> {
                match value { $($text => Some($name::$variant),)* _ => None }
            }
        }

        impl<'m> $crate::typed::Value<'m> for $name {
            #[inline]
            fn read(fields: &$crate::Fields<'m>, field: $crate::Field) -> Result<$name, $crate::Fault> {
                $name::from_bytes(fields.value(field)).ok_or($crate::Fault::value(field.tag))
            }
        }

        impl $crate::typed::Put for $name {
            #[inline(always)]
            fn put(self, to: &mut $crate::typed::Scope<'_, '_, '_>, field: $crate::typed::FieldName) {
                $crate::typed::put_listed(to, field, self.as_bytes())
            }
        }
    };
}
