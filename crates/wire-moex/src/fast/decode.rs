//! Bytes to values: runs a plan over a message (FAST 1.1, sections 6 and 10).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;

use super::dictionary::{Dictionary, Previous};
use super::error::{FastError, Fault};
use super::plan::{Body, Code, Instr, NONE, Op, Plan};
use super::transfer::{PresenceMap, Reader};
use super::value::{Cell, Kind, Limits, Message, Record, Text};

/// The dictionary entry of the template identifier.
pub(crate) const TEMPLATE_ID: u16 = 0;

/// A decoder with its dictionaries and its record. Nothing is allocated after [`Decoder::new`].
#[derive(Clone, Debug)]
pub struct Decoder {
    plan: Arc<Plan>,
    dictionary: Dictionary,
    record: Record,
    /// Room for the previous values of a sequence's first entry.
    row: Box<[Cell]>,
    strict: bool,
}

/// A fault and the field it was found in.
#[derive(Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    pub(crate) field: u32,
    pub(crate) template: u32,
}

impl Failure {
    #[cold]
    pub(crate) fn new(fault: Fault, field: u32) -> Failure {
        Failure {
            fault,
            field,
            template: 0,
        }
    }
}

impl From<Fault> for Failure {
    #[cold]
    fn from(fault: Fault) -> Failure {
        Failure::new(fault, 0)
    }
}

impl Decoder {
    /// A decoder with undefined dictionaries.
    pub fn new(plan: Arc<Plan>, limits: Limits) -> Decoder {
        Decoder {
            dictionary: Dictionary::new(&plan, &limits),
            record: Record::new(&plan, &limits),
            row: vec![Cell::ABSENT; plan.width_max()].into_boxed_slice(),
            strict: limits.strict,
            plan,
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Forgets all previous values, the template identifier too.
    #[inline]
    pub fn reset(&mut self) {
        self.dictionary.reset_all(&mut self.record.text);
    }

    /// Decodes the message at the start of `bytes` and says how many of them it took. On an error the
    /// dictionaries are as before the call. A template that is marked to reset the dictionaries does so.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<(Message<'_>, usize), FastError> {
        self.run(bytes, false)
    }

    /// The same for a message that stands alone, as in feeds that reset before each: all dictionaries are
    /// undefined before and after it, which saves most of their upkeep.
    #[inline]
    pub fn decode_alone(&mut self, bytes: &[u8]) -> Result<(Message<'_>, usize), FastError> {
        self.reset();
        self.run(bytes, true)
    }

    fn run(&mut self, bytes: &[u8], stands_alone: bool) -> Result<(Message<'_>, usize), FastError> {
        let Decoder {
            plan,
            dictionary,
            record,
            row,
            strict,
        } = self;
        let Record { cells, text, .. } = record;
        dictionary.begin(text);
        let input = Reader::new(bytes, *strict);
        let source = Source {
            plan,
            input,
            dictionary,
            text,
            stands_alone,
        };
        let mut run = Run {
            source,
            cells,
            row,
            used: 0,
            template: 0,
        };
        let result = run.message();
        let (taken, used, index) = (run.source.input.at, run.used, run.template);
        if let Err(Failure {
            fault,
            field,
            template,
        }) = result
        {
            self.dictionary.abort(&mut self.record.text);
            return Err(FastError {
                fault,
                field,
                template,
                offset: taken as u32,
            });
        }
        (self.record.used, self.record.template) = (used, index);
        self.dictionary.commit();
        if stands_alone {
            self.dictionary.reset();
        }
        Ok((
            Message {
                plan: &self.plan,
                record: &self.record,
            },
            taken,
        ))
    }
}

/// Where values come from.
struct Source<'p, 'b> {
    plan: &'p Plan,
    input: Reader<'b>,
    dictionary: &'p mut Dictionary,
    text: &'p mut Text,
    /// Whether the dictionaries were undefined before the message and will be after it.
    stands_alone: bool,
}

/// A message being decoded, and where its values go.
struct Run<'p, 'b> {
    source: Source<'p, 'b>,
    cells: &'p mut [Cell],
    /// Room for previous values of one entry.
    row: &'p mut [Cell],
    used: usize,
    template: u16,
}

impl Run<'_, '_> {
    fn message(&mut self) -> Result<(), Failure> {
        let plan = self.source.plan;
        let mut map = self.source.input.presence_map()?;
        let id = self.source.template_id(&mut map)?;
        let fail = |f: Failure| Failure { template: id, ..f };
        let found = plan
            .find(id)
            .and_then(|index| Some((index, plan.template_entry(index)?)));
        let (index, template) = found.ok_or(fail(Fault::UnknownTemplate.into()))?;
        if template.reset {
            self.source.dictionary.reset();
        }
        let body = &plan.bodies[usize::from(template.body)];
        self.template = index;
        let base = self.reserve(1, body.width).map_err(|f| fail(f.into()))?;
        self.fields(body, base, &mut map).map_err(fail)?;
        self.source.input.finish(&map).map_err(|f| fail(f.into()))
    }

