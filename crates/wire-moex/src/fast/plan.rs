//! Templates compiled once, at start, to a flat decoding plan (FAST 1.1, sections 4 "Template Definition" and
//! 6 "Field Instructions"): instructions in arrays, names and dictionary keys resolved to small numbers.

mod compile;

use alloc::string::String;
use alloc::vec::Vec;

use super::error::TemplateError;
use super::value::{Cell, Kind};
use super::xml::{self};
use compile::Compiler;

/// No initial value; no dictionary entry.
pub(crate) const NONE: u16 = u16::MAX;

/// Static template references and nested groups or sequences deeper than this are refused.
const NESTING_MAX: u32 = 16;

/// What an instruction does. The order has no meaning on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Op {
    None,
    Constant,
    OptionalConstant,
    Copy,
    Default,
    Increment,
    Delta,
    Tail,
    /// A decimal with operators of its own for exponent and mantissa; the body holds the two.
    DecimalParts,
    Group,
    OptionalGroup,
    Sequence,
}

/// One step of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instr {
    pub(crate) op: Op,
    pub(crate) kind: Kind,
    pub(crate) optional: bool,
    /// Place in the frame.
    pub(crate) slot: u16,
    /// Dictionary entry.
    pub(crate) dict: u16,
    /// Index of the constant or initial value, [`NONE`] without one.
    pub(crate) initial: u16,
    /// Index of the body of a group, sequence or decimal in parts.
    pub(crate) body: u16,
    /// The field's `id`.
    pub(crate) id: u32,
}

impl Instr {
    pub(crate) const EMPTY: Instr = Instr {
        op: Op::None,
        kind: Kind::Absent,
        optional: false,
        slot: 0,
        dict: NONE,
        initial: NONE,
        body: NONE,
        id: 0,
    };
}

/// An instruction for the hot loop: type and presence, whether it takes a bit, and what it has without its
/// bit; or that it is not for the hot loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(u8);

impl Code {
    const NULLABLE: u8 = 16;
    const TAKES_BIT: u8 = 32;
    const FROM_PLAN: u8 = 64;
    /// The encoding of fields that are not for the hot loop.
    pub(crate) const APART: u8 = 0;
    /// The encoding of a constant: never in the stream.
    pub(crate) const KEPT: u8 = 15;

    fn of(instr: &Instr) -> Code {
        let operator = match instr.op {
            Op::None => 0,
            Op::Copy => Code::TAKES_BIT,
            Op::Default => Code::TAKES_BIT | Code::FROM_PLAN,
            Op::Constant => return Code(Code::KEPT | Code::FROM_PLAN),
            _ => return Code(Code::APART),
        };
        Code(instr.kind as u8 | if instr.optional { Code::NULLABLE } else { 0 } | operator)
    }

    /// Whether a bit says that the field is in the stream.
    #[inline(always)]
    pub(crate) const fn takes_bit(self) -> bool {
        self.0 & Code::TAKES_BIT != 0
    }

    /// Whether a field that is not in the stream has the plan's value, not that of the entry before.
    #[inline(always)]
    pub(crate) const fn is_from_plan(self) -> bool {
        self.0 & Code::FROM_PLAN != 0
    }

    /// Type and presence as one number, [`Kind`] plus 16 when nullable, or one of the constants here.
    #[inline(always)]
    pub(crate) const fn encoding(self) -> u8 {
        self.0 & 31
    }
}

/// A run of instructions: a template, a group, the entries of a sequence, the two parts of a decimal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Presence map bits that the run may take.
    pub(crate) bits: u32,
    /// Cells of one entry.
    pub(crate) width: usize,
    /// A sequence's length.
    pub(crate) length: Instr,
    /// The frame of a sequence's entries.
    pub(crate) frame: u16,
    /// Whether there is a row of previous values ([`Plan::rows`]) beside the fields: they take their slots in
    /// order, and no two of them share a dictionary entry.
    pub(crate) has_row: bool,
    /// Whether that goes for the entries of a sequence, and no instruction has a body of its own.
    pub(crate) in_rows: bool,
    /// Whether nothing else in the template shares a dictionary entry with it either.
    pub(crate) is_alone: bool,
    /// Where its row starts.
    pub(crate) row: usize,
}

/// The place of a field in its message or sequence entry, resolved at start with [`TemplateRef::slot`] or
/// [`SequenceRef::slot`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u16);

impl Slot {
    /// A field that the template does not have: reads as absent, writes are ignored.
    pub const MISSING: Slot = Slot(u16::MAX);

    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether the template has the field.
    pub const fn exists(self) -> bool {
        self.0 != u16::MAX
    }
}

/// A field as the template declares it.
#[derive(Clone, Debug)]
pub struct FieldSpec {
    name: String,
    tag: u32,
    slot: Slot,
    pub(crate) body: u16,
    constant: u16,
    optional: bool,
}

impl FieldSpec {
    /// The `name` attribute.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The `id` attribute as a number (a FIX tag), 0 without one. For a sequence: the id of its length.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// Its place.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// Whether it may be absent.
    pub fn is_optional(&self) -> bool {
        self.optional
    }
}

/// The fields of a message or of a sequence's entries.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    fields: Vec<FieldSpec>,
}

impl Frame {
    /// In template order; fields of groups stand behind the group.
    pub fn fields(&self) -> &[FieldSpec] {
        &self.fields
    }

    #[inline]
    pub(crate) fn width(&self) -> usize {
        self.fields.len()
    }

