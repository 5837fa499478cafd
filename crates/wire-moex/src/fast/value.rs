//! Values of fields: 16-byte cells that refer to a text arena, and the record that holds a message of them.

use alloc::boxed::Box;
use alloc::vec;
use core::fmt;

use tickwire_market::Price;

use super::error::Fault;
use super::plan::{Frame, Plan, SequenceRef, Slot};

/// What a cell holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    Absent = 0,
    U32,
    U64,
    I32,
    I64,
    Decimal,
    Ascii,
    Unicode,
    Bytes,
    Group,
    Sequence,
}

impl Kind {
    pub(crate) const fn is_text(self) -> bool {
        matches!(self, Kind::Ascii | Kind::Unicode | Kind::Bytes)
    }

    pub(crate) const fn is_integer(self) -> bool {
        matches!(self, Kind::U32 | Kind::U64 | Kind::I32 | Kind::I64)
    }
}

/// One value. `meta` is `kind | exponent << 8 | epoch << 32`; the epoch belongs to dictionary entries only.
/// Two plain words, so that a value travels in registers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    /// The integer, the mantissa, `offset << 32 | length` of a text, or `first cell << 32 | count` of a
    /// sequence.
    pub(crate) bits: u64,
    pub(crate) meta: u64,
}

impl Cell {
    pub(crate) const ABSENT: Cell = Cell { bits: 0, meta: 0 };
    /// Not a value but why there is none; in rows of previous values only.
    pub(crate) const fn fault(fault: Fault) -> Cell {
        let number = match fault {
            Fault::PreviousType => 12,
            Fault::NoPrevious => 13,
            _ => 14,
        };
        Cell {
            bits: 0,
            meta: number,
        }
    }

    /// The inverse of [`Cell::fault`].
    #[inline(always)]
    pub(crate) const fn as_fault(self) -> Option<Fault> {
        match self.meta & 15 {
            0..12 => None,
            12 => Some(Fault::PreviousType),
            13 => Some(Fault::NoPrevious),
            _ => Some(Fault::EmptyPrevious),
        }
    }

    /// Equal to no field's value.
    pub(crate) const NEVER: Cell = Cell::new(Kind::Group, 0);

    #[inline(always)]
    pub(crate) const fn new(kind: Kind, bits: u64) -> Cell {
        Cell {
            bits,
            meta: kind as u64,
        }
    }

    #[inline(always)]
    pub(crate) const fn decimal(exponent: i8, mantissa: i64) -> Cell {
        Cell {
            bits: mantissa as u64,
            meta: Kind::Decimal as u64 | (exponent as u8 as u64) << 8,
        }
    }

    #[inline(always)]
    pub(crate) const fn kind(self) -> Kind {
        const KINDS: [Kind; 16] = [
            Kind::Absent,
            Kind::U32,
            Kind::U64,
            Kind::I32,
            Kind::I64,
            Kind::Decimal,
            Kind::Ascii,
            Kind::Unicode,
            Kind::Bytes,
            Kind::Group,
            Kind::Sequence,
            Kind::Absent,
            Kind::Absent,
            Kind::Absent,
            Kind::Absent,
            Kind::Absent,
        ];
        KINDS[(self.meta & 15) as usize]
    }

    #[inline(always)]
    pub(crate) const fn is(self, kind: Kind) -> bool {
        self.meta & 15 == kind as u64
    }

    #[inline(always)]
    pub(crate) const fn is_unsigned(self) -> bool {
        self.is(Kind::U32) || self.is(Kind::U64)
    }

    #[inline(always)]
    pub(crate) const fn is_signed(self) -> bool {
        self.is(Kind::I32) || self.is(Kind::I64)
    }

    #[inline(always)]
    pub(crate) const fn is_text(self) -> bool {
        self.is(Kind::Ascii) || self.is(Kind::Unicode) || self.is(Kind::Bytes)
    }

    #[inline(always)]
    pub(crate) const fn is_absent(self) -> bool {
        self.meta & 15 == 0
    }

