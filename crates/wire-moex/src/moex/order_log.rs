//! Order logs, the messages of which a market consists, read the short way: a template's entries are compiled
//! to steps that know what a book needs. The record of values that every other message is read into is left
//! out, and with it the second look at each value.
//!
//! Only what is as expected is read here. Anything else (a template of another shape, a text that is no
//! number, a fault) is left to [`Decoder::packet`](super::Decoder::packet), which says what it is: the short
//! way gives the same entries or none.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::hint::black_box;

use tickwire_market::{Nanos, OrderId, Price, Side, Volume};

use crate::fast::{Body, Decimal, Instr, Kind, Limits, NONE, Op, Plan, Reader};

use super::entries::{Action, BookEntry, OrderKind};
use super::tag;
use super::times::{digits, entry_time};

/// Entries of an order log as a book needs them.
#[derive(Clone, Copy, Debug)]
pub struct OrderLog<'a> {
    pub(super) rows: &'a [OrderRow],
    pub(super) names: &'a [Name],
    pub(super) template: u32,
}

/// An entry and its instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderRow {
    /// What a book needs of it.
    pub entry: BookEntry,
    /// Which of the message's [`OrderLog::instrument`]s it is about.
    pub instrument: u16,
}

impl<'a> OrderLog<'a> {
    /// The template's identifier.
    pub fn template_id(&self) -> u32 {
        self.template
    }

    /// The entries in order.
    #[inline(always)]
    pub fn entries(&self) -> &'a [OrderRow] {
        self.rows
    }

    /// Symbol and board of the instruments that the entries are about, by number: an entry that names the
    /// instrument of the one before anew has another number. Empty for a number that no entry has.
    #[inline(always)]
    pub fn instrument(&self, number: u16) -> (&'a [u8], &'a [u8]) {
        match self.names.get(usize::from(number)) {
            Some(name) => (name.symbol.bytes(), name.board.bytes()),
            None => (&[], &[]),
        }
    }
}

/// A text of up to 16 bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Short {
    bytes: [u8; 16],
    len: u8,
}

impl Short {
    #[inline(always)]
    fn of((text, len): (u128, u32)) -> Short {
        Short {
            bytes: text.to_le_bytes(),
            len: len as u8,
        }
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

/// Symbol and board.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Name {
    symbol: Short,
    board: Short,
}

/// What a field of an entry is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    Action,
    Kind,
    Id,
    Symbol,
    RptSeq,
    Price,
    Size,
    Time,
    OrigTime,
    Board,
    /// Not needed: read past, and checked as what is needed.
    Unsigned,
    Signed,
    Decimal,
    Text,
    /// In the template alone.
    Nothing,
}

/// A field that is read from the stream.
#[derive(Clone, Copy, Debug)]
struct Step {
    field: Field,
    nullable: bool,
    max: u64,
}

/// Bits of a presence map that stand beside each other and belong to fields that do.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    mask: u64,
    shift: u32,
}

/// More runs of fields with a bit than this are not taken.
const RUNS_MAX: usize = 3;

/// How a template's messages are read.
#[derive(Clone, Debug)]
struct Program {
    template: u32,
    /// Types of the header's fields before the entries, and which of them is the message's number.
    header: Vec<(Kind, bool)>,
    number: usize,
    is_length_nullable: bool,
    steps: Box<[Step]>,
    /// Fields that are always in the stream, the first one topmost.
    fixed: u64,
    runs: [Run; RUNS_MAX],
    bits: u32,
    order: Order,
    /// Where the fields stand that are read in this order, a bit each, and the bits of those between them.
    places: [u64; NEEDED],
    between: u64,
    /// Those of the fields behind them; of all in any other order.
    rest: u64,
    /// Values that a message has in a record, for the same limits: of its header, and of an entry.
    widths: (usize, usize),
}