    /// As [`Record::reserve`].
    fn reserve(&mut self, count: usize, width: usize) -> Result<usize, Fault> {
        let need = count.checked_mul(width.max(1)).ok_or(Fault::TooManyValues)?;
        let at = self.used;
        if need > self.cells.len() - at {
            return Err(Fault::TooManyValues);
        }
        self.used = at + need;
        Ok(at)
    }

    fn fields(&mut self, body: &Body, base: usize, map: &mut PresenceMap) -> Result<(), Failure> {
        let plan = self.source.plan;
        if self.source.stands_alone && body.has_row && body.is_alone {
            return self.fields_alone(body, base, map);
        }
        for instr in &plan.instrs[body.start..body.end] {
            let cell = match instr.op {
                Op::Sequence => self.sequence(instr, map)?,
                Op::Group | Op::OptionalGroup => self.group(instr, base, map)?,
                _ => self
                    .source
                    .value(instr, map)
                    .map_err(|f| Failure::new(f, instr.id))?,
            };
            self.store(base, instr.slot, cell);
        }
        Ok(())
    }

    /// The same when no previous value is to be had from elsewhere or to be left behind.
    fn fields_alone(&mut self, body: &Body, base: usize, map: &mut PresenceMap) -> Result<(), Failure> {
        let plan = self.source.plan;
        let before = &plan.rows[body.row..body.row + body.width];
        let mut field = 0;
        loop {
            let cells = &mut self.cells[base..base + body.width];
            field = self.source.stretch(body, field, cells, before, map)?;
            if field == body.width {
                return Ok(());
            }
            let instr = &plan.instrs[body.start + field];
            let cell = match instr.op {
                Op::Sequence => self.sequence(instr, map)?,
                _ => self
                    .source
                    .value(instr, map)
                    .map_err(|f| Failure::new(f, instr.id))?,
            };
            self.store(base, instr.slot, cell);
            field += 1;
        }
    }

    #[inline(always)]
    fn store(&mut self, base: usize, slot: u16, cell: Cell) {
        if let Some(place) = self.cells.get_mut(base + usize::from(slot)) {
            *place = cell;
        }
    }

    /// A segment of its own, if it needs a presence map.
    fn segment(&mut self, body: &Body, base: usize) -> Result<(), Failure> {
        let mut map = match body.bits {
            0 => PresenceMap::EMPTY,
            _ => self.source.input.presence_map()?,
        };
        self.fields(body, base, &mut map)?;
        Ok(self.source.input.finish(&map)?)
    }

    fn group(&mut self, instr: &Instr, base: usize, map: &mut PresenceMap) -> Result<Cell, Failure> {
        let plan = self.source.plan;
        let body = &plan.bodies[usize::from(instr.body)];
        if instr.op == Op::OptionalGroup && !self.source.input.bit(map) {
            self.clear_group(body, base);
            return Ok(Cell::ABSENT);
        }
        self.segment(body, base)?;
        Ok(Cell::new(Kind::Group, 0))
    }

    /// The fields of an absent group share the frame with their neighbours and must not show older values.
    fn clear_group(&mut self, body: &Body, base: usize) {
        let plan = self.source.plan;
        for instr in &plan.instrs[body.start..body.end] {
            self.store(base, instr.slot, Cell::ABSENT);
            if matches!(instr.op, Op::Group | Op::OptionalGroup) {
                self.clear_group(&plan.bodies[usize::from(instr.body)], base);
            }
        }
    }

