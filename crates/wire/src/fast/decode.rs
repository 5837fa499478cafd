//! Bytes to values: runs a plan over a message (FAST 1.1, sections 6 and 10).

use alloc::sync::Arc;

use super::dictionary::{Dictionary, Previous};
use super::error::{FastError, Fault};
use super::plan::{Body, Instr, NONE, Op, Plan};
use super::transfer::{PresenceMap, Reader};
use super::value::{Cell, Kind, Limits, Message, Record};

/// The dictionary entry of the template identifier.
pub(crate) const TEMPLATE_ID: u16 = 0;

/// A decoder with its dictionaries and its record. Nothing is allocated after [`Decoder::new`].
#[derive(Clone, Debug)]
pub struct Decoder {
    plan: Arc<Plan>,
    dictionary: Dictionary,
    record: Record,
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
        let dictionary = Dictionary::new(&plan, &limits);
        let record = Record::new(&plan, &limits);
        Decoder {
            plan,
            dictionary,
            record,
            strict: limits.strict,
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Forgets all previous values, the template identifier too. Feeds whose packets stand alone call it before each.
    #[inline]
    pub fn reset(&mut self) {
        self.dictionary.reset_all(&mut self.record.text);
    }

    /// Decodes the message at the start of `bytes` and says how many of them it took. On an error the dictionaries are
    /// as before the call. A template that is marked to reset the dictionaries does so.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<(Message<'_>, usize), FastError> {
        let Decoder {
            plan,
            dictionary,
            record,
            strict,
        } = self;
        dictionary.begin(&mut record.text);
        let mut run = Run {
            plan,
            input: Reader::new(bytes, *strict),
            dictionary,
            record,
        };
        match run.message() {
            Ok(()) => {
                let taken = run.input.at;
                self.dictionary.commit();
                Ok((
                    Message {
                        plan: &self.plan,
                        record: &self.record,
                    },
                    taken,
                ))
            }
            Err(Failure {
                fault,
                field,
                template,
            }) => {
                let offset = run.input.at as u32;
                self.dictionary.abort(&mut self.record.text);
                Err(FastError {
                    fault,
                    field,
                    template,
                    offset,
                })
            }
        }
    }
}

struct Run<'p, 'b> {
    plan: &'p Plan,
    input: Reader<'b>,
    dictionary: &'p mut Dictionary,
    record: &'p mut Record,
}