/// The orders of fields that are known, handed to another macro: `Unsigned` stands for any number of fields
/// that nobody needs.
macro_rules! time_first {
    ($then:ident) => {
        $then!(Action Kind Id Symbol RptSeq Unsigned Time OrigTime Price Size)
    };
}
macro_rules! price_first {
    ($then:ident) => {
        $then!(Action Kind Id Symbol RptSeq Price Size Unsigned Time OrigTime)
    };
}
macro_rules! name_first {
    ($then:ident) => {
        $then!(Symbol Board RptSeq Action Kind Id Price Size Time OrigTime)
    };
}

/// In which order a template has the fields that a book needs. Where it is known, each of them is read by
/// code of its own, whose branches are foreseen by what that field did before; in any other order all are
/// read by one loop, whose jump from field to field is hard to foresee.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// The exchange's of 2017: times before the price.
    TimeFirst,
    /// The exchange's of 2020: times behind the size.
    PriceFirst,
    /// The instrument comes first: `examples/moex-templates.xml`.
    NameFirst,
    Other,
}

/// How many fields are read in order.
const NEEDED: usize = Field::Board as usize + 1;

impl Order {
    const KNOWN: [Order; 3] = [Order::TimeFirst, Order::PriceFirst, Order::NameFirst];

    /// The fields up to the last one that is read in order.
    const fn fields(self) -> &'static [Field] {
        macro_rules! list {
            ($($field:ident)*) => {
                &[$(Field::$field),*]
            };
        }
        match self {
            Order::TimeFirst => time_first!(list),
            Order::PriceFirst => price_first!(list),
            Order::NameFirst => name_first!(list),
            Order::Other => &[],
        }
    }

    /// How many of these steps it has, if they begin so and all of them may be null.
    fn begins(self, steps: &[Step]) -> Option<usize> {
        let mut at = 0;
        for &field in self.fields() {
            if field == Field::Unsigned {
                at += steps[at..]
                    .iter()
                    .take_while(|step| step.field.is_unneeded())
                    .count();
                continue;
            }
            let step = steps.get(at)?;
            if step.field != field || !step.nullable {
                return None;
            }
            at += 1;
        }
        Some(at)
    }
}

impl Field {
    fn is_unneeded(self) -> bool {
        self as usize >= NEEDED
    }
}

/// The programs of a file's order logs, and where they put what they read.
#[derive(Clone, Debug)]
pub(super) struct OrderLogs {
    /// Shared by decoders that stand beside each other: what one has read the other finds in the caches.
    programs: Arc<[Program]>,
    rows: Box<[OrderRow]>,
    names: Box<[Name]>,
    values_max: usize,
    texts_max: usize,
    strict: bool,
}

impl OrderLogs {
    /// Of the templates with these identifiers.
    pub(super) fn new(plan: &Plan, limits: &Limits, templates: impl Iterator<Item = u32>) -> OrderLogs {
        OrderLogs::of(
            templates.filter_map(|id| Program::new(plan, id)).collect(),
            limits,
        )
    }

    /// By the same programs, with rows and names of its own.
    pub(super) fn beside(&self, limits: &Limits) -> OrderLogs {
        OrderLogs::of(Arc::clone(&self.programs), limits)
    }

    fn of(programs: Arc<[Program]>, limits: &Limits) -> OrderLogs {
        let width = programs.iter().map(|p| p.widths.1.max(1)).min();
        let entries = width.map_or(0, |width| limits.values_max / width);
        OrderLogs {
            rows: vec![OrderRow::EMPTY; entries].into(),
            names: vec![Name::default(); entries.min(usize::from(u16::MAX))].into(),
            values_max: limits.values_max,
            texts_max: limits.text_bytes_max,
            strict: limits.strict,
            programs,
        }
    }

    /// See [`Decoder::fetch`](super::Decoder::fetch).
    pub(super) fn fetch(&self) {
        if let (Some(row), Some(name)) = (self.rows.first(), self.names.first()) {
            black_box((*row, name.symbol, name.board));
        }
    }