    #[inline(always)]
    pub(crate) const fn exponent(self) -> i8 {
        (self.meta >> 8) as u8 as i8
    }

    #[inline(always)]
    pub(crate) const fn high(self) -> usize {
        (self.bits >> 32) as usize
    }

    #[inline(always)]
    pub(crate) const fn low(self) -> usize {
        (self.bits & 0xffff_ffff) as usize
    }
}

/// Storage for strings: bytes are appended, cells hold offset and length. The first `fixed` bytes are the
/// plan's own constants and initial values, at the same offsets in every arena of that plan.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    bytes: Box<[u8]>,
    used: usize,
}

impl Text {
    /// What the text of every plan starts with: all characters, so that a string of one needs no copy.
    pub(crate) const SINGLES: [u8; 128] = {
        let mut all = [0; 128];
        let mut i = 0;
        while i < 128 {
            all[i] = i as u8;
            i += 1;
        }
        all
    };

    /// A cell's bits for a string of one ASCII character.
    #[inline(always)]
    pub(crate) const fn single(character: u64) -> u64 {
        character << 32 | 1
    }

    /// Room for `capacity` bytes behind the plan's own.
    pub(crate) fn new(fixed: &[u8], capacity: usize) -> Text {
        let mut bytes = vec![0; fixed.len() + capacity].into_boxed_slice();
        bytes[..fixed.len()].copy_from_slice(fixed);
        Text {
            bytes,
            used: fixed.len(),
        }
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Drops everything behind a position that [`Text::used`] gave earlier.
    #[inline]
    pub(crate) fn truncate(&mut self, used: usize) {
        self.used = used.min(self.used);
    }

    /// The text of a cell; empty for one that does not come from this arena.
    #[inline(always)]
    pub(crate) fn get(&self, cell: Cell) -> &[u8] {
        text_of(&self.bytes, cell)
    }

    /// Appends the concatenation of two strings and gives the cell's bits.
    pub(crate) fn push(&mut self, first: &[u8], second: &[u8]) -> Result<u64, Fault> {
        let len = first.len() + second.len();
        let Some(room) = self.bytes.get_mut(self.used..self.used + len) else {
            return Err(Fault::TextFull);
        };
        let (a, b) = room.split_at_mut(first.len());
        a.copy_from_slice(first);
        b.copy_from_slice(second);
        Ok(self.commit(len))
    }

    /// Appends bytes of two ranges that are already in the arena.
    pub(crate) fn push_own(&mut self, first: (usize, usize), second: (usize, usize)) -> Result<u64, Fault> {
        let (a, b) = (first.1 - first.0, second.1 - second.0);
        if self.used + a + b > self.bytes.len() {
            return Err(Fault::TextFull);
        }
        self.bytes.copy_within(first.0..first.1, self.used);
        self.bytes.copy_within(second.0..second.1, self.used + a);
        Ok(self.commit(a + b))
    }

    /// Room of exactly eight bytes at the end, if there is: for stores of whole words.
    #[inline(always)]
    pub(crate) fn word(&mut self) -> Option<&mut [u8; 8]> {
        self.bytes.get_mut(self.used..)?.first_chunk_mut()
    }

    /// The same of sixteen bytes.
    pub(crate) fn words(&mut self) -> Option<&mut [u8; 16]> {
        self.bytes.get_mut(self.used..)?.first_chunk_mut()
    }

    /// Declares `len` bytes at the end as used (the caller has written them) and gives the cell's bits.
    #[inline(always)]
    pub(crate) fn commit(&mut self, len: usize) -> u64 {
        let at = self.used;
        self.used += len;
        (at as u64) << 32 | len as u64
    }
}

#[inline(always)]
fn text_of(bytes: &[u8], cell: Cell) -> &[u8] {
    bytes.get(cell.high()..cell.high() + cell.low()).unwrap_or(&[])
}

/// A scaled number: `mantissa * 10^exponent`, exactly as it was or will be on the wire (exponent -63..=63).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Decimal {
    /// The digits with their sign.
    pub mantissa: i64,
    /// The power of ten.
    pub exponent: i8,
}