    fn sequence(&mut self, instr: &Instr, map: &mut PresenceMap) -> Result<Cell, Failure> {
        let plan = self.source.plan;
        let body = &plan.bodies[usize::from(instr.body)];
        let length = self
            .source
            .value(&body.length, map)
            .map_err(|f| Failure::new(f, instr.id))?;
        if length.is_absent() {
            return Ok(Cell::ABSENT);
        }
        let count = length.bits as usize;
        let first = self
            .reserve(count, body.width)
            .map_err(|f| Failure::new(f, instr.id))?;
        if body.in_rows {
            let cells = &mut self.cells[first..first + count * body.width];
            self.source.entries(body, count, cells, self.row)?;
        } else {
            for i in 0..count {
                self.segment(body, first + i * body.width)?;
            }
        }
        Ok(Cell::new(Kind::Sequence, (first as u64) << 32 | count as u64))
    }
}

/// Where the bits of a segment come from.
trait Bits {
    fn take(&mut self, input: &Reader<'_>) -> bool;
}

impl Bits for PresenceMap {
    fn take(&mut self, input: &Reader<'_>) -> bool {
        input.bit(self)
    }
}

/// All bits that are left, the next topmost; zeros follow.
impl Bits for u64 {
    #[inline(always)]
    fn take(&mut self, _: &Reader<'_>) -> bool {
        let bit = *self >> 63 != 0;
        *self <<= 1;
        bit
    }
}

impl Source<'_, '_> {
    /// The entries of a sequence without groups or sequences inside, which is where feeds spend their time:
    /// one loop whose position and presence map live in registers. A copied field that is not sent has the
    /// value of the entry before, and that of the first comes from a row of previous values: the dictionary
    /// is read and written once for all entries, and not at all when the message stands alone.
    fn entries(
        &mut self,
        body: &Body,
        count: usize,
        cells: &mut [Cell],
        row: &mut [Cell],
    ) -> Result<(), Failure> {
        let plan = self.plan;
        let (instrs, width) = (&plan.instrs[body.start..body.end], body.width);
        if count == 0 {
            return Ok(());
        }
        let apart = self.stands_alone && body.is_alone;
        let row = if apart {
            &plan.rows[body.row..body.row + width]
        } else {
            self.previous(instrs, row);
            &row[..width]
        };
        for at in 0..count {
            let (done, rest) = cells.split_at_mut(at * width);
            let before = match at {
                0 => row,
                _ => &done[done.len() - width..],
            };
            self.entry(body, &mut rest[..width], before)?;
        }
        if !apart {
            let last = &cells[cells.len() - width..];
            for (instr, &cell) in instrs.iter().zip(last).filter(|(i, _)| i.op == Op::Copy) {
                self.dictionary.set(instr.dict, cell);
            }
        }
        Ok(())
    }

    /// Fills a row with what fields have that are not sent in a first entry.
    fn previous(&mut self, instrs: &[Instr], row: &mut [Cell]) {
        for (instr, place) in instrs.iter().zip(row).filter(|(i, _)| i.op == Op::Copy) {
            *place = match self.dictionary.get(instr.dict, instr.kind) {
                Previous::Assigned(cell) => cell,
                Previous::Other => Cell::fault(Fault::PreviousType),
                Previous::Undefined if instr.initial != NONE => self.initial(instr),
                _ if instr.optional => Cell::ABSENT,
                Previous::Empty => Cell::fault(Fault::EmptyPrevious),
                _ => Cell::fault(Fault::NoPrevious),
            };
        }
    }

    /// One entry beside the one before.
    #[inline(always)]
    fn entry(&mut self, body: &Body, entry: &mut [Cell], before: &[Cell]) -> Result<(), Failure> {
        let mut map = PresenceMap::EMPTY;
        if body.bits > 0 {
            map = self.input.presence_map()?;
        }
        let mut field = 0;
        loop {
            field = self.stretch(body, field, entry, before, &mut map)?;
            if field == entry.len() {
                break;
            }
            let instr = &self.plan.instrs[body.start + field];
            entry[field] = self
                .value(instr, &mut map)
                .map_err(|f| Failure::new(f, instr.id))?;
            field += 1;
        }
        Ok(self.input.finish(&map)?)
    }