    /// Reads a message whose number is this, if it is an order log and as expected in all.
    #[inline(always)]
    pub(super) fn read(&mut self, number: u32, message: &[u8]) -> Option<OrderLog<'_>> {
        // Of a shorter one all texts have room in a record.
        if message.len() > self.texts_max {
            return None;
        }
        let mut input = Reader::new(message, self.strict);
        let map = input.presence_map().ok()?.as_short()?;
        // Of the header only the template has a bit.
        if map != 1 << 63 {
            return None;
        }
        let id = input.uint(u32::MAX.into(), false).ok()?? as u32;
        let program = self.programs.iter().find(|program| program.template == id)?;
        let count = program.header(&mut input, number)?;
        let (header, width) = program.widths;
        if count > self.rows.len() || header + count * width > self.values_max {
            return None;
        }
        let rows = &mut self.rows[..count];
        let into = (&mut *rows, &mut *self.names);
        match program.order {
            Order::TimeFirst => program.entries::<{ Order::TimeFirst as u8 }>(&mut input, into)?,
            Order::PriceFirst => program.entries::<{ Order::PriceFirst as u8 }>(&mut input, into)?,
            Order::NameFirst => program.entries::<{ Order::NameFirst as u8 }>(&mut input, into)?,
            Order::Other => program.entries::<{ Order::Other as u8 }>(&mut input, into)?,
        }
        (input.at == message.len()).then_some(OrderLog {
            rows,
            names: &self.names,
            template: id,
        })
    }
}

impl OrderRow {
    const EMPTY: OrderRow = OrderRow {
        entry: BookEntry {
            action: Action::New,
            kind: OrderKind::EmptyBook,
            order_id: OrderId(0),
            rpt_seq: 0,
            price: None,
            qty: None,
            time: None,
        },
        instrument: 0,
    };
}

impl Program {
    /// `None` for a template that is not of the shape that is read here.
    fn new(plan: &Plan, template: u32) -> Option<Program> {
        let entry = plan.template_entry(plan.find(template)?)?;
        let body = plan.bodies.get(usize::from(entry.body))?;
        let (sequence, fields) = plan.instrs[body.start..body.end].split_last()?;
        let is_entries = sequence.op == Op::Sequence;
        let entries = plan
            .bodies
            .get(usize::from(sequence.body))
            .filter(|_| is_entries)?;
        let (mut header, mut number) = (Vec::new(), None);
        for field in fields.iter().filter(|field| field.op != Op::Constant) {
            let is_plain = matches!(field.kind, Kind::U32 | Kind::U64) && field.op == Op::None;
            if !is_plain {
                return None;
            }
            if field.id == tag::SEQ && field.kind == Kind::U32 && !field.optional {
                number = Some(header.len());
            }
            header.push((field.kind, field.optional));
        }
        let length = &entries.length;
        let is_known = length.op == Op::None && length.id == tag::ENTRIES;
        if !is_known || !entries.in_rows || !entries.is_alone {
            return None;
        }
        let mut program = Program {
            template,
            header,
            number: number?,
            is_length_nullable: length.optional,
            steps: Box::default(),
            fixed: 0,
            runs: [Run::default(); RUNS_MAX],
            bits: 0,
            order: Order::Other,
            places: [0; NEEDED],
            between: 0,
            rest: u64::MAX,
            widths: (body.width, entries.width),
        };
        program.compile(plan, entries)?;
        Some(program)
    }

