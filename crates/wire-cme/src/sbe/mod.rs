//! What Simple Binary Encoding messages are made of: blocks whose length the sender says, repeating groups of
//! such blocks, fields that can be absent. FIX Simple Binary Encoding 1.0, "Message structure".
//! [`crate::mdp3`] and [`crate::ilink3`] are tables of such messages.
//!
//! A block may be longer than its layout: padding, fields of later versions than ours. And the sender's
//! version may lack fields of ours. So [`Block`] and [`Entries`] step by the length on the wire and give
//! layouts by value, with the fields that the sender does not know left blank, which is their null value
//! where they have one. A walk over the fields gives null for every one of them, whether the schema has a
//! null for it or not.

pub(crate) mod table;

use crate::layout::{self, Field, FieldValue, Fields, Pod, le, prefix};
use crate::{Malformed, wire_struct};
use core::marker::PhantomData;

pub use tickwire_wire_core::nullable::{Nullable, Optional, Price9, Qty4, Text};

wire_struct! {
    /// Before every block. FIX Simple Binary Encoding 1.0, "Message header"; schemas of MDP 3.0 and iLink 3,
    /// `messageHeader`.
    pub struct MessageHeader = "messageHeader", 8 {
        0 => block_length: le::U16, "blockLength";
        2 => template_id: le::U16, "templateId";
        4 => schema_id: le::U16, "schemaId";
        6 => version: le::U16, "version";
    }
}

wire_struct! {
    /// Before the entries of a group. Schemas of MDP 3.0 and iLink 3, `groupSize`.
    pub struct GroupSize = "groupSize", 3 {
        0 => block_length: le::U16, "blockLength";
        2 => count: u8, "numInGroup";
    }
}

wire_struct! {
    /// Before the entries of a group that begins on a multiple of 8. CME MDP 3.0 schema 1, "groupSize8Byte".
    pub struct GroupSize8Byte = "groupSize8Byte", 8 {
        0 => block_length: le::U16, "blockLength";
        2 => padding: [u8; 5], "padding";
        7 => count: u8, "numInGroup";
    }
}

/// The head of a group.
pub trait Dimension: Pod {
    /// A head saying this.
    fn new(block_length: u16, count: u8) -> Self;
    /// Bytes of each entry.
    fn block_length(&self) -> u16;
    /// How many entries.
    fn count(&self) -> u8;
}

impl Dimension for GroupSize {
    fn new(block_length: u16, count: u8) -> GroupSize {
        GroupSize {
            block_length: block_length.into(),
            count,
        }
    }
    #[inline(always)]
    fn block_length(&self) -> u16 {
        self.block_length.get()
    }
    #[inline(always)]
    fn count(&self) -> u8 {
        self.count
    }
}

impl Dimension for GroupSize8Byte {
    fn new(block_length: u16, count: u8) -> GroupSize8Byte {
        GroupSize8Byte {
            block_length: block_length.into(),
            padding: [0; 5],
            count,
        }
    }
    #[inline(always)]
    fn block_length(&self) -> u16 {
        self.block_length.get()
    }
    #[inline(always)]
    fn count(&self) -> u8 {
        self.count
    }
}

/// A root block or group entry.
pub trait Layout: Fields + Field {
    /// How many bytes of it a sender of this schema version knows; what follows them is padding.
    fn size_in(version: u16) -> usize;
}

/// Says of layouts that have grown: `Name [version => bytes before that version]`.
macro_rules! layouts {
    ($($name:ident $([$($since:literal => $bytes:literal),*])?;)*) => {$(
        impl $crate::sbe::Layout for $name {
            #[inline(always)]
            #[allow(unused_variables, reason = "most layouts never grew")]
            fn size_in(version: u16) -> usize {
                $($(if version < $since { return $bytes; })*)?
                size_of::<$name>()
            }
        }
    )*};
}
pub(crate) use layouts;

wire_struct! {
    /// The root block of messages without fields of their own.
    pub struct NoFields = "NoFields", 0 {}
}

layouts! { NoFields; }

/// Reads a block: the layout's fields as far as they are there.
#[inline(always)]
fn read<T: Layout>(block: &[u8], usable: u16) -> T {
    if usize::from(usable) == size_of::<T>()
        && let Some((whole, _)) = layout::split::<T>(block)
    {
        return *whole;
    }
    read_partly(block, usable)
}