impl Decimal {
    /// A decimal from its parts.
    pub const fn new(mantissa: i64, exponent: i8) -> Decimal {
        Decimal { mantissa, exponent }
    }

    /// `self * 10^decimals` as an integer; `None` when that is not exact or exceeds 64 bits.
    #[inline]
    pub fn scaled(self, decimals: i8) -> Option<i64> {
        let power = i32::from(self.exponent) + i32::from(decimals);
        if self.mantissa == 0 {
            return Some(0);
        }
        let unit = *POW10.get(power.unsigned_abs() as usize)?;
        if power >= 0 {
            self.mantissa.checked_mul(unit)
        } else {
            (self.mantissa % unit == 0).then(|| self.mantissa / unit)
        }
    }

    /// As a price; `None` when it has more than nine decimals or exceeds the range of [`Price`].
    #[inline]
    pub fn to_price(self) -> Option<Price> {
        self.scaled(9).map(Price::from_raw)
    }

    /// As an integer; `None` when it has decimals or exceeds 64 bits.
    #[inline]
    pub fn to_integer(self) -> Option<i64> {
        self.scaled(0)
    }

    /// The same number without trailing zeros in the mantissa, the form in which values are sent; zero has
    /// exponent 0.
    pub fn normalised(self) -> Decimal {
        let Decimal {
            mut mantissa,
            mut exponent,
        } = self;
        if mantissa == 0 {
            return Decimal::default();
        }
        while mantissa % 10 == 0 && exponent < 63 {
            mantissa /= 10;
            exponent += 1;
        }
        Decimal { mantissa, exponent }
    }

    /// A price in the form in which values are sent.
    pub fn from_price(price: Price) -> Decimal {
        Decimal::new(price.raw(), -9).normalised()
    }
}

const POW10: [i64; 19] = {
    let mut table = [1; 19];
    let mut i = 1;
    while i < 19 {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

/// Plain decimal text, exact: `-30.05`, `3880`, `0.001`.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.mantissa.unsigned_abs();
        if self.mantissa < 0 {
            f.write_str("-")?;
        }
        let places = usize::from(self.exponent.unsigned_abs());
        if self.exponent >= 0 {
            write!(f, "{magnitude}")?;
            return if magnitude == 0 {
                Ok(())
            } else {
                write!(f, "{:0<places$}", "")
            };
        }
        match POW10.get(places) {
            Some(&unit) => {
                let unit = unit.unsigned_abs();
                write!(f, "{}.{:0places$}", magnitude / unit, magnitude % unit)
            }
            None => write!(f, "0.{magnitude:0places$}"),
        }
    }
}