    fn slot(&self, tag: u32) -> Slot {
        self.fields
            .iter()
            .find(|f| f.tag == tag)
            .map_or(Slot::MISSING, |f| f.slot)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Template {
    name: String,
    id: Option<u32>,
    pub(crate) body: u16,
    frame: u16,
    pub(crate) reset: bool,
}

/// A set of templates, compiled. Immutable; decoders, encoders and views share it.
#[derive(Clone, Debug)]
pub struct Plan {
    templates: Vec<Template>,
    by_id: Vec<(u32, u16)>,
    pub(crate) instrs: Vec<Instr>,
    pub(crate) bodies: Vec<Body>,
    frames: Vec<Frame>,
    pub(crate) initials: Vec<Cell>,
    /// What a field that is not sent has when its dictionary entry is undefined.
    pub(crate) rows: Vec<Cell>,
    /// Beside each cell of [`Plan::rows`] what the hot loop does with the field.
    pub(crate) codes: Vec<Code>,
    pub(crate) text: Vec<u8>,
    pub(crate) dict_len: usize,
}

/// A template of a plan.
#[derive(Clone, Copy)]
pub struct TemplateRef<'a> {
    plan: &'a Plan,
    template: &'a Template,
}

impl<'a> TemplateRef<'a> {
    /// Its identifier; 0 when it has none and serves static references only.
    pub fn id(&self) -> u32 {
        self.template.id.unwrap_or(0)
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.template.name
    }

    pub(crate) fn plan(&self) -> &'a Plan {
        self.plan
    }

    pub(crate) fn body(&self) -> u16 {
        self.template.body
    }

    /// The fields of the message.
    pub fn frame(&self) -> &'a Frame {
        self.plan.frame(self.template.frame)
    }

    /// The place of the field with this `id`, [`Slot::MISSING`] without one.
    pub fn slot(&self, tag: u32) -> Slot {
        self.frame().slot(tag)
    }

    /// The sequence whose length has this `id`.
    pub fn sequence(&self, tag: u32) -> Option<SequenceRef> {
        self.plan.sequence_in(self.frame(), tag)
    }

    /// The text of a constant string field with this `id` (message types are constants).
    pub fn constant(&self, tag: u32) -> Option<&'a [u8]> {
        let spec = self
            .frame()
            .fields
            .iter()
            .find(|f| f.tag == tag && f.constant != NONE)?;
        let cell = *self.plan.initials.get(usize::from(spec.constant))?;
        if cell.kind().is_text() {
            self.plan.text.get(cell.high()..cell.high() + cell.low())
        } else {
            None
        }
    }
}

/// A sequence of a template, resolved at start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SequenceRef {
    slot: Slot,
    frame: u16,
    width: usize,
}

impl SequenceRef {
    /// Its place in the message.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    pub(crate) fn frame(&self) -> u16 {
        self.frame
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }
}

impl Plan {
    /// Reads and compiles a template file. All that can be checked without a stream is checked here.
    pub fn parse(xml: &str) -> Result<Plan, TemplateError> {
        Compiler::default().run(&xml::parse(xml)?)
    }

    /// All templates in the order of the file.
    pub fn templates(&self) -> impl ExactSizeIterator<Item = TemplateRef<'_>> {
        self.templates
            .iter()
            .map(move |template| TemplateRef { plan: self, template })
    }

    /// The template with this identifier.
    pub fn template(&self, id: u32) -> Option<TemplateRef<'_>> {
        self.template_at(self.find(id)?)
    }

    /// The template with this name.
    pub fn template_named(&self, name: &str) -> Option<TemplateRef<'_>> {
        self.templates().find(|t| t.name() == name)
    }

    /// The sequence inside another one whose length has this `id` (sequences of the message:
    /// [`TemplateRef::sequence`]).
    pub fn nested_sequence(&self, outer: &SequenceRef, tag: u32) -> Option<SequenceRef> {
        self.sequence_in(self.frame(outer.frame), tag)
    }

    /// The place of a field in the entries of a sequence, [`Slot::MISSING`] without one.
    pub fn entry_slot(&self, sequence: &SequenceRef, tag: u32) -> Slot {
        self.frame(sequence.frame).slot(tag)
    }

    /// The fields of the entries of a sequence.
    pub fn entry_frame(&self, sequence: &SequenceRef) -> &Frame {
        self.frame(sequence.frame)
    }

    pub(crate) fn template_at(&self, index: u16) -> Option<TemplateRef<'_>> {
        self.templates
            .get(usize::from(index))
            .map(|template| TemplateRef { plan: self, template })
    }

    #[inline]
    pub(crate) fn template_entry(&self, index: u16) -> Option<&Template> {
        self.templates.get(usize::from(index))
    }

    #[inline]
    pub(crate) fn find(&self, id: u32) -> Option<u16> {
        let at = self.by_id.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        self.by_id.get(at).map(|&(_, index)| index)
    }

    /// Fields of the widest frame.
    pub(crate) fn width_max(&self) -> usize {
        self.frames.iter().map(Frame::width).max().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn frame(&self, index: u16) -> &Frame {
        &self.frames[usize::from(index)]
    }

    #[inline]
    pub(crate) fn frame_of(&self, template: u16) -> &Frame {
        self.templates
            .get(usize::from(template))
            .map_or(&EMPTY_FRAME, |t| self.frame(t.frame))
    }

    fn sequence_in(&self, frame: &Frame, tag: u32) -> Option<SequenceRef> {
        frame
            .fields
            .iter()
            .filter(|f| f.tag == tag)
            .find_map(|f| self.sequence_ref(f))
    }

    pub(crate) fn sequence_ref(&self, spec: &FieldSpec) -> Option<SequenceRef> {
        let body = self.bodies.get(usize::from(spec.body))?;
        Some(SequenceRef {
            slot: spec.slot,
            frame: body.frame,
            width: body.width,
        })
    }
}

static EMPTY_FRAME: Frame = Frame { fields: Vec::new() };