    /// Reads the fields from `field` on, up to the next that is not for the hot loop; gives its number.
    #[inline(always)]
    fn stretch(
        &mut self,
        body: &Body,
        field: usize,
        entry: &mut [Cell],
        before: &[Cell],
        map: &mut PresenceMap,
    ) -> Result<usize, Failure> {
        match map.as_short() {
            Some(mut bits) => {
                let field = self.run(body, field, (entry, before), &mut bits);
                *map = PresenceMap::short(bits);
                field
            }
            None => self.long_stretch(body, field, (entry, before), map),
        }
    }

    /// The same with a presence map of more than 63 bits.
    #[cold]
    #[inline(never)]
    fn long_stretch(
        &mut self,
        body: &Body,
        field: usize,
        cells: (&mut [Cell], &[Cell]),
        map: &mut PresenceMap,
    ) -> Result<usize, Failure> {
        self.run(body, field, cells, map)
    }

    /// Fields take their slots in order, so that codes and cells run side by side.
    #[inline(always)]
    fn run<B: Bits>(
        &mut self,
        body: &Body,
        mut field: usize,
        (entry, before): (&mut [Cell], &[Cell]),
        bits: &mut B,
    ) -> Result<usize, Failure> {
        let plan = self.plan;
        let row = body.row..body.row + body.width;
        let (codes, row) = (&plan.codes[row.clone()], &plan.rows[row]);
        let (entry, before) = (&mut entry[..codes.len()], &before[..codes.len()]);
        let row = &row[..codes.len()];
        // In a register here.
        let mut input = self.input;
        while field < codes.len() {
            let (code, place) = (codes[field], &mut entry[field]);
            let result = if code.takes_bit() && !bits.take(&input) {
                *place = if code.is_from_plan() {
                    row[field]
                } else {
                    before[field]
                };
                place.as_fault().map_or(Ok(()), Err)
            } else {
                match code.encoding() {
                    Code::APART => break,
                    Code::KEPT => {
                        *place = row[field];
                        Ok(())
                    }
                    encoding => read(&mut input, self.text, encoding, place),
                }
            };
            if let Err(fault) = result {
                self.input.at = input.at;
                return Err(Failure::new(fault, plan.instrs[body.start + field].id));
            }
            field += 1;
        }
        self.input.at = input.at;
        Ok(field)
    }

    /// The identifier is a mandatory uInt32 with the copy operator (section 6.5, "Template Identifier").
    fn template_id(&mut self, map: &mut PresenceMap) -> Result<u32, Fault> {
        if !self.input.bit(map) {
            return match self.dictionary.get(TEMPLATE_ID, Kind::U32) {
                Previous::Assigned(cell) => Ok(cell.bits as u32),
                _ => Err(Fault::NoPrevious),
            };
        }
        let id = self.input.uint(u64::from(u32::MAX), false)?.unwrap_or(0);
        self.dictionary.set(TEMPLATE_ID, Cell::new(Kind::U32, id));
        Ok(id as u32)
    }

    fn decimal_parts(&mut self, instr: &Instr, map: &mut PresenceMap) -> Result<Cell, Fault> {
        let plan = self.plan;
        let start = plan.bodies[usize::from(instr.body)].start;
        let [exponent, mantissa] = [&plan.instrs[start], &plan.instrs[start + 1]];
        let exponent = self.operator(exponent, map)?;
        if exponent.is_absent() {
            return Ok(Cell::ABSENT);
        }
        let exponent = small_exponent(exponent.bits as i64)?;
        let mantissa = self.operator(mantissa, map)?;
        Ok(Cell::decimal(exponent, mantissa.bits as i64))
    }

    /// The value of a field that is not made of other fields.
    fn value(&mut self, instr: &Instr, map: &mut PresenceMap) -> Result<Cell, Fault> {
        match instr.op {
            Op::None => self.read(instr),
            Op::Constant => Ok(self.initial(instr)),
            Op::DecimalParts => self.decimal_parts(instr, map),
            _ => self.operator(instr, map),
        }
    }

    fn copy(&mut self, instr: &Instr, map: &mut PresenceMap) -> Result<Cell, Fault> {
        if self.input.bit(map) {
            let cell = self.read(instr)?;
            self.dictionary.set(instr.dict, cell);
            return Ok(cell);
        }
        match self.dictionary.get(instr.dict, instr.kind) {
            Previous::Assigned(cell) => Ok(cell),
            other => self.without_previous(instr, other),
        }
    }