/// The value of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// Not there: optional and not sent, or a slot that the template does not have.
    Absent,
    /// `uInt32`, `uInt64`.
    Unsigned(u64),
    /// `int32`, `int64`.
    Signed(i64),
    /// `decimal`.
    Decimal(Decimal),
    /// `string` in ASCII, without stop bit.
    Ascii(&'a [u8]),
    /// `string` in UTF-8.
    Unicode(&'a [u8]),
    /// `byteVector`.
    Bytes(&'a [u8]),
    /// An optional group that is there; its fields have slots of their own.
    Group,
    /// `sequence`: how many entries.
    Sequence(u32),
}

/// The fields of a message, or of one entry of a sequence. All accessors accept [`Slot::MISSING`] and give
/// `None`.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    cells: &'a [Cell],
    record: &'a Record,
}

impl<'a> Fields<'a> {
    #[inline(always)]
    fn cell(&self, slot: Slot) -> Cell {
        self.cells.get(slot.index()).copied().unwrap_or(Cell::ABSENT)
    }

    /// The value of a slot.
    #[inline]
    pub fn get(&self, slot: Slot) -> Value<'a> {
        let cell = self.cell(slot);
        match cell.kind() {
            Kind::Absent => Value::Absent,
            Kind::U32 | Kind::U64 => Value::Unsigned(cell.bits),
            Kind::I32 | Kind::I64 => Value::Signed(cell.bits as i64),
            Kind::Decimal => Value::Decimal(Decimal::new(cell.bits as i64, cell.exponent())),
            Kind::Ascii => Value::Ascii(self.record.text.get(cell)),
            Kind::Unicode => Value::Unicode(self.record.text.get(cell)),
            Kind::Bytes => Value::Bytes(self.record.text.get(cell)),
            Kind::Group => Value::Group,
            Kind::Sequence => Value::Sequence(cell.low() as u32),
        }
    }

    /// An integer that is not negative, of any integer type.
    #[inline(always)]
    pub fn unsigned(&self, slot: Slot) -> Option<u64> {
        let cell = self.cell(slot);
        let fits = cell.is_unsigned() || (cell.is_signed() && cell.bits as i64 >= 0);
        fits.then_some(cell.bits)
    }

    /// An integer of any integer type that fits.
    #[inline(always)]
    pub fn signed(&self, slot: Slot) -> Option<i64> {
        let cell = self.cell(slot);
        let fits = cell.is_signed() || (cell.is_unsigned() && cell.bits as i64 >= 0);
        fits.then_some(cell.bits as i64)
    }

    /// A decimal; an integer field counts as one with exponent 0.
    #[inline(always)]
    pub fn decimal(&self, slot: Slot) -> Option<Decimal> {
        let cell = self.cell(slot);
        if cell.is(Kind::Decimal) {
            return Some(Decimal::new(cell.bits as i64, cell.exponent()));
        }
        self.signed(slot).map(|v| Decimal::new(v, 0))
    }

    /// A string or byte vector.
    #[inline(always)]
    pub fn text(&self, slot: Slot) -> Option<&'a [u8]> {
        let cell = self.cell(slot);
        cell.is_text().then(|| self.record.text.get(cell))
    }

    /// The entries of a sequence; none when it is absent.
    #[inline]
    pub fn entries(&self, sequence: &SequenceRef) -> Entries<'a> {
        let cell = self.cell(sequence.slot());
        let (first, count) = if cell.kind() == Kind::Sequence {
            (cell.high(), cell.low())
        } else {
            (0, 0)
        };
        Entries {
            record: self.record,
            at: first,
            left: count,
            width: sequence.width(),
        }
    }
}

/// Iterator over the entries of a sequence.
#[derive(Clone)]
pub struct Entries<'a> {
    record: &'a Record,
    at: usize,
    left: usize,
    width: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Fields<'a>;

    #[inline]
    fn next(&mut self) -> Option<Fields<'a>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let cells = self.record.cells.get(self.at..self.at + self.width)?;
        self.at += self.width;
        Some(Fields {
            cells,
            record: self.record,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Entries<'_> {}

/// Sizes of decoders, encoders and records; everything is allocated when they are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Values of one message, all entries of all sequences together (16 bytes each). A message with more is
    /// refused with [`Fault::TooManyValues`]. Default 32,768, at most 2^32 - 1.
    pub values_max: usize,
    /// Bytes of all strings of one message and of the dictionaries' previous values together; allocated
    /// twice. A message that needs more is refused with [`Fault::TextFull`]. Default 131,072, at most 2^31.
    pub text_bytes_max: usize,
    /// Whether the reportable errors R6 to R9 (overlong integers, strings and presence maps, superfluous
    /// presence bits) refuse a message. Default yes: a message that was read can then be written again byte
    /// for byte.
    pub strict: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            values_max: 32_768,
            text_bytes_max: 131_072,
            strict: true,
        }
    }
}

/// A message as values. Decoders fill it; for an encoder it is filled by [`Record::begin`] and the setters.
#[derive(Clone, Debug)]
pub struct Record {
    pub(crate) cells: Box<[Cell]>,
    pub(crate) used: usize,
    pub(crate) text: Text,
    pub(crate) fixed: usize,
    pub(crate) template: u16,
}

/// Where a new value goes: the message itself or one entry of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    base: usize,
    width: usize,
}