#[cold]
fn read_partly<T: Layout>(block: &[u8], usable: u16) -> T {
    let mut value = T::BLANK;
    for (to, from) in value.as_mut_bytes().iter_mut().zip(block).take(usable.into()) {
        *to = *from;
    }
    value
}

/// How many bytes of a block hold fields of the layout. A block shorter than its version's layout is
/// malformed: no field may be cut.
#[inline(always)]
fn usable<T: Layout>(block_length: u16, version: u16) -> Result<u16, Malformed> {
    let size = T::size_in(version);
    if usize::from(block_length) < size {
        return Err(Malformed::length(0, size, block_length.into()));
    }
    Ok(size as u16) // no longer than the block
}

/// A root block, in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block<'a, T> {
    bytes: &'a [u8],
    usable: u16,
    layout: PhantomData<T>,
}

impl<'a, T: Layout> Block<'a, T> {
    /// As [`Block::split`], without saying what is wrong: quicker, as nothing but the block goes through the
    /// result.
    #[inline(always)]
    pub fn take(bytes: &'a [u8], block_length: u16, version: u16) -> Option<(Block<'a, T>, &'a [u8])> {
        let (block, rest) = bytes.split_at_checked(block_length.into())?;
        let size = T::size_in(version);
        (block.len() >= size).then_some((
            Block {
                bytes: block,
                usable: size as u16, // no longer than the block
                layout: PhantomData,
            },
            rest,
        ))
    }

    /// The block at the start of `bytes`, and what follows it.
    #[inline(always)]
    pub fn split(
        bytes: &'a [u8],
        block_length: u16,
        version: u16,
    ) -> Result<(Block<'a, T>, &'a [u8]), Malformed> {
        let Some((block, rest)) = bytes.split_at_checked(block_length.into()) else {
            return Err(Malformed::truncated(block_length.into(), bytes.len()));
        };
        Ok((
            Block {
                bytes: block,
                usable: usable::<T>(block_length, version)?,
                layout: PhantomData,
            },
            rest,
        ))
    }

    /// Its fields.
    #[inline(always)]
    pub fn get(&self) -> T {
        read(self.bytes, self.usable)
    }

    /// Bytes on the wire.
    pub fn block_length(&self) -> u16 {
        self.bytes.len() as u16
    }
}

/// The entries of a group, in place: an iterator that has been checked to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entries<'a, T> {
    bytes: &'a [u8],
    block_length: u16,
    usable: u16,
    left: u8,
    layout: PhantomData<T>,
}

impl<'a, T: Layout> Entries<'a, T> {
    /// A group that is not there.
    pub fn none() -> Entries<'a, T> {
        Entries {
            bytes: &[],
            block_length: 0,
            usable: 0,
            left: 0,
            layout: PhantomData,
        }
    }

    /// The group at the start of `bytes`, and what follows it.
    #[inline(always)]
    pub fn split<D: Dimension + 'a>(
        bytes: &'a [u8],
        version: u16,
    ) -> Result<(Entries<'a, T>, &'a [u8]), Malformed> {
        let (head, rest) = prefix::<D>(bytes)?;
        let (block_length, left) = (head.block_length(), head.count());
        let size = usize::from(block_length) * usize::from(left);
        let Some((entries, rest)) = rest.split_at_checked(size) else {
            return Err(Malformed::truncated(size, rest.len()));
        };
        let usable = if left == 0 {
            0
        } else {
            usable::<T>(block_length, version)?
        };
        Ok((
            Entries {
                bytes: entries,
                block_length,
                usable,
                left,
                layout: PhantomData,
            },
            rest,
        ))
    }

    /// As [`Entries::split`], without saying what is wrong.
    #[inline(always)]
    pub fn take<D: Dimension + 'a>(bytes: &'a [u8], version: u16) -> Option<(Entries<'a, T>, &'a [u8])> {
        let (head, rest) = layout::split::<D>(bytes)?;
        let (block_length, left) = (head.block_length(), head.count());
        let (entries, rest) = rest.split_at_checked(usize::from(block_length) * usize::from(left))?;
        let usable = if left == 0 { 0 } else { T::size_in(version) };
        (usize::from(block_length) >= usable).then_some((
            Entries {
                bytes: entries,
                block_length,
                usable: usable as u16, // no longer than the block
                left,
                layout: PhantomData,
            },
            rest,
        ))
    }

    /// The `index`-th of the entries not yet walked.
    #[inline]
    pub fn get(&self, index: usize) -> Option<T> {
        if index >= usize::from(self.left) {
            return None;
        }
        let entry = self.bytes.get(index * usize::from(self.block_length)..)?;
        Some(read(entry, self.usable))
    }

    /// The entries in place, where the sender has all fields of the layout: quicker than one after the other
    /// by value.
    #[inline(always)]
    pub fn whole(&self) -> Option<impl Iterator<Item = &'a T> + use<'a, T>> {
        let is_whole = usize::from(self.usable) == size_of::<T>() && self.left > 0;
        let entries = self.bytes.chunks_exact(usize::from(self.block_length).max(1));
        is_whole.then(|| entries.filter_map(|entry| Some(layout::split(entry)?.0)))
    }

    /// Bytes of each entry on the wire.
    pub fn block_length(&self) -> u16 {
        self.block_length
    }
}