    /// A value that is not in the stream when the dictionary has none (sections 6.3.4 to 6.3.7).
    #[inline(never)]
    fn without_previous(&mut self, instr: &Instr, previous: Previous) -> Result<Cell, Fault> {
        let cell = match previous {
            Previous::Other => return Err(Fault::PreviousType),
            Previous::Undefined if instr.initial != NONE => self.initial(instr),
            _ if instr.optional => Cell::ABSENT,
            Previous::Empty => return Err(Fault::EmptyPrevious),
            _ => return Err(Fault::NoPrevious),
        };
        self.dictionary.set(instr.dict, cell);
        Ok(cell)
    }

    fn operator(&mut self, instr: &Instr, map: &mut PresenceMap) -> Result<Cell, Fault> {
        match instr.op {
            Op::Constant => Ok(self.initial(instr)),
            Op::OptionalConstant if self.input.bit(map) => Ok(self.initial(instr)),
            Op::OptionalConstant => Ok(Cell::ABSENT),
            Op::Default if self.input.bit(map) => self.read(instr),
            Op::Default => Ok(self.initial(instr)),
            Op::Increment => self.increment(instr, map),
            Op::Tail => self.tail(instr, map),
            Op::Delta => self.delta(instr),
            Op::Copy => self.copy(instr, map),
            Op::None | Op::DecimalParts | Op::Group | Op::OptionalGroup | Op::Sequence => self.read(instr),
        }
    }

    /// The constant or initial value, absent without one.
    #[inline(always)]
    fn initial(&self, instr: &Instr) -> Cell {
        self.plan
            .initials
            .get(usize::from(instr.initial))
            .copied()
            .unwrap_or(Cell::ABSENT)
    }

    fn increment(&mut self, instr: &Instr, map: &mut PresenceMap) -> Result<Cell, Fault> {
        if self.input.bit(map) {
            let cell = self.read(instr)?;
            self.dictionary.set(instr.dict, cell);
            return Ok(cell);
        }
        match self.dictionary.get(instr.dict, instr.kind) {
            Previous::Assigned(cell) => {
                let cell = incremented(cell);
                self.dictionary.set(instr.dict, cell);
                Ok(cell)
            }
            other => self.without_previous(instr, other),
        }
    }

    /// The base value of a tail or delta. An empty previous value has no meaning for a delta.
    fn base(&mut self, instr: &Instr) -> Result<Cell, Fault> {
        match self.dictionary.get(instr.dict, instr.kind) {
            Previous::Assigned(cell) => Ok(cell),
            Previous::Other => Err(Fault::PreviousType),
            Previous::Empty if instr.op == Op::Delta => Err(Fault::EmptyPrevious),
            _ if instr.initial != NONE => Ok(self.initial(instr)),
            _ => Ok(Cell::new(instr.kind, 0)),
        }
    }

    fn tail(&mut self, instr: &Instr, map: &mut PresenceMap) -> Result<Cell, Fault> {
        if !self.input.bit(map) {
            return match self.dictionary.get(instr.dict, instr.kind) {
                Previous::Assigned(cell) => Ok(cell),
                other => self.without_previous(instr, other),
            };
        }
        let base = self.base(instr)?;
        let tail = self.part(instr.kind, instr.optional)?;
        if tail.is_absent() {
            self.dictionary.set(instr.dict, tail);
            return Ok(tail);
        }
        let kept = base.low().saturating_sub(tail.low());
        self.combine(
            instr,
            (base.high(), base.high() + kept),
            (tail.high(), tail.high() + tail.low()),
        )
    }

    /// Joins two ranges of the text arena to the value of a tail or delta.
    fn combine(&mut self, instr: &Instr, a: (usize, usize), b: (usize, usize)) -> Result<Cell, Fault> {
        let cell = Cell::new(instr.kind, self.text.push_own(a, b)?);
        self.check_unicode(cell)?;
        self.dictionary.set(instr.dict, cell);
        Ok(cell)
    }

    fn check_unicode(&self, cell: Cell) -> Result<(), Fault> {
        let bad = cell.kind() == Kind::Unicode && core::str::from_utf8(self.text.get(cell)).is_err();
        if bad { Err(Fault::Utf8) } else { Ok(()) }
    }

    fn delta(&mut self, instr: &Instr) -> Result<Cell, Fault> {
        match instr.kind {
            Kind::Decimal => self.delta_decimal(instr),
            kind if kind.is_text() => self.delta_text(instr),
            _ => self.delta_integer(instr),
        }
    }

