//! What of a template lies in the stream, and where its presence map says so: for whoever reads it by other
//! means than the decoder here, a circuit above all.

use alloc::vec::Vec;

use super::plan::{Body, Instr, Op, Plan, SequenceRef, TemplateRef};
use super::value::Kind;

/// How a field's bytes are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamType {
    /// An integer without a sign; one token.
    Unsigned,
    /// An integer with a sign; one token.
    Signed,
    /// An exponent, and a mantissa behind it unless that is NULL; two tokens.
    Decimal,
    /// Characters of seven bits; one token.
    Ascii,
    /// Something else: not a run of tokens.
    Other,
}

/// What stands for a field that is not in the stream, or beside what is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamOperator {
    /// The field is always there, and is its value.
    None,
    /// Not there: the value of the entry before, within the message.
    Copy,
    /// Not there: a value of the template's.
    Default,
    /// Never there.
    Constant,
    /// What is there is not the value alone (increment, delta, tail), or is a sequence or group.
    Other,
}

/// A field of a template as the stream has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamField {
    /// Its `id`: a FIX tag.
    pub tag: u32,
    /// How its bytes are read.
    pub kind: StreamType,
    /// What stands for it.
    pub operator: StreamOperator,
    /// Whether it may be NULL: an integer is one more than it says, the byte 80 is NULL.
    pub is_nullable: bool,
    /// Whether it takes a bit of the presence map, in the order of the fields.
    pub takes_bit: bool,
}

impl StreamField {
    fn of(instr: &Instr) -> StreamField {
        let kind = match instr.kind {
            Kind::U32 | Kind::U64 => StreamType::Unsigned,
            Kind::I32 | Kind::I64 => StreamType::Signed,
            Kind::Decimal if instr.op != Op::DecimalParts => StreamType::Decimal,
            Kind::Ascii => StreamType::Ascii,
            _ => StreamType::Other,
        };
        let (operator, takes_bit) = match instr.op {
            Op::None => (StreamOperator::None, false),
            Op::Constant => (StreamOperator::Constant, false),
            Op::OptionalConstant => (StreamOperator::Constant, true),
            Op::Copy => (StreamOperator::Copy, true),
            Op::Default => (StreamOperator::Default, true),
            Op::Increment | Op::Tail => (StreamOperator::Other, true),
            _ => (StreamOperator::Other, false),
        };
        StreamField {
            tag: instr.id,
            kind,
            operator,
            is_nullable: instr.optional,
            takes_bit,
        }
    }
}

fn of_body(plan: &Plan, body: &Body) -> Vec<StreamField> {
    plan.instrs[body.start..body.end]
        .iter()
        .map(StreamField::of)
        .collect()
}

impl TemplateRef<'_> {
    /// The message's fields in the order of the stream, behind the presence map and the template identifier,
    /// which takes its first bit. A sequence stands there by the tag of its length, as [`StreamType::Other`].
    pub fn stream(&self) -> Vec<StreamField> {
        let plan = self.plan();
        plan.bodies
            .get(usize::from(self.body()))
            .map_or_else(Vec::new, |body| of_body(plan, body))
    }
}

impl Plan {
    /// A sequence's length, and the fields of an entry in the order of the stream. An entry has a presence
    /// map where one of its fields takes a bit.
    pub fn entry_stream(
        &self,
        template: &TemplateRef<'_>,
        sequence: &SequenceRef,
    ) -> (StreamField, Vec<StreamField>) {
        let spec = template
            .frame()
            .fields()
            .iter()
            .find(|spec| spec.slot() == sequence.slot());
        let body = spec.and_then(|spec| self.bodies.get(usize::from(spec.body)));
        let nothing = || (StreamField::of(&Instr::EMPTY), Vec::new());
        body.map_or_else(nothing, |body| {
            (StreamField::of(&body.length), of_body(self, body))
        })
    }
}