impl Run<'_, '_> {
    fn message(&mut self) -> Result<(), Failure> {
        let mut map = self.input.presence_map()?;
        let id = self.template_id(&mut map)?;
        let fail = |f: Failure| Failure { template: id, ..f };
        let index = self.plan.find(id).ok_or(fail(Fault::UnknownTemplate.into()))?;
        let template = self
            .plan
            .template_entry(index)
            .ok_or(fail(Fault::UnknownTemplate.into()))?;
        if template.reset {
            self.dictionary.reset();
        }
        let body = &self.plan.bodies[usize::from(template.body)];
        self.record.template = index;
        self.record.used = 0;
        let base = self.record.reserve(1, body.width).map_err(|f| fail(f.into()))?;
        self.fields(body, base, &mut map).map_err(fail)?;
        self.input.finish(&map).map_err(|f| fail(f.into()))
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

    fn fields(&mut self, body: &Body, base: usize, map: &mut PresenceMap) -> Result<(), Failure> {
        let plan = self.plan;
        for instr in &plan.instrs[body.start..body.end] {
            let cell = match instr.op {
                Op::None => self.read(instr),
                Op::Copy => self.copy(instr, map),
                Op::DecimalParts => self.decimal_parts(instr, map),
                Op::Sequence => {
                    let cell = self.sequence(instr, map)?;
                    self.store(base, instr.slot, cell);
                    continue;
                }
                Op::Group | Op::OptionalGroup => {
                    let cell = self.group(instr, base, map)?;
                    self.store(base, instr.slot, cell);
                    continue;
                }
                _ => self.operator(instr, map),
            };
            match cell {
                Ok(cell) => self.store(base, instr.slot, cell),
                Err(fault) => return Err(Failure::new(fault, instr.id)),
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn store(&mut self, base: usize, slot: u16, cell: Cell) {
        if let Some(place) = self.record.cells.get_mut(base + usize::from(slot)) {
            *place = cell;
        }
    }

    /// A segment of its own, if it needs a presence map.
    fn segment(&mut self, body: &Body, base: usize) -> Result<(), Failure> {
        let mut map = match body.bits {
            0 => PresenceMap::EMPTY,
            _ => self.input.presence_map()?,
        };
        self.fields(body, base, &mut map)?;
        Ok(self.input.finish(&map)?)
    }

    fn group(&mut self, instr: &Instr, base: usize, map: &mut PresenceMap) -> Result<Cell, Failure> {
        let plan = self.plan;
        let body = &plan.bodies[usize::from(instr.body)];
        if instr.op == Op::OptionalGroup && !self.input.bit(map) {
            self.clear_group(body, base);
            return Ok(Cell::ABSENT);
        }
        self.segment(body, base)?;
        Ok(Cell::new(Kind::Group, 0))
    }

    /// The fields of an absent group share the frame with their neighbours and must not show older values.
    fn clear_group(&mut self, body: &Body, base: usize) {
        let plan = self.plan;
        for instr in &plan.instrs[body.start..body.end] {
            self.store(base, instr.slot, Cell::ABSENT);
            if matches!(instr.op, Op::Group | Op::OptionalGroup) {
                self.clear_group(&plan.bodies[usize::from(instr.body)], base);
            }
        }
    }

    fn sequence(&mut self, instr: &Instr, map: &mut PresenceMap) -> Result<Cell, Failure> {
        let plan = self.plan;
        let body = &plan.bodies[usize::from(instr.body)];
        let length = self
            .value(&body.length, map)
            .map_err(|f| Failure::new(f, instr.id))?;
        if length.is_absent() {
            return Ok(Cell::ABSENT);
        }
        let count = length.bits as usize;
        let first = self
            .record
            .reserve(count, body.width)
            .map_err(|f| Failure::new(f, instr.id))?;
        let mut base = first;
        for _ in 0..count {
            self.segment(body, base)?;
            base += body.width;
        }
        Ok(Cell::new(Kind::Sequence, (first as u64) << 32 | count as u64))
    }

    fn decimal_parts(&mut self, instr: &Instr, map: &mut PresenceMap) -> Result<Cell, Fault> {
        let plan = self.plan;
        let start = plan.bodies[usize::from(instr.body)].start;
        let [exponent, mantissa] = [&plan.instrs[start], &plan.instrs[start + 1]];
        let exponent = self.value(exponent, map)?;
        if exponent.is_absent() {
            return Ok(Cell::ABSENT);
        }
        let exponent = small_exponent(exponent.bits as i64)?;
        let mantissa = self.value(mantissa, map)?;
        Ok(Cell::decimal(exponent, mantissa.bits as i64))
    }

    /// The value of a field that is not made of other fields.
    fn value(&mut self, instr: &Instr, map: &mut PresenceMap) -> Result<Cell, Fault> {
        match instr.op {
            Op::None => self.read(instr),
            Op::Copy => self.copy(instr, map),
            _ => self.operator(instr, map),
        }
    }

    #[inline(always)]
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
            Op::None | Op::Copy | Op::DecimalParts | Op::Group | Op::OptionalGroup | Op::Sequence => {
                self.read(instr)
            }
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
        let tail = self.read_any(instr)?;
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
        let cell = Cell::new(instr.kind, self.record.text.push_own(a, b)?);
        self.check_unicode(cell)?;
        self.dictionary.set(instr.dict, cell);
        Ok(cell)
    }

    fn check_unicode(&self, cell: Cell) -> Result<(), Fault> {
        let bad = cell.kind() == Kind::Unicode && core::str::from_utf8(self.record.text.get(cell)).is_err();
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

    /// Takes bytes away at the back, or with a negative count (in excess-1) at the front, and puts others there.
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
        let added = self.read_raw(instr.kind, false)?;
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
    #[inline(always)]
    fn read(&mut self, instr: &Instr) -> Result<Cell, Fault> {
        let cell = self.read_any(instr)?;
        if instr.kind == Kind::Unicode {
            self.check_unicode(cell)?;
        }
        Ok(cell)
    }

    #[inline(always)]
    fn read_any(&mut self, instr: &Instr) -> Result<Cell, Fault> {
        self.read_raw(instr.kind, instr.optional)
    }

    #[inline(always)]
    fn read_raw(&mut self, kind: Kind, nullable: bool) -> Result<Cell, Fault> {
        let bits = match kind {
            Kind::U32 => self.input.uint(u64::from(u32::MAX), nullable)?,
            Kind::U64 => self.input.uint(u64::MAX, nullable)?,
            Kind::I32 => self
                .input
                .int(i32::MIN.into(), i32::MAX.into(), nullable)?
                .map(|v| v as u64),
            Kind::I64 => self.input.int(i64::MIN, i64::MAX, nullable)?.map(|v| v as u64),
            Kind::Ascii => self.input.ascii(&mut self.record.text, nullable)?,
            Kind::Decimal => return self.read_decimal(nullable),
            Kind::Unicode | Kind::Bytes => match self.input.bytes(nullable)? {
                Some(bytes) => Some(self.record.text.push(bytes, &[])?),
                None => None,
            },
            Kind::Absent | Kind::Group | Kind::Sequence => None,
        };
        Ok(bits.map_or(Cell::ABSENT, |bits| Cell::new(kind, bits)))
    }

    #[inline(always)]
    fn read_decimal(&mut self, nullable: bool) -> Result<Cell, Fault> {
        let Some(exponent) = self.input.int(i32::MIN.into(), i32::MAX.into(), nullable)? else {
            return Ok(Cell::ABSENT);
        };
        let exponent = small_exponent(exponent)?;
        let mantissa = self.input.int(i64::MIN, i64::MAX, false).map_err(|f| match f {
            Fault::IntegerRange => Fault::DecimalRange,
            other => other,
        })?;
        Ok(Cell::decimal(exponent, mantissa.unwrap_or(0)))
    }
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