    /// Steps of an entry's fields, and how the bits of its presence map come to them.
    fn compile(&mut self, plan: &Plan, entries: &Body) -> Option<()> {
        let mut steps = Vec::new();
        // What a step's bit has to be shifted by is how many fields without one stand before it.
        let mut without = 0;
        let mut runs: Vec<Run> = vec![Run::default()];
        for instr in &plan.instrs[entries.start..entries.end] {
            if instr.op == Op::Constant {
                refuse_needed(instr)?;
                continue;
            }
            let place = 1_u64 << 63 >> steps.len();
            match takes_bit(instr)? {
                true => {
                    self.bits += 1;
                    match runs.last_mut() {
                        Some(run) if run.shift == without => run.mask |= place,
                        _ => runs.push(Run {
                            mask: place,
                            shift: without,
                        }),
                    }
                }
                false => {
                    without += 1;
                    self.fixed |= place;
                }
            }
            steps.push(step(instr)?);
            if steps.len() > 63 {
                return None;
            }
        }
        runs.retain(|run| run.mask != 0);
        if runs.len() > RUNS_MAX || entries.bits != self.bits {
            return None;
        }
        self.runs[..runs.len()].copy_from_slice(&runs);
        self.steps = steps.into();
        let needed = [
            Field::Kind,
            Field::Id,
            Field::Symbol,
            Field::RptSeq,
            Field::Price,
            Field::Size,
            Field::Board,
        ];
        let count = |field| self.steps.iter().filter(|step| step.field == field).count();
        let is_once = |step: &Step| step.field.is_unneeded() || count(step.field) == 1;
        if !needed.into_iter().all(|field| count(field) == 1) || !self.steps.iter().all(is_once) {
            return None;
        }
        let begins = |order: Order| Some((order, order.begins(&self.steps)?));
        if let Some((order, count)) = Order::KNOWN.into_iter().find_map(begins) {
            self.arrange(order, count);
        }
        Some(())
    }

    /// The first fields are read in this order.
    fn arrange(&mut self, order: Order, count: usize) {
        self.order = order;
        for (nth, step) in self.steps[..count].iter().enumerate() {
            let place = 1 << 63 >> nth;
            match step.field.is_unneeded() {
                true => self.between |= place,
                false => self.places[step.field as usize] = place,
            }
            self.rest &= !place;
        }
    }

    /// Reads the header and says how many entries follow.
    #[inline(always)]
    fn header(&self, input: &mut Reader<'_>, number: u32) -> Option<usize> {
        for (nth, &(kind, nullable)) in self.header.iter().enumerate() {
            if kind == Kind::U64 {
                input.skip_u64(nullable).ok()?;
                continue;
            }
            let value = input.uint(u32::MAX.into(), nullable).ok()?;
            if nth == self.number && value != Some(number.into()) {
                return None;
            }
        }
        let length = input.uint(u32::MAX.into(), self.is_length_nullable).ok()?;
        Some(length.unwrap_or(0) as usize)
    }

    /// Reads the entries, each over the one before, whose values those have that are not in the stream.
    /// `ORDER` is [`Program::order`]: code of its own for each.
    #[inline(never)]
    fn entries<const ORDER: u8>(
        &self,
        input: &mut Reader<'_>,
        (rows, names): (&mut [OrderRow], &mut [Name]),
    ) -> Option<()> {
        // In registers here.
        let (mut reader, mut state) = (*input, State::default());
        for row in rows {
            self.entry::<ORDER>(&mut reader, &mut state)?;
            if state.is_renamed {
                *names.get_mut(usize::from(state.named))? = state.name;
                (state.is_renamed, state.named) = (false, state.named + 1);
            }
            *row = state.row()?;
        }
        *input = reader;
        Some(())
    }

    #[inline(always)]
    fn entry<const ORDER: u8>(&self, input: &mut Reader<'_>, state: &mut State) -> Option<()> {
        let map = match self.bits {
            0 => 0,
            _ => input.presence_map().ok()?.as_short()?,
        };
        if map.checked_shl(self.bits).unwrap_or(0) != 0 {
            return None;
        }
        let of_runs = |todo, run: &Run| todo | map >> run.shift & run.mask;
        let todo = self.runs.iter().fold(self.fixed, of_runs);
        macro_rules! read {
            (Unsigned) => {
                self.read_each(todo & self.between, input, state)?;
            };
            ($field:ident) => {
                if todo & self.places[Field::$field as usize] != 0 {
                    state.read(Field::$field, true, u32::MAX.into(), input)?;
                }
            };
            ($($field:ident)*) => {
                {
                    $(read!($field);)*
                }
            };
        }
        if ORDER == Order::TimeFirst as u8 {
            time_first!(read);
        } else if ORDER == Order::PriceFirst as u8 {
            price_first!(read);
        } else if ORDER == Order::NameFirst as u8 {
            name_first!(read);
        }
        self.read_each(todo & self.rest, input, state)
    }