impl Record {
    /// An empty record for messages of a plan.
    pub fn new(plan: &Plan, limits: &Limits) -> Record {
        Record {
            cells: vec![Cell::ABSENT; limits.values_max].into_boxed_slice(),
            used: 0,
            text: Text::new(&plan.text, limits.text_bytes_max),
            fixed: plan.text.len(),
            template: 0,
        }
    }

    /// Reserves a run of cells and gives its start. The cells are not cleared.
    #[inline]
    pub(crate) fn reserve(&mut self, count: usize, width: usize) -> Result<usize, Fault> {
        // An entry without fields still counts, so that no count on the wire loops for nothing.
        let need = count.checked_mul(width.max(1)).ok_or(Fault::TooManyValues)?;
        let at = self.used;
        if need > self.cells.len() - at {
            return Err(Fault::TooManyValues);
        }
        self.used = at + need;
        Ok(at)
    }

    /// The fields of the message. `frame` is the template's.
    pub(crate) fn root(&self, frame: &Frame) -> Fields<'_> {
        Fields {
            cells: self.cells.get(..frame.width()).unwrap_or(&[]),
            record: self,
        }
    }

    /// Starts a message of a template: every field is absent. `None` when the plan has no such template or
    /// the record has no room for it.
    pub fn begin(&mut self, plan: &Plan, template_id: u32) -> Option<Position> {
        let index = plan.find(template_id)?;
        let width = plan.frame_of(index).width();
        self.used = 0;
        self.template = index;
        self.text.truncate(self.fixed);
        self.position(1, width)
    }

    /// The position of the message that was begun: its own fields come first.
    pub(crate) fn start(&self) -> Position {
        Position {
            base: 0,
            width: self.used,
        }
    }

    fn position(&mut self, count: usize, width: usize) -> Option<Position> {
        let base = self.reserve(count, width).ok()?;
        self.cells[base..self.used].fill(Cell::ABSENT);
        Some(Position { base, width })
    }

    fn put(&mut self, at: Position, slot: Slot, cell: Cell) {
        if slot.index() < at.width
            && let Some(place) = self.cells.get_mut(at.base + slot.index())
        {
            *place = cell;
        }
    }

    /// Sets a field; one that the template does not have ([`Slot::MISSING`]) is ignored. Groups are set with
    /// [`Value::Group`], sequences with [`Record::sequence`]. False when the text has no room.
    pub fn set(&mut self, at: Position, slot: Slot, value: Value<'_>) -> bool {
        let cell = match value {
            Value::Absent | Value::Sequence(_) => Cell::ABSENT,
            Value::Unsigned(v) => Cell::new(Kind::U64, v),
            Value::Signed(v) => Cell::new(Kind::I64, v as u64),
            Value::Decimal(d) => Cell::decimal(d.exponent, d.mantissa),
            Value::Group => Cell::new(Kind::Group, 0),
            Value::Ascii(t) | Value::Unicode(t) | Value::Bytes(t) => {
                let kind = match value {
                    Value::Ascii(_) => Kind::Ascii,
                    Value::Unicode(_) => Kind::Unicode,
                    _ => Kind::Bytes,
                };
                match self.text.push(t, &[]) {
                    Ok(bits) => Cell::new(kind, bits),
                    Err(_) => return false,
                }
            }
        };
        self.put(at, slot, cell);
        true
    }

    /// Gives a sequence `count` entries whose fields are absent, and the position of the first; the others
    /// follow by [`Position::next`]. `None` when the template lacks the sequence or the record has no room.
    pub fn sequence(&mut self, at: Position, sequence: &SequenceRef, count: usize) -> Option<Position> {
        if sequence.slot().index() >= at.width {
            return None;
        }
        let first = self.position(count, sequence.width())?;
        self.put(
            at,
            sequence.slot(),
            Cell::new(Kind::Sequence, (first.base as u64) << 32 | count as u64),
        );
        Some(first)
    }
}

impl Position {
    /// The next entry of the same sequence.
    #[must_use]
    pub fn next(self) -> Position {
        Position {
            base: self.base + self.width.max(1),
            width: self.width,
        }
    }
}