impl<T: Layout> Iterator for Entries<'_, T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        if self.left == 0 {
            return None;
        }
        let (entry, rest) = self.bytes.split_at_checked(self.block_length.into())?;
        self.bytes = rest;
        self.left -= 1;
        Some(read(entry, self.usable))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.into(), Some(self.left.into()))
    }
}

impl<T: Layout> ExactSizeIterator for Entries<'_, T> {}
impl<T: Layout> core::iter::FusedIterator for Entries<'_, T> {}

/// What stands before each message of MDP 3.0: its size.
pub(crate) const SIZE: &[u8] = &[0, 0];

/// One row of a table of templates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Template {
    /// Its number.
    pub id: u16,
    /// Its name in the schema.
    pub name: &'static str,
    /// Bytes of its root block, as the newest schema version lays it out.
    pub block_length: u16,
    /// Name, bytes of an entry, and first schema version of each of its groups.
    pub groups: &'static [(&'static str, u16, u16)],
}

/// The data field at the start of `bytes`, behind its length in two bytes, and what follows it.
#[inline]
pub(crate) fn split_data(bytes: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let (length, rest) = prefix::<le::U16>(bytes)?;
    let length = usize::from(length.get());
    rest.split_at_checked(length)
        .ok_or_else(|| Malformed::truncated(length, rest.len()))
}

/// Writes one message behind its size: header, root, then every group of its template in order, then its
/// data.
#[derive(Debug)]
pub struct MessageBuilder<'b> {
    buffer: &'b mut [u8],
    length: usize,
    version: u16,
    fits: bool,
}

impl<'b> MessageBuilder<'b> {
    /// Starts a message behind its size in two bytes.
    pub fn new<T: Layout>(buffer: &'b mut [u8], header: MessageHeader, root: &T) -> MessageBuilder<'b> {
        MessageBuilder::behind(SIZE, buffer, header, header.version.get(), root)
    }

    /// Starts a message behind `frame`, whose first two bytes will be the size of everything, with the fields
    /// that `version` of the schema has.
    pub(crate) fn behind<T: Layout>(
        frame: &[u8],
        buffer: &'b mut [u8],
        header: MessageHeader,
        version: u16,
        root: &T,
    ) -> MessageBuilder<'b> {
        let mut builder = MessageBuilder {
            buffer,
            length: 0,
            version,
            fits: true,
        };
        builder.put(frame, frame.len());
        builder.put(header.as_bytes(), MessageHeader::SIZE);
        builder.put_block(root, header.block_length.get());
        builder
    }