    /// Reads the fields whose bits these are, whatever they are.
    #[inline(always)]
    fn read_each(&self, mut todo: u64, input: &mut Reader<'_>, state: &mut State) -> Option<()> {
        while todo != 0 {
            let nth = todo.leading_zeros() as usize;
            todo &= !(1 << 63 >> nth);
            let step = self.steps.get(nth)?;
            state.read(step.field, step.nullable, step.max, input)?;
        }
        Some(())
    }
}

/// Whether a bit says that the field is in the stream; `None` for an operator that is not read here.
fn takes_bit(instr: &Instr) -> Option<bool> {
    match instr.op {
        Op::None => Some(false),
        // What has not been sent yet is absent, as nothing is in the dictionary before the message.
        Op::Copy if instr.optional && instr.initial == NONE => Some(true),
        Op::Default | Op::OptionalConstant => refuse_needed(instr).map(|()| true),
        _ => None,
    }
}

/// `None` for a field of which a book needs the value.
fn refuse_needed(instr: &Instr) -> Option<()> {
    needed(instr.id).is_none().then_some(())
}

fn needed(tag: u32) -> Option<Field> {
    Some(match tag {
        tag::ACTION => Field::Action,
        tag::ENTRY_TYPE => Field::Kind,
        tag::ENTRY_ID => Field::Id,
        tag::SYMBOL => Field::Symbol,
        tag::RPT_SEQ => Field::RptSeq,
        tag::ENTRY_PX => Field::Price,
        tag::ENTRY_SIZE => Field::Size,
        tag::ENTRY_TIME => Field::Time,
        tag::ORIG_TIME => Field::OrigTime,
        tag::BOARD => Field::Board,
        _ => return None,
    })
}

/// How a field is read; `None` where its type is not the one that it is known to have.
fn step(instr: &Instr) -> Option<Step> {
    let field = match (needed(instr.id), instr.kind) {
        _ if instr.op == Op::OptionalConstant => Field::Nothing,
        (Some(field), kind) => {
            let is_known = match field {
                Field::Action | Field::Time | Field::OrigTime => kind == Kind::U32,
                Field::RptSeq => kind == Kind::I32,
                Field::Price | Field::Size => kind == Kind::Decimal,
                _ => kind == Kind::Ascii,
            };
            is_known.then_some(field)?
        }
        (None, Kind::U32 | Kind::U64) => Field::Unsigned,
        (None, Kind::I32) => Field::Signed,
        (None, Kind::Decimal) => Field::Decimal,
        (None, Kind::Ascii) => Field::Text,
        _ => return None,
    };
    Some(Step {
        field,
        nullable: instr.optional,
        max: max_of(instr.kind),
    })
}

fn max_of(kind: Kind) -> u64 {
    match kind {
        Kind::U32 => u32::MAX.into(),
        _ => u64::MAX,
    }
}

/// The values of the entry read last: those of the next one that are not sent.
#[derive(Clone, Copy, Default)]
struct State {
    action: Action,
    kind: Option<OrderKind>,
    id: Option<u64>,
    rpt_seq: u32,
    price: Option<Price>,
    qty: Option<Volume>,
    /// `MDEntryTime` as it was sent, and what it is.
    time: Option<(u64, Nanos)>,
    micros: Option<u64>,
    name: Name,
    /// How many instruments were named, and whether the last of them is that of the entry.
    named: u16,
    is_renamed: bool,
}

