//! Values to bytes: the exact inverse of the decoder, in the canonical form of the exchanges' own encoders: a
//! presence bit is set only when the value could not be had without it, integers and presence maps are as
//! short as possible.

use alloc::sync::Arc;

use super::decode::{Failure, TEMPLATE_ID, as_wide, incremented, integer};
use super::dictionary::{Dictionary, Previous};
use super::error::{FastError, Fault};
use super::plan::{Body, Instr, NONE, Op, Plan};
use super::transfer::{MapOut, Writer};
use super::value::{Cell, Kind, Limits, Record, Text};

/// An encoder with its dictionaries. Nothing is allocated after [`Encoder::new`].
#[derive(Clone, Debug)]
pub struct Encoder {
    plan: Arc<Plan>,
    dictionary: Dictionary,
    text: Text,
}

impl Encoder {
    /// An encoder with undefined dictionaries.
    pub fn new(plan: Arc<Plan>, limits: Limits) -> Encoder {
        let dictionary = Dictionary::new(&plan, &limits);
        let text = Text::new(&plan.text, limits.text_bytes_max);
        Encoder {
            plan,
            dictionary,
            text,
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Forgets all previous values, the template identifier too.
    pub fn reset(&mut self) {
        self.dictionary.reset_all(&mut self.text);
    }

    /// Encodes the message in a record of the same plan and says how many bytes it took. On an error the
    /// dictionaries are as before the call. Integers convert to the field's type where they fit; constants
    /// and mandatory fields with a default need not be set.
    pub fn encode(&mut self, record: &Record, out: &mut [u8]) -> Result<usize, FastError> {
        let Encoder {
            plan,
            dictionary,
            text,
        } = self;
        dictionary.begin(text);
        let mut run = Run {
            plan,
            record,
            out: Writer::new(out),
            dictionary,
            text,
        };
        match run.message() {
            Ok(()) => {
                let len = run.out.at;
                self.dictionary.commit();
                Ok(len)
            }
            Err(Failure {
                fault,
                field,
                template,
            }) => {
                let offset = run.out.at as u32;
                self.dictionary.abort(&mut self.text);
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

struct Run<'p, 'o> {
    plan: &'p Plan,
    record: &'p Record,
    out: Writer<'o>,
    dictionary: &'p mut Dictionary,
    text: &'p mut Text,
}

impl Run<'_, '_> {
    fn message(&mut self) -> Result<(), Failure> {
        let plan = self.plan;
        let template = plan
            .template_entry(self.record.template)
            .ok_or(Fault::UnknownTemplate)?;
        let id = plan.template_at(self.record.template).map_or(0, |t| t.id());
        let fail = |f: Failure| Failure { template: id, ..f };
        let body = &plan.bodies[usize::from(template.body)];
        let mut map = self.out.open_map(body.bits).map_err(|f| fail(f.into()))?;
        let identifier = Cell::new(Kind::U32, u64::from(id));
        let known = matches!(self.dictionary.get(TEMPLATE_ID, Kind::U32), Previous::Assigned(c) if c.bits == identifier.bits);
        self.out.bit(&mut map, !known);
        if !known {
            self.out.uint(u64::from(id), false).map_err(|f| fail(f.into()))?;
            self.dictionary.set(TEMPLATE_ID, identifier);
        }
        if template.reset {
            self.dictionary.reset();
        }
        self.fields(body, 0, &mut map).map_err(fail)?;
        self.out.close_map(map);
        Ok(())
    }

    fn fields(&mut self, body: &Body, base: usize, map: &mut MapOut) -> Result<(), Failure> {
        let plan = self.plan;
        for instr in &plan.instrs[body.start..body.end] {
            let cell = self
                .record
                .cells
                .get(base + usize::from(instr.slot))
                .copied()
                .unwrap_or(Cell::ABSENT);
            match instr.op {
                Op::Sequence => self.sequence(instr, cell, map)?,
                Op::Group | Op::OptionalGroup => self.group(instr, cell, base, map)?,
                Op::DecimalParts => self
                    .decimal_parts(instr, cell, map)
                    .map_err(|f| Failure::new(f, instr.id))?,
                _ => self
                    .value(instr, cell, map)
                    .map_err(|f| Failure::new(f, instr.id))?,
            }
        }
        Ok(())
    }

    fn segment(&mut self, body: &Body, base: usize) -> Result<(), Failure> {
        let mut map = self.out.open_segment(body.bits)?;
        self.fields(body, base, &mut map)?;
        if body.bits > 0 {
            self.out.close_map(map);
        }
        Ok(())
    }

    fn group(&mut self, instr: &Instr, cell: Cell, base: usize, map: &mut MapOut) -> Result<(), Failure> {
        let plan = self.plan;
        if instr.op == Op::OptionalGroup {
            self.out.bit(map, !cell.is_absent());
            if cell.is_absent() {
                return Ok(());
            }
        }
        self.segment(&plan.bodies[usize::from(instr.body)], base)
    }

    fn sequence(&mut self, instr: &Instr, cell: Cell, map: &mut MapOut) -> Result<(), Failure> {
        let plan = self.plan;
        let body = &plan.bodies[usize::from(instr.body)];
        let (length, count) = match cell.kind() {
            Kind::Sequence => (Cell::new(Kind::U32, cell.low() as u64), cell.low()),
            _ if instr.optional => (Cell::ABSENT, 0),
            _ => (Cell::new(Kind::U32, 0), 0),
        };
        self.value(&body.length, length, map)
            .map_err(|f| Failure::new(f, instr.id))?;
        for i in 0..count {
            self.segment(body, cell.high() + i * body.width)?;
        }
        Ok(())
    }

    fn decimal_parts(&mut self, instr: &Instr, cell: Cell, map: &mut MapOut) -> Result<(), Fault> {
        let plan = self.plan;
        let cell = self.converted(instr, cell)?;
        let start = plan.bodies[usize::from(instr.body)].start;
        let [exponent, mantissa] = [&plan.instrs[start], &plan.instrs[start + 1]];
        let parts = |fault| match fault {
            // A constant exponent or a type's bounds forbid this decimal.
            Fault::FieldType | Fault::IntegerRange | Fault::MissingMandatory => Fault::DecimalParts,
            other => other,
        };
        if cell.is_absent() {
            return self.value(exponent, Cell::ABSENT, map);
        }
        let power = Cell::new(Kind::I32, i64::from(cell.exponent()) as u64);
        self.value(exponent, power, map).map_err(parts)?;
        self.value(mantissa, Cell::new(Kind::I64, cell.bits), map)
            .map_err(parts)
    }

    /// A value of the record in the field's own type.
    fn converted(&self, instr: &Instr, cell: Cell) -> Result<Cell, Fault> {
        let (from, to) = (cell.kind(), instr.kind);
        if from == to {
            if to == Kind::Ascii && !self.record.text.get(cell).is_ascii() {
                return Err(Fault::NotAscii);
            }
            if to == Kind::Unicode && core::str::from_utf8(self.record.text.get(cell)).is_err() {
                return Err(Fault::Utf8);
            }
            if to == Kind::Decimal && !(-63..=63).contains(&cell.exponent()) {
                return Err(Fault::DecimalRange);
            }
            return Ok(cell);
        }
        match from {
            Kind::Absent if instr.optional => Ok(Cell::ABSENT),
            Kind::Absent => Err(Fault::MissingMandatory),
            _ if from.is_integer() && to.is_integer() => {
                integer(to, as_wide(cell)).ok_or(Fault::IntegerRange)
            }
            _ if from.is_integer() && to == Kind::Decimal => {
                let mantissa = i64::try_from(as_wide(cell)).map_err(|_| Fault::DecimalRange)?;
                Ok(Cell::decimal(0, mantissa))
            }
            _ if from.is_text() && to.is_text() => self.converted(
                instr,
                Cell {
                    meta: to as u64,
                    ..cell
                },
            ),
            _ => Err(Fault::FieldType),
        }
    }

    fn initial(&self, instr: &Instr) -> Cell {
        self.plan
            .initials
            .get(usize::from(instr.initial))
            .copied()
            .unwrap_or(Cell::ABSENT)
    }

    /// Whether a value of the record equals one of the plan or dictionary.
    fn same(&self, value: Cell, kept: Cell) -> bool {
        if value.kind() != kept.kind() {
            return false;
        }
        match value.kind() {
            Kind::Absent => true,
            Kind::Decimal => value.bits == kept.bits && value.exponent() == kept.exponent(),
            kind if kind.is_text() => self.record.text.get(value) == self.text.get(kept),
            _ => value.bits == kept.bits,
        }
    }

    /// Makes a value of the record the previous one.
    fn keep(&mut self, instr: &Instr, value: Cell) -> Result<(), Fault> {
        let kept = match value.kind().is_text() {
            true => Cell::new(instr.kind, self.text.push(self.record.text.get(value), &[])?),
            false => value,
        };
        self.dictionary.set(instr.dict, kept);
        Ok(())
    }

    fn value(&mut self, instr: &Instr, cell: Cell, map: &mut MapOut) -> Result<(), Fault> {
        if instr.op == Op::Constant {
            // An unset constant is as good as a set one; another value cannot be sent.
            let fits = cell.is_absent() || self.same(self.converted(instr, cell)?, self.initial(instr));
            return if fits { Ok(()) } else { Err(Fault::FieldType) };
        }
        if instr.op == Op::Default && cell.is_absent() && !instr.optional {
            self.out.bit(map, false);
            return Ok(());
        }
        let value = self.converted(instr, cell)?;
        match instr.op {
            Op::OptionalConstant => {
                if !value.is_absent() && !self.same(value, self.initial(instr)) {
                    return Err(Fault::FieldType);
                }
                self.out.bit(map, !value.is_absent());
                Ok(())
            }
            Op::Default => {
                let sent = !self.same(value, self.initial(instr));
                self.out.bit(map, sent);
                if sent { self.write(instr, value) } else { Ok(()) }
            }
            Op::Copy | Op::Increment | Op::Tail => self.with_bit(instr, value, map),
            Op::Delta => self.delta(instr, value),
            _ => self.write(instr, value),
        }
    }

    /// Copy, increment and tail: sent only when the decoder could not tell.
    fn with_bit(&mut self, instr: &Instr, value: Cell, map: &mut MapOut) -> Result<(), Fault> {
        let previous = self.dictionary.get(instr.dict, instr.kind);
        let untold = match previous {
            Previous::Assigned(cell) if instr.op == Op::Increment => incremented(cell),
            Previous::Assigned(cell) => cell,
            Previous::Undefined => self.initial(instr),
            Previous::Empty => Cell::ABSENT,
            // Sending the value overwrites it, but it can be no tail's base.
            Previous::Other if instr.op != Op::Tail => Cell::NEVER,
            Previous::Other => return Err(Fault::PreviousType),
        };
        if self.same(value, untold) {
            self.out.bit(map, false);
            self.dictionary.set(instr.dict, untold);
            return Ok(());
        }
        self.out.bit(map, true);
        if instr.op == Op::Tail && !value.is_absent() {
            self.tail(instr, value, previous)?;
        } else {
            self.write(instr, value)?;
        }
        self.keep(instr, value)
    }

    fn tail(&mut self, instr: &Instr, value: Cell, previous: Previous) -> Result<(), Fault> {
        let base = match previous {
            Previous::Assigned(cell) => cell,
            _ => self.initial(instr),
        };
        let (base, text) = (self.text.get(base), self.record.text.get(value));
        let common = match text.len().cmp(&base.len()) {
            core::cmp::Ordering::Less => return Err(Fault::NotExpressible),
            core::cmp::Ordering::Equal => common_prefix(base, text),
            core::cmp::Ordering::Greater => 0,
        };
        self.out.text(instr.kind, &text[common..], instr.optional)
    }

    fn delta(&mut self, instr: &Instr, value: Cell) -> Result<(), Fault> {
        if value.is_absent() {
            return self.out.null();
        }
        let base = match self.dictionary.get(instr.dict, instr.kind) {
            Previous::Assigned(cell) => cell,
            Previous::Other => return Err(Fault::PreviousType),
            Previous::Empty => return Err(Fault::EmptyPrevious),
            Previous::Undefined if instr.initial != NONE => self.initial(instr),
            Previous::Undefined => Cell::new(instr.kind, 0),
        };
        match instr.kind {
            Kind::Decimal => {
                let exponent = i128::from(value.exponent()) - i128::from(base.exponent());
                self.out.int(exponent, instr.optional)?;
                self.out.int(
                    i128::from(value.bits as i64) - i128::from(base.bits as i64),
                    false,
                )?;
            }
            kind if kind.is_text() => self.delta_text(instr, value, base)?,
            _ => self.out.int(as_wide(value) - as_wide(base), instr.optional)?,
        }
        self.keep(instr, value)
    }

    /// Changes the end of the base where that is not longer than changing its beginning.
    fn delta_text(&mut self, instr: &Instr, value: Cell, base: Cell) -> Result<(), Fault> {
        let (base, text) = (self.text.get(base), self.record.text.get(value));
        let (front, back) = (common_prefix(base, text), common_suffix(base, text));
        let (count, added) = if front >= back {
            ((base.len() - front) as i128, &text[front..])
        } else {
            (!((base.len() - back) as i128), &text[..text.len() - back])
        };
        self.out.int(count, instr.optional)?;
        self.out.text(instr.kind, added, false)
    }

    /// A field's own encoding.
    fn write(&mut self, instr: &Instr, value: Cell) -> Result<(), Fault> {
        if value.is_absent() {
            return self.out.null();
        }
        let nullable = instr.optional;
        match instr.kind {
            Kind::U32 | Kind::U64 => self.out.uint(value.bits, nullable),
            Kind::I32 | Kind::I64 => self.out.int(i128::from(value.bits as i64), nullable),
            Kind::Decimal => {
                self.out.int(i128::from(value.exponent()), nullable)?;
                self.out.int(i128::from(value.bits as i64), false)
            }
            kind => self.out.text(kind, self.record.text.get(value), nullable),
        }
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    a.iter()
        .rev()
        .zip(b.iter().rev())
        .take_while(|(x, y)| x == y)
        .count()
}