    /// Appends a group of at most 255 entries of `block_length` bytes each.
    pub fn group<D: Dimension, T: Layout>(
        mut self,
        block_length: u16,
        entries: impl IntoIterator<Item = T>,
    ) -> MessageBuilder<'b> {
        let head = self.length;
        self.put(D::new(block_length, 0).as_bytes(), size_of::<D>());
        let mut count = 0_u8;
        for entry in entries {
            self.fits &= count < u8::MAX;
            count = count.saturating_add(1);
            self.put_block(&entry, block_length);
        }
        if self.fits {
            let bytes = &mut self.buffer[head..head + size_of::<D>()];
            bytes.copy_from_slice(D::new(block_length, count).as_bytes());
        }
        self
    }

    /// Appends data behind its length, at most 65 535 bytes. FIX Simple Binary Encoding 1.0, "Data field".
    pub fn data(mut self, data: &[u8]) -> MessageBuilder<'b> {
        match u16::try_from(data.len()) {
            Ok(length) => {
                self.put(&length.to_le_bytes(), 2);
                self.put(data, data.len());
            }
            Err(_) => self.fits = false,
        }
        self
    }

    /// Completes the message: its bytes with the size before it, `None` if it did not fit.
    pub fn finish(self) -> Option<usize> {
        let size = u16::try_from(self.length).ok().filter(|_| self.fits)?;
        self.buffer[..2].copy_from_slice(&size.to_le_bytes());
        Some(self.length)
    }

    /// The part of a layout that this version has, padded with zeros.
    fn put_block<T: Layout>(&mut self, block: &T, block_length: u16) {
        match usable::<T>(block_length, self.version) {
            Ok(used) => self.put(&block.as_bytes()[..used.into()], block_length.into()),
            Err(_) => self.fits = false,
        }
    }

    fn put(&mut self, bytes: &[u8], length: usize) {
        let end = self.length + length;
        match self.buffer.get_mut(self.length..end) {
            Some(to) if self.fits => {
                let (to, padding) = to.split_at_mut(bytes.len());
                to.copy_from_slice(bytes);
                padding.fill(0);
                self.length = end;
            }
            _ => self.fits = false,
        }
    }
}

/// The version whose fields a message has: the sender's. Templates with prices of 7 decimals went out of the
/// schema of MDP 3.0 behind version 9; what was added to the layouts later is not theirs, whatever version a
/// sender names.
#[inline(always)]
pub(crate) const fn version_of(sent: u16, decimals: u8) -> u16 {
    const LAST_OF_7_DECIMALS: u16 = 9;
    if decimals == 7 && sent > LAST_OF_7_DECIMALS {
        LAST_OF_7_DECIMALS
    } else {
        sent
    }
}

/// Whether a schema version lacks what `since` brought.
#[inline(always)]
pub(crate) fn precedes(version: u16, since: u16) -> bool {
    version < since
}

/// One step of a walk over a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visit<'a> {
    /// A field: its name and value.
    Field(&'static str, FieldValue<'a>),
    /// An entry of a group begins: the group's name, the entry's number from 0, how many there are. An empty
    /// group gives one step with both 0, without a `Leave`.
    Enter(&'static str, u8, u8),
    /// The entry ends.
    Leave,
}

/// Walks a group.
pub(crate) fn visit_entries<T: Layout>(
    name: &'static str,
    entries: Entries<'_, T>,
    decimals: u8,
    f: &mut dyn FnMut(Visit<'_>),
) {
    let (count, known) = (entries.left, entries.usable);
    if count == 0 {
        f(Visit::Enter(name, 0, 0));
    }
    for (index, entry) in (0..).zip(entries) {
        f(Visit::Enter(name, index, count));
        visit_fields(&entry, known, decimals, f);
        f(Visit::Leave);
    }
}

/// Walks a root block.
pub(crate) fn visit_root<T: Layout>(root: &Block<'_, T>, decimals: u8, f: &mut dyn FnMut(Visit<'_>)) {
    visit_fields(&root.get(), root.usable, decimals, f);
}

/// Walks a block of which the sender's version knows the first `known` bytes; its prices have `decimals`
/// implied decimals (older templates share the layouts, with 7).
fn visit_fields<T: Layout>(block: &T, known: u16, decimals: u8, f: &mut dyn FnMut(Visit<'_>)) {
    block.visit_known(known.into(), &mut |name, value| {
        let value = match value {
            FieldValue::Decimal {
                mantissa,
                decimals: 9,
            } => FieldValue::Decimal { mantissa, decimals },
            other => other,
        };
        f(Visit::Field(name, value));
    });
}