impl State {
    /// Reads a field. `max` is an unsigned number's largest.
    #[inline(always)]
    fn read(&mut self, field: Field, nullable: bool, max: u64, input: &mut Reader<'_>) -> Option<()> {
        match field {
            Field::Action => {
                self.action = match input.uint(max, nullable).ok()? {
                    Some(0) | None => Action::New,
                    Some(1) => Action::Change,
                    Some(2) => Action::Delete,
                    Some(_) => return None,
                }
            }
            Field::Kind => {
                self.kind = match input.short_text()? {
                    (0x30, 1) => Some(OrderKind::Order(Side::Bid)),
                    (0x31, 1) => Some(OrderKind::Order(Side::Ask)),
                    (0x4A, 1) => Some(OrderKind::EmptyBook),
                    _ => return None,
                }
            }
            Field::Id => {
                self.id = match input.short_text()? {
                    (_, 0) if nullable => None,
                    text => Some(digits(text)?),
                }
            }
            Field::Symbol => (self.name.symbol, self.is_renamed) = (Short::of(input.short_text()?), true),
            Field::Board => (self.name.board, self.is_renamed) = (Short::of(input.short_text()?), true),
            Field::RptSeq => {
                let value = input.int(i32::MIN.into(), i32::MAX.into(), nullable).ok()?;
                self.rpt_seq = u32::try_from(value.unwrap_or(0)).ok()?;
            }
            Field::Price => {
                self.price = match input.decimal(nullable).ok()? {
                    Some((mantissa, exponent)) => Some(Decimal::new(mantissa, exponent).to_price()?),
                    None => None,
                }
            }
            Field::Size => {
                self.qty = match input.decimal(nullable).ok()? {
                    Some((mantissa, exponent)) => {
                        let whole = Decimal::new(mantissa, exponent).to_integer()?;
                        Some(Volume(u64::try_from(whole).ok()?))
                    }
                    None => None,
                }
            }
            Field::Time => {
                self.time = match input.uint(max, nullable).ok()? {
                    Some(time) => Some((time, entry_time(time)?)),
                    None => None,
                }
            }
            Field::OrigTime => {
                self.micros = input.uint(max, nullable).ok()?;
                if self.micros.is_some_and(|micros| micros >= 1_000_000) {
                    return None;
                }
            }
            Field::Unsigned => _ = input.uint(max, nullable).ok()?,
            Field::Signed => _ = input.int(i32::MIN.into(), i32::MAX.into(), nullable).ok()?,
            Field::Decimal => _ = input.decimal(nullable).ok()?,
            Field::Text => _ = input.short_text()?,
            Field::Nothing => {}
        }
        Some(())
    }

    /// The entry that it is now; `None` where a field is absent without which it is none.
    #[inline(always)]
    fn row(&self) -> Option<OrderRow> {
        let kind = self.kind?;
        let order_id = match (self.id, kind) {
            (Some(id), _) => id,
            (None, OrderKind::EmptyBook) => 0,
            (None, OrderKind::Order(_)) => return None,
        };
        let time = self.time.map(|(time, at)| match self.micros {
            None => at,
            Some(micros) => Nanos(at.0 - time % 1_000 * 1_000_000 + micros * 1_000),
        });
        Some(OrderRow {
            entry: BookEntry {
                action: self.action,
                kind,
                order_id: OrderId(order_id),
                rpt_seq: self.rpt_seq,
                price: self.price,
                qty: self.qty,
                time,
            },
            instrument: self.named.checked_sub(1)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_testdata::workspace;

    #[test]
    fn our_order_log_is_read_in_an_order_that_is_known() {
        extern crate std;
        let xml = std::fs::read_to_string(workspace().join("examples/moex-templates.xml")).unwrap();
        let plan = Plan::parse(&xml).unwrap();
        let id = plan.template_named("X-OLR-DEMO").unwrap().id();
        let program = Program::new(&plan, id).unwrap();
        assert_eq!(program.order, Order::NameFirst);
        assert_eq!((program.between, program.rest.leading_zeros()), (0, 10));
    }
}