    fn delta_integer(&mut self, instr: &Instr) -> Result<Cell, Fault> {
        let Some(delta) = self.input.wide(-(1 << 64), 1 << 64, instr.optional)? else {
            return Ok(Cell::ABSENT);
        };
        let base = self.base(instr)?;
        let cell = integer(instr.kind, as_wide(base) + delta).ok_or(Fault::DeltaRange)?;
        self.dictionary.set(instr.dict, cell);
        Ok(cell)
    }

    fn delta_decimal(&mut self, instr: &Instr) -> Result<Cell, Fault> {
        let Some(exponent) = self.input.int(i32::MIN.into(), i32::MAX.into(), instr.optional)? else {
            return Ok(Cell::ABSENT);
        };
        let mantissa = self.input.wide(-(1 << 64), 1 << 64, false)?.unwrap_or(0);
        let base = self.base(instr)?;
        let exponent = small_exponent(i64::from(base.exponent()) + exponent)?;
        let mantissa = i128::from(base.bits as i64) + mantissa;
        let cell = Cell::decimal(
            exponent,
            i64::try_from(mantissa).map_err(|_| Fault::DecimalRange)?,
        );
        self.dictionary.set(instr.dict, cell);
        Ok(cell)
    }

    /// Takes bytes away at the back, or with a negative count (in excess-1) at the front, and puts others
    /// there.
    fn delta_text(&mut self, instr: &Instr) -> Result<Cell, Fault> {
        let Some(count) = self
            .input
            .int(i32::MIN.into(), i32::MAX.into(), instr.optional)
            .map_err(|f| match f {
                Fault::IntegerRange => Fault::Subtraction,
                other => other,
            })?
        else {
            return Ok(Cell::ABSENT);
        };
        let base = self.base(instr)?;
        let added = self.part(instr.kind, false)?;
        let added = (added.high(), added.high() + added.low());
        let (start, end) = (base.high(), base.high() + base.low());
        let taken = if count < 0 { !count } else { count } as usize;
        if taken > base.low() {
            return Err(Fault::Subtraction);
        }
        if count < 0 {
            self.combine(instr, added, (start + taken, end))
        } else {
            self.combine(instr, (start, end - taken), added)
        }
    }

    /// A field's own encoding in the stream.
    fn read(&mut self, instr: &Instr) -> Result<Cell, Fault> {
        let mut cell = Cell::ABSENT;
        let encoding = instr.kind as u8 + if instr.optional { 16 } else { 0 };
        read(&mut self.input, self.text, encoding, &mut cell)?;
        Ok(cell)
    }