/// One step of a walk over a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visit<'a> {
    /// A field that is there: its name and `id`.
    Field(&'a str, u32, Value<'a>),
    /// An entry of a sequence begins: the sequence's name, the entry's number from 0, how many there are. A
    /// sequence that is there but empty gives one step with both 0, without a `Leave`.
    Enter(&'a str, u32, u32),
    /// The entry ends.
    Leave,
}

/// A message of a plan: a decoder's result, or a record filled by hand.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) record: &'a Record,
}

impl<'a> Message<'a> {
    /// The message in a record that was filled by hand.
    pub fn of(plan: &'a Plan, record: &'a Record) -> Message<'a> {
        Message { plan, record }
    }

    /// The template's identifier; 0 when it has none.
    pub fn template_id(&self) -> u32 {
        self.plan.template_at(self.record.template).map_or(0, |t| t.id())
    }

    /// The template's place in the file, from 0: an index for tables that were resolved at start.
    #[inline]
    pub fn template_index(&self) -> usize {
        usize::from(self.record.template)
    }

    /// The template's name.
    pub fn name(&self) -> &'a str {
        self.plan
            .template_at(self.record.template)
            .map_or("", |t| t.name())
    }

    /// The record, for encoders.
    pub fn record(&self) -> &'a Record {
        self.record
    }

    /// The fields of the message itself.
    #[inline]
    pub fn fields(&self) -> Fields<'a> {
        self.record.root(self.plan.frame_of(self.record.template))
    }

    /// Walks over all fields that are there, in template order.
    pub fn visit(&self, f: &mut dyn FnMut(Visit<'a>)) {
        self.walk(self.plan.frame_of(self.record.template), self.fields(), f);
    }

    fn walk(&self, frame: &'a Frame, fields: Fields<'a>, f: &mut dyn FnMut(Visit<'a>)) {
        for spec in frame.fields() {
            match fields.get(spec.slot()) {
                Value::Absent => {}
                Value::Sequence(count) => {
                    let Some(sequence) = self.plan.sequence_ref(spec) else {
                        continue;
                    };
                    if count == 0 {
                        f(Visit::Enter(spec.name(), 0, 0));
                    }
                    for (i, entry) in fields.entries(&sequence).enumerate() {
                        f(Visit::Enter(spec.name(), i as u32, count));
                        self.walk(self.plan.frame(sequence.frame()), entry, f);
                        f(Visit::Leave);
                    }
                }
                value => f(Visit::Field(spec.name(), spec.tag(), value)),
            }
        }
    }
}

/// The template's name and every field that is there.
impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        list.entry(&self.name());
        self.visit(&mut |step| {
            list.entry(&step);
        });
        list.finish()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn decimals_are_exact_or_refused() {
        assert_eq!(Decimal::new(388, 1).to_integer(), Some(3880));
        assert_eq!(Decimal::new(59955, -3).to_price().unwrap().to_string(), "59.955");
        assert_eq!(Decimal::new(-3005, -2).to_price().unwrap().to_string(), "-30.05");
        assert_eq!(Decimal::new(1, -10).to_price(), None);
        assert_eq!(Decimal::new(10, -10).to_price(), Some(Price::from_raw(1)));
        assert_eq!(Decimal::new(1, 63).to_integer(), None);
        assert_eq!(Decimal::new(0, 63).to_integer(), Some(0));
        assert_eq!(Decimal::new(i64::MIN, 1).to_integer(), None);
        assert_eq!(Decimal::new(1_000, -3).normalised(), Decimal::new(1, 0));
    }

    #[test]
    fn decimals_print_as_plain_numbers() {
        let text = |m, e| Decimal::new(m, e).to_string();
        assert_eq!(text(388, 1), "3880");
        assert_eq!(text(-3005, -2), "-30.05");
        assert_eq!(text(5, -3), "0.005");
        assert_eq!(text(0, 5), "0");
        assert_eq!(text(7, -20), "0.00000000000000000007");
        assert_eq!(text(i64::MIN, 0), "-9223372036854775808");
    }
}