    /// The part of a text that a tail or delta sends.
    fn part(&mut self, kind: Kind, nullable: bool) -> Result<Cell, Fault> {
        let bits = match kind {
            Kind::Ascii => self.input.ascii(self.text, nullable)?,
            _ => {
                return self
                    .input
                    .taking(read_bytes(self.input, self.text, kind, nullable, false));
            }
        };
        Ok(or_absent(kind, bits))
    }
}

/// Reads a value from the stream, absent for null, into its place. `encoding`: [`Code::encoding`]. An arm per
/// type and presence, so that bounds and presence are constants in it.
#[inline(always)]
fn read(input: &mut Reader<'_>, text: &mut Text, encoding: u8, place: &mut Cell) -> Result<(), Fault> {
    const U32: (Kind, u64) = (Kind::U32, u32::MAX as u64);
    const U64: (Kind, u64) = (Kind::U64, u64::MAX);
    const I32: (Kind, i64, i64) = (Kind::I32, i32::MIN as i64, i32::MAX as i64);
    const I64: (Kind, i64, i64) = (Kind::I64, i64::MIN, i64::MAX);
    match encoding {
        1 => unsigned(input, U32, false, place),
        2 => unsigned(input, U64, false, place),
        3 => signed(input, I32, false, place),
        4 => signed(input, I64, false, place),
        5 => decimal(input, false, place),
        6 => ascii(input, text, false, place),
        7 => bytes(input, text, Kind::Unicode, false, place),
        8 => bytes(input, text, Kind::Bytes, false, place),
        17 => unsigned(input, U32, true, place),
        18 => unsigned(input, U64, true, place),
        19 => signed(input, I32, true, place),
        20 => signed(input, I64, true, place),
        21 => decimal(input, true, place),
        22 => ascii(input, text, true, place),
        23 => bytes(input, text, Kind::Unicode, true, place),
        24 => bytes(input, text, Kind::Bytes, true, place),
        _ => Err(Fault::FieldType),
    }
}

#[inline(always)]
fn unsigned(
    input: &mut Reader<'_>,
    (kind, max): (Kind, u64),
    nullable: bool,
    place: &mut Cell,
) -> Result<(), Fault> {
    *place = or_absent(kind, input.uint(max, nullable)?);
    Ok(())
}

#[inline(always)]
fn signed(
    input: &mut Reader<'_>,
    (kind, min, max): (Kind, i64, i64),
    nullable: bool,
    place: &mut Cell,
) -> Result<(), Fault> {
    *place = or_absent(kind, input.int(min, max, nullable)?.map(|v| v as u64));
    Ok(())
}

#[inline(always)]
fn ascii(input: &mut Reader<'_>, text: &mut Text, nullable: bool, place: &mut Cell) -> Result<(), Fault> {
    *place = or_absent(Kind::Ascii, input.ascii(text, nullable)?);
    Ok(())
}

#[inline(always)]
fn bytes(
    input: &mut Reader<'_>,
    text: &mut Text,
    kind: Kind,
    nullable: bool,
    place: &mut Cell,
) -> Result<(), Fault> {
    *place = input.taking(read_bytes(*input, text, kind, nullable, kind == Kind::Unicode))?;
    Ok(())
}

#[inline(always)]
fn decimal(input: &mut Reader<'_>, nullable: bool, place: &mut Cell) -> Result<(), Fault> {
    *place = read_decimal(input, nullable)?;
    Ok(())
}

#[inline(always)]
fn or_absent(kind: Kind, bits: Option<u64>) -> Cell {
    bits.map_or(Cell::ABSENT, |bits| Cell::new(kind, bits))
}

/// A byte vector or Unicode string; `whole`: not part of one, which need not be valid for itself.
#[inline(never)]
fn read_bytes(
    mut input: Reader<'_>,
    text: &mut Text,
    kind: Kind,
    nullable: bool,
    whole: bool,
) -> Result<(Cell, usize), Fault> {
    let Some(bytes) = input.bytes(nullable)? else {
        return Ok((Cell::ABSENT, input.at));
    };
    if whole && core::str::from_utf8(bytes).is_err() {
        return Err(Fault::Utf8);
    }
    Ok((Cell::new(kind, text.push(bytes, &[])?), input.at))
}

#[inline(always)]
fn read_decimal(input: &mut Reader<'_>, nullable: bool) -> Result<Cell, Fault> {
    Ok(match input.decimal(nullable)? {
        Some((mantissa, exponent)) => Cell::decimal(exponent, mantissa),
        None => Cell::ABSENT,
    })
}

#[inline(always)]
fn small_exponent(exponent: i64) -> Result<i8, Fault> {
    if (-63..=63).contains(&exponent) {
        Ok(exponent as i8)
    } else {
        Err(Fault::DecimalRange)
    }
}

/// The next integer; after the largest of its type comes the smallest.
pub(crate) fn incremented(cell: Cell) -> Cell {
    let bits = match cell.kind() {
        Kind::U32 => u64::from((cell.bits as u32).wrapping_add(1)),
        Kind::I32 => i64::from((cell.bits as i32).wrapping_add(1)) as u64,
        _ => cell.bits.wrapping_add(1),
    };
    Cell { bits, ..cell }
}

/// An integer cell as a number.
pub(crate) fn as_wide(cell: Cell) -> i128 {
    match cell.kind() {
        Kind::I32 | Kind::I64 => i128::from(cell.bits as i64),
        _ => i128::from(cell.bits),
    }
}

/// A number as a cell of an integer type, `None` when it does not fit.
pub(crate) fn integer(kind: Kind, value: i128) -> Option<Cell> {
    let bits = match kind {
        Kind::U32 => u64::from(u32::try_from(value).ok()?),
        Kind::U64 => u64::try_from(value).ok()?,
        Kind::I32 => i64::from(i32::try_from(value).ok()?) as u64,
        _ => i64::try_from(value).ok()? as u64,
    };
    Some(Cell::new(kind, bits))
}
